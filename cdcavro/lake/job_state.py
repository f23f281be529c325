"""The state of a job that merges batches: what it learned and its clock, in files that a person can read.

Each batch has a file, which is written before its data. It has what the batch learned, in order, and the clock behind
the batch. A job goes on by learning all of it again, so a batch that is run again after a crash learns the same and
gives the same rows. A file is replaced in one step; the files of old batches that learned nothing are removed.

What old batches learned is put together in the file of the last of them, which says so; files of earlier batches no
longer count. Of the statements that changed nothing, this file has only the last ones, by which a repeated delivery is
recognized, and the last one of each text.
"""

from __future__ import annotations

import json
import os
import secrets
from datetime import datetime  # noqa: TC003  msgspec looks for it
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from cdcavro.change.model import from_record, to_record
from cdcavro.change.order import Clock
from cdcavro.errors import CdcAvroError, FileError
from cdcavro.exact.locks import hold, leftovers
from cdcavro.lake.typed_rows import TypedRows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from cdcavro.change.model import Change
    from cdcavro.lake.learning import Learner
    from cdcavro.table.tables import Tables

_FORMAT: Final = 1
# How many characters of a name are in the hidden one.
_LONGEST: Final = 60
_KEPT: Final = 2
# How many files of old batches there are before they are put together.
_FILES: Final = 64
# How many statements that changed nothing are kept: of the last ones, and of those with a text of their own.
_LAST_IDLE: Final = 100
_TEXTS: Final = 1_000


class JobState:
    """The state of a job in a folder, `folder` (str or Path), which is created if there is none.

    `save` is called whenever a batch's file has been written: what it needs is then in the folder.
    """

    def __init__(self, folder: str | Path, save: Callable[[], None] = lambda: None) -> None:
        self.folder, self._save = Path(folder), save
        self.folder.mkdir(parents=True, exist_ok=True)
        self._learner: Learner | None = None

    def resume(self, batch: int, tables: Tables) -> TypedRows:
        """Return what makes the typed rows of a batch, as it was after the previous batches.

        `tables` are new ones, with the settings of the job. Raises `FileError` if the previous batch's file is missing,
        or a file is not what `write` wrote.
        """
        found = {number: path for number, path in self._files().items() if number < batch}
        if batch and batch - 1 not in found:
            raise FileError(str(self._path(batch - 1)), "the state behind the batch before", "none")
        maker = TypedRows(tables)
        for path, state in _states_of(found):
            maker.clock = Clock(list(state["clock"]))
            try:
                for records in _batches_of(state):
                    maker.learner.relearn(map(from_record, records))
            except CdcAvroError as error:
                raise FileError(str(path), "a job's state", str(error)) from error
        self._learner = maker.learner
        return maker

    def write(
        self, number: int, learned: Sequence[Change], clock: Clock, facts: Mapping[str, Any] | None = None
    ) -> None:
        """Write what a batch learned and the clock after it; `facts` are JSON values for people, and for `facts`.

        If `learned` was learned by what `resume` returned, the file says which of it changed nothing.
        """
        idle = set() if self._learner is None else {id(change) for change in self._learner.idle}
        state = {
            "format": _FORMAT,
            "batch": number,
            **(facts or {}),
            "clock": clock.state,
            "learned": [to_record(change) for change in learned],
            "idle": [i for i, change in enumerate(learned) if id(change) in idle],
        }
        if self._learner is not None:
            self._learner.idle.clear()
            self._learner.refused.clear()
        replace_file(self._path(number), json.dumps(state, indent=1))
        old = self._path(number - _KEPT)
        if old.exists() and not _read_state(old)[1]:
            old.unlink(missing_ok=True)
        self._compact(number - _KEPT)
        self._save()

    def rewrite(self, batch: int, change: Callable[[dict[str, Any]], None]) -> None:
        """Let a function change what the files of all batches before one say, each in one step. Raises `FileError`."""
        for number, path in sorted(self._files().items()):
            if number < batch:
                state = _read_state(path)[0]
                change(state)
                text = json.dumps(state, indent=1)
                if text.encode() != path.read_bytes():
                    replace_file(path, text)

    def _compact(self, last: int) -> None:
        """Put what the batches up to one learned into the file of the last of them, if there are many files.

        That file is replaced in one step, and the others are then removed from the newest on: while a batch still has a
        file, all batches before it have theirs.
        """
        found = {number: path for number, path in self._files().items() if number <= last}
        if len(found) < _FILES:
            return
        every: list[_Record] = []
        for _, state in _states_of(found):
            idle, i = {*state.get("idle", ())}, 0
            for records in _batches_of(state):
                end = i + len(records)
                every += [_Record(one, j in idle, j + 1 == end) for j, one in enumerate(records, i)]
                i = end
        kept = _without_idle(every)
        whole = {
            **state,
            "whole": True,
            "learned": [one.record for one in kept],
            "idle": [i for i, one in enumerate(kept) if one.is_idle],
            "ends": [i for i, one in enumerate(kept, 1) if one.is_last],
        }
        *others, newest = sorted(found)
        replace_file(found[newest], json.dumps(whole, indent=1))
        for number in reversed(others):
            found[number].unlink(missing_ok=True)

    def facts(self, batch: int) -> dict[str, Any]:
        """Return what `write` wrote about the last batch before one; empty if there is none. Raises `FileError`."""
        found = [path for number, path in sorted(self._files().items()) if number < batch]
        return _read_state(found[-1])[0] if found else {}

    def batches(self) -> list[int]:
        """Return the numbers of the batches that have a file."""
        return sorted(self._files())

    def _files(self) -> dict[int, Path]:
        return {int(path.stem): path for path in self.folder.glob("*.json") if path.stem.isdecimal()}

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:012}.json"


class _NameShape(msgspec.Struct, array_like=True):
    """The name of a table in the lake, and what it is called there as a shard, if it is one."""

    number: int
    database: str | None
    schema: str | None
    table: str
    shard: str | None = None


class _StateShape(msgspec.Struct):
    """The shape of a batch's file, as far as it is read back: the same members, whatever else there is."""

    format: int
    learned: list[dict[str, Any]]
    # The lane, its last place, and its time, as `Clock.state` has them.
    clock: list[tuple[tuple[str, int, str], tuple[str, int, int, str, int], int, list[int], int]]
    totals: dict[str, int] = {}
    read: list[tuple[str | None, int | None, str | None, int, int]] = []
    names: list[_NameShape] = []
    versions: list[tuple[int, int]] = []
    # As `Completeness.facts` has them.
    reached: list[tuple[str, int, int | None, int, int | None]] = []
    complete: list[tuple[int, list[str], int | None, int | None, int]] = []
    begun: datetime | None = None
    # How many halves of updates wait.
    halves: int = 0
    idle: list[int] = []
    whole: bool = False
    # Of a whole file: behind how many of the records each batch ended.
    ends: list[int] = []


def _states_of(files: Mapping[int, Path]) -> list[tuple[Path, dict[str, Any]]]:
    """Return files and their states by batch, from the last file on that has what all batches before it learned."""
    states: list[tuple[Path, dict[str, Any]]] = []
    for number in sorted(files, reverse=True):
        states.append((files[number], _read_state(files[number])[0]))
        if states[-1][1].get("whole"):
            break
    return states[::-1]


def _batches_of(state: Mapping[str, Any]) -> Iterator[list[Any]]:
    """Yield what each of the batches of a file learned: what a version may still become depends on where they ended."""
    start, learned = 0, state["learned"]
    for end in (*state.get("ends", ()), len(learned)):
        yield learned[start:end]
        start = end


class _Record(NamedTuple):
    """What a batch learned."""

    record: dict[str, Any]
    # Whether it changed nothing.
    is_idle: bool
    # Whether the batch ends with it.
    is_last: bool


def _without_idle(records: Sequence[_Record]) -> list[_Record]:
    """Return records without most of those that changed nothing."""
    kept: list[_Record] = []
    texts: set[str] = set()
    count, is_end = 0, False
    for one in reversed(records):
        is_end = is_end or one.is_last
        if one.is_idle:
            count += 1
            text = json.dumps([one.record.get("source"), one.record.get("ddl")])
            is_last = text not in texts and len(texts) < _TEXTS
            if not is_last and count > _LAST_IDLE:
                continue
            texts.update([text] if is_last else [])
        kept.append(one._replace(is_last=is_end))
        is_end = False
    return kept[::-1]


def _read_state(path: Path) -> tuple[dict[str, Any], list[Any], list[Any]]:
    """Return what a file says, what its batch learned, and the state of its clock. Raises `FileError`."""
    try:
        state = json.loads(path.read_bytes())
        _check_format(path, state)
        shape = msgspec.convert(state, _StateShape)
    except FileError:
        raise
    except (ValueError, RecursionError, msgspec.ValidationError) as error:
        got = str(error) if isinstance(error, msgspec.ValidationError) else type(error).__name__
        raise FileError(str(path), "a job's state", got) from error
    return state, shape.learned, state["clock"]


def _check_format(path: Path, state: Any) -> None:
    """Raise `FileError` for a state in another format, whatever its shape is."""
    format = state.get("format") if isinstance(state, dict) else _FORMAT
    if type(format) is int and format != _FORMAT:
        raise FileError(str(path), f"a job's state in format {_FORMAT}", f"one in format {format}")


def replace_file(path: Path, text: str) -> None:
    """Write a file so that there is the old one or the new one, whole, whenever the machine stops.

    The new file is written under a hidden name of its own beside it; hidden files of runs that were killed are removed.
    Raises `FileError` for what is no regular file, such as a device.
    """
    if path.exists() and not path.is_file():
        raise FileError(str(path), "a regular file, or none", "something else")
    hidden = path.with_name(f".{path.name}"[:_LONGEST])
    new = hidden.with_name(f"{hidden.name}.{secrets.token_hex(4)}.part")
    try:
        with new.open("x", encoding="utf-8") as file, hold(new):
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    except BaseException as error:
        new.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno is not None and error.filename is None:
            # As on a full disk.
            error.filename = str(path)
        raise
    for left in leftovers(hidden, ["part"]):
        if left.is_file():
            left.unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)

"""Waiting halves of updates: the rows before and after an update, each in a message of its own, until the other comes.

A task joins the halves that it reads. One more task joins what all tasks of a batch, and the batch before, have left, so
the halves of an update may come through several partitions of a topic, in several files and in several batches. What is
left then waits in the folder of the state.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
import pyarrow as pa
from msgspec import Struct

from cdcavro.change.model import Arrival
from cdcavro.change.order import check_half
from cdcavro.engine.machine import same
from cdcavro.errors import FileError, StructureError
from cdcavro.lake.job_state import replace_file
from cdcavro.sync.reading.message_columns import SCHEMA
from cdcavro.table.table_names import table_name_of
from cdcavro.transcoding.joiner import MOST_BYTES, MOST_HALVES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from cdcavro.change.model import Change, Source
    from cdcavro.sync.conversion.outcome_rows import Message
    from cdcavro.sync.settings import Chosen

    # The topic, the table and the number that both halves of an update have.
    Identity = tuple[str | None, Source, tuple[int, ...] | None]

# The folder of halves that wait, in that of the state.
HALVES: Final = "halves"
_MINUTE: Final = 60
_PLACE: Final = ("topic", "partition", "offset", "file", "line")


class WaitingHalf(Struct, frozen=True, forbid_unknown_fields=True):
    """A half as the state keeps it: its message, where that arrived, and since when it waits, in seconds since 1970."""

    raw: bytes
    since: float
    # The key of the Kafka record.
    key: bytes | None = None
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None
    file: str | None = None
    line: int | None = None
    # The time of its lane, as a reject has it.
    clock: str | None = None

    @property
    def place(self) -> tuple[Any, ...]:
        """Where it arrived."""
        return self.topic, self.partition, self.offset, self.file, self.line


class JoinedHalves(NamedTuple):
    """How the halves of a batch are joined."""

    # For how many minutes a half waits for the other one; None if halves are not joined.
    minutes: float | None = None
    # When the batch was begun, in seconds since 1970.
    now: float = 0
    # The halves that the batch before left.
    kept: tuple[WaitingHalf, ...] = ()

    def waiting(self, rows: Iterable[Mapping[str, Any]]) -> list[WaitingHalf]:
        """Return halves of the batch that are outcomes, in the order of their places, each since it waits."""
        since = {half.place: half.since for half in self.kept}
        found = [
            WaitingHalf(
                raw=bytes(row["raw"]),
                since=since.get(tuple(row[name] for name in _PLACE), self.now),
                key=None if row["record_key"] is None else bytes(row["record_key"]),
                clock=row["note"],
                **{name: row[name] for name in _PLACE},
            )
            for row in rows
        ]
        return sorted(found, key=lambda half: [(part is not None, part) for part in half.place])

    @property
    def late(self) -> frozenset[tuple[Any, ...]]:
        """The places of halves that have waited for too long."""
        most = math.inf if self.minutes is None else self.minutes * _MINUTE
        return frozenset(half.place for half in self.kept if self.now - half.since >= most)

    def takes(self, changes: Sequence[Change], chosen: Chosen) -> bool:
        """Return whether the changes of a message are a half that is joined: a stated one, of a table that is wanted.

        A message that states no operation may be an insert or a delete as well.
        """
        if self.minutes is None or len(changes) != 1 or changes[0].half is None or changes[0].operation is None:
            return False
        name = table_name_of(changes[0].source)
        return name is not None and chosen.has(name)


def half_batch(halves: Iterable[WaitingHalf]) -> pa.RecordBatch:
    """Return the messages of halves as a batch of messages that are read again, each with the time of its lane."""
    rows = [
        {
            "raw": half.raw,
            "length": len(half.raw),
            "key": half.key,
            **dict(zip(_PLACE, half.place, strict=True)),
            "clock": half.clock or "null",
        }
        for half in halves
    ]
    return pa.RecordBatch.from_pylist(rows, schema=SCHEMA)


class Half(NamedTuple):
    """A half of an update, and its message."""

    change: Change
    message: Message

    @property
    def place(self) -> tuple[Any, ...]:
        """Where it arrived."""
        place = self.message.place or Arrival()
        return place.topic, place.partition, place.offset, place.file, place.line


class TaskHalves:
    """The halves that wait in a task, at most 10,000 whose messages have at most 8 MiB in all."""

    def __init__(self) -> None:
        self._waiting: OrderedDict[Identity, list[Half]] = OrderedDict()
        self._count = self._bytes = 0

    def copy(self) -> TaskHalves:
        """Return the same halves, which go on independently."""
        other = TaskHalves()
        other._waiting = OrderedDict((identity, [*halves]) for identity, halves in self._waiting.items())
        other._count, other._bytes = self._count, self._bytes
        return other

    def add(self, half: Half) -> list[Half]:
        """Return the other half of an update, several times if it came so; nothing if the half waits for it.

        Raises `StructureError` for a half without its row or without a number, and for another row than that of the
        same half before.
        """
        change = half.change
        check_half(change)
        identity = half.place[0], change.source, change.position
        waiting = self._waiting.get(identity, [])
        if waiting and waiting[0].change.half != change.half:
            self._forget(identity)
            return waiting
        if waiting and not same(_row(waiting[0].change), _row(change)):
            got = f"another row as its {change.half} half"
            raise StructureError("the other half of the update", got, format=change.source.format)
        self._waiting[identity] = [*waiting, half]
        self._count += 1
        self._bytes += len(half.message.raw)
        return []

    def _forget(self, identity: Identity) -> list[Half]:
        gone = self._waiting.pop(identity)
        self._count -= len(gone)
        self._bytes -= sum(len(half.message.raw) for half in gone)
        return gone

    def give_up(self) -> list[tuple[Half, StructureError]]:
        """Return the halves that have waited longest, until there is room for the others, each with its error."""
        found: list[Half] = []
        while len(self._waiting) > 1 and (self._count > MOST_HALVES or self._bytes > MOST_BYTES):
            found += self._forget(next(iter(self._waiting)))
        bound = f"before {MOST_HALVES} later halves, or {MOST_BYTES} bytes, wait"
        return [(half, alone(half.change, bound)) for half in found]

    @property
    def waiting(self) -> list[Half]:
        """The halves that wait."""
        return [half for halves in self._waiting.values() for half in halves]


def _row(change: Change) -> Any:
    return change.before if change.half == "BEFORE" else change.after


def alone(change: Change, bound: str) -> StructureError:
    """Return the error for a half whose other half did not come within a bound."""
    missing = "BEFORE" if change.half == "AFTER" else "AFTER"
    expected = f"the {missing} half of the update {bound}"
    return StructureError(expected, f"the {change.half} half alone", format=change.source.format)


class KeptHalves:
    """The halves that batches left, in files of a folder, one for each of the last two batches that left some."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self, batch: int, count: int) -> tuple[WaitingHalf, ...]:
        """Return the `count` halves that a batch left. Raises `FileError` if they are not all there."""
        if not count:
            return ()
        path = self._folder / f"{batch}.json"
        try:
            found = msgspec.json.decode(path.read_bytes(), type=tuple[WaitingHalf, ...])
        except (OSError, msgspec.MsgspecError, RecursionError) as error:
            raise FileError(str(path), "the halves of updates that wait", str(error)) from error
        if len(found) != count:
            raise FileError(str(path), f"{count} halves of updates that wait", str(len(found)))
        return found

    def write(self, batch: int, halves: Sequence[WaitingHalf]) -> None:
        """Write the halves that a batch left; those of the batch before stay, as the batch may be run again."""
        if halves:
            self._folder.mkdir(exist_ok=True)
            replace_file(self._folder / f"{batch}.json", msgspec.json.encode(halves).decode())
        for path in self._folder.glob("*.json"):
            if path.stem.isdecimal() and (int(path.stem) < batch - 1 or (int(path.stem) == batch and not halves)):
                path.unlink()

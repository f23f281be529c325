"""Pipeline: messages of a source, in batches, into the tables of a lake, topics or files, whatever runner runs it."""

from __future__ import annotations

import fcntl
import json
import os
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from shlex import quote
from types import NoneType
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from cdcavro.change.order_value import reset_order
from cdcavro.errors import CdcAvroError, FileError, plain, shown
from cdcavro.files.streams import local_folder, plain_path
from cdcavro.lake.account import AccountFile, bound_text, label_of, read_account
from cdcavro.lake.evolution import LENIENT
from cdcavro.lake.job_state import JobState, replace_file
from cdcavro.lake.lakes import SCHEME, DeltaLake, is_lake, one_address
from cdcavro.sync.outputs.reject_places import RejectPlaces
from cdcavro.sync.outputs.schema_changes import SchemaChanges
from cdcavro.sync.outputs.sink_settings import (
    WITH_FORM,
    WITHOUT_CURRENT,
    AvroFiles,
    Job,
    KafkaTopics,
    LakeNames,
    LakeSettings,
    StatementRules,
    with_shapes,
)
from cdcavro.sync.outputs.table_rows import (
    KEPT,
    PAUSED,
    WAITING,
    WaitingRows,
    kept_tables,
    lacking_tables,
    paused_tables,
    put_names,
    put_resets,
    table_resets,
)
from cdcavro.sync.outputs.writer import Publisher
from cdcavro.sync.reading.checkpoint import Checkpoint, reads_files
from cdcavro.sync.reading.stored_state import LOCK, StoredState, is_stored
from cdcavro.sync.secrets import Redaction
from cdcavro.sync.settings import Chosen, Settings
from cdcavro.sync.sources import Files
from cdcavro.table.ddl.steps import TableName

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from cdcavro.lake.account import LakeMark, LakeTable
    from cdcavro.sync.outputs.schema_changes import SchemaChangeOutput
    from cdcavro.sync.settings import RegistrySettings
    from cdcavro.sync.sources import Kafka

JOB: Final = "job.json"
_UNMARKED: Final = "unmarked"
# The state's own folder, by its last run.
_FOLDER: Final = "folder"
# The folder for rejects that are read again, and the one that says how far a pipeline has read.
REPLAY: Final = "replay"
CHECKPOINT: Final = "checkpoint"
BATCHES: Final = "batches"
# Why the last run ended, and when, in seconds since the epoch, if that was an error.
FAILURE: Final = "failure.json"
# How often a lock is tried, as whoever asks for the status of a pipeline has it for an instant; and seconds between.
_ATTEMPTS: Final = 5
_MOMENT: Final = 0.05


@dataclass(frozen=True)
class Pipeline:
    """A pipeline from a source into a sink.

    * `source` (`Kafka` or `Files`)
    * `sink` (`LakeSettings`, `KafkaTopics` or `AvroFiles`)
    * `state` (str): a folder for all that it remembers: how far it has read, what it learned of tables, rows that wait,
      and rejects, or an address in an object store, such as `s3://bucket/state`. If Spark has several machines, all see a
      folder under the same path.
    * `settings` (Settings)
    * `registry` (RegistrySettings or None): where the schemas of tables are published.
    * `redaction` (Redaction): what hides values of variables in errors and reports.
    """

    source: Kafka | Files
    sink: LakeSettings | KafkaTopics | AvroFiles
    state: str
    settings: Settings = field(default_factory=Settings)
    registry: RegistrySettings | None = None
    redaction: Redaction = field(default_factory=Redaction, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Raise `ValueError` for impossible subjects, places of rejects, shapes of tables and framed payloads."""
        object.__setattr__(self, "sink", with_shapes(self.sink, self.settings.shapes))
        if isinstance(self.sink, LakeSettings):
            object.__setattr__(self, "redaction", self.redaction.beside(self.sink.catalog))
        _ = self.places
        if is_stored(self.state) and self.settings.rejects is not None:
            raise ValueError("rejects go to where the state is, if that is an object store: leave rejects out")
        if self.settings.framed is not None and isinstance(self.source, Files):
            raise ValueError("framed payloads are read from Kafka: files hold lines of text")
        self._check_folders()
        self._check_routes()
        if self.registry is None:
            if self.sink.topic is not None:
                raise ValueError("framed payloads need a registry, which has the ids of their schemas")
            return
        if self.sink.topic is not None and self.registry.topic is not None:
            raise ValueError("subjects are named after the topics of Kafka: the registry takes no topic of its own")
        self.registry.strategy_for(self.sink.topic or self.registry.topic)

    def _check_folders(self) -> None:
        """Raise `ValueError` for a state that is no folder, and for a folder in which two kinds of things would be."""
        sink, lake = self.sink, getattr(self.sink, "sink", None)
        if SCHEME.match(self.state) and not is_stored(self.state):
            raise ValueError(f"the state is in a folder, or in a store such as s3://bucket/state, not at {self.state}")
        places = {
            "state": self.state,
            "rejects": self.rejects,
            "the lake": lake.folder if isinstance(lake, DeltaLake) else getattr(sink, "warehouse", None),
            "folder in [avro]": sink.root if isinstance(sink, AvroFiles) else None,
        }
        found: dict[str, str] = {}
        for name, place in places.items():
            if place is not None:
                local = local_folder(place)
                other = found.setdefault(one_address(place) if local is None else str(local.resolve()), name)
                if other != name:
                    raise ValueError(f"{other} and {name} are one folder, {shown(place)}: each has its own")

    def _check_routes(self) -> None:
        """Raise `ValueError` for routes that write several tables into one by mistake, or where that is not possible."""
        merging, shards, twice = (
            self.settings.routes.merging,
            self.settings.routes.of_shards,
            self.settings.routes.repeated,
        )
        if twice is not None:
            raise ValueError(f"[[route]] from {shown(twice.pattern)} stands twice, and the second would never count")
        if merging is not None:
            raise ValueError(
                f"[[route]] from {shown(merging.pattern)} to {shown(merging.to)} writes several tables into one: say in to"
                " what each * stands for, such as {1}, or shards = true if that is meant"
            )
        if shards is None:
            return
        what = f"[[route]] to {shown(shards.to)} has shards"
        sink = self.sink
        if not isinstance(sink, LakeSettings):
            return
        if sink.behavior != LENIENT:
            raise ValueError(f'{what}, none of which may take a column from others: behavior in [lake] is "{LENIENT}"')
        if sink.is_adopting:
            raise ValueError(f"{what}, and lake tables of other pipelines are not adopted as tables of shards")

    @cached_property
    def stored(self) -> StoredState | None:
        """The state, if it is in an object store. Raises `FileError`, and `SetupError` without the library for it."""
        return StoredState(self.state) if is_stored(self.state) else None

    @property
    def folder(self) -> Path:
        """The folder of the state; of one in an object store, that of its working copy."""
        return Path(self.state) if self.stored is None else self.stored.folder

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep other jobs from the state during the block. Raises `FileError` if one has it."""
        with lock_state(self.folder) if self.stored is None else self.stored.held():
            yield

    @contextmanager
    def remembered(self) -> Iterator[None]:
        """Let the state say why a run in the block ended, if an error ended it, and no longer say so if none did."""
        path = self.folder / FAILURE
        try:
            yield
        except CdcAvroError as error:
            said = {"reason": bound_text(self.redaction.of("; ".join(str(error).splitlines()))), "time": time.time()}
            # The error of the run says more than that its state cannot be written.
            with suppress(OSError, CdcAvroError):
                replace_file(path, json.dumps(said))
                self.save()
            raise
        if path.exists():
            path.unlink()
            self.save()

    def save(self, *, is_idle: bool = False) -> None:
        """Let the state of now be what a later run finds, wherever it runs: files of a folder are there already.

        `is_idle` is as in `StoredState.save`. Raises `FileError` if another process has taken the state, or the object store does not answer.
        """
        if self.stored is not None:
            self.stored.save(is_idle=is_idle)

    def verify(self) -> None:
        """Raise `FileError` if another process has taken the state, as only one in an object store can be."""
        if self.stored is not None:
            self.stored.verify()

    @property
    def rejects(self) -> str:
        """The folder for rejects."""
        own = str(Path(self.state) / "rejects") if self.stored is None else f"{self.stored.objects}/rejects"
        return self.settings.rejects or own

    @property
    def places(self) -> RejectPlaces:
        """Where rejects go beside their folder, and what was decided for statements."""
        own = self.settings
        return RejectPlaces.of(own.rejects_table, own.rejects_topic, self.source, self.sink, own.schema_changes_table)

    def schema_changes(self, output: SchemaChangeOutput | None) -> SchemaChanges | None:
        """Return what decides on statements, and writes that to `output`; None if nothing is to be said of them."""
        sink, settings = self.sink, self.settings
        if not isinstance(sink, LakeSettings) or (output is None and sink.statements == StatementRules()):
            return None
        return SchemaChanges(sink, settings.chosen, settings.protection.is_protecting, output)

    @property
    def headers(self) -> dict[str, Any]:
        """Which headers of Kafka's records are read, by the arguments of what reads them."""
        own = self.settings
        stated = own.formats.headers
        return {"has_id_headers": own.has_id_headers, "has_headers": self.sink.has_headers, "stated": stated}

    @property
    def waiting(self) -> int:
        """How many tables that are not paused have rows that wait."""
        folder = self.folder
        waiting = WaitingRows(folder / WAITING).tables()
        names, paused = names_in(folder) if waiting else {}, paused_tables(folder)
        return sum(names.get(number) not in paused for number in waiting)

    @property
    def unmatched(self) -> list[str]:
        """Sentences on what the settings say of tables and columns that there have not been in any batch so far.

        None before the first batch. Raises `FileError`.
        """
        state = JobState(self.folder / BATCHES)
        last = max(state.batches(), default=None)
        if last is None:
            return []
        return self.settings.unmatched(state.resume(last + 1, self.settings.tables()).tables.tables)

    def lacking(
        self, known: Mapping[str, LakeTable] | None, look: Callable[[TableName, str], LakeMark | None]
    ) -> list[str]:
        """Return which lake tables lack rows, as `lacking_tables` does, by default of those that the state knows."""
        chosen, paused = self.settings.chosen, paused_tables(self.folder)

        def is_wanted(name: TableName) -> bool:
            # Of a table with another name in the lake it is not known whether it is chosen.
            return name not in paused and (chosen == Chosen() or self.settings.is_written_as(name))

        if not isinstance(self.sink, LakeSettings) or self.sink.is_adopting:
            return []
        own = read_account(self.folder).lake if known is None else known
        return self.redaction.of(lacking_tables(own, self.sink, is_wanted, look))

    def check_free(self) -> None:
        """Check that no other job uses the state, and that it is of such a source, before anything that takes a while.

        A state in an object store is not looked at, as that takes a while itself. Raises `FileError`.
        """
        with self.redaction.errors():
            if self.stored is None:
                with lock_state(self.folder):
                    self.check_source_kind()

    def check_source_kind(self) -> None:
        """Raise `FileError` for the state of a pipeline that reads files where topics are read, and the other way round."""
        check_source_kind(self.folder, self.source, self.state)

    @contextmanager
    def publisher(self) -> Iterator[Publisher | None]:
        """Yield what publishes the schemas of tables, None without a registry, and close it."""
        if self.registry is None:
            yield None
            return
        publisher = Publisher(self.registry, self.sink.topic, is_connect=self.sink.is_connect)
        try:
            yield publisher
        finally:
            publisher.close()


def check_source_kind(folder: Path, source: Kafka | Files, called: str) -> None:
    """Raise `FileError` if a state, which is `called` so, is of a pipeline whose source is of another kind."""
    kinds = ("topics", "files")
    has_files, is_files = reads_files(folder / CHECKPOINT), isinstance(source, Files)
    if has_files not in (None, is_files):
        expected = f"the state of a pipeline that reads {kinds[is_files]}"
        raise FileError(called, expected, f"that of one that reads {kinds[not is_files]}")


@contextmanager
def lock_state(folder: Path) -> Iterator[None]:
    """Keep other jobs out of a folder, which is created if there is none. Raises `FileError` if one is in it."""
    folder.mkdir(parents=True, exist_ok=True)
    lock = folder / LOCK
    if lock.is_symlink() or (lock.exists() and not lock.is_file()):
        raise FileError(str(lock), "a regular file", "something else")
    with lock.open("a") as file:
        for attempt in range(_ATTEMPTS):
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError as error:
                if attempt == _ATTEMPTS - 1:
                    raise FileError(str(folder), "a state that no other job uses", "one that is in use") from error
                time.sleep(_MOMENT)
        yield


def _facts_of_last_batch(folder: Path) -> dict[str, Any]:
    """Return the facts of the last batch of a state."""
    state = JobState(folder / BATCHES)
    return state.facts(max(state.batches(), default=-1) + 1)


def lake_names(folder: Path) -> LakeNames:
    """Return what tables are called in the lake."""
    return LakeNames.of(_facts_of_last_batch(folder).get("names", []))


def names_in(folder: Path) -> dict[int, TableName]:
    """Return what tables are called in the lake, by their numbers."""
    return lake_names(folder).names


def pause(folder: Path, tables: Sequence[str], *, is_paused: bool) -> list[str]:
    """Let the rows of tables wait from the next batch on, or no longer (`is_paused`); return those that are paused then.

    Tables are named as `Status` names them. Raises `FileError` while a pipeline has the state, and for a table that it
    does not have; then nothing is changed.
    """
    with held_state(folder):
        own = set(_named(folder, tables))
        paused = paused_tables(folder) | own if is_paused else paused_tables(folder) - own
        put_names(folder / PAUSED, paused)
        return [label_of(name) for name in sorted(paused, key=label_of)]


def reset(folder: Path, tables: Sequence[str], *, is_kept: bool = False) -> dict[str, bytes]:
    """Let lake tables lose all that they have with the next run, and begin again with what is read from then on.

    Rows that a table has stay if they are to be kept (`is_kept`), until they are read again or `finish_reset` removes
    them. Return the order below which rows are from before the reset, by the names of the tables. What is in a batch
    that was begun counts as read. A reset is repeated without harm. Raises `FileError` as `pause` does, for a pipeline
    into something else than a lake, and if rows are to be kept of a table that the next run empties.
    """
    with held_state(folder):
        _check_lake(folder)
        names, known = _named(folder, tables), lake_names(folder)
        batch = max(JobState(folder / BATCHES).batches(), default=-1)
        if (folder / CHECKPOINT / "metadata").exists():
            planned = Checkpoint(folder / CHECKPOINT).last
            batch = batch if planned is None else max(batch, planned.number)
        account, waiting, resets = AccountFile(folder), WaitingRows(folder / WAITING), table_resets(folder)
        for name in names:
            numbers, own = _last_numbers(known, name), resets.get(name, ())
            if is_kept and any(one in own for number in numbers for one in waiting.resets(number)):
                raise FileError(plain(label_of(name)), "a table with rows to keep", "one that the next run empties")
            resets[name] = sorted({*own, batch})
            for number in numbers:
                # What is left of a reset that was cut off must not empty a table whose rows are kept.
                if is_kept:
                    waiting.forget_resets(number)
                else:
                    waiting.keep_reset(number, batch)
        account.forget_lake(names)
        # From here on it counts.
        put_resets(folder, resets)
        kept = kept_tables(folder)
        put_names(folder / KEPT, kept.union(names) if is_kept else kept.difference(names))
        return {label_of(name): reset_order(len(resets[name])) for name in names}


def finish_reset(folder: Path, tables: Sequence[str]) -> list[str]:
    """Let lake tables lose with the next run those rows that their last reset kept and that were not read again.

    Return the names of the tables. Raises `FileError` as `reset` does, and for a table that keeps no such rows.
    """
    with held_state(folder):
        _check_lake(folder)
        names, known, kept = _named(folder, tables), lake_names(folder), kept_tables(folder)
        for name in names:
            if name not in kept:
                raise FileError(plain(label_of(name)), "a table that was reset with --keep", "one that was not")
        waiting, resets = WaitingRows(folder / WAITING), table_resets(folder)
        for name in names:
            for number in _last_numbers(known, name):
                waiting.keep_reset(number, resets[name][-1])
        put_names(folder / KEPT, kept.difference(names))
        return [label_of(name) for name in names]


def _check_lake(folder: Path) -> None:
    """Raise `FileError` for the state of a pipeline into something else than a lake."""
    sink = _stated_job(folder / JOB)[1]
    if not is_lake(sink):
        raise FileError(str(folder), "the state of a pipeline into a lake", f"that of one into {sink}")


def _last_numbers(known: LakeNames, name: TableName) -> list[int]:
    """Return the last one of the tables that had a name in the lake one after another; with shards, that of each."""
    return [*{known.shards.get(number): number for number, own in sorted(known.names.items()) if own == name}.values()]


@contextmanager
def held_state(folder: Path) -> Iterator[None]:
    """Hold the state of a pipeline that is there. Raises `FileError`."""
    if not (folder / BATCHES).is_dir():
        raise FileError(str(folder), "the state of a pipeline", "none")
    with lock_state(folder):
        yield


def _named(folder: Path, tables: Sequence[str]) -> list[TableName]:
    """Return the names in the lake of the tables that people call so. Raises `FileError` for one that there is not."""
    known: dict[str, set[TableName]] = {}
    for name in names_in(folder).values():
        known.setdefault(label_of(name), set()).add(name)
    for table in tables:
        if len(known.get(table, ())) != 1:
            shared = table.partition(" (")[0]
            is_shard = shared in known and table not in known
            hint = f" ({shared} for all its shards)" if is_shard else did_you_mean(table, known)
            expected = f"the name of one table of the pipeline{hint}"
            raise FileError(plain(table), expected, "several" if table in known else shown(table))
    return [name for table in dict.fromkeys(tables) for name in known[table]]


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a question for behind what an error expects, with the name among known ones that one may be; else nothing.

    >>> did_you_mean("ordrs", ["orders", "customers"]), did_you_mean("orders", ["orders"])
    (' (did you mean orders?)', '')
    """
    near = get_close_matches(name, known, n=1)
    return f" (did you mean {plain(near[0])}?)" if near and near != [name] else ""


def job_of(folder: Path, sink: str, *, is_checked: bool = False) -> Job:
    """Return the job of a folder, which is made if there is none; if `is_checked`, nothing is written.

    A state that was moved together with its sink belongs to this where it is now. Raises `FileError` if it writes to
    another sink, or has read what would be missing there.
    """
    path = folder / JOB
    if not path.exists():
        made = {"job": uuid4().hex, "sink": sink, _UNMARKED: [], _FOLDER: str(folder.resolve())}
        replace_file(path, json.dumps(made))
    names = names_in(folder).values()
    job, other, stated = _stated_job(path)
    # A state from before there were marks has none.
    unmarked = stated.get(_UNMARKED, [[name.database, name.schema, name.table] for name in names])
    try:
        known = frozenset(TableName(*name) for name in unmarked)
    except TypeError as error:
        raise FileError(str(path), "what tells a job", type(error).__name__) from error
    was, now = _resolved(other), _resolved(sink)
    # Current states may end, and as long as no table is known, they may begin.
    is_other_kind = now == was + WITHOUT_CURRENT or (was == now + WITHOUT_CURRENT and not names)
    before = stated.get(_FOLDER)
    if type(before) not in (str, NoneType):
        raise FileError(str(path), "what tells a job", type(before).__name__)
    if was != now and not is_other_kind and not _is_moved(folder, before, other, sink):
        expected, got = f"the state of a pipeline into {sink}", f"that of one into {other}"
        raise FileError(str(folder), expected, f"{got}{_hint(folder, other, sink)}")
    own = {**stated, "sink": sink, _UNMARKED: unmarked, _FOLDER: str(folder.resolve())}
    if own != stated and not is_checked:
        _move_replayed(folder, Path(before or folder))
        replace_file(path, json.dumps(own))
    return Job(job, known)


def _hint(folder: Path, other: str, sink: str) -> str:
    """Return why a state of one sink cannot go on with another one, or what can be done, if it is known."""
    lakes = {_resolved(one).removesuffix(WITHOUT_CURRENT).partition(WITH_FORM)[0] for one in (other, sink)}
    if len(lakes) == 1:
        if other.endswith(WITHOUT_CURRENT) and not sink.endswith(WITHOUT_CURRENT):
            return ": current states would lack what was read since: leave it, or begin with another state and lake"
        return ": a form cannot change: leave it, or begin with another state and lake"
    (was, form), (now, own_form) = _parts_of(other), _parts_of(sink)
    if was is None or now is None or other.partition(" /")[0] != sink.partition(" /")[0]:
        return ""
    if form != own_form or _is_there(was) or not now.is_dir():
        return ""
    lost = _lost_file(folder, was.parent)
    if lost is not None:
        return f": files that were read, such as {plain(lost)}, are ordered by their paths: mount all where it was"
    return f": if that was moved here, make a link for one run, ln -s {plain(quote(str(now)))} {plain(quote(str(was)))}"


def _is_moved(folder: Path, before: str | None, other: str, sink: str) -> bool:
    """Return whether a state, in the folder `before` by its last run, and its sink, a folder, were moved together.

    Then the way from one to the other is the same, and nothing is where the sink was. If files that were read are no
    longer beside it, they were moved, too, and those to come would be ordered by other paths.
    """
    (was, form), (now, own_form) = _parts_of(other), _parts_of(sink)
    if was is None or now is None or before is None or form != own_form or _is_there(was):
        return False
    is_alike = other.partition(" /")[0] == sink.partition(" /")[0]
    ways = os.path.relpath(was, before), os.path.relpath(now.resolve(), folder.resolve())
    is_there = is_alike and ways[0] == ways[1] and now.is_dir() and any(now.iterdir())
    return is_there and _lost_file(folder, Path(os.path.commonpath([before, was]))) is None


def _is_there(path: Path) -> bool:
    """Return whether something is at a path; what is below a folder that nobody may look into is not there."""
    try:
        return path.exists()
    except OSError:
        return False


def _lost_file(folder: Path, root: Path) -> str | None:
    """Return a file that a pipeline has read below a folder, and that is no longer there; None if there is none."""
    if not reads_files(folder / CHECKPOINT):
        return None
    paths = (Path(plain_path(one.uri)) for one in Checkpoint(folder / CHECKPOINT).files(0).every())
    return next((str(path) for path in paths if path.is_relative_to(root) and not _is_there(path)), None)


def _move_replayed(folder: Path, before: Path) -> None:
    """Let rejects that were read again, and were moved with their state, not be read once more."""
    from cdcavro.sync.reading.file_source import file_uri  # noqa: PLC0415  it needs pyarrow

    def renamed(uri: str) -> str:
        path = Path(plain_path(uri))
        return file_uri(str(folder.resolve() / path.relative_to(before))) if path.is_relative_to(before) else uri

    if before != folder.resolve() and (folder / CHECKPOINT / "sources" / "1").is_dir():
        Checkpoint(folder / CHECKPOINT).files(1).rename(renamed)


def _resolved(sink: str) -> str:
    """Return what names a sink, with a folder in it as it is without `..` and links, and with one address of a place."""
    folder, form = _parts_of(sink)
    place = sink.removesuffix(form)
    if folder is not None:
        return f"{place.partition(' /')[0]} {folder.resolve()}{form}"
    kind, at, address = place.partition(" at ")
    return f"{kind}{at}{one_address(address)}{form}"


def _parts_of(sink: str) -> tuple[Path | None, str]:
    """Return the folder in what names a sink, None if there is none, and what says its form and kinds of tables."""
    lake = sink.removesuffix(WITHOUT_CURRENT)
    place, form, named = lake.partition(WITH_FORM)
    _, slash, folder = place.partition(" /")
    return Path(f"/{folder}") if slash else None, f"{form}{named}{sink.removeprefix(lake)}"


def _stated_job(path: Path) -> tuple[str, str, dict[str, Any]]:
    """Return what tells a job and names its sink, with all that its file says. Raises `FileError`."""
    try:
        stated = json.loads(path.read_bytes())
        return str(stated["job"]), str(stated["sink"]), stated
    except (ValueError, KeyError, TypeError, OSError, RecursionError) as error:
        raise FileError(str(path), "what tells a job", type(error).__name__) from error

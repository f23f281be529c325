"""Status of a pipeline, as its state says it: how far it has come, what its tables are, and which of them have stopped.

Nothing is started and nothing is written, so it may be asked while a pipeline has the state.
"""

from __future__ import annotations

import fcntl
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from cdcavro.errors import CdcAvroError, FileError
from cdcavro.lake.account import bounded_name, read_account
from cdcavro.lake.job_state import JobState
from cdcavro.sync.outputs.completeness import Completeness
from cdcavro.sync.outputs.sink_settings import LakeNames
from cdcavro.sync.outputs.table_rows import WAITING, WaitingRows, kept_tables, paused_tables
from cdcavro.sync.pipeline import BATCHES, CHECKPOINT, FAILURE, JOB, REPLAY, check_source_kind
from cdcavro.sync.reading.brokers import check_brokers
from cdcavro.sync.reading.checkpoint import REPLAY_SOURCE, Checkpoint
from cdcavro.sync.reading.file_source import ReplayReader
from cdcavro.sync.reading.stored_state import LOCK, state_folder
from cdcavro.sync.sources import Kafka

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cdcavro.lake.account import Account, Point
    from cdcavro.sync.outputs.reject_places import RejectPlaces
    from cdcavro.sync.sources import Files

# How often a state is read again of which a pipeline replaced a file meanwhile.
_ATTEMPTS: Final = 20


class TableStatus(Struct):
    """What a pipeline remembers of a table."""

    # What it is called in the lake.
    name: str
    # Its newest version; None if no batch was written since versions are remembered.
    version: int | None
    # The rows that came, by operation.
    rows: dict[str, int]
    # How many rows wait in the state to be written.
    pending: int
    # Why the lake table refused its rows, which wait; None if it did not.
    stopped: str | None
    # Whether it is paused: its rows wait until it is not.
    is_paused: bool
    # Up to when all its changes are in, in seconds since the epoch; None if that is not known. And how many came late.
    complete_until: float | None = None
    late: int = 0
    # Whether rows from before its last reset stay in it, until they are read again or the reset is finished.
    has_kept_rows: bool = False
    # Why rows of earlier batches may be missing in its lake table; None if none are known to be.
    lacks: str | None = None
    # Whether a reset of it is made by the next run.
    is_reset_waiting: bool = False


class LaneStatus(Struct):
    """How far a topic partition or a file is read."""

    # The topic and the partition, or the file.
    topic: str | None
    partition: int | None
    file: str | None
    # The offset to be read next, or how many lines are read.
    position: int
    # How many messages are left, as Kafka says now; None if it was not asked, or did not answer.
    lag: int | None = None


class Status(Struct):
    """What a pipeline remembers. Times are in seconds since the epoch."""

    # Whether a process has the state.
    is_running: bool
    # The number of the last batch that is done, and when it began and ended; None before the first one.
    batch: int | None
    began: float | None
    ended: float | None
    # The number of a batch that was begun and is not done; None if there is none.
    begun: int | None
    # The messages by what became of them.
    counts: dict[str, int]
    # How many rows came.
    rows: int
    # How much is left to read: now if Kafka was asked and answered, otherwise behind the last batch; and what it counts.
    lag: int | None
    unit: str
    # Why Kafka does not say it; None if it does, or was not asked.
    unanswered: str | None
    tables: list[TableStatus]
    lanes: list[LaneStatus]
    # The number of batches whose rejects the next one reads again.
    waiting_rejects: int = 0
    # The error that ended the last run, and when; None if none did, a batch was done since, or a process has the state.
    failure: str | None = None
    failed: float | None = None

    @property
    def stopped(self) -> list[TableStatus]:
        """The tables that refused their rows."""
        return [table for table in self.tables if table.stopped is not None]


def read_status(state: str | Path, source: Kafka | Files | None = None, places: RejectPlaces | None = None) -> Status:
    """Return the status of the pipeline whose state is in a folder or an object store.

    With `source` and `places` of the pipeline, Kafka is asked how much there is. Raises `FileError` for a folder that is
    no state, and for that of a pipeline whose source is of another kind.
    """
    with state_folder(str(state)) as folder:
        if source is not None:
            check_source_kind(folder, source, str(state))
        status = _read_patiently(folder)
    if isinstance(source, Kafka) and places is not None:
        _ask(status, source, places)
    return status


def _read_patiently(folder: Path) -> Status:
    for attempt in range(_ATTEMPTS):
        try:
            return _read(folder)
        except FileNotFoundError:
            # A pipeline that runs removes files of old batches.
            if attempt == _ATTEMPTS - 1:
                raise
            time.sleep(0.01)
    raise AssertionError


def _read(folder: Path) -> Status:
    batches = JobState(folder / BATCHES) if (folder / BATCHES).is_dir() else None
    # Until the first batch is converted, there is a job, and no batch.
    if batches is None or not (batches.batches() or (folder / JOB).exists()):
        raise FileError(str(folder), "the state of a pipeline", "none")
    number = max(batches.batches(), default=-1)
    facts, account = batches.facts(number + 1), read_account(folder)
    last: Point | None = account.points[-1] if account.points else None
    planned, lanes = _positions(folder, facts)
    is_done, is_running = last is not None and last.last >= number, _is_held(folder)
    failure, failed = (None, None) if is_running else _failure(folder, last)
    return Status(
        is_running=is_running,
        batch=None if last is None else last.last,
        began=None if last is None else last.began,
        ended=None if last is None else last.ended,
        begun=planned,
        counts=account.counts,
        rows=sum(sum(rows.values()) for rows in (*account.rows.values(), account.other_rows)),
        lag=None if last is None else last.lag,
        unit=account.unit,
        unanswered=None,
        tables=_tables(folder, facts, account, is_done=is_done),
        lanes=lanes,
        waiting_rejects=_waiting_rejects(folder),
        failure=failure,
        failed=failed,
    )


def _failure(folder: Path, last: Point | None) -> tuple[str | None, float | None]:
    """Return the error that ended the last run, and when, unless a batch was done since."""
    try:
        said = json.loads((folder / FAILURE).read_bytes())
        reason, moment = str(said["reason"]), float(said["time"])
    except FileNotFoundError:
        return None, None
    except (ValueError, TypeError, LookupError) as error:
        raise FileError(str(folder / FAILURE), "why the last run ended", type(error).__name__) from error
    return (None, None) if last is not None and last.ended > moment else (reason, moment)


def _waiting_rejects(folder: Path) -> int:
    """Return the number of batches whose rejects wait to be read again."""
    log = Checkpoint(folder / CHECKPOINT).files(REPLAY_SOURCE)
    waiting = ReplayReader(folder / REPLAY).new({one.uri for one in log.every()})
    return len({Path(one.path).parent for one in waiting if one.path.endswith(".json")})


def _tables(folder: Path, facts: Mapping[str, Any], account: Account, *, is_done: bool) -> list[TableStatus]:
    """Return the tables that have a name in the lake, or are refused one; of several that had one, it is the last one.

    `is_done` says that the batch of which the facts are is written.
    """
    names, versions = LakeNames.of(facts.get("names", [])), dict(facts.get("versions", []))
    labels = {number: names.label_of(number) for number in names.names} | dict(facts.get("nameless", []))
    rows, paused, kept = WaitingRows(folder / WAITING), paused_tables(folder), kept_tables(folder)
    pending = rows.counts()
    found: dict[str, TableStatus] = {}
    lacking = account.lacking
    complete = Completeness.of(facts)
    if is_done:
        complete.settle(pending)
    for number, label in sorted(labels.items()):
        known = bounded_name(label)
        waiting = pending.get(number, 0) + (found[label].pending if label in found else 0)
        of_table = versions.get(number), account.rows.get(known, {}), waiting, account.waiting.get(known)
        mark, name = complete.marks.get(number), names.names.get(number)
        found[label] = TableStatus(
            label,
            *of_table,
            is_paused=name in paused,
            has_kept_rows=name in kept,
            complete_until=None if mark is None else mark / 1e6,
            late=complete.late(number),
            lacks=None if name is None else lacking.get(name),
            is_reset_waiting=bool(rows.resets(number)) or (label in found and found[label].is_reset_waiting),
        )
    return [found[name] for name in sorted(found)]


def _positions(folder: Path, facts: Mapping[str, Any]) -> tuple[int | None, list[LaneStatus]]:
    """Return the batch that is begun and not done, and how far lanes are read: topics by all batches that are done.

    Of files they are those of the last batch.
    """
    files = [LaneStatus(None, None, file, end) for _, _, file, _, end in facts.get("read", []) if file is not None]
    if not (folder / CHECKPOINT / "metadata").exists():
        return None, files
    checkpoint = Checkpoint(folder / CHECKPOINT)
    last = checkpoint.last
    if last is None:
        return None, files
    done = last.number if last.is_committed else last.number - 1
    end = checkpoint.end_of(done)[0] or {}
    lanes = [
        LaneStatus(topic, int(partition), None, int(offset))
        for topic, own in sorted(end.items())
        if isinstance(own, dict)
        for partition, offset in sorted(own.items(), key=lambda one: int(one[0]))
    ]
    return None if last.is_committed else last.number, lanes or files


def _is_held(folder: Path) -> bool:
    """Return whether a process has the state; `lock_state` waits for the instant that this takes."""
    try:
        with (folder / LOCK).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False


def _ask(status: Status, source: Kafka, places: RejectPlaces) -> None:
    """Ask Kafka how much there is behind what was read; what it says is put into the status."""
    try:
        # A state can be looked at where the client of Kafka is not installed.
        from cdcavro.sync.local.local_runner import reader_of  # noqa: PLC0415

        check_brokers(source.servers, source.options)
        reader: Any = reader_of(source, places)
        try:
            latest = reader.latest()
        finally:
            reader.close()
    except (CdcAvroError, ModuleNotFoundError) as error:
        status.unanswered = str(error)
        return
    known = {(one.topic, str(one.partition)): one for one in status.lanes if one.topic is not None}
    if not known:
        return
    left = 0
    for topic, own in latest.items():
        for partition, offset in own.items():
            lane = known.get((topic, partition))
            if lane is None:
                # A partition that is new begins at 0, or it ends the pipeline.
                left += offset
            else:
                lane.lag = max(0, offset - lane.position)
                left += lane.lag
    status.lag, status.unit = left, "messages"

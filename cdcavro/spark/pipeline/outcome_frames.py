"""Outcome frames: the outcomes of a batch's tasks on Spark, and the rows of tables in frames and in Parquet files.

Those files are in a folder that all machines of Spark share, which is checked before. Of a state in an object store, only
the driver has a working copy: then it reads and writes them itself.
"""

from __future__ import annotations

import json
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark import StorageLevel
from pyspark.sql import functions as sf

from cdcavro.change.model import Change
from cdcavro.errors import FileError
from cdcavro.files.streams import local_folder
from cdcavro.spark.arrow_udf import in_worker
from cdcavro.spark.lake.spark_tables import COLLECTED, collect_arrow, frame_of, pieces_of_bytes
from cdcavro.spark.pipeline.batch_progress import rejects_by_reason
from cdcavro.spark.pipeline.pipeline_rejects import rejects_of, write_rejects
from cdcavro.spark.source.line_frame import marked_files, unpack_lines
from cdcavro.sync.conversion.knowledge import has_evidence
from cdcavro.sync.conversion.outcome_rows import COLUMNS, HALF, ROW, SCHEMA, STATEMENT, SUMMARY
from cdcavro.sync.conversion.rounds import merge_notes
from cdcavro.sync.conversion.task import converter, left_outcomes
from cdcavro.sync.local.local_outcomes import ROWS, LocalFiles, LocalStore
from cdcavro.sync.outputs.reject_places import PLACE
from cdcavro.sync.outputs.table_rows import OF_ROWS, ROW_TYPES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from pyspark.sql import DataFrame, SparkSession

    from cdcavro.lake.account import RejectReason
    from cdcavro.sync.conversion.knowledge import Knowledge
    from cdcavro.sync.conversion.rounds import Outcomes
    from cdcavro.sync.outputs.shard_schemas import ShardPayloads

# A task keeps its rows one table behind the other, and Spark cuts what it keeps into pieces of 10,000 rows; each table
# reads all pieces with a row of its own. With 20 files and 20 tables, writing took a tenth longer.
PIECES: Final = {"spark.sql.inMemoryColumnarStorage.batchSize": "1000"}
# What parts rows that wait: each has another order, and those of a table without a key have no key.
_APART: Final = ["order"]
# How many rows of one table are written by one task, if there are fewer than one reads.
_ROWS_OF_TASK: Final = 100_000
# As many times the room of one table is what all tables of a batch have.
_TABLES: Final = 4


@dataclass(frozen=True)
class FrameBatch:
    """The messages of a batch on Spark.

    * `frame`: the messages, with the columns of `sources.COLUMNS`.
    * `room` (int): how many bytes of outcomes are collected; more of them stay in a frame.
    * `is_shared` (bool): whether all machines share the folder of the state.
    """

    frame: DataFrame
    room: int = 0
    is_shared: bool = True

    def convert(self, knowledge: Knowledge) -> Outcomes:
        """Convert the messages; the frame of outcomes stays until it is freed. Raises as `merge_notes` does."""
        # Spark may write what it keeps to the disks of its machines.
        task = in_worker(converter(knowledge.of_tasks, unpack_lines, is_evident=not knowledge.is_hiding))
        outcomes = self.frame.mapInArrow(task, COLUMNS).persist(StorageLevel.MEMORY_AND_DISK)
        try:
            rows = outcomes.where(sf.col("what") == SUMMARY).select("note").collect()
            notes = [json.loads(row["note"]) for row in rows]
            left = _left(outcomes, notes, knowledge)
            notes += left.notes
            evidence = _evidence(outcomes) if has_evidence(notes) else ()
            # A task that failed has no size.
            size = sum(note.get("bytes", self.room) for note in notes)
            if size >= self.room:
                count = sum(sum(one["ops"].values()) for note in notes for one in note.get("tables", {}).values())
                bounds = self.room, _TABLES * self.room, size / max(1, count)
                kept = FrameStore(left.added_to(outcomes), *bounds, outcomes, self.is_shared)
                return merge_notes(kept, notes)._replace(halves=left.halves, evidence=evidence)
            store = _collect(outcomes.where(~sf.col("what").isin(SUMMARY, HALF)))
            for batch in left.batches:
                store.add(batch)
        except BaseException:
            outcomes.unpersist()
            raise
        outcomes.unpersist()
        return merge_notes(store, notes)._replace(halves=left.halves, evidence=evidence)

    def marks(self, files: Iterable[str]) -> list[str]:
        """Return what is to be said of byte order marks in files that Spark unpacks."""
        return marked_files(self.frame.sparkSession, files)


class _Left(NamedTuple):
    """What became of the halves of updates that tasks and the batch before left."""

    # Outcomes without summaries, and the summaries.
    batches: Sequence[pa.RecordBatch] = ()
    notes: Sequence[dict[str, Any]] = ()
    # The halves that still wait.
    halves: Sequence[dict[str, Any]] = ()

    def added_to(self, outcomes: DataFrame) -> DataFrame:
        """Return outcomes with these."""
        rows = [tuple(row.values()) for batch in self.batches for row in batch.to_pylist()]
        return outcomes.union(outcomes.sparkSession.createDataFrame(rows, COLUMNS)) if rows else outcomes


def _left(outcomes: DataFrame, notes: Sequence[dict[str, Any]], knowledge: Knowledge) -> _Left:
    """Join the halves of updates that the tasks of a batch, and the batch before, left; there are few."""
    found = []
    if any(note.get("counts", {}).get("waiting") for note in notes):
        found = [row.asDict() for row in outcomes.where(sf.col("what") == HALF).collect()]
    if not (found or knowledge.halves.kept):
        return _Left()
    batches = list(left_outcomes(knowledge, found))
    store = LocalStore()
    for batch in batches:
        store.add(batch)
    others = [
        batch.filter(pc.invert(pc.is_in(batch.column("what"), pa.array([SUMMARY, HALF], pa.int8()))))
        for batch in batches
    ]
    return _Left(others, store.notes, store.take_halves())


def _evidence(outcomes: DataFrame) -> list[bytes]:
    """Return the evidence of all tasks, each of which has some."""
    return [bytes(row["raw"]) for row in outcomes.where(sf.col("what") == SUMMARY).select("raw").collect()]


def _collect(outcomes: DataFrame) -> LocalStore:
    """Return outcomes in the memory of this process."""
    store = LocalStore()
    for batch in collect_arrow(outcomes).cast(SCHEMA).to_batches():
        store.add(batch)
    return store


@dataclass
class FrameStore:
    """Outcomes in a frame that is kept, with the columns of `outcome_rows`.

    * `room` and `left` (int): how many bytes of one table are collected, and how many of all together.
    * `row_size` (float): how many bytes a row has on average.
    * `kept` (DataFrame or None): the frame that is kept, if it is a part of `frame`.
    * `is_shared` (bool): whether all machines share the folder of the state.
    """

    frame: DataFrame
    room: int = 0
    left: int = 0
    row_size: float = 0
    kept: DataFrame | None = None
    is_shared: bool = True

    @property
    def files(self) -> FrameFiles:
        """Reads and writes rows in the session of the frame."""
        return FrameFiles(self.frame.sparkSession, self.is_shared)

    def questions(self) -> list[Change]:
        """Return the changes that tasks ask to learn."""
        rows = self.frame.where(sf.col("what") == STATEMENT).select(sf.explode("outlines").alias("outline")).collect()
        return [Change.from_avro(bytes(row["outline"])) for row in rows]

    def rows(self, name: str, count: int) -> DataFrame | pa.Table:
        """Return the `count` rows of the table with a name, collected if they are small enough."""
        own = self.frame.where((sf.col("what") == ROW) & (sf.col("number") == name)).select(*OF_ROWS)
        size = int(count * self.row_size)
        if size < min(self.room, self.left):
            self.left -= size
            return collect_arrow(own).cast(ROWS)
        # A task and a file cost more than a few rows.
        return own.coalesce(-(-count // _ROWS_OF_TASK))

    def write_rows(self, folder: Path) -> int:
        """Write the rows of all tables below a folder in one job; return how many there are."""
        rows = self.frame.where(sf.col("what") == ROW).select("number", *OF_ROWS)
        if self.is_shared:
            rows.write.partitionBy("number").parquet(f"file://{folder.resolve()}")
            return rows.count()
        for i, piece in enumerate(pieces_of_bytes(rows, "payload", _APART)):
            for name in pc.unique(piece.column("number")).to_pylist():
                own = piece.filter(pc.equal(piece.column("number"), name)).select(OF_ROWS).cast(ROWS)
                _write_part(own, folder / f"number={name}", i)
        return rows.count()

    def rejects(self) -> DataFrame:
        """Return the rows of rejects."""
        return rejects_of(self.frame)

    def write_rejects(self, folder: str, batch: int, now: datetime, count: int) -> None:
        """Write the rejects of a batch. Raises `JobError` if they are not all there."""
        if self.is_shared:
            write_rejects(self.frame, folder, batch, now, count)
            return
        store = LocalStore(room=COLLECTED)
        try:
            for piece in pieces_of_bytes(self.rejects(), "raw", PLACE):
                for part in piece.cast(SCHEMA).to_batches():
                    store.add(part)
            store.write_rejects(folder, batch, now, count)
        finally:
            store.free()

    def reject_reasons(self) -> list[RejectReason]:
        """Return the rejects by reason."""
        return rejects_by_reason(self.frame)

    def first_rejects(self, count: int) -> list[bytes]:
        """Return the bytes of some rejects."""
        return [bytes(row["raw"]) for row in rejects_of(self.frame).select("raw").take(count)]

    def free(self) -> None:
        """Let the frame go."""
        (self.frame if self.kept is None else self.kept).unpersist()


@dataclass(frozen=True)
class FrameFiles:
    """Folders of Parquet files with the rows of a table, read and written as frames.

    `is_shared` says whether all machines share the folders. If not, rows go through the memory of this process: when they
    are written some at a time, and when they are read all those in a folder.
    """

    spark: SparkSession
    is_shared: bool = True

    def read(self, folder: Path) -> DataFrame:
        """Return the rows in a folder; those that an earlier version wrote have no headers."""
        if not self.is_shared:
            return frame_of(self.spark, LocalFiles().read(folder))
        return self.spark.read.schema(ROW_TYPES).parquet(f"file://{folder.resolve()}")

    def write(self, rows: DataFrame | pa.Table, folder: Path) -> int:
        """Write rows to a folder, also those that were collected; return how many there are."""
        if isinstance(rows, pa.Table):
            return LocalFiles().write(rows, folder)
        if not self.is_shared:
            for i, piece in enumerate(pieces_of_bytes(rows.select(*OF_ROWS), "payload", _APART)):
                _write_part(piece.cast(ROWS), folder, i)
            return rows.count()
        rows.write.parquet(f"file://{folder.resolve()}")
        return rows.count()

    def versions(self, rows: DataFrame | pa.Table) -> list[int]:
        """Return the versions of rows, also of those that were collected."""
        if isinstance(rows, pa.Table):
            return LocalFiles().versions(rows)
        return [row["version"] for row in rows.select("version").distinct().collect()]

    def behind(self, rows: DataFrame | pa.Table, order: bytes) -> DataFrame | pa.Table:
        """Return rows whose orders come behind one, also those that were collected."""
        if isinstance(rows, pa.Table):
            return LocalFiles().behind(rows, order)
        return rows.withColumn("order", sf.concat(sf.lit(order), sf.col("order")))

    def translated(self, rows: DataFrame, payloads: ShardPayloads) -> DataFrame:
        """Return rows of a shard under the schema that it shares with others."""

        def translate(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                yield from payloads.translate(pa.Table.from_batches([batch])).to_batches()

        return rows.select(*OF_ROWS).mapInArrow(in_worker(translate), ROW_TYPES)


def _write_part(rows: pa.Table, folder: Path, number: int) -> None:
    """Write rows to a file of their own in a folder, which is made."""
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows, folder / f"part-{number:05}.parquet", use_dictionary=["operation", "version"])


# How often each machine is asked, on average: which one takes a task is Spark's choice.
_ASKED: Final = 4


def check_shared(spark: SparkSession, folders: Iterable[str | Path]) -> None:
    """Check that all machines of Spark see the same folders as this one, and can write to them.

    What they write to disks of their own would be lost. Addresses of other file systems are not checked; for a folder
    that is not there yet, the folder around it is. Raises `FileError`, which names a machine.
    """
    context: Any = spark.sparkContext
    local = dict.fromkeys(path for path in map(local_folder, folders) if path is not None)
    if context._jsc.sc().isLocal():  # noqa: SLF001  it has no Python interface
        return
    for path in local:
        there = next(one for one in (path, *path.parents) if one.is_dir())
        mark = there / f".cdcavro-{uuid4().hex}"
        mark.touch()
        try:
            tasks = max(1, context.defaultParallelism) * _ASKED
            answers = context.parallelize(range(tasks), tasks).mapPartitionsWithIndex(_look_task(str(mark))).collect()
            fault = next((one for one in answers if one[2] or not Path(one[1]).exists()), None)
        finally:
            for one in there.glob(f"{mark.name}*"):
                one.unlink(missing_ok=True)
        if fault is not None:
            host, _, reason = fault
            raise FileError(
                str(path), "a folder that all machines of Spark share", f"one that {host} {reason or 'has of its own'}"
            )


def _look_task(mark: str) -> Any:
    """Return a task's function: it returns its machine, the file that it wrote beside a mark, or why it cannot."""

    def look(index: int, _: Iterator[int]) -> Iterator[tuple[str, str, str | None]]:
        own, host = Path(f"{mark}-{index}"), socket.gethostname()
        if not Path(mark).exists():
            yield host, str(own), "does not see"
            return
        try:
            own.touch()
        except OSError as error:
            yield host, str(own), f"cannot write to ({error.strerror})"
            return
        yield host, str(own), None

    return look

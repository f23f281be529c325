"""Tables of Spark's: used as native tables are, with Arrow, or changelogs, to which changes are appended.

Where they are used as native tables are, Arrow comes and goes, and Spark finds, merges and writes the rows. So a
current state that keeps versions of rows, or is that of a shard, is the same code on both runners, and is written
wherever Spark reaches.

The changelog of a table in a lake has every change of its rows, appended once for each batch.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial, reduce
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import functions as sf

from cdcavro.errors import SchemaError
from cdcavro.lake import sql_statements as sql
from cdcavro.lake.escaped_names import quote
from cdcavro.lake.evolution import LENIENT
from cdcavro.lake.lake_columns import arrow_type, held_columns, readings, spark_name
from cdcavro.lake.lakes import SUFFIXES, UNKNOWN_ATTEMPT, name_property
from cdcavro.lake.merge import Origin, written_behind
from cdcavro.lake.sql_statements import (
    DELETED,
    GONE,
    KEY,
    OPERATION,
    ORDER,
    STATE,
    create_table,
    delete_up_to,
    literal,
    merge_state,
    replace_rows,
)
from cdcavro.lake.typed_rows import CREATED, DROP
from cdcavro.spark.arrow_udf import in_worker
from cdcavro.spark.lake.current_state import with_headers
from cdcavro.spark.lake.sinks import (
    Delta,
    Iceberg,
    iceberg_table,
    prepare,
    present_columns,
    properties_of,
    put_properties,
    repartition,
    sort_by,
    take_steps,
    with_view,
)
from cdcavro.spark.session import classic
from cdcavro.spark.version_columns import read_fields
from cdcavro.sync.local.local_outcomes import ROWS
from cdcavro.sync.native.native_state import with_types

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from pyspark.sql import Column, DataFrame, SparkSession

    from cdcavro.lake.evolution import LakeColumn, Step
    from cdcavro.lake.lakes import Attempt
    from cdcavro.lake.table_shape import Partition, TableShape
    from cdcavro.spark.lake.sinks import Sink
    from cdcavro.sync.native.shard_tables import ShardRows
    from cdcavro.table.ddl.steps import TableName
    from cdcavro.table.table_schema import TableSchema

    # One selection of columns after another: first Columns, then texts of SQL.
    Reading = Sequence[Sequence[Any]]

CHANGES: Final = "changes"
BEFORE: Final = "b"
_FACTS: Final = ("version", "order", "key")
# Texts of SQL: a Column is made by several calls of the JVM for each of its parts.
_OWN: Final = {
    sql.OPERATION: "operation",
    sql.ORDER: quote("order"),
    sql.KEY: quote("key"),
    sql.VERSION: "version",
    sql.UNPARSED: "CASE WHEN size(image.unparsed) > 0 THEN image.unparsed END",
    sql.ABSENT: "CASE WHEN size(image.absent) > 0 THEN image.absent END",
}
# Two rows for an update that states the row before it. Only a flag is multiplied: an array of images would be made and
# copied for each change.
_HAS_BEFORE: Final = "operation = 'u' AND envelope.before IS NOT NULL"
_IMAGES: Final = (
    ("*", f"explode(CASE WHEN {_HAS_BEFORE} THEN array(true, false) ELSE array(false) END) AS is_before"),
    (
        *map(quote, _FACTS),
        f"CASE WHEN is_before THEN {literal(BEFORE)} ELSE operation END AS operation",
        "CASE WHEN is_before THEN envelope.before ELSE coalesce(envelope.after, envelope.before) END AS image",
    ),
)


@dataclass(frozen=True)
class Changelog:
    """The changelog of a table in a sink.

    A change is one row with the columns of the table: as they were before a delete, and as they are after anything
    else. The row before an update, as far as the update states it, is a separate row before it, whose `_cdc_op` is b.
    The fields are those of `CurrentState`.
    """

    sink: Sink
    table: TableName
    behavior: str = LENIENT
    change_columns: tuple[str, ...] = ()
    excluded: frozenset[str] = frozenset()
    origin: Origin | None = None

    @property
    def identifier(self) -> str:
        """The name of the lake table in SQL."""
        return self.sink.identifier(self.table, CHANGES)

    def prepare(self, spark: SparkSession, versions: Sequence[TableSchema]) -> list[Step | str]:
        """Give the lake table the columns of the newest version; return what was changed.

        Raises `SchemaError`.
        """
        self.sink.make_room(spark, self.table)
        held = properties_of(spark, self.identifier) if self.sink.is_there(spark, self.table, CHANGES) else {}
        behavior, written = written_behind(self.behavior, held, versions[-1].version, self.origin)
        own = {**name_property(versions[-1].table), CREATED: uuid4().hex, **written}
        columns = {**sql.CHANGELOG, **sql.change_types(self.change_columns)}
        steps = prepare(spark, self.sink, self.identifier, versions, columns, behavior, own, self.excluded)
        put_properties(spark, self.identifier, dict(written.items() - held.items()) if held else {})
        return steps

    def append(
        self,
        rows: DataFrame,
        versions: Sequence[TableSchema],
        *,
        job: str,
        batch: int,
        attempt: Attempt = UNKNOWN_ATTEMPT,
        reading: Reading | None = None,
    ) -> None:
        """Append a batch of the table's typed rows; appending a job's batch again changes nothing.

        `rows` is as in `CurrentState.merge`; `job` (str) is unique to the writer, and `batch` (int) increases. An
        `attempt` that is known to be the first costs less; a later one must then say when the first was. `reading` is
        what the method of that name returned for the versions and the lake table as it is; by default it is called.
        Raises `JobError` if it can no longer be determined whether the first attempt was written.
        """
        if reading is None:
            reading = self.reading(rows.sparkSession.table(self.identifier), versions)
        first, *texts = reading
        rows = with_headers(rows)
        frame = reduce(lambda read, listed: read.selectExpr(*listed), texts, rows.select(*first))
        self.sink.append(frame, self.table, CHANGES, job, batch, attempt)

    def reading(
        self,
        lake: DataFrame,
        versions: Sequence[TableSchema],
        shard: tuple[Sequence[LakeColumn], ShardRows] | None = None,
    ) -> Reading:
        """Return how typed rows of these versions become rows of the lake table, a frame of which is given.

        `shard` has the columns of the shard that they are of, and how its rows become those of the lake table.
        """
        present = present_columns(lake) if shard is None else shard[0]
        found = readings(versions, versions[0].version, present)
        reader = found[0][1][-1]
        payload = sf.when(sf.col("operation") != DROP, sf.col("payload"))
        envelope, fields = read_fields("version", payload, versions, reader)
        # The last version whose rows have a column: a lake table keeps those that were dropped.
        until = {held.name: last for last, known in found for _, held in held_columns(known[-1], present)}
        values = dict.fromkeys([one.name for one in present], "NULL")
        for one, held in held_columns(reader, present):
            value, last = quote("image", fields[one.field]), until[held.name]
            is_dropped = last < versions[-1].version
            values[held.name] = f"CASE WHEN version <= {last} THEN {value} END" if is_dropped else value
        columns = {one.name: f"CAST({values[one.name]} AS {one.type})" for one in present}
        about = sql.change_values(lake.columns, self.change_columns)
        chosen = columns | _OWN | about
        if shard is not None:
            chosen = _of_shard(chosen, lake, shard[1])
        last_texts = [f"{chosen.get(name, quote(name))} AS {quote(name)}" for name in lake.columns]
        every, images = _IMAGES
        sources = ["envelope.source AS source", sql.HEADERS] if about else []
        first = [*map(sf.col, (*_FACTS, sql.HEADERS)), sf.col("operation"), envelope.alias("envelope")]
        return [first, every, [*images, *sources], last_texts]


def _of_shard(chosen: Mapping[str, str], lake: DataFrame, rows: ShardRows) -> dict[str, str]:
    """Return SQL for the columns of a lake table, given that for those of a shard; null in those of others."""
    names = {held: name for name, held in rows.names.items()}
    found = dict(chosen)
    for one in present_columns(lake):
        found[one.name] = f"CAST({chosen[names[one.name]] if one.name in names else 'NULL'} AS {one.type})"
    found[sql.KEY] = f"concat(X'{rows.prefix.hex()}', {chosen[sql.KEY]})"
    return {**found, sql.SHARD: literal(rows.shard)}


def rows_not_held(rows: DataFrame, identifier: str, until: bytes) -> DataFrame:
    """Return the typed rows that a changelog does not hold, which was adopted when its last order was `until`."""
    first = rows.agg(sf.min("order").alias("first")).collect()[0]["first"]
    if first is None or bytes(first) > until:
        return rows
    held = rows.sparkSession.table(identifier).where(sf.col(ORDER).between(sf.lit(first), sf.lit(until)))
    held = held.select(*[sf.col(name).alias(f"held{name}") for name in (ORDER, OPERATION, KEY)])
    same = (
        (rows["order"] == held[f"held{ORDER}"])
        & (rows["operation"] == held[f"held{OPERATION}"])
        & rows["key"].eqNullSafe(held[f"held{KEY}"])
    )
    return rows.join(held, same, "left_anti")


# Up to how many bytes of a batch are collected and written by this process, where it can do that.
COLLECTED: Final = 128 << 20
# How many bytes a row takes beside its payload, about: Python looks at its key, its order and its time.
_ROW_SIZE: Final = 1_000
# How many rows, at most, and about how many bytes one task unpacks.
_ROWS: Final = 10_000
_BYTES: Final = 16 << 20


@dataclass(frozen=True)
class SparkLake:
    """The lake of a sink, with what states and shards ask of a `NativeLake`; `check_held` is as in `CurrentState`."""

    spark: SparkSession
    sink: Sink
    check_held: Callable[[], None] = field(default=lambda: None, repr=False, compare=False)

    @property
    def using(self) -> str:
        """The kind of lake."""
        return self.sink.using

    @property
    def name(self) -> str:
        """What the lake is called in messages."""
        return self.sink.name

    def table(self, name: TableName, suffix: str = "") -> SparkTable:
        """Return a lake table of a table."""
        return SparkTable(self.spark, self.sink, name, suffix, self.check_held)

    def properties(self, names: Sequence[str]) -> Mapping[str, str]:
        """Return what a table with columns of such names is created with."""
        return self.sink.properties(names)

    def properties_for(self, steps: Sequence[Step]) -> Mapping[str, str]:
        """Return the properties that a table needs for steps."""
        return self.sink.properties_for(steps)

    @property
    def is_stepwise(self) -> bool:
        """Whether each step on the columns of a table is a commit of its own."""
        return True

    def is_rewritten(self, properties: Mapping[str, str]) -> bool:
        """Return whether steps on the columns of a table with some properties write its files anew."""
        return self.sink.is_rewritten(properties)

    def shape_of(self, table: TableName) -> TableShape:
        """Return what is said of the shape of a table."""
        return self.sink.shape_of(table)

    def can_widen(self, old: str, new: str) -> bool:
        """Return whether a column of a type can become one of another, as Spark spells types."""
        return self.sink.can_widen(old, new)

    def make_room(self, table: TableName) -> None:
        """Prepare the place of a table. Raises `SchemaError` as `check_separate` does."""
        self.sink.make_room(self.spark, table)


@dataclass(frozen=True)
class SparkTable:
    """One lake table, with what states and shards ask of a `NativeTable`. A change of rows is one commit."""

    spark: SparkSession
    sink: Sink
    table: TableName
    suffix: str = ""
    check_held: Callable[[], None] = field(default=lambda: None, repr=False, compare=False)

    @property
    def identifier(self) -> str:
        """The name of the table in SQL."""
        return self.sink.identifier(self.table, self.suffix)

    @property
    def _frame(self) -> DataFrame:
        return self.spark.table(self.identifier)

    def properties(self) -> dict[str, str] | None:
        """Return the properties of the table; None if there is no table."""
        is_there = self.sink.is_there(self.spark, self.table, self.suffix)
        return properties_of(self.spark, self.identifier) if is_there else None

    def columns(self) -> list[LakeColumn]:
        """Return the columns, without this project's own."""
        return present_columns(self._frame)

    def schema(self) -> pa.Schema:
        """Return the names and types of all columns, this project's own among them, in the table's order."""
        return pa.schema([(one.name, arrow_type(one.dataType.simpleString())) for one in self._frame.schema])

    def create(
        self,
        columns: Sequence[LakeColumn],
        own: Mapping[str, str],
        properties: Mapping[str, str],
        partition: Sequence[Partition] = (),
    ) -> None:
        """Create the table unless there is one."""
        parts = [one.sql for one in partition]
        self.spark.sql(create_table(self.identifier, columns, own, self.sink.using, properties, parts))

    def repartition(self, partition: Sequence[Partition]) -> list[str]:
        """Let the table be partitioned so from now on; return what was done."""
        return repartition(self.spark, self.sink, self.identifier, partition)

    def sort_by(self, names: Sequence[str]) -> list[str]:
        """Let rows be sorted by these columns from now on; return what was done."""
        return sort_by(self.spark, self.identifier, names)

    def alter(self, steps: Sequence[Step], properties: Mapping[str, str]) -> None:
        """Set properties, and take steps, in order; each is a commit."""
        take_steps(self.spark, self.sink, self.identifier, steps, properties)

    def append(self, rows: pa.Table, mark: None = None) -> None:  # noqa: ARG002  as that of other tables
        """Append rows, which have any columns of the table; changes have marks, and come from a `Changelog`."""
        frame = frame_of(self.spark, _whole(rows, self.schema()))
        self.check_held()
        frame.writeTo(self.identifier).append()

    def merge(self, rows: pa.Table, present: Sequence[str]) -> None:
        """Merge rows as `NativeTable.merge` does."""
        kinds = pa.schema([*self.schema(), pa.field(DELETED, pa.binary())])
        source = _whole(rows, pa.schema([kinds.field(name) for name in (*present, *STATE, DELETED)]))
        self._merge(source, lambda view: merge_state(self.identifier, view, dict.fromkeys(present, ())))

    def delete_up_to(self, column: str, bound: bytes | datetime, shard: str | None = None) -> None:
        """Delete the rows whose value in a column is not above a bound, of one shard if it is given."""
        self.check_held()
        self.spark.sql(delete_up_to(self.identifier, column, bound, shard))

    def find(self, keys: pa.Array, names: Sequence[str] | None = None) -> pa.Table:
        """Return the rows that have one of these keys; `names` are the columns, by default all."""
        wanted = frame_of(self.spark, pa.table({KEY: keys.cast(pa.binary()).unique()}))
        return self._collect(self._frame.join(sf.broadcast(wanted), KEY, "left_semi"), names)

    def replace(self, keys: pa.Array, rows: pa.Table) -> None:
        """Remove the rows with these keys, and add rows, which have any columns of the table, in one commit."""
        kinds, removed = self.schema(), keys.cast(pa.binary()).unique()
        gone = pa.table(
            [removed if one.name == KEY else pa.nulls(len(removed), one.type) for one in kinds], schema=kinds
        )
        flags = pa.array([True] * len(gone) + [False] * len(rows))
        source = pa.concat_tables([gone, _whole(rows, kinds)]).append_column(GONE, flags)
        self._merge(source, lambda view: replace_rows(self.identifier, view, kinds.names))

    def _merge(self, source: pa.Table, statement: Callable[[str], str]) -> None:
        def checked(view: str) -> str:
            self.check_held()
            return statement(view)

        with_view(frame_of(self.spark, source), checked, is_kept=not isinstance(self.sink, Delta))

    def read(self, names: Sequence[str], filled: Sequence[str] = ()) -> pa.Table:
        """Return columns of all rows, or of those in which any of the columns `filled` is not null."""
        is_filled = sf.expr(" OR ".join(f"{quote(name)} IS NOT NULL" for name in filled) or "true")
        return self._collect(self._frame.where(is_filled), names)

    def rewrite(self, transform: Callable[[pa.RecordBatch], pa.RecordBatch]) -> None:
        """Replace all rows by what a function returns for them, in one commit; Spark's workers call it."""
        kinds = self.schema()
        made = self._frame.mapInArrow(in_worker(partial(_rewritten, transform, kinds)), _ddl(kinds))
        self.check_held()
        made.writeTo(self.identifier).overwrite(sf.lit(True))  # noqa: FBT003  all rows

    def _collect(self, frame: DataFrame, names: Sequence[str] | None) -> pa.Table:
        schema = self.schema()
        kinds = schema if names is None else pa.schema([schema.field(name) for name in names])
        columns: list[Column] = [sf.col(quote(name)) for name in kinds.names]
        return collect_arrow(frame.select(*columns)).cast(kinds)


def _whole(rows: pa.Table, kinds: pa.Schema) -> pa.Table:
    """Return rows with all columns of a schema, null in those that they do not have."""
    return with_types({name: rows.column(name) for name in rows.column_names}, kinds, len(rows))


def collect_arrow(frame: DataFrame) -> pa.Table:
    """Return the rows of a frame as Arrow has them."""
    # Before 4.0 the method has no public name.
    return frame.toArrow() if hasattr(frame, "toArrow") else pa.Table.from_batches(frame._collect_as_arrow())  # type: ignore[operator]  # noqa: SLF001


def pieces_of_bytes(rows: DataFrame, sized: str, keys: Sequence[str]) -> Iterator[pa.Table]:
    """Yield rows as Arrow has them, about `COLLECTED` bytes at a time: rows with equal `keys` together.

    `sized` is the column that has most of the bytes.
    """
    size = sf.coalesce(sf.sum(sf.coalesce(sf.octet_length(sized), sf.lit(0)) + sf.lit(_ROW_SIZE)), sf.lit(0))
    count = rows.agg(size.alias("size")).collect()[0]["size"] // COLLECTED + 1
    for number in range(count):
        is_chosen = sf.pmod(sf.xxhash64(*keys), sf.lit(count)) == number
        yield collect_arrow(rows.where(is_chosen) if count > 1 else rows)


def frame_of(spark: SparkSession, rows: pa.Table) -> DataFrame:
    """Return rows as a frame; the types of its columns are those that Spark spells so (`spark_name`)."""
    # What every Spark takes as it is: not all have a call for tables of Arrow's, and some of those go through pandas.
    packed = [(_pack(part),) for part in _parts(rows)]
    context = spark.sparkContext
    # A task has one part, as a cluster refuses tasks above `spark.rpc.message.maxSize`.
    parts: Any = packed if len(packed) <= context.defaultParallelism else context.parallelize(packed, len(packed))
    return spark.createDataFrame(parts, "part binary").mapInArrow(in_worker(_unpack), _ddl(rows.schema))


def _parts(rows: pa.Table) -> Iterator[pa.Table]:
    size = max(1, min(_ROWS, _BYTES * len(rows) // max(1, rows.nbytes)))
    yield from (rows.slice(start, size) for start in range(0, len(rows), size))


def _pack(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return bytes(sink.getvalue())


def _unpack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for part in batch.column(0).to_pylist():
            with pa.ipc.open_stream(part) as reader:
                yield from reader


def _rewritten(
    transform: Callable[[pa.RecordBatch], pa.RecordBatch], kinds: pa.Schema, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield transform(batch.cast(kinds)).cast(kinds)


def _ddl(schema: pa.Schema) -> Any:
    return ", ".join(f"{quote(one.name)} {spark_name(one.type)}" for one in schema)


def pieces_of(rows: DataFrame | pa.Table) -> Iterator[pa.Table]:
    """Yield rows of a table as Arrow has them, those of a key together, about `COLLECTED` bytes of them at a time."""
    if isinstance(rows, pa.Table):
        yield rows
        return
    for piece in pieces_of_bytes(rows.select(*ROWS.names), "payload", ["key"]):
        yield piece.cast(ROWS)


def check_spaces(spark: SparkSession, sink: Sink, table: TableName) -> None:
    """Raise `SchemaError` if a catalog takes spaces in the name of a table for plus signs, and has a table of that name.

    Iceberg in Java asks a REST catalog for `a+b` where it means `a b`, and for `a%2Bb` where it means `a+b`: only some
    catalogs take the first for a space.
    """
    if not isinstance(sink, Iceberg):
        return
    for suffix in SUFFIXES:
        parts = sink.parts(table, suffix)
        name, other = (quote(sink.catalog, *own) for own in (parts, [part.replace(" ", "+") for part in parts]))
        if name == other or not (spark.catalog.tableExists(other) and spark.catalog.tableExists(name)):
            continue
        own = classic(spark, "Iceberg")
        if iceberg_table(own, name).uuid() == iceberg_table(own, other).uuid():
            raise SchemaError(
                table.table,
                f"asked for {name}, the catalog answers with the table that has + in place of spaces: let that one have"
                " another name, or say one without spaces for this one",
            )

"""The changelog of a table in a lake: every change of its rows, appended once for each batch."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from pyspark.sql import functions as sf

from cdcavro.lake import sql_statements as sql
from cdcavro.lake.escaped_names import quote
from cdcavro.lake.evolution import LENIENT
from cdcavro.lake.lake_columns import held_columns, readings
from cdcavro.lake.lakes import UNKNOWN_ATTEMPT, name_property
from cdcavro.lake.sql_statements import KEY, OPERATION, ORDER, literal
from cdcavro.lake.typed_rows import CREATED, DROP
from cdcavro.spark.lake.current_state import with_headers
from cdcavro.spark.lake.sinks import prepare, present_columns
from cdcavro.spark.version_columns import read_fields

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from cdcavro.lake.evolution import LakeColumn, Step
    from cdcavro.lake.lakes import Attempt
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

    @property
    def identifier(self) -> str:
        """The name of the lake table in SQL."""
        return self.sink.identifier(self.table, CHANGES)

    def prepare(self, spark: SparkSession, versions: Sequence[TableSchema]) -> list[Step | str]:
        """Give the lake table the columns of the newest version; return what was changed.

        Raises `SchemaError`.
        """
        self.sink.make_room(spark, self.table)
        own = {**name_property(versions[-1].table), CREATED: uuid4().hex}
        columns = {**sql.CHANGELOG, **sql.change_types(self.change_columns)}
        return prepare(spark, self.sink, self.identifier, versions, columns, self.behavior, own, self.excluded)

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

"""Columns of a lake table on Spark: those that it has, and how it gets those of a version's rows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from pyspark.sql import functions as sf
from pyspark.sql.avro.functions import from_avro

from cdcavro.lake.escaped_names import OWN, quote
from cdcavro.lake.evolution import EVOLVE, LENIENT, TRY_EVOLVE, LakeColumn, Step, same_column, steps_to
from cdcavro.lake.lake_columns import wanted_columns
from cdcavro.lake.sql_statements import ADOPTED, KEY, alter_table, create_table, set_properties
from cdcavro.spark.version_columns import STRICT, fill_older_values, has_older

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from cdcavro.spark.lake.sinks import Sink
    from cdcavro.table.table_schema import TableSchema


def present_columns(table: DataFrame) -> list[LakeColumn]:
    """Return the columns that a lake table has, without this project's own."""
    fields = table.schema.fields
    return [
        LakeColumn(field.name, (field.metadata or {}).get("comment", ""), field.dataType.simpleString())
        for field in fields
        if not field.name.startswith(OWN)
    ]


def prepare(
    spark: SparkSession,
    sink: Sink,
    identifier: str,
    schema: TableSchema,
    own: Mapping[str, str],
    behavior: str,
    properties: Mapping[str, str] | None = None,
) -> list[Step]:
    """Create a lake table, or change it so that it has the columns of a version; return the steps that were taken.

    A new table has `properties` besides the sink's. Raises `SchemaError` for a step that the behavior or the sink does
    not allow, before the first step is taken.
    """
    wanted = wanted_columns(schema)
    all_properties = {**sink.properties([one.name for one in wanted]), **(properties or {})}
    spark.sql(create_table(identifier, wanted, own, sink.using, all_properties))
    present = present_columns(spark.table(identifier))
    if behavior in (EVOLVE, TRY_EVOLVE) and ADOPTED in properties_of(spark, identifier):
        # The table begins anew for the pipeline that adopted it, and may yet get columns that the lake table has.
        behavior = LENIENT
    steps = steps_to(schema.table.table, present, wanted, behavior, sink.can_widen)
    needed = sink.properties_for(steps)
    if needed:
        known = properties_of(spark, identifier)
        off = {name: value for name, value in needed.items() if known.get(name, "none") in ("none", "false")}
        put_properties(spark, identifier, off)
    for step in steps:
        spark.sql(alter_table(identifier, step))
    return steps


def properties_of(spark: SparkSession, identifier: str) -> dict[str, str]:
    """Return the properties of a lake table."""
    rows = spark.sql(f"SHOW TBLPROPERTIES {identifier}").collect()
    return {row["key"]: row["value"] for row in rows}


def put_properties(spark: SparkSession, identifier: str, properties: Mapping[str, str]) -> None:
    """Set properties of a lake table, if there are any."""
    if properties:
        spark.sql(set_properties(identifier, properties))


def fill(
    spark: SparkSession, identifier: str, schema: TableSchema, before: int, kept: Collection[str] = frozenset()
) -> None:
    """Give the rows of versions up to `before` what the newest version reads in their payloads.

    Columns that came since get their default, and columns that took over from retired ones get the values of these,
    where that is exact. Rows that are merged later have both already. Columns of the lake that are in `kept` are left
    alone.
    """
    present, record = present_columns(spark.table(identifier)), schema.record
    named = [(one.field, same_column(present, one)) for one in wanted_columns(schema)]
    held = {field: found.name for field, found in named if found is not None and found.name not in kept}
    stated = {field["name"] for field in record["fields"] if field.get("default") is not None}
    added = [one.field for one in schema.all_columns if one.since > before and one.field in stated.intersection(held)]
    if added:
        nothing: dict[str, Any] = {name: record[name] for name in ("type", "name", "namespace") if name in record} | {
            "fields": []
        }
        # SQL has `from_avro` from Spark 4.0 on.
        row = from_avro(sf.lit(bytearray()), json.dumps(nothing), {"avroSchema": schema.row.json, **STRICT})
        sets = ", ".join(f"{quote('t', held[field])} = {quote('s', 'row', field)}" for field in added)
        with_view(
            spark.range(1).select(row.alias("row")),
            lambda source: f"MERGE INTO {identifier} t USING {source} s ON true WHEN MATCHED THEN UPDATE SET {sets}",
        )
    is_retired = any(one.until is not None and one.until >= before for one in schema.all_columns)
    if is_retired and has_older(record["fields"]):
        _fill_heirs(spark, identifier, schema, kept)


def _fill_heirs(spark: SparkSession, identifier: str, schema: TableSchema, kept: Collection[str]) -> None:
    fields = schema.record["fields"]
    columns = {column.field: column.name for column in wanted_columns(schema)}
    names = [name for name in columns if name in {field["name"] for field in fields}]
    rows = spark.table(identifier)
    row = sf.struct(*[sf.col(quote(columns[name])).alias(name) for name in names])
    filled = rows.select(
        KEY, sf.transform(sf.array(row), lambda one: fill_older_values(one, fields, names))[0].alias("row")
    )
    view = filled.select(KEY, *[sf.col("row").getField(name).alias(columns[name]) for name in names])
    put = [name for name in columns.values() if name not in kept]
    if not put:
        return
    with_view(
        view,
        lambda source: (
            f"MERGE INTO {identifier} t USING {source} s ON {quote('t', KEY)} = {quote('s', KEY)} "
            "WHEN MATCHED THEN UPDATE SET " + ", ".join(f"{quote('t', name)} = {quote('s', name)}" for name in put)
        ),
    )


def with_view(frame: DataFrame, statement: Callable[[str], str], *, is_kept: bool = True) -> None:
    """Run a statement of SQL that `statement`, a function of a view's name, returns for a view of a frame.

    With `is_kept`, the frame is computed once and kept: a merge reads its source several times, and Spark 4.1 finds no
    plan for a merge whose view reads another table of an Iceberg catalog. Delta Lake keeps the source itself.
    """
    name = f"cdcavro_{uuid4().hex}"
    (frame.localCheckpoint() if is_kept else frame).createOrReplaceTempView(name)
    try:
        frame.sparkSession.sql(statement(name)).collect()
    finally:
        frame.sparkSession.catalog.dropTempView(name)

"""The columns of a lake table: those of a version's rows, and how the table gets them."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

from pyspark.sql import functions as sf
from pyspark.sql.types import StructField, StructType

from cdcavro.lake.evolution import RENAME, LakeColumn, Step, steps_to
from cdcavro.lake.names import OWN, column_names, quoted
from cdcavro.lake.statements import KEY, alter_table, create_table
from cdcavro.spark.versions.older_fields import filled, has_older
from cdcavro.spark.versions.reading import ROW, true_type

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from cdcavro.spark.lake.sinks import Sink
    from cdcavro.table.schema import TableSchema


def row_type(schema: TableSchema) -> tuple[StructType, StructType]:
    """Return the type of a version's rows under true names, and under names that Spark tells apart in any case.

    The columns are c0, c1 and so on in the second; both have `unparsed` and `absent` besides.
    """
    struct, numbers = true_type(schema, ROW), {column.field: i for i, column in enumerate(schema.all_columns)}
    fields = [field["name"] for field in schema.record["fields"]]
    names = [f"c{numbers[name]}" if name in numbers else name for name in fields]
    return struct, StructType([StructField(name, field.dataType) for name, field in zip(names, struct, strict=True)])


def wanted_columns(schema: TableSchema) -> list[LakeColumn]:
    """Return the columns that a lake table of a version has, retired ones among them. Needs a Spark session."""
    columns, (struct, numbered) = schema.all_columns, row_type(schema)
    shown = {other.name: field for field, other in zip(struct, numbered, strict=True)}
    # Of two names that a lake does not tell apart, the column that was there first keeps its own.
    eldest = sorted(range(len(columns)), key=lambda i: (columns[i].since, i))
    names = dict(zip(eldest, column_names(shown[f"c{i}"].name for i in eldest), strict=True))
    aliases = {field["name"]: tuple(field.get("aliases", ())) for field in schema.record["fields"]}
    return [
        LakeColumn(names[i], column.field, shown[f"c{i}"].dataType.simpleString(), aliases[column.field], column.until)
        for i, column in enumerate(columns)
    ]


def present_columns(spark: SparkSession, identifier: str) -> list[LakeColumn]:
    """Return the columns that a lake table has, but for this project's own."""
    fields = spark.table(identifier).schema.fields
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
) -> list[Step]:
    """Create a lake table, or change it so that it has the columns of a version; return the steps that were taken.

    Raises `SchemaError` for a step that the behavior or the sink does not allow, before the first one is taken.
    """
    wanted = wanted_columns(schema)
    spark.sql(create_table(identifier, wanted, own, sink.using, sink.properties))
    present = present_columns(spark, identifier)
    steps = steps_to(schema.table.table, present, wanted, behavior, sink.can_widen)
    for step in steps:
        spark.sql(alter_table(identifier, step))
    return steps


def fill(spark: SparkSession, identifier: str, schema: TableSchema, steps: Sequence[Step]) -> None:
    """Give the rows that stand the values of retired columns in those that took over, wherever that is exact.

    Only after steps: rows that are merged later have them already.
    """
    fields = schema.record["fields"]
    if not has_older(fields) or not any(step.column.until is not None for step in steps if step.kind == RENAME):
        return
    columns = {column.field: column.name for column in wanted_columns(schema)}
    names = [name for name in columns if name in {field["name"] for field in fields}]
    rows = spark.table(identifier)
    row = sf.struct(*[sf.col(quoted(columns[name])).alias(name) for name in names])
    made = rows.select(KEY, sf.transform(sf.array(row), lambda one: filled(one, fields, names))[0].alias("row"))
    view = made.select(KEY, *[sf.col("row").getField(name).alias(columns[name]) for name in names])
    with_view(
        view,
        lambda source: (
            f"MERGE INTO {identifier} t USING {source} s ON {quoted('t', KEY)} = {quoted('s', KEY)} "
            "WHEN MATCHED THEN UPDATE SET "
            + ", ".join(f"{quoted('t', name)} = {quoted('s', name)}" for name in columns.values())
        ),
    )


def with_view(frame: DataFrame, statement: Callable[[str], str]) -> None:
    """Run a statement of SQL that `statement`, a function of a view's name, returns for a view of a frame.

    The frame is kept: a merge reads its source several times, and Spark 4.1 finds no plan for a merge whose
    view reads another table of an Iceberg catalog.
    """
    name = f"cdcavro_{uuid4().hex}"
    kept = frame.localCheckpoint()
    kept.createOrReplaceTempView(name)
    try:
        frame.sparkSession.sql(statement(name)).collect()
    finally:
        frame.sparkSession.catalog.dropTempView(name)

"""Typed tables on Spark: changes as payloads of their table's versions, and all versions under one schema."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.avro.functions import from_avro
from pyspark.sql.types import StructField, StructType

from cdcavro.change.model import DDL, DML, Change, replace
from cdcavro.change.order import order_key
from cdcavro.errors import CdcAvroError, MisfitError, SetupError, shown
from cdcavro.spark.arrow_udf import column_function, raw_bytes
from cdcavro.spark.changes import KEY, KEY_TYPE, key_fields
from cdcavro.spark.functions import ERROR
from cdcavro.table.evolution.evolve import NONE_GIVEN
from cdcavro.table.schema import TableSchema
from cdcavro.table.tables import ERROR as ERROR_POLICY
from cdcavro.table.tables import KEEP, Tables
from cdcavro.transcoding.schema_history import PRECISE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import tzinfo

    from pyspark.sql import Column, DataFrame

    from cdcavro.avro.schema import Schema
    from cdcavro.table.columns.overrides import TypeOverrides
    from cdcavro.table.history import Table

OUTLINE: Final = f"digest binary, at struct<{KEY}>, outline binary"
TYPED: Final = (
    "typed array<struct<number: int, table: string, version: int, key: binary, payload: binary>>,"
    " error struct<format: string, path: string, message: string>"
)
_TYPED: Final = pa.list_(
    pa.struct(
        [
            ("number", pa.int32()),
            ("table", pa.string()),
            ("version", pa.int32()),
            ("key", pa.binary()),
            ("payload", pa.binary()),
        ]
    )
)
ENVELOPE: Final = "envelope"
ROW: Final = "row"
KEY_PART: Final = "key"


@dataclass(frozen=True)
class TypedTables:
    """The tables of a frame of changes.

    Attributes: `frame`, with the columns number (int, one for each table), table (its newest name),
    version, key and payload (binary), of the changes of rows; `rejects`, with change (binary) and error
    (struct of format, path, message), of the changes that their table contradicts; `tables` (list of
    `Table`), with all versions; `faults` (list of tuple of `Change` and error), of statements that
    were not understood and changed nothing.
    """

    frame: DataFrame
    rejects: DataFrame
    tables: list[Table]
    faults: list[tuple[Change, CdcAvroError]]

    def table(self, name: str) -> Table:
        """Return the table of a name, the newest of those that had it last. Raises `LookupError`."""
        found = [one for one in self.tables if name in (one.schema.table.table, one.schema.full_name)]
        if not found:
            raise LookupError(f"there is no table {shown(name)}")
        return found[-1]

    def payloads(self, name: str) -> DataFrame:
        """Return the rows of `frame` of one table. Raises `LookupError`."""
        return self.frame.where(sf.col("number") == self.table(name).number)


def to_tables(
    changes: DataFrame,
    col: str = "change",
    *,
    given: TypeOverrides = NONE_GIVEN,
    zone: tzinfo | None = None,
    on_misfit: str = KEEP,
    decimals: str = PRECISE,
) -> TypedTables:
    """Return the changes of a frame as typed payloads of their tables, with the version of each.

    `col` is the column of payloads of `change.avsc`, as `to_changes` makes them with a place. What
    changes say of tables is collected first, in one pass, and learned in order on the driver: its
    size is that of the statements and the different lists of columns. So `changes` is read twice:
    persist it if that costs. The other arguments are those of `cdcavro.Tables`. A change without
    numbers and place fails the job, and so does a misfit if `on_misfit` is "error".
    """
    learned = Tables(given=given, zone=zone, on_misfit=on_misfit, decimals=decimals)
    outlines = changes.select(column_function(_outlines, OUTLINE, "cdc_outline")(col).alias("o")).where("o is not null")
    firsts = outlines.groupBy("o.digest").agg(sf.min_by("o.outline", "o.at").alias("outline")).collect()
    faults = _learn(learned, [Change.from_avro(bytes(row.outline)) for row in firsts])

    def typed(payloads: pa.Array) -> pa.Array:
        return _typed_batch(payloads, learned, is_strict=on_misfit == ERROR_POLICY)

    function = column_function(typed, TYPED, "cdc_typed").asNondeterministic()
    made = changes.select(sf.col(col).alias("change"), function(col).alias("made"))
    rows = made.select(sf.explode("made.typed").alias("typed")).select("typed.*")
    rejects = made.where("made.error is not null").select("change", "made.error")
    return TypedTables(rows, rejects, learned.tables, faults)


def read_versions(
    version: Column | str,
    payload: Column | str,
    schemas: Table | Sequence[TableSchema],
    reader: TableSchema | int | None = None,
    *,
    part: str = ENVELOPE,
) -> Column:
    """Read a column of payloads of many versions of one table, every row under one version's names.

    `version` is the column of their versions; `schemas` the table, or its versions; `reader` the
    version wanted, the newest by default; `part` is "envelope", "row" or "key". The fields have the
    true names of the columns; a column that an older version wrote in a type which the newest does
    not read is `name (until version n)`. An unknown version fails the job. SQL null gives null.
    """
    versions = {one.version: one for one in (schemas if isinstance(schemas, (list, tuple)) else schemas.versions)}  # type: ignore[union-attr]
    wanted = reader if isinstance(reader, TableSchema) else versions[max(versions) if reader is None else reader]
    options = {"avroSchema": _part(wanted, part).json, "mode": "FAILFAST"}
    number = sf.col(version) if isinstance(version, str) else version
    unknown = sf.concat(sf.lit(f"no version of {wanted.full_name}: "), number.cast("string"))
    read = sf.when(number.isNull(), sf.lit(None)).otherwise(sf.raise_error(unknown))
    for one in sorted(versions.values(), key=lambda schema: schema.version):
        read = sf.when(number == one.version, from_avro(payload, _part(one, part).json, options)).otherwise(read)
    return read.cast(true_type(wanted, part))


def true_type(schema: TableSchema, part: str = ENVELOPE) -> StructType:
    """Return the type that `from_avro` gives a part of a version, with the true names of its columns.

    Raises `SetupError` without a Spark session.
    """
    spark = SparkSession.getActiveSession()
    if spark is None:
        raise SetupError("there is no Spark session: start it with cdcavro.spark.session()")
    jvm: Any = spark._jvm  # noqa: SLF001  the mapping that spark-avro itself uses
    parsed = jvm.org.apache.avro.Schema.Parser().parse(_part(schema, part).json)
    found = jvm.org.apache.spark.sql.avro.SchemaConverters.toSqlType(parsed).dataType().json()
    made = StructType.fromJson(json.loads(found))
    names = {one.field: _shown_name(one) for one in schema.all_columns}
    if part != ENVELOPE:
        return _renamed(made, names)
    images = {"before", "after"}
    return StructType(
        [
            StructField(one.name, _renamed(one.dataType, names), one.nullable) if one.name in images else one
            for one in made.fields
        ]
    )


def _renamed(made: Any, names: Mapping[str, str]) -> StructType:
    return StructType([StructField(names.get(one.name, one.name), one.dataType, one.nullable) for one in made.fields])


def _shown_name(column: Any) -> str:
    return column.name if column.until is None else f"{column.name} (until version {column.until})"


def _part(schema: TableSchema, part: str) -> Schema:
    made = {ENVELOPE: schema.envelope, ROW: schema.row, KEY_PART: schema.key}[part]
    if made is None:
        raise ValueError(f"{schema.full_name} has no key in version {schema.version}")
    return made


def _learn(tables: Tables, outlines: Sequence[Change]) -> list[tuple[Change, CdcAvroError]]:
    faults = []
    for change in sorted(outlines, key=order_key):
        try:
            tables.learn(change)
        except CdcAvroError as error:
            faults.append((change, error))
    return faults


def _outlines(payloads: pa.Array) -> pa.Array:
    """Return what each change says of tables: its outline, what outlines alike have in common, and its place."""
    found = [None if raw is None else _outline(Change.from_avro(raw)) for raw in raw_bytes(payloads)]
    return pa.array(found, _OUTLINE)


def _outline(change: Change) -> dict[str, Any] | None:
    if change.op not in DML and (change.ddl is None or change.op not in DDL):
        return None
    at = key_fields(change)
    blank = change
    if change.op in DML:
        names = {} if change.columns is not None else _names(change)
        blank = Change(op=change.op, source=change.source, key=change.key, columns=change.columns, after=names)
    digest = hashlib.sha256(blank.to_avro()).digest()
    kept = replace(
        blank,
        position=change.position,
        event_time=change.event_time,
        snapshot=change.snapshot,
        place=change.place,
        row=change.row,
    )
    return {"digest": digest, "at": at, "outline": kept.to_avro()}


def _names(change: Change) -> dict[str, None]:
    return {name: None for image in (change.before, change.after) if image is not None for name in image}


def _typed_batch(payloads: pa.Array, tables: Tables, *, is_strict: bool) -> pa.Array:
    typed: list[list[dict[str, Any]] | None] = []
    errors: list[dict[str, str | None] | None] = []
    for raw in raw_bytes(payloads):
        made, error = (None, None) if raw is None else _typed(Change.from_avro(raw), tables, is_strict=is_strict)
        typed.append(made)
        errors.append(error)
    arrays = [pa.array(typed, _TYPED), pa.array(errors, ERROR)]
    return pa.StructArray.from_arrays(arrays, ["typed", "error"])


def _typed(
    change: Change, tables: Tables, *, is_strict: bool
) -> tuple[list[dict[str, Any]] | None, dict[str, str | None] | None]:
    try:
        found = tables.write(change, tables.find(change))
    except CdcAvroError as error:
        if is_strict and isinstance(error, MisfitError):
            raise
        return None, {"format": change.source.format, "path": getattr(error, "path", None), "message": str(error)}
    return [
        {
            "number": one.table.number,
            "table": one.table.schema.table.table,
            "version": one.schema.version,
            "key": one.key,
            "payload": one.payload,
        }
        for one in found
    ], None


_OUTLINE: Final = pa.struct([("digest", pa.binary()), ("at", KEY_TYPE), ("outline", pa.binary())])

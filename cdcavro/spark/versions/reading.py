"""Versions of a table's schema on Spark: payloads of all of them read under one, with the true names of columns."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.avro.functions import from_avro
from pyspark.sql.types import StructField, StructType

from cdcavro.errors import SetupError
from cdcavro.spark.versions.older_fields import filled, has_older
from cdcavro.spark.versions.rows import VersionRows
from cdcavro.table.older_fields import ENVELOPE, ROW, part_of, reader_of
from cdcavro.table.schema import TableSchema

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import Column

    from cdcavro.table.history import Table

# Of more, the expression is slow: see docs/explanation/performance.md.
MAX_EXPRESSIONS: Final = 16
_IMAGES: Final = ("before", "after")
# Whatever the session says: dates are those of today's calendar, as Avro says.
STRICT: Final = {"mode": "FAILFAST", "datetimeRebaseMode": "CORRECTED"}


def read_versions(
    version: Column | str,
    payload: Column | str,
    schemas: Table | Sequence[TableSchema],
    reader: TableSchema | int | None = None,
    *,
    part: str = ENVELOPE,
) -> Column:
    """Read a column of payloads of many versions of one table, every row under the names of one version.

    `version` is the column of the payloads' versions; `schemas` is the table, or a list of its versions;
    `reader` is the version to read as, the newest by default; `part` is "envelope", "row" or "key". The
    fields have the true names of the columns. If an older version wrote a column in a type that the newest
    cannot read, its values are in `name (until version n)`, and in `name` as well wherever the newest type
    holds them exactly (`cdcavro.table.older_fields` has the rules); where it does not, `name` is null. An
    unknown version fails the job. SQL null gives null. Payloads of more than 16 versions are brought into the reader's
    schema before one expression reads them; one that is no payload of its version then fails the job, too. Raises `ValueError` at once for the key of a version
    that has none.
    """
    known = schemas if isinstance(schemas, (list, tuple)) else schemas.versions  # type: ignore[union-attr]
    versions = {schema.version: schema for schema in known}
    wanted = reader if isinstance(reader, TableSchema) else versions[max(versions) if reader is None else reader]
    return as_shown(_read(version, payload, versions, wanted, part), wanted, part)


def read_fields(version: str, payload: Column, schemas: Sequence[TableSchema]) -> tuple[Column, dict[str, str]]:
    """Read a column of envelopes of one table as `read_versions` does, under names that Spark tells apart in any case.

    Return it with the name that each field of a row has. Where fields have such names already, it costs the least.
    """
    newest = schemas[-1]
    read = _read(version, payload, {schema.version: schema for schema in schemas}, newest, ENVELOPE)
    fields = [field["name"] for field in newest.record["fields"]]
    if not has_older(newest.record["fields"]) and len({name.lower() for name in fields}) == len(fields):
        return read, {name: name for name in fields}
    numbers = {column.field: f"c{i}" for i, column in enumerate(newest.all_columns)}
    names = {name: numbers.get(name, name) for name in fields}
    shown = as_shown(read, newest, ENVELOPE)
    row = true_type(newest, ROW)
    numbered = StructType([StructField(names[name], field.dataType) for name, field in zip(fields, row, strict=True)])
    images = {name: shown[name].cast(numbered).alias(name) for name in _IMAGES}
    return sf.when(shown.isNotNull(), sf.struct(*images.values())), names


def _read(
    version: Column | str, payload: Column | str, versions: Mapping[int, TableSchema], wanted: TableSchema, part: str
) -> Column:
    """Return payloads read under the reader's schema, as `from_avro` names the fields."""
    reader_schema = reader_of(wanted, part)
    number = sf.col(version) if isinstance(version, str) else version
    if len(versions) > MAX_EXPRESSIONS:
        writers = {schema.version: part_of(schema, part).json for schema in versions.values()}
        payload = VersionRows(writers, reader_schema.json, wanted.full_name).column(number, payload)
        return from_avro(payload, reader_schema.json, STRICT)
    options = {"avroSchema": reader_schema.json, **STRICT}
    unknown = sf.concat(sf.lit(f"no version of {wanted.full_name}: "), number.cast("string"))
    read = sf.when(number.isNull(), sf.lit(None)).otherwise(sf.raise_error(unknown))
    for schema in sorted(versions.values(), key=lambda schema: schema.version):
        decoded = from_avro(payload, part_of(schema, part).json, options)
        read = sf.when(number == schema.version, decoded).otherwise(read)
    return read


def as_shown(read: Column, schema: TableSchema, part: str) -> Column:
    """Return a part that `from_avro` read under a version with older values filled in, and with true names."""
    if not has_older(schema.record["fields"]):
        return read.cast(true_type(schema, part))
    # As the argument of a function, the payload is read once, however often its fields are used.
    datum = sf.transform(sf.array(read), lambda datum: _filled(datum, schema, part))[0]
    return datum.cast(_nullable(true_type(schema, part)))


def true_type(schema: TableSchema, part: str = ENVELOPE) -> StructType:
    """Return the type that `from_avro` returns for a part of a version, with the true names of its columns.

    Raises `SetupError` if there is no Spark session.
    """
    struct = _sql_type(part_of(schema, part).json)
    names = {column.field: column.shown for column in schema.all_columns}
    if part != ENVELOPE:
        return _renamed(struct, names)
    return StructType(
        [
            StructField(field.name, _renamed(field.dataType, names), field.nullable) if field.name in _IMAGES else field
            for field in struct.fields
        ]
    )


@lru_cache(maxsize=1024)
def _sql_type(schema: str) -> StructType:
    """Return Spark's type of an Avro schema. Raises `SetupError` if there is no Spark session."""
    try:
        # In a thread of its own none is active, and the default one counts.
        spark = SparkSession.active()
    except PySparkRuntimeError:
        raise SetupError("there is no Spark session: start it with cdcavro.spark.session()") from None
    none = from_avro(sf.lit(None).cast("binary"), schema, STRICT)
    struct: Any = spark.range(0).select(none.alias("value")).schema["value"].dataType
    return StructType(struct.fields)


def _nullable(struct: Any) -> StructType:
    """Return the type of a struct that was built of another's fields, which Spark takes for nullable then."""
    return StructType(
        [
            StructField(field.name, _nullable(field.dataType) if field.name in _IMAGES else field.dataType)
            for field in struct.fields
        ]
    )


def _renamed(struct: Any, names: Mapping[str, str]) -> StructType:
    return StructType(
        [StructField(names.get(field.name, field.name), field.dataType, field.nullable) for field in struct.fields]
    )


def _filled(datum: Column, schema: TableSchema, part: str) -> Column:
    """Return a part with the values of older fields in the newer ones."""
    fields = schema.record["fields"]
    names = [field["name"] for field in json.loads(part_of(schema, part).json)["fields"]]
    if part != ENVELOPE:
        return filled(datum, fields, names)
    columns = [field["name"] for field in fields]
    members = [(datum.getField(name), name) for name in names]
    images = [(filled(value, fields, columns) if name in _IMAGES else value, name) for value, name in members]
    return sf.when(datum.isNotNull(), sf.struct(*[value.alias(name) for value, name in images]))

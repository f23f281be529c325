"""Version columns: payloads of all versions of a table read under one version, with the true names of its columns.

Older fields of a column give their values in the type of the field that took over, where that is exact. The rules are
those of `cdcavro.table.older_fields`, as expressions that the JVM evaluates. Payloads of many versions are brought into
the reader's schema in Arrow batches.
"""

from __future__ import annotations

import json
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.avro.functions import from_avro
from pyspark.sql.types import StructField, StructType

from cdcavro.arrow.record_batches import VersionPayloads
from cdcavro.errors import JobError, SetupError
from cdcavro.spark.arrow_udf import column_function
from cdcavro.table.older_fields import (
    DATE_TEXT,
    ENVELOPE,
    LOCAL,
    MAX_SURE,
    NUMBER_TEXT,
    ROW,
    heirs,
    is_fillable,
    kind_of,
    part_of,
    reader_of,
)
from cdcavro.table.table_schema import TableSchema, avro_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import Column

    from cdcavro.table.history import Table

# Of more, the expression is slow: see docs/explanation/performance.md.
MAX_EXPRESSIONS: Final = 16
_IMAGES: Final = ("before", "after")
_SOURCE: Final = "source"
# Whatever the session says: dates are those of today's calendar, as Avro says.
STRICT: Final = {"mode": "FAILFAST", "datetimeRebaseMode": "CORRECTED"}
# Holds every number that `NUMBER_TEXT` matches.
_ANY_NUMBER: Final = "decimal(38,18)"
# Python holds no days before it.
_FIRST_DAY: Final = "0001-01-01"
_TYPES: Final = {
    **{name: name for name in ("boolean", "int", "double", "string", "date")},
    "long": "bigint",
    LOCAL: "timestamp_ntz",
}


def read_versions(
    version: Column | str,
    payload: Column | str,
    schemas: Table | Sequence[TableSchema],
    reader: TableSchema | int | None = None,
    *,
    part: str = ENVELOPE,
) -> Column:
    """Read a column of payloads of many versions of one table, every row under the names of one version.

    `version` is the column of the payloads' versions; `schemas` is the table, or a list of its versions; `reader` is
    the version to read as, the newest by default; `part` is "envelope", "row" or "key". The fields have the true names
    of the columns. If an older version wrote a column in a type that the newest cannot read, its values are in `name
    (until version n)`, and in `name` as well wherever the newest type holds them exactly (`cdcavro.table.older_fields`
    has the rules); where it does not, `name` is null. An unknown version fails the job. SQL null gives null. Payloads
    of more than 16 versions are converted to the reader's schema before one expression reads them; a payload that is
    not of its version then fails the job, too. Raises `ValueError` at once for the key of a version that has none.
    """
    known = schemas if isinstance(schemas, (list, tuple)) else schemas.versions  # type: ignore[union-attr]
    versions = {schema.version: schema for schema in known}
    wanted = reader if isinstance(reader, TableSchema) else versions[max(versions) if reader is None else reader]
    return as_shown(_read(version, payload, versions, wanted, part), wanted, part)


def read_fields(
    version: str, payload: Column, schemas: Sequence[TableSchema], reader: TableSchema | None = None
) -> tuple[Column, dict[str, str]]:
    """Read a column of envelopes of one table as `read_versions` does, under names that Spark tells apart in any case.

    Return it with the name that each field of a row has. Where fields have such names already, it costs the least.
    `reader` is the version to read as, by default the last of `schemas`.
    """
    newest = schemas[-1] if reader is None else reader
    read = _read(version, payload, {schema.version: schema for schema in schemas}, newest, ENVELOPE)
    fields = [field["name"] for field in newest.record["fields"]]
    if not has_older(newest.record["fields"]) and len({name.lower() for name in fields}) == len(fields):
        return read, {name: name for name in fields}
    numbers = {column.field: f"c{i}" for i, column in enumerate(newest.all_columns)}
    names = {name: numbers.get(name, name) for name in fields}
    shown = as_shown(read, newest, ENVELOPE)
    row = true_type(newest, ROW)
    numbered = StructType([StructField(names[name], field.dataType) for name, field in zip(fields, row, strict=True)])
    images = [shown[name].cast(numbered).alias(name) for name in _IMAGES]
    return sf.when(shown.isNotNull(), sf.struct(*images, shown[_SOURCE].alias(_SOURCE))), names


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
    datum = sf.transform(sf.array(read), lambda datum: _fill_part(datum, schema, part))[0]
    return datum.cast(_as_nullable(true_type(schema, part)))


def true_type(schema: TableSchema, part: str = ENVELOPE) -> StructType:
    """Return the type that `from_avro` returns for a part of a version, with the true names of its columns.

    Raises `SetupError` if there is no Spark session.
    """
    struct = _sql_type(part_of(schema, part).json)
    names = {column.field: column.shown for column in schema.all_columns}
    if part != ENVELOPE:
        return _rename_fields(struct, names)
    return StructType(
        [
            StructField(field.name, _rename_fields(field.dataType, names), field.nullable)
            if field.name in _IMAGES
            else field
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


def _as_nullable(struct: Any) -> StructType:
    """Return the type of a struct that was built of another's fields, which Spark takes for nullable then."""
    return StructType(
        [
            StructField(field.name, _as_nullable(field.dataType) if field.name in _IMAGES else field.dataType)
            for field in struct.fields
        ]
    )


def _rename_fields(struct: Any, names: Mapping[str, str]) -> StructType:
    return StructType(
        [StructField(names.get(field.name, field.name), field.dataType, field.nullable) for field in struct.fields]
    )


def _fill_part(datum: Column, schema: TableSchema, part: str) -> Column:
    """Return a part with the values of older fields in the newer ones."""
    fields = schema.record["fields"]
    names = [field["name"] for field in json.loads(part_of(schema, part).json)["fields"]]
    if part != ENVELOPE:
        return fill_older_values(datum, fields, names)
    columns = [field["name"] for field in fields]
    members = [(datum.getField(name), name) for name in names]
    images = [
        (fill_older_values(value, fields, columns) if name in _IMAGES else value, name) for value, name in members
    ]
    return sf.when(datum.isNotNull(), sf.struct(*[value.alias(name) for value, name in images]))


def has_older(fields: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether a row's record, given its fields as JSON values, has older fields that others took over from."""
    return bool(heirs((field["name"], field) for field in fields))


def fill_older_values(row: Column, fields: Sequence[Mapping[str, Any]], names: Sequence[str]) -> Column:
    """Return the fields of a row that have these names, the newer ones with the values of the older ones where exact.

    `fields` are the fields of the row's record as JSON values, older ones among them. Null stays null.
    """
    types = {field["name"]: avro_of(dict(field)) for field in fields}
    older = heirs((field["name"], field) for field in fields)

    def field_of(name: str) -> Column:
        fitting = [old for old in older.get(name, ()) if is_fillable(types[old], types[name])]
        values = [_fill_value(row.getField(old), types[old], types[name]) for old in fitting]
        return sf.coalesce(row.getField(name), *values) if values else row.getField(name)

    return sf.when(row.isNotNull(), sf.struct(*[field_of(name).alias(name) for name in names]))


def _fill_value(value: Column, old: Any, new: Any) -> Column:
    """Return a value of an older field in the newer type, null if it cannot be that exactly."""
    if kind_of(old) == kind_of(new) != "decimal":
        return value
    if kind_of(new) == "string":
        return _text_of(value, old)
    cast = _try_cast(value, _type_name(new))
    if kind_of(old) == "string" and kind_of(new) == "date":
        is_day = (cast.cast("string") == value) & (cast >= sf.lit(_FIRST_DAY).cast("date"))
        return sf.when(value.rlike(rf"\A{DATE_TEXT}\z") & is_day, cast)
    if kind_of(old) == "string":
        is_same = _try_cast(cast, _ANY_NUMBER) == _try_cast(value, _ANY_NUMBER)
        return sf.when(value.rlike(rf"\A{NUMBER_TEXT}\z") & is_same, cast)
    # What becomes the same value again on the way back is exact.
    is_exact = _try_cast(cast, _type_name(old)) == value
    if "double" in (kind_of(old), kind_of(new)):
        is_exact &= value.between(-MAX_SURE, MAX_SURE)
    return sf.when(is_exact, cast)


def _try_cast(value: Column, name: str) -> Column:
    """Return a value in another type, null or a value that differs where that does not hold it.

    Spark before 4.0 casts so, unless it is in ANSI mode, in which such a value fails the job.
    """
    # Of a Column itself, any name is an attribute: a field of its value.
    return value.try_cast(name) if hasattr(type(value), "try_cast") else value.cast(name)


def _text_of(value: Column, old: Any) -> Column:
    if kind_of(old) == "bytes":
        # What is no UTF-8 comes back as other bytes.
        text = value.cast("string")
        return sf.when(sf.encode(text, "UTF-8") == value, text)
    if kind_of(old) != "decimal":
        return value.cast("string")
    # A cast spells small decimals with an exponent, unless Spark is in ANSI mode.
    scale = old.get("scale", 0)
    digits = "0" * max(old["precision"] - scale, 1) + ("." + "0" * scale if scale else "")
    return sf.regexp_replace(sf.trim(sf.to_char(value, sf.lit(f"MI{digits}"))), "^(-?)0+(?=[0-9])", "$1")


def _type_name(avro: Any) -> str:
    if kind_of(avro) == "decimal":
        return f"decimal({avro['precision']},{avro.get('scale', 0)})"
    return _TYPES[kind_of(avro)]


class VersionRows:
    """Brings payloads of a table's versions into the reader's schema, an Arrow batch at a time.

    `writers` are the texts of the versions' schemas by their numbers, `reader` is that of the reader's schema, `name`
    the table's.
    """

    def __init__(self, writers: Mapping[int, str], reader: str, name: str) -> None:
        self._writers, self._reader, self._name = dict(writers), reader, name
        self._payloads = VersionPayloads(list(self._writers.values()), reader)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle texts only: executors translate for themselves."""
        return partial(VersionRows, self._writers, self._reader, self._name), ()

    def column(self, version: Column, payload: Column | str) -> Column:
        """Return the column of payloads under the reader's schema; a version or a payload that is null gives null."""

        def translate(versions: pa.Array, payloads: pa.Array) -> pa.Array:
            return self.translate(versions, payloads)

        numbers = {0: partial(pa.array, type=pa.int64())}
        return column_function(translate, "binary", "cdc_versions", from_json=numbers)(version, payload)

    def translate(self, versions: pa.Array, payloads: pa.Array) -> pa.Array:
        """Return the payloads under the reader's schema.

        Raises `JobError` for an unknown version, `PayloadError` for a payload that is none of its version, and
        `SchemaError` for a version that the reader does not read.
        """
        numbers = pc.index_in(versions, pa.array(list(self._writers), versions.type))
        unknown = pc.and_(pc.is_valid(versions), pc.is_null(numbers))
        if pc.any(unknown).as_py():
            raise JobError(f"no version of {self._name}: {pc.filter(versions, unknown)[0]}")
        try:
            return self._payloads.translate(numbers, payloads)
        except OverflowError as error:
            bound = "payloads of a batch are too long"
            raise JobError(f"lower spark.sql.execution.arrow.maxRecordsPerBatch: {bound}") from error

"""Columns of payloads that say which schema of a registry wrote them: decoded and framed on Spark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import functions as sf
from pyspark.sql.avro.functions import from_avro, to_avro
from pyspark.sql.types import BinaryType

from cdcavro.avro.resolution import resolve
from cdcavro.avro.schema import Schema, parse_schema
from cdcavro.avro.skip import check_payload
from cdcavro.avro.types import Record
from cdcavro.errors import MessageError, PayloadError, ResolutionError, SchemaError, UnknownSchemaError, shown
from cdcavro.registry.framing import Fingerprint, Guid, SchemaId, unframe
from cdcavro.registry.framing import frame as framed_by
from cdcavro.spark.arrow_udf import column_function, raw_bytes
from cdcavro.spark.functions import ERROR, error_fields
from cdcavro.spark.tables import ENVELOPE, ROW, true_type
from cdcavro.table import schema as table_schema
from cdcavro.table.fields import ATTRIBUTE
from cdcavro.table.history import Table
from cdcavro.table.schema import TableSchema, from_schema

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import Column, DataFrame

    from cdcavro.registry import Registered, Registry
    from cdcavro.registry.framing import SchemaPrefix

MAX_SCHEMAS: Final = 10_000
LATEST: Final = "latest"
CHECKED: Final = "number int, error struct<format: string, path: string, message: string>"
_PREFIXES: Final = {b"\x00": 5, b"\x01": 17, b"\xc3\x01": 10}


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known of a prefix: the schema that it tells, or why its payloads are rejects."""

    prefix: bytes
    found: Registered | None
    fault: str | None


def from_registry(
    frame: DataFrame,
    col: str,
    registry: Registry,
    reader: Schema | TableSchema | int | str = LATEST,
    *,
    subject: str | None = None,
) -> DataFrame:
    """Decode a column whose payloads were written with different schemas of a registry, all under one schema.

    `col` (binary) holds Confluent's wire format, its newer form with a GUID, or Avro's single-object
    encoding. `reader` is a schema, or a version of `subject`, which may be left out if all rows are of
    one subject. Gives the frame with the columns `value` (a struct as the reader has it), `schema`
    (struct of id, subject and version: who wrote it) and `error` (struct of format, path, message): bytes that
    start otherwise, a schema that the registry has not or the reader cannot read, payloads that end
    too early or have bytes left over are rejects, never a guess. Of `value` and `error` one is null,
    both for SQL null.

    The schemas are found in one pass over the frame, so that it is read twice: persist it if that
    costs. For a stream call it in `foreachBatch`: a new schema then works without a restart. Raises
    `RegistryError`; `SchemaError` where it is not clear which subject is meant, or for more than 10,000 schemas.
    """
    if frame.isStreaming:
        raise ValueError("from_registry takes a batch: call it in foreachBatch, where each batch finds its schemas")
    known = _known(frame, col, registry)
    wanted = _reader(registry, reader, subject, [one.found for one in known if one.found is not None])
    known = [_readable(one, wanted) for one in known]
    checked = frame.withColumn("_checked", _check(col, known))
    options = {"avroSchema": wanted.json, "mode": "FAILFAST"}
    value: Column = sf.lit(None)
    schema: Column = sf.lit(None)
    for i, one in enumerate(known):
        if one.found is None:
            continue
        payload = sf.expr(f"substring(`{col.replace('`', '``')}`, {len(one.prefix) + 1})")
        is_it = (sf.col("_checked.number") == i) & sf.col("_checked.error").isNull()
        value = sf.when(is_it, from_avro(payload, one.found.schema.json, options)).otherwise(value)
        told = sf.struct(
            sf.lit(one.found.id).cast("int").alias("id"),
            sf.lit(one.found.subject).cast("string").alias("subject"),
            sf.lit(one.found.version).cast("int").alias("version"),
        )
        schema = sf.when(sf.col("_checked.number") == i, told).otherwise(schema)
    if all(one.found is None for one in known):
        value = from_avro(sf.lit(None).cast("binary"), wanted.json)
        schema = sf.lit(None).cast("struct<id: int, subject: string, version: int>")
    made = checked.withColumn("value", _with_true_names(value, wanted)).withColumn("schema", schema)
    return made.withColumn("error", sf.col("_checked.error")).drop("_checked")


def to_registry(
    frame: DataFrame,
    col: str,
    registry: Registry,
    subject: str,
    schema: Schema | TableSchema | Table | str,
    *,
    version: str | None = None,
    compatibility: str | None = None,
) -> DataFrame:
    """Frame a column in Confluent's wire format, its schema published first; gives the frame with `col` replaced.

    `col` is a struct, written by `to_avro`, or holds payloads (binary) of the schema already. Of a
    `Table`, as `to_tables` gives it, all versions are published in their order, and `version` names
    the column that says the one of each row. Raises `RegistryError`, `IncompatibleError`.
    """
    schemas = _versions(schema)
    if len(schemas) > 1 and version is None:
        raise ValueError("version names the column that says which version of the table wrote a payload")
    ids = {
        number: registry.publish(one, subject, compatibility=compatibility).id or 0 for number, one in schemas.items()
    }
    is_payload = isinstance(frame.schema[col].dataType, BinaryType)
    framed: Column = sf.lit(None)
    if version is not None:
        sentence = sf.concat(sf.lit("no version of the table: "), sf.col(version).cast("string"))
        framed = sf.when(sf.col(version).isNotNull(), sf.raise_error(sentence))
    for number, one in schemas.items():
        header = sf.lit(bytearray(framed_by(b"", ids[number])))
        payload = sf.col(col) if is_payload else to_avro(sf.col(col), one.json)
        made = sf.when(sf.col(col).isNotNull(), sf.concat(header, payload))
        framed = made if version is None else sf.when(sf.col(version) == number, made).otherwise(framed)
    return frame.withColumn(col, framed)


def _known(frame: DataFrame, col: str, registry: Registry) -> list[_Known]:
    """Find the schemas that a column's payloads tell."""
    raw = sf.col(col)
    prefix = sf.lit(None).cast("binary")
    for start, size in _PREFIXES.items():
        is_it = raw.startswith(sf.lit(bytearray(start))) & (sf.octet_length(raw) >= size)
        prefix = sf.when(is_it, sf.substring(raw, 1, size)).otherwise(prefix)
    told = frame.select(prefix.alias("prefix")).where("prefix is not null").distinct().limit(MAX_SCHEMAS + 1).collect()
    if len(told) > MAX_SCHEMAS:
        raise SchemaError("$", f"the column {shown(col)} tells more than {MAX_SCHEMAS} schemas")
    return [_fetched(bytes(row.prefix), registry) for row in sorted(told)]


def _fetched(prefix: bytes, registry: Registry) -> _Known:
    told, _ = unframe(prefix)
    try:
        return _Known(prefix, _asked(told, registry), None)
    except UnknownSchemaError:
        return _Known(prefix, None, str(PayloadError(f"a schema that {registry.url} has", str(told))))


def _asked(told: SchemaPrefix, registry: Registry) -> Registered:
    match told:
        case SchemaId(number):
            return registry.fetch(id=number)
        case Guid(uuid):
            return registry.fetch(guid=uuid)
        case Fingerprint(digits):
            return registry.fetch(fingerprint=digits)
    raise TypeError(f"{type(told).__name__} is no frame")


def _reader(
    registry: Registry, reader: Schema | TableSchema | int | str, subject: str | None, found: Sequence[Registered]
) -> Schema:
    if isinstance(reader, TableSchema):
        return reader.envelope
    if isinstance(reader, Schema):
        return reader
    if subject is None:
        subjects = {one.subject for one in found}
        if len(subjects) != 1 or None in subjects:
            names = ", ".join(sorted(shown(one) for one in subjects if one is not None)) or "none"
            raise SchemaError("$", f"say the subject of the reader's schema; the payloads are of {names}")
        (subject,) = subjects
    return registry.fetch(subject=subject, version=None if reader == LATEST else int(reader)).schema


def _readable(known: _Known, reader: Schema) -> _Known:
    """Return whether the reader reads what a schema wrote; otherwise its payloads are rejects."""
    if known.found is None:
        return known
    try:
        resolve(known.found.schema.root, reader.root)
    except ResolutionError as error:
        return _Known(known.prefix, None, str(PayloadError("a schema that the reader reads", str(error))))
    return known


def _with_true_names(value: Column, schema: Schema) -> Column:
    """Return the columns of a table their true names, which its schema says."""
    if not isinstance(schema.root, Record) or ATTRIBUTE not in schema.root.attributes:
        return value
    table = from_schema(schema)
    part = ENVELOPE if schema.root.name.endswith(f".{table_schema.ENVELOPE}") else ROW
    return value.cast(true_type(table, part))


def _check(col: str, known: Sequence[_Known]) -> Column:
    numbers = {one.prefix: i for i, one in enumerate(known)}
    schemas = [None if one.found is None else one.found.schema for one in known]
    faults = [one.fault for one in known]

    def checked(values: pa.Array) -> pa.Array:
        return check_batch(values, numbers, schemas, faults)

    made: Column = column_function(checked, CHECKED, "cdc_check").asNondeterministic()(col)
    return made


def check_batch(
    values: pa.Array, numbers: Mapping[bytes, int], schemas: Sequence[Schema | None], faults: Sequence[str | None]
) -> pa.Array:
    """Return of each framed payload the number of its schema, and what is wrong with it."""
    found: list[int | None] = []
    errors: list[dict[str, str | None] | None] = []
    for raw in raw_bytes(values):
        number, error = (None, None) if raw is None else _checked(raw, numbers, schemas, faults)
        found.append(number)
        errors.append(error)
    arrays = [pa.array(found, pa.int32()), pa.array(errors, ERROR)]
    return pa.StructArray.from_arrays(arrays, ["number", "error"])


def _checked(
    raw: bytes, numbers: Mapping[bytes, int], schemas: Sequence[Schema | None], faults: Sequence[str | None]
) -> tuple[int | None, dict[str, str | None] | None]:
    number = None
    try:
        _, payload = unframe(raw)
        number = numbers[raw[: len(raw) - len(payload)]]
        schema = schemas[number]
        if schema is None:
            return None, {"format": None, "path": "$", "message": faults[number]}
        check_payload(payload, schema)
    except MessageError as error:
        return number, error_fields(error)
    return number, None


def _versions(schema: Schema | TableSchema | Table | str) -> dict[int, Any]:
    if isinstance(schema, Table):
        return {one.version: one.envelope for one in schema.versions}
    if isinstance(schema, TableSchema):
        return {schema.version: schema.envelope}
    return {0: schema if isinstance(schema, Schema) else parse_schema(schema)}

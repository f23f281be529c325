"""Decoding and framing, on Spark, columns of payloads whose prefix identifies their schema in a registry."""

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
from cdcavro.spark.versions import ENVELOPE, ROW, as_shown
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
    """What is known about a prefix: the schema that it identifies, or why its payloads are rejects."""

    prefix: bytes
    registered: Registered | None
    fault: str | None


def from_registry(
    frame: DataFrame,
    col: str,
    registry: Registry,
    reader: Schema | TableSchema | int | str = LATEST,
    *,
    subject: str | None = None,
) -> DataFrame:
    """Decode a column of payloads, written with different schemas of a registry, under one reader's schema.

    `col` (binary) holds Confluent's wire format, its newer form with a GUID, or Avro's single-object
    encoding. `reader` is a schema, or a version of `subject`, which may be left out if all rows are of
    one subject. Returns the frame with three more columns: `value` (a struct of the reader's fields),
    `schema` (a struct of id, subject and version, of the writer's schema) and `error` (a struct of format,
    path and message). Rejects are bytes with any other prefix, schemas that the registry does not have
    or that the reader cannot read, and payloads that end too early or have bytes left over; nothing is
    guessed. One of `value` and `error` is null; both are for SQL null.

    The schemas are collected in a pass over the frame of its own, so the frame is read twice: persist it
    if that is expensive. For a stream, call this function in `foreachBatch`: a new schema then works
    without a restart. Raises `RegistryError`; `SchemaError` if it is not clear which subject is meant, or
    for more than 10,000 schemas; `ValueError` for a streaming frame.
    """
    if frame.isStreaming:
        raise ValueError("from_registry takes a batch: call it in foreachBatch, where each batch finds its schemas")
    known = _known(frame, col, registry)
    wanted = _reader(registry, reader, subject, [entry.registered for entry in known if entry.registered is not None])
    known = [_readable(entry, wanted) for entry in known]
    checked = frame.withColumn("_checked", _check(col, known))
    options = {"avroSchema": wanted.json, "mode": "FAILFAST"}
    value: Column = sf.lit(None)
    schema: Column = sf.lit(None)
    for i, entry in enumerate(known):
        if entry.registered is None:
            continue
        payload = sf.expr(f"substring(`{col.replace('`', '``')}`, {len(entry.prefix) + 1})")
        is_valid = (sf.col("_checked.number") == i) & sf.col("_checked.error").isNull()
        value = sf.when(is_valid, from_avro(payload, entry.registered.schema.json, options)).otherwise(value)
        writer = sf.struct(
            sf.lit(entry.registered.id).cast("int").alias("id"),
            sf.lit(entry.registered.subject).cast("string").alias("subject"),
            sf.lit(entry.registered.version).cast("int").alias("version"),
        )
        schema = sf.when(sf.col("_checked.number") == i, writer).otherwise(schema)
    if all(entry.registered is None for entry in known):
        value = from_avro(sf.lit(None).cast("binary"), wanted.json)
        schema = sf.lit(None).cast("struct<id: int, subject: string, version: int>")
    decoded = checked.withColumn("value", _with_true_names(value, wanted)).withColumn("schema", schema)
    return decoded.withColumn("error", sf.col("_checked.error")).drop("_checked")


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
    """Publish a column's schema, and return the frame with the column in Confluent's wire format.

    `col` is a struct, which `to_avro` writes, or holds payloads (binary) of the schema already. For a
    `Table`, as `to_tables` returns it, all versions are published in their order, and `version` names the
    column with the version of each row. Raises `RegistryError`, `IncompatibleError`, and `ValueError` for
    a table of several versions without `version`.
    """
    schemas = _versions(schema)
    if len(schemas) > 1 and version is None:
        raise ValueError("version names the column that says which version of the table wrote a payload")
    ids = {
        number: registry.publish(avro_schema, subject, compatibility=compatibility).id or 0
        for number, avro_schema in schemas.items()
    }
    is_payload = isinstance(frame.schema[col].dataType, BinaryType)
    framed: Column = sf.lit(None)
    if version is not None:
        sentence = sf.concat(sf.lit("no version of the table: "), sf.col(version).cast("string"))
        framed = sf.when(sf.col(version).isNotNull(), sf.raise_error(sentence))
    for number, avro_schema in schemas.items():
        header = sf.lit(bytearray(framed_by(b"", ids[number])))
        payload = sf.col(col) if is_payload else to_avro(sf.col(col), avro_schema.json)
        message = sf.when(sf.col(col).isNotNull(), sf.concat(header, payload))
        framed = message if version is None else sf.when(sf.col(version) == number, message).otherwise(framed)
    return frame.withColumn(col, framed)


def _known(frame: DataFrame, col: str, registry: Registry) -> list[_Known]:
    """Return the schemas that the prefixes in a column identify."""
    raw = sf.col(col)
    prefix = sf.lit(None).cast("binary")
    for start, size in _PREFIXES.items():
        is_framed = raw.startswith(sf.lit(bytearray(start))) & (sf.octet_length(raw) >= size)
        prefix = sf.when(is_framed, sf.substring(raw, 1, size)).otherwise(prefix)
    prefixes = frame.select(prefix.alias("prefix")).where("prefix is not null").distinct()
    rows = prefixes.limit(MAX_SCHEMAS + 1).collect()
    if len(rows) > MAX_SCHEMAS:
        raise SchemaError("$", f"the column {shown(col)} tells more than {MAX_SCHEMAS} schemas")
    return [_looked_up(bytes(row.prefix), registry) for row in sorted(rows)]


def _looked_up(prefix: bytes, registry: Registry) -> _Known:
    identifier, _ = unframe(prefix)
    try:
        return _Known(prefix, _fetched(identifier, registry), None)
    except UnknownSchemaError:
        return _Known(prefix, None, str(PayloadError(f"a schema that {registry.url} has", str(identifier))))


def _fetched(identifier: SchemaPrefix, registry: Registry) -> Registered:
    match identifier:
        case SchemaId(number):
            return registry.fetch(id=number)
        case Guid(uuid):
            return registry.fetch(guid=uuid)
        case Fingerprint(digits):
            return registry.fetch(fingerprint=digits)
    raise TypeError(f"{type(identifier).__name__} is no frame")


def _reader(
    registry: Registry, reader: Schema | TableSchema | int | str, subject: str | None, writers: Sequence[Registered]
) -> Schema:
    if isinstance(reader, TableSchema):
        return reader.envelope
    if isinstance(reader, Schema):
        return reader
    if subject is None:
        subjects = {writer.subject for writer in writers}
        if len(subjects) != 1 or None in subjects:
            names = ", ".join(sorted(shown(name) for name in subjects if name is not None)) or "none"
            raise SchemaError("$", f"say the subject of the reader's schema; the payloads are of {names}")
        (subject,) = subjects
    return registry.fetch(subject=subject, version=None if reader == LATEST else int(reader)).schema


def _readable(known: _Known, reader: Schema) -> _Known:
    """Return a known schema if the reader can read what it wrote; otherwise the reason why its payloads are rejects."""
    if known.registered is None:
        return known
    try:
        resolve(known.registered.schema.root, reader.root)
    except ResolutionError as error:
        return _Known(known.prefix, None, str(PayloadError("a schema that the reader reads", str(error))))
    return known


def _with_true_names(value: Column, schema: Schema) -> Column:
    """Return a value of a typed table with the true names of its columns, which are in the schema."""
    if not isinstance(schema.root, Record) or ATTRIBUTE not in schema.root.attributes:
        return value
    table = from_schema(schema)
    part = ENVELOPE if schema.root.name.endswith(f".{table_schema.ENVELOPE}") else ROW
    return as_shown(value, table, part)


def _check(col: str, known: Sequence[_Known]) -> Column:
    numbers = {entry.prefix: i for i, entry in enumerate(known)}
    schemas = [None if entry.registered is None else entry.registered.schema for entry in known]
    faults = [entry.fault for entry in known]

    def checked(values: pa.Array) -> pa.Array:
        return check_batch(values, numbers, schemas, faults)

    outcome: Column = column_function(checked, CHECKED, "cdc_check").asNondeterministic()(col)
    return outcome


def check_batch(
    values: pa.Array, numbers: Mapping[bytes, int], schemas: Sequence[Schema | None], faults: Sequence[str | None]
) -> pa.Array:
    """Return the number of each framed payload's schema, and the error if the payload is not valid."""
    schema_numbers: list[int | None] = []
    errors: list[dict[str, str | None] | None] = []
    for raw in raw_bytes(values):
        number, error = (None, None) if raw is None else _checked(raw, numbers, schemas, faults)
        schema_numbers.append(number)
        errors.append(error)
    arrays = [pa.array(schema_numbers, pa.int32()), pa.array(errors, ERROR)]
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
        return {version.version: version.envelope for version in schema.versions}
    if isinstance(schema, TableSchema):
        return {schema.version: schema.envelope}
    return {0: schema if isinstance(schema, Schema) else parse_schema(schema)}

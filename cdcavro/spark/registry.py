"""Decoding and framing, on Spark, columns of payloads whose prefix identifies their schema in a registry.

Framed rows come in Arrow batches, and each is translated into the reader's schema, or given its error. Ids in headers
of records are put before keys and values first.
"""

from __future__ import annotations

from array import array
from functools import lru_cache, partial, reduce
from operator import or_
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as sf
from pyspark.sql.avro.functions import from_avro, to_avro
from pyspark.sql.types import BinaryType

from cdcavro.arrow.arrays import convert_values, slices_of
from cdcavro.avro.schema import Schema, parse_schema
from cdcavro.avro.translation import MAX_TRANSLATED, translator
from cdcavro.avro.translation_program import pair_program
from cdcavro.avro.types import Primitive, Record, check_expansion
from cdcavro.engine.machine import Translator, Translators
from cdcavro.engine.payloads import MAX_BYTES
from cdcavro.errors import MessageError, PayloadError, SchemaError, shown
from cdcavro.exact.jsontext import parse_fast
from cdcavro.registry.client import MAX_SCHEMAS, PREFIXES, PrefixSchema, look_up_schemas
from cdcavro.registry.framing import FRAMED_KEYS, HEADERS, ID_HEADERS, NO_HEADER, bytes_of, payload_of, unframe
from cdcavro.registry.framing import frame as framed_by
from cdcavro.spark.arrow_udf import column_function
from cdcavro.spark.functions import ERROR
from cdcavro.spark.version_columns import STRICT, as_shown
from cdcavro.sync.conversion.framed_messages import Opener
from cdcavro.sync.settings import Formats
from cdcavro.table import table_schema
from cdcavro.table.history import Table
from cdcavro.table.older_fields import ENVELOPE, ROW
from cdcavro.table.table_schema import ATTRIBUTE, TableSchema, from_schema
from cdcavro.wire.formats import get_format
from cdcavro.wire.kafka import record_text
from cdcavro.wire.sniff import MIXED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pyspark.sql import Column, DataFrame

    from cdcavro.registry import Registry
    from cdcavro.registry.framing import SchemaPrefix
    from cdcavro.sync.settings import RegistrySettings

    Translate = Callable[[bytes], bytes]

_NEITHER: Final = -1
_SIZES: Final = {magic[0]: size for magic, size in PREFIXES.items()}
WRITER: Final = pa.struct([("id", pa.int32()), ("subject", pa.string()), ("version", pa.int32())])
TRANSLATED: Final = (
    "start int, payload binary, schema struct<id: int, subject: string, version: int>,"
    " error struct<format: string, path: string, message: string>"
)


class FramedRows:
    """Translates framed payloads into the reader's schema, an Arrow batch at a time.

    `known` has what each prefix identifies, `reader` is the text of the reader's schema; `reinterpret` is as in
    `translation.translator`. Schemas are parsed where they are first met, so that only their texts are sent to
    executors.
    """

    def __init__(self, known: Mapping[bytes, PrefixSchema], reader: str, *, reinterpret: bool) -> None:
        self._numbers = {prefix: i for i, prefix in enumerate(known)}
        self._known = list(known.values())
        self._reader = reader
        self._reinterpret = reinterpret
        self._translate: dict[bytes, Translate] = {}
        self._engine = Translators()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what is known only: executors translate for themselves."""
        known = {prefix: self._known[i] for prefix, i in self._numbers.items()}
        return partial(FramedRows, reinterpret=self._reinterpret), (known, self._reader)

    def column(self, col: str) -> Column:
        """Return the column with the outcome of a column of framed payloads, structs of `TRANSLATED`."""

        def translate(values: pa.Array) -> pa.Array:
            return self.translate(values)

        # Declared non-deterministic, because Spark would otherwise run the function once for each use of its result.
        return column_function(translate, TRANSLATED, "cdc_brought", is_deterministic=False)(col)

    def translate(self, values: pa.Array) -> pa.Array:
        """Return a struct of `TRANSLATED` for each value.

        `payload` is the payload under the reader's schema, or null if it is the value's bytes from byte `start` on,
        counted from 1. Both are null where there is an error.
        """
        column, count, found = slices_of(values), len(values), TranslatedRows(len(values))
        i = 0
        while True:
            bounds = (MAX_BYTES, MAX_TRANSLATED)
            written, i = self._engine.by_prefix(column, found.engine_columns, i, found.size, bounds)
            found.write(written)
            if i == count:
                return found.struct(self._known)
            self._translate_row(i, column.get(i), found)
            i += 1

    def _translate_row(self, i: int, raw: bytes | None, found: TranslatedRows) -> None:
        """Translate a row that the engine leaves, and let the engine take the next ones of its schema."""
        if raw is None:
            found.add(i, None, _NEITHER)
            return
        size = _SIZES.get(raw[0], 0) if raw else 0
        prefix = raw[:size]
        try:
            translate = self._translate.get(prefix) or self._find_translate(raw, prefix)
            framed = raw[size:]
            if len(framed) > MAX_TRANSLATED:
                raise PayloadError(f"at most {MAX_TRANSLATED} bytes", f"{len(framed)}")
            payload = translate(framed)
            if payload is framed:
                found.add(i, self._numbers.get(prefix), size + 1)
            elif len(payload) > MAX_BYTES - found.size:
                raise PayloadError(f"at most {MAX_BYTES} bytes in an Arrow batch", "more")
            else:
                found.add(i, self._numbers.get(prefix), 0, payload)
        except MessageError as error:
            found.add(i, self._numbers.get(prefix), _NEITHER)
            found.errors[i] = error.fields

    def _find_translate(self, raw: bytes, prefix: bytes) -> Translate:
        """Return the function that translates payloads behind a prefix.

        Raises `PayloadError` for an unusable prefix.
        """
        identifier, _ = unframe(raw)
        number = self._numbers.get(prefix)
        if number is None:
            raise PayloadError(f"one of the {MAX_SCHEMAS:,} schemas that most rows have", str(identifier))
        known = self._known[number]
        if known.schema is None:
            raise PayloadError(*known.fault)
        translate, engine = _translator(known.schema, self._reader, identifier, reinterpret=self._reinterpret)
        self._translate[prefix] = translate
        if engine is not None:
            self._engine.add(number, engine, prefix)
        return translate


class TranslatedRows:
    """What became of the rows of a batch."""

    def __init__(self, count: int) -> None:
        self._numbers, self._starts = (array("i", [_NEITHER]) * count for _ in range(2))
        self._offsets = array("i", [0]) * (count + 1)
        self._written: list[bytes] = []
        # As `engine.machine.Translators.by_prefix` fills them.
        self.engine_columns = (self._numbers, self._starts, memoryview(self._offsets)[1:])
        # How many bytes are written.
        self.size = 0
        # By the index of the row.
        self.errors: dict[int, dict[str, str | None]] = {}

    def write(self, payloads: bytes) -> None:
        """Keep payloads behind those that are there."""
        self._written.append(payloads)
        self.size += len(payloads)

    def add(self, i: int, number: int | None, start: int, payload: bytes = b"") -> None:
        """Note the number of a row's schema, if it is known, where its payload begins, and the translated payload."""
        self.write(payload)
        self._numbers[i] = _NEITHER if number is None else number
        self._starts[i] = start
        self._offsets[i + 1] = self.size

    def struct(self, known: Sequence[PrefixSchema]) -> pa.Array:
        """Return the rows as structs of `TRANSLATED`."""
        count = len(self._starts)
        starts = pa.Array.from_buffers(pa.int32(), count, [None, pa.py_buffer(self._starts)])
        numbers = pa.Array.from_buffers(pa.int32(), count, [None, pa.py_buffer(self._numbers)])
        data = [pa.py_buffer(self._offsets), pa.py_buffer(b"".join(self._written))]
        payloads = pa.Array.from_buffers(pa.binary(), count, [_bits(pc.equal(starts, 0)), *data])
        writers = pa.array([{"id": one.id, "subject": one.subject, "version": one.version} for one in known], WRITER)
        listed = [self.errors.get(i) for i in range(count)] if self.errors else None
        errors = pa.nulls(count, ERROR) if listed is None else pa.array(listed, ERROR)
        known_numbers = _where(pc.greater_equal(numbers, 0), numbers)
        columns = [_where(pc.greater(starts, 0), starts), payloads, writers.take(known_numbers), errors]
        return pa.StructArray.from_arrays(columns, ["start", "payload", "schema", "error"])


def _where(is_there: pa.Array, numbers: pa.Array) -> pa.Array:
    """Return 32-bit integers without those that are not there."""
    return pa.Array.from_buffers(pa.int32(), len(numbers), [_bits(is_there), numbers.buffers()[1]])


def _bits(values: pa.Array) -> pa.Buffer:
    return values.buffers()[1]


def without_length(col: str) -> Column:
    """Return the column of bytes in a column of their payloads. A payload that cannot be read fails the job."""

    def strip_length(values: pa.Array) -> pa.Array:
        return convert_values(values, bytes_of)

    return column_function(strip_length, "binary", "cdc_bare")(col)


@lru_cache(maxsize=MAX_SCHEMAS)
def _translator(
    writer: str, reader: str, identifier: SchemaPrefix, *, reinterpret: bool
) -> tuple[Translate, Translator | None]:
    """Return the function that reads what stands behind a prefix, and what does so in the engine.

    They are kept for the next task in the same process.
    """
    written = parse_schema(writer)
    try:
        translate = translator(written, _parse(reader), reinterpret=reinterpret)
        program = pair_program(written, _parse(reader), reinterpret=reinterpret)
    except SchemaError as error:
        sentence = str(error)

        def refuse(_framed: bytes) -> bytes:
            raise PayloadError("a schema that the reader reads", sentence)

        return refuse, None
    if payload_of(b"", identifier, written) == b"":
        return translate, Translator(program)
    return lambda framed: translate(payload_of(framed, identifier, written)), None


@lru_cache(maxsize=16)
def _parse(text: str) -> Schema:
    return parse_schema(text)


def with_id_header(column: Column, headers: Column | str = "headers", *, is_key: bool) -> Column:
    """Return the column of what `with_header` returns for a column of keys or values, and one of headers."""
    marks = [column.startswith(sf.lit(bytearray(mark))) for mark in FRAMED_KEYS]
    without = sf.concat(sf.lit(bytearray(NO_HEADER)), column)
    prefixed = sf.when(reduce(or_, marks), without).otherwise(column) if is_key else without
    for one in reversed(ID_HEADERS):
        id = _last_header(headers, one.name(is_key=is_key))
        fits = (sf.octet_length(id) == one.size) & id.startswith(sf.lit(bytearray(one.magic)))
        prefixed = sf.when(fits, sf.concat(sf.lit(bytearray(one.mark)), id, column)).otherwise(prefixed)
    return prefixed


def _last_header(headers: Column | str, name: str) -> Column:
    return sf.try_element_at(sf.filter(headers, lambda header: header["key"] == name), sf.lit(-1))["value"]


LATEST: Final = "latest"
OPENED_TEXT: Final = "text string, format string, error struct<format: string, path: string, message: string>"
_OPENED_TEXT: Final = pa.struct([("text", pa.string()), ("format", pa.string()), ("error", ERROR)])
_BYTES: Final = Primitive("bytes")


def from_registry(
    frame: DataFrame,
    col: str,
    registry: Registry,
    reader: Schema | TableSchema | int | str = LATEST,
    *,
    subject: str | None = None,
    reinterpret: bool = False,
) -> DataFrame:
    """Decode a column of payloads, written with different schemas of a registry, under one reader's schema.

    `col` (binary) holds Confluent's wire format, its newer form with a GUID, or Avro's single-object
    encoding. `reader` is a schema, or a version of `subject`, which may be left out if all rows are of
    one subject. Returns the frame with three more columns: `value` (a struct of the reader's fields),
    `schema` (a struct of id, subject and version, of the writer's schema) and `error` (a struct of format,
    path and message). One of `value` and `error` is null; both are for SQL null.

    No row fails a batch, and nothing is guessed. A row has an error if its bytes begin differently; if the registry
    lacks its schema, or has an invalid one, or one that the reader cannot read; if its payload ends too early, has
    bytes left over, or holds what Avro Java does not read; if it has a symbol or a branch that the reader lacks; and
    for bytes where the reader has a string, or plain numbers where it has dates, times or decimals, unless
    `reinterpret` is true. Of more than 10,000 schemas, those of the fewest rows are not read, and no more are once the
    registry lacked 1,000 of a batch: rows with invented prefixes would keep it busy.

    The schemas are collected in a separate pass, so the frame is read twice: persist it if that is expensive. For a
    stream, call this function in `foreachBatch`: a new schema then works without a restart. Raises `RegistryError`;
    `SchemaError` if it is not clear which subject is meant, and for a reader's schema that contains itself, which Spark
    does not read; `ValueError` for a streaming frame.
    """
    if frame.isStreaming:
        raise ValueError("from_registry takes a batch: call it in foreachBatch, where each batch finds its schemas")
    known = _known(frame, col, registry)
    wanted = _reader(registry, reader, subject, known.values())
    check_expansion(wanted.root, "Spark")
    outcome = FramedRows(known, wanted.json, reinterpret=reinterpret).column(col)
    own = next(name for name in map("_brought{}".format, range(len(frame.columns) + 1)) if name not in frame.columns)
    behind = sf.col(col).substr(sf.col(f"{own}.start"), sf.lit(2**31 - 1))
    payload = sf.coalesce(sf.col(f"{own}.payload"), behind)
    value = from_avro(payload, wanted.json, STRICT)
    decoded = frame.withColumn(own, outcome).withColumn("value", _with_true_names(value, wanted))
    decoded = decoded.withColumn("schema", sf.col(f"{own}.schema")).withColumn("error", sf.col(f"{own}.error"))
    return decoded.drop(own)


def from_framed(
    col: Column | str,
    registry: RegistrySettings,
    *,
    key: Column | str | None = None,
    headers: Column | str | None = None,
    format: str = MIXED,
) -> Column:
    """Convert a column of framed values to the text of their messages: `struct<text, format, error>`.

    The values (binary) are payloads of wire schemas, or Debezium's Avro, which becomes what its JSON converter would
    have written, with its schema. `registry` (`RegistrySettings(url, framing=...)`) says how they are framed; workers
    ask it for schemas, so the path of a folder must be absolute. For ids in headers, `headers` is the column of headers
    that Spark's Kafka source has with `includeHeaders`. With `key`, a column of keys, each text is that of a Kafka
    record with key and value, and with its headers if they are given and the format reads them. `format` is one for all, or
    "mixed" if each schema tells it; if its records without a value are deletes, null beside a key, or headers that it reads, gives a text, too.

    No row fails the job: either `text` and `format` are null, or `error` is. SQL null gives null. A registry that is
    down fails the job. Raises `UnknownFormatError`, and `ValueError` for ids in headers without these.
    """
    formats = Formats(format)
    value = sf.col(col) if isinstance(col, str) else col
    own_key = sf.col(key) if isinstance(key, str) else key
    if registry.framing == HEADERS:
        if headers is None:
            raise ValueError("ids in headers are read from a column of headers, and none is given")
        value = with_id_header(value, headers, is_key=False)
        own_key = None if own_key is None else with_id_header(own_key, headers, is_key=True)
    has_tombstones = format != MIXED and get_format(format).rule.has_tombstones

    def open_values(values: pa.Array) -> pa.Array:
        return _open_texts(registry, formats, values, None, has_tombstones=False)

    def open_records(values: pa.Array, keys: pa.Array) -> pa.Array:
        return _open_texts(registry, formats, values, keys, has_tombstones=has_tombstones)

    def open_headed(values: pa.Array, keys: pa.Array, stated: pa.Array) -> pa.Array:
        return _open_texts(registry, formats, values, keys, stated, has_tombstones=has_tombstones)

    if own_key is None:
        return column_function(open_values, OPENED_TEXT, "cdc_from_framed", is_deterministic=False)(value)
    if headers is None or format == MIXED or not get_format(format).headers:
        return column_function(open_records, OPENED_TEXT, "cdc_from_framed", is_deterministic=False)(value, own_key)
    function = column_function(open_headed, OPENED_TEXT, "cdc_from_framed", is_deterministic=False)
    return function(value, own_key, sf.to_json(sf.col(headers) if isinstance(headers, str) else headers))


def _open_texts(
    registry: RegistrySettings,
    formats: Formats,
    values: pa.Array,
    keys: pa.Array | None,
    headers: pa.Array | None = None,
    *,
    has_tombstones: bool,
) -> pa.Array:
    """Return structs of `OPENED_TEXT` for values, or for records if there are keys; `headers` are JSON."""
    stated = [None] * len(values) if headers is None else headers.to_pylist()
    own_keys = [None] * len(values) if keys is None else keys.to_pylist()
    records = [*zip(own_keys, values.to_pylist(), strict=True)]
    opened = _opener(registry, str(formats.given)).open_texts(records, [None] * len(records))
    rows: list[dict[str, Any] | None] = []
    for (key, text, format, error), own in zip(opened, stated, strict=True):
        members = {} if own is None else {"headers": parse_fast(own)}
        if error is not None:
            rows.append({"text": None, "format": None, "error": error.fields})
        elif text is not None or (has_tombstones and (key is not None or _has_stated(members, formats))):
            if text is None and key is None:
                # Without it, a row might have the same members.
                members = {"topic": None, **members}
            whole = text if keys is None else record_text(members, key, text)
            rows.append({"text": whole, "format": format or formats.given, "error": None})
        else:
            rows.append(None)
    return pa.array(rows, _OPENED_TEXT)


def _has_stated(members: dict[str, Any], formats: Formats) -> bool:
    """Return whether a record has headers that its format reads."""
    names = get_format(str(formats.given)).headers
    return any(one["key"] in names for one in members.get("headers", ()))


@lru_cache(maxsize=8)
def _opener(registry: RegistrySettings, format: str) -> Opener:
    """Return what opens values, kept with the schemas that it knows for the next batch in the same process."""
    return Opener(registry, Formats(format))


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

    `col` is a struct, which `to_avro` writes, or already holds payloads (binary) of the schema. Payloads of type bytes
    begin with their length, which is checked and left out, as Confluent does. For a `Table`, as `to_tables` returns it,
    all versions are published in their order, and `version` names the column with the version of each row. Raises
    `RegistryError`, `IncompatibleError`, and `ValueError` for a table of several versions without `version`.
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
        # Confluent's serialisers write bytes without their length.
        payload = without_length(col) if avro_schema.root == _BYTES else payload
        message = sf.when(sf.col(col).isNotNull(), sf.concat(header, payload))
        framed = message if version is None else sf.when(sf.col(version) == number, message).otherwise(framed)
    return frame.withColumn(col, framed)


def _known(frame: DataFrame, col: str, registry: Registry) -> dict[bytes, PrefixSchema]:
    """Return what is known about the prefixes in a column; of too many, about those of the most rows."""
    raw = sf.col(col)
    prefix = sf.lit(None).cast("binary")
    for magic, size in PREFIXES.items():
        is_framed = raw.startswith(sf.lit(bytearray(magic))) & (sf.octet_length(raw) >= size)
        prefix = sf.when(is_framed, sf.substring(raw, 1, size)).otherwise(prefix)
    prefixes = frame.select(prefix.alias("prefix")).where("prefix is not null").groupBy("prefix").count()
    rows = prefixes.orderBy(sf.desc("count"), "prefix").limit(MAX_SCHEMAS).collect()
    return look_up_schemas([bytes(row.prefix) for row in rows], registry)


def _reader(
    registry: Registry, reader: Schema | TableSchema | int | str, subject: str | None, known: Iterable[PrefixSchema]
) -> Schema:
    if isinstance(reader, TableSchema):
        return reader.envelope
    if isinstance(reader, Schema):
        return reader
    if subject is None:
        subjects = {entry.subject for entry in known if entry.schema is not None}
        if len(subjects) != 1 or None in subjects:
            names = ", ".join(sorted(shown(name) for name in subjects if name is not None)) or "none"
            raise SchemaError("$", f"say the subject of the reader's schema; the payloads are of {names}")
        (subject,) = subjects
    return registry.fetch(subject=subject, version=None if reader == LATEST else int(reader)).schema


def _with_true_names(value: Column, schema: Schema) -> Column:
    """Return a value of a typed table with the true names of its columns, which are in the schema."""
    if not isinstance(schema.root, Record) or ATTRIBUTE not in schema.root.attributes:
        return value
    table = from_schema(schema)
    part = ENVELOPE if schema.root.name.endswith(f".{table_schema.ENVELOPE}") else ROW
    return as_shown(value, table, part)


def _versions(schema: Schema | TableSchema | Table | str) -> dict[int, Any]:
    if isinstance(schema, Table):
        return {version.version: version.envelope for version in schema.versions}
    if isinstance(schema, TableSchema):
        return {schema.version: schema.envelope}
    return {0: schema if isinstance(schema, Schema) else parse_schema(schema)}

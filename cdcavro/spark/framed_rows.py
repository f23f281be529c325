"""Framed rows, each translated into the reader's schema, or given its error, in Arrow batches.

Ids in headers of records are put before keys and values first.
"""

from __future__ import annotations

from array import array
from functools import lru_cache, partial, reduce
from operator import or_
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as sf

from cdcavro.arrow.arrays import convert_values, slices_of
from cdcavro.avro.schema import parse_schema
from cdcavro.avro.translation import MAX_TRANSLATED, translator
from cdcavro.avro.translation_program import pair_program
from cdcavro.engine.arrow_column import MAX_BYTES
from cdcavro.engine.machine import Translator, Translators
from cdcavro.errors import MessageError, PayloadError, SchemaError
from cdcavro.registry.framing import FRAMED_KEYS, ID_HEADERS, NO_HEADER, bytes_of, payload_of, unframe
from cdcavro.registry.prefix_schemas import MAX_SCHEMAS, PREFIXES
from cdcavro.spark.arrow_udf import column_function
from cdcavro.spark.functions import ERROR

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import Column

    from cdcavro.avro.schema import Schema
    from cdcavro.registry.framing import SchemaPrefix
    from cdcavro.registry.prefix_schemas import PrefixSchema

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

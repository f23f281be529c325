"""Rows of framed payloads, each brought into the reader's schema, or given its error, in Arrow batches."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from cdcavro.avro.schema import parse_schema
from cdcavro.avro.translation.part import MAX_TRANSLATED
from cdcavro.avro.translation.schema_pair import translator
from cdcavro.engine.arrow_column import MAX_BYTES
from cdcavro.errors import MessageError, PayloadError, SchemaError
from cdcavro.registry.framing import bytes_of, payload_of, unframe
from cdcavro.spark.arrow_udf import column_function, converted, raw_bytes
from cdcavro.spark.functions import ERROR, error_fields

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import Column

    from cdcavro.avro.schema import Schema
    from cdcavro.registry.framing import SchemaPrefix

    Translate = Callable[[bytes], bytes]

MAX_SCHEMAS: Final = 10_000
PREFIXES: Final = {b"\x00": 5, b"\x01": 17, b"\xc3\x01": 10}
_SIZES: Final = {magic[0]: size for magic, size in PREFIXES.items()}
WRITER: Final = pa.struct([("id", pa.int32()), ("subject", pa.string()), ("version", pa.int32())])
BROUGHT: Final = (
    "start int, payload binary, schema struct<id: int, subject: string, version: int>,"
    " error struct<format: string, path: string, message: string>"
)


@dataclass(frozen=True, slots=True)
class Known:
    """What is known about a prefix: the schema that it identifies, or why its payloads are rejects.

    Attributes: `schema` (str), its text, or None; `id` (int), `subject` (str) and `version` (int) of the schema, None
    where they are not known; `fault` (two str), what was expected and what came if there is no schema.
    """

    schema: str | None
    id: int | None = None
    subject: str | None = None
    version: int | None = None
    fault: tuple[str, str] = ("", "")


class FramedRows:
    """Brings framed payloads into the reader's schema, an Arrow batch at a time.

    `known` is what each prefix identifies, `reader` the text of the reader's schema; `reinterpret` is as in
    `schema_pair.translator`. Schemas are parsed where they are first met, so that only their texts are sent to
    executors.
    """

    def __init__(self, known: Mapping[bytes, Known], reader: str, *, reinterpret: bool) -> None:
        self._numbers = {prefix: i for i, prefix in enumerate(known)}
        self._known = list(known.values())
        self._reader = reader
        self._reinterpret = reinterpret
        self._translate: dict[bytes, Translate] = {}

    def column(self, col: str) -> Column:
        """Return the column with the outcome of a column of framed payloads, structs of `BROUGHT`."""

        def brought(values: pa.Array) -> pa.Array:
            return self.brought(values)

        # Declared non-deterministic, because Spark would otherwise run the function once for each use of its result.
        outcome: Column = column_function(brought, BROUGHT, "cdc_brought").asNondeterministic()(col)
        return outcome

    def brought(self, values: pa.Array) -> pa.Array:
        """Return a struct of `BROUGHT` for each value.

        `payload` is the payload under the reader's schema, or null if it is the value's bytes from byte `start` on,
        counted from 1. Both are null where there is an error.
        """
        numbers: list[int | None] = []
        starts: list[int | None] = []
        payloads: list[bytes | None] = []
        errors: dict[int, dict[str, str | None]] = {}
        room = MAX_BYTES
        for raw in raw_bytes(values):
            number = start = payload = None
            if raw is not None:
                size = _SIZES.get(raw[0], 0) if raw else 0
                prefix = raw[:size]
                number = self._numbers.get(prefix)
                try:
                    translate = self._translate.get(prefix) or self._reading(raw, prefix)
                    framed = raw[size:]
                    if len(framed) > MAX_TRANSLATED:
                        raise PayloadError(f"at most {MAX_TRANSLATED} bytes", f"{len(framed)}")
                    payload = translate(framed)
                    if payload is framed:
                        start, payload = size + 1, None
                    elif len(payload) > room:
                        raise PayloadError(f"at most {MAX_BYTES} bytes in an Arrow batch", "more")
                    else:
                        room -= len(payload)
                except MessageError as error:
                    start = payload = None
                    errors[len(numbers)] = error_fields(error)
            numbers.append(number)
            starts.append(start)
            payloads.append(payload)
        columns = [pa.array(starts, pa.int32()), pa.array(payloads, pa.binary()), self._writers(numbers)]
        listed = [errors.get(i) for i in range(len(numbers))] if errors else None
        columns.append(pa.nulls(len(numbers), ERROR) if listed is None else pa.array(listed, ERROR))
        return pa.StructArray.from_arrays(columns, ["start", "payload", "schema", "error"])

    def _reading(self, raw: bytes, prefix: bytes) -> Translate:
        """Return the function that reads what stands behind a prefix. Raises `PayloadError` for one that is none."""
        identifier, _ = unframe(raw)
        number = self._numbers.get(prefix)
        if number is None:
            raise PayloadError(f"one of the {MAX_SCHEMAS:,} schemas that most rows have", str(identifier))
        known = self._known[number]
        if known.schema is None:
            raise PayloadError(*known.fault)
        translate = _translator(known.schema, self._reader, identifier, reinterpret=self._reinterpret)
        self._translate[prefix] = translate
        return translate

    def _writers(self, numbers: list[int | None]) -> pa.Array:
        writers = [{"id": known.id, "subject": known.subject, "version": known.version} for known in self._known]
        return pa.array(writers, WRITER).take(pa.array(numbers, pa.int32()))


def without_length(col: str) -> Column:
    """Return the column of bytes in a column of their payloads. A payload that is none fails the job."""

    def bare(values: pa.Array) -> pa.Array:
        return converted(values, bytes_of)

    payloads: Column = column_function(bare, "binary", "cdc_bare")(col)
    return payloads


@lru_cache(maxsize=MAX_SCHEMAS)
def _translator(writer: str, reader: str, identifier: SchemaPrefix, *, reinterpret: bool) -> Translate:
    """Return the function that reads what stands behind a prefix; kept for the next task in the same process."""
    written = parse_schema(writer)
    try:
        translate = translator(written, _parsed(reader), reinterpret=reinterpret)
    except SchemaError as error:
        sentence = str(error)

        def refuse(_framed: bytes) -> bytes:
            raise PayloadError("a schema that the reader reads", sentence)

        return refuse
    if payload_of(b"", identifier, written) == b"":
        return translate
    return lambda framed: translate(payload_of(framed, identifier, written))


@lru_cache(maxsize=16)
def _parsed(text: str) -> Schema:
    return parse_schema(text)

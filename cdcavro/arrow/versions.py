"""Versions of a table: payloads of all of them brought into one reader's schema, in Arrow arrays."""

from __future__ import annotations

from array import array
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from cdcavro.avro.schema import parse_schema
from cdcavro.avro.translation.assembly import pair_program
from cdcavro.avro.translation.part import MAX_TRANSLATED
from cdcavro.avro.translation.schema_pair import translator
from cdcavro.engine.arrow_column import MAX_BYTES
from cdcavro.engine.machine import Translator, Translators
from cdcavro.errors import MessageError
from cdcavro.lake.arrow import slices_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class VersionPayloads:
    """Brings payloads of several schemas into the reader's, an Arrow array at a time.

    `writers` are the texts of the schemas, `reader` is that of the reader's.
    """

    def __init__(self, writers: Sequence[str], reader: str) -> None:
        self._writers, self._reader = list(writers), reader
        self._translate: dict[int, Callable[[bytes], bytes]] = {}
        self._engine = Translators()

    def brought(self, numbers: pa.Array, payloads: pa.Array) -> pa.Array:
        """Return the payloads under the reader's schema; `numbers` are those of their schemas, null for none.

        Raises `PayloadError`, with the number of the row, for a payload that is none of its schema, `SchemaError` for a
        schema that the reader does not read, and `OverflowError` for more than 2 GiB.
        """
        if numbers.null_count:
            payloads = pc.if_else(pc.is_valid(numbers), payloads, pa.scalar(None, payloads.type))
        known = numbers.cast(pa.int32()).fill_null(-1)
        numbered = memoryview(known.buffers()[1] or b"")
        own = array("i", numbered[known.offset * 4 : (known.offset + len(known)) * 4].tobytes())
        data, offsets = self._translated(own, payloads)
        # Where there is no payload, there is none under the reader's schema.
        valid = pc.is_valid(payloads).buffers()[1] if payloads.null_count else None
        return pa.Array.from_buffers(pa.binary(), len(payloads), [valid, pa.py_buffer(offsets), pa.py_buffer(data)])

    def _translated(self, numbers: array[int], payloads: pa.Array) -> tuple[bytes, array[int]]:
        count, column, written = len(payloads), slices_of(payloads), [b""]
        starts, offsets = array("i", [0]) * count, array("i", [0]) * (count + 1)
        i = size = 0
        while True:
            said = (numbers, starts, memoryview(offsets)[1:])
            some, i = self._engine.by_number(column, said, i, size, (MAX_BYTES, MAX_TRANSLATED))
            size += len(some)
            written.append(some)
            if i == count:
                return b"".join(written), offsets
            left = column.get(i)
            payload = b"" if left is None else self._exact(numbers[i], left, i)
            size += len(payload)
            if size > MAX_BYTES:
                raise OverflowError(f"payloads of more than {MAX_BYTES} bytes")
            written.append(payload)
            offsets[i + 1] = size
            i += 1

    def _exact(self, number: int, payload: bytes, row: int) -> bytes:
        """Return a payload as the exact way gives it, and let the engine have the next ones of the same schema."""
        if number not in self._translate:
            self._translate[number], engine = _pair(self._writers[number], self._reader)
            self._engine.add(number, engine, b"")
        try:
            return self._translate[number](payload)
        except MessageError as error:
            error.below(f"/{row}")
            raise


@lru_cache(maxsize=10_000)
def _pair(writer: str, reader: str) -> tuple[Callable[[bytes], bytes], Translator]:
    """Return the exact way and the engine's from one version to another; kept for the next task in the same process.

    As in `from_avro`, what a version says to be a date or a text is read as one.
    """
    was, now = parse_schema(writer), parse_schema(reader)
    program = pair_program(was, now, reinterpret=True)
    # Whoever takes the payloads wants each of them written.
    return translator(was, now, reinterpret=True), Translator(replace(program, is_same=False))

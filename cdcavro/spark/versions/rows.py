"""Rows of payloads of many versions, each brought into the reader's schema, in Arrow batches."""

from __future__ import annotations

from array import array
from dataclasses import replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from cdcavro.avro.schema import parse_schema
from cdcavro.avro.translation.assembly import pair_program
from cdcavro.avro.translation.part import MAX_TRANSLATED
from cdcavro.avro.translation.schema_pair import translator
from cdcavro.engine.arrow_column import MAX_BYTES
from cdcavro.engine.machine import Translator, Translators
from cdcavro.errors import JobError
from cdcavro.lake.arrow import slices_of
from cdcavro.spark.arrow_udf import column_function

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import Column


class VersionRows:
    """Brings payloads of a table's versions into the reader's schema, an Arrow batch at a time.

    `writers` are the texts of the versions' schemas by their numbers, `reader` is that of the reader's schema, `name`
    the table's.
    """

    def __init__(self, writers: Mapping[int, str], reader: str, name: str) -> None:
        self._writers, self._reader, self._name = dict(writers), reader, name
        self._translate: dict[int, Callable[[bytes], bytes]] = {}
        self._engine = Translators()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle texts only: executors translate for themselves."""
        return partial(VersionRows, self._writers, self._reader, self._name), ()

    def column(self, version: Column, payload: Column | str) -> Column:
        """Return the column of payloads under the reader's schema; a version or a payload that is null gives null."""

        def brought(versions: pa.Array, payloads: pa.Array) -> pa.Array:
            return self.brought(versions, payloads)

        outcome: Column = column_function(brought, "binary", "cdc_versions")(version, payload)
        return outcome

    def brought(self, versions: pa.Array, payloads: pa.Array) -> pa.Array:
        """Return the payloads under the reader's schema.

        Raises `JobError` for an unknown version, `PayloadError` for a payload that is none of its version, and
        `SchemaError` for a version that the reader does not read.
        """
        numbers = pc.index_in(versions, pa.array(list(self._writers), versions.type))
        unknown = pc.and_(pc.is_valid(versions), pc.is_null(numbers))
        if pc.any(unknown).as_py():
            raise JobError(f"no version of {self._name}: {pc.filter(versions, unknown)[0]}")
        if numbers.null_count:
            payloads = pc.if_else(pc.is_valid(numbers), payloads, pa.scalar(None, payloads.type))
        own = array("i", numbers.fill_null(-1).to_numpy(zero_copy_only=False).tobytes())
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
            payload = b"" if left is None else self._reading(numbers[i])(left)
            size += len(payload)
            if size > MAX_BYTES:
                raise JobError("lower spark.sql.execution.arrow.maxRecordsPerBatch: payloads of a batch are too long")
            written.append(payload)
            offsets[i + 1] = size
            i += 1

    def _reading(self, number: int) -> Callable[[bytes], bytes]:
        """Return the exact way of a version, and let the engine have its next payloads."""
        if number not in self._translate:
            self._translate[number], engine = _pair(list(self._writers.values())[number], self._reader)
            self._engine.add(number, engine, b"")
        return self._translate[number]


@lru_cache(maxsize=10_000)
def _pair(writer: str, reader: str) -> tuple[Callable[[bytes], bytes], Translator]:
    """Return the exact way and the engine's from one version to another; kept for the next task in the same process.

    As in `from_avro`, what a version says to be a date or a text is read as one.
    """
    was, now = parse_schema(writer), parse_schema(reader)
    program = pair_program(was, now, reinterpret=True)
    # Whoever takes the payloads wants each of them written.
    return translator(was, now, reinterpret=True), Translator(replace(program, is_same=False))

"""Framed payloads of wire schemas, turned back into the texts of their messages before they are converted.

What `cdcavro decode` does with a container file is done with each value: the schema that wrote it is found in the
registry by what stands before it, and names the format. A payload of any other schema is a reject.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa

from cdcavro.avro.schema import parse_schema
from cdcavro.errors import JobError, MessageError, PayloadError, RegistryError, SchemaError, TextError, shown
from cdcavro.exact.jsontext import MAX_LENGTH
from cdcavro.registry.backend import normal_form
from cdcavro.registry.framing import unframe
from cdcavro.spark.arrow_udf import converted
from cdcavro.spark.framed_rows import MAX_SCHEMAS, PREFIXES
from cdcavro.spark.pipeline.outcome_columns import failed
from cdcavro.spark.registry import looked_up
from cdcavro.wire.formats import format_of, get_format
from cdcavro.wire.sniff import MIXED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from cdcavro.engine.arrow_column import Batch
    from cdcavro.registry import Registry
    from cdcavro.spark.pipeline.registries.access import RegistrySettings
    from cdcavro.spark.pipeline.settings import Formats

    Convert = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]

TEXT: Final = "text"
_SIZES: Final = {magic[0]: size for magic, size in PREFIXES.items()}
_SHOWN: Final = 2
# What a message says, its format as far as it is known, and if it says nothing what was expected and what came.
OPENED: Final = (TEXT, "format", "expected", "got")


def opening(convert: Convert, access: RegistrySettings, formats: Formats) -> Convert:
    """Return the function of a task that opens batches of `sources.COLUMNS` for the one that converts them."""

    def converted_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        messages = iter(batches)
        try:
            yield from convert(map(Opener(access, formats).opened, messages))
        except (JobError, RegistryError) as error:
            yield failed(error)
            # Spark wants all to be read.
            deque(messages, maxlen=0)

    return converted_batches


class Reading(NamedTuple):
    """How payloads become texts: their format, one by one, and if the format's own schema wrote them in whole columns."""

    format: str
    decode: Callable[[bytes], bytes]
    column: Batch | None


class Opener:
    """Opens messages for one task; `access` is the registry, `formats` are those that are told of topics."""

    def __init__(self, access: RegistrySettings, formats: Formats) -> None:
        self._access, self._formats = access, formats
        self._known: dict[tuple[str, bytes], Reading | PayloadError] = {}

    def opened(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch of `sources.COLUMNS` with the columns of `OPENED`.

        Raises `JobError` and `RegistryError` for a registry that is down or refuses to answer.
        """
        texts: list[bytes | None] = [None] * batch.num_rows
        formats: list[str | None] = [None] * batch.num_rows
        faults: dict[int, MessageError] = {}
        groups: dict[tuple[str, bytes], list[int]] = {}
        raws = batch.column("raw").to_pylist()
        for i, (raw, length, topic) in enumerate(
            zip(raws, batch.column("length").to_pylist(), batch.column("topic").to_pylist(), strict=True)
        ):
            if raw is not None and length is not None and length > len(raw):
                faults[i] = TextError(f"at most {MAX_LENGTH} bytes", f"{length}")
            elif raw is not None:
                prefix = raw[: _SIZES.get(raw[0], _SHOWN)] if raw else raw
                groups.setdefault((self._formats.told(topic), prefix), []).append(i)
        for (told, prefix), indexes in groups.items():
            reading = self._reading(told, prefix)
            if isinstance(reading, PayloadError):
                faults.update(dict.fromkeys(indexes, reading))
                continue
            payloads = pa.array([raws[i][len(prefix) :] for i in indexes], pa.binary())

            def caught(place: int, error: MessageError, indexes: list[int] = indexes, own: Reading = reading) -> None:
                error.format = own.format
                faults[indexes[place]] = error

            found = converted(payloads, reading.decode, caught, batch=reading.column).to_pylist()
            for i, text in zip(indexes, found, strict=True):
                texts[i], formats[i] = text, reading.format
        for i, fault in faults.items():
            texts[i], formats[i] = None, fault.format
        expected = [faults[i].expected if i in faults else None for i in range(batch.num_rows)]
        got = [faults[i].got if i in faults else None for i in range(batch.num_rows)]
        columns = [pa.array(texts, pa.binary()), *(pa.array(one, pa.string()) for one in (formats, expected, got))]
        for name, values in zip(OPENED, columns, strict=True):
            batch = batch.append_column(name, values)
        return batch

    def _reading(self, told: str, prefix: bytes) -> Reading | PayloadError:
        """Return how payloads behind a prefix are read, or why they cannot be."""
        known = self._known.get((told, prefix))
        if known is None:
            try:
                known = self._found(told, prefix)
            except PayloadError as error:
                known = error
            if len(self._known) >= MAX_SCHEMAS:
                self._known.clear()
            self._known[told, prefix] = known
        return known

    def _found(self, told: str, prefix: bytes) -> Reading:
        identifier, _ = unframe(prefix)
        found = self._access.patiently(lambda: looked_up([prefix], _client(self._access))[prefix])
        if found.schema is None:
            raise PayloadError(*found.fault)
        writer = parse_schema(found.schema)
        own = format_of(writer) if told == MIXED else get_format(told)
        if own is None:
            name = getattr(writer.root, "name", "a schema without a name")
            raise PayloadError("a payload of a wire schema", f"one of {shown(name)}, {identifier}")
        if normal_form(writer.json) == normal_form(own.schema.json):
            return Reading(own.name, own.decode, own.decode_column)
        decode = partial(own.decode, writer=writer)
        try:
            # An empty payload is none, but the schema can be read.
            with suppress(MessageError):
                decode(b"")
        except SchemaError as error:
            raise PayloadError(f"a payload that {own.name} reads", f"one of {identifier}: {error}") from error
        return Reading(own.name, decode, None)


@lru_cache(maxsize=8)
def _client(access: RegistrySettings) -> Registry:
    """Return the client of a registry, which caches schemas for all tasks in a process."""
    return access.connect()

"""Columns of messages as they are read, from files and from Kafka, which the conversion takes."""

from __future__ import annotations

from functools import lru_cache
from operator import methodcaller
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from cdcavro.exact.jsontext import MAX_LENGTH
from cdcavro.files.lines import KEPT
from cdcavro.registry.framing import with_header
from cdcavro.sync.sources import STATED
from cdcavro.wire.kafka import UNTOLD

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from confluent_kafka import Message

# As Spark's stream has them: `length` is that of the whole message, of which `raw` has the beginning if it is longer
# than one may be; `line` and `clock` are those of a reject that is read again. `size` is that of a file which is still
# to be unpacked, which none is here, so it is null.
SCHEMA: Final = pa.schema(
    [
        ("raw", pa.binary()),
        ("length", pa.int64()),
        ("key", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("file", pa.string()),
        ("size", pa.int64()),
        ("line", pa.int64()),
        ("clock", pa.string()),
    ]
)
# How many rows a batch has at most: an error has up to some kilobytes, however short its message is.
MOST_ROWS: Final = 1 << 14
# With how many messages of Kafka's, or bytes of them, a batch is full.
_MOST: Final = 10_000
_BYTES: Final = 32 << 20
_HEADERS: Final = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def message_batch(count: int, arrays: Mapping[str, pa.Array], same: Mapping[str, Any]) -> pa.RecordBatch:
    """Return a batch of at most `MOST_ROWS` messages: columns, some of one value in all rows, the others null."""
    columns = []
    for field in SCHEMA:
        array = arrays.get(field.name)
        columns.append(_repeated(same.get(field.name), field.type).slice(0, count) if array is None else array)
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


@lru_cache(maxsize=64)
def _repeated(value: Any, type: pa.DataType) -> pa.Array:
    if value is None:
        return pa.nulls(MOST_ROWS, type)
    return pa.repeat(pa.scalar(value, type), MOST_ROWS)


class KafkaMessages:
    """What messages of a topic partition hold, without the client's objects, some hundreds of which are added at a time.

    `has_id_headers`, `has_headers` and `stated` are as in `KafkaReader`.
    """

    def __init__(
        self, *, has_id_headers: bool = False, has_headers: bool = False, stated: Collection[str] = ()
    ) -> None:
        self._has_id_headers, self._has_headers, self._stated = has_id_headers, has_headers, stated
        self._parts: list[pa.RecordBatch] = []
        # How many messages there are, and bytes of them.
        self.count = self._size = 0

    @property
    def is_full(self) -> bool:
        """Whether there are enough of them for a batch."""
        return self.count >= _MOST or self._size >= _BYTES

    def add(self, messages: list[Message], same: Mapping[str, Any]) -> int:
        """Add messages, and those columns that have one value in all rows; return how many bytes they have, with headers."""
        keys, values = [one.key() for one in messages], [one.value() for one in messages]
        if self._has_id_headers:
            facts = map(_with_headers, messages, keys, values)
            keys, values = (list(column) for column in zip(*facts, strict=True))
        raw, key = pa.array(values, pa.binary()), pa.array(keys, pa.binary())
        size = sum(pc.sum(pc.binary_length(one)).as_py() or 0 for one in (raw, key))
        length = pc.binary_length(raw).cast(pa.int64())
        if (pc.max(length).as_py() or 0) > MAX_LENGTH:
            raw = pc.if_else(pc.greater(length, MAX_LENGTH), pc.binary_slice(raw, 0, KEPT), raw)
        offset = pa.array([one.offset() for one in messages], pa.int64())
        part = message_batch(len(raw), {"raw": raw, "length": length, "key": key, "offset": offset}, same)
        columns: dict[str, Iterable[list[tuple[str, bytes | None]]]] = {}
        if self._has_headers:
            columns["headers"] = map(_headers_of, messages)
        if self._stated:
            columns[STATED] = map(self._stated_in, messages)
        for name, headers in columns.items():
            column = _column(headers)
            size += sum(pc.sum(pc.binary_length(one)).as_py() or 0 for one in column.flatten().flatten())
            part = part.append_column(name, column)
        self._parts.append(part)
        self.count += len(messages)
        self._size += size
        return size

    def _stated_in(self, message: Message) -> list[tuple[str, bytes | None]]:
        """Return the headers that are read with a message; that they cannot be told if a name of one is not UTF-8."""
        try:
            headers: Any = _read_headers(message)
        except SystemError:
            return [(UNTOLD, None)]
        return [one for one in headers if one[0] in self._stated] if headers else []

    def batch(self) -> pa.RecordBatch:
        """Return the messages as a batch."""
        (batch,) = pa.Table.from_batches(self._parts).combine_chunks().to_batches()
        return batch


# The client returns something and sets an exception for a name that is not UTF-8. From Python 3.12 on, a call from Python
# does not look for that, and the exception comes up elsewhere; a call from C does.
_read_headers: Final = methodcaller("headers")


def _column(headers: Iterable[list[tuple[str, bytes | None]]]) -> pa.Array:
    """Return the headers of messages, null of one without any."""
    return pa.array([[{"key": key, "value": value} for key, value in own] or None for own in headers], _HEADERS)


def _headers_of(message: Message) -> list[tuple[str, bytes | None]]:
    """Return the headers of a message; none if a name of one is not UTF-8, which the client cannot tell."""
    try:
        headers: Any = _read_headers(message)
    except SystemError:
        return []
    return headers or []


def _with_headers(message: Message, key: bytes | None, value: bytes | None) -> tuple[bytes | None, bytes | None]:
    """Return the key and the value of a message, each behind what the headers say of its schema."""
    headers = _headers_of(message)
    own_key = None if key is None else with_header(key, headers, is_key=True)
    return own_key, None if value is None else with_header(value, headers)

"""Changes on Spark, as payloads of `change.avsc`: converting messages to them, their order key and their shard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from cdcavro.change import order
from cdcavro.change.model import Arrival, Change, replace
from cdcavro.change.order_value import order_value as binary_order
from cdcavro.errors import MessageError
from cdcavro.exact.instants import check_zone
from cdcavro.formats.connect_columns import PLACEHOLDER, check_word
from cdcavro.spark.arrow_udf import column_function, raw_bytes
from cdcavro.spark.functions import ERROR
from cdcavro.transcoding import mapping
from cdcavro.transcoding.transcoder import count_unzoned
from cdcavro.wire.formats import get_format

if TYPE_CHECKING:
    from datetime import tzinfo

    from pyspark.sql import Column

RESULT: Final = "changes array<binary>, unzoned int, error struct<format: string, path: string, message: string>"
KEY: Final = "phase int, position array<bigint>, topic string, partition bigint, offset bigint, file string, line bigint, ties array<bigint>, row int"
_CHANGES: Final = pa.list_(pa.binary())
_NAMES: Final = ("phase", "position", "topic", "partition", "offset", "file", "line", "ties", "row")
_TYPES: Final = (
    *(
        pa.int32(),
        pa.list_(pa.int64()),
        pa.string(),
        pa.int64(),
        pa.int64(),
        pa.string(),
        pa.int64(),
        pa.list_(pa.int64()),
        pa.int32(),
    ),
)
KEY_TYPE: Final = pa.struct(list(zip(_NAMES, _TYPES, strict=True)))


def to_changes(
    col: Column | str,
    format: str,
    *,
    zone: tzinfo | None = None,
    place: Column | str | None = None,
    unavailable: str | None = PLACEHOLDER,
) -> Column:
    """Convert a column of JSON text into a column of `struct<changes, unzoned, error>`.

    `changes` is an array of payloads of `change.avsc`, for `from_avro` to read; `unzoned` is the number
    of times in them that came without a zone and stayed text; `error` is as in `encode`. Either the first
    two are null, or `error` is. SQL null gives null.

    `place` is a struct of where each message arrived, with those fields of `Change.place` that are known:
    topic, partition, offset, file, line; what it does not state is taken from the Kafka record around a
    message, if there is one. The order of changes needs it wherever the format's own numbers
    have ties. `zone` is the time zone of the source, and `unavailable` the word for values that the source
    did not give, as in `cdcavro.to_changes`. Raises `UnknownFormatError`, `TypeError` for a `zone` that is
    not a time zone, and `ValueError` for an `unavailable` that can be no word, all at once and not only when
    the job runs.
    """
    get_format(format)
    check_zone(zone)
    check_word(unavailable)

    def convert(texts: pa.Array) -> pa.Array:
        return changes_batch(texts, format, zone, unavailable=unavailable)

    def convert_placed(texts: pa.Array, places: pa.Array) -> pa.Array:
        return changes_batch(texts, format, zone, places, unavailable=unavailable)

    own = convert if place is None else convert_placed
    function = column_function(own, RESULT, "cdc_changes", is_deterministic=False, from_json={1: pa.array})
    return function(col) if place is None else function(col, place)


def order_key(col: Column | str) -> Column:
    """Return a struct that sorts the changes of one table, for each payload of `change.avsc` in a column.

    The struct has the parts of `cdcavro.order_key`, the first of which is called `phase`. A change that
    has neither numbers nor a place fails the job: its order is not guessed. A comparison within Spark
    cannot fail, so you must check yourself whether some changes of a table have numbers and others do
    not: those without have a null `position`, which is empty where the place says the order, with the
    numbers in `ties`. SQL null gives null.
    """

    def keys(payloads: pa.Array) -> pa.Array:
        fields = [None if raw is None else key_fields(Change.from_avro(raw)) for raw in raw_bytes(payloads)]
        return pa.array(fields, KEY_TYPE)

    return column_function(keys, KEY, "cdc_order_key")(col)


def order_value(col: Column | str) -> Column:
    """Return the order of each payload of `change.avsc` in a column as one binary value, which `>` compares.

    The value is that of `cdcavro.change.order_value` without a clock: it compares as `order_key` does in
    Python, so changes that arrival orders belong in one topic partition or file. Its second byte says what
    orders a change and is one for all changes of a table, but for rows of a full load, where it is zero: check
    it, since a comparison within Spark cannot fail. A change that has neither numbers nor a place fails the
    job. SQL null gives null.
    """

    def values(payloads: pa.Array) -> pa.Array:
        orders = [None if raw is None else binary_order(Change.from_avro(raw)) for raw in raw_bytes(payloads)]
        return pa.array(orders, pa.binary())

    return column_function(values, "binary", "cdc_order_value")(col)


def shard(col: Column | str, count: int) -> Column:
    """Return the shard, an int from 0 to `count` - 1, of each payload of `change.avsc` in a column.

    The shard is that of `cdcavro.shard`; the order of changes holds within a shard. SQL null gives null.
    Raises `ValueError` at once for a `count` below 1.
    """
    if count < 1:
        raise ValueError(f"a number of shards from 1, not {count}")

    def shards(payloads: pa.Array) -> pa.Array:
        numbers = [None if raw is None else order.shard(Change.from_avro(raw), count) for raw in raw_bytes(payloads)]
        return pa.array(numbers, pa.int32())

    return column_function(shards, "int", "cdc_shard")(col)


def changes_batch(
    texts: pa.Array,
    format: str,
    zone: tzinfo | None,
    places: pa.Array | None = None,
    *,
    unavailable: str | None = PLACEHOLDER,
) -> pa.Array:
    """Return, for an array of texts, a struct array of their changes, how many times have no zone, and the error."""
    payloads: list[list[bytes] | None] = []
    counts: list[int | None] = []
    errors: list[dict[str, str | None] | None] = []
    arrivals = [None] * len(texts) if places is None else places.to_pylist()
    for raw, arrival in zip(raw_bytes(texts), arrivals, strict=True):
        changes, error = _convert(raw, format, zone, unavailable)
        if changes is not None and arrival is not None:
            changes = [replace(change, place=_place(change, arrival)) for change in changes]
        payloads.append(None if changes is None else [change.to_avro() for change in changes])
        counts.append(None if changes is None else count_unzoned(changes))
        errors.append(error)
    arrays = [pa.array(payloads, _CHANGES), pa.array(counts, pa.int32()), pa.array(errors, ERROR)]
    return pa.StructArray.from_arrays(arrays, ["changes", "unzoned", "error"], mask=texts.is_null())


def _place(change: Change, arrival: dict[str, Any]) -> Arrival:
    """Return where a change arrived: what the caller knows, and for the rest what its Kafka record states."""
    return replace(change.place or Arrival(), **{name: value for name, value in arrival.items() if value is not None})


def key_fields(change: Change) -> dict[str, Any]:
    """Return a change's order key as the fields of `KEY_TYPE`. Raises `OrderError`."""
    key = phase, position, arrival, ties, row = order.order_key(change)
    is_unnumbered = phase and change.position is None and not order.is_by_arrival(key)
    numbers = None if is_unnumbered else list(position)
    return dict(zip(_NAMES, (phase, numbers, *arrival, list(ties), row), strict=True))


def _convert(
    raw: bytes | None, format: str, zone: tzinfo | None, unavailable: str | None
) -> tuple[list[Change] | None, dict[str, str | None] | None]:
    if raw is None:
        return None, None
    try:
        return mapping.to_changes(raw, format, zone=zone, unavailable=unavailable), None
    except MessageError as error:
        return None, error.fields

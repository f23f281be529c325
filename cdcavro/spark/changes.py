"""Changes on Spark: messages to changes as payloads of `change.avsc`, and the shard of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from cdcavro.change import order
from cdcavro.change.model import Arrival, Change, replace
from cdcavro.errors import MessageError
from cdcavro.exact.instants import check_zone
from cdcavro.spark.arrow_udf import column_function, raw_bytes
from cdcavro.spark.functions import ERROR, error_fields
from cdcavro.transcoding import mapping
from cdcavro.transcoding.unzoned import unzoned
from cdcavro.wire.formats import get_format

if TYPE_CHECKING:
    from datetime import tzinfo

    from pyspark.sql import Column

RESULT: Final = "changes array<binary>, unzoned int, error struct<format: string, path: string, message: string>"
KEY: Final = "phase int, position array<bigint>, topic string, partition bigint, offset bigint, file string, line bigint, row int"
_CHANGES: Final = pa.list_(pa.binary())
_NAMES: Final = ("phase", "position", "topic", "partition", "offset", "file", "line", "row")
_NOWHERE: Final = ("", 0, 0, "", 0)
_TYPES: Final = (
    *(pa.int32(), pa.list_(pa.int64()), pa.string(), pa.int64(), pa.int64(), pa.string(), pa.int64(), pa.int32()),
)
KEY_TYPE: Final = pa.struct(list(zip(_NAMES, _TYPES, strict=True)))


def to_changes(
    col: Column | str, format: str, *, zone: tzinfo | None = None, place: Column | str | None = None
) -> Column:
    """Turn a column of JSON text into `struct<changes, unzoned, error>`.

    `changes` is an array of payloads of `change.avsc`, to be read by `from_avro`; `unzoned` counts the
    times in them that came without a zone and stayed text; `error` is as in `encode`. Either the
    first two are null, or `error` is. `place` is a struct of where each message arrived, with the
    fields of `Change.place` that there are: topic, partition, offset, file, line; the order of
    changes needs it wherever the format's own numbers have ties. `zone` is that of the source, as in `cdcavro.to_changes`. SQL null gives null.
    Raises `UnknownFormatError` at once, and `TypeError` for a zone that is none.
    """
    get_format(format)
    check_zone(zone)

    def turned(texts: pa.Array) -> pa.Array:
        return changes_batch(texts, format, zone)

    def placed(texts: pa.Array, places: pa.Array) -> pa.Array:
        return changes_batch(texts, format, zone, places)

    function = column_function(turned if place is None else placed, RESULT, "cdc_changes").asNondeterministic()
    made: Column = function(col) if place is None else function(col, place)
    return made


def order_key(col: Column | str) -> Column:
    """Return what sorts the changes of one table, of a column of payloads of `change.avsc`: a struct to order by.

    As `cdcavro.order_key`, its first part called `phase`. A change without numbers and without a
    place fails the job: its order is not guessed. A comparison within Spark cannot fail, so that it
    is for you to see where some changes of a table have numbers and others do not: the `position` of
    these is null. SQL null gives null.
    """

    def keys(payloads: pa.Array) -> pa.Array:
        found = [None if raw is None else key_fields(Change.from_avro(raw)) for raw in raw_bytes(payloads)]
        return pa.array(found, KEY_TYPE)

    made: Column = column_function(keys, KEY, "cdc_order_key")(col)
    return made


def shard(col: Column | str, count: int) -> Column:
    """Return the shard of each change of a column of payloads of `change.avsc`: an int from 0 to `count` - 1.

    As `cdcavro.shard`. The order of changes holds within a shard. Raises `ValueError` at once.
    """
    if count < 1:
        raise ValueError(f"a number of shards from 1, not {count}")

    def shards(payloads: pa.Array) -> pa.Array:
        found = [None if raw is None else order.shard(Change.from_avro(raw), count) for raw in raw_bytes(payloads)]
        return pa.array(found, pa.int32())

    made: Column = column_function(shards, "int", "cdc_shard")(col)
    return made


def changes_batch(texts: pa.Array, format: str, zone: tzinfo | None, places: pa.Array | None = None) -> pa.Array:
    """Turn an array of texts into an array of changes, their count of times without a zone, and error."""
    found: list[list[bytes] | None] = []
    counts: list[int | None] = []
    errors: list[dict[str, str | None] | None] = []
    wheres = [None] * len(texts) if places is None else places.to_pylist()
    for raw, where in zip(raw_bytes(texts), wheres, strict=True):
        made, error = _turned(raw, format, zone)
        if made is not None and where is not None:
            made = [replace(one, place=Arrival(**where)) for one in made]
        found.append(None if made is None else [one.to_avro() for one in made])
        counts.append(None if made is None else unzoned(made))
        errors.append(error)
    arrays = [pa.array(found, _CHANGES), pa.array(counts, pa.int32()), pa.array(errors, ERROR)]
    return pa.StructArray.from_arrays(arrays, ["changes", "unzoned", "error"], mask=texts.is_null())


def key_fields(change: Change) -> dict[str, Any]:
    """Return the fields of a change's order key. Raises `OrderError`."""
    phase, position, arrival, row = order.order_key(change)
    numbers = None if phase and change.position is None else list(position)
    return dict(zip(_NAMES, (phase, numbers, *(arrival or _NOWHERE), row), strict=True))


def _turned(
    raw: bytes | None, format: str, zone: tzinfo | None
) -> tuple[list[Change] | None, dict[str, str | None] | None]:
    if raw is None:
        return None, None
    try:
        return mapping.to_changes(raw, format, zone=zone), None
    except MessageError as error:
        return None, error_fields(error)

"""Changes on Spark: messages to changes as payloads of `change.avsc`, and the shard of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa

from cdcavro import changes
from cdcavro.change import Change
from cdcavro.errors import MessageError
from cdcavro.formats import get_format
from cdcavro.order import shard as shard_of
from cdcavro.spark.arrow import column_function, raw_bytes
from cdcavro.spark.columns import ERROR, error_fields
from cdcavro.zones import unzoned

if TYPE_CHECKING:
    from datetime import tzinfo

    from pyspark.sql import Column

RESULT: Final = "changes array<binary>, unzoned int, error struct<format: string, path: string, message: string>"
_CHANGES: Final = pa.list_(pa.binary())


def to_changes(col: Column | str, format: str, *, zone: tzinfo | None = None) -> Column:
    """Turn a column of JSON text into `struct<changes, unzoned, error>`.

    `changes` is an array of payloads of `change.avsc`, to be read by `from_avro`; `unzoned` counts the
    times in them that came without a zone and stayed text; `error` is as in `encode`. Either the
    first two are null, or `error` is. `zone` is that of the source, as in `cdcavro.to_changes`. SQL null gives null.
    Raises `UnknownFormatError` at once.
    """
    get_format(format)

    def turned(texts: pa.Array) -> pa.Array:
        return changes_batch(texts, format, zone)

    made: Column = column_function(turned, RESULT, "cdc_changes").asNondeterministic()(col)
    return made


def shard(col: Column | str, count: int) -> Column:
    """Give the shard of each change of a column of payloads of `change.avsc`: an int from 0 to `count` - 1.

    As `cdcavro.shard`. The order of changes holds within a shard. Raises `ValueError` at once.
    """
    if count < 1:
        raise ValueError(f"a number of shards from 1, not {count}")

    def shards(payloads: pa.Array) -> pa.Array:
        found = [None if raw is None else shard_of(Change.from_avro(raw), count) for raw in raw_bytes(payloads)]
        return pa.array(found, pa.int32())

    made: Column = column_function(shards, "int", "cdc_shard")(col)
    return made


def changes_batch(texts: pa.Array, format: str, zone: tzinfo | None) -> pa.Array:
    """Turn an array of texts into an array of changes and error."""
    found: list[list[bytes] | None] = []
    counts: list[int | None] = []
    errors: list[dict[str, str | None] | None] = []
    for raw in raw_bytes(texts):
        made, error = _turned(raw, format, zone)
        found.append(None if made is None else [one.to_avro() for one in made])
        counts.append(None if made is None else unzoned(made))
        errors.append(error)
    arrays = [pa.array(found, _CHANGES), pa.array(counts, pa.int32()), pa.array(errors, ERROR)]
    return pa.StructArray.from_arrays(arrays, ["changes", "unzoned", "error"], mask=texts.is_null())


def _turned(
    raw: bytes | None, format: str, zone: tzinfo | None
) -> tuple[list[Change] | None, dict[str, str | None] | None]:
    if raw is None:
        return None, None
    try:
        return changes.to_changes(raw, format, zone=zone), None
    except MessageError as error:
        return None, error_fields(error)

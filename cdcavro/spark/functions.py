"""Functions of Columns over Arrow batches, with the converter of the whole package.

They turn text into payloads and back, images into maps of text, and messages into changes, payloads of `change.avsc`, which
have an order key and a shard.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from cdcavro.arrow.arrays import blank, convert_values
from cdcavro.change import order
from cdcavro.change.model import Arrival, Change, replace
from cdcavro.change.order_value import order_value as binary_order
from cdcavro.errors import MessageError
from cdcavro.exact.instants import check_zone
from cdcavro.formats.connect_columns import PLACEHOLDER, check_word
from cdcavro.spark.arrow_udf import column_function, raw_bytes
from cdcavro.transcoding import mapping
from cdcavro.transcoding.transcoder import count_unzoned
from cdcavro.wire.formats import FORMATS, get_format

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import tzinfo

    from pyspark.sql import Column

    ColumnOrName = Column | str

ERROR: Final = pa.struct([("format", pa.string()), ("path", pa.string()), ("message", pa.string())])
RESULT: Final = "payload binary, error struct<format: string, path: string, message: string>"


def encode(col: ColumnOrName, format: str, *, rejects: bool = False) -> Column:
    """Encode a column of JSON text (string or binary) as payloads of the format's wire schema (binary).

    With `rejects`, the result is `struct<payload binary, error struct<format, path, message>>`, of which
    exactly one field is null, so that a bad message never fails a job; without it, the job fails with
    the message's error. SQL null gives null. Raises `UnknownFormatError` at once, before the job runs.
    """
    get_format(format)
    if not rejects:

        def encode_all(texts: pa.Array) -> pa.Array:
            return encode_batch(texts, format)

        return column_function(encode_all, "binary", "cdc_encode")(col)

    def try_encode_all(texts: pa.Array) -> pa.Array:
        return try_encode_batch(texts, format)

    # Declared non-deterministic, because Spark would otherwise run the function twice for a filter on error.
    return column_function(try_encode_all, RESULT, "cdc_try_encode", is_deterministic=False)(col)


def decode(col: ColumnOrName, format: str) -> Column:
    """Decode a column of payloads (binary) as JSON text (string).

    A payload that cannot be read fails the job with its error. SQL null gives null. Raises
    `UnknownFormatError` at once, before the job runs.
    """
    get_format(format)

    def decode_all(payloads: pa.Array) -> pa.Array:
        return decode_batch(payloads, format)

    return column_function(decode_all, "string", "cdc_decode")(col)


def encode_batch(texts: pa.Array, format: str) -> pa.Array:
    """Encode an array of texts. Raises `MessageError`."""
    own = get_format(format)
    return convert_values(texts, own.encode, batch=own.encode_column)


def decode_batch(payloads: pa.Array, format: str) -> pa.Array:
    """Decode an array of payloads. Raises `PayloadError`."""
    own = get_format(format)
    return convert_values(payloads, own.decode_text, batch=own.decode_column).cast(pa.string())


def try_encode_batch(texts: pa.Array, format: str) -> pa.Array:
    """Encode an array of texts into a struct array of payload and error, of which one is null."""
    faults: dict[int, dict[str, str | None]] = {}

    def caught(place: int, error: MessageError) -> None:
        faults[place] = error.fields

    own = get_format(format)
    payloads = convert_values(texts, own.encode, caught, batch=own.encode_column)
    errors = pa.array([faults.get(i) for i in range(len(texts))], ERROR) if faults else pa.nulls(len(texts), ERROR)
    return pa.StructArray.from_arrays([payloads, errors], ["payload", "error"], mask=texts.is_null())


def convert_by_format(convert: Callable[[pa.Array, str], pa.Array], values: pa.Array, formats: pa.Array) -> pa.Array:
    """Convert each value by the format beside it, one format at a time; a null format gives null."""
    places: dict[str | None, list[int]] = {}
    for place, name in enumerate(formats.to_pylist()):
        places.setdefault(name, []).append(place)
    if not places or None in places:
        # Any format will do here: only the result's type matters, and nulls convert alike in all formats.
        places.setdefault(FORMATS[0], []).extend(places.pop(None, []))
        values = blank(values, formats.is_null())
    indices = {name: pa.array(rows, pa.int64()) for name, rows in places.items()}
    parts = [convert(values.take(rows), name or FORMATS[0]) for name, rows in indices.items()]
    order = pc.sort_indices(pa.concat_arrays(list(indices.values())))
    return pa.concat_arrays(parts).take(order)


TEXTS: Final = "map<string, string>"
_MAP: Final = pa.map_(pa.string(), pa.string())
_TEXT: Final = pa.struct([("text", pa.string())])
# What stands for a column value, beside null, in the order of the wire schemas.
_VALUE: Final = pa.struct(
    [
        ("boolean", pa.bool_()),
        ("long", pa.int64()),
        ("double", pa.float64()),
        ("string", pa.string()),
        ("number", _TEXT),
        ("json", _TEXT),
    ]
)
_BRANCHES: Final = {bool: "boolean", int: "long", float: "double", str: "string", dict: "number"}
_IMAGE: Final = pa.map_(pa.string(), _VALUE)
_EXPECTED: Final = "cdc_text takes a row image, map<string, struct of a column value>, or its to_json"


def cdc_text(image: Column | str) -> Column:
    """Convert a row image, as `from_avro` returns it, to `map<string, string>`.

    Numbers keep the digits of the message: `1.20` stays `1.20`. A boolean becomes `true` or `false`, an
    object or array its compact JSON text, and a JSON null is SQL null under its column's name.
    """

    def texts(images: pa.Array) -> pa.Array:
        return text_batch(images)

    return column_function(texts, TEXTS, "cdc_text", from_json={0: images_of})(image)


def text_batch(images: pa.Array) -> pa.Array:
    """Convert an array of row images to an array of maps of text. Raises `TypeError` for any other array."""
    if pa.types.is_null(images.type):
        return pa.nulls(len(images), _MAP)
    if not pa.types.is_map(images.type) or not pa.types.is_struct(images.type.item_type):
        raise TypeError(f"{_EXPECTED}, not {images.type}")
    if images.null_count or images.offset:
        # The slots of nulls may hold entries, which would join the row before; `take` makes them empty. Of a slice,
        # pyarrow 15 makes no map.
        images = images.take(pa.array(range(len(images)), pa.int64()))
    offsets = images.offsets
    if images.null_count:
        missing = pa.concat_arrays([images.is_null(), pa.array([False])])
        offsets = pc.if_else(missing, pa.scalar(None, pa.int32()), offsets)
    return pa.MapArray.from_arrays(offsets, images.keys, _texts(images.items), _MAP)


def _texts(values: pa.StructArray) -> pa.Array:
    """Return the text of each column value; branches are identified by position, whatever their names."""
    if values.type.num_fields != len(_VALUE):
        raise TypeError(f"a column value has {len(_VALUE)} branches beside null, not {values.type.num_fields}")
    boolean, long, double, string, number, nested = (pc.struct_field(values, [i]) for i in range(len(_VALUE)))
    return pc.coalesce(
        string,
        long.cast(pa.string()),
        boolean.cast(pa.string()),
        pa.array([None if value is None else repr(value) for value in double.to_pylist()], pa.string()),
        pc.struct_field(number, [0]),
        pc.struct_field(nested, [0]),
    )


def images_of_json(texts: pa.Array) -> pa.Array:
    """Return an array of row images made of their `to_json`. Raises `TypeError` for any other text."""
    try:
        return images_of([None if text is None else orjson.loads(text) for text in texts.to_pylist()])
    except orjson.JSONDecodeError as error:
        raise TypeError(f"{_EXPECTED}, not string") from error


def images_of(images: Sequence[Any]) -> pa.Array:
    """Return an array of row images made of the values in their `to_json`. Raises `TypeError` for any others.

    Nulls are left out there, so what is in a value tells its branch, whatever that is called.
    """
    return pa.array([None if image is None else _members(image) for image in images], _IMAGE)


def _members(image: Any) -> list[tuple[str, dict[str, Any] | None]]:
    if not isinstance(image, dict):
        raise TypeError(f"{_EXPECTED}, not that of {type(image).__name__}")
    return [(name, _value(value)) for name, value in image.items()]


def _value(value: Any) -> dict[str, Any] | None:
    """Return a column value with its one branch, which is null if there is none."""
    if value is None or value == {}:
        return None
    if not isinstance(value, dict) or len(value) > 1:
        raise TypeError(f"{_EXPECTED}, not that of a map of {type(value).__name__}")
    (held,) = value.values()
    # A number's digits and a text in JSON stand in a struct alike, and become text alike.
    return {_BRANCHES[type(held)]: {"text": next(iter(held.values()))} if isinstance(held, dict) else held}


_CHANGES_RESULT: Final = (
    "changes array<binary>, unzoned int, error struct<format: string, path: string, message: string>"
)
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

    `place` is a struct of where each message arrived, with those fields of `Change.place` that are known: topic,
    partition, offset, file, line; what it does not state is taken from the Kafka record around a message, if there is
    one. The order of changes needs it wherever the format's own numbers have ties. `zone` is the time zone of the
    source, and `unavailable` the placeholder for values that the source did not give, as in `cdcavro.to_changes`.
    Raises `UnknownFormatError`, `TypeError` for a `zone` that is not a time zone, and `ValueError` for an `unavailable`
    that cannot be a placeholder, all at once, before the job runs.
    """
    get_format(format)
    check_zone(zone)
    check_word(unavailable)

    def convert(texts: pa.Array) -> pa.Array:
        return changes_batch(texts, format, zone, unavailable=unavailable)

    def convert_placed(texts: pa.Array, places: pa.Array) -> pa.Array:
        return changes_batch(texts, format, zone, places, unavailable=unavailable)

    own = convert if place is None else convert_placed
    function = column_function(own, _CHANGES_RESULT, "cdc_changes", is_deterministic=False, from_json={1: pa.array})
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

    The value is that of `cdcavro.change.order_value` without a clock: it compares as `order_key` does in Python, so
    changes ordered by arrival belong in one topic partition or file. Its second byte says what orders a change and is
    the same for all changes of a table, except for rows of a full load, where it is zero: check it, since a comparison
    within Spark cannot fail. A change that has neither numbers nor a place fails the job. SQL null gives null.
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

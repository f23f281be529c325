"""Functions of Columns over Arrow batches: text ⇄ payload, with the converter of the whole package, and images as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from cdcavro.arrow.arrays import blank, convert_values
from cdcavro.spark.arrow_udf import column_function
from cdcavro.wire.formats import FORMATS, get_format

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import Column

    from cdcavro.errors import MessageError

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
    return convert_values(payloads, own.decode, batch=own.decode_column).cast(pa.string())


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

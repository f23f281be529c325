"""Converting the row images of `from_avro` to plain maps of text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from cdcavro.spark.arrow_udf import column_function

if TYPE_CHECKING:
    from pyspark.sql import Column

TEXTS: Final = "map<string, string>"
_MAP: Final = pa.map_(pa.string(), pa.string())
_MEMBERS: Final = 6


def cdc_text(image: Column | str) -> Column:
    """Convert a row image, as `from_avro` returns it, to `map<string, string>`.

    Numbers keep the digits of the message: `1.20` stays `1.20`. A boolean becomes `true` or `false`, an
    object or array its compact JSON text, and a JSON null is SQL null under its column's name.
    """

    def texts(images: pa.Array) -> pa.Array:
        return text_batch(images)

    column: Column = column_function(texts, TEXTS, "cdc_text")(image)
    return column


def text_batch(images: pa.Array) -> pa.Array:
    """Convert an array of row images to an array of maps of text. Raises `TypeError` for any other array."""
    if pa.types.is_null(images.type):
        return pa.nulls(len(images), _MAP)
    if not pa.types.is_map(images.type) or not pa.types.is_struct(images.type.item_type):
        raise TypeError(f"cdc_text takes a row image, map<string, struct of a column value>, not {images.type}")
    if images.null_count:
        # The slots of nulls may hold entries, which would join the row before; `take` makes them empty.
        images = images.take(pa.array(range(len(images)), pa.int64()))
    offsets = images.offsets
    if images.null_count:
        missing = pa.concat_arrays([images.is_null(), pa.array([False])])
        offsets = pc.if_else(missing, pa.scalar(None, pa.int32()), offsets)
    return pa.MapArray.from_arrays(offsets, images.keys, _texts(images.items), _MAP)


def _texts(values: pa.StructArray) -> pa.Array:
    """Return the text of each column value; branches are identified by position, whatever their names."""
    if values.type.num_fields != _MEMBERS:
        raise TypeError(f"a column value has {_MEMBERS} branches beside null, not {values.type.num_fields}")
    boolean, long, double, string, number, nested = (pc.struct_field(values, [i]) for i in range(_MEMBERS))
    return pc.coalesce(
        string,
        long.cast(pa.string()),
        boolean.cast(pa.string()),
        pa.array([None if value is None else repr(value) for value in double.to_pylist()], pa.string()),
        pc.struct_field(number, [0]),
        pc.struct_field(nested, [0]),
    )

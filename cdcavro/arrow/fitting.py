"""Fitting of Arrow arrays into the types of a schema's columns: exactly, or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa

from cdcavro.errors import MisfitError

if TYPE_CHECKING:
    from collections.abc import Callable

# Only within a family is a value the same value in another type.
_FAMILIES: Final[tuple[Callable[[pa.DataType], bool], ...]] = (
    pa.types.is_boolean,
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_decimal,
    pa.types.is_date,
    pa.types.is_time,
    lambda kind: pa.types.is_timestamp(kind) and kind.tz is None,
    lambda kind: pa.types.is_timestamp(kind) and kind.tz is not None,
    lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind) or str(kind) == "string_view",
    lambda kind: (
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_fixed_size_binary(kind)
        or str(kind) == "binary_view"
    ),
)


def fitted(array: pa.Array, wanted: pa.DataType, pointer: str) -> pa.Array:
    """Return an array of values in a type that has them exactly; `pointer` says where it stands in the batch.

    A value may be in a wider or in a narrower type of the same kind. Raises `MisfitError`.
    """
    if pa.types.is_dictionary(array.type):
        try:
            array = array.dictionary_decode()
        except (pa.ArrowInvalid, pa.ArrowIndexError) as error:
            raise MisfitError(str(wanted), "more than 2 GiB of a dictionary's values", pointer=pointer) from error
    if array.type == wanted:
        return array
    kind = array.type
    is_narrower = pa.types.is_floating(kind) and pa.types.is_floating(wanted) and kind.bit_width > wanted.bit_width
    is_same_family = any(holds(kind) and holds(wanted) for holds in _FAMILIES)
    if not pa.types.is_null(kind) and (not is_same_family or is_narrower):
        raise MisfitError(str(wanted), str(kind), pointer=pointer)
    try:
        return array.cast(wanted)
    except pa.ArrowInvalid as error:
        raise MisfitError(f"{wanted}, exactly", f"{kind}: {str(error).splitlines()[0]}", pointer=pointer) from error

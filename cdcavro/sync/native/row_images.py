"""Row images: what typed payloads of any versions say of rows, as Arrow arrays with the types of a lake's columns."""

from __future__ import annotations

from bisect import bisect_left
from functools import reduce
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from cdcavro.arrow import to_arrow
from cdcavro.arrow.arrays import blank, places
from cdcavro.arrow.layout import row_names
from cdcavro.errors import SchemaError, shown
from cdcavro.lake.lake_columns import arrow_type, readings
from cdcavro.lake.sql_statements import HEADERS, INSTANTS
from cdcavro.table.older_fields import ENVELOPE
from cdcavro.table.table_schema import MISSING
from cdcavro.table.table_schema import UNPARSED as TEXTS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from cdcavro.lake.evolution import LakeColumn
    from cdcavro.lake.sql_statements import ChangeColumn
    from cdcavro.table.table_schema import TableSchema

    # A column of a version, and the lake's column that holds it.
    Pair = tuple[LakeColumn, LakeColumn]

# How many bytes of payloads are read at a time: their columns, most of which are not kept, take several times as many.
_MAX_SIZE: Final = 4 << 20
_WITHIN: Final = (pc.greater_equal, pc.less_equal)


def binary(column: pa.ChunkedArray) -> pa.Array:
    """Return a column as one array."""
    whole = column.combine_chunks()
    return whole if isinstance(whole, pa.Array) else pa.concat_arrays(whole.chunks)


def last_of_each(keys: pa.Array, orders: pa.Array) -> pa.Array:
    """Return the places of the rows that have the highest order of each key."""
    count, ascending = len(keys), None
    if count > 1 and not pc.all(pc.less_equal(orders.slice(0, count - 1), orders.slice(1))).as_py():
        ascending = pc.sort_indices(orders)
        keys = keys.take(ascending)
    coded = pa.table({"code": keys.dictionary_encode().indices, "place": places(count)})
    last = binary(coded.group_by("code").aggregate([("place", "max")]).column("place_max"))
    return last if ascending is None else ascending.take(last)


def look_up(keys: pa.Array, known: pa.Array, values: pa.Array) -> pa.Array:
    """Return the value of each key, `values` being those of `known`, which has no key twice; null of another key."""
    return values.take(pc.index_in(keys, known))


def row_parts(
    rows: pa.Table, versions: Sequence[TableSchema], present: Sequence[LakeColumn]
) -> list[tuple[pa.Table, Sequence[TableSchema]]]:
    """Return typed rows in parts, oldest versions first, each with the versions under which it is read.

    There are several parts where a statement behind some rows dropped a column that the lake table has, whose columns
    `present` are: those rows still have values for it.
    """
    numbers = rows.column("version")
    first, newest = pc.min(numbers).as_py(), versions[-1].version
    found = readings(versions, newest if first is None else first, present)
    if len(found) == 1:
        return [(rows, versions)]
    numbers, before = pc.fill_null(numbers, newest), 0
    parts: list[tuple[pa.Table, Sequence[TableSchema]]] = []
    for last, known in found:
        part = rows.filter(pc.and_(pc.greater(numbers, before), pc.less_equal(numbers, last)))
        parts += [(part, known)] if len(part) else []
        before = last
    return parts


def read_envelopes(
    rows: pa.Table, chosen: pa.Array | None, versions: Sequence[TableSchema]
) -> Iterator[tuple[pa.Array | None, pa.RecordBatch]]:
    """Read the payloads of typed rows under the newest version, some at a time: yield the places of rows and envelopes.

    `chosen` are the places of the rows that are read, None for all of them. Envelopes have the headers of their rows
    beside them, if rows have any. Raises as `to_arrow` does.
    """
    beside = [name for name in (HEADERS,) if name in rows.column_names]
    read = rows.select(["version", "payload", *beside])
    lengths = [pc.binary_length(read.column(name)).fill_null(0).cast(pa.int64()) for name in ("payload", *beside)]
    sizes = reduce(pc.add, lengths)
    if chosen is not None:
        # The rows of a message repeat its headers, so that all of them may be more than an array holds.
        for i, name in enumerate(beside, 2):
            read = read.set_column(i, name, read.column(name).dictionary_encode())
        read, sizes = read.take(chosen), sizes.take(chosen)
    sizes = pc.cumulative_sum(sizes)
    count = start = read_bytes = 0
    while start < len(read):
        end = bisect_left(range(len(read)), read_bytes + _MAX_SIZE, start, key=lambda i: int(sizes[i].as_py()))
        count = max(end - start, 1)
        part = read.slice(start, count)
        payloads, numbers = binary(part.column("payload")), binary(part.column("version"))
        envelopes = to_arrow(payloads, versions, numbers)
        for name in beside:
            envelopes = envelopes.append_column(name, binary(part.column(name).cast(pa.string())))
        yield (None if chosen is None else chosen.slice(start, count)), envelopes
        start += count
        read_bytes = int(sizes[start - 1].as_py())


class ImageReader:
    """Reads images of rows as columns of a lake; `pairs` are the columns of the newest version that the lake has.

    `types` are the types of the lake's columns by their names.
    """

    def __init__(self, newest: TableSchema, pairs: Sequence[Pair], types: Mapping[str, pa.DataType]) -> None:
        (names,) = row_names(newest, ENVELOPE).values()
        self._columns = [(names[wanted.field], held.name, types[held.name]) for wanted, held in pairs]

    def columns(self, image: pa.StructArray) -> dict[str, pa.Array]:
        """Return the lake's columns of images; those of an image that is null are null."""
        fields = parts(image)
        return {name: in_lake(fields[own], kind, name) for own, name, kind in self._columns}


def change_values(
    envelopes: pa.RecordBatch, held: Mapping[str, ChangeColumn], chosen: Collection[str]
) -> dict[str, pa.Array]:
    """Return the columns about changes that a lake table has (`held`, by their words), null unless they are chosen."""
    fields = parts(envelopes.column("source")) if held else {}
    found = {}
    if HEADERS in envelopes.schema.names:
        fields[HEADERS] = envelopes.column(HEADERS)
    for word, column in held.items():
        kind = arrow_type(column.type)
        is_there = word in chosen and not (column.is_beside and word not in fields)
        values = [fields[name] for name in column.fields] if is_there else [pa.nulls(len(envelopes), kind)]
        if len(values) > 1:
            # Arrow's own join that skips nulls returns nothing at all for nulls alone.
            joined = reduce(
                lambda one, other: pc.coalesce(pc.binary_join_element_wise(one, other, "."), one, other), values
            )
            values = [pc.if_else(pc.equal(joined, ""), None, joined)]
        if pa.types.is_timestamp(kind) and pa.types.is_integer(values[0].type):
            is_instant = pc.and_(*(compare(values[0], end) for compare, end in zip(_WITHIN, INSTANTS, strict=True)))
            values = [pc.if_else(is_instant, values[0], None)]
        found[column.name] = values[0].cast(kind)
    return found


def parts(image: pa.StructArray) -> dict[str, pa.Array]:
    """Return the fields of images by their names."""
    return dict(zip([field.name for field in image.type], image.flatten(), strict=True))


def texts_of(image: pa.StructArray) -> pa.Array:
    """Return the texts that no column's type can carry, by column; null where there are none."""
    return filled_only(parts(image)[TEXTS])


def absent_of(image: pa.StructArray) -> pa.Array:
    """Return the columns that images lack; null where they lack none."""
    return filled_only(parts(image)[MISSING])


def lengths(nested: pa.Array) -> pa.Array:
    """Return how many items each list or map has; 0 of one that is null."""
    ends = nested.offsets
    return pc.if_else(nested.is_valid(), pc.subtract(ends.slice(1), ends.slice(0, len(nested))), 0)


def filled_only(nested: pa.Array) -> pa.Array:
    """Return lists or maps, null where they have nothing."""
    is_empty = pc.equal(lengths(nested), 0)
    if pc.all(is_empty).as_py():
        return pa.nulls(len(nested), nested.type)
    return blank(nested, is_empty) if pc.any(is_empty).as_py() else nested


def in_lake(values: pa.Array, kind: pa.DataType, name: str) -> pa.Array:
    """Return values in the type of the lake's column that has a name, as Spark's CAST returns them in ANSI mode.

    Raises `SchemaError` for a value that the type does not hold, and for types between which the casts of Arrow and
    Spark may differ: a behavior has let the column stay as it was.
    """
    if values.type == kind:
        return values
    if _is_rounded(values.type, kind):
        values = pc.round(values, kind.scale, "half_towards_infinity")
    elif pa.types.is_floating(values.type) and pa.types.is_integer(kind):
        values = pc.trunc(values)
    elif not _is_same_cast(values.type, kind):
        raise SchemaError(name, f"values of {values.type} are not written into the lake's column of {kind}")
    try:
        return values.cast(kind)
    except pa.ArrowInvalid as error:
        reason = str(error).partition("\n")[0]
        raise SchemaError(name, f"a value does not fit into the lake's column: {shown(reason)}") from error


def _is_rounded(old: pa.DataType, new: pa.DataType) -> bool:
    return bool(pa.types.is_decimal(old) and pa.types.is_decimal(new) and new.scale < old.scale)


def _is_same_cast(old: pa.DataType, new: pa.DataType) -> bool:
    types = pa.types
    if types.is_null(old):
        return True
    if types.is_time(old) or types.is_timestamp(old):
        is_same_kind = types.is_timestamp(old) and types.is_timestamp(new) and (old.tz is None) == (new.tz is None)
        return bool(is_same_kind or types.is_integer(new))
    is_number = types.is_integer(old) or types.is_decimal(old)
    if is_number and types.is_string(new):
        return bool(types.is_integer(old))
    if types.is_nested(old) or types.is_nested(new):
        return bool(types.is_nested(old) and types.is_nested(new))
    is_wide = is_number or types.is_floating(old)
    is_to_number = types.is_integer(new) or types.is_floating(new) or types.is_decimal(new)
    return bool(is_wide and is_to_number and not (types.is_floating(old) and types.is_decimal(new)))

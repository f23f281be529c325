"""Older values of columns: rows that were written before a column changed its type, with their values in the new one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from cdcavro.table.fields import avro_of
from cdcavro.table.older_fields import filled_value, heirs, is_fillable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def filled(columns: list[pa.Array], fields: Sequence[Mapping[str, Any]]) -> list[pa.Array]:
    """Return the columns of rows, the newer ones with the values of the older ones where exact.

    `fields` are the fields of the rows' record as JSON values, one for each column. The rules are those of
    `cdcavro.table.older_fields`.
    """
    places = {field["name"]: i for i, field in enumerate(fields)}
    types = {field["name"]: avro_of(dict(field)) for field in fields}
    found = list(columns)
    for name, older in heirs((field["name"], field) for field in fields).items():
        for old in older:
            if is_fillable(types[old], types[name]):
                at = places[name]
                found[at] = _filled(found[at], columns[places[old]], types[old], types[name])
    return found


def _filled(newer: pa.Array, older: pa.Array, old: Any, new: Any) -> pa.Array:
    wanted = pc.and_(newer.is_null(), older.is_valid())
    if not pc.any(wanted).as_py():
        return newer
    values = [filled_value(value, old, new) for value in older.filter(wanted).to_pylist()]
    return pc.replace_with_mask(newer, wanted, pa.array(values, newer.type))

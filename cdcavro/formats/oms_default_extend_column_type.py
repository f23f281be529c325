"""OMS Community Edition, DefaultExtendColumnType serialization (`avsc/oms_default_extend_column_type.avsc`).

Source: OMS data formats, "DefaultExtendColumnType-compatible JSON message format".

* Like `oms_default`, plus `__light_type` inside the row images: the declared type of each column. It is not a column.
* A column of that name in a change of another format has no place here.
* A DELETE has its types in `prevStruct`; DDL statements and heartbeats have none and look as in `oms_default`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cdcavro.change.model import Change, Column, Row, replace
from cdcavro.change.operations import spell_operation, statement_text
from cdcavro.exact.jsontext import at, string_at
from cdcavro.formats.bridge import Bridge
from cdcavro.formats.oms_default import SPELLINGS, change_of, record_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import tzinfo

FORMAT: Final = "oms_default_extend_column_type"
_TYPES: Final = "__light_type"


def to_changes(record: dict[str, Any], _zone: tzinfo | None = None) -> list[Change]:
    """Return the change of a record, with `__light_type` removed from its row images."""
    before, after = record.get("prevStruct"), record.get("postStruct")
    change = change_of(record, FORMAT, _without_types(before), _without_types(after))
    types = at(after, _TYPES) if at(after, _TYPES) is not None else at(before, _TYPES)
    if type(types) is not dict:
        return [change]
    columns = tuple(Column(name=name, type=string_at(types, name, "schemaType")) for name in types)
    return [replace(change, columns=columns)]


def from_changes(changes: Sequence[Change], _zone: tzinfo | None = None) -> list[dict[str, Any]]:
    """Return the records of changes, with the declared types in their row images; transaction marks have none."""
    records = []
    for change in changes:
        if spell_operation(change, FORMAT, SPELLINGS) is not None:
            record = record_of(change, FORMAT)
            records.append(record | {name: _with_types(record[name], change) for name in ("prevStruct", "postStruct")})
    return records


def _without_types(image: Row | None) -> Row | None:
    if image is None or _TYPES not in image:
        return image
    return {name: value for name, value in image.items() if name != _TYPES}


def _with_types(image: Row | None, change: Change) -> Row | None:
    image = _without_types(image)
    if image is None or change.columns is None or statement_text(change) is not None:
        return image
    types = {column.name: {"schemaType": column.type} for column in change.columns if column.name is not None}
    return image | {_TYPES: types}


BRIDGE: Final = Bridge(to_changes=to_changes, from_changes=from_changes)

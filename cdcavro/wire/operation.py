"""What kind of change a record is, in the words of its format: the member that the wire schema marks."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from cdcavro.exact.numbers import plain_text
from cdcavro.wire.attributes import field_rule, marked
from cdcavro.wire.formats import get_format

if TYPE_CHECKING:
    from cdcavro.wire.format import Format

NONE: Final = "(none)"
TOMBSTONE: Final = "TOMBSTONE"
_KEPT: Final = 64


def operation(record: dict[str, Any], format: Format) -> str:
    """Return the operation of a record as it is spelled there; `TOMBSTONE` for one, `(none)` where the record has none.

    >>> operation({"payload": {"op": "UPDATE_BEFOR"}}, get_format("oms_dataworks"))
    'UPDATE_BEFOR'
    >>> operation({"key": {"id": 1}, "value": None}, get_format("debezium"))
    'TOMBSTONE'
    """
    for names in _members(format, "operation"):
        found: Any = record
        for name in names:
            found = found.get(name) if isinstance(found, dict) else None
        if found is not None:
            return NONE if isinstance(found, (dict, list)) else plain_text(found)
    return TOMBSTONE if any(_is_null(record, way) for way in _members(format, "tombstone")) else NONE


def tombstone_pointers(format: str) -> list[str]:
    """Return the pointers at which `extras` of a tombstone says null.

    >>> tombstone_pointers("debezium"), tombstone_pointers("oms_canal")
    (['/value', '/value/payload', '/payload'], [])
    """
    return [f"/{'/'.join(way)}" for way in _members(get_format(format), "tombstone")]


def operation_paths(format: str) -> list[tuple[str, ...]]:
    """Return the ways to the operation of a format, each the names of its Avro fields, from the outside.

    There are several where a message may have several shapes. Raises `UnknownFormatError`.

    >>> operation_paths("oms_dataworks")
    [('payload', 'op')]
    """
    return [tuple(field.name for field in way) for way, _ in marked(get_format(format).envelope, "operation")]


def _is_null(record: Any, way: tuple[str, ...]) -> bool:
    for name in way:
        if not isinstance(record, dict) or name not in record:
            return False
        record = record[name]
    return record is None


@lru_cache(maxsize=_KEPT)
def _members(format: Format, mark: str) -> list[tuple[str, ...]]:
    """Return the ways to the members that a wire schema marks so, each the names of JSON members."""
    return [tuple(field_rule(field).name for field in way) for way, _ in marked(format.envelope, mark)]

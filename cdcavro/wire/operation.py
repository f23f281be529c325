"""The operation of a record as its format spells it, from the member that the wire schema marks."""

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
    """Return the operation of a record as it is spelled there, `TOMBSTONE` for a tombstone, or `(none)` if it has none.

    >>> operation({"payload": {"op": "UPDATE_BEFOR"}}, get_format("oms_dataworks"))
    'UPDATE_BEFOR'
    >>> operation({"key": {"id": 1}, "value": None}, get_format("debezium"))
    'TOMBSTONE'
    """
    record = format.opened(record)
    for names in _members(format, "operation"):
        value: Any = record
        for name in names:
            value = value.get(name) if isinstance(value, dict) else None
        if value is not None:
            return NONE if isinstance(value, (dict, list)) else plain_text(value)
    return TOMBSTONE if any(_is_null(record, names) for names in _members(format, "tombstone")) else NONE


def tombstone_pointers(format: str) -> list[str]:
    """Return the JSON pointers at which the `extras` of a tombstone hold null.

    >>> tombstone_pointers("debezium"), tombstone_pointers("oms_canal")
    (['/value', '/value/payload', '/payload'], [])
    """
    return [f"/{'/'.join(names)}" for names in _members(get_format(format), "tombstone")]


def operation_paths(format: str) -> list[tuple[str, ...]]:
    """Return the paths to a format's operation, each as the names of its Avro fields, outermost first.

    There are several if messages come in several shapes. Raises `UnknownFormatError`.

    >>> operation_paths("oms_dataworks")
    [('payload', 'op')]
    """
    return [tuple(field.name for field in path) for path, _ in marked(get_format(format).envelope, "operation")]


def _is_null(record: Any, names: tuple[str, ...]) -> bool:
    for name in names:
        if not isinstance(record, dict) or name not in record:
            return False
        record = record[name]
    return record is None


@lru_cache(maxsize=_KEPT)
def _members(format: Format, mark: str) -> list[tuple[str, ...]]:
    """Return the paths to the members that a wire schema marks with `mark`, each as the names of JSON members."""
    return [tuple(field_rule(field).name for field in path) for path, _ in marked(format.envelope, mark)]

"""What kind of change a record is, in the words of its format: the member that the wire schema marks."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from cdcavro.avro.types import Field, Record, Type, Union
from cdcavro.formats import get_format
from cdcavro.wire.attributes import field_rule
from cdcavro.wire.writing.values import plain_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cdcavro.wire.format import Format

NONE: Final = "(none)"
TOMBSTONE: Final = "TOMBSTONE"
# Where a message that is null says that nothing more is to come of a key.
_TOMBSTONES: Final = {"debezium": (("value",), ("value", "payload"), ("payload",))}
_KEPT: Final = 64


def operation(record: dict[str, Any], format: Format) -> str:
    """Give the operation of a record as it is spelled there; `TOMBSTONE` for one, `(none)` where the record has none.

    >>> operation({"payload": {"op": "UPDATE_BEFOR"}}, get_format("oms_dataworks"))
    'UPDATE_BEFOR'
    >>> operation({"key": {"id": 1}, "value": None}, get_format("debezium"))
    'TOMBSTONE'
    """
    for names in _members(format):
        found: Any = record
        for name in names:
            found = found.get(name) if isinstance(found, dict) else None
        if found is not None:
            return NONE if isinstance(found, (dict, list)) else plain_text(found)
    return TOMBSTONE if any(_is_null(record, way) for way in _TOMBSTONES.get(format.name, ())) else NONE


def tombstone_pointers(format: str) -> list[str]:
    """Give the pointers at which `extras` of a tombstone says null.

    >>> tombstone_pointers("debezium"), tombstone_pointers("oms_canal")
    (['/value', '/value/payload', '/payload'], [])
    """
    return [f"/{'/'.join(way)}" for way in _TOMBSTONES.get(format, ())]


def operation_paths(format: str) -> list[tuple[str, ...]]:
    """Give the ways to the operation of a format, each the names of its Avro fields, from the outside.

    There are several where a message may have several shapes. Raises `UnknownFormatError`.

    >>> operation_paths("oms_dataworks")
    [('payload', 'op')]
    """
    return [tuple(one.name for one in way) for way in _ways(get_format(format).envelope)]


def _is_null(record: Any, way: tuple[str, ...]) -> bool:
    for name in way:
        if not isinstance(record, dict) or name not in record:
            return False
        record = record[name]
    return record is None


@lru_cache(maxsize=_KEPT)
def _members(format: Format) -> list[tuple[str, ...]]:
    return [tuple(field_rule(one).name for one in way) for way in _ways(format.envelope)]


def _ways(declared: Type) -> Iterator[tuple[Field, ...]]:
    for branch in declared.branches if isinstance(declared, Union) else (declared,):
        for one in branch.fields if isinstance(branch, Record) else ():
            if field_rule(one).operation:
                yield (one,)
            for below in _ways(one.type):
                yield (one, *below)

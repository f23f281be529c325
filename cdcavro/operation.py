"""What kind of change a record is, in the words of its format: the member that the wire schema marks."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from cdcavro.attributes import field_rule
from cdcavro.formats import get_format
from cdcavro.scalars import plain_text
from cdcavro.types import Field, Record, Type, Union

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cdcavro.format import Format

NONE: Final = "(none)"
_KEPT: Final = 64


def operation(record: dict[str, Any], format: Format) -> str:
    """Give the operation of a record as it is spelled there; `(none)` where the record has none.

    >>> operation({"payload": {"op": "UPDATE_BEFOR"}}, get_format("oms_dataworks"))
    'UPDATE_BEFOR'
    """
    for names in _members(format):
        found: Any = record
        for name in names:
            found = found.get(name) if isinstance(found, dict) else None
        if found is not None:
            return NONE if isinstance(found, (dict, list)) else plain_text(found)
    return NONE


def operation_paths(format: str) -> list[tuple[str, ...]]:
    """Give the ways to the operation of a format, each the names of its Avro fields, from the outside.

    There are several where a message may have several shapes. Raises `UnknownFormatError`.

    >>> operation_paths("oms_dataworks")
    [('payload', 'op')]
    """
    return [tuple(one.name for one in way) for way in _ways(get_format(format).envelope)]


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

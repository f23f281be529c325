"""What kind of change a record is, in the words of its format: the member that the wire schema marks."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from cdcavro.attributes import field_rule
from cdcavro.formats import get_format
from cdcavro.scalars import plain_text
from cdcavro.types import Field, Record, Type, Union

if TYPE_CHECKING:
    from cdcavro.format import Format

NONE: Final = "(none)"
_KEPT: Final = 64


def operation(record: dict[str, Any], format: Format) -> str:
    """Give the operation of a record as it is spelled there; `(none)` where the record has none.

    >>> operation({"payload": {"op": "UPDATE_BEFOR"}}, get_format("oms_dataworks"))
    'UPDATE_BEFOR'
    """
    found: Any = record
    for name in _members(format):
        found = found.get(name) if isinstance(found, dict) else None
    return NONE if found is None or isinstance(found, (dict, list)) else plain_text(found)


def operation_path(format: str) -> tuple[str, ...]:
    """Give the names of the Avro fields that lead to the operation of a format, from the outside.

    Raises `UnknownFormatError`.

    >>> operation_path("oms_dataworks")
    ('payload', 'op')
    """
    return tuple(one.name for one in _fields(get_format(format).envelope))


@lru_cache(maxsize=_KEPT)
def _members(format: Format) -> tuple[str, ...]:
    return tuple(field_rule(one).name for one in _fields(format.envelope))


def _fields(declared: Type) -> tuple[Field, ...]:
    for branch in declared.branches if isinstance(declared, Union) else (declared,):
        for one in branch.fields if isinstance(branch, Record) else ():
            if field_rule(one).operation:
                return (one,)
            below = _fields(one.type)
            if below:
                return (one, *below)
    return ()

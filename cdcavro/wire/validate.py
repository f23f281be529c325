"""Validating: a message goes to a payload and back, and must come back as the same JSON value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cdcavro.errors import StructureError
from cdcavro.exact import jsontext

if TYPE_CHECKING:
    from cdcavro.wire.format import Format


def validate(message: bytes | str, format: Format) -> dict[str, Any]:
    """Encode a message, decode the payload, and compare the two JSON values exactly; gives the record.

    Raises `TextError`, `StructureError`, `PayloadError`.
    """
    record = format.read(format.encode(message))
    place = difference(jsontext.parse(message), jsontext.parse(jsontext.render(record)))
    if place is not None:
        raise StructureError("the same value back", "another one", pointer=place, format=format.name)
    return record


def difference(left: Any, right: Any) -> str | None:
    """Return the JSON pointer of the first place where two values of `jsontext.parse` differ; None if nowhere.

    Types count, so that 1, 1.0 and true are three values, and so do the digits of numbers; the order
    of members does not.

    >>> difference({"a": [1, 2]}, {"a": [1, 2.0]})
    '/a/1'
    """
    if type(left) is not type(right):
        return ""
    if isinstance(left, dict):
        if left.keys() != right.keys():
            return ""
        steps = ((jsontext.escape(name), item, right[name]) for name, item in left.items())
    elif isinstance(left, list):
        if len(left) != len(right):
            return ""
        steps = ((str(i), *pair) for i, pair in enumerate(zip(left, right, strict=True)))
    else:
        return None if repr(left) == repr(right) else ""
    for token, one, other in steps:
        below = difference(one, other)
        if below is not None:
            return f"/{token}{below}"
    return None

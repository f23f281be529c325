"""Parsing of JSON text by msgspec, wherever msgspec is exact.

msgspec hides two things: a repeated member and `-0`. Its value is therefore used only if the text
holds no `-0` and exactly as many member separators as the value has members; `jsontext` does the rest.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from cdcavro.errors import MessageError, TextError
from cdcavro.exact import jsontext
from cdcavro.exact.numbers import check_finite, fraction
from cdcavro.exact.scan import has_long_number, has_members

loads: Final = msgspec.json.Decoder(float_hook=fraction).decode


def parse_quickly(raw: bytes, above: int) -> Any:
    """Parse JSON text as `jsontext.parse` does, but return None where msgspec is not exact and for every fault."""
    # msgspec turns a number beyond 64 bits into an int.
    if has_long_number(raw):
        return None
    try:
        value = loads(raw)
        members = count_members(value, above + 1)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, MessageError):
        return None
    return value if has_members(raw, members) else None


def parse_soon(text: bytes | str, above: int = 0) -> Any:
    """Return what `jsontext.parse` does, sooner where msgspec is exact, and raise what it raises."""
    raw = jsontext.to_bytes(text)
    value = parse_quickly(raw, above)
    return jsontext.parse(raw, above) if value is None else value


def check_value(value: Any, depth: int) -> None:
    """Check a JSON value that is at level `depth`.

    Raises `TextError` beyond 128 levels and `StructureError` for a number that is not finite.
    """
    count_members(value, depth)


def count_members(value: Any, depth: int) -> int:
    """Return how many members all objects in a JSON value have together; the value is at level `depth`.

    Raises `TextError` beyond 128 levels and `StructureError` for a number that is not finite.
    """
    if type(value) is dict:
        items: Any = value.values()
        members = len(value)
    elif type(value) is list:
        items = value
        members = 0
    else:
        if type(value) is float:
            check_finite(value)
        return 0
    if depth > jsontext.MAX_DEPTH:
        raise TextError(f"at most {jsontext.MAX_DEPTH} levels", "a level more")
    is_last = depth == jsontext.MAX_DEPTH
    for item in items:
        own = type(item)
        # A call for each scalar, or empty array, would take most of the time.
        if own is float or ((own is dict or own is list) and (item or is_last)):
            members += count_members(item, depth + 1)
    return members

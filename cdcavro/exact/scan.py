"""JSON text scanned without parsing it: what a number is, and what the fast way must not miss.

`scan.pyx` has the same names with the same behaviour over C pointers, and takes the place of this
module where it was compiled.
"""

from __future__ import annotations

import re
from typing import Final

_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?", re.ASCII)


_NEGATIVE_ZERO: Final = re.compile(rb"-0[\s,}\]]")
_LONG_NUMBER: Final = re.compile(rb"[0-9]{19}")
_SPACED_COLON: Final = (b" :", b"\t:", b"\n:", b"\r:")


def is_number(text: str) -> bool:
    """Return whether a text is exactly one JSON number (RFC 8259, section 6)."""
    return _NUMBER.fullmatch(text) is not None


def has_members(raw: bytes, members: int) -> bool:
    """Return whether a JSON text has so many members, however often each, and does not hold the number `-0`.

    False also where that is hard to tell.
    """
    if b"-0" in raw and _NEGATIVE_ZERO.search(raw):
        return False
    found = raw.count(b'":')
    escaped = raw.count(b'\\":')
    if any(colon in raw for colon in _SPACED_COLON):
        return False
    # The quote in \\": is no escaped one.
    return found == members if escaped and b'\\\\"' in raw else found - escaped == members


def has_long_number(raw: bytes) -> bool:
    """Return whether a text has 19 digits on end, as an integer beyond 64 bits has."""
    return _LONG_NUMBER.search(raw) is not None

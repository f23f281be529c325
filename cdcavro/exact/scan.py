"""Scans of JSON text without parsing it: what is a number, and what the fast parser would miss."""

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
    """Return whether a JSON text has exactly `members` members, repeated ones included, and no number `-0`.

    Return False, too, where that is hard to decide.
    """
    if b"-0" in raw and _NEGATIVE_ZERO.search(raw):
        return False
    separators = raw.count(b'":')
    escaped = raw.count(b'\\":')
    if any(colon in raw for colon in _SPACED_COLON):
        return False
    # The quote in \\": is not escaped: the backslash before it is.
    return separators == members if escaped and b'\\\\"' in raw else separators - escaped == members


def has_long_number(raw: bytes) -> bool:
    """Return whether a text has 19 digits in a row, as any integer beyond 64 bits has."""
    return _LONG_NUMBER.search(raw) is not None

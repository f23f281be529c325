"""Bytes as base64 text."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any


def bytes_of(text: Any) -> bytes | None:
    r"""Return the bytes that a base64 text encodes; None for anything but the one standard text of some bytes.

    >>> bytes_of("AkY="), bytes_of("AkZ=")
    (b'\x02F', None)
    """
    try:
        raw = b64decode(text, validate=True) if type(text) is str else None
    except ValueError:
        return None
    return raw if raw is None or b64encode(raw).decode() == text else None

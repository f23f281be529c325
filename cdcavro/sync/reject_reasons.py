"""Reasons of rejects without the values of messages, so that there are few, and where one of each arrived."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from cdcavro.files.streams import plain_path

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST_REASONS: Final = 200
# How many characters a reason has at most.
LONGEST: Final = 500
# What stands before what came, in a sentence on a message.
GOT: Final = ", got "
# What a sentence shows of a message: quoted, or a number, also a byte's (0xef) and a character's (U+FEFF).
SHOWN_VALUE: Final = (
    r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|0x[0-9A-Fa-f]+|U\+[0-9A-Fa-f]+|-?[0-9][0-9,.]*(?:[eE][-+]?[0-9]+)?"""
)
INDEX: Final = r"\[[0-9]+\]"
_VALUE: Final = re.compile(SHOWN_VALUE)
_INDEXES: Final = re.compile(INDEX)
_LOGIN: Final = re.compile(r"//[^/@]*@")


def reason_key(format: str | None, path: str | None, reason: str | None) -> tuple[str, str, str]:
    """Return the format of a reject, its path without indexes, and its sentence without both."""
    prefix, said = f"{format or 'message'}: {path or '$'}: ", reason or ""
    return format or "", _INDEXES.sub("[*]", path or ""), said.removeprefix(prefix)[:LONGEST]


def kind_of(sentence: str) -> str:
    """Return a sentence without its values, which stand behind what was expected.

    >>> kind_of("expected an integer, got 'x1' at 7")
    'expected an integer, got … at …'
    """
    before, got, behind = sentence.partition(GOT)
    return (before + got + _VALUE.sub("…", behind))[:LONGEST]


def place_of(one: Mapping[str, Any]) -> str:
    """Return where a message arrived, without a login."""
    if one["file"] is not None:
        # The address of a bucket may have a login.
        return f"{_LOGIN.sub('//', plain_path(one['file']))} line {one['line']}"
    return "" if one["topic"] is None else f"{one['topic']} partition {one['partition']} offset {one['offset']}"

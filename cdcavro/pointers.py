"""`extras` put back into a record: JSON pointers (RFC 6901) to texts, each checked before it goes in.

An empty text takes the member away; any other is parsed and takes the member's place. No pointer
may lead into what another one puts in, and each one's parent is there already, so that their order
does not matter.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cdcavro import text
from cdcavro.errors import PayloadError, TextError, shown
from cdcavro.text import unescape

if TYPE_CHECKING:
    from collections.abc import Mapping


_TILDE: Final = re.compile("~(?![01])")


class Place(NamedTuple):
    """A member that the schema names: whether it is a scalar, and whether a message must have it."""

    is_scalar: bool
    is_required: bool


def apply(record: dict[str, Any], extras: Mapping[str, str], places: Mapping[str, Place] | None = None) -> None:
    """Apply `extras` to a record, in place; `places` are the members that the schema names, by pointer.

    Raises `PayloadError`: no pointer, a parent that is not there, a text that is not JSON or not what
    may stand in its place.

    >>> record = {"a": 1, "b": 2}
    >>> apply(record, {"/a": "1.0", "/b": "", "/c": "[]"})
    >>> record
    {'a': 1.0, 'c': []}
    """
    known = places or {}
    for pointer, value in extras.items():
        _check(pointer, extras)
        _check_place(pointer, value, known)
    for pointer, value in extras.items():
        parent, token = _parent(record, pointer)
        if type(parent) is list:
            parent[_index(parent, token, pointer)] = _parsed(value, pointer)
        elif value == "":
            parent.pop(unescape(token), None)
        else:
            parent[unescape(token)] = None if value == "null" else _parsed(value, pointer)


def _check(pointer: str, extras: Mapping[str, str]) -> None:
    if pointer[:1] != "/":
        raise PayloadError("a JSON pointer in extras", shown(pointer))
    if pointer.count("/") > text.MAX_DEPTH:
        raise PayloadError(f"at most {text.MAX_DEPTH} levels in extras", "more", pointer=pointer)
    if len(extras) == 1:
        return
    end = pointer.rfind("/")
    while end > 0:
        if pointer[:end] in extras:
            raise PayloadError("extras that lie apart", f"one inside {shown(pointer[:end])}", pointer=pointer)
        end = pointer.rfind("/", 0, end)


def _check_place(pointer: str, value: str, places: Mapping[str, Place]) -> None:
    if "~" in pointer and _TILDE.search(pointer):
        raise PayloadError("~0 and ~1 only in a JSON pointer in extras", shown(pointer))
    place = places.get(pointer)
    if place is None:
        return
    bare = value.strip(" \t\r\n") if value not in ("", "null") else value
    if value == "" or bare == "null":
        if place.is_required:
            raise PayloadError("a required member", bare or "none", pointer=pointer)
    elif not place.is_scalar:
        raise PayloadError("null or nothing in extras in place of an object or array", shown(value), pointer=pointer)
    elif bare.startswith(("[", "{")):
        raise PayloadError("a scalar in extras in place of a scalar", shown(value), pointer=pointer)


def _parent(record: dict[str, Any], pointer: str) -> tuple[Any, str]:
    place: Any = record
    tokens = pointer.split("/")
    last = tokens.pop()
    for token in tokens[1:]:
        if type(place) is dict:
            place = place.get(unescape(token) if "~" in token else token)
        elif type(place) is list:
            place = place[_index(place, token, pointer)]
        else:
            break
    if type(place) is not dict and type(place) is not list:
        raise PayloadError("a parent in the record for a pointer in extras", "none", pointer=pointer)
    return place, last


def _index(items: list[Any], token: str, pointer: str) -> int:
    if token.isascii() and token.isdigit() and len(token) < 10 and str(int(token)) == token:  # noqa: PLR2004
        index = int(token)
        if index < len(items):
            return index
    raise PayloadError(f"an index below {len(items)} in extras", shown(token), pointer=pointer)


def _parsed(value: str, pointer: str) -> Any:
    try:
        return text.parse(value, above=pointer.count("/"))
    except TextError as error:
        raise PayloadError(f"{error.expected} in extras", error.got, pointer=pointer + error.pointer) from error

"""Unavailable values: columns whose value the source did not give its connector, sent as a placeholder.

An update does not log a large value that it leaves alone (PostgreSQL's TOAST, Oracle's LOBs), and some
connectors lack other values. Each such column has a placeholder, which would overwrite the real value if
it was taken for data, so the rows of a change do not have the column, and the change says so: it keeps its name.

The placeholder is made of a word, the connector's `unavailable.value.placeholder`, by the type of the column:

* a text is the word; bytes are base64 of it, base64 for URLs or hexadecimal, as the connector sends bytes;
* an array has one element, the word, its bytes, or its UUID of version 3; an array of integers or dates
  has a number for each byte;
* a map (hstore) has the word as its key and its value, as an object or as the text of one.

A word that begins with `hex:` gives bytes, for the connectors that know that, and is the word itself for the
others.

Source: Debezium reference, PostgreSQL connector, "Toasted values" and `unavailable.value.placeholder`; the
connector's class `UnchangedToastedPlaceholder`.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode, urlsafe_b64encode
from functools import lru_cache
from hashlib import md5
from typing import Any, Final, NamedTuple
from uuid import UUID

PLACEHOLDER: Final = "__debezium_unavailable_value"
_IMAGES: Final = ("before", "after")
_HEX: Final = re.compile(r"hex:((?:[0-9a-fA-F]{2})+)", re.ASCII)
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_MOST: Final = 1_000


class _Forms(NamedTuple):
    """The forms of a placeholder: as a scalar, as the only element of an array, as an array, and as a map."""

    scalars: frozenset[str]
    elements: frozenset[str]
    arrays: tuple[list[int], ...]
    maps: tuple[dict[str, str], ...]


def check_word(word: str | None) -> None:
    """Raise `ValueError` unless a word can be a placeholder: 1 to 1,000 characters of UTF-8, or None for no word."""
    if word is not None and not (type(word) is str and 1 <= len(word) <= _MOST and not _SURROGATE.search(word)):
        raise ValueError(f"the word for unavailable values is a text of 1 to {_MOST} characters of UTF-8, or None")


def placeholders(word: str | None) -> tuple[bytes, ...]:
    """Return the texts that stand for a value which the source did not give; arrays and maps do so, too."""
    return () if word is None else tuple(sorted(form.encode("utf-8", "replace") for form in _forms(word).scalars))


def available(line: dict[str, Any], word: str | None) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return a line whose row images have only the columns with values, and the names of the columns without one.

    It is the line itself if there is no placeholder.

    >>> available({"op": "u", "after": {"id": 1, "doc": "__debezium_unavailable_value"}}, PLACEHOLDER)
    ({'op': 'u', 'after': {'id': 1}}, ('doc',))
    """
    gone: dict[str, None] = {}
    found = line if word is None else _available(line, _forms(word), ("value", "payload"), gone)
    return found, tuple(gone)


def _available(line: dict[str, Any], forms: _Forms, wrappers: tuple[str, ...], gone: dict[str, None]) -> dict[str, Any]:
    """Return an envelope's images without placeholders, in what is around the envelope; note their columns as gone."""
    for i, name in enumerate(wrappers):
        inner = line.get(name)
        if type(inner) is dict:
            found = _available(inner, forms, wrappers[i + 1 :], gone)
            return line if found is inner else line | {name: found}
    images = {name: _image(line[name], forms, gone) for name in _IMAGES if type(line.get(name)) is dict}
    changed = {name: image for name, image in images.items() if image is not line[name]}
    return line | changed if changed else line


def _image(image: dict[str, Any], forms: _Forms, gone: dict[str, None]) -> dict[str, Any]:
    own = dict.fromkeys(name for name, value in image.items() if _is_placeholder(value, forms))
    gone.update(own)
    return {name: value for name, value in image.items() if name not in own} if own else image


def _is_placeholder(value: Any, forms: _Forms) -> bool:
    if type(value) is str:
        return value in forms.scalars
    if type(value) is list:
        is_element = len(value) == 1 and type(value[0]) is str and value[0] in forms.elements
        return is_element or value in forms.arrays
    return type(value) is dict and value in forms.maps


@lru_cache(maxsize=16)
def _forms(word: str) -> _Forms:
    check_word(word)
    match = _HEX.fullmatch(word)
    raws = [word.encode("utf-8", "replace"), *([] if match is None else [bytes.fromhex(match[1])])]
    texts = [raw.decode("utf-8", "replace") for raw in raws]
    scalars = {form for raw in raws for form in (b64encode(raw).decode(), urlsafe_b64encode(raw).decode(), raw.hex())}
    maps = tuple({text: text} for text in texts)
    shown = {json.dumps(one, ensure_ascii=False, separators=(",", ":")) for one in maps}
    return _Forms(
        frozenset({*texts, *scalars, *shown}),
        frozenset({*texts, *scalars, *map(_uuid, raws)}),
        tuple([byte - 256 if byte > 127 else byte for byte in raw] for raw in raws),  # noqa: PLR2004  Java's bytes
        maps,
    )


def _uuid(raw: bytes) -> str:
    """Return what Java's `UUID.nameUUIDFromBytes` makes of bytes."""
    return str(UUID(bytes=md5(raw, usedforsecurity=False).digest(), version=3))

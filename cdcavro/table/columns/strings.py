"""JSON values of character and binary columns as Avro data: exactly, or `MISFIT`.

Each function here returns the reader of one type: a closure that takes a JSON value, never None, and
returns the datum of an Avro primitive. Values are never cut, guessed or put in another form.

Source: MySQL reference manual, "Data Types"; OMS data formats, the table of data types.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from cdcavro.exact.base64_text import bytes_of
from cdcavro.exact.jsontext import render
from cdcavro.exact.numbers import ExactNumber, plain_text
from cdcavro.table.columns.reader_rules import ruled

if TYPE_CHECKING:
    from collections.abc import Callable, Collection


class _Misfit:
    """The class of `MISFIT`, which stands for a value that a type cannot carry."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "MISFIT"


MISFIT: Final = _Misfit()
_INTEGER: Final = re.compile(r"0|[1-9][0-9]{0,19}", re.ASCII)
_LONG: Final = 64
_WKB_HEADER: Final = 5


def read_string() -> Callable[[Any], Any]:
    """Return a reader of strings, and of nothing else, since 1 is not "1"."""

    def read(value: Any) -> Any:
        return value if type(value) is str else MISFIT

    return ruled(read, "string")


def read_label(members: Collection[str]) -> Callable[[Any], Any]:
    """Return a reader of an ENUM's labels, and of the empty string, which stands for an invalid label."""
    labels = frozenset(members) | {""}

    def read(value: Any) -> Any:
        return value if type(value) is str and (len(labels) == 1 or value in labels) else MISFIT

    return ruled(read, "label", tuple(members))


def read_labels(members: Collection[str]) -> Callable[[Any], Any]:
    """Return a reader of a SET's labels, separated by commas."""
    known = frozenset(members)

    def read(value: Any) -> Any:
        if type(value) is not str or (known and value and not known.issuperset(value.split(","))):
            return MISFIT
        return value

    return ruled(read, "labels", tuple(members))


def read_json() -> Callable[[Any], Any]:
    """Return a reader of JSON: a string is taken as the text itself, anything else is rendered compactly, exactly."""

    def read(value: Any) -> Any:
        return value if type(value) is str else render(value).decode()

    return ruled(read, "json")


def read_anything() -> Callable[[Any], Any]:
    """Return a reader for an unknown type: a scalar as its own text, anything else as compact JSON text.

    As a consequence, 1 and "1" become the same text.
    """

    def read(value: Any) -> Any:
        return render(value).decode() if type(value) in (dict, list) else plain_text(value)

    return ruled(read, "anything")


def read_binary(width: int | None = None) -> Callable[[Any], Any]:
    """Return a reader of bytes in base64; with a width, zero bytes pad them to it."""

    def read(value: Any) -> Any:
        raw = bytes_of(value)
        if raw is None or (width is not None and len(raw) > width):
            return MISFIT
        return raw if width is None else raw.ljust(width, b"\0")

    return ruled(read, "binary", width or 0)


def read_bits(width: int | None) -> Callable[[Any], Any]:
    """Return a reader of BIT: big-endian bytes in base64, or an integer; without a width, as many bytes as come."""
    size = None if width is None else -(-width // 8)

    def read(value: Any) -> Any:
        raw = bytes_of(value)
        if raw is None:
            count = _count(value)
            raw = None if count is None else count.to_bytes(size or max(1, -(-count.bit_length() // 8)), "big")
        if raw is None or (size is not None and len(raw) != size):
            return MISFIT
        return raw if width is None or not int.from_bytes(raw, "big") >> width else MISFIT

    def _count(value: Any) -> int | None:
        if type(value) is bool:
            return int(value) if width == 1 else None
        count = int(value.text) if type(value) is ExactNumber and _INTEGER.fullmatch(value.text) else value
        return count if type(count) is int and count >= 0 and not count >> (width or _LONG) else None

    return ruled(read, "bits", width)


def read_geometry() -> Callable[[Any], Any]:
    """Return a reader of geometries: EWKB in base64."""

    def read(value: Any) -> Any:
        raw = bytes_of(value)
        return raw if raw is not None and len(raw) >= _WKB_HEADER and raw[0] in (0, 1) else MISFIT

    return read

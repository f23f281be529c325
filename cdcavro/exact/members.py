"""Lookup of members in a record, tolerant of whatever it lacks."""

from __future__ import annotations

from typing import Any, Final

from cdcavro.exact.numbers import MAX_LONG, plain_text

# The mark of an absent member where None is a value.
ABSENT: Final = object()
_LONG_DIGITS: Final = 19


def at(record: Any, *names: str) -> Any:
    """Return the member that a path of names leads to; None where the path ends early.

    >>> at({"a": {"b": 1}}, "a", "b"), at({"a": None}, "a", "b")
    (1, None)
    """
    for name in names:
        record = record.get(name) if type(record) is dict else None
    return record


def string_at(record: Any, *names: str) -> str | None:
    """Return the scalar member at a path of names as text; None if there is none.

    >>> string_at({"id": 7}, "id")
    '7'
    """
    return text_or_none(at(record, *names))


def text_or_none(value: Any) -> str | None:
    """Return a scalar as text; None for null, an object or an array."""
    if value is None or type(value) is str:
        return value
    return None if type(value) is dict or type(value) is list else plain_text(value)


def names_at(record: Any, *names: str) -> tuple[str, ...] | None:
    """Return the strings of the array at a path of names; None if there is no array."""
    return member_names(at(record, *names))


def member_names(value: Any) -> tuple[str, ...] | None:
    """Return the strings of an array as a tuple; None for anything but an array."""
    return tuple([item for item in value if type(item) is str]) if type(value) is list else None


def whole_number(text: str | None) -> tuple[int, ...] | None:
    """Return a text of digits as a position of one part; None for any other text and beyond 64 bits.

    >>> whole_number("1605339516000000004"), whole_number("null")
    ((1605339516000000004,), None)
    """
    if text is None or not text.isascii() or not text.isdigit() or len(text) > _LONG_DIGITS or int(text) > MAX_LONG:
        return None
    return (int(text),)


def given(record: dict[str, Any]) -> dict[str, Any]:
    """Return a record without the members that are None.

    >>> given({"a": 1, "b": None})
    {'a': 1}
    """
    return {name: value for name, value in record.items() if value is not None}

"""Comparison of two JSON values, digit for digit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cdcavro.exact.jsontext import MAX_DEPTH, escape
from cdcavro.exact.members import ABSENT
from cdcavro.exact.numbers import plain_text

if TYPE_CHECKING:
    from collections.abc import Iterator

Difference = tuple[str, Any, Any]
_TEXTLESS: Final = (dict, list, type(None))


def differences(left: Any, right: Any, pointer: str = "") -> Iterator[Difference]:
    """Yield the JSON pointer of every place where two JSON values differ, with both values.

    `ABSENT` stands for a member that one side lacks. Objects are compared member by member, in any
    order, and arrays of equal length item by item; everything else, arrays of different lengths
    included, is compared as a whole. 1, 1.0 and true are different values, and so are 1.2 and 1.20.

    >>> list(differences({"a": [1, 2]}, {"a": [1, 3]}))
    [('/a/1', 2, 3)]
    """
    if type(left) is dict and type(right) is dict:
        for name, value in left.items():
            other = right.get(name, ABSENT)
            if type(value) is dict or type(value) is list:
                yield from differences(value, other, f"{pointer}/{escape(name)}")
            elif value is not other and not same(value, other):
                yield f"{pointer}/{escape(name)}", value, other
        for name, value in right.items():
            if name not in left:
                yield f"{pointer}/{escape(name)}", ABSENT, value
    elif type(left) is list and type(right) is list and len(left) == len(right):
        for i, pair in enumerate(zip(left, right, strict=True)):
            yield from differences(*pair, f"{pointer}/{i}")
    elif not same(left, right):
        yield pointer, left, right


def same(left: Any, right: Any) -> bool:
    """Return whether two JSON values are the same, digit for digit; 1, 1.0 and true are different values.

    >>> same({"a": 1, "b": 2}, {"b": 2, "a": 1}), same(1, 1.0)
    (True, False)
    """
    return _same(left, right, 0)


def same_text(left: Any, right: Any) -> bool:
    """Return whether two JSON values are the same, or are scalars of the same text: formats spell numbers differently.

    >>> from cdcavro.exact.numbers import ExactNumber
    >>> same_text(1, "1"), same_text("1.20", ExactNumber("1.20")), same_text(1, 1.0), same_text(None, "None")
    (True, True, False, False)
    """
    if type(left) in _TEXTLESS or type(right) in _TEXTLESS:
        return same(left, right)
    return plain_text(left) == plain_text(right)


def _same(left: Any, right: Any, depth: int) -> bool:
    if left is right:
        return True
    if type(left) is not type(right):
        return False
    if type(left) is str:
        left_text: str = left
        right_text: str = right
        return left_text == right_text
    if type(left) is dict:
        return len(left) == len(right) and _has_members(left, right, depth)
    if type(left) is list:
        return len(left) == len(right) and _has_items(left, right, depth)
    return bool(left == right) and (type(left) is not float or repr(left) == repr(right))


def _has_members(left: dict[str, Any], right: dict[str, Any], depth: int) -> bool:
    _check_bottom(depth)
    for name, value in left.items():  # noqa: SIM110  a loop is faster
        if name not in right or not _same(value, right[name], depth + 1):
            return False
    return True


def _has_items(left: list[Any], right: list[Any], depth: int) -> bool:
    _check_bottom(depth)
    for i in range(len(left)):  # noqa: SIM110
        if not _same(left[i], right[i], depth + 1):
            return False
    return True


def _check_bottom(depth: int) -> None:
    # A value that was built rather than parsed may contain itself.
    if depth > MAX_DEPTH:
        raise RecursionError(f"a value of more than {MAX_DEPTH} levels")

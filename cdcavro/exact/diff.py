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
    """Return the JSON pointer of every place where two JSON values differ, with both values.

    `ABSENT` stands for a member that one side lacks. Objects are compared member by member, in any
    order, and arrays of equal length item by item; everything else, arrays of different lengths
    included, is compared as a whole. 1, 1.0 and true are different values, and so are 1.2 and 1.20.

    >>> list(differences({"a": [1, 2]}, {"a": [1, 3]}))
    [('/a/1', 2, 3)]
    """
    found: list[Difference] = []
    _compare(left, right, [pointer], found)
    return iter(found)


def _compare(left: Any, right: Any, path: list[Any], found: list[Difference]) -> None:
    """Add what differs at a path, which is spelled out for differences only."""
    if type(left) is dict and type(right) is dict:
        for name, value in left.items():
            _compare_at(name, value, right.get(name, ABSENT), path, found)
        for name, value in right.items():
            if name not in left:
                _compare_at(name, ABSENT, value, path, found)
    elif type(left) is list and type(right) is list and len(left) == len(right):
        for i, (one, other) in enumerate(zip(left, right, strict=True)):
            _compare_at(i, one, other, path, found)
    elif not same(left, right):
        found.append((path[0] + "".join([f"/{escape(str(name))}" for name in path[1:]]), left, right))


def _compare_at(name: str | int, left: Any, right: Any, path: list[Any], found: list[Difference]) -> None:
    # Most values are the same scalar, or both empty.
    if left is right or (type(left) is type(right) and not left and type(left) in (dict, list) and not right):
        return
    path.append(name)
    _compare(left, right, path, found)
    path.pop()


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

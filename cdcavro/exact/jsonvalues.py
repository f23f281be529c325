"""JSON values: lookup of members, which may be absent; bytes as base64 text; and comparison, digit for digit."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import TYPE_CHECKING, Any, Final

from cdcavro.exact.jsontext import MAX_DEPTH, escape, unescape
from cdcavro.exact.numbers import MAX_LONG, ExactNumber, plain_text

if TYPE_CHECKING:
    from collections.abc import Iterator

# The mark of an absent member where None is a value.
ABSENT: Final = object()
_LONG_DIGITS: Final = 19
# A JSON pointer, and what stands there on the left and on the right.
Difference = tuple[str, Any, Any]
_TEXTLESS: Final = (dict, list, type(None))
_CONTAINERS: Final = (dict, list)


def at(record: Any, *names: str) -> Any:
    """Return the member that a path of names leads to; None where the path ends early.

    >>> at({"a": {"b": 1}}, "a", "b"), at({"a": None}, "a", "b")
    (1, None)
    """
    for name in names:
        record = record.get(name) if type(record) is dict else None
    return record


def at_pointer(value: Any, pointer: str) -> Any:
    """Return the value that a JSON pointer leads to, `ABSENT` if there is none.

    >>> at_pointer({"a": [{"b/c": 1}]}, "/a/0/b~1c")
    1
    """
    for token in pointer.split("/")[1:]:
        if type(value) is dict:
            value = value.get(unescape(token), ABSENT)
        elif type(value) is list and len(token) < _LONG_DIGITS and token.isdecimal() and int(token) < len(value):
            value = value[int(token)]
        else:
            return ABSENT
    return value


def copy_of(value: Any) -> Any:
    """Return a copy of a JSON value, its objects and arrays included."""
    if type(value) is dict:
        return {name: copy_of(one) if type(one) in _CONTAINERS else one for name, one in value.items()}
    return [copy_of(item) for item in value] if type(value) is list else value


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


def drop_nulls(record: dict[str, Any]) -> dict[str, Any]:
    """Return a record without the members that are None.

    >>> drop_nulls({"a": 1, "b": None})
    {'a': 1}
    """
    return {name: value for name, value in record.items() if value is not None}


def base64_bytes(text: Any) -> bytes | None:
    r"""Return the bytes that a base64 text encodes; None for anything but the one standard text of some bytes.

    >>> base64_bytes("AkY="), base64_bytes("AkZ=")
    (b'\x02F', None)
    """
    try:
        raw = b64decode(text, validate=True) if type(text) is str else None
    except ValueError:
        return None
    return raw if raw is None or b64encode(raw).decode() == text else None


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
    _check_bottom(len(path) - 1)
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
    # Most values are the same text or the same object, or both empty.
    kind = type(left)
    if left is right or (
        kind is type(right) and (left == right if kind is str else kind in _CONTAINERS and not left and not right)
    ):
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
    if type(left) is ExactNumber:
        return left.text == right.text  # type: ignore[no-any-return]
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

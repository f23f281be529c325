"""Where two JSON values differ, digit for digit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cdcavro.exact.jsontext import escape, same

if TYPE_CHECKING:
    from collections.abc import Iterator

ABSENT: Final = object()
Difference = tuple[str, Any, Any]


def differences(left: Any, right: Any, pointer: str = "") -> Iterator[Difference]:
    """Give the JSON pointer of every place where two JSON values differ, with both values.

    `ABSENT` stands for a member that one side lacks. Objects are compared member by member, in any
    order, arrays of one length item by item; everything else, and arrays of different lengths, as a
    whole. 1, 1.0 and true are three values, and so are 1.2 and 1.20.

    >>> list(differences({"a": [1, 2]}, {"a": [1, 3]}))
    [('/a/1', 2, 3)]
    """
    if type(left) is dict and type(right) is dict:
        for name, value in left.items():
            yield from differences(value, right.get(name, ABSENT), f"{pointer}/{escape(name)}")
        for name, value in right.items():
            if name not in left:
                yield f"{pointer}/{escape(name)}", ABSENT, value
    elif type(left) is list and type(right) is list and len(left) == len(right):
        for i, pair in enumerate(zip(left, right, strict=True)):
            yield from differences(*pair, f"{pointer}/{i}")
    elif not same(left, right):
        yield pointer, left, right

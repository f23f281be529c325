"""The order of a record's fields while they are edited: each is found at once, however many there are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cdcavro.table.fields import is_column

if TYPE_CHECKING:
    from collections.abc import Iterable

    Field = dict[str, Any]


class FieldOrder:
    """Fields in their order, linked to each other. A field is known by its identity, since it changes in place.

    >>> a, b, c = ({"name": name, "type": "int"} for name in "abc")
    >>> order = FieldOrder([a, b])
    >>> order.put(c, after=a)
    >>> order.remove(b)
    >>> [field["name"] for field in order.fields()]
    ['a', 'c']
    """

    __slots__ = ("_after", "_before", "_fields")

    def __init__(self, fields: Iterable[Field]) -> None:
        # The place before the first field and behind the last one is 0.
        self._fields: dict[int, Field] = {}
        self._after = {0: 0}
        self._before = {0: 0}
        for field in fields:
            self._link(field, self._before[0])

    def fields(self) -> list[Field]:
        """Return the fields in their order."""
        listed, at = [], self._after[0]
        while at:
            listed.append(self._fields[at])
            at = self._after[at]
        return listed

    def put(self, field: Field, *, first: bool = False, after: Field | None = None) -> None:
        """Insert a field before all others, behind another one, or else behind the last one that is a column."""
        at = self._before[0] if after is None else id(after)
        while after is None and at and not is_column(self._fields[at]):
            at = self._before[at]
        self._link(field, 0 if first else at)

    def put_before(self, field: Field, other: Field) -> None:
        """Insert a field before another one."""
        self._link(field, self._before[id(other)])

    def remove(self, field: Field) -> None:
        """Take a field out."""
        at = id(field)
        before, after = self._before.pop(at), self._after.pop(at)
        self._after[before], self._before[after] = after, before
        del self._fields[at]

    def _link(self, field: Field, before: int) -> None:
        at, after = id(field), self._after[before]
        self._fields[at] = field
        self._before[at], self._after[at] = before, after
        self._after[before] = self._before[after] = at

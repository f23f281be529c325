"""The small readers that a plan for payloads is made of.

A reader gives JSON values shaped by the reader's schema, as `writers` take them. `UNSET` stands
for a member that is left out. `extras` is put aside in the `Payload`, to be applied at the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from msgspec import UNSET

from cdcavro.binary import Source
from cdcavro.errors import MessageError, PayloadError, TextError, shown
from cdcavro.text import escape

if TYPE_CHECKING:
    from collections.abc import Callable


class Payload(Source):
    """One payload on its way to a record. `extras` holds what was read of the envelope's `extras`."""

    __slots__ = ("extras",)

    def __init__(self, raw: bytes, position: int = 0) -> None:
        super().__init__(raw, position)
        self.extras: dict[str, str] = {}


class Reader(Protocol):
    """Reads one value."""

    def read(self, payload: Payload) -> Any:
        """Read the value. Raises `PayloadError`."""


class ScalarReader:
    """A primitive value."""

    __slots__ = ("_get", "_pointer")

    def __init__(self, get: Callable[[Payload], Any], pointer: str) -> None:
        self._get = get
        self._pointer = pointer

    def read(self, payload: Payload) -> Any:
        """Read the value."""
        try:
            return self._get(payload)
        except MessageError as error:
            error.below(self._pointer)
            raise


class HeldReader:
    """The record around a number's or a value's text: the text, checked, as what it holds."""

    __slots__ = ("_inner", "_pointer", "_take")

    def __init__(self, inner: Reader, take: Callable[[str], Any], pointer: str) -> None:
        self._inner = inner
        self._take = take
        self._pointer = pointer

    def read(self, payload: Payload) -> Any:
        """Read the text and what it holds."""
        held = self._inner.read(payload)
        try:
            return self._take(held)
        except TextError as error:
            raise PayloadError(error.expected, error.got, pointer=self._pointer + error.pointer) from error


class EnumReader:
    """An enum's symbol."""

    __slots__ = ("_pointer", "_symbols")

    def __init__(self, symbols: tuple[str, ...], pointer: str) -> None:
        self._symbols = symbols
        self._pointer = pointer

    def read(self, payload: Payload) -> Any:
        """Read the index."""
        try:
            return self._symbols[payload.read_index(len(self._symbols), "a symbol")]
        except PayloadError as error:
            error.below(self._pointer)
            raise


class UnionReader:
    """The branch that the index names; `missing` stands for null."""

    __slots__ = ("_branches", "_missing", "_pointer")

    def __init__(self, branches: list[Reader | None], missing: Any, pointer: str) -> None:
        self._branches = branches
        self._missing = missing
        self._pointer = pointer

    def read(self, payload: Payload) -> Any:
        """Read the index and the branch."""
        try:
            branch = self._branches[payload.read_index(len(self._branches), "a branch")]
        except PayloadError as error:
            error.below(self._pointer)
            raise
        return self._missing if branch is None else branch.read(payload)


class ArrayReader:
    """An array's blocks."""

    __slots__ = ("_items", "_pointer")

    def __init__(self, items: Reader, pointer: str) -> None:
        self._items = items
        self._pointer = pointer

    def read(self, payload: Payload) -> list[Any]:
        """Read all items."""
        items: list[Any] = []
        read = self._items.read
        at = self._pointer
        try:
            while count := payload.read_block():
                for _ in range(count):
                    at = ""
                    items.append(read(payload))
                    at = self._pointer
        except MessageError as error:
            error.below(at or f"{self._pointer}/{len(items)}")
            raise
        return items


class MapReader:
    """A map's blocks; a name given twice is refused, since one of two values would be lost."""

    __slots__ = ("_pointer", "_values")

    def __init__(self, values: Reader, pointer: str) -> None:
        self._values = values
        self._pointer = pointer

    def read(self, payload: Payload) -> dict[str, Any]:
        """Read all entries."""
        entries: dict[str, Any] = {}
        read = self._values.read
        at = self._pointer
        try:
            while count := payload.read_block():
                for _ in range(count):
                    name = payload.read_string()
                    if name in entries:
                        raise PayloadError("each name once", f"{shown(name)} twice")
                    at = f"{self._pointer}/{escape(name)}"
                    entries[name] = read(payload)
                    at = self._pointer
        except MessageError as error:
            error.below(at)
            raise
        return entries


class RecordReader:
    """A record: members by name, a rest map's entries beside them, `extras` put aside."""

    __slots__ = ("_fields", "_named", "_pointer")

    def __init__(self, fields: list[tuple[str, str, Reader]], pointer: str) -> None:
        self._fields = fields
        self._named = frozenset(name for members, name, _ in fields if not members)
        self._pointer = pointer

    def read(self, payload: Payload) -> dict[str, Any]:
        """Read all fields."""
        record: dict[str, Any] = {}
        for members, name, reader in self._fields:
            value = reader.read(payload)
            if members == "":
                if value is not UNSET:
                    record[name] = value
            elif members == "extras":
                payload.extras = value
            else:
                for taken in self._named.intersection(value):
                    raise PayloadError("a member that has no field", shown(taken), pointer=self._pointer)
                record.update(value)
        return record

"""The small readers that a plan for payloads is made of.

A reader gives JSON values shaped by the reader's schema, as `writers` take them. `UNSET` stands
for a member that is left out. `extras` is put aside in the `Payload`, to be applied at the end.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET

from cdcavro import pointers
from cdcavro.errors import MessageError, PayloadError, TextError, shown
from cdcavro.source import Source
from cdcavro.text import escape

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


_MAX_DOUBLE: Final = sys.float_info.max


class Payload(Source):
    """One payload on its way to a record. `extras` holds what was read of the envelope's `extras`."""

    __slots__ = ("extras",)

    def __init__(self, raw: bytes, position: int = 0) -> None:
        super().__init__(raw, position)
        self.extras: dict[str, str] = {}


class Reader:
    """Reads one value."""

    __slots__ = ()

    def read(self, payload: Payload) -> Any:
        """Read the value. Raises `PayloadError`."""
        raise NotImplementedError


class ScalarReader(Reader):
    """A primitive value."""

    __slots__ = ("_pointer",)

    def __init__(self, pointer: str) -> None:
        self._pointer = pointer


class BooleanReader(ScalarReader):
    """A boolean."""

    __slots__ = ()

    def read(self, payload: Payload) -> Any:
        """Read the value."""
        try:
            return payload.read_boolean()
        except MessageError as error:
            error.below(self._pointer)
            raise


class IntReader(ScalarReader):
    """An integer of 32 bits."""

    __slots__ = ()

    def read(self, payload: Payload) -> Any:
        """Read the value."""
        try:
            return payload.read_int()
        except MessageError as error:
            error.below(self._pointer)
            raise


class LongReader(ScalarReader):
    """An integer of 64 bits."""

    __slots__ = ()

    def read(self, payload: Payload) -> Any:
        """Read the value."""
        try:
            return payload.read_long()
        except MessageError as error:
            error.below(self._pointer)
            raise


class DoubleReader(ScalarReader):
    """A double that JSON has a text for."""

    __slots__ = ()

    def read(self, payload: Payload) -> Any:
        """Read the value."""
        try:
            value = payload.read_double()
            if not -_MAX_DOUBLE <= value <= _MAX_DOUBLE:
                raise PayloadError("a JSON number", f"{value} at byte {payload.position - 8}")
        except MessageError as error:
            error.below(self._pointer)
            raise
        return value


class StringReader(ScalarReader):
    """A string."""

    __slots__ = ()

    def read(self, payload: Payload) -> Any:
        """Read the value."""
        try:
            return payload.read_string()
        except MessageError as error:
            error.below(self._pointer)
            raise


class HeldReader(Reader):
    """The record around a number's or a value's text: the text, checked, as what it holds."""

    __slots__ = ("_pointer", "_take")

    def __init__(self, take: Callable[[str], Any], pointer: str) -> None:
        self._take = take
        self._pointer = pointer

    def read(self, payload: Payload) -> Any:
        """Read the text and what it holds."""
        held = payload.read_string()
        try:
            return self._take(held)
        except TextError as error:
            raise PayloadError(error.expected, error.got, pointer=self._pointer + error.pointer) from error


class EnumReader(Reader):
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


class OptionalReader(Reader):
    """A nullable value with one other branch; `missing` stands for null."""

    __slots__ = ("_index", "_inner", "_missing", "_pointer")

    def __init__(self, inner: Reader, index: int, missing: Any, pointer: str) -> None:
        self._inner = inner
        self._index = index
        self._missing = missing
        self._pointer = pointer

    def read(self, payload: Payload) -> Any:
        """Read the index and the value."""
        try:
            index = payload.read_index(2, "a branch")
        except PayloadError as error:
            error.below(self._pointer)
            raise
        return self._inner.read(payload) if index == self._index else self._missing


class UnionReader(Reader):
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


class ArrayReader(Reader):
    """An array's blocks."""

    __slots__ = ("_items", "_pointer")

    def __init__(self, items: Reader, pointer: str) -> None:
        self._items = items
        self._pointer = pointer

    def read(self, payload: Payload) -> Any:
        """Read all items."""
        items: list[Any] = []
        reader = self._items
        in_item = False
        try:
            while count := payload.read_block():
                in_item = True
                for _ in range(count):
                    items.append(reader.read(payload))  # noqa: PERF401  what was read so far tells the place
                in_item = False
        except MessageError as error:
            error.below(f"{self._pointer}/{len(items)}" if in_item else self._pointer)
            raise
        return items


class MapReader(Reader):
    """A map's blocks; a name given twice is refused, since one of two values would be lost."""

    __slots__ = ("_pointer", "_values")

    def __init__(self, values: Reader, pointer: str) -> None:
        self._values = values
        self._pointer = pointer

    def read(self, payload: Payload) -> Any:
        """Read all entries."""
        entries: dict[str, Any] = {}
        reader = self._values
        name = ""
        in_value = False
        try:
            while count := payload.read_block():
                for _ in range(count):
                    name = payload.read_name()
                    if name in entries:
                        raise PayloadError("each name once", f"{shown(name)} twice")
                    in_value = True
                    entries[name] = reader.read(payload)
                    in_value = False
        except MessageError as error:
            error.below(f"{self._pointer}/{escape(name)}" if in_value else self._pointer)
            raise
        return entries


class RecordReader(Reader):
    """A record: members by name, a rest map's entries beside them, `extras` put aside."""

    __slots__ = ("_fields", "_named", "_pointer")

    def __init__(self, fields: Sequence[tuple[str, str, Reader]], pointer: str) -> None:
        self._fields = tuple(fields)
        self._named = frozenset(name for members, name, _ in fields if not members)
        self._pointer = pointer

    def read(self, payload: Payload) -> Any:
        """Read all fields."""
        record: dict[str, Any] = {}
        for kind, name, reader in self._fields:
            value = reader.read(payload)
            if not kind:
                if value is not UNSET:
                    record[name] = value
            elif kind == "extras":
                payload.extras = value
            else:
                for taken in self._named.intersection(value):
                    raise PayloadError("a member that has no field", shown(taken), pointer=self._pointer)
                record.update(value)
        return record


class MessageReader:
    """A whole message: the outermost record with its `extras` applied.

    `members` are those that the schema names, by pointer.
    """

    __slots__ = ("_members", "_record")

    def __init__(self, record: RecordReader, members: Mapping[str, pointers.Place]) -> None:
        self._record = record
        self._members = members

    def read(self, payload: Payload) -> dict[str, Any]:
        """Read one payload, perhaps of several in a row. Raises `PayloadError`."""
        payload.extras = {}
        record: dict[str, Any] = self._record.read(payload)
        if payload.extras:
            pointers.apply(record, payload.extras, self._members)
        return record

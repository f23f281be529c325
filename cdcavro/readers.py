"""The small readers that a plan for payloads is made of: those of single values.

A reader gives JSON values shaped by the reader's schema, as `writers` take them. `UNSET` stands
for a member that is left out.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET

from cdcavro.buffer import Buffer, is_number
from cdcavro.encoder import parse_quickly
from cdcavro.errors import MessageError, PayloadError, TextError, shown
from cdcavro.text import ExactNumber, kind, parse, render

if TYPE_CHECKING:
    from cdcavro.source import Payload

_MAX_DOUBLE: Final = sys.float_info.max


class Reader:
    """Reads one value."""

    __slots__ = ()

    def read(self, payload: Payload) -> Any:
        """Read the value. Raises `PayloadError`."""
        raise NotImplementedError

    def render(self, payload: Payload, out: Buffer) -> bool:
        """Read the value and append it as JSON text; tells whether there is one. Raises `PayloadError`."""
        out.write_raw(render(self.read(payload)))
        return True


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

    def render(self, payload: Payload, out: Buffer) -> bool:
        """Read the value and append it as JSON text."""
        out.write_raw(b"true" if self.read(payload) else b"false")
        return True


class LongReader(ScalarReader):
    """An integer of 64 bits."""

    __slots__ = ()

    def read(self, payload: Payload) -> Any:
        """Read the value."""
        return self._read_whole(payload)

    def render(self, payload: Payload, out: Buffer) -> bool:
        """Read the value and append it as JSON text."""
        out.write_digits(self._read_whole(payload))
        return True

    def _read_whole(self, payload: Payload) -> int:
        try:
            return payload.read_long()
        except MessageError as error:
            error.below(self._pointer)
            raise


class IntReader(LongReader):
    """An integer of 32 bits."""

    __slots__ = ()

    def _read_whole(self, payload: Payload) -> int:
        try:
            return payload.read_int()
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

    def render(self, payload: Payload, out: Buffer) -> bool:
        """Read the value and append it as JSON text."""
        try:
            payload.copy_string(out)
        except MessageError as error:
            error.below(self._pointer)
            raise
        return True


class NumberReader(Reader):
    """The record around a number's text."""

    __slots__ = ("_pointer",)

    def __init__(self, pointer: str) -> None:
        self._pointer = pointer

    def read(self, payload: Payload) -> Any:
        """Read the text, checked."""
        held = payload.read_string()
        if not is_number(held):
            raise PayloadError("a JSON number", shown(held), pointer=self._pointer)
        return ExactNumber(held)

    def render(self, payload: Payload, out: Buffer) -> bool:
        """Read the text and append it as it is."""
        held = payload.read_string()
        if not is_number(held):
            raise PayloadError("a JSON number", shown(held), pointer=self._pointer)
        out.write_raw(held.encode())
        return True


class TextReader(Reader):
    """The record around the text of an object or array, which stands below so many levels."""

    __slots__ = ("_above", "_pointer")

    def __init__(self, above: int, pointer: str) -> None:
        self._above = above
        self._pointer = pointer

    def read(self, payload: Payload) -> Any:
        """Read the text and parse it."""
        held = payload.read_string()
        value = parse_quickly(held.encode(), self._above)
        if value is not None:
            return self._checked(value)
        try:
            return self._checked(parse(held, self._above))
        except TextError as error:
            raise PayloadError(error.expected, error.got, pointer=self._pointer + error.pointer) from error

    def _checked(self, value: Any) -> Any:
        if type(value) not in (dict, list):
            raise PayloadError("an object or array", kind(value), pointer=self._pointer)
        return value


class EnumReader(Reader):
    """An enum's symbol."""

    __slots__ = ("_pointer", "_symbols", "_texts")

    def __init__(self, symbols: tuple[str, ...], pointer: str) -> None:
        self._symbols = symbols
        self._texts = tuple(render(symbol) for symbol in symbols)
        self._pointer = pointer

    def read(self, payload: Payload) -> Any:
        """Read the index."""
        return self._symbols[self._index(payload)]

    def render(self, payload: Payload, out: Buffer) -> bool:
        """Read the index and append the symbol as JSON text."""
        out.write_raw(self._texts[self._index(payload)])
        return True

    def _index(self, payload: Payload) -> int:
        try:
            return payload.read_index(len(self._symbols), "a symbol")
        except PayloadError as error:
            error.below(self._pointer)
            raise


class OptionalReader(Reader):
    """A nullable value with one other branch; `missing` stands for null."""

    __slots__ = ("_branch", "_inner", "_missing", "_pointer")

    def __init__(self, inner: Reader, branch: int, missing: Any, pointer: str) -> None:
        self._inner = inner
        self._branch = branch
        self._missing = missing
        self._pointer = pointer

    def read(self, payload: Payload) -> Any:
        """Read the index and the value."""
        return self._inner.read(payload) if self._is_there(payload) else self._missing

    def render(self, payload: Payload, out: Buffer) -> bool:
        """Read the index and append the value as JSON text."""
        if self._is_there(payload):
            return self._inner.render(payload, out)
        return _render_missing(self._missing, out)

    def _is_there(self, payload: Payload) -> bool:
        try:
            return payload.read_index(2, "a branch") == self._branch
        except PayloadError as error:
            error.below(self._pointer)
            raise


def _render_missing(missing: Any, out: Buffer) -> bool:
    if missing is UNSET:
        return False
    out.write_raw(b"null")
    return True


class UnionReader(Reader):
    """The branch that the index names; `missing` stands for null."""

    __slots__ = ("_branches", "_missing", "_pointer")

    def __init__(self, branches: list[Reader | None], missing: Any, pointer: str) -> None:
        self._branches = branches
        self._missing = missing
        self._pointer = pointer

    def read(self, payload: Payload) -> Any:
        """Read the index and the branch."""
        branch = self._branches[self._index(payload)]
        return self._missing if branch is None else branch.read(payload)

    def render(self, payload: Payload, out: Buffer) -> bool:
        """Read the index and append the branch as JSON text."""
        branch = self._branches[self._index(payload)]
        return _render_missing(self._missing, out) if branch is None else branch.render(payload, out)

    def _index(self, payload: Payload) -> int:
        try:
            return payload.read_index(len(self._branches), "a branch")
        except PayloadError as error:
            error.below(self._pointer)
            raise

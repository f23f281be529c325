"""The small readers that a plan for payloads is made of: those of single values.

A reader gives JSON values shaped by the reader's schema, as `writers` take them. `UNSET` stands
for a member that is left out. An error tells the place within the value only: where the value itself
stands is kept in the payload, and put before it by the nearest array, map or message.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET

from cdcavro.errors import PayloadError, TextError, shown
from cdcavro.exact.fastjson import parse_quickly
from cdcavro.exact.jsontext import kind, parse, render
from cdcavro.exact.numbers import ExactNumber
from cdcavro.exact.scan import is_number

if TYPE_CHECKING:
    from cdcavro.avro.buffer import Buffer
    from cdcavro.wire.payload import PayloadDecoder

_MAX_DOUBLE: Final = sys.float_info.max


class Reader:
    """Reads one value."""

    __slots__ = ()

    def read(self, payload: PayloadDecoder) -> Any:
        """Read the value. Raises `PayloadError`."""
        raise NotImplementedError

    def render(self, payload: PayloadDecoder, out: Buffer) -> bool:
        """Read the value and append it as JSON text; tells whether there is one. Raises `PayloadError`."""
        out.write_raw(render(self.read(payload)))
        return True


class BooleanReader(Reader):
    """A boolean."""

    __slots__ = ()

    def read(self, payload: PayloadDecoder) -> Any:
        """Read the value."""
        return payload.read_boolean()

    def render(self, payload: PayloadDecoder, out: Buffer) -> bool:
        """Read the value and append it as JSON text."""
        out.write_raw(b"true" if payload.read_boolean() else b"false")
        return True


class LongReader(Reader):
    """An integer of 64 bits."""

    __slots__ = ()

    def read(self, payload: PayloadDecoder) -> Any:
        """Read the value."""
        return payload.read_long()

    def render(self, payload: PayloadDecoder, out: Buffer) -> bool:
        """Read the value and append it as JSON text."""
        out.write_digits(payload.read_long())
        return True


class IntReader(Reader):
    """An integer of 32 bits."""

    __slots__ = ()

    def read(self, payload: PayloadDecoder) -> Any:
        """Read the value."""
        return payload.read_int()

    def render(self, payload: PayloadDecoder, out: Buffer) -> bool:
        """Read the value and append it as JSON text."""
        out.write_digits(payload.read_int())
        return True


class DoubleReader(Reader):
    """A double that JSON has a text for."""

    __slots__ = ()

    def read(self, payload: PayloadDecoder) -> Any:
        """Read the value."""
        value = payload.read_double()
        if not -_MAX_DOUBLE <= value <= _MAX_DOUBLE:
            raise PayloadError("a JSON number", f"{value} at byte {payload.position - 8}")
        return value


class StringReader(Reader):
    """A string."""

    __slots__ = ()

    def read(self, payload: PayloadDecoder) -> Any:
        """Read the value."""
        return payload.read_string()

    def render(self, payload: PayloadDecoder, out: Buffer) -> bool:
        """Read the value and append it as JSON text."""
        payload.copy_string(out)
        return True


class NumberReader(Reader):
    """The record around a number's text."""

    __slots__ = ()

    def read(self, payload: PayloadDecoder) -> Any:
        """Read the text, checked."""
        held = payload.read_string()
        if not is_number(held):
            raise PayloadError("a JSON number", shown(held))
        return ExactNumber(held)

    def render(self, payload: PayloadDecoder, out: Buffer) -> bool:
        """Read the text and append it as it is."""
        held = payload.read_string()
        if not is_number(held):
            raise PayloadError("a JSON number", shown(held))
        out.write_raw(held.encode())
        return True


class TextReader(Reader):
    """The record around the text of an object or array, which stands below so many levels."""

    __slots__ = ("_above",)

    def __init__(self, above: int) -> None:
        self._above = above

    def read(self, payload: PayloadDecoder) -> Any:
        """Read the text and parse it."""
        held = payload.read_string()
        value = parse_quickly(held.encode(), self._above)
        if value is not None:
            return self._checked(value)
        try:
            return self._checked(parse(held, self._above))
        except TextError as error:
            raise PayloadError(error.expected, error.got, pointer=error.pointer) from error

    def _checked(self, value: Any) -> Any:
        if type(value) not in (dict, list):
            raise PayloadError("an object or array", kind(value))
        return value


class EnumReader(Reader):
    """An enum's symbol."""

    __slots__ = ("_symbols", "_texts")

    def __init__(self, symbols: tuple[str, ...]) -> None:
        self._symbols = symbols
        self._texts = tuple(render(symbol) for symbol in symbols)

    def read(self, payload: PayloadDecoder) -> Any:
        """Read the index."""
        return self._symbols[payload.read_index(len(self._symbols), "a symbol")]

    def render(self, payload: PayloadDecoder, out: Buffer) -> bool:
        """Read the index and append the symbol as JSON text."""
        out.write_raw(self._texts[payload.read_index(len(self._symbols), "a symbol")])
        return True


class OptionalReader(Reader):
    """A nullable value with one other branch; `missing` stands for null."""

    __slots__ = ("_branch", "_inner", "_missing")

    def __init__(self, inner: Reader, branch: int, missing: Any) -> None:
        self._inner = inner
        self._branch = branch
        self._missing = missing

    def read(self, payload: PayloadDecoder) -> Any:
        """Read the index and the value."""
        return self._inner.read(payload) if payload.read_index(2, "a branch") == self._branch else self._missing

    def render(self, payload: PayloadDecoder, out: Buffer) -> bool:
        """Read the index and append the value as JSON text."""
        if payload.read_index(2, "a branch") == self._branch:
            return self._inner.render(payload, out)
        return _render_missing(self._missing, out)


def _render_missing(missing: Any, out: Buffer) -> bool:
    if missing is UNSET:
        return False
    out.write_raw(b"null")
    return True


class UnionReader(Reader):
    """The branch that the index names; `missing` stands for null."""

    __slots__ = ("_branches", "_missing")

    def __init__(self, branches: list[Reader | None], missing: Any) -> None:
        self._branches = branches
        self._missing = missing

    def read(self, payload: PayloadDecoder) -> Any:
        """Read the index and the branch."""
        branch = self._branches[payload.read_index(len(self._branches), "a branch")]
        return self._missing if branch is None else branch.read(payload)

    def render(self, payload: PayloadDecoder, out: Buffer) -> bool:
        """Read the index and append the branch as JSON text."""
        branch = self._branches[payload.read_index(len(self._branches), "a branch")]
        return _render_missing(self._missing, out) if branch is None else branch.render(payload, out)

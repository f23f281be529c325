"""The small readers that make up a plan for reading payloads: those of single values.

A reader returns JSON values in the shape that writers accept. `UNSET` stands for a member that is left
out. An error has only the place within the value; the place of the value itself is kept in the payload,
and the reader of the nearest array, map or message prepends it.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from cdcavro.errors import PayloadError, TextError, shown
from cdcavro.exact.fastjson import parse_soon
from cdcavro.exact.jsontext import kind
from cdcavro.exact.numbers import ExactNumber
from cdcavro.exact.scan import is_number

if TYPE_CHECKING:
    from cdcavro.wire.payload import PayloadDecoder

_MAX_DOUBLE: Final = sys.float_info.max


class Reader:
    """A reader of one value."""

    __slots__ = ()

    def read(self, payload: PayloadDecoder) -> Any:
        """Read the value. Raises `PayloadError`."""
        raise NotImplementedError


class BooleanReader(Reader):
    """A reader of a boolean."""

    __slots__ = ()

    def read(self, payload: PayloadDecoder) -> Any:
        """Read the value."""
        return payload.read_boolean()


class LongReader(Reader):
    """A reader of a 64-bit integer."""

    __slots__ = ()

    def read(self, payload: PayloadDecoder) -> Any:
        """Read the value."""
        return payload.read_long()


class IntReader(Reader):
    """A reader of a 32-bit integer."""

    __slots__ = ()

    def read(self, payload: PayloadDecoder) -> Any:
        """Read the value."""
        return payload.read_int()


class DoubleReader(Reader):
    """A reader of a double, which must be finite: JSON has no text for others."""

    __slots__ = ()

    def read(self, payload: PayloadDecoder) -> Any:
        """Read the value."""
        value = payload.read_double()
        if not -_MAX_DOUBLE <= value <= _MAX_DOUBLE:
            raise PayloadError("a JSON number", f"{value} at byte {payload.position - 8}")
        return value


class StringReader(Reader):
    """A reader of a string."""

    __slots__ = ()

    def read(self, payload: PayloadDecoder) -> Any:
        """Read the value."""
        return payload.read_string()


class NumberReader(Reader):
    """A reader of the record around a number's text."""

    __slots__ = ()

    def read(self, payload: PayloadDecoder) -> Any:
        """Read the text and check it."""
        text = payload.read_string()
        if not is_number(text):
            raise PayloadError("a JSON number", shown(text))
        return ExactNumber(text)


class TextReader(Reader):
    """A reader of the record around the text of an object or array, which `above` levels enclose."""

    __slots__ = ("_above",)

    def __init__(self, above: int) -> None:
        self._above = above

    def read(self, payload: PayloadDecoder) -> Any:
        """Read the text and parse it."""
        text = payload.read_string()
        try:
            value = parse_soon(text, self._above)
        except TextError as error:
            raise PayloadError(error.expected, error.got, pointer=error.pointer) from error
        if type(value) not in (dict, list):
            raise PayloadError("an object or array", kind(value))
        return value


class EnumReader(Reader):
    """A reader of an enum, as the text of its symbol."""

    __slots__ = ("_symbols",)

    def __init__(self, symbols: tuple[str, ...]) -> None:
        self._symbols = symbols

    def read(self, payload: PayloadDecoder) -> Any:
        """Read the index and return the symbol."""
        return self._symbols[payload.read_index(len(self._symbols), "a symbol")]


class OptionalReader(Reader):
    """A reader of a union of null and one other branch; `missing` is returned for null."""

    __slots__ = ("_branch", "_inner", "_missing")

    def __init__(self, inner: Reader, branch: int, missing: Any) -> None:
        self._inner = inner
        self._branch = branch
        self._missing = missing

    def read(self, payload: PayloadDecoder) -> Any:
        """Read the index and the value."""
        return self._inner.read(payload) if payload.read_index(2, "a branch") == self._branch else self._missing


class UnionReader(Reader):
    """A reader of any union; `missing` is returned for null."""

    __slots__ = ("_branches", "_missing")

    def __init__(self, branches: list[Reader | None], missing: Any) -> None:
        self._branches = branches
        self._missing = missing

    def read(self, payload: PayloadDecoder) -> Any:
        """Read the index and the branch."""
        branch = self._branches[payload.read_index(len(self._branches), "a branch")]
        return self._missing if branch is None else branch.read(payload)

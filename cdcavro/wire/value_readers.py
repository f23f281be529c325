"""The readers of values, the small parts of a plan for reading payloads: scalars, enums, unions, arrays and maps.

A reader returns JSON values in the shape that writers accept. `UNSET` stands for a member that is left
out. An error has only the place within the value; the place of the value itself is kept in the payload,
and the reader of the nearest array, map or message prepends it.
"""

from __future__ import annotations

import sys
from typing import Any, Final

from cdcavro.engine.machine import Decoder
from cdcavro.errors import MessageError, PayloadError, TextError, shown
from cdcavro.exact.jsontext import escape, kind, parse_fast
from cdcavro.exact.numbers import exact_number, is_number

_MAX_DOUBLE: Final = sys.float_info.max


class PayloadDecoder(Decoder):
    """A decoder of one payload that keeps track of the place in the record."""

    __slots__ = ("extras", "place", "start", "stop")

    # A pointer to what is being read, relative to the innermost item of an array or a map; whoever catches
    # an error there prepends it to the error's own pointer.
    place: str
    # The envelope's `extras` if they were read, and the positions of their bytes.
    extras: dict[str, str] | None
    start: int
    stop: int

    def skip_extras(self) -> None:
        """Skip a map of strings and note its position. Raises `PayloadError`."""
        self.start = self.position
        for count in self.blocks():
            for _ in range(2 * count):
                self.skip_string()
        self.stop = self.position

    def leave(self, error: MessageError, place: str, name: str) -> None:
        """Leave the item `name` of the array or map at `place`, and add the item's pointer to an error from it."""
        error.below(f"/{escape(name)}{self.place}")
        self.place = place

    def rewind(self) -> PayloadDecoder:
        """Return this decoder, moved back to the start of the extras."""
        self.position = self.start
        return self

    def extras_bytes(self) -> bytes:
        """Return the bytes of the extras."""
        return self.slice(self.start, self.stop)


class ValueReader:
    """A reader of one value."""

    __slots__ = ()

    def read(self, payload: PayloadDecoder) -> Any:
        """Read the value. Raises `PayloadError`."""
        raise NotImplementedError


class BooleanReader(ValueReader):
    """A reader of a boolean."""

    __slots__ = ()

    def read(self, payload: PayloadDecoder) -> Any:
        """Read the value."""
        return payload.read_boolean()


class LongReader(ValueReader):
    """A reader of a 64-bit integer."""

    __slots__ = ()

    def read(self, payload: PayloadDecoder) -> Any:
        """Read the value."""
        return payload.read_long()


class IntReader(ValueReader):
    """A reader of a 32-bit integer."""

    __slots__ = ()

    def read(self, payload: PayloadDecoder) -> Any:
        """Read the value."""
        return payload.read_int()


class DoubleReader(ValueReader):
    """A reader of a double, which must be finite: JSON has no text for others."""

    __slots__ = ()

    def read(self, payload: PayloadDecoder) -> Any:
        """Read the value."""
        value = payload.read_double()
        if not -_MAX_DOUBLE <= value <= _MAX_DOUBLE:
            raise PayloadError("a JSON number", f"{value} at byte {payload.position - 8}")
        return value


class StringReader(ValueReader):
    """A reader of a string."""

    __slots__ = ()

    def read(self, payload: PayloadDecoder) -> Any:
        """Read the value."""
        return payload.read_string()


class NumberReader(ValueReader):
    """A reader of the record around a number's text."""

    __slots__ = ()

    def read(self, payload: PayloadDecoder) -> Any:
        """Read the text and check it."""
        text = payload.read_string()
        if not is_number(text):
            raise PayloadError("a JSON number", shown(text))
        return exact_number(text)


class TextReader(ValueReader):
    """A reader of the record around the text of an object or array, which `above` levels enclose."""

    __slots__ = ("_above",)

    def __init__(self, above: int) -> None:
        self._above = above

    def read(self, payload: PayloadDecoder) -> Any:
        """Read the text and parse it."""
        text = payload.read_string()
        try:
            value = parse_fast(text, self._above)
        except TextError as error:
            raise PayloadError(error.expected, error.got, pointer=error.pointer) from error
        if type(value) not in (dict, list):
            raise PayloadError("an object or array", kind(value))
        return value


class EnumReader(ValueReader):
    """A reader of an enum, as the text of its symbol."""

    __slots__ = ("_symbols",)

    def __init__(self, symbols: tuple[str, ...]) -> None:
        self._symbols = symbols

    def read(self, payload: PayloadDecoder) -> Any:
        """Read the index and return the symbol."""
        return self._symbols[payload.read_index(len(self._symbols), "a symbol")]


class OptionalReader(ValueReader):
    """A reader of a union of null and one other branch; `missing` is returned for null."""

    __slots__ = ("_branch", "_inner", "_missing")

    def __init__(self, inner: ValueReader, branch: int, missing: Any) -> None:
        self._inner = inner
        self._branch = branch
        self._missing = missing

    def read(self, payload: PayloadDecoder) -> Any:
        """Read the index and the value."""
        return self._inner.read(payload) if payload.read_index(2, "a branch") == self._branch else self._missing


class UnionReader(ValueReader):
    """A reader of any union; `missing` is returned for null."""

    __slots__ = ("_branches", "_missing")

    def __init__(self, branches: list[ValueReader | None], missing: Any) -> None:
        self._branches = branches
        self._missing = missing

    def read(self, payload: PayloadDecoder) -> Any:
        """Read the index and the branch."""
        branch = self._branches[payload.read_index(len(self._branches), "a branch")]
        return self._missing if branch is None else branch.read(payload)


class ArrayReader(ValueReader):
    """A reader of an array, block by block."""

    __slots__ = ("_items",)

    def __init__(self, items: ValueReader) -> None:
        self._items = items

    def read(self, payload: PayloadDecoder) -> Any:
        """Read all items into a list."""
        items: list[Any] = []
        reader = self._items
        place = payload.place
        in_item = False
        try:
            for count in payload.blocks():
                in_item = True
                for _ in range(count):
                    payload.place = ""
                    items.append(reader.read(payload))
                in_item = False
                payload.place = place
        except MessageError as error:
            if in_item:
                payload.leave(error, place, str(len(items)))
            raise
        return items


class MapReader(ValueReader):
    """A reader of a map, block by block, which refuses a repeated name: one of two values would be lost."""

    __slots__ = ("_values",)

    def __init__(self, values: ValueReader) -> None:
        self._values = values

    def read(self, payload: PayloadDecoder) -> Any:
        """Read all entries into a dict."""
        entries: dict[str, Any] = {}
        reader = self._values
        place = payload.place
        name = ""
        in_value = False
        try:
            for count in payload.blocks():
                for _ in range(count):
                    name = payload.read_name()
                    if name in entries:
                        raise PayloadError("each name once", f"{shown(name)} twice")
                    payload.place = ""
                    in_value = True
                    entries[name] = reader.read(payload)
                    in_value = False
                    payload.place = place
        except MessageError as error:
            if in_value:
                payload.leave(error, place, name)
            raise
        return entries

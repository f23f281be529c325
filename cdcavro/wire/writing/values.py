"""The small writers of single values (scalars, enums, column values), and the exact conversions between scalars."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cdcavro.errors import SchemaError, StructureError, shown
from cdcavro.exact import numbers, scan
from cdcavro.exact.fastjson import check_value
from cdcavro.exact.jsontext import kind, render
from cdcavro.exact.numbers import MAX_LONG, ExactNumber, check_finite, plain_text, unscaled

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cdcavro.avro.buffer import Buffer
    from cdcavro.wire.attributes import EnumRule
    from cdcavro.wire.extras import Extras

_MAX_INT: Final = 2**31 - 1
_DIGITS: Final = 20
COLUMN_BRANCHES: Final = frozenset({"null", "boolean", "long", "double", "string", "number", "text"})


class Writer:
    """A writer of one value."""

    __slots__ = ()

    def write(self, out: Buffer, value: Any, notes: Extras) -> None:
        """Append the value to `out`. Raises `StructureError`."""
        raise NotImplementedError


class ScalarWriter(Writer):
    """A writer of a boolean, int, long or string; another scalar is converted if that is exact, and noted.

    Attributes: `expected` (str), the name of the Avro type; `own` (type), the Python type of its JSON values.
    """

    __slots__ = ("_convert", "_pointer", "expected", "own")

    def __init__(self, name: str, pointer: str) -> None:
        self.own, self._convert = _CONVERSIONS[name]
        self.expected = name
        self._pointer = pointer

    def write(self, out: Buffer, value: Any, notes: Extras) -> None:
        """Append the value."""
        if self.fits(value):
            self._put(out, value)
        else:
            self._write_other(out, value, notes)

    def _write_other(self, out: Buffer, value: Any, notes: Extras) -> None:
        notes.add(self._pointer, json_text_of(value, self.expected, self._pointer))
        self._put(out, self.converted(value))

    def fits(self, value: Any) -> bool:
        """Return whether a value has the Python type `own` and is within the bounds of the Avro type."""
        return type(value) is self.own

    def converted(self, value: Any) -> Any:
        """Return a scalar of another type converted exactly. Raises `StructureError`."""
        result = self._convert(value)
        if result is None or not self.fits(result):
            got = f"{kind(value)} {shown(plain_text(value))}"
            raise StructureError(self.expected, got, pointer=self._pointer)
        return result

    def _put(self, out: Buffer, value: Any) -> None:
        raise NotImplementedError


class StringWriter(ScalarWriter):
    """A writer of a string."""

    __slots__ = ()

    def write(self, out: Buffer, value: Any, notes: Extras) -> None:
        """Append the value."""
        if type(value) is str:
            out.write_string(value)
        else:
            self._write_other(out, value, notes)

    def _put(self, out: Buffer, value: Any) -> None:
        out.write_string(value)


class LongWriter(ScalarWriter):
    """A writer of an int or a long."""

    __slots__ = ("_most",)

    def __init__(self, name: str, pointer: str) -> None:
        super().__init__(name, pointer)
        self._most = _MAX_INT if name == "int" else MAX_LONG

    def fits(self, value: Any) -> bool:
        """Return whether a value is an integer within the bounds of the Avro type."""
        return type(value) is int and -self._most - 1 <= value <= self._most

    def write(self, out: Buffer, value: Any, notes: Extras) -> None:
        """Append the value."""
        if type(value) is int and out.fits(value, self._most):
            out.write_long(value)
        else:
            self._write_other(out, value, notes)

    def _put(self, out: Buffer, value: Any) -> None:
        out.write_long(value)


class BooleanWriter(ScalarWriter):
    """A writer of a boolean."""

    __slots__ = ()

    def _put(self, out: Buffer, value: Any) -> None:
        out.append(value)


class EnumWriter(Writer):
    """A writer of an enum, as the index of its symbol; other spellings and unknown texts are noted."""

    __slots__ = ("_other", "_pointer", "_spellings", "_symbols")

    def __init__(self, symbols: Sequence[str], rule: EnumRule, pointer: str) -> None:
        self._symbols: dict[Any, int] = {symbol: i for i, symbol in enumerate(symbols)}
        self._spellings = {spelling: self._symbols[symbol] for spelling, symbol in rule.spellings.items()}
        self._other = self._symbols[rule.other] if rule.other else None
        self._pointer = pointer
        if self._other is not None:
            del self._symbols[rule.other]

    def write(self, out: Buffer, value: Any, notes: Extras) -> None:
        """Append the index."""
        if type(value) is str:
            index = self._symbols.get(value)
            if index is not None:
                out.write_long(index)
                return
        notes.add(self._pointer, json_text_of(value, "a symbol", self._pointer))
        index = self._spellings.get(plain_text(value), self._other)
        if index is None:
            expected = f"one of {', '.join(self._symbols)}"
            raise StructureError(expected, shown(plain_text(value)), pointer=self._pointer)
        out.write_long(index)


class ColumnWriter(Writer):
    """A writer of a column's value: null, boolean, long, double, string, or the text of a number, object or array."""

    __slots__ = ("_boolean", "_depth", "_double", "_long", "_null", "_number", "_string", "_text")

    def __init__(self, branches: Sequence[str], depth: int) -> None:
        if set(branches) != COLUMN_BRANCHES:
            raise SchemaError("column value", f"the branches are not {', '.join(sorted(COLUMN_BRANCHES))}")
        index = {branch: i << 1 for i, branch in enumerate(branches)}
        self._null, self._boolean, self._long = index["null"], index["boolean"], index["long"]
        self._double, self._string = index["double"], index["string"]
        self._number, self._text = index["number"], index["text"]
        self._depth = depth

    def write(self, out: Buffer, value: Any, notes: Extras) -> None:  # noqa: ARG002  as all writers
        """Append a branch index and the value."""
        own = type(value)
        if own is str:
            out.append(self._string)
            out.write_string(value)
        elif value is None:
            out.append(self._null)
        elif own is int and out.fits(value, MAX_LONG):
            out.append(self._long)
            out.write_long(value)
        elif own is float:
            check_finite(value)
            out.append(self._double)
            out.write_double(value)
        elif own is bool:
            out.append(self._boolean)
            out.append(value)
        elif own is ExactNumber or own is int:
            out.append(self._number)
            out.write_string(plain_text(value))
        elif own is dict or own is list:
            out.append(self._text)
            check_value(value, self._depth)
            out.write_string(render(value).decode())
        else:
            raise TypeError(f"{own.__name__} is no JSON value")


def json_text_of(value: Any, expected: str, pointer: str) -> str:
    """Return a scalar's JSON text. Raises `StructureError` for anything else."""
    if value is None or type(value) in (dict, list):
        raise StructureError(expected, kind(value), pointer=pointer)
    if type(value) is float:
        check_finite(value, pointer)
    return render(value).decode() if type(value) is str else plain_text(value)


def _to_long(value: Any) -> int | None:
    if type(value) is bool:
        return None
    number = numbers.number(plain_text(value)) if scan.is_number(plain_text(value)) else None
    if type(number) is float:
        return int(number) if number.is_integer() else None
    if type(number) is ExactNumber:
        # A negative zero is 0 here, but None for `unscaled`.
        size = unscaled(number.text.removeprefix("-"), 0, _DIGITS)
        return -size if size and number.text.startswith("-") else size
    return number if type(number) is int else None


def _to_boolean(value: Any) -> bool | None:
    return {"true": True, "false": False}.get(value) if type(value) is str else None


_CONVERSIONS: Final[dict[str, tuple[type, Callable[[Any], Any]]]] = {
    "boolean": (bool, _to_boolean),
    "int": (int, _to_long),
    "long": (int, _to_long),
    "string": (str, plain_text),
}
SCALARS: Final[dict[str, Callable[[str, str], ScalarWriter]]] = {
    "boolean": BooleanWriter,
    "int": LongWriter,
    "long": LongWriter,
    "string": StringWriter,
}

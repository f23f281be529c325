"""The writers of values, the small parts of a plan for writing records: scalars, enums, unions, arrays and maps.

Scalars of another type are converted where that is exact, and noted for `extras`. Every writer knows its
pointer below the nearest array or map; the writers of arrays and maps prepend the index or name of an item
to the notes and errors that come from it.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET

from cdcavro.avro.binary import MAX_COUNT
from cdcavro.errors import MessageError, SchemaError, StructureError, shown
from cdcavro.exact import numbers
from cdcavro.exact.jsontext import check_value, escape, kind, render
from cdcavro.exact.numbers import MAX_LONG, ExactNumber, check_finite, plain_text, unscaled

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cdcavro.avro.binary import Buffer
    from cdcavro.wire.attributes import EnumRule
    from cdcavro.wire.extras import Notes


_MAX_INT: Final = 2**31 - 1
_DIGITS: Final = 20
COLUMN_BRANCHES: Final = frozenset({"null", "boolean", "long", "double", "string", "number", "text"})


class ValueWriter:
    """A writer of one value."""

    __slots__ = ()

    def write(self, out: Buffer, value: Any, notes: Notes) -> None:
        """Append the value to `out`. Raises `StructureError`."""
        raise NotImplementedError


class ScalarWriter(ValueWriter):
    """A writer of a boolean, int, long or string; a scalar of another type is converted if that is exact, and noted.

    Attributes: `expected` (str), the name of the Avro type; `json_type` (type), the Python type of its JSON values.
    """

    __slots__ = ("_convert", "_pointer", "expected", "json_type")

    def __init__(self, name: str, pointer: str) -> None:
        self.json_type, self._convert = _CONVERSIONS[name]
        self.expected = name
        self._pointer = pointer

    def write(self, out: Buffer, value: Any, notes: Notes) -> None:
        """Append the value."""
        if self.fits(value):
            self._put(out, value)
        else:
            self._write_other(out, value, notes)

    def _write_other(self, out: Buffer, value: Any, notes: Notes) -> None:
        notes.add(self._pointer, json_text_of(value, self.expected, self._pointer))
        self._put(out, self.convert_exactly(value))

    def fits(self, value: Any) -> bool:
        """Return whether a value has the Python type `json_type` and is within the bounds of the Avro type."""
        return type(value) is self.json_type

    def convert_exactly(self, value: Any) -> Any:
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

    def write(self, out: Buffer, value: Any, notes: Notes) -> None:
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

    def write(self, out: Buffer, value: Any, notes: Notes) -> None:
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


class EnumWriter(ValueWriter):
    """A writer of an enum, as the index of its symbol; other spellings and unknown texts are noted."""

    __slots__ = ("_other", "_pointer", "_spellings", "_symbols")

    def __init__(self, symbols: Sequence[str], rule: EnumRule, pointer: str) -> None:
        places = {symbol: i for i, symbol in enumerate(symbols)}
        self._symbols: dict[Any, int] = {text: i for i, text in enumerate(rule.texts(symbols))}
        self._spellings = {spelling: places[symbol] for spelling, symbol in rule.spellings.items()}
        self._other = places[rule.other] if rule.other else None
        self._pointer = pointer
        if self._other is not None:
            del self._symbols[rule.texts([rule.other])[0]]

    def write(self, out: Buffer, value: Any, notes: Notes) -> None:
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


class ColumnWriter(ValueWriter):
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

    def write(self, out: Buffer, value: Any, notes: Notes) -> None:
        """Append a branch index and the value."""
        value_type = type(value)
        if value_type is str:
            out.append(self._string)
            out.write_string(value)
        elif value is None:
            out.append(self._null)
        elif value_type is int and out.fits(value, MAX_LONG):
            out.append(self._long)
            out.write_long(value)
        elif value_type is float:
            check_finite(value)
            out.append(self._double)
            out.write_double(value)
        elif value_type is bool:
            out.append(self._boolean)
            out.append(value)
        elif value_type is ExactNumber or value_type is int:
            out.append(self._number)
            out.write_string(plain_text(value))
        elif value_type is dict or value_type is list:
            out.append(self._text)
            check_value(value, self._depth)
            out.write_string(render(value).decode())
        elif value_type is Decimal:
            self.write(out, numbers.without_decimals(value), notes)
        else:
            raise TypeError(f"{value_type.__name__} is no JSON value")


class OptionalWriter(ValueWriter):
    """A writer of a union of null and one other branch; with `takes_text`, a string is noted and null written."""

    __slots__ = ("_index", "_inner", "_null", "_null_is_usual", "_pointer", "_takes_text")

    def __init__(self, inner: ValueWriter, index: int, pointer: str, missing: str, *, takes_text: bool = False) -> None:
        self._inner = inner
        self._index = index << 1
        self._null = (1 - index) << 1
        self._pointer = pointer
        self._null_is_usual = missing == "null"
        self._takes_text = takes_text

    def write(self, out: Buffer, value: Any, notes: Notes) -> None:
        """Append a branch index and the value."""
        if value is UNSET:
            out.append(self._null)
            if self._null_is_usual:
                notes.add(self._pointer, "")
        elif value is None:
            out.append(self._null)
            if not self._null_is_usual:
                notes.add(self._pointer, "null")
        elif self._takes_text and type(value) is str:
            out.append(self._null)
            notes.add(self._pointer, render(value).decode())
        else:
            out.append(self._index)
            self._inner.write(out, value, notes)


class VariantWriter(ValueWriter):
    """A writer of null or one of several scalars, in the branch of the JSON type, or else the first that converts."""

    __slots__ = ("_branches", "_by_type", "_null", "_null_is_usual", "_pointer")

    def __init__(self, branches: Mapping[int, ScalarWriter], null: int, pointer: str, missing: str) -> None:
        self._branches = dict(branches)
        self._by_type = {branch.json_type: index for index, branch in branches.items()}
        self._null = null << 1
        self._null_is_usual = missing == "null"
        self._pointer = pointer

    def write(self, out: Buffer, value: Any, notes: Notes) -> None:
        """Append a branch index and the value."""
        if value is UNSET or value is None:
            out.append(self._null)
            if (value is None) is not self._null_is_usual:
                notes.add(self._pointer, "null" if value is None else "")
            return
        index = self._by_type.get(type(value), -1)
        if index < 0 or not self._branches[index].fits(value):
            index = self._converting_branch(value)
        branch: ScalarWriter = self._branches[index]
        out.append(index << 1)
        branch.write(out, value, notes)

    def _converting_branch(self, value: Any) -> int:
        for index, branch in self._branches.items() if type(value) not in (dict, list) else ():
            try:
                branch.convert_exactly(value)
            except StructureError:
                continue
            return index
        expected = " or ".join(branch.expected for branch in self._branches.values())
        raise StructureError(expected, kind(value), pointer=self._pointer)


def check_count(count: int, pointer: str) -> None:
    """Raise `StructureError` if an array or a map is longer than readers allow."""
    if count > MAX_COUNT:
        raise StructureError(f"at most {MAX_COUNT} items", f"{count}", pointer=pointer)


class ArrayWriter(ValueWriter):
    """A writer of an array, as one block."""

    __slots__ = ("_items", "_pointer")

    def __init__(self, items: ValueWriter, pointer: str) -> None:
        self._items = items
        self._pointer = pointer

    def write(self, out: Buffer, value: Any, notes: Notes) -> None:
        """Append the block."""
        if type(value) is not list:
            raise StructureError("array", kind(value), pointer=self._pointer)
        if value:
            check_count(len(value), self._pointer)
            out.write_long(len(value))
            self._write_items(out, value, notes)
        out.append(0)

    def _write_items(self, out: Buffer, items: list[Any], notes: Notes) -> None:
        writer = self._items
        i = 0
        try:
            for item in items:
                count_before = notes.count
                writer.write(out, item, notes)
                if notes.count != count_before:
                    notes.below(f"{self._pointer}/{i}", count_before)
                i += 1
        except MessageError as error:
            error.below(f"{self._pointer}/{i}")
            raise


class MapWriter(ValueWriter):
    """A writer of a map, as one block."""

    __slots__ = ("_pointer", "_values")

    def __init__(self, values: ValueWriter, pointer: str) -> None:
        self._values = values
        self._pointer = pointer

    def write(self, out: Buffer, value: Any, notes: Notes) -> None:
        """Append the block."""
        if type(value) is not dict:
            raise StructureError("object", kind(value), pointer=self._pointer)
        self.write_entries(out, value, len(value), None, notes)

    def write_entries(
        self, out: Buffer, entries: dict[str, Any], count: int, skipped: frozenset[str] | None, notes: Notes
    ) -> None:
        """Append the block of the `count` entries whose names are not in `skipped`."""
        if count:
            check_count(count, self._pointer)
            out.write_long(count)
            self._write_each(out, entries, skipped, notes)
        out.append(0)

    def _write_each(self, out: Buffer, entries: dict[str, Any], skipped: frozenset[str] | None, notes: Notes) -> None:
        writer = self._values
        name = ""
        try:
            for name, item in entries.items():
                if skipped is not None and name in skipped:
                    continue
                count_before = notes.count
                out.write_string(name)
                writer.write(out, item, notes)
                if notes.count != count_before:
                    notes.below(f"{self._pointer}/{escape(name)}", count_before)
        except MessageError as error:
            error.below(f"{self._pointer}/{escape(name)}")
            raise


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
    number = numbers.number(plain_text(value)) if numbers.is_number(plain_text(value)) else None
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

"""Cells of rows in payloads: they are passed by, masked or left out, and a condition on one of them is looked at.

The payloads are those that `table.writing` makes, of this process, so nothing in them is checked.
"""

from __future__ import annotations

import operator
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache, partial
from struct import unpack
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cdcavro.avro.binary import Buffer
from cdcavro.engine.program import RULE_ACTIONS, RULE_SIZES, RULE_TESTS, RULE_TEXTS, CellRule, RowTest
from cdcavro.errors import shown
from cdcavro.table.table_schema import attributes_of, avro_of, column_name, is_column, without_attributes
from cdcavro.table.writing.table_writer import write_texts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cdcavro.table.table_schema import TableSchema

_DATE: Final = datetime(1970, 1, 1, tzinfo=UTC)
_VARINT, _SIZED = -1, -2
# How many bytes a cell of an Avro type takes, or how that is found out.
_SIZES: Final = {
    "boolean": 1,
    "int": _VARINT,
    "long": _VARINT,
    "float": 4,
    "double": 8,
    "bytes": _SIZED,
    "string": _SIZED,
}
# Of the types of values, what makes their texts in the engine; those of others Python makes.
_ENGINE_TEXTS: Final = {"string": "bytes", "bytes": "bytes", "int": "whole", "long": "whole", "decimal": "decimal"}
# The comparisons for which an operator holds, as `RowTest` has them.
_SIGNS: Final = {"<": 1, "=": 2, "<=": 3, ">": 4, "!=": 5, "<>": 5, ">=": 6}
# The greatest number of the engine, and how many bits half of one has.
_WIDEST: Final = 2**127 - 1
_HALF: Final = 64
_NOTHING: Final = b"\0"
# What the last byte of a long is less than.
_LONG: Final = 0x80


class Action(NamedTuple):
    """What becomes of a column: it is left out, or its values are replaced by texts."""

    # How, in words.
    label: str
    # What makes the text that replaces a value's; None for a column that is left out.
    mask: Callable[[bytes], bytes] | None
    # Whether different values have different texts.
    is_distinct: bool = True
    # What copies the hash objects through which a text goes, one after the other, and of the last of which the digest,
    # in hexadecimal, is what `mask` makes; none for a text that is always the same.
    copies: tuple[Callable[[], Any], ...] = ()


class RowCell:
    """A field of a row: how its bytes are passed by, and what becomes of its value.

    Made from the schema of the row, the field, what becomes of it, and the field as it is written.
    """

    __slots__ = (
        "_last",
        "_scale",
        "action",
        "column",
        "is_written",
        "kind",
        "mask",
        "null",
        "null_made",
        "read",
        "size",
        "some_made",
        "text",
        "text_name",
        "value",
    )

    def __init__(
        self,
        schema: TableSchema,
        declared: Mapping[str, Any],
        action: Action | None = None,
        made: Mapping[str, Any] | None = None,
    ) -> None:
        own = dict(declared)
        primitive = without_attributes(avro_of(own))
        self.size = _SIZES[primitive if isinstance(primitive, str) else primitive["type"]]
        self.column, self.is_written = column_name(own), "until" not in attributes_of(own)
        # What the column is called where the texts are of values that its type cannot carry.
        self.text_name = schema.text_names.get(own["name"], self.column)
        self.null = own["type"].index("null") << 1
        self.action, self.mask = action, None if action is None else action.mask
        # The type of values in a word, and what makes a text of a value's bytes; the latter only if it is masked, too.
        self.kind = primitive if isinstance(primitive, str) else str(primitive["logicalType"])
        self.read, self.value = value_text(avro_of(own)), value_of(avro_of(own))
        self.text = None if self.mask is None else self.read
        place = 0 if made is None else made["type"].index("null")
        self.null_made, self.some_made = bytes([place << 1]), bytes([(1 - place) << 1])
        self._scale = int(primitive.get("scale", 0)) if isinstance(primitive, dict) else 0
        # Of most updates the rows before and after have the same value.
        self._last: tuple[bytes, bytes] = b"", b""

    @property
    def rule(self) -> CellRule:
        """The cell as the engine passes it by."""
        copies, mask = () if self.action is None else self.action.copies, self.mask
        is_filled = mask is not None and not copies
        action = "keep" if self.action is None else "fill" if is_filled else "leave out" if mask is None else "digest"
        return CellRule(
            self.column.encode(),
            RULE_ACTIONS.index(action),
            max(self.size, -1),
            RULE_SIZES.index("varint" if self.size == _VARINT else "sized"),
            self.null,
            self.some_made[0],
            self.null_made[0],
            self.masked(b"") if is_filled else b"",
            copies,
            RULE_TEXTS.index(_ENGINE_TEXTS.get(self.kind, "python")),
            self._scale,
            self.read,
        )

    def test(self, condition: Condition, place: int) -> RowTest:
        """Return a condition on the cell, which is at a place among those of a row, as the engine decides by it."""
        constant = condition.constant
        if constant is None:
            return RowTest(RULE_TESTS.index("null"), place, int(condition.op == "is null"))
        signs, text = _SIGNS[condition.op], _ENGINE_TEXTS.get(self.kind, "python")
        if isinstance(constant, Decimal) and text != "python":
            exact = Fraction(constant) * 10**self._scale
            floor = min(max(exact.numerator // exact.denominator, -_WIDEST - 1), _WIDEST)
            halves = floor >> _HALF, (floor & (1 << _HALF) - 1) - (1 << _HALF if floor >> (_HALF - 1) & 1 else 0)
            return RowTest(RULE_TESTS.index("number"), place, signs, halves, floor == exact, b"", condition.holds)
        if isinstance(constant, str) and text == "bytes":
            return RowTest(RULE_TESTS.index("text"), place, signs, constant=constant.encode())
        return RowTest(RULE_TESTS.index("python"), place, holds=condition.holds)

    def end(self, raw: bytes, at: int) -> int:
        """Return where a cell ends that begins at a place."""
        is_null, at = raw[at] == self.null, at + 1
        if is_null:
            return at
        if self.size == _VARINT:
            while raw[at] & 0x80:
                at += 1
            return at + 1
        if self.size == _SIZED:
            if (size := raw[at]) < _LONG:
                return at + 1 + (size >> 1)
            size, at = read_long(raw, at)
            return at + size
        return at + self.size

    def masked(self, text: bytes) -> bytes:
        """Return the mask of a value's text, as the cell that is written."""
        known, made = self._last
        if (known != text or not made) and self.mask is not None:
            masked = self.mask(text)
            made = b"".join([self.some_made, _size_of(len(masked)), masked])
            self._last = text, made
        return made


@lru_cache(maxsize=1 << 10)
def _size_of(count: int) -> bytes:
    """Return what stands before a string of so many bytes."""
    out = Buffer()
    out.write_long(count)
    return out.taken()


def put_cells(raw: bytes, at: int, cells: Sequence[RowCell], out: list[bytes]) -> int:
    """Put out the cells of a row or a key, and the texts of values that their types cannot carry; return the end."""
    start, held = at, {}
    for cell in cells:
        first, is_null, size = at, raw[at] == cell.null, cell.size
        # Where the cell ends, as `end` says, without a call for each.
        at += 1
        if is_null:
            pass
        elif size == _VARINT:
            while raw[at] & 0x80:
                at += 1
            at += 1
        elif size != _SIZED:
            at += size
        elif (size := raw[at]) < _LONG:
            at += 1 + (size >> 1)
        else:
            at = cell.end(raw, first)
        if cell.action is None:
            continue
        out.append(raw[start:first])
        start = at
        if cell.text is not None:
            if is_null and cell.is_written:
                held[cell.text_name] = len(out), cell
            out.append(cell.null_made if is_null else cell.masked(cell.text(raw[first + 1 : at])))
    out.append(raw[start:at])
    return _put_texts(raw, at, cells, out, held)


def _put_texts(
    raw: bytes, at: int, cells: Sequence[RowCell], out: list[bytes], held: Mapping[str, tuple[int, RowCell]]
) -> int:
    """Put out the texts of values that their types cannot carry; those of masked columns are masked in their place."""
    if not raw[at]:
        out.append(_NOTHING)
        return at + 1
    parts, at = read_texts(raw, at, 2)
    texts = dict(zip(parts[::2], parts[1::2], strict=True))
    for name, text in texts.items():
        if name in held:
            place, cell = held[name]
            out[place] = cell.masked(text.encode())
    protected, made = {cell.text_name for cell in cells if cell.action is not None}, Buffer()
    write_texts(made, {name: text for name, text in texts.items() if name not in protected})
    out.append(made.taken())
    return at


def put_absent(raw: bytes, at: int, cells: Sequence[RowCell], out: list[bytes]) -> tuple[int, bool]:
    """Put out the names of the columns that a row lacks, without those that are left out; return the end."""
    if not raw[at]:
        out.append(_NOTHING)
        return at + 1, False
    names, at = read_texts(raw, at, 1)
    gone = {cell.column for cell in cells if cell.action is not None and cell.mask is None}
    kept, made = [name for name in names if name not in gone], Buffer()
    if kept:
        made.write_long(len(kept))
        for name in kept:
            made.write_string(name)
    out.append(made.taken() + _NOTHING)
    return at, bool(kept)


def unparsed_texts(schema: TableSchema, payload: bytes) -> dict[str, str]:
    """Return the texts of values that their types cannot carry, by column, in an envelope of a version of a table."""
    cells = [RowCell(schema, one) for one in schema.record["fields"] if is_column(one)]
    names = {text_name: column.name for column in schema.columns for text_name in [schema.text_names[column.field]]}
    found: dict[str, str] = {}
    at = 0
    for _ in ("before", "after"):
        is_there, at = payload[at] != 0, at + 1
        if is_there:
            for cell in cells:
                at = cell.end(payload, at)
            texts, at = read_texts(payload, at, 2)
            _, at = read_texts(payload, at, 1)
            found |= dict(zip([names.get(name, name) for name in texts[::2]], texts[1::2], strict=True))
    return found


def read_texts(raw: bytes, at: int, most: int) -> tuple[list[str], int]:
    """Return the texts of an array, or of a map where an item has two, and where it ends."""
    texts = []
    count, at = read_long(raw, at)
    while count:
        for _ in range(count * most):
            size, at = read_long(raw, at)
            texts.append(raw[at : at + size].decode())
            at += size
        count, at = read_long(raw, at)
    return texts, at


def read_long(raw: bytes, at: int) -> tuple[int, int]:
    """Return a long of Avro's, and where it ends."""
    value = shift = 0
    while True:
        byte = raw[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < _LONG:
            return value >> 1 ^ -(value & 1), at
        shift += 7


def value_text(avro: Any) -> Callable[[bytes], bytes]:
    """Return what turns the bytes of a value into its text: the same for all formats and sizes of a type.

    A number is its digits, without zeros behind the last figure, a time as ISO 8601 spells it, and bytes stay.
    """
    kind = without_attributes(avro)
    if isinstance(kind, dict):
        return partial(_LOGICAL[kind["logicalType"]], kind)
    return _PRIMITIVES[kind]


def _sized(raw: bytes) -> bytes:
    size, at = read_long(raw, 0)
    return raw[at : at + size]


def _decimal(kind: Mapping[str, Any], raw: bytes) -> bytes:
    unscaled, scale = int.from_bytes(_sized(raw), "big", signed=True), kind.get("scale", 0)
    if not scale:
        return b"%d" % unscaled
    digits = b"%d" % abs(unscaled)
    digits = digits.rjust(scale + 1, b"0")
    figures = digits[-scale:].rstrip(b"0")
    return b"".join([b"-" if unscaled < 0 else b"", digits[:-scale], b"." if figures else b"", figures])


def _moment(zone: str, raw: bytes, *, unit: int = 1) -> bytes:
    micros = read_long(raw, 0)[0] * unit
    try:
        return ((_DATE + timedelta(microseconds=micros)).replace(tzinfo=None).isoformat() + zone).encode()
    except OverflowError:  # a year that Python does not have
        return str(micros).encode()


def _day(_: Any, raw: bytes) -> bytes:
    days = read_long(raw, 0)[0]
    try:
        return (_DATE + timedelta(days=days)).date().isoformat().encode()
    except OverflowError:
        return str(days).encode()


def _clock(_: Any, raw: bytes) -> bytes:
    return (_DATE + timedelta(microseconds=read_long(raw, 0)[0])).time().isoformat().encode()


_PRIMITIVES: Final[dict[str, Callable[[bytes], bytes]]] = {
    "string": _sized,
    "bytes": _sized,
    "int": lambda raw: str(read_long(raw, 0)[0]).encode(),
    "long": lambda raw: str(read_long(raw, 0)[0]).encode(),
    "boolean": lambda raw: b"true" if raw[0] else b"false",
    "float": lambda raw: repr(unpack("<f", raw)[0]).encode(),
    "double": lambda raw: repr(unpack("<d", raw)[0]).encode(),
}
_LOGICAL: Final[dict[str, Callable[[Any, bytes], bytes]]] = {
    "decimal": _decimal,
    "date": _day,
    "time-micros": _clock,
    "timestamp-micros": lambda _, raw: _moment("Z", raw),
    "timestamp-millis": lambda _, raw: _moment("Z", raw, unit=1000),
    "local-timestamp-micros": lambda _, raw: _moment("", raw),
}


def value_of(avro: Any) -> Callable[[bytes], Any]:
    """Return what turns the bytes of a value into Python's: a `Decimal`, a `date`, a `datetime`, a `str` and so on.

    That raises `OverflowError` for a year that Python does not have.
    """
    kind = without_attributes(avro)
    if isinstance(kind, dict):
        return partial(_LOGICAL_VALUES[kind["logicalType"]], kind)
    return _PRIMITIVE_VALUES[kind]


def _instant(kind: Mapping[str, Any], raw: bytes) -> datetime:
    micros = read_long(raw, 0)[0] * (1000 if kind["logicalType"].endswith("millis") else 1)
    moment = _DATE + timedelta(microseconds=micros)
    return moment.replace(tzinfo=None) if kind["logicalType"].startswith("local") else moment


_PRIMITIVE_VALUES: Final[dict[str, Callable[[bytes], Any]]] = {
    "string": lambda raw: _sized(raw).decode(),
    "bytes": _sized,
    "int": lambda raw: read_long(raw, 0)[0],
    "long": lambda raw: read_long(raw, 0)[0],
    "boolean": lambda raw: raw[0] != 0,
    "float": lambda raw: unpack("<f", raw)[0],
    "double": lambda raw: unpack("<d", raw)[0],
}
_LOGICAL_VALUES: Final[dict[str, Callable[[Any, bytes], Any]]] = {
    "decimal": lambda kind, raw: Decimal(f"{int.from_bytes(_sized(raw), 'big', signed=True)}E-{kind.get('scale', 0)}"),
    "date": lambda _, raw: (_DATE + timedelta(days=read_long(raw, 0)[0])).date(),
    "time-micros": lambda _, raw: (_DATE + timedelta(microseconds=read_long(raw, 0)[0])).time(),
    "timestamp-micros": _instant,
    "timestamp-millis": _instant,
    "local-timestamp-micros": _instant,
}

_CONDITION: Final = re.compile(
    r"""\s*(?:"(?P<quoted>[^"]+)"|(?P<name>[^\s<>=!"']+))\s*"""
    r"""(?P<op>is\s+not\s+null|is\s+null|<=|>=|<>|!=|=|<|>)\s*(?P<constant>.*?)\s*""",
    re.IGNORECASE | re.DOTALL,
)
_TEXT: Final = re.compile(r"'((?:[^']|'')*)'")
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,40}(?:\.[0-9]{1,40})?", re.ASCII)
_COMPARE: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
# As which NaN compares with numbers: to databases and Spark it is greater than all.
_GREATEST: Final = Decimal("Infinity")
_SAME: Final = ("=", "!=", "<>")
_NUMBERS: Final = ("int", "long", "float", "double", "decimal")
# Texts of which the smaller one is the earlier one.
_ORDERED: Final = ("string", "date")


class Condition(NamedTuple):
    """A condition on a row: a column, how it is compared, and with what: a number, a text, or nothing."""

    column: str
    op: str
    constant: Decimal | str | None

    @classmethod
    def of(cls, text: str) -> Condition:
        """Return the condition that a text states. Raises `ValueError` for another text."""
        found = _CONDITION.fullmatch(text)
        if found is None:
            raise ValueError(
                f"where is a column, an operator and a constant, such as status = 'paid', not {shown(text)}"
            )
        column, op = found["quoted"] or found["name"], " ".join(found["op"].lower().split())
        constant, literal = found["constant"], _TEXT.fullmatch(found["constant"])
        if op.startswith("is "):
            if constant:
                raise ValueError(f"nothing stands behind {op}, not {shown(constant)}")
            return cls(column, op, None)
        if literal is not None:
            return cls(column, op, literal[1].replace("''", "'"))
        if _NUMBER.fullmatch(constant) is None:
            raise ValueError(
                f"where compares with a number or with a text in single quotes, not with {shown(constant)}"
            )
        return cls(column, op, Decimal(constant))

    def mismatch(self, kind: str) -> str | None:
        """Return why a column whose values are of a kind cannot be compared so; None if it can."""
        if self.constant is None:
            return None
        if isinstance(self.constant, Decimal) != (kind in _NUMBERS):
            return "a number is compared with a number, and anything else with a text"
        if self.op not in _SAME and kind not in (*_NUMBERS, *_ORDERED):
            return f"values of type {kind} have no order here"
        return None

    def holds(self, value: bytes | None) -> bool:
        """Return whether the condition holds for the text of a value, as `value_text` has it; None is null."""
        if self.constant is None or value is None:
            return (self.op == "is null") == (value is None) and self.constant is None
        if isinstance(self.constant, Decimal):
            number = Decimal(value.decode())
            return _COMPARE[self.op](_GREATEST if number.is_nan() else number, self.constant)
        return _COMPARE[self.op](value, self.constant.encode())

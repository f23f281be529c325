"""Cells for the engine: how it turns a value as it is sent into the Avro of a column, from the rules of both readers.

The rules say what the exact way does: first `sent`, by which a format's value becomes a JSON value as all formats
have it, then the rule of the column type's reader. A pair that is not listed is left to the exact way.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any, Final

from cdcavro.engine.row_program import OPERATIONS
from cdcavro.table.columns import times
from cdcavro.table.columns.reader_rules import rule_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cdcavro.table.columns.reader_rules import Rule

    Cell = tuple[str, int, int, int]
    Compose = Callable[["CellTable", tuple[Any, ...], tuple[Any, ...]], Cell | None]

_MOST_MASKED: Final = 62
_LONG: Final = 64
_MASK: Final = 2**_LONG - 1
_BOUND: Final = 2 ** (_LONG - 1)
_MOST_PADDED: Final = 1 << 16
_COUNTS: Final = {
    times.from_seconds_text: "seconds",
    times.seconds: "seconds or long",
    times.milliseconds: "milliseconds",
    times.microseconds: "microseconds",
    times.dataworks_instant: "padded",
}


class CellTable:
    """Cells as the engine has them, with what they refer to.

    Attributes: `cells`, `longs` and `symbols` (arrays of int) and `texts` (bytearray) are as in `RowProgram`.
    """

    def __init__(self) -> None:
        self.cells, self.longs, self.symbols = array("i"), array("q"), array("i")
        self.texts = bytearray()

    def add(self, name: str, sent: Rule | None, read: Callable[[Any], Any] | None, some: int, null: int) -> None:
        """Add the cell of a column: how its values are sent (None if that cannot be told), and their reader.

        No reader is for a column that newer rows no longer have.
        """
        start, size = self._text(name)
        cell = ("gone", 0, 0, 0) if read is None else self._cell(sent, rule_of(read))
        operation, *operands = cell or ("left", 0, 0, 0)
        self.cells.extend((start, size, OPERATIONS.index(operation), some, null, *operands))

    def bounds(self, least: int, most: int) -> int:
        """Return where two bounds of 64 bits stand."""
        self.longs.extend((least, most))
        return len(self.longs) - 2

    def wide_bounds(self, least: int, most: int) -> int:
        """Return where two bounds of 128 bits stand, each as its upper and its lower half."""
        for bound in (least, most):
            low = bound & _MASK
            self.longs.extend((bound >> _LONG, low - 2 * _BOUND if low >= _BOUND else low))
        return len(self.longs) - 4

    def labels(self, members: Sequence[str]) -> int:
        """Return where the first of some labels stands."""
        first = len(self.symbols) // 2
        for member in members:
            self.symbols.extend(self._text(member))
        return first

    def _text(self, text: str) -> tuple[int, int]:
        start, raw = len(self.texts), text.encode()
        self.texts += raw
        return start, len(raw)

    def _cell(self, sent: Rule | None, read: Rule | None) -> Cell | None:
        if sent is None or read is None:
            return None
        compose = _COMPOSED.get((sent[0] if sent else "", read[0]))
        return None if compose is None else compose(self, sent[1:], read[1:])


def _plain(operation: str, *operands: int) -> Compose:
    a, b, c = (*operands, 0, 0, 0)[:3]
    return lambda _table, _sent, _read: (operation, a, b, c)


def _whole(table: CellTable, _sent: Rule, read: Rule) -> Cell:
    return "whole", table.bounds(*read), 0, 0


def _decimal(table: CellTable, _sent: Rule, read: Rule) -> Cell:
    least, most, scale, is_text = read
    return "decimal", table.wide_bounds(least, most), scale, int(is_text)


def _decimal_of_text(table: CellTable, _sent: Rule, read: Rule) -> Cell:
    return "decimal", table.wide_bounds(read[0], read[1]), read[2], 1


def _unscaled(table: CellTable, sent: Rule, read: Rule) -> Cell | None:
    least, most, scale, _ = read
    return None if sent[0] != scale else ("unscaled", table.wide_bounds(least, most), scale, 0)


def _unsigned(table: CellTable, _sent: Rule, read: Rule) -> Cell | None:
    least, most, scale, _ = read
    return None if scale else ("unscaled", table.wide_bounds(least, most), 0, 1)


def _digits(_table: CellTable, _sent: Rule, read: Rule) -> Cell:
    return "digits", 0, 0, int(read[0])


def _label(table: CellTable, _sent: Rule, read: Rule) -> Cell:
    return "label", table.labels(read[0]), len(read[0]), 0


def _escaped_label(table: CellTable, sent: Rule, read: Rule) -> Cell | None:
    return None if any("\\" in member for member in read[0]) or not read[0] else _label(table, sent, read)


def _indexed_label(table: CellTable, sent: Rule, read: Rule) -> Cell | None:
    members = read[0]
    is_plain = sent[0] == members and len(set(members)) == len(members) and members and "" not in members
    return ("indexed label", table.labels(members), len(members), 0) if is_plain else None


def _labels(table: CellTable, _sent: Rule, read: Rule) -> Cell:
    return "labels", table.labels(read[0]), len(read[0]), 0


def _masked_labels(table: CellTable, sent: Rule, read: Rule) -> Cell | None:
    members = read[0]
    is_plain = sent[0] == members and len(set(members)) == len(members) and 0 < len(members) <= _MOST_MASKED
    if not is_plain or any(not member or "," in member for member in members):
        return None
    return "masked labels", table.labels(members), len(members), 0


def _binary(operation: str) -> Compose:
    def compose(_table: CellTable, _sent: Rule, read: Rule) -> Cell | None:
        return None if read[0] > _MOST_PADDED or (read[0] and operation == "base64") else (operation, read[0], 0, 0)

    return compose


def _bits(operation: str) -> Compose:
    def compose(_table: CellTable, sent: Rule, read: Rule) -> Cell | None:
        is_plain = read[0] and (not sent or sent[0] == read[0])
        return (operation, read[0], 0, 0) if is_plain else None

    return compose


def _day(_table: CellTable, _sent: Rule, read: Rule) -> Cell:
    return "day", int(read[0]), 0, 0


def _moment(operation: str) -> Compose:
    """Return the rule of times that are texts, or counts of a unit by the format or by the reader."""

    def compose(_table: CellTable, sent: Rule, read: Rule) -> Cell:
        if sent:
            digits, precision = sent
            return operation, digits, -1 if precision is None else precision, 0
        counted = rule_of(read[0])
        return operation, counted[1] if counted is not None else 0, -1, 0

    return compose


def _instant(_table: CellTable, _sent: Rule, read: Rule) -> Cell | None:
    operation = _COUNTS.get(read[0])
    return None if operation is None else (operation, 0, 0, 0)


def _instant_of(operation: str) -> Compose:
    """Return the rule of instants that the format spells in another way than in seconds, as which they are then read."""

    def compose(_table: CellTable, sent: Rule, read: Rule) -> Cell | None:
        return (operation, 0, sent[0] if sent else 0, 0) if read[0] is times.from_seconds_text else None

    return compose


_NUMBERS: Final[dict[str, Compose]] = {
    "whole": _whole,
    "double": _plain("double"),
    "single": _plain("single"),
    "flag": _plain("flag"),
}
_COMPOSED: Final[dict[tuple[str, str], Compose]] = {
    **{("", read): compose for read, compose in _NUMBERS.items()},
    **{("number", read): compose for read, compose in _NUMBERS.items()},
    ("flag", "whole"): _whole,
    ("", "decimal"): _decimal,
    ("number", "decimal"): _decimal_of_text,
    ("digits", "decimal"): _decimal_of_text,
    ("decimal", "decimal"): _unscaled,
    ("unsigned", "decimal"): _unsigned,
    ("", "digits"): _digits,
    ("number", "digits"): _plain("digits", 0, 0, 1),
    ("", "string"): _plain("string"),
    ("escaped", "string"): _plain("string", 0, 0, ord("\\")),
    ("", "json"): _plain("json"),
    ("", "anything"): _plain("anything"),
    ("", "label"): _label,
    ("escaped", "label"): _escaped_label,
    ("label", "label"): _indexed_label,
    ("", "labels"): _labels,
    ("labels", "labels"): _masked_labels,
    ("", "binary"): _binary("base64"),
    ("bytes", "binary"): _binary("latin1"),
    ("", "bits"): _bits("bits"),
    ("bits", "bits"): _bits("reversed bits"),
    ("counted bits", "bits"): _bits("counted bits"),
    ("", "day"): _day,
    ("day", "day"): _plain("day", 1),
    ("", "clock"): _moment("clock"),
    ("clock", "clock"): _moment("clock"),
    ("", "local"): _moment("local"),
    ("local", "local"): _moment("local"),
    ("", "instant"): _instant,
    ("instant", "instant"): _instant_of("iso"),
    ("zoned", "instant"): _instant_of("in zone"),
    ("", "milliseconds"): _plain("millis"),
}

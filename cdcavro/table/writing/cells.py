"""Cells of the engine: how it turns a value as it is sent into the Avro of a column, by the rules of both readers.

The rules say what the exact way does: first the one by which a format's value becomes a JSON value as all formats
have it, then that of the column's type. `CELLS` has each rule of a type with the rules by which its values may be
sent; a pair that is not there is left to the exact way. So is every rule in `LEFT_TO_PYTHON`.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any, Final

from cdcavro.engine.program import OPERATIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cdcavro.change.model import Rule

    Operands = tuple[Any, ...]
    Operation = tuple[str, int, int, int]
    # Of a table, the operands of how values are sent, and those of how they are read.
    Compose = Callable[["CellTable", Operands, Operands], Operation | None]

_MOST_MASKED: Final = 62
_LONG: Final = 64
_MASK: Final = 2**_LONG - 1
_BOUND: Final = 2 ** (_LONG - 1)
_MOST_PADDED: Final = 1 << 16
_INSTANTS: Final = ("seconds", "seconds or long", "milliseconds", "microseconds", "padded or seconds")


class CellTable:
    """Cells as the engine has them, with what they refer to.

    Attributes: `cells`, `longs` and `symbols` (arrays of int) and `texts` (bytearray) are as in `RowProgram`.
    """

    def __init__(self) -> None:
        self.cells, self.longs, self.symbols = array("i"), array("q"), array("i")
        self.texts = bytearray()

    def add(self, name: str, sent: Rule | None, read: Rule | None, some: int, null: int) -> None:
        """Add the cell of a column: how its values are sent (None if the engine does not know), and how they are read.

        The latter is None for a column that newer rows no longer have.
        """
        start, size = self._text(name)
        operation, *operands = ("gone", 0, 0, 0) if read is None else self._operation(sent, read)
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

    def _operation(self, sent: Rule | None, read: Rule) -> Operation:
        compose = None if sent is None else CELLS.get(read.name, {}).get(sent.name)
        operation = None if sent is None or compose is None else compose(self, sent.operands, read.operands)
        return operation or ("left", 0, 0, 0)


def _plain(operation: str, *operands: int) -> Compose:
    a, b, c = (*operands, 0, 0, 0)[:3]
    return lambda _table, _sent, _read: (operation, a, b, c)


def _whole(table: CellTable, _sent: Operands, read: Operands) -> Operation:
    return "whole", table.bounds(*read), 0, 0


def _decimal(table: CellTable, _sent: Operands, read: Operands) -> Operation:
    least, most, scale, is_text = read
    return "decimal", table.wide_bounds(least, most), scale, int(is_text)


def _decimal_of_text(table: CellTable, _sent: Operands, read: Operands) -> Operation:
    return "decimal", table.wide_bounds(read[0], read[1]), read[2], 1


def _unscaled(table: CellTable, sent: Operands, read: Operands) -> Operation | None:
    least, most, scale, _ = read
    return None if sent[0] != scale else ("unscaled", table.wide_bounds(least, most), scale, 0)


def _unsigned(table: CellTable, _sent: Operands, read: Operands) -> Operation | None:
    least, most, scale, _ = read
    return None if scale else ("unscaled", table.wide_bounds(least, most), 0, 1)


def _digits(_table: CellTable, _sent: Operands, read: Operands) -> Operation:
    return "digits", 0, 0, int(read[0])


def _label(table: CellTable, _sent: Operands, read: Operands) -> Operation:
    return "label", table.labels(read[0]), len(read[0]), 0


def _escaped_label(table: CellTable, sent: Operands, read: Operands) -> Operation | None:
    return None if any("\\" in member for member in read[0]) or not read[0] else _label(table, sent, read)


def _indexed_label(table: CellTable, sent: Operands, read: Operands) -> Operation | None:
    members = read[0]
    if not (members or sent[0]):
        return "string", 0, 0, 0  # without labels, what is sent stays
    is_plain = sent[0] == members and len(set(members)) == len(members) and members and "" not in members
    return ("indexed label", table.labels(members), len(members), 0) if is_plain else None


def _labels(table: CellTable, _sent: Operands, read: Operands) -> Operation:
    return "labels", table.labels(read[0]), len(read[0]), 0


def _masked_labels(table: CellTable, sent: Operands, read: Operands) -> Operation | None:
    members = read[0]
    if not (members or sent[0]):
        return "string", 0, 0, 0
    is_plain = sent[0] == members and len(set(members)) == len(members) and 0 < len(members) <= _MOST_MASKED
    if not is_plain or any(not member or "," in member for member in members):
        return None
    return "masked labels", table.labels(members), len(members), 0


def _binary(operation: str) -> Compose:
    def compose(_table: CellTable, _sent: Operands, read: Operands) -> Operation | None:
        width = read[0] or 0
        return None if width > _MOST_PADDED or (width and operation == "base64") else (operation, width, 0, 0)

    return compose


def _bits(operation: str) -> Compose:
    def compose(_table: CellTable, sent: Operands, read: Operands) -> Operation | None:
        is_plain = (read[0] or operation == "counted bits") and (not sent or sent[0] == read[0])
        return (operation, read[0] or 0, 0, 0) if is_plain else None

    return compose


def _day(_table: CellTable, _sent: Operands, read: Operands) -> Operation:
    return "day", int(read[1] == "days"), 0, 0


def _clock(_table: CellTable, _sent: Operands, read: Operands) -> Operation:
    return "clock", read[0] or 0, -1, 0


def _local(_table: CellTable, _sent: Operands, read: Operands) -> Operation:
    return "local", read[2] or 0, -1, 0


def _counted(operation: str) -> Compose:
    """Return what composes the cell of times that the format sends as counts of a unit."""

    def compose(_table: CellTable, sent: Operands, _read: Operands) -> Operation:
        digits, precision = sent
        return operation, digits, -1 if precision is None else precision, 0

    return compose


def _instant(_table: CellTable, _sent: Operands, read: Operands) -> Operation | None:
    return (read[1], 0, 0, 0) if read[1] in _INSTANTS else None


def _instant_of(operation: str) -> Compose:
    """Return what composes the cell of instants whose texts the exact way turns into seconds, which it then reads."""

    def compose(_table: CellTable, sent: Operands, read: Operands) -> Operation | None:
        return (operation, 0, sent[0] if sent else 0, 0) if read[1] == "seconds" else None

    return compose


CELLS: Final[dict[str, dict[str, Compose]]] = {
    "flag": {"as sent": _plain("flag"), "number": _plain("flag")},
    "whole": {"as sent": _whole, "number": _whole, "flag": _whole},
    "double": {"as sent": _plain("double"), "number": _plain("double")},
    "single": {"as sent": _plain("single"), "number": _plain("single")},
    "decimal": {
        "as sent": _decimal,
        "number": _decimal_of_text,
        "digits": _decimal_of_text,
        "decimal": _unscaled,
        "unsigned": _unsigned,
    },
    "digits": {"as sent": _digits, "number": _plain("digits", 0, 0, 1)},
    "string": {"as sent": _plain("string"), "escaped": _plain("string", 0, 0, ord("\\"))},
    "label": {"as sent": _label, "escaped": _escaped_label, "label": _indexed_label},
    "labels": {"as sent": _labels, "labels": _masked_labels},
    "json": {"as sent": _plain("json")},
    "anything": {"as sent": _plain("anything")},
    "binary": {"as sent": _binary("base64"), "bytes": _binary("latin1")},
    "bits": {"as sent": _bits("bits"), "bits": _bits("reversed bits"), "counted bits": _bits("counted bits")},
    "day": {"as sent": _day, "day": _plain("day", 1)},
    "clock": {"as sent": _clock, "clock": _counted("clock")},
    "local": {"as sent": _local, "local": _counted("local")},
    "local or day": {"as sent": _plain("local", 0, -1), "local": _counted("local")},
    "instant": {"as sent": _instant, "instant": _instant_of("iso"), "zoned": _instant_of("in zone")},
    "milliseconds": {"as sent": _plain("millis")},
}
"""What composes the operation of a cell, by the name of the rule by which values are read, and then sent."""
LEFT_TO_PYTHON: Final = {
    "geometry": "it is EWKB, which only Python checks: few columns are geometries",
    "converted": "a value is turned back into what was sent, by Python, before it is read as the given type",
}
"""The rules that have no cell, each with the reason."""

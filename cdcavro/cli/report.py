"""Text tables, and the table of counts at the end of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cdcavro.errors import plain, shown

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_ROWS: Final = 200
REJECTED: Final = "(rejected)"
UNKNOWN: Final = "(unknown)"
OTHERS: Final = "(others)"
_WIDTH: Final = 40


class Counts:
    """Counts of messages: successful ones by format and operation, rejects by format.

    Attributes: `done` and `rejected` (int). Operations are named by the messages, so there may be any
    number of them; beyond 200 rows they are counted together.
    """

    def __init__(self) -> None:
        self.done = 0
        self.rejected = 0
        self._rows: dict[tuple[str, str], int] = {}

    @property
    def read(self) -> int:
        """The number of messages read."""
        return self.done + self.rejected

    def add(self, format: str, operation: str, count: int = 1) -> None:
        """Count successful messages."""
        self.done += count
        row = (format, _plain(operation))
        self._add(row if row in self._rows or len(self._rows) < MAX_ROWS else (format, OTHERS), count)

    def reject(self, format: str | None, count: int = 1) -> None:
        """Count rejects."""
        self.rejected += count
        self._add((format or UNKNOWN, REJECTED), count)

    def table(self) -> str:
        """Return the table, sorted by format and operation, with the rejects last."""
        rows = sorted(self._rows.items(), key=lambda item: (item[0][1] == REJECTED, item[0]))
        return table(("format", "operation", "messages"), [(*row, f"{count:,}") for row, count in rows])

    def balance(self, done: str) -> str:
        """Return a line that accounts for every message; `done` names what happened to the successful ones.

        >>> Counts().balance("written")
        'read 0 = written 0 + rejected 0'
        """
        return f"read {self.read:,} = {done} {self.done:,} + rejected {self.rejected:,}"

    def _add(self, row: tuple[str, str], count: int) -> None:
        self._rows[row] = self._rows.get(row, 0) + count


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return rows laid out under their headings; numbers are aligned to the right.

    What cannot be printed is escaped, so that no cell looks like another line or changes the terminal.

    >>> print(table(["format", "messages"], [["oms_canal", "188"]]))
    format     messages
    oms_canal       188
    """
    laid_out = [headings, *([cell and plain(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*laid_out, strict=True)]
    return "\n".join(_row(row, widths) for row in laid_out)


def _row(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (
        cell.rjust(width) if cell[:1].isdigit() and cell.replace(",", "").isdigit() else cell.ljust(width)
        for cell, width in zip(cells, widths, strict=True)
    )
    return "  ".join(padded).rstrip()


def _plain(operation: str) -> str:
    if len(operation) <= _WIDTH:
        return plain(operation)
    return shown(operation if len(operation) <= _WIDTH else operation[:_WIDTH] + "...")

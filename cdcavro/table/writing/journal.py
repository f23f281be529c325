"""A journal of the patterns of messages that were learned, from which the engines of other threads learn them, too."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from typing import TYPE_CHECKING, Final, NamedTuple

from cdcavro.engine.machine import take_lines

if TYPE_CHECKING:
    from collections.abc import Callable

    from cdcavro.engine.machine import RowEngine
    from cdcavro.engine.row_program import RowProgram
    from cdcavro.table.history import Table
    from cdcavro.table.schema import TableSchema

    Columns = tuple[bytes, bytes, bytes, bytes, bytes, bytes, bytes]

# Bytes of rows that are made at once; a line may have that many again.
_MOST: Final = 16 << 20


class Journal:
    """The patterns that were learned since a table was edited last, in order; what was learned before holds no longer.

    Attributes: `versions` (list of a `Table` and a `TableSchema`), what their messages are of; `groups` (array of int),
    of each pattern the index of its version.
    """

    __slots__ = ("_indexes", "_patterns", "groups", "versions")

    def __init__(self) -> None:
        self.versions: list[tuple[Table, TableSchema]] = []
        self.groups = array("i")
        self._indexes: dict[tuple[int, int], int] = {}
        self._patterns: list[tuple[bytes, RowProgram, bool]] = []

    def __len__(self) -> int:
        return len(self._patterns)

    def add(self, fixed: bytes, program: RowProgram, table: Table, schema: TableSchema, *, is_right: bool) -> None:
        """Note a pattern that the engine was given, and took back if it is not right."""
        index = self._indexes.setdefault((table.number, schema.version), len(self.versions))
        if index == len(self.versions):
            self.versions.append((table, schema))
        self.groups.append(index)
        self._patterns.append((fixed, program, is_right))

    def play(self, engine: RowEngine, first: int, last: int) -> None:
        """Let an engine that knows the patterns before `first` learn the others before `last`."""
        for fixed, program, is_right in self._patterns[first:last]:
            engine.add(fixed, program)
            if not is_right:
                engine.drop_last()


class Taken(NamedTuple):
    """Lines of a chunk that were taken by what a journal says.

    Attributes: `journal`; `first` and `end` (int), the index of the first line, and the one behind the last; `position`
    (int), where in the chunk they end; `made`, their rows, as `RowEngine.taken` returns them; `left` and `places`, of
    each line that was left the index, counted from `first`, and the position.
    """

    journal: Journal
    first: int
    end: int
    position: int
    made: Columns
    left: memoryview[int]
    places: memoryview[int]

    def next_left(self, line: int) -> tuple[int, int]:
        """Return the index and the position of the next line from one on that was left, or of what is behind them all."""
        at = bisect_left(self.left, line - self.first)
        return (self.first + self.left[at], self.places[at]) if at < len(self.left) else (self.end, self.position)

    def rows(self, first: int, end: int) -> tuple[int, int]:
        """Return the index of the first row of some lines, and the one behind their last row."""
        messages = memoryview(self.made[0]).cast("i")
        return bisect_left(messages, first - self.first), bisect_left(messages, end - self.first)


class LineReader:
    """Takes lines in any thread, by engines of which each thread that needs one has its own.

    Made from what makes an engine, and the encoded fields of `source` that say where a line is, up to its number.
    """

    def __init__(self, make: Callable[[], RowEngine], place: bytes) -> None:
        self._make, self._place = make, place
        self._idle: list[tuple[RowEngine, Journal, int]] = []

    def take(self, journal: Journal, known: int, raw: bytes, start: tuple[int, int], number: int) -> Taken:
        """Take lines by the first `known` patterns of a journal, or more.

        `start` is the index of the first line, and its position in `raw`; `number` is its number in the file.
        """
        first, position = start
        if not known:
            return Taken(journal, first, first, position, _NONE, memoryview(array("i")), memoryview(array("q")))
        try:
            engine, own, played = self._idle.pop()
        except IndexError:
            engine, own, played = self._make(), journal, 0
        if own is not journal:
            engine.clear()
            played = 0
        journal.play(engine, played, known)
        made, count, behind, left, places = take_lines(engine, raw, position, self._place, number, _MOST)
        # An engine that failed is not used again.
        self._idle.append((engine, journal, max(played, known)))
        return Taken(
            journal, first, first + count, behind, made, memoryview(left).cast("i"), memoryview(places).cast("q")
        )


_NONE: Final[Columns] = (b"", b"", b"", bytes(4), b"", bytes(4), b"")

"""A typer of the lines of a file: it writes their rows in the order of the file; the engine takes chunks in threads.

What a line becomes depends on the statements and lists of columns before it. So a chunk is taken by what was known when
it was handed out, and its rows are written when its turn has come, up to the next line that was left. That line goes
the exact way, and if it edits a table, the rows behind it are thrown away and their lines are taken again.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from cdcavro.change.model import Arrival
from cdcavro.engine.machine import take_lines
from cdcavro.errors import CdcAvroError
from cdcavro.table.writing.table_writer import encoded_place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from cdcavro.engine.machine import RowEngine
    from cdcavro.table.table_folder import TablesFolder
    from cdcavro.table.writing.message_typer import Journal, MessageTyper, RowBuffers

    Begin = Callable[[Callable[[], Any]], Callable[[], Any]]

# At most 16 MiB of rows are made at once, and as much again for the last line.
_MOST: Final = 16 << 20


class LineRows(NamedTuple):
    """Rows of those lines of a chunk whose patterns a journal has, and the lines that were left."""

    journal: Journal
    # The index of the first line, and the one behind the last.
    first: int
    end: int
    # Where in the chunk the lines end.
    position: int
    # The rows, as `RowEngine.taken` returns them.
    buffers: RowBuffers
    # Of each line that was left, the index, counted from `first`, and the position in the chunk.
    left: memoryview[int]
    places: memoryview[int]

    def next_left(self, line: int) -> tuple[int, int]:
        """Return the index and the position of the next left line, from a line on, or of the end behind them all."""
        at = bisect_left(self.left, line - self.first)
        return (self.first + self.left[at], self.places[at]) if at < len(self.left) else (self.end, self.position)

    def rows(self, first: int, end: int) -> tuple[int, int]:
        """Return the index of the first row of some lines, and the one behind their last row."""
        messages = memoryview(self.buffers[0]).cast("i")
        return bisect_left(messages, first - self.first), bisect_left(messages, end - self.first)


class LineReader:
    """Takes lines in any thread; each thread that needs an engine has its own.

    Made from what makes an engine, and the encoded fields of `source` that say where a line is, up to its number.
    """

    def __init__(self, make: Callable[[], RowEngine], place: bytes) -> None:
        self._make, self._place = make, place
        self._idle: list[tuple[RowEngine, Journal, int]] = []

    def take(self, journal: Journal, known: int, raw: bytes, start: tuple[int, int], number: int) -> LineRows:
        """Take lines by the first `known` patterns of a journal, or more.

        `start` is the index of the first line, and its position in `raw`; `number` is its number in the file.
        """
        first, position = start
        if not known:
            return LineRows(journal, first, first, position, _NONE, memoryview(array("i")), memoryview(array("q")))
        try:
            engine, learned, played = self._idle.pop()
        except IndexError:
            engine, learned, played = self._make(), journal, 0
        if learned is not journal:
            engine.clear()
            played = 0
        journal.play(engine, played, known)
        made, count, behind, left, places = take_lines(engine, raw, position, self._place, number, _MOST)
        # An engine that failed is not used again.
        self._idle.append((engine, journal, max(played, known)))
        return LineRows(
            journal, first, first + count, behind, made, memoryview(left).cast("i"), memoryview(places).cast("q")
        )


_NONE: Final[RowBuffers] = (b"", b"", b"", bytes(4), b"", bytes(4), b"")


# Once 64 lines that were left are of patterns that are known by now, the lines behind them are taken again.
_LATE: Final = 64


class LineChunk(Protocol):
    """Whole lines of a file, as far as they lie in `raw` (bytes), and the rest of the last."""

    @property
    def raw(self) -> bytes:
        """The lines, but perhaps not all of the last one."""

    @property
    def is_long(self) -> bool:
        """Whether a line may be longer than a message."""

    def line(self, position: int, number: int) -> tuple[Any, int]:
        """Return the line at a position, None behind the last one, and the position of the next, -1 if none."""


class LineTyper:
    """Writes the rows of the lines that the engine takes to a folder, and leaves the other lines to its user.

    `file` is the file's name; `begin` begins a piece of work and returns what waits for its result, and `ahead` is how
    many chunks are begun before their turn. Raises `ValueError` for a typer with a clock, whose engine has patterns of its
    own.

    Field: `taken` (int), how many lines were taken, each of which has rows.
    """

    def __init__(self, typer: MessageTyper, folder: TablesFolder, *, file: str, begin: Begin, ahead: int) -> None:
        if typer.clock is not None:
            raise ValueError("a typer of lines has no clock")
        self._typer, self._folder, self._begin, self._ahead = typer, folder, begin, ahead
        # A place ends in the branch and the number of its line, which is one byte here.
        self._reader = LineReader(typer.new_engine, encoded_place(Arrival(file=file, line=0))[:-1])
        self._seen = 0
        self.taken = 0

    def left(self, chunks: Iterable[LineChunk], is_free: Callable[[], bool]) -> Iterator[Any]:
        """Yield the lines that were left, each when all before it is done. The caller learns a line before the next.

        While `is_free` says no, every line is left. What comes before an error of `chunks` is done before it is raised.
        """
        for chunk, number, taken in self._in_order(chunks):
            yield from self._left_of(chunk, number, taken(), is_free)

    def _in_order(self, chunks: Iterable[LineChunk]) -> Iterator[tuple[LineChunk, int, Callable[[], LineRows]]]:
        """Yield each chunk, the number of its first line, and what waits for its rows; some are begun ahead."""
        begun: deque[tuple[LineChunk, int, Callable[[], LineRows]]] = deque()
        number = 1
        try:
            for chunk in chunks:
                begun.append((chunk, number, self._begin(self._order(chunk, (0, 0), number))))
                number += chunk.raw.count(b"\n") + (chunk.raw[-1:] not in {b"", b"\n"})
                if len(begun) > self._ahead:
                    yield begun.popleft()
        except CdcAvroError:
            yield from begun
            raise
        yield from begun

    def _order(self, chunk: LineChunk, start: tuple[int, int], number: int) -> Callable[[], LineRows]:
        """Return how the lines of a chunk are taken, from an index and its position on, by what is known now."""
        journal = self._typer.journal
        known = 0 if chunk.is_long else len(journal)
        return partial(self._reader.take, journal, known, chunk.raw, start, number)

    def _left_of(self, chunk: LineChunk, first: int, taken: LineRows, is_free: Callable[[], bool]) -> Iterator[Any]:
        line = position = 0
        while position >= 0:
            if is_free():
                if self._is_outdated(taken, line):
                    taken = self._order(chunk, (line, position), first + line)()
                    self._seen = self._typer.taken
                line, position = self._write(taken, line, position)
            left, position = chunk.line(position, first + line)
            if left is None:
                return
            line += 1
            yield left

    def _is_outdated(self, taken: LineRows, line: int) -> bool:
        """Return whether lines are to be taken again from this one on."""
        is_late = self._typer.taken - self._seen >= _LATE
        # Lines wait to be taken where there were too many rows before them.
        is_behind = 0 < taken.end <= line
        return is_late or is_behind or (line == 0 and taken.journal is not self._typer.journal)

    def _write(self, taken: LineRows, line: int, position: int) -> tuple[int, int]:
        """Write the rows of lines up to the next that was left, if they still hold; return where that one is."""
        if taken.journal is not self._typer.journal or not taken.first <= line < taken.end:
            return line, position
        end, behind = taken.next_left(line)
        if end > line:
            self._folder.write_rows(taken.journal, taken.buffers, *taken.rows(line, end))
        for counted in (self, self._typer):
            counted.taken += end - line
        self._seen += end - line
        return end, behind

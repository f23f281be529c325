"""The engine of rows where nothing is compiled: it leaves every message to the exact way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cdcavro.engine.arrow_column import Slices
    from cdcavro.engine.program import Program
    from cdcavro.engine.row_program import RowProgram


def encode_places(fields: tuple[Any, ...], count: int) -> tuple[bytes, bytes]:  # noqa: ARG001
    """Return places as a column of the encoded fields of `source`: the bytes, and where each ends, from 0 on.

    `fields` are the topic, partition, offset, file and line, each a column of so many values (texts as `Slices`, integers
    as `Longs`), or None if no place has it. Here nothing reads them, so they are empty.
    """
    return b"", bytes(4 * (count + 1))


class RowEngine:
    """The engine of typed rows, which knows no pattern here."""

    __slots__ = ()

    def __init__(
        self,
        program: Program,
        words: tuple[bytes, ...] = (),
        zone: bytes = b"",
        is_ordered: bool = False,  # noqa: FBT001, FBT002
        of_changes: bool = False,  # noqa: FBT001, FBT002
    ) -> None:
        """Take a program, the texts for values that the source did not give, and a zone's pieces, which nothing uses here."""

    def clear(self) -> None:
        """Forget all patterns."""

    def drop_last(self) -> None:
        """Take back the pattern that was added last: no message is of it."""

    def pattern(self, message: bytes) -> bytes | None:  # noqa: ARG002
        """Return what a message has in common with others of its pattern; None if it has none."""
        return None

    def has(self, fixed: bytes) -> bool:  # noqa: ARG002
        """Return whether a pattern was added, and not taken back."""
        return False

    def add(self, fixed: bytes, program: RowProgram) -> bool:  # noqa: ARG002
        """Add a pattern, whose messages are of one version of a table; return whether there is room for it."""
        return False

    def rows(self, message: bytes, place: bytes) -> list[tuple[int, bytes | None, bytes, *tuple[Any, ...]]] | None:  # noqa: ARG002
        """Return the rows of a message: pattern, key (None if there is none) and envelope of each; None if it is left.

        `place` are the encoded fields of `source` that say where the message arrived. If they are ordered, also the
        order value without a clock, and whether it lacks columns.
        """
        return None

    def survey(self, message: bytes, rules: dict[bytes, int]) -> tuple[bytes, bytes | None, bytes | None] | None:  # noqa: ARG002
        """Return the pattern of a message, its position's numbers, and the names of the columns in its rows.

        The numbers are told by the rule that `rules` has for the pattern, and compare as bytes: a 1 and eight bytes for
        each; no bytes if there are none. Names and numbers are None of a pattern without a rule, or where they are left;
        so are the names if a value may be one that the source did not give. None for a message without a pattern.
        """
        return None

    def take_column(
        self,
        column: Slices,  # noqa: ARG002
        places: Slices | None,  # noqa: ARG002
        first: int,
        most: int,  # noqa: ARG002
        clock: Any = None,  # noqa: ARG002
    ) -> tuple[int, bool]:
        """Append the rows of the messages in a column (`Slices`) from an index on to those that were made.

        Return the index of the first message that is left, or the number of all. It stops, too, behind the message with
        which more than `most` bytes are made, and says so: whether there is more to take. `places` is None, or a column
        of the same length with encoded fields of `source` that say where each message arrived. A null has no rows. `clock` tells and is
        told the times of lanes, as `Clock.get` and `Clock.put` do.
        """
        return first, False

    def taken(self) -> tuple[bytes, ...]:
        """Return the rows of columns that were made since the last time, as columns themselves.

        The index of the message and the number of the pattern of each row, as 32-bit integers; a bit for each that has a
        key; where each key ends, from 0 on, and the keys; where each payload ends, and the payloads. If they are
        ordered, then where each order value ends, and the order values; a bit for each that lacks columns.
        """
        return b"", b"", b"", bytes(4), b"", bytes(4), b""


class SurveyEngine(RowEngine):
    """The engine of surveys, to which no message is like another here."""

    __slots__ = ()

    def take_alike(self, column: Slices, places: Slices | None, first: int) -> int:  # noqa: ARG002
        """Survey the messages of a column (`Slices`) from an index on, and return that of the first which is left.

        `places` are as in `take_column`. A null is passed by.
        """
        return first

    def firsts(self) -> list[tuple[int, int]]:
        """Return the number of what messages have in common, and the index of their first, where this column has it.

        Each is told once.
        """
        return []

    def mixed(self, number: int) -> list[int]:  # noqa: ARG002
        """Return the indexes of messages that are not alike after all; from now on such messages are left."""
        return []


class FactEngine(SurveyEngine):
    """The engine of facts, to which no message is like another here."""

    __slots__ = ()

    def numbers(self) -> bytes:
        """Return the number of what each message of the column is like, as 32-bit integers; -1 for what was left.

        Here it is empty, as all are left.
        """
        return b""


def take_lines(
    _engine: RowEngine, _raw: bytes, position: int, _place: bytes, _number: int, _most: int
) -> tuple[tuple[bytes, bytes, bytes, bytes, bytes, bytes, bytes], int, int, bytes, bytes]:
    """Return the rows of lines, as `RowEngine.taken` does; how many were passed, and the position behind them.

    Behind these are the index of each line that was left, as a 32-bit integer, and its position, as one of 64 bits.
    `place` are the encoded fields of `source` that say where a line is, up to its number, counted from `number` on.
    """
    return (b"", b"", b"", bytes(4), b"", bytes(4), b""), 0, position, b"", b""


def grouped(
    _patterns: bytes, _ends: bytes, _payloads: bytes, _groups: bytes, _first: int, _last: int
) -> list[tuple[int, bytes, bytes]]:
    """Return the payloads of some rows in groups: the number of each, its payloads, and where each of them ends."""
    return []

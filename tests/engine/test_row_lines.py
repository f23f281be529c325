"""Lines of a text turned into rows, each with its own number; rows of many patterns put into groups."""

from __future__ import annotations

from array import array
from random import Random

import pytest

from cdcavro.change.model import Arrival
from cdcavro.engine.machine import COMPILED, grouped, take_lines
from cdcavro.table.writing.table_writer import encoded_place
from engine.test_row_columns import MOST, known, learned, rows_of, stream
from support.messages import ROW_FORMATS
from support.mutations import mutated
from support.rows_trial import with_value

pytestmark = pytest.mark.skipif(not COMPILED, reason="where nothing is compiled, all goes the exact way")
PLACE = encoded_place(Arrival(file="é.jsonl", line=0))[:-1]


def placed(number: int) -> bytes:
    """Return the encoded place of a line."""
    return encoded_place(Arrival(file="é.jsonl", line=number))


def _same(_: Random, message: bytes) -> bytes:
    return message


@pytest.mark.parametrize("format", ROW_FORMATS)
def test_lines_have_the_rows_that_each_has_alone(format):
    """At its own place; the index and position of each line that is left are told. In one piece, or in many."""
    random, engine = Random(format), learned(format)._engine
    some = [
        random.choice((_same, with_value, mutated, lambda *_: b""))(random, one).replace(b"\n", b" ")
        for one in random.choices(stream(format), k=700)
    ]
    raw, first = b"\n".join(some), random.choice((1, 62, 8190, 2**40))
    alone = [engine.rows(one, placed(first + i)) for i, one in enumerate(some[:-1])]
    wanted = [(i, *row) for i, rows in enumerate(alone) for row in rows or ()]
    left = [i for i, rows in enumerate(alone) if rows is None]
    starts = [len(b"\n".join([*some[:i], b""])) for i in left]
    assert len(wanted) > 20
    assert len(left) > 20
    for most in (MOST, 2000, 0):
        found, found_left, found_starts, line, position = [], [], [], 0, 0
        while line < len(some) - 1:
            made, count, position, lines, places = take_lines(engine, raw, position, PLACE, first + line, most)
            found += [(line + i, *row) for i, *row in rows_of(engine, made)]
            found_left += [line + i for i in array("i", lines)]
            found_starts += array("q", places)
            assert count > 0
            line += count
        assert (found, found_left, found_starts) == (wanted, left, starts)
        assert raw[position:] == some[-1]


def test_a_line_is_left_where_a_place_is_none():
    """And nothing is taken of a text without a line end."""
    typer = learned("canal")
    engine, message = typer._engine, known(typer, "canal")[-1]
    made, *rest = take_lines(engine, message + b"\n", 0, b"\2", 1, MOST)
    assert rows_of(engine, made) == []
    assert rest == [1, len(message) + 1, array("i", [0]).tobytes(), array("q", [0]).tobytes()]
    assert take_lines(engine, message, 0, PLACE, 1, MOST)[1:] == (0, 0, b"", b"")


@pytest.mark.parametrize(("position", "number", "most"), [(-1, 1, 9), (4, 1, 9), (0, -1, 9), (0, 2**62, 9), (0, 1, -1)])
def test_a_text_is_taken_from_a_position_that_it_has(position, number, most):
    """And from a number on that a line may have."""
    with pytest.raises(ValueError, match=r"^a position in the text, the number of a line and a bound$"):
        take_lines(learned("canal")._engine, b"{}\n", position, PLACE, number, most)


def rows(patterns, payloads):
    """Return the columns of rows: patterns, ends and payloads."""
    ends = [len(b"".join(payloads[:i])) for i in range(len(payloads) + 1)]
    return array("i", patterns).tobytes(), array("i", ends).tobytes(), b"".join(payloads)


def groups(*numbers):
    """Return the number of each pattern's group."""
    return array("i", numbers).tobytes()


def test_groups_have_the_rows_of_their_patterns_in_order():
    """The groups come in the order of their first rows; a row may be empty."""
    columns = rows([2, 0, 1, 0, 2, 1], [b"a", b"bb", b"", b"c", b"dd", b"eee"])
    made = [(number, some, list(array("i", ends))) for number, some, ends in grouped(*columns, groups(1, 0, 1), 0, 6)]
    assert made == [(1, b"abbcdd", [1, 3, 4, 6]), (0, b"eee", [0, 3])]
    assert grouped(*columns, groups(1, 0, 1), 1, 3) == [(1, b"bb", groups(2)), (0, b"", groups(0))]
    assert grouped(*columns, groups(1, 0, 1), 6, 6) == []
    assert grouped(b"", bytes(4), b"", b"", 0, 0) == []


@pytest.mark.parametrize("of_patterns", [groups(0), groups(0, 2), groups(-1, 0)])
def test_rows_of_a_pattern_without_a_group_are_refused(of_patterns):
    """A group is not beyond the number of patterns either."""
    with pytest.raises(ValueError, match=r"^rows of known patterns$"):
        grouped(*rows([0, 1], [b"a", b"b"]), of_patterns, 0, 2)


@pytest.mark.parametrize(("first", "last"), [(-1, 1), (1, 0), (0, 3)])
def test_rows_that_are_not_there_are_refused(first, last):
    """Nothing is read outside of the columns."""
    with pytest.raises(ValueError, match=r"^rows that there are$"):
        grouped(*rows([0, 0], [b"a", b"b"]), groups(0), first, last)


@pytest.mark.parametrize("ends", [(0, 3, 2), (-1, 0, 1), (0, 1, 3), (0, -5, 2)])
def test_payloads_that_are_not_there_are_refused(ends):
    """Ends do not go back, and not beyond the bytes."""
    with pytest.raises(ValueError, match=r"^(payloads that there are|rows of known patterns)$"):
        grouped(groups(0, 0), groups(*ends), b"ab", groups(0), 0, 2)

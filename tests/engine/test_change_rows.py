"""Columns of changes turned into rows, and surveyed: nothing is read outside of them, and what is faulty is left."""

from __future__ import annotations

from array import array
from random import Random

import pytest

from cdcavro.change.model import Arrival, Change, Source, replace
from cdcavro.change.order_value import common_order
from cdcavro.engine.machine import COMPILED, SurveyEngine
from cdcavro.engine.payloads import Slices
from cdcavro.engine.program import RowProgram
from cdcavro.errors import PayloadError
from cdcavro.table.writing.message_typer import ChangeTyper
from cdcavro.wire.formats import FORMATS, change_format
from engine.test_row_columns import MOST, in_columns
from support.bounds_trial import long
from support.changes_trial import Pair, changes_of, damaged, with_part
from support.colliding import colliding
from support.columns import column

pytestmark = pytest.mark.skipif(not COMPILED, reason="where nothing is compiled, all goes the exact way")
ROW = Change(op="INSERT", source=Source(format="debezium", table="t"), after={"a": 1}, position=(5,))


def learned(format: str) -> ChangeTyper:
    """Return what has learned the changes of the database, and their patterns."""
    changes = changes_of(format)
    pair = Pair(changes)
    for one in changes:
        pair.take(one)
    return pair.typer


@pytest.mark.slow
@pytest.mark.parametrize("format", FORMATS)
def test_a_column_has_the_rows_of_its_changes(format):
    """Whole, damaged and null, at any place, in one piece or many; those that are left are left one by one, too."""
    random, engine = Random(format), learned(format)._engine
    some = random.choices(changes_of(format), k=600)
    changed = [random.choice((lambda _, one: one, with_part, damaged))(random, one) for one in some]
    changes = [None if random.random() < 0.05 else one for one in changed]
    alone = [None if one is None else engine.rows(one, bytes(5)) for one in changes]
    wanted = [(i, *row) for i, rows in enumerate(alone) for row in rows or ()]
    left = [i for i, rows in enumerate(alone) if rows is None and changes[i] is not None]
    assert len(wanted) > (5 if format == "datahub_blob" else 100)
    assert len(left) > 100
    for most in (MOST, 1, 2000):
        assert in_columns(engine, changes, None, most) == (wanted, left)


@pytest.mark.slow
@pytest.mark.parametrize("format", FORMATS)
def test_what_is_no_change_has_no_rows_and_is_not_surveyed(format):
    """Cut at every byte, and with every bit turned: the exact way has to say what is wrong."""
    typer = learned(format)
    survey = of_pattern(next(one for one in changes_of(format) if typer.type_by_pattern(one) is not None))
    change = next(one for one in changes_of(format) if typer.type_by_pattern(one) is not None)
    assert survey.take_alike(column([change]), None, 0) == 1
    faulty = [change[:end] for end in range(len(change))]
    faulty += [
        bytes([*change[:i], change[i] ^ 1 << bit, *change[i + 1 :]]) for i in range(len(change)) for bit in range(8)
    ]
    refused = 0
    for one in faulty:
        try:
            Change.from_avro(one)
        except PayloadError:
            refused += 1
            assert typer._engine.rows(one, bytes(5)) is None
            # Names that are faulty are none that were seen, so the exact way is asked about the first that has them.
            assert survey.take_alike(column([one]), None, 0) == 0 or survey.firsts() != []
    assert refused > len(change)


def of_pattern(change: bytes) -> SurveyEngine:
    """Return a survey that knows the pattern of a change."""
    survey = SurveyEngine(change_format().program, (), b"", False, True)
    fixed = survey.pattern(change)
    program = RowProgram(place=bytes(5))
    program.phase, program.order, program.is_batched = common_order(Change.from_avro(change))
    assert survey.add(fixed, program)
    return survey


def surveyed(changes: list[Change]) -> list[tuple[int, int]]:
    """Return what a survey says of changes of one pattern."""
    survey = of_pattern(changes[0].to_avro())
    assert survey.take_alike(column([one.to_avro() for one in changes]), None, 0) == len(changes)
    return survey.firsts()


def test_the_first_in_the_order_of_changes_is_told():
    """By numbers, then by place, then by row; and one for each list of columns and each lane."""
    assert surveyed([replace(ROW, position=numbers) for numbers in ((9,), (7, 1), (7,), (8,), (-1,), (300,))]) == [
        (0, 4)
    ]
    assert surveyed([replace(ROW, row=row) for row in (3, 1, 2)]) == [(0, 1)]
    assert surveyed([replace(ROW, after=row) for row in ({"a": 1}, {"b": 1}, {"a": None}, {})]) == [
        (0, 0),
        (1, 1),
        (2, 3),
    ]
    places = [Arrival(topic="t", partition=partition, offset=offset) for partition, offset in ((0, 9), (1, 5), (0, 8))]
    assert surveyed([replace(ROW, place=place) for place in places]) == [(0, 2), (1, 1)]


def test_an_earlier_column_counts():
    """Only what comes before all that were seen is told again."""
    survey = of_pattern(ROW.to_avro())
    told = []
    for numbers in ((5, 4, 6), (7, 8), (3, 9)):
        changes = column([replace(ROW, position=(number,)).to_avro() for number in numbers])
        assert survey.take_alike(changes, None, 0) == len(numbers)
        told.append(survey.firsts())
    assert told == [[(0, 1)], [], [(0, 0)]]


def test_what_is_not_alike_after_all_is_left():
    """All of the column are told, and those of later columns are left."""
    survey = of_pattern(ROW.to_avro())
    changes = [replace(ROW, after=row).to_avro() for row in ({"a": 1}, {"b": 1}, {"a": 2})]
    assert survey.take_alike(column([*changes, None]), None, 0) == 4
    assert survey.mixed(0) == [0, 2]
    assert survey.firsts() == [(1, 1)]
    assert survey.take_alike(column(changes[1:]), None, 0) == 1
    for number in (-1, 2):
        with pytest.raises(ValueError, match=r"^the number of what messages have in common$"):
            survey.mixed(number)


def test_many_lists_of_columns_are_told_apart():
    """As many as there are."""
    rows = [{f"c{number % 700}": 1} for number in range(1400)]
    assert surveyed([replace(ROW, after=row) for row in rows]) == [(number, number) for number in range(700)]


@pytest.mark.slow
def test_lists_of_columns_that_are_made_to_collide_are_left():
    """Each would be looked for among all before it: of names with one hash, a few are told apart, and the rest are left."""
    # What stands before a name in what is hashed: the pattern, no lane, the image, how many names, and a name's size.
    fixed = bytes(4 + 3) + b"\4" + long(1)
    names = [f"{'x' * 5}{one.decode()}" for one in colliding(fixed + long(5 + 64) + b"x" * 5, 4, 5)]
    assert len({*names}) == 5**4
    changes = [replace(ROW, after={name: 1}).to_avro() for name in names]
    assert 60 < of_pattern(changes[0]).take_alike(column(changes), None, 0) < 70
    # Of the same length, but with another hash each.
    assert len(surveyed([replace(ROW, after={f"{name[:-8]}{i:08d}": 1}) for i, name in enumerate(names)])) == len(names)


def test_a_change_without_an_order_is_left():
    """Which comes first is not guessed."""
    survey = of_pattern(replace(ROW, position=None, place=Arrival(offset=1)).to_avro())
    lost = replace(ROW, position=None, place=Arrival(partition=1))
    assert survey.take_alike(column([lost.to_avro()]), None, 0) == 0


@pytest.mark.parametrize("offsets", [[0, 99], [5, 2], [-4, 3], [2**31 - 1, -1]])
def test_a_change_that_is_not_within_its_column_is_left(offsets):
    """Nothing is read there."""
    change = ROW.to_avro()
    outside = Slices(change, array("i", offsets).tobytes(), None, 0, 1)
    assert of_pattern(change).take_alike(outside, None, 0) == 0
    assert of_pattern(change).take_alike(column([change]), outside, 0) == 0


def test_a_survey_goes_through_a_column_from_its_beginning():
    """To an index that it has, with as many places."""
    survey, change = of_pattern(ROW.to_avro()), column([ROW.to_avro()])
    with pytest.raises(ValueError, match=r"^a column is surveyed from its beginning on$"):
        survey.take_alike(change, None, 1)
    with pytest.raises(ValueError, match=r"^as many places as messages$"):
        survey.take_alike(change, column([]), 0)
    for first in (-1, 2):
        with pytest.raises(ValueError, match=r"^the messages from an index on$"):
            survey.take_alike(change, None, first)

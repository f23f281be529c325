"""Changes straight to typed rows: the rows that `Tables` makes of them, whichever way a change goes."""

from __future__ import annotations

from collections import Counter
from random import Random
from struct import pack
from zoneinfo import ZoneInfo

import pytest

from cdcavro.change.model import Arrival, Change, Column, Source, replace
from cdcavro.engine.machine import COMPILED
from cdcavro.exact.jsontext import parse
from cdcavro.wire.formats import FORMATS
from support.changes_trial import NO_CHANGE, Pair, changes_of, trial, trial_of_type
from support.rows_trial import BY_ENGINE, LEFT, REFUSED, TYPES, VALUES, types_of

compiled = pytest.mark.skipif(not COMPILED, reason="where nothing is compiled, all goes the exact way")
ROW = Change(
    op="INSERT",
    operation="INSERT",
    source=Source(format="canal", database="shop", table="t"),
    key=("id",),
    columns=(Column(name="id", type="bigint"), Column(name="v", type="json"), Column(name="w", type="text")),
    after={"id": 1, "v": {"a": 1}, "w": "x"},
    position=(1_700_000_000_000, 1),
    place=Arrival(topic="t", partition=0, offset=5),
    event_time=1_700_000_000_000_000,
)


def outcomes(changes: list[Change | bytes], **options: object) -> list[str]:
    """Take changes both ways, which have to agree, and return what became of each."""
    payloads = [one if isinstance(one, bytes) else one.to_avro() for one in changes]
    pair = Pair([payloads[0]], **options)
    return [pair.take(one) for one in payloads]


@pytest.mark.parametrize("format", FORMATS)
def test_the_changes_of_a_database_are_typed_as_the_exact_way_types_them(format):
    """Statements, rows of evolving tables, halves: the engine takes what a pattern is known of, in most formats most."""
    changes = changes_of(format)
    pair = Pair(changes)
    taken = Counter(pair.take(one) for _ in range(2) for one in changes)
    assert NO_CHANGE not in taken
    if COMPILED and format != "datahub_blob":  # whose values of MySQL's types do not fit
        assert taken[BY_ENGINE] > 190


@pytest.mark.slow
@pytest.mark.parametrize("format", FORMATS)
def test_other_parts_values_and_bytes_are_typed_or_refused_alike(format):
    """Times, places, numbers and members that nobody sends; flips and cuts of a payload anywhere."""
    taken = trial(format, 300, 1)
    assert min(taken[one] for one in (NO_CHANGE, LEFT, REFUSED)) > 5
    if COMPILED:
        assert taken[BY_ENGINE] > 30
    trial(format, 100, 2, None)


@pytest.mark.slow
@compiled
@pytest.mark.parametrize("format", FORMATS)
def test_values_of_all_types_are_typed_as_the_exact_way_types_them(format):
    """What the engine takes for a type is what the type's reader gives of a change's value; it leaves the rest."""
    random = Random(format)
    for declared in TYPES:
        trial_of_type(format, declared, [*random.sample(VALUES, 4), '"1"', random.choice(VALUES)])


@compiled
@pytest.mark.slow
@pytest.mark.parametrize("format", FORMATS)
def test_every_value_in_every_type_is_typed_as_the_exact_way_types_it(format):
    """Both ends of each type, each form of a time, labels, bytes, and all that does not fit.

    Of types with the same rules in a format, values are tried in one; `test_values_of_all_types` has some of each.
    """
    types = types_of(format)
    taken = sum((trial_of_type(format, declared, VALUES) for declared in types), Counter())
    assert taken[BY_ENGINE] > 65 * len(types)


@compiled
def test_a_pattern_is_known_from_its_second_change_on():
    """Other values, times, places, numbers and members are of it; another operation or list of columns is not."""
    other = {"after": {"w": "y", "v": None, "id": 2}, "position": (5,), "place": Arrival(file="f", line=1), "row": 3}
    other |= {"event_time": -7}
    deleted = replace(ROW, op="DELETE", before=ROW.after, after=None)
    elsewhere = replace(ROW, source=replace(ROW.source, table="u"), columns=ROW.columns[:2], after={"id": 1, "v": None})
    payloads = [one.to_avro() for one in (ROW, ROW, replace(ROW, **other), deleted, deleted, elsewhere, elsewhere)]
    pair = Pair([payloads[0], payloads[-1]])
    found = [pair.take(one) for one in payloads]
    assert found == [LEFT, BY_ENGINE, BY_ENGINE, LEFT, BY_ENGINE, LEFT, BY_ENGINE]


@compiled
def test_updates_of_other_columns_are_of_one_pattern():
    """Which columns an update changed says nothing to its row, nor does its statement, or what else its message had."""
    update = replace(ROW, op="UPDATE", before=ROW.after, changed=("v",), ddl="UPDATE t", members={"/a": "1"})
    other = replace(update, changed=("v", "w"), ddl="UPDATE t SET w", members={"/b": "2", "/c": ""})
    moved = replace(update, after={**update.after, "id": 2})
    assert outcomes([update, update, other, moved, other]) == [LEFT, BY_ENGINE, BY_ENGINE, LEFT, BY_ENGINE]


def test_a_change_with_neither_numbers_nor_a_place_is_refused():
    """Also where its kind is known, and where only half a place is told."""
    lost = [
        replace(ROW, position=None, place=place) for place in (ROW.place, None, Arrival(topic="t", offset=1), Arrival())
    ]
    found = outcomes([ROW, *lost, lost[0]])
    assert found == [LEFT, LEFT, REFUSED, REFUSED, REFUSED, BY_ENGINE if COMPILED else LEFT]


def test_a_row_that_has_a_column_twice_is_no_change():
    """One of the values would be lost."""
    twice = replace(ROW, after={"id": 1, "v": None, "ww": "y"}).to_avro()
    assert twice.count(b"\4ww") == 1
    faulty = replace(ROW, after={"id": 1, "v": None, "w": "y"}).to_avro()
    doubled = faulty.replace(b"\2v\0", b"\2w\0")
    assert outcomes([ROW, ROW, faulty, doubled])[3] == NO_CHANGE


def test_members_with_a_name_twice_are_no_change():
    """Though no row needs them."""
    noted = replace(ROW, members={"/x": "1", "/y": "2"}).to_avro()
    assert outcomes([noted, noted, noted.replace(b"/y", b"/x")])[1:] == [BY_ENGINE if COMPILED else LEFT, NO_CHANGE]


@pytest.mark.parametrize(
    "text",
    ['{"a":1 }', '{"a":01}', '{"a":1}}', '["a":1]', '{"\\u0061":1}', '{"a":"\\u001F"}', "   7    ", '{"a":1,"a":2}'],
)
def test_json_that_is_not_compact_goes_the_exact_way(text):
    """It may be no JSON at all."""
    sized = replace(ROW, after={**ROW.after, "v": {"b": "x" * (len(text) - 8)}}) if len(text) > 8 else ROW
    own = ('{"a":1}' if sized is ROW else '{"b":"%s"}' % ("x" * (len(text) - 8))).encode()
    other = text.encode()
    payload = sized.to_avro().replace(bytes([2 * len(own)]) + own, bytes([2 * len(other)]) + other)
    assert payload != sized.to_avro()
    assert outcomes([ROW, ROW, payload])[2] in (LEFT, NO_CHANGE)


@pytest.mark.parametrize("number", ["5", "1.5", "-0", "1.50", "0.0", "1e5", "1E400", "01", "1.", "", "NaN", "+1"])
@pytest.mark.parametrize("declared", ["bigint", "decimal(10,2)", "double", "float", "decimal(65,30)", None])
def test_the_text_of_a_number_is_read_as_the_exact_way_reads_it(number, declared):
    """Also one that a long or a double would hold, which no message gives."""
    row = replace(ROW, columns=(Column(name="id", type="bigint"), Column(name="v", type=declared)))
    plain = replace(row, after={"id": 1, "v": parse(b"12345678901234567890.10")}).to_avro()
    own = b"\x2e12345678901234567890.10"
    assert own in plain
    seven = replace(row, after={"id": 1, "v": 7})
    other = plain.replace(own, bytes([2 * len(number)]) + number.encode())
    assert outcomes([seven, seven, plain, other])[1] == (BY_ENGINE if COMPILED else LEFT)


@pytest.mark.parametrize("real", [float("nan"), float("inf"), float("-inf")])
def test_a_double_that_is_no_number_is_no_change(real):
    """JSON has no text for it."""
    row = replace(ROW, columns=(ROW.columns[0], Column(name="v", type="double")), after={"id": 1, "v": 1.5})
    payload = row.to_avro().replace(pack("<d", 1.5), pack("<d", real))
    assert outcomes([row, row, payload])[1:] == [BY_ENGINE if COMPILED else LEFT, NO_CHANGE]


def test_absent_columns_out_of_all_proportion_are_refused():
    """Their names stand in each of a message's rows."""
    wide = [Column(name=f"column_{i:03}", type="int") for i in range(900)]
    row = replace(ROW, columns=(*ROW.columns, *wide))
    found = outcomes([row, row, replace(row, rows=600), replace(row, rows=2**31 - 1)])
    assert found == [LEFT, BY_ENGINE if COMPILED else LEFT, BY_ENGINE if COMPILED else LEFT, REFUSED]


def test_a_topic_that_names_the_table_is_no_part_of_a_pattern():
    """Rows that name no table are of the one called as their topic, each of its own."""
    nameless = [
        replace(ROW, source=replace(ROW.source, table=None), place=Arrival(topic=topic, partition=0, offset=i))
        for i, topic in enumerate(("a", "b", "a", "b"))
    ]
    payloads = [one.to_avro() for one in nameless]
    pair = Pair(payloads, table="@topic")
    assert [pair.take(one) for one in payloads] == [LEFT] * 4
    assert {table.schema.table.table for table in pair.tables.tables} == {"a", "b"}


@compiled
def test_a_zone_that_the_engine_cannot_have_leaves_all(monkeypatch):
    """Nothing is learned of its rows."""
    monkeypatch.setattr("cdcavro.table.writing.message_typer.steady_stretches", lambda _: ())
    assert outcomes([ROW, ROW, ROW], zone=ZoneInfo("Asia/Shanghai")) == [LEFT] * 3


@compiled
def test_values_that_debezium_sent_without_types_are_read_by_those_of_the_table():
    """Their form is that of the connector; those of a change that states its types are a change's own."""
    source = Source(format="debezium", db_type="mysql", database="shop", table="t")
    made = Change(op="CREATE", source=source, ddl="CREATE TABLE t (id bigint unsigned, v decimal(10,2))", position=(1,))
    bare = Change(op="INSERT", source=source, after={"id": 7, "v": "AkY="}, position=(2,))
    stated = (Column(name="v", type="org.apache.kafka.connect.data.Decimal(scale=2,precision=10)"),)
    typed = replace(bare, source=replace(source, table="u"), columns=stated, after={"v": 5.82})
    payloads = [one.to_avro() for one in (bare, bare, typed, typed)]
    pair = Pair([made.to_avro(), *payloads])
    assert [pair.take(one) for one in payloads] == [LEFT, BY_ENGINE, LEFT, BY_ENGINE]
    assert b"\2\2\7\2\4\2F" in pair.exact(payloads[0])[0][4]
    assert b"\2\4\2F" in pair.exact(payloads[2])[0][4]

"""Values and the engine: records, changes and rows of Python's own values, by the engine and by the exact way."""

from __future__ import annotations

import importlib.util
import threading
from copy import deepcopy
from decimal import Decimal
from functools import partial
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Struct

import cdcavro
from cdcavro.change.model import Arrival, Change, ChangedTable, Column, Source, _shared_record, to_record
from cdcavro.engine import machine
from cdcavro.exact.numbers import ExactNumber
from cdcavro.wire.formats import FORMATS, REGISTRY, change_format
from support.engine_trial import named, read_exact, said
from support.messages import goldens, shop_canal, shop_debezium
from support.mutations import damaged
from support.places import ROOT
from support.roundtrip import outcome
from support.strategies import numbers, strings

compiled = pytest.mark.skipif(not machine.COMPILED, reason="nothing is compiled here")
CANAL = REGISTRY["canal"]
CHANGE = change_format()


def _pure():
    """Load the source of the machine in Python, also where it is compiled."""
    declared = importlib.util.spec_from_file_location("pure_machine", ROOT / "cdcavro" / "engine" / "machine.py")
    module = importlib.util.module_from_spec(declared)
    declared.loader.exec_module(module)
    return module


PURE = _pure()


@compiled
@pytest.mark.parametrize("format", FORMATS)
def test_every_change_of_a_known_operation_is_taken_in_both_directions(format):
    """As values; and what is damaged is read as the exact way reads it or left to that."""
    random = Random(3)
    for message in goldens(format) + {"canal": shop_canal, "debezium": shop_debezium}.get(format, list)():
        for change in cdcavro.to_changes(message, format):
            made = to_record(change)
            payload = CHANGE._writer.write(made)
            expected = None if change.op == "OTHER" else payload
            assert CHANGE.values.write(made) == CHANGE.values.write_struct(change) == expected
            assert change.to_avro() == payload
            if change.op == "OTHER":
                continue
            record, end = CHANGE.values.read(payload)
            assert (repr(record), end) == (repr(read_exact(CHANGE, payload)), len(payload))
            sent = damaged(random, payload)
            assert said(CHANGE.read, sent) == said(named(CHANGE, partial(read_exact, CHANGE)), sent)


class Longer(Struct, frozen=True):
    """A Struct that no record of `change.avsc` is shaped like."""

    topic: str


@pytest.mark.parametrize(
    "fields",
    [
        {"key": ["id"]},
        {"key": (7,)},
        {"position": (2**63,)},
        {"columns": (Column(name="a"), Column(name="a", code=2**31))},
        {"columns": (Longer("x"),)},
        {"columns": []},
        {"place": Longer("x")},
        {"place": Arrival(topic="t", line=7)},
        {"source": {"format": "x"}},
        {"before": {"a": Source()}},
        {"before": {"a": ("b",)}},
        {"before": {"a": {"b": [1.5]}}, "members": {"/a": ""}},
        {"op": "NONE"},
        {"row": None},
        {"unavailable": ()},
        {"ddl": "\ud800"},
        {"tables": (ChangedTable(op="ERASE", table="t"), ChangedTable(key=("a",), columns=(Column(name="a"),)))},
        {"tables": (ChangedTable(key=(7,)),)},
        {"tables": ()},
    ],
)
def test_odd_fields_of_a_change_have_one_outcome(fields):
    """By the engine or as a record, again and again."""
    change = Change(**{"op": "INSERT"} | fields)
    exact = outcome(Exception, lambda: CHANGE._writer.write(_shared_record(change)))
    for _ in range(2):
        assert CHANGE.values.write_struct(change) in (None, exact)
        assert repr(outcome(Exception, change.to_avro)) == repr(outcome(Exception, named(CHANGE, _exact), change))


def _exact(change):
    return CHANGE._writer.write(_shared_record(change))


def test_columns_that_are_no_longer_there_are_not_taken_for_others():
    """What is written of a table's columns is kept for the next change, by the identity of the columns."""
    for count in range(600):
        change = Change(op="INSERT", columns=tuple(Column(name=f"c{count}", code=i) for i in range(2)))
        assert change.to_avro() == _exact(change)


@given(st.data())
def test_rows_of_texts_become_numbers_and_texts_again(data):
    """The engine and the exact way alike, whatever stands in a row."""
    texts = (
        strings | numbers | st.sampled_from(["-0", "1.20", "0.1", "1e5", "01", "9223372036854775808", "١", " 1", ""])
    )
    row = data.draw(st.dictionaries(st.sampled_from("abcdef"), texts | st.sampled_from([None, True, 1, [], {}])))
    kinds = data.draw(st.dictionaries(st.sampled_from("abcdefg"), st.booleans()))
    read, expected = dict(row), dict(row)
    machine.read_numbers(read, kinds)
    PURE.read_numbers(expected, kinds)
    assert repr(read) == repr(expected)
    assert machine.write_numbers(read) is PURE.write_numbers(expected)
    assert (
        repr(read)
        == repr(expected)
        == repr(row | {name: "1" for name in row if row[name] == 1 and row[name] is not True})
    )


_OPTIONALS = st.none() | st.integers(-(2**63) - 1, 2**63) | st.text("aé\ud800", max_size=70) | st.booleans()


@given(st.lists(st.tuples(_OPTIONALS | st.tuples(_OPTIONALS, _OPTIONALS) | st.just(()), st.sampled_from("lsa"))))
def test_optional_values_are_written_alike(pairs):
    """By the engine and the exact way, or refused by both."""
    values, kinds = tuple(value for value, _ in pairs), "".join(kind for _, kind in pairs)
    made = [outcome(UnicodeEncodeError, module.optionals, values, kinds) for module in (machine, PURE)]
    assert repr(made[0]) == repr(made[1])


_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-2, 2)
    | st.sampled_from([0.0, -0.0, 1.0, float("nan"), ExactNumber("1"), "1"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner),
    max_leaves=6,
)


@given(_JSON, _JSON)
def test_values_are_compared_alike(left, right):
    """Digit for digit, by the engine and the exact way."""
    assert machine.same(left, right) is PURE.same(left, right)
    assert machine.same(left, deepcopy(left)) is PURE.same(left, deepcopy(left))


@given(_JSON, _JSON)
def test_differences_of_values_are_found_alike(left, right):
    """With the same pointers in the same order, by the engine and the exact way."""
    pairs = ((left, right), (left, deepcopy(left)), ({"a/~": left}, {"a/~": right}), ({"a/~": left}, {"b": right}))
    for one, other in (*pairs, ([left, "x", {"a": [right]}], [right, "y", {"a": [left]}])):
        found = [repr(list(module.differences(one, other, "/x"))) for module in (machine, PURE)]
        assert found[0] == found[1]


def test_values_that_contain_themselves_are_refused():
    """Before the stack ends."""
    values = [], []
    for value in values:
        value.append({"a": value})
    with pytest.raises(RecursionError, match="more than 128 levels"):
        machine.same(*values)
    with pytest.raises(RecursionError, match="more than 128 levels"):
        machine.differences(*values)


_ODD = [
    *(None, True, False, 0, -(2**63), 2**63, 2**31, 0.0, -0.0, 1e300, float("nan"), float("inf"), "", "é", "\ud800"),
    *(ExactNumber("1.20"), [], {}, [1], {"a": None}, [float("nan")], UNSET, (), b"x", Decimal(1), {1: 2}),
]


@pytest.mark.slow
def test_odd_values_in_records_have_one_outcome():
    """Wherever they stand, and whatever Python has for values; faults are told by the exact way."""
    message = shop_canal()[5]
    for place in _places(CANAL.parse(message)):
        for odd in _ODD:
            made = CANAL.parse(message)
            at = made
            for step in place[:-1]:
                at = at[step]
            at[place[-1]] = odd
            exact = outcome(Exception, named(CANAL, CANAL._writer.write), made)
            assert repr(outcome(Exception, CANAL.write, made)) == repr(exact)
            assert CANAL.values.write(made) in (None, exact)


def _places(value, place=()):
    items = value.items() if type(value) is dict else enumerate(value) if type(value) is list else ()
    return [(*place, name) for name, _ in items] + [
        one for name, item in items for one in _places(item, (*place, name))
    ]


@pytest.mark.slow
def test_several_threads_may_use_the_values_of_one_format():
    """Also while one of them parses JSON that stands in a value."""
    texts = [b'{"type":"INSERT","data":[{"a":%d,"b":{"c":[1.20,%d]}}]}' % (i, i) for i in range(300)]
    records = [CANAL.parse(text) for text in texts]
    expected = [CANAL._writer.write(one) for one in records]
    found = []

    def work():
        for _ in range(5):
            found.append([CANAL.write(one) for one in records] == expected)
            found.append([CANAL.read(one) for one in expected] == records)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 40


@compiled
def test_a_position_outside_is_refused():
    """Before a byte is read."""
    payload = CHANGE.write({"op": "INSERT", "source": {}, "row": 0, "rows": 1})
    assert CHANGE.values.read(payload * 2, len(payload)) == (CHANGE.read(payload), 2 * len(payload))
    for position in (-1, len(payload) + 1):
        with pytest.raises(ValueError, match="at a position"):
            CHANGE.values.read(payload, position)


_LENGTHS = st.sampled_from(
    [b"", b"\x80", b"\xff" * 9, b"\xff" * 10, b"\x80" * 9 + b"\x02", b"\xff" * 8 + b"\x01", b"\x03\x04ab\0", b"\x80\0"]
)
_WAYS = {
    "b": lambda cursor: cursor.read_byte(),
    "l": lambda cursor: cursor.read_long(),
    "i": lambda cursor: cursor.read_int(),
    "s": lambda cursor: cursor.read_string(),
    "n": lambda cursor: cursor.read_name(),
    "k": lambda cursor: cursor.skip_string(),
    "y": lambda cursor: cursor.read_bytes(),
    "o": lambda cursor: cursor.read_boolean(),
    "f": lambda cursor: cursor.read_float(),
    "d": lambda cursor: cursor.read_double(),
    "t": lambda cursor: cursor.take(2),
    "x": lambda cursor: cursor.read_index(3, "a branch"),
    "a": lambda cursor: cursor.read_block(),
    "w": lambda cursor: cursor.read_block(True),
    "B": lambda cursor: [cursor.take(count) for count in cursor.blocks()],
    "W": lambda cursor: list(cursor.blocks(True)),
    "u": lambda cursor: (cursor.descend(50), cursor.ascend(9)),
    "e": lambda cursor: cursor.finish(),
    "c": lambda cursor: cursor.slice(1, 3),
}


def _steps(cursor, steps):
    """Take steps through bytes and give what each one gave, or the error that ended them."""
    found = []
    for step in steps:
        got = outcome(cdcavro.PayloadError, _WAYS[step], cursor)
        found.append((repr(got), str(got)))
        if isinstance(got, cdcavro.PayloadError):
            break
        found.append((cursor.position, cursor.end))
    return found


@given(
    st.lists(st.binary(max_size=12) | _LENGTHS, max_size=4).map(b"".join),
    st.text(st.sampled_from([*_WAYS]), max_size=8),
)
def test_payloads_are_read_alike_value_by_value(raw, steps):
    """The same values, the same positions, the same sentences, and nothing behind the end."""
    assert _steps(machine.Decoder(raw), steps) == _steps(PURE.Decoder(raw), steps)


@compiled
def test_a_decoder_stays_within_its_payload():
    """Wherever it is told to go on."""
    cursor = machine.Decoder(b"ab", 1)
    for position in (-1, 3):
        with pytest.raises(ValueError, match="a position from 0 to 2"):
            cursor.position = position
        with pytest.raises(ValueError, match="a position from 0 to 2"):
            machine.Decoder(b"ab", position)
    with pytest.raises(TypeError):
        machine.Decoder(None)

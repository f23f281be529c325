"""`extras` put back into a record: what goes where, and which extras are refused."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cdcavro
from cdcavro.exact.jsontext import parse, render
from cdcavro.exact.numbers import ExactNumber
from cdcavro.wire.extras import _parse, apply, schema_member
from support.roundtrip import error_of, outcome
from support.strategies import numbers, quoted


def _applied(record, extras):
    apply(record, extras)
    return record


def test_value_takes_a_members_place():
    """A text is parsed exactly and replaces what the field held."""
    assert _applied({"a": 5}, {"/a": "5.00"}) == {"a": ExactNumber("5.00")}


def test_value_is_put_beside_the_members():
    """A pointer to a member that is not there adds it."""
    assert _applied({}, {"/a": "null", "/b": "[1]", "/": "0"}) == {"a": None, "b": [1], "": 0}


def test_empty_text_takes_a_member_away():
    """The empty text stands for a member that was absent; there may be none to take."""
    assert _applied({"a": None, "b": 1}, {"/a": "", "/c": ""}) == {"b": 1}


def test_pointer_leads_into_objects_and_arrays():
    """Each token is a name in an object and an index in an array; names are unescaped."""
    record = {"data": [{}, {"a/b": {"~": 1}}], "0": {}}
    assert _applied(record, {"/data/1/a~1b/~0": "2", "/0/1": "true"}) == {
        "data": [{}, {"a/b": {"~": 2}}],
        "0": {"1": True},
    }


def test_item_of_an_array_is_replaced():
    """An item that was sent as another scalar takes its place back."""
    assert _applied({"pk": ["1", "2"]}, {"/pk/1": "2"}) == {"pk": ["1", 2]}


def test_order_does_not_matter():
    """Whatever order a map's entries come in, the record is the same."""
    extras = {"/a/x": "1", "/b": "", "/c": "{}", "/d/0": "null", "/a~1x": "2"}
    made = [_applied({"a": {}, "b": 1, "d": [5]}, dict(order)) for order in itertools.permutations(extras.items())]
    assert made == [{"a": {"x": 1}, "c": {}, "d": [None], "a/x": 2}] * len(made)


@pytest.mark.parametrize(
    ("extras", "sentence"),
    [
        ({"": "1"}, "$: expected a JSON pointer in extras, got ''"),
        ({"a": "1"}, "$: expected a JSON pointer in extras, got 'a'"),
        ({"/x/y": "1"}, "$.x.y: expected a parent in the record for a pointer in extras, got none"),
        ({"/a/b/c": "1"}, "$.a.b.c: expected a parent in the record for a pointer in extras, got none"),
        ({"/n/b": "1"}, "$.n.b: expected a parent in the record for a pointer in extras, got none"),
        ({"/list/0/b": "1"}, "$.list[0].b: expected a parent in the record for a pointer in extras, got none"),
        ({"/o": "{}", "/o/p": "1"}, "$.o.p: expected extras that lie apart, got one inside '/o'"),
        ({"/o/p": "1", "/o": ""}, "$.o.p: expected extras that lie apart, got one inside '/o'"),
        ({"/list/2": "1"}, "$.list[2]: expected an index below 2 in extras, got '2'"),
        ({"/list/-1": "1"}, "$.list[\"-1\"]: expected an index below 2 in extras, got '-1'"),
        ({"/list/01": "1"}, "$.list[01]: expected an index below 2 in extras, got '01'"),
        ({"/list/": "1"}, "$.list[\"\"]: expected an index below 2 in extras, got ''"),
        ({"/list/٠": "1"}, "$.list[\"٠\"]: expected an index below 2 in extras, got '٠'"),
        ({"/list/9999999999/a": "1"}, "$.list[9999999999].a: expected an index below 2 in extras, got '9999999999'"),
        ({"/list/0": ""}, "$.list[0]: expected JSON in extras, got an empty line"),
        ({"/a": "{"}, "$.a: expected JSON in extras, got text that ends too early, at character 1"),
        ({"/a": "1 2"}, "$.a: expected JSON in extras, got more than one value, from character 2"),
        ({"/a": "NaN"}, "$.a: expected JSON in extras, got NaN, which is no JSON number"),
        ({"/a": '{"b":{"c":1,"c":2}}'}, "$.a.b: expected each member once in extras, got 'c' twice"),
        ({"/a": "[" * 128}, "$.a: expected at most 128 levels in extras, got a level more at byte 127"),
        ({"/a" * 129: ""}, f"${'.a' * 128}...: expected at most 128 levels in extras, got more"),
    ],
    ids=lambda given: str(given)[:40],
)
def test_hostile_extras_are_refused(extras, sentence):
    """No pointer may lead nowhere or into another's value, and no text goes in unchecked."""
    record = {"a": 1, "n": None, "o": {}, "list": ["x", "y"]}
    assert error_of(apply, record, extras) == f"message: {sentence}"


def test_long_pointer_is_refused_soon():
    """A pointer of half a million tokens is not compared with all that could lie above it."""
    assert len(error_of(apply, {}, {"/a" * 500_000: "1", "/b": "1"})) < 1_000


_PLACES = {
    "/op": schema_member("/op", is_scalar=True, is_required=True),
    "/table": schema_member("/table", is_scalar=True, is_required=False),
    "/data": schema_member("/data", is_scalar=False, is_required=False),
    "/payload": schema_member("/payload", is_scalar=False, is_required=True),
    "/payload/op": schema_member("/payload/op", is_scalar=True, is_required=True),
}


def _placed(extras):
    record = {"op": "A", "table": "t", "data": [], "payload": {"op": "B"}}
    apply(record, extras, _PLACES)
    return record


def test_member_that_the_schema_names_stays_of_its_shape():
    """A scalar takes a scalar's place; null and absence take anything's that is not required."""
    assert _placed({"/op": '"x"', "/table": "1.0", "/data": "null", "/payload/op": "true"}) == {
        "op": "x",
        "table": 1.0,
        "data": None,
        "payload": {"op": True},
    }
    assert _placed({"/table": "null", "/data": ""}) == {"op": "A", "table": None, "payload": {"op": "B"}}
    assert _placed({"/table": "", "/other": "{}"})["other"] == {}


@pytest.mark.parametrize(
    ("extras", "sentence"),
    [
        ({"/op": ""}, "$.op: expected a required member, got none"),
        ({"/op": "null"}, "$.op: expected a required member, got null"),
        ({"/op": " null\n"}, "$.op: expected a required member, got null"),
        ({"/payload": ""}, "$.payload: expected a required member, got none"),
        ({"/payload": "null"}, "$.payload: expected a required member, got null"),
        ({"/payload/op": ""}, "$.payload.op: expected a required member, got none"),
        ({"/op": "{}"}, "$.op: expected a scalar in extras in place of a scalar, got '{}'"),
        ({"/table": "[1]"}, "$.table: expected a scalar in extras in place of a scalar, got '[1]'"),
        ({"/table": "\t {}"}, "$.table: expected a scalar in extras in place of a scalar, got '\\t {}'"),
        ({"/data": "1"}, "$.data: expected null or nothing in extras in place of an object or array, got '1'"),
        ({"/data": "{}"}, "$.data: expected null or nothing in extras in place of an object or array, got '{}'"),
        ({"/table": " "}, "$.table: expected JSON in extras, got white space only"),
        ({"/x~2": "1"}, "$: expected ~0 and ~1 only in a JSON pointer in extras, got '/x~2'"),
        ({"/x~": "1"}, "$: expected ~0 and ~1 only in a JSON pointer in extras, got '/x~'"),
    ],
    ids=lambda given: str(given)[:40],
)
def test_extras_that_bend_the_structure_are_refused(extras, sentence):
    """What could not have been encoded does not come out of a payload."""
    assert error_of(_placed, extras) == f"message: {sentence}"


@given(
    quoted()
    | numbers
    | st.text('"\\\n\x7f\ud800a\u00e90-1.eE tru', max_size=6)
    | st.sampled_from(['"', '""', "true", " true", "null", "nul", "-0", "00", "1e5", '"\\u0041"'])
)
def test_scalars_are_parsed_as_all_texts_are(spelled):
    """The ways for words, numbers and plain strings give what the exact way gives."""
    expected = outcome(cdcavro.TextError, lambda: render(parse(spelled, 1)))
    made = outcome(cdcavro.PayloadError, lambda: render(_parse(spelled, "/a")))
    assert made == expected or (type(made), type(expected)) == (cdcavro.PayloadError, cdcavro.TextError)

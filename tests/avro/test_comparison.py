"""The differences of two schemas, one kind a test."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings

import cdcavro
from cdcavro.avro.comparison import Difference, schema_diff
from support.schema_pairs import pairs
from support.wire import array, enum, field, mapping, record

ROW = record(field("id"), field("state", enum("A")), name="Row")


def differences(old, new):
    """Return the differences of two schemas as tuples."""
    return [(one.path, one.what, one.old, one.new) for one in schema_diff(json.dumps(old), json.dumps(new))]


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ([field("a")], [field("a"), field("b", "string")], [("$.b", "added", "", "string")]),
        ([], [field("b", "string", default="x")], [("$.b", "added", "", 'string, default "x"')]),
        ([field("a"), field("b")], [field("b")], [("$.a", "dropped", "int", "")]),
        ([field("a")], [field("b", aliases=["a"])], [("$.b", "renamed", "a", "b")]),
        (
            [field("a")],
            [field("b", "long", aliases=["a", "c"])],
            [("$.b", "renamed", "a", "b"), ("$.b", "type", "int", "long"), ("$.b", "aliases", "", "a, c")],
        ),
        ([field("a")], [field("b")], [("$.b", "added", "", "int"), ("$.a", "dropped", "int", "")]),
        ([field("a")], [field("a", doc="words")], [("$.a", "doc", "", "words")]),
        ([field("a", default=1)], [field("a", default=2)], [("$.a", "default", "1", "2")]),
        (
            [field("a")],
            [field("a", ["null", "int"], default=None)],
            [("$.a", "type", "int", "[null, int]"), ("$.a", "default", "", "null")],
        ),
        ([field("a", connect=1)], [field("a", connect=2)], [("$.a", "attribute", "connect: 1", "connect: 2")]),
        (
            [field("a", default=1)],
            [field("a", default=True, type="boolean")],
            [("$.a", "type", "int", "boolean"), ("$.a", "default", "1", "true")],
        ),
    ],
)
def test_change_of_a_field(old, new, found):
    """What is there, is gone, or is otherwise; the alias that keeps the old name goes with the rename."""
    assert differences(record(*old), record(*new)) == found


def test_fewest_fields_have_moved():
    """One that went to the front moved, not all that it passed."""
    old = [field(name) for name in "abcdef"]
    new = [field(name) for name in "eabxcdf"]
    assert differences(record(*old), record(*new)) == [
        ("$.e", "moved", "field 5", "field 1"),
        ("$.x", "added", "", "int"),
    ]
    old, new = (record(*(field(name) for name in names)) for names in ("abcd", "bcad"))
    assert differences(old, new) == [("$.a", "moved", "field 1", "field 3")]


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        (enum("A", "B"), enum("B", "C"), [("$", "symbols", "A", "C")]),
        (enum("A", "B"), enum("B", "A"), [("$", "symbols", "A, B", "B, A")]),
        (enum("A", "B"), {**enum("A", "B"), "default": "B"}, [("$", "default symbol", "", "B")]),
        ({**enum("A", "B"), "default": "B"}, {**enum("A", "B"), "default": "A"}, [("$", "default symbol", "B", "A")]),
        (record(name="Old"), record(name="New"), [("$", "renamed", "Old", "New")]),
        (record(name="Old"), record(name="New", aliases=["Old"]), [("$", "renamed", "Old", "New")]),
        (record(), record(aliases=["Old"]), [("$", "aliases", "", "Old")]),
        (record(), enum("A"), [("$", "type", "record R", "enum E")]),
        (array("int"), array("long"), [("$[]", "type", "int", "long")]),
        (mapping("int"), mapping("long"), [("${}", "type", "int", "long")]),
        (array("int"), mapping("int"), [("$", "type", "array of int", "map of int")]),
        (["null", "int"], ["int", "null"], [("$", "type", "[null, int]", "[int, null]")]),
        (
            ["null", {"type": "long", "logicalType": "timestamp-millis"}],
            ["null", {"type": "long", "logicalType": "timestamp-micros"}, "string"],
            [("$", "type", "[null, long timestamp-millis]", "[null, long timestamp-micros, string]")],
        ),
        (["null", ROW], ["null", {**ROW, "doc": "row"}], [("$", "doc", "", "row")]),
        (
            ["null", record(name="Old")],
            ["null", record(field("a"), name="New"), "int"],
            [
                ("$", "type", "[null, record Old]", "[null, record New, int]"),
                ("$", "renamed", "Old", "New"),
                ("$.a", "added", "", "int"),
            ],
        ),
        (
            {"type": "fixed", "name": "F", "size": 2},
            {"type": "fixed", "name": "F", "size": 3, "logicalType": "decimal", "precision": 4},
            [("$", "type", "fixed F(2)", "fixed F(3) decimal(4,0)")],
        ),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2},
            {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 3},
            [("$", "type", "bytes decimal(4,2)", "bytes decimal(4,3)")],
        ),
        ("long", {"type": "long", "logicalType": "own"}, [("$", "attribute", "", 'logicalType: "own"')]),
    ],
)
def test_change_of_a_type(old, new, found):
    """Names, symbols, sizes, logical types, branches and what is below."""
    assert differences(old, new) == found


def test_type_used_twice_is_compared_once():
    """At the first place that uses it."""
    old, new = (
        record(field("before", ["null", row]), field("after", ["null", "Row"]))
        for row in (ROW, record(field("id", "long"), field("state", enum("A")), name="Row"))
    )
    assert differences(old, new) == [("$.before.id", "type", "int", "long")]


def test_what_the_schema_does_not_show_is_a_difference_too():
    """Only the same JSON has none: `order` and the way a name is written are told."""
    told = [Difference("$", "text", "", "written otherwise")]
    one = record(field("a"))
    assert schema_diff(json.dumps(one), json.dumps(record(field("a", order="ignore")))) == told
    assert schema_diff('"int"', '{"type": "int"}') == told
    assert schema_diff(json.dumps(one), json.dumps(one, indent=2)) == []


def test_names_that_are_cut_differ_all_the_same():
    """What differs only behind 80 characters is a difference."""
    names = ["n" * 100 + end for end in "ab"]
    assert len(differences(*(record(name=name) for name in names))) == 1
    docs = ["d" * 100 + end for end in "ab"]
    assert len(differences(*(record(field("a", doc=doc)) for doc in docs))) == 1
    defaults = [record(field("a", "string", default=doc)) for doc in docs]
    assert len(differences(*defaults)) == 1
    branches = [[enum("A", name=f"E{i}") for i in range(20)] for _ in range(2)]
    branches[1][15]["name"] = "Other"
    assert [one[1] for one in differences(*branches)] == ["renamed"]


@pytest.mark.slow
def test_differences_have_a_bound():
    """The last one says that there are more."""
    old, new = (record(*(field(f"{letter}{i}") for i in range(6000))) for letter in "ab")
    found = schema_diff(json.dumps(old), json.dumps(new))
    assert len(found) == 10_001
    assert found[-1] == Difference("$", "text", "", "more than 10,000 changes")


def test_nesting_has_a_bound():
    """Types that use one another 200 deep are nested as deep as types that are written so."""
    chain = (
        field(f"f{k}", record(field("x", ["null", f"R{k - 1}"] if k else "int"), name=f"R{k}")) for k in range(200)
    )
    old = record(*chain, name="T")
    with pytest.raises(cdcavro.SchemaError, match="nested deeper than 128 levels"):
        differences(old, old)


def test_text_that_is_no_schema_is_refused():
    """As everywhere."""
    with pytest.raises(cdcavro.SchemaError):
        schema_diff('"int"', '"integer"')


@pytest.mark.slow
@settings(max_examples=100)
@given(pairs())
def test_there_are_differences_unless_the_schemas_are_the_same(one):
    """Both ways, and none of a schema and itself."""
    is_same = json.loads(one.writer) == json.loads(one.reader)
    assert (schema_diff(one.writer, one.reader) == []) is is_same
    assert (schema_diff(one.reader, one.writer) == []) is is_same
    assert schema_diff(one.reader, one.reader) == []

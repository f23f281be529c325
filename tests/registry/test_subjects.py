"""Shared types: cut out and put back in, whatever names and places they have."""

from __future__ import annotations

import json

import pytest

import cdcavro
from cdcavro.avro.comparison import schema_diff
from cdcavro.avro.schema import definitions
from cdcavro.registry.backend import Reference, StoredSchema
from cdcavro.registry.subjects import insert_types, split, whole_schema
from support.roundtrip import error_of
from support.wire import array, enum, field, mapping, record

KIND = enum("A", name="Kind")
SCHEMAS = {
    "inherits its namespace": record(field("k", KIND), field("l", "Kind"), field("m", "a.Kind"), name="a.R"),
    "in array, map and union": record(
        field("x", array(["null", KIND])), field("y", mapping("a.Kind")), field("z", ["a.Kind"]), name="a.R"
    ),
    "holds another": record(
        field("i", record(field("k", KIND), name="Kind2")), field("k", "Kind"), name="a.R", aliases=("old.R",)
    ),
    "another namespace": record(field("k", KIND | {"namespace": "b"}), field("l", "b.Kind"), name="a.R"),
    "no namespace": record(field("k", KIND), field("l", "Kind"), name="R"),
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_what_was_cut_out_is_put_back(name):
    """For every choice of the types within."""
    text = json.dumps(SCHEMAS[name])
    within = [one for one in definitions(json.loads(text)) if not one.endswith("R")]
    for names in ([within[0]], within):
        *cut, left = split(text, names)
        assert {part.name for part in cut} == set(names)
        found: dict = {}
        for part in cut:
            cdcavro.parse_schema(insert_types(part.text, found))
            found |= definitions(json.loads(part.text))
        assert {one.what for one in schema_diff(text, insert_types(left.text, found))} <= {"text"}


def test_parts_come_behind_those_that_they_use():
    """And name them."""
    text = json.dumps(record(field("o", record(field("k", KIND), name="Outer")), name="a.R"))
    parts = split(text, ["a.Outer", "a.Kind"])
    assert [(part.name, list(part.uses)) for part in parts] == [
        ("a.Kind", []),
        ("a.Outer", ["a.Kind"]),
        ("", ["a.Outer"]),
    ]


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["a.None"], "schema $: no type within the schema is called 'a.None': it cannot be shared"),
        (["a.R"], "schema $: no type within the schema is called 'a.R': it cannot be shared"),
        (["a.Outer"], "schema $: 'a.Outer' uses 'a.Kind', which is defined outside: share that too"),
    ],
)
def test_what_cannot_be_cut_out_is_refused(names, said):
    """A type that is not there, the schema itself, a type that does not stand alone."""
    text = json.dumps(record(field("k", KIND), field("o", record(field("k", "Kind"), name="Outer")), name="a.R"))
    assert error_of(split, text, names) == said


def test_a_type_without_namespace_cannot_be_named_from_within_one():
    """Avro has no way to write it."""
    text = json.dumps(record(field("o", record(field("k", KIND | {"namespace": ""}), name="b.Outer")), name="R"))
    said = "schema $: 'Kind' has no namespace and cannot be named from within 'b'"
    assert error_of(split, text, ["Kind"]) == said


def entries(**texts):
    """Return the fetch of a registry that has these; a text may come with references."""
    held = {name: one if isinstance(one, StoredSchema) else StoredSchema(1, one) for name, one in texts.items()}
    return lambda subject, _version: held[subject]


def test_references_that_lead_back_are_refused():
    """A server's content is data."""
    a = StoredSchema(1, '{"type": "array", "items": "b"}', (Reference("b", "b", 1),))
    b = StoredSchema(2, '{"type": "array", "items": "a"}', (Reference("a", "a", 1),))
    assert error_of(whole_schema, a, entries(a=a, b=b)) == "schema references: 'b' leads back to itself"


@pytest.mark.slow
def test_references_are_bounded():
    """In a row, in number, and in what they make of a short text."""

    def chain(subject, _version):
        following = str(int(subject) + 1)
        return StoredSchema(1, '"int"', (Reference(following, following, 1),))

    said = "schema references: more than 1,000 of them, or 32 in a row"
    assert error_of(whole_schema, chain("0", 1), chain) == said
    many = tuple(Reference(str(i), str(i), 1) for i in range(1001))
    assert error_of(whole_schema, StoredSchema(1, '"int"', many), lambda *_: StoredSchema(1, '"int"')) == said
    wide = record(*(field(f"f{i}", {"type": "array", "items": "int"}) for i in range(2000)), name="W")
    known = {f"T{i}": json.dumps(wide | {"name": f"T{i}"}) for i in range(60)}
    root = record(*(field(f"g{i}", f"T{i}") for i in range(60)))
    entry = StoredSchema(1, json.dumps(root), tuple(Reference(name, name, 1) for name in known))
    assert error_of(whole_schema, entry, entries(**known)) == "schema $: more than 100000 types"


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[" * 5000, '{"type": "enum", "name": 7}', "nul", '"\\ud800"'),
        *('{"type": ["null", "int"]}', '{"type": {"type": "string"}}', '{"type": "array", "items": {"type": []}}'),
    ],
)
def test_a_reference_to_what_is_no_schema_is_an_error(text):
    """One sentence, wherever it comes from."""
    entry = StoredSchema(1, '{"type": "array", "items": "x"}', (Reference("x", "x", 1),))
    with pytest.raises(cdcavro.SchemaError):
        whole_schema(entry, entries(x=text))
    with pytest.raises(cdcavro.SchemaError):
        whole_schema(StoredSchema(1, text, (Reference("x", "x", 1),)), entries(x='"int"'))


def test_a_type_that_two_references_hold_is_put_in_once():
    """The first that names it defines it."""
    kind = enum("A", name="a.Kind")
    one = record(field("k", kind), name="a.One")
    two = StoredSchema(2, json.dumps(record(field("k", "a.Kind"), name="a.Two")), (Reference("a.Kind", "kind", 1),))
    root = record(field("t", "a.Two"), field("o", "a.One"), name="a.R")
    entry = StoredSchema(3, json.dumps(root), (Reference("a.One", "one", 1), Reference("a.Two", "two", 1)))
    made = whole_schema(entry, entries(one=json.dumps(one), two=two, kind=json.dumps(kind)))
    expected = record(
        field("t", record(field("k", kind), name="a.Two")),
        field("o", one | {"fields": [field("k", "a.Kind")]}),
        name="a.R",
    )
    assert json.loads(made.json) == expected

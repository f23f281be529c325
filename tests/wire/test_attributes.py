"""The attribute `json`: what each key says, and that nothing else is taken for it."""

from __future__ import annotations

import json

import pytest

import cdcavro
from cdcavro.avro.schema import parse_schema
from cdcavro.avro.types import Primitive, Union
from cdcavro.errors import SchemaError
from cdcavro.wire.attributes import EnumRule, FieldRule, content_of, enum_rule, field_rule, format_rule, is_nullable
from cdcavro.wire.format import Format
from support.roundtrip import error_of

_NULLABLE = ["null", "int"]
_EXTRAS = {"name": "extras", "type": {"type": "map", "values": "string"}, "json": {"members": "extras"}}


def _field(said, type=_NULLABLE):
    fields = [{"name": "a", "type": type, "json": said}]
    return parse_schema(json.dumps({"type": "record", "name": "R", "fields": fields})).root.fields[0]


def _enum(said):
    return parse_schema(json.dumps({"type": "enum", "name": "E", "symbols": ["A", "OTHER"], "json": said})).root


def _text_record(said, field=("text", "string")):
    fields = [{"name": field[0], "type": field[1]}]
    return parse_schema(json.dumps({"type": "record", "name": "R", "fields": fields, "json": said})).root


@pytest.mark.parametrize(
    ("said", "type", "rule"),
    [
        ({}, _NULLABLE, FieldRule("a")),
        ({"name": "b c"}, _NULLABLE, FieldRule("b c")),
        ({"missing": "null"}, _NULLABLE, FieldRule("a", missing="null")),
        ({"missing": "absent"}, _NULLABLE, FieldRule("a", missing="absent")),
        ({"required": True}, "int", FieldRule("a", required=True)),
        ({"members": "rest"}, {"type": "map", "values": "int"}, FieldRule("a", members="rest")),
        ({"members": "extras"}, {"type": "map", "values": "string"}, FieldRule("a", members="extras")),
        ({"tells": True}, _NULLABLE, FieldRule("a", tells=True)),
        ({"tells": ["1", "2"]}, _NULLABLE, FieldRule("a", tells=("1", "2"))),
        ({"operation": True}, _NULLABLE, FieldRule("a", operation=True)),
        (
            {"necessary": True, "ops": {"i": "INSERT"}},
            _NULLABLE,
            FieldRule("a", necessary=True, ops={"i": "INSERT"}),
        ),
        ({"necessary": ["1", "2"]}, _NULLABLE, FieldRule("a", necessary=("1", "2"))),
    ],
)
def test_field_says_its_rule(said, type, rule):
    """Each key of a field, alone."""
    assert field_rule(_field(said, type)) == rule


@pytest.mark.parametrize(
    ("said", "type", "sentence"),
    [
        ([], _NULLABLE, "schema a: the attribute json is not an object"),
        ({"nmae": "b"}, _NULLABLE, "schema a: the attribute json has no key 'nmae'"),
        ({"name": 1}, _NULLABLE, "schema a: json.name is not one of its values"),
        ({"missing": "nul"}, _NULLABLE, "schema a: json.missing is not one of its values"),
        ({"missing": None}, _NULLABLE, "schema a: json.missing is not one of its values"),
        ({"required": "yes"}, "int", "schema a: json.required is not one of its values"),
        ({"required": False}, _NULLABLE, "schema a: json.required is not one of its values"),
        ({"members": "all"}, _NULLABLE, "schema a: json.members is not one of its values"),
        ({"operation": 1}, _NULLABLE, "schema a: json.operation is not one of its values"),
        ({"tells": "x"}, _NULLABLE, "schema a: json.tells is neither true nor a list of strings"),
        ({"tells": [1]}, _NULLABLE, "schema a: json.tells is neither true nor a list of strings"),
        ({"part": "time"}, _NULLABLE, "schema a: json.part is not one of its values"),
        ({"part": "event_time"}, _NULLABLE, "schema a: a time has a unit, and nothing else has"),
        ({"part": "transaction", "unit": "ms"}, _NULLABLE, "schema a: a time has a unit, and nothing else has"),
        ({"part": "event_time", "unit": "h"}, _NULLABLE, "schema a: json.unit is not one of its values"),
        ({"part": "event_time", "unit": {"ALTER": "ms"}}, _NULLABLE, "schema a: json.unit is not one of its values"),
        ({"part": "event_time", "unit": {"": "h"}}, _NULLABLE, "schema a: json.unit is not one of its values"),
        ({"means": "time"}, _NULLABLE, "schema a: json.means is not one of its values"),
        ({"means": []}, _NULLABLE, "schema a: json.means is not one of its values"),
        ({"means": "row", "part": "row"}, _NULLABLE, "schema a: json.part follows from json.means"),
        ({"means": "event time"}, _NULLABLE, "schema a: a time has a unit, and nothing else has"),
        ({"means": "nothing", "unit": "s"}, _NULLABLE, "schema a: a time has a unit, and nothing else has"),
        ({"necessary": True}, _NULLABLE, "schema a: a necessary value is one of those in json.tells or json.ops"),
        (
            {"necessary": True, "tells": True},
            _NULLABLE,
            "schema a: a necessary value is one of those in json.tells or json.ops",
        ),
        ({"necessary": []}, _NULLABLE, "schema a: a necessary value is one of those in json.tells or json.ops"),
        ({"necessary": "x"}, _NULLABLE, "schema a: json.necessary is neither true nor a list of strings"),
        ({"ops": ["INSERT"]}, _NULLABLE, "schema a: json.ops is not one of its values"),
        ({"ops": {"i": 1}}, _NULLABLE, "schema a: json.ops is not one of its values"),
        ({}, "int", "schema a: a field is either nullable or required"),
        ({"required": True}, _NULLABLE, "schema a: a field is either nullable or required"),
    ],
)
def test_what_a_field_cannot_say(said, type, sentence):
    """A key that is none, or a value that is none of a key's, is an error and never ignored."""
    assert error_of(field_rule, _field(said, type)) == sentence


@pytest.mark.parametrize(
    ("said", "rule"),
    [
        ({}, EnumRule()),
        ({"other": "OTHER"}, EnumRule(other="OTHER")),
        ({"spellings": {"a": "A"}}, EnumRule(spellings={"a": "A"})),
    ],
)
def test_enum_says_its_rule(said, rule):
    """Each key of an enum, alone."""
    assert enum_rule(_enum(said)) == rule


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ({"other": "X"}, "schema E: json.other is not one of its values"),
        ({"names": {"X": "x"}}, "schema E: json.names is not one of its values"),
        ({"names": {"A": 1}}, "schema E: json.names is not one of its values"),
        ({"names": {"A": "OTHER"}}, "schema E: json.names is not one of its values"),
        ({"other": ["A"]}, "schema E: json.other is not one of its values"),
        ({"spellings": {"a": "X"}}, "schema E: json.spellings is not one of its values"),
        ({"spellings": {"a": ["A"]}}, "schema E: json.spellings is not one of its values"),
        ({"spellings": ["a"]}, "schema E: json.spellings is not one of its values"),
        ({"x": 1}, "schema E: the attribute json has no key 'x'"),
        ("OTHER", "schema E: the attribute json is not an object"),
    ],
)
def test_what_an_enum_cannot_say(said, sentence):
    """A symbol that is none is an error."""
    assert error_of(enum_rule, _enum(said)) == sentence


@pytest.mark.parametrize("said", [{"unstated": True}, {"delete": True}, {"position": "trial"}, {"order": "numbers"}])
def test_what_a_format_cannot_say(said):
    """A value that is none of the key's is an error here, too."""
    (key,) = said
    assert error_of(format_rule, _text_record(said)) == f"schema R: json.{key} is not one of its values"


def test_record_of_one_text_says_what_it_holds():
    """`holds` belongs to a record with the one string field `text`; other types hold nothing."""
    assert content_of(_text_record({"holds": "number"})) == "number"
    assert content_of(_text_record({"holds": "text"})) == "text"
    assert content_of(_text_record({})) == ""
    assert content_of(Primitive("string")) == ""


@pytest.mark.parametrize(
    ("said", "field", "sentence"),
    [
        ({"holds": "json"}, ("text", "string"), "schema R: json.holds is not one of its values"),
        (
            {"holds": "number"},
            ("value", "string"),
            "schema R: json.holds belongs to a record with the one string field text",
        ),
        (
            {"holds": "text"},
            ("text", "bytes"),
            "schema R: json.holds belongs to a record with the one string field text",
        ),
        (
            {"hold": "text"},
            ("text", "string"),
            "schema R: json.holds belongs to a record with the one string field text",
        ),
    ],
)
def test_what_a_record_cannot_say(said, field, sentence):
    """A record of another shape cannot hold a number's or a value's text."""
    assert error_of(content_of, _text_record(said, field)) == sentence


def test_nullable_is_a_union_with_null():
    """The place of null in the union does not matter."""
    assert is_nullable(Union((Primitive("int"), Primitive("null"))))
    assert not is_nullable(Union((Primitive("int"),)))
    assert not is_nullable(Primitive("null"))


def test_json_name_and_field_name_may_differ():
    """A member whose name is no Avro name gets a field with another, and keeps its own in the text and in errors."""
    fields = [
        {"name": "source_table", "type": ["null", "string"], "json": {"name": "source-table/~"}},
        {
            "name": "kind",
            "type": {"type": "enum", "name": "K", "symbols": ["A"]},
            "json": {"name": "@kind", "required": True},
        },
        _EXTRAS,
    ]
    format = Format("mine", parse_schema(json.dumps({"type": "record", "name": "M", "fields": fields})))
    assert format.decode(format.encode('{"@kind":"A","source-table/~":"t"}')) == b'{"source-table/~":"t","@kind":"A"}'
    assert error_of(format.encode, '{"source-table/~":[]}') == 'mine: $["@kind"]: expected a required member, got none'
    sentence = 'mine: $["source-table/~"]: expected string, got array'
    assert error_of(format.encode, '{"@kind":"A","source-table/~":[]}') == sentence
    assert error_of(format.encode, '{"@kind":"B"}') == "mine: $[\"@kind\"]: expected one of A, got 'B'"


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ([], "schema M: the envelope does not end in extras, a map of strings"),
        (
            [{**_EXTRAS, "type": {"type": "map", "values": "long"}}],
            "schema M: the envelope does not end in extras, a map of strings",
        ),
        (
            [{"name": "r", "type": {"type": "map", "values": "string"}, "json": {"members": "rest"}}],
            "schema M: the envelope does not end in extras, a map of strings",
        ),
        ([{"name": "b", "type": ["null", "bytes"]}, _EXTRAS], "schema /b: a wire schema holds no bytes"),
        ([{"name": "b", "type": ["null"]}, _EXTRAS], "schema /b: a union of null alone holds nothing"),
        (
            [{"name": "b", "type": ["null", "int", {"type": "array", "items": "int"}]}, _EXTRAS],
            "schema /b: a union of variants holds scalars only",
        ),
        (
            [{"name": "b", "type": ["null", "int", "long"]}, _EXTRAS],
            "schema /b: a union of variants holds one branch for each JSON type",
        ),
        (
            [
                {"name": "a", "type": ["null", "int"]},
                {"name": "b", "type": ["null", "int"], "json": {"name": "a"}},
                _EXTRAS,
            ],
            "schema M: two fields stand for the member 'a'",
        ),
        (
            [
                {"name": "r", "type": {"type": "map", "values": "string"}, "json": {"members": "rest"}},
                {"name": "b", "type": ["null", "int"]},
                _EXTRAS,
            ],
            "schema M: the rest map stands behind the named members",
        ),
    ],
)
def test_schema_that_is_no_wire_schema(fields, sentence):
    """An envelope that the converter cannot write is refused when its plan is made, with the place."""
    format = Format("mine", parse_schema(json.dumps({"type": "record", "name": "M", "fields": fields})))
    assert error_of(format.encode, "{}") == sentence


def test_record_that_contains_itself_is_no_wire_schema():
    """The plan of a format spells all types out."""
    fields = [{"name": "r", "type": ["null", "M"]}, _EXTRAS]
    format = Format("mine", parse_schema(json.dumps({"type": "record", "name": "M", "fields": fields})))
    said = "schema $: M contains itself, which a format of messages does not read"
    assert error_of(format.encode, "{}") == said
    assert error_of(format.decode, b"\0") == said


def test_record_may_have_no_fields():
    """All members of a record without fields go into extras."""
    fields = [{"name": "r", "type": ["null", {"type": "record", "name": "E", "fields": []}]}, _EXTRAS]
    format = Format("mine", parse_schema(json.dumps({"type": "record", "name": "M", "fields": fields})))
    for sent in (b'{"r":{}}', b'{"r":{"x":1.0}}', b"{}"):
        assert format.decode(format.encode(sent)) == sent


def test_wire_schema_is_a_record():
    """Any other type has no members."""
    format = Format("mine", parse_schema('"string"'))
    assert error_of(format.encode, "{}") == "schema mine: a wire schema is a record"
    assert error_of(format.decode, b"\0") == "schema mine: a wire schema is a record"


def test_union_of_a_wire_schema_has_null():
    """Or it is refused as a schema, wherever it stands."""
    fields = [{"name": "b", "type": ["null", {"type": "array", "items": ["int", "string"]}]}, _EXTRAS]
    format = Format("mine", parse_schema(json.dumps({"type": "record", "name": "M", "fields": fields})))
    assert error_of(format.encode, "{}") == "schema $: a union has a branch null, for what is absent"


@pytest.mark.parametrize(("type", "name"), [("bytes", "bytes"), ({"type": "fixed", "name": "F", "size": 1}, "F")])
def test_wire_schema_holds_no_bytes(type, name):
    """Bytes have no place in JSON: a schema that would read them is refused, not its payloads."""
    fields = [{"name": "b", "type": ["null", type]}, _EXTRAS]
    format = Format("mine", parse_schema(json.dumps({"type": "record", "name": "M", "fields": fields})))
    assert error_of(format.decode, b"\0\0") == f"schema /b: a wire schema holds no {name}"


@pytest.mark.parametrize("format", cdcavro.FORMATS)
def test_operation_is_told_in_one_place(format):
    """Each format has exactly one member that says what kind of change a message is, in each shape of its messages.

    A row without its envelope may say it in one of two, and a transaction says it of each of its operations.
    """

    def count(declared):
        branches = declared.branches if isinstance(declared, Union) else (declared,)
        fields = [one for branch in branches for one in getattr(branch, "fields", ())]
        return sum(field_rule(one).operation + count(one.type) for one in fields)

    counts = {"debezium": 4, "debezium_flat": 2, "goldengate_tx": 0}
    assert count(cdcavro.load_schema(format).root) == counts.get(format, 1)


def test_error_is_a_schema_error():
    """What is wrong with a schema is never said to be a message's fault."""
    with pytest.raises(SchemaError):
        field_rule(_field({"x": 1}))


@pytest.mark.parametrize(
    ("means", "part"),
    [
        ("row", "row"),
        ("event time", "event_time"),
        ("nothing", "unused"),
        ("key values", "unused"),
        ("table", ""),
        ("full name", ""),
        ("whole row", "after"),
    ],
)
def test_the_part_of_a_row_follows_from_what_a_member_means(means, part):
    """What belongs to all messages of a kind is no part."""
    rule = field_rule(_field({"means": means} | ({"unit": {"": "s", "ALTER": "ms"}} if part == "event_time" else {})))
    assert (rule.means, rule.part) == (means, part)
    assert (rule.unit, dict(rule.units)) == (("s", {"ALTER": "ms"}) if part == "event_time" else ("", {}))

"""Avro schemas: what is parsed, which rule each refused schema breaks, canonical forms and fingerprints."""

from __future__ import annotations

import json

import fastavro.schema
import pytest
from hypothesis import given

import cdcavro
from cdcavro import parse_schema, verdict
from cdcavro.avro import schema_diff
from cdcavro.avro.types import (
    Array,
    Enum,
    Field,
    Fixed,
    Map,
    Primitive,
    Record,
    Union,
    branch_name,
    check_expansion,
    recursion,
)
from cdcavro.exact.jsontext import ABSENT
from support.lenient_schemas import LENIENT, LINKED
from support.roundtrip import error_of
from support.schema_pairs import pairs

_RULE = "letters, digits and _, no digit first"
_ORDER = "$.fields[0]: order is not one of ascending, descending, ignore"


def _record(*fields: str) -> str:
    return f'{{"type":"record","name":"R","fields":[{",".join(fields)}]}}'


def _default(type: str, default: str) -> str:
    return _record(f'{{"name":"a","type":{type},"default":{default}}}')


def test_every_type_is_parsed():
    """The whole structure of a schema with every type."""
    text = """{"type": "record", "name": "a.R", "aliases": ["Old", "b.Older"], "doc": "d", "fields": [
        {"name": "e", "type": {"type": "enum", "name": "E", "symbols": ["X", "Y"]}, "aliases": ["was"], "x": 1},
        {"name": "f", "type": {"type": "fixed", "name": "b.F", "size": 2}, "default": "ÿ\\u0000"},
        {"name": "u", "type": ["null", {"type": "array", "items": "E"}, {"type": "map", "values": "b.F"}], "default": null},
        {"name": "d", "type": {"type": "bytes", "logicalType": "decimal", "precision": 4}, "order": "ignore"}]}"""
    enum = Enum("a.E", (), "", {}, symbols=("X", "Y"))
    fixed = Fixed("b.F", (), "", {}, size=2)
    fields = (
        Field("e", enum, ABSENT, ("was",), "", {"x": 1}),
        Field("f", fixed, "ÿ\0", (), "", {}),
        Field("u", Union((Primitive("null"), Array(enum), Map(fixed))), None, (), "", {}),
        Field("d", Primitive("bytes"), ABSENT, (), "", {}),
    )
    root = parse_schema(text).root
    assert root == Record("a.R", ("a.Old", "b.Older"), "d", {}, fields=fields)
    assert root.fields[0].attributes == {"x": 1}
    assert root.fields[3].type.attributes == {"logicalType": "decimal", "precision": 4}


@pytest.mark.parametrize("format", cdcavro.FORMATS)
def test_every_shipped_schema_is_documented(format):
    """Each record, enum and field says what it is."""
    undocumented = []

    def walk(declared, where):
        if isinstance(declared, (Record, Enum, Fixed)) and not declared.doc:
            undocumented.append(where)
        for one in declared.fields if isinstance(declared, Record) else ():
            if not one.doc:
                undocumented.append(f"{where}.{one.name}")
            walk(one.type, f"{where}.{one.name}")
        inner = {Union: "branches", Array: "items", Map: "values"}.get(type(declared))
        below = getattr(declared, inner) if inner else ()
        for one in below if isinstance(below, tuple) else (below,):
            walk(one, where)

    walk(cdcavro.load_schema(format).root, format)
    assert undocumented == []


@pytest.mark.parametrize("format", cdcavro.FORMATS)
def test_canonical_form_and_fingerprint_are_fastavros(format):
    """An independent implementation gives the same form and fingerprint."""
    schema = cdcavro.load_schema(format)
    form = fastavro.schema.to_parsing_canonical_form(fastavro.schema.parse_schema(json.loads(schema.json)))
    assert schema.canonical == form
    assert schema.fingerprint == fastavro.schema.fingerprint(form, "CRC-64-AVRO")
    assert parse_schema(form).canonical == form


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ('{"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 8}', '"bytes"'),
        ('{"type": "fixed", "name": "F", "size": 1, "doc": 7}', '{"type": "fixed", "name": "F", "size": 1}'),
    ],
)
def test_what_is_to_be_ignored_does_not_hinder_a_fingerprint(text, plain):
    """Where fastavro refuses the schema: an invalid decimal, a doc that is no text."""
    assert parse_schema(text).fingerprint == parse_schema(plain).fingerprint


@given(pairs())
def test_canonical_forms_of_random_schemas_are_fastavros(pair):
    """Namespaces, references to named types, nested ones."""
    assert parse_schema(pair.reader).canonical == fastavro.schema.to_parsing_canonical_form(json.loads(pair.reader))


def _crc_64_avro(canonical: str) -> str:
    """The pseudocode of the specification ("Schema Fingerprints"), bytes in the order of a single-object encoding."""
    empty = 0xC15D213AA4D7A795
    found = empty
    for byte in canonical.encode():
        table = (found ^ byte) & 0xFF
        for _ in range(8):
            table = table >> 1 ^ (empty if table & 1 else 0)
        found = found >> 8 ^ table
    return found.to_bytes(8, "little").hex()


@pytest.mark.parametrize(
    ("text", "fingerprint"), [('"int"', "8f5c393f1ad57572"), ('{"type":"int","doc":"x"}', "8f5c393f1ad57572")]
)
def test_known_fingerprint(text, fingerprint):
    """The CRC-64-AVRO of "int", in the order of bytes that a single-object encoding has."""
    assert parse_schema(text).fingerprint == fingerprint


@pytest.mark.parametrize("format", cdcavro.FORMATS)
def test_fingerprint_is_that_of_the_specification(format):
    """The specification's own algorithm gives the fingerprint of each shipped schema."""
    schema = cdcavro.load_schema(format)
    assert schema.fingerprint == _crc_64_avro(schema.canonical)


def test_fingerprint_does_not_see_aliases_and_attributes():
    """Docs, aliases, defaults and our own attributes leave the fingerprint as it is; whole schemas differ."""
    bare = parse_schema('{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}')
    told = parse_schema(
        '{"type":"record","name":"R","aliases":["S"],"doc":"d","fields":[{"name":"a","type":"int","default":1,"json":{}}]}'
    )
    assert bare.fingerprint == told.fingerprint
    assert bare != told


def test_schema_keeps_its_text():
    """`.json` is the text as it was given, to hand on."""
    text = ' {"type" : "map", "values": "long"}\n'
    assert parse_schema(text).json == text


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "text: not JSON: Expecting value: line 1 column 1 (char 0)"),
        ("[" * 100_000, None),
        ('{"type":"int","x":NaN}', "text: not JSON: NaN"),
        ("5", "$: expected a type, got '5'"),
        ("null", "$: expected a type, got 'null'"),
        ('{"name":"R"}', '$: expected a type, got \'{"name": "R"}\''),
        ('{"type":{"type":"int"}}', '$: expected a type, got \'{"type": {"type": "int"}}\''),
        ('{"type":["null","int"]}', '$: expected a type, got \'{"type": ["null", "int"]}\''),
        ('"uuid"', "$: 'uuid' is not defined before it is used"),
        ('"a; import os"', f"$: 'a; import os' is not a name: {_RULE}"),
        ('{"type":"a; import os"}', f"$: 'a; import os' is not a name: {_RULE}"),
        ('{"type":"array"}', "$: items is missing"),
        ('{"type":"map"}', "$: values is missing"),
        (
            '{"type":"array","items":{"type":"map","values":"x"}}',
            "$.items.values: 'x' is not defined before it is used",
        ),
        ('["int",["null"]]', "$: a union holds a union"),
        ('["int","int"]', "$: a union holds two branches of one type"),
        ('[{"type":"int","logicalType":"date"},"int"]', "$: a union holds two branches of one type"),
        (
            '[{"type":"array","items":"int"},{"type":"array","items":"long"}]',
            "$: a union holds two branches of one type",
        ),
        ('{"type":"record","fields":[]}', "$: name is missing"),
        ('{"type":"record","name":1,"fields":[]}', "$: a name is not a string"),
        ('{"type":"record","name":"","fields":[]}', f"$: '' is not a name: {_RULE}"),
        ('{"type":"record","name":"1a","fields":[]}', f"$: '1a' is not a name: {_RULE}"),
        ('{"type":"record","name":"a; import os","fields":[]}', f"$: 'a; import os' is not a name: {_RULE}"),
        ('{"type":"record","name":"a\\n","fields":[]}', f"$: 'a\\n' is not a name: {_RULE}"),
        ('{"type":"record","name":"é-","fields":[]}', f"$: 'é-' is not a name: {_RULE}"),
        ('{"type":"record","name":"\U00010400","fields":[]}', f"$: '𐐀' is not a name: {_RULE}"),
        ('{"type":"record","name":"²","fields":[]}', f"$: '²' is not a name: {_RULE}"),
        ('{"type":"record","name":"a..b","fields":[]}', f"$: '' is not a name: {_RULE}"),
        ('{"type":"record","name":"R","namespace":"x y","fields":[]}', f"$: 'x y' is not a name: {_RULE}"),
        ('{"type":"record","name":"int","fields":[]}', "$: int is a primitive type and cannot be defined"),
        ('{"type":"record","name":"R","aliases":"S","fields":[]}', "$: aliases is not an array of strings"),
        ('{"type":"record","name":"R","aliases":["a b"],"fields":[]}', f"$: 'a b' is not a name: {_RULE}"),
        ('{"type":"record","name":"R"}', "$: fields is missing"),
        ('{"type":"record","name":"R","fields":{}}', "$: fields is not an array"),
        (_record("1"), "$.fields[0]: a field is not an object"),
        (_record('{"name":"a"}'), "$.fields[0]: type is missing"),
        (_record('{"type":"int"}'), "$.fields[0]: name is missing"),
        (_record('{"name":"a b","type":"int"}'), f"$.fields[0]: 'a b' is not a name: {_RULE}"),
        (_record('{"name":"a.b","type":"int"}'), f"$.fields[0]: 'a.b' is not a name: {_RULE}"),
        (_record('{"name":"a","type":"int"}', '{"name":"a","type":"int"}'), "$: two fields share a name"),
        (_record('{"name":"a","type":"int","order":"sideways"}'), _ORDER),
        (_record('{"name":"a","type":"int","order":null}'), _ORDER),
        (
            _record('{"name":"a","type":"R","default":{}}'),
            "$.fields[0]: the default contains itself and never ends",
        ),
        ('"int" "long"', "text: not JSON: Extra data: line 1 column 7 (char 6)"),
        ('"int" /* open', "text: not JSON: Extra data: line 1 column 7 (char 6)"),
        (_record('{"name":"a","type":{"type":"enum","name":"R","symbols":["A"]}}'), "$.fields[0]: R is defined twice"),
        ('{"type":"enum","name":"E"}', "$: symbols is missing"),
        ('{"type":"enum","name":"E","symbols":["A","A"]}', "$: symbols are given twice"),
        ('{"type":"enum","name":"E","symbols":["A"],"default":"B"}', "$: the default 'B' is no symbol"),
        ('{"type":"enum","name":"E","symbols":[1]}', "$: symbols is not an array of strings"),
        ('{"type":"enum","name":"E","symbols":["a-b"]}', f"$: 'a-b' is not a name: {_RULE}"),
        ('{"type":"fixed","name":"F"}', "$: size is missing"),
        ('{"type":"fixed","name":"F","size":-1}', "$: size is not an integer from 0 to 8388608"),
        ('{"type":"fixed","name":"F","size":true}', "$: size is not an integer from 0 to 8388608"),
        ('{"type":"fixed","name":"F","size":1.0}', "$: size is not an integer from 0 to 8388608"),
        ('{"type":"fixed","name":"F","size":8388609}', "$: size is not an integer from 0 to 8388608"),
        ('{"type":"array","items":' * 129 + '"int"' + "}" * 129, f"${'.items' * 129}: nested deeper than 128 levels"),
        ('{"type":"array","items":' * 100_000, None),
        (_default('"int"', '"x"'), "$.fields[0]: the default '\"x\"' does not fit its type"),
        (_default('"int"', "2147483648"), "$.fields[0]: the default '2147483648' does not fit its type"),
        (_default('"long"', "1.0"), "$.fields[0]: the default '1.0' does not fit its type"),
        (_default('"boolean"', "0"), "$.fields[0]: the default '0' does not fit its type"),
        (_default('["null","int"]', '"1"'), "$.fields[0]: the default '\"1\"' does not fit its type"),
        (_default('"double"', '"many"'), "$.fields[0]: the default '\"many\"' does not fit its type"),
        (_default('"double"', "true"), "$.fields[0]: the default 'true' does not fit its type"),
        (
            _default('{"type":"array","items":"int"}', "[1,null]"),
            "$.fields[0]: the default '[1, null]' does not fit its type",
        ),
        (_default('{"type":"map","values":"int"}', "[]"), "$.fields[0]: the default '[]' does not fit its type"),
        (
            _default('{"type":"enum","name":"E","symbols":["A"]}', "[]"),
            "$.fields[0]: the default '[]' does not fit its type",
        ),
        (
            _default('{"type":"record","name":"S","fields":[{"name":"x","type":"int"}]}', "{}"),
            "$.fields[0]: the default lacks x",
        ),
        (
            _default('{"type":"record","name":"S","fields":[{"name":"x","type":"int"}]}', '{"x":null}'),
            "$.fields[0]: the default '{\"x\": null}' does not fit its type",
        ),
    ],
    ids=lambda given: str(given)[:50],
)
def test_schema_that_breaks_a_rule_is_refused(text, sentence):
    """Names, shapes and defaults are checked, whatever other parsers let pass."""
    found = error_of(parse_schema, text)
    assert found == f"schema {sentence}" if sentence else found.startswith("schema text: not JSON: ")


@pytest.mark.parametrize(
    ("type", "default"),
    [
        ('"null"', "null"),
        ('"boolean"', "false"),
        ('"int"', "-2147483648"),
        ('"long"', "9223372036854775807"),
        ('"float"', "1"),
        ('"double"', "1.5"),
        ('"bytes"', '"\\u00ff"'),
        ('"string"', '""'),
        ('["int","null"]', "1"),
        ('["null","int"]', "1"),
        ('["int","null"]', "null"),
        (
            '["null",{"type":"record","name":"R2","fields":[{"name":"x","type":"int"}]},{"type":"map","values":"int"}]',
            '{"y":1}',
        ),
        ('{"type":"array","items":["null","int"]}', "[null]"),
        ('{"type":"map","values":"int"}', '{"a":1}'),
        ('{"type":"enum","name":"E","symbols":["A"]}', '"A"'),
        ('{"type":"fixed","name":"F","size":2}', '"ab"'),
        ('{"type":"record","name":"S","fields":[{"name":"x","type":"int","default":1}]}', "{}"),
    ],
)
def test_default_that_fits_is_taken(type, default):
    """A default is a value of its type, for a union of any branch."""
    assert parse_schema(_default(type, default)).root.fields[0].default == json.loads(default)


@pytest.mark.parametrize(("text", "plain"), LENIENT.values(), ids=LENIENT)
def test_schema_that_avro_java_reads_is_parsed(text, plain):
    """It is what the plain schema is, and its `json` is one that a stricter parser reads too."""
    schema = parse_schema(text)
    assert json.loads(parse_schema(schema.json).json) == json.loads(schema.json)
    assert parse_schema(schema.json).root == schema.root
    if plain is not None:
        assert schema.canonical.replace('["null",', "").rstrip("]") == parse_schema(plain).canonical.replace(
            '["null",', ""
        ).rstrip("]")


def test_record_that_contains_itself_is_a_circle():
    """Its branch is the record itself; equal schemas are equal, and others are not."""
    schema = parse_schema(LINKED)
    assert isinstance(schema.root, Record)
    assert schema.root.fields[0].type.branches[1] is schema.root
    assert schema.root == parse_schema(LINKED).root
    assert schema.root != parse_schema(LINKED.replace('"next"', '"last"')).root
    assert hash(schema.root) == hash(parse_schema(LINKED).root)
    assert "L" in repr(schema.root)
    assert recursion(schema.root) == "a.L"
    assert recursion(parse_schema('{"type":"array","items":"int"}').root) is None
    assert error_of(check_expansion, schema.root, "Spark") == "schema $: a.L contains itself, which Spark does not read"


def test_alias_that_is_no_name_is_passed_over():
    """It names nothing; one with a dot in front has no namespace."""
    root = parse_schema(LENIENT["aliases that are no names"][0]).root
    assert isinstance(root, Record)
    assert root.aliases == ("T",)
    assert root.fields[0].aliases == ()
    assert parse_schema(LENIENT["an alias that is the field's own name"][0]).root.fields[0].aliases == ()


def test_default_as_text_is_a_number():
    """As in Avro Java: NaN and infinities have no other form in JSON."""
    defaults = ['"NaN"', '"-Infinity"', '"1.5"', '" 7 "']
    found = [parse_schema(_default('"double"', default)).root.fields[0].default for default in defaults]
    assert str(found) == "[nan, -inf, 1.5, 7.0]"


@pytest.mark.parametrize(
    "text", ["/*" * 1_000_000, "//" * 1_000_000 + "x", '"' * 999_999, '"\\' * 500_000, "[/*" * 300_000]
)
def test_text_full_of_comments_is_refused_soon(text):
    """In time that grows with the text only."""
    assert error_of(parse_schema, text).startswith("schema text: not JSON: ")


def test_defaults_that_grow_are_refused_soon():
    """Each record is filled in twice with the one before: a short text, and billions of values."""
    inner = '{"name":"x","type":"int","default":1}'
    for i in range(40):
        inner = (
            f'{{"name":"d","type":["null",{{"type":"record","name":"X{i}","fields":[{inner}]}}],"default":null}},'
            f'{{"name":"a","type":"X{i}","default":{{}}}},{{"name":"b","type":"X{i}","default":{{}}}}'
        )
    assert error_of(parse_schema, _record(inner)).endswith(": a default of more than 1,000,000 values")


def test_names_that_grow_are_parsed_soon():
    """Records that each hold the one before twice are a short text and billions of fields."""
    fields = ['{"name":"f0","type":{"type":"record","name":"X0","fields":[{"name":"a","type":"int"}]}}']
    for i in range(1, 60):
        twice = f'[{{"name":"a","type":"X{i - 1}"}},{{"name":"b","type":"X{i - 1}"}}]'
        fields.append(f'{{"name":"f{i}","type":{{"type":"record","name":"X{i}","fields":{twice}}}}}')
    schema = parse_schema(_record(*fields))
    assert len(schema.canonical) < 10_000
    assert verdict(schema, schema).name == "full"
    assert schema_diff(schema, schema) == []
    assert schema.root == parse_schema(schema.json).root
    assert error_of(check_expansion, schema.root, "Spark") == (
        "schema $: it stands for more than 100,000 types, which Spark does not read"
    )


def test_long_schema_is_refused():
    """A text beyond 8 MiB is not looked at."""
    assert error_of(parse_schema, " " * (8 << 20) + '"int"') == "schema text: longer than 8388608 characters"


@pytest.mark.parametrize(
    "text",
    [
        '{"type":"record","name":"N","fields":[{"name":"N","type":"int","default":"N"}]}',
        '{"type":"fixed","name":"N","size":N}',
        '{"type":"record","name":"N","fields":[{"name":"a","type":"N","default":{}}]}',
        '[{"type":"fixed","name":"N","size":1},{"type":"fixed","name":"N","size":1}]',
    ],
)
def test_long_name_does_not_blow_up_a_sentence(text):
    """A name of a megabyte is a name; what is wrong around it is said in a short sentence."""
    assert len(error_of(parse_schema, text.replace("N", "n" * 1_000_000))) < 2_100


def test_branches_are_named_as_the_specification_tells_them_apart():
    """Named types by their full names, the others by their kinds."""
    root = parse_schema(
        '["null",{"type":"array","items":"int"},{"type":"map","values":"int"},{"type":"fixed","name":"a.F","size":1}]'
    ).root
    assert [branch_name(branch) for branch in root.branches] == ["null", "array", "map", "a.F"]
    assert error_of(branch_name, root) == "schema union: Union is no branch"

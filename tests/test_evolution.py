"""Schema resolution, one rule a test: whole structures, exact sentences, and fastavro as the oracle."""

from __future__ import annotations

import io
import json

import fastavro
import pytest
from roundtrip import SAMPLES, assert_round_trip, error_of, exact, lines

import cdcavro
from cdcavro.errors import ResolutionError
from cdcavro.evolution import (
    ReadArray,
    ReadEnum,
    ReadFixed,
    ReadMap,
    ReadPrimitive,
    ReadRecord,
    ReadUnion,
    resolve,
)
from cdcavro.format import Format
from cdcavro.schema import parse_schema
from cdcavro.types import Primitive

_INT, _LONG, _STRING = Primitive("int"), Primitive("long"), Primitive("string")


def _type(declared):
    return parse_schema(json.dumps(declared)).root


def _record(*fields, name="R", aliases=()):
    return {"type": "record", "name": name, "aliases": list(aliases), "fields": list(fields)}


def _field(name, type="int", **more):
    return {"name": name, "type": type, **more}


def _enum(*symbols, name="E", aliases=()):
    return {"type": "enum", "name": name, "symbols": list(symbols), "aliases": list(aliases)}


def _refusal(writer, reader):
    with pytest.raises(ResolutionError) as caught:
        resolve(_type(writer), _type(reader))
    return str(caught.value)


@pytest.mark.parametrize(
    ("writer", "reader"),
    [
        ("int", "long"),
        ("int", "float"),
        ("int", "double"),
        ("long", "float"),
        ("long", "double"),
        ("float", "double"),
        ("string", "bytes"),
        ("bytes", "string"),
    ],
)
def test_promotion_of_the_specification(writer, reader):
    """Each promotion that the specification has, and none the other way round but string and bytes."""
    assert resolve(_type(writer), _type(reader)) == ReadPrimitive(Primitive(writer), Primitive(reader))
    if {writer, reader} != {"string", "bytes"}:
        assert _refusal(reader, writer) == f"schema $: {writer} cannot read {reader}"


def test_primitive_reads_itself():
    """The same type needs no rule."""
    for name in ("null", "boolean", "int", "long", "float", "double", "bytes", "string"):
        assert resolve(_type(name), _type(name)) == ReadPrimitive(Primitive(name), Primitive(name))


@pytest.mark.parametrize(
    ("writer", "reader", "sentence"),
    [
        ("boolean", "int", "schema $: int cannot read boolean"),
        ("string", "long", "schema $: long cannot read string"),
        ("int", {"type": "array", "items": "int"}, "schema $: array cannot read int"),
        ({"type": "map", "values": "int"}, {"type": "array", "items": "int"}, "schema $: array cannot read map"),
        (_enum("A"), "string", "schema $: string cannot read E"),
        (
            {"type": "array", "items": {"type": "map", "values": "string"}},
            {"type": "array", "items": {"type": "map", "values": "int"}},
            "schema $[]{}: int cannot read string",
        ),
    ],
)
def test_types_that_do_not_match(writer, reader, sentence):
    """What the specification does not promote is refused with its place."""
    assert _refusal(writer, reader) == sentence


@pytest.mark.parametrize(
    ("writer", "reader", "sentence"),
    [
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2},
            {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 3},
            "schema $: scale 3 cannot read scale 2",
        ),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2},
            {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2},
            "schema $: precision 10 cannot read precision 12",
        ),
        (
            {"type": "long", "logicalType": "timestamp-millis"},
            {"type": "long", "logicalType": "timestamp-micros"},
            "schema $: logicalType timestamp-micros cannot read logicalType timestamp-millis",
        ),
    ],
)
def test_change_of_unit_is_refused(writer, reader, sentence):
    """Another scale or unit passes the usual checkers and reads 1.23 as 0.123."""
    assert _refusal(writer, reader) == sentence


def test_logical_type_may_come_and_go():
    """A logical type on one side only changes no unit."""
    plain, dated = _type("int"), _type({"type": "int", "logicalType": "date"})
    assert resolve(plain, dated) == ReadPrimitive(plain, dated)
    assert resolve(dated, plain) == ReadPrimitive(dated, plain)


def test_array_and_map_are_read_item_by_item():
    """Promotion reaches into arrays and maps."""
    step = ReadPrimitive(_INT, _LONG)
    assert resolve(_type({"type": "array", "items": "int"}), _type({"type": "array", "items": "long"})) == ReadArray(
        step
    )
    assert resolve(_type({"type": "map", "values": "int"}), _type({"type": "map", "values": "long"})) == ReadMap(step)


def test_fixed_is_read_by_name_and_size():
    """Another size or name is another type."""
    fixed = {"type": "fixed", "name": "F", "size": 2}
    assert resolve(_type(fixed), _type({**fixed, "name": "G", "aliases": ["F"]})) == ReadFixed(2)
    assert _refusal(fixed, {**fixed, "size": 3}) == "schema $: F cannot read F"
    assert _refusal(fixed, {**fixed, "name": "G"}) == "schema $: G cannot read F"


def test_record_renamed_with_an_alias():
    """The alias is the writer's full name; within a namespace a short alias is of that namespace."""
    writer = _type(_record(_field("a"), name="n.Old"))
    reader = _type(_record(_field("a"), name="n.New", aliases=["Old"]))
    field = reader.fields[0]
    assert resolve(writer, reader) == ReadRecord(reader, ((ReadPrimitive(_INT, _INT), field),), ())


def test_record_renamed_without_an_alias_is_refused():
    """Reading it by chance is not reading it."""
    assert _refusal(_record(name="Old"), _record(name="New")) == "schema $: New cannot read Old"
    assert _refusal(_record(name="a.R"), _record(name="b.R", aliases=["R"])) == "schema $: b.R cannot read a.R"


def test_field_renamed_with_an_alias():
    """The writer's field is read into the reader's field that has its name as an alias."""
    reader = _type(_record(_field("b"), _field("c", "long", aliases=["a"])))
    writer = _type(_record(_field("a"), _field("b")))
    b, c = reader.fields
    steps = ((ReadPrimitive(_INT, _LONG), c), (ReadPrimitive(_INT, _INT), b))
    assert resolve(writer, reader) == ReadRecord(reader, steps, ())


def test_own_name_comes_before_an_alias():
    """Where the writer has both the old and the new name, the new one is the field and the old one is dropped."""
    reader = _type(_record(_field("table", "string", aliases=["tableName"])))
    writer = _type(_record(_field("tableName", "long"), _field("table", "string")))
    steps = ((ReadPrimitive(_LONG, _LONG), None), (ReadPrimitive(_STRING, _STRING), reader.fields[0]))
    assert resolve(writer, reader) == ReadRecord(reader, steps, ())


def test_two_old_names_of_one_field():
    """A field may have had several names; if a writer has two of them, the first is the field."""
    reader = _type(_record(_field("c", aliases=["a", "b"])))
    writer = _type(_record(_field("a"), _field("b")))
    step = ReadPrimitive(_INT, _INT)
    assert resolve(writer, reader) == ReadRecord(reader, ((step, reader.fields[0]), (step, None)), ())


def test_new_field_takes_its_default():
    """A field that the writer has not comes from the reader's default."""
    reader = _type(_record(_field("a"), _field("b", "string", default="x")))
    step = (ReadPrimitive(_INT, _INT), reader.fields[0])
    assert resolve(_type(_record(_field("a"))), reader) == ReadRecord(reader, (step,), (reader.fields[1],))


def test_new_field_without_a_default_is_refused():
    """There is nothing to fill it with."""
    sentence = "schema $: b is new and has no default"
    assert _refusal(_record(_field("a")), _record(_field("a"), _field("b"))) == sentence


def test_dropped_field_is_read_and_dropped():
    """What the writer wrote and the reader has not is read in full, so that the next field is found."""
    reader = _type(_record(_field("b")))
    writer = _type(_record(_field("a", _record(_field("x"), name="S")), _field("b")))
    inner = ReadRecord(writer.fields[0].type, ((ReadPrimitive(_INT, _INT), writer.fields[0].type.fields[0]),), ())
    steps = ((inner, None), (ReadPrimitive(_INT, _INT), reader.fields[0]))
    assert resolve(writer, reader) == ReadRecord(reader, steps, ())


def test_enum_symbols_may_be_added_moved_and_dropped():
    """Symbols match by name; one that the reader has not is an error only where it occurs."""
    reader = _type(_enum("C", "A", "D"))
    assert resolve(_type(_enum("A", "B", "C")), reader) == ReadEnum(reader, ("A", None, "C"))
    assert _refusal(_enum("A", name="Old"), _enum("A", name="New")) == "schema $: New cannot read Old"


def test_value_becomes_nullable():
    """A plain type is read into the branch of a union that is it, before one that it promotes to."""
    assert resolve(_INT, _type(["null", "long", "int"])) == ReadPrimitive(_INT, _INT)
    assert resolve(_INT, _type(["null", "long"])) == ReadPrimitive(_INT, _LONG)
    assert _refusal("boolean", ["null", "long"]) == "schema $: no branch of [null, long] reads boolean"


def test_union_becomes_a_value():
    """A branch that the reader cannot read is an error only where it occurs; if it reads none, that is one at once."""
    step = ReadUnion(("int cannot read null", ReadPrimitive(_INT, _INT)))
    assert resolve(_type(["null", "int"]), _INT) == step
    assert _refusal(["null", "string"], "int") == "schema $: int reads no branch of [null, string]"


def test_union_is_read_branch_by_branch():
    """Branches may move and be added; the index is the writer's."""
    null = Primitive("null")
    steps = ReadUnion((ReadPrimitive(_STRING, _STRING), ReadPrimitive(null, null)))
    assert resolve(_type(["string", "null"]), _type(["null", "long", "string"])) == steps


def test_fault_is_named_with_its_place():
    """The path leads through fields, items and values of the writer."""
    writer = _record(
        _field("a", {"type": "array", "items": {"type": "map", "values": _record(_field("b", "string"), name="S")}})
    )
    reader = _record(
        _field("a", {"type": "array", "items": {"type": "map", "values": _record(_field("b", "int"), name="S")}})
    )
    assert _refusal(writer, reader) == "schema $.a[]{}.b: int cannot read string"


# End to end: the shipped Canal schema under the names it never had.

_CANAL = cdcavro.load_schema("oms_canal").json


def _older_canal():
    """The wire schema before a record and a field were renamed and a field was added."""
    schema = json.loads(_CANAL)
    schema["name"] = "CanalMessage"
    schema["fields"] = [one for one in schema["fields"] if one["name"] != "gtid"]
    next(one for one in schema["fields"] if one["name"] == "table")["name"] = "tableName"
    return parse_schema(json.dumps(schema))


def _newer_canal(default=None):
    """The wire schema after that: aliases for what was renamed, a default for what is new."""
    schema = json.loads(_CANAL)
    schema["aliases"] = ["CanalMessage"]
    next(one for one in schema["fields"] if one["name"] == "table")["aliases"] = ["tableName"]
    gtid = next(one for one in schema["fields"] if one["name"] == "gtid")
    if default is not None:
        gtid.update(type=["string", "null"], default=default)
    return parse_schema(json.dumps(schema))


def _canal_messages():
    return [path.read_bytes() for path in sorted((SAMPLES / "oms_canal").glob("*.json"))] + lines(
        SAMPLES / "oms_canal" / "shop.jsonl"
    )[:40]


def _renamed(message):
    """A message as the older schema had it."""
    value = json.loads(message)
    value["tableName"] = value.pop("table")
    value.pop("gtid", None)
    return json.dumps(value)


def test_older_payloads_are_read_under_the_new_names():
    """Values written under older names of a record and a field come back under the new ones."""
    older, newer = Format("oms_canal", given=_older_canal()), Format("oms_canal", given=_newer_canal())
    for message in _canal_messages():
        sent = _renamed(message)
        expected = exact(sent)
        expected["table"] = expected.pop("tableName")
        assert exact(newer.decode(older.encode(sent), writer=older.schema)) == expected


def test_new_field_has_its_default_in_older_payloads():
    """A default that is a value is given; null by a convention of absence is left out."""
    older = Format("oms_canal", given=_older_canal())
    payload = older.encode('{"type":"INSERT","tableName":"t"}')
    with_default = Format("oms_canal", given=_newer_canal("none")).decode(payload, writer=older.schema)
    assert json.loads(with_default) == {"type": "INSERT", "table": "t", "gtid": "none"}
    without = Format("oms_canal", given=_newer_canal()).decode(payload, writer=older.schema)
    assert json.loads(without) == {"type": "INSERT", "table": "t"}


def test_fastavro_reads_the_same_under_the_new_names():
    """The specification's resolution, as an independent reader does it, gives the record that we read."""
    older, newer = Format("oms_canal", given=_older_canal()), Format("oms_canal", given=_newer_canal("none"))
    for message in _canal_messages():
        payload = older.encode(_renamed(message))
        stream = io.BytesIO(payload)
        record = fastavro.schemaless_reader(stream, json.loads(older.schema.json), json.loads(newer.schema.json))
        # Written by the newer schema, what fastavro resolved reads as what we resolve.
        out = io.BytesIO()
        named = fastavro.schemaless_reader(
            io.BytesIO(payload), json.loads(older.schema.json), json.loads(newer.schema.json), return_record_name=True
        )
        fastavro.schemaless_writer(out, json.loads(newer.schema.json), named)
        assert record["gtid"] == "none"
        assert newer.read(out.getvalue()) == newer.read(payload, writer=older.schema)


def test_writer_without_an_alias_is_refused():
    """The present schema does not read a payload of a record by another name."""
    sentence = "schema $: cdcavro.oms.Canal cannot read cdcavro.oms.CanalMessage"
    assert error_of(lambda: cdcavro.decode(b"", "oms_canal", writer=_older_canal())) == sentence


def test_writer_that_is_the_present_schema_changes_nothing():
    """A writer's schema that is ours is no evolution."""
    sent = b'{"type":"INSERT","data":[{"a":1.20}]}'
    payload = assert_round_trip("oms_canal", sent)
    assert cdcavro.decode(payload, "oms_canal", writer=cdcavro.load_schema("oms_canal")) == sent


def _mine(*fields, name="M"):
    extras = {
        "name": "extras",
        "type": {"type": "map", "values": "string"},
        "default": {},
        "json": {"members": "extras"},
    }
    return Format("mine", given=parse_schema(json.dumps(_record(*fields, extras, name=name))))


def _required(name, type, **more):
    return _field(name, type, json={"required": True}, **more)


def _nullable(name, type, **more):
    return _field(name, ["null", type], default=None, **more)


@pytest.mark.parametrize(
    ("old", "new", "sent", "read"),
    [
        (_nullable("a", "int"), _nullable("a", "long"), '{"a":7}', '{"a":7}'),
        (_nullable("a", "int"), _nullable("a", "double"), '{"a":7}', '{"a":7.0}'),
        (_required("a", "int"), _nullable("a", "int"), '{"a":7}', '{"a":7}'),
        (_nullable("a", "int"), _required("a", "int"), '{"a":7}', '{"a":7}'),
        (_nullable("a", "int"), _nullable("b", "int"), '{"a":7}', "{}"),
        (_nullable("a", "int"), _field("b", ["int", "null"], default=7), "{}", '{"b":7}'),
        (
            _nullable("a", "int"),
            _field("b", [_record(_field("x", ["int", "null"], default=1), name="S"), "null"], default={}),
            "{}",
            '{"b":{"x":1}}',
        ),
        (
            _nullable("a", "int"),
            _field("b", [{"type": "array", "items": ["double", "null"]}, "null"], default=[1]),
            "{}",
            '{"b":[1.0]}',
        ),
        (
            _nullable("a", "int"),
            _field("b", [{"type": "map", "values": ["string", "null"]}, "null"], default={"x": "y"}),
            "{}",
            '{"b":{"x":"y"}}',
        ),
    ],
)
def test_value_is_read_as_the_new_schema_has_it(old, new, sent, read):
    """Promotions, nullability and defaults, from text to text."""
    writer, reader = _mine(old), _mine(new)
    assert exact(reader.decode(writer.encode(sent), writer=writer.schema)) == exact(read)


@pytest.mark.parametrize(
    ("old", "new", "sent", "sentence"),
    [
        (
            _nullable("a", "int"),
            _required("a", "int"),
            "{}",
            "mine: $.a: expected a branch the reader has, got int cannot read null",
        ),
        (
            _required("a", _enum("A", "B")),
            _required("a", _enum("A")),
            '{"a":"B"}',
            "mine: $.a: expected a symbol of the reader's, got one of the writer's only",
        ),
    ],
)
def test_value_that_the_new_schema_has_no_place_for(old, new, sent, sentence):
    """The payload is at fault, where it is."""
    writer, reader = _mine(old), _mine(new)
    assert error_of(lambda: reader.decode(writer.encode(sent), writer=writer.schema)) == sentence


def test_dropped_field_of_every_type_is_skipped():
    """Whatever a writer had, bytes and fixed too, is skipped in full."""
    dropped = _record(
        _field("b", "bytes"),
        _field("f", {"type": "fixed", "name": "F", "size": 2}),
        _field("d", "double"),
        _field("e", _enum("A")),
        _field("u", ["null", {"type": "array", "items": "boolean"}]),
        _field("m", {"type": "map", "values": "float"}),
        name="D",
    )
    extras = {"name": "extras", "type": {"type": "map", "values": "string"}}
    writer = parse_schema(json.dumps(_record(_field("d", dropped), _field("a", ["null", "int"]), extras, name="M")))
    out = io.BytesIO()
    row = {"b": b"\xff", "f": b"ab", "d": 1.5, "e": "A", "u": [True], "m": {"x": 0.5}}
    fastavro.schemaless_writer(out, json.loads(writer.json), {"d": row, "a": 7, "extras": {}})
    assert _mine(_nullable("a", "int")).decode(out.getvalue(), writer=writer) == b'{"a":7}'


def test_column_that_became_a_field_is_kept():
    """What an older payload holds in its rest map is not overwritten by a new field's default."""
    rest = {
        "name": "r",
        "type": {"type": "map", "values": ["null", "string"]},
        "default": {},
        "json": {"members": "rest"},
    }
    older, newer = _mine(rest), _mine(_field("a", ["string", "null"], default="default"), rest)
    assert newer.decode(older.encode('{"a":"sent"}'), writer=older.schema) == b'{"a":"sent"}'
    assert newer.decode(older.encode("{}"), writer=older.schema) == b'{"a":"default"}'


def test_text_of_a_number_is_the_same_in_all_versions():
    """The record around a number's text cannot change its field."""
    held = {
        "type": "record",
        "name": "N",
        "json": {"holds": "number"},
        "fields": [_field("text", "string", default="0")],
    }
    other = {**held, "fields": [_field("was", "string")]}
    writer, reader = _mine(_nullable("a", other)), _mine(_nullable("a", held))
    sentence = "schema N: the one field of a number's or a value's text is the same in all versions"
    assert error_of(lambda: reader.decode(b"", writer=writer.schema)) == sentence


@pytest.mark.parametrize(("type", "size"), [("float", 4), ("double", 8)])
def test_number_that_is_not_finite_is_refused(type, size):
    """JSON has no infinity: a writer's double or float that is one does not become null."""
    extras = {"name": "extras", "type": {"type": "map", "values": "string"}}
    writer = parse_schema(json.dumps(_record(_field("a", type), extras, name="M")))
    reader = _mine(_required("a", "double"))
    out = io.BytesIO()
    fastavro.schemaless_writer(out, json.loads(writer.json), {"a": float("inf"), "extras": {}})
    sentence = f"mine: $.a: expected a JSON number, got inf before byte {size}"
    assert error_of(lambda: reader.decode(out.getvalue(), writer=writer)) == sentence

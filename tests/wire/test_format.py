"""Records of an older schema under the names of a newer one: the message as it was sent, renamed; nothing dropped."""

from __future__ import annotations

import io
import json

import fastavro
import pytest

import cdcavro
from cdcavro.avro.resolution import ReadUnion, resolve
from cdcavro.avro.schema import parse_schema
from cdcavro.errors import PayloadError, SchemaError
from cdcavro.wire.format import Format, renames_of
from support.messages import goldens, shop_canal
from support.roundtrip import assert_round_trip, error_of, exact
from support.wire import EXTRAS, REST, array, enum, field, mapping, mine, nullable, record, required


def _type(declared):
    return parse_schema(json.dumps(declared)).root


# The shipped Canal schema under the names it never had.

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
    return goldens("oms_canal") + shop_canal()[:40]


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
        resolved = fastavro.schemaless_reader(stream, json.loads(older.schema.json), json.loads(newer.schema.json))
        # Written by the newer schema, what fastavro resolved reads as what we resolve.
        out = io.BytesIO()
        named = fastavro.schemaless_reader(
            io.BytesIO(payload), json.loads(older.schema.json), json.loads(newer.schema.json), return_record_name=True
        )
        fastavro.schemaless_writer(out, json.loads(newer.schema.json), named)
        assert resolved["gtid"] == "none"
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


@pytest.mark.parametrize(
    ("old", "new", "sent", "read"),
    [
        (nullable("a", "int"), nullable("a", "long"), '{"a":7}', '{"a":7}'),
        (nullable("a", "int"), nullable("a", "double"), '{"a":7}', '{"a":7}'),
        (required("a", "int"), nullable("a", "int"), '{"a":7}', '{"a":7}'),
        (nullable("a", "int"), required("a", "int"), '{"a":7}', '{"a":7}'),
        (nullable("a", "int"), required("a", "int"), "{}", "{}"),
        (required("a", enum("A", "B")), required("a", enum("A")), '{"a":"B"}', '{"a":"B"}'),
        (nullable("a", "int"), field("b", ["int", "null"], default=7), "{}", '{"b":7}'),
        (
            nullable("a", "int"),
            field("b", [record(field("x", ["int", "null"], default=1), name="S"), "null"], default={}),
            "{}",
            '{"b":{"x":1}}',
        ),
        (
            nullable("a", "int"),
            field("b", [array(["double", "null"]), "null"], default=[1]),
            "{}",
            '{"b":[1.0]}',
        ),
        (
            nullable("a", "int"),
            field("b", [mapping(["string", "null"]), "null"], default={"x": "y"}),
            "{}",
            '{"b":{"x":"y"}}',
        ),
    ],
)
def test_value_is_as_it_was_sent_and_new_members_have_their_defaults(old, new, sent, read):
    """A promotion, a symbol gone or another nullability changes no message; only what is new is filled in."""
    writer, reader = mine(old), mine(new)
    assert exact(reader.decode(writer.encode(sent), writer=writer.schema)) == exact(read)


def test_column_that_became_a_field_is_kept():
    """What an older payload holds in its rest map is not overwritten by a new field's default."""
    older, newer = mine(REST), mine(field("a", ["string", "null"], default="default"), REST)
    assert newer.decode(older.encode('{"a":"sent"}'), writer=older.schema) == b'{"a":"sent"}'
    assert newer.decode(older.encode("{}"), writer=older.schema) == b'{"a":"default"}'


# Renames of a schema of a test's own.


def _read(older, newer, sent):
    """Read what the older format made of a text by the newer one, as values with exact numbers."""
    return exact(newer.decode(older.encode(sent), writer=older.schema))


_ROW = record(nullable("x", "long"), nullable("kept", "long"), name="Row")
_NEW_ROW = record(nullable("y", "long", aliases=["x"]), nullable("kept", "long"), name="Row")
_OLD = (
    nullable("was", "long"),
    nullable("named", array("string")),
    nullable("rows", array(_ROW)),
    nullable("byName", mapping("Row")),
    nullable("row", "Row"),
    nullable("either", "long", "string"),
)
_NEW = (
    nullable("now", "long", aliases=["was"]),
    nullable("names", array("string"), aliases=["named"]),
    nullable("lines", array(_NEW_ROW), aliases=["rows"]),
    nullable("by/name", mapping("Row")) | {"name": "by_name", "json": {"name": "by/name"}, "aliases": ["byName"]},
    nullable("row", "Row"),
    nullable("both", "long", "string", aliases=["either"]),
)


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        ('{"was":7}', '{"now":7}'),
        ('{"was":"7"}', '{"now":"7"}'),
        ('{"was":7.00}', '{"now":7.00}'),
        ('{"was":null}', '{"now":null}'),
        ("{}", "{}"),
        ('{"now":7}', '{"now":7}'),
        ('{"named":["a",1.0]}', '{"names":["a",1.0]}'),
        ('{"named":[]}', '{"names":[]}'),
        ('{"named":null}', '{"names":null}'),
        (
            '{"rows":[{"x":1},{"x":"2"},{"x":null,"z":3},{},{"y":4}]}',
            '{"lines":[{"y":1},{"y":"2"},{"y":null,"z":3},{},{"y":4}]}',
        ),
        ('{"byName":{"x":{"x":"1"},"was":{"kept":2}}}', '{"by/name":{"x":{"y":"1"},"was":{"kept":2}}}'),
        ('{"row":{"x":1.0,"kept":"2"}}', '{"row":{"y":1.0,"kept":"2"}}'),
        ('{"row":null}', '{"row":null}'),
        ('{"either":"7"}', '{"both":"7"}'),
        ('{"either":7.0}', '{"both":7.0}'),
        ('{"other":{"was":1,"x":[1.0]}}', '{"other":{"was":1,"x":[1.0]}}'),
    ],
)
def test_member_comes_back_as_sent_under_its_new_name(sent, read):
    """A scalar of another type, null, absence, an item, a row within: only the name is another one."""
    assert _read(mine(*_OLD), mine(*_NEW), sent) == exact(read)


@pytest.mark.parametrize(
    ("sent", "path", "name"),
    [
        ('{"was":1,"now":2}', "$.now", "now"),
        ('{"was":null,"now":2}', "$.was", "now"),
        ('{"was":"1","now":2}', "$.now", "now"),
        ('{"rows":[{},{"x":1,"y":2}]}', "$.rows[1].y", "y"),
        ('{"byName":{"a/b":{"x":1,"y":null}}}', '$.byName["a/b"].y', "y"),
        ('{"row":{"x":1,"y":2}}', "$.row.y", "y"),
    ],
)
def test_new_name_that_another_member_has_is_refused(sent, path, name):
    """One of two values would be lost."""
    older, newer = mine(*_OLD), mine(*_NEW)
    payload = older.encode(sent)
    with pytest.raises(PayloadError) as caught:
        newer.decode(payload, writer=older.schema)
    assert str(caught.value) == f"mine: {path}: expected a name that is free, got '{name}' twice"


def test_names_may_be_exchanged():
    """All members get their new names at once."""
    older = mine(nullable("a", "long"), nullable("b", "long"))
    swapped = [
        nullable("first", "long", aliases=["a"]) | {"json": {"name": "b"}},
        nullable("second", "long", aliases=["b"]) | {"json": {"name": "a"}},
    ]
    assert _read(older, mine(*swapped), '{"a":1,"b":"2"}') == exact('{"b":1,"a":"2"}')


def test_json_name_is_what_is_renamed():
    """A field renamed under the same JSON name changes no message; another JSON name does."""
    older = mine(nullable("a", "long") | {"json": {"name": "x-y"}})
    same = mine(nullable("b", "long", aliases=["a"]) | {"json": {"name": "x-y"}})
    other = mine(nullable("a", "long") | {"json": {"name": "z/~"}})
    assert _read(older, same, '{"x-y":"1"}') == exact('{"x-y":"1"}')
    assert _read(older, other, '{"x-y":"1"}') == exact('{"z/~":"1"}')


def test_members_that_the_newer_schema_dropped_are_kept():
    """A Canal schema of the type alone reads all that the present one wrote."""
    schema = json.loads(_CANAL)
    schema["fields"] = [one for one in schema["fields"] if one["name"] in ("type", "extras")]
    canal, bare = Format("oms_canal"), Format("oms_canal", given=parse_schema(json.dumps(schema)))
    for message in _canal_messages():
        assert _read(canal, bare, message) == exact(message)


def test_dropped_members_of_every_type_are_kept():
    """Under their own JSON names, however deep, with all that departed from their types."""
    dropped = record(
        nullable("e", enum("A") | {"json": {"other": "A"}}) | {"json": {"name": "e-e"}},
        nullable("m", mapping(["null", "boolean"])),
        REST,
        name="D",
    )
    older, newer = mine(nullable("d", array(dropped)), nullable("a", "int")), mine(nullable("a", "int"))
    sent = '{"d":[{"e-e":"B","m":{"x":true,"y":null},"z":"1"},{"e-e":null}],"a":7}'
    assert _read(older, newer, sent) == exact(sent)


@pytest.mark.parametrize("sent", ['{"was":null,"a":null}', "{}", '{"was":1,"a":2}'])
@pytest.mark.parametrize("conventions", [("null", "absent"), ("absent", "null"), ("null", "null")])
def test_null_and_absence_are_told_by_the_writers_convention(conventions, sent):
    """What the newer schema says is usual was not so when the payload was written."""
    before, after = conventions
    older = mine(nullable("was", "long", missing=before), nullable("a", "long", missing=before))
    newer = mine(nullable("now", "long", missing=after, aliases=["was"]), nullable("a", "long", missing=after))
    assert _read(older, newer, sent) == exact(sent.replace('"was"', '"now"'))


def test_new_member_without_a_value_is_as_the_newer_convention_has_it():
    """The default null is written where null is usual, and left out where absence is."""
    older = mine(nullable("a", "long"))
    assert _read(older, mine(nullable("b", "long", missing="null")), "{}") == {"b": None}
    assert _read(older, mine(nullable("b", "long", missing="absent")), "{}") == {}


def test_default_does_not_take_a_members_place():
    """A member that no older field named is that member, whatever its value."""
    older, newer = mine(nullable("a", "long")), mine(field("b", ["long", "null"], default=5))
    assert _read(older, newer, '{"b":null}') == {"b": None}
    assert _read(older, newer, '{"b":[1.0]}') == exact('{"b":[1.0]}')


def test_default_of_a_record_has_json_names():
    """A default is stated by field names and filled in as a message has it, with absence where that is usual."""
    inner = record(
        field("x_y", ["long", "null"], default=1, json={"name": "x-y"}),
        nullable("gone", "long"),
        nullable("nil", "long", missing="null"),
        REST,
        name="D",
    )
    newer = mine(field("b", [inner, "null"], default={"rest": {"z": None}}))
    assert _read(mine(), newer, "{}") == exact('{"b":{"x-y":1,"nil":null,"z":null}}')


def test_nothing_renamed_is_no_work():
    """Promotions, dropped members and new nulls that are left out need no second look at a message."""
    old = _type(record(nullable("a", "int"), nullable("b", array("int")), EXTRAS))
    new = _type(record(nullable("a", "long"), nullable("c", "int"), EXTRAS))
    assert renames_of(resolve(old, new)) is None


def test_renames_in_two_branches_of_a_union_are_refused():
    """JSON does not say which of the two records a value is."""
    first, other = (record(nullable("a", "int"), name=name) for name in "AB")
    new_first, new_other = (record(nullable("b", "int", aliases=["a"]), name=name) for name in "AB")
    step = resolve(_type([first, other]), _type([new_first, new_other]))
    assert isinstance(step, ReadUnion)
    with pytest.raises(SchemaError) as caught:
        renames_of(step)
    assert str(caught.value) == "schema $: renames in several branches of a union"
    assert renames_of(resolve(_type([first, other]), _type([new_first, other]))) is not None


def test_two_old_members_of_one_new_member_are_refused():
    """Before any payload is read."""
    older = mine(nullable("a", "long"), nullable("b", "long"))
    newer = mine(nullable("c", "long", aliases=["a", "b"]))
    sentence = "schema $.b: c reads another field already"
    assert error_of(lambda: newer.decode(b"", writer=older.schema)) == sentence


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ([field("a", "int")], "schema a: a field is either nullable or required"),
        ([nullable("a", "bytes")], "schema /a: a wire schema holds no bytes"),
        (
            [nullable("a", record(field("was", "string"), name="N") | {"json": {"holds": "number"}})],
            "schema N: json.holds belongs to a record with the one string field text",
        ),
    ],
)
def test_writer_that_is_no_wire_schema_is_refused(fields, sentence):
    """A payload is read by its writer's schema, attributes and all."""
    writer = parse_schema(json.dumps(record(*fields, EXTRAS, name="M")))
    assert error_of(lambda: mine().decode(b"", writer=writer)) == sentence


def test_writers_number_that_is_not_finite_is_refused():
    """JSON has no infinity, whoever wrote it."""
    writer = parse_schema(json.dumps(record(required("a", "double"), EXTRAS, name="M")))
    out = io.BytesIO()
    fastavro.schemaless_writer(out, json.loads(writer.json), {"a": float("inf"), "extras": {}})
    sentence = "mine: $.a: expected a JSON number, got inf at byte 0"
    assert error_of(lambda: mine().decode(out.getvalue(), writer=writer)) == sentence

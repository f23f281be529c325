"""The facts of `debezium_flat`: Debezium's rows without their envelope."""

from __future__ import annotations

import json
from base64 import b64encode
from random import Random

import pytest

import cdcavro
from cdcavro.change import Arrival
from cdcavro.change.model import Change, Source, replace
from cdcavro.change.order import in_order
from cdcavro.change.order_value import order_kind, order_value
from cdcavro.engine.machine import COMPILED
from cdcavro.errors import CdcAvroError, StructureError
from cdcavro.exact.jsontext import render
from cdcavro.formats import BRIDGES
from cdcavro.table.columns.column_type import TypeOverrides
from cdcavro.table.tables import Tables
from cdcavro.table.writing.message_typer import MessageTyper
from cdcavro.transcoding.mapping import from_changes, to_changes
from cdcavro.wire.formats import get_format
from cdcavro.wire.sniff import fitting_formats
from support.messages import golden_files
from support.mutations import mutated
from support.roundtrip import assert_fast, assert_golden, assert_round_trip, avro, error_of, exact, golden_cases

FORMAT = "debezium_flat"
SCHEMA = {
    "type": "struct",
    "fields": [
        {"type": "int32", "optional": False, "field": "id"},
        {"type": "int32", "optional": True, "name": "io.debezium.time.Date", "field": "day"},
        {"type": "string", "optional": True, "field": "__op"},
    ],
}


def message(**members: object) -> str:
    """Return a row of a table with other members."""
    return json.dumps({"id": 1, "__op": "u", "__table": "t", "__db": "d"} | members, separators=(",", ":"))


def change(text: str | dict) -> Change:
    """Return the change of a message."""
    (found,) = to_changes(text if isinstance(text, str) else json.dumps(text), FORMAT)
    return found


@pytest.mark.parametrize("golden", golden_cases(FORMAT))
def test_golden_message_round_trips_and_is_told(golden):
    """Every sample comes back as it was sent, by the engine, and is told from other formats."""
    assert_golden(FORMAT, golden)
    assert_fast(FORMAT, golden)


def test_columns_are_all_members_that_the_schema_does_not_name():
    """Their digits come back, and so do those that are called like a field of the schema that is no member."""
    text = '{"key":"a","value":"b","columns":1.20,"extras":"x","__other":-0,"__op":"c"}'
    made = avro(FORMAT, text)
    assert made["columns"].keys() == {"key", "value", "columns", "extras", "__other"}
    assert (made["__op"], made["extras"]) == ("c", {})


@pytest.mark.parametrize(
    "text",
    [
        '{"id":1}',
        "{}",
        '{"topic":"p.d.t","key":{"id":1},"value":null}',
        '{"topic":"p.d.t","key":{"id":1},"value":{"id":1,"__op":"u"}}',
        '{"schema":null,"payload":{"id":1.20}}',
        '{"ts_ms":1}',
        '{"before":null,"after":{"id":1},"source":{"connector":"mysql"},"op":"c"}',
        '{"id":1,"__deleted":true}',
        '{"id":1,"__op":null,"__lsn":"7","__scn":12}',
    ],
)
def test_what_is_not_told_comes_back_when_the_format_is_named(text):
    """Also what the transform passed by; from its changes, too."""
    assert_round_trip(FORMAT, text)
    assert [exact(back) for back in from_changes(to_changes(text, FORMAT), FORMAT)] == [exact(text)]


@pytest.mark.parametrize(
    "around",
    [
        "%s",
        '{"topic":"t","key":null,"value":%s}',
        '{"schema":null,"payload":%s}',
        '{"value":{"schema":{},"payload":%s}}',
    ],
)
@pytest.mark.parametrize("name", ["__op", "__deleted", "__table", "__lsn", "__source_ts_ms", "__change_lsn"])
def test_a_member_that_the_transform_adds_tells_the_format(name, around):
    """Whatever the columns are called: those of other formats are no members here."""
    columns = {"type": "INSERT", "database": "d", "table": "t", "id": 1, "sql": "x", "recordType": "INSERT", "op": "c"}
    assert list(fitting_formats(around % json.dumps(columns | {name: None}))) == [FORMAT]


@pytest.mark.parametrize("format", [one for one in cdcavro.FORMATS if one != FORMAT])
def test_no_message_of_another_format_is_told_as_this_one(format):
    """Nor is a row without any of these members."""
    for golden in golden_files(format).values():
        assert FORMAT not in fitting_formats(golden)
    assert error_of(cdcavro.sniff, '{"id":1,"name":"x"}').endswith("got an object with 'id', 'name'")


@pytest.mark.parametrize(
    ("members", "op", "operation"),
    [
        ({"__op": "c"}, "INSERT", "c"),
        ({"__op": "u", "__deleted": "false"}, "UPDATE", "u"),
        ({"__op": "r"}, "SNAPSHOT", "r"),
        ({"__op": "d"}, "DELETE", "d"),
        ({"__op": "d", "__deleted": "true"}, "DELETE", "d"),
        ({"__deleted": "true"}, "DELETE", "true"),
        ({"__deleted": "false"}, "UPDATE", "false"),
        ({"__op": None, "__deleted": None}, "UPDATE", None),
        ({}, "UPDATE", None),
        ({"__op": "m"}, "OTHER", "m"),
    ],
)
def test_the_operation_is_stated_by_one_of_two_members(members, op, operation):
    """Without the first an insert cannot be told from an update; the row of a delete is the one before it."""
    found = change({"id": 1, **members})
    assert (found.op, found.operation) == (op, operation)
    assert (found.before, found.after) == (({"id": 1}, None) if op == "DELETE" else (None, {"id": 1}))
    assert found.snapshot is (False if op == "SNAPSHOT" else None)


@pytest.mark.parametrize(("op", "deleted"), [("d", "false"), ("u", "true"), ("c", "true")])
def test_members_that_disagree_are_refused(op, deleted):
    """One of them would be lost."""
    sentence = f"debezium_flat: $.__deleted: expected what agrees with {op}, got {deleted}"
    assert error_of(change, {"id": 1, "__op": op, "__deleted": deleted}) == sentence
    wrapped = {"schema": None, "payload": {"id": 1, "__op": op, "__deleted": deleted}}
    assert error_of(change, wrapped) == sentence.replace("$.", "$.payload.")


def test_a_truncate_has_no_row():
    """As with all that is no change of a row."""
    assert change({"__op": "t", "__table": "t"}).op == "TRUNCATE"
    assert error_of(change, {"__op": "t", "id": 1}) == "debezium_flat: $: expected no row for t, got some"


@pytest.mark.parametrize(
    ("members", "position"),
    [
        ({"__lsn": 7, "__source_ts_ms": 5}, (7,)),
        ({"__lsn": 7, "__sequence": '["3","7"]'}, (3, 7)),
        ({"__file": "b.000002", "__pos": 4, "__row": 1}, (2, 4, 1)),
        ({"__file": "b.000002", "__pos": 4}, (2, 4, 0)),
        ({"__scn": "9", "__source_ts_ms": 5}, (9, 9, 0)),
        ({"__scn": "9", "__commit_scn": 11, "__ssn": 2}, (11, 9, 2)),
        ({"__change_lsn": "00000001:00000002:0003", "__event_serial_no": 2}, (1, 2, 3, 1, 2, 3, 2)),
        (
            {"__change_lsn": "00000001:00000002:0003", "__commit_lsn": "00000001:00000002:0004"},
            (1, 2, 4, 1, 2, 3, 0),
        ),
        ({"__source_ts_ms": 5, "__ts_ms": 7}, (5,)),
        ({"__source_ts_ns": 5_000_900, "__source_ts_ms": 5}, (5,)),
        ({"__ts_ms": 7}, ()),
        ({"__file": "b.000002", "__source_ts_ms": -1}, ()),
    ],
)
def test_the_position_is_made_of_what_was_added(members, position):
    """The numbers of the connector, else the time of the change; the time at which it was handled is none."""
    assert change({"id": 1, **members}).position == position


@pytest.mark.parametrize(
    ("members", "micros"),
    [
        ({"__source_ts_ms": 5}, 5_000),
        ({"__source_ts_ms": 5, "__source_ts_us": 5_001}, 5_001),
        ({"__source_ts_ms": 5, "__source_ts_us": 5_001, "__source_ts_ns": 5_002_999}, 5_002),
        ({"__ts_ms": 5}, None),
    ],
)
def test_the_time_is_the_finest_of_the_source(members, micros):
    """The time at which Debezium handled the change is another one."""
    assert change({"id": 1, **members}).event_time == micros


def test_arrival_orders_the_changes_of_a_row():
    """A record without a value has no numbers, and would else have no place among changes with numbers."""
    texts = [message(__lsn=9), '{"topic":"p.d.t","key":{"id":1},"value":null}', message(__op="r"), message(__lsn=8)]
    changes = [
        replace(change(text), place=Arrival(topic="p.d.t", partition=0, offset=offset))
        for offset, text in enumerate(texts)
    ]
    assert in_order(reversed(changes)) == changes
    assert {order_kind(order_value(one)) for one in changes} == {"a place that says the order"}
    assert [one.position for one in changes] == [(9,), (), (), (8,)]


@pytest.mark.parametrize("key", [{"id": 7}, {"schema": {"type": "struct"}, "payload": {"id": 7}}])
def test_a_record_without_a_value_deletes_the_row_of_its_key(key):
    """With an object as its key; any other is a row of columns that are called so."""
    found = change({"topic": "p.d.t", "partition": 2, "offset": 5, "key": key, "value": None})
    assert (found.op, found.key, found.before, found.after) == ("DELETE", ("id",), {"id": 7}, None)
    assert found.place == Arrival(topic="p.d.t", partition=2, offset=5)
    for row in ({"key": 7, "value": None}, {"key": {"id": 7}, "value": None, "id": 7}):
        assert change(row).after == row


@pytest.mark.parametrize("key", [{"id": 1}, {"schema": {}, "payload": {"id": 1}}])
def test_the_key_is_that_of_the_record(key):
    """If the row has its values; another one is refused."""
    assert change({"topic": "t", "key": key, "value": {"id": 1, "__op": "c"}}).key == ("id",)
    with pytest.raises(StructureError, match=r"key.*id: expected the value of the row, '2', got '1'"):
        change({"topic": "t", "key": key, "value": {"id": 2, "__op": "c"}})
    assert change({"id": 1, "__op": "c"}).key is None


def test_a_row_beside_its_schema_is_read_by_it():
    """Its columns have types, and the members beside them are none."""
    text = json.dumps({"schema": SCHEMA, "payload": {"id": 1, "day": 19_000, "__op": "c"}})
    found = change(text)
    assert found.after == {"id": 1, "day": "2022-01-08"}
    assert [(one.name, one.type) for one in found.columns] == [("id", "int32"), ("day", "io.debezium.time.Date")]
    assert [exact(back) for back in from_changes([found], FORMAT)] == [exact(text)]
    bare = {"payload": {"id": 1, "day": 19_000, "__op": "c"}}
    (back,) = from_changes([replace(found, members={"/schema": ""})], FORMAT)
    assert json.loads(back) == bare


def test_a_table_may_have_columns_called_schema_and_payload():
    """They are the wrapping only if the second is an object."""
    for row in ({"schema": "x", "payload": "y"}, {"schema": {"a": 1}, "payload": {"b": 1}, "id": 1}):
        assert change(row).after == row


@pytest.mark.parametrize("around", ["%s", '{"schema":null,"payload":%s}', '{"value":%s}'])
def test_a_column_without_a_value_is_not_in_the_row(around):
    """A placeholder stands for it, as in the envelope; a column that is called like a wrapper may have one, too."""
    text = around % message(schema="__debezium_unavailable_value")
    found = change(text)
    assert (found.after, found.unavailable) == ({"id": 1}, ("schema",))
    assert [exact(back) for back in from_changes([found], FORMAT)] == [exact(text)]
    enveloped = '{"before":null,"after":{"id":1,"x":"__debezium_unavailable_value"},"source":{},"op":"u"}'
    assert change(enveloped).unavailable == ("x",)


@pytest.mark.parametrize(
    ("text", "op"),
    [
        ('{"ts_ms":1}', "HEARTBEAT"),
        ('{"status":"BEGIN","id":"1","event_count":null,"data_collections":null,"ts_ms":1}', "TRANSACTION_BEGIN"),
        ('{"source":{},"ts_ms":1,"databaseName":"d","ddl":"CREATE TABLE t (id INT)","tableChanges":[]}', "CREATE"),
        ('{"before":null,"after":{"id":1},"source":{"table":"t"},"op":"c"}', "INSERT"),
        ('{"schema":{},"payload":{"before":{"id":1},"after":null,"source":{"table":"t"},"op":"d"}}', "DELETE"),
    ],
)
def test_what_the_transform_passed_by_is_read_as_it_is(text, op):
    """A row that is like one of these is a row: its table would need all of their columns."""
    found = change(text)
    assert (found.op, found.source.format) == (op, FORMAT)
    for row in ({"id": 1, "ts_ms": 1}, {"status": "BEGIN", "id": "1"}, {"op": "c", "source": "x"}):
        assert change(row).after == row


def test_a_change_of_another_format_is_written():
    """With both members of the operation; a column that is called like a member has no place."""
    source = Source(database="d", schema="s", table="t")
    row = Change(op="INSERT", source=source, after={"a": 1, "__op": 2}, event_time=5_000, system_time=7_000)
    (text,) = from_changes([row], FORMAT)
    head = {"a": 1, "__op": "c", "__deleted": "false", "__table": "t", "__db": "d", "__schema": "s"}
    assert json.loads(text) == head | {"__ts_ms": 7, "__source_ts_ms": 5}
    (text,) = from_changes([replace(row, op="DELETE", before={"a": 1}, after=None)], FORMAT)
    assert json.loads(text)["__deleted"] == "true"
    assert from_changes([Change(op="HEARTBEAT")], FORMAT) == []


ROWS = [
    message(name="x", n=1.5, __lsn=7, __source_ts_ms=1_700_000_001_000),
    message(name=None, n=2, __lsn=8, __source_ts_ms=1_700_000_001_000, __op="c"),
    message(name="y", n=2, __op="d", __deleted="true"),
    message(name="y", n=2, __op=None),
    message(name="y", n=2, __file="b.000002", __pos=4, __row=0, __ts_ms=5),
    message(name="z", n=0, __op="r", __source_ts_us=1_700_000_001_000_500),
    message(name="z", n=0, __scn="12", __commit_scn="13", __ssn=1, __op=None, __deleted="false"),
]


def typer_of_rows() -> MessageTyper:
    """Return a typer that has typed each of the rows twice."""
    given = TypeOverrides.from_mapping({"d.t": {"id": "INT", "name": "VARCHAR(9)", "n": "DOUBLE"}})
    typer = MessageTyper(FORMAT, Tables(given=given))
    for text in (*ROWS, *ROWS):
        typer.add(text, Arrival(file="f", line=1))
    return typer


@pytest.mark.skipif(not COMPILED, reason="where nothing is compiled, all goes the exact way")
def test_the_engine_types_all_rows():
    """Also those that say nothing of a place in the order."""
    typer = typer_of_rows()
    assert [typer.type_by_pattern(text.encode()) is not None for text in ROWS] == [True] * len(ROWS)


@pytest.mark.skipif(not COMPILED, reason="where nothing is compiled, all goes the exact way")
def test_the_engine_types_as_the_exact_way_does():
    """Also messages that were damaged: they have the same rows, or are left."""
    typer, random, typed = typer_of_rows(), Random(32), 0
    tables = typer._tables
    for _ in range(3000):
        text = mutated(random, random.choice(ROWS).encode())
        rows = typer.type_by_pattern(text)
        if rows is not None:
            exact_rows = [one for found in to_changes(text, FORMAT, members=False) for one in tables.add(found)]
            assert [(row.key, row.payload) for row in rows] == [(one.key, one.payload) for one in exact_rows]
            typed += 1
    assert typed > 100


@pytest.mark.parametrize("before", [{"id": 1, "a": 1, "b": None}, {"a": 1}, None])
def test_an_update_of_another_format_has_its_whole_row(before):
    """Not the columns that it changed only."""
    row = {"id": 1, "a": 2, "b": None}
    update = Change(op="UPDATE", before=before, after=row, changed=("a",), source=Source(database="d", table="t"))
    (record,) = from_changes([update], FORMAT)
    assert {name: value for name, value in json.loads(record).items() if not name.startswith("__")} == row


@pytest.mark.parametrize(
    ("more", "got"),
    [
        ({"key": None, "value": None}, "none"),
        ({"key": "1", "value": None}, "'1'"),
        ({"value": None}, "none"),
        ({"key": {"id": 1}}, "\"{'id': 1}\""),
    ],
)
def test_a_record_without_a_value_and_a_key_is_no_row(more, got):
    """Its members would be columns."""
    expected = f"key: expected an object as the key of a Kafka record without a value, got {got}$"
    with pytest.raises(StructureError, match=expected):
        change({"topic": "srv.d.t", "partition": 0, "offset": 3} | more)
    assert change({"key": "a", "value": None}).after == {"key": "a", "value": None}


@pytest.mark.parametrize("is_wrapped", [True, False])
def test_the_key_of_a_record_is_read_by_the_schema_of_its_row(is_wrapped: bool):
    """A decimal is bytes in both, and a number in the change."""
    decimal = {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "parameters": {"scale": "2"}}
    schema = {"type": "struct", "fields": [{**decimal, "field": "id"}]}
    key = {"schema": schema, "payload": {"id": "AMg="}} if is_wrapped else {"id": "AMg="}
    record = {"topic": "t", "key": key, "value": {"schema": schema, "payload": {"id": "AMg="}}}
    (change,) = cdcavro.to_changes(json.dumps(record), FORMAT)
    assert (change.key, change.after["id"].text) == (("id",), "2.00")
    other = {**record, "key": {"id": "AMk="}}
    with pytest.raises(StructureError, match=r"key.id: expected the value of the row, '2.00', got '2.01'"):
        cdcavro.to_changes(json.dumps(other), FORMAT)


HEADERS = {"__op": "u", "__db": "d", "__table": "t", "__lsn": 77, "__source_ts_ms": 1_700_000_001_000}


def headed(value: object, headers: object, **more: object) -> dict:
    """Return a Kafka record with headers."""
    return {"topic": "p.d.t", "key": {"id": 1}, **more, "headers": headers, "value": value}


def in_turn(members: dict[str, object]) -> list[str | None]:
    """Return members as names and texts in turn."""
    return [part for name, value in members.items() for part in (name, None if value is None else str(value))]


def in_json(members: dict[str, object], *, with_schema: bool = False) -> list[dict[str, str]]:
    """Return members as Kafka Connect's JSON converter writes them, in base64 as Spark does."""
    values = {
        name: json.dumps({"schema": {"type": "any"}, "payload": value} if with_schema else value)
        for name, value in members.items()
    }
    return [{"key": name, "value": b64encode(text.encode()).decode()} for name, text in values.items()]


@pytest.mark.parametrize("around", ["alone", "schema"])
@pytest.mark.parametrize("form", ["text", "json", "schema"])
def test_headers_state_what_members_of_their_names_do(form: str, around: str):
    """Whichever converter wrote them, beside others and beside a row with its schema; all comes back."""
    headers = in_turn(HEADERS) if form == "text" else in_json(HEADERS, with_schema=form == "schema")
    other = ["trace", "\xff"] if form == "text" else [{"key": "trace", "value": "/w=="}]
    row = {"id": 1, "a": 1.5}
    values = [one if around == "alone" else {"schema": SCHEMA, "payload": one} for one in (row, row | HEADERS)]
    record = headed(values[0], headers + other)
    found, wanted = change(record), change(headed(values[1], None))
    assert replace(found, members=None) == replace(wanted, members=None)
    assert (found.op, found.source.table, found.position, found.event_time) == (
        "UPDATE",
        "t",
        (77,),
        1_700_000_001_000_000,
    )
    assert_round_trip(FORMAT, json.dumps(record))
    assert [exact(back) for back in from_changes([found], FORMAT)] == [exact(json.dumps(record))]


def test_a_header_and_a_member_state_the_same_or_the_record_is_refused():
    """The error names both; null is a value, and a number may be a text of it."""
    assert change(headed({"id": 1, "__op": "u"}, ["__op", "u"])).op == "UPDATE"
    assert change(headed({"id": 1, "__scn": 12}, ["__scn", "12"])).position == (12, 12, 0)
    expected = "expected what the header __op says, '\"u\"', got"
    assert (
        error_of(change, headed({"id": 1, "__op": "c"}, ["__op", "u"])) == f"{FORMAT}: $.value.__op: {expected} '\"c\"'"
    )
    wrapped = headed({"schema": None, "payload": {"id": 1, "__op": None}}, ["__op", "u"])
    assert error_of(change, wrapped) == f"{FORMAT}: $.value.payload.__op: {expected} 'null'"


@pytest.mark.parametrize(
    ("headers", "error"),
    [
        (["__op", "u", "__op", '"c"'], "$.headers.__op: expected one value of the header, '\"u\"', got also '\"c\"'"),
        (["__lsn", "x"], "$.headers.__lsn: expected a whole number in the header, got 'x'"),
        (["__lsn", '"7"'], "$.headers.__lsn: expected a whole number in the header, got '\"7\"'"),
        (["__lsn", "1e3"], "$.headers.__lsn: expected a whole number in the header, got '1e3'"),
        (["__lsn", "9" * 30], f"$.headers.__lsn: expected a whole number in the header, got '{'9' * 30}'"),
        (["__op", '{"schema":null,"payload":{}}'], "$.headers.__op: expected a text in the header, got"),
        ([{"key": "__op", "value": "/w=="}], "$.headers.__op: expected text in UTF-8 in the header, got"),
        ([{"key": "__op", "value": "AAAAAAUCdQ=="}], "$.headers.__op: expected text or JSON in the header, got"),
        ([{"key": "__op", "value": "u"}], "$.headers.__op: expected base64, got 'u'"),
        ({"__op": "u"}, "$.headers: expected a list of objects with key and value, or of names and texts in turn, got"),
        (["__op"], "$.headers: expected a list of objects with key and value, or of names and texts in turn, got"),
        (["a", "b"] * 10_000 + ["__lsn", "x"], "$.headers.__lsn: expected a whole number in the header, got 'x'"),
    ],
)
def test_headers_that_state_nothing_are_refused(headers: object, error: str):
    """With their place; those of other names may be anything, and there may be any number of them."""
    assert error_of(change, headed({"id": 1}, headers)).startswith(f"{FORMAT}: {error}")
    assert error_of(change, headed(None, headers)).startswith(f"{FORMAT}: {error}")


def test_the_same_header_may_come_again_and_say_nothing():
    """As a mirror may repeat it; without a value it is a member without one."""
    assert change(headed({"id": 1}, ["__op", "c", "__op", '"c"', "__lsn", None, "x", None])).op == "INSERT"
    assert change(headed({"id": 1}, ["__table", "null"])).source.table is None
    assert change(headed({"id": 1}, [])).operation is change(headed({"id": 1}, None)).operation is None


@pytest.mark.parametrize("value", ["plain text", 5, {"a": 1}])
def test_the_value_of_a_header_that_is_not_read_may_be_anything(value: object):
    """As tools write it that do not know base64: nothing of it is wanted."""
    headers = [{"key": "trace", "value": value}, {"key": "__op", "value": "ZA=="}]
    assert change(headed({"id": 1}, headers)).op == change(headed(None, headers)).op == "DELETE"


def test_a_record_without_a_value_is_a_delete_with_what_its_headers_state():
    """Its table, its time and its place; another operation contradicts it."""
    headers = in_turn(HEADERS | {"__op": "d"})
    record = headed(None, headers)
    found = change(record)
    assert (found.op, found.key, found.before, found.after) == ("DELETE", ("id",), {"id": 1}, None)
    assert (found.source.table, found.source.database, found.position) == ("t", "d", (77,))
    assert [exact(back) for back in from_changes([found], FORMAT)] == [exact(json.dumps(record))]
    assert change(headed(None, headers[2:])).op == "DELETE"
    for name, word in (("__op", "u"), ("__op", "t"), ("__deleted", "false")):
        expected = f"$.headers.{name}: expected d in the header of a Kafka record without a value, got '{word}'"
        assert error_of(change, headed(None, [name, word])) == f"{FORMAT}: {expected}"


def test_a_truncate_has_neither_key_nor_value():
    """Its headers tell it; another record of that kind is no message."""
    found = change(headed(None, in_turn(HEADERS | {"__op": "t"}), key=None))
    assert (found.op, found.source.table, found.position, found.key) == ("TRUNCATE", "t", (77,), None)
    error = "$.key: expected an object as the key of a Kafka record without a value, got none"
    for op in ("d", "u"):
        assert error_of(change, headed(None, ["__op", op], key=None)) == f"{FORMAT}: {error}"


def test_what_has_another_prefix_is_a_column_or_not_read():
    """As the page says, with what it renames: nothing tells it from the table's own."""
    row = {"id": 1, "a": 2}
    own = change({**row, "x_op": "d", "x_deleted": "true"})
    assert (own.op, own.after, own.source.table) == ("UPDATE", {**row, "x_op": "d", "x_deleted": "true"}, None)
    headers = ["y_op", "d", "y_table", "t", "y_source_ts_ms", "1700000001000"]
    own = change({"topic": "srv.d.t", "headers": headers, "key": {"id": 1}, "value": None})
    assert (own.op, own.before, own.source.table, own.position) == ("DELETE", {"id": 1}, None, ())
    own = change({"topic": "srv.d.t", "headers": headers, "key": {"id": 1}, "value": row})
    assert (own.op, own.after, own.source.table) == ("UPDATE", row, None)
    renamed = {"__op": "c", "__table": "t", "__source_ts_ms": 1_700_000_001_000}
    own = change({"topic": "srv.d.t", "headers": headers, "key": {"id": 1}, "value": {**row, **renamed}})
    assert (own.op, own.after, own.source.table, own.position) == ("INSERT", row, "t", (1_700_000_001_000,))


def test_what_the_transform_passed_by_is_read_without_headers():
    """It adds none to it, and members would make another message of it."""
    assert change(headed({"ts_ms": 1}, in_turn(HEADERS), key=None)).op == "HEARTBEAT"
    enveloped = {"before": None, "after": {"id": 1}, "source": {"table": "x"}, "op": "c"}
    assert change(headed(enveloped, in_turn(HEADERS))).source.table == "x"


SPLICED = [
    '{"id":1,"a":"x"}',
    '{"id":1,"a":{"b":[1]},"schema":"s"}',
    '{"schema":{"a":"}"},"payload":{"id":1}}',
    '{"schema":null,"payload":{"id":1,"__op":"u"}}',
    '{"payload":{"id":1},"schema":null}',
    '{"schema":1,"payload":"x"}',
    '{"ts_ms":1}',
    '{"id":1,"__op":"u"}',
    '{"\\u005f_op":"u","id":1}',
    '{"op":"c","source":{"connector":"mysql"},"after":{"id":1}}',
    "{}",
    '{"id":1}  ',
    '{"id":1,}',
    '{"id":"x}',
    '{"id":[1}',
]


def test_members_behind_those_of_a_row_are_the_members_of_headers():
    """In the text: what is taken means the same, and nothing that is no message becomes one, also if it was damaged."""
    random, taken = Random(32), 0
    texts = [*map(str.encode, SPLICED), *(mutated(random, random.choice(SPLICED).encode()) for _ in range(3000))]
    for text in texts:
        spliced = BRIDGES[FORMAT].splice_members(text, HEADERS)
        if spliced is None:
            continue
        taken += 1
        try:
            row = get_format(FORMAT).parse(text)
        except CdcAvroError:
            with pytest.raises(CdcAvroError):
                get_format(FORMAT).parse(spliced)
            continue
        assert exact(spliced) == exact(render(BRIDGES[FORMAT].add_members(row, HEADERS)))
    assert taken > 300
    assert BRIDGES[FORMAT].splice_members(SPLICED[0].encode(), {}) == SPLICED[0].encode()
    assert [BRIDGES[FORMAT].splice_members(one.encode(), HEADERS) is None for one in SPLICED[:12]] == [
        *[False] * 3,
        *[True] * 9,
    ]


def test_the_engine_leaves_a_record_with_headers():
    """A pattern that it has learned has none; the exact way reads them."""
    typer = MessageTyper(FORMAT, Tables())
    for text in (message(), json.dumps(headed({"id": 1}, in_turn(HEADERS)))):
        for _ in range(3):
            (row,) = typer.add(text)
            assert row.op == "UPDATE"
    other = json.dumps(headed({"id": 1, "__table": "t", "__db": "d"}, ["__op", "d"])).encode()
    assert typer.type_by_pattern(other) is None
    assert [row.op for row in typer.add(other)] == ["DELETE"]

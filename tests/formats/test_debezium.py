"""The facts of `debezium`: lines of Debezium's JSON, and the changes in them."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cdcavro
from cdcavro.change.model import Arrival, Change, Column, Source, replace
from cdcavro.change.order import is_full_load
from cdcavro.errors import StructureError
from cdcavro.exact.jsontext import render
from cdcavro.exact.numbers import ExactNumber
from cdcavro.formats.connect_messages import restore_values
from cdcavro.transcoding.mapping import from_changes, to_changes
from support.connect_types import TYPES, values
from support.messages import SAMPLES, shop_debezium
from support.roundtrip import assert_fast, assert_golden, assert_round_trip, avro, error_of, exact, left
from support.strategies import strings, texts

SHOP = shop_debezium()
GTID = "442ca0d1-e547-11f1-b3d5-02fc00000001"


def golden(name: str) -> bytes:
    """Return a golden message by its name."""
    return (SAMPLES / "debezium" / f"{name}.json").read_bytes()


def change(message: bytes | str) -> Change:
    """Return the change of a line, and assert that the line comes back from it, also through Avro."""
    (found,) = to_changes(message, "debezium")
    (back,) = from_changes([Change.from_avro(found.to_avro())], "debezium")
    assert exact(back) == exact(message)
    return found


def record(value: object, **members: object) -> str:
    """Write a Kafka record with a value."""
    return json.dumps({"topic": "t", **members, "value": value})


def envelope(op: str = "c", **members: object) -> dict[str, object]:
    """Return a value of a row change."""
    return {"before": None, "after": None, "source": {"connector": "mysql"}, "op": op} | members


# The wire.


@pytest.mark.parametrize("name", sorted(path.stem for path in (SAMPLES / "debezium").glob("*.json")))
def test_golden_message_round_trips_and_is_told(name):
    """Each shape of a line comes back as it was sent, from its change too, and is sniffed as Debezium's."""
    assert_golden("debezium", golden(name))
    change(golden(name))


def test_real_messages_round_trip():
    """All 229 messages that Debezium itself made of a MySQL binlog come back as they were sent, and are told."""
    assert len(SHOP) == 229
    for message in SHOP:
        assert_round_trip("debezium", message)
        assert cdcavro.sniff(message) == "debezium"
    assert left("debezium", SHOP) == []


@pytest.mark.parametrize(
    "message",
    [
        '{"topic":"t","key":null,"value":null}',
        '{"value":{"op":"c"}}',
        '{"op":"d","before":{}}',
        '{"schema":null,"payload":{"op":"r"}}',
        '{"ts_ms":1}',
        '{"status":"END","id":"1"}',
        '{"databaseName":"shop","ddl":""}',
        '{"value":{"schema":{},"payload":{"tableChanges":[]}}}',
    ],
)
def test_smallest_lines_are_told(message):
    """What tells the format, alone, in each shape."""
    assert cdcavro.sniff(message) == "debezium"
    change(message)


@pytest.mark.parametrize("sent", ['"false"', '"first_in_data_collection"', "true", "false"])
def test_snapshot_is_a_word_or_a_boolean(sent):
    """Old versions sent a boolean; both are typed."""
    line = f'{{"op":"r","source":{{"snapshot":{sent},"sequence":null,"table":null,"gtid":null,"thread":null,"query":null}}}}'
    found = avro("debezium", line)
    assert (found["source"]["snapshot"], found["extras"]) == (json.loads(sent), {})


@pytest.mark.parametrize("sent", ['"6.28.807"', "571"])
def test_a_transaction_id_is_a_number_or_text(sent):
    """PostgreSQL's and Oracle's."""
    assert avro("debezium", f'{{"op":"c","source":{{"txId":{sent}}}}}')["source"]["txId"] == json.loads(sent)


@pytest.mark.parametrize("op", ["x", "", "cc", "OTHER"])
def test_unknown_operation_is_kept(op):
    """It reads as OTHER, on the wire and as a change, and comes back as it was spelled."""
    line = json.dumps({"op": op})
    assert avro("debezium", line)["op"] == "OTHER"
    assert (change(line).op, change(line).operation) == ("OTHER", op)


def test_an_embedded_schema_is_kept_as_it_is():
    """Its members are column values, objects and arrays among them as text."""
    found = avro("debezium", '{"schema":{"type":"struct","optional":false,"fields":[{"x":1.0}]},"payload":{"op":"c"}}')
    assert found["schema"] == {"type": "struct", "optional": False, "fields": {"text": '[{"x":1.0}]'}}
    assert found["payload"]["op"] == "c"


@pytest.mark.parametrize("name", ["{}", "[]", "7", "null"])
def test_fields_of_a_schema_whose_names_are_none_are_no_row_images(name):
    """A message may have anything where the name of a field should be; it has no columns then."""
    text = '{"schema":{"fields":[{"field":%s,"fields":[{"field":"id"}]}]},"payload":{"op":"c","after":{"id":1}}}'
    found = change(text % name)
    assert (found.op, found.columns) == ("INSERT", None)


@pytest.mark.parametrize("member", ["topic", "key", "value", "before", "source", "transaction", "schema", "payload"])
def test_null_and_absent_are_both_ordinary(member):
    """Whichever of them a line has comes back, without a slow path."""
    assert assert_fast("debezium", '{"op":"c"}') != assert_fast("debezium", f'{{"op":"c","{member}":null}}')


@pytest.mark.parametrize(
    ("sent", "sentence"),
    [
        ('{"value":5}', "debezium: $.value: expected object, got number"),
        ('{"key":"k","value":null}', "debezium: $.key: expected object, got string"),
        ('{"op":"c","after":5}', "debezium: $.after: expected object, got number"),
        ('{"op":"c","source":"{}"}', "debezium: $.source: expected object, got string"),
        ('{"op":"c","source":{"pos":"x"}}', "debezium: $.source.pos: expected long, got string 'x'"),
        ('{"op":{}}', "debezium: $.op: expected a symbol, got object"),
        ('{"tableChanges":[{"table":[]}]}', "debezium: $.tableChanges[0].table: expected object, got array"),
    ],
)
def test_structure_is_not_bent(sent, sentence):
    """What is not shaped like a line of Debezium's is refused with its place."""
    assert error_of(cdcavro.encode, sent, "debezium") == sentence


MONGODB = (
    '{"before":null,"after":"{\\"_id\\": {\\"$numberLong\\": \\"1004\\"},\\"x\\": 1.0}","updateDescription":'
    '{"removedFields":["y"],"updatedFields":"{\\"x\\": 1.0}","truncatedArrays":null},"source":{"connector":"mongodb",'
    '"ts_ms":1,"db":"d","rs":"rs0","collection":"c","ord":1,"lsid":null,"txnNumber":null},"op":"u","ts_ms":2}'
)


@pytest.mark.parametrize(
    "shape", ["%s", '{"key":{"id":"1"},"value":%s}', '{"schema":null,"payload":%s}', '{"value":{"payload":%s}}']
)
def test_changes_in_mongodb_are_messages_whose_documents_are_text(shape):
    """They are told and come back as they came, but hold no rows; a deletion has no document and is none either."""
    for message in (MONGODB, MONGODB.replace('"op":"u"', '"op":"d"').replace('"after":"', '"after":null,"x":"')):
        line = shape % message
        assert cdcavro.sniff(line) == "debezium"
        payload = cdcavro.encode(line, "debezium")
        assert json.loads(cdcavro.decode(payload, "debezium")) == json.loads(line)
        sentence = error_of(cdcavro.to_changes, line, "debezium")
        reasons = (
            "after: expected a row as an object of columns, got a document as text",
            "source.connector: expected a connector of tables, got mongodb, whose documents are no rows",
        )
        assert sentence.endswith(reasons[message is not MONGODB])


@pytest.mark.parametrize(
    "line", ['{"id":1,"name":"x"}', '{"ts_ms":1,"id":2,"name":"x"}', '{"value":{"payload":{"n":1}}}']
)
def test_what_may_be_a_row_without_its_envelope_is_refused(line):
    """It is a message, but of no known change."""
    assert json.loads(cdcavro.decode(cdcavro.encode(line, "debezium"), "debezium")) == json.loads(line)
    sentence = error_of(cdcavro.to_changes, line, "debezium")
    assert "expected a change, a statement, a mark or a heartbeat of Debezium, with just its members" in sentence


KEYED = '{"key":%s,"value":{"op":"%s","before":%s,"after":%s,"source":{"db":"d","table":"t"}}}'


@pytest.mark.parametrize(
    ("key", "op", "before", "after", "place", "row", "got"),
    [
        ('{"id":2}', "c", "null", '{"id":1}', "$.key.id", "1", "2"),
        ('{"schema":{},"payload":{"id":2}}', "r", "null", '{"id":1}', "$.key.payload.id", "1", "2"),
        ('{"id":1}', "u", '{"id":1}', '{"id":2}', "$.key.id", "2", "1"),
        ('{"id":2}', "d", '{"id":1}', "null", "$.key.id", "1", "2"),
        ('{"id":"2"}', "c", "null", '{"id":1}', "$.key.id", "1", '"2"'),
        ('{"id":"a"}', "c", "null", '{"id":"b"}', "$.key.id", '"b"', '"a"'),
        ('{"a":1,"id":1.25}', "c", "null", '{"a":1,"id":1.5}', "$.key.id", "1.5", "1.25"),
    ],
)
def test_a_key_of_another_row_is_refused(key, op, before, after, place, row, got):
    """An update of the key is a delete with the old key and a create with the new one, so the two always agree."""
    sentence = f"debezium: {place}: expected the value of the row, {row!r}, got {got!r}"
    assert error_of(cdcavro.to_changes, KEYED % (key, op, before, after), "debezium") == sentence


@pytest.mark.parametrize(
    ("key", "row"),
    [
        ('{"id":1}', '{"id":1}'),
        ('{"id":"1"}', '{"id":1}'),
        ('{"id":1}', '{"id":"1"}'),
        ('{"id":"AkY="}', '{"id":5.82}'),
        ('{"id":1,"__dbz__physicalTableIdentifier":"s.d.t1"}', '{"id":1}'),
        ('{"id":[1]}', '{"id":[1]}'),
        ("null", '{"id":1}'),
    ],
)
@pytest.mark.parametrize("op", ["c", "d"])
def test_a_key_of_the_row_is_taken(key, row, op):
    """Spelled as a text or a number, or as its own converter sends it, and with what a transform adds."""
    images = ("null", row) if op == "c" else (row, "null")
    found = change(KEYED % (key, op, *images))
    assert found.key == tuple(json.loads(key) or ())


def test_a_row_beside_the_envelope_is_refused():
    """It belongs to no change and would be lost."""
    for line, place in (
        ('{"payload":{"op":"c","after":{"id":1}},"after":{"id":2}}', "$.after"),
        ('{"value":{"op":"c","after":{"id":1}},"before":{"id":2}}', "$.before"),
        ('{"value":{"payload":{"op":"c","after":{"id":1}},"after":{"id":2}}}', "$.value.after"),
        ('{"value":null,"after":{"id":2}}', "$.after"),
    ):
        sentence = f"debezium: {place}: expected no row beside the value or payload of a message, got some"
        assert error_of(cdcavro.to_changes, line, "debezium") == sentence


# The changes.


def test_a_row_change_has_every_fact_of_its_message():
    """The whole change, field by field."""
    found = change(golden("update-in-transaction"))
    members = found.members
    assert found == Change(
        op="UPDATE",
        operation="u",
        source=Source(format="debezium", db_type="mysql", database="shop", table="orders"),
        key=("id",),
        before={"id": 7, "amount": "AkY=", "note": "a"},
        after={"id": 7, "amount": "AkY=", "note": None},
        position=(3, 1234, 0),
        place=Arrival(topic="shop.shop.orders"),
        event_time=1_700_000_000_000_000,
        system_time=1_700_000_000_123_456,
        transaction=f"{GTID}:58",
        members=members,
    )
    assert "/value/transaction" in members
    assert not any(pointer.startswith(("/key", "/value/before", "/value/after")) for pointer in members)


def test_every_real_change_comes_back_and_is_of_its_kind():
    """All 229 messages, by kind."""
    assert Counter(change(message).op for message in SHOP) == {
        "INSERT": 90,
        "UPDATE": 63,
        "DELETE": 27,
        "TOMBSTONE": 27,
        "CREATE": 7,
        "ALTER": 7,
        "RENAME": 3,
        "ERASE": 2,
        "CINDEX": 1,
        "DINDEX": 1,
        "QUERY": 1,
    }


@pytest.mark.parametrize(
    ("name", "op", "operation"),
    [
        ("insert", "INSERT", "c"),
        ("update", "UPDATE", "u"),
        ("delete", "DELETE", "d"),
        ("snapshot-read", "SNAPSHOT", "r"),
        ("truncate", "TRUNCATE", "t"),
        ("postgresql-message", "OTHER", "m"),
        ("schema-change", "ALTER", None),
        ("schema-change-drop", "ERASE", None),
        ("transaction-begin", "TRANSACTION_BEGIN", "BEGIN"),
        ("transaction-end", "TRANSACTION_END", "END"),
        ("heartbeat", "HEARTBEAT", None),
        ("tombstone", "TOMBSTONE", None),
        ("insert-with-schema", "INSERT", "c"),
        ("value-with-schema-alone", "DELETE", "d"),
        ("tombstone-with-schema", "TOMBSTONE", None),
        ("value-alone", "INSERT", "c"),
    ],
)
def test_kinds(name, op, operation):
    """Each kind of message in each shape."""
    found = change(golden(name))
    assert (found.op, found.operation) == (op, operation)


def test_an_empty_line_is_other():
    """It is kept whole all the same."""
    for line in ("{}", '{"value":{}}', '{"schema":{},"payload":{}}'):
        assert change(line).op == "OTHER"


def test_a_tombstone_has_the_key_and_nothing_else():
    """It says that nothing more is to come of its key; its table is known by its topic only."""
    found = change(golden("tombstone"))
    assert (found.key, found.before, found.after) == (("id",), {"id": "Ag=="}, None)
    assert found.source == Source(format="debezium")
    assert change(golden("tombstone-with-schema")).before == {"id": ExactNumber("18446744073709551615")}
    assert change('{"key":null,"value":null}').before is None
    assert change('{"key":{"id":1},"value":{"schema":null,"payload":null}}').op == "TOMBSTONE"


def test_the_key_is_that_of_the_record():
    """A record without a key is of a table without one; a value alone does not say."""
    assert change(golden("insert")).key == ("id",)
    assert change(golden("insert-without-key")).key == ()
    assert change(golden("insert-with-schema")).key == ("id",)
    assert change(golden("value-alone")).key is None


def test_a_key_of_columns_called_schema_and_payload_is_a_key():
    """Only an object in `payload` is a key beside its schema."""
    line = record(envelope(after={"schema": 1, "payload": "x"}), key={"schema": 1, "payload": "x"})
    assert change(line).key == ("schema", "payload")


def test_a_statement_has_the_table_that_it_left():
    """Key and columns come from the table change, the types as they would be declared."""
    found = change(golden("schema-change"))
    assert found.ddl == "ALTER TABLE orders RENAME COLUMN note TO remark"
    assert (found.source.database, found.source.table, found.key) == ("shop", "orders", ("tenant", "order_id"))
    assert found.columns[2:5] == (
        Column(name="amount", type="DECIMAL(12,2)", code=3),
        Column(name="qty", type="INT UNSIGNED", code=4),
        Column(name="remark", type="VARCHAR(100)", code=12),
    )


def test_a_statement_about_several_tables_is_about_none_of_them():
    """Its table changes are kept for the catalog."""
    two = [{"type": "DROP", "id": '"shop"."a"', "table": None}, {"type": "DROP", "id": '"shop"."b"', "table": None}]
    found = change(record({"databaseName": "shop", "ddl": "DROP TABLE a, b", "tableChanges": two}))
    assert (found.op, found.source.table, found.key, found.columns) == ("ERASE", None, None, None)


def test_a_renamed_table_is_the_one_of_the_table_change():
    """The source names both tables of a multi-table rename."""
    found = [change(message) for message in SHOP if b'"orders_v3,nopk2"' in message]
    assert [one.source.table for one in found] == ["orders_v3", "nopk2"]


def test_transaction_marks_have_the_id():
    """And the time in the source."""
    for name in ("transaction-begin", "transaction-end"):
        assert change(golden(name)).transaction == f"{GTID}:58"
        assert change(golden(name)).event_time is not None


@pytest.mark.parametrize(
    ("members", "transaction"),
    [
        ({"transaction": {"id": "571:53195829"}}, "571:53195829"),
        ({"transaction": {"id": "file=a,pos=1"}, "source": {"gtid": f"{GTID}:1"}}, "file=a,pos=1"),
        ({"source": {"gtid": f"{GTID}:1"}}, f"{GTID}:1"),
        ({"source": {"gtid": "0-1-270"}}, "0-1-270"),
        ({"source": {"gtid": None}}, None),
    ],
)
def test_the_transaction_is_that_of_the_metadata_or_the_gtid(members, transaction):
    """The first of the two that there is."""
    assert change(record(envelope(**members))).transaction == transaction


@pytest.mark.parametrize(
    ("source", "position"),
    [
        ({"connector": "mysql", "file": "bin.000002", "pos": 704, "row": 1}, (2, 704, 1)),
        ({"connector": "mariadb", "file": "mysql-bin.12", "pos": 4, "row": 0}, (12, 4, 0)),
        ({"connector": "mysql", "file": "", "pos": 0, "row": 0}, None),
        ({"connector": "postgresql", "lsn": 9, "sequence": '["7","9"]'}, (7, 9)),
        ({"connector": "postgresql", "lsn": 9, "sequence": '[null,"9"]'}, (0, 9)),
        ({"connector": "postgresql", "lsn": 9}, (9,)),
        ({"connector": "oracle", "scn": "5", "commit_scn": "7"}, (7, 5, 0)),
        ({"connector": "oracle", "scn": "5", "commit_scn": None}, None),
        (
            {"connector": "sqlserver", "change_lsn": "00000027:00000db0:0005", "commit_lsn": "00000027:00000db0:0007"},
            (39, 3504, 7, 39, 3504, 5, 0),
        ),
        ({"connector": "sqlserver", "change_lsn": None, "commit_lsn": "NULL"}, None),
        ({"connector": "vitess", "pos": 1}, None),
    ],
)
def test_the_position_is_in_the_order_of_the_source(source, position):
    """Each connector has numbers of its own; one that has none has no position."""
    assert change(record(envelope(source=source))).position == position


def test_real_positions_ascend():
    """But for the delete and the create of a changed key, and a statement cut in two: each pair shares its position."""
    positions = [change(message).position for message in SHOP if b'"value":null' not in message]
    assert positions == sorted(positions)
    assert sum(count > 1 for count in Counter(positions).values()) == 3


@pytest.mark.parametrize(
    ("times", "instant"),
    [
        ({"ts_ms": 1700000000123}, 1_700_000_000_123_000),
        ({"ts_ms": 1700000000123, "ts_us": 1700000000123456}, 1_700_000_000_123_456),
        ({"ts_ms": 1, "ts_us": 1700000000123456, "ts_ns": 5}, 1_700_000_000_123_456),
        ({"ts_ms": 0}, 0),
        ({"ts_ms": -1}, None),
        ({}, None),
    ],
)
def test_times_are_read_to_the_microsecond(times, instant):
    """Microseconds where there are some, milliseconds in old versions."""
    found = change(record(envelope(source={"connector": "mysql"} | times, **times)))
    assert (found.event_time, found.system_time) == (instant, instant)


@pytest.mark.parametrize(
    ("op", "image"), [("c", "before"), ("r", "before"), ("d", "after"), ("t", "before"), ("t", "after")]
)
def test_an_image_where_the_operation_has_none_is_refused(op, image):
    """It is told rather than dropped."""
    for message, path in (
        (record(envelope(op, **{image: {"id": 1}})), f"$.value.{image}"),
        (json.dumps({"schema": None, "payload": envelope(op, **{image: {"id": 1}})}), f"$.payload.{image}"),
    ):
        side = f"no row {image} the change for {op}"
        assert error_of(to_changes, message, "debezium") == f"debezium: {path}: expected {side}, got some"


def test_an_update_need_not_say_what_was_before():
    """PostgreSQL sends the old row only with REPLICA IDENTITY FULL."""
    found = change(golden("postgresql-update"))
    assert (found.op, found.before, found.after) == ("UPDATE", None, {"id": 1, "note": "a"})


def test_values_are_read_with_an_embedded_schema():
    """Every semantic type at once; the columns have the types as the schema spells them."""
    found = change(golden("insert-with-schema"))
    assert render(found.after).decode() == (
        '{"id":18446744073709551615,"small":1,"number":2,"big":9223372036854775807,"single":0.1,"double":1.5,'
        '"flag":true,"amount":5.82,"free":0.582,"day":"2024-02-29","span":"-838:59:59",'
        '"seconds":"2024-02-29 23:59:59.999","micros":"2024-02-29 23:59:59.999999",'
        '"nanos":"2024-02-29 23:59:59.999999999","instant":"1711848600.1","year":2024,"bits":"Cqo=","raw":"//4A",'
        '"json":"{\\"a\\":1.0}","kind":"b,c","kinds":"x,y","place":"AQEAACDmEAAAAAAAAAAA+D8AAAAAAAACwA=="}'
    )
    types = {column.name: column.type for column in found.columns}
    assert types["id"] == "org.apache.kafka.connect.data.Decimal(precision=20,scale=0)"
    assert (types["bits"], types["raw"]) == ("io.debezium.data.Bits(length=12)", "bytes")
    assert not any("/after" in pointer for pointer in found.members)


def test_values_stay_as_they_were_sent_without_a_schema():
    """Nothing says what they are."""
    found = change(golden("decimals-as-strings"))
    assert (found.columns, found.after["amount"]) == (None, "5.82")
    assert change(golden("insert")).after["dec10"] == "AlQL4/8="


@given(
    row=st.dictionaries(strings, st.tuples(st.sampled_from(TYPES), values), max_size=6),
    is_alone=st.booleans(),
)
def test_every_line_with_a_schema_comes_back(row, is_alone):
    """Whatever the types and values: what a value does not say of how it was sent is kept beside it."""
    fields = [{"field": name, **_field(type)} for name, (type, _) in row.items()]
    value = {
        "schema": {"type": "struct", "fields": [{"type": "struct", "field": "after", "fields": fields}]},
        "payload": envelope(after={name: sent for name, (_, sent) in row.items()}),
    }
    key = {"schema": {"fields": fields}, "payload": value["payload"]["after"]}
    change(render(value if is_alone else {"key": key, "value": value}))


def _field(spelled: str) -> dict[str, object]:
    name, _, parameters = spelled.removesuffix(")").partition("(")
    given = dict(one.split("=") for one in parameters.split(",") if one)
    return {
        "type": "bytes",
        "name": name,
        "parameters": {name.replace("precision", "connect.decimal.precision"): v for name, v in given.items()},
    }


@pytest.mark.slow
@given(line=texts("debezium"))
def test_every_line_comes_back_or_is_refused(line):
    """Made from the schema, however unlike Debezium's."""
    try:
        change(line)
    except cdcavro.StructureError as error:
        refused = error.expected
    else:
        refused = ""
    assert refused.startswith(("no row ", "a row as ", "a connector of ", "a change, ")) or refused == ""


def made(**given) -> object:
    """Return the line of a change of another format."""
    (line,) = from_changes([Change(**given)], "debezium")
    return json.loads(line)


def test_a_change_of_another_format_is_a_record_if_its_key_is_known():
    """Without a schema, its values as they are, with what is known of the source."""
    source = Source(format="oms_canal", db_type="mysql", database="shop", table="t")
    assert made(op="UPDATE", source=source, key=("id",), before={"id": 1}, after={"id": 2}, event_time=1_000_001) == {
        "key": {"id": 2},
        "value": {
            "before": {"id": 1},
            "after": {"id": 2},
            "source": {
                "connector": "mysql",
                "ts_ms": 1000,
                "ts_us": 1_000_001,
                "ts_ns": 1_000_001_000,
                "snapshot": "false",
                "db": "shop",
                "table": "t",
                **dict.fromkeys(("sequence", "gtid", "thread", "query")),
            },
            "op": "u",
            "transaction": None,
        },
    }
    assert made(op="DELETE", key=(), before={"id": 1})["key"] is None
    assert made(op="SNAPSHOT", after={"id": 1}) == {
        "before": None,
        "after": {"id": 1},
        "source": {"snapshot": "true"},
        "op": "r",
        "transaction": None,
    }


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"op": "TRUNCATE", "ddl": "TRUNCATE t"}, {"ddl": "TRUNCATE t"}),
        ({"op": "QUERY"}, {"ddl": None}),
        ({"op": "CREATE", "ddl": "CREATE TABLE t", "system_time": 5000}, {"ddl": "CREATE TABLE t", "ts_ms": 5}),
    ],
)
def test_a_statement_of_another_format_is_a_schema_change(given, line):
    """Also TRUNCATE, if there is a statement; a truncate without one is the operation t."""
    empty = {"source": {"snapshot": "false"}, "databaseName": None, "schemaName": None, "tableChanges": []}
    assert made(**given) == empty | line
    assert made(op="TRUNCATE")["op"] == "t"


def test_marks_and_heartbeats_of_another_format():
    """A transaction that is no GTID is one of the metadata."""
    assert made(op="TRANSACTION_END", transaction="7", event_time=5000) == {
        "status": "END",
        "id": "7",
        "event_count": None,
        "data_collections": None,
        "ts_ms": 5,
    }
    assert made(op="HEARTBEAT", system_time=5000) == {"ts_ms": 5}
    assert made(op="HEARTBEAT") == {"ts_ms": None}
    assert made(op="INSERT", transaction="7", after={})["transaction"] == {"id": "7"}
    assert made(op="INSERT", transaction=f"{GTID}:1", after={})["source"]["gtid"] == f"{GTID}:1"


@pytest.mark.parametrize("op", ["GTID", "XACOMMIT", "XAROLLBACK", "OTHER"])
def test_what_debezium_has_no_message_for_gives_none(op):
    """Nothing is invented."""
    assert from_changes([Change(op=op)], "debezium") == []


@pytest.mark.parametrize("length", ["99999999999", "9" * 30, "9" * 5000])
def test_an_embedded_schema_of_absurd_size_does_no_harm(length):
    """The value stays as it was sent, and the message comes back whole."""
    column = {"type": "bytes", "name": "io.debezium.data.Bits", "parameters": {"length": length}, "field": "b"}
    schema = {"type": "struct", "fields": [{"type": "struct", "fields": [column], "field": "after"}]}
    text = json.dumps({"schema": schema, "payload": {"op": "c", "after": {"b": "AQ=="}}})
    (found,) = to_changes(text, "debezium")
    assert found.after == {"b": "AQ=="}
    assert [exact(back) for back in from_changes([found], "debezium")] == [exact(text)]


@pytest.mark.parametrize(("op", "letter"), [("INSERT", "c"), ("UPDATE", "u"), ("DELETE", "d"), ("SNAPSHOT", "r")])
def test_a_change_without_its_spelling_is_spelled_by_its_kind(op, letter):
    """Of any format, Debezium's own among them: a change may be made of another."""
    for format in (None, "debezium", "oms_canal"):
        (text,) = from_changes([Change(op=op, source=Source(format=format))], "debezium")
        assert exact(text).get("value", exact(text))["op"] == letter


def test_values_as_they_were_sent_leave_the_row_alone_that_was_read_back():
    """Of an original whose columns are not known, whose values were sent as they are."""
    source = Source(format="debezium", db_type="mysql", table="t")
    original = Change(op="INSERT", source=source, after={"n": 5})
    read = Change(op="INSERT", source=Source(format="canal"), columns=(Column(name="n", type="int"),), after={"n": 5})
    made = restore_values(read, original, None, {"n": 5.0})
    assert (render(made.after), render(read.after), render(original.after)) == (b'{"n":5.0}', b'{"n":5}', b'{"n":5}')


@pytest.mark.parametrize("around", ["{}", '{{"schema":null,"payload":{}}}', '{{"key":null,"value":{}}}'])
def test_a_row_of_another_producer_has_no_changes(around):
    """CockroachDB's enriched envelope has Debezium's members, but its table, key and time stand elsewhere."""
    source = {"origin": "cockroachdb", "database_name": "shop", "table_name": "t", "primary_keys": ["id"]}
    for own in ({"source": source}, {}):
        text = around.format(json.dumps({"after": {"id": 1}, "op": "c", "ts_ns": 1751162467008308178} | own))
        with pytest.raises(
            StructureError, match="expected a change of Debezium, got a message of a CockroachDB changefeed"
        ):
            to_changes(text, "debezium")
        assert_round_trip("debezium", text)


@pytest.mark.parametrize(
    ("snapshot", "is_in_stream"),
    [
        ("incremental", True),
        ("true", False),
        ("first", False),
        ("last_in_data_collection", False),
        (True, False),
        (None, False),
    ],
)
def test_a_row_of_an_incremental_snapshot_is_a_reading_in_mid_stream(snapshot, is_in_stream):
    """And comes back as one, also from a change alone; any other row that was read is one of a full load."""
    source = {
        "connector": "mysql",
        "db": "d",
        "table": "t",
        "file": "b.000001",
        "pos": 5,
        "row": 0,
        "snapshot": snapshot,
    }
    text = json.dumps({"before": None, "after": {"id": 1}, "source": source, "op": "r"})
    (made,) = to_changes(text, "debezium")
    assert (made.op, made.snapshot) == ("SNAPSHOT", False if is_in_stream else None)
    assert is_full_load(made) is not is_in_stream
    assert repr(Change.from_avro(made.to_avro())) == repr(made)
    assert exact(from_changes([made], "debezium")[0]) == exact(text)
    (bare,) = from_changes([replace(made, members=None)], "debezium")
    assert json.loads(bare)["value"]["source"]["snapshot"] == ("incremental" if is_in_stream else "true")
    (changed,) = to_changes(text.replace('"op": "r"', '"op": "u"'), "debezium")
    assert changed.snapshot is None

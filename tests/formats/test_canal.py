"""The facts of `canal`: Alibaba Canal's flat messages, every column value a string."""

from __future__ import annotations

import io
import json
from collections import Counter
from random import Random
from zoneinfo import ZoneInfo

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cdcavro
from cdcavro.change import Arrival, Clock, in_order, order_value, replace
from cdcavro.change.model import Change, Column, Source
from cdcavro.change.order import split_key_change
from cdcavro.engine.machine import COMPILED
from cdcavro.exact.jsontext import parse
from cdcavro.exact.numbers import ExactNumber
from cdcavro.table import Tables
from cdcavro.table.writing.message_typer import ChangeTyper, MessageTyper
from cdcavro.transcoding.mapping import from_changes, to_changes
from cdcavro.transcoding.transcoder import Transcoder, transcode
from support.messages import SAMPLES, lines, shop_canal
from support.roundtrip import assert_golden, assert_round_trip, avro, error_of, exact, golden_cases, left

UTC = ZoneInfo("UTC")
SHANGHAI = ZoneInfo("Asia/Shanghai")
BERLIN = ZoneInfo("Europe/Berlin")
ZONES = [None, UTC, SHANGHAI, BERLIN]
EVERY_TYPE = "insert-every-type"
TYPES = ["int", "decimal(9,2)", "year", "bit(12)", "blob", "enum('a','5','b,c')", "set('x','1','z')", "timestamp(3)"]
FIRST_ROW = (
    '{"id":1,"t1":127,"t1u":255,"b1":1,"s2":32767,"s2u":65535,"m3":8388607,"m3u":16777215,"i4":2147483646,'
    '"i4u":4294967295,"i8":9223372036854775807,"i8u":18446744073709551615,"zf":42,"f":3.4028E38,'
    '"d":1.7976931348623157E308,"dec65":99999999999999999999999999999999999.999999999999999999999999999999,'
    '"dec10":99999999.99,"dec0":99999999999999999999,"bit1":"AQ==","bit12":"Cqo=","bit64":"//////////8=",'
    '"bin8":"AP8QgH8Bw6k=","vbin":"3q2+7wA=","tb":"AA==","bl":"//4A","lb":"iVBORw0KGgo=","c":"abc",'
    '"v":"emoji 😀 \\"quote\\" \\\\ back\\nline\\ttab \'sq\'","vl":"cafu00e9\\ufffd","tt":"tiny","tx":"text",'
    '"mt":"medium","lt":"long 🚀","dt":"9999-12-31","dtm":"9999-12-31 23:59:59","dtm3":"2024-02-29 23:59:59.999",'
    '"dtm6":"2024-02-29 23:59:59.999999","ts":"2147483647","ts6":"2147483647.999999","tm":"838:59:59",'
    '"tm6":"23:59:59.999999","yr":2155,"js":"{\\"a\\": [1, null, true], \\"k\\": \\"v\\", \\"n\\": 1.0, \\"u\\": \\"😀\\", '
    '\\"big\\": 12345678901234567890, \\"nest\\": {\\"d\\": 1.0E100}}","en":"b,c","st":"x,z",'
    '"pt":"AQEAAAAAAAAAAAD4PwAAAAAAAALA","gen":2147483647}'
)
NUL_TO_U0085 = "\0\x01\x7f\x80\x85\xa0ÿ"


def golden(name: str) -> bytes:
    """Return a golden message by its name."""
    return (SAMPLES / "canal" / f"{name}.json").read_bytes()


def changes(name: str, zone: ZoneInfo | None = None) -> list[Change]:
    """Return the changes of a golden message."""
    return to_changes(golden(name), "canal", zone=zone)


def flat(type: str = "INSERT", **members) -> str:
    """Write a flat message of the members that tell what happened."""
    return json.dumps({"id": 1, "type": type, "gtid": ""} | members, ensure_ascii=False)


def row(declared: str, sent: object, zone: ZoneInfo | None = None) -> object:
    """Return the value of the only column of an inserted row, and assert that its message comes back."""
    text = flat(data=[{"c": sent}], mysqlType={"c": declared})
    found = to_changes(text, "canal", zone=zone)
    assert [exact(back) for back in from_changes(found, "canal", zone=zone)] == [exact(text)]
    return found[0].after["c"]


# The wire.


@pytest.mark.parametrize("golden", golden_cases("canal"))
def test_golden_message_round_trips_and_is_told(golden):
    """Each comes back as it was sent, is told as Canal's, and is one of the 188 real messages."""
    assert_golden("canal", golden)
    assert golden.rstrip(b"\n") in shop_canal()


def test_real_messages_round_trip_and_are_told():
    """All 188 messages that Canal 1.1.7 made of a MySQL binlog: by the engine alone, and nothing in extras."""
    for message in shop_canal():
        assert_round_trip("canal", message)
        assert cdcavro.sniff(message) == "canal"
    assert left("canal", shop_canal()) == []
    assert all(avro("canal", message)["extras"] == {} for message in shop_canal())


def test_public_messages_are_told_by_what_they_hold(shared_samples):
    """Of the messages in other projects' tests, those of Canal have an `id`; those that imitate it have JSON numbers."""
    messages = lines(shared_samples / "public-canal.jsonl")
    for message in messages:
        assert_round_trip("canal", message)
    assert Counter(map(cdcavro.sniff, messages)) == {"canal": 48, "oms_canal": 20}
    for message in messages:
        values = [value for one in json.loads(message)["data"] or [] for value in one.values()]
        assert (cdcavro.sniff(message) == "canal") is all(value is None or type(value) is str for value in values)


@pytest.mark.parametrize(
    ("message", "format"),
    [
        ('{"type":"INSERT","database":"shop","id":1}', "canal"),
        ('{"type":"INSERT","database":"shop","gtid":""}', "canal"),
        ('{"type":"INSERT","database":"shop","id":null,"gtid":null}', "canal"),
        ('{"type":"INSERT","id":null}', "canal"),
        ('{"type":"INSERT","database":"shop"}', "oms_canal"),
        ('{"type":"INSERT","data":[{"id":"1","gtid":"x"}]}', "oms_canal"),
        ('{"type":"GTID","gtid":"x"}', "canal"),
        ('{"id":1,"gtid":"x"}', None),
    ],
)
def test_id_or_gtid_tells_canal_from_oms_canal(message, format):
    """Members of the message, null or not, but not columns of that name; without them oms_canal goes first."""
    if format is None:
        assert "expected a message of a known format" in error_of(cdcavro.sniff, message)
    else:
        assert cdcavro.sniff(message) == format


def test_binary_columns_are_characters_on_the_wire():
    """ISO-8859-1: NUL, C1 controls and U+0085 come back in the payload as they were."""
    characters = "".join(map(chr, range(256)))
    assert avro("canal", flat(data=[{"b": characters}]))["data"] == [{"b": characters}]


# A change has the values that other formats have.


def test_every_type_of_mysql_is_read():
    """The first row of the message that has every type at its limits, as a whole."""
    assert changes(EVERY_TYPE, UTC)[0].after == parse(FIRST_ROW)


def test_zero_dates_empty_values_and_null_are_three_things():
    """The other rows of that message: a zero date is no instant, empty binary no null, YEAR 0000 the number 0."""
    _, lowest, nulls, zeros, others = (found.after for found in changes(EVERY_TYPE, UTC))
    names = ["bin8", "bl", "v", "en", "st", "bit12", "pt", "ts", "yr"]
    assert [lowest[name] for name in names] == ["", "", "", "a", "", "AAA=", None, "1", 1901]
    assert {name for name, value in nulls.items() if value is not None} == {"id"}
    assert [zeros[name] for name in ("dt", "dtm", "ts", "ts6", "yr")] == [
        *("0000-00-00", "0000-00-00 00:00:00", "0000-00-00 00:00:00", "0000-00-00 00:00:00.000000", 0)
    ]
    assert [zeros[name] for name in ("dec10", "tb", "lb", "v", "js")] == [0.0, "Jw==", "XA==", "null", "null"]
    assert [others[name] for name in ("en", "st", "ts", "ts6", "js")] == [
        "d'e",
        "y",
        "1711848600",
        "1711848600.1",
        '"str"',
    ]


def test_an_emoji_among_the_labels_is_a_question_mark():
    """The producer's loss: Canal's `mysqlType` has `?`, so the label is that."""
    assert changes(EVERY_TYPE)[3].after["en"] == "?"


@pytest.mark.parametrize("zone", ZONES)
def test_real_messages_are_read_without_a_remainder(zone):
    """Each change carries its message whole: nothing of 188 is left for `members`, in any zone."""
    for message in shop_canal():
        found = to_changes(message, "canal", zone=zone)
        assert [one.members for one in found] == [None] * len(found)
        (back,) = from_changes(found, "canal", zone=zone)
        assert exact(back) == exact(message)


@pytest.mark.parametrize("zone", ZONES)
def test_public_messages_come_back_from_their_changes(shared_samples, zone):
    """Those of older Canals lack `gtid`, and nothing else is left for `members`."""
    for message in lines(shared_samples / "public-canal.jsonl"):
        found = to_changes(message, "canal", zone=zone)
        (back,) = from_changes(found, "canal", zone=zone)
        assert exact(back) == exact(message)
        assert cdcavro.sniff(message) == "oms_canal" or found[0].members == {"/gtid": ""}


@pytest.mark.parametrize(
    ("declared", "sent", "value"),
    [
        ("enum('a','b')", "3", "3"),
        ("set('a','b')", "9", "9"),
        ("int", "twelve", "twelve"),
        ("decimal(9,2)", "1,5", "1,5"),
        ("blob", "日本", "日本"),
        ("bit(1)", "2", "2"),
        ("timestamp", "0000-00-00 00:00:00", "0000-00-00 00:00:00"),
        ("int", None, None),
        ("no type", "1", "1"),
        (None, "1", "1"),
    ],
)
def test_a_value_that_does_not_fit_its_type_stays_the_text_that_came(declared, sent, value):
    """And the message comes back."""
    assert row(declared, sent, UTC) == value


@pytest.mark.parametrize(
    ("declared", "sent", "members"),
    [
        ("enum('a','5')", "5", {"/data/0/c": '"5"'}),
        ("bit(8)", "AQ==", {"/data/0/c": '"AQ=="'}),
        ("set('1','2')", "4", None),
        ("set('1','4')", "4", {"/data/0/c": '"4"'}),
        ("int", 5, {"/data/0/c": "5"}),
        ("varchar(9)", True, {"/data/0/c": "true"}),
        ("json", {"a": 1.5}, {"/data/0/c": '{"a":1.5}'}),
    ],
)
def test_what_canal_would_not_send_is_kept_beside_the_change(declared, sent, members):
    """A misfit that is spelled like a value of its type, and what is no string, come back by `members`."""
    text = flat(data=[{"c": sent}], mysqlType={"c": declared})
    (found,) = to_changes(text, "canal")
    kept = {pointer: text for pointer, text in (found.members or {}).items() if pointer.startswith("/data")}
    assert kept == (members or {})
    assert row(declared, sent) == sent


@given(
    declared=st.sampled_from(TYPES),
    values=st.lists(st.none() | st.text() | st.integers(-1, 9).map(str) | st.sampled_from(["a", "5", "AA==", "AAE="])),
    zone=st.sampled_from(ZONES),
)
def test_any_values_come_back_from_their_changes(declared, values, zone):
    """Before and after, of any type, in any zone: the message is the same JSON value again."""
    rows = [{"c": value, "d": value} for value in values]
    olds = [{"c": value} for value in reversed(values)]
    text = flat("UPDATE", data=rows, old=olds, mysqlType={"c": declared, "d": "int"})
    (back,) = from_changes(to_changes(text, "canal", zone=zone), "canal", zone=zone)
    assert exact(back) == exact(text)


def test_enum_is_its_index_in_the_message_s_own_type():
    """After a label was put in between, index 2 is another label: each message brings its own labels."""
    assert row("enum('new','done')", "2") == "done"
    assert row("enum('new','paid','done')", "2") == "paid"
    (found,) = changes("update-enum")
    assert (found.before["status"], found.after["status"]) == ("done", "paid")


def test_labels_may_hold_commas_and_apostrophes():
    """They are written as in SQL."""
    labels = "enum('a','b,c','d''e','?')"
    assert [row(labels, index) for index in "01234"] == ["", "a", "b,c", "d'e", "?"]


def test_set_is_a_bitmask():
    """The labels stand in the order of the declaration, joined by commas; none is the empty string."""
    assert [row("set('x','y','z')", mask) for mask in "01567"] == ["", "x", "x,z", "y,z", "x,y,z"]


def test_bit_is_a_number_in_as_many_bytes_as_it_needs():
    """Big-endian, in base64."""
    assert [row("bit(12)", number) for number in ("0", "1", "2730", "4095")] == ["AAA=", "AAE=", "Cqo=", "D/8="]


def test_binary_is_characters_of_one_byte():
    """NUL, C1 controls and U+0085 are bytes."""
    for declared in ("blob", "VARBINARY(20)", "binary(7)"):
        assert row(declared, NUL_TO_U0085) == "AAF/gIWg/w=="
    assert row("text", NUL_TO_U0085) == NUL_TO_U0085


def test_a_geometry_is_ewkb():
    """MySQL puts the number of the reference system before the WKB, 0 for none; EWKB has it inside."""
    point = "\x01\x01\0\0\0" + "\0" * 16
    assert row("point", "\0\0\0\0" + point) == "AQEAAAAAAAAAAAAAAAAAAAAAAAAA"
    assert row("POINT", "\xe6\x10\0\0" + point) == "AQEAACDmEAAAAAAAAAAAAAAAAAAAAAAAAA=="


def test_numbers_keep_the_digits_sent():
    """A zero that Canal shortened stays short, one that it kept stays; JSON text in a column is text."""
    assert row("decimal(10,2)", "0.0") == 0.0
    assert row("decimal(10,2)", "1.10") == ExactNumber("1.10")
    assert row("int(8) unsigned zerofill", "00000042") == "00000042"
    assert row("json", '{"n": 1.0}') == '{"n": 1.0}'


def test_timestamp_is_an_instant_only_with_the_zone():
    """Without, it is the text that came; a time that the zone has twice or never stays text with it too."""
    sent = "2024-07-01 02:00:00.500"
    values = [row("timestamp(3)", sent, zone) for zone in ZONES]
    assert values == [sent, "1719799200.5", "1719770400.5", "1719792000.5"]
    assert row("timestamp", "2024-10-27 02:30:00", BERLIN) == "2024-10-27 02:30:00"
    assert row("datetime(3)", sent, SHANGHAI) == sent


# What the change itself says.


def test_a_canal_change_has_every_fact_of_its_message():
    """The whole change, field by field."""
    (found,) = changes("hostile-names")
    names = ["id", "select", "Col Name", "日本", "a.b", "$x", "1st", "CASE", "case2"]
    types = [
        Column(name=name, type="varchar(10)" if " " in name else "int", code=12 if " " in name else 4) for name in names
    ]
    after = dict(zip(names, [1, 2, "x", None, 4, 5, 60, 7, 8], strict=True))
    assert found == Change(
        op="UPDATE",
        operation="UPDATE",
        source=Source(format="canal", database="shop", table="we ird-tab.le"),
        key=("id",),
        columns=tuple(types),
        before=after | {"日本": 3, "1st": 6},
        after=after,
        changed=("日本", "1st"),
        position=(1795223182000, 10),
        event_time=1795223182000_000,
        system_time=1795223182466_000,
    )


def test_gtid_is_the_transaction_and_empty_without_one():
    """Canal 1.1.7 always sends it."""
    (found,) = to_changes(flat(gtid="3E11FA47:23", es=5), "canal")
    assert (found.transaction, found.position) == ("3E11FA47:23", (5, 1))
    assert changes("delete")[0].transaction is None
    assert json.loads(from_changes([Change(op="INSERT", after={})], "canal")[0])["gtid"] == ""


def test_rows_of_one_message_are_changes_beside_each_other():
    """Each with its own image; `old` belongs to `data` row by row, and a column that it lacks is unchanged."""
    found = changes("update-many-rows")
    assert [(one.row, one.rows, one.changed) for one in found] == [(0, 2, ("amount",)), (1, 2, ("amount",))]
    assert [one.before["amount"] for one in found] == [ExactNumber("10.10"), ExactNumber("20.20")]
    assert [one.after["amount"] for one in found] == [ExactNumber("11.10"), ExactNumber("21.20")]
    assert [one.before["order_id"] for one in found] == [1, 2]
    assert len(changes("many-rows")) == 4


def test_null_in_old_was_null_and_is_not_unchanged():
    """To NULL and from NULL."""
    (to_null,), (from_null,) = changes("update-to-null"), changes("update-from-null")
    assert to_null.changed == ("i8u", "dec65", "v", "dt", "js")
    assert [to_null.after[name] for name in to_null.changed] == [None] * 5
    assert to_null.before["i8u"] == ExactNumber("18446744073709551614")
    assert [from_null.before[name] for name in from_null.changed] == [None] * len(from_null.changed)
    assert (from_null.after["b1"], from_null.after["v"], from_null.after["js"]) == (1, "", '{"x": 1}')


@pytest.mark.parametrize("format", ["canal", "oms_canal"])
def test_an_update_of_which_no_changed_column_is_left_has_no_row_before_it(format):
    """Where the source logged the key alone of that row, nothing says what the columns were; the message comes back."""
    rows, olds = [{"id": "1", "v": "b"}, {"id": "2", "v": "c"}], [{}, {"v": "a"}]
    text = flat("UPDATE", pkNames=["id"], data=rows, old=olds)
    found = to_changes(text, format)
    assert [(one.before, one.after, one.changed) for one in found] == [
        (None, rows[0], None),
        ({"id": "2", "v": "a"}, rows[1], ("v",)),
    ]
    assert [json.loads(back) for back in from_changes(found, format)] == [json.loads(text)]


def test_a_changed_primary_key_is_one_update():
    """Normalised it is a delete of the old key and an insert of the new one."""
    (found,) = changes("update-primary-key")
    assert (found.op, found.before["id"], found.after["id"], found.changed) == ("UPDATE", 2, 1000, ("id",))
    removed, added = split_key_change(found)
    assert (removed.op, removed.before, removed.after) == ("DELETE", found.before, None)
    assert (added.op, added.before, added.after) == ("INSERT", None, found.after)


def test_without_a_primary_key_there_is_none():
    """Two rows that are alike are two changes."""
    found = changes("no-primary-key")
    assert [(one.key, one.before, one.after) for one in found] == [
        (None, {"a": 1, "b": "dup", "c": None}, {"a": 1, "b": "x", "c": None})
    ] * 2


@pytest.mark.parametrize(
    ("name", "op", "table", "start"),
    [
        ("ddl-create-database", "QUERY", "", "CREATE DATABASE IF NOT EXISTS shop "),
        ("ddl-create", "CREATE", "all_types", "CREATE TABLE all_types ("),
        ("ddl-alter", "ALTER", "orders", "ALTER TABLE orders ADD COLUMN qty "),
        ("ddl-create-index", "CINDEX", "orders", "CREATE INDEX ix "),
        ("ddl-drop-index", "DINDEX", "orders", "DROP INDEX ix "),
        ("ddl-rename-several", "RENAME", "orders_v3", "RENAME TABLE orders_v2 TO orders_v3, nopk TO nopk2"),
        ("truncate", "TRUNCATE", "orders_v3", "TRUNCATE TABLE orders_v3"),
        ("ddl-drop-table", "ERASE", "nopk2", "DROP TABLE `nopk2` /* generated by server */"),
    ],
)
def test_statements_of_every_kind(name, op, table, start):
    """A statement is one change without rows, and its message comes back."""
    (found,) = changes(name)
    assert (found.op, found.operation, found.source.table) == (op, op, table)
    assert found.ddl.startswith(start)
    assert (found.before, found.after, found.columns, found.members) == (None, None, None, None)
    (back,) = from_changes([found], "canal")
    assert exact(back) == exact(golden(name))


def test_a_rename_of_several_tables_names_the_last_only():
    """The others stand in the statement: 188 messages, and none for `nopk2`, to which `nopk` was renamed with it."""
    assert changes("ddl-rename-several")[0].source.table == "orders_v3"
    renames = [one for message in shop_canal() for one in to_changes(message, "canal") if one.op == "RENAME"]
    assert [one.source.table for one in renames] == ["orders_v2", "orders_v3"]


@pytest.mark.parametrize(
    ("sent", "sentence"),
    [
        (flat("UPDATE", data=[{}], old=[{}, {}]), "canal: $.old: expected as many rows in old as in data (1), got 2"),
        (flat("UPDATE", data=[{}, {}], old=[{}]), "canal: $.old: expected as many rows in old as in data (2), got 1"),
        (flat(data=[{}], old=[{"a": 1}]), "canal: $.old[0]: expected no row before the change for INSERT, got some"),
        (
            flat("DELETE", data=[{}], old=[{"a": 1}]),
            "canal: $.old[0]: expected no second row before the change for DELETE, got some",
        ),
        (flat(data=[1]), "canal: $.data[0]: expected object, got number"),
        ('{"id":1}', "canal: $.type: expected a required member, got none"),
    ],
)
def test_structure_is_not_bent(sent, sentence):
    """Images that an operation has not, and what is no flat message, are errors."""
    assert error_of(to_changes, sent, "canal") == sentence


# From and to other formats.


def test_values_of_oms_are_sent_as_strings():
    """By their declared types; ENUM and SET go back to index and bitmask."""
    types = {
        "a": "decimal(9,2)",
        "b": "blob",
        "c": "bit(12)",
        "e": "enum('p','q')",
        "s": "set('x','y')",
        "t": "timestamp(3)",
    }
    values = {"a": ExactNumber("1.20"), "b": "AP8=", "c": "Cqo=", "e": "q", "s": "x,y", "t": "1704067200.5"}
    columns = tuple(Column(name=name, type=type) for name, type in types.items())
    change = Change(op="INSERT", source=Source(format="oms_canal"), columns=columns, after=values)
    (made,) = (json.loads(text) for text in from_changes([change], "canal", zone=SHANGHAI))
    assert made["data"] == [{"a": "1.20", "b": "\0ÿ", "c": "2730", "e": "2", "s": "3", "t": "2024-01-01 08:00:00.500"}]


def test_values_without_declared_types_are_sent_as_their_text():
    """Numbers with their digits, true and false as 1 and 0, null as null."""
    values = {"a": ExactNumber("1.20"), "b": True, "c": False, "d": None, "e": "", "f": [1]}
    (made,) = from_changes([Change(op="INSERT", after=values)], "canal")
    assert json.loads(made)["data"] == [{"a": "1.20", "b": "1", "c": "0", "d": None, "e": "", "f": "[1]"}]


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.slow
def test_real_messages_lose_nothing_through_oms_canal(zone):
    """Every value of every type comes back from the other member of the family."""
    for message in shop_canal():
        assert transcode(message, "canal", "oms_canal", zone=zone).losses == []


def test_through_oms_canal_values_are_oms_s():
    """Numbers are JSON numbers there, and binary is base64."""
    (made,) = transcode(golden(EVERY_TYPE), "canal", "oms_canal", zone=UTC).texts
    assert exact(made)["data"][0] == exact(FIRST_ROW)


COMMIT = 429918007904436226
TIDB = {"id": 0, "database": "d", "table": "t", "pkNames": ["id"], "isDdl": False, "es": 1639633141221, "old": None}
TIDB |= {"sqlType": {"id": 4, "v": 12}, "mysqlType": {"id": "int", "v": "varchar"}, "data": [{"id": "2", "v": "x"}]}


def tidb(type: str = "UPDATE", commit: int = COMMIT, **members) -> str:
    """Write a message of TiCDC, with the extension that it adds."""
    return json.dumps(TIDB | {"type": type, "_tidb": {"commitTs": commit} | members})


@pytest.mark.parametrize("format", ["canal", "oms_canal"])
@pytest.mark.parametrize("type", ["INSERT", "UPDATE", "DELETE"])
@pytest.mark.parametrize(
    "elsewhere",
    [{"onlyHandleKey": True}, {"claimCheckLocation": "s3://b/f.json"}, {"onlyHandleKey": True, "rowkey": "dA=="}],
)
def test_a_row_that_was_too_large_for_its_message_is_refused(format, type, elsewhere):
    """It has its key alone: as a whole row, it would lose the other values without a word."""
    text = tidb(type, **elsewhere)
    assert cdcavro.sniff(text) == "canal"
    assert_round_trip(format, text)
    expected = "expected a whole row, got its key alone, as it was too large for TiCDC's message"
    assert error_of(to_changes, text, format) == f"{format}: $._tidb.{next(iter(elsewhere))}: {expected}"


def test_the_number_of_a_commit_is_the_order_across_partitions():
    """Whatever the times and the places say; what says that a row is elsewhere may say that it is not."""
    places = [Arrival(topic="t", partition=number % 3, offset=9 - number) for number in range(6)]
    texts = [tidb(commit=COMMIT + number, onlyHandleKey=False, claimCheckLocation="") for number in range(6)]
    made = [replace(to_changes(text, "canal")[0], place=place) for text, place in zip(texts, places, strict=True)]
    assert [one.position for one in made] == [(COMMIT + number,) for number in range(6)]
    assert made[0].source == Source(format="canal", db_type="TiDB", database="d", table="t")
    shuffled = [made[number] for number in (3, 0, 5, 1, 4, 2)]
    assert sorted(shuffled, key=cdcavro.order_key) == sorted(shuffled, key=order_value) == in_order(shuffled) == made
    assert Clock().time(made[0]) is None
    assert [order_value(one)[1] for one in made] == [3] * 6
    assert order_value(replace(made[0], event_time=None))[1] == 3


def test_a_watermark_of_tidb_is_a_heartbeat():
    """All changes before it were sent; a message of Canal's own has its usual word for it."""
    text = json.dumps(TIDB | {"type": "TIDB_WATERMARK", "table": "", "data": None, "_tidb": {"watermarkTs": COMMIT}})
    (made,) = to_changes(text, "canal")
    assert (made.op, made.operation, made.position) == ("HEARTBEAT", "TIDB_WATERMARK", (COMMIT,))
    assert_round_trip("canal", text)
    assert exact(from_changes([made], "canal")[0]) == exact(text)
    assert json.loads(transcode(text, "canal", "oms_canal").texts[0])["type"] == "MHEARTBEAT"


@pytest.mark.parametrize("format", ["canal", "oms_canal"])
def test_the_number_of_a_commit_may_be_a_text(format):
    """As relays write what is beyond 2^53."""
    (made,) = to_changes(tidb("INSERT", f"{COMMIT}"), format)
    assert (made.position, made.source.db_type) == ((COMMIT,), "TiDB")


@pytest.mark.parametrize("extension", [None, {}, {"commitTs": None}, {"rowkey": "dA=="}, {"commitTs": -1}])
def test_without_the_number_of_a_commit_arrival_is_the_order(extension):
    """As of any message of Canal."""
    (made,) = to_changes(json.dumps(TIDB | {"type": "INSERT", "_tidb": extension}), "canal")
    assert (made.position, made.source.db_type) == ((TIDB["es"], 0), None)


def test_a_message_of_tidb_becomes_another_without_its_number():
    """The number of a commit is no number of a batch, and an id of two halves has it as it is, in any order."""
    assert "id" not in json.loads(transcode(tidb(), "canal", "oms_canal").texts[0])
    transcoder = Transcoder("canal", "datahub_tuple")
    texts = [tidb("INSERT", commit) for commit in (COMMIT + 1, COMMIT)]
    ids = [json.loads(outcome.result().texts[0])["_sequence_id_"] for text in texts for outcome in transcoder.add(text)]
    assert ids == sorted(ids, reverse=True)


TICDC_CREATE = (
    "CREATE TABLE `t` (`id` BIGINT AUTO_RANDOM(5) PRIMARY KEY CLUSTERED,`d` DECIMAL(10,4),`b` BINARY(3),`bits` BIT(10),"
    "`e` ENUM('2','q'),`s` SET('x','y','z'),`v` VARCHAR(16),`ts` TIMESTAMP(3),`n` INT UNSIGNED)"
)
TICDC_TYPES = {"ts": "timestamp", "s": "set", "e": "enum", "bits": "bit", "b": "binary", "v": "varchar"} | {
    "n": "int unsigned",
    "d": "decimal",
    "id": "bigint",
}
TICDC_CODES = {"id": -5, "d": 3, "b": 2004, "bits": -7, "e": 4, "s": -7, "v": 12, "ts": 93, "n": -5}
TICDC_ROW = {"id": "1", "d": "12.3000", "b": "a", "bits": "1000", "e": "1", "s": "5", "v": "x"} | {
    "ts": "2024-01-02 03:04:05.123",
    "n": "4294967295",
}


def ticdc_row(commit: int, id: int, **values) -> str:
    """Write a row of TiCDC, whose types have no arguments, in any order, and the codes in the table's."""
    members = {"type": "INSERT", "sqlType": TICDC_CODES, "mysqlType": TICDC_TYPES}
    data = [TICDC_ROW | {"id": str(id)} | values]
    return json.dumps(TIDB | members | {"data": data, "_tidb": {"commitTs": COMMIT + commit}})


def ticdc_statement(commit: int, sql: str) -> str:
    """Write a statement of TiCDC about the table."""
    members = {"isDdl": True, "type": "QUERY", "sql": sql, "pkNames": None, "sqlType": None, "mysqlType": None}
    return json.dumps(TIDB | members | {"data": None, "_tidb": {"commitTs": COMMIT + commit}})


def last_rows(tables: Tables, texts: list[str]) -> list[dict]:
    """Return the rows after the changes in messages, the exact way."""
    typed = [one for text in texts for change in to_changes(text, "canal", zone=UTC) for one in tables.add(change)]
    return [
        fastavro.schemaless_reader(io.BytesIO(one.payload), json.loads(one.schema.envelope.json))["after"]
        for one in typed
    ]


def test_types_of_ticdc_have_the_arguments_that_the_table_has():
    """Decimals stay decimals, and labels, bits and padded bytes are read by the statement's types."""
    tables = Tables(zone=UTC)
    (made,) = last_rows(tables, [ticdc_statement(0, TICDC_CREATE), ticdc_row(1, 7)])
    types = {column.name: column.type for column in tables.tables[0].schema.columns}
    assert len(tables.tables[0].versions) == 1
    assert types["d"] == "DECIMAL(10,4)"
    assert types["e"] == "ENUM('2','q')"
    assert [made[name] for name in ("e", "s", "b", "bits")] == ["2", "x,z", b"a\0\0", b"\x03\xe8"]
    assert (made["unparsed"], made["n"]) == ({}, 4294967295)
    assert str(made["d"]) == "12.3000"


def test_the_version_of_its_time_completes_the_types_of_a_row():
    """A row from before a statement, which comes again behind it, has the digits from before."""
    tables = Tables(zone=UTC)
    alter = ticdc_statement(5, "ALTER TABLE t MODIFY d DECIMAL(12,2)")
    made = last_rows(
        tables, [ticdc_statement(0, TICDC_CREATE), ticdc_row(1, 7), alter, ticdc_row(6, 8), ticdc_row(1, 7)]
    )
    fields = [version.record["fields"] for version in tables.tables[0].versions]
    assert len(fields) == 2
    assert [str(next(value for name, value in row.items() if name.startswith("d") and value)) for row in made] == [
        "12.3000",
        "12.30",
        "12.3000",
    ]


@pytest.mark.parametrize("is_created", [True, False])
@pytest.mark.parametrize("is_shuffled", [True, False])
def test_the_engine_types_rows_of_ticdc_as_the_exact_way_does(is_created, is_shuffled):
    """With the statement that made the table, and without it, in whatever order the types stand."""
    random, texts = Random(32), [ticdc_statement(0, TICDC_CREATE)] * is_created
    for commit in range(1, 60):
        values = {"e": str(commit % 2 + 1), "s": str(commit % 8), "bits": str(commit * 17), "ts": "2024-01-02 03:04:05"}
        message = json.loads(ticdc_row(commit, commit, **values | ({"ts": TICDC_ROW["ts"]} if is_created else {})))
        types = [*TICDC_TYPES.items()]
        random.shuffle(types)
        texts.append(json.dumps(message | ({"mysqlType": dict(types)} if is_shuffled else {})))
    exact_way, tables = Tables(zone=UTC), Tables(zone=UTC)
    typer = MessageTyper("canal", tables)
    typed = [row.payload for text in texts for row in typer.add(text)]
    changes_made = [change for text in texts for change in to_changes(text, "canal", zone=UTC)]
    assert typed == [row.payload for change in changes_made for row in exact_way.add(change)]
    assert not COMPILED or typer.taken == 58
    payloads = [change.to_avro() for change in changes_made if change.op == "INSERT"]
    by_change = ChangeTyper(tables)
    assert [row.payload for payload in payloads for row in by_change.write(payload)[0]] == typed


def test_types_of_ticdc_without_a_statement_are_known_in_part():
    """Nothing is lost and nothing is unparsed: digits, indexes and masks as texts, bytes and bits as many as come."""
    tables = Tables(zone=UTC)
    (made,) = last_rows(tables, [ticdc_row(1, 7)])
    assert [column.name for column in tables.tables[0].schema.columns] == list(TICDC_CODES)
    assert (made["d"], made["e"], made["s"], made["b"], made["bits"]) == ("12.3000", "1", "5", b"a", b"\x03\xe8")
    assert made["unparsed"] == {}


@pytest.mark.parametrize(
    ("sent", "value"), [("0", "AA=="), ("1", "AQ=="), ("256", "AQA="), (str(2**64 - 1), "/" * 10 + "8=")]
)
def test_a_bit_without_a_length_has_as_many_bytes_as_its_number_needs(sent, value):
    """Up to the 64 bits that a column may have."""
    assert row("bit", sent) == value
    assert row("bit", str(2**64)) == str(2**64)


def test_the_extension_of_tidb_tells_the_format():
    """A relay may leave out what else does."""
    text = json.dumps({"type": "INSERT", "data": [{"id": "1"}], "_tidb": {"commitTs": COMMIT}})
    assert cdcavro.sniff(text) == "canal"


# The messages that DTS documents; that of the full load is its delete with the type that the document names.
DTS = {
    "database": "dbname",
    "es": 1600161894000,
    "id": 58,
    "isDdl": False,
    "mysqlType": {"id": "bigint", "shipping_type": "varchar"},
    "pkNames": ["id"],
    "sql": "",
    "sqlType": {"id": -5, "shipping_type": 12},
    "table": "tablename",
    "ts": 1600161894771,
}
DTS_ROW = {"id": "500000287", "shipping_type": None}
DTS_STATEMENT = {name: value for name, value in DTS.items() if name in ("database", "es", "id", "table", "ts")} | {
    "isDdl": True,
    "sql": "CREATE TABLE tablename (id BIGINT PRIMARY KEY, shipping_type VARCHAR(50))",
    "type": "DDL",
}


def dts(type: str, **members: object) -> str:
    """Return a message of Alibaba DTS in Canal's form."""
    return json.dumps(DTS | members | {"type": type})


@pytest.mark.parametrize(
    ("text", "op", "before", "after", "changed"),
    [
        (
            dts("UPDATE", data=[DTS_ROW], old=[{"shipping_type": "aaa"}]),
            "UPDATE",
            {"id": 500000287, "shipping_type": "aaa"},
            {"id": 500000287, "shipping_type": None},
            ("shipping_type",),
        ),
        (dts("DELETE", data=[DTS_ROW]), "DELETE", {"id": 500000287, "shipping_type": None}, None, None),
        (dts("INIT", data=[DTS_ROW], gtid="a:1"), "SNAPSHOT", None, {"id": 500000287, "shipping_type": None}, None),
        (json.dumps(DTS_STATEMENT), "CREATE", None, None, None),
    ],
)
def test_messages_of_alibaba_dts_are_what_it_documents(text, op, before, after, changed):
    """They come back, too."""
    assert_round_trip("canal", text)
    assert cdcavro.sniff(text) == "canal"
    (found,) = to_changes(text, "canal")
    assert (found.op, found.before, found.after, found.changed) == (op, before, after, changed)
    assert (found.source.database, found.source.table, found.event_time) == ("dbname", "tablename", 1600161894000000)


def test_a_delete_of_dts_that_has_its_row_in_old_is_refused_by_name():
    """Its updates would have both rows the wrong way round, which nothing in them says."""
    sentence = (
        "canal: $.old: expected the row of a delete in data, got it in old, as Alibaba DTS sends it of instances that "
        "were not restarted since March 20, 2022"
    )
    assert error_of(to_changes, dts("DELETE", old=[{"shipping_type": "aaa"}]), "canal") == sentence


def test_rows_of_dts_have_the_types_of_the_statement_and_go_by_the_engine():
    """Its types lack their arguments."""
    tables = Tables(zone=UTC)
    typer = MessageTyper("canal", tables)
    typer.add(json.dumps(DTS_STATEMENT))
    for text in (dts("INIT", data=[DTS_ROW]), dts("INIT", data=[DTS_ROW | {"id": "7"}])):
        typer.add(text)
    assert [column.type for column in tables.tables[0].schema.columns] == ["BIGINT", "VARCHAR(50)"]
    assert len(tables.tables[0].versions) == 1
    assert not COMPILED or typer.taken == 1

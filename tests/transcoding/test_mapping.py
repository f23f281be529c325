"""Messages to changes and back: the facts that the mapping must get right."""

from __future__ import annotations

import collections
import contextlib
import copy
import json
import types
from decimal import Decimal
from fractions import Fraction
from zoneinfo import ZoneInfo

import pytest

import cdcavro
from cdcavro.change import in_order, join_halves, order_value, split_key_change
from cdcavro.change.model import Arrival, Change, Column, Source, replace, to_record
from cdcavro.errors import MessageError, PayloadError, StructureError
from cdcavro.exact import jsontext
from cdcavro.exact.jsontext import to_bytes
from cdcavro.exact.numbers import ExactNumber, decimals, number_text
from cdcavro.formats import BRIDGES
from cdcavro.formats.connect_columns import PLACEHOLDER
from cdcavro.lake import TypedRows
from cdcavro.table import TableName, TypeOverrides, create_table
from cdcavro.transcoding import SchemaHistory, Transcoder
from cdcavro.transcoding.mapping import from_changes, to_changes, with_columns
from cdcavro.transcoding.transcoder import count_unzoned
from cdcavro.wire.formats import FORMATS, get_format
from support.facts import facts_of, text_of
from support.messages import goldens, shop_canal, shop_debezium
from support.roundtrip import error_of, exact

SHANGHAI = ZoneInfo("Asia/Shanghai")
BERLIN = ZoneInfo("Europe/Berlin")
MESSAGES = [(format, text) for format in cdcavro.FORMATS for text in goldens(format)]
MESSAGES += [("oms_canal", text) for text in shop_canal()]
# A fraction, finer than the seconds in which the format's times are written.
MESSAGES += [("oms_shareplex", b'{"data":{"id":1},"meta":{"op":"ins","time":"2020-11-25T00:01:02.500"}}')]


def change(text: str, format: str, **given) -> Change:
    """Return the only change of a message."""
    (found,) = to_changes(text, format, **given)
    return found


def default(meta: str = "", **members: str) -> str:
    """Write a Default message: members of its metadata, and members of the envelope."""
    envelope = {"prevStruct": "null", "postStruct": '{"id":1}', "recordType": '"INSERT"'} | members
    return f'{{"allMetaData":{{{meta}}},' + ",".join(f'"{name}":{value}' for name, value in envelope.items()) + "}"


@pytest.mark.parametrize("zone", [None, SHANGHAI, BERLIN])
def test_every_message_comes_back_from_its_changes_whole(zone):
    """What a change has no field for is kept in `members`."""
    for format, text in MESSAGES:
        (back,) = from_changes(to_changes(text, format, zone=zone), format, zone=zone)
        assert exact(back) == exact(text)


NUMBERS = b'{"data":{"a":1,"b":1.5,"c":1.20,"d":18446744073709551616,"e":{"f":[0.0,true]},"g":"1"},"meta":{"op":"ins"}}'


CANAL = (
    '{"type":"UPDATE","database":"shop","table":"t","pkNames":["id"],"mysqlType":{"id":"int","price":"decimal(9,2)",'
    '"b/~":"bit(3)","n":"int"},"data":[{"id":7,"price":1.20,"b/~":"0x05","n":null}],"old":[{"price":1.10}]}'
)


@pytest.mark.parametrize(
    ("format", "text", "edit", "put"),
    [
        ("canal", CANAL, {"price": 9}, {'"price":1.20': '"price":"9"'}),
        ("canal", CANAL, {"price": "1.200"}, {'"price":1.20': '"price":"1.200"'}),
        ("canal", CANAL, {"n": 3}, {'"n":null': '"n":"3"'}),
        ("canal", CANAL, {"id": None}, {'"id":7': '"id":null'}),
        ("canal", CANAL, {"b/~": 6}, {'"0x05"': '"6"'}),
        (
            "maxwell",
            '{"type":"insert","database":"d","table":"t","ts":1,"primary_key":[7],"primary_key_columns":["id"],"data":{"id":7}}',
            {"id": 8},
            {"[7]": "[8]", '"id":7': '"id":8'},
        ),
        (
            "maxwell",
            '{"type":"insert","database":"d","table":"t","ts":1,"primary_key":["x"],"data":{"id":7}}',
            {"id": 8},
            {'"id":7': '"id":8'},
        ),
        (
            "maxwell",
            '{"type":"insert","database":"d","table":"t","ts":1,"primary_key":[7],"data":{"id":7}}',
            {"id": 8},
            {'"primary_key":[7],': "", '"id":7': '"id":8'},
        ),
        (
            "oms_default",
            default('"record_primary_key":"id","record_primary_value":"/1"'),
            {"id": 8},
            {'"/1"': '"8"', '"id":1': '"id":8'},
        ),
        (
            "aws_dms",
            '{"data":{"id":7,"n":null},"metadata":{"record-type":"data","operation":"insert","partition-key-value":"d.t.7"}}',
            {"id": 8},
            {',"partition-key-value":"d.t.7"': "", '"id":7': '"id":8'},
        ),
        (
            "aws_dms",
            '{"data":{"id":7,"n":null},"metadata":{"record-type":"data","operation":"insert","partition-key-value":"task"}}',
            {"n": 8},
            {'"n":null': '"n":8'},
        ),
        (
            "goldengate",
            '{"table":"d.t","op_type":"I","after":{"id":7,"id_isMissing":false,"n":null,"n_isMissing":true}}',
            {"n": 8},
            {'"n":null,"n_isMissing":true': '"n":8'},
        ),
    ],
)
def test_a_value_that_is_edited_is_written_and_the_others_are_spelled_as_they_came(format, text, edit, put):
    """Its members say how the message spelled the value that it had; keys that a message repeats follow their columns."""
    found = Change.from_avro(change(text, format).to_avro())
    (back,) = from_changes([replace(found, after=found.after | edit)], format)
    wanted = text
    for old, new in put.items():
        assert old in wanted
        wanted = wanted.replace(old, new)
    assert exact(back) == exact(wanted)
    assert exact(from_changes([found], format)[0]) == exact(text)


@pytest.mark.parametrize("format", ["canal", "goldengate"])
def test_a_column_that_is_taken_out_of_a_row_is_not_written(format):
    """Neither its value as it was spelled nor what says that it is stated."""
    text = CANAL if format == "canal" else '{"table":"d.t","op_type":"I","after":{"id":7,"id_isMissing":false,"n":1}}'
    found = change(text, format)
    (back,) = from_changes([replace(found, after={"n": 5})], format)
    row = json.loads(back)["data"][0] if format == "canal" else json.loads(back)["after"]
    assert row == {"n": "5" if format == "canal" else 5}


@pytest.mark.slow
def test_every_value_of_every_message_can_be_edited():
    """Also where numbers came as numbers in a format that sends strings; without members the same is written."""
    count = 0
    for format, text in [*MESSAGES, *(("canal", text) for text in goldens("oms_canal"))]:
        changes = to_changes(text, format)
        for i, one in enumerate(changes):
            # The key of a Kafka record is not edited with its row's.
            fixed = one.key or () if b'"headers"' in to_bytes(text) else ()
            for name in (one.after or {}).keys() - fixed:
                edited = [*changes[:i], replace(one, after=one.after | {name: "11"}), *changes[i + 1 :]]
                bare = [replace(other, members=None) for other in edited]
                (back,), (plain,) = (from_changes(rows, format) for rows in (edited, bare))
                row, wanted = (to_changes(message, format)[i].after for message in (back, plain))
                assert number_text(row[name]) == "11" or row[name] == wanted[name]
                count += 1
    assert count > 500


def test_a_value_that_a_connector_spells_by_a_mode_of_its_own_can_be_edited():
    """The bare message has another text for it, which the members keep beside it."""
    history = SchemaHistory(times="isostring")
    source = {"connector": "mysql", "db": "d", "table": "t"}
    create = {"source": source, "databaseName": "d", "ddl": "CREATE TABLE t", "tableChanges": [
        {"type": "CREATE", "id": '"d"."t"', "table": {"columns": [
            {"name": name, "typeName": "DATE", "typeExpression": "DATE"} for name in ("x", "y")]}}]}  # fmt: skip
    row = {"op": "c", "before": None, "after": {"x": "2024-02-29Z", "y": "2024-02-29Z"}, "source": source}
    history.read(json.dumps(create), "debezium")
    (found,) = history.read(json.dumps(row), "debezium")
    assert json.loads(from_changes([found], "debezium")[0])["after"] == row["after"]
    edited = replace(found, after=found.after | {"x": "2024-03-01"})
    assert json.loads(from_changes([edited], "debezium")[0])["after"] == {"x": 19783, "y": "2024-02-29Z"}


@pytest.mark.parametrize("text", ["[]", "7", '{"/data/0/id":7}'])
def test_notes_on_spelled_values_that_are_no_texts_are_refused(text):
    """A change may come from anywhere."""
    found = change(CANAL, "canal")
    message = error_of(from_changes, [replace(found, members=found.members | {"bare": text})], "canal")
    assert message.startswith("change: $.members.bare: expected an object of texts")
    bad = replace(found, members=found.members | {"/data/0/id": "7x"})
    with pytest.raises(PayloadError, match="in extras"):
        from_changes([bad], "canal")


def test_numbers_of_rows_are_decimals_if_asked_for():
    """A column has one kind of number then, with the digits that were sent; texts, booleans and nulls stay."""
    after = change(NUMBERS, "oms_shareplex", numbers="decimal").after
    nested = {"f": [Decimal("0.0"), True]}
    expected = {"a": Decimal(1), "b": Decimal("1.5"), "c": Decimal("1.20"), "d": Decimal(2**64), "e": nested, "g": "1"}
    assert repr(after) == repr(expected)
    usual = change(NUMBERS, "oms_shareplex", numbers="exact")
    assert to_record(usual) == to_record(change(NUMBERS, "oms_shareplex"))
    assert [type(value).__name__ for value in usual.after.values()] == [
        "int",
        "float",
        *["ExactNumber"] * 2,
        "dict",
        "str",
    ]


def test_other_kinds_of_numbers_are_refused():
    """The error names those that there are."""
    with pytest.raises(ValueError, match="numbers: expected 'exact' or 'decimal', got 'decimals'"):
        to_changes(NUMBERS, "oms_shareplex", numbers="decimals")
    with pytest.raises(StructureError, match="a number that a Decimal can hold, got '1E9999999999999999999'"):
        to_changes(NUMBERS.replace(b"1.20", b"1E9999999999999999999"), "oms_shareplex", numbers="decimal")


def test_decimals_go_back_as_the_digits_that_they_are():
    """Changes with Decimals become the same messages and payloads as those with exact numbers, in every format."""
    compared = 0
    for format, text in MESSAGES:
        usual = to_changes(text, format)
        decimal = to_changes(text, format, numbers="decimal")
        if not any(map(_has_exponents, usual)):
            compared += repr(usual) != repr(decimal)
            assert from_changes(decimal, format) == from_changes(usual, format)
            assert [one.to_avro() for one in decimal] == [one.to_avro() for one in usual]
    assert compared > 60


def _has_exponents(change: Change) -> bool:
    """Return whether numbers of the rows are spelled with an exponent, which a Decimal spells in its own way."""
    values = [value for image in (change.before, change.after) for value in (image or {}).values()]
    return any(number_text(value) != number_text(decimals(value)) for value in values if type(value) is not str)


class OfFloat(float):
    """A float such as numpy's."""


@pytest.mark.parametrize("value", [float("nan"), float("-inf"), Decimal("sNaN"), OfFloat("nan"), (1, float("inf"))])
@pytest.mark.parametrize("format", ["oms_canal", "canal", "debezium", "oms_default", "maxwell", "dts_avro"])
def test_what_is_no_json_number_is_refused_with_its_place(value, format):
    """JSON has no NaN and no infinities: libraries for JSON write null in their place, or words that are no JSON."""
    (usual,) = to_changes('{"type":"UPDATE","table":"t","data":[{"id":7}],"old":[{"id":6}]}', "oms_canal")
    got = value[1] if isinstance(value, tuple) else value
    for rows, place in (
        ({"after": {"a/b": value}}, '$.after["a/b"]'),
        ({"before": {"j": [{"k": value}]}}, "$.before.j"),
    ):
        changed = replace(usual, **rows)
        with pytest.raises(StructureError) as raised:
            from_changes([usual, changed], format)
        assert str(raised.value) == f"{format}: {place}: expected a JSON number, got {got}"
        with pytest.raises(StructureError) as raised:
            cdcavro.Tables().add(changed)
        assert str(raised.value) == f"oms_canal: {place}: expected a JSON number, got {got}"


@pytest.mark.parametrize("format", ["oms_canal", "canal", "canal_protobuf", "debezium"])
@pytest.mark.parametrize("value", [b"ab", {1}, Fraction(7), 1j])
def test_what_is_no_json_value_is_refused(value, format):
    """Also by formats that write values as texts: what Python calls the value is no text of a column."""
    (usual,) = to_changes('{"type":"INSERT","table":"t","data":[{"id":7}]}', "oms_canal")
    with pytest.raises(TypeError, match=f"{type(value).__name__} is no JSON value|not JSON serializable"):
        from_changes([replace(usual, after={"id": value})], format)


@pytest.mark.slow
def test_decimals_are_typed_as_the_digits_that_they_are():
    """Typed rows are the same whether a change has Decimals or exact numbers."""
    compared = 0
    for text in (*shop_canal(), *shop_debezium()):
        usual, decimal = (to_changes(text, cdcavro.sniff(text), numbers=numbers) for numbers in ("exact", "decimal"))
        if not any(map(_has_exponents, usual)):
            compared += repr(usual) != repr(decimal)
            one, other = (
                [row.payload for each in rows for row in cdcavro.Tables().add(each)] for rows in (usual, decimal)
            )
            assert one == other
    assert compared > 3


def test_every_change_goes_through_avro():
    """A change is a record of change.avsc like any other."""
    for format, text in MESSAGES:
        for one in to_changes(text, format):
            assert repr(Change.from_avro(one.to_avro())) == repr(one)


def test_an_oms_default_change_has_every_fact_of_its_message():
    """The whole change, field by field."""
    meta = (
        '"dbType":"ob_mysql","db":"tenant1.shop.eu","table_name":"t","record_primary_key":"a\\u0001b",'
        '"timestamp":"1609344671","checkpoint":"1609344670","storeDataSequence":160934467100012,"uniqueId":"x7"'
    )
    text = default(meta, prevStruct='{"a":"1\\u00012","b":2,"c":1.20}', postStruct="null", recordType='"DELETE"')
    assert change(text, "oms_default") == Change(
        op="DELETE",
        operation="DELETE",
        source=Source(format="oms_default", db_type="ob_mysql", tenant="tenant1", database="shop.eu", table="t"),
        key=("a", "b"),
        before={"a": "1\x012", "b": 2, "c": ExactNumber("1.20")},
        position=(1609344671, 12),
        event_time=1_609_344_671_000_000,
        checkpoint_time=1_609_344_670_000_000,
        transaction="x7",
        members={
            "/allMetaData/source_identity": "",
            "/allMetaData/record_primary_value": "",
        },
    )


@pytest.mark.parametrize(
    ("db_type", "tenant", "database"),
    [("OCEANBASE", "a", "b.c"), ("Ob_MySQL", "a", "b.c"), ("MYSQL", None, "a.b.c"), ("mysql", None, "a.b.c")],
)
def test_a_tenant_is_split_off_on_oceanbase_only(db_type, tenant, database):
    """At the first dot, and the type compares without case."""
    source = change(default(f'"dbType":"{db_type}","db":"a.b.c"'), "oms_default").source
    assert (source.tenant, source.database) == (tenant, database)


@pytest.mark.parametrize("names", ["a\\u0001b", "a/u0001b"])
def test_composite_key_names_are_split_at_u0001_as_old_documents_print_it_too(names):
    """Key values are never split: they come from the image."""
    assert change(default(f'"record_primary_key":"{names}"'), "oms_default").key == ("a", "b")


@pytest.mark.parametrize(
    ("ddl", "op"),
    [
        ("ALTER TABLE t ADD c INT", "ALTER"),
        ("create table t (a int)", "CREATE"),
        ("/* x */ DROP TABLE t", "ERASE"),
        ("-- x\ntruncate table t", "TRUNCATE"),
        ("RENAME TABLE a TO b", "RENAME"),
        ("CREATE UNIQUE INDEX i ON t (a)", "CINDEX"),
        ("DROP INDEX i ON t", "DINDEX"),
        ("GRANT ALL ON t TO u", "QUERY"),
    ],
)
def test_the_kind_of_an_oms_ddl_is_told_by_its_statement(ddl, op):
    """`recordType` says DDL only; the statement is not a row."""
    text = ddl.replace("\n", "\\n")
    found = change(default(postStruct=f'{{"ddl":"{text}"}}', recordType='"DDL"'), "oms_default")
    assert (found.op, found.ddl, found.after) == (op, ddl, None)


def test_a_column_called_ddl_is_not_a_statement():
    """Only a record of type DDL with that only column is one."""
    found = change(default(postStruct='{"ddl":"DROP TABLE t"}'), "oms_default")
    assert (found.op, found.ddl, found.after) == ("INSERT", None, {"ddl": "DROP TABLE t"})


def test_a_row_of_a_full_load_is_a_snapshot_and_its_checkpoint_no_time():
    """In the full phase `checkpoint` holds key values."""
    found = change(default('"checkpoint":"1609344670"', recordType='"ROW"'), "oms_default")
    assert (found.op, found.after, found.checkpoint_time) == ("SNAPSHOT", {"id": 1}, None)


@pytest.mark.parametrize(
    ("value", "position"), [("1609344671", (1609344671, 0)), ('"16093446717"', (1609344671, 7)), ("7", None)]
)
def test_store_data_sequence_is_ordered_by_both_its_parts(value, position):
    """A timestamp and up to five digits whose padding is not documented."""
    assert change(default(f'"storeDataSequence":{value}'), "oms_default").position == position


def test_light_type_is_columns_and_not_a_column():
    """A DELETE has its types in prevStruct."""
    image = '{"id":1,"__light_type":{"id":{"schemaType":"BIGINT"}}}'
    text = default(prevStruct=image, postStruct="null", recordType='"DELETE"')
    found = change(text, "oms_default_extend_column_type")
    assert (found.before, found.columns) == ({"id": 1}, (Column(name="id", type="BIGINT"),))
    heartbeat = change(default(postStruct="null", recordType='"HEARTBEAT"'), "oms_default_extend_column_type")
    assert (heartbeat.op, heartbeat.columns) == ("HEARTBEAT", None)


def test_old_belongs_to_data_row_by_row():
    """Missing from old: unchanged; null in old: it was NULL; absent from data: kept in before."""
    text = (
        '{"type":"UPDATE","pkNames":["id"],"data":[{"id":1,"a":2,"b":3},{"id":2,"a":null}],'
        '"old":[{"a":null},{"a":1,"gone":5}]}'
    )
    first, second = to_changes(text, "oms_canal")
    assert (first.before, first.after) == ({"id": 1, "a": None, "b": 3}, {"id": 1, "a": 2, "b": 3})
    assert (second.before, second.after) == ({"id": 2, "a": 1, "gone": 5}, {"id": 2, "a": None})
    assert (first.changed, second.changed) == (("a",), ("a", "gone"))
    assert [(one.row, one.rows) for one in (first, second)] == [(0, 2), (1, 2)]


@pytest.mark.parametrize(("olds", "got"), [('{"a":2}', 1), ('{"a":2},{"a":3},null', 3)])
def test_an_old_of_another_length_than_data_is_refused(olds, got):
    """Nothing is invented for it, and no row is taken for another's."""
    text = f'{{"type":"UPDATE","data":[{{"a":1}},{{"a":2}}],"old":[{olds}]}}'
    expected = f"oms_canal: $.old: expected as many rows in old as in data (2), got {got}"
    assert error_of(to_changes, text, "oms_canal") == expected


def test_a_shareplex_update_has_its_changed_columns_laid_over_the_key():
    """`key` is the whole row before the change, `data` only what changed; `idx` breaks ties."""
    text = (
        '{"data":{"b":3},"key":{"a":1,"b":2},'
        '"meta":{"op":"upd","table":"shop.t.x","scn":"160934467100012","idx":"3/10","trans":"9"}}'
    )
    found = change(text, "oms_shareplex")
    assert (found.before, found.after, found.changed) == ({"a": 1, "b": 2}, {"a": 1, "b": 3}, ("b",))
    assert (found.source.database, found.source.table) == ("shop", "t.x")
    assert found.position == (1609344671, 12, 3)


@pytest.mark.parametrize(
    ("zone", "local", "instant"),
    [
        (None, "2020-11-25T00:01:02", None),
        (SHANGHAI, "2020-11-25T00:01:02", 1_606_233_662_000_000),
        (BERLIN, "2020-11-25T00:01:02", 1_606_258_862_000_000),
        (BERLIN, "2020-10-25T02:30:00", None),
        (BERLIN, "2020-03-29T02:30:00", None),
    ],
)
def test_a_time_without_a_zone_is_an_instant_only_in_one(zone, local, instant):
    """Where summer time begins or ends, a local time may be none or two: it stays text."""
    text = f'{{"data":{{}},"meta":{{"op":"ins","time":"{local}"}}}}'
    found = change(text, "oms_shareplex", zone=zone)
    assert found.event_time == instant
    assert (found.members or {}).get("/meta/time") == (None if instant else f'"{local}"')


@pytest.mark.parametrize("zone", [None, BERLIN])
@pytest.mark.parametrize("text", ["2020-11-25T00:01:02Z", "2020-11-25T08:01:02+08:00"])
def test_a_shareplex_time_with_a_zone_is_an_instant(text, zone):
    """It comes back as it was sent, and is not counted among those without a zone."""
    message = f'{{"data":{{}},"meta":{{"op":"ins","time":"{text}","posttime":"{text}"}}}}'
    found = change(message, "oms_shareplex", zone=zone)
    assert (found.event_time, found.system_time) == (1_606_262_462_000_000, 1_606_262_462_000_000)
    assert count_unzoned([found]) == 0
    assert [exact(back) for back in from_changes([found], "oms_shareplex", zone=zone)] == [exact(message)]


def test_dataworks_times_are_milliseconds_but_for_the_checkpoint():
    """`checkpointTime` is in seconds there and in milliseconds in DataHub."""
    times = '"timestamp":{"eventTime":1647581000001,"systemTime":1647581000795,"checkpointTime":1647581000}'
    found = change(f'{{"version":"2.0","payload":{{"op":"INSERT",{times}}}}}', "oms_dataworks")
    assert (found.event_time, found.system_time) == (1_647_581_000_001_000, 1_647_581_000_795_000)
    assert found.checkpoint_time == 1_647_581_000_000_000
    blob = change(f'{{"payload":{{"op":"INSERT","sequenceId":"1",{times}}}}}', "datahub_blob")
    assert blob.checkpoint_time == 1_647_581_000_000


@pytest.mark.parametrize(("scn", "position"), [('"null"', None), ('"12"', (12,)), ("12", (12,)), ('"1e3"', None)])
def test_an_scn_is_a_number_or_none(scn, position):
    """Some senders write the string null."""
    assert change(f'{{"version":"2.0","payload":{{"op":"INSERT","scn":{scn}}}}}', "oms_dataworks").position == position


def test_a_full_load_row_of_a_blob_is_a_snapshot_without_times():
    """`sequenceId` -1 and times of -1."""
    text = (
        '{"payload":{"op":"INSERT","sequenceId":"-1","after":{"dataColumn":{"id":1}},'
        '"timestamp":{"eventTime":-1,"checkpointTime":-1,"systemTime":1731661820245}}}'
    )
    found = change(text, "datahub_blob")
    assert (found.op, found.position, found.event_time, found.checkpoint_time) == ("SNAPSHOT", None, None, None)
    assert found.system_time == 1_731_661_820_245_000


@pytest.mark.parametrize(
    ("op", "images", "expected"),
    [
        ("UPDATE_BEFOR", '"before":{"dataColumn":{"a":1}}', ("UPDATE", "BEFORE")),
        ("UPDATE_BEFORE", '"before":{"dataColumn":{"a":1}},"after":null', ("UPDATE", "BEFORE")),
        ("UPDATE_AFTER", '"after":{"dataColumn":{"a":1}}', ("UPDATE", "AFTER")),
        ("UPDATE_AFTER", '"before":{"dataColumn":{"a":1}},"after":{"dataColumn":{"a":2}}', ("UPDATE", None)),
        ("UPDATE", '"before":{"dataColumn":{"a":1}},"after":{"dataColumn":{"a":2}}', ("UPDATE", None)),
        ("MHEARTBEAT", '"timestamp":{}', ("HEARTBEAT", None)),
        ("TRANSACTION_BEGIN", '"timestamp":{}', ("TRANSACTION_BEGIN", None)),
        ("ERASE", '"ddl":{"text":"DROP TABLE t"}', ("ERASE", None)),
        ("SOMETHING", '"timestamp":{}', ("OTHER", None)),
    ],
)
def test_blob_operations(op, images, expected):
    """An update is two halves or one message; an unknown operation is kept as it was spelled."""
    found = change(f'{{"payload":{{"op":"{op}",{images}}}}}', "datahub_blob")
    assert (found.op, found.half) == expected
    assert found.operation == op


def test_ddl_meta_is_carried_and_never_read():
    """A payload that would be code to Java's deserialization is text here."""
    text = '{"payload":{"op":"ALTER","ddl":{"text":"ALTER TABLE t","ddlMeta":"rO0ABXNy"}}}'
    assert change(text, "datahub_blob").ddl_meta == "rO0ABXNy"


def test_a_tuple_row_says_by_its_images_what_it_is():
    """With `_operation_type_` and without."""
    images = {"I": ("N", "Y"), "D": ("Y", "N")}
    for operation, (before, after) in images.items():
        text = f'{{"_operation_type_":"{operation}","_before_image_":"{before}","_after_image_":"{after}","id":1}}'
        found = change(text, "datahub_tuple")
        assert (found.op, found.half) == ({"I": "INSERT", "D": "DELETE"}[operation], None)
        assert (found.before, found.after) == ((None, {"id": 1}) if operation == "I" else ({"id": 1}, None))
    unknown = change('{"_sequence_id_":"7","_before_image_":"N","_after_image_":"Y","id":1}', "datahub_tuple")
    assert (unknown.op, unknown.half, unknown.position) == ("UPDATE", "AFTER", (7,))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            '{"id":1}',
            (
                "datahub_tuple: $: expected one of the metadata columns _sequence_id_, _operation_type_, _excute_time_, "
                "_source_table_, _before_image_, _after_image_, got none"
            ),
        ),
        (
            '{"_operation_type_":"I","_before_image_":"Y","_after_image_":"N"}',
            "datahub_tuple: $: expected the other image for I, got the row before the change",
        ),
        (
            '{"_operation_type_":"I"}',
            "datahub_tuple: $: expected Y and N, or N and Y, as _before_image_ and _after_image_, got None and None",
        ),
    ],
)
def test_a_tuple_row_that_is_no_change_says_so(text, expected):
    """A topic without metadata columns has no changes."""
    assert error_of(to_changes, text, "datahub_tuple") == expected


def test_column_values_keep_the_digits_of_the_source():
    """Nanoseconds and 700 digits included."""
    digits = "9." + "9" * 700 + "E-308"
    text = f'{{"version":"2.0","payload":{{"op":"INSERT","after":{{"data":{{"ts":1590315269000.123456789,"d":{digits}}}}}}}}}'
    after = change(text, "oms_dataworks").after
    assert after == {"ts": ExactNumber("1590315269000.123456789"), "d": ExactNumber(digits)}


def test_a_place_is_carried_by_a_change():
    """Topic, partition and offset, or file and line."""
    one = Change(op="INSERT", place=Arrival(topic="t", partition=3, offset=2**40))
    assert Change.from_avro(one.to_avro()).place == one.place


@pytest.mark.parametrize(
    ("facts", "position"),
    [
        ('"scn":"123456789","idx":"2/10","seq":7', (123_456_789, 2, 7)),
        ('"scn":"160934467100012","idx":"2/10","seq":"7"', (1_609_344_671, 12, 2, 7)),
        ('"scn":"160934467100012","seq":"7"', (1_609_344_671, 12, 0, 7)),
        ('"scn":160934467100012,"idx":"2/10"', (1_609_344_671, 12, 2)),
        ('"seq":7,"idx":"2/10"', (7, 2)),
        ('"seq":7', (7,)),
        ('"idx":"2/10"', None),
    ],
)
def test_a_shareplex_change_is_ordered_by_scn_idx_and_seq(facts, position):
    """Each breaks the ties of those before it."""
    assert change(f'{{"data":{{}},"meta":{{"op":"ins",{facts}}}}}', "oms_shareplex").position == position


DTS_META = {"time": "2017-06-16T14:24:34", "posttime": "2017-06-16T14:33:52", "op": "ins", "table": "s.t", "seq": 1}


@pytest.mark.parametrize("times", [DTS_META, {"op": "ins"}, {"op": "ins", "time": "2017-06-16T14:24:34Z"}])
def test_a_system_change_number_of_any_length_is_one_number(times):
    """Alibaba DTS sends Oracle's own, whose beginning may be a time, but not one at which the message was made."""
    numbers = [10**digits + more for digits in range(18) for more in (-1, 0, 1)] + [
        14_589_063_118_712,
        15_999_999_999_999,
        16_000_000_000_000,
        2**63 - 1,
    ]
    if "time" not in times:
        numbers = [number for number in numbers if str(number)[:2] not in ("15", "16")]  # which may be of OMS
    texts = [json.dumps({"data": {}, "meta": {**times, "scn": str(number)}}) for number in sorted({*numbers} - {0})]
    positions = [change(text, "oms_shareplex").position for text in texts]
    assert positions == sorted(positions)
    assert [position[0] for position in positions] == sorted({*numbers} - {0})


@pytest.mark.parametrize(
    ("time", "posttime", "position"),
    [
        ("2020-12-30T16:11:11", "2020-12-30T16:11:12", (1_609_344_671, 12)),
        ("2020-12-31T00:11:11", None, (1_609_344_671, 12)),  # the same in Shanghai
        (None, "2020-12-30T10:11:11", (1_609_344_671, 12)),
        ("2020-12-01T00:00:00", "2021-02-01T00:00:00", (1_609_344_671, 12)),  # numbered while an old log was read
        ("2021-02-01T00:00:00", "2020-12-01T00:00:00", (1_609_344_671, 12)),  # clocks that disagree
        ("2020-12-01T00:00:00", "2020-12-29T00:00:00", (160_934_467_112,)),
        ("2021-01-01T00:00:00", None, (160_934_467_112,)),
        ("no time", "", (1_609_344_671, 12)),
    ],
)
def test_a_number_of_oms_begins_with_a_time_of_its_message(time, posttime, position):
    """From when the change was made to when the message was, a day more for zones; the counter has up to five digits."""
    meta = {"op": "ins", "scn": "160934467112", "time": time, "posttime": posttime}
    assert change(json.dumps({"data": {}, "meta": meta}), "oms_shareplex").position == position


@pytest.mark.parametrize(
    ("row", "position"),
    [
        ("AAATGpAAIAAItcIAAA", (14_975_366_740,)),
        ("s.t-7", (1_497_536_674, 0)),
        ("s.t7", (1_497_536_674, 0)),
        (None, (1_497_536_674, 0)),
    ],
)
def test_a_rowid_of_oracle_tells_a_system_change_number_from_a_time(row, position):
    """Though its beginning is a time at which the message can have been made."""
    meta = {**DTS_META, "scn": "14975366740", "rowid": row}
    del meta["seq"]
    assert change(json.dumps({"data": {}, "meta": meta}), "oms_shareplex").position == position


@pytest.mark.parametrize("format", cdcavro.FORMATS)
def test_an_unknown_operation_is_kept_as_it_is_spelled(format):
    """It is told by `OTHER`, and written again in its format without the help of `members`; no other has a place for the row."""
    text = text_of(facts_of(format)["unknown operation"])
    found = change(text, format)
    assert (found.op, found.operation) == ("OTHER", "REPLACE")
    (back,) = from_changes([replace(Change.from_avro(found.to_avro()), members=None)], format)
    assert change(back, format).operation == "REPLACE"
    sentence = (
        f"{format}: $: expected an operation on a row that is known, because the message holds a row, got 'REPLACE'"
    )
    for other in set(cdcavro.FORMATS) - {format}:
        assert error_of(from_changes, [found], other) == sentence
        assert error_of(cdcavro.transcode, text, format, other) == sentence


@pytest.mark.parametrize(
    "image", ['{"ddl":"DROP TABLE t","x":1}', '{"x":1,"ddl":"DROP TABLE t"}', '{"ddl ":"DROP TABLE t"}']
)
def test_an_oms_ddl_with_other_columns_is_no_statement(image):
    """The document: records that "contain only keys with the column name of ddl"."""
    found = change(default(postStruct=image, recordType='"DDL"'), "oms_default")
    assert (found.ddl, found.after, found.op) == (None, exact_row(image), "QUERY")


@pytest.mark.parametrize(
    ("format", "text"),
    [
        ("oms_dataworks", '{"version":"2.0","payload":{"op":"REPLACE","ddl":{"text":"x"}}}'),
        ("datahub_blob", '{"payload":{"op":"REPLACE","ddl":{"text":"x"}}}'),
    ],
)
def test_a_statement_of_an_unknown_operation_is_written_again(format, text):
    """Without the help of `members`."""
    (back,) = from_changes([replace(change(text, format), members=None)], format)
    assert change(back, format).ddl == "x"


def exact_row(text: str) -> dict[str, object]:
    """Parse an object of strings and integers."""
    return {name: value if type(value) is str else int(value.text) for name, value in exact(text).items()}


def test_a_record_of_a_change_is_the_callers_own():
    """What is done to it changes no other change of these columns."""
    one = Change(op="INSERT", columns=(Column(name="id", type="int"),), after={"id": 1})
    before = one.to_avro()
    to_record(one)["columns"][0]["type"] = "other"
    assert one.to_avro() == before


def test_a_text_is_no_list_of_names():
    """A comma that was forgotten is told."""
    for given in ({"key": "id"}, {"changed": "id"}):
        with pytest.raises(StructureError, match="expected array, got string"):
            Change(op="INSERT", **given).to_avro()


@pytest.mark.parametrize(
    ("format", "kind"),
    [
        *((format, collections.OrderedDict) for format in ("canal", "oms_canal", "debezium", "oms_default")),
        ("canal", types.MappingProxyType),
    ],
)
def test_rows_may_be_any_mapping_that_has_items(format, kind):
    """Whoever made them: both builds write them alike."""
    one, other = (Change(op="INSERT", after=row) for row in (kind({"a": 1}), {"a": 1}))
    assert cdcavro.from_changes([one], format) == cdcavro.from_changes([other], format)


def test_values_that_hold_themselves_are_an_error():
    """They end neither in a loop nor in a crash."""
    one, other = [1], [1]
    one.append(one)
    other.append(other)
    with pytest.raises(RecursionError):
        jsontext.same(one, other)


def test_columns_may_be_a_list_that_grows():
    """What was made of it before is not taken for what it is now."""
    columns = [Column(name="id", type="int")]
    one = Change(op="INSERT", columns=columns, after={"id": 1})
    cdcavro.from_changes([one], "canal")
    columns.append(Column(name="n", type="int"))
    assert b'"n":"int"' in cdcavro.from_changes([one], "canal")[0]


def test_a_message_that_is_kept_whole_is_put_in_only_if_no_row_is_missing():
    """What tells of the whole message tells nothing of one row."""
    first, second = to_changes('{"type":"INSERT","data":[{"id":1},{"id":2}]}', "oms_canal")
    kept = replace(first, members={"": '{"type":"INSERT","data":[{"id":1},{"id":2}],"more":1}'})
    assert [json.loads(text).get("more") for text in from_changes([kept, second], "oms_canal")] == [1]
    assert [json.loads(text)["data"] for text in from_changes([kept], "oms_canal")] == [[{"id": 1}]]


def with_others(value, others):
    """Yield once for each member and item within a JSON value and each other value, which then stands in its place."""
    if isinstance(value, (dict, list)):
        for name, member in list(value.items() if isinstance(value, dict) else enumerate(value)):
            for other in others:
                value[name] = other
                yield
            value[name] = member
            yield from with_others(member, others)


@pytest.mark.slow
@pytest.mark.parametrize("format", FORMATS)
def test_a_value_of_any_kind_in_any_place_is_taken_or_refused(format):
    """Whatever is an object or an array where no format has one is no other error."""
    counts = collections.Counter()
    for message in goldens(format):
        value = json.loads(message)
        for _ in with_others(value, [None, 7, "x", [], {}]):
            try:
                counts["taken"] += len(to_changes(json.dumps(value), format, members=False)) > 0
            except MessageError:
                counts["refused"] += 1
    assert min(counts["taken"], counts["refused"]) > 0


SCHEMA_CHANGE = {
    "source": {"connector": "oracle", "db": "D", "schema": "S", "table": "T", "scn": "1"},
    "databaseName": "D",
    "schemaName": "S",
    "ddl": "CREATE TABLE S.T (ID NUMBER(9) PRIMARY KEY, DOC CLOB)",
    "tableChanges": [
        {
            "type": "CREATE",
            "id": '"D"."S"."T"',
            "table": {
                "primaryKeyColumnNames": ["ID"],
                "columns": [
                    {"name": "ID", "jdbcType": 2, "typeName": "NUMBER", "typeExpression": "NUMBER", "length": 9},
                    {"name": "DOC", "jdbcType": 2005, "typeName": "CLOB", "typeExpression": "CLOB"},
                ],
            },
        }
    ],
}
UNLOGGED = {
    "before": None,
    "after": {"ID": 1, "DOC": PLACEHOLDER},
    "source": SCHEMA_CHANGE["source"] | {"scn": "2"},
    "op": "u",
    "ts_ms": 2,
}
HISTORY = [json.dumps(SCHEMA_CHANGE), json.dumps(UNLOGGED)]


def changes_of(messages, format: str = "debezium", **given) -> list[Change]:
    """Return the changes of messages."""
    return [one for message in messages for one in to_changes(message, format, **given)]


def test_a_placeholder_is_no_value_of_a_column_that_only_the_history_knows():
    """A row that states no columns, as without embedded schemas, lacks what its source did not log, wherever it goes."""
    history, tables, transcoder = SchemaHistory(), cdcavro.Tables(), Transcoder("debezium", "oms_canal")
    completed = [history.add(one) for one in changes_of(HISTORY)][-1]
    assert (completed.after, completed.unavailable) == ({"ID": 1}, ("DOC",))
    typed = [made for one in changes_of(HISTORY) for made in tables.add(one)][-1]
    assert typed.absent == ("DOC",)
    assert PLACEHOLDER.encode() not in typed.payload
    made = [outcome.result() for message in HISTORY for outcome in transcoder.add(message)][-1]
    assert json.loads(made.texts[0])["data"] == [{"ID": 1}]
    assert ("$.after.DOC", f'"{PLACEHOLDER}"') in [(loss.path, loss.value) for loss in made.losses]
    (back,) = from_changes([completed], "debezium")
    assert exact(back) == exact(HISTORY[1])


# What takes changes, each as a function of a list of them.
TAKERS = {
    "from_changes": lambda changes: [from_changes(changes, format) for format in cdcavro.FORMATS],
    "to_avro": lambda changes: [one.to_avro() for one in changes],
    "order_key": lambda changes: [cdcavro.order_key(one) for one in changes],
    "order_value": lambda changes: [order_value(one) for one in changes],
    "in_order": in_order,
    "shard": lambda changes: [cdcavro.shard(one, 3) for one in changes],
    "split_key_change": lambda changes: [split_key_change(one) for one in changes],
    "join_halves": lambda changes: list(join_halves(changes)),
    "SchemaHistory": lambda changes: list(map(SchemaHistory().add, changes)),
    "Tables": lambda changes: list(map(cdcavro.Tables().add, changes)),
    "TypedRows": lambda changes: TypedRows(cdcavro.Tables()).of_batch([[one] for one in changes]),
    "create_table": lambda changes: [
        create_table(TableName(None, None, "t"), one.columns or (), one.key or (), one.source, TypeOverrides({}))
        for one in changes
    ],
    "with_columns": lambda changes: [with_columns(one, (Column(name="id", type="INT"),)) for one in changes],
}


@pytest.mark.slow
@pytest.mark.parametrize("taker", TAKERS)
def test_what_takes_changes_leaves_them_as_they_are(taker):
    """Whoever goes on with a change after a function has it finds what was there before, rows and all."""
    streams = [[one] for format, text in MESSAGES for one in to_changes(text, format)]
    streams += [[one] for message in shop_debezium() for one in to_changes(message, "debezium")]
    for changes in [*streams, changes_of(HISTORY), changes_of(shop_debezium()), changes_of(shop_canal(), "canal")]:
        placed = [replace(one, place=Arrival(file="f", line=line)) for line, one in enumerate(changes, 1)]
        before = copy.deepcopy(placed)
        with contextlib.suppress(cdcavro.CdcAvroError):
            TAKERS[taker](placed)
        assert placed == before


@pytest.mark.parametrize("format", cdcavro.FORMATS)
def test_what_takes_records_leaves_them_as_they_are(format):
    """A record that is written or rendered stays as it was, and so does one that another thing is made of."""
    for text in goldens(format):
        record = get_format(format).parse(text)
        before = copy.deepcopy(record)
        get_format(format).write(record)
        available = BRIDGES[format].remove_unavailable(record, PLACEHOLDER)[0]
        for one in BRIDGES[format].to_changes(get_format(format).message_in(available), None):
            from_changes([one], format)
            to_record(one)
        assert record == before

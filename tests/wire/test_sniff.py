"""Telling the format of a message: what fits, who goes first, and what is nobody's."""

from __future__ import annotations

import copy
import json
import sys
import weakref
from itertools import combinations, product
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cdcavro
from cdcavro.errors import StructureError
from cdcavro.wire import sniff as sniffing
from cdcavro.wire.format import Format
from cdcavro.wire.formats import get_format
from cdcavro.wire.sniff import (
    _describe_marks,
    _fitting_value,
    _looks,
    _marks,
    _shape_of,
    best_format,
    fitting_formats,
    other_format,
)
from support.bounds_trial import FILLERS
from support.calls import calls
from support.messages import SAMPLES, golden_files, goldens, lines, shipped
from support.mutations import mutated
from support.roundtrip import error_of

_LOOKED_FOR = f"a message of a known format ({', '.join(cdcavro.FORMATS)})"
# By what some formats are known.
_DESCRIBED = [
    "oms_default: recordType",
    "oms_canal: type and one of database, table, pkNames, isDdl, es, sql, sqlType, mysqlType, data, old",
    "oms_dataworks: payload.op and one of version, schema.source.table, schema.column, schema.pk, payload.before.data, payload.after.data, payload.scn, extend",
    "oms_shareplex: meta.op",
    "datahub_tuple: one of _sequence_id_, _operation_type_, _excute_time_, _source_table_, _before_image_, _after_image_",
    "debezium: one of topic, op, ts_ms, databaseName, tableChanges, status",
    "maxwell: type",
]
_MAXWELL = [
    {"database": "shop", "table": "t", "type": "insert", "ts": 1, "xid": 2, "commit": True, "data": {"id": 1}},
    {"database": "shop", "table": "t", "type": "update", "ts": 1, "data": {"id": 1}, "old": {"id": 0}},
    {"database": "shop", "table": "t", "type": "bootstrap-start", "ts": 1, "data": {}},
    {"type": "table-alter", "database": "shop", "table": "t", "old": {}, "def": {}, "ts": 1, "sql": "ALTER TABLE t"},
]
_SHAPED_LIKE_DATAWORKS = {
    "schema": {"type": "struct"},
    "payload": {"before": {"data": "x"}, "after": {"data": "y"}, "op": "UPDATE"},
}
_DEBEZIUM = [
    {"before": None, "after": {"id": 1}, "source": {"table": "t"}, "op": "c", "ts_ms": 1, "transaction": None},
    {"schema": {"type": "struct"}, "payload": {"before": None, "after": {"id": 1}, "source": {}, "op": "c"}},
    {"source": {}, "ts_ms": 1, "databaseName": "shop", "schemaName": None, "ddl": "CREATE", "tableChanges": []},
    {"payload": {"before": {"data": "x"}, "after": {"data": "y"}, "op": "u"}},
    {"topic": "shop.t", "key": {"id": 1}, "value": None},
    {"status": "BEGIN", "id": "1", "event_count": None, "data_collections": None},
]
_OTHERS = [
    {"schema": {"type": "struct"}, "payload": {"id": 1, "name": "x"}},
    {"status": "paid", "op": "INSERT", "payload": {"op": "I", "status": "open"}},
]
_SIMPLE = {
    "version": 1,
    "database": "d",
    "table": "t",
    "type": "INSERT",
    "commitTs": 1,
    "buildTs": 2,
    "data": {"a": "1"},
}
_ENRICHED = {
    "after": {"id": 1, "name": "x"},
    "before": None,
    "op": "c",
    "source": {
        "changefeed_sink": "kafka",
        "database_name": "shop",
        "origin": "cockroachdb",
        "primary_keys": ["id"],
        "schema_name": "public",
        "table_name": "t",
        "ts_hlc": "1751161903005030052.0000000000",
    },
    "ts_ns": 1751162467008308178,
}
_COCKROACH = [
    _ENRICHED,
    {name: value for name, value in _ENRICHED.items() if name != "source"},
    _ENRICHED | {"source": {"changefeed_sink": "webhook", "table_name": "t"}, "op": "d", "after": None},
    _ENRICHED | {"source": {"table_name": "t", "ts_hlc": "1751161903005030052.0000000000", "primary_keys": ["id"]}},
    _ENRICHED | {"source": {}},
    _ENRICHED | {"source": None},
    {"after": {"id": 1}, "updated": "1751161903005030052.0000000000"},
    {"after": None, "key": [1], "topic": "t", "before": {"id": 1}, "mvcc_timestamp": "1751161903005030052.0000000001"},
    {"resolved": "1751161903005030052.0000000000"},
]
_NAMED = [
    *((message, "a message of a CockroachDB changefeed") for message in _COCKROACH),
    ({"encrypted": {"iv": "AA==", "bytes": "AA=="}}, "an encrypted message of Maxwell"),
    (_SIMPLE, "a message of TiCDC's Simple Protocol"),
    (
        {"op_type": "INSERT", "op_ts": "2020-01-01T00:00:00.000000Z", "after": {"ID": 1}},
        "a message of Oracle GoldenGate in another form",
    ),
    (
        {"_id": {}, "operationType": "insert", "fullDocument": {"_id": 1}, "ns": {"db": "shop", "coll": "t"}},
        "an event of a MongoDB change stream",
    ),
    (
        {"id": "5563ae14", "aggregate_type": "Initial Snapshot", "type": "COMPLETED", "additional_data": {}},
        "a notification of Debezium",
    ),
    ({"id": "1", "type": "execute-snapshot", "data": {"data-collections": ["a"]}}, "a signal to Debezium"),
    (
        {"data": {"id": 1}, "metadata": {"operation": "insert", "record-type": "row", "table-name": "t"}},
        "a message of AWS DMS in another form",
    ),
]


@pytest.mark.parametrize(
    ("format", "golden"),
    [pytest.param(f, g, id=f"{f}/{name}") for f in cdcavro.FORMATS for name, g in golden_files(f).items()],
)
def test_golden_is_told_whatever_stands_beside_its_members(format, golden):
    """A golden message is told as text and as bytes, and with members that nobody knows."""
    assert cdcavro.sniff(golden) == cdcavro.sniff(golden.decode()) == format
    record = json.loads(golden)
    message = get_format(format).message_in(record)
    beside = {"schemaVersion": 1, **message, "zzz": {}}
    assert cdcavro.sniff(json.dumps(beside if message is record else {**record, "value": beside})) == format


@pytest.mark.parametrize("format", cdcavro.FORMATS)
def test_message_that_is_told_can_be_encoded(format):
    """A golden message that fits several formats fits each of them in earnest, or is told as its own."""
    for golden in goldens(format):
        assert format in fitting_formats(golden)
        cdcavro.encode(golden, format)


@pytest.mark.parametrize(
    ("message", "format"),
    [
        ('{"recordType":"HEARTBEAT"}', "oms_default"),
        ('{"recordType":"DDL","postStruct":{"ddl":"x"}}', "oms_default"),
        ('{"recordType":"INSERT","postStruct":{"__light_type":{}}}', "oms_default_extend_column_type"),
        ('{"recordType":"INSERT","postStruct":{"__light_type":null}}', "oms_default_extend_column_type"),
        ('{"recordType":"INSERT","postStruct":{"__light_type":1}}', "oms_default"),
        ('{"type":"GTID","gtid":"x","es":1}', "canal"),
        ('{"type":"GTID","gtid":null}', "canal"),
        ('{"type":"INSERT","data":[],"id":1}', "canal"),
        ('{"type":"INSERT","data":[]}', "oms_canal"),
        ('{"op":"c"}', "debezium"),
        ('{"value":{"payload":{"op":"d"}}}', "debezium"),
        ('{"ts_ms":1}', "debezium"),
        ('{"topic":null}', "debezium"),
        ('{"key":{"id":2},"value":null}', "debezium"),
        ('{"version":"2.0","payload":{"op":"HEARTBEAT"}}', "oms_dataworks"),
        ('{"version":"0.0.1","schema":{},"payload":{"op":"MHEARTBEAT"}}', "datahub_blob"),
        ('{"version":"1.0.0","payload":{"op":"MHEARTBEAT"}}', "datahub_blob"),
        ('{"payload":{"op":"INSERT","after":{"data":{}}}}', "oms_dataworks"),
        ('{"payload":{"op":"INSERT","after":{"dataColumn":{}}}}', "datahub_blob"),
        ('{"payload":{"op":"INSERT","sequenceId":"-1"}}', "datahub_blob"),
        ('{"payload":{"op":"INSERT","scn":"null"}}', "oms_dataworks"),
        ('{"meta":{"op":"ins"}}', "oms_shareplex"),
        ('{"operation":"DDL","afterText":"DROP TABLE t"}', "dts_avro"),
        ('{"_sequence_id_":"1"}', "datahub_tuple"),
        ('{"_operation_type_":"I","type":"x","data":1}', "datahub_tuple"),
        (' \n{"type" : "QUERY", "sql" : ""} ', "oms_canal"),
        ('{"type":"INSERT","data":[{"n":1E400,"m":' + "9" * 5000 + "}]}", "oms_canal"),
    ],
)
def test_smallest_messages(message, format):
    """What tells a format, alone."""
    assert cdcavro.sniff(message) == format


@pytest.mark.parametrize(
    ("message", "scores"),
    [
        ('{"recordType":"HEARTBEAT"}', {"oms_default": 1, "oms_default_extend_column_type": 1}),
        ('{"payload":{"op":"HEARTBEAT"}}', {}),
        ('{"payload":{"op":"X"},"version":"2.0"}', {"oms_dataworks": 1}),
        ('{"payload":{"op":"X"},"version":"2.1","extend":{}}', {"oms_dataworks": 1}),
        ('{"type":"X","database":"d","data":[],"_sequence_id_":"1"}', {"oms_canal": 2, "canal": 2, "datahub_tuple": 1}),
        ('{"type":"X","database":null}', {"oms_canal": 1, "canal": 1}),
        ('{"type":"X","id":null}', {"canal": 1}),
        ('{"payload":{"op":"u","ts_ms":null},"version":"2.0"}', {"oms_dataworks": 1, "debezium": 2}),
        ('{"op":"x","status":"OPEN"}', {}),
        ('{"type":null,"database":"d"}', {}),
        ("{}", {}),
    ],
)
def test_fit_is_counted_by_telling_members(message, scores):
    """A member counts when it is there, null or not; a required one must have a value; a version tells by its value."""
    assert fitting_formats(message) == scores


def test_most_messages_decide_then_most_members_then_order():
    """A file's format fits most of its messages; a tie goes to the members told, then to the first in order."""
    either = {"oms_default": 1, "oms_default_extend_column_type": 1}
    typed = {"oms_default": 2, "oms_default_extend_column_type": 3}
    assert best_format([either, either]) == "oms_default"
    assert best_format([either, typed]) == "oms_default_extend_column_type"
    assert best_format([{"oms_canal": 1}, {"oms_canal": 1}, {"datahub_tuple": 6}]) == "oms_canal"
    assert best_format([{"oms_canal": 1}, {"datahub_tuple": 6}]) == "datahub_tuple"
    assert best_format([{}, {"oms_shareplex": 1}, {}]) == "oms_shareplex"
    assert best_format([{}, {}]) == best_format([]) == ""


def test_formats_stand_in_the_order_of_precedence():
    """Without `__light_type` a message of the Default family is Default; without `id` and `gtid`, Canal is that of OMS."""
    pairs = [
        ("oms_default", "oms_default_extend_column_type"),
        ("oms_canal", "canal"),
        ("oms_dataworks", "datahub_blob"),
        ("canal", "maxwell"),
        ("goldengate_row", "goldengate"),
    ]
    assert [pair for pair in pairs if cdcavro.FORMATS.index(pair[0]) > cdcavro.FORMATS.index(pair[1])] == []


@pytest.mark.parametrize("message", _DEBEZIUM)
def test_debezium_is_no_other_format(message):
    """It shares names with DataWorks and Blob, but not what tells them."""
    text = json.dumps(message)
    assert list(fitting_formats(text)) == ["debezium"]
    assert cdcavro.sniff(text) == "debezium"
    assert json.loads(cdcavro.decode(cdcavro.encode(text, "debezium"), "debezium")) == message


@pytest.mark.parametrize("message", _OTHERS)
def test_other_peoples_formats_are_not_claimed(message):
    """Kafka Connect without Debezium, and an `op` that is none."""
    assert fitting_formats(json.dumps(message)) == {}
    names = ", ".join(f"'{name}'" for name in message)
    assert_of_no_format(json.dumps(message), f"an object with {names}")


@pytest.mark.parametrize(("message", "name"), _NAMED)
@pytest.mark.parametrize("around", ["%s", '{"topic":"t","key":null,"value":%s}', '{"schema":null,"payload":%s}'])
def test_what_is_known_by_sight_and_not_supported_is_named(message, name, around):
    """Wherever it stands, alone or in a Kafka record or beside its schema."""
    sentence = f"message: $: expected a message of a known format, got {name}, which is not supported"
    assert error_of(cdcavro.sniff, around % json.dumps(message)) == sentence
    assert error_of(fitting_formats, around % json.dumps(message)) == sentence


@pytest.mark.parametrize("around", ["%s", '{"topic":"t","key":null,"value":%s}'])
@pytest.mark.parametrize("message", [message for message, _ in _NAMED] + [{"id": 1, "type": "schema-changes"}])
def test_a_row_whose_columns_are_members_is_its_format_whatever_their_names(message, around):
    """A Tuple record has its own members beside its columns."""
    own = {
        "_sequence_id_": "1",
        "_operation_type_": "I",
        "_excute_time_": 1,
        "_before_image_": "N",
        "_after_image_": "Y",
    }
    row = {name: value for name, value in message.items() if not isinstance(value, dict)}
    for record in (own | row, row | {"_sequence_id_": "1"}, own | message):
        told = fitting_formats(around % json.dumps(record))
        assert told["datahub_tuple"] == len(own.keys() & record.keys())
        assert cdcavro.sniff(around % json.dumps(own | row)) == "datahub_tuple"


@pytest.mark.parametrize(
    ("format", "golden"),
    [
        pytest.param(f, g, id=f"{f}/{name}")
        for f in cdcavro.FORMATS
        for name, g in golden_files(f).items()
        if b'"value"' not in g
    ],
)
def test_a_kafka_record_is_told_by_its_value(format, golden):
    """Whatever stands beside it; a value that is nobody's is not Debezium's."""
    assert cdcavro.sniff(b'{"topic":"t","partition":0,"offset":5,"key":null,"value":' + golden + b"}") == format
    assert cdcavro.sniff(b'{"value":' + golden + b"}") == format


def test_a_kafka_record_of_nothing_that_is_known_is_told_as_that():
    """The sentence says what stands in it."""
    sentence = f"message: $: expected {_LOOKED_FOR}, got a Kafka record whose value is an object with 'foo'"
    assert error_of(cdcavro.sniff, '{"topic":"t","value":{"foo":1}}') == sentence


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        ({"type": "INSERT", "data": {"id": 1}}, "oms_canal: $.data: expected array, got object"),
        ({"value": {"type": "INSERT", "data": [], "old": {}}}, "oms_canal: $.value.old: expected array, got object"),
        (_SHAPED_LIKE_DATAWORKS, "oms_dataworks: $.payload.before.data: expected object, got string"),
        ({"op": "c", "tableChanges": {}}, "debezium: $.tableChanges: expected array, got object"),
        ({"op": "c", "source": "mysql"}, "debezium: $.source: expected object, got string"),
        ({"topic": "t", "key": "k", "value": {"op": "c"}}, "debezium: $.key: expected object, got string"),
        ({"topic": "t", "value": "{}"}, "debezium: $.value: expected object, got string"),
        ({"topic": "t", "offset": 1, "payload": "{}"}, "debezium: $.payload: expected object, got string"),
        ({"recordType": "INSERT", "postStruct": "{}"}, "oms_default: $.postStruct: expected object, got string"),
        ({"recordType": {}}, "oms_default: $.recordType: expected a symbol, got object"),
    ],
)
def test_members_of_a_format_in_another_shape_are_its_own_error(message, sentence):
    """A message with Canal's members, but not their shapes: no format claims it, and the error says why."""
    assert fitting_formats(json.dumps(message)) == {}
    with pytest.raises(StructureError) as caught:
        cdcavro.sniff(json.dumps(message))
    assert str(caught.value) == sentence


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*/*.jsonl")), ids=lambda path: path.parent.name)
def test_real_messages_lie_in_the_folder_of_their_format(path):
    """Each is told as that."""
    assert {cdcavro.sniff(line) for line in lines(path)} == {path.parent.name}


def test_real_debezium_messages_fit_no_other_format(shared_samples):
    """Records and their values alone, as Debezium wrote them for the same workload."""
    for line in lines(shared_samples / "shop-debezium.jsonl"):
        assert list(fitting_formats(line)) == ["debezium"]
        value = json.loads(line)["value"]
        if value is not None:
            assert list(fitting_formats(json.dumps(value))) == ["debezium"]


@pytest.mark.parametrize(
    ("message", "got"),
    [
        ("{}", "an empty object"),
        ('{"a":1,"b c":2}', "an object with 'a', 'b c'"),
        ('{"recordType":null}', "an object with 'recordType'"),
        ('{"payload":"x","version":"2.0"}', "an object with 'payload', 'version'"),
        (json.dumps(dict.fromkeys("abcdefghijk")), "an object with 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h' and 3 more"),
    ],
)
def test_message_of_no_format(message, got):
    """The error says what was looked for and what is there."""
    assert_of_no_format(message, got)


def assert_of_no_format(message: str, got: str) -> None:
    """Assert that the error for a message says what was looked for, perhaps what is near, and what is there."""
    error = error_of(cdcavro.sniff, message)
    assert error.startswith(f"message: $: expected {_LOOKED_FOR[:-1]}")
    assert error.endswith(f"), got {got}")


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        ("[]", "expected object, got array"),
        ('"recordType"', "expected object, got string"),
        ("null", "expected object, got null"),
        ("1e400", "expected object, got number"),
        ("", "expected JSON, got an empty line"),
        ("\n", "expected JSON, got white space only"),
        ("recordType", "expected JSON, got 'recordType' at character 0"),
        ('{"recordType":"', "expected JSON, got text that ends too early, at character 15"),
        (b'{"\xff":1}', "expected UTF-8, got byte 0xff at byte 2"),
        ('{"a":' * 100_000, "expected at most 128 levels, got a level more at byte 640"),
    ],
    ids=lambda given: repr(given)[:30],
)
def test_what_is_no_object_has_no_format(message, sentence):
    """Text that is no JSON object is refused as the other functions refuse it."""
    assert error_of(cdcavro.sniff, message) == f"message: $: {sentence}"


# Hostile input

_NAMES = sorted(
    {
        name
        for format in cdcavro.FORMATS
        for required, tells, _, shapes in [_marks(format)]
        for place in required
        for name in place
    }
    | {
        name
        for format in cdcavro.FORMATS
        for place, _ in (*_marks(format).tells, *_marks(format).shapes)
        for name in place
    }
    | {"topic", "key", "value", "__deleted", "__op", "op_type", "op_ts", "operationType", "ns", "metadata", "commitTs"}
)
_WORDS = [
    "INSERT",
    "u",
    "I",
    "UPDATE_AFTER",
    "ROW",
    "insert",
    "execute-snapshot",
    "",
    "0",
    None,
    True,
    0,
    -1,
    1.5,
    [],
    {},
]
_VALUES = st.recursive(
    st.sampled_from(_WORDS) | st.text(max_size=5) | st.integers() | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_NAMES) | st.text(max_size=3), inner),
    max_leaves=25,
)


def told(data: bytes) -> None:
    """Check that a text has a format that is one, or an error of the project in a bounded sentence, and little work."""

    def tell() -> None:
        try:
            assert cdcavro.sniff(data) in cdcavro.FORMATS
        except cdcavro.CdcAvroError as error:
            assert len(str(error)) < 4_000  # noqa: PT017

    assert calls(tell) < 5_000 + 30 * len(data)


@given(st.dictionaries(st.sampled_from(_NAMES), _VALUES, max_size=8) | _VALUES)
def test_any_json_has_a_format_or_an_error_of_the_project(value):
    """Also where members that tell formats have values of any kind, at any place."""
    told(json.dumps(value).encode())


@given(st.binary(max_size=200) | st.text().map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_any_bytes_have_an_error_of_the_project(data):
    """Whatever they are."""
    told(data)


@pytest.mark.parametrize("format", cdcavro.FORMATS)
def test_a_mutated_message_has_a_format_or_an_error_of_the_project(format):
    """Bytes, values, tokens and members changed, doubled, renamed, dropped, or cut off."""
    random, messages = Random(format), goldens(format)
    for _ in range(300):
        told(mutated(random, random.choice(messages)))


@pytest.mark.slow
@pytest.mark.parametrize("name", FILLERS)
@pytest.mark.parametrize(
    "place", ["{}", '{{"type":"INSERT","data":{}}}', '{{"topic":"t","value":{{"op":"c","after":{}}}}}']
)
def test_a_long_message_is_told_in_bounded_work(name, place):
    """Arrays, objects, nesting, numbers and names by the thousand; the work grows no faster than the message."""
    told(place.format(FILLERS[name](100_000)).encode())


class _Values(dict):
    """An object of which it can be seen when it goes."""


def test_a_message_is_parsed_once_to_be_told_and_once_to_find_its_fault(monkeypatch):
    """What the first time made is gone by the second, so the worst message costs as much as its fault does."""
    module, encode, parsed, alive = sys.modules["cdcavro.wire.sniff"], Format.encode, [], []

    def parsed_once(message):
        value = _Values(json.loads(message))
        parsed.append(weakref.ref(value))
        return value

    def encoded(self, message):
        alive.extend(one() for one in parsed)
        return encode(self, message)

    monkeypatch.setattr(module, "_parse", parsed_once)
    monkeypatch.setattr(Format, "encode", encoded)
    fault = error_of(cdcavro.sniff, '{"type":"INSERT","database":"d","data":{"a":1}}')
    assert fault == "oms_canal: $.data: expected array, got object"
    assert (len(parsed), alive) == (1, [None])


@pytest.mark.parametrize(
    ("messages", "format", "other"),
    [
        (['{"type":"INSERT","data":[],"id":1}'], "debezium", "canal"),
        (['{"type":"INSERT","data":[],"id":1}'], "oms_canal", None),
        (["{", "[]", '{"type":"INSERT","data":[]}', '{"op":"c"}'], "debezium", None),
        (["{", '{"type":"INSERT","data":[]}', '{"type":"INSERT","data":[]}'], "debezium", "oms_canal"),
        ([json.dumps(_MAXWELL[0])], "canal", "maxwell"),
        ([json.dumps(_SIMPLE)], "canal", "a message of TiCDC's Simple Protocol, which is not supported"),
        (['{"foo":1}', "{", ""], "canal", None),
        ([], "canal", None),
    ],
)
def test_what_messages_of_a_wrong_format_look_like(messages, format, other):
    """Unless one of them is of the format, or nothing is known of them."""
    assert other_format(messages, format) == other


@pytest.mark.parametrize("message", _MAXWELL)
def test_a_necessary_value_tells_a_format_for_sure(message):
    """With it, no list of what is known by sight is asked; without it, the message is none of the format."""
    assert cdcavro.sniff(json.dumps(message)) == "maxwell"
    assert "maxwell" not in cdcavro.wire.sniff.fitting_formats(
        json.dumps(message | {"type": "INSERT", "data": [], "old": []})
    )


def test_a_format_is_described_by_the_members_that_it_needs():
    """Those without which it is none, and of the others each that would tell it."""
    assert set(_DESCRIBED) <= {f"{name}: {_describe_marks(name)}" for name in cdcavro.FORMATS}


@pytest.mark.parametrize(
    ("message", "hint"),
    [
        (
            {"op_type": "I", "table": "t", "note": 1},
            "; did you mean goldengate_row? It has op_type and one of op_ts, current_ts, pos",
        ),
        (
            {"typ": "INSERT", "table": "t", "database": "d", "sql": ""},
            "; did you mean oms_canal? It has type and one of",
        ),
        ({"note": 1, "table": "t"}, ""),
    ],
)
@pytest.mark.parametrize("around", ["%s", '{"topic":"t","key":null,"value":%s}'])
def test_a_message_of_no_format_is_told_which_one_is_near(message, hint, around):
    """The one with most of its members, and what it lacks; the error stays short enough to be read."""
    error = error_of(cdcavro.sniff, around % json.dumps(message))
    assert _LOOKED_FOR[:-1] + (hint or "), got") in error
    assert len(error) < 500


_DAMAGES = [None, True, 0, 1.5, "", "x", [], {}, [1], {"a": 1}, "c", "BEGIN", "INSERT", "2.0", "0.0.1", "1.0000000000"]
_DAMAGES += ["cockroachdb", "stop-snapshot", "insert", "data", "I"]
_LOOKED_AT = [*_looks().members, *(name for inner in _looks().members.values() for name in inner), "ts_ns", "extra"]


def damage(message, random):
    """Change something in a message: a member goes, comes, or gets another value, at any depth."""
    name = random.choice([*message, random.choice(_LOOKED_AT)])
    if message.get(name) and type(message[name]) is dict and random.random() < 0.6:
        damage(message[name], random)
    elif random.random() < 0.3:
        message.pop(name, None)
    else:
        message[name] = copy.deepcopy(random.choice(_DAMAGES))


def told_alone(message):
    """Return the format of a message, whatever earlier ones were; None if it has none."""
    try:
        return best_format([_fitting_value(message)]) or None
    except cdcavro.CdcAvroError:
        return None


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_messages_of_one_shape_are_of_one_format(seed):
    """Whatever is damaged in a message, its shape tells the format that all its members tell."""
    random, told = Random(seed), {}
    seeds = [json.loads(message) for message in shipped() if message[:1] == b"{"]
    seeds += [*_DEBEZIUM, *_OTHERS, *_MAXWELL, *(message for message, _ in _NAMED)] * 5
    for _ in range(1_500):
        message = copy.deepcopy(random.choice(seeds))
        for _ in range(random.randrange(4)):
            damage(message, random)
        message = random.choice([message, {"topic": "t", "value": message}, {"schema": {}, "payload": message}])
        format = told_alone(message)
        assert told.setdefault(_shape_of(message, *_looks()), format) == format, message
        assert sniffed(message) == format, message


@pytest.mark.parametrize("number", ["0.0", "1E0", "1e99999999999999999999"])
def test_a_number_in_place_of_a_source_is_told(number):
    """Whatever number it is, also one that no Decimal can hold; and it does not become another format's message."""
    message = f'{{"before":null,"after":{{"id":1}},"source":{number},"op":"c","ts_ns":1}}'
    assert "$.source: expected object, got number" in error_of(cdcavro.sniff, message)


def sniffed(message):
    """Return what `sniff` says of a message, which may know its shape; None if it has no format."""
    try:
        return cdcavro.sniff(json.dumps(message))
    except cdcavro.CdcAvroError:
        return None


_KNOWN_BY = (
    *("encrypted", "commitTs", "type", "buildTs", "schemaVersion", "op_type", "op_ts", "operationType", "ns"),
    *("aggregate_type", "metadata", "source", "op", "ts_ns", "ts_ms", "after", "resolved", "updated"),
)
_VALUES = ("schema-changes", "1.0000000000", None, {}, {"record-type": "data"}, {"changefeed_sink": "x"})


def test_a_message_without_a_telling_member_is_of_no_unsupported_format_but_cockroach():
    """Those that are not looked at would not have been found, in any message of two members."""
    found = []
    for names in combinations(_KNOWN_BY, 2):
        for values in product(_VALUES, repeat=2):
            message = dict(zip(names, values, strict=True))
            one = next((name for name, is_one in sniffing._UNSUPPORTED_FORMATS.items() if is_one(message)), None)
            assert (message, sniffing.unsupported_format(message)) == (message, one)
            found.append(one)
    # A message of Maxwell that is encrypted has one member, and one of TiCDC three.
    assert {*found} == {None, *sniffing._UNSUPPORTED_FORMATS} - {*list(sniffing._UNSUPPORTED_FORMATS)[:2]}

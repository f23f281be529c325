"""The facts of `datahub_blob`: DataHub Blob topics, and what DataWorks writes to Kafka; positions as its ids, and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cdcavro
from cdcavro.change.model import Change, Source
from cdcavro.exact.numbers import MAX_LONG
from cdcavro.formats.datahub_blob import sequence_id, sequence_position
from cdcavro.transcoding.mapping import from_changes, to_changes
from support.messages import lines
from support.roundtrip import assert_fast, assert_golden, assert_round_trip, avro, error_of, exact, golden_cases


def _payload(members: str) -> str:
    return f'{{"schema":{{}},"payload":{{{members}}},"version":"0.0.1"}}'


@pytest.mark.parametrize("golden", golden_cases("datahub_blob"))
def test_golden_message_round_trips_and_is_told(golden):
    """Every sample of both documents comes back as it was sent and is sniffed as Blob."""
    assert_golden("datahub_blob", golden)


def test_public_messages_round_trip(shared_samples):
    """What DataWorks wrote to Kafka comes back as it was sent."""
    messages = lines(shared_samples / "public-dataworks.jsonl")
    assert len(messages) == 2
    for message in messages:
        assert_fast("datahub_blob", message)
        assert cdcavro.sniff(message) == "datahub_blob"


def test_both_spellings_of_the_first_half_are_one_operation():
    """UPDATE_BEFORE comes back as sent and reads as the documents spell it, UPDATE_BEFOR."""
    documented = avro("datahub_blob", _payload('"op":"UPDATE_BEFOR"'))
    spelled = avro("datahub_blob", _payload('"op":"UPDATE_BEFORE"'))
    assert documented["payload"]["op"] == spelled["payload"]["op"] == "UPDATE_BEFOR"
    assert documented["extras"] == {}
    assert spelled["extras"] == {"/payload/op": '"UPDATE_BEFORE"'}


def test_both_spellings_are_fast():
    """The other spelling needs a note, not a slow path."""
    assert_fast("datahub_blob", _payload('"op":"UPDATE_BEFORE"'))


@pytest.mark.parametrize("op", ["INSERT", "UPDATE", "UPDATE_AFTER", "DELETE", "ALTER", "MHEARTBEAT", "TRANSACTION_END"])
def test_documented_operations_are_symbols(op):
    """The operations of both documents, plain UPDATE too, need no extras."""
    assert avro("datahub_blob", _payload(f'"op":"{op}"'))["extras"] == {}


@pytest.mark.parametrize("op", ["UPSERT", "update", "HEARTBEAT", "OTHER", "UPDATE_BEFOREX"])
def test_unknown_operation_is_kept(op):
    """An `op` that is no symbol reads as OTHER, and its text stands in extras."""
    record = avro("datahub_blob", _payload(f'"op":"{op}"'))
    assert (record["payload"]["op"], record["extras"]) == ("OTHER", {"/payload/op": f'"{op}"'})


@pytest.mark.parametrize("after", ["", '"after":null,', '"after":{},', '"after":{"dataColumn":null},'])
def test_empty_members_are_null_or_absent(after):
    """Whichever a sender chooses comes back, without a slow path."""
    assert_fast("datahub_blob", _payload(f'{after}"op":"DELETE"'))


def test_heartbeat_has_an_empty_schema_and_no_sequence():
    """`schema: {}` is not a missing schema."""
    message = _payload('"op":"MHEARTBEAT","timestamp":{"eventTime":1605339953629,"checkpointTime":1605339953629}')
    record = avro("datahub_blob", message)
    assert record["schema"] == {"dataColumn": None, "primaryKey": None, "source": None}
    assert record["payload"]["sequenceId"] is None
    assert record["extras"] == {}
    assert cdcavro.sniff(message) == "datahub_blob"


def test_row_of_a_full_load():
    """A full load has the sequence "-1" and times of -1."""
    message = _payload(
        '"op":"INSERT","sequenceId":"-1","timestamp":{"eventTime":-1,"systemTime":1,"checkpointTime":-1}'
    )
    payload = avro("datahub_blob", message)["payload"]
    assert (payload["sequenceId"], payload["timestamp"]["eventTime"]) == ("-1", -1)


def test_double_sent_as_text_stays_text():
    """`"1.100000"` is a string and `1.100000` a number with all its zeros."""
    message = _payload('"op":"INSERT","after":{"dataColumn":{"text":"1.100000","number":1.100000,"plain":1.1}}')
    row = avro("datahub_blob", message)["payload"]["after"]["dataColumn"]
    assert row == {"text": "1.100000", "number": {"text": "1.100000"}, "plain": 1.1}


def test_sequence_sent_as_a_number_comes_back_as_a_number():
    """`sequenceId` is text in the field, whatever came."""
    record = avro("datahub_blob", _payload('"op":"INSERT","sequenceId":1605339516000000035'))
    assert record["payload"]["sequenceId"] == "1605339516000000035"
    assert record["extras"] == {"/payload/sequenceId": "1605339516000000035"}


@pytest.mark.parametrize("meta", ['"rO0ABXNyAA=="', '"not base64"', '""', "null"])
def test_metadata_of_a_statement_is_carried_unread(meta):
    """`ddlMeta` is whatever the sender put there."""
    assert_fast("datahub_blob", _payload(f'"op":"ALTER","ddl":{{"text":"ADD COLUMN c","ddlMeta":{meta}}}'))


def test_unknown_column_type_is_kept():
    """A column type beyond the six of StreamX reads as OTHER, its text stands in extras by the column's place."""
    columns = '[{"name":"a","type":"LONG"},{"name":"b","type":"DECIMAL"},null,{"name":"c"}]'
    record = avro("datahub_blob", f'{{"schema":{{"dataColumn":{columns}}},"payload":{{"op":"INSERT"}}}}')
    assert [column and column["type"] for column in record["schema"]["dataColumn"]] == ["LONG", "OTHER", None, None]
    assert record["extras"] == {"/schema/dataColumn/1/type": '"DECIMAL"'}


def test_column_called_like_a_member_is_a_column():
    """Columns named `op`, `dataColumn` and `extras` are columns."""
    row = '{"op":"x","dataColumn":{"a":1},"extras":null}'
    record = avro("datahub_blob", _payload(f'"op":"INSERT","after":{{"dataColumn":{row}}}'))
    assert record["payload"]["after"]["dataColumn"] == {"op": "x", "dataColumn": {"text": '{"a":1}'}, "extras": None}


def test_unknown_members_are_kept_where_they_were():
    """Members the schema does not name stand in extras by their pointer."""
    message = '{"payload":{"op":"INSERT","after":{"x":0.10}},"extras":"","schema":{"source":{"port":3306}}}'
    assert avro("datahub_blob", message)["extras"] == {
        "/payload/after/x": "0.10",
        "/extras": '""',
        "/schema/source/port": "3306",
    }


def test_version_alone_does_not_matter():
    """Any version converts, and none too."""
    assert_round_trip("datahub_blob", '{"payload":{"op":"INSERT"},"version":"9"}')
    assert_round_trip("datahub_blob", '{"payload":{"op":"INSERT"}}')


@pytest.mark.parametrize(
    ("sent", "sentence"),
    [
        ('{"schema":{}}', "datahub_blob: $.payload: expected a required member, got none"),
        ('{"payload":{}}', "datahub_blob: $.payload.op: expected a required member, got none"),
        ('{"payload":{"op":[]}}', "datahub_blob: $.payload.op: expected a symbol, got array"),
        ('{"payload":{"op":"X","before":1}}', "datahub_blob: $.payload.before: expected object, got number"),
        (
            '{"payload":{"op":"X"},"schema":{"primaryKey":{}}}',
            "datahub_blob: $.schema.primaryKey: expected array, got object",
        ),
        (
            '{"payload":{"op":"X"},"schema":{"dataColumn":[{"name":[]}]}}',
            "datahub_blob: $.schema.dataColumn[0].name: expected string, got array",
        ),
    ],
)
def test_structure_is_not_bent(sent, sentence):
    """What is not shaped like a Blob message is refused with its place."""
    assert error_of(cdcavro.encode, sent, "datahub_blob") == sentence


@pytest.mark.parametrize("format", [None, "oms_default", "debezium", "datahub_blob", "datahub_tuple"])
@pytest.mark.parametrize("position", [None, (5,)])
def test_a_row_of_a_full_load_is_written_with_sequence_id_minus_one(format, position):
    """Whatever number it came with, and from whatever format."""
    load = Change(op="SNAPSHOT", source=Source(format=format), position=position, after={"id": 1})
    (text,) = from_changes([load], "datahub_blob")
    payload = exact(text)["payload"]
    assert (payload["op"], payload["sequenceId"]) == ("INSERT", "-1")
    (back,) = to_changes(text, "datahub_blob")
    assert (back.op, back.position) == ("SNAPSHOT", None)


NUMBERS = st.integers(0, MAX_LONG) | st.integers(0, 20)
POSITIONS = st.lists(NUMBERS, min_size=1, max_size=9).map(tuple)


@given(POSITIONS)
def test_a_position_comes_back_from_its_id(position):
    """However many numbers it has, and however long they are."""
    assert sequence_position(sequence_id(position)) == position


@given(st.integers(1, 5).flatmap(lambda size: st.lists(st.tuples(*[NUMBERS] * size), min_size=2, max_size=9)))
def test_ids_are_ordered_as_their_positions(positions):
    """As numbers, for positions of one length."""
    assert sorted(positions) == sorted(positions, key=lambda one: int(sequence_id(one)))


@pytest.mark.parametrize("position", [None, (), (-1,), (5, -1), (MAX_LONG + 1,), (10**5000, 1)])
def test_what_has_no_place_in_an_id_has_none(position):
    """Numbers are from 0, and of 64 bits."""
    assert sequence_id(position) is None


@pytest.mark.parametrize("text", [None, "", "-1", "null", "1.5", "٣", str(MAX_LONG + 1), "9" * 20, "1" * 20 + "x"])
def test_text_that_is_no_id_has_no_position(text):
    """Nor a number of 19 digits beyond 64 bits, anywhere in it."""
    assert sequence_position(text) is None


def test_the_length_of_an_id_is_bounded():
    """Of 32 numbers each; text is not read further."""
    assert len(sequence_position("1" * 19 * 32)) == 32
    assert sequence_position("1" * (19 * 32 + 1)) is None

"""What a Kafka record says of the changes in it: where they arrived, and which columns are the key."""

from __future__ import annotations

import json

import pytest

import cdcavro
from cdcavro.change.model import Arrival
from cdcavro.transcoding.mapping import from_changes, to_changes
from cdcavro.transcoding.transcoder import Loss
from support.messages import bare_files, goldens
from support.roundtrip import error_of, exact

CANAL = '{"type":"INSERT","data":[{"id":"7","n":"x"}],"database":"d","table":"t","id":1,"es":1%s}'
TYPES = ',"mysqlType":{"id":"int","n":"text"}'


def within(message: str, **members: object) -> str:
    """Put a message into a Kafka record."""
    return json.dumps(members)[:-1] + (", " if members else "") + f'"value": {message}}}'


@pytest.mark.parametrize("format", cdcavro.FORMATS)
def test_changes_in_a_kafka_record_have_its_place_and_bring_it_back(format):
    """In every format, for every golden message."""
    place = Arrival(topic="shop", partition=3, offset=41)
    for golden in goldens(format):
        message = json.loads(golden)
        message = message.get("value", message)
        line = within(json.dumps(message), topic="shop", partition=3, offset=41, timestamp=1)
        changes = to_changes(line, format)
        assert {change.place for change in changes} == {place}
        assert [exact(text) for text in from_changes(changes, format)] == [exact(line)]
        bare = to_changes(line, format, members=False)
        assert [change.place for change in bare] == [place] * len(changes)


@pytest.mark.parametrize(
    ("members", "place"),
    [
        ({}, None),
        ({"topic": "t"}, Arrival(topic="t")),
        ({"topic": 5, "partition": True, "offset": -1}, None),
        ({"topic": "t", "partition": 2**63, "offset": "7"}, Arrival(topic="t")),
        ({"partition": 0, "offset": 2**63 - 1}, Arrival(partition=0, offset=2**63 - 1)),
    ],
)
def test_a_place_is_what_a_record_states_of_it(members, place):
    """A member of another kind is no place, and comes back all the same."""
    line = within(CANAL % TYPES, **members)
    (change,) = to_changes(line, "canal")
    assert change.place == place
    assert [exact(text) for text in from_changes([change], "canal")] == [exact(line)]


@pytest.mark.parametrize(
    ("key", "more", "found"),
    [
        ({"id": 7}, TYPES, ("id",)),
        ({"schema": {}, "payload": {"n": "x", "id": 7}}, TYPES, ("n", "id")),
        ({"id": "7"}, "", ("id",)),
        ({"id": "7"}, TYPES, ("id",)),
        ({"id": 7}, "", ("id",)),
        ({"n": "x", "id": "7"}, TYPES, ("n", "id")),
        ({"id": "07"}, TYPES, None),
        ({"id": 7.5}, TYPES, None),
        ({"id": None}, TYPES, None),
        ({"id": [7]}, TYPES, None),
        ({"id": 8}, TYPES, None),
        ({"other": 7}, TYPES, None),
        ({}, TYPES, None),
        ("7", TYPES, None),
        (None, TYPES, None),
        ({"id": 7}, TYPES + ',"pkNames":["n"]', ("n",)),
    ],
)
def test_the_key_of_a_record_names_the_key_of_a_row_that_names_none(key, more, found):
    """If it is an object of columns with the row's own values, as numbers or as texts."""
    line = within(CANAL % more, key=key)
    (change,) = to_changes(line, "canal")
    assert change.key == found
    assert [exact(text) for text in from_changes([change], "canal")] == [exact(line)]


def test_a_message_with_members_of_these_names_is_no_record():
    """A table of DataHub's may have such columns."""
    line = (
        '{"_sequence_id_":"1","_operation_type_":"I","_before_image_":"N","_after_image_":"Y","topic":"t","value":"v"}'
    )
    (change,) = to_changes(line, "datahub_tuple")
    assert (change.place, change.after) == (None, {"topic": "t", "value": "v"})


def test_the_place_of_a_fault_is_that_in_the_record():
    """As of one that the wire schema finds."""
    line = within('{"type":"DELETE","data":[{"id":1}],"old":[{"id":2}]}', topic="t")
    sentence = "oms_canal: $.value.old[0]: expected no second row before the change for DELETE, got some"
    assert error_of(to_changes, line, "oms_canal") == sentence


def test_rows_of_a_record_of_which_some_are_missing_come_in_it_still():
    """Each message that is made of them has what belongs to the message."""
    line = within('{"type":"INSERT","data":[{"id":1},{"id":2}]}', topic="t", offset=1)
    first, _ = to_changes(line, "oms_canal")
    assert json.loads(from_changes([first], "oms_canal")[0])["topic"] == "t"


@pytest.mark.parametrize("format", [name for name in cdcavro.FORMATS if name != "debezium"])
def test_a_kafka_record_is_transcoded_and_what_it_says_is_a_loss(format):
    """The row is not lost, and losses have their place in the record."""
    for golden in bare_files(format).values():
        alone = (
            cdcavro.transcode(golden, format, "oms_canal" if format != "oms_canal" else "canal")
            if _is_whole(golden, format)
            else None
        )
        if alone is None or not alone.texts:
            continue
        made = cdcavro.transcode(
            within(golden.decode(), topic="t"), format, "oms_canal" if format != "oms_canal" else "canal"
        )
        assert made.texts == alone.texts
        assert made.losses[0].path == "$.topic"
        assert {loss.path for loss in made.losses if loss.path not in ("$.topic", "$")} == {
            loss.path.replace("$", "$.value", 1) for loss in alone.losses if loss.path != "$"
        }


def _is_whole(golden: bytes, format: str) -> bool:
    change = to_changes(golden, format)[0]
    return change.half is None and not (change.op == "OTHER" and (change.before or change.after))


def test_a_record_of_nothing_but_its_value_is_another_form():
    """Its members are lost where it has some."""
    losses = cdcavro.transcode('{"value":{"meta":{"op":"del"},"data":{"id":7}}}', "oms_shareplex", "oms_canal").losses
    assert losses == [Loss("$", "", "comes back from oms_canal without its Kafka record")]

"""Kinds of Debezium's messages: what has not exactly the members of one may be a row without its envelope."""

from __future__ import annotations

import json

import pytest

import cdcavro
from cdcavro.formats.connect_messages import kind_of
from support.roundtrip import error_of

NO_KIND = [
    '{"id":5,"status":"active"}',
    '{"id":5,"status":"BEGIN"}',
    '{"id":"5","status":"BEGIN","name":null}',
    '{"id":"5","status":"active"}',
    '{"status":"END"}',
    '{"id":1,"ts_ms":4}',
    '{"databaseName":"d","id":1}',
    '{"databaseName":"d"}',
    '{"ddl":"DROP TABLE t","id":1}',
    '{"op":"x","id":1}',
    '{"op":"c","id":1}',
    '{"op":null,"id":null}',
    '{"op":1}',
    '{"source":{"table":"t"},"ts_ms":1}',
    '{"transaction":{"id":"1"}}',
]
KINDS = {
    '{"op":"x"}': "OTHER",
    '{"op":"m","ts_ms":1,"source":{},"message":{"prefix":"p","content":"AQ=="}}': "OTHER",
    '{"op":"c","after":{"id":1},"isHeartbeat":true}': "INSERT",
    '{"status":"BEGIN","id":"5","ts_ms":1,"event_count":null,"data_collections":null}': "TRANSACTION_BEGIN",
    '{"status":"END","id":"5"}': "TRANSACTION_END",
    '{"status":"END","id":null,"ts_ms":null}': "TRANSACTION_END",
    '{"op":"d","source":{"connector":"oracle"},"isHeartbeat":true}': "DELETE",
    '{"ts_ms":1}': "HEARTBEAT",
    '{"ts_ms":null,"ts_us":1,"ts_ns":1000}': "HEARTBEAT",
    '{"source":{},"ts_ms":1,"databaseName":"d","schemaName":null,"ddl":"DROP TABLE t","tableChanges":[]}': "ERASE",
    '{"ddl":"DROP TABLE t"}': "ERASE",
    "{}": "OTHER",
}
SHAPES = [
    ("%s", "$"),
    ('{"schema":null,"payload":%s}', "$.payload"),
    ('{"topic":"q","partition":0,"offset":1,"key":{"id":1},"value":%s}', "$.value"),
    ('{"key":null,"value":{"schema":null,"payload":%s}}', "$.value.payload"),
]


@pytest.mark.parametrize("message", NO_KIND)
@pytest.mark.parametrize(("shape", "place"), SHAPES)
def test_what_has_other_members_than_a_kind_has_is_refused(message, shape, place):
    """Columns may be called as the members of marks, heartbeats and statements."""
    assert kind_of(json.loads(message)) is None
    sentence = error_of(cdcavro.to_changes, shape % message, "debezium")
    expected = "a change, a statement, a mark or a heartbeat of Debezium, with just its members"
    assert sentence.startswith(f"debezium: {place}: expected {expected}, got an object with ")


@pytest.mark.parametrize("message", KINDS)
@pytest.mark.parametrize(("shape", "place"), SHAPES)
def test_what_has_the_members_of_a_kind_is_of_it(message, shape, place):
    """In every shape of a line."""
    (change,) = cdcavro.to_changes(shape % message, "debezium")
    assert (change.op, place[0]) == (KINDS[message], "$")


@pytest.mark.parametrize("line", ['{"topic":"news","id":1}', '{"topic":"t","key":{"id":1}}', '{"topic":"t"}'])
def test_a_topic_without_a_value_is_no_message(line):
    """A tombstone says that its value is null."""
    assert "got an object with" in error_of(cdcavro.to_changes, line, "debezium")

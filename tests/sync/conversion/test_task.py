"""A task's part of a batch, without Spark: what becomes of messages, and what the driver is told."""

from __future__ import annotations

import itertools
import json
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from cdcavro.change.model import Change
from cdcavro.engine.machine import COMPILED
from cdcavro.files.lines import KEPT
from cdcavro.lake.learning import Learner
from cdcavro.lake.placing import Placing
from cdcavro.sync.conversion import runs
from cdcavro.sync.conversion.knowledge import Knowledge
from cdcavro.sync.conversion.outcome_rows import REJECT, ROW, STATEMENT
from cdcavro.sync.conversion.task import converter
from cdcavro.sync.outputs.reject_places import RejectCipher, kind_of
from cdcavro.sync.reading.file_source import read_rejects
from cdcavro.sync.settings import Formats
from cdcavro.sync.sources import STATED
from cdcavro.table.tables import Tables
from cdcavro.transcoding.mapping import USUAL_PLACEHOLDER
from support.messages import canal
from support.moved_keys import MOVES, format_of, moving
from support.mutations import mutated
from support.task_batches import Record, batch_of, converted, with_headers


def known(*messages: bytes, format: str = "canal", **facts: Any) -> Knowledge:
    """Return what a task knows when all messages are learned."""
    tables = Tables()
    rows, _ = converted(Knowledge(tables, [], Formats(format), None), batch_of([(None, one) for one in messages]))
    Learner(tables).learn(Change.from_avro(outline) for row in rows for outline in row["outlines"] or ())
    return Knowledge(tables, [], Formats(format), None, is_all=True, **facts)


def whats(rows: Sequence[dict[str, Any]]) -> list[int]:
    """Return what the rows are."""
    return [row["what"] for row in rows]


def test_messages_of_known_tables_are_rows_and_others_are_asked_for_once():
    """Of messages that say the same, the first has an outline; where the task learned what it asked, all are rows."""
    messages = [canal("INSERT", [{"id": str(i)}], id=i) for i in range(1, 6)]
    batch = batch_of([(None, one) for one in messages])
    rows, summary = converted(Knowledge(Tables(), [], Formats("canal"), None), batch)
    assert sorted(whats(rows)) == [ROW] * 5 + [STATEMENT]
    assert summary["counts"] == {"read": 5, "tombstones": 0, "written": 5, "left out": 0}
    (mark,) = summary["tables"]
    assert not mark.isdecimal()
    again, summary = converted(known(*messages), batch)
    assert whats(again) == [ROW] * 5
    assert summary["counts"] == {"read": 5, "tombstones": 0, "written": 5, "left out": 0}
    assert summary["lanes"] == [["shop", 0, None, 0, 4]]
    assert summary["tables"]["0"]["ops"] == {"c": 5}
    assert [lane[1][2] for lane in summary["clock"]] == [4]
    assert [row for row in rows if row["what"] == ROW] == [{**row, "number": mark} for row in again]


def test_messages_that_contradict_their_table_are_asked_for_with_the_reason():
    """They are rejects if nothing is learned of them."""
    messages = [canal("INSERT", [{"id": "1"}], id=1), canal("INSERT", [{"id": "1"}], id=2, table=None)]
    rows, summary = converted(
        Knowledge(Tables(), [], Formats("canal"), None), batch_of([(None, one) for one in messages])
    )
    assert summary["counts"]["unplaced"] == 1
    assert [row["reason"] is None for row in rows if row["what"] == STATEMENT] == [True, False]


def batches_of(*messages: list[bytes]) -> list[pa.RecordBatch]:
    """Return Arrow batches of one lane."""
    starts = itertools.accumulate((len(some) for some in messages), initial=0)
    return [batch_of([(None, one) for one in some], first=start) for some, start in zip(messages, starts, strict=False)]


def test_a_task_that_knows_nothing_learns_what_it_asks():
    """A first batch of a million messages is not asked for a million times, and not converted one message at a time."""
    first = [canal("INSERT", [{"id": str(i)}], id=i, table=f"t{i % 3}") for i in range(1, 31)]
    then = [canal("INSERT", [{"id": str(i)}], id=i, table=f"t{i % 3}") for i in range(31, 301)]
    more = [canal("INSERT", [{"id": str(i), "b": "1"}], id=i, table="t0") for i in range(301, 311)]
    rows, summary = converted(Knowledge(Tables(), [], Formats("canal"), None), *batches_of(first, then, more, then))
    assert summary["counts"] == {"read": 580, "tombstones": 0, "written": 580, "left out": 0}
    assert summary["is ahead"]
    assert sum(len(row["outlines"] or ()) for row in rows) == 4
    tables = Tables()
    Learner(tables).learn(Change.from_avro(outline) for row in rows for outline in row["outlines"] or ())
    assert sorted(len(table.versions) for table in tables.tables) == [1, 1, 2]


def test_a_task_that_knows_nothing_learns_before_it_has_converted_the_whole_first_batch():
    """An Arrow batch has 10,000 messages."""
    messages = [canal("INSERT", [{"id": str(i)}], id=i, table=f"t{i % 3}") for i in range(1, 2001)]
    rows, summary = converted(Knowledge(Tables(), [], Formats("canal"), None), *batches_of(messages))
    assert summary["counts"] == {"read": 2000, "tombstones": 0, "written": 2000, "left out": 0}
    assert len([row for row in rows if row["what"] == STATEMENT]) == 3


def test_a_task_may_have_any_number_of_batches():
    """A partition may have a hundred million messages, in batches of 10,000."""
    messages = [canal("INSERT", [{"id": str(i)}], id=i) for i in range(1, 81)]
    _, summary = converted(known(messages[0]), *batches_of(*[[one] for one in messages]))
    assert summary["counts"]["written"] == 80


def test_rows_of_small_pieces_are_handed_over_once_they_are_many(monkeypatch: pytest.MonkeyPatch):
    """As many files with a message each have them: they are counted as they come, and counted anew behind that."""
    messages = [canal("INSERT", [{"id": str(i)}], id=i) for i in range(1, 41)]
    pieces, told = batches_of(*[[one] for one in messages]), known(messages[0])
    monkeypatch.setattr("cdcavro.sync.conversion.outcome_rows._HELD", 1 << 10)
    output = [batch for batch in converter(told)(iter(pieces)) if batch.num_rows]
    assert 3 < len(output) < 20
    assert sum(batch.column("what").to_pylist().count(ROW) for batch in output) == 40


def test_rows_behind_a_drop_are_asked_for_again():
    """They are of another table, though they say what rows before it said."""
    row = canal("INSERT", [{"id": "1"}], id=1)
    drop = canal("ERASE", [], id=2, isDdl=True, sql="DROP TABLE t")
    again = canal("INSERT", [{"id": "1"}], id=3)
    rows, _ = converted(
        Knowledge(Tables(), [], Formats("canal"), None), *batches_of([row, row], [drop], [again, again])
    )
    asked = [row["outlines"] for row in rows if row["what"] == STATEMENT]
    assert [len(outlines) for outlines in asked] == [1, 1, 1, 0]


def test_only_the_last_change_of_a_key_goes_on_where_no_more_is_wanted():
    """All are counted; of a table of which a version has no key, all go on."""
    messages = [canal("INSERT", [{"id": str(i % 2), "a": str(i)}], id=i) for i in range(1, 7)]
    batch = batch_of([(None, one) for one in messages])
    rows, summary = converted(known(*messages, is_reduced=True), batch)
    assert summary["counts"]["written"] == 6
    assert summary["tables"]["0"]["ops"] == {"c": 6}
    every, _ = converted(known(*messages), batch)
    assert sorted(row["order"] for row in rows) == sorted(row["order"] for row in every)[4:]
    keyless = [canal("INSERT", [{"id": "1"}], id=i, pkNames=None) for i in range(1, 4)]
    batch = batch_of([(None, one) for one in keyless])
    assert len(converted(known(*keyless, is_reduced=True), batch)[0]) == 3


def test_the_beginning_of_a_message_that_is_too_long_is_no_message():
    """Even if it is JSON of its format, and what follows is lost."""
    message = canal("INSERT", [{"id": "1"}], id=1)
    rows, summary = converted(
        known(message), batch_of([(None, message)] * 3, lengths=[len(message), 70 << 20, len(message)])
    )
    assert sorted(whats(rows)) == [ROW, ROW, REJECT]
    (reject,) = [row for row in rows if row["what"] == REJECT]
    assert (reject["offset"], reject["raw"]) == (1, message)
    assert "67108864 bytes" in reject["reason"]
    assert summary["counts"]["rejected"] == 1


@pytest.mark.parametrize(
    ("format", "message"),
    [
        ("canal", canal("UPSERT", [{"id": "1"}], id=1)),
        ("maxwell", b'{"database":"d","table":"t","type":"replace","ts":1,"data":{"id":1}}'),
        (
            "goldengate",
            b'{"table":"d.t","op_type":"X","op_ts":"2023-11-14 22:13:21.000000","pos":"1","after":{"id":1}}',
        ),
        ("debezium_flat", b'{"id":1,"__op":"x","__table":"t"}'),
        ("aws_dms", b'{"data":{"id":1},"metadata":{"record-type":"data","operation":"upsert","table-name":"t"}}'),
    ],
)
def test_a_row_whose_operation_is_not_known_is_a_reject(format: str, message: bytes):
    """It is none of the statements, of which nothing is written."""
    for is_all in (False, True):
        knowledge = Knowledge(Tables(), [], Formats(format), None, is_all=is_all)
        (row,), summary = converted(knowledge, batch_of([(None, message)]))
        assert (row["what"], row["raw"]) == (REJECT, message)
        assert "an operation on a row that is known" in str(row)
        assert {name: count for name, count in summary["counts"].items() if count} == {"read": 1, "rejected": 1}


@pytest.mark.parametrize("name", MOVES)
def test_a_moved_row_that_is_stated_in_part_is_a_reject_where_states_are_wanted(name: str):
    """With all that it lacks, whether its table is known or not; a changelog has it as it is, and a whole row passes."""
    format = format_of(name)
    insert, part = moving(name, "note", "n")
    _, whole = moving(name)
    for message, is_whole in ((whole, True), (part, False)):
        facts = replace(known(insert, message, format=format), unavailable=USUAL_PLACEHOLDER)
        for knowledge in (facts, replace(facts, has_states=True)):
            rows, summary = converted(knowledge, batch_of([(None, insert), (None, message)]))
            is_row = is_whole or not knowledge.has_states
            assert summary["counts"]["written"] == (2 if is_row else 1)
            assert summary["counts"].get("unplaced", 0) == (not is_row)
            refused = [row for row in rows if row["what"] == STATEMENT]
            assert [(row["raw"], row["format"], row["offset"]) for row in refused] == [(message, format, 1)][is_row:]
            for row in refused:
                assert "expected all columns of d.t in a row that an update puts under another key" in row["reason"]
                assert row["reason"].endswith("got none for 'n', 'note'")


def test_a_moved_row_of_a_table_that_is_not_wanted_is_left_out():
    """Nothing of it is lost."""
    insert, part = moving("goldengate", "note")
    facts = known(insert, format="goldengate", has_states=True, left_out=frozenset({0}))
    _, summary = converted(facts, batch_of([(None, insert), (None, part)]))
    assert {name: count for name, count in summary["counts"].items() if count} == {"read": 2, "left out": 2}


def test_a_column_that_came_later_is_not_lacked_by_rows_moved_before():
    """Neither if they come behind the statement; nor is one that a statement has dropped."""
    insert, whole = moving("maxwell")
    add, drop = (
        json.dumps({"type": "table-alter", "database": "d", "table": "t", "ts": 1_700_000_000_000 + ts, "sql": sql})
        for ts, sql in ((5_000, "ALTER TABLE t ADD b INT"), (9_000, "ALTER TABLE t DROP note"))
    )
    create = {"type": "table-create", "database": "d", "table": "t", "ts": 1_699_999_999_000}
    create = json.dumps(create | {"sql": "CREATE TABLE t (id INT PRIMARY KEY, n INT, note TEXT)"})
    second = (
        whole.replace(b"1700000002", b"1700000012").replace(b"8", b"9", 1).replace(b', "note": "long"', b', "b": 1')
    )
    last = whole.replace(b"1700000002", b"1700000012").replace(b', "note": "long"', b"")
    messages = [create.encode(), insert, whole, add.encode(), drop.encode(), second, last]
    facts = known(*messages, format="maxwell", has_states=True)
    rows, summary = converted(facts, batch_of([(None, one) for one in messages]))
    assert summary["counts"]["unplaced"] == 1
    assert [row["reason"].rpartition(", got ")[2] for row in rows if row["reason"]] == ["none for 'b'"]


def test_tombstones_and_keys_of_records_count():
    """A key that Debezium's format reads has to be JSON; for other formats it says nothing."""
    value = b'{"op":"c","before":null,"after":{"id":1},"source":{"connector":"mysql","db":"d","table":"t","file":"b.1","pos":4,"row":0}}'
    records: list[Record] = [(b'{"id":1}', value), (b'{"id":1}', None), (b"Struct{id=1}", value), (None, value)]
    knowledge = known(b'{"key":{"id":1},"value":%b}' % value, format="debezium")
    rows, summary = converted(knowledge, batch_of(records))
    assert summary["counts"] == {"read": 4, "tombstones": 1, "written": 2, "left out": 0, "rejected": 1}
    (reject,) = [row for row in rows if row["what"] == REJECT]
    assert reject["reason"] == "debezium: $: expected JSON as the key of the Kafka record, got 'Struct{id=1}'"
    assert (reject["offset"], reject["record_key"]) == (2, b"Struct{id=1}")
    message = canal("INSERT", [{"id": "1"}], id=1)
    assert whats(converted(known(message), batch_of([(b"no JSON", message)]))[0]) == [ROW]


@pytest.mark.parametrize("tombstone", [{"value": None}, {"value": {"schema": None, "payload": None}}])
def test_a_tombstone_in_a_file_is_counted_as_one_in_a_topic(tombstone: dict[str, Any]):
    """It is no statement, and has no row."""
    value = {"op": "c", "before": None, "after": {"id": 1}}
    value["source"] = {"connector": "mysql", "db": "d", "table": "t", "file": "b.1", "pos": 4, "row": 0}
    lines = [json.dumps({"topic": "t", "key": {"id": 1}} | one).encode() for one in ({"value": value}, tombstone)]
    of_topic = batch_of([(None, line) for line in lines])
    of_file = {
        "file": ["f.jsonl"] * 2,
        "line": [1, 2],
        "topic": [None] * 2,
        "partition": [None] * 2,
        "offset": [None] * 2,
    }
    batch = pa.RecordBatch.from_pydict(of_topic.to_pydict() | of_file, schema=of_topic.schema)
    rows, summary = converted(known(lines[0], format="debezium"), batch)
    assert {name: count for name, count in summary["counts"].items() if count} == {
        "read": 2,
        "written": 1,
        "tombstones": 1,
    }
    assert whats(rows) == [ROW]


def test_formats_are_told_of_each_message_where_none_is_given():
    """Those of which none is known are rejects, and the others go on behind them."""
    message = canal("INSERT", [{"id": "1"}], id=1)
    knowledge = known(message, format="mixed")
    rows, summary = converted(knowledge, batch_of([(None, one) for one in (message, b"[]", None, message, b"{")]))
    assert summary["counts"] == {"read": 5, "tombstones": 1, "written": 2, "left out": 0, "rejected": 2}
    assert [row["offset"] for row in rows if row["what"] == REJECT] == [1, 4]


def test_rows_of_tables_that_are_not_wanted_are_left_out():
    """They are counted, and nothing else is made of them."""
    messages = [canal("INSERT", [{"id": "1"}], id=i, table=f"t{i % 2}") for i in range(4)]
    rows, summary = converted(known(*messages, left_out=frozenset([1])), batch_of([(None, one) for one in messages]))
    assert {row["number"] for row in rows} == {"0"}
    assert (summary["counts"]["written"], summary["counts"]["left out"]) == (2, 2)


FLAT = b'{"id":%d,"name":"x","__op":"%s","__table":"t","__source_ts_ms":1700000001000}'


def flat_rows(records: Sequence[Record], table: str | None, format: str = "debezium_flat") -> tuple[Any, Any]:
    """Return what a task that knows nothing makes of records of Debezium's rows, in the topic `shop`."""
    return converted(Knowledge(Tables(table=table), [], Formats(format), None), batch_of(records))


def test_a_record_without_a_value_deletes_the_row_of_its_key_where_the_format_says_so():
    """It has the key of the rows before it, and their table by the topic; without a key it says nothing."""
    row = FLAT.replace(b',"__table":"t"', b"")
    records = [(b'{"id":1}', row % (1, b"c")), (b'{"id":1}', None), (None, None), (b"null", None), (None, b"5")]
    rows, summary = flat_rows(records, "@topic.table")
    assert summary["counts"] == {"read": 5, "tombstones": 2, "written": 2, "left out": 0, "rejected": 1}
    made = [row for row in rows if row["what"] == ROW]
    assert [row["operation"] for row in made] == ["c", "d"]
    assert made[0]["key"] == made[1]["key"] is not None
    assert made[0]["order"] < made[1]["order"]
    assert summary["lanes"] == [["shop", 0, None, 0, 4]]


def test_a_record_without_a_value_is_a_delete_of_a_given_format_only():
    """Where each message tells its own, nothing tells what a null is."""
    records = [(b'{"id":1}', FLAT % (1, b"c")), (b'{"id":1}', None)]
    assert flat_rows(records, None, "mixed")[1]["counts"]["tombstones"] == 1
    _, summary = flat_rows(records, "t")
    assert (summary["counts"]["written"], summary["counts"]["tombstones"]) == (2, 0)


def test_what_is_no_record_of_a_row_is_refused_by_name():
    """A key that is no object deletes no row, and a value that is none is no column of a record."""
    wrapped = b'{"schema":{"type":"int32"},"payload":5}'
    records: list[Record] = [
        (b"5", None),
        (wrapped, None),
        (b"{", None),
        (b'{"id":1}', b"null"),
        (b"5", b"7"),
        (b"5", b""),
    ]
    rows, summary = flat_rows(records, "t")
    assert [row["reason"] for row in rows if row["what"] == REJECT] == [
        "debezium_flat: $: expected an object as the key of a Kafka record without a value, got '5'",
        "debezium_flat: $.key.payload: expected an object of columns as the key, got a key without columns",
        "debezium_flat: $: expected JSON as the key of the Kafka record, got '{'",
        "debezium_flat: $: expected object, got null",
        "debezium_flat: $: expected object, got number",
        "debezium_flat: $: expected an object as the key of a Kafka record without a value, got '5'",
    ]
    assert summary["counts"]["rejected"] == summary["counts"]["read"] == 6


def test_a_delete_that_was_rejected_is_one_when_it_is_read_again():
    """A reject has no bytes where there was no value."""
    knowledge = Knowledge(Tables(table="t"), [], Formats("debezium_flat"), None)
    batch = batch_of([(b'{"id":1}', b"")])
    rows, summary = converted(
        knowledge, batch.set_column(batch.schema.names.index("clock"), "clock", pa.array(["null"]))
    )
    assert [row["operation"] for row in rows if row["what"] == ROW] == ["d"]
    assert summary["counts"]["written"] == 1


def test_a_key_that_is_none_of_its_row_is_refused_by_name():
    """As a key without a value would delete another row; whether the engine knows the table, or it is the first row."""
    row = FLAT % (1, b"c")
    good = (b'{"id":1}', row)
    bad: list[Record] = [
        (b'{"id":9}', row),
        (b"7", row),
        (b'{"zz":1}', row),
        (b'{"schema":null,"payload":{"id":9}}', row),
        (b'{"schema":null,"payload":7}', row),
        (b'{"id":1}', row.replace(b'"id":1', b'"o":{"id":1},"id":2')),
    ]
    plain: list[Record] = [(b'{"id":"1"}', row), (b'{"name":"x"}', row), (b"null", row), (b"{}", row), (None, row)]
    plain.append((b'{"schema":null,"payload":null}', row))
    for records in (bad + plain, [good] * 3 + bad + plain):
        rows, summary = flat_rows(records, None)
        assert [row["reason"].removeprefix("debezium_flat: $.key") for row in rows if row["what"] == REJECT] == [
            ".id: expected the value of the row, '1', got '9'",
            ": expected an object of columns as the key, got '7'",
            ".zz: expected a column of the row in the key, got 'zz'",
            ".payload.id: expected the value of the row, '1', got '9'",
            ".payload: expected an object of columns as the key, got '7'",
            ".id: expected the value of the row, '2', got '1'",
        ]
        assert summary["counts"]["written"] == len(records) - len(bad)


def key_records(random: Random) -> list[Record]:
    """Return records of rows of several tables and keys, some of them damaged, some deletes."""
    records: list[Record] = []
    for i in range(600):
        table, kind = random.choice("abc"), random.random()
        key, names = {"a": (b'{"id":%d}' % i, b""), "b": (b'{"id":%d,"part":"x"}' % i, b'"part":"x",')}.get(
            table, (None, b"")
        )
        value = b'{"id":%d,%s"n":%d,"__op":"u","__table":"%s","__lsn":%d}' % (i, names, i % 7, table.encode(), i)
        if kind < 0.1 and key is not None:
            key, value = random.choice(
                [
                    (b'{"id":%d}' % -i, value),
                    (b' {"id":%d}' % i, value),
                    (b'{"id":1,"id":1}', value),
                    (b'{"n":2}', value),
                    (b'{"n":%d}' % (i % 7), value),
                    (b'{"zz":2}', value),
                    (b"7", value),
                ]
            )
        elif kind < 0.2:
            value = mutated(random, value)
        elif kind < 0.3:
            value = value.replace(b'"n":', b'"o":{"id":%d},"n":' % i)
        records.append((key, None if kind > 0.9 and table == "a" else value))
    return records


@pytest.mark.slow
@pytest.mark.parametrize("table", [None, "@topic.table"])
def test_rows_that_stand_without_their_keys_are_those_of_their_records(monkeypatch, table):
    """Whatever the keys of the others are, and whether a row has its values."""
    random = Random(f"keys {table}")
    for _ in range(5):
        records = key_records(random)
        learned = Knowledge(Tables(table=table), [], Formats("debezium_flat"), None)
        rows, _ = converted(learned, batch_of(records))
        Learner(learned.tables).learn(Change.from_avro(outline) for row in rows for outline in row["outlines"] or ())
        knowledge = replace(learned, is_all=True)
        found, summary = converted(knowledge, batch_of(records))
        with monkeypatch.context() as patch:
            patch.setattr(runs, "_plain_members", lambda _: None)
            exact, own = converted(knowledge, batch_of(records))
        assert sorted(map(repr, found)) == sorted(map(repr, exact))
        assert summary["counts"] == own["counts"]
        assert 0 < summary["counts"]["rejected"] < 150


@pytest.mark.skipif(not COMPILED, reason="where nothing is compiled, all goes the exact way")
@pytest.mark.parametrize("table", [None, "@topic.table"])
def test_the_engine_types_rows_beside_their_keys(monkeypatch, table):
    """All but the first ones; the rows of two topics are of two tables."""
    taken: list[bytes] = []
    exact = Placing.rows
    monkeypatch.setattr(
        Placing, "rows", lambda self, message, *more: (taken.append(message), exact(self, message, *more))[1]
    )
    row = FLAT if table is None else FLAT.replace(b',"__table":"t"', b"")
    records: list[Record] = [(b'{"id":%d}' % i, row % (i, b"c")) for i in range(50)]
    other = batch_of(records)
    other = other.set_column(other.schema.names.index("topic"), "topic", pa.array(["a.other"] * 50))
    tables = Tables(table=table)
    knowledge = Knowledge(tables, [], Formats("debezium_flat"), None)
    converted(knowledge, batch_of(records), other)
    rows, _ = converted(replace(knowledge, is_all=True), batch_of(records), other)
    taken.clear()
    rows, _ = converted(replace(knowledge, is_all=True), batch_of(records), other)
    assert len(taken) == (1 if table is None else 2)
    assert {row["number"] for row in rows} == ({"0"} if table is None else {"0", "1"})


HOSTILE = [
    b'%s,"headers":%s',
    b'%s,"headers":{"x":%s}',
    b"%s}%s",
    b'%s,"timestamp":1',
    b'%s,"headers":null',
    b"%s %s",
    b"%s/**/",
    b"%s]",
    b'%s,"value":%s',
]


def test_a_value_that_closes_its_member_is_a_reject_with_all_its_bytes():
    """Beside a key, value and key become one text: what follows the first value would be dropped, or be another member."""
    key = b'{"id":1}'
    one, other = (
        json.dumps({"op": "c", "source": {"connector": "mysql", "table": "t"}, "after": {"id": 1, "a": word}}).encode()
        for word in "xy"
    )
    values = [form.replace(b"%s", one, 1).replace(b"%s", other) for form in HOSTILE]
    keys = [
        b'{"id":1},"headers":{}',
        b'{"id":1},"headers":null,"offset":7',
        b'1,"timestamp":2',
        b"",
        b"id",
        b'{"id":1}}',
    ]
    good = [(key, one), (None, one), (key, None), (b' {"id":1}\n', b" " + one + b"\n"), (b"null", one)]
    records = [*good, *((key, value) for value in values), *((name, one) for name in keys), (None, values[0]), *good]
    knowledge = known_records(good)
    for some in (records, records[::-1], [*records] * 2):
        rows, summary = converted(knowledge, batch_of(some))
        rejects = [row for row in rows if row["what"] == REJECT]
        assert sorted((row["record_key"], row["raw"]) for row in rejects if row["record_key"] is not None) == sorted(
            (name, value) for name, value in some if name is not None and (value in values or name in keys)
        )
        assert sum(row["what"] == ROW for row in rows) == summary["counts"]["written"] == 8 * len(some) // len(records)
        assert (
            summary["counts"]["read"]
            == len(some)
            == sum(summary["counts"].get(name, 0) for name in ("written", "rejected", "tombstones"))
        )


def known_records(records: Sequence[Record]) -> Knowledge:
    """Return what a task knows when all records of Debezium are learned."""
    tables = Tables()
    rows, _ = converted(Knowledge(tables, [], Formats("debezium"), None), batch_of(records))
    Learner(tables).learn(Change.from_avro(outline) for row in rows for outline in row["outlines"] or ())
    return Knowledge(tables, [], Formats("debezium"), None, is_all=True)


CLOCKS = [
    "{}",
    "[]",
    "[1]",
    '[1,["a"],2]',
    "[9,[1],2]",
    "[-1,[1],2]",
    '"x"',
    "7",
    "{",
    "",
    "[" * 100_000,
    '[1,[1],"2"]',
    "true",
    "[1,[1],2,3]",
]


def test_a_reject_whose_clock_is_no_clock_is_a_reject_again():
    """Whoever wrote it; the others are read again, and the stream goes on."""
    message = canal("INSERT", [{"id": "1"}], id=1)
    clocks = [*CLOCKS, "null", "[2,[1000,1],0]"]
    for place in ({}, {"offset": None}):
        batch = batch_of([(None, message)] * len(clocks)).to_pylist()
        rows = [row | {"clock": clock} | place for row, clock in zip(batch, clocks, strict=True)]
        schema = batch_of([(None, message)]).schema
        made, summary = converted(known(message), pa.RecordBatch.from_pylist(rows, schema=schema))
        rejects = [row for row in made if row["what"] == REJECT]
        assert [row["raw"] for row in rejects] == [message] * len(rejects)
        assert all(row["reason"] for row in rejects)
        assert len(rejects) == len(CLOCKS) + (1 if place else 0)
        assert summary["counts"]["read"] == len(clocks)


def test_a_reject_of_no_known_format_has_the_time_of_its_lane():
    """Once it is repaired, it takes its place though the clock of the source was put back behind the message before it."""
    messages = [canal("INSERT", [{"id": "1"}], id=1, es=5000), b"no message"]
    rows, _ = converted(known(messages[0], format="mixed"), batch_of([(None, one) for one in messages]))
    (reject,) = [row for row in rows if row["what"] == REJECT]
    assert (reject["format"], json.loads(reject["note"])) == (None, [2, [5000, 1], 0])


def test_each_row_of_a_message_has_the_headers_of_its_record():
    """Whether the engine makes it or the exact way, and whatever stands before it; none where they are not read."""
    rows = [canal("INSERT", [{"id": str(3 * i + j)} for j in range(3)], id=i) for i in range(1, 5)]
    messages = [rows[0], b"no message", None, *rows[1:]]
    headers = [[("n", b"%d" % i), ("n", None)] for i in range(len(messages) - 1)] + [[]]
    batch = batch_of([(None, one) for one in messages])
    wanted = [f'[{{"key":"n","value":"{i}"}},{{"key":"n","value":null}}]' for i in (0, 3, 4)]
    for knowledge in (Knowledge(Tables(), [], Formats("canal"), None), known(*rows)):
        found, _ = converted(knowledge, with_headers(batch, headers))
        made = sorted((one["order"], one["headers"]) for one in found if one["what"] == ROW)
        assert [text for _, text in made] == [text for text in [*wanted, None] for _ in range(3)]
    assert {one["headers"] for one in converted(known(*rows), batch)[0]} == {None}


def test_headers_that_the_rows_of_a_message_would_repeat_without_bound_are_a_reject():
    """The reason has none of them; headers as long in one row are taken, and so are those of the messages around it."""
    many = canal("INSERT", [{"id": str(i)} for i in range(1, 41)], id=2)
    messages = [canal("INSERT", [{"id": "77"}], id=1), many, canal("INSERT", [{"id": "78"}], id=3)]
    long = [("secret", b"s" * 100_000)]
    batch = with_headers(batch_of([(None, one) for one in messages]), [long] * 3)
    for knowledge in (Knowledge(Tables(), [], Formats("canal"), None), known(*messages)):
        found, summary = converted(knowledge, batch)
        assert [len(one["headers"]) for one in found if one["what"] == ROW] == [100_029] * 2
        (reject,) = [one for one in found if one["what"] == REJECT]
        most = (64 << 10) + 32 * len(many)
        assert (reject["raw"], reject["offset"]) == (many, 1)
        assert reject["reason"] == (
            "canal: $: expected headers that its rows repeat in no more bytes than its length allows,"
            f" got {39 * 100_029} bytes in 40 rows, beyond {most}"
        )
        # However many rows there are, and however long they are: reasons are few.
        assert kind_of(reject["reason"]).endswith("allows, got … bytes in … rows, beyond …")
        assert (summary["counts"]["written"], summary["counts"]["rejected"]) == (2, 1)


@pytest.mark.slow
def test_headers_of_rows_may_take_more_bytes_than_an_array_holds():
    """A task hands them over some at a time, all rows with theirs and in their order, and holds each text once."""
    size, count = 1 << 20, 66
    table = [{"id": str(i)} for i in range(33)]
    messages = [canal("INSERT", table, id=i, sql="s" * size) for i in range(1, count + 1)]
    headers = [[("n", b"%07d" % i + b"h" * (size - 100))] for i in range(count)]
    batch = with_headers(batch_of([(None, one) for one in messages]), headers)
    texts, most, before = list[str](), 0, pa.total_allocated_bytes()
    for made in converter(known(messages[0]))([batch]):
        most = max(most, pa.total_allocated_bytes() - before)
        own = made.filter(pc.equal(made.column("what"), ROW)).column("headers")
        texts += pc.utf8_slice_codeunits(own, 21, 28).to_pylist()
        assert len(own) * size < (1 << 25) + size
    assert texts == [f"{i:07d}" for i in range(count) for _ in table]
    assert most < 1 << 29


def test_a_message_of_which_a_reject_has_the_beginning_only_is_refused_again():
    """Also if that is a whole message: what came behind it would be lost."""
    message = canal("INSERT", [{"id": "1"}], id=1).ljust(KEPT)
    batch = batch_of([(None, message)], lengths=[70 << 20])
    (reject,), _ = converted(known(message), batch)
    again = batch.set_column(batch.schema.names.index("clock"), "clock", pa.array(["null"]))
    (found,), _ = converted(known(message), again)
    assert reject["reason"] == "message: $: expected at most 67108864 bytes, got 73400320"
    assert [found[name] for name in ("what", "reason", "raw")] == [reject[name] for name in ("what", "reason", "raw")]


@pytest.mark.parametrize("is_encrypted", [False, True])
@pytest.mark.parametrize("size", [0, 5, 5_000, 200_000])
def test_a_beginning_behind_headers_of_any_length_is_refused_again(tmp_path: Path, size: int, is_encrypted: bool):
    """Only what is as long as a beginning is one: a message that somebody has repaired or shortened is whole."""
    text = b'{"__table":"t","__op":"c","id":1}'
    headers = [[("__sequence", b"x" * size)] if size else []]
    own = Knowledge(Tables(), [], Formats("debezium_flat"), None)
    batch = batch_of([(None, text.ljust(KEPT))], lengths=[70 << 20])
    (reject,), _ = converted(own, with_headers(batch, headers, STATED))
    length = int(reject["reason"].rpartition(" ")[2])
    assert length >= (70 << 20) + size
    private = X25519PrivateKey.generate()
    pair = private.public_key().public_bytes_raw(), private.private_bytes_raw()
    cipher = RejectCipher(*pair) if is_encrypted else None
    shorter, longer = reject["raw"][:-1], reject["raw"] + b" " * 4096
    for raw, is_refused in ((reject["raw"], True), (shorter, False), (longer, False)):
        sealed = raw if cipher is None else cipher.encrypt(raw, "raw") or b""
        row = {"raw": b64encode(sealed).decode(), "reason": reject["reason"], "topic": "shop"}
        (tmp_path / "reject.json").write_text(json.dumps(row))
        (again,) = read_rejects(str(tmp_path / "reject.json"))
        rows, _ = converted(replace(own, cipher=cipher), again)
        assert rows
        refused = [(row["reason"], row["raw"]) for row in rows if row["what"] == REJECT]
        if cipher is not None:
            refused = [(reason, cipher.decrypt(own_raw, "raw")) for reason, own_raw in refused]
        assert refused == ([(reject["reason"], raw)] if is_refused else [])


def test_a_message_that_is_read_again_has_no_headers():
    """A reject has not kept them."""
    message = canal("INSERT", [{"id": "1"}], id=1)
    batch = batch_of([(None, message)] * 2)
    clocks = pa.array(["null", None])
    batch = batch.set_column(batch.schema.names.index("clock"), "clock", clocks)
    found, _ = converted(known(message), with_headers(batch, [[("a", b"1")]] * 2))
    assert [one["headers"] for one in found if one["what"] == ROW] == [None, '[{"key":"a","value":"1"}]']


def headed_records(random: Random) -> tuple[list[Record], list[Record], list[list[tuple[str, bytes | None]]]]:
    """Return records with members in their values, the same without these, and their headers; some have both or neither."""
    whole: list[Record] = []
    bare: list[Record] = []
    headers: list[list[tuple[str, bytes | None]]] = []
    for i in range(300):
        key, row = b'{"id":%d}' % (i % 40), {"id": i % 40, "n": random.choice(["x", None, "é"])}
        members = {"__op": random.choice("cu"), "__db": "d", "__table": random.choice("tu"), "__lsn": i}
        own = [("trace", b"\xff"), *((name, str(value).encode()) for name, value in members.items())]
        kind = random.random()
        if kind < 0.1:
            whole.append((key, None))
            bare.append((key, None))
            headers.append([])
            continue
        there = {} if kind > 0.2 else {"__op": members["__op"]} if kind > 0.15 else members
        for records, one in ((whole, row | members), (bare, row | there)):
            text = {"schema": None, "payload": one} if kind > 0.9 else one
            records.append((key if kind < 0.8 else None, json.dumps(text, separators=(",", ":")).encode()))
        headers.append([] if there == members else own)
    return whole, bare, headers


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_headers_are_read_as_members_of_their_messages(seed: int):
    """The same rows with the same orders, and as many: in columns from the engine, one by one, and again from rejects."""
    whole, bare, headers = headed_records(Random(seed))
    own = Knowledge(Tables(table="t"), [], Formats("debezium_flat"), None)
    asked, _ = converted(own, batch_of(whole))
    Learner(own.tables).learn(Change.from_avro(outline) for row in asked for outline in row["outlines"] or ())
    knowledge = replace(own, is_all=True)
    found, summary = converted(knowledge, with_headers(batch_of(bare), headers, STATED))
    wanted, counts = converted(knowledge, batch_of(whole))
    facts = ("what", "number", "version", "operation", "order", "key", "payload", "offset")
    made, expected = (sorted(repr([row[name] for name in facts]) for row in rows) for rows in (found, wanted))
    assert made == expected
    assert summary["counts"] == counts["counts"]
    assert summary["counts"]["written"] == summary["counts"]["read"] == 300


@pytest.mark.skipif(not COMPILED, reason="where nothing is compiled, all goes the exact way")
def test_the_engine_types_rows_beside_their_headers(monkeypatch: pytest.MonkeyPatch):
    """All but the first: members behind those of a row are a message as any other; without keys, too."""
    taken: list[bytes] = []
    exact = Placing.rows
    monkeypatch.setattr(
        Placing, "rows", lambda self, message, *more: (taken.append(message), exact(self, message, *more))[1]
    )
    headers = [[("__op", b"u"), ("__table", b"t"), ("__db", b"d"), ("__lsn", b"%d" % i)] for i in range(50)]
    for has_keys in (True, False):
        records: list[Record] = [(b'{"id":%d}' % i if has_keys else None, b'{"id":%d,"n":1}' % i) for i in range(50)]
        own = Knowledge(Tables(), [], Formats("debezium_flat"), None)
        asked, _ = converted(own, with_headers(batch_of(records), headers, STATED))
        Learner(own.tables).learn(Change.from_avro(outline) for row in asked for outline in row["outlines"] or ())
        taken.clear()
        rows, _ = converted(replace(own, is_all=True), with_headers(batch_of(records), headers, STATED))
        assert (len(taken), len(rows)) == (1, 50)


def test_a_reject_keeps_its_headers_and_is_refused_again_for_the_same():
    """Before its value, which may be null; what only looks as if headers stood before it has none."""
    value, key = b'{"id":1,"__table":"t"}', b'{"id":1}'
    cases: list[tuple[Record, list[tuple[str, bytes | None]]]] = [
        ((key, value), [("x", b"1"), ("__op", b"u"), ("__op", b"c")]),
        ((key, value), [("__lsn", b"\xff")]),
        ((key, None), [("__op", b"u")]),
        ((None, None), [("__op", b"d")]),
        ((b"1", None), [("__op", b"d"), ("__table", b"t")]),
        ((None, value), [("__op", b"x\0")]),
        ((key, b"{"), [("__op", b"u")]),
        ((key, b""), [("__op", b"u")]),
        ((key, b'\x05headers["__op","u"]\n' + value), []),
        ((key, b'\x05headers["__op","u"'), []),
        ((key, value), [("\0untold", None)]),
    ]
    own = Knowledge(Tables(table="t"), [], Formats("debezium_flat"), None)
    rows, summary = converted(
        own, with_headers(batch_of([one for one, _ in cases]), [headers for _, headers in cases], STATED)
    )
    rejects = sorted((row for row in rows if row["what"] == REJECT), key=lambda row: row["offset"])
    assert [row["offset"] for row in rejects] == [*range(len(cases))]
    assert summary["counts"]["rejected"] == summary["counts"]["read"] == len(cases)
    paths = [row["path"] for row in rejects]
    assert paths[:6] == ["$.headers.__op", "$.headers.__lsn", "$.headers.__op", "$.key", "$", "$.headers.__op"]
    assert (paths[10], rejects[10]["reason"]) == (
        "$.headers",
        "debezium_flat: $.headers: expected headers with names in UTF-8, got another one",
    )
    assert rejects[0]["raw"] == b'\x05headers["__op","u","__op","c"]\n' + value
    assert rejects[2]["raw"] == b'\x05headers["__op","u"]'
    again = batch_of([(row["record_key"], row["raw"]) for row in rejects])
    again = again.set_column(again.schema.names.index("clock"), "clock", pa.array(["null"] * len(rejects)))
    found, counts = converted(own, again)
    facts = ("raw", "record_key", "reason")
    assert [[row[name] for name in facts] for row in found] == [[row[name] for name in facts] for row in rejects]
    assert counts["counts"]["rejected"] == len(cases)
    # On Spark, they come with new messages, whose headers are in a column.
    found, _ = converted(own, with_headers(again, [[]] * len(cases), STATED))
    assert [[row[name] for name in facts] for row in found] == [[row[name] for name in facts] for row in rejects]


def test_a_reject_whose_fault_is_gone_is_read_with_its_headers():
    """As those of a table that was not named: its operation and its position are those of the headers."""
    headers = [[("__op", b"d"), ("__lsn", b"77")], [("__op", b"d"), ("__lsn", b"78")]]
    batch = with_headers(batch_of([(b'{"id":1}', b'{"id":1}'), (b'{"id":2}', None)]), headers, STATED)
    rejects, _ = converted(Knowledge(Tables(), [], Formats("debezium_flat"), None), batch)
    assert {row["reason"].partition(", got")[0] for row in rejects} == {
        "debezium_flat: $: expected a message that names its table, or a table given for those that do not (--table)"
    }
    again = batch_of([(row["record_key"], row["raw"]) for row in rejects])
    again = again.set_column(again.schema.names.index("clock"), "clock", pa.array(["null"] * len(rejects)))
    own = Knowledge(Tables(table="t"), [], Formats("debezium_flat"), None)
    asked, _ = converted(own, again)
    Learner(own.tables).learn(Change.from_avro(outline) for row in asked for outline in row["outlines"] or ())
    rows, _ = converted(replace(own, is_all=True), again)
    assert [row["operation"] for row in rows if row["what"] == ROW] == ["d", "d"]


def test_headers_of_a_topic_whose_format_reads_none_are_not_read():
    """Nor those where each message tells its format: they do not stand before it."""
    value = b'{"id":1,"__table":"t","__op":"u"}'
    batch = with_headers(batch_of([(None, value)]), [[("__op", b"c")]], STATED)
    for formats in (Formats("mixed"), Formats({"other": "debezium_flat"})):
        rows, summary = converted(Knowledge(Tables(), [], formats, None), batch)
        assert summary["counts"].get("rejected", 0) == 0, rows


@pytest.mark.parametrize("key", [None, b'{"id":1}'])
@pytest.mark.parametrize("format", ["mixed", "debezium"])
def test_a_reject_is_read_without_its_headers_if_its_format_is_another_one_by_now(format: str, key: bytes | None):
    """As if it had never had any: its value is what it was, alone or beside its key."""
    value = b'{"before":null,"after":{"id":1},"source":{"connector":"mysql","table":"t"},"op":"c"}'
    asked = []
    for raw in (value, b'\x05headers["__op","u"]\n' + value):
        batch = batch_of([(key, raw)])
        again = batch.set_column(batch.schema.names.index("clock"), "clock", pa.array(["null"]))
        rows, _ = converted(Knowledge(Tables(), [], Formats(format), None), again)
        asked.append([(row["what"], row["reason"], row["outlines"], row["payload"]) for row in rows])
    assert asked[0] == asked[1]
    assert REJECT not in {what for what, *_ in asked[0]}

"""Runs of messages beside the keys of their records, which name the columns of their keys."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from cdcavro.change.model import Change
from cdcavro.engine.machine import COMPILED
from cdcavro.lake.learning import Learner
from cdcavro.lake.placing import Placing
from cdcavro.sync.conversion import runs
from cdcavro.sync.conversion.knowledge import Knowledge
from cdcavro.sync.conversion.outcome_rows import REJECT, ROW
from cdcavro.sync.settings import Formats
from cdcavro.table.tables import Tables
from cdcavro.transcoding.mapping import to_changes
from cdcavro.wire.formats import get_format
from support.dts_records import packed, record
from support.mutations import mutated
from support.task_batches import Record, batch_of, converted


def value(**members: Any) -> bytes:
    """Return a message of Maxwell's that inserts a row, with other members."""
    usual = {"database": "d", "table": "t", "type": "insert", "ts": 1_700_000_001, "data": {"ID": 1, "a": "x"}}
    return json.dumps(usual | members, separators=(",", ":")).encode()


def learned(records: Sequence[Record], format: str = "maxwell") -> Knowledge:
    """Return what a task knows when all records are learned."""
    knowledge = Knowledge(Tables(), [], Formats(format), None)
    rows, _ = converted(knowledge, batch_of(records))
    Learner(knowledge.tables).learn(Change.from_avro(outline) for row in rows for outline in row["outlines"] or ())
    return replace(knowledge, is_all=True)


KEY = b'{"database":"d","table":"t","pk.id":1}'


@pytest.mark.parametrize(
    ("key", "members", "names"),
    [
        (KEY, {}, ["ID"]),
        (KEY, {"type": "delete"}, ["ID"]),
        (KEY, {"type": "bootstrap-insert"}, ["ID"]),
        (KEY, {"data": {"ID": 1, "id": 1}}, None),
        (KEY, {"data": {"ID": 2}}, None),
        (KEY, {"data": {"ID": "1"}}, ["ID"]),
        (KEY, {"type": "table-create", "data": None}, None),
        (KEY, {"type": "bootstrap-start", "data": {}}, None),
        (KEY, {"primary_key_columns": ["a"]}, ["a"]),
        (KEY, {"primary_key_columns": []}, []),
        (KEY, {"primary_key_columns": None}, ["ID"]),
        (KEY.replace(b":", b" : "), {}, ["ID"]),
        (KEY.replace(b"}", b',"pk.a":"x"}'), {}, ["ID", "a"]),
        (KEY.replace(b"pk.id", b"pk.b"), {}, None),
        (b'{"schema":null,"payload":%s}' % KEY, {}, ["ID"]),
        (b'{"database":"d","table":"t","_uuid":"x"}', {}, None),
        (b'["d","t",[{"id":1}]]', {}, None),
        (b"0f63c1d5-11d0-4a3e-a1ac-d7a5b1f7c1aa", {}, None),
        (b"null", {}, None),
        (b"", {}, None),
        (b"\xff", {}, None),
        (None, {}, None),
    ],
)
def test_the_key_of_a_record_names_the_columns_of_a_row(key, members, names):
    """As the record itself does, whether its message stands in it or names them itself."""
    text = value(**members)
    (run,) = runs.runs_of(batch_of([(key, text)]), Formats("maxwell"), {})
    (message,) = run.messages.column("message").to_pylist()
    (change,) = to_changes(run.record(0) or message, "maxwell")
    assert change.key == (None if names is None else tuple(names))
    assert run.raw(0) == text


def test_a_format_that_reads_no_keys_has_its_messages_alone():
    """Whatever the keys are."""
    text = b'{"type":"INSERT","database":"d","table":"t","id":1,"data":[{"id":"1"}]}'
    (run,) = runs.runs_of(batch_of([(KEY, text)]), Formats("canal"), {})
    assert run.messages.column("message").to_pylist() == [text]


def records_of(random: Random) -> list[Record]:
    """Return records of several tables, with keys of several forms, some of them damaged."""
    records: list[Record] = []
    for i in range(400):
        table, type = random.choice("abc"), random.choice(["insert", "update", "delete", "bootstrap-insert"])
        columns = {"a": {"id": i % 50}, "b": {"id": i % 50, "Part": "x"}, "c": {}}[table]
        row = {"id": i % 50, "Part": "x", "n": i} if table != "c" else {"n": i}
        key = {"database": "d", "table": table} | {f"pk.{name.lower()}": one for name, one in columns.items()}
        old = {"old": {"n": -1}} if type == "update" else {}
        text = value(
            table=table,
            type=type,
            data=row,
            xid=i,
            position=f"b.1:{i // 3}",
            **old,
            **({"xoffset": i % 3} if i % 3 < 2 else {}),
        )
        written = json.dumps(key, separators=(",", ":")).encode()
        if random.random() < 0.1:
            written = mutated(random, written)
        elif random.random() < 0.1:
            damaged = mutated(random, text)
            # A value that is itself a record is none within another one.
            text = text if b'"value"' in damaged else damaged
        records.append((written, text))
    return records


@pytest.mark.slow
def test_rows_beside_their_keys_are_those_of_their_records(monkeypatch):
    """Whatever the keys are, and whether a row has their values."""
    random = Random(32)
    for _ in range(5):
        records = records_of(random)
        knowledge = learned(records)
        found, summary = converted(knowledge, batch_of(records))
        with monkeypatch.context() as patch:
            patch.setattr(runs, "_plain_members", lambda _: None)
            exact, own = converted(knowledge, batch_of(records))
        assert sorted(map(facts_of, found)) == sorted(map(facts_of, exact))
        assert summary["counts"] == own["counts"]
        assert 200 < summary["counts"]["written"] < 400


def facts_of(row: dict[str, Any]) -> str:
    """Return what becomes of a message, but why it was refused: a pointer into a record begins with its value."""
    return repr({name: fact for name, fact in row.items() if name not in ("reason", "path", "note")})


@pytest.mark.skipif(not COMPILED, reason="where nothing is compiled, all goes the exact way")
def test_the_engine_types_rows_beside_their_keys(monkeypatch):
    """All but the first one of each kind; the tables have the keys."""
    records: list[Record] = [
        (KEY.replace(b":1}", b":%d}" % i), value(data={"ID": i, "a": "x"}, type=type))
        for type in ("insert", "delete")
        for i in range(50)
    ]
    knowledge = learned(records)
    taken: list[bytes] = []
    exact = Placing.rows
    monkeypatch.setattr(
        Placing, "rows", lambda self, message, *more: (taken.append(message), exact(self, message, *more))[1]
    )
    rows, _ = converted(knowledge, batch_of(records))
    assert len(taken) == 2
    assert [table.schema.key_names for table in knowledge.tables.tables] == [("ID",)]
    assert all(row["key"] for row in rows if row["what"] == ROW)


@pytest.mark.skipif(not COMPILED, reason="where nothing is compiled, all goes the exact way")
@pytest.mark.parametrize("is_first", [True, False])
def test_the_engine_leaves_rows_beside_a_key_of_other_columns(*, is_first: bool):
    """They are compared with their table, which rejects them; so the rows of any other table are taken."""
    other = KEY.replace(b"}", b',"pk.a":"x"}')
    of_table = [(KEY.replace(b":1}", b":%d}" % i), value(data={"ID": i, "a": "x"})) for i in range(40)]
    strange = [(other.replace(b":1,", b":%d," % i), value(data={"ID": i, "a": "x"})) for i in range(5)]
    knowledge = replace(learned(of_table), has_states=True)
    sent = [*strange, *of_table] if is_first else [*of_table[:20], *strange, *of_table[20:]]
    rows, summary = converted(knowledge, batch_of(sent))
    assert (summary["counts"]["written"], len(rows)) == (40, 45)
    reasons = {row["reason"] for row in rows if row["what"] != ROW}
    said = "expected the key of d.t, 'ID': under another one, rows could be confused, got 'ID', 'a'"
    assert [said in reason for reason in reasons] == [True]


def test_a_reject_that_is_read_again_has_the_key_of_its_record():
    """It was kept as it came."""
    record = (KEY, value())
    knowledge = learned([record])
    batch = batch_of([record])
    again = batch.set_column(batch.schema.names.index("clock"), "clock", pa.array(["null"]))
    (first,), _ = converted(knowledge, batch)
    (row,), summary = converted(knowledge, again)
    assert (row["what"], row["key"], summary["counts"]["written"]) == (ROW, first["key"], 1)


def test_messages_that_are_bytes_become_json_for_the_engine():
    """What cannot be read stays as it came, and so does a null."""
    raw = packed(record({"a": 8}, afterImages=[None]))
    (run,) = runs.runs_of(batch_of([(None, raw), (None, raw[:9]), (None, None)]), Formats("dts_avro"), {})
    text, *others = run.messages.column("message").to_pylist()
    assert others == [raw[:9], None]
    # Rows have nothing of how values were sent.
    assert json.loads(text).items() <= json.loads(get_format("dts_avro").text_of(raw)).items()
    assert json.loads(text)["afterImages"] == {"a": None}
    assert [run.raw(i) for i in range(3)] == [raw, raw[:9], None]


@pytest.mark.parametrize("format", ["mixed", "maxwell"])
def test_the_reject_of_a_message_that_is_too_long_names_the_limit(format: str):
    """Only its beginning is there, from which no format is told, nor what is wrong with its JSON."""
    records = [(None, value()), (None, value()[:40]), (None, value())]
    batch = batch_of(records, lengths=[len(value()), 73_400_482, len(value())])
    rows, _ = converted(learned(records[:1], format), batch)
    (reject,) = [row for row in rows if row["what"] == REJECT]
    assert reject["reason"] == "message: $: expected at most 67108864 bytes, got 73400482"
    assert len([row for row in rows if row["what"] == ROW]) == 2

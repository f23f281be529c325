"""Framed payloads of wire schemas as messages: opened by the registry's schemas, exactly, or rejects with their bytes."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import cdcavro
from cdcavro import registry
from cdcavro.change.model import Change
from cdcavro.change.order import Clock
from cdcavro.engine.machine import COMPILED
from cdcavro.engine.program import MARK
from cdcavro.formats.connect_avro import ConnectReader, whole_text
from cdcavro.lake.learning import Learner
from cdcavro.lake.placing import Placing
from cdcavro.registry.folder_backend import FolderBackend
from cdcavro.registry.framing import FRAMINGS, HEADERS, ContentId, Fingerprint, GlobalId, with_header
from cdcavro.sync.conversion import framed_messages as framed
from cdcavro.sync.conversion import task
from cdcavro.sync.conversion.knowledge import Knowledge
from cdcavro.sync.conversion.outcome_rows import FAILURE, REJECT
from cdcavro.sync.conversion.outcome_rows import ROW as ROW_OUTCOME
from cdcavro.sync.settings import Formats, RegistrySettings
from cdcavro.sync.sources import STATED
from cdcavro.table.tables import Tables
from cdcavro.table.writing.message_typer import MessageTyper
from cdcavro.wire.formats import get_format
from support.columns import column
from support.connect_envelopes import (
    COLUMNS,
    DECIMAL,
    ENVELOPE,
    HEARTBEAT,
    KEY,
    MICROSECONDS,
    ROW,
    envelope,
    envelope_of,
    written,
)
from support.faulty_server import Answer, serving
from support.messages import canal, golden_files
from support.task_batches import batch_of, converted, with_headers
from support.wire import field, record

pytestmark = pytest.mark.timeout(600)
MESSAGE = canal("INSERT", [{"id": "1", "a": "1"}], id=1)


@pytest.fixture
def access(tmp_path: Path) -> RegistrySettings:
    """A registry in a folder, with the wire schemas of two formats, and one of the first as it was once."""
    settings = RegistrySettings(f"file:{tmp_path}/schemas")
    older = json.loads(get_format("canal").schema.json)
    older["fields"] = [field for field in older["fields"] if field["name"] != "gtid"]
    with settings.connect() as schemas:
        assert schemas.publish(get_format("canal").schema, "canal-value").id == 1
        assert schemas.publish(get_format("oms_canal").schema, "oms-value").id == 2
        assert schemas.publish(json.dumps(older), "older-value").id == 3
        typed = '{"type":"record","name":"srv.d.t.Envelope","fields":[{"name":"op","type":"string"}]}'
        assert schemas.publish(typed, "typed-value").id == 4
        for id, (declared, subject) in enumerate(
            ((ENVELOPE, "orders-value"), (KEY, "orders-key"), (HEARTBEAT, "heart")), 5
        ):
            assert schemas.publish(json.dumps(declared), subject).id == id
    return settings


def knowledge(access: RegistrySettings, values: Sequence[bytes | None], given: str = "mixed") -> Knowledge:
    """Return what a task knows when all messages are learned."""
    tables = Tables()
    first = Knowledge(tables, [], Formats(given), None, framed=access)
    rows, _ = converted(first, batch_of([(None, value) for value in values]))
    Learner(tables).learn(Change.from_avro(outline) for row in rows for outline in row["outlines"] or ())
    return replace(first, is_all=True)


def outcomes(access: RegistrySettings, values: Sequence[bytes | None], given: str = "mixed") -> tuple[Any, Any]:
    """Return what becomes of framed values, and the counts."""
    made = knowledge(access, values, given)
    rows, summary = converted(made, batch_of([(None, value) for value in values]))
    return rows, {name: count for name, count in summary["counts"].items() if count}


def of_texts(messages: Sequence[bytes]) -> list[dict[str, Any]]:
    """Return what becomes of the same messages as text."""
    own = replace(knowledge_of_texts(messages), is_all=True)
    return converted(own, batch_of([(None, message) for message in messages]))[0]


def knowledge_of_texts(messages: Sequence[bytes]) -> Knowledge:
    """Return what a task knows when all messages are learned."""
    tables = Tables()
    first = Knowledge(tables, [], Formats(), None)
    rows, _ = converted(first, batch_of([(None, message) for message in messages]))
    Learner(tables).learn(Change.from_avro(outline) for row in rows for outline in row["outlines"] or ())
    return first


def test_framed_messages_become_the_rows_of_their_texts(access: RegistrySettings):
    """Of two formats in one topic, told by their schemas, framed by id or fingerprint; tombstones are counted."""
    other = golden_files("oms_canal")["insert"]
    payloads = [cdcavro.encode(MESSAGE, "canal"), cdcavro.encode(other, "oms_canal")]
    single = Fingerprint(get_format("canal").schema.fingerprint)
    values = [registry.frame(payloads[0], 1), None, registry.frame(payloads[1], 2), registry.frame(payloads[0], single)]
    rows, counts = outcomes(access, values)
    assert counts == {"read": 4, "tombstones": 1, "written": 3}
    wanted = [row for row in of_texts([MESSAGE, b"", other, MESSAGE]) if row["what"] == ROW_OUTCOME]
    facts = ("number", "version", "operation", "order", "key", "payload")
    assert [[row[name] for name in facts] for row in rows] == [[row[name] for name in facts] for row in wanted]


def test_what_another_version_of_the_wire_schema_wrote_is_read_by_it(access: RegistrySettings):
    """As `decode` reads it; a format that is told counts, and takes no payload of another."""
    older = registry.connect(access.url).fetch(id=3).schema
    payload = framed_by(older)
    rows, counts = outcomes(access, [registry.frame(payload, 3)])
    assert (counts, [row["what"] for row in rows]) == ({"read": 1, "written": 1}, [ROW_OUTCOME])
    rows, _ = outcomes(access, [registry.frame(payload, 3)], "canal")
    assert [row["what"] for row in rows] == [ROW_OUTCOME]
    (row,), _ = outcomes(access, [registry.frame(payload, 3)], "oms_canal")
    assert row["what"] == REJECT
    assert row["reason"].startswith("message: $: expected a payload that oms_canal reads, got one of id 3: ")


def framed_by(schema: cdcavro.Schema) -> bytes:
    """Return the message as a payload that an older schema wrote."""
    return cdcavro.wire.format.Format("canal", schema).encode(MESSAGE)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (MESSAGE, "expected bytes that start with 00, 01 or c3 01, got 7b 22"),
        (b"", "expected bytes that start with 00, 01 or c3 01, got none"),
        (b"\x00\x00", "expected 5 bytes that tell the schema, got 2"),
        (registry.frame(b"x", 99), "schemas has, got id 99"),
        (registry.frame(b"\x02c", 4), "expected a payload of a wire schema, got one of 'srv.d.t.Envelope', id 4"),
        (registry.frame(cdcavro.encode(MESSAGE, "canal") + b"\x00", 1), "canal: $: expected the end of the payload"),
        (registry.frame(cdcavro.encode(MESSAGE, "canal")[:-3], 1), "canal: $: expected 8 bytes, got 7 at byte"),
    ],
    ids=["text", "nothing", "a cut prefix", "unknown", "no wire schema", "more bytes", "fewer bytes"],
)
def test_what_cannot_be_opened_is_a_reject_with_its_bytes(access: RegistrySettings, value: bytes, reason: str):
    """Nothing is guessed, and its neighbours are rows; the next task gives the same."""
    good = registry.frame(cdcavro.encode(MESSAGE, "canal"), 1)
    rows, counts = outcomes(access, [good, value, good])
    assert counts == {"read": 3, "written": 2, "rejected": 1}
    (reject,) = [row for row in rows if row["what"] == REJECT]
    assert (reject["raw"], reject["offset"]) == (value, 1)
    assert reason in reject["reason"]
    assert reject["format"] == ("canal" if reason.startswith("canal") else None)


@pytest.mark.parametrize("stored", ["{", '{"schema": "nothing"}'])
def test_a_schema_that_is_none_makes_rejects_of_its_messages_only(
    access: RegistrySettings, tmp_path: Path, stored: str
):
    """A file of the registry is damaged, or holds a text that is no schema."""
    payload = cdcavro.encode(MESSAGE, "canal")
    (tmp_path / "schemas" / "schemas" / "2.json").write_text(stored, encoding="utf-8")
    value = registry.frame(payload, 2)
    rows, counts = outcomes(access, [registry.frame(payload, 1), value])
    assert counts == {"read": 2, "written": 1, "rejected": 1}
    (reject,) = [row for row in rows if row["what"] == REJECT]
    assert reject["raw"] == value
    assert reject["reason"].startswith("message: $: expected a schema that can be used for id 2, got ")


def test_a_batch_of_one_schema_is_opened_as_one_of_several_is(access: RegistrySettings):
    """As a whole: texts, formats, and why a payload is none; a tombstone is nothing."""
    good = registry.frame(cdcavro.encode(MESSAGE, "canal"), 1)
    values = [good, None, good + b"\x00", good]
    opener = framed.Opener(access, Formats())
    whole = opener.open(batch_of([(None, value) for value in values]))
    mixed = opener.open(batch_of([(None, value) for value in [*values, b"{"]]))
    assert opener._open_alike(batch_of([(None, b"{"), (None, good)]), {}) is None
    for name in framed.OPENED:
        assert whole.column(name).to_pylist() == mixed.column(name).to_pylist()[:-1], name
    assert whole.column("format").to_pylist() == ["canal", None, "canal", "canal"]
    text = cdcavro.decode(cdcavro.encode(MESSAGE, "canal"), "canal")
    assert whole.column(framed.TEXT).to_pylist() == [text, None, None, text]


def test_a_message_that_is_too_long_is_a_reject(access: RegistrySettings):
    """Of which the source hands over the beginning only."""
    value = registry.frame(cdcavro.encode(MESSAGE, "canal"), 1)
    made = Knowledge(Tables(), [], Formats(), None, framed=access, is_all=True)
    (row,), _ = converted(made, batch_of([(None, value)], lengths=[1 << 30]))
    assert (row["what"], row["reason"]) == (REJECT, "message: $: expected at most 67108864 bytes, got 1073741824")


@pytest.mark.slow
def test_a_schema_is_asked_for_once_by_all_tasks_of_a_process(
    access: RegistrySettings, monkeypatch: pytest.MonkeyPatch
):
    """Also one that is not there, which anybody may make up."""
    client = framed._client(access)
    asked: list[int] = []
    own = client._backend.by_id

    def by_id(number: int) -> Any:
        asked.append(number)
        return own(number)

    monkeypatch.setattr(client._backend, "by_id", by_id)
    values = [registry.frame(cdcavro.encode(MESSAGE, "canal"), 1), registry.frame(b"", 77)] * 50
    for _ in range(3):
        outcomes(access, values)
    assert sorted(asked) == [1, 77]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Answer(401, {"message": "who?"}), "401: user and password are missing or wrong"),
        (
            Answer(200, b"\n<html>sign in</html>"),
            "the answer is a page, not JSON; is this its address, or does a proxy",
        ),
    ],
    ids=["refused", "a page"],
)
def test_a_registry_that_is_down_fails_the_task_with_a_sentence(answer: Answer, said: str):
    """It is no reject, for no message is to blame; the driver is told why, and all messages are read."""
    values = [registry.frame(b"", 1)] * 3
    with serving([answer]) as server:
        access = RegistrySettings(server.url, auth=("me", "hunter2 behind seals"), patience=0.1)
        made = Knowledge(Tables(), [], Formats(), None, framed=access)
        batches = iter([batch_of([(None, value) for value in values]), batch_of([(None, values[0])], first=3)])
        rows, summary = converted(made, *batches)
    assert (rows, list(summary)) == ([], [FAILURE])
    assert said in summary[FAILURE]
    assert "hunter2" not in summary[FAILURE]


# Changes of Debezium's, as a converter of Kafka Connect's frames their keys and values.
FRAMED_KEY = registry.frame(written(KEY, {"id": 7}), 6)
RECORDS = [
    (FRAMED_KEY, registry.frame(written(ENVELOPE, envelope("c", ROW, pos=390)), 5)),
    (FRAMED_KEY, registry.frame(written(ENVELOPE, envelope("u", ROW | {"note": "b"}, ROW, pos=400)), 5)),
    (None, registry.frame(written(HEARTBEAT, {"ts_ms": 1_700_000_000_500}), 7)),
    (FRAMED_KEY, registry.frame(written(ENVELOPE, envelope("d", None, ROW, pos=410)), 5)),
    (FRAMED_KEY, None),
]


def outcomes_of_records(records: Sequence[Any], first: Knowledge) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """Return what becomes of keys and values once all is learned, and the counts."""
    rows, _ = converted(first, batch_of(records))
    Learner(first.tables).learn(Change.from_avro(outline) for row in rows for outline in row["outlines"] or ())
    rows, summary = converted(replace(first, is_all=True), batch_of(records))
    return rows, {name: count for name, count in summary["counts"].items() if count}


@pytest.mark.parametrize("given", ["mixed", "debezium"])
def test_avro_of_debezium_becomes_the_rows_of_its_json(access: RegistrySettings, given: str):
    """With the types and the key that its schemas state: changes, a heartbeat, and the tombstone behind a delete."""
    opened = framed.Opener(access, Formats(given)).open(batch_of(RECORDS))
    texts, keys = (opened.column(name).to_pylist() for name in (framed.TEXT, framed.KEY))
    assert keys == [b'{"id":7}', b'{"id":7}', None, b'{"id":7}', b'{"id":7}']
    rows, counts = outcomes_of_records(RECORDS, Knowledge(Tables(), [], Formats(given), None, framed=access))
    assert counts == {"read": 5, "written": 3, "statements": 1, "tombstones": 1}
    wanted, same = outcomes_of_records([*zip(keys, texts, strict=True)], Knowledge(Tables(), [], Formats(), None))
    assert same == counts
    facts = ("what", "number", "version", "operation", "order", "key", "payload")
    assert [[row[name] for name in facts] for row in rows] == [[row[name] for name in facts] for row in wanted]
    assert [row["operation"] for row in rows if row["what"] == ROW_OUTCOME] == [*"cud"]


FLAT = record(
    *COLUMNS,
    *[
        {"name": name, "type": ["null", kind], "default": None}
        for name, kind in (("__op", "string"), ("__pos", "long"))
    ],
    name="srv.shop.orders.Value",
) | {"connect.name": "srv.shop.orders.Value"}


def flat(op: str, pos: int, **more: Any) -> bytes:
    """Return a row without its envelope, framed."""
    return registry.frame(written(FLAT, {**ROW, "__op": op, "__pos": pos, **more}), 8)


def flat_knowledge(access: RegistrySettings | None, given: str = "debezium_flat") -> Knowledge:
    """Return what a task knows at first, with a registry that has the schema of flattened rows."""
    if access is not None:
        with access.connect() as schemas:
            assert schemas.publish(json.dumps(FLAT), "flat-value").id == 8
    return Knowledge(Tables(table="@topic.table"), [], Formats(given), None, framed=access)


def test_flattened_rows_in_avro_become_the_rows_of_their_json(access: RegistrySettings):
    """With the types of their schema and their framed keys; a record without a value deletes the row of its key."""
    records = [(FRAMED_KEY, flat("c", 1)), (FRAMED_KEY, flat("u", 2, note="b")), (FRAMED_KEY, None), (None, None)]
    own = flat_knowledge(access)
    opened = framed.Opener(access, Formats("debezium_flat")).open(batch_of(records))
    assert opened.column("format").to_pylist() == ["debezium_flat"] * 4
    rows, counts = outcomes_of_records(records, own)
    assert counts == {"read": 4, "written": 3, "tombstones": 1}
    texts, keys = (opened.column(name).to_pylist() for name in (framed.TEXT, framed.KEY))
    wanted, same = outcomes_of_records([*zip(keys, texts, strict=True)], flat_knowledge(None))
    assert same == counts
    facts = ("what", "number", "version", "operation", "order", "key", "payload")
    assert [[row[name] for name in facts] for row in rows] == [[row[name] for name in facts] for row in wanted]
    assert [row["operation"] for row in rows] == [*"cud"]
    assert len({row["key"] for row in rows}) == 1
    # Also where no record of a batch has a value.
    _, counts = outcomes_of_records(records[2:3], own)
    assert counts == {"read": 1, "written": 1}


BARE = record(*COLUMNS, name="srv.shop.orders.Value") | {"connect.name": "srv.shop.orders.Value"}


def test_headers_are_read_beside_flattened_rows_in_avro(access: RegistrySettings):
    """The rows of those with members, also where a record has no value; a reject keeps its headers before the id."""
    own = flat_knowledge(access)
    with access.connect() as schemas:
        id = schemas.publish(json.dumps(BARE), "bare-value").id
    keys = [FRAMED_KEY, FRAMED_KEY, None, FRAMED_KEY, FRAMED_KEY]
    whole = [flat("c", 1), flat("u", 2, note="b"), flat("u", 3), flat("u", 4), None]
    bare = [
        None if value is None else registry.frame(written(BARE, {**ROW, **more}), id)
        for value, more in zip(whole, ({}, {"note": "b"}, {}, {}, {}), strict=True)
    ]
    headers = [[("__op", op), ("__pos", b"%d" % pos)] for pos, op in enumerate((b"c", b"u", b"u", b"u", b"d"), 1)]
    headers[3].append(("__op", b"c"))
    wanted, _ = outcomes_of_records([*zip(keys, whole, strict=True)], own)
    batch = with_headers(batch_of([*zip(keys, bare, strict=True)]), headers, STATED)
    rows, summary = converted(replace(own, is_all=True), batch)
    (reject,) = [row for row in rows if row["what"] == REJECT]
    assert (reject["path"], summary["counts"]["rejected"]) == ("$.headers.__op", 1)
    assert reject["raw"] == b'\x05headers["__op","u","__pos","4","__op","c"]\n' + bare[3]
    facts = ("number", "version", "operation", "key", "payload")
    made, same = (
        [[row[name] for name in facts] for row in found if row["what"] == ROW_OUTCOME] for found in (rows, wanted)
    )
    assert sorted(made, key=repr) == sorted([*same[:3], same[4]], key=repr)
    mended = reject["raw"].replace(b',"__op","c"', b"")
    again = batch_of([(FRAMED_KEY, mended), (FRAMED_KEY, b'\x05headers["__op","d","__pos","5"]')], first=3)
    again = again.set_column(again.schema.names.index("clock"), "clock", pa.array(["null"] * 2))
    rows, _ = converted(replace(own, is_all=True), again)
    assert [[row[name] for name in facts] for row in rows] == [one for one in same if one not in made or one[2] == "d"]


def test_messages_without_headers_are_handed_on_as_they_are():
    """None is looked at, so that those whose format reads headers, and that have none, take no longer than others."""
    batch = batch_of([(FRAMED_KEY, b'{"id":1}'), (FRAMED_KEY, None)])
    found = framed.with_stated(with_headers(batch, [[], []], STATED), Formats("debezium_flat"))
    assert found.equals(batch)
    assert found.column("raw").buffers()[2].address == batch.column("raw").buffers()[2].address


def test_flattened_rows_are_told_by_what_was_added_to_them(access: RegistrySettings):
    """Where each schema tells the format; nothing tells what a null is."""
    records = [(FRAMED_KEY, flat("c", 1)), RECORDS[0], (FRAMED_KEY, None)]
    first = flat_knowledge(access, "mixed")
    assert framed.Opener(access, Formats()).open(batch_of(records)).column("format").to_pylist() == [
        "debezium_flat",
        "debezium",
        None,
    ]
    assert outcomes_of_records(records, first)[1] == {"read": 3, "written": 2, "tombstones": 1}


@pytest.mark.parametrize("others", [[], [(FRAMED_KEY, flat("c", 1))]], ids=["alone", "beside a value"])
def test_a_delete_whose_key_cannot_be_read_is_a_reject_and_a_delete_later(access: RegistrySettings, others: Any):
    """A reject has no bytes where there was no value; its key is there."""
    own = flat_knowledge(access)
    missing = registry.frame(written(KEY, {"id": 7}), 9)
    rows, counts = outcomes_of_records([(missing, None), *others], own)
    assert counts["rejected"] == 1
    reject = next(row for row in rows if row["what"] == REJECT)
    assert "expected as its key a schema that" in reject["reason"]
    with access.connect() as schemas:
        assert schemas.publish(json.dumps(KEY | {"doc": "Another."}), "orders-key").id == 9
    batch = batch_of([(missing, b"")])
    again = batch.set_column(batch.schema.names.index("clock"), "clock", pa.array(["null"]))
    later = replace(own, framed=replace(access, timeout=9))
    rows, summary = converted(later, again)
    assert [row["operation"] for row in rows if row["what"] == ROW_OUTCOME] == ["d"]
    assert summary["counts"].get("rejected", 0) == 0


def refined(record: Any, framing: str) -> Any:
    """Return a key and a value that are framed in another way than Confluent's, ids in headers each in another one."""
    made = []
    for is_key, value in ((True, record[0]), (False, record[1])):
        if value is None:
            made.append(None)
            continue
        id, payload = registry.unframe(value)
        content = ContentId(id.number)
        if framing != HEADERS:
            made.append(registry.frame(payload, GlobalId(id.number) if "global" in framing else content))
            continue
        headers = [("apicurio.key.contentId", registry.frame(b"", content)[1:]), ("__value_schema_id", value[:5])]
        made.append(with_header(payload, headers, is_key=is_key))
    return tuple(made)


@pytest.mark.parametrize("framing", [name for name in FRAMINGS if name != "confluent"])
def test_another_framing_that_is_told_gives_the_same_rows(
    access: RegistrySettings, framing: str, monkeypatch: pytest.MonkeyPatch
):
    """Keys too, and what is not framed so is a reject with a reason, also if it is Confluent's way."""
    monkeypatch.setattr(FolderBackend, "by_global_id", FolderBackend.by_id)
    wanted, counts = outcomes_of_records(RECORDS, Knowledge(Tables(), [], Formats(), None, framed=access))
    own = Knowledge(Tables(), [], Formats(), None, framed=replace(access, framing=framing))
    records = [refined(record, framing) for record in RECORDS]
    rows, same = outcomes_of_records(records, own)
    assert (counts, same["written"]) == (same, 3)
    facts = ("what", "number", "version", "operation", "order", "key", "payload")
    assert [[row[name] for name in facts] for row in rows] == [[row[name] for name in facts] for row in wanted]
    other = with_header(RECORDS[0][1], []) if framing == HEADERS else RECORDS[0][1]
    bad = [(None, other), (with_header(FRAMED_KEY, [], is_key=True), records[0][1]), records[1]]
    rows, counts = outcomes_of_records(bad, replace(own, tables=Tables()))
    assert counts == {"read": 3, "written": 1, "rejected": 2}
    reasons = [row["reason"] for row in rows if row["what"] == REJECT]
    header = "a header of the record with the id of its schema, got none"
    expected = {
        HEADERS: (f"expected {header}", f"expected as its key {header}"),
        "apicurio-global-id": ("got global id ", "expected JSON as the key of the Kafka record"),
        "apicurio-content-id": ("got content id ", "expected JSON as the key of the Kafka record"),
    }
    assert all(said in reason for said, reason in zip(expected[framing], reasons, strict=True)), reasons


class BriefTexts(framed.Opener):
    """An opener that reads no message without its text."""

    def _read_envelopes(self, batch: pa.RecordBatch) -> None:
        assert "raw" in batch.schema.names


class WholeTexts(framed.Opener):
    """An opener of which no text is brief."""

    def __init__(self, access: RegistrySettings, formats: Formats, *, is_brief: bool) -> None:
        assert is_brief
        super().__init__(access, formats)


VARIABLE = record(field("scale", "int"), field("value", "bytes"), name="io.debezium.data.VariableScaleDecimal") | {
    "connect.name": "io.debezium.data.VariableScaleDecimal"
}
# The types of columns, and values of each.
KINDS: dict[str, tuple[Any, list[Any]]] = {
    "number": ("long", [0, -1, 2**63 - 1, -(2**63)]),
    "real": ("double", [0.1, -0.0, 1e300, 5.0, float("nan"), float("-inf")]),
    "single": ("float", [0.5, 1e-30, 3.4028235e38]),
    "yes": ("boolean", [True, False]),
    "text": ("string", ["", "naïve 𝄞", 'a"\\\x01\n\x1f/', "\x01", "__debezium_unavailable_value"]),
    "raw": ("bytes", [b"", b"\x00\x01", b"{}"]),
    "price": (DECIMAL, [b"\x00\xc8", b"\xff", b""]),
    "loose": (VARIABLE, [{"scale": 3, "value": b"\x07"}, {"scale": -1, "value": b"\xff\x01"}]),
    "day": ({"type": "int", "connect.name": "io.debezium.time.Date", "connect.version": 1}, [0, 19_000, -1]),
    "at": (MICROSECONDS, [0, 1_700_000_000_123_456, -1]),
    "list": ({"type": "array", "items": ["null", "double"]}, [[], [0.5, None], [1.0] * 400]),
    "map": ({"type": "map", "values": "long"}, [{}, {"a": 1, "\x01": 2}]),
}


def any_stream(random: Random, access: RegistrySettings) -> list[tuple[bytes | None, bytes | None]]:
    """Return records of one table, whose schemas change in between, and of which some are damaged or have no value."""
    records: list[tuple[bytes | None, bytes | None]] = []
    has_keys, is_hurt = random.choice([0, 0.95, 1, 1]), random.choice([0, 0, 0.1])
    for _ in range(random.choice([1, 2])):
        names = random.sample([*KINDS], random.randrange(1, len(KINDS)))
        columns = [{"name": name, "type": ["null", copy.deepcopy(KINDS[name][0])], "default": None} for name in names]
        declared = envelope_of(field("id", "int"), *columns)
        with access.connect() as schemas:
            id = schemas.publish(json.dumps(declared), f"stream-{random.random()}").id
        for _ in range(random.randrange(40)):
            key = random.randrange(5)
            row, old = (
                {"id": id_of, **{name: random.choice([None, *KINDS[name][1]]) for name in names}}
                for id_of in (key, key if random.random() < 0.9 else 9)
            )
            op = random.choice("cuuudr")
            images = (None, row) if op == "d" else (row, old if op == "u" else None)
            payload = written(declared, envelope(op, *images, pos=400 + 10 * len(records)))
            framed_key = registry.frame(written(KEY, {"id": key if random.random() < 0.95 else 9}), 6)
            value = registry.frame(damaged(random, payload) if random.random() < is_hurt else payload, id)
            has_key, has_value = random.random() < has_keys, random.random() < 0.95
            records.append((framed_key if has_key else None, value if has_value else None))
    return records


def damaged(random: Random, payload: bytes) -> bytes:
    """Return a payload that is cut, has more, or has another byte or two bytes in the other order."""
    at = random.randrange(len(payload))
    byte = random.choice([b"\0", b"\1", b"\2", b"\x7f", b"\x80", b"\xff"])
    swapped = payload[:at] + payload[at : at + 2][::-1] + payload[at + 2 :]
    return random.choice([payload[:at], payload + byte, payload[:at] + byte + payload[at + 1 :], swapped])


@pytest.mark.slow
@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(4, 40))])
def test_envelopes_become_what_their_texts_become(access, monkeypatch: pytest.MonkeyPatch, seed: int):
    """Rows, rejects, questions and counts, byte for byte, of values of all types, damaged ones, and several schemas."""
    random = Random(seed)
    records = any_stream(random, access)
    size, given = random.choice([7, 1000]), random.choice(["mixed", "debezium"])
    made = []
    for opener in (framed.Opener, BriefTexts, WholeTexts):
        for module in (framed, task):
            monkeypatch.setattr(module, "Opener", opener)
        tables, outcome = Tables(), []
        for is_all in (False, True, True):
            own = Knowledge(tables, [], Formats(given), None, framed=access, is_all=is_all)
            batches = [batch_of(records[i : i + size], first=i) for i in range(0, len(records), size)]
            rows, summary = converted(own, *batches)
            outcome.append((rows, summary))
            Learner(tables).learn(Change.from_avro(outline) for row in rows for outline in row["outlines"] or ())
        made.append(outcome)
    assert made[0] == made[1] == made[2]


def brief_records(access: RegistrySettings, count: int) -> tuple[Knowledge, pa.RecordBatch]:
    """Return what a task knows of updates of one table, and the batch of them."""
    payloads = [written(ENVELOPE, envelope("u", ROW | {"note": f"{i}"}, ROW, pos=400 + i)) for i in range(count)]
    records = [(FRAMED_KEY, registry.frame(payload, 5)) for payload in payloads]
    first = Knowledge(Tables(), [], Formats(), None, framed=access)
    rows, _ = converted(first, batch_of(records))
    Learner(first.tables).learn(Change.from_avro(outline) for row in rows for outline in row["outlines"] or ())
    return replace(first, is_all=True), batch_of(records)


def test_the_byte_that_marks_a_head_is_none_elsewhere(access: RegistrySettings):
    """Neither in a text that is not opened, nor in the key beside a brief one; both are rejects as they came."""
    text = MESSAGE[:-1] + MARK
    own = replace(knowledge_of_texts([MESSAGE]), formats=Formats("canal"), is_all=True)
    (row,) = [row for row in converted(own, batch_of([(None, MESSAGE), (None, text)]))[0] if row["what"] == REJECT]
    assert row["raw"] == text
    for key in (b'{"id":"\x01"}', b'{"\x01":7}', b"\x01", b'\x01{"id":7}'):
        rows, counts = outcomes_of_records(
            [RECORDS[0], (key, RECORDS[1][1])], Knowledge(Tables(), [], Formats(), None, framed=access)
        )
        assert counts == {"read": 2, "written": 1, "rejected": 1}
        (reject,) = [row for row in rows if row["what"] == REJECT]
        assert (reject["raw"], reject["record_key"]) == (RECORDS[1][1], key)
        assert "schema" not in reject["reason"]


@pytest.mark.skipif(not COMPILED, reason="nothing is compiled here")
@pytest.mark.parametrize("opener", [framed.Opener, BriefTexts])
def test_the_engine_types_envelopes_and_brief_texts(access, monkeypatch: pytest.MonkeyPatch, opener: Any):
    """All but the first, from which their pattern is learned; without the head, it types none."""
    own, batch = brief_records(access, 200)
    monkeypatch.setattr(framed, "Opener", opener)
    left: list[bytes] = []
    changes = Placing.changes
    monkeypatch.setattr(Placing, "changes", lambda self, message: left.append(message) or changes(self, message))
    assert converted(own, batch)[1]["counts"]["written"] == 200
    assert len(left) == 1
    assert b'"value":{"schema":{"type":"struct",' in left[0]
    (opened,) = opener(access, Formats(), is_brief=True).open_in_parts(batch)
    assert (framed.IS_READ in opened.schema.metadata) is (opener is not BriefTexts)
    opened = opener(access, Formats(), is_brief=True).open(batch)
    (text, *_) = opened.column(framed.TEXT).to_pylist()
    whole = framed.Opener(access, Formats()).open(batch)
    assert text.startswith(MARK + b'{"before":')
    assert whole_text(text, opened.schema.metadata[framed.HEAD]) == whole.column(framed.TEXT)[0].as_py()
    again = batch.set_column(batch.schema.names.index("clock"), "clock", pa.array(["null"] * 200))
    assert framed.Opener(access, Formats(), is_brief=True).open(again).schema.metadata is None


@pytest.mark.skipif(not COMPILED, reason="nothing is compiled here")
@pytest.mark.parametrize(
    "other",
    [
        b"",
        (b'"optional"', b'"0ptional"'),
        (b'"payload":', b'"payload"'),
        b'{"schema":[[[,"payload":',
        b'{"schema":{"a":"\xff"},"payload":',
        b'{"schema":null,"payload":',
        b'{"schema":{},"payload":',
        b'{"schema":{"a":1,"a":1},"payload":',
        b'{"schema":{} ,"b":1,"payload":',
        b'{"schema":,"payload":',
        b'{"schema":',
    ],
)
def test_messages_with_a_head_that_is_another_or_none_are_left(other: Any):
    """No rows are made of a schema that they were not learned from."""
    reader = ConnectReader(cdcavro.parse_schema(json.dumps(ENVELOPE)))
    head = reader.head.replace(*other, 1) if isinstance(other, tuple) else other
    assert head != reader.head
    payloads = [written(ENVELOPE, envelope("c", ROW, pos=400 + i)) for i in range(3)]
    for clock in (None, Clock()):
        typer = MessageTyper("debezium", Tables(), clock=clock)
        for payload in payloads:
            typer.add(reader.text(payload))
        texts = column([reader.brief_text(payload) for payload in payloads])
        assert typer.take_column(texts, None, 0, 1 << 20, reader.head) == (3, False)
        assert typer.take_column(texts, None, 0, 1 << 20, head) == (0, False)
        assert typer.take_column(texts, None, 0, 1 << 20) == (0, False)
        assert typer.take_column(texts, None, 0, 1 << 20, reader.head) == (3, False)
        assert len(typer.pop_rows()[1][0]) == 4 * 6


def test_a_value_whose_text_is_shorter_is_not_taken_for_cut(access: RegistrySettings):
    """A thousand numbers of eight bytes each take four bytes each as text."""
    declared = envelope_of(field("id", "int"), field("vector", {"type": "array", "items": "double"}))
    with access.connect() as schemas:
        id = schemas.publish(json.dumps(declared), "vectors-value").id
    row = {"id": 7, "vector": [0.5] * 1000}
    records = [(key, registry.frame(written(declared, envelope("c", row)), id)) for key in (FRAMED_KEY, None)]
    _, counts = outcomes_of_records(records, Knowledge(Tables(), [], Formats(), None, framed=access))
    assert counts == {"read": 2, "written": 2}


def test_texts_that_repeat_a_long_schema_are_few_at_a_time(access: RegistrySettings, monkeypatch: pytest.MonkeyPatch):
    """And make the same rows: a batch of a wide table would take gigabytes. Without rows, it is one batch."""
    opener = framed.Opener(access, Formats())
    (whole,) = opener.open_in_parts(batch_of(RECORDS))
    schema = json.loads(whole.column(framed.TEXT)[0].as_py())["schema"]
    length = len(json.dumps(schema, ensure_ascii=False, separators=(",", ":")))
    monkeypatch.setattr(framed, "_REPEATED", 3 * length - 1)
    parts = [*opener.open_in_parts(batch_of(RECORDS))]
    assert [part.num_rows for part in parts] == [2, 2, 1]
    assert pa.Table.from_batches(parts).to_pylist() == whole.to_pylist()
    assert [part.num_rows for part in opener.open_in_parts(batch_of(RECORDS).slice(0, 0))] == [0]
    monkeypatch.setattr(framed, "_REPEATED", 1)
    assert [part.num_rows for part in opener.open_in_parts(batch_of(RECORDS))] == [1] * 5


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        (FRAMED_KEY, RECORDS[0][1] + b"\x00", "debezium: $: expected the end of the payload"),
        (FRAMED_KEY, RECORDS[0][1][:-2], "debezium: $: expected"),
        (FRAMED_KEY + b"\x00", RECORDS[0][1], "$: expected as its key the end of the payload"),
        (registry.frame(b"x", 99), RECORDS[0][1], "$: expected as its key a schema that file:"),
        (b"\x00", RECORDS[0][1], "$: expected as its key 5 bytes that tell the schema, got 1"),
    ],
    ids=["more bytes", "fewer bytes", "a key with more bytes", "a key of no schema", "half a key"],
)
def test_avro_of_debezium_that_cannot_be_read_is_a_reject_with_its_bytes(access, key, value, reason):
    """Its key is kept as it came, too; the records beside it are rows, and read again it is a reject again."""
    first = Knowledge(Tables(), [], Formats(), None, framed=access)
    rows, counts = outcomes_of_records([RECORDS[0], (key, value), RECORDS[1]], first)
    assert counts == {"read": 3, "written": 2, "rejected": 1}
    (reject,) = [row for row in rows if row["what"] == REJECT]
    assert (reject["raw"], reject["record_key"], reject["offset"]) == (value, key, 1)
    assert reason in reject["reason"]


def test_a_payload_of_another_format_is_none_of_debezium(access: RegistrySettings):
    """A wire schema is no schema of Connect's, whichever format is told."""
    value = registry.frame(cdcavro.encode(MESSAGE, "canal"), 1)
    rows, _ = outcomes_of_records([(None, value)], Knowledge(Tables(), [], Formats("debezium"), None, framed=access))
    assert [row["what"] for row in rows] == [REJECT]

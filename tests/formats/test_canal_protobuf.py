"""The facts of `canal_protobuf`: packets of Alibaba Canal, which are bytes in protobuf."""

from __future__ import annotations

import json
from base64 import b64encode
from dataclasses import replace
from random import Random
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

import cdcavro
from cdcavro.arrow.arrays import slices_of
from cdcavro.change.model import Change
from cdcavro.change.order import in_order
from cdcavro.engine.machine import COMPILED
from cdcavro.errors import MessageError, StructureError
from cdcavro.exact.jsontext import render
from cdcavro.formats.canal_codec import CODEC, read_packet
from cdcavro.lake.learning import Learner
from cdcavro.sync.conversion.knowledge import Knowledge
from cdcavro.sync.conversion.outcome_rows import ROW
from cdcavro.sync.settings import Formats
from cdcavro.table.tables import Tables
from cdcavro.table.writing.message_typer import MessageTyper
from cdcavro.wire.formats import get_format
from support import packet_trial
from support.canal_packets import CLASSES, UPDATE, column, entry, made, packet, rows
from support.messages import shop_canal
from support.roundtrip import assert_golden, error_of, exact, golden_cases
from support.rows_trial import BY_ENGINE, LEFT, Pair
from support.task_batches import batch_of, converted
from support.typed import read

compiled = pytest.mark.skipif(not COMPILED, reason="nothing else reads packets")
INSERT = rows(
    "INSERT",
    made("RowData", afterColumns=[column(0, "id", "7", "int", isKey=True), column(1, "note", None)]),
    made("RowData", afterColumns=[column(0, "id", "8", "int", isKey=True), column(1, "note", "")]),
    offset=4500,
)
DELETE = rows(
    "DELETE", made("RowData", beforeColumns=[column(0, "id", "9", "int", isKey=True)]), table="u", offset=4700
)
BEGIN = entry(4400, made("TransactionBegin", executeTime=1_700_000_000_000, threadId=9), "TRANSACTIONBEGIN")
END = entry(4800, made("TransactionEnd", transactionId="12"), "TRANSACTIONEND")
DDL = entry(
    4300,
    made("RowChange", eventType="CREATE", isDdl=True, sql="CREATE TABLE t (id INT PRIMARY KEY)", ddlSchemaName="shop"),
    "ROWDATA",
    tableName="t",
)
BATCH = packet(BEGIN, INSERT, UPDATE, DELETE, END, DDL, batch=5)


def text_of(message: bytes) -> str:
    """Return the JSON of a packet that came as bytes."""
    return get_format("canal_protobuf").text_of(message).decode()


def changes_of(message: bytes) -> list[Change]:
    """Return the changes of a packet."""
    return cdcavro.to_changes(message, "canal_protobuf", members=False)


@pytest.mark.parametrize("golden", golden_cases("canal_protobuf"))
def test_golden_message_round_trips_and_is_told(golden):
    """Every sample comes back as it was sent, and is told from other formats; so are its bytes."""
    assert_golden("canal_protobuf", golden)
    marked = json.dumps(json.loads(golden) | {"binary": True}).encode()
    raw = cdcavro.decode(cdcavro.encode(marked, "canal_protobuf"), "canal_protobuf")
    assert json.loads(text_of(raw)) == json.loads(marked)
    assert cdcavro.sniff(raw) == cdcavro.sniff(b64encode(raw).decode()) == "canal_protobuf"
    assert CLASSES["Packet"].FromString(raw).SerializeToString() == raw


def test_a_batch_comes_back_to_the_byte():
    """As a payload, as base64, and through its changes, which are one message."""
    assert cdcavro.decode(cdcavro.encode(BATCH, "canal_protobuf"), "canal_protobuf") == BATCH
    assert cdcavro.decode(cdcavro.encode(b64encode(BATCH), "canal_protobuf"), "canal_protobuf") == BATCH
    (text,) = cdcavro.from_changes(cdcavro.to_changes(BATCH, "canal_protobuf"), "canal_protobuf")
    assert exact(text) == exact(text_of(BATCH))
    (same,) = cdcavro.transcode(BATCH, "canal_protobuf", "canal_protobuf").texts
    assert exact(same) == exact(text)


def test_the_changes_of_a_batch_are_its_entries():
    """Each of its own table and kind, numbered through; a null is one, and an absent value an empty text."""
    changes = changes_of(BATCH)
    assert [(one.op, one.source.table, one.row, one.rows) for one in changes] == [
        ("TRANSACTION_BEGIN", None, 0, 7),
        ("INSERT", "t", 1, 7),
        ("INSERT", "t", 2, 7),
        ("UPDATE", "t", 3, 7),
        ("DELETE", "u", 4, 7),
        ("TRANSACTION_END", None, 5, 7),
        ("CREATE", "t", 6, 7),
    ]
    assert [one.after for one in changes[1:3]] == [{"id": 7, "note": None}, {"id": 8, "note": ""}]
    assert (changes[3].changed, changes[3].key, changes[3].position) == (("price",), ("id",), (3, 4567))
    assert changes[5].transaction == "12"
    assert [one.row for one in in_order(changes[1:4])] == [1, 2, 3]


def test_what_is_absent_has_its_default():
    """An entry is ROWDATA, a change an UPDATE, a packet of no entries a heartbeat."""
    row = made("RowData", afterColumns=[made("Column", name="id", value="7")])
    bare = made("Entry", storeValue=made("RowChange", rowDatas=[row]).SerializeToString())
    (change,) = changes_of(packet(bare))
    assert (change.op, change.after, change.position) == ("UPDATE", {"id": "7"}, None)
    assert [one.op for one in changes_of(packet(batch=-1))] == ["HEARTBEAT"]
    assert [one.op for one in changes_of(packet(made("Entry", entryType=4)))] == ["HEARTBEAT"]
    assert [one.op for one in changes_of(made("Packet", type="ACK", body=b"\x08\x00").SerializeToString())] == ["OTHER"]


def test_fields_with_their_defaults_on_the_wire_stay_there():
    """Canal's server writes the number of a batch by hand, also 0."""
    raw = b"\x18\x07\x2a\x02\x08\x00"
    assert text_of(raw) == '{"type":"MESSAGES","batch_id":0,"entries":[],"binary":true}'
    assert cdcavro.decode(cdcavro.encode(raw, "canal_protobuf"), "canal_protobuf") == raw


def test_bytes_in_another_form_are_the_same_message():
    """Fields in another order, and numbers in more bytes than they need, come back in the usual form."""
    plain = b"\x10\x01\x18\x07\x2a\x02\x08\x05"
    for other in (b"\x18\x07\x10\x01\x2a\x02\x08\x05", b"\x10\x81\x00\x18\x07\x2a\x02\x08\x05"):
        assert cdcavro.decode(cdcavro.encode(other, "canal_protobuf"), "canal_protobuf") == plain


@pytest.mark.slow
def test_the_188_messages_of_a_server_become_packets_and_come_back():
    """Those that Canal sent as flat messages: the values, the tables and the statements are the same."""
    count = 0
    for flat in shop_canal():
        for text in cdcavro.transcode(flat, "canal", "canal_protobuf").texts:
            raw = cdcavro.decode(cdcavro.encode(text, "canal_protobuf"), "canal_protobuf")
            assert CLASSES["Packet"].FromString(raw).SerializeToString() == raw
            assert cdcavro.decode(cdcavro.encode(raw, "canal_protobuf"), "canal_protobuf") == raw
            pairs = zip(cdcavro.to_changes(flat, "canal"), changes_of(raw), strict=True)
            assert all(
                (one.op, one.after, one.columns, one.source.table or None, one.ddl or None)
                == (other.op, other.after, other.columns, other.source.table, other.ddl)
                for one, other in pairs
            )
            count += 1
    assert count > 180


def test_rows_of_a_batch_are_typed_in_their_tables():
    """By the types that the columns state, with the zone of the source for a TIMESTAMP."""
    typer = MessageTyper("canal_protobuf", Tables(zone=ZoneInfo("Asia/Shanghai")))
    found = made(
        "RowData",
        afterColumns=[
            column(0, "id", "7", "int", isKey=True),
            column(1, "at", "2023-11-15 06:13:20", "timestamp"),
            column(2, "state", "2", "enum('new','sent')"),
        ],
    )
    (row,) = typer.add(packet(rows("INSERT", found)))
    after = read(row.payload, row.schema.envelope)["after"]
    assert (after["id"], after["at"].isoformat(), after["state"]) == (7, "2023-11-14T22:13:20+00:00", "sent")


def test_columns_without_types_leave_those_of_the_statement():
    """As those that DTS's records become have none: their names alone would make texts of all columns."""
    found = made("RowData", afterColumns=[made("Column", name="id", isKey=True, value="7")])
    (change,) = changes_of(packet(rows("INSERT", found)))
    assert (change.columns, change.key, change.after) == (None, ("id",), {"id": "7"})
    typer = MessageTyper("canal_protobuf", Tables())
    assert typer.add(packet(DDL)) == []
    (row,) = typer.add(packet(rows("INSERT", found)))
    assert read(row.payload, row.schema.envelope)["after"]["id"] == 7


@pytest.mark.parametrize("format", ["canal_protobuf", "mixed"])
def test_records_of_kafka_become_rows(format):
    """As bytes, as they come; what is no packet is a reject with its reason."""
    records = [(None, BATCH), (None, BATCH[:-3])]
    knowledge = Knowledge(Tables(), [], Formats(format), None)
    outcomes, _ = converted(knowledge, batch_of(records))
    Learner(knowledge.tables).learn(Change.from_avro(one) for row in outcomes for one in row["outlines"] or ())
    outcomes, _ = converted(replace(knowledge, is_all=True), batch_of(records))
    assert [row["what"] for row in outcomes].count(ROW) == 4
    assert [row["raw"] for row in outcomes if row["reason"]] == [BATCH[:-3]]


@pytest.mark.parametrize(
    ("raw", "sentence"),
    [
        (b"\x18\x07\x32\x00", "expected a field of Packet in Canal's protobuf, got field 6"),
        (b"\x18\x07\x18\x07", "expected Packet.type once, got twice"),
        (b"\x1a\x00", "expected Packet.type as PacketType, got wire type 2 at byte 1"),
        (b"\x10\x01", "expected a packet of Canal in protobuf, with its type, got none"),
        (b"\x18\x07\x2a\x05\x08", "expected 5 bytes of Packet.body, got 1 at byte 4"),
        (b"\x18\x07\x2a\x02\x12\x05", "expected 5 bytes of Messages.entries, got 0 at byte 2"),
        (b"\x18" + b"\x80" * 11, "expected a number of at most 10 bytes in Packet, got a longer one at byte 11"),
        (b"\x18\x80", "expected Packet in Canal's protobuf, got an end within a number at byte 2"),
        (b"\x08\xff\xff\xff\xff\x0f\x18\x07", "expected Packet.magic_number as int32, got 4294967295"),
        (
            packet(made("Entry", storeValue=b"\x5a\x01\xff")),
            "expected UTF-8 in RowChange.sql, got another byte at byte 2",
        ),
        (packet(made("Entry", storeValue=b"\x50\x02")), "expected RowChange.isDdl as bool, got 2"),
    ],
)
def test_bytes_that_are_no_packet_are_refused_by_name(raw, sentence):
    """With what was expected, and where."""
    assert sentence in error_of(cdcavro.encode, raw, "canal_protobuf")


def test_a_packet_has_a_million_messages_in_it_at_most(monkeypatch):
    """More would take gigabytes, of two bytes each."""
    monkeypatch.setattr("cdcavro.formats.canal_codec.MAX_MESSAGES", 10)
    raw = b"\x18\x07\x2a\x16" + b"\x12\x00" * 11
    assert "expected at most 10 messages in a packet" in error_of(read_packet, raw)
    inner = made("RowChange", rowDatas=[made("RowData")] * 11)
    assert "at most 10 messages" in error_of(read_packet, packet(entry(1, inner, None)))


@compiled
def test_the_engine_finds_too_many_messages_itself():
    """Within milliseconds, where the exact way takes seconds."""
    # The messages around the entries, an entry and what it holds are three.
    enough, too_many = (packet(made("Entry", storeValue=b"\x62\x00" * (1_000_000 - 3 + more))) for more in (0, 1))
    assert CODEC.text(enough) is not None
    assert "expected at most 1000000 messages in a packet" in error_of(cdcavro.encode, too_many, "canal_protobuf")


@pytest.mark.slow
@compiled
def test_the_engine_writes_the_text_of_the_exact_way_or_none():
    """Byte for byte, and of damaged packets none."""
    count = 0
    for seed in range(1_500):
        raw = damaged_packet(Random(seed))
        text = CODEC.text(raw)
        count += text is not None
        assert text in (None, exact_text(raw)), raw
    assert count > 300
    whole = [
        BATCH,
        packet(UPDATE, compression="GZIP"),
        packet(BEGIN, END),
        packet(),
        packet(type="ACK"),
        packet(entry(1, END, "GTIDLOG")),
    ]
    assert [CODEC.text(one) for one in whole] == list(map(exact_text, whole))
    odd = [b"\x18\x07\x2a\x04\x12\x00\x08\x05", b"\x18\x07\x2a\x02\x08\x05", b"\x20\x01\x18\x07\x2a\x00", b"\x18\x07"]
    assert [CODEC.text(one) for one in odd] == list(map(exact_text, odd))
    assert [CODEC.text(one) for one in (b"\x2a\x00\x18\x07", b"\x18\x07\x2a\x00\x20\x01", b"\x10\x01")] == [None] * 3


def damaged_packet(random: Random) -> bytes:
    """Return the bytes of a packet, most of them damaged."""
    raw = bytearray(
        random.choice([BATCH, packet(UPDATE), packet(INSERT, DDL, batch=1), packet(END, compression="NONE")])
    )
    for _ in range(random.randrange(3)):
        at = random.randrange(len(raw))
        raw[at : at + random.randrange(2)] = random.randbytes(random.randrange(2))
    return bytes(raw)


def exact_text(raw: bytes) -> bytes | None:
    """Return the JSON text of a packet by the exact way, None for what is no packet."""
    try:
        return render(read_packet(raw) | {"binary": True})
    except MessageError:
        return None


@compiled
def test_a_column_of_packets_becomes_lines():
    """A line for each entry, up to what may be a text, has no rows, or is for the exact way."""
    values = [
        packet(BEGIN, INSERT, UPDATE, DELETE, END),
        None,
        packet(UPDATE),
        b64encode(BATCH),
        BATCH,
        packet(BEGIN),
        b"",
    ]
    column = slices_of(pa.array(values, pa.binary()))
    lines, ends, stop = CODEC.column(column, 0, 5, 1 << 30)
    assert (stop, lines.count(b"\n")) == (3, 6)
    first, insert, update, delete, last, again = lines.split(b"\n")[:-1]
    assert (first, last, again) == (b"", b"", update)
    common = {"logfileName": "mysql-bin.000003", "executeTime": 1_700_000_000_000, "sourceType": "MYSQL"}
    columns = "2:id3:int#12k4:note11:varchar(10)#12;"
    rows = [{"id": "7", "note": None}, {"id": "8", "note": ""}]
    common |= {"schemaName": "shop", "tableName": "t", "logfileOffset": 4500}
    assert json.loads(insert) == {**common, "eventType": "INSERT", "columns": columns, "data": rows}
    assert json.loads(update)["old"] == [{"price": "1.20"}]
    assert json.loads(delete)["isDelete"] is True
    size = len(packet_lines := lines[: len(lines) - len(again) - 1])
    assert [*memoryview(ends).cast("i")] == [size + 5, size + 5, len(lines) + 5]
    assert packet_lines.endswith(b"\n\n")
    assert [CODEC.column(column, i, 0, 1 << 30)[2] for i in range(3, 7)] == [3, 4, 5, 6]
    assert CODEC.column(column, 0, 0, len(lines) - 1)[2] == 2


@pytest.mark.slow
@compiled
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 6))])
def test_packets_have_the_rows_and_the_order_of_the_exact_way(seed):
    """Of one entry or several, of any tables, as they are, changed, and damaged."""
    outcomes = packet_trial.trial(100 if seed == 0 else 2_000, seed)
    assert outcomes["by the engine"] > 150


@compiled
def test_a_packet_of_several_tables_is_typed_by_the_engine_once_its_lines_are_known():
    """Each row has its number among all changes of the packet; marks count, and have no rows."""
    typer = MessageTyper("canal_protobuf", Tables())
    note = made("RowData", afterColumns=[column(0, "id", "7", "int", isKey=True), column(1, "note", None)])
    batch = packet(BEGIN, rows("INSERT", note, note, table="v"), UPDATE, DELETE, END)
    first, again = typer.add(batch), typer.add(batch)
    assert typer.taken == 1
    assert again == first
    sources = [read(row.payload, row.schema.envelope)["source"] for row in again]
    numbers = [(row.table.schema.table.table, one["message_row"]) for row, one in zip(again, sources, strict=True)]
    assert numbers == [("v", 1), ("v", 2), ("t", 3), ("u", 4)]
    assert [row.op for row in typer.add(packet(DELETE, BEGIN, UPDATE))] == ["DELETE", "UPDATE"]
    assert typer.taken == 2


@compiled
@pytest.mark.parametrize("was", [None, "", "a"])
@pytest.mark.parametrize("now", [None, "", "a"])
def test_null_before_or_after_an_update_is_no_empty_text(was, now):
    """A column that did not change is not sent twice to the engine, and null and an empty text are not the same."""

    def update(before: str | None, after: str | None) -> bytes:
        sides = (("beforeColumns", before, "1"), ("afterColumns", after, "2"))
        key = column(0, "id", "7", "int", isKey=True)
        lists = {side: [key, column(1, "v", one), column(2, "w", other)] for side, one, other in sides}
        return packet(rows("UPDATE", made("RowData", **lists)))

    pair = Pair("canal_protobuf", None)
    assert [pair.take(one) for one in (update("x", "y"), update(was, now))] == [LEFT, BY_ENGINE]


@compiled
def test_lines_that_come_as_a_message_are_refused():
    """They are no packet of Canal, though the engine types them."""
    column = slices_of(pa.array([packet(UPDATE)], pa.binary()))
    lines = CODEC.column(column, 0, 0, 1 << 30)[0]
    typer = MessageTyper("canal_protobuf", Tables())
    typer.add(packet(UPDATE))
    assert typer.type_by_pattern(packet(UPDATE)) is not None
    for text in (lines, lines.rstrip()):
        assert typer.type_by_pattern(text) is None
        assert "expected" in error_of(typer.add, text)


@compiled
def test_rows_of_a_packet_repeat_a_bounded_part_of_its_first_change():
    """The exact way refuses more, and so the engine leaves it."""
    typer = MessageTyper("canal_protobuf", Tables())
    found = [made("RowData", afterColumns=[column(0, "id", str(i), "int", isKey=True)]) for i in range(300)]
    few, some, many = (packet(rows("INSERT", *found[:count], gtid="g" * 20_000)) for count in (2, 220, 300))
    assert [len(typer.add(one)) for one in (few, few, some)] == [2, 2, 220]
    assert typer.taken == 1
    assert "what 300 rows have in common" in error_of(typer.add, many)


@compiled
def test_a_binary_value_has_the_zeros_that_pad_it_as_in_flat_messages():
    """Canal sends BINARY(4) without them."""
    found = made("RowData", afterColumns=[column(0, "id", "7", "int", isKey=True), column(1, "b", "a", "binary(4)")])
    typer = MessageTyper("canal_protobuf", Tables())
    for _ in range(2):
        (row,) = typer.add(packet(rows("INSERT", found)))
        assert read(row.payload, row.schema.envelope)["after"]["b"] == b"a\0\0\0"
    assert typer.taken == 1


def test_an_entry_has_as_many_rows_as_any_message(monkeypatch):
    """More are refused before the first of them is read."""
    monkeypatch.setattr("cdcavro.formats.canal_protobuf.MAX_ROWS", 1)
    monkeypatch.setattr("cdcavro.formats.canal_protobuf._row", None)
    assert "$.entries[0].rowChange.rowDatas: expected at most 1 rows in a message, got 2" in error_of(
        changes_of, packet(INSERT)
    )


def test_a_compressed_body_is_kept_and_has_no_changes():
    """Its bytes come back."""
    raw = packet(UPDATE, compression="GZIP")
    assert cdcavro.decode(cdcavro.encode(raw, "canal_protobuf"), "canal_protobuf") == raw
    assert "$.compression: expected a body without compression, got 'GZIP'" in error_of(changes_of, raw)
    assert len(changes_of(packet(UPDATE, compression="NONE"))) == 1


def test_a_column_that_stands_twice_is_refused():
    """One of the two values would be lost."""
    twice = made("RowData", afterColumns=[column(0, "id", "7"), column(1, "id", "8")])
    assert "each column once" in error_of(changes_of, packet(rows("INSERT", twice)))


def test_numbers_in_place_of_texts_are_their_digits():
    """In the JSON of a packet, which any program may write: a value is not lost because it is no string."""
    text = text_of(packet(INSERT)).replace('"value":"7"', '"value":1.20').replace('"name":"note"', '"name":5')
    first, second = cdcavro.to_changes(text.replace('"int"', "true"), "canal_protobuf")
    assert (first.after, second.after) == ({"id": "1.20", "5": None}, {"id": "8", "5": ""})
    assert [column.type for column in first.columns] == ["true", "varchar(10)"]


def test_numbers_that_an_enum_has_no_name_for_come_back():
    """As texts of their digits."""
    raw = packet(made("Entry", entryType=77, storeValue=b"\x01"), entry(1, made("RowChange", eventType=99), "ROWDATA"))
    assert '"entryType":"77","storeValue":"AQ=="' in text_of(raw)
    assert cdcavro.decode(cdcavro.encode(raw, "canal_protobuf"), "canal_protobuf") == raw


@pytest.mark.parametrize(
    ("members", "sentence"),
    [
        ({"version": "1"}, "$.version: expected int32, got '1'"),
        ({"compression": "BEST"}, "$.compression: expected a name of Compression, got 'BEST'"),
        ({"entries": [{"entryType": "99999999999"}]}, "$.entries.entryType: expected a name of EntryType"),
        ({"entries": [{"storeValue": "?"}]}, "$.entries.storeValue: expected bytes, got '?'"),
    ],
)
def test_text_that_has_no_bytes_says_why(members, sentence):
    """If it says that it came as bytes."""
    payload = cdcavro.encode(json.dumps({"type": "MESSAGES", "binary": True} | members), "canal_protobuf")
    with pytest.raises(StructureError) as caught:
        cdcavro.decode(payload, "canal_protobuf")
    assert sentence in str(caught.value)


@pytest.mark.parametrize("seed", range(20))
def test_damaged_bytes_are_refused_or_mean_what_protobuf_says(seed):
    """Nothing but the project's errors is raised; what is read comes back as the same message."""
    random = Random(seed)
    for _ in range(60):
        raw = bytearray(BATCH)
        for _ in range(random.randrange(1, 4)):
            at = random.randrange(len(raw))
            raw[at : at + random.randrange(2)] = random.randbytes(random.randrange(3))
        try:
            payload = cdcavro.encode(bytes(raw), "canal_protobuf")
            changes_of(bytes(raw))
        except MessageError:
            continue
        again = cdcavro.decode(payload, "canal_protobuf")
        assert cdcavro.encode(again, "canal_protobuf") == payload
        outer = CLASSES["Packet"].FromString(bytes(raw))
        assert CLASSES["Packet"].FromString(again).type == outer.type

"""The facts of `dts_avro`: records of Alibaba DTS in Avro, which are bytes."""

from __future__ import annotations

import json
from base64 import b64encode
from itertools import pairwise
from random import Random

import pyarrow as pa
import pytest

import cdcavro
from cdcavro.arrow.arrays import slices_of
from cdcavro.avro.binary import Buffer
from cdcavro.change.model import Change
from cdcavro.engine.machine import COMPILED
from cdcavro.errors import MessageError, StructureError, TextError
from cdcavro.exact.jsontext import MAX_LENGTH, parse, render
from cdcavro.formats.dts_avro import CODEC
from cdcavro.formats.dts_codec import read_record
from cdcavro.lake.learning import Learner
from cdcavro.sync.conversion.knowledge import Knowledge
from cdcavro.sync.conversion.outcome_rows import ROW
from cdcavro.sync.settings import Chosen, Formats
from cdcavro.table.tables import Tables
from cdcavro.table.writing.message_typer import MessageTyper
from cdcavro.wire.format import validate
from cdcavro.wire.formats import get_format
from support.dts_records import any_value, instant, packed, record, value
from support.messages import goldens
from support.roundtrip import assert_golden, error_of, golden_cases, outcome
from support.task_batches import batch_of, converted
from support.typed import read

COLUMNS = {"a": 8, "b": 253}
ROW_1 = [value("Integer", precision=8, value="123456789"), value("Character", charset="utf8mb4", value="té".encode())]
INSERT = packed(record(COLUMNS, afterImages=ROW_1))
# What a column of texts does not have.
UNSTATED = ("fields", "beforeForms", "afterForms")
DDL = packed(
    record(operation="DDL", objectName="mydb", afterImages="create table t1(a bigint primary key, b varchar(100))")
)
DDL_OTHER_CASE = packed(record(operation="DDL", objectName="mydb", afterImages="create table T1(a bigint primary key)"))


def text_of(message: bytes) -> dict:
    """Return the JSON of a record that came as bytes."""
    return json.loads(get_format("dts_avro").text_of(message))


@pytest.mark.parametrize("golden", golden_cases("dts_avro"))
def test_golden_message_round_trips_and_is_told(golden):
    """Every sample comes back as it was sent, and is told from other formats."""
    assert_golden("dts_avro", golden)


@pytest.mark.parametrize("golden", golden_cases("dts_avro"))
def test_bytes_come_back_as_bytes(golden):
    """Those of every sample: the payload of the bytes is that of the text, but that it says that it came as bytes."""
    marked = json.dumps(json.loads(golden) | {"binary": True}).encode()
    raw = cdcavro.decode(cdcavro.encode(marked, "dts_avro"), "dts_avro")
    assert raw[:1] != b"{"
    assert cdcavro.decode(cdcavro.encode(raw, "dts_avro"), "dts_avro") == raw
    assert text_of(raw) == json.loads(golden) | {"binary": True}
    assert validate(raw, get_format("dts_avro"))["binary"] is True
    assert cdcavro.sniff(raw) == cdcavro.sniff(b64encode(raw).decode()) == "dts_avro"


@pytest.mark.parametrize("seed", range(40))
def test_any_record_comes_back_to_the_byte(seed):
    """Whatever its values are; also through its changes, and from base64."""
    random = Random(seed)
    for _ in range(10):
        names = {f"c{i}": random.choice([8, 10, 11, 12, 13, 253]) for i in range(random.randrange(6))}
        rows = [random.choice([None, "text", [any_value(random) for _ in names]]) for _ in range(2)]
        source = {"sourceType": random.choice(["MySQL", "PostgreSQL", "OTHER"]), "version": ""}
        name = random.choice([None, "d.t", "d", "a.b.c", "a.b.c.d", "d\\u002Ee.t", ""])
        position = random.choice(["4@3", "lsn:2", ""])
        one = record(
            names, beforeImages=rows[0], afterImages=rows[1], source=source, objectName=name, sourcePosition=position
        )
        raw = packed(one | random.choice([{}, {"processTimestamps": [1, -2]}, {"tags": {}, "sourceTxid": "tx"}]))
        assert cdcavro.decode(cdcavro.encode(raw, "dts_avro"), "dts_avro") == raw
        assert cdcavro.decode(cdcavro.encode(b64encode(raw), "dts_avro"), "dts_avro") == raw


@pytest.mark.parametrize(
    ("sent", "number", "plain"),
    [
        (value("Integer", precision=8, value="18446744073709551615"), 8, "18446744073709551615"),
        (value("Decimal", value="1.20", precision=10, scale=2), 246, "1.20"),
        (value("Float", value=0.1, precision=0, scale=0), 5, "0.1"),
        (value("Float", value=float("nan"), precision=0, scale=0), 5, '"NaN"'),
        (value("Character", charset="gbk", value="中".encode("gbk")), 253, '"中"'),
        (value("Character", charset="latin1", value=b"\x80\x81"), 253, '"€\x81"'),
        (value("Character", charset="cp932", value=b"\xfb\xfc"), 253, '"髙"'),
        (value("Character", charset="binary", value=b"\xff"), 254, '"/w=="'),
        (value("Timestamp", timestamp=1_700_000_000, millis=250_000), 7, '"2023-11-14T22:13:20.250000Z"'),
        (value("DateTime", **instant(2023, 1, 2, 3, 4, 5, 6)), 12, '"2023-01-02 03:04:05.000006"'),
        (value("DateTime", **instant(2023, 1, 2, 0, 0, 0, 0)), 10, '"2023-01-02"'),
        (value("DateTime", **instant(None, None, None, -838, -59, -59)), 11, '"-838:59:59"'),
        (value("DateTime", **instant(0, 0, 0, 0, 0, -1, 0)), 11, '"-00:00:01"'),
        (value("DateTime", **instant(2023)), 13, "2023"),
        (
            value("TimestampWithTimeZone", value=instant(2023, 1, 2, 3, 4, 5), timezone="+08:00"),
            0,
            '"2023-01-02 03:04:05+08:00"',
        ),
        (value("BinaryObject", type="blob", value=b"\x00\xff"), 252, '"AP8="'),
        (value("TextObject", type="json", value='{"a":1}'), 245, '"{\\"a\\":1}"'),
        ("NULL", 8, "null"),
        (None, 8, "null"),
    ],
)
def test_a_value_stands_in_the_row_as_the_clients_print_it(sent, number, plain):
    """Texts in their character set, bytes in base64, instants in UTC."""
    raw = packed(record({"c": number}, afterImages=[sent]))
    assert f'"afterImages":{{"c":{plain}}}' in get_format("dts_avro").text_of(raw).decode()
    assert cdcavro.decode(cdcavro.encode(raw, "dts_avro"), "dts_avro") == raw


NO_TEXT = [
    ("klingon", b"x", "a charset that is known, got 'klingon'"),
    ("eucjpms", b"x", "a charset that is known, got 'eucjpms'"),
    ("utf8mb4", b"\xff", "a text in the charset 'utf8mb4', got other bytes"),
    ("sjis", b"\x81\x5f", "a text in the charset 'sjis', got other bytes"),
]


def texts(charset: str, *raws: bytes) -> bytes:
    """Return a record that inserts a row with a text, and one more for each of the others."""
    names = {"a": 8} | {f"b{i}": 253 for i, _ in enumerate(raws)}
    values = [value("Character", charset=charset, value=raw) for raw in raws]
    return packed(record(names, afterImages=[ROW_1[0], *values], tags={"pk_uk_info": '{"PRIMARY":["a"]}'}))


@pytest.mark.parametrize(("charset", "raw", "sentence"), NO_TEXT)
def test_a_value_that_is_no_text_in_its_charset_has_no_change(charset, raw, sentence):
    """Base64 would be taken for the text; its record comes back, and the first such value is named."""
    one = texts(charset, raw, b"\xff" if charset == "utf8mb4" else raw)
    assert error_of(cdcavro.to_changes, one, "dts_avro") == f"dts_avro: $.afterImages.b0: expected {sentence}"
    assert text_of(one)["unreadable"] == {"/afterImages/b0": charset, "/afterImages/b1": charset}
    assert cdcavro.decode(cdcavro.encode(one, "dts_avro"), "dts_avro") == one


@pytest.mark.parametrize(("charset", "raw", "sentence"), NO_TEXT)
def test_a_pipeline_rejects_what_is_no_text_in_its_charset(charset, raw, sentence):
    """Also where the engine types rows of the same table, and texts in other charsets."""
    plain, other, wrong = texts("utf8mb4", b"x"), texts("gbk", "\u4e2d".encode("gbk")), texts(charset, raw)
    tables = Tables()
    Learner(tables).learn(cdcavro.to_changes(plain, "dts_avro"))
    knowledge = Knowledge(tables, [], Formats("dts_avro"), None, is_all=True)
    rows, summary = converted(knowledge, batch_of([(None, one) for one in (plain, plain, other, wrong, other)]))
    assert summary["counts"]["written"] == 4
    (reject,) = [row for row in rows if row["what"] != ROW]
    assert (reject["offset"], reject["raw"]) == (3, wrong)
    assert reject["reason"] == f"dts_avro: $.afterImages.b0: expected {sentence}"
    (table,) = tables.tables
    found = [read(row["payload"], table.schema.envelope)["after"]["b0"] for row in rows if row["what"] == ROW]
    assert sorted(found) == ["x", "x", "\u4e2d", "\u4e2d"]


@pytest.mark.parametrize(
    ("chosen", "known", "left_out", "counts"),
    [
        pytest.param(Chosen(exclude=("mydb.t1",)), [], [], {"left out": 1}, id="a new table"),
        pytest.param(Chosen(exclude=("t1",)), [INSERT], [0], {"left out": 1}, id="a known table"),
        pytest.param(Chosen(exclude=("t1",)), [INSERT], [], {"rejected": 1}, id="one that was wanted"),
        pytest.param(Chosen(exclude=("t2",)), [], [], {"rejected": 1}, id="another one"),
        pytest.param(
            Chosen(exclude=("t1",)), [DDL_OTHER_CASE], [], {"rejected": 1}, id="another spelling of a wanted one"
        ),
    ],
)
def test_a_row_that_cannot_be_read_is_left_out_if_its_table_is(chosen, known, left_out, counts):
    """Whatever its values are; but it is a reject if its table may be one that is wanted, under another name."""
    tables = Tables()
    for message in known:
        Learner(tables).learn(cdcavro.to_changes(message, "dts_avro"))
    knowledge = Knowledge(
        tables, [], Formats("dts_avro"), None, chosen=chosen, left_out=frozenset(left_out), is_all=True
    )
    rows, summary = converted(knowledge, batch_of([(None, texts("utf8mb4", b"\xff"))]))
    assert summary["counts"] == {"read": 1, "tombstones": 0, **counts}
    assert len(rows) == counts.get("rejected", 0)


def test_a_column_that_the_log_does_not_have_is_absent():
    """As of a row image that is not whole."""
    (change,) = cdcavro.to_changes(
        packed(record(COLUMNS, operation="UPDATE", beforeImages=[ROW_1[0], "NONE"], afterImages=[ROW_1[0], "NULL"])),
        "dts_avro",
    )
    assert (change.before, change.after) == ({"a": 123456789}, {"a": 123456789, "b": None})


@pytest.mark.parametrize(
    ("name", "kind", "found"),
    [
        ("d.t", "MySQL", ("d", None, "t")),
        ("s.t", "PostgreSQL", (None, "s", "t")),
        ("d.s.t", "Oracle", ("d", "s", "t")),
        ("d", "MySQL", ("d", None, None)),
        ("a\\u002Eb.t", "DRDS", ("a.b", None, "t")),
        (None, "MySQL", (None, None, None)),
    ],
)
def test_names_are_those_of_the_source(name, kind, found):
    """Of two names the first is the database in MySQL, and the schema elsewhere."""
    (change,) = cdcavro.to_changes(
        packed(record(objectName=name, operation="HEARTBEAT", source={"sourceType": kind, "version": ""})), "dts_avro"
    )
    assert (change.source.database, change.source.schema, change.source.table) == found


def test_order_key_and_time_of_a_change():
    """The file's number, the offset in it and the id; the columns of PRIMARY; seconds."""
    (change,) = cdcavro.to_changes(INSERT, "dts_avro")
    assert (change.position, change.key) == ((78, 75259, 1700504), ("a",))
    assert (change.event_time, change.transaction) == (1_696_984_517_000_000, None)
    other = record(COLUMNS, afterImages=ROW_1, sourcePosition="lsn:2", sourceTxid="9", tags={"pk_uk_info": "{"})
    (change,) = cdcavro.to_changes(packed(other), "dts_avro")
    assert (change.position, change.key, change.transaction) == (None, None, "9")


def test_a_statement_makes_a_table_and_its_rows_are_typed_by_the_engine():
    """Also where a null stands for a value, since the forms of values are no part of the pattern."""
    typer = MessageTyper("dts_avro", Tables())
    typer.add(DDL)
    messages = [
        packed(
            record(COLUMNS, afterImages=[value("Integer", precision=8, value=str(i)), row], sourcePosition=f"{i}@78")
        )
        for i, row in enumerate([ROW_1[1], None, "NULL", ROW_1[1]])
    ]
    texts = [get_format("dts_avro").text_of(one) for one in messages]
    rows = [read(row.payload, row.schema.envelope) for one in texts for row in typer.add(one)]
    assert [(row["after"]["a"], row["after"]["b"]) for row in rows] == [(0, "té"), (1, None), (2, None), (3, "té")]
    assert typer.taken == (3 if COMPILED else 0)
    exact = MessageTyper("dts_avro", Tables())
    assert [read(row.payload, row.schema.envelope) for one in (DDL, *messages) for row in exact.add(one)] == rows


def test_records_of_kafka_become_rows():
    """As bytes, as they come, with the format told and found; what is no record is a reject with its reason."""
    for format in ("dts_avro", "mixed"):
        records = [(None, DDL), (None, INSERT), (None, INSERT[:-3])]
        knowledge = Knowledge(Tables(), [], Formats(format), None)
        rows, _ = converted(knowledge, batch_of(records))
        Learner(knowledge.tables).learn(Change.from_avro(one) for row in rows for one in row["outlines"] or ())
        rows, _ = converted(knowledge, batch_of(records))
        assert [row["what"] for row in rows].count(ROW) == 1, format
        assert any("DTS" in (row["reason"] or "") for row in rows) is (format == "dts_avro")


def test_a_change_of_another_format_becomes_a_record():
    """Its bytes are those that fastavro reads, and the row comes back."""
    canal = '{"type":"UPDATE","database":"d","table":"t","es":1700000000000,"pkNames":["id"],"id":1,"isDdl":false,"data":[{"id":"1","n":"1.20"}],"old":[{"n":"1.10"}],"mysqlType":{"id":"int","n":"decimal(4,2)"},"sql":""}'
    made = cdcavro.transcode(canal, "canal", "dts_avro")
    (text,), losses = made.texts, made.losses
    raw = cdcavro.decode(cdcavro.encode(text, "dts_avro"), "dts_avro")
    assert raw[:1] != b"{"
    (change,) = cdcavro.to_changes(raw, "dts_avro")
    assert (
        str((change.before, change.after))
        == "({'id': 1, 'n': ExactNumber('1.10')}, {'id': 1, 'n': ExactNumber('1.20')})"
    )
    assert (change.source.database, change.source.table, change.key) == ("d", "t", ("id",))
    sent = json.loads(text)
    assert {name: text_of(raw)[name] for name in sent} == sent
    assert all(loss.reason for loss in losses)
    (statement,) = cdcavro.transcode(
        '{"type":"ALTER","database":"d","table":"t","id":1,"isDdl":true,"data":null,"sql":"ALTER TABLE t ADD c INT"}',
        "canal",
        "dts_avro",
    ).texts
    assert cdcavro.to_changes(statement, "dts_avro")[0].op == "ALTER"


def test_text_without_what_other_members_state_is_read_as_the_bytes_are():
    """The table and the key are read from the name and the tag, as of bytes; what is stated counts."""
    one = {"operation": "INSERT", "objectName": "d.t", "afterImages": {"a": 1}, "source": {"sourceType": "MySQL"}}
    one |= {"tags": {"pk_uk_info": '{"PRIMARY":["a"]}'}}
    (change,) = cdcavro.to_changes(json.dumps(one), "dts_avro")
    assert (change.source.database, change.source.table, change.key) == ("d", "t", ("a",))
    (back,) = cdcavro.from_changes([change], "dts_avro")
    assert json.loads(back) == one
    (change,) = cdcavro.to_changes(json.dumps(one | {"table": "x", "key": ["b"]}), "dts_avro")
    assert (change.source.table, change.key) == ("x", ("b",))
    typer = MessageTyper("dts_avro", Tables())
    texts = [json.dumps(one | {"objectName": name}) for name in ("d.t", "d.t", "d.u", "d.u", "d.t")]
    assert [row.schema.table.table for text in texts for row in typer.add(text)] == ["t", "t", "u", "u", "t"]
    assert typer.taken == (2 if COMPILED else 0)


def test_blocks_of_arrays_in_another_cut_are_the_same_value():
    """A producer may write an array in several blocks, with their sizes; the bytes that come back are the plain ones."""
    plain = packed(record(processTimestamps=[1, 2]))
    out = Buffer()
    for number in (2, 2):  # two numbers in a block each
        out.write_long(-1)
        out.write_long(1)
        out.write_long(number // 2 if not out[3:] else 2)
    out.write_long(0)
    cut = plain.replace(b"\x04\x02\x04\x00", bytes(out), 1)
    assert cut != plain
    assert cdcavro.decode(cdcavro.encode(cut, "dts_avro"), "dts_avro") == plain


def test_a_record_without_its_last_member_is_one_of_an_older_schema():
    """And comes back without it."""
    old = INSERT[:-5]
    assert packed(record(COLUMNS, afterImages=ROW_1))[len(old) :] != b""
    assert "bornTimestamp" not in text_of(old)
    assert cdcavro.decode(cdcavro.encode(old, "dts_avro"), "dts_avro") == old


def test_bytes_that_only_move_the_offset_on_are_kept():
    """As the clients do, which skip what has 48 bytes."""
    raw = b"\xff" * 48
    assert cdcavro.to_changes(raw, "dts_avro")[0].op == "OTHER"
    assert cdcavro.decode(cdcavro.encode(raw, "dts_avro"), "dts_avro") == raw
    assert "a record of DTS in Avro" in error_of(cdcavro.encode, raw[:-1], "dts_avro")


@pytest.mark.parametrize("around", [b"%s\r", b" %s ", b"\t%s\r\n"])
def test_white_space_around_base64_is_none_of_it(around: bytes):
    """Files of other systems end lines with two characters."""
    for line in (around % b64encode(INSERT), (around % b64encode(INSERT)).decode()):
        assert cdcavro.decode(cdcavro.encode(line, "dts_avro"), "dts_avro") == INSERT


@pytest.mark.parametrize(
    "damaged", [b64encode(INSERT)[:-1], b64encode(INSERT)[:8] + b"\n" + b64encode(INSERT)[8:], b"1_-AAAAA"]
)
def test_base64_that_is_not_clean_is_told_as_that(damaged: bytes):
    """And not as a damaged record."""
    for line in (damaged, damaged.decode()):
        assert "$: expected base64 in fours, in one piece" in error_of(cdcavro.encode, line, "dts_avro")


@pytest.mark.parametrize("seed", range(20))
def test_damaged_bytes_are_refused_or_mean_something(seed):
    """Nothing but the project's errors is raised, and what is read comes back as the same message."""
    random = Random(seed)
    for _ in range(60):
        raw = bytearray(random.choice([INSERT, DDL]))
        for _ in range(random.randrange(1, 4)):
            at = random.randrange(len(raw))
            raw[at : at + random.randrange(2)] = random.randbytes(random.randrange(3))
        try:
            payload = cdcavro.encode(bytes(raw), "dts_avro")
            cdcavro.to_changes(bytes(raw), "dts_avro")
        except MessageError:
            continue
        again = cdcavro.decode(payload, "dts_avro")
        assert cdcavro.encode(again, "dts_avro") == payload


@pytest.mark.parametrize(
    ("members", "sentence"),
    [
        ({"operation": "MERGE"}, "$.operation: expected an operation of DTS, got 'MERGE'"),
        ({"version": "0"}, "$.version: expected an integer of 32 bits, got '0'"),
        ({"afterForms": []}, "$.afterForms: expected 2 forms, got 0"),
        ({"afterForms": [{"type": "Nothing"}, None]}, "$.afterImages: expected a type of DTS, got 'Nothing'"),
        ({"afterForms": [{"type": "Integer"}, None]}, "$.afterImages.a: expected a value of the type Integer, got '1'"),
        (
            {"afterForms": [None, {"type": "Character", "charset": "klingon"}]},
            "$.afterImages.b: expected base64, as the charset 'klingon' is not known, got 'x'",
        ),
        (
            {"afterForms": [None, {"type": "Character", "charset": "latin1"}], "afterImages": {"a": 1, "b": "中"}},
            "$.afterImages.b: expected a text in the charset 'latin1', got '中'",
        ),
        (
            {"afterForms": [{"type": "Float", "value": '{"value":"x"}'}, None]},
            '$.afterImages: expected the members of Float, got \'{"value":"x"}\'',
        ),
        ({"noOperation": "?"}, "$.noOperation: expected base64, got '?'"),
    ],
)
def test_text_that_has_no_bytes_says_why(members, sentence):
    """If it says that it came as bytes."""
    fields = [{"name": "a", "dataTypeNumber": 8}, {"name": "b", "dataTypeNumber": 253}]
    usual = {"operation": "INSERT", "fields": fields, "afterImages": {"a": 1, "b": "x"}, "binary": True}
    payload = cdcavro.encode(json.dumps(usual | members), "dts_avro")
    with pytest.raises(StructureError) as caught:
        cdcavro.decode(payload, "dts_avro")
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    ("one", "sentence"),
    [
        (record(COLUMNS, afterImages=ROW_1[:1]), "2 values, one for each column"),
        (record({"a": 8}, fields=[{"name": "a", "dataTypeNumber": 8}] * 2, afterImages=ROW_1), "each column once"),
        (record(afterImages=ROW_1), "0 values, one for each column"),
    ],
)
def test_rows_that_do_not_fit_their_columns_are_refused(one, sentence):
    """By name."""
    with pytest.raises(TextError, match=sentence):
        cdcavro.encode(packed(one), "dts_avro")


def test_a_record_has_a_bounded_number_of_columns():
    """More would take a hundred times the memory of their bytes."""
    columns = {f"c{i}": 8 for i in range(65_537)}
    assert "expected a record of DTS in Avro: at most 65536 columns, got 65537" in error_of(
        cdcavro.encode, packed(record(columns)), "dts_avro"
    )
    assert cdcavro.encode(packed(record(COLUMNS, afterImages=ROW_1)), "dts_avro")


def damaged_record(random: Random) -> bytes:
    """Return the bytes of a record at random, every second one damaged."""
    names = {f"c{i}": random.choice([8, 10, 11, 12, 13, 253]) for i in range(random.randrange(6))}
    rows = [random.choice([None, "text", [any_value(random) for _ in names]]) for _ in range(2)]
    facts = {
        "source": {"sourceType": random.choice(["MySQL", "PostgreSQL", "OTHER"]), "version": ""},
        "objectName": random.choice([None, "d.t", "d", "a.b.c", "d\\u002Ee.t", ""]),
        "sourcePosition": random.choice(["4@3", "007@1", "lsn:2", "", "1@", "@1", "1" * 19 + "@1", "1@2@"]),
    }
    facts |= random.choice([{}, {"processTimestamps": [1, -2]}, {"tags": {}, "sourceTxid": "tx"}, {"sourceTxid": ""}])
    raw = bytearray(packed(record(names, beforeImages=rows[0], afterImages=rows[1], **facts)))
    for _ in range(random.choice([0, random.randrange(1, 3)])):
        at = random.randrange(len(raw))
        raw[at : at + random.randrange(2)] = random.randbytes(random.randrange(3))
    return bytes(raw)


@pytest.mark.slow
@pytest.mark.skipif(not COMPILED, reason="nothing else reads records")
def test_the_engine_writes_the_text_of_the_exact_way_or_none():
    """Byte for byte, and of damaged records none."""
    count = 0
    for seed in range(1_200):
        raw = damaged_record(Random(seed))
        text = CODEC.text(raw)
        count += text is not None
        assert text in (None, exact_text(raw)), raw
    assert count > 400
    assert all(CODEC.text(one) == exact_text(one) for one in (INSERT, DDL))


def exact_text(raw: bytes) -> bytes | None:
    """Return the JSON text of a record by the exact way, None for what is no record."""
    try:
        return render(read_record(raw) | {"binary": True})
    except MessageError:
        return None


@pytest.mark.skipif(not COMPILED, reason="nothing else reads columns")
def test_a_column_of_records_becomes_texts_that_have_what_rows_have():
    """Without columns and forms; it stops at what may be a text, and at what the exact way is for."""
    values = [INSERT, None, DDL, INSERT, b64encode(INSERT), INSERT[:-3], b"", b" \x00"]
    column = slices_of(pa.array(values, pa.binary()))
    texts, ends, stop = CODEC.column(column, 0, 7, 1 << 30)
    assert stop == 4
    places = [0, *(end - 7 for end in memoryview(ends).cast("i"))]
    whole = [{} if one is None else text_of(one) for one in values[:4]]
    for one in whole:
        for member in UNSTATED:
            one.pop(member, None)
    assert [json.loads(texts[start:end] or b"{}") for start, end in pairwise(places)] == whole
    assert [CODEC.column(column, i, 0, 1 << 30)[2] for i in range(4, 8)] == [4, 5, 6, 7]
    assert CODEC.column(column, 0, 0, len(texts) - 1)[2] == 3
    assert CODEC.text(b"\0" * (MAX_LENGTH + 1)) is None
    with pytest.raises(ValueError, match="31 bits"):
        CODEC.column(column, 9, 0, 1)


def test_rows_are_the_same_without_how_values_were_sent():
    """Those of any record, by the exact way."""
    for seed in range(200):
        text = exact_text(damaged_record(Random(seed)))
        if text is not None:
            brief = {name: value for name, value in parse(text).items() if name not in UNSTATED}
            whole, short = (outcome(MessageError, bare_changes, one) for one in (text, render(brief)))
            assert str(whole) == str(short)


def bare_changes(text: bytes) -> list[Change]:
    """Return the changes of a text, without what only the same format can use."""
    return cdcavro.to_changes(text, "dts_avro", members=False)


def test_no_text_is_taken_for_bytes():
    """Of no format."""
    for format in cdcavro.FORMATS:
        assert [one for one in goldens(format) if get_format("dts_avro").text_of(one) is not one] == []


@pytest.mark.parametrize(
    "members",
    [
        {"fields": [None], "afterImages": {"a": 1}},
        {"fields": [{"name": "a"}], "afterImages": {"a": "x"}, "afterForms": [{"type": "Character", "charset": 7}]},
        {"fields": [{"name": "a"}], "afterImages": {"a": "x"}, "afterForms": [{"type": "DateTime", "parts": 7}]},
        {
            "fields": [{"name": "a"}],
            "afterImages": {"a": "1" * 5000},
            "afterForms": [{"type": "DateTime", "parts": "y"}],
        },
    ],
)
def test_a_text_that_bytes_cannot_say_is_refused_whatever_its_members_are(members):
    """It is valid as a text; no other error than the project's comes of it."""
    text = json.dumps({"operation": "INSERT", "binary": True, **members}).encode()
    payload = cdcavro.encode(text, "dts_avro")
    with pytest.raises(StructureError, match="dts_avro"):
        cdcavro.decode(payload, "dts_avro")

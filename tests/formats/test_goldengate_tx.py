"""The facts of `goldengate_tx`: transactions of Oracle GoldenGate, whose operations are JSON objects one after another."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from random import Random

import pyarrow as pa
import pytest

import cdcavro
from cdcavro import from_changes, to_changes
from cdcavro.arrow.arrays import slices_of
from cdcavro.change.model import Arrival, Change, Source, to_record
from cdcavro.engine.machine import COMPILED, split_column
from cdcavro.exact.jsontext import MAX_LENGTH
from cdcavro.formats import goldengate_tx
from cdcavro.lake.learning import Learner
from cdcavro.sync.conversion.knowledge import Knowledge
from cdcavro.sync.conversion.outcome_rows import ROW
from cdcavro.sync.settings import Formats
from cdcavro.table.tables import Tables
from cdcavro.table.writing.message_typer import MessageTyper
from cdcavro.wire.formats import get_format
from cdcavro.wire.sniff import best_format, fitting_formats
from support.local_pipelines import DELTA, LocalJob, lake_section
from support.messages import goldens
from support.mutations import mutated
from support.order_trial import Exact, Lanes, Placer, learned, same, with_numbers
from support.roundtrip import assert_golden, error_of, exact, golden_cases
from support.rows_trial import shop
from support.task_batches import batch_of, converted
from support.typed import read

FORMAT = "goldengate_tx"
COMPILED_ONLY = pytest.mark.skipif(not COMPILED, reason="where nothing is compiled, all goes the exact way")
OPERATIONS = [one.strip() for one in goldens("goldengate")]
ROWS = [one.strip() for one in goldens("goldengate_row")]
EXPECTED = "expected whole JSON objects one after another, with nothing or white space between them, got"


def without_members(message: bytes, format: str) -> list[tuple[object, ...]]:
    """Return what the changes of a message are, but for their format and their number in it."""
    changes = to_changes(message, format, members=False)
    return [tuple(value for name, value in vars_of(one).items() if name not in ("row", "rows")) for one in changes]


def vars_of(change: Change) -> dict[str, object]:
    """Return the attributes of a change, its source without the format."""
    record = to_record(change)
    record["source"] = {name: value for name, value in record.get("source", {}).items() if name != "format"}
    return record


@pytest.mark.parametrize("golden", golden_cases(FORMAT))
def test_golden_message_round_trips_and_is_told(golden):
    """The JSON that stands for a transaction comes back, and is told from other formats."""
    assert_golden(FORMAT, golden)


@pytest.mark.parametrize("between", [b"", b" ", b"\r\n\t"])
@pytest.mark.parametrize("operations", [OPERATIONS, ROWS, [*OPERATIONS, *ROWS], OPERATIONS[:1]])
def test_operations_one_after_another_come_back_so_and_are_what_each_is_alone(operations, between):
    """Whatever the white space between them, and of either model."""
    message = between.join(operations)
    payload = cdcavro.encode(message, FORMAT)
    back = cdcavro.decode(payload, FORMAT)
    assert exact(b"[" + b",".join(operations) + b"]") == exact(back_as_array(back))
    assert cdcavro.encode(back, FORMAT) == payload
    alone = [one for text in operations for one in without_members(text, cdcavro.sniff(text))]
    assert without_members(message, FORMAT) == alone
    changes = to_changes(message, FORMAT)
    assert [(one.row, one.rows, one.source.format) for one in changes] == [
        (row, len(operations), FORMAT) for row in range(len(operations))
    ]
    (text,) = from_changes(changes, FORMAT)
    assert exact(back_as_array(cdcavro.decode(cdcavro.encode(text, FORMAT), FORMAT))) == exact(back_as_array(back))


def back_as_array(text: bytes) -> bytes:
    """Return objects that stand directly one after another as an array, by the parser of the standard library."""
    decoder, at, found = json.JSONDecoder(), 0, []
    decoded = text.decode()
    while at < len(decoded):
        _, end = decoder.raw_decode(decoded, at)
        found.append(decoded[at:end])
        at = end
    return f"[{','.join(found)}]".encode()


def test_several_operations_tell_it_and_a_file_of_transactions_is_told_by_them():
    """One alone is a message of `goldengate`, and may be a transaction of one operation."""
    message = b"".join(OPERATIONS[:2])
    assert (cdcavro.sniff(message), cdcavro.sniff(OPERATIONS[0])) == (FORMAT, "goldengate")
    assert fitting_formats(ROWS[0]) == {"goldengate_row": 3, FORMAT: 0} | fitting_formats(ROWS[0])
    lines = [OPERATIONS[0], message, ROWS[0], OPERATIONS[1]]
    assert best_format(map(fitting_formats, lines)) == FORMAT
    assert best_format(map(fitting_formats, OPERATIONS)) == "goldengate"
    for other in (b'{"a":1}{"b":2}', OPERATIONS[0] + b"1", OPERATIONS[0] + b"[]", b"1 2"):
        assert error_of(cdcavro.sniff, other).startswith("message: $")


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        (b'{"operations":[]}', "$.operations: expected at least one operation, got none"),
        (b'{"op_type":"I"},{"op_type":"I"}', f"$: {EXPECTED} ',' at byte 15"),
        (b'{"op_type":"I"}x', f"$: {EXPECTED} 'x' at byte 15"),
        (b'{"op_type":"I"}{"op_type":"I"', f'$: {EXPECTED} \'{{"op_type":"I"\' at byte 15'),
        (b'{"op_type":"I"}}', f"$: {EXPECTED} '}}' at byte 15"),
        (b'{"op_type":"I"} "a"', f"$: {EXPECTED} ' \"' at byte 15"),
        (b'{"op_type":"I', "$: expected a string that ends, got none at byte 11"),
        (b'{"op_type":"I"}{"table":"t"}', "$.operations[1].op_type: expected a required member, got none"),
        (
            b'{"op_type":"I","after":{"a":1}}{"op_type":"D","after":{"a":1}}',
            "$.operations[1].after: expected no row after the change for D, got some",
        ),
        (
            b'{"op_type":"I","pos":"1"}{"op_type":"U","pos":"x"}',
            "$.operations[1].pos: expected a position in the source, got 'x'",
        ),
        (
            b'{"op_type":"D","before":{"a":5,"a_isMissing":true}}{"op_type":"T"}',
            "$.operations[0].before.a: expected null, as 'a_isMissing' is true, got a value",
        ),
    ],
)
def test_what_is_no_transaction_is_refused_by_its_place(message, sentence):
    """Which operation it is, and what of it."""
    assert error_of(to_changes, message, FORMAT) == f"{FORMAT}: {sentence}"


@pytest.mark.slow
def test_hostile_texts_are_refused_in_time_that_grows_with_their_size():
    """Quotes without an end, many objects, and depth."""
    assert error_of(to_changes, b'{"' + rb"\"" * 200_000, FORMAT).startswith(
        f"{FORMAT}: $: expected a string that ends"
    )
    assert error_of(to_changes, b"{}" * 100_001, FORMAT) == (
        f"{FORMAT}: $.operations: expected at most 100000 rows in a message, got 100001"
    )
    assert error_of(to_changes, b'{"a":' * 200 + b"}" * 200, FORMAT).startswith(f"{FORMAT}: $")
    assert error_of(to_changes, b"{" + b" " * MAX_LENGTH, FORMAT).startswith(f"{FORMAT}: $: expected")


def test_what_would_be_lost_is_not_written():
    """A transaction has nothing but operations, and at least one."""
    for text, got in (
        (b'{"operations":[],"binary":true}', "none"),
        (b'{"operations":[{"op_type":"T"}],"binary":true,"more":1}', "'more'"),
    ):
        payload = cdcavro.encode(text, FORMAT)
        assert error_of(cdcavro.decode, payload, FORMAT) == (
            f"{FORMAT}: $: expected operations alone, and at least one, got {got}"
        )
        assert exact(get_format(FORMAT).decode_text(payload)) == exact(text)


def test_changes_of_another_format_are_written_as_one_transaction():
    """Rows that came in one message; what the formatter does not send is left out."""
    source = Source(database="d", table="t")
    changes = [
        Change(op="INSERT", source=source, after={"a": 1}, row=0, rows=3),
        Change(op="HEARTBEAT", row=1, rows=3),
        Change(op="DELETE", source=source, before={"a": 1}, row=2, rows=3),
    ]
    (text,) = from_changes(changes, FORMAT)
    assert json.loads(text) == {
        "operations": [
            {"table": "d.t", "op_type": "I", "after": {"a": 1}},
            {"table": "d.t", "op_type": "D", "before": {"a": 1}},
        ],
        "binary": True,
    }
    assert from_changes([Change(op="HEARTBEAT")], FORMAT) == []


def _reference(text: bytes) -> bytes:
    return b"".join(one.replace(b"\n", b" ") + b"\n" for one in goldengate_tx._split(text))


@COMPILED_ONLY
def test_a_column_of_transactions_becomes_lines():
    """A line for each operation; it stops at what is no transaction, and writes no more than it may."""
    pretty = json.dumps(json.loads(OPERATIONS[0]), indent=1).encode()
    values = [b"".join(OPERATIONS), None, pretty + b"\n" + OPERATIONS[1], b" {} ", b'{"a":"\\"}{\\\\"}{}', b"", b"x"]
    column = slices_of(pa.array(values, pa.binary()))
    wanted = b"".join(_reference(value) for value in values[:5] if value is not None)
    lines, ends, stop = split_column(column, 0, 7, 1 << 30)
    assert (lines, stop) == (wanted, 5)
    sizes = [0 if value is None else len(_reference(value)) for value in values[:5]]
    assert [*memoryview(ends).cast("i")] == [7 + sum(sizes[: i + 1]) for i in range(5)]
    assert [split_column(column, i, 0, 1 << 30)[2] for i in (5, 6)] == [5, 6]
    assert split_column(column, 0, 0, len(wanted) - 1)[2] == 4
    for broken in (b'{"a":"\n"}', b'{"a', b'{"a\\', b'{"a\\\n"}', b"{", b"}", b"{}}", b"{},{}", b'"a"{}'):
        assert split_column(slices_of(pa.array([broken], pa.binary())), 0, 0, 1 << 30) == (b"", b"", 0)


@COMPILED_ONLY
def test_the_engine_makes_the_lines_of_the_exact_way_or_none_of_damaged_texts():
    """Or it leaves what the exact way takes, but never the other way round, if its lines are read."""
    random, taken = Random(7), 0
    for _ in range(600):
        text = mutated(random, b" ".join(random.choices(OPERATIONS, k=random.choice((1, 2, 3)))))
        lines, _, stop = split_column(slices_of(pa.array([text], pa.binary())), 0, 0, 1 << 30)
        if stop:
            assert lines == _reference(text)
            taken += 1
    assert taken > 100


def transactions(random: Random, messages: list[bytes], count: int) -> list[bytes]:
    """Return messages of some operations; some operations changed, and some texts damaged."""
    made = []
    for _ in range(count):
        some = random.choices(messages, k=random.choice((1, 1, 2, 3, 6)))
        some = [with_numbers(random, one) if random.random() < 0.15 else one for one in some]
        text = random.choice((b"", b"", b"\n", b" ")).join(some)
        made.append(mutated(random, text) if random.random() < 0.1 else text)
    return made


@COMPILED_ONLY
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 6))])
def test_transactions_have_the_rows_and_the_order_of_the_exact_way(seed):
    """Of one operation or several, of any tables, as they are, changed, and damaged; in columns, with order values."""
    random, outcomes = Random(f"transactions {seed}"), Counter[str]()
    alone = [cdcavro.decode(cdcavro.encode(text, FORMAT), FORMAT) for text in shop(FORMAT)]
    exact_way, placer, lanes = Exact(FORMAT), Placer(FORMAT, learned(FORMAT)), Lanes(random)
    outcomes += same(
        placer, exact_way, [(one, Arrival(topic="t", partition=0, offset=i)) for i, one in enumerate(alone)]
    )
    for _ in range(2 if seed == 0 else 60):
        outcomes += same(placer, exact_way, [(text, lanes.next()) for text in transactions(random, alone, 30)])
    assert outcomes["by the engine"] > 80
    assert outcomes["refused"] > 0


@COMPILED_ONLY
def test_a_transaction_of_several_tables_is_typed_by_the_engine_once_its_lines_are_known():
    """Each row has its number among all operations; one of the row model, and a truncate, take the exact way."""
    typer = MessageTyper(FORMAT, Tables())
    insert, update = (next(one for one in OPERATIONS if pos in one) for pos in (b"120000004821", b"120000005190"))
    other = insert.replace(b"SHOP.ORDERS", b"SHOP.ITEMS")
    first, again = typer.add(insert + other + update), typer.add(insert + other + update)
    assert (typer.taken, again) == (1, first)
    sources = [read(row.payload, row.schema.envelope)["source"] for row in again]
    assert [(row.table.schema.table.table, one["message_row"]) for row, one in zip(again, sources, strict=True)] == [
        ("ORDERS", 0),
        ("ITEMS", 1),
        ("ORDERS", 2),
    ]
    truncate = next(one for one in OPERATIONS if b'"op_type":"T"' in one)
    for left in (insert + truncate, insert + ROWS[0]):
        typer.add(left)
        assert typer.type_by_pattern(left) is None


@pytest.mark.parametrize("format", [FORMAT, "mixed"])
def test_records_of_kafka_become_rows(format):
    """By the engine where their tables are known; what is no transaction is a reject, as a whole and with its reason."""
    insert, update = (next(one for one in OPERATIONS if pos in one) for pos in (b"120000004821", b"120000005190"))
    broken = insert + b"," + update
    records = [(None, insert + update), (None, insert.replace(b"ORDERS", b"ITEMS") + update), (None, broken)]
    knowledge = Knowledge(Tables(), [], Formats(format), None)
    outcomes, _ = converted(knowledge, batch_of(records))
    Learner(knowledge.tables).learn(Change.from_avro(one) for row in outcomes for one in row["outlines"] or ())
    outcomes, _ = converted(replace(knowledge, is_all=True), batch_of(records))
    assert [row["what"] for row in outcomes].count(ROW) == 4
    assert [row["raw"] for row in outcomes if row["reason"]] == [broken]


@pytest.mark.slow
def test_a_pipeline_merges_the_rows_of_transactions(tmp_path):
    """In the order of their positions, whichever line they come in; input is output and rejects."""

    def operation(op_type: str, pos: int, **members: object) -> bytes:
        stated = {"table": "S.T", "op_type": op_type, "pos": f"{120_000_000_000 + pos:020}", "primary_keys": ["ID"]}
        return json.dumps(stated | members, separators=(",", ":")).encode()

    lines = [
        operation("I", 1, after={"ID": 1, "A": "x"}) + operation("I", 2, after={"ID": 2, "A": "y"}),
        operation("U", 9, before={"ID": 1}, after={"ID": 1, "A": "last"}) + b" " + operation("D", 8, before={"ID": 2}),
        operation("U", 5, before={"ID": 1}, after={"ID": 1, "A": "late"}) + operation("I", 6, ID=3, A="row model"),
        operation("I", 7, after={"ID": 4}) + b"," + operation("I", 8, after={"ID": 5}),
        operation("I", 3, after={"ID": 6, "A": "alone"}),
    ]
    job = LocalJob(tmp_path, lake_section(DELTA, tmp_path), more={"format": FORMAT})
    job.send(*lines)
    (report,) = job.run()
    counts = {name: count for name, count in report.counts.items() if count}
    assert counts == {"read": 5, "written": 4, "rejected": 1}
    (reject,) = report.rejects
    assert f"{EXPECTED} ','" in reject.example
    assert job.rows("S.T", "ID", "A") == [("1", "last"), ("3", "row model"), ("6", "alone")]

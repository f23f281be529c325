"""The facts of `aws_dms`: records of AWS Database Migration Service for Kafka and Kinesis."""

from __future__ import annotations

import json
import pickle
from random import Random
from typing import Any

import pytest

import cdcavro
from cdcavro.change import Arrival
from cdcavro.change.model import Change, Source
from cdcavro.change.order import in_order
from cdcavro.engine.machine import COMPILED
from cdcavro.errors import SchemaError
from cdcavro.lake import TableState, TypedRows
from cdcavro.lake.learning import Learner
from cdcavro.lake.merge import values_of
from cdcavro.table import TypeOverrides
from cdcavro.table.tables import Tables
from cdcavro.table.writing.message_typer import MessageTyper
from cdcavro.transcoding.mapping import from_changes, to_changes
from cdcavro.wire.sniff import fitting_formats
from support.messages import goldens
from support.mutations import mutated
from support.roundtrip import assert_fast, assert_golden, error_of, golden_cases
from support.shop_state import image
from support.typed import read

COMPILED_ONLY = pytest.mark.skipif(not COMPILED, reason="where nothing is compiled, all goes the exact way")
PLACE = Arrival(file="f", line=1)


def message(operation: str = "insert", *, metadata: dict[str, Any] | None = None, **members: object) -> str:
    """Return a record of an operation, with other members and metadata; those that are None are left out."""
    usual = {
        "timestamp": "2023-11-14T22:13:21.000250Z",
        "record-type": "data",
        "operation": operation,
        "partition-key-type": "schema-table",
        "schema-name": "shop",
        "table-name": "t",
    }
    stated = {name: value for name, value in (usual | (metadata or {})).items() if value is not None}
    body = {"data": {"id": 1}} | {name.replace("_", "-"): value for name, value in members.items()}
    record = {name: value for name, value in body.items() if value is not None} | {"metadata": stated}
    return json.dumps(record, separators=(",", ":"))


def change(operation: str = "insert", **members: Any) -> Change:
    """Return the change of such a record."""
    (found,) = to_changes(message(operation, **members), "aws_dms")
    return found


@pytest.mark.parametrize("golden", golden_cases("aws_dms"))
def test_golden_message_round_trips_and_is_told(golden):
    """Every sample comes back as it was sent, and is told from other formats."""
    assert_golden("aws_dms", golden)
    assert list(fitting_formats(golden)) == ["aws_dms"]


@pytest.mark.parametrize("format", [name for name in cdcavro.FORMATS if name != "aws_dms"])
def test_no_message_of_another_format_is_one(format):
    """None has metadata with a type of record."""
    assert [text for text in goldens(format) if "aws_dms" in fitting_formats(text)] == []


@pytest.mark.parametrize(
    "metadata", [{"record-type": "row"}, {"record-type": None}, {"record-type": 1}, {"operation": None}]
)
def test_the_type_of_a_record_and_its_operation_tell_it(metadata):
    """Without them it is no record of the service."""
    with pytest.raises(cdcavro.CdcAvroError):
        cdcavro.sniff(message(metadata=metadata))


def test_a_record_of_several_lines_is_one_message():
    """The usual form of the service has line breaks; typed rows are those of one line."""
    text = message(data={"id": 1, "a": "x\ny"}, metadata={"transaction-id": 7})
    wide = json.dumps(json.loads(text), indent="\t")
    assert cdcavro.sniff(wide) == "aws_dms"
    assert_fast("aws_dms", wide)
    typer = typer_of([text])
    assert typer.add(wide, PLACE) == typer.add(text, PLACE)
    if COMPILED:
        assert typer.type_by_pattern(wide.encode(), PLACE) is not None


@pytest.mark.parametrize(
    ("name", "table", "database", "found"),
    [("shop", "t", "shop", "t"), ("", "awsdms_status", None, "awsdms_status"), (None, "", None, None)],
)
def test_an_empty_name_is_none(name, table, database, found):
    """The record itself comes back."""
    text = message(metadata={"schema-name": name, "table-name": table})
    (made,) = to_changes(text, "aws_dms")
    assert (made.source.database, made.source.schema, made.source.table) == (database, None, found)
    assert [json.loads(back) for back in from_changes([made], "aws_dms")] == [json.loads(text)]


@pytest.mark.parametrize(
    ("operation", "op"),
    [
        ("create-table", "CREATE"),
        ("drop-table", "OTHER"),
        ("truncate-table", "OTHER"),
        ("rename-table", "OTHER"),
        ("add-column", "OTHER"),
        ("anything-else", "OTHER"),
    ],
)
def test_a_control_record_changes_nothing(operation, op):
    """A task that is started again sends them for tables whose rows stay."""
    control = {"table-def": {"columns": {"id": {"type": "INT32", "nullable": False}}, "primary-key": ["id"]}}
    text = message(operation, data=None, control=control, metadata={"record-type": "control"})
    (found,) = to_changes(text, "aws_dms")
    assert (found.op, found.operation, found.ddl, found.tables) == (op, operation, None, None)
    typer = typer_of([message(data={"id": 1, "a": 2})])
    (table,) = typer._tables.tables
    assert typer.add(text, PLACE) == []
    edits = typer._tables.edits
    assert typer.add(text, PLACE) == []
    assert (typer._tables.tables, typer._tables.edits, table.is_gone) == ([table], edits, False)
    assert table.schema.key_names == (("id",) if op == "CREATE" else ())
    assert [json.loads(back) for back in from_changes([found], "aws_dms")] == [json.loads(text)]


def created(*key: str, table: str = "t") -> str:
    """Write the record of a table that was made."""
    control = {"table-def": {"columns": {name: {"type": "INT32"} for name in key}, "primary-key": list(key)}}
    return message("create-table", data=None, control=control, metadata={"record-type": "control", "table-name": table})


def test_a_table_has_the_key_that_was_stated_before_its_first_row():
    """Also in another process, and after the record was sent again; a delete of it alone is of that row."""
    tables = Tables()
    for text in (created("id", "part"), created("id", "part")):
        tables.add(cdcavro.change.replace(to_changes(text, "aws_dms")[0], place=PLACE))
    assert tables.tables == []
    tables = pickle.loads(pickle.dumps(tables))
    typer = MessageTyper("aws_dms", tables)
    texts = [message(data=ROW | {"id": number}) for number in range(4)]
    rows = [row for text in texts for row in typer.add(text, PLACE)]
    (deleted,) = typer.add(message("delete", data=ROW | {"id": 3, "a": None, "b": None}), PLACE)
    assert [row.key is not None for row in rows] == [True] * 4
    assert deleted.key == rows[3].key
    assert tables.tables[0].schema.key_names == ("id", "part")


def test_a_key_is_no_other_table_s_and_replaces_none():
    """A key whose columns its rows do not have is none, and one beside another is refused."""
    tables = Tables()
    left = tables._room.left
    for text in (*[created("x"), created("y")] * 9, created("x")):
        tables.add(cdcavro.change.replace(to_changes(text, "aws_dms")[0], place=PLACE))
    assert left - tables._room.left < 1000
    for text in (created("id", table="u"), message(data={"id": 1}), created("id"), created("id")):
        tables.add(cdcavro.change.replace(to_changes(text, "aws_dms")[0], place=PLACE))
    with pytest.raises(SchemaError, match="its key is stated as 'id', 'y', and its rows have 'id'"):
        tables.add(cdcavro.change.replace(to_changes(created("id", "y"), "aws_dms")[0], place=PLACE))
    (table,) = tables.tables
    assert [version.key_names for version in table.versions] == [(), ("id",)]


def test_a_key_whose_column_the_first_rows_lack_is_known_with_the_first_row_that_has_it():
    """Whether it is stated before the first row, or behind it."""
    for texts in ([created("id"), message(data={"a": 1})], [message(data={"a": 1}), created("id")]):
        tables = Tables()
        for text in (*texts, message(data={"id": 1, "a": 2}), message(data={"id": 2})):
            tables.add(cdcavro.change.replace(to_changes(text, "aws_dms")[0], place=PLACE))
        (table,) = tables.tables
        assert (table.versions[0].key_names, table.schema.key_names) == ((), ("id",))


def test_a_key_counts_for_rows_of_other_partitions_that_come_before_it():
    """Control records have a partition of their own, so nothing says which of them comes first."""
    places = [Arrival(topic="t", partition=number, offset=9 - number) for number in range(2)]
    texts = [message(data={"id": 1, "a": 2}), created("id")]
    changes = [
        cdcavro.change.replace(to_changes(text, "aws_dms")[0], place=place)
        for text, place in zip(texts, places, strict=True)
    ]
    learner, other = Learner(Tables()), Learner(Tables())
    learned = learner.learn(changes)
    other.relearn(learned.changes)
    for tables in (learner.tables, other.tables):
        (table,) = tables.tables
        assert [version.key_names for version in table.versions] == [("id",)]


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 7])
def test_another_key_behind_rows_is_refused_wherever_batches_are_cut(size):
    """It does not tell two states of a row apart that came before it; behind no row, the key is another one."""
    texts = [
        created("a"),
        created("id"),
        message("load", data={"id": 1, "a": 1}),
        message("update", data={"id": 1, "a": 2}),
        created("id", "a"),
        message("update", data={"id": 1, "a": 3}),
        created("id"),
    ]
    maker, state, rejects = TypedRows(Tables()), TableState(), []
    for start in range(0, len(texts), size):
        some = [
            [cdcavro.change.replace(change, place=Arrival(file="f", line=line)) for change in change_of(text)]
            for line, text in enumerate(texts[start : start + size], start + 1)
        ]
        batch = maker.of_batch(some)
        state.merge(batch.rows)
        rejects += [(change.place.line, str(error)) for change, error in batch.rejects]
    assert rejects == [(5, "schema t: its key is stated as 'id', 'a', and its rows have 'id'")]
    (table,) = maker.tables.tables
    rows = [values_of(pieces, lambda piece: image(piece, table.versions)) for pieces in state.rows.values()]
    assert [(row["id"], row["a"]) for row in rows] == [("1", "3")]


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_a_key_that_was_stated_before_the_first_row_holds_wherever_batches_are_cut(size):
    """Also if the statement of another one comes in the batch of that row."""
    texts = [created("id"), message(data={"id": 1, "a": 1}), created("a"), message(data={"id": 2, "a": 1})]
    maker, rejects = TypedRows(Tables()), []
    for start in (0, *range(1, 4, size)):
        end = 1 if not start else start + size
        some = [
            [cdcavro.change.replace(change, place=Arrival(file="f", line=line)) for change in change_of(text)]
            for line, text in enumerate(texts[start:end], start + 1)
        ]
        rejects += [change.place.line for change, _ in maker.of_batch(some).rejects]
    (table,) = maker.tables.tables
    assert (rejects, table.schema.key_names) == ([3], ("id",))


def test_a_row_of_an_unknown_operation_is_refused():
    """It is not taken for another change."""
    sentence = "aws_dms: $: expected an operation on a row that is known, because the message holds a row, got 'merge'"
    assert error_of(MessageTyper("aws_dms", Tables()).add, message("merge")) == sentence


def test_a_null_of_a_delete_is_not_stated():
    """Nor is a column that is left out; a null of another operation is one."""
    row = {"id": 1, "a": None, "b": 2}
    assert (change("delete", data=row).before, change("update", data=row).after) == ({"id": 1, "b": 2}, row)
    assert change(data=row).after == row
    text = message("delete", data=row)
    assert [json.loads(back) for back in from_changes(to_changes(text, "aws_dms"), "aws_dms")] == [json.loads(text)]
    typer = typer_of([message(data=row), text])
    (made,) = typer.add(text)
    before = read(made.payload, made.schema.envelope)["before"]
    assert (before["a"], before["absent"]) == (None, ["a"])


def test_before_image_is_what_is_stated_of_the_row_before():
    """Nothing else is known of it; a delete has its row in `data`."""
    found = change("update", data={"id": 1, "a": 2, "b": 3}, before_image={"a": None})
    assert (found.before, found.after, found.changed) == ({"a": None}, {"id": 1, "a": 2, "b": 3}, None)
    assert change("update").before is None
    assert change("delete", before_image={}).before == {"id": 1}
    sentence = 'aws_dms: $["before-image"]: expected no second row before the change for delete, got some'
    assert error_of(change_of, message("delete", before_image={"id": 1})) == sentence
    typer = typer_of([message("delete", before_image={})])
    assert error_of(typer.add, message("delete", before_image={"id": 1})) == sentence
    columns = {"id": 2, "BI_id": 1}
    assert change("update", data=columns).after == columns


def change_of(text: str) -> list[Change]:
    """Return the changes of a record."""
    return to_changes(text, "aws_dms")


def with_key() -> Tables:
    """Return tables that know the key of one table, of two columns, from a statement of another format."""
    tables = Tables()
    create = "CREATE TABLE t (id BIGINT, part VARCHAR(9), a VARCHAR(9), b INT, PRIMARY KEY (id, part))"
    statement = {"database": "shop", "table": "t", "type": "table-create", "ts": 1, "sql": create}
    (change,) = to_changes(json.dumps(statement), "maxwell")
    tables.add(cdcavro.change.replace(change, place=PLACE))
    return tables


ROW = {"id": 1, "part": "x", "a": "y", "b": 2}


@pytest.mark.parametrize("before", [{}, {"a": "z"}, {"part": "x"}, {"id": 1, "part": "x", "b": 1}])
def test_a_column_of_the_key_that_is_not_in_before_image_did_not_change(before):
    """So the update is one, and its row before has the key; other columns that are not there are absent."""
    typer = MessageTyper("aws_dms", with_key())
    text = message("update", data=ROW, before_image=before)
    for _ in range(3):
        (made,) = typer.add(text, PLACE)
    envelope = read(made.payload, made.schema.envelope)
    stated = {"id": 1, "part": "x"} | before
    absent = [name for name in ROW if name not in stated]
    assert (made.op, envelope["op"], envelope["before"]["absent"]) == ("UPDATE", "u", absent)
    assert {name: envelope["before"][name] for name in stated} == stated
    if COMPILED:
        assert typer.type_by_pattern(text.encode(), PLACE) == [made]


def test_an_update_of_a_part_of_the_key_is_a_delete_and_an_insert():
    """The delete has the part that did not change, too."""
    typer = MessageTyper("aws_dms", with_key())
    delete, insert = typer.add(message("update", data=ROW, before_image={"part": "w"}), PLACE)
    assert [row.key for row in (delete, insert)] == [
        typer.add(message("delete", data={"id": 1, "part": part, "a": None, "b": None}), PLACE)[0].key
        for part in ("w", "x")
    ]


def test_times_are_in_utc_whatever_the_zone():
    """The time of the change is that of the commit; that of the record is another."""
    assert (change().event_time, change().system_time) == (None, 1_700_000_001_000_250)
    found = change(metadata={"commit-timestamp": "2023-11-14T22:13:20Z"})
    assert (found.event_time, found.system_time) == (1_700_000_000_000_000, 1_700_000_001_000_250)
    assert change(metadata={"timestamp": "2023-11-14T22:13:21.000250"}).system_time is None


def test_arrival_orders_changes_and_a_full_load_comes_first():
    """Whatever their transactions are."""
    made = [
        cdcavro.change.replace(change(word, metadata={"transaction-id": number}), place=Arrival(file="f", line=line))
        for line, (word, number) in enumerate([("insert", 9), ("load", None), ("update", 8), ("delete", 10)], start=1)
    ]
    assert [one.operation for one in in_order(reversed(made))] == ["load", "insert", "update", "delete"]
    assert [one.position for one in made] == [None] * len(made)


@pytest.mark.parametrize(
    ("sent", "stored"),
    [("0x00FF12aa", b"\x00\xff\x12\xaa"), ("00ff12AA", b"\x00\xff\x12\xaa"), ("0x", b""), ("", b""), ("AP8S", None)],
)
def test_bytes_are_hexadecimal(sent, stored):
    """With `0x` in front or without; any other text is kept as text, base64, too."""
    typer = MessageTyper("aws_dms", Tables(given=TypeOverrides.from_mapping({"shop.t": {"a": "varbinary(9)"}})))
    (made,) = typer.add(message(data={"id": 1, "a": sent}))
    after = read(made.payload, made.schema.envelope)["after"]
    assert (after["a"], after["unparsed"]) == (stored, {} if stored is not None else {"a": sent})


def test_a_change_of_another_format_is_written():
    """As a record that is told; the transaction only if it is a number."""
    row = Change(
        op="UPDATE",
        source=Source(database="d", table="t"),
        before={"a": 1},
        after={"a": 2},
        event_time=1_700_000_001_500_000,
        transaction="9",
    )
    (text,) = from_changes([row], "aws_dms")
    assert cdcavro.sniff(text) == "aws_dms"
    assert json.loads(text) == {
        "data": {"a": 2},
        "before-image": {"a": 1},
        "metadata": {
            "record-type": "data",
            "operation": "update",
            "schema-name": "d",
            "table-name": "t",
            "transaction-id": 9,
            "commit-timestamp": "2023-11-14T22:13:21.500000Z",
        },
    }
    (text,) = from_changes([cdcavro.change.replace(row, op="DELETE", after=None, transaction="9.1")], "aws_dms")
    assert json.loads(text)["data"] == {"a": 1}
    assert "transaction-id" not in json.loads(text)["metadata"]
    (text,) = from_changes([Change(op="SNAPSHOT", after={"a": 1})], "aws_dms")
    assert json.loads(text)["metadata"] == {"record-type": "data", "operation": "load"}
    assert from_changes([Change(op="HEARTBEAT"), Change(op="CREATE", ddl="CREATE TABLE t (a INT)")], "aws_dms") == []


TYPES = {"shop.t": {"id": "bigint", "a": "varchar(9)", "n": "double", "w": "timestamp(6)", "d": "decimal(10,2)"}}
DETAILS = {
    "transaction-id": 2**63 - 1,
    "transaction-record-id": 1,
    "prev-transaction-id": 3,
    "commit-timestamp": "2023-11-14T22:13:20.5Z",
    "stream-position": "00000002/7C007178.3.00000002/7C007178",
}
FULL = {"id": 1, "a": "x", "n": 1.5, "w": "2023-11-14T22:13:20.250001Z", "d": 1.20}
ROWS = [
    message("load", data=FULL, metadata={"partition-key-value": "shop.t.1"}),
    message(data=FULL, metadata=DETAILS),
    message(data={"id": 2, "w": "1969-12-31T23:59:59.5Z"}, metadata=DETAILS),
    message("update", data=FULL | {"a": None}, metadata=DETAILS),
    message("update", data=FULL, before_image={}, metadata=DETAILS),
    message("update", data=FULL | {"n": 2}, before_image={"id": 1, "n": 1}, metadata=DETAILS),
    message("delete", data=FULL | {"a": None, "n": None}, metadata=DETAILS),
    message("delete", data={"id": 2}, metadata={"transaction-id": 670014899490}),
]


def typer_of(texts: list[str]) -> MessageTyper:
    """Return a typer that has typed each of some records twice, and so knows their table and patterns."""
    typer = MessageTyper("aws_dms", Tables(given=TypeOverrides.from_mapping(TYPES)))
    for text in (*texts, *texts):
        typer.add(text, PLACE)
    return typer


@COMPILED_ONLY
def test_the_engine_types_all_rows():
    """Rows of a full load, rows before an update, and deletes with nulls, too."""
    typer = typer_of(ROWS)
    assert [typer.type_by_pattern(text.encode(), PLACE) is not None for text in ROWS] == [True] * len(ROWS)


@pytest.mark.slow
@COMPILED_ONLY
@pytest.mark.parametrize("is_keyed", [False, True])
def test_the_engine_types_as_the_exact_way_does(is_keyed):
    """Also records that were damaged: they have the same rows, or are left."""
    keyed = [message("insert", data=ROW), message("update", data=ROW, before_image={"a": "z"})]
    keyed += [message("update", data=ROW, before_image={"id": 1}), message("delete", data=ROW | {"a": None})]
    texts = keyed if is_keyed else ROWS
    typer, random, typed = MessageTyper("aws_dms", with_key()) if is_keyed else typer_of(ROWS), Random(32), 0
    for text in (*texts, *texts):
        typer.add(text, PLACE)
    tables = typer._tables
    for _ in range(3000):
        text = mutated(random, random.choice(texts).encode())
        rows = typer.type_by_pattern(text, PLACE)
        if rows is not None:
            exact = [
                one
                for found in to_changes(text, "aws_dms", members=False)
                for one in tables.add(cdcavro.change.replace(found, place=PLACE))
            ]
            assert [(row.key, row.payload) for row in rows] == [(one.key, one.payload) for one in exact]
            typed += 1
    assert typed > 100

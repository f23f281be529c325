"""Rules for rows in the engine: it writes what the exact way does, byte for byte, or leaves the row to that."""

from __future__ import annotations

import struct
from array import array
from datetime import UTC
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from msgspec.structs import replace

from cdcavro.arrow.arrays import slices_of
from cdcavro.engine import machine
from cdcavro.lake.placing import rows_batch
from cdcavro.lake.typed_rows import TypedRows
from cdcavro.sync.conversion import row_filters
from cdcavro.sync.conversion.row_filters import exact_rows
from cdcavro.sync.protection import Constant, Protection, RowRule
from cdcavro.table.tables import Tables
from cdcavro.transcoding.mapping import to_changes
from support.messages import canal

TYPES = {
    "id": "int",
    "big": "bigint unsigned",
    "n": "int",
    "money": "decimal(12,3)",
    "wide": "decimal(38,30)",
    "text": "varchar(90)",
    "raw": "varbinary(20)",
    "day": "date",
    "at": "datetime(6)",
    "stamp": "timestamp(3)",
    "clock": "time",
    "real": "double",
    "flag": "bit(1)",
    "note": "varchar(9)",
}
# Values of their types, and some that these cannot carry.
SENT: dict[str, list[str]] = {
    "id": ["1", "-7", "2147483647"],
    "big": ["18446744073709551615", "0", "10", "x"],
    "n": ["-128", "0", "5", "6", "many"],
    "money": ["1.500", "-0.001", "700", "0.000", "-1234.5", "1.23456"],
    "wide": ["12345678.000000000000000000000000000001", "-0.5", "0", "1"],
    "text": ["", "a", "b", "a'b", "é" * 100, "\U0001f600"],
    "raw": ["", "\u0000\u00ff", "abc"],
    "day": ["2024-02-29", "1969-12-31", "0000-00-00"],
    "at": ["2024-02-29 01:02:03.000004", "2024-02-29 00:00:00"],
    "stamp": ["2024-02-29 01:02:03.5", "1969-12-31 23:59:59"],
    "clock": ["23:59:59", "00:00:00"],
    "real": ["1.5", "-2E+300", "0"],
    "flag": ["1", "0"],
    "note": ["x", "y", ""],
}
CONSTANTS: dict[str, list[str]] = {
    "big": ["10", "-1", "18446744073709551615", "9" * 40, "0.5"],
    "n": ["0", "5.0", "5.5", "-0.5", "-128", "9" * 30, "-" + "9" * 30],
    "money": ["1.5", "1.50001", "-0.001", "0", "-" + "9" * 40, "9" * 40 + ".5"],
    "wide": ["0.0000000000000000000000000000001", "-0.5", "1", "12345678.000000000000000000000000000001"],
    "text": ["'a'", "''", "'a''b'", "'aa'", "'é'"],
    "raw": ["'abc'", "''"],
    "day": ["'2024-02-29'", "'2024'"],
    "at": ["'2024-02-29T00:00:00'"],
    "real": ["1.5", "0", "-3"],
    "flag": ["'1'", "1"],
    "none": ["1"],
}


def conditions_of(column: str) -> list[str]:
    """Return conditions on a column, by each operator, with constants that values equal, are near to, or are far from."""
    tests = [f"{op} {constant}" for op in ("=", "!=", "<>", "<", "<=", ">", ">=") for constant in CONSTANTS[column]]
    return [f"{column} {test}" for test in (*tests, "is null", "is not null")]


def rule_of(chance: Random) -> RowRule:
    """Return a rule that leaves columns out, masks some, also of the key, by each method, and leaves rows out."""
    others = [*TYPES][1:]
    chance.shuffle(others)
    some, rest = others[:4], others[4:]
    methods: list[str | Constant] = ["sha256", "hmac-sha256", Constant("***")]
    mask: dict[str, str | Constant] = {name: chance.choice(methods) for name in rest if chance.random() < 0.5}
    mask |= {"id": chance.choice(["sha256", "hmac-sha256"])} if chance.random() < 0.3 else {}
    where = chance.choice(conditions_of(chance.choice([*CONSTANTS]))) if chance.random() < 0.6 else None
    left_out = tuple(some[: chance.randrange(4)]) or (() if mask or where else (some[0],))
    salt = "salt" if "sha256" in mask.values() else None
    secret = "s" * chance.choice([1, 64, 65, 200]) if "hmac-sha256" in mask.values() else None
    return RowRule("d.t", left_out, mask, (), salt, secret, where)


def messages_of(chance: Random, count: int) -> list[bytes]:
    """Return messages about rows of a table: null, misfits, absent columns, keys that move, and a renamed column."""
    messages, types = list[bytes](), dict(TYPES)
    for i in range(count):
        if i == count // 2 and chance.random() < 0.5:
            messages.append(canal("ALTER", [], id=i, isDdl=True, sql="ALTER TABLE d.t RENAME COLUMN note TO memo"))
            types = {"memo" if name == "note" else name: kind for name, kind in TYPES.items()}
        some = [name for name in types if name == "id" or i == 0 or chance.random() < 0.9]
        # Misfits are the last of their lists.
        sent = {name: SENT["note" if name == "memo" else name] for name in some}
        sent = sent if chance.random() < 0.2 else {name: values[:3] for name, values in sent.items()}
        row = {name: None if name != "id" and chance.random() < 0.1 else chance.choice(sent[name]) for name in some}
        kind = chance.choice(["INSERT", "UPDATE", "UPDATE", "DELETE"])
        old = {name: chance.choice(sent[name]) for name in row if chance.random() < 0.3}
        more = {"old": [old]} if kind == "UPDATE" else {}
        messages.append(canal(kind, [row], id=i, mysqlType={name: types[name] for name in row}, **more))
    return messages


def exactly(protection: Protection, tables: Tables, rows: pa.RecordBatch) -> tuple[pa.RecordBatch, dict[int, Any]]:
    """Return rows as Python writes them, without the engine."""
    (table,) = tables.tables
    versions = protection.versions(table)
    made, _, errors = exact_rows(rows, [versions[one - 1] for one in rows.column("version").to_pylist()])
    return made, errors


@pytest.mark.parametrize("seed", range(40))
def test_rows_of_a_batch_are_those_of_the_exact_way(seed: int):
    """Random rows under random rules: the same rows byte for byte, and the same errors of the same messages."""
    chance = Random(seed)
    tables, protection = Tables(zone=UTC), Protection([rule_of(chance)])
    typed = TypedRows(tables).of_batch([to_changes(text, "canal") for text in messages_of(chance, 40)])
    # Rows that end all others have no payload, and rows may be a part of a batch.
    ending = replace(typed.rows[0], operation="t", key=None, payload=b"")
    rows = rows_batch([(i // 2, row) for i, row in enumerate([*typed.rows, ending, *typed.rows])]).slice(3)
    wanted, errors = exactly(protection, tables, rows)
    made, found = protection.rows(rows, tables.tables)
    assert made.equals(wanted)
    assert {i: str(error) for i, error in found.items()} == {i: str(error) for i, error in errors.items()}


@pytest.mark.parametrize("column", CONSTANTS)
def test_conditions_hold_for_the_values_for_which_they_hold_in_the_exact_way(column: str):
    """Each value of a type, null, and none at all, by each operator; values and constants that Avro's types cannot carry."""
    tables = Tables(zone=UTC)
    rows: list[dict[str, str | None]] = [{"id": str(i), column: one} for i, one in enumerate(SENT.get(column, "1"))]
    texts = [
        canal("INSERT", [row], id=i, mysqlType=TYPES | {"none": "int"})
        for i, row in enumerate([*rows, {"id": "90", column: None}, {"id": "91"}])
    ]
    typed = TypedRows(tables).of_batch([to_changes(text, "canal") for text in texts])
    # Python alone takes few rows.
    batch = rows_batch(list(enumerate(typed.rows * 8)))
    for where in conditions_of(column):
        protection = Protection([RowRule("d.t", where=where)])
        wanted, errors = exactly(protection, tables, batch)
        made, found = protection.rows(batch, tables.tables)
        assert (where, made.column("message")) == (where, wanted.column("message"))
        assert (where, {*found}) == (where, {*errors})


@pytest.mark.skipif(not machine.COMPILED, reason="nothing is compiled")
@pytest.mark.parametrize(
    "rule",
    [
        RowRule("d.t", ("big", "note")),
        RowRule("d.t", (), {"text": "sha256", "money": "hmac-sha256", "day": Constant("*")}, (), "salt", "s" * 70),
        RowRule("d.t", (), {"id": "sha256", "at": "sha256"}, (), "salt"),
        RowRule("d.t", ("raw",), where="money >= -10000"),
        RowRule("d.t", where="text <= '\U0010ffff'"),
        RowRule("d.t", where="day > '1900-01-01'"),
        RowRule("d.t", where="real is not null"),
    ],
)
def test_python_looks_at_no_row_that_says_enough(rule: RowRule, monkeypatch: pytest.MonkeyPatch):
    """The engine writes inserts, deletes and updates that do not move the row in or out, whatever the rule."""
    tables, texts = Tables(zone=UTC), []
    for i, kind in enumerate(["INSERT", "UPDATE", "DELETE"] * 8):
        row = {name: values[i % 2] for name, values in SENT.items()}
        more = {"old": [{"n": SENT["n"][2], "id": row["id"]}]} if kind == "UPDATE" else {}
        texts.append(canal(kind, [row], id=i, mysqlType=TYPES, **more))
    typed = TypedRows(tables).of_batch([to_changes(text, "canal") for text in texts])
    rows, protection = rows_batch(list(enumerate(typed.rows))), Protection([rule])
    wanted, errors = exactly(protection, tables, rows)
    monkeypatch.setattr(row_filters, "exact_rows", lambda *_: pytest.fail("a row is left to Python"))
    assert protection.rows(rows, tables.tables)[0].equals(wanted)
    assert (len(wanted), errors) == (24, {})


@pytest.mark.skipif(not machine.COMPILED, reason="nothing is compiled")
@pytest.mark.parametrize("seed", range(8))
def test_damaged_payloads_are_read_within_their_bytes(seed: int):
    """No task has any, but whatever the engine reads, it stays within the column, and leaves what makes no sense."""
    chance = Random(seed)
    tables, protection = Tables(zone=UTC), Protection([rule_of(chance)])
    typed = TypedRows(tables).of_batch([to_changes(text, "canal") for text in messages_of(chance, 20)])
    (table,) = tables.tables
    rules = [None if one is None else one.rules for one in protection.versions(table)]
    for row in typed.rows:
        raw = bytearray(row.payload)
        for _ in range(chance.randrange(1, 4)):
            raw[chance.randrange(len(raw))] = chance.randrange(256)
        for payload in (bytes(raw), row.payload[: chance.randrange(len(row.payload))]):
            columns = [pa.array([one], pa.binary()) for one in (row.operation.encode(), row.key, payload)]
            try:
                place = array("i", [row.version - 1]).tobytes()
                outcomes, *_ = machine.apply_rules(rules, place, *map(slices_of, columns), b"\0")
            except (struct.error, OverflowError, IndexError, ArithmeticError, ValueError, AssertionError):
                continue  # what makes texts in Python found it
            assert outcomes[0] in (0, 1, 2)

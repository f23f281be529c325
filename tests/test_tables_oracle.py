"""One workload on a real MySQL through two producers: its tables as typed payloads, read with the newest schemas.

What a producer loses is listed here, value by value, with its count: a difference that is not listed
fails, and so does a listed one that is not there. See `test_oracle` for the same of untyped changes.
"""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest

from cdcavro.avro.schema import parse_schema
from cdcavro.exact.numbers import plain_text
from cdcavro.table.table_schema import from_schema
from cdcavro.table.tables import Tables, TypedChange
from support.shop_losses import FINAL_LOSSES, OLD_AMOUNT, kind_of
from support.shop_tables import (
    BEFORE_TRUNCATE,
    MESSAGES,
    ORACLE,
    Moved,
    Replay,
    Unparsed,
    avro_type,
    is_same,
    moved,
    orders,
    replayed,
    server_text,
    shop,
    shop_changes,
    value_of,
)

# All images of both producers: table, column, kind of loss, number of values.
LOSSES = [
    ("all_types", "vl", "canal: latin1 read as UTF-8", 5),
    ("all_types", "js", "JSON: a double written out", 4),
    ("all_types", "js", "JSON: spaces", 1),
    ("all_types", "dec65", "canal: the zeros of a long DECIMAL's fraction", 2),
    ("all_types", "dt", "debezium: null for a zero date", 4),
    ("all_types", "dtm", "debezium: null for a zero date", 2),
    ("all_types", "dtm3", "debezium: null for a zero date", 2),
    ("all_types", "dtm6", "debezium: null for a zero date", 2),
    ("all_types", "ts", "debezium: the epoch for a zero TIMESTAMP", 2),
    ("all_types", "ts6", "debezium: the epoch for a zero TIMESTAMP", 2),
    ("all_types", "yr", "debezium: 1900 for the YEAR 0000", 2),
    ("all_types", "en", "canal: an emoji in an ENUM's label", 2),
    ("orders", "note", "debezium: the default for null", 3),
    ("orders", "created", "another run", 25),
    ("orders_v2", "created", "another run", 1),
    ("orders_v3", "created", "another run", 3),
]
# Values that their types cannot carry, in all images: column, text, number of values.
UNPARSED = {
    "canal": [
        ("tm", "838:59:59", 5),
        ("tm", "-838:59:59", 4),
        ("tm6", "-00:00:00.000001", 4),
        ("tm6", "-12:34:56.500000", 2),
        ("dt", "0000-00-00", 2),
        ("dt", "2024-00-15", 2),
        ("dtm", "0000-00-00 00:00:00", 2),
        ("dtm3", "0000-00-00 00:00:00.000", 2),
        ("dtm6", "0000-00-00 00:00:00.000000", 2),
        ("ts", "0000-00-00 00:00:00", 2),
        ("ts6", "0000-00-00 00:00:00.000000", 2),
    ],
    "debezium": [
        ("tm", "838:59:59", 5),
        ("tm", "-838:59:59", 4),
        ("tm6", "-00:00:00.000001", 4),
        ("tm6", "-12:34:56.500000", 2),
    ],
}
# The table through its versions: what led to each, and the columns that it reads.
VERSIONS = [
    ("CREATE", "orders", "tenant order_id amount note created"),
    ("ADD qty", "orders", "tenant order_id amount qty note created"),
    ("RENAME note", "orders", "tenant order_id amount qty remark created"),
    ("CHANGE qty", "orders", "tenant order_id amount quantity remark created"),
    ("MODIFY amount", "orders", "tenant order_id amount old quantity remark created"),
    ("DROP remark, ADD first_c FIRST", "orders", "first_c tenant order_id amount old quantity created"),
    ("ADD status", "orders", "first_c tenant order_id amount old quantity created status"),
    ("MODIFY status", "orders", "first_c tenant order_id amount old quantity created status"),
    ("RENAME TABLE", "orders_v2", "first_c tenant order_id amount old quantity created status"),
    ("RENAME TABLE", "orders_v3", "first_c tenant order_id amount old quantity created status"),
]
# The columns, by their last names, with what rows have that are older than the column.
OLDER = {"quantity": (2, 1), "status": (7, "new"), "first_c": (6, None), "amount": (5, None)}
NAMES = {"old": (5, "amount"), "quantity": (4, "qty"), "remark": (3, "note")}
# Every payload by the statements of the workload, worked out by hand: operation, rows before and after.
IMAGES = {
    1: [
        ("c", None, "t1 1 10.10 a"),
        ("c", None, "t1 2 20.20 NULL"),
        ("c", None, "t2 1 0.00 ''"),
        ("c", None, "té😀 4294967295 -0.50 emoji_pk"),
        ("u", "t1 1 10.10 a", "t1 1 11.10 a"),
        ("u", "t1 2 20.20 NULL", "t1 2 21.20 NULL"),
        ("d", "t1 1 11.10 a", None),
        ("c", None, "t9 7 11.10 a"),
        ("d", "t2 1 0.00 ''", None),
    ],
    2: [("c", None, "t3 1 1.00 5 n/a"), ("u", "t3 1 1.00 5 n/a", "t3 1 1.00 6 n/a")],
    3: [("u", "t3 1 1.00 6 n/a", "t3 1 1.00 6 renamed")],
    4: [("u", "t3 1 1.00 6 renamed", "t3 1 1.00 9223372036854775807 renamed")],
    5: [
        (
            "u",
            "t3 1 1.0000 NULL 9223372036854775807 renamed",
            "t3 1 123456789012.3456 NULL 9223372036854775807 renamed",
        )
    ],
    6: [("u", "NULL t3 1 123456789012.3456 NULL 9223372036854775807", "1 t3 1 123456789012.3456 NULL NULL")],
    7: [("c", None, "NULL t4 1 1.0000 NULL NULL done")],
    8: [("u", "NULL t4 1 1.0000 NULL NULL done", "NULL t4 1 1.0000 NULL NULL paid")],
    9: [("c", None, "NULL t5 1 5.5000 NULL NULL new")],
    10: [
        ("u", "NULL t5 1 5.5000 NULL NULL new", "NULL t5 1 6.0000 NULL NULL new"),
        ("t", None, None),
        ("c", None, "NULL t6 1 6.5000 NULL NULL new"),
    ],
}
TYPES = {"first_c": int, "order_id": int, "quantity": int, "qty": int, "amount": Decimal, "old": Decimal}
DEBEZIUM_NOTES = 3


def final_rows(producer: str, replay: Replay) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of the tables that there are in the end."""
    tables, _ = shop(producer)
    return {one.schema.table.table: replay.rows.get(one.number, []) for one in tables.tables if not one.is_gone}


def image_texts(line: str | None, version: int) -> dict[str, Any] | None:
    """Return the values of a row of `orders` that a line of `IMAGES` has, but for `created`."""
    if line is None:
        return None
    names = [one for one in VERSIONS[version - 1][2].split() if one != "created"]
    texts = [{"NULL": None, "''": "", "emoji_pk": "emoji pk"}.get(one, one) for one in line.split()]
    return {name: None if text is None else TYPES.get(name, str)(text) for name, text in zip(names, texts, strict=True)}


def as_read(image: dict[str, Any] | None, writer: int, reader: int) -> dict[str, Any] | None:
    """Return what a newer version reads of a row, worked out by the names and defaults above."""
    if image is None:
        return None
    last = {_last_name(name, writer): value for name, value in image.items()}
    row = {}
    for name in VERSIONS[reader - 1][2].split():
        line = _last_name(name, reader)
        since, default = OLDER.get(line, (1, None))
        if name != "created":
            row[OLD_AMOUNT if name == "old" else name] = default if since > writer else last.get(line)
    return row


def _last_name(name: str, version: int) -> str:
    return next((last for last, (since, old) in NAMES.items() if name == old and version < since), name)


@pytest.mark.parametrize("producer", MESSAGES)
def test_orders_goes_through_ten_versions(producer: str):
    """Each has the columns and the name that its statement gave the table."""
    table = orders(producer)[0].table
    assert [one.version for one in table.versions] == list(range(1, 11))
    for schema, (_, name, columns) in zip(table.versions, VERSIONS, strict=True):
        assert (schema.table.database, schema.table.table) == ("shop", name)
        names = [one.name if one.until is None else "old" for one in schema.all_columns]
        assert names == columns.split()
    for schema, older in zip(table.versions[8:], (["orders"], ["orders", "orders_v2"]), strict=True):
        for part, record in ((schema.row, "Value"), (schema.key, "Key"), (schema.envelope, "Envelope")):
            assert json.loads(part.json)["aliases"] == [f"shop.{one}.{record}" for one in older]
    written = Counter(one.schema.version for one in orders(producer))
    lost = {10: 1} if producer == "debezium" else {}
    assert written == {version: len(images) - lost.get(version, 0) for version, images in IMAGES.items()}


@pytest.mark.parametrize("producer", MESSAGES)
def test_every_value_of_every_image_has_its_type_and_is_the_one_sent(producer: str):
    """What a payload reads as is what its change says, converted by other means; what cannot be is listed."""
    compared, misfits = 0, Counter()
    for typed in shop(producer)[1]:
        if typed.change.op == "TRUNCATE":
            continue
        types = {one.name: one.type.lower() for one in typed.change.columns}
        assert [(one.name, one.avro) for one in typed.schema.columns] == [
            (name, avro_type(declared)) for name, declared in types.items()
        ]
        found = moved(typed, typed.schema)
        for image, sent in ((found.before, typed.change.before), (found.after, typed.change.after)):
            assert (image is None) == (sent is None)
            for name, value in (sent or {}).items():
                expected = _expected(value, types[name])
                assert is_same(image[name], expected), (typed.change.source.table, name, image[name], expected)
                compared += 1
                if type(expected) is Unparsed:
                    misfits[name, expected.text] += 1
    assert misfits == {(name, text): count for name, text, count in UNPARSED[producer]}
    assert (len(shop(producer)[1]), compared) == ({"canal": 181, "debezium": 180}[producer], 1879)


def _expected(value: Any, declared: str) -> Any:
    try:
        text = server_text(value, declared)
    except ValueError:
        return Unparsed(plain_text(value))
    return value_of(text, declared)


def test_the_values_of_both_producers_are_the_same_except_for_the_listed_losses():
    """Image by image, under each version's own names, type by type, value by value."""
    pairs = [[one for one in shop(name)[1] if one.change.op != "TRUNCATE"] for name in MESSAGES]
    found, compared = Counter(), 0
    for one, two in zip(*pairs, strict=True):
        table = one.schema.table.table
        assert (table, one.schema.version) == (two.schema.table.table, two.schema.version)
        assert [(column.field, column.avro) for column in one.schema.all_columns] == [
            (column.field, column.avro) for column in two.schema.all_columns
        ]
        first, second = moved(one, one.schema), moved(two, two.schema)
        assert (first.op, first.key) == (second.op, second.key)
        for image, other in ((first.before, second.before), (first.after, second.after)):
            assert list(image or ()) == list(other or ())
            compared += len(image or ())
            differing = [name for name in image or () if not is_same(image[name], other[name])]
            found.update((table, name, kind_of(image[name], other[name])) for name in differing)
    assert found == {tuple(loss): count for *loss, count in LOSSES}
    assert compared == 1890


@pytest.mark.parametrize("producer", MESSAGES)
def test_payloads_replayed_under_the_newest_schemas_give_the_tables_of_the_server(producer: str):
    """The final tables have the server's columns, types, rows and values, except for the listed losses."""
    tables, payloads = shop(producer)
    replay = replayed(moved(one) for one in payloads)
    final, found, compared = final_rows(producer, replay), Counter(), Counter()
    assert set(final) == set(ORACLE)
    for table in (one for one in tables.tables if not one.is_gone):
        name, types = table.schema.table.table, dict(ORACLE[table.schema.table.table]["columns"])
        assert [(one.name, one.avro) for one in table.schema.columns] == [
            (column, avro_type(declared)) for column, declared in types.items()
        ]
        rows = {tuple(map(str, key)): row for key, row in final[name]}
        for expected in ORACLE[name]["rows"]:
            row = rows.pop(tuple(expected[column] for column in table.schema.key_names))
            assert row.pop(OLD_AMOUNT, None) is None
            assert list(row) == list(expected)
            values = {column: value_of(text, types[column]) for column, text in expected.items()}
            differing = [column for column in row if not is_same(row[column], values[column])]
            found.update((name, column, kind_of(row[column], values[column])) for column in differing)
            compared.update(rows=1, values=len(row))
        left = 6 if (producer, name) == ("debezium", "orders_v3") else 0
        assert len(rows) == left, "rows that TRUNCATE took away, which Debezium does not send"
    assert found == {tuple(loss): count for own, *loss, count in FINAL_LOSSES if own == producer}
    assert compared == {"rows": 52, "values": 346}


@pytest.mark.parametrize("producer", MESSAGES)
def test_values_before_a_change_are_those_that_stood_but_for_one_that_alter_table_rewrote(producer: str):
    """MODIFY rewrote `amount` without row images, so the next change has before it what no payload had after."""
    replay = replayed(moved(one) for one in shop(producer)[1])
    number = orders(producer)[0].table.number
    assert replay.unexpected == {(number, "amount"): 1, (number, OLD_AMOUNT): 1}
    first = next(moved(one) for one in orders(producer) if one.schema.version == 5)
    stood = next(moved(one) for one in orders(producer) if one.schema.version == 4)
    assert (stood.after["amount"], stood.after[OLD_AMOUNT]) == (None, Decimal("1.00"))
    assert is_same(first.before["amount"], Decimal("1.0000"))
    assert first.before[OLD_AMOUNT] is None


def test_the_statements_before_truncate_are_those_of_the_messages():
    """What is worked out by hand starts from the statements that the server ran."""
    ran = [one.ddl for one in shop_changes("canal") if one.ddl is not None]
    stated = [one for one in BEFORE_TRUNCATE["statements"] if not one.startswith(("INSERT", "UPDATE", "DELETE"))]
    assert [one for one in ran if "orders" in one] == stated


@pytest.mark.parametrize("producer", MESSAGES)
def test_orders_before_truncate_is_what_its_statements_made_of_it(producer: str):
    """Read with the last of ten schemas, rows of every version have the last names, and the defaults.

    A value that MODIFY rewrote stays in the older field: no row image was sent for it. It is the
    number that the server had, with the digits of the older type.
    """
    rows, compared = dict(_before_truncate(producer)), 0
    types = dict(BEFORE_TRUNCATE["columns"])
    for expected in BEFORE_TRUNCATE["rows"]:
        values = {name: value_of(text, types[name]) for name, text in expected["row"].items() if name != "created"}
        row = rows.pop((values["tenant"], values["order_id"]))
        assert {*row} == {*types, OLD_AMOUNT}
        sent = expected["sent"].get("amount")
        assert is_same(row.pop(OLD_AMOUNT), None if sent is None else Decimal(sent))
        if sent is not None:
            assert Decimal(sent) == values["amount"]
            assert row["amount"] is None
            values["amount"] = None
        assert all(is_same(row[name], value) for name, value in values.items()), (row, values)
        compared += len(row)
    assert (rows, compared) == ({}, 42)


@pytest.mark.parametrize("producer", MESSAGES)
def test_rows_of_one_statement_have_its_time(producer: str):
    """`created` is another in each run: the rows of one INSERT have one, in order, in the second of the change."""
    created = {row["tenant"]: row["created"] for _, row in _before_truncate(producer)}
    times: dict[int, set[datetime]] = {}
    for one in BEFORE_TRUNCATE["rows"]:
        times.setdefault(one["row"]["created"], set()).add(created[one["row"]["tenant"]])
    assert [len(found) for found in times.values()] == [1, 1, 1, 1]
    assert all(max(one) < min(other) for one, other in pairwise(times[statement] for statement in sorted(times)))
    for one in map(moved, orders(producer)):
        if one.op == "c" and one.after["tenant"] != "t9":
            lag = one.source["ts_us"] / 1e6 - one.after["created"].timestamp()
            assert -1 < lag < 1


def _before_truncate(producer: str) -> list[tuple[Any, dict[str, Any]]]:
    """Return the rows of `orders` before its TRUNCATE: before the first change of `t6`, for Debezium does not send it."""
    changes: list[Moved] = []
    for one in map(moved, orders(producer)):
        if one.op == "t" or (one.after or {}).get("tenant") == "t6":
            break
        changes.append(one)
    (rows,) = replayed(changes).rows.values()
    return rows


@pytest.mark.parametrize("producer", MESSAGES)
def test_every_newer_version_reads_every_older_one(producer: str):
    """All pairs of a writer and a newer reader, every payload: names, defaults and values as worked out by hand."""
    versions = orders(producer)[0].table.versions
    compared, pairs = Counter(), set()
    for reader in versions:
        written = [(version, *image) for version, images in IMAGES.items() for image in images]
        if producer == "debezium":
            written.remove((10, "t", None, None))
        typed = [one for one in orders(producer) if one.schema.version <= reader.version]
        for one, (version, op, *lines) in zip(typed, written, strict=False):
            assert one.schema.version == version
            pairs.add((version, reader.version))
            found = moved(one, reader)
            assert found.op == op
            for row, own, line in zip(found[3:5], moved(one, one.schema)[3:5], lines, strict=True):
                wanted = as_read(image_texts(line, version), version, reader.version)
                assert (row is None) == (wanted is None)
                if row is not None:
                    note = {name: "n/a" for name in ("note", "remark") if name in row and wanted[name] is None}
                    is_lost = producer == "debezium" and bool(note)
                    assert is_same(row, _with_created(wanted | (note if is_lost else {}), row, own["created"]))
                    compared.update(values=len(row), notes=is_lost)
            compared["payloads"] += 1
    assert pairs == {(writer, reader) for reader in range(1, 11) for writer in range(1, reader + 1)}
    lost = {"canal": 0, "debezium": 15}[producer]
    assert compared == {"payloads": 146 - (producer == "debezium"), "values": 1461, "notes": lost}


def _with_created(wanted: dict[str, Any], row: dict[str, Any], created: datetime) -> dict[str, Any]:
    return {name: created if name == "created" else wanted[name] for name in row}


def test_without_statements_the_lists_of_columns_give_versions_with_the_same_values():
    """Canal's changes alone: a rename is then a column dropped and one added, a renamed table another one."""
    tables = Tables(zone=UTC)
    made = [typed for one in shop_changes("canal") if one.ddl is None for typed in tables.add(one)]
    told = [one for one in shop("canal")[1] if one.change.op != "TRUNCATE"]
    for one, other in zip(made, told, strict=True):
        assert is_same(_told(one), _told(other))
    names = [(one.schema.table.table, len(one.versions)) for one in tables.tables]
    assert names[:2] == [("all_types", 1), ("orders", 8)]
    assert names[4:6] == [("orders_v2", 1), ("orders_v3", 1)]
    assert tables.tables[1].steps[2] == ("column 'note' dropped", "column 'remark' added: null in older rows")


def _told(typed: TypedChange) -> list[Any]:
    """Return what a change says under its own version's names, without the older field of `amount`, which is null then."""
    one = moved(typed, typed.schema)
    rows = [row and {name: value for name, value in row.items() if name != OLD_AMOUNT} for row in one[3:5]]
    return [one.op, one.key, *rows]


def test_a_printed_schema_is_the_table_again():
    """A row's schema, or an envelope's, gives the table with its names and columns."""
    for schema in (schema for table in shop("canal")[0].tables for schema in table.versions):
        for printed in (schema.row.json, schema.envelope.json):
            assert from_schema(parse_schema(printed)).row.json == schema.row.json

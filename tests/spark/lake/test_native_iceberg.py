"""Iceberg tables that Spark and the local runner change in turn: each goes on with what the other one made."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

pytest.importorskip("pyiceberg")

from cdcavro import to_changes
from cdcavro.lake import TypedRows
from cdcavro.lake.evolution import ADD, DROP, FRONT, KINDS, MARK, RENAME, WIDEN, LakeColumn, Step
from cdcavro.lake.lakes import Attempt
from cdcavro.lake.sql_statements import (
    DELETED,
    DELETES,
    KEY,
    OLDER,
    ORDER,
    STATE,
    UNPARSED,
    alter_table,
    create_table,
    merge_state,
)
from cdcavro.spark.lake import Changelog, CurrentState, Iceberg
from cdcavro.spark.lake.sinks import is_appended, present_columns, properties_of, put_properties, with_view
from cdcavro.spark.lake.spark_tables import collect_arrow
from cdcavro.spark.lake.spark_tables import frame_of as arrow_frame
from cdcavro.sync.native.iceberg_lake import NativeIceberg, NativeIcebergTable
from cdcavro.sync.native.native_columns import Mark
from cdcavro.table import TableName
from cdcavro.table.tables import Tables
from support.pipelines import canal
from support.shop_lake import frame_of

pytestmark = [pytest.mark.timeout(600), pytest.mark.classic]
NOW = datetime(2026, 11, 24, 1, 2, 3, 456_789, tzinfo=UTC)
VALUES = {
    "boolean": True,
    "int": -(2**31),
    "bigint": 2**63 - 1,
    "float": 0.5,
    "double": float("nan"),
    "decimal(9,2)": Decimal("-1234567.89"),
    "decimal(38,10)": Decimal("9" * 28 + ".1234567890"),
    "date": NOW.date(),
    "timestamp": NOW,
    "timestamp_ntz": NOW.replace(tzinfo=None),
    "string": "ünïcode",
    "binary": bytes(range(256)),
    "array<string>": ["a", None],
    "map<string,binary>": [("k", b"\xff\x00"), ("n", None)],
    "struct<a:int,b:array<string>>": {"a": 1, "b": ["x"]},
}
NAMES = ("a.b", "c d", "`", "ü", "*", "1", "x=y;", "'", '"', "\\", "_c", "{}", "a", "#", "-")
COLUMNS = [LakeColumn(name, f"field'{i}", type) for i, (name, type) in enumerate(zip(NAMES, VALUES, strict=True))]


@pytest.fixture
def native(spark: SparkSession) -> NativeIceberg:
    """The catalog of Spark's session, as the local runner has it."""
    return NativeIceberg("ice", warehouse=spark.conf.get("spark.sql.catalog.ice.warehouse"))


def shown(rows: pa.Table) -> list[str]:
    """Return rows as texts, in an order: NaN is not equal to itself."""
    return sorted(repr(row) for row in rows.to_pylist())


def check_same(spark: SparkSession, table: NativeIcebergTable) -> list[str]:
    """Check that both read the same; return the rows."""
    frame = spark.table(table.identifier)
    assert frame.columns == table.schema().names
    assert present_columns(frame) == table.columns()
    properties, found = properties_of(spark, table.identifier), table.properties()
    assert found is not None
    assert {name: value for name, value in found.items() if name != "owner"}.items() <= properties.items()
    rows = shown(table.read(frame.columns))
    # Spark gives instants in the session's time zone.
    assert shown(collect_arrow(frame).cast(table.schema())) == rows
    return rows


def rows_of(table: NativeIcebergTable, rows: Sequence[dict[str, Any]], *more: str) -> pa.Table:
    """Return rows as Arrow has them; `more` are names of binary columns beside those of the table."""
    schema = table.schema()
    for name in more:
        schema = schema.append(pa.field(name, pa.binary()))
    return pa.Table.from_pylist(rows, schema=schema)


def metadata(table: NativeIcebergTable) -> dict[str, Any]:
    """Return what the metadata says of a table, but for what differs each time."""
    found = table._load().metadata.model_dump(mode="json", by_alias=True)
    changing = ("table-uuid", "last-updated-ms", "location", "snapshots", "snapshot-log", "metadata-log", "refs")
    return {name: value for name, value in found.items() if name not in (*changing, "current-snapshot-id")}


def test_tables_of_both_are_created_and_changed_alike(spark: SparkSession, native: NativeIceberg):
    """Down to the numbers of fields and the properties; each then reads what the other wrote."""
    sink, names = Iceberg("ice"), [TableName("alike", None, "spark"), TableName("alike", "s", "native")]
    steps = [
        Step(ADD, "new", LakeColumn("new", "n", "map<string,decimal(5,2)>")),
        Step(RENAME, "c d", LakeColumn("c.d", "c", "int")),
        Step(WIDEN, "c.d", LakeColumn("c.d", "c", "bigint")),
        Step(MARK, "c.d", LakeColumn("c.d", "it's", "bigint")),
        Step(ADD, "x.y", LakeColumn("x.y", "x", "int"), "c.d"),
        Step(ADD, "z", LakeColumn("z", "z", "int"), "x.y"),
        Step(ADD, "first", LakeColumn("first", "f", "int"), FRONT),
        Step(WIDEN, "1", LakeColumn("1", "w", "decimal(20,2)")),
        Step(WIDEN, "ü", LakeColumn("ü", "w", "double")),
        Step(DROP, "{}", LakeColumn("{}", "d", "binary")),
    ]
    assert {step.kind for step in steps} == {*KINDS}
    properties = {"format-version": "2", "cdcavro.pipeline": "me"}
    sink.make_room(spark, names[0])
    spark.sql(create_table(sink.identifier(names[0]), COLUMNS, STATE, "iceberg", properties))
    native.make_room(names[1])
    native.table(names[1]).create(COLUMNS, STATE, properties)
    first, second = (native.table(name) for name in names)
    assert metadata(first) == metadata(second)
    row = dict(zip(NAMES, VALUES.values(), strict=True)) | {KEY: b"\x00\xff", ORDER: b"\xff" * 40}
    row |= {OLDER: [("a", b"\x80")], UNPARSED: [("b", "text")]}
    second.append(rows_of(second, [row, dict.fromkeys(row)]), Mark("j", 0))
    spark.table(second.identifier).writeTo(first.identifier).append()
    assert check_same(spark, first) == check_same(spark, second)
    for step in steps:
        spark.sql(alter_table(first.identifier, step))
    put_properties(spark, first.identifier, {"p": "`"})
    second.alter(steps, {"p": "`"})
    assert check_same(spark, first) == check_same(spark, second)
    ours, theirs = metadata(second), metadata(first)
    assert ours["schemas"][-1]["fields"] == theirs["schemas"][-1]["fields"]
    assert (ours["properties"], ours["last-column-id"]) == (theirs["properties"], theirs["last-column-id"])
    # And the other way round.
    for table, other in ((first, second), (second, first)):
        table.alter([Step(ADD, "by", LakeColumn("by", "by", "int"))], {})
        spark.sql(alter_table(other.identifier, Step(ADD, "by", LakeColumn("by", "by", "int"))))
        check_same(spark, table)
        table.alter([Step(DROP, "by", LakeColumn("by", "by", "int"))], {})
        spark.sql(alter_table(other.identifier, Step(DROP, "by", LakeColumn("by", "by", "int"))))
    check_same(spark, first)
    assert metadata(first)["last-column-id"] == metadata(second)["last-column-id"]
    listed = {one.identifier for one in native.tables()}
    assert {first.identifier, second.identifier} <= listed
    # Spark quotes a namespace only if it must.
    assert {name.replace("`", "") for name in listed} == {name.replace("`", "") for name in sink.tables(spark)}


@pytest.mark.every_spark
def test_merges_of_both_in_turn(spark: SparkSession, native: NativeIceberg):
    """The same batches by SQL, natively, and by both in turn give the same rows; Spark's deletes of rows are honoured."""
    names = ("sql", "native", "turn", "turn2")
    tables = [native.table(TableName("merged", None, name)) for name in names]
    native.make_room(TableName("merged", None, "t"))
    for table in tables:
        table.create(
            [LakeColumn("v", "v", "int"), LakeColumn("kept", "kept", "string")], STATE, {"format-version": "2"}
        )
        put_properties(
            spark, table.identifier, {"write.merge.mode": "merge-on-read", "write.delete.mode": "merge-on-read"}
        )
        rows = [{KEY: bytes([i % 256]) * 20, ORDER: b"\x01", "v": i, "kept": "k"} for i in range(60, 200)]
        table.append(rows_of(table, rows), Mark("j", 0))
        spark.sql(f"DELETE FROM {table.identifier} WHERE v IN (70, 71, 190)")
    for number in range(4):
        orders = [None, b"\x01", b"\x02\x00", b"\x7f", b"\x80", bytes([0x80, number])]
        rows = [
            {
                KEY: bytes([i]) * 20,
                ORDER: orders[(i + number) % 6],
                DELETED: orders[(i * 5 + number) % 6],
                "v": number,
                UNPARSED: [("v", "x")] if i % 2 else None,
            }
            for i in range(50 + number, 230, 5 + number)
        ]
        for i, table in enumerate(tables):
            batch = rows_of(table, rows, DELETED)
            if i == 0 or (i > 1 and (i + number) % 2 == 0):
                with_view(
                    arrow_frame(spark, batch),
                    lambda view, table=table: merge_state(table.identifier, view, {"v": ("v",)}),
                )
            else:
                table.merge(batch, ["v"])
    found = [check_same(spark, table) for table in tables]
    assert found[0] == found[1] == found[2] == found[3]
    assert len(found[0]) > 100
    keys = pa.array([bytes([i]) * 20 for i in (70, 72, 100)])
    tables[2].replace(keys, tables[2].find(keys).slice(0, 1))
    tables[2].delete_up_to(ORDER, b"\x02")
    bound = "_cdc_order <= X'02'"
    spark.sql(f"DELETE FROM {tables[0].identifier} WHERE {bound}")
    check_same(spark, tables[0])
    check_same(spark, tables[2])
    tables[2].rewrite(lambda rows: rows)
    check_same(spark, tables[2])
    left = spark.table(tables[2].identifier)
    assert left.where(bound).count() == 0
    left.groupBy("kept").agg(sf.max("v")).collect()


def test_batches_of_both_are_appended_once(spark: SparkSession, native: NativeIceberg):
    """Each sees the marks of the other's snapshots."""
    name, sink = TableName("appended", None, "t"), Iceberg("ice")
    maker = TypedRows(Tables())
    rows = maker.of_batch([to_changes(canal("INSERT", [{"id": "1"}], id=1), "canal")]).rows
    versions = maker.tables.tables[0].versions
    log, table = Changelog(sink, name), native.table(name, "changes")
    log.prepare(spark, versions)
    frame = frame_of(spark, rows)
    log.append(frame, versions, job="it's", batch=3)
    batch = table.read(table.schema().names)
    assert batch.num_rows == 1
    table.append(batch, Mark("it's", 3, NOW))
    assert table.read([KEY]).num_rows == 1
    table.append(batch, Mark("it's", 4, NOW))
    table.append(batch, Mark("it's", 4, NOW))
    assert spark.table(log.identifier).count() == 2
    assert is_appended(spark.table(log.identifier), log.identifier, "cdcavro.batch.it's", 4)
    log.append(frame, versions, job="it's", batch=4, attempt=Attempt(since=NOW))
    assert spark.table(log.identifier).count() == 2
    log.append(frame, versions, job="it's", batch=5)
    assert len(check_same(spark, table)) == 3


def test_a_state_of_spark_goes_on_behind_native_changes(spark: SparkSession, native: NativeIceberg):
    """The whole of `CurrentState`, on a table that was made natively, with a table of deletes."""
    name = TableName("goes on", None, "t")
    maker = TypedRows(Tables())
    messages = [canal("INSERT", [{"id": str(i), "v": "a"}], id=i + 1) for i in range(3)]
    messages += [canal("DELETE", [{"id": "1", "v": "a"}], id=7)]
    later = [canal("UPDATE", [{"id": "2", "v": "b"}], id=9), canal("INSERT", [{"id": "1", "v": "late"}], id=6)]
    batches = [maker.of_batch([to_changes(one, "canal") for one in each]).rows for each in (messages, later)]
    versions = maker.tables.tables[0].versions
    made = CurrentState(Iceberg("ice"), TableName("goes on", None, "as spark"))
    made.prepare(spark, versions)
    columns = native.table(made.table).columns()
    native.make_room(name)
    table, deletes = native.table(name), native.table(name, "deletes")
    table.create(columns, STATE, native.properties([one.name for one in columns]))
    deletes.create([], DELETES, native.properties(DELETES))
    table.alter([], {"cdcavro.filled": str(versions[-1].version)})
    state = CurrentState(Iceberg("ice"), name)
    for rows in batches:
        for one in (made, state):
            one.prepare(spark, versions)
            one.merge(frame_of(spark, rows), versions, now=NOW)
    assert check_same(spark, table) == check_same(spark, native.table(made.table))
    assert len(check_same(spark, table)) == 2
    assert deletes.read([KEY]).num_rows == 1

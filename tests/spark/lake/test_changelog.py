"""Changelogs in Delta Lake and Iceberg."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC
from pathlib import Path

import pytest
from pyarrow.parquet import ParquetFile
from pyspark.sql import SparkSession

from cdcavro import to_changes
from cdcavro.lake import TypedRows
from cdcavro.lake.escaped_names import quote
from cdcavro.spark.lake import Changelog, CurrentState, Delta
from cdcavro.spark.lake.sinks import Sink
from cdcavro.table import TableName
from cdcavro.table.tables import Tables
from support.messages import canal
from support.shop_lake import frame_of
from support.shop_state import as_came
from support.shop_tables import MESSAGES, shop

pytestmark = pytest.mark.timeout(1_200)


@pytest.mark.parametrize("producer", MESSAGES)
def test_every_change_is_in_the_changelog_once(spark: SparkSession, sink: Sink, producer: str):
    """In three batches, each of which is appended twice, the table's columns changing between them; without a key, too."""
    maker, messages = TypedRows(Tables(zone=UTC)), as_came(producer)
    size = -(-len(messages) // 3)
    logs = {}
    for number, i in enumerate(range(0, len(messages), size)):
        batch = maker.of_batch(messages[i : i + size])
        for table in maker.tables.tables:
            name = table.versions[0].table.table
            rows = [row for row in batch.rows if row.table == table.number]
            if rows and name in ("orders", "nopk"):
                log = logs[name] = Changelog(sink, TableName(f"log {producer} {type(sink).__name__}", None, name))
                log.prepare(spark, table.versions)
                for _ in range(2):
                    log.append(frame_of(spark, rows), table.versions, job="test's job", batch=number)
    for name, log in logs.items():
        found = [
            (row["_cdc_op"], row["_cdc_version"], row["_cdc_key"] and bytes(row["_cdc_key"]))
            for row in spark.table(log.identifier).orderBy("_cdc_order").collect()
            if row["_cdc_op"] not in ("b", "x")
        ]
        typed = [one for one in shop(producer)[1] if one.table.versions[0].table.table == name]
        operations = {"INSERT": "c", "UPDATE": "u", "DELETE": "d", "TRUNCATE": "t"}
        wanted = [(operations[one.change.op], one.schema.version, one.key) for one in typed]
        assert sorted(found, key=repr) == sorted(wanted, key=repr)
    orders = spark.table(logs["orders"].identifier)
    befores = orders.where("_cdc_op = 'b'").count()
    assert befores == orders.where("_cdc_op = 'u'").count() > 0
    moved = orders.where("tenant = 't9' AND _cdc_op = 'c'").select("order_id", "`amount (until version 4)`")
    assert [tuple(map(str, row)) for row in moved.collect()] == [("7", "11.10")]


INSERT = {"id": "1", "n": "1"}


def features(spark: SparkSession, sink: Delta, messages: Sequence[bytes], name: str = "t") -> list[set[str]]:
    """Return which features a table has behind each of its messages."""
    maker, log = TypedRows(Tables()), Changelog(sink, TableName("d", None, name))
    found = []
    for message in messages:
        maker.of_batch([to_changes(message, "canal")])
        log.prepare(spark, maker.tables.tables[0].versions)
        rows = spark.sql(f"SHOW TBLPROPERTIES {log.identifier}").collect()
        on = {row["key"].removeprefix("delta.") for row in rows if row["value"] not in ("none", "false")}
        found.append(on & {"columnMapping.mode", "enableTypeWidening"})
    return found


def statement(id: int, text: str) -> bytes:
    """Return the message of an ALTER TABLE."""
    return canal("ALTER", [], id=id, isDdl=True, sql=f"ALTER TABLE t {text}")


def note(type: str, id: int, /, **row: str) -> bytes:
    """Return the message of a row's change, with the types of its columns."""
    kinds = {"id": "int", "n": "int", "s": "varchar(9)", "tag": "enum('a','b')", "label": "enum('a','b')"}
    kinds |= {"s": "int"} if row.get("s", "").isdigit() else {}
    old = {"old": [{"n": "0"}]} if type == "UPDATE" else {}
    return canal(type, [row], id=id, mysqlType={name: kinds[name] for name in row}, **old)


def test_rows_before_a_dropped_column_keep_its_values_in_one_batch(spark: SparkSession, sink: Sink):
    """A lake table keeps columns that are dropped one after the other, one behind its renaming, and one that comes back."""
    created = "CREATE TABLE t (id int PRIMARY KEY, n int, s varchar(9), tag enum('a','b') NOT NULL DEFAULT 'a')"
    first = [
        canal("CREATE", [], id=1, isDdl=True, sql=created),
        *(note("INSERT", i, id=f"{i}", n="1", s=f"first {i}", tag="b") for i in (2, 3, 4)),
    ]
    later = [
        note("UPDATE", 10, id="2", n="2", s="later", tag="b"),
        note("INSERT", 11, id="5", n="5", s="new", tag="a"),
        note("DELETE", 12, id="4", n="1", s="first 4", tag="b"),
        statement(13, "DROP COLUMN s, CHANGE tag label enum('a','b') NOT NULL DEFAULT 'a'"),
        note("UPDATE", 14, id="5", n="50", label="b"),
        statement(15, "DROP COLUMN label"),
        note("UPDATE", 16, id="5", n="500"),
        note("INSERT", 17, id="4", n="4"),
        note("DELETE", 18, id="3", n="1"),
        note("INSERT", 19, id="3", n="3"),
        statement(20, "ADD COLUMN s int"),
        note("INSERT", 21, id="6", n="6", s="66"),
    ]
    maker, table = TypedRows(Tables()), TableName(f"drop {type(sink).__name__}", None, "t")
    state, log = CurrentState(sink, table), Changelog(sink, table)
    # As after a kill between the write and its note, the second batch comes again.
    rows = [maker.of_batch([to_changes(one, "canal") for one in first]).rows]
    begun = list(maker.tables.tables[0].versions)
    rows += [maker.of_batch([to_changes(one, "canal") for one in later]).rows] * 2
    for batch, versions in enumerate([begun, maker.tables.tables[0].versions, maker.tables.tables[0].versions]):
        state.prepare(spark, versions)
        log.prepare(spark, versions)
        state.merge(frame_of(spark, rows[batch]), versions)
        log.append(frame_of(spark, rows[batch]), versions, job="a job", batch=min(batch, 1))
    names = ["id", "n", "s (dropped 1)", "tag", "s"]
    assert sorted(map(tuple, spark.table(state.identifier).select(*map(quote, names)).collect())) == [
        (2, 2, "later", "b", None),
        (3, 3, None, None, None),
        (4, 4, None, None, None),
        (5, 500, "new", "b", None),
        (6, 6, None, None, 66),
    ]
    changes = spark.table(log.identifier).where("_cdc_op <> 'b'").orderBy("_cdc_order")
    assert [tuple(row) for row in changes.select("_cdc_op", *map(quote, names)).collect()] == [
        *(("c", i, 1, f"first {i}", "b", None) for i in (2, 3, 4)),
        ("u", 2, 2, "later", "b", None),
        ("c", 5, 5, "new", "a", None),
        ("d", 4, 1, "first 4", "b", None),
        ("u", 5, 50, None, "b", None),
        ("u", 5, 500, None, None, None),
        ("c", 4, 4, None, None, None),
        ("d", 3, 1, None, None, None),
        ("c", 3, 3, None, None, None),
        ("c", 6, 6, None, None, 66),
    ]


@pytest.mark.since("4.0")
def test_a_column_that_is_widened_filled_and_dropped_in_one_batch_is_widened(spark: SparkSession, sink: Sink):
    """The rows between its statements have values that the lake's column could not hold; they stopped the table."""
    types = {"id": "int", "n": "int"}
    later = [
        statement(2, "MODIFY COLUMN n bigint"),
        canal("INSERT", [{"id": "2", "n": str(2**40)}], id=3, mysqlType={**types, "n": "bigint"}),
        statement(4, "DROP COLUMN n"),
        canal("INSERT", [{"id": "3"}], id=5, mysqlType={"id": "int"}),
    ]
    maker, table = TypedRows(Tables()), TableName(f"wide {type(sink).__name__}", None, "t")
    state, log = CurrentState(sink, table), Changelog(sink, table)
    for i, messages in enumerate([[canal("INSERT", [{"id": "1", "n": "7"}], id=1, mysqlType=types)], later]):
        rows = maker.of_batch([to_changes(one, "canal") for one in messages]).rows
        versions = maker.tables.tables[0].versions
        state.prepare(spark, versions)
        log.prepare(spark, versions)
        state.merge(frame_of(spark, rows), versions)
        log.append(frame_of(spark, rows), versions, job="a job", batch=i)
    for one in (state, log):
        found = spark.table(one.identifier).select("id", "n").orderBy("id").collect()
        assert [tuple(row) for row in found] == [(1, 7), (2, 2**40), (3, None)]


@pytest.mark.every_spark
@pytest.mark.classic
def test_names_of_columns_are_mapped_from_the_first_statement_on_that_needs_it(spark: SparkSession, tmp_path: Path):
    """It costs time with every write, and keeps readers out that do not know it."""
    sink, first, mapped = Delta(str(tmp_path)), canal("INSERT", [INSERT], id=1), {"columnMapping.mode"}
    added, renamed = statement(2, "ADD COLUMN more int"), statement(3, "RENAME COLUMN n TO m")
    assert features(spark, sink, [first, added, renamed]) == [set(), set(), mapped]
    assert features(spark, sink, [first, statement(2, "ADD COLUMN `a b` int")], "spaced later") == [set(), mapped]
    assert features(spark, sink, [canal("INSERT", [{**INSERT, "a b": "1"}], id=1)], "spaced") == [mapped]


@pytest.mark.every_spark
@pytest.mark.classic
@pytest.mark.since("4.0")
def test_types_can_be_widened_from_the_first_statement_on_that_needs_it(spark: SparkSession, tmp_path: Path):
    """Also where it is switched off in the table."""
    sink, widened = Delta(str(tmp_path)), {"enableTypeWidening"}
    first, second = canal("INSERT", [INSERT], id=1), statement(2, "MODIFY COLUMN n bigint")
    assert features(spark, sink, [first, second]) == [set(), widened]
    assert features(spark, sink, [first], "off") == [set()]
    identifier = sink.identifier(TableName("d", None, "off"), "changes")
    spark.sql(f"ALTER TABLE {identifier} SET TBLPROPERTIES ('delta.enableTypeWidening' = 'false')")
    assert features(spark, sink, [first, second], "off") == [set(), widened]
    assert dict(spark.table(identifier).dtypes)["n"] == "bigint"


@pytest.mark.every_spark
@pytest.mark.classic
def test_parquet_makes_no_dictionary_of_keys_and_orders(spark: SparkSession, tmp_path: Path):
    """Nearly each is another one, so it would be a tenth of the time for nothing; here one key shows that there is none."""
    sink, maker = Delta(str(tmp_path)), TypedRows(Tables())
    messages = [to_changes(canal("UPDATE", [{"id": "1", "s": "1"}], id=number), "canal") for number in range(500)]
    rows, log = maker.of_batch(messages).rows, Changelog(sink, TableName("d", None, "t"))
    log.prepare(spark, maker.tables.tables[0].versions)
    log.append(frame_of(spark, rows).coalesce(1), maker.tables.tables[0].versions, job="test's job", batch=1)
    (path,) = tmp_path.rglob("*.parquet")
    group = ParquetFile(path).metadata.row_group(0)
    columns = [group.column(i) for i in range(group.num_columns)]
    plain = {column.path_in_schema for column in columns if not any("DICT" in one for one in column.encodings)}
    assert plain >= {"_cdc_key", "_cdc_order"}
    assert not plain & {"id", "s", "_cdc_op"}

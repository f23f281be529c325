"""Delta tables that Spark and `deltalake` write in turn: either goes on where the other stopped, and neither sees which was."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from cdcavro import to_changes
from cdcavro.errors import SchemaError
from cdcavro.lake import TypedRows
from cdcavro.lake import sql_statements as sql
from cdcavro.lake.evolution import ADD, DROP, FRONT, LENIENT, MARK, RENAME, WIDEN, LakeColumn, Step, steps_to
from cdcavro.lake.lake_columns import wanted_columns
from cdcavro.lake.lakes import Attempt, name_property
from cdcavro.lake.sql_statements import KEY, OLDER, ORDER, STATE, UNPARSED
from cdcavro.spark.lake import CurrentState, Delta
from cdcavro.spark.lake.sinks import present_columns, properties_of, take_steps
from cdcavro.sync.native.delta_lake import NativeDelta, NativeDeltaTable
from cdcavro.sync.native.native_columns import Mark
from cdcavro.table import TableName
from cdcavro.table.tables import Tables
from support.native_rows import by_key, merged_rows, plain_names, state_rows
from support.pipelines import canal
from support.shop_lake import frame_of

pytestmark = pytest.mark.timeout(600)
NAME = TableName("shop", None, "t")
# A value at an end of each type, which statistics of files must not leave out, and another.
VALUES = {
    "int": (-(2**31), 1),
    "bigint": (2**63 - 1, 1),
    "float": (1.5, -0.25),
    "double": (1e308, -1e-308),
    "boolean": (True, False),
    "string": ("\U0001f600" * 50, ""),
    "date": (date(9999, 12, 31), date(1, 1, 1)),
    "timestamp": (datetime(9999, 12, 31, 15, 59, 59, 999999, tzinfo=UTC), datetime(1, 1, 2, 0, 0, 0, 1, tzinfo=UTC)),
    "timestamp_ntz": (datetime(9999, 12, 31, 23, 59, 59, 999999), datetime(1, 1, 1)),  # noqa: DTZ001  local times
    "decimal(38,18)": (Decimal("12345678901234567890.123456789012345678"), Decimal("-0.000000000000000001")),
    "decimal(20,0)": (Decimal(18446744073709551615), Decimal(-1)),
    "decimal(9,2)": (Decimal("1234567.89"), Decimal("-0.01")),
}


def described(spark: SparkSession, identifier: str) -> tuple:
    """Return what Spark says of a table: columns with types and comments, properties, and the protocol."""
    columns = [
        (field.name, field.dataType.simpleString(), field.metadata.get("comment"))
        for field in spark.table(identifier).schema
    ]
    (detail,) = spark.sql(f"DESCRIBE DETAIL {identifier}").collect()
    return columns, properties_of(spark, identifier), detail["minReaderVersion"], sorted(detail["tableFeatures"])


def spark_merge(spark: SparkSession, identifier: str, *rows: dict) -> None:
    """Merge rows by the statement that Spark runs."""
    schema = spark.table(identifier).schema
    names = [field.name for field in schema]
    listed = [tuple(row.get(name) for name in names) for row in rows]
    frame = spark.createDataFrame(listed, schema).withColumn(sql.DELETED, sf.lit(None).cast("binary"))
    frame.createOrReplaceTempView("source")
    spark.sql(sql.merge_state(identifier, "source", {name: (name,) for name in names if name not in STATE})).collect()


def both(tmp_path: Path) -> tuple[Delta, NativeDelta, NativeDeltaTable]:
    """Return a lake as Spark has it and as `deltalake` has it, and a table."""
    sink, lake = Delta(str(tmp_path / "la ke"), owner="me"), NativeDelta(str(tmp_path / "la ke"), owner="me")
    assert (sink.name, sink.identifier(NAME)) == (lake.name, lake.table(NAME).identifier)
    return sink, lake, lake.table(NAME)


@pytest.mark.parametrize(("names", "last"), [(["id", "s"], "timestamp_ntz"), (["id", "an odd, name"], "string")])
def test_a_new_table_is_that_of_spark(spark: SparkSession, tmp_path: Path, names: list[str], last: str):
    """Columns, types, comments, properties and protocol; also behind each step, which Spark takes one by one."""
    sink, _, table = both(tmp_path)
    columns = [
        LakeColumn(name, f"f {i}", kind) for i, (name, kind) in enumerate(zip(names, ["int", last], strict=True))
    ]
    other = TableName("shop", None, "u")
    spark.sql(sql.create_table(sink.identifier(other), columns, STATE, "delta", sink.properties(names)))
    table.create(columns, STATE, sink.properties(names))
    assert described(spark, table.identifier) == described(spark, sink.identifier(other))
    steps = [
        Step(ADD, "b b", LakeColumn("b b", "b", "array<struct<x:int,y:map<string,timestamp_ntz>>>")),
        Step(RENAME, "id", LakeColumn("i d", "f 0", "int")),
        Step(MARK, "i d", LakeColumn("i d", "new", "int")),
        Step(DROP, names[1], columns[1]),
        Step(ADD, "c", LakeColumn("c", "c", "decimal(12,2)")),
        Step(ADD, "d", LakeColumn("d", "d", "int"), "i d"),
        Step(ADD, "e", LakeColumn("e", "e", "int"), FRONT),
    ]
    needed = dict(sink.properties_for(steps)) | {"a.b": "it's"}
    spark.sql(sql.set_properties(sink.identifier(other), needed))
    for step in steps:
        spark.sql(sql.alter_table(sink.identifier(other), step))
    table.alter(steps, needed)
    assert described(spark, table.identifier) == described(spark, sink.identifier(other))
    assert table.columns() == present_columns(spark.table(table.identifier))


def test_both_change_columns_in_all_files_alike_where_every_reader_is_to_read_the_table(
    spark: SparkSession, tmp_path: Path
):
    """And each goes on with what the other wrote."""
    sink, lake = (
        Delta(str(tmp_path / "la ke"), is_readable=True),
        NativeDelta(str(tmp_path / "la ke"), is_readable=True),
    )
    columns = [LakeColumn("id", "f 0", "int"), LakeColumn("s", "f 1", "string"), LakeColumn("n", "f 2", "decimal(5,2)")]
    tables = [lake.table(TableName("shop", None, name)) for name in "tu"]
    for table in tables:
        table.create(columns, STATE, lake.properties(["id"]))
        row = {KEY: b"a", ORDER: b"\x01", "id": 1, "s": "x", "n": Decimal("1.25"), OLDER: [("s", b"\x00")]}
        table.merge(merged_rows(table.schema(), row), plain_names(table.schema()))
    steps = [
        Step(DROP, "s", columns[1]),
        Step(RENAME, "id", LakeColumn("x", "f 0", "int")),
        Step(WIDEN, "x", LakeColumn("x", "f 0", "bigint")),
        Step(WIDEN, "n", LakeColumn("n", "f 2", "decimal(12,4)")),
        Step(MARK, "x", LakeColumn("x", "it's", "bigint")),
        Step(ADD, "id", LakeColumn("id", "i", "array<struct<a:int>>"), FRONT),
        Step(ADD, "s", LakeColumn("s", "t", "map<string,int>"), "x"),
        Step(ADD, "_cdc_line", LakeColumn("_cdc_line", "_cdc_line", "bigint")),
    ]
    tables[0].alter(steps, {})
    take_steps(spark, sink, tables[1].identifier, steps, {})
    first, second = (described(spark, table.identifier) for table in tables)
    assert first == second
    assert [name for name, *_ in first[0]] == ["id", "x", "s", "n", *STATE, "_cdc_line"]
    assert first[2] == 1
    for table in tables:
        spark_merge(spark, table.identifier, {KEY: bytearray(b"b"), ORDER: bytearray(b"\x02"), "x": 2**40})
        put = {KEY: b"c", ORDER: b"\x03", "id": [{"a": 7}], "s": [("k", 1)]}
        table.merge(merged_rows(table.schema(), put), ["id", "s"])
    rows = [by_key(table.read(table.schema().names)) for table in tables]
    assert rows[0] == rows[1]
    assert {key: (row["id"], row["x"], row["n"]) for key, row in rows[0].items()} == {
        b"a": (None, 1, Decimal("1.2500")),
        b"b": (None, 2**40, None),
        b"c": ([{"a": 7}], None, None),
    }


def test_values_at_the_ends_of_types_are_read_and_found_by_the_other(spark: SparkSession, tmp_path: Path):
    """Written by Spark and by `deltalake`; a filter finds each, so the statistics of files do not leave it out."""
    sink, lake, table = both(tmp_path)
    columns = [LakeColumn(f"c{i}", f"c{i}", kind) for i, kind in enumerate(VALUES)]
    table.create(columns, STATE, lake.properties([]))
    rows = [{f"c{i}": pair[at] for i, pair in enumerate(VALUES.values())} for at in (0, 1)]
    maps = {OLDER: [("c0", b"\xfe")], UNPARSED: None}
    table.merge(
        merged_rows(
            table.schema(), *[row | maps | {KEY: bytes([200, i]), ORDER: b"\x01"} for i, row in enumerate(rows)]
        ),
        plain_names(table.schema()),
    )
    ordered = spark.table(sink.identifier(NAME)).where(f"{KEY} > X'C7'").orderBy(KEY)
    spark_rows = [
        tuple(value)
        for value in ordered.select(*[sf.col(f"c{i}").cast("string") for i in range(len(columns))]).collect()
    ]
    view = "SELECT X'64' || substr(_cdc_key, 2, 1) AS _cdc_key, * EXCEPT (_cdc_key) FROM " + sink.identifier(NAME)
    copied = spark.sql(view).localCheckpoint()
    copied.select(*table.schema().names).writeTo(sink.identifier(NAME)).append()
    found = by_key(table.read(table.schema().names))
    assert len(found) == 4
    for i in range(2):
        assert found[bytes([100, i])] | {KEY: None} == found[bytes([200, i])] | {KEY: None}
        assert {name: found[bytes([100, i])][name] for name in rows[i]} == rows[i]
        for at, kind in enumerate(VALUES):
            text = spark_rows[i][at].replace("'", "''")
            where = spark.table(sink.identifier(NAME)).where(f"c{at} = CAST('{text}' AS {kind})")
            assert where.count() == 2, (kind, text)


def test_a_batch_that_either_appended_is_not_appended_again(spark: SparkSession, tmp_path: Path):
    """By the mark in the history and by the transaction; with a batch of each that the other has not."""
    sink, lake, table = both(tmp_path)
    table.create([], sql.CHANGELOG, lake.properties([]))
    rows = state_rows(table.schema(), {ORDER: b"\x01", KEY: b"k"})
    now = datetime.now(UTC)
    spark_rows = spark.table(table.identifier)
    table.append(rows, Mark("it's", 0))
    frame = spark.createDataFrame(spark_rows.collect(), spark_rows.schema)
    for batch, attempt in [(0, Attempt(since=now)), (0, Attempt()), (1, Attempt(is_first=True)), (2, Attempt())]:
        sink.append(frame, NAME, "", "it's", batch, attempt)
    for mark in (Mark("it's", 1, now), Mark("it's", 2, now), Mark("it's", 3)):
        table.append(rows, mark)
    sink.append(frame, NAME, "", "it's", 3, Attempt(since=now - timedelta(minutes=5)))
    assert spark.table(table.identifier).count() == table.read([KEY]).num_rows == 4


@pytest.mark.every_spark
@pytest.mark.classic
def test_steps_and_merges_of_both_in_turn(spark: SparkSession, tmp_path: Path):
    """Renamed, widened, added and dropped by one, merged by the other, and again."""
    sink, lake, table = both(tmp_path)
    place = table.identifier
    columns = [LakeColumn("id", "id", "int"), LakeColumn("s", "s", "string"), LakeColumn("f", "f", "float")]
    spark.sql(sql.create_table(place, columns, STATE, "delta", sink.properties([])))
    spark_merge(spark, place, {KEY: bytearray(b"a"), ORDER: bytearray(b"\x01"), "id": 1, "s": "x", "f": 0.5})
    assert table.columns() == columns
    wanted = [LakeColumn("s", "id", "bigint"), LakeColumn("id", "s", "string"), LakeColumn("g h", "g", "timestamp_ntz")]
    steps = steps_to("t", table.columns(), wanted, LENIENT, lake.can_widen)
    table.alter(steps, lake.properties_for(steps))
    assert present_columns(spark.table(place)) == table.columns()
    spark_merge(spark, place, {KEY: bytearray(b"b"), ORDER: bytearray(b"\x02"), "s": 2**40, "id": "y"})
    put = {KEY: b"a", ORDER: b"\x03", "s": 3, "id": "z", "g h": datetime(2026, 1, 1)}  # noqa: DTZ001  a local time
    table.merge(merged_rows(table.schema(), put, {KEY: b"c", ORDER: b"\x01"}), plain_names(table.schema()))
    # Delta Lake on Spark 3.5 widens integers only, as a preview, which `deltalake` refuses.
    is_wide = spark.version >= "4"
    if is_wide:
        spark.sql(sql.set_properties(place, {"delta.enableTypeWidening": "true"}))
        spark.sql(sql.alter_table(place, Step(WIDEN, "f", LakeColumn("f", "f", "double"))))
    spark.sql(sql.alter_table(place, Step(DROP, "id", LakeColumn("id", "s", "string"))))
    spark.sql(sql.alter_table(place, Step(RENAME, "s", LakeColumn("n", "id", "bigint"))))
    spark_merge(spark, place, {KEY: bytearray(b"d"), ORDER: bytearray(b"\x01"), "n": 4, "f": 0.1 if is_wide else 0.25})
    expected = {b"a": (3, None), b"b": (2**40, None), b"c": (None, None), b"d": (4, 0.1 if is_wide else 0.25)}
    found = {key: (row["n"], row["f"]) for key, row in by_key(table.read(table.schema().names)).items()}
    assert found == expected
    table.merge(merged_rows(table.schema(), {KEY: b"d", ORDER: b"\x05", "n": 5}), ["n"])
    table.delete_up_to(ORDER, b"\x01")
    rows = spark.table(place).select(KEY, "n", "f").collect()
    assert {bytes(key): (n, f) for key, n, f in rows} == {
        b"a": (3, None),
        b"b": (2**40, None),
        b"d": (5, 0.1 if is_wide else 0.25),
    }
    if is_wide:
        spark.sql(sql.set_properties(place, {"delta.enableTypeWidening": "true"}))
    assert present_columns(spark.table(place)) == table.columns()


def test_a_current_state_of_spark_goes_on_where_deltalake_stopped(spark: SparkSession, tmp_path: Path):
    """Created and filled without Spark, prepared and merged by `CurrentState`: the same as if Spark had made all of it."""
    sink, lake, table = both(tmp_path)
    maker = TypedRows(Tables())

    def typed(*messages: bytes):
        return maker.of_batch([to_changes(one, "canal") for one in messages]).rows

    first = typed(
        canal("INSERT", [{"id": "1", "v": "x"}], id=1, mysqlType={"id": "int", "v": "varchar(9)"}, pkNames=["id"])
    )
    versions = maker.tables.tables[0].versions
    wanted = wanted_columns(versions[-1])
    other = CurrentState(sink, TableName("shop", None, "u"))
    other.prepare(spark, versions)
    given = {**lake.properties([]), "cdcavro.filled": "1", **name_property(NAME)}
    table.create(wanted, STATE, given)
    (row,) = first
    put = {KEY: row.key, ORDER: row.order, "id": 1, "v": "x"}
    table.merge(merged_rows(table.schema(), put), plain_names(table.schema()))
    other.merge(frame_of(spark, first), versions)
    state = CurrentState(sink, NAME)
    assert state.prepare(spark, versions) == []
    more = typed(
        canal("ALTER", [], id=2, isDdl=True, sql="ALTER TABLE t ADD w INT DEFAULT 7"),
        canal(
            "UPDATE",
            [{"id": "1", "v": "y", "w": "8"}],
            old=[{"v": "x"}],
            id=3,
            mysqlType={"id": "int", "v": "varchar(9)", "w": "int"},
            pkNames=["id"],
        ),
    )
    versions = maker.tables.tables[0].versions
    for one in (state, other):
        one.prepare(spark, versions)
        one.merge(frame_of(spark, more), versions)
    assert by_key(table.read(table.schema().names)) == by_key(lake.table(other.table).read(table.schema().names))
    assert table.columns() == lake.table(other.table).columns()
    assert table.read(plain_names(table.schema())).to_pylist()[0]["v"] == "y"


def test_rows_that_spark_marked_as_deleted_are_gone(spark: SparkSession, tmp_path: Path):
    """They are not read, and stay deleted when the table is merged; it cannot be widened until they are gone."""
    _, lake, table = both(tmp_path)
    table.create([LakeColumn("id", "id", "int")], STATE, lake.properties([]))
    rows = [{KEY: bytes([i]), ORDER: b"\x01", "id": i} for i in range(10)]
    table.merge(merged_rows(table.schema(), *rows), ["id"])
    spark.sql(sql.set_properties(table.identifier, {"delta.enableDeletionVectors": "true"}))
    spark.sql(f"DELETE FROM {table.identifier} WHERE id = 3")
    assert sorted(row["id"] for row in table.read(["id"]).to_pylist()) == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    with pytest.raises(SchemaError, match="has rows that are marked as deleted"):
        table.alter([Step(WIDEN, "id", LakeColumn("id", "id", "bigint"))], {})
    table.merge(merged_rows(table.schema(), {KEY: b"\x05", ORDER: b"\x02", "id": 55}), ["id"])
    found = sorted(row["id"] for row in spark.table(table.identifier).select("id").collect())
    assert found == [0, 1, 2, 4, 6, 7, 8, 9, 55]

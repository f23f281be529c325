"""Older fields on Spark: the same values in newer types as in Python, and read under one version."""

from __future__ import annotations

import json
import pickle
import struct
from datetime import datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as sf

from cdcavro.arrow import record_batches
from cdcavro.change.model import Change, Column, Source
from cdcavro.errors import JobError, PayloadError, ResolutionError
from cdcavro.spark import version_columns as versions
from cdcavro.spark.version_columns import MAX_EXPRESSIONS, VersionRows, fill_older_values, read_versions
from cdcavro.table.ddl.steps import TableName
from cdcavro.table.evolution.evolve import create_table, evolve
from cdcavro.table.older_fields import kind_of
from cdcavro.table.table_names import NameAllocator
from cdcavro.table.table_schema import column_field
from cdcavro.table.writing.table_writer import TableWriter
from support.older_values import CASES
from support.wire import field, record

pytestmark = pytest.mark.every_spark

NAMES = {"long": "bigint", "bytes": "binary", "local-timestamp-micros": "timestamp_ntz"}
SOURCE = Source(format="canal")


def spark_name(avro) -> str:
    """Return Spark's name of an Avro type."""
    kind = kind_of(avro)
    return f"decimal({avro['precision']},{avro['scale']})" if kind == "decimal" else NAMES.get(kind, kind)


def fields(old, new) -> list[dict]:
    """Return the fields of a column that changed its type: the present one, then the older one."""
    names = NameAllocator(())
    older = column_field("c", names, old, since=1, attributes={"until": 1})
    return [column_field("c", names, new, since=2, attributes={}), older]


# Before, a cast in ANSI mode fails the job where a value does not fit.
@pytest.mark.parametrize("ansi", [pytest.param("true", marks=pytest.mark.since("4.0")), "false"])
def test_spark_fills_the_values_that_python_fills(spark, ansi):
    """Every case, and null for null, whether or not Spark is in ANSI mode."""
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    columns = []
    for old, new, value, _ in CASES:
        newer, older = (field["name"] for field in fields(old, new))
        for given in (value, None):
            # Of a datetime Spark would make an instant.
            plain = given.isoformat() if isinstance(given, datetime) else given
            literal = sf.lit(plain).cast(spark_name(old)).alias(older)
            row = sf.struct(literal, sf.lit(None).cast(spark_name(new)).alias(newer))
            columns.append(fill_older_values(row, fields(old, new), [newer])[newer])
    try:
        (made,) = spark.range(1).select(sf.array(*[column.cast("string") for column in columns]).alias("a")).collect()
        (typed,) = spark.range(1).select(*[column.alias(f"c{i}") for i, column in enumerate(columns)]).collect()
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")
    assert len(made.a) == 2 * len(CASES)
    assert list(typed[::2]) == [expected for *_, expected in CASES]
    plain = [bytes(value) if isinstance(value, bytearray) else value for value in typed[::2]]
    assert list(map(str, plain)) == [str(expected) for *_, expected in CASES]
    assert set(typed[1::2]) == {None}


def test_versions_read_under_one_have_their_older_values_in_the_present_column(spark):
    """In the envelope, the row and the key; where a value is not exact, the column is null, and the older one is not."""
    versions = [create_table(TableName("s", None, "t"), [Column(name="k", type="int")], key=["k"])]
    for statement in (
        "ALTER TABLE t ADD c DECIMAL(5,2) NOT NULL DEFAULT 0.50",
        "ALTER TABLE t MODIFY c DECIMAL(12,4) NOT NULL DEFAULT 0.50, MODIFY k VARCHAR(9)",
        "ALTER TABLE t MODIFY c DECIMAL(3,1) NOT NULL DEFAULT 0.5",
    ):
        versions.append(evolve(versions[-1], statement).schema)
    images = [{"k": 1}, {"k": 2, "c": "7.10"}, {"k": "3", "c": "7.1234"}, {"k": "x", "c": "9.9"}, {"k": "y", "c": None}]
    rows = []
    for version, image in zip([*versions, versions[-1]], images, strict=True):
        change = Change(op="UPDATE", source=SOURCE, before=image, after=image, key=("k",))
        writer = TableWriter(version, SOURCE, None)
        rows.append((version.version, writer.envelope(change), writer.row(image), writer.key(change)))
    rows.append((None, None, None, None))
    frame = spark.createDataFrame(rows, "version int, envelope binary, row binary, key binary")
    read = frame.select(
        *[read_versions("version", part, versions, part=part).alias(part) for part in ("envelope", "row", "key")]
    )
    *found, null = read.collect()
    expected = ["0.5", "7.1", None, "9.9", None]
    for image in ("before", "after"):
        assert [_text(one.envelope[image]["c"]) for one in found] == expected
    assert [_text(one.row["c"]) for one in found] == expected
    assert [_text(one.row["c (until version 3)"]) for one in found] == [None, None, "7.1234", None, None]
    assert [_text(one.row["c (until version 2)"]) for one in found] == ["0.50", "7.10", None, None, None]
    assert [one.row["k"] for one in found] == [one.key["k"] for one in found] == ["1", "2", "3", "x", "y"]
    assert found[0].key.asDict() == {"k": "1", "unparsed": {}}
    assert null == (None, None, None)


def _text(value: Decimal | None) -> str | None:
    return None if value is None else str(value)


WRITERS = {
    1: json.dumps(record(field("a"))),
    3: json.dumps(record(field("a", "double"), field("b", "string", default="x"))),
    7: json.dumps(record(field("a", "string"))),
}


@pytest.fixture
def rows():
    """Return what brings three versions into the second's schema, which cannot read the third."""
    return VersionRows(WRITERS, WRITERS[3], "shop.t")


def brought(rows, pairs):
    """Return what becomes of pairs of a version and a payload."""
    numbers, payloads = zip(*pairs, strict=True)
    return rows.translate(pa.array(numbers, pa.int64()), pa.array(payloads, pa.binary())).to_pylist()


def test_payloads_of_all_versions_become_those_of_one(rows):
    """Null for null; the first of a version goes the exact way, and the others by the engine."""
    seven = struct.pack("<d", 7) + b"\x02x"
    pairs = [
        (1, b"\x0e"),
        (None, b"\x0e"),
        (3, seven),
        (1, None),
        (1, b"\x0e"),
        (3, None),
        (None, None),
        (1, b"\x0e"),
    ]
    expected = [seven, None, seven, None, seven, None, None, seven]
    assert brought(rows, pairs) == brought(rows, pairs) == expected
    assert brought(pickle.loads(pickle.dumps(rows)), pairs[1:]) == expected[1:]
    part = rows.translate(pa.array([9, *[1] * 20], pa.int32())[1:], pa.array([b"", *[b"\x0e"] * 20], pa.binary())[1:])
    assert part.to_pylist() == [seven] * 20
    assert brought(rows, [(None, None)]) == [None]
    assert rows.translate(pa.array([], pa.int32()), pa.array([], pa.binary())).to_pylist() == []


def test_what_cannot_be_read_fails(rows, monkeypatch):
    """An unknown version, even of nothing; what is no payload; a version that the reader does not read."""
    for pair in ((2, b"\x0e"), (2, None)):
        with pytest.raises(JobError, match=r"no version of shop\.t: 2"):
            brought(rows, [(1, b"\x0e"), pair])
    with pytest.raises(PayloadError, match="expected the end of the payload at byte 1, got 1 more"):
        brought(rows, [(1, b"\x0e"), (1, b"\x0e\x0e")])
    with pytest.raises(ResolutionError, match="double cannot read string"):
        brought(rows, [(7, b"\x02x")])
    monkeypatch.setattr(record_batches, "MAX_BYTES", 25)
    assert len(brought(rows, [(1, b"\x0e")] * 2)) == 2
    with pytest.raises(JobError, match="maxRecordsPerBatch"):
        brought(rows, [(1, b"\x0e")] * 3)


def grown(count):
    """Return so many versions of a table that gets a column in each; one of its columns changes its type."""
    made = [create_table(TableName("s", None, "t"), [Column(name="k", type="int")], key=["k"])]
    for number in range(1, count):
        change = f"ADD `c {number}` INT" if number != 4 else "MODIFY `c 2` VARCHAR(9)"
        made.append(evolve(made[-1], f"ALTER TABLE t {change}").schema)
    return made


def written(table):
    """Return a row of each version, with its payloads."""
    found = []
    for schema in table:
        image = {column.name: str(schema.version) for column in schema.columns}
        change = Change(op="UPDATE", source=SOURCE, before=image, after=image, key=("k",))
        writer = TableWriter(schema, SOURCE, None)
        found.append((schema.version, writer.envelope(change), writer.row(image), writer.key(change)))
    return [*found, (None, None, None, None)]


@pytest.mark.timeout(300)
def test_many_versions_are_read_as_few_are(spark, monkeypatch):
    """The same rows and the same types by one expression as by a choice among as many as there are versions."""
    table = grown(6)
    frame = spark.createDataFrame(written(table), "version int, envelope binary, row binary, key binary")
    found = []
    for most in (5, 6):
        monkeypatch.setattr(versions, "MAX_EXPRESSIONS", most)
        parts = [read_versions("version", part, table, part=part).alias(part) for part in ("envelope", "row", "key")]
        read = frame.select("version", *parts)
        found.append((read.schema, read.orderBy("version").collect()))
    assert found[0] == found[1]
    assert [row.row and row.row["c 2"] for row in found[0][1]] == [None, None, None, "3", "4", "5", "6"]


@pytest.mark.timeout(300)
def test_the_number_of_versions_has_no_bound(spark):
    """A hundred are read by one expression, whichever is the reader's."""
    table = grown(100)
    frame = spark.createDataFrame([row[:3] for row in written(table)], "version int, envelope binary, row binary")
    read = frame.select("version", read_versions("version", "row", table, part="row").alias("row"))
    assert all(
        row.row["k"] == row.version and row.row["c 70"] == (row.version if row.version > 70 else None)
        for row in read.where("row is not null").collect()
    )
    assert read.where("row is null").count() == 1
    older = frame.where("version <= 50").select(read_versions("version", "row", table, 50, part="row")["k"].alias("k"))
    assert sorted(row.k for row in older.collect()) == list(range(1, 51))


@pytest.mark.timeout(300)
def test_of_many_versions_an_unknown_one_fails_the_job(spark):
    """With its number; and so does what is no payload of its version."""
    table = grown(MAX_EXPRESSIONS + 1)
    read = read_versions("version", "payload", table).alias("e")
    for row, reason in (((99, b""), r"no version of s\.t: 99"), ((1, b"\x0e\x0e\x0e\x0e\x0e"), "PayloadError")):
        frame = spark.createDataFrame([row], "version int, payload binary")
        with pytest.raises(PySparkException, match=reason):
            frame.select(read).select(sf.col("e.op")).collect()

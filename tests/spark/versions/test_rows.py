"""Payloads of many versions of a table, brought into the reader's schema before one expression reads them."""

from __future__ import annotations

import json
import pickle
import struct

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as sf

from cdcavro.arrow import record_batches
from cdcavro.change.model import Change, Column, Source
from cdcavro.errors import JobError, PayloadError, ResolutionError
from cdcavro.spark.versions import reading as versions
from cdcavro.spark.versions.reading import MAX_EXPRESSIONS, read_versions
from cdcavro.spark.versions.rows import VersionRows
from cdcavro.table.ddl.steps import TableName
from cdcavro.table.evolution.evolve import create_table, evolve
from cdcavro.table.writing.writer import TableWriter
from support.wire import field, record

pytestmark = pytest.mark.every_spark

SOURCE = Source(format="canal")
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
    return rows.brought(pa.array(numbers, pa.int64()), pa.array(payloads, pa.binary())).to_pylist()


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
    part = rows.brought(pa.array([9, *[1] * 20], pa.int32())[1:], pa.array([b"", *[b"\x0e"] * 20], pa.binary())[1:])
    assert part.to_pylist() == [seven] * 20
    assert brought(rows, [(None, None)]) == [None]
    assert rows.brought(pa.array([], pa.int32()), pa.array([], pa.binary())).to_pylist() == []


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

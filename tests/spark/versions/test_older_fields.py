"""Older fields on Spark: the same values in newer types as in Python, and read under one version."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

import pytest
from pyspark.sql import functions as sf

from cdcavro.change.model import Change, Column, Source
from cdcavro.spark.versions.older_fields import filled
from cdcavro.spark.versions.reading import read_versions
from cdcavro.table.ddl.steps import TableName
from cdcavro.table.evolution.evolve import create_table, evolve
from cdcavro.table.names import NameAllocator
from cdcavro.table.older_fields import kind_of
from cdcavro.table.schema import column_field
from cdcavro.table.writing.writer import TableWriter
from support.older_values import CASES

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
            columns.append(filled(row, fields(old, new), [newer])[newer])
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

"""Files and lake tables of typed tables as Spark and Avro Java 1.8.2 read them, by kind of column, as the page says."""

from __future__ import annotations

import datetime as dt
import json
import subprocess
from functools import partial

import pytest
from pyspark.errors import PySparkException

import cdcavro
from cdcavro.change import Arrival, replace
from cdcavro.lake import TypedRows
from cdcavro.lake.escaped_names import OWN
from cdcavro.spark.lake import Changelog
from cdcavro.spark.lake.sinks import Delta, Iceberg
from cdcavro.table import TableName
from cdcavro.table.table_names import mangle
from support.readers import KINDS, PLAIN, YES, cell, messages_together, plain_name, said, written, written_together


def last(frame, kind="avro"):
    """Return the last row after a change of a frame, and its type."""
    after = frame if kind == PLAIN else frame.select("after.*")
    (row,) = after.where("id = 1").collect()
    return row, after.schema


def read(row, schema, column):
    """Return a value of a row as Python has it; Spark gives an instant as the local time of this process."""
    value = row[column]
    return value.astimezone(dt.UTC) if schema[column].dataType.typeName() == "timestamp" else value


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", ["avro", "plain", "parquet"])
def test_spark_makes_of_files_what_the_page_says(spark, tmp_path, kind):
    """Of all columns of one table, or of each by itself if it refuses the whole."""
    path, columns = written_together(tmp_path / "whole", kind)
    shown, format = {"avro": mangle, "plain": plain_name}.get(kind, str), path.suffix[1:]
    try:
        row, schema = last(spark.read.format(format).load(str(path)), kind)
    except PySparkException:
        row, schema = None, None

    def value(name, number):
        if row is not None:
            return read(row, schema, shown(columns[name]))
        own = written(tmp_path / str(number), name, kind)
        return read(*last(spark.read.format(format).load(str(own)), kind), shown(KINDS[name].column))

    found = {name: cell(partial(value, name, number), name) for number, name in enumerate(KINDS)}
    assert found == said()[kind]["Spark"]


def test_spark_reads_a_time_in_parquet_if_it_is_told_to(spark, tmp_path):
    """By a setting that the page names, since its own type of times is not finished."""
    path = written(tmp_path, "time", "parquet")
    spark.conf.set("spark.sql.timeType.enabled", "true")
    try:
        assert cell(lambda: read(*last(spark.read.parquet(str(path))), "c"), "time") == YES
    finally:
        spark.conf.unset("spark.sql.timeType.enabled")


@pytest.mark.timeout(300)
@pytest.mark.parametrize("lake", ["Delta Lake", "Iceberg"])
def test_a_lake_table_holds_of_columns_what_the_page_says(spark, tmp_path, lake):
    """The changelog of a table, as a pipeline appends to it, read again by Spark."""
    sink = Delta(str(tmp_path / "lake")) if lake == "Delta Lake" else Iceberg("ice")
    lines, columns = messages_together()
    placed = [
        [
            replace(change, place=Arrival(topic="t", partition=0, offset=i))
            for change in cdcavro.to_changes(line, "canal", zone=dt.UTC)
        ]
        for i, line in enumerate(lines)
    ]
    maker = TypedRows(cdcavro.Tables(zone=dt.UTC))
    rows = [(row.version, row.operation, row.order, row.key, row.payload) for row in maker.of_batch(placed).rows]
    frame = spark.createDataFrame(rows, "version int, operation string, order binary, key binary, payload binary")
    log = Changelog(sink, TableName("s", None, "t"))
    versions = maker.tables.tables[0].versions
    log.prepare(spark, versions)
    log.append(frame, versions, job="readers", batch=0)
    table = spark.table(log.identifier)
    (row,) = table.where("id = 1").collect()
    behind = {"unparsed": f"{OWN}unparsed", "absent": f"{OWN}absent"}
    shown = {name: behind.get(column, column) for name, column in columns.items()}
    found = {name: cell(partial(read, row, table.schema, shown[name]), name) for name in KINDS}
    assert found == said()["lake"][lake]


@pytest.mark.parametrize("kind", ["avro", "plain"])
def test_avro_java_makes_of_files_what_the_page_says(avro_tools, tmp_path, kind):
    """Its generic reader, which leaves to its user what a logical type means."""
    path, columns = written_together(tmp_path, kind)
    command = ["java", "-Dfile.encoding=UTF-8", "-jar", avro_tools, "tojson", path]
    done = subprocess.run(command, check=True, capture_output=True)
    row = json.loads(done.stdout.decode().splitlines()[-1])
    if kind == "avro":
        (row,) = row["after"].values()

    def value(column):
        found = row[mangle(column) if kind == "avro" else plain_name(column)]
        if isinstance(found, dict) and len(found) == 1 and (kind == PLAIN or column not in ("unparsed", "absent")):
            ((branch, found),) = found.items()
            return found.encode("iso-8859-1") if branch == "bytes" else found
        return found

    found = {name: cell(partial(value, columns[name]), name) for name in KINDS}
    assert found == said()[kind]["Avro Java 1.8.2"]

"""The data source as Spark reads it, in batches."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import functions as sf

import cdcavro
from cdcavro import spark as cdc
from cdcavro.errors import SetupError
from cdcavro.files.lines import read_lines
from cdcavro.spark.source.line_rows import COLUMNS
from cdcavro.spark.source.source import Options
from support.messages import SAMPLES, goldens, shop_canal

pytestmark = pytest.mark.every_spark


def read(spark: Any, *paths: Any, **options: str) -> Any:
    """Return the frame of some paths."""
    return spark.read.format("cdcavro").options(**options).load([str(path) for path in paths])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A file of a real Canal with two lines that are no messages, and one of Dataworks."""
    folder = tmp_path_factory.mktemp("messages")
    (folder / "canal.jsonl").write_bytes(b"\n".join([*shop_canal(), b"{", b"\xff"]))
    (folder / "dataworks.jsonl").write_bytes(b"\r\n".join(goldens("oms_dataworks")))
    return folder


def test_the_columns_are_those_of_the_documents(spark, folder):
    """In this order, with these types."""
    error = "struct<format:string,path:string,message:string>"
    columns = "payload:binary,format:string,operation:string,table:string,file:string,line:bigint"
    assert read(spark, folder).schema == COLUMNS
    assert COLUMNS.simpleString() == f"struct<{columns},error:{error},raw:binary>"


@pytest.mark.parametrize("most", ["5000", "1000000"])
def test_each_line_is_a_row_with_what_encode_makes_of_it(spark, folder, most):
    """In one task or in many: none is passed over, none comes twice."""
    frame = read(spark, folder, maxPartitionBytes=most)
    found = {(row.file, row.line): row for row in frame.collect()}
    lines = {(str(path), line.number): line.raw for path in folder.iterdir() for line in read_lines(str(path))}
    assert frame.count() == len(found) == len(lines)
    assert found.keys() == lines.keys()
    tasks = frame.select(sf.spark_partition_id()).distinct().count()
    assert (tasks > 10) == (most == "5000")
    for place, raw in lines.items():
        row = found[place]
        if row.payload is None:
            assert (bytes(row.raw), row.error.format, row.operation) == (raw, "canal", None)
        else:
            assert bytes(row.payload) == cdcavro.encode(raw, row.format)
            assert (row.raw, row.error, row.operation is None) == (None, None, False)
    assert Counter(row.payload is None for row in found.values())[True] == 2


def test_samples_of_all_formats_are_read(spark):
    """Their formats told for each message, and all of them have changes."""
    rows = read(spark, SAMPLES, format="mixed").groupBy("format", (sf.col("error").isNull()).alias("good")).count()
    counts = {(row["format"], row["good"]): row["count"] for row in rows.collect()}
    assert {name for name, _ in counts} - {None} == set(cdcavro.FORMATS)
    assert all(good for _, good in counts)


def test_payloads_go_on_to_what_else_there_is(spark, folder):
    """Decoded, they are the messages; their changes are the rows of typed tables."""
    frame = read(spark, folder / "canal.jsonl", format="canal").where("error is null")
    texts = {row[0].encode() for row in frame.select(cdc.decode("payload", "canal")).collect()}
    assert texts == {cdcavro.decode(cdcavro.encode(text, "canal"), "canal") for text in shop_canal()}
    orders = frame.where("operation = 'INSERT' and `table` = 'orders'")
    inserts = [one for text in shop_canal() for one in cdcavro.to_changes(text, "canal")[:1]]
    assert orders.count() == sum(one.op == "INSERT" and one.source.table == "orders" for one in inserts) > 0


def test_sql_reads_it_too(spark, folder):
    """By a temporary view with options."""
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW raw USING cdcavro OPTIONS (path '{folder}/canal.jsonl')")
    assert spark.sql("SELECT count(*) FROM raw WHERE error IS NOT NULL").first()[0] == 2


def test_a_folder_without_files_has_no_rows(spark, tmp_path):
    """And the columns that any has."""
    assert read(spark, tmp_path).collect() == []


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {"fromat": "canal"},
            "unknown option 'fromat' of the data source cdcavro: known are path, format, maxPartitionBytes, maxFilesPerTrigger",
        ),
        ({"format": "cannal"}, "unknown format 'cannal': did you mean canal?"),
        ({"maxPartitionBytes": "32m"}, "the option maxPartitionBytes is a whole number from 1, not '32m'"),
        ({"maxFilesPerTrigger": "0"}, "the option maxFilesPerTrigger is a whole number from 1, not '0'"),
    ],
)
def test_wrong_options_are_told_in_a_sentence(spark, folder, options, sentence):
    """Before anything is read."""
    with pytest.raises(AnalysisException) as caught:
        # Over Spark Connect nothing is asked before it is needed.
        _ = read(spark, folder, **options).schema
    assert sentence in str(caught.value)


def test_a_path_is_needed_and_must_mean_something(spark, tmp_path):
    """Each in a sentence."""
    with pytest.raises(AnalysisException) as caught:
        _ = spark.read.format("cdcavro").load().schema
    assert "the data source cdcavro needs a path: load('…') or option('path', '…')" in str(caught.value)
    with pytest.raises(AnalysisException) as caught:
        read(spark, tmp_path / "nothing").count()
    assert f"{tmp_path}/nothing: expected a file or folder, got none" in str(caught.value)
    with pytest.raises(AnalysisException) as caught:
        spark.read.format("cdcavro").schema("payload binary").load(str(tmp_path)).count()
    assert "the columns of the data source cdcavro cannot be chosen" in str(caught.value)


def test_options_are_taken_in_any_case():
    """As Spark's own are."""
    given = {"PATH": "/a", "Format": "mixed", "maxpartitionbytes": "10", "MAXFILESPERTRIGGER": "3"}
    assert Options.of(given) == Options(("/a",), "mixed", 10, 3)
    assert Options.of({"paths": '["/a", "/b"]'}) == Options(("/a", "/b"))


@pytest.mark.parametrize("paths", ["/a", "{}", "[1]", '"/a"', ""])
def test_a_list_of_paths_is_one(paths):
    """Spark makes it of what `load` is given; whoever writes it must write the same."""
    with pytest.raises(SetupError, match="the option paths is a list of paths in JSON, not"):
        Options.of({"paths": paths})

"""Measures text to payload on Spark against Spark's own from_json + to_avro in the same run.

    python tests/benchmarks/spark.py [MESSAGES]

The baseline is inexact: `from_json` rounds numbers, keeps the last of two equal members and turns a bad
message into null. It is measured with row images as maps, which a stream of many tables needs, and as the
struct of the only table in the messages; with a column of strings, and with one of bytes, as in Kafka. All
sides write to the noop sink, in turns, on two cores, in a session from `cdcavro.spark.session` with unchanged
settings of Arrow and Python. Each figure is the median of the rounds, each ratio the median of the ratios within
a round. "exchange" is an Arrow function that returns its input: the cost of passing data between Spark and
Python; "no messages" is the same on a thousandth of the messages: the cost of starting its two tasks.

A second table is of the way to typed payloads, learning and typing, with half of the messages: by changes, which
are kept in memory between the two passes (`to_changes`, `to_tables`), and without (`messages_to_tables`).

A third is of reading the messages from files: the data source `cdcavro`, whose rows also say the operation and the table
and have numbers of lines, beside Spark's text source with `encode`.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as sf
from pyspark.sql.avro.functions import to_avro
from tables import messages

from cdcavro import spark as cdc
from cdcavro.engine.machine import COMPILED
from cdcavro.spark.arrow_udf import column_function

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROUNDS = 7
ROUNDS_TYPED = 3
COLUMNS = 8
ENVELOPE = (
    "database string, `table` string, type string, es bigint, ts bigint, isDdl boolean, sql string, id bigint,"
    " gtid string, pkNames array<string>, sqlType map<string,int>, mysqlType map<string,string>,"
)


def timed(frame: DataFrame) -> float:
    """Return the seconds that it takes to compute a frame, written to the noop sink."""
    start = time.perf_counter()
    frame.write.format("noop").mode("overwrite").save()
    return time.perf_counter() - start


def measured(frames: dict[str, DataFrame]) -> dict[str, list[float]]:
    """Return the seconds that each frame takes in each round, after a warm-up round."""
    rounds: dict[str, list[float]] = {name: [] for name in frames}
    for _ in range(ROUNDS + 1):
        for name, frame in frames.items():
            rounds[name].append(timed(frame))
    return {name: seconds[1:] for name, seconds in rounds.items()}


def native(texts: DataFrame, row: str) -> DataFrame:
    """Return the frame that Spark's own functions compute, with row images of a type."""
    shape = f"{ENVELOPE} data array<{row}>, old array<{row}>"
    return texts.select(to_avro(sf.from_json(sf.col("value").cast("string"), shape)).alias("payload"))


def same(values: pa.Array) -> pa.Array:
    """Return the values unchanged."""
    return values


def all_frames(texts: DataFrame) -> dict[str, DataFrame]:
    """Return the frames to measure by name, ours first."""
    raw = texts.select(sf.col("value").cast("binary").alias("value")).persist()
    raw.count()
    names = ", ".join(f"{name}: string" for name in messages_columns())
    exchange = column_function(same, "string", "same")("value")
    return {
        "cdcavro": texts.select(cdc.encode("value", "canal")),
        "from_json, maps": native(texts, "map<string,string>"),
        "from_json, one table": native(texts, f"struct<{names}>"),
        "exchange": texts.select(exchange),
        "no messages": texts.sample(0.001, seed=1).select(exchange),
        "cdcavro, bytes": raw.select(cdc.encode("value", "canal")),
        "from_json, maps, bytes": native(raw, "map<string,string>"),
    }


def by_changes(texts: DataFrame) -> float:
    """Return the seconds from text to typed payloads by changes."""
    start = time.perf_counter()
    place = sf.struct(sf.lit("f").alias("file"), "line")
    changes = texts.select(
        sf.explode(cdc.to_changes("value", "canal", place=place)["changes"]).alias("change")
    ).persist()
    timed(cdc.to_tables(changes).frame)
    changes.unpersist(blocking=True)
    return time.perf_counter() - start


def straight(texts: DataFrame) -> float:
    """Return the seconds from text straight to typed payloads."""
    start = time.perf_counter()
    place = sf.struct(sf.lit("f").alias("file"), "line")
    timed(cdc.messages_to_tables(texts, "value", "canal", place=place).frame)
    return time.perf_counter() - start


def print_typed(texts: DataFrame, count: int) -> None:
    """Print the table of typed payloads."""
    numbered = texts.limit(count // 2).repartition(2).withColumn("line", sf.monotonically_increasing_id()).persist()
    print(f"text to typed payloads, {numbered.count():,} messages")
    rounds = [(by_changes(numbered), straight(numbered)) for _ in range(ROUNDS_TYPED + 1)][1:]
    ratio = statistics.median(old / new for old, new in rounds)
    for name, seconds in zip(("by changes", "straight"), zip(*rounds, strict=True), strict=True):
        print(f"{name:24}{statistics.median(seconds):>8.2f} s")
    print(f"{'ratio':24}{ratio:>8.1f}")


def print_source(spark: SparkSession, texts: DataFrame, count: int) -> None:
    """Print the table of reading files."""
    with TemporaryDirectory() as folder:
        texts.coalesce(1).write.mode("overwrite").text(folder)
        files = str(next(Path(folder).glob("part-*.txt")))
        cdc.register(spark)
        own = spark.read.format("cdcavro")
        lines = spark.read.text(files, lineSep="\n")
        frames = {
            "text and encode": lines.select(cdc.encode("value", "canal")),
            "text and try_encode": lines.select(cdc.encode("value", "canal", rejects=True)),
            "cdcavro, told": own.option("format", "canal").load(files),
            "cdcavro, auto": own.option("format", "auto").load(files),
            "cdcavro, mixed": own.option("format", "mixed").load(files),
        }
        rounds = measured(frames)
    print(f"files to rows, {count:,} lines")
    for name, seconds in rounds.items():
        ratio = statistics.median(ours / text for ours, text in zip(seconds, rounds["text and encode"], strict=True))
        print(f"{name:24}{statistics.median(seconds) / count * 1e6:>8.2f} µs{ratio:>8.2f}")


def main() -> None:
    """Print the tables."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
    spark = cdc.session("benchmark", master="local[2]", config={"spark.ui.enabled": "false"})
    spark.sparkContext.setLogLevel("ERROR")
    texts = [(text.decode(),) for text in messages(1000, COLUMNS)]
    few = spark.createDataFrame(texts, "value string")
    repeated = few.crossJoin(spark.range(count // 1000)).select("value").repartition(2).persist()
    repeated.count()
    rounds = measured(all_frames(repeated))
    build = "compiled" if COMPILED else "pure Python"
    print(f"{count:,} messages of {len(texts[0][0])} characters; cdcavro is {build}")
    for name, seconds in rounds.items():
        ratio = statistics.median(theirs / ours for theirs, ours in zip(seconds, rounds["cdcavro"], strict=True))
        print(f"{name:24}{statistics.median(seconds):>8.2f} s{ratio:>8.2f}")
    print_typed(repeated, count)
    print_source(spark, repeated, count)
    spark.stop()


def messages_columns() -> list[str]:
    """Return the names of the columns of the messages."""
    return list(json.loads(messages(1, COLUMNS)[0])["data"][0])


if __name__ == "__main__":
    main()

"""How long text to payload takes on Spark, as a ratio to Spark's own from_json + to_avro in the same run.

    python tests/benchmarks/spark.py [MESSAGES]

The baseline is inexact: `from_json` rounds numbers, keeps the last of two equal members and makes a
null of a bad message. It is measured twice, with row images as maps, what a stream of many tables
needs, and as the struct of the one table that the messages are of. Both sides write to nowhere, in
turns, on two cores; each figure is the median of the rounds. "exchange" is a function over Arrow that gives
back what it takes: what Spark and Python cost each other before anything is converted.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as sf
from pyspark.sql.avro.functions import to_avro
from tables import messages

from cdcavro import spark as cdc
from cdcavro.spark.arrow import column_function

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ROUNDS = 5
COLUMNS = 8
ENVELOPE = (
    "database string, `table` string, type string, es bigint, ts bigint, isDdl boolean, sql string, id bigint,"
    " gtid string, pkNames array<string>, sqlType map<string,int>, mysqlType map<string,string>,"
)


def timed(frame: DataFrame) -> float:
    """Give the seconds that a frame takes to be written nowhere."""
    start = time.perf_counter()
    frame.write.format("noop").mode("overwrite").save()
    return time.perf_counter() - start


def main() -> None:
    """Print the table."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
    spark = cdc.session("benchmark", master="local[2]", config={"spark.ui.enabled": "false"})
    spark.sparkContext.setLogLevel("ERROR")
    texts = [(text.decode(),) for text in messages(1000, COLUMNS)]
    few = spark.createDataFrame(texts, "value string")
    repeated = few.crossJoin(spark.range(count // 1000)).select("value").repartition(2).persist()
    repeated.count()
    names = ", ".join(f"{name}: string" for name in messages_columns())

    def native(row: str) -> DataFrame:
        shape = f"{ENVELOPE} data array<{row}>, old array<{row}>"
        return repeated.select(to_avro(sf.from_json("value", shape)).alias("payload"))

    def same(values: pa.Array) -> pa.Array:
        return values

    frames: dict[str, Any] = {
        "cdcavro": repeated.select(cdc.encode("value", "canal")),
        "from_json, maps": native("map<string,string>"),
        "from_json, one table": native(f"struct<{names}>"),
        "exchange": repeated.select(column_function(same, "string", "same")("value")),
    }
    rounds: dict[str, list[float]] = {name: [] for name in frames}
    for _ in range(ROUNDS + 1):
        for name, frame in frames.items():
            rounds[name].append(timed(frame))
    ours = statistics.median(rounds["cdcavro"][1:])
    print(f"{count:,} messages of {len(texts[0][0])} characters")
    for name, seconds in rounds.items():
        median = statistics.median(seconds[1:])
        print(f"{name:22}{median:>8.2f} s{median / ours:>8.2f}")
    spark.stop()


def messages_columns() -> list[str]:
    """Give the names of the columns of the messages."""
    return list(json.loads(messages(1, COLUMNS)[0])["data"][0])


if __name__ == "__main__":
    main()

"""Measures what `from_registry` costs with 1, 10 and 100 schemas in a batch, in processor time, on Linux.

    python tests/benchmarks/registry.py [ROWS]

It is compared with `from_avro` with a single schema, unchecked, over the same rows in the same run: what Spark does
if all payloads are known to have one schema, and to be complete and not hostile. Beside it stand the parts that it has
in any case: an Arrow function that returns nothing, which is what it takes to pass the rows to Python; and the pass in
which the schemas are collected. "engine" is the function alone that checks and translates the rows of a batch, in this
process. `read_versions` reads the same payloads by the numbers of their versions. All times are of the JVM and all
that it started, per million rows; each is the median of the rounds, each ratio the median of the ratios in a round.
"""

from __future__ import annotations

import io
import json
import os
import statistics
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import fastavro
import pyarrow as pa
from pyspark.sql import functions as sf
from pyspark.sql.avro.functions import from_avro

from cdcavro import registry
from cdcavro import spark as cdc
from cdcavro.avro.schema import parse_schema
from cdcavro.registry.client import PrefixSchema
from cdcavro.registry.framing import frame
from cdcavro.spark.arrow_udf import column_function
from cdcavro.spark.registry import FramedRows, _known
from cdcavro.table.table_schema import TableSchema
from spark import timed

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

ROUNDS = 5
FIELDS = 8


def schema(number: int) -> str:
    """Return the text of a schema whose first field had a different name in every earlier version."""
    older = [f"n{i}" for i in range(number)]
    first = {"name": f"n{number}", "type": "long", "default": 0, "aliases": older}
    others = [{"name": f"f{i}", "type": ["null", "string"], "default": None} for i in range(FIELDS)]
    return json.dumps({"type": "record", "name": "Row", "fields": [first, *others]})


def payload(text: str, number: int) -> bytes:
    """Return a row as fastavro writes it."""
    out = io.BytesIO()
    parsed = json.loads(text)
    row = {f"f{i}": f"value {i} of {number}" for i in range(FIELDS)} | {parsed["fields"][0]["name"]: number}
    fastavro.schemaless_writer(out, fastavro.parse_schema(parsed), row)
    return out.getvalue()


def processor_time(spark: SparkSession) -> float:
    """Return the seconds that the JVM, and all that it started, have run so far."""
    children: dict[str, list[str]] = {}
    ticks: dict[str, int] = {}
    for place in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            stat = place.read_text().rpartition(")")[2].split()
            children.setdefault(stat[1], []).append(place.parent.name)
            ticks[place.parent.name] = sum(map(int, stat[11:15]))
    pending, total = [str(spark.sparkContext._gateway.proc.pid)], 0
    while pending:
        process = pending.pop()
        total += ticks.get(process, 0)
        pending += children.get(process, [])
    return total / os.sysconf("SC_CLK_TCK")


def nothing(values: pa.Array) -> pa.Array:
    """Return a null for each value."""
    return pa.nulls(len(values), pa.int32())


def engine_time(rows: DataFrame, known: dict[bytes, PrefixSchema], reader: str) -> float:
    """Return the seconds for a million rows in Arrow batches, the best of some rounds."""
    batch = pa.array([bytes(row.raw) for row in rows.limit(10_000).collect()], pa.binary())
    framed, times = FramedRows(known, reader, reinterpret=False), []
    for _ in range(ROUNDS + 1):
        start = time.process_time()
        framed.translate(batch)
        times.append(time.process_time() - start)
    return min(times) / len(batch) * 1e6


def main() -> None:
    """Print the table."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    spark = cdc.session("benchmark", master="local[2]", config={"spark.ui.enabled": "false"})
    spark.sparkContext.setLogLevel("ERROR")
    titles = ("schemas", "unchecked", "checked", "ratio", "exchange", "schema pass", "engine", "read_versions", "ratio")
    print(f"{count:,} rows; seconds per million rows\n" + "".join(f"{title:>14}" for title in titles))
    for schemas in (1, 10, 100):
        measure(spark, count, schemas)
    spark.stop()


def measure(spark: SparkSession, count: int, schemas: int) -> None:
    """Print the line for so many schemas."""
    place = registry.connect("file:" + tempfile.mkdtemp())
    texts = [schema(number) for number in range(schemas)]
    ids = [place.publish(text, "rows").id or 0 for text in texts]
    few = [(i % schemas + 1, bytearray(frame(payload(texts[i % schemas], i), ids[i % schemas]))) for i in range(1000)]
    rows = spark.createDataFrame(few, "version int, raw binary").crossJoin(spark.range(count // 1000))
    rows = rows.select("version", "raw").repartition(2).persist()
    rows.count()
    bare = sf.expr("substring(raw, 6)")
    known = _known(rows, "raw", place)
    versions = [TableSchema(parse_schema(versioned(text, number))) for number, text in enumerate(texts, 1)]
    work: dict[str, Callable[[], object]] = {
        "unchecked": lambda: timed(rows.select(from_avro(bare, texts[0]))),
        "checked": lambda: timed(cdc.from_registry(rows, "raw", place).select("value", "schema", "error")),
        "exchange": lambda: timed(rows.select(column_function(nothing, "int", "nothing")("raw"))),
        "schema pass": lambda: _known(rows, "raw", place),
        "read_versions": lambda: timed(rows.select(cdc.read_versions("version", bare, versions, part="row"))),
    }
    rounds: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(ROUNDS + 1):
        for name, do in work.items():
            start = processor_time(spark)
            do()
            rounds[name].append((processor_time(spark) - start) / count * 1e6)
    seconds = {name: statistics.median(times[1:]) for name, times in rounds.items()}
    ratios = {
        name: statistics.median(
            one / other for one, other in zip(rounds["unchecked"][1:], rounds[name][1:], strict=True)
        )
        for name in rounds
    }
    engine = engine_time(rows, known, texts[-1])
    figures = [seconds["unchecked"], seconds["checked"], ratios["checked"], seconds["exchange"], seconds["schema pass"]]
    figures += [engine, seconds["read_versions"], ratios["read_versions"]]
    print(f"{schemas:>14}" + "".join(f"{figure:>14.2f}" for figure in figures), flush=True)
    rows.unpersist()


def versioned(text: str, number: int) -> str:
    """Return a schema that says to be a version of a table."""
    return json.dumps(json.loads(text) | {"cdc": {"version": number}})


if __name__ == "__main__":
    main()

"""Measures how many rows per second `from_registry` decodes with 1, 10 and 100 schemas in a batch.

    python tests/benchmarks/registry.py [ROWS]

It is compared with `from_avro` with a single schema, unchecked, over the same rows in the same run: what Spark does
if all payloads are known to have one schema, and to be complete and not hostile.
"""

from __future__ import annotations

import io
import json
import statistics
import sys
import tempfile

import fastavro
from pyspark.sql import functions as sf
from pyspark.sql.avro.functions import from_avro

from cdcavro import registry
from cdcavro import spark as cdc
from cdcavro.registry.framing import frame
from spark import timed

ROUNDS = 3
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


def main() -> None:
    """Print the table."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
    spark = cdc.session("benchmark", master="local[2]", config={"spark.ui.enabled": "false"})
    spark.sparkContext.setLogLevel("ERROR")
    print(f"{count:,} rows\n{'schemas':>8}{'rows/s':>12}{'one schema, unchecked':>24}")
    for schemas in (1, 10, 100):
        place = registry.connect("file:" + tempfile.mkdtemp())
        texts = [schema(number) for number in range(schemas)]
        ids = [place.publish(text, "rows").id or 0 for text in texts]
        few = [(bytearray(frame(payload(texts[i % schemas], i), ids[i % schemas])),) for i in range(1000)]
        rows = spark.createDataFrame(few, "raw binary").crossJoin(spark.range(count // 1000)).select("raw")
        rows = rows.repartition(2).persist()
        rows.count()
        plain = rows.select(sf.expr("substring(raw, 6)").alias("raw")).select(from_avro("raw", texts[0]))
        ours, theirs = [], []
        for _ in range(ROUNDS + 1):
            ours.append(timed(cdc.from_registry(rows, "raw", place).select("value", "schema", "error")))
            theirs.append(timed(plain))
        found = [count / statistics.median(seconds[1:]) for seconds in (ours, theirs)]
        print(f"{schemas:>8}{found[0]:>12,.0f}{found[1]:>24,.0f}")
        rows.unpersist()
    spark.stop()


if __name__ == "__main__":
    main()

"""Measures typed payloads to Arrow, beside fastavro + pyarrow on the same payloads, in processor time.

    python tests/benchmarks/arrow.py [ROWS [FOLDER]]

The payloads are rows, and envelopes around two of them, of the table whose columns `tables.py` beside this has. By
hand it is `fastavro.schemaless_reader` to dicts and `RecordBatch.from_pylist` with the same types; it checks
nothing, where `to_arrow` checks each payload to the last byte. Each figure is the median of rounds in
which the sides take turns. With a folder, schemas and payloads are written there, each payload behind its length in
four bytes, for readers in other languages.
"""

from __future__ import annotations

import io
import json
import statistics
import struct
import sys
import time
from datetime import UTC
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fastavro
import pyarrow as pa
from tables import messages

import cdcavro
from cdcavro.arrow import arrow_schema, to_arrow
from cdcavro.engine.machine import COMPILED
from cdcavro.table.older_fields import part_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from cdcavro.table.table_schema import TableSchema

ROUNDS = 7
# By hand it takes so much longer that fewer rows tell it.
FEWER = 10


def payloads(columns: int, count: int) -> tuple[TableSchema, dict[str, list[bytes]]]:
    """Return the schema of a table with a number of columns, and payloads of its rows and of its envelopes."""
    tables, texts = cdcavro.Tables(zone=UTC), messages(18, columns)
    typed = [tables.add(change)[0] for text in texts for change in cdcavro.to_changes(text, "canal", zone=UTC)]
    schema = typed[0].schema
    reader = fastavro.parse_schema(json.loads(schema.envelope.json))
    writer = fastavro.parse_schema(json.loads(schema.row.json))
    envelopes = [one.payload for one in typed]
    rows = []
    for raw in envelopes:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, writer, fastavro.schemaless_reader(io.BytesIO(raw), reader, None)["after"])
        rows.append(out.getvalue())
    times = count // len(rows) + 1
    return schema, {"row": (rows * times)[:count], "envelope": (envelopes * times)[:count]}


def by_hand(raw: list[bytes], schema: TableSchema, part: str) -> Callable[[], Any]:
    """Return what reads payloads with fastavro and makes a batch of them with pyarrow."""
    parsed, types = fastavro.parse_schema(json.loads(part_of(schema, part).json)), arrow_schema(schema, part=part)

    def made() -> pa.RecordBatch:
        rows = [fastavro.schemaless_reader(io.BytesIO(one), parsed, None) for one in raw]
        return pa.RecordBatch.from_pylist(rows, types)

    return made


def timed(work: Callable[[], Any], count: int) -> float:
    """Return the microseconds per row."""
    start = time.process_time()
    work()
    return (time.process_time() - start) / count * 1e6


def measured(columns: int, count: int, folder: Path | None) -> list[str]:
    """Measure a table, and return its lines."""
    schema, parts = payloads(columns, count)
    lines = []
    for part, raw in parts.items():
        if folder is not None:
            (folder / f"{part}{columns}.avsc").write_text(part_of(schema, part).json)
            (folder / f"{part}{columns}.bin").write_bytes(b"".join(struct.pack("<I", len(one)) + one for one in raw))
        few = raw[: count // FEWER]
        hand = by_hand(few, schema, part)
        if not to_arrow(few, schema, part=part).equals(hand()):
            raise SystemExit("the two ways differ")
        ways = [
            partial(to_arrow, pa.array(raw, pa.binary()), schema, part=part),
            partial(to_arrow, raw, schema, part=part),
        ]
        rounds = [(*(timed(way, count) for way in ways), timed(hand, len(few))) for _ in range(ROUNDS)]
        own, listed, other = (statistics.median(one) for one in zip(*rounds, strict=True))
        size = sum(map(len, raw)) // len(raw)
        lines.append(f"{columns:>7}  {part:9}{size:>6}{own:>10.3f}{listed:>10.3f}{other:>10.1f}{other / own:>8.0f}")
    return lines


def main() -> None:
    """Print the table."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    folder = Path(sys.argv[2]) if len(sys.argv) > 2 else None
    print("compiled" if COMPILED else "not compiled", f"{count:,} rows, µs per row")
    print(f"{'columns':>7}  {'part':9}{'bytes':>6}{'array':>10}{'list':>10}{'by hand':>10}{'ratio':>8}")
    for columns in (8, 16):
        print("\n".join(measured(columns, count, folder)))


if __name__ == "__main__":
    main()

"""Batches of messages as the source hands them over, and what a task makes of them, without Spark."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from cdcavro.sync.conversion.knowledge import Knowledge
from cdcavro.sync.conversion.outcome_rows import SUMMARY
from cdcavro.sync.conversion.runs import HEADERS
from cdcavro.sync.conversion.task import converter

Record = tuple[bytes | None, bytes | None]


def batch_of(
    records: Sequence[Record], *, first: int = 0, partition: int = 0, lengths: Sequence[int] = ()
) -> pa.RecordBatch:
    """Return keys and values of a topic partition as the source hands them over."""
    count = len(records)
    values = [value for _, value in records]
    columns = {
        "raw": pa.array(values, pa.binary()),
        "length": pa.array(lengths or [None if one is None else len(one) for one in values], pa.int64()),
        "key": pa.array([key for key, _ in records], pa.binary()),
        "topic": pa.array(["shop"] * count),
        "partition": pa.array([partition] * count, pa.int32()),
        "offset": pa.array(range(first, first + count), pa.int64()),
        "file": pa.nulls(count, pa.string()),
        "line": pa.nulls(count, pa.int64()),
        "clock": pa.nulls(count, pa.string()),
    }
    return pa.RecordBatch.from_arrays(list(columns.values()), list(columns))


Headers = Sequence[Sequence[tuple[str, bytes | None]]]


def with_headers(batch: pa.RecordBatch, headers: Headers, name: str = HEADERS) -> pa.RecordBatch:
    """Return messages with the headers of each, or with `STATED` those that are read with it."""
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    stated = [[{"key": key, "value": value} for key, value in own] for own in headers]
    return batch.append_column(name, pa.array(stated, kind))


def converted(knowledge: Knowledge, *batches: pa.RecordBatch) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the outcomes of a task, and its summary."""
    rows = [row for made in converter(knowledge)(batches) for row in made.to_pylist()]
    (summary,) = [row for row in rows if row["what"] == SUMMARY]
    return [row for row in rows if row["what"] != SUMMARY], json.loads(summary["note"])

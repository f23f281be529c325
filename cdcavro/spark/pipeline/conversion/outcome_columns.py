"""The columns of outcomes: of typed rows, and of what messages became that are none.

`what` says what a row of them is: ROW, a typed row; REJECT, a message that is none, or contradicts its tables; STATEMENT,
one whose statements the driver has to learn, or a row of a table or with columns that it has to learn first, with
`outlines`; SUMMARY, what a task has done, as JSON in `note`, or why it could not. The `note` of a reject is the time of its lane before it. The number of
a table is a text: Spark compiles a condition on an integer anew for each value; and what tasks make of a table
that begins with the batch, before the driver has numbered it, has a mark there, as in `NewTables`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa

from cdcavro.lake.placing import ROWS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cdcavro.change.clock import LaneTime
    from cdcavro.change.model import Arrival

    Fault = Mapping[str, str | None]

ROW: Final = 0
REJECT: Final = 1
STATEMENT: Final = 2
SUMMARY: Final = 3
FAILURE: Final = "failure"
COLUMNS: Final = (
    "what tinyint, number string, version int, operation string, order binary, key binary, payload binary,"
    " raw binary, record_key binary, topic string, partition int, offset bigint, file string, line bigint,"
    " format string, path string, reason string, outlines array<binary>, note string"
)
OF_ROWS: Final = ("number", "version", "operation", "order", "key", "payload")
SCHEMA: Final = pa.schema(
    [
        ("what", pa.int8()),
        (OF_ROWS[0], pa.string()),
        *[ROWS.field(name) for name in OF_ROWS[1:]],
        ("raw", pa.binary()),
        ("record_key", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("file", pa.string()),
        ("line", pa.int64()),
        ("format", pa.string()),
        ("path", pa.string()),
        ("reason", pa.string()),
        ("outlines", pa.list_(pa.binary())),
        ("note", pa.string()),
    ]
)


class Message(NamedTuple):
    """A message: as it came, the key of its Kafka record, where it arrived, its format, None if none is known.

    `clock` is what the clock knows of its lane before it (`LaneTime`), None if nothing.
    """

    raw: bytes
    key: bytes | None
    place: Arrival | None
    format: str | None
    clock: LaneTime | None = None


def placed_rows(rows: pa.Table, names: Sequence[str]) -> list[pa.RecordBatch]:
    """Return typed rows as outcomes; `names` are what tables are called, by number."""
    nothing = [pa.nulls(len(rows), one.type) for one in list(SCHEMA)[len(OF_ROWS) + 1 :]]
    what = pa.array([ROW], pa.int8()).take(pa.nulls(len(rows), pa.int32()).fill_null(0))
    own = [
        what,
        pa.array(names, pa.string()).take(rows.column(OF_ROWS[0])),
        *[rows.column(name) for name in OF_ROWS[1:]],
        *nothing,
    ]
    return list(pa.Table.from_arrays(own, schema=SCHEMA).to_batches())


def told(what: int, own: Message, error: Fault, outlines: Sequence[bytes] | None) -> dict[str, Any]:
    """Return the row of a message that is a reject, or of one that the driver has to learn from."""
    place = own.place
    names = ("topic", "partition", "offset", "file", "line")
    return {
        "what": what,
        "raw": own.raw,
        "record_key": own.key,
        **({} if place is None else {name: getattr(place, name) for name in names}),
        "format": error.get("format"),
        "path": error.get("path"),
        "reason": error.get("message"),
        "outlines": outlines,
        "note": None if own.clock is None else json.dumps(own.clock),
    }


def asked_only(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row of a message that the driver has to learn from, which is converted once more where it is."""
    return {"what": STATEMENT, "outlines": row["outlines"]}


def failed(error: Exception) -> pa.RecordBatch:
    """Return the summary of a task that could not go on, for which no message is to blame."""
    return pa.RecordBatch.from_pylist([{"what": SUMMARY, "note": json.dumps({FAILURE: str(error)})}], schema=SCHEMA)

"""Outcome rows of tasks: typed rows, what became of all other messages, and the facts of the typed rows.

`what` says what a row is. ROW is a typed row. REJECT is a message that cannot be read or contradicts its tables.
STATEMENT, with `outlines`, is a message with statements that the driver has to learn, or a row whose table or columns
it has to learn first. SUMMARY is what a task has done, as JSON in `note`, or why it could not go on; its `raw` is the
evidence of the task. HALF is a message with a half of an update, whose other half the task has not read. The `note` of a
reject and of a half is the time of its lane before it. The number of a table is a text, as Spark compiles a condition on
an integer anew for each value; before the driver has numbered a table that begins with the batch, the text is a mark, as
in `NewTables`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from cdcavro.lake.placing import ROWS
from cdcavro.lake.typed_rows import DELETE, DROP, TRUNCATE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cdcavro.change.clock import LaneTime
    from cdcavro.change.model import Arrival

    # Why a message is refused: format, path, message.
    Fault = Mapping[str, str | None]

_ENDS: Final = (TRUNCATE, DROP)
# How many bytes of an order are a fact.
_BEGIN: Final = 2
ROW: Final = 0
REJECT: Final = 1
STATEMENT: Final = 2
SUMMARY: Final = 3
HALF: Final = 4
FAILURE: Final = "failure"
COLUMNS: Final = (
    "what tinyint, number string, version int, operation string, order binary, key binary, payload binary, headers string,"
    " raw binary, record_key binary, topic string, partition int, offset bigint, file string, line bigint,"
    " format string, path string, reason string, outlines array<binary>, note string"
)
OF_ROWS: Final = ("number", "version", "operation", "order", "key", "payload", "headers")
SCHEMA: Final = pa.schema(
    [
        ("what", pa.int8()),
        (OF_ROWS[0], pa.string()),
        *[ROWS.field(name) for name in OF_ROWS[1:-1]],
        # Of the Kafka record that a row came in, as JSON.
        (OF_ROWS[-1], pa.string()),
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
    """A message."""

    # As it came.
    raw: bytes
    # The key of its Kafka record.
    key: bytes | None
    # Where it arrived.
    place: Arrival | None
    # None if no format is known.
    format: str | None
    # What the clock knows of its lane before it, None if nothing.
    clock: LaneTime | None = None
    # Which message has its pattern: none if it is empty, the message itself if it is None.
    alike: bytes | None = None


def row_batches(rows: pa.Table, names: Sequence[str]) -> list[pa.RecordBatch]:
    """Return batches of typed rows as outcomes; `names` has the names of tables by number."""
    nothing = [pa.nulls(len(rows), one.type) for one in list(SCHEMA)[len(OF_ROWS) + 1 :]]
    what = pa.array([ROW], pa.int8()).take(pa.nulls(len(rows), pa.int32()).fill_null(0))
    own = [
        what,
        pa.array(names, pa.string()).take(rows.column(OF_ROWS[0])),
        *[rows.column(name) for name in OF_ROWS[1:]],
        *nothing,
    ]
    return list(pa.Table.from_arrays(own, schema=SCHEMA).to_batches())


def message_row(what: int, message: Message, error: Fault, outlines: Sequence[bytes] | None) -> dict[str, Any]:
    """Return the row of a message that is a reject, or of one that the driver has to learn from."""
    place = message.place
    names = ("topic", "partition", "offset", "file", "line")
    return {
        "what": what,
        "raw": message.raw,
        "record_key": message.key,
        **({} if place is None else {name: getattr(place, name) for name in names}),
        "format": error.get("format"),
        "path": error.get("path"),
        "reason": error.get("message"),
        "outlines": outlines,
        "note": None if message.clock is None else json.dumps(message.clock),
    }


def question_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row that only asks what a message says; its task converts it once more."""
    return {"what": STATEMENT, "outlines": row["outlines"]}


def failure_summary(error: Exception) -> pa.RecordBatch:
    """Return the summary of a task that could not go on, by no fault of a message."""
    return pa.RecordBatch.from_pylist([{"what": SUMMARY, "note": json.dumps({FAILURE: str(error)})}], schema=SCHEMA)


class TaskFacts:
    """What the driver has to know of a task's typed rows, by table."""

    def __init__(self) -> None:
        # The facts by the number of the table, as JSON.
        self.tables: dict[int, dict[str, Any]] = {}

    def add(self, rows: pa.RecordBatch | pa.Table) -> None:
        """Add rows, with the columns of `placing.ROWS`."""
        order = rows.column("order")
        kinds_of_rows = pa.table(
            {
                "number": rows.column("number"),
                "version": rows.column("version"),
                "operation": rows.column("operation"),
                "begin": pc.binary_slice(order, 0, _BEGIN),
                "keyless": rows.column("key").is_null(),
                "lacks": rows.column("lacks"),
            }
        )
        kinds = kinds_of_rows.group_by(kinds_of_rows.column_names).aggregate([([], "count_all")])
        for kind in kinds.to_pylist():
            facts = self.tables.setdefault(
                kind["number"], {"floor": "", "begins": [], "partial": 0, "keyless": 0, "ops": {}}
            )
            count, operation, begin = kind["count_all"], kind["operation"], kind["begin"].hex()
            facts["ops"][operation] = facts["ops"].get(operation, 0) + count
            facts["begins"] = sorted({*facts["begins"], begin})
            if operation not in _ENDS:
                facts["first"] = min(kind["version"], facts.get("first", kind["version"]))
                facts["keyless"] += count if kind["keyless"] else 0
                facts["partial"] += count if kind["lacks"] and operation != DELETE else 0
        ends = rows.filter(pc.is_in(rows.column("operation"), pa.array(_ENDS)))
        for row in ends.select(["number", "order"]).to_pylist():
            facts = self.tables[row["number"]]
            facts["floor"] = max(facts["floor"], row["order"].hex())

"""A task's part of a batch: messages to typed rows with their order, and what becomes of all others.

One frame carries all outcomes. `what` says what a row of it is: ROW, a typed row; REJECT, a message that is none, or
contradicts its tables; STATEMENT, one whose statements the driver has to learn, or a row of a table or with columns that
it has to learn first, with `outlines`; SUMMARY, what the task has done, as JSON in `note`.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from cdcavro.change.clock import Clock
from cdcavro.change.model import DDL, DML, Arrival, replace
from cdcavro.errors import CdcAvroError, MessageError, MisfitError
from cdcavro.files.lines import Line
from cdcavro.lake.learning import identity_of
from cdcavro.lake.row import DELETE, DROP, TRUNCATE
from cdcavro.lake.typed_rows import TypedRows
from cdcavro.spark.arrow_udf import raw_bytes
from cdcavro.spark.functions import error_fields
from cdcavro.spark.job_lines import plain_path
from cdcavro.spark.tables import outline_of, refusal
from cdcavro.table.messages import merged
from cdcavro.transcoding.mapping import to_changes
from cdcavro.wire.formats import get_format

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from cdcavro.change.model import Change
    from cdcavro.lake.row import TypedRow
    from cdcavro.table.tables import Tables

ROW: Final = 0
REJECT: Final = 1
STATEMENT: Final = 2
SUMMARY: Final = 3
COLUMNS: Final = (
    "what tinyint, number int, version int, operation string, order binary, key binary, payload binary,"
    " raw binary, record_key binary, topic string, partition int, offset bigint, file string, line bigint,"
    " format string, path string, reason string, outlines array<binary>, note string"
)
_SCHEMA: Final = pa.schema(
    [
        ("what", pa.int8()),
        ("number", pa.int32()),
        ("version", pa.int32()),
        ("operation", pa.string()),
        ("order", pa.binary()),
        ("key", pa.binary()),
        ("payload", pa.binary()),
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


@dataclass(frozen=True)
class Knowledge:
    """What a task knows when it begins: everything that was learned before, and of the whole batch if `is_all`.

    Attributes: `tables` (`Tables`); `clock` (list), as `Clock.state`; `dropped` and `faults` (dicts by
    `identity_of` a statement), the tables that it dropped, and why it was refused; `left_out` (frozenset of int), the
    numbers of tables that are not wanted; `format_of`, a function of topic or file and message that returns its format.
    """

    tables: Tables
    clock: list[Any]
    format_of: Callable[[str | None, bytes], str]
    unavailable: str | None
    dropped: Mapping[bytes, tuple[int, ...]] = field(default_factory=dict)
    faults: Mapping[bytes, Mapping[str, str | None]] = field(default_factory=dict)
    left_out: frozenset[int] = frozenset()
    is_all: bool = False
    is_strict: bool = False


def converter(knowledge: Knowledge) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function that converts batches of `sources.COLUMNS` into batches of `COLUMNS`."""

    def converted(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = _Task(knowledge)
        for batch in batches:
            yield task.converted(batch)
        yield task.summary()

    return converted


class _Task:
    """Messages of some topic partitions or files, each from its first one in the batch on."""

    def __init__(self, knowledge: Knowledge) -> None:
        self._knowledge = knowledge
        self._maker = TypedRows(knowledge.tables, Clock(knowledge.clock))
        self._clock = {tuple(lane[0]): lane for lane in knowledge.clock}
        self._counts: Counter[str] = Counter()
        self._lanes: dict[tuple[str | None, int | None, str | None], list[int]] = {}
        self._facts: dict[int, dict[str, Any]] = {}
        self._lines: dict[str, int] = {}
        self._out: list[dict[str, Any]] = []

    def converted(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return what becomes of a batch of messages."""
        told = [batch.column(name).to_pylist() for name in ("length", "topic", "partition", "offset", "file")]
        raws, keys = raw_bytes(batch.column("raw")), raw_bytes(batch.column("key"))
        for raw, key, length, topic, partition, offset, uri in zip(raws, keys, *told, strict=True):
            file = None if uri is None else plain_path(uri)
            line = None if file is None else self._lines.get(file, 0) + 1
            if file is not None and line is not None:
                self._lines[file] = line
            place = Arrival(topic=topic, partition=partition, offset=offset, file=file, line=line)
            self._read(place)
            if raw is None:
                self._counts["tombstones"] += 1
            else:
                self._take(Line(0, raw, length), key, place)
        made, self._out = self._out, []
        return pa.RecordBatch.from_pylist(made, schema=_SCHEMA)

    def summary(self) -> pa.RecordBatch:
        """Return what was done, as the one row of a batch."""
        facts = {number: {**one, "begins": sorted(one["begins"])} for number, one in self._facts.items()}
        note = {
            "counts": self._counts,
            "lanes": [[*lane, *ends] for lane, ends in self._lanes.items()],
            "clock": [lane for lane in self._maker.clock.state if self._clock.get(tuple(lane[0])) != lane],
            "tables": facts,
        }
        return pa.RecordBatch.from_pylist([{"what": SUMMARY, "note": json.dumps(note)}], schema=_SCHEMA)

    def _read(self, place: Arrival) -> None:
        self._counts["read"] += 1
        at = place.offset if place.line is None else place.line
        self._lanes.setdefault((place.topic, place.partition, place.file), [at or 0, 0])[1] = at or 0

    def _take(self, line: Line, key: bytes | None, place: Arrival) -> None:
        """Take a message: rows, or else a reject or a statement, whole."""
        knowledge, format = self._knowledge, None
        try:
            message = line.message()
            format = knowledge.format_of(place.topic or place.file, message)
            changes = self._changes(message, key, place, format)
        except MessageError as error:
            fields = error_fields(error)
            self._refuse(line.raw, key, place, {**fields, "format": fields["format"] or format})
            return
        fault = self._fault(changes)
        if fault is not None:
            self._refuse(line.raw, key, place, fault)
            return
        is_learned = knowledge.is_all or not any(change.op in DDL for change in changes)
        try:
            rows = self._maker.of_message(changes, knowledge.dropped) if is_learned else []
        except CdcAvroError as error:
            if knowledge.is_strict and isinstance(error, MisfitError):
                raise
            is_learned, refused = False, refusal(changes[0], error)
            if knowledge.is_all:
                self._refuse(line.raw, key, place, refused)
                return
            self._ask(changes, line.raw, key, place, refused)
            return
        if not is_learned:
            self._ask(changes, line.raw, key, place, None)
        self._write(changes, rows)

    def _changes(self, message: bytes, key: bytes | None, place: Arrival, format: str) -> list[Change]:
        whole = message
        if key is not None and not get_format(format).opens_records:
            whole = kafka_record(message, key, place)
        tables = self._knowledge.tables
        changes = to_changes(whole, format, zone=tables.zone, members=False, unavailable=self._knowledge.unavailable)
        return [tables.named(replace(change, place=merged(change.place, place))) for change in changes]

    def _fault(self, changes: Sequence[Change]) -> Mapping[str, str | None] | None:
        """Return why a statement among the changes was refused, if one was."""
        faults = self._knowledge.faults
        if not faults:
            return None
        found = (faults.get(identity_of(change)) for change in changes if change.op in DDL)
        return next((fault for fault in found if fault is not None), None)

    def _write(self, changes: Sequence[Change], rows: Sequence[TypedRow]) -> None:
        wanted = [row for row in rows if row.table not in self._knowledge.left_out]
        has_rows = any(change.op in DML for change in changes)
        kind = "written" if wanted and has_rows else "left out" if rows and has_rows else "statements"
        self._counts[kind] += 1
        for row in wanted:
            self._note(row)
            self._out.append(
                {
                    "what": ROW,
                    "number": row.table,
                    "version": row.version,
                    "operation": row.operation,
                    "order": row.order,
                    "key": row.key,
                    "payload": row.payload,
                }
            )

    def _note(self, row: TypedRow) -> None:
        """Note what the driver has to know of a row."""
        facts = self._facts.get(row.table)
        if facts is None:
            facts = self._facts[row.table] = {
                "floor": "",
                "begins": set(),
                "partial": 0,
                "keyless": 0,
                "ops": Counter(),
            }
        facts["ops"][row.operation] += 1
        facts["begins"].add(row.order[:2].hex())
        if row.operation in (TRUNCATE, DROP):
            facts["floor"] = max(facts["floor"], row.order.hex())
        else:
            facts["keyless"] += row.key is None
            facts["partial"] += row.operation != DELETE and bool(row.absent)

    def _refuse(self, raw: bytes, key: bytes | None, place: Arrival, error: Mapping[str, str | None]) -> None:
        self._counts["rejected"] += 1
        self._put(REJECT, raw, key, place, error)

    def _ask(
        self,
        changes: Sequence[Change],
        raw: bytes,
        key: bytes | None,
        place: Arrival,
        error: Mapping[str, str | None] | None,
    ) -> None:
        """Ask the driver to learn what a message says."""
        outlines = [made["outline"] for made in map(outline_of, changes) if made is not None]
        if error is not None:
            self._counts["unplaced"] += 1
        if outlines or error is not None:
            self._put(STATEMENT, raw, key, place, error or {}, outlines)

    def _put(
        self,
        what: int,
        raw: bytes,
        key: bytes | None,
        place: Arrival,
        error: Mapping[str, str | None],
        outlines: Sequence[bytes] | None = None,
    ) -> None:
        self._out.append(
            {
                "what": what,
                "raw": raw,
                "record_key": key,
                "topic": place.topic,
                "partition": place.partition,
                "offset": place.offset,
                "file": place.file,
                "line": place.line,
                "format": error.get("format"),
                "path": error.get("path"),
                "reason": error.get("message"),
                "outlines": outlines,
            }
        )


def kafka_record(message: bytes, key: bytes, place: Arrival) -> bytes:
    """Return the JSON of a Kafka record, for a format that reads a record's key."""
    topic = json.dumps(place.topic).encode()
    numbers = b"%d" % (place.partition or 0), b"%d" % (place.offset or 0)
    return b'{"topic":%b,"partition":%b,"offset":%b,"key":%b,"value":%b}' % (topic, *numbers, key or b"null", message)

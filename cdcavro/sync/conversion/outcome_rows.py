"""Outcome rows of tasks: typed rows, what became of all other messages, and the facts of the typed rows.

`what` says what a row is. ROW is a typed row. REJECT is a message that cannot be read or contradicts its tables.
STATEMENT, with `outlines`, is a message with statements that the driver has to learn, or a row whose table or columns
it has to learn first. SUMMARY is what a task has done, as JSON in `note`, or why it could not go on; its `raw` is the
evidence of the task. HALF is a message with a half of an update, whose other half the task has not read. The `note` of
a reject and of a half is the time of its lane before it. The number of a table is a text, as Spark compiles a condition
on an integer anew for each value; before the driver has numbered a table that begins with the batch, the text is a
mark, as in `NewTables`.

The output of a task is what becomes of its messages, kept until it is handed over, and taken back where more was
learned.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from cdcavro.change.operations import PRECISE
from cdcavro.errors import JobError, MessageError, StructureError, plain, shown
from cdcavro.exact.numbers import ExactNumber, plain_text
from cdcavro.lake.placing import ROWS, group_by_table, rows_batch
from cdcavro.lake.typed_rows import DELETE, DROP, TRUNCATE
from cdcavro.sync.protection import HIDDEN
from cdcavro.sync.row_cells import unparsed_texts
from cdcavro.table.columns.format_rules import RULES, USUAL
from cdcavro.table.table_names import table_name_of
from cdcavro.table.table_schema import attributes_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from cdcavro.change.model import Arrival, Change, Source
    from cdcavro.change.order import LaneTime
    from cdcavro.lake.placing import Placing
    from cdcavro.lake.typed_rows import TypedRow
    from cdcavro.sync.conversion.knowledge import ExactMessage, Knowledge, LaneTimes, Questions
    from cdcavro.sync.conversion.runs import MessageHeaders
    from cdcavro.table.history import Table
    from cdcavro.table.table_schema import TableSchema

    # Why a message is refused: format, path, message.
    Fault = Mapping[str, str | None]

# How many bytes of rows a task holds before it hands them over, and of headers that it hands over in one batch.
_HELD: Final = 1 << 24
_NUMBER: Final = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?", re.ASCII)
# A date and time, or a date alone, that states no zone.
_LOCAL_TIME: Final = re.compile(r"[0-9]+-[0-9]+-[0-9]+([ T:][0-9:.]+)?", re.ASCII)
# Operations whose envelopes have rows.
_WITH_ROWS: Final = "crud"
# Each row of a message repeats its headers: held once, they take no more than the message, and fit in one array.
_HELD_HEADERS: Final = pa.dictionary(pa.int32(), pa.string())


@dataclass
class Converted:
    """What became of some messages."""

    # How many messages there were, by what became of them.
    counts: Counter[str] = field(default_factory=Counter)
    # Rows of tables, in batches of `placing.ROWS`, and the headers of their messages behind.
    rows: list[pa.RecordBatch] = field(default_factory=list)
    # Other outcomes.
    others: list[dict[str, Any]] = field(default_factory=list)
    # Messages that became rows the exact way, as evidence, each with what placed it; none where none is kept.
    exact: list[tuple[Placing, ExactMessage]] = field(default_factory=list)
    # What rules decided of their rows, as `Protection.decisions`.
    decisions: list[Mapping[tuple[int, int], Any]] = field(default_factory=list)


class TaskOutput:
    """What becomes of a task's messages, kept until it is handed over.

    The messages are converted some at a time; what became of some can be taken back, and they are converted once more.
    """

    def __init__(self, knowledge: Knowledge, questions: Questions) -> None:
        self._knowledge, self._questions = knowledge, questions
        # What became of the messages that are being converted, and of those before.
        self.current, self._all = Converted(), Converted()
        self._facts = TaskFacts()
        self._seen, self._unwanted = len(knowledge.tables.tables), knowledge.left_out
        # How many bytes were handed over, and how many of rows are kept.
        self.size = self._held = 0
        # A value that is kept as text, with its table and column.
        self.misfit = ""

    @property
    def counts(self) -> Counter[str]:
        """How many messages there were, by what became of them."""
        return self._all.counts

    def take_back(self) -> None:
        """Forget what became of the current messages, which are converted once more, but not what they ask."""
        self._all.others += [question_row(row) for row in self.current.others if row.get("outlines")]
        self.current = Converted()

    def commit(self) -> None:
        """Keep what became of the current messages for good."""
        current, self.current = self.current, Converted()
        self._all.counts.update(current.counts)
        self._all.rows += current.rows
        self._held += sum(rows.nbytes for rows in current.rows)
        self._all.others += current.others

    def keep(
        self, rows: pa.RecordBatch, joined: Mapping[int, int], headers: MessageHeaders | None = None
    ) -> Mapping[int, MessageError]:
        """Keep rows of tables that are wanted, with the headers of their messages, and count these.

        `joined` has how many other messages a message stands for, by its index. Return the errors of messages for which no
        condition on their rows can be decided, or whose headers are too long, by their indexes; then what became of the
        current messages is to be taken back.
        """
        if self._questions.is_ahead:
            return {}
        count, every = _count_messages(rows, joined), rows
        left_out = self._left_out()
        if left_out:
            rows = rows.filter(pc.invert(pc.is_in(rows.column("number"), pa.array(sorted(left_out), pa.int32()))))
        protection, tables = self._knowledge.protection, self._knowledge.tables.tables
        try:
            self.current.decisions.append(protection.decisions(rows, tables))
            rows, undecided = protection.rows(rows, tables)
        except JobError:
            if self._knowledge.is_all:
                raise
            # Another lane may have the statement that says where a column came from.
            self.current.counts["given up"] += 1
            return {}
        wanted = count if rows is every else _count_messages(rows, joined)
        self.current.counts["written"] += wanted
        self.current.counts["left out"] += count - wanted
        if rows.num_rows and headers is not None:
            own, too_long = _too_long(rows, headers, joined)
            self.current.rows.append(rows.append_column(OF_ROWS[-1], _held_headers(headers.texts, own)))
            return {**too_long, **undecided}
        if rows.num_rows:
            self.current.rows.append(rows.append_column(OF_ROWS[-1], pa.nulls(rows.num_rows, _HELD_HEADERS)))
        return undecided

    def note_misfits(self, count: int, rows: Sequence[TypedRow], changes: Sequence[Change]) -> None:
        """Note how many values of a message's changes are kept as text, and the first one in the task."""
        wanted = self._kept(rows)
        if wanted:
            self.current.counts["unparsed"] += count
        for row in [] if self.misfit else wanted:
            table = self._knowledge.tables.tables[row.table]
            schema = next((one for one in table.versions if one.version == row.version), table.schema)
            texts = unparsed_texts(schema, row.payload) if row.operation in _WITH_ROWS else {}
            for name, text in list(texts.items())[:1]:
                own = table.schema.table
                parts = [part for part in (own.database, own.schema, own.table, name) if part]
                is_hidden = self._knowledge.protection.is_protecting or len(wanted) < len(rows)
                advice = self._advice(schema, name, text, changes)
                self.misfit = f"{'.'.join(map(plain, parts))}: {HIDDEN if is_hidden else shown(text)}{advice}"
                return

    def _advice(self, schema: TableSchema, name: str, text: str, changes: Sequence[Change]) -> str:
        """Return what would let a column carry a value, if a setting may."""
        avro = next((column.avro for column in schema.columns if column.name == name), None)
        kind = avro.get("logicalType") if isinstance(avro, dict) else None
        tables = self._knowledge.tables
        if kind == "timestamp-micros" and tables.zone is None and _LOCAL_TIME.fullmatch(text):
            return " (a time without a zone needs that of the source: --zone, or zone in [tables])"
        is_connect = any(RULES.get(change.source.format or "", USUAL).is_connect for change in changes)
        is_text = is_connect and _NUMBER.fullmatch(text) and not any(_has_number(one, name, text) for one in changes)
        if kind == "decimal" and is_text and tables.modes.decimals == PRECISE:
            return ' (a connector that sends decimals as texts needs decimals = "string" in [tables])'
        return ""

    def _kept(self, rows: Sequence[TypedRow]) -> list[TypedRow]:
        """Return the rows of a message that are not left out, by their table or by a condition; none if `keep` refuses."""
        left_out, knowledge = self._left_out(), self._knowledge
        wanted = [row for row in rows if row.table not in left_out]
        if not knowledge.protection.rules or not wanted:
            return wanted
        try:
            kept, undecided = knowledge.protection.rows(rows_batch(list(enumerate(wanted))), knowledge.tables.tables)
        except JobError:
            return []
        return [] if undecided else [wanted[i] for i in kept.column("message").to_pylist()]

    def keep_statement(self, rows: Sequence[TypedRow]) -> None:
        """Keep the rows of a statement, each of which ends all rows of a table so far."""
        for row in rows:
            if row.table not in self._left_out():
                self._facts.add(rows_batch([(0, row)]))
                facts = (str(row.table), row.version, row.operation, row.order, row.key, row.payload, None)
                self.current.others.append({"what": ROW, **dict(zip(OF_ROWS, facts, strict=True))})

    def ready(self) -> Iterator[pa.RecordBatch]:
        """Yield what is handed over now: rows only if there are many."""
        others, self._all.others = self._all.others, []
        if others:
            own = self._knowledge
            others = own.protection.outcomes(others, has_raw=own.has_raw, cipher=own.cipher)
            batch = pa.RecordBatch.from_pylist(others, schema=SCHEMA)
            self.size += batch.nbytes
            yield batch
        if self._held > _HELD:
            yield from self.rows()

    def rows(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows that are wanted."""
        if self._all.rows:
            held, self._all.rows, self._held = pa.Table.from_batches(self._all.rows).combine_chunks(), [], 0
            self._facts.add(held)
            names = self.names
            reducible, tables = self._reducible(), self._knowledge.tables.tables
            dropped = {one for one in reducible if attributes_of(tables[one].schema.record).get("gone")}
            grouped = group_by_table(held, reducible, dropped)
            # While they are handed over, they are there once.
            del held
            for rows in _parts(grouped):
                for batch in row_batches(rows, names):
                    self.size += batch.nbytes
                    yield batch

    def tables(self, times: LaneTimes) -> dict[str, dict[str, Any]]:
        """Return the facts of the rows by the names of their tables, with those that the times of lanes have."""
        names = self.names
        return {names[number]: facts | times.of_table(number) for number, facts in self._facts.tables.items()}

    @property
    def names(self) -> list[str]:
        """The names of tables by number."""
        marks = self._questions.marks
        return [marks.get(table.number, str(table.number)) for table in self._knowledge.tables.tables]

    def has_state(self, table: Table) -> bool:
        """Return whether a table is wanted, and all its versions have keys: it has no current state without."""
        return table.number not in self._left_out() and _is_keyed(table)

    def is_left_out(self, source: Source) -> bool:
        """Return whether no table is wanted of which a row from a source may be."""
        name = table_name_of(source)
        if name is None:
            return False
        tables = self._knowledge.tables.all_bearers(name)
        if not tables:
            return not self._knowledge.chosen.has(name)
        return {table.number for table in tables} <= self._left_out()

    def _left_out(self) -> frozenset[int]:
        """Return the numbers of the tables that are not wanted; each new table is looked at once."""
        tables, chosen = self._knowledge.tables.tables, self._knowledge.chosen
        if self._seen < len(tables):
            new, self._seen = tables[self._seen :], len(tables)
            self._unwanted |= {one.number for one in new if not chosen.has(one.schema.table)}
        return self._unwanted

    def _reducible(self) -> list[int]:
        """Return the numbers of tables of which the last change of each key is enough: all their versions have keys."""
        numbers = self._facts.tables if self._knowledge.is_reduced else ()
        tables = self._knowledge.tables.tables
        return [one for one in numbers if _is_keyed(tables[one])]


def _too_long(
    rows: pa.RecordBatch, headers: MessageHeaders, joined: Mapping[int, int]
) -> tuple[pa.Array, dict[int, MessageError]]:
    """Return whose headers rows get, null for none, and the errors of messages whose headers its rows would repeat too often.

    A message that is `joined` of several gets none: each of them had its own.
    """
    message = rows.column("message")
    own = pc.if_else(pc.is_in(message, pa.array([*joined], message.type)), None, message) if joined else message
    lengths = pa.table({"message": own, "bytes": pc.binary_length(headers.texts).take(own).cast(pa.int64())})
    found = lengths.group_by("message").aggregate([("bytes", "sum"), ("bytes", "max")])
    repeated = pc.subtract(found.column("bytes_sum"), found.column("bytes_max"))
    most = headers.most.take(found.column("message").combine_chunks())
    errors: dict[int, MessageError] = {}
    for i in pc.indices_nonzero(pc.fill_null(pc.greater(repeated, most), fill_value=False)).to_pylist():
        one = found.slice(i, 1).to_pylist()[0]
        got = f"{repeated[i]} bytes in {one['bytes_sum'] // one['bytes_max']} rows, beyond {most[i]}"
        # What differs from message to message stands behind: rejects are counted by what is expected.
        expected = "headers that its rows repeat in no more bytes than its length allows"
        errors[one["message"]] = StructureError(expected, got)
    if errors:
        own = pc.if_else(pc.is_in(own, pa.array([*errors], own.type)), None, own)
    return own, errors


def _held_headers(texts: pa.Array, own: pa.Array) -> pa.Array:
    """Return the texts at the places `own`, each of them once."""
    # Arrow joins no dictionaries in which null is a value.
    places = pc.if_else(texts.is_valid().take(own), own, None).dictionary_encode()
    return pa.DictionaryArray.from_arrays(places.indices, texts.take(places.dictionary))


def _parts(rows: pa.Table) -> Iterator[pa.Table]:
    """Yield rows some at a time, with headers as texts, which may take more bytes than an array holds."""
    headers = rows.column(OF_ROWS[-1]).combine_chunks()
    lengths = pc.binary_length(headers.dictionary).take(headers.indices).cast(pa.int64())
    if len(rows) > 1 and (pc.sum(lengths).as_py() or 0) > _HELD:
        half = len(rows) // 2
        yield from _parts(rows.slice(0, half))
        yield from _parts(rows.slice(half))
    else:
        yield rows.set_column(rows.column_names.index(OF_ROWS[-1]), OF_ROWS[-1], headers.cast(pa.string()))


def _has_number(change: Change, name: str, text: str) -> bool:
    """Return whether a column of a row came as the number of a text."""
    values = [image[name] for image in (change.before, change.after) if image and name in image]
    return any(type(value) in (int, float, ExactNumber) and plain_text(value) == text for value in values)


def _count_messages(rows: pa.RecordBatch, joined: Mapping[int, int]) -> int:
    messages = rows.column("message")
    count: int
    if (
        len(messages)
        and pc.all(pc.less_equal(before := messages.slice(0, len(messages) - 1), messages.slice(1))).as_py()
    ):
        # As they nearly always stand.
        count = 1 + (pc.sum(pc.not_equal(before, messages.slice(1))).as_py() or 0)
    else:
        count = pc.count_distinct(messages).as_py()
    return count + sum(joined.get(one, 0) for one in pc.unique(messages).to_pylist()) if joined else count


def _is_keyed(table: Table) -> bool:
    return all(schema.key is not None for schema in table.versions)


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

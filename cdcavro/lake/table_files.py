"""Tables of files of messages, in memory, as Arrow: every change, or the current rows by the rules of `cdcavro.lake.merge`.

    from cdcavro.lake import read_tables

    for name, table in read_tables("changes.jsonl", current=True).items():
        frame = polars.from_arrow(table)

A stream that does not fit in memory is for `cdcavro tables` and `cdcavro sync`.
"""

from __future__ import annotations

from copy import deepcopy
from functools import lru_cache, partial
from operator import itemgetter
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Unpack

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import structs

from cdcavro.arrow import arrow_schema, to_arrow
from cdcavro.arrow.layout import row_names
from cdcavro.change.model import DDL, DML, Arrival, replace
from cdcavro.errors import CdcAvroError, FileError, MessageError, SchemaError, StructureError, plain
from cdcavro.files.lines import Inputs, Line
from cdcavro.files.rejects import Reject
from cdcavro.files.streams import shown_name
from cdcavro.lake.evolution import LakeColumn
from cdcavro.lake.lake_columns import text_names
from cdcavro.lake.learning import Learner, outline_of
from cdcavro.lake.merge import TableState, check_keys
from cdcavro.lake.placing import ROWS, Placing
from cdcavro.lake.typed_rows import DROP, TRUNCATE, TypedRow, TypedRows
from cdcavro.table.ddl.steps import TableName
from cdcavro.table.older_fields import ENVELOPE
from cdcavro.table.tables import Tables
from cdcavro.transcoding.joiner import StreamJoiner
from cdcavro.transcoding.mapping import USUAL_PLACEHOLDER, to_changes
from cdcavro.wire.sniff import AUTO, MIXED, other_format, sniff

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from cdcavro.change.model import Change
    from cdcavro.table.history import Table
    from cdcavro.table.table_schema import TableSchema
    from cdcavro.table.tables import TableOptions
    from cdcavro.transcoding.joiner import JoinedChanges, Message

# How many messages are learned at a time, and of how many bytes, unless one has more.
_BATCH: Final = 10_000
_BYTES: Final = 1 << 26
# How many rows become a batch of Arrow's at a time.
_ROWS: Final = 20_000
_UNPARSED: Final = "unparsed"
_ABSENT: Final = "absent"


def read_tables(
    path: str | PathLike[str] | Sequence[str | PathLike[str]],
    format: str | None = None,
    *,
    current: bool = False,
    rejects: list[Reject] | None = None,
    **options: Unpack[TableOptions],
) -> dict[TableName, pa.Table]:
    """Return the tables in files of messages, by name, each under the names and types of its newest version.

    * `path` is a file, a folder, or several of them: JSON lines, plain, gzip or Zstandard, in this order.
    * `format` is their format, "mixed" if each message has its own; by default it is that of the first messages.
    * `current` returns the rows of each table as they are at the end, with a column for each of the table's. By default
      the rows are the changes, with `before`, `after` and `op`, as `cdcavro tables --as parquet` writes them, and a
      dropped table has "(dropped)" after its name.
    * `rejects` is a list to which messages that cannot be converted are added, each a `Reject`. Without it, the first
      one is an error.
    * `options` are those of `cdcavro.Tables`, such as `zone`.

    The current rows have a column `unparsed` at the end if a value does not fit its column's type, with its text.

    Raises `FileError` for a file that cannot be read, and for a message that cannot be converted; `SchemaError` for
    current rows of a table without a key; `OrderError` for changes whose order cannot be known; and `UnknownFormatError`.
    """
    inputs = Inputs([fspath(one) for one in ([path] if isinstance(path, (str, PathLike)) else path)])

    def reject(error: MessageError, line: Line) -> None:
        file, number = inputs.place(line.number)
        found = Reject.of(error, line._replace(number=number), shown_name(file))
        if rejects is None:
            place = f"{found.file}:{number}: {found.format or 'message'}: {found.path}"
            other = other_format([line.raw], name) if format is None and name else None
            if other is not None:
                expected = (
                    f"a message of {name}, as the first ones are, or format={MIXED!r} for files of several formats"
                )
                raise FileError(f"{found.file}:{number}", expected, f"one that looks like {other}") from error
            raise FileError(place, error.expected, error.got) from error
        rejects.append(found)

    reader = TableReader(Tables(**options), reject, is_current=current)
    name, lines = inputs.open_lines(AUTO if format is None else format, option="format")
    reader.read(inputs, name, lines)
    if not current:
        return reader.change_tables()
    return {table.schema.table: reader.current_rows(table) for table in reader.tables.tables if not table.is_gone}


class TableReader:
    """Reads files of messages into typed rows of `tables`, all in memory.

    `reject` is called with the error of each message that cannot be converted, and its line, whose number is that in all
    files. `is_current` says that current rows are wanted: rows of which these would lose values are refused then.
    `unavailable` is as in `to_changes`. With `take`, rows are given to it, some at a time, and not kept. Fields: `tables`
    (`Tables`), `read_count` (int), the number of messages, and `typed_count` (int), that of messages of which all became rows.
    """

    def __init__(
        self,
        tables: Tables,
        reject: Callable[[MessageError, Line], None],
        *,
        is_current: bool,
        unavailable: str | None = USUAL_PLACEHOLDER,
        take: Callable[[Sequence[TypedRow]], None] | None = None,
    ) -> None:
        self.tables, self._reject, self._unavailable = tables, reject, unavailable
        self._hand_on = self._keep if take is None else take
        has_state = (lambda _: True) if is_current else None
        self._maker = TypedRows(tables, has_state=has_state)
        self._new_placing = partial(Placing, tables=tables, unavailable=unavailable, has_state=has_state)
        self._rows: dict[int, list[TypedRow]] = {}
        self.read_count = self.typed_count = 0

    def read(self, inputs: Inputs, format: str, lines: Iterator[Line]) -> None:
        """Read the messages of all files."""
        joiner = StreamJoiner()
        engine = None if format in ("", MIXED) else _EngineReader(self._maker, partial(self._new_placing, format))
        for batch in _batches(lines):
            self.read_count += len(batch)
            made = engine.read(batch, inputs) if engine is not None and joiner.passes_whole else None
            if made is None:
                placed = (joined for line in batch for joined in self._changes(inputs, line, format, joiner))
                self._take(list(placed), format)
                continue
            for error, line in made.unread:
                error.format = error.format or format
                self._reject(error, line)
            self.typed_count += made.typed
            self._hand_on(made.rows)
        self._take(joiner.finish(), format)

    def _changes(self, inputs: Inputs, line: Line, format: str, joiner: StreamJoiner) -> Sequence[JoinedChanges]:
        file, number = inputs.place(line.number)
        try:
            message = line.message()
            name = sniff(message) if format == MIXED else format
            changes = to_changes(message, name, members=False, zone=self.tables.zone, unavailable=self._unavailable)
        except MessageError as error:
            error.format = error.format or (None if format == MIXED else format)
            self._reject(error, line)
            return ()
        places = (replace(change.place or Arrival(), file=shown_name(file), line=number) for change in changes)
        placed = [replace(change, place=place) for change, place in zip(changes, places, strict=True)]
        return joiner.add(placed, line.number, message)

    def _take(self, joined: Sequence[JoinedChanges], format: str) -> None:
        """Learn and type the changes of a batch."""
        messages: dict[tuple[str | None, int | None], Sequence[Message]] = {}
        whole, rejected = [one for one in joined if one.error is None], set[int]()
        for one in joined:
            if one.error is not None:
                for number, text in one.messages:
                    self._reject(one.error, Line.of(number, text))
            for change in one.changes:
                messages[_file_and_line(change)] = one.messages
        batch = self._maker.of_batch([one.changes for one in whole])
        for change, error in batch.rejects:
            # Those of the first fault only; both halves of an update are refused.
            for number, text in messages.pop(_file_and_line(change), ()):
                rejected.add(number)
                self._reject(_as_message_error(error, change, format), Line.of(number, text))
        self.typed_count += len({number for i in batch.typed for number, _ in whole[i].messages} - rejected)
        self._hand_on(batch.rows)

    def _keep(self, rows: Sequence[TypedRow]) -> None:
        for row in rows:
            self._rows.setdefault(row.table, []).append(row)

    def change_tables(self) -> dict[TableName, pa.Table]:
        """Return the changes of all tables."""
        found: dict[TableName, pa.Table] = {}
        for table in sorted(self.tables.tables, key=lambda table: table.is_gone):
            name = table.schema.table
            if table.is_gone:
                name = TableName(name.database, name.schema, f"{name.table} (dropped)")
            again = 1
            while name in found:
                again += 1
                name = TableName(name.database, name.schema, f"{table.schema.table.table} (dropped {again})")
            rows = [row for row in self._rows.get(table.number, ()) if row.operation != DROP]
            if rows or not table.is_gone:
                found[name] = _as_table(rows, table)
        return found

    def current_rows(self, table: Table) -> pa.Table:
        """Return the current rows of a table. Raises `SchemaError` and `OrderError`, as `read_tables` does."""
        return _current_rows(self._rows.get(table.number, []), table)


def _batches(lines: Iterator[Line]) -> Iterator[list[Line]]:
    """Yield lines, some at a time."""
    batch, size = list[Line](), 0
    for line in lines:
        batch.append(line)
        size += len(line.raw)
        if len(batch) >= _BATCH or size >= _BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


class _BatchRows(NamedTuple):
    """What a batch becomes: rows in the order of arrival, of so many messages, and those that cannot be read."""

    rows: list[TypedRow]
    typed: int
    unread: list[tuple[MessageError, Line]]


class _SomethingNewError(Exception):
    """A message is for the exact way, and so is its batch."""


class _EngineReader:
    """Reads batches of one format: the engine makes the rows of messages whose pattern is known, if nothing says anything new.

    `maker` has the tables and the clock; `new_placing` makes a `Placing` of the format. What a statement means, and what a
    row says that is like none before, depends on all that the batch says, in the order of the source. So a batch with one is
    for `TypedRows.of_batch`, as is one with the half of an update, or with a change that is refused.
    """

    def __init__(self, maker: TypedRows, new_placing: Callable[..., Placing]) -> None:
        self._maker, self._new_placing = maker, new_placing
        self._placing: Placing | None = None
        # Since a table was edited last: digests of what rows said, all of it known, and a copy of the tables that tells so.
        self._known: set[bytes] = set()
        self._trial: Learner | None = None
        self._edits = maker.tables.edits

    def read(self, lines: Sequence[Line], inputs: Inputs) -> _BatchRows | None:
        """Return the rows of a batch; None for one that is for the exact way, of which nothing is taken then."""
        maker, clock = self._maker, self._maker.clock.copy()
        if self._edits != maker.tables.edits or self._placing is None:
            self._forget()
            self._placing = self._new_placing(clock=maker.clock)
        rows: list[tuple[int, TypedRow]] = []
        unread: dict[int, MessageError] = {}
        learned: list[Change] = []

        def leave(i: int, text: bytes, place: Arrival | None) -> None:
            try:
                changes = placing.changes(text)
            except MessageError as error:
                unread[i] = error
                return
            learned.extend(self._idle_of(placing.at_place(changes, place)))
            rows.extend((i, row) for row in placing.rows(text, changes, place))

        placing, columns = self._placing, _columns_of(lines, inputs, unread)
        try:
            for made in placing.take(columns, leave):
                rows.extend(_typed_rows(made, maker.tables.tables))
        except (CdcAvroError, _SomethingNewError):
            maker.clock, self._placing = clock, None
            return None
        # It notes which tables have rows.
        maker.learner.learn(learned)
        rows.sort(key=itemgetter(0))
        typed = len({i for i, row in rows if row.payload})
        return _BatchRows([row for _, row in rows], typed, [(unread[i], lines[i]) for i in sorted(unread)])

    def _forget(self) -> None:
        self._known.clear()
        self._trial, self._edits = None, self._maker.tables.edits

    def _idle_of(self, changes: Sequence[Change]) -> Iterator[Change]:
        """Yield the rows among changes that no other one was like. Raises `_SomethingNewError`, as the class says."""
        for change in changes:
            if change.op in DDL or change.half is not None:
                raise _SomethingNewError
            outlined = outline_of(change)
            if outlined is None and change.op in DML:
                raise _SomethingNewError
            if outlined is None or outlined[0] in self._known:
                continue
            if self._trial is None:
                self._trial = Learner(deepcopy(self._maker.tables))
            edits = self._trial.tables.edits
            learned = self._trial.learn([change])
            if self._trial.tables.edits != edits or learned.faults or learned.dropped:
                self._trial = None
                raise _SomethingNewError
            self._known.add(outlined[0])
            yield change


def _columns_of(lines: Sequence[Line], inputs: Inputs, unread: dict[int, MessageError]) -> pa.RecordBatch:
    """Return messages, null if they are too long, which is an error then, and where each is, as `Placing.take` has them."""
    texts: list[bytes | None] = []
    for i, line in enumerate(lines):
        try:
            texts.append(line.message())
        except MessageError as error:
            unread[i] = error
            texts.append(None)
    files, numbers = zip(*[inputs.place(line.number) for line in lines], strict=True)
    names = {file: shown_name(file) for file in set(files)}
    columns = [pa.array([names[file] for file in files], pa.string()), pa.array(numbers, pa.int64())]
    places = pa.StructArray.from_arrays(columns, ["file", "line"])
    return pa.record_batch([pa.array(texts, pa.binary()), places], ["message", "place"])


def _typed_rows(rows: pa.RecordBatch, tables: Sequence[Table]) -> Iterator[tuple[int, TypedRow]]:
    """Yield rows that the engine made, each with the index of its message."""
    absent: dict[tuple[int, int], Iterator[Sequence[str]]] = {}
    lacking = rows.filter(rows.column("lacks"))
    numbers, versions = lacking.column("number"), lacking.column("version")
    for number, version in {*zip(numbers.to_pylist(), versions.to_pylist(), strict=True)}:
        payloads = lacking.filter(pc.and_(pc.equal(numbers, number), pc.equal(versions, version))).column("payload")
        after = to_arrow(payloads, tables[number].versions[version - 1]).column("after")
        absent[number, version] = iter(after.field(_ABSENT).to_pylist())
    columns = [rows.column(name).to_pylist() for name in ROWS.names]
    for i, number, version, operation, order, key, payload, lacks in zip(*columns, strict=True):
        names = tuple(next(absent[number, version])) if lacks else ()
        yield i, TypedRow(number, version, operation, order, key, payload, names)


def _file_and_line(change: Change) -> tuple[str | None, int | None]:
    place = change.place or Arrival()
    return place.file, place.line


def _as_message_error(error: CdcAvroError, change: Change, format: str) -> MessageError:
    if isinstance(error, MessageError):
        return error
    named = change.source.format or format
    return StructureError("a statement or columns that the table allows", str(error), format=named)


def _as_table(rows: Sequence[TypedRow], table: Table) -> pa.Table:
    """Return typed rows as changes under the newest version of their table."""
    batches = []
    for start in range(0, len(rows), _ROWS):
        some = rows[start : start + _ROWS]
        batches.append(to_arrow([row.payload for row in some], table, [row.version for row in some]))
    return pa.Table.from_batches(batches, arrow_schema(table.schema))


class _Cut(NamedTuple):
    """Where the values of a row stand: the index of its first change, and for each column that lacks it the index instead."""

    first: int
    others: dict[str, int | None]


def _current_rows(rows: Sequence[TypedRow], table: Table) -> pa.Table:
    """Return what is left of all rows of a table, under its newest version.

    Raises `SchemaError` for a table without a key, and for one whose key became another behind its first row;
    `OrderError` as the merge does.
    """
    called = ".".join(plain(part) for part in _parts(table.schema.table) if part)
    state = TableState(called)
    # What an older version calls a column is told by its newest name, so that the rows of all versions agree.
    state.merge([row if not row.absent else structs.replace(row, absent=_absent_now(row, table)) for row in rows])
    if state.keyless or table.schema.key is None:
        raise SchemaError(called, "no primary key is known, so its current rows cannot be told apart")
    # Of versions before the first row, keys may have been others.
    first = min((row.version for row in rows if row.operation not in (TRUNCATE, DROP)), default=len(table.versions))
    check_keys(table.versions[first - 1 :])
    pieces = [piece for parts in state.rows.values() for piece in parts]
    changes = _as_table(pieces, table).select(["after"])
    names = [field.name for field in changes.schema.field("after").type]
    columns = dict(zip(names, changes.flatten().columns, strict=True))
    columns.pop(_ABSENT, None)
    unparsed = columns.pop(_UNPARSED, None)
    cuts = list(_cuts(state))
    lacking = {name for cut in cuts for name in cut.others}
    first = pa.array([cut.first for cut in cuts], pa.int64())
    taken = {name: column.take(_indices(name, cuts) if name in lacking else first) for name, column in columns.items()}
    if unparsed is not None and pc.sum(pc.list_value_length(unparsed.cast(_AS_LIST))).as_py():
        texts = unparsed.to_pylist()
        of_text = _columns_of_texts(table)
        kept = [
            _merge_unparsed(cut, texts, state_row, of_text)
            for cut, state_row in zip(cuts, state.rows.values(), strict=True)
        ]
        taken[_UNPARSED] = pa.chunked_array([pa.array(kept, unparsed.type)])
    return pa.table(taken)


_AS_LIST: Final = pa.list_(pa.struct([("key", pa.string()), ("value", pa.string())]))


def _indices(name: str, cuts: Sequence[_Cut]) -> pa.Array:
    return pa.array([cut.others.get(name, cut.first) for cut in cuts], pa.int64())


def _cuts(state: TableState) -> Iterator[_Cut]:
    """Yield where the values of each row stand among all changes of the state."""
    at = 0
    for parts in state.rows.values():
        others: dict[str, int | None] = dict.fromkeys(parts[0].absent)
        for i, piece in enumerate(parts[1:], at + 1):
            others |= {name: i for name, found in others.items() if found is None and name not in piece.absent}
        yield _Cut(at, others)
        at += len(parts)


def _parts(name: TableName) -> tuple[str | None, ...]:
    return name.database, name.schema, name.table


def _absent_now(row: TypedRow, table: Table) -> tuple[str, ...]:
    writer = table.versions[row.version - 1]
    return tuple(sorted({now for name in row.absent for now in _names_now(name, writer, table.schema)}))


@lru_cache(maxsize=10_000)
def _names_now(name: str, writer: TableSchema, newest: TableSchema) -> frozenset[str]:
    """Return the names in a batch under the newest version of a column that an older version calls so."""
    (names,) = row_names(newest, ENVELOPE).values()
    was = next((column.field for column in writer.columns if column.name == name), name)
    aliases = {field["name"]: (field["name"], *field.get("aliases", ())) for field in newest.record["fields"]}
    now = {column.name for column in newest.all_columns if was in aliases.get(column.field, ())}
    return frozenset(names[column.field] for column in newest.all_columns if column.name in now)


def _columns_of_texts(table: Table) -> dict[str, str]:
    """Return which column a text of any version is of, as rows under the newest one call it."""
    (names,) = row_names(table.schema, ENVELOPE).values()
    columns = [LakeColumn(names[one.field], one.field, "") for one in table.schema.all_columns]
    return {one: name for name, ones in text_names(table.versions, columns).items() for one in ones}


def _merge_unparsed(
    cut: _Cut, texts: Sequence[Any], pieces: Sequence[TypedRow], of_text: Mapping[str, str]
) -> dict[str, str]:
    """Return the texts that did not fit of a row's values, each of the change which has its column's value.

    `of_text` says which column a text is of, as rows call it now.
    """
    merged: dict[str, str] = {}
    for i in range(cut.first, cut.first + len(pieces)):
        own: Mapping[str, str] = dict(texts[i] or ())
        merged |= {name: text for name, text in own.items() if cut.others.get(of_text.get(name, name), cut.first) == i}
    return merged

"""Typed tables on Spark, of a column of messages or changes: first what they state is learned, then they are typed.

A survey finds what messages state without making changes of most: one stands for all that are like it. Of a batch, the
engine types the rows of known patterns; what it leaves goes the exact way, one by one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

import pyarrow as pa
from pyspark.sql import functions as sf
from pyspark.sql.types import BinaryType, IntegerType, StringType, StructField, StructType

from cdcavro.arrow.arrays import slices_of
from cdcavro.change.model import DML, Change, replace
from cdcavro.change.operations import ADAPTIVE_TIME_MICROSECONDS, BYTES, PRECISE, check_modes
from cdcavro.change.order import in_order
from cdcavro.change.order_value import common_order
from cdcavro.engine.machine import SurveyEngine
from cdcavro.engine.program import RowProgram
from cdcavro.errors import CdcAvroError, MessageError, MisfitError, shown
from cdcavro.exact.instants import check_zone
from cdcavro.exact.numbers import MAX_LONG, MIN_LONG
from cdcavro.formats.connect_columns import PLACEHOLDER, check_word
from cdcavro.lake.learning import outline_of, refusal_fields
from cdcavro.lake.placing import EngineRows, Places, take_messages
from cdcavro.spark.arrow_udf import in_worker
from cdcavro.spark.functions import ERROR, KEY, KEY_TYPE, key_fields
from cdcavro.table.catalog import notes_of
from cdcavro.table.evolution.evolve import NONE_GIVEN
from cdcavro.table.table_names import has_row_of_table
from cdcavro.table.tables import ERROR as ERROR_POLICY
from cdcavro.table.tables import KEEP, UNSTATED, Tables
from cdcavro.table.writing.message_typer import ChangeTyper, MessageTyper, merge_places, pieces_of
from cdcavro.table.writing.table_writer import NOWHERE, OPERATIONS
from cdcavro.transcoding.mapping import placeholders, to_changes
from cdcavro.wire.formats import change_format, get_format
from cdcavro.wire.message_program import row_parts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import tzinfo
    from typing import Unpack

    from pyspark.sql import Column, DataFrame

    from cdcavro.change.model import Arrival
    from cdcavro.table.columns.column_type import TypeOverrides
    from cdcavro.table.history import Table
    from cdcavro.table.table_names import GivenTable
    from cdcavro.table.tables import TableOptions, TypedChange
    from cdcavro.table.writing.message_typer import Refused
    from cdcavro.wire.format import Format

    Batches = Iterable[pa.RecordBatch]
    Outline = dict[str, Any]


@dataclass(frozen=True)
class TypedTables:
    """The tables of a frame of changes.

    * `frame` (DataFrame): the row changes: number (int, of the table), table (string, its newest name), version (int),
      key and payload (binary).
    * `rejects` (DataFrame): the changes that contradict their table: change (binary) and error (struct of format, path,
      message).
    * `tables` (list[Table]): with all their versions.
    * `faults` (list[tuple[Change, CdcAvroError]]): the statements that were not understood and changed nothing.
    """

    frame: DataFrame
    rejects: DataFrame
    tables: list[Table]
    faults: list[tuple[Change, CdcAvroError]]

    @property
    def notes(self) -> list[str]:
        """Sentences about the tables: those without a key, and columns whose type is not the declared one."""
        return notes_of(self.tables)

    def table(self, name: str) -> Table:
        """Return the table of this name, the newest if several had it last. Raises `LookupError`."""
        matches = [table for table in self.tables if name in (table.schema.table.table, table.schema.full_name)]
        if not matches:
            raise LookupError(f"there is no table {shown(name)}")
        return matches[-1]

    def payloads(self, name: str) -> DataFrame:
        """Return the rows of `frame` that belong to one table. Raises `LookupError`."""
        return self.frame.where(sf.col("number") == self.table(name).number)


def to_tables(
    changes: DataFrame,
    col: str = "change",
    *,
    given: TypeOverrides = NONE_GIVEN,
    zone: tzinfo | None = None,
    on_misfit: str = KEEP,
    absent: str = UNSTATED,
    decimals: str = PRECISE,
    times: str = ADAPTIVE_TIME_MICROSECONDS,
    binaries: str = BYTES,
    table: str | None = None,
) -> TypedTables:
    """Return the changes of a frame as typed payloads of their tables, with the version of each.

    `col` is the column of payloads of `change.avsc`, as `to_changes` makes them with a `place`. First, in
    a pass of its own, what the changes state about tables is collected and learned in order on the driver;
    its size is that of the statements and the distinct lists of columns. So `changes` is read twice:
    persist it if that is expensive. The other arguments are those of `cdcavro.Tables`. A change with
    neither numbers nor a place fails the job, and so does a misfit if `on_misfit` is "error".
    """
    modes = check_modes(decimals, times, binaries)
    learned = Tables(given=given, zone=zone, on_misfit=on_misfit, absent=absent, table=table, **modes._asdict())
    given_table, is_strict = learned.given_table, on_misfit == ERROR_POLICY
    payloads = changes.select(sf.col(col).alias("change"))

    def survey(batches: Batches) -> Batches:
        return outline_batches(ChangeSurvey(given_table), batches)

    def type_rows(batches: Batches) -> Batches:
        typer = ChangeTyper(learned)
        for batch in batches:
            yield from ChangeBatch(typer, batch, is_strict=is_strict).batches()

    faults = learn(learned, payloads.mapInArrow(in_worker(survey), OUTLINE))
    outcomes = payloads.mapInArrow(in_worker(type_rows), outcome_type(payloads.schema, ChangeBatch))
    return TypedTables(*rows_and_rejects(outcomes), learned.tables, faults)


def messages_to_tables(
    messages: DataFrame,
    col: Column | str,
    format: str,
    *,
    place: Column | str | None = None,
    unavailable: str | None = PLACEHOLDER,
    **options: Unpack[TableOptions],
) -> TypedTables:
    """Return the rows of a column of messages, JSON text as string or binary, as typed payloads of their tables.

    The rows, tables and faults are those of `to_tables` over `to_changes`, without changes in Avro in between. `place`
    and `unavailable` are as in `to_changes`, `options` (given, zone, on_misfit, absent, decimals, times, binaries,
    table) as in `to_tables`. `rejects` has everything that is not a row: the columns message, place (if given), change
    (binary, null for what is not a message at all) and error. `messages` is read twice, first to learn the tables:
    persist it if that is expensive.
    """
    get_format(format)
    check_word(unavailable)
    zone, is_strict = options.get("zone"), options.get("on_misfit") == ERROR_POLICY
    check_zone(zone)
    learned = Tables(**options)
    given_table = learned.given_table
    columns = [sf.col(col) if isinstance(col, str) else col]
    if place is not None:
        columns.append(sf.col(place) if isinstance(place, str) else place)
    texts = messages.select(*[one.alias(name) for one, name in zip(columns, ("message", "place"), strict=False)])

    def survey(batches: Batches) -> Batches:
        return outline_batches(MessageSurvey(format, zone, unavailable, given_table), batches)

    def type_rows(batches: Batches) -> Batches:
        typer = MessageTyper(format, learned, unavailable=unavailable, is_all_learned=True)
        for batch in batches:
            is_able = not (given_table.by_topic and "topic" in Places(batch).names)
            yield from MessageBatch(typer, batch, is_strict=is_strict, is_able=is_able).batches()

    faults = learn(learned, texts.mapInArrow(in_worker(survey), OUTLINE))
    outcomes = texts.mapInArrow(in_worker(type_rows), outcome_type(texts.schema, MessageBatch))
    return TypedTables(*rows_and_rejects(outcomes), learned.tables, faults)


def learn(tables: Tables, outlines: DataFrame) -> list[tuple[Change, CdcAvroError]]:
    """Let tables learn from a frame of outlines, in order; return the statements that were not understood.

    The columns are those of `outline_of`. Of the outlines with the same digest, only the first one of each topic
    partition or file is needed.
    """
    # The keys of one partition or file compare with each other in every format, those of several not in all.
    lanes = outlines.groupBy("digest", "at.topic", "at.partition", "at.file")
    firsts = lanes.agg(sf.min_by("outline", "at").alias("outline")).collect()
    faults = []
    for change in in_order([Change.from_avro(bytes(row.outline)) for row in firsts]):
        try:
            tables.learn(change)
        except CdcAvroError as error:
            faults.append((change, error))
    return faults


_ROW: Final = (
    ("number", pa.int32(), IntegerType()),
    ("table", pa.string(), StringType()),
    ("version", pa.int32(), IntegerType()),
    ("key", pa.binary(), BinaryType()),
    ("payload", pa.binary(), BinaryType()),
)
_ERROR: Final = StructType([StructField(field.name, StringType()) for field in ERROR])
_CHANGE: Final = ("change", pa.binary(), BinaryType())


class ChangeBatch:
    """The typing of a batch of changes, whose payloads are its only column.

    Raises `PayloadError` for other payloads.
    """

    more: ClassVar[tuple[tuple[str, pa.DataType, BinaryType], ...]] = ()
    """What rejects have between the batch's own columns and the error: name, and type in Arrow and in Spark."""

    def __init__(self, typer: MessageTyper, batch: pa.RecordBatch, *, is_strict: bool, is_able: bool = True) -> None:
        self._typer, self._batch, self._is_strict, self._is_able = typer, batch, is_strict, is_able
        self._places = Places(batch)
        self._rows: list[TypedChange] = []
        self._refused: list[tuple[int, bytes | None, dict[str, str | None]]] = []

    def batches(self) -> Batches:
        """Yield the rows, and then the rejects, each with its error."""
        texts = slices_of(self._batch.column(0))
        places = self._places.encode() if self._is_able else None
        for i in take_messages(self._typer, texts, places, is_able=self._is_able):
            raw = None if i is None else texts.get(i)
            if i is None:
                yield self._engine_rows()
            elif raw is not None:
                self._take(i, raw)
        yield self._engine_rows()
        if self._rows:
            yield self._exact_rows()
        if self._refused:
            yield self._rejects()

    def _take(self, i: int, message: bytes) -> None:
        """Take a message the exact way."""
        rows, refused = self._write(i, message)
        self._rows += rows
        for change, fault in refused:
            if self._is_strict and isinstance(fault, MisfitError):
                raise fault
            self._refused.append((i, change.to_avro() if self.more else None, refusal_fields(change, fault)))

    def _write(self, i: int, message: bytes) -> tuple[list[TypedChange], Refused]:
        return self._typer.write(message, self._places.get(i))

    def _engine_rows(self) -> pa.RecordBatch:
        """Return the rows that the engine made."""
        rows = EngineRows(*self._typer.pop_rows())
        number = rows.column(lambda table, _: table.number, pa.int32())
        name = rows.column(lambda table, _: table.schema.table.table, pa.string())
        version = rows.column(lambda _, schema: schema.version, pa.int32())
        return self._batch_of([number, name, version, rows.key, rows.payload])

    def _exact_rows(self) -> pa.RecordBatch:
        """Return the rows that were made the exact way."""
        facts = [
            (row.table.number, row.table.schema.table.table, row.schema.version, row.key, row.payload)
            for row in self._rows
        ]
        columns = zip(*facts, strict=True)
        return self._batch_of([pa.array(values, type) for values, (_, type, _) in zip(columns, _ROW, strict=True)])

    def _rejects(self) -> pa.RecordBatch:
        messages, changes, errors = zip(*self._refused, strict=True)
        none = [pa.nulls(len(messages), type) for _, type, _ in _ROW]
        own = [column.take(pa.array(messages, pa.int32())) for column in self._batch.columns]
        more = [pa.array(changes, type) for _, type, _ in self.more]
        return self._with_names([*none, *own, *more, pa.array(errors, ERROR)])

    def _batch_of(self, rows: Sequence[pa.Array]) -> pa.RecordBatch:
        others = [*[column.type for column in self._batch.columns], *[type for _, type, _ in self.more], ERROR]
        return self._with_names([*rows, *[pa.nulls(len(rows[0]), type) for type in others]])

    def _with_names(self, columns: Sequence[pa.Array]) -> pa.RecordBatch:
        own = [*self._batch.schema.names, *[name for name, _, _ in self.more]]
        return pa.RecordBatch.from_arrays(columns, [*[name for name, _, _ in _ROW], *own, "error"])


class MessageBatch(ChangeBatch):
    """The typing of a batch of messages and, if there are any, their places; rejects have their change, if any."""

    more = (_CHANGE,)

    def _write(self, i: int, message: bytes) -> tuple[list[TypedChange], Refused]:
        try:
            return super()._write(i, message)
        except MessageError as error:
            self._refused.append((i, None, error.fields))
            return [], []


def outcome_type(messages: StructType, batch: type[ChangeBatch]) -> StructType:
    """Return the type of a frame of rows and rejects, which a kind of batch makes of a frame of messages."""
    row = [StructField(name, type) for name, _, type in _ROW]
    own = [StructField(field.name, field.dataType) for field in messages.fields]
    more = [StructField(name, type) for name, _, type in batch.more]
    return StructType([*row, *own, *more, StructField("error", _ERROR)])


def rows_and_rejects(outcomes: DataFrame) -> tuple[DataFrame, DataFrame]:
    """Return the rows in a frame, and the rejects with their errors."""
    rows, rest = outcomes.columns[: len(_ROW)], outcomes.columns[len(_ROW) :]
    return outcomes.where("error is null").select(*rows), outcomes.where("error is not null").select(*rest)


OUTLINE: Final = f"digest binary, at struct<{KEY}>, outline binary"
OUTLINE_TYPE: Final = pa.struct([("digest", pa.binary()), ("at", KEY_TYPE), ("outline", pa.binary())])


class Survey:
    """Makes the outlines of messages of one kind that are needed: those of the first message of each pattern.

    Messages of one pattern whose rows have columns of the same names state the same about their table. The engine finds
    by their numbers and places which of them comes first in the order of changes; that one goes the exact way, and so
    does whatever the engine leaves. `given` is as in `Tables`.
    """

    def __init__(self, format: Format, engine: SurveyEngine | None, given: GivenTable) -> None:
        self._engine, self._given = engine, given
        self._parts = row_parts(format.envelope)

    def outlines(self, batch: pa.RecordBatch) -> Iterator[Outline]:
        """Yield the outlines that are needed of a batch of messages; its second column, if any, has their places."""
        messages, places, i = slices_of(batch.column(0)), Places(batch), 0
        encoded_places = places.encode()
        while i < messages.count:
            if self._engine is not None:
                i = self._engine.take_alike(messages, encoded_places, i)
            message = messages.get(i) if i < messages.count else None
            if message is not None:
                yield from self._learn_outlines(message, places.get(i))
            i += 1
        for alike, first in () if self._engine is None else self._engine.firsts():
            changes = self._named_changes(messages.get(first) or b"", places.get(first))
            if _are_rows(changes):
                yield from _outlines_of(changes)
                continue
            # It is no row after all, so others may be none, too.
            for i in () if self._engine is None else self._engine.mixed(alike):
                yield from _outlines_of(self._named_changes(messages.get(i) or b"", places.get(i)))

    def _learn_outlines(self, message: bytes, place: Arrival | None) -> list[Outline]:
        """Return the outlines of a message, and learn its pattern."""
        changes = self._changes(message)
        named = self._name_changes(changes, place)
        if self._engine is not None and _are_rows(named):
            self._learn(self._engine, message, changes[0])
        return _outlines_of(named)

    def _learn(self, engine: SurveyEngine, message: bytes, change: Change) -> None:
        """Learn the pattern of a message, if the engine finds the numbers that its change has."""
        fixed = engine.pattern(message)
        if fixed is None or engine.has(fixed) or not self._is_clear(message, change):
            return
        program = RowProgram(position=self._parts.position(change.source.db_type, message), place=NOWHERE)
        program.phase, program.order, program.is_batched = common_order(change)
        program.operation = ord(OPERATIONS[change.op])
        found = engine.survey(message, {fixed: program.position})
        if found is not None and found[1] is not None and found[1] == _comparable(change.position):
            engine.add(fixed, program)

    def _named_changes(self, message: bytes, place: Arrival | None) -> list[Change]:
        return self._name_changes(self._changes(message), place)

    def _name_changes(self, changes: Sequence[Change], place: Arrival | None) -> list[Change]:
        return [
            self._given.with_given_table(replace(change, place=merge_places(change.place, place))) for change in changes
        ]

    def _changes(self, message: bytes) -> list[Change]:
        raise NotImplementedError

    def _is_clear(self, message: bytes, change: Change) -> bool:
        raise NotImplementedError


class MessageSurvey(Survey):
    """The survey of JSON text of one format; `zone` and `unavailable` are as in `to_changes`."""

    def __init__(self, format: str, zone: tzinfo | None, unavailable: str | None, given: GivenTable) -> None:
        self._format, self._zone, self._unavailable = get_format(format), zone, unavailable
        pieces, words = pieces_of(zone), placeholders(format, unavailable)
        engine = None if pieces is None else SurveyEngine(self._format.program, words, pieces)
        super().__init__(self._format, engine, given)

    def _changes(self, message: bytes) -> list[Change]:
        """Return the changes of a message; none if it is no message, which is refused when it is typed."""
        try:
            return to_changes(message, self._format.name, zone=self._zone, members=False, unavailable=self._unavailable)
        except MessageError:
            return []

    def _is_clear(self, message: bytes, change: Change) -> bool:
        """Return whether a change was made of just the parts, and the message does not say itself where it arrived."""
        format = self._format
        return change.place is None and self._parts.are_complete(format.encode(message), format.read, change.key)


class ChangeSurvey(Survey):
    """The survey of payloads of changes. Raises `PayloadError` for one that cannot be read."""

    def __init__(self, given: GivenTable) -> None:
        format = change_format()
        super().__init__(format, SurveyEngine(format.program, (), b"", False, True), given)  # noqa: FBT003

    def _changes(self, message: bytes) -> list[Change]:
        return [Change.from_avro(message)]

    def _is_clear(self, message: bytes, change: Change) -> bool:  # noqa: ARG002  as the engine sees
        return True


def outline_batches(survey: Survey, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the outlines that are needed of batches, in batches of `OUTLINE_TYPE`."""
    for batch in batches:
        yield pa.RecordBatch.from_struct_array(pa.array(list(survey.outlines(batch)), OUTLINE_TYPE))


def _are_rows(changes: Sequence[Change]) -> bool:
    return bool(changes) and all(change.op in DML and has_row_of_table(change) for change in changes)


def _outlines_of(changes: Sequence[Change]) -> list[Outline]:
    return [outline for outline in map(survey_outline, changes) if outline is not None]


def _comparable(position: Sequence[int] | None) -> bytes | None:
    """Return a position as the engine writes it; None if the engine cannot hold it."""
    if position is None:
        return b""
    if not all(MIN_LONG <= number <= MAX_LONG for number in position):
        return None
    return b"\1" + b"".join((number - MIN_LONG).to_bytes(8, "big") for number in position)


def survey_outline(change: Change) -> dict[str, Any] | None:
    """Return what a change states about its table, if it does: its digest, its order key, and the outline."""
    found = outline_of(change)
    return found and {"digest": found[0], "at": key_fields(change), "outline": found[1].to_avro()}

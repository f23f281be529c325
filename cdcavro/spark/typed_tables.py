"""Typed tables on Spark, of a column of messages or changes: first what they state is learned, then they are typed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as sf

from cdcavro.change.model import Change
from cdcavro.change.modes import ADAPTIVE_TIME_MICROSECONDS, BYTES, PRECISE, check_modes
from cdcavro.change.order import in_order
from cdcavro.errors import CdcAvroError, shown
from cdcavro.exact.instants import check_zone
from cdcavro.formats.connect_columns import PLACEHOLDER, check_word
from cdcavro.lake.placing import Places
from cdcavro.spark.arrow_udf import in_worker
from cdcavro.spark.survey import OUTLINE, ChangeSurvey, MessageSurvey, outline_batches
from cdcavro.spark.typed_batch import ChangeBatch, MessageBatch, outcome_type, rows_and_rejects
from cdcavro.table.evolution.evolve import NONE_GIVEN
from cdcavro.table.history import notes_of
from cdcavro.table.tables import ERROR as ERROR_POLICY
from cdcavro.table.tables import KEEP, Tables
from cdcavro.table.writing.message_typer import ChangeTyper, MessageTyper
from cdcavro.wire.formats import get_format

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import tzinfo
    from typing import Unpack

    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

    from cdcavro.table.columns.column_type import TypeOverrides
    from cdcavro.table.history import Table
    from cdcavro.table.tables import TableOptions

    Batches = Iterable[pa.RecordBatch]


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
    learned = Tables(given=given, zone=zone, on_misfit=on_misfit, table=table, **modes._asdict())
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

    The rows, tables and faults are those of `to_tables` over `to_changes`, with nothing in Avro in between. `place` and
    `unavailable` are as in `to_changes`, `options` (given, zone, on_misfit, decimals, times, binaries, table) as in
    `to_tables`. `rejects` has everything that is no row: the columns message, place (if given), change (binary, null
    for what is no message at all) and error. `messages` is read twice, first to learn the tables: persist it if that is
    expensive.
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

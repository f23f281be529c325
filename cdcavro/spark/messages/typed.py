"""Messages straight to typed tables on Spark: the rows of a column of text, with nothing in Avro in between."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypedDict

import pyarrow as pa
from pyspark.sql import functions as sf
from pyspark.sql.types import BinaryType, IntegerType, StringType, StructField, StructType

from cdcavro.errors import MessageError, MisfitError
from cdcavro.exact.instants import check_zone
from cdcavro.formats.connect.unavailable import PLACEHOLDER, check_word
from cdcavro.lake.arrow import MadeRows, Places, slices_of, take
from cdcavro.spark.arrow_udf import in_worker, raw_bytes
from cdcavro.spark.functions import ERROR, error_fields
from cdcavro.spark.messages.survey import Survey
from cdcavro.spark.tables import OUTLINE, OUTLINE_TYPE, TypedTables, learn, refusal
from cdcavro.table.messages import MessageTyper
from cdcavro.table.tables import ERROR as ERROR_POLICY
from cdcavro.table.tables import Tables
from cdcavro.wire.formats import get_format

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import tzinfo
    from typing import Unpack

    from pyspark.sql import Column, DataFrame

    from cdcavro.table.columns.overrides import TypeOverrides
    from cdcavro.table.writing.typed import TypedChange

    Batches = Iterable[pa.RecordBatch]

_ROW: Final = (
    ("number", pa.int32(), IntegerType()),
    ("table", pa.string(), StringType()),
    ("version", pa.int32(), IntegerType()),
    ("key", pa.binary(), BinaryType()),
    ("payload", pa.binary(), BinaryType()),
)
_ERROR: Final = StructType([StructField(field.name, StringType()) for field in ERROR])


class TableOptions(TypedDict, total=False):
    """The arguments of `cdcavro.Tables`."""

    given: TypeOverrides
    zone: tzinfo | None
    on_misfit: str
    decimals: str
    times: str
    binaries: str
    table: str | None


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
    `to_tables`. `rejects` has everything that is no row: the columns message, place (if given), change (binary, null for
    what is no message at all) and error. `messages` is read twice, first to learn the tables: persist it if that is
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

    def surveyed(batches: Batches) -> Batches:
        survey = Survey(format, zone, unavailable, given_table)
        for batch in batches:
            outlines = survey.outlines(raw_bytes(batch.column(0)), Places(batch).every())
            yield pa.RecordBatch.from_struct_array(pa.array(list(outlines), OUTLINE_TYPE))

    def typed(batches: Batches) -> Batches:
        typer = MessageTyper(format, learned, unavailable=unavailable, is_all_learned=True)
        for batch in batches:
            yield from _Typing(typer, batch, is_strict=is_strict, is_by_topic=given_table.by_topic).batches()

    faults = learn(learned, texts.mapInArrow(in_worker(surveyed), OUTLINE))
    row = [StructField(name, type) for name, _, type in _ROW]
    rest = [*texts.schema.fields, StructField("change", BinaryType()), StructField("error", _ERROR)]
    every = StructType([*row, *[StructField(field.name, field.dataType) for field in rest]])
    outcomes = texts.mapInArrow(in_worker(typed), every)
    rows = outcomes.where("error is null").select(*[field.name for field in row])
    rejects = outcomes.where("error is not null").select(*[field.name for field in rest])
    return TypedTables(rows, rejects, learned.tables, faults)


class _Typing:
    """The typing of one batch: messages of known patterns by the engine, and what it leaves one by one."""

    def __init__(self, typer: MessageTyper, batch: pa.RecordBatch, *, is_strict: bool, is_by_topic: bool) -> None:
        self._typer, self._batch, self._is_strict = typer, batch, is_strict
        self._places = Places(batch)
        self._is_able = not (is_by_topic and "topic" in self._places.names)
        self._rows: list[TypedChange] = []
        self._refused: list[tuple[int, bytes | None, dict[str, str | None]]] = []

    def batches(self) -> Batches:
        """Yield the rows, and what is none, with the error."""
        texts = slices_of(self._batch.column(0))
        places = self._places.encoded() if self._is_able else None
        for i in take(self._typer, texts, places, is_able=self._is_able):
            raw = None if i is None else texts.get(i)
            if i is None:
                yield self._made()
            elif raw is not None:
                self._take(i, raw)
        yield self._made()
        if self._rows:
            yield self._left()
        if self._refused:
            yield self._rejects()

    def _take(self, i: int, message: bytes) -> None:
        """Take a message the exact way."""
        try:
            rows, refused = self._typer.write(message, self._places.get(i))
        except MessageError as error:
            self._refused.append((i, None, error_fields(error)))
            return
        self._rows += rows
        for change, fault in refused:
            if self._is_strict and isinstance(fault, MisfitError):
                raise fault
            self._refused.append((i, change.to_avro(), refusal(change, fault)))

    def _made(self) -> pa.RecordBatch:
        """Return the rows that the engine made."""
        rows = MadeRows(*self._typer.made())
        number = rows.fact(lambda table, _: table.number, pa.int32())
        name = rows.fact(lambda table, _: table.schema.table.table, pa.string())
        version = rows.fact(lambda _, schema: schema.version, pa.int32())
        return self._batch_of([number, name, version, rows.key, rows.payload])

    def _left(self) -> pa.RecordBatch:
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
        return self._named([*none, *own, pa.array(changes, pa.binary()), pa.array(errors, ERROR)])

    def _batch_of(self, rows: Sequence[pa.Array]) -> pa.RecordBatch:
        others = [*[column.type for column in self._batch.columns], pa.binary(), ERROR]
        return self._named([*rows, *[pa.nulls(len(rows[0]), type) for type in others]])

    def _named(self, columns: Sequence[pa.Array]) -> pa.RecordBatch:
        names = [*[name for name, _, _ in _ROW], *self._batch.schema.names, "change", "error"]
        return pa.RecordBatch.from_arrays(columns, names)

"""A typed batch of messages or changes: rows of known patterns by the engine, and what it leaves one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

import pyarrow as pa
from pyspark.sql.types import BinaryType, IntegerType, StringType, StructField, StructType

from cdcavro.arrow.arrays import slices_of
from cdcavro.errors import MessageError, MisfitError
from cdcavro.lake.learning import refusal_fields
from cdcavro.lake.placing import EngineRows, Places, take_messages
from cdcavro.spark.functions import ERROR

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyspark.sql import DataFrame

    from cdcavro.table.tables import TypedChange
    from cdcavro.table.writing.message_typer import MessageTyper, Refused

    Batches = Iterable[pa.RecordBatch]

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

"""Typed tables on Spark: writing changes as payloads of their table's versions, and reading all under one version."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import functions as sf

from cdcavro.change.model import DDL, DML, Change, replace
from cdcavro.change.order import in_order
from cdcavro.change.values.modes import ADAPTIVE_TIME_MICROSECONDS, BYTES, PRECISE, checked_modes
from cdcavro.errors import CdcAvroError, MisfitError, shown
from cdcavro.spark.arrow_udf import column_function, raw_bytes
from cdcavro.spark.changes import KEY, KEY_TYPE, key_fields
from cdcavro.spark.functions import ERROR
from cdcavro.table.evolution.evolve import NONE_GIVEN
from cdcavro.table.names import has_row_of_table
from cdcavro.table.notes import notes_of
from cdcavro.table.tables import ERROR as ERROR_POLICY
from cdcavro.table.tables import KEEP, Tables

if TYPE_CHECKING:
    from datetime import tzinfo

    from pyspark.sql import DataFrame

    from cdcavro.table.columns.overrides import TypeOverrides
    from cdcavro.table.history import Table
    from cdcavro.table.names import GivenTable

OUTLINE: Final = f"digest binary, at struct<{KEY}>, outline binary"
TYPED: Final = (
    "typed array<struct<number: int, table: string, version: int, key: binary, payload: binary>>,"
    " error struct<format: string, path: string, message: string>"
)
OUTLINE_TYPE: Final = pa.struct([("digest", pa.binary()), ("at", KEY_TYPE), ("outline", pa.binary())])
_TYPED: Final = pa.list_(
    pa.struct(
        [
            ("number", pa.int32()),
            ("table", pa.string()),
            ("version", pa.int32()),
            ("key", pa.binary()),
            ("payload", pa.binary()),
        ]
    )
)


@dataclass(frozen=True)
class TypedTables:
    """The tables of a frame of changes.

    Attributes: `frame`, the row changes, with the columns number (int, of the table), table (string, its
    newest name), version (int), key and payload (binary); `rejects`, the changes that contradict their
    table, with the columns change (binary) and error (struct of format, path, message); `tables` (list of
    `Table`), with all their versions; `faults` (list of pairs of `Change` and error), the statements that
    were not understood and changed nothing.
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
    modes = checked_modes(decimals, times, binaries)
    learned = Tables(given=given, zone=zone, on_misfit=on_misfit, table=table, **modes._asdict())
    given_table = learned.given_table

    def outlined(payloads: pa.Array) -> pa.Array:
        return _outlines(payloads, given_table)

    outlines = changes.select(column_function(outlined, OUTLINE, "cdc_outline")(col).alias("o")).where("o is not null")
    faults = learn(learned, outlines.select("o.*"))

    def typed(payloads: pa.Array) -> pa.Array:
        return _typed_batch(payloads, learned, is_strict=on_misfit == ERROR_POLICY)

    function = column_function(typed, TYPED, "cdc_typed").asNondeterministic()
    outcomes = changes.select(sf.col(col).alias("change"), function(col).alias("outcome"))
    rows = outcomes.select(sf.explode("outcome.typed").alias("typed")).select("typed.*")
    rejects = outcomes.where("outcome.error is not null").select("change", "outcome.error")
    return TypedTables(rows, rejects, learned.tables, faults)


def learn(tables: Tables, outlines: DataFrame) -> list[tuple[Change, CdcAvroError]]:
    """Let tables learn from a frame of outlines, in order; return the statements that were not understood.

    The columns are those of `outline_of`. Of outlines with the same digest only the first of each topic partition or
    file is needed.
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


def _outlines(payloads: pa.Array, given: GivenTable) -> pa.Array:
    """Return what each change states about its table: an outline, a digest that equal outlines share, and its place."""
    outlines = [None if raw is None else outline_of(given.named(Change.from_avro(raw))) for raw in raw_bytes(payloads)]
    return pa.array(outlines, OUTLINE_TYPE)


def outline_of(change: Change) -> dict[str, Any] | None:
    """Return what a change states about its table, if it does: its digest, its order key, and the outline."""
    if not has_row_of_table(change) and change.op not in DDL:
        return None
    at = key_fields(change)
    blank = change
    if change.op in DML:
        names = {} if change.columns is not None else _names(change)
        blank = Change(op=change.op, source=change.source, key=change.key, columns=change.columns, after=names)
    digest = hashlib.sha256(blank.to_avro()).digest()
    kept = replace(
        blank,
        position=change.position,
        event_time=change.event_time,
        snapshot=change.snapshot,
        place=change.place,
        row=change.row,
    )
    return {"digest": digest, "at": at, "outline": kept.to_avro()}


def _names(change: Change) -> dict[str, None]:
    return {name: None for image in (change.before, change.after) if image is not None for name in image}


def refusal(change: Change, error: CdcAvroError) -> dict[str, str | None]:
    """Return the fields of the error for which a change is refused."""
    return {"format": change.source.format, "path": getattr(error, "path", None), "message": str(error)}


def _typed_batch(payloads: pa.Array, tables: Tables, *, is_strict: bool) -> pa.Array:
    typed: list[list[dict[str, Any]] | None] = []
    errors: list[dict[str, str | None] | None] = []
    for raw in raw_bytes(payloads):
        change = None if raw is None else tables.named(Change.from_avro(raw))
        rows, error = (None, None) if change is None else _typed(change, tables, is_strict=is_strict)
        typed.append(rows)
        errors.append(error)
    arrays = [pa.array(typed, _TYPED), pa.array(errors, ERROR)]
    return pa.StructArray.from_arrays(arrays, ["typed", "error"])


def _typed(
    change: Change, tables: Tables, *, is_strict: bool
) -> tuple[list[dict[str, Any]] | None, dict[str, str | None] | None]:
    try:
        typed_changes = tables.write(change, tables.find(change))
    except CdcAvroError as error:
        if is_strict and isinstance(error, MisfitError):
            raise
        return None, refusal(change, error)
    return [
        {
            "number": typed.table.number,
            "table": typed.table.schema.table.table,
            "version": typed.schema.version,
            "key": typed.key,
            "payload": typed.payload,
        }
        for typed in typed_changes
    ], None

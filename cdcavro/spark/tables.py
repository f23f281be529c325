"""Typed tables on Spark: what is made of changes, and what these state about their tables."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import functions as sf

from cdcavro.change.model import DDL, DML, Change, replace
from cdcavro.change.order import in_order
from cdcavro.errors import CdcAvroError, shown
from cdcavro.spark.changes import KEY, KEY_TYPE, key_fields
from cdcavro.table.history import notes_of
from cdcavro.table.names import has_row_of_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from cdcavro.table.history import Table
    from cdcavro.table.tables import Tables

OUTLINE: Final = f"digest binary, at struct<{KEY}>, outline binary"
OUTLINE_TYPE: Final = pa.struct([("digest", pa.binary()), ("at", KEY_TYPE), ("outline", pa.binary())])


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

"""Columns of native tables: how a table gets those of a version, and what rows that stand have in new ones."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from cdcavro.arrow.record_batches import VersionPayloads, fill_older_values, read_batch, reading_for
from cdcavro.lake.evolution import EVOLVE, LENIENT, TRY_EVOLVE, same_column, steps_to
from cdcavro.lake.lake_columns import wanted_columns
from cdcavro.lake.sql_statements import ADOPTED
from cdcavro.sync.native.row_images import in_lake, parts
from cdcavro.table.older_fields import ROW, heirs

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from cdcavro.lake.evolution import Step
    from cdcavro.sync.native.native_table import NativeLake, NativeTable
    from cdcavro.table.table_schema import TableSchema


def prepare(
    lake: NativeLake,
    table: NativeTable,
    schema: TableSchema,
    own: Mapping[str, str],
    behavior: str,
    properties: Mapping[str, str],
) -> list[Step]:
    """Create a lake table, or change it so that it has the columns of a version; return the steps that were taken.

    A new table has `properties` besides the lake's. Raises `SchemaError` for a step that the behavior or the lake does
    not allow, before the first step is taken.
    """
    wanted, known = wanted_columns(schema), table.properties()
    if known is None:
        table.create(wanted, own, {**lake.properties([one.name for one in wanted]), **properties})
        known = table.properties() or {}
    if behavior in (EVOLVE, TRY_EVOLVE) and ADOPTED in known:
        # The table begins anew for the pipeline that adopted it, and may yet get columns that the lake table has.
        behavior = LENIENT
    steps = steps_to(schema.table.table, table.columns(), wanted, behavior, lake.can_widen)
    needed = lake.properties_for(steps)
    off = {name: value for name, value in needed.items() if known.get(name, "none") in ("none", "false")}
    table.alter(steps, off)
    return steps


def fill(table: NativeTable, schema: TableSchema, before: int, kept: Collection[str] = frozenset()) -> None:
    """Give the rows of versions up to `before` what the newest version reads in their payloads.

    Columns that came since get their default, and columns that took over from retired ones get the values of these,
    where that is exact. Rows that are merged later have both already. Columns of the lake that are in `kept` are left
    alone.
    """
    present, record = table.columns(), schema.record
    named = [(one.field, same_column(present, one)) for one in wanted_columns(schema)]
    held = {field: found.name for field, found in named if found is not None and found.name not in kept}
    stated = {field["name"] for field in record["fields"] if field.get("default") is not None}
    added = [one.field for one in schema.all_columns if one.since > before and one.field in stated.intersection(held)]
    is_retired = any(one.until is not None and one.until >= before for one in schema.all_columns)
    is_inherited = is_retired and bool(heirs((field["name"], field) for field in record["fields"]))
    if not added and not is_inherited:
        return
    defaults = {held[field]: value for field, value in _defaults(schema).items() if field in added}

    def transform(rows: pa.RecordBatch) -> pa.RecordBatch:
        values = dict(zip(rows.schema.names, rows.columns, strict=True))
        for name, default in defaults.items():
            column = default.take(pa.repeat(0, rows.num_rows))
            values[name] = in_lake(column, rows.schema.field(name).type, name)
        if is_inherited:
            values |= {name: value for name, value in _inherited(values, schema).items() if name not in kept}
        return pa.RecordBatch.from_arrays(list(values.values()), schema=rows.schema)

    table.rewrite(transform)


def _defaults(schema: TableSchema) -> dict[str, pa.Array]:
    """Return the values that a payload of no column has under a version, each in an array, by fields."""
    record = schema.record
    nothing: dict[str, Any] = {name: record[name] for name in ("type", "name", "namespace") if name in record}
    payloads = VersionPayloads([json.dumps(nothing | {"fields": []})], schema.row.json)
    column = payloads.translate(pa.array([0], pa.int32()), pa.array([b""]))
    values = parts(read_batch(column, reading_for(schema, ROW)))
    return dict(zip([field["name"] for field in record["fields"]], values.values(), strict=True))


def _inherited(values: Mapping[str, pa.Array], schema: TableSchema) -> dict[str, pa.Array]:
    """Return the columns of rows, those that took over from retired ones with the values of these."""
    names = {column.field: column.name for column in wanted_columns(schema)}
    fields = [field for field in schema.record["fields"] if names.get(field["name"]) in values]
    columns = [values[names[field["name"]]] for field in fields]
    filled = fill_older_values(columns, fields)
    return {names[field["name"]]: column for field, column in zip(fields, filled, strict=True)}

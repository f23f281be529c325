"""Typed tables in tests: schemas of a few words, and payloads read back by fastavro under the true names."""

from __future__ import annotations

import datetime as dt
import io
import json
from decimal import Decimal
from typing import Any

import fastavro

from cdcavro.avro.schema import Schema
from cdcavro.change.model import Column, Source
from cdcavro.table.ddl.steps import TableName
from cdcavro.table.evolution.evolve import create_table
from cdcavro.table.schema import TableSchema
from cdcavro.table.writer import TableWriter

SOURCE = Source(database="shop", table="t")
_RAW = {"timestamp-micros": 6, "local-timestamp-micros": 6, "timestamp-millis": 3}


def table(*columns: str, key: tuple[str, ...] = (), name: str = "t") -> TableSchema:
    """Return the first version of a table whose columns are given as `"name type"`."""
    made = [Column(name=one.rpartition("|")[0], type=one.rpartition("|")[2]) for one in columns]
    return create_table(TableName("shop", None, name), made, key, SOURCE)


def write(schema: TableSchema, row: dict[str, Any], source: Source = SOURCE) -> bytes:
    """Return a row as a payload."""
    return TableWriter(schema, source, None).row(row)


def read(payload: bytes, writer: Schema, reader: Schema | None = None) -> dict[str, Any]:
    """Read a payload with fastavro, which must use all of its bytes."""
    stream = io.BytesIO(payload)
    made = fastavro.schemaless_reader(stream, _parsed(writer), None if reader is None else _parsed(reader))
    assert stream.read() == b""
    return made


def read_row(payload: bytes, writer: TableSchema, reader: TableSchema | None = None) -> dict[str, Any]:
    """Read a row with fastavro under the true names of the columns; a retired one as `name<until`."""
    reader = reader or writer
    made = read(payload, writer.row, reader.row)
    named = {}
    for one in reader.all_columns:
        key = one.name if one.until is None else f"{one.name}<{one.until}"
        assert key not in named
        named[key] = filled(made[one.field], one.avro)
    return named


def filled(value: Any, avro: Any) -> Any:
    """Return a value; a default, which fastavro gives as it stands in the schema's JSON, as what it means."""
    unit = avro.get("logicalType") if isinstance(avro, dict) else None
    if isinstance(value, str) and "bytes" in (avro, avro.get("type") if isinstance(avro, dict) else None):
        value = value.encode("iso-8859-1")
        if unit == "decimal":
            return Decimal(f"{int.from_bytes(value, 'big', signed=True)}e-{avro.get('scale', 0)}")
    if type(value) is int and unit == "date":
        return dt.date(1970, 1, 1) + dt.timedelta(days=value)
    if type(value) is int and unit == "time-micros":
        return (dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=value)).time()
    if type(value) is int and unit in _RAW:
        since = dt.timedelta(microseconds=value * 10 ** (6 - _RAW[unit]))
        made = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + since
        return made.replace(tzinfo=None) if unit.startswith("local-") else made
    return value


def _parsed(schema: Schema) -> Any:
    return fastavro.parse_schema(json.loads(schema.json), named_schemas={})

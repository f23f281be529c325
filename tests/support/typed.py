"""Typed tables in tests: short notation for schemas, and payloads read back by fastavro under the true names."""

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
from cdcavro.table.table_schema import TableSchema
from cdcavro.table.writing.table_writer import TableWriter

SOURCE = Source(database="shop", table="t")
_RAW = {"timestamp-micros": 6, "local-timestamp-micros": 6, "timestamp-millis": 3}


def table(*columns: str, key: tuple[str, ...] = (), name: str = "t") -> TableSchema:
    """Return the first version of a table; each column is written as `"name|type"`."""
    declared = [Column(name=column.rpartition("|")[0], type=column.rpartition("|")[2]) for column in columns]
    return create_table(TableName("shop", None, name), declared, key, SOURCE)


def write(schema: TableSchema, row: dict[str, Any], source: Source = SOURCE) -> bytes:
    """Return a row as a payload."""
    return TableWriter(schema, source, None).row(row)


def read(payload: bytes, writer: Schema, reader: Schema | None = None) -> dict[str, Any]:
    """Return a payload as fastavro reads it; all bytes must be used."""
    stream = io.BytesIO(payload)
    datum = fastavro.schemaless_reader(stream, _parsed(writer), None if reader is None else _parsed(reader))
    assert stream.read() == b""
    return datum


def read_row(payload: bytes, writer: TableSchema, reader: TableSchema | None = None) -> dict[str, Any]:
    """Return a row as fastavro reads it, by the true names of its columns; a retired column is `name<until`."""
    reader = reader or writer
    row = read(payload, writer.row, reader.row)
    named = {}
    for column in reader.all_columns:
        key = column.name if column.until is None else f"{column.name}<{column.until}"
        assert key not in named
        named[key] = filled(row[column.field], column.avro)
    return named


def filled(value: Any, avro: Any) -> Any:
    """Return a value; a default, which fastavro returns as it is in the schema's JSON, is converted to its meaning."""
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
        moment = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + since
        return moment.replace(tzinfo=None) if unit.startswith("local-") else moment
    return value


def _parsed(schema: Schema) -> Any:
    return fastavro.parse_schema(json.loads(schema.json), named_schemas={})

"""Shards of rows by the rules of DataHub: of the key's values, without a key of the table's name, or at random.

They are those of `cdcavro.shard` for a key of integers, texts and decimals. A key with a value of another type, or one
that its type cannot carry, is taken as it is encoded.
"""

from __future__ import annotations

import zlib
from decimal import Context, Decimal
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from cdcavro.avro.binary import Decoder
from cdcavro.avro.logical import logical_type
from cdcavro.avro.schema import parse_schema
from cdcavro.avro.types import Primitive, Record, Union
from cdcavro.exact.jsontext import render
from cdcavro.spark.arrow_udf import column_function, raw_bytes
from cdcavro.table.schema import UNPARSED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column

    from cdcavro.avro.schema import Schema
    from cdcavro.avro.types import Type
    from cdcavro.table.ddl.steps import TableName

BLOB: Final = "blob"
TUPLE: Final = "tuple"
STRATEGIES: Final = (BLOB, TUPLE)
_EXACT: Final = Context(prec=1_000_000)


def shard_column(strategy: str, count: int, table: TableName, keys: Mapping[int, str]) -> Column:
    """Return the column of the shards of rows, ints from 0 to `count` - 1, made of their version, key and order.

    `keys` has the texts of the keys' schemas by version. Without a key, the shard is that of the table's name, or with
    `tuple` any, by the row's order, so that it is the same if a batch is run again.
    """

    def shards(versions: pa.Array, payloads: pa.Array, orders: pa.Array) -> pa.Array:
        parsed = {version: parse_schema(text) for version, text in keys.items()}
        name = [table.database, table.schema, table.table]
        rows = zip(versions.to_pylist(), raw_bytes(payloads), raw_bytes(orders), strict=True)
        found = [
            zlib.crc32(render([*name, *key_texts(key, parsed[version])]))
            if key is not None
            else zlib.crc32(render(name) if strategy == BLOB else order or b"")
            for version, key, order in rows
        ]
        return pa.array([one % count for one in found], pa.int32())

    return column_function(shards, "int", "cdc_shard", from_json={0: pa.array})("version", "key", "order")


def key_texts(payload: bytes, schema: Schema) -> list[str]:
    """Return the values of a key as texts, or its bytes as one if some value is none of those that `shard` spells alike."""
    record, source, texts = schema.root, Decoder(payload), []
    for field in record.fields if isinstance(record, Record) else ():
        if field.name == UNPARSED:
            continue
        branches = field.type.branches if isinstance(field.type, Union) else (field.type,)
        branch = branches[source.read_index(len(branches), "a branch")] if len(branches) > 1 else branches[0]
        text = _text(source, branch)
        if text is None:
            return [payload.hex()]
        texts.append(text)
    return texts


def _text(source: Decoder, declared: Type) -> str | None:
    """Read a value as text, None if it is of another type."""
    if not isinstance(declared, Primitive):
        return None
    logical = logical_type(declared)
    if declared.name in ("int", "long") and logical is None:
        return str(source.read_long())
    if declared.name == "string" and logical is None:
        return source.read_bytes().decode()
    if declared.name == "bytes" and logical is not None:
        unscaled = Decimal(int.from_bytes(source.read_bytes(), "big", signed=True))
        return format(unscaled.scaleb(-logical.scale, _EXACT), "f")
    return None

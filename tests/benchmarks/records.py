"""Measures generated records: microseconds per message for each kind and method.

    python tests/benchmarks/records.py

The messages are one of OMS Canal, and the change of a row with 15 columns in its envelope; each figure is the
best of several rounds.
"""

from __future__ import annotations

import json
import sys
import types
from importlib.util import find_spec
from timeit import repeat
from typing import TYPE_CHECKING, Any

import cdcavro
from cdcavro.records.codegen import KINDS, NamedSchema, generate
from cdcavro.wire.formats import get_format

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cdcavro.avro.schema import Schema

MESSAGE = (
    b'{"database":"shop","table":"orders","pkNames":["id"],"isDdl":false,"type":"UPDATE","es":1669600000000,'
    b'"ts":1669600000123,"sql":"","sqlType":{"id":-5,"amount":3,"note":12,"created":93},"mysqlType":{"id":"bigint",'
    b'"amount":"decimal(10,2)","note":"varchar(100)","created":"datetime"},"data":[{"id":1234567,"amount":1.20,'
    b'"note":"some text in it","created":"2024-02-29 12:00:00"}],"old":[{"amount":0.99}]}'
)
ROUNDS, TIMES = 5, 2000


def classes(schema: Schema, name: str) -> Iterator[tuple[str, Any]]:
    """Yield the class of the outermost record, for each kind whose library is installed."""
    for kind in KINDS[:-1]:
        if kind == "dataclass" or find_spec(kind) is not None:
            module = types.ModuleType(f"{name}_{kind}")
            sys.modules[module.__name__] = module
            source = compile(generate([NamedSchema(name, schema)], kind), name, "exec", dont_inherit=True)
            exec(source, vars(module))
            yield kind, module.CODEC._listed[-1]


def best(call: Callable[[], Any]) -> float:
    """Return the microseconds that a call takes at best."""
    return min(repeat(call, number=TIMES, repeat=ROUNDS)) / TIMES * 1e6


def typed() -> tuple[Schema, bytes]:
    """Return the envelope schema of a table and the payload of a row change."""
    tables = cdcavro.Tables()
    columns = {
        f"c{i}": kind for i, kind in enumerate(["bigint", "decimal(10,2)", "varchar(20)", "datetime", "date"] * 3)
    }
    values = dict(zip(columns, ["5", "1.20", "text", "2024-02-29 12:00:00", "2024-02-29"] * 3, strict=True))
    message = {
        "type": "INSERT",
        "database": "s",
        "table": "t",
        "id": 1,
        "es": 1,
        "mysqlType": columns,
        "data": [values],
    }
    (change,) = cdcavro.to_changes(json.dumps(message), "canal")
    (typed_change,) = tables.add(change)
    return typed_change.schema.envelope, typed_change.payload


def main() -> None:
    """Print a table."""
    print(f"{'':32}{'from_avro':>10}{'to_avro':>10}{'from_json':>10}{'to_json':>10}")
    schema, payload = typed()
    for label, declared, raw in (
        ("oms_canal", cdcavro.load_schema("oms_canal"), cdcavro.encode(MESSAGE, "oms_canal")),
        ("table", schema, payload),
    ):
        for kind, cls in classes(declared, label):
            record = cls.from_avro(raw)
            assert record.to_avro() == raw
            text = record.to_json()
            calls = (lambda: cls.from_avro(raw), record.to_avro, lambda: cls.from_json(text), record.to_json)  # noqa: B023
            print(f"{f'{label}, {len(raw)} bytes, {kind}':32}" + "".join(f"{best(call):10.1f}" for call in calls))
    own = get_format("oms_canal")
    raw = own.encode(MESSAGE)
    print(f"{'cdcavro read, encode, decode':32}{best(lambda: own.read(raw)):10.1f}{'':10}", end="")
    print(f"{best(lambda: own.encode(MESSAGE)):10.1f}{best(lambda: own.decode(raw)):10.1f}")


if __name__ == "__main__":
    main()

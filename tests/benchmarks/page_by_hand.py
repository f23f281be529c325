"""What one writes by hand with `json` and fastavro, and what `page.py` measures `cdcavro` beside.

    python tests/benchmarks/page_by_hand.py encode SCHEMA LINES AVRO
    python tests/benchmarks/page_by_hand.py decode AVRO LINES
    python tests/benchmarks/page_by_hand.py rows SCHEMA LINES AVRO

`encode` and `decode` are messages to Avro and back, in the wire schema. `rows` are typed rows of the one table, whose columns
are known beforehand, and as in `from_json` a value that its type does not take becomes null. Nothing else is checked.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro

CASTS: dict[str, Callable[[Any], Any]] = {
    "id": int,
    "quantity": int,
    "price": lambda number: Decimal(str(number)),
    "amount": lambda number: Decimal(str(number)),
    "status": str,
    "remark": str,
    "made": datetime.fromisoformat,
    "due": date.fromisoformat,
}


def messages(path: str) -> Iterator[dict[str, Any]]:
    """Yield the messages of a file of JSON lines."""
    with Path(path).open("rb") as lines:
        yield from map(json.loads, lines)


def write(schema: str, records: Iterator[dict[str, Any]], path: str, codec: str) -> None:
    """Write records to an Avro file."""
    with Path(path).open("wb") as out:
        fastavro.writer(out, json.loads(Path(schema).read_text()), records, codec)


def encode(schema: str, lines: str, out: str) -> None:
    """Write messages as Avro."""
    write(schema, ({**message, "extras": {}} for message in messages(lines)), out, "null")


def decode(avro: str, out: str) -> None:
    """Write messages of Avro as JSON lines."""
    with Path(avro).open("rb") as stream, Path(out).open("w") as lines:
        for message in fastavro.reader(stream):
            # Members that were absent are null, so nulls are left out.
            stated = {name: value for name, value in message.items() if value is not None and name != "extras"}
            lines.write(json.dumps(stated) + "\n")


def typed(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with values of its columns' types."""
    found = dict.fromkeys(CASTS)
    for name, value in row.items():
        with suppress(ValueError, ArithmeticError):
            found[name] = None if value is None else CASTS[name](value)
    return found


def rows(schema: str, lines: str, out: str) -> None:
    """Write typed rows before and after each update as Avro."""

    def changes() -> Iterator[dict[str, Any]]:
        for message in messages(lines):
            (row,), (old,) = message["data"], message["old"]
            source = {"db": message["database"], "table": message["table"], "ts_ms": message["es"]}
            before, after = typed(row | old), typed(row)
            yield {"before": before, "after": after, "source": source, "op": "u", "ts_ms": message["ts"]}

    write(schema, changes(), out, "deflate")


if __name__ == "__main__":
    {"encode": encode, "decode": decode, "rows": rows}[sys.argv[1]](*sys.argv[2:])

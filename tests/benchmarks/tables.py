"""How long typed changes and typed payloads take, as a ratio to the same written by hand with json + fastavro.

    python tests/benchmarks/tables.py

The baseline is what one would write for one known table: `json.loads`, the values turned column by
column into what fastavro takes (Decimal, datetime), and `fastavro.schemaless_writer` with the same
envelope. It checks nothing. Each figure is the median of rounds in which the two sides take turns.
"""

from __future__ import annotations

import io
import json
import statistics
import time
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import fastavro

import cdcavro

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS = 15
COLUMNS = {
    "id": ("bigint", lambda i: str(10**9 + i)),
    "customer": ("int", lambda i: str(i)),
    "quantity": ("smallint", lambda i: str(i % 9)),
    "amount": ("decimal(12,2)", lambda i: f"{i}.{i % 90 + 10}"),
    "tax": ("decimal(12,4)", lambda i: f"{i}.{i % 9000 + 1000}"),
    "price": ("double", lambda i: f"{i}.5"),
    "status": ("varchar(20)", lambda i: "paid"),
    "remark": ("text", lambda i: "a remark of some length, as they are"),
    "city": ("varchar(50)", lambda i: "北京"),
    "street": ("varchar(100)", lambda i: f"Example Street {i}"),
    "born": ("date", lambda i: f"1990-01-{i % 28 + 1:02}"),
    "made": ("datetime", lambda i: f"2024-02-29 12:00:{i % 60:02}"),
    "sent": ("datetime(3)", lambda i: f"2024-02-29 12:00:{i % 60:02}.123"),
    "paid": ("timestamp", lambda i: f"2024-02-29 12:00:{i % 60:02}"),
    "flag": ("tinyint(1)", lambda i: str(i % 2)),
    "nothing": ("varchar(20)", lambda i: None),
}
TYPES = {name: type for name, (type, _) in COLUMNS.items()}
CODES = dict.fromkeys(COLUMNS, 12)


def messages(count: int, columns: int) -> list[bytes]:
    """Give updates as Canal sends them, with so many columns."""
    found = []
    names = [(f"{name}_{k}" if k else name, name) for k in range(columns // len(COLUMNS) + 1) for name in COLUMNS]
    names = names[:columns]
    for i in range(count):
        row = {name: COLUMNS[kind][1](i) for name, kind in names}
        message = {
            "data": [row],
            "database": "shop",
            "es": 1700000000000 + i,
            "gtid": "",
            "id": i,
            "isDdl": False,
            "mysqlType": {name: TYPES[kind] for name, kind in names},
            "old": [{"quantity": "1"}],
            "pkNames": ["id"],
            "sql": "",
            "sqlType": {name: 12 for name, _ in names},
            "table": "orders",
            "ts": 1700000001000 + i,
            "type": "UPDATE",
        }
        found.append(json.dumps(message, separators=(",", ":"), ensure_ascii=False).encode())
    return found


class ByHand:
    """json + fastavro for this one table."""

    def __init__(self, schema: Any, columns: dict[str, str]) -> None:
        self._schema = fastavro.parse_schema(json.loads(schema.json))
        self._turn = {name: _TURN[type.split("(")[0]] for name, type in columns.items()}

    def change(self, text: bytes) -> dict[str, Any]:
        """Turn text into a dict of typed values."""
        message = json.loads(text)
        (row,), (old,) = message["data"], message["old"]
        after = {name: None if value is None else self._turn[name](value) for name, value in row.items()}
        before = after | {name: None if value is None else self._turn[name](value) for name, value in old.items()}
        return {
            "before": before,
            "after": after,
            "source": {"db": message["database"], "table": message["table"], "ts_ms": message["es"]},
            "op": "u",
            "ts_ms": message["ts"],
        }

    def payload(self, text: bytes) -> bytes:
        """Turn text into a payload of the envelope."""
        out = io.BytesIO()
        fastavro.schemaless_writer(out, self._schema, self.change(text))
        return out.getvalue()


_TURN: dict[str, Callable[[str], Any]] = {
    "bigint": int,
    "int": int,
    "smallint": int,
    "tinyint": int,
    "decimal": Decimal,
    "double": float,
    "varchar": str,
    "text": str,
    "date": date.fromisoformat,
    "datetime": datetime.fromisoformat,
    "timestamp": lambda text: datetime.fromisoformat(text).replace(tzinfo=UTC),
}


def timed(function: Callable[[bytes], Any], given: list[bytes]) -> float:
    """Give the microseconds per call."""
    start = time.perf_counter()
    for one in given:
        function(one)
    return (time.perf_counter() - start) / len(given) * 1e6


def paired(ours: Callable[[], float], theirs: Callable[[], float]) -> tuple[float, float]:
    """Let two measurements take turns and give the median of each."""
    rounds = [(ours(), theirs()) for _ in range(ROUNDS)]
    return statistics.median(one for one, _ in rounds), statistics.median(other for _, other in rounds)


def main() -> None:
    """Print the table."""
    print(f"{'columns':>7}{'bytes':>7}  {'step':20}{'µs':>8}{'by hand':>9}{'ratio':>7}")
    for columns in (8, 16, 64):
        texts = messages(100, columns)
        tables = cdcavro.Tables(zone=UTC)

        def typed(text: bytes) -> list[bytes]:
            changes = cdcavro.to_changes(text, "canal", zone=UTC)
            return [one.payload for change in changes for one in tables.add(change)]

        typed(texts[0])
        schema = tables.tables[0].schema
        hand = ByHand(schema.envelope, {one.name: one.type or "" for one in schema.columns})
        size = sum(map(len, texts)) // len(texts)
        assert len(hand.payload(texts[1])) > size // 10
        for step, ours, theirs in (
            ("text to changes", lambda text: cdcavro.to_changes(text, "canal", zone=UTC), hand.change),
            ("text to payloads", typed, hand.payload),
        ):
            mine, other = paired(lambda: timed(ours, texts), lambda: timed(theirs, texts))
            print(f"{columns:>7}{size:>7}  {step:20}{mine:>8.1f}{other:>9.1f}{other / mine:>7.2f}")


if __name__ == "__main__":
    main()

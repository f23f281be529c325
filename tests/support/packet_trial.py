"""Packets of Canal as bytes, typed by the engine in columns and held against the exact way, one after another.

    python tests/support/packet_trial.py 100000 [SEED]

tries as many packets of the shop's changes: of one entry and of several, of one table and of many, with marks of
transactions between them; some with other values, columns, types, numbers or events, some damaged anywhere. Both ways
have to make the same rows with the same order values, and to refuse the same.
"""

from __future__ import annotations

import sys
from collections import Counter
from functools import cache
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

import cdcavro
from cdcavro.change.model import Arrival
from support.canal_packets import CLASSES, column, entry, made, packet
from support.mutations import mutated
from support.order_trial import Exact, Lanes, Message, Placer, learned, same
from support.rows_trial import VALUES, shop

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

FORMAT = "canal_protobuf"
TEXTS = [value[1:-1].encode().decode("unicode_escape", "replace") for value in VALUES if value.startswith('"')]
TEXTS = [text for text in TEXTS if text.isprintable() or text == "\0"] + [
    "1",
    "-1",
    "255",
    "1.20",
    "2024-02-29 12:00:00",
]
NUMBERS = [0, 1, -1, 7, 2**31, 2**62, 2**63 - 1, -(2**63), 1_700_000_000_000]
FILES = ["", "7", "mysql-bin.000009", "mysql-bin", "b.1999999999999999999", "b.999999999999999999", "é.3"]
MARKS = (
    lambda: entry(4400, made("TransactionBegin", executeTime=1_700_000_000_000, threadId=9), "TRANSACTIONBEGIN"),
    lambda: entry(4800, made("TransactionEnd", transactionId="12"), "TRANSACTIONEND"),
    lambda: entry(4800, made("TransactionEnd", transactionId="1" * 500), "TRANSACTIONEND"),
    lambda: entry(4850, made("Pair", key="gtid", value="b"), "GTIDLOG"),
    lambda: entry(4900, made("Pair"), "HEARTBEAT"),
)


@cache
def entries() -> list[Any]:
    """Return the entries of the shop's changes."""
    raw = [cdcavro.decode(cdcavro.encode(text, FORMAT), FORMAT) for text in shop(FORMAT)]
    bodies = [CLASSES["Messages"].FromString(CLASSES["Packet"].FromString(one).body) for one in raw]
    found = [CLASSES["Entry"].FromString(one) for body in bodies for one in body.messages]
    for i, one in enumerate(found):
        one.header.logfileName, one.header.logfileOffset = "mysql-bin.000003", 1000 + i
    return found


@cache
def entries_of_rows() -> list[Any]:
    """Return those with rows."""
    return [one for one in entries() if CLASSES["RowChange"].FromString(one.storeValue).rowDatas]


def shop_packets() -> list[bytes]:
    """Return a packet for each of the shop's entries, in their order."""
    return [packet(one) for one in entries()]


def _other_value(random: Random, change: Any) -> None:
    one = _some_column(random, change)
    one.value = random.choice(TEXTS) if random.random() < 0.8 else ""
    one.isNull = random.random() < 0.1


def _other_fact(random: Random, change: Any) -> None:
    one = _some_column(random, change)
    name, value = random.choice(
        [
            *(("mysqlType", "varchar(20)"), ("mysqlType", "bigint"), ("isKey", True), ("isKey", False), ("sqlType", 4)),
            *(("name", "another"), ("name", ""), ("updated", True), ("index", 7), ("length", 3)),
        ]
    )
    setattr(one, name, value)


def _other_columns(random: Random, change: Any) -> None:
    row = random.choice(change.rowDatas)
    for side in random.choice(((row.afterColumns,), (row.beforeColumns,), (row.afterColumns, row.beforeColumns))):
        if random.random() < 0.5 and side:
            side.pop(random.randrange(len(side)))
        elif random.random() < 0.3:
            del side[:]
        else:
            side.append(random.choice([*side, column(9, "more", "1", "int")]))


def _more_rows(random: Random, change: Any) -> None:
    for _ in range(random.choice((1, 1, 3, 20))):
        change.rowDatas.append(random.choice(change.rowDatas))
        if random.random() < 0.7:
            _other_value(random, change)


def _other_event(random: Random, change: Any) -> None:
    name, value = random.choice(
        [("eventType", number) for number in (0, 1, 2, 3, 4, 7, 13, 77)]
        + [("isDdl", True), ("sql", "x"), ("tableId", 7)]
    )
    setattr(change, name, value)


CHANGED: Sequence[Callable[[Random, Any], None]] = (
    *(_other_value, _other_value, _other_value, _other_fact, _other_columns, _more_rows, _more_rows, _other_event),
)


def _some_column(random: Random, change: Any) -> Any:
    row = random.choice(change.rowDatas)
    columns = [*row.afterColumns, *row.beforeColumns]
    return random.choice(columns) if columns else row.afterColumns.add()


def _other_header(random: Random, header: Any) -> None:
    name, value = random.choice(
        [("logfileName", one) for one in FILES]
        + [(name, one) for name in ("logfileOffset", "executeTime") for one in NUMBERS]
        + [
            ("gtid", ""),
            ("gtid", "a:7"),
            ("schemaName", ""),
            ("tableName", "other"),
            ("sourceType", 1),
            ("serverId", 9),
        ]
    )
    setattr(header, name, value)


def drawn_entry(random: Random) -> Any:
    """Return an entry, as it is or changed."""
    one = CLASSES["Entry"]()
    one.CopyFrom(random.choice(entries() if random.random() < 0.05 else entries_of_rows()))
    if random.random() < 0.1:
        _other_header(random, one.header)
    change = CLASSES["RowChange"].FromString(one.storeValue)
    if change.rowDatas and random.random() < 0.2:
        random.choice(CHANGED)(random, change)
        one.storeValue = change.SerializeToString()
    return one


def drawn_packet(random: Random) -> bytes:
    """Return a packet of some entries, with marks between, or a damaged one."""
    some = [drawn_entry(random) for _ in range(random.choice((1, 1, 1, 2, 3, 6)))]
    for _ in range(random.choice((0, 0, 1, 2))):
        number = random.choice((0, 0, 0, 1, 1, 1, 2, 3, 3, 4))
        some.insert(random.randrange(len(some) + 1), MARKS[number]())
    raw = packet(*some, **random.choice(({}, {}, {}, {"compression": "NONE"}, {"compression": "GZIP"})))
    return mutated(random, raw) if random.random() < 0.1 else raw


def drawn(random: Random, lanes: Lanes) -> Message:
    """Return a packet somewhere, or no message."""
    return None if random.random() < 0.01 else drawn_packet(random), lanes.next()


def trial(count: int, seed: int) -> Counter[str]:
    """Try packets; return what became of them."""
    random, outcomes, tried = Random(f"packets {seed}"), Counter[str](), 0
    exact, placer, lanes = Exact(FORMAT), Placer(FORMAT, learned(FORMAT)), Lanes(random)
    first = [(one, Arrival(topic="first", partition=0, offset=i)) for i, one in enumerate(shop_packets())]
    outcomes += same(placer, exact, first)
    while tried < count:
        messages = [drawn(random, lanes) for _ in range(random.choice((1, 2, 30, 100)))]
        tried += len(messages)
        outcomes += same(placer, exact, messages)
    return outcomes


def main() -> None:
    """Try as many packets as are asked for."""
    outcomes = trial(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    print(*(f"{name} {times}" for name, times in sorted(outcomes.items())), sep=", ")  # noqa: T201


if __name__ == "__main__":
    main()

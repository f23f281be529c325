"""Rows of whole batches with their order, by `Placing`, held against the exact way: one change after another under a clock.

    python tests/support/order_trial.py 100000 [SEED] [FORMAT ...]

tries as many messages of each format in several lanes, cut into batches anywhere: most as they are, some with another
value in a row, other numbers, or damaged anywhere; at places of many kinds, again and again at the same one, seldom
behind the last of the lane. Says how many rows the engine made, how many only the exact way, and what was not placed. Both
have to make the same rows with the same order values, refuse the same, and end with the same clock.
"""

from __future__ import annotations

import json
import pickle
import re
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

import pyarrow as pa

from cdcavro.change.model import DDL, DML, Arrival, replace
from cdcavro.change.order import Clock, in_order
from cdcavro.errors import CdcAvroError, MessageError
from cdcavro.lake.placing import Placing, rows_batch
from cdcavro.lake.typed_rows import TypedRow, rows_of_message, write_change
from cdcavro.table.tables import Tables
from cdcavro.table.writing.message_typer import merge_places
from cdcavro.transcoding.mapping import to_changes
from cdcavro.wire.formats import REGISTRY
from support.mutations import mutated
from support.rows_trial import ZONE, shop, with_value

if TYPE_CHECKING:
    from collections.abc import Sequence

Message = tuple[bytes | None, Arrival | None]
Row = tuple[Any, ...]
PLACE = pa.struct(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("file", pa.string()),
        ("line", pa.int64()),
    ]
)
FIELDS = Arrival.__struct_fields__
LANES = [
    *(Arrival(topic=topic, partition=partition) for topic in ("t", "u") for partition in (0, 1, 300)),
    *(Arrival(topic=topic, partition=-1) for topic in ("", "\0", "a\0b", "é😀", "t\0", "t\x01")),
    *(
        Arrival(file=file)
        for file in ("part-9.jsonl", "part-10.jsonl", "part-0010.jsonl", "", "7", "007", "x\0", "é0é00")
    ),
    *(
        Arrival(file=f"{digits}-{digits[1:]}")
        for digits in ("0" * 20, "0" * 21, "12345678901234567890", "1" * 25, "0" + "2" * 20)
    ),
    *(
        Arrival(),
        Arrival(partition=4),
        Arrival(topic="t", partition=2**31 - 1),
        Arrival(topic="x", partition=0, file="f"),
        Arrival(topic="x", partition=1, line=5),
        Arrival(topic="x", partition=2, file="f", line=9),
    ),
    *(Arrival(file=name) for name in (f"{7:020}", f"{7:020}-{'1' * 25}", f"x{7:020}{'é'}{7:020}")),
]
# Places that say no order by themselves, so that numbers have to.
VAGUE = [
    None,
    Arrival(topic="t"),
    Arrival(topic="t", offset=7),
    Arrival(file="f"),
    Arrival(line=5),
    Arrival(partition=3),
]
NUMBERS = [
    0,
    1,
    7,
    -1,
    255,
    256,
    65536,
    2**31,
    2**53,
    2**63 - 1,
    2**63,
    -(2**63),
    10**30,
    1_700_000_000_000,
    1_500_000_000_000,
]
NUMBER = re.compile(rb'(?<=":)-?[0-9]+(?=[,}])|(?<=":")[0-9]+(?=")')


@cache
def _learned(format: str) -> bytes:
    tables = Tables(zone=ZONE)
    changes = [
        replace(change, place=Arrival(file="all", line=line))
        for line, message in enumerate(shop(format), 1)
        for change in to_changes(message, format, zone=ZONE, members=False)
    ]
    for change in in_order([one for one in changes if one.op in {*DML, *DDL}]):
        try:
            tables.learn(change)
        except CdcAvroError:
            continue
    return pickle.dumps(tables)


def learned(format: str) -> Tables:
    """Return tables that have learned the shop's messages of a format."""
    return pickle.loads(_learned(format))


def batch_of(messages: Sequence[Message]) -> pa.RecordBatch:
    """Return messages and their places as Spark hands them over."""
    texts = pa.array([text for text, _ in messages], pa.binary())
    told = [None if one is None else {name: getattr(one, name) for name in FIELDS} for _, one in messages]
    return pa.RecordBatch.from_arrays([texts, pa.array(told, PLACE)], ["message", "place"])


def rows_in(batches: Sequence[pa.RecordBatch]) -> list[Row]:
    """Return the rows of batches, without the messages that they are of."""
    return [tuple(row.values())[1:] for batch in batches for row in batch.to_pylist()]


def row_of(row: TypedRow) -> Row:
    """Return a typed row as the columns have it."""
    return row.table, row.version, row.operation, row.order, row.key, row.payload, bool(row.absent)


class Exact:
    """The exact way of one message after another, with nothing of the engine's rows in it."""

    def __init__(self, format: str, state: Any = ()) -> None:
        self.format, self.tables, self.clock = format, learned(format), Clock(state)

    def take(self, message: bytes, place: Arrival | None) -> tuple[list[Row], list[str]]:
        """Return the rows of a message, or the error for which it has none."""
        try:
            changes = to_changes(message, self.format, zone=ZONE, members=False)
        except MessageError as error:
            return [], [str(error)]
        placed = [
            self.tables.with_given_table(replace(change, place=merge_places(change.place, place))) for change in changes
        ]
        try:
            pairs = [(change, write_change(self.tables, change)) for change in placed]
            return [row_of(row) for row in rows_of_message(pairs, self.clock, lambda _: [])], []
        except CdcAvroError as error:
            return [], [str(error)]


class Placed(NamedTuple):
    """What became of a batch: its rows, the messages that could not be placed, and how many changes were no rows."""

    rows: list[pa.RecordBatch]
    unplaced: list[tuple[int, CdcAvroError]]
    statements: int


class Placer:
    """A placing of batches, and what the engine leaves placed the exact way in between."""

    def __init__(self, format: str, tables: Tables, state: Any = (), dropped: Any = None) -> None:
        self.clock, self.tables = Clock(state), tables
        self.placing = Placing(format, tables, self.clock, dropped=dropped)

    @property
    def taken(self) -> int:
        """How many rows the engine made."""
        return self.placing._typer.taken

    def of_batch(self, batch: pa.RecordBatch) -> Placed:
        """Return what becomes of a batch."""
        left, unplaced, statements = [], [], 0

        def exactly(i: int, message: bytes, place: Arrival | None) -> None:
            nonlocal statements
            try:
                changes = self.placing.changes(message)
                statements += sum(change.op not in DML for change in changes)
                left.extend((i, row) for row in self.placing.rows(message, changes, place))
            except CdcAvroError as error:
                unplaced.append((i, error))

        rows = self.placing.take(batch, exactly)
        return Placed([*rows, rows_batch(left)], unplaced, statements)


def same(placer: Placer, exact: Exact, messages: Sequence[Message]) -> Counter[str]:
    """Place a batch both ways, which have to agree, and return what became of it."""
    wanted, errors = [], []
    for i, (message, place) in enumerate(messages):
        rows, refused = ([], []) if message is None else exact.take(message, place)
        wanted += rows
        errors += [(i, one) for one in refused]
    taken = placer.taken
    placed = placer.of_batch(batch_of(messages))
    assert placer.clock.state == exact.clock.state, f"{placer.clock.state} instead of {exact.clock.state}"
    found = rows_in(placed.rows)
    assert sorted(found, key=repr) == sorted(wanted, key=repr), f"{found} instead of {wanted} of {messages}"
    assert [(i, str(error)) for i, error in placed.unplaced] == errors
    by_engine = placer.taken - taken
    return Counter({"by the engine": by_engine, "only the exact way": len(found) - by_engine, "refused": len(errors)})


def with_numbers(random: Random, message: bytes) -> bytes:
    """Return a message in which a number or two outside of texts, or that is all of a text, is another."""
    for _ in range(random.choice((1, 1, 2))):
        spots = [match.span() for match in NUMBER.finditer(message)]
        if spots:
            start, end = random.choice(spots)
            number = random.choice([*NUMBERS, int(message[start:end][:40]) + random.choice((-1, 1, -1000))])
            message = message[:start] + str(number).encode() + message[end:]
    return message


class Lanes:
    """Lanes whose messages come one behind another, seldom not."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._at = dict.fromkeys(range(len(LANES)), 0)
        self._few = random.sample(range(len(LANES)), random.choice((1, 2, 5, len(LANES))))

    def next(self) -> Arrival | None:
        """Return where the next message arrives."""
        chance = self._random.random()
        if chance < 0.03:
            return self._random.choice(VAGUE)
        lane = self._random.choice(self._few)
        step = self._random.choice((0, 1, 1, 1, 2, 250)) if chance > 0.034 else -1
        self._at[lane] += step
        name = "line" if LANES[lane].file is not None and LANES[lane].topic is None else "offset"
        return replace(LANES[lane], **{name: self._at[lane]})


def drawn(random: Random, messages: Sequence[bytes], lanes: Lanes) -> Message:
    """Return a message somewhere."""
    message, chance = random.choice(messages), random.random()
    if chance < 0.01:
        return None, lanes.next()
    if chance < 0.4:
        message = with_numbers(random, message)
    elif chance < 0.5:
        message = with_value(random, message)
    elif chance < 0.55:
        message = mutated(random, message)
    return message, lanes.next()


def trial(format: str, count: int, seed: int) -> Counter[str]:
    """Try messages of a format; return what became of them."""
    random, outcomes, tried = Random(f"order {format} {seed}"), Counter[str](), 0
    while tried < count:
        exact, placer, lanes = Exact(format), Placer(format, learned(format)), Lanes(random)
        outcomes += same(
            placer, exact, [(one, Arrival(topic="first", partition=0, offset=i)) for i, one in enumerate(shop(format))]
        )
        for _ in range(20):
            messages = [drawn(random, shop(format), lanes) for _ in range(random.choice((1, 2, 30, 100)))]
            tried += len(messages)
            outcomes += same(placer, exact, messages)
            if random.random() < 0.1:
                state = json.loads(json.dumps(placer.clock.state))
                placer, exact = Placer(format, placer.tables, state), Exact(format, state)
    return outcomes


def main() -> None:
    """Try every format, or those named."""
    count, seed = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1
    for format in sys.argv[3:] or REGISTRY:
        outcomes = trial(format, count, seed)
        print(format, *(f"{name} {times}" for name, times in sorted(outcomes.items())), sep=", ", flush=True)  # noqa: T201


if __name__ == "__main__":
    main()

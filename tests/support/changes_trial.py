"""Tries changes both ways: straight to typed rows by the engine, and by `Tables`.

    python tests/support/changes_trial.py [COUNT [SEED [FORMAT ...]]]

takes so many changes of each format, most of them with a part replaced by another, the others with damaged payloads, and
says how many the engine typed, how many only the exact way, and how many were refused or are no change. What the engine
types has to be what the exact way makes. With `types` in place of a count, it takes all values in columns of all types.
"""

from __future__ import annotations

import sys
from collections import Counter
from contextlib import suppress
from functools import cache
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from cdcavro.change.model import Arrival, Change, replace
from cdcavro.errors import CdcAvroError, PayloadError
from cdcavro.exact.jsontext import parse
from cdcavro.exact.numbers import ExactNumber
from cdcavro.table.tables import Tables
from cdcavro.table.writing.message_typer import ChangeTyper, merge_places
from cdcavro.transcoding.mapping import to_changes
from cdcavro.wire.formats import REGISTRY
from support.rows_trial import BY_ENGINE, LEFT, MARK, REFUSED, TYPES, VALUES, ZONE, of_type, shop

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import tzinfo

NO_CHANGE = "no change"
Rows = list[tuple[int, int, str, bytes | None, bytes]]
# What stands in place of a part of a change.
PARTS: dict[str, list[Any]] = {
    "position": [None, (), (0,), (-1, 2**63 - 1), tuple(range(34)), tuple(range(35)), (-(2**63),)],
    "place": [
        *(None, Arrival(), Arrival(offset=-1), Arrival(file="é\0", line=0), Arrival(topic="", partition=-(2**31))),
        *(Arrival(topic="t", offset=5), Arrival(topic="t", partition=1, offset=5, file="f", line=2**63 - 1)),
    ],
    "row": [0, 1, -1, 2**31 - 1],
    "rows": [1, 0, -5, 2, 2**31 - 1],
    "event_time": [None, 0, -1, -1001, 2**63 - 1, -(2**63)],
    "system_time": [None, -999, 253402300800000000],
    "checkpoint_time": [None, 5],
    "transaction": [None, "", "é" * 70, "\0"],
    "ddl": [None, "DROP TABLE t"],
    "ddl_meta": [None, "x"],
    "changed": [None, (), ("id", "id"), ("no such",)],
    "unavailable": [None, (), ("id",)],
    "members": [None, {}, {"/x": "1", "/y": ""}, {f"/{i}": "1" for i in range(70)}],
    "snapshot": [None, True, False],
    "half": [None, "AFTER"],
    "operation": [None, "?"],
    "key": [None, (), ("id",)],
    "before": [None, {}],
    "after": [None, {}],
}
ODD = [ExactNumber(one) for one in ("5", "1.5", "-0", "1.50", "0.0", "1e5", "9" * 30, "1E400", "127", "12.345678")]


@cache
def changes_of(format: str) -> list[bytes]:
    """Return the changes of the database as payloads, as far as a format has them, each with its place."""
    found = []
    for offset, message in enumerate(shop(format)):
        told = Arrival(topic="t", partition=0, offset=offset)
        found += [
            replace(one, place=merge_places(one.place, told)).to_avro()
            for one in to_changes(message, format, zone=ZONE)
        ]
    return found


class Pair:
    """Changes by the engine, and the exact way, of tables that have learned all."""

    def __init__(self, changes: Iterable[bytes], zone: tzinfo | None = ZONE, **options: Any) -> None:
        self.tables = Tables(zone=zone, **options)
        for one in changes:
            with suppress(CdcAvroError):
                self.tables.learn(self.tables.with_given_table(Change.from_avro(one)))
        self.typer = ChangeTyper(self.tables)

    def exact(self, payload: bytes) -> Rows | str:
        """Return the rows that the exact way makes, or its error."""
        change = self.tables.with_given_table(replace(Change.from_avro(payload), members=None))
        try:
            typed = self.tables.write(change, self.tables.find(change))
        except CdcAvroError as error:
            return str(error)
        return [(one.table.number, one.schema.version, one.change.op, one.key, one.payload) for one in typed]

    def take(self, payload: bytes, *, is_learned: bool = True) -> str:
        """Take a change both ways, and return what became of it. Raises `AssertionError` if the two differ."""
        known = self.typer.type_by_pattern(payload)
        try:
            exact = self.exact(payload)
        except PayloadError:
            assert known is None, f"{payload!r} is no change"
            return NO_CHANGE
        if known is not None:
            rows = [(one.table.number, one.schema.version, one.op, one.key, one.payload) for one in known]
            assert rows == exact, f"{payload!r}: {rows} instead of {exact}"
            return BY_ENGINE
        if is_learned:
            self.typer.write(payload)
        return LEFT if type(exact) is list else REFUSED


def with_part(random: Random, payload: bytes) -> bytes:
    """Return a change in which a part is another, or a value of a row, or which has one more or fewer."""
    change = Change.from_avro(payload)
    names = [name for name in ("before", "after") if getattr(change, name)]
    if not names or random.random() < 0.4:
        name = random.choice(list(PARTS))
        return replace(change, **{name: random.choice(PARTS[name])}).to_avro()
    name = random.choice(names)
    image = dict(getattr(change, name))
    column = random.choice([*image, *image, *image, "another"])
    if random.random() < 0.1:
        image.pop(column, None)
    else:
        image[column] = random.choice([*[parse(one.encode("utf-8", "replace")) for one in VALUES], *ODD])
    return replace(change, **{name: image}).to_avro()


def damaged(random: Random, payload: bytes) -> bytes:
    """Return a payload with a bit or byte changed, bytes lost, doubled or moved, or cut short."""
    at, other = sorted(random.choices(range(len(payload)), k=2))
    ways = (
        lambda: payload[:at],
        lambda: payload + bytes([random.randrange(256)]),
        lambda: payload[:at] + bytes([payload[at] ^ 1 << random.randrange(8)]) + payload[at + 1 :],
        lambda: payload[:at] + bytes([payload[at] ^ 1 << random.randrange(8)]) + payload[at + 1 :],
        lambda: payload[:at] + bytes([random.randrange(256)]) + payload[at + 1 :],
        lambda: payload[:at] + bytes([random.choice((0, 1, 2, 128, 255))]) + payload[at:],
        lambda: payload[:at] + payload[at + 1 :],
        lambda: payload[:at] + payload[other:],
        lambda: payload[:other] + payload[at:],
    )
    return random.choice(ways)()


def trial(format: str, count: int, seed: int, zone: tzinfo | None = ZONE) -> Counter[str]:
    """Try changes of a format, first all as they are; return what became of the others."""
    random, changes = Random(f"{format} {seed}"), changes_of(format)
    pair, outcomes = Pair(changes, zone), Counter[str]()
    for _ in range(2):
        for one in changes:
            pair.take(one)
    known = [one for one in changes if pair.typer.type_by_pattern(one) is not None] or changes
    for _ in range(count):
        one = random.choice(known if random.random() < 0.8 else changes)
        one = with_part(random, one) if random.random() < 0.5 else damaged(random, one)
        outcomes[pair.take(one, is_learned=random.random() < 0.05)] += 1
    return outcomes


def trial_of_type(format: str, declared: str, values: list[str], zone: tzinfo | None = ZONE) -> Counter[str]:
    """Try values in a column of a type, each in every kind of row; return what became of them."""
    messages = of_type(format, declared)
    changes = []
    for i, value in enumerate(values):
        for message in messages:
            with suppress(CdcAvroError):
                sent = message.replace(f'"{MARK}"'.encode(), value.encode("utf-8", "replace"))
                found = to_changes(sent, format, zone=zone)
                changes += [replace(one, place=Arrival(topic="t", partition=0, offset=i)).to_avro() for one in found]
    pair = Pair(changes, zone)
    return Counter(pair.take(one) for one in changes)


def main() -> None:
    """Run the trial by hand."""
    told = sys.argv[1:] or ["1000"]
    if told[0] == "types":
        for format in told[1:] or REGISTRY:
            outcomes = sum((trial_of_type(format, declared, VALUES + VALUES) for declared in TYPES), Counter())
            print(format, *(f"{name} {times}" for name, times in sorted(outcomes.items())), sep=", ", flush=True)  # noqa: T201
        return
    for format in told[2:] or REGISTRY:
        outcomes = trial(format, int(told[0]), int(told[1]) if len(told) > 1 else 0)
        print(format, *(f"{name} {times}" for name, times in sorted(outcomes.items())), sep=", ", flush=True)  # noqa: T201


if __name__ == "__main__":
    main()

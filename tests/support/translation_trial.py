"""The engine held against the exact translator on damaged payloads of random pairs of schemas.

    python tests/support/translation_trial.py 1000000 [SEED]

tries as many payloads, and says how many both ways took, how many only the exact way, and how many were refused. What
the engine takes has to be what the exact way gives, byte for byte.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from cdcavro.avro.binary import check_payload
from cdcavro.avro.schema import parse_schema
from cdcavro.avro.translation import translator
from cdcavro.avro.translation_program import check_program, pair_program
from cdcavro.engine.machine import Translator
from cdcavro.errors import SchemaError
from support.engine_trial import compared
from support.mutations import damaged
from support.schema_data import cover, write
from support.schema_pairs import Maker
from support.wide_pairs import WideMaker

if TYPE_CHECKING:
    from collections.abc import Callable

    from cdcavro.avro.schema import Schema

    Ways = tuple[Callable[[bytes], bytes | None], Callable[[bytes], bytes]]

PER_PAIR = 40


def trial(count: int, seed: int) -> Counter[str]:
    """Try damaged payloads of random pairs, and return what became of them and of those that nobody damaged."""
    random, outcomes = Random(seed), Counter()
    while outcomes["damaged"] < count:
        pair = made_pair(random)
        if pair is None:
            continue
        writer, reader = pair
        data = cover(writer.root, random)
        payloads = [write(writer.root, datum, rng) for datum in data for rng in (None, random)]
        for name, (fast, exact) in ways(random, writer, reader).items():
            for payload in payloads:
                outcomes[f"{name}: {compared(fast, exact, payload)[1]}"] += 1
            for _ in range(PER_PAIR if payloads else 0):
                outcome = compared(fast, exact, hurt(random, payloads))[1]
                outcomes[f"{name}, damaged: {outcome}"] += 1
                outcomes["damaged"] += 1
    return outcomes


def made_pair(random: Random) -> tuple[Schema, Schema] | None:
    """Return a random pair, None if its schemas are none; some contain themselves."""
    maker = random.choice((Maker, WideMaker))(random)
    writer = maker.schema()
    if random.random() < 0.2:
        inner = [["null", writer["name"]], {"type": "array", "items": writer["name"]}]
        inner.append({"type": "map", "values": writer["name"]})
        writer["fields"].insert(random.randrange(2), {"name": maker.name("f"), "type": random.choice(inner)})
    try:
        reader = maker.changed(writer) if random.random() < 0.9 else writer
        return parse_schema(json.dumps(writer)), parse_schema(json.dumps(reader))
    except SchemaError:
        return None


def ways(random: Random, writer: Schema, reader: Schema) -> dict[str, Ways]:
    """Return the engine and the exact way, for the check of a payload, and for its translation if there is one."""

    def checked(payload: bytes) -> bytes:
        check_payload(payload, writer)
        return payload

    found: dict[str, Ways] = {"check": (Translator(check_program(writer)).translate, checked)}
    reinterpret = random.random() < 0.3
    try:
        exact = translator(writer, reader, reinterpret=reinterpret)
    except SchemaError:
        return found
    fast = Translator(pair_program(writer, reader, reinterpret=reinterpret)).translate
    return {**found, "reinterpreted" if reinterpret else "pair": (fast, exact)}


def hurt(random: Random, payloads: list[bytes]) -> bytes:
    """Return one of the payloads with a few bytes changed, put in, left out, or cut short."""
    payload = damaged(random, random.choice(payloads))
    return payload[: random.randrange(len(payload) + 1)] if random.random() < 0.1 else payload


def main() -> None:
    """Run the trial by hand."""
    outcomes = trial(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0)
    print(*(f"{name} {times:,}" for name, times in sorted(outcomes.items())), sep="\n")  # noqa: T201


if __name__ == "__main__":
    main()

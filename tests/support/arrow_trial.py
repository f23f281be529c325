"""Payloads of random schemas to Arrow: the engine held against the exact way, also on damaged payloads.

    python tests/support/arrow_trial.py 1000000 [SEED]

tries as many damaged payloads, and says how many both ways took, how many only the exact way, and how many were
refused. What the engine takes has to be what the exact way gives.
"""

from __future__ import annotations

import datetime as dt
import sys
from collections import Counter
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from cdcavro.arrow.arrays import slices_of
from cdcavro.arrow.record_batches import read_batch, read_exactly, reading_of
from cdcavro.avro.types import Array, Map, Primitive, Record, Union, logical_type, recursion
from cdcavro.errors import MessageError, SchemaError
from support.schema_data import cover, meaning, write
from support.translation_trial import hurt, made_pair

if TYPE_CHECKING:
    from cdcavro.arrow.record_batches import Reading
    from cdcavro.avro.schema import Schema

PER_SCHEMA = 40
# Which of the classes of time zones Arrow takes depends on what is installed.
UTC = pa.scalar(0, pa.timestamp("us", "UTC")).as_py().tzinfo


def trial(count: int, seed: int) -> Counter[str]:
    """Try payloads of random schemas, damaged and not, and return what became of them."""
    random, outcomes = Random(seed), Counter()
    while outcomes["damaged"] < count:
        made = made_reading(random)
        if made is None:
            continue
        schema, how = made
        data = cover(schema.root, random)
        payloads = [write(schema.root, datum, rng) for datum in data for rng in (None, random)]
        assert same_batch(payloads, how) == "read"
        expected = [shown(schema.root, datum) for datum in data]
        got = listed(read_batch(binary([write(schema.root, datum) for datum in data]), how))
        assert got == repr(expected), (schema.json, got, expected)
        for _ in range(PER_SCHEMA if payloads else 0):
            outcomes[same_batch([payloads[0], hurt(random, payloads), payloads[-1]], how)] += 1
            outcomes["damaged"] += 1
    return outcomes


def made_reading(random: Random) -> tuple[Schema, Reading] | None:
    """Return a random schema and how it is read; None if it is none, or Arrow cannot hold its data."""
    pair = made_pair(random)
    if pair is None or recursion(pair[0].root) is not None:
        return None
    try:
        return pair[0], reading_of(pair[0], {})
    except SchemaError as error:
        # Of a decimal, of items, of a union.
        assert any(reason in str(error) for reason in ("digits", "no bytes", "no data"))  # noqa: PT017
        return None


def same_batch(payloads: list[bytes | None], how: Reading) -> str:
    """Hold what becomes of payloads as they are read against the exact way; return what became of them."""
    column = binary([None, *payloads])[1:]
    read, exact = (outcome(way, column, how) for way in (read_batch, _exactly))
    assert read == exact
    taken = how.filler.fill(slices_of(column))[1]
    if isinstance(exact, tuple):
        assert taken <= 1 or len(payloads) != 3
        return "refused"
    return "read" if taken in (0, len(payloads)) else "left"


def _exactly(column: pa.Array, how: Reading) -> pa.Array:
    return read_exactly(slices_of(column), how)


def outcome(way: Any, column: pa.Array, how: Reading) -> Any:
    """Return the type and the values of what a way makes of payloads, or its error."""
    try:
        made = way(column, how)
    except MessageError as error:
        return type(error), error.path, str(error)
    made.validate(full=True)
    # NaN is not equal to itself, and its text is.
    return f"{made.type} {listed(made)}"


def listed(array: pa.Array) -> str:
    """Return the text of an array's values; instants as the integers that they are, which Python need not hold."""
    return repr(array.to_pylist())


def binary(payloads: list[bytes | None]) -> pa.Array:
    """Return payloads as an array."""
    return pa.array(payloads, pa.binary())


def shown(declared: Any, value: Any) -> Any:
    """Return what Python reads of an Arrow array for a datum."""
    match declared:
        case Record(fields=fields):
            return {field.name: shown(field.type, value[field.name]) for field in fields}
        case Array(items):
            return [shown(items, item) for item in value]
        case Map(values):
            return [(name, shown(values, item)) for name, item in value.items()]
        case Union(branches):
            others = [at for at, branch in enumerate(branches) if branch != Primitive("null")]
            datum = shown(branches[value.index], value.value)
            if len(others) <= 1 or value.index not in others:
                return datum
            return {f"member{i}": datum if at == value.index else None for i, at in enumerate(others)}
    unit = logical_type(declared) if hasattr(declared, "attributes") and not hasattr(declared, "symbols") else None
    if unit is not None and unit.name == "uuid":
        return value
    found = value if unit is None else meaning(declared, value)
    is_instant = isinstance(found, dt.datetime) and found.tzinfo is not None
    return found.astimezone(UTC) if is_instant else found


def main() -> None:
    """Run the trial by hand."""
    outcomes = trial(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0)
    print(*(f"{name} {times:,}" for name, times in sorted(outcomes.items())), sep="\n")  # noqa: T201


if __name__ == "__main__":
    main()

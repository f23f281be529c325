"""Random triples of writer's schema, reader's schema and datum, to see whether each yes of the verdict holds.

A yes holds if Avro Java and Spark give what the resolution says, and fastavro gives it too or a note of the
verdict says what it gives instead. A command for long trials; `test_verdict.py` makes a short one:

    .venv/bin/python tests/support/verdict_trial.py --triples 20000 --seed 1
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from cdcavro import spark as cdc
from cdcavro.avro.types import recursion
from cdcavro.errors import SchemaError
from support.schema_data import expected, is_same
from support.schema_pairs import Pair, UnreadableError, fastavro_reads, pair
from support.verdict_engines import Java, Spark, agrees, spark_agrees, tried
from support.wide_pairs import WideMaker

BATCH = 40
# What fastavro gives instead, with the words of the note that says so.
NOTED = {
    "default": "fastavro fills in its default as the schema's JSON has it",
    "unit": "what it means is no longer said",
    "schema": "fastavro refuses a schema",
}


@dataclass
class Trial:
    """What a trial found: numbers of triples, and each yes that does not hold, with who reads what."""

    pairs: int = 0
    triples: int = 0
    yeses: int = 0
    by_spark: int = 0
    noted: Counter[str] = field(default_factory=Counter)
    broken: list[tuple[str, Pair, Any, Any]] = field(default_factory=list)


def trial(java: Java, spark: Spark, *, yeses: int, seed: int, spark_every: int = 1, most: int = 20) -> Trial:
    """Return what comes of random triples, until so many of them were a yes or so many did not hold.

    Avro Java and fastavro read all of them, Spark one in `spark_every` pairs that are not recursive, which it refuses.
    """
    found = Trial()
    waiting: list[tuple[Pair, Any, bytes]] = []
    number = seed * 10_000_000
    while found.yeses < yeses and len(found.broken) < most:
        number += 1
        maker = WideMaker(random.Random(number))
        writer = maker.schema()
        try:
            one = pair(json.dumps(writer), json.dumps(maker.changed(writer)), number)
        except SchemaError:
            continue
        found.pairs += 1
        found.triples += len(one.data)
        if one.step is None:
            continue
        found.yeses += len(one.data)
        by_java(one, java, found)
        by_fastavro(one, found)
        if number % spark_every == 0 and recursion(one.roots[0]) is None and recursion(one.roots[1]) is None:
            waiting += [(one, value, payload) for value, payload in one.data]
            while len(waiting) >= BATCH:
                by_spark(waiting[:BATCH], spark, found)
                del waiting[:BATCH]
    if waiting:
        by_spark(waiting, spark, found)
    return found


def by_java(one: Pair, java: Java, found: Trial) -> None:
    """Let Avro Java read the data of a pair."""
    try:
        read = java.reader(one.writer, one.reader)
    except UnreadableError:
        found.broken.append(("java refuses the schema", one, None, None))
        return
    for value, payload in one.data:
        got = tried(read, payload)
        if not agrees(expected(one.step, value), got):
            found.broken.append(("java", one, value, got))
            return


def by_fastavro(one: Pair, found: Trial) -> None:
    """Let fastavro read the data of a pair."""
    notes = {name for name, words in NOTED.items() if any(words in note for note in one.notes)}
    for value, payload in one.data:
        try:
            got = fastavro_reads(one.writer, one.reader, payload)
        except UnreadableError as error:
            got = error.__cause__
        if is_same(expected(one.step, value), got):
            continue
        by_unit = expected(one.step, value, by_writer=True)
        raw = expected(one.step, value, by_writer="unit" in notes, raw=True)
        if "unit" in notes and is_same(by_unit, got):
            found.noted["unit"] += 1
        elif "default" in notes and is_same(raw, got):
            found.noted["default"] += 1
        elif "schema" in notes and isinstance(got, Exception):
            found.noted["schema"] += 1
        else:
            found.broken.append(("fastavro", one, value, got))
            return


def by_spark(waiting: list[tuple[Pair, Any, bytes]], spark: Spark, found: Trial) -> None:
    """Let Spark read data of several pairs."""
    results = spark.read([(one.writer, one.reader, payload) for one, _, payload in waiting])
    broken: set[int] = set()
    for (one, value, _), got in zip(waiting, results, strict=True):
        found.by_spark += 1
        if spark_agrees(expected(one.step, value), got):
            continue
        if any("Spark reads" in note for note in one.notes) and got is not UnreadableError:
            found.noted["Spark's plain numbers"] += 1
        elif id(one) not in broken:
            broken.add(id(one))
            found.broken.append(("spark", one, value, got))


def main() -> int:
    """Make a trial and print what it found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--triples", type=int, default=20_000, help="how many triples shall be a yes")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--spark-every", type=int, default=1, help="Spark reads one in so many pairs")
    parser.add_argument("--most", type=int, default=20, help="how many may fail before it ends")
    given = parser.parse_args()
    session = cdc.session(
        "trial", master="local[2]", config={"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    )
    session.sparkContext.setLogLevel("OFF")
    found = trial(
        Java(session._jvm),
        Spark(session),
        yeses=given.triples,
        seed=given.seed,
        spark_every=given.spark_every,
        most=given.most,
    )
    for who, one, value, got in found.broken:
        print(
            f"{who}\n  writer {one.writer}\n  reader {one.reader}\n  datum {value}\n  wanted {expected(one.step, value)}"
        )
        print(f"  got {got!r}\n  notes {one.notes}\n")
    print(f"{found.pairs} pairs, {found.triples} triples, {found.yeses} yeses, of which Spark read {found.by_spark}")
    print(f"noted: {dict(found.noted)}; broken: {len(found.broken)}")
    return 1 if found.broken else 0


if __name__ == "__main__":
    sys.exit(main())

"""Measures `cdcavro` beside the same by hand on this machine, and prints the table of the page on benchmarks.

    python tests/benchmarks/page.py [MESSAGES] [ROUNDS]

Messages are updates of one table of 8 columns, as OMS sends them in Canal's form. Each way is a process of its own, or two,
from the start of Python to the end; ways take turns. `tests/benchmarks/page_by_hand.py` is what stands beside.

* Messages for each second of processor time: the median of the rounds.
* Memory: the most that a process of it had resident, in MiB.
* Exact: how many messages came back as the same JSON value, digit for digit; of typed rows, how many rows have each value
  that was sent, be it as the text of one that its column's type does not hold.

One price in ten ends in 0, one amount in a thousand has 20 digits, and one date in a hundred is MySQL's 0000-00-00.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from statistics import median
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

import fastavro

import cdcavro
from cdcavro.engine.machine import COMPILED
from support.roundtrip import exact

HAND = str(Path(__file__).with_name("page_by_hand.py"))
TYPES = {
    "id": "int",
    "quantity": "int",
    "price": "decimal(12,2)",
    "amount": "decimal(20,4)",
    "status": "varchar(20)",
    "remark": "text",
    "made": "datetime(6)",
    "due": "date",
}
HEAD = ("", "way", "messages a second", "", "MiB", "exact")
BAR = 20
# A process begins with the memory of the one that starts it, so a small one does.
LAUNCHER = """\
import os, sys
quiet = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
_, status, used = os.wait4(os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=quiet), 0)
print(used.ru_utime + used.ru_stime, used.ru_maxrss)
sys.exit(os.waitstatus_to_exitcode(status))
"""


def row_of(number: int) -> dict[str, str]:
    """Return the row of a message as the texts of its values: those of numbers stand in the message as they are."""
    return {
        "id": str(10_000_000 + number),
        "quantity": str(1 + number % 9),
        "price": f"{1 + number % 500}.{number % 100:02}",
        "amount": "1234567890123456.7891" if number % 1000 == 7 else f"{number % 7000}.1234",
        "status": "paid",
        "remark": f"a remark of some length, as they are, number {number}",
        "made": f"2024-02-29 12:00:{number % 60:02}.123456",
        "due": "0000-00-00" if number % 100 == 0 else "2024-03-31",
    }


def message_of(number: int) -> bytes:
    """Return an update in which the quantity has changed."""
    row = row_of(number)
    quoted = {
        name: value if name in ("id", "quantity", "price", "amount") else f'"{value}"' for name, value in row.items()
    }
    data = ",".join(f'"{name}":{value}' for name, value in quoted.items())
    types, codes = json.dumps(TYPES), json.dumps(dict.fromkeys(TYPES, 12))
    return (
        f'{{"database":"shop","table":"orders","type":"UPDATE","isDdl":false,"es":{1_700_000_000_000 + number},'
        f'"ts":{1_700_000_000_500 + number},"sql":"","pkNames":["id"],"sqlType":{codes},"mysqlType":{types},'
        f'"data":[{{{data}}}],"old":[{{"quantity":0}}]}}\n'
    ).encode()


@dataclass
class Way:
    """A way to do something: its commands, one behind the other, and how many of its messages are exact."""

    task: str
    name: str
    commands: list[list[str]]
    exact: Callable[[], int]
    seconds: list[float] = field(default_factory=list)
    memory: list[float] = field(default_factory=list)

    def run(self) -> None:
        """Do it once more."""
        costs = [cost(command) for command in self.commands]
        self.seconds.append(sum(seconds for seconds, _ in costs))
        self.memory.append(max(memory for _, memory in costs))


def cost(command: list[str]) -> tuple[float, float]:
    """Run a command, and return its seconds of processor time and the most MiB that it had resident."""
    done = subprocess.run(
        [sys.executable, "-IS", "-c", LAUNCHER, *command], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    seconds, memory = map(float, done.stdout.split())
    return seconds, memory / (1 << (20 if sys.platform == "darwin" else 10))


def equal_lines(sent: Path, back: Path) -> int:
    """Return how many lines of two files are the same JSON value, digit for digit."""
    with sent.open("rb") as one, back.open("rb") as other:
        return sum(exact(a) == exact(b) for a, b in zip(one, other, strict=True))


def kept_rows(path: Path) -> int:
    """Return how many rows behind the updates of an Avro file have all values that were sent."""
    with path.open("rb") as stream:
        return sum(_is_kept(number, change["after"]) for number, change in enumerate(fastavro.reader(stream)))


def _is_kept(number: int, row: dict[str, Any]) -> bool:
    unparsed = row["unparsed"] or {}
    return all(
        value == (unparsed[name] if name in unparsed else _spelled(name, row[name]))
        for name, value in row_of(number).items()
    )


def _spelled(name: str, value: Any) -> str | None:
    match value:
        case datetime():
            return value.replace(tzinfo=None).isoformat(" ", "microseconds")
        case date() | int() | Decimal() | str():
            return str(value)
        case None:
            return None
    raise TypeError(f"{name} is {value!r}")


def ways(folder: Path, count: int) -> Iterator[Way]:
    """Put the messages into a folder, and yield all ways, those by hand first."""
    lines = folder / "orders.jsonl"
    lines.write_bytes(b"".join(map(message_of, range(count))))
    wire, envelope = folder / "wire.avsc", folder / "envelope.avsc"
    wire.write_text(cdcavro.load_schema("oms_canal").json)
    (change,) = cdcavro.to_changes(message_of(1), "oms_canal")
    envelope.write_text(cdcavro.table_schema_of(change).envelope.json)
    own = [str(Path(sys.executable).with_name("cdcavro"))]
    hand = [sys.executable, HAND]

    def path(name: str) -> str:
        return str(folder / name)

    there = "JSON to Avro and back"
    yield Way(
        there,
        "by hand: `json`, fastavro",
        [
            [*hand, "encode", str(wire), str(lines), path("hand.avro")],
            [*hand, "decode", path("hand.avro"), path("hand.jsonl")],
        ],
        lambda: equal_lines(lines, folder / "hand.jsonl"),
    )
    force = ["--force", "--out"]
    yield Way(
        there,
        "`cdcavro encode`, `decode`",
        [
            [*own, "encode", str(lines), "--format", "oms_canal", "--codec", "null", *force, path("own.avro")],
            [*own, "decode", path("own.avro"), *force, path("own.jsonl")],
        ],
        lambda: equal_lines(lines, folder / "own.jsonl"),
    )
    rows = "JSON to typed rows"
    yield Way(
        rows,
        "by hand: `json`, casts, fastavro",
        [[*hand, "rows", str(envelope), str(lines), path("rows.avro")]],
        lambda: kept_rows(folder / "rows.avro"),
    )
    yield Way(
        rows,
        "`cdcavro tables`",
        [[*own, "tables", str(lines), "--from", "oms_canal", *force, path("tables")]],
        lambda: kept_rows(next((folder / "tables").rglob("v1.avro"))),
    )


def table(found: list[Way], count: int) -> str:
    """Return what was measured as a table in Markdown, with a bar for each rate."""
    rates = {id(way): count / median(way.seconds) for way in found}
    most = max(rates.values())
    lines = [HEAD, ("---", "---", "---:", "---", "---:", "---:")]
    for way in found:
        rate = rates[id(way)]
        bar = "█" * max(1, round(BAR * rate / most))
        share = f"{way.exact():,} of {count:,}"
        lines.append((way.task, way.name, f"{rate:,.0f}", bar, f"{median(way.memory):.0f}", share))
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def measure(count: int, rounds: int) -> str:
    """Return the table for so many messages, each way run so many times."""
    with tempfile.TemporaryDirectory() as folder:
        found = list(ways(Path(folder), count))
        for _ in range(rounds):
            for way in found:
                way.run()
        return table(found, count)


def main() -> None:
    """Measure, and print."""
    count, rounds = [*map(int, sys.argv[1:]), *(50_000, 3)[len(sys.argv) - 1 :]]
    build = "compiled" if COMPILED else "pure Python"
    print(f"{count:,} messages of {len(message_of(1))} bytes, cdcavro {build}, Python {platform.python_version()},")
    print(f"{os.cpu_count()} cores ({platform.machine()}), medians of {rounds} rounds\n")
    print(measure(count, rounds))


if __name__ == "__main__":
    main()

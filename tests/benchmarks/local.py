"""Measures `cdcavro sync --local` beside the same by hand: `json`, pyarrow, and delta-rs or pyiceberg in one process.

    python tests/benchmarks/local.py [kafka] [iceberg] [current] [changelog] [MESSAGES] [TABLES] [MESSAGES BEHIND THEM] [TURNS]

Messages are Canal's of tables of 8 columns: 60 % inserts, 34 % updates, 5 % deletes, 1 % updates that move a key, and in
the middle of them an ALTER TABLE that adds a column to each table. They are in files of 50,000, or, with `kafka`, in a topic
of two partitions of a broker that is started for it, one half of the tables in each. All of them go into tables that are
new, in one batch; then those behind them into the tables that stand. Both are processes of their own, which take turns, each
turn in a new folder: the figures are medians of processor time and clock seconds from the start of a process to its end, and
the highest resident memory. "the batch" is the clock seconds of the pipeline's batch alone, without the start of Python, as
a pipeline that runs has it. By hand, columns are known beforehand and nothing guards against a crash
(`tests/benchmarks/local_by_hand.py`). Each figure is of rows that were counted: in the end, each table has as many as the
database would have.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from deltalake import DeltaTable
from pyiceberg.table import StaticTable

if TYPE_CHECKING:
    from support.kafka_server import Broker

HAND = Path(__file__).with_name("local_by_hand.py")
COLUMNS = {
    "id": "bigint",
    "n": "int",
    "name": "varchar(20)",
    "price": "decimal(12,2)",
    "at": "datetime",
    "nothing": "int",
    "part": "double",
    "code": "char(10)",
}
ADDED = "note", "varchar(20)"
FILE = 50_000


class Shop:
    """A database with tables of one kind; its changes are messages of Canal's.

    Attributes: `keys` (list of lists of int), the keys of each table's rows; `logged` (int), rows of changelogs so far.
    """

    def __init__(self, tables: int) -> None:
        self.keys: list[list[int]] = [[] for _ in range(tables)]
        self.logged = 0
        self._draw = random.Random(1)
        self._number = self._key = 0
        self._columns = COLUMNS

    def messages(self, count: int, *, is_altered: bool = False) -> Iterator[tuple[int, bytes]]:
        """Yield the number of the table and the message of each change; with `is_altered`, statements in the middle."""
        for i in range(count):
            if is_altered and i == count // 2:
                yield from self._alter()
            table = i % len(self.keys)
            yield table, self._change(table)

    def _alter(self) -> Iterator[tuple[int, bytes]]:
        name, declared = ADDED
        self._columns = {**COLUMNS, name: declared}
        for table in range(len(self.keys)):
            sql = f"ALTER TABLE t{table} ADD COLUMN {name} {declared}"
            yield table, self._message(table, "ALTER", None, isDdl=True, sql=sql)

    def _change(self, table: int) -> bytes:
        keys, drawn = self.keys[table], self._draw.random()
        self.logged += 1
        if not keys or drawn < 0.6:
            keys.append(self._new_key())
            return self._message(table, "INSERT", self._row(keys[-1]))
        place = self._draw.randrange(len(keys))
        if drawn < 0.65:
            keys[place], keys[-1] = keys[-1], keys[place]
            return self._message(table, "DELETE", self._row(keys.pop()))
        self.logged += 1
        if drawn < 0.66:
            old, keys[place] = keys[place], self._new_key()
            return self._message(table, "UPDATE", self._row(keys[place]), old=[{"id": str(old)}])
        return self._message(table, "UPDATE", self._row(keys[place]), old=[{"n": "1", "price": "0.10"}])

    def _new_key(self) -> int:
        self._key += 1
        return self._key

    def _row(self, key: int) -> dict[str, str | None]:
        i = self._number
        row = {
            "id": str(key),
            "n": str(i),
            "name": f"text {i}",
            "price": f"{i % 1000}.{i % 100:02}",
            "at": "2024-01-02 03:04:05",
            "nothing": None,
            "part": "0.5",
            "code": "0123456789",
            "note": f"note {i % 7}",
        }
        return {name: row[name] for name in self._columns}

    def _message(self, table: int, type: str, row: dict[str, str | None] | None, **members: object) -> bytes:
        self._number += 1
        message = {
            "data": None if row is None else [row],
            "database": "shop",
            "es": 1_700_000_000_000 + self._number,
            "id": self._number,
            "isDdl": False,
            "mysqlType": self._columns if row else None,
            "old": None,
            "pkNames": ["id"] if row else None,
            "sql": "",
            "sqlType": None,
            "table": f"t{table}",
            "ts": 1_700_000_000_001 + self._number,
            "type": type,
            **members,
        }
        return json.dumps(message).encode()


class Cost(NamedTuple):
    """What a process took: processor and clock seconds, MiB, and the clock seconds of its batches, if it has told."""

    processor: float
    clock: float
    memory: float
    batch: float


class FileSource:
    """Messages in files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._files = 0

    def put(self, messages: Iterator[tuple[int, bytes]], part: str) -> None:
        """Write the messages of a part."""
        (self.folder / part).mkdir(parents=True)
        lines: list[bytes] = []
        for _, message in messages:
            lines.append(message + b"\n")
            if len(lines) == FILE:
                self._write(part, lines)
        if lines:
            self._write(part, lines)

    def _write(self, part: str, lines: list[bytes]) -> None:
        path = self.folder / part / f"{self._files:06}.jsonl"
        path.write_bytes(b"".join(lines))
        # A batch takes files by their times.
        os.utime(path, (1_700_000_000 + self._files,) * 2)
        self._files += 1
        lines.clear()

    def show(self, part: str, root: Path) -> tuple[str, list[str]]:
        """Let a run find the files of a part; return the section of its configuration, and what the script is given."""
        seen = root / "in"
        seen.mkdir(exist_ok=True)
        for file in (self.folder / part).iterdir():
            (seen / file.name).hardlink_to(file)
        return f"files = {json.dumps(str(seen))}", ["files", str(seen)]


class TopicSource:
    """Messages in a topic for each run."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self._parts: dict[str, list[tuple[int, bytes]]] = {}

    def put(self, messages: Iterator[tuple[int, bytes]], part: str) -> None:
        """Keep messages of a part."""
        self._parts[part] = list(messages)

    def show(self, part: str, root: Path) -> tuple[str, list[str]]:
        """Send the messages of a part to the topic of a run; return the section, and what the script is given."""
        from support.kafka_server import Record  # noqa: PLC0415  it imports pyspark

        topic = root.name
        if topic not in self.broker.topics():
            self.broker.create(topic, 2)
        self.broker.send(Record(topic, table % 2, None, message) for table, message in self._parts[part])
        servers = self.broker.servers
        return f'kafka = "{servers}"\ntopics = ["{topic}"]', ["kafka", servers, topic]


def cost_of(command: Sequence[str]) -> Cost:
    """Run a command, and return what it took."""
    with tempfile.TemporaryFile() as said:
        began = time.monotonic()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=said)
        _, status, usage = os.wait4(process.pid, 0)
        clock = time.monotonic() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        lines = said.read().decode().splitlines()
    assert process.returncode == 0, "\n".join(lines[-20:])
    reports = [json.loads(line) for line in lines if line.startswith('{"batch"')]
    batch = sum(sum(report["seconds"].values()) for report in reports)
    return Cost(usage.ru_utime + usage.ru_stime, clock, usage.ru_maxrss / 1024, batch)


def local_run(root: Path, section: str, lake: str, into: str) -> Cost:
    """Run the pipeline once."""
    is_current = into == "current"
    where = f'delta = "{root}/lake"' if lake == "delta" else f'iceberg = "ice"\nwarehouse = "{root}/lake"'
    text = (
        f'state = "{root}/state"\nformat = "canal"\nrun = "local"\n\n[source]\n{section}\n\n[lake]\n{where}\n'
        f"current = {str(is_current).lower()}\nchangelog = {str(not is_current).lower()}\n"
    )
    file = root / "sync.toml"
    file.write_text(text)
    return cost_of([sys.executable, "-m", "cdcavro", "sync", "--config", str(file), "--once", "--log", "json"])


def hand_run(root: Path, where: list[str], lake: str, into: str) -> Cost:
    """Run the script once."""
    return cost_of([sys.executable, str(HAND), lake, into, str(root / "hand"), *where])


def count_rows(root: Path, lake: str, tables: int) -> int:
    """Return how many rows the tables have that a run has written."""
    kind = "_delta_log" if lake == "delta" else "metadata"
    found = [one.parent for top in ("lake", "hand") for one in (root / top).rglob(kind)]
    made = [table for table in found if not table.name.endswith("~~deletes")]
    assert len(made) == tables, made
    if lake == "delta":
        return sum(DeltaTable(str(table)).to_pyarrow_dataset().count_rows() for table in made)
    newest = [max((table / kind).glob("*.metadata.json"), key=lambda file: file.stat().st_mtime_ns) for table in made]
    return sum(StaticTable.from_metadata(str(file)).scan().count() for file in newest)


def measure(
    source: FileSource | TopicSource, lake: str, into: str, tables: int, parts: dict[str, dict[str, int]], turns: int
) -> Iterator[tuple[str, Cost, Cost]]:
    """Yield each part, what the script cost, and what the pipeline did; `parts` has how many rows there are then."""
    costs: dict[str, list[list[Cost]]] = {part: [[], []] for part in parts}
    for _ in range(turns):
        for number, kind in enumerate(("hand", "local")):
            with tempfile.TemporaryDirectory(prefix=kind) as folder:
                root = Path(folder)
                for part, expected in parts.items():
                    section, where = source.show(part, root)
                    run = hand_run(root, where, lake, into) if kind == "hand" else local_run(root, section, lake, into)
                    costs[part][number].append(run)
                    rows = count_rows(root, lake, tables)
                    assert rows == expected[into], (kind, part, rows, expected)
    for part, (hand, local) in costs.items():
        yield part, _medians(hand), _medians(local)


def _medians(costs: list[Cost]) -> Cost:
    return Cost(*(median(values) for values in zip(*costs, strict=True)))


def main() -> None:
    """Measure, and print."""
    words, numbers = [], []
    for word in sys.argv[1:]:
        (numbers if word.isdecimal() else words).append(word)
    count, tables, more, turns = [*map(int, numbers), *(1_000_000, 20, 20_000, 3)[len(numbers) :]]
    lake = "iceberg" if "iceberg" in words else "delta"
    kinds = [kind for kind in ("changelog", "current") if kind in words] or ["changelog", "current"]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        source = _source("kafka" in words, folder, stack)
        shop, parts = Shop(tables), {}
        for part, size in (("new", count), ("standing", more)):
            source.put(shop.messages(size, is_altered=part == "new"), part)
            parts[part] = {"current": sum(map(len, shop.keys)), "changelog": shop.logged}
        where = "a topic of two partitions" if "kafka" in words else "files"
        print(f"{count:,} messages from {where} into {tables} new tables ({lake}), and {more:,} behind them")
        print(f"{'':<10}{'':<10}{'by hand: processor':>19}{'clock':>8}{'MiB':>7}", end="")
        print(f"{'pipeline: processor':>22}{'clock':>8}{'MiB':>7}{'the batch':>11}{'ratio':>8}")
        for into in kinds:
            for part, hand, own in measure(source, lake, into, tables, parts, turns):
                print(f"{into:<10}{part:<10}{hand.processor:19.2f}{hand.clock:8.2f}{hand.memory:7.0f}", end="")
                print(f"{own.processor:22.2f}{own.clock:8.2f}{own.memory:7.0f}{own.batch:11.2f}", end="")
                print(f"{hand.processor / own.processor:8.2f}", flush=True)


def _source(is_kafka: bool, folder: Path, stack: ExitStack) -> FileSource | TopicSource:
    if not is_kafka:
        return FileSource(folder / "messages")
    from support.kafka_server import broker  # noqa: PLC0415  it imports pyspark

    return TopicSource(stack.enter_context(broker(folder / "broker")))


if __name__ == "__main__":
    main()

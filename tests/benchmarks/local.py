"""Measures `cdcavro sync --local` beside the same by hand: `json`, pyarrow, and delta-rs or pyiceberg in one process.

    python tests/benchmarks/local.py [alone] [kafka] [iceberg] [current] [changelog] [MESSAGES] [TABLES] [MESSAGES BEHIND] [TURNS]
    python tests/benchmarks/local.py settings [kafka] [iceberg] [current] [changelog] [MESSAGES] [TABLES] [TURNS]
    python tests/benchmarks/local.py merge [ROWS] [MESSAGES BEHIND THEM] [TURNS]

Messages are Canal's of tables of 8 columns: 60 % inserts, 34 % updates, 5 % deletes, 1 % updates that move a key, and in
the middle of them an ALTER TABLE that adds a column to each table. They are in files of 50,000, or, with `kafka`, in a topic
of two partitions of a broker that is started for it, one half of the tables in each. All of them go into tables that are
new, in one batch; then those behind them into the tables that stand. Both are processes of their own, which take turns, each
turn in a new folder: the figures are medians of processor time and clock seconds from the start of a process to its end, and
the highest resident memory. "the batch" is the clock seconds of the pipeline's batch alone, without the start of Python, as
a pipeline that runs has it. By hand, columns are known beforehand and nothing guards against a crash
(`tests/benchmarks/local_by_hand.py`); with `alone`, only the pipeline runs. Each figure is of rows that were counted: in the end, each table has as many as the
database would have.

With `settings`, the pipeline takes turns with itself: as it is, and with routes, masks, conditions, metrics and spans, each
alone and all of them. None of these changes how many rows there are. Metrics are asked for once a second, and a receiver
takes what OpenTelemetry sends. Figures are medians of processor time, and of what it is more than that of the plain run of
the same turn.

With `merge`, the messages go into one Delta table of many rows, whose keys they draw at random, beside delta-rs's own merge
of the same messages into the same rows. A pipeline has made the table; its other rows are appended without messages, a
million in a file.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, NamedTuple
from urllib.request import urlopen

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from pyiceberg.table import StaticTable

from support.processes import free_ports

if TYPE_CHECKING:
    from support.kafka_server import Broker, Record

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
# What a command started counts, too, even if it ends after the command, as Spark's JVM does.
LAUNCHER = """\
import ctypes, os, resource, sys
ctypes.CDLL(None).prctl(36, 1)  # PR_SET_CHILD_SUBREAPER
quiet = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
_, status = os.waitpid(os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=quiet), 0)
try:
    while True:
        os.wait()
except ChildProcessError:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime, used.ru_maxrss)
sys.exit(os.waitstatus_to_exitcode(status))
"""
# Keys from here on, up to 134 million, take four bytes in `_cdc_key`.
FIRST_KEY = 2_000_000


class Shop:
    """A database with tables of one kind; its changes are messages of Canal's.

    Attributes: `keys` (list of lists of int), the keys of each table's rows; `logged` (int), rows of changelogs so far.
    """

    def __init__(self, tables: int, first: int = 1, *, is_altered: bool = False) -> None:
        self.keys: list[list[int]] = [[] for _ in range(tables)]
        self.logged = 0
        self._draw = random.Random(1)
        self._number, self._key = 0, first - 1
        self._columns = {**COLUMNS, ADDED[0]: ADDED[1]} if is_altered else COLUMNS

    def messages(self, count: int, *, is_altered: bool = False) -> Iterator[tuple[int, bytes]]:
        """Yield the number of the table and the message of each change; with `is_altered`, statements in the middle."""
        for i in range(count):
            if is_altered and i == count // 2:
                yield from self._alter()
            table = i % len(self.keys)
            yield table, self._change(table)

    def grow(self, count: int) -> None:
        """Have so many more rows in the first table, which somebody has put there without a message."""
        self.keys[0] += range(self._key + 1, self._key + count + 1)
        self._key += count

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
    """What a command took: seconds of its processes and by the clock, MiB of the largest, and its batches' seconds if told."""

    processor: float
    clock: float
    memory: float
    batch: float


NOTHING = Cost(0, 0, 0, 0)


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

    def __init__(self, broker: Broker, folder: Path) -> None:
        # In files: Linux counts the memory of the process that starts another one as that one's, too.
        self.broker, self.folder = broker, folder

    def put(self, messages: Iterator[tuple[int, bytes]], part: str) -> None:
        """Keep messages of a part."""
        with (self.folder / part).open("wb") as file:
            file.writelines(b"%d %s\n" % one for one in messages)

    def _records(self, topic: str, part: str) -> Iterator[Record]:
        from support.kafka_server import Record  # noqa: PLC0415  it imports pyspark

        with (self.folder / part).open("rb") as file:
            for line in file:
                table, _, message = line.rstrip(b"\n").partition(b" ")
                yield Record(topic, int(table) % 2, None, message)

    def show(self, part: str, root: Path) -> tuple[str, list[str]]:
        """Send the messages of a part to the topic of a run; return the section, and what the script is given."""
        topic = root.name
        if topic not in self.broker.topics():
            self.broker.create(topic, 2)
        self.broker.send(self._records(topic, part))
        servers = self.broker.servers
        return f'kafka = "{servers}"\ntopics = ["{topic}"]', ["kafka", servers, topic]


class Extra(NamedTuple):
    """What is stated of a pipeline beyond its source and its lake."""

    # Before all sections of the configuration, and behind them.
    top: str = ""
    sections: str = ""
    options: tuple[str, ...] = ()
    variables: Mapping[str, str] = {}
    # The runner.
    run: str = "local"


def cost_of(command: Sequence[str], variables: Mapping[str, str] = {}) -> Cost:
    """Run a command, and return what it took."""
    launched, variables = [sys.executable, "-IS", "-c", LAUNCHER, *command], {**os.environ, **variables}
    began = time.monotonic()
    done = subprocess.run(launched, capture_output=True, text=True, check=False, env=variables)
    clock, lines = time.monotonic() - began, done.stderr.splitlines()
    assert done.returncode == 0, "\n".join(lines[-20:])
    processor, memory = map(float, done.stdout.split())
    reports = [json.loads(line) for line in lines if line.startswith('{"batch"')]
    batch = sum(sum(report["seconds"].values()) for report in reports)
    return Cost(processor, clock, memory / 1024, batch)


def local_run(root: Path, section: str, lake: str, into: str, extra: Extra = Extra()) -> Cost:  # noqa: B008  a tuple
    """Run the pipeline once."""
    is_current = into == "current"
    where = f'delta = "{root}/lake"' if lake == "delta" else f'iceberg = "ice"\nwarehouse = "{root}/lake"'
    text = (
        f'state = "{root}/state"\nformat = "canal"\nrun = "{extra.run}"\n{extra.top}\n'
        f"[source]\n{section}\n\n[lake]\n{where}\n"
        f"current = {str(is_current).lower()}\nchangelog = {str(not is_current).lower()}\n\n{extra.sections}"
    )
    file = root / "sync.toml"
    file.write_text(text)
    command = [
        sys.executable,
        "-m",
        "cdcavro",
        "sync",
        "--config",
        str(file),
        "--once",
        "--log",
        "json",
        *extra.options,
    ]
    return cost_of(command, extra.variables)


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
    source: FileSource | TopicSource,
    lake: str,
    into: str,
    tables: int,
    parts: dict[str, dict[str, int]],
    turns: int,
    *,
    is_alone: bool,
) -> Iterator[tuple[str, Cost, Cost]]:
    """Yield each part, what the script cost, and what the pipeline did; `parts` has how many rows there are then."""
    costs: dict[str, list[list[Cost]]] = {part: [[], []] for part in parts}
    for _ in range(turns):
        for number, kind in enumerate(("hand", "local")):
            if is_alone and kind == "hand":
                continue
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
    return Cost(*(median(values) for values in zip(*costs, strict=True))) if costs else NOTHING


class Receiver(BaseHTTPRequestHandler):
    """Takes whatever is sent to it."""

    def do_POST(self) -> None:
        """Read it, and say so."""
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def ask_for_metrics(address: str) -> None:
    """Ask for metrics once a second, whether a pipeline is there or not."""
    while True:
        with suppress(OSError), urlopen(f"http://{address}/metrics") as answer:
            answer.read()
        time.sleep(1)


def extras(tables: int, metrics: str, receiver: str) -> dict[str, Extra]:
    """Return what is measured by its name; `metrics` and `receiver` are addresses."""
    routes = "".join(f'[[route]]\nfrom = "sh*.t{i}"\nto = "lake_of_{{1}}.t{i}"\n\n' for i in range(tables))
    header, where = '[[table]]\nmatch = "shop.*"\n', "where = 'n >= 0'\n"
    omitted, salt, secret = 'rejects_raw = "omit"\n', 'salt = "a salt"\n', 'secret = "a long secret"\n'
    masks = {
        "sha256": f'{header}mask = {{ name = "sha256", price = "sha256" }}\n{salt}',
        "hmac-sha256": f'{header}mask = {{ name = "hmac-sha256", price = "hmac-sha256" }}\n{secret}',
        "constant": f'{header}mask = {{ name = {{ constant = "***" }}, price = {{ constant = "***" }} }}\n',
    }
    both = f'{header}mask = {{ name = "sha256", price = "hmac-sha256" }}\n{salt}{secret}{where}'
    served = ("--metrics", metrics)
    sent = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{receiver}", "OTEL_METRIC_EXPORT_INTERVAL": "1000"}
    return {
        "a route for each table": Extra(sections=routes),
        "two columns left out": Extra(omitted, f'{header}leave_out = ["name", "price"]\n'),
        **{f"two columns masked: {name}": Extra(omitted, text) for name, text in masks.items()},
        "where": Extra(sections=f"{header}{where}"),
        "metrics": Extra(options=served),
        "opentelemetry": Extra(options=("--opentelemetry",), variables=sent),
        "all of these": Extra(omitted, f"{both}\n{routes}", (*served, "--opentelemetry"), sent),
    }


def measure_settings(
    source: FileSource | TopicSource, lake: str, into: str, tables: int, rows: int, turns: int
) -> Iterator[tuple[str, float, float]]:
    """Yield a name, the seconds of processor time, and how many times as many they are as those of the plain run."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    metrics = f"127.0.0.1:{free_ports(1)[0]}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    threading.Thread(target=ask_for_metrics, args=(metrics,), daemon=True).start()
    found = {"nothing of these": Extra(), **extras(tables, metrics, f"127.0.0.1:{server.server_port}")}
    costs: dict[str, list[float]] = {name: [] for name in found}
    for _ in range(turns):
        for name, extra in found.items():
            with tempfile.TemporaryDirectory(prefix="local") as folder:
                section, _ = source.show("new", Path(folder))
                costs[name].append(local_run(Path(folder), section, lake, into, extra).processor)
                counted = count_rows(Path(folder), lake, tables)
                assert counted == rows, (name, counted, rows)
    plain = costs["nothing of these"]
    for name, seconds in costs.items():
        yield name, median(seconds), median(own / other for own, other in zip(seconds, plain, strict=True))


def main_of_settings(words: Sequence[str], numbers: Sequence[str]) -> None:
    """Measure what settings cost, and print."""
    count, tables, turns = [*map(int, numbers), *(200_000, 20, 5)[len(numbers) :]]
    lake = "iceberg" if "iceberg" in words else "delta"
    with ExitStack() as stack:
        source = _source("kafka" in words, Path(stack.enter_context(tempfile.TemporaryDirectory())), stack)
        shop = Shop(tables)
        source.put(shop.messages(count, is_altered=True), "new")
        rows = {"current": sum(map(len, shop.keys)), "changelog": shop.logged}
        for into in _kinds(words):
            print(f"{count:,} messages into {tables} new tables ({lake}, {into})")
            for name, seconds, times in measure_settings(source, lake, into, tables, rows[into], turns):
                print(f"{name:<32}{seconds:8.2f} s{(times - 1) * 100:+8.0f} %", flush=True)


def main_of_merge(_: Sequence[str], numbers: Sequence[str]) -> None:
    """Measure merges into a table of many rows, and print."""
    count, more, turns = [*map(int, numbers), *(10_000_000, 1_000_000, 3)[len(numbers) :]]
    with tempfile.TemporaryDirectory() as folder:
        # The files of a state say where they are, so each turn has the same folder.
        root, loaded = Path(folder, "run"), Path(folder, "loaded")
        root.mkdir()
        source, shop = FileSource(Path(folder, "messages")), Shop(1, FIRST_KEY, is_altered=True)
        source.put(shop.messages(1), "new")
        local_run(root, source.show("new", root)[0], "delta", "current")
        append_rows(root, count - 1)
        shop.grow(count - 1)
        root.rename(loaded)
        source.put(shop.messages(more), "standing")
        print(f"{more:,} messages merged into a table of {count:,} rows (delta)")
        costs: dict[str, list[Cost]] = {"by hand": [], "pipeline": []}
        for kind in [*costs] * turns:
            shutil.copytree(loaded, root, copy_function=_link_or_copy)
            shutil.rmtree(root / ("lake" if kind == "by hand" else "hand"))
            costs[kind].append(_merge(root, source, is_by_hand=kind == "by hand"))
            counted = count_rows(root, "delta", 1)
            assert counted == len(shop.keys[0]), (kind, counted, len(shop.keys[0]))
            shutil.rmtree(root)
        for kind, found in costs.items():
            own = _medians(found)
            print(f"{kind:<10}{own.processor:10.2f} s{own.clock:10.2f} s by the clock{own.memory:8.0f} MiB", flush=True)


def append_rows(root: Path, count: int) -> None:
    """Append rows to the table of a pipeline, which has one row, and to another one of the same columns by hand."""
    path, hand = root / "lake/shop/t0", root / "hand/lake/t0"
    row = pa.table(DeltaTable(str(path)).to_pyarrow_table())
    pieces = [row, *(_rows_like(row, start, min(FILE * 20, count - start)) for start in range(0, count, FILE * 20))]
    for piece in pieces:
        if piece is not row:
            write_deltalake(str(path), piece, mode="append")
        write_deltalake(str(hand), piece.select([*COLUMNS, ADDED[0]]), mode="append")


def _rows_like(row: pa.Table, start: int, count: int) -> pa.Table:
    """Return rows that are like one, but for their keys and what is made of these."""
    keys = np.arange(FIRST_KEY + 1 + start, FIRST_KEY + 1 + start + count, dtype=np.int64)
    parts = [np.full(count, 2), *((keys * 2 >> shift & 0x7F) | (0x80 if shift < 21 else 0) for shift in (0, 7, 14, 21))]
    raw = np.stack([*parts, np.zeros(count, np.int64)], axis=1).astype(np.uint8).tobytes()
    encoded = pa.FixedSizeBinaryArray.from_buffers(pa.binary(6), count, [None, pa.py_buffer(raw)])
    own = {"id": pa.array(keys), "n": pa.array(keys), "_cdc_key": encoded}
    return pa.table(
        {one.name: own.get(one.name, pa.repeat(row[one.name][0], count)).cast(one.type) for one in row.schema}
    )


def _merge(root: Path, source: FileSource, *, is_by_hand: bool) -> Cost:
    if not is_by_hand:
        return local_run(root, source.show("standing", root)[0], "delta", "current")
    shutil.rmtree(root / "in")
    return hand_run(root, source.show("standing", root)[1], "delta", "current")


def _link_or_copy(source: str, target: str) -> None:
    """Copy a file; what nobody changes is the same one."""
    (os.link if source.endswith((".parquet", ".jsonl")) else shutil.copy2)(source, target)


def _kinds(words: Sequence[str]) -> list[str]:
    return [kind for kind in ("changelog", "current") if kind in words] or ["changelog", "current"]


def main() -> None:
    """Measure, and print."""
    words, numbers = [], []
    for word in sys.argv[1:]:
        (numbers if word.isdecimal() else words).append(word)
    if "settings" in words or "merge" in words:
        (main_of_settings if "settings" in words else main_of_merge)(words, numbers)
        return
    count, tables, more, turns = [*map(int, numbers), *(1_000_000, 20, 20_000, 3)[len(numbers) :]]
    lake = "iceberg" if "iceberg" in words else "delta"
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
        for into in _kinds(words):
            for part, hand, own in measure(source, lake, into, tables, parts, turns, is_alone="alone" in words):
                print(f"{into:<10}{part:<10}{hand.processor:19.2f}{hand.clock:8.2f}{hand.memory:7.0f}", end="")
                print(f"{own.processor:22.2f}{own.clock:8.2f}{own.memory:7.0f}{own.batch:11.2f}", end="")
                print(f"{hand.processor / own.processor:8.2f}", flush=True)


def _source(is_kafka: bool, folder: Path, stack: ExitStack) -> FileSource | TopicSource:
    if not is_kafka:
        return FileSource(folder / "messages")
    from support.kafka_server import broker  # noqa: PLC0415  it imports pyspark

    return TopicSource(stack.enter_context(broker(folder / "broker")), folder)


if __name__ == "__main__":
    main()

"""Measures `cdcavro sync` beside Paimon's `kafka_sync_database` on Flink: the same topic, the same cores, the same hour.

    python tests/benchmarks/paimon.py [mini] [spark] [MESSAGES] [TABLES] [TURNS]

The messages are those of `tests/benchmarks/local.py`, with inserts, updates, deletes, moved keys, and in the middle of them an
ALTER TABLE that adds a column to each table; behind them are those of three small tables with values of many digits, an
update that states a part of its row, and a renamed column. They are in one topic of two partitions, and become current states
in new tables. Flink is a cluster of one job manager and one task manager with two slots, which is started and stopped for each
turn; with `mini`, it is one process, as `flink run -t local` starts it. It makes a checkpoint every 10 seconds, and its tables
have one bucket each. The job is stopped once a checkpoint has all messages. The pipeline takes turns with it, and with `spark`
once on Spark, too. Figures are medians of processor time and clock seconds from the start of the first process to the end of
the last, and the resident memory of all of Flink's processes, or of the largest of a pipeline's.

In the end, each value of each row is compared with what the database would have: Flink SQL reads Paimon's tables, deltalake
the pipeline's.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from datetime import datetime
from decimal import Decimal
from itertools import chain, zip_longest
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple
from urllib.request import Request, urlopen

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

import pyarrow as pa
import pyspark
from confluent_kafka import Consumer, KafkaException, TopicPartition
from deltalake import DeltaTable

from benchmarks.local import ADDED, COLUMNS, Cost, Extra, Shop, TopicSource, local_run
from support.kafka_server import broker, fetched, spark_settings
from support.messages import canal
from support.processes import die_with_parent, free_ports

FLINK, PAIMON = "1.20.3", "1.3.1"
LIBRARIES = (
    ("org.apache.paimon", "paimon-flink-1.20", PAIMON),
    # Of those connectors that can be had everywhere, the newest that runs on this Flink.
    ("org.apache.flink", "flink-sql-connector-kafka", "3.2.0-1.19"),
)
# What the SQL client needs beside PyPI's distribution.
GATEWAY = (("org.apache.flink", "flink-sql-gateway", FLINK), ("org.apache.flink", "flink-sql-gateway-api", FLINK))
PACKAGES = ("lang", "lang.reflect", "net", "io", "nio", "text", "time", "util", "util.concurrent")
OPENED = [f"--add-opens=java.base/{one}=ALL-UNNAMED" for one in (*(f"java.{name}" for name in PACKAGES), "sun.nio.ch")]
CONFIGURATION = """\
jobmanager.rpc.address: 127.0.0.1
jobmanager.rpc.port: {rpc}
jobmanager.bind-host: 127.0.0.1
taskmanager.host: 127.0.0.1
taskmanager.bind-host: 127.0.0.1
taskmanager.numberOfTaskSlots: 2
taskmanager.cpu.cores: 2
taskmanager.memory.task.heap.size: 3g
taskmanager.memory.task.off-heap.size: 0m
taskmanager.memory.managed.size: 512m
taskmanager.memory.network.min: 256m
taskmanager.memory.network.max: 256m
taskmanager.memory.framework.heap.size: 128m
taskmanager.memory.framework.off-heap.size: 128m
taskmanager.memory.jvm-metaspace.size: 256m
taskmanager.memory.jvm-overhead.min: 256m
taskmanager.memory.jvm-overhead.max: 256m
parallelism.default: 2
rest.address: 127.0.0.1
rest.bind-address: 127.0.0.1
rest.port: {rest}
execution.checkpointing.interval: 10s
execution.checkpointing.dir: file://{folder}/checkpoints
io.tmp.dirs: {folder}/tmp
"""
LOGGING = """\
rootLogger.level = WARN
rootLogger.appenderRef.console.ref = console
appender.console.name = console
appender.console.type = CONSOLE
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d %p %c{1} %m%n
"""
JOB_MANAGER = "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint"
TASK_MANAGER = "org.apache.flink.runtime.taskexecutor.TaskManagerRunner"
COMMAND = "org.apache.flink.client.cli.CliFrontend"
ACTIONS = "org.apache.paimon.flink.action.FlinkActions"
SQL_CLIENT = "org.apache.flink.table.client.SqlClient"
SECONDS = 1_800
NUMBERS = ("bigint", "int", "decimal", "double")
EXACT = {
    "id": "bigint unsigned",
    "huge": "decimal(38,10)",
    "wide": "decimal(65,30)",
    "micro": "datetime(6)",
    "day": "date",
    "text": "varchar(20)",
    "nothing": "int",
}
EXACT_ROW = {
    "id": "18446744073709551615",
    "huge": "1234567890123456789012345678.0123456789",
    "wide": "12345678901234567890123456789012345.012345678901234567890123456789",
    "micro": "2024-02-29 23:59:59.999999",
    "day": "9999-12-31",
    "text": 'é😀,"\n\\',
    "nothing": None,
}


class State(NamedTuple):
    """The rows that a table has in the end: the types of its columns, and the texts of rows by their keys."""

    columns: Mapping[str, str]
    rows: Mapping[str, Sequence[str | None]]


def small_tables() -> Iterator[tuple[str, list[bytes], State]]:
    """Yield the name of each small table, its messages, and what it has in the end."""

    def message(table: str, types: Mapping[str, str], kind: str, row: Mapping[str, str | None], **more: Any) -> bytes:
        stated = {"database": "shop", "table": table, "mysqlType": types, **more}
        return canal(kind, [dict(row)], id=next(numbers), **stated)

    def statement(table: str, sql: str) -> bytes:
        return canal("ALTER", [], id=next(numbers), database="shop", table=table, isDdl=True, sql=sql)

    numbers = iter(range(10_000_000, 10_000_100))
    first, second, third = (EXACT_ROW | {"id": key} for key in ("1", "2", "3"))
    messages = [message("exact", EXACT, "INSERT", row) for row in (EXACT_ROW, first, third)]
    messages.append(message("exact", EXACT, "UPDATE", second, old=[{"id": "1"}]))
    messages.append(message("exact", EXACT, "DELETE", third))
    kept = {row["id"]: [*row.values()] for row in (EXACT_ROW, second)}
    yield "exact", messages, State(EXACT, kept)
    types = {"id": "int", "n": "int", "name": "varchar(9)"}
    messages = [
        message("partial", types, "INSERT", {"id": "1", "n": "1", "name": "a"}),
        message("partial", {"id": "int", "n": "int"}, "UPDATE", {"id": "1", "n": "2"}, old=[{"n": "1"}]),
    ]
    yield "partial", messages, State(types, {"1": ["1", "2", "a"]})
    messages = [
        message("renamed", {"id": "int", "old": "varchar(9)"}, "INSERT", {"id": "1", "old": "a"}),
        statement("renamed", "ALTER TABLE renamed RENAME COLUMN old TO new"),
        message("renamed", {"id": "int", "new": "varchar(9)"}, "INSERT", {"id": "2", "new": "b"}),
    ]
    yield "renamed", messages, State({"id": "int", "new": "varchar(9)"}, {"1": ["1", "a"], "2": ["2", "b"]})


def states(messages: Iterable[bytes]) -> dict[str, State]:
    """Return what the tables of the shop have in the end."""
    found: dict[str, dict[str, Sequence[str | None]]] = defaultdict(dict)
    for message in map(json.loads, messages):
        if message["isDdl"]:
            continue
        rows, (row,) = found[message["table"]], message["data"]
        for old in message["old"] or ():
            rows.pop(old.get("id"), None)
        if message["type"] == "DELETE":
            del rows[row["id"]]
        else:
            rows[row["id"]] = tuple(row.values())
    columns = {**COLUMNS, ADDED[0]: ADDED[1]}
    return {table: State(columns, rows) for table, rows in found.items()}


def differences(table: str, state: State, rows: Iterable[Mapping[str, str | None]]) -> Iterator[str]:
    """Yield what differs in a table from what it should have."""
    left = dict(state.rows)
    for row in rows:
        if (wanted := left.pop(row["id"], None)) is None:
            yield f"{table}: a row {row['id']} that should not be"
            continue
        for (name, declared), value in zip_longest(state.columns.items(), wanted):
            if not _is_same(declared, value, row.get(name)):
                yield f"{table}: {name} of the row {row['id']} is {row.get(name)!r} and should be {value!r}"
    yield from (f"{table}: the row {key} is missing" for key in left)


def _is_same(declared: str, wanted: str | None, found: str | None) -> bool:
    if wanted == found or wanted is None or found is None:
        return wanted == found
    return declared.startswith(NUMBERS) and Decimal(wanted) == Decimal(found)


class Flink:
    """Flink and Paimon in a folder, fetched there; each run has a folder of its own."""

    def __init__(self, folder: Path) -> None:
        pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(folder)]
        subprocess.run([*pip, f"apache-flink-libraries=={FLINK}"], check=True)
        (home,) = folder.glob("pyflink")
        libraries = fetched(folder / "jars", LIBRARIES, is_whole=False)
        (self.paimon,) = [jar for jar in libraries if jar.name.startswith("paimon")]
        # Paimon writes Parquet with Hadoop's classes; pyspark has them.
        hadoop = [*Path(pyspark.__file__).parent.glob("jars/hadoop-client-*.jar")]
        self.jars = [*(home / "lib").glob("*.jar"), *libraries, *hadoop]
        self.client = [*(home / "opt").glob("*.jar"), *fetched(folder / "client", GATEWAY, is_whole=False)]

    def start(self, root: Path, name: str, heap: str, main: str, *arguments: str) -> subprocess.Popen:
        """Start a process of Flink's, which finds its configuration in the folder of a run."""
        jars = ":".join(map(str, [*self.jars, *(self.client if main == SQL_CLIENT else [])]))
        logged = f"-Dlog4j2.configurationFile=file://{root}/log4j2.properties"
        command = ["java", f"-Xmx{heap}", *OPENED, logged, "-cp", jars, main, *arguments]
        variables = {**os.environ, "FLINK_CONF_DIR": str(root)}
        with (root / f"{name}.log").open("wb") as log:
            return subprocess.Popen(command, stdout=log, stderr=log, env=variables, preexec_fn=die_with_parent)  # noqa: PLW1509


class PaimonJob:
    """A job that reads a topic into tables, and the processes of its cluster."""

    def __init__(self, flink: Flink, root: Path, servers: str, topic: str, *, is_mini: bool) -> None:
        self.flink, self.root, self.servers, self.topic, self.is_mini = flink, root, servers, topic, is_mini
        rpc, rest = free_ports(2)
        self._url = f"http://127.0.0.1:{rest}"
        (root / "tmp").mkdir()
        (root / "config.yaml").write_text(CONFIGURATION.format(rpc=rpc, rest=rest, folder=root))
        (root / "log4j2.properties").write_text(LOGGING)
        self._client = Consumer({"bootstrap.servers": servers, "group.id": root.name, "log_level": 0})
        self._processes: list[subprocess.Popen] = []

    def run(self) -> Cost:
        """Read all messages of the topic, and return what this took."""
        began = time.monotonic()
        try:
            if not self.is_mini:
                self._start("jobmanager", "1g", JOB_MANAGER, "-c", str(self.root))
                self._start("taskmanager", "4g", TASK_MANAGER, "-c", str(self.root))
                self._wait(lambda: self._asked("overview")["slots-available"] == 2)
            self._start("job", "4g" if self.is_mini else "1g", COMMAND, *self._arguments())
            self._wait(self._has_read)
            ((job,),) = [[one["id"] for one in self._asked("jobs")["jobs"]]]
            self._asked(f"jobs/{job}/stop", {"targetDirectory": f"file://{self.root}/savepoints", "drain": False})
            if self.is_mini:
                self._wait(lambda: _exit_code(self._processes[0]) is not None)
            else:
                self._wait(lambda: self._asked(f"jobs/{job}")["state"] == "FINISHED")
        finally:
            self._client.close()
            used = [self._end(process) for process in self._processes]
        processor = sum(one.ru_utime + one.ru_stime for one in used)
        return Cost(processor, time.monotonic() - began, sum(one.ru_maxrss for one in used) / 1024, 0)

    def _start(self, name: str, heap: str, main: str, *arguments: str) -> None:
        self._processes.append(self.flink.start(self.root, name, heap, main, *arguments))

    def _arguments(self) -> list[str]:
        """Return the command that submits the job."""
        kafka = {
            "properties.bootstrap.servers": self.servers,
            "properties.group.id": self.root.name,
            "topic": self.topic,
            "value.format": "canal-json",
            "scan.startup.mode": "earliest-offset",
        }
        place = ["--warehouse", f"file://{self.root}/warehouse", "--database", "shop", "--table_conf", "bucket=1"]
        conf = chain.from_iterable(("--kafka_conf", f"{name}={value}") for name, value in kafka.items())
        where = ["-t", "local"] if self.is_mini else ["-d"]
        return ["run", *where, "-c", ACTIONS, str(self.flink.paimon), "kafka_sync_database", *place, *conf]

    def _asked(self, path: str, sent: object = None) -> Any:
        """Return what Flink's REST API answers."""
        body = None if sent is None else json.dumps(sent).encode()
        with urlopen(Request(f"{self._url}/{path}", body, {"Content-Type": "application/json"}), timeout=30) as answer:
            return json.load(answer)

    def _has_read(self) -> bool:
        """Return whether a checkpoint has all messages: then the job commits their offsets."""
        partitions = [TopicPartition(self.topic, number) for number in (0, 1)]
        ends = [self._client.get_watermark_offsets(one, timeout=60)[1] for one in partitions]
        return [one.offset for one in self._client.committed(partitions, timeout=60)] == ends

    def _wait(self, is_true: Callable[[], bool]) -> None:
        """Wait until something is true; an error of a server that starts means that it is not."""
        until = time.monotonic() + SECONDS
        while True:
            with suppress(OSError, KafkaException):
                if is_true():
                    return
            # The process that submits a job to a cluster ends before the job does.
            assert not any(map(_exit_code, self._processes)), self._logged()
            assert time.monotonic() < until, self._logged()
            time.sleep(0.5)

    def _logged(self) -> str:
        return "\n".join(path.read_text(errors="replace")[-3_000:] for path in self.root.glob("*.log"))

    @staticmethod
    def _end(process: subprocess.Popen) -> Any:
        """End a process, and return what it and those that it started have used."""
        if _exit_code(process) is None:
            process.terminate()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        return used

    def rows(self) -> Iterator[tuple[str, dict[str, str | None]]]:
        """Yield the table and the texts of each row, as Flink SQL reads it."""
        alike: dict[tuple[str, ...], list[str]] = defaultdict(list)
        for table in (self.root / "warehouse" / "shop.db").iterdir():
            newest = max((table / "schema").iterdir(), key=lambda path: int(path.name.rpartition("-")[2]))
            alike[tuple(field["name"] for field in json.loads(newest.read_text())["fields"])].append(table.name)
        out, options = self.root / "rows", "'connector' = 'filesystem', 'format' = 'csv', 'csv.null-literal' = '\\N'"
        statements = [
            "SET 'execution.runtime-mode' = 'batch'",
            "SET 'table.dml-sync' = 'true'",
            f"CREATE CATALOG paimon WITH ('type' = 'paimon', 'warehouse' = 'file://{self.root}/warehouse')",
        ]
        for number, (columns, tables) in enumerate(alike.items()):
            named = ", ".join(f"`{name}`" for name in columns)
            selected = (f"SELECT CAST('{one}' AS STRING) AS `of`, {named} FROM paimon.shop.`{one}`" for one in tables)
            into = f"CREATE TABLE rows{number} WITH ('path' = 'file://{out}/{number}', {options})"
            statements.append(f"{into} AS {' UNION ALL '.join(selected)}")
        file = self.root / "rows.sql"
        file.write_text("".join(f"{one};\n" for one in statements))
        client = self.flink.start(self.root, "sql", "2g", SQL_CLIENT, "-Dexecution.target=local", "-f", str(file))
        assert client.wait(SECONDS) == 0, self._logged()
        for number, columns in enumerate(alike):
            for path in (out / str(number)).glob("part-*"):
                with path.open(newline="", encoding="utf-8") as lines:
                    for table, *values in csv.reader(lines):
                        texts = (None if one == "\\N" else one for one in values)
                        yield table, dict(zip(columns, texts, strict=True))


def _exit_code(process: subprocess.Popen) -> int | None:
    """Return what a process has ended with, whose use can still be asked for, or None."""
    found = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    return None if found is None else found.si_status


def pipeline_rows(root: Path) -> Iterator[tuple[str, dict[str, str | None]]]:
    """Yield the table and the texts of each row that the pipeline has written."""
    for log in (root / "lake").rglob("_delta_log"):
        if log.parent.name.endswith("~~deletes"):
            continue
        for batch in pa.table(DeltaTable(str(log.parent)).scan()).to_batches():
            for row in batch.to_pylist():
                yield log.parent.name, {name: _spelled(value) for name, value in row.items()}


def _spelled(value: Any) -> str | None:
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat(" ")
    return None if value is None else str(value)


def compare(rows: Iterable[tuple[str, dict[str, str | None]]], wanted: Mapping[str, State]) -> None:
    """Print how many rows there are, and what differs."""
    found: dict[str, list[dict[str, str | None]]] = defaultdict(list)
    for table, row in rows:
        found[table].append(row)
    told = [one for table, state in wanted.items() for one in differences(table, state, found[table])]
    unknown = sorted(found.keys() - wanted.keys())
    rows_found = sum(map(len, found.values()))
    print(f"  {rows_found:,} rows, {len(told):,} differences{f', and tables {unknown}' if unknown else ''}")
    print("".join(f"    {one}\n" for one in told[:12]), end="", flush=True)


def main() -> None:
    """Measure, and print."""
    words = [one for one in sys.argv[1:] if not one.isdecimal()]
    numbers = [int(one) for one in sys.argv[1:] if one.isdecimal()]
    count, tables, turns = [*numbers, *(1_000_000, 20, 3)[len(numbers) :]]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        flink, source = Flink(folder / "flink"), TopicSource(stack.enter_context(broker(folder / "broker")), folder)
        wanted = _send(source, count, tables)
        kinds = [f"Paimon on Flink{', one process' if 'mini' in words else ''}", "cdcavro sync --local"]
        costs: dict[str, list[Cost]] = defaultdict(list)
        for kind in [*kinds * turns, *(["cdcavro sync"] if "spark" in words else [])]:
            with tempfile.TemporaryDirectory(prefix="run", dir=folder) as name:
                root = Path(name)
                if kind == kinds[0]:
                    job = PaimonJob(flink, root, source.broker.servers, "shop", is_mini="mini" in words)
                    cost, rows = job.run(), job.rows()
                else:
                    extra = Extra() if kind == kinds[1] else _spark_extra(folder / "spark")
                    section = f'kafka = "{source.broker.servers}"\ntopics = ["shop"]'
                    cost, rows = local_run(root, section, "delta", "current", extra), pipeline_rows(root)
                costs[kind].append(cost)
                print(f"{kind}: {cost.processor:.2f} s of processor time, {cost.clock:.2f} by the clock", flush=True)
                compare(rows, wanted)
        _print_medians(costs, f"{count:,} messages of {tables} tables")


def _send(source: TopicSource, count: int, tables: int) -> dict[str, State]:
    """Send the messages to the topic `shop`; return what the tables have in the end."""
    small = [*small_tables()]
    behind = ((number, message) for number, (_, messages, _) in enumerate(small) for message in messages)
    source.put(Shop(tables).messages(count, is_altered=True), "new")
    source.put(behind, "behind")
    for part in ("new", "behind"):
        source.show(part, source.folder / "shop")
    with (source.folder / "new").open("rb") as file:
        sent = states(line.partition(b" ")[2] for line in file)
    return {**sent, **{name: state for name, _, state in small}}


def _spark_extra(folder: Path) -> Extra:
    """Return what is stated of a pipeline that runs on Spark, which reads from Kafka."""
    folder.mkdir()
    settings = "".join(f"{json.dumps(name)} = {json.dumps(value)}\n" for name, value in spark_settings(folder).items())
    return Extra(sections=f"[spark]\n{settings}", run="spark")


def _print_medians(costs: Mapping[str, Sequence[Cost]], shape: str) -> None:
    print(f"\n{shape}\n{'':<32}{'processor':>12}{'clock':>12}{'MiB':>8}{'Paimon costs':>16}")
    middle = {kind: Cost(*(median(part) for part in zip(*found, strict=True))) for kind, found in costs.items()}
    most = next(iter(middle.values()))
    for kind, cost in middle.items():
        print(f"{kind:<32}{cost.processor:10.2f} s{cost.clock:10.2f} s{cost.memory:8.0f}", end="")
        print(f"{most.processor / cost.processor:10.1f} times")


if __name__ == "__main__":
    main()

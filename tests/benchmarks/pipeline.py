"""Measures the pipeline beside the same written by hand with Spark's own `from_json` and `try_cast`.

    python tests/benchmarks/pipeline.py [kafka] [iceberg] [MESSAGES] [TABLES] [FILES OF A BATCH]
    python tests/benchmarks/pipeline.py batches [iceberg] [MESSAGES OF A BATCH] [TABLES]...

Inserts, updates and deletes (one in twenty) of tables of 8 columns, as Canal sends them, in files of 50,000 messages. By hand, a message is parsed by
`from_json` with rows as maps, and each table's columns are cast, which is not exact and passes over what it does not
understand; a changelog has the row before an update, too; rows go into tables of Delta Lake, or Iceberg, whose columns are
known, by one append or one MERGE a table, which forgets what was deleted. The pipeline knows
nothing before it begins: it learns, keeps its state, counts, and writes what a batch of it writes. Both are streams with a
checkpoint, read the same files in batches of as many, and write tables one after another in as many threads. Clock seconds of
whole jobs, and their processor time: both take turns, six times, and the medians of the last three count, for until then the
JVM compiles what it runs, a third of a job's processor time in the second turn. With `kafka`, the messages come from a topic of
two partitions of a broker that is started for it.

With `batches`, what a batch costs whose tables are there, by their number: the median of the last four of six (of two of three
with more than 100 tables), and their processor time, which other work on the machine disturbs less.
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from cdcavro import spark as cdc
from cdcavro.spark.lake import Delta, Iceberg, lake_settings
from cdcavro.spark.lake.sinks import Sink
from cdcavro.spark.pipeline import BatchReport, Files, Formats, Kafka, LakeSettings, Pipeline, Settings
from support.kafka_server import Record, broker, spark_settings

Job = Callable[[SparkSession, Path, Any, int], dict[str, float] | None]
Make = Callable[[Path], Any]
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
CASTS = {"at": "timestamp_ntz", "name": "string", "code": "string", "nothing": "int", "part": "double"}
SCHEMA = (
    "data array<map<string,string>>, database string, es bigint, id bigint, old array<map<string,string>>,"
    " `table` string, type string, ts bigint"
)
# The row before an update is its row with what was older.
ROWS = """CASE WHEN type = 'UPDATE' THEN array(
    struct('b' AS op, map_zip_with(data[0], old[0], (name, newer, older) -> coalesce(older, newer)) AS row),
    struct('u' AS op, data[0] AS row)
) ELSE array(struct(CASE type WHEN 'DELETE' THEN 'd' ELSE 'c' END AS op, data[0] AS row)) END"""
# One message of so many is a delete.
DELETES = 20
FILE = 50_000
THREADS = 4
TURNS, WARM = 6, 3


def message(random: random.Random, i: int, tables: int) -> bytes:
    """Return the message of a change, of which one in twenty is a delete, and one in three of the others an update."""
    key, is_delete = random.randrange(100_000), random.randrange(DELETES) == 0
    is_update = i % 3 == 0 and not is_delete
    row = {
        "id": str(key),
        "n": str(i),
        "name": f"text {i}",
        "price": f"{i % 1000}.{i % 100:02}",
        "at": "2024-01-02 03:04:05",
        "nothing": None,
        "part": "0.5",
        "code": "0123456789",
    }
    return json.dumps(
        {
            "data": [row],
            "database": "shop",
            "es": 1_700_000_000_000 + i,
            "id": i,
            "isDdl": False,
            "mysqlType": COLUMNS,
            "old": [{"n": "1"}] if is_update else None,
            "pkNames": ["id"],
            "sql": "",
            "sqlType": None,
            "table": f"t{i % tables}",
            "ts": 1_700_000_000_001 + i,
            "type": "DELETE" if is_delete else "UPDATE" if is_update else "INSERT",
        }
    ).encode()


class Lake(NamedTuple):
    """Where tables by hand are, and those of the pipeline."""

    sink: Sink
    hand: Callable[[int], str]


def delta(folder: Path) -> Lake:
    """Return tables of Delta Lake in a folder."""
    return Lake(Delta(str(folder / "lake")), lambda number: f"delta.`{folder / 'hand' / f't{number}'}`")


def iceberg(folder: Path) -> Lake:
    """Return tables of Iceberg's, by hand in a namespace that is called as the folder; those of the pipeline are dropped first."""
    spark = SparkSession.active()
    for row in spark.sql("SHOW NAMESPACES IN ice").collect():
        for table in spark.sql(f"SHOW TABLES IN ice.`{row[0]}`").collect():
            spark.sql(f"DROP TABLE ice.`{row[0]}`.`{table['tableName']}` PURGE")
    spark.sql(f"CREATE NAMESPACE ice.`{folder.name}`")
    return Lake(Iceberg("ice"), lambda number: f"ice.`{folder.name}`.t{number}")


class Source(NamedTuple):
    """Where messages come from: the stream of their texts, and the pipeline's source."""

    texts: Callable[[SparkSession], DataFrame]
    own: Files | Kafka


def of_files(folder: Path, most: int) -> Source:
    """Return the files of a folder, so many in a batch."""
    return Source(
        lambda spark: spark.readStream.option("maxFilesPerTrigger", most).text(str(folder)), Files(str(folder), most)
    )


def of_topic(servers: str, topic: str, most: int) -> Source:
    """Return the messages of a topic, so many in a batch."""
    options = {"subscribe": topic, "startingOffsets": "earliest", "maxOffsetsPerTrigger": str(most)}

    def texts(spark: SparkSession) -> DataFrame:
        reader = spark.readStream.format("kafka").options(**{"kafka.bootstrap.servers": servers, **options})
        return reader.load().select(sf.col("value").cast("string"))

    return Source(texts, Kafka(servers, (topic,), most=most))


def records(count: int, tables: int) -> Iterator[Record]:
    """Yield the messages as records of two partitions."""
    draw = random.Random(1)
    for i in range(count):
        yield Record("shop", i % 2, None, message(draw, i, tables))


def write_files(folder: Path, count: int, tables: int) -> None:
    """Write the messages."""
    draw = random.Random(1)
    for start in range(0, count, FILE):
        lines = [message(draw, i, tables) + b"\n" for i in range(start, min(start + FILE, count))]
        (folder / f"{start:09}.jsonl").write_bytes(b"".join(lines))


def by_hand(texts: DataFrame, *, is_changelog: bool = False) -> DataFrame:
    """Return the rows as one writes them by hand; those of a changelog have operations, and the rows before updates."""
    parsed = texts.select(sf.from_json("value", SCHEMA).alias("m")).select("m.*").withColumnRenamed("id", "m_id")
    if is_changelog:
        exploded = parsed.select("table", "es", "m_id", sf.explode(sf.expr(ROWS)).alias("made"))
        rows = exploded.select("table", "es", "m_id", sf.col("made.op").alias("op"), sf.col("made.row").alias("row"))
    else:
        gone = (sf.col("type") == "DELETE").alias("gone")
        rows = parsed.select("table", "es", "m_id", gone, sf.explode("data").alias("row"))
    casts = [sf.col("row")[name].try_cast(CASTS.get(name, declared)).alias(name) for name, declared in COLUMNS.items()]
    return rows.select("table", "op" if is_changelog else "gone", sf.struct("es", "m_id").alias("order"), *casts)


def hand_rows(texts: DataFrame, _: Lake, __: int) -> None:
    """Text to rows, which go nowhere."""
    by_hand(texts).write.format("noop").mode("overwrite").save()


def hand_changelog(texts: DataFrame, lake: Lake, tables: int) -> None:
    """Rows appended to a table each, with those before updates, as the changelog has them."""
    kept, spark = by_hand(texts, is_changelog=True).persist(), texts.sparkSession

    def write(number: int) -> None:
        table = created(spark, lake, number, "op string, ")
        kept.where(sf.col("table") == f"t{number}").drop("table").writeTo(table).append()

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(write, range(tables)))
    kept.unpersist()


def created(spark: SparkSession, lake: Lake, number: int, more: str = "") -> str:
    """Return a table by hand, which there is then."""
    table = lake.hand(number)
    types = ", ".join(f"`{name}` {CASTS.get(name, declared)}" for name, declared in COLUMNS.items())
    columns = f"{more}`order` struct<es: bigint, m_id: bigint>, {types.replace('varchar(20)', 'string')}"
    spark.sql(f"CREATE TABLE IF NOT EXISTS {table} ({columns}) USING {lake.sink.using}")
    return table


def hand_current(texts: DataFrame, lake: Lake, tables: int) -> None:
    """The last row of each key merged into a table each."""
    kept, spark = by_hand(texts).persist(), texts.sparkSession

    def write(number: int) -> None:
        table = created(spark, lake, number)
        rows = kept.where(sf.col("table") == f"t{number}").drop("table")
        struct = sf.struct(*rows.columns)
        last = rows.groupBy(sf.col("id").alias("key")).agg(sf.max_by(struct, "order").alias("r")).select("r.*")
        view, listed = f"hand_{number}", [f"`{name}`" for name in ("order", *COLUMNS)]
        last.createOrReplaceTempView(view)
        spark.sql(
            f"MERGE INTO {table} t USING {view} s ON t.id = s.id"
            " WHEN MATCHED AND s.gone AND s.`order` > t.`order` THEN DELETE"
            f" WHEN MATCHED AND s.`order` > t.`order` THEN UPDATE SET {', '.join(f't.{one} = s.{one}' for one in listed)}"
            f" WHEN NOT MATCHED AND NOT s.gone THEN INSERT ({', '.join(listed)})"
            f" VALUES ({', '.join(f's.{one}' for one in listed)})"
        )

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(write, range(tables)))
    kept.unpersist()


def streamed(
    hand: Callable[[DataFrame, Lake, int], None], source: Source, say: Callable[[], None] | None = None
) -> Job:
    """Return the job that one writes by hand, which calls `say` behind each batch."""

    def run(spark: SparkSession, folder: Path, lake: Lake, tables: int) -> None:
        def write(texts: DataFrame, _: int) -> None:
            hand(texts, lake, tables)
            if say is not None:
                say()

        stream = (
            source.texts(spark).writeStream.foreachBatch(write).option("checkpointLocation", str(folder / "checkpoint"))
        )
        stream.trigger(availableNow=True).start().awaitTermination()

    return run


def ours(source: Source, **chosen_lake: bool) -> Job:
    """Return the pipeline's job."""

    def run(spark: SparkSession, folder: Path, lake: Lake, _: int) -> dict[str, float]:
        reports: list[BatchReport] = []
        sink = LakeSettings(lake.sink, parallel=THREADS, **chosen_lake)
        chosen = Settings(Formats("canal"))
        Pipeline(source.own, sink, str(folder / "state"), chosen).run(spark, once=True, say=reports.append)
        assert all(report.counts["written"] == report.counts["read"] for report in reports)
        return {part: sum(report.seconds[part] for report in reports) for part in reports[0].seconds}

    return run


def measured(jobs: Sequence[Job], spark: SparkSession, make: Make, tables: int) -> list[tuple[Any, ...]]:
    """Return the seconds of each job, its processor time, and the seconds of its parts in its last turn."""
    laps, parts = [Laps() for _ in jobs], [{}] * len(jobs)
    for _ in range(TURNS):
        for i, job in enumerate(jobs):
            with tempfile.TemporaryDirectory() as folder:
                lake = make(Path(folder))
                laps[i].begin()
                parts[i] = job(spark, Path(folder), lake, tables) or {}
                laps[i]()
    return [(*lap.medians(WARM), part) for lap, part in zip(laps, parts, strict=True)]


def processor_seconds() -> float:
    """Return the processor time of this process and all that it started, which still run."""
    stats: dict[int, tuple[int, int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            facts = path.read_text().rsplit(")", 1)[1].split()
            stats[int(path.parent.name)] = int(facts[1]), int(facts[11]) + int(facts[12])
    own = {os.getpid()}
    for _ in range(4):
        own |= {process for process, (parent, _) in stats.items() if parent in own}
    return sum(stats[process][1] for process in own if process in stats) / os.sysconf("SC_CLK_TCK")


class Laps:
    """Clock and processor seconds between calls."""

    def __init__(self) -> None:
        self.laps: list[tuple[float, float]] = []
        self.begin()

    def begin(self) -> None:
        """Begin a lap."""
        self._last = time.monotonic(), processor_seconds()

    def __call__(self, _: object = None) -> None:
        """End a lap, and begin one."""
        now = time.monotonic(), processor_seconds()
        self.laps.append((now[0] - self._last[0], now[1] - self._last[1]))
        self._last = now

    def medians(self, count: int) -> tuple[float, float]:
        """Return the medians of the last ones."""
        clock, processor = (median(part) for part in zip(*self.laps[-count:], strict=True))
        return clock, processor

    def __str__(self) -> str:
        """The medians of all but the first two, or the first where there are few."""
        clock, processor = self.medians(len(self.laps) - (2 if len(self.laps) > 3 else 1))
        return f"{clock:8.2f}{processor:8.2f}"


def batches(spark: SparkSession, make: Make, count: int, numbers: list[int]) -> None:
    """Print what a batch costs, by hand and with the pipeline, by the number of tables."""
    print(f"a batch of {count:,} messages: seconds by the clock and of processor time")
    print(f"{'into':<16}{'tables':>7}{'by hand':>16}{'pipeline':>16}")
    for name, hand, chosen in (
        ("a changelog", hand_changelog, {"is_current": False, "is_changelog": True}),
        ("current states", hand_current, {}),
    ):
        for tables in numbers:
            with tempfile.TemporaryDirectory() as folder:
                root = Path(folder)
                (root / "in").mkdir()
                draw = random.Random(1)
                for i in range(3 if tables > 100 else 6):
                    lines = [message(draw, j, tables) + b"\n" for j in range(i * count, (i + 1) * count)]
                    path = root / "in" / f"{i}.jsonl"
                    path.write_bytes(b"".join(lines))
                    os.utime(path, (1_700_000_000 + i,) * 2)
                lake, source = make(root), of_files(root / "in", 1)
                base = Laps()
                streamed(hand, source, base)(spark, root, lake, tables)
                sink = LakeSettings(lake.sink, parallel=THREADS, **chosen)
                own = Laps()
                job = Pipeline(source.own, sink, str(root / "state"), Settings(Formats("canal")))
                job.run(spark, once=True, say=own)
                print(f"{name:<16}{tables:7}{base}{own}", flush=True)


def whole(spark: SparkSession, make: Make, source: Source, count: int, tables: int) -> None:
    """Print what a whole job costs, by hand and with the pipeline."""
    print(f"{'into':<16}{'by hand s':>16}{'messages/s':>12}{'pipeline s':>16}{'messages/s':>12}{'ratio':>12}  parts")
    jobs = {
        "a changelog": (hand_changelog, ours(source, is_current=False, is_changelog=True)),
        "current states": (hand_current, ours(source)),
    }
    ((clock, processor, _),) = measured([streamed(hand_rows, source)], spark, make, tables)
    print(f"{'(rows only)':<16}{clock:8.1f}{processor:8.1f}{count / clock:12,.0f}", flush=True)
    for name, (hand, own) in jobs.items():
        (*base, _), (*made, parts) = measured([streamed(hand, source), own], spark, make, tables)
        ratios = [one / other for one, other in zip(base, made, strict=True)]
        print(
            f"{name:<16}{base[0]:8.1f}{base[1]:8.1f}{count / base[0]:12,.0f}{made[0]:8.1f}{made[1]:8.1f}"
            f"{count / made[0]:12,.0f}{ratios[0]:6.2f}{ratios[1]:6.2f}  {parts}",
            flush=True,
        )


def main() -> None:
    """Print the table."""
    words = [one for one in sys.argv[1:] if not one.isdigit()]
    numbers = [int(one) for one in sys.argv[1:] if one.isdigit()]
    count = numbers[0] if numbers else 20_000 if "batches" in words else 200_000
    tables = numbers[1] if len(numbers) > 1 else 20
    most = numbers[2] if len(numbers) > 2 else 4
    config = {
        "spark.ui.enabled": "false",
        "spark.driver.memory": "4g",
        "spark.sql.shuffle.partitions": "2",
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.ui.showConsoleProgress": "false",
    }
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (folder / "warehouse").mkdir()
        config |= lake_settings(catalog="ice" if "iceberg" in words else None, warehouse=f"{folder}/warehouse")
        make: Make = iceberg if "iceberg" in words else delta
        if "kafka" in words:
            (folder / "jars").mkdir()
            kafka = spark_settings(folder / "jars")
            packages = ",".join([config["spark.jars.packages"], kafka["spark.jars.packages"]])
            config |= {**kafka, "spark.jars.packages": packages}
        spark = cdc.session("pipeline", master="local[2]", config=config)
        stack.callback(spark.stop)
        spark.sparkContext.setLogLevel("OFF")
        if "batches" in words:
            batches(spark, make, count, numbers[1:] or [1, 20, 200])
            return
        print(f"{count:,} messages, {tables} tables, {most * FILE:,} messages a batch: seconds, and of processor time")
        if "kafka" in words:
            started = stack.enter_context(broker(folder / "broker"))
            started.create("shop", 2)
            started.send(records(count, tables))
            source = of_topic(started.servers, "shop", most * FILE)
        else:
            (folder / "in").mkdir()
            write_files(folder / "in", count, tables)
            source = of_files(folder / "in", most)
        whole(spark, make, source, count, tables)


if __name__ == "__main__":
    main()

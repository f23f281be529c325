"""Shards on Spark: the lake table is that of the local runner, which any of the runners goes on with."""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from cdcavro.errors import JobError
from cdcavro.lake.lakes import HISTORY
from cdcavro.spark.lake import spark_tables
from cdcavro.spark.lake.sinks import take_steps
from cdcavro.spark.pipeline import Pipeline
from cdcavro.sync.batches import BatchReport
from cdcavro.sync.config import read_config
from cdcavro.sync.outputs.shard_schemas import SHARDS
from cdcavro.sync.outputs.topic_records import BATCH, ORDER
from cdcavro.sync.pipeline import JOB
from support.kafka_server import Broker
from support.local_pipelines import DELTA, ICEBERG
from support.shard_streams import LAKE, ONE, ROUTES, THREE, TWO, FileShards, Shards, check_shards

pytestmark = [pytest.mark.timeout(1_800), pytest.mark.classic, pytest.mark.since("4.1")]
# The local runner, Spark, and Spark whose driver writes small batches.
LOCAL, SPARK, DRIVER = "LSD"


def _clear(spark: SparkSession) -> None:
    """Remove the tables of shards from Iceberg's one catalog."""
    shutil.rmtree(Path(spark.conf.get("spark.sql.catalog.ice.warehouse", "")) / "shop", ignore_errors=True)


@pytest.fixture(autouse=True)
def room(spark: SparkSession) -> Iterator[None]:
    """Leave no tables behind."""
    yield
    _clear(spark)


@dataclass
class FileTurns(FileShards):
    """A pipeline of shards into Avro files whose batches runners run in turns."""

    spark: SparkSession | None = None
    turns: str = SPARK

    def __post_init__(self) -> None:
        """Begin with the first turn."""
        self._turns = itertools.cycle(self.turns)
        super().__post_init__()

    def reports(self, **more: Any) -> list[BatchReport]:
        """Let the next runner run what was sent."""
        if next(self._turns) == LOCAL:
            return super().reports(**more)
        assert self.spark is not None
        path = self.job.config(**more, run="spark")
        reports: list[BatchReport] = []
        read_config(path).pipeline(str(path), Pipeline).run(self.spark, once=True, say=reports.append)
        return reports


@dataclass
class Turns(Shards):
    """A pipeline of shards whose batches runners run in turns."""

    spark: SparkSession | None = None
    turns: str = SPARK

    def __post_init__(self) -> None:
        """Begin with an empty lake, and with the first turn."""
        assert self.spark is not None
        self.warehouse = self.spark.conf.get("spark.sql.catalog.ice.warehouse")
        self._turns = itertools.cycle(self.turns)
        super().__post_init__()

    def reports(self, **more: Any) -> list[BatchReport]:
        """Let the next runner run what was sent."""
        runner = next(self._turns)
        if runner == LOCAL:
            return super().reports(**more)
        assert self.spark is not None
        path = self.job.config(**more, run="spark", lake={**self.job.lake, "native": runner == DRIVER})
        reports: list[BatchReport] = []
        read_config(path).pipeline(str(path), Pipeline).run(self.spark, once=True, say=reports.append)
        return reports

    def everything(self) -> dict[str, Any]:
        """Return what the lake tables hold, and what they say of shards."""
        found: dict[str, Any] = {}
        job = json.loads((self.folder / "state" / JOB).read_bytes())["job"]
        for suffix in ("", "changes"):
            table = self.job.table(LAKE, suffix)
            said = table.properties()
            if said is not None:
                names = table.schema().names
                own = {name: value for name, value in said.items() if name.startswith("cdcavro.")}
                own = {name: value.replace(job, "this pipeline") for name, value in own.items()}
                left = {name: value for name, value in own.items() if not name.endswith((".created", ".begun"))}
                found[suffix] = [(one.name, one.field, one.type) for one in table.columns()], left
                found[f"rows {suffix}"] = names, self.job.rows(LAKE, *names, suffix=suffix)
        return found


@pytest.mark.parametrize(("kind", "turns", "seed"), [(DELTA, "SDLS", 2), (ICEBERG, "LSDS", 4)])
def test_the_lake_table_is_that_of_the_local_runner(
    spark: SparkSession, tmp_path: Path, kind: str, turns: str, seed: int
):
    """However shards lag behind statements, whatever is sent again, and whoever runs which batch."""
    found = []
    for runners in (turns, LOCAL):
        # Orders of changes have the paths of files.
        made = Turns(tmp_path / "run", kind, spark=spark, turns=runners)
        check_shards(made, seed, len(turns))
        found.append(made.everything())
        made.folder.rename(tmp_path / runners)
        _clear(spark)
    taken, alone = found
    assert {*taken} == {"", "changes", "rows ", "rows changes"}
    for name, held in alone.items():
        assert taken[name] == held, name


@pytest.mark.parametrize(("turns", "seed"), [("SL", 2), ("LSS", 5)])
def test_files_of_shards_are_those_of_the_local_runner(spark: SparkSession, tmp_path: Path, turns: str, seed: int):
    """Under the same schemas, whoever runs which batch."""
    found = []
    for runners in (turns, LOCAL):
        # Orders of changes have the paths of files.
        made = FileTurns(tmp_path / "run", spark=spark, turns=runners)
        check_shards(made, seed, 4)
        versions = {str(path.relative_to(made.data)) for path in made.data.rglob("*.avro")}
        found.append((made.changes(), versions, json.loads((tmp_path / "run" / "state" / SHARDS).read_bytes())))
        made.folder.rename(tmp_path / runners)
    assert found[0] == found[1]


def test_topics_of_shards_are_those_of_the_local_runner(spark: SparkSession, kafka: Broker, tmp_path: Path):
    """The same keys and values to the byte, of batches that the runners ran in turns."""
    found = []
    for number, runners in enumerate(("SL", LOCAL)):
        made = FileTurns(tmp_path / "run", spark=spark, turns=runners)
        topic = {"servers": kafka.servers, "topic": f"shards{number}", "partitions": 1}
        registry = {"url": f"file:{tmp_path}/schemas{number}", "strategy": "topic-record"}
        made.job.more = {"kafka": topic, "registry": registry, "route": ROUTES}
        made.run(*(made.row(one, id="1", a="1") for one in (ONE, TWO)))
        sql = "ALTER TABLE orders CHANGE a b bigint"
        made.types = {"b": "bigint"}
        made.run(made.sql(ONE, sql), made.row(ONE, id="2", b="2"), made.row(TWO, "DELETE", id="1", a="1"))
        made.run(made.sql(TWO, sql), made.row(TWO, id="3", b="2"), made.sql(ONE, "TRUNCATE TABLE orders"))
        made.folder.rename(tmp_path / f"{number}")
        records = [(one.key(), one.value(), dict(one.headers())) for one in kafka.records(f"shards{number}")]
        found.append([(key, value, headers[ORDER], headers[BATCH]) for key, value, headers in records])
    assert len(found[0]) == 7
    assert sorted(map(repr, found[0])) == sorted(map(repr, found[1]))


@pytest.mark.parametrize("kind", [DELTA, ICEBERG])
def test_spark_that_dies_between_two_columns_is_gone_on_with(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
):
    """By the local runner, and by Spark: each step of a statement is a commit there."""
    made = Turns(tmp_path, kind, spark=spark, turns="SSLSS")
    made.run(*(made.row(one, id="0", a="1", b="2") for one in (ONE, TWO)))
    wanted = [(ONE, 0, 1, 2), (TWO, 0, 1, 2)]
    for number, (count, is_log) in enumerate([(3, False), (2, True)], start=1):
        first, second = "ba" if number % 2 else "ab"
        sql = f"ALTER TABLE orders RENAME COLUMN a TO b, RENAME COLUMN b TO a, ADD c{number} int"
        given = {"id": str(number), first: "3", second: "4", **{f"c{i}": "5" for i in range(1, number + 1)}}
        made.job.send(*(made.sql(one, sql) for one in (ONE, TWO)), *(made.row(one, **given) for one in (ONE, TWO)))
        wanted += [(one, number, 3, 4) for one in (ONE, TWO)]

        def take_some(*given: Any, count: int = count, is_log: bool = is_log) -> None:
            session, sink, identifier, steps, properties = given
            if len(steps) > count and ("changes" in identifier) == is_log:
                take_steps(session, sink, identifier, steps[:count], properties)
                raise OSError("cut off")
            take_steps(*given)

        with monkeypatch.context() as patch:
            patch.setattr(spark_tables, "take_steps", take_some)
            with pytest.raises(JobError, match="cut off"):
                made.run()
        made.run()
        assert made.rows("id", first, second) == sorted(wanted, key=repr), number
        assert made.names == sorted(["id", "a", "b", *(f"c{i}" for i in range(1, number + 1))])
    assert len(made.rows("id", suffix="changes")) == len(wanted)


def test_versions_and_rows_that_wait_are_those_of_their_shard(spark: SparkSession, tmp_path: Path):
    """As the local runner has them."""
    found = []
    for turns in (SPARK, LOCAL):
        made = Turns(tmp_path / "run", DELTA, {"form": HISTORY}, spark=spark, turns=turns)
        made.run(made.row(ONE, id="1", a="1"), made.row(TWO, id="1", a="2"), made.row(TWO, "UPDATE", id="1", a="3"))
        made.types = {"a": "varchar(9)"}
        late = made.row(THREE, id="1", a="x")
        made.types = {}
        (said,) = made.run(late, made.row(TWO, "DELETE", id="1", a="3"))
        assert "'a' is string, and int in other shards: neither type holds the values of the other" in said
        made.run(made.sql(ONE, "TRUNCATE TABLE orders"), made.row(ONE, id="2", a="4"))
        found.append(made.everything())
        assert made.rows("id", "a") == [(ONE, 1, 1), (ONE, 2, 4), (TWO, 1, 2), (TWO, 1, 3)]
        made.folder.rename(tmp_path / turns)
    taken, alone = found
    for name, held in alone.items():
        assert taken[name] == held, name

"""Pipelines into Avro files and into topics that are killed with kill -9: each change is there once.

Run by hand: python tests/support/output_kills.py KILLS [SEED]

As `sync_kills.py`, whose messages these are, and whose account. In topics a change may stand twice: a reader that follows
the headers, as the page says, has it once.
"""

from __future__ import annotations

import io
import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

import fastavro
from pyspark.sql import SparkSession

from cdcavro import registry
from cdcavro.lake.escaped_names import topic_name
from cdcavro.lake.job_state import JobState
from cdcavro.spark.lake import Delta
from cdcavro.spark.pipeline import AvroFiles, Files, KafkaTopics, RegistrySettings
from cdcavro.spark.pipeline.record_sinks import AvroFileWriter, KafkaWriter
from cdcavro.sync.batches import Batches
from cdcavro.sync.outputs.avro_folder import AvroFolder
from cdcavro.sync.outputs.topic_records import JOB, ORDER, TABLE
from cdcavro.table import TableName
from support.avro_changes import listed
from support.kafka_server import Broker, broker, spark_settings
from support.kills import RANDOM, at, behind_writing, differences
from support.pipelines import Job
from support.sync_kills import Trial, run_child, session_for, tell

AVRO, TOPICS = "avro", "topics"
_WRITERS = {AVRO: AvroFileWriter, TOPICS: KafkaWriter}
_POINTS: dict[str, dict[str, Callable[[Path], None]]] = {
    name: {
        "between state and rejects": lambda _: at(JobState, "write", is_after=True, calls=2),
        "between two tables": lambda _, writer=writer: at(writer, "_write", is_after=True, calls=2),
        "before the checkpoint's commit": lambda _: at(Batches, "run", is_after=True, calls=2),
    }
    for name, writer in _WRITERS.items()
}
_POINTS[AVRO]["while a file is written"] = lambda _: behind_writing(AvroFolder, "replace", calls=2)
_POINTS[TOPICS]["before records are sent"] = lambda _: at(KafkaWriter, "_send", calls=5)


@dataclass
class OutputTrial(Trial):
    """A pipeline that is killed, into Avro files or topics, as `sink` says.

    Attributes: `target`, the broker of the topics; `servers` are its; `again` (int), how many changes stood there again.
    """

    target: Broker | None = None
    again: int = 0
    script: ClassVar[str] = __file__
    points: ClassVar[Mapping[str, Callable[[Path], None]]] = {
        f"{sink}: {name}": point for sink, points in _POINTS.items() for name, point in points.items()
    }

    @property
    def lake(self) -> Path:
        """The folder of its data."""
        return self.folder / "out"

    def job(self, spark: SparkSession | None = None, *, parallel: int = 2, **_: Any) -> Job:
        """Return the pipeline."""
        own = Job(self.folder, Delta(str(self.folder)), files=self.files, spark=spark)
        own.source = Files(str(self.folder / "in"), most=self.most)
        if self.sink == AVRO:
            own.out = AvroFiles(str(self.lake), parallel=parallel)
        else:
            own.out = KafkaTopics(self.servers, self._topics, parallel=parallel)
            own.registry = RegistrySettings(f"file:{self.folder}/schemas")
        return own

    @property
    def _topics(self) -> str:
        return self.folder.name + ".sink.{name}"

    def faults_of_tables(self, job: Job) -> Iterator[str]:
        """Yield what differs from what there must be."""
        for table in self.work.tables:
            found = self._in_files(job, table) if self.sink == AVRO else self._in_topic(job, table)
            yield from differences(f"changes of {table}", Counter(listed(found)), self.work.log[table])

    def _in_files(self, job: Job, table: str) -> list[dict[str, Any]]:
        return job.changes(f'"{self.work.database}".{table}')

    def _in_topic(self, job: Job, table: str) -> Iterator[dict[str, Any]]:
        """Yield the changes of a table as a reader has them that follows the headers."""
        assert self.target is not None
        assert job.registry is not None
        schemas, had = registry.connect(job.registry.url), set()
        for record in self.target.records(topic_name(self._topics, TableName(self.work.database, None, table))):
            headers = dict(record.headers())
            identity = headers[JOB], headers[TABLE], headers[ORDER]
            self.again += identity in had
            if identity not in had and record.value() is not None:
                writer, payload = schemas.open(record.value())
                yield fastavro.schemaless_reader(io.BytesIO(payload), json.loads(writer.schema.json))
            had.add(identity)


def _by_hand(kills: int, seed: int) -> int:
    """Kill pipelines so often, and print what differs in the end; return 1 if anything does."""
    draw, done, trials, again, is_bad = random.Random(seed), 0, 0, 0, False
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        started = stack.enter_context(broker(Path(folder, "broker")))
        kafka, warehouse = spark_settings(Path(folder, "jars")), str(Path(folder, "warehouse"))
        spark = stack.enter_context(session_for(warehouse, kafka))
        more = {"servers": started.servers, "kafka": kafka, "target": started}
        while done < kills:
            sink, trials = (AVRO, TOPICS)[trials % 2], trials + 1
            trial = OutputTrial(Path(folder, f"kills_{trials}"), sink, warehouse, draw.randrange(1 << 30), **more)
            own = [point for point in OutputTrial.points if point.startswith(sink)]
            for point in (*draw.sample(own, 2), RANDOM):
                tell(trial, point)
            done += len(trial.kills)
            faults = trial.finish(spark)
            counts = dict(trial.work.counts)
            print(f"{sink}: {trial.kills}, {counts}, {trial.again} again: {faults or 'all as it must be'}", flush=True)
            is_bad, again = is_bad or bool(faults), again + trial.again
    print(f"control: {again or 'NO'} changes stand twice in topics")
    return is_bad or not again


if __name__ == "__main__":
    if sys.argv[1] == "--child":
        run_child(OutputTrial)
    else:
        sys.exit(_by_hand(int(sys.argv[1]), int((sys.argv[2:] or [1])[0])))

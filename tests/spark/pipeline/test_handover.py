"""A stream that Spark and the local runner read by turns, on one checkpoint: each message once, in the same batches."""

from __future__ import annotations

import base64
import bz2
import gzip
import json
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from cdcavro.files.lines import KEPT
from cdcavro.spark.pipeline.runner import _is_lag_bug, replay_stream, stream_of
from cdcavro.spark.source.line_frame import whole_files
from cdcavro.sync import sources
from cdcavro.sync.reading.checkpoint import Checkpoint
from cdcavro.sync.reading.file_source import FileProgress, FileReader, ReplayReader
from cdcavro.sync.reading.kafka_source import KafkaReader
from cdcavro.wire.kafka import put_before
from support.kafka_server import Broker, Record

Rows = list[dict[str, Any]]
# Every how many batches Spark compacts the log of files.
TEN = 10
BOM = b"\xef\xbb\xbf"


class Turns:
    """A stream in a folder, with the rows of each of its batches as the runners gave them."""

    def __init__(self, spark: SparkSession, folder: Path, source: sources.Files | sources.Kafka) -> None:
        self.spark, self.source = spark, source
        self.state = folder / "state"
        self.again = self.state / "replay"
        self.again.mkdir(parents=True)
        self.batches: dict[int, Rows] = {}
        self.repeated: list[tuple[Rows, Rows]] = []

    def spark_runs(self, *, fails_at: int = -1) -> list[int]:
        """Let Spark read all that there is, or fail in a batch; return the numbers of the batches that it ran."""
        ran: list[int] = []

        def take(frame: DataFrame, number: int) -> None:
            self._note(number, [row.asDict() for row in frame.collect()])
            ran.append(number)
            if number == fails_at:
                raise RuntimeError("as if the process were killed")

        messages = stream_of(self.source, self.spark).unionByName(
            replay_stream(self.spark, f"file://{self.again}"), allowMissingColumns=True
        )
        with whole_files(self.spark):
            writer = messages.writeStream.foreachBatch(take).trigger(availableNow=True)
            writer = writer.option("checkpointLocation", f"file://{self.state / 'checkpoint'}")
            try:
                writer.start().awaitTermination()
            except PySparkException as error:
                if _is_lag_bug(error):
                    writer.start().awaitTermination()
                elif fails_at < 0:
                    raise
        self._check()
        return ran

    def local_runs(self, *, stops_before_commit_of: int = -1) -> list[int]:
        """Read all that there is without Spark, or stop behind the run of a batch; return those that ran."""
        checkpoint = Checkpoint(self.state / "checkpoint")
        again = FileProgress(ReplayReader(self.again), checkpoint.files(1))
        own = (
            _LocalKafka(self.source, checkpoint)
            if isinstance(self.source, sources.Kafka)
            else _LocalFiles(self.source, checkpoint)
        )
        ran: list[int] = []
        while True:
            number, last = checkpoint.next, checkpoint.last
            if last is None or last.is_committed:
                again.look()
                ends = [own.advance(checkpoint.start_of(number)[0]), again.advance()]
                if ends == checkpoint.start_of(number):
                    break
                checkpoint.plan(number, ends)
            (start, start_again), (end, end_again) = checkpoint.start_of(number), checkpoint.end_of(number)
            rows = own.rows(start, end)
            for file in again.files(start_again, end_again):
                rows += [row for batch in ReplayReader(self.again).batches(file) for row in batch.to_pylist()]
            self._note(number, rows)
            ran.append(number)
            if number == stops_before_commit_of:
                break
            checkpoint.commit(number)
        own.close()
        self._check()
        return ran

    def _check(self) -> None:
        for first, second in self.repeated:
            counts = [Counter(json.dumps(row) for row in rows) for rows in (first, second)]
            # The whole lists would be no message to read.
            assert (counts[0] - counts[1], counts[1] - counts[0]) == ({}, {})

    def _note(self, number: int, rows: Rows) -> None:
        """Note the rows of a batch; one that is run again has the same ones."""
        own = [{name: _plain(value) for name, value in row.items() if name != "size"} for row in rows]
        own.sort(key=lambda row: json.dumps(row, sort_keys=True))
        own = [dict(sorted(row.items())) for row in own]
        # A failure in Spark's thread would only stop the stream.
        self.repeated.append((self.batches.setdefault(number, own), own))


class _LocalFiles:
    def __init__(self, source: sources.Files, checkpoint: Checkpoint) -> None:
        self._files = FileReader(source.path, source.most)
        self._progress = FileProgress(self._files, checkpoint.files(0))

    def advance(self, _: Any) -> Any:
        self._progress.look()
        return self._progress.advance()

    def rows(self, start: Any, end: Any) -> Rows:
        files = self._progress.files(start, end)
        return [row for file in files for batch in self._files.batches(file) for row in batch.to_pylist()]

    def close(self) -> None:
        pass


class _LocalKafka:
    def __init__(self, source: sources.Kafka, checkpoint: Checkpoint) -> None:
        self._kafka = KafkaReader(source.servers, source.topics, source.pattern, source.options, source.most)
        self._checkpoint = checkpoint

    def _first(self) -> Any:
        first = self._checkpoint.first_offsets(0)
        if first is None:
            first = self._kafka.first_offsets()
            self._checkpoint.put_first_offsets(0, first)
        return first

    def advance(self, start: Any) -> Any:
        return self._kafka.plan(start or self._first(), self._kafka.latest())

    def rows(self, start: Any, end: Any) -> Rows:
        lanes = self._kafka.lanes(start or self._first(), end)
        return [row for lane in lanes for batch in self._kafka.batches(lane) for row in batch.to_pylist()]

    def close(self) -> None:
        self._kafka.close()


def _plain(value: Any) -> Any:
    return bytes(value).decode("latin-1") if isinstance(value, bytes | bytearray) else value


class Folder:
    """A folder of files, each of which is newer than those before."""

    def __init__(self, path: Path) -> None:
        self.path, self.count = path, 0
        path.mkdir(exist_ok=True)

    def put(self, content: bytes, name: str = "{}.jsonl") -> None:
        """Write a file."""
        path = self.path / name.format(self.count)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
        os.utime(path, (1_700_000_000 + self.count,) * 2)
        self.count += 1


def reject(raw: bytes, **more: Any) -> bytes:
    """Return the line of a reject."""
    return json.dumps({"raw": base64.b64encode(raw).decode(), "clock": "[0,[],-1]", **more}).encode() + b"\n"


def test_files_by_turns(spark, tmp_path):
    """Files by turns."""
    folder = Folder(tmp_path / "in")
    turns = Turns(spark, tmp_path, sources.Files(str(folder.path), most=1))
    every = [b"%d\nof %d" % (i, i) for i in range(2 * TEN + 6)]

    def put(count: int) -> None:
        for content in every[folder.count : folder.count + count]:
            folder.put(content)

    put(TEN + 2)
    assert turns.spark_runs() == [*range(TEN + 2)]
    put(TEN)
    assert turns.local_runs(stops_before_commit_of=2 * TEN + 1)[-1] == 2 * TEN + 1
    assert (turns.state / "checkpoint" / "sources" / "0" / f"{2 * TEN - 1}.compact").exists()
    put(2)
    assert turns.spark_runs(fails_at=2 * TEN + 2) == [2 * TEN + 1, 2 * TEN + 2]
    put(1)
    assert turns.local_runs() == [2 * TEN + 2, 2 * TEN + 3, 2 * TEN + 4]
    put(1)
    assert turns.spark_runs() == [2 * TEN + 5]
    assert turns.local_runs() == []
    assert turns.spark_runs() == []
    found = [sorted(row["raw"].encode() for row in turns.batches[i]) for i in range(len(every))]
    assert found == [sorted(content.split(b"\n")) for content in every]


def test_files_from_the_local_runner_on(spark, tmp_path):
    """The compacted file of the first ten is written without Spark, and names have what a URI has not."""
    folder = Folder(tmp_path / "in ä%")
    turns = Turns(spark, tmp_path, sources.Files(str(folder.path), most=1))
    for i in range(TEN + 1):
        folder.put(b"%d" % i, "a/b é%20 {}+#.jsonl")
    assert turns.local_runs() == [*range(TEN + 1)]
    folder.put(b"last", "a/ü {}.jsonl")
    assert turns.spark_runs() == [TEN + 1]
    folder.put(b"more")
    assert turns.spark_runs() == [TEN + 2]
    assert turns.local_runs() == []
    (turns.state / "checkpoint" / "commits" / str(TEN + 2)).unlink()
    # Its checksum is still there.
    assert turns.local_runs() == [TEN + 2]
    assert turns.spark_runs() == []


def test_rejects_that_are_read_again(spark, tmp_path):
    """Rejects that are read again."""
    folder = Folder(tmp_path / "in")
    turns = Turns(spark, tmp_path, sources.Files(str(folder.path)))
    again = Folder(turns.again)
    folder.put(b"one")
    assert turns.spark_runs() == [0]
    again.put(reject(b"first", file="/in/a", line=3), "batch=0-x/part-0.json")
    assert turns.local_runs() == [1]
    again.put(reject(b"second", topic="t", partition=1, offset=7, record_key="AA=="), "batch=1-x/part-0.json")
    # One with the beginning only of its message, behind headers.
    raw = put_before(b"x" * KEPT, [("__sequence", b"1" * 5_000)])
    again.put(reject(raw, reason="message: $: expected at most 67108864 bytes, got 73405321"), "batch=1-x/part-1.json")
    folder.put(b"two")
    assert turns.spark_runs(fails_at=2) == [2]
    assert 73_405_321 in [row["length"] for row in turns.batches[2]]
    assert turns.local_runs() == [2]
    assert turns.spark_runs() == []


NO_REJECTS = [
    b"",
    b" \t ",
    b"none",
    b"[1, 2",
    b'{"raw":"QQ==","partition":',
    b'{"raw":"QQ=="} and more',
    b'{"raw":"Q Q = =","clock":null,"topic":1.50,"partition":"1","offset":1.0,"line":-3,"file":true}',
    b'{"raw":"Q","record_key":"QQ","clock":[0, [1], 2]}',
    b'{"raw":"QQ=","partition":2147483648,"offset":9223372036854775807,"line":99999999999999999999}',
    b'[{"raw":"QQ=="},{"raw":"Qg=="}]',
    b'{"raw":{"a":[1,"b"]},"topic":{"a":[1, "b",null,true]},"file":[ ]}',
    b'{"raw":"QQ==","file":"\\ud800"}',
    b'"text"',
    b"7",
    b"null",
    b"[]",
    b'{"raw":"QR==","topic":"\xff"}',
    b'{"RAW":"QQ==","raw":"Qg==","raw":"Qw=="}',
    b'{"raw":"","topic":"","record_key":""}',
    *(
        b'{"raw":"%s"}' % text
        for text in (b" QQ==", b"Q Q==", b"QQ ==", b"QQ= =", b"QQ==\\n", b"Q\\tQ", b"QQ\\u2003==", b"QQ=")
    ),
]


def test_what_is_no_reject_is_read_as_on_spark(spark, tmp_path):
    """What is no reject is read as on Spark."""
    Folder(tmp_path / "in").put(b"one")
    turns = Turns(spark, tmp_path, sources.Files(str(tmp_path / "in")))
    again = Folder(turns.again)
    for i, line in enumerate(NO_REJECTS):
        again.put(line + b"\n" + reject(b"%d" % i) + b"\r" + reject(b"end").strip())
    assert turns.spark_runs() == [0]
    (turns.state / "checkpoint" / "commits" / "0").unlink()
    assert turns.local_runs() == [0]


FILES: dict[str, Callable[[], bytes]] = {
    "plain": lambda: b"one\n\n\xff\xfe\r\ntwo\n",
    "_hidden": lambda: b"no",
    ".hidden": lambda: b"no",
    "_day=1": lambda: b"yes",
    "_metadata": lambda: b"passed over",
    "a._COPYING_": lambda: b"no",
    "empty": lambda: b"",
    "line": lambda: b"\n",
    "mark": lambda: BOM + b"one\ntwo",
    "only mark": lambda: BOM,
    "mark and line": lambda: BOM + b"\n",
    "utf-16": lambda: "one".encode("utf-16"),
    "sub/in": lambda: b"sub",
    "_sub/in": lambda: b"no",
}


def test_lines_are_those_of_spark(spark, tmp_path):
    """Lines are those of Spark."""
    folder = Folder(tmp_path / "in")
    for name, content in FILES.items():
        folder.put(content(), name)
    folder.put(gzip.compress(b"one\ntwo") + gzip.compress(b"\nthree\n"), "packed.gz")
    folder.put(gzip.compress(b""), "empty.gz")
    folder.put(bz2.compress(b"one\ntwo"), "packed.bz2")
    (tmp_path / "in" / "link").symlink_to(tmp_path / "in" / "plain")
    (tmp_path / "in" / "nowhere").symlink_to(tmp_path / "nowhere")
    turns = Turns(spark, tmp_path, sources.Files(str(folder.path)))
    assert turns.spark_runs() == [0]
    (turns.state / "checkpoint" / "commits" / "0").unlink()
    assert turns.local_runs() == [0]
    assert turns.local_runs() == []
    assert turns.spark_runs() == []


@pytest.mark.parametrize(
    "pattern", ["*/[a-b]?.json", "{x,y}/*", "x/{a1,b{2,3}}.json", "x/[^a]*", "*", "x/a1.json", "n*"]
)
def test_patterns_are_those_of_spark(spark, tmp_path, pattern):
    """Patterns are those of Spark."""
    folder = Folder(tmp_path / "in")
    for name in ("x/a1.json", "x/b2.json", "x/_a1.json", "y/b3.json", "y/.b3.json", "x/c.json", "_z/b1.json", "top"):
        folder.put(name.encode(), name)
    turns = Turns(spark, tmp_path, sources.Files(f"{folder.path}/{pattern}"))
    ran = turns.spark_runs()
    if ran:
        (turns.state / "checkpoint" / "commits" / "0").unlink()
    assert turns.local_runs() == ran
    taken = FileProgress(FileReader(f"{folder.path}/{pattern}"), Checkpoint(turns.state / "checkpoint").files(0))
    assert taken.look() == 0


@pytest.mark.since("4.1")
def test_kafka_by_turns(spark, kafka: Broker, tmp_path):
    """Kafka by turns."""
    # Spark orders them by their hashes.
    topics = ("turns.x", "turns.y", "turns-z")
    for topic in topics:
        kafka.create(topic, 2)
    turns = Turns(spark, tmp_path, sources.Kafka(kafka.servers, topics, most=7))

    def send(count: int) -> None:
        for topic in topics:
            records = [
                Record(topic, i % 2, b"%d" % i if i % 3 else None, b"v%d" % i if i % 4 else None) for i in range(count)
            ]
            kafka.send(records)

    send(5)
    first = turns.spark_runs()
    send(4)
    second = turns.local_runs(stops_before_commit_of=first[-1] + 2)
    assert second == [first[-1] + 1, first[-1] + 2]
    third = turns.spark_runs(fails_at=first[-1] + 2)
    assert third == [first[-1] + 2]
    fourth = turns.local_runs()
    assert fourth[0] == first[-1] + 2
    # The offsets are the same text as Spark's: there is no batch without messages.
    assert turns.spark_runs() == []
    send(1)
    assert turns.spark_runs() == [fourth[-1] + 1]
    assert turns.local_runs() == []
    rows = [row for batch in turns.batches.values() for row in batch]
    places = [(row["topic"], row["partition"], row["offset"]) for row in rows]
    assert len(places) == len({*places}) == 3 * (5 + 4 + 1)


@pytest.mark.since("4.1")
def test_kafka_from_the_local_runner_on(spark, kafka: Broker, tmp_path):
    """Kafka from the local runner on."""
    kafka.create("begun", 1)
    turns = Turns(spark, tmp_path, sources.Kafka(kafka.servers, pattern="beg.*"))
    kafka.send([Record("begun", 0, None, b"one")])
    assert turns.local_runs(stops_before_commit_of=0) == [0]
    kafka.send([Record("begun", 0, None, b"two")])
    assert turns.spark_runs() == [0, 1]
    assert turns.local_runs() == []

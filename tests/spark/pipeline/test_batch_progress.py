"""What is left to read behind a batch, as Spark's progress and its checkpoint tell."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from cdcavro.errors import FileError
from cdcavro.spark.pipeline import Files, Kafka
from cdcavro.spark.pipeline.batch_progress import check_unchanged, kind_of, lag_of, left_since, messages_left
from cdcavro.sync.batches import Arrivals
from cdcavro.sync.outputs import reject_places
from support.messages import SENTENCES

NOTHING = {"latestOffset": None, "endOffset": None}


def kafka(latest: Any, end: Any) -> dict[str, Any]:
    """Return Spark's progress with a batch from Kafka, and from rejects that are read again."""
    return {"sources": [{"latestOffset": latest, "endOffset": end}, NOTHING]}


def files(log: int) -> dict[str, Any]:
    """Return Spark's progress with a batch of files."""
    return {"sources": [{"latestOffset": None, "endOffset": {"logOffset": log}}, NOTHING]}


@pytest.mark.parametrize(
    ("progress", "left"),
    [
        (kafka({"a": {"0": 10, "1": 7}, "b": {"0": 5}}, {"a": {"0": 4, "1": 7}, "b": {"0": 0}}), (11, "messages")),
        (kafka({"a": {"0": 10}}, {"a": {"0": 10}}), (0, "messages")),
        # Topics that are made anew begin again; a partition that came since is not known.
        (kafka({"a": {"0": 3, "1": 5}}, {"a": {"0": 10}}), (0, "messages")),
        (kafka(None, {"a": {"0": 10}}), None),
        (kafka({"logOffset": 3}, {"logOffset": 3}), None),
        ({"sources": [{"latestOffset": "-", "endOffset": "-"}]}, None),
        ({"sources": []}, None),
    ],
)
def test_messages_are_counted_by_partition(progress: dict[str, Any], left: tuple[int, str] | None):
    """From the end of a batch to the end of the topics, as it was when the batch began."""
    assert messages_left(progress) == left
    assert lag_of(Kafka("a:1", ("t",)), Path("nowhere"))(progress) == left


def test_what_is_left_has_waited_since_it_was_seen_first():
    """When the batch was planned that saw it, as Spark says; a batch that leaves nothing ends that."""
    arrivals = Arrivals()
    times = ("2026-01-01T00:00:00.000Z", "2026-01-01T00:01:00.500Z", "2026-01-01T00:02:00.000Z")
    found = [
        left_since({**kafka({"a": {"0": latest}}, {"a": {"0": end}}), "timestamp": at}, arrivals)
        for at, end, latest in zip(times, (5, 8, 12), (7, 12, 12), strict=True)
    ]
    assert found == [1767225600.0, 1767225660.5, None]


class Taken:
    """A folder of files, and the log of which of them Spark has taken, as its checkpoint has it."""

    def __init__(self, folder: Path, count: int) -> None:
        self.paths = [folder / "in" / f"day {i % 3}" / f"{i}.jsonl" for i in range(count)]
        for path in self.paths:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("{}")
        self.log = folder / "checkpoint" / "sources" / "0"
        self.log.mkdir(parents=True)
        self.left = lag_of(Files(str(folder / "in")), folder / "checkpoint")

    def write(self, number: int, upto: int | None = None, name: str = "") -> None:
        """Write the log of one batch, or of all up to it, each of one file."""
        lines = [
            json.dumps(
                {
                    "path": self.paths[i].as_uri(),
                    "timestamp": self.paths[i].stat().st_mtime_ns // 1_000_000 if self.paths[i].exists() else 1,
                    "batchId": i,
                }
            )
            for i in range(number if upto is None else upto, number + 1)
        ]
        (self.log / (name or str(number))).write_text("\n".join(["v1", *lines]))


@pytest.fixture
def taken(tmp_path: Path) -> Callable[[int], Taken]:
    """Make a folder of so many files."""
    return lambda count: Taken(tmp_path, count)


def test_files_are_counted_that_spark_has_not_taken(taken: Callable[[int], Taken], tmp_path: Path):
    """Also where it has taken those of the next batch already; hidden ones and those that are gone are none."""
    made = taken(5)
    for number in range(3):
        made.write(number)
    assert [made.left(files(number)) for number in (0, 1, 2)] == [(4, "files"), (3, "files"), (2, "files")]
    (tmp_path / "in" / "_hidden").write_text("")
    made.paths[0].unlink()
    assert made.left(files(2)) == (2, "files")


@pytest.mark.slow
def test_a_log_of_many_batches_is_read_once(taken: Callable[[int], Taken], tmp_path: Path):
    """Later ones are read from their ends; a process that goes on begins with the last of all."""
    made = taken(2_500)
    for number in range(20):
        made.write(number)
    made.write(9, 0, "9.compact")
    made.write(1_999, 0, "1999.compact")
    assert made.left(files(1_999)) == (500, "files")
    made.write(2_009, 0, "2009.compact")
    assert made.left(files(2_009)) == (490, "files")
    made.write(2_010)
    assert made.left(files(2_010)) == (489, "files")
    again = lag_of(Files(str(tmp_path / "in")), tmp_path / "checkpoint")
    assert again(files(2_010)) == (489, "files")


def test_what_cannot_be_known_is_not_guessed(taken: Callable[[int], Taken], tmp_path: Path):
    """Files of another machine, a pattern that Python does not have, a log of another Spark."""
    made = taken(1)
    made.write(0)
    for path in ("s3a://bucket/in", f"{tmp_path}/in/{{a,b}}"):
        assert lag_of(Files(path), tmp_path / "checkpoint")(files(0)) is None
    (made.log / "0").write_text("v7\nnothing\n")
    assert lag_of(Files(str(tmp_path / "in")), tmp_path / "checkpoint")(files(0)) is None


def test_a_pattern_and_a_link_are_followed(taken: Callable[[int], Taken], tmp_path: Path):
    """As Spark follows them: it tells the real path."""
    made = taken(4)
    made.write(0)
    (tmp_path / "link").symlink_to(tmp_path / "in")
    for path in (f"{tmp_path}/in/day*", str(tmp_path / "link")):
        assert lag_of(Files(path), tmp_path / "checkpoint")(files(0)) == (3, "files")


def fault(taken: Taken, path: Path) -> str | None:
    """Return what is said of files that changed behind their reading; None if none did."""
    try:
        check_unchanged(cast("SparkSession", None), Files(str(path)), taken.log.parents[1])
    except FileError as error:
        return str(error)
    return None


def test_a_file_that_changed_behind_its_reading_is_an_error(taken: Callable[[int], Taken], tmp_path: Path):
    """What was added is never read; a file that is as it was, gone, or not read yet, is none."""
    made = taken(6)
    made.write(3, 0, "3.compact")
    made.write(4)
    assert fault(made, tmp_path / "in") is None
    with made.paths[5].open("a") as file:
        file.write("{}")
    made.paths[0].unlink()
    assert fault(made, tmp_path / "in") is None
    said = "expected the file as it was when it was read, got one that has changed"
    hint = "what was added is not read: put it into a file of its own, and move this one away"
    for number, more in ((4, ""), (2, " (and 1 more)")):
        before = made.paths[number].stat()
        os.utime(made.paths[number], ns=(before.st_atime_ns, before.st_mtime_ns + 1_000_000))
        first = made.paths[4]
        assert fault(made, tmp_path / "in") == f"{first}: {said}{more}; {hint}"
    # By whatever way they were found, and though a listing would find them no more.
    (tmp_path / "in" / "day 1").rename(tmp_path / "in" / "_hidden")
    assert fault(made, tmp_path / "elsewhere{x}") is not None
    (tmp_path / "in" / "_hidden").rename(tmp_path / "in" / "day 1")
    assert fault(made, Path(f"{tmp_path}/in/day*")) is not None
    made.paths[2].unlink()
    made.paths[4].rename(tmp_path / "away")
    assert fault(made, tmp_path / "in") is None


def test_a_log_that_is_not_understood_tells_nothing(taken: Callable[[int], Taken], tmp_path: Path):
    """Nor does one that is not there, as before the first batch."""
    made = taken(1)
    assert fault(made, tmp_path / "in") is None
    (made.log / "0").write_text("v7\nnothing\n")
    assert fault(made, tmp_path / "in") is None


def test_kinds_of_sentences_are_those_of_the_runner_without_spark(spark: SparkSession):
    """What is masked is the whole value: no digit of a hexadecimal number stays."""
    said = [one for same in SENTENCES for one in same] + ["expected int, got string", "no value", "x" * 600]
    sentences = spark.createDataFrame([(one,) for one in said], "said string")
    kinds = [row["kind"] for row in sentences.select(kind_of(sf.col("said")).alias("kind")).collect()]
    assert kinds == [reject_places.kind_of(one) for one in said]

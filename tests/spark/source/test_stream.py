"""The data source as Spark reads it, as a stream of files that come."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException

from cdcavro.files.lines import read_lines
from cdcavro.spark.source.source import FileStreamReader, Options
from support.messages import shop_canal

LINES = [*shop_canal()[:60], b"", b"{"]


class Folder:
    """A folder in which files appear whole, and the rows that a stream has made of them."""

    def __init__(self, root: Path) -> None:
        self.root, self.into = root, root / "in"
        self.into.mkdir(parents=True)

    def put(self, name: str, lines: list[bytes], modified: int | None = None) -> None:
        """Let a file appear; one may be older than what is there."""
        path = self.into / name
        path.parent.mkdir(parents=True, exist_ok=True)
        part = self.into / f".{path.name}"
        part.write_bytes(b"\n".join(lines))
        if modified is not None:
            os.utime(part, (modified, modified))
        part.rename(path)

    def query(self, spark: Any, **options: str) -> Any:
        """Start a query that ends with what is there."""
        frame = spark.readStream.format("cdcavro").options(**options).load(str(self.into))
        query = frame.writeStream.format("parquet").option("checkpointLocation", f"{self.root}/checkpoint")
        return query.trigger(availableNow=True).start(f"{self.root}/out")

    def run(self, spark: Any, **options: str) -> int:
        """Run a query to its end, and return how many rows there are then."""
        self.query(spark, **options).awaitTermination()
        return len(self.rows(spark))

    def rows(self, spark: Any) -> list[tuple[str, int]]:
        """Return the places of the rows that were made."""
        frame = spark.read.schema("file string, line bigint").parquet(f"{self.root}/out")
        return sorted((row.file, row.line) for row in frame.collect())

    def wanted(self) -> list[tuple[str, int]]:
        """Return the places of the lines of all files."""
        files = [str(path) for path in self.into.rglob("*") if path.is_file()]
        return sorted((file, line.number) for file in files for line in read_lines(file))


@pytest.fixture
def folder(tmp_path) -> Folder:
    """A folder with one file."""
    made = Folder(tmp_path)
    made.put("a.jsonl", LINES)
    return made


def test_files_are_read_as_they_come_each_once(spark, folder):
    """Whatever their age, wherever in the folder; a query that is started again goes on where the checkpoint is."""
    assert folder.run(spark) == len(LINES)
    assert folder.run(spark) == len(LINES)
    folder.put("day=1/b.jsonl", LINES[:10])
    folder.put("0.jsonl", LINES[:5], modified=1)
    folder.run(spark, maxPartitionBytes="300")
    folder.put("c.jsonl", LINES[:3])
    folder.run(spark)
    assert folder.rows(spark) == folder.wanted()


def test_a_batch_has_no_more_files_than_are_wanted(spark, folder):
    """The oldest first; a query with availableNow makes one batch."""
    for i in range(5):
        folder.put(f"{i}.jsonl", LINES[:10], modified=i + 1)
    assert [folder.run(spark, maxFilesPerTrigger="2") for _ in range(4)] == [20, 40, 50 + len(LINES), 50 + len(LINES)]
    assert folder.rows(spark) == folder.wanted()


def test_batches_that_nobody_looks_at_are_not_read_again(spark, folder):
    """Where a batch's function makes no use of its frame, Spark asks for no rows, and goes on."""
    seen: list[tuple[str, int]] = []
    frame = spark.readStream.format("cdcavro").option("maxFilesPerTrigger", "1").load(str(folder.into))

    def look(batch: Any, number: int) -> None:
        if number % 2:
            seen.extend((row.file, row.line) for row in batch.collect())

    for i in range(5):
        folder.put(f"{i}.jsonl", LINES[:10], modified=i + 1)
    query = frame.writeStream.foreachBatch(look).option("checkpointLocation", f"{folder.root}/other").start()
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and (not query.lastProgress or query.lastProgress["batchId"] < 6):
            time.sleep(0.1)
            assert query.exception() is None
    finally:
        query.stop()
    files = [Path(file).name for file in dict.fromkeys(file for file, _ in seen)]
    assert files == ["1.jsonl", "3.jsonl", "a.jsonl"]
    assert len(seen) == 20 + len(LINES)


def test_a_file_that_grows_is_an_error(spark, folder):
    """What was added to it would be passed over, so nothing is read until somebody looks at it."""
    folder.run(spark)
    with (folder.into / "a.jsonl").open("ab") as file:
        file.write(b"\n" + LINES[0])
    with pytest.raises(StreamingQueryException, match="a file is complete when it appears"):
        folder.run(spark)


def test_a_file_that_is_gone_before_it_was_read_is_an_error_until_it_is_back(spark, folder):
    """A batch that failed is read again with just its files, as they were."""
    seen: list[tuple[str, int]] = []
    frame = spark.readStream.format("cdcavro").load(str(folder.into))

    def run(take: Any) -> None:
        query = frame.writeStream.foreachBatch(take).option("checkpointLocation", f"{folder.root}/other")
        query.trigger(availableNow=True).start().awaitTermination()

    def fail(_batch: Any, _number: int) -> None:
        raise RuntimeError("the sink is full")

    def take(batch: Any, _number: int) -> None:
        seen.extend((row.file, row.line) for row in batch.collect())

    path, away = folder.into / "a.jsonl", folder.root / "away"
    with pytest.raises(StreamingQueryException, match="the sink is full"):
        run(fail)
    path.rename(away)
    folder.put("b.jsonl", LINES[:5])
    for _ in range(2):
        with pytest.raises(StreamingQueryException, match=r"a\.jsonl: expected what can be read"):
            run(take)
    away.rename(path)
    for _ in range(3):
        run(take)
    assert sorted(seen) == folder.wanted()


def test_a_path_that_means_nothing_is_an_error(spark, tmp_path):
    """As in a batch."""
    own = Folder(tmp_path / "x")
    own.into.rmdir()
    with pytest.raises(StreamingQueryException, match=f"{own.into}: expected a file or folder, got none"):
        own.run(spark)


_CHILD = """
import sys
from pathlib import Path
from cdcavro import spark as cdc
root = Path(sys.argv[1])
spark = cdc.session("killed", master="local[1]", config={"spark.ui.enabled": "false"})
cdc.register(spark)
frame = spark.readStream.format("cdcavro").option("maxFilesPerTrigger", "1").load(f"{root}/in")
query = frame.writeStream.format("parquet").option("checkpointLocation", f"{root}/checkpoint").start(f"{root}/out")
query.awaitTermination()
"""


def killed_after(folder: Folder, batches: int, part: str) -> None:
    """Run the stream in a process of its own, and kill all of it when a file of a batch is in a part of the checkpoint."""
    with subprocess.Popen([sys.executable, "-c", _CHILD, str(folder.root)], start_new_session=True) as child:
        deadline = time.monotonic() + 120
        while not (folder.root / "checkpoint" / part / str(batches)).exists():
            assert child.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.005)
        os.killpg(child.pid, signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.parametrize("part", ["offsets", "commits"])
def test_a_stream_that_is_killed_goes_on_with_the_rest(spark, folder, part):
    """In the middle of a batch, or between two: it is read again from the checkpoint, and each line is there once."""
    for i in range(6):
        folder.put(f"{i}.jsonl", LINES[: 10 + i], modified=i + 1)
    killed_after(folder, 2, part)
    folder.put("late.jsonl", LINES[:7], modified=2)
    # With availableNow, Spark runs one batch of a source in Python: first the one that was not done.
    folder.run(spark)
    folder.run(spark)
    assert folder.rows(spark) == folder.wanted()


def names_of(reader: FileStreamReader, start: Any, end: Any) -> list[str]:
    """Return the names of the files between two offsets."""
    names = [Path(piece.file).name for part in reader.partitions(start, end) for piece in part.pieces]
    return list(dict.fromkeys(names))


def told(reader: FileStreamReader, most: int | None) -> list[list[str]]:
    """Return the files of each batch that a reader gives a Spark 4.2 with `availableNow`, which goes on until there is none."""
    reader.prepareForTriggerAvailableNow()
    batches, start = [], reader.initialOffset()
    while True:
        end = reader.latestOffset(start, SimpleNamespace(**({} if most is None else {"max_files": most})))
        if end == start:
            return batches
        batches.append(names_of(reader, start, end))
        reader.commit(end)
        start = end


@pytest.mark.parametrize(("most", "wanted"), [(1, ["a", "b", "c"]), (2, ["ab", "c"]), (None, ["abc"])])
def test_all_files_of_now_are_read_in_as_many_batches_as_it_takes(tmp_path, most, wanted):
    """As Spark asks from 4.2 on: it says where a batch begins, and how much it may have; what comes meanwhile is left."""
    made = Folder(tmp_path)
    for i, name in enumerate("abc", 1):
        made.put(name, LINES[:i], modified=i)
    reader = FileStreamReader(Options.of({"path": str(made.into), "maxFilesPerTrigger": "1"}))
    reader.prepareForTriggerAvailableNow()
    listed = reader._last
    made.put("d", LINES[:3], modified=0)
    assert listed == {str(made.into / name) for name in "abc"}
    (made.into / "d").rename(tmp_path / "d")
    assert told(reader, most) == [list(names) for names in wanted]
    again = FileStreamReader(Options.of({"path": str(made.into)}))
    last = again.latestOffset(again.initialOffset(), SimpleNamespace())
    made.put("e", LINES[:2])
    assert again.latestOffset(last, SimpleNamespace(max_files=1)) != last
    again.prepareForTriggerAvailableNow()
    made.put("f", LINES[:2])
    end = again.latestOffset(last, SimpleNamespace())
    assert names_of(again, last, end) == ["e"]
    assert again.latestOffset(end, SimpleNamespace()) == end

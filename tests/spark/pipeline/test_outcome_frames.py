"""Outcomes of tasks on Spark: they are those of the same tasks in this process, and are kept until they are freed."""

from __future__ import annotations

import pickle
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from cdcavro.errors import JobError
from cdcavro.lake import TypedRows
from cdcavro.spark.pipeline.outcome_frames import FrameBatch, FrameFiles
from cdcavro.sync.conversion.knowledge import Knowledge
from cdcavro.sync.conversion.outcome_rows import OF_ROWS, ROW, SUMMARY
from cdcavro.sync.conversion.rounds import convert
from cdcavro.sync.conversion.task import converter
from cdcavro.sync.conversion.waiting_halves import JoinedHalves, WaitingHalf
from cdcavro.sync.local.local_runner import LocalBatch
from cdcavro.sync.outputs.writer import KeptRows
from cdcavro.sync.protection import RowRule
from cdcavro.sync.settings import Formats, Settings
from cdcavro.table.tables import Tables
from support.halves import blob
from support.messages import canal
from support.rows_trial import ZONE, shop
from support.task_batches import batch_of
from sync.conversion.test_knowledge import added, lanes_with
from sync.conversion.test_knowledge import rows as rows_of

LANES = 3


def batches(messages: list[bytes]) -> list[pa.RecordBatch]:
    """Return messages as the source hands them over, in some lanes."""
    return [batch_of([(None, one) for one in messages[i::LANES]], partition=i) for i in range(LANES)]


def frame_of(spark: SparkSession, found: list[pa.RecordBatch]) -> DataFrame:
    """Return batches in a frame that has each lane in one partition."""
    return spark.createDataFrame(pa.Table.from_batches(found)).coalesce(1).sortWithinPartitions("partition", "offset")


@pytest.mark.parametrize("format", ["canal", "debezium", "oms_canal"])
def test_rows_of_a_batch_are_those_of_tasks_in_this_process(spark: SparkSession, tmp_path: Path, format: str):
    """Once all is learned; also as they are written to files, and read again."""
    found, settings = batches(shop(format)), Settings(formats=Formats(format), options={"zone": ZONE})
    seen: list[Knowledge] = []
    batch = FrameBatch(frame_of(spark, found))

    def run(knowledge: Knowledge) -> Any:
        seen.append(pickle.loads(pickle.dumps(knowledge)))
        return batch.convert(knowledge)

    outcomes, _ = convert(run, TypedRows(settings.tables()), settings, is_reduced=False)
    try:
        made = [one for some in converter(seen[-1])(found) for one in some.to_pylist()]
        assert len(seen) > 1
        wanted = Counter(repr(_row(one)) for one in made if one["what"] == ROW)
        rows = {
            name: outcomes.store.rows(name, sum(outcomes.tables[number]["ops"].values()))
            for number, name in outcomes.names.items()
        }
        read = Counter(
            repr(_row(row.asDict() | {"number": name})) for name, frame in rows.items() for row in frame.collect()
        )
        assert read == wanted
        assert outcomes.store.rejects().count() == sum(
            one["reason"] is not None for one in made if one["what"] not in (ROW, SUMMARY)
        )
        assert outcomes.store.write_rows(tmp_path / "rows") == sum(wanted.values())
        files = FrameFiles(spark)
        again = {name: files.read(tmp_path / "rows" / f"number={name}") for name in rows}
        assert {name: frame.count() for name, frame in again.items()} == {
            name: frame.count() for name, frame in rows.items()
        }
        assert {name: sorted(files.versions(frame)) for name, frame in again.items()} == {
            name: sorted({one["version"] for one in made if one["what"] == ROW and one["number"] == name})
            for name in rows
        }
    finally:
        outcomes.store.free()


def _row(one: dict[str, Any]) -> list[Any]:
    return [bytes(one[name]) if isinstance(one[name], bytearray) else one[name] for name in OF_ROWS]


def test_outcomes_that_are_refused_are_freed(spark: SparkSession):
    """Two tasks that read one lane know nothing of each other."""
    found = batch_of([(None, canal("INSERT", [{"id": "1"}], id=1)), (None, canal("INSERT", [{"id": "2"}], id=2))])
    parted = spark.createDataFrame(pa.Table.from_batches([found])).repartitionByRange(2, "offset")
    kept = spark.sparkContext._jsc.getPersistentRDDs
    before = kept().size()
    with pytest.raises(JobError, match="partition 0 of shop was read by two tasks"):
        FrameBatch(parted).convert(Knowledge(Tables(), [], Formats("canal"), None))
    assert kept().size() == before


@pytest.mark.parametrize("room", [0, 1 << 30])
def test_halves_that_tasks_and_the_batch_before_left_are_joined_in_the_driver(spark: SparkSession, room: int):
    """Whether outcomes stay in a frame or are collected; what waits still is in neither, and rejects are in both."""
    first = [blob("UPDATE_BEFOR", 1, before={"id": 1, "v": "a"}), blob("UPDATE_BEFOR", 2, before={"id": 2, "v": "a"})]
    second = [blob("UPDATE_AFTER", 1, after={"id": 5, "v": "b"}), blob("UPDATE_AFTER", 7, after={"id": 7})]
    found = [batch_of([(None, one) for one in some], partition=i) for i, some in enumerate((first, second))]
    kept = [
        WaitingHalf(raw, 0, topic="shop", partition=0, offset=50 + offset)
        for offset, raw in enumerate(
            [blob("UPDATE_BEFOR", 7, before={"id": 7, "v": "a"}), blob("UPDATE_BEFOR", 8, before={"id": 8, "v": "a"})]
        )
    ]
    settings = Settings(formats=Formats("datahub_blob"), halves_minutes=1)
    batch = FrameBatch(frame_of(spark, found), room)
    halves = JoinedHalves(1, 60, tuple(kept))
    outcomes, _ = convert(batch.convert, TypedRows(settings.tables()), settings, is_reduced=False, halves=halves)
    try:
        ((number, name),) = outcomes.names.items()
        rows = outcomes.store.rows(name, sum(outcomes.tables[number]["ops"].values()))
        listed = (
            rows.read().column("operation").to_pylist()
            if isinstance(rows, KeptRows)
            else [row[1] for row in rows.collect()]
        )
        assert sorted(listed) == ["c", "d", "u"]
        assert outcomes.counts == {**outcomes.counts, "read": 5, "written": 4, "rejected": 1}
        assert [bytes(row["raw"]) for row in outcomes.halves] == [first[1]]
        assert outcomes.store.first_rejects(2) == [kept[1].raw]
    finally:
        outcomes.store.free()


@pytest.mark.parametrize("room", [0, 1 << 30])
@pytest.mark.parametrize(
    ("behind", "rules", "count"),
    [
        ([], (), 1),
        ([added("a", 3, "c"), *rows_of("a", 5, c="1")], (), 2),
        ([], (RowRule("a", ("x",), {"b": "sha256"}, ("*",), "salt"),), 2),
    ],
    ids=["one lane", "both lanes", "a rule"],
)
def test_a_batch_with_statements_is_converted_once_unless_its_lanes_disagree(
    spark: SparkSession, tmp_path: Path, behind: list[bytes], rules: tuple[RowRule, ...], count: int, room: int
):
    """Its rows are those of the local runner, where none of them was confirmed by evidence.

    What a rule leaves out is in no evidence, which Spark may write to a disk.
    """
    lanes = [
        [*rows_of("a", *range(1, 400)), added("a", 400), *rows_of("a", *range(401, 800), type="UPDATE", b="1")],
        [*rows_of("b", *range(1, 300)), added("b", 300, "d"), *rows_of("b", 301, d="1"), *rows_of("a", 2), *behind],
    ]
    found = [batch_of([(None, one) for one in lane], partition=i) for i, lane in enumerate(lanes)]
    frame = spark.createDataFrame(pa.Table.from_batches(found)).repartitionByRange(2, "partition")
    settings = Settings(formats=Formats("canal"), rules=rules, rejects_raw="omit" if rules else "keep")
    seen, listed = list[bool](), list[dict[str, Any]]()
    batches = FrameBatch(frame.sortWithinPartitions("offset"), room), LocalBatch(lanes_with(lanes), tmp_path)
    for batch in batches:

        def run(knowledge: Knowledge, batch: Any = batch) -> Any:
            seen.append(isinstance(batch, FrameBatch))
            outcomes = batch.convert(knowledge)
            assert not (seen[-1] and rules and outcomes.evidence)
            return outcomes if seen[-1] else outcomes._replace(evidence=())

        maker = TypedRows(settings.tables())
        outcomes, _ = convert(run, maker, settings, is_reduced=False)
        try:
            listed.append(
                {maker.tables.tables[number].schema.table.table: _listed(outcomes, number) for number in (0, 1)}
            )
        finally:
            outcomes.store.free()
        assert outcomes.counts["read"] == outcomes.counts["written"] + outcomes.counts["statements"]
    assert seen.count(True) == count
    assert listed[0] == listed[1]
    assert {name: len(rows) for name, rows in listed[0].items()} == {"a": 799 + bool(behind), "b": 300}


def _listed(outcomes: Any, number: int) -> list[str]:
    rows = outcomes.store.rows(outcomes.names[number], sum(outcomes.tables[number]["ops"].values()))
    read = (
        rows.read().to_pylist()
        if isinstance(rows, KeptRows)
        else [_row(row.asDict() | {"number": ""}) for row in rows.collect()]
    )
    return sorted(repr(_row(row | {"number": ""}) if isinstance(row, dict) else row) for row in read)

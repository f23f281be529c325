"""Pipelines from files into lake tables: what is in the tables, in the rejects and in the reports."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.request import urlopen

import pytest
from pyspark.sql import DataFrameWriter, SparkSession

from cdcavro.errors import JobError
from cdcavro.lake.typed_rows import RowFacts
from cdcavro.spark.pipeline.lake_tables import LakeTables
from cdcavro.spark.pipeline.outcome_frames import PIECES, FrameFiles, FrameStore
from cdcavro.sync.conversion.outcome_rows import ROW
from cdcavro.sync.conversion.rounds import Outcomes
from cdcavro.sync.metrics import Metrics, MetricsConfig
from cdcavro.sync.outputs.table_rows import WaitingRows
from cdcavro.sync.outputs.writer import BatchRows
from cdcavro.sync.protection import RowRule
from cdcavro.sync.settings import Formats
from cdcavro.sync.sources import Kafka
from support.messages import canal
from sync.outputs.test_reject_places import test_rejects_are_in_the_table_once_and_are_read_again_once  # noqa: F401
from sync.outputs.test_schema_changes import test_each_statement_is_in_the_table_once_with_what_was_decided  # noqa: F401
from sync.test_pipeline import (  # noqa: F401
    test_a_damaged_packed_file_stops_the_stream,
    test_a_file_of_long_ago_is_read_too,
    test_a_file_that_changes_behind_its_reading_is_an_error,
    test_a_function_decides_which_rows_are_written_and_its_errors_are_rejects,
    test_a_paused_table_waits_alone_and_is_whole_when_it_goes_on,
    test_a_reset_keeps_rows_until_they_are_read_again_or_it_is_finished,
    test_a_run_goes_on_where_the_one_before_stopped,
    test_a_table_that_a_key_change_stopped_begins_again_behind_its_reset,
    test_a_table_that_a_tool_swaps_for_its_copy_goes_on_with_the_columns_of_the_copy,
    test_encrypted_rejects_are_read_again_with_the_key,
    test_packed_files_and_byte_order_marks_are_read_as_elsewhere,
    test_rejects_are_read_again_once_at_their_place_in_the_order,
    test_statements_that_are_excluded_are_not_followed_and_rows_go_on,
    test_the_tables_of_the_shop_are_those_of_the_server,
    test_values_that_are_no_finite_numbers_are_those_of_the_lake,
    test_what_is_no_message_or_fits_no_table_is_a_reject_with_its_bytes_and_place,
)
from sync.test_protection import RULE, digest, leaks, shop

pytestmark = pytest.mark.timeout(1_200)


def test_metrics_are_read_while_spark_runs(job):
    """Behind a batch, and while the stream waits for the next one, which is a sign of its health."""
    made, found, metrics = job(), [], Metrics(MetricsConfig("127.0.0.1:0"))
    made.send(canal("INSERT", [{"id": "1", "a": "1"}], id=1))

    def idle() -> None:
        metrics.idle()
        if metrics.health() is None:
            with urlopen(address, timeout=10) as answer:
                found.append(answer.read().decode())
        if "cdcavro_batches_total 1.0" in found[-1]:
            raise KeyboardInterrupt

    with metrics.served() as address, pytest.raises(KeyboardInterrupt):
        made.start(made.pipeline(), every="1 second", say=metrics.add, begin=metrics.begin, idle=idle)
    assert 'cdcavro_rows_total{operation="c",table="d.t"} 1.0\n' in found[-1]
    assert "cdcavro_lag_files 0.0\n" in found[-1]


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_no_file_has_a_value_that_is_left_out_or_masked(job, kind: str):
    """Rules reach Spark's tasks, and whoever writes; rows are those of the local runner."""
    made = job(kind, is_changelog=True)
    made.send(*shop())
    (report,) = made.run(rules=(RULE,), rejects_raw="omit")
    assert (report.counts["read"], report.counts["rejected"]) == (9, 2)
    assert "canary" not in repr(report)
    # Iceberg's one catalog has a folder of its own.
    warehouse = Path(made.spark.conf.get("spark.sql.catalog.ice.warehouse"))
    assert leaks(made.folder) + leaks(warehouse) == []
    assert made.rows("d.t", "id", "email", "n") == [(1, digest("b@canary"), "***"), (4, digest("a@canary"), "***")]
    assert len(made.rows("d.t", "email", suffix="changes")) == 10


def test_a_function_that_cannot_be_sent_to_workers_is_refused_before_anything_starts(job):
    """It holds what only this process has."""
    lock = Lock()
    with pytest.raises(
        ValueError, match=r"where of match = 't' is the function .*<lambda>, which cannot be pickled, .*TypeError"
    ):
        job().run(rules=(RowRule("t", where=lambda row: lock.locked() or bool(row)),))


def test_rows_that_wait_where_the_driver_does_not_see_them_stop_the_pipeline(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Of one table, and of all; what there was stays."""
    waiting, facts, own = WaitingRows(tmp_path / "waiting"), RowFacts(None, 0, 0, 0, []), DataFrameWriter.parquet
    rows = spark.createDataFrame(
        [(ROW, name, 1, "c", b"", b"", b"", None) for name in "12"],
        "what int, number string, version int, operation string, order binary, key binary, payload binary, headers string",
    )
    outcomes = Outcomes(FrameStore(rows), Counter(), [], [], {}, {1: "1", 2: "2"}, {}, [])
    elsewhere = iter(str(tmp_path / name) for name in "ab")
    monkeypatch.setattr(DataFrameWriter, "parquet", lambda self, _: own(self, next(elsewhere)))
    said = "0 of 2 rows that were written to .* are there: it must be one that all"
    with pytest.raises(JobError, match=said):
        waiting.keep(FrameFiles(spark), 1, BatchRows(0, rows, facts))
    with pytest.raises(JobError, match=said):
        waiting.keep_all(0, outcomes, {1: facts, 2: facts})
    assert waiting.read(FrameFiles(spark), 1, 1) == waiting.read(FrameFiles(spark), 2, 1) == []


def test_what_spark_refuses_before_a_stream_begins_is_an_error_of_the_project(job):
    """An option of Kafka's that Spark sets itself; its sentence does not begin in the first line."""
    made = job(None, Kafka("127.0.0.1:9", ("x",), options={"kafka.auto.offset.reset": "latest"}))
    with pytest.raises(JobError, match=r"auto\.offset\.reset"):
        made.run()


def test_a_large_file_is_read_by_one_task_and_its_lines_are_numbered(job, spark: SparkSession):
    """Spark would cut it for two cores; what the session is set to comes back."""
    made = job(is_current=False, is_changelog=True)
    padding = "x" * 60_000
    made.send(*[canal("INSERT", [{"id": str(i)}], id=i, sql=padding) for i in range(1, 201)], b"{")
    before = spark.conf.get("spark.sql.files.maxPartitionBytes")
    (report,) = made.run(formats=Formats("canal"))
    assert (report.counts["written"], report.counts["rejected"]) == (200, 1)
    (reject,) = spark.read.json(f"{made.folder}/state/rejects").collect()
    assert reject["line"] == 201
    assert spark.conf.get("spark.sql.files.maxPartitionBytes") == before


@pytest.mark.parametrize("own", [None, "7000"])
def test_what_is_kept_of_a_batch_is_cut_into_small_pieces_unless_the_session_says_otherwise(
    job, spark: SparkSession, monkeypatch, own
):
    """As long as the stream runs."""
    name = "spark.sql.inMemoryColumnarStorage.batchSize"
    made, sizes, write = job(is_current=False, is_changelog=True), [], LakeTables.write

    def noted(self: LakeTables, tables: Any) -> Any:
        sizes.append(spark.conf.get(name))
        return write(self, tables)

    monkeypatch.setattr(LakeTables, "write", noted)
    made.send(canal("INSERT", [{"id": "1"}], id=1))
    if own is not None:
        spark.conf.set(name, own)
    try:
        made.run(formats=Formats("canal"))
        assert sizes == [own or PIECES[name]]
        assert spark.conf.get(name, None) == own
    finally:
        spark.conf.unset(name)


def test_what_no_message_is_to_blame_for_stops_the_stream(job):
    """A lake that cannot be written: nothing is passed over, and it goes on once it can."""
    made = job()
    made.send(canal("INSERT", [{"id": "1"}], id=1))
    (made.folder / "lake").write_text("no folder")
    with pytest.raises(JobError, match="the stream stopped"):
        made.run()
    (made.folder / "lake").unlink()
    made.run()
    assert made.rows("d.t", "id") == [(1,)]


def test_a_batch_like_those_before_it_compiles_nothing_however_many_tables_it_has(job, spark: SparkSession):
    """A piece of code takes Spark up to 0.05 s of a processor, and there are about ten for each table."""
    made = job(is_changelog=True)
    for i in range(4):
        made.send(*[canal("INSERT", [{"id": str(i)}], id=10 * i + j, table=f"t{j}") for j in range(4)])
    compiled = spark._jvm.org.apache.spark.metrics.source.CodegenMetrics.METRIC_COMPILATION_TIME()
    counts: list[int] = []
    made.pipeline().run(spark, once=True, say=lambda _: counts.append(compiled.getCount()))
    assert counts[2] == counts[3]


def test_words_that_spark_does_not_know_are_said(job):
    """As an error of the project."""
    made = job()
    made.send(canal("INSERT", [{"id": "1", "a": "1"}], id=1))
    with pytest.raises(JobError, match=r"the stream stopped: .*parsecs"):
        made.pipeline().run(made.spark, every="10 parsecs")

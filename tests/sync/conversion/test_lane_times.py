"""Times of lanes: what messages say of them, which rows come late, and what holds a lane back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cdcavro import to_changes
from cdcavro.change.model import Arrival, replace
from cdcavro.lake.placing import rows_batch
from cdcavro.lake.typed_rows import TypedRows
from cdcavro.sync.conversion.knowledge import Knowledge, LaneTimes, time_stated
from cdcavro.sync.settings import Formats
from cdcavro.table.tables import Tables
from support.canal_packets import column, entry, made, packet, rows
from support.messages import SAMPLES, canal
from support.task_batches import batch_of, converted

SECOND = 1_000_000
FIRST = 1_700_000_000


def times_of(*messages: bytes, format: str = "canal", **facts: Any) -> tuple[list[Any], list[dict[str, Any]]]:
    """Return what a task says of the time of its lane, and of its tables."""
    batch = batch_of([(None, one) for one in messages], partition=3)
    _, summary = converted(Knowledge(Tables(), [], Formats(format), None, **facts), batch)
    tables = [{name: one[name] for name in ("topics", "late")} for one in summary["tables"].values()]
    return summary["times"], tables


def row(id: int, second: int, type: str = "INSERT", **more: Any) -> bytes:
    """Return a row of a second behind the first one."""
    return canal(type, [{"id": str(id)}], id=id, es=(FIRST + second) * 1000, **more)


def test_a_lane_is_at_the_greatest_time_of_its_rows():
    """The engine's and others; a time that no clock can have yet is none."""
    rows = [row(i, i % 7) for i in range(300)]
    times, tables = times_of(*rows, row(300, 1 << 40), row(301, 9, type="DELETE"))
    assert times == [["shop", 3, (FIRST + 9) * SECOND, 0, None, 0]]
    assert tables == [{"topics": ["shop"], "late": 0}]


def test_rows_from_before_the_mark_of_their_table_are_late():
    """One of the time of the mark itself is not: it says what was before it."""
    batch = batch_of([(None, row(i, i)) for i in range(5)])
    tables = Tables()
    converted(Knowledge(tables, [], Formats("canal"), None), batch)
    marks = {0: (FIRST + 2) * SECOND}
    _, summary = converted(Knowledge(tables, [], Formats("canal"), None, marks=marks), batch)
    assert [one["late"] for one in summary["tables"].values()] == [2]


def test_rows_of_several_tables_and_versions_are_late_by_their_own_marks():
    """Where they come in turns, and one table has another column in the middle; one without a mark has no late rows."""
    some = [row(9 * i + j, i, table=name) for i in range(6) for j, name in enumerate("abc")]
    wider = [
        canal("INSERT", [{"id": f"{90 + i}", "more": "1"}], id=90 + i, es=(FIRST + i) * 1000, table="a")
        for i in range(3)
    ]
    batch = batch_of([(None, one) for one in (*some, *wider)])
    tables = Tables()
    converted(Knowledge(tables, [], Formats("canal"), None), batch)
    assert [len(one.versions) for one in tables.tables] == [2, 1, 1]
    marks = {0: (FIRST + 2) * SECOND, 1: (FIRST + 4) * SECOND}
    _, summary = converted(Knowledge(tables, [], Formats("canal"), None, marks=marks), batch)
    assert [one["late"] for one in summary["tables"].values()] == [2 + 2, 4, 0]
    assert summary["times"] == [["shop", 0, (FIRST + 5) * SECOND, 0, None, 0]]


def test_a_drop_among_rows_of_its_message_has_no_payload_to_read():
    """A packet of Canal holds both; its time is heard with the statement."""
    found = made("RowData", afterColumns=[column(0, "id", "7", "int", isKey=True)])
    drop = made("RowChange", eventType="ERASE", isDdl=True, sql="DROP TABLE t", ddlSchemaName="shop")
    insert = rows("INSERT", found, executeTime=(FIRST + 5) * 1000)
    message = packet(insert, entry(4800, drop, "ROWDATA", tableName="t", executeTime=(FIRST + 6) * 1000))
    maker = TypedRows(Tables())
    place = Arrival(topic="shop", partition=3, offset=0)
    changes = [replace(one, place=place) for one in to_changes(message, "canal_protobuf")]
    typed = maker.of_batch([changes]).rows
    assert [(one.operation, bool(one.payload)) for one in typed] == [("c", True), ("x", False)]
    times = LaneTimes({})
    for some in (typed, typed[1:]):
        times.begin("shop", 3)
        times.add(rows_batch([(0, one) for one in some]), maker.tables.tables)
        times.end()
    assert times.lanes == [["shop", 3, (FIRST + 5) * SECOND, 0, None, 0]]


def test_rejects_hold_a_lane_where_it_was_before_the_first_of_them():
    """Whatever came behind it in the same run."""
    times, _ = times_of(row(1, 1), row(2, 2), b"{", row(3, 3), b"no message", row(4, 4))
    assert times == [["shop", 3, (FIRST + 4) * SECOND, 2, (FIRST + 2) * SECOND, 0]]
    times, _ = times_of(b"{", row(3, 3))
    assert times == [["shop", 3, (FIRST + 3) * SECOND, 1, None, 0]]


def test_rows_of_ticdc_say_nothing_of_their_lane_but_its_watermarks_do():
    """They come in any order between two of them."""
    rows = [row(i, i, _tidb={"commitTs": (FIRST + i) * 1000 << 18}) for i in range(3)]
    mark = {"id": 0, "type": "TIDB_WATERMARK", "es": 1, "_tidb": {"watermarkTs": (FIRST + 1) * 1000 << 18 | 5}}
    times, tables = times_of(*rows)
    assert (times, tables) == ([["shop", 3, None, 0, None, 0]], [{"topics": ["shop"], "late": 0}])
    times, _ = times_of(*rows, json.dumps(mark).encode())
    assert times == [["shop", 3, (FIRST + 1) * SECOND, 0, None, 0]]


@pytest.mark.parametrize(
    ("format", "name", "time"),
    [
        ("datahub_blob", "heartbeat-en", 1_605_339_953_629_000),
        ("oms_dataworks", "heartbeat-without-schema", 1_620_457_659_000_000),
        ("debezium", "heartbeat", None),
    ],
)
def test_a_heartbeat_says_up_to_when_its_source_was_sent_if_it_does(format: str, name: str, time: int | None):
    """Debezium's has the time of the connector only."""
    (change,) = to_changes((SAMPLES / format / f"{name}.json").read_bytes(), format)
    assert time_stated(change) == time


def test_a_heartbeat_of_the_default_format_says_its_checkpoint():
    """From which nothing before it would be sent again."""
    text = '{"recordType":"HEARTBEAT","allMetaData":{"checkpoint":"1609344671","timestamp":"1609344675"}}'
    (change,) = to_changes(text, "oms_default")
    assert time_stated(change) == 1_609_344_671 * SECOND

"""Current states in Delta Lake and Iceberg: the same rows as the merge in plain Python has, whatever comes."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from obstore.store import MemoryStore
from pyspark.sql import SparkSession

from cdcavro.change.model import Arrival, Change, Column, replace
from cdcavro.errors import FileError, OrderError, SchemaError
from cdcavro.lake import TableState, TypedRow, TypedRows
from cdcavro.lake.escaped_names import quote
from cdcavro.lake.merge import Origin, values_of
from cdcavro.lake.sql_statements import KEY, STATE
from cdcavro.spark.lake import CurrentState, Delta, Iceberg, current_state
from cdcavro.spark.lake.current_state import LakeTableCache, facts_of
from cdcavro.spark.lake.sinks import Sink, present_columns, properties_of, put_properties
from cdcavro.sync.reading import stored_state
from cdcavro.table import TableName
from cdcavro.table.history import Table
from cdcavro.table.tables import Tables
from cdcavro.transcoding.mapping import to_changes
from support.dropped_columns import dropping_stream, kept_rows
from support.keyed_changes import (
    COLUMNS,
    SOURCE,
    change,
    changes_by_seed,
    text_under_a_name_in_another_case,
    texts_of_a_column_that_is_dropped_at_once,
    texts_under_a_name_of_two_columns,
)
from support.messages import canal
from support.older_values import LACKING, LATE
from support.shop_lake import as_in_lake, frame_of, rows_in, shown
from support.shop_state import image, whole
from support.shop_streams import shuffled
from support.shop_tables import MESSAGES, Row

pytestmark = pytest.mark.timeout(1_200)
# What the sink has no part in is shown on one of both.
ON_DELTA, ON_ICEBERG = (pytest.mark.parametrize("sink", [one], indirect=True) for one in ("delta", "iceberg"))
NOW = datetime(2026, 11, 22, tzinfo=UTC)


class Lake:
    """The states of all tables of a stream in a sink, and the same merged in plain Python."""

    def __init__(self, spark: SparkSession, sink: Sink, database: str, **settings) -> None:
        self.spark, self.sink, self.database, self.settings = spark, sink, database, settings
        self.maker = TypedRows(Tables(zone=UTC))
        self.states: dict[int, TableState] = {}

    def state(self, table: Table) -> CurrentState:
        """Return the state of a table, under its first name."""
        name = TableName(self.database, None, table.versions[0].table.table)
        return CurrentState(self.sink, name, **self.settings, known=LakeTableCache())

    def merge(self, messages: Sequence[list[Change]], *, times: int = 1, tables: Sequence[str] = ()) -> None:
        """Merge a batch of messages, each of these tables' rows so many times."""
        batch = self.maker.of_batch(messages)
        assert batch.rejects == []
        for table in self.maker.tables.tables:
            rows = [row for row in batch.rows if row.table == table.number]
            if rows and table.schema.key is not None and (not tables or table.versions[0].table.table in tables):
                self.states.setdefault(table.number, TableState()).merge(rows)
                self.merge_rows(table, rows, times=times)

    def merge_rows(self, table: Table, rows: Sequence[TypedRow], *, times: int = 1, now: datetime = NOW) -> None:
        """Merge typed rows of a table."""
        state = self.state(table)
        state.prepare(self.spark, table.versions)
        for _ in range(times):
            state.merge(frame_of(self.spark, rows), table.versions, now=now)

    def rows(self, table: Table) -> list[Row]:
        """Return the rows of a table in the lake."""
        return rows_in(self.spark, self.state(table).identifier)

    def plain(self, table: Table) -> list[Row]:
        """Return the rows that the merge in plain Python has, as a lake has them."""
        schema = table.schema
        names = [column.name for column in schema.all_columns]
        found = [
            dict.fromkeys(names) | values_of(pieces, lambda piece: image(piece, table.versions))
            for pieces in self.states[table.number].rows.values()
        ]
        return [as_in_lake(row, schema) for row in found]


def database(sink: Sink, name: str) -> str:
    """Return a database of a test."""
    return f"{name} {type(sink).__name__}"


@pytest.mark.parametrize("seed", [3, 7])
def test_a_dropped_column_has_what_the_last_change_says_that_has_it(spark: SparkSession, sink: Sink, seed: int):
    """However late rows and deletes from before or behind its statement are; as on the local runner."""
    draw, (rows, versions) = random.Random(seed), dropping_stream(seed, 40)
    name, merged, known = TableName(f"left {type(sink).__name__} {seed}", None, "t"), list[TypedRow](), 1
    waiting = [*rows[1:], *draw.sample(rows, 10)]
    draw.shuffle(waiting)
    # The table is there before its columns go.
    batches = [rows[:1], [row for row in waiting if row.version == 1], *(waiting[i : i + 20] for i in range(0, 50, 20))]
    for batch in filter(None, batches):
        known = max(known, *(row.version for row in batch))
        state = CurrentState(sink, name, known=LakeTableCache())
        state.prepare(spark, versions[:known])
        state.merge(frame_of(spark, batch), versions[:known])
        merged += batch
        lake = spark.table(state.identifier)
        present = present_columns(lake)
        held = lake.select(KEY, *(quote(column.name) for column in present)).collect()
        found = sorted(((bytes(key), *values) for key, *values in held), key=repr)
        assert found == kept_rows(merged, versions[:known], present)


@pytest.mark.parametrize("producer", MESSAGES)
def test_a_table_that_changes_between_batches_ends_as_if_it_had_not(spark: SparkSession, sink: Sink, producer: str):
    """`orders` through ten versions, in three batches: added, renamed, retyped and dropped columns."""
    lake = Lake(spark, sink, database(sink, f"{producer} in batches"))
    messages = [
        [one for one in message if one.source.table in ("orders", "orders_v2", "orders_v3") or one.ddl is not None]
        for message in shuffled(producer, 18).messages
    ]
    size = -(-len(messages) // 3)
    for i in range(0, len(messages), size):
        lake.merge([one for one in messages[i : i + size] if one], tables=["orders"])
    (table,) = [one for one in lake.maker.tables.tables if one.versions[0].table.table == "orders"]
    assert len(table.versions) == 10
    rows = [as_in_lake(row, table.schema) for row in whole(producer)["orders_v3"].values()]
    names = {name for row in rows for name in row}
    # Columns that were dropped stay in the lake, with what older rows had.
    found = [{name: value for name, value in row.items() if name in names} for row in lake.rows(table)]
    assert shown(found) == shown(rows)


@pytest.mark.parametrize("seed", range(2))
def test_any_order_cut_and_repetition_gives_the_rows_of_the_merge_in_plain_python(
    spark: SparkSession, sink: Sink, seed: int
):
    """Late changes, a late full load, deletes, a TRUNCATE, and columns that changes do not have."""
    lake = Lake(spark, sink, database(sink, f"random {seed}"))
    lake.merge([change("INSERT", 1, 0)])
    draw = random.Random(seed)
    messages = changes_by_seed(seed, 24) * 2
    draw.shuffle(messages)
    for i in range(0, len(messages), 16):
        lake.merge(messages[i : i + 16])
        (table,) = lake.maker.tables.tables
        assert shown(lake.rows(table)) == shown(lake.plain(table))
    assert lake.rows(table)


ADDED = {"n": "bigint", "d": "decimal(10,2)", "s": "varchar(20)"}
ALTER_WITH_DEFAULTS = (
    "ALTER TABLE t ADD COLUMN n BIGINT DEFAULT 7, ADD COLUMN d DECIMAL(10,2) DEFAULT '-1.50',"
    " ADD COLUMN s VARCHAR(20) DEFAULT 'it''s é'"
)


@pytest.mark.parametrize("size", [1, 4])
def test_a_text_stays_with_its_column_where_another_one_has_the_name_now(spark: SparkSession, sink: Sink, size: int):
    """However the messages are cut into batches: the text of the second one is called by its field."""
    lake, messages = Lake(spark, sink, database(sink, f"texts {size}")), texts_under_a_name_of_two_columns()
    for start in range(0, 4, size):
        lake.merge(messages[start : start + size])
    (table,) = lake.maker.tables.tables
    (row,) = spark.table(lake.state(table).identifier).select("a", "b", "c", "_cdc_unparsed").collect()
    assert tuple(row) == (None, None, 7, {"a": "x", "b_x_2": "z"})


@pytest.mark.parametrize("size", [4, 6])
def test_a_text_of_a_column_that_the_table_never_had_stays_with_its_row(spark: SparkSession, sink: Sink, size: int):
    """Until the row has a newer change; where changes lack columns, too."""
    lake, messages = Lake(spark, sink, database(sink, f"never {size}")), texts_of_a_column_that_is_dropped_at_once()
    lake.merge(messages[:size])
    if messages[size:]:
        lake.merge(messages[size:])
    (table,) = lake.maker.tables.tables
    rows = spark.table(lake.state(table).identifier).select("id", "a", "_cdc_unparsed").orderBy("id").collect()
    assert [tuple(row) for row in rows] == [
        (11, 11, {"b": "text 11"}),
        (12, 7, None),
        (13, 13, {"b": "text 13"}),
    ]


def test_a_text_stays_with_a_column_whose_name_changes_its_case(spark: SparkSession, sink: Sink):
    """Spark tells no cases of letters apart."""
    lake = Lake(spark, sink, database(sink, "cases"))
    lake.merge(text_under_a_name_in_another_case())
    (table,) = lake.maker.tables.tables
    (row,) = spark.table(lake.state(table).identifier).select("a", "B", "_cdc_unparsed").collect()
    assert tuple(row) == (5, None, {"b": "y"})


def killed(*_: object) -> None:
    """End what is done there, as a kill does."""
    raise KeyboardInterrupt


@pytest.mark.every_spark
@pytest.mark.classic
def test_rows_that_stand_get_the_default_of_a_column_that_is_added_also_behind_a_kill(spark: SparkSession, sink: Sink):
    """Those that come later state it, or have it read for them."""
    lake = Lake(spark, sink, database(sink, "defaults"))
    lake.merge([change("INSERT", 1, 1), change("INSERT", 2, 2)])
    place = Arrival(topic="x", partition=0, offset=3)
    statement = Change(op="ALTER", source=SOURCE, position=(3,), event_time=1, ddl=ALTER_WITH_DEFAULTS, place=place)
    lake.maker.of_batch([[statement]])
    (table,) = lake.maker.tables.tables
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(current_state, "_fill", killed)
        with pytest.raises(KeyboardInterrupt):
            lake.state(table).prepare(spark, table.versions)
    lake.state(table).prepare(spark, table.versions)
    stood = {"n": 7, "d": Decimal("-1.50"), "s": "it's é"}
    assert shown(lake.rows(table)) == shown([{"id": id, "a": id, "b": -id, **stood} for id in (1, 2)])
    columns = (*COLUMNS, *(Column(name=name, type=type) for name, type in ADDED.items()))
    row = {"id": 1, "a": 5, "b": 6, **dict.fromkeys(ADDED)}
    lake.merge([[replace(change("UPDATE", 4, 1)[0], before=None, after=row, columns=columns)]])
    assert shown(lake.rows(table)) == shown([row, {"id": 2, "a": 2, "b": -2, **stood}])


@pytest.mark.every_spark
@pytest.mark.classic
@pytest.mark.parametrize(
    ("sink", "moved", "expected"),
    [
        ("iceberg", [], ["z", "id", "n", "a", "b", *STATE]),
        ("delta", [KEY], ["z", "n", KEY, "id", "a", "b", *[one for one in STATE if one != KEY]]),
    ],
    indirect=["sink"],
)
def test_columns_are_added_in_front_of_this_projects_own_wherever_these_stand(
    spark: SparkSession, sink: Sink, moved: list[str], expected: list[str]
):
    """Where the statement puts them, if that is in front; rows are the same."""
    lake = Lake(spark, sink, database(sink, f"in order {len(moved)}"))
    lake.merge([change("INSERT", 1, 1), change("INSERT", 2, 2)])
    (table,) = lake.maker.tables.tables
    place = lake.state(table).identifier
    for name in moved:
        spark.sql(f"ALTER TABLE {place} ALTER COLUMN {name} FIRST")
    ddl = "ALTER TABLE t ADD COLUMN n BIGINT DEFAULT 7 AFTER id, ADD COLUMN z INT FIRST"
    arrival = Arrival(topic="x", partition=0, offset=3)
    lake.maker.of_batch([[Change(op="ALTER", source=SOURCE, position=(3,), event_time=1, ddl=ddl, place=arrival)]])
    columns = (*COLUMNS, Column(name="n", type="bigint"), Column(name="z", type="int"))
    row = {"id": 1, "a": 5, "b": 6, "n": 8, "z": 9}
    lake.merge([[replace(change("UPDATE", 4, 1)[0], before=None, after=row, columns=columns)]])
    assert spark.table(place).columns == expected
    assert shown(lake.rows(table)) == shown([row, {"id": 2, "a": 2, "b": -2, "n": 7, "z": None}])


@pytest.mark.every_spark
@pytest.mark.classic
def test_columns_are_added_in_front_also_where_all_files_are_written_anew_for_all_readers(
    spark: SparkSession, tmp_path: Path
):
    """One that is renamed keeps its values, one that comes under the name of one that went is empty; nothing is asked."""
    lake = Lake(spark, Delta(str(tmp_path), is_readable=True), "d", behavior="try_evolve")
    lake.merge([change("INSERT", 1, 1), change("INSERT", 2, 2)])
    (table,) = lake.maker.tables.tables
    ddl = "ALTER TABLE t CHANGE a `we ird` BIGINT, DROP COLUMN b, ADD COLUMN b VARCHAR(5) AFTER id"
    arrival = Arrival(topic="x", partition=0, offset=3)
    lake.maker.of_batch([[Change(op="ALTER", source=SOURCE, position=(3,), event_time=1, ddl=ddl, place=arrival)]])
    types = {"id": "int", "b": "varchar(5)", "we ird": "bigint"}
    columns = tuple(Column(name=name, type=type) for name, type in types.items())
    row = {"id": 1, "b": "x", "we ird": 2**40}
    lake.merge([[replace(change("UPDATE", 4, 1)[0], before=None, after=row, columns=columns)]])
    frame = spark.table(lake.state(table).identifier)
    assert frame.columns == ["id", "b", "we~20~ird", *STATE]
    assert sorted(map(tuple, frame.select(*frame.columns[:3]).collect())) == [(1, "x", 2**40), (2, None, 2)]
    (detail,) = spark.sql(f"DESCRIBE DETAIL {lake.state(table).identifier}").collect()
    assert detail["minReaderVersion"] == 1


@ON_ICEBERG
def test_a_lake_table_that_keeps_versions_of_rows_is_refused(spark: SparkSession, sink: Sink):
    """The local runner has written it; nothing is merged."""
    lake = Lake(spark, sink, "forms")
    lake.merge([change("INSERT", 1, 1)])
    (table,) = lake.maker.tables.tables
    put_properties(spark, lake.state(table).identifier, {"cdcavro.form": "soft"})
    with pytest.raises(SchemaError, match='its lake table was begun with form = "soft", which cannot become "current"'):
        lake.merge([change("INSERT", 2, 2)])


def test_what_a_kill_left_of_a_creation_does_not_stand_in_the_way(spark: SparkSession, sink: Sink):
    """The log or the metadata of a table is there, and nothing in it that says that there is a table."""
    lake = Lake(spark, sink, "half")
    root = spark.conf.get("spark.sql.catalog.ice.warehouse") if isinstance(sink, Iceberg) else sink.root
    folder = Path(root, "half")
    for suffix in ("", "deletes"):
        for left in ("_delta_log/.00000000000000000000.json.4e2f.tmp", "metadata/4e2f.metadata.json"):
            path = folder / ("~~".join(filter(None, ["t", suffix]))) / left
            if left.startswith("_") != isinstance(sink, Iceberg):
                path.parent.mkdir(parents=True)
                path.write_bytes(b'{"commitInfo')
    lake.merge([change("INSERT", 1, 1), change("INSERT", 2, 2), change("DELETE", 3, 2)])
    (table,) = lake.maker.tables.tables
    assert shown(lake.rows(table)) == shown([{"id": 1, "a": 1, "b": -1}])
    lake.merge([change("DELETE", 4, 1)])
    lake.state(table).prepare(spark, table.versions)
    assert spark.sql(f"SELECT count(*) FROM {lake.state(table).deletes}").collect()[0][0] == 2


@pytest.fixture
def merged(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tables into which rows were merged, and not appended."""
    names: list[str] = []
    own = CurrentState._merge
    monkeypatch.setattr(CurrentState, "_merge", lambda self, *args: (names.append(self.table.table), own(self, *args)))
    return names


@ON_DELTA
def test_first_rows_are_appended_and_those_of_a_batch_that_is_run_again_merged(
    spark: SparkSession, sink: Sink, merged: list[str]
):
    """A table that has nothing needs no MERGE; once it has rows, or may have had some, it does."""
    lake = Lake(spark, sink, database(sink, "first"))
    batch = [change("INSERT", 1, 1), change("INSERT", 2, 2), change("UPDATE", 3, 2, absent="b")]
    lake.merge(batch)
    assert merged == []
    (table,) = lake.maker.tables.tables
    assert shown(lake.rows(table)) == shown(lake.plain(table))
    lake.merge(batch)
    assert merged == ["t"]
    assert shown(lake.rows(table)) == shown(lake.plain(table))
    assert len(lake.rows(table)) == 2


@ON_DELTA
def test_a_table_that_is_created_for_a_batch_says_at_once_what_orders_it(
    spark: SparkSession, sink: Sink, merged: list[str]
):
    """It is created and appended to, and no step is between."""
    lake = Lake(spark, sink, database(sink, "at once"))
    rows = lake.maker.of_batch([change("INSERT", 1, 1), change("INSERT", 2, 2)]).rows
    (table,) = lake.maker.tables.tables
    state, frame = lake.state(table), frame_of(spark, rows)
    facts = facts_of(frame, table.versions)
    state.prepare(spark, table.versions, facts=facts)
    state.merge(frame, table.versions, now=NOW, facts=facts)
    assert merged == []
    assert properties_of(spark, state.identifier)["cdcavro.order"] == "numbers"
    steps = spark.sql(f"DESCRIBE HISTORY {state.identifier}").orderBy("version").select("operation").collect()
    assert [step["operation"] for step in steps] == ["CREATE TABLE", "WRITE"]
    state.merge(frame, table.versions, now=NOW, facts=facts)
    assert merged == ["t"]
    assert sorted(row["id"] for row in lake.rows(table)) == [1, 2]


@ON_ICEBERG
def test_a_first_batch_is_appended_also_with_deletes(spark: SparkSession, sink: Sink, merged: list[str]):
    """What is below a delete is not there; the table of deletes is appended to, and has nothing twice."""
    lake = Lake(spark, sink, database(sink, "first with deletes"))
    batch = [change("INSERT", 1, 1), change("DELETE", 3, 1), change("UPDATE", 2, 1), change("INSERT", 4, 2)]
    rows = lake.maker.of_batch(batch).rows
    (table,) = lake.maker.tables.tables
    state, frame = lake.state(table), frame_of(spark, rows)
    facts = facts_of(frame, table.versions)
    state.prepare(spark, table.versions, facts=facts)
    state.merge(frame, table.versions, now=NOW, facts=facts)
    assert (merged, [row["id"] for row in lake.rows(table)]) == ([], [2])
    for _ in range(2):
        state.merge(frame_of(spark, lake.maker.of_batch([change("DELETE", 6, 1)]).rows), table.versions, now=NOW)
    state.merge(frame, table.versions, now=NOW, facts=facts)
    assert (set(merged), [row["id"] for row in lake.rows(table)]) == ({"t"}, [2])
    assert spark.sql(f"SELECT count(*) FROM {state.deletes}").collect()[0][0] == 2


@ON_ICEBERG
def test_into_a_table_that_another_run_created_rows_are_merged(spark: SparkSession, sink: Sink, merged: list[str]):
    """It was killed, and nobody knows whether before or behind its append."""
    lake = Lake(spark, sink, database(sink, "killed"))
    rows = lake.maker.of_batch([change("INSERT", 1, 1)]).rows
    (table,) = lake.maker.tables.tables
    for _ in range(2):
        (state := lake.state(table)).prepare(
            spark, table.versions, facts=facts_of(frame_of(spark, rows), table.versions)
        )
    state.merge(frame_of(spark, rows), table.versions, now=NOW)
    assert merged == ["t"]
    assert [row["id"] for row in lake.rows(table)] == [1]


def test_a_name_is_no_variable_of_a_text_of_sql(spark: SparkSession, sink: Sink):
    """Spark would put a variable of the environment in its place, in the lake and where it is told what a change lacks."""
    lake, name = Lake(spark, sink, database(sink, "variable")), "a${env:HOME}"
    columns = (Column(name="id", type="int"), Column(name=name, type="int"))
    first = replace(change("INSERT", 1, 1)[0], after={"id": 1, name: 5}, columns=columns)
    lake.merge([[first]])
    (table,) = lake.maker.tables.tables
    assert "a~24~{env:HOME}" in spark.table(lake.state(table).identifier).columns
    lacking = replace(change("UPDATE", 2, 1)[0], after={"id": 1}, columns=columns, unavailable=(name,))
    rename = replace(lacking, op="ALTER", position=(3,), ddl=f"ALTER TABLE t RENAME COLUMN `{name}` TO c", after=None)
    renamed = replace(rename, columns=None, unavailable=None, key=None, place=Arrival(topic="x", partition=0, offset=3))
    lake.merge([[lacking], [renamed]])
    assert shown(lake.rows(table)) == shown([{"id": 1, "c": 5}])


@ON_DELTA
def test_two_that_write_a_table_may_know_nothing_of_it(spark: SparkSession, sink: Sink):
    """What is not given to know is looked at: neither appends what the other has merged, nor forgets its deletes."""
    lake = Lake(spark, sink, database(sink, "two"))
    rows = [
        lake.maker.of_batch([one]).rows
        for one in (change("INSERT", 1, 1), change("DELETE", 3, 1), change("UPDATE", 2, 1))
    ]
    (table,) = lake.maker.tables.tables
    one, other = (CurrentState(sink, TableName(lake.database, None, "t")) for _ in range(2))
    for state in (one, other):
        state.prepare(spark, table.versions)
    for state, batch in zip((one, other, other, one), (rows[0], rows[0], rows[1], rows[2]), strict=True):
        state.merge(frame_of(spark, batch), table.versions, now=NOW)
    assert lake.rows(table) == []


def own(properties: Mapping[str, str]) -> dict[str, str]:
    """Return those properties of a lake table that a current state puts there."""
    return {name: value for name, value in properties.items() if name.startswith("cdcavro.")}


@ON_DELTA
def test_what_is_known_of_a_lake_table_is_what_it_says(spark: SparkSession, sink: Sink):
    """What each batch puts into its properties is known without a look, whatever the batches hold."""
    lake = Lake(spark, sink, database(sink, "known"))
    batches = [
        [change("INSERT", 1, 1)],
        [change("UPDATE", 2, 1, absent="b")],
        [change("DELETE", 3, 1)],
        [change("TRUNCATE", 4, 0)],
    ]
    lake.maker.of_batch(batches[0])
    (table,) = lake.maker.tables.tables
    state = lake.state(table)
    state.prepare(spark, table.versions)
    for batch in batches:
        state.merge(frame_of(spark, lake.maker.of_batch(batch).rows), table.versions, now=NOW)
        said = own(properties_of(spark, state.identifier))
        assert own(state.known.properties or {}) == said
    assert {"cdcavro.order", "cdcavro.partial", "cdcavro.deletes", "cdcavro.floor"} < set(said)


def test_a_row_keeps_what_its_change_lacks_where_another_column_takes_over(spark: SparkSession, sink: Sink):
    """Wherever batches are cut, as on the local runner."""
    for cut in (0, 1, 3):
        lake = Lake(spark, sink, database(sink, f"takes over {cut}"))
        for part in filter(None, (LACKING[:cut], LACKING[cut:])):
            lake.merge([to_changes(message, "canal") for message in part])
        (table,) = lake.maker.tables.tables
        for a, late in ((5, [LATE]), (6, [])):
            (row,) = lake.rows(table)
            own = {name: value for name, value in row.items() if not name.startswith("_cdc_")}
            assert own == {
                "id": 1,
                "a": f"{a}",
                "a (until version 1)": a,
                "d": None,
                "d (until version 1)": 0.1,
                "n": 3,
            }
            lake.merge([to_changes(message, "canal") for message in late])


@ON_ICEBERG
def test_a_full_load_into_an_empty_table_that_is_written_again_is_there_once(spark: SparkSession, sink: Sink):
    """Nothing orders its rows but that they are of one, so the table does not say what does."""
    lake = Lake(spark, sink, database(sink, "load"))
    lake.merge([change("SNAPSHOT", 1, 1), change("SNAPSHOT", 2, 2)], times=2)
    lake.merge([change("SNAPSHOT", 3, 3)])
    (table,) = lake.maker.tables.tables
    assert sorted(row["id"] for row in lake.rows(table)) == [1, 2, 3]


@ON_DELTA
def test_a_delete_is_guarded_until_its_guard_is_over(spark: SparkSession, sink: Sink):
    """Then a late change is taken for a new one."""
    lake = Lake(spark, sink, database(sink, "guard"), guard=timedelta(days=1))
    lake.merge([change("DELETE", 5, 1)])
    (table,) = lake.maker.tables.tables
    late = lake.maker.of_batch([change("UPDATE", 4, 1)]).rows
    lake.state(table).forget_deletes(spark, now=NOW + timedelta(hours=23))
    lake.merge_rows(table, late)
    assert lake.rows(table) == []
    lake.state(table).forget_deletes(spark, now=NOW + timedelta(hours=24))
    lake.merge_rows(table, late)
    assert [row["a"] for row in lake.rows(table)] == [4]


@ON_ICEBERG
def test_what_cannot_be_merged_stops_with_nothing_merged(spark: SparkSession, sink: Sink):
    """Two kinds of order in one table, rows without a key, a table without one."""
    lake = Lake(spark, sink, database(sink, "stops"))
    lake.merge([change("INSERT", 1, 1)])
    (table,) = lake.maker.tables.tables
    placed = [replace(one, position=None) for one in change("INSERT", 2, 2)]
    rows = lake.maker.of_batch([placed, change("INSERT", 3, 3)]).rows
    with pytest.raises(OrderError, match="got some with numbers and some with no numbers"):
        lake.merge_rows(table, rows)
    with pytest.raises(SchemaError, match="1 rows have no key, and so no current state"):
        lake.merge_rows(table, [TypedRow(0, 1, "c", rows[1].order, None, rows[1].payload)])
    assert [row["a"] for row in lake.rows(table)] == [1]
    keyless = Tables()
    keyless.add(replace(change("INSERT", 1, 1)[0], key=None))
    with pytest.raises(SchemaError, match="has no primary key, and so no current state, only a changelog"):
        lake.state(table).prepare(spark, keyless.tables[0].versions)


def test_a_hostile_table_stays_in_its_place(spark: SparkSession, sink: Sink):
    """Names that lead elsewhere, end a quotation, or differ in case only; its batch is merged twice."""
    source = replace(SOURCE, table="../t`; DROP TABLE x; --")
    lake = Lake(spark, sink, database(sink, "hostile"))
    columns = tuple(Column(name=name, type="int") for name in ("id", "ID", "_cdc_order", "a`b", "x.y", "key", "text"))
    place = Arrival(file="f", line=1)
    row = {column.name: i for i, column in enumerate(columns)}
    lake.merge([[Change(op="INSERT", source=source, key=("id",), columns=columns, after=row, place=place)]], times=2)
    (table,) = lake.maker.tables.tables
    (found,) = lake.rows(table)
    assert list(found.items()) == [
        ("id", 0),
        ("~49~~44~", 1),
        ("~5f~cdc_order", 2),
        ("a`b", 3),
        ("x.y", 4),
        ("key", 5),
        ("text", 6),
    ]
    if not isinstance(sink, Iceberg):
        assert "/lake/hostile Delta/~2e~.~2f~t~60~~3b~ DROP TABLE x~3b~ --" in lake.state(table).identifier


@ON_ICEBERG
def test_a_driver_that_slept_before_its_merge_brings_no_row_back(
    spark: SparkSession, sink: Sink, monkeypatch: pytest.MonkeyPatch
):
    """It has read the deletes, and sleeps until another holder of the stored state has deleted its row."""
    monkeypatch.setattr(stored_state, "LEASE", 0.2)
    monkeypatch.setattr(stored_state.StoredState, "_renew", lambda *_: None)
    store = MemoryStore()
    one, other = (stored_state.StoredState("s3://bucket/state", store) for _ in range(2))
    maker, name = TypedRows(Tables()), TableName("slept", None, "t")
    first, late, gone = (
        maker.of_batch(messages).rows
        for messages in (
            [change("INSERT", 1, 1), change("DELETE", 2, 1)],
            [change("INSERT", 3, 2)],
            [change("DELETE", 4, 2)],
        )
    )
    versions = maker.tables.tables[0].versions
    awake = CurrentState(sink, name)

    def merge(state: CurrentState, rows: Sequence[TypedRow]) -> None:
        state.prepare(spark, versions)
        state.merge(frame_of(spark, rows), versions, now=NOW)

    merge(awake, first)
    taken = []

    def sleep() -> None:
        """Sleep until the state is another one's, which does all again and goes on."""
        if not taken:
            time.sleep(stored_state.LEASE)
            taken.append(stack.enter_context(other.held()))
            merge(awake, late)
            merge(awake, gone)
        one.verify()

    with ExitStack() as stack, one.held(), pytest.raises(FileError, match="one that is in use"):
        merge(CurrentState(sink, name, check_held=sleep), late)
    assert spark.table(awake.identifier).count() == 0


@ON_ICEBERG
def test_a_driver_that_holds_its_state_no_longer_appends_no_deletes(spark: SparkSession, sink: Sink):
    """They would be there twice, once by each."""
    maker, name = TypedRows(Tables()), TableName("held", None, "t")
    rows = maker.of_batch([change("INSERT", 1, 1), change("DELETE", 2, 1)]).rows
    versions = maker.tables.tables[0].versions

    def gone() -> None:
        raise FileError("state", "a state that no other job uses", "one that is in use")

    state = CurrentState(sink, name, check_held=gone)
    state.prepare(spark, versions)
    with pytest.raises(FileError, match="in use"):
        state.merge(frame_of(spark, rows), versions, now=NOW)
    assert spark.table(state.deletes).count() == 0


def test_a_late_row_of_a_dropped_table_changes_none_of_the_table_that_goes_on(spark: SparkSession, sink: Sink):
    """As on the local runner: its version neither fills columns anew nor lets the next one do so."""
    name, maker = TableName(f"again {type(sink).__name__}", None, "t"), TypedRows(Tables(zone=UTC))

    def merge(*texts: bytes, partition: int = 0) -> None:
        messages = []
        for text in texts:
            place = Arrival(topic="x", partition=partition, offset=json.loads(text)["id"])
            messages.append([replace(one, place=place) for one in to_changes(text, "canal")])
        found = maker.of_batch(messages).rows
        for table in maker.tables.tables:
            rows = [one for one in found if one.table == table.number]
            state = CurrentState(sink, name, origin=Origin("job", table.number, table.is_gone))
            if rows:
                state.prepare(spark, table.versions)
                state.merge(frame_of(spark, rows), table.versions, now=NOW)

    def row(id: int, **values: str) -> bytes:
        return canal("INSERT", [{"id": str(id), "a": "1", **values}], id=id)

    create, add = "CREATE TABLE d.t (id INT PRIMARY KEY, a INT)", "ALTER TABLE d.t ADD m INT DEFAULT 5"
    dropped, created, added = (
        canal(type, [], id=i, isDdl=True, sql=sql)
        for i, type, sql in ((2, "ERASE", "DROP TABLE d.t"), (3, "CREATE", create), (5, "ALTER", add))
    )
    merge(row(1))
    merge(dropped, created, row(4))
    merge(added, row(6, m="7"))
    merge(row(0), partition=1)
    merge(row(7, m="7"))
    state = CurrentState(sink, name)
    found = spark.table(state.identifier).select("id", "m").orderBy("id").collect()
    assert [tuple(one) for one in found] == [(4, 5), (6, 7), (7, 7)]
    text = {"id": "int", "a": "varchar(9)", "m": "int"}
    retyped = canal("ALTER", [], id=8, isDdl=True, sql="ALTER TABLE d.t MODIFY a VARCHAR(9)")
    merge(retyped, canal("INSERT", [{"id": "9", "a": "x", "m": "9"}], id=9, mysqlType=text))
    # Neither does it rename a column that has its column's name now.
    merge(row(1), partition=1)
    held = spark.table(state.identifier).select("id", "a", "a (until version 2)").orderBy("id").collect()
    assert [tuple(one) for one in held][-1] == (9, "x", None)

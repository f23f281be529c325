"""Current states in native lakes: the same rows as the merge in plain Python has, whatever comes, in few commits."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from hypothesis import given
from hypothesis import strategies as st

from cdcavro.change.model import Change, Column, replace, with_rows
from cdcavro.errors import OrderError, SchemaError
from cdcavro.lake import TableState, TypedRow, TypedRows
from cdcavro.lake.merge import values_of
from cdcavro.lake.sql_statements import KEY, ORDER
from cdcavro.sync.native import native_state, row_images
from cdcavro.sync.native.delta_lake import NativeDelta
from cdcavro.sync.native.native_state import NativeCache, NativeState, facts_of
from cdcavro.table import TableName
from cdcavro.table.history import Table
from cdcavro.table.tables import Tables
from support.keyed_changes import (
    COLUMNS,
    change,
    changes_by_seed,
    statement,
    texts_of_a_column_that_is_dropped_at_once,
    texts_under_a_name_of_two_columns,
)
from support.lake_values import as_in_lake, rows_of, shown, table_of
from support.shop_state import Rows, image, whole
from support.shop_streams import shuffled
from support.shop_tables import MESSAGES, Row

NOW = datetime(2026, 11, 22, tzinfo=UTC)


class Lake:
    """The states of all tables of a stream in a native lake, and the same merged in plain Python."""

    def __init__(self, folder: Path, **settings) -> None:
        self.lake, self.settings = NativeDelta(str(folder)), settings
        self.maker = TypedRows(Tables(zone=UTC))
        self.states: dict[int, TableState] = {}
        self.known: dict[int, NativeCache] = {}

    def state(self, table: Table) -> NativeState:
        """Return the state of a table, under its first name, which knows nothing of the lake table."""
        return NativeState(self.lake, TableName("d", None, table.versions[0].table.table), **self.settings)

    def merge(self, messages: Sequence[list[Change]], *, tables: Sequence[str] = (), is_told: bool = False) -> None:
        """Merge a batch of messages; with `is_told`, a state that goes on is told what it merges before it prepares."""
        batch = self.maker.of_batch(messages)
        assert batch.rejects == []
        for table in self.maker.tables.tables:
            rows = [row for row in batch.rows if row.table == table.number]
            if rows and table.schema.key is not None and (not tables or table.versions[0].table.table in tables):
                self.states.setdefault(table.number, TableState()).merge(rows)
                self.merge_rows(table, rows, is_told=is_told)

    def merge_rows(self, table: Table, rows: Sequence[TypedRow], *, is_told: bool = False) -> None:
        """Merge typed rows of a table."""
        state, typed = self.state(table), table_of(rows)
        facts = facts_of(typed, table.versions) if is_told else None
        if is_told:
            state = replaced(state, self.known.setdefault(table.number, NativeCache()))
        state.prepare(table.versions, facts=facts)
        state.merge(typed, table.versions, facts=facts, now=NOW)

    def held(self, table: Table, suffix: str = "") -> pa.Table:
        """Return all that is in a lake table."""
        held = self.lake.table(self.state(table).table, suffix)
        return held.read(held.schema().names)

    def rows(self, table: Table) -> list[Row]:
        """Return the rows of a table in the lake."""
        return rows_of(self.held(table))

    def plain(self, table: Table) -> list[Row]:
        """Return the rows that the merge in plain Python has, as a lake has them."""
        schema = table.schema
        names = [column.name for column in schema.all_columns]
        found = [
            dict.fromkeys(names) | values_of(pieces, lambda piece: image(piece, table.versions))
            for pieces in self.states[table.number].rows.values()
        ]
        return [as_in_lake(row, schema) for row in found]

    def operations(self, table: Table, suffix: str = "") -> list[str]:
        """Return what was done to a lake table, the oldest first."""
        found = DeltaTable(self.lake.path(self.state(table).table, suffix)).history()
        return [one["operation"] for one in reversed(found)]


def replaced(state: NativeState, known: NativeCache) -> NativeState:
    """Return a state that goes on with what is known."""
    return NativeState(state.lake, state.table, state.behavior, state.guard, known)


@pytest.mark.slow
@pytest.mark.parametrize("producer", MESSAGES)
def test_the_tables_of_the_shop_are_those_of_the_server(tmp_path: Path, producer: str):
    """Every type, hostile names, moved keys, TRUNCATE, ten versions of `orders`; in three batches, behind a full load that is late."""
    lake = Lake(tmp_path)
    messages = shuffled(producer, {"canal": 15, "debezium": 27}[producer]).messages
    size = -(-len(messages) // 3)
    for i in range(0, len(messages), size):
        lake.merge(messages[i : i + size])
    wanted: Rows = whole(producer)
    live = [table for table in lake.maker.tables.tables if table.number in lake.states and not table.is_gone]
    assert len(live) >= 4
    for table in live:
        rows = [as_in_lake(row, table.schema) for row in wanted[table.schema.table.table].values()]
        names = {name for row in rows for name in row}
        # Columns that were dropped stay in the lake, with what older rows had.
        found = [{name: value for name, value in row.items() if name in names} for row in lake.rows(table)]
        assert shown(found) == shown(rows), table.schema.table


@pytest.mark.slow
@given(st.data())
def test_any_order_cut_and_repetition_gives_the_rows_of_the_merge_in_plain_python(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
):
    """Late changes, a late full load, deletes, a TRUNCATE, columns that changes do not have, and states that know nothing."""
    lake = Lake(tmp_path_factory.mktemp("lake"))
    seed = data.draw(st.integers(0, 2**32))
    messages = changes_by_seed(seed, 24) * 2
    if data.draw(st.booleans()):
        messages = [one for one in messages if not one[0].unavailable]
    random.Random(seed).shuffle(messages)
    # The table is known before: else a TRUNCATE of none may come first.
    lake.merge([change("INSERT", 1, 0)], is_told=True)
    while messages:
        size = data.draw(st.integers(1, 20))
        lake.merge(messages[:size], is_told=data.draw(st.booleans()))
        del messages[:size]
        (table,) = lake.maker.tables.tables
        assert shown(lake.rows(table)) == shown(lake.plain(table))
    assert lake.held(table).column(KEY).null_count == 0


@pytest.mark.parametrize("size", [1, 3_000])
def test_payloads_are_read_some_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int):
    """The rows are the same as those that are read at once."""
    monkeypatch.setattr(row_images, "_MAX_SIZE", size)
    lake = Lake(tmp_path)
    lake.merge(changes_by_seed(3, 60))
    lake.merge([one for one in changes_by_seed(4, 60) if not one[0].unavailable])
    (table,) = lake.maker.tables.tables
    assert shown(lake.rows(table)) == shown(lake.plain(table))
    assert len(lake.rows(table)) > 1


def test_a_first_batch_is_appended_also_with_deletes_and_says_all_in_the_creation(tmp_path: Path):
    """Two commits for each of both tables; what a row was before its delete is not there."""
    lake = Lake(tmp_path)
    batch = [change("INSERT", 1, 1), change("INSERT", 2, 2), change("DELETE", 3, 2), change("INSERT", 4, 3)]
    lake.merge([*batch, change("UPDATE", 5, 3, absent="b")], is_told=True)
    (table,) = lake.maker.tables.tables
    assert lake.operations(table) == ["CREATE TABLE", "WRITE"]
    assert lake.operations(table, "deletes") == ["CREATE TABLE", "WRITE"]
    assert shown(lake.rows(table)) == shown([{"id": 1, "a": 1, "b": -1}, {"id": 3, "a": 5, "b": -4}])
    properties = lake.lake.table(lake.state(table).table).properties() or {}
    said = {name: properties.get(f"cdcavro.{name}") for name in ("order", "partial", "deletes", "filled")}
    assert said == {"order": "numbers", "partial": "true", "deletes": "true", "filled": "1"}
    lake.merge(batch, is_told=True)
    assert shown(lake.rows(table)) == shown([{"id": 1, "a": 1, "b": -1}, {"id": 3, "a": 5, "b": -4}])
    # What is known of deletes is not written again.
    assert lake.operations(table, "deletes") == ["CREATE TABLE", "WRITE"]


def test_a_batch_into_a_table_that_stands_is_one_commit(tmp_path: Path):
    """With a delete, one more in the table of deletes."""
    lake = Lake(tmp_path)
    lake.merge([change("INSERT", number, number) for number in range(1, 5)], is_told=True)
    lake.merge([change("UPDATE", 5, 1), change("DELETE", 6, 2)], is_told=True)
    lake.merge([change("UPDATE", 7, 1), change("DELETE", 8, 2)], is_told=True)
    (table,) = lake.maker.tables.tables
    assert [one for one in lake.operations(table) if one == "MERGE"] == ["MERGE"] * 2
    # The delete is new, of which the properties tell.
    assert len(lake.operations(table)) == 5
    assert lake.operations(table, "deletes") == ["CREATE TABLE", "WRITE", "WRITE"]
    orders = lake.held(table, "deletes").column(ORDER).to_pylist()
    assert len({*orders}) == 2


def test_deletes_that_are_left_of_a_table_count_for_the_one_that_is_made_anew(tmp_path: Path):
    """Somebody has removed the current state, and not what is beside it."""
    lake = Lake(tmp_path)
    lake.merge([change("INSERT", 1, 1), change("DELETE", 3, 1), change("INSERT", 4, 2)], is_told=True)
    (table,) = lake.maker.tables.tables
    for path in sorted(Path(lake.lake.path(lake.state(table).table)).rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    lake.known.clear()
    late = lake.maker.of_batch([change("UPDATE", 2, 1), change("UPDATE", 5, 2), change("DELETE", 2, 3)]).rows
    lake.merge_rows(table, late, is_told=True)
    assert shown(lake.rows(table)) == shown([{"id": 2, "a": 5, "b": -5}])


@pytest.mark.slow
def test_a_late_delete_and_a_late_truncate_take_what_stood_before_them_from_a_row_that_goes_on(tmp_path: Path):
    """Of a change that lacks columns, these are null then, and so are the texts that no type could carry."""
    for late in ("DELETE", "TRUNCATE"):
        lake = Lake(tmp_path / late)
        first = replace(change("INSERT", 1, 1)[0], after={"id": 1, "a": 1, "b": "misfit"})
        lake.merge([[first], change("UPDATE", 9, 1, absent="b"), change("INSERT", 2, 2)])
        lake.merge([change("INSERT", 3, 3)])
        lake.merge([change(late, 5, 1)])
        (table,) = lake.maker.tables.tables
        left = {"id": 1, "a": 9, "b": None}
        others = [{"id": 2, "a": 2, "b": -2}, {"id": 3, "a": 3, "b": -3}] if late == "DELETE" else []
        assert shown(lake.rows(table)) == shown([left, *others])
        lake.merge([change("UPDATE", 7, 1, absent="a")])
        assert shown(lake.rows(table)) == shown([left | {"b": -7}, *others])


def test_a_text_that_no_type_carries_is_kept_with_its_row(tmp_path: Path):
    """Until another value comes; where changes lack columns, too."""
    lake = Lake(tmp_path)
    misfit = replace(change("INSERT", 1, 1)[0], after={"id": 1, "a": 1, "b": "misfit"})
    lake.merge([[misfit], change("INSERT", 2, 2)])
    (table,) = lake.maker.tables.tables
    assert lake.held(table).column("_cdc_unparsed").to_pylist() in (
        [[("b", "misfit")], None],
        [None, [("b", "misfit")]],
    )
    lake.merge([change("UPDATE", 3, 1, absent="b")])
    kept = [one for one in lake.held(table).to_pylist() if one["id"] == 1]
    assert [(one["a"], one["b"], one["_cdc_unparsed"]) for one in kept] == [(3, None, [("b", "misfit")])]
    lake.merge([change("UPDATE", 4, 1, absent="a")])
    assert shown(lake.rows(table)) == shown([{"id": 1, "a": 3, "b": -4}, {"id": 2, "a": 2, "b": -2}])


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 4])
def test_a_text_stays_with_its_column_where_another_one_has_the_name_now(tmp_path: Path, size: int):
    """However the messages are cut into batches: the text of the second one is called by its field."""
    lake, messages = Lake(tmp_path), texts_under_a_name_of_two_columns()
    for start in range(0, 3, size):
        lake.merge(messages[start : min(start + size, 3)])
    (table,) = lake.maker.tables.tables
    (row,) = lake.held(table).to_pylist()
    assert (row["a"], row["b"], row["c"], dict(row["_cdc_unparsed"])) == (
        *(None, None, None),
        {"a": "x", "b": "y", "b_x_2": "z"},
    )
    lake.merge(messages[3:])
    (row,) = lake.held(table).to_pylist()
    assert (row["b"], row["c"], dict(row["_cdc_unparsed"])) == (None, 7, {"a": "x", "b_x_2": "z"})


@pytest.mark.parametrize("size", [4, 5, 6])
def test_a_text_of_a_column_that_the_table_never_had_stays_with_its_row(tmp_path: Path, size: int):
    """Until the row has a newer change; where changes lack columns, too."""
    lake, messages = Lake(tmp_path), texts_of_a_column_that_is_dropped_at_once()
    lake.merge(messages[:size])
    lake.merge(messages[size:])
    (table,) = lake.maker.tables.tables
    assert sorted((one["id"], one["a"], tuple(one["_cdc_unparsed"] or ())) for one in lake.held(table).to_pylist()) == [
        (11, 11, (("b", "text 11"),)),
        (12, 7, ()),
        (13, 13, (("b", "text 13"),)),
    ]


ADDED = {"n": "bigint", "d": "decimal(10,2)", "s": "varchar(20)"}
ALTER_WITH_DEFAULTS = (
    "ALTER TABLE t ADD COLUMN n BIGINT DEFAULT 7, ADD COLUMN d DECIMAL(10,2) DEFAULT '-1.50',"
    " ADD COLUMN s VARCHAR(20) DEFAULT 'it''s é'"
)


BEHIND_A_DROP = (("DELETE", 5, 1), ("INSERT", 6, 1), ("UPDATE", 7, 2))


def killed(*_: object) -> None:
    """End what is done there, as a kill does."""
    raise KeyboardInterrupt


def test_rows_that_stand_get_the_default_of_a_column_that_is_added_also_behind_a_kill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Those that come later state it, or have it read for them."""
    lake = Lake(tmp_path)
    lake.merge([change("INSERT", 1, 1), change("INSERT", 2, 2)])
    lake.maker.of_batch([statement(3, ALTER_WITH_DEFAULTS)])
    (table,) = lake.maker.tables.tables
    with monkeypatch.context() as patched:
        patched.setattr(native_state, "fill", killed)
        with pytest.raises(KeyboardInterrupt):
            lake.state(table).prepare(table.versions)
    lake.state(table).prepare(table.versions)
    stood = {"n": 7, "d": Decimal("-1.50"), "s": "it's é"}
    assert shown(lake.rows(table)) == shown([{"id": id, "a": id, "b": -id, **stood} for id in (1, 2)])
    columns = (*COLUMNS, *(Column(name=name, type=type) for name, type in ADDED.items()))
    row = {"id": 1, "a": 5, "b": 6, **dict.fromkeys(ADDED)}
    lake.merge([[replace(change("UPDATE", 4, 1)[0], before=None, after=row, columns=columns)]])
    assert shown(lake.rows(table)) == shown([row, {"id": 2, "a": 2, "b": -2, **stood}])


def test_a_column_of_another_type_has_the_values_of_the_one_from_which_it_took_over(tmp_path: Path):
    """Where these are exact: in rows that stand, and in those that come."""
    lake = Lake(tmp_path)
    lake.merge([change("INSERT", 1, 1), change("INSERT", 2, 2)])
    lake.merge([statement(3, "ALTER TABLE t MODIFY COLUMN a VARCHAR(20)"), change("UPDATE", 2, 2)])
    (table,) = lake.maker.tables.tables
    lake.state(table).prepare(table.versions)
    assert sorted(row["a"] for row in lake.rows(table)) == ["1", "2"]


def test_a_row_that_was_deleted_and_inserted_again_has_nothing_in_a_dropped_column_where_changes_lack_columns(
    tmp_path: Path,
):
    """Which another row keeps, whatever of its columns its change lacks."""
    lake = Lake(tmp_path)
    lake.merge([change("INSERT", 1, 1), change("INSERT", 2, 2), change("UPDATE", 3, 2, "b")])
    rest = [replace(change(op, n, key)[0], columns=(COLUMNS[0], COLUMNS[2])) for op, n, key in BEHIND_A_DROP]
    without = [with_rows(one, lambda row: {name: row[name] for name in ("id", "b")}) for one in rest]
    lake.merge([statement(4, "ALTER TABLE t DROP COLUMN a"), *([one] for one in without)])
    (table,) = lake.maker.tables.tables
    assert shown(lake.rows(table)) == shown([{"id": 1, "a": None, "b": -6}, {"id": 2, "a": 3, "b": -7}])


def test_what_cannot_be_merged_stops_with_nothing_merged(tmp_path: Path):
    """Two kinds of order in one table, rows without a key, a table without one."""
    lake = Lake(tmp_path)
    lake.merge([change("INSERT", 1, 1)])
    (table,) = lake.maker.tables.tables
    placed = [replace(one, position=None) for one in change("INSERT", 2, 2)]
    rows = lake.maker.of_batch([placed, change("INSERT", 3, 3)]).rows
    for is_told in (False, True):
        with pytest.raises(OrderError, match="got some with numbers and some with no numbers"):
            lake.merge_rows(table, rows, is_told=is_told)
        with pytest.raises(SchemaError, match="1 rows have no key, and so no current state"):
            lake.merge_rows(table, [TypedRow(0, 1, "c", rows[1].order, None, rows[1].payload)], is_told=is_told)
    assert [row["a"] for row in lake.rows(table)] == [1]
    keyless = Tables()
    keyless.add(replace(change("INSERT", 1, 1)[0], key=None))
    with pytest.raises(SchemaError, match="has no primary key, and so no current state, only a changelog"):
        lake.state(table).prepare(keyless.tables[0].versions)


def test_a_delete_is_guarded_until_its_guard_is_over(tmp_path: Path):
    """Then a late change is taken for a new one."""
    lake = Lake(tmp_path, guard=timedelta(days=1))
    lake.merge([change("DELETE", 5, 1)])
    (table,) = lake.maker.tables.tables
    late = lake.maker.of_batch([change("UPDATE", 4, 1)]).rows
    lake.state(table).forget_deletes(now=NOW + timedelta(hours=23))
    lake.merge_rows(table, late)
    assert lake.rows(table) == []
    lake.state(table).forget_deletes(now=NOW + timedelta(hours=24))
    lake.merge_rows(table, late)
    assert [row["a"] for row in lake.rows(table)] == [4]


def test_a_column_that_stays_as_it_was_takes_what_fits_and_refuses_the_rest(tmp_path: Path):
    """With the behavior "ignore"; between some types a value would be spelled otherwise than Spark does."""
    lake = Lake(tmp_path, behavior="ignore")
    lake.merge([change("INSERT", 1, 1)])
    columns = (COLUMNS[0], Column(name="a", type="bigint"), COLUMNS[2])
    lake.maker.of_batch([statement(2, "ALTER TABLE t MODIFY COLUMN a BIGINT")])
    for number, value in ((3, 7), (4, 2**40)):
        row = {"id": number, "a": value, "b": 1}
        message = [replace(change("INSERT", number, number)[0], after=row, columns=columns)]
        if value == 7:
            lake.merge([message])
        else:
            with pytest.raises(SchemaError, match="a value does not fit into the lake's column"):
                lake.merge([message])
    (table,) = lake.maker.tables.tables
    assert sorted(row["a"] for row in lake.rows(table)) == [1, 7]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, *[pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 6)]])
def test_columns_about_changes_are_those_of_the_last_change_of_a_row(tmp_path: Path, seed: int):
    """In whatever order changes come, and whether they have all columns; null where they were not chosen then."""
    draw, messages = random.Random(seed), changes_by_seed(seed, 60)
    draw.shuffle(messages)
    lake = Lake(tmp_path)
    number_of: dict[bytes, tuple[int, bool]] = {}
    for i in range(0, len(messages), 15):
        is_chosen = i // 15 % 2 == 1
        lake.settings = {"change_columns": ("offset", "topic", "time", "source")} if is_chosen else {}
        learned = lake.maker.of_batch(messages[i : i + 15])
        for row, (one, *_) in zip(learned.rows, messages[i : i + 15], strict=True):
            assert one.place is not None
            number_of[row.order] = one.place.offset or 0, is_chosen
        (table,) = lake.maker.tables.tables
        lake.merge_rows(table, learned.rows)
    rows = lake.held(table).to_pylist()
    assert rows
    found = {row[ORDER]: tuple(row[f"_cdc_{name}"] for name in ("offset", "topic", "time", "source")) for row in rows}
    first = datetime(1970, 1, 1, microsecond=1, tzinfo=UTC)
    assert found == {
        order: (number, "x", first, "d.t") if is_chosen else (None,) * 4
        for order in found
        for number, is_chosen in [number_of[order]]
    }


def test_columns_about_changes_are_null_where_a_batch_has_deletes_alone(tmp_path: Path):
    """Then no payload says what a source is called."""
    lake = Lake(tmp_path, change_columns=("source", "offset"))
    lake.merge([change("INSERT", 1, 1), change("UPDATE", 2, 2, "a")])
    lake.merge([change("DELETE", 3, 1)])
    (table,) = lake.maker.tables.tables
    assert [(one["_cdc_source"], one["_cdc_offset"]) for one in lake.held(table).to_pylist()] == [("d.t", 2)]


@pytest.mark.slow
def test_headers_of_rows_may_take_more_bytes_than_an_array_holds() -> None:
    """Each row that is read has its own, and one without has none."""
    maker, size = TypedRows(Tables(zone=UTC)), 1 << 26
    rows = table_of(maker.of_batch([change("INSERT", 1, 1)]).rows)
    texts = [pa.array([name * size]) for name in "ab"]
    headers = pa.chunked_array([*texts * 17, pa.array([None], pa.string())])
    rows = pa.concat_tables([rows] * 35).append_column("headers", headers)
    chosen = pa.array([33, 34, 0], pa.uint64())
    read = [*row_images.read_envelopes(rows, chosen, maker.tables.tables[0].versions)]
    found = [value for _, envelopes in read for value in envelopes.column("headers").to_pylist()]
    assert [(one or "")[:1] for one in found] == ["b", "", "a"]
    assert sum(len(one or "") for one in found) == 2 * size

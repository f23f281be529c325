"""Shards: several tables of the source in one lake table, each as if it were alone there, with equal keys beside each other."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from cdcavro.errors import FileError, JobError
from cdcavro.lake.evolution import Step
from cdcavro.lake.lakes import HISTORY, SOFT
from cdcavro.lake.sql_statements import KEY, OPERATION, SHARD, UNPARSED
from cdcavro.sync.native.delta_lake import NativeDeltaTable
from cdcavro.sync.native.iceberg_lake import NativeIcebergTable
from cdcavro.sync.native.shard_tables import ShardTable
from cdcavro.sync.pipeline import finish_reset, lake_names, pause, reset
from cdcavro.table.ddl.steps import TableName
from support import local_kills
from support.local_pipelines import DELTA, ICEBERG
from support.shard_streams import KINDS, LAKE, ONE, THREE, TWO, Shards, check_shards


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cuts", [(), (1,), (2,), (1, 2)])
def test_a_shard_that_is_renamed_is_where_its_first_row_is(tmp_path: Path, kind: str, cuts: tuple[int, ...]):
    """However messages fall into batches."""
    shards = Shards(tmp_path, kind)
    sent = [shards.row(ONE, id="1"), shards.sql(ONE, "RENAME TABLE orders TO orders_old"), shards.row(TWO, id="1")]
    sent.append(shards.row("shop_1.orders_old", id="2"))
    for start, end in zip([0, *cuts], [*cuts, len(sent)], strict=True):
        shards.run(*sent[start:end])
    assert shards.rows("id") == [(ONE, 1), (ONE, 2), (TWO, 1)]
    assert {*lake_names(tmp_path / "state").names.values()} == {TableName("shop", None, "orders")}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_equal_keys_of_two_shards_are_two_rows(tmp_path: Path, kind: str):
    """An update and a delete of one are nothing to the other; keys of both begin with what the shard is called."""
    made = Shards(tmp_path, kind)
    assert made.run(made.row(ONE, id="1", a="1"), made.row(TWO, id="1", a="2"), made.row(TWO, id="2", a="3")) == []
    assert made.rows("id", "a") == [(ONE, 1, 1), (TWO, 1, 2), (TWO, 2, 3)]
    made.run(made.row(ONE, "UPDATE", id="1", a="4"), made.row(TWO, "DELETE", id="1", a="2"))
    assert made.rows("id", "a") == [(ONE, 1, 4), (TWO, 2, 3)]
    # What comes late, or again, is still nothing to the other.
    made.run(made.row(TWO, "UPDATE", id="2", a="5"), made.row(ONE, id="2", a="6"))
    assert made.rows("id", "a") == [(ONE, 1, 4), (ONE, 2, 6), (TWO, 2, 5)]
    changes = [(ONE, "c", 1), (ONE, "c", 2), (ONE, "u", 1), (TWO, "c", 1), (TWO, "c", 2), (TWO, "d", 1), (TWO, "u", 2)]
    assert sorted(made.rows(OPERATION, "id", suffix="changes")) == changes
    (key,) = [key for _, key, id in made.rows(KEY, "id") if id == 1]
    assert key == b"\x1ashop_1.orders\x02\x02\x00"


@pytest.mark.slow
def test_rows_of_shards_are_sorted_and_one_that_lacks_a_column_leaves_the_order(tmp_path: Path):
    """By a column that is followed where the shard that has it renames it."""
    made = Shards(tmp_path, ICEBERG, more={"table": [{"match": "shop_*.orders", "cluster": ["a"]}]})
    told = made.run(made.row(ONE, id="1", a="2"), made.row(ONE, id="2", a="1"), made.row(TWO, id="1"))
    made.run(made.sql(ONE, "ALTER TABLE orders CHANGE a x int"), made.row(ONE, id="3", x="0"))
    made.run(made.row(TWO, id="2"))
    table = made.job.table(LAKE)
    assert isinstance(table, NativeIcebergTable)
    (field,) = table._load().sort_order().fields
    assert table._load().schema().find_column_name(field.source_id) == "x"
    assert not any("sorted" in step for step in told)
    assert made.rows("id", "x") == [(ONE, 1, 2), (ONE, 2, 1), (ONE, 3, 0), (TWO, 1, None), (TWO, 2, None)]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_truncate_of_one_shard_is_nothing_to_the_others(tmp_path: Path, kind: str):
    """Nor is a DROP; a table that comes again goes on as the same shard."""
    made = Shards(tmp_path, kind)
    made.run(made.row(ONE, id="1", a="1"), made.row(TWO, id="1", a="2"))
    made.run(made.sql(ONE, "TRUNCATE TABLE orders"), made.row(ONE, id="2", a="3"))
    assert made.rows("id", "a") == [(ONE, 2, 3), (TWO, 1, 2)]
    made.run(made.sql(TWO, "DROP TABLE orders"))
    assert made.rows("id", "a") == [(ONE, 2, 3)]
    made.run(made.row(TWO, id="3", a="4"))
    assert made.rows("id", "a") == [(ONE, 2, 3), (TWO, 3, 4)]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_statement_of_all_shards_is_taken_once_and_a_shard_that_lags_loses_nothing(tmp_path: Path, kind: str):
    """A rename, a widening and a new column with a default, which older rows of a shard get with its own statement."""
    made = Shards(tmp_path, kind)
    made.run(made.row(ONE, id="1", a="1"), made.row(TWO, id="1", a="2"))
    made.types["b"] = "bigint"
    sql = "ALTER TABLE orders CHANGE a b bigint, ADD c int NOT NULL DEFAULT 7"
    steps = made.run(made.sql(ONE, sql), made.row(ONE, id="2", b="5000000000", c="1"), made.row(TWO, id="2", a="3"))
    assert steps == [
        f"{LAKE} ({ONE}): column 'a' is renamed to 'b'",
        f"{LAKE} ({ONE}): column 'b' becomes bigint",
        f"{LAKE} ({ONE}): column 'c' is added",
    ]
    held = [(ONE, 1, 1, 7), (ONE, 2, 5_000_000_000, 1), (TWO, 1, 2, None), (TWO, 2, 3, None)]
    assert made.rows("id", "b", "c") == held
    assert made.run(made.row(TWO, "UPDATE", id="1", a="4")) == []
    assert made.run(made.sql(TWO, sql), made.row(TWO, id="3", b="6000000000", c="2")) == []
    held[2:] = [(TWO, 1, 4, 7), (TWO, 2, 3, 7), (TWO, 3, 6_000_000_000, 2)]
    assert made.rows("id", "b", "c") == held
    assert made.names == ["b", "c", "id"]
    changes = made.rows("id", "b", suffix="changes")
    assert len(changes) == 6
    assert {(ONE, 1, 1), (TWO, 1, 2), (TWO, 1, 4), (TWO, 3, 6_000_000_000)} <= {*changes}


@pytest.mark.slow
def test_what_shards_do_not_mean_alike_waits_until_they_do(tmp_path: Path):
    """The others are written; nothing is lost, and the reason names the shard."""
    made = Shards(tmp_path, DELTA, types={"b": "varchar(9)"})
    made.run(made.row(ONE, id="1", a="1"))
    made.types["a"] = "varchar(9)"
    (said,) = made.run(made.row(TWO, id="1", a="x"))
    assert said.startswith(f"{LAKE} ({TWO}): ")
    assert "column 'a' is string, and int in other shards: neither type holds the values of the other" in said
    del made.types["a"]
    assert len(made.run(made.row(ONE, id="2", a="2"))) == 1
    assert made.rows("id", "a") == [(ONE, 1, 1), (ONE, 2, 2)]
    steps = made.run(made.sql(TWO, "ALTER TABLE orders CHANGE a b varchar(9)"), made.row(TWO, id="2", b="y"))
    assert steps == [f"{LAKE} ({TWO}): column 'b' is added"]
    assert made.rows("id", "a", "b") == [(ONE, 1, 1, None), (ONE, 2, 2, None), (TWO, 1, None, "x"), (TWO, 2, None, "y")]


SWAP = "ALTER TABLE orders RENAME COLUMN a TO b, RENAME COLUMN b TO a"
DROP, ADD = "ALTER TABLE orders DROP a", "ALTER TABLE orders ADD a int"


@pytest.mark.slow
def test_a_shard_that_comes_late_waits_until_it_has_exchanged_names_as_others_did(tmp_path: Path):
    """Nobody could tell which of the columns it means; one that was there before goes on in those that it had."""
    made = Shards(tmp_path, DELTA)
    made.run(made.row(ONE, id="1", a="1", b="10"), made.row(TWO, id="1", a="2", b="20"))
    assert len(made.run(made.sql(ONE, SWAP), made.row(ONE, id="2", a="11", b="3"))) == 4
    assert made.run(made.row(TWO, id="2", a="4", b="40")) == []
    assert made.run(made.sql(TWO, SWAP), made.row(TWO, id="3", a="60", b="6")) == []
    (said,) = made.run(made.row(THREE, id="1", a="5", b="50"))
    assert "column 'a' may be 'a' or 'b' of other shards: let all shards follow" in said
    assert made.run(made.sql(THREE, SWAP), made.row(THREE, id="2", a="70", b="7")) == []
    one, two, three = [(1, 10, 1), (2, 11, 3)], [(1, 20, 2), (2, 40, 4), (3, 60, 6)], [(1, 50, 5), (2, 70, 7)]
    wanted = [(shard, *row) for shard, rows in ((ONE, one), (TWO, two), (THREE, three)) for row in rows]
    assert made.rows("id", "a", "b") == wanted


@pytest.mark.slow
@pytest.mark.parametrize("is_created", [False, True])
def test_a_shard_whose_statements_come_before_its_first_row_needs_its_create_table(tmp_path: Path, *, is_created: bool):
    """Without it nobody knows that its column is one that the others still call otherwise: they wait, and are told what to do."""
    made = Shards(tmp_path, DELTA)
    create = [made.sql(TWO, "CREATE TABLE orders (id int PRIMARY KEY, a int)")] if is_created else []
    new, rename = "ALTER TABLE orders ADD COLUMN b int", "ALTER TABLE orders RENAME COLUMN b TO c"
    made.run(*create, made.row(ONE, id="1", a="1"), made.sql(ONE, new), made.row(ONE, id="2", a="1", b="1"))
    made.run(made.sql(TWO, new), made.sql(TWO, rename), made.row(TWO, id="1", a="1", c="2"))
    said = made.run(made.sql(ONE, rename), made.row(ONE, id="3", a="1", c="3"))
    if is_created:
        assert (said, made.names) == ([], ["a", "c", "id"])
        assert made.rows("id", "c") == [(ONE, 1, None), (ONE, 2, 1), (ONE, 3, 3), (TWO, 1, 2)]
        return
    assert len(said) == 1
    assert "which is the name of another column in other shards" in said[0]
    assert "start again, with a CREATE TABLE before the first statement of each shard" in said[0]
    assert made.run(made.row(TWO, id="2", a="1", c="4"), made.row(ONE, id="4", a="1", c="5")) == said
    assert made.rows("id", "b", "c") == [(ONE, 1, None, None), (ONE, 2, 1, None), (TWO, 1, None, 2), (TWO, 2, None, 4)]


@pytest.mark.slow
def test_a_shard_that_comes_late_moves_no_column_of_others(tmp_path: Path):
    """It may have the column that they have dropped, or that which they have added."""
    made = Shards(tmp_path, DELTA)
    made.run(made.row(ONE, id="1", a="1"), made.row(TWO, id="1", a="2"))
    made.run(*(made.sql(one, DROP) for one in (ONE, TWO)), *(made.row(one, id="2") for one in (ONE, TWO)))
    made.run(*(made.sql(one, ADD) for one in (ONE, TWO)), *(made.row(one, id="3", a="3") for one in (ONE, TWO)))
    (said,) = made.run(made.row(THREE, id="1", a="4"))
    assert "column 'a' may be 'a' or 'a (dropped 1)' of other shards" in said
    made.run(made.sql(THREE, DROP), made.row(THREE, id="2"))
    assert made.run(made.sql(THREE, ADD), made.row(THREE, id="3", a="5")) == []
    assert made.run(made.row(ONE, id="4", a="6"), made.row(TWO, id="4", a="7")) == []
    held = [(ONE, 1, None), (ONE, 2, None), (ONE, 3, 3), (ONE, 4, 6), (TWO, 1, None), (TWO, 2, None), (TWO, 3, 3)]
    assert made.rows("id", "a") == [*held, (TWO, 4, 7), (THREE, 1, None), (THREE, 2, None), (THREE, 3, 5)]
    assert made.names == ["a", "a (dropped 1)", "id"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("statements", [(DROP, ADD), ("ALTER TABLE orders MODIFY a varchar(9)",)])
def test_a_statement_of_one_shard_alone_takes_no_column_from_others(
    tmp_path: Path, kind: str, statements: Sequence[str]
):
    """The rows of the shard wait until the others follow; they have their column, whatever they do else."""
    made, type = Shards(tmp_path, kind), "int" if len(statements) == 2 else "varchar(9)"
    made.run(made.row(ONE, id="1", a="1"), made.row(TWO, id="1", a="2"))
    made.types["a"] = type
    (said,) = made.run(*(made.sql(TWO, one) for one in statements), made.row(TWO, id="2", a="3"))
    assert said.startswith(f"{LAKE} ({TWO}): ")
    assert "and other shards still have the one before: let all shards follow the same statements" in said
    made.types["a"] = "int"
    steps = made.run(made.sql(ONE, "ALTER TABLE orders ADD z int"), made.row(ONE, id="2", a="4", z="5"))
    assert steps == [f"{LAKE} ({ONE}): column 'z' is added", said]
    assert made.rows("id", "a", "z") == [(ONE, 1, 1, None), (ONE, 2, 4, 5), (TWO, 1, 2, None)]
    made.types["a"] = type
    made.run(*(made.sql(ONE, one) for one in statements), made.row(ONE, id="3", a="6", z="7"))
    made.run(made.row(TWO, id="3", a="8"))
    # A column of another type has what was in the one before.
    one, two = [(1, None), (2, None), (3, 6)], [(1, None), (2, 3), (3, 8)]
    if type != "int":
        one, two = [(1, "1"), (2, "4"), (3, "6")], [(1, "2"), (2, "3"), (3, "8")]
    assert made.rows("id", "a") == [(shard, *row) for shard, rows in ((ONE, one), (TWO, two)) for row in rows]
    (aside,) = [name for name in made.names if name.startswith("a (")]
    assert [row for row in made.rows("id", aside) if row[2] is not None] == [(ONE, 1, 1), (ONE, 2, 4), (TWO, 1, 2)]


@pytest.mark.slow
def test_a_column_that_is_called_as_one_put_aside_is_refused(tmp_path: Path):
    """It could be taken for one."""
    made = Shards(tmp_path, DELTA)
    made.run(made.row(ONE, id="1", a="1"))
    (said,) = made.run(made.row(TWO, id="1", **{"p (added 2)": "2"}), made.row(ONE, id="2", a="2"))
    assert "column 'p (added 2)' is called as columns of shards are that were put aside: let all" in said
    assert made.rows("id", "a") == [(ONE, 1, 1), (ONE, 2, 2)]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_rows_that_lack_columns_are_put_together_within_their_shard(tmp_path: Path, kind: str):
    """Also with texts that their type cannot carry, under the names of the shard."""
    made = Shards(tmp_path, kind)
    made.run(made.row(ONE, id="1", a="1", b="2"), made.row(TWO, id="1", a="x", b="4"))
    made.run(made.sql(ONE, "ALTER TABLE orders RENAME COLUMN a TO d"), made.row(ONE, id="2", d="5", b="6"))
    partial = made.row(TWO, "UPDATE", id="1", b="7")
    made.run(partial, made.row(ONE, "UPDATE", id="1", d="8"))
    assert made.rows("id", "d", "b", UNPARSED) == [
        (ONE, 1, 8, 2, None),
        (ONE, 2, 5, 6, None),
        (TWO, 1, None, 7, [("a", "x")]),
    ]
    made.run(made.sql(TWO, "TRUNCATE TABLE orders"), made.row(TWO, "UPDATE", id="1", a="9"))
    assert made.rows("id", "d", "b") == [(ONE, 1, 8, 2), (ONE, 2, 5, 6), (TWO, 1, 9, None)]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", [SOFT, HISTORY])
def test_versions_of_rows_are_those_of_their_shard(tmp_path: Path, kind: str, form: str):
    """A delete or a TRUNCATE ends what its own shard has."""
    made = Shards(tmp_path, kind, {"form": form})
    made.run(made.row(ONE, id="1", a="1"), made.row(TWO, id="1", a="2"))
    made.run(made.sql(ONE, "ALTER TABLE orders RENAME COLUMN a TO b"), made.row(ONE, "UPDATE", id="1", b="3"))
    made.run(made.row(TWO, "DELETE", id="1", a="2"), made.row(TWO, id="2", a="4"))
    made.run(made.sql(ONE, "TRUNCATE TABLE orders"), made.row(ONE, id="3", b="5"))
    ended = [(shard, id, b, end is not None) for shard, id, b, end in made.rows("id", "b", "_cdc_end")]
    older = [(ONE, 1, 1, True)] if form == HISTORY else []
    assert ended == [*older, (ONE, 1, 3, True), (ONE, 3, 5, False), (TWO, 1, 2, True), (TWO, 2, 4, False)]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", ["_alter", "merge", "rewrite", "append"])
def test_a_batch_that_is_cut_off_between_shards_is_written_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, method: str
):
    """Before or behind any step of the second one; the first one is written then."""
    made = Shards(tmp_path, kind)
    made.run(made.row(ONE, id="1", a="1"), made.row(TWO, id="1", a="2"))
    sql, own = "ALTER TABLE orders RENAME COLUMN a TO b, ADD c int NOT NULL DEFAULT 7", getattr(ShardTable, method)
    made.job.send(
        *(made.sql(one, sql) for one in (ONE, TWO)), *(made.row(one, id="2", b="3", c="4") for one in (ONE, TWO))
    )
    for is_behind in (False, True):

        def cut_off(self: Any, *given: Any, is_behind: bool = is_behind) -> None:
            is_second = self._lake.shard == TWO
            if is_behind or not is_second:
                own(self, *given)
            if is_second:
                raise OSError("cut off")

        monkeypatch.setattr(ShardTable, method, cut_off)
        with pytest.raises(JobError):
            made.run()
    monkeypatch.undo()
    made.run()
    assert made.rows("id", "b", "c") == [(ONE, 1, 1, 7), (ONE, 2, 3, 4), (TWO, 1, 2, 7), (TWO, 2, 3, 4)]
    assert len(made.rows("id", suffix="changes")) == 4
    assert made.names == ["b", "c", "id"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_steps_that_are_commits_of_their_own_are_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
):
    """As on Spark: cut off behind any commit of a statement by which columns exchange their names, and one is new."""
    made = Shards(tmp_path, kind)
    made.run(*(made.row(one, id="0", a="1", b="2") for one in (ONE, TWO)))
    table: Any = NativeDeltaTable if kind == DELTA else NativeIcebergTable
    own, left = table.alter, [0]

    def alter(self: Any, steps: Sequence[Step], properties: Mapping[str, str]) -> None:
        changes = [([], properties)] if properties else []
        for change in (*changes, *(([step], {}) for step in steps)):
            if not left[0]:
                raise OSError("cut off")
            left[0] -= 1
            own(self, *change)

    sql = "ALTER TABLE orders RENAME COLUMN a TO b, RENAME COLUMN b TO a, ADD c{} int"
    wanted = [(ONE, 0, 1, 2), (TWO, 0, 1, 2)]
    for number, left[0] in enumerate((1, 2, 4, 6, 7), start=1):
        first, second = "ba" if number % 2 else "ab"
        given = {"id": str(number), first: "3", second: "4", **{f"c{i}": "5" for i in range(1, number + 1)}}
        made.job.send(
            *(made.sql(one, sql.format(number)) for one in (ONE, TWO)), *(made.row(one, **given) for one in (ONE, TWO))
        )
        wanted += [(one, number, 3, 4) for one in (ONE, TWO)]
        with monkeypatch.context() as patch:
            patch.setattr(type(made.job.native), "is_stepwise", True)
            patch.setattr(table, "alter", alter)
            with pytest.raises(JobError, match="cut off"):
                made.run()
        # Whoever goes on.
        made.run()
        assert made.rows("id", first, second) == sorted(wanted, key=repr), number
        assert made.names == sorted(["id", "a", "b", *(f"c{i}" for i in range(1, number + 1))])
    assert len(made.rows("id", suffix="changes")) == len(wanted)


@pytest.mark.slow
def test_shards_for_all_readers_have_plain_names_and_files_that_are_written_anew(tmp_path: Path):
    """Names that not every reader takes are spelled otherwise, also of columns that are put aside; no feature is needed."""
    made = Shards(tmp_path, DELTA, {"readers": "all"})
    made.run(made.row(ONE, id="1", **{"a b": "1"}), made.row(TWO, id="1", **{"a b": "2"}))
    assert made.names == ["a~20~b", "id"]
    rename = "ALTER TABLE orders RENAME COLUMN `a b` TO `c;d`, ADD `e f` int NOT NULL DEFAULT 7"
    said = made.run(made.sql(ONE, rename), made.row(ONE, id="2", **{"c;d": "3", "e f": "4"}))
    assert [one.rpartition("): ")[2] for one in said] == [
        "column 'a~20~b' is renamed to 'c~3b~d'",
        "column 'e~20~f' is added",
    ]
    # The other lags; its statements change nothing any more, but for the default of its rows.
    made.run(made.row(TWO, "UPDATE", id="1", **{"a b": "5"}))
    assert made.run(made.sql(TWO, rename), made.row(TWO, id="2", **{"c;d": "6", "e f": "8"})) == []
    assert made.rows("id", "c~3b~d", "e~20~f") == [(ONE, 1, 1, 7), (ONE, 2, 3, 4), (TWO, 1, 5, 7), (TWO, 2, 6, 8)]
    # A name passes on to another column once both have left the first one, which is put aside under a plain name.
    again = [f"ALTER TABLE orders {one}" for one in ("DROP `e f`", "ADD `e f` varchar(9)", "MODIFY `c;d` bigint")]
    made.types = {"e f": "varchar(9)", "c;d": "bigint"}
    for shard in (ONE, TWO):
        made.run(*(made.sql(shard, one) for one in again), made.row(shard, id="3", **{"c;d": str(1 << 40), "e f": "x"}))
    made.run(made.row(ONE, id="4", **{"c;d": "1", "e f": "y"}))
    aside = "e~20~f~20~~28~dropped~20~1~29~"
    assert made.names == ["c~3b~d", "e~20~f", aside, "id"]
    assert made.rows("id", "c~3b~d", "e~20~f", aside) == [
        (ONE, 1, 1, None, 7),
        (ONE, 2, 3, None, 4),
        (ONE, 3, 1 << 40, "x", None),
        (ONE, 4, 1, "y", None),
        (TWO, 1, 5, None, 7),
        (TWO, 2, 6, None, 8),
        (TWO, 3, 1 << 40, "x", None),
    ]
    for suffix in ("", "changes"):
        assert "delta.columnMapping.mode" not in (made.job.table(LAKE, suffix).properties() or {})
    # Without the setting, names stay until they change, and shards that come find them.
    made.types = {"f": "varchar(9)", "c;d": "bigint"}
    made.job.lake.pop("readers")
    made.run(
        made.sql(ONE, "ALTER TABLE orders RENAME COLUMN `e f` TO f"), made.row(ONE, id="5", **{"c;d": "1", "f": "z"})
    )
    assert made.names == ["c~3b~d", aside, "f", "id"]
    made.run(made.row(THREE, id="1", **{"c;d": "1", "f": "w"}))
    assert made.names == ["c~3b~d", aside, "f", "id"]
    assert (THREE, 1, 1, "w") in made.rows("id", "c~3b~d", "f")


# Where a process is killed that writes two shards.
_DEATHS = (
    "before a lake table changes",
    "during the merge",
    "behind the merge's commit",
    "between merge and changelog",
    "between two tables",
    local_kills.LAST,
)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", KINDS)
def test_shards_that_are_killed_are_written_once(tmp_path: Path, kind: str):
    """With kill -9, again and again, while they follow statements: each row is there once, under the last names."""
    made = Shards(tmp_path, kind)
    made.run(made.row(ONE, id="1", a0="1"), made.row(TWO, id="1", a0="2"))
    held = [(ONE, 1, 1), (TWO, 1, 2)]
    for number, point in enumerate(_DEATHS, start=1):
        sql, name = f"ALTER TABLE orders RENAME COLUMN a{number - 1} TO a{number}", f"a{number}"
        shards = (ONE, TWO) if number % 2 else (TWO, ONE)
        rows = [(shard, number + 1, 10 * number + place) for place, shard in enumerate(shards)]
        statements = [made.sql(shard, sql) for shard in shards]
        made.job.send(*statements, *(made.row(shard, id=str(id), **{name: str(a)}) for shard, id, a in rows))
        made.kill(point)
        held += rows
    made.run()
    assert made.rows("id", name) == sorted(held)
    assert sorted(made.rows("id", name, suffix="changes")) == sorted(held)
    assert made.names == [name, "id"]


@pytest.mark.slow
def test_a_reset_empties_every_shard(tmp_path: Path):
    """A pause holds all of them."""
    made = Shards(tmp_path, DELTA)
    made.run(made.row(ONE, id="1", a="1"), made.row(TWO, id="1", a="2"))
    pause(tmp_path / "state", [LAKE], is_paused=True)
    made.run(made.row(ONE, id="2", a="3"), made.row(TWO, id="2", a="4"))
    assert len(made.rows("id")) == 2
    pause(tmp_path / "state", [LAKE], is_paused=False)
    made.run()
    assert len(made.rows("id")) == 4
    reset(tmp_path / "state", [LAKE])
    made.run(made.row(TWO, id="3", a="5"))
    assert made.rows("id") == [(TWO, 3)]
    reset(tmp_path / "state", [LAKE], is_kept=True)
    made.run(made.row(ONE, id="4", a="6"))
    made.run(made.row(ONE, id="5", a="7"))
    assert made.rows("id") == [(ONE, 4), (ONE, 5), (TWO, 3)]
    finish_reset(tmp_path / "state", [LAKE])
    made.run()
    assert made.rows("id") == [(ONE, 4), (ONE, 5)]


@pytest.mark.slow
def test_a_shard_keeps_its_place_whatever_it_is_renamed_to(tmp_path: Path):
    """A table that takes its name in the source is another shard."""
    made = Shards(tmp_path, DELTA)
    made.run(made.row(ONE, id="1", a="1"))
    made.run(
        made.sql(ONE, "RENAME TABLE orders TO old"), made.row(ONE, id="1", a="2"), made.row("shop_1.old", id="2", a="3")
    )
    assert made.rows("id", "a") == [(ONE, 1, 1), (ONE, 2, 3), (f"{ONE}~2", 1, 2)]
    # They stay shards without the route, too.
    made.run(made.row(ONE, "UPDATE", id="1", a="4"), route=[])
    assert made.rows("id", "a") == [(ONE, 1, 1), (ONE, 2, 3), (f"{ONE}~2", 1, 4)]


@pytest.mark.slow
def test_a_table_that_is_there_is_not_written_by_shards(tmp_path: Path):
    """They get another one, and of another form a shard waits."""
    made = Shards(tmp_path, DELTA, more={"table": [{"match": TWO, "form": SOFT}]})
    made.run(made.row(LAKE, id="1", a="1"))
    (said,) = made.run(made.row(ONE, id="1", a="2"), made.row(TWO, id="1", a="3"))
    assert "was begun with another form: let all shards have the same" in said
    assert made.job.rows(LAKE, "id", "a") == [(1, 1)]
    assert made.job.rows(f"{LAKE}~2", SHARD, "id", "a") == [(ONE, 1, 2)]


@pytest.mark.parametrize(
    ("lake", "said"),
    [
        ({"behavior": "evolve"}, 'none of which may take a column from others: behavior in [lake] is "lenient"'),
        ({"adopt": True}, "and lake tables of other pipelines are not adopted as tables of shards"),
    ],
)
def test_where_there_can_be_no_shards_they_are_refused_before_anything_starts(
    tmp_path: Path, lake: dict[str, Any], said: str
):
    """With what to say instead."""
    made = Shards(tmp_path, DELTA, lake)
    with pytest.raises(FileError) as raised:
        made.job.pipeline()
    assert "[[route]] to 'shop.orders' has shards, " in str(raised.value)
    assert said in str(raised.value)


@pytest.mark.slow
def test_each_shard_has_subjects_of_its_own_in_a_registry(tmp_path: Path):
    """Under the name that it has in the lake table: one that is renamed keeps its own, and another may get it."""
    registry = {"url": f"file:{tmp_path / 'schemas'}", "topic": "cdc.{name}", "compatibility": "FULL"}
    made = Shards(tmp_path, DELTA, more={"registry": registry})
    made.types["b"] = "text"
    said = made.run(made.row(ONE, id="1", a="1"), made.row(TWO, id="1", b="x"), made.row("shop.others", id="1"))
    said += made.run(
        made.sql(ONE, "ALTER TABLE orders ADD b text"),
        made.row(ONE, id="2", a="1", b="x"),
        made.sql(ONE, "RENAME TABLE orders TO old"),
        made.row(ONE, id="3", b="x"),
    )
    published = re.findall(r": version ([0-9]+) of subject cdc\.(\S+)-(key|value) is", "\n".join(said))
    first = ("shop.others", "shop_1.orders", "shop_1.orders_x7e_2", "shop_2.orders")
    assert {one for one in published if one[2] == "key"} == {("1", name, "key") for name in first}
    assert sorted(one[:2] for one in published if one[2] == "value") == sorted(
        [*(("1", name) for name in first), ("2", "shop_1.orders")]
    )
    assert made.rows("id") == [(ONE, 1), (ONE, 2), (f"{ONE}~2", 3), (TWO, 1)]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "more"), [*((kind, {}) for kind in KINDS), (DELTA, {"readers": "all"})])
@pytest.mark.parametrize("seed", range(3))
def test_the_lake_table_has_the_rows_of_all_shards_however_they_lag(
    tmp_path: Path, kind: str, more: dict[str, Any], seed: int
):
    """Renames, a name that comes again, widenings, defaults, TRUNCATE, deletes, and messages that are sent again."""
    check_shards(Shards(tmp_path, kind, {"changelog": seed % 2 == 0, **more}), seed)

"""Shard schemas: rows of several tables of the source in Avro files, under one schema that goes with the statements of all."""

from __future__ import annotations

import itertools
import json
import random
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastavro
import pytest

from cdcavro.avro.compatibility import verdict
from cdcavro.avro.schema import parse_schema
from cdcavro.errors import FileError, JobError
from cdcavro.lake.sql_statements import SHARD
from cdcavro.sync.outputs import shard_schemas
from cdcavro.sync.outputs.avro_folder import AvroFolder
from support import local_kills
from support.shard_runs import Statements
from support.shard_streams import LAKE, ONE, THREE, TWO, FileShards, check_shards


def test_rows_of_all_shards_are_in_one_schema(tmp_path: Path):
    """Equal keys of two are two rows; a statement is followed once, and a shard that lags loses nothing."""
    made = FileShards(tmp_path)
    assert made.run(made.row(ONE, id="1", a="1"), made.row(TWO, id="1", a="2"), made.row(TWO, id="2", a="3")) == []
    assert made.rows("id", "a") == [(ONE, 1, 1), (TWO, 1, 2), (TWO, 2, 3)]
    made.types["b"] = "bigint"
    sql = "ALTER TABLE orders CHANGE a b bigint, ADD c int NOT NULL DEFAULT 7"
    steps = made.run(
        made.sql(ONE, sql),
        made.row(ONE, id="2", b="5000000000", c="1"),
        made.row(TWO, "UPDATE", id="1", a="4"),
        made.row(TWO, "DELETE", id="2", a="3"),
    )
    assert steps == [
        f"{LAKE} ({ONE}): column 'a' renamed to 'b'",
        f"{LAKE} ({ONE}): column 'b' reads int as long",
        f"{LAKE} ({ONE}): column 'c' added: null in older rows",
    ]
    held = [(ONE, 1, 1, None), (ONE, 2, 5_000_000_000, 1), (TWO, 1, 4, None)]
    assert made.rows("id", "b", "c") == held
    assert made.run(made.sql(TWO, sql), made.row(TWO, id="3", b="6000000000", c="2")) == []
    assert made.rows("id", "b", "c") == [*held, (TWO, 3, 6_000_000_000, 2)]
    files = [str(path.relative_to(made.data)) for path in sorted(made.data.rglob("*.avro"))]
    assert files == [
        f"shop/orders/batch={batch}/table={table}/v{version}-00000.avro"
        for batch, table, version in ((0, 0, 1), (0, 1, 1), (1, 0, 2), (1, 1, 2), (2, 1, 2))
    ]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_files_have_the_rows_of_all_shards_however_they_lag(tmp_path: Path, seed: int):
    """Renames, a name that comes again, widenings, TRUNCATE, deletes, and messages that are sent again."""
    check_shards(FileShards(tmp_path), seed)


class _Values:
    """Rows of shards whose values say which column they are of, and what is in the files in the end."""

    def __init__(self, made: FileShards, draw: random.Random, statements: Statements) -> None:
        self.made, self.statements = made, statements
        self._draw = draw
        self.done = dict.fromkeys((ONE, TWO, THREE), 0)
        # By shards and the ids of rows, the numbers of columns.
        self.sent: dict[tuple[str, int], set[int]] = {}

    def row(self, shard: str) -> bytes:
        """Return a row of a shard, as far as it has come."""
        columns, id = self.statements.columns[self.done[shard]], len(self.sent)
        self.made.types = {name: type for name, (_, type) in columns.items()}
        stated = {name: str(number) for name, (number, _) in columns.items() if name != "id"}
        self.sent[shard, id] = {number for name, (number, _) in columns.items() if name != "id"}
        return self.made.row(shard, id=str(id), **stated)

    def statement(self, shard: str) -> list[bytes]:
        """Return the next statement of a shard; nothing behind the last one."""
        if self.done[shard] == self.statements.last:
            return []
        self.done[shard] += 1
        return [self.made.sql(shard, f"ALTER TABLE orders {self.statements.texts[self.done[shard] - 1]}")]

    def batch(self) -> list[bytes]:
        """Return messages of shards, each with rows between its statements by chance."""
        found: list[bytes] = []
        for shard in self._draw.sample([*self.done], 3):
            for _ in range(self._draw.choice((0, 0, 1, 2, 3))):
                found += [self.row(shard)] if self._draw.random() < 0.5 else []
                found += self.statement(shard)
            found += [self.row(shard)] if self._draw.random() < 0.5 else []
        return found

    def check(self) -> None:
        """Check that no value is lost, and that each column of the files has values of one column."""
        found: dict[tuple[str, int], set[int]] = {}
        held = defaultdict[str, set[int]](set)
        for change in self.made.changes():
            row = change["after"]
            fields = {name: field for name, field in self.made.fields.items() if name not in (SHARD, "id")}
            values = {name: int(row[field]) for name, field in fields.items() if row[field] is not None}
            found[row[SHARD], row["id"]] = {*values.values()}
            assert not row["unparsed"]
            for name, value in values.items():
                held[name].add(value)
        assert found == self.sent
        assert [one for one in held.items() if len(one[1]) > 1] == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_no_column_is_mixed_up_and_no_value_lost_whatever_statements_do(tmp_path: Path, seed: int):
    """Columns that are swapped, dropped, added again and get other types, by shards that are at different statements."""
    draw = random.Random(seed)
    values = _Values(FileShards(tmp_path), draw, Statements(draw, 5))
    values.made.run(*map(values.row, values.done))
    while min(values.done.values()) < values.statements.last:
        values.made.run(*values.batch())
    for _ in range(3):
        said = values.made.run(*(values.row(shard) for shard in values.done))
    assert not [one for one in said if "other shards" in one]
    values.check()


def _versions(made: FileShards) -> list[str]:
    """Return the schemas of the files by their versions."""
    found = {}
    for path in made.data.rglob("*.avro"):
        with path.open("rb") as stream:
            found[int(path.name[1:].partition("-")[0])] = fastavro.reader(stream).metadata["avro.schema"]
    return [text for _, text in sorted(found.items())]


@pytest.mark.slow
def test_each_version_reads_those_before_it(tmp_path: Path):
    """So a registry that asks for backward compatibility takes all of them under one subject."""
    registry = {"url": f"file:{tmp_path / 'schemas'}", "topic": "cdc.{name}", "compatibility": "BACKWARD_TRANSITIVE"}
    made = FileShards(tmp_path, more={"registry": registry})
    said = made.run(made.row(ONE, id="1", a="1"), made.row(TWO, id="1", a="2"))
    sql = "ALTER TABLE orders RENAME COLUMN a TO b, ADD a int NOT NULL DEFAULT 7"
    said += made.run(made.sql(ONE, sql), made.row(ONE, id="2", b="3", a="4"))
    said += made.run(made.sql(TWO, sql), made.row(TWO, id="2", b="5", a="6"))
    made.types["b"] = "bigint"
    said += made.run(made.sql(TWO, "ALTER TABLE orders MODIFY b bigint"), made.row(TWO, id="3", b=str(1 << 40), a="7"))
    versions = [parse_schema(text) for text in _versions(made)]
    assert [verdict(new, old).name for old, new in itertools.pairwise(versions)] == ["full", "backward"]
    published = [one for one in said if "subject cdc.shop.orders-value" in one]
    assert [one.partition("): ")[2][:9] for one in published] == ["version 1", "version 2", "version 3"]
    assert {one.rpartition("subject ")[2].partition(" ")[0] for one in said if "subject" in one} == {
        "cdc.shop.orders-value",
        "cdc.shop.orders-key",
    }
    assert made.rows("id", "b", "a") == [
        (ONE, 1, 1, None),
        (ONE, 2, 3, 4),
        (TWO, 1, 2, None),
        (TWO, 2, 5, 6),
        (TWO, 3, 1 << 40, 7),
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("first", "second"), [("int", "varchar(9)"), ("decimal(9,2)", "decimal(9,3)")])
def test_what_no_type_holds_waits_until_shards_mean_the_same(tmp_path: Path, first: str, second: str):
    """The others are written; nothing is lost, and the reason names the shard."""
    made = FileShards(tmp_path, types={"a": first})
    made.run(made.row(ONE, id="1", a="1"))
    made.types["a"] = second
    (said,) = made.run(made.row(TWO, id="1", a="1"), made.row(TWO, id="2", a=None))
    assert said.startswith(f"{LAKE} ({TWO}): ")
    assert "in other shards: neither type holds the values of the other" in said
    made.types = {"a": first, "b": second}
    assert len(made.run(made.row(ONE, id="2", a="2"))) == 1
    assert made.rows("id") == [(ONE, 1), (ONE, 2)]
    (said,) = made.run(made.sql(TWO, f"ALTER TABLE orders CHANGE a b {second}"), made.row(TWO, id="3", b=None))
    assert said == f"{LAKE} ({TWO}): column 'b' added: null in older rows"
    assert made.rows("id") == [(ONE, 1), (ONE, 2), (TWO, 1), (TWO, 2), (TWO, 3)]
    (row,) = [row for row in made.rows("id", "b", "a") if row[2] is not None]
    assert row[:2] == (TWO, 1)
    assert row[3] is None


@pytest.mark.slow
def test_what_one_shard_brings_lets_another_one_go_on_in_the_same_batch(tmp_path: Path):
    """Whichever comes first, so that a batch that is run again writes no more than it did before."""
    made = FileShards(tmp_path)
    made.run(made.row(ONE, id="1"), made.row(TWO, id="1", x="1"))
    other = [made.sql(TWO, "ALTER TABLE orders RENAME COLUMN x TO y"), made.row(TWO, id="2", y="2")]
    made.types = {"x": "varchar(9)"}
    said = made.run(made.sql(ONE, "ALTER TABLE orders ADD x varchar(9)"), made.row(ONE, id="2", x="3"), *other)
    assert [one.partition("): ")[2] for one in said] == [
        "column 'x' added: null in older rows",
        "column 'x' renamed to 'y'",
    ]
    assert made.rows("id", "x", "y") == [
        (ONE, 1, None, None),
        (ONE, 2, "3", None),
        (TWO, 1, None, 1),
        (TWO, 2, None, 2),
    ]


@pytest.mark.slow
def test_a_shard_that_waits_leaves_the_schema_as_it_was(tmp_path: Path):
    """Also what an earlier one of its versions would have brought."""
    made = FileShards(tmp_path)
    made.run(made.row(ONE, id="1", a="1"), made.row(TWO, id="1", a="1"))
    early = [made.sql(TWO, "ALTER TABLE orders ADD c int"), made.row(TWO, id="2", a="2", c="3")]
    made.types = {"a": "varchar(9)"}
    late = [made.sql(TWO, "ALTER TABLE orders MODIFY a varchar(9)"), made.row(TWO, id="3", a="x", c="4")]
    made.types = {}
    *_, said = made.run(
        *early, *late, made.sql(ONE, "ALTER TABLE orders ADD z int"), made.row(ONE, id="2", a="5", z="6")
    )
    assert said.startswith(f"{LAKE} ({TWO}): ")
    assert "other shards" in said
    assert made.rows("id") == [(ONE, 1), (ONE, 2), (TWO, 1)]
    assert made.names == ["a", "id", "z"]


@pytest.mark.slow
def test_a_time_is_not_written_as_a_number(tmp_path: Path):
    """Though lakes have one type for both."""
    made = FileShards(tmp_path, types={"a": "bigint"})
    made.run(made.row(ONE, id="1", a="1"))
    made.types["a"] = "time"
    (said,) = made.run(made.row(TWO, id="1", a="01:00:00"))
    assert "column 'a' is time-micros, and long in other shards: neither type holds the values of the other" in said


@pytest.mark.slow
def test_a_column_that_was_dropped_while_its_rows_waited_is_not_lost(tmp_path: Path):
    """Its values are in a column of their own, of each shard another one."""
    made = FileShards(tmp_path)
    made.run(made.row(ONE, id="1", a="1"))
    for number, shard in enumerate((TWO, THREE), 1):
        made.types = {"a": "varchar(9)", "b": "int"}
        (said,) = made.run(made.row(shard, id="1", a="x"), made.row(shard, id="2", a="y"))
        assert "column 'a' is string, and int in other shards" in said
        made.types = {}
        said = made.run(made.sql(shard, "ALTER TABLE orders DROP a, ADD b int"), made.row(shard, id="3", b="2"))[-1]
        assert said == f"{LAKE} ({shard}): column 'a (late {number})' added: null in older rows"
    assert made.rows("id", "a", "b", "a (late 1)", "a (late 2)") == [
        (ONE, 1, 1, None, None, None),
        *((TWO, id, None, b, a, None) for id, b, a in ((1, None, "x"), (2, None, "y"), (3, 2, None))),
        *((THREE, id, None, b, None, a) for id, b, a in ((1, None, "x"), (2, None, "y"), (3, 2, None))),
    ]
    # They stay where they are.
    made.run(made.sql(TWO, "ALTER TABLE orders RENAME COLUMN b TO c"), made.row(TWO, id="4", c="5"))
    assert [row[1:] for row in made.rows("id", "c", "a (late 1)") if row[0] == TWO] == [
        (1, None, "x"),
        (2, None, "y"),
        (3, 2, None),
        (4, 5, None),
    ]


@pytest.mark.slow
def test_keys_that_change_are_told_apart(tmp_path: Path):
    """The key of the schema has all columns that keys of shards had."""
    registry = {"url": f"file:{tmp_path / 'schemas'}", "topic": "{name}"}
    made = FileShards(tmp_path, more={"registry": registry})
    made.run(made.row(ONE, id="1", a="1"))
    sql = "ALTER TABLE orders DROP PRIMARY KEY, ADD PRIMARY KEY (id, a)"
    made.run(made.sql(ONE, sql), made.row(ONE, id="2", a="2"), made.row(TWO, id="2", a="3"))
    (state,) = json.loads((tmp_path / "state" / shard_schemas.SHARDS).read_bytes())
    assert state["row"]["cdc"]["key"] == [SHARD, "id", "a"]
    assert made.rows("id", "a") == [(ONE, 1, 1), (ONE, 2, 2), (TWO, 2, 3)]


@pytest.mark.slow
@pytest.mark.parametrize("is_behind", [False, True])
@pytest.mark.parametrize("calls", [1, 2, 3])
def test_a_batch_that_is_cut_off_is_written_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, calls: int, is_behind: bool
):
    """Before or behind the state has the schema, and between the files of shards: the files are the same as at once."""
    found = []
    for folder, is_cut in ((tmp_path / "cut", True), (tmp_path / "whole", False)):
        made = FileShards(folder)
        made.run(made.row(ONE, id="1", a="1"), made.row(TWO, id="1", a="2"))
        sql = "ALTER TABLE orders RENAME COLUMN a TO b, ADD c int"
        for number in range(3):
            messages = [made.row(one, id=str(number + 2), b="3", c="4") for one in (ONE, TWO)]
            made.job.send(*([made.sql(ONE, sql), made.sql(TWO, sql)] if not number else []), *messages)
        if is_cut:
            counter = itertools.count(1)
            targets: list[tuple[Any, str]] = [(shard_schemas, "replace_file"), (AvroFolder, "replace")]
            with monkeypatch.context() as patch:
                for target, name in targets:
                    own = getattr(target, name)

                    def cut_off(*given: Any, own: Any = own, counter: Iterator[int] = counter) -> Any:
                        is_last = next(counter) == calls
                        if is_last and not is_behind:
                            raise OSError("cut off")
                        own(*given)
                        if is_last:
                            raise OSError("cut off")

                    patch.setattr(target, name, cut_off)
                with pytest.raises((JobError, OSError)):
                    made.run()
        made.run()
        found.append({path.relative_to(made.data): made for path in made.data.rglob("*.avro")})
        rows = [
            (one, id, 1 if one == ONE else 2, None) if id == 1 else (one, id, 3, 4)
            for one in (ONE, TWO)
            for id in (1, 2, 3, 4)
        ]
        assert made.rows("id", "b", "c") == rows
        assert len(made.changes()) == 8
    assert found[0].keys() == found[1].keys()


def test_a_state_that_is_none_is_refused(tmp_path: Path):
    """With the name of its file."""
    made = FileShards(tmp_path)
    made.run(made.row(ONE, id="1", a="1"))
    (tmp_path / "state" / shard_schemas.SHARDS).write_text("[{}]")
    with pytest.raises(FileError, match=r"shards\.json"):
        made.run(made.row(ONE, id="2", a="1"))


@pytest.mark.slow
def test_plain_files_have_the_shard_in_a_column(tmp_path: Path):
    """And in that of the row before a change."""
    made = FileShards(tmp_path)
    made.job.more["avro"] = {"folder": str(made.data), "plain": True}
    made.run(made.row(ONE, id="1", a="1"), made.row(TWO, "DELETE", id="1", a="2"))
    found = []
    for path in sorted(made.data.rglob("*.avro")):
        with path.open("rb") as stream:
            found += [(one[SHARD], one["_cdc_before__cdc_shard"], one["_cdc_op"]) for one in fastavro.reader(stream)]
    assert found == [(ONE, None, "c"), (None, TWO, "d")]


# Where a process is killed that writes two shards.
_DEATHS = (
    "before a table's files",
    "while a file is written",
    "between two tables",
    local_kills.LAST,
    "before the account",
)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_shards_that_are_killed_are_written_once(tmp_path: Path):
    """With kill -9, again and again, while they follow statements: each change is there once, under the last names."""
    made = FileShards(tmp_path)
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
    assert len(made.changes()) == len(held)
    assert made.names == [name, "id"]

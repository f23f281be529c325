"""Streams of shards, tables of the source in one lake table, and what is in it behind each batch of a pipeline."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import fastavro

from cdcavro.lake.sql_statements import SHARD
from cdcavro.sync.batches import BatchReport
from support import local_kills
from support.local_pipelines import DELTA, ICEBERG, LocalJob, lake_section
from support.messages import canal
from support.places import TESTS

KINDS = (DELTA, ICEBERG)
ONE, TWO, THREE = "shop_1.orders", "shop_2.orders", "shop_3.orders"
LAKE = "shop.orders"
ROUTES = [{"from": "shop_*.orders", "to": "shop.orders", "shards": True}]


@dataclass
class Shards:
    """A pipeline of shards, whose messages are numbered as they are sent; `types` are those of columns that are no int."""

    folder: Path
    kind: str
    lake: dict[str, Any] = field(default_factory=dict)
    more: dict[str, Any] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    count: int = 0
    # The folder of Iceberg's catalog, if it is another one.
    warehouse: str | None = None
    # What rows that there are have in a column that is added with a default.
    default: ClassVar[int | None] = 7

    def __post_init__(self) -> None:
        """Begin with an empty lake."""
        lake = lake_section(self.kind, self.folder, self.warehouse, **{"changelog": True, **self.lake})
        self.job = LocalJob(self.folder, lake, {"route": ROUTES, **self.more})

    def row(self, shard: str, type: str = "INSERT", **values: str | None) -> bytes:
        """Return a message about a row of a shard."""
        return self._message(shard, type, [values], mysqlType={one: self.types.get(one, "int") for one in values})

    def sql(self, shard: str, text: str) -> bytes:
        """Return the message of a statement."""
        type = "TRUNCATE" if text.startswith("TRUNCATE") else "ALTER"
        return self._message(shard, type, [], isDdl=True, sql=text)

    def _message(self, shard: str, type: str, rows: Sequence[dict[str, Any]], **members: Any) -> bytes:
        self.count += 1
        database, _, table = shard.partition(".")
        return canal(type, rows, id=self.count, database=database, table=table, **members)

    def reports(self, **more: Any) -> list[BatchReport]:
        """Run what was sent, and return the reports of the batches."""
        return self.job.run(**more)

    def run(self, *messages: bytes, **more: Any) -> list[str]:
        """Run a batch with messages; return what was done to lake tables, and why rows wait."""
        if messages:
            self.job.send(*messages)
        reports = self.reports(**more)
        waiting = [f"{name}: {reason}" for report in reports for name, reason in report.waiting.items()]
        assert not any(report.rejects for report in reports)
        return [step for report in reports for step in report.steps] + waiting

    @property
    def data(self) -> Path:
        """The folder of what is written."""
        return self.folder / ("lake" if self.kind == DELTA else "wh")

    def kill(self, point: str) -> None:
        """Run what was sent in a process that is killed at a point."""
        said = json.dumps({"sink": self.kind, "lake": str(self.data), "is_plain": False, "calls": 0})
        command = [sys.executable, local_kills.__file__, "--child", str(self.job.config()), point, said]
        path = os.pathsep.join(filter(None, [str(TESTS), os.environ.get("PYTHONPATH")]))
        environment = {**os.environ, "PYTHONPATH": path}
        child = subprocess.run(
            command, check=False, capture_output=True, env=environment, start_new_session=True, timeout=600
        )
        assert child.returncode == -signal.SIGKILL, (point, child.stderr[-2000:])

    def rows(self, *names: str, suffix: str = "") -> list[tuple[Any, ...]]:
        """Return rows of the lake table, each with its shard."""
        return self.job.rows(LAKE, SHARD, *names, suffix=suffix)

    @property
    def names(self) -> list[str]:
        """The columns of the lake table that are none of this project's own."""
        return sorted(one.name for one in self.job.table(LAKE).columns())


@dataclass
class FileShards(Shards):
    """The same with Avro files in place of a lake: rows are those that their changes leave, as any reader has them."""

    kind: str = local_kills.AVRO
    default: ClassVar[int | None] = None

    def __post_init__(self) -> None:
        """Begin with an empty folder."""
        self.job = LocalJob(self.folder, {}, {"avro": {"folder": str(self.data)}, "route": ROUTES, **self.more})

    @property
    def data(self) -> Path:
        """The folder of the files."""
        return self.folder / "out"

    @property
    def newest(self) -> dict[str, Any]:
        """The newest schema of the shards' files."""
        last = max(
            self.data.glob("shop/orders/batch=*/table=*/*.avro"), key=lambda path: int(path.name[1:].partition("-")[0])
        )
        with last.open("rb") as stream:
            return dict(json.loads(fastavro.reader(stream).metadata["avro.schema"]))

    def changes(self) -> list[dict[str, Any]]:
        """Return all changes of the shards under the newest schema, in the order of their messages."""
        found: list[Any] = []
        schema = fastavro.parse_schema(self.newest)
        for path in self.data.glob("shop/orders/batch=*/table=*/*.avro"):
            with path.open("rb") as stream:
                found += fastavro.reader(stream, schema)
        return sorted(found, key=lambda one: one["source"]["position"])

    def rows(self, *names: str, suffix: str = "") -> list[tuple[Any, ...]]:
        """Return the rows that changes leave, each with its shard; with a suffix, each after a change, once."""
        fields, left = self.fields, dict[tuple[str, int], dict[str, Any]]()
        every: dict[str, tuple[Any, ...]] = {}
        for change in self.changes():
            before, after, source = change["before"], change["after"], change["source"]
            if change["op"] == "t":
                own = f"{source['db']}.{source['table']}"
                left = {key: row for key, row in left.items() if key[0] != own}
            for image in filter(None, (before, after)):
                left.pop((image[SHARD], image["id"]), None)
            if after is not None:
                left[after[SHARD], after["id"]] = after
                every[str(source["position"])] = tuple(after[fields[name]] for name in (SHARD, *names))
        made = [tuple(row[fields[name]] for name in (SHARD, *names)) for row in left.values()]
        return sorted(every.values() if suffix else made, key=repr)

    @property
    def fields(self) -> dict[str, str]:
        """The fields of the newest schema by the columns that they are."""
        (row,) = [one["type"][1] for one in self.newest["fields"] if one["name"] == "before"]
        return {one["cdc"]["column"]: one["name"] for one in row["fields"] if "cdc" in one}

    @property
    def names(self) -> list[str]:
        """The columns of the shards' schema."""
        return sorted(self.fields.keys() - {SHARD})


# The statements that all shards follow, one after another: each with what it does to the columns of a shard.
_PROGRAM: tuple[str, ...] = (
    "ADD b int NOT NULL DEFAULT 7",
    "RENAME COLUMN a TO c",
    "MODIFY b bigint NOT NULL DEFAULT 7",
    "ADD a varchar(9)",
    "RENAME COLUMN b TO d",
    "CHANGE c e bigint",
)
# What is called so after each of them, by the order of the columns; `x` is none yet.
_CALLED = ("a", "ab", "cb", "cb", "cba", "cda", "eda")


@dataclass
class _Shard:
    """A shard, how many statements it has followed, and its rows: values by the order of the columns."""

    name: str
    done: int = 0
    rows: dict[int, list[Any]] = field(default_factory=dict)
    # What it is once its next row is written.
    written: int | None = None


def _value(draw: random.Random, shard: _Shard, place: int) -> str:
    """Return a value of a column, too large for an int once it may be."""
    if place == 2:
        return draw.choice("xyz")
    is_wide = shard.done >= (6 if place == 0 else 3)
    return str(draw.randrange(10) + (1 << 40 if is_wide else 0))


class ShardSource:
    """Several shards that follow the same statements at times of their own, and the rows that a server has then."""

    def __init__(self, made: Shards, seed: int, count: int) -> None:
        self.made, self.draw = made, random.Random(seed)
        self.shards = [_Shard(f"shop_{number}.orders") for number in range(count)]

    def next(self) -> bytes:
        """Return the next message of some shard."""
        shard, chance = self.draw.choice(self.shards), self.draw.random()
        if chance < 0.25 and shard.done < len(_PROGRAM):
            text = _PROGRAM[shard.done]
            shard.done += 1
            # A new column has its default in the rows that there are.
            new = {1: [self.made.default], 4: [None]}.get(shard.done, [])
            shard.rows = {id: values + new for id, values in shard.rows.items()}
            return self.made.sql(shard.name, f"ALTER TABLE orders {text}")
        shard.written = shard.done
        if chance < 0.3:
            shard.rows.clear()
            return self.made.sql(shard.name, "TRUNCATE TABLE orders")
        names, id = _CALLED[shard.done], self.draw.randrange(5)
        if id in shard.rows and self.draw.random() < 0.3:
            return self._row(shard, "DELETE", id, shard.rows.pop(id))
        values = [_value(self.draw, shard, place) for place in range(len(names))]
        type = "UPDATE" if id in shard.rows else "INSERT"
        shard.rows[id] = [int(one) if place < 2 else one for place, one in enumerate(values)]
        return self._row(shard, type, id, shard.rows[id])

    def _row(self, shard: _Shard, type: str, id: int, values: list[Any]) -> bytes:
        names = _CALLED[shard.done]
        kinds = ["bigint" if shard.done >= 6 else "int", "bigint" if shard.done >= 3 else "int", "varchar(9)"]
        self.made.types = dict(zip(names, kinds, strict=False))
        stated = {one: None if value is None else str(value) for one, value in zip(names, values, strict=True)}
        return self.made.row(shard.name, type, id=str(id), **stated)

    def wanted(self) -> tuple[str, list[tuple[Any, ...]]]:
        """Return what the columns are called, as the shard says that is furthest, and the rows of all shards."""
        called = _CALLED[max((one.written for one in self.shards if one.written is not None), default=0)]
        rows = [
            (one.name, id, *[*values, None, None][: len(called)])
            for one in self.shards
            for id, values in sorted(one.rows.items())
        ]
        return called, sorted(rows, key=repr)


def _last(shard: _Shard) -> list[Any]:
    shard.rows[9] = [1, 2, "z"][: len(_CALLED[shard.done])]
    shard.written = shard.done
    return shard.rows[9]


def check_shards(made: Shards, seed: int, batches: int = 6) -> None:
    """Check that a lake table has the rows of all shards behind every batch, whatever is sent again, and says each step once."""
    source, draw, steps = ShardSource(made, seed, 3), random.Random(-seed), list[str]()
    for number in range(batches):
        # What a shard calls its columns first is seen: nobody could tell what a later name stands for.
        first = [] if number else [source._row(one, "INSERT", 9, _last(one)) for one in source.shards]
        messages = first + [source.next() for _ in range(draw.randrange(5, 25))]
        # Behind the last statement of a shard there is a row, with which the lake table follows it.
        messages += [source._row(one, "INSERT", 9, _last(one)) for one in source.shards]
        again = messages[draw.randrange(len(messages)) :] if draw.random() < 0.5 else []
        steps += made.run(*messages, *again)
        called, rows = source.wanted()
        assert made.rows("id", *called) == rows, (seed, number)
    done = [step.rpartition("): ")[2] for step in steps]
    assert sorted(done) == sorted(set(done)), seed
    assert not [name for name in made.names if len(name) > 2], seed

"""Shards that follow the same statements, each when it comes to it: a lake table known by its columns, and what each column is.

What a column is, is known here by who added it, without the package: a rename keeps it, an ADD makes another one.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cdcavro.change.model import Column, Source
from cdcavro.errors import SchemaError
from cdcavro.lake.evolution import LENIENT, LakeColumn, steps_to
from cdcavro.lake.lake_columns import wanted_columns
from cdcavro.lake.lakes import DeltaLake
from cdcavro.sync.native.shard_columns import HeldNames, ShardColumn, columns_of, columns_text, follow
from cdcavro.sync.native.shard_histories import Point
from cdcavro.table.ddl.steps import TableName
from cdcavro.table.evolution.evolve import create_table, evolve

DELTA = DeltaLake("lake")
_MYSQL = Source(db_type="mysql")
_TEXT = "varchar(9)"


class Lake:
    """A lake table of shards, as it is known by its columns alone."""

    def __init__(self) -> None:
        self.present: list[LakeColumn] = []
        self.names = HeldNames({}, {})
        self.shards: dict[str, list[ShardColumn]] = {}
        self.versions: dict[str, list[Sequence[LakeColumn]]] = {}
        self.points: dict[str, Point | None] = {}

    def write(
        self,
        shard: str,
        *wanted: LakeColumn,
        earlier: Sequence[Sequence[LakeColumn]] | None = None,
        live: Mapping[str, Sequence[str]] | None = None,
    ) -> list[str]:
        """Write a shard that has these columns, and had those of `earlier` versions; return what was done to the lake table.

        Without `earlier`, they are those that were written before. `live` are the columns that other shards have, by those
        that hold them, without which they have what they had last.
        """
        others = [one for name, columns in self.shards.items() if name != shard for one in columns]
        if live is None:
            live = {one.held: [other.name for other in others if other.held == one.held] for one in others}
        known = columns_of(columns_text(self.shards.get(shard, [])))
        own = [LakeColumn(one.name, one.field, one.type) for one in known]
        steps = steps_to(shard, own, wanted, LENIENT, DELTA.can_widen)
        versions = [*(self.versions.get(shard, ()) if earlier is None else earlier), wanted]
        point = self.points.get(shard)
        shared = follow(shard, self.present, self.names, known, steps, versions, point, live, DELTA.can_widen)
        self.names, self.shards[shard], self.points[shard] = (
            HeldNames.of(shared.names.text),
            shared.columns,
            shared.point,
        )
        self.versions[shard] = versions
        for step in shared.steps:
            held = [one for one in self.present if one.name == step.name]
            self.present = [one for one in self.present if one not in held]
            # The field of a column of the lake never changes.
            field = held[0].field if held else step.column.field
            type = held[0].type if held and step.kind == "rename" else step.column.type
            self.present.append(LakeColumn(step.column.name, field, type))
        return [str(step) for step in shared.steps]

    @property
    def columns(self) -> list[tuple[str, str]]:
        """The names and types of the columns."""
        return sorted((one.name, one.type) for one in self.present)

    def where(self, shard: str) -> dict[str, str]:
        """Return for each column of a shard the name of the lake's column that holds it."""
        called = {one.field: one.name for one in self.present}
        return {one.name: called[one.held] for one in self.shards[shard]}


class Statements:
    """Random statements, and the columns behind each: by their names, which one each is, and its type."""

    def __init__(self, draw: random.Random, rounds: int) -> None:
        self._draw, self._count = draw, 2
        self.texts: list[str] = []
        self.columns: list[dict[str, tuple[int, str]]] = [{"id": (0, "int"), "a": (1, "int"), "b": (2, "int")}]
        self._versions: dict[int, list[list[LakeColumn]]] = {}
        for _ in range(rounds):
            self._add_round()

    @property
    def last(self) -> int:
        """How many statements there are."""
        return len(self.texts)

    def versions(self, start: int) -> list[list[LakeColumn]]:
        """Return the versions of a shard that was created with what there is behind so many statements."""
        if start not in self._versions:
            columns = [Column(name=name, type=type) for name, (_, type) in self.columns[start].items()]
            schemas = [create_table(TableName("d", None, "t"), columns, ["id"], _MYSQL)]
            for text in self.texts[start:]:
                schemas.append(evolve(schemas[-1], f"ALTER TABLE t {text}", source=_MYSQL).schema)
            self._versions[start] = [wanted_columns(schema) for schema in schemas]
        return self._versions[start]

    def _say(self, text: str, **changed: tuple[str, str] | None) -> None:
        """Make a statement: by the new names, the old name and the type of each, without an old one of a new column."""
        before, taken = self.columns[-1], {old for old, _ in filter(None, changed.values())}
        now = {name: one for name, one in before.items() if name not in taken and name not in changed}
        for name, (old, type) in ((name, one) for name, one in changed.items() if one is not None):
            self._count += not old
            now[name] = (before[old][0] if old else self._count, type)
        self.texts.append(text)
        self.columns.append(now)

    def _add_round(self) -> None:
        types = {name: type for name, (_, type) in self.columns[-1].items() if name != "id"}
        free = [name for name in "abc" if name not in types]
        kinds = [
            *(["add"] if free else []),
            *(["drop", "again", "widen", "type"] if types else []),
            *(["rename"] if types and free else []),
            *(["swap", "by a third"] if len(types) > 1 else []),
        ]
        kind, name = self._draw.choice(kinds), self._draw.choice(sorted(types) or ["a"])
        other = self._draw.choice([one for one in sorted(types) if one != name] or ["b"])
        new = self._draw.choice(free or ["c"])
        if kind == "add":
            self._say(f"ADD {new} int", **{new: ("", "int")})
        elif kind == "rename":
            self._say(f"RENAME COLUMN {name} TO {new}", **{new: (name, types[name])})
        elif kind == "swap":
            exchanged = {other: (name, types[name]), name: (other, types[other])}
            self._say(f"RENAME COLUMN {name} TO {other}, RENAME COLUMN {other} TO {name}", **exchanged)
        elif kind == "by a third":
            for old, now, type in (("z", name, other), (name, other, name), (other, "z", other))[::-1]:
                self._say(f"RENAME COLUMN {old} TO {now}", **{now: (old, types[type])})
        elif kind == "widen" and types[name] == "int":
            self._say(f"MODIFY {name} bigint", **{name: (name, "bigint")})
        elif kind == "type" and types[name] != _TEXT:
            self._say(f"MODIFY {name} {_TEXT}", **{name: ("", _TEXT)})
        elif kind in ("drop", "again"):
            self._say(f"DROP {name}", **{name: None})
            if kind == "again":
                self._say(f"ADD {name} int", **{name: ("", "int")})


@dataclass
class _Source:
    """A shard: what it was created with, how many statements it has followed, and how many it had when it was written."""

    name: str
    start: int = 0
    done: int = 0
    written: int | None = None
    has_rows: bool = False


class ShardRun:
    """Shards that follow random statements, several at once, and are written at times of their own.

    * `faults` (list of str): of columns that hold what is not theirs, and of those whose values are in two, or whose name in
      the end is none of theirs.
    * `waits` (int): how often a shard waited.
    * `stuck` (list of str): why shards wait that have followed all statements, as all others have.
    """

    def __init__(self, seed: int, rounds: int, *, late: int = 0, shards: int = 3) -> None:
        self._draw = random.Random(seed)
        self.statements = Statements(self._draw, rounds)
        self.lake = Lake()
        self.sources = [_Source(f"shard {number}") for number in range(shards)]
        self.faults: list[str] = []
        self.waits, self.stuck = 0, list[str]()
        # The newest version of shards, as far as there were rows since the process began.
        self._known: dict[str, int] = {}
        # Which column a column of the lake holds, by its field, and the other way round.
        self._held: dict[str, int] = {}
        self._fields: dict[int, str] = {}
        while min(one.done for one in self.sources if not one.start) < self.statements.last:
            if len(self.sources) < shards + late and self._draw.random() < 0.2:
                self._create()
            self._run(is_last=False)
        for _ in range(6):
            self.stuck = self._run(is_last=True)
        self._check_names()

    def _create(self) -> None:
        """Create a shard with the columns of now, as the lake table knows them by others, and write it."""
        start = self._followed()
        one = _Source(f"shard {len(self.sources)}", start, start, has_rows=True)
        self.sources.append(one)
        self._write(one)

    def _followed(self) -> int:
        """Return how many statements the lake table knows."""
        known = [one.written for one in self.sources if self.lake.points.get(one.name) is not None]
        return max((one for one in known if one is not None), default=0)

    def _live(self, shard: str) -> dict[str, list[str]]:
        """Return what other shards call their columns now, as a pipeline knows it."""
        found: dict[str, list[str]] = {}
        for source in (one for one in self.sources if one.name in self.lake.shards and one.name != shard):
            at = self._known.get(source.name)
            for column in self.lake.shards[source.name]:
                names = [column.name]
                if at is not None:
                    now = self.statements.versions(source.start)[at - source.start]
                    names = [one.name for one in now if one.until is None and column.field in (one.field, *one.aliases)]
                found.setdefault(column.held, []).extend(names)
        return found

    def _run(self, *, is_last: bool) -> list[str]:
        """Let shards follow statements, and write those that have rows; return why some wait."""
        draw = self._draw
        if draw.random() < 0.1:
            self._known.clear()
        draw.shuffle(self.sources)
        front = self._followed()
        for one in self.sources:
            if is_last:
                one.done = self.statements.last
            elif draw.random() < 0.6:
                done = one.done + draw.choice((0, 1, 1, 2, 3, 5))
                # One that was created late is not the first to follow a statement.
                one.done = max(one.done, min(self.statements.last, front if one.start else done, done))
            one.has_rows |= is_last or draw.random() < 0.5
        writing = [one for one in self.sources if one.has_rows]
        self._known |= {one.name: one.done for one in writing}
        return [reason for reason in map(self._write, writing) if reason is not None]

    def _write(self, source: _Source) -> str | None:
        """Write a shard; return why it waits."""
        *earlier, now = self.statements.versions(source.start)[: source.done - source.start + 1]
        try:
            self.lake.write(source.name, *now, earlier=earlier, live=self._live(source.name))
        except SchemaError as error:
            self.waits += 1
            return error.reason
        source.written, source.has_rows = source.done, False
        fields = {one.name: one.held for one in self.lake.shards[source.name]}
        for name, (number, _) in self.statements.columns[source.done].items():
            field = fields[name]
            if self._held.setdefault(field, number) != number:
                self.faults.append(f"{source}: {name} is column {number}, in one of {self._held[field]}")
            if self._fields.setdefault(number, field) != field:
                self.faults.append(f"{source}: {name} is column {number}, in {field} and {self._fields[number]}")
        return None

    def _check_names(self) -> None:
        if not self.stuck:
            called = {one.field: one.name for one in self.lake.present}
            for name, (number, _) in self.statements.columns[-1].items():
                if called[self._fields[number]] != name:
                    self.faults.append(f"{name} is called {called[self._fields[number]]}")

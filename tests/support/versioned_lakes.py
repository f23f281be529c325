"""Lake tables that keep versions of rows, and what the oracle says that they hold behind each batch of shuffled changes."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from cdcavro.change.model import Change, replace
from cdcavro.lake import TypedRow, TypedRows
from cdcavro.lake.lakes import SOFT
from cdcavro.lake.sql_statements import KEY, ORDER
from cdcavro.sync.native.delta_lake import NativeDelta
from cdcavro.sync.native.iceberg_lake import NativeIceberg
from cdcavro.sync.native.native_columns import NativeLake
from cdcavro.sync.native.native_versions import NativeVersions
from cdcavro.table import TableName
from cdcavro.table.tables import Tables
from support.kept_versions import Kept, replayed
from support.keyed_changes import change, changes_by_seed
from support.lake_values import table_of
from support.local_pipelines import DELTA, ICEBERG
from support.shop_state import image
from support.shop_tables import read

NAME = TableName("d", None, "t")


class Lake:
    """A table in a native lake, in one form, and all typed rows that went into it."""

    def __init__(self, folder: Path, form: str, kind: str = DELTA, lake: NativeLake | None = None) -> None:
        self.lake: NativeLake = lake or NativeDelta(str(folder))
        if kind == ICEBERG and lake is None:
            self.lake = NativeIceberg("ice", warehouse=str(folder))
        self.form, self.maker, self.every = form, TypedRows(Tables()), list[TypedRow]()
        # Knows the table from its creation on, as a pipeline does that goes on.
        self.state = NativeVersions(self.lake, NAME, form=form)

    @property
    def versions(self) -> Sequence[Any]:
        """The versions of the table's schema."""
        return self.maker.tables.tables[0].versions

    def typed(self, messages: Sequence[list[Change]]) -> list[TypedRow]:
        """Return the typed rows of messages."""
        batch = self.maker.of_batch(messages)
        assert batch.rejects == []
        return batch.rows

    def merge(self, messages: Sequence[list[Change]], *, is_new: bool = False) -> None:
        """Merge a batch of messages; with `is_new` as a process that knows nothing of the lake table."""
        self.merge_rows(self.typed(messages), is_new=is_new)

    def merge_rows(self, rows: Sequence[TypedRow], *, is_new: bool = False) -> None:
        """Merge typed rows."""
        self.every += rows
        state = NativeVersions(self.lake, NAME, form=self.form) if is_new else self.state
        state.prepare(self.versions)
        state.merge(table_of(rows), self.versions)

    def held(self, suffix: str = "") -> pa.Table:
        """Return all that is in a lake table."""
        table = self.lake.table(NAME, suffix)
        return table.read(table.schema().names)

    def rows(self) -> list[tuple[Any, ...]]:
        """Return the rows of the table: values, orders and times."""
        held = self.held()
        times = {
            one.name: held.column(one.name).cast(pa.int64()) for one in held.schema if pa.types.is_timestamp(one.type)
        }
        names = [one.name for one in self.versions[-1].columns]
        own = ["_cdc_is_deleted", "_cdc_deleted_at"] if self.form == SOFT else ["_cdc_from", "_cdc_to"]
        columns = [times.get(name, held.column(name)).to_pylist() for name in (KEY, ORDER, *own, "_cdc_end", *names)]
        return sorted(zip(*columns, strict=True), key=repr)

    def wanted(self) -> list[tuple[Any, ...]]:
        """Return the rows that the oracle has."""
        names = [one.name for one in self.versions[-1].columns]
        kept = replayed(self.every, lambda row: image(row, self.versions), self.time, names)
        return sorted(
            [
                (key, *self._facts(one), *one.values.values())
                for key, found in kept.items()
                for one in self._kept(found)
            ],
            key=repr,
        )

    def _kept(self, found: Sequence[Kept]) -> Sequence[Kept]:
        return found[-1:] if self.form == SOFT else found

    def _facts(self, one: Kept) -> tuple[Any, ...]:
        if self.form == SOFT:
            return one.last, not one.is_open, one.end, one.end_order
        return one.order, one.begin, one.end, one.end_order

    def time(self, row: TypedRow) -> int | None:
        """Return when a change was made."""
        if not row.payload:
            return None
        writer = self.versions[row.version - 1]
        made: int | None = read(row.payload, writer.envelope, self.versions[-1].envelope)["source"]["ts_us"]
        return made

    def commits(self) -> int:
        """Return how many commits a table of Delta Lake has."""
        return len(list(Path(self.lake.path(NAME), "_delta_log").glob("*.json")))  # type: ignore[attr-defined]


def at(message: list[Change], time: int | None = None) -> list[Change]:
    """Return a message whose time is its number, or another one."""
    number = message[0].position[0] if message[0].position else 0
    return [replace(one, event_time=number * 1_000_000 if time is None else time) for one in message]


def made(op: str, number: int, key: int, absent: str = "") -> list[Change]:
    """Return a message with one change, at the time of its number."""
    return at(change(op, number, key, absent))


def again(message: list[Change], offset: int) -> list[Change]:
    """Return a message as it is delivered once more."""
    return [replace(one, place=replace(one.place, offset=offset)) for one in message if one.place is not None]


def check_shuffle(folder: Path, form: str, kind: str, seed: int, lake: NativeLake | None = None) -> None:
    """Check that changes in any order, cut and repetition make the rows of the oracle, behind each batch."""
    draw = random.Random(seed)
    held = Lake(folder, form, kind, lake)
    # The table is known before: else a TRUNCATE of none may come first.
    held.merge([made("INSERT", 0, 0)])
    changes = [at(one) for one in changes_by_seed(seed, draw.randrange(8, 30))]
    late = made("TRUNCATE", 100, 0)
    changes += [[replace(one, position=(draw.randrange(30),)) for one in late]] if draw.random() < 0.5 else []
    twice = [
        again(one, 1_000 + i) if draw.random() < 0.5 else one for i, one in enumerate(changes) if draw.random() < 0.5
    ]
    messages = [*changes, *twice]
    draw.shuffle(messages)
    while messages:
        size = draw.randrange(1, 25)
        rows = held.typed(messages[:size])
        del messages[:size]
        held.merge_rows(rows, is_new=draw.random() < 0.3)
        if draw.random() < 0.2:
            # As if the batch had been killed before its commit.
            held.merge_rows(rows, is_new=True)
        assert held.rows() == held.wanted(), (form, kind, seed)

"""The shop's messages through the local runner's batches, cut anywhere, and what its lake tables then say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from cdcavro.lake.account import AccountFile
from cdcavro.lake.job_state import JobState
from cdcavro.lake.lakes import HISTORY, SOFT
from cdcavro.lake.sql_statements import (
    ABSENT,
    AGAIN,
    BEFORE,
    END,
    FLOOR,
    KEY,
    OPERATION,
    ORDER,
    UNPARSED,
    VERSION,
)
from cdcavro.lake.typed_rows import TypedRow
from cdcavro.sync.batches import Batches, BatchReport
from cdcavro.sync.local.local_runner import Lane, LocalBatch
from cdcavro.sync.local.local_sinks import sink_of
from cdcavro.sync.outputs.sink_settings import Job
from cdcavro.sync.reading.message_columns import message_batch
from cdcavro.table import TableName
from cdcavro.table.history import Table
from cdcavro.table.tables import Tables
from support.kafka_server import Record
from support.kept_versions import replayed
from support.lake_values import as_in_lake, rows_of, shown
from support.local_pipelines import LocalJob, lake_section, tuples
from support.shop_state import whole

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


class Placed(NamedTuple):
    """A record of Kafka's and its offset."""

    record: Record
    offset: int


def placed(records: Iterable[Record]) -> list[Placed]:
    """Return records with the offsets that a broker gives them."""
    ends: Counter[tuple[str, int]] = Counter()
    found = []
    for one in records:
        found.append(Placed(one, ends[one.topic, one.partition]))
        ends[one.topic, one.partition] += 1
    return found


def lanes_of(records: Sequence[Placed]) -> list[Lane]:
    """Return the lanes of a batch of records."""
    lanes: dict[tuple[str, int], list[Placed]] = {}
    for one in records:
        lanes.setdefault((one.record.topic, one.record.partition), []).append(one)
    return [Lane(len(own), partial(_read, topic, number, own)) for (topic, number), own in sorted(lanes.items())]


def _read(topic: str, partition: int, own: Sequence[Placed], _: Any) -> Iterable[pa.RecordBatch]:
    values = [one.record.value for one in own]
    arrays = {
        "raw": pa.array(values, pa.binary()),
        "length": pa.array([None if one is None else len(one) for one in values], pa.int64()),
        "key": pa.array([one.record.key for one in own], pa.binary()),
        "offset": pa.array([one.offset for one in own], pa.int64()),
    }
    batch = message_batch(len(own), arrays, {"topic": topic, "partition": partition})
    headers = [[{"key": key, "value": value} for key, value in one.record.headers] or None for one in own]
    yield batch.append_column("headers", pa.array(headers, HEADERS)) if any(headers) else batch


_UNKNOWN = object()


def _known(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not _UNKNOWN}


class ShopRun:
    """A pipeline's batches over records, each as the runner hands it over."""

    def __init__(
        self, folder: Path, kind: str, producer: str, tables: Mapping[str, Any] | None = None, **lake: Any
    ) -> None:
        self.folder, self.producer = folder, producer
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "in").mkdir(exist_ok=True)
        self.job = LocalJob(folder, lake_section(kind, folder, changelog=True, **lake), {"format": producer})
        self.job.more["tables"] = {"zone": "UTC", **(tables or {})}
        self.number = 0
        self.reports: list[BatchReport] = []
        self._begin()

    def _begin(self) -> None:
        pipeline = self.job.pipeline()
        state = JobState(self.folder / "state" / "batches")
        writer = sink_of(pipeline.sink).writer(Job("shop", frozenset()), None)
        self.settings = pipeline.settings
        self._batches = Batches(self.settings, state, writer, AccountFile(self.folder / "state"), self.reports.append)

    def batch(self, records: Sequence[Placed], *, is_again: bool = False) -> None:
        """Run a batch; with `is_again` once more in a new process's place, as if it had been killed before its commit."""
        self._batches.run(LocalBatch(lanes_of(records), self.folder / "spill"), self.number)
        if is_again:
            self._begin()
            self._batches.run(LocalBatch(lanes_of(records), self.folder / "spill"), self.number)
        self.number += 1

    def tables(self) -> list[tuple[Table, TableName]]:
        """Return the tables of which rows have come, with their names in the lake."""
        state = JobState(self.folder / "state" / "batches")
        tables = state.resume(self.number, Tables(**self.settings.options)).tables.tables
        names = {number: TableName(*name) for number, *name in state.facts(self.number)["names"]}
        return [(one, names[one.number]) for one in tables if one.number in names]

    def check(self) -> None:
        """Check that each table that there is in the end has the rows of the server."""
        assert [(one.counts["rejected"], one.waiting) for one in self.reports] == [(0, {})] * len(self.reports)
        live = {
            table.schema.table.table: (table, name)
            for table, name in self.tables()
            if not table.is_gone and table.schema.key is not None
        }
        for called, wanted in whole(self.producer).items():
            rows = [as_in_lake(row, live[called][0].schema) for row in wanted.values()] if called in live else []
            there = {column for row in rows for column in row}
            held = self.read(live[called][1]) if called in live else None
            found = (
                []
                if held is None
                else rows_of(held if END not in held.column_names else held.filter(held.column(END).is_null()))
            )
            # Columns that were dropped stay in the lake.
            kept = [{column: value for column, value in row.items() if column in there} for row in found]
            assert shown(kept) == shown(rows), called

    def read(self, name: TableName, suffix: str = "") -> pa.Table:
        """Return all rows of a lake table."""
        table = self.job.native.table(name, suffix)
        return table.read(table.schema().names)

    def open_rows(self, name: str, columns: list[str]) -> list[tuple[Any, ...]]:
        """Return the rows that a table of the database `d` has now, in whatever form, sorted; none without a lake table."""
        table = self.job.native.table(TableName("d", None, name), "")
        if table.properties() is None:
            return []
        rows = table.read(table.schema().names)
        rows = rows if END not in rows.column_names else rows.filter(rows.column(END).is_null())
        return sorted(tuples(rows.select(columns)), key=repr)

    def versions(self, form: str) -> dict[str, tuple[list[Any], list[Any]]]:
        """Return of each table the versions of its rows that the lake has in a form, and those that its changelog makes.

        A version is key, order, order of its end, and values. Of columns that the version of a change did not have, its
        values are left out: rows of a changelog are not filled.
        """
        found = {}
        for table, name in self.tables():
            if table.schema.key is None:
                continue
            wanted = self._replayed(table, name)
            if form == SOFT:
                # The last of each key.
                wanted = [*{one[0]: one for one in sorted(wanted, key=lambda one: one[1])}.values()]
            said = {(key, order): values for key, order, _, values in wanted}
            held = []
            own = [KEY, ORDER, END, *([AGAIN] if form == HISTORY else [])]
            for key, order, end, *again, values in self._values(name, "", own, self._names(table)):
                orders = [order, *(again[0] or () if again else ()), end]
                for first, last in pairwise(orders):
                    had = said.get((key, first), values)
                    held.append((key, first, last, {column: values[column] for column in had}))
            found[f"{table.number} {table.versions[0].table.table}"] = sorted(held, key=repr), sorted(wanted, key=repr)
        return found

    def _names(self, table: Table) -> list[str]:
        return [one.name for one in table.schema.columns]

    def _replayed(self, table: Table, name: TableName) -> list[Any]:
        rows, stated = [], {}
        for version, operation, key, order, absent, _, values in self._changes(table, name, [ABSENT, UNPARSED]):
            if operation != BEFORE:
                rows.append(TypedRow(table.number, version, operation, order, key, b""))
                assert not absent
                # A column that a version does not have is not that of the version of the row before.
                stated[order, key] = dict.fromkeys(self._names(table), _UNKNOWN) | values
        kept = replayed(rows, lambda row: stated[row.order, row.key], lambda _: None, [], is_collapsed=False)
        every = [(key, one) for key, versions in kept.items() for one in versions]
        return [(key, one.order, one.end_order, _known(one.values)) for key, one in every]

    def everything(self) -> dict[str, dict[str, Any]]:
        """Return what the lake says of each table however its stream was cut: rows, floor, deletes and changelog.

        What a lake table is called, and which columns it has that were dropped, depends on when its first row came.
        """
        found: dict[str, dict[str, Any]] = {}
        for table, name in self.tables():
            names = [one.name for one in table.schema.columns]
            floor = (self.job.native.table(name).properties() or {}).get(FLOOR, "")
            deletes: dict[bytes, bytes] = {}
            for key, order in self._values(name, "deletes", [KEY, ORDER]):
                # One below the floor changes nothing.
                if order > bytes.fromhex(floor):
                    deletes[key] = max(order, deletes.get(key, b""))
            rows = self._values(name, "", [KEY, ORDER, UNPARSED], names)
            changes = self._changes(table, name)
            said = {"floor": floor, "rows": rows, "deletes": sorted(deletes.items()), "changes": changes}
            found[f"{table.number} {table.versions[0].table.table}"] = said
        return found

    def _changes(self, table: Table, name: TableName, more: Sequence[str] = (UNPARSED,)) -> list[Any]:
        """Return the changelog: of each row the columns that its version had, as older rows of a changelog are not filled."""
        fields = {one.field: one.name for one in table.schema.columns}
        found: list[Any] = []
        own = [VERSION, OPERATION, KEY, ORDER, *more]
        for *facts, values in self._values(name, "changes", own, [*fields.values()]):
            had = {fields.get(one.field) for one in table.versions[facts[0] - 1].columns}
            found.append((*facts, {column: value for column, value in values.items() if column in had}))
        return found

    def _values(self, name: TableName, suffix: str, own: list[str], names: list[str] | None = None) -> list[Any]:
        """Return rows sorted: the values of this project's columns, and with `names` a dictionary of others."""
        table = self.job.native.table(name, suffix)
        if table.properties() is None:
            return []
        held = set(table.schema().names)
        # A column that was dropped and made again is another one.
        others = [one for one in names or () if one in held]
        read = tuples(table.read([*own, *others]))
        rows = [
            (*row[: len(own)], *([] if names is None else [dict(zip(others, row[len(own) :], strict=True))]))
            for row in read
        ]
        return sorted(rows, key=repr)

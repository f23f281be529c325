"""Table rows of batches, which are written to their tables, or wait in files for a later batch or a mended table."""

from __future__ import annotations

import json
import shutil
from bisect import bisect_left
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime  # noqa: TC003  msgspec looks for it
from typing import TYPE_CHECKING, Any, Final

import msgspec

from cdcavro.change.order_value import reset_order
from cdcavro.errors import CdcAvroError, FileError, JobError, plain
from cdcavro.lake.account import LakeMark, label_of, lacking_sentence, lake_key, note_mark, table_of
from cdcavro.lake.job_state import replace_file
from cdcavro.lake.lakes import Attempt
from cdcavro.lake.merge import UNFOUND
from cdcavro.lake.typed_rows import TRUNCATE, RowFacts, facts_of_summary
from cdcavro.sync.outputs.completeness import instant_text
from cdcavro.sync.outputs.reject_places import batch_of
from cdcavro.sync.outputs.writer import BatchRows, WriteResult
from cdcavro.table.ddl.steps import TableName
from cdcavro.table.writing.table_writer import empty_envelope

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Mapping, Sequence
    from pathlib import Path

    from cdcavro.lake.account import LakeTable
    from cdcavro.sync.conversion.rounds import Outcomes, RowFiles
    from cdcavro.sync.outputs.sink_settings import LakeNames, LakeSettings
    from cdcavro.sync.outputs.writer import Writer
    from cdcavro.table.history import Table

OF_ROWS: Final = ("version", "operation", "order", "key", "payload", "headers")
# Their types, as Spark spells them.
ROW_TYPES: Final = "version int, operation string, `order` binary, key binary, payload binary, headers string"
_GONE: Final = " gone"
_NEW: Final = " new"
WAITING: Final = "waiting"
PAUSED: Final = "paused.json"
RESETS: Final = "resets.json"
KEPT: Final = "kept.json"
_RESET: Final = "reset="
# What is said of a table whose reset is done.
_SAID: Final = "what it had is gone, by cdcavro sync reset"


def _with_remedy(result: WriteResult, names: LakeNames) -> WriteResult:
    """Return what became of a table's rows, with what can be done if its key changed."""
    if result.error is None or not result.error.endswith(UNFOUND):
        return result
    own = plain(label_of(names.names[result.number]))
    return result._replace(error=f"{result.error}: `cdcavro sync reset {own}` begins the table again with the new key")


class TableRows:
    """Writes rows to their tables, with every n-th batch (`every`); rows that a table refuses wait.

    Rows of tables that are `paused`, by their names in the lake, wait until they are not. `resets` is as `table_resets`
    returns it. `public` returns a table as the writer sees it. `lake` is as in `Account`, and is kept up to date.
    """

    def __init__(
        self,
        writer: Writer,
        waiting: WaitingRows,
        every: int,
        paused: frozenset[TableName] = frozenset(),
        resets: Mapping[TableName, Sequence[int]] | None = None,
        public: Callable[[Table], Table] = lambda table: table,
        lake: dict[str, LakeTable] | None = None,
    ) -> None:
        self._writer, self.waiting, self._every = writer, waiting, every
        self._lake: dict[str, LakeTable] = {} if lake is None else lake
        self._paused, self._resets, self._public = paused, resets or {}, public
        # The tables of which rows of earlier batches, which had been pending, were given to the writer with the last one.
        self.late: set[int] = set()

    def write(
        self,
        outcomes: Outcomes,
        number: int,
        tables: Sequence[Table],
        names: LakeNames,
        since: datetime | None,
        goals: Mapping[int, int],
    ) -> list[WriteResult]:
        """Write the rows of a batch and those that wait; `since` is when the batch was first attempted, if it was.

        `goals` are those of `Completeness`.
        """
        facts = {table: facts_of_summary(summary) for table, summary in outcomes.tables.items()}
        store = outcomes.store
        if not self.are_written_with(number):
            self.waiting.keep_all(number, outcomes, facts, since)
            return []
        parts = {}
        for table, summary in outcomes.tables.items():
            own = store.rows(outcomes.names[table], sum(summary["ops"].values()))
            mark = instant_text(goals[table]) if table in goals else None
            parts[table] = BatchRows(number, own, facts[table], Attempt(since is None, since), mark)
        return self._write(store.files, number, tables, names, parts)

    def are_written_with(self, number: int) -> bool:
        """Return whether rows are written with a batch, and do not wait for a later one."""
        return (number + 1) % self._every == 0

    def are_delayed(self, names: LakeNames, refused: Container[str]) -> bool:
        """Return whether there are rows that wait for a later batch, or for a table that is no longer paused, or a reset.

        `refused` has the tables that refused their rows, as people call them. Behind a reset, they may take them.
        """
        # A table without a name is refused.
        free = [one for one in self.waiting.tables() if names.names.get(one) not in self._paused]
        has_other = any(one in names.names and names.label_of(one) not in refused for one in free)
        has_reset = any(self.waiting.resets(one) for one in free)
        return has_other or has_reset or (bool(free) and self._every > 1)

    def write_delayed(
        self, files: RowFiles, number: int, tables: Sequence[Table], names: LakeNames
    ) -> list[WriteResult]:
        """Write the rows of batches before one that wait for a later one."""
        # The batch of this number is still to come, and is another one.
        return self._write(files, number, tables, names, {})

    def _write(
        self,
        files: RowFiles,
        number: int,
        tables: Sequence[Table],
        names: LakeNames,
        parts: Mapping[int, BatchRows],
    ) -> list[WriteResult]:
        work, nameless, reset = [], [], set()
        for table in sorted({*parts, *self.waiting.tables()}):
            name = names.names.get(table)
            if name is None:
                nameless.append(WriteResult(table, [], names.refusal(tables[table], tables)))
                continue
            if name in self._paused:
                if table in parts:
                    self.waiting.keep(files, table, parts[table])
                continue
            waiting = self.waiting.read(files, table, number)
            waiting += [parts[table]] if table in parts else []
            own, resets, shard = self._public(tables[table]), self._resets.get(name, ()), names.shards.get(table)
            if resets:
                waiting = self._behind_resets(files, own, resets, waiting)
                reset |= {table} if any(part.is_reset for part in waiting) else set()
            if waiting:
                work.append((own, name, [part._replace(shard=shard) for part in waiting]))
        written = nameless + [_with_remedy(one, names) for one in self._writer.write(work)]
        last = {table.number: waiting[-1].batch for table, _, waiting in work}
        self.late = {table.number for table, _, waiting in work if any(part.is_pending(number) for part in waiting)}
        for one in written:
            if one.error is None:
                self.waiting.forget(one.number)
            elif one.number in parts:
                self.waiting.keep(files, one.number, parts[one.number])
        done = {one.number for one in written if one.error is None}
        written = [one._replace(steps=[*one.steps, _SAID]) if one.number in reset & done else one for one in written]
        # In the order in which they were written: shards have one lake table.
        written = [self._noted(one, names, tables, last) for one in written]
        return sorted(written, key=lambda one: one.number)

    def _noted(
        self, result: WriteResult, names: LakeNames, tables: Sequence[Table], last: Mapping[int, int]
    ) -> WriteResult:
        """Note what tells the lake tables of a table from others; return the result, with what rows they lack."""
        name = names.names.get(result.number)
        if name is None or result.error is not None:
            return result
        if tables[result.number].is_gone and all(
            tables[one].is_gone for one in names.names if names.names[one] == name
        ):
            # No source has its rows any more; somebody may remove it.
            for suffix in ("", "changes"):
                self._lake.pop(lake_key(name, suffix), None)
            return result
        if result.marks:
            # What is not written any more may be removed.
            for suffix in {"", "changes"}.difference(mark.suffix for mark in result.marks):
                self._lake.pop(lake_key(name, suffix), None)
        said = [note_mark(self._lake, name, mark, last[result.number]) for mark in result.marks]
        return result._replace(steps=[*result.steps, *filter(None, said)])

    def _behind_resets(
        self, files: RowFiles, table: Table, resets: Sequence[int], parts: Sequence[BatchRows]
    ) -> list[BatchRows]:
        """Return rows of a table, those of batches behind resets with orders behind them, and the resets to be made."""
        found = []
        for part in parts:
            count = bisect_left(resets, part.batch)
            rows = files.behind(part.rows, reset_order(count)) if count else part.rows
            found.append(part._replace(kept=rows, facts=part.facts.behind(count)._replace(resets=len(resets))))
        for batch in self.waiting.resets(table.number):
            if batch in resets:
                order = reset_order(resets.index(batch) + 1)
                facts = RowFacts(order, 0, 0, 0, [], len(resets))
                rows = self.waiting.reset_rows(files, table, batch, order)
                found.append(BatchRows(batch, rows, facts, Attempt(), is_reset=True))
        return sorted(found, key=lambda part: (part.batch, part.is_reset))


def lacking_tables(
    known: Mapping[str, LakeTable],
    settings: LakeSettings,
    is_wanted: Callable[[TableName], bool],
    look: Callable[[TableName, str], LakeMark | None],
) -> list[str]:
    """Return which lake tables are not there, or lack rows that were written, each with what brings them back.

    `look` returns the mark of a lake table, None if it is not there. One that cannot be looked at is left out, and so are
    those that the settings do not let be written any more.
    """

    def is_written(name: TableName, suffix: str) -> bool:
        has_state = settings.is_current and lake_key(name, "") in known
        return is_wanted(name) and (settings.is_changelog or not has_state if suffix else settings.is_current)

    def judge(key: str) -> str | None:
        name, suffix = table_of(key)
        try:
            mark = look(name, suffix)
        except CdcAvroError:
            mark = LakeMark(suffix, None, None)
        lacks = known[key].batch if mark is None else known[key].lacks_now(mark)
        if lacks is None:
            return None
        return f"{label_of(name)}: {lacking_sentence(name, suffix, lacks, is_gone=mark is None)}"

    keys = sorted(key for key in known if is_written(*table_of(key)))
    with ThreadPoolExecutor(settings.parallel) as pool:
        return [said for said in pool.map(judge, keys) if said is not None]


def table_resets(state: Path) -> dict[TableName, list[int]]:
    """Return the batches behind which tables were reset, in order, by the tables' names in the lake.

    Raises `FileError` for what `put_resets` did not write.
    """
    path = state / RESETS
    if not path.exists():
        return {}
    try:
        found = msgspec.json.decode(path.read_bytes(), type=list[tuple[str | None, str | None, str, list[int]]])
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise FileError(str(path), "the tables that were reset", str(error)) from error
    return {TableName(database, schema, table): batches for database, schema, table, batches in found}


def put_resets(state: Path, resets: Mapping[TableName, Sequence[int]]) -> None:
    """Write behind which batches tables were reset, in one step."""
    stated = [[name.database, name.schema, name.table, batches] for name, batches in resets.items()]
    replace_file(state / RESETS, json.dumps(stated))


def paused_tables(state: Path) -> frozenset[TableName]:
    """Return the tables that are paused, by their names in the lake. Raises `FileError` for what `pause` did not write."""
    return _named_in(state / PAUSED, "the tables that are paused")


def kept_tables(state: Path) -> frozenset[TableName]:
    """Return the tables that keep rows from before their last reset, by their names in the lake. Raises `FileError`."""
    return _named_in(state / KEPT, "the tables whose reset keeps rows")


def put_names(path: Path, names: Iterable[TableName]) -> None:
    """Write the tables that are paused, or keep rows, in one step."""
    stated = [[name.database, name.schema, name.table] for name in sorted(names, key=label_of)]
    replace_file(path, json.dumps(stated))


def _named_in(path: Path, expected: str) -> frozenset[TableName]:
    if not path.exists():
        return frozenset()
    try:
        names = msgspec.json.decode(path.read_bytes(), type=list[tuple[str | None, str | None, str]])
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise FileError(str(path), expected, str(error)) from error
    return frozenset(TableName(*name) for name in names)


@dataclass(frozen=True)
class WaitingRows:
    """The rows that wait, by table and batch."""

    # Where they are kept.
    folder: Path
    # How many rows there are of a table's batch, by folder: files are looked into once.
    _counts: dict[Path, int] = field(default_factory=dict, compare=False, repr=False)

    def tables(self) -> list[int]:
        """Return the numbers of the tables that have some."""
        found = self.folder.iterdir() if self.folder.is_dir() else ()
        return sorted(int(path.name) for path in found if path.name.isdecimal())

    @property
    def has_rows(self) -> bool:
        """Whether rows of batches wait, and not only resets."""
        return bool(self.batches())

    def batches(self) -> set[int]:
        """Return the batches whose rows wait."""
        found = {batch_of(path) for table in self.tables() for path in (self.folder / str(table)).iterdir()}
        return {one for one in found if one is not None}

    def keep_reset(self, table: int, batch: int) -> None:
        """Let the reset of a table behind a batch wait; it is made if `table_resets` has it, too."""
        (self.folder / str(table) / f"{_RESET}{batch}").mkdir(parents=True, exist_ok=True)

    def forget_resets(self, table: int) -> None:
        """Forget the resets of a table that wait."""
        for path in (self.folder / str(table)).glob(f"{_RESET}*"):
            shutil.rmtree(path)

    def resets(self, table: int) -> list[int]:
        """Return the batches behind which resets of a table wait."""
        names = [path.name.removeprefix(_RESET) for path in (self.folder / str(table)).glob(f"{_RESET}*")]
        return sorted(int(name) for name in names if name.isdecimal())

    def reset_rows(self, files: RowFiles, table: Table, batch: int, order: bytes) -> Any:
        """Return the reset of a table as the row of a TRUNCATE, as a runner holds rows."""
        import pyarrow as pa  # noqa: PLC0415  a configuration is read where it is not installed, too

        folder = self.folder / str(table.number) / f"{_RESET}{batch}" / "rows"
        shutil.rmtree(folder, ignore_errors=True)
        schema = table.schema
        row = (schema.version, TRUNCATE, order, None, empty_envelope(schema.table), None)
        types = (pa.int32(), pa.string(), pa.binary(), pa.binary(), pa.binary(), pa.string())
        columns = [pa.array([value], type) for value, type in zip(row, types, strict=True)]
        files.write(pa.table(dict(zip(OF_ROWS, columns, strict=True))), folder)
        return files.read(folder)

    def counts(self) -> dict[int, int]:
        """Return how many rows of each table wait; another process may write them meanwhile."""
        found: dict[int, dict[Path, int]] = {}
        for table in self.tables():
            # What has no facts is not written to its end.
            for path in (self.folder / str(table)).glob("batch=*/facts.json"):
                with suppress(FileNotFoundError):
                    known = self._counts.get(path.parent)
                    found.setdefault(table, {})[path.parent] = _rows_in(path.parent) if known is None else known
        self._counts.clear()
        for counts in found.values():
            self._counts.update(counts)
        return {table: sum(counts.values()) for table, counts in found.items()}

    def read(self, files: RowFiles, table: int, before: int) -> list[BatchRows]:
        """Return the rows of a table from the batches before one, in order."""
        folders = (self.folder / str(table)).glob("batch=*")
        found = sorted((number, path) for path in folders if (number := batch_of(path)) is not None and number < before)
        return [
            BatchRows(number, files.read(path / "rows"), *_facts_in(path / "facts.json"))
            for number, path in found
            if (path / "facts.json").exists()
        ]

    def keep(self, files: RowFiles, table: int, part: BatchRows) -> None:
        """Keep the rows of a batch, instead of those that it kept when it was run before."""
        batch, rows, facts, attempt = part.batch, part.rows, part.facts, part.attempt
        own = self.folder / str(table) / f"batch={batch}"
        shutil.rmtree(own, ignore_errors=True)
        own.mkdir(parents=True)
        count = files.write(rows, own / "rows")
        check_written(own, _rows_in(own), count)
        (own / "facts.json").write_text(json.dumps(_summary(facts, attempt.since)), encoding="utf-8")

    def keep_all(
        self, batch: int, outcomes: Outcomes, facts: Mapping[int, RowFacts], since: datetime | None = None
    ) -> None:
        """Keep the rows of all tables of a batch, as `keep` does, in one go; `since` is as in `TableRows.write`."""
        new = self.folder / f"batch={batch}{_NEW}"
        shutil.rmtree(new, ignore_errors=True)
        count = outcomes.store.write_rows(new)
        check_written(new, _rows_in(new) if new.is_dir() else 0, count)
        for table, known in facts.items():
            own = self.folder / str(table) / f"batch={batch}"
            shutil.rmtree(own, ignore_errors=True)
            own.mkdir(parents=True)
            (new / f"number={outcomes.names[table]}").rename(own / "rows")
            (own / "facts.json").write_text(json.dumps(_summary(known, since)), encoding="utf-8")
        shutil.rmtree(new, ignore_errors=True)

    def forget(self, table: int) -> None:
        """Forget the rows of a table, which are written, in one step: a kill leaves all or none of them."""
        own, gone = self.folder / str(table), self.folder / f"{table}{_GONE}"
        shutil.rmtree(gone, ignore_errors=True)
        if own.is_dir():
            own.rename(gone)
            shutil.rmtree(gone, ignore_errors=True)


def check_written(folder: str | Path, found: int, wanted: int, what: str = "rows") -> None:
    """Raise `JobError` unless all rows, or files, are found that were written to a folder."""
    if found != wanted:
        raise JobError(
            f"{found:,} of {wanted:,} {what} that were written to {folder} are there:"
            " it must be one that all machines of Spark share"
        )


class _FactsShape(msgspec.Struct):
    """The shape of a file with the facts of rows that wait."""

    floor: str
    ops: dict[str, int]
    keyless: int
    partial: int
    begins: list[str]
    # When it was first attempted to write them, if they may have been written then: the batch was run again.
    since: datetime | None = None


def _facts_in(path: Path) -> tuple[RowFacts, Attempt]:
    """Return the facts of rows that wait, and when it was attempted to write them before they waited.

    Raises `FileError` for what `keep` did not write.
    """
    try:
        shape = msgspec.json.decode(path.read_bytes(), type=_FactsShape)
        return facts_of_summary(msgspec.structs.asdict(shape)), Attempt(since=shape.since)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise FileError(str(path), "the facts of rows that wait", str(error)) from error


def _rows_in(folder: Path) -> int:
    from pyarrow.parquet import ParquetFile  # noqa: PLC0415  a configuration is read where it is not installed, too

    return sum(ParquetFile(path).metadata.num_rows for path in folder.rglob("*.parquet"))


def _summary(facts: RowFacts, since: datetime | None) -> dict[str, object]:
    return {
        "since": None if since is None else since.isoformat(),
        "floor": (facts.floor or b"").hex(),
        "ops": {"d": facts.deletes},
        "keyless": facts.keyless,
        "partial": facts.partial,
        "begins": [begin.hex() for begin in facts.begins],
    }

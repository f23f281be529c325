"""Delta Lake tables without Spark, by `deltalake` and, where it has no call, by commits in the log of a local folder.

What `deltalake` 1.6 cannot do is an error that says so: a batch that needs it is run on Spark.
"""

from __future__ import annotations

import os
import random
import re
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, Schema, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError, DeltaProtocolError, TableNotFoundError
from pyarrow import fs

from cdcavro.errors import FileError, JobError, SchemaError, SetupError
from cdcavro.lake import lakes
from cdcavro.lake.escaped_names import folder_names, quote
from cdcavro.lake.evolution import ADD, MARK, REWRITING, WIDEN, LakeColumn, columns_behind
from cdcavro.lake.lakes import DEPTH, SCHEME, SUFFIXES, DeltaLake, Look
from cdcavro.lake.sql_statements import DELETED, KEY, OLDER, ORDER, SHARD, UNPARSED
from cdcavro.lake.table_shape import kept_partitions
from cdcavro.sync.native import file_changes
from cdcavro.sync.native.delta_files import (
    DeltaFiles,
    arrow_schema,
    compact_files,
    discard_added,
    far_files,
    is_plain,
    rewrite_files,
    sql_literal,
    writer_properties,
)
from cdcavro.sync.native.delta_log import (
    COMMENT,
    KNOWN_FEATURES,
    WIDENING,
    DeltaSchema,
    TakenError,
    commit,
    has_log,
    is_commit,
    local_path,
    log_folder,
    new_schema,
    newest_version,
    schema_of,
)
from cdcavro.sync.native.native_columns import WAITED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from cdcavro.lake.evolution import Step
    from cdcavro.lake.table_shape import Partition
    from cdcavro.sync.native.native_columns import Mark
    from cdcavro.table.ddl.steps import TableName

_TRIES: Final = 10
_ON_SPARK: Final = "run this batch on Spark"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# What `deltalake` decodes in a path although it is none of an address: it finds no table there.
_CODE: Final = re.compile("%[0-9A-Fa-f]{2}")
# How `deltalake` says that a table has something that it does not know.
_UNKNOWN_FEATURE: Final = re.compile("Unsupported table features|Unsupported: Feature")
_GONE: Final = "gone"
# In seconds: how long is waited before a commit is tried again, at most, twice as long each time.
_PAUSE: Final = 0.02
# A commit behind another writer's is made anew, since `deltalake` would not ask whether this process may still write.
_AT_ONCE: Final = CommitProperties(max_commit_retries=0)
# Clocks of two machines may differ.
_DRIFT: Final = timedelta(hours=1)


@dataclass(frozen=True)
class NativeDelta(DeltaLake):
    """A lake of Delta Lake tables in folders that needs no Spark.

    * `root`, `is_older`, `owner`: as in `DeltaLake`.
    * `storage_options` (dict of str): how `deltalake` reaches an object store.
    * `check_held` (callable): raises an error if another process writes these tables. A commit behind a version that was
      looked up before is then surely refused if the other one was faster.
    """

    storage_options: Mapping[str, str] = field(default_factory=dict)
    check_held: Callable[[], None] = field(default=lambda: None, kw_only=True, repr=False, compare=False)

    @property
    def is_here(self) -> bool:
        """Whether the tables are in files of this machine."""
        return local_path(self.folder) is not None

    def table(self, name: TableName, suffix: str = "") -> NativeDeltaTable:
        """Return a lake table of a table. Raises `SetupError` for a folder that `deltalake` does not find."""
        return self._table(self.path(name, suffix))

    def _table(self, folder: str) -> NativeDeltaTable:
        if not SCHEME.match(folder) and _CODE.search(folder):
            raise SetupError(f"{folder}: deltalake reads a percent sign in a path as an escape: use another folder")
        return NativeDeltaTable(folder, self)

    def properties_for(self, steps: Sequence[Step]) -> Mapping[str, str]:
        """Return the properties that a table needs for steps; a column is widened in all files at once."""
        return {name: value for name, value in super().properties_for(steps).items() if name != WIDENING}

    def tables(self) -> Iterator[NativeDeltaTable]:
        """Yield all tables of the lake."""
        folders = [self.folder]
        for _ in range(DEPTH):
            inner = [one for folder in folders for one in self._inner(folder)]
            logged = [one for one in inner if self._has_log(one)]
            yield from map(self._table, logged)
            folders = [one for one in inner if one not in logged]

    def has(self, table: TableName) -> bool:
        """Return whether any of a table's lake tables is there."""
        return any(self._has_log(self.path(table, suffix)) for suffix in SUFFIXES)

    def locate(self, table: TableName) -> NativeDelta:
        """Return the lake as it names a table: as at first, if the table is only there under its first name."""
        return lakes.locate(self, table, _LOOK)

    def make_room(self, table: TableName) -> None:
        """Remove what a kill left of the creation of a table: a log without a commit.

        Raises `SchemaError` as `cdcavro.lake.lakes.check_separate` does.
        """
        lakes.check_separate(self, table, _LOOK)
        for suffix in SUFFIXES:
            folder = local_path(self.path(table, suffix))
            log = None if folder is None else log_folder(folder)
            if log is not None and log.is_dir() and not any(is_commit(one.name) for one in log.iterdir()):
                for left in log.iterdir():
                    left.unlink()
                log.rmdir()

    def around(self, table: TableName) -> str | None:
        """Return the folder of a lake table in which that of a table would be; None if there is none."""
        parts = folder_names(table, is_older=self.is_older)
        above = ["/".join([self.folder.rstrip("/"), *parts[:count]]) for count in range(1, len(parts))]
        return next((folder for folder in above if self._has_log(folder)), None)

    def within(self, table: TableName) -> str | None:
        """Return the folder of a lake table that would be in that of a new table; None if there is none."""
        return next((one for one in self._inner(self.path(table)) if self._has_log(one)), None)

    def check(self) -> None:
        """Check that the root can be written to, if it is a local folder. Raises `FileError`."""
        folder = local_path(self.folder)
        if folder is not None:
            there = next(path for path in (Path(folder), *Path(folder).parents) if path.exists())
            if not (there.is_dir() and os.access(there, os.W_OK)):
                raise FileError(self.root, "a folder that can be written to", "none")

    def _has_log(self, folder: str) -> bool:
        """Return whether a folder is that of a table. Raises `JobError` if that cannot be found out."""
        local = local_path(folder)
        with _errors_of(quote("delta", folder)):
            return has_log(local) if local is not None else DeltaTable.is_deltatable(folder, {**self.storage_options})

    def _inner(self, folder: str) -> list[str]:
        """Return the folders in a folder. Raises `JobError` for an object store that Arrow does not reach."""
        try:
            system, path = fs.FileSystem.from_uri(local_path(folder) or lakes.one_address(folder))
            found = system.get_file_info(fs.FileSelector(path, allow_not_found=True))
        except (OSError, pa.ArrowException) as error:
            raise JobError(f"{folder}: {error}") from error
        names = sorted(one.base_name for one in found if one.type == fs.FileType.Directory)
        return [f"{folder.rstrip('/')}/{name}" for name in names]


_LOOK: Final = Look[NativeDelta](has=NativeDelta.has, around=NativeDelta.around, within=NativeDelta.within)


@dataclass(frozen=True)
class NativeDeltaTable:
    """A table of a `NativeDelta`, as `NativeTable` has it.

    * `folder` (str): its path or address.
    * `lake` (NativeDelta)
    """

    folder: str
    lake: NativeDelta

    @property
    def identifier(self) -> str:
        """The name of the table in messages, and in Spark's SQL."""
        return quote("delta", self.folder)

    def properties(self) -> dict[str, str] | None:
        """Return the properties that the newest version of the table has; None if there is no table."""
        with self._errors():
            return dict(self._open().metadata().configuration) if self.is_there() else None

    def is_there(self) -> bool:
        """Return whether there is the table."""
        return self.lake._has_log(self.folder)  # noqa: SLF001  its own module

    def version(self) -> int | None:
        """Return the number of the newest version of a table on this machine."""
        return newest_version(self.folder)

    def size(self) -> int:
        """Return how many bytes the files of the newest version have."""
        with self._errors():
            files = pa.table(self._open().get_add_actions(flatten=True))
        return int(pc.sum(files.column("size_bytes")).as_py() or 0)

    def columns(self) -> list[LakeColumn]:
        """Return the columns, without this project's own."""
        with self._errors():
            return schema_of(self._open()).columns()

    def schema(self) -> pa.Schema:
        """Return the names and types of all columns, this project's own among them, in the table's order."""
        with self._errors():
            return arrow_schema(schema_of(self._open()))

    def create(
        self,
        columns: Sequence[LakeColumn],
        own: Mapping[str, str],
        properties: Mapping[str, str],
        partition: Sequence[Partition] = (),
    ) -> None:
        """Create the table unless there is one."""
        with self._errors():
            if self.is_there():
                return
            made = new_schema(columns, own, properties, partition)
            if (local := local_path(self.folder)) is None:
                facts: dict[str, Any] = {"configuration": made.properties, "partition_by": list(made.partition)}
                facts |= {"storage_options": dict(self.lake.storage_options), "raise_if_key_not_exists": False}
                DeltaTable.create(self.folder, Schema.from_json(made.text()), mode="ignore", **facts)
                return
            try:
                commit(local, 0, "CREATE TABLE", made.actions(None))
            except TakenError:
                # Another writer has created it meanwhile.
                return

    def repartition(self, partition: Sequence[Partition]) -> list[str]:
        """Return that the table keeps its partitions, unless it is partitioned so."""
        with self._errors():
            return kept_partitions(partition, self._open().metadata().partition_columns)

    def sort_by(self, names: Sequence[str]) -> list[str]:  # noqa: ARG002  as that of Iceberg
        """Do nothing: rows are clustered by `compact`."""
        return []

    def alter(self, steps: Sequence[Step], properties: Mapping[str, str]) -> None:
        """Take steps, in order, and set properties; nothing for none of both.

        On this machine that is one commit. Raises `SchemaError` for a step that `deltalake` cannot take in an object
        store, and for a table with features that are not known.
        """
        if not steps and not properties:
            return
        if local_path(self.folder) is None:
            with self._errors():
                self._alter_remotely(steps, properties)
            return
        needed = {name: value for name, value in properties.items() if name != WIDENING}
        self._retry(lambda: self._alter(steps, needed))

    def _alter(self, steps: Sequence[Step], properties: Mapping[str, str]) -> None:
        table = self._open()
        before = schema_of(table)
        self._check_features(before)
        is_rewritten = self.lake.is_rewritten(before.properties)
        needed = self.lake.properties_for([one for one in steps if one.kind == ADD] if is_rewritten else steps)
        after = before.with_properties({**properties, **needed})
        for step in steps:
            after = after.with_step(step, is_rewritten=is_rewritten)
        local, moved = local_path(self.folder) or self.folder, []
        if any(step.kind in (REWRITING if is_rewritten else (WIDEN,)) for step in steps):
            held = [LakeColumn(one["name"], "", "") for one in before.fields]
            former = {one.name: name for name, one in columns_behind(held, steps) if name} if is_rewritten else None
            moved, after = rewrite_files(table, local, after, former=former), after.as_rewritten()
        self._commit(table, "CHANGE COLUMN" if steps else "SET TBLPROPERTIES", [*after.actions(before), *moved])

    def _commit(self, table: DeltaTable, operation: str, actions: Sequence[Mapping[str, Any]]) -> None:
        """Commit actions to a local table; files that they add are removed if another writer was first."""
        local = local_path(self.folder) or self.folder
        try:
            commit(local, table.version() + 1, operation, actions)
        except TakenError:
            discard_added(Path(local), actions)
            raise

    def _check_features(self, schema: DeltaSchema) -> None:
        unknown = {*schema.protocol.writer_features, *schema.protocol.reader_features} - KNOWN_FEATURES
        if unknown:
            raise SchemaError(self.identifier, f"has {', '.join(sorted(unknown))}, not known here: {_ON_SPARK}")

    def _alter_remotely(self, steps: Sequence[Step], properties: Mapping[str, str]) -> None:
        """Take steps by the calls that `deltalake` has, a commit for each."""
        table = self._open()
        needed = {**properties, **self.lake.properties_for(steps)}
        switched = sorted(
            name for name in needed if name.startswith("delta.") and name not in table.metadata().configuration
        )
        refused = [str(step) for step in steps if step.kind not in (ADD, MARK)] + switched
        if refused or (steps and schema_of(table).is_mapped):
            raise SchemaError(
                self.identifier,
                f"deltalake cannot do this in an object store ({'; '.join(refused) or 'columns are mapped'}): {_ON_SPARK}",
            )
        if needed:
            table.alter.set_table_properties(dict(needed), raise_if_not_exists=False)
        for step in steps:
            if step.kind == ADD:
                made = new_schema([step.column], {}, {})
                table.alter.add_columns(Schema.from_json(made.text()).fields)
            else:
                table.alter.set_column_metadata(step.name, {COMMENT: step.column.field})

    def append(self, rows: pa.Table, mark: Mark | None = None) -> None:
        """Append rows, unless their batch is there, whichever runner appended it; without a mark nothing is looked for.

        The commit has the mark that Spark's sink writes, and the transaction that Delta Lake on Spark looks for. Raises
        `JobError` if the batch may be there, and the history does not reach back to its first attempt.
        """
        text, stated = "", _AT_ONCE
        if mark is not None:
            text = f"cdcavro {mark.job} {mark.batch}"
            stated = CommitProperties({"userMetadata": text}, 0, [Transaction(mark.job, mark.batch)])

        def write() -> None:
            table = self._open_plain()
            if not rows.num_rows or (mark is not None and self._has(table, mark, text)):
                return
            schema = schema_of(table)
            write_deltalake(
                table,
                _as_in(rows, arrow_schema(schema)),
                mode="append",
                commit_properties=stated,
                writer_properties=writer_properties(schema),
            )

        self._retry(write)

    def _has(self, table: DeltaTable, mark: Mark, text: str) -> bool:
        """Return whether a batch is in the table. Raises `JobError` if that cannot be known."""
        version = table.transaction_version(mark.job)
        if version is not None and version >= mark.batch:
            return True
        # Rows that waited were never appended without a transaction.
        if mark.since is None or mark.since == WAITED:
            return False
        commits = table.history()
        if any(one.get("userMetadata") == text for one in commits):
            return True
        oldest = min(commits, key=lambda one: one["version"])
        moment = _EPOCH + timedelta(milliseconds=oldest["timestamp"])
        if oldest["version"] > 0 and moment > mark.since - _DRIFT:
            raise JobError(
                f"the history of {self.folder} does not reach back to {mark.since:%Y-%m-%d %H:%M}, so it cannot be known"
                " whether the batch that was stopped then is written"
            )
        return False

    def merge(self, rows: pa.Table, present: Sequence[str]) -> None:
        """Merge rows as `sql_statements.merge_state` does with is_guarded=True and is_partial=False."""
        order, deleted, stands = _named("s", ORDER), _named("s", DELETED), _named("t", ORDER)
        put = {_named(None, name): _named("s", name) for name in (*present, ORDER, UNPARSED, OLDER)}
        new = put | {_named(None, KEY): _named("s", KEY)}

        def write() -> None:
            table = self._open_plain()
            schema = schema_of(table)
            if self._change_files(table, schema, lambda files: file_changes.merge(files, rows, present)):
                return
            held = arrow_schema(schema)
            wanted = [held.field(name) for name in (*present, KEY, ORDER, UNPARSED, OLDER)]
            source = _as_in(rows, pa.schema([*wanted, pa.field(DELETED, pa.binary())]))
            merger = self._merger(table, schema, source, f"{_named('t', KEY)} = {_named('s', KEY)}")
            merger = merger.when_matched_delete(f"{deleted} >= {stands} AND {order} IS NULL")
            merger = merger.when_matched_update(put, f"{order} > {stands}")
            merger.when_not_matched_insert(new, f"{order} IS NOT NULL").execute()

        if rows.num_rows:
            self._retry(write)

    def _change_files(
        self, table: DeltaTable, schema: DeltaSchema, change: Callable[[DeltaFiles], None], operation: str = "MERGE"
    ) -> bool:
        """Change a table file by file if it can be changed so; return whether it can, else `deltalake` does it."""
        local = local_path(self.folder)
        if local is None or not is_plain(schema):
            return False
        files = DeltaFiles(table, local, schema, operation)
        try:
            change(files)
        except BaseException:
            if not files.is_committing:
                files.discard()
            raise
        return True

    def _merger(self, table: DeltaTable, schema: DeltaSchema, source: pa.Table, predicate: str) -> Any:
        writing: Any = {"writer_properties": writer_properties(schema), "commit_properties": _AT_ONCE}
        return table.merge(source, predicate, source_alias="s", target_alias="t", **writing)

    def find(self, keys: pa.Array, names: Sequence[str] | None = None) -> pa.Table:
        """Return the rows that have one of these keys; `names` are the columns, by default all."""
        with self._errors():
            table = self._open_plain()
            stated, local = schema_of(table), local_path(self.folder)
            if local is not None and is_plain(stated):
                return file_changes.find(DeltaFiles(table, local, stated), keys, names)
            schema = arrow_schema(stated)
            wanted = schema.names if names is None else list(names)
            read = list(dict.fromkeys([*wanted, KEY]))
            looked_up = keys.cast(pa.binary())
            batches = [
                batch.filter(pc.is_in(batch.column(KEY), value_set=looked_up)) for batch in _scan(table, schema, read)
            ]
            return pa.Table.from_batches(batches, _part(schema, read)).select(wanted)

    def replace(self, keys: pa.Array, rows: pa.Table) -> None:
        """Remove the rows with these keys, and add rows, which have all columns of the table, in one commit."""

        def write() -> None:
            table = self._open_plain()
            schema = schema_of(table)
            if self._change_files(table, schema, lambda files: file_changes.replace(files, keys, rows)):
                return
            held = arrow_schema(schema)
            added = _as_in(rows, held)
            removed = pa.table(
                [
                    keys.cast(pa.binary()).unique() if one.name == KEY else pa.nulls(len(keys.unique()), one.type)
                    for one in held
                ],
                schema=held,
            )
            flags = [pa.repeat(pa.scalar(flag), len(part)) for flag, part in ((True, removed), (False, added))]
            source = pa.concat_tables([removed, added]).append_column(_GONE, pa.chunked_array(flags))
            gone = _named("s", _GONE)
            merger = self._merger(table, schema, source, f"{_named('t', KEY)} = {_named('s', KEY)} AND {gone}")
            merger = merger.when_matched_delete()
            new = {_named(None, name): _named("s", name) for name in held.names}
            merger.when_not_matched_insert(new, f"NOT {gone}").execute()

        if len(keys) or rows.num_rows:
            self._retry(write)

    def read(self, names: Sequence[str], filled: Sequence[str] = ()) -> pa.Table:
        """Return columns of all rows, or of those in which any of the columns `filled` is not null."""
        with self._errors():
            table = self._open_plain()
            schema = arrow_schema(schema_of(table))
            found = (file_changes.filled_rows(batch, filled) for batch in _scan(table, schema, list(names)))
            return pa.Table.from_batches(found, _part(schema, list(names)))

    def delete_up_to(self, column: str, bound: bytes | datetime, shard: str | None = None) -> None:
        """Delete the rows whose value in a column is not above a bound, of one shard if it is given."""

        def write() -> None:
            table = self._open_plain()
            schema = schema_of(table)
            if self._change_files(
                table, schema, lambda files: file_changes.delete_up_to(files, column, bound, shard), "DELETE"
            ):
                return
            where = f"{_named(None, column)} <= {sql_literal(bound)}"
            where += "" if shard is None else f" AND {_named(None, SHARD)} = {sql_literal(shard)}"
            table.delete(where, writer_properties(schema), commit_properties=_AT_ONCE)

        self._retry(write)

    def rewrite(self, transform: Callable[[pa.RecordBatch], pa.RecordBatch]) -> None:
        """Replace all rows by what a function returns for them, some at a time, in one commit."""

        def write() -> None:
            table = self._open_plain()
            schema = schema_of(table)
            held = arrow_schema(schema)
            read = _scan(table, held, held.names)
            changed = (transform(batch).select(held.names).cast(held) for batch in read)
            made = pa.RecordBatchReader.from_batches(held, changed)
            write_deltalake(table, made, mode="overwrite", writer_properties=writer_properties(schema))

        self._retry(write)

    def compact(self) -> int:
        """Put small files together; return how many there are fewer. Raises `SchemaError` as `compact_files` does."""
        fewer: list[int] = []

        def write() -> None:
            table = self._open_plain()
            fewer.append(compact_files(table, self.identifier, writer_properties(schema_of(table))))

        self._retry(write)
        return fewer[-1]

    def vacuum(self, keep: timedelta) -> int:
        """Remove files that no version needs which is younger than `keep`; return how many."""
        with self._errors():
            return len(self._open().vacuum(-(-keep // timedelta(hours=1)), dry_run=False))

    def _open(self) -> DeltaTable:
        place, options = local_path(self.folder) or self.folder, {**self.lake.storage_options} or None
        table = DeltaTable(place, storage_options=options)
        self.lake.check_held()
        return table

    def _open_plain(self) -> DeltaTable:
        """Open the table so that its rows can be read and written.

        Files that `deltalake` would not read, or would read as something else, are written anew first: those of a table
        that Spark has widened, and those with instants of far years that Spark wrote.
        """
        table = self._open()
        schema, local = schema_of(table), local_path(self.folder)
        if local is None:
            if schema.is_widened:
                raise SchemaError(self.identifier, f"deltalake does not read files with narrower types: {_ON_SPARK}")
            return table
        far = set[str]() if schema.is_widened else far_files(table, local, schema)
        if not far and not schema.is_widened:
            return table
        self._check_features(schema)
        moved = rewrite_files(table, local, schema, far or None)
        plain = schema.as_rewritten().actions(schema) if schema.is_widened else []
        self._commit(table, "REORG", [*plain, *moved])
        return self._open()

    def _retry(self, write: Callable[[], None]) -> None:
        """Write, and again if another writer's commit was first; a commit that failed wrote nothing that is seen."""
        with self._errors():
            for left in reversed(range(_TRIES)):
                try:
                    write()
                except (CommitFailedError, TakenError) as error:
                    if _is_refused(error):
                        raise
                    if not left:
                        raise TakenError(f"other writers committed before, {_TRIES} times: {error}") from error
                    # Two writers that wait equally long meet again; none waits for more than a second.
                    time.sleep(random.uniform(0, min(_PAUSE * 2 ** (_TRIES - left), 1)))  # noqa: S311  not for secrets
                else:
                    return

    def _errors(self) -> AbstractContextManager[None]:
        return _errors_of(self.identifier)


@contextmanager
def _errors_of(identifier: str) -> Iterator[None]:
    """Turn the errors of `deltalake` about a table into this project's."""
    try:
        yield
    except TableNotFoundError as error:
        raise JobError(f"{identifier}: there is no such table") from error
    except (DeltaError, TakenError, OSError, pa.ArrowException) as error:
        said = str(error).split("\n", 1)[0]
        if _is_refused(error):
            raise SchemaError(identifier, f"{said}: {_ON_SPARK}") from error
        raise JobError(f"{identifier}: {said}") from error


def _is_refused(error: Exception) -> bool:
    """Return whether `deltalake` does not know something that a table has."""
    return isinstance(error, DeltaProtocolError) or _UNKNOWN_FEATURE.search(str(error)) is not None


def _named(alias: str | None, name: str) -> str:
    """Return the name of a column in the SQL of `deltalake`."""
    quoted = '"' + name.replace('"', '""') + '"'
    return quoted if alias is None else f"{alias}.{quoted}"


def _part(schema: pa.Schema, names: Sequence[str]) -> pa.Schema:
    return pa.schema([schema.field(name) for name in names])


def _scan(table: DeltaTable, schema: pa.Schema, names: list[str]) -> pa.RecordBatchReader:
    """Return columns of all rows of a table, in the types of a schema."""
    return pa.RecordBatchReader.from_stream(table.scan(names), _part(schema, names))


def _as_in(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return the columns of rows that a schema has, in its order and types; one that they do not have is null."""
    held = set(rows.column_names)
    columns = [rows[one.name] if one.name in held else pa.nulls(rows.num_rows, one.type) for one in schema]
    return pa.table(dict(zip(schema.names, columns, strict=True))).cast(schema)

"""The Iceberg lake of the local runner: tables of a catalog that are read and changed without Spark.

They are what Spark's SQL makes of them, in a catalog of type `hadoop`, which is a folder, or in a server or a database, and
either runner goes on with the other's.
"""

from __future__ import annotations

import getpass
import os
import random
import re
import time
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from threading import Lock, local
from types import SimpleNamespace
from typing import TYPE_CHECKING, Final, TypeVar

import pyarrow as pa
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NoSuchNamespaceError,
    NoSuchTableError,
    NotInstalledError,
    ResolveError,
    TableAlreadyExistsError,
    ValidationError,
    ValidationException,
)
from pyiceberg.schema import Schema
from pyiceberg.types import NestedField

from cdcavro.errors import CdcAvroError, FileError, JobError, SchemaError, SetupError
from cdcavro.lake.catalogs import HIVE, SQL, TYPE
from cdcavro.lake.escaped_names import OWN, quote
from cdcavro.lake.evolution import DROP, KINDS, MARK, RENAME, WIDEN, LakeColumn
from cdcavro.lake.lake_columns import arrow_type, spark_name
from cdcavro.lake.lakes import CHANGE, DEPTH, SUFFIXES, IcebergLake, Look, check_separate
from cdcavro.lake.table_shape import check_sorted, order_step, repartition_step
from cdcavro.sync.native import file_changes
from cdcavro.sync.native.file_changes import Keys
from cdcavro.sync.native.hadoop_catalog import HadoopCatalog
from cdcavro.sync.native.iceberg_files import (
    IcebergFiles,
    arrow_schema,
    arrow_type_of,
    iceberg_type,
    order_of,
    partitions_of,
    put_order,
    spec_of,
    transform_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime, timedelta

    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table
    from pyiceberg.table.update.schema import UpdateSchema

    from cdcavro.lake.evolution import Step
    from cdcavro.lake.table_shape import Partition
    from cdcavro.sync.native.native_columns import Mark
    from cdcavro.table.ddl.steps import TableName

_T = TypeVar("_T")
_TRIES: Final = 5
# So many seconds are waited, at most, before the second try.
_WAIT: Final = 0.1
# What catalogs are told by their types, unless their properties say otherwise: to replace connections that were ended.
_DEFAULTS: Final[Mapping[str | None, dict[str, str]]] = {SQL: {"pool_pre_ping": "true"}}
# What is said of a database whose driver knows no encoding of it, so that SQLAlchemy does not get its texts.
_ENCODING: Final = (
    "expected a database whose encoding is UTF8, got texts as bytes, as of one in SQL_ASCII: create another one with"
    " ENCODING 'UTF8' TEMPLATE template0, and let uri name it"
)
_BEHIND: Final = re.compile(r"\n(?:\[SQL: |\(Background on )")
# What Java gives a new table.
_NEW: Final = {"write.parquet.compression-codec": "zstd"}


class Connection:
    """A catalog that is a server or a database, as pyiceberg reaches it once it is needed.

    * `name` (str): what the catalog is called.
    * `properties` (Mapping[str, str]): its properties, as pyiceberg names them.
    """

    def __init__(self, name: str, properties: Mapping[str, str]) -> None:
        self._name, self._properties = name, {one: str(value) for one, value in properties.items()}
        # A catalog of Hive's has one connection: threads that share it take each other's answers, and wait for ever.
        self._held: local | SimpleNamespace = local() if self._is_hive else SimpleNamespace()
        self._making = Lock()

    @property
    def _is_hive(self) -> bool:
        return self._properties.get(TYPE) == HIVE

    @property
    def catalog(self) -> Catalog:
        """The catalog. Raises `SetupError` if what pyiceberg needs for it is not installed, and `JobError`."""
        if not hasattr(self._held, "catalog"):
            # Of two threads that make the tables of a catalog in a new database, one would fail. Hive's share nothing.
            with nullcontext() if self._is_hive else self._making:
                if not hasattr(self._held, "catalog"):
                    self._held.catalog = self._load()
        found: Catalog = self._held.catalog
        return found

    def make_namespaces(self, parts: tuple[str, ...]) -> None:
        """Create the namespaces of a table that there are not, from the outermost on, one thread at a time.

        Hive's metastore removes the folder, and all that is in it, of one that another thread has made meanwhile.
        """
        for end in range(1, len(parts) + 1):
            # Some create none whose outer one is not there, and others let nobody ask for what is there.
            if self.catalog.namespace_exists(parts[:end]):
                continue
            with self._making, suppress(NamespaceAlreadyExistsError):
                if not self.catalog.namespace_exists(parts[:end]):
                    self.catalog.create_namespace(parts[:end], self._namespace_properties(parts[end - 1]))

    def _namespace_properties(self, name: str) -> dict[str, str]:
        """Return the properties of a new namespace: Hive's metastore does not know of the warehouse, as it does in Java."""
        warehouse = self._properties.get("warehouse")
        return {"location": f"{warehouse.rstrip('/')}/{name}.db"} if self._is_hive and warehouse else {}

    def _load(self) -> Catalog:
        try:
            return load_catalog(self._name, **_DEFAULTS.get(self._properties.get(TYPE), {}) | self._properties)
        except (NotInstalledError, ModuleNotFoundError) as error:
            raise SetupError(f"Iceberg's catalog {self._name}: {error}") from error
        except Exception as error:
            # Each kind of catalog has errors of its own libraries.
            is_of_sql = self._properties.get(TYPE) == SQL
            has_bytes = is_of_sql and isinstance(error, TypeError) and "bytes-like" in str(error)
            raise JobError(f"Iceberg's catalog {self._name}: {_ENCODING if has_bytes else _sentence(error)}") from error


@dataclass(frozen=True)
class NativeIceberg(IcebergLake):
    """Iceberg tables in a catalog, which is a folder or what a connection leads to.

    * `catalog`, `is_older`, `owner`, `is_shared`, `is_plain`: as in `IcebergLake`.
    * `warehouse` (str): the folder, a path or an address such as `file:/lake`, which Spark has as a catalog of type
      `hadoop`.
    * `connection` (Connection or None): what leads to a catalog that is a server or a database.
    * `versions` (dict): the newest versions of tables that were read or written, by their names.
    * `check_held` (callable): as in `NativeDelta`.
    """

    warehouse: str = field(default="", kw_only=True)
    connection: Connection | None = field(default=None, kw_only=True, repr=False, compare=False)
    versions: dict[tuple[str, ...], int] = field(default_factory=dict, kw_only=True, repr=False, compare=False)
    check_held: Callable[[], None] = field(default=lambda: None, kw_only=True, repr=False, compare=False)

    @property
    def files(self) -> Catalog:
        """The catalog. Raises `FileError` for a warehouse that is not on this machine, and as `Connection.catalog` does."""
        return self._folder if self.connection is None else self.connection.catalog

    @property
    def is_here(self) -> bool:
        """Whether the tables are in files of this machine."""
        return self.connection is None

    @cached_property
    def _folder(self) -> HadoopCatalog:
        try:
            return HadoopCatalog(self.catalog, self.warehouse)
        except ValueError:
            raise FileError(self.warehouse, "a folder on this machine", "another address") from None

    def table(self, name: TableName, suffix: str = "") -> NativeIcebergTable:
        """Return a lake table of a table; `suffix` is one of `SUFFIXES`."""
        return NativeIcebergTable(self, self.parts(name, suffix))

    def tables(self) -> Iterator[NativeIcebergTable]:
        """Yield all tables of the lake; none of a catalog that others share, which may have any number of them."""
        spaces: list[tuple[str, ...]] = [()]
        for _ in range(0 if self.is_shared else DEPTH):
            spaces = [inner for space in spaces for inner in self.files.list_namespaces(space)]
            for space in spaces:
                for parts in self.files.list_tables(space):
                    if self.files.table_exists(parts):
                        yield NativeIcebergTable(self, parts)

    def make_room(self, table: TableName) -> None:
        """Create the namespaces of a table. Raises `SchemaError` for a table whose folder is in another's, or around it.

        A server or a database puts tables where none is in the folder of another.
        """
        namespace = self.parts(table)[:-1]
        if self.connection is not None:
            with own_errors(self.name):
                self.connection.make_namespaces(namespace)
            return
        check_separate(self, table, Look(_has, _around, _within))
        try:
            self.files.create_namespace(namespace)
        except NamespaceAlreadyExistsError:
            pass
        except OSError as error:
            raise JobError(f"{self.name}: {error}") from error

    def check(self) -> None:
        """Check that the catalog answers, or that the folder can be written to. Raises `FileError` or `JobError`."""
        if self.connection is not None:
            with own_errors(self.name):
                self.files.list_namespaces()
            return
        root = self._folder.folder
        there = next(path for path in (root, *root.parents) if path.exists())
        if not (there.is_dir() and os.access(there, os.W_OK)):
            raise FileError(self.warehouse, "a folder that can be written to", "none")


def _has(lake: NativeIceberg, table: TableName) -> bool:
    names = [lake.parts(table, suffix) for suffix in SUFFIXES]
    return any(lake.files.table_exists(parts) for parts in names)


def _around(lake: NativeIceberg, table: TableName) -> str | None:
    parts = lake.parts(table)
    above = [parts[:end] for end in range(2, len(parts))]
    return next((quote(lake.catalog, *one) for one in above if lake.files.table_exists(one)), None)


def _within(lake: NativeIceberg, table: TableName) -> str | None:
    try:
        inner = lake.files.list_tables(lake.parts(table))
    except NoSuchNamespaceError:
        return None
    return quote(lake.catalog, *inner[0]) if inner else None


class NativeIcebergTable:
    """One Iceberg table of a lake, as `NativeTable` says; `parts` are its namespaces and its name."""

    def __init__(self, lake: NativeIceberg, parts: Sequence[str]) -> None:
        self._lake = lake
        self._parts = tuple(parts)

    @property
    def identifier(self) -> str:
        """The name of the table in Spark's SQL."""
        return quote(self._lake.catalog, *self._parts)

    def properties(self) -> dict[str, str] | None:
        """Return the properties that the newest version of the table has; None if there is no table."""
        with self._as_own_errors():
            try:
                return dict(self._load().metadata.properties)
            except (NoSuchTableError, NoSuchNamespaceError):
                self._lake.versions[self._parts] = -1
                return None

    def is_there(self) -> bool:
        """Return whether there is the table."""
        with self._as_own_errors():
            return self._lake.files.table_exists(self._parts)

    def version(self) -> int | None:
        """Return the sequence number of the newest snapshot, as it was when the table was read or written last."""
        return self._lake.versions.get(self._parts)

    def size(self) -> int:
        """Return how many bytes the files of the newest snapshot have."""
        with self._as_own_errors():
            snapshot = self._load().metadata.current_snapshot()
        summary = None if snapshot is None else snapshot.summary
        return 0 if summary is None else int(summary.additional_properties.get("total-files-size", 0))

    def columns(self) -> list[LakeColumn]:
        """Return the columns, without this project's own."""
        with self._as_own_errors():
            fields = self._load().schema().fields
        return [
            LakeColumn(one.name, one.doc or "", spark_name(arrow_type_of(one.field_type)))
            for one in fields
            if not one.name.startswith(OWN)
        ]

    def schema(self) -> pa.Schema:
        """Return the names and types of all columns, in the table's order."""
        with self._as_own_errors():
            return arrow_schema(self._load())

    def create(
        self,
        columns: Sequence[LakeColumn],
        own: Mapping[str, str],
        properties: Mapping[str, str],
        partition: Sequence[Partition] = (),
    ) -> None:
        """Create the table unless there is one, as `sql_statements.create_table` does."""
        named = [(one.name, one.type, one.field) for one in columns] + [(*pair, None) for pair in own.items()]
        fields = [
            NestedField(i + 1, name, iceberg_type(arrow_type(kind)), required=False, doc=doc)
            for i, (name, kind, doc) in enumerate(named)
        ]
        with self._as_own_errors(), suppress(TableAlreadyExistsError):
            if not self._lake.files.table_exists(self._parts):
                schema = self._checked(lambda: Schema(*fields))
                spec = self._checked(lambda: spec_of(partition, schema))
                new = _NEW | _user() | dict(properties)
                self._lake.files.create_table(self._parts, schema, partition_spec=spec, properties=new)

    def repartition(self, partition: Sequence[Partition]) -> list[str]:
        """Let the table be partitioned so from now on; files that there are stay where they are."""
        told = []

        def change(table: Table) -> None:
            held = {one: name for name, one in partitions_of(table.spec(), table.schema()).items()}
            if {*held} == {*partition}:
                return
            self._checked(lambda: spec_of(partition, table.schema()))
            with table.update_spec() as update:
                for name in (name for one, name in held.items() if one not in partition):
                    update.remove_field(name)
                for one in (one for one in partition if one not in held):
                    update.add_field(one.column, transform_of(one))
            told.append(repartition_step(partition))

        with self._as_own_errors():
            change(self._load())
        return told

    def sort_by(self, names: Sequence[str]) -> list[str]:
        """Let the rows of each file be sorted by these columns from now on; files that there are stay as they are."""
        told: list[str] = []

        def change(files: IcebergFiles) -> None:
            metadata = files.table.metadata
            fields = order_of(names, metadata.schema())
            if metadata.sort_order().fields != fields:
                with files.table.transaction() as transaction:
                    put_order(transaction, fields)
                # Nobody is told how the rows of a table are sorted that is new.
                told.extend([order_step(names)] if metadata.current_snapshot_id is not None else [])

        self._try(change)
        return told

    def _checked(self, change: Callable[[], _T], what: str = "") -> _T:
        """Return what a function returns; what it finds wrong with columns is a `SchemaError`."""
        try:
            return change()
        except (ValidationError, ResolveError, ValueError) as error:
            raise SchemaError(self.identifier, f"{what}{error}") from error

    def alter(self, steps: Sequence[Step], properties: Mapping[str, str]) -> None:
        """Take steps, in order, and set properties, in one commit.

        Raises `SchemaError` for a step that Iceberg does not allow.
        """

        def change(table: Table) -> None:
            known = table.metadata.properties
            new = {name: value for name, value in properties.items() if known.get(name) != value}
            specs = [partitions_of(spec, table.schema()) for spec in table.specs().values()]
            parting = {one.column for spec in specs for one in spec.values()}
            bad = next((step for step in steps if step.kind == DROP and step.name in parting), None)
            if bad is not None:
                raise SchemaError(self.identifier, f"{bad}: files of it are partitioned by it")
            orders = [one for order in table.metadata.sort_orders for one in order.fields]
            check_sorted(steps, [table.schema().find_column_name(one.source_id) or "" for one in orders])
            with table.transaction() as transaction:
                for group in _groups(steps):
                    self._checked(partial(_take, transaction.update_schema(), group), "; ".join(map(str, group)) + ": ")
                if new:
                    transaction.set_properties(new)

        if steps or properties:
            self._try(lambda files: change(files.table))

    def append(self, rows: pa.Table, mark: Mark | None = None) -> None:
        """Append rows, unless their batch is there, whichever runner appended it: the snapshots name their batches."""

        def change(files: IcebergFiles) -> None:
            stated = {} if mark is None else {f"cdcavro.batch.{mark.job}": str(mark.batch)}
            if mark is None or not _is_appended(files, rows, next(iter(stated)), mark):
                files.add(rows)
                files.append(stated)

        self._try(change)

    def merge(self, rows: pa.Table, present: Sequence[str]) -> None:
        """Merge rows as `sql_statements.merge_state` does with is_guarded=True and is_partial=False."""
        if rows.num_rows:
            self._try(lambda files: file_changes.merge(files, rows, present))

    def find(self, keys: pa.Array, names: Sequence[str] | None = None) -> pa.Table:
        """Return the rows that have one of these keys, by default all their columns."""
        with self._as_own_errors():
            return file_changes.find(IcebergFiles(self._load()), keys, names)

    def replace(self, keys: pa.Array, rows: pa.Table) -> None:
        """Remove the rows with these keys, and add rows, in one commit."""
        self._try(lambda files: file_changes.replace(files, keys, rows))

    def read(self, names: Sequence[str], filled: Sequence[str] = ()) -> pa.Table:
        """Return columns of all rows, or of those in which any of the columns `filled` is not null."""
        with self._as_own_errors():
            files = IcebergFiles(self._load())
            schema = pa.schema([files.schema.field(name) for name in names])
            found = [file_changes.filled_rows(files.read(file, names), filled) for file in files.files]
            return pa.concat_tables([schema.empty_table(), *found])

    def delete_up_to(self, column: str, bound: bytes | datetime, shard: str | None = None) -> None:
        """Delete the rows whose value in a column is not above a bound, of one shard if it is given."""
        self._try(lambda files: file_changes.delete_up_to(files, column, bound, shard))

    def rewrite(self, transform: Callable[[pa.RecordBatch], pa.RecordBatch]) -> None:
        """Replace all rows by what a function returns for them, some at a time, in one commit."""

        def change(files: IcebergFiles) -> None:
            for file in files.files:
                for batch in files.read(file).to_batches():
                    files.add(pa.Table.from_batches([transform(batch)]))
                files.remove(file)
            files.overwrite()

        self._try(change)

    def compact(self) -> int:
        """Raise `SchemaError`: pyiceberg has no call for it."""
        raise SchemaError(self.identifier, "pyiceberg does not compact files: Spark's rewrite_data_files does")

    def vacuum(self, keep: timedelta) -> int:  # noqa: ARG002  as that of Delta Lake
        """Raise `SchemaError`: pyiceberg would forget snapshots and leave their files, which nothing would find then."""
        raise SchemaError(self.identifier, "pyiceberg removes no files of old snapshots: Spark's expire_snapshots does")

    def _load(self) -> Table:
        table = self._lake.files.load_table(self._parts)
        self._lake.check_held()
        self._note(table)
        return table

    def _note(self, table: Table) -> None:
        snapshot = table.metadata.current_snapshot()
        self._lake.versions[self._parts] = 0 if snapshot is None else snapshot.sequence_number or 0

    def _try(self, change: Callable[[IcebergFiles], None]) -> None:
        """Make a change of the newest version; again if another writer was faster."""
        with self._as_own_errors():
            for tried in range(_TRIES):
                files = IcebergFiles(self._load())
                try:
                    change(files)
                except (CommitFailedException, ValidationException):
                    files.discard()
                    if tried + 1 == _TRIES:
                        raise
                    time.sleep(random.uniform(0, _WAIT * 2**tried))  # noqa: S311  writers are to wait for different times
                except Exception:
                    if not files.is_committing:
                        files.discard()
                    raise
                else:
                    self._note(files.table)
                    return

    @contextmanager
    def _as_own_errors(self) -> Iterator[None]:
        """Raise what libraries raise as errors of this project that name the table."""
        with own_errors(self.identifier):
            yield


@contextmanager
def own_errors(place: str) -> Iterator[None]:
    """Raise what libraries raise as errors of this project, which name a place: a table, or a catalog."""
    try:
        yield
    except (CdcAvroError, TableAlreadyExistsError):
        raise
    except NoSuchTableError as error:
        raise JobError(f"there is no table {place}") from error
    except (CommitFailedException, ValidationException) as error:
        raise JobError(f"{place}: other writers were faster, {_TRIES} times: {error}") from error
    except (ValidationError, ResolveError) as error:
        raise SchemaError(place, str(error)) from error
    # What Arrow and pyiceberg raise for values and files that they cannot read or write, and what the libraries of servers
    # and databases do, which need not be installed.
    except Exception as error:
        raise JobError(f"{place}: {_sentence(error)}") from error


def _sentence(error: Exception) -> str:
    """Return what a library's error says, without the statement of SQL and the address that SQLAlchemy puts behind it."""
    return f"{type(error).__name__}: {_BEHIND.split(str(error), maxsplit=1)[0]}"


def _take(update: UpdateSchema, steps: Sequence[Step]) -> None:
    with update:
        for step in steps:
            _take_one(update, step)


def _take_one(update: UpdateSchema, step: Step) -> None:
    column, path = step.column, (step.name,)
    match step.kind:
        case "add":
            update.add_column((column.name,), iceberg_type(arrow_type(column.type)), doc=column.field)
            if step.after is not None:
                _ = (
                    update.move_after((column.name,), (step.after,))
                    if step.after
                    else update.move_first((column.name,))
                )
        case "rename":
            update.rename_column(path, column.name)
        case "widen":
            update.update_column(path, field_type=iceberg_type(arrow_type(column.type)))
        case "mark":
            update.update_column(path, doc=column.field)
        case "drop":
            update.delete_column(path)
        case _:
            raise ValueError(f"{step.kind} is none of {', '.join(KINDS)}")


def _groups(steps: Sequence[Step]) -> list[list[Step]]:
    """Return steps in groups of which each can be taken at once: none begins with a name that another one changed."""
    groups: list[list[Step]] = []
    touched: set[str] = set()
    moved: set[str] = set()
    renamed: set[str] = set()
    for step in steps:
        names, is_moving = {step.name, step.column.name}, step.kind not in (WIDEN, MARK)
        if not groups or names & (touched if is_moving else moved) or step.after in renamed:
            groups.append([])
            touched, moved, renamed = set(), set(), set()
        groups[-1].append(step)
        touched |= names
        moved |= names if is_moving else set()
        renamed |= names if step.kind == RENAME else set()
    return groups


def _is_appended(files: IcebergFiles, rows: pa.Table, name: str, mark: Mark) -> bool:
    """Return whether the rows of a batch are in a table, as `cdcavro.spark.lake.sinks.is_appended` does.

    If the snapshots do not say it, the rows are looked for, unless the batch is surely new.
    """
    is_looked_for = mark.since is not None
    whole = files.whole
    snapshot = whole.current_snapshot()
    while snapshot is not None:
        named = snapshot.summary.get(name) if snapshot.summary is not None else None
        if named is not None:
            return int(named) >= mark.batch
        if snapshot.parent_snapshot_id is None:
            # Pyiceberg, if it forgets a snapshot, says of the next one that there was none before it; Java does not.
            is_first = (snapshot.sequence_number or 0) <= 1
            return is_looked_for and not is_first and _are_there(files, rows)
        snapshot = whole.snapshot_by_id(snapshot.parent_snapshot_id)
        if snapshot is None:
            return is_looked_for and _are_there(files, rows)
    return False


def _are_there(files: IcebergFiles, rows: pa.Table) -> bool:
    """Return whether a table has all of these rows, by what identifies a change."""
    identity = [name for name in CHANGE if name in files.schema.names]
    left = set(_tuples(rows, identity))
    for task in files.within(Keys(rows.column(identity[0])), identity[0]):
        left.difference_update(_tuples(files.read(task, identity), identity))
    return not left


def _tuples(rows: pa.Table, names: Sequence[str]) -> Iterator[tuple[object, ...]]:
    return zip(*[rows.column(name).to_pylist() for name in names], strict=True)


def _user() -> dict[str, str]:
    """Return the property in which Spark says who created a table."""
    try:
        return {"owner": os.environ.get("SPARK_USER") or getpass.getuser()}
    except (KeyError, OSError):
        return {}

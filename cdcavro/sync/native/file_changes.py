"""Changes of a lake table without Spark, file by file: of the rows that stand, one file's are in memory at a time.

A file is read if the bounds of its keys say that it may hold what is looked for, first its keys only, and is written
anew if rows of it change.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Final, Generic, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from cdcavro.lake.sql_statements import DELETED, KEY, OLDER, ORDER, SHARD, UNPARSED

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence
    from datetime import datetime

F = TypeVar("F")
R = TypeVar("R", pa.Table, pa.RecordBatch)
# So many files of less than so many bytes are put together by the next change that is no append.
_MANY: Final = 24
_SMALL: Final = 1 << 20
# How many bytes of rows, in memory, wait until they are written to one file.
_WAITING: Final = 1 << 26


class Keys:
    """The keys of a batch, to be looked for in files."""

    def __init__(self, keys: pa.Array | pa.ChunkedArray) -> None:
        whole = keys.combine_chunks() if isinstance(keys, pa.ChunkedArray) else keys
        self.array = whole.cast(pa.binary())

    @cached_property
    def _sorted(self) -> list[bytes]:
        return sorted(self.array.drop_null().to_pylist())

    def may_lie_within(self, low: bytes | None, high: bytes | None) -> bool:
        """Return whether any key is within bounds, of which None is not known."""
        at = 0 if low is None else bisect_left(self._sorted, low)
        return at < len(self._sorted) and (high is None or self._sorted[at] <= high)

    def positions(self, held: pa.ChunkedArray) -> pa.Array:
        """Return at which place each value is among the keys; null where it is not, or is null."""
        return pc.index_in(held.combine_chunks(), value_set=self.array, skip_nulls=True)


class TableFiles(ABC, Generic[F]):
    """The data files of one version of a table, and those of the next one; `F` is what stands for a file.

    * `schema` (pa.Schema): the names and types of the table's columns.
    """

    schema: pa.Schema

    def __init__(self) -> None:
        # Whether a commit began, which may have succeeded even if it fails.
        self.is_committing = False
        self._removed: list[F] = []
        self._waiting: list[pa.Table] = []

    @property
    @abstractmethod
    def files(self) -> list[F]:
        """The files of the version."""

    @abstractmethod
    def within(self, keys: Keys, column: str) -> list[F]:
        """Return the files that may hold any of these keys, by the bounds of a column of binary values."""

    @abstractmethod
    def read(self, file: F, names: Sequence[str] | None = None) -> pa.Table:
        """Return columns, by default all, of the rows of a file that are not deleted, in the order that they have there."""

    @abstractmethod
    def place(self, file: F) -> tuple[str, int]:
        """Return the path of a file, and how many bytes it has."""

    def group(self, file: F) -> Hashable:  # noqa: ARG002  of a table with partitions
        """Return what is the same of files whose rows may be put together."""
        return None

    @property
    @abstractmethod
    def has_added(self) -> bool:
        """Whether files were written."""

    @abstractmethod
    def write(self, rows: pa.Table) -> None:
        """Write rows, in the types of `schema`, to new files."""

    @abstractmethod
    def commit(self) -> None:
        """Make the version without the files that were removed, and with those that were written."""

    @abstractmethod
    def discard(self) -> None:
        """Delete the files that were written, and are in no version of the table."""

    def add(self, rows: pa.Table) -> None:
        """Add rows; columns that they lack are null."""
        if rows.num_rows:
            self._waiting.append(cast_rows(rows, self.schema))
        if sum(one.nbytes for one in self._waiting) > _WAITING:
            self.flush()

    def remove(self, file: F) -> None:
        """Remove a file with its rows."""
        self._removed.append(file)

    def replace(self, file: F, rows: pa.Table) -> None:
        """Put rows in the place of those of a file."""
        self.remove(file)
        self.add(rows)

    def change(self, files: Sequence[F], change: Callable[[F], pa.Table | None]) -> None:
        """Replace files by the rows that a function returns for them, or leave those for which it returns None."""
        for file in files:
            rows = change(file)
            if rows is not None:
                self.replace(file, rows)

    def flush(self) -> None:
        """Write the rows that wait."""
        rows, self._waiting = self._waiting, []
        if rows:
            self.write(pa.concat_tables(rows))

    def overwrite(self) -> None:
        """Commit what was replaced and added, unless that is nothing; small files are put together if there are many."""
        if self._removed or self.has_added or self._waiting:
            removed = {self.place(one)[0] for one in self._removed}
            places = [(one, *self.place(one)) for one in self.files]
            small: dict[Hashable, list[F]] = {}
            for one, path, size in places:
                if path not in removed and size < _SMALL:
                    small.setdefault(self.group(one), []).append(one)
            for file in (one for group in small.values() if len(group) > _MANY for one in group):
                self.replace(file, self.read(file))
        self.flush()
        if self._removed or self.has_added:
            self.commit()


def merge(files: TableFiles[F], rows: pa.Table, present: Sequence[str]) -> None:
    """Merge rows as `NativeTable.merge` does."""
    merging = _Merge(files, rows.combine_chunks(), {*present, ORDER, UNPARSED, OLDER})
    files.change(files.within(merging.keys, KEY), merging.change)
    files.add(merging.left())
    files.overwrite()


def find(files: TableFiles[F], keys: pa.Array, names: Sequence[str] | None = None) -> pa.Table:
    """Return rows as `NativeTable.find` does."""
    wanted = Keys(keys)
    schema = files.schema if names is None else pa.schema([files.schema.field(name) for name in names])
    found = []
    for file in files.within(wanted, KEY):
        is_found = pc.is_valid(wanted.positions(files.read(file, [KEY]).column(KEY)))
        if pc.any(is_found).as_py():
            found.append(files.read(file, schema.names).filter(is_found))
    return pa.concat_tables([schema.empty_table(), *found])


def replace(files: TableFiles[F], keys: pa.Array, rows: pa.Table) -> None:
    """Remove rows and add others as `NativeTable.replace` does."""
    gone = Keys(keys)
    remaining = _without(files, [KEY], lambda held: pc.is_valid(gone.positions(held.column(KEY))))
    files.change(files.within(gone, KEY), remaining)
    files.add(rows)
    files.overwrite()


def delete_up_to(files: TableFiles[F], column: str, bound: bytes | datetime, shard: str | None = None) -> None:
    """Delete rows as `NativeTable.delete_up_to` does."""
    limit = pa.scalar(bound, files.schema.field(column).type)

    def are_gone(held: pa.Table) -> pa.Array:
        is_up_to = pc.less_equal(held.column(column), limit)
        is_gone = is_up_to if shard is None else pc.and_(is_up_to, pc.equal(held.column(SHARD), pa.scalar(shard)))
        return pc.fill_null(is_gone, fill_value=False)

    files.change(files.files, _without(files, [column, *([] if shard is None else [SHARD])], are_gone))
    files.overwrite()


def _without(
    files: TableFiles[F], names: Sequence[str], are_gone: Callable[[pa.Table], pa.Array]
) -> Callable[[F], pa.Table | None]:
    """Return a function that gives the rows of a file but those that are gone, by some columns; None if none is."""

    def remaining(file: F) -> pa.Table | None:
        is_gone = are_gone(files.read(file, names))
        return files.read(file).filter(pc.invert(is_gone)) if pc.any(is_gone).as_py() else None

    return remaining


class _Merge(Generic[F]):
    """A merge of rows, one for each key, into the files of a table; `put` are the columns that an update changes."""

    def __init__(self, files: TableFiles[F], rows: pa.Table, put: set[str]) -> None:
        self._files, self._rows, self._put = files, rows, put
        self.keys = Keys(rows.column(KEY))
        # Where in the rows the keys are that the table has.
        self._met: list[pa.Array] = []

    def change(self, file: F) -> pa.Table | None:
        """Return the rows of a file behind the merge; None if they stay as they are."""
        held = self._files.read(file, [KEY, ORDER])
        at = self.keys.positions(held.column(KEY))
        if at.null_count == len(at):
            return None
        self._met.append(at.drop_null())
        order, deleted = (self._rows.column(name).take(at) for name in (ORDER, DELETED))
        stands = held.column(ORDER)
        is_newer = pc.fill_null(pc.greater(order, stands), fill_value=False)
        is_deleted = pc.and_(pc.greater_equal(deleted, stands), pc.is_null(order))
        is_gone = pc.fill_null(is_deleted, fill_value=False)
        is_changed = pc.or_(is_newer, is_gone)
        if not pc.any(is_changed).as_py():
            return None
        whole = self._files.read(file)
        old, new = whole.filter(is_newer), self._rows.take(pc.filter(at, is_newer.combine_chunks()))
        columns = {name: (new if name in self._put else old).column(name) for name in whole.schema.names}
        updated = cast_rows(pa.table(columns), whole.schema)
        return pa.concat_tables([whole.filter(pc.invert(is_changed)), updated])

    def left(self) -> pa.Table:
        """Return the rows that are new in the table."""
        numbers = pa.array(range(self._rows.num_rows), pa.int32())
        met = pa.chunked_array(self._met, pa.int32())
        is_new = pc.and_(pc.invert(pc.is_in(numbers, value_set=met)), pc.is_valid(self._rows.column(ORDER)))
        inserted = [name for name in self._rows.schema.names if name in {*self._put, KEY}]
        return self._rows.select(inserted).filter(is_new)


def filled_rows(rows: R, names: Sequence[str]) -> R:
    """Return the rows in which any of these columns is not null; all rows for no columns."""
    if not names:
        return rows
    is_filled = reduce(pc.or_, [pc.is_valid(rows.column(name)) for name in names])
    kept: R = rows.filter(is_filled)
    return kept


def cast_rows(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return rows with the columns of a schema; those that they lack are null."""
    names = set(rows.schema.names)
    columns = [
        rows.column(one.name).cast(one.type) if one.name in names else pa.nulls(rows.num_rows, one.type)
        for one in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)

"""Native lakes: what the libraries that need no Java do with lake tables, the same for Delta Lake and Iceberg."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import timedelta

    import pyarrow as pa

    from cdcavro.lake.evolution import LakeColumn, Step
    from cdcavro.lake.table_shape import Partition, TableShape
    from cdcavro.table.ddl.steps import TableName


# When rows were first attempted that waited from their first attempt on: later ones are told by what they leave.
WAITED: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Mark(NamedTuple):
    """The mark of an append: a batch of a job that has one is not appended again."""

    # What is unique to the writer.
    job: str
    # The number of the batch, which goes up.
    batch: int
    # When the batch was first attempted; None if this attempt is surely the first, `WAITED` if its rows waited.
    since: datetime | None = None


class NativeTable(Protocol):
    """One lake table, which need not be there; its methods but `create` need it to be there.

    Each change is one commit. A commit that loses against another writer's is tried again, up to five times.
    """

    @property
    def identifier(self) -> str:
        """The name of the table in messages, the same as Spark's SQL has for it."""

    def properties(self) -> dict[str, str] | None:
        """Return the properties that the newest version of the table has; None if there is no table."""

    def is_there(self) -> bool:
        """Return whether there is the table, without opening it."""

    def version(self) -> int | None:
        """Return a number of the newest version, which grows with each change, -1 if there is no table.

        None if that is not known without opening the table.
        """

    def size(self) -> int:
        """Return how many bytes the files of the newest version have."""

    def columns(self) -> list[LakeColumn]:
        """Return the columns, without this project's own, as `cdcavro.spark.lake.sinks.present_columns` does."""

    def schema(self) -> pa.Schema:
        """Return the names and types of all columns, this project's own among them, in the table's order."""

    def create(
        self,
        columns: Sequence[LakeColumn],
        own: Mapping[str, str],
        properties: Mapping[str, str],
        partition: Sequence[Partition] = (),
    ) -> None:
        """Create the table unless there is one, as `sql_statements.create_table` does."""

    def repartition(self, partition: Sequence[Partition]) -> list[str]:
        """Let the table be partitioned so from now on; return what was done, or that it cannot be, in parts of sentences."""

    def sort_by(self, names: Sequence[str]) -> list[str]:
        """Let rows be sorted by these columns from now on, on Iceberg; return what was done, in parts of sentences."""

    def alter(self, steps: Sequence[Step], properties: Mapping[str, str]) -> None:
        """Take steps, in order, and set properties; nothing for none of both. Raises `SchemaError` for a step that the library cannot take."""

    def append(self, rows: pa.Table, mark: Mark | None = None) -> None:
        """Append rows, unless their batch is there, whichever runner appended it; without a mark nothing is looked for."""

    def merge(self, rows: pa.Table, present: Sequence[str]) -> None:
        """Merge rows as `sql_statements.merge_state` does with is_guarded=True and is_partial=False.

        `rows` has one row for each key, with the columns of `present`, those of `sql_statements.STATE`, and DELETED.
        """

    def find(self, keys: pa.Array, names: Sequence[str] | None = None) -> pa.Table:
        """Return the rows that have one of these keys in the column `sql_statements.KEY`; `names` are the columns, by default all."""

    def replace(self, keys: pa.Array, rows: pa.Table) -> None:
        """Remove the rows with these keys, and add rows, which have all columns of the table, in one commit."""

    def read(self, names: Sequence[str], filled: Sequence[str] = ()) -> pa.Table:
        """Return columns of all rows, or of those in which any of the columns `filled`, which are among them, is not null."""

    def delete_up_to(self, column: str, bound: bytes | datetime, shard: str | None = None) -> None:
        """Delete the rows whose value in a column is not above a bound, of one shard if it is given."""

    def rewrite(self, transform: Callable[[pa.RecordBatch], pa.RecordBatch]) -> None:
        """Replace all rows by what a function returns for them, some at a time, in one commit."""

    def compact(self) -> int:
        """Put small files together; return how many there are fewer. Raises `SchemaError` if the library cannot."""

    def vacuum(self, keep: timedelta) -> int:
        """Remove files that no version needs which is younger than `keep`; return how many. Raises `SchemaError` as above."""


class NativeLake(Protocol):
    """A lake of native tables."""

    @property
    def using(self) -> str:
        """The kind of lake: `delta` or `iceberg`."""

    @property
    def name(self) -> str:
        """What the lake is called in messages, the same as on Spark: a state is bound to it."""

    @property
    def is_stepwise(self) -> bool:
        """Whether each step on the columns of a table is a commit of its own, so that a kill may leave some of them."""

    @property
    def is_here(self) -> bool:
        """Whether the tables are in files of this machine, so that a look at one is no request."""

    def table(self, name: TableName, suffix: str = "") -> NativeTable:
        """Return a lake table of a table; `suffix` is one of `SUFFIXES`."""

    def tables(self) -> Iterator[NativeTable]:
        """Yield all tables of the lake."""

    def properties(self, names: Sequence[str]) -> Mapping[str, str]:
        """Return what a table with columns of such names is created with."""

    def properties_for(self, steps: Sequence[Step]) -> Mapping[str, str]:
        """Return the properties that a table needs for steps."""

    def is_rewritten(self, properties: Mapping[str, str]) -> bool:
        """Return whether steps on the columns of a table with some properties write its files anew."""

    def shape_of(self, table: TableName) -> TableShape:
        """Return what is said of the shape of a table."""

    def can_widen(self, old: str, new: str) -> bool:
        """Return whether a column of a type can become one of another, as Spark spells types."""

    def make_room(self, table: TableName) -> None:
        """Prepare the place of a table, as Spark's sinks do. Raises `SchemaError` as `check_separate` does."""

    def check(self) -> None:
        """Check that the lake can be reached and written to. Raises `FileError` or `JobError`."""

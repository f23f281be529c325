"""Writer of a pipeline's rows: what each kind of output does, what it gets, and what it says became of them.

One of them publishes the schemas of tables in a registry before others write rows with them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from cdcavro.errors import RegistryError
from cdcavro.lake.escaped_names import topic_name
from cdcavro.lake.lakes import UNKNOWN_ATTEMPT, Attempt
from cdcavro.lake.typed_rows import DROP, ENDS
from cdcavro.registry import subject_name
from cdcavro.registry.backend import UnusableError
from cdcavro.sync.outputs.topic_records import ConnectSchemas, connect_schemas
from cdcavro.table.ddl.steps import TableName

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from cdcavro.avro.schema import Schema
    from cdcavro.lake.account import LakeMark
    from cdcavro.lake.typed_rows import RowFacts
    from cdcavro.registry import Registry
    from cdcavro.sync.settings import RegistrySettings
    from cdcavro.table.history import Table

    Waiting = Sequence["BatchRows"]
    Rows = tuple[Table, TableName, Waiting]


@dataclass(frozen=True)
class KeptRows:
    """Rows that are read when they are written, so that those of few tables are in memory at a time.

    * `read`: reads them.
    * `size` (int): how many bytes they take.
    """

    read: Callable[[], Any]
    size: int


class BatchRows(NamedTuple):
    """A table's rows of one batch."""

    # The number of the batch.
    batch: int
    # The rows, or what reads them wherever the runner keeps them.
    kept: Any
    # What is known of the rows.
    facts: RowFacts
    # How often it was attempted to write them.
    attempt: Attempt = UNKNOWN_ATTEMPT
    # Up to when the table is complete once they are written, in ISO 8601; None if that is not known.
    complete_until: str | None = None
    # Whether it is the reset of the table behind that batch, and no row of a message.
    is_reset: bool = False
    # What tells the table from others in its lake table; None if it is alone there.
    shard: str | None = None

    @property
    def rows(self) -> Any:
        """The rows, with the columns of `table_rows.OF_ROWS`, as the runner holds rows; `KeptRows` are read each time."""
        return self.kept.read() if isinstance(self.kept, KeptRows) else self.kept

    @property
    def size(self) -> int:
        """How many bytes the rows take in this process, which holds or reads them."""
        return int(self.kept.size if isinstance(self.kept, KeptRows) else self.kept.nbytes)

    def is_pending(self, number: int) -> bool:
        """Return whether they are rows of messages that have waited for the batch of a number."""
        return self.batch < number and not self.is_reset

    def mark(self, job: str, table: int) -> str:
        """Return what a changelog calls who appended the rows of a table: resets are not counted with batches."""
        return f"{job}/{table}/reset" if self.is_reset else f"{job}/{table}"


class WriteResult(NamedTuple):
    """What became of a table's rows."""

    # The number of the table.
    number: int
    # How its lake table changed.
    steps: list[str]
    # Why the rows wait; None if they are written.
    error: str | None
    # What tells its lake tables from others.
    marks: tuple[LakeMark, ...] = ()


def lake_marks(
    seen: Iterable[LakeMark],
    table: Table,
    waiting: Sequence[Any],
    excluded: Collection[str],
    *,
    has_rows: bool | None,
    is_adopted: bool,
) -> tuple[LakeMark, ...]:
    """Return the marks of a table's lake tables, with what is known of the rows from before that they have.

    * `waiting` has the rows that were written, with their facts, and `excluded` the kinds of statements that are not
      followed.
    * `has_rows` says whether a current state has rows behind a TRUNCATE, a DROP or a reset that was written; None if there
      was none, or if it keeps the rows before it.
    * `is_adopted` says that lake tables are taken as they are.

    There are none if nothing is to be noted: a table that is dropped gets late rows, or other shards are left.
    """
    is_shard = any(part.shard is not None for part in waiting)
    if table.is_gone:
        has_end = any(part.facts.floor is not None for part in waiting)
        is_ended = has_end and not is_shard and ENDS[DROP] not in excluded
        return tuple(mark._replace(is_new=True, is_empty=True) for mark in seen) if is_ended else ()
    is_begun = has_rows is not None and not is_shard
    return tuple(
        mark._replace(
            is_new=is_adopted or (is_begun and not mark.suffix),
            is_empty=is_begun and not has_rows and not mark.suffix,
        )
        for mark in seen
    )


class Writer(Protocol):
    """Writes batches."""

    @property
    def has_changes(self) -> bool:
        """Whether every change is wanted, and not only the last of each key."""

    @property
    def has_states(self) -> bool:
        """Whether current states are wanted."""

    def write(self, tables: Sequence[Rows]) -> list[WriteResult]:
        """Write the rows of tables: each with what it is called and its rows, from the oldest batch on.

        A fault of one table keeps only its own rows back, and the result says so; any other fault is raised.
        """


# The answers by which a server refuses one schema, and not the client.
_OF_A_SCHEMA: Final = frozenset({409, 422})


class SchemaIds(NamedTuple):
    """The ids of a version's schemas in a registry."""

    # Of its envelope.
    value: int
    # Of its key, None without one.
    key: int | None


class Publisher:
    """Publishes the versions of tables, each once, in the registry `settings`; `topic` is as in `RegistrySettings`.

    With `is_connect` their schemas are those of Kafka Connect's converters.
    """

    def __init__(self, settings: RegistrySettings, topic: str | None = None, *, is_connect: bool = False) -> None:
        self._is_connect = is_connect
        self._settings = settings
        self._topic = topic or settings.topic
        self._strategy = settings.strategy_for(self._topic)
        self._registry: Registry = settings.connect()
        self._known: dict[int, dict[int, SchemaIds]] = {}

    def close(self) -> None:
        """Close the connections."""
        self._registry.close()

    def known(self, table: Table) -> dict[int, SchemaIds]:
        """Return the ids of the versions of a table that are published, by their numbers."""
        return self._known.get(table.number, {})

    def publish(self, table: Table, name: TableName, version: int) -> list[str]:
        """Publish a version of a table, unless it is; return what was new, as sentences' parts.

        Raises `IncompatibleError` and others for a schema that is refused, `JobError` for a registry that is down.
        """
        schema = next(one for one in table.versions if one.version == version)
        steps: list[str] = []
        # A table that is renamed keeps its topic, and its first name in its keys' schema: what compacts a log compares ids.
        first = table.versions[0].table
        own = (
            connect_schemas(schema, first)
            if self._is_connect
            else ConnectSchemas(schema.envelope, schema.key_named(first))
        )
        value = self._publish(own.envelope, name, steps, is_key=False)
        key = None if own.key is None else self._publish(own.key, name, steps, is_key=True)
        self._known.setdefault(table.number, {})[version] = SchemaIds(value, key)
        return steps

    def _publish(self, schema: Schema, name: TableName, steps: list[str], *, is_key: bool) -> int:
        topic = None if self._topic is None else topic_name(self._topic, name)
        subject = subject_name(self._strategy, schema, topic=topic, is_key=is_key)
        level = self._settings.compatibility
        published = self._settings.ask_patiently(lambda: self._registry.publish(schema, subject, compatibility=level))
        if published.is_new:
            steps.append(f"version {published.version} of subject {subject} is published, with id {published.id}")
        return published.id or 0


@dataclass
class PublishingWriter:
    """A writer that first publishes the schemas of the versions of rows."""

    writer: Writer
    publisher: Publisher
    # Returns the versions of rows, as the runner holds them.
    versions_of: Callable[[Any], Iterable[int]]

    @property
    def has_changes(self) -> bool:
        """Whether every change is wanted."""
        return self.writer.has_changes

    @property
    def has_states(self) -> bool:
        """Whether current states are wanted."""
        return self.writer.has_states

    def write(self, tables: Sequence[Rows]) -> list[WriteResult]:
        """Publish, and write the rows of the tables of which no schema was refused."""
        refused: list[WriteResult] = []
        steps: dict[int, list[str]] = {}
        for table, name, waiting in tables:
            try:
                subject = _subject_name(name, waiting)
                for version in self._new_versions(table, waiting):
                    steps.setdefault(table.number, []).extend(self.publisher.publish(table, subject, version))
            except (ValueError, RegistryError) as error:
                if not _is_of_a_schema(error):
                    raise
                refused.append(WriteResult(table.number, steps.pop(table.number, []), one_line(error)))
        numbers = {one.number for one in refused}
        written = self.writer.write([one for one in tables if one[0].number not in numbers])
        return refused + [one._replace(steps=[*steps.get(one.number, []), *one.steps]) for one in written]

    def _new_versions(self, table: Table, waiting: Waiting) -> list[int]:
        """Return the versions of rows that are not known to be published, in order."""
        known = self.publisher.known(table)
        if len(known) >= len(table.versions) and table.schema.version in known:
            return []
        found = {version for part in waiting for version in self.versions_of(part.rows)}
        return sorted(found - known.keys())


def _subject_name(name: TableName, waiting: Waiting) -> TableName:
    """Return what the subjects of a table are named after: what it is called, of a shard what tells it from the others."""
    shard = waiting[0].shard if waiting else None
    if shard is None:
        return name
    *outer, table = shard.split(".", 2)
    database, schema = (*outer, None, None)[:2]
    return TableName(database, schema, table)


def _is_of_a_schema(error: Exception) -> bool:
    """Return whether a registry refuses one schema, or what it has of one subject, and not everything."""
    if not isinstance(error, RegistryError):
        return True
    return error.status in _OF_A_SCHEMA or (isinstance(error, UnusableError) and error.subject is not None)


def one_line(error: Exception) -> str:
    """Return an error on one line: what is refused, and each reason.

    >>> from cdcavro.errors import IncompatibleError
    >>> one_line(IncompatibleError("t-value", "FULL", ["version 1: a", "version 2: b"]))
    "subject 't-value' is FULL, and the schema is not: version 1: a; version 2: b"
    """
    first, *reasons = (line.strip() for line in str(error).splitlines())
    return f"{first} {'; '.join(reasons)}".strip()

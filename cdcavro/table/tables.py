"""Tables of a stream: they type changes as payloads of their schemas, which evolve as the changes pass.

A table's first version comes from CREATE TABLE or from the columns of its first change; later
versions come from statements, and from column lists that changed without one. A change belongs to
the version with the columns that it states, even if it arrives late; a change that states no
columns belongs to the version of its time.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypedDict

from msgspec import Struct
from msgspec.structs import astuple

from cdcavro.change.model import DDL, DML, Change, Source, names_of_columns, plain_numbers, replace
from cdcavro.change.operations import ADAPTIVE_TIME_MICROSECONDS, BYTES, PRECISE, check_modes
from cdcavro.change.order import split_key_change
from cdcavro.errors import OrderError, SchemaError, shown
from cdcavro.exact.caching import WeightedCache, text_size, weight_of
from cdcavro.exact.instants import check_zone
from cdcavro.exact.locks import one_at_a_time
from cdcavro.table.catalog import TableCatalog
from cdcavro.table.columns.format_rules import RULES, USUAL, GivenType
from cdcavro.table.ddl.cursor import is_mysql
from cdcavro.table.ddl.parse import emptied_tables, empties, states_key_only
from cdcavro.table.evolution.evolve import NONE_GIVEN
from cdcavro.table.history import Table, columns_of_version, complete_types, is_in_part, time_of
from cdcavro.table.statement_follower import StatementFollower
from cdcavro.table.table_names import GivenTable, check_names, check_row, source_of, table_name_of
from cdcavro.table.table_schema import TableSchema
from cdcavro.table.writing.table_writer import TableWriter
from cdcavro.transcoding.mapping import with_columns

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import tzinfo

    from cdcavro.change.model import Column, Row
    from cdcavro.change.operations import Modes
    from cdcavro.change.order import Key
    from cdcavro.errors import CdcAvroError
    from cdcavro.table.columns.column_type import TypeOverrides
    from cdcavro.table.ddl.steps import TableName


KEEP: Final = "keep"
ERROR: Final = "error"
REJECT: Final = "reject"
ON_MISFIT: Final = (KEEP, ERROR, REJECT)
UNSTATED: Final = "unstated"
NULL: Final = "null"
ABSENT: Final = (UNSTATED, NULL)
# In columns, as `weight_of` counts them. A writer takes about two kilobytes for each column.
_WRITERS: Final = 20_000
_NAMES: Final = 4 << 20

TableVersion = tuple[Table, TableSchema]


class TableOptions(TypedDict, total=False):
    """The arguments of `Tables`."""

    given: TypeOverrides
    zone: tzinfo | None
    on_misfit: str
    absent: str
    decimals: str
    times: str
    binaries: str
    table: str | None
    keys: Mapping[str, Sequence[str]]


class TypedChange(Struct, frozen=True):
    """A change of a table's rows as Avro payloads."""

    table: Table
    # The version that it was written with.
    schema: TableSchema
    # A payload of the key's schema, None without a primary key.
    key: bytes | None
    # A payload of the envelope's schema.
    payload: bytes
    change: Change

    @property
    def absent(self) -> tuple[str, ...]:
        """The columns that the row after the change does not have; none where there is no such row."""
        after = self.change.after
        return () if after is None else tuple(column.name for column in self.schema.columns if column.name not in after)


class TypedPayload(Struct, frozen=True):
    """A row of a message as Avro payloads."""

    table: Table
    # The version that it was written with.
    schema: TableSchema
    # What the change did, as in `Change`.
    op: str
    # A payload of the key's schema, None without a primary key.
    key: bytes | None
    # A payload of the envelope's schema.
    payload: bytes


def row_changes(change: Change) -> list[Change]:
    """Return a change as it is written: an update of its key as a delete and an insert."""
    return [change] if change.op == "TRUNCATE" else split_key_change(change)


def has_all(change: Change, key: Sequence[str]) -> bool:
    """Return whether the rows before and after a change both have all columns of a key."""
    return all(image is not None and name in image for name in key for image in (change.before, change.after))


def _with_key_before(change: Change, key: Sequence[str]) -> Change:
    """Return an update whose row before it has all columns of a key: one that is not stated there did not change."""
    before, after = change.before, change.after
    if before is None or after is None or all(name in before for name in key):
        return change
    kept = {name: after[name] for name in key if name in after and name not in before}
    return replace(change, before=kept | before) if kept else change


def _with_nulls(schema: TableSchema, change: Change) -> Change:
    """Return a change whose row after it has null in each column that it lacks, but for the key and the unavailable."""
    if change.after is None:
        return change
    kept = {*change.after, *schema.key_names, *(change.unavailable or ())}
    nulls = {column.name: None for column in schema.columns if column.name not in kept}
    return replace(change, after=change.after | nulls) if nulls else change


def _with_types(change: Change, columns: tuple[Column, ...], zone: tzinfo | None, modes: Modes) -> Change:
    """Return a change with the types of columns, and with its values as these types have them."""
    rules, converters = RULES.get(change.source.format or "", USUAL), {}
    for stated, column in zip(change.columns or (), columns, strict=True):
        if column.name is not None and column.type is not None and column.type != stated.type:
            given = GivenType(column.type, stated.type, change.source.db_type, zone, modes)
            converters[column.name] = rules.conversion(given)
    rows = [row and _converted_row(row, converters) for row in (change.before, change.after)]
    return replace(change, columns=columns, before=rows[0], after=rows[1])


def _converted_row(row: Row, converters: Mapping[str, Callable[[Any], Any] | None]) -> Row:
    return {
        name: value if value is None or (convert := converters.get(name)) is None else convert(value)
        for name, value in row.items()
    }


class _LastChange:
    """The table and version of a change, which hold for the next similar change as long as no table is edited."""

    __slots__ = ("_columns", "_edits", "_key", "_source", "table_version")

    def __init__(self, change: Change, edits: int, table_version: TableVersion) -> None:
        self._source, self._columns, self._key, self._edits = change.source, change.columns, change.key, edits
        self.table_version = table_version

    def is_for(self, change: Change, edits: int) -> bool:
        """Return whether a change has an equal source and key and the identical column list, with no edit in between."""
        is_same = self._edits == edits and self._columns is change.columns and self._key == change.key
        return is_same and (self._source is change.source or self._source == change.source)


class Tables:
    """Follows the tables of a stream of changes and writes the changes as typed Avro.

    * `given` (`TypeOverrides`) sets the types of columns that state none, or replaces those stated.
    * `zone` (tzinfo or None) is the source's time zone.
    * `on_misfit` (str) decides about a change with a value that its column's type cannot carry: "keep" puts the value's
      text into `unparsed`; "error" and "reject" raise `MisfitError`, for the caller to stop or to set the change aside.
    * `absent` (str) says what a column is that the row after a change lacks: "unstated", so that it keeps its value, or
      "null", if the producer omits nulls. A column whose value the source did not have (`Change.unavailable`) is always
      unstated, and so is a key column.
    * `decimals`, `times` and `binaries` (str) are as in `SchemaHistory`.
    * `table` (str or None) is the table of rows that name none, as in `GivenTable.of`.
    * `keys` (Mapping[str, Sequence[str]]) has the key columns of tables whose source states none, as in `StatedKeys`.

    Raises `ValueError` for any other `on_misfit`, `absent`, mode or `table`, and `TypeError` for a `zone` that is not
    one.

    Fields:

    * `tables` (list of `Table`), all that ever existed
    * `given_table` (`GivenTable`), the table of rows that name none
    * `zone` (tzinfo or None), as given
    * `fills_absent` (bool), whether `absent` is "null"
    * `misfits` (dict from a table's number to a Counter), how many values of each column went into `unparsed` as text;
      columns for which there is no room are counted together, as `other columns`
    """

    __slots__ = (
        "__weakref__",
        "_catalog",
        "_follower",
        "_given",
        "_is_strict",
        "_last",
        "_modes",
        "_names",
        "_recent",
        "_room",
        "_writers",
        "fills_absent",
        "given_table",
        "misfits",
        "user",
        "zone",
    )

    def __init__(
        self,
        *,
        given: TypeOverrides = NONE_GIVEN,
        zone: tzinfo | None = None,
        on_misfit: str = KEEP,
        absent: str = UNSTATED,
        decimals: str = PRECISE,
        times: str = ADAPTIVE_TIME_MICROSECONDS,
        binaries: str = BYTES,
        table: str | None = None,
        keys: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        if on_misfit not in ON_MISFIT:
            raise ValueError(f"on_misfit is one of {', '.join(ON_MISFIT)}, not {shown(on_misfit)}")
        if absent not in ABSENT:
            raise ValueError(f"absent is {' or '.join(ABSENT)}, not {shown(absent)}")
        check_zone(zone)
        self._given, self.zone, self._modes = given, zone, check_modes(decimals, times, binaries)
        self._is_strict, self.fills_absent = on_misfit != KEEP, absent == NULL
        self.given_table = GivenTable.of(table)
        self._catalog = TableCatalog(given)
        self._follower = StatementFollower(self._catalog, given, keys)
        self.misfits: dict[int, Counter[str]] = {}
        self._forget()

    def __getstate__(self) -> tuple[Any, ...]:
        """Return the state for another process, which makes its own writers; a subclass may add attributes."""
        facts = (self._given, self.zone, self._modes, self._is_strict, self.fills_absent, self.given_table)
        more = getattr(self, "__dict__", {})
        return (*facts, self._catalog, self._follower, self.misfits, more)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        """Restore the state that another process returned from `__getstate__`."""
        self._given, self.zone, self._modes, self._is_strict, self.fills_absent, *rest = state
        self.given_table, self._catalog, self._follower, self.misfits, more = rest
        for name, value in more.items():
            setattr(self, name, value)
        self._forget()

    @property
    def tables(self) -> list[Table]:
        """All tables that ever existed."""
        return self._catalog.tables

    @property
    def modes(self) -> Modes:
        """How Debezium sends decimals, times and binary values."""
        return self._modes

    @property
    def edits(self) -> int:
        """How often tables were edited."""
        return self._room.edits

    @property
    def misfit_count(self) -> int:
        """How many values went into `unparsed` as text in this process."""
        return self._room.counted

    @one_at_a_time
    def add(self, change: Change) -> list[TypedChange]:
        """Process the next change of the stream and return it as typed changes.

        The list (of `TypedChange`) is empty unless rows of a table change. A change of a row's key becomes a
        delete and an insert; a TRUNCATE yields one change per table that it empties. A repeated statement has
        no effect. Raises `DdlError` for a statement that cannot be parsed and `SchemaError` for one that
        contradicts its table, both without any effect; raises `StructureError`, which names the column, for a
        row that contradicts its table, and for one without a table or a known operation.
        """
        change = self.with_given_table(plain_numbers(change))
        statement = self.key_statement(change)
        if statement is not None:
            self._follower.follow(statement, time_of(statement))
        found = self.learn(change)
        if found is None:
            return self.write(change, self._tables_to_empty(change) if empties(change) else [])
        return self.write(change, [found])

    def with_given_table(self, change: Change) -> Change:
        """Return a change with the table given for changes that name none, as `learn`, `find` and `write` expect it."""
        return change if change.source.table and change.columns != () else self.given_table.with_given_table(change)

    def stated_key(self, name: TableName | None) -> tuple[str, ...]:
        """Return the key that was stated for the name of a table whose rows do not have it yet; empty if none was."""
        return () if name is None else tuple(self._follower.keys[name])

    def key_statement(self, change: Change) -> Change | None:
        """Return the statement of the key given for the table of a change, as `StatedKeys.statement` does."""
        return self._follower.keys.statement(change)

    def is_alone(self, table: Table) -> bool:
        """Return whether no other table ever had the name of a table that was not renamed."""
        return self._catalog.only_bearer(table.schema.table) is table

    def all_bearers(self, name: TableName) -> list[Table]:
        """Return the tables of which a row may be whose table has a name; none of a new name."""
        return self._catalog.all_bearers(name)

    @one_at_a_time
    def learn(self, change: Change) -> TableVersion | None:
        """Apply what a change says about tables; return a row change's table and version. Raises as `add` does."""
        if change.op in DML and (change.after is not None or change.before is not None):
            last = self._last
            if last is not None and last.is_for(change, self._room.edits):
                return last.table_version
            if (name := self._name(change.source)) is not None:
                return self._row(change, name)
        check_row(change)
        says = (change.ddl, change.columns, change.tables)
        if change.op in DDL and (says != (None, None, None) or change.op == "ERASE" or states_key_only(change)):
            self._follower.follow(change, time_of(change))
        return None

    def renamings(self, change: Change) -> list[tuple[TableName, TableName, bool]]:
        """Return the names of known tables that a statement renames, old and new, and whether rows came under the new one.

        That is so of the table that bears it before the statement, or until another one of the same time.
        """
        return self._follower.renamings(change, time_of(change)) if change.op in DDL else []

    def refusal(self, *statements: Change) -> CdcAvroError | None:
        """Return why statements of one time cannot all be learned; None if they can, or the last one was before."""
        return self._follower.refusal(statements, time_of(statements[-1]))

    @one_at_a_time
    def lasting_writer(
        self, change: Change, *, is_all_learned: bool = False
    ) -> tuple[Table, TableWriter, Change] | None:
        """Return the table and writer of a row change, and the completed change, if they hold for all changes like it.

        A change is like it if it has the same source, operation, key and columns (or, if none are stated, has values
        for columns of the version only), at any time, except for `last_number`. They hold until a table is edited. Once
        everything is learned, they are what `find` returns.
        """
        change = self.with_given_table(change)
        name = self._name(change.source) if change.op in DML else None
        table = None if name is None else self._catalog.only_bearer(name)
        if table is None or name is None or table.takes_key(self._follower.key_of(change, name)):
            return None
        if self._follower.keys.is_other(change, name):
            return None
        schema = table.schema if len(table.versions) == 1 else None
        if change.columns is not None and is_all_learned:
            schema = table.only_version(change.columns, change.source, self._given)
        elif change.columns is not None:
            schema = table.settled_version(change.columns, change.source)
        if schema is None:
            return None
        completed = self._complete(change, schema)
        return table, self._writer(table, schema, completed), completed

    def last_number(self, table: Table, change: Change) -> int | None:
        """Return the greatest first number of the order for which `lasting_writer` holds; None if it holds for all."""
        if change.op != "UPDATE" or change.columns is None:
            return None
        return table.last_number(change.columns, change.source, self._given)

    @one_at_a_time
    def find(self, change: Change) -> list[TableVersion]:
        """Return the tables and versions of a change that `learn` has seen, by the change's place in the order.

        Raises `SchemaError` for a change that was not learned, `OrderError` for one that cannot be ordered, and
        `StructureError` for a row without a table or a known operation.
        """
        check_row(change)
        key, name = time_of(change), table_name_of(change.source)
        if key is None:
            raise OrderError(change.source.format, change.source.table)
        if empties(change):
            return self._tables_to_empty(change)
        if change.op not in DML or name is None:
            return []
        table = self._catalog.bearer_at(name, key, change)
        self._follower.check(change, name, table, key)
        if table is None:
            check_names(change)
            raise SchemaError(name.table, "the table is not known")
        if table.takes_key(names := self._follower.key_of(change, name)):
            raise SchemaError(name.table, f"the key {', '.join(map(shown, names))} is not known of it")
        if change.columns is None:
            return [(table, table.version_with(names_of_columns(change), key))]
        stated = table.with_known_types(change.columns, change.source, key)
        whole = table.whole_version(stated, change.source, self._given, key, is_update=change.op == "UPDATE")
        if whole is None:
            check_names(change)
        return [(table, whole or table.version_fitting(stated, change.source, self._given, key))]

    @one_at_a_time
    def write(self, change: Change, found: Sequence[TableVersion]) -> list[TypedChange]:
        """Return a change as Avro, once for each of its tables and versions. Raises `StructureError`, `SchemaError`.

        A statement becomes a TRUNCATE of the tables that it was found to empty.
        """
        typed = []
        change = replace(change, op="TRUNCATE") if change.op in DDL else change
        for table, schema in found:
            table.is_written = True
            completed = self._complete(change, schema)
            writer = self._writer(table, schema, completed)
            rows = row_changes(completed)
            typed += [
                TypedChange(table, schema, writer.key(row_change), writer.envelope(row_change), row_change)
                for row_change in (map(partial(_with_nulls, schema), rows) if self.fills_absent else rows)
            ]
        return typed

    def _forget(self) -> None:
        self.user: dict[str, int] = {}
        self._names = WeightedCache(_NAMES)
        self._room = self._catalog.room
        self._writers = WeightedCache(_WRITERS, share=1)
        self._recent: TableWriter | None = None
        self._last: _LastChange | None = None

    def _row(self, change: Change, name: TableName) -> TableVersion:
        columns = change.columns
        table = self._catalog.only_bearer(name)
        names = self._follower.key_of(change, name)
        settled = None
        self._follower.keys.check(change, name)
        if table is not None and columns is not None and not table.takes_key(names):
            is_clear = table.last_number(columns, change.source, self._given) is None
            settled = table.settled_version(columns, change.source) if is_clear else None
        if table is not None and settled is not None:
            self._last = _LastChange(change, self._room.edits, (table, settled))
            return table, settled
        table, key = self._catalog.bearer_and_time(name, change)
        self._follower.check(change, name, table, key)
        if table is None:
            table = self._follower.begin(change, name, key)
        self._catalog.note_spelling(name)
        schema = self._take_columns(change, table, key)
        if table.takes_key(names):
            # Rows before it were written without, so it is that of a new version.
            table.mark_used(schema)
            self._follower.add_key(table, names, change, key)
            schema = self._take_columns(change, table, key)
        table.mark_used(schema)
        return table, schema

    def _take_columns(self, change: Change, table: Table, key: Key | None) -> TableSchema:
        """Return the version of a row, adding one if none has its columns. Raises `SchemaError`."""
        if change.columns is None:
            return table.take_names(names_of_columns(change), change.source, self._given, key)
        stated = table.with_known_types(change.columns, change.source, key)
        whole = table.whole_version(stated, change.source, self._given, key, is_update=change.op == "UPDATE")
        return whole or table.take_columns(stated, change.source, self._given, key, change.key or None)

    def _tables_to_empty(self, change: Change) -> list[TableVersion]:
        """Return the tables that a TRUNCATE empties, each with its version."""
        is_folded = change.ddl is not None and is_mysql(change.source.db_type)
        tables = [
            self._catalog.bearer_and_time(self._known_name(name, is_folded=is_folded), change)
            for name in emptied_tables(change)
        ]
        return [(table, table.version_with((), key)) for table, key in tables if table is not None]

    def _known_name(self, name: TableName, *, is_folded: bool) -> TableName:
        """Return the name of a known table that differs from a statement's in case only, else the statement's."""
        is_other = is_folded and self._catalog.bearer(name) is None
        return (self._catalog.other_spelling(name) if is_other else None) or name

    def _name(self, source: Source) -> TableName | None:
        name: TableName | None = self._names.get(source)
        if name is None and (name := table_name_of(source)) is not None:
            self._names.put(source, name, text_size(astuple(source)))
        return name

    def _complete(self, change: Change, schema: TableSchema) -> Change:
        """Return a change with its table's key, and with its values read where Debezium does not say how to."""
        if change.op == "TRUNCATE":
            return replace(change, source=source_of(change.source, schema.table), columns=None, before=None, after=None)
        change = _with_key_before(change, schema.key_names if change.key is None else change.key)
        if change.key is None and has_all(change, schema.key_names):
            change = replace(change, key=schema.key_names)
        if change.columns is not None:
            completed = complete_types(change.columns, schema, change.source)
            if completed is change.columns:
                return change
            if is_in_part(change.columns, change.source):
                return _with_types(change, completed, self.zone, self._modes)
        columns = columns_of_version(schema)
        is_known = any(column.type is not None for column in columns)
        return with_columns(change, columns, modes=self._modes) if is_known else change

    def _writer(self, table: Table, schema: TableSchema, change: Change) -> TableWriter:
        columns, source, recent = change.columns, change.source, self._recent
        if recent is not None and recent.is_for(schema, source, columns):
            return recent
        writer: TableWriter | None = self._writers.get(facts := (table.number, schema.version, source, columns))
        if writer is None or writer.schema is not schema:
            ways: Any = {"zone": self.zone, "modes": self._modes, "is_strict": self._is_strict}
            count = partial(self._room.count, self.misfits.setdefault(table.number, Counter()))
            writer = TableWriter(schema, source, columns, **ways, count=count)
            self._writers.put(facts, writer, min(weight_of(schema.columns), _WRITERS))
        self._recent = writer
        return writer

"""Schema changes: what was decided for each statement of a batch, which a lake table of the pipeline's own may have.

The decision is made of the statement, and of what the settings say of its table and kind, so a batch that is run again,
on whichever runner, makes the same ones. A statement is taken apart into its steps, each with a decision of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from cdcavro.change.model import DDL
from cdcavro.errors import CdcAvroError, DdlError, JobError, plain, shown
from cdcavro.lake.evolution import (
    ADD_COLUMN,
    ALTER_TYPE,
    DROP_COLUMN,
    DROP_TABLE,
    EXCEPTION,
    IGNORE,
    LENIENT,
    RENAME_COLUMN,
    TRUNCATE_TABLE,
)
from cdcavro.lake.learning import identity_of
from cdcavro.sync.protection import without_literals, without_values_of
from cdcavro.table.ddl.parse import parts_of, states_key_only, steps_of
from cdcavro.table.ddl.steps import (
    AddColumn,
    AddKey,
    AlterTable,
    ChangeColumn,
    CreateTable,
    DropColumn,
    DropConstraint,
    DropDatabase,
    DropDefault,
    DropKey,
    DropTable,
    ModifyColumn,
    NoChange,
    RenameColumn,
    RenameTable,
    RenameTo,
    SetDefault,
    SetNullable,
    TableName,
    TextToBytes,
    Truncate,
)
from cdcavro.table.table_names import statement_table, table_name_of

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Sequence
    from datetime import datetime

    from cdcavro.change.model import Change
    from cdcavro.lake.lakes import Attempt
    from cdcavro.lake.learning import Learner
    from cdcavro.sync.outputs.sink_settings import LakeNames, LakeSettings
    from cdcavro.sync.settings import Chosen
    from cdcavro.table.ddl.steps import Action, Step
    from cdcavro.table.history import Table

# The columns of the lake table, with their types as Spark spells them.
COLUMNS: Final = {
    "batch": "bigint",
    "time": "timestamp",
    "table_name": "string",
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "file": "string",
    "line": "bigint",
    "format": "string",
    "statement": "string",
    "kind": "string",
    "step": "string",
    "decision": "string",
    "reason": "string",
}
# What identifies a row; the first one bounds what is looked at.
IDENTITY: Final = ("batch", "table_name", "topic", "partition", "offset", "file", "line", "statement", "step")
APPLIED: Final = "applied"
EXCLUDED: Final = "excluded"
KEPT: Final = "kept"
IGNORED: Final = "ignored"
REFUSED: Final = "refused"
UNCHANGED: Final = "no change"
NOT_UNDERSTOOD: Final = "not understood"
NOT_FOLLOWED: Final = "not followed"
_RENAME_TABLE: Final = "rename.table"
_ALTER: Final = "alter.table"
_NONE: Final = "none"
_OF_COLUMNS: Final = frozenset({ADD_COLUMN, DROP_COLUMN, RENAME_COLUMN, ALTER_TYPE})
_IN_PART: Final = "a partition lost its rows, which no change tells"


class SchemaChange(NamedTuple):
    """A step of a statement, with what was decided; the fields are the columns behind `time`."""

    table_name: str | None
    topic: str | None
    partition: int | None
    offset: int | None
    file: str | None
    line: int | None
    format: str | None
    statement: str | None
    kind: str | None
    step: str | None
    decision: str
    reason: str | None = None


class SchemaChangeOutput(Protocol):
    """Writes what was decided for statements."""

    @property
    def name(self) -> str:
        """What it is called in messages."""

    def write(self, rows: Sequence[SchemaChange], batch: int, time: datetime, attempt: Attempt) -> None:
        """Write the rows of a batch, once. Raises errors of this project."""


@dataclass(frozen=True)
class SchemaChanges:
    """What is decided for statements of a pipeline into a lake.

    * `lake` (LakeSettings), `chosen` (Chosen): what the settings say of tables.
    * `is_protecting` (bool): whether columns are protected, so that values are left out of texts.
    * `output` (SchemaChangeOutput or None): where the decisions are written.
    """

    lake: LakeSettings
    chosen: Chosen
    is_protecting: bool = False
    output: SchemaChangeOutput | None = None

    def find(
        self, learned: Sequence[Change], learner: Learner, tables: Sequence[Table], names: LakeNames
    ) -> list[SchemaChange]:
        """Return what is decided for the statements that a batch said: `learned`, and those that were refused."""
        statements = {identity_of(change): (change, None) for change in learned if change.op in DDL}
        refused: dict[bytes, tuple[Change, CdcAvroError | None]] = {
            identity_of(change): (change, error) for change, error in learner.refused
        }
        if not (statements or refused):
            return []
        idle, bearers = {id(change) for change in learner.idle}, _bearers(tables)
        found = []
        for change, error in {**statements, **refused}.values():
            for table, kind, step, decision, reason in self._decisions(change, error, idle, bearers):
                name = None if table is None else self._label(table, bearers, names, tables)
                if table is None or self.chosen.has(table):
                    found.append(self._row(change, name, kind, step, decision, reason))
        return found

    def write(self, rows: Sequence[SchemaChange], batch: int, time: datetime, attempt: Attempt) -> None:
        """Write what was decided in a batch. Raises `JobError`, which says where that failed."""
        if self.output is None or not rows:
            return
        try:
            self.output.write(rows, batch, time, attempt)
        except CdcAvroError as error:
            what = f"the schema changes of batch {batch} cannot be written to {self.output.name}"
            raise JobError(f"{what}: {error}") from error

    def _row(
        self, change: Change, name: str | None, kind: str | None, step: str | None, decision: str, reason: str | None
    ) -> SchemaChange:
        place = change.place
        at = (None,) * 5 if place is None else (place.topic, place.partition, place.offset, place.file, place.line)
        statement, said, why = change.ddl, step, reason
        if self.is_protecting:
            statement = None if statement is None else without_values_of(statement, change.source.db_type)
            said, why = (None if text is None else without_literals(text) for text in (said, why))
        return SchemaChange(name, *at, change.source.format, statement, kind, said, decision, why)

    def _decisions(
        self, change: Change, error: CdcAvroError | None, idle: Container[int], bearers: dict[TableName, Table]
    ) -> Iterator[tuple[TableName | None, str | None, str | None, str, str | None]]:
        """Yield the steps of a statement, each with its table, its kind, a sentence, the decision and why."""
        own = table_name_of(change.source)
        if error is not None:
            yield own, None, None, NOT_UNDERSTOOD if isinstance(error, DdlError) else REFUSED, str(error)
            return
        for table, kind, step in _steps(change):
            excluded = self._excluded(table, bearers)
            if kind == _NONE:
                is_lost = table is not None
                yield table or own, None, step, NOT_FOLLOWED if is_lost else UNCHANGED, _IN_PART if is_lost else None
            elif id(change) in idle and kind != TRUNCATE_TABLE:
                yield table, kind, step, UNCHANGED, None
            elif kind == _ALTER and change.ddl is None and excluded:
                yield table, kind, step, APPLIED, f"but for {', '.join(sorted(excluded))}"
            else:
                yield table, kind, step, _decision(kind, excluded, self.lake.behavior), None

    def _excluded(self, table: TableName | None, bearers: dict[TableName, Table]) -> frozenset[str]:
        if table is None:
            return frozenset()
        rules = self.lake.statements
        return rules.excluded_of(bearers[table]) if table in bearers else rules.excluded_for([table])

    @staticmethod
    def _label(table: TableName, bearers: dict[TableName, Table], names: LakeNames, tables: Sequence[Table]) -> str:
        is_named = table in bearers and bearers[table].number in names.names
        return names.label(bearers[table]) if is_named else names.coming_label(table, tables)


def sentences(rows: Sequence[SchemaChange]) -> list[str]:
    """Return what is to be said of the steps that are not followed, as they are excluded."""
    return [
        f"{plain(row.table_name or '')}: {row.kind} is excluded: not followed: {plain(row.step or '')}"
        for row in rows
        if row.decision == EXCLUDED
    ]


def _bearers(tables: Sequence[Table]) -> dict[TableName, Table]:
    """Return the last table that had each name."""
    return {schema.table: table for table in tables for schema in table.versions}


def _decision(kind: str, excluded: Container[str], behavior: str) -> str:
    """Return what becomes of a step of a kind, one of those that are written."""
    if kind in excluded:
        return EXCLUDED
    if kind == _RENAME_TABLE:
        # The lake table keeps its name.
        return KEPT
    if kind in _OF_COLUMNS:
        of_behavior = {IGNORE: IGNORED, EXCEPTION: REFUSED}.get(behavior, APPLIED)
        return KEPT if kind == DROP_COLUMN and behavior == LENIENT else of_behavior
    return APPLIED


def _steps(change: Change) -> Iterator[tuple[TableName | None, str, str | None]]:
    """Yield the steps of a statement, each with its table, its kind, and a sentence on it."""
    source = change.source
    if change.ddl is None and change.op == "TRUNCATE":
        yield table_name_of(source), TRUNCATE_TABLE, "the table loses all its rows"
        return
    if states_key_only(change):
        yield table_name_of(source), _ALTER, f"the key is {', '.join(map(shown, change.key or ()))}"
        return
    for part in parts_of(change):
        try:
            steps = steps_of(part)
        except DdlError:
            # It is of a table of which the rows say all.
            steps = (NoChange("what is not understood"),)
        for step in steps:
            for table, kind, said in _steps_of(step):
                yield None if table is None else statement_table(table, source), kind, said


def _steps_of(step: Step) -> Iterator[tuple[TableName | None, str, str | None]]:
    match step:
        case CreateTable(table):
            yield table, "create.table", "the table is created"
        case DropTable(tables):
            yield from ((table, DROP_TABLE, "the table is dropped") for table in tables)
        case Truncate(tables):
            yield from ((table, TRUNCATE_TABLE, "the table loses all its rows") for table in tables)
        case RenameTable(old, new):
            yield old, _RENAME_TABLE, f"the table is renamed to {shown(new.table)}"
        case AlterTable(table, ()):
            yield table, _ALTER, "the table has the columns that are stated"
        case AlterTable(table, actions):
            yield from ((table, kind, said) for action in actions for kind, said in _of_action(action))
        case NoChange(what, emptied):
            yield emptied, _NONE, what
        case DropDatabase():
            yield None, "drop.database", "a database or schema is dropped"
        case _:
            raise TypeError(f"{type(step).__name__} is no step of a statement")


def _of_action(action: Action) -> list[tuple[str, str]]:
    """Return the kinds of what an action does, each with a sentence."""
    match action:
        case AddColumn(column):
            return [(ADD_COLUMN, f"column {shown(column.name)} is added")]
        case DropColumn(name):
            return [(DROP_COLUMN, f"column {shown(name)} is dropped")]
        case RenameColumn(old, new):
            return [(RENAME_COLUMN, f"column {shown(old)} is renamed to {shown(new)}")]
        case ChangeColumn(old, column):
            named = [(RENAME_COLUMN, f"column {shown(old)} is renamed to {shown(column.name)}")]
            return [*(named if old != column.name else []), _defined(column.name, column.type)]
        case ModifyColumn(column):
            return [_defined(column.name, column.type)]
        case RenameTo(new):
            return [(_RENAME_TABLE, f"the table is renamed to {shown(new.table)}")]
        case TextToBytes():
            return [(ALTER_TYPE, "columns of characters become bytes")]
        case AddKey() | DropKey() | DropConstraint() | SetDefault() | DropDefault() | SetNullable():
            return [(_ALTER, "a key, a default or what may be null is changed")]
    raise TypeError(f"{type(action).__name__} is no action of a statement")


def _defined(name: str, type: str | None) -> tuple[str, str]:
    if type is None:
        return _ALTER, f"column {shown(name)} is defined anew"
    # Whether a backslash ends one of its texts, the server's mode says: it is quoted as a whole, which hides all of it.
    return ALTER_TYPE, f"column {shown(name)} is {shown(type) if chr(92) in type else plain(type)}"

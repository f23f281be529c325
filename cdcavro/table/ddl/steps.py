"""The steps that a DDL statement consists of, as plain values that are the same for all dialects."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cdcavro.exact.numbers import ExactNumber


@dataclass(frozen=True, slots=True)
class TableName:
    """A table's name as a statement writes it, with None for the parts that it leaves out."""

    # A single qualifier is the database in MySQL and its kin, and the schema everywhere else.
    database: str | None
    schema: str | None
    table: str


@dataclass(frozen=True, slots=True)
class Constant:
    """The constant value of a DEFAULT.

    `value` is a str for a string, a date or a time; an `ExactNumber` for a number, with the digits
    of the statement; bytes for `b'…'`, `x'…'` and `0x…`; a bool for TRUE and FALSE; None for NULL.
    """

    value: str | ExactNumber | bytes | bool | None


@dataclass(frozen=True, slots=True)
class Expression:
    """A DEFAULT that the source computes: `CURRENT_TIMESTAMP(3)`, `(uuid())`, `nextval('s')`."""

    text: str


@dataclass(frozen=True, slots=True)
class ColumnDef:
    """What a statement says about a column."""

    name: str
    # As spelled, with single spaces, no spaces around brackets and commas, and labels in apostrophes, `''` for one.
    type: str | None = None
    # None if not stated.
    nullable: bool | None = None
    # None if not stated.
    default: Constant | Expression | None = None
    # Whether the definition itself says PRIMARY KEY.
    key: bool = False
    # Whether the column is computed from others.
    generated: bool = False
    # Whether the source numbers its rows.
    numbered: bool = False
    # Whether it states a character set; if that is MySQL's `binary`, the type shows it.
    charset: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class AddColumn:
    """A new column: at the front, after another column, or at the end."""

    column: ColumnDef
    first: bool = False
    after: str | None = None
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropColumn:
    """A column that is dropped."""

    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class RenameColumn:
    """A column's new name."""

    old: str
    new: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class ModifyColumn:
    """A column's new definition.

    `whole` (bool) says whether it replaces the old definition entirely (MySQL), so that what it does not
    state is reset as in a new column; otherwise (Oracle, PostgreSQL, DB2) only what it states changes.
    """

    column: ColumnDef
    first: bool = False
    after: str | None = None
    whole: bool = False
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class ChangeColumn:
    """A column's new name and definition, which replaces the old definition entirely (MySQL)."""

    old: str
    column: ColumnDef
    first: bool = False
    after: str | None = None
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class SetDefault:
    """A column's new default; existing rows keep their values."""

    name: str
    default: Constant | Expression


@dataclass(frozen=True, slots=True)
class DropDefault:
    """A column that loses its default."""

    name: str


@dataclass(frozen=True, slots=True)
class SetNullable:
    """A column that, from now on, may or may not hold NULL."""

    name: str
    nullable: bool


@dataclass(frozen=True, slots=True)
class AddKey:
    """The columns of a new primary key, in the key's order."""

    names: tuple[str, ...]
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropKey:
    """The primary key is dropped."""


@dataclass(frozen=True, slots=True)
class DropConstraint:
    """A constraint dropped by name alone, which may be the primary key (never in MySQL) or a NOT NULL."""

    name: str


@dataclass(frozen=True, slots=True)
class TextToBytes:
    """All columns of characters that become bytes (MySQL's CONVERT TO CHARACTER SET binary)."""


@dataclass(frozen=True, slots=True)
class RenameTo:
    """The table's new name (or its new schema), within ALTER TABLE."""

    new: TableName


Action = (
    AddColumn
    | DropColumn
    | RenameColumn
    | ModifyColumn
    | ChangeColumn
    | SetDefault
    | DropDefault
    | SetNullable
    | AddKey
    | DropKey
    | DropConstraint
    | TextToBytes
    | RenameTo
)


@dataclass(frozen=True, slots=True)
class CreateTable:
    """A new table."""

    table: TableName
    # In order.
    columns: tuple[ColumnDef, ...] = ()
    # The columns of the primary key, empty without a key.
    key: tuple[str, ...] = ()
    # A table whose columns precede its own.
    like: TableName | None = None
    if_not_exists: bool = False
    # Whether it also has the columns of a query, which the statement does not state.
    as_select: bool = False


@dataclass(frozen=True, slots=True)
class DropTable:
    """Tables that are dropped."""

    tables: tuple[TableName, ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropDatabase:
    """A database, or a schema of one, that is dropped with all its tables."""

    database: str | None
    schema: str | None = None


@dataclass(frozen=True, slots=True)
class Truncate:
    """Tables that lose all their rows."""

    tables: tuple[TableName, ...]


@dataclass(frozen=True, slots=True)
class RenameTable:
    """A table's new name. A statement that renames several tables becomes several steps, in order."""

    old: TableName
    new: TableName
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class AlterTable:
    """Changes of one table, in order, without those that affect neither columns nor key."""

    table: TableName
    actions: tuple[Action, ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class NoChange:
    """A statement that changes no table's columns; `what` (str) says what it is about (index, comment, data …).

    `emptied_in_part` (`TableName` or None) is a table that loses the rows of a partition, which no change tells.
    """

    what: str
    emptied_in_part: TableName | None = None


Step = CreateTable | DropTable | DropDatabase | Truncate | RenameTable | AlterTable | NoChange

"""The steps that a DDL statement means for tables: plain values, whichever dialect they were written in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cdcavro.exact.numbers import ExactNumber


@dataclass(frozen=True, slots=True)
class TableName:
    """A table's name as a statement gives it, None for what it leaves out.

    A name before the dot is the `database` in MySQL and its kin, the `schema` everywhere else.
    """

    database: str | None
    schema: str | None
    table: str


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant of a DEFAULT.

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
    """What a statement says of a column.

    Attributes: `type` (str or None), as spelled, with single spaces, none around brackets and
    commas, and labels in apostrophes, `''` for one of these; `nullable` (bool or None), None if not stated; `default`, None if not stated; `key`
    (bool), for PRIMARY KEY in the definition itself; `generated` (bool), for a column that is
    computed from others.
    """

    name: str
    type: str | None = None
    nullable: bool | None = None
    default: Constant | Expression | None = None
    key: bool = False
    generated: bool = False


@dataclass(frozen=True, slots=True)
class AddColumn:
    """A new column: the first, or after another, or the last."""

    column: ColumnDef
    first: bool = False
    after: str | None = None
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropColumn:
    """A column that goes."""

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

    `whole` (bool): it replaces all of the old one (MySQL), so what it does not state is back at
    what a new column has; otherwise (Oracle, PostgreSQL, DB2) only what it states changes.
    """

    column: ColumnDef
    first: bool = False
    after: str | None = None
    whole: bool = False
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class ChangeColumn:
    """A column's new name and definition, which replaces all of the old one (MySQL)."""

    old: str
    column: ColumnDef
    first: bool = False
    after: str | None = None
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class SetDefault:
    """A column's new default. Rows that are there keep their values."""

    name: str
    default: Constant | Expression


@dataclass(frozen=True, slots=True)
class DropDefault:
    """A column without a default from now on."""

    name: str


@dataclass(frozen=True, slots=True)
class SetNullable:
    """A column that may, or may not, hold NULL from now on."""

    name: str
    nullable: bool


@dataclass(frozen=True, slots=True)
class AddKey:
    """The columns of a new primary key, in its order."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DropKey:
    """A primary key that goes."""


@dataclass(frozen=True, slots=True)
class DropConstraint:
    """A constraint that goes, by its name alone: it may be the primary key (never in MySQL) or a NOT NULL."""

    name: str


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
    | RenameTo
)


@dataclass(frozen=True, slots=True)
class CreateTable:
    """A new table.

    Attributes: `columns`, in order; `key` (tuple of str), the primary key's columns, empty without
    one; `like`, the table whose columns it takes, before its own; `as_select` (bool), it also has
    the columns of a query, which the statement does not tell.
    """

    table: TableName
    columns: tuple[ColumnDef, ...] = ()
    key: tuple[str, ...] = ()
    like: TableName | None = None
    if_not_exists: bool = False
    as_select: bool = False


@dataclass(frozen=True, slots=True)
class DropTable:
    """Tables that go."""

    tables: tuple[TableName, ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class Truncate:
    """Tables that lose all their rows."""

    tables: tuple[TableName, ...]


@dataclass(frozen=True, slots=True)
class RenameTable:
    """A table's new name. A statement that renames several is several steps, in its order."""

    old: TableName
    new: TableName
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class AlterTable:
    """Changes of one table, in order, without those that change no column and no key."""

    table: TableName
    actions: tuple[Action, ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class NoChange:
    """A statement that changes no table's columns. `what` (str) says what it is about: index, comment, data, …."""

    what: str


Step = CreateTable | DropTable | Truncate | RenameTable | AlterTable | NoChange

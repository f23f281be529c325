"""Lakes: where tables are, how Delta Lake and Iceberg differ, and whose a table is, whatever writes them.

Each table belongs to the pipeline that created it, which its properties name: two pipelines that write one table would
append every change twice. So a table of another pipeline is refused, or adopted: then what it holds already is not
appended again, no column is dropped, and no column that it has is filled anew.
"""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

from cdcavro.errors import FileError, SchemaError, shown
from cdcavro.lake.escaped_names import folder_names, plain_names, quote
from cdcavro.lake.evolution import ADD, DROP, RENAME, WIDEN, is_wider_decimal
from cdcavro.lake.sql_statements import (
    ADOPTED,
    AGAIN,
    DELETED_AT,
    END,
    FROM,
    IS_DELETED,
    KEY,
    OPERATION,
    ORDER,
    STATE,
    TO,
)
from cdcavro.lake.table_shape import NO_SHAPE, TableShape

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
    from datetime import datetime

    from cdcavro.lake.evolution import Step
    from cdcavro.table.ddl.steps import TableName

# The property that says whose a lake table is.
OWNER: Final = "cdcavro.pipeline"
# The property that says up to when all changes are in.
COMPLETE: Final = "cdcavro.complete_until"
# The property that has the true name of its table.
NAME: Final = "cdcavro.table"
# How deep folders of tables lie: of a database, a schema and a table.
DEPTH: Final = 3
# The lake tables of a table.
SUFFIXES: Final = ("", "deletes", "changes")
# What identifies a change in a changelog; the first one bounds what is looked at.
CHANGE: Final = (ORDER, OPERATION, KEY)
# The beginning of an address, which is no path of a folder.
SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
# What Hadoop calls S3.
_HADOOP_S3: Final = re.compile("s3[an](?=://)")
# What Delta Lake takes in the name of a column only if the column has another name in its files.
_SPECIAL: Final = re.compile(r"[ ,;{}()\n\t=]")
_MODE: Final = "delta.columnMapping.mode"
_MAPPED: Final = {_MODE: "name"}
# Without it, Spark creates a table with local times, but adds none to a table that has none.
_LOCAL_TIMES: Final = {"delta.feature.timestampNtz": "supported"}
_WIDENED: Final = {"delta.enableTypeWidening": "true"}
# A checkpoint takes as long as three small batches. Until the next one, readers read up to 99 small files of the log.
_LOGGED: Final = {"delta.checkpointInterval": "100"}
# No two orders are equal, and few keys are: looking each up in a dictionary of Parquet's, which is given up at a
# megabyte, took a tenth of an append. Parquet reads these from the properties of a table; if names are mapped, it knows
# the columns by others.
_PLAIN: Final = {f"parquet.enable.dictionary#{name}": "false" for name in (KEY, ORDER)}
_WIDER: Final = frozenset({("int", "bigint"), ("float", "double")})
_WIDER_IN_DELTA: Final = _WIDER | {("int", "double")}


class Attempt(NamedTuple):
    """An attempt to write rows."""

    # Whether it is surely the first one.
    is_first: bool = False
    # When the first one was.
    since: datetime | None = None


# It is not known whether it is the first one.
UNKNOWN_ATTEMPT: Final = Attempt()


# What the names of lakes begin with in messages, by which a state says what it is of.
_DELTA: Final = "Delta Lake at "
_ICEBERG: Final = "Iceberg's catalog "


def is_lake(name: str) -> bool:
    """Return whether a sink with a name is a lake.

    >>> is_lake("Delta Lake at /lake"), is_lake("Avro files in /files")
    (True, False)
    """
    return name.startswith((_DELTA, _ICEBERG))


def one_address(address: str) -> str:
    """Return the same address for all those of one place: Hadoop calls S3 otherwise than everybody else does.

    >>> one_address("s3a://bucket/lake/"), one_address("s3://bucket/lake")
    ('s3://bucket/lake', 's3://bucket/lake')
    """
    scheme = _HADOOP_S3.match(address)
    return (address if scheme is None else f"s3{address[scheme.end() :]}").rstrip("/")


@dataclass(frozen=True)
class DeltaLake:
    """A lake of Delta Lake tables in folders.

    * `root` (str): the folder around them, a path or an address such as `s3a://bucket/lake`.
    * `is_older` (bool): whether the folders of tables are named as they were at first.
    * `owner` (str or None): the owner of created tables.
    * `shapes` (tuple[TableShape, ...]): the shapes of tables; the first one that fits counts.
    * `is_readable` (bool): whether tables require neither column mapping nor type widening of readers: when a column is
      renamed, widened or dropped, all files are rewritten.
    """

    root: str
    is_older: bool = False
    owner: str | None = None
    shapes: tuple[TableShape, ...] = field(default=(), kw_only=True)
    is_readable: bool = field(default=False, kw_only=True)
    using = "delta"
    # Whether a kill may leave some of several steps on columns: without Spark they are one commit, or only add columns.
    is_stepwise = False

    @property
    def name(self) -> str:
        """What the lake is called in messages."""
        return f"{_DELTA}{self.folder}"

    @property
    def folder(self) -> str:
        """The root as an absolute path, or as the address that it is."""
        return self.root if SCHEME.match(self.root) else str(Path(self.root).absolute())

    def properties(self, names: Iterable[str]) -> Mapping[str, str]:
        """Return what a table with columns of such names is created with."""
        owned = {} if self.owner is None else {OWNER: self.owner}
        return _LOGGED | _PLAIN | owned | (_MAPPED if any(map(_SPECIAL.search, names)) else {})

    def is_rewritten(self, properties: Mapping[str, str]) -> bool:
        """Return whether steps on the columns of a table with some properties rewrite its files.

        A table that maps column names already continues to do so.
        """
        return self.is_readable and properties.get(_MODE, "none") == "none"

    def properties_for(self, steps: Sequence[Step]) -> Mapping[str, str]:
        """Return the properties that a table needs for steps.

        They are set by the first step that needs them: without them a write takes a tenth less, and more readers can
        read the table.
        """
        is_mapped = any(one.kind in (RENAME, DROP) or _SPECIAL.search(one.column.name) for one in steps)
        is_widened = any(one.kind == WIDEN for one in steps)
        has_times = any(one.kind == ADD and "timestamp_ntz" in one.column.type for one in steps)
        return (_MAPPED if is_mapped else {}) | (_WIDENED if is_widened else {}) | (_LOCAL_TIMES if has_times else {})

    def identifier(self, table: TableName, suffix: str = "") -> str:
        """Return the name of a table in SQL."""
        return quote("delta", self.path(table, suffix))

    def path(self, table: TableName, suffix: str = "") -> str:
        """Return the folder of a table, from the root of its file system on."""
        return "/".join([self.folder.rstrip("/"), *folder_names(table, suffix, is_older=self.is_older)])

    def shape_of(self, table: TableName) -> TableShape:
        """Return what is said of the shape of a table."""
        return _shape_of(self.shapes, table)

    def can_widen(self, old: str, new: str) -> bool:
        """Return whether a column of a type can become one of another, as Spark spells types."""
        return (old, new) in _WIDER_IN_DELTA or is_wider_decimal(old, new, is_scale_free=True)


@dataclass(frozen=True)
class IcebergLake:
    """A lake of Iceberg tables in a catalog.

    * `catalog` (str): the name of the catalog.
    * `is_older` (bool), `owner` (str or None), `shapes` (tuple[TableShape, ...]): as in `DeltaLake`.
    * `is_shared` (bool): whether the catalog is a server or a database, where others have tables, too, and which
      decides where tables are.
    * `is_plain` (bool): whether names have only lower-case letters, digits and `_`, in one level of namespaces.
    """

    catalog: str
    is_older: bool = False
    owner: str | None = None
    shapes: tuple[TableShape, ...] = field(default=(), kw_only=True)
    is_shared: bool = False
    is_plain: bool = False
    using = "iceberg"
    # Whether a kill may leave some of several steps on columns: without Spark they are one commit, or only add columns.
    is_stepwise = False

    @property
    def name(self) -> str:
        """What the lake is called in messages."""
        return f"{_ICEBERG}{self.catalog}"

    def properties(self, names: Iterable[str]) -> Mapping[str, str]:  # noqa: ARG002  as that of Delta Lake
        """Return what a table with columns of such names is created with."""
        return {"format-version": "2", **({} if self.owner is None else {OWNER: self.owner})}

    def properties_for(self, steps: Sequence[Step]) -> Mapping[str, str]:  # noqa: ARG002  as that of Delta Lake
        """Return the properties that a table needs for steps: none."""
        return {}

    def is_rewritten(self, properties: Mapping[str, str]) -> bool:  # noqa: ARG002  as that of Delta Lake
        """Return whether steps on the columns of a table rewrite its files: never."""
        return False

    def parts(self, table: TableName, suffix: str = "") -> tuple[str, ...]:
        """Return the names of a table's namespaces and its own."""
        return plain_names(table, suffix) if self.is_plain else folder_names(table, suffix, is_older=self.is_older)

    def identifier(self, table: TableName, suffix: str = "") -> str:
        """Return the name of a table in SQL."""
        return quote(self.catalog, *self.parts(table, suffix))

    def shape_of(self, table: TableName) -> TableShape:
        """Return what is said of the shape of a table."""
        return _shape_of(self.shapes, table)

    def can_widen(self, old: str, new: str) -> bool:
        """Return whether a column of a type can become one of another, as Spark spells types."""
        return (old, new) in _WIDER or is_wider_decimal(old, new, is_scale_free=False)


def _shape_of(shapes: Sequence[TableShape], table: TableName) -> TableShape:
    return next((shape for shape in shapes if shape.fits(table)), NO_SHAPE)


# The property that says which form the current state of a table has; a table without it has the first one.
FORM: Final = "cdcavro.form"
CURRENT: Final = "current"
SOFT: Final = "soft"
HISTORY: Final = "history"
# The forms of a current state: the rows that there are, deleted ones besides, or all versions of rows; and the columns of
# each beside those of its table. `_cdc_end` is the order of what ended a row or a version.
FORMS: Final[Mapping[str, Mapping[str, str]]] = {
    CURRENT: STATE,
    SOFT: {**STATE, IS_DELETED: "boolean", DELETED_AT: "timestamp", END: "binary"},
    HISTORY: {**STATE, FROM: "timestamp", TO: "timestamp", END: "binary", AGAIN: "array<binary>"},
}


def check_form_name(form: str) -> None:
    """Raise `ValueError` for a word that names no form."""
    if form not in FORMS:
        near = get_close_matches(form.lower(), FORMS, n=1)
        hint = f'did you mean "{near[0]}"?' if near else f"there are {', '.join(FORMS)}"
        raise ValueError(f"{shown(form)} is no form of a current state: {hint}")


def check_form(table: str, form: str, properties: Mapping[str, str]) -> None:
    """Raise `SchemaError` for a table whose lake table, with these properties, has another form."""
    held = properties.get(FORM, CURRENT)
    if held != form:
        raise SchemaError(
            table,
            f'its lake table was begun with form = "{held}", which cannot become "{form}": leave the form as it was, or'
            " begin with another state and lake",
        )


class CompletionTimes:
    """When lake tables were last told up to when they are complete, `minutes` apart."""

    def __init__(self, minutes: float) -> None:
        self._seconds = minutes * 60
        self._told: dict[Hashable, float] = {}

    def properties(self, name: Hashable, complete_until: str | None) -> dict[str, str]:
        """Return the property that a table is told now; none if that is not known, or it is not yet time."""
        now = time.monotonic()
        if complete_until is None or now < self._told.get(name, now - self._seconds) + self._seconds:
            return {}
        self._told[name] = now
        return {COMPLETE: complete_until}


def name_property(table: TableName) -> dict[str, str]:
    """Return the property that says a table's name."""
    return {NAME: json.dumps([table.database, table.schema, table.table])}


Lake = TypeVar("Lake", bound=DeltaLake | IcebergLake)


@dataclass(frozen=True)
class Look(Generic[Lake]):
    """How to look which tables a lake has; each field is a function of the lake, as it names tables, and of a table.

    * `has`: whether any of the table's lake tables is there.
    * `around`: the lake table whose folder, or namespace, that of the table would be in; None if there is none.
    * `within`: a lake table that would be in the folder, or namespace, of the table; None if there is none.
    """

    has: Callable[[Lake, TableName], bool]
    around: Callable[[Lake, TableName], str | None]
    within: Callable[[Lake, TableName], str | None]


def locate(lake: Lake, table: TableName, look: Look[Lake]) -> Lake:
    """Return the lake as it names a table: as at first, if the table is only there under its first name."""
    older = replace(lake, is_older=True)
    if lake.identifier(table) == older.identifier(table) or look.has(lake, table) or not look.has(older, table):
        return lake
    return older


def check_separate(lake: Lake, table: TableName, look: Look[Lake]) -> None:
    """Check that a lake table has its present name, and that its folder is not in another table's, nor around it.

    Raises `SchemaError`, which says what to do.
    """
    place, newer = lake.identifier(table), replace(lake, is_older=False).identifier(table)
    found = locate(lake, table, look)
    if found != lake:
        raise SchemaError(
            table.table,
            f"its lake table is there under the name that it had at first, {found.identifier(table)}: move it, with those"
            f" beside it, to {newer}, or say is_older=True of the lake",
        )
    outer = look.around(lake, table)
    if outer is not None:
        to = (
            f"it, with those beside it, to {newer}" if place != newer else "that one to where its name is now, below ~~"
        )
        raise SchemaError(
            table.table,
            f"its lake table {place} is in the folder of another, {outer}, and whatever removes old files of that one"
            f" removes its own: move {to}",
        )
    inner = None if look.has(lake, table) else look.within(lake, table)
    if inner is not None:
        raise SchemaError(
            table.table,
            f"the folder of its lake table {place} would be around another, {inner}, and whatever removes old files removes"
            " those of that one: move that one, with those beside it, to where the name of its schema has ~~ behind it",
        )


# The order up to which a changelog is the former owner's.
UNTIL: Final = "cdcavro.adopted.until"
REFUSAL: Final = (
    "stop that pipeline and adopt the table (--adopt, or adopt in [lake]), to which nothing is then appended twice, or use"
    " another lake"
)


def foreign_table_error(identifier: str, owner: str | None) -> FileError:
    """Return the error for a lake table of another pipeline."""
    got = f"one of another pipeline ({owner})" if owner else "one that another pipeline, or nobody known, has written"
    return FileError(identifier, "a lake table of this pipeline", f"{got}: {REFUSAL}")


def adopts(identifier: str, owner: str | None, *, is_known: bool, is_adopting: bool) -> bool:
    """Return whether a lake table that says another owner, or none, is adopted; if not, it is only marked.

    A table without an owner is somebody else's, too, unless the pipeline wrote it when tables had none (`is_known`).
    With `is_adopting`, tables of others are adopted. Raises `FileError` for a table that is refused.
    """
    if owner is None and is_known:
        return False
    if not is_adopting:
        raise foreign_table_error(identifier, owner)
    return True


def adopted_properties(owner: str, columns: Iterable[str], until: bytes | None = None) -> dict[str, str]:
    """Return what an adopted table says: its owner, and its columns; of a changelog `until`, its last order, too."""
    said = {OWNER: owner, ADOPTED: json.dumps(list(columns))}
    return said if until is None else said | {UNTIL: until.hex()}


def adopted_columns(properties: Mapping[str, str]) -> frozenset[str] | None:
    """Return the columns that a lake table had when it was adopted, None if it was not."""
    return frozenset(json.loads(properties[ADOPTED])) if ADOPTED in properties else None


def adopted_until(properties: Mapping[str, str]) -> bytes:
    """Return the last order in a changelog when it was adopted, empty if it was not."""
    return bytes.fromhex(properties.get(UNTIL, ""))

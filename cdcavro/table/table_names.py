"""Names of tables: in statements, in changes, and as Avro namespaces; and the keys that are stated for them.

Stated keys are the keys of tables that their rows do not state, but a statement or the user does.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

from msgspec import structs

from cdcavro.avro.types import PRIMITIVES
from cdcavro.change.model import DDL, DML, Change, names_of_columns
from cdcavro.change.operations import check_operation
from cdcavro.errors import SchemaError, StructureError, shorten, shown
from cdcavro.exact.caching import text_size
from cdcavro.table.ddl.steps import TableName

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from cdcavro.change.model import Column, Source
    from cdcavro.table.catalog import TableCatalog
    from cdcavro.table.history import Table


class StatedKeys:
    """The keys that were stated for the names of tables.

    `given` has the columns of keys that the user gives, by patterns of the names of tables; the first one that fits
    counts. A key that the source states is that of the table, and then a given one is not used.
    """

    def __init__(self, tables: TableCatalog, given: Mapping[str, Sequence[str]]) -> None:
        self._tables = tables
        self._given = {pattern: tuple(names) for pattern, names in given.items()}
        # The keys of tables that have no rows yet, or none with the columns of their key, and those that were given.
        self._keys: dict[TableName, tuple[str, ...]] = {}
        # The names for which `statement` was asked.
        self._asked: set[TableName] = set()

    def __getitem__(self, name: TableName) -> Sequence[str]:
        """Return the key that was stated for a name, empty if none was."""
        return self._keys.get(name, ())

    def statement(self, change: Change) -> Change | None:
        """Return the statement of the key that is given for the table of a change; None if it has one, or none is given.

        It is to be learned before the change, and comes once for each name of a table.
        """
        name = table_name_of(change.source) if self._given and (change.op in DML or change.op in DDL) else None
        if name is None or name in self._asked:
            return None
        key = next((names for pattern, names in self._given.items() if fits_caseless(name, pattern)), None)
        if not key:
            return None
        self._asked.add(name)
        table = self._tables.bearer(name)
        if table is not None and table.schema.key_names:
            return None
        stated = names_of_columns(change) if change.columns is None else [column.name for column in change.columns]
        key = spelled_as(key, [*stated, *([] if table is None else table.schema.names)])
        return Change(
            op="CREATE",
            source=change.source,
            key=key,
            position=change.position,
            event_time=change.event_time,
            place=change.place,
            row=change.row,
        )

    def put(self, name: TableName, key: tuple[str, ...]) -> None:
        """Remember the key that is stated for a name. Raises `SchemaError` for want of room."""
        former, room = self._keys.get(name), self._tables.room
        if former != key:
            room.left += 0 if former is None else _size_of(name, former)
            room.reserve(_size_of(name, key), name.table)
            self._keys[name] = key
            room.edits += 1

    def spelled(self, name: TableName, columns: Sequence[Column]) -> Sequence[str]:
        """Return the key that was stated for a name, from now on spelled as the columns of its table are."""
        if name in self._keys:
            self._keys[name] = spelled_as(self._keys[name], [column.name for column in columns])
        return self[name]

    def is_other(self, change: Change, name: TableName) -> bool:
        """Return whether a row states another key than that which was stated for its table, and which the table has."""
        stated, table = self._keys.get(name) if change.key else None, self._tables.bearer(name)
        if stated is None or table is None:
            return False
        return {*table.schema.key_names} == {*stated} != {*(change.key or ())}

    def check(self, change: Change, name: TableName) -> None:
        """Raise `SchemaError` for a row for which `is_other`: under another key it would not be found."""
        if self.is_other(change, name):
            listed = [", ".join(map(shown, names)) for names in (change.key or (), self[name])]
            raise SchemaError(name.table, f"its key was given as {listed[1]}, and a row states {listed[0]}")

    def note_unused(self, table: Table) -> None:
        """Add a finding if a table has another key than the one that was stated for its name."""
        stated, own = self[table.schema.table], table.schema.key_names
        if stated and own and {*stated} != {*own}:
            listed = [", ".join(map(shown, names)) for names in (own, stated)]
            table.add_finding(f"its source states the key {listed[0]}, so {listed[1]}, which was given, is not used")


def _size_of(name: TableName, key: Sequence[str]) -> int:
    """Return what a key that is stated for a name takes."""
    return text_size([name.database, name.schema, name.table, *key])


ROW: Final = "Value"
TOPIC: Final = "@topic"
_PARTS: Final = ("database", "schema", "table")
# How the names of copies end that tools change, how many underscores are in front at most, and how many bytes a name has.
_COPIES: Final = frozenset({"gho", "new"})
_MARKS: Final = 10
_LONGEST: Final = 64
# Stands for the unknown database of a table whose schema is known; no mangled name looks like this.
_NO_DATABASE: Final = "_x_0"


MAX_LENGTH: Final = 255
_RESERVED: Final = PRIMITIVES | {"record", "enum", "array", "map", "union", "fixed", "error", "request"}
_UNFIT: Final = re.compile(r"_(?=x[0-9a-f]*[^A-Za-z0-9])|[^A-Za-z0-9_]|^[0-9]|^\Z")
_EMPTY: Final = "_x_"
_GROUP: Final = re.compile(r"_x([0-9a-f]{1,5}|10[0-9a-f]{4})_|_x_[0-9]+\Z")


def namespace_of(table: TableName) -> str:
    """Return the namespace of a table's records, unique to the table; its number of parts shows what is missing."""
    parts = [mangle(name) for name in (table.database, table.schema, table.table) if name is not None]
    if table.schema is not None and table.database is None:
        parts = [_NO_DATABASE, *parts]
    return ".".join(parts)


def rename_record(full: str, table: TableName) -> str:
    """Return the full name of a record that this package did not make, once its table is renamed.

    >>> rename_record("shop.orders", TableName(None, None, "o2"))
    'shop.o2'
    >>> rename_record("srv.shop.orders.Value", TableName("b", None, "o2"))
    'srv.b.o2.Value'
    """
    above, container, name, below = split_full_name(full)
    into = table.database if table.schema is None else table.schema
    container = container if into in (None, container) or container is None else mangle(into or "")
    parts = [*above, *([] if container is None else [container]), name if name == table.table else mangle(table.table)]
    return ".".join([*parts, *below])


def split_full_name(full: str) -> tuple[list[str], str | None, str, list[str]]:
    """Split the full name of a row's record: the parts above, the database or schema, the table, the parts below.

    A record named `Value` is the row of the table that its namespace names, as Debezium does it.
    """
    parts = full.split(".")
    below = [parts.pop()] if parts[-1] == ROW and len(parts) > 1 else []
    name = parts.pop()
    return parts[:-1], parts[-1] if parts else None, name, below


def table_name_parts(table: TableName) -> dict[str, str]:
    """Return those of a table's true names (database, schema, table) that are known, by part."""
    parts = {"database": table.database, "schema": table.schema, "table": table.table}
    return {part: name for part, name in parts.items() if name is not None}


def table_name_of(source: Source) -> TableName | None:
    """Return the name of a change's table, None if it names none; on OceanBase the tenant precedes the database."""
    if not source.table:
        return None
    database = source.database if source.tenant is None else f"{source.tenant}.{source.database or ''}"
    return TableName(database, source.schema, source.table)


def fits(table: TableName, patterns: Sequence[str], spell: Callable[[str], str] = str) -> bool:
    """Return whether one of these patterns fits the name of a table, with as many parts as the pattern has.

    The parts of the name are spelt as `spell` returns them.
    """
    parts = [spell(part) for part in (table.database, table.schema, table.table) if part is not None]
    names = [".".join(parts[-count:]) for count in range(1, len(parts) + 1)]
    for pattern in patterns:
        dots = pattern.count(".")
        # A name may have dots of its own, and a star must not reach from the database into the table.
        alike = {names[min(dots, len(names) - 1)], *[name for name in names if name.count(".") == dots]}
        if any(fnmatchcase(name, pattern) for name in alike):
            return True
    return False


def fits_caseless(table: TableName, pattern: str) -> bool:
    """Return whether a pattern fits the name of a table as in `fits`, in any case of letters."""
    return fits(table, (pattern.casefold(),), str.casefold)


def spelled_as(names: Sequence[str], known: Iterable[str | None]) -> tuple[str, ...]:
    """Return names as those that are known are spelled, where they differ in case only.

    >>> spelled_as(["ID", "other"], ["id", "a"])
    ('id', 'other')
    """
    own = [one for one in known if one is not None]
    spelled = {one.casefold(): one for one in own} | {one: one for one in own}
    return tuple(spelled.get(name) or spelled.get(name.casefold(), name) for name in names)


_PART: Final = r'"(?:[^"]|"")+"|`(?:[^`]|``)+`|[^".`]*'
_SPELLED: Final = re.compile(rf"({_PART})(?:\.({_PART}))?(?:\.({_PART}))?")


def parse_table_name(text: str) -> TableName:
    """Return the name of a table that is spelled `table`, `database.table` or `database.schema.table`.

    A part with a dot stands in quotes, `"` or backticks, which are doubled within; a database that is not
    known is an empty part. Raises `ValueError` for any other spelling.

    >>> parse_table_name('shop."orders.2024"')
    TableName(database='shop', schema=None, table='orders.2024')
    >>> parse_table_name(".public.orders")
    TableName(database=None, schema='public', table='orders')
    """
    match = _SPELLED.fullmatch(text)
    parts = [] if match is None else [_unquote(part) for part in match.groups() if part is not None]
    if not parts or not parts[-1]:
        raise ValueError(f"a table is spelled table, database.table or database.schema.table, not {shown(text)}")
    database, schema = (*parts[:-1], "", "")[:2]
    return TableName(database or None, schema or None, parts[-1])


def _unquote(part: str) -> str:
    mark = part[:1]
    return part[1:-1].replace(mark * 2, mark) if mark in ('"', "`") else part


@dataclass(frozen=True, slots=True)
class GivenTable:
    """The table of changes that name none; what a change says itself always counts."""

    # The table that is given for them.
    name: TableName | None = None
    # Whether it is the one that is called like their topic, where that is known.
    by_topic: bool = False
    # What the last parts of the topic are, where it is not the table as a whole.
    parts: tuple[str, ...] = ()

    @classmethod
    def of(cls, text: str | None) -> GivenTable:
        """Return the table that a text gives, as in `parse_table_name`, or by `@topic`. Raises `ValueError`.

        `@topic.database.table` says what the last parts of a topic are; there may be a schema, too, or instead.

        >>> GivenTable.of("shop.orders").name.table, GivenTable.of("@topic").by_topic
        ('orders', True)
        """
        topic, *parts = (text or "").split(".")
        if topic.startswith(TOPIC[0]) and topic != TOPIC:
            raise ValueError(f"{TOPIC}, or a name in quotes that begins so, not {shown(text or '')}")
        if topic != TOPIC:
            return cls() if text is None else cls(parse_table_name(text))
        if parts and (parts[-1] != _PARTS[-1] or parts != [part for part in _PARTS if part in parts]):
            raise ValueError(
                f"the last parts of a topic are @topic.database.table or the like, not {shown(text or '')}"
            )
        return cls(by_topic=True, parts=tuple(parts))

    def with_given_table(self, change: Change) -> Change:
        """Return a change with its table, if it names none and one is given for it; any other change unchanged.

        An empty list of columns is left out: every table has columns, so it states none of them.
        """
        if change.columns == ():
            change = structs.replace(change, columns=None)
        source, place = change.source, change.place
        if source.table:
            return change
        if self.by_topic and place is not None and place.topic:
            given = self._named_by(place.topic)
        elif self.name is not None:
            given = self.name
        else:
            return change
        if given is None:
            return change
        full = complete_name(TableName(source.database, source.schema, given.table), given)
        table = full.table if _is_of_table(change) else source.table
        return structs.replace(
            change, source=structs.replace(source, database=full.database, schema=full.schema, table=table)
        )

    def _named_by(self, topic: str) -> TableName | None:
        """Return the table that a topic names; None for a topic of too few parts."""
        names = topic.split(".")[-len(self.parts) :] if self.parts else [topic]
        if len(names) < len(self.parts) or not all(names):
            return None
        above = dict(zip(self.parts[:-1], names, strict=False))
        return TableName(above.get("database"), above.get("schema"), names[-1])


def _is_of_table(change: Change) -> bool:
    return change.op in DML or (change.op == "TRUNCATE" and change.ddl is None)


def has_row_of_table(change: Change) -> bool:
    """Return whether a change is a row change that has its row and names its table."""
    has_row = change.before is not None or change.after is not None
    return change.op in DML and has_row and bool(change.source.table)


def check_row(change: Change) -> None:
    """Raise `StructureError` for a row or a TRUNCATE of no known operation or table, and for a row that is missing."""
    if _is_of_table(change):
        if not change.source.table:
            expected = "a message that names its table, or a table given for those that do not (--table)"
            raise StructureError(expected, "none", format=change.source.format)
        if change.op != "TRUNCATE" and change.before is None and change.after is None:
            raise StructureError("a row before or after the change", "none", format=change.source.format)
    elif change.op != "TOMBSTONE":
        check_operation(change)


def statement_table(name: TableName, source: Source) -> TableName:
    """Return a statement's table name completed from its source; on OceanBase with the tenant, as in row changes."""
    full = complete_name(name, TableName(source.database, source.schema, name.table))
    if source.tenant is None:
        return full
    return TableName(f"{source.tenant}.{full.database or ''}", full.schema, full.table)


def fold_case(name: TableName) -> TableName:
    """Return a table's name in lower case, which is the same for all spellings that differ in case only."""
    database, schema = (part and part.lower() for part in (name.database, name.schema))
    return TableName(database, schema, name.table.lower())


def is_copy_of(name: TableName, table: TableName) -> bool:
    """Return whether tools that change a table in a copy give the copy of a table this name.

    gh-ost calls the copy of `t` `_t_gho`, pt-online-schema-change `_t_new`, with more underscores in front if there is one.
    Both cut off what is too long for a name. Source: gh-ost, `getSafeTableName`; Percona Toolkit, `--new-table-name`.
    """
    copy, own = fold_case(name), fold_case(table)
    stem, _, kind = copy.table.rpartition("_")
    if kind not in _COPIES or (copy.database, copy.schema) != (own.database, own.schema):
        return False
    marks = len(stem) - len(stem.lstrip("_"))
    stems = [stem[count:] for count in range(1, min(marks, _MARKS) + 1)]
    is_cut = len(copy.table.encode()) >= _LONGEST
    return any(one == own.table or (is_cut and one != "" and own.table.startswith(one)) for one in stems)


def is_about(name: TableName, table: TableName) -> bool:
    """Return whether a statement's name means a table; a part that either of them leaves out is not compared."""
    pairs = ((name.database, table.database), (name.schema, table.schema))
    return name.table == table.table and all(
        stated is None or known is None or stated == known for stated, known in pairs
    )


def complete_name(name: TableName, context: TableName) -> TableName:
    """Return a statement's name with the parts that it leaves out taken from another name."""
    database = context.database if name.database is None else name.database
    return TableName(database, context.schema if name.schema is None else name.schema, name.table)


def source_of(source: Source, table: TableName) -> Source:
    """Return a source that names a table; on OceanBase, its database is without the tenant."""
    database = table.database
    if source.tenant is not None and database is not None:
        database = database.removeprefix(f"{source.tenant}.")
    return structs.replace(source, database=database, schema=table.schema, table=table.table)


class NameAllocator:
    """Allocates unique names in Avro's form; unique whatever their case, since Spark ignores it.

    >>> allocator = NameAllocator(["id"])
    >>> allocator.give("ID"), allocator.give("id"), allocator.give("name")
    ('_x49__x44_', 'id_x_2', 'name')
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._names = set(names)
        self._lowered = Counter(name.lower() for name in self._names)

    def __len__(self) -> int:
        return len(self._names)

    def give(self, name: str, *, own: Iterable[str] = ()) -> str:
        """Allocate and return a name in Avro's form.

        `own` are names that the owner of the new name already has and may get again. Raises as `mangle` does.
        """
        allocated = mangle(name)
        for own_name in own:
            self._release(own_name)
        if allocated.lower() in self._lowered:
            allocated = self._distinct_name(name, allocated)
        for avro_name in (*own, allocated):
            self.add(avro_name)
        return allocated

    def add(self, name: str) -> None:
        """Allocate a name that is in Avro's form already."""
        if name not in self._names:
            self._names.add(name)
            self._lowered[name.lower()] += 1

    def _release(self, name: str) -> None:
        self._names.remove(name)
        self._lowered[name.lower()] -= 1
        if not self._lowered[name.lower()]:
            del self._lowered[name.lower()]

    def _distinct_name(self, name: str, mangled: str) -> str:
        """Return a name with its letters as escape groups, or with a number if the exact name or that one is taken."""
        if mangled not in self._names:
            spelled = "".join(_group_of(char) if char.isalpha() or char == "_" else char for char in name)
            spelled = re.sub(r"[^A-Za-z0-9_]|^[0-9]", _group, spelled)
            if spelled.lower() not in self._lowered:
                return spelled
        number = 2
        while f"{mangled}_x_{number}".lower() in self._lowered:
            number += 1
        return f"{mangled}_x_{number}"


def mangle(name: str) -> str:
    """Return a name in Avro's form, which `unmangle` turns back.

    Each character that Avro does not allow becomes an escape group, `_x`, its code point in base 16 and `_`;
    so does the first letter of Avro's own words (`string`, `null`, …). Raises `StructureError` for a
    name of more than 255 characters.

    >>> mangle("customer_id"), mangle("we ird"), mangle("1st"), mangle("string")
    ('customer_id', 'we_x20_ird', '_x31_st', '_x73_tring')
    """
    if len(name) > MAX_LENGTH:
        raise StructureError(f"a name of at most {MAX_LENGTH} characters", f"{shown(name)} of {len(name)}")
    if name in _RESERVED:
        return _group_of(name[0]) + name[1:]
    return _UNFIT.sub(_group, name) or _EMPTY


def check_names(change: Change) -> None:
    """Raise `SchemaError` for a row with a name of its table or of a column that `mangle` does not take."""
    source = change.source
    for name in (source.database, source.schema, source.table, *names_of_columns(change)):
        if name is not None and len(name) > MAX_LENGTH:
            label = shorten(source.table or "", MAX_LENGTH)
            raise SchemaError(label, f"the name {shown(name)} has {len(name)} characters, more than {MAX_LENGTH}")


def is_own_field(field: str, name: str) -> bool:
    """Return whether `mangle` makes the name of a field of a column's name: no two columns that a table ever has have it.

    It is false for a name that looks like that of a field which was numbered or escaped.

    >>> is_own_field("id", "id"), is_own_field("id_x_2", "id"), is_own_field("_x49__x44_", "ID")
    (True, False, False)
    >>> is_own_field("we_x20_ird", "we ird"), is_own_field("id_x5f_x_2", "id_x_2")
    (True, False)
    """
    return ("_x" not in name or _GROUP.search(name) is None) and mangle(name) == field


def unmangle(name: str) -> str:
    """Return the true name behind a name made by `mangle` or by a `NameAllocator`.

    >>> unmangle("we_x20_ird"), unmangle("id_x_2")
    ('we ird', 'id')
    """
    if name == _EMPTY:
        return ""
    return _GROUP.sub(lambda match: chr(int(match[1], 16)) if match[1] else "", name)


def _group(match: re.Match[str]) -> str:
    return _group_of(match[0]) if match[0] else _EMPTY


def _group_of(char: str) -> str:
    return f"_x{ord(char):x}_"

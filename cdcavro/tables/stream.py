"""Changes as typed payloads of their tables, whose schemas evolve as the changes pass.

A table's first version comes from CREATE TABLE, or from the columns of its first change; the next
ones from statements, and from lists of columns that changed without one. A change goes to the
version that has the columns which it states, also when it comes late; one that states none goes to
the version of its time.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from cdcavro.catalog import PRECISE, with_columns
from cdcavro.change import DDL, DML, Change, Column, Source, replace
from cdcavro.ddl import parse_ddl
from cdcavro.ddl_steps import AlterTable, CreateTable, DropTable, NoChange, RenameTable, TableName, Truncate
from cdcavro.errors import OrderError, SchemaError, shown
from cdcavro.formats import debezium
from cdcavro.order import order_key, split_key_change
from cdcavro.tables.evolution import NONE_GIVEN, by_step, completed, created
from cdcavro.tables.evolution import columns_of as created_columns
from cdcavro.tables.history import Table, columns_of
from cdcavro.tables.schema import TableSchema, table_of
from cdcavro.tables.writer import TableWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import tzinfo

    from cdcavro.columns.given import GivenTypes
    from cdcavro.ddl_steps import Step
    from cdcavro.order import Key

KEEP: Final = "keep"
ERROR: Final = "error"
REJECT: Final = "reject"
ON_MISFIT: Final = (KEEP, ERROR, REJECT)
MAX_TABLES: Final = 100_000
_WRITERS: Final = 10_000


@dataclass(frozen=True, slots=True)
class TypedChange:
    """A change of a table's rows in Avro.

    Attributes: `table` (`Table`); `schema` (`TableSchema`), the version that wrote it; `key` (bytes or
    None), a payload of the key's schema, None without a primary key; `payload` (bytes), one of the
    envelope's; `change`, the change itself.
    """

    table: Table
    schema: TableSchema
    key: bytes | None
    payload: bytes
    change: Change


Found = tuple[Table, TableSchema]


class Tables:
    """Follows the tables of a stream of changes.

    `given` are types for columns that state none, or another; `zone` is that of the source;
    `on_misfit` says what becomes of a change with a value that its column's type cannot carry:
    "keep" puts its text into `unparsed`, "error" and "reject" raise for the caller to stop or to set
    it aside; `decimals` is as in `Catalog`. Attributes: `tables` (list of `Table`), all that there were;
    `misfits`, by the number of a table, how many values of each column are text in `unparsed`.
    """

    def __init__(
        self,
        *,
        given: GivenTypes = NONE_GIVEN,
        zone: tzinfo | None = None,
        on_misfit: str = KEEP,
        decimals: str = PRECISE,
    ) -> None:
        if on_misfit not in ON_MISFIT:
            raise ValueError(f"on_misfit is one of {', '.join(ON_MISFIT)}, not {shown(on_misfit)}")
        self._given, self._zone, self._decimals = given, zone, decimals
        self._is_strict = on_misfit != KEEP
        self._live: dict[TableName, Table] = {}
        self._names: dict[TableName, list[tuple[Any, Table]]] = {}
        self._writers: dict[tuple[Any, ...], TableWriter] = {}
        self.tables: list[Table] = []
        self.misfits: dict[int, Counter[str]] = {}

    def add(self, change: Change) -> list[TypedChange]:
        """Take the next change of the stream; give it in Avro if it is one of rows: of one, or TRUNCATE of all.

        A change of a key is a delete and an insert. Raises `DdlError` for a statement that does not
        parse, `SchemaError` for one that its table contradicts: both change nothing. Raises
        `StructureError` for a row that its table contradicts, with the column.
        """
        emptied = [(one, one.schema) for one in self._emptied(change)]
        found = self.learn(change)
        return self.write(change, emptied if found is None else [found])

    def learn(self, change: Change) -> Found | None:
        """Take what a change says of tables; give the table and version of a row's change. Raises as `add`."""
        start = _start(change)
        if change.ddl is not None and change.op in DDL:
            source = replace(change.source, format=None)
            for step in self._steps(change):
                _STEPS[type(step)](self, step, change, source, start)
            return None
        name = table_of(change.source)
        return None if change.op not in DML or name is None else self._row(change, name, start)

    def find(self, change: Change) -> list[Found]:
        """Give the tables and versions of a change that was learned, by its place in the order. Raises `SchemaError`."""
        key, name = order_key(change), table_of(change.source)
        if change.op == "TRUNCATE":
            names = self._truncated(change)
            tables = [self._at(one, key) for one in names]
            return [(one, one.at(None, change.source, self._given, key)) for one in tables if one is not None]
        if change.op not in DML or name is None:
            return []
        table = self._at(name, key)
        if table is None:
            raise SchemaError(name.table, "the table is not known")
        return [(table, table.at(change.columns, change.source, self._given, key))]

    def write(self, change: Change, found: Sequence[Found]) -> list[TypedChange]:
        """Give a change in Avro, for each table and version that it belongs to. Raises `StructureError`."""
        made = []
        for table, schema in found:
            turned = self._turned(change, schema)
            writer = self._writer(table, schema, turned)
            made += [
                TypedChange(table, schema, writer.key(one), writer.envelope(one), one) for one in _rows(turned, schema)
            ]
        return made

    def _row(self, change: Change, name: TableName, start: Key | None) -> Found:
        images = [image for image in (change.before, change.after) if image is not None]
        names = list(dict.fromkeys(column for image in images for column in image))
        table = self._live.get(name)
        columns = change.columns
        if table is None:
            listed = [Column(name=one) for one in names] if columns is None else columns
            table = self._create(name, listed, change.key or (), change.source, start)
            table.is_stated = columns is not None
        if columns is not None:
            schema = table.state(columns, change.source, self._given, start)
        else:
            schema = table.extend(names, change.source, self._given, start)
        table.use()
        return table, schema

    def _create(
        self, name: TableName, columns: Sequence[Column], key: Sequence[str], source: Source, start: Key | None
    ) -> Table:
        if len(self.tables) >= MAX_TABLES:
            raise SchemaError(name.table, f"more than {MAX_TABLES} tables")
        schema = created(name, columns, key, source, self._given)
        table = Table(len(self.tables))
        table.append(schema, (f"table {shown(name.table)} with {len(columns)} columns",), start)
        self.tables.append(table)
        self._name(name, table, start)
        return table

    def _name(self, name: TableName, table: Table, start: Key | None) -> None:
        self._live[name] = table
        self._names.setdefault(name, []).append((start, table))

    def _at(self, name: TableName, key: Key) -> Table | None:
        named = self._names.get(name, [])
        place = bisect_right([start for start, _ in named], key)
        return named[max(place - 1, 0)][1] if named else None

    def _steps(self, change: Change) -> tuple[Step, ...]:
        return parse_ddl(change.ddl or "", change.source.db_type, database=change.source.database)

    def _emptied(self, change: Change) -> list[Table]:
        if change.op != "TRUNCATE":
            return []
        return [self._live[one] for one in self._truncated(change) if one in self._live]

    def _truncated(self, change: Change) -> list[TableName]:
        if change.ddl is None:
            name = table_of(change.source)
            return [] if name is None else [name]
        steps = [one for one in self._steps(change) if isinstance(one, Truncate)]
        return [_named(one, change.source) for step in steps for one in step.tables]

    def _turned(self, change: Change, schema: TableSchema) -> Change:
        """Read the values of a change of Debezium's, which does not say how, by the table's columns."""
        if change.columns is not None or change.source.format != debezium.FORMAT.name:
            return change
        columns = columns_of(schema)
        if all(one.type is None for one in columns):
            return change
        return with_columns(change, columns, decimals=self._decimals)

    def _writer(self, table: Table, schema: TableSchema, change: Change) -> TableWriter:
        facts = (table.number, schema.version, change.source, change.columns)
        writer = self._writers.get(facts)
        if writer is None or writer.schema is not schema:
            if len(self._writers) >= _WRITERS:
                self._writers.clear()
            writer = self._writers[facts] = TableWriter(
                schema,
                change.source,
                change.columns,
                given=self._given,
                zone=self._zone,
                is_strict=self._is_strict,
                misfits=self.misfits.setdefault(table.number, Counter()),
            )
        return writer

    def _on_create(self, step: CreateTable, change: Change, source: Source, start: Key | None) -> None:
        name = _named(step.table, change.source)
        if step.if_not_exists and name in self._live:
            return
        self._live.pop(name, None)
        like = None if step.like is None else self._live.get(_named(step.like, change.source))
        listed = [*([] if like is None else columns_of(like.schema)), *created_columns(step)]
        key = step.key or (like.schema.key_names if like is not None else ())
        is_own = table_of(change.source) == name
        if change.columns is not None and is_own:
            self._create(name, change.columns, change.key or key, change.source, start).is_stated = True
        elif listed and not step.as_select and (step.like is None or like is not None):
            self._create(name, listed, key, source, start).is_stated = True

    def _on_drop(self, step: DropTable, change: Change, _source: Source, _start: Key | None) -> None:
        for one in step.tables:
            table = self._live.pop(_named(one, change.source), None)
            if table is not None:
                table.is_gone = True

    def _on_rename(self, step: RenameTable, change: Change, source: Source, start: Key | None) -> None:
        old, new = _named(step.old, change.source), _named(step.new, change.source)
        table = self._live.pop(old, None)
        if table is not None:
            table.append(*by_step(table.schema, RenameTable(old, new), source, self._given), start)
            self._name(new, table, start)

    def _on_alter(self, step: AlterTable, change: Change, source: Source, start: Key | None) -> None:
        name = _named(step.table, change.source)
        table = self._live.get(name)
        if table is not None:
            schema, steps = by_step(table.schema, AlterTable(name, step.actions), source, self._given)
            if steps:
                table.append(schema, steps, start)
            if schema.table != name:
                del self._live[name]
                self._name(schema.table, table, start)
        if change.columns is None or table_of(change.source) not in (name, table and table.schema.table):
            return
        if table is None:
            table = self._create(name, change.columns, change.key or (), change.source, start)
        table.state(change.columns, change.source, self._given, start)

    def _on_nothing(self, step: NoChange | Truncate, change: Change, source: Source, start: Key | None) -> None:
        """Change nothing: rows that go are no matter of schemas."""


def _rows(change: Change, schema: TableSchema) -> list[Change]:
    if change.op == "TRUNCATE":
        return [replace(change, before=None, after=None)]
    names = schema.key_names if change.key is None else ()
    if names and all(image is not None and image.keys() >= {*names} for image in (change.before, change.after)):
        # The table's key is known from elsewhere than its changes.
        change = replace(change, key=names)
    return split_key_change(change)


def _named(name: TableName, source: Source) -> TableName:
    """Give a statement's name with what it leaves out; on OceanBase with the tenant, as the changes of rows have it."""
    full = completed(name, TableName(source.database, source.schema, name.table))
    return (
        full if source.tenant is None else TableName(f"{source.tenant}.{full.database or ''}", full.schema, full.table)
    )


def _start(change: Change) -> Key | None:
    try:
        return order_key(change)
    except OrderError:
        return None


_STEPS: Final[dict[type, Callable[..., None]]] = {
    CreateTable: Tables._on_create,  # noqa: SLF001
    DropTable: Tables._on_drop,  # noqa: SLF001
    RenameTable: Tables._on_rename,  # noqa: SLF001
    AlterTable: Tables._on_alter,  # noqa: SLF001
    Truncate: Tables._on_nothing,  # noqa: SLF001
    NoChange: Tables._on_nothing,  # noqa: SLF001
}

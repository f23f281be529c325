"""Shard schemas: the one schema under which rows of several tables of the source, its shards, are in Avro files or a topic.

Which columns of shards are one is found as for lake tables, by the same code: a table that has columns and no rows stands
for the lake table. What becomes of its columns becomes of the shared schema, as statements change that of any table: a
version has aliases for what was renamed, null for what was added, and types that read those before. Payloads of a shard are
brought into the newest version, in which `_cdc_shard` says what they are of, in the row and in the key.
"""

from __future__ import annotations

from copy import deepcopy
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, cast

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from cdcavro.arrow.arrays import blank
from cdcavro.arrow.record_batches import VersionPayloads
from cdcavro.errors import FileError, JobError, SchemaError, shown
from cdcavro.lake.account import label_of
from cdcavro.lake.evolution import LENIENT, LakeColumn, columns_behind, is_wider_decimal
from cdcavro.lake.job_state import replace_file
from cdcavro.lake.lake_columns import arrow_type
from cdcavro.lake.sql_statements import SHARD
from cdcavro.lake.table_shape import TableShape
from cdcavro.lake.typed_rows import DROP
from cdcavro.sync.native.native_columns import prepare
from cdcavro.sync.native.shard_tables import ShardVersions
from cdcavro.sync.outputs.writer import KeptRows, WriteResult
from cdcavro.table.ddl.cursor import MAX_COLUMNS
from cdcavro.table.ddl.steps import TableName
from cdcavro.table.evolution.row_edit import RowEdit, is_promotion
from cdcavro.table.history import Table
from cdcavro.table.table_schema import (
    ATTRIBUTE,
    TableSchema,
    as_schema,
    attributes_of,
    avro_label,
    avro_of,
    column_fields,
    column_name,
    is_column,
    table_schema,
    without_attributes,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from pathlib import Path

    from cdcavro.lake.evolution import Step
    from cdcavro.sync.native.native_columns import NativeLake, NativeTable
    from cdcavro.sync.native.shard_tables import ShardLake, ShardTable
    from cdcavro.sync.outputs.writer import BatchRows, Rows, Waiting, Writer

SHARDS: Final = "shards.json"
# What widens a column without a loss, and as Avro's readers do it, by what lakes call types.
_WIDER: Final = frozenset({("int", "bigint"), ("int", "double"), ("float", "double")})
# What a column of the shared schema is said to be as that of the shard is.
_STATED: Final = ("type", "code", "note", "given")
_FIELD: Final = {"name": SHARD, "type": "string", ATTRIBUTE: {"column": SHARD}}
_ROWS_AT_ONCE: Final = 1 << 16


class _ColumnTable:
    """A table that has columns and properties, and no rows, as `NativeTable` says as far as columns of shards need it."""

    def __init__(self, identifier: str, columns: Iterable[LakeColumn], held: dict[str, str] | None) -> None:
        self.identifier, self._columns, self._held = identifier, [*columns], held

    def properties(self) -> dict[str, str] | None:
        """Return the properties; None before there are columns."""
        return None if self._held is None else dict(self._held)

    def columns(self) -> list[LakeColumn]:
        """Return the columns."""
        return list(self._columns)

    def schema(self) -> pa.Schema:
        """Return the names and types of the columns, and of that which says the shard."""
        own = [pa.field(column.name, arrow_type(column.type)) for column in self._columns]
        return pa.schema([*own, pa.field(SHARD, pa.string())])

    def create(self, columns: Sequence[LakeColumn], own: object, properties: Mapping[str, str], _: object) -> None:  # noqa: ARG002
        """Have columns and properties."""
        self._columns, self._held = [*columns], dict(properties)

    def alter(self, steps: Sequence[Step], properties: Mapping[str, str]) -> None:
        """Take steps, and set properties."""
        self._columns = [column for _, column in columns_behind(self._columns, steps)]
        self._held = {**(self._held or {}), **properties}


class _ColumnLake:
    """A lake of one such table, as `NativeLake` says as far as columns of shards need it."""

    using, is_stepwise = "delta", False

    def __init__(self, table: _ColumnTable) -> None:
        self._table = table

    def table(self, *_: object) -> _ColumnTable:
        """Return the table."""
        return self._table

    def shape_of(self, table: TableName) -> TableShape:
        """Return that nothing is said of the shape of a table."""
        return TableShape(table.table)

    def properties(self, _: object) -> dict[str, str]:
        """Return that the table is created without anything else."""
        return {}

    properties_for = properties

    def is_rewritten(self, _: object) -> bool:
        """Return false: there are no files."""
        return False

    def can_widen(self, old: str, new: str) -> bool:
        """Return whether Avro's readers take values of a type for those of another, and lose nothing."""
        return (old, new) in _WIDER or (old != new and is_wider_decimal(old, new, is_scale_free=False))


class _SchemaState(msgspec.Struct):
    """A shared schema as the state has it."""

    # What it is called where it is written: database, schema, table.
    name: tuple[str | None, str | None, str]
    # The row's record; None before there is one.
    row: dict[str, Any] | None = None
    # The columns, each with its name, its field and its type in a lake.
    columns: list[tuple[str, str, str]] = []
    # What is known of shards, as the properties of a lake table have it; None before there is anything.
    held: dict[str, str] | None = None
    # By shards, the number of the table that was written last, and how many of its versions were followed.
    followed: dict[str, tuple[int, int]] = {}
    # By shards, the columns in which those of their fields are that were dropped before any row of them came. Each field
    # has the number of its table before it.
    late: dict[str, dict[str, str]] = {}


class ShardPayloads(NamedTuple):
    """How keys and payloads of a shard become those of the shared schema, wherever that is done.

    * `version` (int): that of the shared schema.
    * `numbers` (tuple of int): the versions of the shard.
    * `envelopes` and `keys` (tuple of str): the texts of the schemas by which these versions wrote payloads and keys, under
      the names of the shared schema; a key's is empty for a version without one.
    * `envelope` and `key` (str): those of the shared schema, whose default says the shard.
    """

    version: int
    numbers: tuple[int, ...]
    envelopes: tuple[str, ...]
    keys: tuple[str, ...]
    envelope: str
    key: str

    def translate(self, rows: pa.Table) -> pa.Table:
        """Return typed rows, with the columns of `table_rows.OF_ROWS`, under the shared schema."""
        parts = [self._translated(batch) for batch in rows.to_batches(max_chunksize=_ROWS_AT_ONCE)]
        return pa.Table.from_batches(parts, rows.schema)

    def _translated(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        versions, key = rows.column("version"), rows.column("key")
        numbers = pc.index_in(versions, pa.array(self.numbers, versions.type))
        # A DROP has no payload.
        is_drop = pc.equal(rows.column("operation"), DROP)
        if pc.any(pc.and_(numbers.is_null(), pc.invert(is_drop))).as_py():
            raise JobError("a row of a shard is of a version that was not followed")
        payload = rows.column("payload").cast(pa.binary())
        payload = _translator(self.envelopes, self.envelope).translate(numbers, blank(payload, is_drop))
        if key.null_count < len(key):
            own = pc.if_else(key.is_valid(), numbers, None)
            key = _translator(self.keys, self.key).translate(own, key.cast(pa.binary()))
        made = {"version": pa.repeat(pa.scalar(self.version), len(rows)), "key": key, "payload": payload}
        columns = [made.get(one.name, rows.column(one.name)).cast(one.type) for one in rows.schema]
        return pa.RecordBatch.from_arrays(columns, schema=rows.schema)


@lru_cache(maxsize=1024)
def _translator(writers: tuple[str, ...], reader: str) -> VersionPayloads:
    return VersionPayloads(writers, reader)


class ShardSchema:
    """The schema that shards share where they are written; `state` is what the pipeline's state has of it."""

    def __init__(self, state: _SchemaState) -> None:
        self.state = state
        self.name = TableName(*state.name)
        # The version that may have been written with.
        self.put = self.version

    @property
    def version(self) -> int:
        """The number of the newest version; 0 before there is one."""
        return 0 if self.state.row is None else int(attributes_of(self.state.row)["version"])

    @property
    def schema(self) -> TableSchema:
        """The newest version."""
        return TableSchema(as_schema(self.state.row or {}))

    def follow(self, table: Table, shard: str, known: ShardVersions, versions: Collection[int]) -> list[str]:
        """Take the columns and keys of a shard's versions, those of rows; return what was done to the schema.

        A version that does not go with other shards is passed over for a later one that does: its columns are known by
        that. `known` knows the newest versions of other shards. Raises `SchemaError`, and has changed nothing.
        """
        before = self.state
        self.state = deepcopy(before)
        try:
            steps = [
                *self._take_columns(table, shard, known, versions),
                *self._take_rest(table, shard, known, versions),
            ]
        except BaseException:
            self.state = before
            raise
        return steps if before.row is not None else []

    def _take_columns(self, table: Table, shard: str, known: ShardVersions, versions: Collection[int]) -> list[str]:
        steps, error = list[str](), None
        number, done = self.state.followed.get(shard, (-1, 0))
        if number > table.number:
            # Late rows of a table that was dropped: another one goes on as the shard.
            return []
        done = done if number == table.number else 0
        wanted = [count for count, one in enumerate(table.versions, 1) if count > done and one.version in versions]
        # A DROP is of no version.
        wanted = wanted or ([] if shard in self.state.followed else [len(table.versions)])
        for count in [*wanted, *([len(table.versions)] if wanted else [])]:
            if error is None and count > wanted[-1]:
                break
            saved = deepcopy(self.state)
            try:
                steps += self._take_version(Table(table.number, versions=table.versions[:count]), shard, known)
                error = None
            except SchemaError as refused:
                self.state, error = saved, refused
        if error is not None:
            raise error
        return steps

    def _lake_table(self, table: Table, shard: str, known: ShardVersions) -> tuple[ShardLake, ShardTable, _ColumnTable]:
        """Return the table that stands for the lake table, and as the shard sees it, with its lake."""
        columns = [LakeColumn(*one) for one in self.state.columns]
        held = _ColumnTable(label_of(self.name), columns, self.state.held)
        lake = known.lake(cast("NativeLake", _ColumnLake(held)), table, self.name, shard, LENIENT)
        return lake, lake.table(self.name), held

    def _take_version(self, table: Table, shard: str, known: ShardVersions) -> list[str]:
        """Take the columns of the newest of a table's versions; return what was done. Raises `SchemaError` halfway."""
        lake, own, held = self._lake_table(table, shard, known)
        prepare(cast("NativeLake", lake), cast("NativeTable", own), table.versions, {}, LENIENT, {})
        state, edit = self.state, self._edit()
        former = {field: name for name, field, _ in state.columns}
        edit.rename_all([(former[one.field], one.name) for one in held.columns() if one.field in former])
        fields, names = {one["name"]: one for one in table.schema.record["fields"]}, own.rows.names
        for column in own.columns():
            # The others are dropped.
            if column.field in fields:
                _take_field(edit, names[column.name], fields[column.field])
        state.columns = [(one.name, one.field, one.type) for one in held.columns()]
        state.held, state.followed[shard] = held.properties(), (table.number, len(table.versions))
        state.row = edit.finish()
        return edit.steps

    def _take_rest(self, table: Table, shard: str, known: ShardVersions, versions: Collection[int]) -> list[str]:
        """Take what is left of versions: columns that were dropped before a row of them came, and those of keys."""
        steps: list[str] = []
        for schema in (one for one in table.versions if one.version in versions):
            places = self._places(table, shard, known)[schema.version]
            for field in (one for one in column_fields(schema.record) if one["name"] not in places):
                edit = self._edit()
                named = (f"{column_name(field)} (late {i})" for i in range(1, MAX_COLUMNS))
                name = next(one for one in named if edit.find(one) is None)
                edit.add(name, avro_of(field), {})
                self.state.late.setdefault(shard, {})[_late(table, field)] = name
                self.state.row, places = edit.finish(), {**places, field["name"]: name}
                steps += edit.steps
            if schema.key is not None:
                edit = self._edit()
                edit.set_key([*(edit.key or [SHARD]), *_key_of(schema, places)])
                self.state.row = edit.finish()
                steps += edit.steps
        return steps

    def _places(self, table: Table, shard: str, known: ShardVersions) -> dict[int, dict[str, str]]:
        """Return by what the shared schema calls it where each field of a table's versions is, as far as they are followed."""
        _, own, _ = self._lake_table(table, shard, known)
        number, count = self.state.followed[shard]
        late = self.state.late.get(shard, {})
        types = {column_name(one): avro_of(one) for one in column_fields(self.state.row or {})}
        now = {one.field: own.rows.names[one.name] for one in own.columns()}
        found: dict[int, dict[str, str]] = {}
        behind: dict[str, str] = {}
        for schema in reversed(table.versions[:count] if number == table.number else table.versions):
            held = found[schema.version] = {}
            called: dict[str, str] = {}
            for field in column_fields(schema.record):
                names = (field["name"], *field.get("aliases", ()))
                places = (behind.get(field["name"]), now.get(field["name"]), late.get(_late(table, field)))
                fitting = (one for one in places if one is not None and one not in held.values())
                name = next((one for one in fitting if _is_read(avro_of(field), types[one])), None)
                if name is not None:
                    held[field["name"]] = name
                    # A version before this one may call the field by any of its names.
                    called |= dict.fromkeys(names, name)
            behind = called
        return found

    def payloads(self, table: Table, shard: str, known: ShardVersions) -> ShardPayloads:
        """Return how payloads of a shard become those of the newest version."""
        places = self._places(table, shard, known)
        # No row is of another version.
        versions = [one for one in table.versions if len(places.get(one.version, ())) == len(column_fields(one.record))]
        writers = [self._as_written(one, places[one.version]) for one in versions]
        row, own = self.state.row or {}, self.schema
        fields = [one | {"default": shard} if one["name"] == _FIELD["name"] else one for one in row["fields"]]
        reader = TableSchema(as_schema(row | {"fields": fields}))
        keys = tuple("" if one.key is None else one.key.json for one in writers)
        key = "" if reader.key is None else reader.key.json
        envelopes = tuple(one.envelope.json for one in writers)
        return ShardPayloads(
            own.version, tuple(one.version for one in versions), envelopes, keys, reader.envelope.json, key
        )

    def _as_written(self, schema: TableSchema, places: Mapping[str, str]) -> TableSchema:
        """Return a version of a shard under the names of the shared schema, with the same payloads."""
        row = self.state.row or {}
        fields = {column_name(one): one["name"] for one in column_fields(row)}
        renamed = [
            {"name": fields[places[one["name"]]], "type": one["type"], ATTRIBUTE: {"column": places[one["name"]]}}
            if is_column(one)
            else one
            for one in schema.record["fields"]
        ]
        key = [] if schema.key is None else _key_of(schema, places)
        return TableSchema(as_schema(row | {"fields": renamed, ATTRIBUTE: attributes_of(row) | {"key": key}}))

    def _edit(self) -> RowEdit:
        """Return the next version in the making; the first one has only what says the shard."""
        row = self.state.row
        if row is None:
            return RowEdit(table_schema(self.name, [_FIELD], ()).record, is_new=False, is_folded=False)
        return RowEdit(row, is_new=self.version == self.put, is_folded=False)


def _late(table: Table, field: Mapping[str, Any]) -> str:
    """Return by what the state knows a field of a table that was dropped before it was seen."""
    return f"{table.number}.{field['name']}"


def _is_read(avro: Any, held: Any) -> bool:
    """Return whether values of a type are read as another, and mean the same."""
    return without_attributes(avro) == without_attributes(held) or is_promotion(avro, held)


def _take_field(edit: RowEdit, name: str, field: dict[str, Any]) -> None:
    """Let a column of a shared schema hold the values of a shard's field, too. Raises `SchemaError` if no type holds both."""
    avro, own, held = avro_of(field), attributes_of(field), edit.find(name)
    stated: dict[str, Any] = {one: own[one] for one in _STATED if one in own}
    if held is None:
        edit.add(name, avro, stated)
        return
    old = avro_of(held)
    if _is_read(avro, old):
        return
    if not is_promotion(old, avro):
        raise SchemaError(
            edit.label,
            f"column {shown(name)} is {avro_label(avro)}, and {avro_label(old)} in other shards: neither type holds the"
            " values of the other",
        )
    edit.retype(name, avro, stated)


def _key_of(schema: TableSchema, places: Mapping[str, str]) -> list[str]:
    """Return by what the shared schema calls them the columns of a version's key."""
    fields = {one.name: one.field for one in schema.columns}
    return [places[fields[name]] for name in schema.key_names]


class ShardFiles(Protocol):
    """Reads rows as a runner holds them."""

    def versions(self, rows: Any) -> list[int]:
        """Return the versions of rows."""

    def translated(self, rows: Any, payloads: ShardPayloads) -> Any:
        """Return rows of a shard under the shared schema."""


class ShardWriter:
    """A writer that first brings rows of shards under one schema, which is in the state before any row is written.

    * `writer` (Writer): what writes the rows.
    * `path` (Path): the file of the shared schemas in the state.
    * `files` (ShardFiles): reads rows.
    * `save`: saves the state.
    """

    def __init__(self, writer: Writer, path: Path, files: ShardFiles, save: Callable[[], None]) -> None:
        self._writer, self._path, self._files, self._save = writer, path, files, save
        self._known = ShardVersions()
        self._schemas: dict[TableName, ShardSchema] | None = None
        self._is_changed = False
        # The versions of tables whose columns are known to be taken, by the tables' numbers.
        self._taken: dict[int, set[int]] = {}
        # Of tables, the state of their schema by which rows were written last, how many versions there were, and how.
        self._ready: dict[int, tuple[_SchemaState, int, TableSchema, ShardPayloads]] = {}

    @property
    def has_changes(self) -> bool:
        """Whether every change is wanted."""
        return self._writer.has_changes

    @property
    def has_states(self) -> bool:
        """Whether current states are wanted."""
        return self._writer.has_states

    def write(self, tables: Sequence[Rows]) -> list[WriteResult]:
        """Write the rows of tables, those of shards under the schema that all of them have then."""
        shards = [(*one, one[2][0].shard) for one in tables if one[2] and one[2][0].shard is not None]
        if not shards:
            return self._writer.write(tables)
        for table, name, _, shard in shards:
            self._known.learn(table, name, shard)
        steps, refused = dict[int, list[str]](), dict[int, WriteResult]()
        # What one shard brings may let another one go on: a batch that is run again must not find more than it did before.
        while left := [one for one in shards if one[0].number not in steps]:
            for table, name, waiting, shard in left:
                try:
                    steps[table.number] = self._follow(table, name, waiting, shard)
                    refused.pop(table.number, None)
                except SchemaError as error:
                    refused[table.number] = WriteResult(table.number, [], str(error))
            if len(refused) == len(left):
                break
        self._put()
        work = [self._shared(*one) for one in tables if one[0].number not in refused]
        written = [one._replace(steps=[*steps.get(one.number, ()), *one.steps]) for one in self._writer.write(work)]
        return [*refused.values(), *written]

    def _follow(self, table: Table, name: TableName, waiting: Waiting, shard: str) -> list[str]:
        own = self._own(name)
        taken, every = self._taken.setdefault(table.number, set()), {one.version for one in table.versions}
        if taken >= every:
            return []
        versions = every
        if len(every) > 1:
            versions = {one for part in waiting for one in self._files.versions(part.rows) if one is not None}
        steps, before = list[str](), own.state
        if not taken >= versions:
            steps = own.follow(table, shard, self._known, versions)
            self._is_changed |= own.state != before
        taken |= versions
        return steps

    def _own(self, name: TableName) -> ShardSchema:
        if self._schemas is None:
            self._schemas = {one.name: one for one in map(ShardSchema, self._read())}
        return self._schemas.setdefault(name, ShardSchema(_SchemaState((name.database, name.schema, name.table))))

    def _read(self) -> list[_SchemaState]:
        if not self._path.exists():
            return []
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=list[_SchemaState])
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise FileError(str(self._path), "the schemas that shards share", str(error)) from error

    def _put(self) -> None:
        """Let the state have the schemas, if they are others than before, before anything is written by them."""
        schemas = (self._schemas or {}).values()
        if self._is_changed:
            text = msgspec.json.encode([one.state for one in schemas if one.state.row is not None])
            replace_file(self._path, text.decode())
            self._save()
            self._is_changed = False
        for one in schemas:
            one.put = one.version

    def _shared(self, table: Table, name: TableName, waiting: Waiting) -> Rows:
        """Return the rows of a table as they are written."""
        shard = waiting[0].shard if waiting else None
        if shard is None:
            return table, name, waiting
        own, count = self._own(name), len(table.versions)
        state, known, schema, payloads = self._ready.get(table.number, (None, 0, None, None))
        if state is not own.state or known != count or schema is None or payloads is None:
            schema, payloads = own.schema, own.payloads(table, shard, self._known)
            self._ready[table.number] = own.state, count, schema, payloads
        parts = [part._replace(kept=self._kept(part, payloads), shard=None) for part in waiting]
        return Table(table.number, versions=[schema]), name, parts

    def _kept(self, part: BatchRows, payloads: ShardPayloads) -> KeptRows:
        # Rows of a frame are nowhere before it is run.
        size = part.kept.size if isinstance(part.kept, KeptRows) else getattr(part.kept, "nbytes", 0)
        return KeptRows(lambda: self._files.translated(part.rows, payloads), size)

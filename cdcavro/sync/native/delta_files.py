"""The data files of a Delta table on this machine: changed one by one, or written anew where `deltalake` would not read them.

`deltalake` 1.6 merges by a join with the whole table, and holds in memory the rows of all files that have none of the
keys. So a table of which nothing more is asked than of a plain one is changed here, file by file.

`deltalake` 1.6 neither reads nor writes a table whose files have narrower types than the table ("type widening"), as
Spark leaves them. So a column is widened by writing all files anew, and a table that Spark has widened becomes a plain
one in the same way, the first time it is used.

It reads the instants that Spark writes, which Parquet calls INT96, as nanoseconds of 64 bits: those before 1678 and
after 2261 would silently be others. So files with such instants are written anew, too.

Source: Delta Lake's protocol, "Add File and Remove File", "Per-file Statistics", "Type Widening"; deltalake 1.6.6.
"""

from __future__ import annotations

import json
import re
import time
from datetime import UTC, datetime, timedelta
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import unquote
from uuid import uuid4

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import ColumnProperties, CommitProperties, WriterProperties

from cdcavro.errors import SchemaError, shown
from cdcavro.lake.escaped_names import plain_column
from cdcavro.lake.lake_columns import arrow_type
from cdcavro.lake.sql_statements import KEY, ORDER
from cdcavro.lake.table_shape import CLUSTER, NO_CLUSTER, parts_delta
from cdcavro.sync.native.delta_log import (
    COMMENT,
    DELETION_VECTORS,
    ID,
    PHYSICAL,
    TYPE_CHANGES,
    TakenError,
    check_folders,
    commit,
    schema_of,
    spark_spelling,
)
from cdcavro.sync.native.file_changes import TableFiles, cast_rows

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence

    from deltalake import DeltaTable

    from cdcavro.sync.native.delta_log import DeltaSchema
    from cdcavro.sync.native.file_changes import Keys

_ROWS: Final = 64 * 1024
_DECIMAL: Final = re.compile(r"decimal\(([0-9]+),[0-9]+\)")
# Instants between these are the same in nanoseconds of 64 bits.
_NEAR: Final = (datetime(1678, 1, 1, tzinfo=UTC), datetime(2262, 1, 1, tzinfo=UTC))
_INSTANT: Final = "timestamp"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
# Features that ask nothing of a writer but what properties and columns say.
_PLAIN: Final = frozenset(
    {"invariants", "appendOnly", "checkConstraints", "changeDataFeed", "generatedColumns", "identityColumns"}
    | {"columnMapping", "timestampNtz", "vacuumProtocolCheck"}
)
_ASKING: Final = ("delta.appendOnly", "delta.enableChangeDataFeed", "delta.enableRowTracking")
_CONSTRAINT: Final = "delta.constraints."
_STATED: Final = frozenset({COMMENT, ID, PHYSICAL, TYPE_CHANGES})
# Every so many versions a checkpoint is written, if the table does not say.
_INTERVAL: Final = ("delta.checkpointInterval", "100")
# Whether commits that are older than the table's retention are removed behind a checkpoint.
_FORGETTING: Final = ("delta.enableExpiredLogCleanup", "true")
# Operations that leave all files as they are, and how many of the last ones are looked at.
_OF_NO_ROWS: Final = frozenset({"SET TBLPROPERTIES", "VACUUM START", "VACUUM END"})
_LOOKED_AT: Final = 100
# What makes up a name that is a folder's as it is, and a text by which all partition files alike, and what the folder of
# rows without a value is called.
_PLAIN_NAME: Final = re.compile("[A-Za-z0-9_]+")
_PLAIN_VALUE: Final = re.compile("[A-Za-z0-9_.-]+")
_NO_VALUE: Final = "__HIVE_DEFAULT_PARTITION__"
# Of a decimal that a double holds, as the log has it.
EXACT_DIGITS: Final = 15
# How many columns have their ends in the log, as with Spark, and how many characters of a text are told there.
_INDEXED: Final = 32
_SHOWN: Final = 32
# The last of all characters.
_LAST: Final = "\U0010ffff"


def far_files(table: DeltaTable, folder: str, schema: DeltaSchema) -> set[str]:
    """Return the paths of files that may have instants which `deltalake` would read as others.

    Statistics of a file say which instants it has; only where they are missing, or far, the file is looked at.
    """
    names = [one["name"] for one in schema.fields if one["type"] == _INSTANT]
    is_nested = any(one["type"] != _INSTANT and f'"{_INSTANT}"' in json.dumps(one["type"]) for one in schema.fields)
    if not names and not is_nested:
        return set()
    files = pa.table(table.get_add_actions()).to_pylist()
    suspects = [file["path"] for file in files if is_nested or not all(_is_near(file, name) for name in names)]
    return {path for path in suspects if _has_old_instants(str(Path(folder, unquote(path))))}


def _is_near(file: Mapping[str, Any], name: str) -> bool:
    """Return whether the statistics of a file say that all instants of a column are near."""
    if (file.get("null_count") or {}).get(name) == file["num_records"] is not None:
        return True
    ends = [(file.get(end) or {}).get(name) for end in ("min", "max")]
    return all(isinstance(end, datetime) and _NEAR[0] <= end.replace(tzinfo=UTC) < _NEAR[1] for end in ends)


@lru_cache(maxsize=1 << 14)
def _has_old_instants(file: str) -> bool:
    """Return whether a file, which never changes, has instants in Parquet's INT96."""
    columns = pq.read_metadata(file).schema
    return any(columns.column(i).physical_type == "INT96" for i in range(len(columns)))


def is_plain(schema: DeltaSchema) -> bool:
    """Return whether whoever changes a table need do no more than to remove files and add others."""
    properties = schema.properties
    is_asking = any(properties.get(name, "false").lower() == "true" for name in _ASKING)
    is_nested = any(not isinstance(one["type"], str) for one in schema.fields)
    return not (
        is_asking
        or (is_nested and schema.is_mapped)
        or not _has_plain_partitions(schema)
        or not all(one["nullable"] for one in schema.fields)
        or not _PLAIN.issuperset(schema.protocol.writer_features)
        or any(name.startswith(_CONSTRAINT) for name in properties)
        or any(name.startswith("delta.") and name not in _STATED for one in schema.fields for name in one["metadata"])
    )


def _has_plain_partitions(schema: DeltaSchema) -> bool:
    """Return whether the log has the values of all columns by which files are partitioned exactly."""
    types = {one["name"]: spark_spelling(one["type"]) for one in schema.fields}
    return all(parts_delta(types[name]) for name in schema.partition)


class DataFile(NamedTuple):
    """A file of a table."""

    # Its path in the log, how many bytes it has, and where it is.
    path: str
    size: int
    place: str
    # The values of the columns by which files are partitioned.
    partition: tuple[Any, ...] = ()


def _data_files(table: DeltaTable, folder: Path) -> list[DataFile]:
    names = table.metadata().partition_columns
    stated = pa.table(table.get_add_actions()).select(["path", "size_bytes", *(["partition"] if names else [])])
    return [
        DataFile(
            one["path"],
            one["size_bytes"],
            str(folder / unquote(one["path"])),
            tuple(one["partition"][name] for name in names),
        )
        for one in stated.to_pylist()
    ]


class DeltaFiles(TableFiles[DataFile]):
    """The data files of one version of a table for which `is_plain`; `operation` is what its history says of the next."""

    def __init__(self, table: DeltaTable, folder: str, schema: DeltaSchema, operation: str = "MERGE") -> None:
        super().__init__()
        self._table, self._folder, self._operation = table, Path(folder), operation
        self.schema = arrow_schema(schema)
        self._held = {one["name"]: _field(one) for one in schema.fields}
        self._parting = _Parting(schema)
        self._interval = int(schema.properties.get(*_INTERVAL))
        self._forgets_log = schema.properties.get(*_FORGETTING).lower() == "true"
        self._added: list[dict[str, Any]] = []

    @cached_property
    def files(self) -> list[DataFile]:
        """The files."""
        return _data_files(self._table, self._folder)

    def within(self, keys: Keys, column: str) -> list[DataFile]:
        """Return the files that may hold any of these keys, by what Parquet says of them."""
        name = self._held[column].name
        return [one for one in self.files if keys.may_lie_within(*_ends(one.place, name))]

    def read(self, file: DataFile, names: Sequence[str] | None = None) -> pa.Table:
        """Return columns of the rows of a file."""
        wanted = self.schema.names if names is None else list(names)
        held = pa.schema([self._held[name] for name in wanted])
        values = self._parting.scalars(file)
        rows = pa.Table.from_batches(_batches(Path(file.place), held, values=values), held).rename_columns(wanted)
        return cast_rows(rows, pa.schema([self.schema.field(name) for name in wanted]))

    def place(self, file: DataFile) -> tuple[str, int]:
        """Return the path of a file, and how many bytes it has."""
        return file.path, file.size

    def group(self, file: DataFile) -> Hashable:
        """Return the values by which a file is partitioned."""
        return file.partition

    @property
    def has_added(self) -> bool:
        """Whether files were written."""
        return bool(self._added)

    def write(self, rows: pa.Table) -> None:
        """Write rows to new files, those of each partition to one, with what its columns lie within."""
        target = pa.schema(list(self._held.values()))
        for partition, part in self._parting.parts(cast_rows(rows.rename_columns(target.names), target)):
            self._added.append(
                _write(self._folder, part.to_batches(), part.schema, _statistics(part), self._parting, partition)
            )

    def commit(self) -> None:
        """Make the version."""
        self.is_committing = True
        version = self._table.version() + 1
        removed = [_remove(one, self._parting) for one in self._removed]
        try:
            commit(str(self._folder), version, self._operation, [*removed, *self._added])
        except TakenError:
            self.is_committing = False
            raise
        if version % self._interval == 0:
            self._table.update_incremental()
            self._table.create_checkpoint()
            if self._forgets_log:
                self._table.cleanup_metadata()

    def discard(self) -> None:
        """Delete the files that were written."""
        discard_added(self._folder, self._added)
        self._added = []


class _Parting:
    """How the files of a table are partitioned: by columns that they do not have, and of which the log has the values."""

    def __init__(self, schema: DeltaSchema) -> None:
        fields = {one["name"]: _field(one) for one in schema.fields}
        self._fields: list[pa.Field] = [fields[name] for name in schema.partition]
        self._names = [one.name for one in self._fields]
        # Where names of folders would need escapes, files are in none.
        self._has_folders = not schema.is_mapped and all(_PLAIN_NAME.fullmatch(name) for name in self._names)

    def scalars(self, file: DataFile) -> dict[str, pa.Scalar]:
        """Return the values of a file's partition, by the names of columns in files."""
        return {one.name: pa.scalar(value, one.type) for one, value in zip(self._fields, file.partition, strict=True)}

    def stored(self, target: pa.Schema) -> pa.Schema:
        """Return the columns of a schema that files have."""
        return pa.schema([one for one in target if one.name not in self._names])

    def parts(self, rows: pa.Table) -> Iterator[tuple[tuple[Any, ...], pa.Table]]:
        """Yield the values and the rows of each partition, without the columns that files do not have."""
        stored = rows.select(self.stored(rows.schema).names)
        if not self._names:
            yield (), stored
            return
        numbered = [*(rows.column(name) for name in self._names), pa.array(range(rows.num_rows), pa.int64())]
        codes = list(map(str, range(len(numbered))))
        grouped = pa.table(numbered, names=codes).group_by(codes[:-1], use_threads=False)
        for group in grouped.aggregate([(codes[-1], "list")]).to_batches():
            for i in range(group.num_rows):
                values = tuple(group.column(code)[i].as_py() for code in codes[:-1])
                yield values, stored.take(group.column(f"{codes[-1]}_list")[i].values)

    def stated(self, partition: Sequence[Any]) -> dict[str, str | None]:
        """Return the values of a partition as the log has them."""
        return {
            name: None if value is None else str(value).lower()
            for name, value in zip(self._names, partition, strict=True)
        }

    def folder(self, partition: Sequence[Any]) -> str:
        """Return the folder of a partition's files in that of the table, with what follows it."""
        stated = self.stated(partition) if self._has_folders else {}
        return "".join(f"{name}={_NO_VALUE if value is None else value}/" for name, value in stated.items())


@lru_cache(maxsize=1 << 14)
def _ends(file: str, name: str) -> tuple[bytes | None, bytes | None]:
    """Return what the binary values of a column lie within in a file, which never changes; None where it is not said."""
    known = pq.read_metadata(file)
    number = next((i for i in range(known.num_columns) if known.schema.column(i).path == name), None)
    if number is None:
        return None, None
    found = [known.row_group(i).column(number).statistics for i in range(known.num_row_groups)]
    if not all(one is not None and one.has_min_max for one in found):
        return None, None
    return min((one.min for one in found), default=None), max((one.max for one in found), default=None)


def _statistics(rows: pa.Table) -> dict[str, Any]:
    """Return what the log says of a file's rows: how many there are, and nulls and ends of columns."""
    ends: dict[str, dict[str, Any]] = {"minValues": {}, "maxValues": {}}
    columns = [*zip(rows.schema, rows.columns, strict=True)][:_INDEXED]
    for field, values in columns:
        for end, value in zip(ends.values(), _spelled_ends(field.type, values), strict=True):
            if value is not None:
                end[field.name] = value
    return {"numRecords": rows.num_rows, **ends, "nullCount": {field.name: held.null_count for field, held in columns}}


def _spelled_ends(kind: pa.DataType, values: pa.ChunkedArray) -> tuple[Any, Any]:
    """Return the least and the greatest value of a column as the log has them; None where it need not have them.

    It has them where it can: a filter of pyarrow's finds no row of a file of which `deltalake` 1.6 expects an end that is
    missing, as those of NaN, infinities and decimals of more than 15 digits are.
    """
    is_time = pa.types.is_date(kind) or pa.types.is_timestamp(kind)
    is_exact = pa.types.is_decimal(kind) and kind.precision <= EXACT_DIGITS
    is_finite = pa.types.is_floating(kind) and pc.all(pc.is_finite(values)).as_py() is not False
    is_plain = pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_string(kind)
    if not (is_time or is_exact or is_finite or is_plain):
        return None, None
    try:
        low, high = pc.min_max(values).as_py().values()
    except (OverflowError, ValueError):
        # A time that Python does not have.
        return None, None
    if low is None:
        return None, None
    if is_time:
        mark = "Z" if pa.types.is_timestamp(kind) and kind.tz is not None else ""
        return tuple(one.isoformat().removesuffix("+00:00") + mark for one in (low, high))
    if pa.types.is_string(kind):
        return low[:_SHOWN], _cut_above(high)
    return (float(low), float(high)) if is_exact else (low, high)


def _cut_above(text: str) -> str | None:
    """Return a text, or, if it is long, a shorter one that is greater, as Spark has it; None if there is none."""
    if len(text) <= _SHOWN:
        return text
    return None if text[_SHOWN] == _LAST else text[:_SHOWN] + _LAST


def rewrite_files(
    table: DeltaTable,
    folder: str,
    schema: DeltaSchema,
    paths: Collection[str] | None = None,
    former: Mapping[str, str] | None = None,
) -> list[dict[str, Any]]:
    """Write files of a table anew in the types of a schema; return the actions that put them in place of the others.

    `folder` is the table's, on this machine; `paths` are those of the files, by default of all. `former` is what columns
    are called in the files, which have no others; by default they are called as in the schema. What was written is
    deleted if not all can be. Raises `SchemaError` for a table of which rows are marked as deleted, and for one that is
    partitioned by values that the log need not have exactly.
    """
    if not _has_plain_partitions(schema):
        raise SchemaError(folder, f"is partitioned by {', '.join(schema.partition)}: run this batch on Spark")
    if DELETION_VECTORS in schema.protocol.writer_features and (schema.is_widened or _has_marks(table)):
        raise SchemaError(
            folder, "has rows that are marked as deleted: run this batch on Spark, or REORG the table there"
        )
    parting, held = _Parting(schema), _Parting(schema_of(table))
    target = parting.stored(pa.schema([_field(one) for one in schema.fields]))
    actions: list[dict[str, Any]] = []
    try:
        for file in _data_files(table, Path(folder)):
            if paths is not None and file.path not in paths:
                continue
            actions.append(_remove(file, held))
            batches = _batches(Path(file.place), target, former)
            actions.append(_write(Path(folder), batches, target, {}, parting, file.partition))
    except BaseException:
        discard_added(Path(folder), actions)
        raise
    return actions


def _has_marks(table: DeltaTable) -> bool:
    return any(batch.num_rows for batch in pa.RecordBatchReader.from_stream(table.deletion_vectors()))


def _remove(file: DataFile, parting: _Parting) -> dict[str, Any]:
    stated = {"path": file.path, "deletionTimestamp": int(time.time() * 1000), "dataChange": True}
    values = parting.stated(file.partition)
    return {"remove": stated | {"extendedFileMetadata": True, "partitionValues": values, "size": file.size}}


def _write(
    folder: Path,
    batches: Iterable[pa.RecordBatch],
    target: pa.Schema,
    statistics: dict[str, Any],
    parting: _Parting,
    partition: Sequence[Any],
) -> dict[str, Any]:
    """Write rows of a partition to a new file; return the action that adds it."""
    name, rows = f"{parting.folder(partition)}part-00000-{uuid4()}-c000.snappy.parquet", 0
    made = folder / name
    made.parent.mkdir(parents=True, exist_ok=True)
    # What is rarely equal has no dictionary, as with Spark.
    packed = [one.name for one in target if one.name not in (KEY, ORDER)]
    try:
        with pq.ParquetWriter(made, target, compression="snappy", use_dictionary=packed) as writer:
            for batch in batches:
                writer.write_batch(batch)
                rows += batch.num_rows
    except BaseException:
        made.unlink(missing_ok=True)
        raise
    stat = made.stat()
    stated = {"path": name, "partitionValues": parting.stated(partition), "size": stat.st_size}
    stated |= {"modificationTime": int(stat.st_mtime * 1000), "dataChange": True}
    return {"add": stated | {"stats": json.dumps({"numRecords": rows} | statistics)}}


def _batches(
    file: Path,
    target: pa.Schema,
    former: Mapping[str, str] | None = None,
    values: Mapping[str, pa.Scalar] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file in the types of a schema; columns that came after the file are null.

    `former` is as in `rewrite_files`; `values` are those of columns that the file does not have.
    """
    called = {name: name for name in target.names} if former is None else former
    given = values or {}
    # In nanoseconds, which is the default, Spark's instants after 2262 are others.
    with pq.ParquetFile(file, coerce_int96_timestamp_unit="us") as parquet:
        wanted = [name for name in called.values() if name not in given]
        for batch in parquet.iter_batches(_ROWS, columns=wanted):
            held = dict(zip(batch.schema.names, batch.columns, strict=True))
            held |= {name: pa.repeat(value, len(batch)) for name, value in given.items()}
            columns = [(field, held.get(called.get(field.name, ""))) for field in target]
            arrays = [
                pa.nulls(len(batch), field.type) if values is None else _cast(values, field.type)
                for field, values in columns
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=target)


def _cast(values: pa.Array, wanted: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(values.type) and pa.types.is_timestamp(wanted) and values.type.tz is None:
        # Spark's older files do not say that their instants are in UTC.
        values = values.cast(pa.timestamp(values.type.unit)).cast(pa.int64()).cast(pa.timestamp("us", wanted.tz))
    return values.cast(wanted)


def arrow_schema(schema: DeltaSchema) -> pa.Schema:
    """Return the names and types of a table's columns."""
    return pa.schema([pa.field(one["name"], arrow_type(spark_spelling(one["type"]))) for one in schema.fields])


def _field(one: Mapping[str, Any]) -> pa.Field:
    """Return a column as files have it."""
    return pa.field(one["metadata"].get(PHYSICAL, one["name"]), _type(one["type"]))


def _type(declared: Any) -> pa.DataType:
    match declared:
        case {"type": "struct", "fields": fields}:
            return pa.struct([_field(one) for one in fields])
        case {"type": "array", "elementType": items}:
            return pa.list_(_type(items))
        case {"type": "map", "keyType": keys, "valueType": values}:
            return pa.map_(_type(keys), _type(values))
        case str():
            return arrow_type(spark_spelling(declared))
    raise SchemaError(str(declared), "is no type of a lake's column")


def discard_added(folder: Path, actions: Sequence[Mapping[str, Any]]) -> None:
    """Delete the files that actions add to a table which is in a folder, and that no version of it has."""
    for one in actions:
        if "add" in one:
            (folder / one["add"]["path"]).unlink(missing_ok=True)


def compact_files(table: DeltaTable, identifier: str, properties: WriterProperties) -> int:
    """Put the small files of a table together, in one commit; return how many files there are fewer.

    All files of a table whose rows are clustered are written anew, unless no rows came since they were. Raises
    `SchemaError` for a table whose columns have other names in files, whose folders have names with special characters, or
    whose partitions have values that need not stay, which `deltalake` does not compact, and for columns that there are not,
    or by which files are partitioned.
    """
    schema, stated = schema_of(table), table.metadata().configuration.get(CLUSTER, NO_CLUSTER)
    if schema.is_mapped:
        raise SchemaError(identifier, "deltalake cannot compact tables with renamed columns: OPTIMIZE on Spark can")
    odd = next((name for name in schema.partition if not _PLAIN_NAME.fullmatch(name)), None)
    if odd is not None:
        # It looks for the files under another name of their folder.
        told = f"deltalake cannot compact tables that are partitioned by {shown(odd)}: OPTIMIZE on Spark can"
        raise SchemaError(identifier, told)
    unkept = _unkept_partition(table, schema)
    if unkept is not None:
        told = f"deltalake may not keep all values of {shown(unkept)}, by which files are partitioned: OPTIMIZE on Spark does"
        raise SchemaError(identifier, told)
    names = _clustering(schema, stated, identifier)
    parting = next((name for name in names if name in schema.partition), None)
    if parting is not None:
        raise SchemaError(identifier, f"cluster in [[table]] names {shown(parting)}, by which files are partitioned")
    if not names:
        found = table.optimize.compact(writer_properties=properties)
    elif _is_clustered(table, stated):
        return 0
    else:
        mark = CommitProperties(custom_metadata={CLUSTER: stated})
        found = table.optimize.z_order(names, writer_properties=properties, commit_properties=mark)
    # One large file may become several.
    return max(0, int(found["numFilesRemoved"]) - int(found["numFilesAdded"]))


def _unkept_partition(table: DeltaTable, schema: DeltaSchema) -> str | None:
    """Return a column by which files are partitioned whose values `deltalake` may not keep as it compacts; None for none.

    It makes NULL of an empty text and other bytes of bytes, and does not find the files of a value with `~`.
    """
    types = {one["name"]: spark_spelling(one["type"]) for one in schema.fields}
    for name in (one for one in schema.partition if not parts_delta(types[one])):
        texts = [one[name] for one in table.partitions()]
        if types[name] != "string" or not all(text is None or _PLAIN_VALUE.fullmatch(text) for text in texts):
            return name
    return None


def _clustering(schema: DeltaSchema, stated: str, identifier: str) -> list[str]:
    """Return the columns by which rows are clustered, whatever case they are stated in, also by names of their table."""
    held = {one["name"].casefold(): str(one["name"]) for one in schema.fields}
    try:
        names = msgspec.json.decode(stated, type=list[str])
    except msgspec.DecodeError:
        told = f"the property {CLUSTER} is a list of columns in JSON, which {shown(stated)} is not"
        raise SchemaError(identifier, told) from None
    found = {name: held.get(name.casefold(), held.get(plain_column(name).casefold(), "")) for name in names}
    missing = next((name for name in names if not found[name]), None)
    if missing is not None:
        raise SchemaError(identifier, f"cluster in [[table]] names {shown(missing)}, which is no column of it")
    return list(found.values())


def _is_clustered(table: DeltaTable, stated: str) -> bool:
    """Return whether nothing but properties has changed since rows were clustered so."""
    for one in table.history(_LOOKED_AT):
        if one.get("operation") not in _OF_NO_ROWS:
            return one.get(CLUSTER) == stated
    return False


def writer_properties(schema: DeltaSchema) -> WriterProperties:
    """Return how files are written: as Spark writes them, without a dictionary of what is rarely equal.

    `deltalake` 1.6 puts the ends of decimals into the log as doubles: Spark would leave out files that have a value
    which it looks for. So there are none of decimals that a double does not hold. Raises `SchemaError` as `check_folders`
    does.
    """
    check_folders(schema)
    plain, silent = ColumnProperties(dictionary_enabled=False), ColumnProperties(statistics_enabled="NONE")
    special = {one["name"]: plain for one in schema.fields if one["name"] in (KEY, ORDER)}
    special |= {one["name"]: silent for one in schema.fields if _has_long_decimal(one["type"])}
    return WriterProperties(
        compression="SNAPPY", column_properties={schema.physical(name): how for name, how in special.items()}
    )


def _has_long_decimal(declared: Any) -> bool:
    found = _DECIMAL.fullmatch(declared) if isinstance(declared, str) else None
    return found is not None and int(found[1]) > EXACT_DIGITS


def sql_literal(value: bytes | datetime | str) -> str:
    """Return a value in the SQL of `deltalake`."""
    if isinstance(value, datetime):
        return f"""arrow_cast({(value - _EPOCH) // _MICROSECOND}, 'Timestamp(Microsecond, Some("UTC"))')"""
    return f"X'{value.hex()}'" if isinstance(value, bytes) else "'" + value.replace("'", "''") + "'"

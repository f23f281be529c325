"""Iceberg files: the data files of an Iceberg table that is read and changed without Spark, one file at a time."""

from __future__ import annotations

import uuid
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io.pyarrow import (
    ArrowScan,
    _dataframe_to_data_files,
    schema_to_pyarrow,
)
from pyiceberg.manifest import ManifestContent
from pyiceberg.schema import Schema
from pyiceberg.table.snapshots import Operation
from pyiceberg.table.update.snapshot import _ManifestMergeManager, _OverwriteFiles
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    UUIDType,
)

from cdcavro.errors import SchemaError
from cdcavro.lake.sql_statements import KEY, ORDER
from cdcavro.sync.native.file_changes import TableFiles, cast_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyiceberg.manifest import DataFile, ManifestFile
    from pyiceberg.table import FileScanTask, Table

    from cdcavro.sync.native.file_changes import Keys

# What Iceberg has for a type of Arrow's, and the other way round.
_TYPES: Final[dict[pa.DataType, IcebergType]] = {
    pa.int8(): IntegerType(),
    pa.int16(): IntegerType(),
    pa.bool_(): BooleanType(),
    pa.int32(): IntegerType(),
    pa.int64(): LongType(),
    pa.float32(): FloatType(),
    pa.float64(): DoubleType(),
    pa.string(): StringType(),
    pa.binary(): BinaryType(),
    pa.date32(): DateType(),
    pa.timestamp("us", "UTC"): TimestamptzType(),
    pa.timestamp("us"): TimestampType(),
}
_ARROW: Final = {iceberg: arrow for arrow, iceberg in _TYPES.items()} | {UUIDType(): pa.string()}
# Pyiceberg would try a commit again with files that were chosen before another writer's commit.
_NEVER_AGAIN: Final = {"commit.retry.num-retries": "0"}
# Of itself it never puts manifests together, as Java does, so that each change would add one for ever.
_AS_JAVA: Final = {"commit.manifest-merge.enabled": "true"}

_METRICS: Final = "write.metadata.metrics."
_FEW_BOUNDS: Final = {
    f"{_METRICS}default": "counts",
    **{f"{_METRICS}column.{name}": "truncate(16)" for name in (KEY, ORDER)},
}


def iceberg_type(arrow: pa.DataType, ids: Iterator[int] | None = None) -> IcebergType:
    """Return the type in Iceberg of one in Arrow, with passing numbers of inner fields. Raises `SchemaError` for others."""
    ids = count(1_000_000) if ids is None else ids
    if arrow in _TYPES:
        return _TYPES[arrow]
    if pa.types.is_decimal(arrow):
        return DecimalType(arrow.precision, arrow.scale)
    if pa.types.is_list(arrow):
        return ListType(next(ids), iceberg_type(arrow.value_type, ids), element_required=False)
    if pa.types.is_map(arrow):
        key, value = iceberg_type(arrow.key_type, ids), iceberg_type(arrow.item_type, ids)
        return MapType(next(ids), key, next(ids), value, value_required=False)
    if pa.types.is_struct(arrow):
        fields = [NestedField(next(ids), one.name, iceberg_type(one.type, ids), required=False) for one in arrow]
        return StructType(*fields)
    raise SchemaError(str(arrow), "Iceberg has no such type")


def arrow_type_of(iceberg: IcebergType) -> pa.DataType:
    """Return the type in Arrow, as lake tables have it, of one in Iceberg. Raises `SchemaError` for one that Spark lacks."""
    match iceberg:
        case DecimalType():
            return pa.decimal128(iceberg.precision, iceberg.scale)
        case ListType():
            return pa.list_(arrow_type_of(iceberg.element_type))
        case MapType():
            return pa.map_(arrow_type_of(iceberg.key_type), arrow_type_of(iceberg.value_type))
        case StructType():
            return pa.struct([pa.field(one.name, arrow_type_of(one.field_type)) for one in iceberg.fields])
        case FixedType():
            return pa.binary()
        case _ if iceberg in _ARROW:
            return _ARROW[iceberg]
    raise SchemaError(str(iceberg), "is no type of a lake's column")


class IcebergFiles(TableFiles["FileScanTask"]):
    """The data files of one version of an Iceberg table, each with the files of deletes that hold for it."""

    def __init__(self, table: Table) -> None:
        super().__init__()
        # What all versions were, and what this one is.
        self.whole = table.metadata
        # A commit reads it again and sends only what it changes, so nothing of this is written. Pyiceberg copies what it
        # is given a dozen times for each commit, and so takes seconds for a thousand snapshots that it does not need.
        properties = _AS_JAVA | table.metadata.properties | _NEVER_AGAIN
        current = table.metadata.current_snapshot()
        update = {"properties": properties, "snapshots": [] if current is None else [current], "snapshot_log": []}
        if properties.get("write.metadata.delete-after-commit.enabled", "false").lower() != "true":
            update["metadata_log"] = []
        table.metadata = table.metadata.model_copy(update=update)
        self.table = table
        self.schema = arrow_schema(table)
        self._added: list[DataFile] = []

    @cached_property
    def files(self) -> list[FileScanTask]:
        """The files."""
        return list(self.table.scan().plan_files())

    def within(self, keys: Keys, column: str) -> list[FileScanTask]:
        """Return the files that may hold any of these keys, by their bounds in the manifests."""
        number = self.table.schema().find_field(column).field_id
        return [one for one in self.files if keys.may_lie_within(*_bounds(one.file, number))]

    def read(self, file: FileScanTask, names: Sequence[str] | None = None) -> pa.Table:
        """Return columns of the rows of a file."""
        schema = self.table.schema()
        wanted = list(self.schema.names if names is None else names)
        fields = [schema.find_field(name) for name in wanted]
        scan = ArrowScan(self.table.metadata, self.table.io, Schema(*fields), AlwaysTrue())
        return cast_rows(scan.to_table([file]), pa.schema([self.schema.field(name) for name in wanted]))

    def place(self, file: FileScanTask) -> tuple[str, int]:
        """Return the path of a file, and how many bytes it has."""
        return file.file.file_path, file.file.file_size_in_bytes

    @property
    def has_added(self) -> bool:
        """Whether files were written."""
        return bool(self._added)

    def write(self, rows: pa.Table) -> None:
        """Write rows to new files."""
        self._added += _write_files(self.table, cast_rows(rows, schema_to_pyarrow(self.table.schema())))

    def append(self, summary: Mapping[str, str]) -> None:
        """Commit the rows that were added; the snapshot is there even if there are none."""
        self.flush()
        self.is_committing = True
        transaction = self.table.transaction()
        with transaction.update_snapshot(snapshot_properties=dict(summary)).merge_append() as producer:
            for file in self._added:
                producer.append_data_file(file)
        transaction.commit_transaction()

    def commit(self) -> None:
        """Make the version."""
        self.is_committing = True
        transaction = self.table.transaction()
        operation = Operation.OVERWRITE if self._added else Operation.DELETE
        with _Overwrite(operation if self._removed else Operation.APPEND, transaction, self.table.io) as producer:
            for task in self._removed:
                producer.delete_data_file(task.file)
            for file in self._added:
                producer.append_data_file(file)
        transaction.commit_transaction()

    def discard(self) -> None:
        """Delete the files that were written."""
        for file in self._added:
            self.table.io.delete(file.file_path)
        self._added = []


def _write_files(table: Table, rows: pa.Table) -> list[DataFile]:
    """Write rows to files, with bounds of columns.

    Of times that Python does not have, as of the year 10,000, and of some texts pyiceberg can find no bounds. Then only
    keys and orders have some: bounds are never needed. The second files replace the first, which have the same names.
    """
    name, properties = uuid.uuid4(), table.metadata.properties
    try:
        return list(_dataframe_to_data_files(table.metadata, rows, table.io, write_uuid=name))
    except (OverflowError, UnicodeError):
        own = {one: value for one, value in properties.items() if not one.startswith(_METRICS)} | _FEW_BOUNDS
        metadata = table.metadata.model_copy(update={"properties": own})
        return list(_dataframe_to_data_files(metadata, rows, table.io, write_uuid=name))


class _Overwrite(_OverwriteFiles):
    """An overwrite that forgets manifests without files, and puts small ones together, as Java's does."""

    def __init__(self, operation: Operation, transaction: Any, io: Any) -> None:
        super().__init__(operation=operation, transaction=transaction, io=io, commit_uuid=uuid.uuid4())

    def _process_manifests(self, manifests: list[ManifestFile]) -> list[ManifestFile]:
        properties = self._transaction.table_metadata.properties
        is_merged = properties.get("commit.manifest-merge.enabled", "true").lower() == "true"
        merged = _ManifestMergeManager(
            target_size_bytes=int(properties.get("commit.manifest.target-size-bytes", 8 << 20)),
            min_count_to_merge=int(properties.get("commit.manifest.min-count-to-merge", 100)),
            merge_enabled=is_merged,
            snapshot_producer=self,
        )
        live = [
            one
            for one in manifests
            if one.has_added_files() or one.has_existing_files() or one.added_snapshot_id == self._snapshot_id
        ]
        data = [one for one in live if one.content == ManifestContent.DATA]
        return merged.merge_manifests(data) + [one for one in live if one.content != ManifestContent.DATA]


def arrow_schema(table: Table) -> pa.Schema:
    """Return the names and types of a table's columns."""
    return pa.schema([pa.field(one.name, arrow_type_of(one.field_type)) for one in table.schema().fields])


def _bounds(file: DataFile, number: int) -> tuple[bytes | None, bytes | None]:
    return (file.lower_bounds or {}).get(number), (file.upper_bounds or {}).get(number)

"""Iceberg files: the data files of an Iceberg table that is read and changed without Spark, one file at a time."""

from __future__ import annotations

import uuid
from datetime import date
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import quote_plus

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io.pyarrow import (
    ArrowScan,
    bin_pack_arrow_table,
    pyarrow_to_schema,
    schema_to_pyarrow,
    write_file,
)
from pyiceberg.manifest import DATA_FILE_TYPE, DEFAULT_READ_VERSION, ManifestContent
from pyiceberg.partitioning import PARTITION_FIELD_ID_START, PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Transaction, WriteTask
from pyiceberg.table.snapshots import Operation
from pyiceberg.table.sorting import NullOrder, SortDirection, SortField, SortOrder
from pyiceberg.table.update import AddSortOrderUpdate, AssertDefaultSortOrderId, SetDefaultSortOrderUpdate
from pyiceberg.table.update.snapshot import _ManifestMergeManager, _OverwriteFiles
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    YearTransform,
)
from pyiceberg.typedef import Record
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
from cdcavro.lake.table_shape import TRANSFORMS, Partition
from cdcavro.sync.native.file_changes import TableFiles, cast_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

    from pyiceberg.io import FileIO
    from pyiceberg.manifest import DataFile, ManifestFile
    from pyiceberg.table import FileScanTask, Table
    from pyiceberg.table.metadata import TableMetadata

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
# Before its second try pyiceberg looks whether the first one succeeded, which `_Once` needs without having one.
_ONE_LOOK: Final = {f"commit.retry.{name}": value for name, value in (("num-retries", "1"), ("min-wait-ms", "0"))} | {
    "commit.retry.total-timeout-ms": str(1 << 40)
}
# Of itself it never puts manifests together, as Java does, so that each change would add one for ever.
_AS_JAVA: Final = {"commit.manifest-merge.enabled": "true"}

# How large files are written, and what is usual.
_TARGET_SIZE: Final = ("write.target-file-size-bytes", 512 << 20)
# The types whose values are sorted here as Iceberg sorts them.
_SORTED: Final = (*map(type, _TYPES.values()), DecimalType)
# Where a data file has the number of the order of its rows.
_ORDER_ID: Final = [one.name for one in DATA_FILE_TYPE[DEFAULT_READ_VERSION].fields].index("sort_order_id")
# All bits of a `long` but that of its sign.
_UNSIGNED: Final = (1 << 63) - 1
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
        properties = _AS_JAVA | table.metadata.properties | _ONE_LOOK
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

    def group(self, file: FileScanTask) -> Hashable:
        """Return what files of one partition have in common."""
        return file.file.spec_id, repr(file.file.partition)

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
        transaction = _Once(self.table)
        with transaction.update_snapshot(snapshot_properties=dict(summary)).merge_append() as producer:
            for file in self._added:
                producer.append_data_file(file)
        transaction.commit_transaction()

    def commit(self) -> None:
        """Make the version."""
        self.is_committing = True
        transaction = _Once(self.table)
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


class _Once(Transaction):
    """A transaction that is committed once: its files were chosen before another writer's commit.

    If it is told to have lost, it may be there all the same: clients of servers ask again where no answer came.
    """

    def _rebuild_snapshot_updates(self) -> None:
        raise CommitFailedException("another commit was made before")


# The transforms of Iceberg's by the names that Spark's SQL has for them.
_TRANSFORMS: Final[dict[str, Callable[..., Transform[Any, Any]]]] = {
    "identity": IdentityTransform,
    "years": YearTransform,
    "months": MonthTransform,
    "days": DayTransform,
    "hours": HourTransform,
    "bucket": BucketTransform,
    "truncate": TruncateTransform,
}
# What is put behind the name of a column for that of a partition, as Spark does it when it creates a table.
_ENDINGS: Final = {"years": "_year", "months": "_month", "days": "_day", "hours": "_hour"} | {
    "bucket": "_bucket",
    "truncate": "_trunc",
}


def transform_of(one: Partition) -> Transform[Any, Any]:
    """Return the transform of a partition."""
    return _TRANSFORMS[one.transform](*[] if one.number is None else [one.number])


def spec_of(partition: Sequence[Partition], schema: Schema) -> PartitionSpec:
    """Return how a new table is partitioned. Raises `ValueError` for a transform that a column cannot have."""
    fields = []
    for number, one in enumerate(partition, PARTITION_FIELD_ID_START):
        source, transform = schema.find_field(one.column), transform_of(one)
        if not transform.can_transform(source.field_type):
            raise ValueError(f"there is no {one}: {one.column} is {source.field_type}")
        name = one.column + _ENDINGS.get(one.transform, "")
        if name != one.column and name in schema.column_names:
            raise ValueError(f"{one} would be called {name}, as a column is")
        fields.append(PartitionField(source.field_id, number, transform, name))
    return PartitionSpec(*fields)


def partitions_of(spec: PartitionSpec, schema: Schema) -> dict[str, Partition]:
    """Return how a table is partitioned, by the names that its partitions have."""
    found = {}
    for field in spec.fields:
        text, _, number = str(field.transform).rstrip("]").partition("[")
        name = text if text in TRANSFORMS else f"{text}s"
        if name in TRANSFORMS:
            found[field.name] = Partition(
                schema.find_column_name(field.source_id) or "", name, int(number) if number else None
            )
    return found


def order_of(names: Sequence[str], schema: Schema) -> list[SortField]:
    """Return the order of rows that are sorted by columns as Spark's `WRITE ORDERED BY` has it: upwards, nulls first."""
    return [
        SortField(schema.find_field(name).field_id, IdentityTransform(), SortDirection.ASC, NullOrder.NULLS_FIRST)
        for name in names
    ]


def put_order(transaction: Transaction, fields: Sequence[SortField]) -> None:
    """Give a table an order, none for no fields.

    Pyiceberg's own call cannot end the order of a table that never was without one.
    """
    metadata = transaction.table_metadata
    orders = {one.order_id: one.fields for one in metadata.sort_orders}
    new = max(orders, default=0) + 1 if fields else 0
    number = next((one for one, held in orders.items() if held == [*fields]), new)
    added = AddSortOrderUpdate.model_validate({"sort-order": SortOrder(*fields, order_id=number)})
    chosen = SetDefaultSortOrderUpdate.model_validate({"sort-order-id": number})
    required = AssertDefaultSortOrderId.model_validate({"default-sort-order-id": metadata.default_sort_order_id})
    transaction._apply((chosen,) if number in orders else (added, chosen), (required,))  # noqa: SLF001


def _sorting(metadata: TableMetadata) -> list[str]:
    """Return the columns by which rows are sorted; none for an order that is not made here."""
    schema, fields = metadata.schema(), metadata.sort_order().fields
    columns = {one.field_id: one for one in schema.fields if isinstance(one.field_type, _SORTED)}
    names = [columns[one.source_id].name for one in fields if one.source_id in columns]
    return names if order_of(names, schema) == fields else []


def _sorted(rows: pa.Table, names: Sequence[str]) -> pa.Table:
    """Return rows sorted by columns."""
    if not names:
        return rows
    # What is false stands first: each null.
    columns = [key for name in names for key in (pc.is_valid(rows.column(name)), _as_sorted(rows.column(name)))]
    keys = pa.table(columns, [str(number) for number in range(len(columns))])
    return rows.take(pc.sort_indices(keys, [(name, "ascending") for name in keys.schema.names]))


def _as_sorted(column: pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Return what Arrow sorts as Iceberg does a column: a NaN stands behind all numbers, and -0.0 before 0.0."""
    if not pa.types.is_floating(column.type):
        return column
    bits = column.cast(pa.float64()).combine_chunks().view(pa.int64())
    return pc.if_else(pc.less(bits, 0), pc.bit_wise_xor(bits, _UNSIGNED), bits)


class _Place:
    """The partition of rows: what the path of its files is made of; `values` are what transforms make of columns."""

    def __init__(self, values: Sequence[Any], spec: PartitionSpec, schema: Schema) -> None:
        self.partition = Record(*values)
        self._values, self._spec, self._schema = values, spec, schema

    def to_path(self) -> str:
        """Return the path of the partition in the folder of the data."""
        try:
            return self._spec.partition_to_path(self.partition, self._schema)
        except (OverflowError, ValueError):
            # A time that Python does not have.
            pairs = zip(self._spec.fields, self._values, strict=True)
            return "/".join(f"{quote_plus(field.name)}={quote_plus(str(value))}" for field, value in pairs)


_TIME_UNITS: Final = {DayTransform: 86_400_000_000, HourTransform: 3_600_000_000}
_DAY: Final = 86_400_000_000


def _function(transform: Transform[Any, Any], source: IcebergType) -> Callable[[Any], Any]:
    """Return what a transform does with the values of a column, times as numbers of Iceberg's."""
    unit = 1 if isinstance(source, DateType) else _DAY
    if isinstance(transform, (DayTransform, HourTransform)):
        width = 1 if isinstance(source, DateType) else _TIME_UNITS[type(transform)]
        return lambda value: value // width
    if isinstance(transform, (YearTransform, MonthTransform)):
        is_year = isinstance(transform, YearTransform)
        return lambda value: _months(value // unit) // (12 if is_year else 1)
    return transform.transform(source)


def _months(days: int) -> int:
    """Return the months from 1970-01 to that of a day, in any year: Python has 9,999 of them.

    >>> _months(0), _months(-1), _months(19_782), _months(2_932_897)
    (0, -1, 649, 96360)
    """
    # 400 years have as many days each time; Python's first ones are of the year 1.
    cycles, left = divmod(days, 146_097)
    day = date.fromordinal(_EPOCH + left)
    return cycles * 4_800 + (day.year - 1970) * 12 + day.month - 1


_EPOCH: Final = date(1970, 1, 1).toordinal()


def _partitioned(rows: pa.Table, metadata: TableMetadata) -> Iterator[tuple[_Place | None, pa.Table]]:
    """Yield the rows of each partition of a table; all of them, if it has none."""
    spec, schema = metadata.spec(), metadata.schema()
    if spec.is_unpartitioned():
        yield None, rows
        return
    made: dict[str, pa.Array] = {}
    values: list[list[Any]] = []
    for number, field in enumerate(spec.fields):
        source = schema.find_field(field.source_id)
        column = _as_numbers(rows.column(schema.find_column_name(field.source_id)).combine_chunks())
        packed, function = column.dictionary_encode(), _function(field.transform, source.field_type)
        found = [function(value) for value in packed.dictionary.to_pylist()]
        places = {value: place for place, value in enumerate(dict.fromkeys(found), 1)}
        codes = pa.array([places[value] for value in found], pa.int64())
        made[str(number)] = codes.take(packed.indices).fill_null(0)
        values.append([None, *places])
    numbered = pa.table({**made, "row": pa.array(range(rows.num_rows), pa.int64())})
    for group in numbered.group_by(list(made), use_threads=False).aggregate([("row", "list")]).to_batches():
        for i in range(group.num_rows):
            place = [values[number][group.column(str(number))[i].as_py()] for number in range(len(values))]
            yield _Place(place, spec, schema), rows.take(group.column("row_list")[i].values)


def _as_numbers(column: pa.Array) -> pa.Array:
    """Return a column whose times are the numbers that Iceberg has for them."""
    if pa.types.is_date(column.type):
        return column.cast(pa.int32())
    return column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column


def _data_files(metadata: TableMetadata, rows: pa.Table, io: FileIO, name: uuid.UUID) -> Iterator[DataFile]:
    """Write rows to files, those of each partition to its own, in the order of the table."""
    numbers, size, sorting = count(), int(metadata.properties.get(*_TARGET_SIZE)), _sorting(metadata)
    tasks = (
        WriteTask(name, next(numbers), schema, batches, partition_key=cast("Any", place))
        for place, part in _partitioned(rows, metadata)
        for schema in [pyarrow_to_schema(part.schema, name_mapping=metadata.schema().name_mapping)]
        for batches in bin_pack_arrow_table(_sorted(part, sorting), size)
    )
    for file in write_file(io, metadata, tasks):
        if sorting:
            file[_ORDER_ID] = metadata.default_sort_order_id
        yield file


def _write_files(table: Table, rows: pa.Table) -> list[DataFile]:
    """Write rows to files, with bounds of columns.

    Of times that Python does not have, as of the year 10,000, and of some texts pyiceberg can find no bounds. Then only
    keys and orders have some: bounds are never needed. The second files replace the first, which have the same names.
    """
    name, properties = uuid.uuid4(), table.metadata.properties
    try:
        return list(_data_files(table.metadata, rows, table.io, name))
    except (OverflowError, UnicodeError):
        own = {one: value for one, value in properties.items() if not one.startswith(_METRICS)} | _FEW_BOUNDS
        metadata = table.metadata.model_copy(update={"properties": own})
        return list(_data_files(metadata, rows, table.io, name))


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

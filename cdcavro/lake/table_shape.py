"""Shape of lake tables: what a configuration says of a table beside what its messages do.

Of the properties of tables, those that have a meaning for Delta Lake or Iceberg are known by name, with the values that
they can have: what is misspelt would do nothing, or be refused by whoever reads the table next. Those on which this
project relies cannot be set, nor those that need something of each writer.
"""

from __future__ import annotations

import json
import re
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec import Struct

from cdcavro.errors import SchemaError, shown
from cdcavro.lake.escaped_names import OWN, plain_column, quote
from cdcavro.lake.evolution import DROP, RENAME, WIDEN
from cdcavro.table.table_names import fits_caseless, unmangle

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from cdcavro.lake.evolution import LakeColumn, Step
    from cdcavro.table.ddl.steps import TableName

DELTA, ICEBERG = "delta", "iceberg"
_LABELS: Final = {DELTA: "Delta Lake", ICEBERG: "Iceberg"}
# The first parts of the names of properties that mean something to a lake.
_FAMILIES: Final = {DELTA: ("delta",), ICEBERG: ("write", "read", "commit", "history", "gc")}
_FLAG, _COUNT, _SIZE = "true|false", "[0-9]{1,18}", "[0-9]{1,18} ?(?:[kmg]?b)?"
_INTERVAL: Final = "interval [0-9]{1,9} (?:second|minute|hour|day|week)s?"
# What such patterns are called in errors.
_WORDS: Final = {
    _FLAG: "true or false",
    _COUNT: "a whole number",
    _SIZE: "a size such as 128mb",
    _INTERVAL: "like interval 60 days",
}
_ROW_MODES: Final = "copy-on-write|merge-on-read"
_DISTRIBUTIONS: Final = "none|hash|range"
_ISOLATIONS: Final = "serializable|snapshot"
# Patterns of names, and of the values that these can have.
_KNOWN: Final[dict[str, dict[str, str]]] = {
    DELTA: {
        "delta.autoOptimize.autoCompact": f"{_FLAG}|auto",
        "delta.autoOptimize.optimizeWrite": _FLAG,
        "delta.checkpoint.writeStatsAsJson": _FLAG,
        "delta.checkpoint.writeStatsAsStruct": _FLAG,
        "delta.checkpointInterval": "[1-9][0-9]{0,8}",
        "delta.dataSkippingNumIndexedCols": "-1|[0-9]{1,8}",
        "delta.deletedFileRetentionDuration": _INTERVAL,
        "delta.enableExpiredLogCleanup": _FLAG,
        "delta.logRetentionDuration": _INTERVAL,
        "delta.randomizeFilePrefixes": _FLAG,
        "delta.targetFileSize": _SIZE,
        "delta.tuneFileSizesForRewrites": _FLAG,
    },
    ICEBERG: {
        "commit.manifest-merge.enabled": _FLAG,
        "commit.manifest.min-count-to-merge": _COUNT,
        "commit.manifest.target-size-bytes": _COUNT,
        "commit.retry.*": _COUNT,
        "gc.enabled": _FLAG,
        "history.expire.max-ref-age-ms": _COUNT,
        "history.expire.max-snapshot-age-ms": _COUNT,
        "history.expire.min-snapshots-to-keep": _COUNT,
        "read.parquet.vectorization.*": f"{_FLAG}|{_COUNT}",
        "read.split.*": _COUNT,
        "write.delete.distribution-mode": _DISTRIBUTIONS,
        "write.delete.isolation-level": _ISOLATIONS,
        "write.delete.mode": _ROW_MODES,
        "write.delete.target-file-size-bytes": _COUNT,
        "write.distribution-mode": _DISTRIBUTIONS,
        "write.merge.distribution-mode": _DISTRIBUTIONS,
        "write.merge.isolation-level": _ISOLATIONS,
        "write.merge.mode": _ROW_MODES,
        "write.metadata.compression-codec": "none|gzip",
        "write.metadata.delete-after-commit.enabled": _FLAG,
        "write.metadata.metrics.*": r"none|counts|full|truncate\([1-9][0-9]{0,3}\)|[0-9]{1,8}",
        "write.metadata.previous-versions-max": _COUNT,
        "write.parquet.bloom-filter-enabled.column.*": _FLAG,
        "write.parquet.bloom-filter-max-bytes": _COUNT,
        "write.parquet.compression-codec": "zstd|snappy|gzip|uncompressed",
        "write.parquet.compression-level": "[0-9]{1,2}",
        "write.parquet.dict-size-bytes": _COUNT,
        "write.parquet.page-row-limit": _COUNT,
        "write.parquet.page-size-bytes": _COUNT,
        "write.parquet.row-group-size-bytes": _COUNT,
        "write.spark.fanout.enabled": _FLAG,
        "write.summary.partition-limit": _COUNT,
        "write.target-file-size-bytes": _COUNT,
        "write.update.distribution-mode": _DISTRIBUTIONS,
        "write.update.isolation-level": _ISOLATIONS,
        "write.update.mode": _ROW_MODES,
    },
}
# What Spark and Iceberg keep for themselves.
_RESERVED: Final = frozenset(
    {"comment", "external", "format", "format-version", "is_managed_location", "location", "owner", "provider", "uuid"}
    | {"current-schema", "current-snapshot-id", "default-partition-spec", "default-sort-order", "sort-order"}
)
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+)*")
_LONGEST: Final = 255
_MOST: Final = 100
# More columns than these are near each other in no order.
_MOST_CLUSTERING: Final = 4
# How near the beginning of a name is to one that means something.
_NEAR: Final = 0.7


# The property of a lake table that has the columns by which its rows are clustered, as JSON; and what it is for none.
CLUSTER: Final = "cdcavro.cluster"
NO_CLUSTER: Final = "[]"
IDENTITY: Final = "identity"
# Transforms of Iceberg's, and whether each has a number; those of times, of which a column has one.
TRANSFORMS: Final = {IDENTITY: False, "years": False, "months": False, "days": False, "hours": False} | {
    "bucket": True,
    "truncate": True,
}
# The types, as Spark spells them, of columns that a transform is of, where it is not of all that partition a table.
_TIMES, _VALUES = "timestamp(?:_ntz)?", r"(?:tiny|small|big)?int|decimal\(.*\)|string"
_OF_TYPES: Final = {"hours": _TIMES, "truncate": _VALUES, "bucket": f"{_VALUES}|date|{_TIMES}"} | dict.fromkeys(
    ("years", "months", "days"), f"date|{_TIMES}"
)
_OF_TIMES: Final = ("years", "months", "days", "hours")
_CALL: Final = re.compile(r"([A-Za-z]\w*)\(\s*(?:([0-9]+)\s*,)?\s*(.+?)\s*\)")
_MOST_PARTS: Final = 1_000_000
# Types, as Spark spells them, of whose values equal ones may differ, or of which no partition is made.
_UNPARTING: Final = frozenset({"float", "double", "binary"})
# How types begin that have several values in one, by which Iceberg sorts nothing.
_UNSORTED: Final = ("array<", "map<", "struct<")
# Delta Lake's log has the values of partitions as texts, and an empty one is NULL; of times there are several spellings.
# Of decimals, `deltalake` 1.6 writes -0.01 as `0.-1`.
_PARTING_IN_DELTA: Final = re.compile(r"(?:tiny|small|big)?int|date|boolean|decimal\([0-9]+,0\)")


class Partition(NamedTuple):
    """What rows of one partition have in common: the value of a column, or what a transform makes of it."""

    column: str
    # One of `TRANSFORMS`.
    transform: str = IDENTITY
    # How many buckets there are, or how much of a value is left.
    number: int | None = None

    @classmethod
    def of(cls, text: str) -> Partition:
        """Return what a text says: a column, or a transform such as `days(created)` and `bucket(16, id)`.

        Raises `ValueError`.
        """
        call = _CALL.fullmatch(text.strip())
        if call is None:
            return cls(text)
        transform, number, column = call[1].lower(), call[2], call[3]
        if transform not in TRANSFORMS:
            near = get_close_matches(transform, TRANSFORMS, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(TRANSFORMS)}"
            raise ValueError(f"partition has no transform {shown(transform)}: {hint}")
        if TRANSFORMS[transform] != (number is not None):
            like = f"{transform}(16, column)" if TRANSFORMS[transform] else f"{transform}(column)"
            raise ValueError(f"partition has {like}, which {shown(text)} is not")
        if number is not None and not 0 < int(number[:9]) <= _MOST_PARTS:
            raise ValueError(f"partition has a number from 1 to {_MOST_PARTS:,}, which {shown(text)} has not")
        return cls(column, transform, None if number is None else int(number))

    @property
    def sql(self) -> str:
        """It in Spark's SQL."""
        if self.transform == IDENTITY:
            return quote(self.column)
        number = "" if self.number is None else f"{self.number}, "
        return f"{self.transform}({number}{quote(self.column)})"

    def __str__(self) -> str:
        """Return it as the configuration has it."""
        number = "" if self.number is None else f"{self.number}, "
        return self.column if self.transform == IDENTITY else f"{self.transform}({number}{self.column})"


class TableShape(Struct, frozen=True, forbid_unknown_fields=True):
    """The shape of tables; of several, the first whose pattern fits a table counts. Raises `ValueError`.

    * `match` (str): a pattern of the names of tables, as in `RowRule`.
    * `key` (tuple[str, ...]): the columns of the key of a table whose source states none.
    * `properties` (dict[str, str or int or bool]): properties of its lake tables.
    * `partition` (tuple[str, ...]): columns by which its lake tables are partitioned, and on Iceberg transforms of
      columns, as `Partition.of` takes them.
    * `cluster` (tuple[str, ...] or None): columns by which the files of its Delta Lake tables are clustered when they
      are maintained, and by which the rows of its Iceberg tables are sorted; an empty tuple ends that, and None leaves
      it as it is.
    """

    match: str
    key: tuple[str, ...] = ()
    properties: dict[str, str | int | bool] = {}
    partition: tuple[str, ...] = ()
    cluster: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        """Check what does not depend on a lake."""
        parts = self.partitions
        # The same transform of a column, with whatever number, has one name.
        _check_names("partition", tuple(str(one._replace(number=None)) for one in parts))
        _check_names("partition by times", tuple(one.column for one in parts if one.transform in _OF_TIMES))
        _check_names("key", self.key)
        cluster = self.cluster or ()
        _check_names("cluster", cluster)
        if len(cluster) > _MOST_CLUSTERING:
            raise ValueError(f"cluster has at most {_MOST_CLUSTERING} columns, not {len(cluster)}")
        if len(self.properties) > _MOST:
            raise ValueError(f"at most {_MOST} properties of a table are set, not {len(self.properties)}")

    @property
    def columns(self) -> list[str]:
        """The names of the columns that it is about."""
        return [*dict.fromkeys([*self.key, *(one.column for one in self.partitions), *(self.cluster or ())])]

    @property
    def partitions(self) -> list[Partition]:
        """What rows of one partition have in common, from the outermost on. Raises `ValueError`."""
        return [Partition.of(text) for text in self.partition]

    def properties_in(self, lake: str) -> dict[str, str]:
        """Return the properties as a lake has them, on Delta Lake with that of the columns by which rows are clustered.

        `lake` is as in `check_for`.
        """
        stated = {
            name: str(value).lower() if isinstance(value, bool) else str(value)
            for name, value in self.properties.items()
        }
        return stated if self.cluster is None or lake == ICEBERG else {**stated, CLUSTER: json.dumps(self.cluster)}

    @property
    def of_lake(self) -> list[str]:
        """The settings that are of lake tables only."""
        return [name for name in ("partition", "properties", "cluster") if getattr(self, name)]

    def fits(self, table: TableName) -> bool:
        """Return whether it is for a table, regardless of case."""
        return fits_caseless(table, self.match)

    def check_for(self, lake: str) -> None:
        """Check what depends on the kind of lake, `delta` or `iceberg`. Raises `ValueError`."""
        for name, value in self.properties_in(lake).items():
            if name != CLUSTER or name in self.properties:
                _check_property(lake, name, value)
        transform = next((one for one in self.partitions if one.transform != IDENTITY), None)
        if transform is not None and lake == DELTA:
            raise ValueError(
                f"partition in [[table]] has {transform}, and Delta Lake partitions tables by columns as they are"
            )
        parting = {one.column.casefold() for one in self.partitions if one.transform == IDENTITY}
        both = next((name for name in self.cluster or () if name.casefold() in parting), None)
        if both is not None:
            raise ValueError(
                f"partition and cluster in [[table]] both name {shown(both)}, which has one value in each file"
            )

    def partitions_in(self, table: str, columns: Sequence[LakeColumn], lake: str) -> list[Partition]:
        """Return the partitions of a lake table with some columns, which may be called differently by now.

        `lake` is as in `check_for`. Raises `SchemaError` for a column that there is not, or that cannot part the table.
        """
        found = []
        for one in self.partitions:
            column = _column_called(one.column, columns)
            if column is None:
                raise SchemaError(table, f"partition in [[table]] names {shown(one.column)}, which is no column of it")
            if column.type in _UNPARTING:
                raise SchemaError(
                    table,
                    f"partition in [[table]] names {shown(one.column)}, and a lake has no partitions of {column.type}",
                )
            if lake == DELTA and not parts_delta(column.type):
                raise SchemaError(
                    table,
                    f"partition in [[table]] names {shown(one.column)}, which is {column.type}: in Delta Lake, whole numbers,"
                    " dates and booleans partition a table",
                )
            if not re.fullmatch(_OF_TYPES.get(one.transform, ".*"), column.type, re.DOTALL):
                raise SchemaError(table, f"partition in [[table]]: there is no {one}: {one.column} is {column.type}")
            found.append(one._replace(column=column.name))
        return found

    def order_in(self, table: str, columns: Sequence[LakeColumn], lake: str) -> list[str] | None:
        """Return the columns by which the rows of a lake table with some columns are sorted, on Iceberg.

        None leaves the table as it is: nothing is said of it, or it does not have all of the columns. `lake` is as in
        `check_for`. Raises `SchemaError` for a column by whose values nothing is sorted.
        """
        if self.cluster is None or lake != ICEBERG:
            return None
        found = [(name, column) for name in self.cluster if (column := _column_called(name, columns)) is not None]
        bad = next(((name, column) for name, column in found if column.type.startswith(_UNSORTED)), None)
        if bad is not None:
            raise SchemaError(
                table,
                f"cluster in [[table]] names {shown(bad[0])}, which is {bad[1].type}: Iceberg sorts by columns of single"
                " values",
            )
        return [*dict.fromkeys(column.name for _, column in found)] if len(found) == len(self.cluster) else None

    def properties_left(self, known: Mapping[str, str], lake: str) -> dict[str, str]:
        """Return the properties that a lake table with some properties does not have yet; `lake` is as in `check_for`."""
        stated = {CLUSTER: NO_CLUSTER, **known}
        return {name: value for name, value in self.properties_in(lake).items() if stated.get(name) != value}


def _column_called(name: str, columns: Sequence[LakeColumn]) -> LakeColumn | None:
    """Return the column that is called so, or else one that was, whatever its case is."""
    wanted, plain = name.casefold(), plain_column(name).casefold()
    called = [column for column in columns if column.name.casefold() in (wanted, plain)]
    fields = [(column, (column.field, *column.aliases)) for column in columns]
    former = [column for column, names in fields if wanted in [unmangle(one).casefold() for one in names]]
    return next(iter([*called, *former]), None)


def property_steps(properties: Mapping[str, str]) -> list[str]:
    """Return what was done to a table whose properties were set, as parts of a sentence."""
    return [
        f"files are clustered by {', '.join(json.loads(value)) or 'no column'} when they are put together"
        if name == CLUSTER
        else f"property {name} is set to {value}"
        for name, value in properties.items()
    ]


def repartition_step(partition: Sequence[Partition]) -> str:
    """Return what was done to a table that is partitioned anew, as a part of a sentence."""
    return (
        f"rows are partitioned by {', '.join(map(str, partition))} from now on; files that there are stay as they are"
    )


def order_step(names: Sequence[str]) -> str:
    """Return what was done to a table whose rows are sorted anew, as a part of a sentence."""
    return f"rows are sorted by {', '.join(names) or 'no column'} from now on; files that there are stay as they are"


def parts_delta(spark: str) -> bool:
    """Return whether a column of a type, as Spark spells it, may partition a table of Delta Lake.

    >>> parts_delta("date"), parts_delta("decimal(20,0)"), parts_delta("string")
    (True, True, False)
    """
    return _PARTING_IN_DELTA.fullmatch(spark) is not None


def kept_partitions(partition: Sequence[Partition], held: Sequence[str]) -> list[str]:
    """Return, as a part of a sentence, that a table of Delta Lake is partitioned by other columns; nothing if it is not."""
    wanted = [one.column for one in partition]
    if wanted == list(held):
        return []
    now = f"are partitioned by {', '.join(held)}" if held else "are in no partitions"
    anew = f"for {', '.join(wanted)}, remove the lake table, reset the table and let its source send it again"
    return [f"rows {now}, as when their table of Delta Lake was created: {anew}"]


def check_partitioned(steps: Sequence[Step], partition: Collection[str]) -> None:
    """Check that steps leave the columns as they are by which a table of Delta Lake is partitioned, but for their names.

    A step has the names that the columns have behind those before it. Raises `SchemaError`.
    """
    names = set(partition)
    for step in steps:
        if step.name not in names:
            continue
        if step.kind in (DROP, WIDEN):
            raise SchemaError(step.name, f"{step}: files are partitioned by it, which Delta Lake does not change")
        if step.kind == RENAME:
            names = names - {step.name} | {step.column.name}


def check_sorted(steps: Sequence[Step], order: Collection[str]) -> None:
    """Check that steps drop no column by which rows of a table of Iceberg are sorted, or ever were.

    A table keeps all orders that it had, and Iceberg 1.11 on Spark writes to none whose orders lack a column. A step has
    the names that the columns have behind those before it. Raises `SchemaError`.
    """
    names = set(order)
    for step in steps:
        if step.kind == DROP and step.name in names:
            raise SchemaError(
                step.name, f"{step}: rows are sorted by it, or were, and Iceberg keeps the columns of orders"
            )
        if step.kind == RENAME and step.name in names:
            names = names - {step.name} | {step.column.name}


def _check_property(lake: str, name: str, value: str) -> None:
    """Raise `ValueError` for a property that cannot be set, or means nothing."""
    known, family = _KNOWN[lake], name.partition(".")[0]
    if family == "cdcavro" or OWN in name or name.lower() in _RESERVED:
        raise ValueError(f"the property {shown(name)} is kept for what writes the table, and cannot be set")
    if not _NAME.fullmatch(name) or len(name) > _LONGEST:
        raise ValueError(f"the name of a property has letters, digits, dots, _ and -, which {shown(name)} is not")
    if not value.isprintable() or "${" in value or len(value) > _LONGEST:
        raise ValueError(f"the value of the property {name} is a text of a line, which {shown(value)} is not")
    other = next((one for one, families in _FAMILIES.items() if one != lake and family in families), None)
    if other is not None:
        raise ValueError(f"the property {name} is of {_LABELS[other]}, and tables are of {_LABELS[lake]}")
    if family not in _FAMILIES[lake]:
        near: list[Any] = get_close_matches(family, _FAMILIES[lake], n=1, cutoff=_NEAR)
        if near:
            raise ValueError(f"the property {name} means nothing: did you mean one that begins with {near[0]}.?")
        return
    values = next((pattern for one, pattern in known.items() if fnmatchcase(name, one)), None)
    if values is None:
        near = get_close_matches(name, known, n=1)
        hint = f": did you mean {near[0]}?" if near else f"; there are {', '.join(known)}"
        raise ValueError(f"the property {name} is unknown, or needs something of each writer, and cannot be set{hint}")
    if not re.fullmatch(values, value, re.IGNORECASE):
        raise ValueError(f"the property {name} cannot be {shown(value)}: it is {_WORDS.get(values, f'like {values}')}")


def _check_names(setting: str, names: tuple[str, ...]) -> None:
    """Raise `ValueError` for a column that a setting names twice, or by no name."""
    folded = [name.casefold() for name in names]
    twice = next((name for name in folded if folded.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"{setting} names each column once, and {shown(twice)} twice")
    if "" in folded:
        raise ValueError(f"{setting} has names of columns, not an empty one")


# What is said of a table of which nothing is.
NO_SHAPE: Final = TableShape("")

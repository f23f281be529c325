"""Sinks of lake tables on Spark: which tables are there, and how Delta Lake and Iceberg append to them.

Each table has columns, and gets those of the version whose rows are appended.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar
from uuid import uuid4

import pyspark
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import functions as sf

from cdcavro.errors import FileError, JobError, SchemaError, SetupError
from cdcavro.lake import lakes
from cdcavro.lake.catalogs import catalog_setting, metastore_settings, spark_jars
from cdcavro.lake.escaped_names import OWN, folder_names, plain_column, plain_names, quote
from cdcavro.lake.evolution import (
    ADD,
    DROP,
    EVOLVE,
    LENIENT,
    REWRITING,
    TRY_EVOLVE,
    LakeColumn,
    Step,
    columns_behind,
    in_front,
    steps_to,
)
from cdcavro.lake.lake_columns import dropped_columns, wanted_columns, with_former_names
from cdcavro.lake.lakes import CHANGE, DEPTH, SCHEME, SUFFIXES, DeltaLake, IcebergLake, Look, one_address
from cdcavro.lake.sql_statements import (
    ADOPTED,
    alter_table,
    change_column_steps,
    create_table,
    literal,
    set_properties,
)
from cdcavro.lake.table_shape import (
    TRANSFORMS,
    Partition,
    check_partitioned,
    check_sorted,
    kept_partitions,
    order_step,
    property_steps,
    repartition_step,
)
from cdcavro.spark.session import REDACTED, classic

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructField

    from cdcavro.lake.lakes import Attempt
    from cdcavro.table.ddl.steps import TableName
    from cdcavro.table.table_schema import TableSchema

# Delta Lake and Iceberg for each Spark.
_PACKAGES: Final = {
    "3.5": ("io.delta:delta-spark_2.12:3.3.2", "org.apache.iceberg:iceberg-spark-runtime-3.5_2.12:1.11.0"),
    "4.0": ("io.delta:delta-spark_2.13:4.0.1", "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.11.0"),
    "4.1": ("io.delta:delta-spark_4.1_2.13:4.3.1", "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.11.0"),
}
_T = TypeVar("_T")
_TRIES: Final = 5
# What Iceberg calls a partition that was removed from a table of its first format.
_VOID: Final = "void"
# How Java names passing reasons: a commit between the read and the write of a transaction, as of a compaction; and rows
# that a machine kept for a statement, and that were lost with the machine.
_PASSING: Final = (
    "io.delta.exceptions.",
    "org.apache.iceberg.exceptions.CommitFailedException",
    "org.apache.iceberg.exceptions.ValidationException",
    "CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND",
)
# The write may be committed.
_UNKNOWN: Final = "org.apache.iceberg.exceptions.CommitStateUnknownException"


def _is_commit(name: str) -> bool:
    return not name.startswith((".", "_")) or name == "_last_checkpoint"


def _files(spark: SparkSession, folder: str) -> tuple[Any, Any]:
    """Return the file system of a folder and its path there: Hadoop's, which have no Python interface."""
    own = classic(spark, "Delta Lake")
    path = own._jvm.org.apache.hadoop.fs.Path(folder)  # noqa: SLF001
    return path.getFileSystem(own._jsc.hadoopConfiguration()), path  # noqa: SLF001


def _has_log(spark: SparkSession, folder: str) -> bool:
    """Return whether a folder is that of a Delta table."""
    files, log = _files(spark, f"{folder}/_delta_log")
    return files.exists(log) and any(_is_commit(one.getPath().getName()) for one in files.listStatus(log))


def lake_settings(
    *, catalog: str | None = None, warehouse: str | None = None, properties: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the settings of a Spark session for Delta Lake, and for Iceberg if a catalog is named.

    `catalog` is the name of an Iceberg catalog of files, and `warehouse` its folder. For a catalog that is a server or
    a database, `properties` are those of `LakeSettings`: the jars that it needs are fetched, and its properties hidden
    on Spark's pages; the properties themselves are set by the pipeline, because a JVM's command line shows what it was
    started with. Without `catalog`, they are those of a metastore for Delta Lake. Pass the settings to
    `session(config=…)`. Raises `SetupError` for a Spark for which no packages are known.
    """
    version = ".".join(pyspark.__version__.split(".")[:2])
    if version not in _PACKAGES:
        raise SetupError(f"lake tables need Spark {', '.join(_PACKAGES)}: this is {pyspark.__version__}")
    packages = [*_PACKAGES[version][: 1 if catalog is None else 2]]
    extensions = ["io.delta.sql.DeltaSparkSessionExtension"]
    found = {"spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog"}
    if catalog is None and properties:
        found |= metastore_settings(properties)
    if catalog is not None:
        extensions.append("org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions")
        own = catalog_setting(catalog)
        found[own] = "org.apache.iceberg.spark.SparkCatalog"
        # Each session has a catalog of its own, which would not see what a stream, in another session, has written.
        found[f"{own}.cache-enabled"] = "false"
        if warehouse is not None:
            found |= {f"{own}.type": "hadoop", f"{own}.warehouse": warehouse}
        if properties:
            packages += spark_jars(properties, packages[1].rpartition(":")[2])
            found[REDACTED] = re.escape(f"{own}.")
    return {"spark.jars.packages": ",".join(packages), "spark.sql.extensions": ",".join(extensions), **found}


@dataclass(frozen=True)
class Delta(DeltaLake):
    """Delta Lake tables in folders, as Spark writes them; the fields are those of `DeltaLake`."""

    def has(self, spark: SparkSession, table: TableName) -> bool:
        """Return whether any of a table's lake tables is there."""
        return any(self.is_there(spark, table, suffix) for suffix in SUFFIXES)

    def is_there(self, spark: SparkSession, table: TableName, suffix: str) -> bool:
        """Return whether one lake table of a table is there."""
        return _has_log(spark, self.path(table, suffix))

    def make_room(self, spark: SparkSession, table: TableName) -> None:
        """Remove what a kill left of the creation of a table: a log without a commit.

        Raises `SchemaError` for a table whose folder is in that of another, or around it: the VACUUM of one of them
        would remove files of the other.
        """
        check_separate(spark, self, table)
        for suffix in SUFFIXES:
            log = f"{self.path(table, suffix)}/_delta_log"
            files, path = _files(spark, log)
            if files.exists(path) and not any(_is_commit(one.getPath().getName()) for one in files.listStatus(path)):
                files.delete(path, True)  # noqa: FBT003  with all that is in it

    def tables(self, spark: SparkSession) -> Iterator[str]:
        """Yield the names in SQL of all tables of the lake."""
        folders = [self.folder]
        for _ in range(DEPTH):
            found: list[str] = []
            for folder in folders:
                files, path = _files(spark, folder)
                inner = files.listStatus(path) if files.exists(path) else []
                found += [one.getPath().toString() for one in inner if one.isDirectory()]
            logged = [folder for folder in found if _has_log(spark, folder)]
            yield from (quote("delta", folder.removeprefix("file:")) for folder in logged)
            folders = [folder for folder in found if folder not in logged]

    def around(self, spark: SparkSession, table: TableName) -> str | None:
        """Return the folder of a lake table in which that of a table would be; None if there is none."""
        parts = folder_names(table, is_older=self.is_older)
        above = ["/".join([self.folder.rstrip("/"), *parts[:count]]) for count in range(1, len(parts))]
        return next((folder for folder in above if _has_log(spark, folder)), None)

    def within(self, spark: SparkSession, table: TableName) -> str | None:
        """Return the folder of a lake table that would be in that of a new table; None if there is none."""
        files, path = _files(spark, self.path(table))
        inner = [one.getPath() for one in files.listStatus(path) if one.isDirectory()] if files.exists(path) else []
        return next((one.toString() for one in inner if _has_log(spark, one.toString())), None)

    def folders(self, spark: SparkSession) -> list[str]:  # noqa: ARG002  as that of Iceberg
        """Return the folders in which the tables are, if they are known."""
        return [self.folder]

    def check(self, spark: SparkSession) -> None:
        """Check that the root can be reached, or written to if it is a local folder. Raises `FileError`, and what Java raises."""
        root = Path(self.root).absolute()
        there = next(path for path in (root, *root.parents) if path.exists())
        if SCHEME.match(self.root):
            _has_log(spark, self.root)
        elif not (there.is_dir() and os.access(there, os.W_OK)):
            raise FileError(self.root, "a folder that can be written to", "none")

    def append(
        self,
        frame: DataFrame,
        table: TableName,
        suffix: str,
        job: str,
        batch: int,
        attempt: Attempt,
        identity: Sequence[str] = CHANGE,  # noqa: ARG002  as that of Iceberg
    ) -> None:
        """Append the rows of a job's batch, once: Delta Lake skips a transaction that it has.

        To find it, Delta Lake reads the whole state of the table, which costs as much as the append. So the commit of a
        batch that is run for the first time has a mark instead, which is looked for in the history if it is run again.
        """
        path, mark = self.path(table, suffix), f"cdcavro {job} {batch}"
        writer = frame.write.format("delta").mode("append").option("userMetadata", mark)
        if attempt.since is not None and self._has(frame.sparkSession, path, mark, attempt.since):
            return
        if not attempt.is_first:
            writer = writer.option("txnAppId", job).option("txnVersion", str(batch))
        writer.save(path)

    def _has(self, spark: SparkSession, path: str, mark: str, since: datetime) -> bool:
        """Return whether a commit since a time has a mark. Raises `JobError` if the history does not reach so far."""
        history = spark.sql(f"DESCRIBE HISTORY {quote('delta', path)}").select("version", "timestamp", "userMetadata")
        commits = history.collect()
        if any(commit["userMetadata"] == mark for commit in commits):
            return True
        oldest = min(commits, key=lambda commit: commit["version"])
        # The clocks of two machines may differ.
        if oldest["version"] > 0 and oldest["timestamp"].astimezone(UTC) > since - timedelta(hours=1):
            raise JobError(
                f"the history of {path} does not reach back to {since:%Y-%m-%d %H:%M}, so it cannot be known whether the"
                " batch that was stopped then is written"
            )
        return False


def register(spark: SparkSession, sink: Delta, table: TableName, suffix: str) -> bool:
    """Let a lake table that is there have its name in the metastore of the session; return whether it has it.

    Raises `SchemaError` if the name is that of a table elsewhere, and for one that the metastore cannot have.
    """
    parts = plain_names(table, suffix)
    name, folder = quote("spark_catalog", *parts), sink.path(table, suffix)
    if spark.catalog.tableExists(name):
        files, path = _files(spark, folder)
        held = spark.sql(f"DESCRIBE DETAIL {name}").collect()[0]["location"]
        if one_address(held) != one_address(files.makeQualified(path).toString()):
            raise SchemaError(
                table.table, f"in the metastore, {name} is a table at {held}: drop it there, or say another name"
            )
        return True
    if not sink.is_there(spark, table, suffix):
        return False
    spark.sql(f"CREATE DATABASE IF NOT EXISTS {quote('spark_catalog', parts[0])}")
    spark.sql(f"CREATE TABLE IF NOT EXISTS {name} USING delta LOCATION {literal(folder)}")
    return True


@dataclass(frozen=True)
class Iceberg(IcebergLake):
    """Iceberg tables in a catalog of Spark's; the fields are those of `IcebergLake`."""

    def has(self, spark: SparkSession, table: TableName) -> bool:
        """Return whether any of a table's lake tables is there."""
        return any(self.is_there(spark, table, suffix) for suffix in SUFFIXES)

    def is_there(self, spark: SparkSession, table: TableName, suffix: str) -> bool:
        """Return whether one lake table of a table is there."""
        return spark.catalog.tableExists(self.identifier(table, suffix))

    def folders(self, spark: SparkSession) -> list[str]:
        """Return the folders in which the tables are, if they are known."""
        if self.is_shared:
            return []
        warehouse = spark.conf.get(f"spark.sql.catalog.{self.catalog}.warehouse", None)
        return [] if warehouse is None else [warehouse]

    def check(self, spark: SparkSession) -> None:
        """Ask the catalog for its namespaces. Raises what Spark raises if there is no answer."""
        spark.sql(f"SHOW NAMESPACES IN {quote(self.catalog)}").collect()

    def make_room(self, spark: SparkSession, table: TableName) -> None:
        """Create the namespaces of a table. Raises `SchemaError` as Delta Lake's does."""
        check_separate(spark, self, table)
        namespace = self.parts(table)[:-1]
        # Some servers create none whose outer one is not there.
        for end in range(1 if self.is_shared else len(namespace), len(namespace) + 1):
            spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {quote(self.catalog, *namespace[:end])}")

    def tables(self, spark: SparkSession) -> Iterator[str]:
        """Yield the names in SQL of all tables of the lake; none of a catalog that others share, as without Spark."""
        namespaces = [quote(self.catalog)]
        for _ in range(0 if self.is_shared else DEPTH):
            found = []
            for space in namespaces:
                rows = spark.sql(f"SHOW NAMESPACES IN {space}").collect()
                found += [f"{quote(self.catalog)}.{row[0]}" for row in rows]
            for space in found:
                rows = spark.sql(f"SHOW TABLES IN {space}").collect()
                yield from (f"{space}.{quote(row['tableName'])}" for row in rows)
            namespaces = found

    def around(self, spark: SparkSession, table: TableName) -> str | None:
        """Return the lake table with the name of a table's namespace, or of one around it; None if there is none."""
        parts = folder_names(table, is_older=self.is_older)
        above = [quote(self.catalog, *parts[:count]) for count in range(2, len(parts))]
        return next((name for name in above if spark.catalog.tableExists(name)), None)

    def within(self, spark: SparkSession, table: TableName) -> str | None:
        """Return a lake table in the namespace that has a table's name; None if there is none."""
        name = self.identifier(table)
        if not spark.catalog.databaseExists(name):
            return None
        inner = spark.sql(f"SHOW TABLES IN {name}").collect()
        return f"{name}.{quote(inner[0]['tableName'])}" if inner else None

    def append(
        self,
        frame: DataFrame,
        table: TableName,
        suffix: str,
        job: str,
        batch: int,
        attempt: Attempt,
        identity: Sequence[str] = CHANGE,
    ) -> None:
        """Append the rows of a job's batch, once: the snapshots name their batches, or else the rows are looked for."""
        identifier, mark = self.identifier(table, suffix), f"cdcavro.batch.{job}"
        if attempt.is_first or not is_appended(frame, identifier, mark, batch, identity):
            frame.writeTo(identifier).option(f"snapshot-property.{mark}", str(batch)).append()


Sink = Delta | Iceberg


def locate(spark: SparkSession, sink: Sink, table: TableName) -> Sink:
    """Return the sink as it names a table: as at first, if the table is only there under its first name."""
    found: Sink = lakes.locate(sink, table, _look(spark))
    return found


def check_separate(spark: SparkSession, sink: Sink, table: TableName) -> None:
    """Check that a lake table has its present name, and that its folder is not in another table's, nor around it.

    A catalog that is a server or a database puts tables where none is in the folder of another. Raises `SchemaError`,
    which says what to do.
    """
    if not (isinstance(sink, IcebergLake) and sink.is_shared):
        lakes.check_separate(sink, table, _look(spark))


def _look(spark: SparkSession) -> Look[Any]:
    return Look(
        has=lambda sink, table: sink.has(spark, table),
        around=lambda sink, table: sink.around(spark, table),
        within=lambda sink, table: sink.within(spark, table),
    )


def is_appended(frame: DataFrame, identifier: str, mark: str, batch: int, identity: Sequence[str] = CHANGE) -> bool:
    """Return whether the rows of a batch are in an Iceberg table, whose snapshots name their batch under `mark`.

    Snapshots are followed back from the current one to the last that names a batch. If older ones have expired before
    that, the rows are looked for by the columns of their identity: an append adds all of a batch or nothing.
    """
    spark = classic(frame.sparkSession, "Iceberg")
    table = iceberg_table(spark, identifier)
    snapshot = table.currentSnapshot()
    while snapshot is not None:
        named, parent = snapshot.summary().get(mark), snapshot.parentId()
        if named is not None:
            return int(named) >= batch
        if parent is None:
            return False
        snapshot = table.snapshot(parent)
        if snapshot is None:
            return _are_there(frame, identifier, identity)
    return False


def iceberg_table(spark: Any, identifier: str) -> Any:
    """Return the table of Iceberg's in Java."""
    iceberg = spark._jvm.org.apache.iceberg.spark.Spark3Util  # noqa: SLF001  Iceberg has no Python interface on Spark
    return iceberg.loadIcebergTable(spark._jsparkSession, identifier)  # noqa: SLF001


def _are_there(frame: DataFrame, identifier: str, identity: Sequence[str]) -> bool:
    """Return whether a table has all rows of a frame, looking only at files with such values of the first column."""
    rows = frame.select(*[sf.col(name).alias(f"own{name}") for name in identity])
    first = identity[0]
    ends = rows.agg(sf.min(f"own{first}").alias("first"), sf.max(f"own{first}").alias("last")).collect()[0]
    if ends["first"] is None:
        return True
    held = frame.sparkSession.table(identifier).select(*identity)
    held = held.where(sf.col(first).between(*[sf.lit(end) for end in ends]))
    same = [rows[f"own{name}"].eqNullSafe(held[name]) for name in identity]
    return not rows.join(held, same, "left_anti").take(1)


def retry(write: Callable[[], _T]) -> _T:
    """Write, and again if that failed for a passing reason, and so wrote nothing that is seen; return what that does."""
    for left in reversed(range(_TRIES)):
        try:
            return write()
        except (PySparkException, Py4JJavaError) as error:
            if not left or not _is_passing(error):
                raise
    raise AssertionError


def _is_passing(error: Exception) -> bool:
    java: Any = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    causes = []
    while java is not None:
        causes.append(java.toString())
        java = java.getCause()
    return any(name in cause for cause in causes for name in _PASSING) and not any(
        _UNKNOWN in cause for cause in causes
    )


def present_columns(table: DataFrame) -> list[LakeColumn]:
    """Return the columns that a lake table has, without this project's own."""
    fields = table.schema.fields
    return [
        LakeColumn(field.name, _comment(field), field.dataType.simpleString())
        for field in fields
        if not field.name.startswith(OWN)
    ]


def _comment(field: StructField) -> str:
    return str((field.metadata or {}).get("comment", ""))


def prepare(
    spark: SparkSession,
    sink: Sink,
    identifier: str,
    versions: Sequence[TableSchema],
    own: Mapping[str, str],
    behavior: str,
    properties: Mapping[str, str] | None = None,
    excluded: Collection[str] = (),
) -> list[Step | str]:
    """Create a lake table, or change it so that it has the last version's columns, as `native_columns.prepare` does.

    Raises `SchemaError` for a step that the behavior or the sink does not allow, before the first step is taken.
    """
    schema, is_rewritten, shape = versions[-1], sink.is_rewritten({}), sink.shape_of(versions[-1].table)
    wanted = wanted_columns(schema, is_plain=is_rewritten)
    stated = {**sink.properties([one.name for one in wanted]), **shape.properties_in(sink.using), **(properties or {})}
    shape.check_for(sink.using)
    order = shape.order_in(schema.table.table, wanted, sink.using)
    parts = shape.partitions_in(schema.table.table, wanted, sink.using) if shape.partition else []
    spark.sql(create_table(identifier, wanted, own, sink.using, stated, [one.sql for one in parts]))
    lake = spark.table(identifier)
    present = present_columns(lake)
    if is_rewritten and not sink.is_rewritten(properties_of(spark, identifier)):
        is_rewritten, wanted = False, wanted_columns(schema)
    if behavior in (EVOLVE, TRY_EVOLVE) and ADOPTED in properties_of(spark, identifier):
        # The table begins anew for the pipeline that adopted it, and may yet get columns that the lake table has.
        behavior = LENIENT
    spelled, dropped = plain_column if is_rewritten else str, dropped_columns(versions, present)
    steps = steps_to(schema.table.table, present, wanted, behavior, sink.can_widen, excluded, spelled, dropped)
    steps = [*in_front(steps, lake.columns), *change_column_steps(own, lake.columns)]
    needed = sink.properties_for([one for one in steps if one.kind == ADD] if is_rewritten else steps)
    known = properties_of(spark, identifier) if needed else {}
    off = {name: value for name, value in needed.items() if known.get(name, "none") in ("none", "false")}
    take_steps(spark, sink, identifier, steps, off)
    known = properties_of(spark, identifier) if shape.properties_in(sink.using) else {}
    left = shape.properties_left(known, sink.using)
    put_properties(spark, identifier, left)
    told = property_steps(left)
    held = with_former_names(present_columns(spark.table(identifier)), wanted) if parts or order is not None else []
    if parts:
        told += repartition(spark, sink, identifier, shape.partitions_in(schema.table.table, held, sink.using))
    order = shape.order_in(schema.table.table, held, sink.using)
    return [*steps, *told, *([] if order is None else sort_by(spark, identifier, order))]


def take_steps(
    spark: SparkSession, sink: Sink, identifier: str, steps: Sequence[Step], properties: Mapping[str, str]
) -> None:
    """Set properties of a lake table, and take steps on its columns: each a commit, or all one that writes all rows anew.

    Raises `SchemaError` for a step that changes a column by which a table of Delta Lake is partitioned, or that drops one
    by which a table of Iceberg is sorted.
    """
    is_changing = isinstance(sink, Delta) and any(step.kind in REWRITING for step in steps)
    partition = partition_columns(spark, identifier) if is_changing else []
    check_partitioned(steps, partition)
    if isinstance(sink, Iceberg) and any(step.kind == DROP for step in steps):
        check_sorted(steps, _orders(spark, identifier))
    put_properties(spark, identifier, properties)
    is_rewriting = sink.is_rewritten({}) and any(step.kind in REWRITING for step in steps)
    if not (is_rewriting and sink.is_rewritten(properties_of(spark, identifier))):
        for step in steps:
            spark.sql(alter_table(identifier, step))
        return
    frame, columns = spark.table(identifier), []
    held = [LakeColumn(one.name, _comment(one), one.dataType.simpleString()) for one in frame.schema]
    types = {one.name: one.type for one in held}
    for former, one in columns_behind(held, steps):
        values = sf.lit(None) if former is None else sf.col(quote(former))
        cast = values if former is not None and types[former] == one.type else values.cast(one.type)
        columns.append(cast.alias(one.name, metadata={"comment": one.field} if one.field else {}))
    # What `quote` made of the folder: Delta Lake itself says an address, in which some characters are codes.
    folder = identifier.removeprefix(quote("delta") + ".")[1:-1].replace("``", "`")
    writer = frame.select(*columns).write.format("delta").mode("overwrite").option("overwriteSchema", "true")
    if partition:
        renamed = {former: one.name for former, one in columns_behind(held, steps)}
        writer = writer.partitionBy(*[renamed[name] for name in partition])
    writer.save(folder)


def partition_columns(spark: SparkSession, identifier: str) -> list[str]:
    """Return the columns by which a table of Delta Lake is partitioned."""
    return list(spark.sql(f"DESCRIBE DETAIL {identifier}").collect()[0]["partitionColumns"])


def repartition(spark: SparkSession, sink: Sink, identifier: str, partition: Sequence[Partition]) -> list[str]:
    """Let an Iceberg table be partitioned so from now on; return what was done, or that it cannot be, as parts of sentences."""
    if isinstance(sink, Delta):
        return kept_partitions(partition, partition_columns(spark, identifier))
    table = iceberg_table(classic(spark, "Iceberg"), identifier)
    held = {}
    for field in table.spec().fields():
        transform, _, number = field.transform().toString().rstrip("]").partition("[")
        if transform != _VOID:
            name = transform if transform in TRANSFORMS else f"{transform}s"
            column = table.schema().findColumnName(field.sourceId())
            held[Partition(column, name, int(number) if number else None)] = field.name()
    if {*held} == {*partition}:
        return []
    for name in (name for one, name in held.items() if one not in partition):
        spark.sql(f"ALTER TABLE {identifier} DROP PARTITION FIELD {quote(name)}")
    for one in (one for one in partition if one not in held):
        spark.sql(f"ALTER TABLE {identifier} ADD PARTITION FIELD {one.sql}")
    return [repartition_step(partition)]


def sort_by(spark: SparkSession, identifier: str, names: Sequence[str]) -> list[str]:
    """Let the rows of an Iceberg table be sorted by these columns from now on; return what was done, in parts of sentences.

    In Spark's SQL, that would change how rows are distributed as well.
    """
    own = classic(spark, "Iceberg")
    table, iceberg = iceberg_table(own, identifier), own._jvm.org.apache.iceberg  # noqa: SLF001
    wanted = [f"identity({table.schema().findField(name).fieldId()}) ASC NULLS FIRST" for name in names]
    if [field.toString() for field in table.sortOrder().fields()] == wanted:
        return []
    order = table.replaceSortOrder()
    for name in names:
        order.asc(iceberg.expressions.Expressions.ref(name), iceberg.NullOrder.NULLS_FIRST)
    order.commit()
    return [] if table.currentSnapshot() is None else [order_step(names)]


def _orders(spark: SparkSession, identifier: str) -> list[str]:
    """Return the columns by which the rows of an Iceberg table are sorted, or ever were; Spark Connect shows none."""
    try:
        table = iceberg_table(classic(spark, "Iceberg"), identifier)
    except SetupError:
        return []
    fields = [field for order in table.sortOrders().values() for field in order.fields()]
    return [table.schema().findColumnName(field.sourceId()) for field in fields]


def properties_of(spark: SparkSession, identifier: str) -> dict[str, str]:
    """Return the properties of a lake table."""
    rows = spark.sql(f"SHOW TBLPROPERTIES {identifier}").collect()
    return {row["key"]: row["value"] for row in rows}


def put_properties(spark: SparkSession, identifier: str, properties: Mapping[str, str]) -> None:
    """Set properties of a lake table, if there are any."""
    if properties:
        spark.sql(set_properties(identifier, properties))


def with_view(frame: DataFrame, statement: Callable[[str], str], *, is_kept: bool = True) -> None:
    """Run a statement of SQL that `statement`, a function of a view's name, returns for a view of a frame.

    With `is_kept`, the frame is computed once and kept: a merge reads its source several times, and Spark 4.1 finds no
    plan for a merge whose view reads another table of an Iceberg catalog. Delta Lake keeps the source itself.
    """
    name = f"cdcavro_{uuid4().hex}"
    (frame.localCheckpoint() if is_kept else frame).createOrReplaceTempView(name)
    try:
        frame.sparkSession.sql(statement(name)).collect()
    finally:
        frame.sparkSession.catalog.dropTempView(name)

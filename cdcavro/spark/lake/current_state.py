"""The current state of a table in a lake: the rules of `cdcavro.lake.merge` as statements of SQL."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from pyspark.sql import functions as sf
from pyspark.sql.avro.functions import from_avro

from cdcavro.change.order_value import reset_order
from cdcavro.lake import sql_statements as sql
from cdcavro.lake.escaped_names import OWN, quote
from cdcavro.lake.evolution import BEHIND, IGNORE, LENIENT, same_column
from cdcavro.lake.lake_columns import (
    held_columns,
    inherited_names,
    left_columns,
    older_names,
    readings,
    stated_names,
    text_names,
    wanted_columns,
)
from cdcavro.lake.lakes import CURRENT, adopted_columns, check_form, name_property
from cdcavro.lake.merge import Origin, first_keyed, late_version, progress_of, properties_behind
from cdcavro.lake.sql_statements import ABSENT, AT, DELETED, KEY, OLDER, ORDER, UNPARSED, literal
from cdcavro.lake.typed_rows import (
    CREATED,
    DELETE,
    DELETES_TABLE,
    DROP,
    ENDS,
    GUARDED,
    PARTIAL,
    TRUNCATE,
    UPSERTS,
    RowFacts,
    first_properties,
    stated_properties,
)
from cdcavro.spark.lake.sinks import (
    Delta,
    prepare,
    present_columns,
    properties_of,
    put_properties,
    with_view,
)
from cdcavro.spark.version_columns import STRICT, fill_older_values, has_older, read_fields, read_versions

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from pyspark.sql import Column, DataFrame, SparkSession

    from cdcavro.lake.evolution import LakeColumn, Step
    from cdcavro.spark.lake.sinks import Sink
    from cdcavro.table.ddl.steps import TableName
    from cdcavro.table.table_schema import TableSchema


_NOTHING: Final = "X''"
_LAST: Final = "last"
_VALUE: Final = "value"
_TEXT: Final = "text"
# No column of a table has this name.
_DELETED_KEY: Final = f"{OWN}deleted_key"


@dataclass
class LakeTableCache:
    """What is known of one lake table without looking at it: a look costs a twentieth of a merge.

    It belongs to the only writer of the table.
    """

    # None if they are not known.
    properties: dict[str, str] | None = None
    # Whether the table is surely empty, and whether its table of deletes is.
    is_empty: bool = False
    has_no_deletes: bool = False

    def look(self, spark: SparkSession, identifier: str) -> dict[str, str]:
        """Return the properties of a lake table, and know them from now on."""
        self.properties = properties_of(spark, identifier)
        return self.properties

    def put(self, spark: SparkSession, identifier: str, properties: Mapping[str, str]) -> None:
        """Set those properties of a lake table that it does not have yet."""
        known = self.look(spark, identifier) if self.properties is None else self.properties
        put_properties(spark, identifier, dict(properties.items() - known.items()))
        known.update(properties)


@dataclass(frozen=True)
class CurrentState:
    """The current state of a table in a sink.

    * `sink` (`Delta` or `Iceberg`)
    * `table` (TableName): what the table is called in the sink.
    * `behavior` (str): how the lake table follows the table's statements, as in `cdcavro.lake.evolution`.
    * `guard` (timedelta): how long deletes are kept against late changes.
    * `known` (LakeTableCache or None): what is remembered of the lake table between calls, if nobody else writes to it;
      by default each call looks.
    * `change_columns` (tuple of str): the columns about changes that are filled, and added to the lake table, by the
      words of `sql_statements.CHANGE_COLUMNS`.
    * `excluded` (frozenset[str]): the kinds of statements, of `evolution.STATEMENTS`, that the lake table does not follow.
    * `origin` (Origin or None): what tells the table from others that had its name; by default they are not told apart.
    * `check_held` (callable or None): raises an error if another process writes these tables, between what is read of
      them and the start of a write.
    """

    sink: Sink
    table: TableName
    behavior: str = LENIENT
    guard: timedelta = timedelta(days=7)
    known: LakeTableCache | None = None
    change_columns: tuple[str, ...] = ()
    excluded: frozenset[str] = frozenset()
    origin: Origin | None = None
    check_held: Callable[[], None] | None = field(default=None, kw_only=True, repr=False, compare=False)

    @property
    def identifier(self) -> str:
        """The name of the lake table in SQL."""
        return self.sink.identifier(self.table)

    @property
    def deletes(self) -> str:
        """The name of the table of deletes in SQL."""
        return self.sink.identifier(self.table, DELETES_TABLE)

    def prepare(
        self, spark: SparkSession, versions: Sequence[TableSchema], *, facts: RowFacts | None = None
    ) -> list[Step | str]:
        """Give the lake table the columns of the newest version; return what was changed.

        `facts` (`RowFacts` or None) is what is known of the batch to be merged next: a table that is created gets its
        properties for it at once, without another step. Raises `SchemaError` for a table without a primary key, which
        has a changelog only, for a key that does not find older rows, for a lake table that keeps versions of rows, and
        for a step that the behavior or the sink does not allow.
        """
        is_there = self.sink.is_there(spark, self.table, "")
        held = properties_of(spark, self.identifier) if is_there else {}
        version = versions[-1].version
        progress = progress_of(held, version, self.origin)
        keyed = first_keyed(self.table.table, versions, facts, held, progress, is_new=not is_there)
        known = self.known or LakeTableCache()
        self.sink.make_room(spark, self.table)
        filled = properties_behind(progress, version, self.origin, held, keyed)
        own, stated = uuid4().hex, first_properties(facts)
        if GUARDED in stated:
            # Whoever reads that there is a table of deletes finds it.
            self._create_deletes(spark, known)
        first = {**filled, **name_property(versions[-1].table), CREATED: own, **stated}
        columns = {**sql.STATE, **sql.change_types(self.change_columns)}
        behavior = progress.behavior(self.behavior, self.origin)
        if behavior == BEHIND and progress.keyed is None:
            # None of the rows of a table that was dropped is above what the lake table has.
            behavior = IGNORE
        steps = prepare(spark, self.sink, self.identifier, versions, columns, behavior, first, self.excluded)
        properties = known.look(spark, self.identifier)
        check_form(self.table.table, CURRENT, properties)
        known.is_empty = properties.get(CREATED) == own
        before = progress_of(properties, version, self.origin).filled
        if before < version:
            _fill(spark, self.identifier, versions[-1], before, adopted_columns(properties) or ())
        # A table that was made again begins with its first version.
        known.put(spark, self.identifier, filled)
        return steps

    def merge(
        self,
        rows: DataFrame,
        versions: Sequence[TableSchema],
        *,
        now: datetime | None = None,
        facts: RowFacts | None = None,
    ) -> None:
        """Merge a batch of the table's typed rows; merging it again changes nothing. Nothing else may write.

        `rows` has the columns version, operation, order, key and payload of `TypedRow`, and is read several times;
        `versions` are the table's, for which the lake table was prepared; `now` is the time of the batch, and `facts`
        (`RowFacts` or None) what is known of it already. If the lake table is known to have just been created for them,
        the rows are appended. Raises `OrderError`, and merges nothing, if the changes have several kinds of order, and
        `SchemaError` for a row without a key.
        """
        facts = facts_of(rows, versions) if facts is None else facts
        lake = rows.sparkSession.table(self.identifier)
        present = present_columns(lake)
        left = {column.name for column in left_columns(versions, present)}
        for part, read in _row_parts(rows, versions, present):
            self._merge_part(part, read, lake, facts, now or datetime.now(UTC), left)

    def _merge_part(
        self,
        rows: DataFrame,
        versions: Sequence[TableSchema],
        lake: DataFrame,
        facts: RowFacts,
        now: datetime,
        left: Collection[str],
    ) -> None:
        """Merge rows of a batch that are read under the last of some versions; `facts` are those of the batch.

        `left` are the lake table's columns that the newest version of all has not.
        """
        spark, known = rows.sparkSession, self.known or LakeTableCache()
        properties = known.properties or known.look(spark, self.identifier)
        stated = stated_properties(self.table.table, facts, properties)
        self._check_versions(rows, bytes.fromhex(stated.get(sql.FLOOR, "")), properties, versions)
        if facts.deletes and GUARDED not in properties:
            self._create_deletes(spark, known)
        known.put(spark, self.identifier, stated)
        is_empty, known.is_empty = known.is_empty, False
        floor = bytes.fromhex(stated.get(sql.FLOOR, ""))
        is_partial, is_guarded = PARTIAL in stated, GUARDED in stated
        # One that somebody else added stays as it is.
        present = [column for column in present_columns(lake) if column.field]
        names = older_names(versions, present)
        if facts.floor is not None and not is_empty:
            spark.sql(sql.delete_up_to(self.identifier, ORDER, floor))
            if is_partial or left:
                spark.sql(sql.forget_below(self.identifier, names, text_names(versions, present), floor))
        deletes = self._put_deletes(rows, facts, now, known) if is_guarded else None
        about = sql.change_values(lake.columns, self.change_columns)
        source = last_rows(rows, versions, present, deletes, floor, is_partial=is_partial, about=about)
        columns = names | {name: (name,) for name in about}
        apart = columns if is_partial else left
        texts = text_names(versions, present) if apart else {}
        flags = {"is_guarded": is_guarded, "apart": apart, "texts": texts}
        self._put(source, columns, lake if is_empty else None, flags)

    def _check_held(self) -> None:
        if self.check_held is not None:
            self.check_held()

    def _check_versions(
        self, rows: DataFrame, floor: bytes, properties: Mapping[str, str], versions: Sequence[TableSchema]
    ) -> None:
        """Raise `SchemaError` for rows above a floor that are of a version before the first which the state takes."""
        first = progress_of(properties, versions[-1].version, self.origin).keyed or 1
        if first > 1:
            is_late = (sf.col("order") > sf.lit(floor)) & (sf.col("version") < first)
            for row in rows.where(is_late).select("version").head(1):
                raise late_version(self.table.table, row["version"])

    def _create_deletes(self, spark: SparkSession, known: LakeTableCache) -> None:
        """Create the table of deletes unless there is one."""
        if not self.sink.is_there(spark, self.table, DELETES_TABLE):
            properties = self.sink.properties(sql.DELETES)
            spark.sql(sql.create_table(self.deletes, [], sql.DELETES, self.sink.using, properties))
            known.has_no_deletes = True

    def _put_deletes(self, rows: DataFrame, facts: RowFacts, now: datetime, known: LakeTableCache) -> DataFrame:
        """Append the last deletes of a batch, and return those of its keys that stand."""
        is_new, known.has_no_deletes = known.has_no_deletes, False
        came, held = deletes_of(rows, now), rows.sparkSession.table(self.deletes)
        if facts.deletes:
            self._check_held()
            (came if is_new else newer_deletes(came, held)).writeTo(self.deletes).append()
        return came.select(KEY, ORDER) if is_new else standing_deletes(rows, rows.sparkSession.table(self.deletes))

    def _put(
        self, source: DataFrame, names: Mapping[str, Sequence[str]], empty: DataFrame | None, flags: Mapping[str, Any]
    ) -> None:
        """Merge rows, which have columns of these names; into a lake table that is empty, they are appended."""
        if empty is None:
            self._merge(source, lambda view: sql.merge_state(self.identifier, view, names, **flags))
        else:
            # If the batch is run again, the table is not empty, and they are merged.
            alive = source.where(sf.col(ORDER).isNotNull())
            self._check_held()
            alive.select(*_lake_columns(empty, names)).writeTo(self.identifier).append()

    def _merge(self, source: DataFrame, statement: Callable[[str], str]) -> None:
        def checked(view: str) -> str:
            # What is kept of the deletes may be too old by now.
            self._check_held()
            return statement(view)

        # Delta Lake keeps the source of a merge itself, behind its look at the table.
        with_view(source, checked, is_kept=not isinstance(self.sink, Delta))

    def forget_deletes(self, spark: SparkSession, *, now: datetime | None = None) -> None:
        """Forget the deletes whose guard has expired at a time, by default now."""
        known = self.known or LakeTableCache()
        if GUARDED in (known.properties or known.look(spark, self.identifier)):
            spark.sql(sql.delete_up_to(self.deletes, sql.AT, (now or datetime.now(UTC)) - self.guard))


def _lake_columns(lake: DataFrame, names: Collection[str]) -> list[Column]:
    """Return the columns of a lake table, null but those with these names and those in `sql_statements.STATE`."""
    held = {*names, *sql.STATE}
    types = {one.name: one.dataType for one in lake.schema}
    return [
        (sf.col(quote(name)) if name in held else sf.lit(None)).cast(types[name]).alias(name) for name in lake.columns
    ]


def facts_of(rows: DataFrame, versions: Sequence[TableSchema]) -> RowFacts:
    """Return what a batch holds."""
    is_upsert = sf.col("operation").isin(*UPSERTS)
    is_end = sf.col("operation").isin(TRUNCATE, DROP)
    image = read_versions("version", sf.when(is_upsert, sf.col("payload")), versions)["after"]
    facts = rows.select("operation", "order", "key", sf.size(image["absent"]).alias(ABSENT)).agg(
        sf.max(sf.when(is_end, sf.col("order"))).alias("floor"),
        sf.count_if(sf.col("operation") == DELETE).alias("deletes"),
        sf.count_if(~is_end & sf.col("key").isNull()).alias("keyless"),
        sf.count_if(is_upsert & (sf.col(ABSENT) > 0)).alias("partial"),
        sf.collect_set(sf.substring("order", 1, 2)).alias("begins"),
    )
    found = facts.collect()[0]
    floor = None if found["floor"] is None else bytes(found["floor"])
    begins = [bytes(begin) for begin in found["begins"]]
    return RowFacts(floor, found["deletes"], found["keyless"], found["partial"], begins)


def deletes_of(rows: DataFrame, now: datetime) -> DataFrame:
    """Return the last delete of each key of a batch, with the columns of `sql_statements.DELETES`."""
    deletes = rows.where(sf.col("operation") == DELETE).groupBy(sf.col("key").alias(KEY))
    return deletes.agg(sf.max("order").alias(ORDER)).withColumn(AT, sf.lit(now))


def standing_deletes(rows: DataFrame, deletes: DataFrame) -> DataFrame:
    """Return the last delete of each key of a batch, given the rows of the table of deletes."""
    keys = rows.select(sf.col("key").alias(KEY)).distinct()
    return deletes.join(keys, KEY, "left_semi").groupBy(KEY).agg(sf.max(ORDER).alias(ORDER))


def newer_deletes(came: DataFrame, held: DataFrame) -> DataFrame:
    """Return those deletes of a batch than which the table of deletes holds no later one of the same key."""
    known = held.select(sf.col(KEY).alias(_DELETED_KEY), sf.col(ORDER).alias(DELETED))
    is_held = (came[KEY] == known[_DELETED_KEY]) & (came[ORDER] <= known[DELETED])
    return came.join(known, is_held, "left_anti")


def last_rows(
    rows: DataFrame,
    versions: Sequence[TableSchema],
    present: Sequence[LakeColumn],
    deletes: DataFrame | None,
    floor: bytes,
    *,
    is_partial: bool,
    about: Mapping[str, str] | None = None,
) -> DataFrame:
    """Return what `sql_statements.merge_state` merges: of each key the last change above all floors, and its delete.

    `deletes` are the last deletes of keys that are known, also those of the batch; None for a table that never had any.
    With `is_partial`, each column has the value of the last change that states it, and `_cdc_older` its order: that of
    nothing for columns of the lake table that the newest version has not. `about` has SQL for columns about changes, as
    `sql_statements.change_values` returns it.
    """
    reduce = _last_columns if is_partial else _last_changes

    def reduce_to_last(upserts: DataFrame) -> DataFrame:
        return _with_left(reduce(upserts, versions, present, about or {}), versions, present)

    upserts = with_headers(rows).where(sf.col("operation").isin(*UPSERTS) & (sf.col("order") > sf.lit(floor)))
    if deletes is None:
        return reduce_to_last(upserts)
    standing = deletes.select(sf.col(KEY).alias(_DELETED_KEY), sf.col(ORDER).alias(DELETED))
    above = sf.coalesce(sf.col(DELETED), sf.expr(_NOTHING))
    alive = upserts.join(standing, upserts["key"] == standing[_DELETED_KEY], "left").where(sf.col("order") > above)
    last = reduce_to_last(alive)
    came = rows.where(sf.col("operation") == DELETE).select(sf.col("key").alias(_DELETED_KEY)).distinct()
    gone = came.join(standing, _DELETED_KEY)
    joined = last.join(gone, last[KEY] == gone[_DELETED_KEY], "full")
    return joined.withColumn(KEY, sf.coalesce(KEY, _DELETED_KEY)).drop(_DELETED_KEY)


def with_headers(rows: DataFrame) -> DataFrame:
    """Return typed rows with the column of the headers of their messages, null if there is none."""
    return rows if sql.HEADERS in rows.columns else rows.withColumn(sql.HEADERS, sf.lit(None).cast("string"))


def _row_parts(
    rows: DataFrame, versions: Sequence[TableSchema], present: Sequence[LakeColumn]
) -> list[tuple[DataFrame, Sequence[TableSchema]]]:
    """Return typed rows in parts, as `row_images.row_parts` does."""
    first, newest = versions[0].version, versions[-1].version
    found = readings(versions, first, present)
    if len(found) > 1:
        # Only where a column was dropped: it costs a job.
        first = rows.agg(sf.min("version")).collect()[0][0]
        found = readings(versions, newest if first is None else first, present)
    if len(found) == 1:
        return [(rows, versions)]
    number, lasts = sf.coalesce(sf.col("version"), sf.lit(newest)), [last for last, _ in found]
    return [
        (rows.where((number > before) & (number <= last)), known)
        for before, (last, known) in zip([0, *lasts], found, strict=False)
    ]


def _absent(versions: Sequence[TableSchema], columns: Sequence[tuple[LakeColumn, LakeColumn]]) -> str:
    """Return SQL for the lake's names of the columns that a change lacks; it has those of its version."""
    flags = []
    for held, names in stated_names(versions, columns).items():
        named = ", ".join(f"{version}, {literal(name)}" for version, name in names.items())
        is_absent = f"array_contains(image.absent, map({named})[version])"
        flags.append(f"CASE WHEN {is_absent} THEN {literal(held)} END")
    return f"CASE WHEN size(image.absent) > 0 THEN array_compact(array({', '.join(flags)})) END AS {ABSENT}"


def _images(
    upserts: DataFrame,
    versions: Sequence[TableSchema],
    columns: Sequence[tuple[LakeColumn, LakeColumn]],
    about: Mapping[str, str],
    more: str,
) -> DataFrame:
    """Return the columns of rows after their changes, those about the changes, and one more.

    They are SQL: a Column takes several calls of the JVM.
    """
    envelope, fields = read_fields("version", sf.col("payload"), versions)
    values = [
        f"CAST({quote('image', fields[one.field])} AS {held.type}) AS {quote(held.name)}" for one, held in columns
    ]
    own = [f"key AS {KEY}", f"`order` AS {ORDER}"]
    texts = f"CASE WHEN size(image.unparsed) > 0 THEN image.unparsed END AS {UNPARSED}"
    values += [f"{value} AS {quote(name)}" for name, value in about.items()]
    sources = [envelope["source"].alias("source"), sf.col(sql.HEADERS)] if about else []
    read = upserts.select("key", "order", "version", envelope["after"].alias("image"), *sources)
    return read.selectExpr(*own, *values, texts, more)


def _last_changes(
    upserts: DataFrame, versions: Sequence[TableSchema], present: Sequence[LakeColumn], about: Mapping[str, str]
) -> DataFrame:
    """Return the last change of each key; only its payload is read."""
    whole = sf.struct("order", "version", "payload", sql.HEADERS)
    found = upserts.groupBy("key").agg(sf.max_by(whole, "order").alias(_LAST)).select("key", f"{_LAST}.*")
    columns, nothing = held_columns(versions[-1], present), f"CAST(NULL AS map<string,binary>) AS {OLDER}"
    return _images(found, versions, columns, about, nothing)


def _with_left(rows: DataFrame, versions: Sequence[TableSchema], present: Sequence[LakeColumn]) -> DataFrame:
    """Return last rows with the columns of the lake table that none of their changes states."""
    left, named = left_columns(versions, present), older_names(versions, present)
    if not left:
        return rows
    since = ", ".join(f"{literal(named[column.name][0])}, {_NOTHING}" for column in left)
    older = f"map_concat(coalesce({OLDER}, map()), map({since})) AS {OLDER}"
    nulls = [f"CAST(NULL AS {column.type}) AS {quote(column.name)}" for column in left]
    return rows.selectExpr(*(quote(name) for name in rows.columns if name != OLDER), older, *nulls)


def _last_columns(
    upserts: DataFrame, versions: Sequence[TableSchema], present: Sequence[LakeColumn], about: Mapping[str, str]
) -> DataFrame:
    """Return the last value of each column; a column that nobody states has the order of nothing."""
    columns = held_columns(versions[-1], present)
    called = older_names(versions, present) | {name: (name,) for name in about}
    alive = _images(upserts, versions, columns, about, _absent(versions, columns))
    names, texts_of = [*(held.name for _, held in columns), *about], text_names(versions, present)
    # Texts of columns that the table has not are the newest change's, as its order is.
    stated = [*names, ORDER] if ORDER in texts_of else names
    pieces = [_last_stated(name, texts_of.get(name, ())).alias(f"piece {i}") for i, name in enumerate(stated)]
    found = alive.groupBy(KEY).agg(sf.max(ORDER).alias(ORDER), *pieces)
    piece = {name: sf.col(f"`piece {i}`") for i, name in enumerate(stated)}
    since = {name: sf.coalesce(piece[name].getField(ORDER), sf.expr(_NOTHING)) for name in names}
    named = {called[name][0]: order for name, order in since.items()}
    older = sf.map_filter(_map(named), lambda _, order: order != sf.col(ORDER))
    kept = {
        one: piece[name].getField(f"{_TEXT} {j}") for name in stated for j, one in enumerate(texts_of.get(name, ()))
    }
    texts = sf.map_filter(_map(kept), lambda _, value: value.isNotNull())
    return found.select(
        KEY,
        ORDER,
        *[piece[name].getField(_VALUE).alias(name) for name in names],
        sf.when(sf.size(texts) > 0, texts).alias(UNPARSED),
        sf.when(sf.size(older) > 0, older).alias(OLDER),
    )


def _last_stated(name: str, texts: Sequence[str]) -> Column:
    """Return the order, the value and the texts of a column in the last change that states it."""
    is_stated = ~sf.coalesce(sf.array_contains(ABSENT, sf.lit(name)), sf.lit(False))  # noqa: FBT003
    values = [sf.try_element_at(UNPARSED, sf.lit(one)).alias(f"{_TEXT} {i}") for i, one in enumerate(texts)]
    whole = sf.struct(ORDER, sf.col(quote(name)).alias(_VALUE), *values)
    return sf.max_by(sf.when(is_stated, whole), sf.when(is_stated, sf.col(ORDER)))


def _map(values: dict[str, Column]) -> Column:
    return sf.create_map(*[part for name, value in values.items() for part in (sf.lit(name), value)])


def _fill(
    spark: SparkSession, identifier: str, schema: TableSchema, before: int, kept: Collection[str] = frozenset()
) -> None:
    """Give the rows of versions up to `before` what the newest version reads in their payloads.

    Columns that came since get their default, and columns that took over from retired ones get the values of these,
    where that is exact, and are as old in each row. Rows that are merged later have both already. Columns of the lake
    that are in `kept` are left alone.
    """
    present, record = present_columns(spark.table(identifier)), schema.record
    named = [(one.field, same_column(present, one)) for one in wanted_columns(schema)]
    held = {field: found.name for field, found in named if found is not None and found.name not in kept}
    stated = {field["name"] for field in record["fields"] if field.get("default") is not None}
    added = [one.field for one in schema.all_columns if one.since > before and one.field in stated.intersection(held)]
    if added:
        nothing: dict[str, Any] = {name: record[name] for name in ("type", "name", "namespace") if name in record} | {
            "fields": []
        }
        # SQL has `from_avro` from Spark 4.0 on.
        row = from_avro(sf.lit(bytearray()), json.dumps(nothing), {"avroSchema": schema.row.json, **STRICT})
        sets = ", ".join(f"{quote('t', held[field])} = {quote('s', 'row', field)}" for field in added)
        with_view(
            spark.range(1).select(row.alias("row")),
            lambda source: f"MERGE INTO {identifier} t USING {source} s ON true WHEN MATCHED THEN UPDATE SET {sets}",
        )
    is_retired = any(one.until is not None and one.until >= before for one in schema.all_columns)
    if is_retired and has_older(record["fields"]):
        _fill_heirs(spark, identifier, schema, kept)


def _fill_heirs(spark: SparkSession, identifier: str, schema: TableSchema, kept: Collection[str]) -> None:
    fields = schema.record["fields"]
    rows = spark.table(identifier)
    present = present_columns(rows)
    named = [(column.field, same_column(present, column)) for column in wanted_columns(schema)]
    columns = {field: found.name for field, found in named if found is not None}
    names = [name for name in columns if name in {field["name"] for field in fields}]
    row = sf.struct(*[sf.col(quote(columns[name])).alias(name) for name in names])
    filled = rows.select(
        KEY, OLDER, sf.transform(sf.array(row), lambda one: fill_older_values(one, fields, names))[0].alias("row")
    )
    held = {field: name for field, name in columns.items() if name not in kept}
    if not held:
        return
    older = _inherited_orders(inherited_names(schema, held)).alias(OLDER)
    view = filled.select(KEY, older, *[sf.col("row").getField(name).alias(columns[name]) for name in names])
    put = [*held.values(), OLDER]
    with_view(
        view,
        lambda source: (
            f"MERGE INTO {identifier} t USING {source} s ON {quote('t', KEY)} = {quote('s', KEY)} "
            "WHEN MATCHED THEN UPDATE SET " + ", ".join(f"{quote('t', name)} = {quote('s', name)}" for name in put)
        ),
    )


def _inherited_orders(inherited: Mapping[str, tuple[Sequence[str], Sequence[str]]]) -> Column:
    """Return `_cdc_older` with the orders of columns that took over; `inherited` is that of `inherited_names`."""

    def order_of(names: Sequence[str]) -> Column:
        return sf.coalesce(*[sf.try_element_at(OLDER, sf.lit(name)) for name in names])

    orders = {own[0]: sf.when(order_of(own).isNull(), order_of(others)) for own, others in inherited.values()}
    return sf.map_concat(OLDER, sf.map_filter(_map(orders), lambda _, order: order.isNotNull()))


def floor_of(rows: DataFrame, facts: RowFacts, excluded: Collection[str]) -> bytes | None:
    """Return the order of the last TRUNCATE or DROP of rows that a state follows, or of a reset; None if there is none."""
    ends = [operation for operation, kind in ENDS.items() if kind not in excluded]
    if facts.floor is None or len(ends) == len(ENDS):
        return facts.floor
    resets = [sf.lit(reset_order(count)) for count in range(1, facts.resets + 1)]
    is_floor = sf.col("operation").isin(ends) | (sf.col("order").isin(resets) if resets else sf.lit(False))  # noqa: FBT003
    found = rows.where(is_floor).agg(sf.max("order").alias("floor")).collect()[0]["floor"]
    return None if found is None else bytes(found)

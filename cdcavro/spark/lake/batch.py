"""A batch of typed rows on Spark: what it holds, and of each key the last change."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark.sql import functions as sf

from cdcavro.lake.evolution import same_column
from cdcavro.lake.names import OWN, quoted
from cdcavro.lake.statements import ABSENT, AT, DELETED, KEY, OLDER, ORDER, UNPARSED, literal
from cdcavro.lake.typed_rows import DELETE, DROP, TRUNCATE, UPSERTS
from cdcavro.spark.lake.columns import wanted_columns
from cdcavro.spark.versions.reading import read_fields, read_versions

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from pyspark.sql import Column, DataFrame

    from cdcavro.lake.evolution import LakeColumn
    from cdcavro.table.schema import TableSchema

_NOTHING: Final = "X''"
_LAST: Final = "last"
_VALUE: Final = "value"
_TEXT: Final = "text"
# No column of a table is called so.
_DELETED_KEY: Final = f"{OWN}deleted_key"


class Facts(NamedTuple):
    """What a batch of a table's typed rows holds.

    Attributes: `floor` (bytes or None), the order of its last TRUNCATE or DROP; `deletes`, `keyless` and `partial`
    (int), the numbers of deletes, of rows without a key, and of those that lack columns; `begins` (list of bytes), the
    first two bytes of orders.
    """

    floor: bytes | None
    deletes: int
    keyless: int
    partial: int
    begins: list[bytes]


def facts_of(rows: DataFrame, versions: Sequence[TableSchema]) -> Facts:
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
    return Facts(floor, found["deletes"], found["keyless"], found["partial"], begins)


def deletes_of(rows: DataFrame, now: datetime) -> DataFrame:
    """Return the last delete of each key of a batch, with the columns of `statements.DELETES`."""
    deletes = rows.where(sf.col("operation") == DELETE).groupBy(sf.col("key").alias(KEY))
    return deletes.agg(sf.max("order").alias(ORDER)).withColumn(AT, sf.lit(now))


def held_columns(schema: TableSchema, present: Sequence[LakeColumn]) -> list[tuple[LakeColumn, LakeColumn]]:
    """Return the columns of a version that a lake table has: the wanted column, and the table's."""
    pairs = [(one, same_column(present, one)) for one in wanted_columns(schema)]
    return [(one, held) for one, held in pairs if held is not None]


def last_rows(
    rows: DataFrame,
    versions: Sequence[TableSchema],
    present: Sequence[LakeColumn],
    deletes: DataFrame | None,
    floor: bytes,
    *,
    is_partial: bool,
) -> DataFrame:
    """Return what `statements.merge_state` merges: of each key the last change above all floors, and its delete.

    `deletes` are the last deletes of keys as far as they are known, those of the batch among them; None for a table that
    never had any. With `is_partial`, each column has the value of the last change that states it, and `_cdc_older` its
    order.
    """
    reduced = partial(_last_columns if is_partial else _last_changes, versions=versions, present=present)
    upserts = rows.where(sf.col("operation").isin(*UPSERTS) & (sf.col("order") > sf.lit(floor)))
    if deletes is None:
        return reduced(upserts)
    standing = deletes.select(sf.col(KEY).alias(_DELETED_KEY), sf.col(ORDER).alias(DELETED))
    above = sf.coalesce(sf.col(DELETED), sf.expr(_NOTHING))
    alive = upserts.join(standing, upserts["key"] == standing[_DELETED_KEY], "left").where(sf.col("order") > above)
    last = reduced(alive)
    came = rows.where(sf.col("operation") == DELETE).select(sf.col("key").alias(_DELETED_KEY)).distinct()
    gone = came.join(standing, _DELETED_KEY)
    joined = last.join(gone, last[KEY] == gone[_DELETED_KEY], "full")
    return joined.withColumn(KEY, sf.coalesce(KEY, _DELETED_KEY)).drop(_DELETED_KEY)


def _absent(versions: Sequence[TableSchema], columns: Sequence[tuple[LakeColumn, LakeColumn]]) -> str:
    """Return the names in the lake of the columns that a change lacks, which it states under those of its version, in SQL."""
    flags = []
    for wanted, held in columns:
        named = [
            f"{schema.version}, {literal(column.name)}"
            for schema in versions
            for column in schema.columns
            if column.field in (wanted.field, *wanted.aliases)
        ]
        is_absent = f"array_contains(image.absent, map({', '.join(named)})[version])"
        flags.append(f"CASE WHEN {is_absent} THEN {literal(held.name)} END")
    return f"CASE WHEN size(image.absent) > 0 THEN array_compact(array({', '.join(flags)})) END AS {ABSENT}"


def _images(
    upserts: DataFrame,
    versions: Sequence[TableSchema],
    columns: Sequence[tuple[LakeColumn, LakeColumn]],
    more: str,
) -> DataFrame:
    """Return the columns of the rows that were put, and one more. Texts of SQL: a Column is made by several calls of the JVM."""
    envelope, fields = read_fields("version", sf.col("payload"), versions)
    values = [
        f"CAST({quoted('image', fields[one.field])} AS {held.type}) AS {quoted(held.name)}" for one, held in columns
    ]
    own = [f"key AS {KEY}", f"`order` AS {ORDER}"]
    texts = f"CASE WHEN size(image.unparsed) > 0 THEN image.unparsed END AS {UNPARSED}"
    read = upserts.select("key", "order", "version", envelope["after"].alias("image"))
    return read.selectExpr(*own, *values, texts, more)


def _last_changes(upserts: DataFrame, versions: Sequence[TableSchema], present: Sequence[LakeColumn]) -> DataFrame:
    """Return the last change of each key, of which alone the payload is read."""
    whole = sf.struct("order", "version", "payload")
    found = upserts.groupBy("key").agg(sf.max_by(whole, "order").alias(_LAST)).select("key", f"{_LAST}.*")
    return _images(found, versions, held_columns(versions[-1], present), f"CAST(NULL AS map<string,binary>) AS {OLDER}")


def _last_columns(upserts: DataFrame, versions: Sequence[TableSchema], present: Sequence[LakeColumn]) -> DataFrame:
    """Return the last value of each column; a column that nobody states has the order of nothing."""
    columns = held_columns(versions[-1], present)
    alive, names = _images(upserts, versions, columns, _absent(versions, columns)), [held.name for _, held in columns]
    stated = {name: ~sf.coalesce(sf.array_contains(ABSENT, sf.lit(name)), sf.lit(False)) for name in names}  # noqa: FBT003
    text = {name: sf.try_element_at(UNPARSED, sf.lit(name)) for name in names}
    pieces = [
        sf.max_by(
            sf.when(stated[name], sf.struct(ORDER, sf.col(quoted(name)).alias(_VALUE), text[name].alias(_TEXT))),
            sf.when(stated[name], sf.col(ORDER)),
        ).alias(f"piece {i}")
        for i, name in enumerate(names)
    ]
    found = alive.groupBy(KEY).agg(sf.max(ORDER).alias(ORDER), *pieces)
    piece = {name: sf.col(f"`piece {i}`") for i, name in enumerate(names)}
    since = {name: sf.coalesce(piece[name].getField(ORDER), sf.expr(_NOTHING)) for name in names}
    older = sf.map_filter(_map(since), lambda _, order: order != sf.col(ORDER))
    texts = sf.map_filter(
        _map({name: piece[name].getField(_TEXT) for name in names}), lambda _, value: value.isNotNull()
    )
    return found.select(
        KEY,
        ORDER,
        *[piece[name].getField(_VALUE).alias(name) for name in names],
        sf.when(sf.size(texts) > 0, texts).alias(UNPARSED),
        sf.when(sf.size(older) > 0, older).alias(OLDER),
    )


def _map(values: dict[str, Column]) -> Column:
    return sf.create_map(*[part for name, value in values.items() for part in (sf.lit(name), value)])

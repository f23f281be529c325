"""The current state of a table in a lake: the rules of `cdcavro.lake.merge` as statements of SQL."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from pyspark.sql import functions as sf

from cdcavro.change.order_value import KINDS, is_of_full_load, order_kind
from cdcavro.errors import OrderError, SchemaError
from cdcavro.lake import statements as sql
from cdcavro.lake.evolution import LENIENT
from cdcavro.lake.merge import check_keys
from cdcavro.lake.names import quoted
from cdcavro.spark.lake.batch import Facts, deletes_of, facts_of, held_columns, last_rows
from cdcavro.spark.lake.columns import fill, prepare, present_columns, properties_of, put_properties, with_view
from cdcavro.spark.lake.ownership import adopted_columns
from cdcavro.spark.lake.sinks import Delta, name_property

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import Column, DataFrame, SparkSession

    from cdcavro.lake.evolution import Step
    from cdcavro.spark.lake.sinks import Sink
    from cdcavro.table.ddl.steps import TableName
    from cdcavro.table.schema import TableSchema

_KIND: Final = "cdcavro.order"
_PARTIAL: Final = "cdcavro.partial"
# There is a table of deletes.
_GUARDED: Final = "cdcavro.deletes"
# The version of which all rows have what it reads in older ones: a kill between two steps leaves the rest to be done.
_FILLED: Final = "cdcavro.filled"
# Another one for each try to create the table: whose it has, created it.
_CREATED: Final = "cdcavro.created"
_DELETES: Final = "deletes"


@dataclass
class Known:
    """What is known of a lake table without a look at it: one costs as much as a twentieth of a merge.

    It belongs to the only one that writes the table, and to no other table. Attributes: `properties` (dict of str, or None
    where they are not known); `is_empty` (bool), whether it surely is.
    """

    properties: dict[str, str] | None = None
    is_empty: bool = False

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

    Attributes: `sink` (`Delta` or `Iceberg`); `table` (`TableName`), what it is called there; `behavior` (str),
    how the lake table follows the table's statements, as in `cdcavro.lake.evolution`; `guard` (timedelta), how
    long deletes are kept against late changes; `known` (`Known` or None), what is known of the lake table from call to
    call, for which nobody else may write it: by default each call looks.
    """

    sink: Sink
    table: TableName
    behavior: str = LENIENT
    guard: timedelta = timedelta(days=7)
    known: Known | None = None

    @property
    def identifier(self) -> str:
        """The name of the lake table in SQL."""
        return self.sink.identifier(self.table)

    @property
    def deletes(self) -> str:
        """The name of the table of deletes in SQL."""
        return self.sink.identifier(self.table, _DELETES)

    def prepare(
        self, spark: SparkSession, versions: Sequence[TableSchema], *, facts: Facts | None = None
    ) -> list[Step]:
        """Make the lake table have the columns of the newest version; return what was done to it.

        `facts` (`Facts` or None) is what is known of the batch that is merged next: a table that is created then says at
        once what orders its changes, and takes no step of its own for it. Raises `SchemaError` for a table without a
        primary key, which has a changelog only, for a key that does not find older rows, and for a step that the
        behavior or the sink does not allow.
        """
        if any(schema.key is None for schema in versions):
            raise SchemaError(self.table.table, "has no primary key, and so no current state, only a changelog")
        check_keys(versions)
        known = self.known or Known()
        self.sink.make_room(spark, self.table)
        version = versions[-1].version
        filled, own = {_FILLED: str(version)}, uuid4().hex
        kinds = _kinds(facts) if facts else set()
        first = {
            **filled,
            **name_property(self.table),
            _CREATED: own,
            **({_KIND: kinds.pop()} if len(kinds) == 1 else {}),
        }
        steps = prepare(spark, self.sink, self.identifier, versions[-1], sql.STATE, self.behavior, first)
        properties = known.look(spark, self.identifier)
        known.is_empty = properties.get(_CREATED) == own
        before = int(properties.get(_FILLED, "0"))
        if before < version:
            fill(spark, self.identifier, versions[-1], before, adopted_columns(properties) or ())
        # A table that was made again begins with its first version.
        known.put(spark, self.identifier, filled)
        return steps

    def merge(
        self,
        rows: DataFrame,
        versions: Sequence[TableSchema],
        *,
        now: datetime | None = None,
        facts: Facts | None = None,
    ) -> None:
        """Merge a batch of the table's typed rows; a batch that is merged again changes nothing. Nothing else may write.

        `rows` has the columns version, operation, order, key and payload of `TypedRow`, and is read several times;
        `versions` are the table's, for which the lake table was prepared; `now` is the time of the batch, and `facts`
        (`Facts` or None) what is known of it already. Into a lake table that is known to have been created for them, they
        are appended. Raises `OrderError`, with nothing merged, for changes that are ordered by different things, and
        `SchemaError` for a row without a key.
        """
        spark, moment = rows.sparkSession, now or datetime.now(UTC)
        known = self.known or Known()
        properties = known.properties or known.look(spark, self.identifier)
        facts = facts_of(rows, versions) if facts is None else facts
        stated = self._stated(facts, properties)
        if facts.deletes and _GUARDED not in properties:
            spark.sql(
                sql.create_table(self.deletes, [], sql.DELETES, self.sink.using, self.sink.properties(sql.DELETES))
            )
        known.put(spark, self.identifier, stated)
        floor = bytes.fromhex(stated.get(sql.FLOOR, ""))
        if facts.floor is not None:
            spark.sql(sql.delete_below(self.identifier, floor))
        if facts.deletes:
            self._merge(deletes_of(rows, moment), lambda view: sql.merge_deletes(self.deletes, view))
        is_partial, is_guarded = _PARTIAL in stated, _GUARDED in stated
        lake = spark.table(self.identifier)
        present = present_columns(lake)
        deletes = spark.table(self.deletes) if is_guarded else None
        source = last_rows(rows, versions, present, deletes, floor, is_partial=is_partial)
        names = [held.name for _, held in held_columns(versions[-1], present)]
        is_empty, known.is_empty = known.is_empty and not is_guarded, False
        flags = {"is_guarded": is_guarded, "is_partial": is_partial}
        self._put(source, names, lake if is_empty else None, flags)

    def _put(self, source: DataFrame, names: Sequence[str], empty: DataFrame | None, flags: Mapping[str, bool]) -> None:
        """Merge rows, which have columns of these names; into a lake table that is empty, they are appended."""
        if empty is None:
            self._merge(source, lambda view: sql.merge_state(self.identifier, view, names, **flags))
        else:
            # If they are written again, they are there, and merged.
            source.select(*_listed(empty, names)).writeTo(self.identifier).append()

    def _merge(self, source: DataFrame, statement: Callable[[str], str]) -> None:
        # Delta Lake keeps the source of a merge itself.
        with_view(source, statement, is_kept=not isinstance(self.sink, Delta))

    def forget_deletes(self, spark: SparkSession, *, now: datetime | None = None) -> None:
        """Forget the deletes whose guard is over at a time, by default now."""
        known = self.known or Known()
        if _GUARDED in (known.properties or known.look(spark, self.identifier)):
            spark.sql(sql.delete_until(self.deletes, (now or datetime.now(UTC)) - self.guard))

    def _stated(self, facts: Facts, properties: Mapping[str, str]) -> dict[str, str]:
        """Return what is known of the table with a batch: its floor, what orders its changes, whether they lack columns."""
        if facts.keyless:
            raise SchemaError(self.table.table, f"{facts.keyless} rows have no key, and so no current state")
        known = {properties[_KIND]} if _KIND in properties else set()
        kinds = _kinds(facts) | known
        if len(kinds) > 1:
            listed = sorted(kinds, key=KINDS.index, reverse=True)
            raise OrderError(None, self.table.table, " and some with ".join([f"some with {listed[0]}", *listed[1:]]))
        floor = max(facts.floor or b"", bytes.fromhex(properties.get(sql.FLOOR, "")))
        stated = {sql.FLOOR: floor.hex()} if floor else {}
        stated |= dict.fromkeys([_KIND] if kinds else [], "".join(kinds))
        flags = {_PARTIAL: facts.partial, _GUARDED: facts.deletes}
        return stated | {name: "true" for name, count in flags.items() if count or name in properties}


def _kinds(facts: Facts) -> set[str]:
    """Return what orders the changes of a batch: those of a full load have an order of their own."""
    return {order_kind(begin) for begin in facts.begins if not is_of_full_load(begin)}


def _listed(lake: DataFrame, names: Sequence[str]) -> list[Column]:
    """Return the columns of a lake table, of which what is merged has some, and those of `statements.STATE`."""
    held = {*names, *sql.STATE}
    types = {one.name: one.dataType for one in lake.schema}
    return [
        (sf.col(quoted(name)) if name in held else sf.lit(None)).cast(types[name]).alias(name) for name in lake.columns
    ]

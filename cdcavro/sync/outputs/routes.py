"""Routes: what tables of the source are called where they are written."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
from msgspec import Struct

from cdcavro.errors import shown
from cdcavro.table.ddl.steps import TableName

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

_STAR: Final = "*"
_MOST_PARTS: Final = 3
# What the name of a target may have in braces: the number of a star.
_NUMBER: Final = re.compile(r"\{([0-9]{1,3})\}")


class Route(Struct, frozen=True, forbid_unknown_fields=True):
    """The names under which some tables are written; if several routes match a table, the first one applies.

    Raises `ValueError`.

    * `from`: the name of tables: `table`, `database.table` or `database.schema.table`, with `*` for any text in a part.
    * `to`: their name where they are written, with as many parts; `{1}` is what the first `*` stands for, and so on.
    * `shards`: whether tables with the same new name are merged into one lake table, or written under one schema to a topic
      or to Avro files. The column `_cdc_shard` says which table a row is from. These shards are not partitions of a topic.
    """

    pattern: str = msgspec.field(name="from")
    to: str
    shards: bool = False

    def __post_init__(self) -> None:
        """Check that the two fit together."""
        parts, target = self.pattern.split("."), self.to.split(".")
        if not all(parts) or not all(target) or len(parts) > _MOST_PARTS:
            raise ValueError(
                "a route is from and to table, database.table or database.schema.table, not from"
                f" {shown(self.pattern)} to {shown(self.to)}"
            )
        if len(parts) != len(target):
            raise ValueError(f"to has as many parts as from, {len(parts)}, not {shown(self.to)}")
        stars = self.pattern.count(_STAR)
        rest = _NUMBER.sub("", self.to)
        if _STAR in rest or "{" in rest or "}" in rest:
            raise ValueError(
                f"to is a name, in which {{1}} is what the first * of from stands for, not {shown(self.to)}"
            )
        wrong = next((one for one in self._numbers if not 0 < one <= stars), None)
        if wrong is not None:
            raise ValueError(f"from has {stars} * for the {{{wrong}}} of to")

    @property
    def _numbers(self) -> list[int]:
        return [int(one) for one in _NUMBER.findall(self.to)]

    @property
    def is_merging(self) -> bool:
        """Whether tables with different names get one name, which lacks some of what distinguishes them."""
        return not {*self._numbers}.issuperset(range(1, self.pattern.count(_STAR) + 1))

    def target(self, table: TableName) -> TableName | None:
        """Return what a table is called; None if the route does not fit it.

        Parts of its name before those in the route are kept.
        """
        given = (table.database, table.schema, table.table)
        own, parts = [part for part in given if part is not None], self.pattern.split(".")
        if len(own) < len(parts):
            return None
        texts: list[str] = []
        for name, part in zip(own[-len(parts) :], parts, strict=True):
            found = re.fullmatch("(.*)".join(map(re.escape, part.split(_STAR))), name, re.DOTALL)
            if found is None:
                return None
            texts += found.groups()
        filled = [_NUMBER.sub(lambda one: texts[int(one[1]) - 1], part) for part in self.to.split(".")]
        named = iter([*own[: -len(parts)], *filled])
        database, schema = (None if part is None else next(named) for part in given[:2])
        return TableName(database, schema, next(named))


class Routed(NamedTuple):
    """What a table is called where it is written, and whether it is a shard of what is called so."""

    name: TableName
    is_shard: bool = False


class Routes:
    """The routes of a pipeline."""

    def __init__(self, routes: Sequence[Route] = ()) -> None:
        self._routes = tuple(routes)

    @property
    def merging(self) -> Route | None:
        """The first route that writes several tables into one without `shards`; None if none does."""
        targets = [route.to for route in self._routes]
        merging = (route for route in self._routes if route.is_merging or targets.count(route.to) > 1)
        return next((route for route in merging if not route.shards), None)

    @property
    def repeated(self) -> Route | None:
        """The first route whose pattern one before it has, too; None if there is none."""
        patterns = [route.pattern for route in self._routes]
        return next((route for i, route in enumerate(self._routes) if route.pattern in patterns[:i]), None)

    @property
    def of_shards(self) -> Route | None:
        """The first route of shards; None if there is none."""
        return next((route for route in self._routes if route.shards), None)

    def target(self, table: TableName) -> Routed:
        """Return what a table is called."""
        for route in self._routes:
            name = route.target(table)
            if name is not None:
                return Routed(name, route.shards)
        return Routed(table)

    def unmatched(self, tables: Collection[TableName]) -> list[Route]:
        """Return the routes that fit none of some tables."""
        return [route for route in self._routes if not any(route.target(one) for one in tables)]

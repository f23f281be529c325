"""A table through its versions and names, and which version a change of it belongs to."""

from __future__ import annotations

import json
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from cdcavro.change import Column
from cdcavro.columns.types import column_type
from cdcavro.declared import declared_type
from cdcavro.errors import SchemaError
from cdcavro.tables.evolution import by_columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cdcavro.change import Source
    from cdcavro.columns.given import GivenTypes
    from cdcavro.order import Key
    from cdcavro.tables.schema import TableSchema

MAX_VERSIONS: Final = 10_000
Signature = frozenset[tuple[str | None, Any, str]]


@dataclass(slots=True, eq=False)
class Table:
    """A table through its versions and names.

    Attributes: `number` (int), unlike any other's; `versions` (list of `TableSchema`), from the first;
    `steps` (list of tuple of str), what led to each; `is_gone` (bool), it was dropped; `is_stated`
    (bool), a statement or a list said which columns it has.
    """

    number: int
    versions: list[TableSchema] = field(default_factory=list)
    steps: list[tuple[str, ...]] = field(default_factory=list)
    is_gone: bool = False
    is_stated: bool = False
    _starts: list[Any] = field(default_factory=list)
    _known: dict[Signature, list[int]] = field(default_factory=dict)
    _seen: dict[tuple[Any, ...], Signature] = field(default_factory=dict)
    _is_used: bool = False

    @property
    def schema(self) -> TableSchema:
        """The newest version."""
        return self.versions[-1]

    def append(self, schema: TableSchema, steps: Sequence[str], start: Key | None) -> None:
        """Take a newer version, that of changes from `start` on. Raises `SchemaError` for more than 10,000."""
        if len(self.versions) >= MAX_VERSIONS:
            raise SchemaError(schema.table.table, f"more than {MAX_VERSIONS} versions")
        self.versions.append(schema)
        self.steps.append(tuple(steps))
        self._starts.append(start)
        self._is_used = False

    def state(self, columns: Sequence[Column], source: Source, given: GivenTypes, start: Key | None) -> TableSchema:
        """Give the version with the columns that a change states; a new one if there is none. Raises `SchemaError`.

        A version that nothing was written in yet takes the columns as they are stated.
        """
        signature = self._signature(columns, source, given)
        known = self._known.get(signature)
        if known is None or (known[-1] != self._last and self._own() == signature):
            if known is None and self._own() != signature:
                self._take(columns, source, given, start)
            self._known.setdefault(signature, []).append(self._last)
        self.is_stated = True
        return self.versions[self._known[signature][-1]]

    def extend(self, names: Sequence[str], source: Source, given: GivenTypes, start: Key | None) -> TableSchema:
        """Give the newest version, with columns of these names too if nobody said which columns there are."""
        known = {one.name for one in self.schema.columns}
        if not self.is_stated and not known.issuperset(names):
            wanted = [*columns_of(self.schema), *(Column(name=name) for name in names if name not in known)]
            self.append(*by_columns(self.schema, wanted, source, given), start)
        return self.schema

    def use(self) -> None:
        """Note that something is written in the newest version, which stays as it is from now on."""
        self._is_used = True

    def at(self, columns: Sequence[Column] | None, source: Source, given: GivenTypes, key: Key) -> TableSchema:
        """Give the version of a change by the columns that it states, and by its place in the order."""
        indexes: Sequence[int] = range(len(self.versions))
        if columns is not None:
            indexes = self._known.get(self._signature(columns, source, given), indexes)
        place = bisect_right([self._starts[one] for one in indexes], key)
        return self.versions[indexes[max(place - 1, 0)]]

    @property
    def _last(self) -> int:
        return len(self.versions) - 1

    def _take(self, columns: Sequence[Column], source: Source, given: GivenTypes, start: Key | None) -> None:
        schema, steps = by_columns(self.schema, columns, source, given, is_new=self._is_used)
        if self._is_used:
            self.append(schema, steps, start)
        else:
            self.versions[-1] = schema

    def _signature(self, columns: Sequence[Column], source: Source, given: GivenTypes) -> Signature:
        facts = (tuple(columns), source)
        found = self._seen.get(facts)
        if found is None:
            held = [(one, column_type(one, source, given=given.of(source, one.name or "")).avro) for one in columns]
            found = self._seen[facts] = frozenset(_mark(one.name, one.type, avro) for one, avro in held)
        return found

    def _own(self) -> Signature:
        return frozenset(_mark(one.name, one.type, one.avro) for one in self.schema.columns)


def columns_of(schema: TableSchema) -> list[Column]:
    """Give the columns of a version, as declared."""
    return [Column(name=one.name, type=one.type, code=one.code) for one in schema.columns]


def _mark(name: str | None, declared: str | None, avro: Any) -> tuple[str | None, Any, str]:
    """Give what two statements of one column have in common, however they spell its type."""
    return name, None if declared is None else declared_type(declared), json.dumps(avro, sort_keys=True)

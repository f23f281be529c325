"""The history of a table: its versions, the times at which they began, and the version that each change belongs to.

Times are order keys. Within one topic partition or file they are compared as the changes' order is, between partitions
by the source's numbers; where nothing says which of two came first, what was learned later holds.

Where arrival is the order and the numbers are times, a row may be delivered again behind a statement that was made
after it. MySQL lets a statement that changes a table's columns or name wait until no transaction uses the table, and
lets others wait behind it. So a row that comes behind it in the log began after it, unless it had been waiting already,
for a lock that somebody else had on the whole table. A row that began in an earlier second is therefore one from before
the statement: it belongs to what was there then, unless only what the statement made has its columns.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from msgspec.structs import astuple

from cdcavro.change.connect_values import may_be_unsigned, types_of_unsigned, with_unsigned
from cdcavro.change.model import DDL, Change, Column, names_of_columns, replace
from cdcavro.change.order import Numbers, began_before, has_smaller_numbers, is_by_arrival, order_key, precedes
from cdcavro.errors import OrderError, SchemaError, shown
from cdcavro.exact.caching import IdentityCache, text_size
from cdcavro.exact.sqltype import canonical_type, lacks_arguments, with_arguments
from cdcavro.table.columns.column_type import column_type
from cdcavro.table.columns.format_rules import RULES, USUAL
from cdcavro.table.evolution.evolve import DIGESTS, SETTLED, SharedLimits, by_columns
from cdcavro.table.evolution.explanation import UnexplainedColumns, explain_columns
from cdcavro.table.table_schema import without_attributes

if TYPE_CHECKING:
    from collections.abc import Collection

    from cdcavro.change.model import Source
    from cdcavro.change.order import Key
    from cdcavro.table.columns.column_type import TypeOverrides
    from cdcavro.table.ddl.steps import Action
    from cdcavro.table.table_schema import TableSchema

    _Columns = Sequence[Column]
    _Names = Sequence[str] | None

MAX_VERSIONS: Final = 1_000
MAX_FINDINGS: Final = 100
_NONE: Final[frozenset[str | None]] = frozenset()
OBJECTS: Final = 2_000  # bytes that a table takes beside its names and versions
_DIGEST: Final = 200


@dataclass(slots=True, eq=False)
class Table:
    """A table through its versions and names."""

    # Unique among all tables.
    number: int
    # The space left for the schemas of all tables.
    room: SharedLimits = field(default_factory=SharedLimits, repr=False)
    # The versions, from the first on.
    versions: list[TableSchema] = field(default_factory=list)
    # Of each version, sentences on what led to it.
    steps: list[tuple[str, ...]] = field(default_factory=list)
    # Whether it was dropped.
    is_gone: bool = False
    # Whether a statement or a list of columns has declared which columns it has.
    is_stated: bool = False
    # Whether a statement that is no snapshot's created it, so that all its rows come behind that.
    is_from_birth: bool = False
    # Whether payloads of it exist.
    is_written: bool = False
    # Whether data is being written with the newest version.
    is_used: bool = False
    # The columns that were added or dropped without a statement.
    unexplained: UnexplainedColumns = field(default_factory=UnexplainedColumns)
    # At most 100 sentences on what its statements left open and how that was decided.
    findings: list[str] = field(default_factory=list)
    # Of each version, the time from which it holds.
    starts: list[Any] = field(default_factory=list)
    # The indexes of the versions with a list of columns, by its digest `resolved`.
    _indexes: dict[bytes, tuple[int, ...]] = field(default_factory=dict)
    # The digests `declared` of all lists of columns.
    _declared: dict[bytes, None] = field(default_factory=dict)
    # The names of the columns that any version has as unsigned.
    _unsigned: frozenset[str | None] = _NONE
    # What `last_number` returned since the last edit, by the indexes of versions.
    _extended: dict[tuple[int, ...], int | None] = field(default_factory=dict)
    # The number of the last edit among all tables: it never comes again, even after edits that were undone.
    _edit: int = 0

    @property
    def schema(self) -> TableSchema:
        """The newest version."""
        return self.versions[-1]

    def check_room(self) -> None:
        """Raise `SchemaError` if there may be no other version, before anything is done for it."""
        if len(self.versions) >= MAX_VERSIONS:
            raise SchemaError(self.schema.table.table, f"more than {MAX_VERSIONS} versions")
        if self.versions:  # making a version costs far more than refusing one
            self.room.check(self.schema.size, self.schema.table.table)

    def append(
        self,
        schema: TableSchema,
        steps: Sequence[str],
        start: Key | None,
        unexplained: UnexplainedColumns | None = None,
    ) -> None:
        """Append the version that holds from `start` on, and what is unexplained with it. Raises `SchemaError`."""
        self.check_room()
        known = self.unexplained if unexplained is None else unexplained
        texts = (*steps, *time_texts(start), *types_of_unsigned(schema.columns).keys() - self._unsigned)
        self.room.take(schema, texts, known.size - self.unexplained.size)
        self.unexplained = known
        last = self.starts[-1] if self.starts else FIRST
        self.starts.append(later_of(start, last))
        self.versions.append(schema)
        self.steps.append(tuple(steps))
        self.is_used = False
        self._index_newest()

    def take_columns(
        self, columns: _Columns, source: Source, given: TypeOverrides, key: Key | None, names: _Names = None
    ) -> TableSchema:
        """Return the version with the columns that a change states, adding one if none has them.

        `names` are those of the key columns, None if unknown. As long as nothing has been written with the
        newest version, it adopts the column types as stated. Raises `SchemaError`, also for a change that
        is older than the newest version and whose columns match no version, nor the next one but for some that came
        without a statement.
        """
        columns = tuple(columns)
        settled = self._settled_indexes(columns, source)
        if settled is None:
            digests = self.digests(columns, source, given)
            if digests.resolved not in self._indexes and is_made_before(key, self.starts[-1]):
                return self._version_behind(columns, source, given, key)
            self._settle(columns, source, given, key, names)
            self.is_stated = True
            digests = self.digests(columns, source, given)
            settled = self._indexes.get(digests.resolved, (len(self.versions) - 1,))
            # A late row may match an earlier version although its types are declared differently; others may not.
            if digests.declared in self._declared and not may_be_unsigned(columns, self._unsigned):
                self.room.remember(SETTLED, self._edit, columns, source, settled)
        return self._newest_begun(settled, key)

    def settled_version(self, columns: Sequence[Column], source: Source) -> TableSchema | None:
        """Return the only version with a change's columns, whatever its time, once `take_columns` returned it."""
        stated = self._completed_everywhere(tuple(columns), source)
        indexes = None if stated is None else self._settled_indexes(stated, source)
        return self.versions[indexes[0]] if indexes is not None and len(indexes) == 1 else None

    def only_version(self, columns: Sequence[Column], source: Source, given: TypeOverrides) -> TableSchema | None:
        """Return the only version that fits the columns of a change, whatever its time; None if the time decides."""
        stated = self._completed_everywhere(tuple(columns), source)
        if stated is None:
            return None
        fitting = self._indexes.get(self.digests(stated, source, given).resolved, ())
        if not fitting and len(self.versions) == 1:
            return self.whole_version(stated, source, given, None, is_update=False)
        return self.versions[fitting[0]] if len(fitting) == 1 else None

    def _completed_everywhere(self, columns: tuple[Column, ...], source: Source) -> tuple[Column, ...] | None:
        """Return a change's columns with what all versions say beyond their types; None if that differs."""
        if may_be_unsigned(columns, self._unsigned):
            is_plain = all(with_unsigned(columns, version.columns) is columns for version in self.versions)
            return columns if is_plain else None
        if not is_in_part(columns, source):
            return columns
        completed = {complete_types(columns, version, source) for version in self.versions}
        return completed.pop() if len(completed) == 1 else None

    def take_names(self, names: Collection[str], source: Source, given: TypeOverrides, key: Key | None) -> TableSchema:
        """Return the version of a change with these names, adding one if none has them and none is declared."""
        if not self.is_stated and not any(version.names.issuperset(names) for version in self.versions):
            old = self.schema
            added = [Column(name=name) for name in names if name not in old.names]
            self.check_room()
            schema, steps = by_columns(old, [*columns_of_version(old), *added], source, given)
            self.append(schema, steps, key, self.unexplained.with_differences(old, schema))
        return self.version_with(names, key)

    def version_with(self, names: Collection[str], key: Key | None) -> TableSchema:
        """Return the version at a change's time, or, if it lacks these columns, the nearest version that has them."""
        begun = range(last_begun(self.starts, key) + 1)
        if self.versions[begun[-1]].names.issuperset(names):
            return self.versions[begun[-1]]
        matches = [i for i in range(len(self.versions)) if self.versions[i].names.issuperset(names)]
        return self._newest_begun(matches or begun, key)

    def fits(self, change: Change, given: TypeOverrides) -> bool:
        """Return whether some version has the columns that a row states, or for which it has values."""
        if change.columns is not None:
            is_clear = not (
                may_be_unsigned(change.columns, self._unsigned) or is_in_part(change.columns, change.source)
            )
            versions = () if is_clear else self.versions
            stated = {change.columns, *[complete_types(change.columns, one, change.source) for one in versions]}
            return any(self.digests(columns, change.source, given).resolved in self._indexes for columns in stated)
        names = names_of_columns(change)
        return any(version.names.issuperset(names) for version in self.versions)

    def version_fitting(
        self, columns: Sequence[Column], source: Source, given: TypeOverrides, key: Key | None
    ) -> TableSchema:
        """Return the version that fits the columns a change states and its place in the order. Raises `SchemaError`."""
        digests = self.digests(columns, source, given)
        if digests.resolved not in self._indexes:
            return self._version_behind(columns, source, given, key)
        return self._newest_begun(self._indexes[digests.resolved], key)

    def last_number(self, columns: _Columns, source: Source, given: TypeOverrides) -> int | None:
        """Return the first number of the order beyond which an update with these columns may state a part of its table.

        They are those of a version to which a statement of that number added others. None if there is no such version.
        """
        indexes = self._indexes.get(self.digests(columns, source, given).resolved, ()) if len(self.versions) > 1 else ()
        if indexes and indexes not in self._extended:
            numbers = [start[3][0] for start in self._extensions(indexes[0], len(self.versions)) if start[3]]
            self._extended[indexes] = min(numbers, default=None)
        return self._extended[indexes] if indexes else None

    def _extensions(self, index: int, until: int) -> list[Any]:
        """Return the beginnings of versions behind one, and before another, in which a statement added columns to it."""
        names, later = self.versions[index].names, range(index + 1, until)
        return [
            self.starts[i]
            for i in later
            if isinstance(self.starts[i], StatementTime) and self.versions[i].names > names
        ]

    def whole_version(
        self, columns: _Columns, source: Source, given: TypeOverrides, key: Key | None, *, is_update: bool
    ) -> TableSchema | None:
        """Return the version at a row's time if the row states some of its columns, as they are, and no others.

        None if some version has exactly the stated columns, unless an update follows the statement that added others. A
        row that the source logged in part is not a statement: it drops no column.
        """
        place = last_begun(self.starts, key)
        schema = self.versions[place]
        if len(columns) >= len(schema.columns) or not schema.names.issuperset(column.name for column in columns):
            return None
        indexes = self._indexes.get(self.digests(columns, source, given).resolved)
        if indexes is not None:
            own = max((index for index in indexes if index <= place), default=place)
            if not is_update or not any(is_made_behind(key, start) for start in self._extensions(own, place + 1)):
                return None
        stated = {signature[:2] for signature in signatures_of(columns, source, given, schema)}
        is_part = stated <= {signature[:2] for signature in _signatures_of_version(schema)}
        return schema if is_part else None

    def with_known_types(self, columns: tuple[Column, ...], source: Source, key: Key | None) -> tuple[Column, ...]:
        """Return a change's columns with what the version of its time says beyond their types."""
        if not (may_be_unsigned(columns, self._unsigned) or is_in_part(columns, source)):
            return columns
        return complete_types(columns, self.version_with([one.name for one in columns if one.name], key), source)

    def takes_key(self, names: Sequence[str]) -> bool:
        """Return whether a table that never had a key has the columns of one, if any are named."""
        is_new = bool(names) and self.schema.key is None and self.schema.names.issuperset(names)
        return is_new and all(version.key is None for version in self.versions)

    def has_exactly(self, columns: Sequence[Column], source: Source, given: TypeOverrides) -> bool:
        """Return whether the newest version has exactly these columns."""
        return self.digests(columns, source, given) == digests_of_version(self.schema)

    def is_late(self, key: Key | None) -> bool:
        """Return whether a time is known to come before the newest version."""
        return is_before(key, self.starts[-1])

    def is_behind(self, key: Key | None) -> bool:
        """Return whether a statement that creates the table came late: its time is before the newest version."""
        return is_before_all(key, self.starts[-1])

    def explain(self, actions: Sequence[Action], source: Source, given: TypeOverrides, start: Key | None) -> None:
        """Apply what late actions explain about columns added or dropped before them. Raises `SchemaError`."""
        is_new = self.is_used or self.is_written
        schema, steps = explain_columns(self.schema, actions, self.unexplained, source, given, is_new=is_new)
        if not steps:
            return
        if is_new:
            self.append(schema, steps, start)
        else:
            self._replace(schema, steps)

    def add_finding(self, finding: str) -> None:
        """Note a finding, once."""
        if finding not in self.findings and len(self.findings) < MAX_FINDINGS:
            self.room.reserve(text_size([finding]), self.schema.table.table)
            self.findings.append(finding)

    def mark_used(self, schema: TableSchema) -> None:
        """Note that data is being written with a version: if it is the newest, it no longer changes."""
        self.is_used = self.is_used or schema is self.schema

    def restart(self, schema: TableSchema, steps: Sequence[str]) -> None:
        """Replace all versions, with which nothing has been written, by a new first version."""
        start = self.starts[0]
        for part in (self.versions, self.steps, self.starts, self._indexes, self._declared):
            part.clear()
        self.append(schema, steps, start)

    def snapshot(self) -> tuple[Any, ...]:
        """Return the state that `restore` needs to undo everything done to the table from now on."""
        facts = [list(part) for part in (self.versions, self.steps, self.starts, self.findings)]
        flags = self.is_gone, self.is_stated, self.is_used
        return facts, dict(self._indexes), dict(self._declared), flags, (self.unexplained.copy(), self._edit)

    def restore(self, snapshot: tuple[Any, ...]) -> None:
        """Undo everything done since a snapshot, which can be used again."""
        (versions, steps, starts, findings), indexes, declared, flags, (unexplained, edit) = snapshot
        self.versions[:], self.steps[:], self.findings[:] = versions, steps, findings
        self.starts, self._indexes = list(starts), dict(indexes)
        self._declared, self.unexplained = dict(declared), unexplained.copy()
        self.is_gone, self.is_stated, self.is_used = flags
        if self._edit != edit:
            self._count_edit()

    def digests(self, columns: Sequence[Column], source: Source, given: TypeOverrides) -> ColumnDigests:
        """Return the `ColumnDigests` of a list of columns, with types read as a source means them."""
        columns = tuple(columns)
        digests: ColumnDigests | None = self.room.recall(DIGESTS, self._edit, columns, source)
        if digests is None:
            digests = digests_of_signatures(signatures_of(columns, source, given, self.schema))
            self.room.remember(DIGESTS, self._edit, columns, source, digests)
        return digests

    def _settled_indexes(self, columns: tuple[Column, ...], source: Source) -> tuple[int, ...] | None:
        """Return the indexes of the versions that columns fit, once `take_columns` returned one of them."""
        return self.room.recall(SETTLED, self._edit, columns, source) if self.is_used else None

    def _count_edit(self) -> None:
        self._extended.clear()
        self.room.edits += 1
        self._edit = self.room.edits

    def _newest_begun(self, indexes: Sequence[int], key: Key | None) -> TableSchema:
        """Return the last of these versions that had begun by the key's time, or else the first of them."""
        return self.versions[indexes[last_begun([self.starts[index] for index in indexes], key)]]

    def _settle(self, columns: _Columns, source: Source, given: TypeOverrides, key: Key | None, names: _Names) -> None:
        """Make sure that a version with the stated columns exists."""
        digests = self.digests(columns, source, given)
        is_late = is_made_before(key, self.starts[-1])
        is_known = digests.resolved in self._indexes and (is_late or digests.declared in self._declared)
        is_refined = not self.is_used and self.schema.names == {column.name for column in columns}
        if not is_known or (
            is_refined
            and not is_late
            and not is_repeat(key, self.starts[-1])
            and digests != digests_of_version(self.schema)
        ):
            self._add_version(columns, source, given, key, names)
            self.room.reserve(_DIGEST, self.schema.table.table)
            self._declared[digests.declared] = None

    def _version_behind(self, columns: _Columns, source: Source, given: TypeOverrides, key: Key | None) -> TableSchema:
        """Return the version behind a row's time if the row lacks only such columns of it as came without a statement.

        Nothing says when those came, but that it was between the two versions. Raises `SchemaError` for any other row.
        """
        place = last_begun(self.starts, key)
        begun, behind = self.versions[place], self.versions[min(place + 1, len(self.versions) - 1)]
        signatures, names = signatures_of(columns, source, given, self.schema), {column.name for column in columns}
        if (
            begun.names <= names < behind.names <= names | self.unexplained.added
            and begun.key_names == behind.key_names
        ):
            known = {signature[:2] for signature in _signatures_of_version(behind)}
            if known.issuperset(signature[:2] for signature in signatures):
                return behind
        raise contradiction(signatures, begun)

    def _add_version(
        self, columns: _Columns, source: Source, given: TypeOverrides, key: Key | None, names: _Names
    ) -> None:
        # Rows that do not fit a statement's version were matched with earlier ones, so that version must stay.
        old, is_new = self.schema, self.is_used or self.schema.names != {column.name for column in columns}
        if is_new:
            self.check_room()
        schema, steps = by_columns(old, columns, source, given, key=names, is_new=is_new)
        if is_new and schema is not old:
            self.append(schema, steps, key, self.unexplained.with_differences(old, schema))
        elif schema is not old:
            self._replace(schema, steps)

    def _replace(self, schema: TableSchema, steps: Sequence[str]) -> None:
        """Replace the newest version, with which nothing has been written."""
        self.room.take(schema, (*steps, *types_of_unsigned(schema.columns).keys() - self._unsigned))
        self.room.left += self.schema.size
        resolved, last = digests_of_version(self.schema).resolved, len(self.versions) - 1
        others = tuple(index for index in self._indexes.pop(resolved) if index != last)
        self._indexes |= {resolved: others} if others else {}
        self.versions[-1] = schema
        self.steps[-1] += tuple(steps)
        self._index_newest()

    def _index_newest(self) -> None:
        """Index the newest version by its columns."""
        digests, last = digests_of_version(self.schema), len(self.versions) - 1
        self._count_edit()
        new = types_of_unsigned(self.schema.columns).keys() - self._unsigned
        self._unsigned = self._unsigned | new if new else self._unsigned
        self._indexes[digests.resolved] = (*self._indexes.get(digests.resolved, ()), last)
        self._declared[digests.declared] = None


Signatures = Sequence[tuple[Any, ...]]


class ColumnDigests(NamedTuple):
    """What a list of columns states, as digests, which take little room for any number of columns."""

    # Of each column's name, its Avro type, and its declared type in canonical spelling.
    declared: bytes
    # Of each column's name and Avro type: a list fits every version with an equal one.
    resolved: bytes


def _signature(name: str | None, declared: str | None, avro: Any) -> tuple[Any, ...]:
    """Return the signature of a column: the same however a statement spells the column's type."""
    return name, json.dumps(without_attributes(avro), sort_keys=True), canonical_type(declared)


def signatures_of(columns: Sequence[Column], source: Source, given: TypeOverrides, schema: TableSchema) -> Signatures:
    """Return the signatures of columns as a source means them, and as the user gave types for a version's columns."""
    known = {column.name: column.given for column in schema.columns if column.given is not None}
    signatures = []
    for column in columns:
        type_given = given.of(source, column.name) or known.get(column.name or "")
        signatures.append(_signature(column.name, column.type, column_type(column, source, given=type_given).avro))
    return signatures


def digests_of_signatures(signatures: Signatures) -> ColumnDigests:
    """Return the `ColumnDigests` of columns with these signatures."""
    return ColumnDigests(_digest(signatures), _digest([signature[:2] for signature in signatures]))


def _digest(signatures: Signatures) -> bytes:
    return hashlib.blake2b(
        "\n".join(sorted({repr(signature) for signature in signatures})).encode(), digest_size=16
    ).digest()


def complete_types(columns: tuple[Column, ...], schema: TableSchema, source: Source) -> tuple[Column, ...]:
    """Return a change's columns: plain 64-bit integers unsigned, and types with arguments, where a version has these.

    They are the same tuple where the version says nothing beyond them.
    """
    columns = with_unsigned(columns, schema.columns)
    return _WITH_ARGUMENTS.of(columns, schema) if is_in_part(columns, source) else columns


def is_in_part(columns: Sequence[Column], source: Source) -> bool:
    """Return whether the types of a change's columns may say less than those of its table."""
    return RULES.get(source.format or "", USUAL).has_types_in_part and _LACK_ARGUMENTS.of(columns)


def _with_arguments(columns: tuple[Column, ...], schema: TableSchema) -> tuple[Column, ...]:
    known = {column.name: column.type for column in schema.columns}
    types = [with_arguments(column.type, known.get(column.name or "")) for column in columns]
    completed = tuple(replace(column, type=type) for column, type in zip(columns, types, strict=True))
    return columns if completed == columns else completed


def _lack_arguments(columns: tuple[Column, ...], _: object) -> bool:
    return any(lacks_arguments(column.type) for column in columns)


_WITH_ARGUMENTS: Final = IdentityCache(_with_arguments)
_LACK_ARGUMENTS: Final = IdentityCache(_lack_arguments)


def columns_of_version(schema: TableSchema) -> list[Column]:
    """Return the columns of a version as they were declared."""
    return [Column(name=column.name, type=column.type, code=column.code) for column in schema.columns]


def digests_of_version(schema: TableSchema) -> ColumnDigests:
    """Return the digests of the columns of a version."""
    return digests_of_signatures(_signatures_of_version(schema))


def _signatures_of_version(schema: TableSchema) -> Signatures:
    return [_signature(column.name, column.type, column.avro) for column in schema.columns]


def contradiction(signatures: Signatures, schema: TableSchema) -> SchemaError:
    """Return the error for columns with signatures that no version has; `schema` is the version of their time."""
    differing = {signature[:2] for signature in signatures} ^ {
        signature[:2] for signature in _signatures_of_version(schema)
    }
    name = min((str(signature[0]) for signature in differing), default="")
    return SchemaError(schema.table.table, f"column {shown(name)} is not as in version {schema.version}, nor any other")


# The beginning of what has no time; nothing comes before it.
FIRST: Final = ()


class StatementTime(tuple[Any, ...]):  # noqa: SLOT001  a subclass of tuple cannot have slots that hold anything
    """The time of a statement in an order of arrival: a row that began before it is older, wherever it arrives."""


def time_of(change: Change) -> Key | None:
    """Return the time of a change on the scale on which versions begin; None if it has none.

    A row of a full load has the time at which its source says it was read, not a time before all changes.
    """
    try:
        key: Any = order_key(replace(change, op="INSERT") if change.op == "SNAPSHOT" else change)
    except OrderError:
        return None
    return StatementTime(key) if change.op in DDL and is_by_arrival(key) else key


def time_texts(key: Key | None) -> list[str]:
    """Return the texts that are kept with a time: where its change arrived, and its source."""
    parts = (
        ()
        if key is None
        else (*key[2], *[own for part in key if isinstance(part, Numbers) for own in astuple(part.source)])
    )
    return [text for text in parts if isinstance(text, str)]


def is_before(key: Key | None, start: Any) -> bool:
    """Return whether a time is known to come before a beginning."""
    return key is not None and start != FIRST and precedes(key, start) is True


def is_before_all(key: Key | None, start: Any) -> bool:
    """Return whether a time is known to come before a beginning, or is before it by the source's clock alone.

    Where arrival is the true order, a statement that gives a table a name that another one bears contradicts that
    order. If it began before what is known of the other table, it came late.
    """
    return is_before(key, start) or (key is not None and start != FIRST and began_before(key, start))


def is_made_before(key: Key | None, start: Any) -> bool:
    """Return whether a row is known to come before a beginning, or to be made before the statement that began it."""
    return is_before(key, start) or (
        key is not None and isinstance(start, StatementTime) and began_before(key, cast("Key", start))
    )


def is_made_behind(key: Key | None, start: StatementTime) -> bool:
    """Return whether a row is known to come behind a statement, and began in a later second: it is not sent again."""
    return key is not None and precedes(start, key) is True and began_before(start, key)


def is_repeat(key: Key | None, start: Any) -> bool:
    """Return whether a change was made before a beginning: if it arrives after it, it is delivered again."""
    return key is not None and start != FIRST and has_smaller_numbers(key, start)


def later_of(start: Key | None, last: Any) -> Any:
    """Return a beginning if it is known to come after the last one, else the last one."""
    if start is None:
        return last
    return start if last == FIRST or precedes(last, start) is True else last


def last_arrived(starts: Sequence[Any], key: Key | None) -> int:
    """Return the index of the last beginning that is not known to come after a time, or else 0."""
    place = len(starts) - 1
    while place > 0 and is_before(key, starts[place]):
        place -= 1
    return place


def last_begun(starts: Sequence[Any], key: Key | None) -> int:
    """Return the index of the last beginning after which a row was made, or else 0."""
    place = last_arrived(starts, key)
    if key is None or not is_by_arrival(key):
        return place
    return next((i - 1 for i in range(1, place + 1) if is_made_before(key, starts[i])), place)

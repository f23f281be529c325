"""The merge of typed rows into a table's current state, in whatever order, cuts and repetitions they come.

The state is the rows by key, each with its order, and floors: what is not above a floor is nothing. One
floor is that of the table, the order of its last TRUNCATE or DROP. A delete is the floor of its key, kept
for as long as late changes are guarded against.

A row may lack columns that its change did not have (`TypedRow.absent`). Then the older changes that have
them are kept beneath it. So each column has the value of the last change that states it, and states merge
in any order: what is last, and what is missing, depends on the changes alone and not on when they come.

Where deleted rows or all versions of rows are kept, nothing is a floor: each TRUNCATE, DROP and delete ends what stands
before it, and `replay` returns the versions that the changes of a key make.
"""

from __future__ import annotations

import hashlib
import json
import re
from bisect import bisect_left
from itertools import pairwise, zip_longest
from math import inf
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cdcavro.change.order_value import KINDS, is_of_full_load, order_kind, split_resets
from cdcavro.errors import OrderError, SchemaError, shown
from cdcavro.lake.evolution import BEHIND, EVOLVE, IGNORE, LENIENT, TRY_EVOLVE
from cdcavro.lake.sql_statements import FLOOR
from cdcavro.lake.typed_rows import DELETE, DROP, FILLED, TRUNCATE, UPSERTS
from cdcavro.table.table_schema import attributes_of, avro_of, column_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from cdcavro.lake.typed_rows import RowFacts, TypedRow
    from cdcavro.table.history import Table
    from cdcavro.table.table_schema import TableSchema

NO_FLOOR: Final = b""
# A property of a current state: the first version whose rows it takes, if a reset was made behind a change of the key.
KEYED: Final = "cdcavro.keyed"
# A property of a lake table: the job that writes it, and the number and the beginning of the table whose rows it takes, of
# several that had its name.
ORIGIN: Final = "cdcavro.origin"
# Of the digest of where a table began.
_DIGITS: Final = 16
# What is said of a table that has no current state.
NO_KEY: Final = "no primary key is known (key = [...] in [[table]] states one): only a changelog is written, also if a key comes later"
# What is said of a key that changed.
UNFOUND: Final = "under which older rows are not found"
# Avro writes both in the same way.
_INTEGERS: Final = ("int", "long")
# Declared types of decimals, with their places; of those that are texts in Avro, a value has all of them.
_DECIMAL: Final = re.compile(
    r"(?:decimal|dec|fixed|numeric|number) *\( *[0-9]{1,9} *(?:, *(-?[0-9]{1,9}) *)?\)(?: unsigned)?(?: zerofill)?",
    re.IGNORECASE,
)
# Declared types whose values have as many bytes as they say, or bits.
_FIXED: Final = re.compile(r"(binary|bit) *\( *([0-9]{1,9}) *\)", re.IGNORECASE)


class Delete(NamedTuple):
    """The floor of a key: the order of its last delete, and when that was merged (seconds)."""

    order: bytes
    at: float


class LastChanges(NamedTuple):
    """The last changes in a batch of one table's rows."""

    # Of each key the last change, and behind it those that have columns which it lacks.
    rows: dict[bytes, tuple[TypedRow, ...]]
    # Of each key the order of the last delete.
    deletes: dict[bytes, bytes]
    # The order of the last TRUNCATE or DROP.
    floor: bytes
    # How many rows had no key.
    keyless: int


def last_changes(rows: Iterable[TypedRow], floor: bytes = NO_FLOOR) -> LastChanges:
    """Return the last changes among rows of one table, in whatever order; `floor` is the table's floor so far.

    Raises `ValueError` for an operation that no typed row has.
    """
    deletes: dict[bytes, bytes] = {}
    upserts: dict[bytes, list[TypedRow]] = {}
    keyless = 0
    for row in rows:
        if row.operation in (TRUNCATE, DROP):
            floor = max(floor, row.order)
        elif row.operation not in (*UPSERTS, DELETE):
            raise ValueError(f"{row.operation!r} is no operation of a row")
        elif row.key is None:
            keyless += 1
        elif row.operation == DELETE:
            deletes[row.key] = max(deletes.get(row.key, NO_FLOOR), row.order)
        else:
            upserts.setdefault(row.key, []).append(row)
    floors = {key: order for key, order in deletes.items() if order > floor}
    last = {key: pieces_of(changes, floors.get(key, floor)) for key, changes in upserts.items()}
    return LastChanges({key: pieces for key, pieces in last.items() if pieces}, floors, floor, keyless)


def pieces_of(changes: Iterable[TypedRow], floor: bytes) -> tuple[TypedRow, ...]:
    """Return the changes of a key above a floor that make its row: the last one, and those that have what it lacks.

    Versions may call a column differently, so what changes lack is held against what others of their version lack: one
    of another version stays, as it may have what these lack.
    """
    ranked = sorted(changes, key=_rank, reverse=True)
    if ranked and not ranked[0].absent:
        # Nothing lies beneath a change that has all columns.
        return tuple(ranked[:1]) if ranked[0].order > floor else ()
    pieces: list[TypedRow] = []
    missing: dict[int, frozenset[str]] = {}
    for change in ranked:
        if change.order <= floor:
            break
        known = missing.get(change.version)
        lacking = frozenset(change.absent) if known is None else known.intersection(change.absent)
        if lacking != known:
            pieces.append(change)
            missing[change.version] = lacking
        if not any(missing.values()):
            break
    return tuple(pieces)


def _rank(change: TypedRow) -> tuple[bytes, str, bytes]:
    return change.order, change.operation, change.payload


def values_of(pieces: Iterable[TypedRow], read: Callable[[TypedRow], Mapping[str, Any]]) -> dict[str, Any]:
    """Return the values of a row that consists of these changes; `read` returns those that a change states."""
    values: dict[str, Any] = {}
    for piece in pieces:
        values = {**read(piece), **values}
    return values


class TableState:
    """The current state of a table; `name` is what errors call it.

    A table with rows without a key has no current state, only a changelog.

    * `rows` (dict from a key to a tuple of `TypedRow`): the changes that make each row, the last one first.
    * `deletes` (dict from a key to `Delete`): the floors of keys.
    * `floor` (bytes): the order of the last TRUNCATE or DROP, empty before one.
    * `kind` (str or None): what orders the changes.
    * `keyless` (int): how many rows had no key.
    """

    def __init__(self, name: str = "") -> None:
        self.name = name
        self.rows: dict[bytes, tuple[TypedRow, ...]] = {}
        self.deletes: dict[bytes, Delete] = {}
        self.floor = NO_FLOOR
        self.kind: str | None = None
        self.keyless = 0

    def merge(self, batch: Iterable[TypedRow], *, now: float = 0.0, guard: float = inf) -> None:
        """Merge a batch of the table's rows; `now` is the time, and `guard` how long deletes are kept, in seconds.

        Raises `OrderError`, and merges nothing, if a change is ordered by something other than the rest.
        """
        rows = list(batch)
        self.kind = kind_of_rows(rows, self.kind, self.name)
        last = last_changes(rows, self.floor)
        # The rows stay in the order in which they came.
        touched = dict.fromkeys([*last.rows, *last.deletes, *(self.rows if last.floor != self.floor else ())])
        self.floor, self.keyless = last.floor, self.keyless + last.keyless
        for key, order in last.deletes.items():
            known = self.deletes.get(key)
            if known is None or known.order < order:
                self.deletes[key] = Delete(order, now)
        for key in touched:
            deleted = self.deletes.get(key)
            floor = self.floor if deleted is None else max(self.floor, deleted.order)
            pieces = pieces_of([*self.rows.get(key, ()), *last.rows.get(key, ())], floor)
            self.rows.pop(key, None)
            if pieces:
                self.rows[key] = pieces
        self.deletes = {
            key: delete for key, delete in self.deletes.items() if delete.order > self.floor and delete.at > now - guard
        }
        if self.keyless:
            self.rows.clear()


class End(NamedTuple):
    """What ends the version of a row: a later change, a delete, a TRUNCATE or a DROP."""

    order: bytes
    # Microseconds since the epoch; None if it is not known.
    at: int | None


class Statement(NamedTuple):
    """What a change says of a row."""

    # When the change was made, in microseconds since the epoch; None if it is not known.
    at: int | None
    # Where its values are.
    place: int
    # The columns that it does not have.
    lacking: frozenset[str] = frozenset()


class Version(NamedTuple):
    """A version of a row."""

    order: bytes
    change: Statement
    # Of each column that the change lacks the order and the place of the change that has it; None if none has.
    others: dict[str, tuple[bytes, int] | None]
    # None for one that stands.
    end: End | None
    # The orders of later changes that said the same again, as a message that is delivered twice does.
    again: tuple[bytes, ...] = ()


def replay(changes: Mapping[bytes, Statement], *ends: Sequence[End]) -> list[Version]:
    """Return the versions of a row, by the order of the changes that begin them.

    `changes` has all upserts of the row by their orders, and `ends` are lists of what ends rows: deletes of its key, and
    what ends all rows; each is sorted by order. A column that a change lacks is that of the version before, unless that
    one was ended before the change.
    """
    versions: list[Version] = []
    in_order = sorted(changes)
    for order, following in zip_longest(in_order, in_order[1:]):
        change, before = changes[order], versions[-1] if versions else None
        is_begun = before is not None and before.end is not None and before.end.order == order
        others = {name: _source(before, name) if before and is_begun else None for name in change.lacking}
        end = first_end(order, ends)
        if following is not None and (end is None or following < end.order):
            end = End(following, changes[following].at)
        versions.append(Version(order, change, others, end))
    return versions


def _source(version: Version, name: str) -> tuple[bytes, int] | None:
    return version.others.get(name, (version.order, version.change.place))


def without_repetitions(versions: Sequence[Version], is_same: Callable[[Version, Version], bool]) -> list[Version]:
    """Return versions, one of each that follow one another without a gap and are the same; `is_same` compares two."""
    found: list[Version] = []
    for version in versions:
        last = found[-1] if found else None
        if last and last.end and last.end.order == version.order and is_same(last, version):
            found[-1] = last._replace(end=version.end, again=(*last.again, version.order))
        else:
            found.append(version)
    return found


def first_end(order: bytes, ends: Iterable[Sequence[End]]) -> End | None:
    """Return what ends a version that begins at an order, of sorted lists of ends; None if nothing does."""
    firsts = ((one, bisect_left(one, order, key=lambda end: end.order)) for one in ends)
    return min((one[i] for one, i in firsts if i < len(one)), key=lambda end: end.order, default=None)


def kind_of_rows(rows: Iterable[TypedRow], kind: str | None, name: str) -> str | None:
    """Return what orders the changes of a table, all of one kind but those of a full load, which come before all.

    Raises `OrderError` for two kinds: which change is the later one would be a guess.
    """
    kinds = {order_kind(row.order) for row in rows if not is_of_full_load(row.order)} | ({kind} if kind else set())
    if len(kinds) > 1:
        listed = sorted(kinds, key=KINDS.index, reverse=True)
        raise OrderError(None, name or None, " and some with ".join(["some with " + listed[0], *listed[1:]]))
    return next(iter(kinds), None)


def changelog_reason(versions: Sequence[TableSchema]) -> str | None:
    """Return why a table has no current state, but a changelog: a version of it has no key. None if all have one."""
    if all(schema.key is not None for schema in versions):
        return None
    names, had_key = versions[-1].key_names, versions[0].key is not None
    if not names or had_key:
        return NO_KEY
    return (
        f"its key, {', '.join(map(shown, names))}, became known only after its first rows: only a changelog is written;"
        " for a current state, begin again with another state and lake, from where rows state the key"
    )


def check_keys(versions: Sequence[TableSchema]) -> None:
    """Raise `SchemaError` unless the keys of all versions of a table have the same bytes for the same row.

    A column of the key may be renamed, an int may become a long, and a BINARY a VARBINARY. With other columns, in another
    type, or filled up to another length, rows of older versions would not be found by the keys of newer ones. Versions
    before the first that rows have may be left out.
    """
    keyed = [schema for schema in versions if schema.key is not None]
    for old, new in pairwise(keyed):
        if not _has_same_key(old, new):
            fields, others = _key_fields(old), _key_fields(new)
            names = [[column_name(one) for one in listed] for listed in (fields, others)]
            if names[0] == names[1]:
                listed = [zip(some, of, strict=True) for some, of in zip(names, (fields, others), strict=True)]
                names = [[f"{name} {_type_text(one)}" for name, one in some] for some in listed]
            was, now = map(", ".join, names)
            reason = f"its key ({was}) is ({now}) from version {new.version} on, {UNFOUND}"
            raise SchemaError(new.table.table, reason)


class Origin(NamedTuple):
    """What tells a table from others that had its name, and whether it is dropped."""

    # What is unique to the pipeline.
    job: str
    # The number of the table, which is greater for one that was created later.
    number: int
    is_gone: bool = False
    # A digest of where it began; empty if that is not known. A state that is restored may number tables otherwise.
    beginning: str = ""

    @classmethod
    def of(cls, job: str, table: Table) -> Origin:
        """Return that of a table of a job."""
        start = repr(table.starts[0]) if table.starts[0] else ""
        digest = hashlib.sha256(start.encode(errors="surrogatepass")).hexdigest()[:_DIGITS]
        return cls(job, table.number, table.is_gone, digest if start else "")

    def __str__(self) -> str:
        return f"{self.job} {self.number} {self.beginning}".rstrip()

    def is_behind(self, number: int, beginning: str) -> bool | None:
        """Return whether another table of the job, in which a lake table says that it goes on, came later.

        None if it is the table itself.
        """
        is_same = beginning == self.beginning if beginning and self.beginning and number != self.number else None
        if number == self.number or is_same:
            return None
        # A state that is older than its lake does not know yet that the table is dropped.
        return number > self.number and (self.is_gone or is_same is False)


class Progress(NamedTuple):
    """How far a lake table is, as a table sees it that is to be written into it next."""

    # The version whose values all rows have.
    filled: int
    # The first version whose rows it takes; None if the rows of all do, since another table goes on with the lake table.
    keyed: int | None
    # Whether the lake table knows more than the table: it was written for later versions, which a state that is older than its
    # lake has not read again yet, or another table goes on with it. Nothing is taken from it then.
    is_ahead: bool

    def behavior(self, behavior: str, origin: Origin | None) -> str:
        """Return how a lake table with a behavior follows the statements of the table.

        Rows of a dropped table must take nothing from one that goes on with its lake table, and what the lake table has of
        later versions stays as it is.
        """
        if self.keyed is None and behavior in (EVOLVE, TRY_EVOLVE):
            # What such a lake table has no column for was dropped.
            return IGNORE
        if self.is_ahead:
            return IGNORE if behavior == IGNORE else BEHIND
        return LENIENT if origin is not None and origin.is_gone else behavior


def properties_behind(
    progress: Progress, version: int, origin: Origin | None, held: Mapping[str, str], keyed: int = 1
) -> dict[str, str]:
    """Return what a lake table is to say behind a write of a version; it has the properties `held`.

    `keyed` is the first version whose rows it takes then.
    """
    if progress.is_ahead:
        return {}
    own = {} if origin is None else {ORIGIN: str(origin)}
    return {FILLED: str(version), **own} | ({KEYED: str(keyed)} if keyed > 1 or KEYED in held else {})


def progress_of(properties: Mapping[str, str], version: int, origin: Origin | None = None) -> Progress:
    """Return how far a lake table with some properties is, for a table whose newest version has a number.

    Without an `origin`, and where the lake table says none of the same job, the lake table is taken for one of the same
    table, which may have been created again.
    """
    filled, keyed = int(properties.get(FILLED, "0")), int(properties.get(KEYED, "1"))
    job, number, beginning = (*properties.get(ORIGIN, "").split(" "), "", "")[:3]
    if origin is None or job != origin.job:
        if origin is not None and origin.is_gone and FILLED in properties:
            # It may be another table's.
            return Progress(version, None, is_ahead=True)
        return Progress(filled, keyed if keyed <= version else 1, is_ahead=False)
    is_behind = origin.is_behind(int(number), beginning)
    if is_behind is None:
        return Progress(filled, keyed, is_ahead=filled > version)
    return Progress(version, None, is_ahead=True) if is_behind else Progress(version, 1, is_ahead=False)


def written_behind(
    behavior: str, held: Mapping[str, str], version: int, origin: Origin | None
) -> tuple[str, dict[str, str]]:
    """Return how a changelog follows the statements of a version, and what it is to say behind them.

    It says whose rows it takes. Only where columns are dropped, or once were, it need say how far it is: a state that is
    older than its lake drops none. It has the properties `held`.
    """
    progress = progress_of(held, version, origin)
    written = {} if origin is None else properties_behind(progress, version, origin, held)
    if behavior not in (EVOLVE, TRY_EVOLVE) and FILLED not in held:
        written = {name: value for name, value in written.items() if name == ORIGIN}
    return progress.behavior(behavior, origin), written


def first_keyed(
    table: str,
    versions: Sequence[TableSchema],
    facts: RowFacts | None,
    properties: Mapping[str, str],
    progress: Progress,
    *,
    is_new: bool,
) -> int:
    """Return the number of the first version whose rows a current state takes: 1, unless versions before it had another key.

    Then a reset was made behind them, or there were no rows of them when the state was created, which is now if it `is_new`.

    `table` is what errors call it, `facts` are those of the batch to be merged next, and `properties` those that the
    state has. Raises `SchemaError` if versions from that one on have no key, or not the same.
    """
    first = progress.keyed or _first_of_newest_key(versions)
    if facts is not None and facts.floor is not None:
        resets = (split_resets(floor)[0] for floor in (facts.floor, bytes.fromhex(properties.get(FLOOR, ""))))
        first = _first_of_newest_key(versions) if next(resets) > next(resets) else first
    if is_new and facts is not None and (facts.first or 0) >= _first_of_newest_key(versions):
        first = _first_of_newest_key(versions)
    own = [schema for schema in versions if schema.version >= first]
    if any(schema.key is None for schema in own):
        raise SchemaError(table, "has no primary key, and so no current state, only a changelog")
    check_keys(own)
    return first


def late_version(table: str, version: int) -> SchemaError:
    """Return the error for a row of a version before the first that a current state takes, behind its reset."""
    return SchemaError(table, f"has rows of version {version}, whose key is not that of its current state")


def _first_of_newest_key(versions: Sequence[TableSchema]) -> int:
    """Return the number of the first version from which on all versions of a table have the key of the newest."""
    first = versions[-1]
    for old in reversed(versions[:-1]):
        if old.key is None or first.key is None or not _has_same_key(old, first):
            break
        first = old
    return first.version


def _has_same_key(old: TableSchema, new: TableSchema) -> bool:
    fields, others = _key_fields(old), _key_fields(new)
    return len(fields) == len(others) and all(map(_is_same_field, fields, others))


def _key_fields(schema: TableSchema) -> list[dict[str, Any]]:
    by_field = {field["name"]: field for field in schema.record["fields"]}
    names = {column.name: column.field for column in schema.columns}
    return [by_field[names[name]] for name in schema.key_names]


def _type_text(declared: dict[str, Any]) -> str:
    """Return the type of a field of a key as the source declares it, or else as Avro has it."""
    stated = attributes_of(declared).get("type")
    return str(stated) if stated else json.dumps(avro_of(declared))


def _is_same_field(old: dict[str, Any], new: dict[str, Any]) -> bool:
    kept = old["name"] == new["name"] or old["name"] in new.get("aliases", ())
    types, size = (avro_of(old), avro_of(new)), _fixed_size(new)
    is_alike = types[0] == types[1] or (types[0] in _INTEGERS and types[1] in _INTEGERS)
    return kept and is_alike and size in (None, _fixed_size(old)) and _places(new) in (None, _places(old))


def _places(declared: dict[str, Any]) -> int | None:
    """Return how many decimal places the texts of a field have, which holds decimals of many digits; None of others."""
    if (
        avro_of(declared) != "string"
        or (stated := _DECIMAL.fullmatch(str(attributes_of(declared).get("type")))) is None
    ):
        return None
    return int(stated[1] or "0")


def _fixed_size(declared: dict[str, Any]) -> int | None:
    """Return how many bytes all values of a field have, which are filled up with zeros; None if none says that they have."""
    if avro_of(declared) != "bytes" or (stated := _FIXED.fullmatch(str(attributes_of(declared).get("type")))) is None:
        return None
    return int(stated[2]) if stated[1].lower() == "binary" else (int(stated[2]) + 7) // 8

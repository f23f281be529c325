"""Versions of rows in a native lake: a current state that keeps deleted rows, or all versions of its rows.

All changes of a batch's keys are put in order, those of which the lake table has rows among them, and the rows of these
keys are written anew: of each key all versions, or the last one. Values stay in Arrow; only orders are looked at here.
The table of deletes has every delete, TRUNCATE and DROP: a change that comes late finds there what ended its version. It
is written last, so that a batch that was cut off does all again.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from cdcavro.change.order_value import reset_order, split_resets
from cdcavro.lake.lake_columns import held_columns, older_names, stated_names, text_names
from cdcavro.lake.lakes import FORM, SOFT
from cdcavro.lake.merge import End, Statement, Version, replay, without_repetitions
from cdcavro.lake.sql_statements import (
    ABSENT,
    AGAIN,
    AT,
    DELETED_AT,
    DELETES,
    END,
    FLOOR,
    FROM,
    IS_DELETED,
    KEY,
    OLDER,
    OPERATION,
    ORDER,
    TO,
    UNPARSED,
    VERSION,
    held_change_columns,
)
from cdcavro.lake.typed_rows import DELETE, DROP, KIND, RESETS, TRUNCATE, UPSERTS, stated_properties
from cdcavro.sync.native.native_state import NativeState, with_types
from cdcavro.sync.native.row_images import (
    ImageReader,
    absent_of,
    binary,
    change_values,
    parts,
    read_envelopes,
    texts_of,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from datetime import datetime

    from cdcavro.lake.evolution import LakeColumn
    from cdcavro.lake.typed_rows import RowFacts
    from cdcavro.sync.native.native_columns import NativeTable
    from cdcavro.sync.native.row_images import Pair
    from cdcavro.table.table_schema import TableSchema

# The key in the table of deletes of what ends all rows: no key has no bytes.
_ALL: Final = b""
_NOTHING: Final = b""
_TIME: Final = pa.timestamp("us", "UTC")


@dataclass(frozen=True)
class NativeVersions(NativeState):
    """The current state of a table, in a form that keeps versions of rows; `form` is `SOFT` or `HISTORY`."""

    form: str = field(default=SOFT, kw_only=True)

    def _first_properties(self, facts: RowFacts | None) -> dict[str, str]:
        stated = super()._first_properties(facts)
        return {FORM: self.form, **{name: value for name, value in stated.items() if name == KIND}}

    def _merge_part(
        self,
        rows: pa.Table,
        versions: Sequence[TableSchema],
        present: Sequence[LakeColumn],
        facts: RowFacts,
        now: datetime | None,  # noqa: ARG002  as that of other forms
        *,
        has_left: bool,  # noqa: ARG002  as that of other forms
    ) -> None:
        """Merge rows, which must be all changes that are followed, and not only the last of each key."""
        table = self._state
        properties = self.known.properties or self.known.look(table)
        stated = stated_properties(self.table.table, facts, properties)
        # The floor of resets alone: what a TRUNCATE ends is in the table of deletes.
        resets = reset_order(split_resets(bytes.fromhex(stated.get(FLOOR, "")))[0])
        self._check_versions(rows, resets, properties, versions)
        own = {KIND: stated.get(KIND), FLOOR: resets.hex() or None, RESETS: stated.get(RESETS)}
        self.known.put(table, {name: value for name, value in own.items() if value is not None})
        is_empty, self.known.is_empty = self.known.is_empty, False
        columns = _Columns(table.schema(), present, versions, self.change_columns, is_last=self.form == SOFT)
        kinds = columns.kinds
        batch = _Batch(rows, columns)
        ends = _Ends(self._deletes, batch)
        touched = batch.upsert_keys | ends.new_keys
        if ends.new_floors and not is_empty:
            closing = _Closing(ends.new_floors)
            names = [name for name in (KEY, ORDER, OLDER, AGAIN) if name in kinds.names]
            touched |= closing.broken(table.read(names, [name for name in (OLDER, AGAIN) if name in names]))
            table.rewrite(closing.close)
        if touched:
            self._put(table, columns, batch, ends, touched, is_empty=is_empty)
        ends.append()

    def _put(
        self,
        table: NativeTable,
        columns: _Columns,
        batch: _Batch,
        ends: _Ends,
        touched: Iterable[bytes],
        *,
        is_empty: bool,
    ) -> None:
        """Write the rows of keys anew."""
        keys = pa.array(sorted(touched), pa.binary())
        held = columns.kinds.empty_table() if is_empty else table.find(keys).cast(columns.kinds)
        sources = _Sources(held, batch, columns, is_last=self.form == SOFT)
        ends.look(keys)
        found: list[tuple[bytes, Version]] = []
        changed: list[bytes] = []
        for key in keys.to_pylist():
            replayed = replay(sources.changes[key], *ends.of(key))
            made = replayed[-1:] if self.form == SOFT else without_repetitions(replayed, sources.are_same)
            if not sources.has(key, made):
                changed.append(key)
                found += [(key, version) for version in made]
        if not changed:
            return
        rows = sources.rows(found)
        if is_empty:
            table.append(rows)
        else:
            table.replace(pa.array(changed, pa.binary()), rows)


class _Columns:
    """The columns of a lake table: which it has for those of the newest version, and what these were called.

    With `is_last`, a row is the last version of its key, and keeps what older ones had in columns that were dropped.
    """

    def __init__(
        self,
        kinds: pa.Schema,
        present: Sequence[LakeColumn],
        versions: Sequence[TableSchema],
        change_columns: Collection[str],
        *,
        is_last: bool,
    ) -> None:
        self.kinds, self.versions, self._present = kinds, versions, present
        pairs = held_columns(versions[-1], present)
        self._about, self._chosen = held_change_columns(kinds.names), change_columns
        self.reader = ImageReader(versions[-1], pairs, {one.name: one.type for one in kinds})
        self.names = {column.name for column in present}
        # In `_cdc_older` a column is its field, which finds it when it is renamed.
        named = older_names(versions, present)
        self.fields = {one: name for name, names in named.items() for one in names}
        self.field_of = {name: names[0] for name, names in named.items()}
        self._absent = _absent_names(pairs, versions)
        # No change of these versions has them.
        self._left = frozenset(self.names - {held.name for _, held in pairs} if is_last else ())

    @cached_property
    def of_text(self) -> dict[str, str]:
        """What `_cdc_unparsed` may call the columns, each with the lake's name: few batches have texts."""
        named = text_names(self.versions, self._present)
        return {one: name for name, names in named.items() for one in names}

    def read(self, envelopes: pa.RecordBatch) -> dict[str, pa.Array]:
        """Return the columns of the rows after changes."""
        about = change_values(envelopes, self._about, self._chosen)
        return {**self.reader.columns(envelopes.column("after")), **about}

    def lacking(self, version: int, absent: Sequence[str] | None) -> frozenset[str]:
        """Return the columns that a change of a version lacks, which calls them otherwise."""
        if not absent:
            return self._left
        return self._left.union(*(self._absent.get((version, one), ()) for one in absent))


def _absent_names(pairs: Sequence[Pair], versions: Sequence[TableSchema]) -> dict[tuple[int, str], list[str]]:
    found: dict[tuple[int, str], list[str]] = defaultdict(list)
    for held, names in stated_names(versions, pairs).items():
        for version, name in names.items():
            found[version, name].append(held)
    return found


class _Batch:
    """The changes of a batch.

    * `upserts` (pa.Table or None): those that put a row, with the columns of the lake, what they lack, key, order and time.
    * `ends` (dict from keys to dicts from orders to times): what ends rows.
    """

    def __init__(self, rows: pa.Table, columns: _Columns) -> None:
        operation = binary(rows.column("operation"))
        chosen = pc.indices_nonzero(pc.not_equal(operation, DROP))
        read = [
            _changes(rows.take(places), envelopes, columns)
            for places, envelopes in read_envelopes(rows, chosen, columns.versions)
        ]
        dropped = rows.filter(pc.equal(operation, DROP)).column("order").to_pylist()
        # A DROP has no payload, which would say when it was.
        self.ends: dict[bytes, dict[bytes, int | None]] = defaultdict(dict, {_ALL: dict.fromkeys(dropped)})
        self.upserts: pa.Table | None = None
        if not read:
            return
        changes = pa.concat_tables(read)
        is_upsert = pc.is_in(changes.column(OPERATION), value_set=pa.array(UPSERTS))
        self.upserts = changes.filter(is_upsert)
        for key, order, at, kind in _facts(changes.filter(pc.invert(is_upsert)), KEY, ORDER, AT, OPERATION):
            if kind in (DELETE, TRUNCATE):
                self.ends[key if kind == DELETE else _ALL][order] = at

    @property
    def upsert_keys(self) -> set[bytes]:
        """The keys of rows that are put."""
        return set() if self.upserts is None else {*self.upserts.column(KEY).to_pylist()}


def _changes(rows: pa.Table, envelopes: pa.RecordBatch, columns: _Columns) -> pa.Table:
    image, made = envelopes.column("after"), parts(envelopes.column("source"))["ts_us"]
    own = {UNPARSED: texts_of(image), ABSENT: absent_of(image), AT: pc.coalesce(made, envelopes.column("ts_us"))}
    typed = {VERSION: "version", KEY: "key", ORDER: "order", OPERATION: "operation"}
    return pa.table({**columns.read(envelopes), **own, **{name: rows.column(one) for name, one in typed.items()}})


def _facts(rows: pa.Table, *names: str) -> Iterable[tuple[Any, ...]]:
    """Return values of rows as Python has them, times as microseconds: it does not have all times."""
    columns = [rows.column(name) for name in names]
    plain = [one.cast(pa.int64()) if pa.types.is_timestamp(one.type) else one for one in columns]
    return zip(*[one.to_pylist() for one in plain], strict=True)


class _Ends:
    """What ends rows: the deletes of keys, and each TRUNCATE and DROP, those of a batch and those that came before."""

    def __init__(self, table: NativeTable, batch: _Batch) -> None:
        self._table = table
        self._ends: dict[bytes, dict[bytes, int | None]] = defaultdict(dict)
        self._looked: set[bytes] = set()
        self.look(pa.array([_ALL, *batch.ends], pa.binary()))
        self._new = [
            (key, order, at)
            for key, ends in batch.ends.items()
            for order, at in ends.items()
            if order not in self._ends[key]
        ]
        for key, order, at in self._new:
            self._ends[key][order] = at
        self.new_keys = {key for key, _, _ in self._new if key != _ALL}
        self.new_floors = _sorted({order: at for key, order, at in self._new if key == _ALL})
        self._floors = _sorted(self._ends[_ALL])

    def look(self, keys: pa.Array) -> None:
        """Find what ended rows of keys before the batch."""
        looked, every = pa.array(list(self._looked), pa.binary()), pc.unique(keys)
        wanted = every.filter(pc.invert(pc.is_in(every, value_set=looked)))
        self._looked.update(wanted.to_pylist())
        if len(wanted):
            held = self._table.find(wanted, [KEY, ORDER, AT])
            for key, order, at in _facts(held, KEY, ORDER, AT):
                self._ends[key].setdefault(order, at)

    def of(self, key: bytes) -> tuple[list[End], list[End]]:
        """Return what ends rows of a key, in lists that are sorted by order."""
        return _sorted(self._ends.get(key, {})), self._floors

    def append(self) -> None:
        """Append those of the batch that were not there."""
        if self._new:
            keys, orders, times = zip(*self._new, strict=True)
            moments = pa.array(times, pa.int64()).cast(_TIME)
            columns = [pa.array(keys, pa.binary()), pa.array(orders, pa.binary()), moments]
            self._table.append(pa.table(dict(zip(DELETES, columns, strict=True))))


def _sorted(ends: Mapping[bytes, int | None]) -> list[End]:
    return [End(*one) for one in sorted(ends.items(), key=lambda end: end[0])]


class _Closing:
    """Ends all rows that stand before a TRUNCATE or DROP, some at a time, whichever process it is in."""

    def __init__(self, floors: Sequence[End]) -> None:
        self._floors = floors

    def close(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return rows as they are behind all floors."""
        held = dict(zip(rows.schema.names, rows.columns, strict=True))
        names = [name for name in (TO, DELETED_AT) if name in held]
        for floor in reversed(self._floors):
            order = pa.scalar(floor.order, pa.binary())
            is_before = pc.less_equal(held[ORDER], order)
            is_ended = pc.and_(is_before, pc.fill_null(pc.greater(held[END], order), fill_value=True))
            put: dict[str, Any] = {END: order, **{name: pa.scalar(floor.at, _TIME) for name in names}}
            put |= {IS_DELETED: pa.scalar(True)} if IS_DELETED in held else {}  # noqa: FBT003  the value that is put
            held |= {name: pc.if_else(is_ended, value, held[name]) for name, value in put.items()}
        return pa.RecordBatch.from_arrays([held[name] for name in rows.schema.names], schema=rows.schema)

    def broken(self, mixed: pa.Table) -> set[bytes]:
        """Return the keys of rows of which a part is before a floor, and a part behind it; they consist of several changes."""
        found = set()
        names = [name for name in (KEY, ORDER, OLDER, AGAIN) if name in mixed.column_names]
        for key, order, older, *more in _facts(mixed, *names):
            later = more[0] if more else ()
            pairs = [(since, order) for _, since in older or () if since] + [(order, one) for one in later or ()]
            if any(first <= floor.order < last for floor in self._floors for first, last in pairs):
                found.add(key)
        return found


class _Held(NamedTuple):
    """What a row that stands says of its version."""

    order: bytes
    end: bytes | None
    older: tuple[tuple[str, bytes], ...]
    again: tuple[bytes, ...]


class _Sources:
    """The rows that stand of keys and the changes of a batch, of which rows are made anew.

    With `is_last`, a row that stands is the last version of its key, with the values of all its changes; else it is one
    change.

    * `changes` (dict from keys to dicts from orders to `Statement`): the changes of each key.
    """

    def __init__(self, held: pa.Table, batch: _Batch, columns: _Columns, *, is_last: bool) -> None:
        self._columns = columns
        self._is_last = is_last
        self.changes: dict[bytes, dict[bytes, Statement]] = defaultdict(dict)
        self._held: dict[bytes, list[_Held]] = defaultdict(list)
        tables = [held]
        inner = self._take_held(held)
        if batch.upserts is not None:
            names = set(batch.upserts.column_names).intersection(columns.kinds.names)
            made = {name: batch.upserts.column(name) for name in names}
            tables.append(with_types(made, columns.kinds, len(batch.upserts)))
            self._take_changes(batch.upserts, len(held))
        # What is left of an older change is of use only where it does not come again as a whole.
        for key, order, statement in inner:
            self.changes[key].setdefault(order, statement)
        self._rows = pa.concat_tables(tables)

    def _take_held(self, held: pa.Table) -> list[tuple[bytes, bytes, Statement]]:
        """Take rows that stand; return what is left in them of older changes."""
        names, fields = (KEY, ORDER, END, OLDER), self._columns.fields
        own = [(*row, None, ()) for row in _facts(held, *names)] if self._is_last else _facts(held, *names, FROM, AGAIN)
        inner = []
        for place, (key, order, end, older, at, again) in enumerate(own):
            named = sorted((fields[one], since) for one, since in older or () if one in fields)
            self._held[key].append(_Held(order, end, tuple(named), tuple(again or ())))
            statement = Statement(at, place, frozenset(name for name, _ in named))
            self.changes[key] |= dict.fromkeys([order, *(again or ())], statement)
            for since in {since for _, since in named if since} if self._is_last else ():
                stated = {name for name, one in named if one == since}
                inner.append((key, since, Statement(None, place, frozenset(self._columns.names - stated))))
        return inner

    def _take_changes(self, upserts: pa.Table, first: int) -> None:
        facts = _facts(upserts, KEY, ORDER, VERSION, ABSENT, AT)
        for place, (key, order, version, absent, time) in enumerate(facts, first):
            statement = Statement(time, place, self._columns.lacking(version, absent))
            self.changes[key].setdefault(order, statement)

    def has(self, key: bytes, versions: Sequence[Version]) -> bool:
        """Return whether the rows that stand of a key are these versions: the same changes make the same values."""
        wanted = [
            _Held(
                one.order,
                one.end and one.end.order,
                tuple(sorted((name, source[0] if source else _NOTHING) for name, source in one.others.items())),
                one.again,
            )
            for one in versions
        ]
        return sorted(self._held.get(key, ()), key=lambda one: one.order) == wanted

    def are_same(self, one: Version, other: Version) -> bool:
        """Return whether two versions that follow one another are of the same change, as far as it says."""
        first, second = one.change, other.change
        if (first.at, first.lacking) != (second.at, second.lacking) or one.others != other.others:
            return False
        if first.place == second.place:
            return True
        columns = (self._rows.column(name) for name in self._columns.names - first.lacking)
        texts = [
            {
                name: text
                for name, text in self._rows.column(UNPARSED)[i].as_py() or ()
                if self._columns.of_text.get(name) not in first.lacking
            }
            for i in (first.place, second.place)
        ]
        return texts[0] == texts[1] and all(one[first.place].equals(one[second.place]) for one in columns)

    def rows(self, versions: Sequence[tuple[bytes, Version]]) -> pa.Table:
        """Return the rows of versions, each with its key."""
        first = [version.change.place for _, version in versions]
        others: dict[str, list[int | None]] = {}
        for i, (_, version) in enumerate(versions):
            for name, source in version.others.items():
                others.setdefault(name, list(first))[i] = source and source[1]
        places = pa.array(first, pa.int64())
        columns: dict[str, Any] = {}
        for one in self._columns.kinds:
            columns[one.name] = self._rows.column(one.name).take(
                pa.array(others[one.name], pa.int64()) if one.name in others else places
            )
        columns |= self._own(versions)
        return with_types(columns, self._columns.kinds, len(versions))

    def _own(self, versions: Sequence[tuple[bytes, Version]]) -> dict[str, Any]:
        """Return this project's own columns of versions."""
        every = [version for _, version in versions]
        ended = pa.array([one.end and one.end.at for one in every], pa.int64()).cast(_TIME)
        field_of = self._columns.field_of
        older = [
            [(field_of[name], source[0] if source else _NOTHING) for name, source in sorted(one.others.items())] or None
            for one in every
        ]
        own: dict[str, Any] = {
            KEY: pa.array([key for key, _ in versions], pa.binary()),
            ORDER: pa.array([one.order for one in every], pa.binary()),
            OLDER: pa.array(older, pa.map_(pa.string(), pa.binary())),
            UNPARSED: self._texts(every),
            END: pa.array([one.end and one.end.order for one in every], pa.binary()),
        }
        if self._is_last:
            return own | {IS_DELETED: pa.array([one.end is not None for one in every]), DELETED_AT: ended}
        began = pa.array([one.change.at for one in every], pa.int64()).cast(_TIME)
        again = pa.array([list(one.again) or None for one in every], pa.list_(pa.binary()))
        return own | {FROM: began, TO: ended, AGAIN: again}

    def _texts(self, versions: Sequence[Version]) -> pa.Array:
        """Return the texts that no type can carry, each of the change that has its column's value."""
        kind = pa.map_(pa.string(), pa.string())
        held = self._rows.column(UNPARSED)
        if held.null_count == len(held):
            return pa.nulls(len(versions), kind)
        texts, of_text = [dict(one or ()) for one in held.to_pylist()], self._columns.of_text
        found = []
        for one in versions:
            own = {name: text for name, text in texts[one.change.place].items() if of_text.get(name) not in one.others}
            for column, source in one.others.items():
                others = {} if source is None else texts[source[1]]
                own |= {name: text for name, text in others.items() if of_text.get(name) == column}
            found.append(sorted(own.items()) or None)
        return pa.array(found, kind)

"""Learning what changes say of tables, in their order, however they arrived."""

from __future__ import annotations

import hashlib
from collections import deque
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec.structs import astuple

from cdcavro.change.model import DDL, DML, Change, ChangedTable, Source, names_of_columns, replace
from cdcavro.change.order import in_order, is_by_numbers, is_full_load, order_key
from cdcavro.change.order_value import order_kind, order_value
from cdcavro.errors import CdcAvroError, DdlError, OrderError
from cdcavro.exact.caching import WeightedCache, text_size, weight_of
from cdcavro.table.ddl.parse import states_key_only
from cdcavro.table.table_names import has_row_of_table, is_copy_of, source_of, table_name_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from cdcavro.table.ddl.steps import TableName
    from cdcavro.table.tables import Tables, TableVersion

# In columns, as `weight_of` counts them.
_REMEMBERED: Final = 100_000
_CHARACTERS: Final = 64
# In statements.
_IDLE: Final = 10_000
# Of a mark.
_DIGITS: Final = 16


class Learned(NamedTuple):
    """What was learned of changes."""

    # What they said of tables, without values: whoever learns it in this order knows the same.
    changes: list[Change]
    # Changes that contradict their table, and statements that were not understood.
    faults: list[tuple[Change, CdcAvroError]]
    # The numbers of the tables that a statement dropped, by its `identity_of`.
    dropped: dict[bytes, tuple[int, ...]]


class Learner:
    """Lets `tables` (`Tables`) learn what changes say of them."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.outlines = Outlines()
        # The numbers of the tables that a statement dropped, by what tells it when it arrives again.
        self._drops: dict[bytes, tuple[int, ...]] = {}
        # The last statements that were learned and changed nothing.
        self.idle: deque[Change] = deque(maxlen=_IDLE)
        # The last statements that were refused, and why.
        self.refused: deque[tuple[Change, CdcAvroError]] = deque(maxlen=_IDLE)

    def learn(self, changes: Iterable[Change], is_wanted: Callable[[TableName], bool] = lambda _: True) -> Learned:
        """Learn what changes say, in their order, and return what that was.

        `is_wanted` says of the name of a table whether its rows are. Before a statement that puts a copy in the place of
        a table, the copy is dropped, and that is learned like a statement: whoever learns it again need not ask. If the
        statement is refused, the copy stays.
        """
        written: list[TableVersion | None] = []
        learned = Learned([], [], {})
        arrived = [change for change in changes if change.op in DML or change.op in DDL]
        ordered = _in_order_of_sources(arrived)
        given = [self.tables.key_statement(change) for change, _ in ordered]
        ordered += [(statement, None) for statement in given if statement is not None]
        later = self._later_keys(arrived)
        # What the key of a table is holds for all rows, in whatever partition they are.
        for change, unordered in sorted(ordered, key=lambda pair: id(pair[0]) in later or not states_key_only(pair[0])):
            copies = self._copies(change, is_wanted) if unordered is None else []
            refusal = self.tables.refusal(*copies, change) if copies else unordered
            drops = copies if refusal is None else []
            numbers = [one for drop in drops for one in self._take(drop, None, learned, written)]
            # What is not understood is learned as such.
            numbers += self._take(change, None if isinstance(refusal, DdlError) else refusal, learned, written)
            if numbers:
                learned.dropped[identity_of(change)] = tuple(numbers)
        _note_written(written)
        return learned

    def _later_keys(self, changes: Sequence[Change]) -> set[int]:
        """Return the ids of statements of another key than one that was stated before, behind rows of their table."""
        later, with_rows = set[int](), set[Any]()
        if not any(states_key_only(change) for change in changes):
            return later
        stated: dict[Any, tuple[str, ...]] = {}
        for change in changes:
            name = table_name_of(change.source)
            if not states_key_only(change):
                with_rows.update([name] if change.op in DML else [])
                continue
            known = stated.get(name) or self.tables.stated_key(name)
            if known and name in with_rows and known != change.key:
                later.add(id(change))
            else:
                stated[name] = change.key or ()
        return later

    def relearn(self, changes: Iterable[Change]) -> None:
        """Learn again what `learn` returned as `Learned.changes`."""
        written = []
        for change in changes:
            gone, edits = self._dropped_numbers() if _may_come_again(change) else set(), self.tables.edits
            try:
                written.append(self._learn(change))
            except CdcAvroError:
                if self.tables.edits == edits:
                    raise
                continue
            finally:
                if _may_come_again(change):
                    self._dropped_by(change, gone)
            self.outlines.take(change, is_idle=self.tables.edits == edits)
        _note_written(written)

    def _take(
        self, change: Change, refusal: CdcAvroError | None, learned: Learned, written: list[TableVersion | None]
    ) -> tuple[int, ...]:
        """Learn a change, and return the numbers of the tables that it dropped; `refusal` is why it cannot be learned."""
        gone, edits = self._dropped_numbers() if change.op in DDL else set(), self.tables.edits
        try:
            if refusal is not None:
                raise refusal
            written.append(self._learn(change))
            is_idle = self.tables.edits == edits
            outline = self.outlines.take(change, is_idle=is_idle)
            learned.changes.extend([] if outline is None else [outline])
            if is_idle and change.op in DDL:
                self.idle.append(change)
        except CdcAvroError as error:
            learned.faults.append((change, error))
            self.refused.extend([(change, error)] if change.op in DDL else [])
            if change.op in DDL and self.tables.edits != edits:
                # What is not understood of a table is known of it, too.
                learned.changes.append(change)
        return self._dropped_by(change, gone)

    def _copies(self, change: Change, is_wanted: Callable[[TableName], bool]) -> list[Change]:
        """Return the statement that drops the tables which another one puts in the place of those whose copies they are.

        Copies are those that a tool calls so, if rows of the other table have come, and those that are not wanted where the
        other one is: it is as if their source did not send them. The rows of the other table stay.
        """
        copies = [
            source_of(change.source, old)
            for old, new, has_rows in self.tables.renamings(change)
            if (has_rows and is_copy_of(old, new)) or (is_wanted(new) and not is_wanted(old))
        ]
        drops = tuple(
            ChangedTable(op="ERASE", database=one.database, schema=one.schema, table=one.table) for one in copies
        )
        place = {name: getattr(change, name) for name in _OF_PLACE}
        return [Change(op="ERASE", source=change.source, tables=drops, **place)] if drops else []

    def _learn(self, change: Change) -> TableVersion | None:
        edits = self.tables.edits
        known = self.tables.learn(change)
        if self.tables.edits != edits:
            # It did more than the same said before.
            self.outlines.forget(change.source)
        return known

    def _dropped_by(self, change: Change, gone: set[int]) -> tuple[int, ...]:
        """Return which tables a change dropped that is learned; `gone` were dropped before it.

        Where arrival is the order, rows from before a DROP that arrive again do so behind it, and so does it: it drops
        them again, and nothing that was made of its table's name since.
        """
        if change.op not in DDL:
            return ()
        numbers = tuple(sorted(self._dropped_numbers() - gone))
        if not _may_come_again(change):
            return numbers
        again = hashlib.sha256(repr((change.source, change.ddl, change.event_time)).encode()).digest()
        known = self._drops.get(again, ())
        if numbers:
            # Of two in one second, each may be the one that comes again.
            self._drops[again] = tuple(sorted({*known, *numbers}))
        return numbers or known

    def _dropped_numbers(self) -> set[int]:
        return {table.number for table in self.tables.tables if table.is_gone}


def _may_come_again(change: Change) -> bool:
    """Return whether a change is a DROP that may arrive again behind rows that do, and can be told then."""
    is_drop = change.op == "ERASE" or (change.op in DDL and "DROP" in (change.ddl or "").upper())
    return is_drop and change.event_time is not None and not is_by_numbers(change)


def _note_written(known: Iterable[TableVersion | None]) -> None:
    """Note that the rows of a batch are written, once all of it is learned."""
    for table_version in known:
        if table_version is not None:
            table_version[0].is_written = True


def identity_of(change: Change) -> bytes:
    """Return what tells a change from all others: a digest of all that it says, its place included."""
    return hashlib.sha256(change.to_avro()).digest()


def refusal_fields(change: Change, error: CdcAvroError) -> dict[str, str | None]:
    """Return what a reject says of a change that is refused: format, path and message."""
    return {"format": change.source.format, "path": getattr(error, "path", None), "message": str(error)}


def outline_of(change: Change) -> tuple[bytes, Change] | None:
    """Return what a change states about its table, if it does: a digest, the same for all that state it, and the outline.

    The outline is the change without values, at its place.
    """
    if not has_row_of_table(change) and change.op not in DDL:
        return None
    blank = change
    if change.op in DML:
        names = {} if change.columns is not None else dict.fromkeys(names_of_columns(change))
        blank = Change(op=change.op, source=change.source, key=change.key, columns=change.columns, after=names)
    digest = hashlib.sha256(blank.to_avro()).digest()
    return digest, replace(blank, **{name: getattr(change, name) for name in _OF_PLACE})


class Outlines:
    """What changes say of their tables, in order, without what the change before said already."""

    def __init__(self) -> None:
        self._last = WeightedCache(_REMEMBERED)

    def forget(self, source: Source) -> None:
        """Forget what the rows of a table said last."""
        self._last.drop(source)

    def take(self, change: Change, *, is_idle: bool = False) -> Change | None:
        """Return a statement, or a row without values; None if the rows of its table said the same last.

        What rows said last is forgotten with each statement, unless it `is_idle`: it changed nothing.
        """
        if change.op not in DML:
            if not is_idle:
                self._last.clear()
            return change
        names = {} if change.columns is not None else dict.fromkeys(names_of_columns(change))
        op = change.op if change.op == "SNAPSHOT" else "INSERT"
        outline = Change(op=op, source=change.source, key=change.key, columns=change.columns, after=names)
        if self._last.get(change.source) == outline:
            return None
        weight = weight_of(change.columns or ()) + sum(map(len, names)) // _CHARACTERS + len(names)
        self._last.put(change.source, outline, weight + text_size(astuple(change.source)) // _CHARACTERS)
        return replace(outline, **{name: getattr(change, name) for name in _OF_TIME})


# What says when and where a change came, and, for `outline_of`, not what came beside it.
_OF_PLACE: Final = ("position", "event_time", "snapshot", "place", "row")
_OF_TIME: Final = (*_OF_PLACE, "rows")


def _in_order_of_sources(changes: Iterable[Change]) -> list[tuple[Change, OrderError | None]]:
    """Return changes in order, behind those that have none; rows of a full load stand where their source read them.

    What orders changes may differ between tables. Where it differs within one table, the merge refuses it.
    """
    groups: dict[tuple[str | None, str], list[tuple[Change, Change]]] = {}
    found: list[tuple[Change, OrderError | None]] = []
    for change in changes:
        is_read = is_full_load(change) and change.position is not None
        read = replace(change, op="INSERT") if is_read else change
        try:
            kind = order_kind(order_value(read))
        except OrderError as error:
            found.append((change, error))
        else:
            groups.setdefault((change.source.format, kind), []).append((read, change))
    for pairs in sorted(groups.values(), key=lambda pairs: not is_full_load(pairs[0][0])):
        came = {id(read): change for read, change in pairs}
        found += [(came[id(read)], None) for read in _sort([read for read, _ in pairs])]
    return found


def _sort(changes: list[Change]) -> list[Change]:
    try:
        return in_order(changes)
    except OrderError:
        # Partitions whose numbers are of different kinds: each has its own order at least.
        return sorted(changes, key=order_key)


class NewTables:
    """The tables that `tables` (`Tables`) have learned since this was made, if they have learned nothing else.

    Two tasks may number new tables differently, but the only version of a new table is the same in both; and so are the
    rows of a table that has one version and a name that no other table ever had. So a mark of this version stands for
    the number until the driver has given one.
    """

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._known = [(list(table.versions), table.is_gone) for table in tables.tables]
        self._marks: dict[int, str] = {}

    @property
    def marks(self) -> dict[int, str] | None:
        """The marks of new tables by number; None if others changed, one has a second version, or two have one mark."""
        tables, count = self._tables.tables, len(self._known)
        if [(table.versions, table.is_gone) for table in tables[:count]] != self._known:
            return None
        return None if any(len(table.versions) > 1 for table in tables[count:]) else self._marks_of_new()

    @property
    def marks_beside_others(self) -> dict[int, str] | None:
        """The marks of new tables by number, whatever else was learned; None if two have one mark.

        None, too, if a table was dropped or renamed, or one all of whose versions had keys has one without. Two tasks may
        know different versions of a table with the same mark.
        """
        for i, table in enumerate(self._tables.tables):
            versions, is_gone = self._known[i] if i < len(self._known) else (table.versions[:1], False)
            names = {version.table for version in table.versions[len(versions) - 1 :]}
            are_keyed = {all(version.key is not None for version in some) for some in (versions, table.versions)}
            if table.is_gone != is_gone or len(names) > 1 or len(are_keyed) > 1:
                return None
        return self._marks_of_new()

    def _marks_of_new(self) -> dict[int, str] | None:
        for table in self._tables.tables[len(self._known) :]:
            if table.is_gone or not self._tables.is_alone(table):
                return None
            if table.number not in self._marks:
                self._marks[table.number] = _mark(table.versions[0].row.json)
        return dict(self._marks) if len({*self._marks.values()}) == len(self._marks) else None


def _mark(text: str) -> str:
    # No number has a letter in front.
    return "n" + hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]

"""Typed rows: the changes of tables' rows with their order, as they go into a lake table, and how batches become them.

What the statements and rows of a batch say of tables is learned in order; then every row is placed. What a batch of a
table's rows holds, its current state remembers in properties.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec import Struct

from cdcavro.change.model import DDL, DML, Change, replace
from cdcavro.change.order import Clock, is_by_numbers
from cdcavro.change.order_value import KINDS, is_of_full_load, order_kind, order_value, reset_order, split_resets
from cdcavro.errors import CdcAvroError, OrderError, SchemaError, StructureError, plain, shown
from cdcavro.lake.evolution import DROP_TABLE, TRUNCATE_TABLE
from cdcavro.lake.learning import Learner, identity_of
from cdcavro.lake.sql_statements import FLOOR
from cdcavro.table.ddl.parse import empties
from cdcavro.table.table_names import spelled_as
from cdcavro.table.writing.table_writer import OPERATIONS, WHOLE_ROWS
from cdcavro.wire.marked_members import key_pointer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from cdcavro.table.history import Table
    from cdcavro.table.tables import Tables, TypedChange

    # Returns whether a current state of a table is wanted.
    HasState = Callable[[Table], bool]

UPSERTS: Final = ("c", "u", "r")
DELETE: Final = "d"
TRUNCATE: Final = "t"
DROP: Final = "x"
# What ends all rows of a table, with the kind of the statement.
ENDS: Final = {TRUNCATE: TRUNCATE_TABLE, DROP: DROP_TABLE}
# How many columns an error names.
_SHOWN_COLUMNS: Final = 5


class TypedRow(Struct, frozen=True):
    """One change of a row of a table, or the end of all its rows so far.

    * `table` and `version` (int): the number of the table, and the version of the schema that the row was written with.
    * `operation` (str): as in the envelope, c, u, r or d; or t for a TRUNCATE and x for a DROP of the table.
    * `order` (bytes): as `order_value` returns it.
    * `key` (bytes or None): a payload of the key's schema; None without a primary key.
    * `payload` (bytes): a payload of the envelope's schema; empty for a DROP.
    * `absent` (tuple[str, ...]): the columns that the row after the change does not have.
    """

    table: int
    version: int
    operation: str
    order: bytes
    key: bytes | None
    payload: bytes
    absent: tuple[str, ...] = ()


def rows_of_message(
    message: Iterable[tuple[Change, Sequence[TypedChange]]], clock: Clock, dropped: Callable[[Change], Sequence[Table]]
) -> list[TypedRow]:
    """Return the rows of one message, all at one time of its lane.

    `message` has each change with what `Tables.write` made of it, and `dropped` returns the tables that a change
    dropped. Raises `OrderError` as `Clock.time` does.
    """
    ordered = [(change, typed, gone) for change, typed in message if (gone := dropped(change)) or typed]
    if not ordered:
        return []
    is_moving = any(_is_left(change, one) for change, typed, _ in ordered for one in typed)
    time = clock.time(ordered[0][0], is_moving=is_moving)
    rows = []
    for change, typed, gone in ordered:
        for one in typed:
            order = order_value(_ordered(change, one), time=time, is_left=_is_left(change, one))
            number, version = one.table.number, one.schema.version
            rows.append(TypedRow(number, version, OPERATIONS[one.change.op], order, one.key, one.payload, one.absent))
        for table in gone:
            order = order_value(change, time=time)
            rows.append(TypedRow(table.number, table.schema.version, DROP, order, None, b""))
    return rows


def write_change(
    tables: Tables, change: Change, has_state: HasState | None = None, message: bytes = b""
) -> list[TypedChange]:
    """Return what `Tables.write` makes of a change that is learned; nothing if the change is no row.

    Raises as `Tables.find` and `Tables.write` do, and of a table that `has_state`, as `check_whole` does, and
    `StructureError` for a row with NULL in its key: all such rows would be one; and for one that states another key than
    its table has: rows of several such keys might be one. `message` is the change's, if it is known: the last error
    names the member of it that states the key.
    """
    own = change
    if change.half is not None:
        # The row before an update goes and the one after it comes, whatever message brings them.
        own = replace(change, op="DELETE" if change.half == "BEFORE" else "INSERT", half=None)
    typed = tables.write(own, tables.find(own)) if own.op in DML or empties(own) else []
    for one in typed if has_state is not None else ():
        if has_state is not None and _has_other_key(change, one) and has_state(one.table):
            expected = (
                f"the key of {_label(one)}, {_listed(one.schema.key_names)}: under another one, rows could be confused"
            )
            format = change.source.format
            pointer = "/key" if format is None else key_pointer(format, message)
            raise StructureError(expected, _listed(change.key or ()), pointer=pointer, format=format)
        nulls = _nulls_of_key(one)
        is_put = change.op == "UPDATE" and one.change.op == "INSERT"
        if (nulls or is_put) and has_state is not None and has_state(one.table):
            if nulls:
                expected = f"no NULL in the key of {_label(one)}, which tells its rows apart"
                got = f"null for {_listed(nulls)}"
                raise StructureError(expected, got, pointer="/key", format=one.change.source.format)
            check_whole(one, is_half=change.half is not None)
    return typed


def _has_other_key(change: Change, typed: TypedChange) -> bool:
    """Return whether a row states the columns of another key than its table's version has, in whatever order."""
    stated, own = change.key, typed.schema.key_names
    if not stated or not own or stated == own or change.op not in DML:
        return False
    return {*spelled_as(stated, typed.schema.names)} != {*own}


def _nulls_of_key(typed: TypedChange) -> list[str]:
    """Return the columns of a row's key that are null."""
    image = typed.change.before if typed.change.before is not None else typed.change.after
    if typed.key is None or image is None:
        return []
    return [name for name in typed.schema.key_names if image[name] is None]


def check_whole(typed: TypedChange, *, is_half: bool = False) -> None:
    """Raise `StructureError` if the row that an update puts under a key does not have all columns of its table.

    `typed` is the insert of an update that moves a key, or that comes in two halves. The values of the other columns
    stand in the row that the update takes away, which may be in another batch, so a current state would lose them.
    """
    lost = [*typed.absent, *(() if is_half else _unexplained_drops(typed))]
    if typed.key is None or not lost:
        return
    expected = f"all columns of {_label(typed)} in a row that an update puts under another key ({WHOLE_ROWS})"
    raise StructureError(expected, f"none for {_listed(lost)}", format=typed.change.source.format)


def _label(typed: TypedChange) -> str:
    name = typed.schema.table
    return ".".join(plain(part) for part in (name.database, name.schema, name.table) if part)


def _listed(columns: Sequence[str]) -> str:
    more = len(columns) - _SHOWN_COLUMNS
    return ", ".join([*map(shown, columns[:_SHOWN_COLUMNS]), *([f"{more} more"] if more > 0 else [])])


def _unexplained_drops(typed: TypedChange) -> list[str]:
    """Return the columns that a version lacks and no statement dropped.

    Some sources list nothing but the columns that a row states, so that a row without some looks like a table without.
    """
    dropped, schema = typed.table.unexplained.dropped, typed.schema
    if not dropped:
        return []
    older = [version.names for version in typed.table.versions if version.version < schema.version]
    return sorted(name for name in dropped.keys() - schema.names if any(name in names for names in older))


def drop_lookup(dropped: Mapping[bytes, Sequence[int]], tables: Tables) -> Callable[[Change], Sequence[Table]]:
    """Return a function that returns the tables which a change dropped; `dropped` is `Learned.dropped`."""

    def look_up(change: Change) -> list[Table]:
        numbers = dropped.get(identity_of(change), ()) if dropped and change.op in DDL else ()
        return [tables.tables[number] for number in numbers]

    return look_up


def _ordered(change: Change, typed: TypedChange) -> Change:
    """Return what orders a row: without its place for the row before an update that has a message of its own.

    It comes before the row after the update then, which has the same number, wherever and how often the two arrive.
    """
    is_before = change.half == "BEFORE" and change.position is not None and is_by_numbers(change)
    return replace(typed.change, place=None) if is_before else typed.change


def _is_left(change: Change, typed: TypedChange) -> bool:
    return change.op == "UPDATE" and typed.change.op == "DELETE"


class Batch(NamedTuple):
    """What a batch of messages becomes.

    * `rows` (list[TypedRow]): in the order of arrival.
    * `rejects` (list[tuple[Change, CdcAvroError]]): changes that contradict their table, and statements that were not
      understood and changed nothing.
    * `statements` (int): how many changes were not rows.
    * `learned` (list[Change]): what the batch said about tables, without values: whoever learns it in this order knows
      what the batch knows.
    * `dropped` (dict[bytes, tuple[int, ...]]): as in `Learned`.
    * `typed` (list[int]): the indexes of the messages that became rows with payloads.
    """

    rows: list[TypedRow]
    rejects: list[tuple[Change, CdcAvroError]]
    statements: int
    learned: list[Change]
    dropped: dict[bytes, tuple[int, ...]]
    typed: list[int]


class TypedRows:
    """Turns batches of changes into typed rows; `tables` (`Tables`) follows their tables, and `clock` the lanes.

    `has_state`, a function of a `Table`, says which have a current state: what `write_change` refuses of these is a
    reject.

    Rows never wait: once their batch is learned, their own columns and place in the order determine their version. So
    it does not matter where a stream is cut into batches, even between a statement and the rows around it.
    """

    def __init__(self, tables: Tables, clock: Clock | None = None, *, has_state: HasState | None = None) -> None:
        self.tables = tables
        self._has_state = has_state
        self.clock = Clock() if clock is None else clock
        self.learner = Learner(tables)

    def of_batch(self, messages: Sequence[Sequence[Change]]) -> Batch:
        """Return the typed rows of messages, each a list of its changes, in the order of arrival of each lane."""
        named = [[self.tables.with_given_table(change) for change in changes] for changes in messages]
        learned = self.learner.learn([change for changes in named for change in changes])
        batch = Batch([], learned.faults, 0, learned.changes, learned.dropped, [])
        faulty = {id(change) for change, _ in learned.faults}
        dropped = drop_lookup(learned.dropped, self.tables)
        statements = 0
        for i, changes in enumerate(named):
            refused = len(batch.rejects)
            typed = [(change, self._write(change, batch)) for change in changes if id(change) not in faulty]
            statements += sum(change.op not in DML for change in changes)
            if len(batch.rejects) > refused:
                # A message is a reject as a whole: what could be read of it comes when it is read again.
                continue
            rows = rows_of_message(typed, self.clock, dropped)
            batch.rows.extend(rows)
            if any(row.payload for row in rows):
                batch.typed.append(i)
        return batch._replace(statements=statements)

    def _write(self, change: Change, batch: Batch) -> list[TypedChange]:
        try:
            return write_change(self.tables, change, self._has_state)
        except CdcAvroError as error:
            batch.rejects.append((change, error))
            return []


# What orders the changes, one of `KINDS`.
KIND: Final = "cdcavro.order"
# That changes lack columns.
PARTIAL: Final = "cdcavro.partial"
# How many resets the newest rows are behind, if the last one kept the rows before it: it is no floor.
RESETS: Final = "cdcavro.resets"
# That there is a table of deletes.
GUARDED: Final = "cdcavro.deletes"
# The version whose values all rows have, also older ones: after a kill between two steps, the rest is still to be done.
FILLED: Final = "cdcavro.filled"
# A new value for each attempt to create the table: the attempt whose value it has created it.
CREATED: Final = "cdcavro.created"
# The suffix of the table of deletes.
DELETES_TABLE: Final = "deletes"


class RowFacts(NamedTuple):
    """What a batch of a table's typed rows holds."""

    # The order of its last TRUNCATE or DROP.
    floor: bytes | None
    # How many deletes, rows without a key, and rows that lack columns it has.
    deletes: int
    keyless: int
    partial: int
    # The first two bytes of its orders, behind the order of the reset that they are behind.
    begins: list[bytes]
    # How often the table was reset, as the state knows.
    resets: int = 0
    # The first version that its rows have; None if that is not known.
    first: int | None = None

    def behind(self, count: int) -> RowFacts:
        """Return the same for rows whose orders are put after the `count`-th reset of their table."""
        before = reset_order(count)
        floor = None if self.floor is None else before + self.floor
        return self._replace(floor=floor, begins=[before + begin for begin in self.begins])


def facts_of_parts(facts: Sequence[RowFacts]) -> RowFacts:
    """Return what several batches hold together."""
    floors = [one.floor for one in facts if one.floor is not None]
    begins = sorted({begin for one in facts for begin in one.begins})
    deletes, keyless, partial = (sum(numbers) for numbers in zip(*[one[1:4] for one in facts], strict=True))
    resets = max(one.resets for one in facts)
    versions = [one.first for one in facts if one.first is not None]
    first = min(versions) if versions and len(versions) == len(facts) else None
    return RowFacts(max(floors, default=None), deletes, keyless, partial, begins, resets, first)


def facts_of_summary(summary: Mapping[str, Any]) -> RowFacts:
    """Return what a batch holds of a table, according to a summary of tasks."""
    floor = bytes.fromhex(summary["floor"]) or None
    begins = [bytes.fromhex(begin) for begin in summary["begins"]]
    deletes, first = summary["ops"].get(DELETE, 0), summary.get("first")
    return RowFacts(floor, deletes, summary["keyless"], summary["partial"], begins, first=first)


def stated_properties(table: str, facts: RowFacts, properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties that a current state has with a batch: floor, order of changes, whether they lack columns.

    `table` is what errors call it, and `properties` are those that it has. Raises `SchemaError` for rows without a
    key, and for a table that was reset more often than the state knows, and `OrderError` if different things order
    the changes.
    """
    if facts.keyless:
        raise SchemaError(table, f"{facts.keyless} rows have no key, and so no current state")
    before = bytes.fromhex(properties.get(FLOOR, ""))
    floor = max(facts.floor or b"", before)
    known_resets = max(split_resets(before)[0], int(properties.get(RESETS, "0")))
    if known_resets > facts.resets:
        # All its rows would be taken for older ones.
        was = f"was reset {known_resets} times, of which this state knows {facts.resets}"
        raise SchemaError(table, f"{was}: remove the lake table, or go on with the state that it is of")
    emptied = split_resets(floor)[0]
    by_resets = _kinds(facts, emptied)
    if properties.get(KIND) and known_resets >= emptied:
        by_resets.setdefault(known_resets, set()).add(properties[KIND])
    # What ordered the changes before a reset is nothing to those behind it.
    for kinds in by_resets.values():
        if len(kinds) > 1:
            listed = sorted(kinds, key=KINDS.index, reverse=True)
            raise OrderError(None, table, " and some with ".join([f"some with {listed[0]}", *listed[1:]]))
    resets = max([emptied, known_resets, *by_resets])
    newest = by_resets.get(resets, set())
    stated = {FLOOR: floor.hex()} if floor else {}
    stated |= {RESETS: str(resets)} if resets > max(emptied, known_resets) else {}
    stated |= dict.fromkeys([KIND] if newest or resets > known_resets else [], "".join(newest))
    flags = {PARTIAL: facts.partial, GUARDED: facts.deletes}
    return stated | {name: "true" for name, count in flags.items() if count or name in properties}


def first_properties(facts: RowFacts | None) -> dict[str, str]:
    """Return what a current state that is created for a batch says at once; nothing of a batch that is refused."""
    if facts is None or facts.keyless:
        return {}
    try:
        return stated_properties("", facts, {})
    except OrderError:
        return {}


def _kinds(facts: RowFacts, least: int) -> dict[int, set[str]]:
    """Return what orders the changes of a batch, by how many resets they are behind, at least so many.

    A full load has an order of its own, which is none of these.
    """
    found: dict[int, set[str]] = {}
    for begin in facts.begins:
        if (resets := split_resets(begin)[0]) >= least:
            found.setdefault(resets, set()).update([] if is_of_full_load(begin) else [order_kind(begin)])
    return found

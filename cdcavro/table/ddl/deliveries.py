"""Deliveries of statements: which statement came before and must not be applied again.

Messages are delivered at least once, so a stream may go back and repeat what it sent, at new places.
A statement that is older than the last one about a table's name is old. Where a source's numbers are
its true order, a statement with the numbers, source and text of an earlier one is that one. Where they
are only a time, many statements may share it: a statement is then taken for an equal earlier one if
that was made before the newest statement, or is next in a sequence that is being repeated, or was the
last.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from typing import TYPE_CHECKING, Final, NamedTuple

from cdcavro.change.order import is_by_numbers
from cdcavro.exact.caching import WeightedCache, text_size
from cdcavro.table.history import is_before, time_texts

if TYPE_CHECKING:
    from cdcavro.change.model import Change
    from cdcavro.change.order import Key
    from cdcavro.table.ddl.steps import TableName

_REMEMBERED: Final = 10_000
# A name and its time take about a kilobyte; each further one for longer texts counts as one more.
_NAMES: Final = 50_000
_CHARACTERS: Final = 1_000


class _Statement(NamedTuple):
    """What identifies a statement, wherever it arrives: when it was made, and a digest of its source and what it says."""

    made: tuple[int, ...]
    said: bytes

    @classmethod
    def of(cls, change: Change) -> _Statement:
        # Canal numbers batches anew when it delivers them again, but the time stays.
        is_timed = change.event_time is not None and not is_by_numbers(change)
        said = change.ddl if change.ddl is not None else repr((change.op, change.columns, change.key, change.tables))
        return cls(
            (change.event_time or 0,) if is_timed else change.position or (),
            _digest(change.source, said),
        )


def _digest(*facts: object) -> bytes:
    return hashlib.sha256(repr(facts).encode(errors="surrogatepass")).digest()


class Deliveries:
    """Remembers the last 10,000 statements that were applied, and the time of the last one about each table's name.

    It takes bounded room, however long texts and names are: of statements there are digests, and of names as many as
    have room.
    """

    def __init__(self) -> None:
        self._places: OrderedDict[bytes, None] = OrderedDict()
        self._applied: list[_Statement] = []
        self._known: set[_Statement] = set()
        self._newest: tuple[int, ...] = ()
        self._repeated: int | None = None
        self._last = WeightedCache(_NAMES)
        self._named: dict[TableName, Key] = {}

    def is_repeated(self, change: Change, key: Key | None) -> bool:
        """Return whether a statement is delivered again."""
        self._named.clear()
        statement = _Statement.of(change)
        if key is not None and change.place is not None and _digest(key, statement) in self._places:
            return True
        if self.is_known(change):
            return is_by_numbers(change) or self._is_in_sequence(statement)
        self._repeated = None
        return False

    def is_known(self, change: Change) -> bool:
        """Return whether a statement with a position reads and is numbered as one that was applied."""
        return change.position is not None and _Statement.of(change) in self._known

    def note(self, change: Change, key: Key | None) -> None:
        """Remember a statement that was applied, as the last one about each name that `is_old` was asked for."""
        for name, time in self._named.items():
            self._last.put(
                name, time, 1 + text_size((name.database, name.schema, name.table, *time_texts(time))) // _CHARACTERS
            )
        self._named.clear()
        statement = _Statement.of(change)
        if key is not None and change.place is not None:
            if len(self._places) >= _REMEMBERED:
                self._places.popitem(last=False)
            self._places[_digest(key, statement)] = None
        if len(self._applied) >= _REMEMBERED:
            self._applied = self._applied[_REMEMBERED // 2 :]
            self._known = set(self._applied)
        self._applied.append(statement)
        self._known.add(statement)
        self._newest = max(self._newest, statement.made)

    def is_old(self, name: TableName, key: Key | None) -> bool:
        """Return whether a statement about a name is older than the last one; if not, `note` makes it the last one."""
        if key is None:
            return False
        # A statement read in a snapshot begins before all else, but was not made before all else.
        time = (1, *key[1:])
        last = self._last.get(name)
        if last is not None and is_before(time, last):
            return True
        self._named[name] = time
        return False

    def _is_in_sequence(self, statement: _Statement) -> bool:
        """Return whether a statement that was applied before is repeated, and not one that only reads the same."""
        begins = [] if self._repeated is None else [self._repeated + 1]
        if statement.made < self._newest:
            begins.append(0)
        for begin in begins:
            if statement in self._applied[begin:]:
                self._repeated = self._applied.index(statement, begin)
                return True
        self._repeated = None
        return statement == self._applied[-1]

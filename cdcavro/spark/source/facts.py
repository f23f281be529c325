"""Facts about messages: which operation each is, and on which table."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from cdcavro.arrow.arrays import slices_of
from cdcavro.change.model import DML
from cdcavro.change.rows import size_in_common
from cdcavro.engine.machine import FactEngine
from cdcavro.engine.row_program import RowProgram
from cdcavro.errors import MessageError
from cdcavro.transcoding.mapping import USUAL_PLACEHOLDER, placeholders, to_changes
from cdcavro.wire.formats import get_format
from cdcavro.wire.program import row_parts

if TYPE_CHECKING:
    from collections.abc import Callable

    from cdcavro.change.model import Change
    from cdcavro.engine.arrow_column import Slices

    Caught = Callable[[int, MessageError], object]

Fact = tuple[str | None, str | None]


_NO_FACT: Final[Fact] = (None, None)
_NOTHING: Final = (pa.array([], pa.string()), pa.array([], pa.string()))
_LEFT: Final = -1


class Facts:
    """Tells the operations and tables of the messages of one format, as their changes name them.

    The first of messages that are alike goes the exact way, the engine finds those that are like it. One thread at a
    time uses it.
    """

    def __init__(self, format: str) -> None:
        self._format = get_format(format)
        self._parts = row_parts(self._format.envelope)
        self._engine = FactEngine(self._format.program, placeholders(format, USUAL_PLACEHOLDER))
        self._known: dict[int, Fact] = {}

    def batch(self, texts: pa.Array, caught: Caught) -> tuple[pa.Array, pa.Array]:
        """Return the operation and the table of each text, null for a null.

        `caught` is given the index of one of which no changes can be made, and the error.
        """
        messages, i = slices_of(texts), 0
        if not messages.count:
            return _NOTHING
        left: dict[int, Fact] = {}
        while i < messages.count:
            i = self._engine.take_alike(messages, None, i)
            if i < messages.count:
                left[i] = self._exact(i, messages, caught)
            i += 1
        numbers = array("i", self._engine.numbers()) or array("i", [_LEFT]) * messages.count
        places = {number: place for place, number in enumerate(dict.fromkeys(numbers))}
        facts = [self._fact(number, messages, numbers, caught) for number in places]
        rows = array("i", map(places.__getitem__, numbers))
        for i, fact in left.items():
            rows[i] = len(facts)
            facts.append(fact)
        which = pa.array(rows, pa.int32())
        operations, tables = (pa.array(told, pa.string()) for told in zip(*facts, strict=True))
        return operations.take(which), tables.take(which)

    def _exact(self, i: int, messages: Slices, caught: Caught) -> Fact:
        """Return the fact of a message, and learn its pattern; a null has none."""
        message = messages.get(i)
        if message is None:
            return _NO_FACT
        try:
            changes = to_changes(message, self._format.name, members=False)
        except MessageError as error:
            caught(i, error)
            return _NO_FACT
        if changes[0].op in DML:
            self._learn(message, changes[0])
        return changes[0].op, changes[0].source.table

    def _fact(self, number: int, messages: Slices, numbers: array[int], caught: Caught) -> Fact:
        """Return the fact of the messages with a number, the first of which goes the exact way."""
        if number == _LEFT:
            return _NO_FACT
        if number not in self._known:
            refused: dict[int, MessageError] = {}
            fact = self._exact(numbers.index(number), messages, refused.__setitem__)
            if refused:
                # So each of them is.
                for i in [i for i, other in enumerate(numbers) if other == number]:
                    self._exact(i, messages, caught)
                return _NO_FACT
            self._known[number] = fact
        return self._known[number]

    def _learn(self, message: bytes, change: Change) -> None:
        """Learn the pattern of a message whose change was made of just its parts."""
        fixed = self._engine.pattern(message)
        if fixed is None or self._engine.has(fixed):
            return
        own = self._format
        if self._parts.are_complete(own.encode(message), own.read, change.key):
            position = self._parts.position(change.source.db_type)
            self._engine.add(fixed, RowProgram(position=position, weight=size_in_common(change)))

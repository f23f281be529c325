"""The small readers that make up a plan for reading payloads: those of records and whole messages.

`extras` are skipped while the record is read, and applied at the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET

from cdcavro.errors import MessageError, PayloadError, shown
from cdcavro.exact.caching import WeightedCache
from cdcavro.exact.jsontext import render
from cdcavro.wire import extras
from cdcavro.wire.payload import PayloadDecoder
from cdcavro.wire.reading.collections import MapReader
from cdcavro.wire.reading.values import Reader, StringReader

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cdcavro.engine.machine import Values


# An empty map; the size in bytes of the longest extras whose steps are cached, and of all cached extras together.
_NONE: Final = b"\0"
_TAIL: Final = 2_000
_TAILS: Final = 256 << 10


class FieldReader:
    """A field and its reader: `members` is that key of its rule, "" for a single member; `pointer` is the member's."""

    __slots__ = ("members", "name", "pointer", "reader")

    def __init__(self, members: str, name: str, pointer: str, reader: Reader) -> None:
        self.members = members
        self.name = name
        self.pointer = pointer
        self.reader = reader


class RecordReader(Reader):
    """A reader of a record: members by name, the entries of a rest map among them, `extras` set aside."""

    __slots__ = ("_fields", "_named")

    def __init__(self, fields: Sequence[FieldReader]) -> None:
        self._fields = tuple(fields)
        self._named = frozenset(field.name for field in fields if not field.members)

    def read(self, payload: PayloadDecoder) -> Any:
        """Read all fields into a dict."""
        record: dict[str, Any] = {}
        for field in self._fields:
            payload.place = field.pointer
            if not field.members:
                value = field.reader.read(payload)
                if value is not UNSET:
                    record[field.name] = value
            elif field.members == "extras":
                self._pass_extras(payload, field.reader)
            else:
                rest = field.reader.read(payload)
                self._check_rest(rest)
                record.update(rest)
        return record

    def _pass_extras(self, payload: PayloadDecoder, reader: Reader) -> None:
        try:
            payload.skip_texts()
        except MessageError:
            # Reading the extras finds the same fault, and its place.
            payload.extras = reader.read(payload.back())

    def _check_rest(self, names: Iterable[str]) -> None:
        for name in self._named.intersection(names):
            raise PayloadError("a member that has no field", shown(name))


class MessageReader:
    """A reader of whole messages: the outermost record with its `extras` applied.

    Created from the reader of the record and the members that the schema names, by pointer.
    """

    __slots__ = ("_kept", "_members", "_record")

    def __init__(self, record: RecordReader, members: Mapping[str, extras.SchemaMember]) -> None:
        self._record = record
        self._members = members
        self._kept = WeightedCache(_TAILS)

    def read(self, payload: PayloadDecoder) -> dict[str, Any]:
        """Read one payload, after which others may follow, as a record. Raises `PayloadError`."""
        payload.extras = None
        # The writer's schema may have no extras.
        payload.start = payload.stop = 0
        try:
            record: dict[str, Any] = self._record.read(payload)
            payload.place = ""
            tail = payload.tail()
            if tail and tail != _NONE:
                steps = self._steps(tail)
                if steps is None or not extras.take(record, steps):
                    payload.extras = _EXTRAS.read(payload.back())
                    record = extras.apply(record, payload.extras, self._members)
        except MessageError as error:
            error.below(payload.place)
            raise
        return record

    def read_at(self, values: Values | None, raw: bytes, position: int) -> tuple[dict[str, Any], int]:
        """Return the record of the payload at a position, by the engine if it can, and the position after it.

        Raises `PayloadError`.
        """
        found = None if values is None else values.read(raw, position)
        if found is not None:
            return found
        payload = PayloadDecoder(raw, position)
        return self.read(payload), payload.position

    def _steps(self, tail: bytes) -> list[extras.Step] | None:
        """Return the steps for the bytes of extras; few messages differ in these, so the steps are cached."""
        entry: tuple[list[extras.Step] | None] | None = self._kept.get(tail)
        if entry is None:
            if len(tail) > _TAIL:
                return None
            try:
                payload = PayloadDecoder(tail)
                payload.place = ""
                entry = (extras.steps(_EXTRAS.read(payload), self._members),)
            except MessageError:
                return None
            self._kept.put(tail, entry, len(tail))
        return entry[0]

    def decode(self, raw: bytes) -> bytes:
        """Return a payload as compact JSON text. Raises `PayloadError`."""
        payload = PayloadDecoder(raw)
        text = render(self.read(payload))
        payload.finish()
        return text


_EXTRAS: Final = MapReader(StringReader())

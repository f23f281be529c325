"""The small readers that a plan for payloads is made of: those of arrays, maps, records and whole messages.

`extras` are passed by while the record is read, and applied at the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET

from cdcavro import pointers
from cdcavro.buffer import COMPILED, Buffer
from cdcavro.errors import MessageError, PayloadError, shown
from cdcavro.readers import Reader, StringReader
from cdcavro.remembered import Kept
from cdcavro.source import Payload
from cdcavro.text import escape, render

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


_ARRAY, _ARRAY_END, _OBJECT, _OBJECT_END, _COMMA, _COLON, _NEWLINE = b"[]{},:\n"
_STREAK: Final = 2
# An empty map; and the extras whose steps are kept: the bytes of one at most, and of all of them.
_NONE: Final = b"\0"
_TAIL: Final = 2_000
_TAILS: Final = 256 << 10


class ArrayReader(Reader):
    """An array's blocks."""

    __slots__ = ("_items", "_pointer")

    def __init__(self, items: Reader, pointer: str) -> None:
        self._items = items
        self._pointer = pointer

    def read(self, payload: Payload) -> Any:
        """Read all items."""
        items: list[Any] = []
        reader = self._items
        in_item = False
        try:
            while count := payload.read_block():
                in_item = True
                for _ in range(count):
                    items.append(reader.read(payload))  # noqa: PERF401  what was read so far tells the place
                in_item = False
        except MessageError as error:
            error.below(f"{self._pointer}/{len(items)}" if in_item else self._pointer)
            raise
        return items

    def render(self, payload: Payload, out: Buffer) -> bool:
        """Read all items and append them as JSON text."""
        reader = self._items
        found = 0
        in_item = False
        out.append(_ARRAY)
        try:
            while count := payload.read_block():
                in_item = True
                for _ in range(count):
                    if found:
                        out.append(_COMMA)
                    reader.render(payload, out)
                    found += 1
                in_item = False
        except MessageError as error:
            error.below(f"{self._pointer}/{found}" if in_item else self._pointer)
            raise
        out.append(_ARRAY_END)
        return True


class MapReader(Reader):
    """A map's blocks; a name given twice is refused, since one of two values would be lost."""

    __slots__ = ("_pointer", "_values")

    def __init__(self, values: Reader, pointer: str) -> None:
        self._values = values
        self._pointer = pointer

    def read(self, payload: Payload) -> Any:
        """Read all entries."""
        entries: dict[str, Any] = {}
        reader = self._values
        name = ""
        in_value = False
        try:
            while count := payload.read_block():
                for _ in range(count):
                    name = payload.read_name()
                    if name in entries:
                        raise PayloadError("each name once", f"{shown(name)} twice")
                    in_value = True
                    entries[name] = reader.read(payload)
                    in_value = False
        except MessageError as error:
            error.below(f"{self._pointer}/{escape(name)}" if in_value else self._pointer)
            raise
        return entries

    def render(self, payload: Payload, out: Buffer) -> bool:
        """Read all entries and append them as JSON text."""
        out.append(_OBJECT)
        self.render_entries(payload, out, first=True)
        out.append(_OBJECT_END)
        return True

    def render_entries(self, payload: Payload, out: Buffer, first: bool) -> set[str]:  # noqa: FBT001  compiled code takes no keywords
        """Read all entries and append them as members of an object; gives their names."""
        names: set[str] = set()
        found = 0
        reader = self._values
        name = ""
        in_value = False
        try:
            while count := payload.read_block():
                for _ in range(count):
                    if not first:
                        out.append(_COMMA)
                    first = False
                    name = payload.copy_name(out)
                    names.add(name)
                    if len(names) == found:
                        raise PayloadError("each name once", f"{shown(name)} twice")
                    found += 1
                    in_value = True
                    reader.render(payload, out)
                    in_value = False
        except MessageError as error:
            error.below(f"{self._pointer}/{escape(name)}" if in_value else self._pointer)
            raise
        return names


class RecordReader(Reader):
    """A record: members by name, a rest map's entries beside them, `extras` put aside."""

    __slots__ = ("_fields", "_named", "_pointer")

    def __init__(self, fields: Sequence[tuple[str, str, Reader]], pointer: str) -> None:
        self._fields = tuple((members, name, render(name) + b":", reader) for members, name, reader in fields)
        self._named = frozenset(name for members, name, _ in fields if not members)
        self._pointer = pointer

    def read(self, payload: Payload) -> Any:
        """Read all fields."""
        record: dict[str, Any] = {}
        for members, name, _, reader in self._fields:
            if not members:
                value = reader.read(payload)
                if value is not UNSET:
                    record[name] = value
            elif members == "extras":
                self._pass_extras(payload, reader)
            else:
                rest = reader.read(payload)
                self._check_rest(rest)
                record.update(rest)
        return record

    def render(self, payload: Payload, out: Buffer) -> bool:
        """Read all fields and append them as JSON text."""
        first = True
        out.append(_OBJECT)
        for members, _, label, reader in self._fields:
            if not members:
                size = len(out)
                if not first:
                    out.append(_COMMA)
                out.write_raw(label)
                if reader.render(payload, out):
                    first = False
                else:
                    out.cut(size)
            elif members == "extras":
                payload.extras = reader.read(payload)
            else:
                first = not self._render_rest(payload, out, reader, first) and first
        out.append(_OBJECT_END)
        return True

    def _pass_extras(self, payload: Payload, reader: Reader) -> None:
        try:
            payload.skip_texts()
        except MessageError:
            # Reading finds the same fault, and says where it is.
            payload.extras = reader.read(payload.back())

    def _render_rest(self, payload: Payload, out: Buffer, rest: Any, first: bool) -> bool:  # noqa: FBT001  as above
        names = rest.render_entries(payload, out, first)
        self._check_rest(names)
        return bool(names)

    def _check_rest(self, names: Iterable[str]) -> None:
        for taken in self._named.intersection(names):
            raise PayloadError("a member that has no field", shown(taken), pointer=self._pointer)


class MessageReader:
    """A whole message: the outermost record with its `extras` applied.

    `members` are those that the schema names, by pointer.
    """

    __slots__ = ("_extras", "_kept", "_members", "_record")

    def __init__(self, record: RecordReader, members: Mapping[str, pointers.Place]) -> None:
        self._record = record
        self._members = members
        self._extras = 0
        self._kept = Kept(_TAILS)

    def read(self, payload: Payload) -> dict[str, Any]:
        """Read one payload, perhaps of several in a row. Raises `PayloadError`."""
        payload.extras = None
        # A writer's schema may have no extras.
        payload.start = payload.stop = 0
        record: dict[str, Any] = self._record.read(payload)
        tail = payload.tail()
        if tail and tail != _NONE:
            steps = self._steps(tail)
            if steps is None or not pointers.take(record, steps):
                payload.extras = _EXTRAS.read(payload.back())
                pointers.apply(record, payload.extras, self._members)
        return record

    def _steps(self, tail: bytes) -> list[pointers.Step] | None:
        """Give the steps that the bytes of extras stand for; few differ, and what was found is kept."""
        found: tuple[list[pointers.Step] | None] | None = self._kept.get(tail)
        if found is None:
            if len(tail) > _TAIL:
                return None
            try:
                found = (pointers.steps(_EXTRAS.read(Payload(tail)), self._members),)
            except MessageError:
                return None
            self._kept.put(tail, found, len(tail))
        return found[0]

    def decode(self, raw: bytes) -> bytes:
        """Turn a payload into compact JSON text. Raises `PayloadError`."""
        out = Buffer()
        position = self._append(raw, 0, out)
        if position != len(raw):
            Payload(raw, position).finish()
        return out.taken()

    def decode_lines(
        self, raw: bytes, position: int, count: int, out: Buffer, most: int
    ) -> tuple[int, int, MessageError | None]:
        """Append payloads from a position on as lines of compact JSON text: `count` of them, or until `out` has `most` bytes.

        Gives the position behind them, how many they are, and what is wrong with the payload there.
        """
        done = 0
        size = len(out)
        try:
            while done < count and size < most:
                position = self._append(raw, position, out)
                out.append(_NEWLINE)
                size = len(out)
                done += 1
        except MessageError as error:
            out.cut(size)
            return position, done, error
        return position, done, None

    def _append(self, raw: bytes, position: int, out: Buffer) -> int:
        """Append a payload as JSON text.

        Compiled, it goes straight from payload to text, but for messages with `extras`, for which the
        record is needed: two of them make a third likely.
        """
        payload = Payload(raw, position)
        if COMPILED and self._extras < _STREAK:
            size = len(out)
            payload.extras = None
            self._record.render(payload, out)
            if not payload.extras:
                return payload.position
            out.cut(size)
            payload = Payload(raw, position)
        record = self.read(payload)
        self._extras = min(self._extras + 1, _STREAK) if payload.stop - payload.start > len(_NONE) else 0
        out.write_raw(render(record))
        return payload.position


_EXTRAS: Final = MapReader(StringReader(""), "")

"""The small writers that make up a plan for writing records: those of fields, arrays, maps and whole messages.

A record is a JSON value shaped by the wire schema; `msgspec.UNSET` stands for an absent member. What
the Avro types cannot carry is noted on the way, as pairs of JSON pointer and text, and written into
`extras` at the end: members that the schema does not name, scalars of another type, operations in
another spelling, and a null or absence that departs from the format's convention.

Every writer knows its pointer below the nearest array or map; the writers of arrays and maps prepend
the index or name of an item to the notes and errors that come from it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET

from cdcavro.avro.binary import MAX_COUNT
from cdcavro.avro.buffer import Buffer
from cdcavro.errors import MessageError, StructureError
from cdcavro.exact.fastjson import check_value
from cdcavro.exact.jsontext import escape, kind, render
from cdcavro.wire.extras import Extras
from cdcavro.wire.kafka import KAFKA, VALUE, beside_value, is_kafka_record
from cdcavro.wire.writing.values import ScalarWriter, Writer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


# The mark of an absent member, because `UNSET` may be a member's value.
_NONE: Final = object()


class OptionalWriter(Writer):
    """A writer of a union of null and one other branch; with `takes_text`, a string is noted and null written."""

    __slots__ = ("_index", "_inner", "_null", "_null_is_usual", "_pointer", "_takes_text")

    def __init__(self, inner: Writer, index: int, pointer: str, missing: str, *, takes_text: bool = False) -> None:
        self._inner = inner
        self._index = index << 1
        self._null = (1 - index) << 1
        self._pointer = pointer
        self._null_is_usual = missing == "null"
        self._takes_text = takes_text

    def write(self, out: Buffer, value: Any, notes: Extras) -> None:
        """Append a branch index and the value."""
        if value is UNSET:
            out.append(self._null)
            if self._null_is_usual:
                notes.add(self._pointer, "")
        elif value is None:
            out.append(self._null)
            if not self._null_is_usual:
                notes.add(self._pointer, "null")
        elif self._takes_text and type(value) is str:
            out.append(self._null)
            notes.add(self._pointer, render(value).decode())
        else:
            out.append(self._index)
            self._inner.write(out, value, notes)


class VariantWriter(Writer):
    """A writer of null or one of several scalars: the branch of the JSON type itself, else the first that converts."""

    __slots__ = ("_branches", "_null", "_null_is_usual", "_own", "_pointer")

    def __init__(self, branches: Mapping[int, ScalarWriter], null: int, pointer: str, missing: str) -> None:
        self._branches = dict(branches)
        self._own = {branch.own: index for index, branch in branches.items()}
        self._null = null << 1
        self._null_is_usual = missing == "null"
        self._pointer = pointer

    def write(self, out: Buffer, value: Any, notes: Extras) -> None:
        """Append a branch index and the value."""
        if value is UNSET or value is None:
            out.append(self._null)
            if (value is None) is not self._null_is_usual:
                notes.add(self._pointer, "null" if value is None else "")
            return
        index = self._own.get(type(value), -1)
        if index < 0 or not self._branches[index].fits(value):
            index = self._converting(value)
        branch: ScalarWriter = self._branches[index]
        out.append(index << 1)
        branch.write(out, value, notes)

    def _converting(self, value: Any) -> int:
        for index, branch in self._branches.items() if type(value) not in (dict, list) else ():
            try:
                branch.converted(value)
            except StructureError:
                continue
            return index
        expected = " or ".join(branch.expected for branch in self._branches.values())
        raise StructureError(expected, kind(value), pointer=self._pointer)


def check_count(count: int, pointer: str) -> None:
    """Raise `StructureError` if an array or a map is longer than readers allow."""
    if count > MAX_COUNT:
        raise StructureError(f"at most {MAX_COUNT} items", f"{count}", pointer=pointer)


class ArrayWriter(Writer):
    """A writer of an array, as one block."""

    __slots__ = ("_items", "_pointer")

    def __init__(self, items: Writer, pointer: str) -> None:
        self._items = items
        self._pointer = pointer

    def write(self, out: Buffer, value: Any, notes: Extras) -> None:
        """Append the block."""
        if type(value) is not list:
            raise StructureError("array", kind(value), pointer=self._pointer)
        if value:
            check_count(len(value), self._pointer)
            out.write_long(len(value))
            self._write_items(out, value, notes)
        out.append(0)

    def _write_items(self, out: Buffer, items: list[Any], notes: Extras) -> None:
        writer = self._items
        i = 0
        try:
            for item in items:
                noted = notes.count
                writer.write(out, item, notes)
                if notes.count != noted:
                    notes.below(f"{self._pointer}/{i}", noted)
                i += 1
        except MessageError as error:
            error.below(f"{self._pointer}/{i}")
            raise


class MapWriter(Writer):
    """A writer of a map, as one block."""

    __slots__ = ("_pointer", "_values")

    def __init__(self, values: Writer, pointer: str) -> None:
        self._values = values
        self._pointer = pointer

    def write(self, out: Buffer, value: Any, notes: Extras) -> None:
        """Append the block."""
        if type(value) is not dict:
            raise StructureError("object", kind(value), pointer=self._pointer)
        self.write_entries(out, value, len(value), None, notes)

    def write_entries(
        self, out: Buffer, entries: dict[str, Any], count: int, skipped: frozenset[str] | None, notes: Extras
    ) -> None:
        """Append the block of the `count` entries whose names are not in `skipped`."""
        if count:
            check_count(count, self._pointer)
            out.write_long(count)
            self._write_each(out, entries, skipped, notes)
        out.append(0)

    def _write_each(self, out: Buffer, entries: dict[str, Any], skipped: frozenset[str] | None, notes: Extras) -> None:
        writer = self._values
        name = ""
        try:
            for name, item in entries.items():
                if skipped is not None and name in skipped:
                    continue
                noted = notes.count
                out.write_string(name)
                writer.write(out, item, notes)
                if notes.count != noted:
                    notes.below(f"{self._pointer}/{escape(name)}", noted)
        except MessageError as error:
            error.below(f"{self._pointer}/{escape(name)}")
            raise


class FieldWriter:
    """The name of a member and its writer."""

    __slots__ = ("name", "writer")

    def __init__(self, name: str, writer: Writer) -> None:
        self.name = name
        self.writer = writer


class RecordWriter(Writer):
    """A writer of a record; members that it does not name go into its rest map, or are noted."""

    __slots__ = ("_depth", "_fields", "_known", "_pointer", "_required", "_rest")

    def __init__(
        self, members: Mapping[str, Writer], required: Sequence[str], rest: MapWriter | None, pointer: str, depth: int
    ) -> None:
        self._fields = tuple(FieldWriter(name, writer) for name, writer in members.items())
        self._known = frozenset(members)
        self._pointer = pointer
        self._depth = depth
        self._required = tuple(required)
        self._rest = rest

    def write(self, out: Buffer, value: Any, notes: Extras) -> None:
        """Append the fields in order."""
        if type(value) is not dict:
            raise StructureError("object", kind(value), pointer=self._pointer)
        for name in self._required:
            if value.get(name) is None:
                got = "null" if name in value else "none"
                raise StructureError("a required member", got, pointer=f"{self._pointer}/{escape(name)}")
        noted = notes.count
        present = self._write_members(out, value, notes)
        if self._rest is not None:
            self._rest.write_entries(out, value, len(value) - present, self._known, notes)
        elif present != len(value):
            members = notes.count
            self._note_unknown(value, notes)
            notes.first(noted, members)

    def _write_members(self, out: Buffer, value: dict[str, Any], notes: Extras) -> int:
        present = 0
        for field in self._fields:
            item = value.get(field.name, _NONE)
            if item is _NONE:
                item = UNSET
            else:
                present += 1
            field.writer.write(out, item, notes)
        return present

    def _note_unknown(self, value: dict[str, Any], notes: Extras) -> None:
        for name, item in value.items():
            if name not in self._known:
                pointer = f"{self._pointer}/{escape(name)}"
                try:
                    check_value(item, self._depth + 1)
                except MessageError as error:
                    error.below(pointer)
                    raise
                notes.add(pointer, render(item).decode())


class MessageWriter:
    """A writer of whole messages: the outermost record, with whatever has no other place in `extras` at its end.

    With `opens_records`, a message may be the value of a Kafka record, whose other members go into `extras`.
    """

    __slots__ = ("_opens_records", "_record")

    def __init__(self, record: RecordWriter, *, opens_records: bool) -> None:
        self._record = record
        self._opens_records = opens_records

    def write(self, value: Any) -> bytes:
        """Return a message as a payload. Raises `StructureError`."""
        out = Buffer()
        notes = Extras()
        if self._opens_records and type(value) is dict and VALUE in value and is_kafka_record(value):
            self._write_opened(out, value, notes)
        else:
            self._record.write(out, value, notes)
        notes.write(out)
        return out.taken()

    def _write_opened(self, out: Buffer, record: dict[str, Any], notes: Extras) -> None:
        message = record[VALUE]
        check_value(record, 1)
        notes.add(KAFKA, render(beside_value(record)).decode())
        try:
            self._record.write(out, message, notes)
        except MessageError as error:
            error.below(f"/{VALUE}")
            raise

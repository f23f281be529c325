"""The small writers that a wire schema's plan is made of.

A record is a JSON value shaped by the wire schema; `msgspec.UNSET` stands for a member that is not
there. What the Avro types do not carry is noted on the way, as pairs of JSON pointer and text, and written into `extras` at the end: members that the
schema does not name, scalars of another type, operations spelled otherwise, and a null or absence
that departs from the format's convention.

Every writer knows its pointer below the nearest array or map; those put the index or name before
the notes and errors that come up from an item.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET

from cdcavro.avro.binary import MAX_COUNT
from cdcavro.avro.buffer import Buffer
from cdcavro.errors import MessageError, StructureError
from cdcavro.exact.fastjson import count_members
from cdcavro.exact.jsontext import escape, kind, render
from cdcavro.wire.extras import Extras
from cdcavro.wire.writing.values import ScalarWriter, Writer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


# What stands for a member that is not there: `UNSET` may stand there itself.
_NONE: Final = object()


class OptionalWriter(Writer):
    """A nullable field with one other branch."""

    __slots__ = ("_index", "_inner", "_null", "_null_is_usual", "_pointer")

    def __init__(self, inner: Writer, index: int, pointer: str, missing: str) -> None:
        self._inner = inner
        self._index = index << 1
        self._null = (1 - index) << 1
        self._pointer = pointer
        self._null_is_usual = missing == "null"

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
        else:
            out.append(self._index)
            self._inner.write(out, value, notes)


class VariantWriter(Writer):
    """A nullable field with several scalar branches: the JSON type's own branch, else the first that converts."""

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
    """Check that an array or a map is not longer than readers allow. Raises `StructureError`."""
    if count > MAX_COUNT:
        raise StructureError(f"at most {MAX_COUNT} items", f"{count}", pointer=pointer)


class ArrayWriter(Writer):
    """An array, as one block."""

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
    """A map, as one block."""

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
        self, out: Buffer, entries: dict[str, Any], count: int, passed: frozenset[str] | None, notes: Extras
    ) -> None:
        """Append the block of so many entries: those whose names are not `passed` by."""
        if count:
            check_count(count, self._pointer)
            out.write_long(count)
            notes.members += count
            self._write_each(out, entries, passed, notes)
        out.append(0)

    def _write_each(self, out: Buffer, entries: dict[str, Any], passed: frozenset[str] | None, notes: Extras) -> None:
        writer = self._values
        name = ""
        try:
            for name, item in entries.items():
                if passed is not None and name in passed:
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
    """Writes the member of a name."""

    __slots__ = ("name", "writer")

    def __init__(self, name: str, writer: Writer) -> None:
        self.name = name
        self.writer = writer


class RecordWriter(Writer):
    """A record; members that it does not name go to its rest map, or are noted."""

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
        notes.members += present
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
                    # Checks the value too.
                    notes.members += 1 + count_members(item, self._depth + 1)
                except MessageError as error:
                    error.below(pointer)
                    raise
                notes.add(pointer, render(item).decode())


class MessageWriter:
    """A whole message: the outermost record, with what has no other place in `extras` at its end."""

    __slots__ = ("_record",)

    def __init__(self, record: RecordWriter) -> None:
        self._record = record

    def write(self, value: Any) -> bytes:
        """Write a message as a payload. Raises `StructureError`."""
        out = Buffer()
        self.write_into(out, value)
        return out.taken()

    def write_into(self, out: Buffer, value: Any) -> int:
        """Append a message; gives how many JSON members it holds."""
        notes = Extras()
        self._record.write(out, value, notes)
        notes.write(out)
        return notes.members

"""The small writers that a wire schema's plan is made of.

A record is a JSON value shaped by the wire schema: a `dict`, or a msgspec Struct made from the
schema, whose unset members are `msgspec.UNSET`. What the Avro types do not carry is noted on the
way, as pairs of JSON pointer and text, and written into `extras` at the end: members that the
schema does not name, scalars of another type, operations spelled otherwise, and a null or absence
that departs from the format's convention.

Every writer knows its pointer below the nearest array or map; those put the index or name before
the notes and errors that come up from an item.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from msgspec import UNSET

from cdcavro.binary import MAX_COUNT, write_long, write_string
from cdcavro.errors import MessageError, StructureError
from cdcavro.scalars import count_members
from cdcavro.text import escape, kind, render

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence, Sized

    from cdcavro.notes import Notes
    from cdcavro.scalars import ScalarWriter

    Getter = Callable[[Any], tuple[Any, ...]]


class Writer(Protocol):
    """Writes one value."""

    def write(self, out: bytearray, value: Any, notes: Notes) -> None:
        """Append the value to `out`. Raises `StructureError`."""


class OptionalWriter:
    """A nullable field with one other branch."""

    __slots__ = ("_index", "_inner", "_null", "_null_is_usual", "_pointer")

    def __init__(self, inner: Writer, index: int, pointer: str, missing: str) -> None:
        self._inner = inner
        self._index = index << 1
        self._null = (1 - index) << 1
        self._pointer = pointer
        self._null_is_usual = missing == "null"

    def write(self, out: bytearray, value: Any, notes: Notes) -> None:
        """Append a branch index and the value."""
        if value is UNSET:
            out.append(self._null)
            if self._null_is_usual:
                notes.note(self._pointer, "")
        elif value is None:
            out.append(self._null)
            if not self._null_is_usual:
                notes.note(self._pointer, "null")
        else:
            out.append(self._index)
            self._inner.write(out, value, notes)


class Missing(NamedTuple):
    """How a nullable field is written without a value: the branch of null, and whether null is usual."""

    branch: int
    null_is_usual: bool
    pointer: str


class VariantWriter:
    """A nullable field with several scalar branches: the JSON type's own branch, else the first that converts."""

    __slots__ = ("_branches", "_null", "_null_is_usual", "_own", "_pointer")

    def __init__(self, branches: Mapping[int, ScalarWriter], names: Mapping[type, int], rule: Missing) -> None:
        self._branches = branches
        self._own = names
        self._null = rule.branch << 1
        self._null_is_usual = rule.null_is_usual
        self._pointer = rule.pointer

    def write(self, out: bytearray, value: Any, notes: Notes) -> None:
        """Append a branch index and the value."""
        if value is UNSET or value is None:
            out.append(self._null)
            if (value is None) is not self._null_is_usual:
                notes.note(self._pointer, "null" if value is None else "")
            return
        index = self._own.get(type(value), -1)
        if index < 0 or not self._branches[index].fits(value):
            index = self._converting(value)
        out.append(index << 1)
        self._branches[index].write(out, value, notes)

    def _converting(self, value: Any) -> int:
        for index, branch in self._branches.items() if type(value) not in (dict, list) else ():
            try:
                branch.converted(value)
            except StructureError:
                continue
            return index
        expected = " or ".join(branch.expected for branch in self._branches.values())
        raise StructureError(expected, kind(value), pointer=self._pointer)


def check_count(items: Sized, pointer: str) -> None:
    """Check that an array or a map is not longer than readers allow. Raises `StructureError`."""
    if len(items) > MAX_COUNT:
        raise StructureError(f"at most {MAX_COUNT} items", f"{len(items)}", pointer=pointer)


class ArrayWriter:
    """An array, as one block."""

    __slots__ = ("_items", "_pointer")

    def __init__(self, items: Writer, pointer: str) -> None:
        self._items = items
        self._pointer = pointer

    def write(self, out: bytearray, value: Any, notes: Notes) -> None:
        """Append the block."""
        if type(value) is not list:
            raise StructureError("array", kind(value), pointer=self._pointer)
        if value:
            check_count(value, self._pointer)
            write_long(out, len(value))
            write, entries = self._items.write, notes.entries
            for i, item in enumerate(value):
                noted = len(entries)
                try:
                    write(out, item, notes)
                except MessageError as error:
                    error.below(f"{self._pointer}/{i}")
                    raise
                if len(entries) != noted:
                    notes.below(f"{self._pointer}/{i}", noted)
        out.append(0)


class MapWriter:
    """A map, as one block."""

    __slots__ = ("_pointer", "_values")

    def __init__(self, values: Writer, pointer: str) -> None:
        self._values = values
        self._pointer = pointer

    def write(self, out: bytearray, value: Any, notes: Notes) -> None:
        """Append the block."""
        if type(value) is not dict:
            raise StructureError("object", kind(value), pointer=self._pointer)
        if value:
            check_count(value, self._pointer)
            write_long(out, len(value))
            notes.members += len(value)
            write, entries = self._values.write, notes.entries
            for name, item in value.items():
                noted = len(entries)
                write_string(out, name)
                try:
                    write(out, item, notes)
                except MessageError as error:
                    error.below(f"{self._pointer}/{escape(name)}")
                    raise
                if len(entries) != noted:
                    notes.below(f"{self._pointer}/{escape(name)}", noted)
        out.append(0)


class RecordParts(NamedTuple):
    """What a record's writer is made from beside its members' writers."""

    pointer: str
    required: Sequence[str]
    rest: Writer | None
    struct: type | None
    getter: Getter | None


class RecordWriter:
    """A record from a Struct or a dict; members that it does not name go to its rest map, or are noted."""

    __slots__ = ("_getter", "_known", "_names", "_pointer", "_required", "_rest", "_struct", "_writers")

    def __init__(self, members: Mapping[str, Writer], parts: RecordParts) -> None:
        self._names = list(members)
        self._writers = list(members.values())
        self._known = frozenset(members)
        self._required = [self._names.index(name) for name in parts.required]
        self._rest = parts.rest
        self._struct = parts.struct
        self._getter = parts.getter
        self._pointer = parts.pointer

    def write(self, out: bytearray, value: Any, notes: Notes) -> None:
        """Append the fields in order."""
        rest: dict[str, Any] | None = None
        if self._getter is not None and type(value) is self._struct:
            values = self._getter(value)
            notes.members += len(values) - values.count(UNSET)
        elif type(value) is dict:
            values = tuple([value.get(name, UNSET) for name in self._names])
            present = len(values) - values.count(UNSET)
            if self._rest is not None:
                notes.members += present
                rest = {name: item for name, item in value.items() if name not in self._known}
            else:
                notes.members += len(value)
                if present != len(value):
                    self._note_unknown(value, notes)
        else:
            raise StructureError("object", kind(value), pointer=self._pointer)
        for at in self._required:
            if values[at] is UNSET or values[at] is None:
                got = "none" if values[at] is UNSET else "null"
                raise StructureError("a required member", got, pointer=f"{self._pointer}/{escape(self._names[at])}")
        for writer, item in zip(self._writers, values, strict=True):
            writer.write(out, item, notes)
        if self._rest is not None:
            self._rest.write(out, rest, notes)

    def _note_unknown(self, value: dict[str, Any], notes: Notes) -> None:
        for name, item in value.items():
            if name not in self._known:
                pointer = f"{self._pointer}/{escape(name)}"
                try:
                    # Checks the value too; an unknown member stands on the second level at least.
                    count_members(item, 2)
                except MessageError as error:
                    error.below(pointer)
                    raise
                notes.note(pointer, render(item).decode())

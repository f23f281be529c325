"""The writer of messages: a plan for writing records, made of small writers by walking a wire schema once.

A record is a JSON value shaped by the wire schema; `msgspec.UNSET` stands for an absent member. What
the Avro types cannot carry is noted on the way, as pairs of JSON pointer and text, and written into
`extras` at the end: members that the schema does not name, scalars of another type, operations in
another spelling, and a null or absence that departs from the format's convention.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec import UNSET

from cdcavro.avro.binary import Buffer
from cdcavro.avro.types import Array, Enum, Map, Primitive, Record, Type, Union, branch_name
from cdcavro.errors import MessageError, SchemaError, StructureError, shown
from cdcavro.exact.jsontext import check_value, escape, kind, render
from cdcavro.wire.attributes import FieldRule, content_of, enum_rule, field_rule
from cdcavro.wire.extras import Notes
from cdcavro.wire.kafka import KAFKA, VALUE, is_kafka_record, unwraps_records, without_value
from cdcavro.wire.value_writers import (
    SCALARS,
    ArrayWriter,
    ColumnWriter,
    EnumWriter,
    MapWriter,
    OptionalWriter,
    ScalarWriter,
    ValueWriter,
    VariantWriter,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


# Marks an absent member, because `UNSET` may be a member's value.
_NONE: Final = object()
# The rule of an item of an array or a map, for which null is as usual as a value.
_ITEM: Final = FieldRule(name="", missing="null")


class FieldWriter:
    """The name of a member and its writer."""

    __slots__ = ("name", "writer")

    def __init__(self, name: str, writer: ValueWriter) -> None:
        self.name = name
        self.writer = writer


class RecordWriter(ValueWriter):
    """A writer of a record; members that it does not name go into its rest map, or are noted."""

    __slots__ = ("_depth", "_fields", "_known", "_pointer", "_required", "_rest")

    def __init__(
        self,
        members: Mapping[str, ValueWriter],
        required: Sequence[str],
        rest: MapWriter | None,
        pointer: str,
        depth: int,
    ) -> None:
        self._fields = tuple(FieldWriter(name, writer) for name, writer in members.items())
        self._known = frozenset(members)
        self._pointer = pointer
        self._depth = depth
        self._required = tuple(required)
        self._rest = rest

    def write(self, out: Buffer, value: Any, notes: Notes) -> None:
        """Append the fields in order."""
        if type(value) is not dict:
            raise StructureError("object", kind(value), pointer=self._pointer)
        for name in self._required:
            if value.get(name) is None:
                got = "null" if name in value else "none"
                raise StructureError("a required member", got, pointer=f"{self._pointer}/{escape(name)}")
        count_before = notes.count
        present = self._write_members(out, value, notes)
        if self._rest is not None:
            self._rest.write_entries(out, value, len(value) - present, self._known, notes)
        elif present != len(value):
            members = notes.count
            self._note_unknown(value, notes)
            notes.move_first(count_before, members)

    def _write_members(self, out: Buffer, value: dict[str, Any], notes: Notes) -> int:
        present = 0
        for field in self._fields:
            item = value.get(field.name, _NONE)
            if item is _NONE:
                item = UNSET
            else:
                present += 1
            field.writer.write(out, item, notes)
        return present

    def _note_unknown(self, value: dict[str, Any], notes: Notes) -> None:
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
    """A writer of whole messages: the outermost record, with what has no other place in its `extras`.

    With `unwraps_records`, a message may be the value of a Kafka record, whose other members go into `extras`.
    """

    __slots__ = ("_record", "_unwraps_records")

    def __init__(self, record: RecordWriter, *, unwraps_records: bool) -> None:
        self._record = record
        self._unwraps_records = unwraps_records

    def write(self, value: Any) -> bytes:
        """Return a message as a payload. Raises `StructureError`."""
        out = Buffer()
        notes = Notes()
        if self._unwraps_records and type(value) is dict and VALUE in value and is_kafka_record(value):
            self._write_unwrapped(out, value, notes)
        else:
            self._record.write(out, value, notes)
        notes.write(out)
        return out.taken()

    def _write_unwrapped(self, out: Buffer, record: dict[str, Any], notes: Notes) -> None:
        message = record[VALUE]
        check_value(record, 1)
        notes.add(KAFKA, render(without_value(record)).decode())
        try:
            self._record.write(out, message, notes)
        except MessageError as error:
            error.below(f"/{VALUE}")
            raise


def message_writer(declared: Record) -> MessageWriter:
    """Return the plan of a wire schema's outermost record. Raises `SchemaError` for a record that is not one."""
    last = declared.fields[-1] if declared.fields else None
    if last is None or last.type != Map(Primitive("string")) or field_rule(last).members != "extras":
        raise SchemaError(declared.name, "the envelope does not end in extras, a map of strings")
    names = [field_rule(field).name for field in declared.fields]
    return MessageWriter(_record(declared, _WriterPlace("", 1)), unwraps_records=unwraps_records(names))


class _WriterPlace(NamedTuple):
    """The place of a writer."""

    # Its pointer below the nearest array or map.
    pointer: str
    # Its depth in the JSON value.
    depth: int

    def member(self, name: str) -> _WriterPlace:
        return _WriterPlace(f"{self.pointer}/{escape(name)}", self.depth + 1)

    def item(self) -> _WriterPlace:
        return _WriterPlace("", self.depth + 1)


def _writer(declared: Type, place: _WriterPlace, rule: FieldRule = _ITEM) -> ValueWriter:
    match declared:
        case Primitive(name) if name in SCALARS:
            return SCALARS[name](name, place.pointer)
        case Enum():
            return EnumWriter(declared.symbols, enum_rule(declared), place.pointer)
        case Array(items):
            return ArrayWriter(_writer(items, place.item()), place.pointer)
        case Map():
            return _map(declared, place)
        case Record():
            return _record(declared, place)
        case Union():
            return _union(declared, place, rule)
    raise SchemaError(place.pointer or "$", f"a wire schema holds no {branch_name(declared)}")


def _map(declared: Map, place: _WriterPlace) -> MapWriter:
    return MapWriter(_writer(declared.values, place.item()), place.pointer)


def _record(declared: Record, place: _WriterPlace) -> RecordWriter:
    members: dict[str, ValueWriter] = {}
    required: list[str] = []
    rest: MapWriter | None = None
    for field in declared.fields:
        rule = field_rule(field)
        if rule.members == "extras":
            continue
        if rest is not None:
            raise SchemaError(declared.name, "the rest map stands behind the named members")
        if rule.members == "rest":
            if not isinstance(field.type, Map):
                raise SchemaError(declared.name, "the rest is a map")
            rest = _map(field.type, place)
            continue
        if rule.name in members:
            raise SchemaError(declared.name, f"two fields stand for the member {shown(rule.name)}")
        if rule.required:
            required.append(rule.name)
        if isinstance(field.type, Union) and any(map(content_of, field.type.branches)):
            raise SchemaError(place.member(rule.name).pointer, "a column's value stands in a map or an array")
        members[rule.name] = _writer(field.type, place.member(rule.name), rule)
    return RecordWriter(members, required, rest, place.pointer, place.depth)


def _union(declared: Union, place: _WriterPlace, rule: FieldRule) -> ValueWriter:
    if any(content_of(branch) for branch in declared.branches):
        return ColumnWriter([content_of(branch) or branch_name(branch) for branch in declared.branches], place.depth)
    if Primitive("null") not in declared.branches:
        raise SchemaError(place.pointer or "$", "a union has a branch null, for what is absent")
    null = declared.branches.index(Primitive("null"))
    others = {i: branch for i, branch in enumerate(declared.branches) if i != null}
    if len(others) == 1:
        index, branch = others.popitem()
        inner = _writer(branch, place, rule)
        return OptionalWriter(inner, index, place.pointer, rule.missing, takes_text=rule.text)
    if not others:
        raise SchemaError(place.pointer or "$", "a union of null alone holds nothing")
    branches: dict[int, ScalarWriter] = {}
    for i, branch in others.items():
        if not isinstance(branch, Primitive) or branch.name not in SCALARS:
            raise SchemaError(place.pointer or "$", "a union of variants holds scalars only")
        branches[i] = SCALARS[branch.name](branch.name, place.pointer)
    if len({branch.json_type for branch in branches.values()}) != len(others):
        raise SchemaError(place.pointer or "$", "a union of variants holds one branch for each JSON type")
    return VariantWriter(branches, null, place.pointer, rule.missing)

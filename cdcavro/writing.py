"""The plan that writes records: a wire schema walked once, as a tree of `writers`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cdcavro.attributes import enum_rule, field_rule, holds
from cdcavro.binary import write_long, write_string
from cdcavro.errors import SchemaError, shown
from cdcavro.notes import Notes
from cdcavro.scalars import SCALARS, ColumnWriter, EnumWriter, ScalarWriter
from cdcavro.text import escape
from cdcavro.types import Array, Enum, Map, Primitive, Record, Type, Union, branch_name
from cdcavro.writers import (
    ArrayWriter,
    MapWriter,
    Missing,
    OptionalWriter,
    RecordParts,
    RecordWriter,
    VariantWriter,
    Writer,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Getter = Callable[[Any], tuple[Any, ...]]


class EnvelopeWriter:
    """The outermost record, with `extras` at its end."""

    __slots__ = ("_record",)

    def __init__(self, declared: Record, structs: Mapping[str, tuple[type, Getter]]) -> None:
        last = declared.fields[-1] if declared.fields else None
        if last is None or last.type != Map(Primitive("string")) or field_rule(last).members != "extras":
            raise SchemaError(declared.name, "the envelope does not end in extras, a map of strings")
        self._record = _record(declared, _Place("", 1, structs))

    def write(self, value: Any) -> tuple[bytearray, int]:
        """Write a message; gives the payload and how many JSON members it holds. Raises `StructureError`."""
        out = bytearray()
        notes = Notes()
        self._record.write(out, value, notes)
        if notes.entries:
            write_long(out, len(notes.entries))
            for pointer, value_text in notes.entries:
                write_string(out, pointer)
                write_string(out, value_text)
        out.append(0)
        return out, notes.members


class _Place:
    """Where in the schema a writer stands: its pointer below the nearest array or map, and its depth in the JSON."""

    __slots__ = ("depth", "pointer", "structs")

    def __init__(self, pointer: str, depth: int, structs: Mapping[str, tuple[type, Getter]]) -> None:
        self.pointer = pointer
        self.depth = depth
        self.structs = structs

    def member(self, name: str) -> _Place:
        return _Place(f"{self.pointer}/{escape(name)}", self.depth + 1, self.structs)

    def item(self) -> _Place:
        return _Place("", self.depth + 1, self.structs)


def _writer(declared: Type, place: _Place, missing: str) -> Writer:
    match declared:
        case Primitive(name) if name in SCALARS:
            return ScalarWriter(name, place.pointer)
        case Enum():
            return EnumWriter(declared.symbols, enum_rule(declared), place.pointer)
        case Array(items):
            return ArrayWriter(_writer(items, place.item(), "null"), place.pointer)
        case Map(values):
            return MapWriter(_writer(values, place.item(), "null"), place.pointer)
        case Record():
            return _record(declared, place)
        case Union():
            return _union(declared, place, missing)
    raise SchemaError(place.pointer or "$", f"a wire schema holds no {branch_name(declared)}")


def _record(declared: Record, place: _Place) -> RecordWriter:
    members: dict[str, Writer] = {}
    required: list[str] = []
    rest: Writer | None = None
    for one in declared.fields:
        rule = field_rule(one)
        if rule.members == "extras":
            continue
        if rest is not None:
            raise SchemaError(declared.name, "the rest map stands behind the named members")
        if rule.members == "rest":
            rest = _writer(one.type, place, rule.missing)
            continue
        if rule.name in members:
            raise SchemaError(declared.name, f"two fields stand for the member {shown(rule.name)}")
        if rule.required:
            required.append(rule.name)
        members[rule.name] = _writer(one.type, place.member(rule.name), rule.missing)
    struct, getter = place.structs.get(declared.name, (None, None))
    return RecordWriter(members, RecordParts(place.pointer, required, rest, struct, getter))


def _union(declared: Union, place: _Place, missing: str) -> Writer:
    if any(holds(branch) for branch in declared.branches):
        return ColumnWriter([holds(branch) or branch_name(branch) for branch in declared.branches], place.depth)
    null = declared.branches.index(Primitive("null"))
    others = {i: branch for i, branch in enumerate(declared.branches) if i != null}
    if len(others) == 1:
        index, branch = others.popitem()
        return OptionalWriter(_writer(branch, place, missing), index, place.pointer, missing)
    if not others:
        raise SchemaError(place.pointer or "$", "a union of null alone holds nothing")
    branches: dict[int, ScalarWriter] = {}
    for i, branch in others.items():
        if not isinstance(branch, Primitive) or branch.name not in SCALARS:
            raise SchemaError(place.pointer or "$", "a union of variants holds scalars only")
        branches[i] = ScalarWriter(branch.name, place.pointer)
    own = {SCALARS[branch.name][0]: i for i, branch in others.items() if isinstance(branch, Primitive)}
    if len(own) != len(others):
        raise SchemaError(place.pointer or "$", "a union of variants holds one branch for each JSON type")
    return VariantWriter(branches, own, Missing(null, missing == "null", place.pointer))

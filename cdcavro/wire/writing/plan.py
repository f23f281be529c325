"""The plan for writing records: a wire schema walked once and turned into a tree of writers."""

from __future__ import annotations

from typing import Final, NamedTuple

from cdcavro.avro.types import Array, Enum, Map, Primitive, Record, Type, Union, branch_name
from cdcavro.errors import SchemaError, shown
from cdcavro.exact.jsontext import escape
from cdcavro.wire.attributes import FieldRule, enum_rule, field_rule, holds
from cdcavro.wire.kafka import opens_records
from cdcavro.wire.writing.messages import (
    ArrayWriter,
    MapWriter,
    MessageWriter,
    OptionalWriter,
    RecordWriter,
    VariantWriter,
)
from cdcavro.wire.writing.values import SCALARS, ColumnWriter, EnumWriter, ScalarWriter, Writer

# The rule of an item of an array or a map, for which null is as usual as a value.
_ITEM: Final = FieldRule(name="", missing="null")


def message_writer(declared: Record) -> MessageWriter:
    """Return the plan of a wire schema's outermost record. Raises `SchemaError` for a record that is not one."""
    last = declared.fields[-1] if declared.fields else None
    if last is None or last.type != Map(Primitive("string")) or field_rule(last).members != "extras":
        raise SchemaError(declared.name, "the envelope does not end in extras, a map of strings")
    names = [field_rule(field).name for field in declared.fields]
    return MessageWriter(_record(declared, _Context("", 1)), opens_records=opens_records(names))


class _Context(NamedTuple):
    """The place of a writer: its pointer below the nearest array or map, and its depth in the JSON value."""

    pointer: str
    depth: int

    def member(self, name: str) -> _Context:
        return _Context(f"{self.pointer}/{escape(name)}", self.depth + 1)

    def item(self) -> _Context:
        return _Context("", self.depth + 1)


def _writer(declared: Type, place: _Context, rule: FieldRule = _ITEM) -> Writer:
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


def _map(declared: Map, place: _Context) -> MapWriter:
    return MapWriter(_writer(declared.values, place.item()), place.pointer)


def _record(declared: Record, place: _Context) -> RecordWriter:
    members: dict[str, Writer] = {}
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
        if isinstance(field.type, Union) and any(map(holds, field.type.branches)):
            raise SchemaError(place.member(rule.name).pointer, "a column's value stands in a map or an array")
        members[rule.name] = _writer(field.type, place.member(rule.name), rule)
    return RecordWriter(members, required, rest, place.pointer, place.depth)


def _union(declared: Union, place: _Context, rule: FieldRule) -> Writer:
    if any(holds(branch) for branch in declared.branches):
        return ColumnWriter([holds(branch) or branch_name(branch) for branch in declared.branches], place.depth)
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
    if len({branch.own for branch in branches.values()}) != len(others):
        raise SchemaError(place.pointer or "$", "a union of variants holds one branch for each JSON type")
    return VariantWriter(branches, null, place.pointer, rule.missing)

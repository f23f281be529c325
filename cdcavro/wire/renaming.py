"""Renaming the members of a record to those of a newer schema: what schema resolution means for JSON.

A record is read with the schema that wrote it, `extras` included, so that it is the message that was
sent. Then its members get their new names, and members that are new get their defaults. A member that
the newer schema lacks keeps its name, like any member that no schema names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cdcavro.avro.resolution import ReadArray, ReadEnum, ReadFixed, ReadMap, ReadPrimitive, ReadRecord, ReadUnion, Step
from cdcavro.avro.types import Array, Enum, Map, Primitive, Record, Union
from cdcavro.errors import PayloadError, SchemaError, shown
from cdcavro.exact.jsontext import escape
from cdcavro.wire.attributes import content_of, field_rule

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cdcavro.avro.types import Field, Type


@dataclass(frozen=True, slots=True)
class ItemRenames:
    """The renames within every item of an array or every value of a map."""

    of: Renames


@dataclass(frozen=True, slots=True)
class MemberRenames:
    """The renames of a record's members, and the defaults of new ones."""

    # The new name, and the renames within the member, by old name.
    names: Mapping[str, tuple[str, Renames | None]]
    # The type and the default, by name.
    defaults: Mapping[str, tuple[Type, Any]]


Renames = ItemRenames | MemberRenames


def renames_of(step: Step) -> Renames | None:
    """Return the renames that a resolution implies; None if there are none.

    Raises `SchemaError` for a union of several records with renames: JSON does not tell the branches apart.
    """
    match step:
        case ReadArray(inner) | ReadMap(inner):
            below = renames_of(inner)
            return ItemRenames(below) if below else None
        case ReadUnion(branches):
            renames = [renames_of(branch) for branch in branches if not isinstance(branch, str)]
            inside = [names for names in renames if names is not None]
            if len(inside) > 1:
                raise SchemaError("$", "renames in several branches of a union")
            return inside[0] if inside else None
        case ReadRecord(reader=declared) if not content_of(declared):
            names = dict(entry for field in step.fields for entry in _member_renames(*field))
            defaults = dict(entry for field in step.defaults for entry in _default(field))
            return MemberRenames(names, defaults) if names or defaults else None
        case ReadPrimitive() | ReadFixed() | ReadEnum() | ReadRecord():
            return None
    raise SchemaError("$", f"no renames for {type(step).__name__}")


def _member_renames(step: Step, was: Field, now: Field | None) -> list[tuple[str, tuple[str, Renames | None]]]:
    if now is None or field_rule(was).members:
        return []
    old, new, below = field_rule(was).name, field_rule(now).name, renames_of(step)
    return [(old, (new, below))] if old != new or below else []


def _default(declared: Field) -> list[tuple[str, tuple[Type, Any]]]:
    rule = field_rule(declared)
    if rule.members or (declared.default is None and rule.missing == "absent"):
        return []
    return [(rule.name, (declared.type, declared.default))]


def rename(value: Any, names: Renames, pointer: str = "") -> Any:
    """Return a JSON value with its members renamed, and with the defaults of new members.

    Raises `PayloadError` if another member already has the new name: one of the two would be lost.
    """
    match names:
        case ItemRenames(of) if isinstance(value, dict):
            return {name: rename(item, of, f"{pointer}/{escape(name)}") for name, item in value.items()}
        case ItemRenames(of) if isinstance(value, list):
            return [rename(item, of, f"{pointer}/{i}") for i, item in enumerate(value)]
        case MemberRenames() if isinstance(value, dict):
            return _members(value, names, pointer)
        case ItemRenames() | MemberRenames():
            return value
    raise SchemaError(pointer or "$", f"no renames are {type(names).__name__}")


def _members(value: dict[str, Any], members: MemberRenames, pointer: str) -> dict[str, Any]:
    renamed: dict[str, Any] = {}
    for old, item in value.items():
        new, below = members.names.get(old, (old, None))
        if new in renamed:
            raise PayloadError("a name that is free", f"{shown(new)} twice", pointer=f"{pointer}/{escape(old)}")
        renamed[new] = rename(item, below, f"{pointer}/{escape(old)}") if below else item
    for name, default in members.defaults.items():
        renamed.setdefault(name, _value(*default))
    return renamed


def _value(declared: Type, default: Any) -> Any:
    """Return a default as the JSON value of a message; a schema's JSON writes some defaults in another way."""
    match declared:
        case Union(branches):
            return _value(branches[0], default)
        case Record():
            return _record(declared, default)
        case Array(items):
            return [_value(items, item) for item in default]
        case Map(values):
            return {name: _value(values, item) for name, item in default.items()}
        case Primitive("float" | "double"):
            return float(default)
        case Primitive() | Enum():
            return default
    raise SchemaError("$", f"a wire schema holds no {type(declared).__name__}")


def _record(declared: Record, default: dict[str, Any]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for field in declared.fields:
        rule, item = field_rule(field), default.get(field.name, field.default)
        if rule.members:
            members.update(_value(field.type, item))
        elif item is not None or rule.missing == "null":
            members[rule.name] = _value(field.type, item)
    return members

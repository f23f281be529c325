"""The plan for reading payloads: a wire schema walked once and turned into a tree of readers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec import UNSET

from cdcavro.avro.types import Array, Enum, Map, Primitive, Record, Type, Union, branch_name, check_expansion
from cdcavro.errors import SchemaError
from cdcavro.exact.jsontext import escape
from cdcavro.wire.attributes import field_rule, holds
from cdcavro.wire.extras import schema_member
from cdcavro.wire.reading.collections import ArrayReader, MapReader
from cdcavro.wire.reading.messages import FieldReader, MessageReader, RecordReader
from cdcavro.wire.reading.values import (
    BooleanReader,
    DoubleReader,
    EnumReader,
    IntReader,
    LongReader,
    NumberReader,
    OptionalReader,
    Reader,
    StringReader,
    TextReader,
    UnionReader,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from cdcavro.wire.extras import SchemaMember as Member


def message_reader(declared: Type) -> MessageReader:
    """Return the plan of a wire schema. Raises `SchemaError` for a type that is not one."""
    if not isinstance(declared, Record):
        raise SchemaError("$", "a wire schema is a record")
    check_expansion(declared, "a format of messages")
    members: dict[str, Member] = {}
    return MessageReader(_record(declared, _Context("", 1, members)), members)


class _Context(NamedTuple):
    """The place of a reader: its pointer below the nearest array or map, and its depth in the JSON value.

    `members` collects the members that the schema names, by pointer; it is None below an array or map.
    """

    pointer: str
    depth: int
    members: dict[str, Member] | None

    def member(self, name: str) -> _Context:
        return _Context(f"{self.pointer}/{escape(name)}", self.depth + 1, self.members)

    def item(self) -> _Context:
        return _Context("", self.depth + 1, None)


def _reader(declared: Type, place: _Context, missing: Any) -> Reader:
    match declared:
        case Primitive(name) if name in _SCALARS:
            return _SCALARS[name]()
        case Enum(symbols=symbols):
            return EnumReader(symbols)
        case Array(items):
            return ArrayReader(_reader(items, place.item(), None))
        case Map(values):
            return MapReader(_reader(values, place.item(), None))
        case Union(branches):
            return _union(branches, place, missing)
        case Record():
            return _CONTENT_READERS.get(holds(declared), _record)(declared, place)
    raise SchemaError(place.pointer or "$", f"a wire schema holds no {branch_name(declared)}")


def _union(branches: tuple[Type, ...], place: _Context, missing: Any) -> Reader:
    readers = [None if branch == Primitive("null") else _reader(branch, place, missing) for branch in branches]
    some = [reader for reader in readers if reader is not None]
    if len(readers) == len(some) + 1 == 2:  # noqa: PLR2004  null and one other
        return OptionalReader(some[0], readers.index(some[0]), missing)
    return UnionReader(readers, missing)


def _record(declared: Record, place: _Context) -> RecordReader:
    fields: list[FieldReader] = []
    for field in declared.fields:
        rule = field_rule(field)
        own = place if rule.members else place.member(rule.name)
        if place.members is not None and not rule.members:
            place.members[own.pointer] = schema_member(
                own.pointer, is_scalar=_is_scalar(field.type), is_required=rule.required, is_text=rule.text
            )
        missing = None if rule.missing == "null" else UNSET
        fields.append(FieldReader(rule.members, rule.name, own.pointer, _reader(field.type, own, missing)))
    return RecordReader(fields)


def _is_scalar(declared: Type) -> bool:
    branches = declared.branches if isinstance(declared, Union) else (declared,)
    return not any(isinstance(branch, (Array, Map, Record)) for branch in branches)


_CONTENT_READERS: Final[dict[str, Callable[[Record, _Context], Reader]]] = {
    "number": lambda *_: NumberReader(),
    "text": lambda _, place: TextReader(place.depth - 1),
}
_SCALARS: Final[dict[str, Callable[[], Reader]]] = {
    "boolean": BooleanReader,
    "int": IntReader,
    "long": LongReader,
    "double": DoubleReader,
    "string": StringReader,
}

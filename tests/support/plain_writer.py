"""A second implementation of the wire schemas' rules, slow and simple: from a JSON value to the record fastavro writes.

It has no plan, no buffer and no fast path, and converts whole numbers with `decimal`.
"""

from __future__ import annotations

import io
from decimal import Decimal
from functools import singledispatch
from typing import TYPE_CHECKING, Any

import fastavro

import cdcavro
from cdcavro.avro.types import Array, Enum, Map, Primitive, Record, Union, branch_name
from cdcavro.exact.jsontext import escape, render
from cdcavro.exact.numbers import ExactNumber, is_number
from cdcavro.wire.attributes import content_of, enum_rule, field_rule
from support.roundtrip import fastavro_schema, read_by_fastavro

if TYPE_CHECKING:
    from cdcavro.avro.types import Type

ABSENT = object()
_BOUNDS = {"int": 2**31, "long": 2**63}


def assert_plain(format: str, value: dict[str, Any], payload: bytes) -> None:
    """Assert that the plain writer and fastavro produce the same payload for a JSON value."""
    extras: dict[str, str] = {}
    record = _written(cdcavro.load_schema(format).root, value, "", extras)
    payload_extras = read_by_fastavro(format, payload)["extras"]
    assert payload_extras == extras
    out = io.BytesIO()
    # The order of extras does not matter.
    fastavro.schemaless_writer(out, fastavro_schema(format), record | {"extras": payload_extras})
    assert payload == out.getvalue()


@singledispatch
def _written(declared: Type, value: Any, pointer: str, extras: dict[str, str]) -> Any:
    raise TypeError(type(declared).__name__)


@_written.register
def _(declared: Record, value: Any, pointer: str, extras: dict[str, str]):
    rules = {field.name: field_rule(field) for field in declared.fields}
    named = {rule.name for rule in rules.values() if not rule.members}
    unknown = {name: item for name, item in value.items() if name not in named}
    record = {}
    for field in declared.fields:
        rule = rules[field.name]
        if rule.members == "rest":
            record[field.name] = _written(field.type, unknown, pointer, extras)
            unknown = {}
        elif not rule.members:
            item = value.get(rule.name, ABSENT)
            place = f"{pointer}/{escape(rule.name)}"
            if item is ABSENT and rule.missing == "null":
                extras[place] = ""
            elif item is None and rule.missing == "absent":
                extras[place] = "null"
            record[field.name] = _written(field.type, None if item is ABSENT else item, place, extras)
    extras |= {f"{pointer}/{escape(name)}": render(item).decode() for name, item in unknown.items()}
    return record


@_written.register
def _(declared: Map, value: Any, pointer: str, extras: dict[str, str]):
    return {name: _written(declared.values, item, f"{pointer}/{escape(name)}", extras) for name, item in value.items()}


@_written.register
def _(declared: Array, value: Any, pointer: str, extras: dict[str, str]):
    return [_written(declared.items, item, f"{pointer}/{i}", extras) for i, item in enumerate(value)]


@_written.register
def _(declared: Enum, value: Any, pointer: str, extras: dict[str, str]):
    rule = enum_rule(declared)
    symbols = dict(zip(rule.texts(declared.symbols), declared.symbols, strict=True))
    if type(value) is str and value in symbols and symbols[value] != rule.other:
        return symbols[value]
    extras[pointer] = render(value).decode()
    return rule.spellings.get(_plain(value), rule.other)


@_written.register
def _(declared: Primitive, value: Any, pointer: str, extras: dict[str, str]):
    converted = _converted(declared.name, value)
    if type(converted) is not type(value) or converted != value:
        extras[pointer] = render(value).decode()
    return converted


@_written.register
def _(declared: Union, value: Any, pointer: str, extras: dict[str, str]):
    if value is None:
        return None
    names_by_content = {content_of(branch): branch_name(branch) for branch in declared.branches}
    if "number" in names_by_content:
        return _column(value, names_by_content)
    branches = [branch for branch in declared.branches if branch != Primitive("null")]
    if len(branches) == 1:
        return _written(branches[0], value, pointer, extras)
    names = [branch.name for branch in branches]
    own = next((name for name in names if _own(name, value)), None)
    name = own or next(name for name in names if _converted(name, value) is not None)
    return name, _written(Primitive(name), value, pointer, extras)


def _column(value: Any, names_by_content: dict[str, str]) -> Any:
    match value:
        case ExactNumber(text=digits):
            return names_by_content["number"], {"text": digits}
        case dict() | list():
            return names_by_content["text"], {"text": render(value).decode()}
        case bool():
            return "boolean", value
        case int():
            return "long", value
        case float():
            return "double", value
        case str():
            return "string", value
    raise TypeError(type(value).__name__)


def _plain(value: Any) -> str:
    return value if type(value) is str else render(value).decode()


def _own(name: str, value: Any) -> bool:
    match name:
        case "string":
            return type(value) is str
        case "boolean":
            return type(value) is bool
        case "int" | "long":
            return type(value) is int and -_BOUNDS[name] <= value < _BOUNDS[name]
    raise ValueError(name)


def _converted(name: str, value: Any) -> Any:
    """Return the value of an Avro type that a scalar states exactly; None if there is none."""
    if _own(name, value):
        return value
    text = _plain(value)
    if name == "string":
        return text
    if name == "boolean":
        return {"true": True, "false": False}.get(text) if type(value) is str else None
    if type(value) is bool or not is_number(text):
        return None
    number = Decimal(text)
    if not number:
        return 0
    if number.adjusted() > 20 or number != number.to_integral_value():
        return None
    return int(number) if _own(name, int(number)) else None

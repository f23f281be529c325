"""Avro schemas, parsed once into `types`, with names, shapes and defaults checked.

Source: the Avro 1.8.2 specification. What it leaves to parsers is refused here: invalid names,
duplicate fields and symbols, negative sizes, types that contain themselves (a recursive payload can
kill a reader), nesting beyond 128 levels, and more than 100,000 types, where every use of a name
counts as all the types that it stands for (a short text could stand for billions).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final

import fastavro.schema

from cdcavro.avro.canonical import canonical_form
from cdcavro.avro.defaults import check_default
from cdcavro.avro.types import PRIMITIVES, Array, Enum, Field, Fixed, Map, Primitive, Record, Type, Union, branch_name
from cdcavro.errors import SchemaError, shown
from cdcavro.exact.members import ABSENT

MAX_DEPTH: Final = 128
MAX_LENGTH: Final = 8 << 20
MAX_TYPES: Final = 100_000
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_SPECIFIED: Final = frozenset(
    {"type", "name", "namespace", "doc", "aliases", "fields", "symbols", "size", "default", "order"}
)


@dataclass(frozen=True)
class Schema:
    """An Avro schema.

    Attributes: `json` (str), the text as it was written, to hand to Spark or a registry; `root`
    (`Type`), the parsed type.
    """

    json: str
    root: Type = field(compare=False, repr=False)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the text only, for Spark's workers."""
        return parse_schema, (self.json,)

    @cached_property
    def canonical(self) -> str:
        """The Parsing Canonical Form (Avro 1.8.2, "Transforming into Parsing Canonical Form")."""
        return canonical_form(self.root)

    @cached_property
    def fingerprint(self) -> str:
        """The CRC-64-AVRO of the canonical form, as 16 hex digits.

        The digits are in the byte order of a single-object encoding, which is little-endian. Aliases
        and attributes do not change the fingerprint.
        """
        return str(fastavro.schema.fingerprint(self.canonical, "CRC-64-AVRO"))


def parse_schema(text: str) -> Schema:
    """Return the schema that a JSON text declares.

    Raises `SchemaError` with the place in the schema and the rule that it breaks.

    >>> parse_schema('{"type": "map", "values": "long"}').canonical
    '{"type":"map","values":"long"}'
    """
    if len(text) > MAX_LENGTH:
        raise SchemaError("text", f"longer than {MAX_LENGTH} characters")
    try:
        declared = json.loads(text, object_pairs_hook=_members, parse_constant=_constant)
    except SchemaError:
        raise
    except (ValueError, RecursionError) as error:
        raise SchemaError("text", f"not JSON: {error}") from error
    return Schema(text, _Parser().parse(declared, "", "$", 0))


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise SchemaError("text", "a member is given twice")
    return members


def _constant(name: str) -> None:
    raise SchemaError("text", f"not JSON: {name}")


class _Parser:
    """A parser that keeps the named types defined so far, in the specification's order: depth first, left to right."""

    def __init__(self) -> None:
        self._defined: dict[str, Type | None] = {}
        self._sizes: dict[str, int] = {}
        self._size = 0

    def parse(self, declared: Any, space: str, where: str, depth: int) -> Type:
        self._size += 1
        if self._size > MAX_TYPES:
            raise SchemaError(where, f"more than {MAX_TYPES} types")
        if depth > MAX_DEPTH:
            raise SchemaError(where, f"nested deeper than {MAX_DEPTH} levels")
        match declared:
            case str():
                return self._reference(declared, space, where)
            case list():
                return self._union(declared, space, where, depth)
            case {"type": "array"}:
                return Array(self.parse(_need(declared, "items", where), space, where + ".items", depth + 1))
            case {"type": "map"}:
                return Map(self.parse(_need(declared, "values", where), space, where + ".values", depth + 1))
            case {"type": "record" | "enum" | "fixed" as kind}:
                return self._named(kind, declared, space, where, depth)
            case {"type": str(kind)} if kind in PRIMITIVES:
                return Primitive(kind, MappingProxyType({k: v for k, v in declared.items() if k != "type"}))
        raise SchemaError(where, f"expected a type, got {shown(json.dumps(declared))}")

    def _reference(self, name: str, space: str, where: str) -> Type:
        if name in PRIMITIVES:
            return Primitive(name)
        full = full_name(name, space, where)
        if full not in self._defined:
            raise SchemaError(where, f"{shown(name)} is not defined before it is used")
        known = self._defined[full]
        if known is None:
            raise SchemaError(where, f"{full} contains itself; recursive schemas are refused")
        self._size += self._sizes[full]
        return known

    def _union(self, declared: list[Any], space: str, where: str, depth: int) -> Union:
        branches = tuple(self.parse(item, space, f"{where}[{i}]", depth + 1) for i, item in enumerate(declared))
        if not branches:
            raise SchemaError(where, "a union without branches")
        if any(isinstance(branch, Union) for branch in branches):
            raise SchemaError(where, "a union holds a union")
        names = [branch_name(branch) for branch in branches]
        if len(set(names)) != len(names):
            raise SchemaError(where, "a union holds two branches of one type")
        return Union(branches)

    def _named(self, kind: str, declared: dict[str, Any], space: str, where: str, depth: int) -> Type:
        own = declared.get("namespace", space)
        if not isinstance(own, str):
            raise SchemaError(where, "namespace is not a string")
        full = full_name(_need(declared, "name", where), own, where)
        if full in self._defined:
            raise SchemaError(where, f"{full} is defined twice")
        space = full.rpartition(".")[0]
        aliases = tuple(full_name(alias, space, where) for alias in _strings(declared, "aliases", where))
        attributes = MappingProxyType({k: v for k, v in declared.items() if k not in _SPECIFIED})
        shared = (full, aliases, _text(declared, "doc", where), attributes)
        self._defined[full] = None
        before = self._size
        named: Type
        if kind == "enum":
            named = Enum(*shared, symbols=_symbols(declared, where))
        elif kind == "fixed":
            named = Fixed(*shared, size=_size(declared, where))
        else:
            named = Record(*shared, fields=self._fields(declared, space, where, depth))
        self._defined[full] = named
        self._sizes[full] = self._size - before
        return named

    def _fields(self, declared: dict[str, Any], space: str, where: str, depth: int) -> tuple[Field, ...]:
        listed = _need(declared, "fields", where)
        if not isinstance(listed, list):
            raise SchemaError(where, "fields is not an array")
        fields = tuple(self._field(item, space, f"{where}.fields[{i}]", depth) for i, item in enumerate(listed))
        names = [name for field in fields for name in (field.name, *field.aliases)]
        if len(set(names)) != len(names):
            raise SchemaError(where, "two fields share a name or an alias")
        return fields

    def _field(self, declared: Any, space: str, where: str, depth: int) -> Field:
        if not isinstance(declared, dict):
            raise SchemaError(where, "a field is not an object")
        parsed = self.parse(_need(declared, "type", where), space, where, depth + 1)
        default = declared.get("default", ABSENT)
        if default is not ABSENT:
            check_default(parsed, default, where)
        return Field(
            name=_name(_need(declared, "name", where), where),
            type=parsed,
            default=default,
            aliases=tuple(_name(alias, where) for alias in _strings(declared, "aliases", where)),
            doc=_text(declared, "doc", where),
            attributes=MappingProxyType({k: v for k, v in declared.items() if k not in _SPECIFIED}),
        )


def full_name(name: Any, space: str, where: str) -> str:
    """Return the full name of a named type (Avro 1.8.2, "Names").

    >>> full_name("X", "org.foo", "$")
    'org.foo.X'
    """
    if not isinstance(name, str):
        raise SchemaError(where, "a name is not a string")
    full = name if "." in name or not space else f"{space}.{name}"
    for part in full.split("."):
        _name(part, where)
    if full in PRIMITIVES:
        raise SchemaError(where, f"{full} is a primitive type and cannot be defined")
    return full


def _name(name: Any, where: str) -> str:
    if not isinstance(name, str) or not _NAME.match(name):
        raise SchemaError(where, f"{shown(name)} is not a name: [A-Za-z_][A-Za-z0-9_]*")
    return name


def _need(declared: dict[str, Any], member: str, where: str) -> Any:
    if member not in declared:
        raise SchemaError(where, f"{member} is missing")
    return declared[member]


def _text(declared: dict[str, Any], member: str, where: str) -> str:
    text = declared.get(member, "")
    if not isinstance(text, str):
        raise SchemaError(where, f"{member} is not a string")
    return text


def _strings(declared: dict[str, Any], member: str, where: str) -> list[str]:
    listed = declared.get(member, [])
    if not isinstance(listed, list) or not all(isinstance(item, str) for item in listed):
        raise SchemaError(where, f"{member} is not an array of strings")
    return listed


def _symbols(declared: dict[str, Any], where: str) -> tuple[str, ...]:
    _need(declared, "symbols", where)
    symbols = tuple(_name(symbol, where) for symbol in _strings(declared, "symbols", where))
    if not symbols or len(set(symbols)) != len(symbols):
        raise SchemaError(where, "symbols are missing or given twice")
    return symbols


def _size(declared: dict[str, Any], where: str) -> int:
    size = _need(declared, "size", where)
    if type(size) is not int or not 0 <= size <= MAX_LENGTH:
        raise SchemaError(where, f"size is not an integer from 0 to {MAX_LENGTH}")
    return size

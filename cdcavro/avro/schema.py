"""Avro schemas, parsed once into `types`, with names, shapes and defaults checked; and the definitions in their JSON.

Source: the Avro 1.8.2 specification, and Avro Java 1.8.2 and 1.12 where they read more: what either of
them reads is read here, if every reader takes it to mean the same. So a field's alias that is no name is
passed over, as it names nothing; text behind a schema, names of other characters and defaults that no reader can
fill in are refused. Bounds are the project's own: nesting of 128 levels, and 100,000 types in the text.
What the names in it stand for may be far more, or have no end (a record may contain itself), so whoever
walks through types enters each record once.

A schema's text is read into JSON here as well, names are checked, and definitions of named types within it are moved.
A schema defines a record, enum or fixed once, where it is first used, and refers to it by name from there on. A field
that is dropped or moved takes the definition along, and a registry stores a shared type on its own; the functions here
put the definitions back where they belong.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import fastavro.schema

from cdcavro.avro.defaults import Grades, check_default, parse_default
from cdcavro.avro.types import (
    MAX_DEPTH,
    MAX_TYPES,
    PRIMITIVES,
    Array,
    Enum,
    Field,
    Fixed,
    Map,
    Primitive,
    Record,
    Type,
    Union,
    branch_name,
    canonical_form,
    too_nested,
    within_stack,
)
from cdcavro.errors import SchemaError, shown
from cdcavro.exact.jsontext import ABSENT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    Visit = Callable[[Any, str, int], Any]

Definitions = dict[str, dict[str, Any]]
# A tuple, since the type in a registry's text may be anything, and a list or an object cannot be looked up in a set.
_NAMED: Final = ("record", "error", "enum", "fixed")
# Strings are matched too, since a string may contain what looks like a comment.
_COMMENT: Final = re.compile(r'"(?:[^"\\]++|\\.?)*+(?:"|\Z)|//[^\r\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)


def read_json(text: str) -> tuple[Any, bool]:
    """Return what a JSON text declares, and whether it says so in plain JSON, with each member given once."""
    repeated: list[str] = []

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        declared = dict(pairs)
        if len(declared) != len(pairs):
            repeated.append("a member is given twice")
        return declared

    def read(text: str) -> Any:
        return json.loads(text, object_pairs_hook=members, parse_constant=_refuse_constant)

    try:
        return read(text), not repeated and _is_unicode(text)
    except (ValueError, RecursionError):
        bare = _COMMENT.sub(_strip_comment, text)
        try:
            if bare == text:
                raise
            return read(bare), False
        except (ValueError, RecursionError) as still:
            raise SchemaError("text", f"not JSON: {still}") from still


def _is_unicode(text: str) -> bool:
    """Return whether a text has no lone surrogates, which JSON can only spell out."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _strip_comment(match: re.Match[str]) -> str:
    found = match[0]
    is_closed = found.startswith("//") or (found.startswith("/*") and found.endswith("*/") and found != "/*/")
    return " " if is_closed else found


def plain_json(declared: Any) -> str:
    """Return a declaration as JSON text, with each member once. Raises `SchemaError` for what JSON cannot hold."""
    try:
        return json.dumps(declared, allow_nan=False)
    except (ValueError, RecursionError) as error:
        raise SchemaError("text", f"not JSON: {error}") from error


def _refuse_constant(name: str) -> None:
    raise ValueError(name)


def definitions(declared: Any) -> Definitions:
    """Return the named types that a schema's JSON defines, by full name, each able to stand alone.

    The outermost type is included if it is a named one.

    >>> definitions({"type": "array", "items": {"type": "fixed", "name": "a.F", "size": 2}})
    {'a.F': {'type': 'fixed', 'name': 'a.F', 'size': 2}}
    """
    defined: Definitions = {}

    def visit(declared: Any, space: str, depth: int) -> Any:
        full = defined_name(declared, space)
        if full is not None:
            defined.setdefault(full, with_own_namespace(declared, space))
        return map_types(declared, space, depth, visit)

    visit(declared, "", 0)
    return defined


def define_at_first_use(declared: Any, known: Mapping[str, dict[str, Any]]) -> Any:
    """Return a schema's JSON with each known type defined where it is first used and referred to by name after that."""
    spaced = {full: of | {"namespace": full.rpartition(".")[0]} if "." in full else of for full, of in known.items()}
    return _DefinitionPlacer(spaced, is_inserted=True).visit(declared, "", 0)


def insert_definitions(declared: Any, known: Mapping[str, dict[str, Any]]) -> Any:
    """Return a schema's JSON in which known types that it refers to without a definition are defined at first use.

    A type that it defines twice stays defined twice. Raises `SchemaError` beyond the bounds of a schema.
    """
    return _DefinitionPlacer(known, is_inserted=False).visit(declared, "", 0)


class _DefinitionPlacer:
    """A walk through a schema that tracks which types are defined so far and whether it is inside an inserted one."""

    def __init__(self, known: Mapping[str, dict[str, Any]], *, is_inserted: bool) -> None:
        self._known = known
        self._defined: set[str] = set()
        self._within = int(is_inserted)
        self._count = 0

    def visit(self, declared: Any, space: str, depth: int) -> Any:
        self._count += 1
        if self._count > MAX_TYPES:
            raise SchemaError("$", f"more than {MAX_TYPES} types")
        if isinstance(declared, str):
            return declared if declared in PRIMITIVES else self._reference(declared, space, depth)
        full = defined_name(declared, space)
        if full is not None:
            if self._within and full in self._defined:
                return full
            self._defined.add(full)
        return map_types(declared, space, depth, self.visit)

    def _reference(self, name: str, space: str, depth: int) -> Any:
        full = full_name(name, space, "$")
        if full in self._defined or full not in self._known:
            return name
        self._within += 1
        definition = self.visit(self._known[full], "", depth)
        self._within -= 1
        return definition


def write_full_names(record: dict[str, Any]) -> None:
    """Write out the full names of all types in a record's fields, in place, so that its own namespace may change."""

    def visit(declared: Any, space: str, depth: int) -> Any:
        if isinstance(declared, str):
            return declared if declared in PRIMITIVES else full_name(declared, space, "$")
        full = defined_name(declared, space)
        spaced = declared if full is None else declared | {"namespace": full.rpartition(".")[0]}
        return map_types(spaced, space, depth, visit)

    record.update(map_types(record, "", 0, visit))


def defined_name(declared: Any, space: str) -> str | None:
    """Return the full name of the named type that a declaration defines; None if it defines none."""
    if not isinstance(declared, dict) or declared.get("type") not in _NAMED:
        return None
    own = declared.get("namespace", space)
    return full_name(declared.get("name"), own if isinstance(own, str) else space, "$")


def with_own_namespace(declared: dict[str, Any], space: str) -> dict[str, Any]:
    """Return a definition with its own namespace stated, if it inherited one from the enclosing definition."""
    has_own = not space or isinstance(declared.get("namespace"), str) or "." in str(declared.get("name"))
    return declared if has_own else declared | {"namespace": space}


def map_types(declared: Any, space: str, depth: int, visit: Visit) -> Any:
    """Return a declaration with `visit` applied to each type in it, in the specification's order of definition."""
    if depth > MAX_DEPTH:
        raise SchemaError("$", f"nested deeper than {MAX_DEPTH} levels")
    if isinstance(declared, list):
        return [visit(branch, space, depth + 1) for branch in declared]
    if not isinstance(declared, dict):
        return declared
    inner = (defined_name(declared, space) or "").rpartition(".")[0]
    if isinstance(declared.get("fields"), list) and declared.get("type") in ("record", "error"):
        return declared | {"fields": list(_map_field_types(declared["fields"], inner, depth, visit))}
    member = {"array": "items", "map": "values"}.get(str(declared.get("type")))
    if member in declared:
        return declared | {member: visit(declared[member], space, depth + 1)}
    return declared


def _map_field_types(fields: list[Any], space: str, depth: int, visit: Visit) -> Iterable[Any]:
    for one in fields:
        is_field = isinstance(one, dict) and "type" in one
        yield one | {"type": visit(one["type"], space, depth + 1)} if is_field else one


def full_name(name: Any, space: str, where: str) -> str:
    """Return the full name of a named type (Avro 1.8.2, "Names").

    >>> full_name("X", "org.foo", "$")
    'org.foo.X'
    """
    if not isinstance(name, str):
        raise SchemaError(where, "a name is not a string")
    full = name if "." in name or not space else f"{space}.{name}"
    for part in full.split("."):
        check_name(part, where)
    if full in PRIMITIVES:
        raise SchemaError(where, f"{full} is a primitive type and cannot be defined")
    return full


def check_name(name: Any, where: str) -> str:
    """Return a name as it is. Raises `SchemaError` unless it is one: letters, digits and _, as Avro Java takes them."""
    if not is_name(name):
        raise SchemaError(where, f"{shown(name)} is not a name: letters, digits and _, no digit first")
    return str(name)


def is_name(name: Any) -> bool:
    """Return whether a value is a name. As in Avro Java, letters and digits are those of all scripts up to U+FFFF.

    >>> is_name("größe"), is_name("a-b"), is_name("1a")
    (True, False, False)
    """
    if not isinstance(name, str) or not name or name[0].isdecimal():
        return False
    if name.isascii():
        return name.replace("_", "a").isalnum()
    return all(char == "_" or ((char.isalpha() or char.isdecimal()) and char <= "\uffff") for char in name)


MAX_LENGTH: Final = 8 << 20
_ORDERS: Final = frozenset({"ascending", "descending", "ignore"})
_SPECIFIED: Final = frozenset(
    {"type", "name", "namespace", "doc", "aliases", "fields", "symbols", "size", "default", "order"}
)


@dataclass(frozen=True)
class Schema:
    """An Avro schema.

    Attributes: `json` (str), the text as it was written, to hand to Spark or a registry;
    `root` (`Type`), the parsed type.
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


@within_stack(too_nested)
def parse_schema(text: str) -> Schema:
    """Return the schema that a JSON text declares.

    As in Avro Java, the text may have comments, and the last of two members of one name counts; `json` is
    then plain JSON. It also is where a type is used before it is defined: the definition is moved there.
    Raises `SchemaError` with the place in the schema and the rule that it breaks.

    >>> parse_schema('{"type": "map", "values": "long"}').canonical
    '{"type":"map","values":"long"}'
    """
    if len(text) > MAX_LENGTH:
        raise SchemaError("text", f"longer than {MAX_LENGTH} characters")
    declared, is_plain = read_json(text)
    try:
        root = _Parser().schema(declared)
    except _UndefinedError:
        declared, is_plain = define_at_first_use(declared, definitions(declared)), False
        root = _Parser().schema(declared)
    return Schema(text if is_plain else plain_json(declared), root)


_PLAIN: Final = {name: Primitive(name) for name in PRIMITIVES}


class _UndefinedError(SchemaError):
    """A name is used that is not defined before."""


class _Parser:
    """A parser that keeps the named types defined so far, in the specification's order: depth first, left to right."""

    def __init__(self) -> None:
        self._defined: dict[str, Type] = {}
        # How many levels there are below a name; a record has none while it is being parsed.
        self._levels: dict[str, int] = {}
        self._size = 0
        self._deepest = 0
        self._defaults: list[tuple[Field, str]] = []
        # Most fields are of a few types without anything of their own, which are made once.
        self._unions: dict[tuple[str, ...], Union] = {}

    def schema(self, declared: Any) -> Type:
        """Return a whole schema, its defaults checked once all records have their fields."""
        root = self.parse(declared, "", "$", 0)
        grades = Grades()
        for stated, where in self._defaults:
            check_default(stated.type, stated.default, where, grades)
        return root

    def parse(self, declared: Any, space: str, where: str, depth: int) -> Type:
        self._size += 1
        if self._size > MAX_TYPES:
            raise SchemaError(where, f"more than {MAX_TYPES} types")
        self._check_depth(depth, where)
        match declared:
            case str() if declared in PRIMITIVES:
                return _PLAIN[declared]
            case str():
                return self._reference(declared, space, where, depth)
            case list():
                return self._union(declared, space, where, depth)
            case {"type": "array"}:
                items = self.parse(_need(declared, "items", where), space, where + ".items", depth + 1)
                return Array(items, _others(declared, "items"))
            case {"type": "map"}:
                values = self.parse(_need(declared, "values", where), space, where + ".values", depth + 1)
                return Map(values, _others(declared, "values"))
            case {"type": "record" | "error" | "enum" | "fixed" as kind}:
                return self._named(kind, declared, space, where, depth)
            case {"type": str(kind)} if kind in PRIMITIVES:
                return Primitive(kind, _others(declared))
            case {"type": str(name)}:
                return self._reference(name, space, where, depth)
        raise SchemaError(where, f"expected a type, got {shown(json.dumps(declared))}")

    def _check_depth(self, depth: int, where: str) -> None:
        if depth > MAX_DEPTH:
            raise SchemaError(where, f"nested deeper than {MAX_DEPTH} levels")
        self._deepest = max(self._deepest, depth)

    def _reference(self, name: str, space: str, where: str, depth: int) -> Type:
        full = full_name(name, space, where)
        if full not in self._defined and name in self._defined:
            # As in Avro Java, a type without a namespace is known in every namespace.
            full = name
        if full not in self._defined:
            raise _UndefinedError(where, f"{shown(name)} is not defined before it is used")
        self._check_depth(depth + self._levels.get(full, 0), where)
        return self._defined[full]

    def _union(self, declared: list[Any], space: str, where: str, depth: int) -> Union:
        branches = tuple(self.parse(item, space, f"{where}[{i}]", depth + 1) for i, item in enumerate(declared))
        if any(isinstance(branch, Union) for branch in branches):
            raise SchemaError(where, "a union holds a union")
        names = tuple(map(branch_name, branches))
        if len(set(names)) != len(names):
            raise SchemaError(where, "a union holds two branches of one type")
        if any(_PLAIN.get(name) is not branch for name, branch in zip(names, branches, strict=True)):
            return Union(branches)
        return self._unions.setdefault(names, Union(branches))

    def _named(self, kind: str, declared: dict[str, Any], space: str, where: str, depth: int) -> Type:
        own = declared.get("namespace")
        full = full_name(_need(declared, "name", where), own if isinstance(own, str) else space, where)
        if full in self._defined:
            raise SchemaError(where, f"{full} is defined twice")
        space = full.rpartition(".")[0]
        shared = (full, _aliases(declared, full, where), _doc(declared), _attributes(declared))
        deepest, self._deepest = self._deepest, depth
        named: Type
        if kind == "enum":
            named = self._defined[full] = Enum(*shared, *_symbols(declared, where))
        elif kind == "fixed":
            named = self._defined[full] = Fixed(*shared, size=_size(declared, where))
        else:
            named = self._defined[full] = Record(*shared, fields=())
            # A field may be of the record itself, which therefore comes first.
            object.__setattr__(named, "fields", self._fields(declared, space, where, depth))
        self._levels[full] = self._deepest - depth
        self._deepest = max(self._deepest, deepest)
        return named

    def _fields(self, declared: dict[str, Any], space: str, where: str, depth: int) -> tuple[Field, ...]:
        listed = _need(declared, "fields", where)
        if not isinstance(listed, list):
            raise SchemaError(where, "fields is not an array")
        fields = tuple(self._field(item, space, f"{where}.fields[{i}]", depth) for i, item in enumerate(listed))
        if len({field.name for field in fields}) != len(fields):
            raise SchemaError(where, "two fields share a name")
        return fields

    def _field(self, declared: Any, space: str, where: str, depth: int) -> Field:
        if not isinstance(declared, dict):
            raise SchemaError(where, "a field is not an object")
        parsed = self.parse(_need(declared, "type", where), space, where, depth + 1)
        name = check_name(_need(declared, "name", where), where)
        order = declared.get("order", "ascending")
        if not isinstance(order, str) or order.lower() not in _ORDERS:
            raise SchemaError(where, f"order is not one of {', '.join(sorted(_ORDERS))}")
        made = Field(
            name=name,
            type=parsed,
            default=parse_default(parsed, declared.get("default", ABSENT)),
            aliases=tuple(alias for alias in _strings(declared, "aliases", where) if is_name(alias) and alias != name),
            doc=_doc(declared),
            attributes=_attributes(declared),
        )
        if made.default is not ABSENT:
            self._defaults.append((made, where))
        return made


def _others(declared: dict[str, Any], own: str = "type") -> MappingProxyType[str, Any]:
    """Return what a declaration states beside its type and its member `own`."""
    return MappingProxyType({name: value for name, value in declared.items() if name not in ("type", own)})


def _need(declared: dict[str, Any], member: str, where: str) -> Any:
    if member not in declared:
        raise SchemaError(where, f"{member} is missing")
    return declared[member]


def _doc(declared: dict[str, Any]) -> str:
    doc = declared.get("doc")
    return doc if isinstance(doc, str) else ""


def _attributes(declared: dict[str, Any]) -> MappingProxyType[str, Any]:
    return MappingProxyType({key: value for key, value in declared.items() if key not in _SPECIFIED})


def _aliases(declared: dict[str, Any], full: str, where: str) -> tuple[str, ...]:
    """Return the full names of a type's aliases; one that starts with a dot has no namespace."""
    space = full.rpartition(".")[0]
    aliases = []
    for alias in _strings(declared, "aliases", where):
        check_name(alias.rpartition(".")[2], where)
        named = alias[1:] if alias.startswith(".") and alias.count(".") == 1 else alias
        whole = named if "." in alias or not space else f"{space}.{named}"
        if whole != full and all(map(is_name, whole.split("."))):
            aliases.append(whole)
    return tuple(aliases)


def _strings(declared: dict[str, Any], member: str, where: str) -> list[str]:
    listed = declared.get(member, [])
    if not isinstance(listed, list) or not all(isinstance(item, str) for item in listed):
        raise SchemaError(where, f"{member} is not an array of strings")
    return listed


def _symbols(declared: dict[str, Any], where: str) -> tuple[tuple[str, ...], str | None]:
    """Return an enum's symbols and its default, which Avro Java passes over if it is no text."""
    _need(declared, "symbols", where)
    symbols = tuple(check_name(symbol, where) for symbol in _strings(declared, "symbols", where))
    if len(set(symbols)) != len(symbols):
        raise SchemaError(where, "symbols are given twice")
    default = declared.get("default")
    if isinstance(default, str) and default not in symbols:
        raise SchemaError(where, f"the default {shown(default)} is no symbol")
    return symbols, default if isinstance(default, str) else None


def _size(declared: dict[str, Any], where: str) -> int:
    size = _need(declared, "size", where)
    if type(size) is not int or not 0 <= size <= MAX_LENGTH:
        raise SchemaError(where, f"size is not an integer from 0 to {MAX_LENGTH}")
    return size

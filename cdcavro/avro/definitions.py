"""Definitions of named types within a schema's JSON: reading the text, names, and moving definitions.

A schema defines a record, enum or fixed once, where it is first used, and refers to it by name from
there on. A field that is dropped or moved takes the definition along, and a registry stores a shared
type on its own; the functions here put the definitions back where they belong.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from cdcavro.avro.types import MAX_DEPTH, MAX_TYPES, PRIMITIVES
from cdcavro.errors import SchemaError, shown

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
    for field in fields:
        is_field = isinstance(field, dict) and "type" in field
        yield field | {"type": visit(field["type"], space, depth + 1)} if is_field else field


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

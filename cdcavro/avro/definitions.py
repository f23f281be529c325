"""Named types within a schema's JSON: finding their definitions, and putting them where they are first used.

A schema defines a record, enum or fixed once, where it is first used, and refers to it by name from
there on. A field that is dropped or moved takes the definition along, and a registry stores a shared
type on its own; the functions here put the definitions back where they belong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cdcavro.avro.schema import MAX_DEPTH, MAX_TYPES, full_name
from cdcavro.avro.types import PRIMITIVES
from cdcavro.errors import SchemaError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    Visit = Callable[[Any, str, int], Any]

Definitions = dict[str, dict[str, Any]]
# A tuple, since a registry's text may have anything for a type, and a set cannot be asked for a list or an object.
_NAMED: Final = ("record", "enum", "fixed")


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
            defined.setdefault(full, standing_alone(declared, space))
        return with_types(declared, space, depth, visit)

    visit(declared, "", 0)
    return defined


def settled(declared: Any, known: Mapping[str, dict[str, Any]]) -> Any:
    """Return a schema's JSON with each known type defined where it is first used and referred to by name after that."""
    spaced = {full: of | {"namespace": full.rpartition(".")[0]} if "." in full else of for full, of in known.items()}
    return _Placer(spaced, is_settled=True).visit(declared, "", 0)


def placed(declared: Any, known: Mapping[str, dict[str, Any]]) -> Any:
    """Return a schema's JSON in which known types that it refers to without a definition are defined at first use.

    A type that it defines twice stays defined twice. Raises `SchemaError` beyond the bounds of a schema.
    """
    return _Placer(known, is_settled=False).visit(declared, "", 0)


class _Placer:
    """A walk through a schema that tracks which types are defined so far and whether it is inside an inserted one."""

    def __init__(self, known: Mapping[str, dict[str, Any]], *, is_settled: bool) -> None:
        self._known = known
        self._defined: set[str] = set()
        self._within = int(is_settled)
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
        return with_types(declared, space, depth, self.visit)

    def _reference(self, name: str, space: str, depth: int) -> Any:
        full = full_name(name, space, "$")
        if full in self._defined or full not in self._known:
            return name
        self._within += 1
        definition = self.visit(self._known[full], "", depth)
        self._within -= 1
        return definition


def pin(record: dict[str, Any]) -> None:
    """Write out the full names of all types in a record's fields, in place, so that its own namespace may change."""

    def visit(declared: Any, space: str, depth: int) -> Any:
        if isinstance(declared, str):
            return declared if declared in PRIMITIVES else full_name(declared, space, "$")
        full = defined_name(declared, space)
        spaced = declared if full is None else declared | {"namespace": full.rpartition(".")[0]}
        return with_types(spaced, space, depth, visit)

    record.update(with_types(record, "", 0, visit))


def defined_name(declared: Any, space: str) -> str | None:
    """Return the full name of the named type that a declaration defines; None if it defines none."""
    if not isinstance(declared, dict) or declared.get("type") not in _NAMED:
        return None
    own = declared.get("namespace", space)
    return full_name(declared.get("name"), own if isinstance(own, str) else space, "$")


def standing_alone(declared: dict[str, Any], space: str) -> dict[str, Any]:
    """Return a definition with its own namespace stated, if it inherited one from the enclosing definition."""
    has_own = not space or "namespace" in declared or "." in str(declared.get("name"))
    return declared if has_own else declared | {"namespace": space}


def with_types(declared: Any, space: str, depth: int, visit: Visit) -> Any:
    """Return a declaration with `visit` applied to each type in it, in the specification's order of definition."""
    if depth > MAX_DEPTH:
        raise SchemaError("$", f"nested deeper than {MAX_DEPTH} levels")
    if isinstance(declared, list):
        return [visit(branch, space, depth + 1) for branch in declared]
    if not isinstance(declared, dict):
        return declared
    inner = (defined_name(declared, space) or "").rpartition(".")[0]
    if isinstance(declared.get("fields"), list) and declared.get("type") == "record":
        return declared | {"fields": list(_with_types_of(declared["fields"], inner, depth, visit))}
    member = {"array": "items", "map": "values"}.get(str(declared.get("type")))
    if member in declared:
        return declared | {member: visit(declared[member], space, depth + 1)}
    return declared


def _with_types_of(fields: list[Any], space: str, depth: int, visit: Visit) -> Iterable[Any]:
    for field in fields:
        is_field = isinstance(field, dict) and "type" in field
        yield field | {"type": visit(field["type"], space, depth + 1)} if is_field else field

"""Named types that several schemas share: cut out of a schema, and put back in.

A registry holds a shared type once, and the schemas that use it name it and refer to its version.
Everywhere else in cdcavro a schema is whole.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from cdcavro.avro.schema import MAX_DEPTH, MAX_LENGTH, MAX_TYPES, full_name
from cdcavro.avro.types import PRIMITIVES
from cdcavro.errors import SchemaError, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    Visit = Callable[[Any, str, int], Any]

_NAMED: Final = ("record", "enum", "fixed")


@dataclass(slots=True)
class Part:
    """A type that was cut out, or what was left of the schema.

    Attributes: `name` (str), its full name, "" for what was left; `text` (str), its JSON; `uses`, the
    names of the parts that it refers to, in the order in which they must be known.
    """

    name: str
    text: str = ""
    uses: dict[str, None] = field(default_factory=dict)


def split(text: str, names: Collection[str]) -> list[Part]:
    r"""Cut named types out of a schema; each part comes behind those that it uses, what is left last.

    `text` is that of a valid schema, `names` are full names. Raises `SchemaError`: there is no such
    type, or a part uses a type that is in none.

    >>> parts = split('{"type": "record", "name": "a.R", "fields": [{"name": "f", "type": {"type": "fixed", "name": "F", "size": 1}}]}', ["a.F"])
    >>> print(*((one.name, one.text) for one in parts), sep="\n")
    ('a.F', '{"type": "fixed", "name": "F", "size": 1, "namespace": "a"}')
    ('', '{"type": "record", "name": "a.R", "fields": [{"name": "f", "type": "a.F"}]}')
    """
    if not names:
        return [Part("", text)]
    return _Splitter(frozenset(names)).split(json.loads(text))


class _Splitter:
    """Walks a schema in the order of the specification. Holds the part in which each type is defined."""

    def __init__(self, names: frozenset[str]) -> None:
        self._names = names
        self._home: dict[str, str] = {}
        self._parts: list[Part] = []
        self._open: list[Part] = [Part("")]

    def split(self, declared: Any) -> list[Part]:
        left = self._open[0]
        left.text = json.dumps(self._visit(declared, "", 0))
        missing = self._names - {one.name for one in self._parts}
        if missing:
            raise SchemaError("$", f"no type within the schema is called {shown(min(missing))}: it cannot be shared")
        return [*self._parts, left]

    def _visit(self, declared: Any, space: str, depth: int) -> Any:
        if isinstance(declared, str):
            return declared if declared in PRIMITIVES else self._name(full_name(declared, space, "$"), space)
        full = _full(declared, space)
        if full in self._names and depth:
            return self._cut(full, declared, space, depth)
        if full is not None:
            self._home[full] = self._open[-1].name
        return _with_types(declared, space, depth, self._visit)

    def _cut(self, full: str, declared: dict[str, Any], space: str, depth: int) -> str:
        part = Part(full)
        self._open.append(part)
        self._home[full] = full
        part.text = json.dumps(_with_types(_standing_alone(declared, space), space, depth, self._visit))
        self._open.pop()
        self._parts.append(part)
        return self._name(full, space)

    def _name(self, full: str, space: str) -> str:
        own, home = self._open[-1], self._home[full]
        if home == own.name:
            return full
        if not home:
            reason = f"{shown(own.name)} uses {shown(full)}, which is defined outside: share that too"
            raise SchemaError("$", reason)
        if space and "." not in full:
            raise SchemaError("$", f"{shown(full)} has no namespace and cannot be named from within {shown(space)}")
        own.uses[home] = None
        return full


def definitions(text: str) -> dict[str, Any]:
    """Find the named types that a schema defines: the JSON of each, fit to stand alone, by full name."""
    found: dict[str, Any] = {}

    def visit(declared: Any, space: str, depth: int) -> Any:
        full = _full(declared, space)
        if full is not None:
            found[full] = _standing_alone(declared, space)
        return _with_types(declared, space, depth, visit)

    visit(json.loads(text), "", 0)
    return found


def join(text: str, known: Mapping[str, Any]) -> str:
    """Put the definitions of named types where they are used first. Raises `SchemaError` beyond the bounds of a schema.

    >>> join('{"type": "array", "items": "a.F"}', {"a.F": {"type": "fixed", "name": "a.F", "size": 1}})
    '{"type": "array", "items": {"type": "fixed", "name": "a.F", "size": 1}}'
    """
    made = json.dumps(_Joiner(known).visit(json.loads(text), "", 0))
    if len(made) > MAX_LENGTH:
        raise SchemaError("text", f"longer than {MAX_LENGTH} characters")
    return made


class _Joiner:
    """Holds the types that are defined so far, and whether it is within one that was put in."""

    def __init__(self, known: Mapping[str, Any]) -> None:
        self._known = known
        self._defined: set[str] = set()
        self._within = 0
        self._count = 0

    def visit(self, declared: Any, space: str, depth: int) -> Any:
        self._count += 1
        if self._count > MAX_TYPES:
            raise SchemaError("$", f"more than {MAX_TYPES} types")
        if isinstance(declared, str):
            return declared if declared in PRIMITIVES else self._reference(declared, space, depth)
        full = _full(declared, space)
        if full is not None:
            if self._within and full in self._defined:
                return full
            self._defined.add(full)
        return _with_types(declared, space, depth, self.visit)

    def _reference(self, name: str, space: str, depth: int) -> Any:
        full = full_name(name, space, "$")
        if full in self._defined or full not in self._known:
            return name
        self._within += 1
        put = self.visit(self._known[full], "", depth)
        self._within -= 1
        return put


def _full(declared: Any, space: str) -> str | None:
    """Give the full name of the type that is defined here; None if none is."""
    if not isinstance(declared, dict) or declared.get("type") not in _NAMED:
        return None
    own = declared.get("namespace", space)
    return full_name(declared.get("name"), own if isinstance(own, str) else space, "$")


def _standing_alone(declared: dict[str, Any], space: str) -> dict[str, Any]:
    has_own = not space or "namespace" in declared or "." in str(declared.get("name"))
    return declared if has_own else declared | {"namespace": space}


def _with_types(declared: Any, space: str, depth: int, visit: Visit) -> Any:
    """Give a declaration with the types in it visited, in the order of the specification."""
    if depth > MAX_DEPTH:
        raise SchemaError("$", f"nested deeper than {MAX_DEPTH} levels")
    if isinstance(declared, list):
        return [visit(one, space, depth + 1) for one in declared]
    if not isinstance(declared, dict):
        return declared
    inner = (_full(declared, space) or "").rpartition(".")[0]
    if isinstance(declared.get("fields"), list) and declared.get("type") == "record":
        return declared | {"fields": list(_fields(declared["fields"], inner, depth, visit))}
    holds = {"array": "items", "map": "values"}.get(str(declared.get("type")))
    if holds in declared:
        return declared | {holds: visit(declared[holds], space, depth + 1)}
    return declared


def _fields(fields: list[Any], space: str, depth: int, visit: Visit) -> Iterable[Any]:
    for one in fields:
        is_field = isinstance(one, dict) and "type" in one
        yield one | {"type": visit(one["type"], space, depth + 1)} if is_field else one

"""What a `.pxd` declares, held against the Python source that is compiled with it.

Cython itself refuses a function that is declared and not there. A type for a local variable or an attribute that is
not there it passes over: after a renaming the code is right and slow, and nothing says so.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_CLASS = re.compile(r"cdef class (\w+)")
_FUNCTION = re.compile(r"(?:cdef|cpdef) [^(=]*?(\w+)\((.*)\)[^)]*")
_ATTRIBUTE = re.compile(r"cdef .*?(\w+)")
_LOCALS = re.compile(r"@cython\.locals\((.*)\)")
_PASSED = re.compile(r"cimport .*|from \S+ cimport .*|@cython\.final|pass")


@dataclass(frozen=True)
class Function:
    """A function that is declared: `owner` is its class, or empty."""

    owner: str
    name: str
    parameters: tuple[str, ...]
    locals: frozenset[str]


@dataclass
class Declared:
    """What a `.pxd` declares. `attributes` are pairs of a class and a name; those of the module have no class."""

    classes: list[str] = field(default_factory=list)
    functions: list[Function] = field(default_factory=list)
    attributes: list[tuple[str, str]] = field(default_factory=list)


def _lines(text: str) -> Iterator[str]:
    """Go through the declarations, each on one line, without comments and empty lines."""
    whole = ""
    for line in text.splitlines():
        whole += (" " + line.strip() if whole else line).partition("#")[0].rstrip()
        if whole.count("(") == whole.count(")"):
            if whole:
                yield whole
            whole = ""
    if whole:
        raise ValueError(f"a bracket that is not closed: {whole}")


def declared(text: str) -> Declared:
    """Read a `.pxd`. Raises `ValueError` for a line that is none of what our files have."""
    made, owner, names = Declared(), "", frozenset[str]()
    for line in _lines(text):
        inside, said = line.startswith(" "), line.strip()
        owner = owner if inside else ""
        if found := _CLASS.match(said):
            owner = found[1]
            made.classes.append(owner)
        elif found := _LOCALS.fullmatch(said):
            names = frozenset(re.findall(r"(\w+)\s*=", found[1]))
        elif found := _FUNCTION.fullmatch(said):
            made.functions.append(Function(owner, found[1], _parameters(found[2]), names))
            names = frozenset()
        elif _PASSED.fullmatch(said):
            continue
        elif found := _ATTRIBUTE.fullmatch(said):
            made.attributes.append((owner, found[1]))
        else:
            raise ValueError(f"not a declaration that is known: {line}")
    return made


def _parameters(text: str) -> tuple[str, ...]:
    """The names of parameters, each of which is the last word before a default."""
    return tuple(re.findall(r"\w+", part.partition("=")[0])[-1] for part in text.split(",") if part.strip())


def missing(text: str, source: str) -> list[str]:
    """What a `.pxd` declares and a Python source does not have, a phrase each."""
    made, tree = declared(text), ast.parse(source)
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    found = [f"class {name}" for name in made.classes if name not in classes]
    for owner, name in made.attributes:
        there = _attributes(classes[owner]) if owner in classes else _names(tree.body) | _imported(tree)
        if owner in {"", *classes} and name not in there:
            found.append(f"attribute {owner}.{name}" if owner else f"name {name}")
    for function in made.functions:
        body = classes[function.owner].body if function.owner in classes else [] if function.owner else tree.body
        found += _missing_of(function, body)
    return found


def _missing_of(function: Function, body: list[ast.stmt]) -> Iterator[str]:
    said = f"{function.owner}.{function.name}".lstrip(".")
    node = next((one for one in body if isinstance(one, ast.FunctionDef) and one.name == function.name), None)
    if node is None:
        yield f"function {said}"
        return
    parameters = tuple(one.arg for one in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs))
    if parameters != function.parameters:
        yield f"parameters of {said}: {', '.join(function.parameters)}"
    yield from (f"local {name} of {said}" for name in sorted(function.locals - _names(node.body) - {*parameters}))


def _names(body: list[ast.stmt]) -> set[str]:
    """The names that statements give a value, in functions inside them too."""
    nodes = (node for statement in body for node in ast.walk(statement))
    return {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def _imported(tree: ast.Module) -> set[str]:
    """The names that a module imports."""
    nodes = (node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom)))
    return {alias.asname or alias.name for node in nodes for alias in node.names}


def _attributes(node: ast.ClassDef) -> set[str]:
    """The names that a class gives its objects, or itself."""
    stored = (one for one in ast.walk(node) if isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Store))
    slots = (one.value for one in ast.walk(node) if isinstance(one, ast.Constant) and isinstance(one.value, str))
    return {one.attr for one in stored} | set(slots) | _names(node.body)

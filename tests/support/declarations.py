"""Compares what a `.pxd` declares with the Python source that is compiled with it.

Cython refuses a declared function that does not exist, but ignores the type of a local variable or an attribute that
does not exist: after a renaming, the code is correct but slow, and nothing reports it.
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
    """A declared function; `owner` is the name of its class, or empty."""

    owner: str
    name: str
    parameters: tuple[str, ...]
    locals: frozenset[str]


@dataclass
class Declared:
    """The declarations of a `.pxd`; `attributes` are pairs of class and name, with an empty class for the module."""

    classes: list[str] = field(default_factory=list)
    functions: list[Function] = field(default_factory=list)
    attributes: list[tuple[str, str]] = field(default_factory=list)


def _lines(text: str) -> Iterator[str]:
    """Yield the declarations, each joined into one line, without comments and empty lines."""
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
    """Return the declarations of a `.pxd`. Raises `ValueError` for a line of a kind that our files do not have."""
    declarations, owner, names = Declared(), "", frozenset[str]()
    for line in _lines(text):
        is_inside, declaration = line.startswith(" "), line.strip()
        owner = owner if is_inside else ""
        if match := _CLASS.match(declaration):
            owner = match[1]
            declarations.classes.append(owner)
        elif match := _LOCALS.fullmatch(declaration):
            names = frozenset(re.findall(r"(\w+)\s*=", match[1]))
        elif match := _FUNCTION.fullmatch(declaration):
            declarations.functions.append(Function(owner, match[1], _parameters(match[2]), names))
            names = frozenset()
        elif _PASSED.fullmatch(declaration):
            continue
        elif match := _ATTRIBUTE.fullmatch(declaration):
            declarations.attributes.append((owner, match[1]))
        else:
            raise ValueError(f"not a declaration that is known: {line}")
    return declarations


def _parameters(text: str) -> tuple[str, ...]:
    """Return the names of parameters, each of which is the last word before a default."""
    return tuple(re.findall(r"\w+", part.partition("=")[0])[-1] for part in text.split(",") if part.strip())


def missing(text: str, source: str) -> list[str]:
    """Return a phrase for everything that a `.pxd` declares and the Python source does not have."""
    declarations, tree = declared(text), ast.parse(source)
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    phrases = [f"class {name}" for name in declarations.classes if name not in classes]
    for owner, name in declarations.attributes:
        existing = _attributes(classes[owner]) if owner in classes else _names(tree.body) | _imported(tree)
        if owner in {"", *classes} and name not in existing:
            phrases.append(f"attribute {owner}.{name}" if owner else f"name {name}")
    for function in declarations.functions:
        body = classes[function.owner].body if function.owner in classes else [] if function.owner else tree.body
        phrases += _missing_of(function, body)
    return phrases


def _missing_of(function: Function, body: list[ast.stmt]) -> Iterator[str]:
    name = f"{function.owner}.{function.name}".lstrip(".")
    functions = (statement for statement in body if isinstance(statement, ast.FunctionDef))
    node = next((statement for statement in functions if statement.name == function.name), None)
    if node is None:
        yield f"function {name}"
        return
    parameters = tuple(parameter.arg for parameter in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs))
    if parameters != function.parameters:
        yield f"parameters of {name}: {', '.join(function.parameters)}"
    yield from (f"local {local} of {name}" for local in sorted(function.locals - _names(node.body) - {*parameters}))


def _names(body: list[ast.stmt]) -> set[str]:
    """Return the names that statements assign, including those in nested functions."""
    nodes = (node for statement in body for node in ast.walk(statement))
    return {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def _imported(tree: ast.Module) -> set[str]:
    """Return the names that a module imports."""
    nodes = (node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom)))
    return {alias.asname or alias.name for node in nodes for alias in node.names}


def _attributes(node: ast.ClassDef) -> set[str]:
    """Return the names of attributes of a class and its instances."""
    attributes = (part for part in ast.walk(node) if isinstance(part, ast.Attribute))
    constants = (part.value for part in ast.walk(node) if isinstance(part, ast.Constant))
    slots = {value for value in constants if isinstance(value, str)}
    return {part.attr for part in attributes if isinstance(part.ctx, ast.Store)} | slots | _names(node.body)

"""The package's modules as syntax trees: what each exports, imports and defines, whether it can be imported here or not."""

from __future__ import annotations

import ast
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final

import cdcavro

if TYPE_CHECKING:
    from collections.abc import Iterator

_PACKAGE: Final = Path(cdcavro.__file__).parent
Definition = ast.ClassDef | ast.FunctionDef | ast.Assign | ast.AnnAssign


def modules() -> list[str]:
    """Return the names of all modules of the package."""
    files = (path.relative_to(_PACKAGE.parent).with_suffix("") for path in sorted(_PACKAGE.rglob("*.py")))
    return [".".join(file.parts).removesuffix(".__init__") for file in files]


def text(module: str) -> str:
    """Return a module's source."""
    file = _PACKAGE.parent / module.replace(".", "/")
    source = file / "__init__.py" if file.is_dir() else file.with_suffix(".py")
    return source.read_text(encoding="utf-8")


@cache
def tree(module: str) -> ast.Module:
    """Return a module's source, parsed."""
    return ast.parse(text(module))


def exported(module: str) -> list[str]:
    """Return what a module says with `__all__` is public in it; nothing if it does not say."""
    if "__all__" not in text(module):
        return []
    assigned = (node for node in tree(module).body if isinstance(node, ast.Assign) and "__all__" in _targets(node))
    return next((list(ast.literal_eval(node.value)) for node in assigned), [])


def home(module: str, name: str) -> str:
    """Return the module that defines a name which another one has; an empty text for a name from outside the package."""
    while name not in defined(module):
        imported = _imports(module).get(name)
        if imported is None or not imported[0].startswith("cdcavro"):
            return ""
        module, name = imported
    return module


@cache
def defined(module: str) -> dict[str, Definition]:
    """Return the definitions at the outermost level of a module, by their names."""
    return {
        name: node
        for node in ast.walk(tree(module))
        if isinstance(node, Definition) and (node in tree(module).body or isinstance(node, ast.Assign))
        for name in _targets(node)
    }


def annotation_names(definition: Definition) -> Iterator[str]:
    """Return the names in the public annotations of a definition."""
    match definition:
        case ast.ClassDef():
            for member in definition.body:
                if isinstance(member, Definition) and not any(name.startswith("_") for name in _targets(member)):
                    yield from annotation_names(member)
        case ast.FunctionDef():
            every = definition.args
            arguments = [*every.posonlyargs, *every.args, *every.kwonlyargs]
            for annotation in (*(argument.annotation for argument in arguments), definition.returns):
                yield from _names(annotation)
        case ast.AnnAssign():
            yield from _names(definition.annotation)
        case ast.Assign():
            yield from _names(definition.value)


def properties(module: str, name: str) -> list[str]:
    """Return the public properties of a class."""
    definition = defined(module)[name]
    members = definition.body if isinstance(definition, ast.ClassDef) else []
    return [
        member.name
        for member in members
        if isinstance(member, ast.FunctionDef)
        and not member.name.startswith("_")
        and any(isinstance(decorator, ast.Name) and "property" in decorator.id for decorator in member.decorator_list)
    ]


def assigned(module: str, name: str) -> str:
    """Return the source of what a name is assigned."""
    definition = defined(module)[name]
    if isinstance(definition, ast.Assign | ast.AnnAssign) and definition.value is not None:
        return ast.unparse(definition.value)
    raise LookupError(f"{module}.{name} is assigned nothing")


def text_behind(module: str, name: str) -> str:
    """Return the text that stands behind an assignment and describes it; an empty one if there is none."""
    wanted = defined(module)[name]
    after = next((after for node, after in pairwise(tree(module).body) if node is wanted), None)
    if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
        return str(after.value.value)
    return ""


@cache
def _imports(module: str) -> dict[str, tuple[str, str]]:
    return {
        alias.asname or alias.name: (node.module or "", alias.name)
        for node in ast.walk(tree(module))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def _targets(node: Definition) -> list[str]:
    match node:
        case ast.ClassDef() | ast.FunctionDef():
            return [node.name]
        case ast.Assign():
            return [target.id for target in node.targets if isinstance(target, ast.Name)]
        case ast.AnnAssign():
            return [node.target.id] if isinstance(node.target, ast.Name) else []
    raise TypeError(f"{type(node).__name__} defines nothing")


def _names(expression: ast.expr | None) -> Iterator[str]:
    for node in ast.walk(expression) if expression is not None else ():
        if isinstance(node, ast.Name):
            yield node.id

"""The Python reference: a page for each module that has public names, made from their docstrings."""

from __future__ import annotations

import ast
import importlib
import inspect
from functools import cache
from typing import Final

from reference import markdown, sources
from reference.docstrings import to_rst

_HIDDEN: Final = "cdcavro.cli"
_SECTIONS: Final = {"data": "Constants", "function": "Functions", "class": "Classes", "exception": "Errors"}
_ERRORS: Final = "cdcavro.errors"
# What signatures have that nobody outside can do anything with.
_INTERNAL: Final = frozenset({"Buffer", "PayloadDecoder", "T"})
_MENTIONED: Final = (
    "What is described above takes or returns these; they need not be imported, and are not exported where they stand."
)


@cache
def public_modules() -> tuple[str, ...]:
    """Return the names of the modules that say with `__all__` what is public in them."""
    return tuple(name for name in sources.modules() if not name.startswith(_HIDDEN) and sources.exported(name))


@cache
def described() -> dict[str, str]:
    """Return where each public name is described: under its first name, from the outermost module inwards."""
    first: dict[tuple[str, str], str] = {}
    return {
        f"{module}.{name}": first.setdefault((_home(module, name), name), f"{module}.{name}")
        for module in public_modules()
        for name in sources.exported(module)
    }


@cache
def mentioned() -> dict[str, str]:
    """Return the types that signatures of public names have and that are not exported, with the page they stand on."""
    known = {f"{_home(*_parted(name))}.{_parted(name)[1]}" for name in described()}
    waiting = [(_parted(name)[0], name) for name in dict.fromkeys(described().values())]
    pages: dict[str, str] = {}
    while waiting:
        page, name = waiting.pop(0)
        home, last = _home(*_parted(name)), _parted(name)[1]
        for used in sources.annotation_names(sources.defined(home)[last]) if home else ():
            full = f"{sources.home(home, used)}.{used}"
            if full.startswith(".") or full in known or used in _INTERNAL or not used[0].isupper():
                continue
            known.add(full)
            pages[full] = page
            if isinstance(sources.defined(_parted(full)[0])[used], ast.Assign):  # an alias is its parts
                waiting.append((page, full))
    return pages


def _parted(full_name: str) -> tuple[str, str]:
    module, _, name = full_name.rpartition(".")
    return module, name


def module_page(module: str) -> str:
    """Return the page of a module: its docstring, what is described elsewhere, then each name by kind."""
    names = {f"{module}.{name}": described()[f"{module}.{name}"] for name in sources.exported(module)}
    elsewhere = ", ".join(f"`{home}`" for name, home in names.items() if name != home)
    opened = [f".. py:module:: {module}", "", *to_rst((ast.get_docstring(sources.tree(module)) or "").splitlines())]
    parts = [
        markdown.block("{eval-rst}", "\n".join(opened)),
        f"Described elsewhere, and the same here: {elsewhere}." if elsewhere else "",
    ]
    own = [name for name, home in names.items() if name == home]
    for kind, title in _SECTIONS.items():
        entries = [_entry(name, kind) for name in own if kind_of(name) == kind]
        if entries:
            parts += [f"## {title}", _error_tree() if kind == "exception" else "", *entries]
    others = [name for name, page in mentioned().items() if page == module]
    if others:
        parts += [
            "## Types in signatures",
            _MENTIONED,
            *(_entry(name, kind_of(name), sources.properties(*_parted(name))) for name in others),
        ]
    return markdown.page(*parts)


def kind_of(full_name: str) -> str:
    """Return what a public name is, in the words of Sphinx's directives."""
    module, name = _parted(full_name)
    value = getattr(importlib.import_module(module), name, ())
    if inspect.isclass(value):
        return "exception" if issubclass(value, BaseException) else "class"
    return "function" if inspect.isroutine(value) else "data"


def _home(module: str, name: str) -> str:
    return sources.home(module, name)


def _error_tree() -> str:
    """Return the tree that the docstring of the errors draws, and the example below it."""
    doc = ast.get_docstring(sources.tree(_ERRORS)) or ""
    first, drawn, example = doc.split("\n\n", 2)
    return markdown.page(
        first, markdown.block("text", drawn), markdown.block("python", inspect.cleandoc("\n" + example))
    )


def _entry(name: str, kind: str, members: list[str] | None = None) -> str:
    """Return the directive for a name, with all members of a class or with some."""
    if kind == "data":
        return _data(name)
    lines = [f".. auto{kind}:: {name}"]
    if kind != "function" and members != []:
        lines += [f"   :members: {', '.join(members or [])}".rstrip()]
    if kind == "exception":
        lines += ["   :show-inheritance:"]
    return markdown.block("{eval-rst}", "\n".join(lines))


def _data(full_name: str) -> str:
    """Return a constant's text and values, or an alias of a type."""
    module, name = _parted(full_name)
    home = _home(module, name)
    said = to_rst(sources.text_behind(home, name).splitlines())
    value = getattr(importlib.import_module(module), name, None)  # some aliases are for type checkers only
    if isinstance(value, tuple | frozenset):
        lines = [f".. py:data:: {name}", f"   :module: {module}", "", *_indented(said), ""]
        lines.append(f"   Its values: {', '.join(f'``{item}``' for item in value)}.")
    else:
        lines = [f".. py:type:: {name}", f"   :module: {module}", f"   :canonical: {sources.assigned(home, name)}"]
        lines += ["", *_indented(said)]
    return markdown.block("{eval-rst}", "\n".join(lines))


def _indented(lines: list[str]) -> list[str]:
    return [f"   {line}" if line else "" for line in lines]

"""The package's folders and modules as they are: which stands on which, by what they import, and what each module is."""

from __future__ import annotations

import re
from functools import cache
from html import escape
from typing import Final

from reference import markdown, sources

_ROOT: Final = "cdcavro"
# The one module beside the folders that is drawn as one.
_ERRORS: Final = "errors"
# Texts are enough here and take no time, where syntax trees of all modules take seconds; a test holds them against those.
_DOCSTRING: Final = re.compile(r'\A[rR]?"""(.*?)(?:\n\n|""")', re.DOTALL)
_QUOTED: Final = re.compile(r'"""(?:.*?)"""', re.DOTALL)
_IMPORT: Final = re.compile(
    rf"^ *(?:from {_ROOT}[.]([\w.]+) import|import {_ROOT}[.]([\w.]+)|from {_ROOT} import (\([^)]*\)|.*))", re.MULTILINE
)
# Where `python -m cdcavro` belongs.
_TOP: Final = "cli"
# What a folder is part of, as the page says it.
_PARTS: Final = {
    "ground": ("errors", "exact", "avro", "engine"),
    "layer 1": ("wire",),
    "layer 2": ("change", "formats", "transcoding"),
    "layer 3": ("table",),
    "tools": ("arrow", "cli", "files", "lake", "records", "registry", "spark", "sync"),
}


@cache
def _modules() -> tuple[str, ...]:
    return tuple(sources.modules())


@cache
def folders() -> dict[str, list[str]]:
    """Return the modules of each folder of the package, by their full names; a folder within one has its own."""
    found: dict[str, list[str]] = {}
    for module in _modules():
        if not _is_package(module):
            found.setdefault(_folder(module), []).append(module)
    return found


@cache
def levels() -> list[list[str]]:
    """Return the outermost folders in levels, from the ground up: each stands above all that it imports."""
    needed = _imports()
    heights: dict[str, int] = {}
    while len(heights) < len(needed):
        free = {folder for folder, others in needed.items() if folder not in heights and others <= heights.keys()}
        if not free:
            raise ValueError(f"imports go round in a circle between {', '.join(sorted(needed.keys() - heights))}")
        heights |= {folder: 1 + max((heights[other] for other in needed[folder]), default=-1) for folder in free}
    return [
        sorted(folder for folder in heights if heights[folder] == level) for level in range(max(heights.values()) + 1)
    ]


def house_picture(_: str = "") -> str:
    """Return the drawing of the outermost folders, the highest level first, each with what it is and how many modules it has."""
    rows = [f"<li>{''.join(map(_box, level))}</li>" for level in reversed(levels())]
    return markdown.block("{raw} html", f'<ol class="house">\n{chr(10).join(rows)}\n</ol>')


def module_list(_: str = "") -> str:
    """Return all modules by folder, from the ground up, each with the first sentence of its docstring."""
    order = [folder for level in levels() for folder in level]
    listed = sorted(folders(), key=lambda folder: (order.index(_outermost(folder)), folder))
    return markdown.block("{raw} html", "\n".join(map(_details, listed)))


def first_sentence(module: str) -> str:
    """Return the first sentence of a module's docstring."""
    found = _DOCSTRING.match(sources.text(module))
    return re.split(r"(?<=[.])\s+(?=[A-Z`])", " ".join(found[1].split()))[0] if found else ""


def _box(folder: str) -> str:
    (part,) = (name for name, members in _PARTS.items() if folder in members)
    count = sum(len(own) for name, own in folders().items() if _outermost(name) == folder)
    modules = f"{count} module{'' if count == 1 else 's'}"
    said = f"<small>{part}, {modules}</small> {_html(first_sentence(f'{_ROOT}.{folder}'))}"
    return f'<div class="house-{part.replace(" ", "-")}"><code>{folder}</code> {said}</div>'


def _details(folder: str) -> str:
    rows = [
        f"<tr><td><code>{module.rpartition('.')[2]}</code></td><td>{_html(first_sentence(module))}</td></tr>"
        for module in folders()[folder]
    ]
    return (
        f"<details><summary><code>{folder}</code>: {len(rows)}</summary>"
        f'<table class="docutils"><tbody>{"".join(rows)}</tbody></table></details>'
    )


def _html(text: str) -> str:
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text, quote=False))


@cache
def _imports() -> dict[str, set[str]]:
    """Return which outermost folders each one imports, within functions and for type checkers, too."""
    found: dict[str, set[str]] = {}
    for module in _modules():
        if module == _ROOT:
            continue
        own = _outermost(_folder(module))
        found.setdefault(own, set()).update(_outermost(_folder(name)) for name in _imported(module))
        found[own].discard(own)
    return found


def _imported(module: str) -> list[str]:
    names = []
    for behind, whole, listed in _IMPORT.findall(_QUOTED.sub("", sources.text(module))):
        # What is imported of the package itself is a folder, or a name that comes from all layers.
        within = [name for name in re.findall(r"\w+", listed) if f"{_ROOT}.{name}" in _modules()]
        names += [f"{_ROOT}.{name}" for name in (behind or whole, *within) if name]
    return names


def _folder(module: str) -> str:
    """Return the folder of a module or of a package, as a path within `cdcavro`."""
    parts = module.split(".")[1:]
    if parts == ["__main__"]:
        return _TOP
    if parts == [_ERRORS]:
        return _ERRORS
    return "/".join(parts if _is_package(module) else parts[:-1])


@cache
def _is_package(module: str) -> bool:
    return any(name.startswith(f"{module}.") for name in _modules())


def _outermost(folder: str) -> str:
    return folder.partition("/")[0]

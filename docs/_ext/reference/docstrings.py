"""Docstrings, which are Markdown in the small, as reStructuredText, which autodoc expects.

They hold code in single backticks, lists, examples behind `>>>`, code indented by four, and a paragraph that
begins with "Attributes:" and becomes a list.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

_CODE: Final = re.compile(r"(?<!`)`([^`]+)`(?!`)")
_ATTRIBUTE: Final = re.compile(r"; (?=`)")
_ITEM: Final = re.compile(r"[*-] ")


def to_rst(lines: Iterable[str]) -> list[str]:
    """Return a docstring, its indent taken away, as reStructuredText.

    >>> to_rst(["The `name`.", "", "    run()"])
    ['The ``name``.', '', '.. code-block:: python', '', '    run()', '']
    """
    made: list[str] = []
    for paragraph in _paragraphs(lines):
        made += [*_converted(paragraph), ""]
    return made[:-1] if made and not (len(made) > 1 and made[-2].startswith("    ")) else made


def _paragraphs(lines: Iterable[str]) -> list[list[str]]:
    """Return the paragraphs, those of indented code that follow each other as one."""
    made: list[list[str]] = [[]]
    for line in lines:
        if line.strip():
            made[-1].append(line.rstrip())
        elif made[-1]:
            made.append([])
    whole: list[list[str]] = []
    for paragraph in filter(None, made):
        if whole and _is_code(paragraph) and _is_code(whole[-1]):
            whole[-1] += ["", *paragraph]
        else:
            whole.append(paragraph)
    return whole


def _is_code(paragraph: list[str]) -> bool:
    return all(line.startswith("    ") or not line for line in paragraph)


def _converted(paragraph: list[str]) -> list[str]:
    if _is_code(paragraph):
        language = "sql" if paragraph[0].lstrip().startswith("SELECT") else "python"
        return [f".. code-block:: {language}", "", *paragraph]
    if paragraph[0].startswith(">>>"):
        return paragraph
    if paragraph[0].startswith("| "):
        return _table(paragraph)
    text = "\n".join(paragraph)
    if text.startswith("Attributes: "):
        items = _ATTRIBUTE.split(" ".join(paragraph).removeprefix("Attributes: "))
        return ["**Attributes:**", "", *(f"* {_inline(item.rstrip('.'))}." for item in items)]
    return _inline(text).split("\n")


def _inline(text: str) -> str:
    """Return text with its code in two backticks each, as reStructuredText has it, and its stars as they are."""
    return _CODE.sub(lambda match: "``" + " ".join(match[1].split()) + "``", text)


def _table(rows: list[str]) -> list[str]:
    cells = [[_inline(cell.strip()) for cell in row.strip("|").split("|")] for row in rows]
    made = [".. list-table::", "   :header-rows: 1", ""]
    for row in (cells[0], *cells[2:]):
        made += [
            f"   {'*' if first else ' '} - {cell}"
            for first, cell in zip([True] + [False] * len(row), row, strict=False)
        ]
    return made

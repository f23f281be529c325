"""Small pieces of Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def code(text: str) -> str:
    """Return a text as code within a line or a cell of a table."""
    return "`" + text.replace("|", "\\|") + "`"


def block(language: str, text: str) -> str:
    """Return a text as a block of code."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; a line break or a bar within a cell must have been dealt with."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def page(*parts: str) -> str:
    """Return parts below each other, those that are empty left out."""
    return "\n\n".join(part for part in parts if part) + "\n"

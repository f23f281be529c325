"""What a site has beside its pages: a description of each page for search engines, and `llms.txt`, which lists them all."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from docutils import nodes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

# What search engines show of a description.
_LONGEST: Final = 160


def describe(doctree: nodes.document | None) -> str:
    """Return the beginning of a page's first paragraph, in whole words; an empty text for a page without one."""
    if doctree is None:
        return ""
    first = next((node for node in doctree.findall(nodes.paragraph) if node.astext().strip()), None)
    text = "" if first is None else " ".join(first.astext().split())
    if len(text) <= _LONGEST:
        return text
    return f"{text[: _LONGEST - 1].rpartition(' ')[0].rstrip(',;:')} …"


def add_description(
    _app: Sphinx, _page: str, _template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Put the description of a page into its head."""
    text = describe(doctree)
    if text:
        context["metatags"] = f'{context.get("metatags", "")}\n<meta name="description" content="{escape(text)}">'


def keep_description(app: Sphinx, doctree: nodes.document) -> None:
    """Keep the description of a page for the list: to read all pages again takes as long as to write many of them."""
    app.env.metadata[app.env.docname]["description"] = describe(doctree)


def write_list(app: Sphinx, failure: Exception | None) -> None:
    """Write `llms.txt`: each page with its title and description, in the order of the contents."""
    if failure is not None or app.builder.format != "html":
        return
    root = app.config.root_doc
    lines = [f"# {app.config.project} {app.config.release}", "", f"> {app.env.metadata[root]['description']}", ""]
    for page, depth in _in_order(app.env, root):
        if depth == 1 and app.env.toctree_includes.get(page):
            lines += ["", f"## {app.env.titles[page].astext()}", ""]
        said = app.env.metadata[page]["description"]
        link = f"[{app.env.titles[page].astext()}]({app.builder.get_target_uri(page)})"
        lines.append(f"- {link}: {said}" if said else f"- {link}")
    Path(app.outdir, "llms.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _in_order(env: BuildEnvironment, page: str, depth: int = 1) -> Iterator[tuple[str, int]]:
    """Yield the pages below a page, each before those below it, with their depth."""
    for below in env.toctree_includes.get(page, ()):
        yield below, depth
        yield from _in_order(env, below, depth + 1)

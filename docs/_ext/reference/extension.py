"""The Sphinx extension that makes the reference: what pages leave to be generated, docstrings, and names as links.

    ```{generated} format oms_canal
    ```

in a page stands for the Markdown that `formats.format_page("oms_canal")` returns.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from sphinx.ext.autodoc.mock import mock

from reference.commands import command_page
from reference.docstrings import to_rst
from reference.formats import attribute_page, change_page, format_list, format_page
from reference.front import way_picture
from reference.house import house_picture, module_list
from reference.names import LinkedNames, SettingEntry, find_missing
from reference.python import module_page
from reference.settings import part_list, settings_page
from reference.site import add_description, keep_description, write_list
from reference.sql import sql_page
from reference.tables import table_page

if TYPE_CHECKING:
    from collections.abc import Callable

    from sphinx.application import Sphinx

_GENERATED: Final = re.compile(r"^```\{generated\} ([a-z]+)(?: (\S+))?\n```$", re.MULTILINE)
PAGES: Final[dict[str, Callable[[str], str]]] = {
    "attributes": attribute_page,
    "change": change_page,
    "commands": command_page,
    "format": format_page,
    "formats": format_list,
    "house": house_picture,
    "module": module_page,
    "modules": module_list,
    "parts": part_list,
    "settings": settings_page,
    "sql": sql_page,
    "table": table_page,
    "way": way_picture,
}


def read_source(app: Sphinx, _page: str, source: list[str]) -> None:
    """Put what is generated into the text of a page."""
    with mock(app.config.autodoc_mock_imports):
        source[0], count = _GENERATED.subn(lambda match: PAGES[match[1]](match[2] or ""), source[0])
    if count:
        app.env.note_reread()  # what it is made from lies outside of the documents


def read_docstring(_app: Sphinx, _what: str, _name: str, value: object, _options: object, lines: list[str]) -> None:
    """Turn a docstring into what autodoc expects, in its place; of a function from elsewhere its first words do."""
    home = str(getattr(value, "__module__", None) or "cdcavro")
    if not home.startswith("cdcavro"):
        lines[:] = [*lines[: lines.index("")], "", f"It is the function of that name in `{home}`."]
    lines[:] = to_rst(lines)


def read_signature(
    _app: Sphinx, _what: str, _name: str, _object: object, _options: object, signature: str | None, returns: str | None
) -> tuple[str, str | None] | None:
    """Return a signature without what is private, and with `...` for a default that is made anew each time."""
    if signature is None:
        return None
    return re.sub(r", _\w+: [^=]*= <factory>", "", signature).replace("<factory>", "..."), returns


def setup(app: Sphinx) -> dict[str, Any]:
    """Tell Sphinx what there is."""
    app.add_object_type("setting", "setting")
    app.add_role("setting-entry", SettingEntry())
    app.add_transform(LinkedNames)
    app.connect("source-read", read_source)
    app.connect("autodoc-process-docstring", read_docstring)
    app.connect("autodoc-process-signature", read_signature)
    app.connect("missing-reference", find_missing)
    app.connect("doctree-read", keep_description)
    app.connect("html-page-context", add_description)
    app.connect("build-finished", write_list)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

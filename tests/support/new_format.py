"""A new format: what it needs beside its schema and its module is written, and its name put where names stand.

    python tests/support/new_format.py NAME "What it is" "What documents it"

It writes a schema and a module to go on with, the page of the reference, a file of tests, and a file of facts; the name
goes into the list of formats, that of bridges, the tables of README and of two pages, and the template for issues. What
is there already stays. `docs/how-to/add-a-format.md` goes on from here.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_COLUMN = ["null", "boolean", "long", "double", "string"]
_NUMBER = {
    "type": "record",
    "name": "ExactNumber",
    "namespace": "cdcavro",
    "doc": "A JSON number that neither a long nor a double gives back digit for digit.",
    "json": {"holds": "number"},
    "fields": [{"name": "text", "type": "string", "doc": "The number as it was sent, e.g. 1.20, -0, 1E400."}],
}
_TEXT = {
    "type": "record",
    "name": "JsonText",
    "namespace": "cdcavro",
    "doc": "A JSON object or array sent as a column value.",
    "json": {"holds": "text"},
    "fields": [{"name": "text", "type": "string", "doc": "Its compact JSON text, numbers digit for digit."}],
}
_MODULE = '''"""{title} (`avsc/{name}.avsc`).

Source: {source}.

* All that a change needs, the schema says.
* Nothing else is particular.
"""

from __future__ import annotations

from typing import Final

from cdcavro.formats.bridge import schema_bridge

FORMAT: Final = "{name}"
BRIDGE: Final = schema_bridge(FORMAT)
'''
_TESTS = '''"""The facts of `{name}`: {title}."""

from __future__ import annotations

import pytest

from support.roundtrip import assert_golden, golden_cases


@pytest.mark.parametrize("golden", golden_cases("{name}"))
def test_golden_message_round_trips_and_is_told(golden):
    """Every sample comes back as it was sent, and is told from other formats."""
    assert_golden("{name}", golden)
'''


def add_format(root: Path, name: str, title: str, source: str) -> None:
    """Add a format to a checkout. Raises `ValueError` for a name that cannot be one, or is one already."""
    if not _NAME.fullmatch(name):
        raise ValueError(f"a name in lower case, with underscores between its words, not {name!r}")
    listed = root / "cdcavro" / "wire" / "formats.py"
    if f'    "{name}",\n' in listed.read_text(encoding="utf-8"):
        raise ValueError(f"{name} is a format already")
    facts = {"name": name, "title": title, "source": source}
    _write(root / "avsc" / f"{name}.avsc", json.dumps(_schema(name, title, source), indent=2) + "\n")
    _write(root / "cdcavro" / "formats" / f"{name}.py", _MODULE.format(**facts))
    _write(root / "tests" / "formats" / f"test_{name}.py", _TESTS.format(**facts))
    _write(root / "tests" / "formats" / "facts" / f"{name}.json", "{}\n")
    _write(root / "docs" / "reference" / "formats" / f"{name}.md", f"# {name}\n\n```{{generated}} format {name}\n```\n")
    (root / "cdcavro" / "samples" / name).mkdir(exist_ok=True)
    _edit(listed, r'(FORMATS: .*?\(\n(?:    "\w+",\n)+)', rf'\1    "{name}",\n')
    bridges = root / "cdcavro" / "formats" / "__init__.py"
    _edit(bridges, r"(from cdcavro\.formats import \((?:\n    \w+,)+)", rf"\1\n    {name},")
    _edit(bridges, r"(for module in \((?:\n        \w+,)+)", rf"\1\n        {name},")
    _sort(bridges)
    _row(root / "README.md", f"| `{name}` | {title} | {source} |")
    link = f"[`{name}`](../reference/formats/{name}.md)"
    _row(root / "docs" / "explanation" / "formats.md", f"| {link} | {title} | one message | JSON values |")
    _row(root / "docs" / "reference" / "readers.md", f"| `{name}` | yes | no | yes |")
    _edit(root / ".github" / "ISSUE_TEMPLATE" / "bug.yml", r"((?:        - \w+\n)+)", rf"\1        - {name}\n")


def _schema(name: str, title: str, source: str) -> dict[str, object]:
    words = "".join(word.capitalize() for word in name.split("_"))
    return {
        "type": "record",
        "name": words,
        "namespace": f"cdcavro.{name}",
        "doc": f"A message of {title}. Source: {source}.",
        "json": {"order": "arrival"},
        "fields": [
            {
                "name": "extras",
                "type": {"type": "map", "values": "string"},
                "default": {},
                "json": {"members": "extras"},
            }
        ],
    }


def _write(path: Path, text: str) -> None:
    if not path.exists():
        path.write_text(text, encoding="utf-8")


def _edit(path: Path, pattern: str, replacement: str) -> None:
    """Replace the first place of a pattern in a file; there must be one."""
    text, count = re.subn(pattern, replacement, path.read_text(encoding="utf-8"), count=1, flags=re.DOTALL)
    if not count:
        raise ValueError(f"a place for the format in {path}")
    path.write_text(text, encoding="utf-8")


def _sort(path: Path) -> None:
    """Put the imported modules in order."""
    text = path.read_text(encoding="utf-8")
    found = re.search(r"from cdcavro\.formats import \(\n((?:    \w+,\n)+)", text)
    if found is not None:
        path.write_text(text.replace(found[1], "".join(sorted(found[1].splitlines(keepends=True)))), encoding="utf-8")


def _row(path: Path, row: str) -> None:
    """Add a row behind the last one of the table of formats, which begins with a format's name."""
    lines = path.read_text(encoding="utf-8").split("\n")
    last = max(i for i, line in enumerate(lines) if re.match(r"\| (`maxwell`|\[`maxwell`\])", line))
    while lines[last + 1].startswith("| "):
        last += 1
    lines.insert(last + 1, row)
    path.write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    add_format(ROOT, *sys.argv[1:])

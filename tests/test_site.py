"""The site is built only if every link has an end and every name is there."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
import sys
from codeop import compile_command
from importlib.metadata import version

import pytest
from pygments.styles import get_style_by_name

from support.pages import all_pages, blocks, commands
from support.places import ROOT

pytest.importorskip("sphinx", reason="only `tox -e docs` installs Sphinx")
pytest.importorskip("myst_parser", reason="only `tox -e docs` installs MyST")
pytest.importorskip("furo", reason="only `tox -e docs` installs Furo")

pytestmark = pytest.mark.slow
DOCS = ROOT / "docs"
# A page of each kind that names can lead to.
PAGES = {
    "python.md": "# Python\n\n## Functions\n\n```{py:function} cdcavro.encode\n```\n\n```{py:class} cdcavro.Verdict\n```\n",
    "commands.md": "# Commands\n\n(cdcavro-encode)=\n\n## cdcavro encode\n",
}
# What leads nowhere, and what is said of it.
MISSING = {
    "[x](nowhere.md)": "'myst' cross-reference target not found: 'nowhere.md'",
    "[x](python.md#nowhere)": "local id not found in doc 'python': 'nowhere'",
    "![x](nowhere.svg)": "image file not readable: nowhere.svg",
    "`cdcavro.nothing`": "py:obj reference target not found: cdcavro.nothing",
    "`cdcavro.wire.sniff.nothing()`": "py:obj reference target not found: cdcavro.wire.sniff.nothing",
    "`cdcavro frobnicate`": "'name' reference target not found: cdcavro-frobnicate",
    "{py:class}`Nothing`": "py:class reference target not found: Nothing",
}


def _build(folder, text: str) -> subprocess.CompletedProcess:
    """Build a site of a page with a text, and the pages that it may lead to, with the project's own settings."""
    contents = "\n".join(["```{toctree}", *(name.removesuffix(".md") for name in PAGES), "```"])
    for name, page in {**PAGES, "index.md": f"# Index\n\n{text}\n\n{contents}\n"}.items():
        (folder / name).write_text(page, encoding="utf-8")
    options = ["-c", str(DOCS), "-W", "--keep-going", "-n", "-q", "-b", "html"]
    command = [sys.executable, "-m", "sphinx", *options, str(folder), str(folder / "built")]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, cwd=ROOT)


def test_links_and_names_that_are_there_are_built(tmp_path):
    """Code that is a public name, a class or a command becomes a link; a module that is not public stays code.

    What the page itself makes a link has no link within it.
    """
    names = "`cdcavro.encode`, `Verdict`, `cdcavro encode`, `cdcavro.wire.sniff.fitting_formats`, [a page](python.md#functions)"
    names += ", [`cdcavro encode`](python.md#functions)"
    done = _build(tmp_path, names)
    assert done.stderr == ""
    assert done.returncode == 0
    page = (tmp_path / "built" / "index.html").read_text(encoding="utf-8")
    links = re.findall(
        r'href="([^"]+)"[^>]*><code[^>]*>(?:<span[^>]*>)?([\w. ]+)', page.replace('</span> <span class="pre">', " ")
    )
    assert ("python.html#cdcavro.encode", "cdcavro.encode") in links
    assert ("python.html#cdcavro.Verdict", "Verdict") in links
    assert ("commands.html#cdcavro-encode", "cdcavro encode") in links
    assert re.search(r'href="python\.html#functions"><span[^>]*><code', page)
    assert not re.search(r"<a [^>]*>(?:(?!</a>).)*<a ", page, re.DOTALL)
    assert not any(text == "cdcavro.wire.sniff.fitting_formats" for _, text in links)


def test_a_site_has_descriptions_a_version_and_a_list_of_its_pages(tmp_path):
    """A page's first paragraph describes it, to search engines and in `llms.txt`; addresses without a page have one."""
    assert _build(tmp_path, 'Words, with "quotes", ' + "and more of them " * 20).returncode == 0
    page = (tmp_path / "built" / "index.html").read_text(encoding="utf-8")
    said = html.unescape(re.search(r'<meta name="description" content="([^"]*)">', page)[1])
    assert re.fullmatch("Words, with “quotes”, (and more of them )+(and )?(more )?(of )?…", said)
    assert 140 < len(said) <= 160
    assert f"<title>cdcavro {version('cdcavro')}</title>" in page
    icon = re.search(r'<link rel="shortcut icon" href="([^"?]+)', page)[1]
    assert (tmp_path / "built" / icon).read_text(encoding="utf-8").startswith("<svg")
    listed = (tmp_path / "built" / "llms.txt").read_text(encoding="utf-8")
    assert listed.startswith(f"# cdcavro {version('cdcavro')}\n\n> {said}\n\n- [Python](python.html)")
    assert "- [Commands](commands.html)\n" in listed
    missing = (tmp_path / "built" / "404.html").read_text(encoding="utf-8")
    pages = {name.replace(".html", ".md") for name in re.findall(r'href="([^"]+)"', missing)} - {"search.md"}
    assert pages
    assert all((DOCS / name).is_file() for name in pages)


@pytest.mark.skipif(shutil.which("node") is None, reason="node runs the site's script, and is not here")
def test_the_button_of_a_console_block_copies_its_commands():
    """Those that the tests run: with here-documents and continued lines, and without what they print."""
    consoles = [block.text for page in all_pages() for block in blocks(page) if block.language == "console"]
    copied = _copied("commandsOf", consoles)
    assert copied == [[command.text for command in commands(text)] for text in consoles]
    assert len(consoles) > 20


@pytest.mark.skipif(shutil.which("node") is None, reason="node runs the site's script, and is not here")
def test_the_button_of_a_block_of_python_copies_what_its_prompt_runs():
    """All of it, so that nothing waits for an empty line, and without prompts and what they print."""
    shown = [block.text for page in all_pages() for block in blocks(page) if block.language == "python"]
    examples = {
        ">>> 1 + 1\n2\n": "1 + 1\n",
        ">>> for i in (1,\n...     2):\n...     i\n1\n2\n>>> i\n2\n": "for i in (1,\n    2):\n    i\n\ni\n",
        ">>> if i:\n...     i\n...\n2\n>>> 'a'\n'a'\n": "if i:\n    i\n\n'a'\n",
    }
    copied = _copied("codeOf", [*shown, *examples])
    assert copied[len(shown) :] == list(examples.values())
    assert [text.rstrip() for text in copied[: len(shown)]] == [text.rstrip() for text in shown]
    assert [text for text in copied if _waiting(text)] == []
    assert len(shown) > 100


def _copied(function: str, texts: list[str]) -> list:
    """Return what a function of the site's script makes of texts."""
    script = f"const {{{function}}} = require({json.dumps(str(DOCS / '_static' / 'copy.js'))});"
    script += f"console.log(JSON.stringify(JSON.parse(require('fs').readFileSync(0)).map({function})))"
    done = subprocess.run(["node", "-e", script], input=json.dumps(texts), capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def _waiting(text: str) -> str:
    """Return the lines of a text that wait for more at Python's prompt; raises `SyntaxError`."""
    waiting = ""
    for line in text.splitlines():
        waiting = waiting + line + "\n" if compile_command(waiting + line) is None else ""
    return waiting


@pytest.mark.parametrize(("style", "ground"), [("pygments_style", "#f8f9fb"), ("pygments_dark_style", "#1a1c1e")])
def test_colours_of_code_stand_out_from_their_ground(style, ground):
    """By the contrast that WCAG asks for; the grounds are the theme's."""
    (name,) = re.findall(rf'^{style} = "(.+)"$', (DOCS / "conf.py").read_text(encoding="utf-8"), re.MULTILINE)
    colours = {said["color"] for _, said in get_style_by_name(name) if said["color"]}
    assert colours
    faint = {colour: contrast for colour in colours if (contrast := _contrast(colour, ground)) < 4.5}
    assert faint == {}


def _contrast(one: str, other: str) -> float:
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(colour.lstrip("#")[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_a_link_without_an_end_and_a_missing_name_fail_the_build(tmp_path):
    """Each is told with its page and line."""
    done = _build(tmp_path, "\n\n".join(MISSING))
    assert done.returncode == 1
    warnings = {int(line): said for line, said in re.findall(r"index\.md:([0-9]+): WARNING: (.*?) \[", done.stderr)}
    assert warnings == {3 + 2 * i: said for i, said in enumerate(MISSING.values())}

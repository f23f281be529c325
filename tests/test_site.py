"""The site is built only if every link has an end and every name is there."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

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
    """Code that is a public name, a class or a command becomes a link; a module that is not public stays code."""
    names = "`cdcavro.encode`, `Verdict`, `cdcavro encode`, `cdcavro.wire.sniff.fitting_formats`, [a page](python.md#functions)"
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
    assert not any(text == "cdcavro.wire.sniff.fitting_formats" for _, text in links)


def test_a_link_without_an_end_and_a_missing_name_fail_the_build(tmp_path):
    """Each is told with its page and line."""
    done = _build(tmp_path, "\n\n".join(MISSING))
    assert done.returncode == 1
    warnings = {int(line): said for line, said in re.findall(r"index\.md:([0-9]+): WARNING: (.*?) \[", done.stderr)}
    assert warnings == {3 + 2 * i: said for i, said in enumerate(MISSING.values())}

"""The pages are the manual: what they show runs, and says what comes out; links lead somewhere."""

from __future__ import annotations

import ast
import re
import subprocess

import pytest
from click.testing import CliRunner

from cdcavro import parse_schema
from cdcavro.cli import main
from support.pages import (
    CHECKED,
    DOCS,
    RUN,
    all_pages,
    blocks,
    json_values,
    matches,
    name_of,
    needs_spark,
    prose,
    run_page,
    runs,
)
from support.places import ROOT

README = ROOT / "README.md"
PAGES = all_pages()
QUICK = [page for page in PAGES if runs(page) and not needs_spark(page)]
# The pages that take long: their commands need processes of their own, or there are many.
SLOW = {f"docs/how-to/{name}.md" for name in ("debezium-without-schemas", "generate-records", "large-files", "scripts")}
# What the site's builder makes of the code, and what it reads beside code.
DIRECTIVES = {"{toctree}", "{figure}", "{image}", "{generated}"}
COMPOUND = (ast.For, ast.With, ast.If, ast.While, ast.Try, ast.FunctionDef, ast.ClassDef)
TOOLS = {
    ".",
    "cd",
    "docker",
    "git",
    "kubectl",
    "openssl",
    "pip",
    "pre-commit",
    "pytest",
    "python3",
    "spark-pipelines",
    "spark-submit",
    "tox",
    "venv-pack",
}


def _marked(page):
    marks = [pytest.mark.slow] if name_of(page) in SLOW else []
    return pytest.param(page, id=name_of(page), marks=marks)


@pytest.mark.parametrize("page", [_marked(page) for page in QUICK])
def test_the_examples_of_a_page_run_and_say_what_is_shown(page, tmp_path):
    """All of them, one behind another, in one namespace and an empty folder."""
    assert run_page(page, tmp_path) > 0


def test_there_are_examples():
    """A fence that is no longer seen as one would not be missed else."""
    assert len(QUICK) >= 20
    assert sum(block.language in RUN for page in PAGES for block in blocks(page)) >= 100


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_no_block_is_passed_over(page):
    """Every block is of a language that is run or checked, and every fence belongs to a block."""
    for block in blocks(page):
        known = {*RUN, *CHECKED, *DIRECTIVES, *(["text"] if page == README else [])}
        assert block.language.partition(" ")[0] in known, block.place
    assert "```" not in prose(page)


@pytest.mark.parametrize("page", [page for page in PAGES if runs(page)], ids=name_of)
def test_examples_paste_into_pythons_own_prompt(page):
    """There a blank line ends a compound statement: one stands behind it, and none within it."""
    for block in blocks(page):
        if block.language != "python":
            continue
        lines = block.text.splitlines()
        for statement in ast.parse(block.text).body:
            if isinstance(statement, COMPOUND):
                assert all(lines[statement.lineno : statement.end_lineno]), block.place
                assert not "".join(lines[statement.end_lineno : statement.end_lineno + 1]), block.place


def _of(*languages):
    found = [block for page in PAGES for block in blocks(page) if block.language in languages]
    return [pytest.param(block, id=block.place) for block in found]


@pytest.mark.parametrize("block", _of("json", "avsc"))
def test_json_and_schemas_are_such(block):
    """What cannot be run is at least what it says."""
    values = json_values(block.text)
    assert values
    if block.language == "avsc":
        assert parse_schema(block.text).fingerprint


@pytest.mark.parametrize("block", _of("sh"))
def test_commands_for_the_readers_machine_are_such(block):
    """They parse; a command of cdcavro has the options that it is given, and files of the repository are there."""
    done = subprocess.run(["bash", "-n"], input=block.text, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    for line in re.split(r"\n|&&", block.text.replace("\\\n", " ")):
        if line.strip():
            _check_command(line.split("#")[0].split())


def _check_command(words):
    while "=" in words[0]:
        words = words[1:]
    tool = words[0].removeprefix(".venv/bin/")
    assert tool in TOOLS | {"python", "cdcavro"}, words
    for word in words:
        assert not word.startswith(("tests/", "cdcavro/", "deploy/")) or (ROOT / word.split("::")[0]).exists(), word
    if tool == "cdcavro" and words[1] != "--version":
        options = main.commands[words[1]].params
        names = {name for option in options for name in option.opts}
        assert {word for word in words if word.startswith("--")} <= names | {"--help"}, words


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_to_pages_and_headings_that_there_are(page):
    """Relative ones; those of a page in `docs` stay in it, for the site has nothing else."""
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", prose(page))):
        if re.match(r"https?:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert DOCS in file.parents or DOCS not in page.parents, target
        assert file.is_file(), target
        assert not anchor or anchor in _anchors(file), target


def _anchors(page):
    headings = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_tests_that_a_page_names_are_there():
    """What SECURITY promises is shown by a test; its name says which."""
    named = {(page, test) for page in PAGES for test in re.findall(r"`(tests/[\w/.]+::\w+)`", prose(page))}
    assert len(named) >= 25
    for page, test in named:
        file, _, name = test.partition("::")
        assert f"\ndef {name}(" in (ROOT / file).read_text(encoding="utf-8"), f"{name_of(page)}: {test}"


def test_every_page_is_in_a_list_of_pages():
    """A page that no list of contents names is found by nobody."""
    listed = set()
    for page in PAGES:
        for block in blocks(page):
            if block.language.startswith("{toctree}"):
                names = [line for line in block.text.splitlines() if line and not line.startswith(":")]
                listed |= {(page.parent / f"{name}.md").resolve() for name in names}
    written = {page for page in PAGES if DOCS in page.parents} - {DOCS / "index.md"}
    assert {page for page in listed if DOCS / "reference" not in page.parents} == written


def test_how_to_pages_are_in_groups_and_called_what_people_search_for():
    """The index lists groups, a group lists pages; a title is a task and neither a wish nor a complaint."""
    groups = _listed(DOCS / "how-to" / "index.md")
    pages = [page for group in groups for page in _listed(group)]
    assert {*groups, *pages} == {*(DOCS / "how-to").glob("*.md")} - {DOCS / "how-to" / "index.md"}
    assert len(pages) == len(set(pages))
    for page in pages:
        title = page.read_text(encoding="utf-8").partition("\n")[0]
        assert not re.match(r"# (I|My|Do|Which|Some|The|A|With)\b", title), title


def _listed(page):
    (contents,) = [block for block in blocks(page) if block.language == "{toctree}"]
    return [page.parent / f"{name}.md" for name in contents.text.split() if re.fullmatch(r"[a-z-]+", name)]


def test_readme_is_one_page():
    """At most 8 KB: whatever is longer belongs into `docs`."""
    assert README.stat().st_size <= 8 * 1024


def test_ci_calls_the_test_command_of_the_readme_and_nothing_else():
    """`.ci/run` is the second command, from the repository's own folder."""
    commands = [line for line in (ROOT / ".ci" / "run").read_text().splitlines() if line and not line.startswith("#")]
    second = [block.text.strip() for block in blocks(README) if block.language == "sh"][1]
    assert commands == ["set -eu", 'cd "$(dirname "$0")/.."', second]


def test_what_is_shown_is_what_is_said():
    """Anything may stand for `...`; any other difference is one."""
    assert matches("a\n...\nd\n", "a\nb\nc\nd")
    assert not matches("a\n...\nd\n", "a\nb\nc")
    assert not matches("a.b\n", "aXb\n")


def test_the_options_of_commands_are_held_against_their_help():
    """An option that no command has would be found."""
    with pytest.raises(AssertionError):
        _check_command(["cdcavro", "encode", "--no-such-option"])
    assert CliRunner().invoke(main, ["encode", "--no-such-option"]).exit_code == 2

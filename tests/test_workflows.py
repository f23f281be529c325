"""The workflows of GitHub: they run what README says, with the rights that they need and no others."""

from __future__ import annotations

import re

import pytest

from cdcavro.wire.formats import REGISTRY
from support.places import README, ROOT

GITHUB = ROOT / ".github"
WORKFLOWS = {path.stem: path.read_text(encoding="utf-8") for path in sorted((GITHUB / "workflows").glob("*.yml"))}
# An action by a version of it, by the branch of its releases, or by a commit; or a workflow of this repository.
PINNED = re.compile(r"[\w.-]+/[\w./-]+@(v\d+(\.\d+\.\d+)?|release/v\d+|[0-9a-f]{40})|\./\.github/workflows/\w+\.yml")


def test_the_commands_of_the_readme_are_what_runs_for_each_commit():
    """The second is that of `.ci/run`, which has its own."""
    first, second = re.findall(r"```sh\n(python3 -m venv .*)\n```", README.read_text(encoding="utf-8"))
    assert f"- run: {first}\n" in WORKFLOWS["ci"]
    assert "- run: .ci/run\n" in WORKFLOWS["ci"]
    assert (ROOT / ".ci" / "run").read_text(encoding="utf-8").endswith(f"{second}\n")


@pytest.mark.parametrize("name", WORKFLOWS)
def test_a_workflow_may_read_and_names_the_versions_of_its_actions(name):
    """Only the job that publishes may have itself identified, and it runs nothing of this repository."""
    text = WORKFLOWS[name]
    assert "\npermissions:\n  contents: read\n" in text
    assert text.count("write") == (name == "release")
    used = re.findall(r"uses: (.*)", text)
    assert used
    assert [one for one in used if not PINNED.fullmatch(one)] == []
    assert text.count("actions/checkout@") == text.count("persist-credentials: false")


def test_the_job_that_publishes_runs_no_code_of_its_own():
    """It fetches what others built, and hands it over."""
    job = WORKFLOWS["release"].partition("\n  publish:\n")[2]
    assert "id-token: write" in job
    assert re.findall(r"uses: ([\w/-]+)@", job) == ["actions/download-artifact", "pypa/gh-action-pypi-publish"]
    assert "run:" not in job


def test_the_template_for_issues_has_all_formats():
    """In the order in which README has them."""
    text = (GITHUB / "ISSUE_TEMPLATE" / "bug.yml").read_text(encoding="utf-8")
    formats = re.findall(r"^        - (\w+)$", text, re.MULTILINE)
    assert sorted(formats) == sorted(REGISTRY)
    assert "SECURITY.md" in text

"""What `pyproject.toml` promises is what the environments of `tox.ini` run with."""

from __future__ import annotations

import re
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from support.places import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
TOX = (ROOT / "tox.ini").read_text(encoding="utf-8")
TOXFILE = (ROOT / "toxfile.py").read_text(encoding="utf-8")
# The environments of README's test command, and those of `tox -m all`.
LISTED = {name for line in re.findall(r"^(?:env_list|    all) = (.*)$", TOX, re.MULTILINE) for name in line.split(", ")}
BUILD = [Requirement(line) for line in PROJECT["build-system"]["requires"]]
EXTRAS = PROJECT["project"]["optional-dependencies"]
PROMISED = [
    Requirement(line) for line in (*PROJECT["project"]["dependencies"], *(one for of in EXTRAS.values() for one in of))
]
GROUPS = {
    name: {Requirement(line).name for line in group if isinstance(line, str)}
    for name, group in PROJECT["dependency-groups"].items()
}


def pinned(name):
    """The versions that a file of constraints names, by package."""
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    return {line.partition("==")[0]: Version(line.partition("==")[2]) for line in lines if line and line[0] != "#"}


PINNED, LOWEST = pinned("constraints.txt"), pinned("constraints-lowest.txt")
SPARK_40 = pinned("constraints-spark40.txt")
# What Spark 4.0 is tested with in a version of its own.
NOT_WITH_40 = {"pandas", "pyspark"}


@pytest.mark.parametrize("promised", [*PROMISED, *BUILD], ids=str)
def test_lowest_version_that_is_promised_is_the_one_that_is_tested(promised):
    """A bound that is raised or lowered in one file only fails here."""
    (lowest,) = (Version(one.version) for one in promised.specifier if one.operator in {">=", "=="})
    assert LOWEST[promised.name] == lowest


@pytest.mark.parametrize("promised", PROMISED, ids=str)
def test_version_that_is_tested_is_one_that_is_promised(promised):
    """Each of them is pinned, within its bounds."""
    assert PINNED[promised.name] in promised.specifier


def test_lowest_versions_are_run_by_the_tools_of_all_others():
    """What is no promise stands in both files alike."""
    promises = {one.name for one in (*PROMISED, *BUILD)}
    assert {(name, version) for name, version in LOWEST.items() if name not in promises} <= set(PINNED.items())
    assert GROUPS["test"] <= set(LOWEST)


def test_an_older_spark_runs_with_all_else_as_the_newest():
    """But for pandas, of which it has a version that is promised."""
    assert {(name, version) for name, version in SPARK_40.items() if name not in NOT_WITH_40} <= set(PINNED.items())
    assert all(SPARK_40[one.name] in one.specifier for one in PROMISED if one.name in SPARK_40)
    assert GROUPS["test"] - {"setuptools"} <= set(SPARK_40)


def test_every_spark_that_is_promised_is_tested():
    """Each minor version from the lowest to the newest has an environment that README's commands run."""
    (promised,) = (one for one in PROMISED if one.name == "pyspark")
    tested = {"spark35": LOWEST["pyspark"], "spark40": SPARK_40["pyspark"], "every": PINNED["pyspark"]}
    assert sorted((one.major, one.minor) for one in tested.values()) == [(3, 5), (4, 0), (4, 1)]
    assert all(version in promised.specifier for version in tested.values())
    assert "4.2" not in promised.specifier
    assert {*tested, "connect"} <= LISTED
    files = {"spark35": "constraints-lowest.txt", "spark40": "constraints-spark40.txt"}
    for name, file in files.items():
        assert re.search(rf"^\[testenv:{name}\][^\[]*\nconstraints = {file}\n", TOX, re.MULTILINE)


def test_every_tool_is_pinned():
    """All that tox installs for its environments, but for what builds the package."""
    built = {one.name for one in BUILD}
    assert {
        name for group in ("test", "connect", "coverage", "style", "types", "deploy", "docs") for name in GROUPS[group]
    } - built <= set(PINNED)


def test_every_python_that_is_promised_is_tested():
    """Its classifier, the lowest that is required, the newest, and an environment for each other that `tox -m all` runs."""
    said = re.findall(r"Python :: 3\.(\d+)", " ".join(PROJECT["project"]["classifiers"]))
    (others,) = re.findall(r"^\[testenv:py\{(.*)\}\]$", TOX, re.MULTILINE)
    lowest = PROJECT["project"]["requires-python"].removeprefix(">=3.")
    assert said == [other.removeprefix("3") for other in others.split(",")]
    assert said[0] == lowest
    assert f"base_python = python3.{lowest}\n" in TOX
    # On the newest, `exact` runs more.
    assert f'"python3.{said[-1]}"' in TOXFILE
    assert {"exact", "lowest"} | {"py" + other for other in others.split(",")} - {
        f"py3{lowest}",
        f"py3{said[-1]}",
    } <= LISTED

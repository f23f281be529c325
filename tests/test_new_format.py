"""The page on a new format, followed in a copy of the project with the format that it invents."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.new_format import add_format
from support.places import ROOT

PAGE = (ROOT / "docs" / "how-to" / "add-a-format.md").read_text(encoding="utf-8")
COPIED = ("avsc", "cdcavro", "docs", "tests", ".github")
NAME = "parcel"


def fence(language: str, number: int = 0) -> str:
    """Return a block of the page in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)[number]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of the project, with the new format in it as the page has it."""
    root = tmp_path / "project"
    root.mkdir()
    for folder in COPIED:
        shutil.copytree(ROOT / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for path in ROOT.iterdir():
        if path.is_file() and path.suffix in (".md", ".toml", ".py", ".ini", ".txt", ".in"):
            shutil.copy(path, root)
    add_format(root, NAME, "the shop's parcels", "Parcels, Messages")
    (root / "avsc" / f"{NAME}.avsc").write_text(re.findall(r"<<'EOF'\n(.*?)^EOF$", PAGE, re.DOTALL | re.MULTILINE)[0])
    differences = "".join(re.findall(r"^\* `(?:now|at)` .*\n", PAGE, re.MULTILINE))
    module = root / "cdcavro" / "formats" / f"{NAME}.py"
    module.write_text(re.sub(r"\* All that.*?particular\.\n", differences, module.read_text(), flags=re.DOTALL))
    (root / "cdcavro" / "samples" / NAME / "moved.json").write_text(fence("json"))
    (root / "tests" / "formats" / "facts" / f"{NAME}.json").write_text(fence("json", 1))
    return root


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_page_on_a_new_format_gives_one(checkout):
    """With what the script writes and the page shows, and nothing else, the tests that it names pass."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV_", "TOX_"))
    }
    for command in fence("sh", 1).splitlines():
        done = subprocess.run(
            [sys.executable, "-m", *command.split(), "-q", "-p", "no:cacheprovider"],
            cwd=checkout,
            env=environment | {"PYTHONPATH": str(checkout)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-3000:]


def test_a_format_is_added_once(checkout):
    """What is there is not written again."""
    with pytest.raises(ValueError, match="parcel is a format already"):
        add_format(checkout, NAME, "", "")
    for name in ("Parcel", "a-b", "", "../x"):
        with pytest.raises(ValueError, match="a name in lower case"):
            add_format(checkout, name, "", "")

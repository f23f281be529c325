"""What `CONTRIBUTING.md` says: its paths are there, and its commands select what they say."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from cdcavro.wire.formats import REGISTRY
from support.places import ROOT

PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
# A path in the text, in a command, or in a link; a place-holder such as `<name>` is none.
PATHS = re.findall(
    r"(?<![\w/.-])((?:\.?[\w-]+/)+(?:[\w-]+\.\w+|[\w-]+)?|[\w-]+\.(?:py|toml|ini|in|txt|md))(?![\w/<-])", PAGE
)


def test_every_path_on_the_page_is_there():
    """Also those within commands, but not what tools make."""
    assert len(PATHS) > 60
    missing = {path for path in PATHS if not (ROOT / path).exists() and not path.startswith(".venv/")}
    assert missing == set()


def test_what_the_page_names_in_a_module_is_in_it():
    """A class, a constant or a function, where its module is named beside it."""
    for name, path in {
        "Storage": "cdcavro/table/columns/type_names.py",
        "AvroFiles": "cdcavro/sync/outputs/sink_settings.py",
        "AvroConfig": "cdcavro/sync/sections.py",
        "Config": "cdcavro/sync/config.py",
        "_sink": "cdcavro/sync/config.py",
        "SINKS": "cdcavro/spark/pipeline/runner.py",
        "Settings": "cdcavro/sync/settings.py",
        "COMMANDS": "cdcavro/cli/__init__.py",
        "NAMES_FORMATS": "tests/test_guards.py",
    }.items():
        assert f"`{name}`" in PAGE
        assert f"`{path}`" in PAGE
        assert re.search(rf"^ *(class |def )?{name}\b", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE), name


def _collected(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *arguments]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV_"))}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=50, check=False)


@pytest.mark.slow
def test_the_tests_of_one_format_are_those_of_its_file_and_with_its_name_in_their_parameters():
    """A format whose name is part of another's is not taken for it."""
    done = _collected("--format", "canal", "tests/formats", "tests/wire/test_sniff.py")
    tests = [line for line in done.stdout.splitlines() if "::" in line]
    others = [line for line in tests if not line.startswith("tests/formats/test_canal.py")]
    assert 0 < len(others) < len(tests)
    assert all("canal" in re.findall(r"\w+", line.partition("[")[2]) for line in others)


@pytest.mark.slow
def test_a_format_that_is_not_known_is_an_error_that_lists_those_that_are():
    """Nothing is selected in silence."""
    done = _collected("--format", "cannal", "tests/formats")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert f"--format: expected one of {', '.join(REGISTRY)}, got 'cannal'" in done.stderr

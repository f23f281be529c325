"""What Java says on standard error while Spark starts: nothing to a user, unless the start fails or it is wanted."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.messages import shop_canal

pytestmark = pytest.mark.jvm
COMMAND = str(Path(sys.executable).with_name("cdcavro"))
SAID = ["starting Spark", "converting 1 file", "writing canal"]


def convert(folder: Path, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Convert a file of a folder in a process of its own."""
    (folder / "a.jsonl").write_bytes(shop_canal()[10])
    command = [COMMAND, "run", "a.jsonl", "--out", "out", "--force", *options]
    own = os.environ | environment
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False, env=own)


def test_a_start_is_silent_unless_its_words_are_wanted(tmp_path: Path):
    """Nothing of Ivy's tables and of the log's settings."""
    done = convert(tmp_path, "--master", "local[1]")
    assert (done.returncode, done.stderr.splitlines()) == (0, SAID)
    loud = convert(tmp_path, "--master", "local[1]", "--verbose")
    assert loud.returncode == 0
    assert [line for line in loud.stderr.splitlines() if line in SAID] == SAID
    assert ":: resolving dependencies ::" in loud.stderr


def test_a_start_that_fails_shows_what_java_said(tmp_path: Path):
    """Both where there is no Java process yet, and where Spark does not start in it."""
    done = convert(tmp_path, "--master", "local[1]", SPARK_SUBMIT_OPTS="-Xss1x")
    assert done.returncode == 2
    assert "Invalid thread stack size: -Xss1x" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("Error: Spark did not start; what it said stands above")
    wrong = convert(tmp_path, "--master", "nonsense")
    assert wrong.returncode == 2
    assert "Master must either be yarn or start with" in wrong.stderr
    assert wrong.stderr.splitlines()[-1].startswith("Error: ")


def test_a_start_says_nothing_in_a_log_of_json(tmp_path: Path):
    """What is no line of JSON there is an error."""
    (tmp_path / "a.jsonl").write_bytes(shop_canal()[10])
    flags = ["--files", "a.jsonl", "--delta", "lake", "--state", "state", "--master", "nonsense", "--log", "json"]
    done = subprocess.run([COMMAND, "sync", *flags], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.stderr.splitlines()[-1].startswith("Error: ")
    assert "starting Spark" not in done.stderr

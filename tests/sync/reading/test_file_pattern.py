"""Patterns of paths, of which `tests/spark/pipeline/test_handover.py` shows that they mean what they mean on Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdcavro.errors import FileError
from cdcavro.sync.sources import expand_pattern

FILES = ("x/a1", "x/b2", "x/.c", "y/a1", "y/a{1}", "y/a*", "z/q/a1")


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*/a1", ["x/a1", "y/a1"]),
        ("*/*/a?", ["z/q/a1"]),
        ("{x,z/q}/a1", ["x/a1", "z/q/a1"]),
        ("x/{a,b{1,2}}*", ["x/a1", "x/b2"]),
        ("x/[a-b][!1]", ["x/b2"]),
        ("x/[^a]?", ["x/.c", "x/b2"]),
        ("x/*", ["x/.c", "x/a1", "x/b2"]),
        (r"y/a\*", ["y/a*"]),
        (r"y/a\{1\}", ["y/a{1}"]),
        ("x/{}a1", ["x/a1"]),
        ("n*", []),
        ("*", ["x", "y", "z"]),
    ],
)
def test_patterns(tmp_path: Path, pattern: str, found: list[str]):
    """Patterns."""
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert expand_pattern(f"{tmp_path}/{pattern}") == [f"{tmp_path}/{name}" for name in found]


@pytest.mark.parametrize("pattern", ["a[b", "a{b", "[b-a]"])
def test_patterns_that_are_none(tmp_path: Path, pattern: str):
    """Patterns that are none."""
    (tmp_path / "x").touch()
    with pytest.raises(FileError, match="a pattern of paths"):
        expand_pattern(f"{tmp_path}/{pattern}")

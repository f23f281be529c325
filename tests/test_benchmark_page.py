"""The program that measures `cdcavro` beside the same by hand, and the page that shows what it printed."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from support.places import ROOT, TESTS

PROGRAM = TESTS / "benchmarks" / "page.py"
PAGE = ROOT / "docs" / "explanation" / "benchmark.md"


def _rows(text):
    """The cells of the table whose first column has no name."""
    (table,) = re.findall(r"^\|  \| way .*\n(?:\|.*\n)+", text, re.MULTILINE)
    rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in table.splitlines()]
    return [row for row in rows if not row[0].startswith("---")]


def _share(cell):
    kept, _, count = cell.replace(",", "").partition(" of ")
    return int(kept) / int(count)


@pytest.mark.slow
def test_the_page_shows_what_the_program_prints():
    """The same ways in the same order, and as many exact messages in a thousand; rates and memory are those of a machine."""
    command = [sys.executable, PROGRAM, "1000", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=50)
    assert done.stderr == ""
    printed, shown = _rows(done.stdout), _rows(PAGE.read_text(encoding="utf-8"))
    assert [row[:2] for row in printed] == [row[:2] for row in shown]
    assert [_share(row[-1]) for row in printed[1:]] == [_share(row[-1]) for row in shown[1:]]
    own = [_share(row[-1]) for row in printed[1:] if "cdcavro" in row[1]]
    assert own == [1, 1]

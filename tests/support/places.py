"""The locations of files that tests read."""

from __future__ import annotations

from pathlib import Path
from typing import Final

TESTS: Final = Path(__file__).resolve().parents[1]
ROOT: Final = TESTS.parent
DATA: Final = TESTS / "data"
README: Final = ROOT / "README.md"
# External messages and documents, which are not part of the repository; without them, tests that need them are skipped.
SHARED: Final = ROOT.parent / "shared"

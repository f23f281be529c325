"""Where the files lie that tests read."""

from __future__ import annotations

from pathlib import Path
from typing import Final

TESTS: Final = Path(__file__).resolve().parents[1]
ROOT: Final = TESTS.parent
DATA: Final = TESTS / "data"
README: Final = ROOT / "README.md"
# Messages and documents of others, which stay outside of the repository: what needs them is skipped elsewhere.
SHARED: Final = ROOT.parent / "shared"

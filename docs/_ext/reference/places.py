"""Where lies what the reference is made from."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Final

DOCS: Final = Path(__file__).resolve().parents[1]
AVSC: Final = DOCS.parent / "avsc"
SAMPLES: Final = Path(str(resources.files("cdcavro") / "samples"))

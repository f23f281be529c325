"""README's blocks of code, by language."""

from __future__ import annotations

import re

from support.places import README


def blocks(language: str) -> list[str]:
    """Return the fenced blocks of a language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```", README.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def is_spark(block: str) -> bool:
    """Return whether a Python block needs a Spark session."""
    return "spark" in block.lower() or re.search(r"(?<!\.)from_avro", block) is not None

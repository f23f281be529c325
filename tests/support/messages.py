"""The sample messages that come with the project."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from cdcavro.wire.formats import FORMATS, rule_of

# The formats in which an update consists of two messages.
HALVED = frozenset(name for name in FORMATS if rule_of(name).has_halves)
SAMPLES = Path(str(resources.files("cdcavro") / "samples"))


def golden_files(format: str) -> dict[str, bytes]:
    """Return the contents of a format's golden files by name, sorted by name."""
    return {path.stem: path.read_bytes() for path in sorted((SAMPLES / format).glob("*.json"))}


def goldens(format: str) -> list[bytes]:
    """Return the golden messages of a format, sorted by the names of their files."""
    return [content.rstrip(b"\n") for content in golden_files(format).values()]


def shop_canal() -> list[bytes]:
    """Return the 188 messages that a real Alibaba Canal sent."""
    return lines(SAMPLES / "canal" / "shop.jsonl")


def shop_debezium() -> list[bytes]:
    """Return the 229 messages that a real Debezium sent."""
    return lines(SAMPLES / "debezium" / "shop.jsonl")


def lines(path: Path) -> list[bytes]:
    r"""Return the messages of a file of JSON lines, split at `\n` only: values may hold U+0085."""
    return [line for line in path.read_bytes().split(b"\n") if line]

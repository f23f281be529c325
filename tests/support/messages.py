"""The messages that ship with the project."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from cdcavro.wire.formats import FORMATS, rule_of

# The formats in which an update is two messages.
HALVED = frozenset(name for name in FORMATS if rule_of(name).has_halves)
SAMPLES = Path(str(resources.files("cdcavro") / "samples"))


def golden_files(format: str) -> dict[str, bytes]:
    """Return the files of a format's golden messages by their names, in the order of these."""
    return {path.stem: path.read_bytes() for path in sorted((SAMPLES / format).glob("*.json"))}


def goldens(format: str) -> list[bytes]:
    """Return the golden messages of a format, in the order of their names."""
    return [content.rstrip(b"\n") for content in golden_files(format).values()]


def shop_canal() -> list[bytes]:
    """Return the 188 real messages of Alibaba's Canal."""
    return lines(SAMPLES / "canal" / "shop.jsonl")


def shop_debezium() -> list[bytes]:
    """Return the 229 real messages of Debezium."""
    return lines(SAMPLES / "debezium" / "shop.jsonl")


def lines(path: Path) -> list[bytes]:
    r"""Return the messages of a file of JSON lines, split at `\n` only: values may hold U+0085."""
    return [line for line in path.read_bytes().split(b"\n") if line]

"""The messages that ship with the project."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

SAMPLES = Path(str(resources.files("cdcavro") / "samples"))


def goldens(format: str) -> list[bytes]:
    """Give the golden messages of a format, in the order of their names."""
    return [path.read_bytes().rstrip(b"\n") for path in sorted((SAMPLES / format).glob("*.json"))]


def shop_canal() -> list[bytes]:
    """Give the 188 real messages of Alibaba's Canal."""
    return (SAMPLES / "oms_canal" / "shop.jsonl").read_bytes().rstrip(b"\n").split(b"\n")


def shop_debezium() -> list[bytes]:
    """Give the 229 real messages of Debezium."""
    return (SAMPLES / "debezium" / "shop.jsonl").read_bytes().rstrip(b"\n").split(b"\n")

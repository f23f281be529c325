"""The sample messages that come with the project, and messages of Canal as a test needs them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from cdcavro.exact.jsontext import parse, render
from cdcavro.wire.formats import FORMATS, get_format, rule_of

# The formats in which an update consists of two messages.
HALVED = frozenset(name for name in FORMATS if rule_of(name).has_halves)
# The formats whose rows the engine types; of the others a message holds rows of several tables.
ROW_FORMATS = [name for name in FORMATS if not rule_of(name).mixed]
# Sentences on messages that differ by the values of messages only, those of one reason together.
SENTENCES = [
    [
        "expected UTF-8, got byte 0xef at byte 0",
        "expected UTF-8, got byte 0x1b at byte 12",
        "expected UTF-8, got byte 0x00 at byte 9",
    ],
    ["expected JSON, got U+FEFF", "expected JSON, got U+202E", "expected JSON, got U+0041"],
    ["expected int, got 1.5E+10", "expected int, got -7", "expected int, got 12,345"],
    ["expected int, got 'it\\'s \"b\"'", "expected int, got 'a'", "expected int, got 'x\\x1b}'"],
]
SAMPLES = Path(str(resources.files("cdcavro") / "samples"))


def golden_files(format: str) -> dict[str, bytes]:
    """Return the contents of a format's golden files by name, sorted by name."""
    return {path.stem: path.read_bytes() for path in sorted((SAMPLES / format).glob("*.json"))}


def goldens(format: str) -> list[bytes]:
    """Return the golden messages of a format, sorted by the names of their files."""
    return [content.rstrip(b"\n") for content in golden_files(format).values()]


def bare_files(format: str) -> dict[str, bytes]:
    """Return what `golden_files` does, with the message that is in a Kafka record instead of the record."""
    own = get_format(format)
    return {name: render(own.message_in(parse(content))) for name, content in golden_files(format).items()}


def shipped() -> list[bytes]:
    """Return all sample messages of all formats, of all files."""
    return [message for path in sample_files() for message in lines(path)]


def sample_files() -> list[Path]:
    """Return the files of all sample messages."""
    return sorted(path for path in SAMPLES.rglob("*.json*") if path.is_file())


def shop_canal() -> list[bytes]:
    """Return the 188 messages that a real Alibaba Canal sent."""
    return lines(SAMPLES / "canal" / "shop.jsonl")


def shop_debezium() -> list[bytes]:
    """Return the 229 messages that a real Debezium sent."""
    return lines(SAMPLES / "debezium" / "shop.jsonl")


def lines(path: Path) -> list[bytes]:
    r"""Return the messages of a file of JSON lines, split at `\n` only: values may hold U+0085."""
    return [line for line in path.read_bytes().split(b"\n") if line]


def put_messages(folder: Path, number: int, messages: Iterable[bytes]) -> None:
    """Put messages into a new file of a folder, the one with a number."""
    folder.mkdir(exist_ok=True)
    hidden = folder / "_new"
    hidden.write_bytes(b"".join(message + b"\n" for message in messages))
    # Files are taken in the order of their times.
    os.utime(hidden, (1_700_000_000 + number,) * 2)
    hidden.rename(folder / f"{number:04}.jsonl")


def canal(
    type: str, rows: Sequence[dict[str, str]], *, id: int, old: Sequence[dict[str, str]] = (), **members: Any
) -> bytes:
    """Return a message of Canal's about the table `d.t`."""
    names = list(rows[0]) if rows else []
    said = {
        "type": type,
        "database": "d",
        "table": "t",
        "id": id,
        "es": 1_700_000_000_000 + id * 1000,
        "pkNames": ["id"],
        "mysqlType": dict.fromkeys(names, "int") or None,
        "data": list(rows) or None,
        "old": list(old) or None,
        "isDdl": False,
        "sql": "",
        **members,
    }
    return json.dumps(said).encode()

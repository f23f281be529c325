"""Rejects, the messages that could not be converted, with their bytes and the reason, and a limit on their number.

Both runners of the main job have the conversion of a line from here, which gives a payload or a reject, and the counts of
a run.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Final

import orjson

from cdcavro.errors import MessageError, number_of, shown
from cdcavro.exact.jsontext import trimmed
from cdcavro.files.lines import detect_format
from cdcavro.wire.formats import get_format
from cdcavro.wire.marked_members import version_note
from cdcavro.wire.sniff import AUTO, MIXED, other_format, sniff

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cdcavro.files.lines import Line

    Row = tuple[str | None, bytes | None, bytes | None, str | None, str | None]

_NUMBER: Final = re.compile(r"[0-9]{1,18}", re.ASCII)
_PERCENT: Final = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,9})?)%", re.ASCII)
_ALL: Final = 100


@dataclass(frozen=True, slots=True)
class Reject:
    """A message that was refused.

    Attributes: `raw` (bytes), the message as it came, or only its start if the line is longer than a
    message may be; `file` (str) and `line` (int, from 1); `format` (str), None if it is not known;
    `path` (str), the JSON path of the fault; `reason` (str).
    """

    raw: bytes
    file: str
    line: int
    format: str | None
    path: str
    reason: str

    @classmethod
    def of(cls, error: MessageError, line: Line, file: str) -> Reject:
        """Return the reject for a line of a file that raised an error."""
        return cls(line.raw, file, line.number, error.format, error.path, error.reason)

    def json(self) -> bytes:
        r"""Return the reject as one line of JSON without its `\n`; `raw` is in base64 (RFC 4648, section 4).

        >>> Reject(b"{", "a.jsonl", 7, None, "$", "expected JSON, got none").json()
        b'{"raw":"ew==","file":"a.jsonl","line":7,"format":null,"path":"$","reason":"expected JSON, got none"}'
        """
        members = {
            "raw": base64.b64encode(self.raw).decode(),
            "file": self.file.encode(errors="backslashreplace").decode(),
            "line": self.line,
            "format": self.format,
            "path": self.path,
            "reason": self.reason,
        }
        return trimmed(orjson.dumps(members))

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.format or 'message'}: {self.path}: {self.reason}"


@dataclass(frozen=True, slots=True)
class MaxRejects:
    """How many rejects are allowed: a number, or a percentage of all messages read."""

    limit: Fraction
    is_percent: bool = False

    @classmethod
    def of(cls, text: str) -> MaxRejects:
        """Return a limit that is spelled as a number such as `5`, or as a share such as `2%`. Raises `ValueError`.

        >>> MaxRejects.of("5").allows(6, 1000), MaxRejects.of("2%").allows(20, 1000)
        (False, True)
        """
        if _NUMBER.fullmatch(text):
            return cls(Fraction(text))
        percent = _PERCENT.fullmatch(text)
        if percent and Fraction(percent[1]) <= _ALL:
            return cls(Fraction(percent[1]), is_percent=True)
        raise ValueError(f"expected a number such as 5 or a share such as 2%, got {shown(text)}")

    def allows(self, rejected: int, read: int) -> bool:
        """Return whether `rejected` rejects among `read` messages are allowed.

        >>> from fractions import Fraction
        >>> MaxRejects(Fraction(2), is_percent=True).allows(2, 100)
        True
        """
        return rejected * 100 <= self.limit * read if self.is_percent else rejected <= self.limit


def is_all_rejected(counts: Mapping[str, int]) -> bool:
    """Return whether there were messages, and every one was rejected; `counts` says how many became what.

    >>> is_all_rejected({"read": 3, "rejected": 2, "tombstones": 1}), is_all_rejected({"read": 3, "rejected": 2, "written": 1})
    (True, False)
    """
    return has_rejects_only(counts) and not counts.get("statements")


def has_rejects_only(counts: Mapping[str, int]) -> bool:
    """Return whether messages were rejected, and none but statements was not: read as another format, few are taken.

    >>> has_rejects_only({"read": 3, "rejected": 2, "statements": 1}), has_rejects_only({"rejected": 2, "written": 1})
    (True, False)
    """
    return counts.get("rejected", 0) > 0 and not any(counts.get(name) for name in ("written", "left out"))


@dataclass(frozen=True, slots=True)
class Report:
    """The counts of a run.

    * `read` (int): how many lines were read.
    * `written` (Mapping[tuple[str, str], int]): how many messages were written, by format and operation.
    * `rejects` (Mapping[str, int]): how many lines were rejected, by format, which is an empty text if it is not known.
    """

    read: int
    written: Mapping[tuple[str, str], int]
    rejects: Mapping[str, int]

    @property
    def rejected(self) -> int:
        """The number of rejects."""
        return sum(self.rejects.values())

    @property
    def is_complete(self) -> bool:
        """Whether read = written + rejected."""
        return self.read == sum(self.written.values()) + self.rejected


def formats_of(heads: Mapping[str, Sequence[Line]], format: str) -> tuple[dict[str, str], list[str]]:
    """Return the format of each file, and notes: on other formats than the stated one, and on versions.

    `heads` are the first lines of files, by their paths. The format of a file each of whose messages is to be sniffed
    is an empty text.
    """
    formats: dict[str, str] = {}
    notes: list[str] = []
    for file, head in heads.items():
        name = detect_format(iter(head))[0] if format == AUTO else "" if format == MIXED else format
        note = version_note(b"\n".join(line.raw for line in head), name) if name else None
        other = other_format((line.raw for line in head), format) if format not in (AUTO, MIXED) else None
        formats[file] = name
        if other is not None:
            notes.insert(0, f"{file}: messages that look like {other} are read as {format}")
        notes += [] if note is None else [note]
    return formats, notes


def convert_line(line: Line, format: str) -> Row:
    """Convert a line, and return its format, its payload, and for a reject the raw bytes, JSON path and reason."""
    try:
        message = line.message()
        name = format or sniff(message)
        return name, get_format(name).encode(message), None, None, None
    except MessageError as error:
        return format or error.format, None, line.raw, error.path, error.reason


def note_of_hidden(inputs: Sequence[str]) -> str | None:
    """Return what is to be said of files in local folders that are passed over by name; None if there are none.

    The markers that Hadoop leaves are no such files.
    """
    hidden = (path for folder in inputs if Path(folder).is_dir() for path in Path(folder).rglob("[_.]*"))
    found = sorted(str(path) for path in hidden if path.is_file() and path.suffix != ".crc" and path.name != "_SUCCESS")
    if not found:
        return None
    names = number_of(len(found), "file whose name starts/files whose names start")
    return f"passing over {names} with _ or ., such as {found[0]}"

"""What both runners of the main job share: the format of a file, the conversion of a line, and the counts of a run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cdcavro.errors import MessageError, number_of
from cdcavro.files.lines import detect_format
from cdcavro.wire.formats import get_format
from cdcavro.wire.marked_members import version_note
from cdcavro.wire.sniff import AUTO, MIXED, other_format, sniff

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cdcavro.files.lines import Line

    Row = tuple[str | None, bytes | None, bytes | None, str | None, str | None]


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

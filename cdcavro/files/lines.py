r"""JSON lines from a file, a gzip file or standard input, in constant memory.

A line ends at `\n` and nowhere else: values may hold U+0085, U+2028 and a lone `\r`. An empty line
is a line; what stands behind the last `\n` is one only if it is not empty.
"""

from __future__ import annotations

import gzip
import io
import zlib
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cdcavro.errors import FileError, MessageError, TextError
from cdcavro.exact import jsontext
from cdcavro.files.streams import CHUNK, open_input, unwatched
from cdcavro.wire.sniff import AUTO, best, fits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cdcavro.files.streams import Advance

KEPT: Final = 64 << 10
HEAD_LINES: Final = 100
HEAD_BYTES: Final = 8 << 20
ONE_LINE: Final = "a message must stand on one line"
_OPENINGS: Final = (b"{", b"[")
_GZIP: Final = b"\x1f\x8b"


class Line(NamedTuple):
    r"""A line: its number from 1, its bytes without the `\n`, and its length in bytes.

    A line longer than `jsontext.MAX_LENGTH` has only its first 64 KiB in `raw`.
    """

    number: int
    raw: bytes
    length: int

    @classmethod
    def of(cls, number: int, message: bytes | str) -> Line:
        """Make the line that a message stood on."""
        raw = jsontext.to_bytes(message)
        return cls(number, raw, len(raw))

    @property
    def is_opening(self) -> bool:
        """Whether only the bracket stands here that opens a message printed on several lines."""
        return self.length < KEPT and self.raw.strip() in _OPENINGS

    def message(self) -> bytes:
        """Return the whole line. Raises `TextError` if it is longer than a message may be."""
        if self.length > len(self.raw):
            raise TextError(f"at most {jsontext.MAX_LENGTH} bytes", f"{self.length}")
        return self.raw


def read_lines(path: str, advance: Advance = unwatched) -> Iterator[Line]:
    """Read the lines of a file, of a gzip file (told by its name or its first bytes), or of standard input (`-`).

    `advance` is told how many bytes, compressed where they are, each read took. Raises `FileError`:
    the file cannot be read, or is gzip that ends too early or is damaged.
    """
    with open_text(path, advance) as stream:
        yield from _split(stream)


@contextmanager
def open_text(path: str, advance: Advance = unwatched) -> Iterator[io.BufferedReader[Any]]:
    """Open a file, a gzip file or standard input for reading text, unpacked; see `read_lines`."""
    with open_input(path, advance) as stream:
        if not is_packed(path, stream):
            yield stream
            return
        try:
            yield io.BufferedReader(gzip.GzipFile(fileobj=stream), CHUNK)
        except EOFError as error:
            raise FileError(path, "a whole gzip file", "one that ends too early") from error
        except (gzip.BadGzipFile, zlib.error) as error:
            raise FileError(path, "a gzip file", "one that is damaged or none") from error


def is_packed(path: str, stream: io.BufferedReader[Any]) -> bool:
    """Return gzip by the file's name or its first bytes."""
    return path.endswith(".gz") or stream.peek(len(_GZIP))[: len(_GZIP)] == _GZIP


def tell_format(lines: Iterator[Line]) -> tuple[str, Iterator[Line]]:
    """Return the format of a file by its first lines: at most 100 of them, and about 8 MiB.

    Gives the name, or an empty text if no line is a message of a known format, and all lines again.
    """
    head: list[Line] = []
    size = 0
    for line in lines:
        head.append(line)
        size += len(line.raw)
        if len(head) == HEAD_LINES or size >= HEAD_BYTES:
            break
    return best(map(_fitting, head)), chain(head, lines)


def told_lines(lines: Iterator[Line], format: str, *, file: str, option: str) -> tuple[str, Iterator[Line]]:
    """Tell the format of a file by its first lines, if `format` is `auto`; return its name, and all lines again.

    The name is an empty text for a file without a line, which is of any format. Raises `FileError`,
    which names the file and the option that states its format, if no message is of a known one.
    """
    if format != AUTO:
        return format, lines
    first = next(lines, None)
    if first is None:
        return "", lines
    name, lines = tell_format(chain([first], lines))
    if not name:
        raise untold(first, file=file, option=option)
    return name, lines


def untold(first: Line | None, *, file: str, option: str) -> FileError:
    """Make the error for a file whose format is not told by its first lines, of which this is the first."""
    expected = f"a message of a known format among the first {HEAD_LINES}, or {option} NAME"
    got = "none" if first is None or not first.is_opening else f"one on several lines: {ONE_LINE}"
    return FileError(file, expected, got)


def _fitting(line: Line) -> dict[str, int]:
    try:
        return fits(line.message())
    except MessageError:
        return {}


def _split(stream: io.BufferedReader) -> Iterator[Line]:
    number = 0
    while raw := stream.readline(jsontext.MAX_LENGTH + 1):
        number += 1
        if raw.endswith(b"\n"):
            yield Line(number, raw[:-1], len(raw) - 1)
        elif len(raw) <= jsontext.MAX_LENGTH:
            yield Line(number, raw, len(raw))
        else:
            yield Line(number, raw[:KEPT], len(raw) + skip_line(stream))


def skip_line(stream: io.BufferedReader[Any]) -> int:
    r"""Read what is left of a line and give its length without the `\n`."""
    skipped = 0
    while raw := stream.readline(CHUNK):
        skipped += len(raw)
        if raw.endswith(b"\n"):
            return skipped - 1
    return skipped

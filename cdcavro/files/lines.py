r"""Reading JSON lines from a file, plain or packed, or from standard input, in constant memory.

A line ends at `\n` and nowhere else: values may hold U+0085, U+2028 and a lone `\r`. An empty line is a
line, but what follows the last `\n` is one only if it is not empty.
"""

from __future__ import annotations

import gzip
import io
import re
import zlib
from contextlib import contextmanager
from itertools import chain
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cdcavro.errors import FileError, MessageError, SetupError, TextError, UnknownMessageError
from cdcavro.exact import jsontext
from cdcavro.files.streams import CHUNK, ignore_progress, open_input, say_nothing, shown_name
from cdcavro.wire.sniff import AUTO, best_format, fitting_formats, sniff

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cdcavro.files.streams import Advance, Say

KEPT: Final = 64 << 10
HEAD_LINES: Final = 100
HEAD_BYTES: Final = 8 << 20
ONE_LINE: Final = "a message must stand on one line"
# What puts messages on lines.
SPLIT: Final = f"{ONE_LINE}: `jq -c . FILE` writes each on one, and `jq -c '.[]' FILE` those of an array"
_OPENINGS: Final = (b"{", b"[")
# How an array of messages begins, and no line of a log such as `[INFO] started`.
_ARRAY: Final = re.compile(rb"\s*\[\s*\{")
BOM: Final = b"\xef\xbb\xbf"
MARK_NOTE: Final = "a byte order mark at the start is skipped"
GZIP: Final = "gzip"
ZSTANDARD: Final = "Zstandard"
_MARKS: Final = {GZIP: b"\x1f\x8b", ZSTANDARD: b"\x28\xb5\x2f\xfd"}
_ENDINGS: Final = {".gz": GZIP, ".zst": ZSTANDARD, ".zstd": ZSTANDARD}
# What files start with that are no text, whatever they are called.
_OTHERS: Final = {
    b"Obj\x01": "an Avro container file, which `cdcavro decode` reads",
    b"PK\x03\x04": "a zip archive",
    b"\xfd7zXZ\x00": "an xz file",
    b"\x04\x22\x4d\x18": "an lz4 file",
    **{b"BZh%d1AY&SY" % level: "a bzip2 file" for level in range(1, 10)},
    b"\xff\xfe": "text in UTF-16: messages are UTF-8",
    b"\xfe\xff": "text in UTF-16: messages are UTF-8",
}
_LONGEST_MARK: Final = max(map(len, _OTHERS))


class Line(NamedTuple):
    r"""A line: its number from 1, its bytes without the `\n`, and its length in bytes.

    A line longer than `jsontext.MAX_LENGTH` has only its first 64 KiB in `raw`.
    """

    number: int
    raw: bytes
    length: int

    @classmethod
    def of(cls, number: int, message: bytes | str) -> Line:
        """Return the line on which a message stood."""
        raw = jsontext.to_bytes(message)
        return cls(number, raw, len(raw))

    @property
    def is_opening(self) -> bool:
        """Whether the line is only the bracket that opens a message printed on several lines, or an array."""
        is_array = self.length == len(self.raw) and _ARRAY.match(self.raw) is not None
        return is_array or (self.length < KEPT and self.raw.strip() in _OPENINGS)

    def message(self) -> bytes:
        """Return the whole line. Raises `TextError` if it is longer than a message may be."""
        if self.length > len(self.raw):
            raise TextError(f"at most {jsontext.MAX_LENGTH} bytes", f"{self.length}")
        return self.raw


def read_lines(path: str, advance: Advance = ignore_progress, say: Say = say_nothing) -> Iterator[Line]:
    """Yield the lines of a file, plain, gzip or Zstandard (recognized by name or first bytes), or of standard input (`-`).

    `advance` is called with the number of bytes that each read took from the file, compressed bytes for what is packed,
    and `say` with a sentence about a byte order mark at the start, which is no part of the first line. Raises `FileError`
    if the file cannot be read, is packed and damaged or ends too early, or is of another kind, and `SetupError` for
    Zstandard where pyarrow is not installed.
    """
    with open_text(path, advance, say) as stream:
        yield from _lines_of(stream)


@contextmanager
def open_text(
    path: str, advance: Advance = ignore_progress, say: Say = say_nothing
) -> Iterator[io.BufferedReader[Any]]:
    """Open a file or standard input and yield a stream of its unpacked text; see `read_lines`."""
    with open_input(path, advance) as stream, unpack(path, stream, say) as text:
        yield text


@contextmanager
def unpack(path: str, stream: io.BufferedReader[Any], say: Say = say_nothing) -> Iterator[io.BufferedReader[Any]]:
    """Yield a stream of the text in a file's stream, which may be packed, without a byte order mark; see `read_lines`."""
    packing = packing_of(path, stream)
    if packing is None:
        yield skip_mark(path, stream, say)
        return
    try:
        yield skip_mark(path, io.BufferedReader(_UNPACK[packing](stream), CHUNK), say)
    except EOFError as error:
        raise FileError(path, f"a whole {packing} file", "one that ends too early") from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise FileError(path, f"a {packing} file", "one that is damaged or none") from error


def packing_of(path: str, stream: io.BufferedReader[Any]) -> str | None:
    """Return how a file is packed, by its first bytes or its name: "gzip", "Zstandard", or None for plain text.

    Raises `FileError` for a file that is no text by its first bytes.
    """
    start = stream.peek(_LONGEST_MARK)
    for mark, kind in _OTHERS.items():
        if start.startswith(mark):
            raise FileError(path, "JSON lines, plain or packed with gzip or Zstandard", kind)
    by_content = next((name for name, mark in _MARKS.items() if start.startswith(mark)), None)
    return by_content or _ENDINGS.get(PurePath(path).suffix.lower())


def is_packed(path: str, start: bytes) -> bool:
    """Return whether a file is packed: by its first bytes, or with Zstandard by its name.

    A name that ends in `.gz` shows nothing: Spark may have unpacked the file already.
    """
    is_named = _ENDINGS.get(PurePath(path).suffix.lower()) == ZSTANDARD
    return is_named or start.startswith(tuple(_MARKS.values()))


def skip_mark(path: str, stream: io.BufferedReader[Any], say: Say) -> io.BufferedReader[Any]:
    """Skip the byte order mark at the start of a text, if there is one, and say so. Return the stream."""
    if stream.peek(len(BOM))[: len(BOM)] == BOM:
        stream.read(len(BOM))
        say(f"{shown_name(path)}: {MARK_NOTE}")
    return stream


class _Zstandard(io.RawIOBase):
    """A raw stream of what is packed with Zstandard in another. Raises `SetupError` where pyarrow is not installed."""

    def __init__(self, stream: io.BufferedReader[Any]) -> None:
        super().__init__()
        try:
            import pyarrow as pa  # noqa: PLC0415  it takes long to import, and an extra brings it
        except ImportError as error:
            sentence = "pyarrow is not installed, which unpacks Zstandard: pip install 'cdcavro[arrow]'"
            raise SetupError(sentence) from error
        self._text = pa.CompressedInputStream(pa.PythonFile(stream, "r"), "zstd")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            raw = self._text.read(len(buffer))
        except OSError as error:
            # Of an end that comes too early Arrow says so; its other errors are of bytes that are none of Zstandard's.
            raise (EOFError if "truncated" in str(error).lower() else zlib.error)(str(error)) from error
        buffer[: len(raw)] = raw
        return len(raw)


_UNPACK: Final[dict[str, Callable[[io.BufferedReader[Any]], Any]]] = {
    GZIP: lambda stream: gzip.GzipFile(fileobj=stream),
    ZSTANDARD: _Zstandard,
}


def detect_format(lines: Iterator[Line]) -> tuple[str, Iterator[Line]]:
    """Return the name of the format that fits a file's first lines best, and all its lines again.

    At most 100 lines and about 8 MiB are read. The name is empty if no line is a message of a known format.
    """
    head: list[Line] = []
    size = 0
    for line in lines:
        head.append(line)
        size += len(line.raw)
        if len(head) == HEAD_LINES or size >= HEAD_BYTES:
            break
    return best_format(map(_fitting_formats, head)), chain(head, lines)


def choose_format(lines: Iterator[Line], format: str, *, file: str, option: str) -> tuple[str, Iterator[Line]]:
    """Return the name of a file's format, recognized by its first lines if `format` is `auto`, and all lines again.

    The name is empty for a file without lines, which fits any format. Raises `FileError`, which names the
    file and the option that states its format, if no message is of a known format.
    """
    if format != AUTO:
        return format, lines
    first = next(lines, None)
    if first is None:
        return "", lines
    name, lines = detect_format(chain([first], lines))
    if not name:
        raise unknown_format(first, file=file, option=option)
    return name, lines


def unknown_format(first: Line | None, *, file: str, option: str) -> FileError:
    """Return the error for a file whose format its first lines do not show; `first` is the first of them."""
    expected = f"a message of a known format among the first {HEAD_LINES}, or {option} NAME"
    if first is None or not first.is_opening:
        return FileError(file, expected, _describe(first) or "none")
    return FileError(file, expected, f"{_describe(first) or 'one on several lines'}: {SPLIT}")


def _describe(first: Line | None) -> str | None:
    """Return what a line is, or why it is refused; None if it is no JSON."""
    try:
        if first is not None:
            sniff(first.message())
    except UnknownMessageError as error:
        return error.got
    except TextError:
        return None
    except MessageError as error:
        return f"one that is refused: {error}"
    return None


def _fitting_formats(line: Line) -> dict[str, int]:
    try:
        return fitting_formats(line.message())
    except MessageError:
        return {}


def _lines_of(stream: io.BufferedReader) -> Iterator[Line]:
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
    r"""Skip the rest of a line and return its length without the `\n`."""
    skipped = 0
    while raw := stream.readline(CHUNK):
        skipped += len(raw)
        if raw.endswith(b"\n"):
            return skipped - 1
    return skipped

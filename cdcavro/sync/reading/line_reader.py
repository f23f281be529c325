r"""Reader of files of lines into record batches: plain text, unpacked text, and rejects of JSON.

Lines end at `\n` and nowhere else. A file is read in blocks, each of which Arrow splits at once.
"""

from __future__ import annotations

import base64
import bz2
import io
import json
import re
import struct
from contextlib import contextmanager, suppress
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from cdcavro.errors import FileError
from cdcavro.exact.jsontext import MAX_LENGTH
from cdcavro.files.lines import KEPT, is_packed, skip_line, skip_mark, unpack
from cdcavro.files.streams import CHUNK, open_input, say_nothing
from cdcavro.sync.outputs.reject_places import CUT
from cdcavro.sync.reading.message_columns import MOST_ROWS, SCHEMA, message_batch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cdcavro.files.streams import Say

    Stream = io.BufferedReader[Any]

_BLOCK: Final = 4 << 20
_START: Final = 8
# What Hadoop unpacks by the name of a file, and is not unpacked here.
_OTHERS: Final = frozenset({".deflate", ".lz4", ".snappy"})
_NAMES: Final = ("topic", "partition", "offset", "file", "line")
_BITS: Final = {"partition": 31, "offset": 63, "line": 63}
_INTEGER: Final = re.compile(r"-?[0-9]+", re.ASCII)
# What Java takes for white space.
_JAVA_SPACE: Final = r"\t-\r\x1c- \u1680\u2000-\u2006\u2008-\u200a\u2028\u2029\u205f\u3000"
_SPACE: Final = re.compile(f"[{_JAVA_SPACE}]+")
# Behind its padding is no white space.
_BASE64: Final = re.compile(rf"([A-Za-z0-9+/{_JAVA_SPACE}]*)(={{0,2}})")
_QUARTET: Final = 4


def read_lines(path: str, uri: str, say: Say = say_nothing, size: int = _BLOCK) -> Iterator[pa.RecordBatch]:
    """Yield the lines of a file in batches of `SCHEMA`, in memory for a block of `size` bytes and one message.

    `say` is called with a sentence for a file that begins with a byte order mark. Raises `FileError` for a file that
    cannot be read, and for a packed one that is damaged, ends too early, or is packed as Spark only can unpack it.
    """
    with _open_text(path, say) as stream:
        for lines, length in _line_arrays(stream, size):
            lengths = pc.binary_length(lines).cast(pa.int64()) if length is None else pa.array([length], pa.int64())
            for start in range(0, len(lines), MOST_ROWS):
                part = lines.slice(start, MOST_ROWS)
                own = {"raw": part, "length": lengths.slice(start, MOST_ROWS)}
                yield message_batch(len(part), own, {"file": uri})


@contextmanager
def _open_text(path: str, say: Say) -> Iterator[Stream]:
    """Open a file and yield a stream of its text, unpacked by the name as Hadoop does, or by the first bytes."""
    suffix = PurePath(path).suffix
    if suffix in _OTHERS:
        raise FileError(path, "JSON lines, plain or packed with gzip, bzip2 or Zstandard", f"a {suffix} file")
    with open_input(path) as stream:
        start = stream.peek(_START)[:_START]
        if not start or (suffix not in (".gz", ".bz2") and not is_packed(path, start)):
            yield skip_mark(path, stream, say)
            return
        if suffix == ".bz2":
            try:
                yield skip_mark(path, io.BufferedReader(bz2.BZ2File(stream), CHUNK), say)
            except EOFError as error:
                raise FileError(path, "a whole bzip2 file", "one that ends too early") from error
            except OSError as error:
                raise FileError(path, "a bzip2 file", "one that is damaged or none") from error
            return
        with unpack(path, stream, say) as text:
            yield text
        if stream.read(1):
            raise FileError(path, "one compressed file", "bytes after its end")


def _line_arrays(stream: Stream, size: int) -> Iterator[tuple[pa.Array, int | None]]:
    """Yield the lines of a text, some at a time; one longer than a message may be comes alone, with its length."""
    block, left = bytearray(size), 0
    while True:
        with memoryview(block) as view:
            # `readinto` of a packed text gives less than there is room for.
            count = stream.readinto(view[left:])
        filled = left + count
        end = block.rfind(b"\n", left, filled)
        if end < 0 and count:
            left = filled
            if filled == len(block):
                if filled > MAX_LENGTH:
                    yield pa.array([bytes(block[:KEPT])], pa.binary()), filled + skip_line(stream)
                    block, left = bytearray(size), 0
                else:
                    block += bytes(min(filled, MAX_LENGTH + 1 - filled))
            continue
        if not count:
            if filled:
                yield _split(block, filled), None
            return
        yield _split(block, end), None
        rest = block[end + 1 : filled]
        left = len(rest)
        if len(block) > size > left:
            # A long message has been read.
            block = bytearray(size)
        block[:left] = rest


def _split(block: bytearray, end: int) -> pa.Array:
    """Return the lines in the bytes up to a position."""
    whole = pa.Array.from_buffers(pa.binary(), 1, [None, pa.py_buffer(struct.pack("=ii", 0, end)), pa.py_buffer(block)])
    return pc.split_pattern(whole, b"\n").flatten()


def read_rejects(path: str) -> Iterator[pa.RecordBatch]:
    """Yield the rejects of a file in batches of `SCHEMA`, each with the time of its lane as its `clock`.

    A line that is none gives an empty message, and what is no value of its column is null, as on Spark. Raises
    `FileError` for a file that cannot be read.
    """
    rows: list[dict[str, Any]] = []
    size = 0
    with _open_text(path, say_nothing) as stream, io.TextIOWrapper(stream, "utf-8", errors="surrogateescape") as text:
        for line in text:
            size += len(line)
            rows += _rejects_in(line)
            if len(rows) >= MOST_ROWS or size > _BLOCK:
                yield pa.RecordBatch.from_pylist(rows, schema=SCHEMA)
                rows, size = [], 0
    if rows:
        yield pa.RecordBatch.from_pylist(rows, schema=SCHEMA)


class _Number(str):
    """The text of a number."""

    __slots__ = ()


_DECODER: Final = json.JSONDecoder(parse_int=_Number, parse_float=_Number, parse_constant=_Number)


def _rejects_in(line: str) -> list[dict[str, Any]]:
    """Return the rejects on a line: one, those of an array, or none on an empty line."""
    line = line.strip(" \t\r\n")
    if not line:
        return []
    try:
        # What is not UTF-8 is no JSON.
        line.encode()
        # As Spark does, what follows the value is passed over.
        value, end = _DECODER.raw_decode(line)
    except (ValueError, RecursionError):
        return [_reject(None)]
    values = value if isinstance(value, list) else [value]
    if any(isinstance(one, dict | list) for own in values if isinstance(own, dict) for one in own.values()):
        values = _with_texts(values, line[:end])
    return [_reject(one) for one in values]


def _with_texts(values: list[Any], text: str) -> list[Any]:
    """Return objects whose members that are objects or arrays are replaced by their texts, as Spark takes them."""
    with suppress(msgspec.MsgspecError, UnicodeEncodeError, RecursionError):
        parts = msgspec.json.decode(text if text.startswith("[") else f"[{text}]", type=list[dict[str, msgspec.Raw]])
        return [
            {name: bytes(part[name]).decode() if isinstance(one, dict | list) else one for name, one in own.items()}
            for own, part in zip(values, parts, strict=True)
        ]
    return values


def _reject(value: Any) -> dict[str, Any]:
    own = value if isinstance(value, dict) else {}
    raw = _from_base64(_text(own.get("raw"))) or b""
    cut = re.search(CUT, _text(own.get("reason")) or "") if len(raw) >= KEPT else None
    places = {name: _integer(own.get(name), _BITS[name]) if name in _BITS else _text(own.get(name)) for name in _NAMES}
    return {
        "raw": raw,
        "length": len(raw) if cut is None else int(cut[1]),
        "key": _from_base64(_text(own.get("record_key"))),
        **places,
        "clock": "null" if own.get("clock") is None else _text(own["clock"]),
    }


def _text(value: Any) -> str | None:
    """Return a value as a text, as Spark does; half a character is a question mark in Java."""
    if value is None:
        return None
    if isinstance(value, str):
        return str(value).encode(errors="replace").decode()
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _integer(value: Any, bits: int) -> int | None:
    """Return an integer of at most so many bits and a sign; None for all else."""
    if not isinstance(value, _Number) or _INTEGER.fullmatch(value) is None:
        return None
    number = int(value)
    return number if -(1 << bits) <= number < 1 << bits else None


def _from_base64(text: str | None) -> bytes | None:
    """Return the bytes of a text in base64, as Spark's `try_to_binary` does; None for other texts."""
    found = None if text is None else _BASE64.fullmatch(text)
    if found is None:
        return None
    letters, padding = _SPACE.sub("", found[1]), len(found[2])
    count = len(letters)
    if (count + padding) % _QUARTET if padding else count % _QUARTET == 1:
        return None
    return base64.b64decode(letters + "=" * (-count % _QUARTET))

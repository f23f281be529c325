r"""Source of files of this machine: which of them are new, and their lines in record batches, as on Spark.

It is also the source of rejects that are read again, whose files have a reject of JSON on each line.

Files of lines are read into record batches: plain text, unpacked text, and rejects of JSON. Lines end at `\n` and
nowhere else. A file is read in blocks, each of which Arrow splits at once.
"""

from __future__ import annotations

import base64
import bz2
import io
import json
import os
import re
import struct
from collections import deque
from contextlib import contextmanager, suppress
from pathlib import Path, PurePath
from stat import S_ISREG
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import quote

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from cdcavro.errors import FileError
from cdcavro.exact.jsontext import MAX_LENGTH
from cdcavro.files.lines import KEPT, is_packed, skip_line, skip_mark, unpack
from cdcavro.files.streams import CHUNK, open_input, plain_path, say_nothing
from cdcavro.sync.outputs.reject_places import CUT
from cdcavro.sync.reading.message_columns import MOST_ROWS, SCHEMA, message_batch
from cdcavro.sync.sources import check_links, check_stored, expand_pattern

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping

    from cdcavro.files.streams import Say
    from cdcavro.sync.reading.checkpoint import End, FileLog

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


_MILLISECOND: Final = 1_000_000
_LOG_OFFSET: Final = "logOffset"
_PATTERN: Final = "*?[{"
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
# Where a stream of Spark's notes which of the files beside it count.
_SINK_LOG: Final = "_spark_metadata"
# What a URI of Java's has as it is.
_SAFE: Final = "/-_.!~*'():@&=+$,;"


class TakenFile(NamedTuple):
    """A file of a batch; its lines are a lane of their own."""

    # Its URI, as Spark writes it.
    uri: str
    # When it was modified, in milliseconds since 1970.
    time: int

    @property
    def path(self) -> str:
        """Its path."""
        return plain_path(self.uri)


class FileReader:
    """Files of JSON lines, plain or packed: one, a pattern of paths as Hadoop has them, or a folder with new ones.

    * `path` (str): a path, or an address that begins with `file://`.
    * `most` (int or None): how many files a batch has at most.

    Raises `FileError` for an address of another machine.
    """

    def __init__(self, path: str, most: int | None = None) -> None:
        self.path, self.most = path, most
        is_address = _SCHEME.match(path) is not None
        if is_address and not path.startswith("file://"):
            raise FileError(path, "files of this machine, as Spark is not used", "an address of others")
        self._root = path.removeprefix("file://")
        # An address is a pattern, whatever is there.
        self._is_exact = not is_address and Path(path).exists()

    @property
    def name(self) -> str:
        """What the source is called in messages."""
        return self.path

    def check(self) -> None:
        """Raise `FileError` where nothing is, for links in a circle, and for what cannot be read."""
        for root in self._roots():
            if Path(root, _SINK_LOG).is_dir():
                raise FileError(root, "files that no stream of Spark has written", f"a folder with {_SINK_LOG}")
            if not os.access(root, os.R_OK):
                raise FileError(root, "a file or folder that can be read", "one that cannot")

    def new(self, taken: Container[str]) -> list[TakenFile]:
        """Return the files that were not taken, by their URIs, those first that were modified first.

        Raises `FileError` as `check` does.
        """
        self.check()
        found = {one.uri: one for root in self._roots() for one in _files_below(root) if one.uri not in taken}
        return sorted(found.values(), key=lambda one: (one.time, one.uri))

    def batches(self, file: TakenFile, say: Say = say_nothing) -> Iterator[pa.RecordBatch]:
        """Yield the lines of a file; see `read_lines`."""
        if not _is_read(file.path):
            return iter(())
        # Spark's stream takes the files of a batch by their paths, whose URIs are shorter than those in the log.
        return read_lines(file.path, file.uri.replace("file:///", "file:/", 1), say)

    def _roots(self) -> list[str]:
        """Return the files and folders that the path means. Raises `FileError` if there is none, and no pattern."""
        if self._is_exact or Path(self.path).exists():
            root = Path(self.path).resolve()
            check_links(root)
            return [str(root)]
        if not any(mark in self._root for mark in _PATTERN):
            if self._root != self.path and Path(self._root).exists():
                return [self._root]
            raise FileError(self.path, "a file or folder", "none")
        return expand_pattern(str(Path.cwd() / self._root))


class ReplayReader:
    """The files of rejects that are read again, in a folder and those within it."""

    most: Final = None

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()

    def new(self, taken: Container[str]) -> list[TakenFile]:
        """Return the files that were not taken, by their URIs; none if there is no folder."""
        found = (one for one in _files_below(str(self.folder)) if one.uri not in taken)
        return sorted(found, key=lambda one: (one.time, one.uri))

    def batches(self, file: TakenFile, _: Say = say_nothing) -> Iterator[pa.RecordBatch]:
        """Yield the rejects of a file; see `read_rejects`."""
        return read_rejects(file.path) if _is_read(file.path) else iter(())


class FileProgress:
    """How far a source of files has been read, as the log of a checkpoint has it."""

    def __init__(self, source: FileReader | ReplayReader, log: FileLog) -> None:
        self._source, self._log = source, log
        self._taken: dict[str, int] = {}
        self._seen = -1
        self._waiting: deque[TakenFile] = deque()

    def look(self) -> int:
        """Look for new files, which the next batches take, and return how many wait. Raises `FileError`."""
        waiting = {one.uri for one in self._waiting}
        self._waiting.extend(one for one in self._source.new(self.taken()) if one.uri not in waiting)
        return len(self._waiting)

    def advance(self) -> End:
        """Take the files of the next batch, and return where the source is behind it; None if it never had a file.

        They are in the log before they are in a batch. One that is there already, as a run was cut off between, is
        in the next batch.
        """
        files: list[TakenFile] = []
        while self._waiting and (self._source.most is None or len(files) < self._source.most):
            # One that is gone since it was found is passed over.
            files += _taken(self._waiting.popleft().path)
        if files:
            self._log.add(files)
        last = self._log.last
        return None if last < 0 else {_LOG_OFFSET: last}

    @property
    def waiting(self) -> int:
        """How many files were found and are in no batch."""
        return len(self._waiting)

    def files(self, start: End, end: End) -> list[TakenFile]:
        """Return the files of a batch. Raises `FileError` if the log does not have them."""
        first = -1 if start is None else start[_LOG_OFFSET]
        last = -1 if end is None else end[_LOG_OFFSET]
        return [TakenFile(one.uri, one.time) for one in self._log.entries(first + 1, last)]

    def taken(self) -> dict[str, int]:
        """Return the files that were taken, by URI, with their times of modification then, in milliseconds."""
        last = self._log.last
        if last > self._seen:
            self._taken.update((one.uri, one.time) for one in self._log.every(self._seen))
            self._seen = last
        return self._taken


def check_unchanged(taken: Mapping[str, int]) -> None:
    """Raise `FileError` for a file that has changed since it was taken, as it is not read again.

    `taken` has the URIs of all files that were taken, with the times at which they were modified then, in milliseconds.
    """
    changed = sorted(path for uri, time in taken.items() if _time_of(path := plain_path(uri), time) != time)
    if changed:
        more = f" (and {len(changed) - 1:,} more)" if len(changed) > 1 else ""
        hint = "what was added is not read: put it into a file of its own, and move this one away"
        raise FileError(changed[0], "the file as it was when it was read", f"one that has changed{more}; {hint}")


def file_uri(path: str) -> str:
    """Return the URI of an absolute path, as Hadoop and Spark write it.

    >>> file_uri("/tmp/a b/é%.jsonl")
    'file:///tmp/a%20b/é%25.jsonl'
    """
    return "file://" + "".join(one if _is_kept(one) else quote(one, safe=_SAFE) for one in path)


def is_hidden(name: str) -> bool:
    """Whether Spark passes over a file or folder of this name in a folder.

    >>> [is_hidden(name) for name in ("_new", ".a", "a._COPYING_", "_day=1", "_metadata", "a")]
    [True, True, True, False, False, False]
    """
    is_excluded = (name.startswith("_") and "=" not in name) or name.startswith(".") or name.endswith("._COPYING_")
    return is_excluded and not name.startswith(("_common_metadata", "_metadata"))


def _is_read(path: str) -> bool:
    """Whether Spark reads a file that it has taken: it takes metadata of Parquet as well."""
    name = Path(path).name
    return not name.startswith(".") and (not name.startswith("_") or "=" in name)


def _is_kept(one: str) -> bool:
    """Whether a URI of Java's has a character as it is that is none of ASCII."""
    return not one.isascii() and (one == "\u00ad" or one.isprintable()) and not one.isspace()


def _files_below(root: str) -> Iterable[TakenFile]:
    """Yield the files that Spark would read in a file or folder."""
    waiting = [root]
    if not Path(root).is_dir():
        waiting = []
        if not is_hidden(Path(root).name):
            yield from _taken(root)
    while waiting:
        # What somebody moves away meanwhile is not there.
        with suppress(FileNotFoundError, NotADirectoryError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if is_hidden(entry.name):
                    continue
                if entry.is_dir():
                    waiting.append(entry.path)
                else:
                    yield from _taken(entry.path)


def _taken(path: str) -> Iterable[TakenFile]:
    with suppress(FileNotFoundError, NotADirectoryError):
        status = os.stat(path)  # noqa: PTH116  it is called often
        if not S_ISREG(status.st_mode):
            check_stored(path)
        yield TakenFile(file_uri(path), status.st_mtime_ns // _MILLISECOND)


def _time_of(path: str, otherwise: int) -> int:
    """Return when a file was modified, in milliseconds; what is given for one that is gone, which is no change."""
    try:
        status: Any = os.stat(path)  # noqa: PTH116
    except (FileNotFoundError, NotADirectoryError):
        return otherwise
    return int(status.st_mtime_ns) // _MILLISECOND

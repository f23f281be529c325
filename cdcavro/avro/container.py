"""Container files of payloads that are already encoded (Avro 1.8.2, "Object Container Files").

The header holds the schema as it was written, and the codec. A block is a count, a length, payloads compressed by the
codec ("Required Codecs"), and the sync marker. Its bytes are read only after its length is checked, and decompressed
only after their decompressed size is measured. The payloads themselves are not touched.
"""

from __future__ import annotations

import io
import secrets
import zlib
from bisect import bisect_left
from collections import deque
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from cdcavro.avro.binary import write_bytes, write_long
from cdcavro.avro.schema import parse_schema
from cdcavro.errors import FileError, SchemaError, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from cdcavro.avro.schema import Schema

    Begin = Callable[[Callable[[], Any]], Callable[[], Any]]
    from io import BufferedReader

BLOCK_BYTES: Final = 64 << 10
BLOCK_COUNT: Final = 1000
_MAGIC: Final = b"Obj\x01"
CODECS: Final = ("null", "deflate")
MARKER_BYTES: Final = 16
MAX_BLOCK: Final = 112 << 20
_RAW: Final = -15
_DEFLATE_RATIO: Final = 1032
_MEASURED: Final = 16 << 20
_CARRY: Final = 0x80
_LONG_BYTES: Final = 10


def header(schema: Schema, framing: Framing) -> bytes:
    """Return the header of a file: the schema as it was written, the codec and the sync marker."""
    entries = {"avro.codec": framing.codec, "avro.schema": schema.json}
    out = bytearray(_MAGIC)
    write_long(out, len(entries))
    for name, value in entries.items():
        write_bytes(out, name.encode())
        write_bytes(out, value.encode())
    write_long(out, 0)
    return bytes(out) + framing.marker


class BlockQueue:
    """A queue of blocks, which are written to their files in the order in which they were put in.

    `begin` starts packing a block and returns a function that waits for the result; at most `most` blocks wait to be
    written.
    """

    def __init__(self, begin: Begin = lambda work: work, most: int = 0) -> None:
        self._begin, self._most = begin, most
        self._waiting: deque[tuple[BinaryIO, Callable[[], list[bytes]] | None]] = deque()

    def put(self, stream: BinaryIO, pack: Callable[[], list[bytes]]) -> None:
        """Add a block; `pack` returns its bytes in pieces."""
        self._waiting.append((stream, self._begin(pack)))
        self.finish(self._most)

    def close(self, stream: BinaryIO) -> None:
        """Close a file when all its blocks are written."""
        self._waiting.append((stream, None))
        self.finish(self._most)

    def finish(self, most: int = 0) -> None:
        """Write blocks until at most `most` wait."""
        while len(self._waiting) > most:
            stream, packed = self._waiting.popleft()
            if packed is None:
                stream.close()
            else:
                stream.writelines(packed())

    def drop(self) -> None:
        """Close all files without writing the blocks that wait."""
        for stream, _ in self._waiting:
            stream.close()
        self._waiting.clear()


class ContainerWriter:
    """A writer of payloads into a container file, with about 64 KiB or 1,000 payloads in a block.

    Created from a binary stream, the schema with which the payloads were written, one of `CODECS`, and a queue that
    its blocks go through. It writes the header at once; call `flush` at the end.
    """

    def __init__(
        self, stream: BinaryIO, schema: Schema, *, codec: str = "deflate", queue: BlockQueue | None = None
    ) -> None:
        self._stream = stream
        self._framing = Framing(codec, secrets.token_bytes(MARKER_BYTES))
        self._queue = BlockQueue() if queue is None else queue
        self._payloads = io.BytesIO()
        self._count = 0
        stream.write(header(schema, self._framing))

    def write(self, payload: bytes) -> None:
        """Write one payload."""
        self._add(payload, 1)

    def write_all(self, payloads: bytes, ends: Sequence[int]) -> None:
        """Write payloads that stand one after another; `ends` are the places behind them."""
        raw, done, start = memoryview(payloads), 0, 0
        while done < len(ends):
            full = bisect_left(ends, start + BLOCK_BYTES - self._payloads.tell(), done) + 1
            last = min(full, done + BLOCK_COUNT - self._count, len(ends))
            self._add(raw[start : ends[last - 1]], last - done)
            done, start = last, ends[last - 1]

    def flush(self) -> None:
        """Write the remaining payloads as a block, and flush the stream, unless the block waits in the queue."""
        if self._count:
            self._queue.put(self._stream, partial(self._framing.pack, Block(self._payloads.getvalue(), self._count)))
            self._payloads = io.BytesIO()
            self._count = 0
        self._stream.flush()

    def _add(self, payloads: bytes | memoryview, count: int) -> None:
        self._payloads.write(payloads)
        self._count += count
        if self._count == BLOCK_COUNT or self._payloads.tell() >= BLOCK_BYTES:
            self.flush()


class ContainerReader:
    """The blocks of a container file.

    Created from a binary stream and the file's name for errors. Raises `FileError`, on creation and during iteration.

    Attributes: `file` (str), that name;
    `schema` (`Schema`), the one in the header, with which the payloads were written;
    `framing` (`Framing`);
    `position` (int), the offset at which the first block starts.
    """

    def __init__(self, stream: io.BufferedReader, file: str) -> None:
        self._stream = stream
        self.file = file
        start = stream.peek(len(_MAGIC))[: len(_MAGIC)]
        if start != _MAGIC:
            got = f"one that starts with {ascii(start)[1:]}" if start else "an empty one"
            raise FileError(file, "an Avro container file", got)
        source = ContainerStream(stream, file)
        codec, declared = self._header(source)
        if codec not in CODECS:
            raise FileError(file, f"one of the codecs {', '.join(CODECS)}", shown(codec))
        self.position = source.position
        # A header ends in the marker.
        self.framing = Framing(codec, source.last)
        try:
            self.schema = parse_schema(declared)
        except SchemaError as error:
            raise FileError(file, "an Avro schema in the header", str(error)) from error

    def __iter__(self) -> Iterator[Block]:
        for frame in self.frames():
            yield self.framing.unpack(frame, self.file)

    def frames(self) -> Iterator[PackedBlock]:
        """Return an iterator over the blocks as stored in the file. Raises `FileError`."""
        return read_frames(self._stream, self.position, self.framing, self.file)

    def _header(self, source: ContainerStream) -> tuple[str, str]:
        source.take(len(_MAGIC))
        entries = {"avro.codec": b"null", "avro.schema": b""}
        while count := source.take_long():
            if count < 0:
                source.take_long()
            for _ in range(abs(count)):
                name = source.take(source.take_long()).decode("utf-8", "replace")
                value = source.take(source.take_long())
                if name in entries:
                    entries[name] = value
        source.take(MARKER_BYTES)
        try:
            return entries["avro.codec"].decode(), entries["avro.schema"].decode()
        except UnicodeDecodeError as error:
            raise damaged(self.file, "metadata that is not UTF-8") from error


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive payloads."""

    # Their bytes, one payload behind another.
    payloads: bytes
    # How many payloads there are.
    count: int


@dataclass(frozen=True, slots=True)
class PackedBlock:
    """A block as stored in a file."""

    # The number of payloads.
    count: int
    # The offset in the file at which the block starts.
    place: int
    # The offset at which its payloads start.
    start: int
    # How many bytes the payloads occupy.
    size: int
    # These bytes, empty if they were skipped.
    packed: bytes

    @property
    def end(self) -> int:
        """The offset in the file at which the next block starts."""
        return self.start + self.size + MARKER_BYTES


@dataclass(frozen=True, slots=True)
class Framing:
    """What all blocks of one file share."""

    # One of `CODECS`.
    codec: str
    # The bytes behind each block.
    marker: bytes

    def pack(self, block: Block) -> list[bytes]:
        """Return a block as stored in a file, in pieces to be written one after another."""
        return self.pack_pieces([block.payloads], block.count)

    def pack_pieces(self, payloads: list[bytes], count: int) -> list[bytes]:
        """Return the same for `count` payloads that are given in pieces."""
        packed = [_deflate(b"".join(payloads))] if self.codec == "deflate" else payloads
        head = bytearray()
        write_long(head, count)
        write_long(head, sum(map(len, packed)))
        return [bytes(head), *packed, self.marker]

    def unpack(self, frame: PackedBlock, file: str) -> Block:
        """Return the decompressed payloads of a block. Raises `FileError`, which names the file."""
        if self.codec != "deflate":
            return Block(frame.packed, frame.count)
        try:
            _check_inflated(frame, file)
            return Block(zlib.decompressobj(_RAW).decompress(frame.packed), frame.count)
        except zlib.error as error:
            raise damaged(file, str(error)) from error


def read_frames(
    stream: BufferedReader, position: int, framing: Framing, file: str, *, skip: bool = False
) -> Iterator[PackedBlock]:
    """Yield the blocks from the stream's current place, which is offset `position` in the file, to its end.

    With `skip`, the payloads are not read; the stream must then be seekable. Raises `FileError`, which
    names the file, for a block that is cut short, absurdly long, or does not end in the marker.
    """
    source = ContainerStream(stream, file, position)
    while stream.peek(1):
        place = source.position
        count = source.take_long()
        size = source.take_long()
        start = source.position
        source.check_length(size)
        packed = source.skip(size) if skip else source.take(size)
        if source.take(MARKER_BYTES) != framing.marker:
            raise damaged(file, "expected sync marker not found")
        if count < 0:
            raise FileError(file, "a count of payloads", f"{count}")
        yield PackedBlock(count, place, start, size, packed)


def damaged(file: str, reason: str) -> FileError:
    """Return the error for a container file that breaks the specification."""
    return FileError(file, "an Avro container file that can be read", shown(reason))


def cut_short(file: str) -> FileError:
    """Return the error for a container file that ends within a block."""
    return FileError(file, "a whole Avro container file", "one that ends too early")


class ContainerStream:
    """The stream of a container file, which tracks its position, even in a pipe, and refuses absurd lengths."""

    def __init__(self, stream: BufferedReader, file: str, position: int = 0) -> None:
        self._stream = stream
        self._file = file
        # In bytes from the start of the file.
        self.position = position
        # The bytes that were read last.
        self.last = b""

    def read(self, size: int) -> bytes:
        """Read `size` bytes, or fewer if the stream ends. Raises `FileError` for an absurd length."""
        self.check_length(size)
        self.last = self._stream.read(size)
        self.position += len(self.last)
        return self.last

    def check_length(self, size: int) -> None:
        """Raise `FileError` for an absurd length."""
        if not 0 <= size <= MAX_BLOCK:
            raise FileError(self._file, f"a length up to {MAX_BLOCK} bytes", f"{size} at byte {self.position}")

    def take(self, size: int) -> bytes:
        """Read exactly `size` bytes. Raises `FileError`."""
        if len(self.read(size)) < size:
            raise cut_short(self._file)
        return self.last

    def skip(self, size: int) -> bytes:
        """Skip `size` bytes, without checking that the stream has them."""
        self._stream.seek(size, 1)
        self.position += size
        return b""

    def take_long(self) -> int:
        """Read an Avro integer byte by byte, since what follows may be for another reader. Raises `FileError`."""
        value = 0
        for shift in range(0, 7 * _LONG_BYTES, 7):
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < _CARRY:
                return (value >> 1) ^ -(value & 1)
        raise damaged(self._file, f"a number of more than {_LONG_BYTES} bytes")


def _deflate(payloads: bytes) -> bytes:
    deflater = zlib.compressobj(wbits=_RAW)
    return deflater.compress(payloads) + deflater.flush()


def _check_inflated(frame: PackedBlock, file: str) -> None:
    if len(frame.packed) * _DEFLATE_RATIO <= MAX_BLOCK:
        return
    raw, inflater, size = frame.packed, zlib.decompressobj(_RAW), 0
    while raw:
        size += len(inflater.decompress(raw, _MEASURED))
        raw = inflater.unconsumed_tail
        if size > MAX_BLOCK:
            raise FileError(file, f"a block of at most {MAX_BLOCK} bytes", f"more at byte {frame.start}")

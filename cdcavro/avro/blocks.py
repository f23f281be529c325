"""The blocks of an Avro container file: a count, a length, payloads compressed by a codec, and the sync marker.

Source: Avro 1.8.2, "Object Container Files" and "Required Codecs". The bytes of a block are read
only after its length is checked, and decompressed only after their decompressed size is measured.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cdcavro.avro.binary import write_long
from cdcavro.errors import FileError, shown

if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import BufferedReader

CODECS: Final = ("null", "deflate")
MARKER_BYTES: Final = 16
MAX_BLOCK: Final = 112 << 20
_RAW: Final = -15
_DEFLATE_RATIO: Final = 1032
_MEASURED: Final = 16 << 20
_CARRY: Final = 0x80
_LONG_BYTES: Final = 10


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive payloads (bytes) and their count (int)."""

    payloads: bytes
    count: int


@dataclass(frozen=True, slots=True)
class PackedBlock:
    """A block as stored in a file.

    Attributes: `count` (int), the number of payloads; `place` (int), the offset in the file at which
    the block starts; `start` and `size` (int), the offset at which its payloads start and how many
    bytes they occupy; `packed` (bytes), these bytes, empty if they were skipped.
    """

    count: int
    place: int
    start: int
    size: int
    packed: bytes

    @property
    def end(self) -> int:
        """The offset in the file at which the next block starts."""
        return self.start + self.size + MARKER_BYTES


@dataclass(frozen=True, slots=True)
class Framing:
    """What all blocks of one file share: `codec` (str), one of `CODECS`, and `marker` (bytes)."""

    codec: str
    marker: bytes

    def pack(self, block: Block) -> list[bytes]:
        """Return a block as stored in a file, in pieces to be written one after another."""
        return self.pack_pieces([block.payloads], block.count)

    def pack_pieces(self, payloads: list[bytes], count: int) -> list[bytes]:
        """Return the same for `count` payloads that are given in pieces."""
        packed = [_deflated(b"".join(payloads))] if self.codec == "deflate" else payloads
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
    """The stream of a container file, which tracks its position, even in a pipe, and refuses absurd lengths.

    Attributes: `position` (int), in bytes; `last` (bytes), what was read last.
    """

    def __init__(self, stream: BufferedReader, file: str, position: int = 0) -> None:
        self._stream = stream
        self._file = file
        self.position = position
        self.last = b""

    def read(self, size: int) -> bytes:
        """Read `size` bytes, or fewer if the stream ends. Raises `FileError` for a length that no part of a file has."""
        self.check_length(size)
        self.last = self._stream.read(size)
        self.position += len(self.last)
        return self.last

    def check_length(self, size: int) -> None:
        """Raise `FileError` for a length that no part of a file has."""
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


def _deflated(payloads: bytes) -> bytes:
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

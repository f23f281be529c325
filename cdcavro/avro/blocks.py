"""The blocks of an Avro container file as they lie in it: a count, a length, payloads packed by a codec, the marker.

Source: Avro 1.8.2, "Object Container Files" and "Required Codecs". The bytes of a block are taken
only after its length is checked, and unpacked only after what they unpack to is measured.
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
MAX_BLOCK: Final = 256 << 20
_RAW: Final = -15
_DEFLATE_RATIO: Final = 1032
_MEASURED: Final = 16 << 20
_CARRY: Final = 0x80
_LONG_BYTES: Final = 10


@dataclass(frozen=True, slots=True)
class Block:
    """Payloads that lie one behind another, and how many they are."""

    payloads: bytes
    count: int


@dataclass(frozen=True, slots=True)
class PackedBlock:
    """A block as it lies in a file.

    Attributes: `count` (int), of payloads; `place` (int), the byte of the file at which the block
    starts; `start` and `size` (int), at which its payloads start and how many bytes they take;
    `packed` (bytes), these bytes, empty where they were passed over.
    """

    count: int
    place: int
    start: int
    size: int
    packed: bytes

    @property
    def end(self) -> int:
        """The byte at which the next block starts."""
        return self.start + self.size + MARKER_BYTES


@dataclass(frozen=True, slots=True)
class Framing:
    """What the blocks of one file have in common: `codec`, one of `CODECS`, and `marker` (bytes)."""

    codec: str
    marker: bytes

    def pack(self, block: Block) -> list[bytes]:
        """Return the pieces of a block as it lies in a file."""
        packed = _deflated(block.payloads) if self.codec == "deflate" else block.payloads
        head = bytearray()
        write_long(head, block.count)
        write_long(head, len(packed))
        return [bytes(head), packed, self.marker]

    def unpack(self, frame: PackedBlock, file: str) -> Block:
        """Return the payloads of a block. Raises `FileError`, which names the file."""
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
    """Read blocks to the end of a stream that is at a block, which is byte `position` of the file.

    `skip` passes over the payloads; the stream must be able to seek then. Raises `FileError`, which
    names the file: a block is cut short, absurdly long, or does not end in the marker.
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
    """Make the error for a container file that breaks the specification."""
    return FileError(file, "an Avro container file that can be read", shown(reason))


def cut_short(file: str) -> FileError:
    """Make the error for a container file that ends within a block."""
    return FileError(file, "a whole Avro container file", "one that ends too early")


class ContainerStream:
    """The stream of a container file: it knows its position, pipe or not, and refuses absurd lengths.

    Attributes: `position` (int), in bytes; `last` (bytes), what was read last.
    """

    def __init__(self, stream: BufferedReader, file: str, position: int = 0) -> None:
        self._stream = stream
        self._file = file
        self.position = position
        self.last = b""

    def read(self, size: int) -> bytes:
        """Read bytes, fewer where the stream ends. Raises `FileError` for a length that no part of a file has."""
        self.check_length(size)
        self.last = self._stream.read(size)
        self.position += len(self.last)
        return self.last

    def check_length(self, size: int) -> None:
        """Check that a part of a file may be so long. Raises `FileError`."""
        if not 0 <= size <= MAX_BLOCK:
            raise FileError(self._file, f"a length up to {MAX_BLOCK} bytes", f"{size} at byte {self.position}")

    def take(self, size: int) -> bytes:
        """Read so many bytes. Raises `FileError`."""
        if len(self.read(size)) < size:
            raise cut_short(self._file)
        return self.last

    def skip(self, size: int) -> bytes:
        """Pass over bytes, without looking whether the stream has them."""
        self._stream.seek(size, 1)
        self.position += size
        return b""

    def take_long(self) -> int:
        """Read an integer of Avro, byte by byte: what stands behind it may be another reader's. Raises `FileError`."""
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

"""Parts of files converted, each on its own and in any process: chunks of lines to blocks, blocks to lines.

What is made of a part depends on nothing but the part, so that the whole does not depend on who made it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

from cdcavro.avro.blocks import MARKER_BYTES, Block, Framing, PackedBlock, read_frames
from cdcavro.avro.buffer import Buffer
from cdcavro.errors import CdcAvroError, MessageError
from cdcavro.wire.formats import get_format

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from cdcavro.avro.schema import Schema
    from cdcavro.files.chunks import Chunk, Range
    from cdcavro.files.lines import Line
    from cdcavro.files.streams import FileIdentity

T = TypeVar("T")
MOST_FAULTS: Final = 1000
_NEVER_IN_TEXT: Final = bytes((0xC0, 0xC1, *range(0xF5, 0x100)))
# As many bytes of the file as make about two mebibytes of text.
_RUN_BYTES: Final = {"null": 1 << 20, "deflate": 256 << 10}
_TEXT_BYTES: Final = 512 << 10
# Pieces that are written one by one; more are put together before.
_FEW: Final = 16


def marker(schema: Schema, codec: str, head: bytes) -> bytes:
    """Make the sync marker of a file from its schema, its codec and the text that it starts with.

    The same input gives the same file; so do their markers where two files start with the same chunk.
    The marker is made of bytes that UTF-8 never has, and a payload holds at most ten such bytes in a
    row, in a number: so no message, whoever sent it, brings the marker into a block that is not
    compressed. Blocks are found by their lengths, and the marker behind each is only held against it.
    """
    digest = hashlib.blake2b(
        head, digest_size=MARKER_BYTES, key=hashlib.sha256(f"{codec} {schema.json}".encode()).digest()
    )
    return bytes(_NEVER_IN_TEXT[byte % len(_NEVER_IN_TEXT)] for byte in digest.digest())


@dataclass(frozen=True, slots=True)
class Tally:
    """What there is to say of a chunk, or a part of it.

    Attributes: `done` (int), the messages in the block; `lines` (int), those of the chunk, 0 but for
    its last part; `faults`, with lines that are numbered from the chunk's first.
    """

    done: int = 0
    lines: int = 0
    faults: tuple[tuple[MessageError, Line], ...] = ()


@dataclass(frozen=True, slots=True)
class ChunkEncoder:
    """Makes one block of each chunk of lines. Attributes: `format` (str), its name; `framing`."""

    format: str
    framing: Framing

    def __call__(self, task: Chunk | Range) -> Iterator[tuple[list[bytes], Tally]]:
        """Convert a chunk: give some faults at a time, then the pieces of the block. Raises `FileError`."""
        chunk = task.read()
        lines = chunk.texts()
        out = Buffer()
        rejected = 0
        for faults in _gathered(self._faults(chunk, lines, out), lambda _: 1, MOST_FAULTS):
            rejected += len(faults)
            yield [], Tally(faults=tuple(faults))
        done = len(lines) - rejected
        yield self.framing.pack(Block(out.taken(), done)) if done else [], Tally(done, len(lines))

    def _faults(self, chunk: Chunk, lines: list[bytes], out: Buffer) -> Iterator[tuple[MessageError, Line]]:
        """Append the payloads of all lines, and give the faults of those that have none."""
        format = get_format(self.format)
        at = 0
        while at < len(lines):
            if not chunk.is_long:
                at = format.encode_lines(lines, at, out)
            if at < len(lines):
                line = chunk.line(at, lines[at], is_last=at + 1 == len(lines))
                try:
                    out.write_raw(format.encode(line.message()))
                except MessageError as error:
                    error.format = format.name
                    yield error, line
                at += 1


@dataclass(frozen=True, slots=True)
class BlockRange:
    """Blocks of a file that follow each other, as its bytes from `start` on, before `end`."""

    place: FileIdentity
    framing: Framing
    start: int
    end: int

    def frames(self) -> Iterator[PackedBlock]:
        """Read the blocks. Raises `FileError`."""
        with self.place.open(self.start) as stream:
            for frame in read_frames(stream, self.start, self.framing, self.place.path):
                yield frame
                if frame.end >= self.end:
                    return


@dataclass(frozen=True, slots=True)
class BlocksInMemory:
    """Blocks that follow each other, as they were read."""

    held: tuple[PackedBlock, ...]

    def frames(self) -> Iterator[PackedBlock]:
        """Return the blocks."""
        return iter(self.held)


def runs(
    frames: Iterable[PackedBlock], framing: Framing, place: FileIdentity | None
) -> Iterator[BlockRange | BlocksInMemory]:
    """Put blocks together that follow each other; those of a file with a place only by where they lie."""
    for run in _gathered(frames, lambda frame: frame.size, _RUN_BYTES[framing.codec]):
        yield BlocksInMemory(tuple(run)) if place is None else BlockRange(place, framing, run[0].place, run[-1].end)


@dataclass(frozen=True, slots=True)
class BlockDecoder:
    """Makes lines of blocks.

    Attributes: `format` (str), its name; `writer`, the schema that wrote the payloads; `framing`;
    `file` (str), the name that errors tell.
    """

    format: str
    writer: Schema
    framing: Framing
    file: str

    def __call__(self, task: BlockRange | BlocksInMemory) -> Iterator[tuple[list[bytes], int]]:
        """Return some pieces of text at a time and how many lines they are.

        Raises `FileError`, `PayloadError`, `ResolutionError`.
        """
        for some in _gathered(self._pieces(task), lambda piece: len(piece[0]), _TEXT_BYTES):
            pieces = [lines for lines, _ in some]
            if len(pieces) > _FEW:
                pieces = [b"".join(pieces)]
            yield pieces, sum(count for _, count in some)

    def _pieces(self, task: BlockRange | BlocksInMemory) -> Iterator[tuple[bytes, int]]:
        format = get_format(self.format)
        for frame in task.frames():
            block = self.framing.unpack(frame, self.file)
            yield from format.decode_block(block.payloads, block.count, self.writer)


def _gathered(items: Iterable[T], size: Callable[[T], int], most: int) -> Iterator[list[T]]:
    """Return items that follow each other together, until they are so large; also those before an error."""
    some: list[T] = []
    room = most
    try:
        for item in items:
            some.append(item)
            room -= size(item)
            if room <= 0:
                yield some
                some, room = [], most
    except CdcAvroError:
        if some:
            yield some
        raise
    if some:
        yield some

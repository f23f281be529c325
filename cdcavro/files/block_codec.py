"""Converting and checking parts of files, each independently and in any thread: chunks of lines, and blocks of payloads.

The result for a part depends on nothing but the part, so the whole does not depend on which thread made it.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Final, TypeVar

from cdcavro.avro.container import MARKER_BYTES, MAX_BLOCK, Framing, PackedBlock
from cdcavro.errors import CdcAvroError, MessageError, StructureError
from cdcavro.wire.format import validate
from cdcavro.wire.formats import get_format
from cdcavro.wire.marked_members import operation_of, version_note
from cdcavro.wire.sniff import sniff

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from cdcavro.avro.schema import Schema
    from cdcavro.files.inputs import Chunk, Range
    from cdcavro.files.lines import Line
    from cdcavro.files.streams import SharedInput
    from cdcavro.wire.format import Format

    Kind = tuple[str, str | None]

T = TypeVar("T")
MOST_FAULTS: Final = 1000
_NEVER_IN_TEXT: Final = bytes((0xC0, 0xC1, *range(0xF5, 0x100)))
# For each codec, the bytes of a file that make about two mebibytes of text.
_RUN_BYTES: Final = {"null": 1 << 20, "deflate": 256 << 10}
_TEXT_BYTES: Final = 512 << 10
# A block ends with the piece that reaches the first; no piece has more than the second, so that all blocks can be read.
_BLOCK_BYTES: Final = 32 << 20
_PIECE_BYTES: Final = MAX_BLOCK - _BLOCK_BYTES
# The largest number of pieces that are written one by one; more are joined first.
_FEW: Final = 16


def sync_marker(schema: Schema, codec: str, head: bytes) -> bytes:
    """Return the sync marker of a file, made from its schema, its codec and the text that it starts with.

    So the same input gives the same file, and two files that start with the same chunk have the same
    marker. The marker consists of bytes that never occur in UTF-8, and a payload holds at most ten such
    bytes in a row, in a number. So no message, whoever sent it, can put the marker into an uncompressed
    block. Blocks are found by their lengths; the marker after each is only compared.
    """
    digest = hashlib.blake2b(
        head, digest_size=MARKER_BYTES, key=hashlib.sha256(f"{codec} {schema.json}".encode()).digest()
    )
    return bytes(_NEVER_IN_TEXT[byte % len(_NEVER_IN_TEXT)] for byte in digest.digest())


@dataclass(frozen=True, slots=True)
class Tally:
    """The counts and faults of a chunk, or of a part of it.

    Attributes: `done` (int), the number of messages in the block; `lines` (int), the number of lines in
    the chunk, 0 except in its last part; `faults`, with lines numbered from the first of the chunk; `note`
    (str or None), a sentence about a version that the chunk's messages state; `kinds`, where lines are only looked at:
    the format and operation of some, and their number, in their order. The operation of rejects is None, their format
    empty where it is not known.
    """

    done: int = 0
    lines: int = 0
    faults: tuple[tuple[MessageError, Line], ...] = ()
    note: str | None = None
    kinds: tuple[tuple[Kind, int], ...] = ()


@dataclass(frozen=True, slots=True)
class ChunkEncoder:
    """Makes a block from each chunk of lines, or more if it would be too long. Attributes: `format` (str), the format's name; `framing`."""

    format: str
    framing: Framing

    def __call__(self, task: Chunk | Range) -> Iterator[tuple[list[bytes], Tally]]:
        """Yield the faults of a chunk, some at a time, then the pieces of its blocks. Raises `FileError`."""
        chunk = task.read()
        encoded = _Payloads()
        for faults in _group(encoded.add(chunk, get_format(self.format)), lambda _: 1, MOST_FAULTS):
            yield [], Tally(faults=tuple(faults))
        *blocks, (last, count) = encoded.blocks() or [([], 0)]
        for payloads, done in blocks:
            yield self.framing.pack_pieces(payloads, done), Tally(done)
        note = version_note(chunk.raw, self.format)
        yield self.framing.pack_pieces(last, count) if count else [], Tally(count, encoded.lines, note=note)


class _Payloads:
    """The payloads of a chunk. Attribute: `lines` (int), how many lines were read."""

    def __init__(self) -> None:
        self._pieces: list[tuple[bytes, int]] = []
        self.lines = 0

    def add(self, chunk: Chunk, format: Format) -> Iterator[tuple[MessageError, Line]]:
        """Add the payloads of all lines, and yield the faults of those that cannot be encoded."""
        is_long, position = chunk.is_long, 0
        while position >= 0:
            if not is_long:
                payloads, count, behind = format.encode_text(chunk.raw, position)
                # Lines that are too long together may be short enough one by one.
                is_long = len(payloads) > _PIECE_BYTES
                if not is_long:
                    self._add(payloads, count)
                    position = behind
            line, position = chunk.line(position, self.lines + 1)
            if line is None:
                return
            try:
                self._add(format.encode(line.message()), 1)
            except MessageError as error:
                error.format = format.name
                self.lines += 1
                yield error, line

    def blocks(self) -> list[tuple[list[bytes], int]]:
        """Return the payloads of each block, in few pieces, and their number; a block stays far below what is read."""
        blocks = _group(self._pieces, lambda piece: len(piece[0]), _BLOCK_BYTES)
        return [(_join([payloads for payloads, _ in block]), sum(count for _, count in block)) for block in blocks]

    def _add(self, payloads: bytes, count: int) -> None:
        if len(payloads) > _PIECE_BYTES:
            raise StructureError(f"payloads of at most {_PIECE_BYTES} bytes", str(len(payloads)))
        if count:
            self._pieces.append((payloads, count))
            self.lines += count


@dataclass(frozen=True, slots=True)
class ChunkSniffer:
    """Detects the format of each line of a chunk; `kinds` are the lines in their order, those that are alike together."""

    def __call__(self, task: Chunk | Range) -> Iterator[tuple[list[bytes], Tally]]:
        """Yield the faults of a chunk, some at a time, then its kinds. Raises `FileError`."""
        seen = _Kinds(lambda message: (sniff(message), ""))
        yield from seen.faults(task.read())
        kinds = tuple((kind, sum(1 for _ in run)) for kind, run in groupby(seen.kinds))
        yield [], Tally(lines=len(seen.kinds), kinds=kinds)


@dataclass(frozen=True, slots=True)
class ChunkValidator:
    """Checks that each line of a chunk survives the conversion to Avro and back; `kinds` are counts of all lines.

    Attribute: `format` (str), the format's name, empty if it is to be detected for each line.
    """

    format: str

    def __call__(self, task: Chunk | Range) -> Iterator[tuple[list[bytes], Tally]]:
        """Yield the faults of a chunk, some at a time, then its kinds. Raises `FileError`."""
        notes: list[str] = []

        def check(message: bytes) -> Kind:
            format = get_format(self.format or sniff(message))
            note = None if notes else version_note(message, format.name)
            notes.extend([] if note is None else [note])
            return format.name, operation_of(validate(message, format), format)

        seen = _Kinds(check, self.format)
        yield from seen.faults(task.read())
        yield [], Tally(lines=len(seen.kinds), note=next(iter(notes), None), kinds=tuple(Counter(seen.kinds).items()))


class _Kinds:
    """The kinds of a chunk's lines (`kinds`), as a function tells them; `format` is that of rejects that name none."""

    def __init__(self, kind_of: Callable[[bytes], Kind], format: str = "") -> None:
        self._kind_of, self._format = kind_of, format
        self.kinds: list[Kind] = []

    def faults(self, chunk: Chunk) -> Iterator[tuple[list[bytes], Tally]]:
        """Look at all lines, and yield the faults, some at a time."""
        for faults in _group(self._look(chunk), lambda _: 1, MOST_FAULTS):
            yield [], Tally(faults=tuple(faults))

    def _look(self, chunk: Chunk) -> Iterator[tuple[MessageError, Line]]:
        for line in chunk.lines():
            try:
                self.kinds.append(self._kind_of(line.message()))
            except MessageError as error:
                error.format = error.format or self._format or None
                self.kinds.append((error.format or "", None))
                yield error, line


@dataclass(frozen=True, slots=True)
class BlockRun:
    """Consecutive blocks: as they were read, or only where they lie in the file `place`."""

    blocks: tuple[PackedBlock, ...]
    place: SharedInput | None = None

    def frames(self) -> Iterator[PackedBlock]:
        """Yield the blocks. Raises `FileError`."""
        for block in self.blocks:
            end = block.start + block.size
            packed = block.packed if self.place is None else self.place.read(block.start, end)
            yield PackedBlock(block.count, block.place, block.start, block.size, packed)


def group_blocks(frames: Iterable[PackedBlock], framing: Framing, place: SharedInput | None) -> Iterator[BlockRun]:
    """Yield runs of consecutive blocks: where they lie, if the file has a `place`, otherwise the blocks themselves."""
    for run in _group(frames, lambda frame: frame.size, _RUN_BYTES[framing.codec]):
        yield BlockRun(tuple(run), place)


@dataclass(frozen=True, slots=True)
class BlockDecoder:
    """Makes lines from blocks.

    Attributes: `format` (str), the format's name; `writer`, the schema that wrote the payloads; `framing`;
    `file` (str), the file's name for errors.
    """

    format: str
    writer: Schema
    framing: Framing
    file: str

    def __call__(self, task: BlockRun) -> Iterator[tuple[list[bytes], int]]:
        """Yield some pieces of text at a time, and how many lines they hold.

        Raises `FileError`, `PayloadError`, `ResolutionError`.
        """
        for group in _group(self._pieces(task), lambda piece: len(piece[0]), _TEXT_BYTES):
            yield _join([lines for lines, _ in group]), sum(count for _, count in group)

    def _pieces(self, task: BlockRun) -> Iterator[tuple[bytes, int]]:
        format = get_format(self.format)
        for frame in task.frames():
            block = self.framing.unpack(frame, self.file)
            yield from format.decode_block(block.payloads, block.count, self.writer)


def _join(pieces: list[bytes]) -> list[bytes]:
    return pieces if len(pieces) <= _FEW else [b"".join(pieces)]


def _group(items: Iterable[T], size: Callable[[T], int], most: int) -> Iterator[list[T]]:
    """Yield lists of consecutive items, each until its size reaches `most`; the items before an error are yielded first."""
    group: list[T] = []
    room = most
    try:
        for item in items:
            group.append(item)
            room -= size(item)
            if room <= 0:
                yield group
                group, room = [], most
    except CdcAvroError:
        if group:
            yield group
        raise
    if group:
        yield group

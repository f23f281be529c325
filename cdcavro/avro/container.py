"""Avro object container files of payloads that are already encoded (Avro 1.8.2, "Object Container Files").

The header holds the schema as it was written, and the codec; `blocks` writes and reads the blocks. The payloads
themselves are not touched.
"""

from __future__ import annotations

import io
import secrets
from typing import TYPE_CHECKING, BinaryIO, Final

from cdcavro.avro.binary import write_bytes, write_long
from cdcavro.avro.blocks import CODECS, MARKER_BYTES, Block, ContainerStream, Framing, damaged, read_frames
from cdcavro.avro.schema import parse_schema
from cdcavro.errors import FileError, SchemaError, shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cdcavro.avro.blocks import PackedBlock
    from cdcavro.avro.schema import Schema

BLOCK_BYTES: Final = 64 << 10
BLOCK_COUNT: Final = 1000
_MAGIC: Final = b"Obj\x01"


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


class ContainerWriter:
    """A writer of payloads into a container file, with about 64 KiB or 1,000 payloads in a block.

    Created from a binary stream, the schema with which the payloads were written, and one of `CODECS`.
    It writes the header at once; call `flush` at the end.
    """

    def __init__(self, stream: BinaryIO, schema: Schema, *, codec: str = "deflate") -> None:
        self._stream = stream
        self._framing = Framing(codec, secrets.token_bytes(MARKER_BYTES))
        self._payloads = io.BytesIO()
        self._count = 0
        stream.write(header(schema, self._framing))

    def write(self, payload: bytes) -> None:
        """Write one payload."""
        self._payloads.write(payload)
        self._count += 1
        if self._count == BLOCK_COUNT or self._payloads.tell() >= BLOCK_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write the remaining payloads as a block and flush the stream."""
        if self._count:
            self._stream.writelines(self._framing.pack(Block(self._payloads.getvalue(), self._count)))
            self._payloads = io.BytesIO()
            self._count = 0
        self._stream.flush()


class ContainerReader:
    """The blocks of a container file.

    Created from a binary stream and the file's name for errors. Attributes: `file` (str), that name;
    `schema` (`Schema`), the one in the header, with which the payloads were written; `framing`
    (`Framing`); `position` (int), the offset at which the first block starts. Raises `FileError`, on
    creation and during iteration.
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

"""Avro object container files around payloads that are ready (Avro 1.8.2, "Object Container Files").

fastavro writes and reads header, codecs, sync markers and blocks; the payloads go in and come out
as they are.
"""

from __future__ import annotations

import io
import json
import zlib
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, BinaryIO, Final, cast

import fastavro
import fastavro.write

from cdcavro.errors import CdcAvroError, FileError, SchemaError, shown
from cdcavro.evolution import is_same_name
from cdcavro.formats import REGISTRY
from cdcavro.schema import parse_schema
from cdcavro.types import Record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cdcavro.format import Format
    from cdcavro.schema import Schema

CODECS: Final = ("null", "deflate")
BLOCK_BYTES: Final = 64 << 10
BLOCK_COUNT: Final = 1000
MAX_BLOCK: Final = 256 << 20
_MAGIC: Final = b"Obj\x01"
_DEFLATE_RATIO: Final = 1032
_MEASURED: Final = 16 << 20


@dataclass(frozen=True, slots=True)
class Block:
    """Payloads that lie one behind another, and how many they are."""

    payloads: bytes
    count: int


class ContainerWriter:
    """Writes payloads into a container file, about 64 KiB or 1,000 payloads to a block.

    Made from a binary stream, the schema that wrote the payloads, and one of `CODECS`. The stream
    gets the header at once; `flush` belongs at the end.
    """

    def __init__(self, stream: BinaryIO, schema: Schema, *, codec: str = "deflate") -> None:
        self._writer = fastavro.write.Writer(cast("IO[bytes]", _Sink(stream)), json.loads(schema.json), codec=codec)
        self._payloads = io.BytesIO()
        self._count = 0

    def write(self, payload: bytes) -> None:
        """Write one payload."""
        self._payloads.write(payload)
        self._count += 1
        if self._count == BLOCK_COUNT or self._payloads.tell() >= BLOCK_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write what is left of the payloads as a block."""
        if self._count:
            self._writer.write_block(_Pending(self._count, self._payloads))
            self._payloads = io.BytesIO()
            self._count = 0
        self._writer.flush()


class ContainerReader:
    """The blocks of a container file.

    Made from a binary stream and the file's name for errors. Attributes: `schema`, that of the
    header, which wrote the payloads. Raises `FileError`, when made and while it is iterated.
    """

    def __init__(self, stream: io.BufferedReader, file: str) -> None:
        self._file = file
        start = stream.peek(len(_MAGIC))[: len(_MAGIC)]
        if start != _MAGIC:
            got = f"one that starts with {ascii(start)[1:]}" if start else "an empty one"
            raise FileError(file, "an Avro container file", got)
        try:
            source = _Source(stream, file)
            self._reader = fastavro.block_reader(cast("IO[bytes]", source))
            declared = self._reader.metadata["avro.schema"]
        except CdcAvroError:
            raise
        except Exception as error:  # fastavro raises what a broken header leads it to
            raise self._damaged(error) from error
        if self._reader.codec not in CODECS:
            raise FileError(file, f"one of the codecs {', '.join(CODECS)}", shown(self._reader.codec))
        source.is_deflated = self._reader.codec == "deflate"
        self.schema = self._parsed(declared)

    def __iter__(self) -> Iterator[Block]:
        blocks: Iterator[Any] = iter(self._reader)
        while True:
            try:
                block = next(blocks)
            except StopIteration:
                return
            except CdcAvroError:
                raise
            except Exception as error:  # as above, for a broken block
                raise self._damaged(error) from error
            if block.num_records < 0:
                raise FileError(self._file, "a count of payloads", f"{block.num_records}")
            yield Block(block.bytes_.getvalue(), block.num_records)

    def _parsed(self, declared: str) -> Schema:
        try:
            return parse_schema(declared)
        except SchemaError as error:
            raise FileError(self._file, "an Avro schema in the header", str(error)) from error

    def _damaged(self, error: Exception) -> FileError:
        if isinstance(error, EOFError):
            return FileError(self._file, "a whole Avro container file", "one that ends too early")
        return FileError(
            self._file, "an Avro container file that can be read", shown(str(error) or type(error).__name__)
        )


def format_of(schema: Schema) -> Format | None:
    """Give the format whose wire schema has the name of this schema's record, or has it for an alias; None if none."""
    root = schema.root
    if not isinstance(root, Record):
        return None
    return next((format for format in REGISTRY.values() if is_same_name(root, format.envelope)), None)


@dataclass(frozen=True, slots=True)
class _Pending:
    """A block as fastavro takes it."""

    num_records: int
    bytes_: io.BytesIO


class _Sink:
    """A stream as fastavro shall see it: it would refuse one that can seek and is not at its start, as with `>>`."""

    def __init__(self, stream: BinaryIO) -> None:
        self.write = stream.write
        self.flush = stream.flush

    def seekable(self) -> bool:
        return False


class _Source:
    """A stream as fastavro shall see it: it knows its position, pipe or not, and refuses absurd lengths.

    `is_deflated` (bool) is set when the header is read; a block is then measured before it is taken.
    """

    def __init__(self, stream: io.BufferedReader, file: str) -> None:
        self._stream = stream
        self._file = file
        self._position = 0
        self.is_deflated = False

    def read(self, size: int) -> bytes:
        if not 0 <= size <= MAX_BLOCK:
            raise FileError(self._file, f"a length up to {MAX_BLOCK} bytes", f"{size} at byte {self._position}")
        raw = self._stream.read(size)
        if self.is_deflated and size * _DEFLATE_RATIO > MAX_BLOCK:
            self._check_inflated(raw)
        self._position += len(raw)
        return raw

    def _check_inflated(self, raw: bytes) -> None:
        inflater = zlib.decompressobj(-15)
        size = 0
        while raw:
            size += len(inflater.decompress(raw, _MEASURED))
            raw = inflater.unconsumed_tail
            if size > MAX_BLOCK:
                raise FileError(self._file, f"a block of at most {MAX_BLOCK} bytes", f"more at byte {self._position}")

    def tell(self) -> int:
        return self._position

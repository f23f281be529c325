"""Converting raw lines on executors, each to a payload or to a reject."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from cdcavro.errors import MessageError
from cdcavro.files.lines import Line
from cdcavro.spark.arrow_udf import raw_bytes
from cdcavro.spark.job.line_frame import plain_path
from cdcavro.wire.formats import get_format
from cdcavro.wire.sniff import sniff

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

COLUMNS: Final = (
    "file string, block bigint, index bigint, format string, payload binary, raw binary, path string, reason string"
)
_SCHEMA: Final = pa.schema(
    [
        ("file", pa.string()),
        ("block", pa.int64()),
        ("index", pa.int64()),
        ("format", pa.string()),
        ("payload", pa.binary()),
        ("raw", pa.binary()),
        ("path", pa.string()),
        ("reason", pa.string()),
    ]
)
Row = tuple[str | None, bytes | None, bytes | None, str | None, str | None]


def converter(formats: Mapping[str, str]) -> Callable[[Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]]:
    """Return the function that converts batches of `read_line_frame` into batches of `COLUMNS`.

    `formats` maps each file's plain path to the format of its messages, which is an empty text if each
    message is to be sniffed. `index` counts the lines of a block from 0; `raw`, `path` and `reason` are
    set for rejects only.
    """

    def converted(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        count: dict[tuple[str, int], int] = {}
        for batch in batches:
            files = [plain_path(uri) for uri in batch.column("file").to_pylist()]
            blocks = batch.column("block").to_pylist()
            indexes = []
            for place in zip(files, blocks, strict=True):
                indexes.append(count.get(place, 0))
                count[place] = indexes[-1] + 1
            lengths = batch.column("length").to_pylist()
            lines = zip(indexes, raw_bytes(batch.column("raw")), lengths, files, strict=True)
            rows = [convert_line(Line(i, raw or b"", length), formats[file]) for i, raw, length, file in lines]
            columns: list[Any] = [files, blocks, indexes, *zip(*rows, strict=True)] if rows else [[]] * len(_SCHEMA)
            yield pa.RecordBatch.from_arrays(
                [pa.array(column, field.type) for column, field in zip(columns, _SCHEMA, strict=True)], schema=_SCHEMA
            )

    return converted


def convert_line(line: Line, format: str) -> Row:
    """Convert a line, and return its format, its payload, and for a reject the raw bytes, JSON path and reason."""
    try:
        message = line.message()
        name = format or sniff(message)
        return name, get_format(name).encode(message), None, None, None
    except MessageError as error:
        return format or error.format, None, line.raw, error.path, error.reason

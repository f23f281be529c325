"""The functions that most users need: text to payload, payload to text, and the wire schemas."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from cdcavro.wire.format import Format
from cdcavro.wire.formats import change_format, get_format

if TYPE_CHECKING:
    from cdcavro.avro.schema import Schema

CHANGE: Final = "change"
_KEPT: Final = 64


def encode(text: bytes | str, format: str) -> bytes:
    """Return JSON text as an Avro payload of the format's wire schema.

    Raises `UnknownFormatError`, and `TextError` or `StructureError` with the format, the JSON path and
    what was expected there.

    >>> encode('{"type": "ALTER", "sql": "ALTER TABLE t ADD c INT"}', "oms_canal").hex()[:8]
    '00000000'
    """
    return get_format(format).encode(text)


def decode(payload: bytes, format: str, *, writer: Schema | None = None, reader: Schema | None = None) -> bytes:
    """Return an Avro payload as UTF-8 JSON text: the same JSON value that was encoded.

    `writer` is the wire schema with which the payload was written, `reader` the one whose names and
    defaults are wanted; each defaults to the format's current schema. The reader's aliases rename
    members; members that the reader lacks stay as they are. Raises `UnknownFormatError`,
    `PayloadError` and `ResolutionError`.

    >>> decode(encode('{"recordType":"HEARTBEAT"}', "oms_default"), "oms_default")
    b'{"recordType":"HEARTBEAT"}'
    """
    wire_format = get_format(format) if reader is None else _version(format, reader)
    return wire_format.decode(payload, writer or get_format(format).schema)


@lru_cache(maxsize=_KEPT)
def _version(format: str, schema: Schema) -> Format:
    return Format(get_format(format).name, schema)


def load_schema(format: str) -> Schema:
    """Return the wire schema of a format, or of `change`. Raises `UnknownFormatError`.

    >>> load_schema("oms_canal").fingerprint == load_schema("oms_canal").fingerprint
    True
    """
    return change_format().schema if format == CHANGE else get_format(format).schema

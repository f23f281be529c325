"""The functions most users need: text to payload, payload to text, and the schemas."""

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
    """Encode JSON text as an Avro payload of the format's wire schema.

    Raises `UnknownFormatError`; `TextError` and `StructureError`, which name format, path and expectation.

    >>> encode('{"type": "ALTER", "sql": "ALTER TABLE t ADD c INT"}', "oms_canal").hex()[:8]
    '00000000'
    """
    return get_format(format).encode(text)


def decode(payload: bytes, format: str, *, writer: Schema | None = None, reader: Schema | None = None) -> bytes:
    """Decode an Avro payload into UTF-8 JSON text, the same JSON value that was encoded.

    `writer` is the wire schema that the payload was written with, `reader` the one whose names and
    defaults are wanted; each is the format's present one if it is not given. Members take their new
    names by the reader's aliases; one that the reader does not have stays as it is. Raises
    `UnknownFormatError`, `PayloadError`, `ResolutionError`.

    >>> decode(encode('{"recordType":"HEARTBEAT"}', "oms_default"), "oms_default")
    b'{"recordType":"HEARTBEAT"}'
    """
    found = get_format(format) if reader is None else _version(format, reader)
    return found.decode(payload, writer or get_format(format).schema)


@lru_cache(maxsize=_KEPT)
def _version(format: str, schema: Schema) -> Format:
    return Format(get_format(format).name, schema)


def load_schema(format: str) -> Schema:
    """Return the wire schema of a format, or of `change`. Raises `UnknownFormatError`.

    >>> load_schema("oms_canal").fingerprint == load_schema("oms_canal").fingerprint
    True
    """
    return change_format().schema if format == CHANGE else get_format(format).schema

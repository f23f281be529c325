"""The functions most users need: text to payload, payload to text, and the schemas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cdcavro.formats import REGISTRY, get_format

if TYPE_CHECKING:
    from cdcavro.schema import Schema

FORMATS: Final[tuple[str, ...]] = tuple(REGISTRY)
"""The names of the formats, in the order in which `sniff` prefers them."""


def encode(text: bytes | str, format: str) -> bytes:
    """Encode JSON text as an Avro payload of the format's wire schema.

    Raises `UnknownFormatError`; `TextError` and `StructureError`, which name format, path and expectation.

    >>> encode('{"type": "ALTER", "sql": "ALTER TABLE t ADD c INT"}', "oms_canal").hex()[:8]
    '00000000'
    """
    return get_format(format).encode(text)


def decode(payload: bytes, format: str, *, writer: Schema | None = None) -> bytes:
    """Decode an Avro payload into UTF-8 JSON text, the same JSON value that was encoded.

    `writer` is the schema that the payload was written with, if it is not the format's present one.
    Raises `UnknownFormatError`, `PayloadError`, `ResolutionError`.

    >>> decode(encode('{"recordType":"HEARTBEAT"}', "oms_default"), "oms_default")
    b'{"recordType":"HEARTBEAT"}'
    """
    return get_format(format).decode(payload, writer)


def load_schema(format: str) -> Schema:
    """Give the wire schema of a format. Raises `UnknownFormatError`.

    >>> load_schema("oms_canal").fingerprint == load_schema("oms_canal").fingerprint
    True
    """
    return get_format(format).schema

"""Prefixes of payloads that identify the schema that wrote them.

* Confluent's wire format: a byte 0, then the schema's id in 4 bytes, big-endian.
* Its newer form: a byte 1, then the schema's GUID in 16 bytes, in the Kafka header
  `__value_schema_id` or `__key_schema_id` of the record; the payload then has no prefix.
* Avro's single-object encoding: the bytes C3 01, then the schema's CRC-64-AVRO in 8 bytes,
  little-endian.

If the schema is of type bytes, Confluent's serialisers write the bytes behind their prefix, or beside their
header, as they are: without the length with which an Avro payload of bytes begins.

Source: Confluent's documentation, "Wire format"; confluent-kafka's `header_schema_id_serializer` and
`AvroSerializer`; Java's `AbstractKafkaAvroSerializer`; the Avro specification, "Single-object encoding".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from uuid import UUID

from cdcavro.avro.binary import Decoder, write_bytes
from cdcavro.avro.types import Primitive
from cdcavro.errors import PayloadError

if TYPE_CHECKING:
    from collections.abc import Callable

    from cdcavro.avro.schema import Schema

VALUE_HEADER: Final = "__value_schema_id"
KEY_HEADER: Final = "__key_schema_id"
_ID: Final = b"\x00"
_GUID: Final = b"\x01"
_SINGLE_OBJECT: Final = b"\xc3\x01"
_FINGERPRINT: Final = re.compile(r"[0-9a-f]{16}\Z")
_UNSIGNED: Final = 2**32


@dataclass(frozen=True, slots=True)
class SchemaId:
    """A schema's id in a registry, from 0 to 4294967295."""

    number: int

    def __post_init__(self) -> None:
        if type(self.number) is not int or not 0 <= self.number < _UNSIGNED:
            raise ValueError(f"an id is an integer from 0 to {_UNSIGNED - 1}")

    def __str__(self) -> str:
        return f"id {self.number}"


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """A schema's CRC-64-AVRO in the form of `Schema.fingerprint`: 16 lower-case hex digits."""

    hex: str

    def __post_init__(self) -> None:
        if not _FINGERPRINT.match(self.hex):
            raise ValueError("a fingerprint is 16 hex digits in small letters")

    def __str__(self) -> str:
        return f"fingerprint {self.hex}"


@dataclass(frozen=True, slots=True)
class Guid:
    """A schema's GUID, which is the same in all registries from the same vendor."""

    uuid: UUID

    def __str__(self) -> str:
        return f"GUID {self.uuid}"


SchemaPrefix = SchemaId | Fingerprint | Guid


def frame(payload: bytes, id: SchemaPrefix | int, *, schema: Schema | None = None) -> bytes:
    r"""Return a payload (bytes) behind the prefix that identifies its schema; an int is an id.

    With an empty payload, the result is the value of the Kafka header. `schema` is needed only if it may be of
    type bytes, whose payloads Confluent's serialisers write without their length. Raises ValueError for an id
    that does not fit, `PayloadError` for a payload that is not one of bytes, and TypeError for any other type.

    >>> frame(b"\x02", 7)
    b'\x00\x00\x00\x00\x07\x02'
    >>> frame(b"", Guid(UUID(int=255)))
    b'\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff'
    """
    prefix = SchemaId(id) if isinstance(id, int) else id
    if schema is not None and _is_bare(prefix, schema):
        payload = bytes_of(payload)
    match prefix:
        case SchemaId(number):
            return _ID + number.to_bytes(4, "big") + payload
        case Guid(uuid):
            return _GUID + uuid.bytes + payload
        case Fingerprint(digits):
            return _SINGLE_OBJECT + bytes.fromhex(digits) + payload
    raise TypeError(f"a payload is framed by an id, a Guid or a Fingerprint, not by {type(id).__name__}")


def unframe(value: bytes, *, header: bytes | None = None) -> tuple[SchemaPrefix, bytes]:
    r"""Split a value into the prefix that identifies its schema and the payload.

    `header` is the value of the Kafka header if the record has one: all of `value` is then payload.
    Raises `PayloadError` for an unknown prefix, too few bytes, or left-over bytes in a header.

    >>> unframe(b"\x00\x00\x00\x00\x07\x02")
    (SchemaId(number=7), b'\x02')
    """
    if header is None:
        return _split(value)
    prefix, rest = _split(header)
    if rest:
        raise PayloadError(f"a header of {len(header) - len(rest)} bytes", f"{len(header)}")
    return prefix, value


def payload_of(framed: bytes, prefix: SchemaPrefix, schema: Schema) -> bytes:
    r"""Return what stands behind a prefix as an Avro payload of the schema that the prefix identifies.

    It is that already, unless the schema is of type bytes and the prefix is Confluent's.

    >>> from cdcavro.avro.schema import parse_schema
    >>> payload_of(b"ab", SchemaId(7), parse_schema('"bytes"'))
    b'\x04ab'
    """
    if not _is_bare(prefix, schema):
        return framed
    payload = bytearray()
    write_bytes(payload, framed)
    return bytes(payload)


def _is_bare(prefix: SchemaPrefix, schema: Schema) -> bool:
    is_bytes = isinstance(schema.root, Primitive) and schema.root.name == "bytes"
    return is_bytes and not isinstance(prefix, Fingerprint)


def bytes_of(payload: bytes) -> bytes:
    """Return the bytes in a payload of type bytes. Raises `PayloadError` for one that is none."""
    source = Decoder(payload)
    raw = source.read_bytes()
    source.finish()
    return raw


def _split(value: bytes) -> tuple[SchemaPrefix, bytes]:
    for magic, (size, parse) in _KINDS.items():
        if value.startswith(magic):
            end = len(magic) + size
            if len(value) < end:
                raise PayloadError(f"{end} bytes that tell the schema", f"{len(value)}")
            return parse(value[len(magic) : end]), value[end:]
    start = value[: len(_SINGLE_OBJECT)].hex(" ")
    raise PayloadError("bytes that start with 00, 01 or c3 01", start or "none")


_KINDS: Final[dict[bytes, tuple[int, Callable[[bytes], SchemaPrefix]]]] = {
    _ID: (4, lambda raw: SchemaId(int.from_bytes(raw, "big"))),
    _GUID: (16, lambda raw: Guid(UUID(bytes=raw))),
    _SINGLE_OBJECT: (8, lambda raw: Fingerprint(raw.hex())),
}

"""Prefixes of payloads that identify the schema that wrote them.

* Confluent's wire format: a byte 0, then the schema's id in 4 bytes, big-endian.
* Apicurio's: a byte 0, then a global id or a content id in 8 bytes, big-endian, or one of these ids in a Kafka header
  of the record. Nothing in a value tells them from Confluent's, so a `Framing` says which are meant.
* Its newer form: a byte 1, then the schema's GUID in 16 bytes, in the Kafka header
  `__value_schema_id` or `__key_schema_id` of the record; the payload then has no prefix.
* Avro's single-object encoding: the bytes C3 01, then the schema's CRC-64-AVRO in 8 bytes,
  little-endian.

If the schema is of type bytes, Confluent's serialisers write the bytes behind their prefix, or beside their
header, as they are: without the length with which an Avro payload of bytes begins.

Source: Confluent's documentation, "Wire format"; confluent-kafka's `header_schema_id_serializer` and
`AvroSerializer`; Java's `AbstractKafkaAvroSerializer` and `DualSchemaIdDeserializer`; Apicurio's `DefaultIdHandler`,
`DefaultHeadersHandler` and `SerdeHeaders`; the Avro specification, "Single-object encoding".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

from cdcavro.avro.binary import Decoder, write_bytes
from cdcavro.avro.types import Primitive
from cdcavro.errors import PayloadError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from cdcavro.avro.schema import Schema

VALUE_HEADER: Final = "__value_schema_id"
KEY_HEADER: Final = "__key_schema_id"
_ID: Final = b"\x00"
_GUID: Final = b"\x01"
_SINGLE_OBJECT: Final = b"\xc3\x01"
# What stands before a value whose id was in a header of Apicurio's, or in none.
_GLOBAL: Final = b"\x02"
_CONTENT: Final = b"\x03"
NO_HEADER: Final = b"\x04"
_FINGERPRINT: Final = re.compile(r"[0-9a-f]{16}\Z")
_UNSIGNED: Final = 2**32
_LONG: Final = 2**64
CONFLUENT: Final = "confluent"
HEADERS: Final = "headers"


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


@dataclass(frozen=True, slots=True)
class GlobalId:
    """Apicurio's id of a version of an artifact, from 0 to 2**64 - 1."""

    number: int

    def __post_init__(self) -> None:
        _check_long(self.number)

    def __str__(self) -> str:
        return f"global id {self.number}"


@dataclass(frozen=True, slots=True)
class ContentId:
    """Apicurio's id of a schema's text, which is the id in its Confluent-compatible API; from 0 to 2**64 - 1."""

    number: int

    def __post_init__(self) -> None:
        _check_long(self.number)

    def __str__(self) -> str:
        return f"content id {self.number}"


def _check_long(number: int) -> None:
    if type(number) is not int or not 0 <= number < _LONG:
        raise ValueError("an id is an integer from 0 to 2**64 - 1")


SchemaPrefix = SchemaId | Fingerprint | Guid | GlobalId | ContentId


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
        case GlobalId(number) | ContentId(number):
            return _ID + number.to_bytes(8, "big") + payload
    raise TypeError(f"a payload is framed by an id, a Guid or a Fingerprint, not by {type(id).__name__}")


def unframe(value: bytes, *, header: bytes | None = None, framing: str = CONFLUENT) -> tuple[SchemaPrefix, bytes]:
    r"""Split a value into the prefix that identifies its schema and the payload.

    `header` is the value of the Kafka header if the record has one: all of `value` is then payload. `framing` is one
    of `FRAMINGS`. Raises `PayloadError` for an unknown prefix, too few bytes, or left-over bytes in a header.

    >>> unframe(b"\x00\x00\x00\x00\x07\x02")
    (SchemaId(number=7), b'\x02')
    """
    if header is None:
        return FRAMINGS[framing].split(value)
    prefix, rest = FRAMINGS[framing].split(header)
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
    return is_bytes and isinstance(prefix, SchemaId | Guid)


def bytes_of(payload: bytes) -> bytes:
    """Return the bytes in a payload of type bytes. Raises `PayloadError` for one that is none."""
    source = Decoder(payload)
    raw = source.read_bytes()
    source.finish()
    return raw


class Framing(NamedTuple):
    """One way in which ids stand before payloads."""

    # How many bytes an id has and what it is, by the first bytes of a value.
    kinds: Mapping[bytes, tuple[int, Callable[[bytes], SchemaPrefix]]]

    @property
    def sizes(self) -> dict[bytes, int]:
        """How long a prefix is, by its first bytes."""
        return {magic: len(magic) + size for magic, (size, _) in self.kinds.items()}

    def split(self, value: bytes) -> tuple[SchemaPrefix, bytes]:
        """Split a value into the prefix and the payload. Raises `PayloadError`."""
        for magic, (size, parse) in self.kinds.items():
            if value.startswith(magic):
                end = len(magic) + size
                if len(value) < end:
                    raise PayloadError(f"{end} bytes that tell the schema", f"{len(value)}")
                return parse(value[len(magic) : end]), value[end:]
        *others, last = [magic.hex(" ") for magic in self.kinds]
        start = value[: len(max(self.kinds, key=len))].hex(" ")
        known = f"{', '.join(others)} or {last}" if others else last
        raise PayloadError(f"bytes that start with {known}", start or "none")


def _read_id(raw: bytes) -> SchemaId:
    return SchemaId(int.from_bytes(raw, "big"))


def _read_guid(raw: bytes) -> Guid:
    return Guid(UUID(bytes=raw))


def _read_global(raw: bytes) -> GlobalId:
    return GlobalId(int.from_bytes(raw, "big"))


def _read_content(raw: bytes) -> ContentId:
    return ContentId(int.from_bytes(raw, "big"))


def _refuse(_: bytes) -> SchemaPrefix:
    raise PayloadError("a header of the record with the id of its schema", "none")


# The ways by their names. Of `headers`, what a record's header said stands before its value, as `with_header` puts it.
FRAMINGS: Final[Mapping[str, Framing]] = {
    CONFLUENT: Framing(
        {_ID: (4, _read_id), _GUID: (16, _read_guid), _SINGLE_OBJECT: (8, lambda raw: Fingerprint(raw.hex()))}
    ),
    "apicurio-global-id": Framing({_ID: (8, _read_global)}),
    "apicurio-content-id": Framing({_ID: (8, _read_content)}),
    HEADERS: Framing(
        {
            _ID: (4, _read_id),
            _GUID: (16, _read_guid),
            _GLOBAL: (8, _read_global),
            _CONTENT: (8, _read_content),
            NO_HEADER: (0, _refuse),
        }
    ),
}
# The first bytes of framed keys: no JSON text begins so.
FRAMED_KEYS: Final = (_ID, _GUID, _GLOBAL, _CONTENT, NO_HEADER)


class IdHeader(NamedTuple):
    """A header of Kafka's records that has the id of a schema."""

    # Its names in records whose values and whose keys the schema wrote.
    value: str
    key: str
    # What stands before the id if it is put before a value, and what the header then begins with and how long it is.
    mark: bytes
    magic: bytes
    size: int

    def name(self, *, is_key: bool) -> str:
        """Return its name."""
        return self.key if is_key else self.value


# The first that a record has counts.
ID_HEADERS: Final = (
    IdHeader(VALUE_HEADER, KEY_HEADER, b"", _GUID, 17),
    IdHeader(VALUE_HEADER, KEY_HEADER, b"", _ID, 5),
    IdHeader("apicurio.value.globalId", "apicurio.key.globalId", _GLOBAL, b"", 8),
    IdHeader("apicurio.value.contentId", "apicurio.key.contentId", _CONTENT, b"", 8),
)


def with_header(value: bytes, headers: Iterable[tuple[str, bytes | None]], *, is_key: bool = False) -> bytes:
    r"""Return the value or the key of a record behind what its headers say of its schema.

    A key without a header is left as it is, if it may be JSON.

    >>> with_header(b"x", [("apicurio.value.globalId", b"\0\0\0\0\0\0\0\x07")])
    b'\x02\x00\x00\x00\x00\x00\x00\x00\x07x'
    """
    # Of several with one name the last one counts.
    stated = dict(headers)
    for one in ID_HEADERS:
        id = stated.get(one.name(is_key=is_key))
        if id is not None and len(id) == one.size and id.startswith(one.magic):
            return one.mark + id + value
    return value if is_key and not value.startswith(FRAMED_KEYS) else NO_HEADER + value

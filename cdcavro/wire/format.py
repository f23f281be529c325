"""A format: its wire schema, the plans built from it, and conversion between text and payload.

The engine converts what it can; everything else, every fault included, goes the exact way, through
`jsontext.parse` and a tree of writers, or through a tree of readers.
"""

from __future__ import annotations

import re
from base64 import b64decode
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from cdcavro.avro.resolution import (
    ReadArray,
    ReadEnum,
    ReadFixed,
    ReadMap,
    ReadPrimitive,
    ReadRecord,
    ReadUnion,
    Step,
    resolve,
)
from cdcavro.avro.schema import Schema, parse_schema
from cdcavro.avro.types import Array, Enum, Map, Primitive, Record, Union, check_expansion
from cdcavro.engine.machine import Engine, Values, same
from cdcavro.errors import MessageError, PayloadError, SchemaError, StructureError, TextError, shown
from cdcavro.exact.jsontext import MAX_LENGTH, differences, escape, kind, loads, parse, parse_fast, render, to_bytes
from cdcavro.wire.attributes import FormatRule, content_of, field_rule, format_rule
from cdcavro.wire.kafka import VALUE, headers_of, is_kafka_record, is_tombstone, members_of_headers, unwraps_records
from cdcavro.wire.message_program import checked_program, engine_of, values_of
from cdcavro.wire.message_reader import decode_lines, message_reader
from cdcavro.wire.message_writer import message_writer
from cdcavro.wire.value_readers import PayloadDecoder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from importlib.resources.abc import Traversable

    from cdcavro.avro.types import Field, Type
    from cdcavro.engine.payloads import Batch, Slices
    from cdcavro.engine.program import Program
    from cdcavro.wire.message_reader import MessageReader
    from cdcavro.wire.message_writer import MessageWriter

T = TypeVar("T")

# What base64 is like that was damaged, wrapped, or written with the letters of addresses; neither is any record so.
_LIKE_BASE64: Final = re.compile(rb"[\sA-Za-z0-9+/=_-]{8,}")
_KEPT: Final = 64
BINARY: Final = "binary"
"""The member of a message's JSON that is true if the message came as bytes."""
_IS_BINARY: Final = b'"binary":true'
# What JSON begins with. No record of DTS does, whose version is small, nor does a message of protobuf.
_OF_TEXT: Final = b'{["-0123456789tfn'
_SPACE: Final = b" \t\r\n"
# What most messages that are bytes begin with, and no text.
_OF_BYTES: Final = frozenset(bytes([byte]) for byte in range(32) if byte not in _SPACE)
_BASE64: Final = re.compile(rb"(?:[A-Za-z0-9+/]{4}){2,}(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")


def bytes_of(message: bytes | str) -> bytes | None:
    r"""Return the bytes of a message that came as such, or as base64, which a line of text can hold; None for JSON text.

    >>> bytes_of('{"id": 7}'), bytes_of(b"\x00\x01"), bytes_of("AAECAwQFBgcI")
    (None, b'\x00\x01', b'\x00\x01\x02\x03\x04\x05\x06\x07\x08')
    """
    raw = to_bytes(message)
    if _BASE64.fullmatch(text := raw.strip(_SPACE)):
        return b64decode(text)
    start = raw[:64].lstrip(_SPACE)[:1]
    return None if not start or start in _OF_TEXT or isinstance(message, str) else raw


def _sent_bytes(message: bytes | str) -> bytes | None:
    """Return the bytes of a message, as `bytes_of`. Raises `TextError` for base64 that was damaged."""
    if type(message) is bytes and message[:1] in _OF_BYTES and len(message) <= MAX_LENGTH:
        return message
    text, raw = to_bytes(message), bytes_of(message)
    if _LIKE_BASE64.fullmatch(text) and not _BASE64.fullmatch(text.strip(_SPACE)):
        raise TextError("base64 in fours, in one piece and of the usual letters", shown(text.decode()))
    return raw


class Codec(NamedTuple):
    """What turns the messages of a format that are no JSON text into JSON, and back."""

    # Returns the bytes of a message. Raises `StructureError` for JSON that has none.
    write: Callable[[dict[str, Any]], bytes]
    # Returns the JSON text of a message, with `BINARY`; None for one that is left to `read`.
    text: Callable[[bytes], bytes | None]
    # Returns the texts of a column's messages, up to one that is left to `text`: without what no row has.
    column: Batch
    # Returns the JSON object of a message, without `BINARY`. Raises `TextError` for bytes that are none.
    read: Callable[[bytes], dict[str, Any]] = parse_fast
    # The wire schema of the lines that `column` returns, if it returns the rows of messages as lines, which are no JSON
    # of the format: only the engine types them. A line that is empty stands for a change without rows.
    lines: Schema | None = None
    # Returns a message if it is as it is sent, and None for its JSON. Raises `TextError` for one that was damaged.
    sent: Callable[[bytes | str], bytes | None] = _sent_bytes
    # The formats of whose messages one after another a message consists; none if messages are bytes.
    joined: tuple[str, ...] = ()
    # Parses what `text` returns.
    parse: Callable[[bytes], Any] = parse_fast


CODECS: Final[dict[str, Codec]] = {}
"""The codecs of the formats whose messages are no JSON text, by name, as the formats' modules state them."""


@dataclass(frozen=True)
class Format:
    """A message format."""

    # Also the name of its `.avsc`.
    name: str
    # A wire schema to use instead of that one.
    given: Schema | None = None

    @cached_property
    def schema(self) -> Schema:
        """The wire schema, read from `avsc/<name>.avsc` when it is first asked for."""
        if self.given is not None:
            return self.given
        return parse_schema((_schema_folder() / f"{self.name}.avsc").read_text(encoding="utf-8"))

    @property
    def codec(self) -> Codec | None:
        """What turns its messages into JSON; None if they are JSON, as the lines are that a codec makes of messages."""
        codec = CODECS.get(self.name)
        return None if codec is None or (self.given is not None and self.given is codec.lines) else codec

    @cached_property
    def envelope(self) -> Record:
        """The outermost record of the wire schema."""
        if not isinstance(self.schema.root, Record):
            raise SchemaError(self.name, "a wire schema is a record")
        check_expansion(self.schema.root, "a format of messages")
        return self.schema.root

    @cached_property
    def program(self) -> Program:
        """The engine's program. Raises `SchemaError` for a schema that is not one of messages."""
        return checked_program(self.envelope, self._writer)

    @cached_property
    def rule(self) -> FormatRule:
        """The rule for the format as a whole, from its wire schema."""
        return format_rule(self.envelope)

    def encode(self, message: bytes | str) -> bytes:
        """Return JSON text as a payload. Raises `TextError` and `StructureError`."""
        payload = self._engine.encode(message)
        return self._convert_exactly(self._encode_left, message) if payload is None else payload

    def _convert_exactly(self, convert: Callable[[Any], T], given: Any) -> T:
        """Convert exactly; errors name the format."""
        try:
            return convert(given)
        except MessageError as error:
            error.format = self.name
            raise

    def _encode_left(self, message: bytes | str) -> bytes:
        codec = self.codec
        if codec is not None:
            text = _text_by(codec, message)
            if text is not message:
                return self.encode(text)
        return self._write(_object(parse_fast(message)))

    def read_bytes(self, message: bytes | str) -> dict[str, Any] | None:
        """Return the record of a message that came as it is sent; None for JSON. Raises `TextError`."""
        codec = self.codec
        raw = None if codec is None else codec.sent(message)
        if codec is None or raw is None:
            return None
        text = codec.text(raw)
        if text is not None and codec.joined:
            # Nothing has looked at its messages.
            self.encode(text)
        return _left_by(codec, raw) if text is None else codec.parse(text)

    def text_of(self, message: bytes | str) -> bytes | str:
        """Return a message as JSON text, also one of a format whose messages are bytes. Raises `TextError`."""
        codec = self.codec
        return message if codec is None else self._convert_exactly(partial(_text_by, codec), message)

    def render(self, record: Any) -> bytes:
        """Return a record as a message: JSON text, or bytes if it came so. Raises `StructureError`."""
        codec = self.codec
        is_binary = codec is not None and type(record) is dict and record.get(BINARY) is True
        return (
            self._convert_exactly(partial(_bytes_by, codec), record)
            if codec is not None and is_binary
            else render(record)
        )

    def message_in(self, record: dict[str, Any]) -> dict[str, Any]:
        """Return the message in a record: the value of the Kafka record around it, if there is one.

        A format that describes Kafka records itself has them as its messages.
        """
        message: dict[str, Any] = record[VALUE] if self.unwraps_records and is_kafka_record(record) else record
        return message

    def kafka_record(self, record: dict[str, Any]) -> dict[str, Any] | None:
        """Return a record if it is a Kafka record with a message in it, or a tombstone; None for a message alone."""
        if self.rule.has_tombstones and is_tombstone(record):
            return record
        return record if (is_kafka_record(record) if self.unwraps_records else VALUE in record) else None

    @cached_property
    def headers(self) -> Mapping[str, bool]:
        """The headers of Kafka records that the format reads, by name, each with whether it is a whole number."""
        named = [field for field in self.envelope.fields if not field_rule(field).members] if self.rule.headers else []
        return {field_rule(field).name: _is_number(field.type) for field in named}

    def members_in_headers(self, record: dict[str, Any]) -> dict[str, Any]:
        """Return the members that the headers of a Kafka record state; none if the format reads none.

        Raises `StructureError` for headers that state none of theirs.
        """
        if not self.rule.headers:
            return {}
        return self._convert_exactly(
            lambda one: members_of_headers(headers_of(one, self.headers), self.headers), record
        )

    def encode_text(self, text: bytes, position: int) -> tuple[bytes, int, int]:
        """Return the payloads of a text's lines, each at most 64 MiB, up to a line that needs `encode`.

        A faulty line does. See `Engine.encode_text`.
        """
        return self._engine.encode_text(text, position)

    def encode_column(self, column: Slices, first: int, base: int, most: int) -> tuple[bytes, bytes, int]:
        """Return the payloads of a column's texts up to one that needs `encode`: see `Engine.encode_column`."""
        return self._engine.encode_column(column, first, base, most)

    def decode_column(self, column: Slices, first: int, base: int, most: int) -> tuple[bytes, bytes, int]:
        """Return the texts of a column's payloads up to one that needs `decode`: see `Engine.encode_column`."""
        return self._engine.decode_column(column, first, base, most)

    def decode(self, payload: bytes, writer: Schema | None = None) -> bytes:
        """Return a payload as a message: UTF-8 JSON text, or bytes if it came so; `writer` is as in `decode_text`.

        Raises what `decode_text` raises, and `StructureError` for a message of which no bytes can be made.
        """
        text = self.decode_text(payload, writer)
        return self.render(parse_fast(text)) if self.codec is not None and _IS_BINARY in text else text

    def decode_text(self, payload: bytes, writer: Schema | None = None) -> bytes:
        """Return a payload as UTF-8 JSON text; `writer` is the schema of the payload if it is not this format's.

        Raises `PayloadError`, and `ResolutionError` if this format's schema cannot read the writer's.
        """
        if writer is not None and writer is not self.schema:
            return render(self.read(payload, writer))
        text = self._engine.decode(payload)
        return self._convert_exactly(self._reader.decode, _to_bytes(payload)) if text is None else text

    def parse(self, message: bytes | str) -> Any:
        """Return text as a record, its JSON value, after checking it. Raises `TextError` and `StructureError`."""
        try:
            record = self.read_bytes(message) if self.name in CODECS else None
            if record is not None:
                return record
            raw = to_bytes(message)
            # msgspec parses exactly what the engine takes.
            if self._engine.is_plain(raw):
                return loads(raw)
            value = _object(parse_fast(raw))
            if self._engine.encode(raw) is None:
                self._writer.write(value)  # which checks it
        except MessageError as error:
            error.format = self.name
            raise
        return value

    def _parse_plain(self, raw: bytes) -> dict[str, Any] | None:
        """Return the record of a message that the engine takes and msgspec parses exactly; None for any other."""
        return loads(raw) if self._engine.is_plain(raw) else None

    def bring_back(self, message: bytes | str) -> dict[str, Any] | None:
        """Return the record of a plain message that its payload decodes to; None where `validate` has to look closer."""
        raw = to_bytes(message)
        record = self._parse_plain(raw)
        text = raw if record is None else self.decode_text(self.encode(raw))
        return record if text == raw or same(record, self._parse_plain(text)) else None

    def read(self, payload: bytes, writer: Schema | None = None) -> dict[str, Any]:
        """Return a payload as a record. Raises `PayloadError` and `ResolutionError`."""
        try:
            raw = _to_bytes(payload)
            record, end = self._reader_of(writer)(raw, 0)
            PayloadDecoder(raw, end).finish()
        except MessageError as error:
            error.format = self.name
            raise
        return record

    def read_block(self, raw: bytes, count: int, writer: Schema) -> Iterator[dict[str, Any]]:
        """Yield `count` consecutive payloads as records. Raises `PayloadError` and `ResolutionError`."""
        read, position = self._reader_of(writer), 0
        try:
            _check_count(raw, count)
            for _ in range(count):
                record, position = read(raw, position)
                yield record
            PayloadDecoder(raw, position).finish()
        except MessageError as error:
            error.format = self.name
            raise

    def decode_block(self, raw: bytes, count: int, writer: Schema) -> Iterator[tuple[bytes, int]]:
        """Yield `count` consecutive payloads as lines of JSON text, several lines at a time.

        Each item is some lines, at most about 256 KiB plus one line, and their number; the lines before
        an error are included. Raises `PayloadError` and `ResolutionError`.
        """
        reader, names = _resolve(writer, self.schema)
        if names is not None:
            yield from ((render(record) + b"\n", 1) for record in self.read_block(raw, count, writer))
            return
        try:
            _check_count(raw, count)
            yield from decode_lines(self._engine if writer is self.schema else engine_of(writer), reader, raw, count)
        except MessageError as error:
            error.format = self.name
            raise

    def write(self, record: Any) -> bytes:
        """Return a record as a payload. Raises `StructureError`."""
        return self._convert_exactly(self._write, record)

    def _write(self, record: Any) -> bytes:
        payload = self.values.write(record)
        return self._writer.write(record) if payload is None else payload

    def _reader_of(self, writer: Schema | None) -> Callable[[bytes, int], tuple[dict[str, Any], int]]:
        """Return a function that reads the payload at a position and returns its record and the position after it.

        Raises `ResolutionError`.
        """
        if writer is None or writer is self.schema:
            return partial(self._reader.read_at, self.values)
        reader, names = _resolve(writer, self.schema)
        read = partial(reader.read_at, values_of(writer))
        return read if names is None else lambda raw, position: self._rename(names, *read(raw, position))

    def _rename(self, names: Renames, record: dict[str, Any], end: int) -> tuple[dict[str, Any], int]:
        message = self.message_in(record)
        renamed: dict[str, Any] = rename(message, names)
        return (renamed if message is record else {**record, VALUE: renamed}), end

    @cached_property
    def unwraps_records(self) -> bool:
        """Whether a message is the value of a Kafka record, and not the record with its key."""
        return unwraps_records([field_rule(field).name for field in self.envelope.fields])

    @property
    def keys_are_of_rows(self) -> bool:
        """Whether a record's key has to be that of the row in its value: alone, it deletes the row."""
        return self.unwraps_records and self.rule.has_tombstones and not self.rule.key

    @property
    def reads_keys(self) -> bool:
        """Whether the key of a Kafka record is part of what it says: one without a value may be a message, too."""
        return self.rule.has_tombstones or bool(self.rule.key) or not self.unwraps_records

    def _encode_exact(self, raw: bytes) -> bytes:
        record = self.read_bytes(raw)
        return self._writer.write(_object(parse(raw)) if record is None else record)

    @cached_property
    def _engine(self) -> Engine:
        return Engine(self.program)

    @cached_property
    def values(self) -> Values:
        """The engine for records of this schema."""
        return Values(self.program)

    @cached_property
    def _reader(self) -> MessageReader:
        return message_reader(self.schema.root)

    @cached_property
    def _writer(self) -> MessageWriter:
        return message_writer(self.envelope)


def _text_by(codec: Codec, message: bytes | str) -> bytes | str:
    """Return a message as JSON text, itself if it came so. Raises `TextError`."""
    raw = codec.sent(message)
    if raw is None:
        return message
    text = codec.text(raw)
    return render(_left_by(codec, raw)) if text is None else text


def _left_by(codec: Codec, raw: bytes) -> dict[str, Any]:
    return codec.read(raw) | {BINARY: True}


def _bytes_by(codec: Codec, record: dict[str, Any]) -> bytes:
    """Return a record as the bytes of a message. Raises `StructureError`."""
    try:
        return codec.write(record)
    except MessageError:
        raise
    # The schema of the JSON lets members hold more than the bytes can: null among columns, a number for a text.
    except (AttributeError, LookupError, TypeError, ValueError, ArithmeticError) as error:
        got = f"one with members of other types ({shown(str(error))})"
        raise StructureError("a record of which bytes can be made", got) from error


def _is_number(declared: Type) -> bool:
    branches = declared.branches if isinstance(declared, Union) else (declared,)
    return {getattr(branch, "name", "") for branch in branches} <= {"null", "int", "long"}


def _to_bytes(payload: bytes) -> bytes:
    if not isinstance(payload, (bytes, bytearray, memoryview)):
        raise TypeError(f"a payload is bytes, not {type(payload).__name__}")
    return payload if type(payload) is bytes else bytes(memoryview(payload))


def _object(value: Any) -> Any:
    """Return a JSON value that is an object. Raises `StructureError` for any other."""
    if type(value) is not dict:
        raise StructureError("object", kind(value))
    return value


def _schema_folder() -> Traversable:
    """Return the folder of schemas: inside the package if it is installed, beside it in a checkout."""
    try:
        return resources.files("cdcavro.avsc")
    except ModuleNotFoundError:
        return Path(__file__).parents[2] / "avsc"


def _check_count(raw: bytes, count: int) -> None:
    if not 0 <= count <= len(raw):
        raise PayloadError("at most one payload to a byte", f"{count} in {len(raw)} bytes")


@lru_cache(maxsize=_KEPT)
def _resolve(writer: Schema, reader: Schema) -> tuple[MessageReader, Renames | None]:
    names = renames_of(resolve(writer.root, reader.root))
    return message_reader(writer.root), names


def validate(message: bytes | str, format: Format) -> dict[str, Any]:
    """Return the record of a message whose payload decodes to exactly the same JSON value.

    Raises `TextError`, `StructureError` (also if the value differs) and `PayloadError`.
    """
    plain = format.bring_back(message)
    if plain is not None:
        return plain
    record: dict[str, Any] = parse(format.decode_text(format.encode(message)))
    first = next(differences(parse(format.text_of(message)), record), None)
    if first is not None:
        raise StructureError("the same value back", "another one", pointer=first[0], format=format.name)
    return record


# The members of a record under the names of a newer schema: what schema resolution means for JSON. A record is read with
# the schema that wrote it, `extras` included, so that it is the message that was sent. Then its members get their new
# names, and new ones their defaults; a member that the newer schema lacks keeps its name.


@dataclass(frozen=True, slots=True)
class ItemRenames:
    """The renames within every item of an array or every value of a map."""

    of: Renames


@dataclass(frozen=True, slots=True)
class MemberRenames:
    """The renames of a record's members, and the defaults of new ones."""

    # The new name, and the renames within the member, by old name.
    names: Mapping[str, tuple[str, Renames | None]]
    # The type and the default, by name.
    defaults: Mapping[str, tuple[Type, Any]]


Renames = ItemRenames | MemberRenames


def renames_of(step: Step) -> Renames | None:
    """Return the renames that a resolution implies; None if there are none.

    Raises `SchemaError` for a union of several records with renames: JSON does not tell the branches apart.
    """
    match step:
        case ReadArray(inner) | ReadMap(inner):
            below = renames_of(inner)
            return ItemRenames(below) if below else None
        case ReadUnion(branches):
            renames = [renames_of(branch) for branch in branches if not isinstance(branch, str)]
            inside = [names for names in renames if names is not None]
            if len(inside) > 1:
                raise SchemaError("$", "renames in several branches of a union")
            return inside[0] if inside else None
        case ReadRecord(reader=declared) if not content_of(declared):
            names = dict(entry for field in step.fields for entry in _member_renames(*field))
            defaults = dict(entry for field in step.defaults for entry in _default(field))
            return MemberRenames(names, defaults) if names or defaults else None
        case ReadPrimitive() | ReadFixed() | ReadEnum() | ReadRecord():
            return None
    raise SchemaError("$", f"no renames for {type(step).__name__}")


def _member_renames(step: Step, was: Field, now: Field | None) -> list[tuple[str, tuple[str, Renames | None]]]:
    if now is None or field_rule(was).members:
        return []
    old, new, below = field_rule(was).name, field_rule(now).name, renames_of(step)
    return [(old, (new, below))] if old != new or below else []


def _default(declared: Field) -> list[tuple[str, tuple[Type, Any]]]:
    rule = field_rule(declared)
    if rule.members or (declared.default is None and rule.missing == "absent"):
        return []
    return [(rule.name, (declared.type, declared.default))]


def rename(value: Any, names: Renames, pointer: str = "") -> Any:
    """Return a JSON value with its members renamed, and with the defaults of new members.

    Raises `PayloadError` if another member already has the new name: one of the two would be lost.
    """
    match names:
        case ItemRenames(of) if isinstance(value, dict):
            return {name: rename(item, of, f"{pointer}/{escape(name)}") for name, item in value.items()}
        case ItemRenames(of) if isinstance(value, list):
            return [rename(item, of, f"{pointer}/{i}") for i, item in enumerate(value)]
        case MemberRenames() if isinstance(value, dict):
            return _renamed_members(value, names, pointer)
        case ItemRenames() | MemberRenames():
            return value
    raise SchemaError(pointer or "$", f"no renames are {type(names).__name__}")


def _renamed_members(value: dict[str, Any], members: MemberRenames, pointer: str) -> dict[str, Any]:
    renamed: dict[str, Any] = {}
    for old, item in value.items():
        new, below = members.names.get(old, (old, None))
        if new in renamed:
            raise PayloadError("a name that is free", f"{shown(new)} twice", pointer=f"{pointer}/{escape(old)}")
        renamed[new] = rename(item, below, f"{pointer}/{escape(old)}") if below else item
    for name, default in members.defaults.items():
        renamed.setdefault(name, _default_value(*default))
    return renamed


def _default_value(declared: Type, default: Any) -> Any:
    """Return a default as the JSON value of a message; a schema's JSON writes some defaults in another way."""
    match declared:
        case Union(branches):
            return _default_value(branches[0], default)
        case Record():
            return _default_record(declared, default)
        case Array(items):
            return [_default_value(items, item) for item in default]
        case Map(values):
            return {name: _default_value(values, item) for name, item in default.items()}
        case Primitive("float" | "double"):
            return float(default)
        case Primitive() | Enum():
            return default
    raise SchemaError("$", f"a wire schema holds no {type(declared).__name__}")


def _default_record(declared: Record, default: dict[str, Any]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for field in declared.fields:
        rule, item = field_rule(field), default.get(field.name, field.default)
        if rule.members:
            members.update(_default_value(field.type, item))
        elif item is not None or rule.missing == "null":
            members[rule.name] = _default_value(field.type, item)
    return members

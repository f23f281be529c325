"""A format: its wire schema, the plans made from it, and the trip text ⇄ payload.

`encode` takes the fast way where it is exact: msgspec parses text into Structs made from the
schema. It hides three things: a repeated member, `-0`, and which member was at fault. So a message
is taken from there only if the text holds no `-0` and exactly as many member separators as members
were written; everything else, every fault included, goes the exact way through `text.parse`.
"""

from __future__ import annotations

import operator
import re
import typing
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
import orjson
from msgspec import UNSET, Meta, UnsetType

from cdcavro import text
from cdcavro.attributes import field_rule, holds
from cdcavro.errors import MessageError, PayloadError, SchemaError, StructureError
from cdcavro.evolution import resolve
from cdcavro.readers import Payload
from cdcavro.reading import EnvelopeReader
from cdcavro.renaming import names_of, rename
from cdcavro.schema import Schema, parse_schema
from cdcavro.types import Array, Enum, Map, Primitive, Record, Type, Union
from cdcavro.writing import EnvelopeWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from importlib.resources.abc import Traversable

    Getter = Callable[[Any], tuple[Any, ...]]

_KEPT: Final = 64
# Of a number beyond 64 bits msgspec makes an int, and of one with more digits than Python takes an error.
_LONG_NUMBER: Final = re.compile(rb"[0-9]{19}")
_NEGATIVE_ZERO: Final = re.compile(rb"-0[\s,}\]]")
_SPACED_COLON: Final = (b" :", b"\t:", b"\n:", b"\r:")
_UNTYPED: Final = msgspec.json.Decoder(float_hook=text.fraction)
_INT32: Final = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
_INT64: Final = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
_PYTHON: Final[dict[str, Any]] = {"null": None, "boolean": bool, "int": _INT32, "long": _INT64, "string": str}


@dataclass(frozen=True)
class Format:
    """A message format.

    Attributes: `name` (str), which is also the name of its `.avsc`; `given`, a wire schema to use
    instead of that one.
    """

    name: str
    given: Schema | None = None

    @cached_property
    def schema(self) -> Schema:
        """The wire schema, read from `avsc/<name>.avsc` when it is first asked for."""
        if self.given is not None:
            return self.given
        return parse_schema((_schemas() / f"{self.name}.avsc").read_text(encoding="utf-8"))

    @cached_property
    def envelope(self) -> Record:
        """The outermost record of the wire schema."""
        if not isinstance(self.schema.root, Record):
            raise SchemaError(self.name, "a wire schema is a record")
        return self.schema.root

    def encode(self, message: bytes | str) -> bytes:
        """Turn JSON text into a payload. Raises `TextError`, `StructureError`."""
        try:
            raw = text.to_bytes(message)
            payload = self._encode_fast(raw)
            return self._encode_exact(raw) if payload is None else bytes(payload)
        except MessageError as error:
            error.format = self.name
            raise

    def decode(self, payload: bytes, writer: Schema | None = None) -> bytes:
        """Turn a payload into UTF-8 JSON text; `writer` is the schema it was written with, if another.

        Raises `PayloadError`; `ResolutionError` if this format's schema cannot read the writer's.
        """
        return text.render(self.read(payload, writer))

    def parse(self, message: bytes | str) -> Any:
        """Parse text into a record: the JSON value that it is, checked. Raises `TextError`, `StructureError`."""
        try:
            raw = text.to_bytes(message)
            if self._encode_fast(raw) is not None and not _LONG_NUMBER.search(raw):
                return _UNTYPED.decode(raw)
        except MessageError as error:
            error.format = self.name
            raise
        return self.read(self.encode(raw))

    def read(self, payload: bytes, writer: Schema | None = None) -> dict[str, Any]:
        """Read a payload into a record. Raises `PayloadError`, `ResolutionError`."""
        if not isinstance(payload, (bytes, bytearray, memoryview)):
            raise TypeError(f"a payload is bytes, not {type(payload).__name__}")
        try:
            raw = Payload(bytes(payload))
            record = self.reader(writer)(raw)
            raw.finish()
        except MessageError as error:
            error.format = self.name
            raise
        return record

    def read_block(self, raw: bytes, count: int, writer: Schema) -> Iterator[dict[str, Any]]:
        """Read so many payloads that lie one behind another. Raises `PayloadError`."""
        read = self.reader(writer)
        payloads = Payload(raw)
        try:
            if count > len(raw):
                raise PayloadError("at most one payload to a byte", f"{count} in {len(raw)} bytes")
            for _ in range(count):
                yield read(payloads)
            payloads.finish()
        except MessageError as error:
            error.format = self.name
            raise

    def write(self, record: Any) -> bytes:
        """Write a record as a payload. Raises `StructureError`."""
        try:
            return bytes(self._writer.write(record)[0])
        except MessageError as error:
            error.format = self.name
            raise

    def reader(self, writer: Schema | None = None) -> Callable[[Payload], dict[str, Any]]:
        """Give the function that reads the payloads of a writer's schema. Raises `ResolutionError`."""
        return _reader(writer or self.schema, self.schema)

    def _encode_fast(self, raw: bytes) -> bytearray | None:
        try:
            payload, members = self._writer.write(self._decoder.decode(raw))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, MessageError, orjson.JSONEncodeError):
            return None
        if _separators(raw) != members or any(colon in raw for colon in _SPACED_COLON):
            return None
        if b"-0" in raw and _NEGATIVE_ZERO.search(raw):
            return None
        return payload

    def _encode_exact(self, raw: bytes) -> bytes:
        value = text.parse(raw)
        if type(value) is not dict:
            raise StructureError("object", text.kind(value))
        return bytes(self._writer.write(value)[0])

    @cached_property
    def _writer(self) -> EnvelopeWriter:
        return EnvelopeWriter(self.envelope, self._structs.made)

    @cached_property
    def _structs(self) -> _Structs:
        # Refuses what is no wire schema, before msgspec meets it.
        EnvelopeWriter(self.envelope, {})
        return _Structs(self.envelope)

    @cached_property
    def _decoder(self) -> Any:
        return msgspec.json.Decoder(self._structs.root, float_hook=text.fraction)


class _Structs:
    """msgspec types made from the records of a wire schema.

    A record with a rest map stays a `dict`. Members are numbered, since a Struct's field names must
    be Python's; the JSON names are msgspec's renames.
    """

    def __init__(self, envelope: Record) -> None:
        self.made: dict[str, tuple[type, Getter]] = {}
        self.root = self._record(envelope)

    def _record(self, declared: Record) -> Any:
        if declared.name in self.made:
            return self.made[declared.name][0]
        rules = [field_rule(one) for one in declared.fields]
        if any(rule.members == "rest" for rule in rules):
            return dict[str, Any]
        named = [(rule, one.type) for rule, one in zip(rules, declared.fields, strict=True) if not rule.members]
        fields = [(f"f{i}", self._type(one) | UnsetType, UNSET) for i, (_, one) in enumerate(named)]
        names = {f"f{i}": rule.name for i, (rule, _) in enumerate(named)}
        made = msgspec.defstruct("Record", fields, rename=names, forbid_unknown_fields=True, gc=False)
        self.made[declared.name] = made, _getter(list(names))
        return made

    def _type(self, declared: Type) -> Any:
        match declared:
            case Primitive(name):
                return _PYTHON[name]
            case Enum():
                return str
            case Array(items):
                return list[self._type(items)]  # type: ignore[misc]
            case Map(values):
                return dict[str, self._type(values)]  # type: ignore[misc]
            case Union(branches):
                return self._union(branches)
            case Record():
                return self._record(declared)
        raise SchemaError(declared.name, "a wire schema holds no fixed")

    def _union(self, branches: tuple[Type, ...]) -> Any:
        if any(holds(branch) for branch in branches):
            return Any
        return typing.Union[tuple(self._type(branch) for branch in branches)]  # noqa: UP007  made at run time


def _separators(raw: bytes) -> int:
    """Count the member separators of a text without spaced ones; too many where that is hard to tell."""
    found = raw.count(b'":')
    escaped = raw.count(b'\\":')
    # The quote in \\": is no escaped one.
    return found if escaped and b'\\\\"' in raw else found - escaped


def _schemas() -> Traversable:
    """Give the folder of schemas: part of the package where it is installed, beside it in a checkout."""
    try:
        return resources.files("cdcavro.avsc")
    except ModuleNotFoundError:
        return Path(__file__).parents[1] / "avsc"


@lru_cache(maxsize=_KEPT)
def _reader(writer: Schema, reader: Schema) -> Callable[[Payload], dict[str, Any]]:
    names = names_of(resolve(writer.root, reader.root))
    read = EnvelopeReader(writer.root).read
    return read if names is None else lambda payload: rename(read(payload), names)


def _getter(names: list[str]) -> Getter:
    if not names:
        return lambda _: ()
    if len(names) == 1:
        only = operator.attrgetter(names[0])
        return lambda value: (only(value),)
    return operator.attrgetter(*names)

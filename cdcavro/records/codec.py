"""The codec of a module of generated records, and the methods that it gives to their classes."""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

from cdcavro.avro.decoder import Decoder
from cdcavro.avro.resolution import resolve
from cdcavro.avro.schema import Schema, parse_schema
from cdcavro.avro.types import Map, Primitive, Record
from cdcavro.errors import MessageError, SchemaError
from cdcavro.exact.jsontext import parse, render
from cdcavro.records.as_json import FromJson, ToJson
from cdcavro.records.classes import field_names
from cdcavro.records.decode import Readers
from cdcavro.records.encode import Writers
from cdcavro.records.field_defaults import default_value
from cdcavro.records.shapes import Definition, Key, class_definitions
from cdcavro.wire.format import Format

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_KEPT: Final = 64
_EXTRAS: Final = "extras"


class AvroRecord:
    """What the classes of generated records share: instances from and to Avro data and JSON."""

    __slots__ = ()
    __avro__: ClassVar[Any]

    @classmethod
    def from_avro(cls, payload: bytes, *, writer: Schema | None = None) -> Self:
        """Read a payload; `writer` is the schema that wrote it, if another: aliases and defaults then apply.

        Raises `PayloadError`, and `ResolutionError` if this schema cannot read the writer's.
        """
        made: Self = cls.__avro__.read(cls, payload, writer)
        return made

    def to_avro(self) -> bytes:
        """Return the instance as a payload. Raises `StructureError` for a value that its type does not hold exactly."""
        payload: bytes = self.__avro__.write(self)
        return payload

    @classmethod
    def from_json(cls, text: bytes | str) -> Self:
        """Read JSON: for the record of a wire schema the message, for any other what `to_json` gives.

        Raises `TextError`, `StructureError`.
        """
        made: Self = cls.__avro__.parse(cls, text)
        return made

    def to_json(self) -> bytes:
        """Return the instance as UTF-8 JSON text: for the record of a wire schema the message, digit for digit.

        Raises `StructureError`; `PayloadError` for `extras` that do not fit the message.
        """
        text: bytes = self.__avro__.render(self)
        return text


class Codec:
    """Turns the records of one schema, which are instances of these classes, into Avro and JSON and back.

    Made from the schema's text and the classes, each behind those that it uses, as
    `shapes.class_definitions` finds them. `name` is that of the format, or of the schema, for errors. The
    schema is read when it is first needed; `SchemaError` is raised then if the classes are not its.
    """

    def __init__(self, schema: str, classes: Sequence[type], *, name: str) -> None:
        self._text = schema
        self._listed = tuple(classes)
        self.name = name
        self._reader = lru_cache(_KEPT)(self._make_reader)
        self._from_json = lru_cache(_KEPT)(self._make_from_json)
        for one in self._listed:
            if issubclass(one, AvroRecord):
                one.__avro__ = self

    @cached_property
    def schema(self) -> Schema:
        """The schema."""
        return parse_schema(self._text)

    def read(self, cls: type, payload: bytes, writer: Schema | None) -> Any:
        """Read a payload as an instance of a class. Raises `PayloadError`, `ResolutionError`."""
        if not isinstance(payload, (bytes, bytearray, memoryview)):
            raise TypeError(f"a payload is bytes, not {type(payload).__name__}")
        read = self._reader(cls, writer)
        source = Decoder(bytes(payload))
        try:
            made = read(source)
            source.finish()
        except MessageError as error:
            error.format = self.name
            raise
        return made

    def write(self, value: Any) -> bytes:
        """Write an instance. Raises `StructureError`."""
        out = bytearray()
        try:
            self._writers.writer(self._record(type(value)))(out, value)
        except MessageError as error:
            error.format = self.name
            raise
        return bytes(out)

    def parse(self, cls: type, text: bytes | str) -> Any:
        """Read JSON as an instance of a class. Raises `TextError`, `StructureError`."""
        if self._message is not None and self._record(cls) is self.schema.root:
            return self.read(cls, self._message.encode(text), None)
        try:
            return self._from_json(cls)(parse(text))
        except MessageError as error:
            error.format = self.name
            raise

    def render(self, value: Any) -> bytes:
        """Return an instance as JSON text. Raises `StructureError`, `PayloadError`."""
        record = self._record(type(value))
        payload = self.write(value)
        if self._message is not None and record is self.schema.root:
            return self._message.decode(payload)
        return render(self._to_json.turn(record)(value))

    def default(self, record: int, field: int) -> Any:
        """Return the default of a field, by the number of its record among the classes and its own."""
        declared = self._definitions[record].type
        if not isinstance(declared, Record):
            raise SchemaError(self.name, f"class {record} is no record")
        one = declared.fields[field]
        return default_value(one.type, one.default, self._classes)

    @cached_property
    def _definitions(self) -> list[Definition]:
        return class_definitions(self.schema.root)

    @cached_property
    def _classes(self) -> Mapping[Key, type]:
        found = self._definitions
        if len(found) != len(self._listed):
            raise SchemaError(self.name, f"needs {len(found)} classes, got {len(self._listed)}")
        for one, cls in zip(found, self._listed, strict=True):
            if isinstance(one.type, Record) and len(field_names(cls)) != len(one.type.fields):
                raise SchemaError(self.name, f"{cls.__name__} has other fields than {one.type.name}")
        return {one.key: cls for one, cls in zip(found, self._listed, strict=True)}

    @cached_property
    def _records(self) -> Mapping[type, Record]:
        found = self._definitions
        by_class = {self._classes[one.key]: one.type for one in found}
        return {cls: declared for cls, declared in by_class.items() if isinstance(declared, Record)}

    def _record(self, cls: type) -> Record:
        """Return the record that a class, or one that it is derived from, was generated for."""
        found = next((self._records[one] for one in cls.__mro__ if one in self._records), None)
        if found is None:
            raise SchemaError(self.name, f"{cls.__name__} is none of its classes")
        return found

    @cached_property
    def _message(self) -> Format | None:
        """The format of the messages, if the schema is a wire schema: if it ends in extras."""
        root = self.schema.root
        last = root.fields[-1] if isinstance(root, Record) and root.fields else None
        said = {} if last is None else last.attributes.get("json")
        is_wire = isinstance(said, dict) and said.get("members") == _EXTRAS
        is_wire = is_wire and last is not None and last.type == Map(Primitive("string"))
        return Format(self.name, self.schema) if is_wire else None

    @cached_property
    def _writers(self) -> Writers:
        return Writers(self._classes)

    @cached_property
    def _to_json(self) -> ToJson:
        return ToJson(self._classes)

    def _make_reader(self, cls: type, writer: Schema | None) -> Callable[[Decoder], Any]:
        record = self._record(cls)
        written = record if writer is None else writer.root
        readers = Readers({**self._classes, record.name: cls})
        return readers.reader(resolve(written, record), written, record)

    def _make_from_json(self, cls: type) -> Callable[[Any], Any]:
        record = self._record(cls)
        return FromJson({**self._classes, record.name: cls}).turn(record)

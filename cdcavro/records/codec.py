"""The codec of a module of generated records, the methods of their classes, and the JSON form of instances.

Each value has exactly one JSON form. A record is an object with all its fields under their Avro names; on reading, a
field that has a default may be missing, and a member that is not a field is refused. A union of null and one type is the
value or null; any other union is `{"branch": value}`, or null, as in Avro's own JSON encoding. The JSON of scalars is
described in `python_values`.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

from cdcavro.avro.binary import call_later
from cdcavro.avro.resolution import resolve
from cdcavro.avro.schema import Schema, parse_schema
from cdcavro.avro.types import Array, Enum, Fixed, Map, Primitive, Record, Type, Union, branch_name, recursion
from cdcavro.engine.machine import Decoder
from cdcavro.errors import MessageError, SchemaError, StructureError, shown
from cdcavro.exact.jsontext import ABSENT, escape, kind, parse, render
from cdcavro.records.avro_form import Output, Readers, Writers, fixed_check
from cdcavro.records.python_values import default_maker, default_value, parse_base64, scalar, show_base64
from cdcavro.records.shapes import (
    ClassDefinition,
    Key,
    branch_classes,
    branch_keys,
    class_definitions,
    field_names,
    getter,
    maker,
    meaning,
)
from cdcavro.wire.format import Format

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Convert = Callable[[Any], Any]

_KEPT: Final = 64
_EXTRAS: Final = "extras"


class AvroRecord:
    """The base class of generated records: converts instances to and from Avro and JSON."""

    __slots__ = ()
    __avro__: ClassVar[Any]

    @classmethod
    def from_avro(cls, payload: bytes, *, writer: Schema | None = None, reinterpret: bool = False) -> Self:
        """Return the instance in a payload (bytes, an Avro datum).

        `writer` is the schema that wrote the payload, if it is not this one: aliases and defaults then apply.
        Bytes where this schema has a string, and plain numbers where it has dates, times or decimals, are errors
        unless `reinterpret` is true, which reads them as this schema says. Raises `PayloadError`, and
        `ResolutionError` if this schema cannot read the writer's.
        """
        instance: Self = cls.__avro__.read(cls, payload, writer, reinterpret=reinterpret)
        return instance

    def to_avro(self) -> bytes:
        """Return the instance as a payload. Raises `StructureError` for a value that its type cannot hold exactly."""
        payload: bytes = self.__avro__.write(self)
        return payload

    @classmethod
    def from_json(cls, text: bytes | str) -> Self:
        """Return the instance in a JSON text: a message for a wire schema's record, else what `to_json` returns.

        Raises `TextError` for a text that is not JSON, and `StructureError` for one of another structure.
        """
        instance: Self = cls.__avro__.parse(cls, text)
        return instance

    def to_json(self) -> bytes:
        """Return the instance as JSON text in UTF-8; for a wire schema's record, this is the message, digit for digit.

        Raises `StructureError`, and `PayloadError` for `extras` that do not fit the message.
        """
        text: bytes = self.__avro__.render(self)
        return text


class Codec:
    """Converts the records of one schema, instances of generated classes, to Avro and JSON and back.

    `schema` is the schema's text; `classes` are in the order of `shapes.class_definitions`, each after those that
    it uses; `name` is the name of the format or schema, for errors. The schema is parsed when it is first needed;
    `SchemaError` is raised then if the classes do not belong to it.
    """

    def __init__(self, schema: str, classes: Sequence[type], *, name: str) -> None:
        self._text = schema
        self._listed = tuple(classes)
        self.name = name
        # Each is made by itself: what is half made is seen by no other thread.
        self._reader = lru_cache(_KEPT)(self._make_reader)
        self._writer = lru_cache(_KEPT)(self._make_writer)
        self._to_json = lru_cache(_KEPT)(self._make_to_json)
        self._from_json = lru_cache(_KEPT)(self._make_from_json)
        for cls in self._listed:
            if issubclass(cls, AvroRecord):
                cls.__avro__ = self

    @cached_property
    def schema(self) -> Schema:
        """The parsed schema."""
        return parse_schema(self._text)

    def read(self, cls: type, payload: bytes, writer: Schema | None, *, reinterpret: bool = False) -> Any:
        """Return a payload as an instance of a class. Raises `PayloadError`, `ResolutionError`."""
        if not isinstance(payload, (bytes, bytearray, memoryview)):
            raise TypeError(f"a payload is bytes, not {type(payload).__name__}")
        read = self._reader(cls, writer, reinterpret)
        source = Decoder(bytes(payload))
        try:
            instance = read(source)
            source.finish()
        except MessageError as error:
            error.format = self.name
            raise
        return instance

    def write(self, value: Any) -> bytes:
        """Return an instance as a payload. Raises `StructureError`."""
        out = Output()
        cls: type = type(value)
        try:
            self._writer(cls)(out, value)
        except MessageError as error:
            error.format = self.name
            raise
        return bytes(out)

    def parse(self, cls: type, text: bytes | str) -> Any:
        """Return a JSON text as an instance of a class. Raises `TextError`, `StructureError`."""
        if self._message is not None and self._record(cls) is self.schema.root:
            return self.read(cls, self._message.encode(text), None)
        try:
            return self._from_json(cls)(parse(text))
        except MessageError as error:
            error.format = self.name
            raise

    def render(self, value: Any) -> bytes:
        """Return an instance as JSON text. Raises `StructureError`, `PayloadError`."""
        cls: type = type(value)
        payload = self.write(value)
        if self._message is not None and self._record(cls) is self.schema.root:
            return self._message.decode(payload)
        return render(self._to_json(cls)(value))

    def default(self, record: int, field: int) -> Any:
        """Return the default of a field, by the number of its class and its own number, both from 0."""
        declared = self._definitions[record].type
        if not isinstance(declared, Record):
            raise SchemaError(self.name, f"class {record} is no record")
        definition = declared.fields[field]
        return default_value(definition.type, definition.default, self._classes)

    @cached_property
    def _definitions(self) -> list[ClassDefinition]:
        return class_definitions(self.schema.root)

    @cached_property
    def _classes(self) -> Mapping[Key, type]:
        definitions = self._definitions
        if len(definitions) != len(self._listed):
            raise SchemaError(self.name, f"needs {len(definitions)} classes, got {len(self._listed)}")
        for definition, cls in zip(definitions, self._listed, strict=True):
            if isinstance(definition.type, Record) and len(field_names(cls)) != len(definition.type.fields):
                raise SchemaError(self.name, f"{cls.__name__} has other fields than {definition.type.name}")
        return {definition.key: cls for definition, cls in zip(definitions, self._listed, strict=True)}

    @cached_property
    def _records(self) -> Mapping[type, Record]:
        by_class = {self._classes[definition.key]: definition.type for definition in self._definitions}
        return {cls: declared for cls, declared in by_class.items() if isinstance(declared, Record)}

    def _record(self, cls: type) -> Record:
        """Return the record type that a class, or one of its base classes, was generated for."""
        record = next((self._records[base] for base in cls.__mro__ if base in self._records), None)
        if record is None:
            raise SchemaError(self.name, f"{cls.__name__} is none of its classes")
        return record

    @cached_property
    def _message(self) -> Format | None:
        """The format of the messages if the schema is a wire schema, that is, if its last field is `extras`."""
        root = self.schema.root
        last = root.fields[-1] if isinstance(root, Record) and root.fields else None
        rule = {} if last is None else last.attributes.get("json")
        is_wire = isinstance(rule, dict) and rule.get("members") == _EXTRAS
        is_wire = is_wire and last is not None and last.type == Map(Primitive("string"))
        return Format(self.name, self.schema) if is_wire else None

    def _make_reader(self, cls: type, writer: Schema | None, reinterpret: bool) -> Callable[[Decoder], Any]:  # noqa: FBT001  a key of the cache
        record = self._record(cls)
        written = record if writer is None else writer.root
        readers = Readers({**self._classes, record.name: cls}, written, record, reinterpret=reinterpret)
        return readers.reader(resolve(written, record), written, record)

    def _make_writer(self, cls: type) -> Callable[[Output, Any], None]:
        writers = Writers(self._classes, is_endless=recursion(self.schema.root) is not None)
        return writers.writer(self._record(cls))

    def _make_to_json(self, cls: type) -> Callable[[Any], Any]:
        return ToJson(self._classes).converter(self._record(cls))

    def _make_from_json(self, cls: type) -> Callable[[Any], Any]:
        record = self._record(cls)
        return FromJson({**self._classes, record.name: cls}).converter(record)


NULL: Final = Primitive("null")


class ToJson:
    """Builds functions that convert values, which a writer has accepted, to JSON. `classes` are by key."""

    def __init__(self, classes: Mapping[Key, type]) -> None:
        self._classes = classes
        self._built: dict[str, Convert] = {}

    def converter(self, declared: Type) -> Convert:
        """Return the function for a type."""
        match declared:
            case Array(items):
                inner = self.converter(items)
                return lambda value: [inner(item) for item in value]
            case Map(values):
                inner = self.converter(values)
                return lambda value: {name: inner(item) for name, item in value.items()}
            case Union():
                return self._union(declared)
            case Record():
                if declared.name not in self._built:
                    # While its fields are turned, a record within itself is looked up when values get there.
                    self._built[declared.name] = call_later(self._built, declared.name)
                    self._built[declared.name] = self._record(declared)
                return self._built[declared.name]
            case Enum():
                return str
            case Fixed() if meaning(declared) is None:
                return show_base64
            case Primitive() | Fixed():
                return scalar(declared).show or _identity
        raise SchemaError("$", f"{type(declared).__name__} is no type")

    def _record(self, declared: Record) -> Convert:
        get = getter(field_names(self._classes[declared.name]))
        parts = [(field.name, self.converter(field.type)) for field in declared.fields]
        return lambda value: {name: converter(item) for (name, converter), item in zip(parts, get(value), strict=True)}

    def _union(self, declared: Union) -> Convert:
        converters: dict[type, tuple[str, Convert]] = {}
        for branch, key, cls in zip(
            declared.branches, branch_keys(declared), branch_classes(declared, self._classes), strict=True
        ):
            inner = self.converter(branch)
            converters[cls] = branch_name(branch), (inner if key is None else _unwrap(inner))
        if _has_one_branch(declared):
            return lambda value: converters[type(value)][1](value)

        def converter(value: Any) -> Any:
            name, inner = converters[type(value)]
            return None if value is None else {name: inner(value)}

        return converter


class FromJson:
    """Builds functions that convert JSON to values. `classes` are by key."""

    def __init__(self, classes: Mapping[Key, type]) -> None:
        self._classes = classes
        self._built: dict[str, Convert] = {}

    def converter(self, declared: Type) -> Convert:
        """Return the function for a type; that function raises `StructureError`."""
        match declared:
            case Array(items):
                return _array_converter(self.converter(items))
            case Map(values):
                return _map_converter(self.converter(values))
            case Union():
                return self._union(declared)
            case Record():
                if declared.name not in self._built:
                    # While its fields are turned, a record within itself is looked up when values get there.
                    self._built[declared.name] = call_later(self._built, declared.name)
                    self._built[declared.name] = self._record(declared)
                return self._built[declared.name]
            case Enum():
                return _enum_converter(declared, self._classes[declared.name])
            case Fixed() if meaning(declared) is None:
                cls: Any = self._classes[declared.name]
                return _with_check(lambda value: cls(parse_base64(value)), fixed_check(declared, cls))
            case Primitive() | Fixed():
                conversions = scalar(declared)
                return _with_check(conversions.parse or _identity, conversions.lower)
        raise SchemaError("$", f"{type(declared).__name__} is no type")

    def _record(self, declared: Record) -> Convert:
        converters = {field.name: self.converter(field.type) for field in declared.fields}
        defaults = {
            field.name: default_maker(field.type, field.default, self._classes)
            for field in declared.fields
            if field.default is not ABSENT
        }
        cls = self._classes[declared.name]
        make = maker(cls, field_names(cls))

        def converter(value: Any) -> Any:
            if type(value) is not dict:
                raise StructureError("object", kind(value))
            for name in value.keys() - converters.keys():
                raise StructureError("a field of the record", "another member", pointer=f"/{escape(name)}")
            values = []
            for name, inner in converters.items():
                if name in value:
                    values.append(_convert_below(inner, value[name], name))
                elif name in defaults:
                    values.append(defaults[name]())
                else:
                    raise StructureError("a member without a default", "none", pointer=f"/{name}")
            return make(values)

        return converter

    def _union(self, declared: Union) -> Convert:
        converters: dict[str, Convert] = {}
        for branch, key in zip(declared.branches, branch_keys(declared), strict=True):
            inner = self.converter(branch)
            converters[branch_name(branch)] = inner if key is None else _wrap(inner, self._classes[key])
        is_nullable = converters.pop("null", None) is not None
        if _has_one_branch(declared):
            only = next(iter(converters.values()), self.converter(NULL))
            return lambda value: None if value is None and is_nullable else only(value)

        def converter(value: Any) -> Any:
            if value is None and is_nullable:
                return None
            if type(value) is not dict or len(value) != 1:
                raise StructureError("an object with the name of a branch", kind(value))
            ((name, inner),) = value.items()
            if name not in converters:
                raise StructureError("the name of a branch", shown(name))
            return _convert_below(converters[name], inner, name)

        return converter


def _has_one_branch(declared: Union) -> bool:
    """Return whether a union has at most one branch besides null."""
    return sum(branch != NULL for branch in declared.branches) <= 1


def _identity(value: Any) -> Any:
    return value


def _convert_below(converter: Convert, value: Any, name: str) -> Any:
    try:
        return converter(value)
    except MessageError as error:
        error.below(f"/{escape(name)}")
        raise


def _with_check(parse: Convert, check: Convert) -> Convert:
    def converter(value: Any) -> Any:
        parsed = parse(value)
        check(parsed)
        return parsed

    return converter


def _unwrap(inner: Convert) -> Convert:
    return lambda value: inner(value.value)


def _wrap(inner: Convert, cls: type) -> Convert:
    return lambda value: cls(inner(value))


def _array_converter(inner: Convert) -> Convert:
    def converter(value: Any) -> list[Any]:
        if type(value) is not list:
            raise StructureError("array", kind(value))
        return [_convert_below(inner, item, str(i)) for i, item in enumerate(value)]

    return converter


def _map_converter(inner: Convert) -> Convert:
    def converter(value: Any) -> dict[str, Any]:
        if type(value) is not dict:
            raise StructureError("object", kind(value))
        return {name: _convert_below(inner, item, name) for name, item in value.items()}

    return converter


def _enum_converter(declared: Enum, cls: type) -> Convert:
    symbols = frozenset(declared.symbols)

    def converter(value: Any) -> Any:
        if type(value) is not str or value not in symbols:
            raise StructureError(f"a symbol of {declared.name}", shown(value))
        return cls(value)

    return converter

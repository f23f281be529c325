"""The source of the classes in generated modules: records, enums, fixed types, and branches that need a class.

The kinds of records differ by the library that they are declared with (`Library`).
"""

from __future__ import annotations

import datetime as dt
import math
import re
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from cdcavro.avro.defaults import default_branch, is_usable
from cdcavro.avro.types import Array, Enum, Field, Fixed, Map, Primitive, Record, Type, Union
from cdcavro.errors import SchemaError
from cdcavro.exact.jsontext import ABSENT
from cdcavro.records.python_source import (
    ENUM_NAMES,
    KEYWORDS,
    LONGEST_CLASS,
    WIDTH,
    assignment,
    attribute_names,
    bytes_literal,
    class_names,
    docstring,
    string_literal,
)
from cdcavro.records.python_values import default_scalar
from cdcavro.records.shapes import Key, branch_keys, meaning, shape
from cdcavro.table.table_schema import ATTRIBUTE
from cdcavro.wire.attributes import ATTRIBUTE as WIRE_ATTRIBUTE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cdcavro.records.shapes import ClassDefinition

_INDENT: Final = "    "
_NULL: Final = Primitive("null")
_STATED: Final = {"column": "Column", "type": "Declared as", "note": "Note"}
_WORD: Final = re.compile(r"\w+")
_LONG: Final = 70
_SEVERAL: Final = 4
_TYPES: Final[dict[type, str]] = {
    Decimal: "Decimal",
    dt.date: "dt.date",
    dt.time: "dt.time",
    dt.datetime: "dt.datetime",
}
_COLUMN_VALUE: Final = "ColumnValue"


@dataclass(frozen=True)
class Library:
    """How a library of classes declares a record."""

    # The line above a class.
    decorator: str
    # The text in the parentheses behind its name.
    bases: str
    # The function that describes a field.
    field: str
    # The arguments of that function for a field whose Avro name, in place of `NAME`, is different.
    renamed: tuple[str, ...]
    # Names to import, by module.
    imports: Mapping[str, tuple[str, ...]]
    # Names of types that are not Python's own.
    types: Mapping[str, str] = dataclass_field(default_factory=dict)
    # Blocks that stand before all others, by the name whose use requires them.
    prelude: Mapping[str, str] = dataclass_field(default_factory=dict)
    # Names that a field cannot have.
    reserved: frozenset[str] = frozenset()


NAME: Final = "NAME"
_DATACLASS: Final = Library(
    decorator="@dataclass(kw_only=True, slots=True)\n",
    bases="AvroRecord",
    field="field",
    renamed=('metadata={"avro": NAME}',),
    imports={"dataclasses": ("dataclass", "field")},
)
_MSGSPEC: Final = Library(
    decorator="",
    bases="AvroRecord, Struct, kw_only=True",
    field="field",
    renamed=("name=NAME",),
    imports={"msgspec": ("Struct", "field")},
)
_OF_MODELS: Final = (
    "construct copy dict from_orm json model_computed_fields model_config model_construct model_copy model_dump"
    " model_dump_json model_extra model_fields model_fields_set model_json_schema model_parametrized_name"
    " model_post_init model_rebuild model_validate model_validate_json model_validate_strings parse_file parse_obj"
    " parse_raw schema schema_json update_forward_refs validate"
    # Those of its metaclass, too: pydantic warns of a field of such a name.
    " mro register"
)
_PYDANTIC: Final = Library(
    decorator="",
    bases="Model",
    field="Field",
    renamed=("serialization_alias=NAME", "validation_alias=NAME"),
    imports={
        "pydantic": ("AwareDatetime", "BaseModel", "ConfigDict", "Field", "InstanceOf", "NaiveDatetime"),
        "typing": ("Annotated",),
    },
    types={
        "int": "Int32",
        "long": "Int64",
        # Even in strict mode, pydantic converts integers and Decimals to floats, and rounds them.
        "float": "Float32",
        "double": "Float64",
        "aware": "AwareDatetime",
        "naive": "NaiveDatetime",
    },
    prelude={
        "Int32": "Int32 = Annotated[int, Field(ge=-(2**31), lt=2**31)]",
        "Int64": "Int64 = Annotated[int, Field(ge=-(2**63), lt=2**63)]",
        "Float32": "Float32 = InstanceOf[float]",
        "Float64": "Float64 = InstanceOf[float]",
        "Model": '''class Model(AvroRecord, BaseModel):
    """What all models share: values are what their types say, and nothing is converted."""

    model_config = ConfigDict(
        arbitrary_types_allowed=True,
        extra="forbid",
        populate_by_name=True,
        protected_namespaces=(),
        ser_json_bytes="base64",
        strict=True,
        val_json_bytes="base64",
    )''',
    },
    reserved=frozenset(_OF_MODELS.split()),
)
LIBRARIES: Final[Mapping[str, Library]] = {"dataclass": _DATACLASS, "msgspec": _MSGSPEC, "pydantic": _PYDANTIC}


class Annotations:
    """Creates the annotations of a module; long ones are declared under a name, so that every line fits.

    `taken` are the names already in use.
    """

    def __init__(self, library: Library, taken: set[str]) -> None:
        self._types = library.types
        self._taken = taken
        self._aliases: dict[str, str] = {}
        # The class names of the current schema by key.
        self.names: Mapping[Key, str] = {}
        # The names of classes that are still to come, as one that a record within itself has. An annotation with
        # such a name is a string, and has no declaration.
        self.later: set[str] = set()
        # The names in annotations that must be imported, or declared by the library.
        self.used: set[str] = set()
        # Declarations that belong before the class that uses them.
        self.pending: list[str] = []

    def annotation(self, declared: Type, place: str) -> str:
        """Return the annotation of a type; if it needs a name, that is derived from `place`."""
        match declared:
            case Array(items):
                return f"list[{self._shorten(items, place + 'Item')}]"
            case Map(values):
                return f"dict[str, {self._shorten(values, place + 'Value')}]"
            case Union():
                return self._union(declared, place)
            case Primitive() | Fixed() | Enum() | Record():
                return self._single(declared)
        raise SchemaError("$", f"{type(declared).__name__} is no type")

    def is_ahead(self, text: str) -> bool:
        """Return whether an annotation has the name of a class that is still to come."""
        return not self.later.isdisjoint(_WORD.findall(text))

    def alias(self, text: str, place: str) -> str:
        """Return a name for an annotation, unless it is ahead of a class; a new one is added to `pending`."""
        if self.is_ahead(text):
            return text
        if text not in self._aliases:
            (name,) = class_names([("", place)], self._taken)
            self._taken.add(name)
            self._aliases[text] = name
            self.pending.append(_declaration(name, text))
        return self._aliases[text]

    def wrapped(self, declared: Type) -> str:
        """Return the annotation of the value in a `Branch`."""
        return self._single(declared)

    def _shorten(self, declared: Type, place: str) -> str:
        text = self.annotation(declared, place)
        return text if len(text) <= _LONG else self.alias(text, place)

    def _union(self, declared: Union, place: str) -> str:
        texts: list[str] = []
        for key, branch in zip(branch_keys(declared), declared.branches, strict=True):
            texts.append(self.names[key] if key is not None else self.annotation(branch, place))
        if "None" in texts:
            texts.remove("None")
            texts.append("None")
        # No value is of a union without branches.
        text = " | ".join(texts) or "None"
        if len(texts) > _SEVERAL or len(text) > 2 * _LONG:
            is_column = any(
                isinstance(branch, Record) and WIRE_ATTRIBUTE in branch.attributes for branch in declared.branches
            )
            return self.alias(text, _COLUMN_VALUE if is_column else place)
        return text

    def _single(self, declared: Type) -> str:
        own = shape(declared)
        if isinstance(own, str):
            return self.names[own]
        if own is type(None):
            return "None"
        if own in _TYPES:
            return self._use(self._time(declared) or _TYPES[own])
        name = declared.name if isinstance(declared, Primitive) else ""
        return self._use(self._types.get(name, own.__name__))

    def _time(self, declared: Any) -> str:
        """Return the library's name for an instant or a local time, if it has one."""
        logical = str(declared.attributes.get("logicalType", ""))
        word = {"timestamp": "aware", "local": "naive"}.get(logical.partition("-")[0], "")
        return self._types.get(word, "")

    def _use(self, text: str) -> str:
        self.used.add(text.partition(".")[0])
        return text


def _declaration(name: str, text: str) -> str:
    """Return the declaration of a name as a formatter lays it out."""
    if len(name) + 3 + len(text) <= WIDTH or " | " not in text:
        return f"{name} = {text}"
    if len(text) + 4 <= WIDTH:
        return f"{name} = (\n    {text}\n)"
    return f"{name} = (\n    " + "\n    | ".join(text.split(" | ")) + "\n)"


def place_of(owner: str, field: str) -> str:
    """Return the place of a field, from which the name of its type is derived.

    >>> place_of("Canal", "data_rows")
    'CanalDataRows'
    """
    return f"{owner}{''.join(part[:1].upper() + part[1:] for part in field.split('_'))}"[: 2 * LONGEST_CLASS]


class ClassWriter:
    """Writes the classes of a schema.

    `codec` is the name of the module's codec, `reserved` are the names that no field may have.
    """

    def __init__(self, library: Library, annotations: Annotations, codec: str, reserved: frozenset[str]) -> None:
        self._library = library
        self._annotations = annotations
        self._codec = codec
        self._reserved = reserved | library.reserved
        # The names of an enum's members by symbol, by the name of the enum.
        self._members: dict[str, dict[str, str]] = {}
        # The imported names that the classes use.
        self.used: set[str] = set()

    def definition(self, definition: ClassDefinition, name: str, number: int) -> str:
        """Return the source of a class; `number` is its index among the codec's classes."""
        declared = definition.type
        if not isinstance(definition.key, str):
            self.used.add("Branch")
            inner = self._annotations.wrapped(declared)
            text = f"A value in the branch {definition.key[0]} of a union."
            return f"class {name}(Branch[{inner}]):\n{docstring(text, _INDENT)}\n\n    __slots__ = ()"
        match declared:
            case Record():
                return self._record(declared, name, number)
            case Enum():
                return self._enum(declared, name)
            case Fixed():
                self.used.add("FixedBytes")
                text = declared.doc or f"The fixed {declared.name}, {declared.size} bytes."
                return f"class {name}(FixedBytes):\n{docstring(text, _INDENT)}\n\n    __slots__ = ()"
        raise SchemaError("$", f"no class for {type(declared).__name__}")

    def _enum(self, declared: Enum, name: str) -> str:
        self.used.add("StrEnum")
        members = attribute_names(declared.symbols, ENUM_NAMES | KEYWORDS)
        self._members[declared.name] = dict(zip(declared.symbols, members, strict=True))
        lines = [
            assignment(f"{_INDENT}{member} = ", string_literal(symbol))
            for member, symbol in zip(members, declared.symbols, strict=True)
        ]
        text = declared.doc or f"The enum {declared.name}."
        head = f"class {name}(StrEnum):\n{docstring(text, _INDENT)}"
        return "\n".join([head, "", *lines]) if lines else head

    def _record(self, declared: Record, name: str, number: int) -> str:
        self.used.add("AvroRecord")
        names = attribute_names([field.name for field in declared.fields], self._reserved)
        blocks = [
            self._field(field, own, place_of(name, own), (number, i))
            for i, (field, own) in enumerate(zip(declared.fields, names, strict=True))
        ]
        head = f"{self._library.decorator}class {name}({self._library.bases}):\n{docstring(_record_doc(declared), _INDENT)}"
        return "\n\n".join([head, "\n".join(blocks)]) if blocks else head

    def _field(self, declared: Field, name: str, place: str, numbers: tuple[int, int]) -> str:
        annotation = self._annotations.annotation(declared.type, place)
        arguments = self._default(declared, numbers)
        if declared.name != name:
            arguments += [argument.replace(NAME, string_literal(declared.name)) for argument in self._library.renamed]
        if self._annotations.is_ahead(annotation):
            annotation = f'"{annotation}"'
        line = self._line(f"{_INDENT}{name}: {annotation}", arguments)
        if annotation[0] != '"' and len(line.partition("\n")[0]) > WIDTH and not annotation.isidentifier():
            short = self._annotations.alias(annotation, place)
            line = self._line(f"{_INDENT}{name}: {short}", arguments)
        text = _field_doc(declared)
        return f"{line}\n{docstring(text, _INDENT)}" if text else line

    def _line(self, start: str, arguments: list[str]) -> str:
        """Return a field with the arguments that describe it: on one line if they fit, else one per line."""
        if not arguments:
            return start
        if len(arguments) == 1 and arguments[0].startswith(_VALUE):
            flat = f"{start} = {arguments[0].removeprefix(_VALUE)}"
        else:
            self.used.add(self._library.field)
            flat = f"{start} = {self._library.field}({', '.join(arguments)})"
        if len(flat) <= WIDTH:
            return flat
        self.used.add(self._library.field)
        listed = "".join(_spread_out(argument) for argument in arguments)
        return f"{start} = {self._library.field}(\n{listed}{_INDENT})"

    def _default(self, declared: Field, numbers: tuple[int, int]) -> list[str]:
        """Return the argument for the default: a literal if that is short, else a call of the codec."""
        if declared.default is ABSENT:
            is_nullable = isinstance(declared.type, Union) and _NULL in declared.type.branches
            return [_VALUE + "None"] if is_nullable or declared.type == _NULL else []
        if not is_usable(declared.type, declared.default):
            raise SchemaError(declared.name, "the default is no value of its type")
        text = self._literal(declared.type, declared.default)
        if text in ("[]", "{}"):
            return [f"default_factory={'list' if text == '[]' else 'dict'}"]
        if text is None or len(text) > _LONGEST_LITERAL:
            return [f"default_factory=lambda: {self._codec}.default({numbers[0]}, {numbers[1]})"]
        return [f"default_factory=lambda: {text}" if text[0] in "[{" else _VALUE + text]

    def _literal(self, declared: Type, value: Any) -> str | None:
        """Return a default as an expression; None if it has no literal. Raises `SchemaError`."""
        match declared:
            case Union():
                return self._literal(default_branch(declared, value), value)
            case Array(items):
                return _join("[", [self._literal(items, item) for item in value], "]")
            case Map(values):
                pairs = [(string_literal(name), self._literal(values, item)) for name, item in value.items()]
                return _join("{", [None if text is None else f"{name}: {text}" for name, text in pairs], "}")
            case Record(fields=fields):
                for field in fields:
                    # Raises an error if Python cannot represent the field's default.
                    self._literal(field.type, value.get(field.name, field.default))
                return None
            case Enum():
                return f"{self._annotations.names[declared.name]}.{self._members[declared.name][value]}"
            case Fixed() if meaning(declared) is None:
                return None
            case Primitive() | Fixed():
                return _scalar(default_scalar(declared, value))
        raise SchemaError("$", f"{type(declared).__name__} is no type")


def _scalar(value: Any) -> str | None:
    if type(value) is float:
        # As formatters write it; infinity and NaN have no literal.
        return repr(value).replace("e+", "e") if math.isfinite(value) else None
    if type(value) in (type(None), bool, int):
        return repr(value)
    if type(value) is str:
        return string_literal(value)
    if type(value) is bytes:
        return bytes_literal(value)
    if type(value) is Decimal:
        return f'Decimal("{value:f}")'
    if type(value) is dt.date:
        return f"dt.date({value.year}, {value.month}, {value.day})"
    if type(value) in (dt.time, dt.datetime):
        return None
    raise SchemaError("default", f"no literal for {type(value).__name__}")


def _join(start: str, texts: list[str | None], end: str) -> str | None:
    literals = [text for text in texts if text is not None]
    return None if len(literals) < len(texts) else start + ", ".join(literals) + end


def _spread_out(argument: str) -> str:
    """Return an argument on a line of its own, or on several lines if it is long metadata."""
    line = f"{2 * _INDENT}{argument},\n"
    if len(line) - 1 <= WIDTH or not argument.startswith(_METADATA):
        return line
    inner = argument.removeprefix(_METADATA).removesuffix("}")
    return f"{2 * _INDENT}{_METADATA}\n{3 * _INDENT}{inner},\n{2 * _INDENT}}},\n"


def _record_doc(declared: Record) -> str:
    text = declared.doc or f"The record {declared.name}."
    attribute = declared.attributes.get(ATTRIBUTE)
    table = attribute.get("table") if isinstance(attribute, dict) else None
    if not isinstance(attribute, dict) or not isinstance(table, dict):
        return text
    parts = [table[part] for part in ("database", "schema", "table") if isinstance(table.get(part), str)]
    version = attribute.get("version")
    return f"{text}\n\nTable: {'.'.join(parts)}" + (f"\nVersion: {version}" if type(version) is int else "")


def _field_doc(declared: Field) -> str:
    attribute = declared.attributes.get(ATTRIBUTE)
    stated = dict(attribute) if isinstance(attribute, dict) else {}
    if stated.get("column") == declared.name:
        del stated["column"]
    lines = [f"{word}: {stated[key]}" for key, word in _STATED.items() if isinstance(stated.get(key), str)]
    return "\n\n".join(part for part in (declared.doc, "\n".join(lines)) if part)


_VALUE: Final = "default="
_METADATA: Final = "metadata={"
_LONGEST_LITERAL: Final = 60

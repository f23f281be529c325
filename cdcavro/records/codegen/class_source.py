"""The source of the classes in generated modules: records, enums, fixed types, and branches that need a class."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from cdcavro.avro.defaults import default_branch, is_usable
from cdcavro.avro.types import Array, Enum, Field, Fixed, Map, Primitive, Record, Type, Union
from cdcavro.errors import SchemaError
from cdcavro.exact.jsonvalues import ABSENT
from cdcavro.records.codegen.annotations import Annotations, place_of
from cdcavro.records.codegen.kinds import NAME
from cdcavro.records.codegen.literals import WIDTH, assignment, bytes_literal, docstring, string_literal
from cdcavro.records.codegen.python_names import ENUM_NAMES, KEYWORDS, attribute_names
from cdcavro.records.field_defaults import default_scalar
from cdcavro.records.shapes import meaning
from cdcavro.table.schema import ATTRIBUTE

if TYPE_CHECKING:
    from cdcavro.records.codegen.kinds import Dialect
    from cdcavro.records.shapes import Definition

_INDENT: Final = "    "
_NULL: Final = Primitive("null")
_STATED: Final = {"column": "Column", "type": "Declared as", "note": "Note"}


class ClassWriter:
    """Writes the classes of a schema.

    `codec` is the name of the module's codec, `reserved` are the names that no field may have. Attributes: `used`
    (set of str), the imported names that the classes use.
    """

    def __init__(self, dialect: Dialect, annotations: Annotations, codec: str, reserved: frozenset[str]) -> None:
        self._dialect = dialect
        self._annotations = annotations
        self._codec = codec
        self._reserved = reserved | dialect.reserved
        self._members: dict[str, dict[str, str]] = {}
        self.used: set[str] = set()

    def definition(self, definition: Definition, name: str, number: int) -> str:
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
        head = f"{self._dialect.decorator}class {name}({self._dialect.bases}):\n{docstring(_record_doc(declared), _INDENT)}"
        return "\n\n".join([head, "\n".join(blocks)]) if blocks else head

    def _field(self, declared: Field, name: str, place: str, numbers: tuple[int, int]) -> str:
        annotation = self._annotations.annotation(declared.type, place)
        arguments = self._default(declared, numbers)
        if declared.name != name:
            arguments += [argument.replace(NAME, string_literal(declared.name)) for argument in self._dialect.renamed]
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
            self.used.add(self._dialect.field)
            flat = f"{start} = {self._dialect.field}({', '.join(arguments)})"
        if len(flat) <= WIDTH:
            return flat
        self.used.add(self._dialect.field)
        listed = "".join(_spread(argument) for argument in arguments)
        return f"{start} = {self._dialect.field}(\n{listed}{_INDENT})"

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
                return _joined("[", [self._literal(items, item) for item in value], "]")
            case Map(values):
                pairs = [(string_literal(name), self._literal(values, item)) for name, item in value.items()]
                return _joined("{", [None if text is None else f"{name}: {text}" for name, text in pairs], "}")
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


def _joined(start: str, texts: list[str | None], end: str) -> str | None:
    literals = [text for text in texts if text is not None]
    return None if len(literals) < len(texts) else start + ", ".join(literals) + end


def _spread(argument: str) -> str:
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

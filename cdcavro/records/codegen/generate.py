"""The source of Python modules of typed records; the same schemas give the same source everywhere."""

from __future__ import annotations

import hashlib
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cdcavro.avro.schema import Schema
from cdcavro.avro.types import Record, Union, branch_name
from cdcavro.errors import SchemaError, shown
from cdcavro.records.codegen.class_source import LIBRARIES, Annotations, ClassWriter
from cdcavro.records.codegen.python_source import (
    BUILTINS,
    KEYWORDS,
    LONGEST_CLASS,
    METHODS,
    class_names,
    docstring,
    label_of,
    plain,
    schema_literal,
    string_literal,
    unique_labels,
)
from cdcavro.records.codegen.spark_types import spark_module
from cdcavro.records.shapes import class_definitions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cdcavro.avro.types import Field
    from cdcavro.records.codegen.class_source import Library
    from cdcavro.records.shapes import ClassDefinition

SPARK: Final = "spark"
KINDS: Final = (*LIBRARIES, SPARK)
_RUNTIME: Final = "cdcavro.records"
_STANDARD: Final = ("dataclasses", "datetime", "decimal", "enum", "typing")
_COMMENT: Final = """\
# Names and texts are the schema's, as they stand there:
# ruff: noqa: D205, D400, D403, D404, D405, D406, D407, D408, D409, D410, D411, D412, D413, D414, D415, D416
# ruff: noqa: E501, E741, E742, N815, RUF001, RUF002, S105
# Where this file lies, and what else is demanded of files, is up to you:
# ruff: noqa: CPY001, INP001, RUF100"""


@dataclass(frozen=True)
class NamedSchema:
    """A schema and its source.

    Attributes: `source` (str), the name of a format or of a file, as given to the command;
    `schema` (`Schema`).
    """

    source: str
    schema: Schema

    @property
    def name(self) -> str:
        """The last part of the source, which is the same on every machine."""
        return self.source.replace("\\", "/").rstrip("/").rpartition("/")[2]

    @property
    def label(self) -> str:
        """The label that names in the module are derived from."""
        return label_of(self.name.removesuffix(".avsc").removesuffix(".avro"))


def generate(schemas: Schema | NamedSchema | Sequence[Schema | NamedSchema], kind: str) -> str:
    """Return the source (str) of a Python module with the records of one or more schemas; `kind` is one of `KINDS`.

    A `Schema` without a source goes by the name of its type, and the module then states no command. Raises
    `SchemaError` for a schema that is not a record (unless the kind is "spark"), and for a default that Python cannot
    represent; `ValueError` for any other kind.

    >>> from cdcavro.avro.schema import parse_schema
    >>> schema = parse_schema('{"type": "record", "name": "Pair", "fields": [{"name": "key", "type": "string"}]}')
    >>> "class Pair(AvroRecord):" in generate(schema, "dataclass")
    True
    """
    given = [schemas] if isinstance(schemas, (Schema, NamedSchema)) else list(schemas)
    named = [NamedSchema(_own_name(one), one) if isinstance(one, Schema) else one for one in given]
    head = _head(named, kind, is_command=all(isinstance(one, NamedSchema) for one in given))
    if kind == SPARK:
        return head + spark_module([(source.label, source.schema) for source in named])
    if kind not in LIBRARIES:
        raise ValueError(f"kinds are {', '.join(KINDS)}, not {shown(kind)}")
    for source in named:
        if not isinstance(source.schema.root, Record):
            raise SchemaError(source.name, f"expected a record, got {_root_name(source.schema)}")
    return _Module(named, LIBRARIES[kind]).source(head)


def _own_name(schema: Schema) -> str:
    return _root_name(schema).rpartition(".")[2]


class _Module:
    """Builds a module: chooses the names of all classes first, then writes each class."""

    def __init__(self, schemas: Sequence[NamedSchema], library: Library) -> None:
        self._schemas = schemas
        self._library = library
        self._definitions = [class_definitions(source.schema.root) for source in schemas]
        labels = unique_labels(source.label for source in schemas)
        is_single = len(schemas) == 1
        self._constants = [
            (("SCHEMA", "CODEC") if is_single else (f"{label.upper()}_SCHEMA", f"{label.upper()}_CODEC"))
            for label in labels
        ]
        self._taken = {name for names in library.imports.values() for name in names} | set(library.prelude)
        self._taken |= BUILTINS | KEYWORDS | _OWN | {name for pair in self._constants for name in pair}
        named = [
            (source.label, _base_name(definition))
            for source, definitions in zip(schemas, self._definitions, strict=True)
            for definition in definitions
        ]
        names = iter(class_names(named, self._taken))
        self._names = [[next(names) for _ in definitions] for definitions in self._definitions]
        self._taken |= {name for names in self._names for name in names}
        # In the body of a class, the name of a field would hide that of a type.
        fields = (
            field for definitions in self._definitions for definition in definitions for field in _fields(definition)
        )
        self._annotations = Annotations(library, self._taken | {plain(field.name) for field in fields})

    def source(self, head: str) -> str:
        """Return the source of the module; `head` is its docstring and comments."""
        blocks: list[str] = []
        used: set[str] = {"Codec", "Final"}
        for i in range(len(self._schemas)):
            declarations, names = self._schema(i)
            blocks += declarations
            used |= names
        used |= self._annotations.used
        prelude = [text for name, text in self._library.prelude.items() if name in used | _words(self._library.bases)]
        for text in prelude:
            used |= _words(text)
        return head + _imports(self._library, used) + _lay_out([*prelude, *blocks])

    def _schema(self, i: int) -> tuple[list[str], set[str]]:
        schema, definitions, names = self._schemas[i], self._definitions[i], self._names[i]
        own, codec = self._constants[i]
        self._annotations.names = {definition.key: name for definition, name in zip(definitions, names, strict=True)}
        writer = ClassWriter(self._library, self._annotations, codec, frozenset(self._taken) | METHODS)
        blocks: list[str] = []
        self._annotations.later = set(names)
        for number, (definition, name) in enumerate(zip(definitions, names, strict=True)):
            block = writer.definition(definition, name, number)
            self._annotations.later.remove(name)
            blocks += self._annotations.pending
            self._annotations.pending.clear()
            blocks.append(block)
        listed = "".join(f"        {name},\n" for name in names)
        blocks.append(schema_literal(own, schema.schema.json))
        blocks.append(
            f"{codec}: Final[Codec] = Codec(\n    {own},\n    [\n{listed}    ],\n    name={string_literal(schema.label)},\n)"
        )
        return blocks, writer.used


def _base_name(definition: ClassDefinition) -> str:
    if isinstance(definition.key, str):
        return definition.key
    return definition.key[0] + "_branch"


def _fields(definition: ClassDefinition) -> tuple[Field, ...]:
    return definition.type.fields if isinstance(definition.type, Record) else ()


def _words(text: str) -> set[str]:
    return set("".join(char if char.isidentifier() or char.isdigit() else " " for char in text).split())


def _imports(library: Library, used: set[str]) -> str:
    wanted = {"decimal": ("Decimal",), "enum": ("StrEnum",), "typing": ("Final",)}
    named = {
        module: {*wanted.get(module, ()), *library.imports.get(module, ())} for module in {*wanted, *library.imports}
    }
    named[_RUNTIME] = {"AvroRecord", "Branch", "Codec", "FixedBytes"}
    base = _words(library.bases) | _words(library.decorator)
    imported = {module: sorted(names & (used | base), key=_rank) for module, names in named.items()}
    standard = ["import datetime as dt"] if "dt" in used else []
    standard += [_import(module, imported[module]) for module in _STANDARD if imported.get(module)]
    others = [_import(module, names) for module, names in sorted(imported.items()) if module not in _STANDARD and names]
    return "\n".join(standard) + "\n\n" + "\n".join(others) + "\n"


def _import(module: str, names: list[str]) -> str:
    return f"from {module} import {', '.join(names)}"


def _rank(name: str) -> tuple[bool, str]:
    """Return the sort key of an imported name: classes come before functions."""
    return name[0].islower(), name


def _lay_out(blocks: list[str]) -> str:
    """Return blocks one below the other, with two empty lines around a class and none between other statements."""
    text = ""
    for i, block in enumerate(blocks):
        is_class, was_class = _is_class(block), i > 0 and _is_class(blocks[i - 1])
        text += ("\n\n" if is_class or was_class else "\n" if i == 0 else "") + block + "\n"
    return text


def _is_class(block: str) -> bool:
    return block.startswith(("class ", "@"))


def _head(schemas: Sequence[NamedSchema], kind: str, *, is_command: bool) -> str:
    what = "What Spark's from_avro gives" if kind == SPARK else "Typed records"
    origins = "".join(map(_origin, schemas))
    names = [shlex.quote(_printable(source.name)) for source in schemas]
    command = " ".join(["\nCommand: cdcavro generate", *names, f"--kind {kind}"]) if is_command else f"Kind: {kind}"
    text = f"{what}, made by cdcavro from a schema: do not edit, generate again.\n\n{origins}{command}"
    return f"{docstring(text, '')}\n\n{_COMMENT}\n\n"


def _origin(source: NamedSchema) -> str:
    digest = hashlib.sha256(source.schema.json.encode("utf-8", "surrogatepass")).hexdigest()
    return (
        f"Schema: {_printable(source.name)}, {_root_name(source.schema)}\n"
        f"CRC-64-AVRO: {source.schema.fingerprint}\nSHA-256 of the text: {digest}\n"
    )


def _printable(name: str) -> str:
    """Return a name in a form that fits in a line: not too long, and without line breaks."""
    text = name if len(name) <= 2 * LONGEST_CLASS else name[: 2 * LONGEST_CLASS] + "..."
    return text if text.isprintable() and text.isascii() else ascii(text)[1:-1]


def _root_name(schema: Schema) -> str:
    root = schema.root
    return "union" if isinstance(root, Union) else _printable(branch_name(root))


_OWN: Final = frozenset({"AvroRecord", "Branch", "Codec", "Decimal", "Final", "FixedBytes", "StrEnum", "dt"})

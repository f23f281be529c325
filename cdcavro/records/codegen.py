"""Generated code: typed records for a schema, or the types that Spark reads it as."""

from __future__ import annotations

import hashlib
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cdcavro.avro.schema import Schema
from cdcavro.avro.types import (
    Array,
    Enum,
    Fixed,
    Map,
    Primitive,
    Record,
    Type,
    Union,
    branch_name,
    check_expansion,
    logical_type,
    named_types,
)
from cdcavro.errors import SchemaError, shown
from cdcavro.records.class_source import LIBRARIES, Annotations, ClassWriter
from cdcavro.records.python_source import (
    BUILTINS,
    KEYWORDS,
    LONGEST_CLASS,
    METHODS,
    WIDTH,
    class_names,
    docstring,
    label_of,
    plain,
    schema_literal,
    string_literal,
    text_lines,
    unique_labels,
)
from cdcavro.records.shapes import class_definitions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cdcavro.avro.types import Field
    from cdcavro.records.class_source import Library
    from cdcavro.records.shapes import ClassDefinition

__all__ = ["KINDS", "NamedSchema", "generate"]

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


# The type that Spark's `from_avro` returns for a schema, as Python and as DDL, without Spark.
#
# Source: spark-avro 4.1.1, `SchemaConverters.toSqlType`, with `enableStableIdentifiersForUnionType` off: the branches of
# a union are the members `member0` to `memberN` of a struct. A test compares the project's schemas with Spark itself.
MAX_PRECISION: Final = 38
_NULL: Final = Primitive("null")
# Types whose names in Spark's SQL differ from those in its JSON.
_SQL: Final = {"integer": "INT", "long": "BIGINT"}
_LONG: Final = 60
_CATALYST: Final = "spark.sql.catalyst.type"


class SparkType(NamedTuple):
    """A Spark type."""

    # The Python expression that creates it.
    expression: str
    # Its form in Spark's JSON.
    json: Any
    # Whether a column of the type may be null.
    is_nullable: bool = False


_PRIMITIVES: Final = {
    "null": SparkType("NullType()", "void", is_nullable=True),
    "boolean": SparkType("BooleanType()", "boolean"),
    "int": SparkType("IntegerType()", "integer"),
    "long": SparkType("LongType()", "long"),
    "float": SparkType("FloatType()", "float"),
    "double": SparkType("DoubleType()", "double"),
    "bytes": SparkType("BinaryType()", "binary"),
    "string": SparkType("StringType()", "string"),
}
_TIMESTAMP: Final = SparkType("TimestampType()", "timestamp")
_LOCAL: Final = SparkType("TimestampNTZType()", "timestamp_ntz")
# Other logical types have the type that they are encoded as: time-micros is a long.
_LOGICAL: Final = {
    "date": SparkType("DateType()", "date"),
    "timestamp-millis": _TIMESTAMP,
    "timestamp-micros": _TIMESTAMP,
    "local-timestamp-millis": _LOCAL,
    "local-timestamp-micros": _LOCAL,
}
# Unions of numbers that Spark widens.
_WIDENED: Final = {frozenset({"int", "long"}): "long", frozenset({"float", "double"}): "double"}


def spark_type(schema: Schema) -> SparkType:
    """Return the type that `from_avro` returns for a schema. Raises `SchemaError` for a schema that Spark refuses.

    >>> from cdcavro.avro.schema import parse_schema
    >>> ddl(spark_type(parse_schema('["null", "string", {"type": "long", "logicalType": "timestamp-micros"}]')))
    'member0 STRING,member1 TIMESTAMP'
    """
    check_expansion(schema.root, "Spark")
    return _TypeConverter({}).convert(schema.root)


def ddl(converted: SparkType) -> str:
    """Return a type as DDL: the columns of a struct as Spark's `StructType.toDDL` returns them; any other as a type.

    >>> ddl(_PRIMITIVES["long"])
    'BIGINT'
    """
    if isinstance(converted.json, dict) and converted.json["type"] == "struct":
        fields = converted.json["fields"]
        return ",".join(f"{field['name']} {_sql(field['type'])}{_not_null(field)}" for field in fields)
    return _sql(converted.json)


def _sql(declared: Any) -> str:
    if isinstance(declared, str):
        return _SQL.get(declared, declared.upper())
    if declared["type"] == "array":
        return f"ARRAY<{_sql(declared['elementType'])}>"
    if declared["type"] == "map":
        return f"MAP<STRING, {_sql(declared['valueType'])}>"
    listed = ", ".join(f"{field['name']}: {_sql(field['type'])}{_not_null(field)}" for field in declared["fields"])
    return f"STRUCT<{listed}>"


def _not_null(field: Any) -> str:
    return "" if field["nullable"] else " NOT NULL"


def spark_module(schemas: Sequence[tuple[str, Schema]]) -> str:
    """Return the source of a module with the type and the DDL of each schema, given as pairs of label and schema."""
    for _, schema in schemas:
        check_expansion(schema.root, "Spark")
    labels = unique_labels(label for label, _ in schemas)
    named = [
        (label, declared.name)
        for label, schema in schemas
        for _, declared in named_types(schema.root)
        if isinstance(declared, Record)
    ]
    names = iter(class_names(named, _CLASSES | KEYWORDS | {"Final", "SCHEMA", "DDL"}))
    blocks: list[str] = []
    for label, (_, schema) in zip(labels, schemas, strict=True):
        records = [declared.name for _, declared in named_types(schema.root) if isinstance(declared, Record)]
        converter = _TypeConverter(
            {name: next(names) for name in records}, f"{label.upper()}_TYPE" if len(schemas) > 1 else "TYPE"
        )
        converted = converter.root(schema.root)
        own, columns = ("SCHEMA", "DDL") if len(schemas) == 1 else (f"{label.upper()}_SCHEMA", f"{label.upper()}_DDL")
        blocks += [*converter.blocks, f"{own}: Final = {converted.expression}", text_lines(columns, ddl(converted))]
    body = "\n".join(blocks) + "\n"
    used = sorted(name for name in _CLASSES if f"{name}(" in body)
    return f"from typing import Final\n\n{_import_line(used)}\n\n{body}"


class _TypeConverter:
    """Converts the types of a schema."""

    def __init__(self, names: Mapping[str, str], other: str = "TYPE") -> None:
        self._names = names
        self._other = other
        self._built: dict[str, SparkType] = {}
        self._count = 0
        self._declarations: dict[str, str] = {}
        # The declarations of its structs, inner ones first.
        self.blocks: list[str] = []

    def convert(self, declared: Type) -> SparkType:
        match declared:
            case Primitive():
                return _primitive(declared)
            case Fixed():
                return _decimal(declared) or _PRIMITIVES["bytes"]
            case Enum():
                return _PRIMITIVES["string"]
            case Array(items):
                return self._array(self.convert(items))
            case Map(values):
                return self._map(self.convert(values))
            case Union(branches):
                return self._of_union(branches)
            case Record():
                if declared.name not in self._built:
                    fields = [(field.name, self.convert(field.type)) for field in declared.fields]
                    self._built[declared.name] = self._struct(self._names.get(declared.name, "Record"), fields)
                return self._built[declared.name]
        raise SchemaError("$", f"{type(declared).__name__} is no type")

    def _of_union(self, branches: tuple[Type, ...]) -> SparkType:
        others = [branch for branch in branches if branch != _NULL]
        is_nullable = len(others) < len(branches)
        names = [branch.name if isinstance(branch, Primitive) else "" for branch in others]
        if len(others) == 1:
            converted = self.convert(others[0])
            return converted._replace(is_nullable=is_nullable or converted.is_nullable)
        if frozenset(names) in _WIDENED:
            return _PRIMITIVES[_WIDENED[frozenset(names)]]._replace(is_nullable=is_nullable)
        members = [(f"member{i}", self.convert(branch)._replace(is_nullable=True)) for i, branch in enumerate(others)]
        return self._struct("", members)._replace(is_nullable=is_nullable)

    def _struct(self, name: str, fields: list[tuple[str, SparkType]]) -> SparkType:
        lines = "".join(_field(own, self._short(field.expression), field.is_nullable) for own, field in fields)
        expression = f"StructType(\n    [\n{lines}    ],\n)" if fields else "StructType([])"
        name = self._declare(name, expression)
        declared = [
            {"name": own, "type": field.json, "nullable": field.is_nullable, "metadata": {}} for own, field in fields
        ]
        return SparkType(name, {"type": "struct", "fields": declared})

    def _array(self, items: SparkType) -> SparkType:
        expression = _call("ArrayType", self._short(items.expression), f"containsNull={items.is_nullable}")
        return SparkType(expression, {"type": "array", "elementType": items.json, "containsNull": items.is_nullable})

    def _map(self, values: SparkType) -> SparkType:
        inner = self._short(values.expression)
        expression = _call("MapType", "StringType()", inner, f"valueContainsNull={values.is_nullable}")
        declared = {"type": "map", "keyType": "string", "valueType": values.json}
        return SparkType(expression, declared | {"valueContainsNull": values.is_nullable})

    def _short(self, expression: str) -> str:
        """Return an expression, or the name of its declaration if it is long."""
        return expression if len(expression) <= _LONG else self._declare("", expression)

    def root(self, declared: Type) -> SparkType:
        """Return the type for a schema's outermost type, with a short expression."""
        converted = self.convert(declared)
        return converted._replace(expression=self._short(converted.expression))

    def _declare(self, name: str, expression: str) -> str:
        """Return the name that an expression is declared under: this one, or without it a name per expression."""
        if name or expression not in self._declarations:
            self._count += not name
            name = name or f"{self._other}_{self._count}"
            self._declarations[expression] = name
            self.blocks.append(f"{name}: Final = {expression}")
        return name or self._declarations[expression]


def _call(name: str, *arguments: str) -> str:
    """Return a call, with an argument per line if it is long: it is then declared under a name."""
    flat = f"{name}({', '.join(arguments)})"
    return flat if len(flat) <= _LONG else f"{name}(\n" + "".join(f"    {argument},\n" for argument in arguments) + ")"


def _field(name: str, expression: str, is_nullable: bool) -> str:  # noqa: FBT001  an argument of Spark's
    parts = [string_literal(name), expression, f"nullable={is_nullable}"]
    flat = f"        StructField({', '.join(parts)}),\n"
    if len(flat) <= WIDTH + 1:
        return flat
    return "        StructField(\n" + "".join(f"            {part},\n" for part in parts) + "        ),\n"


def _primitive(declared: Primitive) -> SparkType:
    if declared.name in ("int", "long") and _CATALYST in declared.attributes:
        raise SchemaError("$", "an interval that Spark wrote has no type outside Spark")
    logical = logical_type(declared)
    spark_logical = _decimal(declared) or (None if logical is None else _LOGICAL.get(logical.name))
    return spark_logical or _PRIMITIVES[declared.name]


def _decimal(declared: Primitive | Fixed) -> SparkType | None:
    logical = logical_type(declared)
    if logical is None or logical.name != "decimal":
        return None
    if logical.precision > MAX_PRECISION:
        raise SchemaError("$", f"Spark has no decimal of {logical.precision} digits")
    digits = f"({logical.precision},{logical.scale})"
    expression = f"DecimalType({logical.precision}, {logical.scale})"
    return SparkType(expression, f"decimal{digits}")


def _import_line(names: list[str]) -> str:
    flat = f"from pyspark.sql.types import {', '.join(names)}"
    if len(flat) <= WIDTH:
        return flat
    return "from pyspark.sql.types import (\n" + "".join(f"    {name},\n" for name in names) + ")"


_LISTED: Final = (
    "ArrayType BinaryType BooleanType DateType DecimalType DoubleType FloatType IntegerType LongType MapType NullType"
    " StringType StructField StructType TimestampNTZType TimestampType"
)
_CLASSES: Final = frozenset(_LISTED.split())

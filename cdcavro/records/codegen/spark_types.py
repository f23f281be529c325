"""The type that Spark's `from_avro` returns for a schema, as Python and as DDL, without Spark.

Source: spark-avro 4.1.1, `SchemaConverters.toSqlType`, with `enableStableIdentifiersForUnionType` off:
the branches of a union are the members `member0` to `memberN` of a struct. A test compares the project's
schemas with Spark itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cdcavro.avro.logical import logical_type
from cdcavro.avro.types import Array, Enum, Fixed, Map, Primitive, Record, Type, Union, check_expansion, named_types
from cdcavro.errors import SchemaError
from cdcavro.records.codegen.python_source import (
    KEYWORDS,
    WIDTH,
    class_names,
    string_literal,
    text_lines,
    unique_labels,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cdcavro.avro.schema import Schema

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

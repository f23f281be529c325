"""Lake columns: those that a version of a table has in a lake, and their types, as Spark spells them and as Arrow does.

The types of columns are those that Spark's `from_avro` gives. Spark spells a type as `simpleString()` does.

Source: Spark 4.1, `org.apache.spark.sql.avro.SchemaConverters`; Delta Lake's protocol, "Schema Serialization Format".
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from cdcavro.avro.schema import define_at_first_use, definitions
from cdcavro.avro.types import Array, Enum, Fixed, Map, Primitive, Record, Union, check_expansion, logical_type
from cdcavro.errors import SchemaError, shown
from cdcavro.lake.escaped_names import OWN, column_names
from cdcavro.lake.evolution import LakeColumn, same_column
from cdcavro.lake.sql_statements import ORDER
from cdcavro.table.columns.type_names import MAX_PRECISION
from cdcavro.table.older_fields import heirs
from cdcavro.table.table_schema import (
    ATTRIBUTE,
    TableSchema,
    as_schema,
    attributes_of,
    column_fields,
    column_name,
    is_column,
    text_names_of,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from cdcavro.avro.types import Type

_PRIMITIVES: Final = {
    "null": "void",
    "boolean": "boolean",
    "int": "int",
    "long": "bigint",
    "float": "float",
    "double": "double",
    "bytes": "binary",
    "string": "string",
}
# Spark takes a logical type that is not here for the type below it.
_LOGICAL: Final = {
    "date": "date",
    "timestamp-millis": "timestamp",
    "timestamp-micros": "timestamp",
    "local-timestamp-millis": "timestamp_ntz",
    "local-timestamp-micros": "timestamp_ntz",
}
# Unions of two numbers, of which Spark makes the wider one.
_NUMBERS: Final = {frozenset({"int", "long"}): "bigint", frozenset({"float", "double"}): "double"}
_ARROW: Final[dict[str, pa.DataType]] = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
_SPARK: Final = {arrow: spark for spark, arrow in _ARROW.items()} | {pa.large_string(): "string"}
_DECIMAL: Final = re.compile(r"decimal\(([0-9]+),([0-9]+)\)")
_NESTED: Final = re.compile(r"(array|map|struct)<(.*)>", re.DOTALL)


def wanted_columns(schema: TableSchema, *, is_plain: bool = False) -> list[LakeColumn]:
    """Return the columns that a lake table of a version has, retired ones among them.

    With `is_plain`, their names are those that every reader has. Raises `SchemaError` for a type that Spark does not have.
    """
    columns, row = schema.all_columns, schema.row.root
    fields = {field.name: field for field in row.fields} if isinstance(row, Record) else {}
    check_expansion(row, "a lake")
    # Of two names that a lake does not tell apart, the column that was there first keeps its own.
    eldest = sorted(range(len(columns)), key=lambda i: (columns[i].since, i))
    names = dict(zip(eldest, column_names((columns[i].shown for i in eldest), is_plain=is_plain), strict=True))
    return [
        LakeColumn(
            names[i],
            column.field,
            spark_type(fields[column.field].type, column.field),
            fields[column.field].aliases,
            column.until,
        )
        for i, column in enumerate(columns)
    ]


def with_former_names(present: Sequence[LakeColumn], wanted: Sequence[LakeColumn]) -> list[LakeColumn]:
    """Return the columns that a lake table has, with what the fields of a version were called before."""
    names = {column.field: column.aliases for column in wanted}
    return [replace(column, aliases=names.get(column.field, ())) for column in present]


def held_columns(schema: TableSchema, present: Sequence[LakeColumn]) -> list[tuple[LakeColumn, LakeColumn]]:
    """Return the columns of a version that a lake table has: the wanted column, and the table's."""
    pairs = [(wanted, same_column(present, wanted)) for wanted in wanted_columns(schema)]
    return [(wanted, held) for wanted, held in pairs if held is not None]


def readings(
    versions: Sequence[TableSchema], first: int, present: Sequence[LakeColumn]
) -> list[tuple[int, list[TableSchema]]]:
    """Return how rows of versions from `first` on are read for a lake table that has columns which were dropped since.

    `present` are the columns of the lake table. Each reading has the last version whose rows, behind those of the reading
    before it, are read so, and what to give in place of the versions: the newest of them has the dropped columns of those
    rows as well. The last reading is that of the rows that lack no such column.
    """
    dropped = _dropped_columns(versions, first, present)
    found = []
    for last in sorted({until for until, _ in dropped}):
        fields = [(until, field) for until, field in dropped if until >= last]
        found.append((last, [*versions[:-1], _with_fields(versions, fields)]))
    return [*found, (versions[-1].version, [*versions])]


def dropped_columns(versions: Sequence[TableSchema], present: Sequence[LakeColumn]) -> list[LakeColumn]:
    """Return the columns that a lake table has and the newest version has not, with the types that they had last."""
    left = left_columns(versions, present)
    reader = readings(versions, versions[0].version, left)[0][1][-1] if left else versions[-1]
    return [replace(held, type=one.type) for one, held in held_columns(reader, left)]


def older_names(versions: Sequence[TableSchema], present: Sequence[LakeColumn]) -> dict[str, tuple[str, ...]]:
    """Return what `_cdc_older` may call each column of a lake table: as it is written now, then as rows may have it.

    It is written by its field, which a renamed column has as an alias, and which no other column ever gets.
    """
    named = _names_of_fields(versions)
    found: dict[str, tuple[str, ...]] = {}
    for column in present:
        names = named.get(column.field, (column.field,))
        is_taken = not column.field or any(names[0] == others[0] for others in found.values())
        found[column.name] = (f"{OWN}{column.name}",) if is_taken else names
    every = {name for names in found.values() for name in names}
    # Once it was written by the name that the column had in the lake.
    return {name: names if name in every else (*names, name) for name, names in found.items()}


def text_names(versions: Sequence[TableSchema], present: Sequence[LakeColumn]) -> dict[str, tuple[str, ...]]:
    """Return what `_cdc_unparsed` may call each column of a lake table, whichever version a row is of.

    It is as `TableSchema.text_names` has it in each version, so a renamed column has several names. No two columns
    have one in common. Under `sql_statements.ORDER` are those of columns that the table has not, such as one that was
    dropped in its first batch: these texts are as old as the row.
    """
    named = {one: names[0] for one, names in _names_of_fields(versions).items()}
    # By fields, those that hold the columns now: what an older field of a column could not carry is a text of the column.
    heirs: dict[str, str] = {}
    called: dict[str, dict[str, None]] = {}
    for schema in reversed(versions):
        columns = schema.all_columns
        written = {column.name: named[column.field] for column in columns if column.until is None}
        for column in sorted(columns, key=lambda one: one.until is not None):
            newest = named[column.field]
            heirs.setdefault(newest, heirs[written.get(column.name, newest)] if column.until is not None else newest)
        for field, name in text_names_of(columns).items():
            called.setdefault(heirs[named[field]], {})[name] = None
    found = {column.name: called.get(named.get(column.field, column.field), {}) for column in present}
    every = {name for names in found.values() for name in names}
    texts = {name: tuple(names) or (() if name in every else (name,)) for name, names in found.items()}
    others = {name for names in called.values() for name in names}.difference(*texts.values())
    return texts | {ORDER: tuple(sorted(others))} if others else texts


def stated_names(
    versions: Sequence[TableSchema], pairs: Sequence[tuple[LakeColumn, LakeColumn]]
) -> dict[str, dict[int, str]]:
    """Return, by the lake's names of the columns `pairs` of `held_columns`, what a change of each version calls them.

    So changes name what they lack. A column and those that it took over from are lacked together.
    """
    fields = {field["name"]: field for field in versions[-1].record["fields"]}
    kin = {one: {newest, *older} for newest, older in heirs(fields.items()).items() for one in (newest, *older)}
    holders: dict[str, list[str]] = {}
    for wanted, held in pairs:
        every = [fields[name] for name in kin.get(wanted.field, ())]
        others = {name for one in every for name in (one["name"], *one.get("aliases", ()))}
        for name in {wanted.field, *wanted.aliases, *others}:
            holders.setdefault(name, []).append(held.name)
    found: dict[str, dict[int, str]] = {held.name: {} for _, held in pairs}
    for schema in versions:
        for column in schema.columns:
            for name in holders.get(column.field, ()):
                found[name][schema.version] = column.name
    return found


def inherited_names(schema: TableSchema, held: Collection[str]) -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    """Return what `_cdc_older` may call each column that took over, and what it may call those it took over from.

    Rows that stand before the newer one has their values are as old in it as in the older one. By the names of fields;
    `held` are those of the columns that get values.
    """
    fields = {field["name"]: (field["name"], *field.get("aliases", ())) for field in schema.record["fields"]}
    kin = heirs((field["name"], field) for field in schema.record["fields"])
    return {
        newer: (fields[newer], tuple(name for one in older for name in fields[one]))
        for newer, older in kin.items()
        if newer in held
    }


def _names_of_fields(versions: Sequence[TableSchema]) -> dict[str, tuple[str, ...]]:
    """Return for each name that a field ever had all names of this field, the newest one first."""
    named: dict[str, tuple[str, ...]] = {}
    for schema in reversed(versions):
        for field in schema.record["fields"]:
            names = (field["name"], *field.get("aliases", ()))
            for name in names:
                named.setdefault(name, names)
    return named


def left_columns(versions: Sequence[TableSchema], present: Sequence[LakeColumn]) -> list[LakeColumn]:
    """Return the columns that a lake table has and the newest version has not: no row of that version states them.

    One that somebody else added, which has no field, is not among them.
    """
    known = {held.name for _, held in held_columns(versions[-1], present)}
    return [column for column in present if column.field and column.name not in known]


def _dropped_columns(
    versions: Sequence[TableSchema], first: int, present: Sequence[LakeColumn]
) -> list[tuple[int, dict[str, Any]]]:
    """Return the fields of columns that a lake table has and the newest version has not, each with its last version."""
    known = {name for field in versions[-1].record["fields"] for name in (field["name"], *field.get("aliases", ()))}
    left = {column.field for column in present} - known
    found: list[tuple[int, dict[str, Any]]] = []
    for schema in reversed(versions[:-1]):
        if not left or schema.version < first:
            break
        fields = [field for field in column_fields(schema.record) if field["name"] not in known]
        names = {
            column_name(field) for field in fields if not left.isdisjoint({field["name"], *field.get("aliases", ())})
        }
        for field in fields:
            # Older fields of a column come along, from which it has values.
            if column_name(field) in names:
                found.append((schema.version, field))
                known |= {field["name"], *field.get("aliases", ())}
    return found


def _with_fields(versions: Sequence[TableSchema], dropped: Sequence[tuple[int, dict[str, Any]]]) -> TableSchema:
    """Return the newest version with fields of columns that it does not have, each given with its last version."""
    record = versions[-1].record
    own = column_fields(record)
    taken: dict[str, int | None] = dict.fromkeys(column_name(field) for field in own)
    fields = []
    for until, field in dropped:
        name = column_name(field)
        if taken.setdefault(name, until) != until:
            # Another column has its name now.
            field = field | {ATTRIBUTE: attributes_of(field) | {"column": f"{name} (dropped after version {until})"}}  # noqa: PLW2901
        fields.append(field)
    behind = [field for field in record["fields"] if not is_column(field)]
    defined: dict[str, dict[str, Any]] = {}
    for schema in versions:
        defined |= definitions(schema.record)
    return TableSchema(as_schema(define_at_first_use(record | {"fields": [*own, *fields, *behind]}, defined)))


def spark_type(declared: Type, where: str) -> str:
    """Return the type that Spark makes of an Avro type, as Spark spells it.

    Raises `SchemaError`, which names the column `where`, for a decimal of more than 38 digits.

    >>> spark_type(Map(Primitive("bytes")), "c")
    'map<string,binary>'
    """
    match declared:
        case Primitive() | Fixed():
            return _datum_type(declared, where)
        case Enum():
            return "string"
        case Array(items):
            return f"array<{spark_type(items, where)}>"
        case Map(values):
            return f"map<string,{spark_type(values, where)}>"
        case Record(fields=fields):
            return f"struct<{','.join(f'{field.name}:{spark_type(field.type, where)}' for field in fields)}>"
        case Union(branches):
            return _union_type(branches, where)
    raise SchemaError(where, f"{type(declared).__name__} is no type")


def _datum_type(declared: Primitive | Fixed, where: str) -> str:
    logical = logical_type(declared)
    if logical is not None and logical.name == "decimal":
        if logical.precision > MAX_PRECISION:
            raise SchemaError(where, f"Spark's decimals have at most {MAX_PRECISION} digits, and {logical} has more")
        return f"decimal({logical.precision},{logical.scale})"
    if isinstance(declared, Fixed):
        return "binary"
    return _LOGICAL.get(logical.name if logical else "", _PRIMITIVES[declared.name])


def _union_type(branches: tuple[Type, ...], where: str) -> str:
    others = [branch for branch in branches if branch != Primitive("null")]
    if len(others) == 1:
        return spark_type(others[0], where)
    names = frozenset(branch.name for branch in others if isinstance(branch, Primitive))
    if len(others) == len(names) and names in _NUMBERS:
        return _NUMBERS[names]
    return f"struct<{','.join(f'member{i}:{spark_type(branch, where)}' for i, branch in enumerate(others))}>"


def arrow_type(spark: str) -> pa.DataType:
    """Return the type in Arrow of what Spark spells so: instants in microseconds of UTC, local times in microseconds.

    Raises `SchemaError` for a type that lake tables do not have.

    >>> arrow_type("array<decimal(12,2)>")
    ListType(list<item: decimal128(12, 2)>)
    """
    if spark in _ARROW:
        return _ARROW[spark]
    decimal, nested = _DECIMAL.fullmatch(spark), _NESTED.fullmatch(spark)
    if decimal is not None and 0 < int(decimal[1]) <= MAX_PRECISION:
        return pa.decimal128(int(decimal[1]), int(decimal[2]))
    if nested is None:
        raise SchemaError(spark, f"{shown(spark)} is no type of a lake's column")
    match nested[1], split_parts(nested[2]):
        case "array", [items]:
            return pa.list_(arrow_type(items))
        case "map", [keys, values]:
            return pa.map_(arrow_type(keys), arrow_type(values))
        case "struct", parts if all(":" in part for part in parts):
            named = [part.partition(":") for part in parts]
            return pa.struct([pa.field(name, arrow_type(inner)) for name, _, inner in named])
    raise SchemaError(spark, f"{shown(spark)} is no type of a lake's column")


def split_parts(text: str) -> list[str]:
    """Return the parts of a text between those commas that are in no brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in "<(") - (character in ">)")
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return parts if text else []


def spark_name(arrow: pa.DataType) -> str:
    """Return how Spark spells a type of Arrow's that a lake table has. Raises `SchemaError` for another type.

    >>> spark_name(pa.map_(pa.string(), pa.binary()))
    'map<string,binary>'
    """
    if arrow in _SPARK:
        return _SPARK[arrow]
    if pa.types.is_decimal(arrow):
        return f"decimal({arrow.precision},{arrow.scale})"
    if pa.types.is_map(arrow):
        return f"map<{spark_name(arrow.key_type)},{spark_name(arrow.item_type)}>"
    if pa.types.is_list(arrow) or pa.types.is_large_list(arrow):
        return f"array<{spark_name(arrow.value_type)}>"
    if pa.types.is_struct(arrow):
        return f"struct<{','.join(f'{field.name}:{spark_name(field.type)}' for field in arrow)}>"
    raise SchemaError(str(arrow), "is no type of a lake's column")

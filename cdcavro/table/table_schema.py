"""The schemas of a table: its row, its key, and the envelope of its changes, in one version.

A row is a record with a nullable field for each column. Two more fields follow the columns:
`unparsed`, the texts of values that their column's type cannot carry, and `absent`, the columns that
a message did not have, which is not the same as null. In `unparsed`, a column is called by its field where its name
does not tell it from others, such as one that had the name before. The envelope has Debezium's layout. What Avro
cannot express is in the attribute `cdc`, which Avro readers ignore:

| on | key | meaning |
| --- | --- | --- |
| row, key, envelope | `table` | the true names: `database`, `schema`, `table`, those of them that there are |
| | `version` | from 1 |
| row | `key` | names of the key columns |
| | `gone` | field names of columns that were dropped; they are not used again |
| field | `column` | the true name of the column |
| | `type`, `code` | its declared type as spelled, its java.sql.Types code |
| | `given` | the type that the user gives for it |
| | `since`, `until` | the first version that has it; the last that writes it, if a new field took over |
| | `note` | a remark on how its values are stored |
| | `default` | what new rows get, as declared; Avro's own default is what rows older than the column have |
| | `older` | what these have, as declared, where it differs from `default` or the type cannot hold it |

Source: Debezium reference, MySQL connector, "Data change events"; Avro 1.8.2, "Aliases".
"""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from cdcavro.avro.schema import Schema, define_at_first_use, defined_name, definitions, parse_schema, write_full_names
from cdcavro.avro.types import PRIMITIVES, Record
from cdcavro.errors import SchemaError
from cdcavro.exact.caching import WeightedCache, derived_property
from cdcavro.exact.jsontext import ABSENT
from cdcavro.table.ddl.steps import TableName
from cdcavro.table.table_names import ROW, is_own_field, namespace_of, split_full_name, table_name_parts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cdcavro.table.table_names import NameAllocator


ATTRIBUTE: Final = "cdc"
# The attribute of a column with its value in older rows, where that is not the default of new rows.
OLDER: Final = "older"
UNPARSED: Final = "unparsed"
MISSING: Final = "absent"
LOGICAL: Final = "logicalType"
_MEANING: Final = ("type", LOGICAL, "precision", "scale")


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of a table's schema."""

    # The true name.
    name: str
    # The name of the Avro field.
    field: str
    # The Avro type as a JSON value, without null.
    avro: Any
    # The declared type, and its code in java.sql.Types.
    type: str | None = None
    code: int | None = None
    # The first version that has the column, and the last version that writes it.
    since: int = 1
    until: int | None = None
    # A remark on how its values are stored.
    note: str | None = None
    # The type that the user gives for it.
    given: str | None = None

    @property
    def shown(self) -> str:
        """The true name; that of an older column names its last version, as a newer column has the true name."""
        return self.name if self.until is None else f"{self.name} (until version {self.until})"


def column_field(
    name: str, names: NameAllocator, avro: Any, *, since: int, fill: Any = ABSENT, attributes: dict[str, Any]
) -> dict[str, Any]:
    """Return the field of a new column, named by an allocator; `fill` is its value in older rows, by default null."""
    content = {"column": name} | attributes | ({"since": since} if since > 1 else {})
    return field_with_type({"name": names.give(name), ATTRIBUTE: content}, avro, None if fill is ABSENT else fill)


def field_with_type(field: dict[str, Any], avro: Any, fill: Any) -> dict[str, Any]:
    """Return a column's field with a type and with the value in rows older than the column."""
    declared = ["null", avro] if fill is None else [avro, "null"]
    return {"name": field["name"], "type": declared, "default": fill} | {
        key: value for key, value in field.items() if key not in ("type", "default")
    }


def column_fields(record: dict[str, Any]) -> list[dict[str, Any]]:
    """Return those fields of a row's record that are columns."""
    return [field for field in record["fields"] if is_column(field)]


def is_column(field: dict[str, Any]) -> bool:
    """Return whether a field is a column's, not one of the two that follow the columns."""
    return ATTRIBUTE in field or (field["name"], field["type"]) not in _BEHIND


def column_name(field: dict[str, Any]) -> str:
    """Return the true name of the column that a field holds."""
    return str(attributes_of(field).get("column", field["name"]))


def column_of_field(field: dict[str, Any]) -> TableColumn:
    """Return the column that a field holds."""
    attributes = attributes_of(field)
    return TableColumn(
        name=column_name(field),
        field=field["name"],
        avro=avro_of(field),
        type=attributes.get("type"),
        code=attributes.get("code"),
        since=attributes.get("since", 1),
        until=attributes.get("until"),
        note=attributes.get("note"),
        given=attributes.get("given"),
    )


def text_names_of(columns: Sequence[TableColumn]) -> dict[str, str]:
    """Return what `TableSchema.text_names` has for all columns of a version, also those that newer fields took over from."""
    own = {one.name for one in columns if is_own_field(one.field, one.name)}
    return {one.field: one.name if one.name in own else one.field for one in columns if one.until is None}


def states_true_names(record: dict[str, Any]) -> bool:
    """Return whether a row's record states the table's true names: this package made it then."""
    return isinstance(attributes_of(record).get("table"), dict)


def attributes_of(declared: dict[str, Any]) -> dict[str, Any]:
    """Return the content of the attribute `cdc` of a record or a field, empty without it."""
    attributes = declared.get(ATTRIBUTE)
    return attributes if isinstance(attributes, dict) else {}


def avro_of(field: dict[str, Any]) -> Any:
    """Return the Avro type of a column's field as a JSON value, without null."""
    declared = field["type"]
    if isinstance(declared, list):
        others = [branch for branch in declared if branch != "null"]
        return others[0] if len(others) == 1 else others
    return declared


def without_attributes(avro: Any) -> Any:
    """Return a type, as a JSON value, without the attributes that do not affect its values.

    >>> without_attributes({"type": "string", "avro.java.string": "String"})
    'string'
    """
    if not isinstance(avro, dict) or not is_primitive(avro):
        return avro
    meaning = {key: avro[key] for key in _MEANING if key in avro}
    if meaning.get(LOGICAL) == "decimal" and meaning.get("scale") == 0:
        del meaning["scale"]
    return meaning if LOGICAL in meaning else meaning["type"]


def is_primitive(avro: Any) -> bool:
    """Return whether a type, as a JSON value, is a primitive, with a logical type or without."""
    name = avro.get("type") if isinstance(avro, dict) else avro
    return isinstance(name, str) and name in PRIMITIVES


def avro_label(avro: Any) -> str:
    """Return the name of an Avro type for use in a sentence.

    >>> avro_label({"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2})
    'decimal(10,2)'
    """
    if isinstance(avro, list):
        return f"[{', '.join(map(avro_label, avro))}]"
    if not isinstance(avro, dict):
        return str(avro)
    if avro.get(LOGICAL) == "decimal":
        return f"decimal({avro.get('precision')},{avro.get('scale', 0)})"
    return str(avro.get(LOGICAL) or avro.get("name") or avro.get("type"))


UNPARSED_FIELD: Final = {
    "name": UNPARSED,
    "type": {"type": "map", "values": "string"},
    "doc": "Column name to text, of values that their column's type cannot carry; the column is null then.",
    "default": {},
}
MISSING_FIELD: Final = {
    "name": MISSING,
    "type": {"type": "array", "items": "string"},
    "doc": "Names of the columns that the message did not have; they are null here.",
    "default": [],
}
_BEHIND: Final = tuple((field["name"], field["type"]) for field in (UNPARSED_FIELD, MISSING_FIELD))


# In characters of schema texts. What is made of a text takes 30 times as much, and 60 times with the envelope.
_MOST_MADE: Final = 2 << 20
_MADE: Final = WeightedCache(_MOST_MADE, share=1)
_OBJECTS: Final = 500
KEY: Final = "Key"
ENVELOPE: Final = "Envelope"
_IMAGE: Final = "before"
SOURCE_FIELDS: Final[tuple[tuple[str, Any, str], ...]] = (
    ("format", "string", "The format that the change came in."),
    ("connector", "string", "The database type, as the source spelled it."),
    ("db_version", "string", "The database version."),
    ("snapshot", "string", "true for a row of a full load, else false."),
    ("tenant", "string", "The tenant, on OceanBase."),
    ("db", "string", "Name of the database."),
    ("schema", "string", "Name of the schema."),
    ("table", "string", "Name of the table."),
    (
        "ts_ms",
        "long",
        "Time of the change in the source, milliseconds since the epoch, UTC; finer digits are in ts_us.",
    ),
    ("ts_us", "long", "The same in microseconds."),
    (
        "position",
        {"type": "array", "items": "long"},
        "The numbers of the own order of the source, most significant first.",
    ),
    ("transaction", "string", "The transaction id."),
    ("topic", "string", "Where the message arrived: the topic,"),
    ("partition", "int", "its partition,"),
    ("offset", "long", "the offset in it;"),
    ("message_file", "string", "or the file,"),
    ("message_line", "long", "and its line, from 1."),
    ("message_row", "int", "Which row of its message this is, from 0."),
)


class TableSchema:
    """The schemas of a table in one version.

    Made from the schema of a row. A stream has many tables, so only the row's compressed text and the column names are
    kept permanently; everything else is derived from them again unless there is room for it.
    """

    __slots__ = ("_length", "_names", "_packed")

    def __init__(self, row: Schema) -> None:
        self._length = len(row.json)
        self._packed = zlib.compress(row.json.encode(), 1)
        self.derived()["row"] = row
        self._names = json.dumps([column.name for column in self.columns]).encode()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TableSchema) and self._packed == other._packed

    def __hash__(self) -> int:
        return hash(self._packed)

    def __repr__(self) -> str:
        return f"TableSchema(row={self.row!r})"

    def derived(self) -> dict[str, Any]:
        """Return what was derived from the text, for `derived_property` properties."""
        made: dict[str, Any] | None = _MADE.get(self._packed)
        if made is None:
            _MADE.put(self._packed, made := {}, min(self._length, _MOST_MADE))
        return made

    @property
    def size(self) -> int:
        """How many bytes are kept permanently."""
        return len(self._packed) + len(self._names) + _OBJECTS

    @property
    def names(self) -> frozenset[str]:
        """The names of the columns that this version writes."""
        return frozenset(json.loads(self._names))

    @derived_property
    def row(self) -> Schema:
        """The schema of a row, from which everything else is derived."""
        return parse_schema(zlib.decompress(self._packed).decode())

    @property
    def record(self) -> dict[str, Any]:
        """The row's record as a JSON value, not to be changed; few are cached, as they are far larger than texts."""
        return _record_of(self.row.json)

    @derived_property
    def table(self) -> TableName:
        """The true name of the table; without the attribute, the name that the record's own name implies."""
        names = attributes_of(self.record).get("table")
        if isinstance(names, dict):
            return TableName(names.get("database"), names.get("schema"), str(names.get("table")))
        _, container, name, _ = split_full_name(self.row.root.name if isinstance(self.row.root, Record) else "")
        return TableName(container, None, name)

    @derived_property
    def version(self) -> int:
        """The version number, from 1."""
        return int(attributes_of(self.record).get("version", 1))

    @derived_property
    def columns(self) -> tuple[TableColumn, ...]:
        """The columns that this version writes, in order."""
        return tuple(column for column in self.all_columns if column.until is None)

    @derived_property
    def all_columns(self) -> tuple[TableColumn, ...]:
        """The columns, and also those of earlier versions that newer fields of the same name took over from."""
        return tuple(column_of_field(field) for field in column_fields(self.record))

    @derived_property
    def text_names(self) -> dict[str, str]:
        """What `unparsed` calls each column that this version writes, by its field.

        It is the column's name. Where this does not tell it from all other columns that the table has or had, as
        another one had the name before, it is that of the field, which no other column ever gets: rows of several
        versions stand side by side, and their texts are not to be mixed up.
        """
        return text_names_of(self.all_columns)

    @derived_property
    def key_names(self) -> tuple[str, ...]:
        """The true names of the key columns; empty if there is no key or it is unknown."""
        return tuple(attributes_of(self.record).get("key") or ())

    @derived_property
    def key(self) -> Schema | None:
        """The schema of the key, with the key columns in order; None without a key.

        Versions in which the key's columns have the same names and the same types of Avro have the same schema, so that
        the same row has the same bytes as its key in a topic, which log compaction and partitions go by.
        """
        fields = {column.name: column.field for column in self.columns}
        if not self.key_names or not all(name in fields for name in self.key_names):
            return None
        by_field = {field["name"]: field for field in self.record["fields"]}
        listed = [_key_field(by_field[fields[name]], name) for name in self.key_names]
        return self.record_schema(KEY, [*listed, UNPARSED_FIELD], "The key of a row.", ("table",))

    def key_named(self, table: TableName) -> Schema | None:
        """Return the schema of the key under the name of another table, such as this one had before it was renamed."""
        if self.key is None:
            return None
        record = {name: value for name, value in json.loads(self.key.json).items() if name != "aliases"}
        return as_schema(record | {"namespace": namespace_of(table), ATTRIBUTE: {"table": table_name_parts(table)}})

    @derived_property
    def envelope(self) -> Schema:
        """The schema of a change of the table, in Debezium's layout."""
        full = f"{self.record.get('namespace', '')}.{self.record['name']}".lstrip(".")
        fields = [
            {"name": "before", "type": ["null", self.record], "doc": "The row before the change.", "default": None},
            {"name": "after", "type": ["null", full], "doc": "The row after the change.", "default": None},
            {"name": "source", "type": _SOURCE, "doc": "Where the change was made, and where it came from."},
            {
                "name": "op",
                "type": "string",
                "doc": "c for INSERT, u for UPDATE, d for DELETE, r for a row of a full load, t for TRUNCATE.",
            },
            _nullable(
                "ts_ms",
                "long",
                "Time the message was written, milliseconds since the epoch, UTC; finer digits are in ts_us.",
            ),
            _nullable("ts_us", "long", "The same in microseconds."),
        ]
        return self.record_schema(ENVELOPE, fields, "A change of a row.")

    @property
    def full_name(self) -> str:
        """The names of the table in Avro's form, joined by dots; unique to the table."""
        return str(self.record.get("namespace") or self.record["name"])

    def record_schema(
        self, name: str, fields: list[Any], doc: str, stated: Sequence[str] = ("table", "version")
    ) -> Schema:
        """Return the schema of another record of the table, with these fields and these attributes of the table."""
        attributes = attributes_of(self.record)
        record = {
            "type": "record",
            "name": name,
            "namespace": self.record.get("namespace", ""),
            "doc": doc,
            "aliases": [f"{space}.{name}" for space in self._spaces()],
            ATTRIBUTE: {key: attributes[key] for key in stated if key in attributes},
            "fields": fields,
        }
        return as_schema({key: value for key, value in record.items() if value not in ([], "", {})})

    def _spaces(self) -> list[str]:
        """Return the earlier namespaces of the table's records."""
        spaces = [alias.rpartition(".")[0] for alias in self.record.get("aliases", [])]
        return [space for space in dict.fromkeys(spaces) if space not in ("", self.record.get("namespace", ""))]


def _key_field(field: dict[str, Any], column: str) -> dict[str, Any]:
    """Return a field of a key, made from that of a row: without what statements change although the key stays."""
    kept = {part: field[part] for part in ("name", "type", "default", "aliases") if part in field}
    return kept | {ATTRIBUTE: {"column": column}}


@lru_cache(maxsize=64)
def _record_of(text: str) -> dict[str, Any]:
    return dict(json.loads(text))


def table_schema(table: TableName, fields: Sequence[dict[str, Any]], key: Sequence[str]) -> TableSchema:
    """Return the first version of a table's schema, made from its columns' fields. Raises `SchemaError`."""
    record = {
        "type": "record",
        "name": ROW,
        "namespace": namespace_of(table),
        "doc": "A row.",
        ATTRIBUTE: {"table": table_name_parts(table), "version": 1, "key": list(key)},
        "fields": [*fields, UNPARSED_FIELD, MISSING_FIELD],
    }
    return TableSchema(as_schema(record))


def from_schema(schema: Schema) -> TableSchema:
    """Return the table schema that a row's or an envelope's schema belongs to. Raises `SchemaError`."""
    declared = json.loads(schema.json)
    if not isinstance(schema.root, Record):
        raise SchemaError("$", "expected a record, or an envelope whose before is one")
    if declared["name"].rpartition(".")[2] == KEY and "table" in (schema.root.attributes.get("cdc") or {}):
        raise SchemaError("$", "is the schema of a key, which follows that of its row")
    if not is_envelope(declared):
        return TableSchema(schema)
    row = row_of(declared)
    if row is None:
        raise SchemaError("$.before", "expected a record")
    write_full_names(declared)
    return TableSchema(as_schema(define_at_first_use(row_of(declared), definitions(declared))))


def is_envelope(declared: dict[str, Any]) -> bool:
    """Return whether a record is an envelope around rows."""
    names = {field["name"] for field in declared["fields"]}
    return declared["name"].rpartition(".")[2] == ENVELOPE and _IMAGE in names


def row_of(envelope: dict[str, Any]) -> dict[str, Any] | None:
    """Return the row's record that an envelope defines, with its namespace; None if it defines no single one."""
    declared = next(field["type"] for field in envelope["fields"] if field["name"] == _IMAGE)
    branches = declared if isinstance(declared, list) else [declared]
    rows = [branch for branch in branches if isinstance(branch, dict) and branch.get("type") == "record"]
    if len(rows) != 1:
        return None
    space = (defined_name(envelope, "") or "").rpartition(".")[0]
    return {"namespace": space} | rows[0] if space and "namespace" not in rows[0] else rows[0]


def as_schema(declared: dict[str, Any]) -> Schema:
    """Return the schema that a JSON value declares. Raises `SchemaError`."""
    return parse_schema(schema_text(declared))


def schema_text(declared: Any, *, indent: int | None = None) -> str:
    r"""Return a schema's JSON without apostrophes, so that it can be quoted in SQL.

    >>> print(schema_text({"type": "long", "doc": "a user's"}))
    {"type": "long", "doc": "a user\u0027s"}
    """
    return json.dumps(declared, indent=indent).replace("'", "\\u0027")


def _nullable(name: str, declared: Any, doc: str) -> dict[str, Any]:
    return {"name": name, "type": ["null", declared], "doc": doc, "default": None}


_SOURCE: Final = {
    "type": "record",
    "name": "Source",
    "namespace": "cdcavro.table",
    "doc": "Where a change was made, and where it came from.",
    "fields": [_nullable(*field) for field in SOURCE_FIELDS],
}

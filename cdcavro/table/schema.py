"""The schemas of a table: its row, its key, and the envelope of its changes, in one version.

A row is a record with a nullable field for each column. Two fields stand behind the columns:
`unparsed`, the texts of values that their column's type cannot carry, and `absent`, the columns that
a message did not have, which is not the same as null. The envelope has Debezium's layout. What Avro
cannot say is said by the attribute `cdc`, which Avro readers ignore:

| on | key | meaning |
| --- | --- | --- |
| row, key, envelope | `table` | the true names: `database`, `schema`, `table`, without those that there are not |
| | `version` | from 1 |
| row | `key` | names of the key columns |
| | `gone` | field names of columns that were dropped; they are not given again |
| field | `column` | the true name of the column |
| | `type`, `code` | its declared type as spelled, its java.sql.Types code |
| | `given` | the type that the user gives for it |
| | `since`, `until` | the first version that has it, and the last that writes it, where a new field took over |
| | `note` | what its type does not say |
| | `default` | what new rows get, as declared; Avro's own default is what rows older than the column have |

Source: Debezium reference, MySQL connector, "Data change events"; Avro 1.8.2, "Aliases".
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from cdcavro.avro.definitions import defined_name, definitions, pin, settled
from cdcavro.avro.schema import Schema, parse_schema
from cdcavro.avro.types import Record
from cdcavro.errors import SchemaError
from cdcavro.table.ddl.steps import TableName
from cdcavro.table.fields import (
    ATTRIBUTE,
    MISSING_FIELD,
    UNPARSED_FIELD,
    avro_of,
    column_fields,
    column_name,
    said_of,
)
from cdcavro.table.names import ROW, namespace_of, table_name_parts, taken_apart

if TYPE_CHECKING:
    from collections.abc import Sequence

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


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of a table's schema.

    Attributes: `name` (str), the true name; `field` (str), that of the Avro field; `avro`, the Avro
    type as a JSON value, without null; `type` (str or None) and `code` (int or None), as declared;
    `since` (int), the version it began in; `until` (int or None), the last version that writes it;
    `note` (str or None); `given` (str or None), the type that the user gives for it.
    """

    name: str
    field: str
    avro: Any
    type: str | None = None
    code: int | None = None
    since: int = 1
    until: int | None = None
    note: str | None = None
    given: str | None = None


@dataclass(frozen=True)
class TableSchema:
    """The schemas of a table in one version.

    Attributes: `row` (`Schema`), the record of a row.
    """

    row: Schema

    @cached_property
    def record(self) -> dict[str, Any]:
        """The row's record as a JSON value."""
        return dict(json.loads(self.row.json))

    @cached_property
    def table(self) -> TableName:
        """The true name of the table; where no attribute says it, the record's."""
        said = said_of(self.record).get("table")
        if isinstance(said, dict):
            return TableName(said.get("database"), said.get("schema"), str(said.get("table")))
        _, container, name, _ = taken_apart(self.row.root.name if isinstance(self.row.root, Record) else "")
        return TableName(container, None, name)

    @cached_property
    def version(self) -> int:
        """The number of the version, from 1."""
        return int(said_of(self.record).get("version", 1))

    @cached_property
    def columns(self) -> tuple[TableColumn, ...]:
        """The columns that this version writes, in their order."""
        return tuple(one for one in self.all_columns if one.until is None)

    @cached_property
    def all_columns(self) -> tuple[TableColumn, ...]:
        """Those, and the ones that earlier versions wrote and newer columns of the same name took over from."""
        return tuple(_column(one) for one in column_fields(self.record))

    @cached_property
    def key_names(self) -> tuple[str, ...]:
        """The true names of the key columns, empty where there is none or it is not known."""
        return tuple(said_of(self.record).get("key") or ())

    @cached_property
    def key(self) -> Schema | None:
        """The schema of the key: the key columns in their order; None without one."""
        fields = {one.name: one.field for one in self.columns}
        if not self.key_names or not all(name in fields for name in self.key_names):
            return None
        by_field = {one["name"]: one for one in self.record["fields"]}
        listed = [by_field[fields[name]] for name in self.key_names]
        return self._schema(KEY, [*listed, UNPARSED_FIELD], "The key of a row.")

    @cached_property
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
        return self._schema(ENVELOPE, fields, "A change of a row.")

    @property
    def full_name(self) -> str:
        """The names of the table in Avro's form, joined by points: unlike any other table's."""
        return str(self.record.get("namespace") or self.record["name"])

    def _schema(self, name: str, fields: list[Any], doc: str) -> Schema:
        said = said_of(self.record)
        record = {
            "type": "record",
            "name": name,
            "namespace": self.record.get("namespace", ""),
            "doc": doc,
            "aliases": [f"{space}.{name}" for space in self._spaces()],
            ATTRIBUTE: {key: said[key] for key in ("table", "version") if key in said},
            "fields": fields,
        }
        return as_schema({key: value for key, value in record.items() if value not in ([], "", {})})

    def _spaces(self) -> list[str]:
        """Return the namespaces that the table's records had before."""
        spaces = [alias.rpartition(".")[0] for alias in self.record.get("aliases", [])]
        return [one for one in dict.fromkeys(spaces) if one not in ("", self.record.get("namespace", ""))]


def table_schema(table: TableName, fields: Sequence[dict[str, Any]], key: Sequence[str]) -> TableSchema:
    """Make the first version of a table's schema from the fields of its columns. Raises `SchemaError`."""
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
    """Return the table whose row, or whose envelope, a schema is. Raises `SchemaError`."""
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
    pin(declared)
    return TableSchema(as_schema(settled(row_of(declared), definitions(declared))))


def is_envelope(declared: dict[str, Any]) -> bool:
    """Return whether a record is an envelope around rows."""
    names = {one["name"] for one in declared["fields"]}
    return declared["name"].rpartition(".")[2] == ENVELOPE and _IMAGE in names


def row_of(envelope: dict[str, Any]) -> dict[str, Any] | None:
    """Return the record of the row, with its namespace, where an envelope defines it."""
    declared = next(one["type"] for one in envelope["fields"] if one["name"] == _IMAGE)
    branches = declared if isinstance(declared, list) else [declared]
    rows = [one for one in branches if isinstance(one, dict) and one.get("type") == "record"]
    if len(rows) != 1:
        return None
    space = (defined_name(envelope, "") or "").rpartition(".")[0]
    return {"namespace": space} | rows[0] if space and "namespace" not in rows[0] else rows[0]


def as_schema(declared: dict[str, Any]) -> Schema:
    """Return the schema of a JSON value. Raises `SchemaError`."""
    return parse_schema(schema_text(declared))


def schema_text(declared: Any, *, indent: int | None = None) -> str:
    r"""Print a schema's JSON without apostrophes, so that it may stand in SQL between two.

    >>> print(schema_text({"type": "long", "doc": "a user's"}))
    {"type": "long", "doc": "a user\u0027s"}
    """
    return json.dumps(declared, indent=indent).replace("'", "\\u0027")


def _column(field: dict[str, Any]) -> TableColumn:
    said = said_of(field)
    return TableColumn(
        name=column_name(field),
        field=field["name"],
        avro=avro_of(field),
        type=said.get("type"),
        code=said.get("code"),
        since=said.get("since", 1),
        until=said.get("until"),
        note=said.get("note"),
        given=said.get("given"),
    )


def _nullable(name: str, declared: Any, doc: str) -> dict[str, Any]:
    return {"name": name, "type": ["null", declared], "doc": doc, "default": None}


_SOURCE: Final = {
    "type": "record",
    "name": "Source",
    "namespace": "cdcavro.table",
    "doc": "Where a change was made, and where it came from.",
    "fields": [_nullable(*one) for one in SOURCE_FIELDS],
}

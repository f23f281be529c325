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

from cdcavro.ddl_steps import TableName
from cdcavro.errors import SchemaError
from cdcavro.schema import Schema, parse_schema
from cdcavro.tables.mangling import mangle
from cdcavro.types import ABSENT, Record

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from cdcavro.change import Source

ATTRIBUTE: Final = "cdc"
UNPARSED: Final = "unparsed"
MISSING: Final = "absent"
ROW: Final = "Value"
KEY: Final = "Key"
ENVELOPE: Final = "Envelope"
SOURCE_FIELDS: Final[tuple[tuple[str, Any, str], ...]] = (
    ("format", "string", "The format that the change came in."),
    ("connector", "string", "The database type, as the source spelled it."),
    ("version", "string", "The database version."),
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
    ("file", "string", "or the file,"),
    ("line", "long", "and its line, from 1."),
    ("row", "int", "Which row of its message this is, from 0."),
)


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of a table's schema.

    Attributes: `name` (str), the true name; `field` (str), that of the Avro field; `avro`, the Avro
    type as a JSON value, without null; `type` (str or None) and `code` (int or None), as declared;
    `since` (int), the version it began in; `until` (int or None), the last version that writes it;
    `note` (str or None).
    """

    name: str
    field: str
    avro: Any
    type: str | None = None
    code: int | None = None
    since: int = 1
    until: int | None = None
    note: str | None = None


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
        name = self.row.root.name if isinstance(self.row.root, Record) else ""
        *above, last = name.split(".")
        return TableName(above[-1] if above else None, None, last)

    @property
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
        return self._schema(KEY, [*listed, _UNPARSED], "The key of a row.")

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
            "aliases": [f"{alias.rpartition('.')[0]}.{name}" for alias in self.record.get("aliases", [])],
            ATTRIBUTE: {key: said[key] for key in ("table", "version") if key in said},
            "fields": fields,
        }
        return as_schema({key: value for key, value in record.items() if value not in ([], "", {})})


def table_schema(table: TableName, fields: Sequence[dict[str, Any]], key: Sequence[str]) -> TableSchema:
    """Make the first version of a table's schema from the fields of its columns. Raises `SchemaError`."""
    record = {
        "type": "record",
        "name": ROW,
        "namespace": namespace_of(table),
        "doc": "A row.",
        ATTRIBUTE: {"table": names_of(table), "version": 1, "key": list(key)},
        "fields": [*fields, _UNPARSED, _MISSING],
    }
    return TableSchema(as_schema(record))


def from_schema(schema: Schema) -> TableSchema:
    """Give the table whose row, or whose envelope, a schema is. Raises `SchemaError`."""
    declared = json.loads(schema.json)
    if isinstance(schema.root, Record):
        before = next((one for one in declared["fields"] if one["name"] == "before"), None)
        if declared["name"] != ENVELOPE or before is None:
            return TableSchema(schema)
        rows = [one for one in before["type"] if isinstance(one, dict)] if isinstance(before["type"], list) else []
        if len(rows) == 1 and rows[0].get("type") == "record":
            row = rows[0] if "namespace" in rows[0] else rows[0] | {"namespace": declared.get("namespace", "")}
            return TableSchema(as_schema(row))
    raise SchemaError("$", "expected a record, or an envelope whose before is one")


def as_schema(declared: dict[str, Any]) -> Schema:
    """Give the schema of a JSON value. Raises `SchemaError`."""
    return parse_schema(schema_text(declared))


def schema_text(declared: Any, *, indent: int | None = None) -> str:
    r"""Print a schema's JSON without apostrophes, so that it may stand in SQL between two.

    >>> print(schema_text({"type": "long", "doc": "a user's"}))
    {"type": "long", "doc": "a user\u0027s"}
    """
    return json.dumps(declared, indent=indent).replace("'", "\\u0027")


def column_field(
    name: str, taken: Collection[str], avro: Any, *, since: int, fill: Any = ABSENT, said: dict[str, Any]
) -> dict[str, Any]:
    """Make the field of a column; `fill` is what rows have that are older than the column, null by default."""
    attribute = {"column": name} | said | ({"since": since} if since > 1 else {})
    return filled({"name": mangle(name, taken), ATTRIBUTE: attribute}, avro, None if fill is ABSENT else fill)


def filled(field: dict[str, Any], avro: Any, fill: Any) -> dict[str, Any]:
    """Give a column's field with a type, and with what rows have that are older than it."""
    declared = ["null", avro] if fill is None else [avro, "null"]
    return {"name": field["name"], "type": declared, "default": fill} | {
        key: value for key, value in field.items() if key not in ("type", "default")
    }


def column_fields(record: dict[str, Any]) -> list[dict[str, Any]]:
    """Give the fields of a row's record that are columns."""
    return [one for one in record["fields"] if ATTRIBUTE in one or one["name"] not in (UNPARSED, MISSING)]


def said_of(declared: dict[str, Any]) -> dict[str, Any]:
    """Give what the attribute says of a record or a field."""
    found = declared.get(ATTRIBUTE)
    return found if isinstance(found, dict) else {}


def avro_of(field: dict[str, Any]) -> Any:
    """Give the Avro type of a column's field, without null."""
    declared = field["type"]
    if isinstance(declared, list):
        others = [one for one in declared if one != "null"]
        return others[0] if len(others) == 1 else others
    return declared


def namespace_of(table: TableName) -> str:
    """Give the namespace of a table's records, one for each table: how many names it has tells which are missing."""
    parts = [table.table]
    if table.schema is not None:
        parts = [table.database or "", table.schema, *parts]
    elif table.database is not None:
        parts = [table.database, *parts]
    return ".".join(map(mangle, parts))


def names_of(table: TableName) -> dict[str, str]:
    """Give the true names of a table that there are."""
    named = {"database": table.database, "schema": table.schema, "table": table.table}
    return {name: value for name, value in named.items() if value is not None}


def table_of(source: Source) -> TableName | None:
    """Give the name of the table that a change is about; on OceanBase a tenant stands before the database."""
    if source.table is None:
        return None
    database = source.database if source.tenant is None else f"{source.tenant}.{source.database or ''}"
    return TableName(database, source.schema, source.table)


def _column(field: dict[str, Any]) -> TableColumn:
    said = said_of(field)
    return TableColumn(
        name=str(said.get("column", field["name"])),
        field=field["name"],
        avro=avro_of(field),
        type=said.get("type"),
        code=said.get("code"),
        since=said.get("since", 1),
        until=said.get("until"),
        note=said.get("note"),
    )


def _nullable(name: str, declared: Any, doc: str) -> dict[str, Any]:
    return {"name": name, "type": ["null", declared], "doc": doc, "default": None}


_UNPARSED: Final = {
    "name": UNPARSED,
    "type": {"type": "map", "values": "string"},
    "doc": "Column name to text, of values that their column's type cannot carry; the column is null then.",
    "default": {},
}
_MISSING: Final = {
    "name": MISSING,
    "type": {"type": "array", "items": "string"},
    "doc": "Names of the columns that the message did not have; they are null here.",
    "default": [],
}
_SOURCE: Final = {
    "type": "record",
    "name": "Source",
    "namespace": "cdcavro.table",
    "doc": "Where a change was made, and where it came from.",
    "fields": [_nullable(*one) for one in SOURCE_FIELDS],
}

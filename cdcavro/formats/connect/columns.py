"""Columns as Debezium declares them, in the table changes of a statement and in embedded schemas."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from cdcavro.change.connect_values import PLAIN_LONG, codec_of, is_unsigned, read_connect_value
from cdcavro.change.model import Column, Row
from cdcavro.change.modes import USUAL_MODES, Modes
from cdcavro.exact.members import at, names_at, string_at

if TYPE_CHECKING:
    from collections.abc import Sequence


Table = tuple[str | None, str | None, str | None]

_IDENTIFIER: Final = re.compile(r'"((?:[^"]|"")*+)"')
_IDENTIFIERS: Final = re.compile(rf"{_IDENTIFIER.pattern}(?:\.{_IDENTIFIER.pattern})*")
# SQL Server's types of columns that it numbers: `int identity`, `decimal() identity`.
_IDENTITY: Final = re.compile(r"(?:\(\))?\s+identity", re.ASCII | re.IGNORECASE)
_IMAGES: Final = frozenset({"before", "after"})
_MOST: Final = 3


def changed_table(change: Any) -> Table | None:
    """Return the database, schema and name of the table that a table change is about; None if its id is malformed.

    TiCDC names a renamed table by both of its names, the new one first.

    >>> changed_table({"id": '"shop"."we ird"'})
    ('shop', None, 'we ird')
    """
    text = string_at(change, "id") or ""
    match = _IDENTIFIERS.match(text)
    if match is None or text[match.end() : match.end() + 1] not in ("", ","):
        return None
    names = [name.replace('""', '"') for name in _IDENTIFIER.findall(match[0])]
    if not 1 <= len(names) <= _MOST:
        return None
    *above, name = names
    database, schema = (*above, None, None)[:2]
    return database, schema, name


def table_columns(change: Any) -> tuple[Column, ...] | None:
    """Return the columns of the table in a table change, their types as in a declaration; None if it was dropped.

    >>> table_columns({"table": {"columns": [{"name": "n", "typeExpression": "INT UNSIGNED", "length": 8}]}})
    (Column(name='n', type='INT(8) UNSIGNED', code=None),)
    """
    columns = at(change, "table", "columns")
    if type(columns) is not list:
        return None
    return tuple(
        Column(name=string_at(column, "name"), type=_declared(column), code=_integer(column, "jdbcType"))
        for column in columns
    )


def table_key(change: Any) -> tuple[str, ...] | None:
    """Return the names of the primary key columns of the table in a table change."""
    return names_at(change, "table", "primaryKeyColumnNames")


def _declared(column: Any) -> str | None:
    """Return a type with its length, scale or members: `INT UNSIGNED` of length 8 is `INT(8) UNSIGNED`."""
    text = string_at(column, "typeExpression") or string_at(column, "typeName")
    text = text and _IDENTITY.sub("", text)
    members, length, scale = names_at(column, "enumValues"), _integer(column, "length"), _integer(column, "scale")
    if text is None or "(" in text:
        return text
    arguments = (
        ",".join(map(_quoted, members))
        if members
        else ",".join(str(number) for number in (length, scale) if number is not None)
    )
    name, space, rest = text.partition(" ")
    return f"{name}({arguments}){space}{rest}" if arguments else text


def _quoted(member: str) -> str:
    return member if member.startswith("'") else "'" + member.replace("'", "''") + "'"


def _integer(record: Any, name: str) -> int | None:
    value = at(record, name)
    return value if type(value) is int and -(2**31) <= value < 2**31 else None


def image_columns(schema: Any) -> tuple[Column, ...] | None:
    """Return the columns of the row images that an embedded schema describes."""
    fields = at(schema, "fields")
    images = [field for field in fields if string_at(field, "field") in _IMAGES] if type(fields) is list else []
    return schema_columns(images[-1]) if images else None


def schema_columns(schema: Any) -> tuple[Column, ...] | None:
    """Return the columns that the Kafka Connect schema of a struct describes.

    A column's type is its semantic type with the parameters that affect how a value is sent, or else
    Kafka Connect's own type, with the type of the items of an array. If the connector adds the types that the
    source declares, a 64-bit integer that is unsigned there has that type.

    >>> schema_columns({"fields": [{"type": "bytes", "name": "io.debezium.data.Bits", "parameters": {"length": "12"}, "field": "b"}]})
    (Column(name='b', type='io.debezium.data.Bits(length=12)', code=None),)
    """
    fields = at(schema, "fields")
    if type(fields) is not list:
        return None
    return tuple(Column(name=string_at(field, "field"), type=_spelled(field)) for field in fields)


_DECLARED: Final = "__debezium.source.column.type"
# Vitess has its own names for MySQL's types.
_VITESS: Final = {"UINT64": "BIGINT UNSIGNED"}
_PARAMETERS: Final = {"connect.decimal.precision": "precision", "scale": "scale", "length": "length"}


def _spelled(field: Any) -> str | None:
    text = string_at(field, "name") or string_at(field, "type")
    declared = string_at(field, "parameters", _DECLARED)
    declared = _VITESS.get(declared or "", declared)
    if text == PLAIN_LONG and declared is not None and is_unsigned(declared):
        return declared
    if text == "array":
        return f"array<{_spelled(at(field, 'items'))}>"
    parameters = {shown: string_at(field, "parameters", name) for name, shown in _PARAMETERS.items()}
    arguments = ",".join(f"{shown}={value}" for shown, value in parameters.items() if value is not None)
    return f"{text}({arguments})" if text and arguments else text


def read_row(
    row: Row | None, columns: Sequence[Column] | None, connector: str | None, modes: Modes = USUAL_MODES
) -> Row | None:
    """Return a row that Debezium sent in the form that every other format uses, given its columns."""
    codecs = {column.name: codec_of(column.type, connector, modes) for column in columns or ()}
    return None if row is None else {name: read_connect_value(value, codecs.get(name)) for name, value in row.items()}

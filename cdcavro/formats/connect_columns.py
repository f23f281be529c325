"""Columns as Debezium declares them, in the table changes of a statement and in embedded schemas, and without a value.

A column whose value the source did not give its connector is sent with a placeholder.

Source: Debezium reference, PostgreSQL connector, "Toasted values" and `unavailable.value.placeholder`; the
connector's class `UnchangedToastedPlaceholder`.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode, urlsafe_b64encode
from functools import lru_cache
from hashlib import md5
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import UUID

from cdcavro.change.connect_values import PLAIN_LONG, codecs_of, is_unsigned, read_connect_value
from cdcavro.change.model import Column, Row
from cdcavro.change.operations import USUAL_MODES, Modes
from cdcavro.exact.jsontext import at, names_at, string_at

if TYPE_CHECKING:
    from collections.abc import Sequence


Table = tuple[str | None, str | None, str | None]

_IDENTIFIER: Final = re.compile(r'"((?:[^"]|"")*+)"')
_IDENTIFIERS: Final = re.compile(rf"{_IDENTIFIER.pattern}(?:\.{_IDENTIFIER.pattern})*")
_IDS: Final = re.compile(rf"{_IDENTIFIERS.pattern}(?:,{_IDENTIFIERS.pattern})*")
# SQL Server's types of columns that it numbers: `int identity`, `decimal() identity`.
_IDENTITY: Final = re.compile(r"(?:\(\))?\s+identity", re.ASCII | re.IGNORECASE)
_IMAGES: Final = ("before", "after")
# Where an envelope may be: in a record, beside its schema, or both.
_WRAPPERS: Final = ("value", "payload")
_CONTAINERS: Final = (list, dict)
_MOST_NAMES: Final = 3
_BOTH: Final = 2


def changed_table(change: Any) -> Table | None:
    """Return the database, schema and name of the table that a table change changes; None if its id is malformed.

    TiCDC names a renamed table by both of its names, the new one first.

    >>> changed_table({"id": '"shop"."we ird"'})
    ('shop', None, 'we ird')
    """
    names = _names(change)
    return names[0] if names else None


def former_table(change: Any) -> Table | None:
    """Return the database, schema and name that a renamed table had; None if its table change does not say.

    >>> former_table({"id": '"shop"."new","shop"."old"'}), former_table({"id": '"shop"."new"'})
    (('shop', None, 'old'), None)
    """
    names = _names(change)
    return names[1] if len(names) == _BOTH else None


def _names(change: Any) -> list[Table | None]:
    """Return the names in the id of a table change, None for one of too many parts; none of a malformed id."""
    text = string_at(change, "id") or ""
    if _IDS.fullmatch(text) is None:
        return []
    return [_table(match[0]) for match in _IDENTIFIERS.finditer(text)]


def _table(text: str) -> Table | None:
    names = [name.replace('""', '"') for name in _IDENTIFIER.findall(text)]
    if not 1 <= len(names) <= _MOST_NAMES:
        return None
    *above, name = names
    containers: list[str | None] = [*above, None, None]
    database, schema = containers[:2]
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

    >>> field = {"type": "bytes", "name": "io.debezium.data.Bits", "parameters": {"length": "12"}, "field": "b"}
    >>> schema_columns({"fields": [field]})
    (Column(name='b', type='io.debezium.data.Bits(length=12)', code=None),)
    """
    fields = at(schema, "fields")
    if type(fields) is not list:
        return None
    return tuple(Column(name=string_at(field, "field"), type=_type_text(field)) for field in fields)


_DECLARED: Final = "__debezium.source.column.type"
# Vitess has its own names for MySQL's types.
_VITESS: Final = {"UINT64": "BIGINT UNSIGNED"}
_PARAMETERS: Final = {"connect.decimal.precision": "precision", "scale": "scale", "length": "length"}


def _type_text(field: Any) -> str | None:
    text = string_at(field, "name") or string_at(field, "type")
    declared = string_at(field, "parameters", _DECLARED)
    declared = _VITESS.get(declared or "", declared)
    if text == PLAIN_LONG and declared is not None and is_unsigned(declared):
        return declared
    if text == "array":
        return f"array<{_type_text(at(field, 'items'))}>"
    parameters = {label: string_at(field, "parameters", name) for name, label in _PARAMETERS.items()}
    arguments = ",".join(f"{label}={value}" for label, value in parameters.items() if value is not None)
    return f"{text}({arguments})" if text and arguments else text


def read_row(
    row: Row | None, columns: Sequence[Column] | None, connector: str | None, modes: Modes = USUAL_MODES
) -> Row | None:
    """Return a row that Debezium sent in the form that every other format uses, given its columns."""
    if row is None or not columns:
        return row
    codecs = codecs_of(tuple(columns), connector, modes)
    return {name: read_connect_value(value, codecs.get(name)) for name, value in row.items()}


# An update does not log a large value that it does not change (PostgreSQL's TOAST, Oracle's LOBs), and some connectors
# lack other values. Each such column has a placeholder, which would overwrite the real value if it was taken for data.
# So the rows of a change do not have the column, and the change lists its name.
#
# The placeholder is made of a word, the connector's `unavailable.value.placeholder`, by the type of the column:
#
# * a text is the word; bytes are base64 of it, base64 for URLs or hexadecimal, in the form in which the connector sends
#   bytes;
# * an array has one element, the word, its bytes, or its UUID of version 3; an array of integers or dates
#   has a number for each byte;
# * a map (hstore) has the word as its key and its value, as an object or as the text of one.
#
# A word that begins with `hex:` gives bytes, for the connectors that know that, and is the word itself for the others.

PLACEHOLDER: Final = "__debezium_unavailable_value"
_HEX: Final = re.compile(r"hex:((?:[0-9a-fA-F]{2})+)", re.ASCII)
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_MOST_CHARACTERS: Final = 1_000


class _PlaceholderForms(NamedTuple):
    """The forms of a placeholder."""

    scalars: frozenset[str]
    # The only element of an array.
    elements: frozenset[str]
    # Whole arrays and whole maps.
    arrays: tuple[list[int], ...]
    maps: tuple[dict[str, str], ...]


def check_word(word: str | None) -> None:
    """Raise `ValueError` unless a word can be a placeholder: 1 to 1,000 characters of UTF-8, or None for no word."""
    if word is not None and not (
        type(word) is str and 1 <= len(word) <= _MOST_CHARACTERS and not _SURROGATE.search(word)
    ):
        raise ValueError(
            f"the word for unavailable values is a text of 1 to {_MOST_CHARACTERS} characters of UTF-8, or None"
        )


def placeholders(word: str | None) -> tuple[bytes, ...]:
    """Return the texts that stand for a value which the source did not give; arrays and maps do so, too."""
    return (
        ()
        if word is None
        else tuple(sorted(form.encode("utf-8", "replace") for form in _placeholder_forms(word).scalars))
    )


def remove_unavailable(line: dict[str, Any], word: str | None) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return a line without the columns that hold a placeholder in its row images, and the names of these columns.

    It is the line itself if there is no placeholder.

    >>> remove_unavailable({"op": "u", "after": {"id": 1, "doc": "__debezium_unavailable_value"}}, PLACEHOLDER)
    ({'op': 'u', 'after': {'id': 1}}, ('doc',))
    """
    if word is None:
        return line, ()
    unavailable: dict[str, None] = {}
    return _remove_unavailable(line, _placeholder_forms(word), _WRAPPERS, unavailable), tuple(unavailable)


def _remove_unavailable(
    line: dict[str, Any], forms: _PlaceholderForms, wrappers: tuple[str, ...], unavailable: dict[str, None]
) -> dict[str, Any]:
    """Return what is around an envelope, without placeholders in its images, and add their columns to `unavailable`."""
    for i, name in enumerate(wrappers):
        inner = line.get(name)
        if type(inner) is dict:
            available = _remove_unavailable(inner, forms, wrappers[i + 1 :], unavailable)
            return line if available is inner else line | {name: available}
    changed = {}
    for name in _IMAGES:
        image = line.get(name)
        if type(image) is dict:
            available = _available_columns(image, forms, unavailable)
            if available is not image:
                changed[name] = available
    return line | changed if changed else line


def _available_columns(image: dict[str, Any], forms: _PlaceholderForms, unavailable: dict[str, None]) -> dict[str, Any]:
    scalars = forms.scalars
    missing = dict.fromkeys(
        [
            name
            for name, value in image.items()
            if (value in scalars if type(value) is str else type(value) in _CONTAINERS and _is_container(value, forms))
        ]
    )
    if not missing:
        return image
    unavailable.update(missing)
    return {name: value for name, value in image.items() if name not in missing}


def _is_container(value: Any, forms: _PlaceholderForms) -> bool:
    """Return whether an array or an object is the form of a placeholder."""
    if type(value) is list:
        is_element = len(value) == 1 and type(value[0]) is str and value[0] in forms.elements
        return is_element or value in forms.arrays
    return value in forms.maps


@lru_cache(maxsize=16)
def _placeholder_forms(word: str) -> _PlaceholderForms:
    check_word(word)
    match = _HEX.fullmatch(word)
    raws = [word.encode("utf-8", "replace"), *([] if match is None else [bytes.fromhex(match[1])])]
    texts = [raw.decode("utf-8", "replace") for raw in raws]
    scalars = {form for raw in raws for form in (b64encode(raw).decode(), urlsafe_b64encode(raw).decode(), raw.hex())}
    maps = tuple({text: text} for text in texts)
    map_texts = {json.dumps(form, ensure_ascii=False, separators=(",", ":")) for form in maps}
    return _PlaceholderForms(
        frozenset({*texts, *scalars, *map_texts}),
        frozenset({*texts, *scalars, *map(_uuid, raws)}),
        tuple([byte - 256 if byte > 127 else byte for byte in raw] for raw in raws),  # noqa: PLR2004  Java's bytes
        maps,
    )


def _uuid(raw: bytes) -> str:
    """Return what Java's `UUID.nameUUIDFromBytes` makes of bytes."""
    return str(UUID(bytes=md5(raw, usedforsecurity=False).digest(), version=3))

"""One update of a table, which pages show in every format: as messages, changes and typed rows."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from datetime import UTC
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import fastavro

from cdcavro import FORMATS, Tables, encode, sniff, to_changes, transcode
from cdcavro.table.columns.column_type import TypeOverrides

if TYPE_CHECKING:
    from cdcavro import Change

TYPES: Final = {"id": "int", "price": "decimal(10,2)", "note": "varchar(20)"}
TABLE: Final = "orders"
FORMAT: Final = "canal"
MESSAGE: Final = """\
{"data":[{"id":"7","price":"1.20","note":"paid"}],"database":"shop","es":1700000001000,"gtid":"","isDdl":false,\
"mysqlType":{"id":"int","price":"decimal(10,2)","note":"varchar(20)"},"old":[{"price":"1.00","note":null}],\
"pkNames":["id"],"sql":"","sqlType":{"id":4,"price":3,"note":12},"table":"orders","ts":1700000001250,"type":"UPDATE"}"""


@dataclass(frozen=True)
class Shown:
    """A message of the update, with all that becomes of it."""

    # The message, as its format has it.
    text: str
    # The message as a payload of its format's schema.
    payload: bytes
    # The change that the message has.
    change: Change
    # The columns of the typed row before and after the change, None where the message has no such row.
    before: dict[str, Any] | None
    after: dict[str, Any] | None


@cache
def messages(name: str) -> tuple[Shown, ...]:
    """Return the update as the messages of a format: two, where the format sends the rows before and after apart."""
    if name not in FORMATS:
        raise LookupError(f"{name} is no format")
    return tuple(_shown(text.decode(), name) for text in transcode(MESSAGE, FORMAT, name, zone=UTC).texts)


def _shown(text: str, name: str) -> Shown:
    if sniff(text) != name:
        raise ValueError(f"the update as {name} looks like {sniff(text)}")
    (change,) = to_changes(text, name, zone=UTC)
    given = TypeOverrides.from_mapping({} if change.columns else {TABLE: TYPES})
    (typed,) = Tables(given=given).add(change)
    schema = fastavro.parse_schema(json.loads(typed.schema.envelope.json))
    record = fastavro.schemaless_reader(io.BytesIO(typed.payload), schema, None)
    return Shown(text, encode(text, name), change, _columns(record["before"]), _columns(record["after"]))


def _columns(row: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return the columns of a typed row, which stand before the two fields that every row has."""
    return None if row is None else {column: row[column] for column in TYPES}

"""The fields of a row's record as JSON values: those of columns, and the two that stand behind them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cdcavro.exact.members import ABSENT

if TYPE_CHECKING:
    from cdcavro.table.names import NameAllocator

ATTRIBUTE: Final = "cdc"
UNPARSED: Final = "unparsed"
MISSING: Final = "absent"


def column_field(
    name: str, taken: NameAllocator, avro: Any, *, since: int, fill: Any = ABSENT, said: dict[str, Any]
) -> dict[str, Any]:
    """Make the field of a column; `fill` is what rows have that are older than the column, null by default."""
    attribute = {"column": name} | said | ({"since": since} if since > 1 else {})
    return filled({"name": taken.give(name), ATTRIBUTE: attribute}, avro, None if fill is ABSENT else fill)


def filled(field: dict[str, Any], avro: Any, fill: Any) -> dict[str, Any]:
    """Return a column's field with a type, and with what rows have that are older than it."""
    declared = ["null", avro] if fill is None else [avro, "null"]
    return {"name": field["name"], "type": declared, "default": fill} | {
        key: value for key, value in field.items() if key not in ("type", "default")
    }


def column_fields(record: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the fields of a row's record that are columns."""
    return [one for one in record["fields"] if is_column(one)]


def is_column(field: dict[str, Any]) -> bool:
    """Return whether a field is a column's, and none of the two that stand behind the columns."""
    return ATTRIBUTE in field or (field["name"], field["type"]) not in _BEHIND


def column_name(field: dict[str, Any]) -> str:
    """Return the true name of a field's column."""
    return str(said_of(field).get("column", field["name"]))


def is_own(record: dict[str, Any]) -> bool:
    """Return whether a row's record was made here, for a table whose names it says."""
    return isinstance(said_of(record).get("table"), dict)


def said_of(declared: dict[str, Any]) -> dict[str, Any]:
    """Return what the attribute says of a record or a field."""
    found = declared.get(ATTRIBUTE)
    return found if isinstance(found, dict) else {}


def avro_of(field: dict[str, Any]) -> Any:
    """Return the Avro type of a column's field, without null."""
    declared = field["type"]
    if isinstance(declared, list):
        others = [one for one in declared if one != "null"]
        return others[0] if len(others) == 1 else others
    return declared


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
_BEHIND: Final = tuple((one["name"], one["type"]) for one in (UNPARSED_FIELD, MISSING_FIELD))

"""The fields of a row's record as JSON values: those of columns, and the two that follow them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from cdcavro.exact.members import ABSENT

if TYPE_CHECKING:
    from cdcavro.table.names import NameAllocator

ATTRIBUTE: Final = "cdc"
# The key of what older rows have if it is not the default of new rows.
OLDER: Final = "older"
UNPARSED: Final = "unparsed"
MISSING: Final = "absent"


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of a table's schema.

    Attributes: `name` (str), the true name; `field` (str), the name of the Avro field; `avro`, the Avro
    type as a JSON value, without null; `type` (str or None) and `code` (int or None, of java.sql.Types),
    as declared; `since` (int), the first version that has it; `until` (int or None), the last version
    that writes it; `note` (str or None), a remark on how its values are stored; `given` (str or None),
    the type that the user gives for it.
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

    @property
    def shown(self) -> str:
        """The true name, in which a column is told from the newer one that took over from it."""
        return self.name if self.until is None else f"{self.name} (until version {self.until})"


def column_field(
    name: str, names: NameAllocator, avro: Any, *, since: int, fill: Any = ABSENT, attributes: dict[str, Any]
) -> dict[str, Any]:
    """Return the field of a new column, named by an allocator; `fill` is its value in older rows, by default null."""
    content = {"column": name} | attributes | ({"since": since} if since > 1 else {})
    return filled({"name": names.give(name), ATTRIBUTE: content}, avro, None if fill is ABSENT else fill)


def filled(field: dict[str, Any], avro: Any, fill: Any) -> dict[str, Any]:
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
    return str(said_of(field).get("column", field["name"]))


def column_of_field(field: dict[str, Any]) -> TableColumn:
    """Return the column that a field holds."""
    attributes = said_of(field)
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


def is_own(record: dict[str, Any]) -> bool:
    """Return whether a row's record was made by this package, since it states the table's true names."""
    return isinstance(said_of(record).get("table"), dict)


def said_of(declared: dict[str, Any]) -> dict[str, Any]:
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

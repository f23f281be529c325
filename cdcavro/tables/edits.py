"""What a statement does to a row's record: fields added, dropped, renamed, retyped, moved.

An edit works on the JSON value of the record and touches nothing else in it, so attributes,
`order`, `fixed` types and documentation that others put there survive.
"""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any, Final

from cdcavro.defaults import check_default
from cdcavro.errors import ResolutionError, SchemaError, shown
from cdcavro.evolution import resolve
from cdcavro.schema import parse_schema
from cdcavro.tables.mangling import mangle
from cdcavro.tables.named_types import definitions, settled
from cdcavro.tables.schema import (
    ATTRIBUTE,
    avro_of,
    column_field,
    column_fields,
    filled,
    names_of,
    namespace_of,
    said_of,
)
from cdcavro.types import ABSENT

if TYPE_CHECKING:
    from cdcavro.ddl_steps import TableName

LOGICAL: Final = "logicalType"
LOSSY: Final = {
    ("int", "float"): "values beyond 2^24 are rounded",
    ("long", "float"): "values beyond 2^24 are rounded",
    ("long", "double"): "values beyond 2^53 are rounded",
}


class RowEdit:
    """The next version of a row's record, in the making.

    Made from the record's JSON value; unless it `is_new`, it is the version that the record is, which
    nothing was written in yet. Attributes: `record`, the JSON value so far; `version` (int),
    that of the new version; `steps` (list of str), what was done, in sentences.
    """

    def __init__(self, record: dict[str, Any], *, is_new: bool = True) -> None:
        self.record = copy.deepcopy(record)
        self._definitions = definitions(self.record)
        said = said_of(self.record)
        self.version = int(said.get("version", 1)) + is_new
        self.steps: list[str] = []

    def find(self, name: str) -> dict[str, Any] | None:
        """Give the field that a column is written to, by its true name; where it is one only, in capitals or not."""
        written = [one for one in column_fields(self.record) if "until" not in said_of(one)]
        exact = [one for one in written if column_name(one) == name]
        loose = [one for one in written if column_name(one).lower() == name.lower()]
        found = exact or (loose if len(loose) == 1 else [])
        return found[0] if found else None

    def need(self, name: str) -> dict[str, Any]:
        """Give the field of a column. Raises `SchemaError`."""
        found = self.find(name)
        if found is None:
            raise SchemaError(self.label, f"there is no column {shown(name)}")
        return found

    def add(
        self,
        name: str,
        avro: Any,
        said: dict[str, Any],
        *,
        fill: Any = ABSENT,
        first: bool = False,
        after: str | None = None,
    ) -> None:
        """Add a column; `fill` is what older rows have. Raises `SchemaError` if there is one of that name."""
        if self.find(name) is not None:
            raise SchemaError(self.label, f"there is a column {shown(name)} already")
        field = column_field(name, self._taken(), avro, since=self.version, fill=fill, said=said)
        self.record["fields"].insert(self._index(first=first, after=after), field)
        older = "null" if fill is ABSENT or fill is None else said.get("default") or json.dumps(fill)
        self._did(f"column {shown(name)} added: {older} in older rows")

    def drop(self, name: str) -> None:
        """Drop a column; its name is not given to another field. Raises `SchemaError`."""
        field = self.need(name)
        self.record["fields"].remove(field)
        self._say("gone", sorted({*self._said().get("gone", ()), field["name"], *field.get("aliases", ())}))
        if name in (self._said().get("key") or ()):
            self._say("key", [one for one in self._said()["key"] if one != name])
        self._did(f"column {shown(column_name(field))} dropped")

    def rename(self, old: str, new: str) -> None:
        """Rename a column: its old name becomes an alias. Raises `SchemaError`."""
        field = self.need(old)
        other = self.find(new)
        if other is not None and other is not field:
            raise SchemaError(self.label, f"there is a column {shown(new)} already")
        if column_name(field) == new:
            return
        made = mangle(new, self._taken(without=field))
        aliases = [one for one in dict.fromkeys([*field.get("aliases", []), field["name"]]) if one != made]
        was = column_name(field)
        field["name"], field["aliases"] = made, aliases
        field[ATTRIBUTE] = said_of(field) | {"column": new}
        if was in (self._said().get("key") or ()):
            self._say("key", [new if one == was else one for one in self._said()["key"]])
        self._did(f"column {shown(was)} renamed to {shown(new)}")

    def retype(self, name: str, avro: Any, said: dict[str, Any]) -> bool:
        """Give a column another type. Tell whether a new field began, since the old values do not read as the new.

        Raises `SchemaError`.
        """
        field = self.need(name)
        was, now = said_of(field), {key: value for key, value in said.items() if value is not None}
        kept = {key: value for key, value in was.items() if key not in ("type", "code", "note")}
        if avro_of(field) == avro:
            if (was.get("type"), was.get("note")) != (now.get("type"), now.get("note")):
                self._did(f"column {shown(name)} is {now.get('type')}, and was {was.get('type')}: held alike")
            field[ATTRIBUTE] = kept | now
            return False
        if was.get("since", 1) == self.version:
            # Nothing was written in it yet.
            self._did(f"column {shown(name)} is {label(avro)}")
            place = self.record["fields"].index(field)
            fill = _refilled(field, avro)
            self.record["fields"][place] = filled(field | {ATTRIBUTE: kept | now}, avro, fill)
            return False
        if is_promotion(avro_of(field), avro):
            note = LOSSY.get((label(avro_of(field)), label(avro)))
            self._did(
                f"column {shown(name)} reads {label(avro_of(field))} as {label(avro)}" + (f": {note}" if note else "")
            )
            old = avro_of(field)
            branches = field["type"] if isinstance(field["type"], list) else None
            field["type"] = avro if branches is None else [avro if one == old else one for one in branches]
            field[ATTRIBUTE] = kept | now
            return False
        self._begin(field, avro, now)
        return True

    def move(self, name: str, *, first: bool = False, after: str | None = None) -> None:
        """Move a column to the front or behind another. Raises `SchemaError`."""
        if not first and after is None:
            return
        field = self.need(name)
        place = None if after is None else self.need(after)
        fields = self.record["fields"]
        fields.remove(field)
        fields.insert(0 if place is None else fields.index(place) + 1, field)
        self._did(f"column {shown(name)} moved")

    def move_behind(self, name: str, other: str | None) -> None:
        """Move a column behind another, or to the front, unless it stands there."""
        written = [column_name(one) for one in column_fields(self.record) if "until" not in said_of(one)]
        place = written.index(name)
        if (written[place - 1] if place else None) != other:
            self.move(name, first=other is None, after=other)

    def set_default(self, name: str, default: str | None) -> None:
        """Note what new rows get; older rows keep what they had. Raises `SchemaError`."""
        field = self.need(name)
        said = {key: value for key, value in said_of(field).items() if key != "default"}
        field[ATTRIBUTE] = said if default is None else said | {"default": default}
        self._did(f"column {shown(name)} has {'no default' if default is None else f'the default {shown(default)}'}")

    def set_key(self, names: list[str]) -> None:
        """Set the key columns. Raises `SchemaError`."""
        self._say("key", [column_name(self.need(name)) for name in names])
        self._did(f"the key is {', '.join(map(shown, names))}" if names else "there is no key")

    def rename_table(self, table: TableName) -> None:
        """Rename the table: the full name of its record becomes an alias."""
        old = f"{self.record.get('namespace', '')}.{self.record['name']}".lstrip(".")
        space = namespace_of(table)
        if not said_of(self.record):
            self.record["name"] = mangle(table.table)
            space = space.rpartition(".")[0] if "namespace" in self.record else ""
        self.record["namespace"] = space
        new = f"{space}.{self.record['name']}".lstrip(".")
        aliases = [one for one in dict.fromkeys([*self.record.get("aliases", []), old]) if one != new]
        if aliases:
            self.record["aliases"] = aliases
        if said_of(self.record):
            self._say("table", names_of(table))
        self._did(f"renamed to {shown(table.table)}")

    def finish(self) -> dict[str, Any]:
        """Give the record as the next version; the same if nothing was done."""
        self.record = settled(self.record, self._definitions)
        if self.steps and said_of(self.record):
            self._say("version", self.version)
        return self.record

    @property
    def label(self) -> str:
        """The table's name for sentences."""
        table = self._said().get("table")
        return str(table.get("table")) if isinstance(table, dict) else str(self.record["name"])

    def _begin(self, field: dict[str, Any], avro: Any, said: dict[str, Any]) -> None:
        """Let a new field take over from one whose values do not read as the new type."""
        name = column_name(field)
        fields = self.record["fields"]
        was = label(avro_of(field))
        made = column_field(name, self._taken(), avro, since=self.version, said=said)
        fields.insert(fields.index(field), made)
        field[ATTRIBUTE] = said_of(field) | {"column": name, "until": self.version - 1}
        if "default" not in field:
            field["type"], field["default"] = ["null", avro_of(field)], None
        text = f"column {shown(name)} is {label(avro)} from version {self.version} on, in the field {made['name']}"
        self._did(f"{text}; as {was} it does not read as that, and older rows keep it in {field['name']}")

    def _index(self, *, first: bool, after: str | None) -> int:
        fields = self.record["fields"]
        if first:
            return 0
        if after is not None:
            return int(fields.index(self.need(after))) + 1
        columns = [fields.index(one) for one in column_fields(self.record)]
        return max(columns) + 1 if columns else 0

    def _taken(self, without: dict[str, Any] | None = None) -> set[str]:
        others = [one for one in self.record["fields"] if one is not without]
        names = {name for one in others for name in (one["name"], *one.get("aliases", ()))}
        return names | set(self._said().get("gone", ()))

    def _said(self) -> dict[str, Any]:
        return said_of(self.record)

    def _say(self, key: str, value: Any) -> None:
        self.record[ATTRIBUTE] = self._said() | {key: value}

    def _did(self, sentence: str) -> None:
        self.steps.append(sentence)


def _refilled(field: dict[str, Any], avro: Any) -> Any:
    """Give what older rows have of a column, as another type has it; null where it has not."""
    fill = field.get("default")
    fill = int(fill) if isinstance(fill, bool) and avro in ("int", "long") else fill
    try:
        check_default(parse_schema(json.dumps(avro)).root, fill, field["name"])
    except SchemaError:
        return None
    return fill


def column_name(field: dict[str, Any]) -> str:
    """Give the true name of a field's column."""
    return str(said_of(field).get("column", field["name"]))


def is_promotion(old: Any, new: Any) -> bool:
    """Tell whether values of one Avro type read as another, as they are.

    Avro's promotions, but not of what a logical type means something else in: the bytes of a decimal
    are no text. A decimal reads as one of more digits and the same scale.

    >>> is_promotion("int", "long"), is_promotion({"type": "int", "logicalType": "date"}, "long")
    (True, False)
    """
    logical = [one.get(LOGICAL) if isinstance(one, dict) else None for one in (old, new)]
    if logical[0] != logical[1]:
        return False
    try:
        resolve(parse_schema(json.dumps(old)).root, parse_schema(json.dumps(new)).root)
    except ResolutionError:
        return False
    return logical[0] in (None, "decimal")


def label(avro: Any) -> str:
    """Name an Avro type in a sentence.

    >>> label({"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2})
    'decimal(10,2)'
    """
    if not isinstance(avro, dict):
        return str(avro)
    if avro.get(LOGICAL) == "decimal":
        return f"decimal({avro.get('precision')},{avro.get('scale', 0)})"
    return str(avro.get(LOGICAL) or avro.get("name") or avro.get("type"))

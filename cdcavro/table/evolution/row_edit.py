"""What a statement does to a row's record: fields added, dropped, renamed, retyped, moved.

An edit works on the JSON value of the record and touches nothing else in it, so attributes,
`order`, `fixed` types and documentation that others put there survive.
"""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any, Final

from cdcavro.avro.definitions import definitions, pin, settled
from cdcavro.errors import SchemaError, shown
from cdcavro.exact.members import ABSENT
from cdcavro.table.evolution.promotion import avro_label, is_promotion, promoted, promotion_loss, without_attributes
from cdcavro.table.fields import (
    ATTRIBUTE,
    avro_of,
    column_field,
    column_fields,
    column_name,
    filled,
    is_column,
    is_own,
    said_of,
)
from cdcavro.table.names import NameAllocator, namespace_of, renamed, table_name_parts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cdcavro.table.ddl.steps import TableName

MAX_COLUMNS: Final = 10_000
MAX_NAMES: Final = 20_000


class RowEdit:
    """The next version of a row's record, in the making.

    Made from the record's JSON value; unless it `is_new`, it is the version that the record is, which
    nothing was written in yet. Where it `is_folded`, a column is found in capitals or not, as in MySQL.
    Attributes: `record`, the JSON value so far; `version` (int), that of the new version; `steps`
    (list of str), what was done, in sentences.
    """

    def __init__(self, record: dict[str, Any], *, is_new: bool = True, is_folded: bool = True) -> None:
        self.record = copy.deepcopy(record)
        self._definitions = definitions(self.record)
        self.version = int(said_of(self.record).get("version", 1)) + is_new
        self.steps: list[str] = []
        self._is_folded = is_folded
        self._taken = NameAllocator(
            name for one in self.record["fields"] for name in (one["name"], *one.get("aliases", ()))
        )
        for name in self._said().get("gone", ()):
            self._taken.add(name)
        self._added: set[str] = set()
        self._written: dict[str, dict[str, Any]] = {}
        self._ended: dict[str, list[dict[str, Any]]] = {}
        self._spellings: dict[str, dict[str, None]] = {}
        for one in column_fields(self.record):
            if "until" in said_of(one):
                self._ended.setdefault(column_name(one), []).append(one)
            else:
                self._note(column_name(one), one)

    def find(self, name: str) -> dict[str, Any] | None:
        """Return the field that a column is written to, by its true name; where it is one only, in capitals or not."""
        found = self._written.get(name)
        if found is None and self._is_folded:
            spellings = self._spellings.get(name.lower(), ())
            found = self._written[next(iter(spellings))] if len(spellings) == 1 else None
        return found

    def need(self, name: str) -> dict[str, Any]:
        """Return the field of a column. Raises `SchemaError`."""
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
        if len(self._written) >= MAX_COLUMNS or len(self._taken) >= MAX_NAMES:
            raise SchemaError(self.label, f"more than {MAX_COLUMNS} columns, or {MAX_NAMES} names that there ever were")
        place = self._place(first=first, after=after)
        field = column_field(name, self._taken, avro, since=self.version, fill=fill, said=said)
        self.record["fields"].insert(place, field)
        self._note(name, field)
        self._added.add(name)
        older = "null" if fill is ABSENT or fill is None else said.get("default") or json.dumps(fill)
        self._did(f"column {shown(name)} added: {older} in older rows")

    def drop_all(self, names: Sequence[str]) -> None:
        """Drop columns, with the fields of their older types; no other field gets their names. Raises `SchemaError`."""
        gone: dict[str, dict[str, Any]] = {}
        for name in names:
            field = self.need(name)
            true = column_name(field)
            self._forget(true)
            gone |= {one["name"]: one for one in (field, *self._ended.pop(true, ()))}
            if true in self.key:
                # MySQL's key is of the columns that are left; elsewhere there is none.
                self._say("key", [one for one in self.key if one != true and self._is_folded])
            self._did(f"column {shown(true)} dropped")
        if gone:
            self.record["fields"] = [one for one in self.record["fields"] if one["name"] not in gone]
            old = [alias for one in gone.values() for alias in one.get("aliases", ())]
            self._say("gone", sorted({*self._said().get("gone", ()), *gone, *old}))

    def rename_all(self, pairs: Sequence[tuple[str, str]]) -> None:
        """Rename columns at once, so that two may change names: the old names become aliases. Raises `SchemaError`."""
        fields = [(self.need(old), new) for old, new in pairs]
        fields = [(field, new) for field, new in fields if column_name(field) != new]
        key = self.key
        for field, _ in fields:
            self._forget(column_name(field))
        names = {column_name(field): new for field, new in fields}
        ended = {old: self._ended.pop(old, []) for old in names}
        for field, new in fields:
            if self.find(new) is not None:
                raise SchemaError(self.label, f"there is a column {shown(new)} already")
            self._did(f"column {shown(column_name(field))} renamed to {shown(new)}")
            was, own = column_name(field), (*field.get("aliases", ()), field["name"])
            made = self._taken.give(new, own=own)
            field.update(name=made, aliases=[one for one in dict.fromkeys(own) if one != made])
            for one in (field, *ended[was]):
                one[ATTRIBUTE] = said_of(one) | {"column": new}
            self._note(new, field)
            if ended[was]:
                self._ended[new] = ended[was]
        if not names.keys().isdisjoint(key):
            self._say("key", [names.get(one, one) for one in key])

    def retype(self, name: str, avro: Any, said: dict[str, Any], *, fill: Any = ABSENT) -> bool:
        """Return a column another type. Tell whether a new field began, since the old values do not read as the new.

        `fill` is what older rows have of a column that nothing was written in yet and that they have a
        constant of. Raises `SchemaError`.
        """
        field = self.need(name)
        name, was, old = column_name(field), said_of(field), avro_of(field)
        kept = {key: value for key, value in was.items() if key not in ("type", "code", "note", "given")}
        if without_attributes(old) == without_attributes(avro):
            if (was.get("type"), was.get("note")) != (said.get("type"), said.get("note")):
                self._did(f"column {shown(name)} is {said.get('type')}, and was {was.get('type')}: held alike")
        elif was.get("since", 1) == self.version:
            is_filled, fill = field.get("default") is not None, None if fill is ABSENT else fill
            field.update(filled(field, avro, fill if is_filled else None))
            lost = "; what it is in older rows is not known" if is_filled and fill is None else ""
            self._did(f"column {shown(name)} is {avro_label(avro)}{lost}")
        elif is_promotion(old, avro) and (default := promoted(field.get("default"), old, avro)) is not ABSENT:
            self._did(f"column {shown(name)} reads {avro_label(old)} as {avro_label(avro)}{promotion_loss(old, avro)}")
            field.update(type=_replaced(field["type"], old, avro))
            if "default" in field:
                field.update(default=default)
        else:
            self._begin(field, avro, said)
            return True
        field[ATTRIBUTE] = kept | said
        return False

    def move(self, name: str, *, first: bool = False, after: str | None = None) -> None:
        """Move a column to the front or behind another. Raises `SchemaError`."""
        field = self.need(name)
        if after is not None and self.need(after) is field:
            raise SchemaError(self.label, f"column {shown(name)} cannot stand behind itself")
        if first or after is not None:
            self.record["fields"].remove(field)
            self.record["fields"].insert(self._place(first=first, after=after), field)
            self._did(f"column {shown(name)} moved")

    def arrange(self, names: Sequence[str]) -> None:
        """Put all columns in this order."""
        fields = self.record["fields"]
        written = {id(one) for one in self._written.values()}
        places = [i for i, one in enumerate(fields) if id(one) in written]
        old = [column_name(fields[i]) for i in places]
        for i, name in zip(places, names, strict=True):
            fields[i] = self._written[name]
        if [one for one in old if one not in self._added] != [one for one in names if one not in self._added]:
            self._did("the columns stand in another order")

    def set_default(self, name: str, default: str | None) -> None:
        """Note what new rows get; older rows keep what they had. Raises `SchemaError`."""
        field = self.need(name)
        said = {key: value for key, value in said_of(field).items() if key != "default"}
        field[ATTRIBUTE] = said if default is None else said | {"default": default}
        self._did(f"column {shown(name)} has {'no default' if default is None else f'the default {shown(default)}'}")

    def set_key(self, names: Sequence[str]) -> None:
        """Set the key columns, if they are others. Raises `SchemaError`."""
        key = [column_name(self.need(name)) for name in names]
        if key != self.key:
            self._say("key", key)
            self._did(f"the key is {', '.join(map(shown, key))}" if key else "there is no key")

    def rename_table(self, table: TableName) -> None:
        """Rename the table: the full name of its record becomes an alias."""
        old = f"{self.record.get('namespace', '')}.{self.record['name']}".lstrip(".")
        if is_own(self.record):
            new = f"{namespace_of(table)}.{self.record['name']}"
            self._say("table", table_name_parts(table))
        else:
            new = renamed(old, table)
        if new != old:
            aliases = [one for one in dict.fromkeys([*self._aliases(old), old]) if one != new]
            pin(self.record)
            self.record["namespace"], _, self.record["name"] = new.rpartition(".")
            self.record["aliases"] = aliases
        self._did(f"renamed to {shown(table.table)}")

    def finish(self) -> dict[str, Any]:
        """Return the record as the next version; the same if nothing was done."""
        self.record = settled(self.record, self._definitions)
        if self.steps:
            self._say("version", self.version)
        return self.record

    @property
    def label(self) -> str:
        """The table's name for sentences."""
        table = self._said().get("table")
        return str(table.get("table")) if isinstance(table, dict) else str(self.record["name"])

    @property
    def key(self) -> list[str]:
        """The true names of the key columns."""
        return list(self._said().get("key") or ())

    def _begin(self, field: dict[str, Any], avro: Any, said: dict[str, Any]) -> None:
        """Let a new field take over from one whose values do not read as the new type."""
        name, was = column_name(field), avro_label(avro_of(field))
        if len(self._taken) >= MAX_NAMES:
            raise SchemaError(self.label, f"more than {MAX_NAMES} names that there ever were")
        default = {key: value for key, value in said_of(field).items() if key == "default"}
        made = column_field(name, self._taken, avro, since=self.version, said=said | default)
        self.record["fields"].insert(self.record["fields"].index(field), made)
        field[ATTRIBUTE] = said_of(field) | {"column": name, "until": self.version - 1}
        branches = field["type"] if isinstance(field["type"], list) else [field["type"]]
        others = [one for one in branches if one != "null"]
        if field.get("default") is None:
            field.update(type=["null", *others], default=None)
        else:
            field.update(type=branches if "null" in branches else [*others, "null"])
        self._ended.setdefault(name, []).append(field)
        self._written[name] = made
        text = f"column {shown(name)} is {avro_label(avro)} from version {self.version} on, in the field {made['name']}"
        self._did(f"{text}; as {was} it does not read as that, and older rows keep it in {field['name']}")

    def _place(self, *, first: bool, after: str | None) -> int:
        """Return the place of a field that stands first, or behind another column's, or behind all columns'."""
        fields = self.record["fields"]
        if first:
            return 0
        if after is not None:
            return int(fields.index(self.need(after))) + 1
        place = len(fields)
        while place and not is_column(fields[place - 1]):
            place -= 1
        return place

    def _note(self, name: str, field: dict[str, Any]) -> None:
        self._written[name] = field
        self._spellings.setdefault(name.lower(), {})[name] = None

    def _forget(self, name: str) -> None:
        del self._written[name]
        del self._spellings[name.lower()][name]

    def _aliases(self, full: str) -> list[str]:
        """Return the record's aliases as full names."""
        space = full.rpartition(".")[0]
        return [one if "." in one or not space else f"{space}.{one}" for one in self.record.get("aliases", ())]

    def _said(self) -> dict[str, Any]:
        return said_of(self.record)

    def _say(self, key: str, value: Any) -> None:
        self.record[ATTRIBUTE] = self._said() | {key: value}

    def _did(self, sentence: str) -> None:
        self.steps.append(sentence)


def _replaced(declared: Any, old: Any, new: Any) -> Any:
    return [new if one == old else one for one in declared] if isinstance(declared, list) else new

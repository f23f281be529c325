"""Edits of a row's record, as statements ask for them: fields added, dropped, renamed, retyped, moved.

An edit works on the JSON value of the record and touches nothing else in it, so attributes,
`order`, `fixed` types and documentation that others put there survive.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from cdcavro.avro.resolution import resolve
from cdcavro.avro.schema import define_at_first_use, definitions, parse_schema, write_full_names
from cdcavro.errors import ResolutionError, SchemaError, shown
from cdcavro.exact.jsontext import ABSENT
from cdcavro.table.ddl.cursor import MAX_COLUMNS
from cdcavro.table.table_names import NameAllocator, namespace_of, rename_record, table_name_parts
from cdcavro.table.table_schema import (
    ATTRIBUTE,
    LOGICAL,
    OLDER,
    attributes_of,
    avro_label,
    avro_of,
    column_field,
    column_fields,
    column_name,
    field_with_type,
    is_column,
    is_primitive,
    states_true_names,
    without_attributes,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cdcavro.table.ddl.steps import TableName

    Field = dict[str, Any]

MAX_NAMES: Final = 20_000


class RowEdit:
    """The next version of a row's record, in the making.

    Made from the record's JSON value. Unless `is_new`, the edit changes the record's own version, with
    which nothing has been written yet. If `is_folded`, column names match regardless of case, as in MySQL.

    Fields:

    * `record` (dict), the JSON value so far, but for its fields, which `finish` puts in
    * `version` (int), the new version's number
    * `steps` (list of str), what was done, in sentences
    """

    def __init__(self, record: dict[str, Any], *, is_new: bool = True, is_folded: bool = True) -> None:
        # Whatever is in a field is replaced, never changed.
        self.record = record | {"fields": [dict(field) for field in record["fields"]]}
        self._order = FieldOrder(self.record["fields"])
        self._before = record  # its definitions are looked up by `finish` only, as an edit may be refused
        self.version = int(attributes_of(self.record).get("version", 1)) + is_new
        self.steps: list[str] = []
        self._is_folded = is_folded
        own = (name for field in self.record["fields"] for name in (field["name"], *field.get("aliases", ())))
        self._names = NameAllocator((*own, *self._attributes().get("gone", ())))
        self._added: set[str] = set()
        # By a column's true name: the field that is written, and the fields of its older types.
        self._newest: dict[str, dict[str, Any]] = {}
        self._older: dict[str, list[dict[str, Any]]] = {}
        # By a name in lower case, the true names that are spelled so.
        self._spellings: dict[str, dict[str, None]] = {}
        for field in column_fields(self.record):
            if "until" in attributes_of(field):
                self._older.setdefault(column_name(field), []).append(field)
            else:
                self._index(column_name(field), field)

    def find(self, name: str) -> dict[str, Any] | None:
        """Return the field of a column by its true name, or by another spelling's case if only one column matches."""
        field = self._newest.get(name)
        if field is None and self._is_folded:
            spellings = self._spellings.get(name.lower(), ())
            field = self._newest[next(iter(spellings))] if len(spellings) == 1 else None
        return field

    def need(self, name: str) -> dict[str, Any]:
        """Return the field of a column. Raises `SchemaError` if there is none."""
        field = self.find(name)
        if field is None:
            raise SchemaError(self.label, f"there is no column {shown(name)}")
        return field

    def add(
        self,
        name: str,
        avro: Any,
        attributes: dict[str, Any],
        *,
        fill: Any = ABSENT,
        first: bool = False,
        after: str | None = None,
    ) -> None:
        """Add a column; `fill` is its value in older rows. Raises `SchemaError` if the name exists already."""
        if self.find(name) is not None:
            raise SchemaError(self.label, f"there is a column {shown(name)} already")
        if len(self._newest) >= MAX_COLUMNS or len(self._names) >= MAX_NAMES:
            raise SchemaError(self.label, f"more than {MAX_COLUMNS} columns, or {MAX_NAMES} names that there ever were")
        behind = None if after is None else self.need(after)
        field = column_field(name, self._names, avro, since=self.version, fill=fill, attributes=attributes)
        self._order.put(field, first=first, after=behind)
        self._index(name, field)
        self._added.add(name)
        older = "null" if fill is ABSENT or fill is None else attributes.get("default") or json.dumps(fill)
        self._log(f"column {shown(name)} added: {older} in older rows")

    def drop_all(self, names: Sequence[str]) -> None:
        """Drop columns with the fields of their older types; the names are not used again. Raises `SchemaError`."""
        gone: dict[str, dict[str, Any]] = {}
        lost: set[str] = set()
        for name in names:
            field = self.need(name)
            true = column_name(field)
            self._forget(true)
            gone |= {dropped["name"]: dropped for dropped in (field, *self._older.pop(true, ()))}
            self._log(f"column {shown(true)} dropped")
            lost.add(true)
        if not lost.isdisjoint(self.key):
            # In MySQL the key keeps its other columns; elsewhere it is gone.
            self._set_attribute("key", [name for name in self.key if name not in lost and self._is_folded])
        for field in gone.values():
            self._order.remove(field)
        if gone:
            old = [alias for dropped in gone.values() for alias in dropped.get("aliases", ())]
            self._set_attribute("gone", sorted({*self._attributes().get("gone", ()), *gone, *old}))

    def rename_all(self, pairs: Sequence[tuple[str, str]]) -> None:
        """Rename columns all at once, so that two may swap names; old names become aliases. Raises `SchemaError`."""
        fields = [(self.need(old), new) for old, new in pairs]
        fields = [(field, new) for field, new in fields if column_name(field) != new]
        key = self.key
        for field, _ in fields:
            self._forget(column_name(field))
        names = {column_name(field): new for field, new in fields}
        ended = {old: self._older.pop(old, []) for old in names}
        for field, new in fields:
            if self.find(new) is not None:
                raise SchemaError(self.label, f"there is a column {shown(new)} already")
            self._log(f"column {shown(column_name(field))} renamed to {shown(new)}")
            old_name, names_before = column_name(field), (*field.get("aliases", ()), field["name"])
            allocated = self._names.give(new, own=names_before)
            field.update(name=allocated, aliases=[alias for alias in dict.fromkeys(names_before) if alias != allocated])
            for part in (field, *ended[old_name]):
                part[ATTRIBUTE] = attributes_of(part) | {"column": new}
            self._index(new, field)
            if ended[old_name]:
                self._older[new] = ended[old_name]
        if not names.keys().isdisjoint(key):
            self._set_attribute("key", [names.get(name, name) for name in key])

    def retype(self, name: str, avro: Any, attributes: dict[str, Any], *, fill: Any = ABSENT) -> bool:
        """Change a column's type; return whether a new field began because old values do not read as the new type.

        `fill` is the new constant in older rows, for a column that this version added with one. Raises `SchemaError`.
        """
        field = self.need(name)
        name, was, old = column_name(field), attributes_of(field), avro_of(field)
        kept = {key: value for key, value in was.items() if key not in ("type", "code", "note", "given")}
        if without_attributes(old) == without_attributes(avro):
            if (was.get("type"), was.get("note")) != (attributes.get("type"), attributes.get("note")):
                self._log(
                    f"column {shown(name)} is {attributes.get('type')}, and was {was.get('type')}: stored the same way"
                )
        elif was.get("since", 1) == self.version:
            is_filled, fill = field.get("default") is not None or OLDER in was, None if fill is ABSENT else fill
            field.update(field_with_type(field, avro, fill if is_filled else None))
            lost = "; what it is in older rows is not known" if is_filled and fill is None else ""
            self._log(f"column {shown(name)} is {avro_label(avro)}{lost}")
        elif is_promotion(old, avro) and (default := promote_default(field.get("default"), old, avro)) is not ABSENT:
            self._log(f"column {shown(name)} reads {avro_label(old)} as {avro_label(avro)}{promotion_loss(old, avro)}")
            field.update(type=_replace_branch(field["type"], old, avro))
            if "default" in field:
                field.update(default=default)
        else:
            self._begin_field(field, avro, attributes)
            return True
        field[ATTRIBUTE] = kept | attributes
        return False

    def move(self, name: str, *, first: bool = False, after: str | None = None) -> None:
        """Move a column to the front or after another one. Raises `SchemaError`."""
        field = self.need(name)
        if after is not None and self.need(after) is field:
            raise SchemaError(self.label, f"column {shown(name)} cannot be moved after itself")
        if first or after is not None:
            self._order.remove(field)
            self._order.put(field, first=first, after=None if after is None else self.need(after))
            self._log(f"column {shown(name)} moved")

    def arrange(self, names: Sequence[str]) -> None:
        """Put the columns in this order, which names all of them."""
        fields = self._order.fields()
        written = {id(field) for field in self._newest.values()}
        places = [i for i, field in enumerate(fields) if id(field) in written]
        old = [column_name(fields[i]) for i in places]
        for i, name in zip(places, names, strict=True):
            fields[i] = self._newest[name]
        self._order = FieldOrder(fields)
        if [name for name in old if name not in self._added] != [name for name in names if name not in self._added]:
            self._log("the order of the columns has changed")

    def set_default(self, name: str, default: str | None) -> None:
        """Record a column's default for new rows; older rows keep their values. Raises `SchemaError`."""
        field = self.need(name)
        attributes = {key: value for key, value in attributes_of(field).items() if key != "default"}
        field[ATTRIBUTE] = attributes if default is None else attributes | {"default": default}
        self._log(f"column {shown(name)} has {'no default' if default is None else f'the default {shown(default)}'}")

    def set_key(self, names: Sequence[str]) -> None:
        """Set the key columns, each once, unless they are the same. Raises `SchemaError`."""
        key = list(dict.fromkeys(column_name(self.need(name)) for name in names))
        if key != self.key:
            self._set_attribute("key", key)
            self._log(f"the key is {', '.join(map(shown, key))}" if key else "there is no key")

    def rename_table(self, table: TableName) -> None:
        """Rename the table; the old full name of its record becomes an alias."""
        old = f"{self.record.get('namespace', '')}.{self.record['name']}".lstrip(".")
        if states_true_names(self.record):
            new = f"{namespace_of(table)}.{self.record['name']}"
            self._set_attribute("table", table_name_parts(table))
        else:
            new = rename_record(old, table)
        if new != old:
            aliases = [alias for alias in dict.fromkeys([*self._aliases(old), old]) if alias != new]
            self._pin()
            self.record["namespace"], _, self.record["name"] = new.rpartition(".")
            self.record["aliases"] = aliases
        self._log(f"renamed to {shown(table.table)}")

    def finish(self) -> dict[str, Any]:
        """Return the record as the next version, or unchanged if nothing was done."""
        self.record = define_at_first_use(self.record | {"fields": self._order.fields()}, definitions(self._before))
        if self.steps:
            self._set_attribute("version", self.version)
        return self.record

    @property
    def label(self) -> str:
        """The table's name, for sentences."""
        return str(self._attributes()["table"].get("table") if states_true_names(self.record) else self.record["name"])

    @property
    def key(self) -> list[str]:
        """The true names of the key columns."""
        return list(self._attributes().get("key") or ())

    def _begin_field(self, field: dict[str, Any], avro: Any, attributes: dict[str, Any]) -> None:
        """Let a new field take over from a field whose values do not read as the new type."""
        name, was = column_name(field), avro_label(avro_of(field))
        if len(self._names) >= MAX_NAMES:
            raise SchemaError(self.label, f"more than {MAX_NAMES} names that there ever were")
        default = {key: value for key, value in attributes_of(field).items() if key == "default"}
        heir = column_field(name, self._names, avro, since=self.version, attributes=attributes | default)
        self._order.put_before(heir, field)
        field[ATTRIBUTE] = attributes_of(field) | {"column": name, "until": self.version - 1}
        branches = field["type"] if isinstance(field["type"], list) else [field["type"]]
        types = [branch for branch in branches if branch != "null"]
        if field.get("default") is None:
            field.update(type=["null", *types], default=None)
        else:
            field.update(type=branches if "null" in branches else [*types, "null"])
        self._older.setdefault(name, []).append(field)
        self._newest[name] = heir
        text = f"column {shown(name)} is {avro_label(avro)} from version {self.version} on, in the field {heir['name']}"
        self._log(f"{text}; as {was} it cannot be read as that, and older rows keep it in {field['name']}")

    def _pin(self) -> None:
        """Write out the full names of all types, so that the record's namespace may change."""
        fields = self._order.fields()
        self.record["fields"] = fields
        write_full_names(self.record)
        for field, pinned in zip(fields, self.record["fields"], strict=True):
            field.update(pinned)

    def _index(self, name: str, field: dict[str, Any]) -> None:
        self._newest[name] = field
        self._spellings.setdefault(name.lower(), {})[name] = None

    def _forget(self, name: str) -> None:
        del self._newest[name]
        del self._spellings[name.lower()][name]

    def _aliases(self, full: str) -> list[str]:
        """Return the record's aliases as full names."""
        space = full.rpartition(".")[0]
        return [alias if "." in alias or not space else f"{space}.{alias}" for alias in self.record.get("aliases", ())]

    def _attributes(self) -> dict[str, Any]:
        return attributes_of(self.record)

    def _set_attribute(self, key: str, value: Any) -> None:
        self.record[ATTRIBUTE] = self._attributes() | {key: value}

    def _log(self, sentence: str) -> None:
        self.steps.append(sentence)


def _replace_branch(declared: Any, old: Any, new: Any) -> Any:
    return [new if branch == old else branch for branch in declared] if isinstance(declared, list) else new


_LOSSES: Final = {
    ("int", "float"): ": values beyond 2^24 are rounded",
    ("long", "float"): ": values beyond 2^24 are rounded",
    ("long", "double"): ": values beyond 2^53 are rounded",
}


def is_promotion(old: Any, new: Any) -> bool:
    """Return whether values of one Avro type can be read as another with the same meaning.

    These are Avro's promotions, except where a logical type changes the meaning (the bytes of a decimal are not text),
    and from bytes to text: a single value that is no UTF-8 could not be read. A decimal can be read as one with more
    digits and the same scale.

    >>> is_promotion("int", "long"), is_promotion({"type": "int", "logicalType": "date"}, "long")
    (True, False)
    >>> is_promotion("string", "bytes"), is_promotion("bytes", "string")
    (True, False)
    """
    if not (is_primitive(old) and is_primitive(new)):
        return False
    logical = [avro.get(LOGICAL) if isinstance(avro, dict) else None for avro in (old, new)]
    if logical[0] != logical[1] or (without_attributes(old), without_attributes(new)) == ("bytes", "string"):
        return False
    try:
        resolve(parse_schema(json.dumps(old)).root, parse_schema(json.dumps(new)).root)
    except ResolutionError:
        return False
    return logical[0] in (None, "decimal")


def promote_default(default: Any, old: Any, new: Any) -> Any:
    """Return a default in a schema's JSON after promotion to a new type; `ABSENT` if the type cannot have it.

    In JSON, bytes are written as ISO-8859-1 characters, a string as itself.

    >>> promote_default("\u00e9", "string", "bytes") == "\u00c3\u00a9"
    True
    """
    pair = without_attributes(old), without_attributes(new)
    if not isinstance(default, str) or pair not in (("string", "bytes"), ("bytes", "string")):
        return default
    if pair[1] == "bytes":
        return default.encode().decode("iso-8859-1")
    try:
        return default.encode("iso-8859-1").decode()
    except UnicodeDecodeError:
        return ABSENT


def promotion_loss(old: Any, new: Any) -> str:
    """Return what a promotion loses, as the end of a sentence; empty for most promotions."""
    return _LOSSES.get((avro_label(old), avro_label(new)), "")


class FieldOrder:
    """Fields in their order, linked to each other. A field is known by its identity, since it changes in place.

    >>> a, b, c = ({"name": name, "type": "int"} for name in "abc")
    >>> order = FieldOrder([a, b])
    >>> order.put(c, after=a)
    >>> order.remove(b)
    >>> [field["name"] for field in order.fields()]
    ['a', 'c']
    """

    __slots__ = ("_after", "_before", "_fields")

    def __init__(self, fields: Iterable[Field]) -> None:
        # The place before the first field and behind the last one is 0.
        self._fields: dict[int, Field] = {}
        self._after = {0: 0}
        self._before = {0: 0}
        for field in fields:
            self._link(field, self._before[0])

    def fields(self) -> list[Field]:
        """Return the fields in their order."""
        listed, at = [], self._after[0]
        while at:
            listed.append(self._fields[at])
            at = self._after[at]
        return listed

    def put(self, field: Field, *, first: bool = False, after: Field | None = None) -> None:
        """Insert a field before all others, behind another one, or else behind the last one that is a column."""
        at = self._before[0] if after is None else id(after)
        while after is None and at and not is_column(self._fields[at]):
            at = self._before[at]
        self._link(field, 0 if first else at)

    def put_before(self, field: Field, other: Field) -> None:
        """Insert a field before another one."""
        self._link(field, self._before[id(other)])

    def remove(self, field: Field) -> None:
        """Take a field out."""
        at = id(field)
        before, after = self._before.pop(at), self._after.pop(at)
        self._after[before], self._before[after] = after, before
        del self._fields[at]

    def _link(self, field: Field, before: int) -> None:
        at, after = id(field), self._after[before]
        self._fields[at] = field
        self._before[at], self._after[at] = before, after
        self._after[before] = self._before[after] = at

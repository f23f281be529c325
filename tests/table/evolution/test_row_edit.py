"""Random statements over a table: what every old row shows under the last names is what a simple model says.

The model knows columns as numbered places of values. It knows nothing of Avro, aliases or names of
fields: only what a database does, and which types read as which.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdcavro.table.evolution.evolve import evolve
from cdcavro.table.evolution.row_edit import FieldOrder
from cdcavro.table.table_schema import MISSING_FIELD, UNPARSED_FIELD, TableSchema, from_schema
from support.typed import SOURCE, read_row, table, write

# What a type's values are in messages and as data, and what it is held as.
TYPES = {
    "int": (7, 7, "int"),
    "bigint": (2**40, 2**40, "long"),
    "float": (1.5, 1.5, "float"),
    "double": (2.25, 2.25, "double"),
    "varchar(20)": ("né", "né", "string"),
    "enum('x','y')": ("y", "y", "string"),
    "blob": ("bsOp", "né".encode(), "bytes"),
    "decimal(6,2)": ("1.25", Decimal("1.25"), "decimal 6 2"),
    "decimal(10,2)": ("-9.75", Decimal("-9.75"), "decimal 10 2"),
    "decimal(10,3)": ("0.125", Decimal("0.125"), "decimal 10 3"),
}
CONSTANTS = {
    "int": ("5", 5),
    "bigint": ("'6'", 6),
    "float": ("0.5", 0.5),
    "double": ("-2.5", -2.5),
    "varchar(20)": ("'it''s é'", "it's é"),
    "enum('x','y')": ("'x'", "x"),
    "blob": ("x'c3a9'", "é".encode()),
    "decimal(6,2)": ("1.5", Decimal("1.50")),
    "decimal(10,2)": ("'-3.00'", Decimal("-3.00")),
    "decimal(10,3)": ("7", Decimal("7.000")),
}
READS = {
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "string": ("bytes",),
    "decimal 6 2": ("decimal 10 2",),
}
NAMES = ("a", "b", "C", "string", "we ird", "a_x_2", "日本", "unparsed")


@dataclass
class Place:
    """Where the values of a column are, until its type became one that they do not read as."""

    number: int
    type: str
    since: int
    fill: Any = None
    until: int | None = None


@dataclass
class Model:
    """A table as a database has it: columns in order, each with its places, the last of which is written."""

    columns: list[tuple[str, list[Place]]]
    version: int = 1
    name: str = "t"
    count: int = 0
    rows: list[tuple[int, dict[int, Any]]] = field(default_factory=list)

    def index(self, name: str) -> int:
        """Return the place of a column."""
        return next(i for i, (own, _) in enumerate(self.columns) if own == name)

    def add(self, at: int, name: str, type: str, fill: Any) -> None:
        """Add a column, and what older rows have of it."""
        self.count += 1
        self.columns.insert(at, (name, [Place(self.count, type, self.version, fill)]))

    def drop(self, name: str) -> None:
        """Drop a column with all its places."""
        del self.columns[self.index(name)]

    def rename(self, names: dict[str, str]) -> None:
        """Rename columns at once."""
        self.columns = [(names.get(name, name), places) for name, places in self.columns]

    def retype(self, name: str, type: str) -> None:
        """Return a column another type: its values read as that, or it has a new place."""
        places = self.columns[self.index(name)][1]
        old, new = TYPES[places[-1].type][2], TYPES[type][2]
        if old == new or new in READS.get(old, ()):
            places[-1].type = type
            return
        places[-1].until = self.version - 1
        self.count += 1
        places.append(Place(self.count, type, self.version))

    def move(self, name: str, after: str | None) -> None:
        """Move a column."""
        column = self.columns.pop(self.index(name))
        self.columns.insert(0 if after is None else self.index(after) + 1, column)

    def write(self) -> dict[str, Any]:
        """Write a row: give it as it comes in a message."""
        places = {name: places[-1] for name, places in self.columns}
        self.rows.append((self.version, {one.number: TYPES[one.type][1] for one in places.values()}))
        return {name: TYPES[one.type][0] for name, one in places.items()}

    def shows(self, version: int, values: dict[int, Any]) -> dict[str, Any]:
        """Return what an old row shows under the names of now."""
        shown = {}
        for name, places in self.columns:
            for one in places:
                key = name if one.until is None else f"{name}<{one.until}"
                shown[key] = values.get(one.number, one.fill if version < one.since else None)
                shown[key] = _as(TYPES[one.type][2], shown[key])
        return shown


def _as(held: str, value: Any) -> Any:
    if held in ("float", "double") and value is not None:
        return float(value)
    if held == "bytes" and isinstance(value, str):
        return value.encode()
    return value


class Steps:
    """Makes statements that the table can take, and does to the model what they do to the table."""

    def __init__(self, draw: Any) -> None:
        self.draw = draw.draw
        self.model = Model([("id", [Place(0, "int", 1)])])
        self.model.add(1, "a", "int", None)

    def statement(self) -> str:
        """Return any statement."""
        self.model.version += 1
        return self.draw(st.sampled_from(self.KINDS))(self)

    def _column(self) -> str | None:
        names = [name for name, _ in self.model.columns if name != "id"]
        return self.draw(st.sampled_from(names)) if names else None

    def _new_name(self) -> str | None:
        taken = {name.lower() for name, _ in self.model.columns}
        free = [name for name in NAMES if name.lower() not in taken]
        return self.draw(st.sampled_from(free)) if free else None

    def _spelled(self, name: str) -> str:
        return f"`{self.draw(st.sampled_from([name, name.upper(), name.lower()]))}`"

    def _type(self) -> str:
        return self.draw(st.sampled_from(sorted(TYPES)))

    def _place(self, but: str | None = None) -> tuple[str, str | None]:
        others = [name for name, _ in self.model.columns if name != but]
        kind = self.draw(st.sampled_from(["", "FIRST", "AFTER"])) if others else ""
        if kind != "AFTER":
            return kind and " FIRST", None
        after = self.draw(st.sampled_from(others))
        return f" AFTER {self._spelled(after)}", after

    def _nothing(self) -> str:
        self.model.version -= 1
        return self.draw(
            st.sampled_from(
                ["CREATE INDEX i ON t (id)", "ALTER TABLE other DROP COLUMN id", "TRUNCATE t", "DROP TABLE t"]
            )
        )

    def _add_action(self, name: str) -> str:
        type, default = self._type(), self.draw(st.sampled_from(["", "constant", "null", "computed"]))
        text = {"": "", "null": " DEFAULT NULL", "computed": " DEFAULT (uuid())"}.get(default)
        place, after = self._place()
        at = len(self.model.columns) if not place else 0 if after is None else self.model.index(after) + 1
        self.model.add(at, name, type, CONSTANTS[type][1] if text is None else None)
        return f"ADD COLUMN `{name}` {type}{f' NOT NULL DEFAULT {CONSTANTS[type][0]}' if text is None else text}{place}"

    def add(self) -> str:
        """Add a column anywhere."""
        name = self._new_name()
        return self._nothing() if name is None else f"ALTER TABLE {self.model.name} {self._add_action(name)}"

    def drop(self) -> str:
        """Drop a column."""
        name = self._column()
        if name is None:
            return self._nothing()
        self.model.drop(name)
        return f"ALTER TABLE {self.model.name} DROP COLUMN {self._spelled(name)}"

    def drop_and_add(self) -> str:
        """Drop a column and add one of its name, said in any order."""
        name = self._column()
        if name is None:
            return self._nothing()
        drop = f"DROP COLUMN {self._spelled(name)}"
        self.model.drop(name)
        actions = [drop, self._add_action(name)]
        return f"ALTER TABLE {self.model.name} {', '.join(actions if self.draw(st.booleans()) else actions[::-1])}"

    def rename(self) -> str:
        """Rename a column."""
        old, new = self._column(), self._new_name()
        if old is None or new is None:
            return self._nothing()
        text = f"ALTER TABLE {self.model.name} RENAME COLUMN {self._spelled(old)} TO `{new}`"
        self.model.rename({old: new})
        return text

    def swap(self) -> str:
        """Let two columns change names."""
        one, other = self._column(), self._column()
        if one is None or one == other:
            return self._nothing()
        self.model.rename({one: other, other: one})
        return f"ALTER TABLE {self.model.name} RENAME COLUMN `{one}` TO `{other}`, RENAME COLUMN `{other}` TO `{one}`"

    def change(self) -> str:
        """Rename a column and give it a type."""
        old = self._column()
        new = old if old is None or self.draw(st.booleans()) else self._new_name()
        if old is None or new is None:
            return self._nothing()
        text = self._spelled(old)
        self.model.rename({old: new})
        return f"ALTER TABLE {self.model.name} CHANGE {text} `{new}` {self._retyped(new)}"

    def modify(self) -> str:
        """Return a column a type and a place."""
        name = self._column()
        return (
            self._nothing() if name is None else f"ALTER TABLE {self.model.name} MODIFY `{name}` {self._retyped(name)}"
        )

    def _retyped(self, name: str) -> str:
        type = self._type()
        place, after = self._place(name)
        self.model.retype(name, type)
        if place:
            self.model.move(name, after)
        return type + place

    def set_default(self) -> str:
        """Set what new rows get."""
        name = self._column()
        if name is None:
            return self._nothing()
        type = self.model.columns[self.model.index(name)][1][-1].type
        return f"ALTER TABLE {self.model.name} ALTER COLUMN {self._spelled(name)} SET DEFAULT {CONSTANTS[type][0]}"

    def rename_table(self) -> str:
        """Rename the table, and perhaps others."""
        old = self.model.name
        self.model.name = self.draw(st.sampled_from([one for one in ("t", "t2", "`we ird`") if one != old]))
        other = self.draw(st.sampled_from(["", "other TO another, "]))
        return f"RENAME TABLE {other}{old} TO {self.model.name}"

    KINDS = (
        add,
        add,
        drop,
        drop_and_add,
        rename,
        rename,
        swap,
        change,
        modify,
        modify,
        set_default,
        rename_table,
        _nothing,
    )


def evolved(form: str, schema: TableSchema, statement: str) -> tuple[TableSchema, tuple[str, ...]]:
    """Return the next version, by way of the table, of its row's schema, or of its envelope's."""
    if form == "table":
        found = evolve(schema, statement, source=SOURCE)
        return found.schema, found.steps
    found = evolve(schema.row if form == "row" else schema.envelope, statement, source=SOURCE)
    return from_schema(found.schema), found.steps


@settings(max_examples=2 * settings.default.max_examples)
@given(st.data(), st.sampled_from(["table", "row", "envelope"]), st.integers(1, 12))
@pytest.mark.slow
def test_every_old_row_shows_under_the_last_names_what_a_database_would_show(data, form, count):
    """Whatever happened to its columns, a row reads as what it is, in every version's payload."""
    steps = Steps(data)
    model, schema = steps.model, table("id|int", "a|int", key=("id",))
    payloads = [(schema, write(schema, model.write()))]
    for _ in range(count):
        before = schema
        statement = steps.statement().replace("DROP TABLE t", "DROP TABLE other")
        schema, done = evolved(form, schema, statement)
        model.version = schema.version
        assert (schema.row.json == before.row.json) == (done == ())
        payloads.append((schema, write(schema, model.write())))
    assert [one.name for one in schema.columns] == [name for name, _ in model.columns]
    for (writer, payload), (version, values) in zip(payloads, model.rows, strict=True):
        assert read_row(payload, writer, schema) == model.shows(version, values)


def _int_field(name):
    return {"name": f"c{name}", "type": "int"}


def _place(listed):
    """Return the index behind the last column."""
    place = len(listed)
    while place and listed[place - 1]["name"] in ("unparsed", "absent"):
        place -= 1
    return place


@given(st.integers(0, 4), st.lists(st.tuples(st.sampled_from("flabr"), st.integers(0, 99)), max_size=30))
def test_fields_stand_where_a_list_has_them(count, edits):
    """First, last of the columns, behind and before others, and taken out, in any sequence."""
    listed = [*map(_int_field, range(count)), UNPARSED_FIELD, MISSING_FIELD]
    order = FieldOrder(listed)
    for number, (edit, at) in enumerate(edits):
        new, columns = _int_field(100 + number), listed[: _place(listed)]
        known = columns[at % len(columns)] if columns else None
        if edit == "f":
            order.put(new, first=True)
            listed.insert(0, new)
        elif edit == "l" or known is None:
            order.put(new)
            listed.insert(_place(listed), new)
        elif edit == "a":
            order.put(new, after=known)
            listed.insert(listed.index(known) + 1, new)
        elif edit == "b":
            order.put_before(new, known)
            listed.insert(listed.index(known), new)
        else:
            order.remove(known)
            listed.remove(known)
        assert order.fields() == listed


@pytest.mark.slow
def test_a_field_among_many_is_found_at_once():
    """To go through all of them for each would take hours."""
    fields = list(map(_int_field, range(100_000)))
    order = FieldOrder(fields)
    for last in reversed(fields):
        order.remove(last)
        order.put(last, after=fields[0] if last is not fields[0] else None)
    assert len(order.fields()) == 100_000

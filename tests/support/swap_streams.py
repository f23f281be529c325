"""Streams of a table that tools change in a copy and swap, as gh-ost and pt-online-schema-change do, and its rows in the end."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

from support.messages import canal

# What a tool calls the copy of `orders`, and the table when the copy has taken its place.
TOOLS = {"gh-ost": ("_orders_gho", "_orders_del"), "pt-osc": ("_orders_new", "_orders_old"), "own": ("swap", "swapped")}
# The tools whose copies are told by their names.
NAMED = ("gh-ost", "pt-osc")
FORMATS = ("canal", "maxwell", "debezium")
# What the names of columns begin with that text is in.
_TEXT = "t"

Row = dict[str, Any]


def _canal(kind: str, table: str, number: int, columns: dict[str, str], before: Row | None, after: Row | None) -> bytes:
    row = {name: None if value is None else str(value) for name, value in (after or before or {}).items()}
    old = [{name: None if value is None else str(value) for name, value in before.items()}] if after and before else ()
    return canal(kind, [row], id=number, table=table, old=old, mysqlType=columns)


def _maxwell(kind: str, table: str, number: int, _: dict[str, str], before: Row | None, after: Row | None) -> bytes:
    said = {"database": "d", "table": table, "type": kind.lower(), "ts": 1_700_000_000 + number, "xid": number}
    old = {"old": before} if after and before else {}
    row = {"position": f"b.000001:{number}", "primary_key_columns": ["id"], "data": after or before, **old}
    return json.dumps(said | row).encode()


def _debezium(kind: str, table: str, number: int, _: dict[str, str], before: Row | None, after: Row | None) -> bytes:
    return json.dumps(
        {"before": before, "after": after, "op": kind[0].lower().replace("i", "c"), **_source(table, number)}
    ).encode()


def _source(table: str, number: int) -> dict[str, Any]:
    source = {"connector": "mysql", "db": "d", "table": table, "file": "b.000001", "pos": number, "row": 0}
    return {"source": source | {"ts_ms": 1_700_000_000_000 + number * 1000, "snapshot": "false"}, "ts_ms": 1}


def _statements(format: str, number: int, sql: str, tables: list[str]) -> list[bytes]:
    """Return the messages of a statement: Maxwell sends one for each of its tables."""
    if format == "canal":
        kind = {"CREATE": "CREATE", "DROP": "ERASE", "RENAME": "RENAME"}.get(sql.split(" ", maxsplit=1)[0], "ALTER")
        return [canal(kind, [], id=number, table=tables[0], isDdl=True, sql=sql)]
    if format == "debezium":
        return [
            json.dumps({**_source(tables[0], number), "databaseName": "d", "ddl": sql, "tableChanges": []}).encode()
        ]
    said = {"type": "table-alter", "database": "d", "ts": (1_700_000_000 + number) * 1000, "sql": sql}
    return [json.dumps(said | {"table": one, "position": f"b.000001:{number}"}).encode() for one in tables]


_ROWS: dict[str, Callable[..., bytes]] = {"canal": _canal, "maxwell": _maxwell, "debezium": _debezium}


class SwapStream:
    """The messages of a table `orders` that a tool alters in copies, drawn at random, and what it holds in the end.

    Fields:

    * `messages` (list of bytes)
    * `rows` (dict from a key to a row), the rows of `orders` so far
    """

    def __init__(self, seed: int, format: str, tool: str) -> None:
        self._draw, self._format, (self._copy, self._old) = random.Random(seed), format, TOOLS[tool]
        self.messages: list[bytes] = []
        self.rows: dict[int, Row] = {}
        self._columns = {"id": "int", "n1": "int", "t1": "varchar(20)"}
        # The columns of the copy, how a row of the table becomes one of it, and its rows; None without a copy.
        self._new: dict[str, str] | None = None
        self._convert: Callable[[Row], Row] = dict
        self._copied: set[int] = set()
        self._number = self._next = self._named = 1
        self._ddl("CREATE TABLE d.orders (id INT NOT NULL PRIMARY KEY, n1 INT, t1 VARCHAR(20))", "orders")
        self._changes(self._draw.randrange(1, 9))
        for _ in range(self._draw.randrange(1, 4)):
            self._migrate()
            self._changes(self._draw.randrange(9))

    @property
    def columns(self) -> list[str]:
        """The columns of the table in the end."""
        return [*self._columns]

    @property
    def held(self) -> list[tuple[Any, ...]]:
        """The rows of the table in the end, sorted."""
        return sorted((tuple(row[name] for name in self._columns) for row in self.rows.values()), key=repr)

    def _ddl(self, sql: str, *tables: str) -> None:
        self._number += 1
        self.messages += _statements(self._format, self._number, sql, [*tables])

    def _say(self, kind: str, table: str, before: Row | None, after: Row | None) -> None:
        self._number += 1
        columns = self._columns if table == "orders" else self._new or {}
        self.messages.append(_ROWS[self._format](kind, table, self._number, columns, before, after))

    def _changes(self, count: int) -> None:
        """Change rows of the table, and those of its copy with them, if there is one."""
        for _ in range(count):
            kind = self._draw.choice(("INSERT", "INSERT", "UPDATE", "DELETE")) if self.rows else "INSERT"
            key = self._draw.choice([*self.rows]) if kind != "INSERT" else self._next
            self._next += kind == "INSERT"
            before = self.rows.pop(key, None)
            after = None if kind == "DELETE" else {name: self._value(name, key) for name in self._columns}
            self._say(kind, "orders", before, after)
            if after is not None:
                self.rows[key] = after
            if self._new is not None and (kind == "INSERT" or key in self._copied):
                self._say(kind, self._copy, before and self._convert(before), after and self._convert(after))
                self._copied = self._copied - {key} if after is None else self._copied | {key}

    def _value(self, name: str, key: int) -> Any:
        if name == "id":
            return key
        number = self._draw.choice((None, self._number))
        return f"x{number}" if number and name[0] == _TEXT else number

    def _migrate(self) -> None:
        """Make a copy, alter it, fill it while rows change, swap it, and drop the old one."""
        full = ", ".join(f"{name} {type}{' NOT NULL' * (name == 'id')}" for name, type in self._columns.items())
        how = "LIKE d.orders" if self._copy == "_orders_gho" else f"({full}, PRIMARY KEY (id))"
        self._ddl(f"CREATE TABLE `d`.`{self._copy}` {how}", self._copy)
        self._alter()
        left = list(self.rows)
        while left:
            for key in left[: self._draw.randrange(1, 4)]:
                if key in self.rows and key not in self._copied:
                    self._say("INSERT", self._copy, None, self._convert(self.rows[key]))
                    self._copied.add(key)
                left.remove(key)
            self._changes(self._draw.randrange(3))
        pairs = [("`d`.`orders`", f"`d`.`{self._old}`"), (f"`d`.`{self._copy}`", "`d`.`orders`")]
        old, copy = (f"RENAME TABLE {before} TO {after}" for before, after in pairs)
        altered = [f"ALTER TABLE {before} RENAME TO {after}" for before, after in pairs]
        forms = (old + copy.replace("RENAME TABLE", ","), f"{old}; {altered[1]}", "; ".join(altered))
        self._ddl(self._draw.choice(forms), "orders", self._copy)
        assert self._new is not None
        self._columns, self.rows = self._new, {key: self._convert(row) for key, row in self.rows.items()}
        self._new, self._copied = None, set()
        self._changes(self._draw.randrange(3))
        self._ddl(f"DROP TABLE IF EXISTS `d`.`{self._old}`", self._old)

    def _alter(self) -> None:
        """Alter the copy: a column is added, renamed, widened or dropped."""
        self._named += 1
        new, last = f"{self._draw.choice('nt')}{self._named}", [*self._columns][-1]
        kind = self._draw.choice(("add", "add", "rename", "widen", "drop"))
        self._new = dict(self._columns)
        if kind == "drop" and len(self._columns) > 2:
            del self._new[last]
            what, self._convert = f"DROP COLUMN {last}", lambda row: {one: row[one] for one in row if one != last}
        elif kind == "rename":
            new = f"{last[0]}{self._named}"
            self._new = {new if one == last else one: type for one, type in self._columns.items()}
            what = f"CHANGE COLUMN {last} {new} {self._columns[last]}"
            self._convert = lambda row: {new if one == last else one: value for one, value in row.items()}
        elif kind == "widen":
            self._new[last] = "varchar(40)" if last[0] == _TEXT else "bigint"
            what, self._convert = f"MODIFY COLUMN {last} {self._new[last]}", dict
        else:
            self._new[new], default = "varchar(20)" if new[0] == _TEXT else "int", self._draw.choice((None, 7))
            filled = default and (f"d{default}" if new[0] == _TEXT else default)
            what = f"ADD COLUMN {new} {self._new[new]}" + (f" DEFAULT {filled!r}" if filled else "")
            self._convert = lambda row: {**row, new: filled}
        self._ddl(f"ALTER TABLE `d`.`{self._copy}` {what}", self._copy)

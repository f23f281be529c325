"""Streams of Canal's messages with statements in their middle: tables that change, in several lanes, sent again."""

from __future__ import annotations

import random
from typing import Any

from support.messages import canal

SHARES = {"add": 0.6, "drop": 0.7, "modify": 0.76, "rename": 0.82, "index": 0.86, "truncate": 0.9, "move": 0.94}


class Changes:
    """The changes of a database as messages, drawn at random."""

    def __init__(self, draw: random.Random) -> None:
        self._draw, self._id, self._second = draw, 0, 1_700_000_000
        self._columns: dict[str, dict[str, str]] = {}
        self._keys: dict[str, list[int]] = {}
        self._keyless: set[str] = set()

    @property
    def tables(self) -> list[str]:
        """The names of the tables."""
        return list(self._columns)

    def begin(self, table: str) -> None:
        """Create a table, of which no message says so."""
        self._columns[table] = {"id": "int", "a": "varchar(10)", **({"x": "int"} if self._draw.random() < 0.5 else {})}
        self._keys[table] = []
        self._keyless |= {table} if self._draw.random() < 0.1 else set()

    def _message(self, type: str, table: str, rows: list[dict[str, str]], **members: Any) -> bytes:
        self._id += 1
        self._second += self._draw.random() < 0.3
        # A statement may have waited for another one.
        late = self._draw.choice((0, 1, 3)) if self._draw.random() < 0.1 else 0
        return canal(type, rows, id=self._id, table=table, es=(self._second - late) * 1000, **members)

    def row(self, table: str) -> bytes:
        """Return a change of a row; some updates move a key, some state a part of the row."""
        draw, keys, columns = self._draw, self._keys[table], self._columns[table]
        kind = draw.random() if keys else 0
        key = self._id + 1 if kind < 0.5 else draw.choice(keys)
        row = {name: str(key) if name == "id" else draw.choice(("1", "22", "7")) for name in columns}
        stated: dict[str, Any] = {"mysqlType": columns, "pkNames": None if table in self._keyless else ["id"]}
        if kind < 0.5:
            keys.append(key)
            return self._message("INSERT", table, [row], **stated)
        if kind < 0.6:
            keys.remove(key)
            return self._message("DELETE", table, [row], **stated)
        if kind < 0.66:
            keys[keys.index(key)] = self._id + 1
            return self._message("UPDATE", table, [{**row, "id": str(self._id + 1)}], old=[{"id": str(key)}], **stated)
        if kind < 0.7 and len(columns) > 2:
            left_out = draw.choice([name for name in columns if name != "id"])
            del row[left_out]
            stated["mysqlType"] = {name: columns[name] for name in row}
        return self._message("UPDATE", table, [row], old=[dict.fromkeys([*row][1:2], "0")], **stated)

    def statement(self, *, is_added: bool) -> tuple[str, bytes]:
        """Return a table and a statement about it; with `is_added`, it adds a column."""
        table = self._draw.choice(self.tables)
        columns, kind = self._columns[table], 0.0 if is_added else self._draw.random()
        new = next(name for name in map("c{}".format, range(99)) if name not in columns)
        name = [*columns][-1]
        what = next((one for one, until in SHARES.items() if kind < until), "drop table")
        if what in ("drop", "modify", "rename") and len(columns) < 3:
            what = "add"
        sql = f"ALTER TABLE {table} "
        if what == "add":
            declared, after = self._draw.choice(("int", "varchar(20)")), self._draw.choice(("", " FIRST", " AFTER id"))
            items = [*columns.items()]
            items.insert({"": len(items), " FIRST": 0, " AFTER id": [*columns].index("id") + 1}[after], (new, declared))
            self._columns[table], sql = dict(items), f"{sql}ADD COLUMN {new} {declared}{after}"
        elif what == "drop":
            self._columns[table], sql = (
                {one: columns[one] for one in columns if one != name},
                f"{sql}DROP COLUMN {name}",
            )
        elif what == "modify":
            self._columns[table], sql = {**columns, name: "varchar(40)"}, f"{sql}MODIFY {name} varchar(40)"
        elif what == "rename":
            self._columns[table] = {new if one == name else one: columns[one] for one in columns}
            sql = f"{sql}RENAME COLUMN {name} TO {new}"
        elif what == "move":
            moved = f"r{self._id}"
            self._columns[moved], self._keys[moved] = self._columns.pop(table), self._keys.pop(table)
            self._keyless |= {moved} if table in self._keyless else set()
            sql = f"RENAME TABLE {table} TO {moved}"
        elif what == "index":
            sql = f"CREATE INDEX i{self._id} ON {table} (id)"
        else:
            self._keys[table] = []
            sql = f"TRUNCATE TABLE {table}" if what == "truncate" else f"DROP TABLE {table}"
        return table, self._message("ALTER", table, [], isDdl=True, sql=sql)


def lanes_of(seed: int) -> list[list[bytes]]:
    """Return the messages of some lanes, each in its order."""
    draw = random.Random(seed)
    made, is_added, count = Changes(draw), draw.random() < 0.6, draw.choice((20, 60, 400, 900))
    for table in "tuvw"[: draw.randrange(1, 5)]:
        made.begin(table)
    lanes: list[list[bytes]] = [[] for _ in range(draw.randrange(1, 4))]
    is_by_table, statements = draw.random() < 0.6, draw.sample(range(count), draw.randrange(4))
    for i in range(count):
        table = draw.choice(made.tables)
        table, message = made.statement(is_added=is_added) if i in statements else (table, made.row(table))
        lane = lanes[ord(table[0]) % len(lanes) if is_by_table else draw.randrange(len(lanes))]
        lane.append(b"no message" if draw.random() < 0.003 else message)
        if draw.random() < 0.01:
            lane.append(draw.choice(lane))
    return lanes

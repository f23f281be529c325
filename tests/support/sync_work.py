"""Messages for pipelines that are killed, and what there must be of them in the end, counted along in plain Python."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

from support.messages import canal


class Work:
    """Makes messages of Canal's about two tables with a key and one without, which change, and some that are none.

    Attributes: `log` (dict from a table to a counter of operation, id and n), its changelog; `rejects` (list of bytes);
    `counts` (counter), the messages by what becomes of them; `wide` (set of str), the tables with a column `b`;
    `misfits` (dict from bytes to int), those among the rejects that are a row with this id once misfits are kept.
    """

    tables = ("a", "t", "z")
    keyless = "z"
    # The table whose rows may be misfits; it is never truncated.
    misfitting = "a"

    def __init__(self, database: str, draw: random.Random, *, has_misfits: bool = False) -> None:
        self.database, self.draw, self.has_misfits = database, draw, has_misfits
        self.log: dict[str, Counter[tuple[str, int | None, int | None]]] = {name: Counter() for name in self.tables}
        self.rejects: list[bytes] = []
        self.counts: Counter[str] = Counter()
        self.wide: set[str] = set()
        self.misfits: dict[bytes, int] = {}
        self._rows: dict[str, dict[int, int | None]] = {name: {} for name in self.tables}
        self._b: dict[tuple[str, int], int] = {}
        self._number = self._batch = 0

    def current(self, table: str) -> list[tuple[int | None, ...]]:
        """Return the rows that there are."""
        if table not in self.wide:
            return list(self._rows[table].items())
        return [(id, n, None if n is None else self._b.get((table, n))) for id, n in self._rows[table].items()]

    def messages(self, count: int = 12) -> list[bytes]:
        """Return the messages of the next file."""
        self._batch += 1
        made = [self._change(table) for table in self.tables for _ in range(2)]
        made += [self._change(self.draw.choice(self.tables)) for _ in range(count - len(made))]
        made.append(self._reject())
        if self.has_misfits:
            made.append(self._misfit())
        if self._batch % 3 == 2:
            made.append(self._truncate("t"))
        if self._batch % 4 == 3 and len(self.wide) < 2:
            made.append(self._widen(min({"a", "t"} - self.wide)))
            made += [self._change(table) for table in self.tables]
        return made

    def _change(self, table: str) -> bytes:
        rows, self._number = self._rows[table], self._number + 1
        n, id = self._number, self.draw.randrange(1, 8)
        self._b[table, n] = n * 2 if table in self.wide else -1
        if table not in self.wide:
            del self._b[table, n]
        if table == self.keyless or id not in rows:
            rows[id] = n
            return self._row(table, "INSERT", [("c", id, n)], {"id": id, "n": n})
        was = rows.pop(id)
        kind = self.draw.choice(["UPDATE", "UPDATE", "DELETE", "moved"])
        if kind == "DELETE":
            return self._row(table, "DELETE", [("d", id, was)], {"id": id, "n": was})
        if kind == "moved" and (new := self.draw.randrange(8, 1_000)) not in rows:
            rows[new] = n
            old = {"id": str(id), "n": str(was)}
            return self._row(table, "UPDATE", [("d", id, was), ("c", new, n)], {"id": new, "n": n}, old)
        rows[id] = n
        return self._row(table, "UPDATE", [("b", id, was), ("u", id, n)], {"id": id, "n": n}, {"n": str(was)})

    def _row(
        self,
        table: str,
        type: str,
        logged: list[tuple[str, int, int]],
        row: dict[str, int],
        old: dict[str, str] | None = None,
    ) -> bytes:
        self.log[table].update(logged)
        self._count("written")
        b = {"b": self._b.get((table, row["n"]))} if table in self.wide else {}
        shown: dict[str, Any] = {name: None if value is None else str(value) for name, value in {**row, **b}.items()}
        if old is not None and b:
            old = {**old, "b": self._text(table, int(old["n"]))}
        keys = {"pkNames": None} if table == self.keyless else {}
        return self._canal(table, type, [shown], old=[old] if old else [], **keys)

    def _text(self, table: str, n: int) -> Any:
        value = self._b.get((table, n))
        return None if value is None else str(value)

    def _reject(self) -> bytes:
        self._number += 1
        self._count("rejected")
        self.rejects.append(b"\xff no message %d" % self._number)
        return self.rejects[-1]

    def replayed(self, messages: Sequence[bytes]) -> None:
        """Count along that rejects are read again, misfits being kept."""
        for message in messages:
            id = self.misfits.pop(message, None)
            self._count("rejected" if id is None else "written")
            if id is not None:
                self.rejects.remove(message)
                self._rows[self.misfitting][id] = None
                self.log[self.misfitting]["c", id, None] += 1

    def _misfit(self) -> bytes:
        id = 1_000_000 + self._number
        self._count("rejected")
        row = {"id": str(id), "n": "x", **({"b": None} if self.misfitting in self.wide else {})}
        message = self._canal(self.misfitting, "INSERT", [row])
        self.rejects.append(message)
        self.misfits[message] = id
        return message

    def _truncate(self, table: str) -> bytes:
        self._rows[table].clear()
        self.log[table]["t", None, None] += 1
        return self._statement(table, "TRUNCATE", f"TRUNCATE TABLE {table}")

    def _widen(self, table: str) -> bytes:
        self.wide.add(table)
        return self._statement(table, "ALTER", f"ALTER TABLE {table} ADD COLUMN b INT")

    def _statement(self, table: str, type: str, sql: str) -> bytes:
        self._count("statements")
        return self._canal(table, type, [], isDdl=True, sql=sql)

    def _canal(self, table: str, type: str, rows: list[dict[str, Any]], **members: Any) -> bytes:
        self._number += 1
        return canal(type, rows, id=self._number, database=self.database, table=table, **members)

    def _count(self, kind: str) -> None:
        self.counts.update(["read", kind])

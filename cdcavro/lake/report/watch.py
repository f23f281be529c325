"""Which versions of tables a batch brought, and what led to each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdcavro.change.model import DDL
from cdcavro.lake.report.account import Version
from cdcavro.table.beginnings import time_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cdcavro.change.model import Change
    from cdcavro.table.ddl.steps import TableName
    from cdcavro.table.history import Table
    from cdcavro.table.tables import Tables


class VersionWatch:
    """Tells which versions of tables are new; `tables` (list of `Table`) are those so far, `edits` how often they were edited."""

    def __init__(self, tables: Sequence[Table] = (), edits: int = 0) -> None:
        self._edits = edits
        self._known = {table.number: list(table.steps) for table in tables}

    def new(
        self,
        tables: Tables,
        learned: Sequence[Change],
        batch: int,
        now: float,
        label: Callable[[Table], str],
        is_wanted: Callable[[TableName], bool],
    ) -> list[Version]:
        """Return the versions of wanted tables that came since the last call; `learned` is what led to them."""
        if tables.edits == self._edits:
            return []
        self._edits = tables.edits
        makers = {time_of(change): change for change in learned}
        found: list[Version] = []
        for table in tables.tables:
            known = self._known.get(table.number, [])
            if known == table.steps or not is_wanted(table.schema.table):
                continue
            self._known[table.number] = list(table.steps)
            for i, (schema, steps) in enumerate(zip(table.versions, table.steps, strict=True)):
                if i < len(known) and known[i] == steps:
                    continue
                maker = makers.get(table.starts[i])
                since = None if maker is None or maker.event_time is None else maker.event_time / 1e6
                statement = "" if maker is None or maker.op not in DDL else maker.ddl or ""
                own = label(table), table.number, schema.version, batch, now, since, list(steps), statement
                found.append(Version(*own))
        return found

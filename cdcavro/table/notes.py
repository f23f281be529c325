"""Notes on tables: what whoever uses them should know about their keys and columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cdcavro.errors import plain

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cdcavro.table.history import Table

_SHOWN: Final = 20
_NO_KEY: Final = (
    "no primary key is known, so payloads have no key and a merge cannot tell rows apart:"
    " neither a message nor a statement nor a Kafka record's key with the row's values names one"
)


def notes_of(tables: Iterable[Table]) -> list[str]:
    """Return sentences about tables: on those without a key, on types that are not as declared, and on statements."""
    known = list(tables)
    keyless = [plain(table.schema.table.table) for table in known if table.schema.key is None]
    more = f" and {len(keyless) - _SHOWN:,} more" if len(keyless) > _SHOWN else ""
    keys = [f"{', '.join(keyless[:_SHOWN])}{more}: {_NO_KEY}"] if keyless else []
    findings = [f"{plain(table.schema.table.table)}: {finding}" for table in known for finding in table.findings]
    types = [
        f"{plain(table.schema.table.table)}: {plain(column.name)}: {column.note}"
        for table in known
        for column in table.schema.columns
        if column.note is not None
    ]
    return keys + types + findings

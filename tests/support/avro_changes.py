"""Changes of tables in Avro files, as fastavro reads them."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import fastavro

from cdcavro.lake.escaped_names import folder_names
from cdcavro.table.table_names import parse_table_name

Change = tuple[str, int | None, int | None]


def changes_in(folder: Path, table: str) -> list[dict[str, Any]]:
    """Return the changes of a table in Avro files, those of its batches one behind another."""
    found = folder.joinpath(*folder_names(parse_table_name(table))).rglob("*.avro")
    return [change for path in sorted(found) for change in fastavro.reader(io.BytesIO(path.read_bytes()))]


def listed(changes: Iterable[dict[str, Any]]) -> Iterator[Change]:
    """Yield changes as a changelog has them: the row before an update is one of its own."""
    for one in changes:
        before, after = one["before"], one["after"]
        if one["op"] == "u" and before is not None:
            yield "b", before["id"], before["n"]
        image = after or before or {"id": None, "n": None}
        yield one["op"], image["id"], image["n"]

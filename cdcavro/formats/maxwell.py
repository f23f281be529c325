"""Messages of Maxwell's daemon (`avsc/maxwell.avsc`).

Source: Maxwell's daemon, "Data format", "Bootstrapping" and "Encryption", and the classes `RowMap` and `DDLMap`.

* A message is one row. `data` is the row after the change, for a delete the row before it; `old` has the changed
  columns as they were before, and may have some that `data` has not.
* Where Maxwell leaves out nulls (`output_nulls=false`), `old` lacks columns that were NULL before: the row before the
  change then has the newer value there, as no message says so. If nothing is left of `old`, there is no row before.
  What `data` lacks is not stated, and not null, unless tables are told so (`absent`).
* `ts` is seconds, but milliseconds for a statement, whose `old` and `def` are the table before and after it.
* The types in `def` have neither length nor digits nor precision, so tables are made of the text in `sql`. A statement
  about several tables comes once for each, with the same text, and is done once.
* A row of a bootstrap was read in mid-stream; the marks around a bootstrap are no changes, and have an empty row.
* `xid` is no order. `position` is one, but rows of a statement share it: within a partition arrival orders them, across
  partitions `xoffset`, which the last row of a transaction lacks. Without a position `ts` compares partitions.
* A row that is encrypted has no change; without Maxwell's key nothing else can be said of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cdcavro.errors import StructureError
from cdcavro.formats.bridge import Bridge, schema_bridge

if TYPE_CHECKING:
    from datetime import tzinfo

    from cdcavro.change.model import Change

FORMAT: Final = "maxwell"
_PLAIN: Final = schema_bridge(FORMAT)


def to_changes(record: dict[str, Any], zone: tzinfo | None = None) -> list[Change]:
    """Return the change of a message. Raises `StructureError` for a row that is encrypted."""
    if record.get("encrypted") is not None:
        raise StructureError("a row that can be read", "one that Maxwell has encrypted", pointer="/encrypted")
    return _PLAIN.to_changes(record, zone)


BRIDGE: Final = Bridge(to_changes=to_changes, from_changes=_PLAIN.from_changes)

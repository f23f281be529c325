"""Messages of Oracle GoldenGate's JSON formatter, row model (`avsc/goldengate_row.avsc`).

Source: Oracle GoldenGate for Big Data, "Using the Pluggable Formatters": row modelled JSON (`json_row`).

* Columns are members of the message, beside the meta columns. They are the row after an insert or update, and the row
  before a delete; nothing is said of the row before an update.
* An update of the key is sent as `pkUpdateHandling` says: as a delete and an insert, or as an update that does not name
  the former key, whose row stays.
* A member that is called like a meta column is one; a meta column that has another name is a column.
* A message of the operation model, which has a row in an object, has no change here. A truncate has no columns and is
  the same in both models, and so it is told as `goldengate`.
* All else is as in `goldengate`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cdcavro.errors import StructureError
from cdcavro.formats.bridge import Bridge, schema_bridge

if TYPE_CHECKING:
    from datetime import tzinfo

    from cdcavro.change.model import Change

FORMAT: Final = "goldengate_row"
_PLAIN: Final = schema_bridge(FORMAT)


def to_changes(record: dict[str, Any], zone: tzinfo | None = None) -> list[Change]:
    """Return the change of a message. Raises `StructureError` for one of the operation model."""
    for name in ("before", "after"):
        if type(record.get(name)) is dict:
            expected = "columns beside the meta columns, as in the row model"
            raise StructureError(expected, "a row in an object, as in the operation model", pointer=f"/{name}")
    return _PLAIN.to_changes(record, zone)


BRIDGE: Final = Bridge(to_changes=to_changes, from_changes=_PLAIN.from_changes)

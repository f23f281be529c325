"""Records of AWS Database Migration Service for Kafka and Kinesis, in JSON (`avsc/aws_dms.avsc`).

Source: AWS DMS User Guide, "Using Apache Kafka as a target", "Using Amazon Kinesis Data Streams as a target" and "Before
image task settings"; AWS DMS API Reference, `KafkaSettings`.

* `data` is the row after the change, for a delete the row before it. A null in the row of a delete may stand for a value
  that the source did not log: no column that is null there is stated.
* `before-image` has the columns before an update as far as the source states them. A column of the key that it does not
  have did not change; of any other nothing is known. Columns `BI_…` in `data` are columns.
* Usually null and empty columns are left out of `data` (`IncludeNullAndEmpty`): they are not stated, and not null,
  unless tables are told so (`absent`), and then empty texts are null, too.
* A control record is about a table and has no effect on its rows: a task that is started again sends `drop-table` and
  `create-table` of tables that are still there. `create-table` states the key of its table if the endpoint is told so
  (`IncludeControlDetails`); no other record does, so tables have a key from there only. Tables in a lake have none
  without it. The types of its columns are the service's, not the source's, and are not read.
* `load` is a row of a full load, before all changes of its table.
* Arrival orders changes. `transaction-id` is no order where the source's ids are not those of commits, as in PostgreSQL,
  and `stream-position` is spelled otherwise by each engine.
* `commit-timestamp` is the time of the change; `timestamp` is that of the record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cdcavro.change.operations import statement_text
from cdcavro.formats.bridge import Bridge, schema_bridge

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import tzinfo

    from cdcavro.change.model import Change

FORMAT: Final = "aws_dms"
_PLAIN: Final = schema_bridge(FORMAT)


def from_changes(changes: Sequence[Change], zone: tzinfo | None = None) -> list[dict[str, Any]]:
    """Return the records of changes, which say that they are rows or are about a table; statements have none."""
    records = _PLAIN.from_changes([change for change in changes if statement_text(change) is None], zone)
    for record in records:
        record["metadata"]["record-type"] = "data" if "data" in record else "control"
        if "data" in record:
            record.pop("control", None)  # where a key would stand, which no row states
    return records


BRIDGE: Final = Bridge(to_changes=_PLAIN.to_changes, from_changes=from_changes)

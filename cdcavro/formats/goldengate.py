"""Messages of Oracle GoldenGate's JSON formatter, operation model (`avsc/goldengate.avsc`).

Source: Oracle GoldenGate for Big Data, "Using the Pluggable Formatters": the JSON formatter and its meta columns.

* A message is one operation on one row. Insert has `after`, delete has `before`, update has both, truncate neither.
* A column that the trail does not have is left out; or it is null and `<column>_isMissing` beside it is true. Either
  way it is not stated. These members are no columns.
* `table` has two names or three: database and table, or database (the catalog), schema and table. In Oracle the first
  of two names is the schema.
* `pos` is the number of the trail's file and the offset in it, which has ten digits; it orders changes, as a number.
* `op_ts` has no zone: it is of the zone that is given. `current_ts` is of the zone of another process, so that it may be
  hours away, and no change has it.
* The transaction is `xid`, or the token `6`. No message is a statement.
* All names are those of the formatter's default; a message with other names has no row, nor has one of the row model,
  which is `goldengate_row`.
"""

from __future__ import annotations

from typing import Final

from cdcavro.formats.bridge import schema_bridge

FORMAT: Final = "goldengate"
BRIDGE: Final = schema_bridge(FORMAT)

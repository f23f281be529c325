"""OMS Community Edition, Dataworks serialization, version 2.0 (`avsc/oms_dataworks.avsc`).

Source: OMS data formats, "Dataworks-compatible JSON message format".

* Images are `payload.before.data` and `payload.after.data`; a heartbeat has no `schema`.
* An instant may be 13-digit milliseconds with nine digits of nanoseconds behind the point.
* `checkpointTime` is in seconds, the other times in milliseconds; `scn` may be the string `"null"`.
"""

from cdcavro.format import Format

FORMAT = Format("oms_dataworks")

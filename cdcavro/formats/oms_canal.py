"""OMS Community Edition, Canal serialization, and Alibaba Canal's flat messages (`avsc/oms_canal.avsc`).

Source: OMS data formats, "Canal-compatible JSON message format"; `id`, `gtid` and the event types are
Alibaba Canal's.

* One message holds many rows: `data[]`, with `old[]` beside it row by row, changed columns only.
* OMS sends numbers as JSON numbers and binary as base64; Alibaba's Canal sends everything as strings,
  binary as ISO-8859-1 text.
* `type` names DDL kinds as well; `sql` then holds the statement and `isDdl` is true.
* Many real messages lack `es`, `ts`, `id`, `isDdl` and `sql`.
"""

from cdcavro.format import Format

FORMAT = Format("oms_canal")

"""OMS Community Edition, SharePlex serialization (`avsc/oms_shareplex.avsc`).

Source: OMS data formats, "SharePlex-compatible JSON message format".

* Operations are `ins`, `upd` and `del`, in small letters.
* For `upd`, `key` is the whole row before the change and `data` only the changed columns.
* Times are text without a zone; `seq` is documented as a string and printed as a number.
* `size` and `idx` occur in samples only.
"""

from cdcavro.format import Format

FORMAT = Format("oms_shareplex")

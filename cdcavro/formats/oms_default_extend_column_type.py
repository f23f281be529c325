"""OMS Community Edition, DefaultExtendColumnType serialization (`avsc/oms_default_extend_column_type.avsc`).

Source: OMS data formats, "DefaultExtendColumnType-compatible JSON message format".

* As `oms_default`, with `__light_type` inside the row images: declared types by column. It is not a column.
* A DELETE has its types in `prevStruct`; DDL and heartbeats have none and look like `oms_default`'s.
"""

from cdcavro.format import Format

FORMAT = Format("oms_default_extend_column_type")

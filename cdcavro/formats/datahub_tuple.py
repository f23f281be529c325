"""DataHub Tuple topics (`avsc/datahub_tuple.avsc`).

Source: DataHub message formats, "Tuple data format", English and Chinese.

* As text, a record is one JSON object: metadata columns, their names in underscores, beside the table's own.
* `_excute_time_` is spelled so; `_operation_type_` is in the samples and in no list of columns, so it may be absent.
* No DDL and no heartbeats.
"""

from cdcavro.format import Format

FORMAT = Format("datahub_tuple")

"""CDC messages on Spark: text ⇄ payload as Columns and in SQL, alongside spark-avro's `from_avro` and `to_avro`.

    from cdcavro import spark as cdc

    spark = cdc.session()
    frame.select(cdc.encode("value", "oms_canal", rejects=True))

Needs `pip install 'cdcavro[spark]'` and Java 17 or newer.
"""

from cdcavro.errors import SetupError as _SetupError

try:
    import pyarrow as _pyarrow  # noqa: F401, ICN001
    import pyspark as _pyspark  # noqa: F401
except ModuleNotFoundError as error:
    raise _SetupError(f"{error.name} is not installed: pip install 'cdcavro[spark]'") from error

from cdcavro.spark.functions import cdc_text, decode, encode, order_key, order_value, shard, to_changes
from cdcavro.spark.registry import from_framed, from_registry, to_registry
from cdcavro.spark.session import session
from cdcavro.spark.sql import register
from cdcavro.spark.typed_tables import TypedTables, messages_to_tables, to_tables
from cdcavro.spark.version_columns import read_versions

__all__ = [
    "TypedTables",
    "cdc_text",
    "decode",
    "encode",
    "from_framed",
    "from_registry",
    "messages_to_tables",
    "order_key",
    "order_value",
    "read_versions",
    "register",
    "session",
    "shard",
    "to_changes",
    "to_registry",
    "to_tables",
]

"""CDC messages on Spark: text ⇄ payload as Columns and in SQL, beside spark-avro's `from_avro` and `to_avro`.

    from cdcavro import spark as cdc

    spark = cdc.session()
    frame.select(cdc.encode("value", "oms_canal", rejects=True))

Needs `pip install 'cdcavro[spark]'` and Java 17 or newer.
"""

from cdcavro.spark.columns import decode, encode
from cdcavro.spark.rows import cdc_text
from cdcavro.spark.session import session
from cdcavro.spark.sql import register

__all__ = ["cdc_text", "decode", "encode", "register", "session"]

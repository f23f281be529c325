"""Typed payloads as Arrow, off Spark: record batches for pandas, polars, DuckDB and Parquet, and back; plain Avro.

    from cdcavro import arrow

    batch = arrow.to_arrow(payloads, table, versions)    # every row under the true names of the newest version
    payloads = arrow.from_arrow(batch, table.schema)     # and back, where that is exact
    arrow.write_plain("orders.avro", [batch], table.schema)   # flat records, which every Avro reader reads

Needs `pip install 'cdcavro[arrow]'`.
"""

from cdcavro.errors import SetupError as _SetupError

try:
    import pyarrow as _pyarrow  # noqa: F401, ICN001
except ModuleNotFoundError as error:
    raise _SetupError(f"{error.name} is not installed: pip install 'cdcavro[arrow]'") from error

from cdcavro.arrow.plain_avro import plain_schema, write_plain
from cdcavro.arrow.record_batches import arrow_schema, to_arrow
from cdcavro.arrow.row_payloads import from_arrow

__all__ = ["arrow_schema", "from_arrow", "plain_schema", "to_arrow", "write_plain"]

"""Functions over Arrow arrays as functions over Columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.pandas.functions import arrow_udf

if TYPE_CHECKING:
    from collections.abc import Callable


def column_function(function: Callable[..., pa.Array], returns: str, name: str) -> Any:
    """Make a function of Columns from one of Arrow arrays; `returns` is the DDL of its type.

    The function's type hints tell Spark that it takes and gives whole arrays; columns are named by `name`.
    """
    function.__name__ = name
    return arrow_udf(function, returns)  # type: ignore[call-overload]


def raw_bytes(values: pa.Array) -> list[bytes | None]:
    """Give the values of a string or binary array as bytes, UTF-8 or not."""
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        values = values.cast(pa.large_binary() if pa.types.is_large_string(values.type) else pa.binary())
    found: list[bytes | None] = values.to_pylist()
    return found

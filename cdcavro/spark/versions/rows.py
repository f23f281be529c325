"""Rows of payloads of many versions, each brought into the reader's schema, in Arrow batches."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from cdcavro.arrow.record_batches import VersionPayloads
from cdcavro.errors import JobError
from cdcavro.spark.arrow_udf import column_function

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column


class VersionRows:
    """Brings payloads of a table's versions into the reader's schema, an Arrow batch at a time.

    `writers` are the texts of the versions' schemas by their numbers, `reader` is that of the reader's schema, `name`
    the table's.
    """

    def __init__(self, writers: Mapping[int, str], reader: str, name: str) -> None:
        self._writers, self._reader, self._name = dict(writers), reader, name
        self._payloads = VersionPayloads(list(self._writers.values()), reader)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle texts only: executors translate for themselves."""
        return partial(VersionRows, self._writers, self._reader, self._name), ()

    def column(self, version: Column, payload: Column | str) -> Column:
        """Return the column of payloads under the reader's schema; a version or a payload that is null gives null."""

        def brought(versions: pa.Array, payloads: pa.Array) -> pa.Array:
            return self.brought(versions, payloads)

        numbers = {0: partial(pa.array, type=pa.int64())}
        return column_function(brought, "binary", "cdc_versions", from_json=numbers)(version, payload)

    def brought(self, versions: pa.Array, payloads: pa.Array) -> pa.Array:
        """Return the payloads under the reader's schema.

        Raises `JobError` for an unknown version, `PayloadError` for a payload that is none of its version, and
        `SchemaError` for a version that the reader does not read.
        """
        numbers = pc.index_in(versions, pa.array(list(self._writers), versions.type))
        unknown = pc.and_(pc.is_valid(versions), pc.is_null(numbers))
        if pc.any(unknown).as_py():
            raise JobError(f"no version of {self._name}: {pc.filter(versions, unknown)[0]}")
        try:
            return self._payloads.translate(numbers, payloads)
        except OverflowError as error:
            bound = "payloads of a batch are too long"
            raise JobError(f"lower spark.sql.execution.arrow.maxRecordsPerBatch: {bound}") from error

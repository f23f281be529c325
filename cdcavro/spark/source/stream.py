"""The stream of the data source: batches of files that were not there before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader

from cdcavro.spark.source.listing import list_files
from cdcavro.spark.source.offsets import Offset
from cdcavro.spark.source.parts import Part, parts_of
from cdcavro.spark.source.rows import read_part

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from cdcavro.spark.source.options import Options


class FileStreamReader(DataSourceStreamReader):
    """Reads files as they come, each once.

    All that it keeps between two calls is the last offset that it gave to Spark, and the last that Spark is known to be at:
    at a restart, Spark tells the one of the checkpoint by asking for what is between it and itself.
    """

    def __init__(self, options: Options) -> None:
        self._options, self._told, self._base = options, Offset(), Offset()

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  as Spark calls it
        """Return the offset before the first file. Raises `FileError` if a path means nothing."""
        list_files(self._options.paths)
        return Offset().json()

    def latestOffset(self) -> dict[str, Any]:  # noqa: N802
        """Return the offset behind the next batch. Raises `FileError`."""
        self._told = self._told.following(self._base, list_files(self._options.paths), self._options.most_files)
        return self._told.json()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[Part]:
        """Return the parts of the files between two offsets. Raises `FileError`."""
        self._told = self._base = Offset.of(end)
        return parts_of(self._base.since(Offset.of(start)), self._options.format, self._options.part_bytes)

    def commit(self, end: dict[str, Any]) -> None:
        """Take note of what Spark has done, whether it asked for its parts or not."""
        self._base = Offset.of(end)

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a part. Raises `FileError`."""
        return read_part(partition)

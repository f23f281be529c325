"""The stream of the data source: batches of files that were not there before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

try:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxFiles, SupportsTriggerAvailableNow
except ImportError:  # Spark before 4.2 has no limits and no such trigger for sources in Python.
    ReadAllAvailable = ReadMaxFiles = None
    SupportsTriggerAvailableNow = object

from pyspark.sql.datasource import DataSourceStreamReader

from cdcavro.spark.source.listing import Found, list_files
from cdcavro.spark.source.offsets import Offset
from cdcavro.spark.source.parts import Part, parts_of
from cdcavro.spark.source.rows import read_part

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from cdcavro.spark.source.options import Options


class FileStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """Reads files as they come, each once.

    All that it keeps between two calls is the last offset that it gave to Spark, and the last that Spark is known to be at:
    at a restart, Spark tells the one of the checkpoint by asking for what is between it and itself. From 4.2 on, Spark
    tells where a batch begins, and which trigger ends with the files that there are when it begins.
    """

    def __init__(self, options: Options) -> None:
        self._options, self._told, self._base = options, Offset(), Offset()
        self._last: frozenset[str] | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  as Spark calls it
        """Return the offset before the first file. Raises `FileError` if a path means nothing."""
        list_files(self._options.paths)
        return Offset().json()

    def latestOffset(self, start: dict[str, Any] | None = None, limit: Any = None) -> dict[str, Any]:  # noqa: N802
        """Return the offset behind the next batch, which begins at `start` if Spark tells it. Raises `FileError`."""
        if start is not None:
            self._told = self._base = Offset.of(start)
        most = self._options.most_files if limit is None else getattr(limit, "max_files", None)
        self._told = self._told.following(self._base, self._found(), most)
        return self._told.json()

    def getDefaultReadLimit(self) -> Any:  # noqa: N802
        """Return how many files a batch has at most, as Spark asks from 4.2 on."""
        most = self._options.most_files
        return ReadAllAvailable() if most is None else ReadMaxFiles(most)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Read no other files than those that there are now, in as many batches as it takes. Raises `FileError`."""
        self._last = frozenset(file.name for file in list_files(self._options.paths))

    def _found(self) -> list[Found]:
        found = list_files(self._options.paths)
        return found if self._last is None else [file for file in found if file.name in self._last]

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

"""The source of Spark's Python data source API, for batches and streams."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader

from cdcavro.errors import SetupError
from cdcavro.spark.source.listing import list_files
from cdcavro.spark.source.options import Options
from cdcavro.spark.source.parts import Part, parts_of
from cdcavro.spark.source.rows import COLUMNS, read_part
from cdcavro.spark.source.stream import FileStreamReader

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql.types import StructType


class CdcAvroSource(DataSource):
    """Lines of files as rows: `spark.read.format("cdcavro")` and `spark.readStream.format("cdcavro")`.

    Its errors are raised where Spark asks for the schema, so before a job begins.
    """

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "cdcavro"

    def schema(self) -> StructType:
        """Return the columns. Raises `SetupError` and `UnknownFormatError` for options."""
        Options.of(self.options)
        return COLUMNS

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of the files that are there now. Raises `FileError`."""
        return FileReader(self._options(schema))

    def streamReader(self, schema: StructType) -> FileStreamReader:  # noqa: N802  as Spark calls it
        """Return the reader of files as they come."""
        return FileStreamReader(self._options(schema))

    def _options(self, schema: StructType) -> Options:
        """Return the options. Raises `SetupError` if the user gave another schema."""
        if schema != COLUMNS:
            raise SetupError("the columns of the data source cdcavro cannot be chosen: leave out schema(…), and select")
        return Options.of(self.options)


class FileReader(DataSourceReader):
    """Reads the files that are there when the query is planned."""

    def __init__(self, options: Options) -> None:
        self._options = options

    def partitions(self) -> list[Part]:
        """Return the parts of the files. Raises `FileError`."""
        parts = parts_of(list_files(self._options.paths), self._options.format, self._options.part_bytes)
        # Of no parts at all Spark makes one, which is None.
        return parts or [Part([])]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a part. Raises `FileError`."""
        return read_part(partition)

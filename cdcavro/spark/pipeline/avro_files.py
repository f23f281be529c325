"""Avro files of a pipeline on Spark: each task writes those of its rows, and the driver puts them in their place."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import functions as sf

from cdcavro.lake.sql_statements import HEADERS
from cdcavro.lake.typed_rows import DROP
from cdcavro.spark.arrow_udf import in_worker
from cdcavro.sync.outputs.avro_folder import AvroFolder, FolderWriter, write_versions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from cdcavro.sync.outputs.sink_settings import AvroFiles, Job
    from cdcavro.table.history import Table

_COUNT: Final = pa.schema([("files", pa.int32())])


@dataclass(frozen=True)
class FileSink:
    """The Avro files of a pipeline on Spark; `settings` are their own."""

    settings: AvroFiles

    def identity(self, spark: SparkSession) -> str:  # noqa: ARG002  as that of topics
        """Return what identifies the files."""
        return self.settings.name

    def folders(self, spark: SparkSession) -> list[str]:  # noqa: ARG002  as that of a lake
        """Return where the files are, which all machines share."""
        return [str(self.settings.folder)]

    def check(self, spark: SparkSession) -> None:  # noqa: ARG002  as that of a lake
        """Check that the folder can be written to. Raises `FileError`."""
        self.settings.check()

    def writer(self, job: Job, publisher: object) -> AvroFileWriter:  # noqa: ARG002  as that of topics
        """Return what writes batches of a pipeline."""
        return AvroFileWriter(self.settings, AvroFolder(self.settings.folder, job.id))


class AvroFileWriter(FolderWriter):
    """Writes batches to files in a folder of the pipeline's."""

    def _files_of(self, table: Table, frame: DataFrame) -> Callable[[Path], int]:
        """Return what writes the rows of a batch to a folder, and returns how many files that makes."""

        def write(fresh: Path) -> int:
            schemas = {schema.version: schema.envelope.json for schema in table.versions}
            # A DROP has no payload.
            columns = ["version", "payload", *([HEADERS] if self.settings.has_headers else [])]
            changes = frame.where(sf.col("operation") != DROP).orderBy("version", "order").select(*columns)
            task = in_worker(_write_task(str(fresh), schemas, self.settings))
            return sum(row["files"] for row in changes.mapInArrow(task, "files int").collect())

        return write


def _write_task(
    folder: str, schemas: Mapping[int, str], settings: AvroFiles
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function of a task that writes rows, sorted by their version, to a file for each version."""

    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context: Any = TaskContext.get()
        part, attempt = context.partitionId(), context.taskAttemptId()
        count = write_versions(batches, Path(folder), schemas, settings, part=part, attempt=attempt)
        yield pa.RecordBatch.from_pylist([{"files": count}], schema=_COUNT)

    return write

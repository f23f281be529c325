"""Avro files of a pipeline in this process, in the same folders as on Spark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from cdcavro.lake.typed_rows import DROP
from cdcavro.sync.native.row_order import in_order
from cdcavro.sync.outputs.avro_folder import AvroFolder, FolderWriter, write_versions

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pyarrow as pa

    from cdcavro.sync.outputs.lake_names import Job
    from cdcavro.sync.outputs.publishing import Publisher
    from cdcavro.sync.outputs.sink_settings import AvroFiles
    from cdcavro.table.history import Table


@dataclass(frozen=True)
class AvroFileSink:
    """The Avro files of a pipeline; `settings` are their own."""

    settings: AvroFiles

    def identity(self) -> str:
        """Return what identifies the files."""
        return self.settings.name

    def check(self) -> None:
        """Check that the folder can be written to. Raises `FileError`."""
        self.settings.check()

    def writer(self, job: Job, publisher: Publisher | None) -> LocalFileWriter:  # noqa: ARG002  as that of topics
        """Return what writes batches of a pipeline."""
        return LocalFileWriter(self.settings, AvroFolder(self.settings.folder, job.id))


class LocalFileWriter(FolderWriter):
    """Writes batches to files in a folder of the pipeline's."""

    def _files_of(self, table: Table, rows: pa.Table) -> Callable[[Path], int]:
        """Return what writes the rows of a batch to a folder, and returns how many files that makes."""
        schemas = {schema.version: schema.envelope.json for schema in table.versions}
        # A DROP has no payload.
        changes = rows.filter(pc.not_equal(rows.column("operation"), DROP)).select(["version", "order", "payload"])
        sorted_changes = in_order(changes, "version", "order")
        return lambda fresh: write_versions(sorted_changes, fresh, schemas, self.settings.codec)

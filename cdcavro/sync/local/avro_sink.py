"""Avro files of a pipeline in this process, in the same folders as on Spark."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from cdcavro.errors import SchemaError
from cdcavro.lake.typed_rows import DROP
from cdcavro.sync.native.row_order import in_order
from cdcavro.sync.outputs.avro_folder import AvroFolder, write_versions
from cdcavro.sync.outputs.writer import WriteResult

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    import pyarrow as pa

    from cdcavro.sync.outputs.lake_names import Job
    from cdcavro.sync.outputs.publishing import Publisher
    from cdcavro.sync.outputs.sink_settings import AvroFiles
    from cdcavro.sync.outputs.writer import Rows
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


@dataclass
class LocalFileWriter:
    """Writes batches to files in a folder of the pipeline's."""

    settings: AvroFiles
    folder: AvroFolder

    has_changes = True

    def write(self, tables: Sequence[Rows]) -> list[WriteResult]:
        """Write the rows of tables, several at a time. Raises `FileError` for a folder of another pipeline."""
        self.folder.claim()
        with ThreadPoolExecutor(self.settings.parallel) as pool:
            return list(pool.map(self._write, tables))

    def _write(self, rows: Rows) -> WriteResult:
        table, name, waiting = rows
        try:
            own = self.folder.of_table(name)
            for batch, changes, *_ in waiting:
                self.folder.replace(own, batch, table.number, self._files_of(table, changes))
        except SchemaError as error:
            return WriteResult(table.number, [], str(error))
        return WriteResult(table.number, [], None)

    def _files_of(self, table: Table, rows: pa.Table) -> Callable[[Path], int]:
        """Return what writes the rows of a batch to a folder, and returns how many files that makes."""
        schemas = {schema.version: schema.envelope.json for schema in table.versions}
        # A DROP has no payload.
        changes = rows.filter(pc.not_equal(rows.column("operation"), DROP)).select(["version", "order", "payload"])
        sorted_changes = in_order(changes, "version", "order")
        return lambda fresh: write_versions(sorted_changes, fresh, schemas, self.settings.codec)

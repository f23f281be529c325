"""Avro files: the changes of each table in object container files, in a folder for each batch, replaced as a whole.

    ROOT/shop/orders/batch=7/table=3/v2-00000.avro

The folders of a table have the names that they have in a lake; 3 is the number of the table among all that there ever
were, and v2 its version. The payloads go into the files as they are.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql import functions as sf

from cdcavro.avro.container import CODECS, ContainerWriter
from cdcavro.avro.schema import parse_schema
from cdcavro.errors import FileError, SchemaError, shown
from cdcavro.lake.escaped_names import folder_names
from cdcavro.lake.job_state import replace_file
from cdcavro.lake.typed_rows import DROP
from cdcavro.spark.arrow_udf import in_worker
from cdcavro.spark.pipeline.outputs.writer import WriteResult
from cdcavro.spark.pipeline.shared_folders import check_written

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from cdcavro.spark.pipeline.outputs.writer import Rows
    from cdcavro.table.history import Table

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_JOB: Final = "_job.json"
_NEW: Final = "_new"
_COUNT: Final = pa.schema([("files", pa.int32())])


@dataclass(frozen=True)
class AvroFiles:
    """Avro object container files. Raises `ValueError`.

    * `root` (str): a folder that all machines of Spark see under the same path, and that no other pipeline writes to.
    * `codec` (str): deflate or null.
    * `parallel` (int): how many tables are written at a time.
    """

    root: str
    codec: str = "deflate"
    parallel: int = 4
    topic = None

    def __post_init__(self) -> None:
        """Check the settings."""
        if _SCHEME.match(self.root):
            raise ValueError(f"Avro files are written to a folder, not to an address such as {shown(self.root)}")
        if self.codec not in CODECS:
            raise ValueError(f"the codecs are {', '.join(CODECS)}, not {shown(self.codec)}")

    @property
    def folder(self) -> Path:
        """The folder."""
        return Path(self.root).absolute()

    @property
    def name(self) -> str:
        """What the files are called in messages."""
        return f"Avro files in {self.folder}"

    def identity(self, spark: SparkSession) -> str:  # noqa: ARG002  as that of topics
        """Return what identifies the files."""
        return self.name

    def folders(self, spark: SparkSession) -> list[str]:  # noqa: ARG002  as that of a lake
        """Return where the files are, which all machines share."""
        return [str(self.folder)]

    def check(self, spark: SparkSession) -> None:  # noqa: ARG002  as that of a lake
        """Check that the folder can be written to. Raises `FileError`."""
        there = next(path for path in (self.folder, *self.folder.parents) if path.exists())
        if not (there.is_dir() and os.access(there, os.W_OK)):
            raise FileError(self.root, "a folder that can be written to", "none")

    def writer(self, job: str, publisher: object) -> AvroFileWriter:  # noqa: ARG002  as that of topics
        """Return what writes batches; `job` is unique to the pipeline."""
        return AvroFileWriter(self, job)


@dataclass
class AvroFileWriter:
    """Writes batches to files; `job` (str) is unique to the pipeline."""

    settings: AvroFiles
    job: str
    _is_ours: bool = field(default=False)

    has_changes = True

    def write(self, spark: SparkSession, tables: Sequence[Rows]) -> list[WriteResult]:  # noqa: ARG002  as all writers
        """Write the rows of tables, several at a time. Raises `FileError` for a folder of another pipeline."""
        self._claim()
        with ThreadPoolExecutor(self.settings.parallel) as pool:
            return list(pool.map(self._write, tables))

    def _claim(self) -> None:
        """Make the folder this pipeline's: another would replace its files. Raises `FileError`."""
        if self._is_ours:
            return
        path = self.settings.folder / _JOB
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            replace_file(path, json.dumps({"job": self.job}))
        try:
            owner = json.loads(path.read_bytes())["job"]
        except (ValueError, KeyError, TypeError, RecursionError):
            owner = None
        if owner != self.job:
            raise FileError(str(path.parent), "a folder of this pipeline", "one that another pipeline has written to")
        self._is_ours = True

    def _write(self, rows: Rows) -> WriteResult:
        table, name, waiting = rows
        try:
            own, older = (self.settings.folder.joinpath(*folder_names(name, is_older=one)) for one in (False, True))
            # A folder under its first name goes on being used.
            own = older if not own.exists() and any(older.glob("batch=*")) else own
            for batch, frame, *_ in waiting:
                self._replace(own / f"batch={batch}" / f"table={table.number}", table, frame)
        except SchemaError as error:
            return WriteResult(table.number, [], str(error))
        return WriteResult(table.number, [], None)

    def _replace(self, target: Path, table: Table, frame: DataFrame) -> None:
        """Write the rows of a batch, instead of those that it wrote when it was run before."""
        fresh, gone = (
            self.settings.folder / _NEW / f"{target.parent.name}.{target.name}{suffix}" for suffix in ("", ".gone")
        )
        for path in (fresh, gone):
            shutil.rmtree(path, ignore_errors=True)
        fresh.mkdir(parents=True)
        schemas = {schema.version: schema.envelope.json for schema in table.versions}
        # A DROP has no payload.
        changes = frame.where(sf.col("operation") != DROP).orderBy("version", "order").select("version", "payload")
        task = in_worker(_write_task(str(fresh), schemas, self.settings.codec))
        written = changes.mapInArrow(task, "files int").collect()
        count = sum(row["files"] for row in written)
        check_written(fresh, len(list(fresh.glob("*.avro"))), count, "files")
        if target.exists():
            target.rename(gone)
        if count:
            target.parent.mkdir(parents=True, exist_ok=True)
            fresh.rename(target)
        for path in (fresh, gone):
            shutil.rmtree(path, ignore_errors=True)


def _write_task(
    folder: str, schemas: Mapping[int, str], codec: str
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function of a task that writes rows, sorted by their version, to a file for each version."""

    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context: Any = TaskContext.get()
        number, attempt = context.partitionId(), context.taskAttemptId()
        files: dict[int, _File] = {}
        for batch in batches:
            for version, payloads in _version_runs(batch):
                if version not in files:
                    for file in files.values():
                        file.finish()
                    path = Path(folder, f"v{version}-{number:05}.avro")
                    files[version] = _File(path, f"_{path.name}.{attempt}", schemas[version], codec)
                files[version].write(payloads)
        for file in files.values():
            file.finish()
        yield pa.RecordBatch.from_pylist([{"files": len(files)}], schema=_COUNT)

    return write


def _version_runs(batch: pa.RecordBatch) -> Iterator[tuple[int, pa.Array]]:
    """Yield the versions of a batch with their payloads, one run of equal versions after another."""
    ends = pc.run_end_encode(batch.column("version"))
    start = 0
    for version, end in zip(ends.values.to_pylist(), ends.run_ends.to_pylist(), strict=True):
        yield version, batch.column("payload").slice(start, end - start)
        start = end


class _File:
    """A container file, which gets its name once it is whole."""

    def __init__(self, path: Path, hidden: str, schema: str, codec: str) -> None:
        self._path, self._hidden = path, path.with_name(hidden)
        self._stream: BinaryIO = self._hidden.open("wb")
        self._writer = ContainerWriter(self._stream, parse_schema(schema), codec=codec)

    def write(self, payloads: pa.Array) -> None:
        """Write payloads as they are."""
        values = payloads.cast(pa.binary())
        _, offsets, data = values.buffers()
        places = memoryview(offsets).cast("i")[values.offset : values.offset + len(values) + 1]
        first = places[0]
        self._writer.write_all(bytes(memoryview(data)[first : places[-1]]), [place - first for place in places[1:]])

    def finish(self) -> None:
        """Write what is left, and give the file its name."""
        if not self._stream.closed:
            self._writer.flush()
            os.fsync(self._stream.fileno())
            self._stream.close()
            self._hidden.replace(self._path)

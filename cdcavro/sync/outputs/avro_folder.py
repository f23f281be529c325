"""Folder of Avro files: the changes of each table in object container files, in a folder for each batch.

    ROOT/shop/orders/batch=7/table=3/v2-00000.avro

The folders of a table have the names that they have in a lake; 3 is the number of the table among all that there ever
were, and v2 its version. The payloads go into the files as they are, or as plain records.
"""

from __future__ import annotations

import json
import os
import shutil
from abc import ABC, abstractmethod
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import pyarrow as pa
import pyarrow.compute as pc

from cdcavro.arrow.plain_avro import plain_schema, write_payloads
from cdcavro.avro.binary import write_long, write_string
from cdcavro.avro.container import ContainerWriter
from cdcavro.avro.schema import parse_schema
from cdcavro.errors import FileError, SchemaError
from cdcavro.lake.escaped_names import folder_names
from cdcavro.lake.job_state import replace_file
from cdcavro.lake.sql_statements import CHANGE_COLUMNS, HEADERS
from cdcavro.sync.outputs.table_rows import check_written
from cdcavro.sync.outputs.writer import WriteResult
from cdcavro.table.table_schema import from_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from cdcavro.sync.outputs.sink_settings import AvroFiles
    from cdcavro.sync.outputs.writer import Rows
    from cdcavro.table.ddl.steps import TableName
    from cdcavro.table.history import Table

_JOB: Final = "_job.json"
_NEW: Final = "_new"


@dataclass
class AvroFolder:
    """A folder of Avro files: `root` (Path), which belongs to the pipeline `job` (str)."""

    root: Path
    job: str
    _is_ours: bool = field(default=False)

    def claim(self) -> None:
        """Make the folder this pipeline's: another would replace its files. Raises `FileError`."""
        if self._is_ours:
            return
        path = self.root / _JOB
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

    def of_table(self, name: TableName) -> Path:
        """Return the folder of a table. Raises `SchemaError` for a name that none can have."""
        own, older = (self.root.joinpath(*folder_names(name, is_older=one)) for one in (False, True))
        # A folder under its first name goes on being used.
        return older if not own.exists() and any(older.glob("batch=*")) else own

    def replace(self, table: Path, batch: int, number: int, write: Callable[[Path], int]) -> None:
        """Write the files of a batch of the table with a number, instead of those that it wrote when it was run before.

        `write` gets a new folder and returns how many files it has written there. Raises `JobError` if they are not
        there.
        """
        target = table / f"batch={batch}" / f"table={number}"
        fresh, gone = (self.root / _NEW / f"{target.parent.name}.{target.name}{suffix}" for suffix in ("", ".gone"))
        for path in (fresh, gone):
            shutil.rmtree(path, ignore_errors=True)
        fresh.mkdir(parents=True)
        count = write(fresh)
        check_written(fresh, len(list(fresh.glob("*.avro"))), count, "files")
        if target.exists():
            target.rename(gone)
        if count:
            target.parent.mkdir(parents=True, exist_ok=True)
            fresh.rename(target)
        for path in (fresh, gone):
            shutil.rmtree(path, ignore_errors=True)


@dataclass
class FolderWriter(ABC):
    """Writes batches to files in a folder of the pipeline's; a runner says how the rows of a batch become files."""

    settings: AvroFiles
    folder: AvroFolder

    has_changes = True
    has_states = False

    def write(self, tables: Sequence[Rows]) -> list[WriteResult]:
        """Write the rows of tables, several at a time. Raises `FileError` for a folder of another pipeline."""
        self.folder.claim()
        with ThreadPoolExecutor(self.settings.parallel) as pool:
            return list(pool.map(self._write, tables))

    def _write(self, rows: Rows) -> WriteResult:
        table, name, waiting = rows
        try:
            own = self.folder.of_table(name)
            for part in waiting:
                self.folder.replace(own, part.batch, table.number, self._files_of(table, part.rows))
        except SchemaError as error:
            return WriteResult(table.number, [], str(error))
        return WriteResult(table.number, [], None)

    @abstractmethod
    def _files_of(self, table: Table, rows: Any) -> Callable[[Path], int]:
        """Return what writes the rows of a batch to a folder, and returns how many files that makes."""


def write_versions(
    batches: Iterable[pa.RecordBatch],
    folder: Path,
    schemas: Mapping[int, str],
    settings: AvroFiles,
    *,
    part: int = 0,
    attempt: int = 0,
) -> int:
    """Write rows, sorted by their version, to a file for each version; return how many files there are.

    `batches` have the columns version and payload, and headers if these are written, `schemas` the texts of the
    envelopes' schemas by version. `part` is the number of these rows among all of the batch, and `attempt` is unique to
    the attempt to write them.
    """
    files: dict[int, _File] = {}
    for batch in batches:
        for version, rows in _version_runs(batch):
            if version not in files:
                for file in files.values():
                    file.finish()
                path = folder / f"v{version}-{part:05}.avro"
                files[version] = _File(path, f"_{path.name}.{attempt}", schemas[version], settings)
            files[version].write(rows)
    for file in files.values():
        file.finish()
    return len(files)


def _version_runs(batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the versions of a batch with their rows, one run of equal versions after another."""
    ends = pc.run_end_encode(batch.column("version"))
    start = 0
    for version, end in zip(ends.values.to_pylist(), ends.run_ends.to_pylist(), strict=True):
        yield version, batch.slice(start, end - start)
        start = end


class _File:
    """A container file, which gets its name once it is whole."""

    def __init__(self, path: Path, hidden: str, schema: str, settings: AvroFiles) -> None:
        self._path, self._hidden = path, path.with_name(hidden)
        self._stream: BinaryIO = self._hidden.open("wb")
        envelope = parse_schema(schema)
        self._plain = from_schema(envelope) if settings.is_plain else None
        written = envelope if self._plain is None else plain_schema(self._plain)
        self._has_headers = settings.has_headers
        written = parse_schema(_with_headers(written.json)) if self._has_headers else written
        self._writer = ContainerWriter(self._stream, written, codec=settings.codec)

    def write(self, rows: pa.RecordBatch) -> None:
        """Write payloads as they are, or as plain records, each with its headers if these are written."""
        payloads = rows.column("payload")
        writer = _HeadersWriter(self._writer, rows.column(HEADERS).to_pylist()) if self._has_headers else self._writer
        if self._plain is not None:
            write_payloads(payloads, self._plain, self._plain, writer)
            return
        values = payloads.cast(pa.large_binary())
        _, offsets, data = values.buffers()
        places = memoryview(offsets).cast("q")[values.offset : values.offset + len(values) + 1]
        first = places[0]
        writer.write_all(bytes(memoryview(data)[first : places[-1]]), [place - first for place in places[1:]])

    def finish(self) -> None:
        """Write what is left, and give the file its name."""
        if not self._stream.closed:
            self._writer.flush()
            os.fsync(self._stream.fileno())
            self._stream.close()
            self._hidden.replace(self._path)


def _with_headers(schema: str) -> str:
    """Return the schema of a record with a last field for headers."""
    record = json.loads(schema)
    field = {"name": CHANGE_COLUMNS[HEADERS].name, "type": ["null", "string"], "default": None}
    return json.dumps({**record, "fields": [*record["fields"], field]}, ensure_ascii=False)


class _HeadersWriter:
    """Writes records to a container file, each with its headers behind it, which are its last field."""

    def __init__(self, writer: ContainerWriter, headers: Iterable[str | None]) -> None:
        self._writer, self._headers = writer, iter(headers)

    def write_all(self, payloads: bytes, ends: Sequence[int]) -> None:
        """Write records, as `ContainerWriter.write_all` does."""
        parts: list[bytes | bytearray] = []
        written: list[int] = []
        start = size = 0
        for end in ends:
            headers, field = next(self._headers), bytearray()
            write_long(field, int(headers is not None))
            if headers is not None:
                write_string(field, headers)
            parts += [payloads[start:end], field]
            size += end - start + len(field)
            written.append(size)
            start = end
        self._writer.write_all(b"".join(parts), written)

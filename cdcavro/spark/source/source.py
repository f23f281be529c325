"""Source of Spark's Python data source API, for batches and streams: options, readers, and a stream's offsets.

An offset of a stream says which files it has read, as JSON that Spark keeps in the checkpoint. It names the files of
its batch, in their order, and has a mark of each file before them: twelve bytes from which neither name nor size can be
told, but with which both can be compared. So an offset grows by sixteen characters for each file that still lies where
the stream looks, in whatever order files come.
"""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader

try:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxFiles, SupportsTriggerAvailableNow
except ImportError:  # Spark before 4.2 has no limits and no such trigger for sources in Python.
    ReadAllAvailable = ReadMaxFiles = None
    SupportsTriggerAvailableNow = object

from cdcavro.errors import FileError, JobError, SetupError, shown
from cdcavro.spark.source.line_rows import COLUMNS, FilePart, parts_of, read_part
from cdcavro.spark.source.listing import FoundFile, list_files
from cdcavro.wire.formats import get_format
from cdcavro.wire.sniff import AUTO, MIXED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import pyarrow as pa
    from pyspark.sql.types import StructType

PART_BYTES: Final = 32 << 20
_PATH: Final = "path"
_PATHS: Final = "paths"
_FORMAT: Final = "format"
_MAX_BYTES: Final = "maxPartitionBytes"
_MAX_FILES: Final = "maxFilesPerTrigger"
_KNOWN: Final = {name.lower(): name for name in (_PATH, _PATHS, _FORMAT, _MAX_BYTES, _MAX_FILES)}
# Bytes of a mark: of a name, and of a size.
_NAME: Final = 9
_SIZE: Final = 3
_MARK: Final = _NAME + _SIZE
_VERSION: Final = 1


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


@dataclass(frozen=True, slots=True)
class Options:
    """What is to be read, and how, as it is given with `option` and `load`."""

    # Files, folders, or patterns of their paths.
    paths: tuple[str, ...]
    # A format's name, `auto` or `mixed`.
    format: str = AUTO
    # About how many bytes of files a task reads.
    part_bytes: int = PART_BYTES
    # How many files a batch of a stream has at most.
    most_files: int | None = None

    @classmethod
    def of(cls, given: Mapping[str, str]) -> Options:
        """Return the options that are given, with names in any case. Raises `SetupError` and `UnknownFormatError`."""
        own = {name.lower(): value for name, value in given.items()}
        unknown = sorted(own.keys() - _KNOWN.keys())
        if unknown:
            known = ", ".join(name for name in _KNOWN.values() if name != _PATHS)
            raise SetupError(f"unknown option {shown(unknown[0])} of the data source cdcavro: known are {known}")
        paths = (*_path_list(own.get(_PATHS, "[]")), *([own[_PATH]] if own.get(_PATH) else ()))
        if not paths:
            raise SetupError("the data source cdcavro needs a path: load('…') or option('path', '…')")
        format = own.get(_FORMAT, AUTO)
        if format not in (AUTO, MIXED):
            get_format(format)
        most = own.get(_MAX_FILES.lower())
        part_bytes = _count(_MAX_BYTES, own.get(_MAX_BYTES.lower(), str(PART_BYTES)))
        return cls(paths, format, part_bytes, None if most is None else _count(_MAX_FILES, most))


def _path_list(text: str) -> list[str]:
    """Return the paths that were given to `load` as a list, of which Spark makes JSON."""
    try:
        paths = json.loads(text)
    except ValueError:
        paths = None
    if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
        raise SetupError(f"the option {_PATHS} is a list of paths in JSON, not {shown(text)}")
    return paths


def _count(name: str, text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text[:19]) > 0):
        raise SetupError(f"the option {name} is a whole number from 1, not {shown(text)}")
    return int(text[:19])


class FileReader(DataSourceReader):
    """Reads the files that are there when the query is planned."""

    def __init__(self, options: Options) -> None:
        self._options = options

    def partitions(self) -> list[FilePart]:
        """Return the parts of the files. Raises `FileError`."""
        parts = parts_of(list_files(self._options.paths), self._options.format, self._options.part_bytes)
        # Of no parts at all Spark makes one, which is None.
        return parts or [FilePart([])]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a part. Raises `FileError`."""
        return read_part(partition)


class FileStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """Reads files as they come, each once.

    Between two calls it keeps only the last offset that it gave to Spark, and the last that Spark is known to have
    reached: after a restart, Spark says which one the checkpoint has by asking for what is between it and itself. From
    4.2 on, Spark says where a batch begins, and which trigger ends with the files that are there when it begins.
    """

    def __init__(self, options: Options) -> None:
        self._options, self._given, self._base = options, Offset(), Offset()
        self._last: frozenset[str] | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  as Spark calls it
        """Return the offset before the first file. Raises `FileError` if a path means nothing."""
        list_files(self._options.paths)
        return Offset().json()

    def latestOffset(self, start: dict[str, Any] | None = None, limit: Any = None) -> dict[str, Any]:  # noqa: N802
        """Return the offset behind the next batch, which begins at `start` if Spark tells it. Raises `FileError`."""
        if start is not None:
            self._given = self._base = Offset.of(start)
        most = self._options.most_files if limit is None else getattr(limit, "max_files", None)
        self._given = self._given.next_offset(self._base, self._find_files(), most)
        return self._given.json()

    def getDefaultReadLimit(self) -> Any:  # noqa: N802
        """Return how many files a batch has at most, as Spark asks from 4.2 on."""
        most = self._options.most_files
        return ReadAllAvailable() if most is None else ReadMaxFiles(most)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Read no other files than those that there are now, in as many batches as it takes. Raises `FileError`."""
        self._last = frozenset(file.name for file in list_files(self._options.paths))

    def _find_files(self) -> list[FoundFile]:
        found = list_files(self._options.paths)
        return found if self._last is None else [file for file in found if file.name in self._last]

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[FilePart]:
        """Return the parts of the files between two offsets. Raises `FileError`."""
        self._given = self._base = Offset.of(end)
        return parts_of(self._base.since(Offset.of(start)), self._options.format, self._options.part_bytes)

    def commit(self, end: dict[str, Any]) -> None:
        """Take note of what Spark has done, whether it asked for its parts or not."""
        self._base = Offset.of(end)

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a part. Raises `FileError`."""
        return read_part(partition)


@dataclass(frozen=True)
class Offset:
    """What a stream has read."""

    # Of each file of earlier batches that was still there, the mark of its size by that of its name.
    before: Mapping[bytes, bytes] = field(default_factory=dict)
    # The files of the last batch, in their order.
    files: tuple[FoundFile, ...] = ()

    @classmethod
    def of(cls, json: Mapping[str, Any]) -> Offset:
        """Return the offset that Spark kept. Raises `JobError` for one that is none."""
        try:
            marks = base64.b64decode(json["before"], validate=True)
            files = tuple(FoundFile(file["name"], file["size"]) for file in json["files"])
            known = json["version"] == _VERSION
        except (KeyError, TypeError, ValueError):
            known = False
        if not known:
            raise JobError("the checkpoint is of another source, or of another version of the data source cdcavro")
        before = {marks[i : i + _NAME]: marks[i + _NAME : i + _MARK] for i in range(0, len(marks), _MARK)}
        return cls(before, files)

    def json(self) -> dict[str, Any]:
        """Return the offset as Spark keeps it; equal offsets are equal texts."""
        marks = b"".join(name + size for name, size in sorted(self.before.items()))
        files = [{"name": file.name, "size": file.size} for file in self.files]
        return {"version": _VERSION, "before": base64.b64encode(marks).decode(), "files": files}

    def marks(self) -> dict[bytes, bytes]:
        """Return the marks of the sizes of all files that were read, by those of their names."""
        return {**self.before, **dict(map(_marks, self.files))}

    def next_offset(self, base: Offset, found: Iterable[FoundFile], most: int | None) -> Offset:
        """Return the offset behind this one, with at most `most` files that are not read yet, the oldest first.

        It is this one if there are none. `base` is the last offset that Spark is known to have passed: files that came
        after it are named again, as nobody may have asked for them. Files that were read and are gone are forgotten,
        unless nothing is there at all. Raises `FileError` for a file that has changed since it was read.
        """
        known, new, there = self.marks(), [], {}
        for file in found:
            name, size = _marks(file)
            if name not in known:
                new.append(file)
            elif known[name] == size:
                there[name] = size
            else:
                expected = "the file as it was when it was read: a file is complete when it appears"
                raise FileError(file.name, expected, f"one of {file.size} bytes, another size")
        if not new:
            return self
        new.sort(key=lambda file: (file.modified, file.name))
        return Offset(there, (*self.since(base), *new[:most]))

    def since(self, start: Offset) -> list[FoundFile]:
        """Return the files from one offset to this one, in their order."""
        known = start.marks()
        return [file for file in self.files if _marks(file)[0] not in known]


def _marks(file: FoundFile) -> tuple[bytes, bytes]:
    name = hashlib.blake2b(file.name.encode(), digest_size=_NAME).digest()
    return name, hashlib.blake2b(file.size.to_bytes(8, "big"), digest_size=_SIZE).digest()

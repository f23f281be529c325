"""A folder of typed tables: the schemas of each version, and the payloads in container files."""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import shutil
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NamedTuple, Self

from cdcavro.avro.container import BlockQueue, ContainerWriter
from cdcavro.engine.machine import grouped
from cdcavro.errors import FileError, shown
from cdcavro.exact.locks import hold, leftovers
from cdcavro.table.table_schema import schema_text

try:
    import resource
except ImportError:  # Windows has none.
    resource = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cdcavro.avro.container import Begin
    from cdcavro.table.history import Table
    from cdcavro.table.table_schema import TableSchema
    from cdcavro.table.tables import TypedChange, TypedPayload
    from cdcavro.table.writing.message_typer import Journal, RowBuffers

INDEX: Final = "tables.json"
OPEN: Final = 128
_OTHERS: Final = 20
CURRENT: Final = "current.parquet"
_WRITTEN: Final = re.compile(r"current\.parquet|v[0-9]+(?:-[0-9]+)?\.(?:avro|parquet)|v[0-9]+(?:\.key)?\.avsc")
_LONGEST: Final = 120


class Container(NamedTuple):
    """A container file of a folder that is being written."""

    path: Path
    # The table and the version of its payloads.
    table: Table
    schema: TableSchema


class TablesFolder:
    """Writes typed changes into a folder, which gets its name only when all went well.

    Made from the folder's path; `force` replaces a folder that was written like this before and has nothing else
    in it: it goes when the new one is in its place. `begin` begins to pack a block and returns what waits for it, and
    `most` blocks may wait. `turn` makes other files of the container files when all are written; until then they are
    not compressed. Raises `FileError`.

    Fields: `counts` (Counter of int), how many changes were written, by the number of their table; and `names` (dict from
    int to str), once it is finished, what the folder of each table is called.
    """

    def __init__(
        self,
        path: str,
        *,
        force: bool = False,
        begin: Begin = lambda work: work,
        most: int = 0,
        turn: Callable[[Sequence[Container]], None] | None = None,
    ) -> None:
        # A path is resolved first: what is beside `..`, or beside the target of a link, is in another folder.
        self._target = Path(path).resolve()
        self.counts: Counter[int] = Counter()
        self.names: dict[int, str] = {}
        self._parts: Counter[tuple[int, int]] = Counter()
        self._open: dict[tuple[int, int], tuple[BinaryIO, ContainerWriter]] = {}
        self._blocks, self._turn = BlockQueue(begin, most), turn
        if self._target.exists():
            is_own = (self._target / INDEX).is_file()
            if not force or not is_own:
                how = (
                    "a new folder (--force replaces one)"
                    if is_own or not force
                    else f"a folder with {INDEX}, written before"
                )
                raise FileError(path, how, "one that exists")
            foreign = _foreign(self._target)
            if foreign is not None:
                expected = "a folder with nothing in it but what was written before"
                raise FileError(path, expected, shown(os.path.relpath(foreign, self._target)))
        self._most = _most_open()
        self._beside, self._held = self._path_beside("part"), ExitStack()

    def __enter__(self) -> Self:
        try:
            self._beside.mkdir(parents=True)
            self._held.enter_context(hold(self._beside))
        except OSError as error:
            raise FileError(str(self._target), "a folder that can be made", shown(error.strerror or error)) from error
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        for stream, _writer in self._open.values():
            stream.close()
        self._blocks.drop()
        self._held.close()
        shutil.rmtree(self._beside, ignore_errors=True)

    def write(self, typed: TypedChange | TypedPayload) -> None:
        """Write one change."""
        self._writer(typed.table, typed.schema).write(typed.payload)
        self.counts[typed.table.number] += 1

    def write_rows(self, journal: Journal, rows: RowBuffers, first: int, end: int) -> None:
        """Write some of the rows that an engine made by the patterns of a journal, as `write` does one by one."""
        patterns, ends, payloads = rows[1], rows[5], rows[6]
        groups = grouped(patterns, ends, payloads, journal.groups.tobytes(), first, end)
        tables = [journal.versions[number] for number, _, _ in groups]
        new = sum((table.number, schema.version) not in self._open for table, schema in tables)
        if new and len(self._open) + new > self._most:
            # Some files are closed on the way; which ones depends on the order of all rows.
            self._write_each(journal, rows, first, end)
            return
        for (table, schema), (_, some, places) in zip(tables, groups, strict=True):
            offsets = memoryview(places).cast("i")
            self._writer(table, schema).write_all(some, offsets)
            self.counts[table.number] += len(offsets)

    def _write_each(self, journal: Journal, rows: RowBuffers, first: int, end: int) -> None:
        patterns, ends, payloads = memoryview(rows[1]).cast("i"), memoryview(rows[5]).cast("i"), rows[6]
        for i in range(first, end):
            table, schema = journal.versions[journal.groups[patterns[i]]]
            self._writer(table, schema).write(payloads[ends[i] : ends[i + 1]])
            self.counts[table.number] += 1

    def file_of(self, table: Table, name: str, count: int) -> Path:
        """Return the path of a file of a table's, which the caller writes before `finish`; it has `count` rows."""
        folder = self._beside / str(table.number)
        folder.mkdir(exist_ok=True)
        self.counts[table.number] = count
        return folder / name

    def finish(self, tables: Sequence[Table]) -> None:
        """Write the schemas and rename each table's folder, then the whole, to its final name. Raises `FileError`."""
        try:
            while self._open:
                self._stop(next(iter(self._open)))
            self._blocks.finish()
            if self._turn is not None:
                self._turn(self._containers(tables))
            self.names = names = _names(tables)
            for table in tables:
                self._write_schemas(table, names[table.number])
            listed = [_describe(table, names[table.number], self.counts[table.number]) for table in tables]
            (self._beside / INDEX).write_text(json.dumps(listed, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
            self._put_in_place()
            # What runs that were killed left, which had not got its name yet, or had lost it to the next.
            for left in leftovers(self._target, ["part", "old"]):
                if _foreign(left) is None:
                    shutil.rmtree(left, ignore_errors=True)
        except OSError as error:
            raise FileError(
                str(self._target), "a folder that can be written", shown(error.strerror or error)
            ) from error

    def _put_in_place(self) -> None:
        """Give the folder its name. An older folder may have it until then; if this fails, one of the two has it."""
        if not self._target.exists():
            self._beside.rename(self._target)
            return
        old = self._path_beside("old")
        self._target.rename(old)
        try:
            self._beside.rename(self._target)
        except OSError:
            old.rename(self._target)
            raise
        _remove(old)

    def _path_beside(self, ending: str) -> Path:
        return self._target.with_name(f"{self._target.name}.{secrets.token_hex(4)}.{ending}")

    def _writer(self, table: Table, schema: TableSchema) -> ContainerWriter:
        """Return the writer of a version's payloads."""
        key = (table.number, schema.version)
        if key not in self._open:
            self._start(key, schema)
        return self._open[key][1]

    def _start(self, key: tuple[int, int], schema: TableSchema) -> None:
        if len(self._open) >= self._most:
            self._stop(next(iter(self._open)))
        self._parts[key] += 1
        number, version = key
        folder = self._beside / str(number)
        folder.mkdir(exist_ok=True)
        stream = _container(folder, version, self._parts[key]).open("xb")
        codec = "deflate" if self._turn is None else "null"
        self._open[key] = stream, ContainerWriter(stream, schema.envelope, codec=codec, queue=self._blocks)

    def _stop(self, key: tuple[int, int]) -> None:
        stream, writer = self._open.pop(key)
        try:
            writer.flush()
        finally:
            self._blocks.close(stream)

    def _containers(self, tables: Sequence[Table]) -> list[Container]:
        return [
            Container(_container(self._beside / str(table.number), schema.version, part), table, schema)
            for table in tables
            for schema in table.versions
            for part in range(1, self._parts[table.number, schema.version] + 1)
        ]

    def _write_schemas(self, table: Table, name: str) -> None:
        folder = self._beside / str(table.number)
        folder.mkdir(exist_ok=True)
        for schema in table.versions:
            _write(folder / f"v{schema.version}.avsc", schema.envelope.json)
            if schema.key is not None:
                _write(folder / f"v{schema.version}.key.avsc", schema.key.json)
        folder.rename(self._beside / name)


def _container(folder: Path, version: int, part: int) -> Path:
    return folder / (f"v{version}.avro" if part == 1 else f"v{version}-{part}.avro")


def _most_open() -> int:
    """Return how many files may be open at a time: half of those that the process may still open."""
    if resource is None:
        return OPEN
    return max(2, min(OPEN, (resource.getrlimit(resource.RLIMIT_NOFILE)[0] - _OTHERS) // 2))


def _foreign(target: Path) -> Path | None:
    """Return something in a folder that no run has written, or None if there is nothing."""
    for entry in target.iterdir():
        if entry.is_symlink() or not (entry.is_dir() or entry.name == INDEX):
            return entry
        if entry.is_dir():
            for inside in entry.iterdir():
                if inside.is_symlink() or not (inside.is_file() and _WRITTEN.fullmatch(inside.name)):
                    return inside
    return None


def _remove(old: Path) -> None:
    """Remove what a run has written. Raises `FileError`, and removes nothing, if there is anything else by now."""
    foreign = _foreign(old)
    if foreign is not None:
        raise FileError(str(old), "nothing in it but what was written before, so it stays", shown(foreign.name))
    for folder in [entry for entry in old.iterdir() if entry.is_dir()]:
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()
    (old / INDEX).unlink()
    old.rmdir()


def _write(path: Path, schema: str) -> None:
    path.write_text(schema_text(json.loads(schema), indent=2) + "\n", encoding="utf-8")


def _names(tables: Sequence[Table]) -> dict[int, str]:
    """Return each table's folder name: its newest name in Avro's form, made unique regardless of case.

    Where a table was dropped and created again, the one that there is has the plain name.
    """
    names: dict[int, str] = {}
    used: set[str] = {INDEX, *map(str, range(len(tables)))}
    for table in sorted(tables, key=lambda table: table.is_gone):
        name = table.schema.full_name
        if len(name) > _LONGEST:
            name = f"{name[:_LONGEST]}~{hashlib.sha256(name.encode()).hexdigest()[:16]}"
        again, unique = 1, name
        while unique.lower() in used:
            again += 1
            unique = f"{name}~{again}"
        used.add(unique.lower())
        names[table.number] = unique
    return names


def _describe(table: Table, folder: str, count: int) -> dict[str, Any]:
    versions = [
        {"version": schema.version, "table": schema.table.table, "steps": list(steps)}
        for schema, steps in zip(table.versions, table.steps, strict=True)
    ]
    listed = {"folder": folder, "changes": count, "is_gone": table.is_gone, "versions": versions}
    return listed | ({"findings": table.findings} if table.findings else {})

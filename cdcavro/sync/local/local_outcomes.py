"""Outcomes of a batch's tasks in this process: rows by table and all others, in memory up to a bound, then in files."""

from __future__ import annotations

import base64
import json
import shutil
import sys
import tempfile
from collections import Counter
from functools import partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cdcavro.change.model import Change
from cdcavro.errors import JobError
from cdcavro.exact.jsontext import trimmed
from cdcavro.files.streams import local_folder
from cdcavro.lake.account import RejectReason
from cdcavro.sync.conversion.outcome_rows import HALF, REJECT, ROW, STATEMENT, SUMMARY
from cdcavro.sync.outputs.reject_places import MOST_REASONS, PLACE, kind_of, place_of, reason_key
from cdcavro.sync.outputs.table_rows import OF_ROWS, check_written
from cdcavro.sync.outputs.writer import KeptRows

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from cdcavro.sync.outputs.shard_schemas import ShardPayloads

# The name under which all that is no row of a table is kept: no table has it.
_OTHERS: Final = ""
_REJECTS: Final = "part-00000.json"
_PIECE: Final = 1 << 16
# What is kept in the memory of this process only.
_APART: Final = (SUMMARY, HALF)


class LocalStore:
    """Keeps the outcomes of a batch. If they take more than `room` bytes, what there is goes to files in a folder.

    `folder` (Path) is where a folder of its own is made for them, by default among all temporary ones. Several threads
    may add outcomes.
    """

    def __init__(self, folder: Path | None = None, room: int = sys.maxsize) -> None:
        self._folder, self._room = folder, room
        self._held: dict[str, list[pa.RecordBatch]] = {}
        self._size = 0
        self._spilled: Path | None = None
        # The files of rows and of all others: one for each table would be more than a process may have.
        self._paths: dict[bool, str] = {}
        self._writers: dict[bool, Any] = {}
        self._closed: set[bool] = set()
        # Which batches of its file are those of a name.
        self._numbers: dict[str, list[int]] = {}
        self._counts: Counter[bool] = Counter()
        # How many bytes of a name there are.
        self._sizes: Counter[str] = Counter()
        self._lock = Lock()
        # The summaries of tasks.
        self.notes: list[dict[str, Any]] = []
        self._halves: list[dict[str, Any]] = []
        self._evidence: list[bytes] = []

    @property
    def files(self) -> LocalFiles:
        """Reads and writes rows such as these."""
        return LocalFiles()

    def add(self, outcomes: pa.RecordBatch) -> None:
        """Add outcomes of a task, whose rows of one table stand one after another."""
        what = outcomes.column("what")
        is_row = pc.equal(what, ROW)
        count = pc.sum(is_row).as_py() or 0
        if count < outcomes.num_rows:
            others = outcomes.filter(pc.invert(is_row))
            summaries = others.filter(pc.equal(others.column("what"), SUMMARY))
            halves = others.filter(pc.equal(others.column("what"), HALF))
            others = others.filter(pc.invert(pc.is_in(others.column("what"), pa.array(_APART, pa.int8()))))
            with self._lock:
                self.notes += map(json.loads, summaries.column("note").to_pylist())
                self._evidence += summaries.column("raw").drop_null().to_pylist()
                self._halves += halves.to_pylist() if halves.num_rows else []
                self._keep(_OTHERS, others)
            outcomes = outcomes.filter(is_row) if count else outcomes.slice(0, 0)
        if count:
            with self._lock:
                for name, rows in _runs(outcomes):
                    self._keep(name, rows)

    def take_halves(self) -> list[dict[str, Any]]:
        """Return the halves of updates that wait, with the columns of `outcome_rows`, and keep them no longer."""
        halves, self._halves = self._halves, []
        return halves

    def take_evidence(self) -> list[bytes]:
        """Return the evidence of the tasks that have some, and keep it no longer."""
        evidence, self._evidence = self._evidence, []
        return evidence

    def _keep(self, name: str, rows: pa.RecordBatch) -> None:
        if not rows.num_rows:
            return
        self._held.setdefault(name, []).append(rows)
        self._size += rows.nbytes
        self._sizes[name] += rows.nbytes
        if self._size > self._room:
            self._spill()

    def _spill(self) -> None:
        """Write to files what is held."""
        if self._spilled is None:
            if self._folder is not None:
                self._folder.mkdir(parents=True, exist_ok=True)
            self._spilled = Path(tempfile.mkdtemp(prefix="batch-", dir=self._folder))
        while self._held:
            name, batches = self._held.popitem()
            is_row = name != _OTHERS
            whole = pa.Table.from_batches(batches).combine_chunks()
            if is_row not in self._writers:
                self._paths[is_row] = str(self._spilled / ("rows.arrow" if is_row else "others.arrow"))
                self._writers[is_row] = pa.ipc.new_file(self._paths[is_row], whole.schema)
            for batch in whole.to_batches():
                self._writers[is_row].write_batch(batch)
                self._numbers.setdefault(name, []).append(self._counts[is_row])
                self._counts[is_row] += 1
        self._size = 0

    def _batches(self, name: str) -> Iterator[pa.RecordBatch]:
        """Yield what is kept under a name, in the order in which it came."""
        if name in self._numbers:
            is_row = name != _OTHERS
            with self._lock:
                if is_row not in self._closed:
                    self._writers[is_row].close()
                    self._closed.add(is_row)
            # What is read of a mapped file counts as memory of this process as long as it is mapped, so each who reads
            # maps it anew.
            reader = pa.ipc.open_file(pa.memory_map(self._paths[is_row]))
            yield from map(reader.get_batch, self._numbers[name])
        yield from self._held.get(name, ())

    def _table(self, name: str, schema: pa.Schema) -> pa.Table:
        return pa.Table.from_batches(list(self._batches(name)), schema)

    def questions(self) -> list[Change]:
        """Return the changes that tasks ask to learn."""
        found: list[Change] = []
        for batch in self._batches(_OTHERS):
            asked = batch.filter(pc.equal(batch.column("what"), STATEMENT)).column("outlines")
            found += map(Change.from_avro, pc.list_flatten(asked).to_pylist())
        return found

    def rows(self, name: str, count: int) -> KeptRows:  # noqa: ARG002  as that of Spark
        """Return what reads the rows of the table with a name; several threads may read."""
        return KeptRows(partial(self._table, name, ROWS), self._sizes[name])

    def write_rows(self, folder: Path) -> int:
        """Write the rows of all tables below a folder, those of each to `number=NAME`; return how many there are."""
        names = sorted({*self._held, *self._numbers} - {_OTHERS})
        return sum(self.files.write(self._table(name, ROWS), folder / f"number={name}") for name in names)

    def rejects(self) -> pa.Table:
        """Return the rejects, with the columns of `outcome_rows.SCHEMA`."""
        batches = [batch.filter(_are_rejects(batch)) for batch in self._batches(_OTHERS)]
        return pa.Table.from_batches(batches) if batches else pa.table({})

    def write_rejects(self, folder: str, batch: int, now: datetime, count: int) -> None:
        """Write the `count` rejects of a batch, instead of those that it wrote when it was run before.

        Raises `JobError` for a folder that is not of this machine.
        """
        local = local_folder(f"{folder}/batch={batch}")
        if local is None:
            raise JobError(f"rejects are written to a local folder, which {folder} is not: run it on Spark")
        new = local.with_name(f"_{local.name}.new")
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(parents=True)
        written = 0
        with (new / _REJECTS).open("wb") as file:
            for line in self.reject_lines(now):
                file.write(line + b"\n")
                written += 1
        check_written(new, written, count)
        shutil.rmtree(local, ignore_errors=True)
        new.rename(local)

    def reject_lines(self, now: datetime) -> Iterator[bytes]:
        """Yield the rejects as lines of JSON, as Spark writes them."""
        for row in self._reject_rows():
            yield reject_line(row, now)

    def _reject_rows(self) -> Iterator[dict[str, Any]]:
        for batch in self._batches(_OTHERS):
            for start in range(0, batch.num_rows, _PIECE):
                piece = batch.slice(start, _PIECE)
                yield from piece.filter(_are_rejects(piece)).to_pylist()

    def reject_reasons(self) -> list[RejectReason]:
        """Return the rejects by reason, at most 200 reasons, each with an example, in the order that they have on Spark."""
        counts: Counter[tuple[str, str, str]] = Counter()
        examples: dict[tuple[str, str, str], tuple[Any, ...]] = {}
        for row in self._reject_rows():
            format, path, sentence = reason_key(row["format"], row["path"], row["reason"])
            key = format, path, kind_of(sentence)
            counts[key] += 1
            example = (*[(row[name] is not None, row[name]) for name in PLACE], sentence)
            examples[key] = min(examples.get(key, example), example, key=_comparable)
        found = []
        for key, count in sorted(counts.items(), key=lambda one: (-one[1], one[0]))[:MOST_REASONS]:
            *at, sentence = examples[key]
            place = dict(zip(PLACE, [value for _, value in at], strict=True))
            found.append(RejectReason(*key, count, place_of(place), sentence))
        return found

    def first_rejects(self, count: int) -> list[bytes]:
        """Return the bytes of some rejects, at most `count`."""
        rows = self._reject_rows()
        return [row["raw"] for row, _ in zip(rows, range(count), strict=False)]

    def free(self) -> None:
        """Let the outcomes go, and remove their files."""
        self._held.clear()
        for writer in self._writers.values():
            writer.close()
        self._writers.clear()
        self._numbers.clear()
        if self._spilled is not None:
            shutil.rmtree(self._spilled, ignore_errors=True)


ROWS: Final = pa.schema(
    [
        ("version", pa.int32()),
        ("operation", pa.string()),
        ("order", pa.binary()),
        ("key", pa.binary()),
        ("payload", pa.binary()),
        ("headers", pa.string()),
    ]
)
"""The columns of the rows of a table, those of `OF_ROWS`."""


class LocalFiles:
    """Folders of Parquet files with the rows of a table, as Arrow's tables."""

    def read(self, folder: Path) -> pa.Table:
        """Return the rows in a folder, whichever runner wrote them."""
        found = [_read_rows(path) for path in sorted(folder.rglob("*.parquet"))]
        return pa.concat_tables(found) if found else ROWS.empty_table()

    def write(self, rows: pa.Table, folder: Path) -> int:
        """Write rows to a folder that is not there; return how many there are."""
        folder.mkdir(parents=True)
        pq.write_table(rows, folder / "part-00000.parquet", use_dictionary=["operation", "version"])
        return int(rows.num_rows)

    def versions(self, rows: pa.Table) -> list[int]:
        """Return the versions of rows."""
        found: list[int] = pc.unique(rows.column("version")).to_pylist()
        return found

    def behind(self, rows: pa.Table, order: bytes) -> pa.Table:
        """Return rows whose orders come behind one, with which they begin then."""
        made = pc.binary_join_element_wise(pa.scalar(order), rows.column("order"), pa.scalar(b""))
        return rows.set_column(rows.schema.get_field_index("order"), "order", made)

    def translated(self, rows: pa.Table, payloads: ShardPayloads) -> pa.Table:
        """Return rows of a shard under the schema that it shares with others."""
        return payloads.translate(rows)


def _read_rows(path: Path) -> pa.Table:
    """Return the rows in a file; those that an earlier version wrote have no headers."""
    rows = pq.read_table(path, partitioning=None)
    for field in (one for one in ROWS if one.name not in rows.column_names):
        rows = rows.append_column(field, pa.nulls(len(rows), field.type))
    return rows.select(list(OF_ROWS)).cast(ROWS)


def reject_line(row: Mapping[str, Any], now: datetime, *, has_bytes: bool = True) -> bytes:
    """Return a reject as a line of JSON, as Spark writes it; its message and key only with `has_bytes`."""
    raw, key = (_base64(row[name]) if has_bytes else None for name in ("raw", "record_key"))
    facts = {name: row[name] for name in (*PLACE, "format", "path", "reason")}
    members = {"raw": raw, "record_key": key, **facts, "time": now.isoformat(), "clock": row["note"]}
    return trimmed(orjson.dumps(members))


def _base64(value: bytes | None) -> str | None:
    return None if value is None else base64.b64encode(value).decode()


def _are_rejects(batch: pa.RecordBatch) -> pa.Array:
    what = batch.column("what")
    return pc.or_(pc.equal(what, REJECT), pc.and_(pc.equal(what, STATEMENT), batch.column("reason").is_valid()))


def _runs(outcomes: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield the names of tables with their rows, one after another."""
    ends = pc.run_end_encode(outcomes.column("number"))
    rows = pa.RecordBatch.from_arrays([outcomes.column(name) for name in OF_ROWS], schema=ROWS)
    start = 0
    for name, end in zip(ends.values.to_pylist(), ends.run_ends.to_pylist(), strict=True):
        yield name, rows.slice(start, end - start)
        start = end


def _comparable(example: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return an example so that nulls come first, as on Spark."""
    *at, sentence = example
    return (*[pair if pair[0] else (False,) for pair in at], sentence)


_ROWS_AT_ONCE: Final = 4096


def in_order(rows: pa.Table, *columns: str) -> Iterator[pa.RecordBatch]:
    r"""Yield rows sorted by columns, of which bytes compare as they do on Spark, in batches of at most 4,096.

    Rows that are not sorted are copied once. Binary columns of the batches may be large ones.

    >>> [one.to_pydict() for one in in_order(pa.table({"order": [b"\xff", b"a"], "n": [1, 2]}), "order")]
    [{'order': [b'a', b'\xff'], 'n': [2, 1]}]
    """
    keys: Any = [(name, "ascending") for name in columns]
    indices = pc.sort_indices(rows, keys)
    if not pc.all(pc.equal(indices, pa.array(range(len(indices)), pa.uint64()))).as_py():
        # The bytes of one column may be more than an array of small ones holds.
        rows = rows.cast(pa.schema([_widened(field) for field in rows.schema])).combine_chunks()
        for start in range(0, len(indices), _ROWS_AT_ONCE):
            yield from rows.take(indices.slice(start, _ROWS_AT_ONCE)).to_batches()
        return
    yield from rows.to_batches(max_chunksize=_ROWS_AT_ONCE)


def _widened(field: pa.Field) -> pa.Field:
    large = {pa.binary(): pa.large_binary(), pa.string(): pa.large_string()}
    return field.with_type(large.get(field.type, field.type))

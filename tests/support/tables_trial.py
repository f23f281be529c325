"""The command `tables` in chunks and threads held against one line after the other, which goes the exact way.

    python tests/support/tables_trial.py 20 [SEED] [FORMAT ...]

tries as many files of each format, most of them with messages of which a value is another, some damaged, and with
statements in between, with several numbers of threads and sizes of chunks. All have to write the same folder and rejects,
and to say the same. Only the sync markers of files are drawn by lot.
"""

from __future__ import annotations

import importlib
import json
import sys
import tempfile
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple
from unittest.mock import patch

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from click.testing import CliRunner

from cdcavro.avro.container import ContainerReader
from cdcavro.change.model import DML
from cdcavro.cli import main
from cdcavro.files import lines
from cdcavro.files.lines import CHUNK_BYTES, read_chunks, read_lines
from cdcavro.table.writing.line_typer import LineTyper
from cdcavro.table.writing.message_typer import MessageTyper
from cdcavro.transcoding.mapping import to_changes
from cdcavro.wire.formats import FORMATS
from support.mutations import mutated
from support.rows_trial import of_type, shop, with_value

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# Threads, and the bytes of a chunk.
RUNS = ((1, 300), (1, CHUNK_BYTES), (2, 20_000), (5, 3_000))


class Outcome(NamedTuple):
    """What a run left: its exit code, what it said, its rejects, and the files of its folder without sync markers."""

    code: int
    stdout: str
    stderr: str
    rejects: bytes
    files: dict[str, bytes]


class Taken:
    """How many lines the engine took in chunks. Attribute: `lines` (int)."""

    def __init__(self) -> None:
        self.lines = 0


def run(file: Path, *options: str, jobs: int = 1, size: int = CHUNK_BYTES, taken: Taken | None = None) -> Outcome:
    """Run the command with a number of threads and a size of chunks."""
    made: list[LineTyper] = []

    class Watched(LineTyper):
        def __init__(self, *args: Any, **facts: Any) -> None:
            super().__init__(*args, **facts)
            made.append(self)

    module = importlib.import_module("cdcavro.cli.commands.tables")
    with (
        patch.object(lines, "read_chunks", partial(read_chunks, size=size)),
        patch.object(module, "LineTyper", Watched),
    ):
        outcome = _run(file, "--jobs", str(jobs), *options)
    if taken is not None:
        taken.lines += sum(one.taken for one in made)
    return outcome


def one_by_one(file: Path, *options: str) -> Outcome:
    """Run the command without the engine of rows, over the lines of the file as they come."""

    def left(*_: object) -> Iterator[Any]:
        return read_lines(str(file))

    with (
        patch.object(LineTyper, "left", left),
        patch.object(MessageTyper, "type_by_pattern", lambda *_: None),
        patch.object(MessageTyper, "learn", lambda *_: False),
    ):
        return _run(file, *options)


def _run(file: Path, *options: str) -> Outcome:
    with tempfile.TemporaryDirectory() as place:
        out, rejects = Path(place, "out"), Path(place, "rejects")
        arguments = ["tables", str(file), "--out", str(out), "--rejects", str(rejects), *options]
        done = CliRunner().invoke(main, arguments, catch_exceptions=False)
        files = {
            path.relative_to(out).as_posix(): _without_marker(path) for path in sorted(out.rglob("*")) if path.is_file()
        }
        left = rejects.read_bytes() if rejects.exists() else b""
        assert not [path for path in Path(place).iterdir() if path not in {out, rejects}]
        return Outcome(done.exit_code, done.stdout, done.stderr, left, files)


def _without_marker(path: Path) -> bytes:
    if path.suffix != ".avro":
        return path.read_bytes()
    with path.open("rb") as stream:
        marker = ContainerReader(stream, str(path)).framing.marker
    return path.read_bytes().replace(marker, b"-")


def compare(file: Path, *options: str) -> tuple[Outcome, int]:
    """Return what a file becomes, and how many lines were taken in chunks. Raises `AssertionError` if runs differ."""
    wanted, taken = one_by_one(file, *options), Taken()
    for jobs, size in RUNS:
        found = run(file, *options, jobs=jobs, size=size, taken=taken)
        for name, own, other in zip(Outcome._fields, found, wanted, strict=True):
            assert own == other, f"{name} with {jobs} threads and chunks of {size} bytes"
    return wanted, taken.lines


@cache
def rows(format: str) -> list[bytes]:
    """Return the messages of a format that change rows, and those of a table with one version."""
    messages = [*shop(format), *30 * of_type(format, "STRING" if format == "datahub_blob" else "varchar(20)")]
    return [message for message in messages if {change.op for change in to_changes(message, format)} & DML]


def stream(format: str, random: Random, count: int) -> Iterator[bytes]:
    """Yield the messages of the database, and then some of them again, with other values, damaged, and with statements."""
    yield from shop(format)
    yield from 150 * rows(format)[-1:]
    odd = (with_value, mutated, _empty, lambda random, _: random.choice(shop(format)))
    while count > 0:
        some, share = random.choices(rows(format), k=random.choice((1, 2, 5))), random.choice((0, 0, 0.02, 0.3))
        for _ in range(random.choice((5, 50, 200))):
            message = random.choice(some)
            if random.random() < share:
                message = random.choice(odd)(random, message)
            yield message.replace(b"\n", b" ")
            count -= 1
    # What was drawn may all be sound.
    yield rows(format)[-1][:-1]


def _empty(_random: Random, _message: bytes) -> bytes:
    return b""


class Numbered:
    """Makes messages of Canal's, one after the other. Attribute: `number` (int), the last one's."""

    def __init__(self) -> None:
        self.number = 0

    def row(self, table: str, row: dict[str, str | None], types: dict[str, str], type: str = "INSERT") -> bytes:
        """Return a change of a row."""
        return self._message(table, type=type, pkNames=["id"], mysqlType=types, data=[row])

    def statement(self, table: str, type: str, sql: str) -> bytes:
        """Return a statement."""
        return self._message(table, type=type, isDdl=True, sql=sql)

    def _message(self, table: str, **members: Any) -> bytes:
        self.number += 1
        own = {"database": "s", "table": table, "id": self.number, "es": self.number}
        return json.dumps(own | members, separators=(",", ":")).encode()


def evolving(random: Random, count: int, tables: int, edits: float = 0.01) -> Iterator[bytes]:
    """Yield rows of tables of which some are altered, emptied, renamed, or dropped, or grow without a statement."""
    made, columns = Numbered(), {f"t{i}": {"id": "int", "a": "varchar(20)"} for i in range(tables)}
    for _ in range(count):
        table = random.choice(list(columns)[: random.choice((1, 3, tables))])
        types = columns[table]
        if random.random() < edits:
            yield _edit(random, made, columns, table)
            continue
        row: dict[str, str | None] = {name: str(random.randrange(9)) for name in types}
        if random.random() < edits:
            row[random.choice(list(row))] = random.choice(("x", None, "99999999999999999999"))
        yield made.row(table, row, dict(types), random.choice(("INSERT", "INSERT", "DELETE")))


def _edit(random: Random, made: Numbered, columns: dict[str, dict[str, str]], table: str) -> bytes:
    """Return a statement, or a row with a new column, and change the columns of the tables as it does."""
    number, types = made.number, columns[table]
    match random.randrange(6):
        case 0:
            return made.statement(table, "TRUNCATE", f"TRUNCATE TABLE {table}")
        case 1:
            columns[table] = random.choice((types, {"id": "int", "b": "int"}))
            return made.statement(table, "ERASE", f"DROP TABLE {table}")
        case 2:
            columns[f"t{number}"] = types if random.random() < 0.5 else columns.pop(table)
            return made.statement(table, "RENAME", f"RENAME TABLE {table} TO t{number}")
        case 3:
            return made.statement(table, "ALTER", f"ALTER TABEL {table} ADD x INT")
        case 4:
            types[f"c{number}"] = "int"
            return made.statement(table, "ALTER", f"ALTER TABLE {table} ADD c{number} INT")
    types[f"c{number}"] = "int"
    return made.row(table, dict.fromkeys(types, "1"), dict(types))


def write(path: Path, messages: Iterator[bytes] | Sequence[bytes], end: bytes = b"\n") -> Path:
    """Write messages as lines; `end` stands behind the last one."""
    path.write_bytes(b"\n".join(messages) + end)
    return path


def _say(number: int, name: str, found: Outcome, taken: int) -> None:
    sys.stdout.write(f"{number} {name} {found.stdout.splitlines()[-1]}, {taken:,} lines taken\n")


def trial() -> None:
    """Try files of the formats that are named, or of all."""
    count, seed, *formats = [*sys.argv[1:], "0"] if len(sys.argv) == 2 else sys.argv[1:]
    with tempfile.TemporaryDirectory() as place:
        for number in range(int(count)):
            for format in formats or FORMATS:
                random = Random(f"{format} {seed} {number}")
                file = write(Path(place, "in.jsonl"), stream(format, random, 3000), random.choice((b"", b"\n")))
                found, taken = compare(file, "--from", format, "--on-misfit", random.choice(("keep", "reject")))
                _say(number, format, found, taken)
            random = Random(f"{seed} {number}")
            lines = evolving(random, 3000, random.choice((1, 5, 150)), random.choice((0, 0.001, 0.02)))
            file = write(Path(place, "in.jsonl"), lines)
            found, taken = compare(file, "--on-misfit", random.choice(("keep", "reject")))
            _say(number, "evolving", found, taken)


if __name__ == "__main__":
    trial()

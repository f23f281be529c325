"""The commands on formats: `formats` and `schema` print what cdcavro knows; `inspect`, `sniff`, `validate` look at messages."""

from __future__ import annotations

import shlex
import sys
from base64 import b64decode
from collections import Counter
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

import cdcavro
from cdcavro.change.model import DDL, DML, Arrival, replace
from cdcavro.cli.console import MAX_ROWS, SHOWN, Counts, Faults, Progress, VersionNotice, json_line, say, table
from cdcavro.cli.group import REJECTED, example
from cdcavro.cli.options import (
    FormatName,
    inputs_argument,
    json_option,
    max_rejects_option,
    mixed_format_option,
    processes_option,
)
from cdcavro.errors import CdcAvroError, MessageError, TextError, number_of, plain
from cdcavro.exact.jsontext import parse
from cdcavro.files.block_codec import ChunkSniffer, ChunkValidator, write_in_order
from cdcavro.files.lines import SPLIT
from cdcavro.files.rejects import Reject
from cdcavro.files.streams import STANDARD, check_standard, shown_name, total_size
from cdcavro.transcoding.mapping import to_changes
from cdcavro.transcoding.transcoder import count_unzoned
from cdcavro.wire.formats import REGISTRY, get_format
from cdcavro.wire.kafka import KEY, VALUE, is_record
from cdcavro.wire.sniff import MIXED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cdcavro.change.model import Change
    from cdcavro.files.block_codec import Tally
    from cdcavro.files.lines import Chunk, Inputs, Line, Range
    from cdcavro.files.rejects import MaxRejects
    from cdcavro.table.table_schema import TableSchema


@click.command(epilog=example("cdcavro formats"))
@json_option
def formats(*, as_json: bool) -> None:
    """List the formats that cdcavro knows.

    Each is listed with its name, record, fingerprint and description. The fingerprint is the CRC-64-AVRO of the
    schema's canonical form, in the byte order of the single-object encoding. With --json there is an object for
    each format, one per line.
    """
    rows = [
        (name, format.envelope.name, format.schema.fingerprint, _first_sentence(format.envelope.doc))
        for name, format in REGISTRY.items()
    ]
    if as_json:
        for row in rows:
            name, record, fingerprint, doc = map(str, row)
            click.echo(json_line(format=name, record=record, fingerprint=fingerprint, description=doc))
        return
    click.echo(table(("format", "record", "fingerprint", "what it is"), rows))


def _first_sentence(doc: str) -> str:
    return doc.partition(" Source: ")[0]


@click.command(epilog=example("cdcavro schema oms_canal > oms_canal.avsc"))
@click.argument("name", type=FormatName())
@click.option("--canonical", is_flag=True, help="Print the Parsing Canonical Form instead.")
@click.option("--fingerprint", is_flag=True, help="Print the CRC-64-AVRO fingerprint instead.")
def schema(name: str, *, canonical: bool, fingerprint: bool) -> None:
    """Print the wire schema of a format."""
    if canonical and fingerprint:
        raise click.UsageError("--canonical and --fingerprint exclude each other")
    wire_schema = get_format(name).schema
    if canonical:
        click.echo(wire_schema.canonical)
    elif fingerprint:
        click.echo(wire_schema.fingerprint)
    else:
        click.echo(wire_schema.json.rstrip("\n"))


@click.command(epilog=example("cdcavro sniff changes.jsonl | sort | uniq -c"))
@inputs_argument
@processes_option
@json_option
@click.pass_context
def sniff(ctx: click.Context, inputs: Inputs, jobs: int, *, as_json: bool) -> None:
    """Print the format of each message, one per line.

    With several files, each line starts with the message's file and line number; with --json, each is an object that
    always has them. Messages of no known format are reported on standard error; the exit code is then 1. If a file has
    messages of several formats, the first line of each is reported there, too.
    """
    faults, out = Faults(inputs), check_standard(sys.stdout)
    before = 0
    with Progress("sniffing", total_size(inputs.files), shares_terminal=True) as progress:
        for file in inputs.files:
            _, chunks = inputs.chunks(file, MIXED, progress.advance)
            first: dict[str, int] = {}
            for tally in _look(ChunkSniffer(), inputs, file, chunks, jobs, before, faults):
                out.write("".join(_told(tally, inputs, before, first, as_json=as_json)))
                before += tally.lines
            if len(first) > 1:
                lines = ", ".join(f"{format} from line {line:,} on" for format, line in first.items())
                say(f"{shown_name(file)}: messages of {len(first)} formats: {lines}")
    faults.finish()
    ctx.exit(REJECTED if faults.count else 0)


def _told(tally: Tally, inputs: Inputs, before: int, first: dict[str, int], *, as_json: bool) -> Iterator[str]:
    """Yield what is printed of some lines that follow `before` others: formats, and with several files the places.

    The first line of each format in the file is noted.
    """
    number = before
    for (format, operation), count in tally.kinds:
        number += count
        if operation is None:
            continue
        if format not in first:
            first[format] = inputs.place(number - count + 1)[1]
        if len(inputs.files) == 1 and not as_json:
            yield f"{format}\n" * count
            continue
        for file, line in map(inputs.place, range(number - count + 1, number + 1)):
            name = shown_name(file)
            yield f"{json_line(file=name, line=line, format=format)}\n" if as_json else f"{name}:{line}: {format}\n"


def _look(
    work: ChunkSniffer | ChunkValidator,
    inputs: Inputs,
    file: str,
    chunks: Iterator[Chunk | Range],
    jobs: int,
    before: int,
    faults: Faults,
) -> Iterator[Tally]:
    """Look at a file, which follows `before` lines of others; report its faults, and yield what is told of its parts."""
    inputs.begin(file, before)
    with closing(write_in_order(work, chunks, jobs, None, in_processes=True)) as tallies:
        for tally in tallies:
            for error, line in tally.faults:
                faults.add(error, line._replace(number=before + line.number))
            before += tally.lines
            yield tally


@click.command(
    short_help="Check that messages survive the conversion to Avro and back.",
    epilog=example("cdcavro validate changes.jsonl --format oms_canal"),
)
@inputs_argument
@mixed_format_option
@max_rejects_option
@processes_option
@json_option
@click.pass_context
def validate(
    ctx: click.Context, inputs: Inputs, format: str, max_rejects: MaxRejects, jobs: int, *, as_json: bool
) -> None:
    """Check that each message survives the conversion to Avro and back.

    The two JSON values are compared exactly. Faulty messages are reported on standard error; a table of counts
    by format and operation follows at the end, with --json as one object. The exit code is 1 if messages were rejected, unless
    --max-rejects allows them.
    """
    counts, versions = Counts(), VersionNotice()
    faults = Faults(inputs)
    with Progress("validating", total_size(inputs.files)) as progress:
        for file in inputs.files:
            name, chunks = inputs.chunks(file, format, progress.advance)
            for tally in _look(ChunkValidator(name), inputs, file, chunks, jobs, counts.read, faults):
                versions.say(tally.note)
                for (told, operation), count in tally.kinds:
                    counts.reject(told, count) if operation is None else counts.add(told, operation, count)
    faults.finish()
    click.echo(counts.json("valid") if as_json else f"{counts.table()}\n{counts.balance('valid')}")
    ctx.exit(0 if max_rejects.allows(counts.rejected, counts.read) else REJECTED)


# How many messages are looked at unless all are asked for.
_FIRST: Final = 10_000
# How many columns of a table are listed, and how many are shown on its line.
_MOST_COLUMNS: Final = 4_096
# How many statements are followed: what each costs grows with those before it about the same table.
_MOST_STATEMENTS: Final = 200
_SHOWN_COLUMNS: Final = 8
# What is in front of a payload: a byte, and an id of four bytes, or of eight.
_MAGIC: Final = b"\0"
_ID_BYTES: Final = 4
_FRAMED: Final = (
    "some messages are Kafka records in Avro with ids of schemas: `cdcavro unframe` decodes them with a registry"
)
# In characters: the error of a message of no known format names them all.
_SHOWN_FAULT: Final = 240


@click.command(
    short_help="Show what files of messages contain, and what to run next.",
    epilog=example("cdcavro inspect changes.jsonl"),
)
@inputs_argument
@click.option("--all", "every", is_flag=True, help=f"Read all messages. Default: the first {_FIRST:,}.")
@click.option("--json", "is_json", is_flag=True, help="Print JSON, for a program that reads it.")
@click.pass_context
def inspect(ctx: click.Context, inputs: Inputs, *, every: bool, is_json: bool) -> None:
    """Show what files of messages contain, and which commands to run next.

    This shows the formats, the tables with their keys, columns and operations, and the first faults with their lines.
    The format of every message is detected, so a file may have several. The exit code is 1 if messages are faulty.
    """
    found = _Inspection(inputs)
    with Progress("inspecting", total_size(inputs.files)) as progress:
        for file in inputs.files:
            for line in inputs.lines(file, progress.advance):
                if not every and found.read == _FIRST:
                    found.is_whole = False
                    break
                found.add(line)
            if not found.is_whole:
                break
    found.take_declared()
    if is_json:
        click.echo(json_line(**found.value()))
    else:
        found.print()
    ctx.exit(REJECTED if found.faulty else 0)


class _Inspection:
    """What the messages of some files are. Attributes: `read` and `faulty` (int), numbers of messages; `is_whole` (bool)."""

    def __init__(self, inputs: Inputs) -> None:
        from cdcavro.table.tables import Tables  # noqa: PLC0415  the other commands here need none

        self._inputs = inputs
        self.read = self.faulty = self.unzoned = 0
        self.is_whole = True
        self._formats: Counter[str] = Counter()
        self._first: dict[str, str] = {}
        self._others: Counter[str] = Counter()
        self._tables: dict[tuple[str, ...], _InspectedTable] = {}
        # The keys that statements say.
        self._keys: dict[tuple[str, ...], tuple[str, ...]] = {}
        # The tables that statements declare.
        self._declared = Tables()
        self._more_tables = 0
        self._faults: list[Reject] = []
        self._is_multiline = self._is_framed = False
        # The formats of faulty messages, None for one of no known format.
        self._refused: set[str | None] = set()

    def add(self, line: Line) -> None:
        """Look at the next line."""
        self.read += 1
        file, number = self._inputs.place(line.number)
        format = None
        try:
            message = line.message()
            format = cdcavro.sniff(message)
            changes = to_changes(message, format)
        except MessageError as error:
            error.format = error.format or format
            self.faulty += 1
            self._refused.add(error.format)
            self._is_framed = self._is_framed or _is_framed(line.raw)
            is_begun = number == 1 and line.raw.lstrip()[:1] in (b"{", b"[") and "ends too early" in error.got
            self._is_multiline |= line.is_opening or is_begun
            if len(self._faults) < SHOWN:
                self._faults.append(Reject.of(error, line._replace(number=number), shown_name(file)))
            return
        self._formats[format] += 1
        self._first.setdefault(format, f"{shown_name(file)}:{number}")
        self.unzoned += count_unzoned(changes)
        for change in changes:
            self._add_change(change)
            if change.op in DDL and sum(self._others[op] for op in DDL) <= _MOST_STATEMENTS:
                # One that is not understood is told where tables are made.
                with suppress(CdcAvroError):
                    self._declared.learn(replace(change, place=Arrival(file=shown_name(file), line=number)))

    def _add_change(self, change: Change) -> None:
        source = change.source
        name = tuple(part for part in (source.database, source.schema, source.table) if part is not None)
        if change.op not in DML:
            self._others[change.op] += 1
            if change.key and len(self._keys) < MAX_ROWS:
                self._keys[name] = change.key
            return
        if name not in self._tables and len(self._tables) >= MAX_ROWS:
            self._more_tables += 1
            return
        self._tables.setdefault(name, _InspectedTable(self._keys.get(name, ()))).add(change)

    def take_declared(self) -> None:
        """Take keys and types that rows do not state from the statements."""
        for schema in [one.schema for one in self._declared.tables if not one.is_gone]:
            parts = schema.table.database, schema.table.schema, schema.table.table
            name = tuple(part for part in parts if part is not None)
            if name in self._tables:
                self._tables[name].take_declared(schema)

    def value(self) -> dict[str, Any]:
        """Return all of it as a value of JSON."""
        tables = [{"table": list(name), **found.value()} for name, found in sorted(self._tables.items())]
        names = ("file", "line", "format", "path", "reason")
        return {
            "read": self.read,
            "whole": self.is_whole,
            "formats": [
                {"format": name, "messages": count, "first": self._first[name]}
                for name, count in self._formats.most_common()
            ],
            "tables": tables,
            "rows_of_more_tables": self._more_tables,
            "other_changes": dict(self._others),
            "faulty": self.faulty,
            "faults": [{name: getattr(fault, name) for name in names} for fault in self._faults],
            "times_without_zone": self.unzoned,
            "next": self._next(),
        }

    def print(self) -> None:
        """Print all of it for a person."""
        read = f"read {number_of(self.read, 'message')}" if self.is_whole else f"read the first {self.read:,} messages"
        click.echo(f"{read}, {self.faulty:,} faulty" + ("" if self.is_whole else "; --all reads all"))
        if self._formats:
            rows = [(name, f"{count:,}", self._first[name]) for name, count in self._formats.most_common()]
            click.echo("\n" + table(("format", "messages", "first"), rows))
        self._print_tables()
        if self._others:
            click.echo(
                "\nother changes: " + ", ".join(f"{name} {count:,}" for name, count in sorted(self._others.items()))
            )
        if self._faults:
            click.echo("\nfaults:")
            for fault in self._faults:
                said = plain(str(fault))
                click.echo(f"  {said if len(said) <= _SHOWN_FAULT else said[:_SHOWN_FAULT] + '...'}")
            if self.faulty > len(self._faults):
                click.echo(f"  ... and {self.faulty - len(self._faults):,} more")
        for sentence in self._notes():
            say(sentence)
        click.echo("\nnext:")
        for command in self._next():
            click.echo(f"  {command}")

    def _print_tables(self) -> None:
        if not self._tables:
            return
        kinds = sorted({kind for found in self._tables.values() for kind in found.operations})
        listed = sorted(self._tables.items())
        rows = [
            (
                ".".join(name) or "(unnamed)",
                *[f"{found.operations[kind]:,}" for kind in kinds],
                ", ".join(found.key) or "none",
            )
            for name, found in listed
        ]
        click.echo("\n" + table(("table", *kinds, "key"), rows))
        if self._more_tables:
            click.echo(f"... and {number_of(self._more_tables, 'row')} of more tables")
        click.echo()
        for name, found in listed:
            columns = [f"{column} {type}".rstrip() for column, type in found.columns.items()]
            more = f", and {len(columns) - _SHOWN_COLUMNS} more" if len(columns) > _SHOWN_COLUMNS else ""
            click.echo(plain(f"{'.'.join(name) or '(unnamed)'}: {', '.join(columns[:_SHOWN_COLUMNS])}{more}"))

    def _notes(self) -> Iterator[str]:
        """Yield what a user should know before going on."""
        if self._is_multiline:
            yield SPLIT
        if self._is_framed:
            yield _FRAMED
        untyped = sum(not any(found.columns.values()) for found in self._tables.values())
        if untyped:
            yield f"{number_of(untyped, 'table')} without declared types: `tables` takes them with --types, `sync` in [tables.types]"
        keyless = sum(not found.key for found in self._tables.values())
        if keyless:
            yield f"{number_of(keyless, 'table')} without a key in these messages: a merge cannot tell the rows apart"
        if self.unzoned:
            yield f"{number_of(self.unzoned, 'time')} without a zone: `tables` and `sync` take it with --zone"

    def _next(self) -> list[str]:
        """Return the commands that go on from here."""
        paths = [*self._inputs.folders, *self._outside()]
        files = " ".join("FILE" if path == STANDARD else _argument(plain(shown_name(path))) for path in paths)
        if not self._formats:
            return [self._next_of_faults(files)]
        if len(self._formats) > 1:
            sync = [f"cdcavro sync --local --once --files {files} --delta lake --state state"]
            return [f"cdcavro validate {files} --format {MIXED}", *(sync if self._is_one else [])]
        (format,) = self._formats
        commands = [f"cdcavro encode {files} --format {format} --out messages.avro"]
        if self._tables:
            commands.append(f"cdcavro tables {files} --format {format} --out tables")
            if self._is_one:
                commands.append(
                    f"cdcavro sync --local --once --files {files} --format {format} --delta lake --state state"
                )
        return commands

    def _next_of_faults(self, files: str) -> str:
        """Return the command that goes on from messages that are all faulty, or from none."""
        if self._is_framed:
            return f"cdcavro unframe {files} --registry URL --out messages.jsonl"
        known = self._refused - {None}
        return f"cdcavro validate {files} --format {known.pop()}" if len(known) == 1 else "cdcavro formats"

    @property
    def _is_one(self) -> bool:
        """Whether there is one file or folder, which `sync` reads, and rows in it."""
        return (
            len(self._inputs.folders) + len(self._outside()) == 1
            and bool(self._tables)
            and STANDARD not in self._inputs.files
        )

    def _outside(self) -> Sequence[str]:
        """Return the files that are not in one of the folders."""
        folders = self._inputs.folders
        return [file for file in self._inputs.files if not any(Path(file).is_relative_to(folder) for folder in folders)]


def _argument(name: str) -> str:
    """Return a file's name as an argument of a command of a shell, which is no option."""
    return shlex.quote(f"./{name}" if name.startswith("-") else name)


def _is_framed(raw: bytes) -> bool:
    """Return whether a line is a Kafka record whose key or value is base64 with the id of a schema in front."""
    try:
        record = parse(raw)
    except TextError:
        return False
    return is_record(record) and any(_has_id(record.get(side)) for side in (KEY, VALUE))


def _has_id(text: Any) -> bool:
    try:
        found = b64decode(text, validate=True)
    except (ValueError, TypeError):
        return False
    return found[:1] == _MAGIC and len(found) > _ID_BYTES


class _InspectedTable:
    """What rows say of a table. Attributes: `operations` (Counter), `key`, `columns` (dict[str, str]), types by name."""

    def __init__(self, key: tuple[str, ...] = ()) -> None:
        self.operations: Counter[str] = Counter()
        self.key = key
        self.columns: dict[str, str] = {}

    def add(self, change: Change) -> None:
        """Count a change of a row."""
        self.operations[change.op] += 1
        self.key = change.key or self.key
        for name in (*(change.before or ()), *(change.after or ())):
            if len(self.columns) < _MOST_COLUMNS:
                self.columns.setdefault(name, "")
        for column in change.columns or ():
            if column.name is not None and (column.name in self.columns or len(self.columns) < _MOST_COLUMNS):
                self.columns[column.name] = column.type or self.columns.get(column.name, "")

    def take_declared(self, schema: TableSchema) -> None:
        """Take the key and the types of columns that rows do not state."""
        self.key = self.key or tuple(schema.key_names)
        for column in schema.columns:
            if column.name in self.columns:
                self.columns[column.name] = self.columns[column.name] or column.type or ""

    def value(self) -> dict[str, Any]:
        """Return it as a value of JSON."""
        columns = [{"name": name, "type": type or None} for name, type in self.columns.items()]
        return {"key": list(self.key), "operations": dict(self.operations), "columns": columns}

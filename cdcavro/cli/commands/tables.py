"""The commands on tables: `tables` types the row changes in a file, `evolve` gives the next version of a table's schema."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from cdcavro.change.model import Arrival, Source, replace
from cdcavro.cli.console import Conversion, Faults, Progress, VersionNotice, say, table
from cdcavro.cli.group import REJECTED, Fault, example
from cdcavro.cli.options import (
    AVRO,
    INPUT,
    OUTPUT,
    Choice,
    check_files,
    connector_options,
    folder_options,
    force_option,
    format_option,
    inputs_argument,
    jobs_option,
    max_rejects_option,
    table_options,
    types_option,
    zone_option,
)
from cdcavro.cli.schema_sources import read_schema
from cdcavro.errors import (
    DdlError,
    FileError,
    MessageError,
    MisfitError,
    OrderError,
    SchemaError,
    SetupError,
    StructureError,
    number_of,
    plain,
    shown,
)
from cdcavro.exact.jsontext import to_bytes
from cdcavro.files.block_codec import start_threads
from cdcavro.files.lines import Line
from cdcavro.files.streams import STANDARD, open_output, shown_name, total_size
from cdcavro.table.catalog import notes_of
from cdcavro.table.columns.column_type import is_known
from cdcavro.table.ddl.parse import parse_ddl
from cdcavro.table.evolution.evolve import evolve as evolve_schema
from cdcavro.table.table_folder import CURRENT, TablesFolder
from cdcavro.table.table_schema import from_schema, schema_text
from cdcavro.table.tables import ABSENT, ERROR, KEEP, ON_MISFIT, UNSTATED, Tables
from cdcavro.table.writing.line_typer import LineTyper
from cdcavro.table.writing.message_typer import MessageTyper
from cdcavro.transcoding.joiner import JoinedChanges, StreamJoiner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from zoneinfo import ZoneInfo

    from cdcavro.avro.schema import Schema
    from cdcavro.change.model import Change
    from cdcavro.cli.options import ConnectorSettings, OutputFolder, StatedTable
    from cdcavro.files.lines import Chunk, Inputs
    from cdcavro.files.rejects import MaxRejects
    from cdcavro.lake.table_files import TableReader
    from cdcavro.table.columns.column_type import TypeOverrides
    from cdcavro.table.history import Table
    from cdcavro.table.table_folder import Container
    from cdcavro.table.tables import TypedChange, TypedPayload

_SHOWN_NOTES: Final = 20
# How many chunks are begun before their turn, and how many blocks wait to be written, for each thread.
_AHEAD: Final = 2
_BLOCKS: Final = 8
# In place of a number of rows.
_NO_ROWS: Final = "none"


@click.command(epilog=example("cdcavro tables changes.jsonl --out tables/ --zone Asia/Shanghai"))
@inputs_argument
@folder_options
@format_option
@table_options
@zone_option
@click.option(
    "--on-misfit",
    type=Choice(ON_MISFIT),
    default=KEEP,
    help="What to do with a value that its column's type cannot hold: keep its text in `unparsed` (the default),"
    " end with an error, or reject its message.",
)
@click.option(
    "--absent",
    type=Choice(ABSENT),
    default=UNSTATED,
    help="What a column missing from the row after a change is: unstated (the default), or null, if the"
    " producer leaves out nulls, as AWS DMS and Maxwell may.",
)
@connector_options
@click.option("--rejects", type=OUTPUT, metavar="FILE", help="Write rejected messages to this file, as JSON lines.")
@max_rejects_option
@jobs_option
def tables(
    *,
    inputs: Inputs,
    out: OutputFolder,
    source: str,
    stated: StatedTable,
    zone: ZoneInfo | None,
    on_misfit: str,
    absent: str,
    connector: ConnectorSettings,
    rejects: str | None,
    max_rejects: MaxRejects,
    jobs: int,
) -> None:
    """Convert row changes to typed Avro files, one folder per table.

    For each version of a table's schema, DIR/TABLE/ contains v1.avsc (the envelope of its changes, in Debezium's
    layout), v1.key.avsc and v1.avro; DIR/tables.json states what led to each version. TABLE is database.table as in
    Avro, with _x20_ for a space and the like; DIR/tables.json has the true name of each. DDL statements create the
    next version; a statement that cannot be parsed is rejected and changes nothing. A table that was dropped and
    created again has two folders: that of the dropped one is DIR/TABLE~2/. With --as parquet there is v1.parquet
    instead of v1.avro, with the columns of the newest version; with --plain v1.avro has these, flat.
    """
    check_files(inputs, rejects)
    _check_outside(out.path, *inputs.files, rejects)
    modes = connector.modes._asdict()
    typed = Tables(given=stated.types, zone=zone, on_misfit=on_misfit, absent=absent, table=stated.table, **modes)
    output = _Output(out, rejects, jobs, is_strict=on_misfit == ERROR)
    write = _write_current if out.is_current else _write_changes
    conversion, is_whole = write(inputs, source, typed, connector.unavailable, output)
    is_fine = is_whole and max_rejects.allows(conversion.rejected, conversion.read)
    click.get_current_context().exit(0 if is_fine else REJECTED)


class _Output(NamedTuple):
    """What a run writes: its folder, the file of rejects (str or None), by how many threads, and if a misfit ends it."""

    folder: OutputFolder
    rejects: str | None
    jobs: int
    is_strict: bool


def _write_changes(
    inputs: Inputs, source: str, typed: Tables, unavailable: str | None, output: _Output
) -> tuple[Conversion, bool]:
    """Write all changes; return what became of the messages, and true."""
    out, threads = output.folder, output.jobs if output.jobs > 1 else 0
    with (
        Progress("reading", total_size(inputs.files), shares_terminal=False) as progress,
        start_threads(output.jobs) as begin,
        TablesFolder(
            out.path, force=out.force, begin=begin, most=_BLOCKS * threads, turn=_other_writer(out, progress)
        ) as folder,
        open_output(output.rejects, force=out.force) if output.rejects else nullcontext() as reject_file,
    ):
        format, files = inputs.open_chunks(source, option="--format", advance=progress.advance)
        conversion = Conversion(faults := Faults(inputs, reject_file), format)
        job = _Job(inputs, format, typed, folder, conversion, is_strict=output.is_strict)
        if format:
            typer = MessageTyper(format, typed, unavailable=unavailable)
            for file, chunks in files:
                lines = LineTyper(typer, folder, file=shown_name(file), begin=begin, ahead=_AHEAD * threads)
                job.type_file(file, lines, (chunk.read() for chunk in chunks), typer)
            job.finish(typer)
        faults.finish()
        folder.finish(typed.tables)
    job.report(typed.tables)
    if out.kind != AVRO or out.is_plain:
        _tell_dropped(typed.tables)
    return conversion, True


def _tell_dropped(tables: Sequence[Table]) -> None:
    """Say which columns have no place in files that all have the columns of the newest version."""
    labels = _labels(tables)
    made = [f"{labels[one.number]}: {step}" for one in tables for steps in one.steps for step in steps]
    dropped = [step for step in made if step.endswith(" dropped")]
    if dropped:
        more = f" and {len(dropped) - _SHOWN_NOTES:,} more" if len(dropped) > _SHOWN_NOTES else ""
        say(
            "these files have the columns of the newest version alone, so what older rows had in dropped ones is only in"
            f" Avro without --plain: {'; '.join(dropped[:_SHOWN_NOTES])}{more}"
        )


def _other_writer(out: OutputFolder, progress: Progress) -> Callable[[Sequence[Container]], None] | None:
    """Return what converts container files to Parquet or plain Avro, None where they stay. Raises `SetupError`."""
    if out.kind == AVRO and not out.is_plain:
        return None
    # pyarrow takes long to import and may not be installed; Avro does not need it.
    from cdcavro.arrow.plain_avro import to_parquet, to_plain  # noqa: PLC0415

    convert, what = (to_plain, "plain Avro") if out.is_plain else (to_parquet, "Parquet")

    def write(containers: Sequence[Container]) -> None:
        progress.restart(f"writing {what}", sum(container.path.stat().st_size for container in containers))
        for container in containers:
            convert(container.path, container.table, container.schema, progress.advance)

    return write


def _write_current(
    inputs: Inputs, source: str, typed: Tables, unavailable: str | None, output: _Output
) -> tuple[Conversion, bool]:
    """Write the current rows of tables; return what became of the messages, and whether each table has its rows."""
    try:
        # pyarrow takes long to import, and may not be installed.
        from cdcavro.lake.table_files import TableReader  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise SetupError(f"{error.name} is not installed: pip install 'cdcavro[arrow]'") from error
    out = output.folder
    with (
        Progress("reading", total_size(inputs.files)) as progress,
        TablesFolder(out.path, force=out.force) as folder,
        open_output(output.rejects, force=out.force) if output.rejects else nullcontext() as reject_file,
    ):
        format, lines = inputs.open_lines(source, option="--format", advance=progress.advance)
        conversion = Conversion(faults := Faults(inputs, reject_file), format)

        def reject(error: MessageError, line: Line) -> None:
            if output.is_strict and isinstance(error, MisfitError):
                raise _misfit_error(error, inputs, line)
            conversion.reject(error, line)

        reader = TableReader(typed, reject, is_current=True, unavailable=unavailable)
        reader.read(inputs, format, lines)
        conversion.read = reader.read_count
        faults.finish()
        labels = _labels(typed.tables)
        rows = [_write_rows(reader, folder, one, labels[one.number]) for one in typed.tables if not one.is_gone]
        folder.finish(typed.tables)
    if rows:
        click.echo(table(("table", "versions", "rows"), rows))
    read, rejected = conversion.read, conversion.rejected
    click.echo(f"read {read:,} = merged {read - rejected:,} + rejected {rejected:,}")
    return conversion, all(count != _NO_ROWS for _, _, count in rows)


def _write_rows(reader: TableReader, folder: TablesFolder, one: Table, label: str) -> tuple[str, str, str]:
    """Write the current rows of a table; return its name, and how many versions and rows it has."""
    from cdcavro.arrow.plain_avro import write_rows  # noqa: PLC0415  see above

    versions = f"{len(one.versions):,}"
    try:
        rows = reader.current_rows(one)
    except (SchemaError, OrderError) as error:
        say(f"{label} is not written: {error}")
        return label, versions, _NO_ROWS
    write_rows(rows, folder.file_of(one, CURRENT, rows.num_rows))
    return label, versions, f"{rows.num_rows:,}"


def _misfit_error(error: MisfitError, inputs: Inputs, line: Line) -> FileError:
    """Return the error that ends a run at a value which its column's type cannot hold."""
    file, number = inputs.place(line.number)
    return FileError(f"{shown_name(file)}:{number}: {error.format}: {error.path}", error.expected, error.got)


class _Job:
    """Types the row changes of a run and writes them. Attribute: `typed` (int), the number of messages with some."""

    def __init__(
        self,
        inputs: Inputs,
        format: str,
        tables: Tables,
        folder: TablesFolder,
        conversion: Conversion,
        *,
        is_strict: bool,
    ) -> None:
        self._inputs, self._format, self._tables, self._folder = inputs, format, tables, folder
        self._conversion, self._is_strict = conversion, is_strict
        self._joiner, self._versions = StreamJoiner(), VersionNotice()
        self.typed = 0

    def type_file(self, file: str, lines: LineTyper, chunks: Iterator[Chunk], typer: MessageTyper) -> None:
        """Type the changes of all lines of the next file, by the engine where it knows their pattern."""
        joiner, before = self._joiner, self._conversion.read
        self._inputs.begin(file, before)
        name = shown_name(file)

        def join(line: Line) -> Sequence[JoinedChanges]:
            message, number = line.message(), line.number - before
            rows = typer.type_by_pattern(message, Arrival(file=name, line=number)) if joiner.passes_whole else None
            if rows is not None:
                self.typed += self._write_rows(rows)
                return ()
            self._versions.see(message, self._format)
            placed = [replace(change, place=_place(change, name, number)) for change in typer.changes(message)]
            return joiner.add(placed, line.number, message)

        left = lines.left(chunks, lambda: joiner.passes_whole)
        # In the first file, which is the only one in most runs, the numbers are those in all files already.
        numbered = (line._replace(number=before + line.number) for line in left) if before else left
        for complete in self._conversion.results(numbered, join):
            self._write(complete, typer)
        self._conversion.read += lines.taken
        self.typed += lines.taken

    def finish(self, typer: MessageTyper) -> None:
        """Type the changes that still wait for other messages at the end of all files."""
        self._write(self._joiner.finish(), typer)

    def _write(self, joined: Sequence[JoinedChanges], typer: MessageTyper) -> None:
        for part in joined:
            try:
                if part.error is not None:
                    raise part.error
                # All changes of a message are typed before any is written, so that it is rejected whole or not at all.
                typed = [typed_change for change in part.changes for typed_change in self._tables.add(change)]
            except (MessageError, DdlError, SchemaError) as error:
                for number, text in part.messages:
                    self._reject(error, Line.of(number, text))
            else:
                self.typed += self._write_rows(typed) * len(part.messages)
                if len(part.messages) == 1:
                    ((number, text),) = part.messages
                    file, line = self._inputs.place(number)
                    typer.learn(to_bytes(text), part.changes, typed, Arrival(file=shown_name(file), line=line))

    def _write_rows(self, typed: Sequence[TypedChange | TypedPayload]) -> bool:
        for row in typed:
            self._folder.write(row)
        return bool(typed)

    def _reject(self, error: MessageError | DdlError | SchemaError, line: Line) -> None:
        if not isinstance(error, MessageError):
            error = StructureError("a statement or columns that the table allows", str(error), format=self._format)
        if self._is_strict and isinstance(error, MisfitError):
            error.format = error.format or self._format
            raise _misfit_error(error, self._inputs, line)
        self._conversion.reject(error, line)

    def report(self, tables: Sequence[Table]) -> None:
        """Print the tables, an account of all messages, the notes on types, and the values that did not fit."""
        labels = _labels(tables)
        rows = [
            (
                labels[table.number],
                f"{len(table.versions):,}",
                f"{self._folder.counts[table.number]:,}",
                self._fate(table),
            )
            for table in tables
        ]
        if rows:
            click.echo(table(("table", "versions", "changes", ""), rows))
        read, rejected = self._conversion.read, self._conversion.rejected
        others = read - rejected - self.typed
        click.echo(f"read {read:,} = typed {self.typed:,} + other {others:,} + rejected {rejected:,}")
        for sentence in _notes(tables):
            say(sentence)
        misfits = [
            (f"{labels[table.number]}.{plain(name)}", count) for table in tables for name, count in self._misfits(table)
        ]
        if misfits:
            listed = ", ".join(f"{name} {count:,}" for name, count in misfits[:_SHOWN_NOTES])
            more = (
                f" and {number_of(len(misfits) - _SHOWN_NOTES, 'more column')}" if len(misfits) > _SHOWN_NOTES else ""
            )
            total = sum(count for _, count in misfits)
            kept = number_of(total, "value that its type cannot carry is/values that their type cannot carry are")
            say(f"{kept} text in unparsed: {listed}{more}")
        if self._tables.zone is None and any(
            _is_instant(table, name) for table in tables for name, _ in self._misfits(table)
        ):
            say("a TIMESTAMP without a zone is an instant only in the source's zone: state it with --zone")

    def _fate(self, table: Table) -> str:
        """Return whether a table was dropped, with its folder if another table has the plain name."""
        folder = self._folder.names[table.number]
        if not table.is_gone:
            return ""
        return f"dropped, in {folder}" if "~" in folder else "dropped"

    def _misfits(self, table: Table) -> list[tuple[str, int]]:
        return self._tables.misfits.get(table.number, Counter()).most_common()


def _place(change: Change, file: str, line: int) -> Arrival:
    """Return where a change arrived: its line, and the topic, partition and offset if its Kafka record states them."""
    return replace(change.place or Arrival(), file=file, line=line)


def _check_outside(out: str, *files: str | None) -> None:
    """Check that no file is inside the folder, which is replaced as a whole. Raises `click.UsageError`."""
    folder = Path(out).resolve()
    for file in files:
        if file not in (None, STANDARD) and Path(str(file)).resolve().is_relative_to(folder):
            raise click.UsageError(f"{click.format_filename(str(file))} is in the folder that this command writes")


def _labels(tables: Sequence[Table]) -> dict[int, str]:
    """Return the names of tables by their numbers, with database and schema if several tables have the same name."""
    names = {table.number: table.schema.table for table in tables}
    places = {(name.database, name.schema, name.table) for name in names.values()}
    counts = Counter(table for _, _, table in places)
    return {
        number: plain(name.table)
        if counts[name.table] == 1
        else ".".join(plain(part) for part in (name.database, name.schema, name.table) if part is not None)
        for number, name in names.items()
    }


def _is_instant(table: Table, name: str) -> bool:
    """Return whether a column of a table holds instants."""
    types = [column.avro for column in table.schema.columns if column.name == name]
    return any(isinstance(avro, dict) and avro.get("logicalType") == "timestamp-micros" for avro in types)


def _notes(tables: Sequence[Table]) -> list[str]:
    notes = notes_of(tables)
    return (
        notes
        if len(notes) <= _SHOWN_NOTES
        else [*notes[: _SHOWN_NOTES - 1], f"... and {len(notes) - _SHOWN_NOTES + 1} more"]
    )


@click.command(epilog=example('cdcavro evolve v1.avsc --ddl "ALTER TABLE orders ADD note VARCHAR(20)" > v2.avsc'))
@click.argument("schema", type=INPUT)
@click.option(
    "--ddl", "statements", required=True, multiple=True, metavar="SQL", help="A DDL statement; may be repeated."
)
@click.option(
    "--db-type", metavar="NAME", help="The database, which decides the dialect, e.g. mysql, OB_ORACLE or postgresql."
)
@types_option
@click.option(
    "--out", default=STANDARD, type=OUTPUT, metavar="FILE", help="The file to write. Default: standard output."
)
@force_option
def evolve(
    *, schema: str, statements: Sequence[str], db_type: str | None, given: TypeOverrides, out: str, force: bool
) -> None:
    """Print the next version of a table's schema.

    SCHEMA is the schema of a row or of an envelope; the next version is the one after the DDL statements. What
    changed, and whether the new schema reads data written with the old one, is reported on standard error.
    """
    current = read_schema(schema)
    for statement in statements:
        evolution = evolve_schema(current, statement, source=Source(db_type=db_type), given=given)
        for step in evolution.steps:
            say(step)
        if evolution.steps:
            say(str(evolution.verdict))
        else:
            _check_table(current, statement, db_type)
            say("nothing changed: the statement is not about a column, a key or the name of this table")
        for sentence in _unknown_types(current, evolution.schema):
            say(sentence)
        current = evolution.schema
    with open_output(out, force=force) as stream:
        stream.write(schema_text(json.loads(current.json), indent=2).encode() + b"\n")


def _check_table(schema: Schema, statement: str, db_type: str | None) -> None:
    """Check that a statement that changed nothing is not about another table. Raises `Fault`."""
    current = from_schema(schema).table
    tables = [
        getattr(step, attribute)
        for step in parse_ddl(statement, db_type, database=current.database)
        for attribute in ("table", "old")
        if hasattr(step, attribute)
    ]
    others = [name for name in tables if name.table != current.table]
    if others and len(others) == len(tables):
        raise Fault(
            f"the statement is about {shown(others[0].table)}, and the schema is that of {shown(current.table)}"
        )


def _unknown_types(old: Schema, new: Schema) -> list[str]:
    """Return a sentence for each column whose new type no database has."""
    before = {(column.name, column.type) for column in from_schema(old).columns}
    return [
        f"column {shown(str(column.name))}: unknown type {shown(column.type)}: a string"
        for column in from_schema(new).columns
        if column.type is not None and (column.name, column.type) not in before and not is_known(column.type)
    ]

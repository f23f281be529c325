"""`tables`: typed tables of the changes in a file."""

from __future__ import annotations

from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from cdcavro.change.model import Arrival, replace
from cdcavro.cli.faults import SHOWN, Faults, Run, say
from cdcavro.cli.group import REJECTED, example
from cdcavro.cli.options import (
    INPUT,
    OUTPUT,
    check_files,
    decimals_option,
    from_option,
    max_rejects_option,
    types_option,
    zone_option,
)
from cdcavro.cli.progress import Progress
from cdcavro.cli.report import table
from cdcavro.errors import DdlError, FileError, MessageError, MisfitError, SchemaError, StructureError
from cdcavro.files.lines import Line, read_lines, told_lines
from cdcavro.files.streams import STANDARD, input_size, open_output
from cdcavro.table.folder import TablesFolder
from cdcavro.table.tables import ERROR, KEEP, ON_MISFIT, Tables
from cdcavro.transcoding.joiner import Joined, StreamJoiner
from cdcavro.transcoding.mapping import to_changes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from zoneinfo import ZoneInfo

    from cdcavro.change.model import Change
    from cdcavro.files.rejects import MaxRejects
    from cdcavro.table.columns.overrides import TypeOverrides
    from cdcavro.table.history import Table

_SHOWN_NOTES: Final = 20


@click.command(epilog=example("cdcavro tables changes.jsonl --out tables/ --zone Asia/Shanghai"))
@click.argument("source", default=STANDARD, type=INPUT, metavar="[INPUT]")
@click.option("--out", required=True, type=click.Path(file_okay=False), metavar="DIR", help="A folder that is made.")
@from_option
@types_option
@zone_option
@click.option(
    "--on-misfit",
    type=click.Choice(ON_MISFIT),
    default=KEEP,
    help="What becomes of a value that its column's type cannot carry: its text is kept in `unparsed` (the default),"
    " the command ends with its error, or its message is rejected.",
)
@decimals_option
@click.option("--rejects", type=OUTPUT, metavar="FILE", help="Write rejected messages here, as JSON lines.")
@max_rejects_option
@click.option("--force", is_flag=True, help="Replace what an earlier `tables` wrote to DIR.")
def tables(
    *,
    source: str,
    out: str,
    own: str,
    given: TypeOverrides,
    zone: ZoneInfo | None,
    on_misfit: str,
    decimals: str,
    rejects: str | None,
    max_rejects: MaxRejects,
    force: bool,
) -> None:
    """Write the changes of rows as Avro, typed, a folder for each table.

    DIR/TABLE/ holds, for each version of the table's schema, v1.avsc (the envelope of its changes,
    in Debezium's layout), v1.key.avsc and v1.avro; DIR/tables.json says what led to each version.
    Statements (DDL) make the next version; one that does not parse is a reject and changes nothing.
    """
    check_files(source, rejects)
    _check_apart(out, source, rejects)
    with (
        Progress("reading", input_size(source), is_in_the_way=False) as progress,
        TablesFolder(out, force=force) as folder,
        open_output(rejects, force=force) if rejects else nullcontext() as dead,
    ):
        lines = read_lines(source, progress.advance)
        own, lines = told_lines(lines, own, file=click.format_filename(source), option="--from")
        typed = Tables(given=given, zone=zone, on_misfit=on_misfit, decimals=decimals)
        faults = Faults(source, dead, shown=SHOWN)
        run = Run(faults, own)
        job = _Job(source, own, typed, folder, run, is_strict=on_misfit == ERROR)
        job.take_all(lines, zone)
        faults.finish()
        folder.finish(typed.tables)
    job.report(typed.tables)
    click.get_current_context().exit(0 if max_rejects.allows(run.rejected, run.read) else REJECTED)


class _Job:
    """What a run makes of the lines of a file: rows of tables. Attributes: `typed` (int), messages that gave some."""

    def __init__(
        self, file: str, format: str, tables: Tables, folder: TablesFolder, run: Run, *, is_strict: bool
    ) -> None:
        self._file, self._format, self._tables, self._folder = file, format, tables, folder
        self._run, self._is_strict = run, is_strict
        self._zone: ZoneInfo | None = None
        self.typed = 0

    def take_all(self, lines: Iterator[Line], zone: ZoneInfo | None) -> None:
        """Type the changes of all lines."""
        self._zone = zone
        joiner = StreamJoiner()
        file = click.format_filename(self._file)

        def joined(line: Line) -> Sequence[Joined]:
            place, message = Arrival(file=file, line=line.number), line.message()
            changes = to_changes(message, self._format, zone=zone, members=False)
            return joiner.add([replace(change, place=place) for change in changes], line.number, message)

        for complete in self._run.results(lines, joined):
            self._take(complete)
        self._take(joiner.finish())

    def _take(self, joined: Sequence[Joined]) -> None:
        for one in joined:
            try:
                if one.error is not None:
                    raise one.error
                is_typed = self._write(one.changes)
            except (MessageError, DdlError, SchemaError) as error:
                for number, text in one.messages:
                    self._reject(error, Line.of(number, text))
            else:
                self.typed += is_typed * len(one.messages)

    def _write(self, changes: Sequence[Change]) -> bool:
        # All changes of a message are taken before any is written: it is a reject or it is not.
        made = [one for change in changes for one in self._tables.add(change)]
        for one in made:
            self._folder.write(one)
        return bool(made)

    def _reject(self, error: MessageError | DdlError | SchemaError, line: Line) -> None:
        if not isinstance(error, MessageError):
            error = StructureError("a statement or columns that the table allows", str(error), format=self._format)
        if self._is_strict and isinstance(error, MisfitError):
            format = error.format or self._format
            raise FileError(f"{self._file}:{line.number}: {format}: {error.path}", error.expected, error.got)
        self._run.reject(error, line)

    def report(self, tables: Sequence[Table]) -> None:
        """Say what was made: a table of tables, the notes on types, and that nothing was lost."""
        labels = _labels(tables)
        rows = [
            (
                labels[one.number],
                f"{len(one.versions):,}",
                f"{self._folder.counts[one.number]:,}",
                "dropped" if one.is_gone else "",
            )
            for one in tables
        ]
        if rows:
            click.echo(table(("table", "versions", "changes", ""), rows))
        read, rejected = self._run.read, self._run.rejected
        others = read - rejected - self.typed
        click.echo(f"read {read:,} = typed {self.typed:,} + other {others:,} + rejected {rejected:,}")
        for sentence in _notes(tables):
            say(sentence)
        found = [(f"{labels[one.number]}.{name}", count) for one in tables for name, count in self._misfits(one)]
        if found:
            listed = ", ".join(f"{name} {count:,}" for name, count in found[:_SHOWN_NOTES])
            more = f" and {len(found) - _SHOWN_NOTES:,} more columns" if len(found) > _SHOWN_NOTES else ""
            say(
                f"{sum(count for _, count in found):,} values that their type cannot carry are text in unparsed: {listed}{more}"
            )
        if self._zone is None and any(_is_instant(one, name) for one in tables for name, _ in self._misfits(one)):
            say("a TIMESTAMP without a zone is an instant only in the source's zone: say it with --zone")

    def _misfits(self, table: Table) -> list[tuple[str, int]]:
        return self._tables.misfits.get(table.number, Counter()).most_common()


def _check_apart(out: str, *files: str | None) -> None:
    """Check that no file lies in the folder that is replaced as a whole. Raises `click.UsageError`."""
    folder = Path(out).resolve()
    for file in files:
        if file not in (None, STANDARD) and Path(str(file)).resolve().is_relative_to(folder):
            raise click.UsageError(f"{click.format_filename(str(file))} lies in the folder that is written")


def _labels(tables: Sequence[Table]) -> dict[int, str]:
    """Return the names of tables, by their numbers: with the database and the schema where one name stands for several."""
    names = {one.number: one.schema.table for one in tables}
    places = {(name.database, name.schema, name.table) for name in names.values()}
    several = Counter(table for _, _, table in places)
    return {
        number: name.table
        if several[name.table] == 1
        else ".".join(part for part in (name.database, name.schema, name.table) if part is not None)
        for number, name in names.items()
    }


def _is_instant(table: Table, name: str) -> bool:
    """Return whether a column of a table holds instants."""
    held = [one.avro for one in table.schema.columns if one.name == name]
    return any(isinstance(one, dict) and one.get("logicalType") == "timestamp-micros" for one in held)


def _notes(tables: Sequence[Table]) -> list[str]:
    found = [
        f"{one.schema.table.table}: {column.name}: {column.note}"
        for one in tables
        for column in one.schema.columns
        if column.note is not None
    ]
    return (
        found
        if len(found) <= _SHOWN_NOTES
        else [*found[: _SHOWN_NOTES - 1], f"... and {len(found) - _SHOWN_NOTES + 1} more"]
    )

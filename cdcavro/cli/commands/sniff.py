"""`sniff` and `validate`: what messages are, and whether they convert exactly."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

import click

import cdcavro
from cdcavro.cli.faults import Faults
from cdcavro.cli.group import REJECTED, example
from cdcavro.cli.options import INPUT, format_name, max_rejects_option
from cdcavro.cli.progress import Progress
from cdcavro.cli.report import Counts
from cdcavro.errors import MessageError
from cdcavro.files.lines import read_lines, tell_format
from cdcavro.files.streams import STANDARD, input_size, standard
from cdcavro.formats import get_format
from cdcavro.wire.operation import operation
from cdcavro.wire.sniff import AUTO, MIXED
from cdcavro.wire.validate import validate as validated

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cdcavro.files.lines import Line
    from cdcavro.files.rejects import MaxRejects

_files_argument: Final = click.argument("files", nargs=-1, type=INPUT, metavar="[FILE]...")


@click.command(epilog=example("cdcavro sniff changes.jsonl | sort | uniq -c"))
@_files_argument
@click.pass_context
def sniff(ctx: click.Context, files: tuple[str, ...]) -> None:
    """Tell the format of each message, one line each.

    With several files each line says where the message stands. A message of no known format is told
    on standard error, and the exit code is 1.
    """
    rejected = 0
    with Progress("sniffing", _size(files), is_in_the_way=True) as progress:
        for file in files or (STANDARD,):
            lines = read_lines(file, progress.advance)
            rejected += _sniff_lines(file, lines, is_one_of_many=len(files) > 1)
    ctx.exit(REJECTED if rejected else 0)


@click.command(epilog=example("cdcavro validate changes.jsonl --format oms_canal"))
@_files_argument
@click.option(
    "--format",
    metavar="auto|mixed|NAME",
    callback=format_name(AUTO, MIXED),
    default=AUTO,
    help="auto (the default) tells the format of each file by its first messages, mixed that of every message.",
)
@max_rejects_option
@click.pass_context
def validate(ctx: click.Context, files: tuple[str, ...], format: str, max_rejects: MaxRejects) -> None:
    """Convert each message to Avro and back, and compare the two JSON values exactly.

    Faults are told on standard error; a table of counts by format and operation ends the run. The
    exit code is 1 if messages were rejected, unless --max-rejects allows them.
    """
    counts = Counts()
    with Progress("validating", _size(files)) as progress:
        for file in files or (STANDARD,):
            _validate_lines(file, read_lines(file, progress.advance), format, counts)
    click.echo(counts.table())
    click.echo(counts.balance("valid"))
    ctx.exit(0 if max_rejects.allows(counts.rejected, counts.read) else REJECTED)


def _sniff_lines(file: str, lines: Iterator[Line], *, is_one_of_many: bool) -> int:
    faults, out = Faults(file), standard(sys.stdout)
    shown = click.format_filename(file)
    for line in lines:
        where = f"{shown}:{line.number}: " if is_one_of_many else ""
        try:
            out.write(f"{where}{cdcavro.sniff(line.message())}\n")
        except MessageError as error:
            faults.add(error, line)
    faults.finish()
    return faults.count


def _validate_lines(file: str, lines: Iterator[Line], format: str, counts: Counts) -> None:
    told = "" if format == MIXED else format
    if format == AUTO:
        told, lines = tell_format(lines)
    faults = Faults(file)
    for line in lines:
        try:
            message = line.message()
            own = get_format(told or cdcavro.sniff(message))
            counts.add(own.name, operation(validated(message, own), own))
        except MessageError as error:
            error.format = error.format or told or None
            faults.add(error, line)
            counts.reject(error.format)
    faults.finish()


def _size(files: tuple[str, ...]) -> int | None:
    sizes = [input_size(file) for file in files or (STANDARD,)]
    known = [size for size in sizes if size is not None]
    return sum(known) if len(known) == len(sizes) else None

"""TODO."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

import cdcavro
from cdcavro.cli.faults import Faults
from cdcavro.cli.group import REJECTED, example
from cdcavro.cli.options import files_argument, format_name, max_rejects_option
from cdcavro.cli.progress import Progress
from cdcavro.cli.report import Counts
from cdcavro.errors import MessageError
from cdcavro.files.lines import read_lines, tell_format
from cdcavro.files.streams import STANDARD, total_size
from cdcavro.wire.formats import get_format
from cdcavro.wire.operation import operation
from cdcavro.wire.sniff import AUTO, MIXED
from cdcavro.wire.validate import validate as validated

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cdcavro.files.lines import Line
    from cdcavro.files.rejects import MaxRejects


@click.command(epilog=example("cdcavro validate changes.jsonl --format oms_canal"))
@files_argument
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
    with Progress("validating", total_size(files or (STANDARD,))) as progress:
        for file in files or (STANDARD,):
            _validate_lines(file, read_lines(file, progress.advance), format, counts)
    click.echo(counts.table())
    click.echo(counts.balance("valid"))
    ctx.exit(0 if max_rejects.allows(counts.rejected, counts.read) else REJECTED)


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

"""`validate`: whether messages convert exactly."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

import cdcavro
from cdcavro.cli.faults import Faults, VersionWatch
from cdcavro.cli.group import REJECTED, example
from cdcavro.cli.options import inputs_argument, max_rejects_option, mixed_format_option
from cdcavro.cli.progress import Progress
from cdcavro.cli.report import Counts
from cdcavro.errors import MessageError
from cdcavro.files.lines import tell_format
from cdcavro.files.streams import total_size
from cdcavro.wire.format import validate as validated
from cdcavro.wire.formats import get_format
from cdcavro.wire.marked_members import operation_of
from cdcavro.wire.sniff import AUTO, MIXED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cdcavro.files.inputs import Inputs
    from cdcavro.files.lines import Line
    from cdcavro.files.rejects import MaxRejects


@click.command(epilog=example("cdcavro validate changes.jsonl --format oms_canal"))
@inputs_argument
@mixed_format_option
@max_rejects_option
@click.pass_context
def validate(ctx: click.Context, inputs: Inputs, format: str, max_rejects: MaxRejects) -> None:
    """Check that each message survives the conversion to Avro and back.

    The two JSON values are compared exactly. Faulty messages are reported on standard error; a table of counts
    by format and operation follows at the end. The exit code is 1 if messages were rejected, unless
    --max-rejects allows them.
    """
    counts, versions = Counts(), VersionWatch()
    faults = Faults(inputs)
    with Progress("validating", total_size(inputs.files)) as progress:
        for file in inputs.files:
            _validate_lines(inputs.lines(file, progress.advance, format), format, counts, versions, faults)
    faults.finish()
    click.echo(counts.table())
    click.echo(counts.balance("valid"))
    ctx.exit(0 if max_rejects.allows(counts.rejected, counts.read) else REJECTED)


def _validate_lines(lines: Iterator[Line], format: str, counts: Counts, versions: VersionWatch, faults: Faults) -> None:
    name = "" if format == MIXED else format
    if format == AUTO:
        name, lines = tell_format(lines)
    for line in lines:
        try:
            message = line.message()
            own = get_format(name or cdcavro.sniff(message))
            versions.see(message, own.name)
            counts.add(own.name, operation_of(validated(message, own), own))
        except MessageError as error:
            error.format = error.format or name or None
            faults.add(error, line)
            counts.reject(error.format)

"""The commands on formats: `formats` and `schema` print what cdcavro knows, `sniff` and `validate` look at messages."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

import cdcavro
from cdcavro.cli.console import Counts, Faults, Progress, VersionNotice, table
from cdcavro.cli.group import REJECTED, example
from cdcavro.cli.options import format_name, inputs_argument, max_rejects_option, mixed_format_option
from cdcavro.errors import MessageError
from cdcavro.files.lines import detect_format
from cdcavro.files.streams import check_standard, shown_name, total_size
from cdcavro.wire.format import validate as validate_message
from cdcavro.wire.formats import REGISTRY, get_format
from cdcavro.wire.marked_members import operation_of
from cdcavro.wire.sniff import AUTO, MIXED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cdcavro.files.inputs import Inputs
    from cdcavro.files.lines import Line
    from cdcavro.files.rejects import MaxRejects


@click.command(epilog=example("cdcavro formats"))
def formats() -> None:
    """List the formats that cdcavro knows.

    Each is listed with its name, record, fingerprint and description. The fingerprint is the CRC-64-AVRO of the
    schema's canonical form, in the byte order of the single-object encoding.
    """
    rows = [
        (name, format.envelope.name, format.schema.fingerprint, _first_sentence(format.envelope.doc))
        for name, format in REGISTRY.items()
    ]
    click.echo(table(("format", "record", "fingerprint", "what it is"), rows))


def _first_sentence(doc: str) -> str:
    return doc.partition(" Source: ")[0]


@click.command(epilog=example("cdcavro schema oms_canal > oms_canal.avsc"))
@click.argument("name", callback=format_name())
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
@click.pass_context
def sniff(ctx: click.Context, inputs: Inputs) -> None:
    """Print the format of each message, one per line.

    With several files, each line starts with the message's file and line number. Messages of no known
    format are reported on standard error; the exit code is then 1.
    """
    faults, out = Faults(inputs), check_standard(sys.stdout)
    with Progress("sniffing", total_size(inputs.files), shares_terminal=True) as progress:
        for file in inputs.files:
            for line in inputs.lines(file, progress.advance):
                where = "{}:{}: ".format(*inputs.place(line.number)) if len(inputs.files) > 1 else ""
                try:
                    out.write(f"{shown_name(where)}{cdcavro.sniff(line.message())}\n")
                except MessageError as error:
                    faults.add(error, line)
    faults.finish()
    ctx.exit(REJECTED if faults.count else 0)


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
    counts, versions = Counts(), VersionNotice()
    faults = Faults(inputs)
    with Progress("validating", total_size(inputs.files)) as progress:
        for file in inputs.files:
            _validate_lines(inputs.lines(file, progress.advance, format), format, counts, versions, faults)
    faults.finish()
    click.echo(counts.table())
    click.echo(counts.balance("valid"))
    ctx.exit(0 if max_rejects.allows(counts.rejected, counts.read) else REJECTED)


def _validate_lines(
    lines: Iterator[Line], format: str, counts: Counts, versions: VersionNotice, faults: Faults
) -> None:
    name = "" if format == MIXED else format
    if format == AUTO:
        name, lines = detect_format(lines)
    for line in lines:
        try:
            message = line.message()
            wire_format = get_format(name or cdcavro.sniff(message))
            versions.see(message, wire_format.name)
            counts.add(wire_format.name, operation_of(validate_message(message, wire_format), wire_format))
        except MessageError as error:
            error.format = error.format or name or None
            faults.add(error, line)
            counts.reject(error.format)

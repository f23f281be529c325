"""The commands on formats: `formats` and `schema` print what cdcavro knows, `sniff` and `validate` look at messages."""

from __future__ import annotations

import sys
from contextlib import closing
from typing import TYPE_CHECKING

import click

from cdcavro.cli.console import Counts, Faults, Progress, VersionNotice, say, table
from cdcavro.cli.group import REJECTED, example
from cdcavro.cli.options import (
    format_name,
    inputs_argument,
    max_rejects_option,
    mixed_format_option,
    processes_option,
)
from cdcavro.files.block_codec import ChunkSniffer, ChunkValidator
from cdcavro.files.streams import check_standard, shown_name, total_size
from cdcavro.files.threads import write_in_order
from cdcavro.wire.formats import REGISTRY, get_format
from cdcavro.wire.sniff import MIXED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cdcavro.files.block_codec import Tally
    from cdcavro.files.inputs import Chunk, Inputs, Range
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
@processes_option
@click.pass_context
def sniff(ctx: click.Context, inputs: Inputs, jobs: int) -> None:
    """Print the format of each message, one per line.

    With several files, each line starts with the message's file and line number. Messages of no known
    format are reported on standard error; the exit code is then 1. If a file has messages of several formats,
    the first line of each is told there, too.
    """
    faults, out = Faults(inputs), check_standard(sys.stdout)
    before = 0
    with Progress("sniffing", total_size(inputs.files), shares_terminal=True) as progress:
        for file in inputs.files:
            _, chunks = inputs.chunks(file, MIXED, progress.advance)
            first: dict[str, int] = {}
            for tally in _look(ChunkSniffer(), inputs, file, chunks, jobs, before, faults):
                out.write("".join(_told(tally, inputs, before, first)))
                before += tally.lines
            if len(first) > 1:
                lines = ", ".join(f"{format} from line {line:,} on" for format, line in first.items())
                say(f"{shown_name(file)}: messages of {len(first)} formats: {lines}")
    faults.finish()
    ctx.exit(REJECTED if faults.count else 0)


def _told(tally: Tally, inputs: Inputs, before: int, first: dict[str, int]) -> Iterator[str]:
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
        if len(inputs.files) == 1:
            yield f"{format}\n" * count
            continue
        for line in range(number - count + 1, number + 1):
            where = "{}:{}: ".format(*inputs.place(line))
            yield f"{shown_name(where)}{format}\n"


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


@click.command(epilog=example("cdcavro validate changes.jsonl --format oms_canal"))
@inputs_argument
@mixed_format_option
@max_rejects_option
@processes_option
@click.pass_context
def validate(ctx: click.Context, inputs: Inputs, format: str, max_rejects: MaxRejects, jobs: int) -> None:
    """Check that each message survives the conversion to Avro and back.

    The two JSON values are compared exactly. Faulty messages are reported on standard error; a table of counts
    by format and operation follows at the end. The exit code is 1 if messages were rejected, unless
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
    click.echo(counts.table())
    click.echo(counts.balance("valid"))
    ctx.exit(0 if max_rejects.allows(counts.rejected, counts.read) else REJECTED)

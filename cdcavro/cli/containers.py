"""`encode` and `decode`: JSON lines to an Avro container file, and back."""

from __future__ import annotations

import os
import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING, BinaryIO

import click

from cdcavro import text
from cdcavro.cli.faults import SHOWN, Faults, note, untold
from cdcavro.cli.group import REJECTED, Fault, example
from cdcavro.cli.options import INPUT, OUTPUT, force_option, format_name, max_rejects_option
from cdcavro.cli.progress import Progress
from cdcavro.cli.tables import Counts
from cdcavro.container import CODECS, ContainerReader, ContainerWriter, format_of
from cdcavro.errors import FileError, MessageError, PayloadError, ResolutionError
from cdcavro.files import STANDARD, input_size, open_input, open_output
from cdcavro.formats import REGISTRY, get_format
from cdcavro.lines import HEAD_LINES, read_lines, tell_format
from cdcavro.sniff import AUTO

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cdcavro.files import Advance
    from cdcavro.format import Format
    from cdcavro.lines import Line
    from cdcavro.rejects import MaxRejects


@click.command(epilog=example("cdcavro encode changes.jsonl --out changes.avro --rejects rejects.jsonl"))
@click.argument("source", default=STANDARD, type=INPUT, metavar="[INPUT]")
@click.option("--out", default=STANDARD, type=OUTPUT, metavar="FILE", help="Default: standard output.")
@click.option(
    "--format",
    metavar="auto|NAME",
    callback=format_name(AUTO),
    default=AUTO,
    help=f"auto (the default) tells the format by the first {HEAD_LINES} messages.",
)
@click.option("--codec", type=click.Choice(CODECS), default="deflate", help="Compression. Default: deflate.")
@click.option("--rejects", type=OUTPUT, metavar="FILE", help="Write rejected messages here, as JSON lines.")
@max_rejects_option
@force_option
@click.pass_context
def encode(
    ctx: click.Context,
    *,
    source: str,
    out: str,
    format: str,
    codec: str,
    rejects: str | None,
    max_rejects: MaxRejects,
    force: bool,
) -> None:
    """Write the messages of one format into an Avro container file.

    What cannot be converted is rejected: told on standard error, and kept in the file of --rejects
    with its raw bytes in base64. The exit code is then 1, unless --max-rejects allows it.
    """
    _check_outputs(source, out, rejects)
    with (
        Progress("encoding", input_size(source)) as progress,
        open_output(out, force=force) as stream,
        open_output(rejects, force=force) if rejects else nullcontext() as dead,
    ):
        told, lines = _told(source, format, progress.advance)
        container = ContainerWriter(stream, told.schema, codec=codec)
        counts = _encode_lines(lines, told, container, Faults(source, dead, shown=SHOWN))
    note(counts.balance("written"))
    ctx.exit(0 if max_rejects.allows(counts.rejected, counts.read) else REJECTED)


@click.command(epilog=example("cdcavro decode changes.avro | head -1"))
@click.argument("source", default=STANDARD, type=INPUT, metavar="[INPUT]")
@click.option("--out", default=STANDARD, type=OUTPUT, metavar="FILE", help="Default: standard output.")
@click.option(
    "--format",
    metavar="NAME",
    callback=format_name(),
    help="Default: told by the name of the schema in the file's header.",
)
@force_option
def decode(*, source: str, out: str, format: str | None, force: bool) -> None:
    """Write the messages of an Avro container file as JSON lines.

    The file may have been written with another version of the wire schema: aliases and defaults of
    the present one then apply.
    """
    if source != STANDARD and os.path.realpath(out) == os.path.realpath(source):
        raise click.UsageError("--out names the input")
    with (
        Progress("decoding", input_size(source), is_in_the_way=out == STANDARD) as progress,
        open_input(source, progress.advance) as stream,
        open_output(out, force=force) as messages,
    ):
        container = ContainerReader(stream, click.format_filename(source))
        own = get_format(format) if format else _named(container, source)
        _decode_blocks(container, own, source, messages)


def _check_outputs(source: str, out: str, rejects: str | None) -> None:
    if out == STANDARD and sys.stdout.isatty():
        raise click.UsageError("an Avro file is not written to a terminal: give --out FILE, or a pipe")
    for name, file in (("--out", out), ("--rejects", rejects)):
        if source != STANDARD and file not in (None, STANDARD) and os.path.realpath(file) == os.path.realpath(source):
            raise click.UsageError(f"{name} names the input")
    if rejects is not None and os.path.realpath(rejects) == os.path.realpath(out):
        raise click.UsageError("--out and --rejects name the same file")


def _told(source: str, format: str, advance: Advance) -> tuple[Format, Iterator[Line]]:
    lines = read_lines(source, advance)
    if format != AUTO:
        return get_format(format), lines
    name, lines = tell_format(lines)
    if not name:
        raise untold(source, lines, "--format")
    return get_format(name), lines


def _encode_lines(lines: Iterator[Line], format: Format, container: ContainerWriter, faults: Faults) -> Counts:
    counts = Counts()
    for line in lines:
        try:
            container.write(format.encode(line.message()))
            counts.done += 1
        except MessageError as error:
            error.format = format.name
            faults.add(error, line)
            counts.rejected += 1
    container.flush()
    faults.finish()
    return counts


def _named(container: ContainerReader, source: str) -> Format:
    found = format_of(container.schema)
    if found is None:
        expected = f"a wire schema in the header ({', '.join(REGISTRY)}), or --format NAME"
        raise FileError(click.format_filename(source), expected, "another schema")
    return found


def _decode_blocks(container: ContainerReader, format: Format, source: str, out: BinaryIO) -> None:
    count = 0
    try:
        for block in container:
            for record in format.read_block(block.payloads, block.count, container.schema):
                count += 1
                out.write(text.render(record) + b"\n")
    except PayloadError as error:
        raise Fault(f"{click.format_filename(source)}: message {count + 1}: {error}") from error
    except ResolutionError as error:
        raise Fault(f"{click.format_filename(source)}: {error}") from error

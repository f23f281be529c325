"""`encode`: JSON lines to an Avro container file."""

from __future__ import annotations

import sys
from contextlib import closing, nullcontext
from itertools import chain, islice
from typing import TYPE_CHECKING, BinaryIO

import click

from cdcavro.avro.container import CODECS, Framing, header
from cdcavro.cli.faults import Faults, VersionWatch, say
from cdcavro.cli.group import REJECTED, example
from cdcavro.cli.options import (
    OUTPUT,
    check_files,
    force_option,
    format_name,
    inputs_argument,
    jobs_option,
    max_rejects_option,
)
from cdcavro.cli.progress import Progress
from cdcavro.cli.report import Counts
from cdcavro.files.lines import HEAD_LINES
from cdcavro.files.parts import ChunkEncoder, marker
from cdcavro.files.streams import STANDARD, check_new, open_output, standard, total_size
from cdcavro.files.threads import in_order
from cdcavro.wire.formats import get_format
from cdcavro.wire.sniff import AUTO

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cdcavro.files.inputs import ChunkFile, Inputs
    from cdcavro.files.rejects import MaxRejects
    from cdcavro.wire.format import Format


@click.command(epilog=example("cdcavro encode changes.jsonl --out changes.avro --rejects rejects.jsonl"))
@inputs_argument
@click.option("--out", default=STANDARD, type=OUTPUT, metavar="FILE", help="Default: standard output.")
@click.option(
    "--format",
    metavar="auto|NAME",
    callback=format_name(AUTO),
    default=AUTO,
    help=f"The format of the messages. Default: auto, which detects it from the first {HEAD_LINES} messages.",
)
@click.option("--codec", type=click.Choice(CODECS), default="deflate", help="Compression. Default: deflate.")
@click.option("--rejects", type=OUTPUT, metavar="FILE", help="Write rejected messages to this file, as JSON lines.")
@max_rejects_option
@jobs_option
@force_option
@click.pass_context
def encode(
    ctx: click.Context,
    *,
    inputs: Inputs,
    out: str,
    format: str,
    codec: str,
    rejects: str | None,
    max_rejects: MaxRejects,
    jobs: int,
    force: bool,
) -> None:
    """Convert messages of one format to an Avro container file.

    Messages that cannot be converted are rejected: they are reported on standard error, and written to the
    --rejects file with their raw bytes in base64. The exit code is then 1, unless --max-rejects allows them.
    The same input always gives the same file, whatever --jobs is.
    """
    if out == STANDARD and standard(sys.stdout).isatty():
        raise click.UsageError("an Avro file is not written to a terminal: give --out FILE, or a pipe")
    check_files(inputs, out, rejects)
    check_new(out, force=force)
    with Progress("encoding", total_size(inputs.files)) as progress:
        name, files = inputs.told_chunks(format, option="--format", advance=progress.advance)
        if not name:
            say("there are no messages, so nothing is written: with --format NAME, a file without messages is")
            say(Counts().balance("written"))
            return
        with (
            open_output(out, force=force) as stream,
            open_output(rejects, force=force) if rejects else nullcontext() as reject_file,
        ):
            counts = _encoded(get_format(name), codec, jobs, inputs, files, stream, Faults(inputs, reject_file))
    say(counts.balance("written"))
    ctx.exit(0 if max_rejects.allows(counts.rejected, counts.read) else REJECTED)


def _encoded(
    own: Format,
    codec: str,
    jobs: int,
    inputs: Inputs,
    files: Iterator[ChunkFile],
    stream: BinaryIO,
    faults: Faults,
) -> Counts:
    """Write a container file of the messages in some files, and return their counts."""
    framing, files = _with_framing(own, codec, files)
    stream.write(header(own.schema, framing))
    counts, versions = Counts(), VersionWatch()
    before = 0
    for file, chunks in files:
        inputs.begin(file, before)
        with closing(in_order(ChunkEncoder(own.name, framing), chunks, jobs, stream)) as tallies:
            for tally in tallies:
                versions.note(tally.note)
                counts.done += tally.done
                counts.rejected += len(tally.faults)
                for error, line in tally.faults:
                    faults.add(error, line._replace(number=before + line.number))
                before += tally.lines
    faults.finish()
    return counts


def _with_framing(format: Format, codec: str, files: Iterator[ChunkFile]) -> tuple[Framing, Iterator[ChunkFile]]:
    """Return the framing of the blocks, whose sync marker depends on the first chunk, and all files."""
    file, chunks = next(files)
    first = list(islice(chunks, 1))
    head = first[0].read().raw if first else b""
    return Framing(codec, marker(format.schema, codec, head)), chain([(file, chain(first, chunks))], files)

"""`encode`: JSON lines to an Avro container file."""

from __future__ import annotations

import os
import sys
from contextlib import closing, nullcontext
from itertools import chain, islice
from typing import TYPE_CHECKING

import click

from cdcavro.avro.blocks import CODECS, Framing
from cdcavro.avro.container import header
from cdcavro.cli.faults import SHOWN, Faults, VersionWatch, say
from cdcavro.cli.group import REJECTED, example
from cdcavro.cli.options import INPUT, OUTPUT, force_option, format_name, jobs_option, max_rejects_option
from cdcavro.cli.progress import Progress
from cdcavro.cli.report import Counts
from cdcavro.files.chunks import read_chunks, told_chunks
from cdcavro.files.lines import HEAD_LINES, untold
from cdcavro.files.parts import ChunkEncoder, marker
from cdcavro.files.streams import STANDARD, input_size, open_output, standard
from cdcavro.files.threads import in_order
from cdcavro.wire.formats import get_format
from cdcavro.wire.sniff import AUTO

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cdcavro.files.chunks import Chunk, Range
    from cdcavro.files.parts import Tally
    from cdcavro.files.rejects import MaxRejects
    from cdcavro.wire.format import Format

    Task = Chunk | Range


@click.command(epilog=example("cdcavro encode changes.jsonl --out changes.avro --rejects rejects.jsonl"))
@click.argument("source", default=STANDARD, type=INPUT, metavar="[INPUT]")
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
    source: str,
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
    _check_outputs(source, out, rejects)
    with (
        Progress("encoding", input_size(source)) as progress,
        open_output(out, force=force) as stream,
        open_output(rejects, force=force) if rejects else nullcontext() as reject_file,
    ):
        own, chunks = _with_format(source, format, read_chunks(source, progress.advance))
        framing, chunks = _with_framing(own, codec, chunks)
        stream.write(header(own.schema, framing))
        with closing(in_order(ChunkEncoder(own.name, framing), chunks, jobs, stream)) as tallies:
            counts = _counted(tallies, Faults(source, reject_file, shown=SHOWN))
    say(counts.balance("written"))
    ctx.exit(0 if max_rejects.allows(counts.rejected, counts.read) else REJECTED)


def _check_outputs(source: str, out: str, rejects: str | None) -> None:
    if out == STANDARD and standard(sys.stdout).isatty():
        raise click.UsageError("an Avro file is not written to a terminal: give --out FILE, or a pipe")
    for name, file in (("--out", out), ("--rejects", rejects)):
        if source != STANDARD and file not in (None, STANDARD) and os.path.realpath(file) == os.path.realpath(source):
            raise click.UsageError(f"{name} names the input")
    if rejects is not None and os.path.realpath(rejects) == os.path.realpath(out):
        raise click.UsageError("--out and --rejects name the same file")


def _with_format(source: str, format: str, chunks: Iterator[Task]) -> tuple[Format, Iterator[Task]]:
    """Return the format of a file, detected from its first chunks if it is not stated, and all chunks."""
    file = click.format_filename(source)
    name, chunks = told_chunks(chunks, format, file=file, option="--format")
    if not name:
        raise untold(None, file=file, option="--format")
    return get_format(name), chunks


def _with_framing(format: Format, codec: str, chunks: Iterator[Task]) -> tuple[Framing, Iterator[Task]]:
    """Return the framing of the blocks, whose sync marker depends on the first chunk, and all chunks."""
    first = list(islice(chunks, 1))
    head = first[0].read().raw if first else b""
    return Framing(codec, marker(format.schema, codec, head)), chain(first, chunks)


def _counted(tallies: Iterable[Tally], faults: Faults) -> Counts:
    counts, versions = Counts(), VersionWatch()
    before = 0
    for tally in tallies:
        versions.note(tally.note)
        counts.done += tally.done
        counts.rejected += len(tally.faults)
        for error, line in tally.faults:
            faults.add(error, line._replace(number=before + line.number))
        before += tally.lines
    faults.finish()
    return counts

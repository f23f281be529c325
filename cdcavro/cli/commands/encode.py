"""`encode` and `decode`: JSON lines to an Avro container file, and back."""

from __future__ import annotations

import os
import sys
from contextlib import closing, nullcontext
from itertools import chain, islice
from typing import TYPE_CHECKING, BinaryIO

import click

from cdcavro.avro.container import CODECS, ContainerReader, Framing, header, read_frames
from cdcavro.cli.console import Counts, Faults, Progress, VersionNotice, say
from cdcavro.cli.group import REJECTED, Fault, example
from cdcavro.cli.options import (
    INPUT,
    OUTPUT,
    Choice,
    FormatName,
    check_files,
    force_option,
    inputs_argument,
    jobs_option,
    max_rejects_option,
)
from cdcavro.errors import FileError, PayloadError, ResolutionError
from cdcavro.files.block_codec import BlockDecoder, ChunkEncoder, group_blocks, sync_marker, write_in_order
from cdcavro.files.lines import HEAD_LINES
from cdcavro.files.streams import (
    STANDARD,
    check_new,
    check_standard,
    ignore_progress,
    input_size,
    open_input,
    open_output,
    open_shared_input,
    total_size,
)
from cdcavro.wire.formats import REGISTRY, format_of, get_format
from cdcavro.wire.sniff import AUTO

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cdcavro.avro.container import PackedBlock
    from cdcavro.files.lines import ChunkFile, Inputs
    from cdcavro.files.rejects import MaxRejects
    from cdcavro.files.streams import Advance, SharedInput
    from cdcavro.wire.format import Format


@click.command(epilog=example("cdcavro encode changes.jsonl --out changes.avro --rejects rejects.jsonl"))
@inputs_argument
@click.option(
    "--out", default=STANDARD, type=OUTPUT, metavar="FILE", help="The file to write. Default: standard output."
)
@click.option(
    "--format",
    metavar="auto|NAME",
    type=FormatName(AUTO),
    default=AUTO,
    help=f"The format of the messages. Default: auto, which detects it from the first {HEAD_LINES} messages.",
)
@click.option("--codec", type=Choice(CODECS), default="deflate", help="Compression. Default: deflate.")
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
    if out == STANDARD and check_standard(sys.stdout).isatty():
        raise click.UsageError("an Avro file is not written to a terminal: give --out FILE, or a pipe")
    check_files(inputs, out, rejects)
    check_new(out, force=force)
    with Progress("encoding", total_size(inputs.files)) as progress:
        name, files = inputs.open_chunks(format, option="--format", advance=progress.advance)
        if not name:
            say("there are no messages, so no file is written; with --format NAME, one without messages is")
            say(Counts().balance("written"))
            return
        with (
            open_output(out, force=force) as stream,
            open_output(rejects, force=force) if rejects else nullcontext() as reject_file,
        ):
            counts = _encode(get_format(name), codec, jobs, inputs, files, stream, Faults(inputs, reject_file))
    say(counts.balance("written"))
    ctx.exit(0 if max_rejects.allows(counts.rejected, counts.read) else REJECTED)


def _encode(
    format: Format,
    codec: str,
    jobs: int,
    inputs: Inputs,
    files: Iterator[ChunkFile],
    stream: BinaryIO,
    faults: Faults,
) -> Counts:
    """Write a container file of the messages in some files, and return their counts."""
    framing, files = _choose_framing(format, codec, files)
    stream.write(header(format.schema, framing))
    counts, versions = Counts(), VersionNotice()
    before = 0
    for file, chunks in files:
        inputs.begin(file, before)
        with closing(write_in_order(ChunkEncoder(format.name, framing), chunks, jobs, stream)) as tallies:
            for tally in tallies:
                versions.say(tally.note)
                counts.done += tally.done
                counts.rejected += len(tally.faults)
                for error, line in tally.faults:
                    faults.add(error, line._replace(number=before + line.number))
                before += tally.lines
    faults.finish()
    return counts


def _choose_framing(format: Format, codec: str, files: Iterator[ChunkFile]) -> tuple[Framing, Iterator[ChunkFile]]:
    """Return the framing of the blocks, whose sync sync_marker depends on the first chunk, and all files."""
    file, chunks = next(files)
    first = list(islice(chunks, 1))
    head = first[0].read().raw if first else b""
    return Framing(codec, sync_marker(format.schema, codec, head)), chain([(file, chain(first, chunks))], files)


@click.command(epilog=example("cdcavro decode changes.avro | head -1"))
@click.argument("source", default=STANDARD, type=INPUT, metavar="[INPUT]")
@click.option(
    "--out", default=STANDARD, type=OUTPUT, metavar="FILE", help="The file to write. Default: standard output."
)
@click.option(
    "--format",
    metavar="NAME",
    type=FormatName(),
    help="The format of the messages. Default: the one whose schema is named in the file's header.",
)
@jobs_option
@force_option
def decode(*, source: str, out: str, format: str | None, jobs: int, force: bool) -> None:
    """Convert an Avro container file back to messages.

    The messages are JSON lines. The file may have been written with another version of the wire schema: the
    aliases and defaults of the current one then apply.
    """
    if source != STANDARD and os.path.realpath(out) == os.path.realpath(source):
        raise click.UsageError("--out names the input")
    place = open_shared_input(source)
    with (
        Progress("decoding", input_size(source), shares_terminal=out == STANDARD) as progress,
        open_input(source, progress.advance if place is None else ignore_progress) as stream,
        open_output(out, force=force) as messages,
    ):
        container = ContainerReader(stream, click.format_filename(source))
        wire_format = get_format(format) if format else _format_in_header(container, source)
        tasks = group_blocks(_frames(container, place, progress.advance), container.framing, place)
        decoder = BlockDecoder(wire_format.name, container.schema, container.framing, container.file)
        with closing(write_in_order(decoder, tasks, jobs, messages)) as counts:
            _check_payloads(counts, source)


def _format_in_header(container: ContainerReader, source: str) -> Format:
    format = format_of(container.schema)
    if format is None:
        expected = f"a wire schema in the header ({', '.join(REGISTRY)}), or --format NAME"
        raise FileError(click.format_filename(source), expected, "another schema")
    return format


def _frames(container: ContainerReader, place: SharedInput | None, advance: Advance) -> Iterator[PackedBlock]:
    """Yield the blocks of a file; if threads can read the file themselves, only the blocks' positions."""
    if place is None:
        yield from container.frames()
        return
    at = 0
    stream = place.stream(container.position)
    for frame in read_frames(stream, container.position, container.framing, container.file, skip=True):
        yield frame
        advance(frame.end - at)
        at = frame.end


def _check_payloads(counts: Iterable[int], source: str) -> None:
    """Decode to the end; raise `Fault` with the message's number for a payload that cannot be read."""
    count = 0
    try:
        for messages in counts:
            count += messages
    except PayloadError as error:
        raise Fault(f"{click.format_filename(source)}: message {count + 1}: {error}") from error
    except ResolutionError as error:
        raise Fault(f"{click.format_filename(source)}: {error}") from error

"""`decode`: an Avro container file back to JSON lines."""

from __future__ import annotations

import os
from contextlib import closing
from typing import TYPE_CHECKING

import click

from cdcavro.avro.container import ContainerReader, read_frames
from cdcavro.cli.group import Fault, example
from cdcavro.cli.options import INPUT, OUTPUT, force_option, format_name, jobs_option
from cdcavro.cli.progress import Progress
from cdcavro.errors import FileError, PayloadError, ResolutionError
from cdcavro.files.parts import BlockDecoder, runs
from cdcavro.files.streams import STANDARD, input_size, open_input, open_output, shared_input, unwatched
from cdcavro.files.threads import in_order
from cdcavro.wire.formats import REGISTRY, format_of, get_format

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cdcavro.avro.container import PackedBlock
    from cdcavro.files.streams import Advance, SharedInput
    from cdcavro.wire.format import Format


@click.command(epilog=example("cdcavro decode changes.avro | head -1"))
@click.argument("source", default=STANDARD, type=INPUT, metavar="[INPUT]")
@click.option("--out", default=STANDARD, type=OUTPUT, metavar="FILE", help="Default: standard output.")
@click.option(
    "--format",
    metavar="NAME",
    callback=format_name(),
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
    place = shared_input(source)
    with (
        Progress("decoding", input_size(source), is_in_the_way=out == STANDARD) as progress,
        open_input(source, progress.advance if place is None else unwatched) as stream,
        open_output(out, force=force) as messages,
    ):
        container = ContainerReader(stream, click.format_filename(source))
        own = get_format(format) if format else _named(container, source)
        tasks = runs(_frames(container, place, progress.advance), container.framing, place)
        decoder = BlockDecoder(own.name, container.schema, container.framing, container.file)
        with closing(in_order(decoder, tasks, jobs, messages)) as counts:
            _check_payloads(counts, source)


def _named(container: ContainerReader, source: str) -> Format:
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

"""`transcode`: messages of one format converted to another, with a report of losses."""

from __future__ import annotations

import re
from collections import Counter
from contextlib import closing, nullcontext
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, BinaryIO, Final

import click
import orjson

from cdcavro.cli.console import Conversion, Faults, Progress, VersionNotice, say
from cdcavro.cli.group import REJECTED, example
from cdcavro.cli.options import (
    OUTPUT,
    ConnectorSettings,
    FormatName,
    check_files,
    connector_options,
    force_option,
    from_option,
    inputs_argument,
    max_rejects_option,
    processes_option,
    zone_option,
)
from cdcavro.errors import MessageError, number_of, shown
from cdcavro.exact.caching import bounded_cache
from cdcavro.files.block_codec import write_in_order
from cdcavro.files.lines import Line
from cdcavro.files.streams import STANDARD, open_output, shown_name, total_size
from cdcavro.transcoding.transcoder import MOST_PLACES, SAME_VALUE, Transcoder, needs_order
from cdcavro.wire.marked_members import version_note

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from zoneinfo import ZoneInfo

    from cdcavro.files.lines import Chunk, ChunkFile, Inputs, Range
    from cdcavro.files.rejects import MaxRejects
    from cdcavro.transcoding.transcoder import Loss, Outcome

_REASONS: Final = 10
_PLACES: Final = 5
_KINDS: Final = 10_000
_OTHERS: Final = "(others)"
# How many lines are transcoded before what came of them is written.
_LINES: Final = 500
_INDEX: Final = re.compile(r"\[[0-9]+\]")


@click.command(epilog=example("cdcavro transcode blob.jsonl --to oms_canal --out canal.jsonl --losses losses.jsonl"))
@inputs_argument
@click.option("--to", "target", required=True, metavar="NAME", type=FormatName(), help="The format to convert to.")
@from_option
@click.option(
    "--out", default=STANDARD, type=OUTPUT, metavar="FILE", help="The file to write. Default: standard output."
)
@click.option("--losses", type=OUTPUT, metavar="FILE", help="Write what is lost to this file, as JSON lines.")
@click.option("--rejects", type=OUTPUT, metavar="FILE", help="Write rejected messages to this file, as JSON lines.")
@zone_option
@connector_options
@max_rejects_option
@processes_option
@force_option
def transcode(
    *,
    inputs: Inputs,
    target: str,
    source: str,
    out: str,
    losses: str | None,
    rejects: str | None,
    zone: ZoneInfo | None,
    connector: ConnectorSettings,
    max_rejects: MaxRejects,
    jobs: int,
    force: bool,
) -> None:
    """Convert messages of one format to another.

    The two messages of an update that is sent in halves are joined. What the other format cannot hold is
    counted on standard error, and listed in the --losses file with line, path, value and reason. Whatever --jobs is,
    one process is used if messages depend on earlier ones: from Debezium, from formats that send updates in halves,
    and to datahub_tuple.
    """
    check_files(inputs, out, losses, rejects)
    with (
        Progress("transcoding", total_size(inputs.files), shares_terminal=out == STANDARD) as progress,
        open_output(out, force=force) as stream,
        open_output(losses, force=force) if losses else nullcontext() as loss_file,
        open_output(rejects, force=force) if rejects else nullcontext() as reject_file,
    ):
        format, files = inputs.open_chunks(source, option="--from", advance=progress.advance)
        faults = Faults(inputs, reject_file)
        conversion = Conversion(faults)
        route = _Route(format or target, target, zone, connector, has_losses=loss_file is not None)
        job = _Job(ChunkTranscoder(route), conversion, inputs, loss_file)
        job.transcode(files, 1 if needs_order(route.source, target) else jobs, stream)
        faults.finish()
    job.report()
    click.get_current_context().exit(0 if max_rejects.allows(conversion.rejected, conversion.read) else REJECTED)


@dataclass(frozen=True, slots=True)
class _Route:
    """From which format to which, with the settings of the source; `has_losses` says whether each loss is wanted."""

    source: str
    target: str
    zone: ZoneInfo | None
    connector: ConnectorSettings
    has_losses: bool

    def transcoder(self) -> Transcoder:
        """Return a transcoder for a stream."""
        connector = self.connector
        modes = connector.modes._asdict()
        return Transcoder(self.source, self.target, zone=self.zone, unavailable=connector.unavailable, **modes)


class _Part:
    """What came of some lines, of which the first is numbered `first + 1`."""

    def __init__(self, first: int) -> None:
        self.first = first
        # The number of messages: read, written and without a counterpart.
        self.read = self.written = self.without_counterpart = 0
        # By the kind of loss: their number, and whether a value is lost.
        self.kinds: dict[str, tuple[int, bool]] = {}
        # By path and reason, and whether there is a value: the number of losses that are in no kind yet.
        self._counts: dict[tuple[str, str, bool], int] = {}
        self.losses: list[Loss] = []
        self.rejects: list[tuple[MessageError, Line]] = []
        # Times without a zone, by their place, the first places only, and of all.
        self.unzoned = 0
        self.unzoned_places: Counter[str] = Counter()
        # A sentence about the version that messages state.
        self.note: str | None = None

    def add(self, outcomes: Iterable[Outcome], texts: list[bytes], *, has_losses: bool) -> None:
        """Count what came of messages, and add the messages that were made to `texts`."""
        for outcome in outcomes:
            if outcome.error is not None:
                self.rejects += [(outcome.error, Line.of(number, text)) for number, text in outcome.messages]
                continue
            result = outcome.result()
            if not result.texts:
                self.without_counterpart += len({loss.message for loss in result.losses})
            self.written += len(result.texts)
            for text in result.texts:
                texts += text, b"\n"
            counts = self._counts
            for loss in result.losses:
                key = loss.path, loss.reason, loss.value != ""
                counts[key] = counts.get(key, 0) + 1
            if has_losses:
                self.losses += result.losses
            if len(counts) > _KINDS:
                self.count_kinds()

    def count_kinds(self) -> None:
        """Count the losses that are in no kind yet."""
        for (path, reason, has_value), count in self._counts.items():
            kind = _kind(path, reason)
            before, is_of_a_value = self.kinds.get(kind, (0, False))
            self.kinds[kind] = before + count, is_of_a_value or (has_value and not reason.endswith(SAME_VALUE))
        self._counts.clear()


class ChunkTranscoder:
    """Makes the messages of another format from chunks of lines: all of a stream, or, if that is the same, some."""

    def __init__(self, route: _Route) -> None:
        self._route = route
        self._transcoder: Transcoder | None = None
        self._lines = 0

    def __call__(self, task: Chunk | Range) -> Iterator[tuple[list[bytes], _Part]]:
        """Yield the texts of some lines at a time, and what came of these. Raises `FileError`."""
        lines = task.read().lines()
        while some := list(islice(lines, _LINES)):
            yield self._add(some)

    def finish(self) -> tuple[list[bytes], _Part]:
        """Return what comes of the halves that wait."""
        part = _Part(self._lines)
        texts: list[bytes] = []
        part.add(self._begun().finish(), texts, has_losses=self._route.has_losses)
        part.count_kinds()
        return texts, part

    def _begun(self) -> Transcoder:
        if self._transcoder is None:
            self._transcoder = self._route.transcoder()
        return self._transcoder

    def _add(self, lines: list[Line]) -> tuple[list[bytes], _Part]:
        transcoder, part = self._begun(), _Part(self._lines)
        numbered = [line._replace(number=self._lines + i) for i, line in enumerate(lines, 1)]
        self._lines += len(lines)
        messages = {line.number: _message(line) for line in numbered}
        each = transcoder.add_each((number, one) for number, one in messages.items() if isinstance(one, bytes))
        texts: list[bytes] = []
        for line in numbered:
            message = messages[line.number]
            outcomes = next(each) if isinstance(message, bytes) else message
            if isinstance(outcomes, MessageError):
                part.rejects.append((outcomes, line))
                continue
            part.add(outcomes, texts, has_losses=self._route.has_losses)
        for message in messages.values():
            part.note = part.note or (version_note(message, self._route.source) if isinstance(message, bytes) else None)
        part.count_kinds()
        part.read = len(lines)
        part.unzoned, part.unzoned_places = transcoder.unzoned, transcoder.unzoned_places
        transcoder.unzoned, transcoder.unzoned_places = 0, Counter()
        return [b"".join(texts)], part


def _message(line: Line) -> bytes | MessageError:
    """Return the message of a line, or the error of one that is too long."""
    try:
        return line.message()
    except MessageError as error:
        return error


class _Job:
    """Transcodes the lines of a run; writes the messages and the losses."""

    def __init__(self, work: ChunkTranscoder, conversion: Conversion, inputs: Inputs, losses: BinaryIO | None) -> None:
        self._work, self._conversion, self._inputs, self._losses = work, conversion, inputs, losses
        self._versions = VersionNotice()
        self._reasons: Counter[str] = Counter()
        self._value_losses: set[str] = set()
        self._written = self._without_counterpart = self._unzoned = 0
        self._unzoned_places: Counter[str] = Counter()

    def transcode(self, files: Iterator[ChunkFile], jobs: int, out: BinaryIO) -> None:
        """Transcode all lines of some files."""
        for file, chunks in files:
            self._inputs.begin(file, self._conversion.read)
            with closing(write_in_order(self._work, chunks, jobs, out, in_processes=True)) as parts:
                for part in parts:
                    self._take(part)
        if jobs == 1:
            texts, part = self._work.finish()
            out.writelines(texts)
            self._take(part)

    def _take(self, part: _Part) -> None:
        # A process counts the lines that it had.
        before = self._conversion.read - part.first
        self._conversion.read += part.read
        self._versions.say(part.note)
        for error, line in part.rejects:
            self._conversion.reject(error, line._replace(number=line.number + before))
        self._written += part.written
        self._without_counterpart += part.without_counterpart
        self._unzoned += part.unzoned
        for place, count in part.unzoned_places.items():
            if place in self._unzoned_places or len(self._unzoned_places) < MOST_PLACES:
                self._unzoned_places[place] += count
        for name, (count, is_of_a_value) in part.kinds.items():
            kind = name if name in self._reasons or len(self._reasons) < _KINDS else _OTHERS
            self._reasons[kind] += count
            if is_of_a_value:
                self._value_losses.add(kind)
        for loss in part.losses:
            self._write_loss(loss, before)

    def report(self) -> None:
        """Print on standard error what was read, written, rejected and lost."""
        read, rejected = self._conversion.read, self._conversion.rejected
        say(
            f"read {read:,} = transcoded {read - self._without_counterpart - rejected:,}"
            f" + without a counterpart {self._without_counterpart:,} + rejected {rejected:,}; wrote {number_of(self._written, 'message')}"
        )
        if self._unzoned:
            places = ", ".join(shown(place) for place, _ in self._unzoned_places.most_common(_PLACES))
            say(
                f"{number_of(self._unzoned, 'time came/times came')} without a zone and"
                f" {'stays' if self._unzoned == 1 else 'stay'} text (most in {places}); --zone gives the source's"
            )
        kinds = sorted(self._reasons.items(), key=lambda kind: (kind[0] not in self._value_losses, -kind[1]))
        for reason, count in kinds[:_REASONS]:
            say(f"lost {'once' if count == 1 else f'{count:,} times'}: {reason}")
        if len(self._reasons) > _REASONS:
            say(f"... and {number_of(len(self._reasons) - _REASONS, 'other kind/other kinds')} of losses")

    def _write_loss(self, loss: Loss, before: int) -> None:
        if self._losses is not None:
            file, line = self._inputs.place(loss.message + before)
            # With one input, its name is not repeated in each loss.
            file_member = {"file": shown_name(file)} if len(self._inputs.files) > 1 else {}
            members = {**file_member, "line": line, "path": loss.path, "value": loss.value, "reason": loss.reason}
            self._losses.write(orjson.dumps(members) + b"\n")


@bounded_cache(_KINDS)
def _kind(path: str, reason: str) -> str:
    return f"{_INDEX.sub('[*]', path)}: {reason}"

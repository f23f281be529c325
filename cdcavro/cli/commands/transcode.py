"""`transcode`: messages of one format converted to another, with a report of losses."""

from __future__ import annotations

import re
from collections import Counter
from contextlib import nullcontext
from typing import TYPE_CHECKING, BinaryIO, Final

import click
import orjson

from cdcavro.cli.connector_options import Sent, connector_options
from cdcavro.cli.faults import Faults, Run, VersionWatch, say
from cdcavro.cli.group import REJECTED, example
from cdcavro.cli.options import (
    OUTPUT,
    check_files,
    force_option,
    format_name,
    from_option,
    inputs_argument,
    max_rejects_option,
    zone_option,
)
from cdcavro.cli.progress import Progress
from cdcavro.errors import number_of, shown
from cdcavro.files.lines import Line
from cdcavro.files.streams import STANDARD, open_output, shown_name, total_size
from cdcavro.transcoding.transcoder import Outcome, Transcoded, Transcoder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from zoneinfo import ZoneInfo

    from cdcavro.files.inputs import Inputs
    from cdcavro.files.rejects import MaxRejects
    from cdcavro.transcoding.losses import Loss

_REASONS: Final = 10
_PLACES: Final = 5
_KINDS: Final = 10_000
_OTHERS: Final = "(others)"
_INDEX: Final = re.compile(r"\[[0-9]+\]")


@click.command(epilog=example("cdcavro transcode blob.jsonl --to oms_canal --out canal.jsonl --losses losses.jsonl"))
@inputs_argument
@click.option("--to", "target", required=True, metavar="NAME", callback=format_name(), help="The format to convert to.")
@from_option
@click.option("--out", default=STANDARD, type=OUTPUT, metavar="FILE", help="Default: standard output.")
@click.option("--losses", type=OUTPUT, metavar="FILE", help="Write what is lost to this file, as JSON lines.")
@click.option("--rejects", type=OUTPUT, metavar="FILE", help="Write rejected messages to this file, as JSON lines.")
@zone_option
@connector_options
@max_rejects_option
@force_option
def transcode(
    *,
    inputs: Inputs,
    target: str,
    own: str,
    out: str,
    losses: str | None,
    rejects: str | None,
    zone: ZoneInfo | None,
    sent: Sent,
    max_rejects: MaxRejects,
    force: bool,
) -> None:
    """Convert messages of one format to another.

    The two messages of an update that is sent in halves are joined. What the other format cannot hold is
    counted on standard error, and listed in the --losses file with line, path, value and reason.
    """
    check_files(inputs, out, losses, rejects)
    with (
        Progress("transcoding", total_size(inputs.files), is_in_the_way=out == STANDARD) as progress,
        open_output(out, force=force) as stream,
        open_output(losses, force=force) if losses else nullcontext() as loss_file,
        open_output(rejects, force=force) if rejects else nullcontext() as reject_file,
    ):
        own, lines = inputs.told_lines(own, option="--from", advance=progress.advance)
        faults = Faults(inputs, reject_file)
        run = Run(faults)
        transcoder = Transcoder(own or target, target, zone=zone, unavailable=sent.unavailable, **sent.modes._asdict())
        job = _Job(transcoder, run, inputs, stream, loss_file)
        job.take_all(lines, own)
        faults.finish()
    job.report()
    click.get_current_context().exit(0 if max_rejects.allows(run.rejected, run.read) else REJECTED)


class _Job:
    """Transcodes the lines of a run; writes the messages and the losses."""

    def __init__(
        self, transcoder: Transcoder, run: Run, inputs: Inputs, out: BinaryIO, losses: BinaryIO | None
    ) -> None:
        self._transcoder, self._run, self._inputs, self._out, self._losses = transcoder, run, inputs, out, losses
        self._reasons: Counter[str] = Counter()
        self._of_values: set[str] = set()
        self._written = self._unanswered = 0

    def take_all(self, lines: Iterator[Line], format: str) -> None:
        """Transcode all lines, which are of a format."""
        versions = VersionWatch()

        def transcoded(line: Line) -> list[Outcome]:
            versions.see(line.message(), format)
            return self._transcoder.add(line.message(), line.number)

        for outcomes in self._run.results(lines, transcoded):
            self._take(outcomes)
        self._take(self._transcoder.finish())

    def report(self) -> None:
        """Print on standard error what was read, written, rejected and lost."""
        read, rejected = self._run.read, self._run.rejected
        say(
            f"read {read:,} = transcoded {read - self._unanswered - rejected:,}"
            f" + without a counterpart {self._unanswered:,} + rejected {rejected:,}; wrote {number_of(self._written, 'message')}"
        )
        if self._transcoder.unzoned:
            say(
                f"{number_of(self._transcoder.unzoned, 'time came/times came')} without a zone and"
                f" {'stays' if self._transcoder.unzoned == 1 else 'stay'} text"
                f" (most in {self._unzoned_places()}); --zone gives the source's"
            )
        kinds = sorted(self._reasons.items(), key=lambda kind: (kind[0] not in self._of_values, -kind[1]))
        for reason, count in kinds[:_REASONS]:
            say(f"lost {'once' if count == 1 else f'{count:,} times'}: {reason}")
        if len(self._reasons) > _REASONS:
            say(f"... and {number_of(len(self._reasons) - _REASONS, 'other kind/other kinds')} of losses")

    def _unzoned_places(self) -> str:
        return ", ".join(shown(place) for place, _ in self._transcoder.unzoned_places.most_common(_PLACES))

    def _take(self, outcomes: list[Outcome]) -> None:
        for outcome in outcomes:
            if outcome.error is None:
                self._write(outcome.result())
                continue
            for number, text in outcome.messages:
                self._run.reject(outcome.error, Line.of(number, text))

    def _write(self, result: Transcoded) -> None:
        if not result.texts:
            self._unanswered += len({loss.message for loss in result.losses})
        for text in result.texts:
            self._written += 1
            self._out.write(text + b"\n")
        for loss in result.losses:
            self._lose(loss)

    def _lose(self, loss: Loss) -> None:
        kind = f"{_INDEX.sub('[*]', loss.path)}: {loss.reason}"
        kind = kind if kind in self._reasons or len(self._reasons) < _KINDS else _OTHERS
        self._reasons[kind] += 1
        if loss.is_of_a_value:
            self._of_values.add(kind)
        if self._losses is not None:
            file, line = self._inputs.place(loss.message)
            # The one file of a run needs no name.
            named = {"file": shown_name(file)} if len(self._inputs.files) > 1 else {}
            members = {**named, "line": line, "path": loss.path, "value": loss.value, "reason": loss.reason}
            self._losses.write(orjson.dumps(members) + b"\n")

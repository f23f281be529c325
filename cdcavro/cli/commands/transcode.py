"""`transcode`: messages of one format converted to another, with a report of losses."""

from __future__ import annotations

import re
from collections import Counter
from contextlib import nullcontext
from typing import TYPE_CHECKING, BinaryIO, Final

import click
import orjson

from cdcavro.cli.console import Conversion, Faults, Progress, VersionNotice, say
from cdcavro.cli.group import REJECTED, example
from cdcavro.cli.options import (
    OUTPUT,
    ConnectorSettings,
    check_files,
    connector_options,
    force_option,
    format_name,
    from_option,
    inputs_argument,
    max_rejects_option,
    zone_option,
)
from cdcavro.errors import number_of, shown
from cdcavro.exact.caching import bounded_cache
from cdcavro.files.lines import Line
from cdcavro.files.streams import STANDARD, open_output, shown_name, total_size
from cdcavro.transcoding.transcoder import Outcome, Transcoded, Transcoder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from zoneinfo import ZoneInfo

    from cdcavro.files.inputs import Inputs
    from cdcavro.files.rejects import MaxRejects
    from cdcavro.transcoding.transcoder import Loss

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
    source: str,
    out: str,
    losses: str | None,
    rejects: str | None,
    zone: ZoneInfo | None,
    connector: ConnectorSettings,
    max_rejects: MaxRejects,
    force: bool,
) -> None:
    """Convert messages of one format to another.

    The two messages of an update that is sent in halves are joined. What the other format cannot hold is
    counted on standard error, and listed in the --losses file with line, path, value and reason.
    """
    check_files(inputs, out, losses, rejects)
    with (
        Progress("transcoding", total_size(inputs.files), shares_terminal=out == STANDARD) as progress,
        open_output(out, force=force) as stream,
        open_output(losses, force=force) if losses else nullcontext() as loss_file,
        open_output(rejects, force=force) if rejects else nullcontext() as reject_file,
    ):
        format, lines = inputs.open_lines(source, option="--from", advance=progress.advance)
        faults = Faults(inputs, reject_file)
        conversion = Conversion(faults)
        modes = connector.modes._asdict()
        transcoder = Transcoder(format or target, target, zone=zone, unavailable=connector.unavailable, **modes)
        job = _Job(transcoder, conversion, inputs, stream, loss_file)
        job.transcode(lines, format)
        faults.finish()
    job.report()
    click.get_current_context().exit(0 if max_rejects.allows(conversion.rejected, conversion.read) else REJECTED)


class _Job:
    """Transcodes the lines of a run; writes the messages and the losses."""

    def __init__(
        self, transcoder: Transcoder, conversion: Conversion, inputs: Inputs, out: BinaryIO, losses: BinaryIO | None
    ) -> None:
        self._transcoder, self._conversion, self._inputs = transcoder, conversion, inputs
        self._out, self._losses = out, losses
        self._reasons: Counter[str] = Counter()
        self._value_losses: set[str] = set()
        self._written = self._without_counterpart = 0

    def transcode(self, lines: Iterator[Line], format: str) -> None:
        """Transcode all lines, which are of a format."""
        versions = VersionNotice()

        def convert(line: Line) -> list[Outcome]:
            versions.see(line.message(), format)
            return self._transcoder.add(line.message(), line.number)

        for outcomes in self._conversion.results(lines, convert):
            self._write(outcomes)
        self._write(self._transcoder.finish())

    def report(self) -> None:
        """Print on standard error what was read, written, rejected and lost."""
        read, rejected = self._conversion.read, self._conversion.rejected
        say(
            f"read {read:,} = transcoded {read - self._without_counterpart - rejected:,}"
            f" + without a counterpart {self._without_counterpart:,} + rejected {rejected:,}; wrote {number_of(self._written, 'message')}"
        )
        if self._transcoder.unzoned:
            say(
                f"{number_of(self._transcoder.unzoned, 'time came/times came')} without a zone and"
                f" {'stays' if self._transcoder.unzoned == 1 else 'stay'} text"
                f" (most in {self._unzoned_places()}); --zone gives the source's"
            )
        kinds = sorted(self._reasons.items(), key=lambda kind: (kind[0] not in self._value_losses, -kind[1]))
        for reason, count in kinds[:_REASONS]:
            say(f"lost {'once' if count == 1 else f'{count:,} times'}: {reason}")
        if len(self._reasons) > _REASONS:
            say(f"... and {number_of(len(self._reasons) - _REASONS, 'other kind/other kinds')} of losses")

    def _unzoned_places(self) -> str:
        return ", ".join(shown(place) for place, _ in self._transcoder.unzoned_places.most_common(_PLACES))

    def _write(self, outcomes: list[Outcome]) -> None:
        for outcome in outcomes:
            if outcome.error is None:
                self._write_result(outcome.result())
                continue
            for number, text in outcome.messages:
                self._conversion.reject(outcome.error, Line.of(number, text))

    def _write_result(self, result: Transcoded) -> None:
        if not result.texts:
            self._without_counterpart += len({loss.message for loss in result.losses})
        for text in result.texts:
            self._written += 1
            self._out.write(text + b"\n")
        for loss in result.losses:
            self._count_loss(loss)

    def _count_loss(self, loss: Loss) -> None:
        kind = _kind(loss.path, loss.reason)
        kind = kind if kind in self._reasons or len(self._reasons) < _KINDS else _OTHERS
        self._reasons[kind] += 1
        if loss.is_of_a_value:
            self._value_losses.add(kind)
        if self._losses is not None:
            file, line = self._inputs.place(loss.message)
            # With one input, its name is not repeated in each loss.
            file_member = {"file": shown_name(file)} if len(self._inputs.files) > 1 else {}
            members = {**file_member, "line": line, "path": loss.path, "value": loss.value, "reason": loss.reason}
            self._losses.write(orjson.dumps(members) + b"\n")


@bounded_cache(_KINDS)
def _kind(path: str, reason: str) -> str:
    return f"{_INDEX.sub('[*]', path)}: {reason}"

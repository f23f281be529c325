"""Arguments and options that several commands share, and how their values are parsed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from cdcavro.cli.faults import say
from cdcavro.errors import UnknownFormatError
from cdcavro.exact.instants import zone_called
from cdcavro.files.inputs import Inputs
from cdcavro.files.lines import HEAD_LINES
from cdcavro.files.rejects import MaxRejects
from cdcavro.files.streams import STANDARD, shown_name
from cdcavro.wire.formats import REGISTRY
from cdcavro.wire.sniff import AUTO, MIXED

if TYPE_CHECKING:
    from collections.abc import Callable
    from zoneinfo import ZoneInfo

INPUT: Final = click.Path(exists=True, dir_okay=False, readable=True, allow_dash=True)
OUTPUT: Final = click.Path(dir_okay=False, allow_dash=True)


def format_name(*words: str) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """Return the callback that checks the name of a format; `words` are also allowed, such as "auto"."""
    known = (*words, *REGISTRY)

    def check(_ctx: click.Context, _param: click.Parameter, value: Any) -> Any:
        if value is not None and value not in known:
            raise click.BadParameter(str(UnknownFormatError(value, known)))
        return value

    return check


def parse_zone(_ctx: click.Context, _param: click.Parameter, value: str | None) -> ZoneInfo | None:
    """Return the time zone with a name. Raises `click.BadParameter`."""
    if value is None:
        return None
    try:
        return zone_called(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


def _jobs(_ctx: click.Context, _param: click.Parameter, value: int) -> int:
    """Return the number of threads to use; 0 stands for one per core that this process may use."""
    return value or (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


def parse_max_rejects(value: str) -> MaxRejects:
    """Return how many rejects are allowed: a number, or a percentage of the messages. Raises `click.BadParameter`."""
    try:
        return MaxRejects.of(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


def check_files(inputs: Inputs, *outputs: str | None) -> None:
    """Check that no output is an input, lies in a folder of inputs, or is another output. Raises `click.UsageError`."""
    files = [os.path.realpath(file) for file in outputs if file not in (None, STANDARD)]
    read = {os.path.realpath(file) for file in inputs.files if file != STANDARD}
    if len({*files}) != len(files) or list(outputs).count(STANDARD) > 1 or read.intersection(files):
        raise click.UsageError("two of the input and the outputs are the same file")
    for file in files:
        for folder in inputs.folders:
            if Path(file).is_relative_to(os.path.realpath(folder)):
                raise click.UsageError(f"{shown_name(file)} lies in {shown_name(folder)}, which is read")


max_rejects_option: Final = click.option(
    "--max-rejects",
    default="0",
    metavar="N|P%",
    callback=lambda _ctx, _param, value: parse_max_rejects(value),
    help="Accept up to N rejected messages, or P percent of them; beyond that the exit code is 1. Default: 0.",
)
force_option: Final = click.option("--force", is_flag=True, help="Replace existing files.")
jobs_option: Final = click.option(
    "--jobs",
    type=click.IntRange(0, 256),
    default=1,
    metavar="N",
    callback=_jobs,
    help="Use N threads, or one per core if N is 0; the output is the same. Only the compiled build gains by it. Default: 1.",
)
mixed_format_option: Final = click.option(
    "--format",
    metavar="auto|mixed|NAME",
    callback=format_name(AUTO, MIXED),
    default=AUTO,
    help="The format. auto (the default) detects that of each file from its first messages, mixed that of every"
    " message.",
)
from_option: Final = click.option(
    "--from",
    "own",
    metavar="auto|NAME",
    callback=format_name(AUTO),
    default=AUTO,
    help=f"The format of the input. Default: auto, which detects it from the first {HEAD_LINES} messages.",
)
zone_option: Final = click.option(
    "--zone", metavar="ZONE", callback=parse_zone, help="The time zone of times without one, e.g. Asia/Shanghai."
)
inputs_argument: Final = click.argument(
    "inputs",
    nargs=-1,
    type=click.Path(exists=True, readable=True, allow_dash=True),
    metavar="[INPUT]...",
    callback=lambda _ctx, _param, paths: Inputs(paths, say),
)

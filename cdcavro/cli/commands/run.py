"""`run`: the main job, on Spark or in this process."""

from __future__ import annotations

import os
import re
from functools import partial
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from cdcavro.cli.console import Counts, ProgressLine, say
from cdcavro.cli.group import REJECTED, Fault, example
from cdcavro.cli.options import (
    check_local,
    check_runner,
    complete_file,
    local_option,
    mixed_format_option,
    parse_max_rejects,
    verbose_option,
)
from cdcavro.cli.spark_session import in_thread, spark_session
from cdcavro.errors import FileError, SetupError, number_of
from cdcavro.files.streams import STANDARD, check_folder

if TYPE_CHECKING:
    from cdcavro.files.rejects import MaxRejects, Report

_GLOB: Final = re.compile(r"[*?\[{]")


@click.command(
    short_help="Convert messages to Avro files, on Spark or locally.",
    epilog=example("cdcavro run changes/ --out lake/ --format mixed --max-rejects 1%"),
)
@click.argument("inputs", nargs=-1, metavar="[INPUT]...", shell_complete=complete_file)
@click.option("--out", required=True, metavar="DIR", help="A folder, or a URI that Spark can write to.")
@mixed_format_option
@click.option(
    "--max-rejects",
    metavar="N|P%",
    callback=lambda _ctx, _param, value: None if value is None else parse_max_rejects(value),
    help="Accept up to N rejected messages, or P percent of them; beyond that the exit code is 1. Default: accept any"
    " number, unless all are rejected.",
)
@click.option("--force", is_flag=True, help="Replace what an earlier run wrote to DIR.")
@click.option("--master", metavar="URL", help="The Spark master. Default: local[*], or that of spark-submit.")
@local_option
@verbose_option
@click.pass_context
def run(
    ctx: click.Context,
    *,
    inputs: tuple[str, ...],
    out: str,
    format: str,
    max_rejects: MaxRejects | None,
    force: bool,
    master: str | None,
    local: bool,
    verbose: bool,
) -> None:
    """Convert messages to Avro container files, on Spark or, with --local, in this process.

    INPUT is a file or folder of JSON lines; without it, the sample messages that come with cdcavro are converted.
    The Avro files are written to DIR/payloads/FORMAT/, and what cannot be converted to DIR/rejects/, with raw
    bytes, file, line and reason.
    """
    check_runner(is_local=local, master=master, is_verbose=verbose)
    _check_files(inputs, out, force=force, is_local=local)
    paths = inputs or (str(resources.files("cdcavro") / "samples"),)
    try:
        if local:
            report = _run_locally(paths, out, format=format, force=force)
        else:
            # A line may have 64 MiB, and several copies of it are in memory at once.
            with spark_session(master, {"spark.driver.memory": "4g"}, is_verbose=verbose) as spark:
                from cdcavro.spark.job import run as convert  # noqa: PLC0415  pyspark takes a second to import

                report = in_thread(partial(convert, spark, paths, out, format=format, force=force, say=say))
    except KeyboardInterrupt:
        say(f"interrupted: {out} is not complete. Run the same command again, with --force")
        raise
    ctx.exit(_tell(report, out, max_rejects))


def _run_locally(paths: tuple[str, ...], out: str, *, format: str, force: bool) -> Report:
    """Convert files in this process. Raises `SetupError` where the libraries for it are not installed."""
    try:
        from cdcavro.sync.local.local_job import run as convert  # noqa: PLC0415  it takes a while
    except ModuleNotFoundError as error:
        raise SetupError(f"{error.name} is not installed: pip install 'cdcavro[local]'") from error
    lines = ProgressLine()
    return lines.finish(
        convert(
            paths,
            out,
            format=format,
            force=force,
            say=lines.say,
            show=lambda done, files: lines.show(f"{number_of(done, 'message')}, {number_of(files, 'file')} begun"),
        )
    )


def _tell(report: Report, out: str, max_rejects: MaxRejects | None) -> int:
    """Print what a run did, and return the exit code."""
    counts = Counts()
    for (name, operation), count in report.written.items():
        counts.add(name, operation, count)
    for name, count in report.rejects.items():
        counts.reject(name, count)
    click.echo(counts.table())
    click.echo(counts.balance("written"))
    if not report.is_complete:
        raise Fault(f"{report.read:,} messages were read and {counts.read:,} were found again: {out} is not complete")
    if counts.rejected:
        say(f"rejected messages are in {out}/rejects, with the reason of each")
    is_allowed = (
        counts.done or not counts.rejected if max_rejects is None else max_rejects.allows(counts.rejected, counts.read)
    )
    return 0 if is_allowed else REJECTED


def _check_files(inputs: tuple[str, ...], out: str, *, force: bool, is_local: bool) -> None:
    """Check what can be checked before Spark starts, which takes a while."""
    for path in inputs:
        _check_input(path, out)
    if "://" not in out:
        check_folder(out)
    for path in (*inputs, out) if is_local else ():
        check_local(path)
    for name in ("payloads", "rejects"):
        if not force and "://" not in out and (Path(out) / name).exists():
            raise FileError(f"{out}/{name}", "a new folder (--force replaces one)", "one that exists")


def _check_input(path: str, out: str) -> None:
    if path == STANDARD:
        raise click.UsageError("`run` reads files and folders, not standard input")
    if "://" not in path and not _GLOB.search(path) and not Path(path).exists():
        raise FileError(path, "a file or folder", "none")
    if Path(path).exists() and not os.access(path, os.R_OK):
        raise FileError(path, "a file or folder that can be read", "one that cannot")
    for folder in (Path(out).resolve() / "payloads", Path(out).resolve() / "rejects"):
        if "://" not in path and Path(path).resolve().is_relative_to(folder):
            raise click.UsageError(f"{click.format_filename(path)} is in a folder that this command writes")

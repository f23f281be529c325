"""`run`: the main job on Spark."""

from __future__ import annotations

import os
import re
from functools import partial
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from cdcavro.cli.console import Counts, say
from cdcavro.cli.group import REJECTED, Fault, example
from cdcavro.cli.options import mixed_format_option, parse_max_rejects
from cdcavro.cli.spark_session import in_thread, spark_session
from cdcavro.errors import FileError
from cdcavro.files.streams import STANDARD, check_folder

if TYPE_CHECKING:
    from cdcavro.files.rejects import MaxRejects

_GLOB: Final = re.compile(r"[*?\[{]")


@click.command(epilog=example("cdcavro run changes/ --out lake/ --format mixed --max-rejects 1%"))
@click.argument("inputs", nargs=-1, metavar="[INPUT]...")
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
) -> None:
    """Convert messages to Avro container files on Spark.

    INPUT is a file or folder of JSON lines; without it, the sample messages that come with cdcavro are converted.
    The Avro files are written to DIR/payloads/FORMAT/, and what cannot be converted to DIR/rejects/, with raw
    bytes, file, line and reason.
    """
    _check_files(inputs, out, force=force)
    paths = inputs or (str(resources.files("cdcavro") / "samples"),)
    # A line may have 64 MiB, and several copies of it are in memory at once.
    with spark_session(master, {"spark.driver.memory": "4g"}) as spark:
        from cdcavro.spark.job import run as convert  # noqa: PLC0415  pyspark takes a second to import

        report = in_thread(partial(convert, spark, paths, out, format=format, force=force, say=say))
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
    ctx.exit(0 if is_allowed else REJECTED)


def _check_files(inputs: tuple[str, ...], out: str, *, force: bool) -> None:
    """Check what can be checked before Spark starts, which takes a while."""
    for path in inputs:
        if path == STANDARD:
            raise click.UsageError("Spark reads files and folders, not standard input")
        if "://" not in path and not _GLOB.search(path) and not Path(path).exists():
            raise FileError(path, "a file or folder", "none")
        if Path(path).exists() and not os.access(path, os.R_OK):
            raise FileError(path, "a file or folder that can be read", "one that cannot")
        for folder in (Path(out).resolve() / "payloads", Path(out).resolve() / "rejects"):
            if "://" not in path and Path(path).resolve().is_relative_to(folder):
                raise click.UsageError(f"{click.format_filename(path)} lies in a folder that is written")
    if "://" not in out:
        check_folder(out)
    for name in ("payloads", "rejects"):
        if not force and "://" not in out and (Path(out) / name).exists():
            raise FileError(f"{out}/{name}", "a new folder, or leave to replace it (--force)", "one that exists")

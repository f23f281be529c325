"""`run`: the main job on Spark."""

from __future__ import annotations

import logging
import re
import sys
import threading
from concurrent.futures import Future
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from cdcavro.cli.faults import say
from cdcavro.cli.group import REJECTED, Fault, example
from cdcavro.cli.options import mixed_format_option, parse_max_rejects
from cdcavro.cli.report import Counts
from cdcavro.errors import FileError
from cdcavro.files.streams import STANDARD

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from cdcavro.files.rejects import MaxRejects
    from cdcavro.spark.job import Report

T = TypeVar("T")
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
    " number.",
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
    with _session(master) as (spark, convert):
        report = convert(spark, paths, out, format=format, force=force, say=say)
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
    ctx.exit(0 if max_rejects is None or max_rejects.allows(counts.rejected, counts.read) else REJECTED)


def _check_files(inputs: tuple[str, ...], out: str, *, force: bool) -> None:
    """Check what can be checked before Spark starts, which takes a while."""
    for path in inputs:
        if path == STANDARD:
            raise click.UsageError("Spark reads files and folders, not standard input")
        if "://" not in path and not _GLOB.search(path) and not Path(path).exists():
            raise FileError(path, "a file or folder", "none")
        for folder in (Path(out).resolve() / "payloads", Path(out).resolve() / "rejects"):
            if "://" not in path and Path(path).resolve().is_relative_to(folder):
                raise click.UsageError(f"{click.format_filename(path)} lies in a folder that is written")
    for name in ("payloads", "rejects"):
        if not force and "://" not in out and (Path(out) / name).exists():
            raise FileError(f"{out}/{name}", "a new folder, or leave to replace it (--force)", "one that exists")


@contextmanager
def _session(master: str | None) -> Iterator[tuple[Any, Callable[..., Report]]]:
    # pyspark takes a second to import and may not be installed; the other commands do not need it.
    from cdcavro.spark.job import run as convert  # noqa: PLC0415
    from cdcavro.spark.session import session, stop  # noqa: PLC0415

    say("starting Spark")
    config = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": str(sys.stderr.isatty()).lower()}
    spark = None
    is_over: AbstractContextManager[Any] = nullcontext()
    try:
        # A line may have 64 MiB, and several copies of it are in memory at once.
        spark = _in_thread(partial(session, master=master, config={"spark.driver.memory": "4g", **config}))
        spark.sparkContext.setLogLevel("ERROR")
        yield spark, lambda *arguments, **options: _in_thread(partial(convert, *arguments, **options))
    except KeyboardInterrupt:
        # Running tasks end in errors that are of no interest.
        is_over = suppress(Exception)
        logging.disable()
        if spark is not None:
            with suppress(Exception):
                spark.sparkContext.setLogLevel("OFF")
                spark.sparkContext.cancelAllJobs()
        raise
    finally:
        with is_over:
            if spark is not None:
                stop(spark)


def _in_thread(function: Callable[[], T]) -> T:
    """Call a function in a thread of its own, so that Ctrl-C interrupts this thread instead of a call to Spark.

    Spark handles Ctrl-C too, but only if its context is created in the main thread.
    """
    done: Future[T] = Future()

    def call() -> None:
        try:
            done.set_result(function())
        except BaseException as error:  # noqa: BLE001  raised again in the waiting thread
            done.set_exception(error)

    threading.Thread(target=call, daemon=True).start()
    return done.result()

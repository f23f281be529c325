"""`run`: the main job, on Spark or in this process.

A Spark session for a command, which Ctrl-C ends.
"""

from __future__ import annotations

import logging
import os
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
from cdcavro.errors import FileError, SetupError, number_of
from cdcavro.files.streams import STANDARD, check_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractContextManager

    from cdcavro.files.rejects import MaxRejects, Report

T = TypeVar("T")
_OPTIONS: Final = "spark.driver.extraJavaOptions"
_ONE_COMPILER: Final = "-XX:TieredStopAtLevel=1"


def one_compiler(master: str | None, config: Mapping[str, str]) -> dict[str, str]:
    """Return the setting that leaves Java's second compiler off; none if executors have JVMs of their own.

    What that compiler makes faster is worth its time only behind some million messages.
    """
    is_local = (master or config.get("spark.master") or "local").startswith("local")
    # What the user states stands behind it, and counts.
    return {_OPTIONS: f"{_ONE_COMPILER} {config.get(_OPTIONS, '')}".strip()} if is_local else {}


@contextmanager
def spark_session(
    master: str | None, config: Mapping[str, str], *, is_verbose: bool = False, note: Callable[[str], None] = say
) -> Iterator[Any]:
    """Start a session with these settings, and stop it. Raises `SetupError`; what uses it belongs in `in_thread`.

    What Java says while it starts is shown if that fails, or if `is_verbose`. `note` takes what is done meanwhile.
    """
    note("starting Spark")
    # pyspark takes a second to import and may not be installed; the other commands do not need it.
    from cdcavro.spark.session import session, stop  # noqa: PLC0415

    defaults = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": str(sys.stderr.isatty()).lower(),
        # Where this package makes a Column is of no use to users, and finding it out takes time for each.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
    }
    spark = None
    heard: list[Any] = []
    is_over: AbstractContextManager[Any] = nullcontext()
    try:
        with nullcontext(_start_loudly) if is_verbose else _quiet_start(heard, note) as launch:
            spark = in_thread(partial(session, master=master, config={**defaults, **config}, launch=launch))
            spark.sparkContext.setLogLevel("ERROR")
        yield spark
    except KeyboardInterrupt:
        # Running tasks end in errors that are of no interest.
        is_over = suppress(Exception)
        logging.disable()
        for one in heard:
            one.drop()
        if spark is not None:
            with suppress(Exception):
                spark.sparkContext.setLogLevel("OFF")
                spark.sparkContext.cancelAllJobs()
        raise
    finally:
        with is_over:
            if spark is not None:
                stop(spark)


def _start_loudly(settings: Mapping[str, str]) -> None:
    """Leave the start to Spark."""


@contextmanager
def _quiet_start(heard: list[Any], note: Callable[[str], None]) -> Iterator[Callable[[Mapping[str, str]], None]]:
    """Yield what starts a JVM whose words are passed on from the end of the block, or shown if it ends with an error.

    What hears them is added to `heard`.
    """

    def launch(settings: Mapping[str, str]) -> None:
        from cdcavro.spark.session import JvmOutput  # noqa: PLC0415  pyspark may be missing, which `session` tells

        heard.append(JvmOutput(partial(note, "fetching jars, which is done once")))
        heard[0].launch(settings)

    is_faulty = False
    try:
        yield launch
    except Exception:
        is_faulty = True
        raise
    finally:
        for one in heard:
            one.pass_on(with_kept=is_faulty)


def in_thread(function: Callable[[], T]) -> T:
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

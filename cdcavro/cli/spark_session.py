"""A Spark session for a command, which Ctrl-C ends."""

from __future__ import annotations

import logging
import sys
import threading
from concurrent.futures import Future
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from cdcavro.cli.console import say

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractContextManager

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

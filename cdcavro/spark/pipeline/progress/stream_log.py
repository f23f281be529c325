"""What Spark logs of a stream that ends in an error of this project: nothing, as the error is raised."""

from __future__ import annotations

import logging
from contextlib import ExitStack, contextmanager, suppress
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from py4j.protocol import Py4JError

from cdcavro.errors import CdcAvroError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame, SparkSession

_STREAMS: Final = "org.apache.spark.sql.execution.streaming"
_BRIDGE: Final = "py4j.clientserver"
_NEVER: Final = logging.CRITICAL + 1
# What is raised where Spark logs by something else than Log4j.
_OTHER_LOGS: Final = (Py4JError, TypeError)
# Levels are the process's: of two streams that end at once, the first puts them back.
_ONE: Final = Lock()


@contextmanager
def hushed(spark: SparkSession, run: Callable[[DataFrame, int], None]) -> Iterator[Callable[[DataFrame, int], None]]:
    """Yield a function that runs batches as `run` does, and of whose errors of this project Spark logs nothing.

    They are sentences, and are raised when the stream has ended; of each, Spark and its bridge to Python would log some
    hundred lines on where they saw it. Other errors are logged as ever, and so is all behind the block.
    """
    with ExitStack() as stack:

        def run_hushed(frame: DataFrame, number: int) -> None:
            try:
                run(frame, number)
            except CdcAvroError:
                # A log of another kind is no reason to fail.
                with suppress(*_OTHER_LOGS):
                    _hush(spark, stack)
                raise

        yield run_hushed


def _hush(spark: SparkSession, stack: ExitStack) -> None:
    """Silence both loggers, until the stack is left. Raises `_OTHER_LOGS`."""
    if not _ONE.acquire(blocking=False):
        return
    stack.callback(_ONE.release)
    bridge = logging.getLogger(_BRIDGE)
    stack.callback(bridge.setLevel, bridge.level)
    bridge.setLevel(_NEVER)
    jvm: Any = spark._jvm  # noqa: SLF001  Spark's log has no Python interface but for its root
    log4j = jvm.org.apache.logging.log4j
    context = log4j.LogManager.getContext(False)  # noqa: FBT003  that which is in use
    put, own = log4j.core.config.Configurator.setLevel, context.getConfiguration().getLoggers().containsKey(_STREAMS)
    before = log4j.LogManager.getLogger(_STREAMS).getLevel()
    put(_STREAMS, log4j.Level.OFF)
    stack.callback(put, _STREAMS, before) if own else stack.callback(_forget, context)


def _forget(context: Any) -> None:
    """Let streams log at the level of all again."""
    context.getConfiguration().removeLogger(_STREAMS)
    context.updateLoggers()

"""The reports of batches, told once Spark says how much is left behind each."""

from __future__ import annotations

import json
from collections import deque
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql.streaming.query import StreamingQuery

    from cdcavro.lake.report.account import AccountFile
    from cdcavro.spark.pipeline.batches import BatchReport
    from cdcavro.spark.pipeline.progress.lag import Lag


class Reports:
    """Takes the report of each batch from Spark's thread, and tells it in the thread of `tell`.

    `say` is called with each; `account` is told the lag, which `lag` takes from Spark's progress.
    """

    def __init__(
        self,
        say: Callable[[BatchReport], None],
        account: AccountFile,
        lag: Callable[[Mapping[str, Any]], Lag | None],
    ) -> None:
        self._say, self._account, self._lag = say, account, lag
        self._queue: deque[BatchReport] = deque()

    def add(self, report: BatchReport) -> None:
        """Take the report of a batch."""
        self._queue.append(report)

    def tell(self, query: StreamingQuery, *, is_over: bool = False) -> None:
        """Tell the reports of batches that are done; all if the stream is over."""
        if not self._queue:
            return
        try:
            # Spark 3.5 gives values of JSON; in 4.0, offsets are texts in what it gives, but not in its JSON.
            every = [json.loads(one.json) if hasattr(one, "json") else one for one in query.recentProgress]
        except (PySparkException, Py4JError, OSError):
            # A session that is stopped tells nothing more.
            every, is_over = [], True
        # Spark tells of triggers without a batch too, under the number of the next.
        done = {one["batchId"]: one for one in every if "addBatch" in one["durationMs"]}
        while self._queue:
            report = self._queue[0]
            progress = done.get(report.number)
            if progress is None and not is_over and not any(number > report.number for number in done):
                return
            self._queue.popleft()
            report.lag = None if progress is None else self._lag(progress)
            if report.lag is not None:
                self._account.note_lag(report.number, *report.lag)
            self._say(report)

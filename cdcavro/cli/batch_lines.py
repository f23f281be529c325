"""What `cdcavro sync` says of its batches, while it runs and when it ends."""

from __future__ import annotations

import json
import shutil
import sys
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING, Final

import click

from cdcavro.cli.console import ERASE, ProgressLine, is_one_stream, say, table
from cdcavro.errors import number_of, plain
from cdcavro.exact.jsontext import PART_OF_MESSAGE
from cdcavro.files.lines import SPLIT
from cdcavro.files.rejects import has_rejects_only, is_all_rejected

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from cdcavro.lake.account import Unparsed
    from cdcavro.sync.batches import BatchReport, Lag
    from cdcavro.sync.metrics import Metrics

# In seconds: how often it is looked whether something is to be said of a batch that takes long.
_BEAT: Final = 0.5
_WORDS: Final = {"c": "inserts", "u": "updates", "d": "deletes", "r": "loaded", "t": "truncates", "x": "drops"}
# How many tables, steps and reasons are listed, or kept.
_MOST: Final = 200
_REASONS: Final = 20
_LACKING: Final = 10
_WIDTH: Final = 60
# Of what was expected: a sentence on a table names several columns.
_REASON_WIDTH: Final = 120
_MAINTAINING: Final = "maintaining lake tables"
_GOT: Final = ", got "
# Where a message of a file is.
_LINE: Final = " line "
# What comes of messages that do not stand on a line each.
_SPLIT: Final = (
    f"{_GOT}{PART_OF_MESSAGE}",
    f"{_GOT}array",
    f"{_GOT}a comma behind the value",
    f"{_GOT}a carriage return between",
)


class BatchLines:
    """Says what batches did; `page` is the file of the report on the pipeline of a state, None if none is wanted.

    `called` (str) is the name of the state's folder on that page, and `hide` takes secrets out of a sentence. Batches are
    added in one thread, and the command ends in another.
    """

    def __init__(
        self,
        state: str,
        page: str | None,
        *,
        is_quiet: bool,
        called: str,
        is_json: bool = False,
        hide: Callable[[str], str] = str,
    ) -> None:
        self._called, self._is_json, self._hide = called, is_json, hide
        # Where the state is read for that page: that of an object store has a copy.
        self.folder: str | Path = state
        self._page, self._is_quiet = page, is_quiet
        self._is_live = not is_quiet and not is_json and sys.stderr is not None and sys.stderr.isatty()
        self._lock = threading.Lock()
        self._is_over = self._is_interrupted = False
        # And what stands on the line of a terminal about a batch, beneath what is shown there of progress.
        self._progress, self._shown = ProgressLine(is_quiet=is_quiet or is_json), ""
        # The batch that runs, or what is done before it: its name, what it reads, and when it began; how many messages are
        # converted.
        self._running: tuple[str, Lag | None, float] | None = None
        self._seen, self._is_converted, self._is_again = 0, False, False
        # Whether no batch has begun, or had to.
        self._is_before = True
        self._counts: Counter[str] = Counter()
        self._operations: dict[str, Counter[str]] = {}
        self._rejects: Counter[tuple[str, str, str]] = Counter()
        self._places: dict[tuple[str, str, str], str] = {}
        # What came there.
        self._got: dict[tuple[str, str, str], str] = {}
        self._waiting: dict[str, str] = {}
        self._steps: list[str] = []
        self._step_count = 0
        self._unparsed: Unparsed | None = None
        self._look: str | None = None
        self._last: int | None = None
        # They get the report of each batch, too: metrics, None if there are none, and functions that take reports.
        self.metrics: Metrics | None = None
        self.listeners: list[Callable[[BatchReport], None]] = []

    @property
    def is_all_rejected(self) -> bool:
        """Whether there were messages, and every one of them was rejected."""
        return is_all_rejected(self._counts)

    @property
    def waiting(self) -> dict[str, str]:
        """The tables whose rows wait, and why, as the last batch said."""
        return self._waiting

    def add(self, report: BatchReport) -> None:
        """Add a batch, and say what it did."""
        if self.metrics is not None:
            self.metrics.add(report)
        for listener in self.listeners:
            listener(report)
        with self._lock:
            if self._is_over:
                return
            self._running = None
            self._count(report)
            self._last = report.number
            if self._is_json:
                say(json.dumps(report.facts, ensure_ascii=False))
                self._waiting = report.waiting
                self._write_page()
                return
            self._show(self._line(report))
            lines = [] if self._is_quiet or self._is_live else [self._line(report)]
            notes = [] if self._is_quiet else [*report.notes, *report.steps]
            waits = [
                f"the rows of {name} are pending: {reason}"
                for name, reason in report.waiting.items()
                if self._waiting.get(name) != reason
            ]
            again = [
                f"the rows of {one.label} that were pending are written"
                for one in ([] if self._is_quiet else report.written)
                if one.has_waited and (one.label in self._waiting or one.label not in report.operations)
            ]
            self._waiting = report.waiting
            self._print(*lines, *map(plain, (*notes, *waits, *again)))
            self._write_page()

    def begin(self, number: int, lag: Lag | None) -> None:
        """Say which batch begins, and how much it reads, if that is known; then, while it runs, how far it is."""
        if self.metrics is not None:
            self.metrics.begin()
        if self._is_quiet or self._is_json:
            return
        what = "" if lag is None else f": {number_of(lag.left, lag.unit.removesuffix('s'))}"
        with self._lock:
            self._show(f"batch {number}{what}")
            self._print(*([] if self._is_live else [f"batch {number}{what}"]))
            self._is_before = False
            self._run(f"batch {number}", lag)

    def start(self, what: str) -> None:
        """Say what is done before the first batch, and from time to time, until there is one, that it takes long."""
        self.note(what)
        self.wait(what)

    def wait(self, what: str) -> None:
        """Say what is done before the first batch only if it takes long."""
        if not (self._is_quiet or self._is_json):
            with self._lock:
                self._run(what, None)

    def stop(self) -> None:
        """Say no more of what takes long."""
        with self._lock:
            self._running = None
            self._print()

    def maintain(self, run: Callable[[], None] | None) -> None:
        """Let lake tables be maintained by `run`, if there is any, unless the pipeline was interrupted or is over."""
        if run is None or self._is_interrupted or self._is_over:
            return
        run()
        with self._lock:
            # On Spark, the next batch may have begun meanwhile.
            if self._running is not None and self._running[0] == _MAINTAINING:
                self._running = None
                self._print()

    def keep_on(self) -> None:
        """Take note that lake tables are being maintained, and go on to be; it is said if it takes long."""
        if self.metrics is not None:
            self.metrics.begin()
        if self._running is None:
            self.wait(_MAINTAINING)

    def _run(self, name: str, lag: Lag | None) -> None:
        """Say from now on how far something is."""
        self._progress.clear()
        self._seen, self._is_converted, self._is_again = 0, False, False
        self._running = name, lag, time.monotonic()
        threading.Thread(target=self._beat, args=(self._running,), daemon=True).start()

    def idle(self) -> None:
        """Take note that all that there was is read."""
        if self.metrics is not None:
            self.metrics.idle()
        if self._is_before:
            self._is_before = False
            self.stop()

    def note(self, sentence: str) -> None:
        """Say something that is of no batch."""
        if not (self._is_quiet or self._is_json):
            self.warn(sentence)

    def warn(self, sentence: str) -> None:
        """Say something that is of no batch, whatever else is wanted."""
        with self._lock:
            self._print(sentence)

    def warn_of_lake(self, sentences: Sequence[str]) -> None:
        """Say which lake tables lack rows, whatever else is wanted: the first ten, and how many more there are."""
        shown, left = [self._hide(one) for one in sentences[:_LACKING]], len(sentences) - _LACKING
        if self._is_json and sentences:
            self.warn(json.dumps({"lacking": shown, "more": max(0, left)}, ensure_ascii=False))
        elif sentences:
            more = [f"... and {left:,} more lake tables lack rows"] if left > 0 else []
            with self._lock:
                self._print(*map(plain, shown), *more)

    def _show(self, line: str) -> None:
        """Note what the line of a terminal is to show from the next `_print` on."""
        # The last column stays free: a line that reaches it is two.
        self._shown = line[: shutil.get_terminal_size().columns - 1] if self._is_live else ""

    def _print(self, *sentences: str) -> None:
        """Print sentences above the line of a terminal, which shows then what is noted, and nothing of progress."""
        self._progress.clear()
        if self._shown:
            sys.stderr.write(ERASE)
        for sentence in sentences:
            say(sentence)
        if self._shown:
            sys.stderr.write(self._shown)
            sys.stderr.flush()

    def _end_line(self) -> None:
        """Let what is printed next stand beneath the line of a terminal."""
        if self._shown:
            sys.stderr.write("\n")
            self._shown = ""
        else:
            self._progress.clear()

    def see(self, count: int, *, is_all: bool) -> None:
        """Take note of how many messages of a batch are converted, and whether these are all."""
        self._is_again = count < self._seen or self._is_again
        self._seen, self._is_converted = count, is_all

    def _beat(self, own: tuple[str, Lag | None, float]) -> None:
        """Say from time to time how far it is."""
        while True:
            time.sleep(_BEAT)
            with self._lock:
                if self._running is not own or self._is_over:
                    return
                self._progress.show(self._words(*own))

    def _words(self, name: str, lag: Lag | None, began: float) -> str:
        """Return how far a batch is, or what is before it, and what is waited for."""
        from cdcavro.sync.settings import awaited  # noqa: PLC0415  only pipelines need it

        waits = "".join(f"; waiting: {plain(self._hide(one))}" for one in awaited())
        seconds = f"after {time.monotonic() - began:.0f} s{waits}"
        if not self._seen:
            return f"{name}: {seconds}"
        seen = number_of(self._seen, "message")
        if lag is not None and not self._is_converted:
            seen += f" of {f'{lag.left:,}' if lag.unit == 'messages' else number_of(lag.left, 'file')}"
        # What was learned of tables on the way is used from the first message on.
        seen += " converted again" if self._is_again else " converted"
        return f"{name}: {seen}{', writing' if self._is_converted else ''} {seconds}"

    def interrupt(self, state: str) -> None:
        """Say that a run was interrupted, and how it goes on; once."""
        with self._lock:
            if self._is_interrupted:
                return
            self._is_interrupted, self._running = True, None
            self._end_line()
            done = (
                "no batch of this run was done"
                if self._last is None
                else f"batch {self._last} was the last that was done"
            )
            say(f"interrupted: {done}. The same command resumes from there, with the state in {state}")

    def finish(self, rejects: str, *, is_whole: bool) -> None:
        """Print the rows by table and operation, why messages were rejected, and an account of all messages.

        `is_whole` says that the run ended as it should. If it did not, and no batch was done, nothing is printed.
        """
        with self._lock:
            self._is_over = True
            self._end_line()
            if not (is_whole or self._counts):
                return
            self._tables()
            self._reasons()
            counts = {"written": 0, "rejected": 0, **self._counts}
            others = [
                f"{name} {count:,}"
                for name, count in counts.items()
                if name != "read" and (count or name in ("written", "rejected"))
            ]
            click.echo(f"read {counts.get('read', 0):,} = {' + '.join(others)}")
            if counts["rejected"]:
                say(f"rejected messages are in {rejects}, with the reason of each")
            if self._unparsed is not None and self._unparsed.count:
                say(plain(self._unparsed.sentence))
            if counts.get("left out") and not any(counts[name] for name in ("written", "rejected")):
                say("all rows were left out: include and exclude in [tables] select none of the tables")
            if has_rejects_only(self._counts) and self._look is not None:
                say(plain(self._look))
            if is_whole:
                self._write_page()

    def _count(self, report: BatchReport) -> None:
        self._counts.update(report.counts)
        self._look = report.look or self._look
        self._unparsed = report.unparsed if self._unparsed is None else self._unparsed + report.unparsed
        if self._is_quiet or self._is_json or not is_one_stream():
            self._steps = [*self._steps, *report.steps][-_MOST:]
            self._step_count += len(report.steps)
        for name, operations in report.operations.items():
            self._operations.setdefault(name, Counter()).update(operations)
        for reject in report.rejects:
            kind = reject.format, reject.path, reject.reason
            if kind in self._rejects or len(self._rejects) < _MOST:
                self._rejects[kind] += reject.count
                self._places.setdefault(kind, reject.place)
                self._got.setdefault(kind, _got(reject.example))

    def _line(self, report: BatchReport) -> str:
        """Return the line of a batch; on a terminal, where each line replaces the one before, it has the totals as well."""
        seconds = sum(report.seconds.values())
        read, rejected, tables = report.counts["read"], report.counts["rejected"], len(report.operations)
        rate = f" ({read / seconds:,.{0 if read >= 10 * seconds else 1}f}/s)" if seconds else ""
        lag = "" if report.lag is None else f", lag {number_of(report.lag.left, report.lag.unit.removesuffix('s'))}"
        if self._is_live:
            counts = self._counts
            return (
                f"batch {report.number}: read {read:,}{rate}{lag}; so far {counts['read']:,},"
                f" {number_of(len(self._operations), 'table')}, rejected {counts['rejected']:,}"
            )
        return (
            f"batch {report.number}: read {read:,} in {seconds:.1f} s{rate}{lag},"
            f" {number_of(tables, 'table')}, rejected {rejected:,}"
        )

    def _write_page(self) -> None:
        if self._page is not None:
            from cdcavro.lake.report_page import write_report  # noqa: PLC0415  only this command needs it

            write_report(self.folder, self._page, called=self._called)

    def _tables(self) -> None:
        """Print the rows by table and operation, and how lake tables changed if that does not already stand above."""
        every = {**{name: Counter[str]() for name in self._waiting}, **self._operations}
        kinds = [kind for kind in _WORDS if any(counts[kind] for counts in every.values())]
        rows = [
            (plain(name), *[f"{counts[kind]:,}" for kind in kinds], "pending" if name in self._waiting else "")
            for name, counts in sorted(every.items())[:_MOST]
        ]
        if rows:
            click.echo(table(("table", *[_WORDS[kind] for kind in kinds], ""), rows))
        if len(every) > _MOST:
            click.echo(f"... and {number_of(len(every) - _MOST, 'more table')}")
        for step in self._steps:
            click.echo(plain(step))
        if self._step_count > _MOST:
            click.echo(f"... and {number_of(self._step_count - _MOST, 'earlier step')}")

    def _reasons(self) -> None:
        """Print the rejects by reason."""
        if not self._rejects:
            return
        shown = [
            (
                *map(_cut, kind[:2]),
                _cut(kind[2].partition(_GOT)[0], _REASON_WIDTH) + self._got[kind],
                f"{count:,}",
                _end(self._places[kind]),
            )
            for kind, count in self._rejects.most_common(_REASONS)
        ]
        click.echo(table(("format", "path", "reason", "rejects", "one of them"), shown))
        others = self._counts["rejected"] - sum(count for _, count in self._rejects.most_common(_REASONS))
        if others:
            click.echo(f"... and {others:,} with other reasons")
        whole = [kind for kind, got in self._got.items() if kind[1] == "$" and got.startswith(_SPLIT)]
        if any(_LINE in self._places[kind] for kind in whole):
            click.echo(SPLIT)


def _cut(text: str, width: int = _WIDTH) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."


def _got(example: str) -> str:
    """Return the end of the reason of one reject, which says what came."""
    _, mark, got = example.partition(_GOT)
    return mark + _cut(got)


def _end(text: str) -> str:
    """Return the end of a place, where the name of a file and the line are."""
    return text if len(text) <= _WIDTH else "..." + text[3 - _WIDTH :]

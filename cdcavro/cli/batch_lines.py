"""What `sync` says of batches: a line for each, or one that is rewritten on a terminal, and a summary at the end."""

from __future__ import annotations

import shutil
import sys
import threading
from collections import Counter
from typing import TYPE_CHECKING, Final

import click

from cdcavro.cli.faults import say
from cdcavro.cli.report import table
from cdcavro.errors import number_of, plain
from cdcavro.files.rejects import is_all_rejected

if TYPE_CHECKING:
    from cdcavro.spark.pipeline import BatchReport

_WORDS: Final = {"c": "inserts", "u": "updates", "d": "deletes", "r": "loaded", "t": "truncates", "x": "drops"}
_ERASE: Final = "\r\x1b[K"
# How many tables, steps and reasons are listed, or kept.
_MOST: Final = 200
_REASONS: Final = 20
_WIDTH: Final = 60


class BatchLines:
    """Says what batches did; `page` is the file of the report on the pipeline of a state, None if none is wanted.

    `called` is what the folder of the state is called there.

    Batches are added by another thread than that in which the command ends.
    """

    def __init__(self, state: str, page: str | None, *, is_quiet: bool, called: str) -> None:
        self._called = called
        self._state, self._page, self._is_quiet = state, page, is_quiet
        self._is_live = not is_quiet and sys.stderr is not None and sys.stderr.isatty()
        self._lock = threading.Lock()
        self._is_over = False
        self._counts: Counter[str] = Counter()
        self._operations: dict[str, Counter[str]] = {}
        self._rejects: Counter[tuple[str, str, str]] = Counter()
        self._places: dict[tuple[str, str, str], str] = {}
        self._waiting: dict[str, str] = {}
        self._steps: list[str] = []
        self._step_count = 0
        self._look: str | None = None

    @property
    def is_all_rejected(self) -> bool:
        """Whether there were messages, and every one of them was rejected."""
        return is_all_rejected(self._counts)

    def add(self, report: BatchReport) -> None:
        """Add a batch, and say what it did."""
        with self._lock:
            if self._is_over:
                return
            self._count(report)
            notes = [] if self._is_quiet else [*report.notes, *report.steps]
            waits = [
                f"the rows of {name} wait: {reason}"
                for name, reason in report.waiting.items()
                if self._waiting.get(name) != reason
            ]
            self._waiting = report.waiting
            if self._is_live:
                sys.stderr.write(_ERASE)
            elif not self._is_quiet:
                say(self._line(report))
            for note in (*notes, *waits):
                say(plain(note))
            if self._is_live:
                # The last column stays free: a line that reaches it is two.
                sys.stderr.write(self._line(report)[: shutil.get_terminal_size().columns - 1])
                sys.stderr.flush()
            self._write_page()

    def finish(self, rejects: str, *, is_whole: bool) -> None:
        """Print the rows by table and operation, why messages were rejected, and an account of all messages.

        `is_whole` says that the run ended as it should; of one that did not, nothing is said if it did nothing.
        """
        with self._lock:
            self._is_over = True
            if self._is_live and self._counts:
                sys.stderr.write("\n")
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
            if self.is_all_rejected and self._look is not None:
                say(f"all of them look like {plain(self._look)}: --format says otherwise")
            if is_whole:
                self._write_page()

    def _count(self, report: BatchReport) -> None:
        self._counts.update(report.counts)
        self._look = report.look or self._look
        self._steps = [*self._steps, *report.steps][-_MOST:]
        self._step_count += len(report.steps)
        for name, operations in report.operations.items():
            self._operations.setdefault(name, Counter()).update(operations)
        for one in report.rejects:
            kind = one.format, one.path, one.reason
            if kind in self._rejects or len(self._rejects) < _MOST:
                self._rejects[kind] += one.count
                self._places.setdefault(kind, one.place)

    def _line(self, report: BatchReport) -> str:
        """Return what there is to say of a batch; on a terminal, where it replaces those before, also of all."""
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
            from cdcavro.lake.report.page import write_report  # noqa: PLC0415  only this command needs it

            write_report(self._state, self._page, called=self._called)

    def _tables(self) -> None:
        """Print the rows by table and operation, and how lake tables changed."""
        every = {**{name: Counter[str]() for name in self._waiting}, **self._operations}
        kinds = [kind for kind in _WORDS if any(one[kind] for one in every.values())]
        rows = [
            (plain(name), *[f"{one[kind]:,}" for kind in kinds], "waits" if name in self._waiting else "")
            for name, one in sorted(every.items())[:_MOST]
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
            (*map(_cut, kind), f"{count:,}", _end(self._places[kind]))
            for kind, count in self._rejects.most_common(_REASONS)
        ]
        click.echo(table(("format", "path", "reason", "rejects", "one of them"), shown))
        left = self._counts["rejected"] - sum(count for _, count in self._rejects.most_common(_REASONS))
        if left:
            click.echo(f"... and {left:,} with other reasons")


def _cut(text: str) -> str:
    return text if len(text) <= _WIDTH else text[: _WIDTH - 3] + "..."


def _end(text: str) -> str:
    """Return the end of a place, where the name of a file and the line are."""
    return text if len(text) <= _WIDTH else "..." + text[3 - _WIDTH :]

"""`sync`, the pipeline from topics or files to lake tables, and what it says of its batches."""

from __future__ import annotations

import json
import shutil
import sys
import threading
import time
from collections import Counter
from contextlib import contextmanager, suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from cdcavro.cli.commands.pipeline_state import ACTIONS, Asked
from cdcavro.cli.console import ERASE, ProgressLine, say, table
from cdcavro.cli.group import REJECTED, example, second_signal_ends
from cdcavro.cli.options import (
    LOCAL,
    check_local,
    check_runner,
    init_option,
    local_option,
    stated_settings,
    verbose_option,
)
from cdcavro.cli.spark_session import in_thread, spark_session
from cdcavro.errors import FileError, SetupError, number_of, plain
from cdcavro.files.rejects import is_all_rejected
from cdcavro.files.streams import check_folder, local_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cdcavro.lake.account import Unparsed
    from cdcavro.sync.batches import BatchReport, Lag
    from cdcavro.sync.config import Config
    from cdcavro.sync.metrics import Metrics
    from cdcavro.sync.pipeline import Pipeline

# The object stores in which delta-rs reaches a lake.
_STORES: Final = frozenset({"s3", "s3a", "gs", "az", "adl", "abfs", "abfss", "azure"})
# In seconds: how often it is looked whether something is to be said of a batch that takes long.
_BEAT: Final = 0.5


@click.command(
    epilog=example("cdcavro sync --files changes/ --format canal --delta lake/ --state state/ --once")
    + "\n\n"
    + "  cdcavro sync --config sync.toml"
)
@click.argument("action", required=False, type=click.Choice([*ACTIONS]), metavar=f"[{'|'.join(ACTIONS)}]")
@click.argument("tables", nargs=-1, metavar="[TABLE]...")
@click.option(
    "--config", type=click.Path(exists=True, dir_okay=False), metavar="FILE", help="The configuration, in TOML."
)
@click.option("--files", metavar="PATH", help="Read JSON lines from this file, folder or pattern of paths.")
@click.option("--kafka", metavar="SERVERS", help="Read from Kafka at these servers, host:port,...")
@click.option("--topic", "topics", multiple=True, metavar="TOPIC", help="A topic to read; can be repeated.")
@click.option("--format", metavar="mixed|NAME", help="The format. Default: mixed, which detects that of every message.")
@click.option("--delta", metavar="DIR", help="Write Delta Lake tables below this folder or address.")
@click.option("--avro", metavar="DIR", help="Write Avro files of the changes of each table to this folder instead.")
@click.option("--changelog", is_flag=True, help="Write every change to a second table, too.")
@click.option("--adopt", is_flag=True, help="Take over lake tables of another pipeline, which does not run any more.")
@click.option("--registry", metavar="URL", help="Publish the schemas of tables here, https://HOST/PATH or file:FOLDER.")
@click.option("--zone", metavar="ZONE", help="The time zone of times without one, e.g. Asia/Shanghai.")
@click.option("--state", metavar="DIR", help="The folder for what the pipeline remembers, and for rejects.")
@click.option(
    "--max-rejects",
    metavar="N|P%",
    help="Stop once more than N messages are rejected, or P percent of all. Default: never.",
)
@click.option(
    "--metrics",
    metavar="HOST:PORT",
    help="Serve metrics at /metrics and the health at /healthz here while it runs, e.g. 127.0.0.1:9400.",
)
@init_option
@local_option
@verbose_option
@click.option("--once", is_flag=True, help="Stop when all that there is now has been read.")
@click.option("--check", is_flag=True, help="Check the configuration and the connections, and do nothing.")
@click.option(
    "--report",
    "page",
    type=click.Path(dir_okay=False, writable=True),
    metavar="FILE",
    help="Write a page in HTML on all batches so far, after each; with show, now.",
)
@click.option("--json", "is_json", is_flag=True, help="With status: print a line of JSON.")
@click.option("--quiet", is_flag=True, help="Say nothing of each batch but which rows wait.")
@click.option(
    "--log",
    type=click.Choice(["text", "json"]),
    default="text",
    metavar="text|json",
    help="How batches are reported on standard error: as a sentence, or as a line of JSON. Default: text.",
)
@click.option("--master", metavar="URL", help="The Spark master. Default: local[*], or that of spark-submit.")
@click.pass_context
def sync(
    ctx: click.Context,
    /,
    *,
    action: str | None,
    config: str | None,
    once: bool,
    check: bool,
    page: str | None,
    quiet: bool,
    log: str,
    local: bool,
    verbose: bool,
    master: str | None,
    **flags: Any,
) -> None:
    """Keep lake tables in step with the databases whose changes arrive in topics or files.

    Messages are read in batches, on Spark or in this process; each table gets its current state, its changelog, or both, or Avro files of
    its changes. A run goes on where the one before stopped or was killed, and nothing is written twice. `show` prints
    what a pipeline remembers, `status` whether it is healthy: its exit code is 1 if a table has stopped. `pause`
    lets the rows of tables wait, `resume` lets them be written; both while no pipeline has the state.
    """
    _check_page(page)
    if flags["tables"] and action not in ("pause", "resume"):
        raise click.UsageError("tables are named for pause and resume only")
    if flags["is_json"] and action != "status":
        raise click.UsageError("--json is of status; --log json says each batch in JSON")
    if action is not None:
        known = None if config is None else _config(config, flags)
        ctx.exit(ACTIONS[action](Asked(flags["state"], known, config, page, flags["is_json"], flags["tables"])))
    configuration = _config(config, {**flags, "local": local})
    if flags["init"] is not None:
        _write_template(config, {**flags, "local": local}, configuration)
    check_runner(is_local=configuration.run == LOCAL, master=master, is_verbose=verbose)
    runner = _run_locally if configuration.run == LOCAL else partial(_run_on_spark, master=master, verbose=verbose)
    called = configuration.redaction.of(configuration.state)
    progress = BatchLines(configuration.state, page, is_quiet=quiet, called=called, is_json=log == "json")
    ctx.exit(
        _run(configuration, partial(runner, file=config or "the options", once=once, check=check), progress, called)
    )


def _run(config: Config, runner: Callable[..., Pipeline | None], progress: BatchLines, called: str) -> int:
    """Run a pipeline, whose state is `called` so in sentences, or check it; return the exit code."""
    try:
        with second_signal_ends(partial(progress.interrupt, called)), _served(config, progress):
            pipeline = runner(config, progress=progress)
    except KeyboardInterrupt:
        progress.interrupt(called)
        raise
    if pipeline is None:
        return 0
    if pipeline.waiting:
        rows = f"rows of {number_of(pipeline.waiting, 'table')} wait in {config.state}"
        say(config.redaction.of(f"{rows}, and are tried again with the next batch"))
    return REJECTED if pipeline.waiting or progress.is_all_rejected else 0


@contextmanager
def _served(config: Config, progress: BatchLines) -> Iterator[None]:
    """Serve metrics, if that is configured, from before anything is started."""
    if config.metrics is None:
        yield
        return
    from cdcavro.sync.metrics import Metrics  # noqa: PLC0415  only pipelines need it
    from cdcavro.sync.status import read_status  # noqa: PLC0415  as above

    progress.metrics = Metrics(config.metrics)
    # A new pipeline has no state, and whatever else is wrong with one is told when it is opened.
    with suppress(FileError):
        progress.metrics.resume(read_status(config.state))
    with progress.metrics.served() as address:
        progress.note(f"metrics are at {address}")
        yield


def _run_locally(config: Config, file: str, progress: BatchLines, *, once: bool, check: bool) -> Pipeline | None:
    """Run a pipeline in this process, or check it; return it if it was run."""
    _check_reached(config)
    try:
        from cdcavro.sync.local.local_runner import Pipeline as LocalPipeline  # noqa: PLC0415  it takes a while

        if config.source.kafka or config.kafka:
            import_module("cdcavro.sync.reading.kafka_client")
    except ModuleNotFoundError as error:
        raise SetupError(f"{error.name} is not installed: pip install 'cdcavro[local]'") from error

    pipeline, redaction = config.pipeline(file, LocalPipeline), config.redaction
    _check_places(config, pipeline)
    pipeline.check_libraries()
    pipeline.check_free()
    _check_brokers(config)
    with redaction.errors():
        if check:
            pipeline.check()
            _say_checked(config, pipeline)
            return None
        with _account(config, pipeline, progress):
            room = config.memory << 20
            run = partial(pipeline.run, say=progress.add, begin=progress.begin, seen=progress.see, idle=progress.idle)
            run(once=once, every=config.every, room=room)
    return pipeline


def _run_on_spark(
    config: Config, file: str, progress: BatchLines, *, once: bool, check: bool, master: str | None, verbose: bool
) -> Pipeline | None:
    """Run a pipeline on Spark, or check it; return it if it was run."""
    stated = config.pipeline(file)
    _check_places(config, stated)
    stated.check_free()
    _check_brokers(config)
    from cdcavro.spark.pipeline import Pipeline as SparkPipeline  # noqa: PLC0415  pyspark takes a second to import
    from cdcavro.spark.pipeline.runner import session_settings  # noqa: PLC0415

    pipeline, redaction = config.pipeline(file, SparkPipeline), config.redaction
    settings = {"spark.driver.memory": "2g", **session_settings(config)}
    with redaction.errors(), spark_session(master, settings, is_verbose=verbose) as spark:
        if check:
            in_thread(partial(pipeline.check, spark))
            _say_checked(config, pipeline)
            return None
        with _account(config, pipeline, progress):
            run = partial(pipeline.run, spark, say=progress.add, begin=progress.begin, idle=progress.idle)
            in_thread(partial(run, once=once, every=config.every))
    return pipeline


@contextmanager
def _account(config: Config, pipeline: Pipeline, progress: BatchLines) -> Iterator[None]:
    """Print what was done when a run ends, also if it is interrupted: it goes on with the next one."""
    is_whole = False
    try:
        yield
        is_whole = True
    except KeyboardInterrupt:
        progress.interrupt(config.redaction.of(config.state))
        raise
    finally:
        # A stream without an end is stopped by Ctrl-C, or by an error that no message caused.
        progress.finish(config.redaction.of(pipeline.rejects), is_whole=is_whole)
    for sentence in pipeline.unmatched:
        say(config.redaction.of(sentence))


def _say_checked(config: Config, pipeline: Pipeline) -> None:
    has_registry = pipeline.registry is not None or pipeline.settings.framed is not None
    parts = [pipeline.source.name, pipeline.sink.name, *(["the registry"] if has_registry else [])]
    reached = f"{', '.join(parts[:-1])} and {parts[-1]} can be reached"
    click.echo(config.redaction.of(f"{reached}, and {config.state} is free"))


def _check_page(page: str | None) -> None:
    if page is not None and not Path(page).absolute().parent.is_dir():
        raise FileError(page, "a file in a folder that there is", "none")


def _check_places(config: Config, pipeline: Pipeline) -> None:
    """Check what can be checked before Spark starts, which takes a while, and say what is odd. Raises `FileError`."""
    places = [config.state, config.rejects]
    if config.lake is not None:
        places += [config.lake.delta, config.lake.warehouse]
    if config.avro is not None:
        places.append(config.avro.folder)
    with config.redaction.errors():
        said = pipeline.source.check_path()
        if said is not None:
            say(config.redaction.of(said))
        for place in places:
            folder = None if place is None else local_folder(place)
            if folder is not None:
                check_folder(str(folder))


def _check_reached(config: Config) -> None:
    """Raise `click.UsageError` for places that a runner without Spark does not reach; its lake knows what it does."""
    places = [config.source.files, config.state, config.rejects, None if config.avro is None else config.avro.folder]
    delta = None if config.lake is None else config.lake.delta
    places += [] if delta is None or delta.partition("://")[0] in _STORES else [delta]
    with config.redaction.errors():
        for place in places:
            check_local(place)


def _check_brokers(config: Config) -> None:
    """Raise `JobError` if the brokers of the source or of the sink do not answer: Spark would ask them for minutes."""
    from cdcavro.sync.reading.broker_answers import check_brokers  # noqa: PLC0415  only pipelines need it

    with config.redaction.errors():
        if config.source.kafka is not None:
            check_brokers(config.source.kafka, config.source.options)
        if config.kafka is not None:
            check_brokers(config.kafka.servers, config.kafka.options)


def _config(file: str | None, flags: dict[str, Any]) -> Config:
    """Return the configuration: that of the file, with what the options say instead."""
    from cdcavro.sync.config import read_config  # noqa: PLC0415  pyspark takes a second to import

    if file is None:
        given = {
            "--files or --kafka": flags["files"] or flags["kafka"],
            "--delta or --avro": flags["delta"] or flags["avro"],
        }
        missing = [name for name, value in {**given, "--state": flags["state"]}.items() if not value]
        if missing:
            raise click.UsageError(f"without --config, {', '.join(missing)} must be given")
    return read_config(None if file is None else Path(file), stated_settings(flags))


def _write_template(config: str | None, flags: dict[str, Any], checked: Config) -> None:
    """Write a configuration to begin with, of which a pipeline can be made, and end the command.

    Raises `click.UsageError` and `FileError`.
    """
    from cdcavro.sync.settings import write_template  # noqa: PLC0415  see _config

    if config is not None:
        raise click.UsageError("either --config or --init")
    checked.pipeline("the options")
    write_template(Path(flags["init"]), type(checked), stated_settings(flags))
    click.echo(f"{plain(flags['init'])} is written: cdcavro sync --config {plain(flags['init'])} --check")
    click.get_current_context().exit()


_WORDS: Final = {"c": "inserts", "u": "updates", "d": "deletes", "r": "loaded", "t": "truncates", "x": "drops"}
# How many tables, steps and reasons are listed, or kept.
_MOST: Final = 200
_REASONS: Final = 20
_WIDTH: Final = 60


class BatchLines:
    """Says what batches did; `page` is the file of the report on the pipeline of a state, None if none is wanted.

    `called` (str) is the name of the state's folder on that page. Batches are added in one thread, and the command ends in
    another.
    """

    def __init__(self, state: str, page: str | None, *, is_quiet: bool, called: str, is_json: bool = False) -> None:
        self._called, self._is_json = called, is_json
        self._state, self._page, self._is_quiet = state, page, is_quiet
        self._is_live = not is_quiet and not is_json and sys.stderr is not None and sys.stderr.isatty()
        self._lock = threading.Lock()
        self._is_over = self._is_interrupted = False
        self._progress = ProgressLine(is_quiet=is_quiet or is_json)
        # The batch that runs: its number, what it reads, and when it began; how many messages are converted.
        self._running: tuple[int, Lag | None, float] | None = None
        self._seen, self._is_converted, self._is_again = 0, False, False
        self._counts: Counter[str] = Counter()
        self._operations: dict[str, Counter[str]] = {}
        self._rejects: Counter[tuple[str, str, str]] = Counter()
        self._places: dict[tuple[str, str, str], str] = {}
        self._waiting: dict[str, str] = {}
        self._steps: list[str] = []
        self._step_count = 0
        self._unparsed: Unparsed | None = None
        self._look: str | None = None
        self._last: int | None = None
        # What is told of each batch as well, None if nothing is.
        self.metrics: Metrics | None = None

    @property
    def is_all_rejected(self) -> bool:
        """Whether there were messages, and every one of them was rejected."""
        return is_all_rejected(self._counts)

    def add(self, report: BatchReport) -> None:
        """Add a batch, and say what it did."""
        if self.metrics is not None:
            self.metrics.add(report)
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
            notes = [] if self._is_quiet else [*report.notes, *report.steps]
            waits = [
                f"the rows of {name} wait: {reason}"
                for name, reason in report.waiting.items()
                if self._waiting.get(name) != reason
            ]
            self._waiting = report.waiting
            if self._is_live:
                sys.stderr.write(ERASE)
            elif not self._is_quiet:
                say(self._line(report))
            for note in (*notes, *waits):
                say(plain(note))
            if self._is_live:
                # The last column stays free: a line that reaches it is two.
                sys.stderr.write(self._line(report)[: shutil.get_terminal_size().columns - 1])
                sys.stderr.flush()
            self._write_page()

    def begin(self, number: int, lag: Lag | None) -> None:
        """Say which batch begins, and how much it reads, if that is known; then, while it runs, how far it is."""
        if self.metrics is not None:
            self.metrics.begin()
        if self._is_quiet or self._is_json:
            return
        what = "" if lag is None else f": {number_of(lag.left, lag.unit.removesuffix('s'))}"
        with self._lock:
            if self._is_live:
                sys.stderr.write(f"{ERASE}batch {number}{what}")
                sys.stderr.flush()
            else:
                say(f"batch {number}{what}")
            self._running = number, lag, time.monotonic()
            self._seen, self._is_converted, self._is_again = 0, False, False
        threading.Thread(target=self._beat, args=(self._running,), daemon=True).start()
        self._progress.clear()

    def idle(self) -> None:
        """Take note that all that there was is read."""
        if self.metrics is not None:
            self.metrics.idle()

    def note(self, sentence: str) -> None:
        """Say something that is of no batch."""
        if not (self._is_quiet or self._is_json):
            say(sentence)

    def see(self, count: int, *, is_all: bool) -> None:
        """Take note of how many messages of a batch are converted, and whether these are all."""
        self._is_again = count < self._seen or self._is_again
        self._seen, self._is_converted = count, is_all

    def _beat(self, own: tuple[int, Lag | None, float]) -> None:
        """Say from time to time how far a batch is."""
        while True:
            time.sleep(_BEAT)
            with self._lock:
                if self._running is not own or self._is_over:
                    return
                self._progress.show(self._words(*own))

    def _words(self, number: int, lag: Lag | None, began: float) -> str:
        """Return how far a batch is."""
        seconds = f"after {time.monotonic() - began:.0f} s"
        if not self._seen:
            return f"batch {number}: {seconds}"
        seen = number_of(self._seen, "message")
        if lag is not None and not self._is_converted:
            seen += f" of {f'{lag.left:,}' if lag.unit == 'messages' else number_of(lag.left, 'file')}"
        # What was learned of tables on the way is used from the first message on.
        seen += " converted again" if self._is_again else " converted"
        return f"batch {number}: {seen}{', writing' if self._is_converted else ''} {seconds}"

    def interrupt(self, state: str) -> None:
        """Say that a run was interrupted, and how it goes on; once."""
        with self._lock:
            if self._is_interrupted:
                return
            self._is_interrupted, self._running = True, None
            if self._is_live and (self._counts or self._seen):
                sys.stderr.write("\n")
            done = "no batch was done" if self._last is None else f"batch {self._last} was the last that was done"
            say(f"interrupted: {done}. The same command goes on from there, with what {state} remembers")

    def finish(self, rejects: str, *, is_whole: bool) -> None:
        """Print the rows by table and operation, why messages were rejected, and an account of all messages.

        `is_whole` says that the run ended as it should. If it did not, and no batch was done, nothing is printed.
        """
        with self._lock:
            self._is_over = True
            if self._is_live and self._counts and not self._is_interrupted:
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
            if self._unparsed is not None and self._unparsed.count:
                say(plain(self._unparsed.sentence))
            if counts.get("left out") and not any(counts[name] for name in ("written", "rejected")):
                say("all rows were left out: no table is one of those that include and exclude in [tables] choose")
            if self.is_all_rejected and self._look is not None:
                say(f"all of them look like {plain(self._look)}: --format says otherwise")
            if is_whole:
                self._write_page()

    def _count(self, report: BatchReport) -> None:
        self._counts.update(report.counts)
        self._look = report.look or self._look
        self._unparsed = report.unparsed if self._unparsed is None else self._unparsed + report.unparsed
        self._steps = [*self._steps, *report.steps][-_MOST:]
        self._step_count += len(report.steps)
        for name, operations in report.operations.items():
            self._operations.setdefault(name, Counter()).update(operations)
        for reject in report.rejects:
            kind = reject.format, reject.path, reject.reason
            if kind in self._rejects or len(self._rejects) < _MOST:
                self._rejects[kind] += reject.count
                self._places.setdefault(kind, reject.place)

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

            write_report(self._state, self._page, called=self._called)

    def _tables(self) -> None:
        """Print the rows by table and operation, and how lake tables changed."""
        every = {**{name: Counter[str]() for name in self._waiting}, **self._operations}
        kinds = [kind for kind in _WORDS if any(counts[kind] for counts in every.values())]
        rows = [
            (plain(name), *[f"{counts[kind]:,}" for kind in kinds], "waits" if name in self._waiting else "")
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
            (*map(_cut, kind), f"{count:,}", _end(self._places[kind]))
            for kind, count in self._rejects.most_common(_REASONS)
        ]
        click.echo(table(("format", "path", "reason", "rejects", "one of them"), shown))
        others = self._counts["rejected"] - sum(count for _, count in self._rejects.most_common(_REASONS))
        if others:
            click.echo(f"... and {others:,} with other reasons")


def _cut(text: str) -> str:
    return text if len(text) <= _WIDTH else text[: _WIDTH - 3] + "..."


def _end(text: str) -> str:
    """Return the end of a place, where the name of a file and the line are."""
    return text if len(text) <= _WIDTH else "..." + text[3 - _WIDTH :]

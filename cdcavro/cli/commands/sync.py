"""`sync`, the pipeline from topics or files to lake tables, and what it says of its batches."""

from __future__ import annotations

import gc
import os
import threading
from contextlib import ExitStack, closing, contextmanager, suppress
from datetime import timedelta
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, Final

import click

from cdcavro.cli.batch_lines import BatchLines
from cdcavro.cli.commands.pipeline_state import ACTIONS, Asked
from cdcavro.cli.console import say
from cdcavro.cli.group import REJECTED, example, second_signal_ends, signals_wait
from cdcavro.cli.options import (
    LOCAL,
    Choice,
    FormatName,
    check_local,
    check_max_rejects,
    check_metrics,
    check_registry,
    check_runner,
    check_zone,
    complete_file,
    init_option,
    local_option,
    stated_settings,
    verbose_option,
)
from cdcavro.cli.spark_session import in_thread, one_compiler, spark_session
from cdcavro.errors import CdcAvroError, FileError, SetupError, number_of, plain, shown
from cdcavro.files.streams import check_folder, local_folder
from cdcavro.wire.sniff import MIXED

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from cdcavro.sync.config import Config
    from cdcavro.sync.pipeline import Pipeline
    from cdcavro.sync.reading.kafka_source import KafkaReader

# In seconds: after how long it is said what is waited for.
_SOON: Final = 0.5
# What is done before the first batch.
_LOOKING: Final = "looking what there is to read"


class _Action(Choice):
    """What is done; the error for a file says how it is given."""

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        """Return what is said of a value that is no action."""
        option = "--config" if value.endswith(".toml") else "--files" if value and os.path.exists(value) else None  # noqa: PTH110  no error for a long one
        if option is None:
            return super().get_invalid_choice_message(value, ctx)
        return f"expected what to do, got {shown(value)}: did you mean {option} {plain(value)}?"


@click.command(
    short_help="Keep lake tables up to date with messages from topics or files.",
    epilog=example("cdcavro sync --files changes/ --format canal --delta lake/ --state state/ --once")
    + "\n\n"
    + "  cdcavro sync --config sync.toml",
)
@click.argument("action", required=False, type=_Action([*ACTIONS]), metavar=f"[{'|'.join(ACTIONS)}]")
@click.argument("tables", nargs=-1, metavar="[TABLE|TOPIC]...")
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="The pipeline's configuration, in TOML.",
)
@click.option(
    "--files",
    metavar="PATH",
    shell_complete=complete_file,
    help="Read JSON lines from this file, folder or pattern of paths.",
)
@click.option("--kafka", metavar="SERVERS", help="Read from Kafka at these servers, host:port,...")
@click.option("--topic", "topics", multiple=True, metavar="TOPIC", help="A topic to read; can be repeated.")
@click.option(
    "--format",
    metavar="mixed|NAME",
    type=FormatName(MIXED),
    help="The format. Default: mixed, which detects that of every message.",
)
@click.option("--delta", metavar="DIR", help="Write Delta Lake tables below this folder or address.")
@click.option("--iceberg", metavar="NAME", help="Write Iceberg tables in the catalog of this name instead.")
@click.option(
    "--warehouse",
    metavar="DIR",
    help="With --iceberg: make it a catalog of files in this folder or, on Spark, address.",
)
@click.option("--avro", metavar="DIR", help="Write Avro files of the changes of each table to this folder instead.")
@click.option("--changelog", is_flag=True, help="Write every change to a second table, too.")
@click.option("--adopt", is_flag=True, help="Take over lake tables of another pipeline, which no longer runs.")
@click.option(
    "--registry",
    metavar="URL",
    callback=check_registry,
    help="Publish the schemas of tables here, https://HOST/PATH or file:FOLDER.",
)
@click.option(
    "--zone",
    metavar="ZONE",
    callback=check_zone,
    help="The time zone of times without one, e.g. Asia/Shanghai.",
)
@click.option(
    "--state",
    metavar="DIR",
    help="The folder, or address in an object store, of the pipeline's state and its rejects.",
)
@click.option(
    "--max-rejects",
    metavar="N|P%",
    callback=check_max_rejects,
    help="Stop once more than N messages are rejected, or P percent of all. Default: never.",
)
@click.option(
    "--metrics",
    metavar="HOST:PORT",
    callback=check_metrics,
    help="Serve /metrics and /healthz at this address during the run, e.g. 127.0.0.1:9400.",
)
@click.option(
    "--opentelemetry", is_flag=True, help="Send metrics, and a span for each batch, as configured by variables OTEL_*."
)
@click.option(
    "--openlineage",
    metavar="JOB",
    help="Send OpenLineage events for a job of this name, as configured by variables OPENLINEAGE_*.",
)
@init_option
@local_option
@verbose_option
@click.option("--once", is_flag=True, help="Stop when everything available has been read.")
@click.option("--check", is_flag=True, help="Only check the configuration and the connections.")
@click.option(
    "--report",
    "page",
    type=click.Path(dir_okay=False, writable=True),
    metavar="FILE",
    help="Write an HTML report on all batches so far, after each batch; with show, now.",
)
@click.option("--json", "is_json", is_flag=True, help="With show and status: print a line of JSON.")
@click.option("--keep", "is_kept", is_flag=True, help="With reset: leave the rows of tables until they are read again.")
@click.option(
    "--finish", "is_finished", is_flag=True, help="With reset, after --keep: remove the rows that were not read again."
)
@click.option("--quiet", is_flag=True, help="Report only pending rows, not each batch.")
@click.option(
    "--log",
    type=Choice(["text", "json"]),
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
    """Keep lake tables up to date with databases whose changes arrive in topics or files.

    Messages are read in batches, on Spark or in this process; for each table, its current state, its changelog, or
    both are written, or Avro files of its changes. A run resumes where the previous one stopped or was killed, and
    nothing is written twice. `show` prints what a pipeline remembers, `status` whether it is healthy: its exit code
    is 1 if a table has stopped or an error ended the last run. `pause` holds back the rows of tables, `resume`
    releases them, and `reset` empties tables, which start again with what is read from then on. With `--keep`, their
    rows stay until they are read again; `--finish` then removes those that were not. `accept-loss` lets a pipeline go
    on with topics that were created again or have lost messages. Run these four while no pipeline uses the state.
    """
    _check_page(page)
    _check_action(action, flags)
    if action is not None:
        known = None if config is None else _config(config, flags)
        own = {name: flags[name] for name in ("is_json", "tables", "is_kept", "is_finished")}
        ctx.exit(ACTIONS[action](Asked(flags["state"], known, config, page, **own)))
    configuration = _config(config, {**flags, "local": local})
    if flags["init"] is not None:
        _write_template(config, {**flags, "local": local}, configuration)
    check_runner(is_local=configuration.run == LOCAL, master=master, is_verbose=verbose)
    runner = _run_locally if configuration.run == LOCAL else partial(_run_on_spark, master=master, verbose=verbose)
    called = configuration.redaction.of(configuration.state)
    hide = configuration.redaction.of
    progress = BatchLines(configuration.state, page, is_quiet=quiet, called=called, is_json=log == "json", hide=hide)
    ctx.exit(
        _run(configuration, partial(runner, file=config or "the options", once=once, check=check), progress, called)
    )


def _check_action(action: str | None, flags: dict[str, Any]) -> None:
    """Raise `click.UsageError` for options of another action."""
    if flags["tables"] and action not in ("pause", "resume", "reset", "accept-loss"):
        raise click.UsageError("only pause, resume and reset take names of tables, and accept-loss of topics")
    if (flags["is_kept"] or flags["is_finished"]) and action != "reset":
        raise click.UsageError("only reset takes --keep and --finish")
    if flags["is_kept"] and flags["is_finished"]:
        raise click.UsageError("either --keep or --finish")
    if flags["is_json"] and action not in ("show", "status"):
        raise click.UsageError("--json works only with show and status; --log json reports each batch in JSON")


def _run(config: Config, runner: Callable[..., Pipeline | None], progress: BatchLines, called: str) -> int:
    """Run a pipeline, whose state is `called` so in sentences, or check it; return the exit code."""
    try:
        with second_signal_ends(partial(progress.interrupt, called)), _served(config, progress):
            pipeline = runner(config, progress=progress)
    except KeyboardInterrupt:
        progress.interrupt(called)
        raise
    finally:
        progress.stop()
    if pipeline is None:
        return 0
    if pipeline.waiting:
        _say_why(config, progress.waiting)
        rows = f"rows of {number_of(pipeline.waiting, 'table')} are pending in {config.state}"
        say(config.redaction.of(f"{rows}, and will be retried with the next batch or run"))
    return REJECTED if pipeline.waiting or progress.is_all_rejected else 0


def _say_why(config: Config, told: Collection[str] = ()) -> None:
    """Say why rows have waited since an earlier run, but of tables of which that is told."""
    from cdcavro.sync.status import read_status  # noqa: PLC0415  only pipelines need it

    for table in read_status(config.state).stopped:
        if table.name not in told and not table.is_paused:
            said = f"the rows of {plain(table.name)} have waited since an earlier run: {plain(table.stopped or '')}"
            say(config.redaction.of(said))


@contextmanager
def _served(config: Config, progress: BatchLines) -> Iterator[None]:
    """Serve and send metrics, as it is configured, from before anything is started."""
    if config.metrics is None:
        yield
        return
    from cdcavro.sync.metrics import Metrics  # noqa: PLC0415  only pipelines need it
    from cdcavro.sync.status import read_status  # noqa: PLC0415  as above

    progress.metrics = Metrics(config.metrics)
    # A new pipeline has no state, and whatever else is wrong with one is told when it is opened.
    with suppress(FileError):
        progress.metrics.resume(read_status(config.state))
    with ExitStack() as stack:
        if config.metrics.listen is not None:
            progress.note(f"metrics are at {stack.enter_context(progress.metrics.served())}")
        if config.metrics.opentelemetry:
            from cdcavro.sync.outputs.telemetry import Telemetry  # noqa: PLC0415  as above

            telemetry = Telemetry(progress.metrics)
            progress.listeners.append(telemetry.add)
            stack.enter_context(telemetry.sending(say))
        yield


@contextmanager
def _lineage(config: Config, pipeline: Pipeline, progress: BatchLines, *, is_once: bool) -> Iterator[None]:
    """Send events on a run, if that is configured."""
    if config.openlineage is None:
        yield
        return
    from cdcavro.sync.outputs.telemetry import Lineage  # noqa: PLC0415  only pipelines need it
    from cdcavro.sync.status import read_status  # noqa: PLC0415  as above

    lineage = Lineage(config.openlineage, pipeline, is_once=is_once)
    with suppress(FileError):
        lineage.resume(read_status(config.state))
    progress.listeners.append(lineage.add)
    with lineage.sending(say):
        yield


def _run_locally(config: Config, file: str, progress: BatchLines, *, once: bool, check: bool) -> Pipeline | None:
    """Run a pipeline in this process, or check it; return it if it was run."""
    _check_reached(config)
    with signals_wait():
        try:
            from cdcavro.sync.local.local_runner import Pipeline as LocalPipeline  # noqa: PLC0415  it takes a while

            if config.source.kafka or config.kafka:
                import_module("cdcavro.sync.reading.kafka_client")
        except ModuleNotFoundError as error:
            raise SetupError(f"{error.name} is not installed: pip install 'cdcavro[local]'") from error
        arrays = import_module("cdcavro.arrow.arrays")
        arrays.leave_pandas()
        arrays.take_pool()
        if not gc.get_freeze_count():
            # What is imported by now stays: no collection of garbage need look at it.
            gc.freeze()
    pipeline, redaction = config.pipeline(file, LocalPipeline), config.redaction
    _check_places(config, pipeline)
    progress.folder = pipeline.folder
    with signals_wait():
        pipeline.check_libraries()
    pipeline.check_free()
    maintenance = _maintenance(config, pipeline, progress)
    _check_brokers(config, progress)
    with redaction.errors():
        if check:
            pipeline.check(progress.warn_of_lake)
            _check_topics(config, pipeline)
            _say_checked(config, pipeline)
            return None
        _look_for_topics(config, pipeline)
        with _account(config, pipeline, progress):
            room = config.memory << 20
            run = partial(pipeline.run, seen=progress.see, **_listeners(progress, maintenance))
            progress.wait(_LOOKING)
            with _lineage(config, pipeline, progress, is_once=once):
                run(once=once, every=config.every, room=room)
    return pipeline


def _run_on_spark(
    config: Config, file: str, progress: BatchLines, *, once: bool, check: bool, master: str | None, verbose: bool
) -> Pipeline | None:
    """Run a pipeline on Spark, or check it; return it if it was run."""
    if find_spec("pyspark") is None:
        expected = "pyspark is not installed: pip install 'cdcavro[spark]', or add --local, which runs without Spark"
        raise SetupError(expected)
    stated = config.pipeline(file)
    _check_places(config, stated)
    stated.check_free()
    _check_brokers(config, progress)
    from cdcavro.spark.pipeline import Pipeline as SparkPipeline  # noqa: PLC0415  pyspark takes a second to import
    from cdcavro.spark.pipeline.runner import session_settings  # noqa: PLC0415

    pipeline, redaction = config.pipeline(file, SparkPipeline), config.redaction
    progress.folder = pipeline.folder
    pipeline.check_free()
    with redaction.errors():
        maintenance = _maintenance(config, pipeline, progress)
    settings = {"spark.driver.memory": "2g", **session_settings(config)}
    settings |= one_compiler(master, settings) if once or check else {}
    with redaction.errors(), spark_session(master, settings, is_verbose=verbose, note=progress.start) as spark:
        progress.wait(_LOOKING)
        if check:
            in_thread(partial(pipeline.check, spark, progress.warn_of_lake))
            _check_topics(config, pipeline)
            _say_checked(config, pipeline)
            return None
        _look_for_topics(config, pipeline)
        with _account(config, pipeline, progress):
            run = partial(pipeline.run, spark, **_listeners(progress, maintenance))
            with _lineage(config, pipeline, progress, is_once=once):
                in_thread(partial(run, once=once, every=config.every))
    return pipeline


def _listeners(progress: BatchLines, maintenance: Callable[[], None] | None) -> dict[str, Any]:
    """Return what either runner calls."""
    maintain = partial(progress.maintain, maintenance)
    told = {"say": progress.add, "begin": progress.begin, "idle": progress.idle, "warn": progress.warn_of_lake}
    return {**told, "maintain": maintain}


def _maintenance(config: Config, pipeline: Pipeline, progress: BatchLines) -> Callable[[], None] | None:
    """Return what maintains lake tables; None if that is not configured. Raises `SetupError` if it is not possible."""
    if config.maintain_every is None:
        return None
    try:
        from cdcavro.sync.local.local_runner import seconds_of  # noqa: PLC0415  only pipelines need it
        from cdcavro.sync.local.local_sinks import Maintenance  # noqa: PLC0415  as above

        every = timedelta(seconds=seconds_of(config.maintain_every))
        note, warn = (partial(_say_by, say, config) for say in (progress.note, progress.warn))
        return Maintenance(pipeline, every, note, warn, progress.keep_on).run
    except ModuleNotFoundError as error:
        raise SetupError(f"{error.name} is not installed: pip install 'cdcavro[local]'") from error


def _say_by(say: Callable[[str], None], config: Config, sentence: str) -> None:
    say(plain(config.redaction.of(sentence)))


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


def _check_topics(config: Config, pipeline: Pipeline) -> None:
    """Raise `JobError` if the run would refuse a topic, created again or with lost messages; say so if none is there."""
    if config.source.kafka is None:
        return
    from cdcavro.sync.reading.stored_state import state_folder  # noqa: PLC0415  only pipelines need it

    try:
        from cdcavro.sync.local.local_runner import reader_of  # noqa: PLC0415  Spark has clients of its own
        from cdcavro.sync.reading.topic_ids import check_topics  # noqa: PLC0415

        reader: Any = reader_of(pipeline.source, pipeline.places)
    except ModuleNotFoundError:
        say("whether messages are lost is not checked: pip install 'cdcavro[local]'")
        return
    try:
        with state_folder(config.state) as folder:
            check_topics(folder, reader)
        _say_no_topic(config, reader)
    finally:
        reader.close()


def _say_no_topic(config: Config, reader: KafkaReader) -> None:
    if config.source.pattern is not None and not reader.latest():
        say(config.redaction.of(f"no topic matches {plain(config.source.pattern)} so far"))


def _look_for_topics(config: Config, pipeline: Pipeline) -> None:
    """Say so if the pattern of topics matches none, before a run that reads none; the run tells what else is wrong."""
    if config.source.pattern is None:
        return
    # Spark has clients of its own, and its patterns are Java's.
    with suppress(ModuleNotFoundError, CdcAvroError):
        from cdcavro.sync.local.local_runner import reader_of  # noqa: PLC0415  only pipelines need it

        reader: Any = reader_of(pipeline.source, pipeline.places)
        with closing(reader):
            _say_no_topic(config, reader)


def _say_checked(config: Config, pipeline: Pipeline) -> None:
    has_registry = pipeline.registry is not None or pipeline.settings.framed is not None
    parts = [pipeline.source.name, pipeline.sink.name, *(["the registry"] if has_registry else [])]
    reached = f"{', '.join(parts[:-1])} and {parts[-1]} can be reached"
    click.echo(config.redaction.of(f"{reached}, and {config.state} is free"))
    # A new pipeline has no state.
    with suppress(FileError):
        _say_why(config)


def _check_page(page: str | None) -> None:
    folder = None if page is None else Path(page).absolute().parent
    if page is None or folder is None:
        return
    if not folder.is_dir():
        raise FileError(page, "a file in an existing folder", "none")
    try:
        # As the page is written: to a new file, which then replaces the one that is there.
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise FileError(page, "a folder in which a file can be written", str(error.strerror or error)) from error


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
                pipeline.source.check_outside(str(folder))


def _check_reached(config: Config) -> None:
    """Raise `click.UsageError` for places that a runner without Spark does not reach; its lake knows what it does."""
    from cdcavro.sync.reading.stored_state import is_stored  # noqa: PLC0415  only pipelines need it

    places = [config.source.files, config.rejects, None if config.avro is None else config.avro.folder]
    places.append(None if config.lake is None else config.lake.warehouse)
    # These may be in object stores.
    either = [config.state, None if config.lake is None else config.lake.delta]
    places += [place for place in either if place is not None and not is_stored(place)]
    with config.redaction.errors():
        for place in places:
            check_local(place)


def _check_brokers(config: Config, progress: BatchLines) -> None:
    """Raise `JobError` if the brokers of the source or of the sink do not answer: Spark would ask them for minutes."""
    from cdcavro.sync.reading.brokers import check_brokers  # noqa: PLC0415  only pipelines need it

    asked = [] if config.source.kafka is None else [(config.source.kafka, config.source.options)]
    if config.kafka is not None:
        asked.append((config.kafka.servers, config.kafka.options))
    for servers, options in asked:
        said = threading.Timer(_SOON, progress.note, [config.redaction.of(f"waiting for Kafka at {servers}")])
        said.start()
        try:
            with config.redaction.errors():
                check_brokers(servers, options)
        finally:
            said.cancel()


def _config(file: str | None, flags: dict[str, Any]) -> Config:
    """Return the configuration: that of the file, with what the options say instead."""
    from cdcavro.sync.config import read_config  # noqa: PLC0415  pyspark takes a second to import

    if file is None:
        given = {
            "--files or --kafka": flags["files"] or flags["kafka"],
            "--delta, --iceberg or --avro": flags["delta"] or flags["iceberg"] or flags["avro"],
        }
        missing = [name for name, value in {**given, "--state": flags["state"]}.items() if not value]
        if missing:
            raise click.UsageError(f"without --config, give {'; '.join(missing)}")
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
    click.echo(f"wrote {plain(flags['init'])}; check it with: cdcavro sync --config {plain(flags['init'])} --check")
    click.get_current_context().exit()

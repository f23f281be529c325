"""`sync`: the pipeline from topics or files to lake tables."""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from cdcavro.cli.batch_lines import BatchLines
from cdcavro.cli.faults import say
from cdcavro.cli.group import REJECTED, example
from cdcavro.cli.spark_session import in_thread, spark_session
from cdcavro.errors import FileError, number_of, plain
from cdcavro.files.streams import check_folder

if TYPE_CHECKING:
    from cdcavro.spark.pipeline.config import Config
    from cdcavro.spark.pipeline.pipeline import Pipeline

SHOW: Final = "show"


@click.command(
    epilog=example("cdcavro sync --files changes/ --format canal --delta lake/ --state state/ --once")
    + "\n\n"
    + "  cdcavro sync --config sync.toml"
)
@click.argument("action", required=False, type=click.Choice([SHOW]), metavar=f"[{SHOW}]")
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
@click.option("--once", is_flag=True, help="Stop when all that there is now has been read.")
@click.option("--check", is_flag=True, help="Check the configuration and the connections, and do nothing.")
@click.option(
    "--report",
    "page",
    type=click.Path(dir_okay=False, writable=True),
    metavar="FILE",
    help="Write a page in HTML on all batches so far, after each; with show, now.",
)
@click.option("--quiet", is_flag=True, help="Say nothing of each batch but which rows wait.")
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
    master: str | None,
    **flags: Any,
) -> None:
    """Keep lake tables in step with the databases whose changes arrive in topics or files.

    Messages are read in batches; each table gets its current state (by MERGE), its changelog, or both, or Avro files of
    its changes. A run goes on where the one before stopped or was killed, and nothing is written twice. `show` prints
    what a pipeline remembers.
    """
    if page is not None and not Path(page).absolute().parent.is_dir():
        raise FileError(page, "a file in a folder that there is", "none")
    if action == SHOW:
        _show(flags["state"], page, None if config is None else _config(config, flags))
        return
    read = _config(config, flags)
    pipeline, hidden = read.pipeline(config or "the options"), read.redaction
    _check_places(read, pipeline)
    with hidden.errors(), spark_session(master, {"spark.driver.memory": "2g", **read.settings()}) as spark:
        if check:
            in_thread(partial(pipeline.check, spark))
            has_registry = pipeline.registry is not None or pipeline.settings.framed is not None
            parts = [pipeline.source.name, pipeline.sink.name, *(["the registry"] if has_registry else [])]
            said = f"{', '.join(parts[:-1])} and {parts[-1]} can be reached, and {read.state} is free"
            click.echo(hidden.of(said))
            return
        progress, is_whole = BatchLines(read.state, page, is_quiet=quiet, called=hidden.of(read.state)), False
        try:
            in_thread(partial(pipeline.run, spark, once=once, every=read.every, say=progress.add))
            is_whole = True
        finally:
            # A stream that runs on ends by Ctrl-C, or by what no message is to blame for.
            progress.finish(hidden.of(pipeline.rejects), is_whole=is_whole)
    if pipeline.waiting:
        wait = f"rows of {number_of(pipeline.waiting, 'table')} wait in {read.state}"
        say(hidden.of(f"{wait}, and are tried again with the next batch"))
    ctx.exit(REJECTED if pipeline.waiting or progress.is_all_rejected else 0)


def _check_places(config: Config, pipeline: Pipeline) -> None:
    """Check what can be checked before Spark starts, which takes a while. Raises `FileError`."""
    from cdcavro.spark.pipeline.shared_folders import local_folder  # noqa: PLC0415  pyspark takes a second to import

    places = [config.state, config.rejects]
    if config.lake is not None:
        places += [config.lake.delta, config.lake.warehouse]
    if config.avro is not None:
        places.append(config.avro.folder)
    with config.redaction.errors():
        pipeline.source.check_path()
        for place in places:
            folder = None if place is None else local_folder(place)
            if folder is not None:
                check_folder(str(folder))


def _config(file: str | None, flags: dict[str, Any]) -> Config:
    """Return the configuration: that of the file, with what the options say instead."""
    from cdcavro.spark.pipeline.config import read_config  # noqa: PLC0415  pyspark takes a second to import

    source = _source_of(flags)
    if flags["delta"] and flags["avro"]:
        raise click.UsageError("either --delta or --avro")
    sections: dict[str, dict[str, Any]] = {"source": source, "tables": {}}
    lake = {
        **({"delta": flags["delta"]} if flags["delta"] else {}),
        **{name: True for name in ("changelog", "adopt") if flags[name]},
    }
    if lake:
        sections["lake"] = lake
    if flags["avro"]:
        sections["avro"] = {"folder": flags["avro"]}
    if flags["registry"]:
        sections["registry"] = {"url": flags["registry"]}
    if flags["zone"]:
        sections["tables"]["zone"] = flags["zone"]
    own = {name: flags[name] for name in ("format", "state", "max_rejects") if flags[name]}
    if file is None:
        missing = [
            name
            for name, there in (
                ("--files or --kafka", flags["files"] or flags["kafka"]),
                ("--delta or --avro", flags["delta"] or flags["avro"]),
                ("--state", flags["state"]),
            )
            if not there
        ]
        if missing:
            raise click.UsageError(f"without --config, {', '.join(missing)} must be given")
    return read_config(None if file is None else Path(file), {**own, **sections})


def _source_of(flags: dict[str, Any]) -> dict[str, Any]:
    """Return what the options say of the source. Raises `click.UsageError`."""
    source = {name: flags[name] for name in ("kafka", "files") if flags[name]}
    if len(source) > 1:
        raise click.UsageError("either --files or --kafka")
    if flags["topics"] and flags["files"]:
        raise click.UsageError("--topic is of --kafka, and not of --files")
    return {**source, **({"topics": list(flags["topics"])} if flags["topics"] else {})}


def _show(state: str | None, page: str | None, config: Config | None) -> None:
    """Print what a pipeline remembers, and write a page on it if that is wanted."""
    redaction = None if config is None else config.redaction
    state = state or (None if config is None else config.state)
    if state is None:
        raise click.UsageError("show needs --state or --config")
    from cdcavro.lake.job_state import JobState  # noqa: PLC0415  the other commands do not need it
    from cdcavro.lake.report.page import write_report  # noqa: PLC0415

    with nullcontext() if redaction is None else redaction.errors():
        folder = Path(state) / "batches"
        batches = JobState(folder).batches() if folder.is_dir() else []
        if not batches:
            raise FileError(state, "the state of a pipeline", "none")
        if page is not None:
            write_report(state, page, called=state if redaction is None else redaction.of(state))
        facts = JobState(folder).facts(batches[-1] + 1)
    lines = [f"batch {batches[-1]}", ", ".join(f"{name} {count:,}" for name, count in facts.get("totals", {}).items())]
    for topic, partition, file, _, end in facts.get("read", []):
        lines.append(f"{file} to line {end}" if file else f"{topic} partition {partition} to offset {end}")
    lines += ["table " + ".".join(part for part in name if part) for _, *name in facts.get("names", [])]
    for line in lines if redaction is None else redaction.of(lines):
        click.echo(line and plain(line))

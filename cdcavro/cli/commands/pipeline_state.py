"""State of a pipeline, without running it: the actions of `sync`, such as `show` and `reset`, and `maintain`.

`replay` lets it read its rejects again, and `decrypt` shows those that are encrypted.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click
import msgspec

from cdcavro.cli.console import say, table
from cdcavro.cli.group import REJECTED, example
from cdcavro.cli.options import OUTPUT, check_files, force_option, inputs_argument
from cdcavro.errors import FileError, MessageError, SetupError, StructureError, number_of, plain
from cdcavro.exact.jsontext import parse
from cdcavro.files.streams import STANDARD, local_folder, open_output, shown_name
from cdcavro.wire.sniff import MIXED

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from cdcavro.files.lines import Inputs
    from cdcavro.sync.config import Config
    from cdcavro.sync.outputs.reject_places import RejectCipher
    from cdcavro.sync.status import LaneStatus, Status, TableStatus

# How many tables and lanes are listed.
_MOST: Final = 1_000
_OF_A_NAME: Final = ("database", "schema", "table")


class Asked(NamedTuple):
    """What is asked of a pipeline's state."""

    # As the options state it, and the configuration with its file.
    stated: str | None
    config: Config | None
    file: str | None
    # The file of the report in HTML.
    page: str | None
    is_json: bool
    # The tables, or topics, that are named.
    tables: Sequence[str] = ()
    # Whether a reset keeps the rows of tables, and whether it ends for tables that kept theirs.
    is_kept: bool = False
    is_finished: bool = False

    def state(self, action: str) -> str:
        """Return the folder of the state. Raises `click.UsageError` if it is not stated."""
        state = self.stated or (None if self.config is None else self.config.state)
        if state is None:
            raise click.UsageError(f"{action} needs --state or --config")
        return state

    def errors(self) -> AbstractContextManager[None]:
        """Return what lets errors of a block show no secret."""
        return nullcontext() if self.config is None else self.config.redaction.errors()

    def of(self, value: Any) -> Any:
        """Return a value that shows no secret."""
        return value if self.config is None else self.config.redaction.of(value)


def _show(asked: Asked) -> int:
    """Print what a pipeline remembers, and write a page on it if that is wanted."""
    state = asked.state("show")
    from cdcavro.lake.job_state import JobState  # noqa: PLC0415  the other commands do not need it
    from cdcavro.lake.report_page import write_report  # noqa: PLC0415
    from cdcavro.sync.reading.stored_state import state_folder  # noqa: PLC0415
    from cdcavro.sync.status import read_status  # noqa: PLC0415

    with asked.errors(), state_folder(state) as own:
        folder = own / "batches"
        batches = JobState(folder).batches() if folder.is_dir() else []
        if not batches:
            is_begun = (own / "job.json").exists()
            expected = "a batch that is converted" if is_begun else "the state of a pipeline"
            raise FileError(state, expected, "none so far" if is_begun else "none")
        if asked.page is not None:
            write_report(own, asked.page, called=asked.of(state))
        facts = JobState(folder).facts(batches[-1] + 1)
    if asked.is_json:
        click.echo(msgspec.json.encode(asked.of(_remembered(batches[-1], facts))))
        return 0
    lines = [f"batch {batches[-1]}", ", ".join(f"{name} {count:,}" for name, count in facts.get("totals", {}).items())]
    for topic, partition, file, _, end in facts.get("read", []):
        lines.append(f"{file} to line {end}" if file else f"{topic} partition {partition} to offset {end + 1}")
    status = read_status(state)
    complete = {table.name: table.complete_until for table in status.tables}
    for name in (one["name"] for one in _tables(facts)):
        until = complete.get(name)
        lines.append(f"table {name}" + ("" if until is None else f", complete until {_shown_time(until)} UTC"))
    lines += _stopped(status)
    for line in asked.of(lines):
        click.echo(line and plain(line))
    return 0


def _remembered(batch: int, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a pipeline remembers as an object whose members are always there."""
    return {
        "batch": batch,
        "counts": facts.get("totals", {}),
        "lanes": [
            {"topic": topic, "partition": partition, "file": file, "position": end if file else end + 1}
            for topic, partition, file, _, end in facts.get("read", [])
        ],
        "tables": _tables(facts),
    }


def _tables(facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the name of each table that has one, as `sync status` has it, with its parts and its shard."""
    from cdcavro.sync.outputs.sink_settings import LakeNames  # noqa: PLC0415  the other commands do not need it

    names = LakeNames.of(facts.get("names", []))
    return [
        {
            "name": names.label_of(number),
            **{part: getattr(one, part) for part in _OF_A_NAME},
            "shard": names.shards.get(number),
        }
        for number, one in names.names.items()
    ]


def _status(asked: Asked) -> int:
    """Print whether a pipeline is healthy; return 0 if no table has stopped and no error ended the last run, otherwise 1."""
    state = asked.state("status")
    from cdcavro.sync.status import read_status  # noqa: PLC0415  the other commands do not need it

    with asked.errors():
        if asked.config is None:
            status = read_status(state)
        else:
            pipeline = asked.config.pipeline(asked.file or "the options")
            status = read_status(state, pipeline.source, pipeline.places)
    status = asked.of(status)
    if asked.is_json:
        click.echo(msgspec.json.encode(status))
    else:
        click.echo("\n".join(_lines(status)))
    return REJECTED if status.stopped or status.failure is not None else 0


def _lines(status: Status) -> list[str]:
    """Return what is said of a pipeline."""
    running = "a pipeline has the state" if status.is_running else "no pipeline has the state"
    if status.batch is None or status.ended is None:
        last = "no batch is done"
    else:
        last = f"batch {status.batch} was done at {datetime.fromtimestamp(status.ended, UTC):%Y-%m-%d %H:%M:%S} UTC"
    begun = "" if status.begun is None else f", batch {status.begun} is begun"
    lines = [f"{last}{begun}; {running}"]
    counts = {"written": 0, "rejected": 0, **status.counts}
    others = [f"{name} {count:,}" for name, count in counts.items() if name != "read"]
    lines.append(f"read {counts.get('read', 0):,} = {' + '.join(others)}, {number_of(status.rows, 'row')}")
    if status.waiting_rejects:
        lines.append(
            f"the rejects of {number_of(status.waiting_rejects, 'batch/batches')} are read again with the next batch"
        )
    if status.unanswered is not None:
        lines.append(f"what is left to read is not known: {plain(status.unanswered)}")
    elif status.lag is not None:
        lines.append(f"{number_of(status.lag, status.unit.removesuffix('s'))} left to read")
    lines += [_position(lane) for lane in status.lanes[:_MOST]]
    if status.tables:
        shown = status.tables[:_MOST]
        columns = ("table", "version", "rows", "pending", *(["complete until"] if _has_marks(shown) else []), "")
        lines.append(table(columns, [_row(one, is_marked=_has_marks(shown)) for one in shown]))
        lines += [
            f"{plain(one.name)}: {number_of(one.late, 'change')} came late, of times up to which all were in"
            for one in shown
            if one.late
        ]
    left = max(0, len(status.tables) - _MOST) + max(0, len(status.lanes) - _MOST)
    lines += [f"... and {left:,} more tables and lanes, which --json has"] if left else []
    if status.failure is not None:
        moment = f"{datetime.fromtimestamp(status.failed or 0, UTC):%Y-%m-%d %H:%M:%S} UTC"
        lines.append(f"the last run ended at {moment} with an error: {plain(status.failure)}")
    return [*lines, *_stopped(status)]


def _stopped(status: Status) -> list[str]:
    stopped = [f"{plain(one.name)} has stopped: {plain(one.stopped or '')}" for one in status.stopped]
    return (
        stopped + [f"{plain(one.name)}: {plain(one.lacks)}" for one in status.tables if one.lacks is not None][:_MOST]
    )


def _position(lane: LaneStatus) -> str:
    if lane.file is not None:
        return f"{plain(lane.file)} to line {lane.position}"
    left = "" if lane.lag is None else f", {lane.lag:,} left"
    return f"{plain(lane.topic or '')} partition {lane.partition} to offset {lane.position}{left}"


def _has_marks(tables: Sequence[TableStatus]) -> bool:
    """Return whether it is known of any table up to when it is complete."""
    return any(one.complete_until is not None for one in tables)


def _row(one: TableStatus, *, is_marked: bool) -> tuple[str, ...]:
    version = "" if one.version is None else str(one.version)
    said = "stopped" if one.stopped is not None else "paused" if one.is_paused else ""
    resets = ["reset with the next run"] if one.is_reset_waiting else []
    resets += ["keeps rows from before its reset"] if one.has_kept_rows else []
    said = ", ".join(filter(None, [said, *resets]))
    mark = [_shown_time(one.complete_until)] if is_marked else []
    return one.name, version, f"{sum(one.rows.values()):,}", f"{one.pending:,}", *mark, said


def _shown_time(seconds: float | None) -> str:
    """Return an instant in UTC, cut to the second, which is not later than it."""
    return "" if seconds is None else f"{datetime.fromtimestamp(int(seconds), UTC):%Y-%m-%d %H:%M:%S}"


def _pause(asked: Asked, *, is_paused: bool) -> int:
    """Pause tables, or let them go on; say which are paused then."""
    state = _state_of_tables(asked, "pause" if is_paused else "resume")
    from cdcavro.sync.pipeline import pause  # noqa: PLC0415  the other commands do not need it
    from cdcavro.sync.reading.stored_state import state_folder  # noqa: PLC0415

    with asked.errors(), state_folder(state, is_changed=True) as folder:
        paused = pause(folder, asked.tables, is_paused=is_paused)
    click.echo(f"paused: {', '.join(map(plain, asked.of(paused))) or 'no table'}")
    return 0


def _reset(asked: Asked) -> int:
    """Reset tables; say which are empty with the next run, or below which order the rows are that are kept."""
    state = _state_of_tables(asked, "reset")
    lake = None if asked.config is None else asked.config.lake
    if asked.is_kept and lake is not None and not lake.current:
        raise FileError(str(asked.file), "current = true in [lake] for rows that reset --keep keeps", "false")
    from cdcavro.sync.pipeline import finish_reset, reset  # noqa: PLC0415  the other commands do not need it
    from cdcavro.sync.reading.stored_state import state_folder  # noqa: PLC0415

    with asked.errors(), state_folder(state, is_changed=True) as folder:
        if asked.is_finished:
            orders = dict.fromkeys(finish_reset(folder, asked.tables), b"")
        else:
            orders = reset(folder, asked.tables, is_kept=asked.is_kept)
    if asked.is_kept:
        for name, order in orders.items():
            left = f"of rows that are not read again, hex(_cdc_order) < '{order.hex().upper()}'"
            click.echo(f"reset with its rows kept: {plain(asked.of(name))}; {left}")
    else:
        what = "rows from before the reset go" if asked.is_finished else "reset"
        click.echo(f"{what} with the next run: {', '.join(map(plain, asked.of([*orders])))}")
    return 0


def _state_of_tables(asked: Asked, action: str) -> str:
    """Return the folder of the state. Raises `click.UsageError` if it is not stated, or no table is."""
    state = asked.state(action)
    if not asked.tables:
        raise click.UsageError(f"{action} needs the names of tables, such as shop.orders")
    return state


def _accept_loss(asked: Asked) -> int:
    """Let topics that have lost messages go on; say how."""
    if not asked.tables:
        raise click.UsageError("accept-loss needs the names of topics")
    if asked.config is None or asked.config.source.kafka is None:
        raise click.UsageError("accept-loss needs --config with the pipeline's topics")
    from cdcavro.sync.pipeline import JOB, job_of  # noqa: PLC0415  the other commands do not need it
    from cdcavro.sync.reading.brokers import check_brokers  # noqa: PLC0415
    from cdcavro.sync.reading.stored_state import state_folder  # noqa: PLC0415

    try:
        from cdcavro.sync.local.local_runner import reader_of  # noqa: PLC0415
        from cdcavro.sync.local.local_sinks import sink_of  # noqa: PLC0415
        from cdcavro.sync.reading.topic_ids import accept_loss  # noqa: PLC0415

        pipeline = asked.config.pipeline(asked.file or "the options")
        reader: Any = reader_of(pipeline.source, pipeline.places)
    except ModuleNotFoundError as error:
        raise SetupError(f"{error.name} is not installed: pip install 'cdcavro[local]'") from error
    with asked.errors(), state_folder(asked.state("accept-loss"), is_changed=True) as folder:
        try:
            if (folder / JOB).exists():
                job_of(folder, sink_of(pipeline.sink).identity(), is_checked=True)
            check_brokers(asked.config.source.kafka, asked.config.source.options)
            found = accept_loss(folder, reader, asked.tables)
        finally:
            reader.close()
    for sentence in found:
        click.echo(plain(asked.of(sentence)))
    return 0


# What can be asked of a state, by its word in `cdcavro sync`; each returns an exit code.
ACTIONS: Final[Mapping[str, Callable[[Asked], int]]] = {
    "show": _show,
    "status": _status,
    "pause": partial(_pause, is_paused=True),
    "resume": partial(_pause, is_paused=False),
    "reset": _reset,
    "accept-loss": _accept_loss,
}


@click.command(short_help="Make a pipeline read its rejects again.", epilog=example("cdcavro replay --state state/"))
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="The pipeline's configuration, in TOML.",
)
@click.option("--state", metavar="DIR", help="The folder, or address in an object store, of the pipeline's state.")
@click.option(
    "--batch",
    "batches",
    type=click.IntRange(min=0),
    multiple=True,
    metavar="N",
    help="Only the rejects of this batch; can be repeated.",
)
def replay(*, config: str | None, state: str | None, batches: tuple[int, ...]) -> None:
    """Make a pipeline read its rejects again, once, after their cause is fixed.

    They are moved to where `cdcavro sync` finds them with its next batch. Each keeps the place where it arrived, so
    that changes made after it still win. A message that is refused again becomes a reject again.
    """
    from cdcavro.sync.config import read_config  # noqa: PLC0415  pyspark takes a second to import
    from cdcavro.sync.outputs.reject_places import has_encrypted  # noqa: PLC0415
    from cdcavro.sync.outputs.reject_places import replay as replay_batches  # noqa: PLC0415
    from cdcavro.sync.pipeline import BATCHES, REPLAY  # noqa: PLC0415
    from cdcavro.sync.protection import ENCRYPT, OMIT  # noqa: PLC0415
    from cdcavro.sync.reading.stored_state import state_folder  # noqa: PLC0415

    read = None if config is None else read_config(Path(config))
    place = state or (None if read is None else read.state)
    if place is None:
        raise click.UsageError("either --state or --config must be given")
    if read is not None and read.rejects_raw == OMIT:
        raise FileError(str(config), "rejects with the bytes of their messages", 'none, by rejects_raw = "omit"')
    if read is not None and read.rejects_raw == ENCRYPT and read.rejects_private_key is None:
        expected = "rejects_private_key, by which the next batch reads the encrypted rejects"
        raise FileError(str(config), expected, "none: give it for as long as they are read")
    with nullcontext() if read is None else read.redaction.errors(), state_folder(place, is_changed=True) as folder:
        if read is None and not (folder / BATCHES).is_dir():
            raise FileError(str(place), "the state of a pipeline", "none")
        stated = str(folder / "rejects") if read is None or read.rejects is None else read.rejects
        rejects, again = local_folder(stated), folder / REPLAY
        if rejects is None:
            raise FileError(stated, "rejects in a folder that is seen here", f"an address: move its batches to {again}")
        moved = replay_batches(rejects, again, batches)
        is_key_needed = read is None and has_encrypted(moved)
    click.echo(f"the rejects of {number_of(len(moved), 'batch/batches')} will be read again")
    if is_key_needed:
        say(
            "some are encrypted, and without --config it is not known whether the pipeline has their key: give it "
            "rejects_private_key for as long as they are read, or they are rejects again"
        )


@click.command(
    short_help="Decrypt the bytes of a pipeline's encrypted rejects.",
    epilog=example("cdcavro decrypt state/rejects --key rejects.pem"),
)
@inputs_argument
@click.option(
    "--key",
    type=click.Path(exists=True, dir_okay=False),
    required=True,
    metavar="FILE",
    help="The private key, in PEM.",
)
@click.option(
    "--out", default=STANDARD, type=OUTPUT, metavar="FILE", help="The file to write. Default: standard output."
)
@force_option
def decrypt(*, inputs: Inputs, key: str, out: str, force: bool) -> None:
    """Decrypt the bytes of a pipeline's rejects, encrypted by rejects_raw = "encrypt".

    The output is the same JSON lines, with `raw` and `record_key` as they would be without encryption. A line that
    cannot be decrypted, or is not a reject, is written unchanged, and reported.
    """
    from cdcavro.sync.outputs.reject_places import RejectCipher  # noqa: PLC0415  as above

    check_files(inputs, out)
    try:
        cipher = RejectCipher.of_private(key)
    except ValueError as error:
        raise FileError(key, "a private key of X25519 in PEM without a password", "something else") from error
    read = failed = 0
    with open_output(out, force=force) as stream:
        for line in (line for file in inputs.files for line in inputs.lines(file, lambda _: None, MIXED)):
            read += 1
            try:
                stream.write(_decrypted_line(line.message(), cipher) + b"\n")
            except MessageError as error:
                failed += 1
                file, number = inputs.place(line.number)
                say(f"{shown_name(file)}:{number}: {error.reason}")
                stream.write(line.raw + b"\n")
    say(f"read {read:,} = decrypted {read - failed:,} + not decrypted {failed:,}")
    click.get_current_context().exit(REJECTED if failed else 0)


def _decrypted_line(line: bytes, cipher: RejectCipher) -> bytes:
    """Return the line of a reject with its bytes decrypted, as far as they are encrypted. Raises `MessageError`."""
    from cdcavro.sync.outputs.reject_places import LAYERS, RAW, RECORD_KEY, is_encrypted  # noqa: PLC0415  as above

    parse(line)
    reject = json.loads(line)
    if not isinstance(reject, dict) or RAW not in reject:
        raise StructureError("a reject of a pipeline", "something else")
    for part in (RAW, RECORD_KEY):
        if isinstance(text := reject.get(part), str):
            try:
                value = b64decode(text, validate=True)
            except ValueError:
                raise StructureError(f"{part} in base64", "something else") from None
            for _ in range(LAYERS):
                value = cipher.decrypt(value, part) if is_encrypted(value) else value
            reject[part] = b64encode(value).decode()
    return json.dumps(reject, ensure_ascii=False, separators=(",", ":")).encode()


@click.command(
    short_help="Compact and clean a pipeline's lake tables.", epilog=example("cdcavro maintain --config sync.toml")
)
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False),
    required=True,
    metavar="FILE",
    help="The pipeline's configuration, in TOML.",
)
@click.option(
    "--keep",
    type=click.IntRange(min=7),
    default=7,
    metavar="DAYS",
    help="Keep files that a version of the last DAYS needs. Default: 7, the minimum.",
)
def maintain(*, config: str, keep: int) -> None:
    """Compact a pipeline's lake tables, and remove files that no version needs any more.

    Deletes whose guard has expired are removed, too. The pipeline may run meanwhile. This works without Spark, with the
    library that writes the tables there; what the library cannot do is reported, table by table.
    """
    from cdcavro.sync.config import read_config  # noqa: PLC0415  the other commands do not need it

    try:
        from cdcavro.sync.local.local_sinks import maintain as maintain_tables  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise SetupError(f"{error.name} is not installed: pip install 'cdcavro[local]'") from error
    read = read_config(Path(config))
    with read.redaction.errors():
        for one in maintain_tables(read.pipeline(config), timedelta(days=keep)):
            click.echo(plain(read.redaction.of(str(one))))

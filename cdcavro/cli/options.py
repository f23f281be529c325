"""Arguments and options that several commands share, and how their values are parsed."""

from __future__ import annotations

import os
from difflib import get_close_matches
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click
from click.shell_completion import CompletionItem

from cdcavro.change.operations import (
    ADAPTIVE_TIME_MICROSECONDS,
    BINARIES,
    BYTES,
    DECIMALS,
    PRECISE,
    TIMES,
    Modes,
)
from cdcavro.cli.console import say
from cdcavro.errors import FileError, UnknownFormatError, hide_credentials, plain
from cdcavro.exact.instants import find_zone
from cdcavro.files.lines import HEAD_LINES, Inputs
from cdcavro.files.rejects import MaxRejects
from cdcavro.files.streams import STANDARD, local_folder, shown_name
from cdcavro.formats.connect_columns import PLACEHOLDER, check_word
from cdcavro.wire.formats import REGISTRY
from cdcavro.wire.sniff import AUTO, MIXED

if TYPE_CHECKING:
    from collections.abc import Callable
    from zoneinfo import ZoneInfo

    from cdcavro.table.columns.column_type import TypeOverrides

INPUT: Final = click.Path(exists=True, dir_okay=False, readable=True, allow_dash=True)
OUTPUT: Final = click.Path(dir_okay=False, allow_dash=True)


class FormatName(click.ParamType[str]):
    """The name of a format; `words` are also allowed, such as "auto". Shells complete it."""

    name = "format"

    def __init__(self, *words: str) -> None:
        self._known = (*words, *REGISTRY)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the name. Raises `click.BadParameter` for one that is not known."""
        if value not in self._known:
            self.fail(str(UnknownFormatError(value, self._known)), param, ctx)
        return value

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002
        """Return the names that begin so."""
        return [CompletionItem(name) for name in self._known if name.startswith(incomplete)]


class Choice(click.Choice[str]):
    """One of some words; the error for another one says which may be meant."""

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        """Return what is said of a value that is none of the words."""
        words = {choice.lower(): choice for choice in self.choices}
        near = get_close_matches(str(value).lower(), words, n=1)
        hint = f": did you mean {words[near[0]]}?" if near else "."
        return super().get_invalid_choice_message(value, ctx).removesuffix(".") + hint


def complete_file(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return what lets a shell complete the name of a file."""
    return [CompletionItem(incomplete, type="file")]


def complete_schema(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the names of formats that begin so; a shell completes those of files where there are none."""
    names = [CompletionItem(name) for name in REGISTRY if name.startswith(incomplete)]
    return [*names, CompletionItem(incomplete, type="file")]


def parse_zone(_ctx: click.Context, _param: click.Parameter, value: str | None) -> ZoneInfo | None:
    """Return the time zone with a name. Raises `click.BadParameter`."""
    if value is None:
        return None
    try:
        return find_zone(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


def _count_threads(_ctx: click.Context, _param: click.Parameter, value: int) -> int:
    """Return the number of threads to use; 0 stands for one per core that this process may use."""
    return value or (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


def parse_max_rejects(value: str) -> MaxRejects:
    """Return how many rejects are allowed: a number, or a percentage of the messages. Raises `click.BadParameter`."""
    try:
        return MaxRejects.of(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


def check_max_rejects(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    """Return the text of a limit as it is. Raises `click.BadParameter` for one that says nothing."""
    if value is not None:
        parse_max_rejects(value)
    return value


def check_zone(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """Return the name of a time zone as it is. Raises `click.BadParameter` for one that there is not."""
    parse_zone(ctx, param, value)
    return value


def check_metrics(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    """Return the address at which metrics are served as it is. Raises `click.BadParameter` for one that is none."""
    if value is not None:
        from cdcavro.sync.metrics import MetricsConfig  # noqa: PLC0415  only pipelines need it

        try:
            MetricsConfig(listen=value)
        except ValueError as error:
            raise click.BadParameter(str(error)) from error
    return value


def check_registry(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    """Return the address of a registry as it is. Raises `click.BadParameter` for one that is none."""
    if value is not None:
        from cdcavro.sync.sections import RegistryConfig  # noqa: PLC0415  only pipelines need it

        try:
            RegistryConfig(url=value).settings("--registry", "registry")
        except FileError as error:
            raise click.BadParameter(error.got) from error
    return value


def check_files(inputs: Inputs, *outputs: str | None) -> None:
    """Check that no output is an input, lies in a folder of inputs, or is another output. Raises `click.UsageError`."""
    files = [os.path.realpath(file) for file in outputs if file not in (None, STANDARD)]
    read = {os.path.realpath(file) for file in inputs.files if file != STANDARD}
    if len({*files}) != len(files) or list(outputs).count(STANDARD) > 1 or read.intersection(files):
        raise click.UsageError("two of the input and the outputs are the same file")
    for file in files:
        for folder in inputs.folders:
            if Path(file).is_relative_to(os.path.realpath(folder)):
                raise click.UsageError(f"{shown_name(file)} lies in {shown_name(folder)}, which is read")


max_rejects_option: Final = click.option(
    "--max-rejects",
    default="0",
    metavar="N|P%",
    callback=lambda _ctx, _param, value: parse_max_rejects(value),
    help="Accept up to N rejected messages, or P percent of them; beyond that the exit code is 1. Default: 0.",
)
force_option: Final = click.option("--force", is_flag=True, help="Replace existing files.")


def _jobs_option(of: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return click.option(
        "--jobs", type=click.IntRange(0, 256), default=1, metavar="N", callback=_count_threads, help=f"{of} Default: 1."
    )


jobs_option: Final = _jobs_option(
    "Use N threads, or one per core if N is 0; the output is the same. Only the compiled build gains by it."
)
processes_option: Final = _jobs_option("Use N processes, or one per core if N is 0; the output is the same.")
json_option: Final = click.option("--json", "as_json", is_flag=True, help="Print JSON, for a program that reads it.")
mixed_format_option: Final = click.option(
    "--format",
    metavar="auto|mixed|NAME",
    type=FormatName(AUTO, MIXED),
    default=AUTO,
    help="The format. auto (the default) detects that of each file from its first messages, mixed that of every"
    " message.",
)


def _input_format_option(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return click.option(
        *names,
        "source",
        metavar="auto|NAME",
        type=FormatName(AUTO),
        default=AUTO,
        help=f"The format of the messages. Default: auto, which detects it from the first {HEAD_LINES} messages.",
    )


format_option: Final = _input_format_option("--format", "--from")
from_option: Final = _input_format_option("--from", "--format")
local_option: Final = click.option("--local", is_flag=True, help="Run in this process, without Spark or Java.")
init_option: Final = click.option(
    "--init",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Write a configuration with the other options, and a line on each other setting, to a new file; do nothing"
    " else.",
)
verbose_option: Final = click.option(
    "--verbose", is_flag=True, help="Show the output of Spark's start and of the download of its jars."
)
zone_option: Final = click.option(
    "--zone", metavar="ZONE", callback=parse_zone, help="The time zone of times without one, e.g. Asia/Shanghai."
)
inputs_argument: Final = click.argument(
    "inputs",
    nargs=-1,
    type=click.Path(exists=True, readable=True, allow_dash=True),
    metavar="[INPUT]...",
    callback=lambda _ctx, _param, paths: Inputs(paths, say),
)


def check_runner(*, is_local: bool, master: str | None, is_verbose: bool) -> None:
    """Check that options of Spark are not given for what runs without it. Raises `click.UsageError`."""
    if is_local and master is not None:
        raise click.UsageError("--master is for Spark, which --local does not use: give one of them")
    if is_local and is_verbose:
        raise click.UsageError("--verbose is for Spark, which --local does not use: give one of them")


def check_local(address: str | None) -> None:
    """Check that an address is one of this machine's files. Raises `click.UsageError`."""
    if address is not None and local_folder(address) is None:
        shown = hide_credentials(address)
        raise click.UsageError(f"--local reads and writes local files, and only Spark can access {shown}")


class ConnectorSettings(NamedTuple):
    """How a Debezium connector sends values: its modes, and the word for values that it does not have (str or None)."""

    modes: Modes
    unavailable: str | None


def connector_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to a command, which gets them as one argument, `connector`."""

    @wraps(command)
    def with_connector(*, decimals: str, times: str, binaries: str, unavailable: str | None, **others: Any) -> Any:
        return command(connector=ConnectorSettings(Modes(decimals, times, binaries), unavailable), **others)

    for option in reversed(_CONNECTOR_OPTIONS):
        with_connector = option(with_connector)
    return with_connector


def _parse_word(_ctx: click.Context, _param: click.Parameter, value: str) -> str | None:
    """Return the word for unavailable values, None for an empty one. Raises `click.BadParameter`."""
    try:
        check_word(value or None)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error
    return value or None


_CONNECTOR_OPTIONS: Final = (
    click.option(
        "--decimals",
        type=Choice(DECIMALS),
        default=PRECISE,
        help="How Debezium represents decimals: its connector's decimal.handling.mode. Default: precise.",
    ),
    click.option(
        "--times",
        type=Choice(TIMES),
        default=ADAPTIVE_TIME_MICROSECONDS,
        help="How Debezium represents dates and times if no schema says so: its connector's time.precision.mode."
        f" Default: {ADAPTIVE_TIME_MICROSECONDS}.",
    ),
    click.option(
        "--binaries",
        type=Choice(BINARIES),
        default=BYTES,
        help="How Debezium represents binary values if no schema says so: its connector's binary.handling.mode."
        " Default: bytes.",
    ),
    click.option(
        "--unavailable",
        metavar="WORD",
        default=PLACEHOLDER,
        callback=_parse_word,
        help="The placeholder for a value that the source did not provide: the connector's"
        f" unavailable.value.placeholder. Default: {PLACEHOLDER}; with an empty WORD there is none.",
    ),
)


class StatedTable(NamedTuple):
    """What the user states of tables: that of rows whose message names none (str or None), and column types."""

    table: str | None
    types: TypeOverrides


class OutputFolder(NamedTuple):
    """The folder that a command writes.

    Fields: its path (str), what its files are (str), whether an older one is replaced, whether it has current rows, and
    whether its Avro files are plain.
    """

    path: str
    kind: str
    force: bool
    is_current: bool
    is_plain: bool


def folder_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--out`, `--as`, `--plain`, `--current` and `--force` to a command, which gets them as one argument, `out`."""

    @wraps(command)
    def with_folder(*, out: str, kind: str, force: bool, current: bool, is_plain: bool, **others: Any) -> Any:
        if is_plain and (current or kind != AVRO):
            raise click.UsageError(f"--plain is for Avro files of changes, not for {PARQUET.capitalize()}")
        return command(out=OutputFolder(out, kind, force, current, is_plain), **others)

    return _out_option(_as_option(_plain_option(_current_option(_force_option(with_folder)))))


def table_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--table` and `--types` to a command, which gets them as one argument, `stated`."""

    @wraps(command)
    def with_stated(*, given_table: str | None, given: TypeOverrides, **others: Any) -> Any:
        return command(stated=StatedTable(given_table, given), **others)

    return _table_option(types_option(with_stated))


def parse_types(_ctx: click.Context, _param: click.Parameter, value: str | None) -> TypeOverrides:
    """Return the column types in a file. Raises `click.BadParameter`."""
    # The table layer takes long to import, and most commands do not need it.
    from cdcavro.table.columns.column_type import read_types  # noqa: PLC0415
    from cdcavro.table.evolution.evolve import NONE_GIVEN  # noqa: PLC0415

    try:
        return NONE_GIVEN if value is None else read_types(value)
    except FileError as error:
        raise click.BadParameter(str(error)) from error
    except OSError as error:
        raise click.BadParameter(f"{plain(value or '')}: {error.strerror or error}") from error


def check_table(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    """Return the name of a table, checked. Raises `click.BadParameter`."""
    from cdcavro.table.table_names import GivenTable  # noqa: PLC0415  see parse_types

    try:
        if value is not None:
            GivenTable.of(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error
    return value


AVRO: Final = "avro"
PARQUET: Final = "parquet"
_out_option: Final = click.option(
    "--out", required=True, type=click.Path(file_okay=False), metavar="DIR", help="The folder to create."
)
_as_option: Final = click.option(
    "--as",
    "kind",
    type=Choice([AVRO, PARQUET]),
    default=AVRO,
    help="The file format of changes: Avro (the default), each version under its own schema; or Parquet, all versions"
    " under the newest, which needs pip install 'cdcavro[arrow]'.",
)
_plain_option: Final = click.option(
    "--plain",
    "is_plain",
    is_flag=True,
    help="Write Avro that every reader reads, including polars: flat records of the newest version, in which local"
    " times, unparsed and absent are strings. Needs pip install 'cdcavro[arrow]'.",
)
_current_option: Final = click.option(
    "--current",
    is_flag=True,
    help="Write the final rows of each table to current.parquet instead of the changes; they are held in memory. Needs"
    " pip install 'cdcavro[arrow]'.",
)
_force_option: Final = click.option("--force", is_flag=True, help="Replace what an earlier run wrote to DIR.")
types_option: Final = click.option(
    "--types",
    "given",
    metavar="FILE",
    callback=parse_types,
    help="Column types to use where messages state none, or instead of those they state: a JSON file such as"
    ' {"database.table": {"column": "decimal(10,2)"}}; a table may also be database.schema.table, table or *.',
)
_table_option: Final = click.option(
    "--table",
    "given_table",
    metavar="NAME",
    callback=check_table,
    help="The table of rows whose message names none: [database.[schema.]]table, with quotes around a part that has a"
    " dot; or @topic, for a table named like the topic of the Kafka record; or @topic.database.table, for one named by"
    " the last parts of the topic.",
)


LOCAL: Final = "local"


def stated_settings(flags: dict[str, Any]) -> dict[str, Any]:
    """Return what the options of `sync` say, as a configuration has it. Raises `click.UsageError`."""
    if sum(bool(flags[name]) for name in ("delta", "iceberg", "avro")) > 1:
        raise click.UsageError("only one of --delta, --iceberg and --avro")
    if flags["warehouse"] and (flags["delta"] or flags["avro"]):
        raise click.UsageError("--warehouse is for --iceberg")
    tables = {"zone": flags["zone"]} if flags["zone"] else {}
    sections: dict[str, dict[str, Any]] = {"source": _source_of(flags), "tables": tables}
    lake = {name: flags[name] for name in ("delta", "iceberg", "warehouse", "changelog", "adopt") if flags[name]}
    if lake:
        sections["lake"] = lake
    for section, setting in (("avro", "folder"), ("registry", "url"), ("metrics", "listen")):
        if flags[section]:
            sections[section] = {setting: flags[section]}
    if flags.get("opentelemetry"):
        sections.setdefault("metrics", {})["opentelemetry"] = True
    top = {name: flags[name] for name in ("format", "state", "max_rejects", "openlineage") if flags[name]}
    return top | sections | ({"run": LOCAL} if flags.get("local") else {})


def _source_of(flags: dict[str, Any]) -> dict[str, Any]:
    """Return what the options say of the source. Raises `click.UsageError`."""
    source = {name: flags[name] for name in ("kafka", "files") if flags[name]}
    if len(source) > 1:
        raise click.UsageError("either --files or --kafka")
    if flags["topics"] and flags["files"]:
        raise click.UsageError("--topic is for --kafka, not for --files")
    return {**source, **({"topics": list(flags["topics"])} if flags["topics"] else {})}

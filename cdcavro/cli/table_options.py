"""Options of the commands that make tables, apart from the others because what parses them takes long to import."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from cdcavro.errors import FileError
from cdcavro.table.columns.overrides import TypeOverrides, read_types
from cdcavro.table.evolution.evolve import NONE_GIVEN
from cdcavro.table.names import GivenTable

if TYPE_CHECKING:
    from collections.abc import Callable


class Given(NamedTuple):
    """What is given where messages do not say it: the table of rows that name none (str or None), and column types."""

    table: str | None
    types: TypeOverrides


class Folder(NamedTuple):
    """The folder that a command writes: its path (str), what its files are (str), and whether an older one is replaced."""

    path: str
    kind: str
    force: bool


def folder_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--out`, `--as` and `--force` to a command, which gets them as one argument, `out`."""

    @wraps(command)
    def with_folder(*, out: str, kind: str, force: bool, **others: Any) -> Any:
        return command(out=Folder(out, kind, force), **others)

    return _out_option(_as_option(_force_option(with_folder)))


def given_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--table` and `--types` to a command, which gets them as one argument, `given`."""

    @wraps(command)
    def with_given(*, given_table: str | None, given: TypeOverrides, **others: Any) -> Any:
        return command(given=Given(given_table, given), **others)

    return _table_option(types_option(with_given))


def parse_types(_ctx: click.Context, _param: click.Parameter, value: str | None) -> TypeOverrides:
    """Return the column types in a file. Raises `click.BadParameter`."""
    try:
        return NONE_GIVEN if value is None else read_types(value)
    except (FileError, OSError) as error:
        raise click.BadParameter(str(error)) from error


def check_table(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    """Return the name of a table, checked. Raises `click.BadParameter`."""
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
    type=click.Choice([AVRO, PARQUET]),
    default=AVRO,
    help="What the files of changes are: Avro (the default), each version under its own schema; or Parquet, all"
    " versions under the newest, which needs pip install 'cdcavro[arrow]'.",
)
_force_option: Final = click.option("--force", is_flag=True, help="Replace what an earlier run wrote to DIR.")
types_option: Final = click.option(
    "--types",
    "given",
    metavar="FILE",
    callback=parse_types,
    help="Column types to use where messages state none, or instead of those they state: a JSON file such as"
    ' {"database.table": {"column": "decimal(10,2)"}}.',
)
_table_option: Final = click.option(
    "--table",
    "given_table",
    metavar="NAME",
    callback=check_table,
    help="The table of rows whose message names none: [database.[schema.]]table, with a part that has a dot in"
    " quotes, or @topic for the one that is called as the topic that their Kafka record states.",
)

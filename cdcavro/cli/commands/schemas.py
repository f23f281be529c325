"""The commands on schemas: `diff` compares two, and `generate` makes typed records for some, as a Python module.

`diff` says what changed between two schemas, and whether each reads the other's data.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from cdcavro.avro.comparison import schema_diff
from cdcavro.avro.compatibility import verdict
from cdcavro.cli.console import json_line, say, table
from cdcavro.cli.group import example
from cdcavro.cli.options import OUTPUT, Choice, complete_schema, force_option, json_option
from cdcavro.cli.schema_sources import read_schema
from cdcavro.errors import UnknownFormatError, visible
from cdcavro.files.streams import STANDARD, open_input, open_output
from cdcavro.records.codegen import KINDS, NamedSchema
from cdcavro.records.codegen import generate as generate_module
from cdcavro.wire.formats import CHANGE, FORMATS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cdcavro.avro.compatibility import Direction, Verdict
    from cdcavro.avro.schema import Schema

NOT_MET: Final = 1
_OF_CHANGE: Final = ("path", "what", "old", "new")
_OF_REASON: Final = ("what", "path", "why")
_MEANINGS: Final = {
    "full": "NEW reads all data of OLD, and OLD all data of NEW",
    "backward": "NEW reads all data of OLD; OLD does not read all data of NEW",
    "forward": "NEW does not read all data of OLD; OLD reads all data of NEW",
    "breaking": "NEW does not read all data of OLD, nor OLD all data of NEW",
}
_DIRECTIONS: Final[dict[tuple[Direction, bool], str]] = {
    ("backward", False): "NEW cannot read OLD",
    ("backward", True): "NEW cannot read some of OLD",
    ("forward", False): "OLD cannot read NEW",
    ("forward", True): "OLD cannot read some of NEW",
}
_NOTES: Final[dict[Direction, str]] = {"backward": "NEW reads OLD", "forward": "OLD reads NEW"}


@click.command(epilog=example("cdcavro diff orders-v1.avsc orders-v2.avsc --require full"))
@click.argument("old", shell_complete=complete_schema)
@click.argument("new", shell_complete=complete_schema)
@click.option(
    "--require",
    type=Choice(("backward", "forward", "full")),
    default="backward",
    help="What must hold for the exit code 0: backward (NEW reads OLD's data, the default), forward (OLD reads NEW's)"
    " or full (both).",
)
@json_option
@click.pass_context
def diff(ctx: click.Context, *, old: str, new: str, require: str, as_json: bool) -> None:
    """Print the differences between two schemas.

    Also states whether each schema reads the other's data. OLD and NEW are .avsc files, Avro container files (for
    the schema in their header) or names of formats; one of them may be - for standard input. The exit code is 1 if
    the compatibility that --require demands is broken: if data written with one schema cannot be read with the other.
    With --json all of this is one object.
    """
    if old == new == STANDARD:
        raise click.UsageError("only one of OLD and NEW can be standard input")
    old_schema, new_schema = read_schema(old), read_schema(new)
    differences = schema_diff(old_schema, new_schema)
    rows = [(change.path, change.what, *map(_plain, (change.old, change.new))) for change in differences]
    result = verdict(reader=new_schema, writer=old_schema)
    reasons = _reasons(result)
    if as_json:
        changes = [dict(zip(_OF_CHANGE, row, strict=True)) for row in rows]
        why = [dict(zip(_OF_REASON, row, strict=True)) for row in reasons]
        click.echo(json_line(changes=changes, verdict=result.name, reasons=why))
    else:
        click.echo(table(_OF_CHANGE, rows) if rows else "the schemas are identical")
        click.echo(f"\nverdict: {result.name}. {_MEANINGS[result.name]}.")
        if reasons:
            click.echo("\n" + table(_OF_REASON, reasons))
    met = {"backward": result.backward, "forward": result.forward, "full": result.backward and result.forward}
    ctx.exit(0 if met[require] else NOT_MET)


def _reasons(result: Verdict) -> list[tuple[str, str, str]]:
    problems = [
        (_DIRECTIONS[problem.direction, problem.partial], problem.path, problem.reason) for problem in result.problems
    ]
    return problems + [("note, " + _NOTES[note.direction], note.path, note.reason) for note in result.notes]


def _plain(text: str) -> str:
    return text if visible(text) == text else ascii(text)[1:-1]


STALE: Final = 1


@click.command(epilog=example("cdcavro generate canal --kind dataclass --out canal_records.py"))
@click.argument("schemas", nargs=-1, required=True, metavar="NAME|FILE...", shell_complete=complete_schema)
@click.option(
    "--kind",
    type=Choice(KINDS),
    required=True,
    help="The kind of records: dataclasses, msgspec Structs or pydantic models; spark stands for the type that Spark's"
    " from_avro returns, also as DDL.",
)
@click.option(
    "--out", default=STANDARD, type=OUTPUT, metavar="FILE", help="The file to write. Default: standard output."
)
@click.option("--check", is_flag=True, help="Write nothing, and end with the exit code 1 if FILE is stale or missing.")
@force_option
@click.pass_context
def generate(ctx: click.Context, *, schemas: Sequence[str], kind: str, out: str, check: bool, force: bool) -> None:
    """Generate a Python module of typed records.

    NAME is a format, or change; FILE is an .avsc file (such as those that `cdcavro tables` writes), an Avro
    container file, or - for standard input. Each record of a schema becomes a class with from_avro, to_avro,
    from_json and to_json. The same schemas always give the same bytes.
    """
    if check and out == STANDARD:
        raise click.UsageError("--check needs --out FILE")
    if schemas.count(STANDARD) > 1:
        raise click.UsageError("only one of the schemas can be standard input")
    if out != STANDARD and os.path.realpath(out) in map(os.path.realpath, schemas):
        raise click.UsageError("--out names one of the schemas")
    module = generate_module([NamedSchema(source, _schema(source)) for source in schemas], kind).encode()
    if check:
        ctx.exit(0 if _is_fresh(out, module) else STALE)
    with open_output(out, force=force) as stream:
        stream.write(module)


def _schema(source: str) -> Schema:
    is_name = source != STANDARD and "." not in source and os.sep not in source
    if is_name and source not in (*FORMATS, CHANGE) and not Path(source).exists():
        raise UnknownFormatError(source, (*FORMATS, CHANGE))
    return read_schema(source)


def _is_fresh(file: str, module: bytes) -> bool:
    shown = click.format_filename(file)
    if not Path(file).exists():
        say(f"{shown} is missing")
        return False
    with open_input(file) as stream:
        is_fresh = stream.read(len(module) + 1) == module
    say(f"{shown} is {'fresh' if is_fresh else 'stale: its schemas give another module'}")
    return is_fresh

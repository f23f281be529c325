"""`diff`: what changed between two schemas, and whether each reads the other's data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from cdcavro.avro.comparison import schema_diff
from cdcavro.avro.compatibility import verdict
from cdcavro.cli.console import table
from cdcavro.cli.group import example
from cdcavro.cli.schema_sources import read_schema
from cdcavro.errors import visible
from cdcavro.files.streams import STANDARD

if TYPE_CHECKING:
    from cdcavro.avro.compatibility import Direction, Verdict

NOT_MET: Final = 1
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
@click.argument("old")
@click.argument("new")
@click.option(
    "--require",
    type=click.Choice(("backward", "forward", "full")),
    default="backward",
    help="What must hold for the exit code 0: backward (NEW reads OLD's data, the default), forward (OLD reads NEW's)"
    " or full (both).",
)
@click.pass_context
def diff(ctx: click.Context, *, old: str, new: str, require: str) -> None:
    """Print the differences between two schemas.

    Also states whether each schema reads the other's data. OLD and NEW are .avsc files, Avro container files (for
    the schema in their header) or names of formats; one of them may be - for standard input. The exit code is 1 if
    the compatibility that --require demands is broken: if data written with one schema cannot be read with the other.
    """
    if old == new == STANDARD:
        raise click.UsageError("only one of OLD and NEW can be standard input")
    old_schema, new_schema = read_schema(old), read_schema(new)
    differences = schema_diff(old_schema, new_schema)
    rows = [(change.path, change.what, *map(_plain, (change.old, change.new))) for change in differences]
    click.echo(table(("path", "what", "old", "new"), rows) if rows else "the schemas are identical")
    result = verdict(reader=new_schema, writer=old_schema)
    click.echo(f"\nverdict: {result.name}. {_MEANINGS[result.name]}.")
    if reasons := _reasons(result):
        click.echo("\n" + table(("what", "path", "why"), reasons))
    met = {"backward": result.backward, "forward": result.forward, "full": result.backward and result.forward}
    ctx.exit(0 if met[require] else NOT_MET)


def _reasons(result: Verdict) -> list[tuple[str, str, str]]:
    problems = [
        (_DIRECTIONS[problem.direction, problem.partial], problem.path, problem.reason) for problem in result.problems
    ]
    return problems + [("note, " + _NOTES[note.direction], note.path, note.reason) for note in result.notes]


def _plain(text: str) -> str:
    return text if visible(text) == text else ascii(text)[1:-1]

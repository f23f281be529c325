"""`diff`: what changed between two schemas, and whether each reads the other's data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from cdcavro.avro.comparison import schema_diff
from cdcavro.avro.compatibility import verdict
from cdcavro.cli.group import example
from cdcavro.cli.report import table
from cdcavro.cli.schema_sources import read_schema
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
    help="What the exit code 0 stands for: NEW reads OLD's data (backward, the default), OLD reads NEW's, or both.",
)
@click.pass_context
def diff(ctx: click.Context, *, old: str, new: str, require: str) -> None:
    """Show what changed from one schema to another, and whether each reads the other's data.

    OLD and NEW are .avsc files, Avro container files (the schema in the header counts), or names of
    formats; one may be - for standard input. The exit code is 1 if the change breaks what --require
    asks for: if there is data that one schema wrote and the other cannot read.
    """
    if old == new == STANDARD:
        raise click.UsageError("only one of OLD and NEW can be standard input")
    was, now = read_schema(old), read_schema(new)
    found = schema_diff(was, now)
    rows = [(one.path, one.what, *map(_plain, (one.old, one.new))) for one in found]
    click.echo(table(("path", "what", "old", "new"), rows) if rows else "the schemas are identical")
    said = verdict(reader=now, writer=was)
    click.echo(f"\nverdict: {said.name}. {_MEANINGS[said.name]}.")
    if reasons := _reasons(said):
        click.echo("\n" + table(("what", "path", "why"), reasons))
    met = {"backward": said.backward, "forward": said.forward, "full": said.backward and said.forward}
    ctx.exit(0 if met[require] else NOT_MET)


def _reasons(said: Verdict) -> list[tuple[str, str, str]]:
    problems = [(_DIRECTIONS[one.direction, one.partial], one.path, one.reason) for one in said.problems]
    return problems + [("note, " + _NOTES[one.direction], one.path, one.reason) for one in said.notes]


def _plain(text: str) -> str:
    return text if text.isprintable() else ascii(text)[1:-1]

"""TODO."""

from __future__ import annotations

import click

from cdcavro.cli.group import example
from cdcavro.cli.registry_options import registry_option
from cdcavro.cli.report import table
from cdcavro.registry import connect


@click.command(epilog=example("cdcavro subjects --registry file:schemas"))
@registry_option
def subjects(*, url: str) -> None:
    """List the subjects of a registry, with the level and the number of versions of each."""
    with connect(url) as place:
        rows = [(one, place.compatibility(one), f"{len(place.versions(one)):,}") for one in place.subjects()]
    click.echo(table(("subject", "compatibility", "versions"), rows))

"""`subjects`: the subjects of a registry."""

from __future__ import annotations

import click

from cdcavro.cli.group import example
from cdcavro.cli.registry_options import registry_option
from cdcavro.cli.report import table
from cdcavro.registry import connect


@click.command(epilog=example("cdcavro subjects --registry file:schemas"))
@registry_option
def subjects(*, url: str) -> None:
    """List the subjects of a registry.

    Each is listed with its compatibility level and the number of its versions.
    """
    with connect(url) as registry:
        rows = [
            (subject, registry.compatibility(subject), f"{len(registry.versions(subject)):,}")
            for subject in registry.subjects()
        ]
    click.echo(table(("subject", "compatibility", "versions"), rows))

"""TODO."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cdcavro.cli.group import example
from cdcavro.cli.registry_options import BREAKS, compatibility_option, registry_option, subject_options
from cdcavro.cli.schema_sources import named_subjects, sources
from cdcavro.registry import connect

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cdcavro.registry.subjects import Strategy


@click.command(epilog=example("cdcavro check orders.avsc --registry file:schemas --subject orders-value"))
@click.argument("names", nargs=-1, required=True, metavar="[FORMAT | FILE.avsc | DIR]...")
@registry_option
@subject_options
@compatibility_option
@click.pass_context
def check(
    ctx: click.Context,
    *,
    names: Sequence[str],
    url: str,
    subject: str | None,
    strategy: Strategy | None,
    topic: str | None,
    compatibility: str | None,
) -> None:
    """Return whether schemas may become the next versions of their subjects, before a change is merged.

    Each is judged by the versions that its subject's level looks at, and several schemas of one subject
    each by those before it too. Nothing is written. The exit code is 1 if a level refuses a schema.
    """
    subjects = named_subjects(subject, strategy, topic)
    found = sources(names, subjects)
    is_refused = False
    with connect(url) as place:
        target = place.rehearsal()
        for one in found:
            own = subjects.of(one)
            is_first = not target.versions(own)
            judged = target.judge(one.schema, own, compatibility=compatibility)
            is_refused |= bool(judged.breaks)
            met = "refused" if judged.breaks else "allowed"
            new = "; the subject is new, and there is nothing to compare with" if is_first else ""
            click.echo(f"{one.name}: subject {own}: {judged.level}: {met}{new}")
            if not is_first:
                click.echo(f"  {judged.verdict}")
            target.publish(one.schema, own, force=True)
    ctx.exit(BREAKS if is_refused else 0)

"""`check`: whether schemas may be published."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cdcavro.cli.group import example
from cdcavro.cli.registry_options import BREAKS, compatibility_option, registry_option, subject_options
from cdcavro.cli.schema_sources import named_subjects, sources
from cdcavro.errors import plain, visible, visible_lines
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
    """Check whether schemas may be published to a registry.

    Each schema is compared with the versions of its subject that the compatibility level covers; if several
    schemas belong to one subject, each is also compared with those before it. Nothing is written, so a change
    can be checked before it is merged. The exit code is 1 if a schema would be refused.
    """
    subjects = named_subjects(subject, strategy, topic)
    is_refused = False
    named = sources(names, subjects)
    with connect(url) as registry:
        target = registry.rehearsal()
        for source in named:
            own = subjects.of(source)
            is_first = not target.versions(own)
            judgement = target.judge(source.schema, own, compatibility=compatibility)
            is_refused |= bool(judgement.breaks)
            outcome = "refused" if judgement.breaks else "allowed"
            new = "; the subject is new, and there is nothing to compare with" if is_first else ""
            click.echo(f"{visible(source.name)}: subject {plain(own)}: {judgement.level}: {outcome}{new}")
            if not is_first:
                click.echo(f"  {visible_lines(str(judgement.verdict))}")
            target.publish(source.schema, own, force=True)
    ctx.exit(BREAKS if is_refused else 0)

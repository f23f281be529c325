"""`publish`: schemas into a registry."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cdcavro.cli.faults import say
from cdcavro.cli.group import example
from cdcavro.cli.registry_options import BREAKS, compatibility_option, registry_option, subject_options
from cdcavro.cli.report import table
from cdcavro.cli.schema_sources import named_subjects, sources
from cdcavro.errors import IncompatibleError
from cdcavro.registry import connect

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cdcavro.cli.schema_sources import NamedSource
    from cdcavro.registry import Registry
    from cdcavro.registry.subjects import Strategy


@click.command(epilog=example("cdcavro publish orders.avsc --registry file:schemas --topic orders"))
@click.argument("names", nargs=-1, required=True, metavar="[FORMAT | FILE.avsc | DIR]...")
@registry_option
@subject_options
@compatibility_option
@click.option("--dry-run", is_flag=True, help="Show what would happen, and write nothing.")
@click.option("--force", is_flag=True, help="Publish even what the compatibility level refuses.")
@click.pass_context
def publish(
    ctx: click.Context,
    *,
    names: Sequence[str],
    url: str,
    subject: str | None,
    strategy: Strategy | None,
    topic: str | None,
    compatibility: str | None,
    dry_run: bool,
    force: bool,
) -> None:
    """Publish schemas to a registry.

    The schemas are those of formats, of files, and of all .avsc files in a folder; from a folder that `cdcavro
    tables` wrote, the versions of each table are published in order. A schema that its subject's compatibility
    level does not allow is refused, with every reason, and later schemas of that subject are not tried; the
    exit code is then 1. --compatibility also sets the subject's level.
    """
    subjects = named_subjects(subject, strategy, topic)
    named = sources(names, subjects)
    rows: list[tuple[str, ...]] = []
    refused: set[str] = set()
    with connect(url) as registry:
        target = registry.rehearsal() if dry_run else registry
        for source in named:
            own = subjects.of(source)
            if own in refused:
                rows.append((source.name, own, "", "", "not tried: an earlier one is refused"))
                continue
            try:
                rows.append(_published(target, source, own, compatibility, is_dry=dry_run, force=force))
            except IncompatibleError as error:
                refused.add(own)
                rows.append((source.name, own, "", "", "refused"))
                say(f"{source.name}: {error}")
    click.echo(table(("schema", "subject", "version", "id", ""), rows))
    ctx.exit(BREAKS if refused else 0)


def _published(
    target: Registry, source: NamedSource, subject: str, compatibility: str | None, *, is_dry: bool, force: bool
) -> tuple[str, ...]:
    published = target.publish(source.schema, subject, compatibility=compatibility, force=force)
    new = f"{'would be ' if is_dry else ''}new: {published.verdict.name}"
    outcome = new if published.is_new else "there already"
    return source.name, subject, str(published.version), "" if published.id is None else str(published.id), outcome

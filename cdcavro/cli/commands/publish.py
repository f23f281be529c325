"""`publish`, `subjects`, `fetch` and `check`: schemas in a registry."""

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
@click.option("--dry-run", is_flag=True, help="Say what would become of the schemas, and write nothing.")
@click.option("--force", is_flag=True, help="Publish also what the level refuses.")
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
    """Publish schemas in a registry: of formats, of files, of all .avsc files in a folder.

    Of a folder that `cdcavro tables` wrote, the versions of each table come in their order. A schema
    that breaks what its subject's level asks for is refused with each reason, and so are those of the
    same subject behind it; the exit code is then 1. --compatibility becomes the subject's level.
    """
    subjects = named_subjects(subject, strategy, topic)
    found = sources(names, subjects)
    rows: list[tuple[str, ...]] = []
    refused: set[str] = set()
    with connect(url) as place:
        target = place.rehearsal() if dry_run else place
        for one in found:
            own = subjects.of(one)
            if own in refused:
                rows.append((one.name, own, "", "", "not tried: an earlier one is refused"))
                continue
            try:
                rows.append(_published(target, one, own, compatibility, is_dry=dry_run, force=force))
            except IncompatibleError as error:
                refused.add(own)
                rows.append((one.name, own, "", "", "refused"))
                say(f"{one.name}: {error}")
    click.echo(table(("schema", "subject", "version", "id", ""), rows))
    ctx.exit(BREAKS if refused else 0)


def _published(
    target: Registry, source: NamedSource, subject: str, compatibility: str | None, *, is_dry: bool, force: bool
) -> tuple[str, ...]:
    made = target.publish(source.schema, subject, compatibility=compatibility, force=force)
    said = "there already" if not made.is_new else f"{'would be ' if is_dry else ''}new: {made.verdict.name}"
    return source.name, subject, str(made.version), "" if made.id is None else str(made.id), said

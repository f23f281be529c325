"""`publish`, `subjects`, `fetch` and `check`: schemas in a registry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from cdcavro.cli.faults import note
from cdcavro.cli.group import example
from cdcavro.cli.options import OUTPUT, force_option
from cdcavro.cli.report import table
from cdcavro.cli.schema_sources import named_subjects, sources
from cdcavro.errors import IncompatibleError
from cdcavro.files.streams import STANDARD, open_output
from cdcavro.registry import connect
from cdcavro.registry.levels import LEVELS
from cdcavro.registry.subjects import STRATEGIES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cdcavro.cli.schema_sources import Source
    from cdcavro.registry import Registry
    from cdcavro.registry.subjects import Strategy

BREAKS: Final = 1
_FINGERPRINT_DIGITS: Final = 16

registry_option: Final = click.option(
    "--registry",
    "url",
    required=True,
    envvar="CDCAVRO_REGISTRY",
    metavar="URL",
    help="https://HOST/PATH of a server with Confluent's REST API, or file:FOLDER. Default: $CDCAVRO_REGISTRY."
    " User and password come from $CDCAVRO_REGISTRY_USER and $CDCAVRO_REGISTRY_PASSWORD.",
)
compatibility_option: Final = click.option(
    "--compatibility",
    type=click.Choice(LEVELS, case_sensitive=False),
    help="The level by which to judge. Default: the subject's.",
)


def _subject_options(command: Callable[..., Any]) -> Callable[..., Any]:
    options = (
        click.option("--subject", metavar="NAME", help="The subject, for all schemas given."),
        click.option(
            "--strategy",
            type=click.Choice(STRATEGIES),
            help="How subjects are named: by the topic (TOPIC-value, TOPIC-key), by the record's full name, or by"
            " both. Default: topic if there is --topic, else record.",
        ),
        click.option("--topic", metavar="TOPIC", help="The topic, for names of subjects."),
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.command(epilog=example("cdcavro publish orders.avsc --registry file:schemas --topic orders"))
@click.argument("names", nargs=-1, required=True, metavar="[FORMAT | FILE.avsc | DIR]...")
@registry_option
@_subject_options
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
                note(f"{one.name}: {error}")
    click.echo(table(("schema", "subject", "version", "id", ""), rows))
    ctx.exit(BREAKS if refused else 0)


def _published(
    target: Registry, source: Source, subject: str, compatibility: str | None, *, is_dry: bool, force: bool
) -> tuple[str, ...]:
    made = target.publish(source.schema, subject, compatibility=compatibility, force=force)
    said = "there already" if not made.is_new else f"{'would be ' if is_dry else ''}new: {made.verdict.name}"
    return source.name, subject, str(made.version), "" if made.id is None else str(made.id), said


@click.command(epilog=example("cdcavro check orders.avsc --registry file:schemas --subject orders-value"))
@click.argument("names", nargs=-1, required=True, metavar="[FORMAT | FILE.avsc | DIR]...")
@registry_option
@_subject_options
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
    """Tell whether schemas may become the next versions of their subjects, before a change is merged.

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


@click.command(epilog=example("cdcavro subjects --registry file:schemas"))
@registry_option
def subjects(*, url: str) -> None:
    """List the subjects of a registry, with the level and the number of versions of each."""
    with connect(url) as place:
        rows = [(one, place.compatibility(one), f"{len(place.versions(one)):,}") for one in place.subjects()]
    click.echo(table(("subject", "compatibility", "versions"), rows))


@click.command(epilog=example("cdcavro fetch --registry file:schemas --subject orders-value --version 1"))
@registry_option
@click.option("--id", type=click.IntRange(1), metavar="N", help="The schema with this id.")
@click.option("--subject", metavar="NAME", help="The schema of this subject.")
@click.option("--version", metavar="N|latest", help="Its version. Default: latest.")
@click.option("--fingerprint", metavar="HEX", help="The schema with this CRC-64-AVRO, 16 hex digits.")
@click.option("--out", default=STANDARD, type=OUTPUT, metavar="FILE", help="Default: standard output.")
@force_option
def fetch(
    *,
    url: str,
    id: int | None,
    subject: str | None,
    version: str | None,
    fingerprint: str | None,
    out: str,
    force: bool,
) -> None:
    """Print a schema of a registry, whole, with the types that it refers to.

    Give one of --id, --subject and --fingerprint.
    """
    if sum(one is not None for one in (id, subject, fingerprint)) != 1 or (version and subject is None):
        raise click.UsageError("give one of --id, --subject (perhaps with --version) and --fingerprint")
    if fingerprint is not None and not _is_fingerprint(fingerprint):
        raise click.BadParameter("a fingerprint has 16 hex digits", param_hint="--fingerprint")
    with connect(url) as place:
        found = place.fetch(
            id=id, subject=subject, version=_version(version), fingerprint=fingerprint and fingerprint.lower()
        )
    with open_output(out, force=force) as stream:
        stream.write(found.schema.json.rstrip("\n").encode() + b"\n")
    if found.subject is not None:
        note(f"id {found.id}, version {found.version} of subject {found.subject}")


def _is_fingerprint(text: str) -> bool:
    return len(text) == _FINGERPRINT_DIGITS and all(one in "0123456789abcdefABCDEF" for one in text)


def _version(text: str | None) -> Any:
    if text in (None, "latest"):
        return text
    if not (text.isascii() and text.isdigit() and len(text) <= 9):  # noqa: PLR2004
        raise click.BadParameter("expected a number or latest", param_hint="--version")
    return int(text)

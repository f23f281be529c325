"""The commands on schema registries: `publish`, `check`, `subjects` and `fetch`."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING, Any, Final

import click

from cdcavro.cli.console import json_line, say, table
from cdcavro.cli.group import example
from cdcavro.cli.options import OUTPUT, Choice, complete_schema, force_option, json_option
from cdcavro.cli.schema_sources import parse_subjects, read_sources
from cdcavro.errors import IncompatibleError, plain, shown, visible, visible_lines
from cdcavro.files.streams import STANDARD, open_output
from cdcavro.registry import connect
from cdcavro.registry.subjects import LEVELS, STRATEGIES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cdcavro.cli.schema_sources import NamedSource
    from cdcavro.registry import Registry
    from cdcavro.registry.subjects import LevelCheck, Strategy


BREAKS: Final = 1
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
    type=Choice(LEVELS, case_sensitive=False),
    help="The compatibility level. Default: that of the subject.",
)


def subject_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return a command with the options that name the subject of a schema."""
    options = (
        click.option("--subject", metavar="NAME", help="The subject of all the schemas."),
        click.option(
            "--strategy",
            type=Choice(STRATEGIES),
            help="How subjects are named: after the topic (TOPIC-value, TOPIC-key), after the record (its full name),"
            " or after both. Default: topic with --topic, else record.",
        ),
        click.option("--topic", metavar="TOPIC", help="The topic that subjects are named after."),
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.command(epilog=example("cdcavro publish orders.avsc --registry file:schemas --topic orders"))
@click.argument(
    "names", nargs=-1, required=True, metavar="[FORMAT | FILE.avsc | DIR]...", shell_complete=complete_schema
)
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
    subjects = parse_subjects(subject, strategy, topic)
    named = read_sources(names, subjects)
    rows: list[tuple[str, ...]] = []
    refused: set[str] = set()
    with connect(url) as registry:
        target = registry.rehearsal() if dry_run else registry
        for source in named:
            name = subjects.of(source)
            if name in refused:
                rows.append((source.name, name, "", "", "not tried: an earlier one is refused"))
                continue
            try:
                rows.append(_publish(target, source, name, compatibility, is_dry=dry_run, force=force))
            except IncompatibleError as error:
                refused.add(name)
                rows.append((source.name, name, "", "", "refused"))
                say(f"{source.name}: {error}")
    click.echo(table(("schema", "subject", "version", "id", ""), rows))
    ctx.exit(BREAKS if refused else 0)


def _publish(
    target: Registry, source: NamedSource, subject: str, compatibility: str | None, *, is_dry: bool, force: bool
) -> tuple[str, ...]:
    published = target.publish(source.schema, subject, compatibility=compatibility, force=force)
    new = f"{'would be ' if is_dry else ''}new: {published.verdict.name}"
    outcome = new if published.is_new else "there already"
    return source.name, subject, str(published.version), "" if published.id is None else str(published.id), outcome


@click.command(epilog=example("cdcavro check orders.avsc --registry file:schemas --subject orders-value"))
@click.argument(
    "names", nargs=-1, required=True, metavar="[FORMAT | FILE.avsc | DIR]...", shell_complete=complete_schema
)
@registry_option
@subject_options
@compatibility_option
@json_option
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
    as_json: bool,
) -> None:
    """Check whether schemas may be published to a registry.

    Each schema is compared with the versions of its subject that the compatibility level covers; if several
    schemas belong to one subject, each is also compared with those before it. Nothing is written, so a change
    can be checked before it is merged. The exit code is 1 if a schema would be refused. With --json there is an
    object for each schema.
    """
    subjects = parse_subjects(subject, strategy, topic)
    is_refused = False
    named = read_sources(names, subjects)
    with connect(url) as registry:
        target = registry.rehearsal()
        for source in named:
            name = subjects.of(source)
            is_first = not target.versions(name)
            judgement = target.judge(source.schema, name, compatibility=compatibility)
            is_refused |= bool(judgement.breaks)
            said = _judged if as_json else _sentences
            click.echo(said(source.name, name, judgement, is_first=is_first))
            target.publish(source.schema, name, force=True)
    ctx.exit(BREAKS if is_refused else 0)


def _sentences(schema: str, subject: str, judgement: LevelCheck, *, is_first: bool) -> str:
    outcome = "refused" if judgement.breaks else "allowed"
    new = "; the subject is new, and there is nothing to compare with" if is_first else ""
    head = f"{visible(schema)}: subject {plain(subject)}: {judgement.level}: {outcome}{new}"
    return head if is_first else f"{head}\n  {visible_lines(str(judgement.verdict))}"


def _judged(schema: str, subject: str, judgement: LevelCheck, *, is_first: bool) -> str:
    """Return a judgement as one line of JSON."""
    problems = [
        {"versions": [version for version, one in judgement.verdicts if problem in one.problems]}
        | {
            "direction": problem.direction,
            "path": problem.path,
            "reason": problem.reason,
            "is_partial": problem.partial,
        }
        for problem in judgement.verdict.problems
    ]
    notes = [
        {"direction": note.direction, "path": note.path, "reason": note.reason} for note in judgement.verdict.notes
    ]
    return json_line(
        schema=schema,
        subject=subject,
        level=judgement.level,
        is_allowed=not judgement.breaks,
        is_new=is_first,
        verdict=None if is_first else judgement.verdict.name,
        problems=problems,
        notes=notes,
    )


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


_FINGERPRINT_DIGITS: Final = 16


@click.command(
    epilog=example("cdcavro fetch --registry file:schemas --subject orders-value --version 1"),
    context_settings={"allow_extra_args": True},
)
@click.pass_context
@registry_option
@click.option("--id", type=click.IntRange(1), metavar="N", help="The schema with this id.")
@click.option("--subject", metavar="NAME", help="A schema of this subject.")
@click.option("--version", metavar="N|latest", help="The version of the subject. Default: latest.")
@click.option("--fingerprint", metavar="HEX", help="The schema with this CRC-64-AVRO, in 16 hex digits.")
@click.option(
    "--out", default=STANDARD, type=OUTPUT, metavar="FILE", help="The file to write. Default: standard output."
)
@force_option
def fetch(
    ctx: click.Context,
    *,
    url: str,
    id: int | None,
    subject: str | None,
    version: str | None,
    fingerprint: str | None,
    out: str,
    force: bool,
) -> None:
    """Print a schema from a registry.

    The schema is complete: it includes the types that it refers to. Name it by one of --id, --subject and
    --fingerprint.
    """
    if ctx.args:
        name = ctx.args[0]
        raise click.UsageError(
            f"got {shown(name)} without an option: a subject is given as --subject {quote(plain(name))}"
        )
    if sum(key is not None for key in (id, subject, fingerprint)) != 1 or (version and subject is None):
        raise click.UsageError("give one of --id, --subject (perhaps with --version) and --fingerprint")
    if fingerprint is not None and not _is_fingerprint(fingerprint):
        raise click.BadParameter("a fingerprint has 16 hex digits", param_hint="--fingerprint")
    with connect(url) as registry:
        registered = registry.fetch(
            id=id, subject=subject, version=_parse_version(version), fingerprint=fingerprint and fingerprint.lower()
        )
    with open_output(out, force=force) as stream:
        stream.write(registered.schema.json.rstrip("\n").encode() + b"\n")
    if registered.subject is not None:
        say(f"id {registered.id}, version {registered.version} of subject {registered.subject}")


def _is_fingerprint(text: str) -> bool:
    return len(text) == _FINGERPRINT_DIGITS and all(digit in "0123456789abcdefABCDEF" for digit in text)


def _parse_version(text: str | None) -> Any:
    if text in (None, "latest"):
        return text
    if not (text.isascii() and text.isdigit() and len(text) <= 9):  # noqa: PLR2004
        raise click.BadParameter("expected a number or latest", param_hint="--version")
    return int(text)

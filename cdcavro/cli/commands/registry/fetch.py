"""`fetch`: a schema from a registry."""

from __future__ import annotations

from typing import Any, Final

import click

from cdcavro.cli.faults import say
from cdcavro.cli.group import example
from cdcavro.cli.options import OUTPUT, force_option
from cdcavro.cli.registry_options import registry_option
from cdcavro.files.streams import STANDARD, open_output
from cdcavro.registry import connect

_FINGERPRINT_DIGITS: Final = 16


@click.command(epilog=example("cdcavro fetch --registry file:schemas --subject orders-value --version 1"))
@registry_option
@click.option("--id", type=click.IntRange(1), metavar="N", help="The schema with this id.")
@click.option("--subject", metavar="NAME", help="A schema of this subject.")
@click.option("--version", metavar="N|latest", help="The version of the subject. Default: latest.")
@click.option("--fingerprint", metavar="HEX", help="The schema with this CRC-64-AVRO, in 16 hex digits.")
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
    """Print a schema from a registry.

    The schema is complete: it includes the types that it refers to. Name it by one of --id, --subject and
    --fingerprint.
    """
    if sum(key is not None for key in (id, subject, fingerprint)) != 1 or (version and subject is None):
        raise click.UsageError("give one of --id, --subject (perhaps with --version) and --fingerprint")
    if fingerprint is not None and not _is_fingerprint(fingerprint):
        raise click.BadParameter("a fingerprint has 16 hex digits", param_hint="--fingerprint")
    with connect(url) as registry:
        registered = registry.fetch(
            id=id, subject=subject, version=_version(version), fingerprint=fingerprint and fingerprint.lower()
        )
    with open_output(out, force=force) as stream:
        stream.write(registered.schema.json.rstrip("\n").encode() + b"\n")
    if registered.subject is not None:
        say(f"id {registered.id}, version {registered.version} of subject {registered.subject}")


def _is_fingerprint(text: str) -> bool:
    return len(text) == _FINGERPRINT_DIGITS and all(digit in "0123456789abcdefABCDEF" for digit in text)


def _version(text: str | None) -> Any:
    if text in (None, "latest"):
        return text
    if not (text.isascii() and text.isdigit() and len(text) <= 9):  # noqa: PLR2004
        raise click.BadParameter("expected a number or latest", param_hint="--version")
    return int(text)

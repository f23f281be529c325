"""`schema`: the wire schema of a format."""

from __future__ import annotations

import click

from cdcavro.cli.group import example
from cdcavro.cli.options import format_name
from cdcavro.wire.formats import get_format


@click.command(epilog=example("cdcavro schema oms_canal > oms_canal.avsc"))
@click.argument("name", callback=format_name())
@click.option("--canonical", is_flag=True, help="Print the Parsing Canonical Form instead.")
@click.option("--fingerprint", is_flag=True, help="Print the CRC-64-AVRO fingerprint instead.")
def schema(name: str, *, canonical: bool, fingerprint: bool) -> None:
    """Print the wire schema of a format."""
    if canonical and fingerprint:
        raise click.UsageError("--canonical and --fingerprint exclude each other")
    wire_schema = get_format(name).schema
    if canonical:
        click.echo(wire_schema.canonical)
    elif fingerprint:
        click.echo(wire_schema.fingerprint)
    else:
        click.echo(wire_schema.json.rstrip("\n"))

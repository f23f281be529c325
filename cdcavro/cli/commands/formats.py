"""`formats`: the formats that cdcavro knows."""

from __future__ import annotations

import click

from cdcavro.cli.group import example
from cdcavro.cli.report import table
from cdcavro.wire.formats import REGISTRY


@click.command(epilog=example("cdcavro formats"))
def formats() -> None:
    """List the formats that cdcavro knows.

    Each is listed with its name, record, fingerprint and description. The fingerprint is the CRC-64-AVRO of the
    schema's canonical form, in the byte order of the single-object encoding.
    """
    rows = [
        (name, format.envelope.name, format.schema.fingerprint, _first_sentence(format.envelope.doc))
        for name, format in REGISTRY.items()
    ]
    click.echo(table(("format", "record", "fingerprint", "what it is"), rows))


def _first_sentence(doc: str) -> str:
    return doc.partition(" Source: ")[0]

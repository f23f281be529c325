"""`generate`: typed records for schemas, as a Python module."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from cdcavro.cli.console import say
from cdcavro.cli.group import example
from cdcavro.cli.options import OUTPUT, force_option
from cdcavro.cli.schema_sources import read_schema
from cdcavro.errors import UnknownFormatError
from cdcavro.files.streams import STANDARD, open_input, open_output
from cdcavro.records.codegen import KINDS, NamedSchema
from cdcavro.records.codegen import generate as generate_module
from cdcavro.wire.formats import CHANGE, FORMATS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cdcavro.avro.schema import Schema

STALE: Final = 1


@click.command(epilog=example("cdcavro generate canal --kind dataclass --out canal_records.py"))
@click.argument("schemas", nargs=-1, required=True, metavar="NAME|FILE...")
@click.option(
    "--kind",
    type=click.Choice(KINDS),
    required=True,
    help="The kind of records: dataclasses, msgspec Structs or pydantic models; spark stands for the type that Spark's"
    " from_avro returns, also as DDL.",
)
@click.option("--out", default=STANDARD, type=OUTPUT, metavar="FILE", help="Default: standard output.")
@click.option("--check", is_flag=True, help="Write nothing, and end with the exit code 1 if FILE is stale or missing.")
@force_option
@click.pass_context
def generate(ctx: click.Context, *, schemas: Sequence[str], kind: str, out: str, check: bool, force: bool) -> None:
    """Generate a Python module of typed records.

    NAME is a format, or change; FILE is an .avsc file (such as those that `cdcavro tables` writes), an Avro
    container file, or - for standard input. Each record of a schema becomes a class with from_avro, to_avro,
    from_json and to_json. The same schemas always give the same bytes.
    """
    if check and out == STANDARD:
        raise click.UsageError("--check needs --out FILE")
    if schemas.count(STANDARD) > 1:
        raise click.UsageError("only one of the schemas can be standard input")
    if out != STANDARD and os.path.realpath(out) in map(os.path.realpath, schemas):
        raise click.UsageError("--out names one of the schemas")
    module = generate_module([NamedSchema(source, _schema(source)) for source in schemas], kind).encode()
    if check:
        ctx.exit(0 if _is_fresh(out, module) else STALE)
    with open_output(out, force=force) as stream:
        stream.write(module)


def _schema(source: str) -> Schema:
    is_name = source != STANDARD and "." not in source and os.sep not in source
    if is_name and source not in (*FORMATS, CHANGE) and not Path(source).exists():
        raise UnknownFormatError(source, (*FORMATS, CHANGE))
    return read_schema(source)


def _is_fresh(file: str, module: bytes) -> bool:
    shown = click.format_filename(file)
    if not Path(file).exists():
        say(f"{shown} is missing")
        return False
    with open_input(file) as stream:
        is_fresh = stream.read(len(module) + 1) == module
    say(f"{shown} is {'fresh' if is_fresh else 'stale: its schemas give another module'}")
    return is_fresh

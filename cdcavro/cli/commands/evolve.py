"""`evolve`: the next version of a table's schema."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from cdcavro.change.model import Source
from cdcavro.cli.console import say
from cdcavro.cli.group import Fault, example
from cdcavro.cli.options import INPUT, OUTPUT, force_option, types_option
from cdcavro.cli.schema_sources import read_schema
from cdcavro.errors import shown
from cdcavro.files.streams import STANDARD, open_output
from cdcavro.table.columns.column_type import is_known
from cdcavro.table.ddl.parse import parse_ddl
from cdcavro.table.evolution.evolve import evolve as evolve_schema
from cdcavro.table.table_schema import from_schema, schema_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cdcavro.avro.schema import Schema
    from cdcavro.table.columns.column_type import TypeOverrides


@click.command(epilog=example('cdcavro evolve v1.avsc --ddl "ALTER TABLE orders ADD note VARCHAR(20)" > v2.avsc'))
@click.argument("schema", type=INPUT)
@click.option(
    "--ddl", "statements", required=True, multiple=True, metavar="SQL", help="A DDL statement; may be repeated."
)
@click.option(
    "--db-type", metavar="NAME", help="The database, which decides the dialect, e.g. mysql, OB_ORACLE or postgresql."
)
@types_option
@click.option("--out", default=STANDARD, type=OUTPUT, metavar="FILE", help="Default: standard output.")
@force_option
def evolve(
    *, schema: str, statements: Sequence[str], db_type: str | None, given: TypeOverrides, out: str, force: bool
) -> None:
    """Print the next version of a table's schema.

    SCHEMA is the schema of a row or of an envelope; the next version is the one after the DDL statements. What
    changed, and whether the new schema reads data written with the old one, is reported on standard error.
    """
    current = read_schema(schema)
    for statement in statements:
        evolution = evolve_schema(current, statement, source=Source(db_type=db_type), given=given)
        for step in evolution.steps:
            say(step)
        if evolution.steps:
            say(str(evolution.verdict))
        else:
            _check_table(current, statement, db_type)
            say("nothing changed: the statement is not about a column, a key or the name of this table")
        for sentence in _unknown_types(current, evolution.schema):
            say(sentence)
        current = evolution.schema
    with open_output(out, force=force) as stream:
        stream.write(schema_text(json.loads(current.json), indent=2).encode() + b"\n")


def _check_table(schema: Schema, statement: str, db_type: str | None) -> None:
    """Check that a statement that changed nothing is not about another table. Raises `Fault`."""
    current = from_schema(schema).table
    tables = [
        getattr(step, attribute)
        for step in parse_ddl(statement, db_type, database=current.database)
        for attribute in ("table", "old")
        if hasattr(step, attribute)
    ]
    others = [name for name in tables if name.table != current.table]
    if others and len(others) == len(tables):
        raise Fault(
            f"the statement is about {shown(others[0].table)}, and the schema is that of {shown(current.table)}"
        )


def _unknown_types(old: Schema, new: Schema) -> list[str]:
    """Return a sentence for each column whose new type no database has."""
    before = {(column.name, column.type) for column in from_schema(old).columns}
    return [
        f"column {shown(str(column.name))}: unknown type {shown(column.type)}: a string"
        for column in from_schema(new).columns
        if column.type is not None and (column.name, column.type) not in before and not is_known(column.type)
    ]

"""`sniff`: the formats of messages."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

import cdcavro
from cdcavro.cli.faults import Faults
from cdcavro.cli.group import REJECTED, example
from cdcavro.cli.options import inputs_argument
from cdcavro.cli.progress import Progress
from cdcavro.errors import MessageError
from cdcavro.files.streams import shown_name, standard, total_size

if TYPE_CHECKING:
    from cdcavro.files.inputs import Inputs


@click.command(epilog=example("cdcavro sniff changes.jsonl | sort | uniq -c"))
@inputs_argument
@click.pass_context
def sniff(ctx: click.Context, inputs: Inputs) -> None:
    """Print the format of each message, one per line.

    With several files, each line starts with the message's file and line number. Messages of no known
    format are reported on standard error; the exit code is then 1.
    """
    faults, out = Faults(inputs), standard(sys.stdout)
    with Progress("sniffing", total_size(inputs.files), is_in_the_way=True) as progress:
        for file in inputs.files:
            for line in inputs.lines(file, progress.advance):
                where = "{}:{}: ".format(*inputs.place(line.number)) if len(inputs.files) > 1 else ""
                try:
                    out.write(f"{shown_name(where)}{cdcavro.sniff(line.message())}\n")
                except MessageError as error:
                    faults.add(error, line)
    faults.finish()
    ctx.exit(REJECTED if faults.count else 0)

"""`sniff`: the formats of messages."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

import cdcavro
from cdcavro.cli.faults import Faults
from cdcavro.cli.group import REJECTED, example
from cdcavro.cli.options import files_argument
from cdcavro.cli.progress import Progress
from cdcavro.errors import MessageError
from cdcavro.files.lines import read_lines
from cdcavro.files.streams import STANDARD, standard, total_size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cdcavro.files.lines import Line


@click.command(epilog=example("cdcavro sniff changes.jsonl | sort | uniq -c"))
@files_argument
@click.pass_context
def sniff(ctx: click.Context, files: tuple[str, ...]) -> None:
    """Print the format of each message, one per line.

    With several files, each line starts with the message's file and line number. Messages of no known
    format are reported on standard error; the exit code is then 1.
    """
    rejected = 0
    with Progress("sniffing", total_size(files or (STANDARD,)), is_in_the_way=True) as progress:
        for file in files or (STANDARD,):
            lines = read_lines(file, progress.advance)
            rejected += _sniff_lines(file, lines, is_one_of_many=len(files) > 1)
    ctx.exit(REJECTED if rejected else 0)


def _sniff_lines(file: str, lines: Iterator[Line], *, is_one_of_many: bool) -> int:
    faults, out = Faults(file), standard(sys.stdout)
    shown = click.format_filename(file)
    for line in lines:
        where = f"{shown}:{line.number}: " if is_one_of_many else ""
        try:
            out.write(f"{where}{cdcavro.sniff(line.message())}\n")
        except MessageError as error:
            faults.add(error, line)
    faults.finish()
    return faults.count

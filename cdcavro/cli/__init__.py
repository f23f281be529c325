"""The command line. `main` is the group of all commands; each noun has its module.

Exit codes: 0 done, 1 messages or a schema rejected or a file stale, 2 wrong usage or a file that cannot be used, 130 after
Ctrl-C and 141 after the reader of a pipe went away, as shells give them for these signals.
"""

from __future__ import annotations

from typing import Final

import click

from cdcavro.buffer import COMPILED
from cdcavro.cli.compatibility import diff
from cdcavro.cli.containers import decode, encode
from cdcavro.cli.generate import generate
from cdcavro.cli.group import Commands, example
from cdcavro.cli.job import run
from cdcavro.cli.messages import sniff, validate
from cdcavro.cli.registry import check, fetch, publish, subjects
from cdcavro.cli.schemas import formats, schema
from cdcavro.cli.transcoding import transcode
from cdcavro.cli.typed import evolve, tables

__all__ = ["main"]

COMMANDS: Final = (
    run,
    formats,
    sniff,
    validate,
    encode,
    decode,
    transcode,
    tables,
    evolve,
    diff,
    generate,
    schema,
    publish,
    check,
    subjects,
    fetch,
)
_BUILD: Final = "compiled" if COMPILED else "pure Python: not compiled when it was installed"


@click.group(
    cls=Commands,
    epilog=example("cdcavro encode changes.jsonl --out changes.avro"),
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(package_name="cdcavro", message=f"%(prog)s %(version)s ({_BUILD})")
def main() -> None:
    """Turn change-data-capture messages into Avro and back, exactly.

    Messages are JSON lines, plain or gzip; `-` is standard input or output.
    """


for _command in COMMANDS:
    main.add_command(_command)

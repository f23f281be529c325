"""The command line. `main` is the group of all commands, whose modules `COMMANDS` names.

Exit codes: 0 for success; 1 if messages or a schema were rejected, or a file is stale; 2 for wrong usage, or a
file, registry or installation that cannot be used; 130 after Ctrl-C, 143 after SIGTERM and 141 if the reader of a pipe went away, as shells
report these signals.
"""

from __future__ import annotations

from typing import Final

import click

from cdcavro.cli.group import Commands, LazyCommands, example
from cdcavro.engine.machine import COMPILED

__all__ = ["main"]

# The module that defines each command, under the command's name; it is imported when the command is first needed.
COMMANDS: Final = {
    "run": "cdcavro.cli.commands.run",
    "sync": "cdcavro.cli.commands.sync",
    "replay": "cdcavro.cli.commands.pipeline_state",
    "decrypt": "cdcavro.cli.commands.pipeline_state",
    "maintain": "cdcavro.cli.commands.pipeline_state",
    "doctor": "cdcavro.cli.commands.doctor",
    "formats": "cdcavro.cli.commands.formats",
    "inspect": "cdcavro.cli.commands.formats",
    "sniff": "cdcavro.cli.commands.formats",
    "validate": "cdcavro.cli.commands.formats",
    "encode": "cdcavro.cli.commands.encode",
    "decode": "cdcavro.cli.commands.encode",
    "unframe": "cdcavro.cli.commands.framing",
    "frame": "cdcavro.cli.commands.framing",
    "transcode": "cdcavro.cli.commands.transcode",
    "tables": "cdcavro.cli.commands.tables",
    "evolve": "cdcavro.cli.commands.tables",
    "diff": "cdcavro.cli.commands.schemas",
    "generate": "cdcavro.cli.commands.schemas",
    "schema": "cdcavro.cli.commands.formats",
    "publish": "cdcavro.cli.commands.registry",
    "check": "cdcavro.cli.commands.registry",
    "subjects": "cdcavro.cli.commands.registry",
    "fetch": "cdcavro.cli.commands.registry",
}
_BUILD: Final = "compiled" if COMPILED else "pure Python: not compiled when it was installed"


@click.group(
    cls=Commands,
    commands=LazyCommands(COMMANDS),
    epilog=example("cdcavro encode changes.jsonl --out changes.avro"),
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(package_name="cdcavro", message=f"%(prog)s %(version)s ({_BUILD})")
def main() -> None:
    """Turn change-data-capture messages into Avro and back, exactly.

    Messages are JSON lines, plain, gzip or Zstandard, in files and folders; `-` is standard input or output.
    """

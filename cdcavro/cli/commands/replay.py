"""`replay`: rejects of a pipeline, to be read again."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import click

from cdcavro.cli.group import example
from cdcavro.errors import FileError, number_of


@click.command(epilog=example("cdcavro replay --state state/"))
@click.option(
    "--config", type=click.Path(exists=True, dir_okay=False), metavar="FILE", help="The pipeline's configuration."
)
@click.option("--state", metavar="DIR", help="The pipeline's folder.")
@click.option(
    "--batch",
    "batches",
    type=click.IntRange(min=0),
    multiple=True,
    metavar="N",
    help="Only the rejects of this batch; can be repeated.",
)
def replay(*, config: str | None, state: str | None, batches: tuple[int, ...]) -> None:
    """Let a pipeline read its rejects again, once, after what was wrong is mended.

    They are moved to where `cdcavro sync` finds them with its next batch. Each is taken at the place at which it
    arrived, so that changes made after it still win. What is refused again is a reject again.
    """
    from cdcavro.spark.pipeline.config import read_config  # noqa: PLC0415  pyspark takes a second to import
    from cdcavro.spark.pipeline.pipeline import REPLAY  # noqa: PLC0415
    from cdcavro.spark.pipeline.pipeline_rejects import replay as moved  # noqa: PLC0415
    from cdcavro.spark.pipeline.shared_folders import local_folder  # noqa: PLC0415

    read = None if config is None else read_config(Path(config))
    folder = state or (None if read is None else read.state)
    if folder is None:
        raise click.UsageError("either --state or --config must be given")
    stated = str(Path(folder) / "rejects") if read is None or read.rejects is None else read.rejects
    with nullcontext() if read is None else read.redaction.errors():
        rejects, again = local_folder(stated), Path(folder) / REPLAY
        if rejects is None:
            raise FileError(stated, "rejects in a folder that is seen here", f"an address: move its batches to {again}")
        count = len(moved(rejects, again, batches))
    click.echo(f"the rejects of {number_of(count, 'batch/batches')} will be read again")

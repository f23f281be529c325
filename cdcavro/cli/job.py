"""`run`: the main job, on Spark."""

from __future__ import annotations

import sys
from importlib import resources
from typing import TYPE_CHECKING

import click

from cdcavro.cli.faults import note
from cdcavro.cli.group import REJECTED, Fault, example
from cdcavro.cli.options import AUTO, MIXED, format_name, parse_max_rejects
from cdcavro.cli.tables import Counts

if TYPE_CHECKING:
    from cdcavro.rejects import MaxRejects
    from cdcavro.spark.job import Report


@click.command(epilog=example("cdcavro run changes/ --out lake/ --format mixed --max-rejects 1%"))
@click.argument("inputs", nargs=-1, metavar="[INPUT]...")
@click.option("--out", required=True, metavar="DIR", help="A folder, or a URI that Spark can write to.")
@click.option(
    "--format",
    metavar="auto|mixed|NAME",
    callback=format_name(AUTO, MIXED),
    default=AUTO,
    help="auto (the default) tells the format of each file by its first messages, mixed that of each message.",
)
@click.option(
    "--max-rejects",
    metavar="N|P%",
    callback=lambda _ctx, _param, value: None if value is None else parse_max_rejects(value),
    help="End with 1 if more messages, or a larger share of them, are rejected. Default: end with 0 all the same.",
)
@click.option("--master", metavar="URL", help="The Spark master. Default: local[*], or that of spark-submit.")
@click.pass_context
def run(  # noqa: PLR0913  one for each option
    ctx: click.Context,
    *,
    inputs: tuple[str, ...],
    out: str,
    format: str,
    max_rejects: MaxRejects | None,
    master: str | None,
) -> None:
    """Convert files or folders of JSON lines on Spark.

    Writes Avro container files to DIR/payloads/FORMAT/ and what cannot be converted to DIR/rejects/,
    with raw bytes, file, line and reason. Without INPUT, the messages that ship with cdcavro.
    """
    report = _run(inputs or (str(resources.files("cdcavro") / "samples"),), out, format, master)
    counts = Counts()
    for (name, operation), count in report.written.items():
        counts.add(name, operation, count)
    for name, count in report.rejects.items():
        counts.reject(name, count)
    click.echo(counts.table())
    click.echo(counts.balance("written"))
    if report.read != counts.read:
        raise Fault(f"{report.read:,} messages were read and {counts.read:,} were found again: {out} is not complete")
    if counts.rejected:
        note(f"rejected messages are in {out}/rejects, with the reason of each")
    ctx.exit(0 if max_rejects is None or max_rejects.allows(counts.rejected, counts.read) else REJECTED)


def _run(inputs: tuple[str, ...], out: str, format: str, master: str | None) -> Report:
    # pyspark takes a second to import and may not be installed: the other commands go without it.
    try:
        from cdcavro.spark.session import session  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if error.name not in ("pyarrow", "pyspark"):
            raise
        raise Fault("pyspark is not installed: pip install 'cdcavro[spark]'") from error

    progress = "true" if sys.stderr.isatty() else "false"
    note("starting Spark")
    spark = session(master=master, config={"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": progress})
    from cdcavro.spark.job import run as convert  # noqa: PLC0415

    try:
        spark.sparkContext.setLogLevel("ERROR")
        return convert(spark, inputs, out, format=format, say=note)
    finally:
        spark.stop()

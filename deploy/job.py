"""The program that spark-submit starts: `cdcavro`, with the arguments that stand behind it."""

from __future__ import annotations

from cdcavro.cli import main

main(prog_name="cdcavro")

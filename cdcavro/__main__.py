"""The program: the script `cdcavro`, and `python -m cdcavro` where the script is not in the path."""

import sys


def main() -> None:
    """Run the command line. Ctrl-C ends it with the exit code 130 also while it is still imported."""
    try:
        from cdcavro.cli import main as command_line  # noqa: PLC0415  that takes as long as a short command
    except KeyboardInterrupt:
        sys.exit(130)
    command_line(prog_name="cdcavro")


if __name__ == "__main__":
    main()

"""`python -m cdcavro`: the command line, where the script `cdcavro` is not in the path."""

from cdcavro.cli import main

if __name__ == "__main__":
    main(prog_name="cdcavro")

"""Runs all tests, and the check of types, side by side in one environment: `python side_by_side.py [OPTION OF PYTEST ...]`.

Tests that start Java have a process of their own, with one session of Spark, or as many as `--sessions` says; two
processes run the others, but for those in the folder that `--elsewhere` names, which another environment runs. How far
they are is printed each minute, what each prints when it has ended, the quickest first; the exit code is the first that
is not 0.
"""

from __future__ import annotations

import argparse
import os
import re
import secrets
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from typing import IO, Final

NO_TESTS: Final = 5
_MINUTE: Final = 60


def commands(sessions: int, elsewhere: list[str], options: list[str]) -> dict[str, list[str]]:
    """Return what runs, by its name."""
    # The wheel that is installed, and not the checkout.
    pytest = [sys.executable, "-P", "-m", "pytest", "-q"]
    ignored = [f"--ignore={folder}" for folder in elsewhere]
    # Each session runs whole files, the long ones first, so that all of them have something to do until the end.
    java = ["-n", str(sessions), "--dist", "loadfile", "--no-loadscope-reorder", "--long-first"] if sessions > 1 else []
    return {
        "types": [sys.executable, "-P", "-m", "mypy"],
        "tests": [*pytest, "-n", "2", "--dist", "worksteal", "-m", "not jvm", *ignored, *options],
        # Which of them took longest is what a slow run is asked first.
        "spark": [*pytest, *java, "-m", "jvm", "--durations", "12", *options],
    }


def main() -> int:
    """Run them, and return an exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sessions", type=int, default=1)
    parser.add_argument("--elsewhere", action="append", default=[], metavar="FOLDER")
    parser.add_argument("--seed", default=os.environ.get("CDCAVRO_TESTS_SEED") or secrets.token_hex(3))
    own, options = parser.parse_known_args()
    # Both halves draw by one seed, so that one number repeats the run.
    print(f"samples are drawn by --seed {own.seed}", flush=True)
    began, running = time.monotonic(), {}
    with ExitStack() as stack:
        for name, command in commands(own.sessions, own.elsewhere, [*options, "--seed", own.seed]).items():
            output = stack.enter_context(tempfile.TemporaryFile())
            process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
            stack.callback(process.kill)
            running[name] = process, output
        codes = [code for code in _ended(running, began) if code != NO_TESTS]
    return next(filter(None, codes), 0) if codes else NO_TESTS


def _ended(running: dict[str, tuple[subprocess.Popen, IO[bytes]]], began: float) -> list[int]:
    """Wait for all, and return their exit codes; what each printed is printed when it ends."""
    codes: list[int] = []
    due = began + _MINUTE
    while running:
        time.sleep(0.2)
        if time.monotonic() > due:
            due += _MINUTE
            print(", ".join(f"{name} {_progress(output)}" for name, (_, output) in running.items()), flush=True)
        for name, (process, output) in list(running.items()):
            if process.poll() is not None:
                output.seek(0)
                sys.stdout.buffer.write(output.read())
                print(f"{name}: ended with {process.returncode} after {time.monotonic() - began:.0f} s", flush=True)
                codes.append(process.returncode)
                del running[name]
    return codes


def _progress(output: IO[bytes]) -> str:
    """Return how far pytest is by what it has printed, such as `45%`."""
    end = os.fstat(output.fileno()).st_size
    found = re.findall(rb"\[ *(\d+%)\]", os.pread(output.fileno(), 4_000, max(0, end - 4_000)))
    return found[-1].decode() if found else "runs"


if __name__ == "__main__":
    sys.exit(main())

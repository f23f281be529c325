"""Measures `cdcavro encode` and `decode` on a file against the converter alone, and their memory.

    python tests/benchmarks/files.py [MEGABYTES]

The file consists of the real messages of `canal`, repeated. The converter alone is `Format.encode` or
`Format.decode`, called in a loop on messages in memory by as many processes at once as the command has
jobs; it is measured before and after each command. A command's share is its messages per second of
processor time, over the whole life of all its processes, relative to the converter alone; the rate is by
the clock. Compression is not ours: the share with `deflate` is for information, the one with `null` counts.
Memory is the sum of the peaks of all processes.
"""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from importlib import resources
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

from cdcavro.avro.buffer import COMPILED
from cdcavro.wire.formats import get_format

if TYPE_CHECKING:
    from collections.abc import Iterator

SHOP = (Path(str(resources.files("cdcavro") / "samples")) / "canal" / "shop.jsonl").read_bytes()
COMMAND = Path(sys.executable).with_name("cdcavro")
CANAL = get_format("canal")
ROUNDS = 5
REPEATS = 500
STEP = 0.02


def alone(verb: str) -> float:
    """Return the messages that the converter handles per second of processor time."""
    given = [line for line in SHOP.split(b"\n") if line]
    if verb == "decode":
        given = [CANAL.encode(line) for line in given]
    function = getattr(CANAL, verb)
    start = time.process_time()
    for _ in range(REPEATS):
        for one in given:
            function(one)
    return REPEATS * len(given) / (time.process_time() - start)


def alone_at_once(verb: str, jobs: int) -> float:
    """Return the same per process, for a number of processes that run at the same time."""
    with ProcessPoolExecutor(jobs, get_context("spawn")) as processes:
        return statistics.mean(processes.map(alone, [verb] * jobs))


def run(*arguments: object) -> tuple[float, float, int]:
    """Run a command, and return its seconds by the clock, its seconds of processor time, and its memory in MiB."""
    most: dict[int, int] = {}
    before, start = os.times(), time.perf_counter()
    with subprocess.Popen([COMMAND, *map(str, arguments)], stderr=subprocess.DEVNULL) as process:
        while process.poll() is None:
            for number in [process.pid, *children(process.pid)]:
                with suppress(OSError):
                    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{number}/status").read_text(encoding="utf-8"))
                    most[number] = max(most.get(number, 0), int(found[1]) if found else 0)
            time.sleep(STEP)
    seconds, after = time.perf_counter() - start, os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return seconds, used, sum(most.values()) >> 10


def children(parent: int) -> list[int]:
    """Return the ids of the processes that a process has started."""
    try:
        listed = Path(f"/proc/{parent}/task/{parent}/children").read_text(encoding="utf-8")
    except OSError:
        return []
    return [int(number) for number in listed.split()]


def rows(folder: Path, times: int) -> Iterator[str]:
    """Yield the rows of the table: both commands with each codec and number of jobs."""
    path = folder / "in.jsonl"
    with path.open("wb") as stream:
        for _ in range(times):
            stream.write(SHOP)
    for verb, codec in (("encode", "null"), ("encode", "deflate"), ("decode", "null"), ("decode", "deflate")):
        packed, lines = folder / f"{codec}.avro", folder / "out.jsonl"
        given = (
            ["encode", path, "--out", packed, "--codec", codec]
            if verb == "encode"
            else ["decode", packed, "--out", lines]
        )
        for jobs in (1, 2):
            options = ("--format", "canal", "--force", "--jobs", jobs)
            rounds = [
                (alone_at_once(verb, jobs), run(*given, *options), alone_at_once(verb, jobs)) for _ in range(ROUNDS)
            ]
            yield row(f"{verb} {codec}", jobs, times * SHOP.count(b"\n"), rounds)


def row(name: str, jobs: int, messages: int, rounds: list) -> str:
    """Return a row of the table: medians, with the converter measured before and after each command."""
    by_itself = [(before + after) / 2 for before, _, after in rounds]
    done = [one for _, one, _ in rounds]
    rate = statistics.median(messages / seconds for seconds, _, _ in done)
    share = statistics.median(messages / used / most for (_, used, _), most in zip(done, by_itself, strict=True))
    memory = max(memory for _, _, memory in done)
    return f"{name:16}{jobs:>6}{statistics.median(by_itself):>18,.0f}{rate:>14,.0f}{share:>8.0%}{memory:>10}"


def main() -> None:
    """Print the table."""
    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    print(f"cdcavro, {'compiled' if COMPILED else 'pure Python'}; a file of {megabytes} MB, {os.cpu_count()} cores")
    print(f"{'command':16}{'jobs':>6}{'alone, messages/s':>18}{'messages/s':>14}{'share':>8}{'MiB':>10}")
    with tempfile.TemporaryDirectory() as folder:
        for one in rows(Path(folder), max(1, megabytes * 1_000_000 // len(SHOP))):
            print(one, flush=True)


if __name__ == "__main__":
    main()

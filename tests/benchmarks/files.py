"""Measures `cdcavro encode` and `decode` on a file against the converter alone, and their memory.

    python tests/benchmarks/files.py [MEGABYTES]

The file consists of the real messages of `canal`, repeated. The converter alone is `Format.encode_text` or
`Format.decode_block` on half a mebibyte in memory, again and again, in as many threads as the command has jobs; it is
measured before and after each command. A command's share is its messages per second of processor time, over its whole
life, relative to the converter alone; the rate is by the clock. What the system takes to copy the bytes is no work of
ours: "beside copying" is the share of the converter alone and a program that reads and writes as many bytes in the same
pieces, which is measured in the same round; "copied" is that program's rate by the clock. Compression is not ours
either: the shares with `deflate` are for information, those with `null` count.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from importlib import resources
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from cdcavro.engine.machine import COMPILED
from cdcavro.wire.formats import get_format

if TYPE_CHECKING:
    from collections.abc import Iterator

SHOP = (Path(str(resources.files("cdcavro") / "samples")) / "canal" / "shop.jsonl").read_bytes()
COMMAND = Path(sys.executable).with_name("cdcavro")
CANAL = get_format("canal")
ROUNDS = 5
REPEATS = 100
PIECE = 512 << 10
STEP = 0.02
TARGETS = ("debezium", "oms_default", "maxwell")


def alone(verb: str, jobs: int) -> float:
    """Return the messages that the converter handles per second of processor time, in threads at the same time."""
    lines = [line for line in SHOP.split(b"\n") if line]
    times = PIECE // len(SHOP)
    text, payloads = SHOP * times, b"".join(map(CANAL.encode, lines)) * times

    def repeat() -> None:
        for _ in range(REPEATS):
            if verb == "encode":
                CANAL.encode_text(text, 0)
            else:
                for _ in CANAL.decode_block(payloads, len(lines) * times, CANAL.schema):
                    pass

    threads = [Thread(target=repeat) for _ in range(jobs)]
    start = time.process_time()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return jobs * REPEATS * len(lines) * times / (time.process_time() - start)


def copied(source: Path, made: Path) -> tuple[float, float]:
    """Return the seconds by the clock and of processor time to read a file and write as many bytes as another has."""
    left, copy = made.stat().st_size, made.with_suffix(".copy")
    used, start = time.process_time(), time.perf_counter()
    with source.open("rb", buffering=0) as read, copy.open("wb", buffering=0) as written:
        while piece := read.read(PIECE):
            left -= written.write(memoryview(piece)[:left])
        while left:
            left -= written.write(memoryview(SHOP)[:left])
    taken = time.perf_counter() - start, time.process_time() - used
    copy.unlink()
    return taken


def run(*arguments: object) -> tuple[float, float, int]:
    """Run a command, and return its seconds by the clock, its seconds of processor time, and its memory in MiB."""
    most = 0
    before, start = os.times(), time.perf_counter()
    with subprocess.Popen(
        [COMMAND, *map(str, arguments)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        while process.poll() is None:
            with suppress(OSError):
                status = Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8")
                found = re.search(r"VmHWM:\s+(\d+) kB", status)
                most = max(most, int(found[1]) if found else 0)
            time.sleep(STEP)
    seconds, after = time.perf_counter() - start, os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return seconds, used, most >> 10


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
            rounds = []
            for _ in range(ROUNDS):
                given[3].unlink(missing_ok=True)
                rounds.append((alone(verb, jobs), run(*given, *options), alone(verb, jobs), copied(given[1], given[3])))
            yield row(f"{verb} {codec}", jobs, times * SHOP.count(b"\n"), rounds)


def row(name: str, jobs: int, messages: int, rounds: list) -> str:
    """Return a row of the table: medians, with the converter measured before and after each command."""
    by_itself = [(before + after) / 2 for before, _, after, _ in rounds]
    done = [one for _, one, _, _ in rounds]
    rate = statistics.median(messages / seconds for seconds, _, _ in done)
    shares = [
        (messages / most / used, (messages / most + copy) / used, messages / clock)
        for (_, used, _), most, (*_, (clock, copy)) in zip(done, by_itself, rounds, strict=True)
    ]
    share, beside, copying = map(statistics.median, zip(*shares, strict=True))
    memory = max(memory for _, _, memory in done)
    rates = f"{statistics.median(by_itself):>18,.0f}{rate:>14,.0f}{copying:>12,.0f}"
    return f"{name:16}{jobs:>6}{rates}{share:>8.0%}{beside:>16.0%}{memory:>8}"


def looking(folder: Path, times: int) -> Iterator[str]:
    """Yield the rows of the second table: commands that go over each message in Python, beside `encode`."""
    path, made = folder / "some.jsonl", folder / "made"
    with path.open("wb") as stream:
        for _ in range(times):
            stream.write(SHOP)
    commands = {
        "encode": ("--out", made, "--force"),
        "sniff": (),
        "validate": (),
        **{f"transcode {name}": ("--to", name, "--out", made, "--force") for name in TARGETS},
    }
    for jobs in (1, 2):
        rates: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(ROUNDS):
            for name, options in commands.items():
                _, used, _ = run(name.partition(" ")[0], path, *options, "--jobs", jobs)
                rates[name].append(path.stat().st_size / used / 1e6)
        for name, found in rates.items():
            share = statistics.median(rate / encode for rate, encode in zip(found, rates["encode"], strict=True))
            yield f"{name:24}{jobs:>6}{statistics.median(found):>10.1f}{share:>16.2f}"


def current(folder: Path, times: int) -> Iterator[str]:
    """Yield the rows of the third table: changes of tables and their current rows, of which a quarter changed."""
    path, made, count = folder / "rows.jsonl", folder / "tables", times * SHOP.count(b"\n")
    with path.open("w", encoding="utf-8") as stream:
        for i in range(count):
            row = {"id": i % (count * 3 // 4 or 1), **{f"c{column}": f"{i * column % 9973}.5" for column in range(7)}}
            texts = {name: str(value) for name, value in row.items()}
            types = {name: "bigint" if name == "id" else "decimal(9,1)" for name in row}
            told = {
                "type": "INSERT" if i == row["id"] else "UPDATE",
                "id": i,
                "es": 1_700_000_000_000 + i,
                "isDdl": False,
            }
            own = {"database": "d", "table": "t", "pkNames": ["id"], "mysqlType": types, "data": [texts], "old": None}
            stream.write(json.dumps({**told, **own, "sql": ""}) + "\n")
    commands = {"tables": (), "tables --current": ("--current",)}
    times_of: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(ROUNDS):
        for name, options in commands.items():
            times_of[name].append(run("tables", path, "--out", made, "--force", *options)[1])
    for name, found in times_of.items():
        ratio = statistics.median(one / base for one, base in zip(found, times_of["tables"], strict=True))
        yield f"{name:24}{count:>10,}{statistics.median(found):>10.1f}{ratio:>12.2f}"


def main() -> None:
    """Print the table."""
    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    print(f"cdcavro, {'compiled' if COMPILED else 'pure Python'}; a file of {megabytes} MB, {os.cpu_count()} cores")
    print(
        f"{'command':16}{'jobs':>6}{'alone, messages/s':>18}{'messages/s':>14}{'copied/s':>12}{'share':>8}{'beside copying':>16}{'MiB':>8}"
    )
    with tempfile.TemporaryDirectory() as folder:
        for one in rows(Path(folder), max(1, megabytes * 1_000_000 // len(SHOP))):
            print(one, flush=True)
        print(f"{'command':24}{'jobs':>6}{'MB/s':>10}{'of encode':>16}")
        for one in looking(Path(folder), max(1, megabytes * 50_000 // len(SHOP))):
            print(one, flush=True)
        print(f"{'command':24}{'messages':>10}{'s':>10}{'of tables':>12}")
        for one in current(Path(folder), max(1, megabytes * 50_000 // len(SHOP))):
            print(one, flush=True)


if __name__ == "__main__":
    main()

"""Programs that tests start: they react to signals, and none outlives its test. Also the memory of the tests' own."""

from __future__ import annotations

import ctypes
import os
import random
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

_PR_SET_PDEATHSIG = 1


def let_programs_heed_signals() -> None:
    """Make programs start with default signal handling, even if `nohup` or a shell's `&` made the tests ignore signals.

    A program inherits ignored signals, but no handlers.
    """
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)


def let_spark_compile_little() -> None:
    """Set how sessions of Spark run Java that are started from now on, also as users start them.

    Much code runs a few times only, and to compile it well takes longer than it saves.
    """
    for name in ("SPARK_SUBMIT_OPTS", "SPARK_LAUNCHER_OPTS"):
        os.environ.setdefault(name, "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=160m -XX:+UseSerialGC")


def die_with_parent() -> None:
    """Let Linux kill this program, which just began, when the tests end, even by kill -9: pass it as `preexec_fn`."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def free_ports(count: int) -> list[int]:
    """Return ports of this machine on which nothing listens.

    They are none of those that a system gives to connections (from 32,768 on): such a port may be gone again, to a
    connection of another test's, when a server asks for it.
    """
    ports: list[int] = []
    with ExitStack() as stack:
        while len(ports) < count:
            port = random.SystemRandom().randrange(12_000, 32_000)
            free = stack.enter_context(socket.socket())
            with suppress(OSError):
                free.bind(("127.0.0.1", port))
                ports.append(port)
    return ports


def is_port_taken(log: str) -> bool:
    """Return whether a server says that somebody else took its port before it did: another one is free."""
    return any(sentence in log for sentence in ("Address already in use", "in use by another process", "BindException"))


@contextmanager
def running(command: list[Any], **options: Any) -> Iterator[subprocess.Popen]:
    """Start a program and wait for its end; kill it if the test ends first, by a failure or its time limit."""
    with subprocess.Popen(command, **options) as process:
        try:
            yield process
            process.wait()
        except BaseException:
            process.kill()
            raise


def end(process: subprocess.Popen, number: int) -> None:
    """End a program by a signal; send it again if it came just before the program began to wait for something else."""
    while process.poll() is None:
        process.send_signal(number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=5)


def resident() -> int:
    """Return the resident memory of this process in bytes."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * 4096

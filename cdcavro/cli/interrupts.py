"""A second Ctrl-C: it ends a process whose main thread is in a long call of a library, which the first one waits for."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from cdcavro.cli.console import say
from cdcavro.cli.group import INTERRUPTED, TERMINATED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_CODES: Final = {signal.SIGINT: INTERRUPTED, signal.SIGTERM: TERMINATED}
# How long, in seconds, the first signal has to end the work before it is said what is waited for.
_MOMENT: Final = 1.0


@contextmanager
def second_signal_ends(tell: Callable[[], None]) -> Iterator[None]:
    """Let a second Ctrl-C or SIGTERM end the process at once, wherever it is; `tell` says then what was done.

    Python itself acts on a signal when a call of a library is over, which may be minutes later. Call it in the main
    thread; in others it does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    source, target = socket.socketpair()
    target.setblocking(False)  # noqa: FBT003
    before = signal.set_wakeup_fd(target.fileno(), warn_on_full_buffer=False)
    threading.Thread(target=_watch, args=(source, tell), daemon=True).start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        target.close()


def _watch(source: socket.socket, tell: Callable[[], None]) -> None:
    seen = 0
    with source:
        while True:
            try:
                numbers = source.recv(64)
            except TimeoutError:
                source.settimeout(None)
                say("ending what is under way; Ctrl-C again ends at once, which loses nothing")
                continue
            if not numbers:
                return
            for number in numbers:
                if number not in _CODES:
                    continue
                seen += 1
                if seen > 1:
                    _end(_CODES[signal.Signals(number)], tell)
                source.settimeout(_MOMENT)


def _end(code: int, tell: Callable[[], None]) -> None:
    with suppress(Exception):
        tell()
        for stream in filter(None, (sys.stdout, sys.stderr)):
            stream.flush()
    os._exit(code)

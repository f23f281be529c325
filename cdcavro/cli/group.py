"""The group of commands: whatever makes a command end, the user gets an exit code and at most one sentence.

The first Ctrl-C waits for the call of a library in which the main thread is; a second one ends the process.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from collections import UserDict
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import click

from cdcavro.cli.console import say
from cdcavro.errors import CdcAvroError, visible_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

REJECTED: Final = 1
UNUSABLE: Final = 2
INTERRUPTED: Final = 130
TERMINATED: Final = 143
PIPE_CLOSED: Final = 141


def example(command: str) -> str:
    """Return the epilog of a command's help: an example on a line of its own."""
    return f"\b\nExample:\n  {command}"


class Fault(click.ClickException):
    """A file or an installation cannot be used."""

    exit_code = UNUSABLE

    def format_message(self) -> str:
        """Return the sentence, in which what cannot be seen is escaped."""
        return visible_lines(self.message)


class LazyCommands(UserDict[str, Any]):
    """Commands by name; each is imported from its module when it is first needed."""

    def __getitem__(self, name: str) -> click.Command:
        home = self.data[name]
        if isinstance(home, str):
            home = self.data[name] = getattr(import_module(home), name)
        command: click.Command = home
        return command


class Terminated(KeyboardInterrupt):
    """SIGTERM was received: the command cleans up as after Ctrl-C."""


class Commands(click.Group):
    """A group whose commands show no traceback for errors that are not the program's fault."""

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """Parse what stands before a command, and print the help of the group, for which all commands are imported."""
        try:
            return super().make_context(*args, **kwargs)
        except KeyboardInterrupt:
            raise click.exceptions.Exit(INTERRUPTED) from None

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; turn its errors and signals into a sentence and an exit code."""
        try:
            try:
                with _handle_sigterm():
                    return super().invoke(ctx)
            finally:
                _flush()
        except Terminated:
            raise click.exceptions.Exit(TERMINATED) from None
        except CdcAvroError as error:
            raise Fault(str(error)) from error
        except KeyboardInterrupt:
            raise click.exceptions.Exit(INTERRUPTED) from None
        except BrokenPipeError:
            _discard()
            raise click.exceptions.Exit(PIPE_CLOSED) from None
        except OSError as error:
            _discard()
            place = "the output failed" if error.filename is None else click.format_filename(str(error.filename))
            raise Fault(f"{place}: {error.strerror or error}") from error


@contextmanager
def _handle_sigterm() -> Iterator[None]:
    """Let SIGTERM end a command as Ctrl-C does, unless there is another handler for it."""

    def end(*_: object) -> None:
        raise Terminated

    is_free = (
        threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    )
    if is_free:
        signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        if is_free:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _flush() -> None:
    if sys.stdout is not None:
        sys.stdout.flush()


def _discard() -> None:
    """Discard what is left in the buffers of a broken stream, which the interpreter would complain about at exit."""
    null = os.open(os.devnull, os.O_WRONLY)
    for stream in filter(None, (sys.stdout, sys.stderr)):
        try:
            stream.flush()
        except OSError:
            os.dup2(null, stream.fileno())


@contextmanager
def signals_wait() -> Iterator[None]:
    """Act on Ctrl-C and SIGTERM at the end: while a library is imported, one may be lost or become another error.

    Call it in the main thread; in others it does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    seen: list[int] = []
    handlers = {number: signal.signal(number, lambda number, _: seen.append(number)) for number in _CODES}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    for first in map(signal.Signals, seen[:1]):
        handler = handlers[first]
        # To raise the signal again would count as the second one (see `second_signal_ends`).
        handler(first, None) if callable(handler) else signal.raise_signal(first)


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

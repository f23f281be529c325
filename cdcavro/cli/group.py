"""The group of commands: every end that a user can bring about has its exit code and at most one sentence."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections import UserDict
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import click

from cdcavro.errors import CdcAvroError

if TYPE_CHECKING:
    from collections.abc import Iterator

REJECTED: Final = 1
UNUSABLE: Final = 2
INTERRUPTED: Final = 130
TERMINATED: Final = 143
PIPE_CLOSED: Final = 141


def example(command: str) -> str:
    """Return the last words of a command's help: an example, on a line of its own."""
    return f"\b\nExample:\n  {command}"


class Fault(click.ClickException):
    """A file or set-up that cannot be used."""

    exit_code = UNUSABLE


class LazyCommands(UserDict[str, Any]):
    """Commands by their names, each imported from its module when it is first asked for."""

    def __getitem__(self, name: str) -> click.Command:
        home = self.data[name]
        if isinstance(home, str):
            home = self.data[name] = getattr(import_module(home), name)
        command: click.Command = home
        return command


class Terminated(KeyboardInterrupt):
    """The command was told to end, by SIGTERM: it cleans up as after Ctrl-C."""


class Commands(click.Group):
    """A group whose commands end without a traceback for what is no fault of the program."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            try:
                with _terminable():
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
            _let_go()
            raise click.exceptions.Exit(PIPE_CLOSED) from None
        except OSError as error:
            _let_go()
            raise Fault(f"the output failed: {error.strerror or error}") from error


@contextmanager
def _terminable() -> Iterator[None]:
    """Let SIGTERM end a command as Ctrl-C does, unless somebody else has an eye on it."""

    def end(*_: object) -> None:
        raise Terminated

    is_ours = (
        threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    )
    if is_ours:
        signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        if is_ours:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _flush() -> None:
    if sys.stdout is not None:
        sys.stdout.flush()


def _let_go() -> None:
    """Send what is left in the buffers of a stream that failed nowhere, or the interpreter would complain at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in filter(None, (sys.stdout, sys.stderr)):
        try:
            stream.flush()
        except OSError:
            os.dup2(nowhere, stream.fileno())

"""The group of commands: every end that a user can bring about has its exit code and at most one sentence."""

from __future__ import annotations

import os
import sys
from collections import UserDict
from importlib import import_module
from typing import Any, Final

import click

from cdcavro.errors import CdcAvroError

REJECTED: Final = 1
UNUSABLE: Final = 2
INTERRUPTED: Final = 130
PIPE_CLOSED: Final = 141


def example(command: str) -> str:
    """Give the last words of a command's help: an example, on a line of its own."""
    return f"\b\nExample:\n  {command}"


class Fault(click.ClickException):
    """A file or set-up that cannot be used."""

    exit_code = UNUSABLE


class Homes(UserDict[str, Any]):
    """Commands by their names, each imported from its module when it is first asked for."""

    def __getitem__(self, name: str) -> click.Command:
        home = self.data[name]
        if isinstance(home, str):
            home = self.data[name] = getattr(import_module(home), name)
        command: click.Command = home
        return command


class Commands(click.Group):
    """A group whose commands end without a traceback for what is no fault of the program."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            try:
                return super().invoke(ctx)
            finally:
                _flush()
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


def _flush() -> None:
    if sys.stdout is not None:
        sys.stdout.flush()


def _let_go() -> None:
    """Send what is left in the buffers of a stream that failed nowhere, or the interpreter would complain at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(nowhere, stream.fileno())

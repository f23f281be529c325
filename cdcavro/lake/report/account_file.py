"""The account of a job in a file beside its state, which is replaced after each batch."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final

import msgspec

from cdcavro.errors import FileError
from cdcavro.lake.job_state import replace_file
from cdcavro.lake.report.account import Account

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cdcavro.lake.report.account import BatchFacts

NAME: Final = "account.json"
_FORMAT: Final = 1


class AccountFile:
    """The account in the folder of a job's state; batches are added by one thread, and lags by another.

    `hide` is called with what is added, and returns it without what nothing may show.

    Raises `FileError` if the file is not what `add` wrote.
    """

    def __init__(self, folder: Path, hide: Callable[[Any], Any] = lambda added: added) -> None:
        self._hide = hide
        self._path = folder / NAME
        self._account = read_account(folder)
        self._lock = threading.Lock()

    def add(self, facts: BatchFacts) -> None:
        """Add a batch, all of which is written; one that is run again is added once."""
        with self._lock:
            self._account.add(self._hide(facts))
            self._write()

    def note_lag(self, batch: int, lag: int, unit: str) -> None:
        """Note how many messages or files (`unit`) were left to read behind a batch."""
        with self._lock:
            self._account.note_lag(batch, lag, unit)
            self._write()

    def note_written(self, batch: int, steps: list[str], waiting: dict[str, str]) -> None:
        """Note what became of rows that waited, where no batch came with which they were written."""
        with self._lock:
            self._account.note_written(batch, self._hide(steps), self._hide(waiting))
            self._write()

    def _write(self) -> None:
        replace_file(self._path, msgspec.json.encode(self._account).decode())


def read_account(folder: Path) -> Account:
    """Return the account in the folder of a job's state, an empty one if there is none. Raises `FileError`."""
    path = folder / NAME
    if not path.exists():
        return Account()
    try:
        account = msgspec.json.decode(path.read_bytes(), type=Account)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise FileError(str(path), "the account of a job", str(error)) from error
    if account.format != _FORMAT:
        raise FileError(str(path), f"an account in format {_FORMAT}", f"one in format {account.format}")
    return account

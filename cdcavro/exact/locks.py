"""Locks that hold in the face of forks and kills, and marks of objects that one thread at a time may use."""

from __future__ import annotations

import os
import re
import stat
import time
from contextlib import contextmanager, suppress
from functools import wraps
from threading import Lock, get_ident
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast
from weakref import WeakSet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows has none.
    fcntl = None  # type: ignore[assignment]

Method = TypeVar("Method", bound="Callable[..., Any]")
_USER: Final = "thread"
# Seconds between making a file and holding it are far fewer.
_FRESH: Final = 5
# Of a pipe in the place of a file, opening it would wait for ever.
_HELD: Final = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
_ALL: WeakSet[ForkedLock] = WeakSet()


class ForkedLock:
    """A lock that is free in a forked child, whichever thread held it when the process was forked.

    What it guards may be half-changed then, so it guards what may be so: what is only remembered.
    """

    __slots__ = ("__weakref__", "_lock")

    def __init__(self) -> None:
        self._lock = Lock()
        _ALL.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def renew(self) -> None:
        """Become free."""
        self._lock = Lock()


def _renew() -> None:
    for lock in [*_ALL]:
        lock.renew()


# Windows has no forks.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)


@contextmanager
def hold(path: Path) -> Iterator[None]:
    """Mark a file or folder as in use within the `with` block, or until the process is killed."""
    if fcntl is None:
        yield
        return
    descriptor = os.open(path, _HELD)
    try:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def leftovers(target: Path, endings: Sequence[str]) -> list[Path]:
    """Return what runs that were killed left beside a target, called as the target with eight digits and an ending.

    What another run holds, or may be about to hold, is not among it.
    """
    if fcntl is None:
        return []
    named = re.compile(rf"{re.escape(target.name)}\.[0-9a-f]{{8}}\.(?:{'|'.join(endings)})")
    return [entry for entry in target.parent.iterdir() if named.fullmatch(entry.name) and _is_leftover(entry)]


def _is_leftover(entry: Path) -> bool:
    try:
        said = entry.lstat()
        is_ours = stat.S_ISREG(said.st_mode) or stat.S_ISDIR(said.st_mode)
        if not is_ours or time.time() - said.st_mtime < _FRESH:
            return False
        descriptor = os.open(entry, _HELD)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def one_at_a_time(method: Method) -> Method:
    """Return a method that raises `RuntimeError` while another thread is in any such method of the object.

    The object has a dict `user`, which tells the thread that is in one. An error rather than a lock: the order
    in which threads come is that of nothing, and a child forked meanwhile would wait for ever.
    """

    @wraps(method)
    def call(self: Any, *arguments: Any, **named: Any) -> Any:
        own, user = get_ident(), self.user
        if user.get(_USER) == own:
            return method(self, *arguments, **named)
        # Nothing comes between what `setdefault` does.
        if user.setdefault(_USER, own) != own:
            raise RuntimeError(f"one thread at a time may use {type(self).__name__}, and another does")
        try:
            return method(self, *arguments, **named)
        finally:
            del user[_USER]

    return cast("Method", call)

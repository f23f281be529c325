"""Locks that forks and kills do not break: of caches, of files in use, and of objects that one thread at a time uses."""

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
# In seconds; a file is held within far fewer after it was made.
_FRESH: Final = 5
# Without these flags, opening a pipe in the place of a file would wait for ever.
_HELD: Final = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
_ALL: WeakSet[ForkedLock] = WeakSet()


class ForkedLock:
    """A lock that is free in a forked child, whichever thread held it when the process was forked.

    What it guards may be half-changed then, so it must only guard what may be lost, such as a cache.
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
        """Make the lock free."""
        self._lock = Lock()


def _renew() -> None:
    for lock in [*_ALL]:
        lock.renew()


# Windows has no forks.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)


@contextmanager
def hold(path: Path) -> Iterator[None]:
    """Mark a file or folder as in use during the `with` block, or until the process is killed."""
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
    """Return the files and folders that killed runs left beside a target.

    Their names are that of the target, a point, eight hex digits, a point and one of the endings. Those that another
    run holds, or may be about to hold, are not returned.
    """
    if fcntl is None:
        return []
    named = re.compile(rf"{re.escape(target.name)}\.[0-9a-f]{{8}}\.(?:{'|'.join(endings)})")
    return [entry for entry in target.parent.iterdir() if named.fullmatch(entry.name) and _is_leftover(entry)]


def _is_leftover(entry: Path) -> bool:
    try:
        status = entry.lstat()
        is_ours = stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)
        if not is_ours or time.time() - status.st_mtime < _FRESH:
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

    The object has a dict `user`, which holds the thread that is in one. This is an error rather than a lock because
    no order of threads would be right, and a child forked meanwhile would wait for ever.
    """

    @wraps(method)
    def call(self: Any, *arguments: Any, **named: Any) -> Any:
        own, user = get_ident(), self.user
        if user.get(_USER) == own:
            return method(self, *arguments, **named)
        # `setdefault` is atomic.
        if user.setdefault(_USER, own) != own:
            raise RuntimeError(f"one thread at a time may use {type(self).__name__}, and another does")
        try:
            return method(self, *arguments, **named)
        finally:
            del user[_USER]

    return cast("Method", call)

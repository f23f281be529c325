"""A folder of JSON files that survives crashes and has one writer at a time."""

from __future__ import annotations

import json
import os
import secrets
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from cdcavro.avro.schema import MAX_LENGTH
from cdcavro.errors import RegistryError, SetupError, shown
from cdcavro.registry.backend import UnusableError

try:
    import fcntl
except ImportError:  # Windows has none
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

T = TypeVar("T")

MARK: Final = {"cdcavro": "registry", "layout": 1}
FOLDERS: Final = ("parts", "schemas", "guids", "fingerprints", "uses", "subjects")
_MARKED: Final = Path("registry.json")
_FILES: Final = frozenset({"registry.json", "compatibility.json", "lock"})
_POLL: Final = 0.005
_MAX_FILE: Final = 8 * MAX_LENGTH


class Folder:
    """The files of a registry.

    `lock_seconds` is how long to wait for another process or thread that is publishing. Attributes: `path` (Path,
    absolute); `url` (str), the folder's name in errors. Every method raises `RegistryError`.
    """

    def __init__(self, path: Path, *, lock_seconds: float) -> None:
        self.path = path.absolute()
        self.url = f"file:{path}"
        self._lock_seconds = lock_seconds

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Keep other threads and processes from changing anything; create the folder if it does not exist."""
        if fcntl is None:
            raise SetupError("a registry in a folder needs a system with fcntl, such as Linux or macOS")
        with self.failing():
            self._check_own()
            self.path.mkdir(parents=True, exist_ok=True)
            with (self.path / "lock").open("ab") as lock:
                self._wait_for(lock.fileno())
                self._prepare()
                yield

    @contextmanager
    def failing(self) -> Iterator[None]:
        """Turn the system's errors into `RegistryError`."""
        try:
            yield
        except RegistryError:
            raise
        except OSError as error:
            raise self._failed(error) from error

    def check_there(self) -> None:
        """Check that the folder is a registry."""
        mark = self.read(_MARKED)
        if mark is None:
            raise RegistryError(self.url, "there is no registry in this folder; the first publication makes one")
        if mark != MARK:
            raise RegistryError(self.url, "its layout is not one that this version of cdcavro knows")

    def read(self, place: Path) -> dict[str, Any] | None:
        """Return the JSON object in a file; None if there is no such file."""
        raw = self.read_bytes(place)
        if raw is None:
            return None
        try:
            value = json.loads(raw)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            raise self.damaged(place, "it is no JSON object")
        return value

    def read_bytes(self, place: Path) -> bytes | None:
        """Return the bytes of a file; None if there is no such file."""
        try:
            with (self.path / place).open("rb") as stream:
                raw = stream.read(_MAX_FILE + 1)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise self._failed(error) from error
        if len(raw) > _MAX_FILE:
            raise self.damaged(place, f"it has more than {_MAX_FILE:,} bytes")
        return raw

    def write(self, place: Path, value: dict[str, Any]) -> None:
        """Write a file completely or not at all; it is on the disk when this returns."""
        part = self.path / "parts" / secrets.token_hex(8)
        with part.open("xb") as stream:
            stream.write(json.dumps(value).encode() + b"\n")
            stream.flush()
            os.fsync(stream.fileno())
        target = self.path / place
        part.replace(target)
        _sync(target.parent)

    def append(self, place: Path, value: dict[str, Any]) -> None:
        """Append a line to a file; a line that a crash cut short stays separate."""
        with (self.path / place).open("ab+") as stream:
            size = stream.seek(0, os.SEEK_END)
            stream.seek(max(size - 1, 0))
            torn = b"\n" if size and stream.read(1) != b"\n" else b""
            stream.write(torn + json.dumps(value).encode() + b"\n")
            stream.flush()
            os.fsync(stream.fileno())
        _sync((self.path / place).parent)

    def make(self, place: Path) -> None:
        """Create a folder if it does not exist."""
        if not (self.path / place).is_dir():
            (self.path / place).mkdir()
            _sync((self.path / place).parent)

    def names(self, place: Path) -> list[str]:
        """Return the names of a folder's entries."""
        with self.failing(), os.scandir(self.path / place) as entries:
            return [entry.name for entry in entries]

    def last(self, place: Path) -> int:
        """Return the number of the last of the files 1.json, 2.json, …, which have no gap; 0 if there are none."""
        return _last(lambda number: (self.path / place / f"{number}.json").exists())

    def checked(self, check: Callable[..., T], *values: Any) -> T:
        """Return what `check` returns for values read from a file; its ValueError becomes a `RegistryError`."""
        try:
            return check(*values)
        except ValueError as error:
            raise UnusableError(self.url, f"a file in it is damaged: {error}") from error

    def damaged(self, place: Path, why: str) -> RegistryError:
        """Return the error for a file that is not as it was written."""
        return UnusableError(self.url, f"{place.as_posix()} is damaged: {why}")

    def _failed(self, error: OSError) -> RegistryError:
        return RegistryError(self.url, f"the folder cannot be used: {error.strerror or type(error).__name__}")

    def _check_own(self) -> None:
        if self.path.is_dir() and not (self.path / _MARKED).exists():
            foreign = {entry.name for entry in self.path.iterdir()} - _FILES - set(FOLDERS)
            if foreign:
                reason = f"expected a registry's folder or an empty one, got one with {shown(min(foreign))} in it"
                raise RegistryError(self.url, reason)

    def _prepare(self) -> None:
        for name in FOLDERS:
            self.make(Path(name))
        for leftover in self.names(Path("parts")):
            (self.path / "parts" / leftover).unlink()
        if not (self.path / _MARKED).exists():
            self.write(_MARKED, MARK)
        self.check_there()

    def _wait_for(self, lock: int) -> None:
        until = time.monotonic() + self._lock_seconds
        while not _is_locked(lock):
            if time.monotonic() > until:
                raise RegistryError(self.url, f"another has been publishing for {self._lock_seconds:g} seconds")
            time.sleep(_POLL)


def _is_locked(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _last(is_there: Callable[[int], bool]) -> int:
    """Return the last of the numbers that exist, which start at 1 and have no gap; 0 if there are none.

    >>> _last(lambda number: number <= 1000)
    1000
    """
    last, step = 0, 1
    while is_there(last + step):
        last, step = last + step, step * 2
    while step > 1:
        step //= 2
        if is_there(last + step):
            last += step
    return last


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

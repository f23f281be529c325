"""Stored state: that of a pipeline in an object store, of which the process that holds it has a working copy in a folder.

One object, the head, names all others, and these never change. Saving writes new objects and then the head, on the
condition that it is still the one that was last seen: a state is saved as a whole or not at all, and whoever lost it
cannot save any more. The process that holds a state renews the head every few seconds; another one takes the state once
the head has stayed the same for a while by its own clock, so that no two clocks are compared.

Before anything of a batch is written elsewhere, the state is saved with what the batch reads and learned, and once more
when it is done. A batch that was cut off between is run again from the first of these, as from a folder.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import uuid4

import msgspec
from msgspec import Struct

from cdcavro.errors import FileError, SetupError, hide_credentials
from cdcavro.exact.locks import hold
from cdcavro.sync.secrets import FromVariable, Redaction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

# The schemes of addresses of object stores, as those in which delta-rs reaches a lake.
STORES: Final = frozenset({"s3", "s3a", "gs", "az", "adl", "abfs", "abfss", "azure"})
LOCK: Final = "lock"
# For how many seconds a head stays the same until its holder counts as gone, and how often it is renewed meanwhile.
LEASE: Final = 30.0
_RENEWALS: Final = 6
# For how many seconds a store is asked again that does not answer.
PATIENCE: Final = timedelta(seconds=60)
_HEAD: Final = "head.json"
_FORMAT: Final = 1
# Where all other objects are, and what their names begin with: no other object is ever removed.
_OBJECTS: Final = "files"
_OWN: Final = re.compile(rf"{_OBJECTS}/(?:.*/)?[0-9a-f]{{32}}-[^/]+", re.DOTALL)
# What is of use to this process only.
_SCRATCH: Final = frozenset({"spill", LOCK})
# Rejects are many, and are read by people and to be replayed: the working copy has only those of the batch that runs.
_REJECTS: Final = "rejects"
# The log of the rejects that are read again has addresses of files in the working copy, which is elsewhere each time.
_REPLAYED: Final = "checkpoint/sources/1/"
_ROOT: Final = b"file:///cdcavro-state"
_PARALLEL: Final = 8
# In seconds: a file that is written this long behind another one has a later time of modification.
_TICK: Final = 0.01
# How often a state is read again of which its holder removed objects meanwhile.
_ATTEMPTS: Final = 20
# What obstore says of a listing, for which it has no error of its own.
_MISSING: Final = " 404 Not Found"
# The longest reason of a store's that is told.
_LONGEST: Final = 300


class StoredFile(Struct, array_like=True):
    """A file of a state: the object that has its bytes, and how many there are."""

    object: str
    size: int


class Head(Struct):
    """What a state consists of, and who holds it."""

    format: int = _FORMAT
    # Who wrote it, which is unique to one time of holding a state; and the number of this head, which no other one has.
    writer: str = ""
    number: str = ""
    # What people call the process that holds the state; None if none does.
    holder: str | None = None
    # The files by path, with slashes, and the folders without any.
    files: dict[str, StoredFile] = {}
    folders: list[str] = []


class _Found(NamedTuple):
    """A head as it is in the store."""

    head: Head
    # What a write states that replaces just this one; "create" if there is none.
    mode: Any
    # When it was written, by the clock of the store.
    at: datetime | None


class _GoneError(FileError):
    """An object that a head names and that is not there, as its holder has removed it since."""


def is_stored(state: str) -> bool:
    """Return whether a state is in an object store.

    >>> is_stored("s3://bucket/state"), is_stored("state"), is_stored("hdfs:///state")
    (True, False, False)
    """
    scheme, mark, _ = state.partition("://")
    return bool(mark) and scheme.lower() in STORES


@contextmanager
def state_folder(state: str, *, is_changed: bool = False) -> Iterator[Path]:
    """Yield the folder of a state, of one in an object store a copy; with `is_changed`, it is held, and saved then.

    Raises `FileError` for a store that cannot be reached, and for a state that is to be changed and is in use.
    """
    if not is_stored(state):
        yield Path(state)
        return
    stored = StoredState(state)
    if not is_changed:
        with stored.shown():
            yield stored.folder
        return
    with stored.held(is_whole=True):
        yield stored.folder
        stored.save()


class StoredState:
    """A state in an object store.

    * `address` (str): that of a folder in the store, such as `s3://bucket/state`.
    * `store`: one of obstore's, by default that of the address, which is reached as the environment says.

    `folder` (Path) is the working copy, which goes away with this object, and `objects` (str) the address of what the
    store has of each of its files. Raises `SetupError` without obstore, and
    `FileError` for an address that it does not understand.
    """

    def __init__(self, address: str, store: Any = None) -> None:
        self.address, self.objects = address, f"{address.rstrip('/')}/{_OBJECTS}"
        self._store = _connect(address) if store is None else store
        self._temporary = TemporaryDirectory(prefix="cdcavro-state-", ignore_cleanup_errors=True)
        self.folder = Path(self._temporary.name).resolve() / "state"
        self.folder.mkdir()
        self._redaction = Redaction([FromVariable(str(self.folder), address, {})])
        self._head = Head()
        # What a write of the head states, as `_Found.mode`.
        self._mode: Any = "create"
        # When the state was surely held last, by two clocks, of which either may have stood still.
        self._sure = (0.0, 0.0)
        self._writer, self._is_whole, self._is_lost, self._is_down = "", False, False, False
        # What files were when they were last saved.
        self._saved: dict[str, tuple[int, ...]] = {}
        self._lock = threading.Lock()
        # Of two threads that save, the second one finds what the first one has saved.
        self._saving = threading.Lock()

    @contextmanager
    def held(self, *, is_whole: bool = False) -> Iterator[None]:
        """Hold the state during the block, which has a working copy; with `is_whole`, rejects are in it, too.

        What is not saved is lost then. Raises `FileError` if another process holds the state.
        """
        with self._redaction.errors():
            self._writer, self._is_whole, self._is_lost, self._is_down = uuid4().hex, is_whole, False, False
            self._claim()
            over = threading.Event()
            renewing = threading.Thread(target=self._renew, args=(over,), daemon=True)
            renewing.start()
            try:
                self._sweep()
                self._fetch(self._head)
                yield
            finally:
                over.set()
                renewing.join()
                # If that fails, it is free when the head has not been renewed for a while.
                with suppress(FileError), self._lock:
                    if not self._is_down:
                        self._put(holder=None)

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Let the folder have a copy of the state as it is now, without rejects, locked if the state is in use."""
        with self._redaction.errors():
            found = self._copied()
            if found.at is None or found.head.holder is None or datetime.now(UTC) - found.at > timedelta(seconds=LEASE):
                yield
                return
            (self.folder / LOCK).touch()
            with hold(self.folder / LOCK):
                yield

    def save(self, *, is_idle: bool = False) -> None:
        """Save the working copy, as a whole or not at all.

        With `is_idle`, another thread may begin to write to it: only if there is something new, and it stays the same
        for as long as it is read, it is saved. Raises `FileError` if another process has taken the state, or the store
        cannot be reached.
        """
        with self._saving:
            found = self._walk()
            if not is_idle or found != (self._saved, self._head.folders):
                self._save(found, is_idle=is_idle)

    def verify(self) -> None:
        """Raise `FileError` if another process has taken the state: so long after a renewal, the store is asked."""
        with self._lock:
            if self._is_lost or any(now - then > LEASE / 2 for now, then in zip(_clocks(), self._sure, strict=True)):
                self._put()

    def _save(self, walked: tuple[dict[str, tuple[int, ...]], list[str]], *, is_idle: bool = False) -> None:
        """Save what `_walk` has found; with `is_idle`, not if there is something else by then."""
        if self._is_lost:
            raise self._in_use(None)
        found, folders = walked
        old = self._head.files
        changed = [path for path, state in found.items() if self._saved.get(path) != state]
        files = {path: old[path] for path in found if path not in changed}
        if not self._is_whole:
            files |= {path: one for path, one in old.items() if _is_reject(path) and path not in found}
        with self._reached():
            made = {path: one for path, one in self._in_parallel(self._upload, changed) if one is not None}
        files |= made
        # A file that was written later may be there while one that was written before it is not, or is gone again.
        if is_idle and self._walk() != walked:
            self._remove(one.object for one in made.values())
            return
        try:
            with self._lock:
                self._put(files=dict(sorted(files.items())), folders=folders)
        except FileError:
            # Whoever has taken the state has another head, but may have taken it with a head of which no answer came.
            named = {one.object for one in self._head.files.values()}
            self._remove(one.object for one in made.values() if self._is_lost and one.object not in named)
            raise
        self._note(found)
        if not self._is_whole:
            shutil.rmtree(self.folder / _REJECTS, ignore_errors=True)
        self._remove(one.object for path, one in old.items() if files.get(path) != one)

    def _claim(self) -> None:
        """Become the one that holds the state. Raises `FileError` if another process does."""
        found = self._find()
        until = time.monotonic() + LEASE
        while found.head.holder is not None and time.monotonic() < until:
            time.sleep(LEASE / _RENEWALS / 2)
            again = self._find()
            if again.head.holder is not None and again.head.number != found.head.number:
                raise self._in_use(again.head)
            found = again
        self._head, self._mode = found.head, found.mode
        with self._lock:
            self._put(holder=f"process {os.getpid()} on {socket.gethostname()}")

    def _renew(self, over: threading.Event) -> None:
        """Renew the head from time to time: while it changes, the holder is alive."""
        while not over.wait(LEASE / _RENEWALS) and not self._is_lost:
            # What is wrong is told when the state is saved.
            with suppress(FileError), self._lock:
                self._put()

    def _put(self, **changed: Any) -> None:
        """Replace the head by one with changed members. Raises `FileError` if another process has replaced it."""
        import obstore  # noqa: PLC0415  it is of use for states in object stores only
        from obstore.exceptions import AlreadyExistsError, PreconditionError  # noqa: PLC0415

        if self._is_lost:
            raise self._in_use(None)
        for _ in range(_ATTEMPTS):
            number, began = uuid4().hex, _clocks()
            head = msgspec.structs.replace(self._head, writer=self._writer, number=number, **changed)
            try:
                with self._reached(AlreadyExistsError, PreconditionError, FileNotFoundError):
                    done = obstore.put(self._store, _HEAD, msgspec.json.encode(head), mode=self._mode)
            except (AlreadyExistsError, PreconditionError, FileNotFoundError) as error:
                found = self._find()
                if found.head.writer != self._writer:
                    self._head, self._is_lost = found.head, True
                    raise self._in_use(found.head) from error
                # It is this process's own, of a write that the store made and did not answer.
                self._head, self._mode = found.head, found.mode
            else:
                self._head, self._mode, self._is_down, self._sure = head, _mode_of(done), False, began
            if self._head.number == number:
                return
        raise FileError(self.address, "a store that keeps what is written to it", "another head each time")

    def _find(self) -> _Found:
        """Return the head of the state, an empty one if there is none. Raises `FileError`."""
        import obstore  # noqa: PLC0415  it is of use for states in object stores only

        try:
            with self._reached(FileNotFoundError):
                got = obstore.get(self._store, _HEAD)
                text, meta = bytes(got.bytes()), got.meta
        except FileNotFoundError:
            self._check_bucket()
            return _Found(Head(), "create", None)
        try:
            head = msgspec.json.decode(text, type=Head)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise FileError(f"{self.address}/{_HEAD}", "the head of a state", str(error)) from error
        if head.format != _FORMAT:
            raise FileError(f"{self.address}/{_HEAD}", f"a state in format {_FORMAT}", f"one in format {head.format}")
        return _Found(head, _mode_of(meta), meta["last_modified"])

    def _check_bucket(self) -> None:
        """Raise `FileError` if the bucket is not there, of whose objects stores say no more than that they are not."""
        import obstore  # noqa: PLC0415  it is of use for states in object stores only
        from obstore.exceptions import BaseError  # noqa: PLC0415

        try:
            next(iter(obstore.list(self._store, prefix=_OBJECTS)), None)
        except (BaseError, FileNotFoundError) as error:
            # Whatever else is wrong is told when the store is written to.
            if isinstance(error, FileNotFoundError) or _MISSING in str(error):
                raise self._no_bucket() from error

    def _copied(self) -> _Found:
        """Return the head of the state, of which the folder has a copy then."""
        for _ in range(_ATTEMPTS):
            found = self._find()
            # Its holder removes what it no longer needs.
            with suppress(_GoneError):
                self._fetch(found.head)
                return found
        raise FileError(self.address, "a state that stays for as long as it is read", "one that changes each time")

    def _fetch(self, head: Head) -> None:
        """Let the folder have what a head names. Raises `FileError`."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        for folder in head.folders:
            self._within(folder).mkdir(parents=True, exist_ok=True)
        files = {path: one for path, one in head.files.items() if self._is_whole or not _is_reject(path)}
        for path in files:
            self._within(path).parent.mkdir(parents=True, exist_ok=True)
        with self._reached():
            self._in_parallel(self._download, files.items())
        self._note(self._walk()[0])

    def _note(self, files: dict[str, tuple[int, ...]]) -> None:
        """Note what files are that are saved; those that are written from now on differ."""
        self._saved = files
        time.sleep(_TICK)

    def _within(self, path: str) -> Path:
        """Return the place of a path in the folder. Raises `FileError` for one that leads out of it."""
        place = self.folder / path
        if ".." in place.parts or not place.is_relative_to(self.folder):
            raise FileError(f"{self.address}/{_HEAD}", "paths in the state", "one that leads out of it")
        return place

    def _download(self, named: tuple[str, StoredFile]) -> None:
        import obstore  # noqa: PLC0415  it is of use for states in object stores only

        path, stored = named
        try:
            data = bytes(obstore.get(self._store, stored.object).bytes())
        except FileNotFoundError as error:
            raise _GoneError(f"{self.address}/{stored.object}", "a file of the state", "none") from error
        if len(data) != stored.size:
            raise FileError(f"{self.address}/{stored.object}", f"{stored.size:,} bytes", f"{len(data):,}")
        if path.startswith(_REPLAYED):
            data = data.replace(_ROOT, self._root)
        self._within(path).write_bytes(data)

    def _upload(self, path: str) -> tuple[str, StoredFile | None]:
        """Write the object of a file; None is returned beside its path if it is gone again."""
        import obstore  # noqa: PLC0415  it is of use for states in object stores only

        folder, mark, name = path.rpartition("/")
        key = f"{_OBJECTS}/{folder}{mark}{uuid4().hex}-{name}"
        try:
            file = (self.folder / path).open("rb")
        except FileNotFoundError:
            return path, None
        with file:
            if path.startswith(_REPLAYED):
                data = file.read().replace(self._root, _ROOT)
                obstore.put(self._store, key, data)
                return path, StoredFile(key, len(data))
            # Another thread may replace the file.
            obstore.put(self._store, key, file)
            return path, StoredFile(key, os.fstat(file.fileno()).st_size)

    @property
    def _root(self) -> bytes:
        from cdcavro.sync.reading.file_source import file_uri  # noqa: PLC0415  it imports pyarrow

        return file_uri(str(self.folder)).encode()

    def _walk(self) -> tuple[dict[str, tuple[int, ...]], list[str]]:
        """Return what tells the files of the folder from others, by path, and its empty folders."""
        files: dict[str, tuple[int, ...]] = {}
        folders: list[str] = []
        waiting = [""]
        while waiting:
            folder = waiting.pop()
            count = len(files) + len(waiting)
            # What is gone again is left out: Spark removes what is old in a thread of its own.
            with suppress(FileNotFoundError), os.scandir(self.folder / folder) as entries:
                for entry in entries:
                    path = f"{folder}/{entry.name}" if folder else entry.name
                    # Hidden files are those that were cut off while they were written.
                    if path in _SCRATCH or entry.name.startswith("."):
                        continue
                    if entry.is_dir():
                        waiting.append(path)
                        continue
                    with suppress(FileNotFoundError):
                        status = entry.stat()
                        files[path] = status.st_ino, status.st_mtime_ns, status.st_size
                if folder and len(files) + len(waiting) == count:
                    folders.append(folder)
        return files, sorted(folders)

    def _sweep(self) -> None:
        """Remove objects that the head does not name: whoever wrote them was cut off, and cannot save any more."""
        import obstore  # noqa: PLC0415  it is of use for states in object stores only

        named = {one.object for one in self._head.files.values()}
        with self._reached():
            found = [one["path"] for some in obstore.list(self._store, prefix=_OBJECTS) for one in some]
        self._remove(path for path in found if path not in named and _OWN.fullmatch(path))

    def _remove(self, objects: Iterable[str]) -> None:
        """Remove objects; those that cannot be removed now are when the state is held again."""
        import obstore  # noqa: PLC0415  it is of use for states in object stores only

        gone = list(objects)
        if gone:
            with suppress(FileError, FileNotFoundError), self._reached(FileNotFoundError):
                obstore.delete(self._store, gone)

    @contextmanager
    def _reached(self, *expected: type[Exception]) -> Iterator[None]:
        """Let errors of the store be of this project, but for those that are expected."""
        from obstore.exceptions import BaseError  # noqa: PLC0415  it is of use for states in object stores only

        try:
            yield
        except expected:
            raise
        except FileNotFoundError as error:
            self._is_down = True
            raise self._no_bucket() from error
        except BaseError as error:
            self._is_down = True
            raise FileError(self.address, "an object store that answers", _reason(error)) from error

    def _no_bucket(self) -> FileError:
        return FileError(self.address, "a bucket or container that is there", "none")

    def _in_use(self, head: Head | None) -> FileError:
        name = "" if head is None or head.holder is None else f", by {head.holder}"
        return FileError(self.address, "a state that no other job uses", f"one that is in use{name}")

    def _in_parallel(self, call: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        with ThreadPoolExecutor(_PARALLEL) as pool:
            return list(pool.map(call, items))


def _connect(address: str) -> Any:
    """Return the store of an address."""
    try:
        from obstore.exceptions import BaseError  # noqa: PLC0415  it is of use for states in object stores only
        from obstore.store import from_url  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise SetupError("obstore is not installed: pip install 'cdcavro[store]'") from error
    try:
        return from_url(address, retry_config={"retry_timeout": PATIENCE})
    except (BaseError, ValueError) as error:
        raise FileError(hide_credentials(address), "an object store", _reason(error)) from error


def _clocks() -> tuple[float, float]:
    return time.monotonic(), time.time()


def _mode_of(written: Mapping[str, Any]) -> dict[str, str]:
    """Return what a write states that replaces just what was written or read."""
    return {name: written[name] for name in ("e_tag", "version") if written.get(name) is not None}


def _reason(error: Exception) -> str:
    """Return why a store has failed, on one line, without what is of use to the library's authors only."""
    return hide_credentials(" ".join(str(error).partition("\n\nDebug source:")[0].split()))[:_LONGEST]


def _is_reject(path: str) -> bool:
    return path.startswith(f"{_REJECTS}/")

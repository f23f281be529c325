"""A registry in a folder of JSON files, with ids, versions and compatibility levels like Confluent's.

    registry.json              marks the folder as a registry
    compatibility.json         the level of subjects that have none of their own; BACKWARD without this file
    lock                       locked while something is published
    parts/                     files being written; the next publication removes what a crash left here
    schemas/ID.json            a schema with its references; ids are 1, 2, 3, …
    guids/GUID.json            the id of a schema, by a GUID computed from its content
    fingerprints/HEX.json      the ids of the schemas with a fingerprint
    uses/ID.jsonl              the subjects and versions that have a schema, one per line
    subjects/NAME/VERSION.json the id of a version's schema; versions are 1, 2, 3, …
    subjects/NAME/compatibility.json

A file gets its name once its bytes are on the disk; only levels, fingerprints and uses change after that.
The version is written last: a crash leaves at most a schema that no version refers to, which gets another
id when it is published again. Nothing is kept in memory, and no folder is listed except `subjects`; finding
the latest of n versions takes about 2 log n lookups.

`JsonFolder` is a folder of JSON files that survives crashes and has one writer at a time. Others may write in it, too:
no link in it is followed, and what is no regular file is refused, not waited for.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import secrets
import stat
import time
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import quote, unquote
from uuid import UUID

from cdcavro.avro.schema import MAX_LENGTH
from cdcavro.errors import RegistryError, SetupError, UnknownSchemaError, shown
from cdcavro.registry.backend import (
    StoredSchema,
    UnusableError,
    check_number,
    check_subject,
    is_equal,
    normal_form,
    parse_stored,
    references_json,
)
from cdcavro.registry.subjects import parse_level

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from cdcavro.registry.subjects import Level

try:
    import fcntl
except ImportError:  # Windows has none
    fcntl = None  # type: ignore[assignment]

T = TypeVar("T")

MARK: Final = {"cdcavro": "registry", "layout": 1}
FOLDERS: Final = ("parts", "schemas", "guids", "fingerprints", "uses", "subjects")
_MARKED: Final = Path("registry.json")
_FILES: Final = frozenset({"registry.json", "compatibility.json", "lock"})
_POLL: Final = 0.005
_MAX_FILE: Final = 8 * MAX_LENGTH
# A pipe would be waited for.
_PLAIN: Final = sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"))
_WITHIN: Final = sum(getattr(os, name, 0) for name in ("O_RDONLY", "O_DIRECTORY", "O_CLOEXEC"))
_HAS_DESCRIPTORS: Final = os.open in os.supports_dir_fd


class JsonFolder:
    """The files of a registry.

    `lock_seconds` is how long to wait for another process or thread that is publishing. Every method raises
    `RegistryError`.
    """

    def __init__(self, path: Path, *, lock_seconds: float) -> None:
        self.path = path.absolute()
        # The name of the folder in errors.
        self.url = f"file:{path}"
        self._lock_seconds = lock_seconds

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Keep other threads and processes from changing anything; create the folder if it does not exist."""
        if fcntl is None:
            raise SetupError("a registry in a folder needs a system with fcntl, such as Linux or macOS")
        with self.translate_errors():
            self._check_own()
            self.path.mkdir(parents=True, exist_ok=True)
            with self._open(Path("lock"), os.O_RDWR | os.O_CREAT) as lock:
                self._wait_for(lock)
                self._prepare()
                yield

    @contextmanager
    def translate_errors(self) -> Iterator[None]:
        """Turn the system's errors into `RegistryError`."""
        try:
            yield
        except RegistryError:
            raise
        except OSError as error:
            raise self._unusable(error) from error

    def check_exists(self) -> None:
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
            with self._open(place, os.O_RDONLY) as file, open(file, "rb", closefd=False) as stream:
                raw = stream.read(_MAX_FILE + 1)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except RegistryError:
            raise
        except OSError as error:
            raise self._unusable(error) from error
        if len(raw) > _MAX_FILE:
            raise self.damaged(place, f"it has more than {_MAX_FILE:,} bytes")
        return raw

    def write(self, place: Path, value: dict[str, Any]) -> None:
        """Write a file completely or not at all; it is on the disk when this returns."""
        part = Path("parts", secrets.token_hex(8))
        with self._open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL) as file:
            _write(file, json.dumps(value).encode() + b"\n")
        with self._enter(part) as (parts, name), self._enter(place) as (folder, target):
            os.replace(name, target, src_dir_fd=parts, dst_dir_fd=folder)
            self._sync(folder, place)

    def append(self, place: Path, value: dict[str, Any]) -> None:
        """Append a line to a file; a line that a crash cut short stays separate."""
        with self._open(place, os.O_RDWR | os.O_CREAT | os.O_APPEND) as file:
            size = os.lseek(file, 0, os.SEEK_END)
            os.lseek(file, max(size - 1, 0), os.SEEK_SET)
            torn = b"\n" if size and os.read(file, 1) != b"\n" else b""
            _write(file, torn + json.dumps(value).encode() + b"\n")
        with self._enter(place) as (folder, _):
            self._sync(folder, place)

    def make(self, place: Path) -> None:
        """Create a folder if it does not exist."""
        with self._enter(place) as (folder, name), suppress(FileExistsError):
            os.mkdir(name, dir_fd=folder)
            self._sync(folder, place)

    def names(self, place: Path) -> list[str]:
        """Return the names of a folder's entries."""
        with self.translate_errors(), self._enter(place / "*") as (folder, _):
            return os.listdir(self.path / place if folder is None else folder)  # noqa: PTH208  of a descriptor

    def last(self, place: Path) -> int:
        """Return the number of the last of the files 1.json, 2.json, …, which have no gap; 0 if there are none."""
        try:
            with self._enter(place / "*") as (folder, name):
                beside = "" if folder is not None else name.removesuffix("*")
                return _last(lambda number: _is_there(f"{beside}{number}.json", folder))
        except (FileNotFoundError, NotADirectoryError):
            return 0
        except RegistryError:
            raise
        except OSError as error:
            raise self._unusable(error) from error

    def parse(self, check: Callable[..., T], *values: Any) -> T:
        """Return what `check` returns for values from a file; its ValueError becomes a `RegistryError`."""
        try:
            return check(*values)
        except ValueError as error:
            raise UnusableError(self.url, f"a file in it is damaged: {error}") from error

    def damaged(self, place: Path, why: str) -> RegistryError:
        """Return the error for a file that is not as it was written."""
        return UnusableError(self.url, f"{place.as_posix()} is damaged: {why}")

    @contextmanager
    def _enter(self, place: Path) -> Iterator[tuple[int | None, str]]:
        """Open the folder that a place is in, one folder after another, and yield its descriptor and the name in it."""
        if not _HAS_DESCRIPTORS:
            yield None, str(self.path / place)
            return
        folder = os.open(self.path, _WITHIN)
        try:
            for i, name in enumerate(place.parts[:-1], 1):
                try:
                    inner = os.open(name, _WITHIN | os.O_NOFOLLOW, dir_fd=folder)
                except NotADirectoryError:
                    raise self.damaged(Path(*place.parts[:i]), "it is no folder") from None
                os.close(folder)
                folder = inner
            yield folder, place.name
        finally:
            os.close(folder)

    @contextmanager
    def _open(self, place: Path, flags: int) -> Iterator[int]:
        """Open a regular file, but nothing that a link leads to, and yield its descriptor."""
        with self._enter(place) as (folder, name):
            try:
                file = os.open(name, flags | _PLAIN, 0o666, dir_fd=folder)
            except OSError as error:
                if error.errno not in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
                    raise
                raise self.damaged(place, "it is no regular file") from error
        try:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                raise self.damaged(place, "it is no regular file")
            yield file
        finally:
            os.close(file)

    def _sync(self, folder: int | None, place: Path) -> None:
        """Make sure that the names in the folder of a place are on the disk."""
        if folder is not None:
            os.fsync(folder)
            return
        handle = os.open((self.path / place).parent, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def _unusable(self, error: OSError) -> RegistryError:
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
            with self._enter(Path("parts", leftover)) as (folder, name):
                os.unlink(name, dir_fd=folder)
        if not (self.path / _MARKED).exists():
            self.write(_MARKED, MARK)
        self.check_exists()

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


def _is_there(name: str, folder: int | None) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _write(file: int, raw: bytes) -> None:
    with open(file, "wb", closefd=False) as stream:
        stream.write(raw)
        stream.flush()
        os.fsync(file)


LOCK_SECONDS: Final = 60.0
_LONGEST: Final = 200
_LEVEL: Final = "compatibility.json"
_LINE: Final = 16 << 10


class FolderBackend:
    """A backend in a folder; `lock_seconds` is how long to wait for another process or thread that is publishing."""

    def __init__(self, folder: Path, *, lock_seconds: float = LOCK_SECONDS) -> None:
        self._folder = JsonFolder(folder, lock_seconds=lock_seconds)
        self.url = self._folder.url

    def safe(self, sentence: str) -> str:
        """Return the sentence unchanged: a folder has no credentials."""
        return sentence

    def exclusive(self) -> AbstractContextManager[None]:
        """Keep other threads and processes from publishing; create the folder if it does not exist."""
        return self._folder.exclusive()

    def subjects(self) -> list[str]:
        """Return the names of all subjects that have a version."""
        self._folder.check_exists()
        subjects = []
        for name in self._folder.names(Path("subjects")):
            first = self._folder.read(Path("subjects", name, "1.json"))
            if first is not None:
                subject = first.get("subject") if name.startswith("~") else unquote(name)
                subjects.append(self._folder.parse(check_subject, subject))
        return sorted(subjects)

    def versions(self, subject: str) -> list[int]:
        """Return the versions of a subject; an empty list if there is no such subject."""
        self._folder.check_exists()
        return list(range(1, self._folder.last(_place(subject)) + 1))

    def version(self, subject: str, version: int | None) -> StoredSchema:
        """Return a version of a subject; None stands for the latest."""
        number = self._folder.last(_place(subject)) if version is None else version
        id = self._version_id(subject, number)
        if id is None:
            has_any = self._version_id(subject, 1) is not None
            raise self._unknown(
                f"version {number} of subject {shown(subject)}" if has_any else f"subject {shown(subject)}"
            )
        return self._entry(id, subject=subject, version=number)

    def by_id(self, id: int) -> StoredSchema:
        """Return the schema with this id."""
        return self._entry(id)

    def by_guid(self, guid: UUID) -> StoredSchema:
        """Return the schema with this GUID."""
        id = self._id_of(guid)
        if id is None:
            raise self._unknown(f"GUID {guid}")
        return self._entry(id)

    def by_global_id(self, global_id: int) -> StoredSchema:
        """Raise `UnknownSchemaError`: a folder has no such ids."""
        raise self._unknown(f"global id {global_id}")

    def by_fingerprint(self, fingerprint: str, fingerprint_of: Callable[[StoredSchema], str]) -> list[StoredSchema]:  # noqa: ARG002  a backend's
        """Return all schemas with this fingerprint."""
        return [self._entry(id) for id in self._ids_with(fingerprint)]

    def uses(self, id: int, subject: str | None) -> list[tuple[str, int]]:
        """Return the versions of a subject that have the schema with this id; without a subject, the first two of all."""
        return list(islice(self._uses(id, subject), None if subject else 2))

    def find(self, subject: str, wanted: StoredSchema) -> StoredSchema | None:
        """Return the version of a subject that is equal; None if there is none."""
        guid = _guid(wanted)
        id = self._id_of(guid)
        if id is None:
            return None
        if not is_equal(self._entry(id), wanted):
            raise self._folder.damaged(Path("guids", f"{guid}.json"), "it is the id of another schema")
        versions = self.uses(id, subject)
        return self._entry(id, subject=subject, version=versions[-1][1]) if versions else None

    def register(self, subject: str, new: StoredSchema, fingerprint: str, *, force: bool) -> StoredSchema:  # noqa: ARG002  nothing refuses here
        """Register the next version."""
        with self._folder.translate_errors():
            id = self._id_of(_guid(new)) or self._add(new, fingerprint)
            version = self._folder.last(_place(subject)) + 1
            self._folder.append(Path("uses", f"{id}.jsonl"), {"subject": subject, "version": version})
            self._folder.make(_place(subject))
            self._folder.write(_place(subject) / f"{version}.json", {"subject": subject, "version": version, "id": id})
        return self._entry(id, subject=subject, version=version)

    def level(self, subject: str) -> Level:
        """Return the compatibility level of a subject: its own, or else the folder's, or else BACKWARD."""
        for place in (_place(subject) / _LEVEL, Path(_LEVEL)):
            raw = self._folder.read(place)
            if raw is not None:
                return self._folder.parse(parse_level, raw.get("compatibility"))
        return "BACKWARD"

    def set_level(self, subject: str, level: Level) -> None:
        """Set the compatibility level of a subject."""
        with self._folder.translate_errors():
            self._folder.make(_place(subject))
            self._folder.write(_place(subject) / _LEVEL, {"subject": subject, "compatibility": level})

    def close(self) -> None:
        """Do nothing: there are no connections to close."""

    def _add(self, new: StoredSchema, fingerprint: str) -> int:
        id, guid = self._folder.last(Path("schemas")) + 1, str(_guid(new))
        raw = {"id": id, "guid": guid, "schema": new.text, "references": references_json(new.references)}
        self._folder.write(Path("schemas", f"{id}.json"), raw)
        self._folder.write(Path("fingerprints", f"{fingerprint}.json"), {"ids": [*self._ids_with(fingerprint), id]})
        # Written last: a schema that is found by its content can then also be found by its id and fingerprint.
        self._folder.write(Path("guids", f"{guid}.json"), {"id": id})
        return id

    def _entry(self, id: int, *, subject: str | None = None, version: int | None = None) -> StoredSchema:
        place = Path("schemas", f"{id}.json")
        raw = self._folder.read(place)
        if raw is None:
            raise self._unknown(f"id {id}")
        entry = self._folder.parse(parse_stored, raw | {"subject": subject, "version": version})
        if entry.id != id:
            raise self._folder.damaged(place, "it has another id")
        return entry

    def _version_id(self, subject: str, version: int) -> int | None:
        place = _place(subject) / f"{version}.json"
        raw = self._folder.read(place)
        if raw is None:
            return None
        if raw.get("subject") != subject or raw.get("version") != version:
            raise self._folder.damaged(place, "it is another version's")
        return self._number(raw.get("id"))

    def _id_of(self, guid: UUID) -> int | None:
        raw = self._folder.read(Path("guids", f"{guid}.json"))
        return None if raw is None else self._number(raw.get("id"))

    def _ids_with(self, fingerprint: str) -> list[int]:
        place = Path("fingerprints", f"{fingerprint}.json")
        listed = (self._folder.read(place) or {"ids": []}).get("ids")
        if not isinstance(listed, list):
            raise self._folder.damaged(place, "it has no list of ids")
        return [self._number(id) for id in listed]

    def _uses(self, id: int, subject: str | None) -> Iterator[tuple[str, int]]:
        raw = self._folder.read_bytes(Path("uses", f"{id}.jsonl")) or b""
        for line in dict.fromkeys(raw.split(b"\n")):
            use = _use(line)
            # A crash may have happened before the version was written.
            if use and (subject is None or use[0] == subject) and self._version_id(*use) == id:
                yield use

    def _number(self, value: Any) -> int:
        return self._folder.parse(check_number, value, "id")

    def _unknown(self, what: str) -> UnknownSchemaError:
        self._folder.check_exists()
        return UnknownSchemaError(self.url, what)


def _use(line: bytes) -> tuple[str, int] | None:
    """Return the subject and version on a line of `uses`; None for a line that was cut short."""
    try:
        raw = json.loads(line[:_LINE])
        return check_subject(raw["subject"]), check_number(raw["version"], "version")
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


def _place(subject: str) -> Path:
    """Return the folder of a subject; no two subjects share one."""
    name = quote(subject, safe=" -_:@,+=()").replace("~", "%7E")
    if len(name) > _LONGEST:
        name = f"~{hashlib.sha256(subject.encode()).hexdigest()}"
    return Path("subjects", name)


def _guid(entry: StoredSchema) -> UUID:
    """Return a GUID computed from a schema's content: its JSON in normal form, and its references."""
    content = [normal_form(entry.text), sorted(map(repr, entry.references))]
    return UUID(bytes=hashlib.sha256(json.dumps(content).encode()).digest()[:16])

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
"""

from __future__ import annotations

import hashlib
import json
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, unquote
from uuid import UUID

from cdcavro.errors import UnknownSchemaError, shown
from cdcavro.registry.backend import (
    StoredSchema,
    check_number,
    check_subject,
    is_equal,
    normal_form,
    parse_stored,
    references_json,
)
from cdcavro.registry.json_folder import JsonFolder
from cdcavro.registry.subjects import parse_level

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from cdcavro.registry.subjects import Level

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

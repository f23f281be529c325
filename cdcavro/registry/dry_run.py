"""A registry for rehearsals: what is published is kept in memory, on top of a backend that is only read."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

from cdcavro.registry.backend import Backend, StoredSchema, is_equal

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from uuid import UUID

    from cdcavro.registry.levels import Level


class DryRun:
    """A backend that keeps what is published in memory, and reads everything else from another. New schemas have no id."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._new: dict[str, list[StoredSchema]] = {}
        self._levels: dict[str, Level] = {}
        self.url = backend.url

    def safe(self, sentence: str) -> str:
        """Return a sentence in a form that shows no credentials."""
        return self._backend.safe(sentence)

    def exclusive(self) -> AbstractContextManager[None]:
        """Lock nothing: a rehearsal disturbs nobody."""
        return nullcontext()

    def subjects(self) -> list[str]:
        """Return the names of all subjects."""
        return sorted({*self._backend.subjects(), *self._new})

    def versions(self, subject: str) -> list[int]:
        """Return the versions of a subject, including those published here."""
        return [*self._backend.versions(subject), *(entry.version or 0 for entry in self._new.get(subject, ()))]

    def version(self, subject: str, version: int | None) -> StoredSchema:
        """Return a version of a subject; None stands for the latest."""
        new = self._new.get(subject, [])
        if new and version is None:
            return new[-1]
        for entry in new:
            if entry.version == version:
                return entry
        return self._backend.version(subject, version)

    def by_id(self, id: int) -> StoredSchema:
        """Return the schema with this id."""
        return self._backend.by_id(id)

    def by_guid(self, guid: UUID) -> StoredSchema:
        """Return the schema with this GUID."""
        return self._backend.by_guid(guid)

    def by_fingerprint(self, fingerprint: str, fingerprint_of: Callable[[StoredSchema], str]) -> list[StoredSchema]:
        """Return all schemas of the backend with this fingerprint."""
        return self._backend.by_fingerprint(fingerprint, fingerprint_of)

    def uses(self, id: int, subject: str | None) -> list[tuple[str, int]]:
        """Return the versions in the backend that have the schema with this id."""
        return self._backend.uses(id, subject)

    def find(self, subject: str, wanted: StoredSchema) -> StoredSchema | None:
        """Return the version of a subject that is equal; None if there is none."""
        for entry in self._new.get(subject, ()):
            if is_equal(entry, wanted):
                return entry
        return self._backend.find(subject, wanted)

    def register(self, subject: str, new: StoredSchema, fingerprint: str, *, force: bool) -> StoredSchema:  # noqa: ARG002  a backend's
        """Register the next version in memory."""
        entry = replace(new, subject=subject, version=max(self.versions(subject), default=0) + 1)
        self._new.setdefault(subject, []).append(entry)
        return entry

    def level(self, subject: str) -> Level:
        """Return the compatibility level of a subject: the one set here, or else that of the backend."""
        return self._levels.get(subject) or self._backend.level(subject)

    def set_level(self, subject: str, level: Level) -> None:
        """Set the compatibility level of a subject in memory."""
        self._levels[subject] = level

    def close(self) -> None:
        """Close the backend's connections."""
        self._backend.close()

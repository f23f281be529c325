"""A registry in which is published and nothing is written: what would be made lies over what there is."""

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
    """Takes what is published, and asks a backend for everything else. What is new has no id."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._new: dict[str, list[StoredSchema]] = {}
        self._levels: dict[str, Level] = {}
        self.url = backend.url

    def safe(self, said: str) -> str:
        """Return a sentence as it may be shown."""
        return self._backend.safe(said)

    def exclusive(self) -> AbstractContextManager[None]:
        """Keep nobody from anything."""
        return nullcontext()

    def subjects(self) -> list[str]:
        """Return the names of all subjects."""
        return sorted({*self._backend.subjects(), *self._new})

    def versions(self, subject: str) -> list[int]:
        """Return the versions of a subject."""
        return [*self._backend.versions(subject), *(one.version or 0 for one in self._new.get(subject, ()))]

    def version(self, subject: str, version: int | None) -> StoredSchema:
        """Return a version of a subject."""
        new = self._new.get(subject, [])
        if new and version is None:
            return new[-1]
        for one in new:
            if one.version == version:
                return one
        return self._backend.version(subject, version)

    def by_id(self, id: int) -> StoredSchema:
        """Return the schema with an id."""
        return self._backend.by_id(id)

    def by_guid(self, guid: UUID) -> StoredSchema:
        """Return the schema with a GUID."""
        return self._backend.by_guid(guid)

    def by_fingerprint(self, fingerprint: str, fingerprint_of: Callable[[StoredSchema], str]) -> list[StoredSchema]:
        """Return all schemas with a fingerprint."""
        return self._backend.by_fingerprint(fingerprint, fingerprint_of)

    def uses(self, id: int, subject: str | None) -> list[tuple[str, int]]:
        """Return the versions of a subject that have the schema with an id, or else the first two of all."""
        return self._backend.uses(id, subject)

    def find(self, subject: str, wanted: StoredSchema) -> StoredSchema | None:
        """Return the version of a subject that is equal."""
        for one in self._new.get(subject, ()):
            if is_equal(one, wanted):
                return one
        return self._backend.find(subject, wanted)

    def register(self, subject: str, new: StoredSchema, fingerprint: str, *, force: bool) -> StoredSchema:  # noqa: ARG002  a backend's
        """Make the next version, here."""
        made = replace(new, subject=subject, version=max(self.versions(subject), default=0) + 1)
        self._new.setdefault(subject, []).append(made)
        return made

    def level(self, subject: str) -> Level:
        """Return the compatibility level of a subject."""
        return self._levels.get(subject) or self._backend.level(subject)

    def set_level(self, subject: str, level: Level) -> None:
        """Set the compatibility level of a subject, here."""
        self._levels[subject] = level

    def close(self) -> None:
        """Let go of the backend's connections."""
        self._backend.close()

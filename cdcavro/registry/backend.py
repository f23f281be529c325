"""The backend of a registry: what every store of schemas has and does, and one in memory for rehearsals."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Protocol
from uuid import UUID

from cdcavro.errors import RegistryError, SchemaError
from cdcavro.registry.subjects import fault_of_subject

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from cdcavro.avro.compatibility import Verdict
    from cdcavro.avro.schema import Schema
    from cdcavro.registry.subjects import Level

LATEST: Final = "latest"
MAX_ID: Final = 2**31 - 1
MAX_REFERENCES: Final = 1000


class UnusableError(RegistryError):
    """A registry's content or answer is not the schema or list that was expected; its other content may be fine."""


class ContentError(ValueError):
    """Data from outside is not what it should be; the message quotes nothing of that data."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A named type that another schema defines."""

    # The full name of the type.
    name: str
    # The subject of the schema that defines it.
    subject: str
    # The version of the subject.
    version: int


@dataclass(frozen=True, slots=True)
class StoredSchema:
    """A schema as the registry stores it."""

    # None if unknown, as in a rehearsal.
    id: int | None
    # The schema's JSON, which names the types in `references` without defining them.
    text: str
    # The types that other schemas define.
    references: tuple[Reference, ...] = ()
    # None if the registry has none or does not state it.
    guid: UUID | None = None
    # None if the schema was not looked up by subject.
    subject: str | None = None
    # None if the schema was not looked up by version.
    version: int | None = None


@dataclass(frozen=True, slots=True)
class Published:
    """The outcome of publishing a schema.

    Attributes: `id` (int; None in a rehearsal);
    `subject` (str); `version` (int);
    `verdict`, the compatibility of the new schema with the versions that the level covers;
    `is_new` (bool), False if the subject already had the schema.
    """

    id: int | None
    subject: str
    version: int
    verdict: Verdict
    is_new: bool


@dataclass(frozen=True, slots=True)
class Registered:
    """A schema fetched from a registry.

    Attributes: `schema`, complete with the types that it refers to;
    `id` (int; None if it was fetched by GUID from a server that does not return the id);
    `subject` (str) and `version` (int), those that were asked for, or the only ones with this id, else None;
    `guid` (UUID or None);
    `references` (tuple of `Reference`).
    """

    schema: Schema
    id: int | None
    subject: str | None
    version: int | None
    guid: UUID | None
    references: tuple[Reference, ...]


class Backend(Protocol):
    """A store of schemas. Its methods raise `RegistryError`, and `UnknownSchemaError` for anything it does not have."""

    url: str

    def safe(self, sentence: str) -> str:
        """Return a sentence, which may quote data from outside, in a form that shows no credentials."""

    def exclusive(self) -> AbstractContextManager[None]:
        """Keep others from publishing meanwhile, where that is possible, and create the store if it does not exist."""

    def subjects(self) -> list[str]:
        """Return the names of all subjects."""

    def versions(self, subject: str) -> list[int]:
        """Return the versions of a subject in ascending order; an empty list if there is no such subject."""

    def version(self, subject: str, version: int | None) -> StoredSchema:
        """Return a version of a subject; None stands for the latest."""

    def by_id(self, id: int) -> StoredSchema:
        """Return the schema with this id."""

    def by_guid(self, guid: UUID) -> StoredSchema:
        """Return the schema with this GUID."""

    def by_global_id(self, global_id: int) -> StoredSchema:
        """Return the schema with Apicurio's global id of one of its versions."""

    def by_fingerprint(self, fingerprint: str, fingerprint_of: Callable[[StoredSchema], str]) -> list[StoredSchema]:
        """Return all schemas with this fingerprint; `fingerprint_of` computes the fingerprint of a stored schema."""

    def uses(self, id: int, subject: str | None) -> list[tuple[str, int]]:
        """Return the versions of a subject that have the schema with this id; without a subject, the first two of all."""

    def find(self, subject: str, wanted: StoredSchema) -> StoredSchema | None:
        """Return the version of a subject that is JSON-equal and has the same references; None if there is none."""

    def register(self, subject: str, new: StoredSchema, fingerprint: str, *, force: bool) -> StoredSchema:
        """Register the next version; with `force`, even if the server's own check would refuse it."""

    def level(self, subject: str) -> Level:
        """Return the compatibility level of a subject: its own, or else that of the registry."""

    def set_level(self, subject: str, level: Level) -> None:
        """Set the compatibility level of a subject."""

    def close(self) -> None:
        """Close the connections."""


def normal_form(text: str) -> str:
    """Return a schema's JSON in a form that is the same text for all schemas that are equal as JSON.

    Unlike the Parsing Canonical Form it keeps aliases, docs, defaults and attributes. Raises `SchemaError`.

    >>> normal_form('{"type": "map", "aliases": [], "values": "int"}')
    '{"aliases":[],"type":"map","values":"int"}'
    """
    try:
        return json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"))
    except (ValueError, RecursionError) as error:
        raise SchemaError("text", "not JSON, or nested too deeply") from error


def is_equal(left: StoredSchema, right: StoredSchema) -> bool:
    """Return whether two schemas are JSON-equal and refer to the same versions."""
    return set(left.references) == set(right.references) and normal_form(left.text) == normal_form(right.text)


def parse_stored(raw: Any, **more: Any) -> StoredSchema:
    """Return data from outside as a stored schema; `more` adds or overrides members. Raises `ContentError`."""
    if not isinstance(raw, dict):
        raise ContentError("it is no object")
    facts = {key: value for key, value in raw.items() if value is not None} | more
    if facts.get("schemaType", "AVRO") != "AVRO":
        raise ContentError("it is no Avro schema")
    return StoredSchema(
        id=None if facts.get("id") is None else check_number(facts["id"], "id"),
        text=_text(facts.get("schema"), "schema"),
        references=_references(facts.get("references", [])),
        guid=_guid(facts.get("guid")),
        subject=None if facts.get("subject") is None else check_subject(facts["subject"]),
        version=None if facts.get("version") is None else check_number(facts["version"], "version"),
    )


def check_number(value: Any, what: str) -> int:
    """Return an id or a version after checking it. Raises `ContentError`."""
    if type(value) is not int or not 0 < value <= MAX_ID:
        raise ContentError(f"its {what} is no integer from 1 to {MAX_ID}")
    return value


def check_subject(value: Any) -> str:
    """Return a subject's name after checking it. Raises `ContentError`."""
    if fault_of_subject(value) is not None:
        raise ContentError("its subject is no name")
    return str(value)


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise ContentError(f"its {what} is no text")
    return value


def _guid(value: Any) -> UUID | None:
    if value is None:
        return None
    try:
        return UUID(_text(value, "guid"))
    except ValueError:
        raise ContentError("its guid is none") from None


def _references(listed: Any) -> tuple[Reference, ...]:
    if not isinstance(listed, list) or len(listed) > MAX_REFERENCES:
        raise ContentError(f"its references are no array of up to {MAX_REFERENCES:,}")
    return tuple(_reference(entry) for entry in listed)


def _reference(entry: Any) -> Reference:
    if not isinstance(entry, dict):
        raise ContentError("a reference is no object")
    return Reference(
        _text(entry.get("name"), "reference's name"),
        check_subject(entry.get("subject")),
        check_number(entry.get("version"), "reference's version"),
    )


def references_json(references: Sequence[Reference]) -> list[dict[str, Any]]:
    """Return references in their JSON form."""
    return [{"name": ref.name, "subject": ref.subject, "version": ref.version} for ref in references]


class DryRun:
    """A backend for rehearsals: it keeps new schemas, which have no id, in memory, and reads all others from another."""

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

    def by_global_id(self, global_id: int) -> StoredSchema:
        """Return the backend's schema with this global id."""
        return self._backend.by_global_id(global_id)

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

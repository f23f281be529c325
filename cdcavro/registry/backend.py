"""What a registry holds, and what the two kinds of registry have in common."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol
from uuid import UUID

from cdcavro.errors import RegistryError, SchemaError
from cdcavro.registry.subjects import fault_of_subject

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from cdcavro.avro.compatibility import Verdict
    from cdcavro.avro.schema import Schema
    from cdcavro.registry.levels import Level

LATEST: Final = "latest"
MAX_ID: Final = 2**31 - 1
MAX_REFERENCES: Final = 1000


class UnusableError(RegistryError):
    """What a registry holds or answers, where a schema or a list is expected; others may be well."""


class ContentError(ValueError):
    """What came from outside and is not what it should be, in words that hold nothing of it."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A named type that a schema takes from elsewhere: its full name, and the subject and version that define it."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class StoredSchema:
    """A schema as it is registered.

    Attributes: `id` (int; None where it is not known, as in a rehearsal); `text` (str), in which types that come by
    `references` are only checked_subject; `guid` (UUID or None); `subject` (str) and `version` (int), None where
    not asked by them.
    """

    id: int | None
    text: str
    references: tuple[Reference, ...] = ()
    guid: UUID | None = None
    subject: str | None = None
    version: int | None = None


@dataclass(frozen=True, slots=True)
class Published:
    """What became of a schema that was published.

    Attributes: `id` (int; None in a rehearsal), `subject` (str), `version` (int); `verdict`, of the
    new schema on the versions that the level looks at; `is_new` (bool), False if the subject had it.
    """

    id: int | None
    subject: str
    version: int
    verdict: Verdict
    is_new: bool


@dataclass(frozen=True, slots=True)
class Registered:
    """A schema as it was fetched.

    Attributes: `schema`, whole, with what it refers to; `id` (int; None where a server does not tell
    it with the GUID); `subject` (str) and `version` (int), as asked for, or the only ones that have
    this id, else None; `guid` (UUID or None); `references` (tuple of `Reference`).
    """

    schema: Schema
    id: int | None
    subject: str | None
    version: int | None
    guid: UUID | None
    references: tuple[Reference, ...]


class Backend(Protocol):
    """A place that holds schemas. Each method raises `RegistryError`, and `UnknownSchemaError` for what is not there."""

    url: str

    def safe(self, said: str) -> str:
        """Return a sentence that may hold what came from outside as it may be shown: without the credentials."""

    def exclusive(self) -> AbstractContextManager[None]:
        """Keep others from publishing for a while, where that can be done, and make the place if it is not there."""

    def subjects(self) -> list[str]:
        """Return the names of all subjects."""

    def versions(self, subject: str) -> list[int]:
        """Return the versions of a subject in order; none if it is not there."""

    def version(self, subject: str, version: int | None) -> StoredSchema:
        """Return a version of a subject; None is the latest."""

    def by_id(self, id: int) -> StoredSchema:
        """Return the schema with an id."""

    def by_guid(self, guid: UUID) -> StoredSchema:
        """Return the schema with a GUID."""

    def by_fingerprint(self, fingerprint: str, fingerprint_of: Callable[[StoredSchema], str]) -> list[StoredSchema]:
        """Return all schemas with a fingerprint; `fingerprint_of` tells that of one."""

    def uses(self, id: int, subject: str | None) -> list[tuple[str, int]]:
        """Return the versions of a subject that have the schema with an id, or else the first two of all."""

    def find(self, subject: str, wanted: StoredSchema) -> StoredSchema | None:
        """Return the version of a subject that is JSON-equal, with the same references; None if there is none."""

    def register(self, subject: str, new: StoredSchema, fingerprint: str, *, force: bool) -> StoredSchema:
        """Make the next version; `force` makes it where the server's own check would refuse it."""

    def level(self, subject: str) -> Level:
        """Return the compatibility level of a subject: its own, or else the registry's."""

    def set_level(self, subject: str, level: Level) -> None:
        """Set the compatibility level of a subject."""

    def close(self) -> None:
        """Let go of connections."""


def normal_form(text: str) -> str:
    """Write a schema's JSON so that two that are equal as JSON are equal as text.

    Unlike the Parsing Canonical Form it keeps aliases, docs, defaults and attributes. Raises
    `SchemaError`.

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


def checked(raw: Any, **more: Any) -> StoredSchema:
    """Make an entry of what came from outside; `more` are facts that it need not state. Raises `ContentError`."""
    if not isinstance(raw, dict):
        raise ContentError("it is no object")
    facts = {key: value for key, value in raw.items() if value is not None} | more
    if facts.get("schemaType", "AVRO") != "AVRO":
        raise ContentError("it is no Avro schema")
    return StoredSchema(
        id=None if facts.get("id") is None else checked_number(facts["id"], "id"),
        text=_text(facts.get("schema"), "schema"),
        references=_references(facts.get("references", [])),
        guid=_guid(facts.get("guid")),
        subject=None if facts.get("subject") is None else checked_subject(facts["subject"]),
        version=None if facts.get("version") is None else checked_number(facts["version"], "version"),
    )


def checked_number(value: Any, what: str) -> int:
    """Check an id or a version. Raises `ContentError`."""
    if type(value) is not int or not 0 < value <= MAX_ID:
        raise ContentError(f"its {what} is no integer from 1 to {MAX_ID}")
    return value


def checked_subject(value: Any) -> str:
    """Check a subject's name. Raises `ContentError`."""
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
    return tuple(_reference(one) for one in listed)


def _reference(one: Any) -> Reference:
    if not isinstance(one, dict):
        raise ContentError("a reference is no object")
    return Reference(
        _text(one.get("name"), "reference's name"),
        checked_subject(one.get("subject")),
        checked_number(one.get("version"), "reference's version"),
    )


def as_json(references: Sequence[Reference]) -> list[dict[str, Any]]:
    """Return references as they stand in JSON."""
    return [{"name": one.name, "subject": one.subject, "version": one.version} for one in references]

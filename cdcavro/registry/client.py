"""A registry of schemas, whatever it is kept in: what is published is judged first, what is fetched is remembered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, Self
from uuid import UUID

from cdcavro.avro.compatibility import Verdict, verdict
from cdcavro.avro.schema import Schema, parse_schema
from cdcavro.avro.skip import check_payload
from cdcavro.errors import IncompatibleError, PayloadError, RegistryError, SchemaError, UnknownSchemaError
from cdcavro.registry.backend import (
    LATEST,
    MAX_ID,
    Backend,
    Published,
    Reference,
    Registered,
    StoredSchema,
    UnusableError,
)
from cdcavro.registry.cache import Cache
from cdcavro.registry.dry_run import DryRun
from cdcavro.registry.framing import Fingerprint, Guid, SchemaId, SchemaPrefix, unframe
from cdcavro.registry.levels import LevelCheck, checked_level, is_transitive, judge
from cdcavro.registry.references import split, whole_schema
from cdcavro.registry.subjects import fault_of_subject

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from cdcavro.registry.levels import Level

CACHED: Final = 1000
FORGET_AFTER: Final = 5.0


class Registry:
    """Schemas by subject and version. `connect` makes it; it may be used by several threads, and in `with`.

    Its methods raise `RegistryError` where the place does not do what was asked, and
    `UnknownSchemaError` for what is not there. Made from a backend, how many schemas it remembers,
    and for how many seconds that one was not there.
    """

    def __init__(self, backend: Backend, *, cached: int = CACHED, forget_after: float = FORGET_AFTER) -> None:
        self._backend = backend
        self._cache: Cache[Registered] = Cache(cached, forget_after)

    def __repr__(self) -> str:
        return f"Registry({self.url!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def url(self) -> str:
        """The address, without credentials."""
        return self._backend.url

    def close(self) -> None:
        """Let go of connections."""
        self._backend.close()

    def subjects(self) -> list[str]:
        """Return the names of all subjects, in order."""
        return self._backend.subjects()

    def versions(self, subject: str) -> list[int]:
        """Return the versions of a subject, in order; none if there is no such subject."""
        return self._backend.versions(self._named(subject))

    def compatibility(self, subject: str) -> Level:
        """Return the compatibility level of a subject: its own, or else the registry's."""
        return self._backend.level(self._named(subject))

    def fetch(
        self,
        *,
        id: int | None = None,
        subject: str | None = None,
        version: int | Literal["latest"] | None = None,
        fingerprint: str | None = None,
        guid: UUID | str | None = None,
    ) -> Registered:
        """Return a registered schema, by one of: its id, its subject and version, its fingerprint, its GUID.

        A subject alone is its latest version; with an id it chooses among the subjects that have it.
        What was fetched is remembered, but for the latest version; that something is not there is
        remembered for a few seconds. A fingerprint does not see logical types: it is refused if the
        registry has several schemas with it that are read differently. Raises `UnknownSchemaError`.
        """
        given = [name for name, one in (("id", id), ("fingerprint", fingerprint), ("guid", guid)) if one is not None]
        if len(given) + (not given and subject is not None) != 1 or (
            version is not None and (given or subject is None)
        ):
            raise TypeError(
                "fetch takes an id, perhaps with its subject, or a subject, perhaps with a version,"
                " or a fingerprint, or a guid"
            )
        if subject is not None:
            self._named(subject)
        if id is not None:
            return self._remembered(("id", id, subject), lambda: self._by_id(id, subject))
        if guid is not None:
            wanted = guid if isinstance(guid, UUID) else UUID(guid)
            return self._remembered(("guid", wanted), lambda: self._registered(self._backend.by_guid(wanted)))
        if fingerprint is not None:
            digits = Fingerprint(fingerprint).hex
            return self._remembered(("fingerprint", digits), lambda: self._by_fingerprint(digits))
        return self._version(str(subject), version)

    def open(self, value: bytes, *, header: bytes | None = None) -> tuple[Registered, bytes]:
        """Return by what stands before a payload which schema wrote it, and give that and the payload.

        `header` is the value of Kafka's header, if the record has it. The payload is checked to be
        one datum of the schema, to the last byte. Raises `PayloadError`: bytes that start otherwise,
        a schema that the registry has not, bytes left over.
        """
        found, payload = unframe(value, header=header)
        try:
            registered = self.fetch(**_wanted(found))
        except UnknownSchemaError as error:
            raise PayloadError(f"a schema that {self.url} has", str(found)) from error
        check_payload(payload, registered.schema)
        return registered, payload

    def check(self, schema: Schema | str, subject: str, *, compatibility: str | None = None) -> Verdict:
        """Return the verdict of a schema on the versions that the subject's level, or the one given, looks at."""
        return self.judge(schema, subject, compatibility=compatibility).verdict

    def judge(self, schema: Schema | str, subject: str, *, compatibility: str | None = None) -> LevelCheck:
        """Return what the subject's level, or the one given, makes of a schema. Raises `SchemaError`."""
        new = parse_schema(schema) if isinstance(schema, str) else schema
        level = self._backend.level(self._named(subject)) if compatibility is None else checked_level(compatibility)
        return judge(new, self._looked_at(subject, level), level)

    def publish(
        self,
        schema: Schema | str,
        subject: str,
        *,
        compatibility: str | None = None,
        references: Mapping[str, str] | Iterable[str] = (),
        force: bool = False,
        dry_run: bool = False,
    ) -> Published:
        """Make a schema the next version of a subject, if the subject has not got it yet.

        Schemas are the same if they are equal as JSON, aliases, docs and attributes included.
        `compatibility` sets the subject's level. `references` are the full names of types within the
        schema that are published by themselves, under that name or the subject that a mapping gives
        them, and referred to. Raises `IncompatibleError` with each reason if the level refuses the
        schema, unless `force`, and `SchemaError`. With `dry_run` nothing is written.
        """
        if dry_run:
            return self.rehearsal().publish(
                schema, subject, compatibility=compatibility, references=references, force=force
            )
        new = parse_schema(schema) if isinstance(schema, str) else schema
        level = None if compatibility is None else checked_level(compatibility)
        shared = dict(references) if isinstance(references, Mapping) else {name: name for name in references}
        for one in (subject, *shared.values()):
            self._named(one)
        with self._backend.exclusive():
            made: dict[str, Published] = {}
            for part in split(new.json, shared):
                used = tuple(Reference(name, made[name].subject, made[name].version) for name in part.uses)
                entry = StoredSchema(None, part.text, used)
                if part.name:
                    made[part.name] = self._publish(entry, shared[part.name], None, force=force)
            published = self._publish(entry, subject, level, force=force)
        self._cache.forget_missing()
        return published

    def rehearsal(self) -> Registry:
        """Return a registry that has all that this one has, and in which what is published is written nowhere."""
        return Registry(DryRun(self._backend))

    def _publish(self, entry: StoredSchema, subject: str, level: Level | None, *, force: bool) -> Published:
        there = self._backend.find(subject, entry)
        own = self._backend.level(subject)
        if there is not None:
            if level not in (None, own):
                self._backend.set_level(subject, level or own)
            return Published(there.id, subject, there.version or 0, Verdict((), ()), is_new=False)
        new = self._whole(entry)
        judged = judge(new, self._looked_at(subject, level or own), level or own)
        if judged.breaks and not force:
            raise IncompatibleError(subject, judged.level, judged.breaks)
        if level not in (None, own):
            self._backend.set_level(subject, level or own)
        made = self._backend.register(subject, entry, new.fingerprint, force=force)
        return Published(made.id, subject, made.version or 0, judged.verdict, is_new=True)

    def _looked_at(self, subject: str, level: Level) -> Iterator[tuple[int, Schema]]:
        versions = self._backend.versions(subject)
        for version in versions if is_transitive(level) else versions[-1:]:
            yield version, self._version(subject, version).schema

    def _version(self, subject: str, version: int | str | None) -> Registered:
        number = None if version in (None, LATEST) else version
        if number is not None and (type(number) is not int or not 0 < number <= MAX_ID):
            raise UnknownSchemaError(self.url, f"version {number!r:.20} of subject {subject!r:.80}")

        def ask() -> Registered:
            return self._registered(self._backend.version(subject, number))

        return self._remembered(("version", subject, number), ask, is_fixed=number is not None)

    def _by_id(self, id: int, subject: str | None) -> Registered:
        if type(id) is not int or not 0 < id <= MAX_ID:
            raise UnknownSchemaError(self.url, f"id {id!r:.20}")
        entry = self._backend.by_id(id)
        uses = self._backend.uses(id, subject)
        if subject is not None and not uses:
            raise UnknownSchemaError(self.url, f"id {id} in subject {subject!r:.80}")
        own = uses[-1] if subject is not None or len(uses) == 1 else (None, None)
        return self._registered(entry, *own)

    def _by_fingerprint(self, fingerprint: str) -> Registered:
        found = self._backend.by_fingerprint(fingerprint, lambda entry: self._whole(entry).fingerprint)
        if not found:
            raise UnknownSchemaError(self.url, f"fingerprint {fingerprint}")
        *others, newest = sorted(found, key=lambda entry: entry.id or 0)
        schema = self._whole(newest)
        if any(verdict(schema, self._whole(one)).name != "full" for one in others):
            reason = f"{len(found)} schemas have the fingerprint {fingerprint}, and they are read differently"
            raise RegistryError(self.url, reason)
        return self._by_id(newest.id, None) if newest.id is not None else self._registered(newest)

    def _remembered(self, key: tuple[Any, ...], ask: Callable[[], Registered], *, is_fixed: bool = True) -> Registered:
        found = self._cache.get(key) if is_fixed else None
        if found is not None:
            return found
        known = self._cache.missing(key)
        if known is not None:
            raise UnknownSchemaError(self.url, known)
        try:
            found = ask()
        except UnknownSchemaError as error:
            self._cache.put_missing(key, error.what)
            raise
        if is_fixed:
            self._cache.put(key, found)
        return found

    def _registered(self, entry: StoredSchema, subject: str | None = None, version: int | None = None) -> Registered:
        schema = self._whole(entry)
        place = subject or entry.subject, version or entry.version
        return Registered(schema, entry.id, *place, entry.guid, entry.references)

    def _whole(self, entry: StoredSchema) -> Schema:
        try:
            return whole_schema(entry, self._backend.version)
        except SchemaError as error:
            reason = self._backend.safe(str(error))
        # Raised here, so that it does not know the other, which may show what a server sent.
        raise UnusableError(self.url, f"it holds what is no schema: {reason}", subject=entry.subject)

    def _named(self, subject: str) -> str:
        fault = fault_of_subject(subject)
        if fault is not None:
            raise RegistryError(self.url, fault)
        return subject


def _wanted(frame: SchemaPrefix) -> dict[str, Any]:
    match frame:
        case SchemaId(number):
            return {"id": number}
        case Guid(uuid):
            return {"guid": uuid}
        case Fingerprint(digits):
            return {"fingerprint": digits}
    raise TypeError(f"{type(frame).__name__} is no frame")

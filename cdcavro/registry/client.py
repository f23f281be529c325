"""The client of a schema registry of either kind: it checks compatibility before it publishes, and caches schemas.

`connect` finds out which kind of registry is at an address, and where its credentials come from.

Here it is also looked up which schemas the prefixes of framed payloads identify, as a registry has them.
"""

from __future__ import annotations

import os
import re
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, Self, TypeVar
from urllib.parse import unquote, urlsplit
from uuid import UUID

from cdcavro.avro.compatibility import Verdict, verdict
from cdcavro.avro.schema import Schema, parse_schema
from cdcavro.engine.payloads import check
from cdcavro.errors import (
    IncompatibleError,
    PayloadError,
    RegistryError,
    SchemaError,
    SetupError,
    UnknownSchemaError,
    shown,
)
from cdcavro.exact.locks import ForkedLock
from cdcavro.registry.backend import (
    LATEST,
    MAX_ID,
    Backend,
    DryRun,
    Published,
    Reference,
    Registered,
    StoredSchema,
    UnusableError,
)
from cdcavro.registry.folder_backend import FolderBackend
from cdcavro.registry.framing import (
    CONFLUENT,
    FRAMINGS,
    ContentId,
    Fingerprint,
    GlobalId,
    Guid,
    SchemaId,
    SchemaPrefix,
    payload_of,
    unframe,
)
from cdcavro.registry.subjects import (
    LevelCheck,
    fault_of_subject,
    is_transitive,
    judge,
    parse_level,
    split,
    whole_schema,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator

    from cdcavro.registry.subjects import Level

# How many schemas are known at a time, and after how many that are missing no other is looked for.
MAX_SCHEMAS: Final = 10_000
MAX_MISSING: Final = 1_000
# How long a prefix is, by its first bytes.
PREFIXES: Final = FRAMINGS[CONFLUENT].sizes


@dataclass(frozen=True, slots=True)
class PrefixSchema:
    """The schema that a prefix identifies, or why its payloads are rejects."""

    # The text of the schema, None if there is none.
    schema: str | None
    # None if they are not known.
    id: int | None = None
    subject: str | None = None
    version: int | None = None
    # What was expected and what came if there is no schema.
    fault: tuple[str, str] = ("", "")


def look_up_schemas(
    prefixes: Iterable[bytes], registry: Registry, framing: str = CONFLUENT
) -> dict[bytes, PrefixSchema]:
    """Return what is known about prefixes; once 1,000 were not there, the registry is not asked for others."""
    known: dict[bytes, PrefixSchema] = {}
    missing = 0
    for prefix in prefixes:
        if missing < MAX_MISSING:
            known[prefix] = _look_up_schema(unframe(prefix, framing=framing)[0], registry)
            missing += known[prefix].schema is None
        else:
            expected = f"a schema that is looked for: {MAX_MISSING:,} others are missing"
            known[prefix] = PrefixSchema(None, fault=(expected, str(unframe(prefix, framing=framing)[0])))
    return known


def _look_up_schema(identifier: SchemaPrefix, registry: Registry) -> PrefixSchema:
    try:
        found = registry.fetch(**fetch_arguments(identifier))
    except UnknownSchemaError:
        return PrefixSchema(None, fault=(f"a schema that {registry.url} has", str(identifier)))
    except UnusableError as error:
        return PrefixSchema(None, fault=(f"a schema that can be used for {identifier}", error.reason))
    return PrefixSchema(found.schema.json, found.id, found.subject, found.version)


CACHED: Final = 1000
FORGET_AFTER: Final = 5.0
# What prefixes of payloads ask for, which anybody may make up.
_PREFIXED: Final = frozenset({"id", "guid", "fingerprint", "global id"})
TIMEOUT: Final = 10.0
_MAX_GLOBAL_ID: Final = 2**63 - 1
_USERINFO: Final = re.compile(r"[^/]*:[^/]*@")
_QUERY: Final = re.compile(r"[?#].*", re.DOTALL)
_NO_PORT: Final = re.compile(r":(?![0-9]{0,5}(?:/|\Z))[^/]*")
_VARIABLE: Final = "CDCAVRO_REGISTRY_"
_EXPECTED: Final = "expected an address such as https://HOST/PATH, http://HOST/PATH or file:FOLDER"
T = TypeVar("T")


class Registry:
    """A schema registry: schemas by subject and version. `connect` returns one.

    It can be shared between threads and used as a context manager. Its methods raise `RegistryError` if the
    registry cannot do what was asked, and `UnknownSchemaError` for a schema that it does not have. `cached` is
    how many schemas it caches; `forget_after` is for how many seconds it remembers that a schema was missing.
    """

    def __init__(self, backend: Backend, *, cached: int = CACHED, forget_after: float = FORGET_AFTER) -> None:
        self._backend = backend
        self._cache: SchemaCache[Registered] = SchemaCache(cached, forget_after)

    def __repr__(self) -> str:
        return f"Registry({self.url!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def url(self) -> str:
        """The registry's address, without credentials."""
        return self._backend.url

    def close(self) -> None:
        """Close the connections."""
        self._backend.close()

    def subjects(self) -> list[str]:
        """Return the names of all subjects, sorted."""
        return self._backend.subjects()

    def versions(self, subject: str) -> list[int]:
        """Return the versions of a subject in ascending order; an empty list if there is no such subject."""
        return self._backend.versions(self._check_name(subject))

    def compatibility(self, subject: str) -> Level:
        """Return the compatibility level of a subject: its own, or else that of the registry."""
        return self._backend.level(self._check_name(subject))

    def fetch(
        self,
        *,
        id: int | None = None,
        subject: str | None = None,
        version: int | Literal["latest"] | None = None,
        fingerprint: str | None = None,
        guid: UUID | str | None = None,
        global_id: int | None = None,
    ) -> Registered:
        """Return the registered schema with an id, a subject and version, a fingerprint, a GUID or Apicurio's global id.

        A subject without a version means its latest version; with an id it selects one of the subjects that have
        that id. Fetched schemas are cached, except for the latest version, which is always asked for. That a schema is
        missing is remembered for a few seconds; while as many schemas as the cache holds are missing, the registry is
        not asked for others by id, fingerprint or GUID. A fingerprint ignores logical types: `RegistryError` is raised
        if the registry has several schemas with it that are not read alike. Raises `UnknownSchemaError` for a schema
        that the registry does not have, and TypeError for any other combination of arguments.
        """
        stated = {"id": id, "fingerprint": fingerprint, "guid": guid, "global_id": global_id}
        keys = [name for name, key in stated.items() if key is not None]
        if len(keys) + (not keys and subject is not None) != 1 or (version is not None and (keys or subject is None)):
            raise TypeError(
                "fetch takes an id, perhaps with its subject, or a subject, perhaps with a version,"
                " or a fingerprint, or a guid, or a global id"
            )
        if subject is not None:
            self._check_name(subject)
        if id is not None:
            return self._look_up(("id", id, subject), lambda: self._by_id(id, subject))
        if guid is not None:
            wanted = guid if isinstance(guid, UUID) else UUID(guid)
            return self._look_up(("guid", wanted), lambda: self._to_registered(self._backend.by_guid(wanted)))
        if global_id is not None:
            return self._look_up(("global id", global_id), lambda: self._by_global_id(global_id))
        if fingerprint is not None:
            digits = Fingerprint(fingerprint).hex
            return self._look_up(("fingerprint", digits), lambda: self._by_fingerprint(digits))
        return self._version(str(subject), version)

    def open(self, value: bytes, *, header: bytes | None = None, framing: str = CONFLUENT) -> tuple[Registered, bytes]:
        """Return the schema that wrote a framed payload, found by its prefix, and the payload without the prefix.

        `header` is the value of the Kafka header with the schema's GUID, if the record has one; `value` is then the
        payload alone. `framing` is as in `unframe`. The payload is checked, to its last byte, to be one datum of the
        schema. If the schema is of type bytes, whose length Confluent's serialisers omit, the returned payload has it.
        Raises `PayloadError` for an unknown prefix, a schema that the registry does not have, and left-over bytes.
        """
        prefix, framed = unframe(value, header=header, framing=framing)
        try:
            registered = self.fetch(**fetch_arguments(prefix))
        except UnknownSchemaError as error:
            raise PayloadError(f"a schema that {self.url} has", str(prefix)) from error
        payload = payload_of(framed, prefix, registered.schema)
        check(payload, registered.schema)
        return registered, payload

    def check(self, schema: Schema | str, subject: str, *, compatibility: str | None = None) -> Verdict:
        """Return how compatible a schema is with a subject's versions.

        `compatibility` is the level that selects the versions; without it, the subject's level does. Raises
        `SchemaError`, and ValueError for a level that does not exist.
        """
        return self.judge(schema, subject, compatibility=compatibility).verdict

    def judge(self, schema: Schema | str, subject: str, *, compatibility: str | None = None) -> LevelCheck:
        """Return how a compatibility level, by default that of the subject, judges a schema.

        Raises `SchemaError`, and ValueError for a level that does not exist.
        """
        new = parse_schema(schema) if isinstance(schema, str) else schema
        level = self._backend.level(self._check_name(subject)) if compatibility is None else parse_level(compatibility)
        return judge(new, self._versions_to_check(subject, level), level)

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
        """Publish a schema as the next version of a subject, unless the subject already has it.

        Schemas are the same if they are equal as JSON, including aliases, docs and attributes.
        `compatibility` sets the subject's level. `references` are the full names of types within the
        schema that are published on their own and referred to; their subjects have the same names,
        or those that a mapping states. Raises `IncompatibleError` with every reason if the level
        refuses the schema, unless `force` is true, and `SchemaError`. With `dry_run` nothing is written.
        """
        if dry_run:
            return self.rehearsal().publish(
                schema, subject, compatibility=compatibility, references=references, force=force
            )
        new = parse_schema(schema) if isinstance(schema, str) else schema
        level = None if compatibility is None else parse_level(compatibility)
        shared = dict(references) if isinstance(references, Mapping) else {name: name for name in references}
        for name in (subject, *shared.values()):
            self._check_name(name)
        with self._backend.exclusive():
            parts: dict[str, Published] = {}
            for part in split(new.json, shared):
                used = tuple(Reference(name, parts[name].subject, parts[name].version) for name in part.uses)
                entry = StoredSchema(None, part.text, used)
                if part.name:
                    parts[part.name] = self._publish(entry, shared[part.name], None, force=force)
            published = self._publish(entry, subject, level, force=force)
        self._cache.forget_missing()
        return published

    def rehearsal(self) -> Registry:
        """Return a registry with the content of this one; what is published to it is kept in memory, never written."""
        return Registry(DryRun(self._backend))

    def _publish(self, entry: StoredSchema, subject: str, level: Level | None, *, force: bool) -> Published:
        existing = self._backend.find(subject, entry)
        own = self._backend.level(subject)
        if existing is not None:
            if level not in (None, own):
                self._backend.set_level(subject, level or own)
            return Published(existing.id, subject, existing.version or 0, Verdict((), ()), is_new=False)
        new = self._complete(entry)
        judgement = judge(new, self._versions_to_check(subject, level or own), level or own)
        if judgement.breaks and not force:
            raise IncompatibleError(subject, judgement.level, judgement.breaks)
        if level not in (None, own):
            self._backend.set_level(subject, level or own)
        registered = self._backend.register(subject, entry, new.fingerprint, force=force)
        return Published(registered.id, subject, registered.version or 0, judgement.verdict, is_new=True)

    def _versions_to_check(self, subject: str, level: Level) -> Iterator[tuple[int, Schema]]:
        versions = self._backend.versions(subject)
        for version in versions if is_transitive(level) else versions[-1:]:
            yield version, self._version(subject, version).schema

    def _version(self, subject: str, version: int | str | None) -> Registered:
        number = None if version in (None, LATEST) else version
        if number is not None and (type(number) is not int or not 0 < number <= MAX_ID):
            raise UnknownSchemaError(self.url, f"version {number!r:.20} of subject {subject!r:.80}")

        def ask() -> Registered:
            return self._to_registered(self._backend.version(subject, number))

        return self._look_up(("version", subject, number), ask, is_fixed=number is not None)

    def _by_id(self, id: int, subject: str | None) -> Registered:
        if type(id) is not int or not 0 < id <= MAX_ID:
            raise UnknownSchemaError(self.url, f"id {id!r:.20}")
        entry = self._backend.by_id(id)
        uses = self._backend.uses(id, subject)
        if subject is not None and not uses:
            raise UnknownSchemaError(self.url, f"id {id} in subject {subject!r:.80}")
        own = uses[-1] if subject is not None or len(uses) == 1 else (None, None)
        return self._to_registered(entry, *own)

    def _by_global_id(self, global_id: int) -> Registered:
        if type(global_id) is not int or not 0 < global_id <= _MAX_GLOBAL_ID:
            raise UnknownSchemaError(self.url, f"global id {global_id!r:.20}")
        return self._to_registered(self._backend.by_global_id(global_id))

    def _by_fingerprint(self, fingerprint: str) -> Registered:
        matches = self._backend.by_fingerprint(fingerprint, lambda entry: self._complete(entry).fingerprint)
        if not matches:
            raise UnknownSchemaError(self.url, f"fingerprint {fingerprint}")
        *others, newest = sorted(matches, key=lambda entry: entry.id or 0)
        schema = self._complete(newest)
        if any(verdict(schema, self._complete(entry)).name != "full" for entry in others):
            reason = f"{len(matches)} schemas have the fingerprint {fingerprint}, and they are read differently"
            raise UnusableError(self.url, reason)
        return self._by_id(newest.id, None) if newest.id is not None else self._to_registered(newest)

    def _look_up(self, key: tuple[Any, ...], ask: Callable[[], Registered], *, is_fixed: bool = True) -> Registered:
        registered = self._cache.get(key) if is_fixed else None
        if registered is not None:
            return registered
        missing = self._cache.missing(key)
        if missing is not None:
            raise UnknownSchemaError(self.url, missing)
        if key[0] in _PREFIXED and self._cache.is_full_of_missing():
            raise UnknownSchemaError(self.url, "room to ask for more: too many schemas were missing a moment ago")
        try:
            registered = ask()
        except UnknownSchemaError as error:
            self._cache.put_missing(key, error.what)
            raise
        if is_fixed:
            self._cache.put(key, registered)
        return registered

    def _to_registered(self, entry: StoredSchema, subject: str | None = None, version: int | None = None) -> Registered:
        schema = self._complete(entry)
        place = subject or entry.subject, version or entry.version
        return Registered(schema, entry.id, *place, entry.guid, entry.references)

    def _complete(self, entry: StoredSchema) -> Schema:
        try:
            return whole_schema(entry, self._backend.version)
        except SchemaError as error:
            reason = self._backend.safe(str(error))
        # Raised outside the except clause, so as not to chain an error that may quote what a server sent.
        raise UnusableError(self.url, f"it holds what is no schema: {reason}", subject=entry.subject)

    def _check_name(self, subject: str) -> str:
        fault = fault_of_subject(subject)
        if fault is not None:
            raise RegistryError(self.url, fault)
        return subject


def fetch_arguments(prefix: SchemaPrefix) -> dict[str, Any]:
    """Return the arguments with which `Registry.fetch` returns the schema that a prefix identifies."""
    match prefix:
        case SchemaId(number) | ContentId(number):
            return {"id": number}
        case GlobalId(number):
            return {"global_id": number}
        case Guid(uuid):
            return {"guid": uuid}
        case Fingerprint(digits):
            return {"fingerprint": digits}
    raise TypeError(f"{type(prefix).__name__} is no frame")


def connect(
    url: str,
    *,
    auth: tuple[str, str] | None = None,
    ca: str | None = None,
    certificate: str | None = None,
    key: str | None = None,
    timeout: float = TIMEOUT,
) -> Registry:
    """Return the registry at an address.

    `https://…` and `http://…` are servers with Confluent's REST API (`pip install 'cdcavro[registry]'`);
    `file:FOLDER` is a folder, which the first publication creates. `auth` is (user, password) for basic
    authentication; without it they are taken from the address, or else from CDCAVRO_REGISTRY_USER and
    CDCAVRO_REGISTRY_PASSWORD. `ca` is a file or folder of certificates to trust, `certificate` and
    `key` are the files of the client's own certificate and key; their defaults are CDCAVRO_REGISTRY_CA,
    CDCAVRO_REGISTRY_CERTIFICATE and CDCAVRO_REGISTRY_KEY. `timeout` is in seconds, for each attempt.
    Nothing is sent yet. Raises `RegistryError` for an invalid address, and `SetupError` if
    httpx2 is not installed or the TLS files cannot be used.

    >>> connect("file:schemas")
    Registry('file:schemas')
    """
    scheme, colon, rest = url.partition(":")
    if not colon or scheme.lower() not in ("http", "https", "file"):
        raise RegistryError(_safe_address(url), _EXPECTED)
    if scheme.lower() == "file":
        return Registry(FolderBackend(_folder_path(rest)))
    clean, user, password = _without_credentials(url)
    credentials = auth or ((user, password) if user or password else None) or _from_environment()
    files = {
        name: value or os.environ.get(_VARIABLE + name.upper()) or None
        for name, value in (("ca", ca), ("certificate", certificate), ("key", key))
    }
    return _server_registry(clean, credentials, files, timeout)


def _safe_address(url: str) -> str:
    """Return an invalid address for use in a sentence, without what may be a login, a password or a token."""
    scheme, _, rest = url.rpartition("@")[2].rpartition("//")
    place = _QUERY.sub("...", rest)
    return shown(f"{scheme}//{_NO_PORT.sub(':...', place)}" if scheme else _NO_PORT.sub(":...", place))


def _folder_path(rest: str) -> Path:
    path = rest
    # A name such as this would hold a password, and be shown.
    if "://" in rest or _USERINFO.search(unquote(rest)):
        raise RegistryError("file", _EXPECTED + ", without user and password")
    if rest.startswith("//"):
        host, _, path = rest[2:].partition("/")
        if host not in ("", "localhost"):
            raise RegistryError("file", f"a folder of another machine, {shown(host)}; write file:///PATH")
        path = "/" + unquote(path)
    if not path or not path.isprintable():
        raise RegistryError("file", _EXPECTED)
    return Path(path)


def _without_credentials(url: str) -> tuple[str, str, str]:
    """Return an address without its user and password, and these two, "" if it has none."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
        parts = urlsplit("")
    if not host or parts.query or parts.fragment or not url.isprintable() or " " in url:
        raise RegistryError(_safe_address(url), _EXPECTED + ", without ? and #")
    place = f"[{host}]" if ":" in host else host
    clean = f"{parts.scheme}://{place}{'' if port is None else f':{port}'}{parts.path.rstrip('/')}"
    return clean, unquote(parts.username or ""), unquote(parts.password or "")


def _from_environment() -> tuple[str, str] | None:
    user, password = (os.environ.get(_VARIABLE + name, "") for name in ("USER", "PASSWORD"))
    return (user, password) if user or password else None


def _server_registry(url: str, auth: tuple[str, str] | None, files: dict[str, str | None], timeout: float) -> Registry:
    try:
        from cdcavro.registry.http_session import (  # noqa: PLC0415  an extra brings what it needs
            Credentials,
            Session,
            tls_context,
        )
        from cdcavro.registry.server_backend import ServerBackend  # noqa: PLC0415
    except ImportError as error:
        raise SetupError("httpx2 is not installed: pip install 'cdcavro[registry]'") from error
    context = tls_context(ca=files["ca"], certificate=files["certificate"], key=files["key"])
    return Registry(ServerBackend(url, Session(context, auth, timeout), Credentials(auth)))


class SchemaCache(Generic[T]):
    """A thread-safe LRU cache of at most `size` values, and of at most `size` keys known to have no value.

    `missing_for` is how long a missing key is remembered, in seconds; `now` is the clock.
    """

    def __init__(self, size: int, missing_for: float, now: Callable[[], float] = time.monotonic) -> None:
        self._size, self._missing_for, self._now = size, missing_for, now
        self._values: OrderedDict[Hashable, T] = OrderedDict()
        self._missing: OrderedDict[Hashable, tuple[float, str]] = OrderedDict()
        self._lock = ForkedLock()

    def get(self, key: Hashable) -> T | None:
        """Return the value of a key; None if it is not cached."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def put(self, key: Hashable, value: T) -> None:
        """Cache a value."""
        with self._lock:
            self._values[key] = value
            self._values.move_to_end(key)
            if len(self._values) > self._size:
                self._values.popitem(last=False)

    def missing(self, key: Hashable) -> str | None:
        """Return the description of a key that was found missing a short time ago; None for any other key."""
        with self._lock:
            until, what = self._missing.get(key, (float("-inf"), ""))
            return what if until > self._now() else None

    def put_missing(self, key: Hashable, what: str) -> None:
        """Remember that a key has no value; `what` describes, for the error, what is missing."""
        with self._lock:
            self._missing[key] = self._now() + self._missing_for, what
            self._missing.move_to_end(key)
            if len(self._missing) > self._size:
                self._missing.popitem(last=False)

    def is_full_of_missing(self) -> bool:
        """Return whether as many keys as are remembered were found missing a short time ago."""
        with self._lock:
            until, _ = next(iter(self._missing.values()), (float("-inf"), ""))
            return len(self._missing) >= self._size and until > self._now()

    def forget_missing(self) -> None:
        """Forget all missing keys."""
        with self._lock:
            self._missing.clear()

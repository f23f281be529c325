"""A registry on a server with Confluent's REST API.

How servers differ, and what this module does about it:

* Some tell versions apart by their text (Apicurio), some by the parsed schema (Confluent), some by
  the canonical form, which ignores aliases. So equal schemas are looked for here, and a registered
  schema is read back and compared.
* Apicurio also answers 409 if two clients create a subject or set its level at the same moment: a 409
  counts only if it comes three times.
* Apicurio has no GUIDs, and its default level is NONE. What it alone has, global ids, its own API knows, which stands
  beside that of Confluent's. No server has fingerprints: to find one, all
  versions are read, once.
"""

from __future__ import annotations

import json
import time
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import quote

from cdcavro.errors import RegistryError, UnknownSchemaError, shown
from cdcavro.exact.locks import ForkedLock
from cdcavro.registry.backend import (
    LATEST,
    ContentError,
    StoredSchema,
    UnusableError,
    check_number,
    check_subject,
    is_equal,
    parse_stored,
    references_json,
)
from cdcavro.registry.http_session import HIDDEN, NoAnswerError
from cdcavro.registry.subjects import parse_level

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from uuid import UUID

    import httpx2

    from cdcavro.registry.http_session import Credentials, Session
    from cdcavro.registry.subjects import Level

    Refusal = RegistryError | UnknownSchemaError
    from collections.abc import Iterable

    Place = tuple[str, int]

T = TypeVar("T")

MAX_LISTED: Final = 100_000
_UNKNOWN: Final = frozenset({40400, 40401, 40402, 40403, 40408})
_NO_SUBJECT: Final = 40401
# How Apicurio's own API says it.
_NOT_FOUND: Final = 404
_NO_ARTIFACT: Final = "ArtifactNotFoundException"
_REFUSALS: Final = {
    401: "user and password are missing or wrong",
    403: "the user may not do that",
    409: "the server refuses the schema as incompatible",
    422: "the server refuses what it was sent",
    429: "too many requests",
}
_FAILED: Final = 500
_CONFLICT: Final = 409
_CONFLICT_WAITS: Final = (0.05, 0.2)
_quote: Final = partial(quote, safe="")
MAX_FINGERPRINTED: Final = 10_000
LISTED_FOR: Final = 5.0


class ServerBackend:
    """A backend on a server.

    `url` is its address without credentials, and `credentials` are those that no error may show.
    """

    def __init__(self, url: str, session: Session, credentials: Credentials) -> None:
        self.url = url
        self._session = session
        self.safe = credentials.safe
        self._fingerprints = FingerprintIndex(url)

    def exclusive(self) -> AbstractContextManager[None]:
        """Lock nothing: the server keeps publications apart."""
        return nullcontext()

    def subjects(self) -> list[str]:
        """Return the names of all subjects."""
        return self._ask("subjects", lambda raw: sorted(check_subject(name) for name in _check_list(raw)))

    def versions(self, subject: str) -> list[int]:
        """Return the versions of a subject; an empty list if there is no such subject."""

        def read(raw: Any) -> list[int]:
            return sorted(check_number(version, "version") for version in _check_list(raw))

        try:
            return self._ask(f"subjects/{_quote(subject)}/versions", read, subject=subject)
        except UnknownSchemaError:
            return []

    def version(self, subject: str, version: int | None) -> StoredSchema:
        """Return a version of a subject; None stands for the latest."""
        path = f"subjects/{_quote(subject)}/versions/{LATEST if version is None else version}"
        what = f"subject {shown(subject)}" if version is None else f"version {version} of subject {shown(subject)}"

        def read(raw: Any) -> StoredSchema:
            entry = _read_stored(raw, "id", "guid", "subject", "version")
            is_it = entry.subject == subject and entry.version is not None and version in (None, entry.version)
            if not is_it or entry.id is None:
                raise ContentError("it is another version")
            return entry

        return self._ask(path, read, subject=subject, what=what)

    def by_id(self, id: int) -> StoredSchema:
        """Return the schema with this id."""
        return self._ask(f"schemas/ids/{id}", lambda raw: _read_stored(raw, id=id), what=f"id {id}")

    def by_guid(self, guid: UUID) -> StoredSchema:
        """Return the schema with this GUID, without its id, which Confluent's servers do not return with it."""
        return self._ask(f"schemas/guids/{guid}", lambda raw: _read_stored(raw, guid=str(guid)), what=f"GUID {guid}")

    def by_global_id(self, global_id: int) -> StoredSchema:
        """Return the schema with Apicurio's global id, whole, without its id."""
        base, is_apicurio, _ = self.url.rpartition("/apis/ccompat/")
        if not is_apicurio:
            raise RegistryError(self.url, "global ids are Apicurio's, whose address has /apis/ccompat/ in it")

        def read(raw: Any) -> StoredSchema:
            return parse_stored({"schema": json.dumps(raw, ensure_ascii=False)})

        path = f"ids/globalIds/{global_id}?dereference=true"
        return self._ask(path, read, what=f"global id {global_id}", base=f"{base}/apis/registry/v2")

    def by_fingerprint(self, fingerprint: str, fingerprint_of: Callable[[StoredSchema], str]) -> list[StoredSchema]:
        """Return all schemas with this fingerprint; every version is read once to find them."""

        def places() -> list[tuple[str, int]]:
            return [(subject, version) for subject in self.subjects() for version in self.versions(subject)]

        def read(place: tuple[str, int]) -> tuple[str, int | None]:
            try:
                entry = self.version(*place)
                return fingerprint_of(entry), entry.id
            except UnusableError:  # Protobuf, JSON Schema, or an Avro schema that cdcavro refuses
                return "", None

        return [self.version(*place) for place in self._fingerprints.find(fingerprint, places, read)]

    def uses(self, id: int, subject: str | None) -> list[tuple[str, int]]:
        """Return the versions of a subject that have the schema with this id; without a subject, the first two of all."""

        def read(raw: Any) -> list[tuple[str, int]]:
            uses = _check_list([(use.get("subject"), use.get("version")) for use in raw])
            return sorted((check_subject(own), check_number(version, "version")) for own, version in uses)

        query = f"?subject={_quote(subject)}" if subject else ""
        uses = self._ask(f"schemas/ids/{id}/versions{query}", read, what=f"id {id}")
        return [use for use in uses if use[0] == subject] if subject else uses[:2]

    def find(self, subject: str, wanted: StoredSchema) -> StoredSchema | None:
        """Return the version of a subject that is equal; None if there is none."""
        match = self._lookup(subject, wanted)
        if match is not None and is_equal(match, wanted):
            return match
        # The server may have the schema in another spelling: if it knows its canonical form, all versions are compared.
        if match is None and self._lookup(subject, wanted, normalize=True) is None:
            return None
        for version in reversed(self.versions(subject)):
            entry = self.version(subject, version)
            if is_equal(entry, wanted):
                return entry
        return None

    def register(self, subject: str, new: StoredSchema, fingerprint: str, *, force: bool) -> StoredSchema:  # noqa: ARG002  a backend's
        """Register the next version; with `force`, lift the server's level for the moment if it refuses the schema."""
        try:
            self._register(subject, new)
        except RegistryError as error:
            if not force or error.status != _CONFLICT:
                raise
            level = self.level(subject)
            self.set_level(subject, "NONE")
            try:
                self._register(subject, new)
            finally:
                self.set_level(subject, level)
        registered = self._lookup(subject, new)
        if registered is None or not is_equal(registered, new):
            reason = "the server took the schema for an older version, from which it differs"
            raise RegistryError(self.url, reason, subject=subject)
        return registered

    def level(self, subject: str) -> Level:
        """Return the compatibility level of a subject: its own, or else that of the server."""

        def read(raw: Any) -> Level:
            return parse_level(raw["compatibilityLevel"])

        try:
            return self._ask(f"config/{_quote(subject)}", read, subject=subject)
        except UnknownSchemaError:
            return self._ask("config", read)

    def set_level(self, subject: str, level: Level) -> None:
        """Set the compatibility level of a subject."""
        self._insist("PUT", f"config/{_quote(subject)}", subject, {"compatibility": level})

    def close(self) -> None:
        """Close the connections."""
        self._session.close()

    def _register(self, subject: str, new: StoredSchema) -> None:
        self._fingerprints.forget()
        self._insist("POST", f"subjects/{_quote(subject)}/versions", subject, _as_body(new))

    def _insist(self, method: str, path: str, subject: str, body: dict[str, Any]) -> None:
        for wait in (*_CONFLICT_WAITS, None):
            try:
                return self._ask(path, lambda _: None, subject=subject, method=method, body=body)
            except RegistryError as error:
                if error.status != _CONFLICT or wait is None:
                    raise
                time.sleep(wait)
        raise AssertionError("the last attempt ends the loop")

    def _lookup(self, subject: str, wanted: StoredSchema, *, normalize: bool = False) -> StoredSchema | None:
        """Return the version that the server takes for this schema, as it is stored there."""
        try:
            version = self._ask(
                f"subjects/{_quote(subject)}{'?normalize=true' if normalize else ''}",
                lambda raw: check_number(raw.get("version"), "version"),
                subject=subject,
                method="POST",
                body=_as_body(wanted),
            )
        except UnknownSchemaError:
            return None
        return self.version(subject, version)

    def _ask(
        self,
        path: str,
        read: Callable[[Any], T],
        *,
        subject: str | None = None,
        what: str | None = None,
        method: str = "GET",
        body: Any = None,
        base: str | None = None,
    ) -> T:
        """Ask the server, at another address if `base` is one, and read its answer. Errors are raised without their causes, which contain the request."""
        error: Refusal
        try:
            answer = self._session.request(method, f"{base or self.url}/{path}", body)
            if answer.is_success:
                return read(answer.json() if answer.content else None)
            error = self._refusal(answer, subject, what)
        except NoAnswerError as fault:
            error = RegistryError(self.url, fault.reason, status=fault.status, subject=subject)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as fault:
            why = str(fault) if isinstance(fault, ContentError) else "it is not what was asked for"
            error = UnusableError(self.url, f"the answer cannot be used: {why}", subject=subject)
        raise error

    def _refusal(self, answer: httpx2.Response, subject: str | None, what: str | None) -> Refusal:
        status = answer.status_code
        try:
            refusal = answer.json()
        except ValueError:
            refusal = None
        code, message = map(refusal.get, ("error_code", "message")) if isinstance(refusal, dict) else (None, None)
        if code in _UNKNOWN or (code == _NOT_FOUND and refusal.get("name") == _NO_ARTIFACT):
            is_subject = what is None or (code == _NO_SUBJECT and subject is not None)
            return UnknownSchemaError(self.url, f"subject {shown(subject)}" if is_subject else str(what))
        reason = _REFUSALS.get(status)
        if reason is None:
            reason = "the server failed" if status >= _FAILED else "the server does not do that; is this its address?"
        if message and reason:
            reason += f": {shown(message) if self.safe(str(message)) == str(message) else HIDDEN}"
        return RegistryError(self.url, reason, status=status, subject=subject)


def _read_stored(raw: Any, *facts: str, **known: Any) -> StoredSchema:
    """Read a schema and some facts from an answer; `known` are those that it need not state."""
    references = [{**reference} for reference in raw.get("references") or []]
    said = {fact: raw.get(fact) for fact in ("schema", "schemaType", *facts)}
    return parse_stored({**said, "references": references}, **known)


def _as_body(entry: StoredSchema) -> dict[str, Any]:
    return {"schema": entry.text, "schemaType": "AVRO", "references": references_json(entry.references)}


def _check_list(raw: Any) -> list[Any]:
    if not isinstance(raw, list) or len(raw) > MAX_LISTED:
        raise ContentError(f"it is no list of up to {MAX_LISTED:,}")
    return raw


class FingerprintIndex:
    """The fingerprints of a server's versions, by subject and version. Several threads may use it.

    A server has no fingerprints itself, so each version is read once. `url` is the server's address for errors,
    `now` the clock.
    """

    def __init__(self, url: str, now: Callable[[], float] = time.monotonic) -> None:
        self._url, self._now = url, now
        self._lock = ForkedLock()
        self._known: dict[Place, tuple[str, int | None]] = {}
        self._listed_at = float("-inf")

    def find(
        self, fingerprint: str, places: Callable[[], Iterable[Place]], read: Callable[[Place], tuple[str, int | None]]
    ) -> list[Place]:
        """Return a place of each schema with a fingerprint.

        `places` lists all places, and is not called again within a few seconds; `read` returns
        the fingerprint and the id at a place. Raises `UnusableError` for more than 10,000 places.
        """
        with self._lock:
            if self._now() - self._listed_at > LISTED_FOR:
                for place in places():
                    self._learn(place, read)
                self._listed_at = self._now()
            return list({id: place for place, (own, id) in self._known.items() if own == fingerprint}.values())

    def forget(self) -> None:
        """List the places again at the next question."""
        self._listed_at = float("-inf")

    def _learn(self, place: Place, read: Callable[[Place], tuple[str, int | None]]) -> None:
        if place not in self._known:
            if len(self._known) >= MAX_FINGERPRINTED:
                reason = f"more than {MAX_FINGERPRINTED:,} versions, too many to look for a fingerprint in"
                raise UnusableError(self._url, reason)
            self._known[place] = read(place)

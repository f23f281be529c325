"""HTTP sessions within bounds, and credentials that no sentence shows.

Answers are limited in size and time, attempts are few, and redirects are not followed. A session trusts the
authorities in a given file or folder, or in that of SSL_CERT_FILE or SSL_CERT_DIR, or else those of certifi.
"""

from __future__ import annotations

import base64
import binascii
import html
import json
import logging
import os
import random
import re
import ssl
import time
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote_plus

import certifi
import httpx2

from cdcavro.errors import SetupError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_MEDIA_TYPE: Final = "application/vnd.schemaregistry.v1+json"
MAX_ANSWER: Final = 32 << 20
MAX_WAIT: Final = 30.0
ATTEMPTS: Final = 4
_FIRST_WAIT: Final = 0.2
_RETRIED: Final = frozenset({429, 500, 502, 503, 504})
# At DEBUG and INFO, these write what a server answers: a redirect's address, any header, its words for a status.
_LOGGERS: Final = ("httpx2", *(f"httpcore2.{part}" for part in ("connection", "http11", "http2", "proxy", "socks")))
_IS_ASKING: Final = ContextVar("cdcavro_is_asking", default=False)
_REDIRECTS: Final = range(300, 400)
HIDDEN: Final = "(not shown: it holds a secret)"
# A sentence shows its first 80 characters: what is behind these may only belong to a secret that begins there.
_LOOKED_AT: Final = 4_000
# How many times a text may have been transformed, one way in another; how many texts that may give.
_ROUNDS: Final = 3
_TEXTS: Final = 500
_ESCAPE: Final = re.compile(r"\\(?:[uU]([0-9a-fA-F]{4})|[xX]([0-9a-fA-F]{2})|([0-7]{3})|([nrtbfNRTBF])|(.))", re.DOTALL)
_BASE64: Final = re.compile(r"[A-Za-z0-9+/_-]{4,}")
_HEX: Final = re.compile(r"(?:[0-9a-fA-F]{2}){3,}")


class NoAnswerError(Exception):
    """A request has no usable answer; the reason quotes nothing that was received."""

    def __init__(self, reason: str, status: int | None = None) -> None:
        self.reason = reason
        self.status = status
        super().__init__(reason, status)


class _QuietFilter(logging.Filter):
    """Drops log records that are written while a session asks; other users of the library are not affected."""

    def filter(self, record: logging.LogRecord) -> bool:  # noqa: ARG002  as all filters
        """Return whether a record is written."""
        return not _IS_ASKING.get()


_QUIET: Final = _QuietFilter()


class Session:
    """Connections to one server.

    `verify` is a TLS context, `auth` user and password or None, `timeout` the seconds that one
    attempt may take, and `wait` the function that sleeps between attempts.
    """

    def __init__(
        self,
        verify: ssl.SSLContext,
        auth: tuple[str, str] | None,
        timeout: float,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        self._timeout, self._wait = timeout, wait
        for name in _LOGGERS:
            logging.getLogger(name).addFilter(_QUIET)
        headers = {"Accept": f"{_MEDIA_TYPE}, application/json", "Accept-Encoding": "identity"}
        self._new_client = partial(
            httpx2.Client, verify=verify, auth=auth, timeout=timeout, headers=headers, follow_redirects=False
        )
        self._own, self._process = self._new_client(), os.getpid()

    @property
    def _client(self) -> httpx2.Client:
        """The connections of this process: a forked child must not read what its parent asked for."""
        if self._process != os.getpid():
            self._own, self._process = self._new_client(), os.getpid()
        return self._own

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def request(self, method: str, url: str, body: Any = None) -> httpx2.Response:
        """Send a request, with its body as JSON, and return the whole answer; try again where that may help.

        Raises `NoAnswerError`.
        """
        content, headers = (None, None) if body is None else (json.dumps(body), {"Content-Type": _MEDIA_TYPE})
        for attempt in range(1, ATTEMPTS + 1):
            # A new request each time: a connection that broke may have consumed part of the last one.
            request = self._client.build_request(method, url, headers=headers, content=content)
            fault, answer = self._attempt(request)
            is_last = attempt == ATTEMPTS
            if answer is not None and (answer.status_code not in _RETRIED or is_last):
                return answer
            if fault is not None and (is_last or not fault[1]):
                raise NoAnswerError(fault[0])
            seconds = _pause(attempt, answer)
            if seconds > MAX_WAIT and answer is not None:
                return answer
            self._wait(seconds)
        raise AssertionError("the last attempt ends the loop")

    def _attempt(self, request: httpx2.Request) -> tuple[tuple[str, bool] | None, httpx2.Response | None]:
        """Return the answer, or the reason why there is none and whether another attempt may help."""
        asking = _IS_ASKING.set(True)
        until = time.monotonic() + self._timeout
        late = f"no whole answer within {self._timeout:g} seconds", False
        try:
            return None, self._whole(request, until)
        except httpx2.TimeoutException:
            return late, None
        except httpx2.ConnectError as error:
            return (f"it cannot be reached: {_brief(error)}", True), None
        except httpx2.TransportError:
            return ("the connection broke, or the answer is not whole", True), None
        except httpx2.InvalidURL:
            return ("the address is none", False), None
        finally:
            _IS_ASKING.reset(asking)

    def _whole(self, request: httpx2.Request, until: float) -> httpx2.Response:
        answer = self._client.send(request, stream=True)
        try:
            if answer.status_code in _REDIRECTS:
                raise NoAnswerError("the server points elsewhere; redirects are not followed", answer.status_code)
            if answer.headers.get("Content-Encoding", "identity") != "identity":
                raise NoAnswerError("the answer is compressed, which was not asked for", answer.status_code)
            content = self._body(answer, until)
            # It is the server or a proxy before it that fails, whatever was asked for.
            if answer.is_success and content.lstrip().startswith(b"<"):
                raise NoAnswerError("the answer is a page, not JSON; is this its address, or does a proxy answer?")
            return httpx2.Response(answer.status_code, headers=answer.headers, content=content)
        finally:
            answer.close()

    def _body(self, answer: httpx2.Response, until: float) -> bytes:
        parts, size = [], 0
        for part in answer.iter_raw():
            size += len(part)
            if size > MAX_ANSWER:
                raise NoAnswerError(f"the answer has more than {MAX_ANSWER >> 20} MiB", answer.status_code)
            if time.monotonic() > until:
                raise NoAnswerError(f"no whole answer within {self._timeout:g} seconds")
            parts.append(part)
        return b"".join(parts)


def tls_context(*, ca: str | None, certificate: str | None, key: str | None) -> ssl.SSLContext:
    """Return the context of a session for files of certificates. Raises `SetupError` for those that cannot be used."""
    file, folder = os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
    if ca:
        file, folder = (None, ca) if Path(ca).is_dir() else (ca, None)
    elif file or not folder:
        file, folder = file or certifi.where(), None
    try:
        context = ssl.create_default_context(cafile=file, capath=folder)
        if certificate:
            context.load_cert_chain(certificate, key)
        elif key:
            raise SetupError("the TLS files cannot be used: a key is of no use without its certificate")
    except (OSError, ValueError) as error:
        raise SetupError(f"the TLS files cannot be used: {getattr(error, 'strerror', None) or error}") from error
    return context


def _pause(attempt: int, answer: httpx2.Response | None) -> float:
    """Return the seconds to wait before the next attempt: what the server asks for, or else more each time."""
    asked = "" if answer is None else answer.headers.get("Retry-After", "")
    if asked.isascii() and asked.isdigit():
        return float(asked[:9])
    return float(_FIRST_WAIT * 2 ** (attempt - 1) * random.uniform(0.5, 1))  # noqa: S311  no secret


def _brief(error: Exception) -> str:
    """Return the system's reason for an error, which contains neither the address nor a header."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror
        cause = cause.__cause__ or cause.__context__
    return "no connection"


class Credentials:
    """A user and a password, or None. They have no repr, and `safe` says nothing that shows the password."""

    __slots__ = ("_secrets",)

    def __init__(self, auth: tuple[str, str] | None) -> None:
        self._secrets = (_folded(auth[1]),) if auth and auth[1] else ()

    def safe(self, sentence: str) -> str:
        """Return a sentence, or `HIDDEN` if it holds a secret, as it is or transformed.

        The transformations are percent-encoding, the escapes of JSON and HTML, base64, base 16, other case and white
        space in between, and any of them within another.
        """
        looked_at = sentence[:_LOOKED_AT]
        if not self._secrets or not any(_holds(text, self._secrets) for text in _forms(looked_at)):
            return sentence
        return HIDDEN


def _holds(text: str, secrets: tuple[str, ...]) -> bool:
    plain = _folded(text)
    return any(secret in plain for secret in secrets)


def _folded(text: str) -> str:
    """Return a text without white space and in one case."""
    return re.sub(r"\s+", "", text).casefold() or text


def _forms(text: str) -> Iterator[str]:
    """Yield a text and all texts that it may have been before it was transformed."""
    seen = {text: None}
    fresh = [text]
    yield text
    for _ in range(_ROUNDS):
        made = [before for one in fresh for undo in _UNDONE for before in undo(one)]
        fresh = [before for before in dict.fromkeys(made) if before not in seen][: max(0, _TEXTS - len(seen))]
        seen.update(dict.fromkeys(fresh))
        yield from fresh


def _unescape(text: str) -> list[str]:
    def character(match: re.Match[str]) -> str:
        code, byte, octal, space, other = match.groups()
        return chr(int(octal, 8)) if octal else " " if space else other or chr(int(code or byte, 16))

    return [_ESCAPE.sub(character, text)]


def _from_base64(text: str) -> list[str]:
    """Return the bytes in base64, which may begin at any of its characters, as texts."""
    found = []
    for offset in range(4):
        parts = []
        for match in _BASE64.finditer(re.sub(r"\s+", "", text)):
            digits = match[0][offset:].translate(str.maketrans("-_", "+/"))
            parts.append(base64.b64decode(digits[: len(digits) // 4 * 4] + _pad(digits)))
        found += _texts_of(b"\n".join(parts))
    return found


def _pad(digits: str) -> str:
    """Return the digits behind the last whole group of four as a padded group; a single one means nothing."""
    rest = digits[len(digits) // 4 * 4 :]
    return rest + "=" * (4 - len(rest)) if len(rest) > 1 else ""


def _from_hex(text: str) -> list[str]:
    found = []
    for digits in (text, text[1:]):
        found += _texts_of(b"\n".join(binascii.unhexlify(match[0]) for match in _HEX.finditer(digits)))
    return found


def _texts_of(raw: bytes) -> list[str]:
    return [raw.decode(errors="replace"), raw.decode("latin-1")] if raw else []


_UNDONE: Final[tuple[Callable[[str], list[str]], ...]] = (
    lambda text: ["".join(text.split())],
    lambda text: [unquote_plus(text)],
    lambda text: [html.unescape(text)],
    _unescape,
    _from_base64,
    _from_hex,
)

"""Credentials, and whether a sentence from outside shows them in any form that text usually takes on its way."""

from __future__ import annotations

import base64
import binascii
import html
import re
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote_plus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HIDDEN: Final = "(not shown: it holds a secret)"
# A sentence shows its first 80 characters: what is behind these may only belong to a secret that begins there.
_LOOKED_AT: Final = 4_000
# How many times a text may have been transformed, one way in another; how many texts that may give.
_ROUNDS: Final = 3
_TEXTS: Final = 500
_ESCAPE: Final = re.compile(r"\\(?:[uU]([0-9a-fA-F]{4})|[xX]([0-9a-fA-F]{2})|([0-7]{3})|([nrtbfNRTBF])|(.))", re.DOTALL)
_BASE64: Final = re.compile(r"[A-Za-z0-9+/_-]{4,}")
_HEX: Final = re.compile(r"(?:[0-9a-fA-F]{2}){3,}")


class Credentials:
    """A user and a password, or None. They have no repr, and `safe` says nothing that shows the password."""

    __slots__ = ("_secrets",)

    def __init__(self, auth: tuple[str, str] | None) -> None:
        self._secrets = (_plain(auth[1]),) if auth and auth[1] else ()

    def safe(self, sentence: str) -> str:
        """Return a sentence; one that holds a secret, as it is or transformed, is replaced.

        Looked for are percent-encoding, JSON's and HTML's escapes, base64, base 16, other case and white space
        between, also one in another.
        """
        looked_at = sentence[:_LOOKED_AT]
        if not self._secrets or not any(_holds(text, self._secrets) for text in _forms(looked_at)):
            return sentence
        return HIDDEN


def _holds(text: str, secrets: tuple[str, ...]) -> bool:
    plain = _plain(text)
    return any(secret in plain for secret in secrets)


def _plain(text: str) -> str:
    """Return a text without what a line break, an indent or a change of case makes of it."""
    return re.sub(r"\s+", "", text).casefold() or text


def _forms(text: str) -> Iterator[str]:
    """Yield a text and whatever it may have been before it was transformed."""
    seen = {text: None}
    fresh = [text]
    yield text
    for _ in range(_ROUNDS):
        made = [before for one in fresh for undo in _UNDONE for before in undo(one)]
        fresh = [before for before in dict.fromkeys(made) if before not in seen][: max(0, _TEXTS - len(seen))]
        seen.update(dict.fromkeys(fresh))
        yield from fresh


def _unescaped(text: str) -> list[str]:
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
            parts.append(base64.b64decode(digits[: len(digits) // 4 * 4] + _padded(digits)))
        found += _texts_of(b"\n".join(parts))
    return found


def _padded(digits: str) -> str:
    """Return the digits that are no whole group of four, as such a group; one alone means nothing."""
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
    _unescaped,
    _from_base64,
    _from_hex,
)

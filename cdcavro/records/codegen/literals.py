r"""Texts of schemas as Python literals that no text can break out of.

Only ASCII, and in docstrings letters that cannot be mistaken for others, are written as they are; any other
character is escaped as `\u` and its code, including the backslash and the quote. So no text ends its literal,
a formatter changes nothing, and Python reads back exactly the same text.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

WIDTH: Final = 120
# The longest literal on a line of its own, indented by four columns, without its quotes.
_PART: Final = WIDTH - 4 - 2
# Letters, CJK and CJK punctuation: fixed ranges, so that the output does not depend on the Unicode version.
_READABLE: Final = "\u00a1-\u00ac\u00ae-\u017f\u0391-\u03c9\u0410-\u044f\u3001-\u3011\u3041-\u30ff\u4e00-\u9fff\uac00-\ud7a3\uff01-\uff5e"
_UNFIT: Final = re.compile(r"[^ !#-\[\]-~]")
_UNFIT_IN_DOC: Final = re.compile(rf'[^ !#-\[\]-~"{_READABLE}]|""|\A"|"\Z')
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_ODD_LINES: Final = re.compile(r"\A\s|\s\Z|[ \t]\n|\n[ \t]|[^\S \n]")
_JSON_TOKEN: Final = re.compile(r'"(?:[^"\\]++|\\.)*+"|[^"\s]+')
_UNFIT_IN_JSON: Final = re.compile(r"[^ !-&(-~]")
_ENDS: Final = ",}]"


def string_literal(text: str) -> str:
    r"""Return a text as a string literal.

    >>> print(string_literal('a "b" \\'), string_literal("\u202e"))
    "a \u0022b\u0022 \u005c" "\u202e"
    """
    return f'"{_UNFIT.sub(_escaped, text)}"'


def bytes_literal(raw: bytes) -> str:
    r"""Return bytes as a bytes literal.

    >>> print(bytes_literal(b'a"'))
    b"\x61\x22"
    """
    return 'b"' + "".join(f"\\x{byte:02x}" for byte in raw) + '"'


def docstring(text: str, indent: str) -> str:
    r"""Return a text as a docstring: on several lines if none of them has odd white space, else on one line.

    `inspect.getdoc` returns the same text, except for lone surrogates, which a class cannot have in its
    docstring: they are replaced by their codes.

    >>> docstring("first\nsecond", "").splitlines()[1]
    'second'
    """
    text = _SURROGATE.sub(_escaped, text)
    if "\n" not in text or _ODD_LINES.search(text):
        return f'{indent}"""{_trimmed(_UNFIT_IN_DOC.sub(_escaped, text))}"""'
    lines = [_UNFIT_IN_DOC.sub(_escaped, line) for line in text.split("\n")]
    first, *rest = lines
    return "\n".join([f'{indent}"""{first}', *(indent + line if line else "" for line in rest), f'{indent}"""'])


def _trimmed(text: str) -> str:
    """Return a text with its outer blanks escaped, which a formatter would strip from a docstring."""
    if not text.strip(" "):
        return "\\u0020" * len(text)
    start, end = len(text) - len(text.lstrip(" ")), len(text) - len(text.rstrip(" "))
    return "\\u0020" * start + text.strip(" ") + "\\u0020" * end


def assignment(start: str, literal: str) -> str:
    """Return an assignment of a literal as a formatter lays it out: in parentheses if it fits only that way.

    >>> assignment("a = ", '"b"')
    'a = "b"'
    """
    indent = " " * (len(start) - len(start.lstrip(" ")))
    if len(start + literal) <= WIDTH or len(indent + literal) + 4 > WIDTH:
        return start + literal
    return f"{start}(\n{indent}    {literal}\n{indent})"


def schema_literal(name: str, text: str) -> str:
    """Return an assignment of a schema's JSON, without white space between tokens, in lines of at most 120 columns."""
    compact = "".join(match[0] for match in _JSON_TOKEN.finditer(text))
    return text_lines(name, _UNFIT_IN_JSON.sub(_json_escaped, compact).replace("\\", "\\\\"))


def text_lines(name: str, text: str) -> str:
    """Return an assignment of an ASCII text in lines; it has no apostrophes, and its backslashes are doubled."""
    parts = [_quoted(part) for part in _parts(text)]
    if len(parts) == 1:
        return assignment(f"{name}: Final = ", parts[0])
    return "\n".join([f"{name}: Final = (", *(f"    {part}" for part in parts), ")"])


def _parts(text: str) -> Iterator[str]:
    at = 0
    while len(text) - at > _PART:
        end = at + _PART
        # Break after a comma or bracket if there is one, and never within a doubled backslash.
        after_token = max(text.rfind(char, at + _PART // 2, end) for char in _ENDS) + 1
        end = after_token or end
        while text[end - 1] == "\\" and (end - len(text[at:end].rstrip("\\")) - at) % 2:
            end -= 1
        yield text[at:end]
        at = end
    yield text[at:]


def _quoted(part: str) -> str:
    return f"'{part}'" if '"' in part else f'"{part}"'


def _escaped(match: re.Match[str]) -> str:
    return "".join(f"\\u{ord(char):04x}" if ord(char) <= _BASIC else f"\\U{ord(char):08x}" for char in match[0])


def _json_escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code <= _BASIC:
        return f"\\u{code:04x}"
    high, low = divmod(code - _BASIC - 1, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"


_BASIC: Final = 0xFFFF

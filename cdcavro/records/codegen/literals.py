r"""Texts of schemas as Python source: ASCII, or letters that look like nothing else, and no way out of the quotes.

Everything that is not plain stands as `\u` and its code, the backslash and the quote included. So
no text ends its literal, a formatter has nothing to change, and what Python reads is what came.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

WIDTH: Final = 120
# A literal in a line of its own, four columns in, with its quotes.
_PART: Final = WIDTH - 4 - 2
# Letters, CJK and its punctuation: fixed ranges, so that no version of Unicode changes the output.
_READABLE: Final = "\u00a1-\u00ac\u00ae-\u017f\u0391-\u03c9\u0410-\u044f\u3001-\u3011\u3041-\u30ff\u4e00-\u9fff\uac00-\ud7a3\uff01-\uff5e"
_UNFIT: Final = re.compile(r"[^ !#-\[\]-~]")
_UNFIT_IN_DOC: Final = re.compile(rf'[^ !#-\[\]-~"{_READABLE}]|""|\A"|"\Z')
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_ODD_LINES: Final = re.compile(r"\A\s|\s\Z|[ \t]\n|\n[ \t]|[^\S \n]")
_JSON_TOKEN: Final = re.compile(r'"(?:[^"\\]++|\\.)*+"|[^"\s]+')
_UNFIT_IN_JSON: Final = re.compile(r"[^ !-&(-~]")
_ENDS: Final = ",}]"


def string_literal(text: str) -> str:
    r"""Return a text as a literal.

    >>> print(string_literal('a "b" \\'), string_literal("\u202e"))
    "a \u0022b\u0022 \u005c" "\u202e"
    """
    return f'"{_UNFIT.sub(_escaped, text)}"'


def bytes_literal(raw: bytes) -> str:
    r"""Return bytes as a literal.

    >>> print(bytes_literal(b'a"'))
    b"\x61\x22"
    """
    return 'b"' + "".join(f"\\x{byte:02x}" for byte in raw) + '"'


def docstring(text: str, indent: str) -> str:
    r"""Return a text as a docstring: on lines of its own if its lines are ordinary, else on one.

    What Python or `inspect.getdoc` gives for it is the text, but for lone surrogates, which no class
    can have in its docstring: of these the code stands there.

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
    """Escape the blanks that a formatter would take off a docstring's ends."""
    if not text.strip(" "):
        return "\\u0020" * len(text)
    start, end = len(text) - len(text.lstrip(" ")), len(text) - len(text.rstrip(" "))
    return "\\u0020" * start + text.strip(" ") + "\\u0020" * end


def assignment(start: str, literal: str) -> str:
    """Return an assignment of one literal as a formatter lays it out: in parentheses if it fits only so.

    >>> assignment("a = ", '"b"')
    'a = "b"'
    """
    indent = " " * (len(start) - len(start.lstrip(" ")))
    if len(start + literal) <= WIDTH or len(indent + literal) + 4 > WIDTH:
        return start + literal
    return f"{start}(\n{indent}    {literal}\n{indent})"


def schema_literal(name: str, text: str) -> str:
    """Return the assignment of a schema's JSON, without white space between its tokens, in lines of at most 120 columns."""
    compact = "".join(match[0] for match in _JSON_TOKEN.finditer(text))
    return text_lines(name, _UNFIT_IN_JSON.sub(_json_escaped, compact).replace("\\", "\\\\"))


def text_lines(name: str, text: str) -> str:
    """Return the assignment of a text of ASCII, without apostrophes and with its backslashes doubled, in lines."""
    parts = [_quoted(part) for part in _parts(text)]
    if len(parts) == 1:
        return assignment(f"{name}: Final = ", parts[0])
    return "\n".join([f"{name}: Final = (", *(f"    {part}" for part in parts), ")"])


def _parts(text: str) -> Iterator[str]:
    at = 0
    while len(text) - at > _PART:
        end = at + _PART
        # Not between two backslashes that are one, and rather behind a comma or bracket.
        found = max(text.rfind(char, at + _PART // 2, end) for char in _ENDS) + 1
        end = found or end
        while text[end - 1] == "\\" and (end - len(text[at:end].rstrip("\\")) - at) % 2:
            end -= 1
        yield text[at:end]
        at = end
    yield text[at:]


def _quoted(part: str) -> str:
    return f"'{part}'" if '"' in part else f'"{part}"'


def _escaped(found: re.Match[str]) -> str:
    return "".join(f"\\u{ord(char):04x}" if ord(char) <= _BASIC else f"\\U{ord(char):08x}" for char in found[0])


def _json_escaped(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code <= _BASIC:
        return f"\\u{code:04x}"
    high, low = divmod(code - _BASIC - 1, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"


_BASIC: Final = 0xFFFF

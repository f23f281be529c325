"""Exact parsing and rendering of JSON text: every number digit for digit, every member, every character.

A JSON value is `None`, `bool`, `int` (64 bits), `float`, `str`, `list`, `dict` or `ExactNumber`.
A number is a `float` only if its text has no exponent and equals the float's `repr`, and an `int`
only if it is canonical and fits in 64 bits; every other number is an `ExactNumber`.

`parse` is exact and reports every fault with its path, but slow. `parse_quickly` parses with msgspec, which hides
two things: a repeated member and `-0`. Its value is therefore used only if the text holds no `-0` and exactly as
many member separators as the value has members.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from decimal import Decimal
from typing import Any, Final

import msgspec
import orjson

from cdcavro.errors import MessageError, TextError, shown
from cdcavro.exact.numbers import ExactNumber, check_finite, decimal_text, fraction, integer

MAX_DEPTH: Final = 128
MAX_LENGTH: Final = 64 << 20
_BYTE_ORDER_MARK: Final = "\ufeff"
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_SURROGATE_ESCAPE: Final = re.compile(rb"\\u[dD][89abAB]|\\u[dD][c-fC-F]")
_BRACKETS: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]', re.DOTALL)
_STRING: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_AS_ARRAYS: Final = bytes.maketrans(b"{}", b"[]")
_NO_BRACKETS: Final = bytes(byte for byte in range(256) if byte not in b"[]{}")
_QUOTED_COLON: Final = re.compile(rb'(?<!\\)(\\*+)":')
# What msgspec would miss: it reads -0 as 0, keeps the last of two members of one name, and integers of any length.
_NEGATIVE_ZERO: Final = re.compile(rb"-0[\s,}\]]")
_LONG_NUMBER: Final = re.compile(rb"[0-9]{19}")
_SPACED_COLON: Final = (b" :", b"\t:", b"\n:", b"\r:")
loads: Final = msgspec.json.Decoder(float_hook=fraction).decode


def to_bytes(text: bytes | str) -> bytes:
    """Return text as UTF-8. Raises `TextError` for a lone surrogate and for more than 64 MiB."""
    if isinstance(text, str):
        try:
            # A class of its own may say otherwise.
            text = str.encode(text)
        except UnicodeEncodeError as error:
            raise TextError("Unicode text", f"a lone surrogate at character {error.start}") from error
    elif isinstance(text, (bytes, bytearray, memoryview)):
        text = text if type(text) is bytes else bytes(memoryview(text))
    else:
        raise TypeError(f"text is bytes or str, not {type(text).__name__}")
    if len(text) > MAX_LENGTH:
        raise TextError(f"at most {MAX_LENGTH} bytes", f"{len(text)}")
    return text


def parse(text: bytes | str, above: int = 0) -> Any:
    """Parse exactly one JSON value; `above` is the number of levels that enclose it.

    Raises `TextError` for text that is empty, not UTF-8, not JSON, more than one value, nested beyond
    128 levels or longer than 64 MiB, and for a repeated member, `NaN`, infinities and lone surrogates.

    >>> parse('{"a": 1.20, "b": 2}')
    {'a': ExactNumber('1.20'), 'b': 2}
    """
    raw = to_bytes(text)
    decoded = _decode(raw)
    if not decoded.strip(" \t\r\n"):
        raise TextError("JSON", "an empty line" if not raw else "white space only")
    check_depth(raw, above)
    repeated: list[_RepeatedMember] = []
    value = _loads(decoded, repeated)
    if repeated or _SURROGATE_ESCAPE.search(raw):
        _check(value)
    return value


def _decode(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise TextError("UTF-8", f"byte 0x{raw[error.start]:02x} at byte {error.start}") from error


# What is said of a line of a message that stands on several.
PART_OF_MESSAGE: Final = "a member without its object"
# What is wrong, by how Python's sentence on it begins. Where rejects are counted by reason, values are left out, and
# only this tells unlike faults apart.
_FAULTS: Final = {
    "Expecting value": " where a value belongs",
    "Expecting property name": " where the name of a member belongs",
    "Illegal trailing comma before end of array": " where a value belongs",
    "Illegal trailing comma": " where the name of a member belongs",
    "Expecting ':'": " where a colon belongs",
    "Expecting ','": " where a comma or an end belongs",
    "Invalid control character": " where an escape of it belongs",
    "Invalid \\": " where an escape of JSON belongs",
}


def _loads(decoded: str, repeated: list[_RepeatedMember]) -> Any:
    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        parsed = dict(pairs)
        if len(parsed) == len(pairs):
            return parsed
        repeated.append(_RepeatedMember(pairs))
        return repeated[-1]

    try:
        return json.loads(
            decoded,
            object_pairs_hook=members,
            parse_int=integer,
            parse_float=fraction,
            parse_constant=_refuse_constant,
        )
    except json.JSONDecodeError as error:
        raise TextError("JSON", _describe_fault(decoded, error)) from error


def _refuse_constant(name: str) -> Any:
    raise TextError("JSON", f"{name}, which is no JSON number")


def _describe_fault(decoded: str, error: json.JSONDecodeError) -> str:
    if error.pos >= len(decoded.rstrip(" \t\r\n")) or error.msg.startswith("Unterminated string"):
        return f"text that ends too early, at character {len(decoded)}"
    if error.msg == "Extra data":
        return _describe_rest(decoded, error.pos)
    if decoded.startswith(_BYTE_ORDER_MARK):
        return "a byte order mark before it"
    # What is no JSON from its beginning is something else, of which no more can be said.
    fault = next((said for begin, said in _FAULTS.items() if error.msg.startswith(begin)), "") if error.pos else ""
    return f"{shown(decoded[error.pos : error.pos + 20])} at character {error.pos}{fault}"


def _describe_rest(decoded: str, position: int) -> str:
    """Return what stands behind a value, by what tells how its file was written."""
    before = decoded[:position].rstrip(" \t\r\n")
    found = "more than one value, from"
    if decoded[position] == ":" and before.endswith('"'):
        found = f"{PART_OF_MESSAGE}, at"
    elif "\r" in decoded[len(before) : position]:
        found = "a carriage return between values, at"
    elif decoded[position:].strip(" \t\r\n") == ",":
        found = "a comma behind the value, at"
    return f"{found} character {position}"


class _RepeatedMember(dict[str, Any]):
    """An object with a repeated member, kept until its path is known."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.name = next(name for name, times in Counter(name for name, _ in pairs).items() if times > 1)


def check_depth(raw: bytes, above: int = 0) -> None:
    """Raise `TextError` if a JSON text nests more than 128 levels, the `above` that enclose it included."""
    if raw.count(b"[") + raw.count(b"{") <= MAX_DEPTH - above or _is_shallow(raw, MAX_DEPTH - above):
        return
    depth = above
    for match in _BRACKETS.finditer(raw):
        first = raw[match.start()]
        if first in b"[{":
            depth += 1
            if depth > MAX_DEPTH:
                raise TextError(f"at most {MAX_DEPTH} levels", f"a level more at byte {match.start()}")
        elif first in b"]}":
            depth -= 1


def check_collections(raw: bytes, most: int) -> None:
    """Raise `TextError` if a JSON text has more arrays and objects than are taken; brackets in strings do not count."""
    count = raw.count(b"[") + raw.count(b"{")
    if count > most:
        bare = _STRING.sub(b"", raw)
        count = bare.count(b"[") + bare.count(b"{")
    if count > most:
        raise TextError(f"at most {most} arrays and objects", str(count))


def _is_shallow(raw: bytes, most: int) -> bool:
    """Return whether the brackets of a text match and nest at most so many levels, each of which is removed at once."""
    brackets = _STRING.sub(b"", raw).translate(_AS_ARRAYS, _NO_BRACKETS)
    for _ in range(most):
        if not brackets:
            break
        brackets = brackets.replace(b"[]", b"")
    return not brackets


def _check(value: Any) -> None:
    """Raise `TextError` with the path of the first repeated member or lone surrogate."""
    if isinstance(value, str):
        lone = _SURROGATE.search(value)
        if lone:
            raise TextError("Unicode text", f"a lone surrogate at character {lone.start()}")
    elif isinstance(value, (list, dict)):
        if isinstance(value, _RepeatedMember):
            raise TextError("each member once", f"{shown(value.name)} twice")
        for name, item in value.items() if isinstance(value, dict) else enumerate(value):
            if isinstance(name, str):
                _check(name)
            try:
                _check(item)
            except TextError as error:
                error.below(f"/{escape(str(name))}")
                raise


def parse_quickly(raw: bytes, above: int) -> Any:
    """Parse JSON text as `parse` does, but return None where msgspec is not exact and for every fault."""
    # msgspec turns a number beyond 64 bits into an int.
    if has_long_number(raw):
        return None
    try:
        value = loads(raw)
        members = count_members(value, above + 1)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, MessageError):
        return None
    return value if has_members(raw, members) else None


def parse_fast(text: bytes | str, above: int = 0) -> Any:
    """Return what `parse` does, sooner where msgspec is exact, and raise what it raises."""
    raw = to_bytes(text)
    value = parse_quickly(raw, above)
    return parse(raw, above) if value is None else value


def has_members(raw: bytes, members: int) -> bool:
    """Return whether a JSON text has exactly `members` members, repeated ones included, and no number `-0`.

    Return False, too, where that is hard to decide.
    """
    if b"-0" in raw and _NEGATIVE_ZERO.search(raw):
        return False
    separators = raw.count(b'":')
    escaped = raw.count(b'\\":')
    if any(colon in raw for colon in _SPACED_COLON):
        return False
    if escaped and b'\\\\"' in raw:
        # The quote in \\": is not escaped, as the backslash before it is; that in \\\": is.
        return sum(len(backslashes) % 2 == 0 for backslashes in _QUOTED_COLON.findall(raw)) == members
    return separators - escaped == members


def has_long_number(raw: bytes) -> bool:
    """Return whether a text has 19 digits in a row, as any integer beyond 64 bits has."""
    return _LONG_NUMBER.search(raw) is not None


def check_value(value: Any, depth: int) -> None:
    """Check a JSON value that is at level `depth`.

    Raises `TextError` beyond 128 levels and `StructureError` for a number that is not finite.
    """
    count_members(value, depth)


def count_members(value: Any, depth: int) -> int:
    """Return how many members all objects in a JSON value have together; the value is at level `depth`.

    Raises `TextError` beyond 128 levels and `StructureError` for a number that is not finite.
    """
    if type(value) is dict:
        items: Any = value.values()
        members = len(value)
    elif type(value) is list:
        items = value
        members = 0
    else:
        if type(value) is float:
            check_finite(value)
        return 0
    if depth > MAX_DEPTH:
        raise TextError(f"at most {MAX_DEPTH} levels", "a level more")
    is_last = depth == MAX_DEPTH
    for item in items:
        own = type(item)
        # A call for each scalar, or empty array, would take most of the time.
        if own is float or ((own is dict or own is list) and (item or is_last)):
            members += count_members(item, depth + 1)
    return members


def render(value: Any) -> bytes:
    """Return a JSON value as compact UTF-8 text, numbers digit for digit.

    >>> from cdcavro.exact.numbers import ExactNumber
    >>> render({"a": ExactNumber("1.20")})
    b'{"a":1.20}'
    """
    return orjson.dumps(value, _verbatim)


def _verbatim(value: Any) -> orjson.Fragment:
    if type(value) is ExactNumber:
        return orjson.Fragment(value.text)
    if type(value) is Decimal:
        return orjson.Fragment(decimal_text(value))
    raise TypeError(f"{type(value).__name__} is no JSON value")


def escape(name: str) -> str:
    """Return a member's name escaped as a token of a JSON pointer (RFC 6901, section 3).

    >>> escape("a/b~c")
    'a~1b~0c'
    """
    return name.replace("~", "~0").replace("/", "~1") if "~" in name or "/" in name else name


def unescape(token: str) -> str:
    """Return the name that a token of a JSON pointer stands for; the inverse of `escape`."""
    return token.replace("~1", "/").replace("~0", "~") if "~" in token else token


_KINDS: Final = {
    type(None): "null",
    bool: "boolean",
    int: "number",
    float: "number",
    ExactNumber: "number",
    Decimal: "number",
    str: "string",
    list: "array",
    dict: "object",
}


def kind(value: Any) -> str:
    """Return the name of a value's JSON type.

    >>> kind([])
    'array'
    """
    return _KINDS[type(value)]

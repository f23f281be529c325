"""Messages that were damaged or are odd: what nobody's format made, from messages that a format did make."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from random import Random

VALUES = [
    *(b"null", b"true", b"false", b"0", b"-0", b"-0.0", b"0.0", b"1.20", b"1e5", b"1E400", b"0.1", b"01", b"1.", b".5"),
    *(b"0.00001", b"0.0001", b"0.00012", b"100.0", b"4.35", b"-1.5", b"123456789.123456", b"+1", b"NaN", b"1e", b"-"),
    *(b"123456789012345.6", b"1234567890123456.7", b"0.1234567890123456", b"0.12345678901234567", b"12345678.90123456"),
    *(b"5e-324", b"1.7976931348623157", b"0.30000000000000004", b"1000000000000000.0", b"99999999999999999.0"),
    *(b"9223372036854775807", b"9223372036854775808", b"-9223372036854775808", b"-9223372036854775809"),
    *(b"2147483648", b"-2147483649", b'"5"', b'"-5"', b'"05"', b'"9223372036854775808"', b'""', b'" "'),
    *(b'"a\\u0041"', b'"\\ud83d\\ude00"', b'"\\ud83d"', b'"\\ude00\\ud83d"', b'"\\/\\b\\f\\n\\r\\t\\"\\\\"', b'"\\x"'),
    *(
        b'"\\u0000\\u001f\\u007f\\u2028"',
        b'"\xc3\xa9"',
        b'"\xff"',
        b'"\xed\xa0\x80"',
        b'"\xc0\x80"',
        b'"' + b"x" * 70 + b'"',
    ),
    *(
        b'{"a":1}',
        b'{"a":1,"a":2}',
        b'{"\\u0061":1,"a":2}',
        b'[1, 2 ,{"b" : [ ]}]',
        b"[]",
        b"{}",
        b"{ }",
        b"[ ]",
        b"[,]",
    ),
    *(b'{"x":{"y":{"y":1},"y":"\\n\\u00e9"}}', b'[1.0,1.50,1e2,-0,-0.0,"\\u0001"]', b"[" * 130 + b"]" * 130),
    *(b"[" * 120 + b"]" * 120, b'{"topic":"t","value":{}}', b'"kafka"'),
]
NAMES = [
    "extras",
    "kafka",
    "value",
    "id",
    "op",
    "type",
    "a/b~c",
    "~1",
    "é",
    'a"b',
    "",
    "\x7f",
    "gtid",
    "source",
    "table",
    "ts",
]
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|true|false|null|[{}\[\],:]')


class _Members(list):
    """The members of an object, of which a name may occur twice."""


class _Number(str):
    """A number as it is written."""

    __slots__ = ()


def mutated(random: Random, message: bytes) -> bytes:
    """Return a message changed at a few places: values, bytes, tokens, members, white space, or cut short."""
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        message = random.choice(
            (_with_value, _with_value, _with_byte, _with_token, _with_members, _with_members, _cut)
        )(random, message)
    return message


def damaged(random: Random, payload: bytes) -> bytes:
    """Return a payload with a bit flipped, a byte changed, left out or put in, a length one more or less, or cut short."""
    raw = bytearray(payload)
    for _ in range(random.choice((1, 1, 2))):
        at = random.randrange(len(raw) + 1)
        match random.randrange(6):
            case 0 if at < len(raw):
                raw[at] ^= 1 << random.randrange(8)
            case 1 if at < len(raw):
                raw[at] = random.randrange(256)
            case 2 if at < len(raw):
                del raw[at]
            case 3 if at < len(raw):  # as it is if it was no length
                raw[at] = (raw[at] + random.choice((2, -2))) % 256
            case 4 if random.random() < 0.3:
                del raw[at:]
            case _:
                raw.insert(at, random.randrange(256))
    return bytes(raw)


def _with_value(random: Random, message: bytes) -> bytes:
    tokens = list(_TOKEN.finditer(message))
    if not tokens:
        return message
    token = random.choice(tokens)
    value = random.choice(VALUES) if random.random() < 0.8 else b" " + token[0] + b"\n"
    return message[: token.start()] + value + message[token.end() :]


def _with_token(random: Random, message: bytes) -> bytes:
    tokens = list(_TOKEN.finditer(message))
    if not tokens:
        return message
    token, other = random.choice(tokens), random.choice(tokens)
    put = random.choice((b"", b"", token[0] * 2, other[0], b",", b"}"))
    return message[: token.start()] + put + message[token.end() :]


def _with_byte(random: Random, message: bytes) -> bytes:
    at = random.randrange(len(message) + 1)
    return message[:at] + bytes([random.randrange(256)]) + message[at + random.randrange(2) :]


def _cut(random: Random, message: bytes) -> bytes:
    return message[: random.randrange(len(message) + 1)] if random.random() < 0.2 else message + b" "


def _with_members(random: Random, message: bytes) -> bytes:
    try:
        value = json.loads(message, object_pairs_hook=_Members, parse_int=_Number, parse_float=_Number)
    except ValueError:
        return message
    objects = [one for one in _objects(value) if one]
    if not objects:
        return message
    members = random.choice(objects)
    at = random.randrange(len(members))
    name, member = members[at]
    match random.randrange(7):
        case 0:
            random.shuffle(members)
        case 1:
            del members[at]
        case 2:
            members.insert(random.randrange(len(members) + 1), members[at])
        case 3:
            members[at] = (random.choice([*NAMES, name + "x", name.upper()]), member)
        case 4:
            members[at] = (name, None)
        case 5:
            members.insert(
                random.randrange(len(members) + 1), (random.choice(NAMES), random.choice([None, 1, "q", True]))
            )
        case _:
            return _text(_Members([("topic", "t"), ("offset", _Number("7")), ("value", value)]), is_spaced=False)
    return _text(value, is_spaced=random.random() < 0.2)


def _objects(value: Any) -> list[_Members]:
    if isinstance(value, _Members):
        return [value, *(one for _, member in value for one in _objects(member))]
    return [one for item in value for one in _objects(item)] if isinstance(value, list) else []


def _text(value: Any, *, is_spaced: bool) -> bytes:
    space = b" " if is_spaced else b""
    if isinstance(value, _Members):
        members = [
            _quoted(name, is_spaced) + b":" + space + _text(member, is_spaced=is_spaced) for name, member in value
        ]
        return b"{" + (b"," + space).join(members) + b"}"
    if isinstance(value, _Number):
        return value.encode()
    if isinstance(value, list):
        return b"[" + (space + b",").join(_text(item, is_spaced=is_spaced) for item in value) + b"]"
    return _quoted(value, is_spaced)


def _quoted(value: Any, is_escaped: bool) -> bytes:
    return json.dumps(value, ensure_ascii=is_escaped).encode(errors="surrogatepass")

"""Marked members: what the members that a wire schema marks state, as the operation and the version of a message.

A version is remarked on only if the format's documents do not describe it.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final

import msgspec

from cdcavro.errors import shown
from cdcavro.exact.jsontext import ABSENT, at, escape, string_at
from cdcavro.exact.numbers import plain_text
from cdcavro.wire.attributes import field_rule, marked_paths, member_path
from cdcavro.wire.formats import get_format
from cdcavro.wire.kafka import KEY, VALUE, is_kafka_record

if TYPE_CHECKING:
    from cdcavro.wire.attributes import FieldRule
    from cdcavro.wire.format import Format


NONE: Final = "(none)"
TOMBSTONE: Final = "TOMBSTONE"
_KEPT: Final = 64


def operation_of(record: dict[str, Any], format: Format) -> str:
    """Return the operation of a record as spelled there, `TOMBSTONE` for a tombstone, or `(none)` if there is none.

    >>> operation_of({"payload": {"op": "UPDATE_BEFOR"}}, get_format("oms_dataworks"))
    'UPDATE_BEFOR'
    >>> operation_of({"key": {"id": 1}, "value": None}, get_format("debezium"))
    'TOMBSTONE'
    """
    record = format.message_in(record)
    for names in _members(format, "operation"):
        value = at(record, *names)
        if value is not None:
            return NONE if isinstance(value, (dict, list)) else plain_text(value)
    return TOMBSTONE if any(_is_null(record, names) for names in _members(format, "tombstone")) else NONE


def tombstone_pointers(format: str) -> list[str]:
    """Return the JSON pointers at which the `extras` of a tombstone hold null.

    >>> tombstone_pointers("debezium"), tombstone_pointers("oms_canal")
    (['/value', '/value/payload', '/payload'], [])
    """
    return [f"/{'/'.join(names)}" for names in _members(get_format(format), "tombstone")]


def operation_paths(format: str) -> list[tuple[str, ...]]:
    """Return the paths to a format's operation, each as the names of its Avro fields, outermost first.

    There are several if messages come in several shapes. Raises `UnknownFormatError`.

    >>> operation_paths("oms_dataworks")
    [('payload', 'op')]
    """
    return [tuple(field.name for field in path) for path, _ in marked_paths(get_format(format).envelope, "operation")]


def key_pointer(format: str, message: bytes = b"") -> str:
    """Return the JSON pointer to the member of a message that says which columns are the key of a row.

    That is the one of the format, or, if the message has none, the key of the Kafka record around it. Without a message
    it is that of a message that stands alone.

    >>> key_pointer("maxwell"), key_pointer("debezium")
    ('/primary_key_columns', '/key')
    >>> key_pointer("maxwell", b'{"topic":"t","key":{"pk.id":1},"value":{"type":"insert"}}')
    '/key'
    """
    declared, names = get_format(format), _names_of_key(format)
    try:
        line = msgspec.json.decode(message) if message else None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        line = None
    own = declared.message_in(line) if type(line) is dict else None
    if not names or (own is not None and at(own, *names) is None):
        return f"/{KEY}"
    above = () if own is None or own is line else (VALUE,)
    return "".join(f"/{escape(name)}" for name in (*above, *names))


def version_note(lines: bytes, format: str) -> str | None:
    """Return a sentence about the first version in some lines that the format's documents do not describe, or None.

    >>> version_note(b'{"version":"1.0","payload":{"op":"INSERT"}}', "oms_dataworks")
    "oms_dataworks: version '1.0' is read as 2.0, which is the one that is documented"
    """
    rule = _version_rule(format)
    if rule is None or not isinstance(rule.tells, tuple):
        return None
    pattern, start = _version_pattern(rule.name), 0
    while found := pattern.search(lines, start):
        start = found.end()
        if found[1].strip(b'"').decode(errors="replace") in rule.tells:
            continue
        # A line is parsed once, even if it looks several times as if it stated a version.
        version, start = _stated_version(lines, found.start(), rule.name)
        if version is not None and version not in rule.tells:
            documented = " or ".join(rule.tells)
            return f"{format}: version {shown(version)} is read as {documented}, which is the one that is documented"
    return None


def _is_null(record: Any, names: tuple[str, ...]) -> bool:
    parent = at(record, *names[:-1])
    return type(parent) is dict and parent.get(names[-1], ABSENT) is None


@lru_cache(maxsize=_KEPT)
def _members(format: Format, mark: str) -> list[tuple[str, ...]]:
    """Return the paths to the members that a wire schema marks with `mark`, each as the names of JSON members."""
    return [member_path(path) for path, _ in marked_paths(format.envelope, mark)]


def _stated_version(lines: bytes, place: int, name: str) -> tuple[str | None, int]:
    """Return the version that the message around a place states, None if it states none, and the end of its line."""
    newline = lines.find(b"\n", place)
    end = newline if newline >= 0 else len(lines)
    try:
        message: Any = msgspec.json.decode(lines[lines.rfind(b"\n", 0, place) + 1 : end])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None, end
    return string_at(at(message, VALUE) if is_kafka_record(message) else message, name), end


@cache
def _names_of_key(format: str) -> tuple[str, ...]:
    """Return the path to the member that says the columns of the key, if the wire schema marks one."""
    marked = marked_paths(get_format(format).envelope, "means")
    return next((member_path(path) for path, meaning in marked if meaning == "key"), ())


@cache
def _version_rule(format: str) -> FieldRule | None:
    """Return the rule of the member of a message that states its version, if the wire schema marks one."""
    paths = [path for path, _ in marked_paths(get_format(format).envelope, "version")]
    return field_rule(paths[0][0]) if paths else None


@cache
def _version_pattern(name: str) -> re.Pattern[bytes]:
    return re.compile(rb'"%s"\s*+:\s*+("[^"\n]*+"|[-+.0-9a-zA-Z]++)' % re.escape(name.encode()))

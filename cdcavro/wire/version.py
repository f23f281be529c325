"""The version that messages of a format state, where it is none that the format's documents describe."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec

from cdcavro.errors import shown
from cdcavro.exact.members import at, string_at
from cdcavro.wire.attributes import field_rule, marked
from cdcavro.wire.formats import get_format
from cdcavro.wire.kafka import VALUE, is_kafka_record

if TYPE_CHECKING:
    from cdcavro.wire.attributes import FieldRule


def version_note(lines: bytes, format: str) -> str | None:
    """Return a sentence about the first version in some lines that the format's documents do not describe, or None.

    >>> version_note(b'{"version":"1.0","payload":{"op":"INSERT"}}', "oms_dataworks")
    "oms_dataworks: version '1.0' is read as 2.0, which is the one that is documented"
    """
    rule = _rule(format)
    if rule is None or not isinstance(rule.tells, tuple):
        return None
    pattern, start = _pattern(rule.name), 0
    while found := pattern.search(lines, start):
        start = found.end()
        if found[1].strip(b'"').decode(errors="replace") in rule.tells:
            continue
        # The line tells its version once and for all, however often it has something like one.
        version, start = _version(lines, found.start(), rule.name)
        if version is not None and version not in rule.tells:
            documented = " or ".join(rule.tells)
            return f"{format}: version {shown(version)} is read as {documented}, which is the one that is documented"
    return None


def _version(lines: bytes, place: int, name: str) -> tuple[str | None, int]:
    """Return the version that the message states in which something like one was found, maybe in a row, and its end."""
    newline = lines.find(b"\n", place)
    end = newline if newline >= 0 else len(lines)
    try:
        message: Any = msgspec.json.decode(lines[lines.rfind(b"\n", 0, place) + 1 : end])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None, end
    return string_at(at(message, VALUE) if is_kafka_record(message) else message, name), end


@cache
def _rule(format: str) -> FieldRule | None:
    """Return the rule of the member of a message that states its version, if the wire schema marks one."""
    paths = [path for path, _ in marked(get_format(format).envelope, "version")]
    return field_rule(paths[0][0]) if paths else None


@cache
def _pattern(name: str) -> re.Pattern[bytes]:
    return re.compile(rb'"%s"\s*+:\s*+("[^"\n]*+"|[-+.0-9a-zA-Z]++)' % re.escape(name.encode()))

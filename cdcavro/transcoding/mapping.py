"""Messages to changes and back, in any format.

What a change does not hold of its message is found by comparison: the message that the format makes
of the bare changes is held against the one that came, and every difference is kept in
`Change.members`, of use to the same format only. So a message comes back whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cdcavro.change.model import Change, replace
from cdcavro.change.rows import batches, check_repeated, is_whole
from cdcavro.errors import MessageError, StructureError
from cdcavro.exact.diff import differences, same
from cdcavro.exact.instants import check_zone
from cdcavro.exact.jsontext import render
from cdcavro.exact.members import ABSENT
from cdcavro.formats import BRIDGES
from cdcavro.wire import extras
from cdcavro.wire.formats import get_format

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import tzinfo

WHOLE: Final = ""


def to_changes(message: bytes | str, format: str, *, zone: tzinfo | None = None, members: bool = True) -> list[Change]:
    """Return the changes of a message: one for each row that it holds, or one for anything else.

    `zone` is that of the source, a `zoneinfo.ZoneInfo`: times that come as text without a zone are
    instants only with it. Every row carries what its message says of all rows: a message of which that
    would make far more than it is (4 MiB and 64 times its length) is refused. Without `members` it is
    left out what only `from_changes` into the same format needs, and what takes a while to find.
    Raises `UnknownFormatError`, `TextError`, `StructureError`, `TypeError` for a `zone` that is none.

    >>> to_changes('{"meta":{"op":"del"},"data":{"id":7}}', "oms_shareplex")[0].before
    {'id': 7}
    """
    check_zone(zone)
    record = get_format(format).parse(message)
    try:
        changes = BRIDGES[format].to_changes(record, zone)
        check_repeated(changes, len(message))
        return complete(changes, record, format, zone) if members else changes
    except MessageError as error:
        error.format = format
        raise


def complete(changes: list[Change], record: Any, format: str, zone: tzinfo | None = None) -> list[Change]:
    """Return the changes of a message with what they do not hold of it as the members of the first.

    Members that it has already are notes of its format about the shape of the message.
    """
    bare = BRIDGES[format].from_changes(changes, zone)
    members = (changes[0].members or {}) | _members(bare, record)
    return [replace(changes[0], members=members), *changes[1:]] if members else changes


def from_changes(changes: Sequence[Change], format: str, *, zone: tzinfo | None = None) -> list[bytes]:
    """Return the messages of changes as UTF-8 JSON text; changes that the format has no message for give none.

    Rows that came in one message are one message again, as far as they are here and follow each other.
    `members` belong to the first row; those that tell of the rows are put in only if no row is missing.
    Raises `UnknownFormatError`; `StructureError` for the half of an update, unless the format has halves:
    `cdcavro.change.halves.join_halves` joins them; `PayloadError` for `members` that do not fit their change;
    `TypeError` for a `zone` that is none.

    >>> from_changes(to_changes('{"recordType":"HEARTBEAT"}', "oms_default"), "oms_default")
    [b'{"recordType":"HEARTBEAT"}']
    """
    check_zone(zone)
    return [render(record) for record in records(changes, format, zone)]


def records(changes: Sequence[Change], format: str, zone: tzinfo | None = None) -> list[Any]:
    """Return the messages of changes as JSON values. Raises as `from_changes`."""
    bridged = get_format(format)
    found: list[Any] = []
    for rows in batches(changes):
        if rows[0].half is not None and not bridged.rule.has_halves:
            expected = f"both halves of the update, joined, for {format}"
            raise StructureError(expected, f"the {rows[0].half} half alone", format=rows[0].source.format)
        made = BRIDGES[format].from_changes(rows, zone)
        members = _applicable(rows, bridged.rule.rows) if rows[0].source.format == format else {}
        if WHOLE in members:
            made = [bridged.parse(members[WHOLE])]
        elif members and made:
            extras.apply(made[0], members)
        found += made
    return found


def _applicable(rows: Sequence[Change], telling: Sequence[str]) -> Mapping[str, str]:
    """Return the members of a message that rows of it still have; those that tell of its rows only if all are there."""
    members = rows[0].members or {}
    if is_whole(rows):
        return members
    return {
        pointer: text
        for pointer, text in members.items()
        if pointer != WHOLE and pointer.split("/", 2)[1] not in telling
    }


def _members(bare: list[Any], record: Any) -> dict[str, str]:
    if len(bare) != 1:
        return {WHOLE: render(record).decode()}
    if same(bare[0], record):
        return {}
    return {
        pointer: "" if came is ABSENT else render(came).decode() for pointer, _, came in differences(bare[0], record)
    }

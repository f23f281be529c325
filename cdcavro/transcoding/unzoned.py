"""Times that came without a zone and stayed text, counted."""

from __future__ import annotations

from functools import cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from cdcavro.errors import json_path
from cdcavro.exact.instants import is_local
from cdcavro.exact.jsontext import escape, parse
from cdcavro.exact.sqltype import parse_sql_type
from cdcavro.wire.attributes import field_rule, marked
from cdcavro.wire.formats import REGISTRY

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cdcavro.change.model import Change

_TYPE: Final = "TIMESTAMP"


def unzoned(changes: Iterable[Change]) -> int:
    """Count the times of changes that are instants by their meaning and local text by what came.

    They are SharePlex's own times and the values of TIMESTAMP columns. They came without a zone, and
    none was given; or the zone has that time twice or never.

    >>> from cdcavro.transcoding.mapping import to_changes
    >>> unzoned(to_changes('{"meta":{"op":"ins","time":"2020-11-25T00:01:02"},"data":{"id":1}}', "oms_shareplex"))
    1
    """
    return sum(1 for _ in unzoned_places(changes))


def unzoned_places(changes: Iterable[Change]) -> Iterator[str]:
    """Return the place of each time that `unzoned` counts: `table.column`, or the path of a member of the message."""
    for change in changes:
        yield from _members(change)
        table = change.source.table or ""
        for name in [one.name for one in change.columns or () if one.type and parse_sql_type(one.type).name == _TYPE]:
            images = (change.before, change.after)
            yield from (f"{table}.{name}" for image in images if is_local(_value(image, name)))


def _members(change: Change) -> Iterator[str]:
    members = change.members or {}
    for pointer, field in _local_times(change.source.format) if members else ():
        sent = members.get(pointer)
        # One with a fraction is a member too, to come back, though it is known as an instant.
        if sent and getattr(change, field) is None and is_local(parse(sent)):
            yield json_path(pointer)


def _value(image: dict[str, Any] | None, name: str | None) -> Any:
    return None if image is None or name is None else image.get(name)


@cache
def _local_times(format: str | None) -> tuple[tuple[str, str], ...]:
    """Return the pointers to the members of a format that are local times, and the fields of a change that have them as instants."""
    if format not in REGISTRY:
        return ()
    ways = marked(REGISTRY[format].envelope, "local_time")
    return tuple(
        ("".join(f"/{escape(field_rule(field).name)}" for field in way), time)
        for way, time in sorted(ways, key=itemgetter(1))
    )

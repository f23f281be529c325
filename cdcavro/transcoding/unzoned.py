"""Counting the times that came without a zone and stayed text."""

from __future__ import annotations

from functools import cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from cdcavro.errors import json_path
from cdcavro.exact.instants import is_local
from cdcavro.exact.jsontext import escape, parse
from cdcavro.exact.sqltype import parse_sql_type
from cdcavro.wire.attributes import LOCAL, field_rule, marked
from cdcavro.wire.formats import REGISTRY

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cdcavro.change.model import Change

_TYPE: Final = "TIMESTAMP"


def unzoned(changes: Iterable[Change]) -> int:
    """Return how many times in changes mean an instant but are still local text.

    These are SharePlex's own times and the values of TIMESTAMP columns. They came without a zone, and
    either no zone was passed for the source or that local time occurs twice or never in it.

    >>> from cdcavro.transcoding.mapping import to_changes
    >>> unzoned(to_changes('{"meta":{"op":"ins","time":"2020-11-25T00:01:02"},"data":{"id":1}}', "oms_shareplex"))
    1
    """
    return sum(1 for _ in unzoned_places(changes))


def unzoned_places(changes: Iterable[Change]) -> Iterator[str]:
    """Yield the place of each time that `unzoned` counts: `table.column`, or the path of a member of the message."""
    for change in changes:
        yield from _members(change)
        table = change.source.table or ""
        for column in change.columns or ():
            if column.type and parse_sql_type(column.type).name == _TYPE:
                images = (change.before, change.after)
                values = (_value(image, column.name) for image in images)
                yield from (f"{table}.{column.name}" for value in values if is_local(value))


def _members(change: Change) -> Iterator[str]:
    members = change.members or {}
    for pointer, field in _local_times(change.source.format) if members else ():
        sent = members.get(pointer)
        # A time with a fraction is a member too, so that it comes back, although its instant is known.
        if sent and getattr(change, field) is None and is_local(parse(sent)):
            yield json_path(pointer)


def _value(image: dict[str, Any] | None, name: str | None) -> Any:
    return None if image is None or name is None else image.get(name)


@cache
def _local_times(format: str | None) -> tuple[tuple[str, str], ...]:
    """Return pointers to the members of a format that are local times, and the `Change` fields for their instants."""
    if format not in REGISTRY:
        return ()
    paths = [path for path, unit in marked(REGISTRY[format].envelope, "unit") if unit == LOCAL]
    pairs = [
        ("".join(f"/{escape(field_rule(field).name)}" for field in path), field_rule(path[-1]).part) for path in paths
    ]
    return tuple(sorted(pairs, key=itemgetter(1)))

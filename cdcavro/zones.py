"""Times that came without a zone and stayed text, counted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cdcavro.declared import declared_type
from cdcavro.formats import oms_shareplex
from cdcavro.instants import is_local
from cdcavro.text import parse

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cdcavro.change import Change

_LOCAL_TIMES: Final = {oms_shareplex.FORMAT.name: oms_shareplex.LOCAL_TIMES}
_TYPE: Final = "TIMESTAMP"


def unzoned(changes: Iterable[Change]) -> int:
    """Count the times of changes that are instants by their meaning and local text by what came.

    They are SharePlex's own times and the values of TIMESTAMP columns. They came without a zone, and
    none was given; or the zone has that time twice or never.

    >>> from cdcavro.changes import to_changes
    >>> unzoned(to_changes('{"meta":{"op":"ins","time":"2020-11-25T00:01:02"},"data":{"id":1}}', "oms_shareplex"))
    1
    """
    return sum(1 for change in changes for _ in _local_texts(change))


def _local_texts(change: Change) -> Iterator[str]:
    members = change.members or {}
    for pointer in _LOCAL_TIMES.get(change.source.format or "", ()):
        sent = members.get(pointer)
        if sent and is_local(parse(sent)):
            yield pointer
    columns = [one.name for one in change.columns or () if one.type and declared_type(one.type).name == _TYPE]
    for name in columns:
        yield from (str(name) for image in (change.before, change.after) if is_local(_value(image, name)))


def _value(image: dict[str, Any] | None, name: str | None) -> Any:
    return None if image is None or name is None else image.get(name)

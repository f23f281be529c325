"""Oracle of the forms of a current state that keep versions: all changes sorted by their order and replayed, in plain Python."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from cdcavro.lake.typed_rows import DELETE, DROP, TRUNCATE, TypedRow

Row = dict[str, Any]


class Kept(NamedTuple):
    """A version of a row: its values, those that its change stated, and the orders and times at which it began and ended."""

    values: Row
    stated: Row
    order: bytes
    begin: int | None
    end_order: bytes | None
    end: int | None
    # The order of the last change that said the same again.
    last: bytes

    @property
    def is_open(self) -> bool:
        """Whether nothing has ended it."""
        return self.end_order is None

    def ended(self, row: TypedRow, at: int | None) -> Kept:
        """Return the version as a change ended it."""
        return self._replace(end_order=row.order, end=at)


def replayed(
    rows: Iterable[TypedRow],
    image: Callable[[TypedRow], Mapping[str, Any]],
    time: Callable[[TypedRow], int | None],
    columns: Iterable[str],
    *,
    is_collapsed: bool = True,
) -> dict[bytes, list[Kept]]:
    """Return the versions of each key of one table; `image` returns what a change states, and `time` when it was made.

    With `is_collapsed`, a change that says what the one before it said, at the same time, makes no version.
    """
    nothing = dict.fromkeys(columns)
    kept: dict[bytes, list[Kept]] = {}
    every = {(one.order, one.key or b""): one for one in rows}
    for (_, key), row in sorted(every.items()):
        at = time(row)
        if row.operation in (TRUNCATE, DROP):
            for versions in kept.values():
                if versions[-1].is_open:
                    versions[-1] = versions[-1].ended(row, at)
            continue
        versions = kept.setdefault(key, []) if row.operation != DELETE else kept.get(key, [])
        last = versions[-1] if versions and versions[-1].is_open else None
        if last:
            versions[-1] = last.ended(row, at)
        if row.operation != DELETE:
            stated = dict(image(row))
            if is_collapsed and last and repr((last.stated, last.begin)) == repr((stated, at)):
                # The same again.
                versions[-1] = last._replace(last=row.order)
            else:
                values = {**(last.values if last else nothing), **stated}
                versions.append(Kept(values, stated, row.order, at, None, None, row.order))
    return kept

"""Rows of messages: which row images a change can have, which changes came in one message, and how many may.

Each row of a message carries everything the message states.
"""

from __future__ import annotations

from decimal import Decimal
from math import isfinite
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from cdcavro.change.model import Change, replace
from cdcavro.errors import StructureError
from cdcavro.exact.jsontext import escape
from cdcavro.exact.numbers import without_decimals

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cdcavro.change.model import Row

_NO_ROW: Final = frozenset(
    {"TRUNCATE", "HEARTBEAT", "TRANSACTION_BEGIN", "TRANSACTION_END", "GTID", "XACOMMIT", "XAROLLBACK"}
)
_NO_BEFORE: Final = frozenset({"INSERT", "SNAPSHOT"}) | _NO_ROW
_NO_AFTER: Final = frozenset({"DELETE"}) | _NO_ROW
_OF_A_ROW: Final = frozenset({"before", "after", "changed", "unavailable", "row", "members"})
MAX_ROWS: Final = 100_000
_FREE: Final = 4 * 1024 * 1024
_PROPORTION: Final = 64
# What is a Decimal or a float that is not finite, or may hold one.
_MAY_BE_NO_JSON: Final = (Decimal, float, dict, list, tuple)
# The characters that formats write around each text, roughly.
_BESIDE: Final = 8
_OF_ANY_MESSAGE: Final = attrgetter("source.format", "place", "rows")
_OF_THE_MESSAGE: Final = attrgetter(*(name for name in Change.__struct_fields__ if name not in _OF_A_ROW))


def check_images(change: Change, before: str, after: str, index: int | None = None) -> Change:
    """Return a change after checking that it has the row images that its operation needs, and no others.

    An image that the operation cannot have would be lost, or would make it another change. `before` and `after`
    are the JSON pointers to the images, or to arrays of images if `index` is given. Raises `StructureError`.

    >>> from cdcavro.change.model import Change
    >>> check_images(Change(op="DELETE", before={"id": 1}), "/before", "/after").before
    {'id': 1}
    """
    if change.before is not None and (change.op in _NO_BEFORE or change.half == "AFTER"):
        raise StructureError(
            f"no row before the change for {change.operation}", "some", pointer=_pointer(before, index)
        )
    if change.after is not None and (change.op in _NO_AFTER or change.half == "BEFORE"):
        raise StructureError(f"no row after the change for {change.operation}", "some", pointer=_pointer(after, index))
    if change.op == "UPDATE" and change.half is None and change.after is None and change.before is not None:
        raise StructureError(f"the row after the change for {change.operation}", "none", pointer=_pointer(after, index))
    return change


def group_rows(changes: Sequence[Change], *, is_mixed: bool = False) -> list[list[Change]]:
    """Return changes in groups, each of consecutive rows of one message.

    The numbers of the rows in the message are consecutive, and everything that belongs to the message
    is equal: operation, source, place, position, times, transaction, key, columns and statement. If a message may hold
    changes of any kind (`is_mixed`), only its place and the number of all are.

    >>> [len(rows) for rows in group_rows([Change(op="INSERT", row=0, rows=2), Change(op="DELETE", row=1, rows=2)])]
    [1, 1]
    """
    if len(changes) == 1:
        return [[*changes]]
    groups: list[list[Change]] = []
    for change in changes:
        last = groups[-1][-1] if groups else None
        of_message = _OF_ANY_MESSAGE if is_mixed else _OF_THE_MESSAGE
        if last is not None and change.row == last.row + 1 and of_message(change) == of_message(last):
            groups[-1].append(change)
        else:
            groups.append([change])
    return groups


def with_rows(change: Change, convert: Callable[[Row], Row]) -> Change:
    """Return a change with its rows converted."""
    before, after = (None if image is None else convert(image) for image in (change.before, change.after))
    return replace(change, before=before, after=after)


def plain_numbers(change: Change, format: str | None = None) -> Change:
    """Return a change in whose rows each `Decimal` is the JSON number of its digits, as all else here reads them.

    Raises `StructureError`, which names the format and the column, for a Decimal or a float that is not finite.
    """
    for image in (change.before, change.after):
        if image and not all(map(_is_plain, image.values())):
            try:
                before, after = _plain_row(change.before, "before"), _plain_row(change.after, "after")
            except StructureError as error:
                error.format = format or change.source.format
                raise
            return replace(change, before=before, after=after)
    return change


def _is_plain(value: Any) -> bool:
    return isfinite(value) if type(value) is float else not isinstance(value, _MAY_BE_NO_JSON)


def _plain_row(image: Row | None, member: str) -> Row | None:
    if image is None:
        return None
    plain = {}
    for name, value in image.items():
        try:
            plain[name] = without_decimals(value)
        except StructureError as error:
            error.below(f"/{member}/{escape(name)}")
            raise
    return plain


def check_count(rows: Sequence[Any], most: int, pointer: str = "") -> None:
    """Raise `StructureError` if a message has more than `most` rows, each of which becomes a change."""
    if len(rows) > most:
        raise StructureError(f"at most {most} rows in a message", str(len(rows)), pointer=pointer)


def check_repeated(rows: Sequence[Change], length: int) -> None:
    """Raise `StructureError` if the changes of a message are far larger than its `length` in characters.

    Each row carries what belongs to the message, above all its columns, so a message with many short
    rows and many columns would grow to the product of both. No real table comes near the bound: rows
    hold a value for each column, and for narrow tables with long types (an ENUM of 4 KB) MySQL puts at
    most 8 KB of rows into one event.
    """
    if len(rows) == 1:
        return
    most, repeated = _FREE + _PROPORTION * length, len(rows) * common_size(rows[0])
    if repeated > most:
        expected = f"at most {most} characters of what {len(rows)} rows have in common, once for each row"
        raise StructureError(expected, str(repeated))


def common_size(change: Change) -> int:
    """Return roughly how many characters a change has in common with the other rows of its message."""
    source = change.source
    texts = [change.operation, change.transaction, change.ddl, change.ddl_meta, *(change.key or ())]
    texts += [source.database, source.schema, source.table]
    texts += [text for column in change.columns or () for text in (column.name, column.type)]
    return sum(_BESIDE + len(text or "") for text in texts)


def is_whole(rows: Sequence[Change]) -> bool:
    """Return whether consecutive rows are all the rows of their message."""
    return rows[0].row == 0 and len(rows) == rows[0].rows


def _pointer(images: str, index: int | None) -> str:
    return images if index is None else f"{images}/{index}"

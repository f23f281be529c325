"""Which row images an operation can have or needs, in every format."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cdcavro.errors import StructureError, shown

if TYPE_CHECKING:
    from cdcavro.change.model import Change

_NO_ROW: Final = frozenset(
    {"TRUNCATE", "HEARTBEAT", "TRANSACTION_BEGIN", "TRANSACTION_END", "GTID", "XACOMMIT", "XAROLLBACK"}
)
_NO_BEFORE: Final = frozenset({"INSERT", "SNAPSHOT"}) | _NO_ROW
_NO_AFTER: Final = frozenset({"DELETE"}) | _NO_ROW


def check_images(change: Change, before: str, after: str, index: int | None = None) -> Change:
    """Return a change unchanged after checking that it has no row image which its operation cannot have, and lacks none.

    Such an image would be lost, or would make it another change. `before` and `after` are the JSON
    pointers to the images, or to arrays of images if `index` is given. Raises `StructureError`.

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


def check_operation(change: Change) -> None:
    """Raise `StructureError` for a change with a row, whose operation says nothing known of rows.

    >>> from cdcavro.change.model import Change
    >>> check_operation(Change(op="OTHER", operation="m"))
    """
    if change.before is not None or change.after is not None:
        expected = "an operation on a row that is known, because the message holds a row"
        raise StructureError(expected, shown(change.operation or "none"), format=change.source.format)


def _pointer(images: str, index: int | None) -> str:
    return images if index is None else f"{images}/{index}"

"""Which row images an operation can have, in every format."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cdcavro.errors import StructureError

if TYPE_CHECKING:
    from cdcavro.change.model import Change

_NO_ROW: Final = frozenset(
    {"TRUNCATE", "HEARTBEAT", "TRANSACTION_BEGIN", "TRANSACTION_END", "GTID", "XACOMMIT", "XAROLLBACK"}
)
_NO_BEFORE: Final = frozenset({"INSERT", "SNAPSHOT"}) | _NO_ROW
_NO_AFTER: Final = frozenset({"DELETE"}) | _NO_ROW


def check_images(change: Change, before: str, after: str, index: int | None = None) -> Change:
    """Return a change unchanged after checking that it has no row image which its operation cannot have.

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
    return change


def _pointer(images: str, index: int | None) -> str:
    return images if index is None else f"{images}/{index}"

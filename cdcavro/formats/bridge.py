"""The bridge between a format's records and changes: what each format's module offers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import tzinfo

    from cdcavro.change.model import Change

Record = dict[str, Any]


def _unshaped(_record: Record) -> str:
    return ""


def _in_its_own_shape(record: Record, _came: Record) -> Record:
    return record


def _as_it_is(change: Change, _came: Change) -> Change:
    return change


def _one_message(change: Change) -> Change:
    return change


def _nothing(_change: Change) -> str | None:
    return None


@dataclass(frozen=True, kw_only=True)
class Bridge:
    """What a format's module offers. The last five suit most formats as they are.

    Attributes: `to_changes`, a record and the source's zone to changes; `from_changes`, changes that
    came as the rows of one message, and the zone, to records; `shape_of`, in which of several shapes a
    record is, in words; `in_shape`, a record in the shape of the one that came; `as_sent`, a change
    that was read back, with its values spelled as in the one that came; `as_one_message`, an update
    as it is where both images stand in one message; `lack`, what a change lacks to be a message.
    """

    to_changes: Callable[[Record, tzinfo | None], list[Change]]
    from_changes: Callable[[Sequence[Change], tzinfo | None], list[Record]]
    shape_of: Callable[[Record], str] = _unshaped
    in_shape: Callable[[Record, Record], Record] = _in_its_own_shape
    as_sent: Callable[[Change, Change], Change] = _as_it_is
    as_one_message: Callable[[Change], Change] = _one_message
    lack: Callable[[Change], str | None] = _nothing

"""The bridge between a format's records and changes: the functions that each format's module offers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import tzinfo

    from cdcavro.change.model import Change

Record = dict[str, Any]


def _no_shape(_record: Record) -> str:
    return ""


def _all_available(record: Record, _word: str | None) -> tuple[Record, tuple[str, ...]]:
    return record, ()


def _no_placeholders(_word: str | None) -> tuple[bytes, ...]:
    return ()


def _unchanged_record(record: Record, _original: Record) -> Record:
    return record


def _unchanged_change(change: Change, _original: Change) -> Change:
    return change


def _already_one_message(change: Change) -> Change:
    return change


def _lacks_nothing(_change: Change) -> str | None:
    return None


@dataclass(frozen=True, kw_only=True)
class Bridge:
    """The functions that a format's module offers. The defaults of the last seven suit most formats."""

    # Converts a record, with the source's zone, to changes.
    to_changes: Callable[[Record, tzinfo | None], list[Change]]
    # Converts changes that came as the rows of one message, with the zone, to records.
    from_changes: Callable[[Sequence[Change], tzinfo | None], list[Record]]
    # Returns a record without the columns that hold a placeholder made of a word (None for no word), and their names.
    remove_unavailable: Callable[[Record, str | None], tuple[Record, tuple[str, ...]]] = _all_available
    # Returns the texts of the placeholders made of a word.
    placeholders: Callable[[str | None], tuple[bytes, ...]] = _no_placeholders
    # Says in words which of several shapes a record has.
    shape_of: Callable[[Record], str] = _no_shape
    # Puts a record into the shape of an original.
    reshape: Callable[[Record, Record], Record] = _unchanged_record
    # Spells the values of a change that was read back as they are spelled in an original.
    restore_values: Callable[[Change, Change], Change] = _unchanged_change
    # Turns an update into what it is when one message holds both images.
    as_one_message: Callable[[Change], Change] = _already_one_message
    # Says what a change lacks to be a message, None if nothing.
    missing_part: Callable[[Change], str | None] = _lacks_nothing

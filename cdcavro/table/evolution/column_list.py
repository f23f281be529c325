"""What statements and messages declare of a column, in whichever spelling: its type, and its default."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from cdcavro.exact.sqltype import canonical
from cdcavro.table.evolution.promotion import without_attributes

if TYPE_CHECKING:
    from collections.abc import Sequence


ColumnMarks = frozenset[tuple[Any, ...]]


class ColumnList(NamedTuple):
    """What a list of columns says.

    Attributes: `declared`, names, types as they are declared, in one spelling, and as they are held;
    `held`, names and types as they are held: a version that has these is one that the list fits.
    """

    declared: ColumnMarks
    held: ColumnMarks


def mark_of(name: str | None, declared: str | None, avro: Any) -> tuple[Any, ...]:
    """Return what statements of one column have in common, however they spell its type."""
    return name, json.dumps(without_attributes(avro), sort_keys=True), canonical(declared)


def listed_of(marks: Sequence[tuple[Any, ...]]) -> ColumnList:
    """Return what a list of columns says by those of its columns."""
    return ColumnList(frozenset(marks), frozenset(one[:2] for one in marks))

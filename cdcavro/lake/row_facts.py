"""Facts of a batch of a table's typed rows, and the properties by which its current state remembers them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cdcavro.change.order_value import KINDS, is_of_full_load, order_kind
from cdcavro.errors import OrderError, SchemaError
from cdcavro.lake.sql_statements import FLOOR
from cdcavro.lake.typed_rows import DELETE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# What orders the changes, one of `KINDS`.
KIND: Final = "cdcavro.order"
# That changes lack columns.
PARTIAL: Final = "cdcavro.partial"
# That there is a table of deletes.
GUARDED: Final = "cdcavro.deletes"
# The version whose values all rows have, also older ones: after a kill between two steps, the rest is still to be done.
FILLED: Final = "cdcavro.filled"
# A new value for each attempt to create the table: the attempt whose value it has created it.
CREATED: Final = "cdcavro.created"
# The suffix of the table of deletes.
DELETES_TABLE: Final = "deletes"


class RowFacts(NamedTuple):
    """What a batch of a table's typed rows holds."""

    # The order of its last TRUNCATE or DROP.
    floor: bytes | None
    # How many deletes, rows without a key, and rows that lack columns it has.
    deletes: int
    keyless: int
    partial: int
    # The first two bytes of its orders.
    begins: list[bytes]


def facts_of_parts(facts: Sequence[RowFacts]) -> RowFacts:
    """Return what several batches hold together."""
    floors = [one.floor for one in facts if one.floor is not None]
    begins = sorted({begin for one in facts for begin in one.begins})
    deletes, keyless, partial = (sum(numbers) for numbers in zip(*[one[1:4] for one in facts], strict=True))
    return RowFacts(max(floors, default=None), deletes, keyless, partial, begins)


def facts_of_summary(summary: Mapping[str, Any]) -> RowFacts:
    """Return what a batch holds of a table, according to a summary of tasks."""
    floor = bytes.fromhex(summary["floor"]) or None
    begins = [bytes.fromhex(begin) for begin in summary["begins"]]
    return RowFacts(floor, summary["ops"].get(DELETE, 0), summary["keyless"], summary["partial"], begins)


def stated_properties(table: str, facts: RowFacts, properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties that a current state has with a batch: floor, order of changes, whether they lack columns.

    `table` is what errors call it, and `properties` are those that it has. Raises `SchemaError` for rows without a
    key, and `OrderError` if different things order the changes.
    """
    if facts.keyless:
        raise SchemaError(table, f"{facts.keyless} rows have no key, and so no current state")
    known = {properties[KIND]} if KIND in properties else set()
    kinds = _kinds(facts) | known
    if len(kinds) > 1:
        listed = sorted(kinds, key=KINDS.index, reverse=True)
        raise OrderError(None, table, " and some with ".join([f"some with {listed[0]}", *listed[1:]]))
    floor = max(facts.floor or b"", bytes.fromhex(properties.get(FLOOR, "")))
    stated = {FLOOR: floor.hex()} if floor else {}
    stated |= dict.fromkeys([KIND] if kinds else [], "".join(kinds))
    flags = {PARTIAL: facts.partial, GUARDED: facts.deletes}
    return stated | {name: "true" for name, count in flags.items() if count or name in properties}


def first_properties(facts: RowFacts | None) -> dict[str, str]:
    """Return what a current state that is created for a batch says at once; nothing of a batch that is refused."""
    if facts is None or facts.keyless or len(_kinds(facts)) > 1:
        return {}
    return stated_properties("", facts, {})


def _kinds(facts: RowFacts) -> set[str]:
    """Return what orders the changes of a batch, without those of a full load, which have an order of their own."""
    return {order_kind(begin) for begin in facts.begins if not is_of_full_load(begin)}

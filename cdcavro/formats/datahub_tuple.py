"""Records of DataHub Tuple topics (`avsc/datahub_tuple.avsc`).

Source: DataHub message formats, "Tuple data format", English and Chinese.

* As text, a record is one JSON object: metadata columns, whose names begin and end with an underscore, beside the
  table's own.
* `_excute_time_` (sic). `_operation_type_` is in the samples but in no list of columns, so it may be absent.
* There are no DDL statements and no heartbeats. A table column with the name of a metadata column has no place here.
* A row of a full load has the id -1, as in Blob topics. The documents say so of neither; real Blob messages, which
  the same product writes, show it. No number orders such a row, and without `_operation_type_` it has no other half.
* A change of another format gets an id made from its position (see `sequence_id`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cdcavro.change.model import Change, Row, Source
from cdcavro.change.operations import read_operation, spell_operation
from cdcavro.errors import StructureError
from cdcavro.exact.instants import MILLISECOND, from_count, to_count
from cdcavro.exact.jsontext import drop_nulls, string_at
from cdcavro.formats.bridge import Bridge
from cdcavro.formats.datahub_blob import FULL_LOAD, sequence_id, sequence_position
from cdcavro.wire.formats import rule_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import tzinfo

FORMAT: Final = "datahub_tuple"
OPERATIONS: Final = {"I": "INSERT", "U": "UPDATE", "D": "DELETE"}
SPELLINGS: Final = {op: spelling for spelling, op in OPERATIONS.items()} | {"SNAPSHOT": "I"}
METADATA: Final = (
    "_sequence_id_",
    "_operation_type_",
    "_excute_time_",
    "_source_table_",
    "_before_image_",
    "_after_image_",
)
_IMAGES: Final = {("Y", "N"): "BEFORE", ("N", "Y"): "AFTER"}


def to_changes(record: dict[str, Any], _zone: tzinfo | None = None) -> list[Change]:
    """Return the change of a Tuple record; each of the two records of an update is a half.

    Without `_operation_type_`, the images alone cannot distinguish an insert from the second half of an
    update: the change is then a half, to be paired by `_sequence_id_`. Raises `StructureError` for a
    record without metadata columns, which is not a change, and for images that contradict the operation.
    """
    if not any(name in record for name in METADATA):
        raise StructureError(f"one of the metadata columns {', '.join(METADATA)}", "none")
    operation = string_at(record, "_operation_type_")
    images = (string_at(record, "_before_image_"), string_at(record, "_after_image_"))
    side = _IMAGES.get((images[0] or "", images[1] or ""))
    if side is None:
        raise StructureError("Y and N, or N and Y, as _before_image_ and _after_image_", f"{images[0]} and {images[1]}")
    op = "UPDATE" if operation is None else read_operation(operation, OPERATIONS)
    number = string_at(record, "_sequence_id_")
    if number == FULL_LOAD and side == "AFTER" and (operation is None or op == "INSERT"):
        op = "SNAPSHOT"
    if (op, side) in (("INSERT", "BEFORE"), ("DELETE", "AFTER")):
        raise StructureError(f"the other image for {operation}", f"the row {side.lower()} the change")
    row = {name: value for name, value in record.items() if name not in METADATA}
    change = Change(
        op=op,
        half=side if op == "UPDATE" else None,
        operation=operation,
        source=Source(format=FORMAT, table=string_at(record, "_source_table_")),
        before=row if side == "BEFORE" else None,
        after=row if side == "AFTER" else None,
        position=sequence_position(number),
        event_time=from_count(record.get("_excute_time_"), MILLISECOND),
    )
    return [change]


def from_changes(changes: Sequence[Change], _zone: tzinfo | None = None) -> list[dict[str, Any]]:
    """Return the Tuple records of changes, two for each update.

    The id is made from the position and the row, so that no two rows of a message share one. Several
    messages may have the same position, such as those of a Canal batch; a `Transcoder` adds the number
    of the message. Statements, heartbeats and transaction marks have no records, nor has an update with
    only one image or without a number for its two records to share.
    """
    return [
        _record(change, image, side)
        for change in changes
        if _has_records(change)
        for image, side in ((change.before, "BEFORE"), (change.after, "AFTER"))
        if image is not None
    ]


def missing_part(change: Change) -> str | None:
    """Return what a whole update lacks to become two records; None if it lacks nothing, or is no whole update."""
    if change.op != "UPDATE" or change.half is not None:
        return None
    if change.before is None or change.after is None:
        return f"the row {'before' if change.before is None else 'after'} the change"
    return "a number that both images share" if _sequence(change) is None else None


def _has_records(change: Change) -> bool:
    if change.op == "UPDATE":
        return missing_part(change) is None
    return change.half is not None or spell_operation(change, FORMAT, SPELLINGS) is not None


def _sequence(change: Change) -> str | None:
    """Return the id of a change, made from its position and, where a message may hold several rows, its row."""
    if change.op == "SNAPSHOT":
        return FULL_LOAD
    position = change.position
    if position is not None and (change.rows > 1 or rule_of(change.source.format).batched):
        position = (*position, change.row)
    return sequence_id(position)


def _record(change: Change, image: Row, side: str) -> dict[str, Any]:
    metadata = {
        "_sequence_id_": _sequence(change),
        "_operation_type_": _operation(change),
        "_excute_time_": to_count(change.event_time, MILLISECOND),
        "_source_table_": change.source.table,
        "_before_image_": "Y" if side == "BEFORE" else "N",
        "_after_image_": "Y" if side == "AFTER" else "N",
    }
    return {name: value for name, value in image.items() if name not in METADATA} | drop_nulls(metadata)


def _operation(change: Change) -> str | None:
    """Return the spelling of the operation; a half that came without one is not known to belong to an update."""
    is_tuple = change.source.format == FORMAT
    return change.operation if is_tuple and change.half is not None else spell_operation(change, FORMAT, SPELLINGS)


BRIDGE: Final = Bridge(to_changes=to_changes, from_changes=from_changes, missing_part=missing_part)

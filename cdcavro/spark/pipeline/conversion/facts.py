"""What a task knows when it begins, and what the driver has to know of its typed rows, by table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from cdcavro.lake.typed_rows import DELETE, DROP, TRUNCATE
from cdcavro.spark.pipeline.settings import Chosen

if TYPE_CHECKING:
    from cdcavro.spark.pipeline.settings import Formats, RegistrySettings
    from cdcavro.table.tables import Tables

# Why a message is refused: format, path, message.
Fault = Mapping[str, str | None]
_ENDS: Final = (TRUNCATE, DROP)
_BEGIN: Final = 2


@dataclass(frozen=True)
class Knowledge:
    """What a task knows when it begins: everything that was learned before, and of the whole batch if `is_all`.

    Attributes: `tables` (`Tables`); `clock` (list), as `Clock.state`; `formats` (`Formats`); `unavailable`, as in
    `to_changes`; `dropped`, as in `Learned`; `faults`, why statements were refused, by `identity_of` them; `chosen`
    (`Chosen`), which tables are wanted; `left_out` (frozenset of int), the numbers of those known that are not; `is_strict` (bool), whether a misfit ends the job;
    `is_reduced` (bool), whether of each key only the last change is wanted; `framed`, as in `Settings`.
    """

    tables: Tables
    clock: list[Any]
    formats: Formats
    unavailable: str | None
    dropped: Mapping[bytes, tuple[int, ...]] = field(default_factory=dict)
    faults: Mapping[bytes, Fault] = field(default_factory=dict)
    chosen: Chosen = field(default_factory=Chosen)
    left_out: frozenset[int] = frozenset()
    is_all: bool = False
    is_strict: bool = False
    is_reduced: bool = False
    framed: RegistrySettings | None = None


class TaskFacts:
    """Facts of rows as they are added. Attributes: `tables` (dict from number to a dict), as JSON."""

    def __init__(self) -> None:
        self.tables: dict[int, dict[str, Any]] = {}

    def add(self, rows: pa.RecordBatch | pa.Table) -> None:
        """Add rows, with the columns of `placing.ROWS`."""
        order = rows.column("order")
        told = pa.table(
            {
                "number": rows.column("number"),
                "operation": rows.column("operation"),
                "begin": pc.binary_slice(order, 0, _BEGIN),
                "keyless": rows.column("key").is_null(),
                "lacks": rows.column("lacks"),
            }
        )
        kinds = told.group_by(told.column_names).aggregate([([], "count_all")])
        for kind in kinds.to_pylist():
            facts = self.tables.setdefault(
                kind["number"], {"floor": "", "begins": [], "partial": 0, "keyless": 0, "ops": {}}
            )
            count, operation, begin = kind["count_all"], kind["operation"], kind["begin"].hex()
            facts["ops"][operation] = facts["ops"].get(operation, 0) + count
            facts["begins"] = sorted({*facts["begins"], begin})
            if operation not in _ENDS:
                facts["keyless"] += count if kind["keyless"] else 0
                facts["partial"] += count if kind["lacks"] and operation != DELETE else 0
        ends = rows.filter(pc.is_in(rows.column("operation"), pa.array(_ENDS)))
        for row in ends.select(["number", "order"]).to_pylist():
            facts = self.tables[row["number"]]
            facts["floor"] = max(facts["floor"], row["order"].hex())

"""What the driver has to know of the typed rows of a task, by table."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from cdcavro.lake.row import DELETE, DROP, TRUNCATE

_ENDS: Final = (TRUNCATE, DROP)
_BEGIN: Final = 2


class TaskFacts:
    """Facts of rows as they are added. Attributes: `tables` (dict from number to a dict), as JSON."""

    def __init__(self) -> None:
        self.tables: dict[int, dict[str, Any]] = {}

    def add(self, rows: pa.RecordBatch) -> None:
        """Add rows, in a batch of `placing.ROWS`."""
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

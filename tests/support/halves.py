"""Messages of DataHub's Blob topics, which send an update as two halves."""

from __future__ import annotations

import json
from typing import Any

Row = dict[str, Any]


def blob(op: str, number: int, before: Row | None = None, after: Row | None = None, table: str = "t") -> bytes:
    """Return a message of a Blob topic."""
    images = {"before": before, "after": after}
    payload = {name: {"dataColumn": row} for name, row in images.items() if row is not None}
    columns = [{"name": "id", "type": "LONG"}, {"name": "v", "type": "STRING"}]
    source = {"dbType": "MySQL", "dbName": "d", "tableName": table}
    schema = {"dataColumn": columns, "primaryKey": ["id"], "source": source}
    stated = {"op": op, "sequenceId": str(number), "timestamp": {"eventTime": 1_700_000_000_000 + number}, **payload}
    return json.dumps({"schema": schema, "payload": stated, "version": "0.0.1"}).encode()

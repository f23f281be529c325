"""Records of Kafka's as Debezium's ExtractNewRecordState leaves them with `add.headers`, and a pipeline that reads them."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cdcavro.sync.outputs.reject_places import replay
from cdcavro.sync.settings import Formats
from support.kafka_server import Broker, Record

FORMAT = Formats("debezium_flat")
BEGIN = b"\x05headers"


def members(op: str, at: int, table: str = "orders") -> dict[str, Any]:
    """Return what `add.headers` adds to a change of MySQL's; `at` is its place in the binlog."""
    place = {"__source_ts_ms": 1_700_000_000_000 + at, "__file": "binlog.000012", "__pos": at, "__row": None}
    return {"__op": op, "__db": "shop", "__table": table, **place}


def record(topic: str, id: int, row: Mapping[str, Any] | None, stated: Mapping[str, Any]) -> Record:
    """Return a record with the key of a row, and headers as Kafka Connect's simple converter writes them."""
    value = None if row is None else _text({"id": id, **row})
    own = [(name, None if value is None else str(value).encode()) for name, value in stated.items()]
    headers: Any = (("traceparent", b"\xff"), *own)
    return Record(topic, 0, _text({"id": id}), value, headers)


def _text(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def check_pipeline(made: Any, kafka: Broker, topic: str) -> None:
    """Run a pipeline over a topic whose operations, tables and positions are in headers only, and read rejects again.

    A delete has no value, or is rewritten. An update contradicts itself and stays a reject; a delete without a value names
    no table, and becomes one when it is read again with a table for it.
    """
    unnamed = {name: value for name, value in members("d", 95).items() if name not in ("__db", "__table")}
    kafka.send(
        [
            record(topic, 1, {"n": "a"}, members("c", 10)),
            record(topic, 2, {"n": "b"}, members("c", 20)),
            record(topic, 9, {"n": "x"}, members("r", 30, "clients")),
            record(topic, 3, {"n": "c"}, members("c", 40)),
            record(topic, 4, {"n": "d"}, members("c", 50)),
            record(topic, 2, None, members("d", 60)),
            record(topic, 4, {"n": "d", "__deleted": "true"}, members("d", 70)),
            record(topic, 3, {"n": "cc", "__deleted": "false"}, members("u", 80)),
            record(topic, 1, {"n": "aa", "__op": "c"}, members("u", 90)),
            record(topic, 3, None, unnamed),
        ]
    )
    (report,) = made.run(formats=FORMAT)
    assert [report.counts[name] for name in ("read", "written", "rejected")] == [10, 8, 2]
    assert made.rows("shop.orders", "id", "n") == [("1", "a"), ("3", "cc")]
    assert made.rows("shop.clients", "id", "n") == [("9", "x")]
    rejects = Path(made.folder) / "state" / "rejects"
    other, nameless = _lines(rejects)
    sentence = "debezium_flat: $.value.__op: expected what the header __op says, '\"u\"', got '\"c\"'"
    assert (other["path"], other["reason"]) == ("$.value.__op", sentence)
    assert b64decode(other["raw"]).startswith(BEGIN + b'["__op","u","__db","shop",')
    assert b64decode(other["raw"]).endswith(b'\n{"id":1,"n":"aa","__op":"c"}')
    assert "a message that names its table" in nameless["reason"]
    assert b64decode(nameless["raw"]).startswith(BEGIN + b'["__op","d","__source_ts_ms",')
    replay(rejects, Path(made.folder) / "state" / "replay")
    (report,) = made.run(formats=FORMAT, options={"table": "shop.orders"})
    assert [report.counts[name] for name in ("read", "rejected")] == [2, 1]
    assert made.rows("shop.orders", "id", "n") == [("1", "a")]
    found = [one for one in _lines(rejects) if one["offset"] == other["offset"]]
    assert {(one["raw"], one["reason"]) for one in found} == {(other["raw"], sentence)}


def _lines(rejects: Path) -> list[dict[str, Any]]:
    """Return the rejects in a folder, in the order of their messages."""
    files = [path for path in rejects.rglob("*.json*") if path.suffix != ".crc"]
    return sorted((json.loads(line) for path in files for line in path.open()), key=lambda one: one["offset"])

"""Keeps tables by hand, in one process: what `local.py` measures the local runner beside.

    python tests/benchmarks/local_by_hand.py delta|iceberg current|changelog FOLDER files PATH
    python tests/benchmarks/local_by_hand.py delta|iceberg current|changelog FOLDER kafka SERVERS TOPIC

As one writes it with `json`, pyarrow and delta-rs or pyiceberg: the columns of all tables are known beforehand, statements are
passed over, columns are cast, a message that is none ends the script. A changelog is appended to; of a current state, the
last change of each key is merged. What was read is in a file of JSON. There is no order but that of arrival, nothing guards
against a crash between two tables, and no column says which change a row is of.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

COLUMNS = {
    "id": pa.int64(),
    "n": pa.int32(),
    "name": pa.string(),
    "price": pa.decimal128(12, 2),
    "at": pa.timestamp("us"),
    "nothing": pa.int32(),
    "part": pa.float64(),
    "code": pa.string(),
    "note": pa.string(),
}
GONE = "gone"
OPERATION = "op"
# More keys in one `upsert` of pyiceberg's take minutes.
KEYS = 500

Row = dict[str, Any]


def file_messages(path: Path, position: Any) -> Iterator[bytes]:
    """Yield the lines of the files that were not read yet; `position` has the names of the others."""
    for file in sorted(path.iterdir()):
        if file.name not in position:
            position[file.name] = True
            with file.open("rb") as lines:
                yield from lines


def topic_messages(servers: str, topic: str, position: Any) -> Iterator[bytes]:
    """Yield the messages of a topic from the offsets in `position` to its end."""
    from confluent_kafka import Consumer, TopicPartition  # noqa: PLC0415  files do without

    client = Consumer({"bootstrap.servers": servers, "group.id": "by-hand", "enable.auto.commit": False})
    for number in client.list_topics(topic, timeout=60).topics[topic].partitions:
        _, end = client.get_watermark_offsets(TopicPartition(topic, number), timeout=60)
        start = position.get(str(number), 0)
        left, position[str(number)] = end - start, end
        client.assign([TopicPartition(topic, number, start)])
        while left > 0:
            records = client.consume(min(left, 10_000), 60)
            left -= len(records)
            yield from (record.value() for record in records)
    client.close()


def changes(messages: Iterator[bytes]) -> Iterator[tuple[str, str, Row, Row | None]]:
    """Yield the table, the operation, the row and the row before of each change."""
    for text in messages:
        message = json.loads(text)
        if not message["isDdl"]:
            for i, row in enumerate(message["data"]):
                old = {**row, **message["old"][i]} if message["old"] else None
                yield message["table"], message["type"], row, old


def last_changes(found: Iterator[tuple[str, str, Row, Row | None]]) -> dict[str, list[Row]]:
    """Return the last change of each key by table; of what is gone, the key."""
    tables: dict[str, dict[str, Row]] = {}
    for table, type, row, old in found:
        rows = tables.setdefault(table, {})
        if old is not None and old["id"] != row["id"]:
            rows[old["id"]] = {"id": old["id"], GONE: True}
        rows[row["id"]] = {"id": row["id"], GONE: True} if type == "DELETE" else row
    return {table: list(rows.values()) for table, rows in tables.items()}


def all_changes(found: Iterator[tuple[str, str, Row, Row | None]]) -> dict[str, list[Row]]:
    """Return the rows of changelogs by table."""
    tables: dict[str, list[Row]] = {}
    for table, type, row, old in found:
        rows = tables.setdefault(table, [])
        if old is None:
            rows.append({**row, OPERATION: type[0].lower()})
        elif old["id"] != row["id"]:
            rows += [{**old, OPERATION: "d"}, {**row, OPERATION: "c"}]
        else:
            rows += [{**old, OPERATION: "b"}, {**row, OPERATION: "u"}]
    return tables


def typed(rows: list[Row], own: str) -> pa.Table:
    """Return rows as their columns declare them, with a column of this script's own."""
    columns = {
        name: pc.cast(pa.array([row.get(name) for row in rows], pa.string()), to) for name, to in COLUMNS.items()
    }
    kind = pa.bool_() if own == GONE else pa.string()
    return pa.table({**columns, own: pa.array([row.get(own, False) for row in rows], kind)})


class DeltaTables:
    """Tables of Delta Lake in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def append(self, name: str, rows: pa.Table) -> None:
        """Append rows."""
        from deltalake import write_deltalake  # noqa: PLC0415  one library of two

        write_deltalake(str(self.folder / name), rows, mode="append")

    def merge(self, name: str, rows: pa.Table) -> None:
        """Merge rows."""
        from deltalake import DeltaTable  # noqa: PLC0415

        path = str(self.folder / name)
        if not DeltaTable.is_deltatable(path):
            self.append(name, rows.filter(pc.invert(rows[GONE])).drop_columns([GONE]))
            return
        merge = DeltaTable(path).merge(rows, "t.id = s.id", source_alias="s", target_alias="t")
        values = {f"`{column}`": f"s.`{column}`" for column in COLUMNS}
        merge.when_matched_delete("s.gone").when_matched_update(values).when_not_matched_insert(
            values, "not s.gone"
        ).execute()


class IcebergTables:
    """Tables of Iceberg in a folder, whose catalog is a file of SQLite's."""

    def __init__(self, folder: Path) -> None:
        from pyiceberg.catalog.sql import SqlCatalog  # noqa: PLC0415

        folder.mkdir(exist_ok=True)
        self.catalog = SqlCatalog("ice", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")
        self.catalog.create_namespace_if_not_exists("shop")

    def append(self, name: str, rows: pa.Table) -> None:
        """Append rows."""
        self.catalog.create_table_if_not_exists(f"shop.{name}", rows.schema).append(rows)

    def merge(self, name: str, rows: pa.Table) -> None:
        """Merge rows, some keys at a time."""
        from pyiceberg.expressions import In  # noqa: PLC0415

        standing = rows.filter(pc.invert(rows[GONE])).drop_columns([GONE])
        if not self.catalog.table_exists(f"shop.{name}"):
            self.append(name, standing)
            return
        table = self.catalog.load_table(f"shop.{name}")
        gone = rows.filter(rows[GONE])["id"].to_pylist()
        if gone:
            table.delete(In("id", gone))
        for start in range(0, len(standing), KEYS):
            table.upsert(standing.slice(start, KEYS), join_cols=["id"])


def main() -> None:
    """Take what there is into tables."""
    kind, into, folder, source, *where = sys.argv[1:]
    root = Path(folder)
    root.mkdir(exist_ok=True)
    tables = {"delta": DeltaTables, "iceberg": IcebergTables}[kind](root / "lake")
    read = root / "read.json"
    position = json.loads(read.read_text()) if read.exists() else {}
    texts = file_messages(Path(where[0]), position) if source == "files" else topic_messages(*where, position)
    if into == "changelog":
        for name, rows in all_changes(changes(texts)).items():
            tables.append(name, typed(rows, OPERATION))
    else:
        for name, rows in last_changes(changes(texts)).items():
            tables.merge(name, typed(rows, GONE))
    read.write_text(json.dumps(position))


if __name__ == "__main__":
    main()

"""A pipeline that the local runner and Spark run in turns, in one folder and one lake, and what is there in the end."""

from __future__ import annotations

import json
import shutil
from base64 import b64decode
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from cdcavro.errors import FileError, JobError
from cdcavro.lake.evolution import EXCEPTION, LENIENT
from cdcavro.lake.job_state import JobState
from cdcavro.lake.lakes import CURRENT, SUFFIXES
from cdcavro.lake.sql_statements import AT
from cdcavro.spark.lake import Delta, Iceberg
from cdcavro.spark.lake.sinks import Sink, properties_of
from cdcavro.spark.pipeline import Formats
from cdcavro.spark.pipeline.lake_tables import LakeTables
from cdcavro.sync.native.native_tables import NativeTables
from cdcavro.sync.outputs.reject_places import replay
from cdcavro.sync.pipeline import JOB
from cdcavro.table import TableName
from support.local_pipelines import DELTA, LocalJob, lake_section
from support.messages import canal
from support.pipelines import Job

# The local runner, Spark, and Spark whose driver writes small batches.
LOCAL, SPARK, DRIVER = "local", "spark", "driver"
# What each table has of its own, or a library writes of itself.
_OWN = frozenset({"cdcavro.created", "owner", "current-snapshot-id", "delta.columnMapping.maxColumnId"})
_KEYS = {"k": None}


# How a lake table is to be read depends on who widened a column: Spark notes the older type, `deltalake` writes files anew.
_PROTOCOL = ("delta.minReaderVersion", "delta.minWriterVersion", "delta.feature.")


def _row(id: int, table: str, type: str, row: dict[str, Any], kinds: str = "", **more: Any) -> bytes:
    """Return a change of Canal's; `kinds` are the types of columns, int if they are not given."""
    texts = {name: None if value is None else str(value) for name, value in row.items()}
    declared = dict(zip(row, kinds.split() or ["int"] * len(row), strict=True))
    key = _KEYS.get(table, ["id"])
    return canal(type, [texts], id=id, table=table, mysqlType=declared, pkNames=key, **more)


def _statement(id: int, table: str, type: str, sql: str) -> bytes:
    return canal(type, [], id=id, table=table, isDdl=True, sql=sql)


def _partial(lsn: int, op: str, id: int, doc: str | None, n: int) -> bytes:
    """Return a change of Debezium's from PostgreSQL, which leaves a large value out that did not change."""
    image = {"id": id, "n": n, "doc": "__debezium_unavailable_value" if doc is None else doc}
    source = {
        "version": "3.5.0.Final",
        "connector": "postgresql",
        "name": "pg",
        "ts_ms": 1_700_000_000_000 + lsn,
        "snapshot": "false",
        "db": "d",
        "sequence": f'["{lsn - 1}","{lsn}"]',
        "schema": "public",
        "table": "p",
        "txId": lsn,
        "lsn": lsn,
        "xmin": None,
    }
    images = {"before": image, "after": None} if op == "d" else {"before": None, "after": image}
    value = {**images, "source": source, "op": op, "ts_ms": 1_700_000_000_000 + lsn, "transaction": None}
    return json.dumps({"topic": "pg.public.p", "key": {"id": id}, "value": value}).encode()


_T = "int int varchar(10)"
_FIRST = [
    _statement(1, "t", "CREATE", "CREATE TABLE t (id int PRIMARY KEY, a int, n varchar(10))"),
    *[_row(10 + i, "t", "INSERT", {"id": i, "a": i * 10, "n": f"n{i}"}, _T) for i in range(1, 6)],
    *[_row(20 + i, "k", "INSERT", {"id": 1, "a": i % 2}) for i in range(3)],
    _statement(30, "g", "CREATE", "CREATE TABLE g (id int PRIMARY KEY, x decimal(10,2))"),
    *[_row(31 + i, "g", "INSERT", {"id": i, "x": "1.50"}, "int decimal(10,2)") for i in range(3)],
    _partial(100, "c", 1, "one", 1),
    _partial(101, "c", 2, "two", 2),
    b"\xff no message",
]
_SECOND = [
    _row(41, "t", "UPDATE", {"id": 1, "a": 11, "n": "n1"}, _T, old=[{"a": "10"}]),
    _row(42, "t", "DELETE", {"id": 2, "a": 20, "n": "n2"}, _T),
    _row(43, "t", "UPDATE", {"id": 30, "a": 30, "n": "n3"}, _T, old=[{"id": "3"}]),
    _row(44, "t", "INSERT", {"id": 6, "a": "x", "n": "misfit"}, _T),
    _row(45, "k", "DELETE", {"id": 1, "a": 0}),
    _row(46, "g", "UPDATE", {"id": 1, "x": "2.50"}, "int decimal(10,2)", old=[{"x": "1.50"}]),
    _partial(102, "u", 1, None, 11),
    _partial(103, "u", 3, None, 33),
    _partial(104, "d", 2, "two", 2),
]
# The messages of each batch.
BATCHES: Sequence[Sequence[bytes]] = [
    _FIRST,
    _SECOND,
    [
        _statement(51, "t", "ALTER", "ALTER TABLE t ADD COLUMN b INT AFTER id"),
        _row(52, "t", "INSERT", {"id": 7, "a": 70, "n": "n7", "b": 7}, f"{_T} int"),
        _row(53, "t", "DELETE", {"id": 4, "a": 40, "n": "n4", "b": None}, f"{_T} int"),
        _row(54, "k", "INSERT", {"id": 2, "a": 2}),
        _partial(105, "u", 1, "changed", 12),
    ],
    [
        _statement(61, "t", "ALTER", "ALTER TABLE t CHANGE n m varchar(10)"),
        _row(62, "t", "UPDATE", {"id": 7, "a": 70, "m": "m7", "b": 8}, f"{_T} int", old=[{"m": "n7", "b": "7"}]),
        _row(63, "g", "DELETE", {"id": 2, "x": "1.50"}, "int decimal(10,2)"),
        _partial(106, "u", 1, None, 13),
        b"{",
    ],
    [
        _statement(71, "t", "ALTER", "ALTER TABLE t MODIFY a BIGINT"),
        _row(72, "t", "INSERT", {"id": 8, "a": 1 << 40, "m": "m8", "b": 8}, "int bigint varchar(10) int"),
        _statement(73, "g", "TRUNCATE", "TRUNCATE TABLE g"),
        _row(74, "g", "INSERT", {"id": 5, "x": "5.00"}, "int decimal(10,2)"),
        _row(75, "k", "INSERT", {"id": 3, "a": 3}),
    ],
    [
        _statement(81, "t", "ALTER", "ALTER TABLE t DROP COLUMN b"),
        _row(82, "t", "UPDATE", {"id": 8, "a": 9, "m": "m9"}, "int bigint varchar(10)", old=[{"a": "8", "m": "m8"}]),
        _statement(83, "g", "ALTER", "ALTER TABLE g MODIFY x decimal(12,2)"),
        _row(84, "g", "INSERT", {"id": 6, "x": "6000000000.00"}, "int decimal(12,2)"),
        _partial(107, "d", 1, "changed", 13),
    ],
    [
        _statement(91, "g", "ERASE", "DROP TABLE g"),
        _statement(92, "g", "CREATE", "CREATE TABLE g (id int PRIMARY KEY, y varchar(5))"),
        _row(93, "g", "INSERT", {"id": 1, "y": "again"}, "int varchar(5)"),
        _row(94, "t", "DELETE", {"id": 8, "a": 9, "m": "m9"}, "int bigint varchar(10)"),
        _partial(108, "c", 2, "again", 22),
    ],
    [*_SECOND[:3], *_SECOND[6:], _row(95, "t", "INSERT", {"id": 9, "a": 9, "m": "m9"}, "int bigint varchar(10)")],
]
# The batch whose column a table refuses, so that its rows wait; and that before which rejects are read again.
REFUSED, AGAIN = 2, 5
# The batches that are written with columns about changes.
_WITH_COLUMNS = range(3, 6)
_CHANGE_COLUMNS = ["time", "source", "file", "line"]
TABLES = [*[TableName("d", None, name) for name in "tkg"], TableName("d", "public", "p")]


class BothRunners:
    """A pipeline in a folder; `lake` is that of its lake, whose current states have a form, perhaps for all readers."""

    def __init__(
        self,
        spark: SparkSession,
        folder: Path,
        kind: str,
        lake: Path,
        form: str = CURRENT,
        *,
        is_readable: bool = False,
    ) -> None:
        self.spark, self.folder, self.kind = spark, folder, kind
        self.sink: Sink = Delta(str(lake), is_readable=is_readable) if kind == DELTA else Iceberg("ice")
        section: dict[str, Any] = {"delta": str(lake), **({"readers": "all"} if is_readable else {})}
        if kind != DELTA:
            section = lake_section(kind, folder, spark.conf.get("spark.sql.catalog.ice.warehouse"))
        own = {"form": form, "parallel": 1}
        self.local = LocalJob(folder, {**section, "changelog": True, **own}, {"format": "mixed"})
        self.on_spark = Job(folder, self.sink, {"is_changelog": True, **own}, spark=spark)

    def run(self, runner: str, *, is_killed: bool = False) -> None:
        """Send the messages of the next batch, unless they are, and let a runner run it, or die within it."""
        number = self.local.files
        if number == AGAIN:
            replay(self.folder / "state" / "rejects", self.folder / "state" / "replay")
        self.local.send(*BATCHES[number])
        self.on_spark.files = self.local.files
        if is_killed:
            with dying():
                self._run(runner, number)
            return
        self._run(runner, number)

    def run_again(self, runner: str) -> None:
        """Let a runner run the batch within which another one died."""
        self._run(runner, self.local.files - 1)

    def _run(self, runner: str, number: int) -> None:
        behavior = EXCEPTION if number == REFUSED else LENIENT
        words = _CHANGE_COLUMNS if number in _WITH_COLUMNS else []
        if runner == LOCAL:
            self.local.lake |= {"behavior": behavior, "change_columns": words}
            reports = self.local.run()
        else:
            is_native = runner == DRIVER
            self.on_spark.lake |= {"behavior": behavior, "is_native": is_native, "change_columns": tuple(words)}
            reports = self.on_spark.run(formats=Formats("mixed"))
        assert [one.number for one in reports] == [number]
        assert [*reports[0].waiting] == (["d.t"] if number == REFUSED else [])

    def everything(self) -> dict[str, Any]:
        """Return what is in the lake and in the state."""
        found: dict[str, Any] = {}
        for name in TABLES:
            for suffix in SUFFIXES:
                if self.sink.is_there(self.spark, name, suffix):
                    found[f"{name.table} {suffix}"] = self._table(self.sink.identifier(name, suffix))
        state = JobState(self.folder / "state" / "batches")
        last = state.batches()[-1] + 1
        facts = {key: value for key, value in state.facts(last).items() if key != "begun"}
        rejects = [
            json.loads(line) for path in (self.folder / "state" / "rejects").rglob("*.json") for line in path.open()
        ]
        found["state"] = {
            "facts": facts,
            "rejects": sorted(
                repr((b64decode(one["raw"]), one["reason"], one["line"], one["clock"])) for one in rejects
            ),
            "waiting": sorted(path.name for path in (self.folder / "state" / "waiting").glob("*")),
        }
        return found

    def _table(self, identifier: str) -> dict[str, Any]:
        frame = self.spark.table(identifier)
        properties = {name: value for name, value in properties_of(self.spark, identifier).items() if name not in _OWN}
        job = json.loads((self.folder / "state" / JOB).read_bytes())["job"]
        properties = {
            name: value.replace(job, "this pipeline")
            for name, value in properties.items()
            if not name.startswith(_PROTOCOL)
        }
        rows = [
            {name: sorted(value.items()) if isinstance(value, dict) else value for name, value in row.asDict().items()}
            for row in frame.drop(AT).collect()
        ]
        columns = [(one.name, one.dataType.simpleString(), one.metadata.get("comment")) for one in frame.schema]
        return {"columns": columns, "properties": properties, "rows": sorted(map(repr, rows))}

    def keep(self, folder: Path) -> None:
        """Move all files of the pipeline away, so that another one begins in the same folder."""
        self.folder.rename(folder)
        self.folder.mkdir()
        if self.kind != DELTA:
            for left in Path(self.spark.conf.get("spark.sql.catalog.ice.warehouse")).iterdir():
                shutil.rmtree(left)


@contextmanager
def dying() -> Iterator[None]:
    """Let a runner die once it has written the first table of a batch."""
    calls: list[object] = []
    with pytest.MonkeyPatch.context() as patch:
        for kind in (NativeTables, LakeTables):
            own = kind._write

            def write(self: Any, *table: Any, own: Any = own) -> Any:
                calls.append(self)
                if len(calls) > 1:
                    raise JobError("killed")
                return own(self, *table)

            patch.setattr(kind, "_write", write)
        with pytest.raises((JobError, FileError), match="killed"):
            yield
    assert len(calls) > 1


def differences(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """Return what differs."""
    found = []
    for name in sorted({*one, *other}):
        first, second = one.get(name, {}), other.get(name, {})
        for part in sorted({*first, *second}):
            left, right = first.get(part), second.get(part)
            if isinstance(left, dict) and isinstance(right, dict):
                left, right = ([f"{key}={value}" for key, value in sorted(side.items())] for side in (left, right))
            if left != right:
                only = [[row for row in a or () if row not in (b or ())] for a, b in ((left, right), (right, left))]
                found.append(f"{name}, {part}: {only[0][:3]} and {only[1][:3]}")
    return found

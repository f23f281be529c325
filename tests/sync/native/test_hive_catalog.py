"""Iceberg tables in Hive's metastore: threads, folders, statements, and locks that a process left when it was killed."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from uuid import uuid4

import pytest

pytest.importorskip("pyiceberg")

from cdcavro.lake.catalogs import HIVE
from support.catalog_servers import CatalogServers
from support.jobs import local_job
from support.local_pipelines import ICEBERG, LocalJob
from support.messages import canal

pytestmark = [pytest.mark.jvm, pytest.mark.timeout(600)]


@pytest.fixture
def catalog(servers: CatalogServers, tmp_path: Path) -> dict[str, str]:
    """A catalog in a metastore, whose tables are in the folder of the test."""
    return servers.properties(HIVE, tmp_path)


def statement(id: int, database: str, sql: str) -> bytes:
    """Return a statement that changes columns."""
    return canal("ALTER", [], id=id, database=database, isDdl=True, sql=sql)


def test_threads_do_not_end_the_connections_of_others(catalog: dict[str, str], tmp_path: Path):
    """As many tables are written at a time as the section says."""
    database, tables = uuid4().hex, [f"t{number}" for number in range(8)]
    made = local_job(tmp_path, ICEBERG, is_changelog=True, parallel=8, catalog=catalog)
    for batch in range(1, 4):
        made.send(*[canal("INSERT", [{"id": str(batch)}], id=batch, database=database, table=one) for one in tables])
    assert [one.waiting for one in made.run()] == [{}] * 3
    assert [made.rows(f"{database}.{one}", "id") for one in tables] == [[(1,), (2,), (3,)]] * 8


def test_columns_follow_statements_and_tables_are_in_the_warehouse(catalog: dict[str, str], tmp_path: Path):
    """Also if each batch is run again: the metastore names the columns as the table does."""
    from support.hive_metastore import columns_of  # noqa: PLC0415  it needs thrift

    database, wide = uuid4().hex, {"id": "int", "b": "int", "c": "bigint"}
    made = local_job(tmp_path, ICEBERG, is_changelog=True, catalog=catalog)
    for batch in (
        [canal("INSERT", [{"id": str(i), "a": str(i)}], id=i, database=database) for i in (1, 2)],
        [
            statement(3, database, "ALTER TABLE t ADD COLUMN b int AFTER id"),
            canal("UPDATE", [{"id": "1", "b": "3", "a": "4"}], id=4, old=[{"a": "1"}], database=database),
        ],
        [
            statement(5, database, "ALTER TABLE t CHANGE a c bigint"),
            canal("INSERT", [{"id": "7", "b": "8", "c": str(1 << 40)}], id=6, database=database, mysqlType=wide),
            canal("DELETE", [{"id": "2", "b": None, "c": "2"}], id=7, database=database, mysqlType=wide),
        ],
    ):
        made.send(*batch)
        assert [one.waiting for one in made.run()] == [{}]
        made.run_again()
    assert made.rows(f"{database}.t", "id", "b", "c") == [(1, 3, 4), (7, 8, 1 << 40)]
    changes = made.rows(f"{database}.t", "_cdc_op", "id", suffix="changes")
    assert changes == [("b", 1), ("c", 1), ("c", 2), ("c", 7), ("d", 2), ("u", 1)]
    columns = columns_of(catalog["uri"], database, "t")
    assert columns[:3] == ["id", "b", "c"]
    assert {path.parent.name for path in (tmp_path / "wh" / f"{database}.db").rglob("*.metadata.json")} == {"metadata"}


# A run that dies within its first commit to a table that is there, when it has the lock.
_DYING = """
import os, signal, sys
from hive_metastore.ThriftHiveMetastore import Client
from cdcavro.cli import main
Client.alter_table_with_environment_context = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
main(["sync", "--once", "--quiet", "--config", sys.argv[1]])
"""


def section(catalog: Mapping[str, str]) -> dict[str, str]:
    """Return the section of a lake in a configuration, whose runs do not wait for locks."""
    stated = {**catalog, "lock-check-retries": "1"}
    return {"iceberg": "ice", **{f"catalog.{name}": value for name, value in stated.items()}}


def test_a_lock_that_a_killed_run_left_stops_its_table_for_a_while(catalog: dict[str, str], tmp_path: Path):
    """Its rows are pending until the metastore gives the lock up, and are there once; other tables go on."""
    from support.hive_metastore import locks_of  # noqa: PLC0415  it needs thrift

    database = f"k{uuid4().hex}"

    def row(id: int, table: str = "t") -> bytes:
        return canal("INSERT", [{"id": str(id)}], id=id, database=database, table=table)

    made = LocalJob(tmp_path, {**section(catalog), "changelog": True})
    made.send(row(1))
    made.run()
    made.send(row(2))
    died = subprocess.run([sys.executable, "-c", _DYING, made.config()], capture_output=True, text=True, check=False)
    assert died.returncode == -signal.SIGKILL, died.stderr
    (locked,) = locks_of(catalog["uri"])
    made.send(row(3), row(1, "other"))
    assert {name for one in made.run() for name in one.waiting} == {f"{database}.t"}
    assert made.rows(f"{database}.other", "id") == [(1,)]
    assert locks_of(catalog["uri"]) == [locked]
    until = time.monotonic() + 120
    while locks_of(catalog["uri"]) and time.monotonic() < until:
        time.sleep(0.5)
    made.send(row(4))
    assert [one.waiting for one in made.run()] == [{}]
    assert made.rows(f"{database}.t", "id") == [(1,), (2,), (3,), (4,)]
    assert made.rows(f"{database}.t", "id", suffix="changes") == [(1,), (2,), (3,), (4,)]


def test_a_metastore_that_lets_no_column_change_its_place_leaves_rows_pending(tmp_path: Path):
    """As it is unless it is told otherwise; they are written once it is."""
    from support.hive_metastore import hive_metastore  # noqa: PLC0415  it needs thrift

    made = local_job(tmp_path, ICEBERG)

    def run(uri: str, *messages: bytes) -> list[dict[str, str]]:
        made.lake = {"catalog": {"type": HIVE, "uri": uri, "warehouse": f"file://{tmp_path}/wh"}}
        made.send(*messages)
        return [one.waiting for one in made.run()]

    row = canal("INSERT", [{"id": "2", "b": "3", "a": "2"}], id=3)
    (tmp_path / "metastore").mkdir()
    with hive_metastore(
        tmp_path / "metastore", {"hive.metastore.disallow.incompatible.col.type.changes": "true"}
    ) as uri:
        assert run(uri, canal("INSERT", [{"id": "1", "a": "1"}], id=1)) == [{}]
        (waiting,) = run(uri, statement(2, "d", "ALTER TABLE t ADD COLUMN b int AFTER id"), row)
        assert "types incompatible with the existing columns" in waiting["d.t"]
        assert made.rows("d.t", "id") == [(1,)]
    with hive_metastore(tmp_path / "metastore") as uri:
        assert run(uri, canal("INSERT", [{"id": "3", "b": "4", "a": "3"}], id=4)) == [{}]
        assert made.rows("d.t", "id", "b", "a") == [(1, None, 1), (2, 3, 2), (3, 4, 3)]

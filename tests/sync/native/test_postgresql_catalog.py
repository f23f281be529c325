"""Iceberg tables in a catalog in PostgreSQL: names, writers at the same time, lost connections, and secrets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pytest

pytest.importorskip("pyiceberg")

from cdcavro.errors import JobError
from cdcavro.lake.evolution import LakeColumn
from cdcavro.sync.native.iceberg_lake import Connection, NativeIceberg, NativeIcebergTable
from cdcavro.sync.native.native_columns import Mark
from cdcavro.table import TableName
from support.catalog_servers import POSTGRESQL, CatalogServers
from support.jobs import local_job
from support.local_pipelines import ICEBERG, LocalJob
from support.messages import canal
from support.postgresql_server import USER
from support.roundtrip import error_of

pytestmark = pytest.mark.slow
NOW = datetime(2026, 11, 24, tzinfo=UTC)


@pytest.fixture
def catalog(servers: CatalogServers, tmp_path: Path) -> dict[str, str]:
    """A catalog in PostgreSQL whose tables are in the folder of the test."""
    return servers.properties(POSTGRESQL, tmp_path)


def lake_in(catalog: Mapping[str, str]) -> NativeIceberg:
    """Return the lake, by a connection of its own."""
    return NativeIceberg("ice", is_shared=True, connection=Connection("ice", catalog))


def table_in(lake: NativeIceberg, name: TableName) -> NativeIcebergTable:
    """Return a table, created unless it is there."""
    lake.make_room(name)
    table = lake.table(name)
    table.create([LakeColumn("a", "a", "int")], {}, lake.properties([]))
    return table


# Names that are alike where a database compares by patterns, or without capitals, and those that SQL and addresses quote.
NAMES = ("a_b", "aXb", "a%b", "A_B", "a.b", "a", "'; --", '"q"', "ü 名", "\\", "a:b", "%(x)s", "x" * 60)


def test_each_name_is_a_table_of_its_own(catalog: dict[str, str]):
    """As that of a database, and those of a schema and of a table."""
    run, lake = uuid4().hex, lake_in(catalog)
    names = [TableName(run + one, None, "t") for one in NAMES] + [TableName(run, one, one) for one in NAMES[:6]]
    for i, name in enumerate(names):
        table_in(lake, name).append(pa.table({"a": pa.array([i], pa.int32())}))
    found = [lake.table(name).read(["a"]).column("a").to_pylist() for name in names]
    assert found == [[i] for i in range(len(names))]


def test_a_name_that_is_too_long_for_the_database_is_said_in_one_sentence(catalog: dict[str, str]):
    """Without the statement in which it stands."""
    said = error_of(table_in, lake_in(catalog), TableName("x" * 200, "y" * 100, "t"))
    reason = "(psycopg.errors.StringDataRightTruncation) value too long for type character varying(255)"
    assert said == f"Iceberg's catalog ice: DataError: {reason}"


def test_writers_at_the_same_time_lose_no_change(catalog: dict[str, str]):
    """Each batch of each is there once; a writer that loses too often tries the batch again."""
    name = TableName(uuid4().hex, None, "t")
    table_in(lake_in(catalog), name)

    def write(writer: int) -> None:
        own = table_in(lake_in(catalog), name)
        for batch in range(5):
            rows = pa.table({"a": pa.array([10 * writer + batch], pa.int32())})
            while True:
                try:
                    own.append(rows, Mark(f"job {writer}", batch, NOW))
                except JobError as error:
                    if "other writers were faster" not in str(error):
                        raise
                else:
                    break

    with ThreadPoolExecutor(3) as pool:
        [*pool.map(write, range(3))]
    rows = table_in(lake_in(catalog), name).read(["a"]).column("a").to_pylist()
    assert sorted(rows) == [10 * writer + batch for writer in range(3) for batch in range(5)]


def test_a_database_that_was_away_between_batches_is_connected_to_again(
    catalog: dict[str, str], servers: CatalogServers
):
    """No row is pending for it. While it is away, errors say so."""
    table = table_in(lake_in(catalog), TableName(uuid4().hex, None, "t"))
    rows = pa.table({"a": pa.array([1], pa.int32())})
    table.append(rows, Mark("j", 0, NOW))
    servers.postgresql.stop()
    try:
        with pytest.raises(JobError, match="OperationalError"):
            table.append(rows, Mark("j", 1, NOW))
    finally:
        servers.postgresql.start()
    table.append(rows, Mark("j", 1, NOW))
    with servers.postgresql.connect() as other:
        other.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
    table.append(rows, Mark("j", 1, NOW))
    table.append(rows, Mark("j", 2, NOW))
    assert table.read(["a"]).num_rows == 3


def test_a_database_in_sql_ascii_is_refused_before_anything_is_written(
    catalog: dict[str, str], servers: CatalogServers, tmp_path: Path
):
    """Its driver gives bytes for texts. The sentence says what to do; the same pipeline goes on in another database."""
    for name, encoding in (("nothing", "SQL_ASCII"), ("known", "UTF8")):
        with servers.postgresql.connect() as own:
            own.execute(f"CREATE DATABASE {name} ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0")
    uri = catalog["uri"].removesuffix("postgres")
    job = LocalJob(tmp_path / "run", section({**catalog, "uri": f"{uri}nothing"}))
    job.send(canal("INSERT", [{"id": "1"}], id=1, database=uuid4().hex))
    said = (
        "Iceberg's catalog ice: expected a database whose encoding is UTF8, got texts as bytes, as of one in SQL_ASCII:"
        " create another one with ENCODING 'UTF8' TEMPLATE template0, and let uri name it"
    )
    assert error_of(job.pipeline().check) == said
    assert error_of(job.run) == said
    with servers.postgresql.connect("nothing") as made:
        assert made.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchone() == (0,)
    again = LocalJob(tmp_path / "run", section({**catalog, "uri": f"{uri}known"}))
    assert [one.counts["written"] for one in again.run()] == [1]


# Parts of the password that a text might show, as it is or as an address has it.
_CANARY = re.compile("canary|p@ss|p%40ss|ss/word|ss%2[Ff]word|word:1|word%3A1")


def section(catalog: Mapping[str, str]) -> dict[str, str]:
    """Return the section of a lake in a configuration."""
    return {"iceberg": "ice", **{f"catalog.{name}": value for name, value in catalog.items()}}


def test_a_password_is_shown_nowhere(
    catalog: dict[str, str], tmp_path: Path, capfd: pytest.CaptureFixture, caplog: pytest.LogCaptureFixture
):
    """Neither in the state and in tables, nor by errors on it, on the server and on the address."""
    row = canal("INSERT", [{"id": "1"}], id=1, database=uuid4().hex)
    job = LocalJob(tmp_path / "run", section(catalog))
    job.send(row)
    assert [one.counts["written"] for one in job.run()] == [1]
    said = []
    whole = catalog["uri"]
    for uri in (
        whole.replace(USER, "other", 1),
        whole.replace("canary", "canary-2"),
        re.sub(":[0-9]+/postgres", ":1/postgres", whole),
        whole.replace("/postgres", "/none"),
        whole.replace("psycopg", "none"),
    ):
        wrong = LocalJob(tmp_path / "wrong", section({**catalog, "uri": uri}))
        wrong.send(row)
        said.append(error_of(wrong.pipeline().check))
        said.append(error_of(local_job(wrong.folder, ICEBERG, catalog={**catalog, "uri": uri}).check))
    assert all(one.startswith("Iceberg's catalog ice: ") for one in said), said
    kept = [path.read_bytes().decode("latin-1") for path in tmp_path.rglob("*") if path.is_file()]
    texts = [*said, *capfd.readouterr(), caplog.text, *[one for one in kept if "[lake]" not in one]]
    assert [text for text in texts if _CANARY.search(text)] == []
    assert len(kept) > 5

"""Parquet files of typed tables, as `cdcavro tables --as parquet` writes them."""

from __future__ import annotations

import json
import subprocess
import sys

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from cdcavro.arrow import arrays, arrow_schema, layout, plain_avro, to_arrow
from cdcavro.cli import main
from support.messages import shop_canal, shop_debezium
from support.shop_tables import shop

LINES = {"canal": shop_canal, "debezium": shop_debezium}


def run(folder, *options, messages=None):
    """Run the command on messages, Canal's of a real database by default, and return its result."""
    source = folder / "in.jsonl"
    source.write_bytes(b"".join(message + b"\n" for message in messages or shop_canal()))
    arguments = ["tables", source, "--out", folder / "out", "--zone", "UTC", *options]
    return CliRunner().invoke(main, list(map(str, arguments)), catch_exceptions=False)


def files(folder, ending="parquet"):
    """Return the files of changes of a folder, by their names in it."""
    out = folder / "out"
    return {path.relative_to(out).as_posix(): path for path in sorted(out.glob(f"*/*.{ending}"))}


def changes(folder):
    """Return the changes of each table, in the order of versions."""
    found = {}
    for name, path in files(folder).items():
        table, version = name.split("/")
        found.setdefault(table, {})[int(version[1:].partition(".")[0])] = pq.read_table(path).to_pylist()
    return {table: [row for _, rows in sorted(parts.items()) for row in rows] for table, parts in found.items()}


@pytest.mark.slow
@pytest.mark.parametrize("producer", ["canal", "debezium"])
def test_every_row_is_in_a_file_under_the_newest_version(tmp_path, producer):
    """The same as of Avro are written, and each file of a table has the same columns."""
    avro = tmp_path / "avro"
    avro.mkdir()
    plain, done = run(avro, messages=LINES[producer]()), run(tmp_path, "--as", "parquet", messages=LINES[producer]())
    dropped = done.stderr.removeprefix(plain.stderr)
    assert (done.stdout, done.stderr, done.exit_code) == (plain.stdout, plain.stderr + dropped, 0)
    assert dropped.startswith("these files have the columns of the newest version alone,")
    assert dropped.count("\n") == 1
    assert [*files(tmp_path)] == [name.replace(".avro", ".parquet") for name in files(avro, "avro")]
    assert files(tmp_path, "avro") == {}
    assert [*files(tmp_path, "avsc")] == [*files(avro, "avsc")]
    tables, typed = shop(producer)
    expected = {}
    for table in tables.tables:
        own = sorted((one for one in typed if one.table is table), key=lambda one: one.schema.version)
        batch = to_arrow([one.payload for one in own], table, [one.schema.version for one in own])
        for row in batch.to_pylist() if own else ():
            row["source"]["message_file"] = str(tmp_path / "in.jsonl")
            expected.setdefault(table.schema.full_name, []).append(row)
        for name, path in files(tmp_path).items():
            if name.startswith(f"{table.schema.full_name}/"):
                assert pq.read_schema(path).equals(arrow_schema(table.schema))
    assert changes(tmp_path) == expected


@pytest.mark.slow
def test_any_number_of_threads_writes_the_same_files(tmp_path):
    """Byte for byte, also of many chunks."""
    found = []
    for jobs in (1, 3):
        done = run(tmp_path, "--as", "parquet", "--force", "--jobs", jobs, messages=[*shop_canal()] * 3)
        assert done.exit_code in (0, 3), done.output
        found.append({name: path.read_bytes() for name, path in files(tmp_path).items()})
    assert found[0] == found[1]


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "size"), [(10, 1 << 20), (100_000, 500)])
def test_a_row_group_has_so_many_rows_or_bytes_at_most(tmp_path, monkeypatch, rows, size):
    """So that what is in memory does not grow with the file."""
    wanted = run(tmp_path, "--as", "parquet") and changes(tmp_path)
    monkeypatch.setattr(plain_avro, "MOST_ROWS", rows)
    monkeypatch.setattr(plain_avro, "MOST_BYTES", size)
    monkeypatch.setattr("cdcavro.avro.container.BLOCK_COUNT", 5)
    run(tmp_path, "--as", "parquet", "--force")
    assert changes(tmp_path) == wanted
    groups = pq.ParquetFile(files(tmp_path)["shop.big/v1.parquet"]).metadata
    assert groups.num_row_groups > 12
    assert max(groups.row_group(i).num_rows for i in range(groups.num_row_groups)) <= 10


def test_rows_that_get_a_long_default_are_few_at_a_time(tmp_path, monkeypatch):
    """They are small where they are written, and large under the newest version."""
    monkeypatch.setattr(plain_avro, "MOST_BYTES", 10_000)
    facts = {"database": "d", "table": "t", "data": None, "old": None, "pkNames": ["id"], "ts": 1}
    row = {"type": "INSERT", "isDdl": False, "mysqlType": {"id": "int"}}
    rows = [facts | row | {"id": i, "es": i, "data": [{"id": str(i)}]} for i in range(1, 61)]
    ddl = f"ALTER TABLE t ADD c VARCHAR(9000) DEFAULT '{'x' * 4_000}'"
    statement = facts | {"type": "ALTER", "isDdl": True, "sql": ddl, "id": 61, "es": 61}
    done = run(tmp_path, "--as", "parquet", messages=[json.dumps(one).encode() for one in [*rows, statement]])
    assert done.exit_code == 0, done.output
    (path,) = files(tmp_path).values()
    groups = pq.ParquetFile(path).metadata
    assert max(groups.row_group(i).num_rows for i in range(groups.num_row_groups)) == 4
    assert [row["after"]["c"] for row in pq.read_table(path).to_pylist()] == ["x" * 4_000] * 60


@pytest.mark.slow
def test_rows_that_fill_far_more_than_their_payloads_are_in_several_groups(tmp_path, monkeypatch):
    """All are written: one row of a table of many columns, and many that only say that it is emptied."""
    for module in (layout, arrays):
        monkeypatch.setattr(module, "MAX_ROWS_ROOM", 100_000)
    names = [f"c{i}" for i in range(2_000)]
    facts = {"database": "d", "table": "t", "data": None, "old": None, "pkNames": ["c0"], "ts": 1}
    row = dict.fromkeys(names, "1")
    insert = {"type": "INSERT", "isDdl": False, "mysqlType": dict.fromkeys(names, "bigint"), "data": [row]}
    empty = {"type": "TRUNCATE", "isDdl": True, "sql": "TRUNCATE TABLE t"}
    lines = [facts | (empty if i else insert) | {"id": i, "es": i} for i in range(1_000)]
    done = run(tmp_path, "--as", "parquet", "--from", "canal", messages=[json.dumps(one).encode() for one in lines])
    assert done.exit_code == 0, done.output
    (path,) = files(tmp_path).values()
    groups = pq.ParquetFile(path).metadata
    assert groups.num_row_groups > 1
    read = pq.ParquetFile(path).read(columns=["op", "after.c7"]).to_pylist()
    assert [one["op"] for one in read] == ["c", *["t"] * 999]
    assert [one["after"] for one in read] == [{"c7": 1}, *[None] * 999]


@pytest.mark.slow
def test_a_folder_is_replaced_whatever_its_files_are(tmp_path):
    """By one of the other kind, too; and what is of someone else keeps it."""
    assert run(tmp_path, "--as", "parquet").exit_code == 0
    assert run(tmp_path, "--force").exit_code == 0
    assert not files(tmp_path)
    assert run(tmp_path, "--as", "parquet", "--force").exit_code == 0
    foreign = tmp_path / "out" / "shop.big" / "mine.parquet"
    foreign.write_bytes(b"")
    refused = run(tmp_path, "--force")
    assert refused.exit_code == 2
    assert "'shop.big/mine.parquet'" in refused.stderr


def test_a_disk_that_is_full_is_said_in_a_sentence(tmp_path, monkeypatch):
    """And nothing is left of the folder."""

    def full(*_args, **_more):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq, "ParquetWriter", full)
    done = run(tmp_path, "--as", "parquet")
    assert done.exit_code == 2
    assert done.stderr.endswith("expected a folder that can be written, got 'No space left on device'\n")
    assert [path.name for path in tmp_path.iterdir()] == ["in.jsonl"]


@pytest.mark.slow
def test_without_pyarrow_it_is_said_before_anything_is_read(tmp_path):
    """Avro needs none."""
    (tmp_path / "in.jsonl").write_bytes(b"")
    code = "import sys; sys.modules['pyarrow'] = None; from cdcavro.cli import main; main()"
    options = ["tables", "in.jsonl", "--from", "canal", "--out", "out"]
    command = [sys.executable, "-c", code, *options]
    done = subprocess.run([*command, "--as", "parquet"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (
        2,
        "Error: pyarrow is not installed: pip install 'cdcavro[arrow]'\n",
    )
    assert [path.name for path in tmp_path.iterdir()] == ["in.jsonl"]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, check=False).returncode == 0
    assert json.loads((tmp_path / "out" / "tables.json").read_text()) == []

"""Files of typed tables in other hands: fastavro, pyarrow, polars and DuckDB, by kind of column, as the page says."""

from __future__ import annotations

from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from cdcavro import FORMATS
from cdcavro.cli import main
from cdcavro.table.table_names import mangle
from support.messages import SAMPLES
from support.readers import KINDS, cell, plain_name, said, written

polars = pytest.importorskip("polars")
duckdb = pytest.importorskip("duckdb")
# The first version of pyarrow that writes times without a zone.
IN_NO_ZONE = 22


def with_fastavro(path, column):
    """Read the last row of an Avro file."""
    return last_record(path)["after"][column]


def last_record(path):
    """Return the last record of an Avro file."""
    with path.open("rb") as stream:
        return list(fastavro.reader(stream))[-1]


def duckdb_rows(path, what):
    """Read from a file of either kind; the extension for Avro is a package of its own."""
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        source = f"'{path}'"
        if path.suffix == ".avro":
            folder = Path(next(iter(pytest.importorskip("duckdb_ext").__path__))) / "extensions"
            connection.execute("SET extension_directory = ?", [str(folder)])
            connection.execute("LOAD avro")
            source = f"read_avro({source})"
        return connection.execute(f"SELECT {what} FROM {source}").fetchall()


def with_duckdb(path, column):
    """Read the last row of a file of either kind."""
    return max((row for (row,) in duckdb_rows(path, "after")), key=lambda row: row["id"])[column]


READERS = {
    "avro": {
        "fastavro": with_fastavro,
        "polars": lambda path, column: polars.read_avro(path)["after"].to_list()[-1][column],
        "DuckDB": with_duckdb,
    },
    "plain": {
        "fastavro": lambda path, column: last_record(path)[column],
        "polars": lambda path, column: polars.read_avro(path).to_dicts()[-1][column],
        "DuckDB": lambda path, column: max(duckdb_rows(path, f'id, "{column}"'))[1],
    },
    "parquet": {
        "pyarrow": lambda path, column: pq.read_table(path)["after"].to_pylist()[-1][column],
        "polars": lambda path, column: polars.read_parquet(path)["after"].to_list()[-1][column],
        "DuckDB": with_duckdb,
    },
}


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize(
    ("kind", "reader"), [(kind, reader) for kind, readers in READERS.items() for reader in readers]
)
def test_a_reader_makes_of_a_column_what_the_page_says(tmp_path, kind, reader, name):
    """Its value, another one, or nothing, since the reader refuses the file."""
    path, column = written(tmp_path, name, kind), KINDS[name].column
    shown = {"avro": mangle, "plain": plain_name}.get(kind, str)(column)
    expected = said()[kind][reader][name]
    if (kind, reader, name) == ("parquet", "DuckDB", "time") and int(pa.__version__.partition(".")[0]) < IN_NO_ZONE:
        expected = "time"  # with the zone UTC
    assert cell(lambda: READERS[kind][reader](path, shown), name) == expected


@pytest.mark.parametrize(
    "column",
    [
        pytest.param({"type": "map", "values": "string"}, id="a map"),
        pytest.param(["null", "X"], id="a type that was named before"),
    ],
)
def test_polars_reads_no_avro_with_what_every_envelope_has(tmp_path, column):
    """So it reads those files of typed tables only that are plain; without these it reads a file."""
    first = {"name": "first", "type": {"type": "record", "name": "X", "fields": [{"name": "x", "type": "int"}]}}
    for fields, is_read in (([first], True), ([first, {"name": "second", "type": column}], False)):
        path = tmp_path / "file.avro"
        with path.open("wb") as stream:
            row = {"first": {"x": 1}} | ({} if is_read else {"second": {} if isinstance(column, dict) else None})
            fastavro.writer(stream, {"type": "record", "name": "R", "fields": fields}, [row])
        try:
            found = polars.read_avro(path).to_dicts() == [{"first": {"x": 1}}]
        except BaseException as error:  # noqa: BLE001  a panic of Rust's is not an Exception
            found = isinstance(error, KeyboardInterrupt)
        assert found is is_read


def test_duckdb_reads_plain_columns_whose_names_differ_in_letter_case_only(tmp_path):
    """It refuses two such columns in an Avro file, and so one has another name."""
    (tmp_path / "in.jsonl").write_text(
        '{"type":"INSERT","database":"s","table":"t","id":1,"es":1,"mysqlType":{"a":"int","A":"int"},"data":[{"a":"1","A":"2"}]}'
    )
    done = CliRunner().invoke(main, ["tables", str(tmp_path / "in.jsonl"), "--plain", "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert duckdb_rows(tmp_path / "out" / "s.t" / "v1.avro", "a, _x41_") == [(1, 2)]


@pytest.mark.parametrize("format", FORMATS)
def test_a_reader_makes_of_the_messages_of_a_format_what_the_page_says(tmp_path, format):
    """All messages, or nothing, since the reader refuses the file."""
    path = tmp_path / "messages.avro"
    done = CliRunner().invoke(main, ["encode", str(SAMPLES / format), "--format", format, "--out", str(path)])
    with path.open("rb") as stream:
        count = len(list(fastavro.reader(stream)))
    assert f"written {count} + rejected 0" in done.output
    readers = {
        "fastavro": lambda: count,
        "polars": lambda: len(polars.read_avro(path)),
        "DuckDB": lambda: duckdb_rows(path, "count(*)")[0][0],
    }
    found = {}
    for name, read in readers.items():
        try:
            found[name] = "yes" if read() == count else "otherwise"
        except BaseException as error:  # noqa: BLE001  a panic of Rust's is not an Exception
            found[name] = "interrupted" if isinstance(error, KeyboardInterrupt) else "no"
    page = said()["messages"]
    assert {name: page[name][f"`{format}`"] for name in readers} == found


def test_pandas_reads_parquet_as_pyarrow_does(tmp_path):
    """It has no reader of its own here."""
    pandas = pytest.importorskip("pandas")
    path = written(tmp_path, "decimal", "parquet")
    assert pandas.read_parquet(path)["after"].tolist()[-1]["c"] == KINDS["decimal"].value


def test_the_page_has_every_kind_and_every_reader():
    """Those that need Java are tested beside Spark."""
    page = said()
    assert {*page.pop("messages")} == {"fastavro", "polars", "DuckDB"}
    beside = {"avro": {"Spark", "Avro Java 1.8.2"}, "parquet": {"Spark"}}
    beside["plain"] = beside["avro"]
    assert {kind: set(readers) for kind, readers in page.items() if kind != "lake"} == {
        kind: {*readers} | beside[kind] for kind, readers in READERS.items()
    }
    assert all(list(cells) == list(KINDS) for readers in page.values() for cells in readers.values())

"""Tables of files of messages as Arrow: every change, and the current rows, beside what the other ways give."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from datetime import UTC, datetime
from decimal import Decimal
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import cdcavro
from cdcavro.cli import main
from cdcavro.engine.machine import COMPILED
from cdcavro.errors import FileError, OrderError, SchemaError
from cdcavro.files.lines import Inputs
from cdcavro.lake import read_tables, table_files
from cdcavro.lake.table_files import TableReader
from cdcavro.table import TableName
from cdcavro.table.columns.column_type import TypeOverrides
from cdcavro.table.tables import Tables
from cdcavro.table.writing.message_typer import MessageTyper
from cdcavro.wire.formats import FORMATS
from support.messages import canal, goldens
from support.rows_trial import ZONE, shop
from support.shop_losses import OLD_AMOUNT
from support.shop_state import whole
from support.shop_tables import MESSAGES, Unparsed

T = TableName("shop", None, "t")


def written(folder, *messages, name="a.jsonl"):
    """Write messages into a file, and return its path."""
    path = folder / name
    path.write_bytes(b"\n".join(one if isinstance(one, bytes) else json.dumps(one).encode() for one in messages))
    return path


def rows_of(type, number, rows, old=(), **members):
    """Write rows of shop.t as Canal does."""
    return canal(type, rows, id=number, old=old, database="shop", **members)


def statement(number, sql):
    """Write a statement as Canal does."""
    return {
        "type": "ALTER",
        "isDdl": True,
        "database": "shop",
        "table": "t",
        "id": number,
        "es": 1_700_000_000_000 + number * 1000,
        "sql": sql,
    }


@pytest.mark.parametrize("producer", MESSAGES)
def test_current_rows_are_those_of_the_merge(tmp_path, producer):
    """Of the tables of a real server, with their columns and values, which are held against the server's elsewhere."""
    path = written(tmp_path, *MESSAGES[producer]())
    found = {name.table: table for name, table in read_tables(path, current=True, zone=UTC).items()}
    wanted = whole(producer)
    assert {name: table.num_rows for name, table in found.items()} == {name: len(rows) for name, rows in wanted.items()}
    for name, rows in wanted.items():
        for row, expected in zip(_by_row(found[name].to_pylist()), _by_row(rows.values()), strict=True):
            assert row == expected
    assert sum(map(len, wanted.values())) > 20


def _by_row(rows):
    """Return rows as texts, in an order of their own."""
    return sorted(repr(dict(sorted(_with_texts(row).items()))) for row in rows)


def _with_texts(row):
    """Return a row with the texts that did not fit in their places, and instants in one zone."""
    unparsed = dict(row.get("unparsed") or ())
    unparsed |= {name: value.text for name, value in row.items() if type(value) is Unparsed}
    values = {name: value for name, value in row.items() if name != "unparsed"}
    older = values.get(OLD_AMOUNT)
    if older is not None and values["amount"] is None:  # Arrow has older values wherever they are exactly the same
        values["amount"] = older.quantize(Decimal("1.0000"))
    instants = {name: value.astimezone(UTC) for name, value in values.items() if getattr(value, "tzinfo", None)}
    return values | instants | {name: ("text", text) for name, text in unparsed.items()}


@pytest.mark.slow
@pytest.mark.parametrize("producer", MESSAGES)
def test_changes_are_those_that_the_command_writes(tmp_path, producer):
    """Row by row; the command writes each version into a file of its own."""
    path = written(tmp_path, *MESSAGES[producer]())
    arguments = ["tables", path, "--out", tmp_path / "out", "--zone", "UTC", "--as", "parquet"]
    done = CliRunner().invoke(main, list(map(str, arguments)), catch_exceptions=False)
    assert done.exit_code == 0
    index = json.loads((tmp_path / "out" / "tables.json").read_bytes())
    tables = {name.table: table for name, table in read_tables(path, zone=UTC).items()}
    counted = 0
    for entry in index:
        name = entry["versions"][-1]["table"] + (" (dropped)" if entry["is_gone"] else "")
        files = sorted((tmp_path / "out" / entry["folder"]).glob("*.parquet"))
        rows = [row for file in files for row in pq.ParquetFile(file).read().to_pylist()]
        if name in tables:
            assert Counter(map(repr, tables[name].to_pylist())) == Counter(map(repr, rows)), name
            counted += len(rows)
        else:
            assert not rows
    assert counted == sum(table.num_rows for table in tables.values()) > 100


def types(*names):
    """Return the types of columns as Canal's messages state them."""
    declared = {"c": "decimal(9,2)", "e": "int"}
    return {"mysqlType": {"id": "int"} | {name: declared.get(name, "varchar(9)") for name in names}}


def test_a_column_has_the_value_of_the_last_change_that_states_it(tmp_path):
    """Also if it is renamed, or another one gets its name, between the two."""
    path = written(
        tmp_path,
        statement(1, "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(9), b VARCHAR(9), c DECIMAL(9,2))"),
        rows_of(
            "INSERT",
            2,
            [{"id": "1", "a": "x", "b": "y", "c": "1.20"}, {"id": "2", "a": "u", "b": "v", "c": "3.00"}],
            **types("a", "b", "c"),
        ),
        rows_of("UPDATE", 3, [{"id": "1", "b": "y2"}], [{"b": "y"}], **types("b")),
        statement(4, "ALTER TABLE t RENAME COLUMN a TO d, ADD e INT DEFAULT 5"),
        rows_of("UPDATE", 5, [{"id": "1", "c": "9.90"}], [{"c": "1.20"}], **types("c")),
        rows_of("DELETE", 6, [{"id": "2", "d": "u", "b": "v", "c": "3.00", "e": "5"}], **types("d", "b", "c", "e")),
    )
    (table,) = read_tables(path, current=True).values()
    assert table.to_pylist() == [{"id": 1, "d": "x", "b": "y2", "c": Decimal("9.90"), "e": 5}]


def test_what_does_not_fit_is_beside_the_rows(tmp_path):
    """With the text of the change whose value stands there, and not of one that was replaced."""
    created = statement(1, "CREATE TABLE t (id INT PRIMARY KEY, n INT, m INT)")
    bad = rows_of("INSERT", 2, [{"id": "1", "n": "x", "m": "y"}, {"id": "2", "n": "1", "m": "1"}])
    mended = rows_of("UPDATE", 3, [{"id": "1", "n": "7"}], [{"n": "x"}])
    (table,) = read_tables(written(tmp_path, created, bad, mended), current=True).values()
    assert table.column_names == ["id", "n", "m", "unparsed"]
    first = next(row for row in table.to_pylist() if row["id"] == 1)
    assert (first["n"], first["m"], dict(first["unparsed"])) == (7, None, {"m": "y"})
    (table,) = read_tables(written(tmp_path, created, name="b.jsonl"), current=True).values()
    assert (table.num_rows, table.column_names) == (0, ["id", "n", "m"])


def test_what_does_not_fit_stays_with_its_column_where_another_one_has_the_name_now(tmp_path):
    """It is called as the column was when it came; the text of the second column of a name is called by its field."""
    messages = [
        statement(1, "CREATE TABLE t (id INT PRIMARY KEY, n INT, m INT)"),
        rows_of("INSERT", 2, [{"id": "1", "n": "x", "m": "y"}]),
        statement(3, "ALTER TABLE t RENAME COLUMN n TO o, ADD COLUMN n INT"),
        rows_of("UPDATE", 4, [{"id": "1", "n": "z"}], [{"n": None}]),
        rows_of("UPDATE", 5, [{"id": "1", "o": "7"}], [{"o": "x"}]),
    ]
    for count, texts in (
        (2, {"n": "x", "m": "y"}),
        (4, {"n": "x", "m": "y", "n_x_2": "z"}),
        (5, {"m": "y", "n_x_2": "z"}),
    ):
        (table,) = read_tables(written(tmp_path, *messages[:count]), current=True).values()
        (row,) = table.to_pylist()
        assert dict(row["unparsed"]) == texts
    assert row == {"id": 1, "o": 7, "m": None, "n": None, "unparsed": row["unparsed"]}


def test_a_faulty_message_is_an_error_or_a_reject(tmp_path):
    """With its file and line; what is read is what is in the tables plus the rejects."""
    good = rows_of("INSERT", 1, [{"id": "1"}])
    path = written(
        tmp_path,
        good,
        b"{",
        statement(2, "ALTER TABLE t FROBNICATE"),
        good.replace(b'"1"', b'"2"') if isinstance(good, bytes) else good,
    )
    with pytest.raises(FileError, match=r"a\.jsonl:2: canal: \$: expected JSON, got text that ends too early"):
        read_tables(path)
    rejects = []
    tables = read_tables(path, current=True, rejects=rejects)
    assert [(one.line, one.format, one.raw[:9]) for one in rejects] == [(2, "canal", b"{"), (3, "canal", b'{"type": ')]
    assert sum(table.num_rows for table in tables.values()) + len(rejects) == 4


def test_files_of_two_formats_are_an_error_that_says_how_they_are_read(tmp_path):
    """With the file, and with what its message looks like; a format that is stated is taken as it is."""
    first = written(tmp_path, rows_of("INSERT", 1, [{"id": "1"}], mysqlType={"id": "int"}))
    maxwell = {"database": "shop", "table": "t", "type": "insert", "ts": 1, "xid": 1, "commit": True, "data": {"id": 2}}
    other = written(tmp_path, maxwell, name="b.jsonl")
    with pytest.raises(FileError) as caught:
        read_tables([first, other])
    assert str(caught.value) == (
        f"{other}:1: expected a message of canal, as the first ones are, or format='mixed' for files of several formats,"
        " got one that looks like maxwell"
    )
    with pytest.raises(FileError, match=r"canal: \$\.data: expected array, got object"):
        read_tables([first, other], "canal")
    assert len(read_tables([first, other], "mixed")[T]) == 2


def test_folders_packed_files_and_mixed_formats(tmp_path):
    """They are read as the commands read them, one file behind the other."""
    first = rows_of("INSERT", 1, [{"id": "1", "n": "1"}])
    later = rows_of("UPDATE", 2, [{"id": "1", "n": "2"}], [{"n": "1"}])
    (tmp_path / "in").mkdir()
    written(tmp_path / "in", later, name="part-10.jsonl")
    (tmp_path / "in" / "part-9.jsonl.gz").write_bytes(gzip.compress(written(tmp_path, first).read_bytes()))
    assert read_tables(tmp_path / "in", current=True)[T].to_pylist() == [{"id": 1, "n": 2}]
    (message,) = [text for text in goldens("oms_shareplex") if b'"ins"' in text][:1]
    other = written(tmp_path, message, name="other.jsonl")
    tables = read_tables([tmp_path / "in", str(other)], "mixed")
    assert len(tables) == 2
    assert tables[T].num_rows == 2
    with pytest.raises(cdcavro.UnknownFormatError, match="did you mean canal"):
        read_tables(other, "canel")


def test_a_table_that_is_dropped_in_a_later_file_keeps_its_rows_apart(tmp_path):
    """By the times of the messages where they state no position: what is created again does not have them."""

    def message(type: str, ts: int, **members: object) -> str:
        return json.dumps({"database": "shop", "table": "t", "type": type, "ts": ts, "xid": 1, **members})

    create = "CREATE TABLE t (id INT PRIMARY KEY, n INT)"
    first = [message("table-create", 1_000, sql=create), message("insert", 2, data={"id": 1, "n": 1})]
    later = [message("table-drop", 10_000, sql="DROP TABLE t"), message("table-create", 11_000, sql=create)]
    later.append(message("insert", 12, data={"id": 2, "n": 2}))
    for name, lines in (("a.jsonl", first), ("b.jsonl", later)):
        (tmp_path / name).write_text("\n".join(lines))
    for paths in ([tmp_path / "a.jsonl", tmp_path / "b.jsonl"], [tmp_path / "b.jsonl", tmp_path / "a.jsonl"]):
        (rows,) = read_tables(paths, "maxwell", current=True).values()
        assert rows.to_pylist() == [{"id": 2, "n": 2}]


CREATE, DROP = "CREATE TABLE t (id INT PRIMARY KEY, n INT)", "DROP TABLE t"


@pytest.mark.parametrize("name", ["a.jsonl", "z.jsonl"])
@pytest.mark.parametrize(
    ("statements", "seconds", "left"),
    [
        # A script drops a table, creates it and fills it.
        ([(1, CREATE), (10, DROP), (10, CREATE)], (9, 10, 11), [10, 11]),
        ([(1, CREATE), (10, DROP), (11, CREATE)], (9, 10, 11), [11]),
        ([(1, CREATE), (10, DROP), (20, CREATE)], (9, 10, 20), [20]),
        # It creates one for a short while.
        ([(9, CREATE), (10, DROP), (20, CREATE)], (9, 10, 20), [20]),
        ([(10, CREATE), (10, DROP), (20, CREATE)], (10, 21), [21]),
        ([(9, CREATE), (9, DROP), (9, CREATE), (11, DROP), (12, CREATE)], (9, 10, 11, 13), [13]),
    ],
)
def test_rows_of_the_second_of_a_statement_stand_by_what_it_did_whatever_their_file_is_called(
    tmp_path, name, statements, seconds, left
):
    """Of the second nothing else is known: rows are behind a DROP if the table is made anew within it, else before it."""
    usual = {"database": "shop", "table": "t", "xid": 1}
    kinds = {CREATE: "table-create", DROP: "table-drop"}
    made = [usual | {"type": kinds[sql], "ts": 1_000 * second, "sql": sql} for second, sql in statements]
    rows = [usual | {"type": "insert", "ts": ts, "data": {"id": ts, "n": 1}} for ts in seconds]
    for file, messages in (("m.jsonl", made), (name, rows)):
        (tmp_path / file).write_text("\n".join(map(json.dumps, messages)))
    rejects: list = []
    for paths in ([tmp_path / "m.jsonl", tmp_path / name], [tmp_path / name, tmp_path / "m.jsonl"]):
        (found,) = read_tables(paths, "maxwell", current=True, rejects=rejects).values()
        assert (found.column("id").to_pylist(), rejects) == (left, [])


def test_a_table_without_a_key_has_no_current_rows(tmp_path):
    """It is an error that names the table; its changes are there."""
    path = written(tmp_path, rows_of("INSERT", 1, [{"id": "1"}], pkNames=None))
    with pytest.raises(SchemaError, match=r"shop\.t: no primary key is known"):
        read_tables(path, current=True)
    assert read_tables(path)[T].num_rows == 1


def test_a_key_that_changed_before_the_first_row_is_that_of_the_table(tmp_path):
    """As gh-ost widens a key of its copy; with a row of before the statement it is refused."""
    wide, most = {"id": "bigint unsigned", "a": "int"}, 2**64 - 1
    messages = [
        {**statement(1, "CREATE TABLE t (id INT PRIMARY KEY, a INT)"), "type": "CREATE"},
        statement(2, "ALTER TABLE t MODIFY id BIGINT UNSIGNED NOT NULL"),
        rows_of("INSERT", 3, [{"id": str(most), "a": "1"}, {"id": "7", "a": "1"}], mysqlType=wide),
        rows_of("DELETE", 4, [{"id": "7", "a": "1"}], mysqlType=wide),
    ]
    path = written(tmp_path, *messages)
    assert read_tables(path, current=True)[T].to_pylist() == [{"id": most, "id (until version 1)": None, "a": 1}]
    done = CliRunner().invoke(main, ["tables", str(path), "--current", "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.stderr
    (file,) = (tmp_path / "out").glob("*/current.parquet")
    assert pq.read_table(file).column("id").to_pylist() == [most]
    for kind in ("INSERT", "DELETE"):
        old = rows_of(kind, 1, [{"id": "1", "a": "1"}], es=1_700_000_001_500, mysqlType={"id": "int", "a": "int"})
        path = written(tmp_path, *messages[:1], old, *messages[1:])
        with pytest.raises(SchemaError, match=r"its key \(id INT\) is \(id BIGINT UNSIGNED\) from version 2 on"):
            read_tables(path, current=True)


def test_a_table_that_came_again_is_two(tmp_path):
    """The one that was dropped has a name that says so, and no current rows."""
    created = {**statement(1, "CREATE TABLE t (id INT PRIMARY KEY)"), "type": "CREATE"}
    insert = rows_of("INSERT", 2, [{"id": "1"}])
    dropped = {**statement(3, "DROP TABLE t"), "type": "ERASE"}
    path = written(tmp_path, created, insert, dropped, {**statement(4, created["sql"]), "type": "CREATE"})
    assert {name.table: table.num_rows for name, table in read_tables(path).items()} == {"t": 0, "t (dropped)": 1}
    assert {name.table: table.num_rows for name, table in read_tables(path, current=True).items()} == {"t": 0}


def test_local_times_become_instants_by_the_zone_that_is_given(tmp_path):
    """Also those that a message states outside its rows."""
    message = rows_of(
        "INSERT", 1, [{"id": "1", "at": "2024-01-01 00:00:00"}], mysqlType={"id": "int", "at": "timestamp"}
    )
    path = written(tmp_path, message)
    (row,) = read_tables(path, current=True, zone=ZoneInfo("Asia/Shanghai"))[T].to_pylist()
    assert row["at"] == datetime(2023, 12, 31, 16, tzinfo=UTC)
    (row,) = read_tables(path, current=True)[T].to_pylist()
    assert (row["at"], dict(row["unparsed"])) == (None, {"at": "2024-01-01 00:00:00"})


def test_both_halves_of_an_update_are_rejects(tmp_path):
    """Each of its messages, where a value of the update is refused: none of them is in the tables."""
    insert, before, after = (
        {
            "_sequence_id_": str(number),
            "_operation_type_": operation,
            "_excute_time_": 1_649_991_756_000,
            "_source_table_": "t",
            "_before_image_": "Y" if id == "x" else "N",
            "id": id,
            "_after_image_": "N" if id == "x" else "Y",
        }
        for number, operation, id in ((1, "I", "1"), (2, "U", "x"), (2, "U", "y"))
    )
    rejects = []
    given = TypeOverrides.from_mapping({"t": {"id": "int"}})
    path = written(tmp_path, insert, before, after)
    (table,) = read_tables(path, "datahub_tuple", rejects=rejects, given=given, on_misfit="error").values()
    assert (table.num_rows, [one.line for one in rejects]) == (1, [2, 3])


def garbled(format: str, seed: int) -> list[bytes]:
    """Return the shop's messages out of their order, some twice, with others between them that are none."""
    random = Random(f"{format} {seed}")
    messages, width = list(shop(format)), random.choice((1, 3, 10))
    for start in range(0, len(messages), width):
        messages[start : start + width] = random.sample(part := messages[start : start + width], len(part))
    messages = [message for message in messages for _ in range(random.choice((1, 1, 1, 2)))]
    for text in (b"{", b"", b"null", b"{}"):
        messages.insert(random.randrange(len(messages)), text)
    return messages


def all_of(paths: list, format: str, is_current: bool, **options: Any) -> dict[str, Any]:
    """Return what files become: rows of tables, or why one has none, rejects, and the number of messages that became rows."""
    rejects, rows = [], {}

    def reject(error, line):
        rejects.append((line.number, line.raw, error.format, error.path, str(error)))

    reader, inputs = (
        TableReader(Tables(**options), reject, is_current=is_current),
        Inputs([str(path) for path in paths]),
    )
    reader.read(inputs, *inputs.open_lines(format, option=""))
    for table in reader.tables.tables if is_current else ():
        try:
            rows[table.number] = reader.current_rows(table).to_pylist()
        except (SchemaError, OrderError) as error:
            rows[table.number] = str(error)
    if not is_current:
        rows = {name: table.to_pylist() for name, table in reader.change_tables().items()}
    # Of mixed formats, a text that is none has no format.
    unnamed = sorted((number, raw, path, text) for number, raw, _, path, text in rejects)
    return {"rows": rows, "rejects": unnamed, "read": reader.read_count, "typed": reader.typed_count}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("format", FORMATS)
def test_what_the_engine_takes_is_what_the_exact_way_makes(tmp_path, monkeypatch, format, seed):
    """Rows and rejects, with statements and halves of updates, however the messages are cut into batches.

    Of mixed formats, each message goes the exact way.
    """
    random, messages = Random(seed), garbled(format, seed)
    cut = random.randrange(len(messages))
    paths = [tmp_path / name for name in ("a.jsonl", "b.jsonl")]
    for path, part in zip(paths, (messages[:cut], messages[cut:]), strict=True):
        path.write_bytes(b"".join(message + b"\n" for message in part))
    monkeypatch.setattr(table_files, "_BATCH", random.choice((7, 50, 10_000)))
    monkeypatch.setattr(table_files, "sniff", lambda _: format)
    for is_current in (True, False):
        options = {"zone": ZONE, "on_misfit": random.choice(("keep", "reject"))}
        wanted, found = (all_of(paths, name, is_current, **options) for name in ("mixed", format))
        assert found == wanted
        assert len(found["rejects"]) >= 3
        assert sum(map(len, found["rows"].values())) > 10


@pytest.mark.skipif(not COMPILED, reason="where nothing is compiled, all goes the exact way")
def test_the_engine_takes_what_is_like_messages_before_it(tmp_path, monkeypatch):
    """All but the first batch, one with a statement, and the first message behind either."""
    rows = [rows_of("INSERT", number, [{"id": str(number)}], mysqlType={"id": "int"}) for number in range(100)]
    rows[50] = statement(50, "ALTER TABLE t ADD COLUMN v INT DEFAULT 7")
    rows[51:] = [
        rows_of("INSERT", number, [{"id": str(number), "v": "1"}], mysqlType={"id": "int", "v": "int"})
        for number in range(51, 100)
    ]
    monkeypatch.setattr(table_files, "_BATCH", 20)
    exact = Counter()
    changes = MessageTyper.changes

    def counted(typer, message):
        exact[bytes(message)] += 1
        return changes(typer, message)

    monkeypatch.setattr(MessageTyper, "changes", counted)
    (table,) = read_tables(written(tmp_path, *rows), "canal", current=True).values()
    assert table.to_pydict() == {"id": [*range(50), *range(51, 100)], "v": [*[7] * 50, *[1] * 49]}
    assert len(exact) <= 20 + 1 + 20 + 1


CHAINS = {
    "DROP": ["DROP TABLE t", None, None],
    "DROP, DROP": ["DROP TABLE t", None, None, "DROP TABLE t", None],
    "DROP, ADD": ["DROP TABLE t", None, "ALTER TABLE t ADD COLUMN w INT DEFAULT 7", None],
    "DROP, RENAME": ["DROP TABLE t", None, "RENAME TABLE t TO u", None],
    "DROP, unknown column": ["DROP TABLE t", None, "ALTER TABLE t DROP COLUMN nope", None],
    "MODIFY": ["ALTER TABLE t MODIFY v VARCHAR(20)", None, None],
    "CREATE LIKE": ["CREATE TABLE u LIKE t", "DROP TABLE t", None, "CREATE TABLE x LIKE t", None],
}


@pytest.mark.parametrize("cut", [1, 3, 19, 20])
@pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS)
def test_statements_mean_what_they_mean_among_rows_of_a_known_pattern(tmp_path, monkeypatch, chain, cut):
    """What a row says is learned where it stands between statements, also if the engine knew it before."""
    types = {"id": "int", "v": "int"}
    rows = [rows_of("INSERT", i, [{"id": str(i), "v": "1"}], mysqlType=types) for i in range(20 + cut + len(chain))]
    for i, sql in enumerate(chain, 20 + cut):
        if sql is not None:
            rows[i] = {**statement(i, sql), "type": "ERASE" if sql.startswith("DROP") else sql.split()[0]}
    monkeypatch.setattr(table_files, "_BATCH", 20)
    path = written(tmp_path, *rows)
    for is_current in (True, False):
        assert all_of([path], "canal", is_current) == all_of([path], "mixed", is_current)


def test_a_file_that_is_read_twice_is_an_error_of_its_order(tmp_path, monkeypatch):
    """Where arrival is the order, its lines come behind themselves; the engine changes nothing about that."""
    monkeypatch.setattr(table_files, "_BATCH", 20)
    path = written(tmp_path, *[rows_of("INSERT", i, [{"id": str(i)}]) for i in range(60)])
    for format in ("canal", "mixed"):
        with pytest.raises(OrderError, match="from line 60 on, got line 1"):
            read_tables([path, path], format, rejects=[])


def test_a_row_that_the_engine_makes_has_what_its_change_lacks_from_an_older_one(tmp_path, monkeypatch):
    """The engine says of a row that it lacks columns, and its payload which."""
    types = {"id": "int", "v": "int", "w": "int"}
    full = [rows_of("INSERT", i, [{"id": str(i), "v": "1", "w": str(i)}], mysqlType=types) for i in range(30)]
    partial = [rows_of("UPDATE", 30 + i, [{"id": str(i), "v": "2"}], [{"v": "1"}], mysqlType=types) for i in range(30)]
    monkeypatch.setattr(table_files, "_BATCH", 35)
    found = all_of([path := written(tmp_path, *full, *partial)], "canal", True)
    assert found["rows"] == {0: [{"id": i, "v": 2, "w": i} for i in range(30)]}
    assert found == all_of([path], "mixed", True)
    assert all_of([path], "canal", False) == all_of([path], "mixed", False)


def test_halves_that_do_not_say_so_are_joined_though_the_engine_takes_rows(tmp_path, monkeypatch):
    """A batch with a half, and those behind it as long as one waits, go the exact way."""

    def record(number, id, value, before, after, **more):
        told = {"_sequence_id_": str(number), "_excute_time_": 1_649_991_756_000, "_source_table_": "t"}
        return {**told, "_before_image_": before, "id": id, "v": value, "_after_image_": after, **more}

    inserts = [record(i, str(i), "a", "N", "Y", _operation_type_="I") for i in range(30)]
    halves = [record(30, "5", "a", "Y", "N"), record(31, "40", "b", "N", "Y"), record(32, "6", "a", "Y", "N")]
    halves += [record(32, "6", "c", "N", "Y"), record(33, "41", "d", "N", "Y")]
    behind = [record(i, str(i), "a", "N", "Y", _operation_type_="I") for i in range(50, 60)]
    monkeypatch.setattr(table_files, "_BATCH", 20)
    monkeypatch.setattr(table_files, "sniff", lambda _: "datahub_tuple")
    given = TypeOverrides.from_mapping({"t": {"id": "int"}})
    path = written(tmp_path, *inserts, *halves, *behind)
    for is_current in (True, False):
        found = all_of([path], "datahub_tuple", is_current, given=given)
        assert found == all_of([path], "mixed", is_current, given=given)
        assert found["rejects"] == []
        assert found["typed"] == len([*inserts, *halves, *behind])


def test_a_table_whose_rows_the_engine_reader_took_has_rows(tmp_path, monkeypatch):
    """So a row that states another type makes another version, and changes none with which a row is written."""
    types = {"id": "int", "v": "int"}
    rows = [rows_of("INSERT", i, [{"id": str(i), "v": "1"}], mysqlType=types) for i in range(4)]
    rows[0] = {**statement(0, "CREATE TABLE t (id INT PRIMARY KEY, v INT)"), "type": "CREATE"}
    rows[3] = rows_of("INSERT", 3, [{"id": "3", "v": "x"}], mysqlType={"id": "int", "v": "varchar(20)"})
    monkeypatch.setattr(table_files, "_BATCH", 1)
    path = written(tmp_path, *rows)
    for is_current in (True, False):
        assert all_of([path], "canal", is_current) == all_of([path], "mixed", is_current)
    (table,) = read_tables(path, "canal", current=True).values()
    assert table.column_names == ["id", "v", "v (until version 1)"]

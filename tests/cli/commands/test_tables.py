"""The commands `tables` and `evolve`: what they write, what they say, and their exit codes."""

from __future__ import annotations

import base64
import json
import os
from datetime import UTC
from pathlib import Path

import fastavro
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from cdcavro.avro.schema import parse_schema
from cdcavro.cli import main
from cdcavro.lake import read_tables
from cdcavro.table.table_schema import from_schema
from support.messages import SAMPLES, canal, shop_canal

CREATE = b'{"type":"CREATE","isDdl":true,"database":"s","table":"t","id":1,"es":1,"sql":"CREATE TABLE t (id INT PRIMARY KEY, a INT)"}'
ALTER = (
    b'{"type":"ALTER","isDdl":true,"database":"s","table":"t","id":3,"es":3,"sql":"ALTER TABLE t CHANGE a b BIGINT"}'
)

KEYED = [
    (
        b'{"data":[{"id":"1","at":"2024-01-01 00:00:00"}],"old":null,"database":"shop","table":"orders","type":"INSERT",'
        b'"es":1,"ts":1,"id":1,"gtid":"","isDdl":false,"sql":"","pkNames":["id"],"sqlType":{"id":4,"at":93},'
        b'"mysqlType":{"id":"int","at":"timestamp"}}'
    )
]


def row(number: int, name: str, value: str, type: str = "int") -> bytes:
    """Write an insert of Canal's."""
    message = {
        "type": "INSERT",
        "database": "s",
        "table": "t",
        "id": number,
        "es": number,
        "pkNames": ["id"],
        "mysqlType": {"id": "int", name: type},
        "data": [{"id": str(number), name: value}],
    }
    return json.dumps(message, separators=(",", ":")).encode()


TABEL = "MySQL DDL: line 1, column 8: expected TABLE or another noun, got 'TABEL'"
STREAM = (CREATE, row(2, "a", "7"), ALTER, row(4, "b", "8", "bigint"))


def run(*arguments, input=None):
    """Run a command inside this process."""
    return CliRunner().invoke(main, list(map(str, arguments)), input=input, catch_exceptions=False)


def write(folder, *lines):
    """Write lines into a file and give its path."""
    path = folder / "in.jsonl"
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return path


def rows_of(path):
    """Return the rows after the changes of a container file."""
    with path.open("rb") as stream:
        return [record["after"] for record in fastavro.reader(stream)]


def test_a_table_has_a_folder_with_the_schemas_and_payloads_of_its_versions(tmp_path):
    """Under its newest name; `tables.json` says what led to each version."""
    done = run("tables", write(tmp_path, *STREAM), "--out", tmp_path / "out")
    assert done.stdout == (
        "table  versions  changes\nt             2        2\nread 4 = typed 2 + other 2 + rejected 0\n"
    )
    assert (done.exit_code, done.stderr) == (0, "")
    folder = tmp_path / "out" / "s.t"
    assert sorted(path.name for path in folder.iterdir()) == [
        *("v1.avro", "v1.avsc", "v1.key.avsc", "v2.avro", "v2.avsc", "v2.key.avsc")
    ]
    assert rows_of(folder / "v1.avro") == [{"id": 2, "a": 7, "unparsed": {}, "absent": []}]
    assert rows_of(folder / "v2.avro") == [{"id": 4, "b": 8, "unparsed": {}, "absent": []}]
    with (folder / "v1.avro").open("rb") as stream:
        newest = json.loads((folder / "v2.avsc").read_text())
        assert [record["after"]["b"] for record in fastavro.reader(stream, newest)] == [7]
    (listed,) = json.loads((tmp_path / "out" / "tables.json").read_text())
    assert (listed["folder"], listed["changes"], listed["is_gone"]) == ("s.t", 2, False)
    assert [one["steps"] for one in listed["versions"]] == [
        ["table 't' with 2 columns"],
        ["column 'a' renamed to 'b'", "column 'b' reads int as long"],
    ]


def test_rejects_have_their_bytes_and_what_they_contradict(tmp_path):
    """A column that no version has, a statement that does not parse, text that is none: the others go on."""
    bad = [
        row(5, "b", "9", "bigint").replace(b'"b":"9"', b'"c":"9"'),
        CREATE.replace(b"CREATE TABLE t", b"CREATE TABEL"),
        b"{",
    ]
    done = run("tables", write(tmp_path, *STREAM, *bad), "--out", tmp_path / "out", "--rejects", tmp_path / "bad")
    assert done.stdout.splitlines()[-1] == "read 7 = typed 2 + other 2 + rejected 3"
    assert done.exit_code == 1
    rejects = [json.loads(line) for line in (tmp_path / "bad").read_bytes().splitlines()]
    assert [base64.b64decode(one["raw"]) for one in rejects] == bad
    assert [(one["path"], one["reason"]) for one in rejects] == [
        ("$.after.c", "expected a column of t in version 2, got none"),
        (
            "$",
            f"expected a statement or columns that the table allows, got {TABEL}",
        ),
        ("$", "expected JSON, got text that ends too early, at character 1"),
    ]


@pytest.mark.parametrize(
    ("policy", "code", "balance"),
    [
        ("keep", 0, "read 1 = typed 1 + other 0 + rejected 0"),
        ("reject", 1, "read 1 = typed 0 + other 0 + rejected 1"),
        ("error", 2, ""),
    ],
)
def test_a_value_that_its_type_cannot_carry_is_kept_or_rejected_or_ends_the_command(tmp_path, policy, code, balance):
    """Nothing becomes null unseen."""
    file = write(tmp_path, row(1, "d", "0000-00-00", "date"))
    done = run("tables", file, "--out", tmp_path / "out", "--on-misfit", policy)
    assert (done.exit_code, "".join(done.stdout.splitlines()[-1:])) == (code, balance)
    sentence = "$.after.d: expected date, got string '0000-00-00'"
    if policy == "keep":
        (after,) = rows_of(tmp_path / "out" / "s.t" / "v1.avro")
        assert (after["d"], after["unparsed"]) == (None, {"d": "0000-00-00"})
        assert done.stderr == "1 value that its type cannot carry is text in unparsed: t.d 1\n"
    elif policy == "reject":
        assert done.stderr == f"{file}:1: canal: {sentence}\n"
    else:
        assert done.stderr == f"Error: {file}:1: canal: {sentence}\n"
        assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("absent", "names"), [("unstated", ["d"]), ("null", [])])
def test_columns_that_rows_lack_are_null_if_it_is_said_so(tmp_path, absent, names):
    """By an option of the command."""
    file = write(tmp_path, row(1, "d", "1").replace(b',"d":"1"', b""))
    done = run("tables", file, "--out", tmp_path / "out", "--absent", absent)
    assert done.exit_code == 0, done.stderr
    (after,) = rows_of(tmp_path / "out" / "s.t" / "v1.avro")
    assert (after["d"], after["absent"]) == (None, names)


def test_types_are_given_for_formats_that_state_none(tmp_path):
    """And said to be unknown without."""
    line = b'{"meta":{"op":"ins","table":"s.t"},"data":{"id":1,"price":1.20}}'
    (tmp_path / "types.json").write_text('{"s.t":{"id":"bigint","price":"decimal(10,2)"}}')
    file = write(tmp_path, line)
    done = run("tables", file, "--out", tmp_path / "out", "--types", tmp_path / "types.json")
    (after,) = rows_of(tmp_path / "out" / "s.t" / "v1.avro")
    assert (done.exit_code, after["id"], str(after["price"])) == (0, 1, "1.20")
    done = run("tables", file, "--out", tmp_path / "again")
    (after,) = rows_of(tmp_path / "again" / "s.t" / "v1.avro")
    assert (after["id"], after["price"]) == ("1", "1.20")
    sentences = [f"t: {NO_KEY}", "t: id: no type is stated: a string", "t: price: no type is stated: a string"]
    assert done.stderr.splitlines() == sentences
    (tmp_path / "types.json").write_text('{"s.t":{"id":"bigit"}}')
    done = run("tables", file, "--out", tmp_path / "out", "--types", tmp_path / "types.json")
    assert done.exit_code == 2
    assert "expected a type that is known for 's.t' 'id', got 'bigit'" in done.stderr
    done = run("tables", file, "--out", tmp_path / "out", "--types", tmp_path / "typos.json")
    assert (done.exit_code, f"'--types': {tmp_path / 'typos.json'}: No such file or directory\n" in done.stderr) == (
        2,
        True,
    )


def test_a_folder_is_replaced_only_if_it_was_written_so(tmp_path):
    """--force does not remove what somebody else put there."""
    file = write(tmp_path, *STREAM)
    assert run("tables", file, "--out", tmp_path / "out").exit_code == 0
    done = run("tables", file, "--out", tmp_path / "out")
    expected = "expected a new folder (--force replaces one), got one that exists"
    assert (done.exit_code, done.stderr) == (2, f"Error: {tmp_path / 'out'}: {expected}\n")
    assert run("tables", file, "--out", tmp_path / "out", "--force").exit_code == 0
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "precious").write_text("x")
    done = run("tables", file, "--out", tmp_path / "mine", "--force")
    expected = "expected a folder with tables.json, written before, got one that exists"
    assert (done.exit_code, done.stderr) == (2, f"Error: {tmp_path / 'mine'}: {expected}\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl", "mine", "out"]


@pytest.mark.parametrize("is_split", [False, True])
def test_halves_are_joined_before_they_are_typed(tmp_path, is_split):
    """A Blob update is one change with both rows, also if they are in two files; a half alone is a reject."""
    half = '{{"schema":{{"dataColumn":[{{"name":"id","type":"LONG"}}],"source":{{"dbName":"s","tableName":"t"}}}},"payload":{{"op":"UPDATE_{}","{}":{{"dataColumn":{{"id":{}}}}},"sequenceId":"{}"}},"version":"0.0.1"}}'
    lines = [
        half.format("BEFOR", "before", 1, 5),
        half.format("AFTER", "after", 2, 5),
        half.format("AFTER", "after", 3, 6),
    ]
    inputs = [write(tmp_path, *map(str.encode, lines))]
    if is_split:
        inputs = [tmp_path / name for name in "abc"]
        for path, line in zip(inputs, lines, strict=True):
            path.write_text(line)
    done = run("tables", *inputs, "--out", tmp_path / "out")
    assert done.stdout.splitlines()[-1] == "read 3 = typed 2 + other 0 + rejected 1"
    assert done.stderr.startswith(f"{tmp_path / 'c'}:1: " if is_split else f"{inputs[0]}:3: ")
    (path,) = (tmp_path / "out").glob("*/v1.avro")
    with path.open("rb") as stream:
        (record,) = fastavro.reader(stream)
    assert (record["op"], record["before"]["id"], record["after"]["id"]) == ("u", 1, 2)


def test_the_whole_shop_is_typed(tmp_path):
    """Hostile names stay in the folder; input is output and rejects."""
    done = run("tables", SAMPLES / "canal" / "shop.jsonl", "--out", tmp_path / "out", "--zone", "UTC")
    assert done.stdout.splitlines()[-1] == f"read {len(shop_canal())} = typed 167 + other 21 + rejected 0"
    folders = sorted(path.name for path in (tmp_path / "out").iterdir() if path.is_dir())
    assert folders == [
        *("shop.all_types", "shop.big", "shop.ctas", "shop.nopk2", "shop.orders_v3", "shop.we_x20_ird_x2d_tab_x2e_le")
    ]


def test_an_empty_file_makes_an_empty_folder(tmp_path):
    """Nothing to do is no fault."""
    done = run("tables", write(tmp_path), "--out", tmp_path / "out")
    assert (done.exit_code, done.stdout) == (0, "read 0 = typed 0 + other 0 + rejected 0\n")
    assert json.loads((tmp_path / "out" / "tables.json").read_text()) == []


def test_evolve_prints_the_next_version_and_says_what_was_done(tmp_path):
    """On a schema that `tables` wrote; the new one reads the old payloads."""
    run("tables", write(tmp_path, *STREAM), "--out", tmp_path / "out")
    schema = tmp_path / "out" / "s.t" / "v2.avsc"
    statement = "ALTER TABLE t RENAME COLUMN b TO `it's`, ADD d DATE NOT NULL DEFAULT '2020-02-29'"
    done = run("evolve", schema, "--ddl", statement)
    table = from_schema(parse_schema(done.stdout))
    assert ([one.name for one in table.columns], table.version) == (["id", "it's", "d"], 3)
    assert "'" not in done.stdout
    assert done.stderr.splitlines()[:2] == [
        "column 'b' renamed to \"it's\"",
        "column 'd' added: '2020-02-29' in older rows",
    ]
    with (schema.parent / "v2.avro").open("rb") as stream:
        (after,) = (record["after"] for record in fastavro.reader(stream, json.loads(done.stdout)))
    # fastavro gives a default as the schema has it: days since the epoch.
    assert (after["it_x27_s"], after["d"]) == (8, 18_321)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--ddl", "ALTER TABLE t DROP x"], "schema t: there is no column 'x'"),
        (["--ddl", "ALTER TABLE t FROBNICATE"], "MySQL DDL: line 1, column 15: expected"),
        (["--ddl", "ALTER TABLE t ADD x INT", "--db-type", "dbase"], "dbase"),
    ],
)
def test_evolve_says_in_one_sentence_what_is_wrong(tmp_path, arguments, sentence):
    """With exit code 2 and nothing on standard output."""
    run("tables", write(tmp_path, *STREAM), "--out", tmp_path / "out")
    done = run("evolve", tmp_path / "out" / "s.t" / "v2.avsc", *arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert sentence in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_statement_that_is_not_about_columns_changes_nothing(tmp_path):
    """And that is said."""
    run("tables", write(tmp_path, *STREAM), "--out", tmp_path / "out")
    schema = tmp_path / "out" / "s.t" / "v2.avsc"
    done = run("evolve", schema, "--ddl", "ALTER TABLE t ADD INDEX (id)")
    assert json.loads(done.stdout) == json.loads(schema.read_text())
    assert done.stderr == "nothing changed: the statement is not about a column, a key or the name of this table\n"


@pytest.mark.parametrize(("table", "sql"), [("u", "ALTER TABLE u ADD x INT"), ("T", "ALTER TABLE `T` ADD x INT")])
def test_a_statement_about_another_table_is_an_error(tmp_path, table, sql):
    """A name mistyped must not look like a version that was made."""
    run("tables", write(tmp_path, *STREAM), "--out", tmp_path / "out")
    done = run("evolve", tmp_path / "out" / "s.t" / "v2.avsc", "--ddl", sql, "--out", tmp_path / "v3.avsc")
    said = f"Error: the statement is about '{table}', and the schema is that of 't'\n"
    assert (done.exit_code, done.stderr) == (2, said)
    assert not (tmp_path / "v3.avsc").exists()


def test_a_type_that_no_database_has_is_told(tmp_path):
    """A word mistyped makes a string of the column."""
    run("tables", write(tmp_path, *STREAM), "--out", tmp_path / "out")
    done = run("evolve", tmp_path / "out" / "s.t" / "v2.avsc", "--ddl", "ALTER TABLE t ADD x VARCAHR(20)")
    assert done.exit_code == 0
    assert "column 'x': unknown type 'VARCAHR(20)': a string\n" in done.stderr


def test_the_schema_of_a_key_does_not_evolve_alone(tmp_path):
    """It lies beside that of the row."""
    run("tables", write(tmp_path, *KEYED), "--out", tmp_path / "out")
    (schema,) = tmp_path.glob("out/*/v1.key.avsc")
    done = run("evolve", schema, "--ddl", "ALTER TABLE orders ADD x INT")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "is the schema of a key, which follows that of its row" in done.stderr


def test_tables_of_one_name_are_told_apart(tmp_path):
    """By their database; and who forgets the zone is told of it."""
    other = KEYED[0].replace(b'"shop"', b'"other"')
    done = run("tables", write(tmp_path, *KEYED, other), "--from", "canal", "--out", tmp_path / "out")
    assert [line.split()[0] for line in done.stdout.splitlines()[1:3]] == ["shop.orders", "other.orders"]
    assert (
        "2 values that their type cannot carry are text in unparsed: shop.orders.at 1, other.orders.at 1" in done.stderr
    )
    assert "a TIMESTAMP without a zone is an instant only in the source's zone: state it with --zone" in done.stderr
    done = run("tables", write(tmp_path, *KEYED), "--format", "canal", "--out", tmp_path / "zoned", "--zone", "UTC")
    assert (done.stdout.splitlines()[1].split()[0], done.stderr) == ("orders", "")


def test_a_table_that_was_created_again_has_the_plain_folder(tmp_path):
    """Whoever reads the folder of its name reads its rows; where those of the dropped one are is said."""
    usual = {"database": "d", "table": "t", "xid": 1}
    statements = ["CREATE TABLE t (id INT PRIMARY KEY)", "DROP TABLE t", "CREATE TABLE t (id INT PRIMARY KEY)"]
    kinds = {"CREATE": "table-create", "DROP": "table-drop"}
    made = [
        usual | {"type": kinds[text.split()[0]], "ts": 10_000 * i, "sql": text} for i, text in enumerate(statements)
    ]
    rows = [usual | {"type": "insert", "ts": ts, "data": {"id": ts}} for ts in (5, 25)]
    messages = [made[0], rows[0], *made[1:], rows[1]]
    path = write(tmp_path, *[json.dumps(one).encode() for one in messages])
    result = run("tables", path, "--out", tmp_path / "out")
    assert result.stdout.splitlines()[1:3] == [
        "t             1        1  dropped, in d.t~2",
        "t             1        1",
    ]
    for folder, number in (("d.t", 25), ("d.t~2", 5)):
        assert [row["id"] for row in rows_of(tmp_path / "out" / folder / "v1.avro")] == [number]
    assert run("tables", path, "--current", "--out", tmp_path / "current").exit_code == 0
    assert (tmp_path / "current" / "d.t" / "current.parquet").exists()


def test_only_a_misfit_ends_the_command_where_it_is_to_be_an_error(tmp_path):
    """Text that is no message is a reject all the same."""
    done = run("tables", write(tmp_path, b"{", *STREAM), "--out", tmp_path / "out", "--on-misfit", "error")
    assert (done.exit_code, done.stdout.splitlines()[-1]) == (1, "read 5 = typed 2 + other 2 + rejected 1")


def test_rejects_do_not_replace_the_input(tmp_path):
    """Not with --force either."""
    file = write(tmp_path, *STREAM)
    before = file.read_bytes()
    done = run("tables", file, "--out", tmp_path / "out", "--rejects", file, "--force")
    assert (done.exit_code, file.read_bytes()) == (2, before)
    assert "two of the input and the outputs are the same file" in done.stderr


def test_no_file_of_the_user_goes_with_the_folder_that_is_replaced(tmp_path):
    """An input or rejects within it are refused, and stay."""
    assert run("tables", write(tmp_path, *STREAM), "--out", tmp_path / "out").exit_code == 0
    inside = tmp_path / "out" / "mine.jsonl"
    inside.write_bytes(CREATE + b"\n")
    for arguments in ([inside], [tmp_path / "in.jsonl", "--rejects", inside]):
        done = run("tables", *arguments, "--out", tmp_path / "out", "--force")
        assert (done.exit_code, inside.read_bytes()) == (2, CREATE + b"\n")
        assert "mine.jsonl is in the folder that this command writes" in done.stderr


def _tree(folder):
    """Return all files below a folder with their bytes."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(("within", "out"), [("s.t", ".."), (".", "."), ("s.t", "../../out"), (".", "../link")])
def test_a_folder_is_replaced_wherever_the_command_stands(tmp_path, monkeypatch, within, out):
    """The new folder never lies in the one that goes, and a link to it leads to the new one."""
    file = write(tmp_path, *STREAM)
    assert run("tables", file, "--out", tmp_path / "out").exit_code == 0
    (tmp_path / "link").symlink_to("out")
    write(tmp_path, *STREAM[:2])
    monkeypatch.chdir(tmp_path / "out" / within)
    done = run("tables", file, "--out", out, "--force")
    monkeypatch.chdir(tmp_path)
    assert (done.exit_code, done.stdout.splitlines()[-1]) == (0, "read 2 = typed 1 + other 1 + rejected 0")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl", "link", "out"]
    assert sorted(_tree(tmp_path / "out")) == ["s.t/v1.avro", "s.t/v1.avsc", "s.t/v1.key.avsc", "tables.json"]
    assert (tmp_path / "link" / "tables.json").is_file()


@pytest.mark.parametrize("foreign", ["precious", "s.t/precious.avro", "s.t/v1/x", "mine/x", "s.t/link"])
def test_a_folder_with_anything_of_the_user_in_it_is_not_replaced(tmp_path, foreign):
    """A file or a link beside what was written, or within it."""
    file = write(tmp_path, *STREAM)
    assert run("tables", file, "--out", tmp_path / "out").exit_code == 0
    path = tmp_path / "out" / foreign
    path.parent.mkdir(exist_ok=True)
    if path.name == "link":
        path.symlink_to(file)
    else:
        path.write_text("x")
    before = _tree(tmp_path)
    done = run("tables", file, "--out", tmp_path / "out", "--force")
    assert done.exit_code == 2
    assert "expected a folder with nothing in it but what was written before, got " in done.stderr
    assert _tree(tmp_path) == before


def test_a_folder_stays_if_the_new_one_cannot_take_its_place(tmp_path, monkeypatch):
    """There is always one of the two."""
    file = write(tmp_path, *STREAM)
    assert run("tables", file, "--out", tmp_path / "out").exit_code == 0
    before, rename = _tree(tmp_path), Path.rename

    def failing(self, target):
        if self.name.endswith(".part"):
            raise OSError(28, "No space left on device")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", failing)
    done = run("tables", file, "--out", tmp_path / "out", "--force")
    assert done.exit_code == 2
    assert "expected a folder that can be written, got 'No space left on device'" in done.stderr
    assert _tree(tmp_path) == before


@pytest.mark.parametrize(
    "name",
    [
        *("\x1b[2J\x1b[1;1Hread 9", "x\nread 9 = typed 9", "\u202eevil", "a\rb", "\x9b2J", "a\u2028b"),
        *(
            "zz\u3164",
            "\u115fzz",
            "z\u1160z",
            "zz\u2800",
            "zz\ufe0f",
            "zz\u200b",
            "zz\u00ad",
            "\u2067zz",
            "zz\U000e0101",
        ),
    ],
)
def test_names_do_not_reach_the_terminal_raw(tmp_path, name):
    """Those of tables, databases and columns, in the summary and in the notes, whatever is in them."""
    message = json.loads(row(1, name, "zz"))
    lines = [
        json.dumps({**message, "table": name, "database": database, "pkNames": keys, "mysqlType": types}).encode()
        for database, keys, types in (
            (name, [], {"id": "int", name: "int"}),
            ("d", ["id"], {"id": "int", name: "what"}),
        )
    ]
    done = run("tables", write(tmp_path, *lines), "--out", tmp_path / "out")
    printed = done.stdout + done.stderr
    assert done.exit_code == 0
    assert ascii(name)[1:-1] in printed
    assert all(character.isprintable() or character == "\n" for character in printed)
    assert name not in printed
    assert [line for line in done.stdout.splitlines() if line.startswith("read")] == [
        "read 2 = typed 2 + other 0 + rejected 0"
    ]


def test_evolve_refuses_a_file_that_is_no_schema(tmp_path):
    """In one sentence."""
    (tmp_path / "x.avsc").write_bytes(b"\xff\xfe")
    done = run("evolve", tmp_path / "x.avsc", "--ddl", "ALTER TABLE t ADD x INT")
    expected = "expected an Avro schema or container file, got bytes that are not UTF-8"
    assert (done.exit_code, done.stderr) == (2, f"Error: {tmp_path / 'x.avsc'}: {expected}\n")


FULL_LOAD = b'{"type":"INIT","data":[{"id":"1"}],"database":"d","table":"t","id":1,"es":1,"mysqlType":{"id":"int"}}'
SMALL = FULL_LOAD.replace(b'"INIT"', b'"insert"').replace(b'"1"', b'"2"')
UNNAMED = b'{"data":[{"k":"1"}],"type":"INSERT"}'
FLINK = b'{"before":null,"after":{"id":1},"op":"c"}'
NO_KEY = (
    "no primary key is known, so payloads have no key and a merge cannot tell rows apart:"
    " neither a message nor a statement nor a Kafka record's key with the row's values names one"
)


def test_no_row_is_counted_among_the_others(tmp_path):
    """It is typed, or a reject that says what to give."""
    done = run("tables", write(tmp_path, FULL_LOAD, SMALL, UNNAMED), "--out", tmp_path / "out")
    expected = "a message that names its table, or a table given for those that do not (--table)"
    assert (done.exit_code, done.stdout.splitlines()[-1]) == (1, "read 3 = typed 2 + other 0 + rejected 1")
    assert done.stderr == f"{tmp_path / 'in.jsonl'}:3: canal: $: expected {expected}, got none\nt: {NO_KEY}\n"
    with (tmp_path / "out" / "d.t" / "v1.avro").open("rb") as stream:
        assert [one["op"] for one in fastavro.reader(stream)] == ["r", "c"]


def test_rows_that_name_no_table_are_of_the_given_one(tmp_path):
    """Flink's debezium-json has no source."""
    done = run("tables", write(tmp_path, FLINK), "--out", tmp_path / "out", "--table", 'shop."a.b"')
    assert (done.exit_code, done.stderr) == (0, f"a.b: {NO_KEY}\na.b: id: no type is stated: a string\n")
    assert rows_of(tmp_path / "out" / "shop.a_x2e_b" / "v1.avro")[0]["id"] == "1"
    done = run("tables", write(tmp_path, FLINK), "--out", tmp_path / "out", "--force", "--table", "a.b.c.d")
    expected = "a table is spelled table, database.table or database.schema.table, not 'a.b.c.d'"
    assert (done.exit_code, done.stderr.splitlines()[-1]) == (2, f"Error: Invalid value for '--table': {expected}")


@pytest.mark.parametrize(
    ("options", "doc", "absent"),
    [
        ((), None, ["doc"]),
        (("--unavailable", "other"), "__debezium_unavailable_value", []),
        (("--unavailable", ""), "__debezium_unavailable_value", []),
    ],
)
def test_a_value_that_the_source_did_not_give_is_absent(tmp_path, options, doc, absent):
    """By the word of the connector; with an empty word every value is a value."""
    message = b'{"op":"%s","before":null,"after":{"id":1,"doc":"%s"},"source":{"connector":"postgresql","db":"d","table":"t"}}'
    lines = [message % (b"c", b"text"), message % (b"u", b"__debezium_unavailable_value")]
    made = run("tables", write(tmp_path, *lines), "--from", "debezium", "--out", tmp_path / "out", *options)
    assert made.exit_code == 0, made.output
    _, after = rows_of(next((tmp_path / "out").glob("*/v1.avro")))
    assert (after["doc"], after["absent"]) == (doc, absent)


def test_the_modes_of_a_connector_say_how_values_are_read(tmp_path):
    """Where a schema change or given types tell the columns, and nothing else how their values are sent."""
    types = tmp_path / "types.json"
    types.write_text(json.dumps({"t": {"at": "datetime(6)", "n": "decimal(9,2)", "raw": "blob"}}))
    line = b'{"op":"c","before":null,"after":{"at":1,"n":"1234","raw":"6869"},"source":{"connector":"mysql","db":"d","table":"t"}}'
    found = []
    for name, options in (
        ("usual", ()),
        ("given", ("--decimals", "string", "--times", "connect", "--binaries", "hex")),
    ):
        made = run("tables", write(tmp_path, line), "--types", types, "--out", tmp_path / name, *options)
        assert made.exit_code == 0, made.output
        (row,) = rows_of(next((tmp_path / name).glob("*/v1.avro")))
        found.append((row["at"].microsecond, str(row["n"]), row["raw"], row["unparsed"]))
    assert found == [(1, "-26588.24", base64.b64decode("6869"), {}), (1000, "1234.00", b"hi", {})]


RECORD = b'{"topic":"a.b","partition":3,"offset":%d,"key":{"k":"1"},"value":%s}'


def test_messages_in_kafka_records_are_typed_with_their_place(tmp_path):
    """A table is called as the topic only if that is asked for, and the record's key is the row's."""
    lines = [RECORD % (5, FULL_LOAD), RECORD % (6, UNNAMED.replace(b'"type"', b'"id":1,"type"'))]
    done = run("tables", write(tmp_path, *lines), "--out", tmp_path / "out", "--table", "@topic")
    assert (done.exit_code, done.stdout.splitlines()[-1]) == (0, "read 2 = typed 2 + other 0 + rejected 0")
    found = []
    for name in ("d.t", "a_x2e_b"):
        with (tmp_path / "out" / name / "v1.avro").open("rb") as stream:
            found += [one["source"] for one in fastavro.reader(stream)]
    assert [(one["topic"], one["partition"], one["offset"], one["message_line"]) for one in found] == [
        ("a.b", 3, 5, 1),
        ("a.b", 3, 6, 2),
    ]
    assert (tmp_path / "out" / "a_x2e_b" / "v1.key.avsc").exists()
    done = run("tables", write(tmp_path, *lines), "--out", tmp_path / "out", "--force")
    assert done.stdout.splitlines()[-1] == "read 2 = typed 1 + other 0 + rejected 1"


def test_a_file_of_what_is_known_by_sight_is_named(tmp_path):
    """And not only that nothing was found."""
    golden_gate = b'{"table":"test.m","op_type":"INSERT","op_ts":"2020-02-29 00:00:00","after":{"id":1}}'
    done = run("tables", write(tmp_path, golden_gate), "--out", tmp_path / "out")
    expected = "a message of a known format among the first 100, or --format NAME"
    got = "a message of Oracle GoldenGate in another form, which is not supported"
    sentence = f"{tmp_path / 'in.jsonl'}: expected {expected}, got {got}"
    assert (done.exit_code, done.stderr) == (2, f"Error: {sentence}\n")


def test_tables_without_a_key_are_told_in_one_sentence(tmp_path):
    """However many there are."""
    lines = [FULL_LOAD.replace(b'"t"', b'"t%d"' % i) for i in range(22)]
    done = run("tables", write(tmp_path, *lines), "--out", tmp_path / "out")
    names = ", ".join(f"t{i}" for i in range(20))
    assert done.stderr == f"{names} and 2 more: {NO_KEY}\n"


def test_what_statements_left_open_is_told_and_written(tmp_path):
    """A table that a tool has swapped for a copy is one table, and says so."""
    swap = (
        b'{"type":"RENAME","isDdl":true,"database":"s","table":"_t_gho","id":3,"es":3,'
        b'"sql":"RENAME TABLE t TO _t_del, _t_gho TO t"}'
    )
    done = run("tables", write(tmp_path, CREATE, row(2, "a", "7"), swap, row(4, "a", "8")), "--out", tmp_path / "out")
    finding = "'_t_gho', which is not known, was renamed to 't': taken for this table"
    assert (done.exit_code, done.stderr) == (0, f"t: {finding}\n")
    (table,) = json.loads((tmp_path / "out" / "tables.json").read_text(encoding="utf-8"))
    assert (table["changes"], table["is_gone"], table["findings"]) == (2, False, [finding])


def test_what_a_kill_left_of_a_folder_goes_with_the_next_run(tmp_path):
    """Folders that had no name yet, or lost it, but nothing with anything of the user in it, nor what a run just began."""
    out = tmp_path / "out"
    source = str(SAMPLES / "canal" / "shop.jsonl")
    names = ("out.00000001.part", "out.00000002.old", "out.00000003.part", "out.00000004.part", "out.mine.part")
    left, old, foreign, new, other = (tmp_path / name for name in names)
    for folder in (left, old, foreign, new, other):
        (folder / "0").mkdir(parents=True)
        (folder / "0" / "v1.avro").touch()
    (old / "tables.json").write_text("[]")
    (foreign / "0" / "mine.txt").touch()
    for folder in (left, old, foreign, other):
        os.utime(folder, (0, 0))
    assert CliRunner().invoke(main, ["tables", "--out", str(out), source]).exit_code == 0
    assert {*tmp_path.iterdir()} == {out, foreign, new, other}


# --current


def _current(folder, *options):
    """Run `tables --current` on Canal's messages of a real database; return the result and the rows of the tables."""
    source = folder / "in.jsonl"
    if not source.exists():
        source.write_bytes(b"".join(message + b"\n" for message in shop_canal()))
    arguments = ["tables", source, "--out", folder / "out", "--zone", "UTC", "--current", *options]
    done = CliRunner().invoke(main, list(map(str, arguments)), catch_exceptions=False)
    files = (folder / "out").glob("*/current.parquet")
    return done, {file.parent.name: pq.ParquetFile(file).read() for file in files}


@pytest.mark.slow
def test_current_rows_are_those_that_python_reads(tmp_path):
    """In a Parquet file for each table that was not dropped, beside its schemas."""
    done, found = _current(tmp_path)
    wanted = read_tables(tmp_path / "in.jsonl", current=True, zone=UTC)
    assert (done.exit_code, done.stdout.splitlines()[-1]) == (0, "read 188 = merged 188 + rejected 0")
    assert sorted(map(str, (table.to_pylist() for table in found.values()))) == sorted(
        map(str, (table.to_pylist() for table in wanted.values()))
    )
    index = json.loads((tmp_path / "out" / "tables.json").read_bytes())
    assert {entry["folder"]: entry["changes"] for entry in index if not entry["is_gone"]} == {
        name: table.num_rows for name, table in found.items()
    }
    again, _ = _current(tmp_path, "--force")
    assert again.exit_code == 0
    assert [path.name for path in tmp_path.iterdir() if "." in path.name] == ["in.jsonl"]


def test_current_rows_of_a_table_without_a_key_are_not_written(tmp_path):
    """It is said, the other tables are, and the exit code is 1."""
    keyed = canal("INSERT", [{"id": "1"}], id=1)
    keyless = canal("INSERT", [{"id": "1"}], id=2, table="u", pkNames=None)
    (tmp_path / "in.jsonl").write_bytes(b"\n".join([keyed, keyless, b"{"]))
    done, found = _current(tmp_path, "--rejects", tmp_path / "rejects.jsonl")
    assert (done.exit_code, done.stdout.splitlines()[-1]) == (1, "read 3 = merged 2 + rejected 1")
    assert [table.to_pylist() for table in found.values()] == [[{"id": 1}]]
    assert "u is not written: schema d.u: no primary key is known" in done.stderr
    assert json.loads((tmp_path / "rejects.jsonl").read_bytes())["line"] == 3


def test_a_misfit_ends_current_rows_if_that_is_asked_for(tmp_path):
    """As without `--current`; nothing is left behind."""
    (tmp_path / "in.jsonl").write_bytes(canal("INSERT", [{"id": "x"}], id=1))
    done, _ = _current(tmp_path, "--on-misfit", "error")
    assert done.exit_code == 2
    assert "in.jsonl:1: canal: " in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["in.jsonl"]


@pytest.mark.parametrize(("options", "said"), [((), 0), (("--plain",), 1), (("--as", "parquet"), 1)])
def test_files_of_the_newest_columns_alone_name_what_was_dropped(tmp_path, options, said):
    """Its values are only in Avro with an envelope, whose files have the columns of their versions."""
    drop = canal("ALTER", [], id=4, isDdl=True, sql="ALTER TABLE t DROP COLUMN a")
    messages = [canal("INSERT", [{"id": "1", "a": "7"}], id=2), drop, canal("INSERT", [{"id": "2"}], id=5)]
    (tmp_path / "t.jsonl").write_bytes(b"\n".join(messages) + b"\n")
    arguments = [str(tmp_path / "t.jsonl"), "--out", str(tmp_path / "out"), *options]
    done = CliRunner().invoke(main, ["tables", *arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert done.stderr.count("is only in Avro without --plain: t: column 'a' dropped\n") == said

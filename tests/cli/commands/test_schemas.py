"""`cdcavro diff` and `cdcavro generate`: what they print and write, and their exit codes."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

import cdcavro
from cdcavro.avro.container import ContainerWriter
from cdcavro.cli import main
from cdcavro.records.codegen import KINDS, NamedSchema, generate
from support.wire import enum, field, record

OLD = record(field("id"), field("state", enum("A", "B")))
BACKWARD = record(field("id", "long"), field("state", enum("A", "B")))
FORWARD = record(field("id"), field("state", enum("A")))
BREAKING = record(field("id", "long"), field("state", enum("A")))
FULL = record(field("id"), field("state", enum("A", "B")), field("more", default=1))
OUTCOMES = {"backward": BACKWARD, "forward": FORWARD, "breaking": BREAKING, "full": FULL}


def run(*arguments, input=None):
    """Run the command inside this process."""
    arguments = ["diff", *map(str, arguments)]
    return CliRunner().invoke(main, arguments, prog_name="cdcavro", input=input, catch_exceptions=False)


@pytest.fixture
def file(tmp_path):
    """Write a schema into a file and give its path."""

    def written(schema, name="new.avsc"):
        path = tmp_path / name
        path.write_text(json.dumps(schema))
        return path

    return written


def test_changes_then_the_verdict_with_its_reasons(file):
    """Two tables, and a sentence between them."""
    done = run(file(OLD, "old.avsc"), file(BREAKING))
    assert (done.exit_code, done.stderr) == (1, "")
    assert done.stdout == (
        "path     what     old  new\n"
        "$.id     type     int  long\n"
        "$.state  symbols  B\n"
        "\n"
        "verdict: breaking. NEW does not read all data of OLD, nor OLD all data of NEW.\n"
        "\n"
        "what                         path     why\n"
        "NEW cannot read some of OLD  $.state  E lacks B\n"
        "OLD cannot read NEW          $.id     int cannot read long\n"
    )


def test_notes_stand_behind_the_problems(file):
    """They do not change the exit code."""
    done = run(file("long", "old.avsc"), file("double"), "--require", "backward")
    assert done.exit_code == 0
    assert done.stdout.splitlines()[-3:] == [
        "what                 path  why",
        "OLD cannot read NEW  $     long cannot read double",
        "note, NEW reads OLD  $     double reads long: integers beyond 2^53 lose digits",
    ]


@pytest.mark.parametrize("format", cdcavro.FORMATS)
def test_identical_schemas_are_said_to_be(format):
    """A format's name stands for its wire schema."""
    done = run(format, format, "--require", "full")
    assert done.exit_code == 0
    assert done.stdout == (
        "the schemas are identical\n\nverdict: full. NEW reads all data of OLD, and OLD all data of NEW.\n"
    )


@pytest.mark.parametrize(
    ("require", "met"),
    [
        ((), {"backward", "full"}),
        (("--require", "backward"), {"backward", "full"}),
        (("--require", "forward"), {"forward", "full"}),
        (("--require", "full"), {"full"}),
    ],
)
@pytest.mark.parametrize("name", OUTCOMES)
def test_exit_code_is_1_if_what_is_required_is_not_met(file, require, met, name):
    """By default: if the new schema does not read all data of the old one."""
    done = run(file(OLD, "old.avsc"), file(OUTCOMES[name]), *require)
    assert f"\nverdict: {name}. " in done.stdout
    assert done.exit_code == (0 if name in met else 1)


def test_schema_of_a_container_file_counts(tmp_path):
    """The one in its header."""
    path = tmp_path / "data.avro"
    with path.open("wb") as stream:
        ContainerWriter(stream, cdcavro.load_schema("oms_canal"))
    assert run(path, "oms_canal").stdout.startswith("the schemas are identical\n")


def test_standard_input_is_one_of_the_two(file):
    """Not both."""
    assert run("-", file(OLD), input=json.dumps(OLD)).stdout.startswith("the schemas are identical\n")
    done = run("-", "-", input=json.dumps(OLD))
    assert done.exit_code == 2
    assert done.stderr.endswith("\nError: only one of OLD and NEW can be standard input\n")


def test_a_name_that_is_almost_a_format_has_a_hint():
    """As the options that take a format have; what is like none of them is a file."""
    said = "expected a file or the name of a format, got neither: did you mean canal?"
    assert (run("canal", "canl").exit_code, run("canal", "canl").stderr) == (2, f"Error: canl: {said}\n")
    assert "expected a file that can be read" in run("canal", "orders").stderr


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "expected a file that can be read, got 'No such file or directory'"),
        (b"", "expected an Avro schema, got schema text: not JSON: Expecting value: line 1 column 1 (char 0)"),
        (b"\xff", "expected an Avro schema or container file, got bytes that are not UTF-8"),
        (b'"integer"', "expected an Avro schema, got schema $: 'integer' is not defined before it is used"),
        (
            b"Obj\x01",
            "expected a whole Avro container file, got one that ends too early",
        ),
        (b"Obj\x02", "expected an Avro container file, got one that starts with 'Obj\\x02'"),
    ],
)
def test_what_is_no_schema_is_exit_code_2(tmp_path, content, sentence):
    """With the file, what was expected and what is there."""
    path = tmp_path / "new.avsc"
    if content is not None:
        path.write_bytes(content)
    done = run("oms_canal", path)
    assert (done.exit_code, done.stdout, done.stderr) == (2, "", f"Error: {path}: {sentence}\n")


def test_words_of_a_schema_do_not_reach_the_terminal_raw(file):
    """A doc may hold anything: escapes are shown as such."""
    done = run(file(OLD, "old.avsc"), file({**OLD, "doc": "red\x1b[31m\n日本"}))
    assert "red\\x1b[31m\\n\\u65e5\\u672c" in done.stdout
    assert "日本" in run(file(OLD, "old.avsc"), file({**OLD, "doc": "日本"})).stdout


def generated(*arguments, input=None):
    """Run `generate` inside this process."""
    arguments = ["generate", *map(str, arguments)]
    return CliRunner().invoke(main, arguments, prog_name="cdcavro", input=input, catch_exceptions=False)


def made(name, kind="dataclass"):
    """Return the module of a wire schema."""
    return generate([NamedSchema(name, cdcavro.load_schema(name))], kind)


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("kind", KINDS)
def test_a_module_is_written(here, kind):
    """To a file, or to standard output."""
    done = generated("canal", "--kind", kind, "--out", "records.py")
    assert (done.exit_code, done.output) == (0, "")
    assert (here / "records.py").read_text() == made("canal", kind) == generated("canal", "--kind", kind).stdout


@pytest.mark.parametrize("name", ["t.avsc", "-", "t.avro"])
def test_a_schema_comes_from_a_file_standard_input_or_the_header_of_a_container(here, name):
    """The module says which."""
    text = json.dumps(record(field("a")))
    (here / "t.avsc").write_text(text)
    with (here / "t.avro").open("wb") as stream:
        ContainerWriter(stream, cdcavro.parse_schema(text)).flush()
    done = generated(name, "--kind", "dataclass", input=text)
    assert done.exit_code == 0
    assert f"\nSchema: {name}, R\n" in done.stdout
    assert f"\nCommand: cdcavro generate {name} --kind dataclass\n" in done.stdout


def test_a_file_is_replaced_only_by_force(here):
    """As by the other commands."""
    (here / "records.py").write_text("mine")
    done = generated("canal", "--kind", "dataclass", "--out", "records.py")
    assert (done.exit_code, done.stderr) == (
        2,
        "Error: records.py: expected a new file (--force replaces one), got one that exists\n",
    )
    assert (here / "records.py").read_text() == "mine"
    assert generated("canal", "--kind", "dataclass", "--out", "records.py", "--force").exit_code == 0
    assert (here / "records.py").read_text() == made("canal")


@pytest.mark.parametrize(
    ("content", "code", "said"),
    [
        (made("canal"), 0, "records.py is fresh\n"),
        (made("canal") + "\n", 1, "records.py is stale: its schemas give another module\n"),
        (made("canal")[:-1], 1, "records.py is stale: its schemas give another module\n"),
        (made("canal", "msgspec"), 1, "records.py is stale: its schemas give another module\n"),
        (None, 1, "records.py is missing\n"),
    ],
)
def test_check_tells_whether_a_file_is_stale_and_writes_nothing(here, content, code, said):
    """With --force or without."""
    if content is not None:
        (here / "records.py").write_text(content)
    for more in ([], ["--force"]):
        done = generated("canal", "--kind", "dataclass", "--out", "records.py", "--check", *more)
        assert (done.exit_code, done.stdout, done.stderr) == (code, "", said)
    assert [path.read_text() for path in here.iterdir()] == ([] if content is None else [content])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["canl", "--kind", "spark"], "unknown format 'canl': did you mean canal?"),
        (["t.avsc", "--kind", "spark"], "t.avsc: expected a file that can be read, got 'No such file or directory'"),
        (["bad.avsc", "--kind", "spark"], "bad.avsc: expected an Avro schema, got schema $: expected a type, got '{}'"),
        (
            ["raw.avsc", "--kind", "spark"],
            "raw.avsc: expected an Avro schema or container file, got bytes that are not UTF-8",
        ),
        (["long.avsc", "--kind", "dataclass"], "schema long.avsc: expected a record, got long"),
        (["canal", "--kind", "spark", "--check"], "--check needs --out FILE"),
        (["-", "-", "--kind", "spark"], "only one of the schemas can be standard input"),
        (["long.avsc", "--kind", "spark", "--out", "./long.avsc"], "--out names one of the schemas"),
        (["--kind", "spark"], "Missing argument 'NAME|FILE...'."),
    ],
)
def test_wrong_usage_is_said_in_one_sentence(here, arguments, sentence):
    """And nothing is written."""
    for name, content in (("bad", b"{}"), ("raw", b"\xff"), ("long", b'"long"')):
        (here / f"{name}.avsc").write_bytes(content)
    done = generated(*arguments)
    assert done.exit_code == 2
    assert done.stderr.splitlines()[-1] == f"Error: {sentence}"
    assert len(list(here.iterdir())) == 3


def test_json_has_changes_verdict_and_reasons(file):
    """One object has all that the tables have, and the exit code is the same."""
    done = run(file(OLD, "old.avsc"), file(BREAKING), "--json")
    found = json.loads(done.stdout)
    assert (done.exit_code, found["verdict"], done.stdout.count("\n")) == (1, "breaking", 1)
    assert {"path": "$.id", "what": "type", "old": "int", "new": "long"} in found["changes"]
    assert {reason["what"] for reason in found["reasons"]} == {"NEW cannot read some of OLD", "OLD cannot read NEW"}
    same = run(file(OLD, "old.avsc"), file(OLD), "--json")
    assert json.loads(same.stdout) == {"changes": [], "verdict": "full", "reasons": []}

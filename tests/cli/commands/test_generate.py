"""`cdcavro generate`: what it writes, what it says, and its exit codes."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

import cdcavro
from cdcavro.avro.container import ContainerWriter
from cdcavro.cli import main
from cdcavro.records.codegen import KINDS, NamedSchema, generate
from support.wire import field, record


def run(*arguments, input=None):
    """Run the command inside this process."""
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
    done = run("canal", "--kind", kind, "--out", "records.py")
    assert (done.exit_code, done.output) == (0, "")
    assert (here / "records.py").read_text() == made("canal", kind) == run("canal", "--kind", kind).stdout


@pytest.mark.parametrize("name", ["t.avsc", "-", "t.avro"])
def test_a_schema_comes_from_a_file_standard_input_or_the_header_of_a_container(here, name):
    """The module says which."""
    text = json.dumps(record(field("a")))
    (here / "t.avsc").write_text(text)
    with (here / "t.avro").open("wb") as stream:
        ContainerWriter(stream, cdcavro.parse_schema(text)).flush()
    done = run(name, "--kind", "dataclass", input=text)
    assert done.exit_code == 0
    assert f"\nSchema: {name}, R\n" in done.stdout
    assert f"\nCommand: cdcavro generate {name} --kind dataclass\n" in done.stdout


def test_a_file_is_replaced_only_by_force(here):
    """As by the other commands."""
    (here / "records.py").write_text("mine")
    done = run("canal", "--kind", "dataclass", "--out", "records.py")
    assert (done.exit_code, done.stderr) == (
        2,
        "Error: records.py: expected a new file (--force replaces one), got one that exists\n",
    )
    assert (here / "records.py").read_text() == "mine"
    assert run("canal", "--kind", "dataclass", "--out", "records.py", "--force").exit_code == 0
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
        done = run("canal", "--kind", "dataclass", "--out", "records.py", "--check", *more)
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
    done = run(*arguments)
    assert done.exit_code == 2
    assert done.stderr.splitlines()[-1] == f"Error: {sentence}"
    assert len(list(here.iterdir())) == 3

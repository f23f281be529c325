"""`cdcavro publish`, `check`, `subjects` and `fetch`: what they print, and their exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import cdcavro
from cdcavro import registry
from cdcavro.cli import main
from support.messages import SAMPLES
from support.wire import enum, field, record

V1 = record(field("id"), name="shop.Order")
V2 = record(field("id"), field("note", "string", default=""), name="shop.Order")
BROKEN = record(field("id", "string"), name="shop.Order")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    """An empty folder to work in, and a registry that does not wait for the disk."""
    monkeypatch.setattr("cdcavro.registry.folder_backend.os.fsync", lambda _handle: None)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str, code: int = 0, url: str | None = "file:schemas", env=None):
    """Run a command inside this process, and check its exit code."""
    more = [] if url is None else ["--registry", url]
    done = CliRunner().invoke(main, [*arguments, *more], prog_name="cdcavro", env=env, catch_exceptions=False)
    assert done.exit_code == code, done.output
    return done


def written(schema, name: str) -> str:
    """Write a schema into a file."""
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_text(json.dumps(schema))
    return name


def test_a_format_is_published_under_its_record_or_its_topic():
    """And once more, it is there already."""
    done = run("publish", "oms_canal", "canal")
    assert done.stderr == ""
    assert done.stdout == (
        "schema     subject                    version  id\n"
        "oms_canal  cdcavro.oms.Canal                1   1  new: full\n"
        "canal      cdcavro.canal.FlatMessage        1   2  new: full\n"
    )
    again = run("publish", "oms_canal", "--topic", "shop")
    assert again.stdout.splitlines()[1].split() == ["oms_canal", "shop-value", "1", "1", "new:", "full"]
    again = run("publish", "oms_canal", "--topic", "shop", "--strategy", "topic-record")
    assert "shop-cdcavro.oms.Canal" in again.stdout
    assert "there already" in run("publish", "canal").stdout


def test_what_breaks_is_refused_with_exit_code_1():
    """With each reason; later ones of that subject are not tried, others are."""
    run("publish", written(V1, "v1.avsc"))
    done = run("publish", written(BROKEN, "v2.avsc"), written(V2, "v3.avsc"), "canal", code=1)
    assert done.stderr == (
        "v2.avsc: subject 'shop.Order' is BACKWARD, and the schema is not:\n"
        "  version 1: backward, $.id: string cannot read int\n"
    )
    assert done.stdout == (
        "schema   subject                    version  id\n"
        "v2.avsc  shop.Order                              refused\n"
        "v3.avsc  shop.Order                              not tried: an earlier one is refused\n"
        "canal    cdcavro.canal.FlatMessage        1   2  new: full\n"
    )
    assert "new: breaking" in run("publish", "v2.avsc", "--force").stdout


def test_a_level_that_is_given_becomes_the_subjects():
    """In capitals or not."""
    run("publish", written(V1, "v1.avsc"), "--compatibility", "full_transitive")
    assert run("subjects").stdout == ("subject     compatibility    versions\nshop.Order  FULL_TRANSITIVE         1\n")


def test_a_dry_run_tells_what_would_be_and_writes_nothing():
    """Of several versions in a row, too."""
    run("publish", written(V1, "v1.avsc"))
    done = run("publish", "v1.avsc", written(V2, "v2.avsc"), written(V2 | {"doc": "d"}, "v3.avsc"), "--dry-run")
    assert done.stdout == (
        "schema   subject     version  id\n"
        "v1.avsc  shop.Order        1   1  there already\n"
        "v2.avsc  shop.Order        2      would be new: full\n"
        "v3.avsc  shop.Order        3      would be new: full\n"
    )
    assert run("subjects").stdout.splitlines()[1].split() == ["shop.Order", "BACKWARD", "1"]


def test_a_folder_is_published_in_the_order_of_its_versions():
    """v10 comes behind v9, a key goes to the topic's key."""
    for number in range(1, 12):
        fields = [field("id"), *(field(f"c{i}", default=0) for i in range(number))]
        written(record(*fields, name="shop.Order"), f"orders/v{number}.avsc")
    written(record(field("id"), name="shop.Key"), "orders/v1.key.avsc")
    done = run("publish", "orders", "--topic", "orders")
    lines = [line.split()[:3] for line in done.stdout.splitlines()[1:]]
    assert lines[:3] == [
        ["orders/v1.avsc", "orders-value", "1"],
        ["orders/v1.key.avsc", "orders-key", "1"],
        ["orders/v2.avsc", "orders-value", "2"],
    ]
    assert lines[-1] == ["orders/v11.avsc", "orders-value", "11"]


@pytest.mark.slow
def test_what_tables_wrote_is_published_table_by_table():
    """All versions of real tables, each readable by the next, renamed or not."""
    run("tables", str(SAMPLES / "canal" / "shop.jsonl"), "--out", "tables", url=None)
    done = run("publish", "tables", "--topic", "cdc", "--strategy", "topic-record")
    listed = json.loads(Path("tables/tables.json").read_text())
    files = [line.split()[0] for line in done.stdout.splitlines()[1:]]
    assert len(files) == len(list(Path("tables").rglob("*.avsc")))
    assert [one for i, one in enumerate(files) if files.index(one) == i] == files
    folders = [file.split("/")[1] for file in files]
    assert list(dict.fromkeys(folders)) == [one["folder"] for one in listed]
    for line in done.stdout.splitlines()[1:]:
        file, subject, version = line.split()[:3]
        fetched = registry.connect("file:schemas").fetch(subject=subject, version=int(version))
        assert json.loads(fetched.schema.json) == json.loads(Path(file).read_text())


def test_several_tables_do_not_share_the_subject_of_a_topic():
    """It is said what to do instead."""
    run("tables", str(SAMPLES / "canal" / "shop.jsonl"), "--out", "tables", url=None)
    done = run("publish", "tables", "--topic", "cdc", code=2)
    said = "the subject of a topic holds the versions of one table, and there are several: say --strategy topic-record"
    assert said in done.stderr


def test_a_check_says_the_verdict_and_writes_nothing():
    """0 where the level allows the schema, 1 where not."""
    run("publish", written(V1, "v1.avsc"), "--topic", "orders")
    done = run("check", written(V2, "v2.avsc"), "--subject", "orders-value")
    assert done.stdout == (
        "v2.avsc: subject orders-value: BACKWARD: allowed\n  full: each reads all data of the other\n"
    )
    done = run("check", written(BROKEN, "v3.avsc"), "--subject", "orders-value", code=1)
    assert done.stdout == (
        "v3.avsc: subject orders-value: BACKWARD: refused\n"
        "  breaking: neither reads all data of the other\n"
        "  backward, $.id: string cannot read int\n"
        "  forward, $.id: int cannot read string\n"
    )
    assert run("subjects").stdout.splitlines()[1].split()[-1] == "1"


def test_a_check_is_an_object_of_json_for_each_schema():
    """With all problems and notes, the exit code being the same; a subject that is new has no verdict."""
    run("publish", written(V1, "v1.avsc"), "--topic", "orders")
    names = (written(V2, "v2.avsc"), written(BROKEN, "v3.avsc"))
    done = run("check", *names, "--subject", "orders-value", "--json", code=1)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    common = {"subject": "orders-value", "level": "BACKWARD", "is_new": False, "notes": []}
    assert found[0] == common | {"schema": "v2.avsc", "is_allowed": True, "verdict": "full", "problems": []}
    problem = {"versions": [2], "direction": "backward", "path": "$.id", "is_partial": False}
    assert found[1] == common | {
        "schema": "v3.avsc",
        "is_allowed": False,
        "verdict": "breaking",
        "problems": [
            problem | {"reason": "string cannot read int"},
            problem | {"direction": "forward", "reason": "int cannot read string"},
        ],
    }
    (new,) = map(json.loads, run("check", "oms_canal", "--subject", "x", "--json").stdout.splitlines())
    assert (new["is_allowed"], new["is_new"], new["verdict"], new["problems"]) == (True, True, None, [])


def test_a_check_judges_several_versions_one_behind_another():
    """By a level of one's own, too."""
    run("publish", written(V1, "v1.avsc"))
    arguments = ["check", written(V2, "v2.avsc"), written(V1 | {"doc": "d"}, "v3.avsc")]
    assert run(*arguments).stdout.count("allowed") == 2
    wider = written(record(field("id", "long"), name="shop.Order"), "v4.avsc")
    assert run("check", wider).stdout.count("allowed") == 1
    assert "FULL: refused" in run("check", wider, "--compatibility", "FULL", code=1).stdout


def test_a_check_of_a_new_subject_says_that_it_is_new():
    """A name mistyped should be seen."""
    run("publish", "canal")
    said = "oms_canal: subject x: BACKWARD: allowed; the subject is new, and there is nothing to compare with\n"
    assert run("check", "oms_canal", "--subject", "x").stdout == said


def test_a_schema_is_fetched_in_each_way():
    """To standard output, or a file that is not replaced unasked."""
    run("publish", written(V1, "v1.avsc"), written(V2, "v2.avsc"))
    fingerprint = cdcavro.parse_schema(json.dumps(V1)).fingerprint
    for wanted, expected, version in (
        (["--id", "1"], V1, 1),
        (["--subject", "shop.Order"], V2, 2),
        (["--subject", "shop.Order", "--version", "latest"], V2, 2),
        (["--subject", "shop.Order", "--version", "1"], V1, 1),
        (["--fingerprint", fingerprint.upper()], V1, 1),
    ):
        done = run("fetch", *wanted)
        assert json.loads(done.stdout) == expected
        assert done.stderr == f"id {version}, version {version} of subject shop.Order\n"
    run("fetch", "--id", "1", "--out", "out.avsc")
    assert Path("out.avsc").read_text() == json.dumps(V1) + "\n"
    assert "out.avsc" in run("fetch", "--id", "2", "--out", "out.avsc", code=2).stderr
    run("fetch", "--id", "2", "--out", "out.avsc", "--force")
    assert json.loads(Path("out.avsc").read_text()) == V2


def test_a_fetched_schema_is_whole():
    """What it refers to is put in."""
    kind = enum("A", name="shop.Kind")
    schema = record(field("kind", kind), name="shop.Order")
    registry.connect("file:schemas").publish(json.dumps(schema), "s", references=["shop.Kind"])
    assert json.loads(run("fetch", "--subject", "s").stdout) == schema


def test_the_registry_comes_from_the_environment():
    """Where no option says another."""
    run("publish", "canal")
    assert "FlatMessage" in run("subjects", url=None, env={"CDCAVRO_REGISTRY": "file:schemas"}).stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["fetch", "--id", "9"], "Error: registry file:schemas: there is no id 9"),
        (["fetch", "--subject", "x"], "Error: registry file:schemas: there is no subject 'x'"),
        (["fetch", "x y"], "got 'x y' without an option: a subject is given as --subject 'x y'"),
        (["fetch"], "give one of --id, --subject (perhaps with --version) and --fingerprint"),
        (["fetch", "--id", "1", "--subject", "x"], "give one of"),
        (["fetch", "--id", "1", "--version", "1"], "give one of"),
        (["fetch", "--fingerprint", "abc"], "a fingerprint has 16 hex digits"),
        (["fetch", "--subject", "x", "--version", "two"], "expected a number or latest"),
        (["fetch", "--subject", "x", "--version", "9" * 5000], "expected a number or latest"),
        (["fetch", "--id", "0"], "0 is not in the range"),
        (["publish"], "Missing argument"),
        (
            ["publish", "canal", "--subject", "x", "--topic", "t"],
            "--subject and --strategy or --topic exclude each other",
        ),
        (["publish", "canal", "--strategy", "topic"], "--strategy topic needs --topic"),
        (["publish", "canal", "--strategy", "record", "--topic", "t"], "--strategy record takes no --topic"),
        (["publish", "none"], "Error: none: expected a file that can be read, got 'No such file or directory'"),
        (["publish", "empty"], "Error: empty: expected a folder with .avsc files, got one without"),
        (["publish", "int.avsc"], "Error: schema $: expected a type with a name for the subject, got int"),
        (["publish", "bad.avsc"], "Error: bad.avsc: expected an Avro schema, got schema text: not JSON"),
        (["publish", "odd"], "Error: odd/tables.json: expected the list that `cdcavro tables` wrote, got another file"),
        (["publish", "far"], "Error: far/tables.json: expected the list that `cdcavro tables` wrote, got another file"),
        (
            ["publish", "keys", "--subject", "x"],
            "--subject names one subject, and there are schemas of keys too: say --topic",
        ),
        (
            ["publish", "canal", "--subject", "a\nb"],
            "Error: registry file:schemas: a subject's name holds no control characters",
        ),
        (["check", "canal", "--compatibility", "SOME"], "'SOME' is not one of"),
    ],
)
def test_what_cannot_be_done_is_said_with_exit_code_2(arguments, said):
    """One sentence, and nothing on standard output."""
    run("publish", "canal")
    Path("empty").mkdir()
    Path("int.avsc").write_text('"int"')
    Path("bad.avsc").write_text("{")
    for name, listed in (("odd", "{}"), ("far", '[{"folder": "../.."}]')):
        Path(name).mkdir()
        Path(name, "tables.json").write_text(listed)
    written(V1, "keys/v1.key.avsc")
    done = run(*arguments, code=2)
    assert said in done.stderr
    assert done.stdout == ""


def test_an_address_is_needed():
    """By option or environment."""
    assert "Missing option '--registry'" in run("subjects", url=None, code=2).stderr
    assert "there is no registry in this folder" in run("subjects", url="file:none", code=2).stderr
    assert "expected an address" in run("subjects", url="none", code=2).stderr

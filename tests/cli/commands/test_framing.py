"""The command `unframe`: records that a registry frames, and what the other commands make of what it writes."""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import cdcavro
from cdcavro import registry
from cdcavro.cli import main
from cdcavro.registry.framing import ContentId
from cdcavro.wire.formats import get_format
from support.connect_envelopes import ENVELOPE, KEY, ROW, envelope, written
from support.messages import canal


@pytest.fixture
def schemas(tmp_path: Path) -> str:
    """The address of a registry with the schemas of an envelope, its key, and a format."""
    url = f"file:{tmp_path}/schemas"
    with registry.connect(url) as made:
        assert made.publish(json.dumps(ENVELOPE), "orders-value").id == 1
        assert made.publish(json.dumps(KEY), "orders-key").id == 2
        assert made.publish(get_format("canal").schema, "canal-value").id == 3
    return url


def record(value: bytes | None, key: bytes | None = None, **more: Any) -> dict[str, Any]:
    """Return a record as Spark's to_json writes it."""
    sides = {"key": key, "value": value}
    return {"topic": "t", **{name: raw and b64encode(raw).decode() for name, raw in sides.items()}, **more}


def run(schemas: str, *arguments: str, records: list[Any]) -> Result:
    """Run the command inside this process."""
    text = "".join(one if isinstance(one, str) else json.dumps(one) + "\n" for one in records)
    arguments = ("unframe", "--registry", schemas, *arguments)
    return CliRunner().invoke(main, arguments, input=text, catch_exceptions=False)


CHANGE = written(ENVELOPE, envelope("c", ROW))
DELETE = written(ENVELOPE, envelope("d", None, ROW, pos=500))
ID = written(KEY, {"id": 7})


def test_records_become_messages_that_other_commands_read(schemas: str, tmp_path: Path):
    """With their keys and places; a tombstone, and a message of another format whose key is no JSON, beside them."""
    message = canal("INSERT", [{"id": "1"}], id=1)
    records = [
        record(registry.frame(CHANGE, 1), registry.frame(ID, 2), offset=5, partition=0),
        record(registry.frame(DELETE, 1), registry.frame(ID, 2)),
        record(None, registry.frame(ID, 2)),
        record(registry.frame(cdcavro.encode(message, "canal"), 3), b"\xff"),
    ]
    done = run(schemas, records=records)
    assert (done.exit_code, done.stderr) == (0, "read 4 = written 4 + rejected 0\n")
    first, _, third, fourth = map(json.loads, done.stdout.splitlines())
    assert {name: first[name] for name in ("topic", "offset", "partition", "key")} == {
        "topic": "t",
        "offset": 5,
        "partition": 0,
        "key": {"id": 7},
    }
    assert first["value"]["payload"]["after"]["price"] == "AMg="
    assert third == {"topic": "t", "key": {"id": 7}, "value": None}
    assert fourth == {"topic": "t", "key": "/w==", "value": json.loads(message)}
    lines = "".join(line + "\n" for line in done.stdout.splitlines()[:3])
    made = CliRunner().invoke(main, ["tables", "-", "--out", str(tmp_path / "tables")], input=lines)
    assert made.exit_code == 0, made.output
    assert "read 3 = typed 2 + other 1 + rejected 0" in made.output
    assert [path.parent.name for path in tmp_path.glob("tables/*/v1.key.avsc")] == ["shop.orders"]


@pytest.mark.parametrize("framing", ["apicurio-content-id", "headers"])
def test_another_framing_is_told(schemas: str, framing: str):
    """Also for the key."""
    content = [ContentId(1), ContentId(2)]
    if framing == "headers":
        ids = [b64encode(registry.frame(b"", one)[1:]).decode() for one in content]
        names = [f"apicurio.{side}.contentId" for side in ("value", "key")]
        headers = [{"key": name, "value": id} for name, id in zip(names, ids, strict=True)]
        records = [record(CHANGE, ID, headers=headers), record(CHANGE, headers=None)]
    else:
        records = [record(*(registry.frame(one, id) for one, id in zip((CHANGE, ID), content, strict=True)))]
        records.append(record(b"\x01"))
    done = run(schemas, "--framing", framing, "--max-rejects", "1", records=records)
    assert done.exit_code == 0
    assert done.stderr.endswith("read 2 = written 1 + rejected 1\n")
    assert json.loads(done.stdout)["key"] == {"id": 7}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{\n", "expected"),
        ('{"value":"AA==","op":"c"}\n', "expected a Kafka record with a value in base64, got another message"),
        ('{"topic":7,"value":"AA=="}\n', "expected a Kafka record with a value in base64, got another message"),
        ('{"value":{"a":1}}\n', "$.value: expected base64"),
        ('{"value":"A"}\n', "expected base64, got 'A'"),
        (record(registry.frame(CHANGE, 9)), "schemas has, got id 9"),
        (record(registry.frame(CHANGE[:-1], 1)), "debezium: $: expected"),
        (record(registry.frame(CHANGE, 1), registry.frame(b"", 2)), "expected as its key"),
    ],
    ids=["no JSON", "no record", "no topic", "an object", "no base64", "no schema", "a cut payload", "a cut key"],
)
def test_what_cannot_be_opened_is_a_reject(schemas: str, tmp_path: Path, line: Any, said: str):
    """With its line and its bytes; the records beside it are written."""
    good = record(registry.frame(CHANGE, 1))
    rejects = tmp_path / "rejects.jsonl"
    done = run(schemas, "--rejects", str(rejects), records=[good, line, good])
    assert done.exit_code == 1
    assert done.stderr.endswith("read 3 = written 2 + rejected 1\n")
    assert done.stderr.startswith("-:2: ")
    assert said in done.stderr
    assert json.loads(rejects.read_text())["line"] == 2
    assert len(done.stdout.splitlines()) == 2


def test_a_registry_that_is_not_there_is_named(tmp_path: Path):
    """And not the file that is written, which is none then."""
    out = tmp_path / "out.jsonl"
    done = run(f"file:{tmp_path}/nothere", "--out", str(out), records=[record(registry.frame(CHANGE, 1))])
    assert f"registry file:{tmp_path}/nothere: there is no registry in this folder" in done.stderr
    assert "a file that can be written" not in done.stderr
    assert not out.exists()


def framed(tmp_path: Path, messages: list[bytes], *arguments: str) -> tuple[Result, list[dict[str, Any]]]:
    """Run `frame` inside this process; return its result, and its records as `unframe` opens them."""
    url = f"file:{tmp_path}/made"
    text = b"".join(message + b"\n" for message in messages)
    runner = CliRunner()
    done = runner.invoke(main, ["frame", "--registry", url, *arguments], input=text, catch_exceptions=False)
    opened = runner.invoke(main, ["unframe", "--registry", url], input=done.stdout, catch_exceptions=False)
    return done, [json.loads(line) for line in opened.stdout.splitlines()]


def test_rows_of_another_format_become_framed_records(tmp_path: Path):
    """Under the schema of their version, which a statement changes; a record without a value follows a delete."""
    types = {"id": "int", "n": "int", "price": "decimal(10,2)"}
    messages = [
        canal("INSERT", [{"id": "1", "n": "5"}], id=1),
        canal("ALTER", [], id=2, isDdl=True, sql="ALTER TABLE t ADD COLUMN price DECIMAL(10,2)"),
        canal("DELETE", [{"id": "1", "n": "5", "price": "1.20"}], id=3, mysqlType=types),
    ]
    done, opened = framed(tmp_path, messages, "--topic", "cdc.{name}")
    assert done.exit_code == 0, done.output
    assert done.stderr.splitlines()[-1] == "read 3 = framed 2 + other 1 + rejected 0: 3 records written"
    assert [one["topic"] for one in opened] == ["cdc.d.t"] * 3
    assert [one["key"] for one in opened] == [{"id": 1}] * 3
    first, second, third = (one["value"] for one in opened)
    assert third is None
    assert (first["payload"]["after"], second["payload"]["after"]) == ({"id": 1, "n": 5}, None)
    assert second["payload"]["before"] == {"id": 1, "n": 5, "price": "eA=="}
    subjects = registry.connect(f"file:{tmp_path}/made").subjects()
    assert subjects == ["cdc.d.t-key", "cdc.d.t-value"]
    again, _ = framed(tmp_path, messages, "--topic", "cdc.{name}")
    assert again.stdout == done.stdout
    assert "published" not in again.stderr


def test_what_debezium_cannot_hold_is_told(tmp_path: Path):
    """A value that its type cannot hold rejects its message; columns that are not stated are null, and are counted."""
    types = {"id": "int", "day": "date"}
    messages = [
        canal("INSERT", [{"id": "1", "day": "2026-00-15"}], id=1, mysqlType=types),
        canal("INSERT", [{"id": "2", "day": "2026-01-15"}], id=2, mysqlType=types),
        canal("UPDATE", [{"id": "2"}], id=3, mysqlType={"id": "int"}),
    ]
    done, opened = framed(tmp_path, messages)
    assert done.exit_code == 1
    assert "-:1: canal: $.after.day: expected date, got string '2026-00-15'\n" in done.stderr
    assert "1 row lacks columns, which are null in Debezium's Avro\n" in done.stderr
    assert done.stderr.endswith("read 3 = framed 2 + other 0 + rejected 1: 2 records written\n")
    assert [one["value"]["payload"]["after"] for one in opened] == [{"id": 2, "day": 20468}, {"id": 2, "day": None}]


def test_the_account_of_framed_messages_adds_up(tmp_path: Path):
    """Messages of several rows, statements that become a record and others, and rejects of each kind are in one place each."""
    rows = [{"id": str(i), "n": "1"} for i in range(3)]
    messages = [
        canal("INSERT", rows, id=1),
        canal("ALTER", [], id=2, isDdl=True, sql="ALTER TABLE t ADD COLUMN price INT"),
        canal("DELETE", [{"id": "1", "n": "5"}], id=3),
        canal("INSERT", [{"id": "7", "n": "x"}], id=4),
        canal("INSERT", [{"id": "8", "n": "y"}, {"id": "9", "n": "z"}], id=5),
        canal("TRUNCATE", [], id=6, isDdl=True, sql="TRUNCATE TABLE t"),
        canal("ALTER", [], id=7, isDdl=True, sql="ALTER TABLE t FROBNICATE"),
        b"{",
        b'{"type": "INSERT"}',
        b"[]",
    ]
    done, opened = framed(tmp_path, messages, "--format", "canal")
    assert done.stderr.splitlines()[-1] == "read 10 = framed 3 + other 1 + rejected 6: 6 records written"
    assert len(opened) == 6


def test_a_message_is_rejected_as_a_whole(tmp_path: Path):
    """The row of it that could be made, too, which comes when the reject is read again."""
    done, records = framed(tmp_path, [canal("INSERT", [{"id": "1", "a": "5"}, {"id": "2", "a": "x"}], id=1)])
    assert done.stderr.endswith("read 1 = framed 0 + other 0 + rejected 1: 0 records written\n")
    assert records == []


def test_a_template_of_topics_that_names_none_is_told(tmp_path: Path):
    """Before anything is read."""
    done, _ = framed(tmp_path, [], "--topic", "a b")
    assert done.exit_code == 2
    assert "a topic has letters, digits, dots, _ and -, and {name} for the name of the table, not 'a b'" in done.output

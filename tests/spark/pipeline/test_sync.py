"""`cdcavro sync` as users run it: a lake table from a folder of files, what is remembered, and mistakes."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest
from pyspark.sql import SparkSession

from cdcavro import registry
from cdcavro.cli.batch_lines import BatchLines
from cdcavro.cli.commands.sync import _config
from cdcavro.cli.commands.sync import sync as sync_command
from cdcavro.spark.pipeline import AvroFiles, BatchReport, RegistrySettings
from cdcavro.sync.batches import COUNTS
from support.messages import canal
from support.processes import running

pytestmark = pytest.mark.timeout(600)
FLAGS = ("--files", "in", "--format", "canal", "--delta", "lake", "--state", "state")


def sync(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run the command."""
    return cdcavro("sync", *arguments, cwd=cwd)


def cdcavro(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a command."""
    command = [str(Path(sys.executable).with_name("cdcavro")), *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False)


@pytest.mark.parametrize("is_quiet", [False, True])
def test_what_is_to_be_said_of_files_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str], *, is_quiet: bool):
    """With their batch, unless nothing of batches is wanted."""
    note = "a.jsonl: a byte order mark at the start is skipped"
    lines = BatchLines(str(tmp_path), None, is_quiet=is_quiet, called="state")
    lines.add(BatchReport(0, dict.fromkeys(COUNTS, 0), notes=[note]))
    assert capsys.readouterr().err.splitlines()[1:] == ([] if is_quiet else [note])


def test_a_folder_of_files_becomes_lake_tables(spark: SparkSession, tmp_path: Path):
    """With the simplest flags; the account of all messages is printed, and `show` says what is remembered."""
    (tmp_path / "in").mkdir()
    messages = [canal("INSERT", [{"id": "1", "a": "2"}], id=1), b"{", canal("DELETE", [{"id": "3", "a": "2"}], id=2)]
    (tmp_path / "in" / "a.jsonl").write_bytes(b"\n".join(messages))
    done = sync(*FLAGS, "--registry", "file:schemas", "--once", "--report", "report.html", cwd=tmp_path)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "read 3 = written 2 + rejected 1"), done.stderr
    assert re.search(r"^d\.t +1 +1$", done.stdout, re.MULTILINE)
    assert re.search(r"^canal +\$ +expected JSON, .* +1 +.*/in/a[.]jsonl line 2$", done.stdout, re.MULTILINE)
    assert re.search(r"batch 0: read 3 in .* lag 0 files, 1 table, rejected 1\n", done.stderr)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert all(said in page for said in ("d.t", "expected JSON, got", "Messages per second", "a.jsonl line 2"))
    assert registry.connect(f"file:{tmp_path}/schemas").subjects() == ["d.t.Envelope", "d.t.Key"]
    assert "rejected messages are in state/rejects, with the reason of each" in done.stderr
    assert [
        tuple(row) for row in spark.read.format("delta").load(f"{tmp_path}/lake/d/t").select("id", "a").collect()
    ] == [(1, 2)]
    assert list((tmp_path / "state" / "rejects" / "batch=0").glob("*.json"))
    replayed = cdcavro("replay", "--state", "state", cwd=tmp_path)
    assert (replayed.returncode, replayed.stdout) == (0, "the rejects of 1 batch will be read again\n")
    assert cdcavro("replay", "--state", "state", cwd=tmp_path).returncode == 2
    shown = sync("show", "--state", "state", "--report", "again.html", cwd=tmp_path)
    assert shown.returncode == 0
    again = (tmp_path / "again.html").read_text(encoding="utf-8")
    assert re.sub("as it was at [-0-9 :]+", "", again) == re.sub("as it was at [-0-9 :]+", "", page)
    assert shown.stdout.splitlines() == [
        "batch 0",
        "read 3, written 2, rejected 1",
        f"{tmp_path}/in/a.jsonl to line 3",
        "table d.t",
    ]


@pytest.mark.jvm
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt_while_spark_starts_is_a_sentence(tmp_path: Path, number: int, code: int):
    """It is said what was done, which is nothing, and how to go on."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jsonl").touch()
    command = [str(Path(sys.executable).with_name("cdcavro")), "sync", *FLAGS]
    with running(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr.readline() == "starting Spark\n"
        process.send_signal(number)
        said = process.stderr.read()
    assert (process.returncode, said) == (
        code,
        "interrupted: no batch of this run was done. The same command resumes from there, with the state in state\n",
    )


@pytest.mark.jvm
def test_a_stream_on_a_terminal_has_one_line_and_ends_with_its_summary(tmp_path: Path):
    """The line is written anew with each batch; what has to be read stands above it. Ctrl-C is how such a stream ends."""
    (tmp_path / "in").mkdir()
    for i in range(2):
        rows = [canal("INSERT", [{"id": str(i), "a": "2", **({"b": "1"} if i else {})}], id=i)]
        (tmp_path / "in" / f"{i}.jsonl").write_bytes(b"\n".join([*rows, b"{"]))
        os.utime(tmp_path / "in" / f"{i}.jsonl", (1_700_000_000 + i,) * 2)
    (tmp_path / "sync.toml").write_text(
        'state = "state"\nformat = "canal"\nevery = "1 second"\n[source]\nfiles = "in"\nmost = 1\n[lake]\ndelta = "lake"\n'
    )
    own, terminal = os.openpty()
    command = [str(Path(sys.executable).with_name("cdcavro")), "sync", "--config", "sync.toml", "--report", "r.html"]
    said = b""
    with running(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=terminal, text=True) as process:
        os.close(terminal)
        while b"batch 1: read" not in said:
            said += os.read(own, 4096)
        process.send_signal(signal.SIGINT)
        summary = process.stdout.read()
        while process.poll() is None or select.select([own], [], [], 0)[0]:
            try:
                said += os.read(own, 4096)
            except OSError:
                break
    os.close(own)
    assert process.returncode == 130
    lines = said.decode().replace("\r\n", "\n")
    assert re.search(r"\r\x1b\[Kbatch 0: read 2 \(.*/s\), lag 1 file; so far 2, 1 table, rejected 1", lines)
    assert re.search(r"\r\x1b\[Kd\.t: column 'b' is added\nbatch 1: .*; so far 4, 1 table, rejected 2\n", lines)
    assert summary.splitlines()[-1] == "read 4 = written 2 + rejected 2"
    assert re.search(r"^d\.t +2 *$", summary, re.MULTILINE)
    assert "d.t: column 'b' is added" in summary.splitlines()
    assert "Batches 0 to 1" in (tmp_path / "r.html").read_text(encoding="utf-8")


@pytest.mark.jvm
def test_what_came_from_a_variable_is_printed_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """In lines, pages, the account and errors the variable is named, whose value is in names of files and of a table."""
    monkeypatch.setenv("SECRET", f"{tmp_path}/canary in")
    monkeypatch.setenv("TABLE", "canarydb.canary_table")
    (tmp_path / "canary in").mkdir()
    row = json.loads(canal("INSERT", [{"id": "1", "a": "2"}], id=1))
    row |= {"database": "canarydb", "table": "canary_table"}
    (tmp_path / "canary in" / "a.jsonl").write_bytes(json.dumps(row).encode() + b"\n{")
    text = """
        state = "${SECRET} state"
        format = "canal"
        [source]
        files = "${SECRET}"
        [tables]
        include = ["${TABLE}"]
        [lake]
        delta = "${SECRET} lake"
    """
    (tmp_path / "sync.toml").write_text(text)
    done = sync("--config", "sync.toml", "--once", "--report", "r.html", cwd=tmp_path)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "read 2 = written 1 + rejected 1"), done.stderr
    assert re.search(r"^[$]{TABLE} +1$", done.stdout, re.MULTILINE)
    shown = sync("show", "--config", "sync.toml", "--report", "again.html", cwd=tmp_path)
    assert "table ${TABLE}" in shown.stdout
    state = tmp_path / "canary in state"
    (tmp_path / "canary in").rename(tmp_path / "elsewhere")
    failed = sync("--config", "sync.toml", "--once", cwd=tmp_path)
    assert failed.returncode == 2
    assert "${SECRET}: expected a file or folder, got none" in failed.stderr
    pages = [path.read_text(encoding="utf-8") for path in (*tmp_path.glob("*.html"), state / "account.json")]
    assert len(pages) == 3
    assert "canary" not in "".join(pages) + "".join(one.stdout + one.stderr for one in (done, shown, failed))


def test_flags_name_the_sink_and_the_registry():
    """They become what a configuration would say."""
    flags = dict.fromkeys(option.name or "" for option in sync_command.params)
    told = {"files": "in", "avro": "out", "state": "s", "registry": "file:schemas"}
    pipeline = _config(None, {**flags, **told}).pipeline("the options")
    assert (pipeline.sink, pipeline.registry) == (AvroFiles("out"), RegistrySettings("file:schemas"))
    with pytest.raises(click.UsageError, match="only one of --delta, --iceberg and --avro"):
        _config(None, {**flags, **told, "delta": "lake"})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "without --config, give --files or --kafka; --delta, --iceberg or --avro; --state"),
        (("--kafka", "a:1", *FLAGS), "either --files or --kafka"),
        (("--avro", "files", *FLAGS), "only one of --delta, --iceberg and --avro"),
        (("--format", "canall", *FLAGS[:2], *FLAGS[4:]), "canall"),
        (("show", "--state", "nowhere"), "nowhere: expected the state of a pipeline, got none"),
        (("--report", "no/where.html", *FLAGS), "no/where.html: expected a file in an existing folder, got none"),
        (("--topic", "t", *FLAGS), "--topic is for --kafka, not for --files"),
        (FLAGS, "in: expected a file or folder, got none"),
        (("--files", "full", *FLAGS[2:6], "--state", "flat/s"), "flat/s: expected a folder, or a place for one, got '"),
        (
            ("--files", "full", *FLAGS[2:4], "--delta", "flat", *FLAGS[6:]),
            "flat: expected a folder, or a place for one",
        ),
        (
            ("--files", "full", *FLAGS[2:4], "--avro", "flat/x/y", *FLAGS[6:]),
            "flat/x/y: expected a folder, or a place for",
        ),
        (("show",), "show needs --state or --config"),
        (("--config", "nowhere.toml"), "nowhere.toml"),
    ],
)
def test_a_mistake_is_a_sentence(tmp_path: Path, arguments: tuple[str, ...], said: str):
    """Before Spark is started, and with an exit code of 2."""
    (tmp_path / "flat").touch()
    (tmp_path / "full").mkdir()
    done = sync(*arguments, cwd=tmp_path)
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr
    assert "Traceback" not in done.stderr
    assert "starting Spark" not in done.stderr


@pytest.mark.jvm
def test_a_check_does_nothing(tmp_path: Path):
    """It says what can be reached, or what cannot."""
    (tmp_path / "in").mkdir()
    config = {
        "state": "state",
        "source": {"files": "in"},
        "lake": {"delta": "lake"},
        "registry": {"url": "file:schemas"},
    }
    text = "".join(
        f"[{name}]\n{next(iter(value))} = {json.dumps(next(iter(value.values())))}\n"
        for name, value in config.items()
        if isinstance(value, dict)
    )
    (tmp_path / "sync.toml").write_text('state = "state"\n' + text)
    done = sync("--config", "sync.toml", "--check", cwd=tmp_path)
    said = f"in, Delta Lake at {tmp_path}/lake and the registry can be reached, and state is free\n"
    assert (done.returncode, done.stdout) == (0, said), done.stderr
    assert not (tmp_path / "schemas").exists()
    assert not (tmp_path / "lake").exists()
    assert not (tmp_path / "state" / "checkpoint").exists()


@pytest.mark.jvm
def test_too_many_rejects_end_with_sentences_alone(tmp_path: Path):
    """Neither Spark nor its bridge to Python says where they saw the error; an example of the rejects is told."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jsonl").write_bytes(b"\n".join([canal("INSERT", [{"id": "1"}], id=1), b"no message"]))
    done = sync(*FLAGS, "--max-rejects", "10%", "--once", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    *_, sentence, example = done.stderr.splitlines()
    assert sentence.startswith("Error: batch 0 brings the rejects to 1 of 2 messages, which is more than are allowed")
    assert re.fullmatch(r"1 such as .*/in/a[.]jsonl line 2: [$]: expected JSON, got 'no message' at .*", example)
    assert [
        line for line in done.stderr.splitlines() if "Traceback" in line or line.startswith(("\tat ", "  File "))
    ] == []
    assert " ERROR " not in done.stderr
    assert not (tmp_path / "lake").exists()


@pytest.mark.jvm
def test_a_wrong_format_is_told_and_no_success(tmp_path: Path):
    """Where every message is a reject, nothing was done, and what they look like is said."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jsonl").write_bytes(b"\n".join([canal("INSERT", [{"id": "1"}], id=i) for i in range(1, 4)]))
    flags = ("--files", "in", "--format", "debezium", "--delta", "lake", "--state", "state", "--once")
    done = sync(*flags, cwd=tmp_path)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, "read 3 = written 0 + rejected 3"), done.stderr
    assert done.stderr.splitlines()[-1] == "all rejects look like canal, unlike the --format given"


@pytest.mark.slow
def test_rejects_at_an_address_are_not_moved(tmp_path: Path):
    """It is said what to do, instead of that there are none."""
    text = 'state = "state"\nrejects = "s3a://bucket/rejects"\n[source]\nfiles = "in"\n[lake]\ndelta = "lake"\n'
    (tmp_path / "sync.toml").write_text(text)
    done = cdcavro("replay", "--config", "sync.toml", cwd=tmp_path)
    said = "s3a://bucket/rejects: expected rejects in a folder that is seen here, got an address: move its batches to"
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("rejects", ["/nowhere/canary", "s3a://canary/rejects"])
def test_what_came_from_a_variable_is_in_no_error_of_replay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rejects: str
):
    """The variable is named."""
    monkeypatch.setenv("REJECTS", rejects)
    text = 'state = "state"\nrejects = "${REJECTS}"\n[source]\nfiles = "in"\n[lake]\ndelta = "lake"\n'
    (tmp_path / "sync.toml").write_text(text)
    done = cdcavro("replay", "--config", "sync.toml", cwd=tmp_path)
    assert (done.returncode, "${REJECTS}: expected rejects" in done.stderr) == (2, True), done.stderr
    assert "canary" not in done.stderr


@pytest.mark.slow
def test_topics_count_instead_of_those_of_the_file(tmp_path: Path):
    """Also where the file says which servers: they are not passed over."""
    (tmp_path / "sync.toml").write_text('state = "s"\n[source]\nkafka = "a:1"\npattern = "p"\n[lake]\ndelta = "l"\n')
    done = sync("--config", "sync.toml", "--topic", "t", cwd=tmp_path)
    assert (done.returncode, "Kafka needs either topics or a pattern" in done.stderr) == (2, True), done.stderr

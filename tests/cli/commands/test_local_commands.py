"""`cdcavro run` and `cdcavro sync` as a person sees them, without Spark or before it starts."""

from __future__ import annotations

import json
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cdcavro.cli import console, main
from cdcavro.cli.batch_lines import BatchLines
from cdcavro.errors import JobError
from cdcavro.lake.account import RejectReason
from cdcavro.sync.batches import COUNTS, BatchReport, Lag
from cdcavro.sync.metrics import Metrics, MetricsConfig
from cdcavro.sync.pipeline import lock_state
from cdcavro.sync.settings import RegistrySettings, awaited
from support.messages import SAMPLES, canal, sample_files, shipped
from support.pages import blocks, matches
from support.places import README
from support.processes import end, free_ports, running

COMMAND = str(Path(sys.executable).with_name("cdcavro"))
FLAGS = ("--files", "in", "--format", "canal", "--delta", "lake", "--state", "state")
CONFIG = """
state = "state"
format = "canal"
run = "local"
[source]
files = "in"
[lake]
delta = "lake"
"""


def cdcavro(*arguments: str) -> Result:
    """Run a command in this process."""
    return CliRunner().invoke(main, arguments, catch_exceptions=False)


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a file of messages, in the folder where commands run."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    rows = [canal("INSERT", [{"id": str(i), "a": "2"}], id=i) for i in range(3)]
    (tmp_path / "in" / "a.jsonl").write_bytes(b"\n".join([*rows, b"{"]))
    return tmp_path


@pytest.mark.slow
def test_the_samples_are_converted_without_spark():
    """With the account that Spark's job prints, and README shows."""
    done = cdcavro("run", "--local", "--out", "out")
    (shown,) = [block.text for block in blocks(README) if block.text.startswith("format ")]
    assert matches(shown, done.stdout)
    first, *others = done.stderr.splitlines()
    assert (done.exit_code, first) == (0, f"converting {len(sample_files())} files")
    # On a busy machine it says how far it is.
    assert all(re.fullmatch(r"[\d,]+ messages?, [\d,]+ files? begun", line) for line in others)
    assert done.stdout.splitlines()[-1] == f"read {len(shipped())} = written {len(shipped())} + rejected 0"
    assert any(line.split() == ["canal", "UPDATE", "70"] for line in done.stdout.splitlines())


@pytest.mark.slow
def test_lake_tables_that_lack_rows_are_told_on_standard_error(files: Path):
    """The first ten, and how many more; a check is as successful as a run; and status and the report say it once rows came."""
    rows = [canal("INSERT", [{"id": "1"}], id=i, table=f"t{i:02}") for i in range(13)]
    (files / "in" / "a.jsonl").write_bytes(b"\n".join(rows))
    assert cdcavro("sync", "--local", *FLAGS, "--once").exit_code == 0
    shutil.rmtree("lake")
    rest = "its lake table is not there, so rows up to batch 0 may be missing: `cdcavro sync reset d.{0}` and a new"
    said = [f"d.{one}: {rest.format(one)} snapshot bring them back" for one in (f"t{i:02}" for i in range(10))]
    for options in (["--check"], ["--once"], ["--once", "--quiet"]):
        done = cdcavro("sync", "--local", *FLAGS, *options)
        assert done.exit_code == 0
        assert [*said, "... and 3 more lake tables lack rows"] == [
            line for line in done.stderr.splitlines() if "lack rows" in line or "may be" in line
        ]
    done = cdcavro("sync", "--local", *FLAGS, "--check", "--log", "json")
    assert [json.loads(line) for line in done.stderr.splitlines()] == [{"lacking": said, "more": 3}]
    (files / "in" / "b.jsonl").write_bytes(canal("INSERT", [{"id": "2"}], id=20, table="t05"))
    done = cdcavro("sync", "--local", *FLAGS, "--once", "--quiet", "--report", "page.html")
    told = said[5].replace("is not there", "was made anew or restored")
    assert told in done.stdout
    assert cdcavro("sync", "status", "--state", "state").stdout.splitlines()[-1] == told
    assert cdcavro("sync", "show", "--state", "state").stdout.splitlines()[-1] == told
    status = json.loads(cdcavro("sync", "status", "--state", "state", "--json").stdout)
    assert [one["lacks"] for one in status["tables"] if one["lacks"]] == [told.removeprefix("d.t05: ")]
    _, _, lacking = (files / "page.html").read_text().partition("Lake tables that lack rows</h2>")
    assert "cdcavro sync reset d.t05" in lacking.partition("<h2")[0]
    assert cdcavro("sync", "reset", "d.t05", "--state", "state").exit_code == 0
    assert "d.t05" not in cdcavro("sync", "--local", *FLAGS, "--check").stderr


@pytest.mark.slow
def test_what_is_said_of_a_lake_table_shows_no_secret_and_is_a_command(files: Path, monkeypatch: pytest.MonkeyPatch):
    """Also on the page, and of a table whose name begins like an option."""
    monkeypatch.setenv("SEC", "-supersecret")
    page = ("--report", "page.html")
    toml = 'run = "local"\nformat = "canal"\nstate = "state"\nsource = { files = "in" }\n[lake]\ndelta = "lake"\nname = "${SEC}.{table}"\n'
    Path("sync.toml").write_text(toml)
    for n in (1, 2):
        (files / "in" / f"{n}.jsonl").write_bytes(canal("INSERT", [{"id": "1"}], id=n, table="t"))
        done = cdcavro("sync", "--config", "sync.toml", "--once", *page)
        assert done.exit_code == 0, done.stderr
        told = done.stderr + done.stdout + Path("page.html").read_text()
        shutil.rmtree("lake", ignore_errors=n == 2)
    assert "cdcavro sync reset -- ${SEC}.t" in Path("page.html").read_text()
    done = cdcavro("sync", "show", "--config", "sync.toml", *page)
    told += done.stderr + done.stdout + Path("page.html").read_text()
    told += cdcavro("sync", "status", "--config", "sync.toml").stdout
    assert "supersecret" not in told
    assert cdcavro("sync", "reset", "--state", "state", "--", "-supersecret.t").exit_code == 0
    assert cdcavro("sync", "show", "--state", "state", *page).exit_code == 0
    assert "Lake tables that lack rows" not in Path("page.html").read_text()


@pytest.mark.parametrize(
    ("options", "code"),
    [((), 0), (("--max-rejects", "0"), 1), (("--max-rejects", "25%"), 0), (("--format", "debezium"), 1)],
)
def test_rejects_and_exit_codes(files: Path, options: tuple[str, ...], code: int):
    """As on Spark: any number of rejects is allowed, unless all are, or it is said."""
    if "debezium" in options:
        (files / "in" / "a.jsonl").write_bytes(b"{\n")
    done = cdcavro("run", "--local", "in", "--out", "out", *options)
    assert done.exit_code == code, done.stderr
    assert done.stderr.endswith("rejected messages are in out/rejects, with the reason of each\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("run", "--local", "--master", "local[1]", "--out", "o"), "--master is for Spark, which --local does not use"),
        (("run", "--local", "--verbose", "--out", "o"), "--verbose is for Spark, which --local does not use"),
        (("run", "--local", "none*", "--out", "o"), "none*: expected a file or folder, got none"),
        (("run", "--local", "none", "--out", "o"), "none: expected a file or folder, got none"),
        (("run", "--local", "-", "--out", "o"), "`run` reads files and folders, not standard input"),
        (("run", "--local", "in", "--out", "s3://u:p@b/o"), "and only Spark can access s3://b/o"),
        (("run", "--local", "in/{a", "--out", "o"), "expected a pattern of paths, got a brace that is not closed"),
        (("run", "--local", "in", "--format", "cannal", "--out", "o"), "unknown format 'cannal': did you mean canal?"),
        (("sync", "--local", "--master", "local[1]", *FLAGS), "--master is for Spark, which --local does not use"),
        (("sync", "--local", *FLAGS, "--delta", "hdfs://n/l"), "and only Spark can access hdfs://n/l"),
        (("sync", "--local", *FLAGS, "--files", "s3://b/in"), "and only Spark can access s3://b/in"),
        (
            ("sync", "--local", *FLAGS[:4], "--iceberg", "i", *FLAGS[6:], "--warehouse", "s3://b/w", "--once"),
            "and only Spark can access s3://b/w",
        ),
        (("sync", "--local", *FLAGS, "--files", "none"), "none: expected a file or folder, got none"),
        (
            ("sync", "--local", "--once", *FLAGS, "--files", "in/[a"),
            "a pattern of paths, got a bracket that is not closed",
        ),
        (("sync", "--local", *FLAGS, "--format", "cannal"), "unknown format 'cannal': did you mean canal?"),
        (("sync", *FLAGS, "--kafka", "a:1"), "either --files or --kafka"),
    ],
)
def test_a_mistake_is_a_sentence(arguments: tuple[str, ...], said: str):
    """And nothing is written."""
    done = cdcavro(*arguments)
    assert done.exit_code == 2
    assert said in done.stderr.splitlines()[-1]
    assert "starting Spark" not in done.stderr
    assert not Path("o").exists()
    assert not Path("lake").exists()


@pytest.mark.parametrize(
    ("text", "instead", "said"),
    [
        ('run = "local"', 'run = "locl"', "run is spark or local, not 'locl'"),
        ("delta =", "dleta =", "line 8: [lake] has no setting 'dleta': did you mean delta?"),
        ("[lake]", "[lakes]", "no setting is called 'lakes': did you mean lake?"),
        ('files = "in"', 'files = ["in"]', "line 6: files in [source] must be a text, got a list"),
    ],
)
def test_a_mistake_in_a_file_is_a_sentence_with_its_line(text: str, instead: str, said: str):
    """Whatever is misspelled."""
    Path("sync.toml").write_text(CONFIG.replace(text, instead))
    done = cdcavro("sync", "--config", "sync.toml", "--once")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.endswith(f"{said}\n")


@pytest.mark.slow
def test_a_pattern_of_tables_that_means_none_is_told():
    """The run is no fault, as other messages may come."""
    Path("sync.toml").write_text(f'{CONFIG}[tables]\ninclude = ["shopp.*"]\n')
    shutil.copy(SAMPLES / "canal" / "shop.jsonl", "in/a.jsonl")
    done = cdcavro("sync", "--config", "sync.toml", "--once")
    assert done.exit_code == 0
    assert "all rows were left out: include and exclude in [tables] select none of the tables" in done.stderr


def test_a_pattern_of_files_that_means_none_is_told(files: Path):
    """Files may come later, so it is no fault; neither is anything said once some are there."""
    flags = ("--local", "--once", "--files", "no*/*.jsonl", *FLAGS[2:])
    assert "no file or folder matches no*/*.jsonl so far" in cdcavro("sync", *flags).stderr.splitlines()
    shutil.move(files / "in", files / "now")
    done = cdcavro("sync", *flags)
    assert "matches" not in done.stderr
    assert done.stdout.splitlines()[-1] == "read 4 = written 3 + rejected 1"


def test_a_folder_without_files_is_told(files: Path):
    """Also one with files that are not read, as they are hidden."""
    (files / "none" / "_new").mkdir(parents=True)
    (files / "none" / "_new" / "a.jsonl").write_text("{}")
    flags = ("--local", "--once", "--files", "none", *FLAGS[2:])
    assert "none has no file so far" in cdcavro("sync", *flags).stderr.splitlines()
    shutil.copytree(files / "in", files / "none" / "now")
    assert "so far" not in cdcavro("sync", *flags).stderr


@pytest.mark.parametrize("runner", [(), ("--local",)])
def test_a_state_in_use_is_told_before_anything_starts(files: Path, runner: tuple[str, ...]):
    """Spark takes a while to start."""
    with lock_state(files / "state"):
        done = cdcavro("sync", *runner, *FLAGS, "--once")
    assert (done.exit_code, done.stderr) == (
        2,
        "Error: state: expected a state that no other job uses, got one that is in use\n",
    )


@pytest.mark.parametrize("runner", [(), ("--local",)])
@pytest.mark.parametrize("host", ["there.is.none.invalid", "127.0.0.1"])
def test_a_broker_that_does_not_answer_is_told_before_anything_starts(host: str, runner: tuple[str, ...]):
    """With its name: Spark would ask it for minutes."""
    servers = f"{host}:{free_ports(1)[0]}"
    done = cdcavro("sync", *runner, "--kafka", servers, "--topic", "t", "--delta", "lake", "--state", "state")
    assert done.exit_code == 2
    assert done.stderr.startswith(f"Error: Kafka at {servers} does not answer: {servers}: ")


@pytest.mark.parametrize("runner", [(), ("--local",)])
@pytest.mark.parametrize("log", ["text", "json"])
def test_it_is_said_that_a_broker_is_waited_for(runner: tuple[str, ...], log: str):
    """Within a second, unless lines of JSON are wanted: here it says nothing, and ends the connection."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        servers = f"127.0.0.1:{listening.getsockname()[1]}"

        def serve() -> None:
            with listening.accept()[0]:
                time.sleep(1)

        threading.Thread(target=serve).start()
        flags = ("--kafka", servers, "--topic", "t", "--delta", "lake", "--state", "state", "--log", log)
        first, *others = cdcavro("sync", *runner, *flags).stderr.splitlines()
    if log == "text":
        assert first == f"waiting for Kafka at {servers}"
        (first,) = others
    assert first.startswith(f"Error: Kafka at {servers} does not answer: ")


def test_a_log_of_json_has_the_documented_members():
    """The page on `sync` lists them; a line is a batch."""
    done = cdcavro("sync", "--local", *FLAGS, "--once", "--log", "json")
    lines = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
    (batch,) = lines
    page = (Path(__file__).parents[3] / "docs/how-to/sync.md").read_text(encoding="utf-8")
    documented = page.partition("| member | what it is |\n| --- | --- |\n")[2].partition("\n\n")[0].splitlines()
    assert set(batch) == {line.split("`")[1] for line in documented}
    assert batch["counts"] == {**dict.fromkeys(COUNTS, 0), "read": 4, "written": 3, "rejected": 1}
    assert (batch["batch"], batch["operations"], batch["lag"]) == (0, {"d.t": {"c": 3}}, {"files": 0})
    (reject,) = batch["rejects"]
    assert set(reject) == {"format", "path", "reason", "count", "place"}
    assert [line for line in done.stderr.splitlines() if not line.startswith("{")] == [
        "rejected messages are in state/rejects, with the reason of each"
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt_says_what_was_done_and_how_to_go_on(files: Path, number: int, code: int):
    """And the account of the run stands before it ends; the same command goes on."""
    command = [COMMAND, "sync", "--local", *FLAGS]
    with running(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while not process.stderr.readline().startswith("batch 0: read 4 "):
            assert process.poll() is None
        end(process, number)
        assert process.stderr.readlines()[0] == (
            "interrupted: batch 0 was the last that was done. The same command resumes from there, with the state in state\n"
        )
        assert process.stdout.readlines()[-1] == "read 4 = written 3 + rejected 1\n"
    assert process.returncode == code
    (files / "in" / "b.jsonl").write_bytes(canal("INSERT", [{"id": "9", "a": "2"}], id=9))
    assert cdcavro("sync", "--local", *FLAGS, "--once").stdout.splitlines()[-1] == "read 1 = written 1 + rejected 0"


def wait_for(said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Wait until something stands on standard error."""
    text = ""
    while said not in text:
        text += capsys.readouterr().err


@pytest.mark.parametrize(
    ("lag", "of"), [(Lag(1_000_000, "messages"), " of 1,000,000"), (Lag(3, "files"), " of 3 files"), (None, "")]
)
def test_a_long_batch_says_how_far_it_is(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    lag: Lag | None,
    of: str,
):
    """How many messages of how many, that it goes over them again, and that it writes; nothing after its end."""
    monkeypatch.setattr(console, "_SLOW", 0.0)
    monkeypatch.setattr(sys.modules["cdcavro.cli.batch_lines"], "_BEAT", 0.01)
    lines = BatchLines(str(tmp_path), None, is_quiet=False, called="state")
    lines.begin(7, lag)
    lines.see(120_000, is_all=False)
    wait_for(f"batch 7: 120,000 messages{of} converted after ", capsys)
    lines.see(20_000, is_all=False)
    wait_for(f"batch 7: 20,000 messages{of} converted again after ", capsys)
    lines.see(1_000_000, is_all=True)
    wait_for("batch 7: 1,000,000 messages converted again, writing after ", capsys)
    lines.add(BatchReport(7, dict.fromkeys(COUNTS, 0)))
    assert capsys.readouterr().err.splitlines()[-1].startswith("batch 7: read 0 ")


def test_what_takes_long_before_the_first_batch_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """From time to time, until a batch begins or nothing comes; not among lines of JSON."""
    monkeypatch.setattr(console, "_SLOW", 0.0)
    monkeypatch.setattr(sys.modules["cdcavro.cli.batch_lines"], "_BEAT", 0.01)
    silent = BatchLines(str(tmp_path), None, is_quiet=False, is_json=True, called="state")
    silent.start("starting Spark")
    lines = BatchLines(str(tmp_path), None, is_quiet=False, called="state")
    lines.start("starting Spark")
    wait_for("starting Spark\nstarting Spark: after 0 s\n", capsys)
    lines.wait("looking")
    wait_for("looking: after 0 s\n", capsys)
    lines.begin(7, None)
    assert "looking" not in capsys.readouterr().err.partition("batch 7")[2]
    lines.idle()
    wait_for("batch 7: after 0 s\n", capsys)
    lines.stop()
    idle = BatchLines(str(tmp_path), None, is_quiet=False, called="state")
    idle.wait("looking")
    wait_for("looking: after 0 s\n", capsys)
    idle.idle()
    capsys.readouterr()
    time.sleep(0.1)
    assert capsys.readouterr().err == ""


def test_maintenance_that_takes_long_says_so_and_is_a_sign_of_life(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """Under a name of its own, with no messages of the batch before it; none begins once a run is interrupted."""
    monkeypatch.setattr(console, "_SLOW", 0.0)
    monkeypatch.setattr(sys.modules["cdcavro.cli.batch_lines"], "_BEAT", 0.01)
    lines, healths = BatchLines(str(tmp_path), None, is_quiet=False, called="state"), list[str | None]()
    lines.metrics = metrics = Metrics(MetricsConfig("127.0.0.1:0", patience=1))

    def maintain() -> None:
        time.sleep(1.1)
        healths.append(metrics.health())
        lines.keep_on()
        healths.append(metrics.health())
        wait_for("\nmaintaining lake tables: after ", capsys)
        lines.note("one is done")
        lines.keep_on()

    lines.begin(7, None)
    lines.see(5, is_all=True)
    lines.add(BatchReport(7, dict.fromkeys(COUNTS, 0)))
    lines.maintain(maintain)
    assert healths[0] is not None
    assert healths[1] is None
    capsys.readouterr()
    time.sleep(0.1)
    assert capsys.readouterr().err == ""
    lines.interrupt("state")
    assert capsys.readouterr().err.startswith("interrupted: batch 7 was the last that was done. ")
    lines.maintain(maintain)
    assert len(healths) == 2


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="only Linux is sure to have terminals")
def test_sentences_stand_above_the_line_of_a_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Which shows then what it showed, and a batch that begins shows it at once."""
    monkeypatch.setattr(console, "_LIVE", 0.0)
    monkeypatch.setattr(sys.modules["cdcavro.cli.batch_lines"], "_BEAT", 0.01)
    main_end, other_end = os.openpty()
    said = ""

    def screen() -> list[str]:
        nonlocal said
        for _ in range(20):
            if not select.select([main_end], [], [], 0.05)[0]:
                break
            said += os.read(main_end, 1 << 16).decode()
        return [line.rpartition(console.ERASE)[2] for line in said.split("\r\n")]

    with open(main_end, "rb"), open(other_end, "w", buffering=1) as terminal:  # noqa: PTH123
        monkeypatch.setattr(sys, "stderr", terminal)
        lines = BatchLines(str(tmp_path), None, is_quiet=False, called="state")
        lines.start("starting Spark")
        while "starting Spark: after 0 s" not in said:
            screen()
        monkeypatch.setattr(console, "_LIVE", 60.0)
        lines.start("fetching jars")
        assert screen() == ["starting Spark", "fetching jars", ""]
        lines.begin(0, Lag(5, "messages"))
        assert screen()[2:] == ["batch 0: 5 messages"]
        lines.note("a: 3 files fewer")
        assert screen()[2:] == ["a: 3 files fewer", "batch 0: 5 messages"]
        lines.add(BatchReport(0, dict.fromkeys(COUNTS, 0)))
        whole = "batch 0: read 0; so far 0, 0 tables, rejected 0"
        assert screen()[3:] == [whole]
        lines.warn("b: not maintained")
        assert screen()[3:] == ["b: not maintained", whole]
        lines.interrupt("state")
        assert screen()[4] == whole
        assert screen()[5].startswith("interrupted: batch 0 was the last ")


@pytest.mark.slow
def test_a_batch_that_waits_for_a_registry_says_so_and_a_check_ends_soon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """Without what is hidden; and a check takes no longer than ten seconds, whatever the settings are."""
    monkeypatch.setattr(console, "_SLOW", 0.0)
    monkeypatch.setattr(sys.modules["cdcavro.cli.batch_lines"], "_BEAT", 0.01)
    lines = BatchLines(
        str(tmp_path), None, is_quiet=False, called="state", hide=lambda said: said.replace("refused", "***")
    )
    lines.begin(7, None)
    since = time.monotonic()
    with ThreadPoolExecutor() as threads:
        checked = threads.submit(RegistrySettings("http://127.0.0.1:9").check)
        wait_for(
            " s; waiting: registry http://127.0.0.1:9: subject 'cdcavro': it cannot be reached: Connection ***", capsys
        )
        with pytest.raises(JobError, match="cannot be reached"):
            checked.result()
    assert time.monotonic() - since < 10
    lines.add(BatchReport(7, dict.fromkeys(COUNTS, 0)))
    assert awaited() == []


def test_what_came_instead_is_in_the_table_of_rejects(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """However long the sentence is on what is expected; a long value is cut."""
    lines = BatchLines(str(tmp_path), None, is_quiet=True, called="state")
    long, report = "expected a payload of " + "x" * 140, BatchReport(0, {**dict.fromkeys(COUNTS, 0), "rejected": 3})
    report.rejects = [
        RejectReason("canal", "$", f"{long}, got id …", 2, "t line 1", f"{long}, got id 9999"),
        RejectReason("canal", "$", "an integer", 1, "t line 3", "an integer, got " + "7" * 99),
    ]
    lines.add(report)
    lines.finish("state/rejects", is_whole=False)
    _, first, second, *_ = capsys.readouterr().out.splitlines()
    assert f"{long[:117]}..., got id 9999  " in first
    assert f"an integer, got {'7' * 57}...  " in second


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="only Linux has it")
@pytest.mark.parametrize(
    ("put", "reason"),
    [
        (lambda message: json.dumps(message, indent=1), "a member without its object, at character 7"),
        (lambda message: json.dumps([message]), "array"),
        (lambda message: f"[\n{json.dumps(message)},\n{json.dumps(message)}\n]", "a comma behind the value"),
        (lambda message: f"{json.dumps(message)}\r{json.dumps(message)}", "a carriage return between values"),
    ],
)
def test_a_file_whose_messages_do_not_stand_on_lines_is_told(files: Path, put: Callable[[object], str], reason: str):
    """With what puts them there."""
    (files / "in" / "a.jsonl").write_text(put(json.loads(canal("INSERT", [{"id": "1"}], id=1))), newline="")
    done = cdcavro("sync", "--local", *FLAGS, "--once")
    assert f", got {reason}" in done.stdout
    assert done.stdout.count("a message must stand on one line: `jq -c . FILE` writes each on one") == 1


def test_a_member_that_is_an_array_says_nothing_of_lines(files: Path):
    """A message of another format stands on a line, too."""
    (files / "in" / "a.jsonl").write_bytes(canal("INSERT", [{"id": "1"}], id=1))
    done = cdcavro("sync", "--local", *FLAGS, "--once", "--format", "maxwell")
    assert "expected object, got array" in done.stdout
    assert "on one line" not in done.stdout


def test_a_report_that_cannot_be_written_is_told_before_anything_is_read(tmp_path: Path):
    """A folder in which no file can be made."""
    done = cdcavro("sync", *FLAGS, "--once", "--local", "--report", "/proc/report.html")
    assert done.exit_code == 2
    assert done.output.startswith("Error: /proc/report.html: expected a folder in which a file can be written, got ")
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize(("pattern", "is_read"), [(".", True), ("[a-z]*", True), ("in", False), ("_made", False)])
def test_what_a_pipeline_writes_is_not_read_by_it(tmp_path: Path, pattern: str, *, is_read: bool):
    """Neither its state nor its lake, unless they stand where no file is read."""
    for name in ("lake", "lake_state", "_made"):
        (tmp_path / name).mkdir(exist_ok=True)
    path = "_made/_own" if pattern == "_made" else "lake"
    done = cdcavro("sync", "--local", "--files", pattern, "--delta", path, "--state", f"{path}_state", "--check")
    said = f"Error: {pattern}: expected files apart from what the pipeline writes, got {path}_state among them\n"
    assert (done.output == said.replace(path, str(tmp_path / path))) == is_read, done.output


@pytest.mark.parametrize(("is_one", "is_quiet", "count"), [(True, False, 1), (True, True, 1), (False, False, 2)])
def test_a_step_of_a_lake_table_is_named_once(tmp_path: Path, monkeypatch, *, is_one: bool, is_quiet: bool, count: int):
    """Where the account at the end stands below the lines of batches; alone in another file, it has all steps."""
    with (tmp_path / "out").open("w+") as out, (tmp_path / "err").open("w+") as error:
        monkeypatch.setattr(sys, "stderr", out if is_one else error)
        monkeypatch.setattr(sys, "stdout", out)
        lines = BatchLines(str(tmp_path), None, is_quiet=is_quiet, called="state")
        lines.add(BatchReport(0, dict.fromkeys(COUNTS, 0), steps=["d.t: column 'b' is added"]))
        lines.finish("rejects", is_whole=True)
    said = (tmp_path / "out").read_text() + (tmp_path / "err").read_text()
    assert said.count("d.t: column 'b' is added") == count
    assert "d.t: column 'b' is added" in (tmp_path / "out").read_text()


def test_nothing_is_said_of_a_batch_that_is_not_long(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """A line every 5 seconds, and none before the first are over."""
    lines = BatchLines(str(tmp_path), None, is_quiet=False, called="state")
    lines.begin(0, Lag(1, "messages"))
    lines.see(1, is_all=True)
    lines.add(BatchReport(0, dict.fromkeys(COUNTS, 0)))
    assert [line.partition(": ")[2][:9] for line in capsys.readouterr().err.splitlines()] == ["1 message", "read 0 in"]

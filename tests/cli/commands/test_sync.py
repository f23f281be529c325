"""`cdcavro sync --local` as users run it: lake tables from a folder of files without Java, what is said, and mistakes."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import threading
import tomllib
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.request import urlopen

import click
import pytest
from click.testing import CliRunner
from confluent_kafka import Producer

from cdcavro.cli import main
from cdcavro.cli.commands.sync import _config
from cdcavro.cli.commands.sync import sync as sync_command
from cdcavro.cli.group import INTERRUPTED
from cdcavro.errors import SetupError
from cdcavro.sync.batches import COUNTS
from cdcavro.sync.config import read_config
from reference.settings import sections, settings
from support.jobs import LocalJob, local_job
from support.messages import SAMPLES, canal
from support.processes import end, running

FLAGS = ("--local", "--files", "in", "--format", "canal", "--delta", "lake", "--state", "state")
COMMAND = (sys.executable, "-m", "cdcavro", "sync")
FILE = """
run = "local"
state = "state"
format = "canal"
[source]
files = "in"
[lake]
delta = "lake"
"""


def sync(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run the command."""
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, cwd=cwd, check=False)


@pytest.fixture
def made(tmp_path: Path) -> LocalJob:
    """A pipeline with a row, no message, and a delete of what is not there."""
    found = local_job(tmp_path)
    found.send(canal("INSERT", [{"id": "1", "a": "2"}], id=1), b"{", canal("DELETE", [{"id": "3", "a": "2"}], id=2))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("is_configured", [False, True])
def test_a_folder_of_files_becomes_lake_tables(made: LocalJob, *, is_configured: bool):
    """By flags and by a file; the account of all messages is printed, and `show` says what is remembered."""
    (made.folder / "sync.toml").write_text(FILE)
    flags = ("--config", "sync.toml") if is_configured else FLAGS
    done = sync(*flags, "--registry", "file:schemas", "--once", "--report", "report.html", cwd=made.folder)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "read 3 = written 2 + rejected 1"), done.stderr
    assert re.search(r"^d\.t +1 +1$", done.stdout, re.MULTILINE)
    assert re.search(r"^canal +\$ +expected JSON, .* +1 +.*/in/0000[.]jsonl line 2$", done.stdout, re.MULTILINE)
    assert re.search(r"^batch 0: 1 file\n(.*\n)*batch 0: read 3 in .* lag 0 files, 1 table, rejected 1\n", done.stderr)
    assert "rejected messages are in state/rejects, with the reason of each" in done.stderr
    assert "Spark" not in done.stderr
    page = (made.folder / "report.html").read_text(encoding="utf-8")
    assert all(said in page for said in ("d.t", "expected JSON, got", "0000.jsonl line 2"))
    assert made.rows("d.t", "id", "a") == [(1, 2)]
    shown = sync("show", "--state", "state", cwd=made.folder)
    assert shown.stdout.splitlines() == [
        "batch 0",
        "read 3, written 2, rejected 1",
        f"{made.folder}/in/0000.jsonl to line 3",
        "table d.t",
    ]
    again = sync(*flags, "--once", "--quiet", cwd=made.folder)
    assert (again.returncode, again.stdout, again.stderr) == (0, "read 0 = written 0 + rejected 0\n", "")


@pytest.mark.slow
def test_options_name_a_catalog_of_iceberg_and_its_folder(made: LocalJob):
    """As `--delta` names a folder; a later run goes on in it."""
    flags = (*FLAGS[:5], "--iceberg", "lake", "--warehouse", "files", *FLAGS[7:], "--once")
    done = [sync(*flags, cwd=made.folder) for _ in range(2)]
    assert [one.stdout.splitlines()[-1] for one in done] == [
        "read 3 = written 2 + rejected 1",
        "read 0 = written 0 + rejected 0",
    ]
    assert (made.folder / "files/d/t/metadata/v1.metadata.json").is_file()


@pytest.mark.slow
def test_values_that_are_kept_as_text_are_in_the_summary_and_the_report(made: LocalJob):
    """And in the line of their batch."""
    made.send(canal("INSERT", [{"id": "4", "a": "it's"}, {"id": "5", "a": "y"}], id=4))
    done = sync(*FLAGS, "--once", "--report", "report.html", "--log", "json", cwd=made.folder)
    said = '2 values that their types cannot carry are text in unparsed, such as d.t.a: "it\'s"'
    *lines, last = done.stderr.splitlines()
    assert last == said
    assert [json.loads(line)["unparsed"] for line in lines if line.startswith("{")] == [
        {"count": 2, "example": 'd.t.a: "it\'s"'}
    ]
    page = (made.folder / "report.html").read_text(encoding="utf-8")
    assert re.search(r"<p><bdi>2 values .* text in unparsed, such as d[.]t[.]a: .*</bdi></p>", page)


@pytest.mark.slow
def test_patterns_that_nothing_fits_are_told_at_the_end(made: LocalJob):
    """As a pattern of files is; not with `--check`, which reads nothing."""
    (made.folder / "sync.toml").write_text(FILE + '[tables]\ninclude = ["d.t", "ordesr"]\n')
    done = sync("--config", "sync.toml", "--once", cwd=made.folder)
    assert done.stderr.splitlines()[-1] == "include in [tables]: no table fits 'ordesr' so far", done.stderr
    assert done.returncode == 0
    assert "ordesr" not in sync("--config", "sync.toml", "--check", cwd=made.folder).stderr


@pytest.mark.slow
def test_each_batch_is_a_line_of_json(made: LocalJob):
    """Nothing else is among them but what is said at the end."""
    made.send(canal("INSERT", [{"id": "4", "a": "2", "b": "1"}], id=4))
    (made.folder / "sync.toml").write_text(FILE.replace("[lake]", "most = 1\n[lake]"))
    done = sync("--config", "sync.toml", "--once", "--log", "json", cwd=made.folder)
    assert done.returncode == 0, done.stderr
    *lines, last = done.stderr.splitlines()
    found = [json.loads(line) for line in lines]
    assert last.startswith("rejected messages are in ")
    assert [(one["batch"], one["lag"], set(one["counts"])) for one in found] == [
        (number, {"files": 1 - number}, set(COUNTS)) for number in range(2)
    ]
    assert found[0]["rejects"][0]["place"] == f"{made.folder}/in/0000.jsonl line 2"
    assert found[1]["steps"] == ["d.t: column 'b' is added"]


@pytest.mark.slow
def test_a_check_does_nothing(made: LocalJob):
    """It says what can be reached."""
    done = sync(*FLAGS, "--registry", "file:schemas", "--check", cwd=made.folder)
    said = f"in, Delta Lake at {made.folder}/lake and the registry can be reached, and state is free\n"
    assert (done.returncode, done.stdout) == (0, said), done.stderr
    assert not {"schemas", "lake"} & {path.name for path in made.folder.iterdir()}
    assert not (made.folder / "state" / "checkpoint").exists()


@pytest.mark.parametrize(("flags", "is_one"), [(["--once"], True), (["--check"], True), ([], False)])
def test_only_a_run_that_ends_starts_spark_with_one_compiler(
    made: LocalJob, monkeypatch: pytest.MonkeyPatch, flags: list[str], *, is_one: bool
):
    """One that goes on is worth the time of the second."""
    pytest.importorskip("pyspark")
    found: dict[str, str] = {}

    def start(_master: str | None, settings: dict[str, str], **_: object) -> None:
        found.update(settings)
        raise SetupError("no Spark is started here")

    monkeypatch.setattr(sys.modules["cdcavro.cli.commands.sync"], "spark_session", start)
    made.send(canal("INSERT", [{"id": "1"}], id=1))
    places = {"--files": "in", "--delta": "lake", "--state": "state"}
    stated = [text for option, name in places.items() for text in (option, str(made.folder / name))]
    done = CliRunner().invoke(sync_command, [*stated, "--format", "canal", *flags])
    assert (type(done.exception), found.get("spark.driver.extraJavaOptions")) == (
        SetupError,
        "-XX:TieredStopAtLevel=1" if is_one else None,
    )


@pytest.mark.slow
def test_ctrl_c_says_what_was_done_and_how_to_go_on(made: LocalJob):
    """A run without `--once` goes on until then; the next one reads nothing twice."""
    with running([*COMMAND, *FLAGS], cwd=made.folder, stdout=-1, stderr=-1, text=True) as process:
        said = ""
        while "batch 0: read 3" not in said:
            said += process.stderr.readline()
        process.send_signal(signal.SIGINT)
        account, said = process.communicate()
    assert process.returncode == 130
    assert "interrupted: batch 0 was the last that was done. The same command resumes from there" in said
    assert account.splitlines()[-1] == "read 3 = written 2 + rejected 1"
    assert made.run() == []


@pytest.mark.slow
def test_metrics_and_health_are_served_while_it_runs(made: LocalJob):
    """At an address that is said; one in use is told before anything is read, and at the end nothing is served."""
    with running([*COMMAND, *FLAGS, "--metrics", "127.0.0.1:0"], cwd=made.folder, stderr=-1, text=True) as process:
        address = process.stderr.readline().removeprefix("metrics are at ").strip()
        while "batch 0: read 3" not in process.stderr.readline():
            pass
        with urlopen(address, timeout=10) as answer:
            text = answer.read().decode()
        with urlopen(address.replace("/metrics", "/healthz"), timeout=10) as answer:
            assert answer.read() == b"ok\n"
        listen = address.removeprefix("http://").removesuffix("/metrics")
        other = sync(*FLAGS[:-1], "other", "--metrics", listen, cwd=made.folder)
        end(process, signal.SIGINT)
        assert process.returncode == INTERRUPTED
    assert 'cdcavro_rows_total{operation="c",table="d.t"} 1.0\n' in text
    with running([*COMMAND, *FLAGS, "--metrics", "127.0.0.1:0"], cwd=made.folder, stderr=-1, text=True) as process:
        again = process.stderr.readline().removeprefix("metrics are at ").strip()
        with urlopen(again, timeout=10) as answer:
            versions = answer.read().decode()
        end(process, signal.SIGINT)
        assert process.returncode == INTERRUPTED
    assert 'cdcavro_table_version{table="d.t"} 1.0\n' in versions
    said = f"Error: metrics cannot be served at {listen}: Address already in use\n"
    assert (other.returncode, other.stderr, (made.folder / "other").exists()) == (2, said, False)
    with pytest.raises(OSError, match="refused"):
        urlopen(address, timeout=10)


@pytest.mark.slow
def test_a_state_that_is_in_use_is_told(made: LocalJob):
    """Before anything is read."""
    with running([*COMMAND, *FLAGS], cwd=made.folder, stdout=-1, stderr=-1, text=True) as process:
        while "batch 0: read 3" not in process.stderr.readline():
            pass
        done = sync(*FLAGS, "--once", cwd=made.folder)
        process.send_signal(signal.SIGINT)
        process.communicate()
    said = "Error: state: expected a state that no other job uses, got one that is in use"
    assert (done.returncode, done.stderr.splitlines()) == (2, [said])


@pytest.mark.slow
def test_rows_that_wait_and_rejects_alone_are_no_success(made: LocalJob):
    """An exit code of 1, with a sentence."""
    (made.folder / "lake").touch()
    text = FILE.replace('delta = "lake"', 'delta = "lake/inner"')
    (made.folder / "sync.toml").write_text(text)
    refused = sync("--config", "sync.toml", "--once", cwd=made.folder)
    assert refused.returncode == 2
    assert "expected a folder, or a place for one" in refused.stderr
    flags = ("--files", "in", "--format", "debezium", "--delta", "other", "--state", "s", "--local", "--once")
    done = sync(*flags, cwd=made.folder)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, "read 3 = written 0 + rejected 3"), done.stderr
    assert done.stderr.splitlines()[-1] == "2 of 3 rejects look like canal, unlike the --format given"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "said"),
    [
        (FILE.replace('"local"', '"locally"'), "run"),
        (FILE.replace("run =", "runs ="), "runs"),
        (FILE + 'iceberg = "ice"\n', "sync.toml: "),
        (FILE.replace('delta = "lake"', 'iceberg = "ice"'), "warehouse"),
        (FILE.replace('files = "in"', 'files = "s3://bucket/in"'), "s3://bucket/in"),
        (FILE.replace('files = "in"', 'files = "nowhere"'), "nowhere: expected a file or folder, got none"),
    ],
)
def test_a_mistake_is_a_sentence(made: LocalJob, text: str, said: str):
    """With an exit code of 2, and nothing is written."""
    (made.folder / "sync.toml").write_text(text)
    done = sync("--config", "sync.toml", "--once", cwd=made.folder)
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr
    assert "Traceback" not in done.stderr
    assert not (made.folder / "lake").exists()


_WITHOUT = """
import sys
sys.modules[sys.argv.pop(1)] = None
from cdcavro.cli import main
main(prog_name="cdcavro")
"""


@pytest.mark.slow
@pytest.mark.parametrize("library", ["deltalake", "pyarrow", "confluent_kafka"])
def test_a_library_that_is_missing_is_a_sentence(made: LocalJob, library: str):
    """With the command that installs it."""
    flags = ["--local", "--once", *FLAGS[1:]]
    if library == "confluent_kafka":
        flags[2:4] = ["--kafka", "127.0.0.1:9", "--topic", "t"]
    command = [sys.executable, "-c", _WITHOUT, library, "sync", *flags]
    done = subprocess.run(command, capture_output=True, text=True, cwd=made.folder, check=False)
    assert (done.returncode, "pip install 'cdcavro[local]'" in done.stderr) == (2, True), done.stderr
    assert library in done.stderr
    assert "Traceback" not in done.stderr


_IMPORTED = """
import sys
from cdcavro.cli import main
try:
    main(prog_name="cdcavro")
finally:
    print(*sys.modules)
"""


@pytest.mark.slow
def test_pandas_is_imported_for_no_pipeline(made: LocalJob):
    """It takes a quarter of a second, and pyarrow imports it where it is installed."""
    pytest.importorskip("pandas")
    command = [sys.executable, "-c", _IMPORTED, "sync", "--local", "--once", *FLAGS[1:]]
    done = subprocess.run(command, capture_output=True, text=True, cwd=made.folder, check=True)
    *said, modules = done.stdout.splitlines()
    assert said[-1] == "read 3 = written 2 + rejected 1"
    assert "pyarrow.lib" in modules.split()
    assert "pandas" not in modules.split()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("library", "extra", "flags"),
    [
        ("prometheus_client", "metrics", ("--metrics", "127.0.0.1:0")),
        ("opentelemetry", "opentelemetry", ("--opentelemetry",)),
        ("openlineage", "openlineage", ("--openlineage", "shop")),
    ],
)
def test_metrics_and_events_without_their_library_are_a_sentence(
    made: LocalJob, library: str, extra: str, flags: tuple[str, ...]
):
    """Each is an extra of its own, of which nothing is read before."""
    command = [sys.executable, "-c", _WITHOUT, library, "sync", *FLAGS, "--once", *flags]
    done = subprocess.run(command, capture_output=True, text=True, cwd=made.folder, check=False)
    assert (done.returncode, f"is not installed: pip install 'cdcavro[{extra}]'\n" in done.stderr) == (2, True)
    assert done.stderr.startswith(f"Error: {library}")
    assert not (made.folder / "lake").exists()


@pytest.mark.slow
def test_without_pyspark_the_way_without_spark_is_named(made: LocalJob):
    """Before a state is begun."""
    command = [sys.executable, "-c", _WITHOUT, "pyspark", "sync", *FLAGS[1:], "--once"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=made.folder, check=False)
    said = "Error: pyspark is not installed: pip install 'cdcavro[spark]', or add --local, which runs without Spark\n"
    assert (done.returncode, done.stderr) == (2, said)
    assert not (made.folder / "state").exists()


@pytest.mark.slow
def test_a_wrong_format_is_told_also_where_it_takes_statements(made: LocalJob):
    """As Maxwell's messages, statements of Canal are taken, and no row is. With rows, nothing is said."""
    (made.folder / "other").mkdir()
    (made.folder / "other" / "a").write_bytes((SAMPLES / "canal" / "shop.jsonl").read_bytes())
    flags = ("--files", "other", "--format", "maxwell", "--local", "--once")
    done = sync(*flags, "--state", "s", "--delta", "s-lake", cwd=made.folder)
    assert done.stdout.splitlines()[-1] == "read 188 = written 0 + rejected 166 + statements 22", done.stderr
    assert done.stderr.splitlines()[-1] == "the first 20 rejects look like canal, unlike the --format given"
    (made.folder / "other" / "b").write_bytes((SAMPLES / "maxwell" / "insert.json").read_bytes())
    done = sync(*flags, "--state", "t", "--delta", "t-lake", cwd=made.folder)
    assert (done.stdout.splitlines()[-1], "look like" in done.stderr) == (
        "read 189 = written 1 + rejected 166 + statements 22",
        False,
    ), done.stderr


@pytest.mark.slow
def test_rejects_of_which_some_look_like_another_format_are_counted(made: LocalJob):
    """What is no message looks like none."""
    made.send(b"garbage", b"")
    flags = ("--files", "in", "--format", "debezium", "--delta", "other", "--state", "s", "--local", "--once")
    done = sync(*flags, cwd=made.folder)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, "read 5 = written 0 + rejected 5"), done.stderr
    assert done.stderr.splitlines()[-1] == "2 of 5 rejects look like canal, unlike the --format given"


@pytest.mark.slow
def test_telemetry_and_events_are_sent_while_it_runs(made: LocalJob, monkeypatch: pytest.MonkeyPatch):
    """By flags, in one run; also if it is interrupted."""
    paths: list[str] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            paths.append(self.path)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
    monkeypatch.setenv("OPENLINEAGE_URL", address)
    flags = [*FLAGS, "--opentelemetry", "--openlineage", "shop"]
    try:
        with running([*COMMAND, *flags], cwd=made.folder, stdout=-1, stderr=-1, text=True) as process:
            while "batch 0: read 3" not in process.stderr.readline():
                pass
            process.send_signal(signal.SIGINT)
            _, said = process.communicate()
    finally:
        server.shutdown()
        server.server_close()
    assert (process.returncode, "OpenTelemetry" in said, "OpenLineage" in said) == (INTERRUPTED, False, False)
    assert Counter(paths) == {"/v1/metrics": 1, "/v1/traces": 1, "/api/v1/lineage": 3}


def _uncommented(text: str) -> str:
    """Return a configuration with every setting that stands behind `#`."""
    return re.sub(r"^# (\w+ = |\[)", r"\1", text, flags=re.MULTILINE)


@pytest.mark.slow
@pytest.mark.parametrize(
    "flags",
    [
        FLAGS,
        (
            "--kafka",
            "h:9092",
            "--topic",
            "a",
            "--topic",
            "b",
            "--avro",
            "out",
            "--state",
            "s",
            "--registry",
            "file:reg",
        ),
        (
            "--files",
            'a "b"\x7f',
            "--delta",
            "lake",
            "--changelog",
            "--zone",
            "UTC",
            "--state",
            "s",
            "--max-rejects",
            "1%",
        ),
        ("--files", "in", "--iceberg", "lake", "--warehouse", "files", "--state", "s", "--local"),
        ("--kafka", "h:9092", "--topic", "a", "--iceberg", "prod", "--state", "s"),
    ],
)
def test_a_configuration_to_begin_with_says_what_the_options_say(tmp_path: Path, flags: tuple[str, ...]):
    """It is read as they are, and has each other setting of its sections with its default, behind a line on it."""
    done = sync("--init", "sync.toml", *flags, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (
        0,
        "wrote sync.toml; check it with: cdcavro sync --config sync.toml --check\n",
    )
    text = (tmp_path / "sync.toml").read_text()
    context = sync_command.make_context("sync", list(flags))
    assert read_config(tmp_path / "sync.toml") == _config(None, context.params)
    whole = tomllib.loads(_uncommented(text))
    wanted = tomllib.loads(text)
    kinds = {
        name: kind
        for name, kind in sections()
        if name in {"", "tables", "registry", "metrics", "table", "route", *wanted}
    }
    left_out = {"kafka", "files", "topics", "pattern", "options", "registry"}
    whole |= {name: whole[name][0] for name in ("table", "route")}
    for section, kind in kinds.items():
        found = whole[section] if section else whole
        names = {setting.name.rpartition(".")[2] for setting in settings(section, kind)}
        assert names - left_out <= {*found} <= names | {*kinds}
    assert text.count("\n# ") > 40
    assert [path.name for path in tmp_path.iterdir()] == ["sync.toml"]


@pytest.mark.slow
def test_a_configuration_that_exists_is_not_replaced(tmp_path: Path):
    """Nor is one written beside another, or from options that no pipeline has."""
    (tmp_path / "sync.toml").write_text("mine")
    done = sync("--init", "sync.toml", *FLAGS, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (2, "Error: sync.toml: expected a new file, got one that exists\n")
    assert (tmp_path / "sync.toml").read_text() == "mine"
    (tmp_path / "other.toml").write_text(FILE)
    for flags, said in (
        (("--config", "other.toml"), "either --config or --init"),
        (("--files", "in"), "without --config, give --delta, --iceberg or --avro; --state"),
        (("--iceberg", "lake", *FLAGS), "only one of --delta, --iceberg and --avro"),
        (("--warehouse", "files", *FLAGS), "--warehouse is for --iceberg"),
        ((*FLAGS, "--format", "canel"), "canel"),
        (("--files", "in\udcff", *FLAGS[3:]), "settings in UTF-8, as TOML is, got"),
    ):
        done = sync("--init", "new.toml", *flags, cwd=tmp_path)
        assert (done.returncode, said in done.stderr) == (2, True), done.stderr
    assert not (tmp_path / "new.toml").exists()


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--zone", "Asia/Shangai", "no time zone is called 'Asia/Shangai'"),
        ("--zone", "", "no time zone is called ''"),
        ("--format", "canel", "unknown format 'canel'"),
        ("--metrics", "9400", "metrics are served at host:port"),
        ("--metrics", "127.0.0.1:http", "metrics are served at host:port"),
        ("--registry", "registry:8081", "expected an address such as https://HOST/PATH"),
    ],
)
def test_an_option_that_is_wrong_is_named(option: str, value: str, said: str):
    """With or without a configuration, which is not to blame."""
    with pytest.raises(click.BadParameter, match=re.escape(said)) as refused:
        sync_command.make_context("sync", ["--config", __file__, option, value])
    assert refused.value.format_message().startswith(f"Invalid value for '{option}': ")
    assert "configuration" not in refused.value.message


@pytest.mark.parametrize(
    ("pattern", "flag", "said"),
    [
        ("shop[.].*", "--check", []),
        ("shop.tt", "--check", ["no topic matches shop.tt so far"]),
        ("shop.tt", "--once", ["no topic matches shop.tt so far"]),
    ],
)
def test_a_pattern_of_topics_that_none_matches_is_told(pattern: str, flag: str, said: list[str], tmp_path: Path):
    """A run that reads nothing says why; it is no error, as the topics may come later."""
    producer = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "none", "log_level": 0})
    servers = str(next(iter(producer.list_topics(timeout=60).brokers.values()))).split("/")[0]
    producer.produce("shop.t", b"{}")
    producer.flush(60)
    config, state, lake = (tmp_path / name for name in ("sync.toml", "state", "lake"))
    source = f'[source]\nkafka = "{servers}"\npattern = "{pattern}"\n'
    config.write_text(f'run = "local"\nstate = "{state}"\n{source}[lake]\ndelta = "{lake}"\n')
    done = CliRunner().invoke(main, ["sync", "--config", str(config), flag])
    assert done.exit_code == 0, done.output
    assert [line for line in done.stderr.splitlines() if line.startswith("no topic")] == said

"""What is asked of a pipeline's state on the command line: `sync show`, `sync status` and `replay`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cdcavro.cli import main
from cdcavro.cli.commands.pipeline_state import _lines
from cdcavro.lake.evolution import EXCEPTION
from cdcavro.sync.pipeline import job_of, lock_state
from cdcavro.sync.status import Status, TableStatus
from support.jobs import LocalJob, local_job
from support.messages import canal

FILE = """
run = "local"
state = "${STATE}"
format = "canal"
[source]
files = "in"
[lake]
delta = "lake"
"""


def cdcavro(*arguments: str) -> Result:
    """Run a command in this process."""
    return CliRunner().invoke(main, arguments, catch_exceptions=False)


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LocalJob:
    """A pipeline that has read a row and no message."""
    monkeypatch.chdir(tmp_path)
    found = local_job(tmp_path, behavior=EXCEPTION)
    found.send(canal("INSERT", [{"id": "1", "a": "2"}], id=1), b"{")
    found.run()
    return found


def test_status_says_whether_a_pipeline_is_healthy(made: LocalJob):
    """In sentences, and as a line of JSON with the same."""
    done = cdcavro("sync", "status", "--state", "state")
    first, *others = done.stdout.splitlines()
    assert done.exit_code == 0
    assert re.fullmatch(r"batch 0 was done at 20..-..-.. ..:..:.. UTC; no pipeline has the state", first)
    assert others == [
        "read 2 = written 1 + rejected 1 + statements 0 + left out 0 + tombstones 0, 1 row",
        "0 files left to read",
        f"{made.folder}/in/0000.jsonl to line 2",
        "table  version  rows  pending",
        "d.t          1     1        0",
    ]
    found = json.loads(cdcavro("sync", "status", "--state", "state", "--json").stdout)
    assert (found["batch"], found["counts"]["read"], found["lag"], found["unit"]) == (0, 2, 0, "files")
    table = {"name": "d.t", "version": 1, "rows": {"c": 1}, "pending": 0, "stopped": None, "is_paused": False}
    assert found["tables"] == [
        table | {"complete_until": None, "late": 0, "has_kept_rows": False, "lacks": None, "is_reset_waiting": False}
    ]


def test_the_status_of_a_pipeline_that_reads_from_elsewhere_is_refused(made: LocalJob):
    """The configuration is of another pipeline, whose lag would be given as that of this one."""
    text = '[source]\nkafka = "127.0.0.1:1"\ntopics = ["shop"]\n[lake]\ndelta = "lake"\n'
    (made.folder / "topics.toml").write_text(f'state = "state"\n{text}')
    done = cdcavro("sync", "status", "--config", "topics.toml")
    assert (done.exit_code, done.stderr) == (
        2,
        "Error: state: expected the state of a pipeline that reads topics, got that of one that reads files\n",
    )


@pytest.mark.slow
def test_show_and_a_check_say_which_tables_have_stopped_and_why(made: LocalJob):
    """As status does: whoever looks there first must not think that all is well."""
    (made.folder / "sync.toml").write_text(
        'run = "local"\nstate = "state"\nformat = "canal"\n[source]\nfiles = "in"\n[lake]\ndelta = "lake"\n'
    )
    for arguments in (("show", "--state", "state"), ("--config", "sync.toml", "--check")):
        assert "column" not in cdcavro("sync", *arguments).output
    made.send(canal("INSERT", [{"id": "2", "a": "2", "b": "3"}], id=2))
    made.run()
    done = cdcavro("sync", "show", "--state", "state")
    last = done.stdout.splitlines()[-1]
    assert done.exit_code == 0
    assert last.startswith("d.t has stopped: schema t: its lake table would change")
    checked = cdcavro("sync", "--config", "sync.toml", "--check")
    reason = last.removeprefix("d.t has stopped: ")
    assert (checked.exit_code, checked.stdout.count("can be reached")) == (0, 1)
    assert checked.stderr.splitlines() == [f"the rows of d.t have waited since an earlier run: {reason}"]


def test_what_a_pipeline_remembers_is_a_line_of_json(made: LocalJob):
    """With the members that the page lists; names and files as they are."""
    done = cdcavro("sync", "show", "--state", "state", "--json")
    assert (done.exit_code, done.stdout.count("\n")) == (0, 1)
    assert json.loads(done.stdout) == {
        "batch": 0,
        "counts": {"read": 2, "written": 1, "rejected": 1},
        "lanes": [{"topic": None, "partition": None, "file": f"{made.folder}/in/0000.jsonl", "position": 2}],
        "tables": [{"name": "d.t", "database": "d", "schema": None, "table": "t", "shard": None}],
    }


def test_shards_of_a_table_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """`sync show` names them as `sync status` does, with the time up to which each is complete, also as JSON."""
    monkeypatch.chdir(tmp_path)
    route = '[[route]]\nfrom = "d_*.t"\nto = "d.t"\nshards = true\n'
    Path("sync.toml").write_text(FILE.replace("${STATE}", "state") + route)
    Path("in").mkdir()
    rows = [canal("INSERT", [{"id": "1"}], id=i, database=f"d_{i}") for i in (1, 2)]
    Path("in/0000.jsonl").write_bytes(b"\n".join(rows))
    assert cdcavro("sync", "--config", "sync.toml", "--once", "--quiet").exit_code == 0
    shards = ["d_1.t", "d_2.t"]
    labels = [f"d.t ({shard})" for shard in shards]
    assert [
        table["name"] for table in json.loads(cdcavro("sync", "status", "--state", "state", "--json").stdout)["tables"]
    ] == labels
    assert cdcavro("sync", "show", "--state", "state").stdout.splitlines()[-2:] == [
        f"table {label}" for label in labels
    ]
    found = json.loads(cdcavro("sync", "show", "--state", "state", "--json").stdout)["tables"]
    assert [(table["name"], table["database"], table["table"], table["shard"]) for table in found] == [
        (label, "d", "t", shard) for label, shard in zip(labels, shards, strict=True)
    ]
    done = cdcavro("sync", "pause", labels[0], "--state", "state")
    assert (done.exit_code, "one table of the pipeline (d.t for all its shards), got" in done.stderr) == (2, True)


def test_a_table_that_stopped_is_an_exit_code(made: LocalJob):
    """Of 1, for a check that asks for nothing else."""
    made.send(canal("INSERT", [{"id": "2", "a": "2", "b": "1"}], id=2))
    made.run()
    for flags in ([], ["--json"]):
        done = cdcavro("sync", "status", "--state", "state", *flags)
        assert (done.exit_code, "column 'b' is added" in done.stdout) == (1, True)
    assert cdcavro("sync", "status", "--state", "state").stdout.splitlines()[-1].startswith("d.t has stopped: ")


def test_a_table_is_paused_and_goes_on(made: LocalJob):
    """It has not stopped, which is no failure; while a pipeline has the state, nothing is changed."""
    with lock_state(made.folder / "state"):
        done = cdcavro("sync", "pause", "d.t", "--state", "state")
        assert (done.exit_code, "one that is in use" in done.stderr) == (2, True)
    assert cdcavro("sync", "pause", "d.t", "--state", "state").stdout == "paused: d.t\n"
    made.send(canal("INSERT", [{"id": "2", "a": "2"}], id=2))
    flags = (
        "--local",
        "--files",
        "in",
        "--format",
        "canal",
        "--delta",
        "lake",
        "--state",
        "state",
        "--once",
        "--quiet",
    )
    assert cdcavro("sync", *flags).exit_code == 0
    done = cdcavro("sync", "status", "--state", "state")
    assert (done.exit_code, done.stdout.splitlines()[-1]) == (0, "d.t          1     2        1  paused")
    assert cdcavro("sync", "resume", "d.t", "--state", "state").stdout == "paused: no table\n"
    assert cdcavro("sync", *flags).exit_code == 0
    assert made.rows("d.t", "id") == [(1,), (2,)]


def test_a_table_is_reset_waiting(made: LocalJob):
    """With the next run it is empty."""
    with lock_state(made.folder / "state"):
        done = cdcavro("sync", "reset", "d.t", "--state", "state")
        assert (done.exit_code, "one that is in use" in done.stderr) == (2, True)
    assert cdcavro("sync", "reset", "d.t", "--state", "state").stdout == "reset with the next run: d.t\n"
    assert made.rows("d.t", "id") == [(1,)]
    assert cdcavro("sync", "status", "--state", "state").stdout.endswith("  0  reset with the next run\n")
    made.run()
    assert made.rows("d.t", "id") == []
    assert cdcavro("sync", "status", "--state", "state").stdout.endswith("  0\n")


def test_status_says_that_rejects_are_read_again_until_they_were(made: LocalJob):
    """What is there is said to whoever asks for others, or once more."""
    done = cdcavro("replay", "--state", "state", "--batch", "7", "--batch", "9")
    said = "state/rejects: expected rejects of batch 7, 9, got none: there are those of 0"
    assert (done.exit_code, said in done.stderr) == (2, True)
    assert cdcavro("replay", "--state", "state").stdout == "the rejects of 1 batch will be read again\n"
    done = cdcavro("replay", "--state", "state")
    said = "expected rejects of a batch, got none: no batch has rejects left to replay"
    assert (done.exit_code, said in done.stderr) == (2, True)
    sentence = "the rejects of 1 batch are read again with the next batch"
    assert cdcavro("sync", "status", "--state", "state").stdout.splitlines()[2] == sentence
    made.run()
    assert sentence not in cdcavro("sync", "status", "--state", "state").stdout
    # It is no message, and a reject of another batch now.
    assert cdcavro("replay", "--state", "state").stdout == "the rejects of 1 batch will be read again\n"


def test_a_reset_that_keeps_rows_is_finished(made: LocalJob):
    """Which rows are from before it is said, and that there may be some; they go with the run behind its end."""
    done = cdcavro("sync", "reset", "d.t", "--keep", "--state", "state")
    said = "reset with its rows kept: d.t; of rows that are not read again, hex(_cdc_order) < '038101'\n"
    assert (done.exit_code, done.stdout) == (0, said)
    made.send(canal("INSERT", [{"id": "2", "a": "2"}], id=0))
    made.run()
    orders = dict(made.rows("d.t", "id", "_cdc_order"))
    assert {id: order.hex() < "038101" for id, order in orders.items()} == {1: True, 2: False}
    assert cdcavro("sync", "status", "--state", "state").stdout.endswith("  0  keeps rows from before its reset\n")
    assert '"has_kept_rows":true' in cdcavro("sync", "status", "--state", "state", "--json").stdout
    finished = cdcavro("sync", "reset", "d.t", "--finish", "--state", "state")
    assert finished.stdout == "rows from before the reset go with the next run: d.t\n"
    assert '"has_kept_rows":false' in cdcavro("sync", "status", "--state", "state", "--json").stdout
    made.run()
    assert made.rows("d.t", "id") == [(2,)]


def test_a_reset_that_is_finished_says_nothing_of_pending_rows(made: LocalJob, monkeypatch: pytest.MonkeyPatch):
    """There were none: the run behind its end removes rows, and writes none of an earlier batch."""
    monkeypatch.setenv("STATE", "state")
    (made.folder / "sync.toml").write_text(FILE)
    assert cdcavro("sync", "reset", "d.t", "--keep", "--state", "state").exit_code == 0
    made.send(canal("INSERT", [{"id": "2", "a": "2"}], id=0))
    made.run()
    assert cdcavro("sync", "reset", "d.t", "--finish", "--state", "state").exit_code == 0
    done = cdcavro("sync", "--config", "sync.toml", "--once")
    assert (done.exit_code, "pending" in done.stderr) == (0, False), done.stderr
    assert "d.t: what it had is gone, by cdcavro sync reset" in done.stderr


def test_a_reset_keeps_no_rows_of_a_lake_with_only_changelogs(made: LocalJob, monkeypatch: pytest.MonkeyPatch):
    """They are promised none, if the configuration says that there are none."""
    monkeypatch.setenv("STATE", "state")
    (made.folder / "sync.toml").write_text(f"{FILE}current = false\nchangelog = true\n")
    done = cdcavro("sync", "reset", "d.t", "--keep", "--config", "sync.toml")
    said = "Error: sync.toml: expected current = true in [lake] for rows that reset --keep keeps, got false\n"
    assert (done.exit_code, done.stdout, done.stderr) == (2, "", said)
    assert cdcavro("sync", "reset", "d.t", "--config", "sync.toml").exit_code == 0


def test_a_loss_is_accepted_only_with_the_lake_of_the_state(made: LocalJob):
    """Before brokers are asked, which may be those of another pipeline."""
    text = FILE.replace("${STATE}", "state").replace('files = "in"', 'kafka = "127.0.0.1:1"\ntopics = ["shop"]')
    (made.folder / "sync.toml").write_text(text.replace('"lake"', '"other"'))
    done = cdcavro("sync", "accept-loss", "shop", "--config", "sync.toml")
    assert done.exit_code == 2
    assert re.search(r"expected the state of a pipeline into .*/other, got that of one into .*/lake$", done.stderr)


def test_tables_are_maintained(made: LocalJob, monkeypatch: pytest.MonkeyPatch):
    """A line for each lake table, with what was done."""
    made.send(canal("INSERT", [{"id": "2", "a": "2"}], id=2))
    made.run()
    monkeypatch.setenv("STATE", "state")
    (made.folder / "sync.toml").write_text(FILE)
    done = cdcavro("maintain", "--config", "sync.toml")
    assert done.exit_code == 0, done.stderr
    assert [line.partition(": ")[2] for line in done.stdout.splitlines()] == ["1 file fewer, 0 old files removed"]
    assert cdcavro("maintain", "--config", "sync.toml", "--keep", "6").exit_code == 2


def test_a_secret_of_the_configuration_is_in_neither(made: LocalJob, monkeypatch: pytest.MonkeyPatch):
    """A value of a variable that is in a path is the name of the variable."""
    monkeypatch.setenv("STATE", str(made.folder / "state"))
    monkeypatch.setenv("FOLDER", str(made.folder))
    (made.folder / "sync.toml").write_text(FILE.replace('"in"', '"${FOLDER}/in"'))
    for flags in ([], ["--json"]):
        done = cdcavro("sync", "status", "--config", "sync.toml", *flags)
        assert done.exit_code == 0
        assert "${FOLDER}/in/0000.jsonl" in done.stdout
        assert str(made.folder) not in done.stdout


def test_a_state_without_a_converted_batch_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Its first batch may take hours."""
    monkeypatch.chdir(tmp_path)
    job_of(tmp_path, "Delta Lake at /a")
    done = cdcavro("sync", "show", "--state", ".")
    assert (done.exit_code, done.stderr) == (2, "Error: .: expected a batch that is converted, got none so far\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("status",), "status needs --state or --config"),
        (("status", "--state", "nowhere"), "nowhere: expected the state of a pipeline, got none"),
        (("pause", "d.t", "--state", "state", "--json"), "--json works only with show and status"),
        (("pause", "--state", "state"), "pause needs the names of tables, such as shop.orders"),
        (
            ("pause", "d.tt", "--state", "state"),
            "d.tt: expected the name of one table of the pipeline (did you mean d.t?), got 'd.tt'",
        ),
        (("reset", "--state", "state"), "reset needs the names of tables, such as shop.orders"),
        (("reset", "d.tt", "--state", "state"), "expected the name of one table of the pipeline (did you mean d.t?)"),
        (("pause", "d.t", "--state", "nowhere"), "nowhere: expected the state of a pipeline, got none"),
        (("status", "d.t", "--state", "state"), "only pause, resume and reset take names of tables, and accept-loss"),
        (("accept-loss", "--state", "state"), "accept-loss needs the names of topics"),
        (("accept-loss", "shop", "--state", "state"), "accept-loss needs --config with the pipeline's topics"),
        (("pause", "d.t", "--state", "state", "--keep"), "only reset takes --keep and --finish"),
        (("reset", "d.t", "--state", "state", "--keep", "--finish"), "either --keep or --finish"),
        (("reset", "d.t", "--state", "state", "--finish"), "d.t: expected a table that was reset with --keep"),
        (("statu", "--state", "state"), "'statu' is not one of"),
    ],
)
@pytest.mark.usefixtures("made")
def test_a_mistake_is_a_sentence(arguments: tuple[str, ...], said: str):
    """With an exit code of 2."""
    done = cdcavro("sync", *arguments)
    assert (done.exit_code, said in done.stderr) == (2, True), done.stderr
    assert not Path("nowhere").exists()


def test_rejects_of_a_state_that_is_not_there_are_not_replayed(tmp_path: Path):
    """It is told as by the other commands, and no folder is made."""
    done = cdcavro("replay", "--state", str(tmp_path / "nowhere"))
    said = f"Error: {tmp_path / 'nowhere'}: expected the state of a pipeline, got none\n"
    assert (done.exit_code, done.stderr) == (2, said)
    assert not (tmp_path / "nowhere").exists()


def test_status_says_up_to_when_tables_are_complete_and_what_came_late():
    """If it is known of any of them, cut to the second."""
    tables = [
        TableStatus("d.t", 1, {"c": 2}, 0, None, is_paused=False, complete_until=1_700_000_000.999999, late=3),
        TableStatus("d.u", 1, {"c": 1}, 0, None, is_paused=True),
    ]
    status = Status(False, None, None, None, None, {}, 3, None, "messages", None, tables, [])
    assert "\n".join(_lines(status)).splitlines()[2:] == [
        "table  version  rows  pending  complete until",
        "d.t          1     2        0  2023-11-14 22:13:20",
        "d.u          1     1        0                       paused",
        "d.t: 3 changes came late, of times up to which all were in",
    ]


@pytest.mark.slow
def test_a_run_without_messages_tries_rows_again_and_says_why_they_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Whatever it was that a table refused them for; they are written, as the form is what it was."""
    monkeypatch.chdir(tmp_path)
    found = local_job(tmp_path)
    rule = '[[table]]\nmatch = "d.t"\nform = "history"\n'
    said = []
    for id, rules in ((1, ""), (2, rule), (None, rule), (None, "")):
        (tmp_path / "sync.toml").write_text(FILE.replace("${STATE}", "state") + rules)
        if id is not None:
            found.send(canal("INSERT", [{"id": str(id), "a": "2"}], id=id))
        done = cdcavro("sync", "--config", "sync.toml", "--once", *["--quiet"][: len(said) < 3])
        said.append((done.exit_code, done.stderr))
    assert done.stderr.count("the rows of d.t that were pending are written") == 1
    why = 'schema t: its lake table was begun with form = "current", which cannot become "history"'
    assert [code for code, _ in said] == [0, 1, 1, 0]
    assert said[1][1].count(why) == 1
    assert said[2][1].startswith(f"the rows of d.t are pending: {why}")
    assert "rows of 1 table are pending in state, and will be retried with the next batch or run" in said[2][1]
    assert "rows of 1 table are pending" not in said[3][1]
    assert found.rows("d.t", "id") == [(1,), (2,)]

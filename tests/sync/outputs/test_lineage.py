"""Lineage of a pipeline: the events that its client sends to a server and into a file, and what tables are called in them."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from cdcavro.errors import JobError, SetupError
from cdcavro.files.rejects import MaxRejects
from cdcavro.lake.lakes import DeltaLake, IcebergLake
from cdcavro.sync.batches import BatchReport, WrittenTable
from cdcavro.sync.outputs import telemetry
from cdcavro.sync.outputs.sink_settings import AvroFiles, KafkaTopics, LakeSettings
from cdcavro.sync.outputs.telemetry import DatasetName, Lineage, dataset_name, input_names, output_names
from cdcavro.sync.pipeline import Pipeline
from cdcavro.sync.settings import Formats, RegistrySettings, Settings
from cdcavro.sync.sources import Files, Kafka
from cdcavro.sync.status import read_status
from cdcavro.table.ddl.steps import TableName
from support.local_pipelines import DELTA, lake_section
from support.local_pipelines import LocalJob as PipelineOfFile
from support.messages import canal

NAMES = ("URL", "ENDPOINT", "API_KEY", "CONFIG", "NAMESPACE", "DISABLED")
URL_OF_FACETS = "https://openlineage.io/spec/facets/"


@pytest.fixture(autouse=True)
def variables(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str, str], None]:
    """Set a variable; none of the test's own environment counts, nor does a file of its user."""
    for name in NAMES:
        monkeypatch.delenv(f"OPENLINEAGE_{name}", raising=False)
    # The client puts what it finds into the environment.
    for name in ("TYPE", "URL", "AUTH", "ENDPOINT"):
        monkeypatch.setenv(f"OPENLINEAGE__TRANSPORT__TRANSPORTS__DEFAULT_HTTP__{name}", "")
        monkeypatch.delenv(f"OPENLINEAGE__TRANSPORT__TRANSPORTS__DEFAULT_HTTP__{name}")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    # Here the machine may be busy, and every server that is there is heard to the end.
    monkeypatch.setattr(telemetry, "_PATIENCE", 50.0)
    return monkeypatch.setenv


@contextmanager
def receiver(status: int = 201) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Receive events at an address, and answer with a status."""
    found: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.path == "/api/v1/lineage"
            found.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", found
    finally:
        server.shutdown()
        server.server_close()


def run(own: Lineage, pipeline: Any, said: list[str]) -> None:
    """Run a pipeline to its end."""
    with own.sending(said.append):
        pipeline.run(once=True, say=own.add)


@pytest.mark.slow
def test_a_server_has_the_events_of_a_run(job, variables):
    """Its start, what each batch read and wrote, with columns and how many changes, and its end."""
    made, said = job(), []
    made.send(canal("INSERT", [{"id": "1", "a": "1"}, {"id": "2", "a": "1"}], id=1), b"no message")
    made.send(canal("INSERT", [{"id": "3", "a": "1"}], id=2))
    pipeline = made.pipeline()
    with receiver() as (address, events):
        variables("OPENLINEAGE_URL", address)
        variables("OPENLINEAGE_NAMESPACE", "prod")
        run(Lineage("shop", pipeline, is_once=True), pipeline, said)
    assert said == []
    assert [one["eventType"] for one in events] == ["START", "RUNNING", "RUNNING", "COMPLETE"]
    assert len({one["run"]["runId"] for one in events}) == 1
    assert {(one["job"]["namespace"], one["job"]["name"]) for one in events} == {("prod", "shop")}
    kind = events[0]["job"]["facets"]["jobType"]
    assert (kind["processingType"], kind["integration"]) == ("BATCH", "CDCAVRO")
    assert [one["eventTime"] for one in events] == sorted(one["eventTime"] for one in events)
    assert events[0]["inputs"] == events[0]["outputs"] == events[-1]["outputs"] == []
    counts = []
    for one in events[1:-1]:
        assert [(of["namespace"], of["name"]) for of in one["inputs"]] == [("file", str(made.folder / "in"))]
        (output,) = one["outputs"]
        assert (output["namespace"], output["name"]) == ("file", str(made.folder / "lake" / "d" / "t"))
        counts.append(output["outputFacets"]["outputStatistics"]["rowCount"])
        fields = {of["name"]: of["type"] for of in output["facets"]["schema"]["fields"]}
        lake = made.lake_table(TableName("d", None, "t"))
        columns = {of.name: of.type for of in lake.columns()}
        assert {name: kind for name, kind in fields.items() if not name.startswith("_cdc_")} == columns
        assert set(lake.schema().names) == set(fields)
    assert counts == [2, 1]


@pytest.mark.slow
def test_a_table_is_an_output_when_its_rows_are_written(job, variables):
    """Not while they wait; then it is told of all its changes, but if some waited from an earlier run, nothing is."""
    made, said = job(), []
    for number in range(3):
        made.send(canal("UPDATE", [{"id": "1", "a": str(number)}], id=number + 1))
    for batches, counts in ((3, [3]), (1, [None])):
        pipeline = made.pipeline(merge_every=3)
        with receiver() as (address, events):
            variables("OPENLINEAGE_URL", address)
            own = Lineage("shop", pipeline)
            if batches == 1:
                own.resume(read_status(made.folder / "state"))
            run(own, pipeline, said)
        outputs = [of for one in events for of in one["outputs"]]
        assert [of["outputFacets"].get("outputStatistics", {}).get("rowCount") for of in outputs] == counts
        made.send(canal("UPDATE", [{"id": "1", "a": "9"}], id=9))
        _leave_waiting(made)
    assert said == []


def _leave_waiting(made: Any) -> None:
    """Let a run end with rows that wait, as one that is killed does."""

    class Killed(BaseException):
        pass

    def kill(_: BatchReport) -> None:
        raise Killed

    with pytest.raises(Killed):
        made.pipeline(merge_every=100).run(once=True, say=kill)


def test_a_run_that_fails_says_why(job, variables):
    """In one sentence, and one that is interrupted is aborted; the error is raised as ever."""
    made = job()
    made.send(b"no message")
    pipeline = made.pipeline(max_rejects=MaxRejects.of("0"))
    with receiver() as (address, events):
        variables("OPENLINEAGE_URL", address)
        with pytest.raises(JobError):
            run(Lineage("shop", pipeline), pipeline, [])
        with pytest.raises(KeyboardInterrupt), Lineage("shop", pipeline).sending(pytest.fail):
            raise KeyboardInterrupt
    assert [one["eventType"] for one in events] == ["START", "FAIL", "START", "ABORT"]
    failure = events[1]["run"]["facets"]["errorMessage"]
    assert failure["message"].startswith("batch 0 brings the rejects to 1 of 1 messages")
    assert "no message" not in failure["message"]


def test_events_go_into_a_file_if_the_configuration_says_so(job, variables):
    """A line for each, as the client's own file of configuration has it."""
    made, said = job(), []
    made.send(canal("INSERT", [{"id": "1"}], id=1))
    path = made.folder / "events.jsonl"
    (made.folder / "openlineage.yml").write_text(f"transport:\n  type: file\n  log_file_path: {path}\n  append: true\n")
    variables("OPENLINEAGE_CONFIG", str(made.folder / "openlineage.yml"))
    pipeline = made.pipeline()
    run(Lineage("shop", pipeline), pipeline, said)
    events = [json.loads(line) for line in path.read_text().splitlines()]
    assert ([one["eventType"] for one in events], said) == (["START", "RUNNING", "COMPLETE"], [])
    assert events[0]["job"]["namespace"] == "default"
    assert events[0]["job"]["facets"]["jobType"]["processingType"] == "STREAMING"
    facets = [of for one in events[1]["outputs"] for of in (*one["facets"].values(), *one["outputFacets"].values())]
    assert facets
    assert all(
        of["_schemaURL"].startswith(URL_OF_FACETS) and of["_producer"].startswith("urn:cdcavro:") for of in facets
    )


@pytest.mark.slow
def test_many_tables_are_in_several_events(variables):
    """A hundred in each, so that none is too large; all are told."""
    tables = [
        WrittenTable(TableName("d", None, f"t{number}"), _schema(), has_key=True, label=f"d.t{number}")
        for number in range(250)
    ]
    report = BatchReport(0, {"read": 1}, written=tables)
    pipeline = Pipeline(Files("in"), LakeSettings(DeltaLake("/lake")), "state", Settings(Formats("canal")))
    with receiver() as (address, events):
        variables("OPENLINEAGE_URL", address)
        own = Lineage("shop", pipeline)
        with own.sending(pytest.fail):
            own.add(report)
    assert [len(one["outputs"]) for one in events] == [0, 100, 100, 50, 0]
    assert len({of["name"] for one in events for of in one["outputs"]}) == 250


@pytest.mark.slow
@pytest.mark.parametrize("status", [None, 404])
def test_a_server_that_takes_nothing_holds_nothing_up(job, variables, monkeypatch, status: int | None, capfd):
    """It is told once, without a password, and the end waits briefly; the rows are written."""
    monkeypatch.setattr(telemetry, "_PATIENCE", 2.0)
    made, said = job(), []
    made.send(canal("INSERT", [{"id": "1"}], id=1))
    pipeline = made.pipeline()
    with receiver(status or 500) as (address, _):
        host = address.removeprefix("http://") if status is not None else "127.0.0.1:9"
        variables("OPENLINEAGE_URL", f"http://user:hunter2@{host}")
        own = Lineage("shop", pipeline)
        with own.sending(said.append):
            pipeline.run(once=True, say=own.add)
            began = time.monotonic()
        assert time.monotonic() - began < 10
    (sentence,) = said
    assert sentence.startswith("OpenLineage events are not sent, and the pipeline continues: ")
    assert "hunter2" not in sentence
    assert made.rows("d.t", "id") == [(1,)]
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (None, "OpenLineage's events go nowhere: set OPENLINEAGE_URL, or say it in openlineage.yml"),
        ("transport:\n  type: http\n", "what OPENLINEAGE_* or openlineage.yml say is not understood: `url` key"),
        ("transport:\n  type: pigeon\n", "what OPENLINEAGE_* or openlineage.yml say is not understood: "),
    ],
)
def test_a_configuration_of_the_client_that_is_none_is_told(tmp_path, config: str | None, said: str, caplog):
    """Before anything starts; the client says nothing of events that it would print."""
    if config is not None:
        (tmp_path / "openlineage.yml").write_text(config)
    pipeline = Pipeline(Files("in"), LakeSettings(DeltaLake("/lake")), "state", Settings(Formats("canal")))
    with pytest.raises(SetupError) as error:
        Lineage("shop", pipeline)
    assert str(error.value).startswith(said)
    assert "print events" not in caplog.text


def _pipeline() -> Pipeline:
    return Pipeline(Files("in"), LakeSettings(DeltaLake("/lake")), "state", Settings(Formats("canal")))


class Held:
    """The transport of a client, which waits at its second event and keeps all; its `close` may raise."""

    def __init__(self, own: Lineage, *, seconds: float = 0, fault: Exception | None = None) -> None:
        self.kinds: list[str] = []
        self.is_free, self._seconds, self._fault = threading.Event(), seconds, fault
        own._client.transport.emit = self._emit
        own._client.transport.close = self._close

    def _emit(self, event: Any) -> None:
        if self.kinds:
            self.is_free.wait(20)
        time.sleep(self._seconds)
        self.kinds.append(event.eventType.value)

    def _close(self, *_: object) -> bool:
        if self._fault is not None:
            raise self._fault
        return True


def test_the_end_of_a_run_is_told_however_many_events_wait(variables, monkeypatch):
    """Of those on batches, the last are left out, which is told once."""
    monkeypatch.setattr(telemetry, "_WAITING", 3)
    variables("OPENLINEAGE_URL", "http://127.0.0.1:9")
    own, said = Lineage("shop", _pipeline()), []
    held = Held(own)
    with own.sending(said.append):
        for number in range(10):
            own.add(BatchReport(number, {"read": 0}))
        held.is_free.set()
    assert (held.kinds[0], held.kinds[-1]) == ("START", "COMPLETE")
    assert 2 <= held.kinds.count("RUNNING") <= 5
    assert said == [
        "OpenLineage events are not sent, and the pipeline continues: 3 events wait, and others are left out"
    ]


def test_the_end_of_a_run_is_told_in_time_by_a_slow_receiver(variables, monkeypatch):
    """Events on batches for which there is no time are left out before it."""
    monkeypatch.setattr(telemetry, "_PATIENCE", 0.6)
    variables("OPENLINEAGE_URL", "http://127.0.0.1:9")
    own, said = Lineage("shop", _pipeline()), []
    held = Held(own, seconds=0.05)

    def run_and_fail() -> None:
        with own.sending(said.append):
            for number in range(100):
                own.add(BatchReport(number, {"read": 0}))
            held.is_free.set()
            raise JobError("why")

    with pytest.raises(JobError):
        run_and_fail()
    # A busy machine may be late.
    deadline = time.monotonic() + 20
    while held.kinds[-1] != "FAIL" and time.monotonic() < deadline:
        time.sleep(0.01)
    assert held.kinds[-1] == "FAIL"
    assert held.kinds.count("RUNNING") < 20
    assert said[0].endswith((": the run is over, and events on batches that still wait are left out", ": no answer"))


def test_a_client_that_cannot_be_closed_is_told(variables, capfd):
    """As a sentence, without a traceback."""
    variables("OPENLINEAGE_URL", "http://127.0.0.1:9")
    own, said = Lineage("shop", _pipeline()), []
    held = Held(own, fault=OSError("no flush of http://me:hunter2@host"))
    held.is_free.set()
    with own.sending(said.append):
        pass
    assert held.kinds == ["START", "COMPLETE"]
    assert said == ["OpenLineage events are not sent, and the pipeline continues: no flush of http://host"]
    assert capfd.readouterr().err == ""


def _schema() -> Any:
    from cdcavro import Tables, to_changes  # noqa: PLC0415  of one test

    (change,) = to_changes(canal("INSERT", [{"id": "1"}], id=1), "canal")
    return Tables().add(change)[0].schema


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("/in/", ("file", "/in")),
        ("file:/in/a*.jsonl", ("file", "/in/a*.jsonl")),
        ("file:///in", ("file", "/in")),
        ("s3a://bucket/lake/", ("s3://bucket", "lake")),
        ("s3://key:secret@bucket/lake?token=secret#secret", ("s3://bucket", "lake")),
        ("gs://bucket", ("gs://bucket", "/")),
        ("hdfs://name:8020/lake", ("hdfs://name:8020", "/lake")),
        ("abfss://box@account.dfs.core.windows.net/lake", ("abfss://box@account.dfs.core.windows.net", "lake")),
        ("abfss://box:secret@account.dfs.core.windows.net/lake", ("abfss://account.dfs.core.windows.net", "lake")),
        ("s3a://key:sec/ret@bucket/lake", ("s3://bucket", "lake")),
        ("hdfs://name:8020/lake/a@b", ("hdfs://name:8020", "/lake/a@b")),
        ("https://secret@host/lake", ("https://host", "/lake")),
    ],
)
def test_a_folder_has_the_name_that_others_give_it(address: str, name: tuple[str, str]):
    """As OpenLineage's convention has it, without user and password."""
    assert dataset_name(address) == name


@pytest.mark.parametrize(
    ("sink", "names"),
    [
        (LakeSettings(DeltaLake("s3a://b/lake")), [("s3://b", "lake/d/t")]),
        (
            LakeSettings(IcebergLake("ice"), warehouse="file:/wh", is_changelog=True),
            [("file", "/wh/d/t"), ("file", "/wh/d/t~~changes")],
        ),
        (LakeSettings(IcebergLake("ice")), [("iceberg://ice", "d.t")]),
        (
            LakeSettings(
                IcebergLake("ice"), catalog={"type": "rest", "uri": "https://me:secret@host:8181/v1/?token=x"}
            ),
            [("https://host:8181/v1", "d.t")],
        ),
        (
            LakeSettings(
                IcebergLake("ice"),
                catalog={"type": "sql", "uri": "postgresql://me:s/e%40c@db:5432/ice", "warehouse": "/wh"},
            ),
            [("postgresql://db:5432/ice", "d.t")],
        ),
        (AvroFiles("/out"), [("file", "/out/d/t")]),
        (KafkaTopics("SSL://b1:9092,b2:9092", "cdc.{name}"), [("kafka://b1:9092", "cdc.d.t")]),
    ],
)
def test_a_table_has_the_name_of_its_place(sink: Any, names: list[tuple[str, str]]):
    """Its folder, its topic, or its catalog and its name there; no password stands in any."""
    registry = RegistrySettings("file:reg") if isinstance(sink, KafkaTopics) else None
    pipeline = Pipeline(Files("in"), sink, "state", Settings(Formats("canal")), registry)
    table = WrittenTable(TableName("d", None, "t"), _schema(), has_key=True, label="d.t")
    found = [name for name, _ in output_names(pipeline, table)]
    assert found == names
    assert "secret" not in repr(found)


def test_a_table_without_a_key_has_a_changelog_alone():
    """As the lake has it."""
    pipeline = Pipeline(Files("in"), LakeSettings(DeltaLake("/lake")), "state", Settings(Formats("canal")))
    table = WrittenTable(TableName("d", None, "t"), _schema(), has_key=False, label="d.t")
    assert [name for name, _ in output_names(pipeline, table)] == [DatasetName("file", "/lake/d/t~~changes")]


def test_topics_are_of_the_first_broker():
    """Whatever stands before its name."""
    sink = LakeSettings(DeltaLake("/lake"))
    pipeline = Pipeline(Kafka("me:secret@b1:9092,b2:9092", ("a", "b")), sink, "state", Settings(Formats("canal")))
    assert input_names(pipeline, ["a", "b"]) == [("kafka://b1:9092", "a"), ("kafka://b1:9092", "b")]


def test_a_value_of_a_variable_is_in_no_event(tmp_path, variables):
    """The name of the variable stands in its place."""
    made, said = PipelineOfFile(tmp_path, lake_section(DELTA, tmp_path / "${PLACE}")), []
    made.send(canal("INSERT", [{"id": "1"}], id=1))
    variables("PLACE", "hunter2")
    pipeline = made.pipeline()
    with receiver() as (address, events):
        variables("OPENLINEAGE_URL", address)
        run(Lineage("shop", pipeline), pipeline, said)
    assert (tmp_path / "hunter2" / "lake" / "d" / "t").is_dir()
    assert [of["name"] for of in events[1]["outputs"]] == [f"{tmp_path}/${{PLACE}}/lake/d/t"]
    assert "hunter2" not in json.dumps(events)

"""Schemas of tables in a registry: published before rows are written with them, once; which refusals stop a table, and which the stream."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import cdcavro
from cdcavro import registry
from cdcavro.errors import IncompatibleError, JobError, RegistryError
from cdcavro.registry.backend import UnusableError
from cdcavro.sync.outputs.sink_settings import AvroFiles
from cdcavro.sync.outputs.writer import Publisher, _is_of_a_schema
from cdcavro.sync.settings import Formats, RegistrySettings
from cdcavro.table.ddl.steps import TableName
from cdcavro.table.tables import Tables
from support.jobs import PipelineJob
from support.messages import canal


@pytest.mark.parametrize(
    ("error", "is_of_one"),
    [
        (IncompatibleError("s", "FULL", ["version 1: a"]), True),
        (RegistryError("http://r", "the server refuses the schema as incompatible", status=409), True),
        (RegistryError("http://r", "the server refuses what it was sent", status=422), True),
        (UnusableError("http://r", "it is no Avro schema", subject="s"), True),
        (UnusableError("http://r", "the answer cannot be used"), False),
        (RegistryError("http://r", "the user may not do that", status=403), False),
        (RegistryError("file:r", "No space left on device"), False),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_a_registry_says_of_one_schema_stops_one_table(error: Exception, is_of_one: bool):
    """And what it says of whoever asks, or of itself, the stream."""
    assert _is_of_a_schema(error) is is_of_one


FORMAT = Formats("canal")

PASSWORD = "hunter2 behind seven seals"


def content(folder: Path) -> dict[str, Any]:
    """Return all that a registry in a folder has."""
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.name != "lock"}


def into_files(made: PipelineJob) -> PipelineJob:
    """Let a pipeline write Avro files, which is sooner done than a lake."""
    made.out = AvroFiles(str(made.folder / "out"))
    return made


def ids(made: PipelineJob, table: str) -> list[int]:
    """Return the ids of the rows that were inserted."""
    return [change["after"]["id"] for change in made.changes(table)]


@pytest.mark.parametrize("is_connect", [False, True])
@pytest.mark.parametrize("topic", ["{name}", "all"])
def test_keys_of_a_table_have_one_id_across_statements_that_leave_them(tmp_path: Path, topic: str, is_connect: bool):
    """So a topic's log is compacted: a longer text, a default, another column, a new name of the table; not another type."""
    statements = (
        "ALTER TABLE t MODIFY id VARCHAR(20) DEFAULT 'x'",
        "ALTER TABLE t ADD b INT",
        "RENAME TABLE t TO t2",
        "ALTER TABLE t2 MODIFY id BIGINT",
    )
    tables = Tables()
    row = canal("INSERT", [{"id": "1", "a": "x"}], id=1, mysqlType={"id": "varchar(9)", "a": "text"})
    ddl = [
        canal("ALTER", [], id=i, isDdl=True, sql=sql, table="t2" if "t2" in sql else "t")
        for i, sql in enumerate(statements, 2)
    ]
    for message in (row, *ddl):
        for change in cdcavro.to_changes(message, "canal"):
            tables.add(change)
    (table,) = tables.tables
    publisher = Publisher(RegistrySettings(f"file:{tmp_path}/schemas"), topic, is_connect=is_connect)
    numbers = [version.version for version in table.versions]
    assert len(numbers) >= 5
    for number in numbers:
        # Its first name is that of its topic for good.
        publisher.publish(table, table.versions[0].table, number)
    ids = [publisher.known(table)[number].key for number in numbers]
    assert ids == [ids[0]] * (len(ids) - 1) + [ids[-1]]
    assert ids[-1] != ids[0]
    subject = "d.t-key" if topic == "{name}" else "all-d.t.Key"
    assert registry.connect(f"file:{tmp_path}/schemas").versions(subject) == [1, 2]


@pytest.mark.parametrize("is_connect", [False, True])
def test_a_key_is_called_after_its_table_wherever_routes_lead_it(tmp_path: Path, is_connect: bool):
    """As the envelope is: subjects by records would have other names."""
    tables = Tables()
    for change in cdcavro.to_changes(canal("INSERT", [{"id": "1"}], id=1), "canal"):
        tables.add(change)
    (table,) = tables.tables
    publisher = Publisher(RegistrySettings(f"file:{tmp_path}/schemas", "record"), is_connect=is_connect)
    steps = publisher.publish(table, TableName("lake", None, "d_t"), table.schema.version)
    subjects = [step.split()[4] for step in steps]
    assert subjects == ["d.t.Envelope", "d.t.Key"]


def test_schemas_are_published_as_they_evolve_and_a_batch_that_is_run_again_publishes_nothing(job):
    """Envelope and key of each version that rows are of, under the names of their records, before the rows."""
    made = into_files(job())
    made.registry = RegistrySettings(f"file:{made.folder}/schemas", compatibility="FULL_TRANSITIVE")
    made.send(canal("INSERT", [{"id": "1", "a": "1"}], id=1))
    made.send(canal("INSERT", [{"id": "2", "a": "1", "b": "2"}], id=2))
    first, second = made.run(formats=FORMAT)
    assert first.steps[:2] == [
        "d.t: version 1 of subject d.t.Envelope is published, with id 1",
        "d.t: version 1 of subject d.t.Key is published, with id 2",
    ]
    assert [step for step in second.steps if "version 2 of subject d.t.Envelope is published" in step]
    schemas = registry.connect(made.registry.url)
    assert schemas.versions("d.t.Envelope") == [1, 2]
    assert schemas.compatibility("d.t.Key") == "FULL_TRANSITIVE"
    newest = json.loads(schemas.fetch(subject="d.t.Envelope").schema.json)
    assert newest["cdc"] == {"table": {"database": "d", "table": "t"}, "version": 2}
    before = content(made.folder / "schemas")
    (again,) = made.run_again(formats=FORMAT)
    assert (again.number, [step for step in again.steps if "published" in step]) == (1, [])
    assert content(made.folder / "schemas") == before
    assert ids(made, "d.t") == [1, 2]


def test_a_schema_that_is_refused_stops_its_table_only_and_rows_wait_until_it_is_not(job):
    """Subjects of topics, whose name has the table's; the reason is told, and no row is lost or there twice."""
    made = into_files(job())
    made.registry = RegistrySettings(f"file:{made.folder}/schemas", topic="cdc.{name}")
    schemas = registry.connect(made.registry.url)
    other = '{"type":"record","name":"d.t.Envelope","fields":[{"name":"op","type":"long"}]}'
    schemas.publish(other, "cdc.d.t-value", compatibility="FULL")
    made.send(canal("INSERT", [{"id": "1"}], id=1), canal("INSERT", [{"id": "7"}], id=2, table="u"))
    (report,) = made.run(formats=FORMAT)
    assert list(report.waiting) == ["d.t"]
    assert report.waiting["d.t"].startswith("subject 'cdc.d.t-value' is FULL, and the schema is not: version 1: ")
    assert "\n" not in report.waiting["d.t"]
    assert schemas.subjects() == ["cdc.d.t-value", "cdc.d.u-key", "cdc.d.u-value"]
    assert (ids(made, "d.t"), ids(made, "d.u")) == ([], [7])
    schemas.publish(other, "cdc.d.t-value", compatibility="NONE")
    made.send(canal("INSERT", [{"id": "2"}], id=3))
    (report,) = made.run(formats=FORMAT)
    assert report.waiting == {}
    assert ids(made, "d.t") == [1, 2]


@pytest.mark.slow
def test_a_registry_that_is_down_stops_the_stream_before_rows_are_written(job):
    """With a sentence that has no password; once it is back, nothing is missing. A check says it, too."""
    made = into_files(job())
    made.registry = RegistrySettings("http://127.0.0.1:9", auth=("me", PASSWORD), patience=0.5)
    made.send(canal("INSERT", [{"id": "1"}], id=1))
    for act in (lambda: made.run(formats=FORMAT), made.check):
        with pytest.raises(JobError, match=r"registry http://127\.0\.0\.1:9: .*cannot be reached") as gone:
            act()
        assert PASSWORD not in str(gone.value)
    assert ids(made, "d.t") == []
    made.registry = RegistrySettings(f"file:{made.folder}/schemas")
    made.run(formats=FORMAT)
    assert ids(made, "d.t") == [1]

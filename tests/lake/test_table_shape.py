"""The shape of lake tables: what can be said of them, and what the local runner makes of it."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from cdcavro.errors import FileError
from cdcavro.lake.table_shape import DELTA, ICEBERG, TableShape
from cdcavro.sync.config import read_config
from cdcavro.table import TableName
from support.jobs import LocalJob, local_job
from support.local_pipelines import lake_section
from support.messages import canal

RETENTION = {
    "delta": ("delta.logRetentionDuration", "interval 60 days"),
    "iceberg": ("write.target-file-size-bytes", 9),
}


@pytest.fixture
def job(tmp_path: Path) -> Callable[..., LocalJob]:
    """Return what makes pipelines."""
    return partial(local_job, tmp_path)


def properties_of(made: LocalJob, suffix: str = "") -> dict[str, str]:
    """Return the properties of the lake table of `d.t`."""
    return made.lake_table(TableName("d", None, "t"), suffix).properties() or {}


@pytest.mark.parametrize(
    ("lake", "name", "value", "said"),
    [
        (DELTA, "cdcavro.pipeline", "x", "the property 'cdcavro.pipeline' is kept for what writes the table"),
        (DELTA, "parquet.enable.dictionary#_cdc_key", True, "is kept for what writes the table"),
        (ICEBERG, "Owner", "me", "is kept for what writes the table"),
        (ICEBERG, "format-version", 3, "is kept for what writes the table"),
        (ICEBERG, "delta.checkpointInterval", 5, "is of Delta Lake, and tables are of Iceberg"),
        (DELTA, "write.format.default", "orc", "is of Iceberg, and tables are of Delta Lake"),
        (DELTA, "dleta.checkpointInterval", 5, "means nothing: did you mean one that begins with delta.?"),
        (DELTA, "delta.checkpointIntervall", 5, "cannot be set: did you mean delta.checkpointInterval?"),
        (DELTA, "delta.enableChangeDataFeed", True, "is unknown, or needs something of each writer"),
        (DELTA, "delta.appendOnly", True, "is unknown, or needs something of each writer"),
        (DELTA, "delta.checkpointInterval", 0, "the property delta.checkpointInterval cannot be '0'"),
        (DELTA, "delta.logRetentionDuration", "60 days", "cannot be '60 days': it is like interval"),
        (ICEBERG, "write.merge.mode", "quick", "cannot be 'quick'"),
        (ICEBERG, "write.metadata.path", "/x", "is unknown, or needs something of each writer"),
        (DELTA, "a b", "x", "has letters, digits, dots, _ and -, which 'a b' is not"),
        (DELTA, "team", "x\ny", "the value of the property team is a text of a line"),
        (DELTA, "team", "${x}", "the value of the property team is a text of a line"),
    ],
)
def test_properties_that_mean_nothing_or_are_kept_are_refused(lake: str, name: str, value: Any, said: str):
    """Before anything starts."""
    with pytest.raises(ValueError, match=re.escape(said)):
        TableShape("t", properties={name: value}).check_for(lake)


@pytest.mark.parametrize("kind", [DELTA, ICEBERG])
def test_properties_are_set_in_a_new_table_and_in_one_that_has_others(job: Callable[..., LocalJob], kind: str):
    """In its changelog as well; of two shapes that fit, the first counts as a whole, and what is not stated stays."""
    name, value = RETENTION[kind]
    made = job(kind, is_changelog=True)
    made.send(canal("INSERT", [{"id": "1"}], id=1))
    first = TableShape("D.*", properties={name: value, "team": "web"})
    (report,) = made.run(shapes=(first, TableShape("d.t", properties={"other": "x"})))
    assert report.steps == []
    for suffix in ("", "changes"):
        own = properties_of(made, suffix)
        assert (own[name], own["team"]) == (str(value), "web")
        assert "other" not in own
        assert own["cdcavro.pipeline"]
    made.send(canal("INSERT", [{"id": "2", "a": "1"}], id=2))
    (report,) = made.run(shapes=(TableShape("d.t", properties={"team": "shop", "own.x": True}),))
    said = ["d.t: property team is set to shop", "d.t: property own.x is set to true"]
    assert [step for step in report.steps if "property" in step] == said * 2
    assert {**properties_of(made), name: str(value), "team": "shop", "own.x": "true"} == properties_of(made)
    assert made.rows("d.t", "id", "a") == [(1, None), (2, 1)]


def test_settings_of_lake_tables_need_a_lake(tmp_path: Path):
    """Python is told as the configuration is, and the key of a table is of any sink."""
    section = '[[table]]\nmatch = "t"\n{}\n'
    head = 'state = "s"\n[source]\nfiles = "in"\n[avro]\nfolder = "out"\n'
    path = tmp_path / "sync.toml"
    path.write_text(head + section.format("properties = { team = 'x' }"))
    with pytest.raises(FileError, match=r"properties in \[\[table\]\] is of lake tables, and rows go to Avro files in"):
        read_config(path).pipeline("x")
    path.write_text(head + section.format('key = ["id"]'))
    assert read_config(path).pipeline("x").settings.shapes == (TableShape("t", ("id",)),)
    path.write_text(head + section.format('key = ["id", "ID"]'))
    with pytest.raises(FileError, match="key names each column once, and 'id' twice"):
        read_config(path)


def test_the_first_section_of_each_aspect_counts(tmp_path: Path):
    """One may be about rows, the next about the shape."""
    lake = "\n".join(f'{name} = "{value}"' for name, value in lake_section(DELTA, tmp_path).items())
    path = tmp_path / "sync.toml"
    path.write_text(
        f'state = "s"\nrejects_raw = "omit"\n[source]\nfiles = "in"\n[lake]\n{lake}\n[[table]]\nmatch = "t"\n'
        'leave_out = ["a"]\n[[table]]\nmatch = "t*"\nkey = ["id"]\nwhere = "id > 1"\n'
    )
    settings = read_config(path).pipeline("x").settings
    assert [rule.match for rule in settings.rules] == ["t", "t*"]
    assert [shape.match for shape in settings.shapes] == ["t*"]

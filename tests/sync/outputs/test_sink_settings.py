"""Names of tables in the lake: no two tables share a folder or a topic."""

from __future__ import annotations

import unicodedata
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cdcavro.change.model import Change, Source
from cdcavro.errors import JobError
from cdcavro.lake.escaped_names import topic_name
from cdcavro.lake.lakes import DeltaLake, IcebergLake
from cdcavro.sync.outputs.routes import Route, Routes
from cdcavro.sync.outputs.sink_settings import LakeNames, LakeSettings
from cdcavro.sync.pipeline import Pipeline
from cdcavro.sync.sources import Files
from cdcavro.table import TableName
from cdcavro.table.tables import Tables
from support.names import FORMS, paths, told

ROUTES = [("*.*o", "all.t")]


@pytest.mark.slow
@settings(max_examples=400)
@given(st.lists(st.builds(TableName, st.none() | told, st.none() | told, told), min_size=2, max_size=5, unique=True))
@example([TableName("d", None, "Orders"), TableName("D", None, "orders"), TableName("d", None, "orders~2")])
@example([TableName("d", None, "\u00e9"), TableName("d", None, "e\u0301"), TableName("d", None, "\u00c9")])
def test_tables_whose_names_differ_in_letter_case_only_have_other_folders_and_topics(named: list[TableName]):
    """The first keeps its own: folders, topics, subjects and Avro files go by the names that these are given."""
    known = Tables()
    for i, name in enumerate(named):
        source = Source(db_type="mysql", database=name.database, schema=name.schema, table=name.table or "x")
        known.add(Change(op="INSERT", source=source, key=("id",), after={"id": i}, position=(i,)))
    made = LakeNames()
    given_names = [made.name(table, known.tables) for table in known.tables]
    assert made.state == LakeNames.of(made.state).state
    folders = [path for name in given_names for path in paths(name)]
    for form in FORMS:
        folded = [[unicodedata.normalize(form, part).casefold() for part in path] for path in folders]
        for i, first in enumerate(folded):
            assert not any(all(a == b for a, b in zip(first, second, strict=False)) for second in folded[:i])
    topics = [topic_name("{name}", name).lower() for name in given_names]
    assert len({*topics}) == len(topics)


def test_shards_have_one_name_and_are_told_apart_by_what_they_were_called_first():
    """Also if their names, with dots between the parts, are alike."""
    known = Tables()
    routes = Routes([msgspec.convert({"from": one, "to": to, "shards": True}, Route) for one, to in ROUTES])
    names = [("shop.1", "o"), ("shop", "1.o"), ("all", "o"), ("x", "p")]
    for i, name in enumerate(names):
        source = Source(db_type="mysql", database=name[0], table=name[1])
        known.add(Change(op="INSERT", source=source, key=("id",), after={"id": i}, position=(i,)))
    made = LakeNames(routes=routes)
    tables = known.tables
    labels = [(made.name(table, tables).table, made.label(table)) for table in tables]
    assert labels == [
        ("t", "all.t (shop.1.o)"),
        ("t", "all.t (shop.1.o~2)"),
        ("t", "all.t (all.o)"),
        ("p", "x.p"),
    ]
    assert made.shards.keys() == {0, 1, 2}
    assert LakeNames.of(made.state, routes=routes).state == made.state
    assert LakeNames.of(made.state).shards == made.shards


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"behavior": "lenint"}, "expected exception, evolve, try_evolve, lenient, ignore as behavior, got 'lenint'"),
        ({"guard": timedelta(days=-1)}, "expected a number of days as guard, got '-1.0'"),
        ({"complete_minutes": -1}, "expected a number of minutes as complete_minutes, got '-1'"),
        ({"complete_minutes": float("nan")}, "expected a number of minutes as complete_minutes, got 'nan'"),
    ],
)
def test_settings_of_a_lake_are_checked_in_python_too(settings: dict[str, Any], said: str):
    """As those of a file are, before anything is read."""
    with pytest.raises(ValueError, match="expected") as raised:
        LakeSettings(DeltaLake("lake"), **settings)
    assert str(raised.value) == said


@pytest.mark.parametrize(
    ("sink", "warehouse", "said"),
    [
        (DeltaLake("lake"), None, "names in catalogs of type hive only, not 'rest'"),
        (IcebergLake("prod"), "wh", "a warehouse is given"),
    ],
)
def test_a_catalog_beside_another_place_of_tables_is_refused(
    sink: DeltaLake | IcebergLake, warehouse: str | None, said: str
):
    """One of both would be passed over in silence."""
    with pytest.raises(ValueError, match=said) as raised:
        LakeSettings(sink, warehouse=warehouse, catalog={"type": "rest", "uri": "https://canary"})
    assert "canary" not in str(raised.value)


def test_what_a_catalog_of_python_has_of_secrets_is_shown_nowhere():
    """Nor the password of a database, also as its address does not spell it."""
    catalog = {
        "type": "sql",
        "uri": "postgresql://me:canary%401@db/ice",
        "warehouse": "s3://b",
        "s3.access-key-id": "canary2",
    }
    pipeline = Pipeline(Files("in"), LakeSettings(IcebergLake("prod"), catalog=catalog), "s")
    assert "canary" not in repr(pipeline) + repr(pipeline.sink) + repr(pipeline.sink.catalog)
    assert pipeline.sink.catalog == catalog
    said = "postgresql://me:canary%401@db/ice, jdbc:postgresql://db/ice for canary@1, canary2"
    assert "canary" not in pipeline.redaction.of(said)
    with pytest.raises(JobError, match=r"no answer to [.]{3}$"), pipeline.redaction.errors():
        raise JobError("no answer to canary2")

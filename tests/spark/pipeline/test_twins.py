"""A pipeline and its twin: of one configuration, Spark makes what the local runner makes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import fastavro
import pytest
from pyspark.sql import SparkSession

from cdcavro import registry
from cdcavro.sync.metrics import Metrics, MetricsConfig
from cdcavro.sync.outputs import telemetry
from cdcavro.sync.outputs.telemetry import Lineage, Telemetry
from support.kafka_server import Broker, Record
from support.local_pipelines import DELTA, ICEBERG
from support.messages import canal
from support.twin_runs import LOCAL, SPARK, Twins
from sync.outputs.test_completeness import FIRST
from sync.outputs.test_lineage import receiver as lineage_receiver
from sync.outputs.test_telemetry import attributes
from sync.outputs.test_telemetry import receiver as otlp_receiver
from sync.test_protection import leaks

pytestmark = [pytest.mark.timeout(600), pytest.mark.classic]
_TYPES = {
    "id": "int",
    "n": "int",
    "site": "varchar(9)",
    "country": "char(2)",
    "email": "varchar(90)",
    "card": "varchar(90)",
}
_CHANGE_COLUMNS = ["time", "transaction", "source", "connector", "topic", "partition", "offset", "headers"]
_ROUTES = [{"from": "shop_*.*", "to": "all.{2}_{1}"}]
_MASK = {"email": "sha256", "n": {"constant": "***"}}
_TABLES = [
    {"match": "shop_eu.customers", "where": "country = 'CH'", "leave_out": ["card"], "mask": _MASK, "salt": "pepper"},
    {"match": "shop_eu.orders", "form": "soft"},
    {"match": "shop_us.orders", "form": "history", "leave_out": ["card"], "mask": _MASK, "salt": "pepper"},
]
_LOG = {
    DELTA: {"partition": ["n"], "cluster": ["id"], "properties": {"delta.logRetentionDuration": "interval 9 days"}},
    ICEBERG: {
        "partition": ["bucket(4, id)"],
        "cluster": ["n"],
        "properties": {"write.metadata.previous-versions-max": 7},
    },
}


@pytest.fixture
def twins(spark: SparkSession, tmp_path: Path) -> Iterator[Callable[..., Twins]]:
    """Make two pipelines of one configuration."""
    made: list[Twins] = []

    def make(kind: str, lake: dict[str, Any] | None = None, **more: Any) -> Twins:
        made.append(Twins(spark, tmp_path, kind, lake or {}, more))
        return made[-1]

    yield make
    for one in made:
        one.clear()


def change(type: str, table: str, id: int, row: dict[str, Any], old: dict[str, Any] | None = None) -> bytes:
    """Return a message about a row of a table, `database.table`, a second later than the message before."""
    database, _, name = table.partition(".")
    texts = {column: None if value is None else str(value) for column, value in row.items()}
    more: dict[str, Any] = {} if old is None else {"old": [{column: str(value) for column, value in old.items()}]}
    if name == "log":
        more["pkNames"] = None
    types = {column: _TYPES[column] for column in row}
    return canal(type, [texts], id=id, es=FIRST + id * 1000, database=database, table=name, mysqlType=types, **more)


def heartbeat(id: int) -> bytes:
    """Return a message that says that all before it were sent."""
    return canal("MHEARTBEAT", [], id=id, es=FIRST + id * 1000)


def customer(id: int, country: str, name: str = "a") -> dict[str, Any]:
    """Return a row that has what no file may have."""
    return {"id": id, "country": country, "email": f"{name}@canary", "card": "4111-2222", "n": "987654321"}


_FIRST = [
    change("INSERT", "shop_eu.customers", 1, customer(1, "CH")),
    change("INSERT", "shop_eu.customers", 2, customer(2, "DE")),
    change("INSERT", "shop_eu.customers", 3, customer(3, "CH")),
    change("INSERT", "shop_eu.orders", 4, {"id": 1, "n": 1}),
    change("INSERT", "shop_eu.orders", 5, {"id": 2, "n": 1}),
    change("INSERT", "shop_us.orders", 6, customer(1, "US")),
    change("INSERT", "shop_us.orders", 7, customer(2, "US")),
    change("INSERT", "shop_eu.log", 8, {"id": 1, "site": "ch", "n": 1}),
    change("INSERT", "shop_eu.log", 9, {"id": 2, "site": "de", "n": 1}),
    heartbeat(10),
]
_SECOND = [
    # Out of what is wanted, into it, and within it.
    change("UPDATE", "shop_eu.customers", 11, customer(1, "DE"), {"country": "CH"}),
    change("UPDATE", "shop_eu.customers", 12, customer(2, "CH"), {"country": "DE"}),
    change("UPDATE", "shop_eu.customers", 13, customer(3, "CH", "b"), {"email": "a@canary"}),
    # Whether it is wanted is not said.
    change("UPDATE", "shop_eu.customers", 14, {"id": 3, "email": "c@canary"}, {"email": "b@canary"}),
    change("DELETE", "shop_eu.orders", 15, {"id": 1, "n": 1}),
    change("UPDATE", "shop_eu.orders", 16, {"id": 3, "n": 2}, {"id": 2, "n": 1}),
    change("UPDATE", "shop_us.orders", 17, customer(1, "US", "b"), {"email": "a@canary"}),
    change("DELETE", "shop_us.orders", 18, customer(2, "US")),
    change("UPDATE", "shop_eu.log", 19, {"id": 1, "site": "fr", "n": 2}, {"site": "ch", "n": 1}),
    change("INSERT", "shop_eu.log", 20, {"id": 3, "site": None, "n": 1}),
    b"canary, no message",
    # Of a time up to which all was in.
    change("INSERT", "shop_eu.orders", 5, {"id": 9, "n": 9}),
    heartbeat(22),
]


@pytest.mark.parametrize(("kind", "is_native"), [(ICEBERG, True), (ICEBERG, False), (DELTA, False)])
def test_rows_are_protected_formed_and_marked_alike(twins, kafka: Broker, kind: str, is_native: bool):
    """Rules, routes with captures, forms, shapes, keys, columns about changes, and times up to which all is in."""
    topic = f"twins.{kind}.{is_native}"
    kafka.create(topic, 2)
    lake = {
        "changelog": True,
        "change_columns": _CHANGE_COLUMNS,
        "complete_minutes": 0,
        "native": is_native,
        "name": "{database}.{table}_here",
    }
    made = twins(
        kind,
        lake,
        format="oms_canal",
        rejects_raw="omit",
        rejects_hold=False,
        source={"kafka": kafka.servers, "topics": [topic]},
        route=_ROUTES,
        table=[*_TABLES, {"match": "shop_eu.log", "key": ["id"], **_LOG[kind]}],
    )
    reports = []
    for batch in (_FIRST, _SECOND):
        records = [Record(topic, i % 2, None, value, (("n", b"%d" % i),)) for i, value in enumerate(batch)]
        # All partitions have it.
        records += [records[-1]._replace(partition=one) for one in range(2)]
        kafka.send(records)
        reports += made.run()
    names = [f"all.{name}_here" for name in ("customers_eu", "orders_eu", "orders_us", "log_eu")]
    made.check(*names)
    job = made.jobs[SPARK]
    marks = [[*(one.complete)] for one in reports]
    assert marks == [[*reports[0].operations]] * 2
    assert leaks(job.folder) + leaks(Path(made.warehouse)) == []
    assert (reports[0].counts["left out"], reports[1].rejects[0].count) == (1, 1)
    status = json.loads(made.command("sync", "status", "--json"))
    assert [one["late"] for one in status["tables"] if one["name"] == names[1]] == [1]
    made.command("sync", "show")


def statement(type: str, table: str, id: int, sql: str) -> bytes:
    """Return a message with a statement about a table."""
    database, _, name = table.partition(".")
    return canal(type, [], id=id, es=FIRST + id * 1000, database=database, table=name, isDdl=True, sql=sql)


_EU, _US = "shop_eu.orders", "shop_us.orders"


def statements(table: str, id: int) -> list[bytes]:
    """Return statements, some of which are not followed, and what comes behind them."""
    return [
        statement("ALTER", table, id, "ALTER TABLE orders ADD COLUMN site varchar(9) DEFAULT 'x'"),
        statement("ALTER", table, id + 1, "ALTER TABLE orders CHANGE n country char(2)"),
        change("INSERT", table, id + 2, {"id": 8, "country": "CH", "site": "y"}),
        statement("ALTER", table, id + 3, "ALTER TABLE orders DROP COLUMN country"),
        statement("TRUNCATE", table, id + 4, "TRUNCATE TABLE orders"),
        statement("ALTER", table, id + 5, "ALTER TABLE orders FROBNICATE"),
        change("INSERT", table, id + 6, {"id": 9, "site": "z"}),
    ]


@pytest.mark.parametrize(("kind", "form", "is_native"), [(DELTA, "soft", True), (ICEBERG, "history", False)])
def test_statements_pauses_and_resets_are_followed_alike(twins, kind: str, form: str, is_native: bool):
    """What is included and excluded, the table of what was decided, and what commands say and do, under routed names."""
    own = [{"match": _US, "include_statements": ["column"], "form": "current"}]
    lake = {"changelog": True, "form": form, "native": is_native, "exclude_statements": ["drop.column"]}
    made = twins(kind, lake, schema_changes_table="ops.schema_changes", route=_ROUTES, table=own)
    names = ["all.orders_eu", "all.orders_us", "ops.schema_changes"]
    made.send(*[change("INSERT", table, i, {"id": i, "n": 1}) for i, table in enumerate([_EU, _EU, _US, _US], 1)])
    made.run()
    made.command("sync", "pause", names[0])
    made.send(*statements(_EU, 10), *statements(_US, 20))
    (report,) = made.run()
    assert report.pending == {names[0]: 3}
    assert '"is_paused": true' in made.command("sync", "status", "--json")
    made.command("sync", "resume", names[0])
    made.command("sync", "reset", names[1])
    made.command("sync", "reset", names[0], "--keep")
    made.send(*[change("INSERT", table, 30 + i, {"id": i, "site": "a"}) for i, table in enumerate([_EU, _US], 1)])
    made.run()
    assert '"has_kept_rows": true' in made.command("sync", "status", "--json")
    made.check(*names)
    made.command("sync", "reset", names[0], "--finish")
    made.run()
    made.check(*names)
    job = made.jobs[SPARK]
    assert job.rows(names[1], "id", "site") == [(2, "a")]
    assert {decision for (decision,) in job.rows(names[2], "decision")} >= {"applied", "excluded", "not understood"}


@pytest.mark.parametrize("sink", ["avro", "kafka"])
def test_files_and_topics_are_protected_and_routed_alike(twins, kafka: Broker, sink: str):
    """Rules and routes, and the schemas in a registry."""
    made = twins(DELTA, rejects_raw="omit", route=_ROUTES, table=_TABLES[:1])
    for runner, job in made.jobs.items():
        own = {"folder": str(job.folder / "out")}
        if sink == "kafka":
            own = {"servers": kafka.servers, "topic": f"{made.prefix(runner)}{{name}}", "partitions": 1}
        job.lake = {}
        job.more |= {sink: {**own, "parallel": 1}, "registry": {"url": f"file:{job.folder / 'registry'}"}}
    made.send(*[one for one in (*_FIRST, *_SECOND) if b'"customers"' in one or b'"log"' in one])
    made.run()
    found = []
    for runner, job in made.jobs.items():
        assert leaks(job.folder) == []
        schemas = registry.connect(f"file:{job.folder / 'registry'}")
        # What a topic is called is in its subjects.
        subjects = [] if sink == "kafka" else schemas.subjects()
        held: dict[str, Any] = {one: schemas.fetch(subject=one).schema.json for one in subjects}
        for name in ("all.customers_eu", "all.log_eu"):
            if sink == "avro":
                paths = sorted((job.folder / "out").joinpath(*name.split(".")).rglob("*.avro"))
                held[name] = [one for path in paths for one in fastavro.reader(path.open("rb"))]
            else:
                records = kafka.records(f"{made.prefix(runner)}{name}")
                held[name] = [[opened(part, schemas) for part in (one.key(), one.value())] for one in records]
        found.append(held)
    assert found[1] == found[0]
    assert found[1]["all.customers_eu"]
    assert "canary" not in repr(found)


def opened(framed: bytes | None, schemas: registry.Registry) -> Any:
    """Return what a framed payload says, and its schema."""
    if framed is None:
        return None
    writer, payload = schemas.open(framed)
    schema = json.loads(writer.schema.json)
    return fastavro.schemaless_reader(BytesIO(payload), schema), schema


def test_metrics_spans_and_lineage_are_alike(twins, monkeypatch: pytest.MonkeyPatch):
    """What receivers have of a run, by the names of OpenTelemetry and OpenLineage."""
    monkeypatch.setattr(telemetry, "_PATIENCE", 50.0)
    made = twins(DELTA, {"changelog": True}, route=_ROUTES)
    made.send(*[change("INSERT", table, i, {"id": i, "n": i}) for i, table in enumerate([_EU, _US], 1)], b"no message")
    made.send(change("UPDATE", _EU, 5, {"id": 1, "n": 2}, {"n": 1}), heartbeat(6))
    said: list[str] = []
    found: list[Any] = []

    @contextmanager
    def beside(pipeline: Any) -> Iterator[Any]:
        with otlp_receiver() as (address, received), lineage_receiver() as (events_address, events):
            monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
            monkeypatch.setenv("OPENLINEAGE_URL", events_address)
            metrics = Metrics(MetricsConfig(opentelemetry=True))
            sent, told = Telemetry(metrics), Lineage("shop", pipeline, is_once=True)
            with sent.sending(said.append), told.sending(said.append):
                yield metrics.add, sent.add, told.add
            points = {key: value for key, value in received.points.items() if "seconds" not in key[0]}
            spans = [(one.name, attributes(one.attributes)) for one in received.spans]
            tables = [(one["eventType"], one["job"], one["inputs"], one["outputs"]) for one in events]
            found.append((points, spans, tables))

    made.run(beside)
    assert said == []
    here, there = found
    assert there[:2] == here[:2]
    (on_spark, local) = (str(made.jobs[runner].folder) for runner in (SPARK, LOCAL))
    assert json.loads(json.dumps(there[2]).replace(on_spark, local)) == json.loads(json.dumps(here[2]))
    assert there[0]["cdcavro.rows", (("operation", "u"), ("table", "all.orders_eu"))] == 1
    outputs = [sorted(Path(of["name"]).name for of in one[3]) for one in there[2]]
    eu, us = (["orders_eu", "orders_eu~~changes"], ["orders_us", "orders_us~~changes"])
    assert outputs == [[], [*eu, *us], eu, []]

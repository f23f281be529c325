"""Avro that a converter of Kafka Connect's wrote, on a real registry, beside what Kafka's own JSON converter writes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyspark
import pytest
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

import cdcavro
from cdcavro import registry
from cdcavro.formats.connect_avro import ConnectReader
from cdcavro.wire.formats import get_format
from cdcavro.wire.kafka import members_of_headers
from support.kafka_server import Broker, Record, fetched
from support.local_pipelines import LocalJob, lake_section
from support.messages import golden_files

pytestmark = pytest.mark.timeout(300)
# Debezium's images bring this converter; the other one of its parts is not on Maven Central.
_CONVERTER = ("io.apicurio", "apicurio-registry-utils-converter", "2.6.2.Final")
_NOT_THERE = "com.github.everit-org.json-schema"
ENVELOPES = golden_files("debezium")
LOGICAL = "org.apache.kafka.connect.data."


class Converters:
    """Java's two converters of one side of a record: of Avro with a registry, and of JSON with schemas."""

    def __init__(self, jvm: Any, apicurio: str, *, is_key: bool = False, **more: str) -> None:
        settings = jvm.java.util.HashMap()
        for name, value in {
            "schemas.enable": "true",
            "apicurio.registry.url": apicurio.replace("ccompat/v7", "registry/v2"),
            "apicurio.registry.auto-register": "true",
            "apicurio.registry.as-confluent": "true",
            "apicurio.registry.use-id": "contentId",
            "apicurio.registry.headers.enabled": "false",
            **more,
        }.items():
            settings.put(name, value)
        self._jvm = jvm
        self.avro = jvm.io.apicurio.registry.utils.converter.AvroConverter()
        self.json = jvm.org.apache.kafka.connect.json.JsonConverter()
        for converter in (self.avro, self.json):
            converter.configure(settings, is_key)

    def both(self, topic: str, message: dict[str, Any]) -> tuple[bytes, bytes]:
        """Return a message, which states its schema, as Avro and as JSON."""
        read = self.json.toConnectData(topic, json.dumps(message).encode())
        return tuple(bytes(one.fromConnectData(topic, read.schema(), read.value())) for one in (self.avro, self.json))

    def read(self, topic: str, framed: bytes) -> bytes:
        """Return what Kafka's JSON converter writes of a value that the converter of Avro reads."""
        read = self.avro.toConnectData(topic, framed)
        return bytes(self.json.fromConnectData(topic, read.schema(), read.value()))

    def with_headers(self, topic: str, message: dict[str, Any]) -> tuple[bytes, list[tuple[str, bytes]]]:
        """Return a message, which states its schema, as Avro, and the headers of its record."""
        read = self.json.toConnectData(topic, json.dumps(message).encode())
        headers = self._jvm.org.apache.kafka.common.header.internals.RecordHeaders()
        value = self.avro.fromConnectData(topic, headers, read.schema(), read.value())
        return bytes(value), [(one.key(), bytes(one.value())) for one in headers.toArray()]


@pytest.fixture(scope="module")
def jvm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A process of Java's with the converters."""
    jars = fetched(tmp_path_factory.mktemp("converter"), [_CONVERTER], without=[_NOT_THERE])
    (bridge,) = (Path(pyspark.__file__).parent / "jars").glob("py4j-*.jar")
    port, token = launch_gateway(
        classpath=":".join(map(str, jars)),
        jarpath=str(bridge),
        javaopts=["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"],
        die_on_exit=True,
        enable_auth=True,
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token))
    yield gateway.jvm
    gateway.shutdown()


@pytest.fixture
def values(jvm: Any, apicurio: str) -> Converters:
    """The converters of values."""
    return Converters(jvm, apicurio)


def field(called: str, type: str, *, optional: bool = False, **more: Any) -> dict[str, Any]:
    """Return a field of Connect's."""
    return {"type": type, "optional": optional, **more, "field": called}


def logical(name: str, kind: str, type: str) -> dict[str, Any]:
    """Return a field of one of Connect's own types."""
    return field(name, type, name=LOGICAL + kind, version=1)


def map_of(keys: str, name: str) -> dict[str, Any]:
    """Return a field that is a map."""
    of = [{"type": type, "optional": False} for type in (keys, "int32")]
    return {"type": "map", "keys": of[0], "values": of[1], "optional": False, "field": name}


SCALED = {"scale": "2", "connect.decimal.precision": "10"}
NAMED = {"__debezium.source.column.name": "odd-name"}
FIELDS = [
    *[field(name, name) for name in ("int8", "int32", "int64", "float", "double", "boolean", "bytes")],
    field("int16", "int16", default=5),
    field("none", "int64", optional=True),
    field("text", "string", optional=True, default="zz", doc="said of it"),
    field("price", "bytes", name=f"{LOGICAL}Decimal", version=1, parameters=SCALED),
    logical("day", "Date", "int32"),
    logical("at", "Timestamp", "int64"),
    logical("clock", "Time", "int32"),
    field("kind", "string", name="io.debezium.data.Enum", version=1, parameters={"allowed": "a,b"}, default="a"),
    {"type": "array", "items": {"type": "string", "optional": True}, "optional": True, "field": "list"},
    map_of("string", "words"),
    map_of("int32", "numbers"),
    {
        "type": "struct",
        "fields": [field("scale", "int32"), field("value", "bytes")],
        "optional": True,
        "name": "io.debezium.data.VariableScaleDecimal",
        "version": 1,
        "field": "free",
    },
]
ROW: dict[str, Any] = {
    "int8": -3,
    "int16": 7,
    "int32": -(2**31),
    "int64": 2**63 - 1,
    "none": None,
    "boolean": True,
    "bytes": "AP8=",
    "text": 'na\u00efve \x1f"\\',
    "price": "AMg=",
    "day": 19_000,
    "at": 1_700_000_000_123,
    "clock": 1,
    "kind": "b",
    "list": ["a", None],
    "words": {"k": 1},
    "numbers": [[1, 2], [-3, 4]],
    "free": {"scale": 3, "value": "AMg="},
}


@pytest.mark.parametrize(("single", "double"), [(0.1, 1e21), (3.4028235e38, 5e-324), (-1.5, 0.001), (1e7, -1e-4)])
def test_avro_becomes_the_text_that_kafkas_converter_writes(
    values: Converters, apicurio: str, single: float, double: float
):
    """Byte for byte: every type of Connect's, its facts in the schema, and Java's spelling of numbers."""
    schema = {"type": "struct", "fields": FIELDS, "optional": False, "name": "srv.shop.types.Value"}
    avro, text = values.both("types", {"schema": schema, "payload": {**ROW, "float": single, "double": double}})
    assert opened(avro, apicurio) == text


@pytest.mark.parametrize("sample", [name for name in ENVELOPES if "with-schema" in name])
def test_envelopes_of_debezium_become_the_text_that_kafkas_converter_writes(
    values: Converters, apicurio: str, sample: str
):
    """Those of the samples that state their schema."""
    message = json.loads(ENVELOPES[sample])
    value = message["value"] if "topic" in message else message
    if value is not None:
        avro, text = values.both("envelopes", value)
        assert opened(avro, apicurio) == text
        assert cdcavro.sniff(text) == "debezium"


def test_a_name_that_avro_does_not_take_is_that_of_the_database_again(values: Converters, apicurio: str):
    """Kafka's converter leaves what the producer made of it."""
    fields = [field("odd_name", "string", parameters=NAMED)]
    schema = {"type": "struct", "fields": fields, "optional": False, "name": "srv.shop.odd.Value"}
    avro, text = values.both("odd", {"schema": schema, "payload": {"odd_name": "a"}})
    assert json.loads(text)["payload"] == {"odd_name": "a"}
    assert json.loads(opened(avro, apicurio))["payload"] == {"odd-name": "a"}


def opened(framed: bytes, apicurio: str) -> bytes:
    """Return what is made of a value by the schema that the registry has."""
    with registry.connect(apicurio) as schemas:
        found, payload = schemas.open(framed)
        return ConnectReader(found.schema).text(payload)


GLOBAL_IDS = {"apicurio.registry.as-confluent": "false", "apicurio.registry.use-id": "globalId"}
CONTENT_IDS = {"apicurio.registry.as-confluent": "false", "apicurio.registry.use-id": "contentId"}
IN_HEADERS = {"apicurio.registry.headers.enabled": "true"}
FRAMINGS = {
    "apicurio-global-id": GLOBAL_IDS,
    "apicurio-content-id": CONTENT_IDS,
    "headers": GLOBAL_IDS | IN_HEADERS,
    "headers with content ids": CONTENT_IDS | IN_HEADERS,
}


@pytest.mark.parametrize("kind", FRAMINGS)
def test_apicurios_own_framings_are_read_from_a_topic(
    jvm: Any, apicurio: str, kafka: Broker, tmp_path: Path, kind: str
):
    """As its converter writes them if it is told nothing of Confluent: rows, and what has no id is a reject."""
    settings, framing = FRAMINGS[kind], kind.partition(" ")[0]
    message = json.loads(ENVELOPES["insert-with-schema"])
    topic = kind.replace(" ", "-")
    kafka.create(topic)
    sides = {side: Converters(jvm, apicurio, is_key=side == "key", **settings) for side in ("key", "value")}
    # The same schema in another topic has the same content id, and another global id.
    Converters(jvm, apicurio, **settings).with_headers(f"{topic}-2", message["value"])
    (key, of_key), (value, of_value) = (sides[side].with_headers(topic, message[side]) for side in ("key", "value"))
    assert bool(of_value) == (framing == "headers")
    headers = (*of_key, *of_value)
    kafka.send([Record(topic, 0, key, value, headers), Record(topic, 0, None, b"\x01" + value)])
    source = {"kafka": kafka.servers, "topics": [topic], "framed": framing}
    parts = {"source": source, "source.registry": {"url": apicurio}, "format": "debezium"}
    job = LocalJob(tmp_path / "job", lake_section("delta", tmp_path), parts)
    job.folder.mkdir()
    (report,) = job.run()
    assert {name: report.counts[name] for name in ("written", "rejected")} == {"written": 1, "rejected": 1}
    assert job.rows("shop.typed", "number") == [(message["value"]["payload"]["after"]["number"],)]
    (text,) = [line for path in (job.folder / "state" / "rejects").rglob("*.json") for line in path.open()]
    said = "a header of the record with the id of its schema" if framing == "headers" else "bytes that start with 00"
    assert said in json.loads(text)["reason"]


def test_a_global_id_of_apicurio_is_that_of_a_version(jvm: Any, apicurio: str):
    """And not the id of Confluent's, which two subjects with the same schema share; one that there is not is told."""
    message = json.loads(ENVELOPES["insert-with-schema"])["value"]
    # Each remembers the ids of schemas.
    framed = [Converters(jvm, apicurio, **GLOBAL_IDS).with_headers(f"global-{i}", message)[0] for i in range(2)]
    with registry.connect(apicurio) as schemas:
        opened = [schemas.open(one, framing="apicurio-global-id") for one in framed]
        assert opened[0][0].schema == opened[1][0].schema
        ids = [registry.unframe(one, framing="apicurio-global-id")[0].number for one in framed]
        assert ids[0] != ids[1]
        with pytest.raises(cdcavro.UnknownSchemaError, match=r"there is no global id 987654321$"):
            schemas.fetch(global_id=987654321)


def header_converters(jvm: Any) -> dict[str, Any]:
    """Return Kafka Connect's own converters of headers: by default, of JSON, and of JSON with schemas."""
    simple = jvm.org.apache.kafka.connect.storage.SimpleHeaderConverter()
    simple.configure(jvm.java.util.HashMap())
    made = {"simple": simple}
    for word in ("false", "true"):
        settings = jvm.java.util.HashMap()
        settings.put("schemas.enable", word)
        settings.put("converter.type", "header")
        made[f"json {word}"] = jvm.org.apache.kafka.connect.json.JsonConverter()
        made[f"json {word}"].configure(settings)
    return made


def test_headers_that_connect_writes_are_read_as_members(jvm: Any):
    """Of texts, numbers and null, by the converter that is the default and by those of JSON."""
    own = jvm.org.apache.kafka.connect.data.Schema
    values = [
        ("__op", own.OPTIONAL_STRING_SCHEMA, "u"),
        ("__table", own.OPTIONAL_STRING_SCHEMA, 'a "b" é'),
        ("__db", own.OPTIONAL_STRING_SCHEMA, None),
        ("__sequence", own.OPTIONAL_STRING_SCHEMA, '["24023000","24023128"]'),
        ("__source_ts_ms", own.OPTIONAL_INT64_SCHEMA, 1_700_000_002_000),
        ("__lsn", own.OPTIONAL_INT64_SCHEMA, 24_023_128_000),
        ("__row", own.OPTIONAL_INT32_SCHEMA, 3),
    ]
    wanted = {name: value for name, _, value in values}
    reads = get_format("debezium_flat").headers
    for called, converter in header_converters(jvm).items():
        written = [(name, converter.fromConnectHeader("t", name, schema, value)) for name, schema, value in values]
        headers = [(name, None if raw is None else bytes(raw)) for name, raw in written]
        assert members_of_headers(headers, reads) == wanted, called


def flat_messages() -> tuple[dict[str, Any], list[dict[str, Any] | None]]:
    """Return a key, and what Debezium's transform makes of its changes: an insert, an update and a delete, with schemas."""
    message = json.loads(ENVELOPES["insert-with-schema"])
    (declared,) = [one for one in message["value"]["schema"]["fields"] if one["field"] == "after"]
    added = [field("__op", "string", optional=True), field("__source_ts_ms", "int64", optional=True)]
    schema = {**declared, "fields": [*declared["fields"], *added], "optional": False}
    del schema["field"]
    after = message["value"]["payload"]["after"]
    rows = [{**after, "__op": op, "__source_ts_ms": 1_700_000_000_000 + i} for i, op in enumerate("cu")]
    rows[1]["number"] = 3
    values: list[dict[str, Any] | None] = [{"schema": schema, "payload": row} for row in rows]
    return message["key"], [*values, None]


@pytest.mark.parametrize("last", [2, 3], ids=["updated", "deleted"])
def test_flattened_topics_of_avro_and_of_json_give_the_same_tables(
    jvm: Any, apicurio: str, kafka: Broker, tmp_path: Path, last: int
):
    """Byte for byte the text of Kafka's converter, and the rows of it; a record without a value deletes that of its key."""
    key, values = flat_messages()
    converters = {side: Converters(jvm, apicurio, is_key=side == "key") for side in ("key", "value")}
    found = {}
    for kind in ("avro", "json"):
        kafka.create(f"srv.flat{last}.{kind}")
    for value in values[:last]:
        own_key = converters["key"].both("flat", key)
        pair = (None, None) if value is None else converters["value"].both("flat", value)
        if value is not None:
            assert opened(pair[0], apicurio) == pair[1]
        for kind, one, other in zip(("avro", "json"), own_key, pair, strict=True):
            kafka.send([Record(f"srv.flat{last}.{kind}", 0, one, other)])
    for kind in ("avro", "json"):
        section = {"kafka": kafka.servers, "topics": [f"srv.flat{last}.{kind}"]}
        more = {"source": section, "format": "debezium_flat", "tables": {"zone": "UTC", "table": "shop.typed"}}
        if kind == "avro":
            more |= {"source": {**section, "framed": True}, "source.registry": {"url": apicurio}}
        job = LocalJob(tmp_path / kind, lake_section("delta", tmp_path / kind), more)
        job.folder.mkdir()
        assert [(one.counts["written"], one.counts["rejected"]) for one in job.run()] == [(last, 0)]
        table = job.table("shop.typed")
        names = [column.name for column in table.columns()]
        found[kind] = names, [str(column.type) for column in table.columns()], job.rows("shop.typed", *names)
    assert found["avro"] == found["json"]
    assert len(found["avro"][2]) == 3 - last


def test_topics_of_avro_and_of_json_give_the_same_tables(jvm: Any, apicurio: str, kafka: Broker, tmp_path: Path):
    """Through a broker, keys framed too: a row that is inserted, updated, deleted and inserted again, and a tombstone."""
    message = json.loads(ENVELOPES["insert-with-schema"])
    converters = {"key": Converters(jvm, apicurio, is_key=True), "value": Converters(jvm, apicurio)}
    after = message["value"]["payload"]["after"]
    changes = [
        ("c", None, after),
        ("u", after, {**after, "number": 3, "amount": None}),
        ("c", None, {**after, "id": "Aw=="}),
        ("d", {**after, "id": "Aw=="}, None),
        ("c", None, {**after, "id": "BA==", "place": None}),
    ]
    for topic in ("avro", "json"):
        kafka.create(topic)
    for place, (op, old, new) in enumerate(changes):
        whole = message["value"]["payload"]
        source = {**whole["source"], "pos": 2_000 + place}
        value = {**message["value"], "payload": {**whole, "op": op, "before": old, "after": new, "source": source}}
        key = {**message["key"], "payload": {"id": (new or old)["id"]}}
        pairs = zip(converters["key"].both("t", key), converters["value"].both("t", value), strict=True)
        for topic, (own_key, own_value) in zip(("avro", "json"), pairs, strict=True):
            kafka.send([Record(topic, 0, own_key, own_value)])
            if op == "d":
                kafka.send([Record(topic, 0, own_key, None)])
    found = {}
    for topic in ("avro", "json"):
        section = {"kafka": kafka.servers, "topics": [topic]}
        more = (
            {"source": {**section, "framed": True}, "source.registry": {"url": apicurio}}
            if topic == "avro"
            else {"source": section}
        )
        job = LocalJob(tmp_path / topic, lake_section("delta", tmp_path / topic), {**more, "format": "debezium"})
        job.folder.mkdir()
        assert sum(report.counts["rejected"] for report in job.run()) == 0
        names = [column.name for column in job.table("shop.typed").columns()]
        found[topic] = names, job.rows("shop.typed", *names)
    assert found["avro"] == found["json"]
    names, rows = found["avro"]
    assert [dict(zip(names, row, strict=True))["number"] for row in rows] == [3, 2]


def test_what_sync_writes_for_debeziums_consumers_is_read_by_their_converter(
    jvm: Any, apicurio: str, kafka: Broker, tmp_path: Path
):
    """Of another format: with Connect's types, and the same as is read here; back in a lake it is the same rows."""
    types = {"id": "int", "price": "decimal(10,2)", "made": "datetime(3)", "day": "date", "odd-name": "varchar(9)"}
    rows = [
        {"id": "1", "price": "1.20", "made": "2024-02-29 12:00:00.5", "day": "2024-02-29", "odd-name": "na\u00efve"},
        {"id": "2", "price": None, "made": None, "day": None, "odd-name": None},
    ]
    facts = {"database": "shop", "table": "written", "mysqlType": types, "pkNames": ["id"], "isDdl": False}
    messages = [{**facts, "type": "INSERT", "id": 1 + i, "es": 1 + i, "data": [row]} for i, row in enumerate(rows)]
    messages.append({**facts, "type": "DELETE", "id": 3, "es": 3, "data": [rows[1]]})
    published = {"registry": {"url": apicurio}, "kafka": {"servers": kafka.servers, "connect": True}}
    job = LocalJob(tmp_path / "job", {}, published)
    job.send(*[json.dumps(one).encode() for one in messages])
    (report,) = job.run()
    assert (report.counts["written"], report.counts["rejected"]) == (3, 0)
    sides = {side: Converters(jvm, apicurio, is_key=side == "key") for side in ("key", "value")}
    records = kafka.records("shop.written")
    assert [one.value() is None for one in records] == [False, False, False, True]
    for one in records:
        framed_key, framed_value = one.key(), one.value()
        assert framed_key is not None
        assert (
            json.loads(sides["key"].read("k", framed_key))["payload"]
            == json.loads(opened(framed_key, apicurio))["payload"]
        )
        if framed_value is not None:
            text = json.loads(sides["value"].read("v", framed_value))
            assert text["payload"] == with_avro_names(json.loads(opened(framed_value, apicurio))["payload"])
    declared = json.loads(sides["value"].read("v", records[0].value() or b""))["schema"]
    (after,) = [one for one in declared["fields"] if one["field"] == "after"]
    assert [one.get("name") for one in after["fields"]] == [
        None,
        f"{LOGICAL}Decimal",
        "io.debezium.time.MicroTimestamp",
        "io.debezium.time.Date",
        None,
    ]
    back = {"source": {"kafka": kafka.servers, "topics": ["shop.written"], "framed": True}, "format": "debezium"}
    lake = LocalJob(tmp_path / "lake", lake_section("delta", tmp_path), {**back, "source.registry": {"url": apicurio}})
    lake.folder.mkdir()
    (report,) = lake.run()
    assert (report.counts["written"], report.counts["rejected"]) == (3, 0)
    (row,) = lake.rows("shop.written", *types)
    assert [str(value) for value in row] == ["1", "1.20", "2024-02-29 12:00:00.500000", "2024-02-29", "na\u00efve"]


def with_avro_names(value: Any) -> Any:
    """Return a payload with the names that Avro has in place of the true ones, as Kafka's converter leaves them."""
    if isinstance(value, dict):
        return {name.replace("-", "_x2d_"): with_avro_names(one) for name, one in value.items()}
    return value

"""Pipelines from a real Kafka broker: the shop's tables in both lakes, tombstones, patterns, a broker that is gone."""

from __future__ import annotations

import io
import json
import os
import time
from base64 import b64decode
from dataclasses import replace
from functools import partial
from pathlib import Path

import fastavro
import pytest
from msgspec import structs
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.avro.functions import from_avro, to_avro

import cdcavro
from cdcavro import registry
from cdcavro import spark as cdc
from cdcavro.change.model import Change
from cdcavro.errors import JobError
from cdcavro.exact.jsontext import parse, render
from cdcavro.spark.lake import Delta
from cdcavro.spark.pipeline import AvroFiles, Formats, Kafka, LakeSettings, Pipeline, RegistrySettings
from cdcavro.spark.pipeline.runner import stream_of
from cdcavro.sync.config import read_config
from cdcavro.sync.outputs.reject_places import replay
from cdcavro.sync.outputs.topic_records import BATCH, CAME_WITH, JOB
from cdcavro.sync.reading.kafka_source import KafkaReader
from cdcavro.sync.reading.topic_ids import TOPICS, accept_loss, read_topics
from cdcavro.table import TableName
from cdcavro.wire.formats import get_format
from support.headed_records import check_pipeline
from support.kafka_server import Broker, Record, broker
from support.local_pipelines import LocalJob, lake_section
from support.messages import canal, golden_files
from support.shop_records import as_came, through_partitions

pytestmark = pytest.mark.timeout(1_200)
PASSWORD = "hunter2 behind seven seals"
LOGIN = f'org.apache.kafka.common.security.plain.PlainLoginModule required username="me" password="{PASSWORD}";'
# Kafka's own patience is a minute, and Spark asks three times.
IMPATIENT = {
    "fetchOffset.numRetries": "2",
    "kafka.request.timeout.ms": "5000",
    "kafka.default.api.timeout.ms": "6000",
}
# By their seeds, what `shop_streams` makes of them: three partitions, every message three times; three partitions, and three of a full load that is late.
SHUFFLED = [("canal", "delta", 10, 2), ("debezium", "iceberg", 27, 2)]
# The other lake; three times and behind a full load of what was there after a while; five partitions that go back to older messages.
MORE_SHUFFLED = [("canal", "iceberg", 34, 3), ("debezium", "delta", 22, 3), ("debezium", "iceberg", 5, 5)]
IS_EVERY = bool(os.environ.get("CDCAVRO_EVERY_MESSAGE"))


def send(kafka: Broker, records: list[Record]) -> None:
    """Create the topics of records that are not there yet, and send them."""
    partitions: dict[str, int] = {}
    for one in records:
        partitions[one.topic] = max(partitions.get(one.topic, 0), one.partition + 1)
    for topic, count in partitions.items():
        if topic not in kafka.topics():
            kafka.create(topic, count)
    kafka.send(records)


@pytest.mark.parametrize(("producer", "sink", "seed", "runs"), [*SHUFFLED, *(MORE_SHUFFLED if IS_EVERY else [])])
def test_the_tables_of_the_shop_are_those_of_the_server_through_several_partitions(
    job, kafka: Broker, producer: str, sink: str, seed: int, runs: int
):
    """Rows by their key as Canal's partitionHash sends them, statements apart; every run takes what has come since."""
    prefix = f"{producer}.{sink}.{seed}"
    source = Kafka(kafka.servers, pattern=prefix.replace(".", "[.]") + "[.].*")
    made = job(sink, source)
    records = through_partitions(producer, seed, prefix)
    size = -(-len(records) // runs)
    for i in range(0, len(records), size):
        send(kafka, records[i : i + size])
        (report,) = made.run(formats=Formats(producer))
        assert report.counts["read"] == len(records[i : i + size])
        assert not report.counts["rejected"]
        assert not report.waiting
    made.check_shop(producer)


@pytest.mark.parametrize(("producer", "sink"), [("debezium", "delta"), ("canal", "iceberg")][: 1 + IS_EVERY])
def test_the_tables_of_the_shop_are_those_of_the_server_through_one_topic(job, kafka: Broker, producer: str, sink: str):
    """Batches of 7 messages at first, then all; tombstones are counted, and no message is read twice."""
    topic = f"{producer}.{sink}.as.came"
    records = as_came(producer, topic)
    made = job(sink, Kafka(kafka.servers, (topic,), most=7))
    send(kafka, records[:28])
    first = made.run(formats=Formats(producer))
    assert [report.counts["read"] for report in first] == [7, 7, 7, 7]
    assert [report.lag for report in first] == [(21, "messages"), (14, "messages"), (7, "messages"), (0, "messages")]
    send(kafka, records[28:])
    made.source = replace(made.source, most=None)
    (second,) = made.run(formats=Formats(producer))
    counts = [report.counts for report in (*first, second)]
    assert sum(one["read"] for one in counts) == len(records)
    assert sum(one["tombstones"] for one in counts) == sum(one.value is None for one in records)
    assert not any(one["rejected"] for one in counts)
    made.check_shop(producer)


def test_a_reject_has_its_bytes_and_its_place_in_kafka(job, kafka: Broker):
    """Tombstones are no rejects; nothing is lost between the batches. The topic of rejects has the lines of the folder."""
    topic, good = "rejects", canal("INSERT", [{"id": "1", "a": "1"}], id=1)
    made = job(source=Kafka(kafka.servers, (topic,), options={"kafka.max.request.size": "9000"}))
    large = b"x" * 5_000
    send(kafka, [Record(topic, 1, b"key", b"\xff{"), Record(topic, 1, b"gone", None), Record(topic, 0, None, good)])
    send(kafka, [Record(topic, 1, b"k", large)])
    (report,) = made.run(formats=Formats("canal"), rejects_topic="of.rejects")
    assert report.counts == {"read": 4, "written": 1, "rejected": 2, "statements": 0, "left out": 0, "tombstones": 1}
    lines = [line for path in Path(made.folder, "state", "rejects").rglob("*.json") for line in path.open()]
    found, other = sorted(map(json.loads, lines), key=lambda one: one["offset"])
    sent = kafka.records("of.rejects")
    assert [one.key() for one in sent] == [b"key", None]
    assert f"{sent[0].value().decode()}\n" in lines
    # What Kafka's client would refuse is in the folder only.
    assert json.loads(sent[1].value()) == {**other, "raw": None, "record_key": None}
    assert b64decode(other["raw"]) == large
    told = [dict(one.headers() or []) for one in sent]
    assert [one.keys() for one in told] == [{JOB, BATCH}] * 2
    assert {one[BATCH] for one in told} == {b"0"}
    assert len(made.run_again(formats=Formats("canal"), rejects_topic="of.rejects")) == 1
    assert [one.key() for one in kafka.records("of.rejects")] == [b"key", None] * 2
    assert (b64decode(found["raw"]), b64decode(found["record_key"])) == (b"\xff{", b"key")
    assert (found["topic"], found["partition"], found["offset"], found["file"]) == (topic, 1, 0, None)
    assert made.rows("d.t", "id", "a") == [(1, 1)]


def test_what_headers_state_is_read_with_their_records(job, kafka: Broker):
    """As without Spark: operation, table, time and position, and again with rejects, which keep them."""
    kafka.create("headed.spark")
    check_pipeline(job(source=Kafka(kafka.servers, ("headed.spark",))), kafka, "headed.spark")


def test_the_sample_with_headers_means_the_same_on_spark(spark, job, kafka: Broker):
    """From Spark's source of Kafka: by the functions, also through from_avro and to_avro, as typed rows, and in a pipeline."""
    format, topic = "debezium_flat", "headed.sample"
    golden = golden_files(format)["headers"]
    sample = parse(golden)
    stated = zip(sample["headers"][::2], (one.encode() for one in sample["headers"][1::2]), strict=True)
    send(kafka, [Record(topic, 0, render(sample["key"]), render(sample["value"]), tuple(stated))])
    options = {"kafka.bootstrap.servers": kafka.servers, "subscribe": topic, "includeHeaders": "true"}
    records = spark.read.format("kafka").options(**options).load()
    members = {
        "headers": sf.to_json("headers"),
        "key": sf.col("key").cast("string"),
        "value": sf.col("value").cast("string"),
    }
    parts = [sf.concat(sf.lit(f'"{name}":'), member) for name, member in members.items()]
    messages = records.select(
        sf.concat(sf.lit('{"topic":"srv.shop.orders",'), sf.concat_ws(",", *parts), sf.lit("}")).alias("m")
    )
    schema = cdcavro.load_schema(format).json
    payloads = messages.select(to_avro(from_avro(cdc.encode("m", format), schema), schema).alias("p"))
    (wanted,) = cdcavro.to_changes(golden, format)
    assert (wanted.source.database, wanted.source.table, wanted.position) == ("shop", "orders", (12, 6020, 0))
    for frame in (messages, payloads.select(cdc.decode("p", format).alias("m"))):
        (row,) = frame.select(sf.explode(cdc.to_changes("m", format)["changes"]).alias("change")).collect()
        change = Change.from_avro(bytes(row.change))
        # Headers have another form, which comes back in `members`.
        assert change.members is not None
        assert change == structs.replace(wanted, members=change.members)
    typed = cdc.messages_to_tables(messages, "m", format)
    assert [one.schema.table for one in typed.tables] == [TableName("shop", None, "orders")]
    made = job(source=Kafka(kafka.servers, (topic,)))
    (report,) = made.run(formats=Formats(format))
    assert (report.counts["written"], report.counts["rejected"]) == (1, 0)
    assert made.rows("shop.orders", "id", "amount") == [("7", "3.60")]


def test_a_batch_that_was_cut_off_before_the_checkpoint_is_run_again_and_the_stream_goes_on(job, kafka: Broker):
    """Spark's source of Kafka fails behind such a batch, in the version of 4.1.1, which ends no run."""
    topic = "cut.off"
    made = job(source=Kafka(kafka.servers, (topic,)), is_changelog=True)
    send(kafka, [Record(topic, 0, None, canal("INSERT", [{"id": "1"}], id=1))])
    made.run(formats=Formats("canal"))
    for name in ("0", ".0.crc"):
        (made.folder / "state" / "checkpoint" / "commits" / name).unlink()
    send(kafka, [Record(topic, 0, None, canal("INSERT", [{"id": "2"}], id=2))])
    assert [report.number for report in made.run(formats=Formats("canal"))] == [0, 1]
    assert made.rows("d.t", "id", suffix="changes") == [(1,), (2,)]


def test_a_topic_that_appears_later_and_fits_the_pattern_is_read_from_its_beginning(job, kafka: Broker):
    """One that does not fit is not."""
    made = job(source=Kafka(kafka.servers, pattern="later[.][a-z]+"))
    send(kafka, [Record("later.a", 0, None, canal("INSERT", [{"id": "1"}], id=1))])
    made.run(formats=Formats("canal"))
    more = [canal("INSERT", [{"id": str(id)}], id=id) for id in (2, 3)]
    send(kafka, [Record("later.b", 0, None, more[0]), Record("later.7", 0, None, more[1])])
    made.run(formats=Formats({"later.*": "canal"}))
    assert made.rows("d.t", "id") == [(1,), (2,)]


def test_a_broker_that_is_gone_ends_in_an_error_in_bounded_time(spark: SparkSession, tmp_path: Path):
    """In `check`, in a run that begins and in one that goes on; no password is in it."""
    with broker(tmp_path / "broker") as own:
        send(own, [Record("short", 0, None, canal("INSERT", [{"id": "1"}], id=1))])
        source = Kafka(own.servers, ("short",), options={"kafka.sasl.jaas.config": LOGIN, **IMPATIENT})
        pipeline = Pipeline(source, LakeSettings(Delta(str(tmp_path / "lake"))), str(tmp_path / "state"))
        pipeline.check(spark)
        began: list[float] = []

        def stop(_: object) -> None:
            own.stop()
            began.append(time.monotonic())

        with pytest.raises(JobError, match="the stream stopped") as running:
            pipeline.run(spark, every="1 second", say=stop)
        assert time.monotonic() - began[0] < 60
    login = {"kafka.security.protocol": "SASL_PLAINTEXT", "kafka.sasl.mechanism": "PLAIN", **source.options}
    secured = replace(pipeline, source=replace(source, options=login))
    for act in (pipeline.check, secured.check, lambda spark: secured.run(spark, once=True)):
        since = time.monotonic()
        with pytest.raises(JobError) as gone:
            act(spark)
        assert time.monotonic() - since < 60
        assert PASSWORD not in str(gone.value)
    assert PASSWORD not in str(running.value) + repr(pipeline)
    assert spark.read.format("delta").load(str(tmp_path / "lake/d/t")).count() == 1


@pytest.mark.parametrize("is_check", [True, False])
def test_a_topic_that_is_not_there_is_named(spark: SparkSession, kafka: Broker, tmp_path: Path, is_check: bool):
    """Kafka's own sentence does not say which."""
    there = f"there{is_check}"
    kafka.create(there, 1)
    source = Kafka(kafka.servers, (there, "shopp"), options=IMPATIENT)
    made = Pipeline(source, AvroFiles(str(tmp_path / "out")), str(tmp_path / "state"))
    with pytest.raises(JobError, match=rf"Asked for were the topics {there}, shopp$"):
        made.check(spark) if is_check else made.run(spark, once=True)


def test_a_topic_of_framed_messages_is_a_source(job, kafka: Broker, tmp_path: Path):
    """Through a real broker; a reject has its bytes, and is read again as what it is. A registry that is gone is told."""
    access = RegistrySettings(f"file:{tmp_path}/schemas")
    with access.connect() as schemas:
        assert schemas.publish(get_format("canal").schema, "canal-value").id == 1
    message = canal("INSERT", [{"id": "1", "a": "1"}], id=1)
    good = registry.frame(cdcavro.encode(message, "canal"), 1)
    later = registry.frame(cdcavro.encode(canal("INSERT", [{"id": "2", "a": "2"}], id=2), "canal"), 2)
    kafka.create("framed", 2)
    kafka.send([Record("framed", 0, b"1", good), Record("framed", 1, b"2", later), Record("framed", 1, b"3", None)])
    made = job(source=Kafka(kafka.servers, ("framed",)))
    made.out = AvroFiles(str(made.folder / "out"))
    gone = RegistrySettings("http://127.0.0.1:9", patience=0.1)
    with pytest.raises(JobError, match=r"registry http://127\.0\.0\.1:9: it cannot be reached"):
        made.run(framed=gone)
    (report,) = made.run(framed=access)
    assert report.counts == {"read": 3, "written": 1, "rejected": 1, "statements": 0, "left out": 0, "tombstones": 1}
    rejects = made.folder / "state" / "rejects"
    (reject,) = [json.loads(line) for path in rejects.rglob("*.json") for line in path.open()]
    assert (b64decode(reject["raw"]), reject["partition"]) == (later, 1)
    assert "got id 2" in reject["reason"]
    with access.connect() as schemas:
        renamed = json.loads(get_format("canal").schema.json) | {"doc": "Another version."}
        assert schemas.publish(json.dumps(renamed), "canal-value").id == 2
    replay(rejects, made.folder / "state" / "replay")
    # That there was none is remembered for a while by who asked.
    (report,) = made.run(framed=replace(access, timeout=9))
    assert (report.counts["read"], report.counts["written"]) == (1, 1)
    assert [change["after"]["id"] for change in made.changes("d.t")] == [1, 2]


def test_ids_in_headers_stand_before_keys_and_values_as_without_spark(spark, kafka: Broker):
    """Of any header, with any key: what both runners hand over, so that either goes on where the other ended."""
    id, guid = bytes(7) + b"\x07", b"\x01" + bytes(15) + b"\x07"
    headers = [
        (),
        (("__value_schema_id", guid), ("__key_schema_id", b"\0" + id[-4:])),
        (("apicurio.value.globalId", b""), ("apicurio.value.globalId", id), ("other", b"x")),
        (("apicurio.value.contentId", id), ("apicurio.key.globalId", id)),
        (("apicurio.value.globalId", id[1:]), ("__key_schema_id", guid[1:])),
    ]
    records = [
        Record("ids", 0, key, value, own)
        for own in headers
        for key, value in ((b"{}", b"\0v"), (b"\0k", b""), (None, b"v"), (b"", None), (b"\x04", b"v"))
    ]
    kafka.create("ids")
    kafka.send(records)
    reader = KafkaReader(kafka.servers, ("ids",), has_id_headers=True)
    lanes = reader.lanes(reader.first_offsets(), reader.latest())
    wanted = [row for lane in lanes for batch in reader.batches(lane) for row in batch.to_pylist()]
    reader.close()
    stream = stream_of(Kafka(kafka.servers, ("ids",)), spark, has_id_headers=True)
    query = stream.writeStream.format("memory").queryName("ids").trigger(availableNow=True).start()
    query.awaitTermination()
    found = [row.asDict() for row in spark.table("ids").orderBy("offset").collect()]
    facts = ("raw", "length", "key", "offset")
    as_bytes = [
        [row[name] if name in facts[1::2] else row[name] and bytes(row[name]) for name in facts] for row in found
    ]
    assert as_bytes == [[row[name] for name in facts] for row in wanted]
    assert [row[0] for row in as_bytes[5:8]] == [guid + b"\0v", guid, guid + b"v"]


@pytest.mark.parametrize("count", [2, 7])
def test_a_topic_that_was_created_again_is_told_and_read_from_its_beginning_by_either_runner(
    job, kafka: Broker, tmp_path: Path, count: int
):
    """Whether it has fewer messages than were read, or more; either knows the ids that the other has learned."""
    topic = f"created.again.{count}"
    rows = [Record(topic, 0, None, canal("INSERT", [{"id": str(i), "a": "1"}], id=i, es=1_000)) for i in range(9)]
    made = job(source=Kafka(kafka.servers, (topic,)), is_changelog=True)
    here = LocalJob(tmp_path, {**lake_section("delta", tmp_path), "changelog": True})
    here.more = {"source": {"kafka": kafka.servers, "topics": [topic]}}
    send(kafka, rows[:2])
    (report,) = here.run()
    send(kafka, rows[2:4])
    made.run(formats=Formats("canal"))
    first = read_topics(tmp_path / "state")[topic]
    (tmp_path / "state" / TOPICS).unlink()
    send(kafka, rows[4:5])
    made.run(formats=Formats("canal"))
    # Both runners write an id alike.
    assert read_topics(tmp_path / "state") == {topic: first}
    kafka.delete(topic)
    again = [one._replace(value=(one.value or b"").replace(b'"a": "1"', b'"a": "2"')) for one in rows]
    send(kafka, again[:count])
    for run in (partial(made.run, formats=Formats("canal")), here.run):
        with pytest.raises(JobError, match=f"the topic {topic} was deleted and created again: its id is"):
            run()
    reader = KafkaReader(kafka.servers, (topic,))
    accept_loss(tmp_path / "state", reader, [topic])
    reader.close()
    reports = made.run(formats=Formats("canal"))
    assert sum(report.counts["read"] for report in reports) == count
    kafka.send(again[count:8])
    (report,) = here.run()
    assert report.counts["read"] == 8 - count
    assert made.rows("d.t", "id", "a") == [(i, 2) for i in range(8)]
    assert len(made.rows("d.t", "id", suffix="changes")) == 5 + 8


def test_a_topic_that_is_created_again_while_spark_reads_it_ends_the_stream(job, spark: SparkSession, kafka: Broker):
    """After a batch was planned and before its messages come: nothing of the new topic is written."""
    topic = "created.while.read"
    rows = [Record(topic, 0, None, canal("INSERT", [{"id": str(i), "a": "1"}], id=i)) for i in range(5)]
    made = job(source=Kafka(kafka.servers, (topic,)))
    send(kafka, rows[:1])
    made.run(formats=Formats("canal"))
    send(kafka, rows[1:2])

    def begin(*_: object) -> None:
        kafka.delete(topic)
        send(kafka, rows)

    with pytest.raises(JobError, match=f"the topic {topic} was deleted and created again"):
        made.pipeline(formats=Formats("canal")).run(spark, once=True, begin=begin)
    assert made.rows("d.t", "id") == [(0,)]


@pytest.mark.parametrize("is_plain", [False, True])
def test_headers_in_files_and_topics_are_those_that_the_local_runner_writes(
    job, kafka: Broker, tmp_path: Path, is_plain: bool
):
    """Of a record with some and of one without; a tombstone has those of its delete."""
    topic = f"came.{is_plain}"
    row = [{"id": "1", "a": "1"}]
    messages = [(canal("INSERT", row, id=1), (("é", b"\xff"), ("n", b"x"))), (canal("DELETE", row, id=2), ())]
    messages.append((canal("DELETE", row, id=3), (("n", b"3"),)))
    send(kafka, [Record(topic, 0, None, value, headers) for value, headers in messages])
    source, registry = {"kafka": kafka.servers, "topics": [topic]}, {"url": f"file:{tmp_path}/schemas"}
    files, sent = [], []
    for name in ("here", "spark"):
        folder, went = tmp_path / name, f"went.{name}.{is_plain}"
        avro = {"folder": str(folder / "out"), "plain": is_plain, "headers": True}
        topics = {"servers": kafka.servers, "topic": went, "partitions": 1, "headers": True}
        for state, more in (("files", {"avro": avro}), ("topics", {"kafka": topics, "registry": registry})):
            made = LocalJob(folder / state, {}, {"source": source, **more})
            made.folder.mkdir(parents=True)
            if name == "here":
                made.run()
            else:
                path = made.config(run="spark")
                read_config(path).pipeline(str(path), Pipeline).run(job().spark, once=True)
        paths = sorted((folder / "out").rglob("*.avro"))
        files.append([one for path in paths for one in fastavro.reader(io.BytesIO(path.read_bytes()))])
        headers = [one.headers() or [] for one in kafka.records(went)]
        sent.append([[(key, value) for key, value in one if key != JOB] for one in headers])
    assert files[0] == files[1]
    first, last = '[{"key":"é","base64":"/w=="},{"key":"n","value":"x"}]', '[{"key":"n","value":"3"}]'
    assert [one["_cdc_headers"] for one in files[0]] == [first, None, last]
    assert sent[0] == sent[1]
    came = [dict(one).get(CAME_WITH) for one in sent[0]]
    assert came == [first.encode(), None, None, last.encode(), last.encode()]


@pytest.mark.parametrize(("kind", "is_native"), [("delta", True), ("iceberg", False)])
def test_headers_are_those_that_the_local_runner_writes(job, kafka: Broker, tmp_path: Path, kind: str, is_native: bool):
    """In a state and a changelog, also where changes lack columns, and of rows that wait."""
    topic, names = f"headers.{kind}.{is_native}", ("id", "a", "_cdc_headers")
    two, partial = [{"id": "1", "a": "1"}, {"id": "2", "a": "2"}], [{"id": "2"}]
    messages = [
        (canal("INSERT", two, id=1), (("é", b"\xff"), ("n", b"x"), ("n", b""), ("__value_schema_id", b"\0\0\0\0\1"))),
        (canal("INSERT", [{"id": "3", "a": "3"}], id=2), ()),
        (canal("UPDATE", partial, id=3, old=partial), (("n", b"3"),)),
        (b"{", (("n", b"4"),)),
        (canal("DELETE", two[:1], id=5), (("n", b"5"),)),
    ]
    send(kafka, [Record(topic, 0, None, value, headers) for value, headers in messages[:2]])
    here = LocalJob(tmp_path / "here", {**lake_section(kind, tmp_path / "here"), "changelog": True})
    here.folder.mkdir()
    here.more = {"merge_every": 2, "source": {"kafka": kafka.servers, "topics": [topic]}}
    here.lake["change_columns"] = ["headers", "offset"]
    own = {"is_changelog": True, "is_native": is_native, "change_columns": ("offset", "headers")}
    made = job(kind, Kafka(kafka.servers, (topic,)), **own)
    for part in (messages[2:], []):
        here.run()
        made.run(formats=Formats("canal"), merge_every=2)
        send(kafka, [Record(topic, 0, None, value, headers) for value, headers in part])
    assert made.rows("d.t", *names) == here.rows("d.t", *names) == [(2, 2, '[{"key":"n","value":"3"}]'), (3, 3, None)]
    every = [sorted(one.rows("d.t", "_cdc_op", *names, suffix="changes"), key=repr) for one in (made, here)]
    assert every[0] == every[1]
    first = (
        '[{"key":"é","base64":"/w=="},{"key":"n","value":"x"},{"key":"n","value":""},'
        '{"key":"__value_schema_id","base64":"AAAAAAE="}]'
    )
    assert [row for row in every[0] if row[3] == first] == [("c", 1, 1, first), ("c", 2, 2, first)]
    assert ("d", 1, 1, '[{"key":"n","value":"5"}]') in every[0]

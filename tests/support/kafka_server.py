"""A Kafka broker of one node, as a Java process on a free port of this machine, and Spark's settings to read from it."""

from __future__ import annotations

import subprocess
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from typing import NamedTuple
from uuid import uuid4

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from support.ivy import alone
from support.processes import die_with_parent, free_ports, is_port_taken

KAFKA = "4.1.1"
_SERVER = (("org.apache.kafka", "kafka_2.13", KAFKA), ("org.slf4j", "slf4j-simple", "1.7.36"))
_JAVA = ["java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
_SECONDS = 240
_QUEUED = 50_000
# What Spark's source of Kafka asks for beside itself is not to be had everywhere in the version of Spark.
_TOKENS = ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0")
# Where there is no broker.
NOWHERE = "broker.nowhere.invalid"
_PROPERTIES = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},LOST://127.0.0.1:{lost},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port},LOST://{nowhere}:{lost}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,LOST:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
log.dirs={folder}/log
auto.create.topics.enable=false
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
"""


class Record(NamedTuple):
    """A record of Kafka's; one without a value is a tombstone."""

    topic: str
    partition: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()


@dataclass
class Broker:
    """A broker that runs; whoever asks it at `lost` is told that it is at `NOWHERE`, with the same port."""

    servers: str
    lost: str
    process: subprocess.Popen

    @property
    def _settings(self) -> dict[str, str | int]:
        """What a client is given. It says nothing when the broker is gone, which would stand in another test's output."""
        return {"bootstrap.servers": self.servers, "log_level": 0}

    def topics(self) -> set[str]:
        """Return the names of all topics."""
        return set(AdminClient(self._settings).list_topics(timeout=60).topics)

    def create(self, topic: str, partitions: int = 1) -> None:
        """Create a topic."""
        client = AdminClient(self._settings)
        client.create_topics([NewTopic(topic, partitions, 1)])[topic].result(60)

    def delete(self, topic: str) -> None:
        """Delete a topic, and wait until it is gone."""
        client = AdminClient(self._settings)
        client.delete_topics([topic])[topic].result(60)
        until = time.monotonic() + 60
        while topic in self.topics() and time.monotonic() < until:
            time.sleep(0.05)

    def send(self, records: Iterable[Record]) -> None:
        """Send records in their order, each to its partition, until the broker has them all."""
        faults: list[object] = []
        producer = Producer({**self._settings, "enable.idempotence": True})
        for one in records:
            # It keeps 100,000 at most.
            while len(producer) >= _QUEUED:
                producer.poll(1)
            producer.produce(
                one.topic,
                one.value,
                one.key,
                one.partition,
                headers=[*one.headers],
                on_delivery=lambda error, _: faults.append(error) if error else None,
            )
        left = producer.flush(120)
        assert (left, faults) == (0, [])

    def records(self, topic: str) -> list[Message]:
        """Return the records of a topic, by partition."""
        client = Consumer({**self._settings, "group.id": "tests"})
        found: list[Message] = []
        for number in sorted(client.list_topics(topic, timeout=60).topics[topic].partitions):
            _, end = client.get_watermark_offsets(TopicPartition(topic, number), timeout=60)
            client.assign([TopicPartition(topic, number, 0)])
            for _ in range(end):
                (record,) = client.consume(1, 60)
                assert record.error() is None
                found.append(record)
        client.close()
        return found

    def stop(self) -> None:
        """End it at once."""
        self.process.kill()
        self.process.wait()


def fetched(
    folder: Path,
    modules: Sequence[tuple[str, str, str]],
    *,
    is_whole: bool = True,
    without: Sequence[str] = (),
    classifier: str | None = None,
) -> list[Path]:
    """Return the jars of modules, with all that they need if `is_whole`, which the Ivy that pyspark ships fetches.

    `without` are the groups of modules that are left out. `classifier` is Maven's, where a module has several jars.
    """
    folder.mkdir(parents=True, exist_ok=True)
    is_transitive, kind = str(is_whole).lower(), "" if classifier is None else f' m:classifier="{classifier}"'
    wanted = "".join(
        f'<dependency org="{group}" name="{name}" rev="{version}" conf="default" transitive="{is_transitive}">'
        + (f'<artifact name="{name}" type="jar"{kind}/>' if kind else "")
        + "</dependency>"
        for group, name, version in modules
    )
    left_out = "".join(f'<exclude org="{group}"/>' for group in without)
    about = folder / "ivy.xml"
    about.write_text(
        '<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven"><info organisation="cdcavro" module="tests"/>'
        f"<dependencies>{wanted}{left_out}</dependencies></ivy-module>"
    )
    import pyspark  # noqa: PLC0415  tests that start no broker do without

    ivy = next((Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar"))
    command = ["java", "-Xmx200m", "-XX:TieredStopAtLevel=1", "-jar", ivy, "-ivy", about, "-confs", "default"]
    with alone():
        retrieve = ["-retrieve", f"{folder}/[artifact]-[revision].[ext]"]
        done = subprocess.run([*command, *retrieve], capture_output=True, text=True, check=False)
    found = sorted(folder.glob("*.jar"))
    assert found, done.stdout[-2000:]
    return found


def spark_settings(folder: Path) -> dict[str, str]:
    """Return the settings of a Spark session that reads from Kafka; jars are fetched into a folder."""
    from cdcavro.spark.pipeline.runner import kafka_package  # noqa: PLC0415  it imports pyspark

    group, name, _ = _TOKENS
    # Others may have fetched into the folder what they need.
    (tokens,) = fetched(folder / "tokens", [_TOKENS], is_whole=False)
    return {
        "spark.jars.packages": kafka_package(),
        "spark.jars.excludes": f"{group}:{name}",
        "spark.jars": str(tokens),
    }


@contextmanager
def broker(folder: Path) -> Iterator[Broker]:
    """Run a broker whose jars, data and log are in a folder."""
    java = [*_JAVA, "-cp", ":".join(map(str, fetched(folder / "jars", _SERVER)))]
    made = _start(folder, java)
    while not _is_ready(made):
        said = (folder / "broker.log").read_text(errors="replace")
        made.stop()
        assert is_port_taken(said), f"Kafka did not start:\n{said[-2000:]}"
        made = _start(folder, java)
    try:
        yield made
    finally:
        made.stop()


def _start(folder: Path, java: list[str]) -> Broker:
    """Start a broker with new data on free ports."""
    port, lost, controller = free_ports(3)
    properties = folder / "server.properties"
    values = {"port": port, "lost": lost, "nowhere": NOWHERE, "controller": controller, "folder": folder}
    properties.write_text(_PROPERTIES.format_map(values))
    rmtree(folder / "log", ignore_errors=True)
    # An id that begins with a hyphen is taken for an option.
    cluster = urlsafe_b64encode(b"\0" + uuid4().bytes[1:]).decode().rstrip("=")
    with (folder / "broker.log").open("wb") as log:
        format = [*java, "kafka.tools.StorageTool", "format", "-t", cluster, "-c", properties]
        subprocess.run(format, check=True, stdout=log, stderr=log)
        command = [*java, "kafka.Kafka", properties]
        process = subprocess.Popen(command, stdout=log, stderr=log, preexec_fn=die_with_parent)  # noqa: PLW1509
    return Broker(f"127.0.0.1:{port}", f"127.0.0.1:{lost}", process)


def _is_ready(made: Broker) -> bool:
    """Wait until a broker answers, or has ended."""
    until = time.monotonic() + _SECONDS
    client = AdminClient({"bootstrap.servers": made.servers, "log_level": 0})
    while time.monotonic() < until and made.process.poll() is None:
        try:
            client.list_topics(timeout=1)
        except KafkaException:
            time.sleep(0.2)
        else:
            return True
    return False

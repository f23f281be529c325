"""Clients of Kafka's brokers through librdkafka, which say nothing on their own: one that asks, and one that writes."""

from __future__ import annotations

import logging
import time
from collections import deque
from typing import TYPE_CHECKING, Any, Final, TypeVar

from confluent_kafka import KafkaError, KafkaException, Producer, TopicCollection
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from cdcavro.errors import JobError
from cdcavro.sync.outputs.topic_records import CHOSEN_BY_BROKERS, REFUSALS, TopicRefusedError
from cdcavro.sync.reading.brokers import client_options, secrets_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from cdcavro.sync.outputs.sink_settings import KafkaTopics

T = TypeVar("T")

# In seconds: how long the brokers may take to answer, and how often it is looked whether they have.
PATIENCE: Final = 8.0
_MOMENT: Final = 0.25
_TIMEOUT: Final = "kafka.default.api.timeout.ms"
_PREFIX: Final = "kafka."
# What Java's client and librdkafka name differently for writing.
_NAMES: Final = {"max.request.size": "message.max.bytes"}
_BUFFER: Final = "buffer.memory"
# What only Java's client has, and what changes nothing that is written.
_IDLE: Final = frozenset({"max.block.ms", "partitioner.adaptive.partitioning.enable", "enable.metrics.push"})
_ACKS: Final = ("acks", "request.required.acks")
_ALL: Final = ("all", "-1")
_IDEMPOTENCE: Final = "enable.idempotence"
# As Java's client has them by default; keys are given to partitions as it does.
_WRITES: Final[dict[str, Any]] = {
    "acks": "all",
    _IDEMPOTENCE: True,
    "partitioner": "murmur2_random",
    "message.max.bytes": 1 << 20,
    "queue.buffering.max.kbytes": 64 << 10,
    "message.timeout.ms": 120_000,
    "delivery.report.only.error": True,
}
# The settings of a client that asks: those by which it reaches the brokers.
OF_CONNECTIONS: Final = (
    *("security.", "sasl.", "ssl.", "enable.ssl", "client.", "socket."),
    *("broker.", "reconnect.", "metadata.", "retry."),
)
ALL_DOWN: Final = KafkaError._ALL_BROKERS_DOWN  # noqa: SLF001  librdkafka's own errors begin with a line
_LARGEST: Final = "max.message.bytes"
# Errors that no waiting heals.
FATAL: Final = frozenset(
    {
        KafkaError._AUTHENTICATION,  # noqa: SLF001
        KafkaError._SSL,  # noqa: SLF001
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError.UNSUPPORTED_SASL_MECHANISM,
    }
)
# The codes of refusals of one topic, librdkafka's own among them.
_REFUSED: Final = frozenset(
    {
        *REFUSALS.values(),
        KafkaError._UNKNOWN_TOPIC,  # noqa: SLF001
        KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001
    }
)
SILENT: Final = logging.getLogger("cdcavro.librdkafka")
SILENT.addHandler(logging.NullHandler())
SILENT.propagate = False
SILENT.setLevel(logging.CRITICAL + 1)


class KafkaCluster:
    """A cluster of Kafka's; `topics` are the settings of a sink, of which those of the cluster are used.

    Raises `JobError` for options that need Java.
    """

    def __init__(self, topics: KafkaTopics) -> None:
        self.servers = topics.servers
        own = {name.lower(): value for name, value in topics.options.items() if name.lower().startswith(_PREFIX)}
        timeout = own.get(_TIMEOUT, "")
        self._patience = int(timeout) / 1000 if timeout.isdecimal() else PATIENCE
        self._options = _writing_options(own)
        self._secrets = secrets_in({**topics.options, **self._options})
        self._client: AdminClient | None = None
        self._errors: deque[KafkaError] = deque(maxlen=8)

    def id(self) -> str:
        """Return the id of the cluster. Raises `JobError` if there is no answer within some 8 seconds."""
        return str(self._ask(lambda client, seconds: client.describe_cluster(request_timeout=seconds)).cluster_id)

    def partitions(self, topic: str, count: int | None, replication: int | None) -> int:
        """Return how many partitions a topic has; if it is not there, it is created, by default as the brokers say.

        Raises `TopicRefusedError` if the cluster refuses the topic, `JobError` for other faults.
        """
        found = self._described(topic)
        if found is None:
            self._create(topic, count or CHOSEN_BY_BROKERS, replication or CHOSEN_BY_BROKERS)
            until = time.monotonic() + self._patience
            # Another broker may hear of it a little later.
            while (found := self._described(topic)) is None:
                if time.monotonic() > until:
                    raise JobError(f"{self.name} created the topic {topic}, but does not have it")
                time.sleep(_MOMENT)
        return found

    @property
    def name(self) -> str:
        """What the cluster is called in messages."""
        return f"Kafka at {self.servers}"

    def largest(self, topic: str) -> int | None:
        """Return how many bytes a topic takes at once, None if the cluster does not tell."""
        resource: Any = ConfigResource(ResourceType.TOPIC, topic)
        try:
            found = self._ask(
                lambda client, seconds: client.describe_configs([resource], request_timeout=seconds)[resource]
            )
        except JobError:
            return None
        return int(found[_LARGEST].value) if _LARGEST in found else None

    def producer(self, batch_size: int, errors: deque[KafkaError]) -> Producer:
        """Return a client that writes at most `batch_size` bytes at once; `errors` gets what it says of the brokers."""
        own = {"batch.size": batch_size, **_WRITES, **self._options, **self._base(errors)}
        return self._made(lambda: Producer(own, logger=SILENT))

    def error_of(self, error: object, errors: Iterable[KafkaError] = ()) -> JobError:
        """Return what an error of librdkafka says, without secrets: a `TopicRefusedError` if it is of one topic only."""
        cause = error.args[0] if isinstance(error, KafkaException) and error.args else error
        if isinstance(cause, KafkaError) and cause.code() in _REFUSED:
            return TopicRefusedError(self._sentence(cause))
        return JobError(self._sentence(reason(errors) or cause))

    def _sentence(self, cause: object) -> str:
        return f"{self.name}: {sentence_of(cause, self._secrets)}"

    def _base(self, errors: deque[KafkaError]) -> dict[str, Any]:
        return {"bootstrap.servers": self.servers, "log_level": 0, "error_cb": errors.append}

    def _made(self, make: Callable[[], T]) -> T:
        """Return what is made of settings. Raises `JobError` for those that librdkafka does not take."""
        try:
            return make()
        except (KafkaException, ValueError, TypeError) as error:
            raise self.error_of(error) from error

    def _admin(self) -> AdminClient:
        if self._client is None:
            own = {name: value for name, value in self._options.items() if name.startswith(OF_CONNECTIONS)}
            own |= self._base(self._errors)
            self._client = self._made(lambda: AdminClient(own, logger=SILENT))
        return self._client

    def _ask(self, call: Callable[[AdminClient, float], Any]) -> Any:
        """Return the answer of the cluster to a call, which takes how many seconds it may wait."""
        client, until = self._admin(), time.monotonic() + self._patience
        self._errors.clear()
        try:
            future = call(client, self._patience)
            while not future.done():
                # What librdkafka knows of the reason comes as an event.
                client.poll(_MOMENT)
                if any(one.code() in FATAL for one in self._errors) or time.monotonic() > until + 1:
                    raise self._failed("Timed out")
            return future.result(_MOMENT)
        except KafkaException as error:
            raise self._failed(error) from error

    def _failed(self, error: object) -> JobError:
        """Return an error, and forget the connection."""
        made = self.error_of(error, self._errors)
        if not isinstance(made, TopicRefusedError):
            self._client, self._errors = None, deque(maxlen=8)
        return made

    def _described(self, topic: str) -> int | None:
        """Return how many partitions a topic has, None if it is not there."""
        names = TopicCollection([topic])
        try:
            found = self._ask(lambda client, seconds: client.describe_topics(names, request_timeout=seconds)[topic])
        except TopicRefusedError as error:
            if _code(error) == KafkaError.UNKNOWN_TOPIC_OR_PART:
                return None
            raise
        return len(found.partitions)

    def _create(self, topic: str, count: int, replication: int) -> None:
        """Create a topic, unless somebody else has."""
        new = NewTopic(topic, count, replication)
        try:
            self._ask(lambda client, seconds: client.create_topics([new], request_timeout=seconds)[topic])
        except JobError as error:
            if _code(error) != KafkaError.TOPIC_ALREADY_EXISTS:
                raise


def reason(errors: Iterable[KafkaError]) -> KafkaError | None:
    """Return the error that says most: one of all brokers says only that there are others."""
    last = None
    for one in errors:
        if last is None or one.code() != ALL_DOWN:
            last = one
    return last


def sentence_of(error: object, secrets: Iterable[str]) -> str:
    """Return what an error of librdkafka says, without secrets."""
    cause = error.args[0] if isinstance(error, KafkaException) and error.args else error
    said = cause.str() if isinstance(cause, KafkaError) else str(cause)
    for secret in secrets:
        said = said.replace(secret, "...")
    return said


def _code(error: JobError) -> int | None:
    """Return the code of the error of librdkafka behind one."""
    cause = error.__cause__.args[0] if isinstance(error.__cause__, KafkaException) else None
    return cause.code() if isinstance(cause, KafkaError) else None


def _writing_options(options: Mapping[str, str]) -> dict[str, Any]:
    """Return the options of a client that writes, as librdkafka names them. Raises `JobError` for those of Java only."""
    own: dict[str, Any] = {**client_options(options)}
    if own.get(_BUFFER, "").isdecimal():
        own["queue.buffering.max.kbytes"] = str(max(1, int(own.pop(_BUFFER)) >> 10))
    made = {_NAMES.get(name, name): value for name, value in own.items() if name not in _IDLE}
    acks = next((made[name] for name in _ACKS if name in made), "all")
    if acks not in _ALL and _IDEMPOTENCE not in made:
        # As Java's client does.
        made[_IDEMPOTENCE] = False
    return made

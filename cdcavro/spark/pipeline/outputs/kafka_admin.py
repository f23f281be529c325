"""Topics of a Kafka cluster, looked for and created through the client that Spark's sink brings along."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from py4j.protocol import Py4JJavaError

from cdcavro.errors import JobError
from cdcavro.spark.job.line_frame import first_line

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType
    from typing import Self

    from pyspark.sql import SparkSession

_PREFIX: Final = "kafka."
_UNKNOWN: Final = "UnknownTopicOrPartitionException"
_EXISTS: Final = "TopicExistsException"
# What a broker says of one topic, or of the records for it.
REFUSALS: Final = (
    "InvalidRecordException",
    "InvalidTopicException",
    "PolicyViolationException",
    "RecordTooLargeException",
    "TopicAuthorizationException",
    _UNKNOWN,
)
_DEFAULT: Final = -1


class TopicRefusedError(JobError):
    """A topic that the cluster refuses to create or to show."""


class KafkaAdmin:
    """A client of a cluster, to be used as a context manager.

    `servers` are some brokers, `options` those of Spark's sink, such as `kafka.security.protocol`. Its methods raise
    `JobError`.
    """

    def __init__(self, spark: SparkSession, servers: str, options: Mapping[str, str]) -> None:
        jvm: Any = spark._jvm  # noqa: SLF001  Kafka's client has no Python interface in Spark
        self._jvm, self._servers = jvm, servers
        properties = jvm.java.util.Properties()
        own = {name.removeprefix(_PREFIX): value for name, value in options.items() if name.startswith(_PREFIX)}
        for name, value in {**own, "bootstrap.servers": servers}.items():
            properties.setProperty(name, value)
        try:
            self._client = jvm.org.apache.kafka.clients.admin.AdminClient.create(properties)
        except Py4JJavaError as error:
            raise self._failed(error) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._client.close(self._jvm.java.time.Duration.ofSeconds(5))

    def cluster(self) -> str:
        """Return the id of the cluster."""
        return str(self._answer(self._client.describeCluster().clusterId()))

    def partitions(self, topic: str, count: int | None, replication: int | None) -> int:
        """Return how many partitions a topic has, which is created if it is not there, by default as the brokers say.

        Raises `TopicRefusedError` if the cluster refuses the topic.
        """
        names = self._jvm.java.util.ArrayList()
        names.add(topic)
        for is_last in (False, True):
            try:
                described = self._client.describeTopics(names).topicNameValues().get(topic).get()
                return int(described.partitions().size())
            except Py4JJavaError as error:
                if _name_of(error) != _UNKNOWN or is_last:
                    raise self._failed(error) from error
            made = self._create(topic, count or _DEFAULT, replication or _DEFAULT)
            if made is not None:
                return made
        raise AssertionError("the second round ends the loop")

    def _create(self, topic: str, count: int, replication: int) -> int | None:
        """Create a topic; return its number of partitions, None if somebody else has created it."""
        topics = self._jvm.java.util.ArrayList()
        topics.add(self._jvm.org.apache.kafka.clients.admin.NewTopic(topic, count, replication))
        made = self._client.createTopics(topics)
        try:
            return int(made.numPartitions(topic).get())
        except Py4JJavaError as error:
            if _name_of(error) == _EXISTS:
                return None
            raise self._failed(error) from error

    def _answer(self, future: Any) -> Any:
        try:
            return future.get()
        except Py4JJavaError as error:
            raise self._failed(error) from error

    def _failed(self, error: Py4JJavaError) -> JobError:
        cause = error.java_exception.getCause() or error.java_exception
        sentence = f"Kafka at {self._servers}: {cause.getMessage() or first_line(error)}"
        return TopicRefusedError(sentence) if _name_of(error) in REFUSALS else JobError(sentence)


def _name_of(error: Py4JJavaError) -> str:
    cause = error.java_exception.getCause() or error.java_exception
    return str(cause.getClass().getSimpleName())

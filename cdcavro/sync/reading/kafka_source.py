"""Source of Kafka's messages through librdkafka: which there are, and those of a batch, as Spark's stream has them."""

from __future__ import annotations

import json
import time
from collections import deque
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from math import ceil, floor
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar
from uuid import uuid4

from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from cdcavro.errors import JobError, plain
from cdcavro.sync.outputs.topic_records import NO_TOPIC_ID
from cdcavro.sync.reading.brokers import client_options, secrets_in, topic_pattern
from cdcavro.sync.reading.kafka_client import ALL_DOWN, FATAL, OF_CONNECTIONS, PATIENCE, SILENT, reason, sentence_of
from cdcavro.sync.reading.message_columns import KafkaMessages
from cdcavro.sync.reading.topic_ids import go_on

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from threading import Event

    import pyarrow as pa
    from confluent_kafka import Message

    # By topic and partition, as a text: what Spark's checkpoint has.
    Offsets = dict[str, dict[str, int]]

T = TypeVar("T")

# In seconds: how long a broker may take to send the next messages (Spark: `spark.network.timeout`).
_READING: Final = 120.0
_MOMENT: Final = 0.25
# How long more messages are waited for where there are some.
_SOON: Final = 0.02
# How many messages are taken at a time, at first and at most, and how many bytes they may have together, about. As long
# as the client's objects are there, each collection of Python's garbage looks at all of them.
_FIRST: Final = 32
_TAKEN: Final = 512
_TAKEN_BYTES: Final = 8 << 20
# In seconds and times: how long a running stream asks brokers that do not answer, as Kafka's client and Spark do.
_API_TIMEOUT: Final = 60.0
_TRIES: Final = 3
_EARLIEST: Final = -2
_LATEST: Final = -1
# What Kafka's own topics are called, which a pattern does not mean.
_INTERNAL: Final = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
_DEFAULTS: Final[dict[str, Any]] = {
    "allow.auto.create.topics": False,
    "auto.offset.reset": "error",
    "enable.auto.commit": False,
    "enable.partition.eof": True,
    # A partition is read behind the other, and a request for one that is at its end keeps the next one waiting.
    "fetch.wait.max.ms": 20,
    "fetch.max.bytes": 64 << 20,
    "max.partition.fetch.bytes": 8 << 20,
    "isolation.level": "read_uncommitted",
    # What is read ahead.
    "queued.max.messages.kbytes": 64 << 10,
    "log_level": 0,
}
# librdkafka's own errors, whose names begin with a line.
_END_OF_PARTITION: Final = KafkaError._PARTITION_EOF  # noqa: SLF001
_NO_OFFSET: Final = KafkaError._AUTO_OFFSET_RESET  # noqa: SLF001
_NO_TOPIC: Final = KafkaError._UNKNOWN_TOPIC  # noqa: SLF001
_NO_PARTITION: Final = KafkaError._UNKNOWN_PARTITION  # noqa: SLF001
# Errors of reading that no waiting heals.
_FATAL: Final = FATAL | {KafkaError.TOPIC_AUTHORIZATION_FAILED}
_UNKNOWN: Final = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, _NO_TOPIC, _NO_PARTITION})
# What the question for offsets says of topics that are not there: of others, too, as long as they have no leader.
_ABSENT: Final = _UNKNOWN | {KafkaError._NOENT}  # noqa: SLF001
_OUT_OF_RANGE: Final = frozenset({KafkaError.OFFSET_OUT_OF_RANGE, _NO_OFFSET})
# What waiting heals.
_PASSING: Final = frozenset(
    {
        KafkaError._TIMED_OUT,  # noqa: SLF001
        KafkaError._TIMED_OUT_QUEUE,  # noqa: SLF001
        KafkaError._TRANSPORT,  # noqa: SLF001
        ALL_DOWN,
        KafkaError.REQUEST_TIMED_OUT,
    }
)
# How librdkafka writes ids otherwise than Kafka.
_URL_SAFE: Final = str.maketrans("+/", "-_")
# A group is named, as librdkafka wants it, and never used.
_OF_GROUP: Final = frozenset({KafkaError.GROUP_AUTHORIZATION_FAILED})


class KafkaLane(NamedTuple):
    """The messages of a topic partition in a batch."""

    topic: str
    partition: int
    # The offset of the first, and the one behind the last.
    start: int
    end: int


@dataclass
class KafkaReader:
    """Topics of a Kafka cluster.

    * `servers` (str): `host:port` of some brokers, separated by commas.
    * `topics` (tuple of str) or `pattern` (str): names, or a regular expression of Java's that names match.
    * `options` (dict): those of Spark's source of Kafka, such as `kafka.security.protocol`; their values are not shown.
    * `most` (int or None): how many messages a batch has at most, about.
    * `has_id_headers` (bool): whether what headers say of schemas is put before keys and values.
    * `has_headers` (bool): whether batches have a column `headers`, as Spark's source of Kafka has it.
    * `stated` (frozenset of str): the names of headers in a column of their own; none without names.

    All methods raise `JobError`, which names the servers, if there is no answer within 10 seconds, or within some
    minutes after `wait_long`. `close` ends the connections.
    """

    servers: str
    topics: tuple[str, ...] = ()
    pattern: str | None = None
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    most: int | None = None
    has_id_headers: bool = False
    has_headers: bool = False
    stated: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        """Raise `JobError` for options and patterns that need Java."""
        self.topics = tuple(name for one in self.topics for name in one.split(",") if name)
        self._client = client_options(self.options)
        self._secrets = secrets_in({**self.options, **self._client})
        self._matches = None if self.pattern is None else topic_pattern(self.pattern)
        named = {name.lower(): value for name, value in self.options.items()}
        self._starting = _starting_offsets(named.get("startingoffsets", "earliest"))
        if self.most is None and "maxoffsetspertrigger" in named:
            self.most = int(named["maxoffsetspertrigger"])
        self._reading = int(named.get("kafkaconsumer.polltimeoutms", 0)) / 1000 or _READING
        timeout, tries = named.get("kafka.default.api.timeout.ms", ""), named.get("fetchoffset.numretries", "")
        self._long = int(timeout) / 1000 if timeout.isdecimal() else _API_TIMEOUT
        self._long *= int(tries) if tries.isdecimal() else _TRIES
        self._stop: Event | None = None
        self._group = f"{named.get('groupidprefix', 'spark-kafka-source')}-{uuid4()}"
        self._free: deque[_Reader] = deque()
        self._admin: AdminClient | None = None
        self._errors: deque[KafkaError] = deque(maxlen=8)

    @property
    def name(self) -> str:
        """What the source is called in messages."""
        return f"Kafka at {self.servers}"

    @property
    def patience(self) -> float:
        """How long brokers may take to answer, in seconds."""
        return PATIENCE if self._stop is None or self._stop.is_set() else max(PATIENCE, self._long)

    def wait_long(self, stop: Event) -> None:
        """Wait for brokers as a stream does that runs on and on, until `stop` is set."""
        self._stop = stop

    def check(self) -> None:
        """Ask Kafka for the topics."""
        self._partitions()

    def first_offsets(self) -> Offsets:
        """Return the offsets from which a stream that begins now reads, as the option `startingOffsets` says."""
        partitions = self._partitions()
        wanted = {one: self._starting if isinstance(self._starting, int) else None for one in partitions}
        if isinstance(self._starting, dict):
            stated = {(topic, int(one)): at for topic, own in self._starting.items() for one, at in own.items()}
            if stated.keys() != {*partitions}:
                raise JobError(
                    "startingOffsets must name all partitions of the topics, with -1 for the latest and -2 for the "
                    f"earliest offset: {_listed(stated.keys() ^ {*partitions})}"
                )
            wanted = {**stated}
        found = {one: at for one, at in wanted.items() if at is not None and at >= 0}
        for spec in (_EARLIEST, _LATEST):
            found |= self._offsets([one for one, at in wanted.items() if at == spec], spec)
        return _nested(found)

    def latest(self) -> Offsets:
        """Return the offset behind the last message of each partition."""
        return _nested(self._offsets(self._partitions(), _LATEST))

    def earliest(self) -> Offsets:
        """Return the offset of the first message of each partition."""
        return _nested(self._offsets(self._partitions(), _EARLIEST))

    def topic_ids(self, topics: Collection[str]) -> dict[str, str]:
        """Return the ids of topics as Kafka's tools show them, without those of which the brokers say none."""

        def ids(client: AdminClient) -> dict[str, str]:
            found = {}
            for name, future in client.describe_topics(TopicCollection([*topics]), request_timeout=PATIENCE).items():
                try:
                    found[name] = str(future.result(PATIENCE + 1).topic_id).translate(_URL_SAFE)
                except KafkaException as error:
                    if self._is_passing(error):
                        raise
            return {name: id for name, id in found.items() if id != NO_TOPIC_ID}

        return self._patiently(ids) if topics else {}

    def plan(self, start: Offsets, latest: Offsets) -> Offsets:
        """Return where a batch ends that begins at some offsets: with `most`, partitions share that as on Spark.

        Raises `JobError` if messages are lost: a partition is gone, has other messages than before, or is new and does
        not begin at 0.
        """
        before, behind = _flat(start), _flat(latest)
        before |= self._starts_of_new(before, behind)
        gone = before.keys() - behind.keys()
        if gone:
            raise self._gone(gone)
        for one in sorted(behind):
            if behind[one] < before[one]:
                raise JobError(
                    f"{_lane_name(*one)} ends at offset {behind[one]} and was read up to offset {before[one]}: "
                    f"it was created again, and messages may be unread. {go_on([one[0]])}"
                )
        return latest if self.most is None else _nested(_limit(before, behind, self.most))

    def lanes(self, start: Offsets, end: Offsets) -> list[KafkaLane]:
        """Return the lanes of a batch, without those that have no messages.

        Raises `JobError` if Kafka does not have them any more.
        """
        before, behind = _flat(start), _flat(end)
        before |= self._starts_of_new(before, behind)
        found = [KafkaLane(*one, before[one], behind[one]) for one in sorted(behind) if behind[one] > before[one]]
        least = self._offsets([(one.topic, one.partition) for one in found], _EARLIEST)
        for one in found:
            if least[one.topic, one.partition] > one.start:
                raise _lost(one, one.start, least[one.topic, one.partition])
        return found

    def left(self, end: Offsets, latest: Offsets) -> int:
        """Return how many messages there are behind a batch, as far as offsets tell; new partitions begin at 0."""
        behind = _flat(end)
        return sum(max(0, at - behind.get(one, 0)) for one, at in _flat(latest).items())

    def batches(self, lane: KafkaLane) -> Iterator[pa.RecordBatch]:
        """Yield the messages of a lane in batches of `SCHEMA`, in memory for some 100 MiB, or the largest message.

        Several threads may read, each a lane of its own. Raises `JobError` for messages that are not there any more,
        and if none come.
        """
        reader = self._free.pop() if self._free else _Reader(self, self._reading)
        # A reader whose work was cut off is not used again.
        yield from reader.read(lane)
        self._free.append(reader)

    def close(self) -> None:
        """End the connections."""
        while self._free:
            self._free.pop().close()
        self._admin = None

    def settings(self) -> dict[str, Any]:
        """Return the settings of a consumer."""
        return {**_DEFAULTS, "group.id": self._group, **self._client, "bootstrap.servers": self.servers}

    def no_messages(self) -> KafkaMessages:
        """Return what keeps messages for a batch."""
        return KafkaMessages(has_id_headers=self.has_id_headers, has_headers=self.has_headers, stated=self.stated)

    def sentence(self, error: object) -> str:
        """Return what an error of librdkafka says, without secrets."""
        return sentence_of(error, self._secrets)

    def silent_error(self, why: object) -> JobError:
        """Return the error for a cluster that does not answer."""
        return JobError(f"{self.name} does not answer: {self.sentence(why)}")

    def _partitions(self) -> list[tuple[str, int]]:
        """Return the partitions of the topics."""
        with self._reader() as reader:
            if self._matches is not None:
                every = reader.ask(lambda seconds: reader.client.list_topics(timeout=seconds)).topics
                names = [name for name in every if name not in _INTERNAL and self._matches(name)]
                found = {name: every[name] for name in names}
            else:
                found = {name: reader.topic(name) for name in self.topics}
        missing = [name for name, one in found.items() if one.error is not None and one.error.code() in _UNKNOWN]
        if missing and self._matches is None:
            asked = ", ".join(map(plain, self.topics))
            raise JobError(
                f"{self.name} has no topic {', '.join(map(plain, missing))}. Asked for were the topics {asked}"
            )
        for name, one in found.items():
            if one.error is not None and name not in missing:
                raise JobError(f"{self.name} does not describe the topic {plain(name)}: {self.sentence(one.error)}")
        return sorted((name, number) for name, one in found.items() for number in one.partitions)

    def _offsets(self, partitions: Iterable[tuple[str, int]], spec: int) -> dict[tuple[str, int], int]:
        """Return the first or the last offsets of partitions."""
        make: Any = OffsetSpec.earliest if spec == _EARLIEST else OffsetSpec.latest
        asked = {TopicPartition(*one): make() for one in partitions}
        if not asked:
            return {}
        is_committed = self._client.get("isolation.level") == "read_committed"
        level = IsolationLevel.READ_COMMITTED if is_committed else IsolationLevel.READ_UNCOMMITTED
        partitions = {(one.topic, one.partition) for one in asked}

        def offsets(client: AdminClient) -> dict[tuple[str, int], int]:
            futures = client.list_offsets(asked, isolation_level=level, request_timeout=PATIENCE)
            found = {(one.topic, one.partition): future.result(PATIENCE + 1).offset for one, future in futures.items()}
            # For a partition whose leader does not answer, librdkafka has no error, and a number that is no offset.
            if silent := [one for one, at in found.items() if at < 0]:
                raise TimeoutError(f"there is no answer on {_listed(silent)}")
            return found

        return self._patiently(offsets, partitions)

    def _patiently(self, call: Callable[[AdminClient], T], partitions: Collection[tuple[str, int]] = ()) -> T:
        """Return what a call of a client returns, of partitions that may be gone."""
        began = time.monotonic()
        while True:
            try:
                return call(self._admin_client())
            except (KafkaException, TimeoutError) as error:
                self._admin_client().poll(_MOMENT)
                why = reason(self._errors) or error
                if self.patience <= max(PATIENCE, time.monotonic() - began) or not self._is_passing(error):
                    self._check_there({*partitions}, error)
                    raise self.silent_error(why) from error

    def _check_there(self, partitions: set[tuple[str, int]], error: Exception) -> None:
        """Raise `JobError` for partitions that are gone, if an error may mean that."""
        cause = error.args[0] if isinstance(error, KafkaException) else None
        if cause is not None and cause.code() in _ABSENT and (gone := partitions - {*self._partitions()}):
            raise self._gone(gone) from error

    def _gone(self, partitions: Iterable[tuple[str, int]]) -> JobError:
        is_named = self._matches or self.topics.__contains__
        unnamed = [one for one in partitions if not is_named(one[0])]
        who = "the configuration does not name" if unnamed else f"{self.name} does not have"
        gone = f"{who} any more {_listed(unnamed or partitions)}"
        return JobError(
            f"{gone}, of which messages may be unread. {go_on([topic for topic, _ in unnamed or partitions])}"
        )

    def _is_passing(self, error: Exception) -> bool:
        """Return whether waiting may heal an error."""
        if any(one.code() in _FATAL for one in self._errors):
            return False
        return isinstance(error, TimeoutError) or error.args[0].code() in _PASSING

    def _starts_of_new(
        self, before: Mapping[tuple[str, int], int], behind: Mapping[tuple[str, int], int]
    ) -> dict[tuple[str, int], int]:
        """Return where partitions begin that there were not before. Raises `JobError` if it is not 0."""
        found = self._offsets([one for one in behind if one not in before], _EARLIEST)
        for one, at in sorted(found.items()):
            if at:
                raise JobError(
                    f"{_lane_name(*one)} is new and begins at offset {at} instead of 0: messages are lost."
                    f" {go_on([one[0]])}"
                )
        return found

    @contextmanager
    def _reader(self) -> Iterator[_Reader]:
        reader = self._free.pop() if self._free else _Reader(self, self._reading)
        yield reader
        self._free.append(reader)

    def _admin_client(self) -> AdminClient:
        if self._admin is None:
            own: dict[str, Any] = {"bootstrap.servers": self.servers, "log_level": 0, "error_cb": self._errors.append}
            own |= {name: value for name, value in self._client.items() if name.startswith(OF_CONNECTIONS)}
            self._admin = self._made(lambda: AdminClient(own, logger=SILENT))
        return self._admin

    def _made(self, make: Callable[[], T]) -> T:
        """Return what is made of settings. Raises `JobError` for those that librdkafka does not take."""
        try:
            return make()
        except (KafkaException, ValueError, TypeError) as error:
            raise JobError(f"{self.name} cannot be read with these options: {self.sentence(error)}") from error


class _Reader:
    """A connection that reads one lane at a time."""

    def __init__(self, kafka: KafkaReader, patience: float) -> None:
        self._kafka, self._patience = kafka, patience
        self._errors: deque[KafkaError] = deque(maxlen=8)
        settings = {**kafka.settings(), "error_cb": self._errors.append}
        self.client: Consumer = kafka._made(lambda: Consumer(settings, logger=SILENT))  # noqa: SLF001

    def ask(self, call: Callable[[float], T]) -> T:
        """Return the answer of the cluster to a call, which takes how many seconds it may wait."""
        began = time.monotonic()
        while True:
            try:
                return call(1.0)
            except KafkaException as error:
                # What librdkafka knows of the reason comes as an event.
                self.client.poll(_MOMENT)
                why = reason(self._errors) or error
                if time.monotonic() - began >= self._kafka.patience or self._is_fatal():
                    raise self._kafka.silent_error(why) from error

    def topic(self, name: str) -> Any:
        """Return what the cluster says of a topic."""
        return self.ask(lambda seconds: self.client.list_topics(name, timeout=seconds)).topics[name]

    def read(self, lane: KafkaLane) -> Iterator[pa.RecordBatch]:
        """Yield the messages of a lane."""
        self._errors.clear()
        self._learn(lane.topic)
        self.client.assign([TopicPartition(lane.topic, lane.partition, lane.start)])
        position, count, heard = lane.start, _FIRST, time.monotonic()
        held, same = self._kafka.no_messages(), {"topic": lane.topic, "partition": lane.partition}
        while position < lane.end:
            asked = min(count, lane.end - position)
            messages = self._taken(asked)
            is_short = len(messages) < asked
            messages, position = self._own(lane, messages, position)
            if messages:
                count = _next_count(count, held.add(messages, same))
                del messages
            if held.count and (is_short or held.is_full or position >= lane.end):
                yield held.batch()
                held = self._kafka.no_messages()
                # However long that took, Kafka is not to blame.
                heard = time.monotonic()
            elif not held.count:
                self._check_silence(heard)
        self.client.unassign()

    def _learn(self, topic: str) -> None:
        """Ask where a topic is: on its own, librdkafka asks only after up to a second."""
        # Where no answer comes, it goes on asking while it is read.
        with suppress(KafkaException):
            self.client.list_topics(topic, timeout=1.0)

    def _taken(self, count: int) -> list[Message]:
        """Return the next messages, which are waited for only if there are none: `consume` waits until it has them all."""
        messages = self.client.consume(1, _MOMENT)
        return messages + self.client.consume(count - 1, _SOON) if messages and count > 1 else messages

    def _own(self, lane: KafkaLane, messages: list[Message], position: int) -> tuple[list[Message], int]:
        """Return those of some messages that are of a lane, and the position behind all that came.

        Offsets of marks of transactions, and of messages that Kafka has compacted, are passed over: a later message, or
        the end of the partition, tells that.
        """
        if not messages:
            return [], position
        last = messages[-1]
        # Nearly always all are messages, and within the lane.
        if any(one.error() is not None for one in messages):
            for one in messages:
                if (error := one.error()) is not None:
                    position = max(position, self._handle(lane, one, error, position))
            messages = [one for one in messages if one.error() is None]
            if not messages:
                return [], position
            last = messages[-1]
        position = max(position, _offset(last) + 1)
        if position > lane.end:
            messages = [one for one in messages if _offset(one) < lane.end]
        return messages, position

    def _handle(self, lane: KafkaLane, message: Message, error: KafkaError, position: int) -> int:
        """Return the position that an event tells. Raises `JobError` for one that no waiting heals."""
        code = error.code()
        if code == _END_OF_PARTITION:
            return _offset(message)
        if code in _OUT_OF_RANGE:
            least, _ = self.ask(
                lambda seconds: self.client.get_watermark_offsets(
                    TopicPartition(lane.topic, lane.partition), timeout=seconds
                )
            )
            raise _lost(lane, position, least)
        if code in _UNKNOWN or code in _FATAL:
            where = _lane_name(lane.topic, lane.partition)
            raise JobError(f"{self._kafka.name}: {where} cannot be read: {self._kafka.sentence(error)}")
        if code not in _OF_GROUP:
            self._errors.append(error)
        return position

    def _check_silence(self, heard: float) -> None:
        """Raise `JobError` if nothing came for long, or for some seconds in which the brokers could not be reached."""
        silence = time.monotonic() - heard
        why = reason(self._errors)
        is_down = any(one.code() == ALL_DOWN for one in self._errors)
        if self._is_fatal() or silence > self._patience or (is_down and silence > self._kafka.patience):
            raise self._kafka.silent_error(why or f"no message came for {silence:.0f} seconds")

    def _is_fatal(self) -> bool:
        return any(one.code() in _FATAL for one in self._errors)

    def close(self) -> None:
        """End the connection."""
        self.client.close()


def _offset(message: Message) -> int:
    """Return the offset of a message or of the end of a partition, which always have one."""
    offset = message.offset()
    return -1 if offset is None else offset


def _next_count(count: int, size: int) -> int:
    """Return how many messages are taken next, so that they have few enough bytes, if they are like the last ones."""
    if size > _TAKEN_BYTES:
        return max(1, count * _TAKEN_BYTES // size)
    return min(_TAKEN, count * 2) if 2 * size < _TAKEN_BYTES else count


def _starting_offsets(text: str) -> int | Offsets:
    """Return the first offsets that are stated. Raises `JobError` for what is none."""
    if text.lower() in ("earliest", "latest"):
        return _EARLIEST if text.lower() == "earliest" else _LATEST
    try:
        value = json.loads(text)
        return {str(topic): {str(int(one)): int(at) for one, at in own.items()} for topic, own in value.items()}
    except (ValueError, AttributeError, TypeError, RecursionError) as error:
        expected = 'earliest, latest or JSON such as {"topic":{"0":23,"1":-2}}'
        raise JobError(f"startingOffsets must be {expected}") from error


def _limit(
    before: Mapping[tuple[str, int], int], behind: Mapping[tuple[str, int], int], most: int
) -> dict[tuple[str, int], int]:
    """Return where a batch ends with about so many messages, of which each partition has a share, but at least one."""
    sizes = {one: at - before[one] for one, at in behind.items() if at > before[one]}
    total = sum(sizes.values())
    if not total:
        return {**behind}
    ends = {}
    for one, at in behind.items():
        share = most * (sizes.get(one, 0) / total)
        ends[one] = min(at, before[one] + (ceil(share) if share < 1 else floor(share))) if one in sizes else at
    return ends


def _flat(offsets: Offsets) -> dict[tuple[str, int], int]:
    return {(topic, int(number)): at for topic, own in offsets.items() for number, at in own.items()}


def _nested(offsets: Mapping[tuple[str, int], int]) -> Offsets:
    made: Offsets = {}
    for (topic, number), at in sorted(offsets.items()):
        made.setdefault(topic, {})[str(number)] = at
    return made


def _lane_name(topic: str, partition: int) -> str:
    return f"topic {plain(topic)} partition {partition}"


def _listed(partitions: Iterable[tuple[str, int]]) -> str:
    return ", ".join(_lane_name(*one) for one in sorted(partitions))


def _lost(lane: KafkaLane, wanted: int, least: int) -> JobError:
    where = _lane_name(lane.topic, lane.partition)
    return JobError(
        f"{where} begins at offset {least} and is to be read from offset {wanted}: "
        f"the messages between are not there any more. {go_on([lane.topic])}"
    )

"""Topic ids: whether a topic is still the one that a pipeline has read, and how it goes on where messages are lost.

A topic that was deleted and created again has the name of the old one and other messages under the same offsets; its id
is another one. Ids are compared before a batch is planned, and once more when its messages are read and nothing of them
is written: an id that was given up never comes back. Brokers before 2.8 have no ids, and then offsets alone decide.

For messages of another topic to come behind those of the old one, the old one's places are moved out of the way: the
clock of a topic goes on above all its times, and what was learned from it has partitions below zero. A topic of another
name may have taken the place of the old one: the clock of one that was not read before begins above those times, too.
"""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
from msgspec import Struct

from cdcavro.errors import FileError, JobError, number_of, plain, shown
from cdcavro.lake.job_state import JobState, replace_file
from cdcavro.sync.outputs.completeness import partitions_of
from cdcavro.sync.pipeline import BATCHES, CHECKPOINT, did_you_mean, held_state, lake_names
from cdcavro.sync.reading.checkpoint import Checkpoint

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Mapping, Sequence
    from pathlib import Path

    from cdcavro.sync.batches import BatchMessages
    from cdcavro.sync.conversion.knowledge import Knowledge
    from cdcavro.sync.conversion.rounds import Outcomes
    from cdcavro.sync.reading.kafka_source import KafkaReader, Offsets

TOPICS: Final = "topics.json"
# No topic has as many partitions: those of a topic that was deleted are counted down from a multiple of it.
_MOST_PARTITIONS: Final = 1 << 16
# The number of the source of topics in a checkpoint.
_SOURCE: Final = 0


class KnownTopic(Struct):
    """What a pipeline remembers of a topic."""

    # None if the brokers said none.
    id: str | None = None
    # How many topics of this name, which were deleted, it had read before.
    deleted: int = 0


class TopicIds:
    """The ids of the topics of a pipeline; `folder` is that of its state, and `ask` returns those that brokers say.

    Raises `FileError` for a file that is not what was written.
    """

    def __init__(self, folder: Path, ask: Callable[[Sequence[str]], dict[str, str]]) -> None:
        self._folder, self._ask = folder, ask
        self._known = read_topics(folder)
        # Those of topics of which nothing was read yet.
        self._seen: dict[str, str] = {}

    def compare(self, topics: Iterable[str]) -> None:
        """Raise `JobError` if a topic is another one than that of which messages were read."""
        for topic, id in sorted(self._ask(sorted(topics)).items()):
            known = self._known_id(topic) or self._seen.setdefault(topic, id)
            if id != known:
                raise JobError(
                    f"the topic {plain(topic)} was deleted and created again: its id is {id}, and messages were read of"
                    f" {known}, of which some may be unread; to read the new one from its beginning: {_command([topic])}"
                )

    def learn(self, topics: Sequence[str]) -> None:
        """Remember the ids of topics whose messages were read, and of which nothing is written. Raises as `compare`."""
        self.compare(topics)
        new = {one: self._seen[one] for one in topics if one in self._seen and self._known_id(one) is None}
        if new:
            for topic, id in new.items():
                self._known.setdefault(topic, KnownTopic()).id = id
            put_topics(self._folder, self._known)

    def _known_id(self, topic: str) -> str | None:
        return self._known.get(topic, KnownTopic()).id


class BatchTopics(NamedTuple):
    """The topics of batches as a checkpoint plans them; `ids` is None for files, of which nothing is checked."""

    ids: TopicIds | None
    checkpoint: Path

    def compare_last(self) -> None:
        """Compare the ids of the topics of the last batch that was planned. Raises as `TopicIds.compare` does."""
        if self.ids is not None and (self.checkpoint / "metadata").exists():
            last = Checkpoint(self.checkpoint).last
            self.ids.compare([] if last is None else partitions_of(self.checkpoint, last.number))

    def learn_batch(self, number: int) -> None:
        """Remember the ids of the topics of a batch. Raises as `TopicIds.learn` does."""
        if self.ids is not None:
            self.ids.learn([*partitions_of(self.checkpoint, number)])


class CheckedMessages(NamedTuple):
    """The messages of a batch; `check` is called when they are read and nothing of them is written."""

    messages: BatchMessages
    check: Callable[[], None]

    def convert(self, knowledge: Knowledge) -> Outcomes:
        """Convert the messages with what is known. Raises as they and the check do."""
        outcomes = self.messages.convert(knowledge)
        try:
            self.check()
        except BaseException:
            outcomes.store.free()
            raise
        return outcomes

    def marks(self, files: Iterable[str]) -> list[str]:
        """Return what is to be said of byte order marks in files."""
        return self.messages.marks(files)


def read_topics(folder: Path) -> dict[str, KnownTopic]:
    """Return what the state in a folder remembers of topics. Raises `FileError`."""
    path = folder / TOPICS
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, KnownTopic])
    except FileNotFoundError:
        return {}
    except (msgspec.DecodeError, RecursionError) as error:
        raise FileError(str(path), "the ids of topics", str(error)) from error


def put_topics(folder: Path, topics: dict[str, KnownTopic]) -> None:
    """Let the state in a folder remember topics."""
    replace_file(folder / TOPICS, msgspec.json.format(msgspec.json.encode(topics, order="sorted"), indent=1).decode())


class _Plan(NamedTuple):
    """How a pipeline goes on with a topic."""

    # The offsets that are read next, by partition; none if the topic is read no more.
    positions: dict[str, int]
    # Whether messages of the topic that was read come no more.
    is_over: bool
    # What is said of it.
    said: list[str]


class _Places(NamedTuple):
    """How far a pipeline has come; offsets are by topic and partition."""

    # The number of the next batch.
    number: int
    # Where it begins, and where it ends if it is planned.
    start: Offsets
    end: Offsets | None

    @classmethod
    def of(cls, checkpoint: Checkpoint) -> _Places:
        """Return what a checkpoint says. Raises `FileError` for that of a pipeline that reads files."""
        number, last = checkpoint.next, checkpoint.last
        start = checkpoint.start_of(number)[_SOURCE]
        is_planned = last is not None and not last.is_committed
        end = (checkpoint.end_of(number)[_SOURCE] or {}) if is_planned else None
        # Of files, a number is there instead of the offsets of a topic.
        if not all(isinstance(own, dict) for own in [*(start or {}).values(), *(end or {}).values()]):
            expected = "the state of a pipeline that reads topics"
            raise FileError(str(checkpoint.folder.parent), expected, "that of one that reads files")
        return cls(number, start or checkpoint.first_offsets(_SOURCE) or {}, end)

    def reached(self, topic: str) -> dict[str, int]:
        """Return the offsets up to which a topic is read or planned to be read; none if it is not."""
        return {**self.start.get(topic, {}), **(self.end or {}).get(topic, {})}

    def put(self, checkpoint: Checkpoint, plans: Mapping[str, _Plan]) -> None:
        """Let the next batch go on as planned. Cut off between, it has nothing of a topic, or ends in the same error."""
        # A batch of which nothing of topics was planned stays so: the next one begins where it would have begun.
        if self.end:
            end = {**self.end}
            for topic, plan in plans.items():
                known = {} if plan.is_over else end.get(topic, {})
                end[topic] = {one: max(at, known.get(one, at)) for one, at in plan.positions.items()}
            checkpoint.put_end(self.number, _SOURCE, _without_nothing(end))
        start = _without_nothing({**self.start, **{topic: plan.positions for topic, plan in plans.items()}})
        if checkpoint.start_of(self.number)[_SOURCE]:
            checkpoint.put_end(self.number - 1, _SOURCE, start)
        else:
            checkpoint.put_first_offsets(_SOURCE, start)


def go_on(topics: Iterable[str]) -> str:
    """Return how a pipeline goes on without messages that are lost in some topics, as the end of an error.

    >>> go_on(["shop", "shop.orders", "shop"])
    'To go on without them: cdcavro sync accept-loss shop shop.orders --config FILE'
    """
    return f"To go on without them: {_command(topics)}"


def _command(topics: Iterable[str]) -> str:
    words = " ".join(quote(plain(topic)) for topic in sorted({*topics}))
    # What begins like an option is none behind two dashes.
    return (
        f"cdcavro sync accept-loss {f'--config FILE -- {words}' if words.startswith('-') else f'{words} --config FILE'}"
    )


def check_topics(folder: Path, reader: KafkaReader) -> None:
    """Raise `JobError` if the next run of a pipeline would refuse a topic, which was created again or lost messages.

    `folder` is that of its state, which is left as it is. Raises `FileError` for a state of a pipeline that reads files.
    """
    if not (folder / CHECKPOINT / "metadata").exists():
        return
    places = _Places.of(Checkpoint(folder / CHECKPOINT))
    reached = {topic: places.reached(topic) for topic in {**places.start, **(places.end or {})}}
    if not reached:
        return
    TopicIds(folder, reader.topic_ids).compare(reached)
    reader.plan(reached, reader.latest())
    earliest = reader.earliest()
    for topic, own in sorted(places.start.items()):
        for one, at in sorted(own.items()):
            least = earliest.get(topic, {}).get(one, 0)
            if least > at:
                raise JobError(
                    f"topic {plain(topic)} partition {one} begins at offset {least} and is to be read from offset {at}:"
                    f" the messages between are not there any more. {go_on([topic])}"
                )


def accept_loss(folder: Path, reader: KafkaReader, topics: Sequence[str]) -> list[str]:
    """Let a pipeline go on with topics that have lost messages which it had not read; return what is to be said.

    A topic that was deleted and created again is read from its beginning; one whose messages were removed, from the
    first that there is; one that `reader` does not have is read no more; if no other one was read, those that it has take
    its place, and are read from their beginning. It may be repeated if it was cut off. Raises
    `FileError` while a pipeline has the state, for one that reads files and for a topic that it does not read, and
    `JobError` if Kafka does not answer or there is no way on; then nothing is changed.
    """
    with held_state(folder):
        checkpoint, known = Checkpoint(folder / CHECKPOINT), read_topics(folder)
        places, names = _Places.of(checkpoint), [*dict.fromkeys(topics)]
        earliest, latest, ids = reader.earliest(), reader.latest(), reader.topic_ids(names)
        plans = {}
        for topic in names:
            if not (places.reached(topic) or (places.start and topic in latest)):
                hint = did_you_mean(topic, {*places.start, *(places.end or {}), *latest})
                raise FileError(plain(topic), f"the name of a topic that the pipeline reads{hint}", shown(topic))
            both = known.get(topic, KnownTopic()).id, ids.get(topic)
            plans[topic] = _plan(topic, places, both, earliest.get(topic, {}), latest.get(topic, {}))
        gone = {topic for topic, plan in plans.items() if not plan.positions}
        if not {*places.start, *plans} - gone:
            plans |= _first_plans(latest)
        over = {topic: plan for topic, plan in plans.items() if plan.is_over}
        state = JobState(folder / BATCHES)
        begun = state.facts(places.number + 1) if places.number in state.batches() else {}
        _check_can_move(begun, places.number, over)
        state.rewrite(places.number, lambda own: _move_away(own, over, known, begun.get("clock", ())))
        if gone:
            # Topics that come as others go may be these under other names.
            read = {*places.start, *over} - gone
            state.rewrite(places.number, lambda own: _begin_behind(own, latest, read))
        places.put(checkpoint, plans)
        for topic in names:
            one = known.get(topic, KnownTopic())
            known[topic] = KnownTopic(ids.get(topic), one.deleted + plans[topic].is_over)
        # From here on a topic of another id is the one that is read.
        put_topics(folder, known)
        tables = _tables_of(over, folder, state.facts(places.number))
        begun_tables = ", ".join(map(plain, sorted(begun.get("rows", ()))))
        if over and begun_tables:
            tables.append(
                f"batch {places.number} was interrupted while it was written: {begun_tables} may have rows of messages of"
                " it that are not there any more, which no batch counts"
            )
        return [sentence for plan in plans.values() for sentence in plan.said] + tables


def _plan(
    topic: str,
    places: _Places,
    ids: tuple[str | None, str | None],
    earliest: Mapping[str, int],
    latest: Mapping[str, int],
) -> _Plan:
    """Return how it goes on with a topic, by its id that is remembered, its id of now, and its offsets."""
    if not latest:
        return _Plan({}, True, [f"the topic {plain(topic)} is read no more"])  # noqa: FBT003
    known, found = ids
    is_behind_end = any(at > latest.get(one, -1) for one, at in places.reached(topic).items())
    if is_behind_end if known is None or found is None else known != found:
        anew = f"the topic {plain(topic)} is read from its beginning, as another one than the one that was deleted"
        return _Plan({**earliest}, True, [anew])  # noqa: FBT003
    if is_behind_end:
        raise JobError(
            f"the topic {plain(topic)} ends before the offsets up to which it was read, and is the same one: its brokers"
            " lost messages that were read, and others may have their offsets. Begin with another state and lake"
        )
    start = places.start.get(topic, {})
    lost = {one: at - start.get(one, 0) for one, at in earliest.items() if at > start.get(one, 0)}
    said = [
        f"topic {plain(topic)} partition {one} is read from offset {earliest[one]}: {number_of(count, 'message')} lost"
        for one, count in sorted(lost.items(), key=lambda own: int(own[0]))
    ]
    positions = {one: max(at, start.get(one, 0)) for one, at in earliest.items()}
    return _Plan(positions, False, said or [f"the topic {plain(topic)} has lost nothing that was not read"])  # noqa: FBT003


def _first_plans(latest: Offsets) -> dict[str, _Plan]:
    """Return how topics are begun that take the place of those which are read no more. Raises `JobError` without any."""
    if not latest:
        raise JobError("no topic would be left to be read: begin with another state")
    return {
        topic: _Plan(dict.fromkeys(own, 0), False, [f"the topic {plain(topic)} is read from its beginning"])  # noqa: FBT003
        for topic, own in latest.items()
    }


def _check_can_move(begun: Mapping[str, Any], number: int, over: Mapping[str, _Plan]) -> None:
    """Raise `JobError` if rows of the first batch are in the lake whose order no state before it can remember.

    `begun` is what the state says of the interrupted batch, which has a number; nothing if it was not written.
    """
    if not number and any(lane[0][0] in over for lane in begun.get("clock", ())):
        raise JobError(
            "the first batch was interrupted while it was written, and its rows of a topic that is not there any more may"
            " be in the tables: begin with another state and lake"
        )


def _move_away(
    state: dict[str, Any], over: Mapping[str, _Plan], known: Mapping[str, KnownTopic], begun: Sequence[Any] = ()
) -> None:
    """Change what the file of a batch says so that messages of other topics of the same names come behind.

    `begun` is the clock of the interrupted batch, of which tables may have rows: they come behind these, too.
    """
    for topic, plan in over.items():
        kept = {int(one) for one in plan.positions}
        before = [one for one in (*state["clock"], *begun) if one[0][0] == topic]
        _put_behind(state, before, topic, kept or {one[0][1] for one in before})
        if "reached" in state:
            # A partition that is gone would hold back the marks of its tables.
            state["reached"] = [one for one in state["reached"] if one[0] != topic or one[1] in kept]
        first = -1 - known.get(topic, KnownTopic()).deleted * _MOST_PARTITIONS
        for record in state["learned"]:
            place = record.get("place", {})
            if place.get("topic") == topic and place.get("partition", -1) >= 0:
                place["partition"] = first - place["partition"]


def _begin_behind(state: dict[str, Any], topics: Offsets, read: Container[str]) -> None:
    """Change what the file of a batch says so that messages of new topics come behind those of all that are not read on.

    `topics` are all that there are, and `read` those that are read on.
    """
    before = [one for one in state["clock"] if one[0][0] not in read]
    for topic, own in topics.items():
        if topic not in read:
            _put_behind(state, before, topic, {int(one) for one in own})


def _put_behind(state: dict[str, Any], before: Sequence[Any], topic: str, partitions: Iterable[int]) -> None:
    """Let the lanes of a topic begin behind all that the clock of a batch has, or had, in other lanes, if there are any."""
    if not before:
        return
    rank, numbers, moves = max(one[2:] for one in before)
    again = [[[topic, one, ""], [topic, one, -1, "", 0], rank, numbers, moves + 1] for one in partitions]
    state["clock"] = sorted([*(one for one in state["clock"] if one[0][0] != topic), *again])


def _tables_of(over: Mapping[str, _Plan], folder: Path, facts: Mapping[str, Any]) -> list[str]:
    """Return what is to be said of tables that had changes of topics which are over."""
    names = lake_names(folder)
    numbers = [number for number, topics, *_ in facts.get("complete", ()) if {*topics} & {*over}]
    found = sorted({names.label_of(one) for one in numbers if one in names.names})
    if not found:
        return []
    return [
        f"tables with changes of it: {', '.join(map(plain, found))}. Reset those that are loaded again, before they are"
    ]


def _without_nothing(offsets: Offsets) -> Offsets:
    return {topic: own for topic, own in offsets.items() if own}

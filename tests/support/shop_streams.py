"""The shop's messages as streams come: through partitions that run apart, sent again, behind a full load that is late."""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterator
from typing import NamedTuple

from cdcavro.change.model import DDL, DML, Arrival, Change, replace
from cdcavro.table.tables import TypedChange
from support.shop_tables import shop, shop_changes

Message = list[Change]
# How a stream is sent again: not at all, every message three times in a row, or from some message on.
REPEATS = ("once", "three times", "goes back")


class Stream(NamedTuple):
    """Messages in the order in which they arrive, each with its place, what each was in the shop's file, and how they were made."""

    messages: list[Message]
    originals: list[Message]
    facts: str


def shuffled(producer: str, seed: int, *, is_waiting: bool = True) -> Stream:
    """Return the shop's messages of a producer, in partitions, an order of arrival and repetitions that a seed chooses.

    The messages of a partition arrive in its order. With `is_waiting`, no row comes before a statement that
    was made before it: what is not known of a table cannot be read.
    """
    draw = random.Random(f"{producer} {seed}")
    partitions, repeats = draw.choice((1, 2, 3, 5)), REPEATS[seed % len(REPEATS)]
    # Rows that are sent again behind others have a later place; only numbers or one partition say that they are old.
    if repeats == "goes back" and producer == "canal":
        partitions = 1
    rows = list(shop_changes(producer))
    load: list[Change] = []
    if draw.random() < 0.5:
        since = draw.randrange(1, rows[-1].place.line)
        load = _loaded(producer, since)
        if draw.random() < 0.5:
            # What was emptied before the load is no part of a stream that begins behind it, though its statements may be.
            rows = [one for one in rows if one.place.line > since or one.op not in {*DML, "TRUNCATE"}]
    lanes = _lanes(rows, partitions, "shop", is_apart=partitions > 1)
    lanes |= _lanes(load, partitions, "load", is_apart=True)
    sent = {lane: list(_sent(messages, repeats, draw)) for lane, messages in lanes.items()}
    originals = {(*lane, i): one for lane, messages in sent.items() for i, one in enumerate(messages)}
    sent = {lane: [_placed(one, lane, i) for i, one in enumerate(messages)] for lane, messages in sent.items()}
    arrived = list(_arrived(sent, draw, is_waiting=is_waiting))
    places = [one.place for one, *_ in arrived]
    came = [originals[place.topic, place.partition, place.offset] for place in places]
    return Stream(arrived, came, f"{partitions} partitions, {repeats}, {len(load)} loaded, {len(arrived)} messages")


def _loaded(producer: str, line: int) -> list[Change]:
    """Return the rows that the tables have behind a message, as a full load sends them."""
    rows: dict[tuple[int, bytes], Change] = {}
    for typed in shop(producer)[1]:
        if typed.change.place.line > line:
            break
        _apply(rows, typed)
    return [
        replace(one, op="SNAPSHOT", operation=None, before=None, changed=None, row=0, rows=1) for one in rows.values()
    ]


def _apply(rows: dict[tuple[int, bytes], Change], typed: TypedChange) -> None:
    if typed.change.op == "TRUNCATE":
        for key in [key for key in rows if key[0] == typed.table.number]:
            del rows[key]
    elif typed.key is not None:
        rows.pop((typed.table.number, typed.key), None)
        if typed.change.after is not None:
            rows[typed.table.number, typed.key] = typed.change


def _lanes(
    changes: list[Change], partitions: int, topic: str, *, is_apart: bool
) -> dict[tuple[str, int], list[Message]]:
    """Return the messages of each partition: rows by their key, as Canal's `partitionHash` and Kafka do, statements apart."""
    lanes: dict[tuple[str, int], list[Message]] = {}
    for change in changes:
        lane = (topic, _partition(change, partitions)) if change.op in DML or not is_apart else ("statements", 0)
        messages = lanes.setdefault(lane, [])
        if messages and messages[-1][-1].place == change.place and change.op in DML:
            messages[-1].append(change)
        else:
            messages.append([change])
    return lanes


def _partition(change: Change, partitions: int) -> int:
    image = (change.after if change.after is not None else change.before) or {}
    values = [image.get(name) for name in change.key or ()]
    return zlib.crc32(repr((change.source.table, values)).encode()) % partitions


def _sent(messages: list[Message], repeats: str, draw: random.Random) -> Iterator[Message]:
    """Yield the messages of a partition as they are sent."""
    at = 0
    for i, message in enumerate(messages):
        yield message
        if repeats == "three times":
            yield from (message, message)
        if repeats == "goes back" and draw.random() < 0.05:
            at = draw.randrange(i + 1)
            yield from messages[at : i + 1]


def _placed(message: Message, lane: tuple[str, int], offset: int) -> Message:
    place = Arrival(topic=lane[0], partition=lane[1], offset=offset)
    return [replace(one, place=place, row=i, rows=len(message)) for i, one in enumerate(message)]


def _arrived(
    lanes: dict[tuple[str, int], list[Message]], draw: random.Random, *, is_waiting: bool
) -> Iterator[Message]:
    """Yield the messages of all partitions, each of which is as far behind as it likes."""
    speed = {lane: draw.choice((1, 1, 10, 100)) for lane in lanes}
    statements = [one for messages in lanes.values() for (one, *_) in messages if one.op in DDL]
    # The last entry counts, and that is the first delivery.
    sent = {(one.position, one.ddl): one for one in reversed(statements)}.values()
    ahead = {(one.place.topic, one.place.partition, one.place.offset): one.position or () for one in sent}
    while any(lanes.values()):
        first = min(ahead.values(), default=None) if is_waiting else None
        ready = [lane for lane, messages in lanes.items() if messages and not _is_early(messages[0][0], first)]
        (lane,) = draw.choices(ready, [speed[lane] for lane in ready])
        message = lanes[lane].pop(0)
        ahead.pop((*lane, message[0].place.offset), None)
        yield message


def _is_early(change: Change, first: tuple[int, ...] | None) -> bool:
    return change.op in DML and first is not None and (change.position or ()) > first

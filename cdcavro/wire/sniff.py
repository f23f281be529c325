"""Sniffing: detection of a message's format by what the wire schemas say about themselves.

A format fits a message that has all its required members and at least one of those that identify it,
null or not (`required` and `tells` in `attributes`). None of these members may be an object, an array
or a scalar where the schema has another of the three, nor may anything else stand where the schema has
an object or an array, because other producers use some of the same names. A Kafka record is told by its
value; one whose value is null, and whose key is an object, is a tombstone, and fits the formats that describe such
records. Of the formats that fit, the one with the most identifying members is chosen; among equals, the
first in the order of `REGISTRY`. So a message of the Default family is `oms_default` unless it has a
`__light_type`. A message of a format that is recognized but not supported fits no format, unless it fits one
whose messages have columns as members, which may have any names, or one with a necessary value: such a format fits no
message without that value. A message that has a member of a format which is `certain` is none of another one, also
where it stands beside its schema, as Kafka Connect has it.
"""

from __future__ import annotations

import re
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from cdcavro.avro.types import Array, Map, Record, Type, Union
from cdcavro.errors import MessageError, TextError, UnknownMessageError, shown
from cdcavro.exact import jsontext
from cdcavro.exact.caching import WeightedCache
from cdcavro.exact.jsontext import ABSENT, at
from cdcavro.wire.attributes import field_rule
from cdcavro.wire.format import CODECS, bytes_of
from cdcavro.wire.formats import REGISTRY
from cdcavro.wire.kafka import VALUE, is_kafka_record, is_tombstone

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

AUTO: Final = "auto"
"""In place of a format's name: the format is detected for each file, from its first messages."""
MIXED: Final = "mixed"
"""In place of a format's name: the format is detected for each message."""
_SHOWN: Final = 8
_UNSUPPORTED: Final = ", which is not supported"
_PAYLOAD: Final = "payload"
_OF_CONNECT: Final = frozenset({"schema", _PAYLOAD})
# Members that no schema marks, by which messages that are not supported are recognized.
_BESIDE_MARKS: Final = (
    ("source", "origin"),
    ("metadata", "record-type"),
    *(("type",), ("resolved",), ("updated",), ("mvcc_timestamp",)),
)
# The formats of messages by their shapes. They weigh as many bytes as the first message of each.
_FORMATS_OF_SHAPES: Final = WeightedCache(1 << 20)
MemberPath = tuple[str, ...]
Tells = bool | tuple[str, ...]
_SHAPES: Final[dict[type, type]] = {Array: list, Map: dict, Record: dict}


class _Marks(NamedTuple):
    """The members by which a wire schema is identified."""

    required: list[MemberPath]
    tells: list[tuple[MemberPath, Tells]]
    # The members of which one of the values that identify the format is necessary, and these values.
    necessary: list[tuple[MemberPath, Tells]]
    # The JSON container at each path, None for a scalar.
    shapes: list[tuple[MemberPath, type | None]]


def sniff(message: bytes | str) -> str:
    """Return the format of a message.

    Raises `TextError` for text that is not JSON, `UnknownMessageError` for a message of no known format, and
    `StructureError` for one that has the members of a format, but in another shape. A message that differs from an
    earlier one only in its values has the same format.

    >>> sniff('{"type": "INSERT", "database": "shop", "data": [{"id": 1}]}')
    'oms_canal'
    """
    found, value = _known_or_parsed(message)
    if found:
        return found
    shape = _shape_of(value, *_looks()) if type(value) is dict else None
    known: str | None = _FORMATS_OF_SHAPES.get(shape)
    if known is not None:
        return known
    scores = _fitting_value(value)
    if scores:
        found = best_format([scores])
        _FORMATS_OF_SHAPES.put(shape, found, len(message))
        return found
    nearest, expected, got = _nearest_format(value)
    # The message is parsed again to find what is wrong with it, so this value is freed first.
    del value
    raise _unknown_error(message, nearest, expected, got)


class _Looks(NamedTuple):
    """What detection looks at."""

    # The members by name, each with those within it, also in a message of Kafka Connect and in a Kafka record.
    members: dict[str, Any]
    # The names of those of which it matters what text they hold.
    texts: frozenset[str]


def _shape_of(message: dict[str, Any], members: dict[str, Any], texts: frozenset[str]) -> tuple[Any, ...]:
    """Return all of a message that tells its format: names and types of members, and the texts of some."""
    shape: list[Any] = [tuple(message), tuple(map(type, message.values()))]
    for name, member in message.items():
        if name not in members:
            continue
        if type(member) is dict:
            if members[name]:
                shape.append(_shape_of(member, members[name], texts))
        elif name in texts and type(member) is str:
            shape.append(member)
    return tuple(shape)


@cache
def _looks() -> _Looks:
    places, texts = set(_BESIDE_MARKS), {place[-1] for place in _BESIDE_MARKS}
    for required, tells, necessary, shapes in map(_marks, REGISTRY):
        places |= {*required, *(place for place, _ in (*tells, *necessary, *shapes))}
        texts |= {place[-1] for place, values in (*tells, *necessary) if values is not True}
    places |= {(_PAYLOAD, *place) for place in places}
    places |= {(VALUE, *place) for place in places}
    members: dict[str, Any] = {}
    for place in places:
        within = members
        for name in place:
            within = within.setdefault(name, {})
    return _Looks(members, frozenset(texts))


def _nearest_format(value: Any) -> tuple[str, str, str]:
    """Return the format of which a message has all members, or "", and what was expected and what the message is."""
    is_record = is_kafka_record(value)
    value = value[VALUE] if is_record else value
    nearest = best_format([{name: score for name in REGISTRY if (score := _score(value, name, _any_shape))}])
    expected = f"a message of a known format ({_describe_formats(value)})"
    return nearest, expected, f"a Kafka record whose value is {_describe(value)}" if is_record else _describe(value)


def _unknown_error(message: bytes | str, nearest: str, expected: str, got: str) -> MessageError:
    """Return the error for a message that fits no format; if it has all members of one, what is wrong with them."""
    if nearest:
        try:
            REGISTRY[nearest].encode(message)
        except MessageError as error:
            return error
    return UnknownMessageError(expected, got)


def fitting_formats(message: bytes | str) -> dict[str, int]:
    """Return the formats that fit a message, each with the number of members that identify it.

    A Kafka record fits what its value fits. Raises `TextError`, and `UnknownMessageError` for JSON that
    is not an object, and for a message of a format that is recognized but not supported, which the error names.
    """
    found, value = _known_or_parsed(message)
    if found:
        return {found: 1}
    fitting = _fitting_value(value)
    # A message alone may be one of several, too, but nothing in it says so.
    return fitting | {name: 0 for name, codec in CODECS.items() if not fitting.keys().isdisjoint(codec.joined)}


def _format_of_bytes(message: bytes | str) -> str:
    """Return the first format of which a message is one that came as bytes, an empty text for any other message."""
    if not CODECS or bytes_of(message) is None:
        return ""
    for name, codec in CODECS.items():
        with suppress(MessageError):
            if not codec.joined:
                REGISTRY[name].text_of(message)
                return name
    return ""


def _known_or_parsed(message: bytes | str) -> tuple[str, Any]:
    """Return the format of a message that is no JSON text, or an empty text and its value. Raises `TextError`."""
    found = _format_of_bytes(message)
    try:
        return found, None if found else _parse(message)
    except TextError:
        for name, codec in CODECS.items():
            with suppress(MessageError):
                if codec.joined:
                    REGISTRY[name].encode(message)
                    return name, None
        raise


def _fitting_value(value: Any) -> dict[str, int]:
    if not isinstance(value, dict):
        raise UnknownMessageError("object", jsontext.kind(value))
    message = value[VALUE] if is_kafka_record(value) else value
    certain = {name: score for name in REGISTRY if (score := _certain_score(message, name))}
    if certain:
        return certain
    scores = {name: _score(message, name, _has_shape) for name in REGISTRY}
    fitting = {name: score for name, score in scores.items() if score and _accepts(value, name)}
    is_sure = any(_has_any_member(name) or _marks(name).necessary for name in fitting)
    strange = None if is_sure else unsupported_format(value)
    if strange is not None:
        raise UnknownMessageError("a message of a known format", f"{strange}{_UNSUPPORTED}")
    if not fitting and is_tombstone(value):
        return {name: 1 for name in REGISTRY if not REGISTRY[name].unwraps_records}
    return fitting


def _accepts(record: dict[str, Any], name: str) -> bool:
    """Return whether a Kafka record fits a format that describes such records itself; other formats take any."""
    if not is_kafka_record(record) or REGISTRY[name].message_in(record) is not record:
        return True
    return all(_has_shape(_at(record, place), shape) for place, shape in _marks(name).shapes)


@cache
def _has_any_member(name: str) -> bool:
    """Return whether the messages of a format may have members of any names, which are columns."""
    envelope = REGISTRY[name].envelope
    return isinstance(envelope, Record) and any(field_rule(field).members == "rest" for field in envelope.fields)


def best_format(messages: Iterable[dict[str, int]]) -> str:
    """Return one format for the messages of a file, from the result of `fitting_formats` for each message.

    It is the format that fits most messages; among equals, the one with the most identifying members in
    all of them, then the first in the order of `REGISTRY`. Return an empty string if nothing fits.

    >>> best_format([{"oms_default": 1, "oms_default_extend_column_type": 1}])
    'oms_default'
    """
    count = dict.fromkeys(REGISTRY, 0)
    total = dict.fromkeys(REGISTRY, 0)
    for message in messages:
        for name, score in message.items():
            count[name] += 1
            total[name] += score
    choice = max(REGISTRY, key=lambda name: (count[name], total[name]))
    return choice if count[choice] else ""


def other_format(messages: Iterable[bytes | str], format: str) -> str | None:
    """Return which format, supported or not, messages look like that were passed as messages of another format.

    Return None if any of them fits the format that they were passed as, or if they look like none.

    >>> other_format(['{"type":"INSERT","table":"t","data":[],"id":1}'], "debezium")
    'canal'
    """
    scores, strange = [], None
    for message in messages:
        try:
            fitting = fitting_formats(message)
        except UnknownMessageError as error:
            strange = strange or (error.got if error.got.endswith(_UNSUPPORTED) else None)
        except MessageError:
            continue
        else:
            if format in fitting or _fits_if_named(message, format):
                return None
            scores.append(fitting)
    return best_format(scores) or strange


def _fits_if_named(message: bytes | str, format: str) -> bool:
    """Return whether a message is one of a format that has more messages if it is named than are told to be its own."""
    if format not in REGISTRY or _marks(format, is_named=True) == _marks(format):
        return False
    value = _parse(message)
    record = value[VALUE] if is_kafka_record(value) else value
    return isinstance(record, dict) and _score(record, format, _has_shape, is_named=True) > 0


def _parse(message: bytes | str) -> Any:
    raw = jsontext.to_bytes(message)
    try:
        return msgspec.json.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return jsontext.parse(raw)


def _score(
    value: dict[str, Any], name: str, fits_shape: Callable[[Any, type | None], bool], *, is_named: bool = False
) -> int:
    required, tells, necessary, shapes = _marks(name, is_named=is_named)
    if any(_at(value, place) in (None, ABSENT) for place in required):
        return 0
    if not all(_identifies(_at(value, place), values) for place, values in necessary):
        return 0
    score = sum(_identifies(_at(value, place), values) for place, values in tells)
    if score and not all(fits_shape(_at(value, place), shape) for place, shape in shapes):
        return 0
    return score


def _certain_score(message: dict[str, Any], name: str) -> int:
    """Return the score of a message, or of the payload in it, for a format whose members no other one has."""
    if not REGISTRY[name].rule.certain:
        return 0
    payload = message.get(_PAYLOAD) if message.keys() <= _OF_CONNECT else None
    return _score(payload if type(payload) is dict else message, name, _has_shape)


def _any_shape(_member: Any, _shape: type | None) -> bool:
    return True


def _has_shape(member: Any, shape: type | None) -> bool:
    return member is None or member is ABSENT or (type(member) is shape if shape else type(member) not in (dict, list))


def _identifies(member: Any, tells: Tells) -> bool:
    return member is not ABSENT if tells is True else isinstance(tells, tuple) and member in tells


def _at(value: Any, place: MemberPath) -> Any:
    for name in place:
        if not isinstance(value, dict):
            return ABSENT
        value = value.get(name, ABSENT)
    return value


@cache
def _marks(name: str, *, is_named: bool = False) -> _Marks:
    marks = _Marks([], [], [], [])
    _collect(REGISTRY[name].envelope, (), marks, is_named=is_named)
    return marks


def _collect(declared: Type, place: MemberPath, marks: _Marks, *, is_named: bool) -> None:
    for branch in declared.branches if isinstance(declared, Union) else (declared,):
        for field in branch.fields if isinstance(branch, Record) else ():
            rule = field_rule(field)
            member = (*place, rule.name)
            if rule.required and member not in marks.required:
                marks.required.append(member)
            if rule.tells:
                marks.tells.append((member, rule.tells))
            if rule.necessary:
                # A list is of those by which the format is told from another one.
                is_listed = isinstance(rule.necessary, tuple)
                marks.necessary.append((member, tuple(rule.ops) if is_named and is_listed else rule.necessary_values))
            shape = _shape(field.type)
            if not rule.members and not rule.text and (shape or rule.required or rule.tells):
                marks.shapes.append((member, shape))
            _collect(field.type, member, marks, is_named=is_named)


def _shape(declared: Type) -> type | None:
    branches = declared.branches if isinstance(declared, Union) else (declared,)
    return next((_SHAPES[type(branch)] for branch in branches if type(branch) in _SHAPES), None)


def _describe_formats(value: Any) -> str:
    """Return the names of the formats, and by what the one is known that has the most of a message's members."""
    shared = {name: len(value.keys() & _members_of(name)) for name in REGISTRY} if isinstance(value, dict) else {}
    near = max(shared, key=lambda name: shared[name], default="")
    hint = f"; did you mean {near}? It has {_describe_marks(near)}" if near and 2 * shared[near] > len(value) else ""
    return ", ".join(REGISTRY) + hint


@cache
def _members_of(name: str) -> frozenset[str]:
    return frozenset(field_rule(field).name for field in REGISTRY[name].envelope.fields)


def _describe_marks(name: str) -> str:
    required, tells, *_ = _marks(name)
    needed = [
        ".".join(place)
        for place in required
        if not any(longer != place and longer[: len(place)] == place for longer in required)
    ]
    places = [place for place, _ in tells if place not in required]
    # That a member may also stand in the value of a Kafka record, or beside its schema, goes without saying.
    optional = [".".join(place) for place in places if place[0] not in (VALUE, _PAYLOAD) or place[1:] not in places]
    some = f"one of {', '.join(optional)}"
    if any(place in required for place, _ in tells):
        return " and ".join(needed)
    return " and ".join([*needed, some])


def _describe(value: Any) -> str:
    if not isinstance(value, dict):
        return jsontext.kind(value)
    names = ", ".join(shown(name) for name in list(value)[:_SHOWN])
    more = f" and {len(value) - _SHOWN} more" if len(value) > _SHOWN else ""
    return f"an object with {names}{more}" if value else "an empty object"


# Formats that are recognized so that an error can name them, but that are not supported.
_SIGNALS: Final = frozenset(
    {"execute-snapshot", "stop-snapshot", "pause-snapshot", "resume-snapshot", "schema-changes"}
)


def unsupported_format(value: Any) -> str | None:
    """Return the name of the unsupported format that a JSON value is a message of; None if there is none.

    >>> unsupported_format({"op_type": "INSERT", "op_ts": "2020-02-29T00:00:00Z", "after": {"id": 1}})
    'a message of Oracle GoldenGate in another form'
    """
    message = value[VALUE] if is_kafka_record(value) else value
    if type(message) is dict and type(message.get("payload")) is dict and message.keys() <= _OF_CONNECT:
        message = message["payload"]
    if type(message) is not dict:
        return None
    if _TELLING.isdisjoint(message):
        return _COCKROACH if _is_cockroach(message) else None
    return next((name for name, is_one in _UNSUPPORTED_FORMATS.items() if is_one(message)), None)


def _is_ticdc(message: dict[str, Any]) -> bool:
    return {"commitTs", "type"} <= message.keys() and ("buildTs" in message or "schemaVersion" in message)


def _is_cockroach(message: dict[str, Any]) -> bool:
    """Return whether a message is one of CockroachDB: enriched, with a source unlike Debezium's, or wrapped.

    Source: CockroachDB documentation, "Changefeed Message Envelope".
    """
    source = message.get("source")
    if type(source) is dict and source:
        return source.get("origin") == "cockroachdb" or ("connector" not in source and not _SOURCES.isdisjoint(source))
    if "op" in message:
        return "ts_ns" in message and "ts_ms" not in message and source in (None, {})
    clock = next((message[name] for name in ("resolved", "updated", "mvcc_timestamp") if name in message), None)
    is_known = message.keys() <= _OF_COCKROACH and bool({"after", "resolved"} & message.keys())
    return is_known and type(clock) is str and _HYBRID_TIME.fullmatch(clock) is not None


_OF_COCKROACH: Final = frozenset({"after", "before", "key", "topic", "updated", "resolved", "mvcc_timestamp"})
# Members of CockroachDB's source that Debezium's does not have.
_SOURCES: Final = frozenset({"changefeed_sink", "cluster_id", "mvcc_timestamp", "primary_keys", "table_name", "ts_hlc"})
_HYBRID_TIME: Final = re.compile(r"[0-9]{1,20}\.[0-9]{10}", re.ASCII)
_COCKROACH: Final = "a message of a CockroachDB changefeed"
# Messages of each of the others have one of these members.
_TELLING: Final = frozenset({"encrypted", "commitTs", "op_type", "operationType", "aggregate_type", "type", "metadata"})
_UNSUPPORTED_FORMATS: Final[dict[str, Callable[[dict[str, Any]], bool]]] = {
    "an encrypted message of Maxwell": lambda message: message.keys() == {"encrypted"},
    "a message of TiCDC's Simple Protocol": _is_ticdc,
    "a message of Oracle GoldenGate in another form": lambda message: {"op_type", "op_ts"} <= message.keys(),
    "an event of a MongoDB change stream": lambda message: {"operationType", "ns"} <= message.keys(),
    "a notification of Debezium": lambda message: {"aggregate_type", "type"} <= message.keys(),
    "a signal to Debezium": lambda message: type(message.get("type")) is str and message["type"] in _SIGNALS,
    _COCKROACH: _is_cockroach,
    "a message of AWS DMS in another form": lambda message: type(at(message, "metadata", "record-type")) is str,
}

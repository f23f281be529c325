"""Kafka records as JSON objects, with a message of any format as their value.

    {"topic": "shop", "partition": 0, "offset": 41, "timestamp": 1700000000000, "key": null, "value": {...}}

A message in a Kafka record is a message of its format: the payload has the fields of the value, and the
other members of the record are together in `extras`, as the text of an object, under the key `kafka`,
which no JSON pointer can be. A format whose wire schema describes Kafka records itself, with a member
`value`, takes them as they are.

The `headers` of a record, for a format that reads them, are a list of objects with `key` and `value`, the latter in
base64, as Spark's to_json writes them, or of names and texts in turn, as kcat does. Where messages are bytes,
their headers stand before them, behind a mark.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import msgspec

from cdcavro.errors import MessageError, PayloadError, StructureError, TextError, shown
from cdcavro.exact.jsontext import escape, parse, parse_fast, render

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping, Sequence

    Headers = Sequence[tuple[str, bytes | None]]

KAFKA: Final = "kafka"
KEY: Final = "key"
VALUE: Final = "value"
# Whatever has none of these is a message alone.
OF_RECORDS: Final = frozenset({KEY, VALUE, "topic"})
HEADERS: Final = "headers"
# What stands instead of headers that the client cannot tell, as the name of one is not UTF-8.
UNTOLD: Final = "\0untold"
# What headers before a message begin with: no JSON text, no framed value and no wrapped one does.
HEADED: Final = b"\x05headers"
# Whole numbers that are read without a parser of JSON.
_WHOLE: Final = re.compile(r"0|-?[1-9][0-9]{0,17}", re.ASCII)
_WITH_SCHEMA: Final = frozenset({"schema", "payload"})
# What JSON texts and those beside their schemas begin with.
_OF_JSON: Final = ('"', "{")
# The names that Kafka's clients and Spark's source of Kafka use.
_MEMBERS: Final = frozenset(
    {
        *("topic", "partition", "offset", "timestamp", "timestampType", "timestamp_type"),
        *("key", "value", "headers"),
    }
)


_ONE: Final = msgspec.json.Decoder(msgspec.Raw)
_TOLD: Final = msgspec.json.Decoder(list[str | None])


def is_record(value: Any) -> bool:
    """Return whether a JSON value has the members of a Kafka record, its value among them, whatever it is.

    >>> is_record({"topic": "shop", "value": "AA=="}), is_record({"topic": "shop"}), is_record({"value": None, "op": "c"})
    (True, False, False)
    """
    return type(value) is dict and VALUE in value and value.keys() <= _MEMBERS


def record_text(members: Mapping[str, Any], key: bytes | None, value: bytes | None) -> bytes:
    """Return the JSON of a Kafka record; `value` is JSON, and so is `key`, or it becomes a string, in base64.

    >>> record_text({"topic": "shop"}, b"1:a", b'{"a":1}')
    b'{"topic":"shop","key":"MTph","value":{"a":1}}'
    """
    others = render({name: member for name, member in members.items() if name not in (KEY, VALUE)})
    own = b"null" if key is None else key if _is_json(key) else b'"%s"' % b64encode(key)
    return b"%s%s%s" % (
        others[:-1],
        b"," if len(others) > len("{}") else b"",
        b'"key":%s,"value":%s}' % (own, value or b"null"),
    )


def _is_json(text: bytes) -> bool:
    try:
        _ONE.decode(text)
    except (msgspec.MsgspecError, RecursionError):
        return False
    return True


def is_kafka_record(value: Any) -> bool:
    """Return whether a JSON value is a Kafka record with an object as its value.

    >>> is_kafka_record({"topic": "shop", "value": {}}), is_kafka_record({"topic": "shop", "value": {}, "op": "c"})
    (True, False)
    """
    return type(value) is dict and type(value.get(VALUE)) is dict and value.keys() <= _MEMBERS


def is_tombstone(value: Any) -> bool:
    """Return whether a JSON value is a Kafka record without a value, but with an object as its key.

    >>> is_tombstone({"topic": "shop", "key": {"id": 1}, "value": None}), is_tombstone({"key": 1, "value": None})
    (True, False)
    """
    is_of_key = type(value) is dict and type(value.get(KEY)) is dict and value.keys() <= _MEMBERS
    return is_of_key and value.get(VALUE, value) is None


def lacks_value(value: dict[str, Any]) -> bool:
    """Return whether an object is a Kafka record, of a topic that it names, without a value.

    >>> lacks_value({"topic": "shop", "key": 1, "value": None}), lacks_value({"key": 1, "value": None})
    (True, False)
    """
    return "topic" in value and value.keys() <= _MEMBERS and value.get(VALUE) is None


def without_value(record: dict[str, Any]) -> dict[str, Any]:
    """Return the members of a Kafka record other than its value."""
    return {name: member for name, member in record.items() if name != VALUE}


def wrap_message(message: dict[str, Any], text: str) -> dict[str, Any]:
    """Return the Kafka record around a message; `text` is that of its other members. Raises `PayloadError`."""
    try:
        members = parse(text, above=0)
    except TextError as error:
        raise PayloadError(f"{error.expected} in extras", error.got, pointer=error.pointer) from error
    if type(members) is not dict or VALUE in members or not members.keys() <= _MEMBERS:
        raise PayloadError("the members of a Kafka record in extras", shown(text))
    return {**members, VALUE: message}


def unwraps_records(names: Iterable[str]) -> bool:
    """Return whether messages of a format with these members are the values of Kafka records, and not the records."""
    return VALUE not in names


def headers_of(record: Mapping[str, Any], names: Container[str] | None = None) -> list[tuple[str, bytes | None]]:
    """Return the headers of a Kafka record, none if it has no such member. Raises `StructureError` for anything else.

    With `names`, others may have any value, which is not read, and is None.

    >>> headers_of({"headers": [{"key": "__op", "value": "dQ=="}]}), headers_of({"headers": ["__op", "u", "__lsn", None]})
    ([('__op', b'u')], [('__op', b'u'), ('__lsn', None)])
    """
    stated = record.get(HEADERS)
    if stated is None:
        return []
    if type(stated) is list and len(stated) % 2 == 0 and all(type(name) is str for name in stated[::2]):
        texts = stated[1::2]
        if all(type(text) in (str, type(None)) for text in texts):
            values = [None if text is None else text.encode() for text in texts]
            return list(zip(stated[::2], values, strict=True))
    if type(stated) is list and all(type(one) is dict and type(one.get(KEY)) is str for one in stated):
        texts = [one.get(VALUE) if names is None or one[KEY] in names else None for one in stated]
        return [(one[KEY], _from_base64(one[KEY], text)) for one, text in zip(stated, texts, strict=True)]
    expected = "a list of objects with key and value, or of names and texts in turn"
    raise StructureError(expected, shown(render(stated).decode()), pointer=f"/{HEADERS}")


def _from_base64(name: str, text: Any) -> bytes | None:
    if text is None:
        return None
    try:
        return b64decode(text, validate=True)
    except (ValueError, TypeError) as error:
        raise StructureError("base64", shown(str(text)), pointer=_pointer(name)) from error


def _pointer(name: str) -> str:
    return f"/{HEADERS}/{escape(name)}"


def members_of_headers(headers: Headers, are_numbers: Mapping[str, bool]) -> dict[str, Any]:
    """Return the members that headers state, of those whose names have whether they are whole numbers.

    A value is a text, as Kafka Connect's simple converter writes it, or JSON, perhaps beside its schema, as its JSON
    converter does. Raises `StructureError` for another one, and for two headers of a name that differ.

    >>> members_of_headers([("__op", b'"u"'), ("__lsn", b"7"), ("trace", b"x")], {"__op": False, "__lsn": True})
    {'__op': 'u', '__lsn': 7}
    """
    members: dict[str, Any] = {}
    for name, raw in headers:
        if name == UNTOLD:
            raise StructureError("headers with names in UTF-8", "another one", pointer=f"/{HEADERS}")
        if name in are_numbers:
            value = _header_value(name, raw, is_number=are_numbers[name])
            if name in members and members[name] != value:
                first, other = (shown(render(one).decode()) for one in (members[name], value))
                raise StructureError(f"one value of the header, {first}", f"also {other}", pointer=_pointer(name))
            members[name] = value
    return members


def _header_value(name: str, raw: bytes | None, *, is_number: bool) -> Any:
    if raw is None:
        return None
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        raise StructureError("text in UTF-8 in the header", shown(repr(raw)), pointer=_pointer(name)) from error
    if "\0" in text:
        # As in what a registry frames.
        raise StructureError("text or JSON in the header", shown(repr(raw)), pointer=_pointer(name))
    value: Any = text
    if is_number and _WHOLE.fullmatch(text):
        return int(text)
    if is_number or text[:1] in _OF_JSON or text == "null":
        with suppress(MessageError):
            value = parse_fast(raw)
    if type(value) is dict:
        value = value["payload"] if value.keys() == _WITH_SCHEMA else text
    if value is None or type(value) is (int if is_number else str):
        return value
    if type(value) is int:
        return str(value)
    expected = "a whole number" if is_number else "a text"
    raise StructureError(f"{expected} in the header", shown(text), pointer=_pointer(name))


def headers_in(head: bytes) -> Headers:
    """Return headers from their JSON, as `split_headers` has split it. Raises `TextError` and `StructureError`."""
    try:
        told = _TOLD.decode(head)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        told = []
    names = [name for name in told[::2] if name is not None]
    texts = [None if text is None else text.encode() for text in told[1::2]]
    # What is no list of names and texts in turn may be one of objects.
    return (
        list(zip(names, texts, strict=True))
        if 0 < len(names) == len(texts)
        else headers_of({HEADERS: parse_fast(head)})
    )


def put_before(value: bytes | None, headers: Headers) -> bytes:
    r"""Return the value of a Kafka record, which may be null, behind some of its headers.

    >>> put_before(b"{}", [("__op", b"u")]), split_headers(put_before(None, [("__op", None)]))
    (b'\x05headers["__op","u"]\n{}', (b'["__op",null]', None))
    """
    try:
        stated: list[Any] = [part for name, raw in headers for part in (name, None if raw is None else raw.decode())]
    except UnicodeDecodeError:
        stated = [{KEY: name, VALUE: None if raw is None else b64encode(raw).decode()} for name, raw in headers]
    return put_back(render(stated), value)


def put_back(head: bytes, value: bytes | None) -> bytes:
    """Return a value behind the JSON of its headers, as `split_headers` has split them."""
    return HEADED + head if value is None else b"%s%s\n%s" % (HEADED, head, value)


def split_headers(raw: bytes) -> tuple[bytes | None, bytes | None]:
    """Return what `put_before` put before a value, as the JSON of the member `headers`, and the value; None for none."""
    if not raw.startswith(HEADED):
        return None, raw
    head, is_there, value = raw[len(HEADED) :].partition(b"\n")
    # Anybody may have written it.
    return (head, value if is_there else None) if _is_json(head) else (None, raw)

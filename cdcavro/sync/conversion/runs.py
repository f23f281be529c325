"""Runs of messages in a batch: successive messages of one lane (topic partition or file) and one format."""

from __future__ import annotations

import base64
import json
import re
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from cdcavro.arrow.arrays import blank, convert_values, places
from cdcavro.change.model import Arrival
from cdcavro.errors import MessageError, PayloadError, StructureError, TextError, shown
from cdcavro.exact.jsontext import parse, to_bytes
from cdcavro.files.lines import Line
from cdcavro.files.streams import plain_path
from cdcavro.formats import BRIDGES
from cdcavro.formats.connect_avro import whole_text
from cdcavro.registry.framing import FRAMED_KEYS
from cdcavro.sync.conversion.framed_messages import HEAD, IS_READ, KEY, OPENED, TEXT, are_headed
from cdcavro.wire.format import CODECS
from cdcavro.wire.formats import get_format
from cdcavro.wire.kafka import headers_in, members_of_headers, split_headers
from cdcavro.wire.sniff import MIXED, sniff

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from cdcavro.sync.conversion.outcome_rows import Message
    from cdcavro.sync.settings import Formats
    from cdcavro.wire.format import Format

# The format of a run whose messages have no known format.
MIXED_RUN: Final = ""
_LANE: Final = ("topic", "partition", "file")
# Reads to the end of one JSON value, without making anything of it.
_ONE: Final = msgspec.json.Decoder(msgspec.Raw)
_MEMBERS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_LONG_KEY: Final = 1 << 10
HEADERS: Final = "headers"
# How many bytes of headers the rows of a message repeat at most: so many, and so many for each byte of its value.
_REPEATED: Final = 64 << 10
_TIMES: Final = 32
# Of how many tables the columns of their keys are remembered.
_MOST_KEYS: Final = 10_000
# How many messages that were read without their texts are opened at a time for one that is left.
_OPENED_AT_ONCE: Final = 256
# The columns of the first key of each table: its topic, its format, and what the keys beside their columns say.
KnownKeys = dict[tuple[str | None, str, tuple[bytes, ...]], frozenset[str]]
# What tells bytes from a text.
_CONTROL: Final = re.compile("[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f]")


class MessageHeaders(NamedTuple):
    """The headers of the Kafka records of some messages."""

    # As `headers_text` writes them.
    texts: pa.Array
    # How many bytes of them the rows of a message may have beyond those of one row.
    most: pa.Array


@dataclass(frozen=True)
class MessageRun:
    """Messages of one lane and one format."""

    # Topic, partition and file.
    lane: tuple[str | None, int | None, str | None]
    # `MIXED_RUN` if none is known.
    format: str
    # The errors of messages without a format, each with its index.
    errors: list[tuple[int, MessageError]]
    # Offsets or lines.
    first: int
    last: int
    # What is converted, and the places.
    messages: pa.RecordBatch
    # The messages as they came.
    batch: pa.RecordBatch
    # The Kafka records of messages that stand without their keys in `messages`, or are empty there.
    records: pa.Array | None = None
    # The texts of messages that were read without, so many at a time.
    texts: Callable[[int], Sequence[bytes | None]] | None = None

    @property
    def is_read(self) -> bool:
        """Whether what is converted are payloads, which `EnvelopeEngine.read_column` made."""
        return self.texts is not None

    def text(self, i: int, taken: bytes) -> bytes:
        """Return the whole text of a message of which the engine was given `taken`."""
        if self.texts is not None:
            taken = self.texts(i // _OPENED_AT_ONCE)[i % _OPENED_AT_ONCE] or b""
        return whole_text(taken, self.head)

    @property
    def head(self) -> bytes:
        """What `whole_text` completes what is converted with; empty if that is whole."""
        head: bytes = (self.batch.schema.metadata or {}).get(HEAD, b"")
        return head

    @property
    def count(self) -> int:
        """How many messages there are."""
        return int(self.batch.num_rows)

    @property
    def tombstones(self) -> int:
        """How many of them are null, and say nothing."""
        is_null = pc.and_(self.batch.column("raw").is_null(), self.messages.column("message").is_null())
        return int(pc.sum(is_null).as_py() or 0)

    def messages_without(self, indexes: Collection[int]) -> pa.RecordBatch:
        """Return `messages` with empty texts instead of some, which the engine takes for none."""
        if not indexes:
            return self.messages
        texts = pc.if_else(pa.array([i in indexes for i in range(self.count)]), _literal(b""), self.messages.column(0))
        return self.messages.set_column(0, "message", texts)

    def raw(self, i: int) -> bytes | None:
        """Return a message as it came."""
        value: bytes | None = self.batch.column("raw")[i].as_py()
        return value

    def key(self, i: int) -> bytes | None:
        """Return the key of a message's Kafka record."""
        value: bytes | None = self.batch.column("key")[i].as_py()
        return value

    def record(self, i: int) -> bytes | None:
        """Return the record of a message that stands without its key, or is empty; None for others."""
        value: bytes | None = None if self.records is None else self.records[i].as_py()
        return value

    @property
    def headers(self) -> MessageHeaders | None:
        """The headers of the messages' Kafka records; None where they are not read."""
        if HEADERS not in self.batch.schema.names:
            return None
        texts = pa.array(map(headers_text, self.batch.column(HEADERS).to_pylist()), pa.string())
        length = pc.fill_null(self.batch.column("length"), 0)
        return MessageHeaders(texts, pc.add(pc.multiply(length, _TIMES), _REPEATED))

    def length(self, i: int) -> int:
        """Return how many bytes a message had, 0 for null."""
        return int(self.batch.column("length")[i].as_py() or 0)

    def place(self, i: int) -> Arrival:
        """Return where a message arrived."""
        return Arrival(**self.messages.column("place")[i].as_py())


def headers_text(headers: Sequence[Mapping[str, Any]] | None) -> str | None:
    r"""Return the headers of a Kafka record as JSON, in their order; None of a record without headers.

    A value is a text, or null, under `value`; bytes that are no text, or one with control characters, are under `base64`.

    >>> print(headers_text([{"key": "trace", "value": b"7f"}, {"key": "id", "value": b"\0"}, {"key": "a", "value": None}]))
    [{"key":"trace","value":"7f"},{"key":"id","base64":"AA=="},{"key":"a","value":null}]
    """
    if not headers:
        return None
    return orjson.dumps([{"key": one["key"], **_header_value(one["value"])} for one in headers]).decode()


def _header_value(value: bytes | None) -> dict[str, str | None]:
    if value is None:
        return {"value": None}
    with suppress(UnicodeDecodeError):
        if not _CONTROL.search(text := value.decode()):
            return {"value": text}
    return {"base64": base64.b64encode(value).decode()}


def _with_members(texts: pa.Array, format: Format) -> tuple[pa.Array, pa.Array | None]:
    """Return messages with the members that headers before them state, and the headers of those that are without."""
    if not format.headers or not pc.any(is_headed := are_headed(texts)).as_py():
        return texts, None
    values, splice = texts.to_pylist(), BRIDGES[format.name].splice_members
    heads: list[bytes | None] = [None] * len(values)
    for i in pc.indices_nonzero(is_headed).to_pylist():
        head, value = split_headers(values[i])
        values[i], heads[i], spliced = value, head, None
        if head is not None and value is not None:
            # What is wrong is said where the record is read.
            with suppress(MessageError):
                spliced = splice(value, members_of_headers(headers_in(head), format.headers))
        if spliced is not None:
            values[i], heads[i] = spliced, None
    stated = pa.array(heads, pa.binary())
    return pa.array(values, pa.binary()), None if stated.null_count == len(stated) else stated


def runs_of(
    batch: pa.RecordBatch,
    formats: Formats,
    lines: dict[str, int],
    keys: KnownKeys | None = None,
    open_texts: Callable[[pa.RecordBatch], pa.RecordBatch] | None = None,
) -> Iterator[MessageRun]:
    """Yield the runs of a batch of `sources.COLUMNS`; `lines` counts the lines of each file so far.

    `keys` has the keys of the task so far. `open_texts` opens messages that were read without their texts.
    """
    keys = {} if keys is None else keys
    for start, end in _cuts(batch):
        part = batch.slice(start, end - start)
        topic, partition, uri = (part.column(name)[0].as_py() for name in _LANE)
        file = None if uri is None else plain_path(uri)
        numbers = part.column("offset")
        if file is not None:
            first = lines.get(file, 0) + 1
            lines[file] = first + part.num_rows - 1
            numbers = pc.add(places(part.num_rows).cast(pa.int64()), first)
        known = formats.format_of(file if topic is None else topic)
        for format, errors, begin, stop in _formats(part, known):
            own, at = part.slice(begin, stop - begin), numbers.slice(begin, stop - begin)
            # Nothing tells the format of null.
            texts_of = partial(_texts, topic=topic, format=format, keys=keys, is_told=format == known)
            opener = open_texts if IS_READ in (own.schema.metadata or {}) else None
            messages, records = texts_of(own) if opener is None else (own.column(TEXT), None)
            yield MessageRun(
                (topic, partition, file),
                format,
                errors,
                at[0].as_py(),
                at[-1].as_py(),
                pa.RecordBatch.from_arrays([messages, _places(at, topic, partition, file)], ["message", "place"]),
                own,
                records,
                None if opener is None else lru_cache(maxsize=1)(partial(_opened_texts, own, opener, texts_of)),
            )


def replayed_text(message: Message, formats: Formats, row: Mapping[str, Any]) -> tuple[str, bytes]:
    """Return the format of a message that is read again, and what is converted; `row` has its text if it was opened.

    Raises `UnknownMessageError`, and `PayloadError` if the message could not be opened.
    """
    place, text = message.place, message.raw
    known = formats.format_of(None if place is None else place.file if place.topic is None else place.topic)
    if TEXT in row:
        error = _opened_format(row["format"], row["expected"], row["got"])
        if isinstance(error, MessageError):
            raise error
        text, known = row[TEXT], row["format"]
    head, value = (None, None) if text is None else split_headers(text)
    format = sniff(value or b"") if known == MIXED else known
    key, own = row.get(KEY, message.key), get_format(format)
    if not own.headers:
        # It was read with headers before.
        head = None
    if (key is None and head is None) or not own.reads_keys:
        return format, value or b""
    topic = "" if place is None else place.topic or ""
    # A reject without headers before it has no bytes for null.
    is_null = (value is None if head is not None else not value) and own.rule.has_tombstones
    keys, texts, heads = (pa.array([one], pa.binary()) for one in (key, None if is_null else value, head))
    (record,) = _records(topic, keys, texts, own, is_told=is_null, heads=heads).to_pylist()
    return format, record or b""


def check_key(message: Message, text: bytes) -> None:
    """Raise `StructureError` if a message's format reads the key of its Kafka record, and that is not what it reads.

    That is JSON, and an object if there is no value. A framed key became JSON, or `text`, which is converted, would be
    empty.
    """
    format, key = message.format, message.key
    if key is None or format is None or not get_format(format).reads_keys or (text and key.startswith(FRAMED_KEYS)):
        return
    if get_format(format).rule.key:
        # One that names no columns is none of a row's.
        return
    got = shown(key.decode(errors="backslashreplace"))
    try:
        parse(key)
    except TextError as error:
        raise StructureError("JSON as the key of the Kafka record", got, format=format) from error
    if not (text or split_headers(message.raw)[1]) and get_format(format).rule.has_tombstones:
        raise StructureError("an object as the key of a Kafka record without a value", got, format=format)


def _cuts(batch: pa.RecordBatch) -> Iterator[tuple[int, int]]:
    """Yield where runs of one lane begin and end."""
    count = batch.num_rows
    if not count:
        return
    changed = pa.array([False] * (count - 1), pa.bool_())
    for name in _LANE:
        column = batch.column(name)
        if column.null_count < count:
            changed = pc.or_(changed, pc.not_equal(column.slice(1), column.slice(0, count - 1)))
    cuts = [0, *[i + 1 for i in pc.indices_nonzero(changed).to_pylist()], count]
    yield from pairwise(cuts)


def _formats(part: pa.RecordBatch, known: str) -> Iterator[tuple[str, list[tuple[int, MessageError]], int, int]]:
    """Yield the format of messages, the errors of those that have none, and from where to where."""
    if TEXT in part.schema.names:
        names = part.column("format").drop_null().unique().to_pylist()
        if len(names) == 1 and part.column("expected").null_count == part.num_rows:
            yield names[0], [], 0, part.num_rows
            return
        named = [
            _opened_format(*facts)
            for facts in zip(*[part.column(name).to_pylist() for name in OPENED[1:]], strict=True)
        ]
    elif known != MIXED:
        yield known, [], 0, part.num_rows
        return
    else:
        named = list(map(_sniff, part.column("raw").to_pylist(), part.column("length").to_pylist()))
    begin = 0
    for i in range(1, len(named) + 1):
        if i < len(named) and (named[i] is None or _format_name(named[i]) == _format_name(named[begin])):
            continue
        errors = [(j - begin, one) for j, one in enumerate(named[begin:i], begin) if isinstance(one, MessageError)]
        yield _format_name(named[begin]), errors, begin, i
        begin = i


def _sniff(raw: bytes | None, length: int | None) -> str | MessageError | None:
    try:
        return None if raw is None else sniff(Line(0, raw, length or 0).message())
    except MessageError as error:
        return error


def _opened_format(format: str | None, expected: str | None, got: str | None) -> str | MessageError | None:
    """Return the format of a message that was opened, why it could not be opened, or None without a message."""
    return format if expected is None else PayloadError(expected, got or "none", format=format)


def _format_name(format: str | MessageError | None) -> str:
    return format if isinstance(format, str) else MIXED_RUN


def _texts(
    part: pa.RecordBatch, topic: str | None, format: str, keys: KnownKeys, *, is_told: bool
) -> tuple[pa.Array, pa.Array | None]:
    """Return what is converted of messages, and the records of those that may stand without their keys.

    `keys` are as in `runs_of`, and `is_told` says that they are of the format whatever they are.
    """
    text = part.column(TEXT if TEXT in part.schema.names else "raw")
    is_cut = pc.fill_null(pc.greater(part.column("length"), pc.binary_length(part.column("raw"))), fill_value=False)
    if pc.any(is_cut).as_py():
        # The beginning of a message that is too long may be a message.
        text = pc.if_else(is_cut, _literal(b""), text)
    text, heads = _with_members(text, get_format(format)) if format else (text, None)
    text = _as_json(text, format)
    key = part.column(KEY if KEY in part.schema.names else "key")
    has_keys = key.null_count < part.num_rows
    if not format or not (has_keys or heads is not None) or not get_format(format).reads_keys:
        return text, None
    is_opened = TEXT in part.schema.names
    records = _records(topic or "", key, text, get_format(format), is_told=is_told, is_opened=is_opened, heads=heads)
    if not get_format(format).unwraps_records:
        return records, None
    alone = _without_keys(key, text, records, get_format(format), keys, topic) if has_keys else text
    if heads is None:
        return alone, records
    are_alone = heads.is_null()
    return pc.if_else(are_alone, alone, _literal(b"")), records if has_keys else blank(records, are_alone)


def _opened_texts(
    part: pa.RecordBatch,
    open_texts: Callable[[pa.RecordBatch], pa.RecordBatch],
    texts_of: Callable[[pa.RecordBatch], tuple[pa.Array, pa.Array | None]],
    number: int,
) -> list[bytes | None]:
    """Return what would be converted of messages if they had been opened as texts, as many as are opened at a time."""
    own = part.select([name for name in part.schema.names if name not in {*OPENED, KEY}])
    messages: list[bytes | None] = texts_of(open_texts(own.slice(number * _OPENED_AT_ONCE, _OPENED_AT_ONCE)))[
        0
    ].to_pylist()
    return messages


def _as_json(texts: pa.Array, format: str) -> pa.Array:
    """Return messages as JSON, which the engine types; those of formats that are bytes become it, if they can be read.

    Packets stay as they are, as the engine types them otherwise.
    """
    if format not in CODECS or CODECS[format].lines is not None:
        return texts
    return convert_values(texts, partial(_text_of, get_format(format)), batch=CODECS[format].column)


def _text_of(format: Format, message: bytes) -> bytes:
    with suppress(MessageError):
        return to_bytes(format.text_of(message))
    return message


def _places(numbers: pa.Array, topic: str | None, partition: int | None, file: str | None) -> pa.Array:
    values: Sequence[Any] = (topic, partition, file)
    known = {name: value for name, value in zip(_LANE, values, strict=True) if value is not None}
    types = {"topic": pa.string(), "partition": pa.int32(), "file": pa.string()}
    same = pa.nulls(len(numbers), pa.int32()).fill_null(0)
    fields = {name: pa.array([value], types[name]).take(same) for name, value in known.items()}
    fields["offset" if file is None else "line"] = numbers
    return pa.StructArray.from_arrays(list(fields.values()), list(fields))


def _without_keys(
    keys: pa.Array, texts: pa.Array, records: pa.Array, format: Format, known: KnownKeys, topic: str | None
) -> pa.Array:
    """Return the values of records that may stand without their keys; an empty text for others.

    Once a table is known, so is its key, which messages like one that was converted have, as long as all of them have
    keys of the same columns: one with others has its key, and is compared with its table. Where a key without a value
    deletes its row, a key is refused unless its row has it.
    """
    prefix, are_of_rows = format.rule.key, format.keys_are_of_rows

    def is_sure(key: bytes | None, text: bytes) -> bool:
        members = None if key is None else _plain_members(key)
        if key is None or members is None:
            return False
        names = frozenset(name for name in members if name.startswith(prefix))
        if not names:
            return not are_of_rows or _has_key(text, key)
        table = topic, format.name, tuple(bytes(one) for name, one in members.items() if name not in names)
        if table not in known and len(known) >= _MOST_KEYS:
            return False
        return known.setdefault(table, names) == names and (not are_of_rows or _has_key(text, key))

    facts = zip(keys.to_pylist(), texts.to_pylist(), records.is_valid().to_pylist(), strict=True)
    alone = [(text if text and is_sure(key, text) else b"") if is_there else None for key, text, is_there in facts]
    return pa.array(alone, pa.binary())


def _plain_members(key: bytes) -> dict[str, msgspec.Raw] | None:
    """Return the members of a key, if it is an object that the exact way reads: short, compact, with each name once."""
    if len(key) > _LONG_KEY or key.count(b"{") != 1 or b"\\" in key:
        return None
    try:
        members = _MEMBERS.decode(key)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
    stated = b"{%s}" % b",".join([b'"%s":%s' % (name.encode(), bytes(text)) for name, text in members.items()])
    return members if key == stated else None


def _has_key(text: bytes, key: bytes) -> bool:
    """Return whether an object has the members of a compact one, in the same words; mostly it begins with them."""
    if text.startswith(b"%s," % key[:-1]):
        return True
    try:
        row, columns = _MEMBERS.decode(text), _MEMBERS.decode(key)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return False
    return all(name in row and bytes(row[name]) == bytes(value) for name, value in columns.items())


def _records(
    topic: str,
    keys: pa.Array,
    texts: pa.Array,
    format: Format,
    *,
    is_told: bool,
    is_opened: bool = False,
    heads: pa.Array | None = None,
) -> pa.Array:
    """Return the JSON of Kafka records, for a format that reads a record's key; null without a message.

    A value that is not one JSON text stands alone, and is refused; a key that is none gives an empty text: a text that
    closes its member and goes on would make a record that nobody sent; where a key says no more than which columns are
    the key, the value stands alone beside such a one. A value of a format that describes no records
    stands alone, too, unless it is an object; a null one is a message if it is told that it is of such a format.
    `heads` has the headers of records that have some, null for others.
    """
    head = b'{"topic":' + json.dumps(topic).encode() + b',"key":'
    values = _with_tombstones(keys, texts, heads) if is_told and format.rule.has_tombstones else texts
    parts = [_literal(head), pc.fill_null(keys, b"null"), _literal(b',"value":'), values]
    if heads is not None:
        stated = pc.binary_join_element_wise(_literal(b',"headers":'), heads, _literal(b""))
        parts.append(pc.fill_null(stated, b""))
    parts.append(_literal(b"}"))
    joined = pc.binary_join_element_wise(*parts, _literal(b""), null_handling="emit_null")
    joined = pc.if_else(pc.equal(values, b""), values, joined)
    without_key = texts if format.rule.key else _literal(b"")
    checks = [(texts, texts, not format.unwraps_records), (keys, without_key, True)]
    # What was opened is one JSON text each.
    for one, otherwise, is_any in checks[1:] if is_opened and not format.unwraps_records else checks:
        broken = _are_broken(one, is_any=is_any)
        if any(broken):
            joined = pc.if_else(pa.array(broken), otherwise, joined)
    return joined


def _with_tombstones(keys: pa.Array, texts: pa.Array, heads: pa.Array | None) -> pa.Array:
    """Return the texts of values, that of null for one that is null beside an object as its key.

    Beside another key there is an empty text, which is refused; without a key and headers there is no message.
    """
    if not texts.null_count:
        return texts
    values = texts.to_pylist()
    for i, (key, text) in enumerate(zip(keys.to_pylist(), values, strict=True)):
        has_key = key is not None and key.strip() != b"null"
        if text is None and (has_key or (heads is not None and heads[i].is_valid)):
            values[i] = b"" if has_key and not key.lstrip().startswith(b"{") else b"null"
    return pa.array(values, texts.type)


def _are_broken(texts: pa.Array, *, is_any: bool) -> list[bool]:
    """Return for each text whether it is anything but one JSON text, an object unless any will do; False for null."""
    ends = memoryview(texts.buffers()[1]).cast("i")[texts.offset : texts.offset + len(texts) + 1]
    data = memoryview(texts.buffers()[2] or b"")
    there = texts.is_valid().to_pylist()
    return [
        is_there and not (_is_json(data[start:end]) and (is_any or _is_object(data[start:end])))
        for is_there, (start, end) in zip(there, pairwise(ends), strict=True)
    ]


def _is_object(text: memoryview) -> bool:
    return bytes(text).lstrip().startswith(b"{")


def _is_json(text: memoryview) -> bool:
    try:
        _ONE.decode(text)
    except (msgspec.MsgspecError, RecursionError):
        return False
    return True


def _literal(value: bytes) -> pa.Scalar:
    return pa.scalar(value, pa.binary())

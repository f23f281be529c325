"""Messages of a batch in runs: those of one lane (topic partition or file) and one format, one behind another."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from cdcavro.change.model import Arrival
from cdcavro.errors import MessageError, PayloadError, StructureError, TextError, shown
from cdcavro.exact.jsontext import parse
from cdcavro.spark.job.line_frame import plain_path
from cdcavro.spark.pipeline.conversion.framed_messages import OPENED, TEXT
from cdcavro.wire.formats import get_format
from cdcavro.wire.sniff import MIXED, sniff

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from cdcavro.spark.pipeline.conversion.outcome_columns import Message
    from cdcavro.spark.pipeline.settings import Formats

# The format of a run of messages of which none is known.
MIXED_RUN: Final = ""
_LANE: Final = ("topic", "partition", "file")
# Reads to the end of one JSON value, and makes nothing of it.
_ONE: Final = msgspec.json.Decoder(msgspec.Raw)


@dataclass(frozen=True)
class Run:
    """Messages of one lane and one format.

    Attributes: `lane` (tuple of topic, partition and file); `format` (str), `MIXED_RUN` if none is known, and then
    `errors` (list of pairs of an index and the error); `first` and `last` (int), their offsets or lines; `messages`
    (RecordBatch), what is converted, and the places; `batch` (RecordBatch), as they came.
    """

    lane: tuple[str | None, int | None, str | None]
    format: str
    errors: list[tuple[int, MessageError]]
    first: int
    last: int
    messages: pa.RecordBatch
    batch: pa.RecordBatch

    @property
    def count(self) -> int:
        """How many messages there are."""
        return int(self.batch.num_rows)

    @property
    def tombstones(self) -> int:
        """How many of them are null."""
        return int(self.batch.column("raw").null_count)

    def raw(self, i: int) -> bytes | None:
        """Return a message as it came."""
        value: bytes | None = self.batch.column("raw")[i].as_py()
        return value

    def key(self, i: int) -> bytes | None:
        """Return the key of a message's Kafka record."""
        value: bytes | None = self.batch.column("key")[i].as_py()
        return value

    def length(self, i: int) -> int:
        """Return how many bytes a message had."""
        return int(self.batch.column("length")[i].as_py())

    def place(self, i: int) -> Arrival:
        """Return where a message arrived."""
        return Arrival(**self.messages.column("place")[i].as_py())


def runs_of(batch: pa.RecordBatch, formats: Formats, lines: dict[str, int]) -> Iterator[Run]:
    """Yield the runs of a batch of `sources.COLUMNS`; `lines` has how many lines of each file came before, and is told."""
    for start, end in _cuts(batch):
        part = batch.slice(start, end - start)
        topic, partition, uri = (part.column(name)[0].as_py() for name in _LANE)
        file = None if uri is None else plain_path(uri)
        numbers = part.column("offset")
        if file is not None:
            first = lines.get(file, 0) + 1
            lines[file] = first + part.num_rows - 1
            numbers = pa.array(range(first, first + part.num_rows), pa.int64())
        told = formats.told(file if topic is None else topic)
        for format, errors, begin, stop in _formats(part, told):
            own, at = part.slice(begin, stop - begin), numbers.slice(begin, stop - begin)
            yield Run(
                (topic, partition, file),
                format,
                errors,
                at[0].as_py(),
                at[-1].as_py(),
                _messages(own, at, topic, partition, file, format),
                own,
            )


def replayed(message: Message, formats: Formats, row: Mapping[str, Any]) -> tuple[str, bytes]:
    """Return the format of a message that is read again, and what is converted; `row` has what was opened of it, if it was.

    Raises `UnknownMessageError`, and `PayloadError` for what could not be opened.
    """
    place, text = message.place, message.raw
    told = formats.told(None if place is None else place.file if place.topic is None else place.topic)
    if TEXT in row:
        error = _named(row["format"], row["expected"], row["got"])
        if isinstance(error, MessageError):
            raise error
        text, told = row[TEXT], row["format"]
    format = sniff(text) if told == MIXED else told
    if message.key is None or get_format(format).unwraps_records:
        return format, text
    topic = "" if place is None else place.topic or ""
    (record,) = _records(topic, pa.array([message.key]), pa.array([text])).to_pylist()
    return format, record


def check_key(message: Message) -> None:
    """Raise `StructureError` if a message's format reads the key of its Kafka record, and that is no JSON."""
    format, key = message.format, message.key
    if key is None or format is None or get_format(format).unwraps_records:
        return
    try:
        parse(key)
    except TextError as error:
        raise StructureError(
            "JSON as the key of the Kafka record", shown(key.decode(errors="backslashreplace")), format=format
        ) from error


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


def _formats(part: pa.RecordBatch, told: str) -> Iterator[tuple[str, list[tuple[int, MessageError]], int, int]]:
    """Yield the format of messages, the errors of those that have none, and from where to where."""
    if TEXT in part.schema.names:
        named = [_named(*facts) for facts in zip(*[part.column(name).to_pylist() for name in OPENED[1:]], strict=True)]
    elif told != MIXED:
        yield told, [], 0, part.num_rows
        return
    else:
        named = [_sniffed(raw) for raw in part.column("raw").to_pylist()]
    begin = 0
    for i in range(1, len(named) + 1):
        if i < len(named) and (named[i] is None or _name(named[i]) == _name(named[begin])):
            continue
        errors = [(j - begin, one) for j, one in enumerate(named[begin:i], begin) if isinstance(one, MessageError)]
        yield _name(named[begin]), errors, begin, i
        begin = i


def _sniffed(raw: bytes | None) -> str | MessageError | None:
    try:
        return None if raw is None else sniff(raw)
    except MessageError as error:
        return error


def _named(format: str | None, expected: str | None, got: str | None) -> str | MessageError | None:
    """Return what is known of a message that was opened: its format, why it could not be, or nothing of none."""
    return format if expected is None else PayloadError(expected, got or "none", format=format)


def _name(told: str | MessageError | None) -> str:
    return told if isinstance(told, str) else MIXED_RUN


def _messages(
    part: pa.RecordBatch, numbers: pa.Array, topic: str | None, partition: int | None, file: str | None, format: str
) -> pa.RecordBatch:
    """Return messages and their places."""
    text = part.column(TEXT if TEXT in part.schema.names else "raw")
    is_cut = pc.fill_null(pc.greater(part.column("length"), pc.binary_length(text)), fill_value=False)
    if pc.any(is_cut).as_py():
        # The beginning of a message that is too long may be a message.
        text = pc.if_else(is_cut, _literal(b""), text)
    if format and part.column("key").null_count < part.num_rows and not get_format(format).unwraps_records:
        text = _records(topic or "", part.column("key"), text)
    values: Sequence[Any] = (topic, partition, file)
    known = {name: value for name, value in zip(_LANE, values, strict=True) if value is not None}
    types = {"topic": pa.string(), "partition": pa.int32(), "file": pa.string()}
    same = pa.nulls(part.num_rows, pa.int32()).fill_null(0)
    fields = {name: pa.array([value], types[name]).take(same) for name, value in known.items()}
    fields["offset" if file is None else "line"] = numbers
    place = pa.StructArray.from_arrays(list(fields.values()), list(fields))
    return pa.RecordBatch.from_arrays([text, place], ["message", "place"])


def _records(topic: str, keys: pa.Array, texts: pa.Array) -> pa.Array:
    """Return the JSON of Kafka records, for a format that reads a record's key; null without a message.

    Of a value that is not one JSON text there is the value alone, which is refused, and of such a key nothing is: what
    closes its member and goes on would be a record that nobody sent.
    """
    head = b'{"topic":' + json.dumps(topic).encode() + b',"key":'
    parts = [_literal(head), pc.fill_null(keys, b"null"), _literal(b',"value":'), texts, _literal(b"}")]
    joined = pc.binary_join_element_wise(*parts, _literal(b""), null_handling="emit_null")
    for one, otherwise in ((texts, texts), (keys, _literal(b""))):
        broken = _broken(one)
        if any(broken):
            joined = pc.if_else(pa.array(broken), otherwise, joined)
    return joined


def _broken(texts: pa.Array) -> list[bool]:
    """Return of each text whether it is something else than one JSON text; a null is not."""
    ends = memoryview(texts.buffers()[1]).cast("i")[texts.offset : texts.offset + len(texts) + 1]
    data = memoryview(texts.buffers()[2] or b"")
    there = texts.is_valid().to_pylist()
    return [
        is_there and not _is_one(data[start:end]) for is_there, (start, end) in zip(there, pairwise(ends), strict=True)
    ]


def _is_one(text: memoryview) -> bool:
    try:
        _ONE.decode(text)
    except (msgspec.MsgspecError, RecursionError):
        return False
    return True


def _literal(value: bytes) -> pa.Scalar:
    return pa.scalar(value, pa.binary())

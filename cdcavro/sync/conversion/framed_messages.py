"""Framed messages: payloads of wire schemas, turned back into the texts of messages before these are converted.

Each value is treated as `cdcavro decode` treats a container file: the schema that wrote it is found in the registry by
what stands before the payload, and names the format. A payload of a schema of Kafka Connect's is an envelope of
Debezium's, or a row without one, and becomes the text of its JSON converter; the key of such a record, framed too,
becomes one beside it, without its schema, which says nothing that the value's does not. A payload of any other schema is
a reject.
"""

from __future__ import annotations

import json
from collections import deque
from contextlib import suppress
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from cdcavro.arrow.arrays import blank, convert_values, slices_of
from cdcavro.avro.schema import parse_schema
from cdcavro.avro.types import Record
from cdcavro.engine.payloads import MAX_BYTES
from cdcavro.errors import JobError, MessageError, PayloadError, RegistryError, SchemaError, TextError, shown
from cdcavro.exact.jsontext import MAX_LENGTH
from cdcavro.files.lines import KEPT
from cdcavro.formats.connect_avro import ConnectReader, is_connect
from cdcavro.formats.connect_messages import FORMAT as CONNECT
from cdcavro.formats.connect_messages import OF_CONNECT
from cdcavro.registry.backend import normal_form
from cdcavro.registry.client import MAX_SCHEMAS, look_up_schemas
from cdcavro.registry.framing import FRAMED_KEYS, FRAMINGS, HEADERS, unframe
from cdcavro.sync.conversion.outcome_rows import failure_summary
from cdcavro.sync.sources import STATED
from cdcavro.wire.formats import format_of, get_format
from cdcavro.wire.kafka import HEADED, put_back, put_before, split_headers
from cdcavro.wire.sniff import MIXED, sniff

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from cdcavro.avro.schema import Schema
    from cdcavro.engine.machine import EnvelopeEngine
    from cdcavro.engine.payloads import Batch
    from cdcavro.registry import Registry
    from cdcavro.sync.settings import Formats, RegistrySettings

    Convert = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]

TEXT: Final = "text"
_SHOWN: Final = 2
# How many characters of schemas the texts of a batch have at most, if they are of more than one message. More would
# not stay in a processor's cache: of 64 Mi characters, each message takes 3 microseconds longer, of 4 Mi none.
_REPEATED: Final = 4 << 20
# The text of a message, its format if it is known, and if there is no text what was expected and what came.
OPENED: Final = (TEXT, "format", "expected", "got")
# The JSON of a record's key: as it came, or of a framed one what it became.
KEY: Final = "key text"
# The head of a batch's texts, in its schema's metadata, if they are brief.
HEAD: Final = b"head"
# Stands there, too, if the texts are none, but what `EnvelopeEngine.read_column` made of the messages.
IS_READ: Final = b"is read"


def open_framed(convert: Convert, access: RegistrySettings, formats: Formats) -> Convert:
    """Return the function of a task that opens batches of `sources.COLUMNS` for the one that converts them."""

    def converted_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        messages = iter(batches)
        try:
            opener = Opener(access, formats, is_brief=True)
            yield from convert(part for batch in messages for part in opener.open_in_parts(batch))
        except (JobError, RegistryError) as error:
            yield failure_summary(error)
            # Spark wants all batches to be read.
            deque(messages, maxlen=0)

    return converted_batches


def with_stated(batch: pa.RecordBatch, formats: Formats) -> pa.RecordBatch:
    """Return a batch of `sources.COLUMNS`, in which headers that formats read stand before their messages.

    So they stay with these, whatever becomes of them.
    """
    if STATED not in batch.schema.names:
        return batch
    stated, batch = batch.column(STATED), batch.select([name for name in batch.schema.names if name != STATED])
    # A message that only looks as if it had headers gets none before it, unless it is a reject that is read again.
    is_new = batch.column("clock").is_null()
    has_any = pc.fill_null(pc.greater(pc.list_value_length(stated), 0), fill_value=False)
    looked_at = pc.and_(is_new, pc.or_(has_any, are_headed(batch.column("raw"))))
    if not pc.any(looked_at).as_py():
        return batch
    values, lengths, topics = (batch.column(name).to_pylist() for name in ("raw", "length", "topic"))
    known = {topic: formats.headers_of(topic) for topic in {*topics}}
    keys, parts = (stated.values.field(name).to_pylist() for name in ("key", "value"))
    ends = stated.offsets.to_pylist()
    for i in pc.indices_nonzero(looked_at).to_pylist():
        value, names, own_places = values[i], known[topics[i]], range(ends[i], ends[i + 1])
        own = [(keys[j], parts[j]) for j in own_places if keys[j] in names]
        if own or (names and value is not None and value.startswith(HEADED)):
            values[i] = put_before(value, own)
            lengths[i] = len(values[i]) - len(value or b"") + (lengths[i] or 0)
    return _replaced(batch, values, lengths)


def with_true_lengths(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch of `sources.COLUMNS`, in which rejects that are read again are as long as their bytes.

    One of which there is the beginning only, behind its headers, is as long as its reason says. All others, whatever
    their reasons say, are whole: somebody has repaired them, or they were encrypted.
    """
    raw = batch.column("raw")
    is_longer = pc.greater(batch.column("length"), pc.binary_length(raw).cast(pa.int64()))
    is_longer = pc.fill_null(pc.and_(is_longer, batch.column("clock").is_valid()), fill_value=False)
    if not pc.any(is_longer).as_py():
        return batch
    values, lengths = raw.to_pylist(), batch.column("length").to_pylist()
    for i in pc.indices_nonzero(is_longer).to_pylist():
        if len(split_headers(values[i])[1] or b"") != KEPT:
            lengths[i] = len(values[i])
    return _replaced(batch, values, lengths)


def without_headers(batch: pa.RecordBatch) -> tuple[list[bytes | None] | None, pa.RecordBatch]:
    """Return what stands before the messages of a batch, None if nothing does, and the batch without it."""
    raw = batch.column("raw")
    if not pc.any(are_headed(raw)).as_py():
        return None, batch
    parts = [(None, None) if one is None else split_headers(one) for one in raw.to_pylist()]
    values = [value for _, value in parts]
    facts = zip(raw.to_pylist(), values, batch.column("length").to_pylist(), strict=True)
    lengths = [None if value is None else length - len(one or b"") + len(value) for one, value, length in facts]
    return [head for head, _ in parts], _replaced(batch, values, lengths)


def _replaced(batch: pa.RecordBatch, values: list[bytes | None], lengths: list[int | None]) -> pa.RecordBatch:
    for name, column in (("raw", pa.array(values, pa.binary())), ("length", pa.array(lengths, pa.int64()))):
        batch = batch.set_column(batch.schema.names.index(name), name, column)
    return batch


def with_headers(messages: pa.Array, heads: list[bytes | None] | None) -> pa.Array:
    """Return messages behind what `without_headers` returned."""
    if heads is None:
        return messages
    facts = zip(heads, messages.to_pylist(), strict=True)
    return pa.array([value if head is None else put_back(head, value) for head, value in facts], pa.binary())


def are_headed(raw: pa.Array) -> pa.Array:
    """Return of each message whether headers stand before it; of null they do not."""
    return pc.fill_null(pc.starts_with(raw, HEADED), fill_value=False)


class PayloadReader(NamedTuple):
    """How payloads become texts."""

    # Their format.
    format: str
    decode: Callable[[bytes], bytes]
    # Decodes whole columns, unless another schema than the format's own wrote them.
    column: Batch | None
    # How many characters of a schema each text has.
    repeated: int = 0
    # What makes brief texts, which have no schema, of envelopes, and reads keys beside these.
    connect: ConnectReader | None = None

    def as_brief(self) -> PayloadReader:
        """Return what makes brief texts if it can be had."""
        if self.connect is None:
            return self
        return self._replace(decode=self.connect.brief_text, column=self.connect.brief_column)

    def texts(self, payloads: pa.Array, faults: dict[int, MessageError], indexes: Sequence[int]) -> pa.Array:
        """Return the texts of payloads, null for one that cannot be read; `faults` gets its error under its index."""

        def caught(place: int, error: MessageError) -> None:
            error.format = self.format
            faults[indexes[place]] = error

        return convert_values(payloads, self.decode, caught, batch=self.column)


class Opener:
    """Opens messages for one task; `access` is the registry, `formats` are those of topics.

    With `is_brief`, envelopes of one schema become brief texts, whose head is under `HEAD` in the metadata of a batch.
    """

    def __init__(self, access: RegistrySettings, formats: Formats, *, is_brief: bool = False) -> None:
        self._access, self._formats, self._is_brief = access, formats, is_brief
        self._sizes = FRAMINGS[access.framing].sizes
        # What framed keys begin with.
        self._key_marks = FRAMED_KEYS if access.framing == HEADERS else FRAMED_KEYS[:1]
        self._known: dict[tuple[str, bytes, bool], PayloadReader | PayloadError] = {}
        # By the readers of values and keys.
        self._engines: dict[tuple[ConnectReader, ConnectReader | None], EnvelopeEngine | None] = {}

    def open_in_parts(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield what `open` makes of a batch, in parts whose texts repeat at most 4 Mi characters of schemas.

        Texts of Connect have their schema, which takes hundreds of kilobytes if a table has a thousand columns. Where texts
        would be brief, the messages are read without them if the engine can do so with all.
        """
        read = self._read_envelopes(batch)
        if read is not None:
            yield read
            return
        most = max((reader.repeated for reader in self._readers(without_headers(batch)[1])), default=0)
        count = max(_REPEATED // max(most, 1), 1)
        for start in range(0, max(batch.num_rows, 1), count):
            yield self.open(batch.slice(start, count))

    def _read_envelopes(self, batch: pa.RecordBatch) -> pa.RecordBatch | None:
        """Return a batch of envelopes of one schema beside keys of one schema, or none, in payloads of their format.

        None if there is any other message, or one that the engine leaves.
        """
        raw, keys, topics = batch.column("raw"), batch.column("key"), batch.column("topic")
        values = self._whole_alike(batch) if batch.num_rows and self._may_be_brief(batch) else None
        if values is None or values[0].connect is None or keys.null_count not in (0, len(keys)):
            return None
        own_keys = None if keys.null_count else self._reader_of_all(keys, topics, is_key=True)
        engine = self._engine_of(values[0].connect, None if own_keys is None else own_keys[0].connect)
        if engine is None or (own_keys is None) is not bool(keys.null_count):
            return None
        topic = b"" if own_keys is None else (topics[0].as_py() or "").encode()
        beside = None if own_keys is None else slices_of(own_keys[1])
        made, ends, count = engine.read_column(slices_of(values[1]), beside, topic, MAX_BYTES)
        if count < len(raw):
            return None
        buffers = [None, pa.py_buffer(bytes(4) + ends), pa.py_buffer(made)]
        texts = blank(pa.Array.from_buffers(pa.binary(), count, buffers), raw.is_null())
        names = pa.array([values[0].format]).take(pc.if_else(raw.is_valid(), pa.scalar(0), None))
        none = pa.nulls(count, pa.string())
        read = pa.RecordBatch.from_arrays(
            [*batch.columns, texts, names, none, none, keys], [*batch.schema.names, *OPENED, KEY]
        )
        return read.replace_schema_metadata({HEAD: values[0].connect.head, IS_READ: b""})

    def _engine_of(self, value: ConnectReader, key: ConnectReader | None) -> EnvelopeEngine | None:
        if (value, key) not in self._engines:
            if len(self._engines) >= MAX_SCHEMAS:
                self._engines.clear()
            self._engines[value, key] = value.envelope_engine(get_format(CONNECT), key)
        return self._engines[value, key]

    def _readers(self, batch: pa.RecordBatch) -> Iterator[PayloadReader]:
        """Yield the readers of the values and keys in a batch."""
        formats = {self._formats.format_of(topic) for topic in batch.column("topic").unique().to_pylist()}
        for name, magics, is_key in (("raw", (*self._sizes,), False), ("key", self._key_marks, True)):
            column = batch.column(name)
            for magic in magics:
                framed = column.filter(pc.starts_with(column, magic))
                prefixes = pc.binary_slice(framed, 0, self._sizes[magic]).unique().to_pylist()
                readers = (self._reader(format, prefix, is_key=is_key) for format in formats for prefix in prefixes)
                yield from (reader for reader in readers if isinstance(reader, PayloadReader))

    def open(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch of `sources.COLUMNS` with the columns of `OPENED`.

        Raises `JobError` and `RegistryError` for a registry that is down or refuses to answer.
        """
        faults: dict[int, MessageError] = {}
        columns, names = batch.columns, batch.schema.names
        heads, batch = without_headers(batch)
        batch = self._with_nulls(batch)
        texts, formats, head = self._open_alike(batch, faults) or (*self._open_one_by_one(batch, faults), b"")
        opened = with_headers(texts, heads), self._with_deletes(batch, formats)
        keys = self._open_keys(batch, faults)
        expected = [faults[i].expected if i in faults else None for i in range(batch.num_rows)] if faults else None
        got = [faults[i].got if i in faults else None for i in range(batch.num_rows)] if faults else None
        none = pa.nulls(batch.num_rows, pa.string())
        errors = [none if values is None else pa.array(values, pa.string()) for values in (expected, got)]
        made = pa.RecordBatch.from_arrays([*columns, *opened, *errors, keys], [*names, *OPENED, KEY])
        return made.replace_schema_metadata({HEAD: head}) if head else made

    def _with_nulls(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch with null for the values of rejects that are read again and have no bytes, if that says delete."""
        names = batch.schema.names
        if "clock" not in names or batch.column("clock").null_count == batch.num_rows:
            return batch
        told = pa.array([self._has_deletes(topic) for topic in batch.column("topic").to_pylist()], pa.bool_())
        is_empty = pc.fill_null(pc.equal(batch.column("length"), 0), fill_value=False)
        is_null = pc.and_(pc.and_(batch.column("clock").is_valid(), is_empty), told)
        return batch.set_column(names.index("raw"), "raw", blank(batch.column("raw"), is_null))

    def _with_deletes(self, batch: pa.RecordBatch, formats: pa.Array) -> pa.Array:
        """Return the formats of messages, also of those without a value whose told format takes them for deletes."""
        topics = batch.column("topic").unique().to_pylist()
        if not formats.null_count or not any(self._has_deletes(topic) for topic in topics):
            return formats
        facts = zip(batch.column("topic").to_pylist(), batch.column("raw").is_null().to_pylist(), strict=True)
        told = [self._formats.format_of(one) if is_null and self._has_deletes(one) else None for one, is_null in facts]
        return pc.coalesce(formats, pa.array(told, pa.string()))

    def _has_deletes(self, topic: str | None) -> bool:
        """Return whether a record of a topic without a value is told to be a delete."""
        format = self._formats.format_of(topic)
        return format != MIXED and get_format(format).rule.has_tombstones

    def open_texts(
        self, records: Sequence[tuple[bytes | None, bytes | None]], topics: Sequence[str | None]
    ) -> Iterator[tuple[bytes | None, bytes | None, str | None, MessageError | None]]:
        """Yield of each record, a key and a value, their texts and the format, or why they cannot be read.

        Raises as `open` does.
        """
        keys, values = (pa.array([record[i] for record in records], pa.binary()) for i in range(2))
        arrays = [values, pc.binary_length(values).cast(pa.int64()), keys, pa.array(topics, pa.string())]
        batch = pa.RecordBatch.from_arrays(arrays, ["raw", "length", "key", "topic"])
        for part in self.open_in_parts(batch):
            facts = (part.column(name).to_pylist() for name in (KEY, *OPENED))
            for key, text, format, expected, got in zip(*facts, strict=True):
                error = None if expected is None else PayloadError(expected, got or "none", format=format)
                yield key, text, format, error

    def _open_keys(self, batch: pa.RecordBatch, faults: dict[int, MessageError]) -> pa.Array:
        """Return the keys as JSON; `faults` gets why one that is framed cannot be read, unless its record says nothing."""
        keys = batch.column("key")
        if not any(pc.any(pc.starts_with(keys, mark)).as_py() for mark in self._key_marks):
            return keys
        alike = self._reader_of_all(keys, batch.column("topic"), is_key=True)
        if alike is not None:
            found: dict[int, MessageError] = {}
            texts_alike = alike[0].texts(alike[1], found, range(len(keys)))
            for i, error in found.items():
                if batch.column("raw")[i].is_valid or self._has_deletes(batch.column("topic")[i].as_py()):
                    faults.setdefault(i, PayloadError(f"as its key {error.expected}", error.got))
            return texts_alike
        texts: list[bytes | None] = []
        raws, topics = batch.column("raw").to_pylist(), batch.column("topic").to_pylist()
        for i, key in enumerate(keys.to_pylist()):
            text = key
            if key is not None and key.startswith(self._key_marks):
                text = None
                try:
                    text = self._open_key(self._formats.format_of(topics[i]), key)
                except PayloadError as error:
                    if raws[i] is not None or self._has_deletes(topics[i]):
                        faults.setdefault(i, PayloadError(f"as its key {error.expected}", error.got))
            texts.append(text)
        return pa.array(texts, pa.binary())

    def _open_key(self, format: str, key: bytes) -> bytes:
        reader = self._reader(format, self._prefix_of(key), is_key=True)
        if isinstance(reader, PayloadError):
            raise reader
        return reader.decode(key[len(self._prefix_of(key)) :])

    def _open_alike(
        self, batch: pa.RecordBatch, faults: dict[int, MessageError]
    ) -> tuple[pa.Array, pa.Array, bytes] | None:
        """Return the texts and formats of messages of one topic and one schema, as in most batches; None for others.

        The texts may be brief, and then have a head.
        """
        raw, alike = batch.column("raw"), self._whole_alike(batch)
        if alike is None:
            return None
        reader, payloads = alike
        head = reader.connect.head if reader.connect is not None and self._may_be_brief(batch) else b""
        texts = (reader.as_brief() if head else reader).texts(payloads, faults, range(len(raw)))
        return texts, pc.if_else(raw.is_valid(), pa.scalar(reader.format), pa.scalar(None, pa.string())), head

    def _may_be_brief(self, batch: pa.RecordBatch) -> bool:
        """Return whether texts may be brief: nobody else wants them, and no message is a reject that is read again."""
        return self._is_brief and batch.column("clock").null_count == batch.num_rows

    def _whole_alike(self, batch: pa.RecordBatch) -> tuple[PayloadReader, pa.Array] | None:
        """Return the reader and the payloads of messages of one topic and one schema; None for others, or if one is cut."""
        raw = batch.column("raw")
        is_whole = pc.less_equal(batch.column("length"), pc.binary_length(raw).cast(pa.int64()))
        return self._reader_of_all(raw, batch.column("topic")) if pc.all(is_whole).as_py() else None

    def _reader_of_all(
        self, values: pa.Array, topics: pa.Array, *, is_key: bool = False
    ) -> tuple[PayloadReader, pa.Array] | None:
        """Return the reader of values of one topic and one schema, and their payloads; None for others."""
        topics = topics.unique()
        if values.null_count == len(values) or len(topics) > 1:
            return None
        prefix = self._prefix_of(values.drop_null()[0].as_py())
        if not pc.all(pc.starts_with(values, prefix)).as_py():
            return None
        reader = self._reader(self._formats.format_of(topics[0].as_py()), prefix, is_key=is_key)
        if not isinstance(reader, PayloadReader):
            return None
        return reader, pc.binary_replace_slice(values, 0, len(prefix), b"")

    def _open_one_by_one(self, batch: pa.RecordBatch, faults: dict[int, MessageError]) -> tuple[pa.Array, pa.Array]:
        texts: list[bytes | None] = [None] * batch.num_rows
        formats: list[str | None] = [None] * batch.num_rows
        groups: dict[tuple[str | None, bytes], list[int]] = {}
        raws = batch.column("raw").to_pylist()
        facts = zip(raws, batch.column("length").to_pylist(), batch.column("topic").to_pylist(), strict=True)
        for i, (raw, length, topic) in enumerate(facts):
            if raw is not None and length is not None and length > len(raw):
                faults[i] = TextError(f"at most {MAX_LENGTH} bytes", f"{length}")
            elif raw is not None:
                groups.setdefault((topic, self._prefix_of(raw)), []).append(i)
        for (topic, prefix), indexes in groups.items():
            reader = self._reader(self._formats.format_of(topic), prefix)
            if isinstance(reader, PayloadError):
                faults.update(dict.fromkeys(indexes, reader))
                continue
            payloads = pa.array([raws[i][len(prefix) :] for i in indexes], pa.binary())
            for i, text in zip(indexes, reader.texts(payloads, faults, indexes).to_pylist(), strict=True):
                texts[i], formats[i] = text, reader.format
        return pa.array(texts, pa.binary()), pa.array(formats, pa.string())

    def _prefix_of(self, raw: bytes) -> bytes:
        """Return what stands before a payload, or the beginning of a value that is none."""
        size = next((size for magic, size in self._sizes.items() if raw.startswith(magic)), _SHOWN)
        return raw[:size]

    def _reader(self, format: str, prefix: bytes, *, is_key: bool = False) -> PayloadReader | PayloadError:
        """Return the reader of payloads behind a prefix, or why they cannot be read."""
        known = self._known.get((format, prefix, is_key))
        if known is None:
            try:
                known = self._find_reader(format, prefix, is_key=is_key)
            except PayloadError as error:
                known = error
            if len(self._known) >= MAX_SCHEMAS:
                self._known.clear()
            self._known[format, prefix, is_key] = known
        return known

    def _find_reader(self, format: str, prefix: bytes, *, is_key: bool) -> PayloadReader:
        framing = self._access.framing
        identifier, _ = unframe(prefix, framing=framing)
        found = self._access.ask_patiently(lambda: look_up_schemas([prefix], _client(self._access), framing)[prefix])
        if found.schema is None:
            raise PayloadError(*found.fault)
        writer = parse_schema(found.schema)
        if is_connect(writer) if format == MIXED else format in OF_CONNECT and format_of(writer) is None:
            own_format = _format_of_connect(writer) if format == MIXED else format
            return _connect_reader(writer, str(identifier), own_format, is_key=is_key)
        own = format_of(writer) if format == MIXED else get_format(format)
        if own is None:
            name = getattr(writer.root, "name", "a schema without a name")
            raise PayloadError("a payload of a wire schema", f"one of {shown(name)}, {identifier}")
        if normal_form(writer.json) == normal_form(own.schema.json):
            return PayloadReader(own.name, own.decode_text, own.decode_column)
        decode = partial(own.decode_text, writer=writer)
        try:
            # An empty payload is an error; a schema that cannot be read is another one.
            with suppress(MessageError):
                decode(b"")
        except SchemaError as error:
            raise PayloadError(f"a payload that {own.name} reads", f"one of {identifier}: {error}") from error
        return PayloadReader(own.name, decode, None)


def _format_of_connect(writer: Schema) -> str:
    """Return the format of messages with the members of a schema, that of envelopes unless the members tell another."""
    root = writer.root
    names = [field.name for field in root.fields] if isinstance(root, Record) else []
    try:
        own = sniff(json.dumps({"schema": {}, "payload": dict.fromkeys(names)}))
    except MessageError:
        return CONNECT
    return own if own in OF_CONNECT else CONNECT


def _connect_reader(writer: Schema, identifier: str, format: str, *, is_key: bool) -> PayloadReader:
    try:
        reader = ConnectReader(writer, is_key=is_key)
        connect = reader if format == CONNECT or is_key else None
        return PayloadReader(format, reader.text, reader.column, reader.repeated, connect)
    except SchemaError as error:
        raise PayloadError("a payload of Kafka Connect's types", f"one of {identifier}: {error}") from error


@lru_cache(maxsize=8)
def _client(access: RegistrySettings) -> Registry:
    """Return the client of a registry, which caches schemas for all tasks in a process."""
    return access.connect()

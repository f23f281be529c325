r"""Places of a pipeline's rejects, a folder, which is read again, a lake table and a topic of Kafka, and their cipher.

Reasons of rejects are without the values of messages, so that there are few, with the place where one of each arrived.

The cipher is for the bytes of rejects: whoever has the public key encrypts them, and whoever has the private one reads
them. A value is `cdcavro\x01`, a public key of X25519 that was made for it and some others (32 bytes), a nonce (12),
and the bytes by AES-256-GCM with its tag (16). The key is HKDF-SHA256 of what X25519 makes of this public key and that
of the reader, with both, in this order, as salt and `cdcavro reject raw` or `cdcavro reject record_key` as info;
`cdcavro\x01` and `raw` or `record_key` are authenticated besides.
"""

from __future__ import annotations

import json
import os
import re
from base64 import b64decode
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol
from uuid import uuid4

from cdcavro.errors import CdcAvroError, FileError, JobError, PayloadError, SchemaError, SetupError, shorten, shown
from cdcavro.exact.jsontext import MAX_LENGTH
from cdcavro.files.streams import plain_path
from cdcavro.lake.escaped_names import MAX_TOPIC_LENGTH, TABLE_NAME, caseless_name, folder_names, topic_name
from cdcavro.sync.outputs.sink_settings import KafkaTopics, LakeSettings
from cdcavro.sync.outputs.writer import WriteResult
from cdcavro.sync.sources import Kafka
from cdcavro.table.ddl.steps import TableName

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from datetime import datetime

    import pyarrow as pa
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    from cdcavro.lake.lakes import Attempt
    from cdcavro.sync.outputs.sink_settings import AvroFiles
    from cdcavro.sync.outputs.writer import Rows, Writer
    from cdcavro.sync.sources import Files

MAGIC: Final = b"cdcavro\x01"
RAW, RECORD_KEY = "raw", "record_key"
PUBLIC_KEY, PRIVATE_KEY = "rejects_public_key", "rejects_private_key"
# What keys in PEM begin with.
PEM: Final = "-----BEGIN"
_INFO: Final = "cdcavro reject "
_POINT, _NONCE, _SIZE = 32, 12, 32
# How often a value may have been encrypted: once more with each time that it is read again without the key.
LAYERS: Final = 32
# Characters of a list of numbers in an error.
_SHOWN: Final = 80
_HEAD: Final = len(MAGIC) + _POINT + _NONCE


def is_encrypted(value: bytes | None) -> bool:
    """Return whether a value looks like one that is encrypted."""
    return value is not None and value.startswith(MAGIC)


class RejectCipher:
    """Encrypts the bytes of rejects, if it has a public key, and decrypts them, if it has a private one.

    `public` and `private` are the bytes of keys of X25519, or None. Nothing shows them.
    """

    def __init__(self, public: bytes | None, private: bytes | None) -> None:
        self._public, self._private = public, private
        # What encrypts each part, and its public key; made when it is first needed, and not by several threads.
        self._made: dict[str, tuple[bytes, AESGCM]] = {}

    @classmethod
    def of(cls, public: str | None, private: str | None) -> RejectCipher | None:
        """Return the cipher of two keys, each the path of a file in PEM or its text; None if there is neither.

        Raises `ValueError`, which shows no key, and `SetupError` if `cryptography` is not installed.
        """
        if public is None and private is None:
            return None
        return cls(
            None if public is None else _key(PUBLIC_KEY, public),
            None if private is None else _key(PRIVATE_KEY, private),
        )

    @classmethod
    def of_private(cls, private: str) -> RejectCipher:
        """Return a cipher that only decrypts. Raises as `of` does."""
        return cls(None, _key(PRIVATE_KEY, private))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(...)"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the keys alone, for the processes of Spark."""
        return RejectCipher, (self._public, self._private)

    @property
    def is_encrypting(self) -> bool:
        """Whether it has a public key."""
        return self._public is not None

    def encrypt(self, value: bytes | None, part: str) -> bytes | None:
        """Return the bytes of a part of a reject, `raw` or `record_key`, encrypted; None for none."""
        if value is None or self._public is None:
            return value
        if part not in self._made:
            from cryptography.hazmat.primitives.asymmetric import x25519  # noqa: PLC0415

            own = x25519.X25519PrivateKey.generate()
            point = own.public_key().public_bytes_raw()
            shared = own.exchange(x25519.X25519PublicKey.from_public_bytes(self._public))
            self._made[part] = point, _aead(shared, point, self._public, part)
        point, aead = self._made[part]
        nonce = os.urandom(_NONCE)
        return MAGIC + point + nonce + aead.encrypt(nonce, value, MAGIC + part.encode())

    def decrypt(self, value: bytes, part: str) -> bytes:
        """Return the bytes of a part of a reject. Raises `PayloadError` without the key, and for other bytes."""
        if self._private is None:
            raise PayloadError(f"{PRIVATE_KEY}, the key by which encrypted rejects are read", "none")
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415
        from cryptography.hazmat.primitives.asymmetric import x25519  # noqa: PLC0415

        point, nonce = value[len(MAGIC) : len(MAGIC) + _POINT], value[len(MAGIC) + _POINT : _HEAD]
        own = x25519.X25519PrivateKey.from_private_bytes(self._private)
        try:
            shared = own.exchange(x25519.X25519PublicKey.from_public_bytes(point))
            aead = _aead(shared, point, own.public_key().public_bytes_raw(), part)
            return aead.decrypt(nonce, value[_HEAD:], MAGIC + part.encode())
        except (InvalidTag, ValueError):
            raise PayloadError(
                "bytes of a reject for the private key that is given", "those for another key, or damaged ones"
            ) from None

    def decrypted(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return messages, in a batch of `sources.COLUMNS`; those that are read again are decrypted.

        What cannot be decrypted stays as it is.
        """
        import pyarrow as pa  # noqa: PLC0415  a configuration is read where it is not installed, too
        import pyarrow.compute as pc  # noqa: PLC0415

        is_again = batch.column("clock").is_valid()
        if self._private is None or not pc.any(is_again).as_py():
            return batch
        columns = {name: batch.column(name).to_pylist() for name in ("raw", "length", "key")}
        for i, again in enumerate(is_again.to_pylist()):
            if again and is_encrypted(columns["raw"][i]):
                raw, key = self._opened(columns["raw"][i], columns["key"][i])
                # That of a message of which the reject has the beginning only stays.
                length = columns["length"][i] or 0
                length = length if length > MAX_LENGTH else len(raw)
                columns["raw"][i], columns["length"][i], columns["key"][i] = raw, length, key
        for name, values in columns.items():
            at = batch.schema.get_field_index(name)
            batch = batch.set_column(at, batch.schema.field(at), pa.array(values, batch.schema.field(at).type))
        return batch

    def _opened(self, raw: bytes, key: bytes | None) -> tuple[bytes, bytes | None]:
        """Return the bytes of a reject: one that was refused for want of a key was encrypted once more."""
        # The layer that cannot be opened is told of where the message is converted.
        with suppress(PayloadError):
            for _ in range(LAYERS):
                if is_encrypted(raw):
                    opened = self.decrypt(raw, RAW)
                    key = self.decrypt(key, RECORD_KEY) if key is not None and is_encrypted(key) else key
                    raw = opened
        return raw, key


_KINDS: Final = {
    PUBLIC_KEY: "a public key of X25519 in PEM, or the path of its file",
    PRIVATE_KEY: "a private key of X25519 in PEM without a password, or the path of its file",
}


def check_decrypted(raw: bytes, cipher: RejectCipher | None) -> None:
    """Raise `PayloadError`, which says what is missing, for the bytes of a reject that are still encrypted."""
    if is_encrypted(raw):
        (cipher or RejectCipher(None, None)).decrypt(raw, RAW)
        raise PayloadError(f"bytes of a reject that were encrypted at most {LAYERS} times", "more")


def _key(name: str, stated: str) -> bytes:
    """Return the bytes of a key. Raises as `RejectCipher.of` does."""
    try:
        from cryptography.hazmat.primitives.asymmetric import x25519  # noqa: PLC0415  few pipelines need it
        from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise SetupError(f"{error.name} is not installed: pip install 'cdcavro[encrypt]'") from error
    text = _pem(name, stated)
    try:
        key = load_pem_public_key(text) if name == PUBLIC_KEY else load_pem_private_key(text, password=None)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{name} is {_KINDS[name]}, which this is not ({type(error).__name__})") from None
    if isinstance(key, x25519.X25519PublicKey):
        return key.public_bytes_raw()
    if isinstance(key, x25519.X25519PrivateKey):
        return key.private_bytes_raw()
    raise ValueError(f"{name} is {_KINDS[name]}, not a key of another kind")


def _pem(name: str, stated: str) -> bytes:
    """Return the text of a key."""
    if PEM in stated:
        return stated.encode()
    try:
        return Path(stated).read_bytes()
    except (OSError, ValueError) as error:
        # It is not shown: what is no path may be a key.
        raise ValueError(f"{name} is {_KINDS[name]}: {getattr(error, 'strerror', None) or 'this is neither'}") from None


def _aead(shared: bytes, point: bytes, public: bytes, part: str) -> AESGCM:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415
    from cryptography.hazmat.primitives.hashes import SHA256  # noqa: PLC0415
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF  # noqa: PLC0415

    return AESGCM(HKDF(SHA256(), _SIZE, point + public, (_INFO + part).encode()).derive(shared))


_BATCH: Final = re.compile(r"batch=([0-9]{1,18})", re.ASCII)
# What says where a message arrived.
PLACE: Final = ("topic", "partition", "offset", "file", "line")
# The columns of a lake table of rejects, with their types as Spark spells them.
COLUMNS: Final = {
    "raw": "binary",
    "record_key": "binary",
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "file": "string",
    "line": "bigint",
    "format": "string",
    "path": "string",
    "reason": "string",
    "time": "timestamp",
    "batch": "bigint",
}
# What identifies a reject; the first one bounds what is looked at. Bytes that are encrypted again are other ones.
IDENTITY: Final = ("batch", "topic", "partition", "offset", "file", "line")
_PARTS: Final = 2
_PREFIX: Final = "kafka."
# The largest request that Kafka's client sends by default, and room in it for headers and what stands around a record.
_LARGEST: Final = ("kafka.max.request.size", 1 << 20)
_ROOM: Final = 4096


def replay(rejects: Path, folder: Path, batches: Collection[int] = ()) -> list[Path]:
    """Move the rejects of some batches, by default all, to where the next batch reads them again; return their folders.

    `folder` is in that of the state. Rejects of a batch that is not done stay, as it writes them again. Raises
    `FileError` if there are no others.
    """
    numbers = {path: number for path in rejects.glob("batch=*") if (number := batch_of(path)) is not None}
    found = sorted(path for path, number in numbers.items() if not batches or number in batches)
    done = _last_done(folder.parent)
    ready = [path for path in found if numbers[path] <= done]
    if not ready:
        raise FileError(str(rejects), *_lacking(sorted(numbers.values()), batches, is_done=not found))
    moved = []
    for path in ready:
        # Files of one batch may be replayed more than once, if they were rejected again.
        target = folder / f"{path.name}-{uuid4().hex}"
        folder.mkdir(parents=True, exist_ok=True)
        path.rename(target)
        moved.append(target)
    return moved


def _lacking(numbers: Sequence[int], batches: Collection[int], *, is_done: bool) -> tuple[str, str]:
    """Return what was expected and what is there in place of rejects; `numbers` are the batches that have some."""
    if not is_done:
        return "rejects", "those of a batch that is not done, which sync ends"
    if not numbers:
        return "rejects of a batch", "none: no batch has rejects left to replay"
    there = shorten(", ".join(map(str, numbers)), _SHOWN)
    return f"rejects of batch {', '.join(map(str, sorted(batches)))}", f"none: there are those of {there}"


def has_encrypted(folders: Iterable[Path]) -> bool:
    """Return whether any file of rejects in folders of batches begins with one whose bytes are encrypted."""
    return any(is_encrypted(_first_raw(path)) for folder in folders for path in folder.glob("*.json"))


def _first_raw(path: Path) -> bytes | None:
    """Return the bytes of the first reject of a file; None if it has none."""
    with suppress(OSError, ValueError, TypeError, KeyError, RecursionError), path.open("rb") as file:
        return b64decode(json.loads(file.readline())[RAW])
    return None


def batch_of(folder: Path) -> int | None:
    """Return the number of a batch's folder, `batch=7`; None for one with another name, such as a copy of it.

    >>> from pathlib import Path
    >>> batch_of(Path("rejects/batch=7")), batch_of(Path("rejects/batch=7.bak"))
    (7, None)
    """
    number = _BATCH.fullmatch(folder.name)
    return None if number is None else int(number[1])


def _last_done(state: Path) -> int:
    """Return the number of the last batch that Spark's checkpoint says is done."""
    commits = (state / "checkpoint" / "commits").glob("*")
    return max((int(path.name) for path in commits if path.name.isdecimal()), default=-1)


class Rejects(NamedTuple):
    """The rejects of a batch."""

    # Their outcomes, as the runner holds them.
    rows: Any
    # The number of the batch.
    batch: int
    # When they were found.
    time: datetime
    # How often it was attempted to write them.
    attempt: Attempt


class RejectOutput(Protocol):
    """Writes rejects to a place beside their folder."""

    @property
    def name(self) -> str:
        """What it is called in messages."""

    def write(self, rejects: Rejects) -> None:
        """Write rejects. Raises errors of this project, whatever the reason is."""


@dataclass(frozen=True)
class RejectPlaces:
    """Where rejects go beside their folder."""

    # The lake, and the table in it.
    lake: LakeSettings | None = None
    table: TableName | None = None
    # The table in it that has what was decided for statements.
    schema_changes: TableName | None = None
    # The cluster, with one topic.
    kafka: KafkaTopics | None = None

    @classmethod
    def of(
        cls,
        table: str | None,
        topic: str | None,
        source: Kafka | Files,
        sink: LakeSettings | KafkaTopics | AvroFiles,
        schema_changes: str | None = None,
    ) -> RejectPlaces:
        """Return the places with these names, `database.table` and that of a topic. Raises `ValueError`."""
        lake, found = sink if isinstance(sink, LakeSettings) else None, []
        for name, setting in ((table, "rejects_table"), (schema_changes, "schema_changes_table")):
            if name is not None and lake is None:
                raise ValueError(f"{setting} is a table of the lake, and the sink is none")
            found.append(None if name is None else _table(name, setting))
        if found[0] is not None and found[1] is not None and caseless_name(found[0]) == caseless_name(found[1]):
            raise ValueError("rejects_table and schema_changes_table are two tables")
        kafka = None if topic is None else _kafka(topic, source, sink)
        return cls(lake, found[0], found[1], kafka)

    def clash(self, name: TableName, template: str | None) -> str | None:
        """Return why a table cannot be written under its name, or to its topic of a template; None if it can."""
        try:
            for own, what in ((self.table, "rejects"), (self.schema_changes, "schema changes")):
                if own is not None and caseless_name(name) == caseless_name(own):
                    return f"its place in the lake is that of the {what}, {dotted_name(own)}"
            if self.kafka is not None and template is not None:
                topics = [topic_name(template, name), self.kafka.topic]
                if topics[0].lower() == topics[1].lower():
                    return f"its topic is that of the rejects, {self.kafka.topic}"
        except SchemaError:
            # The write refuses such a name.
            return None
        return None


@dataclass
class SeparatingWriter:
    """A writer that writes no table to where rejects go: the rows of such a table wait."""

    writer: Writer
    places: RejectPlaces
    template: str | None

    @property
    def has_changes(self) -> bool:
        """Whether every change is wanted."""
        return self.writer.has_changes

    @property
    def has_states(self) -> bool:
        """Whether current states are wanted."""
        return self.writer.has_states

    def write(self, tables: Sequence[Rows]) -> list[WriteResult]:
        """Write the rows of the tables that go elsewhere than rejects."""
        clashes = {table.number: self.places.clash(name, self.template) for table, name, _ in tables}
        refused = [WriteResult(number, [], why) for number, why in clashes.items() if why is not None]
        return refused + self.writer.write([one for one in tables if clashes[one[0].number] is None])


def write_to_places(outputs: Sequence[RejectOutput], rejects: Rejects) -> None:
    """Write rejects to all places. Raises `JobError`, which says which one failed."""
    for output in outputs:
        try:
            output.write(rejects)
        except CdcAvroError as error:
            raise JobError(
                f"the rejects of batch {rejects.batch} cannot be written to {output.name}: {error}"
            ) from error


def _table(text: str, setting: str) -> TableName:
    parts = text.split(".")
    if len(parts) != _PARTS or not all(parts):
        raise ValueError(f"{setting} is called database.table, not {shown(text)}")
    table = TableName(parts[0], None, parts[1])
    folder_names(table)
    return table


def _kafka(topic: str, source: Kafka | Files, sink: LakeSettings | KafkaTopics | AvroFiles) -> KafkaTopics:
    """Return the topic on the cluster of the sink, or else of the source. Raises `ValueError`."""
    if TABLE_NAME in topic or len(topic) > MAX_TOPIC_LENGTH:
        raise ValueError(f"rejects_topic is one topic of at most {MAX_TOPIC_LENGTH} characters, not {shown(topic)}")
    if isinstance(source, Kafka) and topic in ",".join(source.topics).split(","):
        raise ValueError(f"rejects_topic is one that the source reads: {shown(topic)}")
    if isinstance(sink, KafkaTopics):
        if sink.topic == topic:
            raise ValueError(f"rejects_topic is that of the tables: {shown(topic)}")
        return replace(sink, topic=topic)
    if isinstance(source, Kafka):
        options = {name: value for name, value in source.options.items() if name.lower().startswith(_PREFIX)}
        return KafkaTopics(source.servers, topic, options)
    raise ValueError("rejects_topic needs Kafka as the source or as the sink")


def dotted_name(table: TableName) -> str:
    """Return the name of a table of rejects as the configuration states it."""
    return f"{table.database}.{table.table}"


def record_limit(kafka: KafkaTopics) -> int:
    """Return how many bytes a record may have that Kafka's client sends with these options, room for headers left."""
    name, default = _LARGEST
    size = next((value for option, value in kafka.options.items() if option.lower() == name), "")
    # Kafka refuses what is no number.
    return (int(size) if size.isdecimal() else default) - _ROOM


MOST_REASONS: Final = 200
# How many characters a reason has at most.
LONGEST: Final = 500
# What stands before what came, in a sentence on a message.
GOT: Final = ", got "
# What the reason of a reject says of a message of which it has the beginning only, and how long that was.
CUT: Final = rf"expected at most {MAX_LENGTH} bytes{GOT}([0-9]{{8,18}})$"
# What a sentence shows of a message: quoted, or a number, also a byte's (0xef) and a character's (U+FEFF).
SHOWN_VALUE: Final = (
    r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|0x[0-9A-Fa-f]+|U\+[0-9A-Fa-f]+|-?[0-9][0-9,.]*(?:[eE][-+]?[0-9]+)?"""
)
INDEX: Final = r"\[[0-9]+\]"
_VALUE: Final = re.compile(SHOWN_VALUE)
_INDEXES: Final = re.compile(INDEX)
_LOGIN: Final = re.compile(r"//[^/@]*@")


def reason_key(format: str | None, path: str | None, reason: str | None) -> tuple[str, str, str]:
    """Return the format of a reject, its path without indexes, and its sentence without both."""
    prefix, said = f"{format or 'message'}: {path or '$'}: ", reason or ""
    return format or "", _INDEXES.sub("[*]", path or ""), said.removeprefix(prefix)[:LONGEST]


def kind_of(sentence: str) -> str:
    """Return a sentence without its values, which stand behind what was expected.

    >>> kind_of("expected an integer, got 'x1' at 7")
    'expected an integer, got … at …'
    """
    before, got, behind = sentence.partition(GOT)
    return (before + got + _VALUE.sub("…", behind))[:LONGEST]


def place_of(one: Mapping[str, Any]) -> str:
    """Return where a message arrived, without a login."""
    if one["file"] is not None:
        # The address of a bucket may have a login.
        return f"{_LOGIN.sub('//', plain_path(one['file']))} line {one['line']}"
    return "" if one["topic"] is None else f"{one['topic']} partition {one['partition']} offset {one['offset']}"

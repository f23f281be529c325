"""Places of a pipeline's rejects: their folder, from which they are read again, a lake table, a topic of Kafka.

Reasons of rejects are without the values of messages, so that there are few, with the place where one of each arrived.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol
from uuid import uuid4

from cdcavro.errors import CdcAvroError, FileError, JobError, SchemaError, shown
from cdcavro.exact.jsontext import MAX_LENGTH
from cdcavro.files.streams import plain_path
from cdcavro.lake.escaped_names import MAX_TOPIC_LENGTH, TABLE_NAME, caseless_name, folder_names, topic_name
from cdcavro.sync.outputs.reject_cipher import RAW, is_encrypted
from cdcavro.sync.outputs.sink_settings import KafkaTopics, LakeSettings
from cdcavro.sync.outputs.writer import WriteResult
from cdcavro.sync.sources import Kafka
from cdcavro.table.ddl.steps import TableName

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from datetime import datetime
    from pathlib import Path

    from cdcavro.lake.lakes import Attempt
    from cdcavro.sync.outputs.sink_settings import AvroFiles
    from cdcavro.sync.outputs.writer import Rows, Writer
    from cdcavro.sync.sources import Files

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
        raise FileError(
            str(rejects), "rejects", "those of a batch that is not done, which sync ends" if found else "none"
        )
    moved = []
    for path in ready:
        # Files of one batch may be replayed more than once, if they were rejected again.
        target = folder / f"{path.name}-{uuid4().hex}"
        folder.mkdir(parents=True, exist_ok=True)
        path.rename(target)
        moved.append(target)
    return moved


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

"""The schemas that a command publishes or checks, and their subjects."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from cdcavro.avro.container import ContainerReader
from cdcavro.avro.schema import MAX_LENGTH, Schema, parse_schema
from cdcavro.errors import FileError, SchemaError
from cdcavro.files.streams import open_input
from cdcavro.registry import subject_name
from cdcavro.table.table_folder import INDEX
from cdcavro.wire.formats import CHANGE, FORMATS, load_schema

if TYPE_CHECKING:
    import io
    from collections.abc import Iterator, Sequence

    from cdcavro.avro.schema import Schema
    from cdcavro.registry.subjects import Strategy

_KEY: Final = ".key.avsc"
_NUMBER: Final = re.compile(r"([0-9]{1,9})", re.ASCII)


_MAGIC: Final = b"Obj"


@dataclass(frozen=True, slots=True)
class NamedSource:
    """A schema and its name. Attributes: `name` (str), of the format or file; `schema`; `is_key` (bool)."""

    name: str
    schema: Schema
    is_key: bool = False


@dataclass(frozen=True, slots=True)
class SubjectNames:
    """How subjects are named: `subject` (str or None) is the only subject; if it is None, by `strategy` and `topic`."""

    subject: str | None
    strategy: Strategy
    topic: str | None

    def of(self, source: NamedSource) -> str:
        """Return the subject of a schema."""
        return self.subject or subject_name(self.strategy, source.schema, topic=self.topic, is_key=source.is_key)


def parse_subjects(subject: str | None, strategy: Strategy | None, topic: str | None) -> SubjectNames:
    """Return how subjects are named, by default after the topic, or else the record. Raises `click.UsageError`."""
    if subject is not None and (strategy or topic):
        raise click.UsageError("--subject and --strategy or --topic exclude each other")
    chosen: Strategy = strategy or ("topic" if topic else "record")
    if chosen == "record" and topic:
        raise click.UsageError("--strategy record takes no --topic")
    if chosen != "record" and not topic and subject is None:
        raise click.UsageError(f"--strategy {chosen} needs --topic")
    return SubjectNames(subject, chosen, topic)


def read_sources(names: Sequence[str], subjects: SubjectNames) -> list[NamedSource]:
    """Return the schemas of formats, of files and of all files in folders. Raises `FileError`, `click.UsageError`."""
    named = [source for name in names for source in _sources_of(name)]
    if subjects.subject is not None and any(source.is_key for source in named):
        raise click.UsageError("--subject names one subject, and there are schemas of keys too: say --topic")
    if subjects.subject is None and subjects.strategy == "topic":
        _check_one_table(names)
    return named


def _sources_of(name: str) -> Iterator[NamedSource]:
    path = Path(name)
    if name in (*FORMATS, CHANGE) and not path.exists():
        yield NamedSource(name, read_schema(name))
    elif path.is_dir():
        files = list(_schema_files(path))
        if not files:
            raise FileError(click.format_filename(name), "a folder with .avsc files", "one without")
        yield from (_source_of_file(file) for file in files)
    else:
        yield _source_of_file(path, name)


def _source_of_file(path: Path, name: str | None = None) -> NamedSource:
    return NamedSource(name or str(path), read_schema(name or str(path)), is_key=path.name.endswith(_KEY))


def _schema_files(folder: Path) -> Iterator[Path]:
    """Yield the schema files of a folder in the order of their versions; for typed tables, table by table."""
    folders = [folder / name for name in _table_folders(folder)] if (folder / INDEX).is_file() else [folder]
    for place in folders:
        yield from sorted(place.glob("*.avsc"), key=_file_order)


def _file_order(path: Path) -> tuple[Any, ...]:
    """Return the sort key of a file: v10 follows v2, and the schema of a key follows that of its row."""
    parts = _NUMBER.split(path.name.removesuffix(_KEY).removesuffix(".avsc"))
    numbers = tuple((int(part), "") if i % 2 else (-1, part) for i, part in enumerate(parts))
    return numbers, path.name.endswith(_KEY)


def _table_folders(folder: Path) -> list[str]:
    file = folder / INDEX
    try:
        listed = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        listed = None
    rows = listed if isinstance(listed, list) else [None]
    names = [str(row.get("folder", "")) if isinstance(row, dict) else "" for row in rows]
    if not all(name and Path(name).name == name for name in names):
        raise FileError(click.format_filename(str(file)), "the list that `cdcavro tables` wrote", "another file")
    return names


def _check_one_table(names: Sequence[str]) -> None:
    for name in names:
        if (Path(name) / INDEX).is_file() and len(_table_folders(Path(name))) > 1:
            raise click.UsageError(
                "the subject of a topic holds the versions of one table, and there are several:"
                " say --strategy topic-record"
            )


def read_schema(source: str) -> Schema:
    """Return the schema of a format (by its name), an .avsc file or an Avro container file. Raises `FileError`."""
    near = get_close_matches(source, (*FORMATS, CHANGE), n=1)
    file = click.format_filename(source)
    if near and not Path(source).exists():
        if near[0] != source:
            raise FileError(file, "a file or the name of a format", f"neither: did you mean {near[0]}?")
        return load_schema(source)
    try:
        with open_input(source) as stream:
            return _read(stream, file)
    except SchemaError as error:
        raise FileError(file, "an Avro schema", str(error)) from error


def _read(stream: io.BufferedReader, file: str) -> Schema:
    if stream.peek(len(_MAGIC))[: len(_MAGIC)] == _MAGIC:
        return ContainerReader(stream, file).schema
    raw = stream.read(4 * MAX_LENGTH + 1)
    try:
        return parse_schema(raw.decode())
    except UnicodeDecodeError as error:
        raise FileError(file, "an Avro schema or container file", "bytes that are not UTF-8") from error

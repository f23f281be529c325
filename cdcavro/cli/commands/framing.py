"""`unframe`, which opens Kafka records whose keys and values a registry frames, and `frame`, which makes Debezium's of any messages."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from contextlib import closing, nullcontext
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from cdcavro.cli.commands.registry import registry_option
from cdcavro.cli.console import Conversion, Faults, Progress, say
from cdcavro.cli.group import REJECTED, example
from cdcavro.cli.options import (
    OUTPUT,
    Choice,
    FormatName,
    check_files,
    connector_options,
    force_option,
    format_option,
    inputs_argument,
    max_rejects_option,
    table_options,
    zone_option,
)
from cdcavro.errors import SetupError, StructureError, number_of, shown
from cdcavro.exact.jsontext import parse
from cdcavro.files.streams import STANDARD, open_output, total_size
from cdcavro.lake.escaped_names import TABLE_NAME, check_topic_template, topic_name
from cdcavro.registry.framing import CONFLUENT, FRAMINGS, HEADERS, with_header
from cdcavro.registry.framing import frame as framed
from cdcavro.table.tables import REJECT, Tables
from cdcavro.wire.kafka import KEY, VALUE, is_record, record_text
from cdcavro.wire.sniff import MIXED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import BinaryIO
    from zoneinfo import ZoneInfo

    from cdcavro.cli.options import ConnectorSettings, StatedTable
    from cdcavro.files.lines import Inputs, Line
    from cdcavro.files.rejects import MaxRejects
    from cdcavro.lake.typed_rows import TypedRow
    from cdcavro.sync.conversion.framed_messages import Opener
    from cdcavro.sync.outputs.topic_records import ConnectPayloads
    from cdcavro.sync.outputs.writer import Publisher, SchemaIds

# How many records are opened at a time, and for how many seconds a registry may be down.
_MOST: Final = 1_000
_PATIENCE: Final = 10.0


@click.command(
    short_help="Decode Kafka records in Avro with a registry's schema ids.",
    epilog=example("cdcavro unframe records.jsonl --registry https://registry:8081 | cdcavro tables - --out tables/"),
)
@inputs_argument
@registry_option
@click.option(
    "--framing",
    type=Choice([*FRAMINGS]),
    default=CONFLUENT,
    help="Where the ids of schemas are: before payloads, as Confluent's or Apicurio's serialisers write them, or in the"
    " headers of records. Default: confluent.",
)
@click.option(
    "--format",
    metavar="mixed|NAME",
    type=FormatName(MIXED),
    default=MIXED,
    help="The format of the messages. Default: mixed, which takes it from each schema.",
)
@click.option(
    "--out", default=STANDARD, type=OUTPUT, metavar="FILE", help="The file to write. Default: standard output."
)
@click.option("--rejects", type=OUTPUT, metavar="FILE", help="Write rejected records to this file, as JSON lines.")
@max_rejects_option
@force_option
def unframe(
    *,
    inputs: Inputs,
    url: str,
    framing: str,
    format: str,
    out: str,
    rejects: str | None,
    max_rejects: MaxRejects,
    force: bool,
) -> None:
    """Decode Kafka records whose keys and values are Avro with the id of a schema in a registry.

    A record is an object with `value` and perhaps `key`, both in base64, `topic`, `partition`, `offset`, `timestamp`
    and `headers`, a list of objects with `key` and `value`, as to_json writes rows of Spark's Kafka source. The output
    is the same record with JSON as its key and value, which the other commands read as a message. Debezium's Avro
    becomes what its JSON converter would have written, with its schema.
    """
    check_files(inputs, out, rejects)
    opener = _opener(url, framing, format)
    with (
        Progress("opening", total_size(inputs.files), shares_terminal=out == STANDARD) as progress,
        open_output(out, force=force) as stream,
        open_output(rejects, force=force) if rejects else nullcontext() as reject_file,
    ):
        faults = Faults(inputs, reject_file)
        conversion = Conversion(faults)
        lines = (line for file in inputs.files for line in inputs.lines(file, progress.advance, MIXED))
        records = conversion.results(lines, lambda line: _Record.of(line, has_headers=framing == HEADERS))
        written = _open_all(opener, records, conversion, stream)
        faults.finish()
    say(f"read {conversion.read:,} = written {written:,} + rejected {conversion.rejected:,}")
    click.get_current_context().exit(0 if max_rejects.allows(conversion.rejected, conversion.read) else REJECTED)


def _opener(url: str, framing: str, format: str) -> Opener:
    try:
        # pyarrow takes long to import and may not be installed; other commands do not need it.
        from cdcavro.sync.conversion.framed_messages import Opener  # noqa: PLC0415
        from cdcavro.sync.settings import Formats, RegistrySettings  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise SetupError(f"{error.name} is not installed: pip install 'cdcavro[arrow]'") from error
    return Opener(RegistrySettings(url, framing=framing, patience=_PATIENCE), Formats(format))


class _Record(NamedTuple):
    """A record of Kafka's on a line."""

    line: Line
    # Its members other than key and value.
    members: dict[str, Any]
    key: bytes | None
    value: bytes | None

    @classmethod
    def of(cls, line: Line, *, has_headers: bool) -> _Record:
        """Read the record on a line. Raises `MessageError`."""
        members = parse(line.message())
        if not is_record(members) or type(members.get("topic")) not in (str, type(None)):
            raise StructureError("a Kafka record with a value in base64", "another message")
        sides = {side: _bytes_of(members, side) for side in (KEY, VALUE)}
        if has_headers:
            headers = _headers_of(members)
            for side, raw in sides.items():
                sides[side] = None if raw is None else with_header(raw, headers, is_key=side == KEY)
        others = {name: member for name, member in members.items() if name not in sides}
        return cls(line, others, sides[KEY], sides[VALUE])


def _bytes_of(members: dict[str, Any], name: str) -> bytes | None:
    text = members.get(name)
    if text is None:
        return None
    try:
        return b64decode(text, validate=True)
    except (ValueError, TypeError) as error:
        raise StructureError("base64", shown(text), pointer=f"/{name}") from error


def _headers_of(members: dict[str, Any]) -> list[tuple[str, bytes | None]]:
    headers = members.get("headers") or []
    if type(headers) is not list or not all(type(one) is dict and type(one.get(KEY)) is str for one in headers):
        raise StructureError("a list of objects with key and value", shown(headers), pointer="/headers")
    return [(one[KEY], _bytes_of(one, VALUE)) for one in headers]


def _open_all(opener: Opener, records: Iterator[_Record], conversion: Conversion, stream: BinaryIO) -> int:
    """Write what records become, and return how many there are."""
    written = 0
    while some := [*islice(records, _MOST)]:
        topics = [record.members.get("topic") for record in some]
        opened = opener.open_texts([(record.key, record.value) for record in some], topics)
        for record, (key, text, _, error) in zip(some, opened, strict=True):
            if error is not None:
                conversion.reject(error, record.line)
                continue
            stream.write(record_text(record.members, key, text) + b"\n")
            written += 1
    return written


def _topic_template(_ctx: click.Context, _param: click.Parameter, value: str) -> str:
    """Return a template of topics. Raises `click.BadParameter`."""
    try:
        check_topic_template(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error
    return value


@click.command(
    short_help="Convert row changes to Debezium's Avro, in Kafka records.",
    epilog=example(
        "cdcavro frame changes.jsonl --registry https://registry:8081 --topic cdc.{name} --out records.jsonl"
    ),
)
@inputs_argument
@registry_option
@click.option(
    "--topic",
    metavar="TOPIC",
    default=TABLE_NAME,
    callback=_topic_template,
    help=f"The topic of a table, in which {TABLE_NAME} is its name; without it, all tables share a topic. Default:"
    f" {TABLE_NAME}.",
)
@format_option
@table_options
@zone_option
@connector_options
@click.option(
    "--out", default=STANDARD, type=OUTPUT, metavar="FILE", help="The file to write. Default: standard output."
)
@click.option("--rejects", type=OUTPUT, metavar="FILE", help="Write rejected messages to this file, as JSON lines.")
@max_rejects_option
@force_option
def frame(
    *,
    inputs: Inputs,
    url: str,
    topic: str,
    source: str,
    stated: StatedTable,
    zone: ZoneInfo | None,
    connector: ConnectorSettings,
    out: str,
    rejects: str | None,
    max_rejects: MaxRejects,
    force: bool,
) -> None:
    """Convert row changes of any format to Debezium's Avro, in Kafka records whose schemas are published in a registry.

    A line is a record as `unframe` reads it: `topic`, and `key` and `value` in base64, each the id of its schema and a
    payload as Kafka Connect's Avro converter writes it. A tombstone follows each delete. TRUNCATE is the only statement
    that becomes a record; the schemas follow all statements. A message with a value that its column's type cannot hold
    is rejected.
    """
    check_files(inputs, out, rejects)
    tables = Tables(given=stated.types, zone=zone, on_misfit=REJECT, table=stated.table, **connector.modes._asdict())
    with (
        Progress("framing", total_size(inputs.files), shares_terminal=out == STANDARD) as progress,
        closing(_publisher(url, topic)) as publisher,
        open_output(out, force=force) as stream,
        open_output(rejects, force=force) if rejects else nullcontext() as reject_file,
    ):
        from cdcavro.lake.table_files import TableReader  # noqa: PLC0415  as in _opener

        format, lines = inputs.open_lines(source, option="--format", advance=progress.advance)
        conversion = Conversion(faults := Faults(inputs, reject_file), format)
        writer = _RecordWriter(tables, publisher, topic, stream)
        reader = TableReader(
            tables, conversion.reject, is_current=False, unavailable=connector.unavailable, take=writer.write
        )
        reader.read(inputs, format, lines)
        faults.finish()
    if writer.partial:
        say(f"{number_of(writer.partial, 'row lacks/rows lack')} columns, which are null in Debezium's Avro")
    read, made, rejected = reader.read_count, reader.typed_count, conversion.rejected
    account = f"read {read:,} = framed {made:,} + other {read - made - rejected:,} + rejected {rejected:,}"
    say(f"{account}: {number_of(writer.written, 'record')} written")
    click.get_current_context().exit(0 if max_rejects.allows(rejected, read) else REJECTED)


def _publisher(url: str, topic: str) -> Publisher:
    try:
        from cdcavro.sync.outputs.writer import Publisher  # noqa: PLC0415  as in _opener
        from cdcavro.sync.settings import RegistrySettings  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise SetupError(f"{error.name} is not installed: pip install 'cdcavro[arrow]'") from error
    return Publisher(RegistrySettings(url, patience=_PATIENCE), topic, is_connect=True)


class _FramedTable(NamedTuple):
    """What a version of a table becomes: its topic, the ids of its schemas, and its payloads."""

    topic: str
    version: int
    ids: SchemaIds
    keys: ConnectPayloads
    values: ConnectPayloads

    def key(self, payload: bytes) -> bytes:
        """Return the key of a record."""
        return framed(self.keys.translate(self.version, payload), self.ids.key or 0)

    def value(self, payload: bytes) -> bytes:
        """Return the value of a record."""
        return framed(self.values.translate(self.version, payload), self.ids.value)


class _RecordWriter:
    """Writes typed rows as records of Debezium's Avro; fields: `written` and `partial` (int), records, and rows with nulls for columns."""

    def __init__(self, tables: Tables, publisher: Publisher, template: str, stream: BinaryIO) -> None:
        self._tables, self._publisher, self._template, self._stream = tables, publisher, template, stream
        self._made: dict[tuple[int, int], _FramedTable] = {}
        self.written = self.partial = 0

    def write(self, rows: Sequence[TypedRow]) -> None:
        """Write rows, and publish the schemas of versions that had none."""
        from cdcavro.lake.typed_rows import DELETE  # noqa: PLC0415  as in _opener

        for row in rows:
            if not row.payload:
                continue
            made = self._made.get((row.table, row.version))
            if made is None:
                made = self._made[row.table, row.version] = self._framed_table(row)
            key = None if row.key is None else made.key(row.key)
            self._write(made.topic, key, made.value(row.payload))
            self.partial += bool(row.absent)
            if row.operation == DELETE and key is not None:
                self._write(made.topic, key, None)

    def _framed_table(self, row: TypedRow) -> _FramedTable:
        from cdcavro.sync.outputs.topic_records import ConnectPayloads  # noqa: PLC0415  as in _opener

        table = self._tables.tables[row.table]
        schema = table.versions[row.version - 1]
        for sentence in self._publisher.publish(table, schema.table, row.version):
            say(sentence)
        ids = self._publisher.known(table)[row.version]
        keys, values = (ConnectPayloads.of([schema], is_key=is_key) for is_key in (True, False))
        return _FramedTable(topic_name(self._template, schema.table), row.version, ids, keys, values)

    def _write(self, topic: str, key: bytes | None, value: bytes | None) -> None:
        sides = {KEY: key, VALUE: value}
        texts = {name: None if side is None else b64encode(side).decode() for name, side in sides.items()}
        self._stream.write(json.dumps({"topic": topic, **texts}, ensure_ascii=False).encode() + b"\n")
        self.written += 1

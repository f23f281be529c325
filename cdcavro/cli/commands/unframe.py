"""`unframe`: Kafka records whose keys and values are framed by a registry, as messages that the other commands read."""

from __future__ import annotations

from base64 import b64decode
from contextlib import nullcontext
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from cdcavro.cli.commands.registry import registry_option
from cdcavro.cli.console import Conversion, Faults, Progress, say
from cdcavro.cli.group import REJECTED, example
from cdcavro.cli.options import OUTPUT, check_files, force_option, format_name, inputs_argument, max_rejects_option
from cdcavro.errors import SetupError, StructureError, shown
from cdcavro.exact.jsontext import parse
from cdcavro.files.streams import STANDARD, open_output, total_size
from cdcavro.registry.framing import CONFLUENT, FRAMINGS, HEADERS, with_header
from cdcavro.wire.kafka import KEY, VALUE, is_record, record_text
from cdcavro.wire.sniff import MIXED

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

    from cdcavro.files.inputs import Inputs
    from cdcavro.files.lines import Line
    from cdcavro.files.rejects import MaxRejects
    from cdcavro.sync.conversion.framed_messages import Opener

# How many records are opened at a time, and for how many seconds a registry may be down.
_MOST: Final = 1_000
_PATIENCE: Final = 10.0


@click.command(
    epilog=example("cdcavro unframe records.jsonl --registry https://registry:8081 | cdcavro tables - --out tables/")
)
@inputs_argument
@registry_option
@click.option(
    "--framing",
    type=click.Choice([*FRAMINGS]),
    default=CONFLUENT,
    help="Where the ids of schemas stand: before payloads, as Confluent's or Apicurio's serialisers write them, or in"
    " the headers of records. Default: confluent.",
)
@click.option(
    "--format",
    metavar="mixed|NAME",
    callback=format_name(MIXED),
    default=MIXED,
    help="The format of the messages. Default: mixed, by which each schema tells it.",
)
@click.option("--out", default=STANDARD, type=OUTPUT, metavar="FILE", help="Default: standard output.")
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
    """Open Kafka records whose keys and values are Avro behind the id of a schema in a registry.

    A record is an object with `value` and perhaps `key`, both in base64, `topic`, `partition`, `offset`, `timestamp`
    and `headers`, a list of objects with `key` and `value`: what Spark's to_json makes of its source of Kafka. What is
    written is the same record with JSON as its key and value, which the other commands read as a message. Debezium's
    Avro becomes what its JSON converter would have written, with its schema.
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

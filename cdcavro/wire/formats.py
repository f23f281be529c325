"""The formats: a `Format` for each wire schema, in the order in which `sniff` prefers them, and one for changes.

Here are the functions that most users need, too: text to payload, payload to text, and the wire schemas.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING, Final

from cdcavro.avro.types import Record, is_same_name
from cdcavro.errors import UnknownFormatError
from cdcavro.wire.attributes import FormatRule
from cdcavro.wire.format import CODECS, Format

if TYPE_CHECKING:
    from cdcavro.avro.schema import Schema


FORMATS: Final[tuple[str, ...]] = (
    "oms_default",
    "oms_default_extend_column_type",
    "oms_canal",
    "canal",
    "oms_dataworks",
    "oms_shareplex",
    "datahub_blob",
    "datahub_tuple",
    "debezium",
    "maxwell",
    "goldengate_row",
    "goldengate",
    "debezium_flat",
    "aws_dms",
    "dts_avro",
    "canal_protobuf",
    "goldengate_tx",
)
"""The names of the formats, in the order in which `sniff` prefers them."""
CHANGE: Final = "change"
"""In place of a format's name: the schema of the changes of messages of every format."""
_USUAL_RULE: Final = FormatRule()
_KEPT: Final = 64
REGISTRY: Final[dict[str, Format]] = {name: Format(name) for name in FORMATS}


def get_format(name: str) -> Format:
    """Return the format of this name. Raises `UnknownFormatError`.

    >>> get_format("oms_canal").name
    'oms_canal'
    """
    format = REGISTRY.get(name) if isinstance(name, str) else None
    if format is None:
        raise UnknownFormatError(name, REGISTRY)
    return format


@cache
def row_format(name: str) -> Format:
    """Return the format of what the engine types of messages: their own, or that of the lines which a codec makes.

    Raises `UnknownFormatError`.
    """
    format, codec = get_format(name), CODECS.get(name)
    return format if codec is None or codec.lines is None else Format(name, codec.lines)


def rule_of(name: str | None) -> FormatRule:
    """Return the rule of a format as a whole; for no known format, the rule that holds for most."""
    format = REGISTRY.get(name or "")
    return _USUAL_RULE if format is None else format.rule


def format_of(schema: Schema) -> Format | None:
    """Return the format whose wire schema has this schema's name as its name or alias; None if there is none."""
    root = schema.root
    if not isinstance(root, Record):
        return None
    return next((format for format in REGISTRY.values() if is_same_name(root, format.envelope)), None)


@cache
def change_format() -> Format:
    """Return the format of `avsc/change.avsc`, which holds the changes of messages of every format."""
    return Format(CHANGE)


def encode(text: bytes | str, format: str) -> bytes:
    """Return JSON text as an Avro payload of the format's wire schema.

    Raises `UnknownFormatError`, and `TextError` or `StructureError` with the format, the JSON path and
    what was expected there.

    >>> encode('{"type": "ALTER", "sql": "ALTER TABLE t ADD c INT"}', "oms_canal").hex()[:8]
    '00000000'
    """
    return get_format(format).encode(text)


def decode(payload: bytes, format: str, *, writer: Schema | None = None, reader: Schema | None = None) -> bytes:
    """Return an Avro payload as UTF-8 JSON text: the same JSON value that was encoded.

    `writer` is the wire schema with which the payload was written, `reader` the one whose names and
    defaults are wanted; each defaults to the format's current schema. The reader's aliases rename
    members; members that the reader lacks stay as they are. Raises `UnknownFormatError`,
    `PayloadError` and `ResolutionError`.

    >>> decode(encode('{"recordType":"HEARTBEAT"}', "oms_default"), "oms_default")
    b'{"recordType":"HEARTBEAT"}'
    """
    wire_format = get_format(format) if reader is None else _with_schema(format, reader)
    return wire_format.decode(payload, writer or get_format(format).schema)


@lru_cache(maxsize=_KEPT)
def _with_schema(format: str, schema: Schema) -> Format:
    return Format(get_format(format).name, schema)


def load_schema(format: str) -> Schema:
    """Return the wire schema of a format, or of `change`. Raises `UnknownFormatError`.

    >>> load_schema("oms_canal").fingerprint == load_schema("oms_canal").fingerprint
    True
    """
    return change_format().schema if format == CHANGE else get_format(format).schema

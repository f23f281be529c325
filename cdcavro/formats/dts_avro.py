"""Records of Alibaba DTS in Avro, as its change tracking and its Kafka targets have them (`avsc/dts_avro.avsc`).

Source: Alibaba Cloud, "Data formats of a Kafka cluster" of Data Transmission Service (DTS); `Record.avsc` of its clients.

* A message is one Avro datum, without framing: bytes. `dts_codec` turns it into JSON, whose payload, changes, losses and
  rows are as those of any format, and back. JSON whose `binary` is true is written as bytes again: `decode` gives bytes
  for what came as bytes, and text for what came as text. A line of text may hold the bytes in base64.
* The rows are objects of plain values; the forms beside them say how DTS sent each. Columns that the log does not have
  are absent.
* Of MySQL's sources the order is the number of the log's file, the offset in it, and `id`; other sources state no order
  that is known, so arrival is theirs.
* The text in place of a row after the change is that of a statement.
* The key is what `pk_uk_info` calls PRIMARY; a change of another format gets such a tag. JSON that states no table or key
  is read by its `objectName` and its tag, as bytes are.
* Tables are the physical ones, also where tags name the logical ones.
* `sourceTxid` is no transaction where it is 0. `bornTimestamp` is seconds or milliseconds, so no change has it.
* A value that is no text in its character set, or whose set is not known (`exact/sqltype.py`), is base64 in the
  row, and `unreadable` names it: its record has no change. So it is where MySQL and Python differ on what bytes mean.
* A record of 48 bytes that is no record only moves the consumer's offset on, and is kept as it is.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any, Final

from cdcavro.change.model import DDL, replace
from cdcavro.change.operations import statement_kind
from cdcavro.engine.machine import ImageReader
from cdcavro.engine.program import Program
from cdcavro.errors import StructureError, shown
from cdcavro.exact.jsontext import MAX_LENGTH, render, string_at
from cdcavro.exact.sqltype import CODECS_OF_CHARSETS
from cdcavro.formats.bridge import Bridge, log_position, schema_bridge
from cdcavro.formats.dts_codec import (
    KEYS,
    MAX_ITEMS,
    NAMES,
    NUMBERED,
    OPERATIONS,
    SOURCES,
    UNREADABLE,
    read_record,
    stated_names,
    write_record,
)
from cdcavro.wire.format import BINARY, Codec

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import tzinfo

    from cdcavro.change.model import Change

FORMAT: Final = "dts_avro"
_PLAIN: Final = schema_bridge(FORMAT)
_NUMBERS: Final = 3


def to_changes(record: dict[str, Any], zone: tzinfo | None = None) -> list[Change]:
    """Return the change of a record.

    Raises `StructureError` for a value that is no text in its character set, with the change without its rows.
    """
    stated = {name: value for name, value in stated_names(record).items() if "table" not in record or name == "key"}
    (change,) = _PLAIN.to_changes(stated | record, zone)
    unreadable = record.get(UNREADABLE)
    for pointer, charset in unreadable.items() if type(unreadable) is dict else ():
        is_known = str(charset).lower() in CODECS_OF_CHARSETS
        expected = f"a text in the charset {shown(str(charset))}" if is_known else "a charset that is known"
        error = StructureError(expected, "other bytes" if is_known else shown(str(charset)), pointer=pointer)
        error.change = replace(change, before=None, after=None)
        raise error
    if change.op == "QUERY" and change.ddl is not None:
        change = replace(change, op=statement_kind(change.ddl))
    # The number of the log's file, the offset in it, and the number of the record.
    position = log_position(string_at(record, "sourcePosition"), record.get("offset"), record.get("id"))
    return [replace(change, position=position)]


def from_changes(changes: Sequence[Change], zone: tzinfo | None = None) -> list[dict[str, Any]]:
    """Return the records of changes, which are decoded to bytes."""
    stated = [replace(change, op="QUERY") if change.op in DDL and change.ddl else change for change in changes]
    records = _PLAIN.from_changes(stated, zone)
    for record, change in zip(records, stated, strict=False):
        names = (change.source.database, change.source.schema, change.source.table)
        name = ".".join(name.replace(".", "\\u002E") for name in names if name is not None)
        position = change.position or ()
        if len(position) == _NUMBERS:
            place = f"{position[1]}@{position[0]}"
            record.update({"sourcePosition": place, "offset": position[1], "id": position[2]})
        record.update({BINARY: True} | ({"objectName": name} if name else {}))
        if change.key and change.source.table is not None:
            record["tags"] = {KEYS: render({"PRIMARY": list(change.key)}).decode()}
    return records


BRIDGE: Final = Bridge(to_changes=to_changes, from_changes=from_changes)


# Bytes to text by the engine: the members of a record in their order, and the types of values, as `read_record` has them.

_LAYOUT: Final = (
    ("int", b'{"version":'),
    ("long", b',"id":'),
    ("long", b',"sourceTimestamp":'),
    ("place", b',"sourcePosition":'),
    ("string", b',"safeSourcePosition":'),
    ("transaction", b',"sourceTxid":'),
    ("source", b',"source":{"sourceType":'),
    ("string", b',"version":'),
    ("operation", b'},"operation":'),
    ("name", b',"objectName":'),
    ("longs", b',"processTimestamps":'),
    ("tags", b',"tags":'),
    ("fields", b',"fieldsText":', b',"fields":'),
    ("images", b',"beforeText":', b',"beforeImages":', b',"beforeForms":'),
    ("images", b',"afterText":', b',"afterImages":', b',"afterForms":'),
    ("last", b',"bornTimestamp":'),
)
_KINDS: Final = {
    "null": "null",
    "Integer": "integer",
    "Character": "text",
    "Decimal": "decimal",
    "Float": "double",
    "Timestamp": "instant",
    "DateTime": "parts",
    "BinaryGeometry": "binary",
    "TextGeometry": "string",
    "BinaryObject": "binary",
    "TextObject": "string",
    "EmptyObject": "empty",
}


def _values() -> list[tuple[bytes | str, ...]]:
    """Return what the engine knows of each type of values, and the beginning of its form; of an empty one, the forms."""
    empty = [b'{"type":"EmptyObject","symbol":"%s"}' % symbol for symbol in (b"NULL", b"NONE")]
    forms = {name: [b'{"type":"%s"' % name.encode()] for name in NAMES} | {"EmptyObject": empty}
    return [(_KINDS.get(name, "others"), *forms[name]) for name in NAMES]


def _stated(source: int, name: bytes | None, key: bytes | None) -> bytes:
    """Return what stands in the name and the key of a source's records, as members behind others."""
    tags = {} if key is None else {KEYS: key.decode()}
    record = {"source": {"sourceType": SOURCES[source]}, "tags": tags}
    text = render(stated_names(record if name is None else record | {"objectName": name.decode()}))
    return b"," + text[1:-1] if len(text) > len(b"{}") else b""


def _codec() -> Codec:
    sources, operations = ([render(word) for word in words] for words in (SOURCES, OPERATIONS))
    numbered = [render(word) for word in NUMBERED]
    charsets = [name.encode() for name, codec in CODECS_OF_CHARSETS.items() if codec == "utf-8"]
    program = Program(-1, array("i"), array("i"), array("i"), b"", (0, MAX_ITEMS, MAX_LENGTH))
    words = (sources, operations, numbered)
    reader = ImageReader(program, _LAYOUT, _values(), words, charsets, KEYS.encode(), _stated)
    return Codec(write_record, reader.text, reader.column, read_record)


CODEC: Final = _codec()

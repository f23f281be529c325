"""Packets of Alibaba Canal as bytes, in protobuf, and the JSON that stands for them.

A reader and a writer of protobuf for the messages of Canal's protocol and no others. The JSON has the names of the
protocol; the messages that a packet carries as bytes within bytes are objects. A member is there if its field is on the
wire, whatever its value, so that what the usual encoders write comes back to the byte; fields in another order and
numbers in more bytes than they need come back in the usual form. A field that is not known is refused, as is one that
stands twice. A number that an enum has no name for is that number as a text.

Source: Canal, `CanalProtocol.proto` and `EntryProtocol.proto`; Protocol Buffers, "Encoding".
"""

from __future__ import annotations

import json
from array import array
from base64 import b64encode
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cdcavro.avro.schema import parse_schema
from cdcavro.engine.machine import ProtobufReader
from cdcavro.engine.program import Program
from cdcavro.errors import StructureError, TextError, shown
from cdcavro.exact.jsontext import MAX_LENGTH, base64_bytes, loads, render
from cdcavro.wire.format import Codec

if TYPE_CHECKING:
    from collections.abc import Mapping

    Value = dict[str, Any]

# A message of a million columns is one that no server sends.
MAX_MESSAGES: Final = 1_000_000
_VARINT, _BYTES = 0, 2
_MASK: Final = (1 << 64) - 1
_MOST_BYTES: Final = 10
_MAX_NUMBER: Final = 1 << 29
PLAIN_COMPRESSIONS: Final = frozenset({None, "NONE", "COMPRESSIONCOMPATIBLEPROTO2"})
_RANGES: Final = {"int32": range(-(1 << 31), 1 << 31), "int64": range(-(1 << 63), 1 << 63), "bool": range(2)}


def _enum(*names: str) -> Mapping[int, str]:
    return {number: name for number, name in enumerate(names) if name}


_ENUMS: Final[dict[str, Mapping[int, str]]] = {
    "PacketType": _enum(
        *("PACKAGETYPECOMPATIBLEPROTO2", "HANDSHAKE", "CLIENTAUTHENTICATION", "ACK", "SUBSCRIPTION", "UNSUBSCRIPTION"),
        *("GET", "MESSAGES", "CLIENTACK", "SHUTDOWN", "DUMP", "HEARTBEAT", "CLIENTROLLBACK"),
    ),
    "Compression": _enum("COMPRESSIONCOMPATIBLEPROTO2", "NONE", "ZLIB", "GZIP", "LZF"),
    "EntryType": _enum(
        *("ENTRYTYPECOMPATIBLEPROTO2", "TRANSACTIONBEGIN", "ROWDATA", "TRANSACTIONEND", "HEARTBEAT", "GTIDLOG"),
    ),
    "EventType": _enum(
        *("EVENTTYPECOMPATIBLEPROTO2", "INSERT", "UPDATE", "DELETE", "CREATE", "ALTER", "ERASE", "QUERY", "TRUNCATE"),
        *("RENAME", "CINDEX", "DINDEX", "GTID", "XACOMMIT", "XAROLLBACK", "MHEARTBEAT"),
    ),
    "Type": _enum("TYPECOMPATIBLEPROTO2", "ORACLE", "MYSQL", "PGSQL"),
}


class _Field(NamedTuple):
    """A field: the name of its member, its type, and whether it may stand several times."""

    name: str
    type: str
    is_repeated: bool = False


_PROPS: Final = _Field("props", "Pair", is_repeated=True)
_MESSAGES: Final[dict[str, dict[int, _Field]]] = {
    "Packet": {
        1: _Field("magic_number", "int32"),
        2: _Field("version", "int32"),
        3: _Field("type", "PacketType"),
        4: _Field("compression", "Compression"),
        5: _Field("body", "bytes"),
    },
    "Messages": {1: _Field("batch_id", "int64"), 2: _Field("entries", "Entry", is_repeated=True)},
    "Entry": {1: _Field("header", "Header"), 2: _Field("entryType", "EntryType"), 3: _Field("storeValue", "bytes")},
    "Header": {
        1: _Field("version", "int32"),
        2: _Field("logfileName", "string"),
        3: _Field("logfileOffset", "int64"),
        4: _Field("serverId", "int64"),
        5: _Field("serverenCode", "string"),
        6: _Field("executeTime", "int64"),
        7: _Field("sourceType", "Type"),
        8: _Field("schemaName", "string"),
        9: _Field("tableName", "string"),
        10: _Field("eventLength", "int64"),
        11: _Field("eventType", "EventType"),
        12: _PROPS,
        13: _Field("gtid", "string"),
    },
    "RowChange": {
        1: _Field("tableId", "int64"),
        2: _Field("eventType", "EventType"),
        10: _Field("isDdl", "bool"),
        11: _Field("sql", "string"),
        12: _Field("rowDatas", "RowData", is_repeated=True),
        13: _PROPS,
        14: _Field("ddlSchemaName", "string"),
    },
    "RowData": {
        1: _Field("beforeColumns", "Column", is_repeated=True),
        2: _Field("afterColumns", "Column", is_repeated=True),
        3: _PROPS,
    },
    "Column": {
        1: _Field("index", "int32"),
        2: _Field("sqlType", "int32"),
        3: _Field("name", "string"),
        4: _Field("isKey", "bool"),
        5: _Field("updated", "bool"),
        6: _Field("isNull", "bool"),
        7: _PROPS,
        8: _Field("value", "string"),
        9: _Field("length", "int32"),
        10: _Field("mysqlType", "string"),
    },
    "TransactionBegin": {
        1: _Field("executeTime", "int64"),
        2: _Field("transactionId", "string"),
        3: _PROPS,
        4: _Field("threadId", "int64"),
    },
    "TransactionEnd": {1: _Field("executeTime", "int64"), 2: _Field("transactionId", "string"), 3: _PROPS},
    "Pair": {1: _Field("key", "string"), 2: _Field("value", "string")},
}
# What the value of an entry is, by the entry's type, and the member that has it.
STORED: Final = {
    "TRANSACTIONBEGIN": ("transactionBegin", "TransactionBegin"),
    "ROWDATA": ("rowChange", "RowChange"),
    "TRANSACTIONEND": ("transactionEnd", "TransactionEnd"),
}


# Bytes to JSON.


def read_packet(raw: bytes) -> Value:
    """Return the JSON of a packet. Raises `TextError` for bytes that are not exactly one."""
    reader = _Reader(raw)
    packet = reader.message("Packet", 0, len(raw))
    if "type" not in packet:
        raise TextError("a packet of Canal in protobuf, with its type", "none")
    if packet["type"] != "MESSAGES" or packet.get("compression") not in PLAIN_COMPRESSIONS or "body" not in packet:
        return packet
    body = packet.pop("body")
    messages = _Reader(base64_bytes(body) or b"").message("Messages", 0, None)
    return packet | messages if "entries" in messages else packet | messages | {"entries": []}


class _Reader:
    """Reads messages from bytes; all together have at most a million messages in them."""

    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self._at = 0
        self._left = MAX_MESSAGES

    def message(self, kind: str, start: int, end: int | None) -> Value:
        """Return the message that is from one place to another, by default to the end."""
        fields, self._at = _MESSAGES[kind], start
        value: Value = {}
        end = len(self._raw) if end is None else end
        self._left -= 1
        if self._left < 0:
            raise _too_many()
        while self._at < end:
            tag = self._varint(end, kind)
            field = fields.get(tag >> 3)
            if field is None:
                raise TextError(f"a field of {kind} in Canal's protobuf", f"field {min(tag >> 3, _MAX_NUMBER)}")
            if tag & 7 != (_VARINT if field.type in _RANGES or field.type in _ENUMS else _BYTES):
                raise TextError(f"{kind}.{field.name} as {field.type}", f"wire type {tag & 7} at byte {self._at}")
            item = self._item(field, kind, end)
            if field.is_repeated:
                value.setdefault(field.name, []).append(item)
            elif field.name in value:
                raise TextError(f"{kind}.{field.name} once", "twice")
            else:
                value[field.name] = item
        return self._entry(value) if kind == "Entry" else value

    def _varint(self, end: int, kind: str) -> int:
        value = 0
        for i in range(_MOST_BYTES):
            if self._at >= end:
                raise TextError(f"{kind} in Canal's protobuf", f"an end within a number at byte {self._at}")
            byte = self._raw[self._at]
            self._at += 1
            value |= (byte & 0x7F) << 7 * i
            if byte < 0x80:  # noqa: PLR2004  no more bytes follow
                return value & _MASK
        raise TextError(f"a number of at most {_MOST_BYTES} bytes in {kind}", f"a longer one at byte {self._at}")

    def _item(self, field: _Field, kind: str, end: int) -> Any:
        number = self._varint(end, kind)
        signed = number - (1 << 64) if number >> 63 else number
        if field.type in _RANGES:
            if signed not in _RANGES[field.type]:
                raise TextError(f"{kind}.{field.name} as {field.type}", str(signed))
            return bool(signed) if field.type == "bool" else signed
        if field.type in _ENUMS:
            return _ENUMS[field.type].get(signed, str(signed))
        start, stop = self._at, self._at + number
        if stop > end:
            raise TextError(f"{number} bytes of {kind}.{field.name}", f"{end - start} at byte {start}")
        if field.type in _MESSAGES:
            item: Any = self.message(field.type, start, stop)
        elif field.type == "bytes":
            item = b64encode(self._raw[start:stop]).decode()
        else:
            item = self._text(start, stop, f"{kind}.{field.name}")
        self._at = stop
        return item

    def _text(self, start: int, stop: int, name: str) -> str:
        try:
            return self._raw[start:stop].decode()
        except UnicodeDecodeError as error:
            raise TextError(f"UTF-8 in {name}", f"another byte at byte {start + error.start}") from error

    def _entry(self, entry: Value) -> Value:
        """Return an entry with what its value holds in place of the bytes."""
        member, kind = STORED.get(entry.get("entryType", "ROWDATA"), ("", ""))
        if not member or "storeValue" not in entry:
            return entry
        reader = _Reader(base64_bytes(entry.pop("storeValue")) or b"")
        reader._left = self._left
        entry[member] = reader.message(kind, 0, None)
        self._left = reader._left
        return entry


# JSON to bytes.


def write_packet(packet: Value) -> bytes:
    """Return the bytes of a packet from its JSON. Raises `StructureError` for what has no bytes."""
    out = bytearray()
    if packet.get("entries") is not None:
        body = bytearray()
        _write(body, "Messages", packet, "")
        packet = packet | {"body": b64encode(body).decode()}
    _write(out, "Packet", packet, "")
    return bytes(out)


def _write(out: bytearray, kind: str, value: Any, pointer: str) -> None:
    """Append the fields of a message that its JSON has, in the order of their numbers."""
    if type(value) is not dict:
        raise StructureError(f"an object for {kind}", shown(str(value)), pointer=pointer)
    for number, field in _MESSAGES[kind].items():
        item, place = value.get(field.name), f"{pointer}/{field.name}"
        if kind == "Entry" and field.name == "storeValue":
            item = _stored(value, pointer)
        if field.is_repeated and item is not None and type(item) is not list:
            raise StructureError("an array", shown(str(item)), pointer=place)
        for one in item or () if field.is_repeated else () if item is None else (item,):
            is_number = field.type in _RANGES or field.type in _ENUMS
            _write_varint(out, number << 3 | (_VARINT if is_number else _BYTES))
            _write_item(out, field, one, place)


def _stored(entry: Value, pointer: str) -> str | None:
    for member, kind in STORED.values():
        if entry.get(member) is not None:
            out = bytearray()
            _write(out, kind, entry[member], f"{pointer}/{member}")
            return b64encode(out).decode()
    stored: str | None = entry.get("storeValue")
    return stored


def _write_item(out: bytearray, field: _Field, item: Any, pointer: str) -> None:
    raw: bytes | bytearray | None
    if field.type in _RANGES:
        if type(item) is not (bool if field.type == "bool" else int) or item not in _RANGES[field.type]:
            raise StructureError(field.type, shown(str(item)), pointer=pointer)
        _write_varint(out, int(item) & _MASK)
        return
    if field.type in _ENUMS:
        _write_varint(out, _number(field.type, item, pointer) & _MASK)
        return
    if field.type in _MESSAGES:
        raw = bytearray()
        _write(raw, field.type, item, pointer)
    elif field.type == "bytes":
        raw = base64_bytes(item)
    else:
        raw = item.encode() if type(item) is str else None
    if raw is None:
        raise StructureError(field.type, shown(str(item)), pointer=pointer)
    _write_varint(out, len(raw))
    out += raw


def _number(enum: str, name: Any, pointer: str) -> int:
    """Return the number of a name in an enum, or that a text is of a name that is not known."""
    for number, known in _ENUMS[enum].items():
        if known == name:
            return number
    digits = name.removeprefix("-") if type(name) is str else ""
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 10 or int(name) not in _RANGES["int32"]:  # noqa: PLR2004
        raise StructureError(f"a name of {enum}", shown(str(name)), pointer=pointer)
    return int(name)


def _write_varint(out: bytearray, value: int) -> None:
    while value > 0x7F:  # noqa: PLR2004  more bytes follow
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


# Bytes to text by the engine.


# What the fields of messages are of rows. A packet's entries are a line each: one with rows, or one of a mark, which is
# empty. Rows of one entry that state the same of their columns are typed alike; all else is left.
_PARTS: Final = {
    ("Messages", "entries"): "line",
    **{("Header", name): "fact" for name in ("logfileName", "logfileOffset", "executeTime", "sourceType")},
    **{("Header", name): "fact" for name in ("schemaName", "tableName", "gtid")},
    ("RowChange", "eventType"): "fact",
    ("RowChange", "isDdl"): "statement",
    ("RowChange", "sql"): "statement",
    ("RowChange", "rowDatas"): "rows",
    ("RowData", "beforeColumns"): "before",
    ("RowData", "afterColumns"): "after",
    ("Column", "sqlType"): "code",
    ("Column", "name"): "name",
    ("Column", "isKey"): "key",
    ("Column", "isNull"): "null",
    ("Column", "value"): "value",
    ("Column", "mysqlType"): "type",
}
# Entries without rows whose value is kept as bytes. A heartbeat says a time, so it is none of them.
_MARKS: Final = ("GTIDLOG",)


def _optional(name: str, type: Any, **rule: str) -> Value:
    return {"name": name, "type": ["null", type], "json": {"missing": "absent", **rule}}


def _held(name: str, holds: str) -> Value:
    return {"type": "record", "name": name, "fields": [{"name": "text", "type": "string"}], "json": {"holds": holds}}


_VALUE: Final = ["null", "boolean", "long", "double", "string", _held("Number", "number"), _held("Text", "text")]
_OLD: Final = [*_VALUE[:5], "Number", "Text"]
# A line as the engine types it. `columns` is all that its rows state of their columns.
_LINE: Final = {
    "type": "record",
    "name": "PacketLine",
    "json": {"position": "log place"},
    "fields": [
        _optional("logfileName", "string", part="position_1"),
        _optional("logfileOffset", "long", part="position_2"),
        _optional("executeTime", "long", part="event_time", unit="ms"),
        _optional("sourceType", "string"),
        _optional("schemaName", "string"),
        _optional("tableName", "string"),
        _optional("gtid", "string", part="transaction"),
        _optional("eventType", "string"),
        _optional("columns", "string"),
        _optional("isDelete", "boolean"),
        _optional("data", {"type": "array", "items": ["null", {"type": "map", "values": _VALUE}]}, part="rows"),
        _optional("old", {"type": "array", "items": ["null", {"type": "map", "values": _OLD}]}, part="old"),
        {"name": "extras", "type": {"type": "map", "values": "string"}, "json": {"members": "extras"}},
    ],
}


def _too_many() -> TextError:
    return TextError(f"at most {MAX_MESSAGES} messages in a packet of Canal", "more")


def _reader() -> ProtobufReader:
    """Return the engine's reader, which has the same fields, and the same messages in bytes, as `_Reader`."""
    kinds, enums = [*_MESSAGES], [*_ENUMS]
    bodies = {("Packet", "body"): 0, ("Entry", "storeValue"): 1}

    def of(kind: str, field: _Field) -> tuple[str, int]:
        if (kind, field.name) in bodies:
            return "body", bodies[kind, field.name]
        if field.type in _MESSAGES:
            return "message", kinds.index(field.type)
        return ("enum", enums.index(field.type)) if field.type in _ENUMS else (field.type, 0)

    def symbols(enum: str) -> list[bytes]:
        known = _ENUMS[enum]
        return [render(known[i]) if i in known else b"" for i in range(max(known) + 1)]

    def number(enum: str, name: str) -> int:
        return next(number for number, known in _ENUMS[enum].items() if known == name)

    def facts(kind: str, i: int, field: _Field) -> tuple[Any, ...]:
        return i, *of(kind, field), field.is_repeated, render(field.name) + b":", _PARTS.get((kind, field.name), "")

    fields = [[facts(kind, i, field) for i, field in _MESSAGES[kind].items()] for kind in kinds]
    plain = [i for i, name in _ENUMS["Compression"].items() if name in PLAIN_COMPRESSIONS]
    stored = {
        number("EntryType", type): (render(member) + b":", kinds.index(kind)) for type, (member, kind) in STORED.items()
    }
    messages = {number("PacketType", "MESSAGES"): (b"", kinds.index("Messages"))}
    held = [
        (3, -1, 4, plain, messages, 2, b',"entries":[]'),
        (2, number("EntryType", "ROWDATA"), 0, (), stored, 0, b""),
    ]
    program = Program(-1, array("i"), array("i"), array("i"), b"", (0, 0, MAX_LENGTH))
    names = [symbols(enum) for enum in enums]
    tail, marks = b',"binary":true}', [number("EntryType", mark) for mark in _MARKS]
    # A packet is a message, too.
    return ProtobufReader(program, fields, names, held, 3, tail, MAX_MESSAGES + 1, kinds.index("RowChange"), marks)


_READER: Final = _reader()


def _text(raw: bytes) -> bytes | None:
    try:
        return _READER.text(raw)
    except OverflowError as error:
        raise _too_many() from error


# Texts of the engine have no numbers but those of 64 bits, and no member twice.
CODEC: Final = Codec(write_packet, _text, _READER.column, read_packet, parse_schema(json.dumps(_LINE)), parse=loads)

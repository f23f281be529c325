"""Records of Alibaba DTS as bytes: one Avro datum without framing, and the JSON that stands for it.

A record has its columns and its rows as arrays beside each other, and each value is of one of twelve types of DTS. In
the JSON a row is an object of plain values, as in other formats, and `beforeForms` and `afterForms` say how each value
was sent, so that the same bytes can be written. What a value's form does not give back is kept in the form's `value`.
Columns that the log does not have (EmptyObject NONE) are absent. A value that is no text in its character set is base64
there, and `unreadable` says so. Names, key, offset and transaction, which DTS has in
texts, stand in members of their own; the bytes are written without them.

Source: `Record.avsc` of the clients of DTS, and how their `MysqlFieldConverter` prints values.
"""

from __future__ import annotations

import re
import struct
from base64 import b64encode
from typing import TYPE_CHECKING, Any, Final

import msgspec

from cdcavro.avro.binary import Buffer, write_bytes
from cdcavro.engine.machine import Decoder
from cdcavro.errors import PayloadError, StructureError, TextError, shown
from cdcavro.exact.instants import SECOND, from_text, to_utc
from cdcavro.exact.jsontext import base64_bytes, escape, parse, render, string_at
from cdcavro.exact.numbers import ExactNumber, is_number, number, plain_text
from cdcavro.exact.sqltype import CODECS_OF_CHARSETS, decode_text, encode_text

if TYPE_CHECKING:
    from collections.abc import Callable

    Value = dict[str, Any]

# A record with more columns or times is one that no server sends.
MAX_ITEMS: Final = 65_536
OPERATIONS: Final = (
    *("INSERT", "UPDATE", "DELETE", "DDL", "BEGIN", "COMMIT", "ROLLBACK", "ABORT", "HEARTBEAT", "CHECKPOINT"),
    *("COMMAND", "FILL", "FINISH", "CONTROL", "RDB", "NOOP", "INIT"),
)
SOURCES: Final = (
    *("MySQL", "Oracle", "SQLServer", "PostgreSQL", "MongoDB", "Redis", "DB2", "PPAS", "DRDS", "HBASE", "HDFS"),
    *("FILE", "OTHER"),
)
# Sources of which the first of two names is that of a schema.
_WITH_SCHEMAS: Final = frozenset({"Oracle", "SQLServer", "PostgreSQL", "DB2", "PPAS"})
# Sources of which the numbers of columns are those of MySQL's types.
NUMBERED: Final = frozenset({"MySQL", "DRDS"})
_PARTS: Final = "yMdHmsf"
# The types of values in the order of the union, with their members.
_NAMED_TEXT: Final = (("type", "string"), ("value", "string"))
_NAMED_BYTES: Final = (("type", "string"), ("value", "bytes"))
_TYPES: Final[dict[str, tuple[tuple[str, str], ...]]] = {
    "null": (),
    "Integer": (("precision", "int"), ("value", "string")),
    "Character": (("charset", "string"), ("value", "bytes")),
    "Decimal": (("value", "string"), ("precision", "int"), ("scale", "int")),
    "Float": (("value", "double"), ("precision", "int"), ("scale", "int")),
    "Timestamp": (("timestamp", "long"), ("millis", "int")),
    "DateTime": (("value", "parts"),),
    "TimestampWithTimeZone": (("value", "parts"), ("timezone", "string")),
    "BinaryGeometry": _NAMED_BYTES,
    "TextGeometry": _NAMED_TEXT,
    "BinaryObject": _NAMED_BYTES,
    "TextObject": _NAMED_TEXT,
    "EmptyObject": (("symbol", "symbol"),),
}
NAMES: Final = tuple(_TYPES)
_EMPTY: Final = ("NULL", "NONE")
# The members of a type that its form has under the same name, and the one that it has under another.
_OF_FORMS: Final = {"precision": "precision", "scale": "scale", "charset": "charset", "timezone": "timezone"} | {
    "type": "object",
    "symbol": "symbol",
}
UNREADABLE: Final = "unreadable"
"""The member with the character set of each value that is no text that is known in it, by its JSON pointer."""
# The character set of bytes that are no text.
_BINARY: Final = "binary"
_TIME: Final = re.compile(
    r"(?:(?P<y>[0-9]{4,9})-(?P<M>[0-9]{2,9})-(?P<d>[0-9]{2,9}))? ?"
    r"(?:(?P<sign>-)?(?P<H>[0-9]{2,9}):(?P<m>[0-9]{2,9}):(?P<s>[0-9]{2,9})(?:\.(?P<f>[0-9]{6}))?)?",
    re.ASCII,
)
_PLACE: Final = re.compile(r"([0-9]{1,18})@([0-9]{1,18})", re.ASCII)
KEYS: Final = "pk_uk_info"
"""The tag that has the keys of a table."""
_DOT: Final = "\\u002E"
_NO_OPERATION: Final = 48
_DOUBLE: Final = struct.Struct("<d")
_WORDS: Final = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


# Records.


def read_record(raw: bytes) -> Value:
    """Return the JSON of a record. Raises `TextError` for bytes that are not exactly one."""
    source = Decoder(raw)
    try:
        record = _record(source)
        source.finish()
    except PayloadError as error:
        if len(raw) == _NO_OPERATION:
            return {"operation": "NOOP", "noOperation": b64encode(raw).decode()}
        raise TextError(f"a record of DTS in Avro: {error.expected}", error.got) from error
    return record | _stated(record)


def _record(source: Decoder) -> Value:
    record: Value = {
        "version": source.read_int(),
        "id": source.read_long(),
        "sourceTimestamp": source.read_long(),
        "sourcePosition": source.read_string(),
        "safeSourcePosition": source.read_string(),
        "sourceTxid": source.read_string(),
        "source": {
            "sourceType": SOURCES[source.read_index(len(SOURCES), "a type of source")],
            "version": source.read_string(),
        },
        "operation": OPERATIONS[source.read_index(len(OPERATIONS), "an operation")],
    }
    if source.read_index(2, "a branch"):
        record["objectName"] = source.read_string()
    if source.read_index(2, "a branch"):
        record["processTimestamps"] = _items(source, Decoder.read_long)
    record["tags"] = _tags(source)
    fields = _text_or_array(source, record, "fields", "fieldsText", _field)
    number = record["source"]["sourceType"] in NUMBERED
    unreadable: dict[str, str] = {}
    for side in ("before", "after"):
        values = _text_or_array(source, record, f"{side}Images", f"{side}Text", _value)
        if values is not None:
            row, forms = _row(fields or [], values, is_mysql=number)
            record[f"{side}Images"], record[f"{side}Forms"] = row, forms
            names = [f"/{side}Images/{escape(field['name'])}" for field in fields or []]
            unreadable |= {
                name: value["charset"]
                for name, (kind, value) in zip(names, values, strict=True)
                if _is_no_text(kind, value)
            }
    if unreadable:
        record[UNREADABLE] = unreadable
    if source.position < source.end:
        # Records of older schemas end before it.
        record["bornTimestamp"] = source.read_long()
    return record


def _is_no_text(name: str, value: Value) -> bool:
    """Return whether a value has a character set, but is no text that is known in it."""
    is_text = name == "Character" and value["charset"].lower() != _BINARY
    return is_text and decode_text(value["value"], value["charset"]) is None


def _tags(source: Decoder) -> dict[str, str]:
    tags: dict[str, str] = {}
    for count in source.blocks():
        for _ in range(count):
            name = source.read_string()
            if name in tags:
                raise PayloadError("each tag once", f"{shown(name)} twice")
            tags[name] = source.read_string()
    return tags


def _text_or_array(
    source: Decoder, record: Value, name: str, text: str, read: Callable[[Decoder], Any]
) -> list[Any] | None:
    """Read a member that is null, a text or an array, and return the array."""
    branch = source.read_index(3, "a branch")
    if branch == 1:
        record[text] = source.read_string()
    if branch < 2:  # noqa: PLR2004  null, a text, an array
        return None
    record[name] = items = _items(source, read)
    return items


def _items(source: Decoder, read: Callable[[Decoder], Any]) -> list[Any]:
    items: list[Any] = []
    for count in source.blocks():
        if count + len(items) > MAX_ITEMS:
            raise PayloadError(f"at most {MAX_ITEMS} columns", f"{count + len(items)}")
        items += [read(source) for _ in range(count)]
    return items


def _field(source: Decoder) -> Value:
    return {"name": source.read_string(), "dataTypeNumber": source.read_int()}


def _value(source: Decoder) -> tuple[str, Value]:
    name = NAMES[source.read_index(len(NAMES), "a type of value")]
    value: Value = {}
    for member, read in _READERS[name]:
        value[member] = read(source)
    return name, value


def _parts(source: Decoder) -> list[int | None]:
    return [source.read_int() if source.read_index(2, "a branch") else None for _ in _PARTS]


_READ: Final[dict[str, Callable[[Decoder], Any]]] = {
    "int": Decoder.read_int,
    "long": Decoder.read_long,
    "string": Decoder.read_string,
    "bytes": Decoder.read_bytes,
    "double": Decoder.read_double,
    "parts": _parts,
    "symbol": lambda source: _EMPTY[source.read_index(len(_EMPTY), "a symbol")],
}


_READERS: Final = {name: tuple((member, _READ[kind]) for member, kind in members) for name, members in _TYPES.items()}


def _row(fields: list[Value], values: list[tuple[str, Value]], *, is_mysql: bool) -> tuple[Value, list[Value | None]]:
    """Return a row, and the forms of its values."""
    if len(values) != len(fields):
        raise PayloadError(f"{len(fields)} values, one for each column", f"{len(values)}")
    row: Value = {}
    forms: list[Value | None] = []
    names: set[str] = set()
    for field, (name, value) in zip(fields, values, strict=True):
        column = field["name"]
        if column in names:
            raise PayloadError("each column once", f"{shown(column)} twice")
        names.add(column)
        plain, form = _show(name, value, field["dataTypeNumber"] if is_mysql else None)
        forms.append(form)
        if form is None or form.get("symbol") != "NONE":
            row[column] = plain
    return row, forms


def _stated(record: Value) -> Value:
    """Return what stands in texts of a record, as members of their own."""
    stated = stated_names(record)
    place = _PLACE.fullmatch(record["sourcePosition"])
    if place is not None:
        stated["offset"] = int(place[1])
    if record["sourceTxid"] not in ("", "0"):
        stated["transaction"] = record["sourceTxid"]
    return stated


def stated_names(record: Value) -> Value:
    """Return the names of a table and its key that stand in texts of a record, as members of their own."""
    stated: Value = {}
    kind, object_name = string_at(record, "source", "sourceType"), string_at(record, "objectName")
    names = [name.replace(_DOT, ".") for name in object_name.split(".")] if object_name else []
    has_schema = kind in _WITH_SCHEMAS
    places = {1: ("database",), 2: ("schema" if has_schema else "database", "table")}
    stated |= dict(zip(places.get(len(names), ("database", "schema", "table")), names, strict=False))
    key = _key(string_at(record, "tags", KEYS) or "")
    if key and "table" in stated:
        stated["key"] = key
    return stated


def _key(text: str) -> list[str] | None:
    """Return the columns of the primary key from the text of a tag; None if it does not say them."""
    try:
        keys = msgspec.json.decode(text, type=dict[str, list[str]])
    except (msgspec.MsgspecError, RecursionError):
        return None
    return keys.get("PRIMARY")


# Values: what DTS sent, and what stands in a row.


def _show(name: str, value: Value, number: int | None) -> tuple[Any, Value | None]:
    """Return the plain value of a value of DTS, and its form."""
    if name == "null":
        return None, None
    form: Value = {"type": name}
    for member, own in _OF_TYPE[name]:
        form[own] = value[member]
    if name in _TIMES:
        form["parts"] = "".join(
            [letter for letter, part in zip(_PARTS, value["value"], strict=True) if part is not None]
        )
    plain = None if name == "EmptyObject" else _plain(name, value, number)
    if name not in _CERTAIN and not _is_same(_sent(name, plain, form), value):
        form["value"] = render(_as_json(value)).decode()
    return plain, form


# The members of each type that its form has, with their names there.
_OF_TYPE: Final = {
    name: tuple((member, _OF_FORMS[member]) for member, _ in members if member in _OF_FORMS)
    for name, members in _TYPES.items()
}
_TIMES: Final = frozenset({"DateTime", "TimestampWithTimeZone"})
# Types of which a plain value always says what was sent: texts, numbers by their digits, and base64.
_CERTAIN: Final = frozenset(
    {"Integer", "Decimal", "BinaryGeometry", "TextGeometry", "BinaryObject", "TextObject", "EmptyObject"}
)


def _plain(name: str, value: Value, code: int | None) -> Any:
    if name in ("Integer", "Decimal"):
        return number(value["value"]) if is_number(value["value"]) else value["value"]
    if name == "Float":
        text = repr(value["value"])
        return _WORDS.get(text) or number(text)
    if name == "Character":
        decoded = decode_text(value["value"], value["charset"])
        return b64encode(value["value"]).decode() if decoded is None else decoded
    if name == "Timestamp":
        at = value["timestamp"] * SECOND + value["millis"]
        text_at = to_utc(at) if 0 <= value["millis"] < SECOND else None
        return f"{value['timestamp']}.{value['millis']:06}" if text_at is None else text_at
    if "value" in value and isinstance(value["value"], list):
        text_of_parts = _time_text(value["value"], code)
        zone = value.get("timezone", "")
        if type(text_of_parts) is int or not zone:
            return text_of_parts
        return f"{text_of_parts}{zone}" if zone[:1] in "+-Z" else f"{text_of_parts} {zone}"
    return b64encode(value["value"]).decode() if isinstance(value["value"], bytes) else value["value"]


def _time_text(parts: list[int | None], code: int | None) -> str | int:
    """Return the text of the parts of a time, or a year; the number of MySQL's type says which parts count."""
    year, month, day, hour, minute, second, micros = [part or 0 for part in parts]
    has_date, has_time = parts[:3] != [None] * 3, parts[3:6] != [None] * 3
    shows_date, shows_time = _SHOWN.get(code, (has_date, has_time))
    if code == _YEAR or (has_date and parts[1:] == [None] * 6):
        return year
    sign = "-" if min(hour, minute, second, micros) < 0 else ""
    date = f"{year:04}-{month:02}-{day:02}" if shows_date else ""
    fraction = f".{abs(micros):06}" if micros else ""
    time = f"{sign}{abs(hour):02}:{abs(minute):02}:{abs(second):02}{fraction}" if shows_time else ""
    return f"{date} {time}".strip()


_YEAR: Final = 13
_SHOWN: Final[dict[int | None, tuple[bool, bool]]] = {10: (True, False), 11: (False, True)}


def _sent(name: str, plain: Any, form: Value) -> Value:
    """Return the value of DTS that a plain value and its form say; the parts that they do not say are null or 0."""
    value = {member: form.get(_OF_FORMS.get(member, "")) for member, _ in _TYPES[name]}
    text = None if plain is None else plain if type(plain) is str else plain_text(plain)
    if text is None or name == "EmptyObject":
        return value
    if name == "Timestamp":
        at = from_text(text, None)
        return {"timestamp": None, "millis": None} if at is None else dict(zip(value, divmod(at, SECOND), strict=True))
    kind = dict(_TYPES[name])["value"]
    if kind == "parts":
        value["value"] = _time_parts(text.removesuffix(form.get("timezone") or "").strip(), form.get("parts") or "")
    elif kind == "double":
        value["value"] = float(text) if is_number(text) or text in _WORDS.values() else None
    elif name == "Character":
        value["value"] = _encoded(text, form.get("charset") or "")
    else:
        value["value"] = base64_bytes(text) if kind == "bytes" else text
    return value


def _encoded(text: str, charset: str) -> bytes | None:
    return encode_text(text, charset) if charset.lower() in CODECS_OF_CHARSETS else base64_bytes(text)


def _time_parts(text: str, letters: str) -> list[int | None] | None:
    match = _TIME.fullmatch(text)
    if match is None:
        return [int(text) if "y" in letters and text.isascii() and text.isdigit() else None] + [
            0 if letter in letters else None for letter in _PARTS[1:]
        ]
    sign = -1 if match["sign"] else 1
    found = [int(match[letter] or 0) * (sign if letter in "Hmsf" else 1) for letter in _PARTS]
    return [part if letter in letters else None for letter, part in zip(_PARTS, found, strict=True)]


def _is_same(one: Value, other: Value) -> bool:
    if one.keys() == other.keys() and isinstance(other.get("value"), float) and isinstance(one["value"], float):
        return _DOUBLE.pack(one["value"]) == _DOUBLE.pack(other["value"]) and one | {"value": 0} == other | {"value": 0}
    return one == other


def _as_json(value: Value) -> Any:
    """Return a value of DTS as JSON, with bytes in base64 and a double as the digits of its bytes."""
    shown_as: dict[type, Callable[[Any], Any]] = {
        bytes: lambda item: b64encode(item).decode(),
        float: lambda item: _DOUBLE.pack(item).hex(),
    }
    return {name: shown_as.get(type(item), lambda item: item)(item) for name, item in value.items()}


def _from_json(name: str, text: str, pointer: str) -> Value:
    """Return the value of DTS that `_as_json` wrote. Raises `StructureError` for what it cannot have written."""
    sent = parse(text)
    value: Value = {}
    for member, kind in _TYPES[name]:
        item = sent.get(member) if type(sent) is dict else None
        if kind == "bytes":
            item = base64_bytes(item)
        elif kind == "double" and type(item) is str and re.fullmatch("[0-9a-f]{16}", item):
            item = _DOUBLE.unpack(bytes.fromhex(item))[0]
        value[member] = item
    if any(item is None for item in value.values()):
        raise StructureError(f"the members of {name}", shown(text), pointer=pointer)
    return value


# Bytes of records.


def write_record(record: Value) -> bytes:
    """Return the bytes of a record from its JSON. Raises `StructureError` for what DTS has no bytes for."""
    if record.get("noOperation") is not None:
        raw = base64_bytes(record["noOperation"])
        if raw is None:
            raise StructureError("base64", shown(record["noOperation"]), pointer="/noOperation")
        return raw
    out = Buffer()
    source = record.get("source") or {}
    for name, bits in (("version", 31), ("id", 63), ("sourceTimestamp", 63)):
        _write_long(out, record.get(name) or 0, f"/{name}", bits)
    for name in ("sourcePosition", "safeSourcePosition", "sourceTxid"):
        _write_string(out, record.get(name) or "", f"/{name}")
    kinds = {kind.lower(): i for i, kind in enumerate(SOURCES)}
    out.write_long(kinds.get(str(source.get("sourceType")).lower(), len(SOURCES) - 1))
    _write_string(out, source.get("version") or "", "/source/version")
    operation = record.get("operation")
    if operation not in OPERATIONS:
        raise StructureError("an operation of DTS", shown(str(operation)), pointer="/operation")
    out.write_long(OPERATIONS.index(operation))
    _write_nullable(out, record.get("objectName"), lambda text: _write_string(out, text, "/objectName"))
    times = record.get("processTimestamps")
    _write_nullable(
        out, times, lambda items: _write_block(out, items, lambda one: _write_long(out, one, "/processTimestamps"))
    )
    _write_tags(out, record.get("tags") or {})
    _write_images(out, record)
    if record.get("bornTimestamp") is not None or "version" not in record:
        _write_long(out, record.get("bornTimestamp") or 0, "/bornTimestamp")
    return out.taken()


def _write_long(out: Buffer, value: Any, pointer: str, bits: int = 63) -> None:
    if type(value) is not int or not -(1 << bits) <= value < 1 << bits:
        raise StructureError(f"an integer of {bits + 1} bits", shown(str(value)), pointer=pointer)
    out.write_long(value)


def _write_string(out: Buffer, value: Any, pointer: str) -> None:
    if type(value) is not str:
        raise StructureError("a string", shown(str(value)), pointer=pointer)
    out.write_string(value)


def _write_nullable(out: Buffer, value: Any, write: Callable[[Any], None]) -> None:
    out.write_long(0 if value is None else 1)
    if value is not None:
        write(value)


def _write_block(out: Buffer, items: Any, write: Callable[[Any], None]) -> None:
    if items:
        out.write_long(len(items))
        for item in items:
            write(item)
    out.write_long(0)


def _write_tags(out: Buffer, tags: dict[str, Any]) -> None:
    def write(entry: tuple[str, Any]) -> None:
        _write_string(out, entry[0], "/tags")
        _write_string(out, entry[1], "/tags")

    _write_block(out, tags.items(), write)


def _write_images(out: Buffer, record: Value) -> None:
    """Write the columns and both rows; columns that no record lists are those of the rows."""
    rows = {side: record.get(f"{side}Images") for side in ("before", "after")}
    fields = record.get("fields")
    if fields is None and any(row is not None for row in rows.values()):
        samples = {name: value for row in rows.values() for name, value in (row or {}).items()}
        fields = [
            {"name": name, "dataTypeNumber": _NUMBERS[_usual_form(value)["type"]]} for name, value in samples.items()
        ]

    def write_field(field: Value) -> None:
        _write_string(out, field.get("name"), "/fields")
        _write_long(out, field.get("dataTypeNumber") or 0, "/fields", 31)

    _write_text_or_array(out, record.get("fieldsText"), fields, write_field)
    for side, row in rows.items():
        forms = record.get(f"{side}Forms")
        forms = [None] * len(fields or []) if forms is None else forms
        if row is not None and len(forms) != len(fields or []):
            raise StructureError(f"{len(fields or [])} forms", f"{len(forms)}", pointer=f"/{side}Forms")
        values = (
            None
            if row is None
            else [
                (*_value_of(row, field.get("name"), form, f"/{side}Images"), f"/{side}Images")
                for field, form in zip(fields or [], forms, strict=True)
            ]
        )
        _write_text_or_array(out, record.get(f"{side}Text"), values, lambda one: _write_value(out, *one))


def _write_text_or_array(out: Buffer, text: Any, items: Any, write: Callable[[Any], None]) -> None:
    out.write_long(2 if items is not None else 1 if text is not None else 0)
    if items is not None:
        _write_block(out, items, write)
    elif text is not None:
        _write_string(out, text, "")


# The numbers of MySQL's types that values without a form have: bigint, double, decimal, varchar, JSON.
_NUMBERS: Final = {"Integer": 8, "Float": 5, "Decimal": 246, "Character": 253, "TextObject": 245, "EmptyObject": 253}


def _usual_form(value: Any) -> Value:
    """Return the form of a value that did not come from DTS."""
    if type(value) is bool or (type(value) is int and not isinstance(value, ExactNumber)):
        return {"type": "Integer", "precision": 8}
    if type(value) in (float, ExactNumber):
        digits = plain_text(value).partition("e")[0].partition("E")[0].lstrip("-")
        whole, _, fraction = digits.partition(".")
        return {"type": "Decimal", "precision": len(whole + fraction), "scale": len(fraction)}
    if type(value) in (dict, list):
        return {"type": "TextObject", "object": "json"}
    return {"type": "Character", "charset": "utf8mb4"}


def _value_of(row: Value, column: Any, form: Value | None, pointer: str) -> tuple[str, Value]:
    """Return the type and the value of DTS for a column. Raises `StructureError` if its form does not give it."""
    if column not in row:
        return "EmptyObject", {"symbol": "NONE"}
    plain = row[column]
    if plain is None and (form is None or form.get("type") not in _TYPES):
        return "null", {}
    form = form or _usual_form(plain)
    name = form.get("type")
    if name not in _TYPES or name == "null":
        raise StructureError("a type of DTS", shown(str(name)), pointer=pointer)
    if form.get("value") is not None:
        return name, _from_json(name, form["value"], pointer)
    if type(plain) is bool:
        plain = int(plain)
    text = render(plain).decode() if type(plain) in (dict, list) else plain
    value = _sent(name, text, form)
    if name == "Character" and form.get("charset") is not None and type(text) is str and value["value"] is None:
        charset, is_known = shown(form["charset"]), form["charset"].lower() in CODECS_OF_CHARSETS
        expected = f"a text in the charset {charset}" if is_known else f"base64, as the charset {charset} is not known"
        raise StructureError(expected, shown(text), pointer=f"{pointer}/{column}")
    if any(item is None for item in value.values()):
        raise StructureError(f"a value of the type {name}", shown(str(plain)), pointer=f"{pointer}/{column}")
    return name, value


def _write_value(out: Buffer, name: str, value: Value, pointer: str) -> None:
    out.write_long(NAMES.index(name))
    for member, kind in _TYPES[name]:
        item = value[member]
        if kind in ("int", "long"):
            _write_long(out, item, pointer, 31 if kind == "int" else 63)
        elif kind == "bytes":
            write_bytes(out, item)
        elif kind == "double":
            out.write_double(item)
        elif kind == "symbol":
            out.write_long(_EMPTY.index(item) if item in _EMPTY else 0)
        elif kind == "parts":
            for part in _checked_parts(item, pointer):
                _write_nullable(out, part, lambda one: _write_long(out, one, pointer, 31))
        else:
            _write_string(out, item, pointer)


def _checked_parts(parts: Any, pointer: str) -> list[int | None]:
    if type(parts) is not list or len(parts) != len(_PARTS):
        raise StructureError(f"{len(_PARTS)} parts of a time", shown(str(parts)), pointer=pointer)
    return parts

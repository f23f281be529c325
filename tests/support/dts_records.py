"""Records of Alibaba DTS as its clients' schema has them, written by fastavro, and values of all types at random."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import fastavro

if TYPE_CHECKING:
    from random import Random

NAMESPACE = "com.alibaba.dts.formats.avro"
_KINDS = [
    "MySQL",
    "Oracle",
    "SQLServer",
    "PostgreSQL",
    "MongoDB",
    "Redis",
    "DB2",
    "PPAS",
    "DRDS",
    "HBASE",
    "HDFS",
    "FILE",
    "OTHER",
]
_OPERATIONS = [
    "INSERT",
    "UPDATE",
    "DELETE",
    "DDL",
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
    "ABORT",
    "HEARTBEAT",
    "CHECKPOINT",
    "COMMAND",
    "FILL",
    "FINISH",
    "CONTROL",
    "RDB",
    "NOOP",
    "INIT",
]
_PARTS = ("year", "month", "day", "hour", "minute", "second", "millis")
_VALUES: dict[str, list[tuple[str, Any]]] = {
    "Integer": [("precision", "int"), ("value", "string")],
    "Character": [("charset", "string"), ("value", "bytes")],
    "Decimal": [("value", "string"), ("precision", "int"), ("scale", "int")],
    "Float": [("value", "double"), ("precision", "int"), ("scale", "int")],
    "Timestamp": [("timestamp", "long"), ("millis", "int")],
    "DateTime": [(part, ["null", "int"]) for part in _PARTS],
    "TimestampWithTimeZone": [("value", "DateTime"), ("timezone", "string")],
    "BinaryGeometry": [("type", "string"), ("value", "bytes")],
    "TextGeometry": [("type", "string"), ("value", "string")],
    "BinaryObject": [("type", "string"), ("value", "bytes")],
    "TextObject": [("type", "string"), ("value", "string")],
}


def _record(name: str, fields: list[tuple[str, Any]]) -> dict[str, Any]:
    return {
        "type": "record",
        "name": name,
        "namespace": NAMESPACE,
        "fields": [{"name": field, "type": type} for field, type in fields],
    }


def _schema() -> Any:
    definitions = [_record(name, fields) for name, fields in _VALUES.items()]
    empty = {"type": "enum", "name": "EmptyObject", "namespace": NAMESPACE, "symbols": ["NULL", "NONE"]}
    first = ["null", "string", {"type": "array", "items": ["null", *definitions, empty]}]
    again = ["null", "string", {"type": "array", "items": ["null", *_VALUES, "EmptyObject"]}]
    column = _record("Field", [("name", "string"), ("dataTypeNumber", "int")])
    kind = {"type": "enum", "name": "SourceType", "symbols": _KINDS}
    fields = [
        ("version", "int"),
        ("id", "long"),
        ("sourceTimestamp", "long"),
        ("sourcePosition", "string"),
        ("safeSourcePosition", "string"),
        ("sourceTxid", "string"),
        ("source", _record("Source", [("sourceType", kind), ("version", "string")])),
        ("operation", {"type": "enum", "name": "Operation", "symbols": _OPERATIONS}),
        ("objectName", ["null", "string"]),
        ("processTimestamps", ["null", {"type": "array", "items": "long"}]),
        ("tags", {"type": "map", "values": "string"}),
        ("fields", ["null", "string", {"type": "array", "items": column}]),
        ("beforeImages", first),
        ("afterImages", again),
        ("bornTimestamp", "long"),
    ]
    return fastavro.parse_schema(_record("Record", fields))


SCHEMA = _schema()


def value(name: str, **members: Any) -> Any:
    """Return a value of a type as fastavro wants it."""
    return f"{NAMESPACE}.{name}", members


def instant(*parts: int | None) -> dict[str, int | None]:
    """Return a DateTime of its first parts, the others null."""
    return dict(zip(_PARTS, (*parts, *[None] * len(_PARTS)), strict=False))


def record(columns: dict[str, int] | None = None, **members: Any) -> dict[str, Any]:
    """Return a record of MySQL's, with columns and the numbers of their types, and other members."""
    usual: dict[str, Any] = {
        "version": 0,
        "id": 1_700_504,
        "sourceTimestamp": 1_696_984_517,
        "sourcePosition": "75259@78",
        "safeSourcePosition": "75103@78",
        "sourceTxid": "0",
        "source": {"sourceType": "MySQL", "version": "8.0.28"},
        "operation": "INSERT",
        "objectName": "mydb.t1",
        "processTimestamps": None,
        "tags": {"metaVersion": "3109599372", "pk_uk_info": '{"PRIMARY":["a"]}', "thread_id": "163931"},
        "fields": None,
        "beforeImages": None,
        "afterImages": None,
        "bornTimestamp": 1_696_984_517,
    }
    if columns is not None:
        usual["fields"] = [{"name": name, "dataTypeNumber": number} for name, number in columns.items()]
    return usual | members


def packed(one: dict[str, Any]) -> bytes:
    """Return the bytes of a record."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, SCHEMA, one)
    return out.getvalue()


def any_value(random: Random) -> Any:
    """Return a value at random, also such as no database has."""
    number = random.choice(["0", "-7", "007", "1.20", "1e5", "", "NaN", "18446744073709551615", "1" * 40, "x", "-0"])
    raw = random.choice([b"", b"a", "tést".encode(), "tést".encode("gbk", "ignore"), b"\xff\x00", b"\x81", b"null"])
    text = random.choice(["", "a", '{"a":1}', "ü", "\x00"])
    name = random.choice(["utf8mb4", "latin1", "gbk", "UTF8", "binary", "", "no such", "utf16"])
    part = random.choice
    parts = [part([None, 0, 1, -1, 12, 59, 2023, 999_999, 1_000_000, -838]) for _ in _PARTS]
    likely = random.choice([(2023, 1, 2, 3, 4, 5, 600_000), (2023, 1, 2), (None, None, None, -1, -2, -3), (2023,)])
    time = dict(zip(_PARTS, parts, strict=True)) if random.random() < 0.3 else instant(*likely)
    double = part([0.0, -0.0, 1.5, 1e22, 1e-7, float("nan"), float("inf"), float("-inf"), 0.1, 5e-324])
    seconds, micros = part([0, 1_700_000_000, -1, 1 << 60]), part([0, 250_000, -1, 999_999, 1_000_000])
    return part(
        [
            None,
            part(["NULL", "NONE"]),
            value("Integer", precision=part([1, 8, -1]), value=number),
            value("Decimal", value=number, precision=10, scale=2),
            value("Float", value=double, precision=0, scale=0),
            value("Character", charset=name, value=raw),
            value("Timestamp", timestamp=seconds, millis=micros),
            value("DateTime", **time),
            value("TimestampWithTimeZone", value=time, timezone=part(["+08:00", "Asia/Shanghai", "", "Z", " "])),
            value(part(["BinaryGeometry", "BinaryObject"]), type="blob", value=raw),
            value(part(["TextGeometry", "TextObject"]), type=text, value=text),
        ]
    )

"""Data that covers every branch of a schema, their payloads, and what a reader should return for them."""

from __future__ import annotations

import datetime as dt
import math
import random
import struct
import uuid
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from cdcavro.avro.defaults import default_branch
from cdcavro.avro.resolution import ReadArray, ReadEnum, ReadFixed, ReadMap, ReadPrimitive, ReadRecord, ReadUnion
from cdcavro.avro.types import Array, Enum, Fixed, Map, Primitive, Record, Union, logical_type

if TYPE_CHECKING:
    from cdcavro.avro.resolution import Step
    from cdcavro.avro.types import Type

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


@dataclass(frozen=True)
class Branch:
    """A value of a union: the index of its branch, and the value."""

    index: int
    value: Any


def cover(declared: Type, rng: random.Random, within: tuple[str, ...] = ()) -> list[Any]:
    """Return data of a type that together covers every branch, symbol and kind of value; none if it has none.

    A record that contains itself does so once; `within` are the names of the records around.
    """
    match declared:
        case Record(name, fields=fields):
            if within.count(name) > 1:
                return []
            pools = {field.name: cover(field.type, rng, (*within, name)) for field in fields}
            count = max(map(len, pools.values()), default=1) if all(pools.values()) else 0
            return [{name: pool[i % len(pool)] for name, pool in pools.items()} for i in range(count)]
        case Union(branches):
            return [Branch(i, datum) for i, branch in enumerate(branches) for datum in cover(branch, rng, within)]
        case Array(items):
            return [[], cover(items, rng, within)]
        case Map(values):
            return [{}, {f"k{i}": datum for i, datum in enumerate(cover(values, rng, within))}]
        case Enum(symbols=symbols):
            return list(symbols)
        case Fixed(size=size):
            decimal = logical_type(declared)
            return [(10**decimal.precision - 1).to_bytes(size, "big")] if decimal else [bytes(range(size))]
        case Primitive():
            return _primitives(declared, rng)
    raise TypeError(declared)


def _primitives(declared: Primitive, rng: random.Random) -> list[Any]:
    unit = logical_type(declared)
    if unit is None:
        return {
            "null": [None],
            "boolean": [True],
            "int": [2**24 + 1, -1, rng.randrange(-(2**31), 2**31)],
            "long": [2**53 + 1, -1, rng.randrange(-(2**63), 2**63)],
            "float": [1.5],
            "double": [1e300, rng.random()],
            "bytes": [b"\xff\x00", b"ab", rng.randbytes(3)],
            "string": ["", "é", "x\n"],
        }[declared.name]
    if unit.name == "decimal":
        values = [10**unit.precision - 1, -1, rng.randrange(10**unit.precision)]
        return [unscaled.to_bytes(9, "big", signed=True) for unscaled in values]
    if unit.name == "uuid":
        return [str(uuid.UUID(int=rng.getrandbits(128)))]
    day = {"date": 30_000, "time-millis": 86_400_000, "time-micros": 86_400_000_000}
    return [rng.randrange(day.get(unit.name, 2_000_000_000_000))]


def write(declared: Type, value: Any, rng: random.Random | None = None) -> bytes:
    """Return a datum in Avro's binary encoding; with `rng`, collections come in blocks, of which some say their size."""
    match declared:
        case Record(fields=fields):
            return b"".join(write(field.type, value[field.name], rng) for field in fields)
        case Union(branches):
            return _long(value.index) + write(branches[value.index], value.value, rng)
        case Array(items):
            return _blocks([write(items, item, rng) for item in value], rng)
        case Map(values):
            return _blocks([_text(name.encode()) + write(values, item, rng) for name, item in value.items()], rng)
        case Enum(symbols=symbols):
            return _long(symbols.index(value))
        case Fixed():
            return bytes(value)
        case Primitive(name):
            writers = {
                "null": lambda _: b"",
                "boolean": lambda datum: bytes([datum]),
                "int": _long,
                "long": _long,
                "float": lambda datum: struct.pack("<f", datum),
                "double": lambda datum: struct.pack("<d", datum),
                "bytes": _text,
                "string": lambda datum: _text(datum.encode()),
            }
            return writers[name](value)
    raise TypeError(declared)


def _blocks(items: list[bytes], rng: random.Random | None) -> bytes:
    out = bytearray()
    while items:
        count = rng.randint(1, len(items)) if rng else len(items)
        block, items = b"".join(items[:count]), items[count:]
        is_sized = rng is not None and rng.random() < 0.5
        out += (_long(-count) + _long(len(block)) if is_sized else _long(count)) + block
    return bytes(out) + b"\0"


def _text(raw: bytes) -> bytes:
    return _long(len(raw)) + raw


def _long(number: int) -> bytes:
    rest = (number << 1) ^ (number >> 63)
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*out, rest])


# What a reader should return


def expected(step: Step, value: Any, *, by_writer: bool = False, raw: bool = False) -> Any:
    """Return what the steps of a resolution should return for a datum, with the reader's logical types.

    With `by_writer`, the logical types are the writer's; with `raw`, defaults are as in the schema's JSON.
    """

    def go(inner: Step, datum: Any) -> Any:
        return expected(inner, datum, by_writer=by_writer, raw=raw)

    match step:
        case ReadPrimitive(writer, reader):
            if by_writer and logical_type(writer):
                return meaning(writer, value)
            return meaning(reader, promoted(writer.name, reader.name, value))
        case ReadFixed():
            return value
        case ReadEnum(reader=reader):
            return value if value in reader.symbols else reader.default
        case ReadArray(items):
            return [go(items, item) for item in value]
        case ReadMap(values):
            return {name: go(values, item) for name, item in value.items()}
        case ReadUnion(branches):
            return go(branches[value.index], value.value)
        case ReadRecord(_, fields, defaults):
            row = {into.name: go(inner, value[was.name]) for inner, was, into in fields if into is not None}
            return row | {
                field.name: stated(field.default) if raw else default_value(field.type, field.default)
                for field in defaults
            }
    raise TypeError(step)


def stated(default: Any) -> Any:
    """Return a default as the schema's JSON has it: numbers that JSON lacks are texts."""
    special = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
    return special.get(str(default), default) if isinstance(default, float) else default


def promoted(writer: str, reader: str, value: Any) -> Any:
    """Return a value as the type that it is promoted to."""
    if reader in ("float", "double") and writer in ("int", "long"):
        return float(value)
    if (writer, reader) == ("string", "bytes"):
        return value.encode()
    if (writer, reader) == ("bytes", "string"):
        return value.decode()
    return value


def meaning(declared: Primitive | Fixed, value: Any) -> Any:
    """Return what a value means by its logical type."""
    unit = logical_type(declared)
    if unit is None or unit.name == "duration":
        return value
    if unit.name == "decimal":
        return Decimal(int.from_bytes(value, "big", signed=True)).scaleb(-unit.scale)
    if unit.name == "uuid":
        return uuid.UUID(value)
    if unit.name == "date":
        return EPOCH.date() + dt.timedelta(days=value)
    since = dt.timedelta(**{"milliseconds" if unit.name.endswith("millis") else "microseconds": value})
    if unit.name.startswith("time-"):
        return (EPOCH + since).time()
    return (EPOCH + since).replace(tzinfo=None) if unit.name.startswith("local-") else EPOCH + since


def default_value(declared: Type, default: Any) -> Any:
    """Return the value of a default in a schema's JSON."""
    match declared:
        case Union():
            return default_value(default_branch(declared, default), default)
        case Record(fields=fields):
            return {field.name: default_value(field.type, default.get(field.name, field.default)) for field in fields}
        case Array(items):
            return [default_value(items, item) for item in default]
        case Map(values):
            return {name: default_value(values, item) for name, item in default.items()}
        case Fixed() | Primitive("bytes"):
            return meaning(declared, default.encode("latin-1"))
        case Primitive("float" | "double"):
            return float(default)
        case Primitive():
            return meaning(declared, default)
        case Enum():
            return default
    raise TypeError(declared)


def is_same(left: Any, right: Any) -> bool:
    """Return whether two values are equal, with floats compared roughly, and decimals in fixed types by their bytes."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(is_same(left[name], right[name]) for name in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(is_same, left, right))
    if isinstance(left, bytes) and isinstance(right, Decimal):
        return int.from_bytes(left, "big", signed=True) == int("".join(map(str, right.as_tuple().digits)))
    if isinstance(left, float) and isinstance(right, float):
        return math.isclose(left, right, rel_tol=1e-6) or (math.isnan(left) and math.isnan(right))
    if {type(left), type(right)} == {int, float}:
        return bool(left == right)
    return type(left) is type(right) and left == right

"""The plan that reads payloads: the steps of a schema resolution, as a tree of `readers`."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec import UNSET

from cdcavro import pointers, text
from cdcavro.attributes import FieldRule, field_rule, holds
from cdcavro.errors import PayloadError, SchemaError, TextError, shown
from cdcavro.evolution import (
    ReadArray,
    ReadEnum,
    ReadFixed,
    ReadMap,
    ReadPrimitive,
    ReadRecord,
    ReadUnion,
    Step,
)
from cdcavro.readers import (
    ArrayReader,
    EnumReader,
    HeldReader,
    MapReader,
    Payload,
    Reader,
    RecordReader,
    ScalarReader,
    UnionReader,
)
from cdcavro.text import ExactNumber, escape

if TYPE_CHECKING:
    from collections.abc import Callable

    from cdcavro.types import Field


class EnvelopeReader:
    """The outermost record with its `extras` applied."""

    __slots__ = ("_record",)

    def __init__(self, step: Step) -> None:
        if not isinstance(step, ReadRecord):
            raise SchemaError("$", "a wire schema is a record")
        self._record = _record(step, _Place("", 1, wanted=True))

    def read(self, raw: bytes) -> dict[str, Any]:
        """Read exactly one payload. Raises `PayloadError`."""
        payload = Payload(raw)
        record = self.read_from(payload)
        payload.finish()
        return record

    def read_from(self, payload: Payload) -> dict[str, Any]:
        """Read one payload of several in a row. Raises `PayloadError`."""
        payload.extras = {}
        record: dict[str, Any] = self._record.read(payload)
        if payload.extras:
            pointers.apply(record, payload.extras)
        return record


class _Place(NamedTuple):
    """Where a reader stands: pointer below the nearest array or map, depth in the JSON, whether its fields have rules.

    What the writer wrote and the reader does not want is read without rules, and dropped.
    """

    pointer: str
    depth: int
    wanted: bool

    def member(self, name: str) -> _Place:
        return _Place(f"{self.pointer}/{escape(name)}", self.depth + 1, self.wanted)

    def item(self) -> _Place:
        return _Place("", self.depth + 1, self.wanted)

    def rule(self, declared: Field) -> FieldRule:
        return field_rule(declared) if self.wanted else FieldRule(declared.name)


def _reader(step: Step, place: _Place, missing: Any) -> Reader:
    match step:
        case ReadPrimitive(writer, reader) if reader.name != "bytes" or not place.wanted:
            return ScalarReader(_scalar(writer.name, reader.name), place.pointer)
        case ReadFixed(size) if not place.wanted:
            return ScalarReader(lambda payload: payload.take(size), place.pointer)
        case ReadEnum(symbols=symbols):
            return EnumReader(symbols, place.pointer)
        case ReadArray(items):
            return ArrayReader(_reader(items, place.item(), None), place.pointer)
        case ReadMap(values):
            return MapReader(_reader(values, place.item(), None), place.pointer)
        case ReadUnion(branches):
            return UnionReader([_branch(branch, place, missing) for branch in branches], missing, place.pointer)
        case ReadRecord(reader=declared):
            held = holds(declared) if place.wanted else ""
            return _held(step, held, place) if held else _record(step, place)
        case ReadPrimitive() | ReadFixed():
            raise SchemaError(place.pointer or "$", "a wire schema holds no bytes and no fixed")
    raise SchemaError(place.pointer or "$", f"no reader for {type(step).__name__}")


def _branch(step: Step | str, place: _Place, missing: Any) -> Reader | str | None:
    if isinstance(step, str):
        return step
    if isinstance(step, ReadPrimitive) and step.writer.name == "null":
        return None
    return _reader(step, place, missing)


def _held(step: ReadRecord, held: str, place: _Place) -> Reader:
    if len(step.fields) != 1 or step.defaults:
        raise SchemaError(step.reader.name, "the one field of a number's or a value's text is the same in all versions")
    take = _held_number if held == "number" else partial(text.parse, above=place.depth - 1)
    return HeldReader(ScalarReader(Payload.read_string, ""), take, place.pointer)


def _record(step: ReadRecord, place: _Place) -> RecordReader:
    fields: list[tuple[str, str, Reader]] = []
    for inner, into in step.fields:
        if into is None:
            fields.append(("skipped", "", _reader(inner, _Place(place.pointer, place.depth, wanted=False), None)))
            continue
        rule = place.rule(into)
        own = place if rule.members else place.member(rule.name)
        fields.append((rule.members, rule.name, _reader(inner, own, _missing(rule))))
    defaults = [entry for one in step.defaults for entry in _default(one, place.rule(one))]
    return RecordReader(fields, defaults, place.pointer)


def _missing(rule: FieldRule) -> Any:
    return None if rule.missing == "null" else UNSET


def _default(declared: Field, rule: FieldRule) -> list[tuple[str, tuple[Any, Any]]]:
    if rule.members:
        if declared.default:
            raise SchemaError(declared.name, "the default of a map of members is empty")
        return []
    if declared.default is None and rule.missing == "absent":
        return []
    return [(rule.name, (declared.type, declared.default))]


def _scalar(writer: str, reader: str) -> Callable[[Payload], Any]:
    get = _SCALARS[writer]
    if reader in ("float", "double") and writer in ("int", "long"):
        return lambda payload: float(get(payload))
    return _SCALARS["string"] if reader == "string" else get


def _finite(get: Callable[[Payload], float]) -> Callable[[Payload], float]:
    def read(payload: Payload) -> float:
        value = get(payload)
        if not math.isfinite(value):
            raise PayloadError("a JSON number", f"{value} before byte {payload.position}")
        return value

    return read


def _held_number(held: str) -> ExactNumber:
    if not text.is_number(held):
        raise TextError("a JSON number", shown(held))
    return ExactNumber(held)


_SCALARS: Final[dict[str, Callable[[Payload], Any]]] = {
    "null": lambda _: None,
    "float": _finite(Payload.read_float),
    "bytes": Payload.read_bytes,
    "boolean": Payload.read_boolean,
    "int": Payload.read_int,
    "long": Payload.read_long,
    "double": _finite(Payload.read_double),
    "string": Payload.read_string,
}

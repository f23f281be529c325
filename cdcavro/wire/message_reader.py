"""The reader of messages: a plan for reading payloads, made of small readers by walking a wire schema once.

`extras` are skipped while the record is read, and applied at the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec import UNSET

from cdcavro.avro.types import Array, Enum, Map, Primitive, Record, Type, Union, branch_name, check_expansion
from cdcavro.errors import MessageError, PayloadError, SchemaError, shown
from cdcavro.exact.caching import WeightedCache
from cdcavro.exact.jsontext import escape, render
from cdcavro.wire import extras
from cdcavro.wire.attributes import content_of, enum_rule, field_rule
from cdcavro.wire.extras import schema_member
from cdcavro.wire.value_readers import (
    ArrayReader,
    BooleanReader,
    DoubleReader,
    EnumReader,
    IntReader,
    LongReader,
    MapReader,
    NumberReader,
    OptionalReader,
    PayloadDecoder,
    StringReader,
    TextReader,
    UnionReader,
    ValueReader,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from cdcavro.engine.machine import Engine, Values
    from cdcavro.wire.extras import SchemaMember


# An empty map.
_NO_EXTRAS: Final = b"\0"
# The size in bytes of the longest extras whose steps are cached, and of all cached extras together.
_MAX_TAIL: Final = 2_000
_MAX_TAILS: Final = 256 << 10
# About how many bytes of lines `decode_lines` yields at a time.
_PIECE_SIZE: Final = 256 << 10


class FieldReader:
    """A field and its reader.

    Attributes: `members` (str), the key `members` of its rule, "" for a single member; `name` (str), the member's name;
    `pointer` (str), the member's pointer; `reader`, its reader.
    """

    __slots__ = ("members", "name", "pointer", "reader")

    def __init__(self, members: str, name: str, pointer: str, reader: ValueReader) -> None:
        self.members = members
        self.name = name
        self.pointer = pointer
        self.reader = reader


class RecordReader(ValueReader):
    """A reader of a record: members by name, the entries of a rest map among them, `extras` set aside."""

    __slots__ = ("_fields", "_named")

    def __init__(self, fields: Sequence[FieldReader]) -> None:
        self._fields = tuple(fields)
        self._named = frozenset(field.name for field in fields if not field.members)

    def read(self, payload: PayloadDecoder) -> Any:
        """Read all fields into a dict."""
        record: dict[str, Any] = {}
        for field in self._fields:
            payload.place = field.pointer
            if not field.members:
                value = field.reader.read(payload)
                if value is not UNSET:
                    record[field.name] = value
            elif field.members == "extras":
                self._skip_extras(payload, field.reader)
            else:
                rest = field.reader.read(payload)
                self._check_rest(rest)
                record.update(rest)
        return record

    def _skip_extras(self, payload: PayloadDecoder, reader: ValueReader) -> None:
        try:
            payload.skip_extras()
        except MessageError:
            # Reading the extras finds the same fault and its place.
            payload.extras = reader.read(payload.rewind())

    def _check_rest(self, names: Iterable[str]) -> None:
        for name in self._named.intersection(names):
            raise PayloadError("a member that has no field", shown(name))


class MessageReader:
    """A reader of whole messages: the outermost record with its `extras` applied.

    Created from the reader of the record and the members that the schema names, by pointer.
    """

    __slots__ = ("_kept", "_members", "_record")

    def __init__(self, record: RecordReader, members: Mapping[str, SchemaMember]) -> None:
        self._record = record
        self._members = members
        self._kept = WeightedCache(_MAX_TAILS)

    def read(self, payload: PayloadDecoder) -> dict[str, Any]:
        """Read one payload, after which others may follow, as a record. Raises `PayloadError`."""
        payload.extras = None
        # The writer's schema may have no extras.
        payload.start = payload.stop = 0
        try:
            record: dict[str, Any] = self._record.read(payload)
            payload.place = ""
            tail = payload.extras_bytes()
            if tail and tail != _NO_EXTRAS:
                steps = self._steps(tail)
                if steps is None or not extras.apply_steps(record, steps):
                    payload.extras = _EXTRAS.read(payload.rewind())
                    record = extras.apply(record, payload.extras, self._members)
        except MessageError as error:
            error.below(payload.place)
            raise
        return record

    def read_at(self, values: Values | None, raw: bytes, position: int) -> tuple[dict[str, Any], int]:
        """Return the record of the payload at a position, and the position after it; the engine reads it if it can.

        Raises `PayloadError`.
        """
        found = None if values is None else values.read(raw, position)
        if found is not None:
            return found
        payload = PayloadDecoder(raw, position)
        return self.read(payload), payload.position

    def _steps(self, tail: bytes) -> list[extras.ExtrasStep] | None:
        """Return the steps for the bytes of extras, cached because these are the same in most messages."""
        entry: tuple[list[extras.ExtrasStep] | None] | None = self._kept.get(tail)
        if entry is None:
            if len(tail) > _MAX_TAIL:
                return None
            try:
                payload = PayloadDecoder(tail)
                payload.place = ""
                entry = (extras.checked_steps(_EXTRAS.read(payload), self._members),)
            except MessageError:
                return None
            self._kept.put(tail, entry, len(tail))
        return entry[0]

    def decode(self, raw: bytes) -> bytes:
        """Return a payload as compact JSON text. Raises `PayloadError`."""
        payload = PayloadDecoder(raw)
        text = render(self.read(payload))
        payload.finish()
        return text


_EXTRAS: Final = MapReader(StringReader())


def message_reader(declared: Type) -> MessageReader:
    """Return the plan of a wire schema. Raises `SchemaError` for a type that is not one."""
    if not isinstance(declared, Record):
        raise SchemaError("$", "a wire schema is a record")
    check_expansion(declared, "a format of messages")
    members: dict[str, SchemaMember] = {}
    return MessageReader(_record(declared, _ReaderPlace("", 1, members)), members)


class _ReaderPlace(NamedTuple):
    """The place of a reader."""

    # Its pointer below the nearest array or map.
    pointer: str
    # Its depth in the JSON value.
    depth: int
    # Collects the members that the schema names, by pointer; None below an array or map.
    members: dict[str, SchemaMember] | None

    def member(self, name: str) -> _ReaderPlace:
        return _ReaderPlace(f"{self.pointer}/{escape(name)}", self.depth + 1, self.members)

    def item(self) -> _ReaderPlace:
        return _ReaderPlace("", self.depth + 1, None)


def _reader(declared: Type, place: _ReaderPlace, missing: Any) -> ValueReader:
    match declared:
        case Primitive(name) if name in _SCALARS:
            return _SCALARS[name]()
        case Enum(symbols=symbols):
            return EnumReader(enum_rule(declared).texts(symbols))
        case Array(items):
            return ArrayReader(_reader(items, place.item(), None))
        case Map(values):
            return MapReader(_reader(values, place.item(), None))
        case Union(branches):
            return _union(branches, place, missing)
        case Record():
            return _CONTENT_READERS.get(content_of(declared), _record)(declared, place)
    raise SchemaError(place.pointer or "$", f"a wire schema holds no {branch_name(declared)}")


def _union(branches: tuple[Type, ...], place: _ReaderPlace, missing: Any) -> ValueReader:
    readers = [None if branch == Primitive("null") else _reader(branch, place, missing) for branch in branches]
    some = [reader for reader in readers if reader is not None]
    if len(readers) == len(some) + 1 == 2:  # noqa: PLR2004  null and one other
        return OptionalReader(some[0], readers.index(some[0]), missing)
    return UnionReader(readers, missing)


def _record(declared: Record, place: _ReaderPlace) -> RecordReader:
    fields: list[FieldReader] = []
    for field in declared.fields:
        rule = field_rule(field)
        member = place if rule.members else place.member(rule.name)
        if place.members is not None and not rule.members:
            place.members[member.pointer] = schema_member(
                member.pointer, is_scalar=_is_scalar(field.type), is_required=rule.required, is_text=rule.text
            )
        missing = None if rule.missing == "null" else UNSET
        fields.append(FieldReader(rule.members, rule.name, member.pointer, _reader(field.type, member, missing)))
    return RecordReader(fields)


def _is_scalar(declared: Type) -> bool:
    branches = declared.branches if isinstance(declared, Union) else (declared,)
    return not any(isinstance(branch, (Array, Map, Record)) for branch in branches)


_CONTENT_READERS: Final[dict[str, Callable[[Record, _ReaderPlace], ValueReader]]] = {
    "number": lambda *_: NumberReader(),
    "text": lambda _, place: TextReader(place.depth - 1),
}
_SCALARS: Final[dict[str, Callable[[], ValueReader]]] = {
    "boolean": BooleanReader,
    "int": IntReader,
    "long": LongReader,
    "double": DoubleReader,
    "string": StringReader,
}


def decode_lines(engine: Engine | None, reader: MessageReader, raw: bytes, count: int) -> Iterator[tuple[bytes, int]]:
    """Yield `count` consecutive payloads as lines of JSON text, several at a time, with their number.

    The reader converts those that the engine leaves, and all if there is no engine. Raises `PayloadError`.
    """
    position = 0
    while count:
        lines: list[bytes] = []
        done = size = 0
        try:
            while done < count and size < _PIECE_SIZE:
                if engine is not None:
                    some, position, number = engine.decode_lines(raw, position, count - done, _PIECE_SIZE - size)
                    lines.append(some)
                    done += number
                    size += len(some)
                if done < count and size < _PIECE_SIZE:
                    line, position = _decode_line(reader, raw, position)
                    lines.append(line)
                    done += 1
                    size += len(line)
        except MessageError:
            yield b"".join(lines), done
            raise
        yield b"".join(lines), done
        count -= done
    PayloadDecoder(raw, position).finish()


def _decode_line(reader: MessageReader, raw: bytes, position: int) -> tuple[bytes, int]:
    payload = PayloadDecoder(raw, position)
    return render(reader.read(payload)) + b"\n", payload.position

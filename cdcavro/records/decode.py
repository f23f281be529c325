"""Reading Avro data as instances: the steps of `resolution.resolve` as functions that read from a `Decoder`.

Data written with the schema itself or with another one is read in the same way: the writer's fields in
order, each into the reader's field, or skipped if there is none; then the defaults are filled in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cdcavro.avro.binary import nearest_float
from cdcavro.avro.resolution import (
    ReadArray,
    ReadEnum,
    ReadFixed,
    ReadMap,
    ReadPrimitive,
    ReadRecord,
    ReadUnion,
    Step,
    is_same_name,
)
from cdcavro.avro.skip import READ_PRIMITIVE, skipper
from cdcavro.avro.types import Array, Enum, Fixed, Map, Primitive, Record, Type, Union, branch_name
from cdcavro.errors import MessageError, PayloadError, SchemaError, shown
from cdcavro.exact.jsontext import escape
from cdcavro.records.classes import field_names, maker
from cdcavro.records.field_defaults import default_maker
from cdcavro.records.scalars import scalar
from cdcavro.records.shapes import Key, branch_keys, meaning

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cdcavro.avro.decoder import Decoder

    Read = Callable[[Decoder], Any]


class Readers:
    """Builds the readers of types. `classes` are by key."""

    def __init__(self, classes: Mapping[Key, type]) -> None:
        self._classes = classes

    def reader(self, step: Step, writer: Type, reader: Type) -> Read:
        """Return the function that reads the writer's data as values of the reader's type, or raises `PayloadError`."""
        if isinstance(writer, Union):
            return self._from_union(step, writer, reader)
        if isinstance(reader, Union):
            at = _branch(step, writer, reader)
            inner = self._reader(step, writer, reader.branches[at])
            key = branch_keys(reader)[at]
            return inner if key is None else _wrapped(inner, self._classes[key])
        return self._reader(step, writer, reader)

    def _reader(self, step: Step, writer: Type, reader: Type) -> Read:
        match step, writer, reader:
            case ReadPrimitive(), Primitive(), Primitive():
                return _primitive(writer, reader)
            case ReadFixed(size), _, Fixed():
                return self._fixed(size, reader)
            case ReadEnum(symbols=symbols), _, Enum():
                return self._enum(symbols, reader)
            case ReadArray(inner), Array(written), Array(items):
                return _array(self.reader(inner, written, items))
            case ReadMap(inner), Map(written), Map(values):
                return _map(self.reader(inner, written, values))
            case ReadRecord(), Record(), Record():
                return self._record(step, reader)
        raise SchemaError("$", f"no reader for {type(step).__name__}")

    def _from_union(self, step: Step, writer: Union, reader: Type) -> Read:
        if not isinstance(step, ReadUnion):
            raise SchemaError("$", f"a union is not read by {type(step).__name__}")
        readers = [
            _refusing(inner) if isinstance(inner, str) else self.reader(inner, branch, reader)
            for inner, branch in zip(step.branches, writer.branches, strict=True)
        ]
        count = len(readers)
        return lambda source: readers[source.read_index(count, "a branch")](source)

    def _fixed(self, size: int, reader: Fixed) -> Read:
        lift: Any = self._classes[reader.name] if meaning(reader) is None else scalar(reader).lift
        return lambda source: lift(source.take(size))

    def _enum(self, symbols: tuple[str | None, ...], reader: Enum) -> Read:
        cls = self._classes[reader.name]
        members = [None if symbol is None else cls(symbol) for symbol in symbols]

        def read(source: Decoder) -> Any:
            member = members[source.read_index(len(members), "a symbol")]
            if member is None:
                raise PayloadError(f"a symbol of {reader.name}", f"another before byte {source.position}")
            return member

        return read

    def _record(self, step: ReadRecord, declared: Record) -> Read:
        places = {field.name: i for i, field in enumerate(declared.fields)}
        plan = [
            (
                len(places) if into is None else places[into.name],
                skipper(was.type, read_map=_map, read_record=_parts)
                if into is None
                else self.reader(inner, was.type, into.type),
                was.name,
            )
            for inner, was, into in step.fields
        ]
        fill = [
            (places[field.name], default_maker(field.type, field.default, self._classes)) for field in step.defaults
        ]
        cls = self._classes[declared.name]
        make = maker(cls, field_names(cls))

        def read(source: Decoder) -> Any:
            # Values of skipped fields go to one place after all others.
            values: list[Any] = [None] * (len(places) + 1)
            name = ""
            try:
                for at, inner, name in plan:  # noqa: B007  used where it fails
                    values[at] = inner(source)
            except MessageError as error:
                error.below(f"/{name}")
                raise
            for at, default in fill:
                values[at] = default()
            values.pop()
            return make(values)

        return read


def _parts(fields: list[tuple[str, Read]]) -> Read:
    """Return a function that skips a record; an error in it has the path of the whole record."""
    return lambda source: [read(source) for _, read in fields]


def _branch(step: Step, writer: Type, reader: Union) -> int:
    """Return the index of the branch that resolution chose: by what the step reads into; for a fixed, by its name."""
    match step:
        case ReadPrimitive(reader=into):
            return _place(reader, into.name)
        case ReadRecord(reader=into) | ReadEnum(reader=into):
            return _place(reader, into.name)
        case ReadArray():
            return _place(reader, "array")
        case ReadMap():
            return _place(reader, "map")
        case ReadFixed() if isinstance(writer, Fixed):
            names = [
                branch.name for branch in reader.branches if isinstance(branch, Fixed) and is_same_name(writer, branch)
            ]
            return _place(reader, writer.name if writer.name in names else names[0])
    raise SchemaError("$", f"no branch for {type(step).__name__}")


def _place(reader: Union, name: str) -> int:
    return next(i for i, branch in enumerate(reader.branches) if branch_name(branch) == name)


def _wrapped(inner: Read, cls: type) -> Read:
    return lambda source: cls(inner(source))


def _refusing(reason: str) -> Read:
    def read(_source: Decoder) -> Any:
        raise PayloadError("a branch that the reader's schema has", shown(reason))

    return read


def _primitive(writer: Primitive, reader: Primitive) -> Read:
    read, promote, lift = READ_PRIMITIVE[writer.name], _PROMOTE.get((writer.name, reader.name)), scalar(reader).lift
    for turn in (promote, lift):
        if turn is not None:
            read = _turned(read, turn)
    return read


def _turned(read: Read, turn: Callable[[Any], Any]) -> Read:
    return lambda source: turn(read(source))


def _array(inner: Read) -> Read:
    def read(source: Decoder) -> list[Any]:
        items: list[Any] = []
        append = items.append
        try:
            while count := source.read_block():
                for _ in range(count):
                    append(inner(source))
        except MessageError as error:
            error.below(f"/{len(items)}")
            raise
        return items

    return read


def _map(inner: Read) -> Read:
    def read(source: Decoder) -> dict[str, Any]:
        entries: dict[str, Any] = {}
        name = ""
        try:
            while count := source.read_block():
                for _ in range(count):
                    name = source.read_string()
                    if name in entries:
                        raise PayloadError("each name once", f"{shown(name)} twice")
                    entries[name] = inner(source)
        except MessageError as error:
            error.below(f"/{escape(name)}")
            raise
        return entries

    return read


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise PayloadError("UTF-8", f"byte 0x{raw[error.start]:02x}") from error


_PROMOTE: Final[dict[tuple[str, str], Callable[[Any], Any]]] = {
    ("int", "float"): nearest_float,
    ("long", "float"): nearest_float,
    ("int", "double"): float,
    ("long", "double"): float,
    ("string", "bytes"): str.encode,
    ("bytes", "string"): _text,
}

"""The Avro form of instances: each type is compiled once into a function that reads, and one that writes.

Data written with the schema itself or with another one are read in the same way, by the steps of
`resolution.resolve`: the writer's fields in order, each into the reader's field, or skipped if there is none; then
the defaults are filled in.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from cdcavro.avro.binary import (
    MAX_COUNT,
    MAX_LEVELS,
    MAX_WEIGHTLESS,
    blocks,
    call_later,
    check_name,
    skipper,
    with_levels,
    write_bytes,
    write_double,
    write_float,
    write_long,
)
from cdcavro.avro.resolution import ReadArray, ReadEnum, ReadFixed, ReadMap, ReadPrimitive, ReadRecord, ReadUnion, Step
from cdcavro.avro.translation import branch_index, branch_refusal, datum_translator
from cdcavro.avro.types import Array, Enum, Fixed, Map, Primitive, Record, Type, Union, has_bytes, recursion
from cdcavro.errors import MessageError, PayloadError, SchemaError, StructureError
from cdcavro.exact.jsontext import escape
from cdcavro.records.python_values import default_maker, encode_text, scalar, wrong_type
from cdcavro.records.shapes import Key, branch_classes, branch_keys, field_names, getter, maker, meaning
from cdcavro.table.older_fields import filled_value, heirs, is_fillable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cdcavro.avro.binary import Decoder

    Read = Callable[[Decoder], Any]
    Write = Callable[["Output", Any], None]


class Readers:
    """Builds the functions that read a writer's data as a reader's; a record's only once.

    `classes` are by key; `reinterpret` is as in `translation.translator`.
    """

    def __init__(self, classes: Mapping[Key, type], writer: Type, reader: Type, *, reinterpret: bool = False) -> None:
        self._classes = classes
        self._reinterpret = reinterpret
        self._is_endless = recursion(writer) is not None or recursion(reader) is not None
        self._built: dict[int, Read] = {}
        self._weights: dict[str, bool] = {}

    def reader(self, step: Step, writer: Type, reader: Type, levels: int = 0) -> Read:
        """Return the function that reads the writer's data as values of the reader's type, or raises `PayloadError`.

        `levels` is how far the types are below the start of the enclosing record.
        """
        if isinstance(writer, Union):
            return self._from_union(step, writer, reader, levels)
        if isinstance(reader, Union):
            at = branch_index(step, writer, reader)
            inner = self._reader(step, writer, reader.branches[at], levels)
            key = branch_keys(reader)[at]
            return inner if key is None else _branch_reader(inner, self._classes[key])
        return self._reader(step, writer, reader, levels)

    def _reader(self, step: Step, writer: Type, reader: Type, levels: int) -> Read:
        match step, writer, reader:
            case ReadPrimitive(), Primitive(), Primitive():
                return self._datum(writer, reader)
            case ReadFixed(), Fixed(), Fixed():
                return self._datum(writer, reader)
            case ReadEnum(symbols=symbols), _, Enum():
                return self._enum(symbols, reader)
            case ReadArray(inner), Array(written), Array(items):
                is_weightless = not has_bytes(written, self._weights)
                return _array_reader(self.reader(inner, written, items, levels + 1), is_weightless=is_weightless)
            case ReadMap(inner), Map(written), Map(values):
                return _map_reader(self.reader(inner, written, values, levels + 1))
            case ReadRecord(), Record(), Record():
                return self._enter_record(step, reader, levels + 1)
        raise SchemaError("$", f"no reader for {type(step).__name__}")

    def _enter_record(self, step: ReadRecord, declared: Record, levels: int) -> Read:
        at = id(step)
        if at not in self._built:
            # While its fields are being read, a record within itself is looked up when data get there.
            self._built[at] = call_later(self._built, at)
            self._built[at] = self._record(step, declared)
        return with_levels(self._built[at], levels) if self._is_endless else self._built[at]

    def _from_union(self, step: Step, writer: Union, reader: Type, levels: int) -> Read:
        if not isinstance(step, ReadUnion):
            raise SchemaError("$", f"a union is not read by {type(step).__name__}")
        readers = [
            branch_refusal(inner) if isinstance(inner, str) else self.reader(inner, branch, reader, levels)
            for inner, branch in zip(step.branches, writer.branches, strict=True)
        ]
        count = len(readers)
        return lambda source: readers[source.read_index(count, "a branch")](source)

    def _datum(self, writer: Primitive | Fixed, reader: Primitive | Fixed) -> Read:
        read = datum_translator(writer, reader, reinterpret=self._reinterpret)
        is_own = isinstance(reader, Fixed) and meaning(reader) is None
        lift: Any = self._classes[reader.name] if is_own else scalar(reader).lift
        return read if lift is None else _then(read, lift)

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
                skipper(was.type) if into is None else self.reader(inner, was.type, into.type),
                was.name,
            )
            for inner, was, into in step.fields
        ]
        fill = [
            (places[field.name], default_maker(field.type, field.default, self._classes)) for field in step.defaults
        ]
        takeovers = _takeovers(declared, {field.name for field in step.defaults})
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
            for at, older in takeovers:
                values[at] = next(
                    (value for value in (turn(values[i]) for i, turn in older) if value is not None), None
                )
            return make(values)

        return read


def _takeovers(declared: Record, missing: set[str]) -> list[tuple[int, list[tuple[int, Callable[[Any], Any]]]]]:
    """Return the places of fields that the writer lacks and of older fields of their columns, with what turns a value.

    A table's column that changed its type has its older values in an older field: see `table.older_fields`.
    """
    places = {field.name: i for i, field in enumerate(declared.fields)}
    types = {field.name: _as_json(field.type) for field in declared.fields}
    takeovers = []
    for newer, older in heirs((field.name, field.attributes) for field in declared.fields).items():
        fitting = [name for name in older if is_fillable(types[name], types[newer])] if newer in missing else []
        turns: list[tuple[int, Callable[[Any], Any]]] = [
            (places[name], partial(filled_value, old=types[name], new=types[newer])) for name in fitting
        ]
        takeovers += [(places[newer], turns)] if turns else []
    return takeovers


def _as_json(declared: Type) -> Any:
    """Return the one type of a column beside null as a JSON value; None if it is no primitive."""
    branches = declared.branches if isinstance(declared, Union) else (declared,)
    others = [branch for branch in branches if branch != Primitive("null")]
    only = others[0] if len(others) == 1 else None
    return {"type": only.name, **only.attributes} if isinstance(only, Primitive) else None


def _branch_reader(inner: Read, cls: type) -> Read:
    return lambda source: cls(inner(source))


def _then(read: Read, turn: Callable[[Any], Any]) -> Read:
    return lambda source: turn(read(source))


def _array_reader(inner: Read, *, is_weightless: bool) -> Read:
    def read(source: Decoder) -> list[Any]:
        items: list[Any] = []
        append = items.append
        try:
            for count in blocks(source, is_weightless=is_weightless):
                for _ in range(count):
                    append(inner(source))
        except MessageError as error:
            error.below(f"/{len(items)}")
            raise
        return items

    return read


def _map_reader(inner: Read) -> Read:
    def read(source: Decoder) -> dict[str, Any]:
        entries: dict[str, Any] = {}
        name = ""
        try:
            for count in blocks(source):
                for _ in range(count):
                    name = source.read_string()
                    check_name(name, entries)
                    entries[name] = inner(source)
        except MessageError as error:
            error.below(f"/{escape(name)}")
            raise
        return entries

    return read


class Output(bytearray):
    """A payload that is being written."""

    __slots__ = ("levels", "weightless")

    def __init__(self) -> None:
        super().__init__()
        # How many records, arrays and maps the current place is in.
        self.levels = 0
        # How many items without bytes there are.
        self.weightless = 0


class Writers:
    """Builds the functions that write values of types; a record's only once.

    `classes` are by key; `is_endless` says that a record of the schema contains itself.
    """

    def __init__(self, classes: Mapping[Key, type], *, is_endless: bool) -> None:
        self._classes = classes
        self._is_endless = is_endless
        self._built: dict[str, Write] = {}
        self._weights: dict[str, bool] = {}

    def writer(self, declared: Type, levels: int = 0) -> Write:
        """Return the function that appends a value of a type, or raises `StructureError`.

        `levels` is how far the type is below the start of the enclosing record.
        """
        match declared:
            case Primitive(name):
                return _scalar_writer(scalar(declared).lower, _WRITE[name])
            case Fixed():
                return self._fixed(declared)
            case Enum():
                return _enum_writer(declared, self._classes[declared.name])
            case Array(items):
                is_weightless = not has_bytes(items, self._weights)
                return _array_writer(self.writer(items, levels + 1), is_weightless=is_weightless)
            case Map(values):
                return _map_writer(self.writer(values, levels + 1))
            case Union():
                return self._union(declared, levels)
            case Record():
                return self._enter_record(declared, levels + 1)
        raise SchemaError("$", f"{type(declared).__name__} is no type")

    def _enter_record(self, declared: Record, levels: int) -> Write:
        if declared.name not in self._built:
            # While its fields are being written, a record within itself is looked up when values get there.
            self._built[declared.name] = call_later(self._built, declared.name)
            self._built[declared.name] = self._record(declared)
        write = self._built[declared.name]
        return _level_writer(write, levels) if self._is_endless else write

    def _fixed(self, declared: Fixed) -> Write:
        if meaning(declared) is not None:
            return _scalar_writer(scalar(declared).lower, bytearray.extend)
        lower = fixed_check(declared, self._classes[declared.name])
        return _scalar_writer(lower, bytearray.extend)

    def _union(self, declared: Union, levels: int) -> Write:
        keys, classes = branch_keys(declared), branch_classes(declared, self._classes)
        writers: dict[type, tuple[bytes, Write]] = {}
        for i, (branch, key, cls) in enumerate(zip(declared.branches, keys, classes, strict=True)):
            write = self.writer(branch, levels)
            writers[cls] = _branch_index(i), (write if key is None else _branch_writer(write))
        expected = " or ".join(cls.__name__ for cls in classes[:_NAMED]) + (", ..." if len(classes) > _NAMED else "")

        def write_branch(out: Output, value: Any) -> None:
            branch = writers.get(type(value))
            if branch is None:
                raise wrong_type(expected, value)
            index, inner = branch
            out += index
            inner(out, value)

        return write_branch

    def _record(self, declared: Record) -> Write:
        cls = self._classes[declared.name]
        get = getter(field_names(cls))
        writers = [self.writer(field.type) for field in declared.fields]

        def write(out: Output, value: Any) -> None:
            if type(value) is not cls and not isinstance(value, cls):
                raise wrong_type(cls.__name__, value)
            at = 0
            try:
                for item in get(value):
                    writers[at](out, item)
                    at += 1
            except MessageError as error:
                error.below(f"/{declared.fields[at].name}")
                raise

        return write


def fixed_check(declared: Fixed, cls: type) -> Callable[[Any], Any]:
    """Return a function that returns a value if it has a fixed's class and size, or raises `StructureError`."""
    wanted: Any = cls

    def check(value: Any) -> Any:
        if type(value) is not wanted:
            raise wrong_type(wanted.__name__, value)
        if len(value) != declared.size:
            raise StructureError(f"{declared.size} bytes", f"{len(value)}")
        return value

    return check


def _scalar_writer(lower: Callable[[Any], Any], append: Callable[[bytearray, Any], None]) -> Write:
    return lambda out, value: append(out, lower(value))


def _branch_index(branch: int) -> bytes:
    out = bytearray()
    write_long(out, branch)
    return bytes(out)


def _branch_writer(inner: Write) -> Write:
    return lambda out, value: inner(out, value.value)


def _enum_writer(declared: Enum, cls: type) -> Write:
    places = {symbol: i for i, symbol in enumerate(declared.symbols)}
    wanted: Any = cls

    def write(out: Output, value: Any) -> None:
        if type(value) is not wanted:
            raise wrong_type(wanted.__name__, value)
        write_long(out, places[value])

    return write


def _level_writer(inner: Write, levels: int) -> Write:
    def write(out: Output, value: Any) -> None:
        out.levels += levels
        if out.levels > MAX_LEVELS:
            raise StructureError(f"at most {MAX_LEVELS} records, arrays and maps in each other", "more")
        inner(out, value)
        out.levels -= levels

    return write


def _array_writer(inner: Write, *, is_weightless: bool) -> Write:
    def write(out: Output, value: Any) -> None:
        if type(value) is not list:
            raise wrong_type("a list", value)
        if value:
            _start(out, value)
            out.weightless += len(value) if is_weightless else 0
            if out.weightless > MAX_WEIGHTLESS:
                raise StructureError(f"at most {MAX_WEIGHTLESS} items without bytes", f"{out.weightless}")
            at = 0
            try:
                for item in value:
                    inner(out, item)
                    at += 1
            except MessageError as error:
                error.below(f"/{at}")
                raise
        out.append(0)

    return write


def _map_writer(inner: Write) -> Write:
    def write(out: Output, value: Any) -> None:
        if type(value) is not dict:
            raise wrong_type("a dict", value)
        if value:
            _start(out, value)
            for name, item in value.items():
                write_bytes(out, encode_text(name))
                try:
                    inner(out, item)
                except MessageError as error:
                    error.below(f"/{escape(name)}")
                    raise
        out.append(0)

    return write


def _start(out: Output, value: list[Any] | dict[str, Any]) -> None:
    if len(value) > MAX_COUNT:
        raise StructureError(f"at most {MAX_COUNT} items", f"{len(value)}")
    write_long(out, len(value))


def _write_boolean(out: bytearray, value: Any) -> None:
    out.append(value)


def _write_null(_out: bytearray, _value: Any) -> None:
    """Write nothing: null takes no bytes."""


_NAMED: Final = 10
_WRITE: Final[dict[str, Callable[[bytearray, Any], None]]] = {
    "null": _write_null,
    "boolean": _write_boolean,
    "int": write_long,
    "long": write_long,
    "float": write_float,
    "double": write_double,
    "bytes": write_bytes,
    "string": write_bytes,
}

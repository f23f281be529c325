"""Reading Avro data as instances: the steps of `resolution.resolve` as functions that read from a `Decoder`.

Data written with the schema itself or with another one is read in the same way: the writer's fields in
order, each into the reader's field, or skipped if there is none; then the defaults are filled in.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from cdcavro.avro.resolution import ReadArray, ReadEnum, ReadFixed, ReadMap, ReadPrimitive, ReadRecord, ReadUnion, Step
from cdcavro.avro.skip import blocks, call_later, check_name, skipper, with_levels
from cdcavro.avro.translation import branch_index, branch_refusal, datum_translator
from cdcavro.avro.types import Array, Enum, Fixed, Map, Primitive, Record, Type, Union, has_bytes, recursion
from cdcavro.errors import MessageError, PayloadError, SchemaError
from cdcavro.exact.jsontext import escape
from cdcavro.records.classes import field_names, maker
from cdcavro.records.field_defaults import default_maker
from cdcavro.records.scalars import scalar
from cdcavro.records.shapes import Key, branch_keys, meaning
from cdcavro.table.older_fields import filled_value, heirs, is_fillable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cdcavro.avro.binary import Decoder

    Read = Callable[[Decoder], Any]


class Readers:
    """Builds the readers of a writer's data as a reader's, that of each record once.

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

        The types are that many levels below the start of the enclosing record.
        """
        if isinstance(writer, Union):
            return self._from_union(step, writer, reader, levels)
        if isinstance(reader, Union):
            at = branch_index(step, writer, reader)
            inner = self._reader(step, writer, reader.branches[at], levels)
            key = branch_keys(reader)[at]
            return inner if key is None else _wrapped(inner, self._classes[key])
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
                return _array(self.reader(inner, written, items, levels + 1), is_weightless=is_weightless)
            case ReadMap(inner), Map(written), Map(values):
                return _map(self.reader(inner, written, values, levels + 1))
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
        return read if lift is None else _turned(read, lift)

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


def _wrapped(inner: Read, cls: type) -> Read:
    return lambda source: cls(inner(source))


def _turned(read: Read, turn: Callable[[Any], Any]) -> Read:
    return lambda source: turn(read(source))


def _array(inner: Read, *, is_weightless: bool) -> Read:
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


def _map(inner: Read) -> Read:
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

"""Writing instances as Avro data: each type is compiled once into a function that appends to a `bytearray`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cdcavro.avro.binary import (
    MAX_COUNT,
    MAX_LEVELS,
    MAX_WEIGHTLESS,
    write_bytes,
    write_double,
    write_float,
    write_long,
)
from cdcavro.avro.skip import call_later
from cdcavro.avro.types import Array, Enum, Fixed, Map, Primitive, Record, Type, Union, has_bytes
from cdcavro.errors import MessageError, SchemaError, StructureError
from cdcavro.exact.jsontext import escape
from cdcavro.records.classes import field_names, getter
from cdcavro.records.scalars import encoded, refused, scalar
from cdcavro.records.shapes import Key, branch_classes, branch_keys, meaning

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Write = Callable[["Output", Any], None]


class Output(bytearray):
    """A payload that is being written.

    Attributes: `levels` (int), how many records, arrays and maps the place is in; `weightless` (int), how many
    items without bytes there are.
    """

    __slots__ = ("levels", "weightless")

    def __init__(self) -> None:
        super().__init__()
        self.levels = 0
        self.weightless = 0


class Writers:
    """Builds the writers of types; each record's only once.

    `classes` are by key; `is_endless` says that a record of the schema contains itself.
    """

    def __init__(self, classes: Mapping[Key, type], *, is_endless: bool) -> None:
        self._classes = classes
        self._is_endless = is_endless
        self._built: dict[str, Write] = {}
        self._weights: dict[str, bool] = {}

    def writer(self, declared: Type, levels: int = 0) -> Write:
        """Return the function that appends a value of a type, or raises `StructureError`.

        The type is that many levels below the start of the enclosing record.
        """
        match declared:
            case Primitive(name):
                return _scalar(scalar(declared).lower, _WRITE[name])
            case Fixed():
                return self._fixed(declared)
            case Enum():
                return _enum(declared, self._classes[declared.name])
            case Array(items):
                is_weightless = not has_bytes(items, self._weights)
                return _array(self.writer(items, levels + 1), is_weightless=is_weightless)
            case Map(values):
                return _map(self.writer(values, levels + 1))
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
        return _entering(write, levels) if self._is_endless else write

    def _fixed(self, declared: Fixed) -> Write:
        if meaning(declared) is not None:
            return _scalar(scalar(declared).lower, bytearray.extend)
        lower = fixed_check(declared, self._classes[declared.name])
        return _scalar(lower, bytearray.extend)

    def _union(self, declared: Union, levels: int) -> Write:
        keys, classes = branch_keys(declared), branch_classes(declared, self._classes)
        writers: dict[type, tuple[bytes, Write]] = {}
        for i, (branch, key, cls) in enumerate(zip(declared.branches, keys, classes, strict=True)):
            write = self.writer(branch, levels)
            writers[cls] = _index(i), (write if key is None else _branch(write))
        expected = " or ".join(cls.__name__ for cls in classes[:_NAMED]) + (", ..." if len(classes) > _NAMED else "")

        def write_branch(out: Output, value: Any) -> None:
            branch = writers.get(type(value))
            if branch is None:
                raise refused(expected, value)
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
                raise refused(cls.__name__, value)
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
            raise refused(wanted.__name__, value)
        if len(value) != declared.size:
            raise StructureError(f"{declared.size} bytes", f"{len(value)}")
        return value

    return check


def _scalar(lower: Callable[[Any], Any], append: Callable[[bytearray, Any], None]) -> Write:
    return lambda out, value: append(out, lower(value))


def _index(branch: int) -> bytes:
    out = bytearray()
    write_long(out, branch)
    return bytes(out)


def _branch(inner: Write) -> Write:
    return lambda out, value: inner(out, value.value)


def _enum(declared: Enum, cls: type) -> Write:
    places = {symbol: i for i, symbol in enumerate(declared.symbols)}
    wanted: Any = cls

    def write(out: Output, value: Any) -> None:
        if type(value) is not wanted:
            raise refused(wanted.__name__, value)
        write_long(out, places[value])

    return write


def _entering(inner: Write, levels: int) -> Write:
    def write(out: Output, value: Any) -> None:
        out.levels += levels
        if out.levels > MAX_LEVELS:
            raise StructureError(f"at most {MAX_LEVELS} records, arrays and maps in each other", "more")
        inner(out, value)
        out.levels -= levels

    return write


def _array(inner: Write, *, is_weightless: bool) -> Write:
    def write(out: Output, value: Any) -> None:
        if type(value) is not list:
            raise refused("a list", value)
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


def _map(inner: Write) -> Write:
    def write(out: Output, value: Any) -> None:
        if type(value) is not dict:
            raise refused("a dict", value)
        if value:
            _start(out, value)
            for name, item in value.items():
                write_bytes(out, encoded(name))
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

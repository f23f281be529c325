"""The JSON form of instances; each value has exactly one.

A record is an object with all its fields under their Avro names; on reading, a field that has a default
may be missing, and a member that is not a field is refused. A union of null and one type is the value or
null; any other union is `{"branch": value}`, or null, as in Avro's own JSON encoding. The JSON of scalars is
described in `python_values`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cdcavro.avro.skip import call_later
from cdcavro.avro.types import Array, Enum, Fixed, Map, Primitive, Record, Type, Union, branch_name
from cdcavro.errors import MessageError, SchemaError, StructureError, shown
from cdcavro.exact.jsontext import escape, kind
from cdcavro.exact.jsonvalues import ABSENT
from cdcavro.records.avro_form import fixed_check
from cdcavro.records.python_values import default_maker, parse_base64, scalar, show_base64
from cdcavro.records.shapes import Key, branch_classes, branch_keys, field_names, getter, maker, meaning

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Convert = Callable[[Any], Any]

NULL: Final = Primitive("null")


class ToJson:
    """Builds functions that convert values, which a writer has accepted, to JSON. `classes` are by key."""

    def __init__(self, classes: Mapping[Key, type]) -> None:
        self._classes = classes
        self._built: dict[str, Convert] = {}

    def converter(self, declared: Type) -> Convert:
        """Return the function for a type."""
        match declared:
            case Array(items):
                inner = self.converter(items)
                return lambda value: [inner(item) for item in value]
            case Map(values):
                inner = self.converter(values)
                return lambda value: {name: inner(item) for name, item in value.items()}
            case Union():
                return self._union(declared)
            case Record():
                if declared.name not in self._built:
                    # While its fields are turned, a record within itself is looked up when values get there.
                    self._built[declared.name] = call_later(self._built, declared.name)
                    self._built[declared.name] = self._record(declared)
                return self._built[declared.name]
            case Enum():
                return str
            case Fixed() if meaning(declared) is None:
                return show_base64
            case Primitive() | Fixed():
                return scalar(declared).show or _identity
        raise SchemaError("$", f"{type(declared).__name__} is no type")

    def _record(self, declared: Record) -> Convert:
        get = getter(field_names(self._classes[declared.name]))
        parts = [(field.name, self.converter(field.type)) for field in declared.fields]
        return lambda value: {name: converter(item) for (name, converter), item in zip(parts, get(value), strict=True)}

    def _union(self, declared: Union) -> Convert:
        converters: dict[type, tuple[str, Convert]] = {}
        for branch, key, cls in zip(
            declared.branches, branch_keys(declared), branch_classes(declared, self._classes), strict=True
        ):
            inner = self.converter(branch)
            converters[cls] = branch_name(branch), (inner if key is None else _unwrap(inner))
        if _has_one_branch(declared):
            return lambda value: converters[type(value)][1](value)

        def converter(value: Any) -> Any:
            name, inner = converters[type(value)]
            return None if value is None else {name: inner(value)}

        return converter


class FromJson:
    """Builds functions that convert JSON to values. `classes` are by key."""

    def __init__(self, classes: Mapping[Key, type]) -> None:
        self._classes = classes
        self._built: dict[str, Convert] = {}

    def converter(self, declared: Type) -> Convert:
        """Return the function for a type; that function raises `StructureError`."""
        match declared:
            case Array(items):
                return _array_converter(self.converter(items))
            case Map(values):
                return _map_converter(self.converter(values))
            case Union():
                return self._union(declared)
            case Record():
                if declared.name not in self._built:
                    # While its fields are turned, a record within itself is looked up when values get there.
                    self._built[declared.name] = call_later(self._built, declared.name)
                    self._built[declared.name] = self._record(declared)
                return self._built[declared.name]
            case Enum():
                return _enum_converter(declared, self._classes[declared.name])
            case Fixed() if meaning(declared) is None:
                cls: Any = self._classes[declared.name]
                return _with_check(lambda value: cls(parse_base64(value)), fixed_check(declared, cls))
            case Primitive() | Fixed():
                conversions = scalar(declared)
                return _with_check(conversions.parse or _identity, conversions.lower)
        raise SchemaError("$", f"{type(declared).__name__} is no type")

    def _record(self, declared: Record) -> Convert:
        converters = {field.name: self.converter(field.type) for field in declared.fields}
        defaults = {
            field.name: default_maker(field.type, field.default, self._classes)
            for field in declared.fields
            if field.default is not ABSENT
        }
        cls = self._classes[declared.name]
        make = maker(cls, field_names(cls))

        def converter(value: Any) -> Any:
            if type(value) is not dict:
                raise StructureError("object", kind(value))
            for name in value.keys() - converters.keys():
                raise StructureError("a field of the record", "another member", pointer=f"/{escape(name)}")
            values = []
            for name, inner in converters.items():
                if name in value:
                    values.append(_convert_below(inner, value[name], name))
                elif name in defaults:
                    values.append(defaults[name]())
                else:
                    raise StructureError("a member without a default", "none", pointer=f"/{name}")
            return make(values)

        return converter

    def _union(self, declared: Union) -> Convert:
        converters: dict[str, Convert] = {}
        for branch, key in zip(declared.branches, branch_keys(declared), strict=True):
            inner = self.converter(branch)
            converters[branch_name(branch)] = inner if key is None else _wrap(inner, self._classes[key])
        is_nullable = converters.pop("null", None) is not None
        if _has_one_branch(declared):
            only = next(iter(converters.values()), self.converter(NULL))
            return lambda value: None if value is None and is_nullable else only(value)

        def converter(value: Any) -> Any:
            if value is None and is_nullable:
                return None
            if type(value) is not dict or len(value) != 1:
                raise StructureError("an object with the name of a branch", kind(value))
            ((name, inner),) = value.items()
            if name not in converters:
                raise StructureError("the name of a branch", shown(name))
            return _convert_below(converters[name], inner, name)

        return converter


def _has_one_branch(declared: Union) -> bool:
    """Return whether a union has at most one branch besides null."""
    return sum(branch != NULL for branch in declared.branches) <= 1


def _identity(value: Any) -> Any:
    return value


def _convert_below(converter: Convert, value: Any, name: str) -> Any:
    try:
        return converter(value)
    except MessageError as error:
        error.below(f"/{escape(name)}")
        raise


def _with_check(parse: Convert, check: Convert) -> Convert:
    def converter(value: Any) -> Any:
        parsed = parse(value)
        check(parsed)
        return parsed

    return converter


def _unwrap(inner: Convert) -> Convert:
    return lambda value: inner(value.value)


def _wrap(inner: Convert, cls: type) -> Convert:
    return lambda value: cls(inner(value))


def _array_converter(inner: Convert) -> Convert:
    def converter(value: Any) -> list[Any]:
        if type(value) is not list:
            raise StructureError("array", kind(value))
        return [_convert_below(inner, item, str(i)) for i, item in enumerate(value)]

    return converter


def _map_converter(inner: Convert) -> Convert:
    def converter(value: Any) -> dict[str, Any]:
        if type(value) is not dict:
            raise StructureError("object", kind(value))
        return {name: _convert_below(inner, item, name) for name, item in value.items()}

    return converter


def _enum_converter(declared: Enum, cls: type) -> Convert:
    symbols = frozenset(declared.symbols)

    def converter(value: Any) -> Any:
        if type(value) is not str or value not in symbols:
            raise StructureError(f"a symbol of {declared.name}", shown(value))
        return cls(value)

    return converter

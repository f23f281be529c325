"""The types of Avro schemas as immutable values, with names and canonical form, and the logical types of their data.

A record that contains itself is a circle: one of its fields leads back to the record itself. Whoever walks
through types therefore enters each record once.

Logical types are told here, too: which one a type really has, and which data are values of it. Those that later
versions of Avro added are known too, because today's readers apply them. What the specification tells readers to ignore
is ignored: a name that it does not define, a logical type on a type to which it does not belong, a decimal whose scale
exceeds its precision or whose precision exceeds its fixed size.

Source: Avro 1.8.2, "Schema Declaration" and "Logical Types".
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

from cdcavro.errors import PayloadError, SchemaError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

# A decimal of more digits is taken for plain bytes: ten to the power of its precision may be absurdly long.
MAX_DIGITS: Final = 1000

_FIXED: Final = "fixed"
_BASES: Final = {
    "decimal": ("bytes", _FIXED),
    "big-decimal": ("bytes",),
    "uuid": ("string", _FIXED),
    "date": ("int",),
    "time-millis": ("int",),
    "time-micros": ("long",),
    "timestamp-millis": ("long",),
    "timestamp-micros": ("long",),
    "timestamp-nanos": ("long",),
    "local-timestamp-millis": ("long",),
    "local-timestamp-micros": ("long",),
    "local-timestamp-nanos": ("long",),
    "duration": (_FIXED,),
}
_SIZES: Final = {"uuid": 16, "duration": 12}
# From the beginning of the year 1 to the end of 9999, the years that Python and Spark's types hold.
_DAYS: Final = range(-719_162, 2_932_897)
_DAY_MILLIS: Final = 86_400_000


@dataclass(frozen=True, slots=True)
class Logical:
    """A logical type."""

    # As the specification spells it.
    name: str
    # In digits; 0 for all but decimals.
    precision: int = 0
    # In digits behind the point; 0 for all but decimals.
    scale: int = 0

    def __str__(self) -> str:
        return f"{self.name}({self.precision},{self.scale})" if self.precision else self.name


def logical_type(declared: Primitive | Fixed) -> Logical | None:
    """Return the logical type of a type; None if it has none or has one that must be ignored.

    >>> str(logical_type(Primitive("bytes", {"logicalType": "decimal", "precision": 10, "scale": 2})))
    'decimal(10,2)'
    >>> logical_type(Primitive("int", {"logicalType": "timestamp-millis"}))
    """
    name = declared.attributes.get("logicalType")
    base = declared.name if isinstance(declared, Primitive) else _FIXED
    if not isinstance(name, str) or base not in _BASES.get(name, ()):
        return None
    if name == "decimal":
        return _decimal(declared)
    if not isinstance(declared, Primitive) and declared.size != _SIZES[name]:
        return None
    return Logical(name)


def _decimal(declared: Primitive | Fixed) -> Logical | None:
    precision, scale = declared.attributes.get("precision"), declared.attributes.get("scale", 0)
    if type(precision) is not int or type(scale) is not int or not 0 <= scale <= precision or precision == 0:
        return None
    if not isinstance(declared, Primitive) and precision > _digits(declared.size):
        return None
    return Logical("decimal", precision, scale)


def _digits(size: int) -> int:
    """Return how many decimal digits always fit in a signed integer of `size` bytes."""
    return math.floor(math.log10(2) * (8 * size - 1)) if size else 0


def value_check(declared: Primitive | Fixed) -> Callable[[Any], None] | None:
    """Return a function that raises `PayloadError` for a datum that is no value of its type's logical type.

    A datum is an int or bytes. None is returned for a type all of whose data are values.

    >>> value_check(Primitive("int", {"logicalType": "date"}))(2_932_897)
    Traceback (most recent call last):
        ...
    cdcavro.errors.PayloadError: message: $: expected a date of the years 1 to 9999, got day 2932897 of 1970
    """
    logical, values = logical_type(declared), value_range(declared)
    if logical is None or values is None:
        return None
    if logical.name == "decimal":
        return _decimal_check(logical, values)
    return _range_check(values, *_BOUNDS[logical.name][1:])


def value_range(declared: Primitive | Fixed) -> range | None:
    """Return the integers that are values of a type's logical type; bytes encode them, too, if it is a decimal.

    None is returned for a type all of whose data are values.
    """
    logical = logical_type(declared)
    if logical is None:
        return None
    if logical.name != "decimal":
        return _BOUNDS[logical.name][0] if logical.name in _BOUNDS else None
    least: int = 10**logical.precision if logical.precision <= MAX_DIGITS else 0
    return range(1 - least, least) if least else None


def _decimal_check(declared: Logical, values: range) -> Callable[[Any], None]:
    first, end = values.start, values.stop

    def check(raw: Any) -> None:
        if not raw or not first <= int.from_bytes(raw, "big", signed=True) < end:
            raise PayloadError(str(declared), f"{len(raw)} bytes that are none")

    return check


def _range_check(values: range, expected: str, got: str) -> Callable[[Any], None]:
    first, end = values.start, values.stop

    def check(value: Any) -> None:
        if not first <= value < end:
            raise PayloadError(expected, got.format(value))

    return check


def _instants(units_of_a_day: int) -> tuple[range, str, str]:
    values = range(_DAYS.start * units_of_a_day, _DAYS.stop * units_of_a_day)
    return values, "an instant of the years 1 to 9999", "{}"


_MILLIS: Final = _instants(_DAY_MILLIS)
_MICROS: Final = _instants(_DAY_MILLIS * 1000)
_BOUNDS: Final = {
    "date": (_DAYS, "a date of the years 1 to 9999", "day {} of 1970"),
    "time-millis": (range(_DAY_MILLIS), "a time of a day", "{}"),
    "time-micros": (range(_DAY_MILLIS * 1000), "a time of a day", "{}"),
    "timestamp-millis": _MILLIS,
    "timestamp-micros": _MICROS,
    "local-timestamp-millis": _MILLIS,
    "local-timestamp-micros": _MICROS,
}


MAX_DEPTH: Final = 128
MAX_TYPES: Final = 100_000
# The sentence of an error where Python's stack, which a caller may have used up, has no room for what is nested.
STACK_EXPECTED: Final = "less nesting, or a caller that is itself nested less"
STACK_GOT: Final = "more than Python's stack has room for"
# How long a name in a sentence may be, and how many names a sentence lists.
BRIEF: Final = 80
LISTED: Final = 10
PRIMITIVES: Final = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Primitive:
    """A primitive type."""

    # One of `PRIMITIVES`.
    name: str
    # Whatever else its declaration states, its logical type included.
    attributes: Mapping[str, Any] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class Array:
    """An array of items."""

    # Their type.
    items: Type
    # Whatever else its declaration states.
    attributes: Mapping[str, Any] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class Map:
    """A map from strings to values."""

    # Their type.
    values: Type
    # Whatever else its declaration states.
    attributes: Mapping[str, Any] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class Union:
    """A union of branches."""

    # Their types, no two of one name.
    branches: tuple[Type, ...]


@dataclass(frozen=True, slots=True)
class Named:
    """What records, enums and fixed types share."""

    # The full name.
    name: str
    # Full names.
    aliases: tuple[str, ...]
    # "" without one.
    doc: str
    # Whatever else the declaration states.
    attributes: Mapping[str, Any] = field(compare=False)


@dataclass(frozen=True, slots=True)
class Enum(Named):
    """An enum."""

    # In the order of their indexes.
    symbols: tuple[str, ...]
    # The symbol that a reader takes for those that it lacks (Avro 1.9).
    default: str | None = None


@dataclass(frozen=True, slots=True)
class Fixed(Named):
    """A fixed number of bytes."""

    # In bytes.
    size: int


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a record."""

    # Unique within the record.
    name: str
    # The type of its values.
    type: Type
    # In the form of a schema's JSON; `ABSENT` if there is none.
    default: Any
    # Other names that a writer may have for it.
    aliases: tuple[str, ...]
    # "" without one.
    doc: str
    # Whatever else the declaration states.
    attributes: Mapping[str, Any] = field(compare=False)


@dataclass(frozen=True, slots=True, eq=False)
class Record(Named):
    """A record."""

    # In the order in which their data stand.
    fields: tuple[Field, ...]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Record) and _outline(self, set()) == _outline(other, set())

    def __hash__(self) -> int:
        return hash(self.name)


Type = Primitive | Array | Map | Union | Enum | Fixed | Record


def branch_name(branch: Type) -> str:
    """Return the name by which the specification tells a branch of a union from others.

    >>> branch_name(Primitive("long"))
    'long'
    """
    match branch:
        case Primitive() | Named():
            return branch.name
        case Array():
            return "array"
        case Map():
            return "map"
    raise SchemaError("union", f"{type(branch).__name__} is no branch")


def is_same_name(writer: Named, reader: Named) -> bool:
    """Return whether the reader's full name or one of its aliases is the writer's full name."""
    return writer.name == reader.name or writer.name in reader.aliases


def is_plain(declared: Type) -> bool:
    """Return whether a type is a primitive or a union of primitives, as the types of most columns are."""
    branches = declared.branches if isinstance(declared, Union) else (declared,)
    return all(type(branch) is Primitive for branch in branches)


def last_name(named: Named) -> str:
    """Return the last part of a type's name; some readers ignore the namespace."""
    return named.name.rpartition(".")[2]


def kind_and_last(named: Named) -> str:
    """Return a key that types of one kind and one last name share, and that is no name."""
    return f"{type(named).__name__} {last_name(named)}"


def brief(name: str) -> str:
    """Return a name shortened to at most 80 characters, for use in a path or a sentence."""
    return name if len(name) <= BRIEF else name[:BRIEF] + "..."


def brief_list(names: Sequence[str]) -> str:
    """Return names as a list for use in a sentence: at most ten of them, and how many more there are.

    >>> brief_list(["a", "b"]), brief_list(list("abcdefghijkl"))
    ('a, b', 'a, b, c, d, e, f, g, h, i, j and 2 more')
    """
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(map(brief, names[:LISTED])) + more


def label(declared: Type) -> str:
    """Return the name of a type for use in a sentence; for a union, a list of names."""
    if not isinstance(declared, Union):
        return brief(branch_name(declared))
    more = ", ..." if len(declared.branches) > LISTED else ""
    return "[" + ", ".join(map(label, declared.branches[:LISTED])) + more + "]"


def _outline(declared: Type, seen: set[str]) -> object:
    """Return what makes two types equal, with each record spelled out once and named after that."""
    match declared:
        case Array(inner) | Map(inner):
            return type(declared), _outline(inner, seen)
        case Union(branches):
            return Union, [_outline(branch, seen) for branch in branches]
        case Record(name, aliases, doc, fields=fields) if name not in seen:
            seen.add(name)
            own = [(field.name, repr(field.default), field.aliases, field.doc) for field in fields]
            return name, aliases, doc, own, [_outline(field.type, seen) for field in fields]
        case Record(name):
            return name
        case Primitive() | Enum() | Fixed():
            return declared
    raise SchemaError("$", f"{type(declared).__name__} is no type")


def inner_types(declared: Type) -> Iterator[Type]:
    """Yield the types that a type is made of: items, values, branches, or the types of fields."""
    match declared:
        case Array(inner) | Map(inner):
            yield inner
        case Union(branches):
            yield from branches
        case Record(fields=fields):
            yield from (field.type for field in fields)
        case Primitive() | Enum() | Fixed():
            return
        case _:
            raise SchemaError("$", f"{type(declared).__name__} is no type")


def named_types(root: Type) -> Iterator[tuple[str, Named]]:
    """Yield each named type once, outermost first, with the path of the first place that uses it.

    >>> from cdcavro.avro.schema import parse_schema
    >>> text = '{"type": "record", "name": "R", "fields": [{"name": "f", "type": {"type": "fixed", "name": "F", "size": 1}}]}'
    >>> [(path, named.name) for path, named in named_types(parse_schema(text).root)]
    [('$', 'R'), ('$.f', 'F')]
    """
    seen: set[str] = set()
    pending: list[tuple[str, Type]] = [("$", root)]
    while pending:
        path, declared = pending.pop()
        if isinstance(declared, Named):
            if declared.name in seen:
                continue
            seen.add(declared.name)
            yield path, declared
        pending.extend(reversed(list(_inner_places(path, declared))))


def _inner_places(path: str, declared: Type) -> Iterator[tuple[str, Type]]:
    if isinstance(declared, Array):
        yield path + "[]", declared.items
    elif isinstance(declared, Map):
        yield path + "{}", declared.values
    elif isinstance(declared, Union):
        yield from ((path, branch) for branch in declared.branches if type(branch) is not Primitive)
    elif isinstance(declared, Record):
        fields = (field for field in declared.fields if type(field.type) is not Primitive)
        yield from ((f"{path}.{brief(field.name)}", field.type) for field in fields)


def recursion(root: Type) -> str | None:
    """Return the full name of a record that contains itself, the first that is found; None if none does.

    >>> recursion(Array(Primitive("long")))
    """
    within: dict[str, None] = {}
    done: set[str] = set()
    pending: list[tuple[Type, bool]] = [(root, False)]
    while pending:
        declared, is_left = pending.pop()
        if isinstance(declared, Record):
            if is_left:
                del within[declared.name]
                done.add(declared.name)
                continue
            if declared.name in within:
                return declared.name
            if declared.name in done:
                continue
            within[declared.name] = None
            pending.append((declared, True))
        pending.extend((inner, False) for inner in inner_types(declared) if type(inner) is not Primitive)
    return None


def check_expansion(root: Type, who: str) -> None:
    """Raise `SchemaError` for a type that `who` cannot spell out: one without end, or of more than 100,000 types.

    >>> check_expansion(Array(Primitive("long")), "Spark")
    """
    name = recursion(root)
    if name is not None:
        raise SchemaError("$", f"{name} contains itself, which {who} does not read")
    if _size_of(root, {}) > MAX_TYPES:
        raise SchemaError("$", f"it stands for more than {MAX_TYPES:,} types, which {who} does not read")


def _size_of(declared: Type, known: dict[str, int]) -> int:
    if isinstance(declared, Named) and declared.name in known:
        return known[declared.name]
    size = 1 + sum(_size_of(inner, known) for inner in inner_types(declared))
    if isinstance(declared, Named):
        known[declared.name] = size
    return size


def too_nested() -> SchemaError:
    """Return the error for a schema that Python's stack has no room for."""
    return SchemaError("$", STACK_GOT)


def within_stack(error: Callable[[], Exception]) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Return a decorator of functions that raise an error of the project where the stack does not suffice."""

    def decorated(function: Callable[P, T]) -> Callable[P, T]:
        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            try:
                return function(*args, **kwargs)
            except RecursionError:
                raise error() from None

        return call

    return decorated


def has_bytes(declared: Type, known: dict[str, bool]) -> bool:
    """Return whether every datum of a type has at least one byte; null has none, nor has a record of nulls only.

    `known` keeps the answers for records, for the next call.
    """
    match declared:
        case Primitive(name):
            return name != "null"
        case Fixed(size=size):
            return size > 0
        case Record(name):
            if name not in known:
                known[name] = _has_bytes(declared, known, set())
            return known[name]
        case Array() | Map() | Union() | Enum():
            return True
    raise SchemaError("$", f"{type(declared).__name__} is no type")


def _has_bytes(record: Record, known: dict[str, bool], seen: set[str]) -> bool:
    # A record within itself adds nothing to what its other fields have.
    seen.add(record.name)
    for inner in inner_types(record):
        if not isinstance(inner, Record):
            found = has_bytes(inner, known)
        elif inner.name in seen:
            found = known.get(inner.name, False)
        else:
            found = _has_bytes(inner, known, seen)
        if found:
            return True
    return False


def is_nothing(declared: Type, known: dict[str, bool]) -> bool:
    """Return whether no datum of a type has any byte: such data need not be walked, however many there are.

    `known` keeps the answers for records, for the next call. A record that has to contain itself has no data.
    """
    if isinstance(declared, Record):
        if declared.name not in known:
            known[declared.name] = False
            known[declared.name] = all(is_nothing(field.type, known) for field in declared.fields)
        return known[declared.name]
    return isinstance(declared, Primitive | Fixed) and not has_bytes(declared, known)


def canonical_form(root: Type) -> str:
    """Return the Parsing Canonical Form of a type (Avro 1.8.2, "Transforming into Parsing Canonical Form").

    It is derived from the parsed types, so that every valid schema has one, whatever its attributes say.

    >>> canonical_form(Array(Primitive("long", {"logicalType": "timestamp-millis"})))
    '{"type":"array","items":"long"}'
    """
    return _form(root, set())


def _form(declared: Type, defined: set[str]) -> str:
    if isinstance(declared, Named):
        name = _text(declared.name)
        if declared.name in defined:
            return name
        defined.add(declared.name)
        return f'{{"name":{name},{_definition(declared, defined)}}}'
    match declared:
        case Primitive(name):
            return _text(name)
        case Array(items):
            return f'{{"type":"array","items":{_form(items, defined)}}}'
        case Map(values):
            return f'{{"type":"map","values":{_form(values, defined)}}}'
        case Union(branches):
            return f"[{','.join(_form(branch, defined) for branch in branches)}]"
    raise SchemaError("$", f"{type(declared).__name__} has no canonical form")


def _definition(declared: Named, defined: set[str]) -> str:
    match declared:
        case Enum(symbols=symbols):
            return f'"type":"enum","symbols":[{",".join(map(_text, symbols))}]'
        case Fixed(size=size):
            return f'"type":"fixed","size":{size}'
        case Record(fields=fields):
            listed = [f'{{"name":{_text(field.name)},"type":{_form(field.type, defined)}}}' for field in fields]
            return f'"type":"record","fields":[{",".join(listed)}]'
    raise SchemaError(declared.name, f"{type(declared).__name__} has no canonical form")


def _text(name: str) -> str:
    """Return a name as JSON text; the letters of other scripts stand for themselves."""
    return json.dumps(name, ensure_ascii=False)

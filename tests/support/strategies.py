"""Hostile messages of each format as JSON text, generated from its wire schema.

A message is a tree of `Members`, `Items` and the JSON texts of scalars, so that a test can change
it before it becomes text.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cache, singledispatch
from typing import TYPE_CHECKING

from hypothesis import assume
from hypothesis import strategies as st

import cdcavro
from cdcavro.avro.types import Array, Enum, Map, Primitive, Record, Union
from cdcavro.wire.attributes import content_of, enum_rule, field_rule

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn, SearchStrategy

    from cdcavro.avro.types import Type

HOSTILE_NUMBERS = [
    "0",
    "-0",
    "-0.0",
    "0.0",
    "1.0",
    "1.00",
    "1.20",
    "1.5",
    "5e-324",
    "1E400",
    "-1e400",
    "1e-999",
    "1E5",
    "1e+5",
    "0.1e1",
    "0.00001",
    "1e16",
    "10000000000000000.0",
    "123456789012345680.0",
    "1.7976931348623157e308",
    str(2**31),
    str(-(2**31) - 1),
    str(2**53 + 1),
    str(2**63 - 1),
    str(2**63),
    str(-(2**63)),
    str(-(2**63) - 1),
    str(2**64 - 1),
    str(2**64),
    "7" * 700,
    "-" + "7" * 700,
    f"0.{'3' * 700}",
    f"{'9' * 5000}",
]
HOSTILE_STRINGS = [
    "",
    " ",
    "\0",
    "\x01",
    "\x85",
    "\u2028",
    "\ufeff",
    "\uffff",
    "\U0001f600",
    "é\u0301",
    '"',
    '":',
    '" :',
    '\\":',
    "\\",
    "\\\\",
    '\\\\":',
    "-0,",
    "a\nb\t",
    "/",
    "~",
    "~1",
    "a/b~c",
    "0",
    "-1",
    "null",
    "true",
    "1.0",
    "{}",
    "[1,",
    "extras",
    "columns",
    "data",
    "type",
    "payload",
    "__light_type",
    "text",
    "-type",
    "x" * 300,
]
_GAPS = ["", "", "", "", " ", "\n", "\t ", "\r\n"]


@dataclass(frozen=True)
class Members:
    """A JSON object: pairs of a name's JSON text and a value, in the order in which they are written."""

    pairs: tuple[tuple[str, object], ...]


@dataclass(frozen=True)
class Items:
    """A JSON array."""

    items: tuple[object, ...]


@singledispatch
def written(node, gap=""):
    """Return a tree as JSON text, with a gap of white space around every token."""
    return node


@written.register
def _(node: Members, gap=""):
    pairs = f"{gap},{gap}".join(f"{name}{gap}:{gap}{written(value, gap)}" for name, value in node.pairs)
    return f"{{{gap}{pairs}{gap}}}"


@written.register
def _(node: Items, gap=""):
    return f"[{gap}{f'{gap},{gap}'.join(written(item, gap) for item in node.items)}{gap}]"


strings: SearchStrategy[str] = st.sampled_from(HOSTILE_STRINGS) | st.text(max_size=6)


@st.composite
def quoted(draw: DrawFn, plain: SearchStrategy[str] = strings) -> str:
    """Draw the JSON text of a string, escaped as little or as much as JSON allows."""
    text = draw(plain)
    match draw(st.integers(0, 3)):
        case 0:
            return json.dumps(text)
        case 1:
            return json.dumps(text).replace("/", "\\/")
        case 2:
            return '"' + "".join(f"\\u{ord(char):04X}" if ord(char) < 0x10000 else char for char in text) + '"'
        case _:
            return json.dumps(text, ensure_ascii=False)


numbers: SearchStrategy[str] = (
    st.sampled_from(HOSTILE_NUMBERS)
    | st.integers(-(2**65), 2**65).map(str)
    | st.floats(allow_nan=False, allow_infinity=False).map(repr)
    | st.from_regex(r"-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?", fullmatch=True)
)
_scalars = quoted() | numbers | st.sampled_from(["null", "true", "false"])


@st.composite
def _members(draw: DrawFn, values: SearchStrategy[object], *, taken: frozenset[str] = frozenset()) -> Members:
    names = draw(st.lists(quoted(), max_size=3, unique_by=json.loads))
    return Members(tuple((name, draw(values)) for name in names if json.loads(name) not in taken))


values: SearchStrategy[object] = st.recursive(
    _scalars,
    lambda inner: st.lists(inner, max_size=3).map(tuple).map(Items) | _members(inner),
    max_leaves=5,
)
_LONGS = st.integers(-(2**63), 2**63 - 1) | st.sampled_from([0, -1, 2**63 - 1, -(2**63), 2**53 + 1])
_INTS = st.integers(-(2**31), 2**31 - 1)


def _integers(own: SearchStrategy[int]) -> SearchStrategy[str]:
    plain = own.map(str)
    converted = plain.map(json.dumps) | plain.map(lambda text: text + ".0") | plain.map(lambda text: text + "E0")
    return plain | plain | converted | st.sampled_from(["-0", "-0.0", "1e3", '"1E3"', "1200e-2", '"-0"'])


_PRIMITIVES: dict[str, SearchStrategy[object]] = {
    "null": st.just("null"),
    "boolean": st.sampled_from(["true", "false", '"true"', '"false"']),
    "int": _integers(_INTS),
    "long": _integers(_LONGS),
    "string": quoted() | quoted() | numbers | st.sampled_from(["true", "false"]),
}


@cache
def messages(format: str) -> SearchStrategy[object]:
    """Return the strategy for messages of a format, as trees that all conform to its structure."""
    return _of(cdcavro.load_schema(format).root)


@st.composite
def texts(draw: DrawFn, format: str) -> str:
    """Draw the JSON text of a message of a format."""
    around = draw(st.sampled_from(_GAPS))
    return around + written(draw(messages(format)), draw(st.sampled_from(_GAPS))) + around


@singledispatch
def _of(declared: Type) -> SearchStrategy[object]:
    raise TypeError(type(declared).__name__)


@_of.register
def _(declared: Primitive):
    return _PRIMITIVES[declared.name]


@_of.register
def _(declared: Enum):
    rule = enum_rule(declared)
    symbols = quoted(st.sampled_from([*declared.symbols, *rule.spellings]))
    return symbols | quoted() | st.sampled_from(["0", "-0", "1.50", "true", '"insert"'])


@_of.register
def _(declared: Array):
    return st.lists(_of(declared.items), max_size=3).map(tuple).map(Items)


@_of.register
def _(declared: Map):
    return _members(_of(declared.values))


@_of.register
def _(declared: Union):
    if any(content_of(branch) for branch in declared.branches):
        return values
    others = [_of(branch) for branch in declared.branches if branch != Primitive("null")]
    return st.one_of(*others, *others, st.just("null"))


@_of.register
def _(declared: Record):
    rules = {field_rule(field).name: field_rule(field) for field in declared.fields}
    named = {field_rule(field).name: _of(field.type) for field in declared.fields if not field_rule(field).members}
    required = {name: values for name, values in named.items() if rules[name].required}
    optional = {name: values for name, values in named.items() if not rules[name].required}
    none = st.just(Members(()))
    unknown = none | none | none | _members(values, taken=frozenset(named))
    return st.builds(
        _record, st.fixed_dictionaries(required, optional=optional), unknown, st.randoms(use_true_random=False)
    )


def _record(known: dict[str, object], unknown: Members, random) -> Members:
    pairs = [(json.dumps(name), value) for name, value in known.items()] + list(unknown.pairs)
    random.shuffle(pairs)
    return Members(tuple(pairs))


@st.composite
def repeating(draw: DrawFn, format: str) -> str:
    """Draw the text of a message in which an object has a member twice."""
    tree = draw(messages(format))
    places = [place for place in objects(tree) if place[-1].pairs]
    assume(places)
    *above, node = draw(st.sampled_from(places))
    name, value = draw(st.sampled_from(node.pairs))
    again = (draw(quoted(st.just(json.loads(name)))), draw(st.just(value) | values))
    pairs = list(node.pairs)
    pairs.insert(draw(st.integers(0, len(pairs))), again)
    changed: object = Members(tuple(pairs))
    for parent in reversed(above):
        changed = _with(parent, node, changed)
        node = parent
    return written(changed, draw(st.sampled_from(_GAPS)))


def objects(node: object, above: tuple[object, ...] = ()) -> list[tuple]:
    """Return every object in a tree, each behind the containers above it, outermost first."""
    if isinstance(node, Members):
        below = [value for _, value in node.pairs]
        own = [(*above, node)]
    else:
        below = list(node.items) if isinstance(node, Items) else []
        own = []
    return own + [place for child in below for place in objects(child, (*above, node))]


def _with(parent, old: object, new: object) -> object:
    if isinstance(parent, Members):
        return replace(parent, pairs=tuple((name, new if value is old else value) for name, value in parent.pairs))
    return replace(parent, items=tuple(new if item is old else item for item in parent.items))


@st.composite
def damaged(draw: DrawFn, raw: bytes) -> bytes:
    """Draw a damaged copy of some bytes: with a bit flipped, the end cut off, or bytes inserted, removed or appended."""
    at = draw(st.integers(0, max(len(raw) - 1, 0)))
    some = draw(st.binary(min_size=1, max_size=4))
    match draw(st.integers(0, 4)):
        case 0 if raw:
            return raw[:at] + bytes([raw[at] ^ 1 << draw(st.integers(0, 7))]) + raw[at + 1 :]
        case 1:
            return raw[:at]
        case 2:
            return raw[:at] + some + raw[at:]
        case 3:
            return raw[:at] + raw[at + len(some) :]
        case _:
            return raw + some

"""Kafka Connect's Avro: a schema that one of its converters wrote, and data as Connect's JSON converter writes them.

The JSON has the schema and the payload, as with `schemas.enable`, so that whatever reads Debezium's JSON reads its Avro:

* Types have the names and parameters that `connect.name` and `connect.parameters` give. A union with null is optional.
* An array of the records `MapEntry` is a map whose keys are no plain strings.
* Avro's logical types are Connect's by their names there. Their values stay what Avro has: numbers, or bytes in base64.
* Numbers are spelled as Java spells them, and characters are escaped as Jackson escapes them.
* A column whose name is none in Avro was renamed by its producer. It has its true name again if the type states it.

The engine writes the JSON by the program of a schema. What it leaves is written by functions, one for each type.

Source: Kafka's `JsonConverter`, Confluent's `AvroData`, and Debezium's reference, "Avro serialization" and
`column.propagate.source.type`.
"""

from __future__ import annotations

import json
import re
import struct
from array import array
from base64 import b64encode
from decimal import Decimal
from functools import cached_property
from json.encoder import encode_basestring
from typing import TYPE_CHECKING, Any, Final

from cdcavro.avro.binary import MAX_COUNT, READ_PRIMITIVE, Decoder, write_string
from cdcavro.avro.types import (
    Array,
    Enum,
    Fixed,
    Map,
    Named,
    Primitive,
    Record,
    Type,
    Union,
    check_expansion,
    has_bytes,
)
from cdcavro.engine import program as operations
from cdcavro.engine.machine import Engine, EnvelopeEngine
from cdcavro.engine.program import MARK, REQUIRED, WIDTH, Program
from cdcavro.errors import SchemaError
from cdcavro.exact.jsontext import ABSENT, MAX_DEPTH, MAX_LENGTH
from cdcavro.wire.attributes import field_rule

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cdcavro.avro.schema import Schema
    from cdcavro.engine.payloads import Batch
    from cdcavro.wire.format import Format

    # Reads a datum and returns its JSON.
    Read = Callable[[Decoder], str]

TRUE_NAME: Final = "__debezium.source.column.name"
_NULL: Final = Primitive("null")
_ENTRY: Final = "io.confluent.connect.avro.MapEntry"
_TYPES: Final = {"int": "int32", "long": "int64"}
_NARROW: Final = frozenset({"int8", "int16"})
_LOGICAL: Final = "org.apache.kafka.connect.data."
_LOGICAL_NAMES: Final = {
    "decimal": "Decimal",
    "date": "Date",
    "time-millis": "Time",
    "timestamp-millis": "Timestamp",
}
# How many characters a schema has with Connect's types: the 4,096 columns of a table take about 2 million.
_MAX_SCHEMA: Final = 16 << 20
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
# What types state of themselves in attributes, and what each is in Python and in a sentence.
_FACTS: Final[dict[str, type]] = {"name": str, "version": int, "doc": str, "parameters": dict}
_KINDS: Final[dict[type, str]] = {str: "a text", int: "an integer", dict: "an object of texts"}
_ESCAPES: Final = re.compile(r"\\(?:\\|u00[01][0-9a-f])")
_FLOAT: Final = struct.Struct("<f")
# What is rounded to the largest number of single precision is below this.
_MAX_FLOAT: Final = 2.0**128 - 2.0**103
# Java writes numbers from 0.001 to 10,000,000 without an exponent.
_PLAIN: Final = range(-3, 7)


def is_connect(schema: Schema) -> bool:
    """Return whether a converter of Connect's wrote a schema, or an envelope of Debezium's is what it describes."""
    root = schema.root
    if not isinstance(root, Record):
        return False
    names = {field.name for field in root.fields}
    return "connect.name" in root.attributes or (root.name.endswith(".Envelope") and {"op", "after"} <= names)


class ConnectReader:
    """Reads payloads of one schema. Raises `SchemaError` for a schema that Connect has no types for.

    The JSON of a record's key has no schema, unless it would be taken for one that has.
    """

    def __init__(self, schema: Schema, *, is_key: bool = False) -> None:
        root = schema.root
        check_expansion(root, "Kafka Connect")
        text = _text_of(_schema_of(root))
        is_bare = is_key and isinstance(root, Record) and {*_names_of(root)} != {"schema", "payload"}
        # What stands before the JSON of a datum.
        self._head = "" if is_bare else f'"schema":{text},"payload":'
        self._read, self.root = _reader(root), root
        self._engine = Engine(_ProgramBuilder().program(root, self._head))

    @property
    def repeated(self) -> int:
        """How many characters of each text are its schema."""
        return len(self._head)

    @property
    def column(self) -> Batch:
        """What turns whole columns of payloads into JSON, up to one that is left to `text`."""
        return self._engine.decode_column

    def text(self, payload: bytes) -> bytes:
        """Return the JSON of a payload (bytes). Raises `PayloadError` for one that is none."""
        text = self._engine.decode(payload)
        return self._exact_text(payload) if text is None else text

    @property
    def head(self) -> bytes:
        """What `MARK` stands for in brief texts (bytes), of which `whole_text` makes those that `text` returns."""
        return f"{{{self._head}".encode()

    @property
    def brief_column(self) -> Batch:
        """What turns whole columns of payloads into brief texts, up to one that is left to `brief_text`."""
        return self._brief_engine.decode_column

    def brief_text(self, payload: bytes) -> bytes:
        """Return the JSON of a payload (bytes) with `MARK` for its schema. Raises as `text` does."""
        text = self._brief_engine.decode(payload)
        return MARK + self._json(payload).encode() if text is None else text

    def envelope_engine(self, format: Format, key: ConnectReader | None) -> EnvelopeEngine | None:
        """Return what makes payloads of a format of columns of payloads, and of keys that another one reads.

        None for other than records, for keys with a schema, and for a format that has no place for them.
        """
        roots = [self.root] if key is None else [self.root, key.root]
        if not all(isinstance(root, Record) for root in roots) or (key is not None and key.repeated):
            return None
        builder = _PassageBuilder(roots, format.envelope)
        return builder.engine(format.program, len(self._head)) if builder.has_place else None

    @cached_property
    def _brief_engine(self) -> Engine:
        return Engine(_ProgramBuilder().program(self.root, "", operations.CAPITALS | operations.IS_BRIEF))

    def _exact_text(self, payload: bytes) -> bytes:
        text = self._json(payload)
        return (f"{{{self._head}{text}}}" if self._head else text).encode()

    def _json(self, payload: bytes) -> str:
        source = Decoder(payload)
        text = self._read(source)
        source.finish()
        return text


def whole_text(text: bytes, head: bytes) -> bytes:
    r"""Return a brief text, which may be the last member of an object, with its head; any other as it is.

    Without a head, no text is brief.

    >>> whole_text(b'{"value":\x01{"id":5}}', b'{"schema":{},"payload":')
    b'{"value":{"schema":{},"payload":{"id":5}}}'
    """
    before, mark, datum = text.rpartition(MARK)
    return before + head + datum + b"}" if head and mark else text


def _text_of(schema: dict[str, Any]) -> str:
    """Return the text of Connect's schema, which repeats all that Avro's refers to by name."""
    parts, size = [], 0
    for part in json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).iterencode(schema):
        size += len(part)
        if size > _MAX_SCHEMA:
            raise SchemaError("$", f"it has more than {_MAX_SCHEMA:,} characters with Kafka Connect's types")
        parts.append(part)
    text = "".join(parts)
    if _SURROGATE.search(text):
        raise SchemaError("$", "a text of Kafka Connect's is UTF-8, without lone surrogates")
    return text


def _schema_of(declared: Type, default: Any = ABSENT) -> dict[str, Any]:
    """Return Connect's schema for a type, as its JSON converter writes it."""
    is_optional = isinstance(declared, Union)
    own = _own(declared)
    attributes: Mapping[str, Any] = getattr(own, "attributes", {})
    made = _shape_of(own)
    made["optional"] = is_optional
    stated = {fact: _stated(attributes, fact, kind) for fact, kind in _FACTS.items()}
    name = stated["name"] or _default_name(own)
    facts = {
        "name": name,
        "version": stated["version"] or (1 if name and name.startswith(_LOGICAL) else None),
        "doc": stated["doc"],
        "parameters": stated["parameters"] or _default_parameters(own, name),
    }
    made |= {fact: value for fact, value in facts.items() if value}
    default = attributes.get("connect.default", default)
    if default is not ABSENT and default is not None:
        made["default"] = _default_bytes(default) if _is_bytes(own) else default
    return made


def _stated(attributes: Mapping[str, Any], fact: str, kind: type) -> Any:
    """Return what a type states of itself, None without it."""
    value = attributes.get(f"connect.{fact}")
    is_right = value is None or type(value) is kind
    if not is_right or (kind is dict and value and not all(type(text) is str for text in value.values())):
        raise SchemaError("$", f"connect.{fact} is {_KINDS[kind]}")
    return value


def _default_bytes(default: Any) -> str:
    """Return the default of bytes in base64, whose characters in a schema are the bytes."""
    if type(default) is not str or (not default.isascii() and max(default) > "\xff"):
        raise SchemaError("$", "the default of bytes is a text whose characters are bytes")
    return b64encode(default.encode("latin-1")).decode()


def _own(declared: Type) -> Type:
    """Return a type, of a union what it has beside null."""
    if not isinstance(declared, Union):
        return declared
    others = [branch for branch in declared.branches if branch != _NULL]
    if len(others) != 1 or len(declared.branches) != len(others) + 1:
        raise SchemaError("$", "a union of Kafka Connect's is one of null and one other type")
    return others[0]


def _shape_of(declared: Type) -> dict[str, Any]:
    match declared:
        case Primitive(name) if name != "null":
            narrow = declared.attributes.get("connect.type")
            return {"type": narrow if name == "int" and narrow in _NARROW else _TYPES.get(name, name)}
        case Fixed():
            return {"type": "bytes"}
        case Enum():
            return {"type": "string"}
        case Array(items) if (entry := _entry_of(items)) is not None:
            return {"type": "map", "keys": _schema_of(entry[0]), "values": _schema_of(entry[1])}
        case Array(items):
            return {"type": "array", "items": _schema_of(items)}
        case Map(values):
            keys = {"type": "string", "optional": False}
            return {"type": "map", "keys": keys, "values": _schema_of(values)}
        case Record(fields=fields):
            names = _names_of(declared)
            members = [
                {**_schema_of(field.type, field.default), "field": own}
                for field, own in zip(fields, names, strict=True)
            ]
            return {"type": "struct", "fields": members}
    raise SchemaError("$", f"Kafka Connect has no type for {getattr(declared, 'name', type(declared).__name__)}")


def _entry_of(items: Type) -> tuple[Type, Type] | None:
    """Return the types of keys and values if an array has the entries of a map whose keys are no plain strings."""
    if not isinstance(items, Record) or [field.name for field in items.fields] != ["key", "value"]:
        return None
    is_entry = items.name == _ENTRY or items.attributes.get("connect.internal.type") == "MapEntry"
    return (items.fields[0].type, items.fields[1].type) if is_entry else None


def _default_name(declared: Type) -> str | None:
    if isinstance(declared, Record):
        return declared.name
    logical = getattr(declared, "attributes", {}).get("logicalType")
    return _LOGICAL + _LOGICAL_NAMES[logical] if logical in _LOGICAL_NAMES else None


def _default_parameters(declared: Type, name: str | None) -> dict[str, str] | None:
    if name != f"{_LOGICAL}Decimal":
        return None
    attributes: Mapping[str, Any] = getattr(declared, "attributes", {})
    precision = {"connect.decimal.precision": str(attributes["precision"])} if "precision" in attributes else {}
    return {"scale": str(attributes.get("scale", 0)), **precision}


def _is_bytes(declared: Type) -> bool:
    return isinstance(declared, Fixed) or declared == Primitive("bytes")


def _names_of(declared: Record) -> list[str]:
    """Return the names of a record's fields: those that types state, if they are as many as the fields."""
    names = [(_true_name(field.type), field.name) for field in declared.fields]
    stated = [own if name is None else name for name, own in names]
    return stated if len({*stated}) == len(stated) else [field.name for field in declared.fields]


def _true_name(declared: Type) -> str | None:
    for branch in declared.branches if isinstance(declared, Union) else (declared,):
        parameters = getattr(branch, "attributes", {}).get("connect.parameters")
        name = parameters.get(TRUE_NAME) if isinstance(parameters, dict) else None
        if isinstance(name, str):
            return name
    return None


def _reader(declared: Type) -> Read:
    match declared:
        case Primitive(name):
            read = READ_PRIMITIVE[name]
            spell = _SPELL[name]
            return lambda source: spell(read(source))
        case Fixed(size=size):
            return lambda source: _base64(source.take(size))
        case Enum(symbols=symbols):
            texts = [_string(symbol) for symbol in symbols]
            return lambda source: texts[source.read_index(len(texts), "a symbol")]
        case Array(items) if (entry := _entry_of(items)) is not None:
            key, value = map(_reader, entry)
            if _own(entry[0]) != Primitive("string"):
                return lambda source: _listed(
                    [f"[{key(source)},{value(source)}]" for count in source.blocks() for _ in range(count)]
                )
            return lambda source: _members(
                [f"{_member(key(source))}:{value(source)}" for count in source.blocks() for _ in range(count)]
            )
        case Array(items):
            item = _reader(items)
            return lambda source: _listed([item(source) for count in source.blocks() for _ in range(count)])
        case Map(values):
            value = _reader(values)
            return lambda source: _members(
                [f"{_string(source.read_string())}:{value(source)}" for count in source.blocks() for _ in range(count)]
            )
        case Union(branches):
            reads = [_reader(branch) for branch in branches]
            return lambda source: reads[source.read_index(len(reads), "a branch")](source)
        case Record():
            names = [f"{_string(name)}:" for name in _names_of(declared)]
            fields = [*zip(names, [_reader(field.type) for field in declared.fields], strict=True)]
            return lambda source: _members([name + read(source) for name, read in fields])
    raise SchemaError("$", f"{type(declared).__name__} is no type")


def _listed(items: list[str]) -> str:
    return f"[{','.join(items)}]"


def _members(members: list[str]) -> str:
    return f"{{{','.join(members)}}}"


def _member(key: str) -> str:
    """Return the name of a member for a key that is a string or null."""
    return '"null"' if key == "null" else key


def _string(text: str) -> str:
    r"""Return a string as Jackson writes it.

    >>> print(_string("a\x1f\\u001f"))
    "a\u001F\\u001f"
    """
    written = encode_basestring(text)
    return _ESCAPES.sub(_as_jackson, written) if "\\" in written else written


def _as_jackson(escape: re.Match[str]) -> str:
    return f"\\u{escape[0][2:].upper()}" if escape[0] != "\\\\" else escape[0]


def _base64(value: bytes) -> str:
    return f'"{b64encode(value).decode()}"'


def _float(value: float) -> str:
    """Return a number of single precision as Java writes it.

    >>> _float(0.10000000149011612), _float(3.4028234663852886e38)
    ('0.1', '3.4028235E38')
    """
    if value - value == 0:
        texts = (f"{value:.{digits}g}" for digits in range(2, 10))
        value = next(near for near in map(float, texts) if abs(near) < _MAX_FLOAT and _single(near) == value)
    return _java(value)


def _single(value: float) -> float:
    return float(_FLOAT.unpack(_FLOAT.pack(value))[0])


def _java(value: float) -> str:
    """Return a number of double precision as Java writes it; what is no number is a string.

    It has the fewest digits that tell it from others, but at least two, and of such the nearest.

    >>> [_java(value) for value in (0.0, -1.5, 1e7, 0.0001, 123456789.25, 5e-324, float("-inf"))]
    ['0.0', '-1.5', '1.0E7', '1.0E-4', '1.2345678925E8', '4.9E-324', '"-Infinity"']
    """
    if value - value != 0:
        return '"NaN"' if value != value else '"Infinity"' if value > 0 else '"-Infinity"'  # noqa: PLR0124
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    if len(digits) == 1:
        sign, digits, exponent = Decimal(f"{value:.1e}").as_tuple()
    text = "".join(map(str, digits)).rstrip("0") or "0"
    power = len(digits) - 1 + int(exponent)
    if value == 0 or power in _PLAIN:
        plain = format(Decimal(repr(value)).copy_abs(), "f")
        whole, _, fraction = plain.partition(".")
        return f"{'-' * sign}{whole}.{fraction.rstrip('0') or '0'}"
    return f"{'-' * sign}{text[0]}.{text[1:] or '0'}E{power}"


_SPELL: Final[Mapping[str, Callable[[Any], str]]] = {
    "null": lambda _: "null",
    "boolean": lambda value: "true" if value else "false",
    "int": str,
    "long": str,
    "float": _float,
    "double": _java,
    "bytes": _base64,
    "string": _string,
}


class _ProgramBuilder:
    """Collects the program by which the engine writes what `_reader` has read: one instruction for each type."""

    def __init__(self) -> None:
        self._code, self._fields, self._symbols, self._texts = array("i"), array("i"), array("i"), bytearray()
        self.known: dict[str, int] = {}

    def program(self, root: Type, head: str, flags: int = operations.CAPITALS) -> Program:
        """Return the program of a schema, and of the text that makes each datum a member of an object."""
        number = self.node(root)
        if head:
            number = self._members([head], [number])
        return self.program_of(number, flags)

    def program_of(self, number: int, flags: int = operations.CAPITALS) -> Program:
        """Return the program that begins with an instruction."""
        self._code[number * WIDTH + WIDTH - 1] = flags
        parts = (self._code, self._fields, self._symbols, bytes(self._texts))
        return Program(number, *parts, (MAX_DEPTH, MAX_COUNT, MAX_LENGTH))

    def node(self, declared: Type) -> int:
        """Return the number of the instruction of a type, for all that bear its name."""
        if not isinstance(declared, Named):
            return self._new_node(declared)
        if declared.name not in self.known:
            self.known[declared.name] = self._new_node(declared)
        return self.known[declared.name]

    def _new_node(self, declared: Type) -> int:
        match declared:
            case Primitive(name) if name in _INSTRUCTIONS:
                return self._add(*_INSTRUCTIONS[name])
            case Fixed(size=size) if size <= MAX_LENGTH:
                return self._add(operations.BYTES, size)
            case Enum(symbols=symbols):
                first = len(self._symbols)
                for symbol in symbols:
                    self._symbols.extend(self._text(_string(symbol)))
                return self._add(operations.ENUM, first, len(symbols), -1)
            case Array(items) if _entry_of(items) is None and has_bytes(items, {}):
                return self._add(operations.ARRAY, self.node(items))
            case Map(values):
                return self._add(operations.MAP, self.node(values))
            case Union(branches):
                null = branches.index(_NULL)
                return self._add(operations.OPTIONAL, self.node(branches[1 - null]), 1 - null, null)
            case Record(fields=fields):
                labels = [f"{_string(name)}:" for name in _names_of(declared)]
                return self._members(labels, [self.node(field.type) for field in fields])
            case Array() | Fixed():
                # The entries of a map, items without bytes, and what is longer than any message.
                return self._add(operations.LEAVE)
        raise SchemaError("$", f"{type(declared).__name__} is no type")

    def _members(self, labels: list[str], nodes: list[int]) -> int:
        first = len(self._fields) // WIDTH
        for label, node in zip(labels, nodes, strict=True):
            self._fields.extend((*self._text(label), node, REQUIRED, 0, -1, 0, 0))
        return self._add(operations.RECORD, first, len(nodes), -1)

    def _add(self, kind: int, *operands: int) -> int:
        self._code.extend((kind, *operands, *[0] * (WIDTH - 1 - len(operands))))
        return len(self._code) // WIDTH - 1

    def _text(self, text: str) -> tuple[int, int]:
        start, written = len(self._texts), text.encode()
        self._texts += written
        return start, len(written)


class _PassageBuilder:
    """Collects what becomes of the fields of envelopes and keys in the records and rows of a wire schema."""

    def __init__(self, roots: list[Type], wire: Record) -> None:
        self._programs, self._rows, self._labels, self._size = _ProgramBuilder(), [[0]], bytearray(), 0
        self._has_keys, members = len(roots) > 1, _members_of(wire)
        self.has_place = [*members][:3] == ["topic", "key", "value"] and "payload" in members
        if not self.has_place:
            return
        if self._has_keys:
            (key, of_key), (value, of_value) = members["key"], members["value"]
            self._rows += [[0], [0, value, 0, 0, 0, -1, 0, 0]]
            self._fill(1, roots[1], of_key, key)
            # Types of the same name in another schema are others.
            self._programs.known.clear()
            members = _members_of(of_value)
        target, payload = members["payload"]
        self._fill(0, roots[0], payload, target)

    def engine(self, program: Program, size: int) -> EnvelopeEngine:
        """Return the engine; `size` is that of the text of the schema beside an envelope."""
        source = self._programs.program_of(self._rows[0][0])
        passages = array("i", [number for row in self._rows for number in row])
        return EnvelopeEngine(program, source, passages, bytes(self._labels), size + self._size, self._has_keys)

    def _fill(
        self, number: int, declared: Type, into: Type | None, target: int, label: bytes | bytearray = b""
    ) -> None:
        """Fill the row of a field, and add those of its fields one behind another if it becomes a record or a row."""
        own, first, count = _own(declared), 0, -1
        if isinstance(own, Record) and isinstance(into, Record | Map):
            names = _names_of(own)
            first, count = len(self._rows), len(names)
            self._rows += [[0] for _ in names]
            members = _members_of(into) if isinstance(into, Record) else {}
            for i, (field, name) in enumerate(zip(own.fields, names, strict=True), first):
                member, becomes = members.get(name, (-1, None))
                own_label = bytearray(name.encode() if isinstance(into, Record) else b"")
                if isinstance(into, Map):
                    write_string(own_label, name)
                self._fill(i, field.type, becomes, member, own_label)
        self._rows[number] = [self._programs.node(declared), target, len(self._labels), len(label), first, count, 0, 0]
        self._labels += label
        # In a text, a name has its escapes, and a value at least four characters.
        self._size += 6 * len(label) + 16


def _members_of(record: Type | None) -> dict[str, tuple[int, Type | None]]:
    """Return the index of each member of a record of a wire schema, and its type, None for one of several."""
    if not isinstance(record, Record):
        return {}
    return {field_rule(field).name: (i, _one_of(field.type)) for i, field in enumerate(record.fields)}


def _one_of(declared: Type) -> Type | None:
    others = [branch for branch in getattr(declared, "branches", (declared,)) if branch != _NULL]
    return others[0] if len(others) == 1 else None


_INSTRUCTIONS: Final = {
    "boolean": (operations.BOOLEAN,),
    "int": (operations.INT,),
    "long": (operations.LONG,),
    "float": (operations.FLOAT,),
    "double": (operations.DOUBLE,),
    "bytes": (operations.BYTES, -1),
    "string": (operations.STRING,),
}

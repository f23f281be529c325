"""The program for messages of a wire schema: the engine runs it to turn text into a payload and back, or into rows."""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from cdcavro.avro.binary import MAX_COUNT, Decoder, skipper
from cdcavro.avro.types import Array, Enum, Field, Map, Primitive, Record, Type, Union, branch_name
from cdcavro.engine.machine import Engine, Values
from cdcavro.engine.program import (
    ABSENT,
    ARRAY,
    BOOLEAN,
    COLUMN,
    ENUM,
    EXTRAS,
    INT,
    LACKS_NULLS,
    LONG,
    MAP,
    NULL,
    OPTIONAL,
    RECORD,
    REQUIRED,
    REST,
    STRING,
    VARIANT,
    WIDTH,
    Program,
)
from cdcavro.errors import SchemaError
from cdcavro.exact.jsontext import MAX_DEPTH, MAX_LENGTH, at, escape, parse_fast, render
from cdcavro.wire.attributes import (
    LOCAL,
    PARTS,
    POSITIONS,
    UNITS,
    WHOLE_ROW,
    FieldRule,
    content_of,
    enum_rule,
    field_rule,
    format_rule,
    is_nullable,
    marked_paths,
    member_path,
)
from cdcavro.wire.kafka import KAFKA, unwraps_records
from cdcavro.wire.message_writer import message_writer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cdcavro.avro.schema import Schema
    from cdcavro.wire.message_writer import MessageWriter

_SCALARS: Final = {"boolean": BOOLEAN, "int": INT, "long": LONG, "string": STRING}
_VARIANTS: Final = {"boolean": 0, "int": 1, "long": 1, "string": 2}
_COLUMN: Final = ("null", "boolean", "long", "double", "string", "number", "text")
_NONE: Final = -1
_KEPT: Final = 64
_NO_VALUE: Final = ("", "null")
_IMAGES: Final = ("before", "after", "row", "rows")


def message_program(declared: Record) -> Program:
    """Return the program of a wire schema's outermost record. Raises `SchemaError` for a schema that is not one.

    The engine compares names with the text as it is, so a schema with a name that JSON escapes gets a program that it
    does not run.
    """
    return _MessageProgramBuilder().program(declared)


@lru_cache(maxsize=_KEPT)
def engine_of(writer: Schema) -> Engine | None:
    """Return the engine for payloads of a wire schema, None if only the exact way reads them."""
    program = _program_of(writer)
    return None if program is None else Engine(program)


@lru_cache(maxsize=_KEPT)
def values_of(writer: Schema) -> Values | None:
    """Return the engine for records of a wire schema, None if only the exact way reads them."""
    program = _program_of(writer)
    return None if program is None else Values(program)


def checked_program(declared: Record, _checked: MessageWriter) -> Program:
    """Return the program of a wire schema; the writer shows that the schema was checked."""
    return message_program(declared)


def _program_of(writer: Schema) -> Program | None:
    try:
        root = writer.root
        return checked_program(root, message_writer(root)) if isinstance(root, Record) else None
    except SchemaError:
        return None


class _MessageProgramBuilder:
    """Walks a schema once and collects the parts of its program."""

    def __init__(self) -> None:
        self._code = array("i", [])
        self._fields = array("i", [])
        self._symbols = array("i", [])
        self._texts = bytearray()
        self._is_plain = True

    def program(self, declared: Record) -> Program:
        root = self._record(declared, "")
        unwraps = unwraps_records([field_rule(field).name for field in declared.fields])
        self._code[root * WIDTH + 4] = int(unwraps)
        rule = format_rule(declared)
        if rule.unstated:
            self._code[root * WIDTH + 5 : root * WIDTH + 7] = array("i", self._text(rule.unstated.encode()))
        self._code[root * WIDTH + 7] = LACKS_NULLS if rule.has_unstated_nulls else 0
        return Program(
            root if self._is_plain else _NONE,
            self._code,
            self._fields,
            self._symbols,
            bytes(self._texts),
            (MAX_DEPTH, MAX_COUNT, MAX_LENGTH),
        )

    def _text(self, text: bytes) -> tuple[int, int]:
        start = len(self._texts)
        self._texts += text
        return start, len(text)

    def _add(self, *instruction: int) -> int:
        number = len(self._code) // WIDTH
        self._code.extend(instruction + (0,) * (WIDTH - len(instruction)))
        return number

    def _type(self, declared: Type, pointer: str | None) -> int:
        match declared:
            case Primitive(name) if name in _SCALARS:
                return self._add(_SCALARS[name])
            case Enum():
                return self._enum(declared)
            case Array(items):
                return self._add(ARRAY, self._type(items, None))
            case Map(values):
                return self._add(MAP, self._type(values, None))
            case Record():
                return self._record(declared, pointer)
            case Union():
                return self._union(declared, pointer)
        raise SchemaError("wire schema", f"holds no {branch_name(declared)}")

    def _enum(self, declared: Enum) -> int:
        rule = enum_rule(declared)
        first = len(self._symbols)
        for text in rule.texts(declared.symbols):
            self._symbols.extend(self._text(render(text)))
        other = declared.symbols.index(rule.other) if rule.other else _NONE
        spelled = len(self._symbols)
        for spelling, symbol in rule.spellings.items():
            self._symbols.extend((*self._text(render(spelling)), declared.symbols.index(symbol)))
        return self._add(ENUM, first, len(declared.symbols), other, spelled, len(rule.spellings))

    def _union(self, declared: Union, pointer: str | None, *, takes_text: bool = False) -> int:
        held = [content_of(branch) or branch_name(branch) for branch in declared.branches]
        if "number" in held:
            return self._add(COLUMN, *map(held.index, _COLUMN))
        null = declared.branches.index(Primitive("null"))
        others = [(i, branch) for i, branch in enumerate(declared.branches) if i != null]
        if len(others) == 1:
            index, branch = others[0]
            return self._add(OPTIONAL, self._type(branch, pointer), index, null, int(takes_text))
        operands, is_int = [_NONE, _NONE, _NONE], 0
        for i, branch in others:
            operands[_VARIANTS[branch_name(branch)]] = i
            is_int |= branch_name(branch) == "int"
        return self._add(VARIANT, null, *operands, is_int)

    def _record(self, declared: Record, pointer: str | None) -> int:
        number = self._add(RECORD)
        rules = [(field, field_rule(field)) for field in declared.fields]
        first, rest = len(self._fields) // WIDTH, _NONE
        self._fields.extend([0] * (WIDTH * len(rules)))
        for i, (field, rule) in enumerate(rules, first):
            row = self._field_row(field, rule, pointer)
            self._fields[i * WIDTH : (i + 1) * WIDTH] = array("i", (*row, *self._part(field, rule)))
            if rule.members == "rest":
                rest = i
        self._code[number * WIDTH : (number + 1) * WIDTH] = array("i", [RECORD, first, len(rules), rest, 0, 0, 0, 0])
        return number

    def _field_row(self, field: Field, rule: FieldRule, pointer: str | None) -> tuple[int, ...]:
        if rule.members == "extras":
            return (0, 0, _NONE, EXTRAS, 0, _NONE)
        if rule.members == "rest":
            return (0, 0, self._type(field.type, None), REST, 0, _NONE)
        member_pointer = None if pointer is None else f"{pointer}/{escape(rule.name)}"
        missing = (NULL if rule.missing == "null" else ABSENT) if is_nullable(field.type) else REQUIRED
        place = (0, _NONE) if member_pointer is None else self._text(member_pointer.encode())
        self._is_plain &= render(rule.name)[1:-1] == rule.name.encode()
        label = self._text(render(rule.name) + b":")
        node = (
            self._union(field.type, member_pointer, takes_text=rule.text)
            if isinstance(field.type, Union)
            else self._type(field.type, member_pointer)
        )
        return (*label, node, missing, *place)

    @staticmethod
    def _part(field: Field, rule: FieldRule) -> tuple[int, int]:
        part = rule.part or ("within" if any(marked_paths(field.type, "part")) else "")
        return PARTS.index(part), UNITS[rule.unit or LOCAL]


@dataclass(frozen=True, slots=True)
class RowParts:
    """The parts of a format's rows."""

    # The parts that the format has, `unused` among them.
    names: frozenset[str]
    # The JSON pointers to the parts that are used.
    pointers: tuple[str, ...]
    # These parts, each with the names on the way to it.
    _paths: tuple[tuple[str, tuple[str, ...]], ...]
    # The rule of the numbers of a position, or one for each connector.
    _position: str | Mapping[str, str]
    # The rules of the members that decide how the numbers are told, the first one with a value.
    _deciding: tuple[tuple[tuple[str, ...], str], ...]
    # Functions that skip the fields in front of the extras.
    _before: tuple[Callable[[Decoder], object], ...]
    # Whether the row before a delete stands where the row after other changes does.
    is_whole: bool

    def position(self, connector: str | None, message: bytes) -> int:
        """Return the number of the rule by which a message's position is read; some formats have several."""
        rule = self._position if isinstance(self._position, str) else self._position.get(connector or "", "")
        record = parse_fast(message) if self._deciding else None
        rule = next((own for path, own in self._deciding if at(record, *path) is not None), rule)
        return POSITIONS.index(rule or "none")

    def has_clear_extras(self, payload: bytes) -> bool:
        """Return whether the extras of a payload concern no part, unless they say that it has no value."""
        source = Decoder(payload)
        for skip in self._before:
            skip(source)
        extras: dict[str, str] = {}
        while count := source.read_long():
            extras |= {source.read_string(): source.read_string() for _ in range(count)}
        return KAFKA not in extras and not any(self._is_within(pointer, text) for pointer, text in extras.items())

    def are_complete(
        self, payload: bytes, read: Callable[[bytes], Mapping[str, Any]], key: Sequence[str] | None
    ) -> bool:
        """Return whether the parts hold all of a message's change; `read` returns the record, if it is needed."""
        return self.has_clear_extras(payload) and (self.have_one_place or self.are_together(read(payload), key))

    @property
    def have_one_place(self) -> bool:
        """Whether rows stand in the same place in all messages, and there is no key beside them."""
        return len({path[:-1] for part, path in self._paths if part in _IMAGES}) == 1 and "key" not in self.names

    def are_together(self, record: Mapping[str, Any], key: Sequence[str] | None) -> bool:
        """Return whether all parts of a record are where its rows are; a key with these names may be elsewhere."""
        present = [(part, path) for part, path in self._paths if at(record, *path) is not None]
        places = {path[:-1] for part, path in present if part in _IMAGES}
        if any(list(at(record, *path)) != list(key or ()) for part, path in present if part == "key"):
            return False
        beside = [path for part, path in present if part != "key"]
        # The columns of a rest map stand in the record itself.
        place = places.pop() if places else ()
        return not places and all(path[: len(place)] == place for path in beside)

    def _is_within(self, pointer: str, text: str) -> bool:
        for part in self.pointers:
            if pointer == part:
                return text not in _NO_VALUE
            if pointer.startswith(f"{part}/"):
                return True
        return False


def row_parts(envelope: Record) -> RowParts:
    """Return the parts of a format's rows."""
    paths = [(part, member_path(path)) for path, part in marked_paths(envelope, "part")]
    used = [(part, path) for part, path in paths if part != "unused"]
    pointers = ["".join(f"/{escape(name)}" for name in path) for _, path in used]
    # The extras are the last field.
    before = tuple(skipper(field.type) for field in envelope.fields[:-1])
    names = frozenset(part for part, _ in paths)
    deciding = tuple((member_path(path), rule) for path, rule in marked_paths(envelope, "position"))
    is_whole = any(meaning == WHOLE_ROW for _, meaning in marked_paths(envelope, "means"))
    rule = format_rule(envelope).position
    return RowParts(names, tuple(pointers), tuple(used), rule, deciding, before, is_whole)

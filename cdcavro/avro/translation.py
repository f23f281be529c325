"""Translation of payloads: what one schema wrote, as another would have written it.

The steps of `resolution.resolve` become functions that check the writer's bytes and append the reader's:
aliases, promotions and defaults are applied, and fields that the reader lacks are checked and left out.
Where the two schemas encode a value alike, its bytes are copied, and often those of whole payloads.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cdcavro.avro.binary import (
    Buffer,
    Decoder,
    array_check,
    blocks,
    call_later,
    check_name,
    datum_reader,
    map_check,
    pack_float,
    record_check,
    skipper,
    too_nested,
    union_check,
    with_levels,
)
from cdcavro.avro.defaults import encoded_defaults
from cdcavro.avro.resolution import (
    ReadArray,
    ReadEnum,
    ReadFixed,
    ReadMap,
    ReadPrimitive,
    ReadRecord,
    ReadUnion,
    Step,
    resolve,
)
from cdcavro.avro.types import (
    Array,
    Enum,
    Fixed,
    Map,
    Primitive,
    Record,
    Type,
    Union,
    branch_name,
    has_bytes,
    is_nothing,
    is_same_name,
    logical_type,
    recursion,
    value_check,
    within_stack,
)
from cdcavro.avro.types import too_nested as schema_too_nested
from cdcavro.errors import MessageError, PayloadError, SchemaError, shown
from cdcavro.exact.jsontext import escape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from cdcavro.avro.binary import Check
    from cdcavro.avro.schema import Schema

    Write = Callable[[Decoder, Buffer], None]

MAX_TRANSLATED: Final = 64 << 20


@within_stack(schema_too_nested)
def translator(writer: Schema, reader: Schema, *, reinterpret: bool = False) -> Callable[[bytes], bytes]:
    r"""Return a function from a payload of the writer's schema to one of the reader's.

    It returns the payload itself if both schemas encode it alike, and raises `PayloadError` for one that is not
    exactly one datum of the writer's, that has a symbol or a branch that the reader lacks, or whose meaning would
    be guessed: bytes as text, or plain numbers as dates, times or decimals. With `reinterpret` these are read as
    the reader's schema says. Raises `ResolutionError` if the reader cannot read what the writer wrote.

    >>> from cdcavro.avro.schema import parse_schema
    >>> translator(parse_schema('"int"'), parse_schema('["null", "long"]'))(b"\x0e")
    b'\x02\x0e'
    """
    is_endless = recursion(writer.root) is not None or recursion(reader.root) is not None
    parts = _PartBuilder(reinterpret=reinterpret, is_endless=is_endless)
    part = parts.part(resolve(writer.root, reader.root), writer.root, reader.root)
    if isinstance(part, Copy):
        check = part.check

        @within_stack(too_nested)
        def check_whole(payload: bytes) -> bytes:
            source = Decoder(payload)
            check(source)
            source.finish()
            return payload

        return check_whole
    write = part.write

    @within_stack(too_nested)
    def translate(payload: bytes) -> bytes:
        source, out = Decoder(payload), Buffer()
        write(source, out)
        source.finish()
        check_size(len(out))
        return out.taken()

    return translate


class _PartBuilder:
    """Builds the parts of types from the steps that read the writer's data into the reader's; a record's only once."""

    def __init__(self, *, reinterpret: bool, is_endless: bool) -> None:
        self._reinterpret = reinterpret
        self._is_endless = is_endless
        self._built: dict[int, Copy | Rewrite] = {}
        self._writes: dict[int, Callable[[Decoder, Buffer], None]] = {}
        self._weights: dict[str, bool] = {}
        self._nothing: dict[str, bool] = {}

    def part(self, step: Step, writer: Type, reader: Type, levels: int = 0) -> Copy | Rewrite:
        """Return the part that makes data of the writer's type data of the reader's.

        The types are that many levels below the start of the enclosing record.
        """
        if isinstance(writer, Union):
            return self._from_union(step, writer, reader, levels)
        if isinstance(reader, Union):
            at = branch_index(step, writer, reader)
            return Rewrite(branch_writer(at, writer_of(self._part(step, writer, reader.branches[at], levels))))
        return self._part(step, writer, reader, levels)

    def _part(self, step: Step, writer: Type, reader: Type, levels: int) -> Copy | Rewrite:
        match step, writer, reader:
            case ReadPrimitive(), Primitive(), Primitive():
                return _primitive(writer, reader, reinterpret=self._reinterpret)
            case ReadFixed(), Fixed(), Fixed():
                return Copy(datum_translator(writer, reader, reinterpret=self._reinterpret))
            case ReadEnum(symbols=symbols), _, Enum():
                return _enum(symbols, reader)
            case ReadArray(inner), Array(was), Array(items):
                item, is_weightless = self.part(inner, was, items, levels + 1), not has_bytes(was, self._weights)
                if isinstance(item, Copy):
                    return Copy(array_check(item.check, is_weightless=is_weightless))
                return Rewrite(array_writer(item.write, is_weightless=is_weightless))
            case ReadMap(inner), Map(was), Map(values):
                value = self.part(inner, was, values, levels + 1)
                return Copy(map_check(value.check)) if isinstance(value, Copy) else Rewrite(map_writer(value.write))
            case ReadRecord(), Record(), Record():
                return self._enter_record(step, writer, reader, levels + 1)
        raise SchemaError("$", f"no translation for {type(step).__name__}")

    def _enter_record(self, step: ReadRecord, writer: Record, reader: Record, levels: int) -> Copy | Rewrite:
        at = id(step)
        if at not in self._built:
            # While its fields are being translated, a record within itself is looked up when data get there.
            self._built[at] = Rewrite(call_later(self._writes, at))
            part = self._record(step, reader)
            self._built[at] = constant_part(part) if is_nothing(writer, self._nothing) else part
            self._writes[at] = writer_of(self._built[at])
        part = self._built[at]
        if not self._is_endless:
            return part
        if isinstance(part, Copy):
            return Copy(with_levels(part.check, levels))
        return Rewrite(with_levels(part.write, levels))

    def _from_union(self, step: Step, writer: Union, reader: Type, levels: int) -> Copy | Rewrite:
        if not isinstance(step, ReadUnion):
            raise SchemaError("$", f"a union is not read by {type(step).__name__}")
        branches: list[tuple[int | None, Copy | Rewrite]] = []
        for inner, branch in zip(step.branches, writer.branches, strict=True):
            if isinstance(inner, str):
                branches.append((None, Copy(branch_refusal(inner))))
            elif isinstance(reader, Union):
                into = branch_index(inner, branch, reader)
                branches.append((into, self._part(inner, branch, reader.branches[into], levels)))
            else:
                branches.append((None, self.part(inner, branch, reader, levels)))
        checks = [
            part.check for at, (into, part) in enumerate(branches) if into in (None, at) and isinstance(part, Copy)
        ]
        if isinstance(reader, Union) and len(checks) == len(branches):
            return Copy(union_check(checks))
        return Rewrite(
            union_writer(
                [writer_of(part) if into is None else branch_writer(into, writer_of(part)) for into, part in branches]
            )
        )

    def _record(self, step: ReadRecord, reader: Record) -> Copy | Rewrite:
        places = {field.name: i for i, field in enumerate(reader.fields)}
        parts = [
            (was.name, None, Copy(skipper(was.type)))
            if into is None
            else (was.name, places[into.name], self.part(inner, was.type, into.type))
            for inner, was, into in step.fields
        ]
        if [place for _, place, _ in parts] == list(range(len(places))):
            checks = [(name, part.check) for name, _, part in parts if isinstance(part, Copy)]
            if len(checks) == len(places):
                return Copy(record_check(checks))
        pieces = [*encoded_defaults(reader, step.defaults), b""]
        return Rewrite(record_writer(field_runs(parts, len(places)), pieces))


def _primitive(writer: Primitive, reader: Primitive, *, reinterpret: bool) -> Copy | Rewrite:
    read = datum_translator(writer, reader, reinterpret=reinterpret)
    if reader.name == "float" != writer.name:
        return Rewrite(lambda source, out: out.write_raw(pack_float(read(source))))
    if reader.name == "double" != writer.name:
        return Rewrite(lambda source, out: out.write_double(read(source)))
    # An int has the encoding of a long, and a string that of bytes.
    return Copy(read)


def _enum(symbols: tuple[str | None, ...], reader: Enum) -> Copy | Rewrite:
    into = symbol_places(symbols, reader)

    def read(source: Decoder) -> int:
        place = into[source.read_index(len(into), "a symbol")]
        if place is None:
            raise PayloadError(f"a symbol of {reader.name}", f"another before byte {source.position}")
        return place

    if all(place in (None, at) for at, place in enumerate(into)):
        return Copy(read)
    return Rewrite(lambda source, out: out.write_long(read(source)))


class Copy(NamedTuple):
    """A part of a payload that has the same bytes under both schemas, and is copied."""

    # Reads and checks the bytes.
    check: Check


class Rewrite(NamedTuple):
    """A part of a payload that has other bytes under the reader's schema."""

    # Reads and checks the writer's bytes, and appends the reader's.
    write: Write


def writer_of(part: Copy | Rewrite) -> Write:
    """Return the function that reads and checks a part and appends it."""
    if isinstance(part, Rewrite):
        return part.write
    check = part.check

    def write(source: Decoder, out: Buffer) -> None:
        start = source.position
        check(source)
        out.write_raw(source.slice(start, source.position))

    return write


def constant_part(part: Copy | Rewrite) -> Copy | Rewrite:
    """Return a part for data without bytes: they always become the same bytes, which are worked out only once."""
    known: list[bytes] = []

    def write(_source: Decoder, out: Buffer) -> None:
        if not known:
            first = Buffer()
            writer_of(part)(Decoder(b""), first)
            check_size(len(first))
            known.append(first.taken())
        out.write_raw(known[0])

    return Copy(lambda _source: None) if isinstance(part, Copy) else Rewrite(write)


def branch_writer(at: int, write: Write) -> Write:
    """Return a function that appends the index of a union's branch, then the branch."""

    def write_branch(source: Decoder, out: Buffer) -> None:
        out.write_long(at)
        write(source, out)

    return write_branch


def union_writer(writes: Sequence[Write]) -> Write:
    """Return a function that reads the index of a writer's branch and appends the branch."""
    return lambda source, out: writes[source.read_index(len(writes), "a branch")](source, out)


def array_writer(write: Write, *, is_weightless: bool) -> Write:
    """Return a function that appends an array, from that for an item, which may have no bytes."""

    def write_items(source: Decoder, out: Buffer) -> None:
        at = 0
        try:
            for count in blocks(source, is_weightless=is_weightless):
                out.write_long(count)
                for _ in range(count):
                    write(source, out)
                    check_size(len(out))
                    at += 1
        except MessageError as error:
            error.below(f"/{at}")
            raise
        out.write_long(0)

    return write_items


def map_writer(write: Write) -> Write:
    """Return a function that appends a map, from that for a value; no name may occur twice."""

    def write_entries(source: Decoder, out: Buffer) -> None:
        names: set[str] = set()
        name = ""
        try:
            for count in blocks(source):
                out.write_long(count)
                for _ in range(count):
                    name = source.read_string()
                    check_name(name, names)
                    names.add(name)
                    out.write_string(name)
                    write(source, out)
                    check_size(len(out))
        except MessageError as error:
            error.below(f"/{escape(name)}")
            raise
        out.write_long(0)

    return write_entries


def field_runs(parts: Sequence[tuple[str, int | None, Copy | Rewrite]], end: int) -> list[tuple[int, Write]]:
    """Return functions that write a record's fields, each with the place of what it writes in the reader's record.

    `end` is the place of fields that the reader lacks. Consecutive fields that are copied are copied at once.
    """
    runs: list[tuple[int, Write]] = []
    run: list[tuple[str, Check]] = []
    start = 0
    for name, place, part in [*parts, ("", None, None)]:
        if run and (place != start + len(run) or not isinstance(part, Copy)):
            runs.append((start, writer_of(Copy(record_check(run)))))
            run = []
        if isinstance(part, Rewrite) and place is not None:
            runs.append((place, _with_path(name, part.write)))
        elif isinstance(part, Copy) and place is not None:
            start = start if run else place
            run.append((name, part.check))
        elif isinstance(part, Copy):
            runs.append((end, _skip_writer(record_check([(name, part.check)]))))
    return runs


def _skip_writer(check: Check) -> Write:
    def write(source: Decoder, _out: Buffer) -> None:
        check(source)

    return write


def _with_path(name: str, write: Write) -> Write:
    def write_named(source: Decoder, out: Buffer) -> None:
        try:
            write(source, out)
        except MessageError as error:
            error.below(f"/{escape(name)}")
            raise

    return write_named


def record_writer(runs: Sequence[tuple[int, Write]], defaults: Sequence[bytes]) -> Write:
    """Return a function that appends a record: `runs` write their places, and defaults fill all others."""
    by_default = sum(map(len, defaults))

    def write(source: Decoder, out: Buffer) -> None:
        pieces = list(defaults)
        size = by_default
        for place, write_run in runs:
            piece = Buffer()
            write_run(source, piece)
            size += len(piece)
            check_size(size)
            pieces[place] = piece.taken()
        for piece_ in pieces:
            out.write_raw(piece_)

    return write


def check_size(size: int) -> None:
    """Raise `PayloadError` for an absurd number of bytes under the reader's schema."""
    # A default can be long, and an item of few bytes can lack many fields.
    if size > MAX_TRANSLATED:
        raise PayloadError(f"at most {MAX_TRANSLATED} bytes under the reader's schema", "more")


def branch_index(step: Step, writer: Type, reader: Union) -> int:
    """Return the index of the branch of the reader's union that a step reads into; a fixed is found by its name."""
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


def symbol_places(symbols: Iterable[str | None], reader: Enum) -> list[int | None]:
    """Return the indexes of a writer's symbols in the reader's enum; None for those that it lacks."""
    places = {symbol: i for i, symbol in enumerate(reader.symbols)}
    return [None if symbol is None else places[symbol] for symbol in symbols]


def branch_refusal(reason: str) -> Callable[[Decoder], Any]:
    """Return a function that raises `PayloadError` for a branch that the reader cannot read, with the reason."""

    def read(_source: Decoder) -> Any:
        raise PayloadError("a branch that the reader's schema has", shown(reason))

    return read


def datum_translator(
    writer: Primitive | Fixed, reader: Primitive | Fixed, *, reinterpret: bool
) -> Callable[[Decoder], Any]:
    """Return a function that reads a writer's primitive or fixed, checks it, and returns it as the reader's datum."""
    read = datum_reader(writer)
    guess = refused_guess(writer, reader, reinterpret=reinterpret)
    if guess is not None:
        return _then(read, _refusal(*guess))
    if isinstance(writer, Primitive) and isinstance(reader, Primitive):
        promote = _PROMOTE.get((writer.name, reader.name))
        read = read if promote is None else _then(read, promote)
    check = None if logical_type(writer) else value_check(reader)
    return read if check is None else _then(read, _with_check(check))


def refused_guess(writer: Primitive | Fixed, reader: Primitive | Fixed, *, reinterpret: bool) -> tuple[str, str] | None:
    """Return why reading the writer's type as the reader's would be a guess, as what was expected and what came; or None.

    With `reinterpret`, only what the writer's logical type says to be something else is refused.
    """
    was, now = logical_type(writer), logical_type(reader)
    if reinterpret and was is None:
        return None
    if now and not was:
        return str(now), f"a plain {branch_name(writer)}: nothing says that it is one"
    if (writer.name, reader.name) == ("bytes", "string"):
        return "a string", f"a {was}, whose bytes are no text" if was else "bytes: nothing says that they are text"
    return None


def _refusal(expected: str, got: str) -> Callable[[Any], Any]:
    def refuse(_value: Any) -> Any:
        raise PayloadError(expected, got)

    return refuse


def _with_check(check: Callable[[Any], None]) -> Callable[[Any], Any]:
    def passed(value: Any) -> Any:
        check(value)
        return value

    return passed


def _then(read: Callable[[Decoder], Any], turn: Callable[[Any], Any]) -> Callable[[Decoder], Any]:
    return lambda source: turn(read(source))


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise PayloadError("UTF-8", f"byte 0x{raw[error.start]:02x}") from error


def _single(value: int) -> float:
    """Return the 32-bit float nearest to an integer, rounded once: by way of a double it would be rounded twice."""
    shift = value.bit_length() - _SINGLE_BITS
    if shift <= 0:
        return float(value)
    whole, rest = divmod(abs(value), 1 << shift)
    half = 1 << (shift - 1)
    whole += rest > half or (rest == half and whole % 2)
    return math.copysign(whole << shift, value)


_SINGLE_BITS: Final = 24
_PROMOTE: Final[dict[tuple[str, str], Callable[[Any], Any]]] = {
    ("int", "float"): _single,
    ("long", "float"): _single,
    ("int", "double"): float,
    ("long", "double"): float,
    ("string", "bytes"): str.encode,
    ("bytes", "string"): _text,
}

"""Schemas in a pair: what the writer's wrote, as the reader's would have written it.

The steps of `resolution.resolve` become functions that check the writer's bytes and append the reader's:
aliases, promotions and defaults are applied, and fields that the reader lacks are checked and left out.
Where the two schemas encode a value alike, its bytes are copied, and often those of whole payloads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdcavro.avro.binary import pack_float, too_nested
from cdcavro.avro.buffer import Buffer
from cdcavro.avro.decoder import Decoder
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
from cdcavro.avro.skip import entering, entries_check, items_check, later, record_check, skipper, union_check
from cdcavro.avro.translation.datum import branch_index, datum_translator, refusing, symbol_places
from cdcavro.avro.translation.part import (
    Other,
    Same,
    bounded,
    branches_write,
    entries_write,
    field_runs,
    fields_write,
    indexed,
    items_write,
    of_nothing,
    written,
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
    has_bytes,
    is_nothing,
    recursion,
    within_stack,
)
from cdcavro.avro.types import too_nested as schema_too_nested
from cdcavro.errors import PayloadError, SchemaError

if TYPE_CHECKING:
    from collections.abc import Callable

    from cdcavro.avro.schema import Schema


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
    parts = _Parts(reinterpret=reinterpret, is_endless=is_endless)
    part = parts.part(resolve(writer.root, reader.root), writer.root, reader.root)
    if isinstance(part, Same):
        check = part.check

        @within_stack(too_nested)
        def checked(payload: bytes) -> bytes:
            source = Decoder(payload)
            check(source)
            source.finish()
            return payload

        return checked
    write = part.write

    @within_stack(too_nested)
    def translated(payload: bytes) -> bytes:
        source, out = Decoder(payload), Buffer()
        write(source, out)
        source.finish()
        return bounded(out).taken()

    return translated


class _Parts:
    """Builds the parts of types from the steps that read the writer's into the reader's, that of a record once."""

    def __init__(self, *, reinterpret: bool, is_endless: bool) -> None:
        self._reinterpret = reinterpret
        self._is_endless = is_endless
        self._made: dict[int, Same | Other] = {}
        self._writes: dict[int, Callable[[Decoder, Buffer], None]] = {}
        self._weights: dict[str, bool] = {}
        self._nothing: dict[str, bool] = {}

    def part(self, step: Step, writer: Type, reader: Type, levels: int = 0) -> Same | Other:
        """Return the part that makes data of the writer's type data of the reader's.

        The types are that many levels below the start of the enclosing record.
        """
        if isinstance(writer, Union):
            return self._from_union(step, writer, reader, levels)
        if isinstance(reader, Union):
            at = branch_index(step, writer, reader)
            return Other(indexed(at, written(self._part(step, writer, reader.branches[at], levels))))
        return self._part(step, writer, reader, levels)

    def _part(self, step: Step, writer: Type, reader: Type, levels: int) -> Same | Other:
        match step, writer, reader:
            case ReadPrimitive(), Primitive(), Primitive():
                return _primitive(writer, reader, reinterpret=self._reinterpret)
            case ReadFixed(), Fixed(), Fixed():
                return Same(datum_translator(writer, reader, reinterpret=self._reinterpret))
            case ReadEnum(symbols=symbols), _, Enum():
                return _enum(symbols, reader)
            case ReadArray(inner), Array(was), Array(items):
                item, is_weightless = self.part(inner, was, items, levels + 1), not has_bytes(was, self._weights)
                if isinstance(item, Same):
                    return Same(items_check(item.check, is_weightless=is_weightless))
                return Other(items_write(item.write, is_weightless=is_weightless))
            case ReadMap(inner), Map(was), Map(values):
                value = self.part(inner, was, values, levels + 1)
                return (
                    Same(entries_check(value.check)) if isinstance(value, Same) else Other(entries_write(value.write))
                )
            case ReadRecord(), Record(), Record():
                return self._entered(step, writer, reader, levels + 1)
        raise SchemaError("$", f"no translation for {type(step).__name__}")

    def _entered(self, step: ReadRecord, writer: Record, reader: Record, levels: int) -> Same | Other:
        at = id(step)
        if at not in self._made:
            # While its fields are being translated, a record within itself is looked up when data get there.
            self._made[at] = Other(later(self._writes, at))
            made = self._record(step, reader)
            self._made[at] = of_nothing(made) if is_nothing(writer, self._nothing) else made
            self._writes[at] = written(self._made[at])
        part = self._made[at]
        if not self._is_endless:
            return part
        if isinstance(part, Same):
            return Same(entering(part.check, levels))
        return Other(entering(part.write, levels))

    def _from_union(self, step: Step, writer: Union, reader: Type, levels: int) -> Same | Other:
        if not isinstance(step, ReadUnion):
            raise SchemaError("$", f"a union is not read by {type(step).__name__}")
        branches: list[tuple[int | None, Same | Other]] = []
        for inner, branch in zip(step.branches, writer.branches, strict=True):
            if isinstance(inner, str):
                branches.append((None, Same(refusing(inner))))
            elif isinstance(reader, Union):
                into = branch_index(inner, branch, reader)
                branches.append((into, self._part(inner, branch, reader.branches[into], levels)))
            else:
                branches.append((None, self.part(inner, branch, reader, levels)))
        checks = [
            part.check for at, (into, part) in enumerate(branches) if into in (None, at) and isinstance(part, Same)
        ]
        if isinstance(reader, Union) and len(checks) == len(branches):
            return Same(union_check(checks))
        return Other(
            branches_write([written(part) if into is None else indexed(into, written(part)) for into, part in branches])
        )

    def _record(self, step: ReadRecord, reader: Record) -> Same | Other:
        places = {field.name: i for i, field in enumerate(reader.fields)}
        parts = [
            (was.name, None, Same(skipper(was.type)))
            if into is None
            else (was.name, places[into.name], self.part(inner, was.type, into.type))
            for inner, was, into in step.fields
        ]
        if [place for _, place, _ in parts] == list(range(len(places))):
            checks = [(name, part.check) for name, _, part in parts if isinstance(part, Same)]
            if len(checks) == len(places):
                return Same(record_check(checks))
        pieces = [*encoded_defaults(reader, step.defaults), b""]
        return Other(fields_write(field_runs(parts, len(places)), pieces))


def _primitive(writer: Primitive, reader: Primitive, *, reinterpret: bool) -> Same | Other:
    read = datum_translator(writer, reader, reinterpret=reinterpret)
    if reader.name == "float" != writer.name:
        return Other(lambda source, out: out.write_raw(pack_float(read(source))))
    if reader.name == "double" != writer.name:
        return Other(lambda source, out: out.write_double(read(source)))
    # An int has the encoding of a long, and a string that of bytes.
    return Same(read)


def _enum(symbols: tuple[str | None, ...], reader: Enum) -> Same | Other:
    into = symbol_places(symbols, reader)

    def read(source: Decoder) -> int:
        place = into[source.read_index(len(into), "a symbol")]
        if place is None:
            raise PayloadError(f"a symbol of {reader.name}", f"another before byte {source.position}")
        return place

    if all(place in (None, at) for at, place in enumerate(into)):
        return Same(read)
    return Other(lambda source, out: out.write_long(read(source)))

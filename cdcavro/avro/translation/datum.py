"""Single data of a writer's schema as data of the reader's: promoted, checked, and never guessed."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from cdcavro.avro.logical import logical_type, value_check
from cdcavro.avro.resolution import ReadArray, ReadEnum, ReadFixed, ReadMap, ReadPrimitive, ReadRecord, Step
from cdcavro.avro.skip import datum_reader
from cdcavro.avro.types import Enum, Fixed, Primitive, Type, Union, branch_name, is_same_name
from cdcavro.errors import PayloadError, SchemaError, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from cdcavro.avro.decoder import Decoder


def branch_index(step: Step, writer: Type, reader: Union) -> int:
    """Return the index of the branch that resolution chose: by what the step reads into; for a fixed, by its name."""
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


def refusing(reason: str) -> Callable[[Decoder], Any]:
    """Return a function that raises `PayloadError` for a branch that the reader cannot read for a reason."""

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
        return _turned(read, _refusal(*guess))
    if isinstance(writer, Primitive) and isinstance(reader, Primitive):
        promote = _PROMOTE.get((writer.name, reader.name))
        read = read if promote is None else _turned(read, promote)
    check = None if logical_type(writer) else value_check(reader)
    return read if check is None else _turned(read, _passed(check))


def refused_guess(writer: Primitive | Fixed, reader: Primitive | Fixed, *, reinterpret: bool) -> tuple[str, str] | None:
    """Return what would be guessed if the reader's type read the writer's, as what is expected and what came.

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


def _passed(check: Callable[[Any], None]) -> Callable[[Any], Any]:
    def passed(value: Any) -> Any:
        check(value)
        return value

    return passed


def _turned(read: Callable[[Decoder], Any], turn: Callable[[Any], Any]) -> Callable[[Decoder], Any]:
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

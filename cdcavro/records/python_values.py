"""Python values: those of primitive and fixed types, to Avro and back and to JSON and back, and those of defaults.

A value that its type cannot hold exactly is refused. The JSON of a value is: a number for int, long, float
and double, except the strings NaN, Infinity and -Infinity; base64 for bytes; a string with the digits of a
decimal, to its scale; an ISO 8601 string for dates and times, with a final `Z` for an instant.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import re
from base64 import b64encode
from decimal import Context, Decimal, Inexact, InvalidOperation
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cdcavro.avro.binary import nearest_float
from cdcavro.avro.defaults import default_branch, is_usable
from cdcavro.avro.types import MAX_DIGITS, Array, Enum, Fixed, Map, Primitive, Record, Type, Union, value_check
from cdcavro.errors import PayloadError, SchemaError, StructureError, shown
from cdcavro.exact.jsontext import base64_bytes, kind
from cdcavro.exact.numbers import ExactNumber, minimal_bytes
from cdcavro.records.shapes import Key, field_names, maker, meaning

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cdcavro.avro.types import Logical

_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_LOCAL_EPOCH: Final = dt.datetime(1970, 1, 1)  # noqa: DTZ001  a local time has no zone
_EPOCH_DAY: Final = _EPOCH.toordinal()
_MICROSECOND: Final = dt.timedelta(microseconds=1)
_FIRST: Final = (dt.datetime.min.replace(tzinfo=dt.UTC) - _EPOCH) // _MICROSECOND
_LAST: Final = (dt.datetime.max.replace(tzinfo=dt.UTC) - _EPOCH) // _MICROSECOND
_DIGITS: Final = re.compile(r"-?[0-9]+(?:\.[0-9]+)?", re.ASCII)
_SPECIAL: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_LONGEST_DOUBLE: Final = 1100
_EXACT: Final = Context(prec=2 * MAX_DIGITS, traps=[Inexact, InvalidOperation])
_UNITS: Final = {"millis": 1000, "micros": 1}


class Scalar(NamedTuple):
    """The conversions of a type's values; None stands for no conversion."""

    # From a value to its Avro datum, UTF-8 for a string; raises `StructureError`.
    lower: Callable[[Any], Any]
    # From a datum that `types.value_check` accepts to the value.
    lift: Callable[[Any], Any] | None = None
    # From a value that `lower` accepts to JSON.
    show: Callable[[Any], Any] | None = None
    # From JSON to a value; raises `StructureError`.
    parse: Callable[[Any], Any] | None = None


def scalar(declared: Primitive | Fixed) -> Scalar:
    """Return the conversions of a type's values. Raises `SchemaError` for a fixed without a logical type."""
    logical = meaning(declared)
    if logical is None and isinstance(declared, Primitive):
        return _PLAIN[declared.name]
    if logical is None:
        raise SchemaError(declared.name, "a fixed has a class of its own")
    if logical.name == "decimal":
        return _decimal(logical, declared.size if isinstance(declared, Fixed) else None)
    return _TIMES[logical.name]


def wrong_type(expected: str, value: Any) -> StructureError:
    """Return the error for a value of the wrong Python type."""
    return StructureError(expected, "None" if value is None else type(value).__name__)


def _instance_check(wanted: type, expected: str) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        if type(value) is not wanted:
            raise wrong_type(expected, value)
        return value

    return check


def _integer_check(bits: int) -> Callable[[Any], Any]:
    least, most = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1

    def check(value: Any) -> Any:
        if type(value) is not int:
            raise wrong_type(f"an integer of at most {bits} bits", value)
        if not least <= value <= most:
            raise StructureError(f"an integer of at most {bits} bits", f"one of {value.bit_length() + 1}")
        return value

    return check


def encode_text(value: Any) -> bytes:
    """Return a string as UTF-8 bytes. Raises `StructureError`."""
    if type(value) is not str:
        raise wrong_type("a string", value)
    try:
        return value.encode()
    except UnicodeEncodeError as error:
        raise StructureError("Unicode text", f"a lone surrogate at character {error.start}") from error


def _check_single(value: Any) -> Any:
    if type(value) is not float:
        raise wrong_type("a float of 32 bits", value)
    if math.isfinite(value) and not _is_single(value):
        raise StructureError("a float of 32 bits", f"{value!r}, which needs 64")
    return value


def _is_single(value: float) -> bool:
    try:
        return nearest_float(value) == value
    except OverflowError:
        return False


def _show_float(value: float) -> Any:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _parse_float(value: Any) -> float:
    """Return a JSON number as a double if it states one: by its shortest digits or all of them, in any notation."""
    if type(value) is float:
        return value
    if type(value) is str and value in _SPECIAL:
        return _SPECIAL[value]
    digits = value.text if type(value) is ExactNumber else str(value) if type(value) is int else ""
    if not digits:
        raise StructureError("number", kind(value))
    double = float(digits) if len(digits) <= _LONGEST_DOUBLE else math.inf
    if not math.isfinite(double) or Decimal(digits) not in (Decimal(repr(double)), Decimal(double)):
        raise StructureError("a number that a double holds", shown(digits))
    return double


def _json_check(wanted: type, name: str) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        if type(value) is not wanted:
            raise StructureError(name, kind(value))
        return value

    return check


_parse_text: Final = _json_check(str, "string")


def show_base64(value: bytes) -> str:
    """Return bytes in base64, their JSON form."""
    return b64encode(value).decode()


def parse_base64(value: Any) -> bytes:
    """Return the bytes in a base64 string. Raises `StructureError`."""
    raw = base64_bytes(_parse_text(value))
    if raw is None:
        raise StructureError("base64", shown(value))
    return raw


def _decimal(declared: Logical, size: int | None) -> Scalar:
    least = 10**declared.precision
    scale = declared.scale

    def lower(value: Any) -> bytes:
        if type(value) is not Decimal:
            raise wrong_type(str(declared), value)
        unscaled = _unscaled(value, scale)
        if unscaled is None or not -least < unscaled < least:
            raise StructureError(str(declared), shown(value))
        return minimal_bytes(unscaled) if size is None else unscaled.to_bytes(size, "big", signed=True)

    def lift(raw: bytes) -> Decimal:
        unscaled = int.from_bytes(raw, "big", signed=True)
        return Decimal(unscaled).scaleb(-scale, _EXACT)

    def parse(value: Any) -> Decimal:
        digits = _parse_text(value)
        if len(digits) > MAX_DIGITS + 3 or not _DIGITS.fullmatch(digits):
            raise StructureError(f"the digits of a {declared}", shown(digits))
        return Decimal(digits)

    return Scalar(lower, lift, lambda value: format(lift(lower(value)), "f"), parse)


def _unscaled(value: Decimal, scale: int) -> int | None:
    """Return a decimal times ten to the power of the scale; None if that is no integer, or an absurdly long one."""
    if not value.is_finite() or value.adjusted() > MAX_DIGITS:
        return None
    try:
        shifted = value.scaleb(scale, _EXACT)
    except (Inexact, InvalidOperation):
        return None
    whole = int(shifted)
    return whole if whole == shifted else None


def _lower_date(value: Any) -> int:
    if type(value) is not dt.date:
        raise wrong_type("a date", value)
    return value.toordinal() - _EPOCH_DAY


def _lift_date(days: int) -> dt.date:
    return dt.date.fromordinal(days + _EPOCH_DAY)


def _parse_iso(convert: Callable[[str], Any], name: str, *, is_instant: bool = False) -> Callable[[Any], Any]:
    """Return a function that parses ISO text, and only the form that is written, so that each value has one text."""
    end = "Z" if is_instant else ""

    def parse(value: Any) -> Any:
        text = _parse_text(value)
        try:
            moment = convert(text.removesuffix(end) + ("+00:00" if is_instant else ""))
        except ValueError:
            moment = None
        if moment is None or _iso(moment) != text:
            raise StructureError(name, shown(text))
        return moment

    return parse


def _iso(value: Any) -> str:
    text: str = value.isoformat()
    return text.removesuffix("+00:00") + "Z" if text.endswith("+00:00") else text


def _count(micros: int, unit: int, value: Any) -> int:
    if micros % unit:
        raise StructureError("whole milliseconds", str(value))
    return micros // unit


def _time(unit: int) -> Scalar:
    def lower(value: Any) -> int:
        if type(value) is not dt.time or value.tzinfo is not None:
            raise wrong_type("a time without a zone", value)
        seconds = value.hour * 3600 + value.minute * 60 + value.second
        return _count(seconds * 1_000_000 + value.microsecond, unit, value)

    def lift(count: int) -> dt.time:
        return (_LOCAL_EPOCH + count * unit * _MICROSECOND).time()

    return Scalar(lower, lift, dt.time.isoformat, _parse_iso(dt.time.fromisoformat, "a time"))


def _timestamp(unit: int, *, is_instant: bool) -> Scalar:
    epoch = _EPOCH if is_instant else _LOCAL_EPOCH
    expected = "a datetime with a zone" if is_instant else "a datetime without a zone"

    def lower(value: Any) -> int:
        if type(value) is not dt.datetime or (value.utcoffset() is not None) is not is_instant:
            raise (
                wrong_type(expected, value) if type(value) is not dt.datetime else StructureError(expected, str(value))
            )
        # A local time may have a tzinfo, one without an offset.
        moment = value if is_instant else value.replace(tzinfo=None)
        micros = (moment - epoch) // _MICROSECOND
        if not _FIRST <= micros <= _LAST:
            raise StructureError("an instant of the years 1 to 9999", shown(value))
        return _count(micros, unit, value)

    def lift(count: int) -> dt.datetime:
        return epoch + dt.timedelta(microseconds=count * unit)

    parse = _parse_iso(dt.datetime.fromisoformat, expected, is_instant=is_instant)
    return Scalar(lower, lift, lambda value: _iso(lift(lower(value))), parse)


_PLAIN: Final[dict[str, Scalar]] = {
    "null": Scalar(_instance_check(type(None), "None"), parse=_json_check(type(None), "null")),
    "boolean": Scalar(_instance_check(bool, "a bool"), parse=_json_check(bool, "boolean")),
    "int": Scalar(_integer_check(32), parse=_json_check(int, "integer")),
    "long": Scalar(_integer_check(64), parse=_json_check(int, "integer")),
    "float": Scalar(_check_single, show=_show_float, parse=_parse_float),
    "double": Scalar(_instance_check(float, "a float"), show=_show_float, parse=_parse_float),
    "bytes": Scalar(_instance_check(bytes, "bytes"), show=show_base64, parse=parse_base64),
    "string": Scalar(encode_text, parse=_parse_text),
}
_TIMES: Final[dict[str, Scalar]] = (
    {"date": Scalar(_lower_date, _lift_date, dt.date.isoformat, _parse_iso(dt.date.fromisoformat, "a date"))}
    | {f"time-{name}": _time(unit) for name, unit in _UNITS.items()}
    | {f"timestamp-{name}": _timestamp(unit, is_instant=True) for name, unit in _UNITS.items()}
    | {f"local-timestamp-{name}": _timestamp(unit, is_instant=False) for name, unit in _UNITS.items()}
)


def default_maker(declared: Type, value: Any, classes: Mapping[Key, type]) -> Callable[[], Any]:
    """Return a function that returns a default, a new object each time if it is mutable. Raises `SchemaError`."""
    if not is_usable(declared, value):
        raise SchemaError("$", f"the default {shown(json.dumps(value))} is no value of its type")
    default = default_value(declared, value, classes)
    if isinstance(default, (list, dict)) or type(default) in classes.values():
        return lambda: default_value(declared, value, classes)
    return lambda: default


def default_value(declared: Type, value: Any, classes: Mapping[Key, type]) -> Any:
    """Return the Python value of a default, which is in the form of a schema's JSON.

    Raises `SchemaError` for one that Python cannot represent, such as a date beyond the year 9999.
    """
    match declared:
        case Union():
            return default_value(default_branch(declared, value), value, classes)
        case Array(items):
            return [default_value(items, item, classes) for item in value]
        case Map(values):
            return {name: default_value(values, item, classes) for name, item in value.items()}
        case Record():
            cls = classes[declared.name]
            defaults = [
                default_value(field.type, value.get(field.name, field.default), classes) for field in declared.fields
            ]
            return maker(cls, field_names(cls))(defaults)
        case Enum():
            return classes[declared.name](value)
        case Fixed() if meaning(declared) is None:
            return classes[declared.name](value.encode("latin-1"))
        case Fixed() | Primitive():
            return default_scalar(declared, value)
    raise SchemaError("$", f"{type(declared).__name__} is no type")


def default_scalar(declared: Primitive | Fixed, value: Any) -> Any:
    """Return the default of a primitive, or of a decimal in a fixed. Raises `SchemaError`."""
    name = declared.name if isinstance(declared, Primitive) else "bytes"
    datum = value.encode("latin-1") if name == "bytes" else float(value) if name in ("float", "double") else value
    lift, check = scalar(declared).lift, value_check(declared)
    try:
        if check is not None:
            check(datum)
        if name == "float":
            # The schema states it in decimal digits; the value is the nearest 32-bit float.
            return nearest_float(datum)
        return datum if lift is None else lift(datum)
    except OverflowError as error:
        raise SchemaError(declared.name, "the default is no float of 32 bits") from error
    except PayloadError as error:
        raise SchemaError(declared.name, f"the default: {error.reason}") from error

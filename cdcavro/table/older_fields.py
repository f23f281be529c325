"""Older fields of a column, from which a newer field of another type took over, and their values in its type.

Rows that were written before a column changed its type have their value in the older field, and the
column's own field is null there. `heirs` says which field belongs to which, `is_fillable` whether values of
one type can be values of the other, and `filled_value` what a value is in the newer type: exactly, or None.

* A column may come back to a type that it had, and has its values of then.
* A number becomes another number if that is the same number; a double is the number that its shortest
  text says.
* An integer or a decimal becomes its digits, a decimal with all of its places, as the server writes it into
  a character column. A text becomes a number if it is the plain text of one, a date if it is that of a date.
* Bytes become the text that they are in UTF-8, if they are one.
* A date becomes the local time of its midnight, and a local time at midnight a date; true and false are 1
  and 0.
* Everything else stays where it is: a local time is an instant in one zone only, and the text of a double
  or of a time is spelled in several ways.

So a reader of a part of a version (its envelope, row or key) reads the older fields of its columns as well.

Defaults of columns are here, too: constants and expressions of statements, as SQL text and as Avro data. A constant is the default of an Avro field, as the server fills it into old rows, where the field's type can carry it
exactly, and in an attribute of the column it is SQL text.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import re
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, Final

from cdcavro.exact.jsontext import ABSENT
from cdcavro.exact.numbers import ExactNumber, is_number, number, number_text, plain_text, unscaled
from cdcavro.exact.sqltype import parse_sql_type
from cdcavro.table.columns.column_type import column_type_names
from cdcavro.table.columns.readers import MISFIT
from cdcavro.table.columns.type_names import MAX_PRECISION
from cdcavro.table.ddl.steps import ColumnDef, Constant, Expression
from cdcavro.table.table_schema import ATTRIBUTE, as_schema, attributes_of, column_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from cdcavro.avro.schema import Schema
    from cdcavro.change.model import Rule
    from cdcavro.table.columns.column_type import ColumnType
    from cdcavro.table.ddl.cursor import Dialect
    from cdcavro.table.table_schema import TableSchema

ENVELOPE: Final = "envelope"
ROW: Final = "row"
KEY_PART: Final = "key"
NUMBER_TEXT: Final = r"-?(0|[1-9][0-9]{0,19})([.][0-9]{1,18})?"
DATE_TEXT: Final = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
WHOLE: Final = frozenset({"int", "long"})
EXACT_NUMBERS: Final = WHOLE | {"decimal"}
NUMBERS: Final = EXACT_NUMBERS | {"double"}
LOCAL: Final = "local-timestamp-micros"
_NUMBER: Final = re.compile(NUMBER_TEXT, re.ASCII)
_DATE: Final = re.compile(DATE_TEXT, re.ASCII)
_BITS: Final = {"int": 32, "long": 64}
_WIDE: Final = Context(prec=400, rounding=ROUND_HALF_UP)


def part_of(schema: TableSchema, part: str) -> Schema:
    """Return the schema of a part of a version. Raises `ValueError` for a key that is missing, and for other parts."""
    parts = {ENVELOPE: schema.envelope, ROW: schema.row, KEY_PART: schema.key}
    if part not in parts:
        raise ValueError(f"a part is {', '.join(parts)}, not {part}")
    avro_schema = parts[part]
    if avro_schema is None:
        raise ValueError(f"{schema.full_name} has no key in version {schema.version}")
    return avro_schema


def reader_of(schema: TableSchema, part: str) -> Schema:
    """Return the schema that a part is read with: that of a key with the older fields of the key columns."""
    whole, fields = part_of(schema, part), schema.record["fields"]
    if part != KEY_PART or not heirs((field["name"], field) for field in fields):
        return whole
    older = [field for field in fields if "until" in attributes_of(field) and column_name(field) in schema.key_names]
    declared = json.loads(whole.json)
    return as_schema(declared | {"fields": declared["fields"] + older})


def heirs(fields: Iterable[tuple[str, Mapping[str, Any]]]) -> dict[str, tuple[str, ...]]:
    """Return for each field that took over from others their names, newest first.

    `fields` are the fields of a row, each with its name and its attributes.

    >>> heirs([("n_x_2", {"cdc": {"column": "n"}}), ("n", {"cdc": {"column": "n", "until": 3}})])
    {'n_x_2': ('n',)}
    """
    present: dict[str, str] = {}
    older: dict[str, list[tuple[int, str]]] = {}
    for name, attributes in fields:
        cdc = attributes.get(ATTRIBUTE)
        column, until = (cdc.get("column"), cdc.get("until")) if isinstance(cdc, dict) else (None, None)
        # A schema that this package did not make may have anything as its attributes.
        column = column if isinstance(column, str) else name
        if type(until) is int:
            older.setdefault(column, []).append((until, name))
        else:
            present[column] = name
    return {
        present[column]: tuple(name for _, name in sorted(ended, reverse=True))
        for column, ended in older.items()
        if column in present
    }


# Beyond 2^53, a double's shortest text is not the integer that it is, and readers differ in which of the two they take.
MAX_SURE: Final = 2**53


def kind_of(avro: Any) -> str:
    """Return what decides how a column's values convert: the logical type of its Avro type, or else the type.

    >>> kind_of({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}), kind_of("long")
    ('decimal', 'long')
    """
    return str(avro.get("logicalType", avro.get("type"))) if isinstance(avro, dict) else str(avro)


def is_fillable(old: Any, new: Any) -> bool:
    """Return whether values of one Avro type, as a JSON value, may be values of another."""
    return _rule(kind_of(old), kind_of(new)) is not None


def filled_value(value: Any, old: Any, new: Any) -> Any:
    """Return a Python value of one Avro type as one of another; None if it is not exactly that.

    >>> decimal = {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 1}
    >>> filled_value(7, "int", decimal), filled_value(Decimal("7.0"), decimal, "int")
    (Decimal('7.0'), 7)
    >>> print(filled_value(7.25, "double", decimal))
    None
    """
    rule = _rule(kind_of(old), kind_of(new))
    return None if rule is None or value is None else rule(value, new)


def _rule(old: str, new: str) -> Callable[[Any, Any], Any] | None:
    if old in NUMBERS and new in NUMBERS:
        return _number
    if old == new:
        return lambda value, _: value
    if old == "boolean" and new in EXACT_NUMBERS:
        return lambda value, declared: _number(int(value), declared)
    if old in EXACT_NUMBERS and new == "boolean":
        return lambda value, _: bool(value) if value in (0, 1) else None
    if new == "string":
        return _TEXTS.get(old)
    if old == "string":
        return _parse_number if new in NUMBERS else _date if new == "date" else None
    return _MIDNIGHTS.get((old, new))


def _number(value: Any, new: Any) -> Any:
    kind = kind_of(new)
    if isinstance(value, float):
        if not math.isfinite(value):
            return value if new == "double" else None
        if kind != "double" and abs(value) > MAX_SURE:
            return None
        value = repr(value)
    elif kind == "double" and not isinstance(value, str) and abs(value) > MAX_SURE:
        return None
    exact = Decimal(value)
    if kind == "double":
        nearest = float(exact)
        return nearest if math.isfinite(nearest) and Decimal(repr(nearest)) == exact else None
    scale, precision = (new.get("scale", 0), new["precision"]) if kind == "decimal" else (0, MAX_PRECISION)
    try:
        quantized = exact.quantize(Decimal(1).scaleb(-scale), context=_WIDE)
    except InvalidOperation:
        return None
    if quantized != exact or abs(quantized).scaleb(scale, _WIDE) >= 10**precision:
        return None
    if kind == "decimal":
        return quantized
    most = 2 ** (_BITS[kind] - 1)
    return int(quantized) if -most <= quantized < most else None


def _parse_number(value: Any, new: Any) -> Any:
    is_number = isinstance(value, str) and _NUMBER.fullmatch(value) is not None
    return _number(value, new) if is_number else None


def _date(value: Any, _: Any) -> dt.date | None:
    try:
        return dt.date.fromisoformat(value) if isinstance(value, str) and _DATE.fullmatch(value) else None
    except ValueError:
        return None


def _utf8(value: Any, _: Any) -> str | None:
    try:
        return bytes(value).decode()
    except UnicodeDecodeError:
        return None


def _midnight(value: Any, _: Any) -> dt.datetime | None:
    # A local time has no zone; a day that Python cannot hold is read as a number.
    return dt.datetime(value.year, value.month, value.day) if isinstance(value, dt.date) else None  # noqa: DTZ001


def _day(value: Any, _: Any) -> dt.date | None:
    is_midnight = isinstance(value, dt.datetime) and value.time() == dt.time()
    return value.date() if is_midnight else None


_TEXTS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    **dict.fromkeys(WHOLE, lambda value, _: str(value)),
    "decimal": lambda value, _: format(value, "f"),
    "date": lambda value, _: value.isoformat() if isinstance(value, dt.date) else None,
    "bytes": _utf8,
}
_MIDNIGHTS: Final = {("date", LOCAL): _midnight, (LOCAL, "date"): _day}


_STRING: Final = re.compile(r"'((?:[^']|'')*)'")
_BYTES: Final = re.compile(r"x'((?:[0-9a-f]{2})*)'")
_LONG: Final = 8
_WORDS: Final[dict[str, bool | None]] = {"TRUE": True, "FALSE": False, "NULL": None}
_NUMBERS: Final = frozenset(
    {
        *("TINYINT", "SMALLINT", "MEDIUMINT", "INT", "INTEGER", "BIGINT", "INT1", "INT2", "INT3", "INT4", "INT8"),
        *("MIDDLEINT", "BOOL", "BOOLEAN", "YEAR", "FLOAT", "FLOAT4", "FLOAT8", "DOUBLE", "DOUBLE PRECISION", "REAL"),
        *("DECIMAL", "DEC", "NUMERIC", "FIXED"),
    }
)
_TEXT_TYPES: Final = frozenset(
    {
        *("CHAR", "VARCHAR", "CHARACTER", "CHARACTER VARYING", "CHAR VARYING", "NCHAR", "NVARCHAR", "NATIONAL CHAR"),
        *("NATIONAL VARCHAR", "NATIONAL CHARACTER", "NATIONAL CHARACTER VARYING", "LONG VARCHAR", "LONG", "TINYTEXT"),
        *("TEXT", "MEDIUMTEXT", "LONGTEXT", "SET", "BINARY", "VARBINARY", "TINYBLOB", "BLOB", "MEDIUMBLOB", "LONGBLOB"),
    }
)
# A zero date is in no Avro type: it is noted as the column's older value, and older rows have null.
_ZERO_TIMES: Final = {"DATE": "0000-00-00", "DATETIME": "0000-00-00 00:00:00", "TIME": "00:00:00"}
_SERIALS: Final = frozenset(f"{size}SERIAL{count}" for size in ("", "SMALL", "BIG") for count in ("", "2", "4", "8"))
_OWN_DEFAULT: Final = Expression("the default of its type")
_COMPUTED: Final = Expression("its source computes it")
_BIT_TEXT: Final = re.compile(r"(?:b'([01]{1,64})'|0b([01]{1,64}))", re.IGNORECASE | re.ASCII)
_HEX: Final = re.compile(r"(?:x'((?:[0-9a-f]{2})*)'|0x((?:[0-9a-f]{2})+))", re.IGNORECASE | re.ASCII)
_DATE_TEXT: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_DATED: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ].{5,64})?", re.ASCII)
_MAX_DIGITS: Final = 1_000


def older_value(declared: ColumnDef, dialect: Dialect) -> Constant | Expression | None:
    """Return the value of an added column in older rows: its default, or what its source gives it without one.

    None is NULL. MySQL and its kin give a column that is NOT NULL the zero, the empty text or its type's first label;
    Oracle, PostgreSQL, SQL Server and DB2 refuse it where there are rows. The value of an expression is not known here.
    Source: MySQL reference manual, "Data Type Default Values".
    """
    if declared.default is not None:
        return declared.default
    if declared.generated or declared.numbered or (declared.type or "").upper() in _SERIALS:
        return _COMPUTED
    is_given = dialect.is_mysql and (declared.nullable is False or declared.key)
    return _implied_default(declared.type or "") if is_given else None


def _implied_default(type: str) -> Constant | Expression:
    names = {name.removesuffix(" UNSIGNED") for name in column_type_names(type)}
    members = parse_sql_type(type).members
    if names & _NUMBERS:
        return Constant(ExactNumber("0"))
    if names & _TEXT_TYPES:
        return Constant("")
    if "BIT" in names:
        return Constant(b"\0")
    if "ENUM" in names and members:
        return Constant(members[0])
    # TIMESTAMP has the time of the statement or a zero, by a setting; JSON and geometries have values of their own.
    zero = next((_ZERO_TIMES[name] for name in names if name in _ZERO_TIMES), None)
    return _OWN_DEFAULT if zero is None else Constant(zero)


def avro_default(default: Constant | Expression | None, type: ColumnType) -> Any:
    """Return a constant as the default of an Avro field; `ABSENT` if there is none or the type cannot carry it."""
    if not isinstance(default, Constant) or default.value is None:
        return ABSENT
    value = default.value
    datum = _datum_of_bytes(value, type) if isinstance(value, bytes) else constant_datum(value, type)
    if datum is MISFIT:
        return ABSENT
    return datum.decode("iso-8859-1") if isinstance(datum, bytes) else datum


def _datum_of_bytes(raw: bytes, type: ColumnType) -> Any:
    """Return the datum of `x'…'` or `b'…'`: bytes in a binary column, text in a text column, else a number."""
    if type.avro == "string":
        try:
            return constant_datum(raw.decode(), type)
        except UnicodeDecodeError:
            return MISFIT
    is_bits = parse_sql_type(type.declared or "").name == "BIT"
    if type.avro == "bytes" and not is_bits:
        return constant_datum(f"x'{raw.hex()}'", type)
    return constant_datum(int.from_bytes(raw, "big"), type) if len(raw) <= _LONG else MISFIT


def default_text(default: Constant | Expression) -> str:
    """Return a default as SQL text.

    >>> default_text(Constant("it's"))
    "'it''s'"
    """
    if isinstance(default, Expression):
        return default.text
    value = default.value
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    return "NULL" if value is None else str(value).upper() if isinstance(value, bool) else plain_text(value)


def constant_of(text: str) -> Constant | None:
    """Return the constant behind a text made by `default_text`; None for an expression.

    >>> constant_of("'it''s'"), constant_of("now()")
    (Constant(value="it's"), None)
    """
    string, raw = _STRING.fullmatch(text), _BYTES.fullmatch(text)
    if string is not None:
        return Constant(string[1].replace("''", "'"))
    if raw is not None:
        return Constant(bytes.fromhex(raw[1]))
    if text in _WORDS:
        return Constant(_WORDS[text])
    return Constant(number(text)) if is_number(text) else None  # type: ignore[arg-type]


def constant_datum(value: str | float | ExactNumber, type: ColumnType) -> Any:
    r"""Return the Avro datum of a constant without its quotes: `'0.00'`, 5, `new`, TRUE, `b'101'`, `x'4142'`.

    Return `MISFIT` for a value that the server would round, cut or refuse, and for an expression.

    >>> from cdcavro.change.model import Column, Source
    >>> from cdcavro.table.columns.column_type import column_type
    >>> def type_of(type): return column_type(Column(name="n", type=type), Source(format="canal"))
    >>> constant_datum("5", type_of("int")), constant_datum(1.5, type_of("decimal(10,2)"))
    (5, b'\x00\x96')
    >>> constant_datum(1.5, type_of("int"))
    MISFIT
    """
    avro = type.avro if isinstance(type.avro, str) else type.avro.get("logicalType", type.avro["type"])
    # MySQL's TRUE and FALSE are 1 and 0.
    return _MAKERS[avro](int(value) if isinstance(value, bool) else value, type)


def _number_default(value: Any, type: ColumnType) -> Any:
    if isinstance(value, str):
        bits = _BIT_TEXT.fullmatch(value)
        if bits is not None:
            value = int(bits[1] or bits[2], 2)
        elif not is_number(value):
            return MISFIT
        else:
            value = number(value)
    return type.read(value)


def _date_default(value: Any, type: ColumnType) -> Any:
    return type.read(value) if isinstance(value, str) and _DATE_TEXT.fullmatch(value) else MISFIT


def _local(value: Any, type: ColumnType) -> Any:
    if not isinstance(value, str) or not _DATED.fullmatch(value):
        return MISFIT
    return type.read(f"{value} 00:00:00" if _DATE_TEXT.fullmatch(value) else value)


def _time(value: Any, type: ColumnType) -> Any:
    return type.read(value) if isinstance(value, str) else MISFIT


def _string(value: Any, type: ColumnType) -> Any:
    """Return a string: in a character column a number's digits, in a column of long decimals padded to the scale."""
    rule = _rule_name(type.rule)
    if rule in ("label", "labels"):
        return type.read(value)
    text = number_text(value)
    if text is None or rule != "digits":
        return type.read(plain_text(value))
    arguments = parse_sql_type(type.declared or "").arguments
    if len(arguments) != 2 or max(arguments) > _MAX_DIGITS:  # noqa: PLR2004  precision and scale
        return type.read(number(text))
    precision, scale = arguments
    if scale < 0:
        return type.read(number(text))
    whole = unscaled(text, scale, precision)
    if whole is None:
        return MISFIT
    digits = str(abs(whole)).rjust(scale + 1, "0")
    point = len(digits) - scale
    return f"{'-' if whole < 0 else ''}{digits[:point]}{'.' if scale else ''}{digits[point:]}"


def _rule_name(rule: Rule) -> str:
    """Return the name of a rule, or of the one to which it adds a conversion."""
    return _rule_name(rule.operands[1]) if rule.name == "converted" else rule.name


def _bytes(value: Any, type: ColumnType) -> Any:
    """Return the bytes of a text, of hexadecimal digits or of a BIT value; zeros pad BINARY to its width."""
    declared = parse_sql_type(type.declared or "")
    bits, pairs = (form.fullmatch(value) if isinstance(value, str) else None for form in (_BIT_TEXT, _HEX))
    if declared.name == "BIT":
        count = int(bits[1] or bits[2], 2) if bits is not None else value
        return type.read(count) if isinstance(count, int) else MISFIT
    if bits is not None:
        return MISFIT
    raw = plain_text(value).encode() if pairs is None else bytes.fromhex(pairs[1] if pairs[2] is None else pairs[2])
    if declared.name != "BINARY":
        return raw
    width = declared.arguments[0] if declared.arguments else 1
    return raw.ljust(width, b"\0") if len(raw) <= width <= _MAX_DIGITS else MISFIT


_MAKERS: Final[dict[str, Callable[[Any, ColumnType], Any]]] = {
    **dict.fromkeys(("boolean", "int", "long", "float", "double", "decimal"), _number_default),
    "date": _date_default,
    "time-micros": _time,
    **dict.fromkeys(("local-timestamp-micros", "timestamp-micros", "timestamp-millis"), _local),
    "string": _string,
    "bytes": _bytes,
}

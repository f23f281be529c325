"""Defaults of columns: constants as defaults of Avro fields, and as SQL text and back; and what older rows have without one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from cdcavro.exact.members import ABSENT
from cdcavro.exact.numbers import ExactNumber, number, plain_text
from cdcavro.exact.scan import is_number
from cdcavro.exact.sqltype import parse_sql_type
from cdcavro.table.columns.constants import constant
from cdcavro.table.columns.declaration import column_type_names
from cdcavro.table.columns.strings import MISFIT
from cdcavro.table.ddl.steps import Constant, Expression

if TYPE_CHECKING:
    from cdcavro.table.columns.column_type import ColumnType
    from cdcavro.table.ddl.steps import ColumnDef
    from cdcavro.table.ddl.tokens import Dialect


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
_TEXTS: Final = frozenset(
    {
        *("CHAR", "VARCHAR", "CHARACTER", "CHARACTER VARYING", "CHAR VARYING", "NCHAR", "NVARCHAR", "NATIONAL CHAR"),
        *("NATIONAL VARCHAR", "NATIONAL CHARACTER", "NATIONAL CHARACTER VARYING", "LONG VARCHAR", "LONG", "TINYTEXT"),
        *("TEXT", "MEDIUMTEXT", "LONGTEXT", "SET", "BINARY", "VARBINARY", "TINYBLOB", "BLOB", "MEDIUMBLOB", "LONGBLOB"),
    }
)
# What no type carries exactly is said, and not put into older rows.
_ZERO_TIMES: Final = {"DATE": "0000-00-00", "DATETIME": "0000-00-00 00:00:00", "TIME": "00:00:00"}
_SERIALS: Final = frozenset(f"{size}SERIAL{count}" for size in ("", "SMALL", "BIG") for count in ("", "2", "4", "8"))
_OWN_DEFAULT: Final = Expression("the default of its type")
_COMPUTED: Final = Expression("its source computes it")


def older_value(declared: ColumnDef, dialect: Dialect) -> Constant | Expression | None:
    """Return what an added column has in rows that stand: its default, or what its source gives there without one.

    None is NULL. MySQL and its kin give a column that is NOT NULL the zero, the empty text or the first label of its type;
    Oracle, PostgreSQL, SQL Server and DB2 refuse it where there are rows. An expression is not known here. Source: MySQL
    reference manual, "Data Type Default Values".
    """
    if declared.default is not None:
        return declared.default
    if declared.generated or declared.numbered or (declared.type or "").upper() in _SERIALS:
        return _COMPUTED
    is_given = dialect.is_mysql and (declared.nullable is False or declared.key)
    return _implied(declared.type or "") if is_given else None


def _implied(type: str) -> Constant | Expression:
    names = {name.removesuffix(" UNSIGNED") for name in column_type_names(type)}
    members = parse_sql_type(type).members
    if names & _NUMBERS:
        return Constant(ExactNumber("0"))
    if names & _TEXTS:
        return Constant("")
    if "BIT" in names:
        return Constant(b"\0")
    if "ENUM" in names and members:
        return Constant(members[0])
    # TIMESTAMP has the time of the statement or a zero, by a setting; JSON and geometries have values of their own.
    zero = next((_ZERO_TIMES[name] for name in names if name in _ZERO_TIMES), None)
    return _OWN_DEFAULT if zero is None else Constant(zero)


def filling(default: Constant | Expression | None, type: ColumnType) -> Any:
    """Return a constant as the default of an Avro field; `ABSENT` if there is none or the type cannot carry it."""
    if not isinstance(default, Constant) or default.value is None:
        return ABSENT
    value = default.value
    datum = _of_bytes(value, type) if isinstance(value, bytes) else constant(value, type)
    if datum is MISFIT:
        return ABSENT
    return datum.decode("iso-8859-1") if isinstance(datum, bytes) else datum


def _of_bytes(raw: bytes, type: ColumnType) -> Any:
    """Return the datum of `x'…'` or `b'…'`: bytes in a binary column, text in a text column, else a number."""
    if type.avro == "string":
        try:
            return constant(raw.decode(), type)
        except UnicodeDecodeError:
            return MISFIT
    is_bits = parse_sql_type(type.declared or "").name == "BIT"
    if type.avro == "bytes" and not is_bits:
        return constant(f"x'{raw.hex()}'", type)
    return constant(int.from_bytes(raw, "big"), type) if len(raw) <= _LONG else MISFIT


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

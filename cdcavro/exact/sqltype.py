"""SQL types: declared column types as MySQL and its relatives spell them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from cdcavro.exact.caching import bounded_cache

if TYPE_CHECKING:
    from collections.abc import Mapping

# Until Python 3.11.5, `*+` behind a group keeps what a repetition has read that fails in its middle.
_MEMBER: Final = r"'(?:[^']++|'')*+'"
_DECLARED: Final = re.compile(
    rf"""\s*(?P<name>DOUBLE\s+PRECISION|LONG\s+VARBINARY|LONG\s+VARCHAR|CHAR\s+BYTE
        |(?:CHARACTER|CHAR)\s+VARYING|NATIONAL\s+\w+|\w+)
    \s*(?:\(\s*(?:
        (?P<arguments>[0-9]{{1,9}}(?:\s*,\s*-?[0-9]{{1,9}})*)
        |(?P<members>{_MEMBER}(?:\s*,\s*{_MEMBER})*)
    )\s*\))?
    (?P<rest>.*)""",
    re.ASCII | re.DOTALL | re.IGNORECASE | re.VERBOSE,
)
_MEMBERS: Final = re.compile(_MEMBER)
_KEPT: Final = 4096
# The databases that spell their types this way, by the names of their connectors.
MYSQL_FAMILY: Final = frozenset({"mysql", "mariadb"})

_SYNONYMS: Final = {
    **dict.fromkeys(("INTEGER", "INT4"), "INT"),
    **dict.fromkeys(("DEC", "NUMERIC", "FIXED"), "DECIMAL"),
    **dict.fromkeys(("CHARACTER VARYING", "CHAR VARYING"), "VARCHAR"),
    "CHARACTER": "CHAR",
    "DOUBLE PRECISION": "DOUBLE",
}
# The number in brackets after these types is a display width.
_WIDE: Final = frozenset({"TINYINT", "SMALLINT", "MEDIUMINT", "INT", "BIGINT", "YEAR"})
_BOOLEAN: Final = ("TINYINT", (1,))
# Types that have arguments in every table: without them, they are known in part.
_WITH_ARGUMENTS: Final = frozenset({"DECIMAL", "BIT", "ENUM", "SET", "CHAR", "VARCHAR", "BINARY", "VARBINARY"})


@dataclass(frozen=True, slots=True)
class SqlType:
    """A declared column type."""

    # In upper case, without arguments.
    name: str
    # The length, or the precision and the scale, which may be negative.
    arguments: tuple[int, ...] = ()
    # The labels of ENUM and SET.
    members: tuple[str, ...] = ()
    # The first index of each label in `members`.
    indexes: Mapping[str, int] = field(default_factory=dict, compare=False, repr=False)
    # Whether the type is declared so, or is so by ZEROFILL or SERIAL.
    unsigned: bool = False
    # Whether numbers are shown with leading zeros.
    zerofill: bool = False


@bounded_cache(_KEPT)
def parse_sql_type(text: str) -> SqlType:
    """Parse a declared type. Any other text becomes a type of that name, which no column has.

    In labels `''` is an apostrophe and every other character stands for itself, as Canal writes them.

    >>> parse_sql_type("decimal(10, 2) unsigned")
    SqlType(name='DECIMAL', arguments=(10, 2), members=(), unsigned=True, zerofill=False)
    >>> parse_sql_type("enum('a','b,c','d''e')").members
    ('a', 'b,c', "d'e")
    """
    match = _DECLARED.fullmatch(text)
    if match is None:
        return SqlType(text.upper())
    name = " ".join(match["name"].upper().split())
    members = tuple(label[1:-1].replace("''", "'") for label in _MEMBERS.findall(match["members"] or ""))
    rest = match["rest"].upper().split()
    zerofill = "ZEROFILL" in rest
    return SqlType(
        name=name,
        arguments=tuple(map(int, (match["arguments"] or "").replace(",", " ").split())),
        members=members,
        indexes={label: i for i, label in reversed(list(enumerate(members)))},
        unsigned=zerofill or "UNSIGNED" in rest or name == "SERIAL",
        zerofill=zerofill,
    )


def canonical_type(text: str | None) -> SqlType | None:
    """Return a declared type in the canonical spelling of all that mean the same.

    >>> canonical_type("INTEGER") == canonical_type("int(11)")
    True
    >>> canonical_type("tinyint(1)") == canonical_type("tinyint")
    False
    """
    return None if text is None else _canonical_type(text)


@bounded_cache(_KEPT)
def _canonical_type(text: str) -> SqlType:
    declared = parse_sql_type(text)
    name = _SYNONYMS.get(declared.name, declared.name)
    is_width = name in _WIDE and (name, declared.arguments) != _BOOLEAN
    return replace(declared, name=name, arguments=() if is_width else declared.arguments)


def lacks_arguments(text: str | None) -> bool:
    """Return whether a declared type says only in part what it is.

    >>> lacks_arguments("decimal unsigned"), lacks_arguments("int"), lacks_arguments("enum('a')")
    (True, False, False)
    """
    return text is not None and "(" not in text and parse_sql_type(text).name in _WITH_ARGUMENTS


def with_arguments(text: str | None, known: str | None) -> str | None:
    """Return a declared type, or the one known of its column if that is the same with arguments.

    >>> with_arguments("decimal", "DECIMAL(10, 2)"), with_arguments("decimal", "DECIMAL(10, 2) UNSIGNED")
    ('DECIMAL(10, 2)', 'decimal')
    """
    stated, other = canonical_type(text), canonical_type(known)
    is_bare = stated is not None and not (stated.arguments or stated.members)
    return known if is_bare and other is not None and replace(other, arguments=(), members=()) == stated else text


def is_same_type(left: str | None, right: str | None) -> bool:
    """Return whether two declared types are the same, however they are spelled.

    >>> is_same_type("DECIMAL(10, 2)", "numeric(10,2)"), is_same_type("int", "bigint")
    (True, False)
    """
    return left == right or canonical_type(left) == canonical_type(right)

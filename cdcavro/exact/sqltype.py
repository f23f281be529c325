"""SQL types: declared column types as MySQL and its relatives spell them; and the character sets of databases.

Character sets go by the names that databases have for them, and are those of Python: bytes become text and back, for
records of DTS.

`decode_text` gives text only where it is certain. MySQL's mapping of each of these sets to Unicode was compared with
Python's codec code by code, as MariaDB 10.11 has it (`CONVERT(… USING utf32)`); where the two differ, the bytes are no
text here. gb18030, which MariaDB does not have, is Python's.

Source: MySQL reference, "West European Character Sets", "The cp932 Character Set" and "Asian Character Sets".
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from cdcavro.exact.caching import bounded_cache

if TYPE_CHECKING:
    from collections.abc import Mapping

# MySQL's latin1 is cp1252, and has control characters where that has nothing.
_LATIN1: Final = "".join(
    chr(code) if code in b"\x81\x8d\x8f\x90\x9d" else bytes([code]).decode("cp1252") for code in range(256)
)
_LATIN1_CODES: Final = codecs.charmap_build(_LATIN1)
_OF_MYSQL: Final = "latin1 of MySQL"
# The names of databases, in lower case, with Python's codecs.
CODECS_OF_CHARSETS: Final = {
    **dict.fromkeys(("", "utf8", "utf8mb3", "utf8mb4", "utf-8", "al32utf8"), "utf-8"),
    **dict.fromkeys(("ascii", "us7ascii"), "ascii"),
    **dict.fromkeys(("cp1252", "we8mswin1252"), "cp1252"),
    **dict.fromkeys(("gbk", "zhs16gbk", "cp936"), "gbk"),
    **dict.fromkeys(("gb18030", "zhs32gb18030"), "gb18030"),
    **dict.fromkeys(("ucs2", "utf16", "al16utf16"), "utf-16-be"),
    **{name: name for name in ("big5", "gb2312", "cp932", "cp850", "cp852", "cp866")},
    **{name: name for name in ("cp1250", "cp1251", "cp1256", "cp1257")},
    "latin1": _OF_MYSQL,
    "latin2": "iso8859-2",
    "latin5": "iso8859-9",
    "latin7": "iso8859-13",
    "greek": "iso8859-7",
    "hebrew": "iso8859-8",
    "hp8": "hp-roman8",
    "koi8r": "koi8-r",
    "koi8u": "koi8-u",
    "macce": "mac_latin2",
    "macroman": "mac_roman",
    "tis620": "tis_620",
    "sjis": "shift_jis",
    "ujis": "euc_jp",
    "euckr": "cp949",
    "utf16le": "utf-16-le",
    "utf32": "utf-32-be",
}
# Characters of which Python's codec has a code that means another one to MySQL, or none.
_DOUBTFUL: Final = {
    "cp866": frozenset("№¤"),
    "cp1256": frozenset("ٹڈکڑںھہے"),
    "iso8859-7": frozenset("‘’€₯ͺ"),
    "iso8859-8": frozenset("¯"),
    "koi8-u": frozenset("∙"),
    "big5": frozenset("＼╴￣ˍ／"),
    "cp932": frozenset("\x80\uf8f0\uf8f1\uf8f2\uf8f3"),
    "shift_jis": frozenset("＼"),
    "euc_jp": frozenset("＼"),
}
# Codecs in which a character may have several codes, of which MySQL and Python say the same.
_WITH_SEVERAL_CODES: Final = frozenset({"cp932"})


def decode_text(raw: bytes, charset: str) -> str | None:
    r"""Return the text of bytes in a character set; None if it is not known, or the bytes are no certain text in it.

    >>> decode_text(b"\x80\x81", "latin1"), decode_text(b"\x81\x5f", "sjis"), decode_text(b"A", "klingon")
    ('€\x81', None, None)
    """
    codec = CODECS_OF_CHARSETS.get(charset.lower())
    if codec is None:
        return None
    try:
        text = codecs.charmap_decode(raw, "strict", _LATIN1)[0] if codec == _OF_MYSQL else raw.decode(codec)
    except UnicodeDecodeError:
        return None
    is_certain = _DOUBTFUL.get(codec, frozenset()).isdisjoint(text)
    is_certain &= codec in _WITH_SEVERAL_CODES or encode_text(text, charset) == raw
    return text if is_certain else None


def encode_text(text: str, charset: str) -> bytes | None:
    r"""Return the bytes of a text in a character set; None if it is not known, or has no code for a character.

    >>> encode_text("€\x81", "latin1"), encode_text("€", "latin2")
    (b'\x80\x81', None)
    """
    codec = CODECS_OF_CHARSETS.get(charset.lower())
    if codec is None or not _DOUBTFUL.get(codec, frozenset()).isdisjoint(text):
        return None
    try:
        return codecs.charmap_encode(text, "strict", _LATIN1_CODES)[0] if codec == _OF_MYSQL else text.encode(codec)
    except UnicodeEncodeError:
        return None


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

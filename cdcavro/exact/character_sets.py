"""Character sets of databases by their names, as Python has them: bytes to text and back, for records of DTS.

`decode_text` gives text only where it is certain. MySQL's mapping of each of these sets to Unicode was compared with
Python's codec code by code, as MariaDB 10.11 has it (`CONVERT(… USING utf32)`); where the two differ, the bytes are no
text here. gb18030, which MariaDB does not have, is Python's.

Source: MySQL reference, "West European Character Sets", "The cp932 Character Set" and "Asian Character Sets".
"""

from __future__ import annotations

import codecs
from typing import Final

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

"""Character sets: bytes are text only where MySQL and Python take them for the same characters."""

from __future__ import annotations

import itertools
from functools import cache
from zlib import crc32

import pytest

from cdcavro.exact.sqltype import CODECS_OF_CHARSETS, decode_text, encode_text

# How many codes of one and of two bytes are text, and a sum over them, of which all are what MariaDB 10.11 says.
CODES = {
    "ascii": (128, "0704e927"),
    "big5": (13829, "ec0b2ed7"),
    "cp1250": (251, "58b29723"),
    "cp1251": (255, "048a7267"),
    "cp1256": (248, "bf8aab1e"),
    "cp1257": (244, "ef99074e"),
    "cp850": (256, "726456a6"),
    "cp852": (256, "9011d67b"),
    "cp866": (254, "6fd5eca4"),
    "cp932": (9795, "926a7edb"),
    "euckr": (17176, "7525256b"),
    "gb2312": (7573, "4420aa2b"),
    "gbk": (21919, "84dfb4c5"),
    "greek": (248, "d7df5f45"),
    "hebrew": (219, "29a08b84"),
    "hp8": (255, "f7a80f57"),
    "koi8r": (256, "53cec3f4"),
    "koi8u": (255, "05f939f0"),
    "latin1": (256, "88273492"),
    "latin2": (256, "57da22e0"),
    "latin5": (256, "64d9cc56"),
    "latin7": (256, "45a42f71"),
    "macce": (256, "bb494373"),
    "macroman": (256, "ea2ae784"),
    "sjis": (7069, "d686ea74"),
    "tis620": (247, "270f0e74"),
    "ujis": (7069, "1fbbd9a4"),
}


OF_TWO_BYTES = {"big5", "cp932", "euckr", "gb2312", "gbk", "sjis", "ujis"}


@cache
def codes_of(charset: str) -> list[tuple[bytes, str]]:
    """Return the codes of one and of two bytes that are one character, each with it."""
    pairs = itertools.product(range(0x80, 0x100), range(0x100)) if charset in OF_TWO_BYTES else ()
    codes = [*(bytes([one]) for one in range(0x100)), *map(bytes, pairs)]
    texts = [(code, decode_text(code, charset)) for code in codes]
    return [(code, text) for code, text in texts if text is not None and len(text) == 1]


@pytest.mark.parametrize("charset", CODES)
def test_a_code_is_the_character_that_mysql_has(charset):
    """As MariaDB converts it; whatever Python's codecs may say one day."""
    codes = codes_of(charset)
    total = crc32("\n".join(f"{code.hex()} {ord(text):x}" for code, text in codes).encode())
    assert (len(codes), f"{total:08x}") == CODES[charset]


@pytest.mark.parametrize("charset", CODES)
def test_a_character_has_its_code_again(charset):
    """Or another one of the same character, as cp932 has of some."""
    for code, text in codes_of(charset):
        again = encode_text(text, charset)
        assert again is not None
        assert decode_text(again, charset) == text
        assert again == code or charset == "cp932"


@pytest.mark.parametrize(
    ("raw", "charset", "text"),
    [
        ("€ é 😀".encode(), "utf8mb4", "€ é 😀"),
        ("中".encode(), "UTF8MB3", "中"),
        (b"\x80 \x81\x8d\x8f\x90\x9d \xe9", "latin1", "€ \x81\x8d\x8f\x90\x9d é"),
        (b"\x81", "we8mswin1252", None),
        ("漢字".encode("gbk"), "gbk", "漢字"),
        (b"\x94\x39\xfc\x36", "gb18030", "😀"),
        ("漢字".encode("big5"), "big5", "漢字"),
        (b"\xa2\x41", "big5", None),
        (b"\xa2\xcc", "big5", None),
        ("テスト\\~".encode("shift_jis"), "sjis", "テスト\\~"),
        (b"\x81\x5f", "sjis", None),
        (b"\xfb\xfc\x87\x8a", "cp932", "髙㈱"),
        (b"\x80", "cp932", None),
        ("テスト".encode("euc_jp"), "ujis", "テスト"),
        (b"\xa1\xc0", "ujis", None),
        (b"\x81\x41\xb0\xa1", "euckr", "갂가"),
        ("é中😀".encode("utf-16-be"), "utf16", "é中😀"),
        ("é😀".encode("utf-16-le"), "utf16le", "é😀"),
        (b"\xd8\x00", "ucs2", None),
        ("é😀".encode("utf-32-be"), "utf32", "é😀"),
        (b"\xff", "utf8mb4", None),
        (b"\xed\xa0\x80", "utf8mb4", None),
        (b"\x80", "ascii", None),
        (b"A", "klingon", None),
        (b"A", "eucjpms", None),
        (b"", "utf8mb4", ""),
    ],
)
def test_bytes_are_text_where_it_is_certain(raw, charset, text):
    """Neither an unknown set nor bytes of which MySQL and Python disagree are guessed."""
    assert decode_text(raw, charset) == text


@pytest.mark.parametrize(
    ("text", "charset"), [("中", "latin1"), ("\x80", "latin1"), ("＼", "sjis"), ("€", "latin2"), ("A", "klingon")]
)
def test_a_text_without_bytes_has_none(text, charset):
    """A character that is doubtful has no bytes either."""
    assert encode_text(text, charset) is None


def test_names_are_in_lower_case():
    """As they are looked up."""
    assert [name for name in CODECS_OF_CHARSETS if name != name.lower()] == []

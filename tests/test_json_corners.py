"""Corners of JSON's grammar (RFC 8259), as whole messages, as values of columns and of metadata, and as names.

What is JSON comes back with the same value, digit for digit; what is not is refused with one sentence.
"""

from __future__ import annotations

import pytest

import cdcavro
from cdcavro.errors import MessageError, StructureError, TextError
from support.roundtrip import assert_round_trip, outcome

NUMBERS = [
    *("0", "-0", "0.0", "-0.0", "1", "-1", "10", "123456789012345678901234567890", "-9223372036854775809"),
    *("1.5", "0.1", "1.0", "1.10", "-1.5", "1e1", "1E1", "1e+1", "1e-1", "1E+01", "0e0", "0E-0", "1e400", "-1e-400"),
    *("1.7976931348623157e308", "5e-324", "0.1e1", "123.456e-7", "1." + "0" * 400, "0." + "0" * 400 + "1"),
    *("9007199254740993", "18446744073709551616", "1e1000000000"),
]
STRINGS = [
    *(r'""', r'"\""', r'"\\"', r'"\/"', r'"\b\f\n\r\t"', r'"\u0000"', r'"\u001f"', r'"\u0022"', r'"\u005c"'),
    *(
        r'"\ud83d\ude00"',
        r'"\uD83D\uDE00"',
        r'"\uDBFF\uDFFF"',
        r'"\u2028\u2029"',
        r'"\uFFFF"',
        r'"\ufeff"',
        r'"a\u0061"',
    ),
    *(
        '"\u2028"',
        '"\U0001f600"',
        '"\ue000"',
        '"\x7f"',
        '"é"',
        '"\ufdd0"',
        '"/*c*/"',
        '"[[[{{{"',
        '"' + "x" * 5_000 + '"',
    ),
]
OTHERS = [
    *(
        "null",
        "true",
        "false",
        "[]",
        "{}",
        "[ ]",
        "{ }",
        "[[]]",
        "[{}]",
        "[null]",
        "[1,2,3]",
        '{"":0}',
        '{"a":{"a":{"a":[]}}}',
    ),
    *('{"\\u0000":1}', '[[[[1]]],"",{"a":[true,{"b":null}]}]', "[" * 100 + "]" * 100, " \t\r\n[ \t\r\n1 \t\r\n, 2 ] "),
]
FAULTY = [
    *(
        "",
        " ",
        "nul",
        "nulll",
        "True",
        "NULL",
        "none",
        "undefined",
        "NaN",
        "Infinity",
        "-Infinity",
        "nan",
        "0x1F",
        "1_000",
    ),
    *(
        "+1",
        "01",
        "-01",
        "00",
        "1.",
        ".5",
        "-.5",
        "-",
        "+",
        "1e",
        "1e+",
        "1E-",
        "1.e1",
        "1.5.5",
        "1e1.5",
        "--1",
        "1 000",
        "0b1",
        "१",
    ),
    *(
        '"',
        "'a'",
        '"a',
        'a"',
        r'"\"',
        r'"\x41"',
        r'"\u"',
        r'"\u12"',
        r'"\u12G4"',
        r'"\a"',
        r'"\U0001F600"',
        '"\x00"',
        '"\x1f"',
        '"\t"',
    ),
    *('"a\nb"', '"a" "b"', r'"\ud800"', r'"\udc00"', r'"\ud800\u0041"', r'"\udc00\ud800"', r'"\ud800x"', "“a”"),
    *(
        "[",
        "]",
        "[1",
        "[1,",
        "[1,]",
        "[,1]",
        "[,]",
        "[1 2]",
        "[1,,2]",
        "[1;2]",
        "[1:2]",
        "[}",
        "[1}",
        "[[]",
        "[]]",
        "[*]",
        "[1]x",
    ),
    *(
        "{",
        "}",
        "{]",
        '{"a"}',
        '{"a":}',
        '{"a":1,}',
        '{,"a":1}',
        '{"a" 1}',
        '{"a",1}',
        "{a:1}",
        "{'a':1}",
        "{1:1}",
        "{null:1}",
    ),
    *(
        '{"a":1 "b":2}',
        '{"a":1,,"b":2}',
        '{"a"::1}',
        '{"a":1:2}',
        '{"a":1}}',
        '{{"a":1}}',
        '{"a":1,"a":2}',
        '{"a":1,"\\u0061":2}',
    ),
    *(
        "// a",
        "/* a */ 1",
        "1 // a",
        "#",
        "<a/>",
        "1 2",
        "1,",
        "\ufeff1",
        "\xa01",
        "1\x0b",
        "1\x0c",
        "\u20281",
        "[\x001]",
        "@",
        "\\n",
    ),
    "[" * 200 + "]" * 200,
]
BYTES = [
    b"\xff",
    b"\xc0\x80",
    b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80",
    b"\xe2\x82",
    b"\x80",
    b"\xfe\xff",
    b"\xf8\x88\x80\x80\x80",
]
PLACES = {
    "a column": '{{"recordType":"ROW","postStruct":{{"a":{}}}}}',
    "in a column": '{{"recordType":"ROW","postStruct":{{"a":[1,{}]}}}}',
    "a member that no schema names": '{{"recordType":"ROW","x":{}}}',
}


@pytest.mark.parametrize("text", [*NUMBERS, *STRINGS, *OTHERS], ids=lambda text: ascii(text)[:24])
def test_what_is_json_comes_back(text):
    """By the fast way and the exact one, as the independent reader has it."""
    for place in PLACES.values():
        assert_round_trip("oms_default", place.format(text))


@pytest.mark.parametrize("text", STRINGS, ids=lambda text: ascii(text)[:24])
def test_what_is_a_string_may_be_a_name(text):
    """Of a column, and of a member that no schema names."""
    assert_round_trip("oms_default", f'{{"recordType":"ROW","postStruct":{{{text}:1}}}}')
    assert_round_trip("oms_default", f'{{"recordType":"ROW",{text}:1}}')


@pytest.mark.parametrize("text", FAULTY, ids=lambda text: ascii(text)[:24])
def test_what_is_not_json_is_refused(text):
    """Whatever stands around it. `sniff` tells the format of what it need not look into."""
    for sent in (text, *(place.format(text) for place in PLACES.values())):
        for call in (cdcavro.encode, cdcavro.to_changes):
            error = outcome(MessageError, call, sent, "oms_default")
            assert isinstance(error, TextError), sent
            assert len(str(error)) < 400
        told = outcome(MessageError, cdcavro.sniff, sent)
        assert told == "oms_default" or isinstance(told, MessageError), sent


@pytest.mark.parametrize("raw", BYTES, ids=repr)
def test_what_is_not_utf8_is_refused(raw):
    """In a value, in a name and between tokens."""
    for sent in (b'{"recordType":"ROW","x":"%s"}', b'{"recordType":"ROW","%s":1}', b'{"recordType":"ROW"%s}', b"%s"):
        assert "expected UTF-8, got byte 0x" in str(outcome(TextError, cdcavro.encode, sent % raw, "oms_default"))


@pytest.mark.parametrize("text", [*NUMBERS, *STRINGS, "null", "true", "false", "[]", "[1]", '[{"recordType":"ROW"}]'])
def test_json_that_is_no_object_is_no_message(text):
    """Said as such, since it is JSON."""
    error = outcome(MessageError, cdcavro.encode, text, "oms_default")
    assert isinstance(error, StructureError)
    assert str(error).startswith("oms_default: $: expected object, got ")

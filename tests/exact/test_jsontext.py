"""JSON text, exactly: what is parsed, what it becomes, and what is refused with which sentence."""

from __future__ import annotations

import json
import tracemalloc

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import cdcavro
from cdcavro.errors import TextError
from cdcavro.exact import jsontext
from cdcavro.exact.numbers import ExactNumber, is_number
from support.roundtrip import error_of, exact
from support.strategies import numbers, strings, texts

_BOMB = 100_000
_MILLION = "1" * 1_000_000


def test_members_and_white_space():
    """Every kind of white space that JSON has may stand around tokens; the value is what counts."""
    sent = ' \t\r\n{ "a" : [ 1 , 2.50 , null , true , "\\u0041\\/\\ud83d\\ude00" ] , "" : { } } \n'
    assert exact(jsontext.render(jsontext.parse(sent))) == exact(sent)


@pytest.mark.parametrize("members", [1, 400])
def test_a_text_takes_no_more_memory_than_its_bytes(members: int):
    """A text is kept without the buffer that orjson wrote it to, of 4 KB and more; many texts are kept at a time."""
    value = {f"c{i}": i for i in range(members)}
    tracemalloc.start()
    try:
        kept = [jsontext.render(value) for _ in range(100)]
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken < 1.1 * sum(len(text) + 64 for text in kept)


def test_bytes_and_text_are_the_same():
    """UTF-8 bytes and text give one value."""
    assert jsontext.parse('{"é":"\U0001f600"}') == jsontext.parse('{"é":"\U0001f600"}'.encode())


@pytest.mark.parametrize(
    ("sent", "sentence"),
    [
        ("", "expected JSON, got an empty line"),
        (" \r\n", "expected JSON, got white space only"),
        (b'{"a":"\xff"}', "expected UTF-8, got byte 0xff at byte 6"),
        (b'"\xed\xa0\x80"', "expected UTF-8, got byte 0xed at byte 1"),
        (b"\xef\xbb\xbf{}", "expected JSON, got a byte order mark before it"),
        (b"\xff\xfe{\x00}\x00", "expected UTF-8, got byte 0xff at byte 0"),
        ("nope", "expected JSON, got 'nope' at character 0"),
        ("{'a':1}", "expected JSON, got \"'a':1}\" at character 1 where the name of a member belongs"),
        ('{"a":1', "expected JSON, got text that ends too early, at character 6"),
        ('{"a":"xy', "expected JSON, got text that ends too early, at character 8"),
        ('{"a":', "expected JSON, got text that ends too early, at character 5"),
        ('{"a" ', "expected JSON, got text that ends too early, at character 5"),
        ("[1,", "expected JSON, got text that ends too early, at character 3"),
        ('{"a":1}{"b":2}', "expected JSON, got more than one value, from character 7"),
        (
            '"a" : 1,',
            "expected JSON, got a member without its object, at character 4",
        ),
        ('{"a":1},', "expected JSON, got a comma behind the value, at character 7"),
        (
            '{"a":1}\r{"a":2}',
            "expected JSON, got a carriage return between values, at character 8",
        ),
        ("1:2", "expected JSON, got more than one value, from character 1"),
        ('{"a":1}\x85', "expected JSON, got more than one value, from character 7"),
        ('{"a":1}\0', "expected JSON, got more than one value, from character 7"),
        ('{"a":01}', "expected JSON, got '1}' at character 6 where a comma or an end belongs"),
        ('{"a" 1}', "expected JSON, got '1}' at character 5 where a colon belongs"),
        ('{"a":tru}', "expected JSON, got 'tru}' at character 5 where a value belongs"),
        ('{"a":"\n"}', r"""expected JSON, got '\n"}' at character 6 where an escape of it belongs"""),
        ('"\\x"', r"""expected JSON, got '\\x"' at character 1 where an escape of JSON belongs"""),
        ('{"a":NaN}', "expected JSON, got NaN, which is no JSON number"),
        ('{"a":[-Infinity]}', "expected JSON, got -Infinity, which is no JSON number"),
        ("[" * 129 + "]" * 129, "expected at most 128 levels, got a level more at byte 128"),
        ('{"a":' * _BOMB, "expected at most 128 levels, got a level more at byte 640"),
        ("[" * _BOMB, "expected at most 128 levels, got a level more at byte 128"),
        ('"\ud800"', "expected Unicode text, got a lone surrogate at character 1"),
    ],
    ids=lambda given: repr(given)[:30],
)
def test_text_that_is_not_one_json_value(sent, sentence):
    """Each way to be no JSON has its sentence."""
    assert error_of(jsontext.parse, sent) == f"message: $: {sentence}"


@pytest.mark.parametrize(
    ("sent", "sentence"),
    [
        ('{"a":1,"a":1}', "$: expected each member once, got 'a' twice"),
        ('{"a":1,"b":2,"\\u0061":null}', "$: expected each member once, got 'a' twice"),
        ('{"x":[{},{"a b":{"":1,"":2}}]}', "$.x[1][\"a b\"]: expected each member once, got '' twice"),
        ('{"x":{"a":1,"a":2},"x":3}', "$: expected each member once, got 'x' twice"),
        ('{"x":"\\ud800"}', "$.x: expected Unicode text, got a lone surrogate at character 0"),
        ('{"x":["ab\\udC00c"]}', "$.x[0]: expected Unicode text, got a lone surrogate at character 2"),
        ('{"x":{"a\\uDBFF":1}}', "$.x: expected Unicode text, got a lone surrogate at character 1"),
        ('["\\ude00\\ud83d"]', "$[0]: expected Unicode text, got a lone surrogate at character 0"),
    ],
)
def test_fault_within_a_value_is_named_with_its_place(sent, sentence):
    """A repeated member and a lone surrogate are found with the path to them."""
    assert error_of(jsontext.parse, sent) == f"message: {sentence}"


def test_nesting_up_to_the_bound():
    """128 levels are a message, 129 are not; brackets within strings are no levels."""
    assert jsontext.parse("[" * 128 + "]" * 128)
    assert jsontext.parse('["' + "[{" * 200 + '"]') == ["[{" * 200]
    assert jsontext.parse('["\\"' + "[" * 200 + '"' + ",[]" * 200 + "]")
    with pytest.raises(TextError):
        jsontext.parse("[" * 100 + "]" * 100, above=29)
    assert jsontext.parse("[" * 100 + "]" * 100, above=28)


@pytest.mark.parametrize(
    "sent",
    [
        "[" * _BOMB,
        '{"a":' * _BOMB,
        "[" + '"' + "\\" * 2_000_000,
        '"' + "a" * 12_000_000 + '"' + "[]" * 200,
        "{" + ",".join(f'"{i}":0' for i in range(200_000)) + ',"199999":1}',
        f'{{"a":{_MILLION}.{_MILLION}e{_MILLION}',
        "-" * 1_000_000,
    ],
    ids=["arrays", "objects", "backslashes", "long string", "late repetition", "long number", "minus signs"],
)
def test_hostile_text_is_refused_soon(sent):
    """Whatever is wrong with megabytes, it is found in a time that grows as they do."""
    error_of(jsontext.parse, sent)


def test_text_beyond_the_bound_is_refused(monkeypatch):
    """Longer texts than the bound are refused before anything else is done with them."""
    monkeypatch.setattr(jsontext, "MAX_LENGTH", 10)
    assert error_of(jsontext.parse, b'"' + b"x" * 10) == "message: $: expected at most 10 bytes, got 11"


@pytest.mark.parametrize("value", [None, 1, ["{}"]])
def test_text_is_bytes_or_str(value):
    """Anything else is the caller's mistake, not the message's."""
    with pytest.raises(TypeError, match="text is bytes or str, not"):
        jsontext.parse(value)


@pytest.mark.parametrize(("name", "token"), [("a", "a"), ("a/b~c", "a~1b~0c"), ("~1", "~01"), ("", ""), ("/", "~1")])
def test_pointer_tokens(name, token):
    """Names are escaped as RFC 6901 says, and back."""
    assert jsontext.escape(name) == token
    assert jsontext.unescape(token) == name


@pytest.mark.parametrize(
    ("value", "kind"),
    [(None, "null"), (True, "boolean"), (1, "number"), (1.5, "number"), (ExactNumber("1E5"), "number"), ("", "string")],
)
def test_kinds_are_those_of_json(value, kind):
    """The name of a value's type is JSON's."""
    assert jsontext.kind(value) == kind
    assert jsontext.kind([value]) == "array"
    assert jsontext.kind({"a": value}) == "object"


def _is_number(value: str) -> bool:
    """Return whether the standard library takes a text for a number, and nothing but a number."""
    try:
        parsed = json.loads(value)
    except ValueError:
        return False
    return type(parsed) in (int, float) and value[-1:].isdigit() and value[:1] in set("-0123456789")


@given(numbers | strings | st.text("-+.eE0123456789", max_size=8) | st.sampled_from(["1\ud800", "٣", "1\n", "-", ""]))
def test_a_number_is_what_json_says(value):
    """The grammar of RFC 8259."""
    assert is_number(value) is _is_number(value)


@given(st.text("019a", max_size=60) | st.integers(17, 20).map(lambda count: "x" * 7 + "5" * count + "y" * 9))
def test_long_numbers_are_found(value):
    """Nineteen digits on end, wherever they stand."""
    raw = value.encode()
    assert jsontext.has_long_number(raw) is any(
        raw[i : i + 19].isdigit() and len(raw) >= i + 19 for i in range(len(raw))
    )


@pytest.mark.slow
@given(st.sampled_from(cdcavro.FORMATS).flatmap(texts))
@example('{"recordType":0,"prevStruct":{"\\\\\\":":""}}')
def test_members_are_never_counted_wrongly(sent):
    """Where it is hard to tell, the answer is no."""
    raw = sent.encode()
    members = _members(jsontext.parse(raw))
    for count in range(max(0, members - 2), members + 3):
        assert jsontext.has_members(raw, count) <= (count == members)


def _members(value) -> int:
    if type(value) is dict:
        return len(value) + sum(map(_members, value.values()))
    return sum(map(_members, value)) if type(value) is list else 0


@pytest.mark.parametrize("raw", [b"", b"-", b'"', b'"\\', b"-0", b'{"a":-0', b'":', b'{"a":1}'])
def test_other_texts_have_other_numbers_of_members(raw):
    """None of these has 99."""
    assert jsontext.has_members(raw, 99) is False


@pytest.mark.parametrize(
    ("raw", "members"), [(b'{"a":1,"b":{"c":2}}', 3), (b"[]", 0), (b'{"a\\":":1}', 1), (b'{"\\\\\\":":1,"\\\\":2}', 2)]
)
def test_members_of_plain_texts_are_counted(raw, members):
    """What the fast parser takes."""
    assert jsontext.has_members(raw, members) is True

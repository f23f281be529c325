"""Scalars of another type: converted where that is exact, refused where it is not, and what came is kept."""

from __future__ import annotations

import pytest

import cdcavro
from support.roundtrip import assert_fast, avro, error_of
from support.wire import mine, nullable


def _message(member: str, sent: str) -> str:
    return f'{{"type":"ALTER","pkNames":null,"sqlType":null,"mysqlType":null,"data":null,"old":null,"{member}":{sent}}}'


@pytest.mark.parametrize(
    ("member", "sent", "converted"),
    [
        ("es", '"5"', 5),
        ("es", '"-9223372036854775808"', -(2**63)),
        ("es", "5.0", 5),
        ("es", "5.000", 5),
        ("es", "5e0", 5),
        ("es", "50E-1", 5),
        ("es", "0.5e1", 5),
        ("es", "1.5e+3", 1500),
        ("es", '"1.50e2"', 150),
        ("es", "-0", 0),
        ("es", "-0.0", 0),
        ("es", "-0.00E7", 0),
        ("es", '"-0"', 0),
        ("es", "-15e2", -1500),
        ("es", "9223372036854775807.0", 2**63 - 1),
        ("es", "922337203685477580700e-2", 2**63 - 1),
        ("es", "-9223372036854775808.0", -(2**63)),
        ("es", f"1.{'0' * 45}", 1),
        ("es", f"-1.{'0' * 45}", -1),
        ("es", f"0.{'0' * 45}1e46", 1),
        ("es", f"1{'0' * 45}e-45", 1),
        ("es", f"1e{'0' * 45}2", 100),
        ("es", f"100E-{'0' * 45}2", 1),
        ("es", f"0e{'9' * 45}", 0),
        ("isDdl", '"true"', True),
        ("isDdl", '"false"', False),
        ("table", "1.20", "1.20"),
        ("table", "-0", "-0"),
        ("table", "true", "true"),
        ("table", "1E400", "1E400"),
        ("table", "9" * 700, "9" * 700),
    ],
)
def test_scalar_that_converts_exactly(member, sent, converted):
    """The field has the value, extras the text that came."""
    record = avro("oms_canal", _message(member, sent))
    assert (type(record[member]), record[member]) == (type(converted), converted)
    assert record["extras"] == {f"/{member}": sent}


@pytest.mark.parametrize(
    ("member", "sent", "sentence"),
    [
        ("es", "1.5", "expected long, got number '1.5'"),
        ("es", "1.50", "expected long, got number '1.50'"),
        ("es", "15e-1", "expected long, got number '15e-1'"),
        ("es", "1e-1", "expected long, got number '1e-1'"),
        ("es", "9223372036854775808", "expected long, got number '9223372036854775808'"),
        ("es", "-9223372036854775809", "expected long, got number '-9223372036854775809'"),
        ("es", "9223372036854775808.0", "expected long, got number '9223372036854775808.0'"),
        ("es", "-9223372036854775809.0", "expected long, got number '-9223372036854775809.0'"),
        ("es", f"1.{'0' * 45}1", f"expected long, got number '1.{'0' * 45}1'"),
        ("es", f"1e-{'0' * 45}1", f"expected long, got number '1e-{'0' * 45}1'"),
        ("es", f"1e{'9' * 45}", f"expected long, got number '1e{'9' * 45}'"),
        ("es", "1e19", "expected long, got number '1e19'"),
        ("es", "1e400", "expected long, got number '1e400'"),
        ("es", "1e-999", "expected long, got number '1e-999'"),
        ("es", '"1.5"', "expected long, got string '1.5'"),
        ("es", '" 5"', "expected long, got string ' 5'"),
        ("es", '"+5"', "expected long, got string '+5'"),
        ("es", '"05"', "expected long, got string '05'"),
        ("es", '"٥"', "expected long, got string '٥'"),
        ("es", '""', "expected long, got string ''"),
        ("es", "true", "expected long, got boolean 'true'"),
        ("isDdl", "1", "expected boolean, got number '1'"),
        ("isDdl", '"True"', "expected boolean, got string 'True'"),
        ("isDdl", '"1"', "expected boolean, got string '1'"),
    ],
)
def test_scalar_that_does_not_convert_exactly(member, sent, sentence):
    """Nothing is rounded, trimmed or taken for true."""
    assert error_of(cdcavro.encode, _message(member, sent), "oms_canal") == f"oms_canal: $.{member}: {sentence}"


@pytest.mark.parametrize(
    ("value", "branch"),
    [
        ("null", None),
        ("true", True),
        ("1", 1),
        (str(2**63 - 1), 2**63 - 1),
        ("1.5", 1.5),
        ('"1.5"', "1.5"),
        ("1.50", {"text": "1.50"}),
        (str(-(2**63)), -(2**63)),
        (str(2**63), {"text": str(2**63)}),
        (str(-(2**63) - 1), {"text": str(-(2**63) - 1)}),
        (str(2**64), {"text": str(2**64)}),
        ('{"a":[1.50,{"b":{}}],"c":"\\":"}', {"text": '{"a":[1.50,{"b":{}}],"c":"\\":"}'}),
        ("[]", {"text": "[]"}),
    ],
)
def test_column_value_has_the_branch_of_its_kind(value, branch):
    """A column's value is one of seven things, always chosen by what it is, and never needs the exact way."""
    message = f'{{"type":"X","data":[{{"c":{value}}}]}}'
    found = avro("oms_canal", message)["data"][0]["c"]
    assert (type(found), found) == (type(branch), branch)
    assert_fast("oms_canal", message)


@pytest.mark.parametrize(("type", "bits"), [("int", 31), ("long", 63)])
def test_bounds_of_whole_numbers(type, bits):
    """The least and the greatest are written by the fast way; one beyond is refused, as a number and as a text."""
    format = mine(nullable("a", type))
    for edge in (-(2**bits), 2**bits - 1):
        assert format._encode_exact(b'{"a":%d}' % edge) == format.encode(f'{{"a":{edge}}}')
        assert format.decode(format.encode(f'{{"a":{edge}}}')) == b'{"a":%d}' % edge
        assert format.decode(format.encode(f'{{"a":"{edge}"}}')) == b'{"a":"%d"}' % edge
    for beyond in (-(2**bits) - 1, 2**bits):
        assert error_of(format.encode, f'{{"a":{beyond}}}') == f"mine: $.a: expected {type}, got number '{beyond}'"
        assert error_of(format.encode, f'{{"a":"{beyond}"}}') == f"mine: $.a: expected {type}, got string '{beyond}'"
        assert error_of(format.write, {"a": beyond}) == f"mine: $.a: expected {type}, got number '{beyond}'"


@pytest.mark.parametrize(
    ("sent", "payload"),
    [
        ('{"a":7}', b"\x02\x0e\x00"),
        ('{"a":"7"}', b"\x04\x027\x00"),
        ('{"a":2147483648}', b"\x04\x142147483648\x02\x04/a\x142147483648\x00"),
        ('{"a":-2147483649}', b"\x04\x16-2147483649\x02\x04/a\x16-2147483649\x00"),
        ('{"a":7.0}', b"\x02\x0e\x02\x04/a\x067.0\x00"),
        ('{"a":true}', b"\x04\x08true\x02\x04/a\x08true\x00"),
    ],
)
def test_value_of_several_branches_has_its_own_or_the_first_that_converts(sent, payload):
    """The branch is that of the JSON type if the value fits it; whatever is converted is kept as it came."""
    format = mine(nullable("a", "int", "string"))
    assert format.encode(sent) == payload
    assert format.decode(payload) == sent.encode()


@pytest.mark.parametrize(
    ("missing", "sent", "payload"),
    [
        ("null", '{"a":null}', b"\x00\x00"),
        ("null", "{}", b"\x00\x02\x04/a\x00\x00"),
        ("absent", "{}", b"\x00\x00"),
        ("absent", '{"a":null}', b"\x00\x02\x04/a\x08null\x00"),
    ],
)
@pytest.mark.parametrize("types", [("long",), ("long", "string")])
def test_null_and_absence_by_either_convention(missing, sent, payload, types):
    """The usual one costs nothing, with one branch beside null and with several."""
    format = mine(nullable("a", *types, missing=missing))
    assert format._encode_exact(sent.encode()) == format.encode(sent) == payload
    assert format.decode(payload) == sent.encode()

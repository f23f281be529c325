"""Scalars of another type: converted where that is exact, refused where it is not, and what came is kept."""

from __future__ import annotations

import pytest
from roundtrip import assert_fast, avro, error_of

import cdcavro


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
        ("es", "1e19", "expected long, got number '1e19'"),
        ("es", "1e400", "expected long, got number '1e400'"),
        ("es", "1e-999", "expected long, got number '1e-999'"),
        ("es", '"1.5"', "expected long, got string '1.5'"),
        ("es", '" 5"', "expected long, got string ' 5'"),
        ("es", '"+5"', "expected long, got string '+5'"),
        ("es", '"05"', "expected long, got string '05'"),
        ("es", '"٥"', r"expected long, got string '\u0665'"),
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
        (str(2**63), {"text": str(2**63)}),
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

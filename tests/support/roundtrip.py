"""A tiny test language: what goes in as text comes back as the same JSON value, digit for digit.

`exact` is a second, independent parser; fastavro is a second reader and writer of payloads.
"""

from __future__ import annotations

import io
import json
from functools import cache
from typing import Any, NamedTuple

import fastavro
import pytest

import cdcavro
from cdcavro.wire.formats import REGISTRY
from support.messages import golden_files


class Number(NamedTuple):
    """A JSON number as its text: `1.0`, `1.00` and `"1.0"` are three different things."""

    text: str


def exact(text: bytes | str) -> Any:
    """Parse JSON strictly with the standard library: numbers as text, no member twice."""
    return json.loads(
        text if isinstance(text, str) else text.decode(),
        object_pairs_hook=_members,
        parse_int=Number,
        parse_float=Number,
        parse_constant=_refuse,
    )


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    assert len(members) == len(pairs), f"a member twice among {[name for name, _ in pairs]}"
    return members


def _refuse(name: str) -> Any:
    pytest.fail(f"{name} is not JSON")


def assert_round_trip(format: str, text: bytes | str) -> bytes:
    """Assert that text comes back from its payload, whoever reads and writes it; gives the payload.

    The fast way and the exact way agree to the byte, and so does fastavro in both directions.
    """
    raw = text.encode() if isinstance(text, str) else text
    payload = cdcavro.encode(raw, format)
    assert exact(cdcavro.decode(payload, format)) == exact(raw)
    assert REGISTRY[format]._encode_exact(raw) == payload
    assert fast(format, raw) in (None, payload)
    assert rewritten(format, payload) == payload
    return payload


def fast(format: str, text: bytes | str) -> bytes | None:
    """Encode by the fast way alone; None where it does not apply."""
    raw = text.encode() if isinstance(text, str) else text
    payload = REGISTRY[format]._encode_fast(raw)
    return None if payload is None else bytes(payload)


def assert_fast(format: str, text: bytes | str) -> bytes:
    """Assert the round trip, and that nothing in the text needs the exact way."""
    assert fast(format, text) is not None
    return assert_round_trip(format, text)


def avro(format: str, text: bytes | str) -> dict[str, Any]:
    """Return the record that fastavro reads from the payload of a text which makes the round trip."""
    return read_by_fastavro(format, assert_round_trip(format, text))


def read_by_fastavro(format: str, payload: bytes, *, named: bool = False) -> Any:
    """Read a whole payload with fastavro; `named` gives the records of unions as pairs of name and record."""
    stream = io.BytesIO(payload)
    record = fastavro.schemaless_reader(stream, fastavro_schema(format), return_record_name=named)
    assert stream.read() == b""
    return record


def rewritten(format: str, payload: bytes) -> bytes:
    """Read a payload with fastavro and write it with fastavro."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro_schema(format), read_by_fastavro(format, payload, named=True))
    return out.getvalue()


@cache
def fastavro_schema(format: str) -> Any:
    """Return a format's wire schema as fastavro parses it."""
    return fastavro.parse_schema(json.loads(cdcavro.load_schema(format).json))


def golden_cases(format: str) -> list[Any]:
    """Return the golden messages of a format as parameters, named as their files are."""
    return [pytest.param(message, id=name) for name, message in golden_files(format).items()]


def assert_golden(format: str, golden: bytes) -> None:
    """Assert that a golden message makes the round trip and is told from those of the other formats."""
    assert_round_trip(format, golden)
    assert cdcavro.sniff(golden) == format


def error_of(function: Any, *given: Any) -> str:
    """Return the whole sentence with which a call fails, under the project's root error."""
    with pytest.raises(cdcavro.CdcAvroError) as caught:
        function(*given)
    return str(caught.value)


def outcome(errors: Any, function: Any, *given: Any) -> Any:
    """Return what a call returns, or the error of the kinds named; any other exception goes its way."""
    try:
        return function(*given)
    except errors as error:
        return error

"""A tiny test language for round trips: a text comes back as the same JSON value, digit for digit.

`exact` is a second, independent parser; fastavro is a second, independent reader and writer of payloads.
"""

from __future__ import annotations

import io
import json
from functools import cache
from typing import Any, NamedTuple

import fastavro
import pytest

import cdcavro
from cdcavro.engine.machine import COMPILED
from cdcavro.wire.format import CODECS
from cdcavro.wire.formats import REGISTRY
from support.messages import golden_files


class Number(NamedTuple):
    """A JSON number as its text: `1.0`, `1.00` and `"1.0"` are three different values."""

    text: str


def exact(text: bytes | str) -> Any:
    """Return the value of a JSON text, parsed strictly by the standard library: numbers as text, no repeated members."""
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
    """Assert that a text comes back from its payload, by every reader and writer, and return the payload.

    The engine and the exact way agree to the byte in both directions, and so does fastavro.
    """
    raw = text.encode() if isinstance(text, str) else text
    payload = cdcavro.encode(raw, format)
    decoded = REGISTRY[format].decode_text(payload)
    assert exact(decoded) == exact(raw)
    # Of a format whose messages are bytes, it may be the text of such a message.
    assert format in CODECS or cdcavro.decode(payload, format) == decoded
    assert REGISTRY[format]._encode_exact(raw) == payload
    assert REGISTRY[format]._reader.decode(payload) == decoded
    assert fast(format, raw) in (None, payload)
    assert rewritten(format, payload) == payload
    return payload


def fast(format: str, text: bytes | str) -> bytes | None:
    """Return the payload by the engine alone; None if it leaves the text to the exact way, as it does uncompiled."""
    raw = text.encode() if isinstance(text, str) else text
    return REGISTRY[format]._engine.encode(raw)


def left(format: str, messages: list[bytes]) -> list[bytes]:
    """Return the messages that the engine leaves to the exact way; none where there is no engine."""
    return [message for message in messages if COMPILED and fast(format, message) is None]


class Leaving:
    """An engine that leaves everything to the exact way."""

    def encode(self, raw: bytes) -> None:
        """Return nothing."""


def assert_fast(format: str, text: bytes | str) -> bytes:
    """Assert the round trip, and that the engine alone can encode the text; return the payload."""
    payload = assert_round_trip(format, text)
    if COMPILED:
        assert fast(format, text) == payload
    return payload


def avro(format: str, text: bytes | str) -> dict[str, Any]:
    """Assert the round trip of a text, and return the record that fastavro reads from its payload."""
    return read_by_fastavro(format, assert_round_trip(format, text))


def read_by_fastavro(format: str, payload: bytes, *, named: bool = False) -> Any:
    """Return a payload as fastavro reads it; with `named`, records in unions are pairs of name and record."""
    stream = io.BytesIO(payload)
    record = fastavro.schemaless_reader(stream, fastavro_schema(format), return_record_name=named)
    assert stream.read() == b""
    return record


def rewritten(format: str, payload: bytes) -> bytes:
    """Return a payload read and written again by fastavro."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro_schema(format), read_by_fastavro(format, payload, named=True))
    return out.getvalue()


@cache
def fastavro_schema(format: str) -> Any:
    """Return a format's wire schema as fastavro parses it."""
    return fastavro.parse_schema(json.loads(cdcavro.load_schema(format).json))


def golden_cases(format: str) -> list[Any]:
    """Return the golden messages of a format as test parameters, named after their files."""
    return [pytest.param(message, id=name) for name, message in golden_files(format).items()]


def assert_golden(format: str, golden: bytes) -> None:
    """Assert that a golden message makes the round trip, and that its format is recognised."""
    assert_round_trip(format, golden)
    assert cdcavro.sniff(golden) == format


def error_of(function: Any, *arguments: Any) -> str:
    """Return the whole text of the project's error with which a call fails."""
    with pytest.raises(cdcavro.CdcAvroError) as caught:
        function(*arguments)
    return str(caught.value)


def outcome(errors: Any, function: Any, *arguments: Any) -> Any:
    """Return what a call returns, or the error of one of these kinds that it raises; other exceptions are not caught."""
    try:
        return function(*arguments)
    except errors as error:
        return error

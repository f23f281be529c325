"""What holds for every message, payload and text, however hostile: shown on messages made from the schemas."""

from __future__ import annotations

import io
import json

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cdcavro
from cdcavro.exact import jsontext
from cdcavro.exact.jsontext import parse_quickly
from cdcavro.wire.format import BINARY, CODECS
from cdcavro.wire.formats import REGISTRY
from support.messages import golden_files
from support.roundtrip import assert_round_trip, exact, fast, outcome
from support.strategies import damaged, repeating, strings, texts, values, written

formats = pytest.mark.parametrize("format", cdcavro.FORMATS)


@formats
@given(data=st.data())
def test_every_message_comes_back(format, data):
    """Text to payload to text gives the same JSON value, both ways and through fastavro."""
    assert_round_trip(format, data.draw(texts(format)))


@pytest.mark.slow
@formats
@given(data=st.data())
def test_member_given_twice_is_refused(format, data):
    """A repeated member, anywhere and however it is escaped, is an error: one of two values would be lost."""
    sent = data.draw(repeating(format))
    assert fast(format, sent) is None
    with pytest.raises(cdcavro.TextError) as caught:
        cdcavro.encode(sent, format)
    assert caught.value.expected == "each member once"


@formats
@given(data=st.data())
def test_damaged_payload_is_refused_or_an_object(format, data):
    """A payload with a bit flipped, cut short or lengthened never ends in another exception, nor in bad JSON."""
    payload = cdcavro.encode(data.draw(texts(format)), format)
    _assert_decodes_or_refuses(data.draw(damaged(payload)), format)


@formats
@given(payload=st.binary(max_size=60))
def test_any_bytes_are_refused_or_an_object(format, payload):
    """Bytes that nobody encoded give an object or a `PayloadError`."""
    _assert_decodes_or_refuses(payload, format)


def _assert_decodes_or_refuses(payload: bytes, format: str) -> None:
    found = outcome(cdcavro.PayloadError, cdcavro.decode, payload, format)
    if isinstance(found, cdcavro.PayloadError):
        assert str(found).startswith(f"{format}: $")
        assert len(str(found)) < 2_000
    else:
        assert isinstance(exact(found), dict)


@formats
@given(data=st.data())
def test_damaged_text_is_refused_or_comes_back(format, data):
    """Text with a bit flipped, cut short or lengthened is refused, or is another message that comes back."""
    _assert_encodes_or_refuses(data.draw(damaged(data.draw(texts(format)).encode())), format)


@formats
@given(sent=st.binary(max_size=40) | strings | values.map(written))
def test_any_text_is_refused_or_comes_back(format, sent):
    """What is no message of the format gives a `MessageError`."""
    _assert_encodes_or_refuses(sent, format)


def _assert_encodes_or_refuses(sent: bytes | str, format: str) -> None:
    found = outcome(cdcavro.MessageError, cdcavro.encode, sent, format)
    if isinstance(found, cdcavro.MessageError):
        assert str(found).startswith(f"{format}: $")
        assert fast(format, sent) is None
    else:
        assert assert_round_trip(format, sent) == found


@given(data=st.data())
def test_anything_is_sniffed_or_refused(data):
    """`sniff` gives a format's name or an error of the project's, for any text, damaged or whole."""
    whole = texts(data.draw(st.sampled_from(cdcavro.FORMATS)))
    sent = data.draw(st.binary(max_size=40) | values.map(written) | whole | whole.map(str.encode).flatmap(damaged))
    found = outcome((cdcavro.TextError, cdcavro.UnknownMessageError), cdcavro.sniff, sent)
    assert found in cdcavro.FORMATS or str(found).startswith("message: $")


@formats
@given(data=st.data())
def test_writing_what_was_parsed_gives_the_payload_of_what_was_sent(format, data):
    """`parse` and `write` are the two halves of the trip: the record comes back by them too."""
    record = REGISTRY[format].parse(data.draw(texts(format)))
    if format in CODECS:  # as a line of a file has it; with the mark of bytes it would be written as these
        record.pop(BINARY, None)
    assert exact(cdcavro.decode(REGISTRY[format].write(record), format)) == exact(jsontext.render(record))


@given(value=values.map(written))
def test_any_json_value_is_parsed_and_rendered_exactly(value):
    """`jsontext.parse` and `jsontext.render` keep every digit."""
    assert exact(jsontext.render(jsontext.parse(value))) == exact(value)


@given(
    values.map(written) | values.map(lambda value: written(value, " ")) | strings,
    st.sampled_from(["", "-0", '{"a":1,"\\u0061":2}', '{"a":{"b":1,"b":1}}', "[" * 127 + "]" * 127]),
    st.sampled_from([0, 1, 127]),
)
def test_texts_are_parsed_quickly_or_not_at_all(sent, hostile, above):
    """What msgspec gives is taken only where it is what the exact way gives."""
    whole = f"[{sent},{hostile}]" if hostile else sent
    raw = whole.encode(errors="surrogatepass")
    quick = parse_quickly(raw, above)
    if quick is not None:
        assert jsontext.same(quick, jsontext.parse(raw, above))
        assert jsontext.render(quick) == jsontext.render(jsontext.parse(raw, above))


def test_plain_text_is_parsed_quickly():
    """The exact way is not asked where it need not be."""
    assert parse_quickly(b'{"a":[1,1.5,1.50,"x",null,true,{}]}', 0) is not None


@formats
def test_payloads_of_a_schema_without_extras_are_read(format):
    """An older schema may lack the field: nothing else is taken for it."""
    declared = json.loads(REGISTRY[format].schema.json)
    schema = fastavro.parse_schema(declared)
    bare = declared | {"fields": [one for one in declared["fields"] if one["name"] != "extras"]}
    writer = cdcavro.parse_schema(json.dumps(bare))
    seen = 0
    for golden in golden_files(format).values():
        payload = cdcavro.encode(golden, format)
        if fastavro.schemaless_reader(io.BytesIO(payload), schema, None)["extras"]:
            continue
        seen += 1
        text_of = cdcavro.decode(payload, format)
        assert cdcavro.decode(payload[:-1], format, writer=writer) == text_of
        block = REGISTRY[format].decode_block(payload[:-1] * 3, 3, writer)
        assert b"".join(lines for lines, _ in block) == (text_of + b"\n") * 3
        assert [*REGISTRY[format].read_block(payload[:-1] * 2, 2, writer)] == [REGISTRY[format].read(payload)] * 2
    assert seen

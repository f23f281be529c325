"""The engine: what it takes is what the exact way gives, and what it does not take is left to that."""

from __future__ import annotations

import sys
import threading
from random import Random

import pytest

import cdcavro
from cdcavro.avro.buffer import Buffer
from cdcavro.engine.machine import COMPILED, Engine
from cdcavro.wire.formats import FORMATS, REGISTRY
from cdcavro.wire.program import message_program
from support.engine_trial import BOTH, compared, trial
from support.messages import goldens, shop_canal, shop_debezium
from support.mutations import damaged
from support.wire import REST, array, field, mapping, mine, nullable, record

compiled = pytest.mark.skipif(not COMPILED, reason="nothing is compiled here")
CANAL = REGISTRY["canal"]


@pytest.fixture
def engine():
    """Return an engine of its own, which has seen no message."""
    return Engine(message_program(CANAL.envelope))


@pytest.mark.parametrize("format", FORMATS)
def test_mutated_messages_and_damaged_payloads_have_one_outcome(format):
    """Byte for byte, and an error of the project for whatever is refused."""
    outcomes = trial(format, 150, 1)
    assert (outcomes[f"encode: {BOTH}"] > 0) is COMPILED


@pytest.mark.slow
@pytest.mark.parametrize("format", FORMATS)
def test_many_mutated_messages_and_damaged_payloads_have_one_outcome(format):
    """`tests/support/engine_trial.py` tries a million of each format."""
    outcomes = trial(format, 4_000, 2)
    assert (outcomes[f"encode: {BOTH}"] > 1_000) is COMPILED


@compiled
@pytest.mark.parametrize("format", FORMATS)
def test_every_sample_is_taken_in_both_directions(format):
    """Whatever a format documents is plain; at most one sample in ten is left to the exact way on its way back."""
    engine, left = REGISTRY[format]._engine, 0
    samples = goldens(format) + {"canal": shop_canal, "debezium": shop_debezium}.get(format, list)()
    for message in samples:
        payload = engine.encode(message)
        assert payload == REGISTRY[format]._encode_exact(message)
        text = engine.decode(payload)
        left += text is None
        assert text in (None, REGISTRY[format]._reader.decode(payload))
    assert left <= len(samples) / 10


@compiled
def test_members_may_come_in_any_order(engine):
    """The payload has them in the order of the schema, and the engine expects the order of the last message."""
    one = b'{"type":"INSERT","id":1,"table":"t","es":2,"database":"d","gtid":"g"}'
    other = b'{"gtid":"g","database":"d","es":2,"table":"t","id":1,"type":"INSERT"}'
    payloads = [engine.encode(message) for message in (one, other, one)]
    assert payloads == [CANAL._encode_exact(one)] * 3
    assert payloads[0] is not None


@compiled
def test_what_a_message_leaves_out_does_not_stay_for_the_next(engine):
    """The engine keeps what the last extras said, because the next message often says the same."""
    texts = [
        b'{"type":"INSERT","pkNames":null,"extra":1}',
        b'{"type":"INSERT"}',
        b'{"type":"INSERT","pkNames":["a"],"x":[]}',
    ]
    payloads = [CANAL.encode(text) for text in texts]
    for _ in range(3):
        for payload in payloads:
            assert engine.decode(payload) in (None, CANAL._reader.decode(payload))
    assert engine.decode(payloads[1]) is not None


@compiled
def test_lines_go_on_until_one_is_left(engine):
    """Whoever calls does that one the exact way, and goes on behind it."""
    good, bad = b'{"type":"INSERT"}', b'{"type":7}'
    out = Buffer()
    assert engine.encode_lines([good, good, bad, good], 0, out) == 2
    assert out.taken() == CANAL.encode(good) * 2
    assert engine.encode_lines([good, good, bad, good], 3, out) == 4


@compiled
def test_payloads_become_lines_up_to_a_size(engine):
    """And up to one that is left, whose position is told."""
    payload, out = CANAL.encode(b'{"type":"INSERT"}'), Buffer()
    assert engine.decode_lines(payload * 3, 0, 3, out, 1) == (len(payload), 1)
    assert engine.decode_lines(payload * 2 + b"\x02", len(payload), 2, out, 1 << 20) == (2 * len(payload), 1)
    assert out.taken() == CANAL.decode(payload) + b"\n" + CANAL.decode(payload) + b"\n"
    with pytest.raises(ValueError, match="a position"):
        engine.decode_lines(payload, len(payload) + 1, 1, out, 1)


@compiled
@pytest.mark.parametrize(
    ("text", "is_plain"),
    [
        (b'{"type":"INSERT","data":[{"a":1.20}]}', True),
        (b'{"type":"INSERT","data":[{"a":-0}]}', False),
        (b'{"type":"INSERT","data":[{"a":[-0]}]}', False),
        (b'{"type":"INSERT","data":[{"a":123456789012345678}]}', True),
        (b'{"type":"INSERT","data":[{"a":9223372036854775808}]}', False),
        (b'{"type":"INSERT","extra":{"a":1,"a":2}}', False),
        (b'{"type":"INSERT"', False),
    ],
)
def test_what_msgspec_parses_exactly_is_plain(engine, text, is_plain):
    """It would hide a negative zero, an integer of more than 64 bits, and a member given twice."""
    assert engine.is_plain(text) is is_plain


def test_several_threads_may_use_one_format():
    """None sees what another does."""
    messages = shop_canal()[:60]
    expected = [CANAL._encode_exact(message) for message in messages]
    found = []

    def work():
        payloads = [cdcavro.encode(message, "canal") for message in messages * 5]
        found.append(payloads == expected * 5 and [cdcavro.decode(one, "canal") for one in expected] != [])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 4


@compiled
@pytest.mark.parametrize("call", ["encode", "decode", "is_plain"])
def test_none_is_the_callers_mistake(engine, call):
    """It is not taken for bytes."""
    with pytest.raises(TypeError):
        getattr(engine, call)(None)


@compiled
def test_arguments_that_lead_outside_are_refused(engine):
    """Before a byte is read."""
    with pytest.raises(ValueError, match="from an index on"):
        engine.encode_lines([b"{}"], -1, Buffer())
    with pytest.raises(ValueError, match="a buffer"):
        engine.encode_lines([b"{}"], 0, None)
    with pytest.raises(ValueError, match="a buffer"):
        engine.decode_lines(b"\0", 0, 1, None, 1)


ITEM = record(field("x", ["null", "string"]), name="Item")
GIVEN = [
    mine(nullable("a", "string"), REST),
    mine(nullable("a", "string"), {**REST, "type": mapping("string")}),
    mine(nullable("a", "string"), {**REST, "type": mapping(record(name="Empty"))}),
    mine(nullable("a", array(["null", "long"])), nullable("b", ITEM), nullable("c", "boolean", missing="null")),
    mine(field("q", ["null", "string"], json={"name": 'q"b'}), REST),
    mine(nullable("a", mapping("int")), nullable("b", "long", "string"), nullable("c", "int", "boolean")),
]


@pytest.mark.parametrize("format", GIVEN)
def test_the_law_holds_for_schemas_that_are_given(format):
    """In whatever order members, notes and entries of a rest come."""
    random = Random(7)
    names = ["a", "b", "c", "x", "y", 'q\\"b', "extras", "value", "\\u0061"]
    values = [
        '"t"',
        "1",
        "true",
        "null",
        "0.0",
        "-0.0",
        "{}",
        '{"x":1}',
        '{"x":"1","y":2}',
        '["1",2]',
        "[]",
        '{"e":{}}',
    ]
    for _ in range(3_000):
        count = random.randrange(5)
        members = [f'"{random.choice(names)}":{random.choice(values)}' for _ in range(count)]
        message = ("{" + ",".join(members) + "}").encode()
        payload, _ = compared(format._engine.encode, format._encode_exact, message)
        if payload is not None:
            compared(format._engine.decode, format._reader.decode, payload)
            compared(format._engine.decode, format._reader.decode, damaged(random, payload))


@compiled
@pytest.mark.skipif(sys.platform != "linux", reason="memory is told elsewhere")
def test_room_for_a_large_message_does_not_wait_for_the_next(engine):
    """What was needed once is given back: so much is no part of any heap that stays."""
    large = b'{"type":"INSERT","data":[{"a":"' + b"x" * (48 << 20) + b'"}]}'
    before = _resident()
    assert engine.decode(engine.encode(large)) == large
    assert _resident() - before < len(large) / 2


def _resident():
    """Return the resident memory of this process in bytes."""
    with open("/proc/self/statm", encoding="ascii") as stream:  # noqa: PTH123
        return int(stream.read().split()[1]) * 4096

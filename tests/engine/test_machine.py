"""The engine: what it takes is what the exact way gives, and what it does not take is left to that."""

from __future__ import annotations

import sys
import threading
from array import array
from functools import partial
from random import Random
from struct import pack as pack_bytes
from struct import unpack

import pytest

import cdcavro
from cdcavro.engine.machine import COMPILED, Engine
from cdcavro.engine.payloads import Slices, pack
from cdcavro.files.lines import Chunk
from cdcavro.wire.formats import FORMATS, REGISTRY
from cdcavro.wire.message_program import message_program
from support import wire
from support.colliding import colliding
from support.columns import column, read
from support.engine_trial import BOTH, compared, trial
from support.messages import bare_files, goldens, shop_canal, shop_debezium
from support.mutations import damaged, mutated
from support.processes import resident
from support.roundtrip import outcome
from support.wire import REST, field, mapping, mine, nullable, record

compiled = pytest.mark.skipif(not COMPILED, reason="nothing is compiled here")
CANAL = REGISTRY["canal"]


@pytest.fixture
def engine():
    """Return an engine of its own, which has seen no message."""
    return Engine(message_program(CANAL.envelope))


@pytest.mark.parametrize("format", FORMATS)
def test_mutated_messages_and_damaged_payloads_have_one_outcome(format):
    """Byte for byte, and an error of the project for whatever is refused."""
    outcomes = trial(format, 150 if COMPILED else 50, 1)
    assert (outcomes[f"encode: {BOTH}"] > 0) is COMPILED


@pytest.mark.slow
@pytest.mark.parametrize("format", FORMATS)
def test_many_mutated_messages_and_damaged_payloads_have_one_outcome(format):
    """`tests/support/engine_trial.py` tries a million of each format; where nothing is compiled, there is one way only."""
    outcomes = trial(format, 4_000 if COMPILED else 400, 2)
    assert (outcomes[f"encode: {BOTH}"] > 1_000) is COMPILED


@pytest.mark.parametrize("format", FORMATS)
def test_messages_in_batches_become_what_they_become_one_by_one(format):
    """Mutated messages as lines and as columns, and their damaged payloads, with whatever is left between them."""
    random, own = Random(format), REGISTRY[format]
    messages = [mutated(random, random.choice(goldens(format))) for _ in range(200)]
    exact = [outcome(cdcavro.MessageError, own._encode_exact, message) for message in messages]
    payloads = [damaged(random, one) if random.random() < 0.3 else one for one in exact if type(one) is bytes]
    texts = [outcome(cdcavro.MessageError, own._reader.decode, payload) for payload in payloads]
    lines = [message for message in messages if b"\n" not in message]
    expected = [one for message, one in zip(messages, exact, strict=True) if b"\n" not in message]
    assert _encoded(own, b"\n".join(lines)) == b"".join(one for one in expected if type(one) is bytes)
    for given, convert, batch, wanted in (
        (messages, own.encode, own.encode_column, exact),
        (payloads, own.decode, own.decode_column, texts),
    ):
        packed = pack(column(given), convert, lambda *_: None, batch=batch)
        assert read(packed) == [one if type(one) is bytes else None for one in wanted]


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
@pytest.mark.parametrize("format", ["canal", "datahub_tuple"])
def test_a_name_given_twice_is_found_wherever_it_was_met_before(format):
    """Names of entries are kept for the next message, those of the last object say which comes next."""
    own = REGISTRY[format]
    for count in (1, 3, 40, 1_500):
        members = [f'"c{i}":"{i}"' for i in range(count)]
        for again in {0, count // 2, count - 1}:
            for row in (
                members,
                members,
                [*members, f'"c{again}":"x"'],
                members[::-1],
                [*members[::-1], members[again]],
            ):
                text = "{" + ",".join(row) + "}"
                message = text if format == "datahub_tuple" else f'{{"type":"INSERT","data":[{text},{text}]}}'
                payload, _ = compared(own._engine.encode, own._encode_exact, message.encode())
                assert (own._engine.encode(message.encode()) is None) is (payload is None)
                if payload is not None:
                    compared(own._engine.decode, own._reader.decode, payload)
                    twice = payload.replace(b"\x04c1\x04", b"\x04c0\x04", 1)
                    compared(own._engine.decode, own._reader.decode, twice)


@compiled
def test_names_of_two_maps_do_not_meet():
    """A name that one map has may be in another, above, below or beside it."""
    for value in ('{"a":1,"b":{"a":{"a":2}},"c":1}', '{"a":1,"b":{"a":{"a":2}},"a":1}', '{"b":{"a":1,"a":1}}'):
        for message in (f'{{"type":"I","data":[{value}],"old":[{value}]}}', value):
            for format in ("oms_canal", "datahub_tuple"):
                own = REGISTRY[format]
                for _ in range(3):
                    compared(own._engine.encode, own._encode_exact, message.encode())


KAFKA = [
    '{"topic":"t","partition":0,"offset":7,"timestamp":1,"timestamp_type":"x","key":"k","headers":[],"value":%s}',
    '{"value":%s}',
    ' { "key" : {"a":[1, 2.50]} , "value" : %s , "offset":1e3 } ',
    '{"value":%s,"topic":"t\\u00e9\\n"}',
    '{"\\u0074opic":"t","v\\u0061lue":%s}',
]
NO_RECORDS = ['{"topic":"t","value":%s,"value":{}}', '{"topic":"t","other":1,"value":%s}', '{"topic":"t","value":[%s]}']


@compiled
@pytest.mark.parametrize("format", [name for name in FORMATS if name != "debezium"])
@pytest.mark.parametrize("around", KAFKA)
def test_messages_in_kafka_records_are_taken(format, around):
    """In whatever order the members of the record come; it is not the message that tells how deep values may be."""
    own = REGISTRY[format]
    for message in [*bare_files(format).values()][:3] * 2:
        sent = around.replace("%s", message.decode()).encode()
        payload = own._engine.encode(sent)
        assert payload is not None
        assert payload == own._encode_exact(sent)
        text = own._engine.decode(payload)
        assert text in (None, own._reader.decode(payload))
        assert text is not None or format in ("oms_default_extend_column_type", "oms_dataworks", "datahub_blob")
        assert own._engine.decode(own._engine.encode(message)) in (None, own._reader.decode(own._encode_exact(message)))


@compiled
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("around", NO_RECORDS)
def test_what_only_looks_like_a_kafka_record_has_one_outcome(format, around):
    """A message of its own, or none."""
    own = REGISTRY[format]
    for message in goldens(format)[:3]:
        compared(own._engine.encode, own._encode_exact, around.replace("%s", message.decode()).encode())


@compiled
@pytest.mark.parametrize(
    "text", ['{"topic":1}', "{}", '{"value":1}', '{"topic":1,"topic":2}', "[]", '{"x":1}', " {} x", ""]
)
def test_what_stands_around_a_message_is_checked(text):
    """Only the members of a Kafka record may be around it, and none twice."""
    own = REGISTRY["oms_canal"]
    (payload,) = {own.encode('{"type":"I","data":[{"a":1}]}')}
    extras = payload.index(b"/", len(payload) - 200 if len(payload) > 200 else 0) - 2
    for at in (extras,):
        kafka = b"\x0akafka" + bytes([len(text) << 1]) + text.encode()
        count = payload[at] >> 1
        for some in (kafka, kafka * 2):
            more = bytes([(count + some.count(b"\x0akafka")) << 1])
            sent = payload[:at] + more + some + payload[at + 1 :]
            compared(own._engine.decode, own._reader.decode, sent)


BLOB = '{"schema":{"dataColumn":[%s]},"payload":{"op":"INSERT"},"version":"1"}'


@compiled
@pytest.mark.parametrize("items", ["x", "axax", "xxa", "aaX", "xX", "XxXa", "a"])
def test_members_of_items_come_back_as_they_were(items):
    """Types that the schema does not know stand in extras, each with the index of its column."""
    own = REGISTRY["datahub_blob"]
    types = {
        "x": '{"name":"c","type":"bigint unsigned"}',
        "a": '{"name":"c","type":"BIGINT"}',
        "X": '{"name":"c","type":7}',
    }
    message = (BLOB % ",".join(types[item] for item in items)).encode()
    payload, _ = compared(own._engine.encode, own._encode_exact, message)
    if payload is None:
        return
    again = own.encode(BLOB % types["x"])
    for sent in (payload, again, payload, payload):
        assert own._engine.decode(sent) == own._reader.decode(sent)
    for old, new in ((b"/0/", b"/1/"), (b"/0/", b"/9/"), (b"/1/", b"/0/"), (b"/0/", b"/-/"), (b"/2/", b"/1/")):
        compared(own._engine.decode, own._reader.decode, payload.replace(old, new))


@compiled
def test_names_with_escapes_are_taken(engine):
    """They are the names that the escapes stand for, given once."""
    for format in ("oms_canal", "datahub_tuple"):
        own = REGISTRY[format]
        for row in ('{"\\u00e9":1}', '{"a\\"b":1,"\\n":{"\\ud83d\\ude00":2}}', '{"\\u0061":1,"a":2}', '{"\\ud83d":1}'):
            message = (
                row if format == "datahub_tuple" else f'{{"t\\u0079pe":"I","data":[{row}],"\\t/~":{row}}}'
            ).encode()
            for _ in range(3):
                payload, _ = compared(own._engine.encode, own._encode_exact, message)
                assert (own._engine.encode(message) is None) is (payload is None)
                if payload is not None:
                    compared(own._engine.decode, own._reader.decode, payload)


@compiled
@pytest.mark.parametrize("digits", [3_999, 4_001, 300_000])
def test_numbers_may_have_any_number_of_digits(digits):
    """They stay as they are."""
    own = REGISTRY["oms_canal"]
    for number in ("7" * digits, "-0." + "7" * digits, "7" * digits + "e-7"):
        message = f'{{"type":"I","data":[{{"a":{number},"b":[{number}]}}],"x":{number}}}'.encode()
        payload = own._engine.encode(message)
        assert payload == own._encode_exact(message)
        assert own._engine.decode(payload) == own._reader.decode(payload)


@pytest.mark.slow
@compiled
@pytest.mark.parametrize("count", [63, 1_001, 70_000, 100_000, 100_001])
def test_many_members_may_have_no_field(engine, count):
    """As many as the exact way takes, and back."""
    members = ",".join(f'"x{i}":{i}' for i in range(count))
    message = (
        f'{{"type":"INSERT","pkNames":null,"old":null,"sqlType":null,"mysqlType":null,"data":null,{members}}}'.encode()
    )
    payload, how = compared(engine.encode, CANAL._encode_exact, message)
    assert (payload is not None) is (count <= 100_000)
    if payload is not None:
        assert how == BOTH
        for _ in range(2):
            assert engine.decode(payload) == CANAL._reader.decode(payload)
    assert engine.decode(engine.encode(b'{"type":"INSERT"}')) == b'{"type":"INSERT"}'


@compiled
def test_more_names_than_are_kept_make_room(engine):
    """Columns of ever new tables do not fill the engine for ever."""
    for number in range(60):
        row = ",".join(f'"t{number}_{i}":"1"' for i in range(400))
        message = f'{{"type":"INSERT","data":[{{{row}}},{{{row}}}]}}'.encode()
        payload = CANAL._encode_exact(message)
        assert engine.encode(message) == payload
        assert engine.decode(payload) == CANAL._reader.decode(payload)


def _doubles(random, count):
    """Return numbers with a point: doubles of all sizes, their neighbours, and texts that no double has."""
    for _ in range(count):
        bits = random.randrange(0x3F1A000000000000, 0x4341C37937E08400)
        (one,) = unpack("<d", pack_bytes("<Q", bits if random.random() < 0.7 else bits >> 52 << 52))
        text = repr(one)
        digits = str(random.randrange(10 ** random.randrange(1, 19))).rjust(random.randrange(2, 22), "0")
        yield text
        yield text[:-1] + str(random.randrange(10))
        yield f"-{text}{random.randrange(10)}" if "e" not in text else text
        yield f"{random.randrange(2**52, 10**16)}.0"
        yield f"{random.randrange(100)}.{digits}"


@compiled
@pytest.mark.parametrize("seed", range(4))
def test_doubles_are_those_that_python_prints_so(seed):
    """Read to the nearest one, and printed with the fewest digits that only it has."""
    wire_format = REGISTRY["oms_canal"]
    numbers = list(_doubles(Random(seed), 4_000))
    for start in range(0, len(numbers), 1_000):
        row = ",".join(f'"c{i}":{number}' for i, number in enumerate(numbers[start : start + 1_000]))
        message = f'{{"type":"INSERT","data":[{{{row}}}]}}'.encode()
        payload = wire_format._encode_exact(message)
        assert wire_format._engine.encode(message) == payload
        assert wire_format._engine.decode(payload) == wire_format._reader.decode(payload)


@compiled
def test_short_doubles_have_room(engine):
    """A payload has more bytes for one than its text has."""

    def message(some):
        values = ",".join(f'"{name}":1.5' for name in some)
        return f'{{"type":"INSERT","data":[{{{values}}}]}}'.encode()

    names = [f"{number:x}" for number in range(8_000)]
    for first in range(0, len(names), 20):
        engine.encode(message(names[first : first + 21]))
    assert engine.encode(message(names)) == CANAL._encode_exact(message(names))


@compiled
@pytest.mark.parametrize("text", ['{"type":"I",}', '{"data":[{"a":"1",}]}', '{"data":[{"a":"1"},]}', '{,"type":"I"}'])
def test_a_comma_with_nothing_behind_it_is_left(engine, text):
    """Also where the members before it came in the expected order."""
    for _ in range(3):
        assert engine.encode(text.encode()) is None
        engine.encode(text.replace(",}", "}").replace(",]", "]").encode())


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
@pytest.mark.parametrize("is_cut", [False, True])
def test_a_long_text_that_the_message_before_had_is_taken_as_one_that_is_new(is_cut):
    """As Debezium repeats the schema: other texts that begin or end alike are told from it, and what ends too early."""
    own, name = REGISTRY["debezium"], "n" * 300
    column = f'{{"type":"string","optional":true,"field":"{name}"}}'
    texts = [
        f"[{column}]",
        f"[{column},{column}]",
        f"[{column}, {column}]",
        f'[{column[:-1]},"version":1}}]',
        f'[{column[:-1]},"version":-0}}]',
        f'[{column[:-1]},"version":01}}]',
        f'[{column[:-1]},"type":1}}]',
        f"[{column}",
        f'[{column},"\\u001F"]',
        f'[{column},"\\u001f"]',
        "[" * 130 + f'"{name}"' + "]" * 130,
    ]
    texts += [text.replace(name, "é" * 200) for text in texts] + ["[]", "7"]
    message = '{"schema":{"type":"struct","fields":%s,"name":"a"},"payload":{"op":"c","after":{"id":1,"x":%s}}}'
    engine, taken = Engine(message_program(own.envelope)), set()
    for first in texts:
        for i, (schema, value) in enumerate([(first, first), (first, "1"), *((text, first) for text in texts)]):
            whole = (message % (schema, value)).encode()
            taken.add(compared(engine.encode, own._encode_exact, whole[:-i] if is_cut and i else whole)[1])
            engine.is_plain(whole)
    assert BOTH in taken


@compiled
def test_lines_go_on_until_one_is_left(engine):
    """Whoever calls does that one the exact way, and goes on behind it; what has no end yet is no line."""
    good, bad = b'{"type":"INSERT"}', b'{"type":7}'
    text = b"\n".join([good, good, bad, good, good])
    place = 2 * len(good) + 2
    assert engine.encode_text(text, 0) == (CANAL.encode(good) * 2, 2, place)
    assert engine.encode_text(text, place) == (b"", 0, place)
    assert engine.encode_text(text, place + len(bad) + 1) == (CANAL.encode(good), 1, len(text) - len(good))
    assert engine.encode_text(text, len(text)) == (b"", 0, len(text))


@compiled
def test_payloads_become_lines_up_to_a_size(engine):
    """And up to one that is left, whose position is told."""
    payload = CANAL.encode(b'{"type":"INSERT"}')
    line = CANAL.decode(payload) + b"\n"
    assert engine.decode_lines(payload * 3, 0, 3, 1) == (line, len(payload), 1)
    assert engine.decode_lines(payload * 3, 0, 3, len(line) + 1) == (line * 2, 2 * len(payload), 2)
    assert engine.decode_lines(payload * 3, 0, 2, 1 << 20) == (line * 2, 2 * len(payload), 2)
    assert engine.decode_lines(payload * 2 + b"\x02", len(payload), 2, 1 << 20) == (line, 2 * len(payload), 1)


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


@pytest.mark.parametrize("format", ["canal", "debezium"])
def test_many_threads_on_one_format_get_what_one_thread_gets(format):
    """In both directions at once, message by message and in batches; none sees what another does."""
    own, messages = REGISTRY[format], (goldens(format) + shop_canal()[:40] + [b"{", b"[]"])[:80]
    text = b"".join(message.replace(b"\n", b" ") + b"\n" for message in messages)
    payloads = [
        payload
        for payload in map(partial(outcome, cdcavro.MessageError, own._encode_exact), messages)
        if type(payload) is bytes
    ]
    block = b"".join(payloads)
    works = [
        lambda: [str(outcome(cdcavro.MessageError, own.encode, message)) for message in messages],
        lambda: [str(outcome(cdcavro.MessageError, own.parse, message)) for message in messages],
        lambda: [own.decode(payload) for payload in payloads],
        lambda: b"".join(lines for lines, _ in own.decode_block(block, len(payloads), own.schema)),
        lambda: _encoded(own, text),
        lambda: pack(column(messages), own.encode, lambda *_: None, batch=own.encode_column),
        lambda: pack(column(payloads), own.decode, batch=own.decode_column),
    ]
    expected = [work() for work in works]
    found, start = [], threading.Barrier(2 * len(works))

    def repeat(number):
        start.wait()
        found.append(all(works[number]() == expected[number] for _ in range(10 if COMPILED else 3)))

    threads = [threading.Thread(target=repeat, args=(number % len(works),)) for number in range(2 * len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * len(threads)


def _encoded(format, text):
    """Return the payloads of the lines of a text, without those that are faulty."""
    pieces = []
    line, position = None, 0
    while position >= 0:
        some, _, position = format.encode_text(text, position)
        line, position = Chunk(text).line(position, 1)
        exact = None if line is None else outcome(cdcavro.MessageError, format.encode, line.raw)
        pieces += [some, exact if type(exact) is bytes else b""]
    return b"".join(pieces)


@pytest.mark.slow
@compiled
def test_threads_do_not_wait_for_each_other(engine):
    """The engine lets go of the interpreter while it is at work on much."""
    large = b'{"type":"INSERT","data":[{"a":"' + b"x" * (60 << 20) + b'"}]}\n'
    turns, ended = [], threading.Event()

    def work():
        engine.encode_text(large, 0)
        engine.encode(large)
        ended.set()

    thread = threading.Thread(target=work)
    before, switches = sys.getswitchinterval(), 0
    sys.setswitchinterval(60)
    try:
        thread.start()
        while not ended.wait(0.001):
            turns.append(switches)
        thread.join()
    finally:
        sys.setswitchinterval(before)
    assert len(turns) > 5


@compiled
@pytest.mark.parametrize("call", ["encode", "decode", "is_plain"])
def test_none_is_the_callers_mistake(engine, call):
    """It is not taken for bytes."""
    with pytest.raises(TypeError):
        getattr(engine, call)(None)


@compiled
@pytest.mark.parametrize("position", [-1, 3, 2**62, -(2**62)])
def test_positions_that_lead_outside_are_refused(engine, position):
    """Before a byte is read."""
    with pytest.raises(ValueError, match="from a position in the text on"):
        engine.encode_text(b"{}", position)
    with pytest.raises(ValueError, match="from a position on"):
        engine.decode_lines(b"\0\0", position, 1, 1)
    for call in (engine.encode_column, engine.decode_column):
        with pytest.raises(ValueError, match="from an index on"):
            call(column([b"", b""]), position, 0, 1)


@compiled
@pytest.mark.parametrize(("base", "most"), [(-1, 1), (2, 1), (0, 2**31)])
def test_values_end_within_what_an_offset_can_say(engine, base, most):
    """Before a byte is read."""
    with pytest.raises(ValueError, match="within 31 bits"):
        engine.encode_column(column([b"", b""]), 0, base, most)


@compiled
@pytest.mark.parametrize(
    "changed", [{"count": 3}, {"count": -1}, {"first": -1}, {"first": 2**62}, {"offsets": b""}, {"validity": b""}]
)
def test_a_column_that_is_shorter_than_said_is_refused(engine, changed):
    """The engine trusts nobody's lengths."""
    given = column([b"", b""])
    for name, value in changed.items():
        setattr(given, name, value)
    with pytest.raises(ValueError, match="a column with"):
        engine.encode_column(given, 0, 0, 1)


@compiled
def test_a_value_outside_of_the_bytes_is_left(engine):
    """Whoever reads it the exact way finds the fault."""
    offsets = array("i", [0, 2, 2**31 - 1, -1, 2]).tobytes()
    assert engine.encode_column(Slices(b"{}", offsets, None, 1, 1), 0, 0, 1) == (b"", b"", 0)
    assert engine.encode_column(Slices(b"{}", offsets, None, 3, 1), 0, 0, 1) == (b"", b"", 0)


ITEM = record(field("x", ["null", "string"]), name="Item")
GIVEN = [
    mine(nullable("a", "string"), REST),
    mine(nullable("a", "string"), {**REST, "type": mapping("string")}),
    mine(nullable("a", "string"), {**REST, "type": mapping(record(name="Empty"))}),
    mine(nullable("a", wire.array(["null", "long"])), nullable("b", ITEM), nullable("c", "boolean", missing="null")),
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


@pytest.mark.slow
@compiled
@pytest.mark.skipif(sys.platform != "linux", reason="memory is told elsewhere")
def test_room_for_a_large_message_does_not_wait_for_the_next(engine):
    """What was needed once is given back: so much is no part of any heap that stays."""
    large = b'{"type":"INSERT","data":[{"a":"' + b"x" * (48 << 20) + b'"}]}'
    before = resident()
    assert engine.decode(engine.encode(large)) == large
    assert resident() - before < len(large) / 2


@pytest.mark.slow
@compiled
def test_members_that_are_made_to_collide_are_left(engine):
    """Each would be held against all before it: of names with one hash, the engine takes a few, and leaves the message."""

    def message(names: list[str]) -> bytes:
        members = ",".join(f'"{name}":"1"' for name in names)
        return f'{{"type":"INSERT","database":"d","table":"t","data":[{{{members}}}]}}'.encode()

    names = [one.decode() for one in colliding(b"", 4, 5)]
    assert engine.encode(message(names)) is None
    assert CANAL.encode(message(names)) == CANAL._encode_exact(message(names))
    some = names[:60]
    assert Engine(message_program(CANAL.envelope)).encode(message(some)) is not None
    others = [f"{name[:-8]}{i:08d}" for i, name in enumerate(names)]
    assert Engine(message_program(CANAL.envelope)).encode(message(others)) is not None

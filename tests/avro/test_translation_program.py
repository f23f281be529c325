"""Programs of pairs of schemas, as text, and the engine that runs them, held against the exact way."""

from __future__ import annotations

import json
import struct
import threading
from array import array as numbers_of
from random import Random

import pytest

from cdcavro.avro import translation_program
from cdcavro.avro.binary import check_payload
from cdcavro.avro.schema import parse_schema
from cdcavro.avro.translation import translator
from cdcavro.avro.translation_program import check_program, pair_program
from cdcavro.engine.machine import COMPILED, Translator, Translators
from cdcavro.engine.payloads import Slices
from cdcavro.errors import CdcAvroError, SchemaError
from support.engine_trial import BOTH, LEFT
from support.roundtrip import outcome
from support.schema_data import cover, write
from support.schema_pairs import fastavro_reads
from support.translation_trial import trial
from support.wire import array, doubled, enum, field, mapping, record

compiled = pytest.mark.skipif(not COMPILED, reason="nothing is compiled here")
DATE = {"type": "int", "logicalType": "date"}
DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}
NODE = record(field("v"), field("next", ["null", "N"]), name="N")


def schema(declared):
    """Return the schema of a JSON value."""
    return parse_schema(json.dumps(declared))


def program(was, now, **more):
    """Return the lines of the program of two JSON values."""
    return str(pair_program(schema(was), schema(now), **more)).splitlines()


def turned(was, now, payload, **more):
    """Return what the engine makes of a payload, having held it against the exact way."""
    writer, reader = schema(was), schema(now)
    made = Translator(pair_program(writer, reader, **more)).translate(payload)
    exact = outcome(CdcAvroError, translator(writer, reader, **more), payload)
    assert made is None or made == exact
    return made


@compiled
@pytest.mark.parametrize(
    "wrapped", [lambda one: one, array, mapping, lambda one: ["null", one], lambda one: record(field("a", one))]
)
def test_the_default_of_an_enum_stands_for_symbols_that_it_lacks(wrapped):
    """By the engine and exactly, wherever the enum is, also where symbols that both have keep their places."""
    for reader in ({**enum("A", "Z"), "default": "Z"}, {**enum("A", "B"), "default": "B"}):
        was, now = wrapped(enum("A", "B", "C")), wrapped(reader)
        for value in cover(schema(was).root, Random(1)):
            payload = write(schema(was).root, value)
            made = turned(was, now, payload)
            texts = json.dumps(was), json.dumps(now)
            assert fastavro_reads(texts[1], texts[1], made) == fastavro_reads(*texts, payload)


# Programs


def test_a_pair_becomes_instructions():
    """One for each type that is read; fields in the order of the writer's, defaults between them."""
    was = record(field("a"), field("gone", "string"), field("b", ["null", "int"]), field("e", enum("A", "B", "C")))
    now = record(
        field("new", "string", default="é"),
        field("a", "double"),
        field("b", ["long", "null"]),
        field("e", enum("B", "A")),
        field("last", "int", default=7),
    )
    assert program(was, now) == [
        "0 record",
        "    default 04 c3 a9 at 0",
        "    field 1 at 1",
        "    skip 2",
        "    field 5 at 2",
        "    field 6 at 3",
        "    default 0e at 4",
        "1 to_double least=-2147483648 most=2147483647",
        "2 string",
        "3 nothing",
        "4 integer least=-2147483648 most=2147483647",
        "5 union",
        "    3 as 1",
        "    4 as 0",
        "6 enum",
        "    1 0 leave",
    ]


def test_fields_in_another_order_are_put_into_their_places():
    """What is the same is written as it comes, too."""
    was, now = record(field("a"), field("b", "string")), record(field("b", "string"), field("a"), field("c", default=1))
    assert program(was, now) == [
        "0 reorder",
        "    field 1 at 1",
        "    field 2 at 0",
        "    default 02 at 2",
        "1 integer least=-2147483648 most=2147483647",
        "2 string",
    ]


def test_what_both_encode_alike_is_only_checked():
    """As in `schema_pair`, a record within itself is taken for one that changes."""
    box = record(field("a", DATE), field("b", array("int")), field("c", mapping(DECIMAL)))
    same = pair_program(schema(box), schema(box))
    assert same.is_same
    assert str(same).splitlines() == [
        "0 record",
        "    field 1 at 0",
        "    field 3 at 1",
        "    field 5 at 2",
        "1 integer least=-719162 most=2932896",
        "2 integer least=-2147483648 most=2147483647",
        "3 array items=2 weightless=0 rewrites=0",
        "4 decimal bounds=0 length=2 size=-1",
        "5 map values=4 rewrites=0",
    ]
    assert not pair_program(schema(NODE), schema(NODE)).is_same
    assert check_program(schema(NODE)).is_same


@pytest.mark.slow
def test_guesses_and_what_would_have_no_end_are_left():
    """To the exact way, which says what is wrong."""
    assert program("bytes", "string") == ["0 leave"]
    assert program("bytes", "string", reinterpret=True) == ["0 string"]
    assert program("int", DATE) == ["0 leave"]
    assert program("int", DATE, reinterpret=True) == ["0 integer least=-719162 most=2932896"]
    assert program(["null", "int"], "int")[-2:] == ["    0", "    1"]
    huge = doubled(record(name="X"), 60)
    longer = doubled(record(field("a", default=1), name="X"), 60)
    assert str(check_program(schema(huge))).count("nothing") == 61
    assert Translator(check_program(schema(huge))).translate(b"") in (b"", None)
    assert "leave" in program(huge, longer)[0]


def test_what_has_no_bytes_always_becomes_the_same():
    """It is worked out once, however many records it is made of."""
    was, now = doubled(record(name="X"), 3), doubled(record(field("a", ["null", "int"], default=None), name="X"), 3)
    assert program(was, now)[:2] == ["0 record", "    default" + 8 * " 00" + " at 0"]
    deep = record(field("s", record(name="S")), field("n", "null"))
    into = record(field("n", ["int", "null"]), field("s", ["null", record(field("a", default=7), name="S")]))
    assert program(deep, into)[:2] == ["0 record", "    default 02 02 0e at 0"]
    for payload in (b"", b"\x00"):
        assert turned(was, now, payload) == (b"\0" * 8 if COMPILED and not payload else None)
        assert turned(array(deep), array(into), b"\x04" + payload) == (
            b"\x04\x02\x02\x0e\x02\x02\x0e\x00" if COMPILED and payload else None
        )


def test_errors_are_those_of_the_exact_way():
    """A default that is no value of its type; a reader that cannot read."""
    for was, now in ((record(), record(field("new", DATE, default=2**31 - 1))), ("string", "int")):
        assert str(outcome(SchemaError, program, was, now)) == str(
            outcome(SchemaError, translator, schema(was), schema(now))
        )


# The engine


@pytest.mark.slow
def test_damaged_payloads_of_random_pairs_have_one_outcome():
    """Byte for byte; none is left that nobody damaged. `tests/support/translation_trial.py` tries a million."""
    outcomes = trial(6_000, 1)
    left = outcomes[f"check: {LEFT}"] + outcomes[f"pair: {LEFT}"]
    assert (left == 0) is COMPILED
    assert (outcomes[f"pair: {BOTH}"] > 100) is COMPILED
    assert (outcomes[f"check, damaged: {BOTH}"] > 100) is COMPILED


@pytest.mark.slow
@pytest.mark.skipif(not COMPILED, reason="where nothing is compiled, there is one way")
@pytest.mark.parametrize("seed", range(2, 6))
def test_many_damaged_payloads_of_random_pairs_have_one_outcome(seed):
    """The same, with others."""
    assert trial(50_000, seed)[f"pair: {BOTH}"] > 1000


PLAIN = [
    ("boolean", "boolean", b"\x01"),
    ("int", "long", b"\xfe\xff\xff\xff\x0f"),
    ("long", "long", b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
    ("long", "float", b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
    ("int", "double", b"\x0e"),
    ("float", "double", struct.pack("<f", 1e-45)),
    ("float", "double", struct.pack("<f", float("nan"))),
    ("float", "double", struct.pack("<f", float("-inf"))),
    ("string", "bytes", b"\x04\xc3\xa9"),
    (DATE, DATE, b"\xc0\xca\x04"),
    (DECIMAL, {**DECIMAL, "precision": 5}, b"\x06\x00\x27\x0f"),
    (DECIMAL, DECIMAL, b"\x08\xff\xff\xd8\xf1"),
    (array("null"), array(["null", "int"]), b"\x04\x00"),
    (array("int"), array("double"), b"\x01\x02\x0e\x02\x0e\x00"),
    (array(array("int")), array(array("int")), b"\x01\x06\x02\x0e\x00\x00"),
    (mapping("int"), mapping(["int"]), b"\x02\x02k\x0e\x01\x06\x02l\x0e\x00"),
    (NODE, record(field("next", ["N", "null"]), field("v", "double"), name="N"), b"\x02\x02\x04\x00"),
]


@compiled
@pytest.mark.parametrize(("was", "now", "payload"), PLAIN)
def test_what_is_plain_is_not_left(was, now, payload):
    """By itself, and as a field that is read, moved, put into a union or left out."""
    assert turned(was, now, payload) is not None
    boxes = [
        record(field("x", "string"), field("a", now)),
        record(field("a", now), field("x", "string")),
        record(field("a", now if isinstance(now, list) else ["null", now]), field("n", default=1)),
        record(field("x", "string")),
        record(field("y", "string"), field("x", "string"), field("n", default=1)),
        record(field("y", "bytes"), field("a", now)),
    ]
    whole = record(field("x", "string"), field("a", was), field("y", "string"))
    for box in boxes:
        assert turned(whole, box, b"\x02x" + payload + b"\x04yy") is not None
    exact = outcome(CdcAvroError, check_payload, payload, schema(was))
    assert exact is None
    assert Translator(check_program(schema(was))).translate(payload) is payload


@pytest.mark.parametrize(
    ("was", "now", "payload"),
    [
        ("boolean", "boolean", b"\x02"),
        ("int", "int", b"\x80\x80\x80\x80\x10"),
        ("int", "int", b"\x82\x00"),
        ("long", "long", b"\xff" * 9 + b"\x02"),
        ("string", "string", b"\x04\xed\xa0"),
        ("string", "string", b"\x06\xed\xa0\x80"),
        ("string", "string", b"\x03"),
        ("bytes", "bytes", b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
        ("double", "double", b"\x00" * 7),
        (DATE, DATE, b"\xc2\x82\xe6\x02"),
        (DECIMAL, DECIMAL, b"\x04\x27\x10"),
        (DECIMAL, DECIMAL, b"\x04\xd8\xf0"),
        (DECIMAL, DECIMAL, b"\x00"),
        (enum("A", "B"), enum("A"), b"\x02"),
        (["null", "int"], "int", b"\x00"),
        (["null", "int"], ["null", "int"], b"\x04"),
        (array("int"), array("int"), b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00"),
        (array("int"), array("int"), b"\x02\x0e\x02\x0e\x02\x0e"),
        (array("null"), array("null"), b"\xc2\x9a\x0c\x00"),
        (array("null"), array("null"), b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00\x00"),
        (array(array("null")), array(array("null")), b"\x04" + b"\xc0\xa9\x07\x00" * 2 + b"\x00"),
        (mapping("int"), mapping("int"), b"\x02\x02k\x0e\x02\x02k\x0e\x00"),
        (NODE, NODE, b"\x02\x02" * 128 + b"\x02\x00"),
    ],
)
def test_what_is_wrong_is_left(was, now, payload):
    """So that the exact way says what and where; one that is only odd is read by that."""
    assert turned(was, now, payload) is None
    is_wrong = outcome(CdcAvroError, check_payload, payload, schema(was)) is not None
    assert not (is_wrong and Translator(check_program(schema(was))).translate(payload))


@compiled
def test_a_few_bytes_do_not_become_gigabytes(monkeypatch):
    """The engine stops where the exact way does, whether fields move or not."""
    monkeypatch.setattr(translation_program, "MAX_TRANSLATED", 3_000)
    item = record(field("a"), field("b"), name="S")
    for fields in ((field("a"), field("b")), (field("b"), field("a"))):
        longer = record(field("new", "string", default="x" * 996), *fields, name="S")
        for count, is_taken in ((2, True), (3, False)):
            payload = bytes([2 * count]) + b"\x00\x02" * count + b"\x00"
            engine = Translator(pair_program(schema(array(item)), schema(array(longer))))
            assert (engine.translate(payload) is not None) is is_taken


# Columns


def column(values):
    """Return values as a column in Arrow's layout."""
    offsets = numbers_of("i", [0])
    for value in values:
        offsets.append(offsets[-1] + len(value or b""))
    bits = sum(1 << i for i, value in enumerate(values) if value is not None)
    validity = bits.to_bytes(len(values) // 8 + 1, "little")
    return Slices(b"".join(value or b"" for value in values), offsets, validity, 0, len(values))


def said(count):
    """Return the three arrays of what is said of each value."""
    return tuple(numbers_of("i", [-7]) * count for _ in range(3))


PREFIXES = {
    b"\x00\x00\x00\x00\x01": ("int", "double"),
    b"\x01" * 17: ("long", "long"),
    b"\xc3\x01ABCDEFGH": (DATE, DATE),
}


@pytest.fixture
def translators():
    """Return translators of three prefixes, under the reader's schemas beside them."""
    made = Translators()
    for number, (prefix, (was, now)) in enumerate(PREFIXES.items()):
        made.add(number, Translator(pair_program(schema(was), schema(now))), prefix)
    return made


@compiled
def test_values_of_a_column_are_translated_by_their_prefixes(translators):
    """A null stays one; what is the reader's as it is is not written, but said to begin behind its prefix."""
    one, two, three = PREFIXES
    values = [one + b"\x0e", None, two + b"\x02", three + b"\x02", one + b"\x02"]
    arrays = said(5)
    written, stop = translators.by_prefix(column(values), arrays, 0, 100, (1000, 1000))
    assert (written, stop) == (struct.pack("<dd", 7, 1), 5)
    assert [list(one) for one in arrays] == [[0, -1, 1, 2, 0], [0, -1, 18, 11, 0], [108, 108, 108, 108, 116]]


@compiled
@pytest.mark.parametrize(
    "bad", [b"", b"\x02", b"\x00\x00\x00\x00\x02\x0e", b"\x00\x00\x00\x00\x01", b"\x01" * 17 + b"\x80"]
)
def test_a_column_is_translated_up_to_a_value_that_is_left(translators, bad):
    """Whoever calls does that one, and goes on behind it."""
    good = b"\x00\x00\x00\x00\x01\x0e"
    arrays = said(3)
    written, stop = translators.by_prefix(column([good, bad, good]), arrays, 0, 0, (1000, 1000))
    assert (written, stop) == (struct.pack("<d", 7), 1)
    assert translators.by_prefix(column([good, bad, good]), arrays, 2, 8, (1000, 1000)) == (written, 3)
    assert (arrays[1][0], arrays[2][0], arrays[1][2], arrays[2][2]) == (0, 8, 0, 16)


@compiled
def test_a_column_is_translated_by_numbers_and_up_to_its_bounds(translators):
    """The most bytes in all, and the most of a payload."""
    values = column([b"\x0e", b"\x02", b"\x02", b"\xfe\xff\xff\xff\x0f"])
    for bounds, expected in (((1000, 1000), 4), ((15, 1000), 1), ((1000, 4), 3)):
        arrays = (numbers_of("i", [0, 0, 1, 1]), *said(4)[1:])
        assert translators.by_number(values, arrays, 0, 0, bounds)[1] == expected
    arrays = (numbers_of("i", [0, -1, 99, 0]), *said(4)[1:])
    assert translators.by_number(values, arrays, 0, 0, (1000, 1000))[1] == 1
    assert translators.by_number(values, arrays, 2, 0, (1000, 1000))[1] == 2


@compiled
def test_columns_that_are_not_what_they_say_are_refused(translators):
    """Before a byte is read; a value whose offsets lead outside is left."""
    given = column([b"\x00\x00\x00\x00\x01\x0e"] * 20)
    for name, wrong in (("count", 21), ("validity", b"\xff"), ("first", -1)):
        odd = column([b"\x00\x00\x00\x00\x01\x0e"] * 20)
        setattr(odd, name, wrong)
        with pytest.raises(ValueError, match="a column with"):
            translators.by_prefix(odd, said(21), 0, 0, (1000, 1000))
    with pytest.raises(ValueError, match="a place for what is said"):
        translators.by_prefix(given, said(19), 0, 0, (1000, 1000))
    for first, base, room in ((21, 0, 1000), (-1, 0, 1000), (0, 1001, 1000), (0, -1, 1000), (0, 0, 2**31)):
        with pytest.raises(ValueError, match=r"from an index on|less than 2 GiB"):
            translators.by_prefix(given, said(20), first, base, (room, 1000))
    for i, place in ((1, -1), (2, 1), (3, len(given.data) + 1)):
        odd = column([b"\x00\x00\x00\x00\x01\x0e"] * 20)
        odd.offsets[i] = place
        assert translators.by_prefix(odd, said(20), 0, 0, (1000, 1000))[1] < i + 1
    with pytest.raises(BufferError):
        translators.by_prefix(given, (b"", b"", b""), 0, 0, (1000, 1000))
    for number, prefix in ((-1, b""), (0, b"x" * 33), (0, b"\x00\x00")):
        with pytest.raises(ValueError, match="a prefix as long as others"):
            translators.add(number, Translator(check_program(schema("int"))), prefix)


@pytest.mark.slow
@compiled
def test_thousands_of_schemas_are_found_by_their_prefixes():
    """Each value is translated by its own."""
    made, values = Translators(), []
    for number in range(5_000):
        prefix = b"\x00" + number.to_bytes(4, "big")
        box = record(field("a"), field("n", "long", default=number))
        made.add(number, Translator(pair_program(schema(record(field("a"))), schema(box))), prefix)
        values.append(prefix + b"\x0e")
    arrays = said(5_000)
    written, stop = made.by_prefix(column(values), arrays, 0, 0, (2**31 - 1, 1000))
    assert (stop, list(arrays[0])) == (5_000, list(range(5_000)))
    assert written == b"".join(b"\x0e" + write(schema("long").root, number) for number in range(5_000))


@compiled
def test_several_threads_may_use_one_translator():
    """None sees what another does."""
    was = schema(array(mapping("int")))
    engine = Translator(pair_program(was, schema(array(mapping("double")))))
    payloads = [write(was.root, [{f"k{i}": i for i in range(n)}] * 400) for n in (0, 1, 7, 20)]
    expected = [translator(was, schema(array(mapping("double"))))(payload) for payload in payloads]
    found = []

    def work():
        found.append([[engine.translate(payload) for payload in payloads] for _ in range(20)] == [expected] * 20)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 4

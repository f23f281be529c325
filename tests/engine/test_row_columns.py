"""Columns of messages turned into columns of rows: the rows of one message at a time, and nothing read outside of them."""

from __future__ import annotations

from array import array
from contextlib import suppress
from random import Random

import pytest

from cdcavro.change.model import Arrival
from cdcavro.change.order import Clock
from cdcavro.engine.machine import COMPILED, RowEngine, encode_places
from cdcavro.engine.payloads import Longs, Slices
from cdcavro.errors import CdcAvroError
from cdcavro.table.tables import Tables
from cdcavro.table.writing.message_typer import MessageTyper
from cdcavro.table.writing.table_writer import encoded_place
from cdcavro.wire.formats import FORMATS, get_format
from support.columns import column
from support.messages import ROW_FORMATS
from support.mutations import mutated
from support.processes import resident
from support.rows_trial import PLACES, ZONE, of_type, shop, with_value

pytestmark = pytest.mark.skipif(not COMPILED, reason="where nothing is compiled, all goes the exact way")
MOST = 1 << 26


def stream(format: str) -> list[bytes]:
    """Return the changes of the database, and those of a table with one version."""
    return [*shop(format), *30 * of_type(format, "STRING" if format == "datahub_blob" else "varchar(20)")]


def learned(format: str) -> MessageTyper:
    """Return what has learned the changes of the database, and the patterns of its messages."""
    tables = Tables(zone=ZONE)
    typer = MessageTyper(format, tables, is_all_learned=True)
    for message in stream(format):
        for change in typer.changes(message):
            with suppress(CdcAvroError):
                tables.learn(change)
    for offset, message in enumerate(stream(format)):
        typer.write(message, Arrival(offset=offset))
    return typer


def known(typer: MessageTyper, format: str) -> list[bytes]:
    """Return the messages of the database that the engine types."""
    return [message for message in stream(format) if typer.type_by_pattern(message) is not None]


def sliced(data: bytes, ends: bytes, keyed: bytes | None) -> Slices:
    """Return a column that the engine made."""
    return Slices(data, ends, keyed, 0, len(ends) // 4 - 1)


def rows_of(engine, made) -> list[tuple[int, int, bytes | None, bytes]]:
    """Return the rows of columns: message, pattern, key and payload."""
    messages, patterns, keyed, key_ends, keys, ends, payloads = made[:7]
    own, payload = sliced(keys, key_ends, keyed), sliced(payloads, ends, None)
    numbers = zip(array("i", messages), array("i", patterns), strict=True)
    return [(*pair, own.get(i), payload.get(i)) for i, pair in enumerate(numbers)]


def in_columns(engine, messages, places, most=MOST):
    """Return the rows of a column of messages, and the indices of those that were left."""
    made, left, i = [], [], 0
    while i < len(messages):
        i, is_full = engine.take_column(messages_of(messages), None if places is None else column(places), i, most)
        if is_full:
            made += rows_of(engine, engine.taken())
        elif i < len(messages):
            left.append(i)
            i += 1
    return made + rows_of(engine, engine.taken()), left


def _same(_: Random, message: bytes) -> bytes:
    return message


def messages_of(messages):
    """Return messages as a column that begins somewhere in its buffers."""
    return column(messages, [b"{", None])


@pytest.mark.slow
@pytest.mark.parametrize("format", ROW_FORMATS)
def test_a_column_has_the_rows_of_its_messages(format):
    """Whole, damaged and null, at any place, in one piece or many; those that are left are left one by one, too."""
    random, engine = Random(format), learned(format)._engine
    some = random.choices(stream(format), k=300)
    changed = [random.choice((_same, with_value, mutated))(random, one) for one in some]
    messages = [None if random.random() < 0.05 else one for one in changed]
    places = [random.choice((None, encoded_place(random.choice(PLACES)))) for _ in messages]
    alone = [
        None if one is None else engine.rows(one, at or bytes(5)) for one, at in zip(messages, places, strict=True)
    ]
    wanted = [(i, *row) for i, rows in enumerate(alone) for row in rows or ()]
    left = [i for i, rows in enumerate(alone) if rows is None and messages[i] is not None]
    assert len(wanted) > 20
    assert len(left) > 20
    for most in (MOST, 1, 2000):
        assert in_columns(engine, messages, places, most) == (wanted, left)
    without = [None if one is None else engine.rows(one, bytes(5)) for one in messages]
    assert in_columns(engine, messages, None)[0] == [(i, *row) for i, rows in enumerate(without) for row in rows or ()]


def test_rows_wait_while_another_message_is_typed():
    """What is learned between two pieces of a column does not touch the rows of the first."""
    typer = learned("canal")
    engine, messages = typer._engine, known(typer, "canal")
    wanted = in_columns(engine, messages, None)
    engine.take_column(column(messages), None, 0, MOST)
    assert engine.rows(messages[-1], bytes(5)) is not None
    assert engine.survey(messages[-1], {}) is not None
    assert rows_of(engine, engine.taken()) == wanted[0]
    assert rows_of(engine, engine.taken()) == []


@pytest.mark.parametrize("offsets", [[0, 99], [5, 2], [-4, 3], [2**31 - 1, -1]])
def test_a_message_that_is_not_within_its_column_is_left(offsets):
    """So is one whose place is not; nothing is read there."""
    typer = learned("canal")
    engine, message = typer._engine, known(typer, "canal")[-1]
    outside = Slices(message[:40], array("i", offsets).tobytes(), None, 0, 1)
    assert engine.take_column(outside, None, 0, MOST) == (0, False)
    assert engine.take_column(column([message]), outside, 0, MOST) == (0, False)
    assert rows_of(engine, engine.taken()) == []


@pytest.mark.parametrize("place", [b"", b"\2", b"\0" * 4, b"\2\x7fa\0\0\0\0", b"\4\0\0\0\0"])
def test_a_place_that_is_none_leaves_its_message(place):
    """The bytes of a place are five fields, each null or a value."""
    typer = learned("canal")
    engine, message = typer._engine, known(typer, "canal")[-1]
    assert engine.take_column(column([message]), column([encoded_place(Arrival(line=3))]), 0, MOST) == (1, False)
    assert engine.take_column(column([message]), column([place]), 0, MOST) == (0, False)


def test_a_column_of_places_is_as_long_as_that_of_messages():
    """And a column is taken from an index that it has."""
    typer = learned("canal")
    engine, message = typer._engine, known(typer, "canal")[-1]
    with pytest.raises(ValueError, match=r"^as many places as messages$"):
        engine.take_column(column([message]), column([]), 0, MOST)
    for first in (-1, 2):
        with pytest.raises(ValueError, match=r"^the messages from an index on$"):
            engine.take_column(column([message]), None, first, MOST)


def numbers_in(said: bytes) -> tuple[int, ...] | None:
    """Return the numbers of a position that the engine put out."""
    return tuple(int.from_bytes(said[i : i + 8]) - 2**63 for i in range(1, len(said), 8)) if said else None


# The messages of the shop are JSON that stands for transactions, of which the engine types the operations only.
@pytest.mark.parametrize("format", [name for name in FORMATS if name != "goldengate_tx"])
def test_a_survey_says_the_numbers_and_the_columns_of_rows(format):
    """The numbers are those of the exact way, and names differ where the columns of rows do."""
    typer = learned(format)
    surveyed, names_of = 0, {}
    for message in shop(format):
        changes = typer.changes(message)
        fixed = typer._engine.pattern(message)
        if fixed is None or changes[0].op not in ("INSERT", "UPDATE", "DELETE", "SNAPSHOT"):
            continue
        assert typer._engine.survey(message, {}) == (fixed, None, None)
        rule = typer._parts.position(changes[0].source.db_type, message)
        found = typer._engine.survey(message, {fixed: rule})
        if found[1] is None:
            continue
        surveyed += 1
        assert numbers_in(found[1]) == (None if changes[0].position is None else tuple(changes[0].position))
        shape = [[list(one or ()) for one in (change.before, change.after)] for change in changes]
        assert names_of.setdefault((fixed, found[2]), shape) == shape
    assert surveyed > 90


def test_the_numbers_of_a_survey_compare_as_bytes():
    """Below zero and above, fewer before more."""
    engine = learned("canal")._engine
    fixed, said = None, []
    for number in (-(2**63), -5, -1, 0, 1, 255, 256, 2**40, 2**63 - 1):
        message = (
            b'{"type":"INSERT","database":"s","table":"t","es":1,"id":%d,"mysqlType":{"d":"int"},"data":[{"d":"1"}]}'
        )
        fixed = fixed or engine.pattern(message % number)
        said.append(engine.survey(message % number, {fixed: 1})[1])
    assert said == sorted(said)
    assert len(set(said)) == 9


def surveyed(engine, text):
    """Survey a message of no known rule."""
    return engine.survey(text, {})


@pytest.mark.slow
@pytest.mark.parametrize("take", [lambda engine, text: engine.rows(text, bytes(5)), RowEngine.pattern, surveyed])
def test_room_for_a_large_message_that_is_left_does_not_wait_for_the_next(take):
    """No rows are taken of it, with which the room would be given back."""
    engine = RowEngine(get_format("canal").program)
    large = b'{"type":"INSERT","extra":"' + b"x" * (48 << 20) + b'"}'
    before = resident()
    take(engine, large)
    assert resident() - before < len(large) / 2


def with_schema(number: int, table: str = "t") -> bytes:
    """Return a message of Debezium's with a schema of its own."""
    fields = ",".join(f'{{"type":"int32","optional":false,"field":"column_{i}_{number:03}"}}' for i in range(12))
    source = f'{{"connector":"mysql","db":"d","table":"{table}"}}'
    payload = f'{{"before":null,"after":{{"a":1}},"source":{source},"op":"c","ts_ms":1}}'
    return f'{{"schema":{{"type":"struct","fields":[{fields}]}},"payload":{payload}}}'.encode()


def test_schemas_tell_patterns_apart_however_many_there_are():
    """Each stands in a pattern by its number, and whole where all numbers are taken; the engine forgets them with patterns."""
    engine = RowEngine(get_format("debezium").program, (), b"", True)
    patterns = [engine.pattern(with_schema(number)) for number in range(300)]
    assert len({*patterns}) == 300
    assert [engine.pattern(with_schema(number)) for number in range(300)] == patterns
    assert engine.pattern(with_schema(0, "u")) not in patterns
    assert len(patterns[255]) < len(with_schema(255)) // 2 < len(patterns[256])
    engine.clear()
    assert len(engine.pattern(with_schema(299))) == len(patterns[0])


def test_patterns_that_engines_of_several_threads_share_are_the_same_in_all_of_them():
    """Whatever each has seen before: numbers of schemas are of one engine."""
    one, other = (RowEngine(get_format("debezium").program) for _ in range(2))
    patterns = [one.pattern(with_schema(number)) for number in range(3)]
    assert [other.pattern(with_schema(number)) for number in (2, 1, 0)] == patterns[::-1]
    assert len({*patterns}) == 3


def ordered(format: str) -> MessageTyper:
    """Return what has learned the changes of the database, and makes their rows with their order."""
    typer = learned(format)
    made = MessageTyper(format, typer._tables, is_all_learned=True, clock=Clock())
    for offset, message in enumerate(stream(format)):
        made.write(message, Arrival(offset=offset))
    return made


@pytest.mark.slow
@pytest.mark.parametrize("format", ["canal", "debezium"])
def test_a_place_that_is_damaged_leaves_its_message(format):
    """Its fields are read within its bytes, and a message has an order if it has rows."""
    random, typer = Random(format), ordered(format)
    whole = [encoded_place(one) for one in (*PLACES[1:], Arrival(topic="t\0", partition=-1, offset=2**62))]
    messages = random.choices(known(typer, format), k=600)
    places = [damaged(random, random.choice(whole)) for _ in messages]
    rows, left = in_columns(typer._engine, messages, places)
    assert len(rows) > 50
    assert len(left) > 50
    plain = in_columns(learned(format)._engine, messages, places)
    assert {row[0] for row in rows} | set(left) == set(range(600))
    by_message = {row[0]: row[2:] for row in plain[0]}
    assert all(row[2:] == by_message[row[0]] for row in rows if row[0] in by_message)


def damaged(random: Random, place: bytes) -> bytes:
    """Return a place with a byte changed, lost or more, or cut short, or as it is."""
    at = random.randrange(len(place))
    byte = bytes([random.randrange(256)])
    ways = (
        place[:at],
        place[:at] + byte + place[at:],
        place[:at] + byte + place[at + 1 :],
        place[:at] + place[at + 1 :],
    )
    return random.choice((*ways, place, place))


TEXTS = column([b"a", None, b"b"])
LONGS = Longs(array("q", [1, -1, 2**62]).tobytes(), b"\5", 0, 3)


def test_places_are_encoded_as_one_by_one():
    """Texts and integers, some of them null, or no column at all."""
    data, ends = encode_places((TEXTS, LONGS, None, TEXTS, LONGS), 3)
    told = Slices(data, ends, None, 0, 3)
    wanted = [
        Arrival(topic="a", partition=1, file="a", line=1),
        Arrival(),
        Arrival(topic="b", partition=2**62, file="b", line=2**62),
    ]
    assert [told.get(i) for i in range(3)] == [encoded_place(one) for one in wanted]


@pytest.mark.parametrize(
    "fields",
    [
        (TEXTS, LONGS, None, None),
        (column([b"a"]), None, None, None, None),
        (Slices(b"a", array("i", [0, 1, 1, 9]).tobytes(), None, 0, 3), None, None, None, None),
        (None, Longs(bytes(23), None, 0, 3), None, None, None),
        (None, Longs(bytes(24), None, 1, 3), None, None, None),
        (None, Longs(bytes(24), None, -1, 3), None, None, None),
        (None, Longs(bytes(24), None, 0, 2), None, None, None),
        (None, Longs(bytes(24), b"", 0, 3), None, None, None),
        (None, Longs(bytes(160), b"\1", 9, 3), None, None, None),
    ],
)
def test_columns_of_places_hold_what_they_say(fields):
    """Nothing is read outside of them."""
    with pytest.raises(ValueError, match=r"place|column|value"):
        encode_places(fields, 3)


def test_a_clock_that_fails_leaves_no_lanes_behind():
    """The next column asks anew."""
    typer = ordered("canal")
    engine, messages = typer._engine, known(typer, "canal")[:4]
    places = column([encoded_place(Arrival(topic="t", partition=i, offset=5)) for i in range(4)])

    class Failing(Clock):
        def get(self, lane):
            if lane[1] == 2:
                raise ArithmeticError
            return super().get(lane)

    with pytest.raises(ArithmeticError):
        engine.take_column(column(messages), places, 0, MOST, Failing())
    engine.taken()
    state = [[["t", 0, ""], ["t", 0, 9, "", 0], 2, [1], 0]]
    assert engine.take_column(column(messages), places, 0, MOST, Clock(state)) == (0, False)

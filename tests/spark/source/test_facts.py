"""Facts about messages: what the engine finds alike is what the exact way says of each."""

from __future__ import annotations

from collections import Counter
from random import Random

import pyarrow as pa
import pytest

from cdcavro.engine.machine import COMPILED
from cdcavro.errors import MessageError
from cdcavro.spark.source.line_rows import OperationFinder
from cdcavro.transcoding.mapping import to_changes
from cdcavro.wire.formats import FORMATS
from support.messages import ROW_FORMATS, shop_debezium
from support.mutations import mutated
from support.rows_trial import of_type, shop, with_value

Told = tuple[str | None, str | None, str | None]


def exact(format: str, message: bytes | None) -> Told:
    """Return the operation and the table of a message, and the error of one without changes."""
    if message is None:
        return None, None, None
    try:
        change = to_changes(message, format)[0]
    except MessageError as error:
        return None, None, str(error)
    return change.op, change.source.table, None


def told(facts: OperationFinder, messages: list[bytes | None]) -> list[Told]:
    """Return the same as the facts have it."""
    errors: dict[int, str] = {}
    columns = facts.find(pa.array(messages, pa.binary()), lambda i, error: errors.update({i: str(error)}))
    rows = zip(*[column.to_pylist() for column in columns], strict=True)
    return [(operation, table, errors.get(i)) for i, (operation, table) in enumerate(rows)]


def counted(facts: OperationFinder, counts: Counter[str]) -> OperationFinder:
    """Let facts count the messages that go the exact way."""
    one_by_one = facts._find_exact

    def counting(*given: object) -> object:
        counts["exact"] += 1
        return one_by_one(*given)

    facts._find_exact = counting
    return facts


def stream(format: str, random: Random) -> list[bytes | None]:
    """Return messages in any order: those of a database, others like them, damaged ones, and none."""
    own = [*shop(format), *40 * of_type(format, "STRING" if format == "datahub_blob" else "varchar(20)")]
    messages: list[bytes | None] = [*own, *[with_value(random, random.choice(own)) for _ in range(100)], None]
    messages += [mutated(random, random.choice(own)) for _ in range(200)]
    random.shuffle(messages)
    return messages


@pytest.mark.parametrize("seed", [0, *[pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 20)]])
@pytest.mark.parametrize("format", FORMATS)
def test_facts_of_any_messages_are_those_of_their_changes(format, seed):
    """In whatever order and batches they come; and with an engine many need not be looked at one by one."""
    messages, counts = stream(format, Random(f"{format} {seed}")), Counter[str]()
    facts, found = counted(OperationFinder(format), counts), []
    for first in range(0, len(messages), 64):
        found += told(facts, messages[first : first + 64])
    assert found == [exact(format, message) for message in messages]
    if COMPILED and format in ROW_FORMATS:
        assert counts["exact"] < len(messages) * 2 / 3


def test_rows_with_keys_beside_them_are_compared():
    """A key of another row is refused, wherever its message stands among others like it."""
    own = next(message for message in shop_debezium() if b'"op":"c"' in message and b'"key":{"id":1}' in message)
    other = own.replace(b'"key":{"id":1}', b'"key":{"id":2}')
    messages, counts = [own, other, own, own, other, own], Counter[str]()
    assert told(counted(OperationFinder("debezium"), counts), messages) == [
        exact("debezium", message) for message in messages
    ]
    assert exact("debezium", other)[2] is not None
    if COMPILED:
        # The first, from which the pattern is learned, the first that is like it, and both others.
        assert counts["exact"] == 4


def test_many_rows_that_repeat_much_are_refused():
    """However alike the message is to others: one whose rows would grow out of all proportion has no changes."""
    text = b'{"id":7,"type":"INSERT","database":"s","table":"t","es":1,"gtid":"%s","data":[%s]}'
    rows = b",".join([b"{}"] * 3000)
    messages = [text % (b"g" * length, rows) for length in (1, 1, 2, 2000, 3, 2000, 4)]
    assert told(OperationFinder("canal"), messages) == [exact("canal", message) for message in messages]
    assert [exact("canal", message)[2] is not None for message in messages] == [False] * 3 + [True, False, True, False]


def test_rows_that_do_not_fit_each_other_are_refused():
    """More old rows than rows, among messages with as many."""
    text = b'{"id":7,"type":"UPDATE","database":"s","table":"t","es":1,"data":[{"d":"1"}],"old":[{"d":"2"}%s]}'
    messages = [text % more for more in (b"", b"", b',{"d":"3"}', b"", b',{"d":"3"}', b',{"d":"3"}')]
    assert told(OperationFinder("canal"), messages) == [exact("canal", message) for message in messages]
    assert exact("canal", messages[2])[2] is not None


def test_rows_that_are_none_are_no_rows():
    """Neither an empty list of rows nor one of nulls hides what others say, whichever comes first."""
    text = b'{"id":7,"type":"INSERT","database":"s","table":"t","es":1,"mysqlType":{"d":"int"},"data":%s}'
    rows = [b'[{"d":"1"}]', b"[]", b"[null]", b'[{"d":"2"}]', b"null", b'[{"d":"3"},null]', b"[]", b"[null]"]
    messages = [text % row for row in rows]
    for some in (messages, messages[::-1]):
        assert told(OperationFinder("canal"), some) == [exact("canal", message) for message in some]


def test_nothing_has_no_facts():
    """A batch may be empty, or have nulls only."""
    facts = OperationFinder("canal")
    assert told(facts, []) == []
    some = shop("canal")[:3]
    assert told(facts, some) == [exact("canal", message) for message in some]
    assert told(facts, []) == []
    assert told(OperationFinder("canal"), [None, None]) == [(None, None, None)] * 2

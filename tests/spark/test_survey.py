"""The outlines that are needed of messages: the first of each kind, wherever it stands."""

from __future__ import annotations

import json
from contextlib import suppress
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from msgspec.structs import asdict

from cdcavro.change.model import Arrival, Change, replace
from cdcavro.engine.machine import COMPILED
from cdcavro.errors import MessageError, OrderError, PayloadError
from cdcavro.spark.typed_tables import ChangeSurvey, MessageSurvey, survey_outline
from cdcavro.table.table_names import GivenTable
from cdcavro.table.writing.message_typer import merge_places
from cdcavro.transcoding.mapping import to_changes
from cdcavro.wire.formats import FORMATS
from support.mutations import mutated
from support.order_trial import PLACE
from support.rows_trial import ZONE, of_type, shop, with_value

PLACES = {
    "lines": lambda i: Arrival(file=f"part-{i % 2}", line=i),
    "offsets": lambda i: Arrival(topic="t", partition=i % 3, offset=i),
    "topics": lambda i: Arrival(topic=f"t{i % 2}", partition=0, offset=i),
    "an offset alone": lambda i: Arrival(offset=i),
}


def batch(messages: list[bytes | None], places: list[Arrival | None]) -> pa.RecordBatch:
    """Return messages with their places as Spark hands them over."""
    told = [None if one is None else asdict(one) for one in places]
    return pa.RecordBatch.from_arrays([pa.array(messages, pa.binary()), pa.array(told, PLACE)], ["message", "place"])


def payloads(changes: list[bytes | None]) -> pa.RecordBatch:
    """Return payloads of changes as Spark hands them over."""
    return pa.RecordBatch.from_arrays([pa.array(changes, pa.binary())], ["change"])


def exact(format: str, given: GivenTable, message: bytes, place: Arrival | None) -> list[dict[str, Any]]:
    """Return the outlines of a message."""
    try:
        changes = to_changes(message, format, zone=ZONE, members=False)
    except MessageError:
        return []
    placed = [given.with_given_table(replace(change, place=merge_places(change.place, place))) for change in changes]
    return [one for one in map(survey_outline, placed) if one is not None]


def firsts(outlines: list[dict[str, Any]]) -> dict[Any, bytes]:
    """Return the first outline of each digest in each lane, as Spark chooses it."""
    best: dict[Any, tuple[Any, bytes]] = {}
    for one in outlines:
        at = one["at"]
        key = one["digest"], at["topic"], at["partition"], at["file"]
        order = tuple((value is not None, value) for value in at.values())
        if key not in best or order < best[key][0]:
            best[key] = order, one["outline"]
    return {key: outline for key, (_, outline) in best.items()}


def stream(format: str, random: Random) -> list[bytes | None]:
    """Return messages in any order: those of a database, others like them, damaged ones, and none."""
    own = [*shop(format), *20 * of_type(format, "STRING" if format == "datahub_blob" else "varchar(20)")]
    messages: list[bytes | None] = [*own, *[with_value(random, random.choice(own)) for _ in range(60)], None]
    messages += [mutated(random, random.choice(own)) for _ in range(30)]
    random.shuffle(messages)
    return messages


@pytest.mark.parametrize("places", PLACES)
@pytest.mark.parametrize("format", FORMATS)
def test_a_survey_has_the_first_survey_outline_each_kind(format, places):
    """In whatever order and batches the messages come; and with an engine it makes few others."""
    random, given = Random(f"{format} {places}"), GivenTable.of("@topic")
    messages, arrived, wanted = [], [], []
    for i, message in enumerate(stream(format, random)):
        place = PLACES[places]((i * 7919) % 1009)
        with suppress(OrderError):  # which would end all
            wanted += [] if message is None else exact(format, given, message, place)
            messages.append(message)
            arrived.append(place)
    survey = MessageSurvey(format, ZONE, "__debezium_unavailable_value", given)
    found = []
    for first in range(0, len(messages), 50):
        found += survey.outlines(batch(messages[first : first + 50], arrived[first : first + 50]))
    assert firsts(found) == firsts(wanted)
    if COMPILED:
        assert len(found) < len(wanted)


def test_a_first_message_that_is_none_of_its_kind_hides_no_other():
    """Where the earliest message of a pattern has no rows, those behind it are looked at."""
    text = '{"type":"INSERT","database":"s","table":"t","es":1,"id":%d,"mysqlType":{"d":"int"},"data":%s}'
    rows = [(5, '[{"d":"1"}]'), (1, "[]"), (2, "[null]"), (3, '[{"d":"2"}]'), (4, '[{"d":"3"}]')]
    messages = [(text % row).encode() for row in rows]
    places = [Arrival(offset=number) for number, _ in rows]
    given = GivenTable.of(None)
    wanted = [
        one for message, place in zip(messages, places, strict=True) for one in exact("canal", given, message, place)
    ]
    found = list(MessageSurvey("canal", None, None, given).outlines(batch(messages, places)))
    assert firsts(found) == firsts(wanted)


def test_a_row_with_neither_numbers_nor_a_place_fails():
    """Its order is not guessed."""
    message = b'{"type":"INSERT","database":"s","table":"t","mysqlType":{"d":"int"},"data":[{"d":"1"}]}'
    survey = MessageSurvey("canal", None, None, GivenTable.of(None))
    assert len(list(survey.outlines(batch([message], [Arrival(offset=1)])))) == 1
    with pytest.raises(OrderError):
        list(survey.outlines(batch([message], [None])))


def changes_of(format: str, messages: list[bytes | None], place: Any) -> list[bytes]:
    """Return the changes of messages, each with its place, as payloads; but those that can have no order."""
    found = []
    for i, message in enumerate(messages):
        with suppress(MessageError, OrderError):
            for change in [] if message is None else to_changes(message, format, zone=ZONE):
                placed = replace(change, place=merge_places(change.place, place((i * 7919) % 1009)))
                survey_outline(placed)
                found.append(placed.to_avro())
    return found


@pytest.mark.parametrize("places", PLACES)
@pytest.mark.parametrize("format", FORMATS)
def test_a_survey_of_changes_has_the_first_survey_outline_each_kind(format, places):
    """In whatever order and batches they come; and with an engine it makes few others."""
    given = GivenTable.of("@topic")
    changes = changes_of(format, stream(format, Random(f"{format} {places}")), PLACES[places])
    wanted = [survey_outline(given.with_given_table(Change.from_avro(one))) for one in changes]
    survey, found = ChangeSurvey(given), []
    for first in range(0, len(changes), 50):
        found += survey.outlines(payloads([*changes[first : first + 50], None]))
    assert firsts(found) == firsts([one for one in wanted if one is not None])
    if COMPILED:
        assert len(found) < len(changes) * 2 / 3


def test_rows_of_one_message_are_in_their_order():
    """The first row of a message comes first, wherever it stands."""
    source = Change(op="INSERT", after={"a": 1}, position=(7,)).source
    rows = [
        Change(op="INSERT", source=replace(source, table="t"), after={"a": 1}, position=(7,), row=row)
        for row in (3, 2, 9, 0, 5)
    ]
    found = list(ChangeSurvey(GivenTable.of(None)).outlines(payloads([row.to_avro() for row in rows])))
    assert min(one["at"]["row"] for one in found) == 0
    if COMPILED:
        assert [one["at"]["row"] for one in found] == [3, 0]


def test_a_batch_without_messages_states_nothing():
    """Whatever stood in the batch before it."""
    row = Change(op="INSERT", after={"a": 1}, position=(7,))
    change = replace(row, source=replace(row.source, table="t")).to_avro()
    survey = ChangeSurvey(GivenTable.of(None))
    assert list(survey.outlines(payloads([change, change, change])))
    assert list(survey.outlines(payloads([]))) == []
    assert list(survey.outlines(payloads([None]))) == []


def test_what_is_no_change_fails():
    """Also behind one that is like it."""
    change = Change(op="INSERT", after={"a": "x"}, position=(7,)).to_avro()
    survey = ChangeSurvey(GivenTable.of(None))
    assert list(survey.outlines(payloads([change, change]))) == []
    with pytest.raises(PayloadError):
        list(survey.outlines(payloads([change, change[:-1]])))


@pytest.mark.skipif(not COMPILED, reason="where nothing is compiled, each message is asked")
def test_messages_that_say_themselves_which_columns_they_have_are_each_asked():
    """Two have members of the same names, and one of the two has no value of a column."""
    usual = {"table": "S.T", "op_type": "I", "op_ts": "2023-11-14 22:13:21.000000"}
    row = {"ID": 1, "ID_isMissing": False, "A": None}
    messages = [usual | {"pos": str(i), "after": row | {"A_isMissing": i % 2 > 0}} for i in range(4)]
    texts = [json.dumps(message).encode() for message in messages]
    assert _asked(texts) == 4
    assert _asked([text.replace(b"_isMissing", b"_b") for text in texts]) < 4


def test_nulls_that_say_nothing_are_told_from_values():
    """Two deletes have columns of the same names, and one of the two states no value of a column."""
    metadata = {"record-type": "data", "operation": "delete", "schema-name": "shop", "table-name": "t"}
    rows = [{"id": i, "a": None if i % 4 < 2 else i, "b": None if i % 4 == 2 else i} for i in range(40)]
    texts = [json.dumps({"data": row, "metadata": metadata}).encode() for row in rows]
    assert 3 <= _asked(texts, "aws_dms") < len(texts)
    asked = _asked([text.replace(b"delete", b"insert") for text in texts], "aws_dms")
    assert asked < _asked(texts, "aws_dms")


def _asked(texts: list[bytes], format: str = "goldengate") -> int:
    """Return how many of some messages were asked what they say of their table."""
    survey = MessageSurvey(format, None, None, GivenTable())
    return len(list(survey.outlines(batch(texts, [Arrival(file="f", line=line) for line in range(len(texts))]))))

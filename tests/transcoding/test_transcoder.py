"""Any format into any other: the law of losses, over all pairs and all messages."""

from __future__ import annotations

import random
import re
import tracemalloc
from collections import Counter
from decimal import Decimal
from itertools import product
from zoneinfo import ZoneInfo

import pytest

import cdcavro
from cdcavro.errors import MessageError, StructureError
from cdcavro.exact.jsontext import parse
from cdcavro.transcoding.mapping import to_changes
from cdcavro.transcoding.transcoder import Loss, Outcome, Transcoded, Transcoder, count_unzoned, transcode
from support.messages import HALVED, goldens, shop_canal, shop_debezium
from support.roundtrip import error_of, exact

PAIRS = list(product(cdcavro.FORMATS, cdcavro.FORMATS))
HALF = '{{"schema":{{}},"payload":{{"op":"UPDATE_{}","{}":{{"dataColumn":{{"id":{}}}}},"sequenceId":"{}"}},"version":"0.0.1"}}'

STATEMENT = (
    '{"source":{"connector":"mysql","db":"s"},"databaseName":"s","ddl":"CREATE TABLE t","tableChanges":[{"type":"CREATE",'
    '"id":"\\"s\\".\\"t\\"","table":{"columns":[{"name":"p","typeExpression":"DECIMAL(9,2)"}]}}]}'
)
ROW = '{{"before":null,"after":{{"p":{}}},"source":{{"connector":"mysql","db":"s","table":"t"}},"op":"c"}}'


def before(value: int, number: int) -> str:
    """Write the first half of a Blob update."""
    return HALF.format("BEFOR", "before", value, number)


def after(value: int, number: int) -> str:
    """Write the second half of a Blob update."""
    return HALF.format("AFTER", "after", value, number)


def transcode_all(messages, source: str, target: str, **options: str) -> list[Transcoded]:
    """Transcode a stream to its end."""
    transcoder = Transcoder(source, target, **options)
    outcomes = [one for message in messages for one in transcoder.add(message)] + transcoder.finish()
    return [one.result() for one in outcomes]


def test_losses_say_path_value_and_reason():
    """In words of the target."""
    made = transcode('{"meta":{"op":"del","size":3,"table":"s.t"},"data":{"id":7}}', "oms_shareplex", "oms_canal")
    assert made == Transcoded(
        [
            (
                b'{"database":"s","table":"t","isDdl":false,"sql":"","type":"DELETE","pkNames":null,"sqlType":null,'
                b'"mysqlType":null,"data":[{"id":7}],"old":null}'
            )
        ],
        [Loss("$.meta.size", "3", "oms_canal has no place for it")],
    )


def test_what_a_target_has_no_message_for_is_one_loss():
    """SharePlex has no heartbeats."""
    heartbeat = '{"recordType":"HEARTBEAT"}'
    made = transcode(heartbeat, "oms_default", "oms_shareplex")
    assert made == Transcoded([], [Loss("$", heartbeat, "oms_shareplex has no message for it")])


@pytest.mark.parametrize(
    ("update", "reason"),
    [
        ('{"type":"UPDATE","es":1,"data":[{"id":2}]}', "datahub_tuple needs the row before the change for it"),
        (
            '{"type":"UPDATE","data":[{"id":2}],"old":[{"id":1}]}',
            "datahub_tuple needs a number that both images share for it",
        ),
        ('{"type":"MHEARTBEAT","es":1}', "datahub_tuple has no message for it"),
    ],
)
def test_what_an_update_lacks_to_be_two_records_is_said(update, reason):
    """Tuple has messages for updates, but not for half of what one needs."""
    made = transcode(update, "oms_canal", "datahub_tuple")
    assert made == Transcoded([], [Loss("$", update, reason)])


def test_halves_are_joined_across_messages():
    """Two Blob messages are one Canal update; other messages may stand between them."""
    heartbeat = '{"schema":{},"payload":{"op":"MHEARTBEAT"},"version":"0.0.1"}'
    messages = [before(1, 5), heartbeat, after(2, 5)]
    _, joined = transcode_all(messages, "datahub_blob", "oms_canal")
    assert [parse(text)["data"] for text in joined.texts] == [[{"id": 2}]]
    assert [parse(text)["old"] for text in joined.texts] == [[{"id": 1}]]
    assert [(loss.message, loss.path, loss.reason) for loss in joined.losses] == [
        (0, "$.payload.sequenceId", "oms_canal has no place for it"),
        (2, "$.payload.sequenceId", "oms_canal has no place for it"),
        (2, "$", "both halves come back from oms_canal as one message"),
    ]


def test_an_update_without_a_number_is_one_blob_message():
    """With both images, as the documents show it too; Tuple, one image a record, has nothing to pair records by."""
    update = '{"type":"UPDATE","data":[{"id":2}],"old":[{"id":1}]}'
    (payload,) = (parse(text)["payload"] for text in transcode(update, "oms_canal", "datahub_blob").texts)
    assert payload == {"op": "UPDATE_AFTER", "before": {"dataColumn": {"id": 1}}, "after": {"dataColumn": {"id": 2}}}
    made = transcode(update, "oms_canal", "datahub_tuple")
    assert made == Transcoded([], [Loss("$", update, "datahub_tuple needs a number that both images share for it")])


def test_an_update_is_split_into_halves():
    """Both have one number: its position, the number of its message and its row."""
    update = '{"type":"UPDATE","es":1609344671000,"id":7,"data":[{"id":2}],"old":[{"id":1}]}'
    rows = [parse(text) for text in transcode(update, "oms_canal", "datahub_tuple").texts]
    assert {row["_sequence_id_"] for row in rows} == {f"1609344671000{7:019}{1:019}{0:019}"}
    assert [(row["_operation_type_"], row["_before_image_"], row["id"]) for row in rows] == [
        ("U", "Y", 1),
        ("U", "N", 2),
    ]


def halves(made: list[Transcoded]) -> list[dict]:
    """Return the Tuple records of updates."""
    rows = [parse(text) for one in made for text in one.texts]
    return [row for row in rows if row["_operation_type_"] == "U"]


@pytest.mark.parametrize(("source", "messages", "count"), [("debezium", shop_debezium, 63), ("canal", shop_canal, 65)])
def test_no_two_updates_of_a_stream_share_a_number(source, messages, count):
    """Neither rows of one message nor messages of one batch: each number is that of two images, in order."""
    found = halves(transcode_all(messages(), source, "datahub_tuple"))
    pairs = Counter((row["_sequence_id_"], row["_before_image_"]) for row in found)
    assert set(pairs.values()) == {1}
    assert len({number for number, _ in pairs}) == len(found) // 2 == count
    assert sorted(found, key=lambda row: int(row["_sequence_id_"])) == found


def test_ids_of_updates_sort_as_their_messages_came_where_times_fall_back():
    """Canal's `es` is when an UPDATE began: one that waited has the smaller time, and is the later."""
    text = '{{"type":"UPDATE","es":{},"id":{},"gtid":"","table":"t","data":[{{"a":"2"}}],"old":[{{"a":"1"}}]}}'
    transcoder = Transcoder("canal", "datahub_tuple")
    texts = [text.format(second * 1_000, batch) for batch, second in enumerate((5, 2, 3, 9))]
    made = [parse(one) for text in texts for outcome in transcoder.add(text) for one in outcome.result().texts]
    ids = [int(row["_sequence_id_"]) for row in made]
    assert ids == sorted(ids)
    assert len(set(ids)) == 4
    assert [row["_excute_time_"] for row in made[::2]] == [5_000, 2_000, 3_000, 9_000]


@pytest.mark.parametrize("lacking", ['{"type":"QUERY","id":7,"sql":"FLUSH"}', '{"type":"QUERY","es":1,"sql":"FLUSH"}'])
def test_ids_sort_as_their_messages_came_around_one_that_lacks_a_number(lacking):
    """It has fewer numbers than the others, which go on from theirs."""
    text = '{{"type":"UPDATE","es":{},"id":1,"gtid":"","table":"t","data":[{{"a":"2"}}],"old":[{{"a":"1"}}]}}'
    made = transcode_all([text.format(5_000), lacking, text.format(2_000)], "canal", "datahub_tuple")
    ids = [int(row["_sequence_id_"]) for row in halves(made)]
    assert ids == sorted(ids)
    assert len(set(ids)) == 2


def test_halves_find_each_other_in_any_order():
    """Two messages of one batch of Canal, each of two rows."""
    message = '{{"type":"UPDATE","es":1609344671000,"id":7,"data":[{{"id":{0}}},{{"id":{1}}}],"old":[{{"id":1{0}}},{{"id":1{1}}}]}}'
    made = transcode_all([message.format(1, 2), message.format(3, 4)], "canal", "datahub_tuple")
    texts = [text for one in made for text in one.texts]
    random.Random(1).shuffle(texts)
    updates = [parse(text) for one in transcode_all(texts, "datahub_tuple", "oms_default") for text in one.texts]
    found = sorted((one["prevStruct"]["id"], one["postStruct"]["id"]) for one in updates)
    assert found == [(11, 1), (12, 2), (13, 3), (14, 4)]


def test_rows_of_a_message_do_not_share_a_number_without_a_stream_either():
    """`from_changes` knows the rows."""
    message = '{"type":"UPDATE","es":1609344671000,"data":[{"id":1},{"id":2}],"old":[{"id":3},{"id":4}]}'
    rows = map(parse, cdcavro.from_changes(cdcavro.to_changes(message, "canal"), "datahub_tuple"))
    first, second = (f"1609344671000{row:019}" for row in (0, 1))
    assert [row["_sequence_id_"] for row in rows] == [first, first, second, second]


def test_a_number_that_was_made_is_kept_by_the_other_format_of_halves():
    """Blob has it as `sequenceId`, and gives it back."""
    update = '{"type":"UPDATE","es":1609344671000,"id":7,"data":[{"id":2}],"old":[{"id":1}]}'
    texts = transcode(update, "oms_canal", "datahub_tuple").texts
    blobs = [text for one in transcode_all(texts, "datahub_tuple", "datahub_blob") for text in one.texts]
    assert {parse(one)["payload"]["sequenceId"] for one in blobs} == {parse(texts[0])["_sequence_id_"]}
    assert [text for one in transcode_all(blobs, "datahub_blob", "datahub_tuple") for text in one.texts] == texts


@pytest.mark.parametrize("target", sorted(set(cdcavro.FORMATS) - HALVED))
def test_a_half_without_its_other_half_is_refused(target):
    """Alone, and at the end of a stream."""
    expected = "datahub_blob: $: expected the AFTER half of the update too, got the BEFORE half alone"
    assert error_of(transcode, before(1, 5), "datahub_blob", target) == expected
    with pytest.raises(StructureError, match="expected the BEFORE half of the update too, got the AFTER half alone"):
        list(transcode_all([before(1, 5), after(2, 5), after(3, 6)], "datahub_blob", target))


def test_a_half_stays_a_half_where_the_target_has_halves():
    """Blob to Tuple needs no joining."""
    rows = [parse(transcode(text, "datahub_blob", "datahub_tuple").texts[0]) for text in (before(1, 5), after(2, 5))]
    assert [(row["_sequence_id_"], row["_before_image_"], row["id"]) for row in rows] == [("5", "Y", 1), ("5", "N", 2)]


def test_tuple_rows_without_an_operation_pair_by_their_number():
    """Two of a number are an update, one alone an insert or a delete."""
    row = '{{"_sequence_id_":"{}","_before_image_":"{}","_after_image_":"{}","id":{}}}'
    rows = [
        row.format(1, "N", "Y", 1),
        row.format(2, "Y", "N", 1),
        row.format(2, "N", "Y", 2),
        row.format(3, "Y", "N", 2),
    ]
    texts = [text for made in transcode_all(rows, "datahub_tuple", "oms_default") for text in made.texts]
    found = [(parse(text)["recordType"], parse(text)["prevStruct"], parse(text)["postStruct"]) for text in texts]
    assert sorted(found, key=str) == [
        ("DELETE", {"id": 2}, None),
        ("INSERT", None, {"id": 1}),
        ("UPDATE", {"id": 1}, {"id": 2}),
    ]


# Debezium's columns


def amounts(texts: list[bytes]) -> list[str]:
    """Return the `amount` of every row after a change in Canal messages, in order."""
    rows = [row for text in texts for row in parse(text)["data"] or [] if parse(text)["type"] != "DELETE"]
    return [row["amount"] for row in rows if row.get("amount") is not None]


def test_columns_learned_from_schema_changes_turn_the_values_of_later_messages():
    """Over the whole file Canal gets the digits, those that it sends itself, and the columns with their types."""
    texts = [text for made in transcode_all(shop_debezium(), "debezium", "canal") for text in made.texts]
    assert all(re.fullmatch(r"-?[0-9]+\.([0-9]{2}){1,2}", amount) for amount in amounts(texts))
    # Canal itself sends 0.00 as 0.0.
    assert list(map(Decimal, amounts(texts))) == list(map(Decimal, amounts(shop_canal())))
    rows = [parse(text) for text in texts if parse(text)["data"]]
    types = {row["mysqlType"]["amount"] for row in rows if "amount" in row["mysqlType"]}
    assert types == {"DECIMAL(12,2)", "DECIMAL(20,4)"}


def test_a_value_that_is_sent_in_another_form_is_told_from_one_that_is_lost():
    """SharePlex has no columns: who turns its digits back cannot know how they were sent."""
    stream = [STATEMENT, ROW.format('"AkY="')]
    _, canal = transcode_all(stream, "debezium", "canal")
    _, blob = transcode_all(stream, "debezium", "datahub_blob")
    _, shareplex = transcode_all(stream, "debezium", "oms_shareplex")
    assert [parse(canal.texts[0])["data"], parse(shareplex.texts[0])["data"]] == [[{"p": "5.82"}], {"p": 5.82}]
    lost = [loss for made in (canal, blob, shareplex) for loss in made.losses if loss.path == "$.after.p"]
    assert [loss.reason for loss in lost] == [
        "comes back from canal as the same value in another form",
        "comes back from datahub_blob as the same value in another form",
        "comes back from oms_shareplex as another value",
    ]


def test_decimals_may_be_strings():
    """As the connector is configured; precise is its default."""
    stream = [STATEMENT, ROW.format('"5.82"')]
    _, precise = transcode_all(stream, "debezium", "oms_canal")
    _, string = transcode_all(stream, "debezium", "oms_canal", decimals="string")
    assert [parse(made.texts[0])["data"] for made in (precise, string)] == [[{"p": "5.82"}], [{"p": 5.82}]]
    with pytest.raises(ValueError, match="decimals are precise or string, not 'double'"):
        Transcoder("debezium", "canal", decimals="double")


def test_one_message_alone_keeps_what_was_sent():
    """Its columns are not known."""
    made = transcode(ROW.format('"AkY="'), "debezium", "oms_canal")
    assert parse(made.texts[0])["data"] == [{"p": "AkY="}]


# instants


@pytest.mark.parametrize(
    ("target", "read", "lost"),
    [
        ("canal", lambda made: made["es"], ["$.source.ts_us"]),
        ("datahub_blob", lambda made: made["payload"]["timestamp"]["eventTime"], ["$.source.ts_us"]),
        ("oms_default", lambda made: made["allMetaData"]["timestamp"], ["$.source.ts_ms", "$.source.ts_us"]),
        ("oms_shareplex", lambda made: made["meta"]["time"], ["$.source.ts_ms", "$.source.ts_us"]),
    ],
)
def test_an_instant_is_rounded_down_to_the_targets_unit(target, read, lost):
    """What is lost are the digits of the members that are finer."""
    row = '{"op":"c","after":{"id":1},"source":{"connector":"mysql","ts_ms":1606262462123,"ts_us":1606262462123456}}'
    made = transcode(row, "debezium", target, zone=ZoneInfo("UTC"))
    found = str(read(parse(made.texts[0])))
    assert "1606262462123".startswith(found) or found == "2020-11-25T00:01:02"
    assert [loss.path for loss in made.losses if loss.path.startswith("$.source.ts") and loss.value] == lost


def test_no_real_message_loses_an_instant_whole():
    """Canal has `es` and `ts` wherever Debezium has a time of the event and of the message."""
    made = [parse(text) for one in transcode_all(shop_debezium(), "debezium", "canal") for text in one.texts]
    assert sum("es" in message and "ts" in message for message in made) == len(made) == 202


def test_an_unknown_target_is_refused():
    """With a hint."""
    expected = "unknown format 'oms_cana': did you mean oms_canal?"
    assert error_of(transcode, "{}", "oms_default", "oms_cana") == expected


@pytest.mark.parametrize("target", cdcavro.FORMATS)
@pytest.mark.parametrize(
    "row",
    [
        '{"__light_type":{"x":1},"a":1}',
        '{"__light_type":7,"a":1}',
        '{"_sequence_id_":{"x":1},"_source_table_":"evil","_excute_time_":"x","a":1}',
        '{"ddl":"DROP TABLE t"}',
    ],
)
def test_columns_named_like_members_of_a_target_are_no_fault_of_the_message(target, row):
    """They have no place there, which is a loss."""
    made = transcode(f'{{"type":"INSERT","es":1000,"data":[{row}]}}', "oms_canal", target)
    (change,) = to_changes(made.texts[0], target)
    assert change.source.table is None
    assert change.op == "INSERT" or change.half == "AFTER"
    lost = {name for name in exact(row) if name not in change.after}
    assert {f"$.data[0].{name}" for name in lost} <= {loss.path for loss in made.losses}


@pytest.mark.parametrize("target", cdcavro.FORMATS)
@pytest.mark.parametrize("source", ["oms_canal", "canal"])
def test_a_row_with_the_statement_that_made_it_is_a_row(source, target):
    """Canal may send both; the statement is no DDL, and its loss is named."""
    text = '{"type":"INSERT","isDdl":false,"sql":"insert into t values (1)","es":1,"data":[{"id":"1"}]}'
    made = transcode(text, source, target)
    (change,) = to_changes(made.texts[0], target)
    assert (change.op, change.after) == ("UPDATE" if change.half else "INSERT", {"id": "1"})
    assert (change.ddl is None) == ("$.sql" in {loss.path for loss in made.losses})
    assert (change.ddl is None) == (target not in ("oms_canal", "canal", "canal_protobuf"))


def test_a_heartbeat_with_text_for_a_statement_is_a_heartbeat():
    """The text does not become an image."""
    made = transcode('{"type":"MHEARTBEAT","sql":"x","es":1}', "oms_canal", "oms_default")
    assert to_changes(made.texts[0], "oms_default")[0].op == "HEARTBEAT"
    assert '"x"' in {loss.value for loss in made.losses if loss.path == "$.sql"}


@pytest.mark.slow
def test_a_message_of_many_rows_is_refused_before_anything_is_made_of_them():
    """What is made of each row is read back and compared: 300,000 empty rows in 900 KB took 19 s and 1.9 GB."""
    text = '{{"type":"INSERT","table":"t","data":[{}]}}'
    made = transcode(text.format(",".join(["{}"] * 2_000)), "oms_canal", "oms_shareplex")
    assert len(made.texts) == 2_000
    many = text.format(",".join(["{}"] * 20_001))
    sentence = "oms_canal: $: expected at most 20000 rows in a message, got 20001"
    tracemalloc.start()
    try:
        assert error_of(transcode, many, "oms_canal", "oms_shareplex") == sentence
        assert tracemalloc.get_traced_memory()[1] < 32 << 20
    finally:
        tracemalloc.stop()
    assert transcode(many, "oms_canal", "oms_canal").losses == []


@pytest.mark.parametrize("target", ["debezium", "oms_shareplex"])
@pytest.mark.parametrize("item", ["[1]", "{}", '{"a":[]}'])
def test_a_message_of_many_arrays_and_objects_is_refused_before_anything_is_made_of_them(item, target):
    """Each is parsed several times: 500,000 nested arrays in 1 MB took 2 to 4 s. Brackets in texts are none."""
    text = '{{"meta":{{"op":"del","table":"s.t"}},"data":{{"a":{}}}}}'
    count = 65_536 // item.replace("{", "[").count("[")
    many = text.format(f"[{','.join([item] * count)}]")
    tracemalloc.start()
    try:
        sentence = error_of(transcode, many, "oms_shareplex", target)
        assert tracemalloc.get_traced_memory()[1] < 32 << 20
    finally:
        tracemalloc.stop()
    assert sentence == "oms_shareplex: $: expected at most 65536 arrays and objects, got 65540"
    assert transcode(text.format('"' + "[{" * 65_536 + '"'), "oms_shareplex", target).texts
    assert len(to_changes(many, "oms_shareplex")) == 1


SHAREPLEX = '{"meta":{"op":"ins","time":"2020-10-25T02:30:00","posttime":"2020-10-25T04:00:00"},"data":{"id":1}}'
CANAL = (
    '{"type":"UPDATE","id":1,"mysqlType":{"at":"timestamp","dt":"datetime"},'
    '"data":[{"at":"2020-10-25 02:30:00","dt":"2020-10-25 02:30:00"}],"old":[{"at":"0000-00-00 00:00:00"}]}'
)


@pytest.mark.parametrize(
    ("zone", "counts"),
    [
        (None, (2, 1)),
        (ZoneInfo("Asia/Shanghai"), (0, 0)),
        # Berlin has half past two twice on that day.
        (ZoneInfo("Europe/Berlin"), (1, 1)),
    ],
)
def test_times_without_a_zone_stay_text_and_are_counted(zone, counts):
    """SharePlex's own times and TIMESTAMP columns; a zero date is no time, and DATETIME is local by its meaning."""
    found = (
        count_unzoned(to_changes(SHAREPLEX, "oms_shareplex", zone=zone)),
        count_unzoned(to_changes(CANAL, "canal", zone=zone)),
    )
    assert found == counts


def test_a_time_with_a_fraction_is_an_instant_in_its_zone_like_any_other():
    """Its text is kept, to come back; it is not counted for that."""
    fraction = SHAREPLEX.replace("02:30:00", "02:30:00.123456")
    assert count_unzoned(to_changes(fraction, "oms_shareplex", zone=ZoneInfo("Asia/Shanghai"))) == 0
    assert count_unzoned(to_changes(fraction, "oms_shareplex")) == 2


def test_a_transcoder_tells_the_columns():
    """By table and name, the members of the message by their path."""
    transcoder = Transcoder("canal", "oms_default")
    for text in shop_canal():
        transcoder.add(text)
    assert transcoder.unzoned_places["all_types.ts6"] > 0
    assert set(transcoder.unzoned_places) >= {"all_types.ts", "all_types.ts6"}
    assert transcoder.unzoned_places.total() == transcoder.unzoned
    shareplex = Transcoder("oms_shareplex", "oms_canal")
    shareplex.add(SHAREPLEX)
    assert shareplex.unzoned_places == {"$.meta.time": 1, "$.meta.posttime": 1}


def test_a_transcoder_counts_them_over_its_stream():
    """With the zone none is left."""
    for zone, count in ((None, 227), (ZoneInfo("UTC"), 0)):
        transcoder = Transcoder("canal", "oms_canal", zone=zone)
        for text in shop_canal():
            transcoder.add(text)
        assert transcoder.unzoned == count


@pytest.mark.parametrize(
    ("source", "target"), [("canal", "maxwell"), ("debezium", "canal"), ("datahub_blob", "debezium")]
)
def test_some_messages_together_become_what_they_are_one_by_one(source, target):
    """With what is refused, columns that are learned on the way, and halves that wait."""
    shop = {"canal": shop_canal, "debezium": shop_debezium}.get(source, list)()
    halves = [before(1, 7), after(3, 8), after(2, 7), after(4, 9)] if source in HALVED else [STATEMENT, ROW.format("1")]
    messages = [*shop[:70], "{", *halves, b"\xff", '{"a":1,"a":2}', *goldens(source), *shop[:40]]
    alone, together = Transcoder(source, target), Transcoder(source, target)
    expected = []
    for number, message in enumerate(messages):
        try:
            expected.append(alone.add(message, number))
        except MessageError as error:
            expected.append([str(error)])
    found = [[str(one)] if isinstance(one, MessageError) else one for one in together.add_each(enumerate(messages))]
    assert [list(map(shown, one)) for one in found] == [list(map(shown, one)) for one in expected]
    assert list(map(shown, together.finish())) == list(map(shown, alone.finish()))
    assert (together.unzoned, together.unzoned_places) == (alone.unzoned, alone.unzoned_places)


def shown(outcome: Outcome | str) -> tuple[object, ...] | str:
    """Return an outcome as what can be compared: an error is not equal to another one."""
    return outcome if isinstance(outcome, str) else (outcome.messages, outcome.transcoded, str(outcome.error))


def test_an_error_of_who_sends_messages_comes_behind_their_results():
    """None of them is dropped."""

    def messages():
        yield from enumerate(['{"recordType":"HEARTBEAT"}'] * 10)
        raise TimeoutError

    results = []
    with pytest.raises(TimeoutError):
        results.extend(Transcoder("oms_default", "canal").add_each(messages()))
    assert len(results) == 10


def test_of_long_messages_only_one_is_at_hand():
    """So what they become takes no more memory than that of one; of short ones there are 16."""
    most = {}
    for size in (1, 70_000):
        read = []

        def messages(read=read, size=size):
            for number in range(100):
                read.append(number)
                yield number, '{"recordType":"HEARTBEAT","x":"%s"}' % ("a" * size)

        for done, _ in enumerate(Transcoder("oms_default", "canal").add_each(messages())):
            most[size] = max(most.get(size, 0), len(read) - done)
    # One more is read to see that it is too much.
    assert most == {1: 17, 70_000: 2}

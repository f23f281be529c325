"""Any format into any other: the law of losses, over all pairs and all messages."""

from __future__ import annotations

from itertools import product

import pytest
from messages import goldens, shop_canal, shop_debezium
from roundtrip import error_of, exact

import cdcavro
from cdcavro.changes import to_changes
from cdcavro.comparison import differences
from cdcavro.errors import StructureError, json_path
from cdcavro.text import parse
from cdcavro.transcoding import HALVED, Loss, Transcoded, Transcoder, transcode

PAIRS = list(product(cdcavro.FORMATS, cdcavro.FORMATS))
HALF = '{{"schema":{{}},"payload":{{"op":"UPDATE_{}","{}":{{"dataColumn":{{"id":{}}}}},"sequenceId":"{}"}},"version":"0.0.1"}}'


def before(value: int, number: int) -> str:
    """Write the first half of a Blob update."""
    return HALF.format("BEFOR", "before", value, number)


def after(value: int, number: int) -> str:
    """Write the second half of a Blob update."""
    return HALF.format("AFTER", "after", value, number)


def transcode_all(messages, source: str, target: str) -> list[Transcoded]:
    """Transcode a stream to its end."""
    transcoder = Transcoder(source, target)
    made = [one for message in messages for one in transcoder.add(message)]
    return made + [one.result() for one in transcoder.finish()]


def sent(format: str) -> list[bytes]:
    """Give the messages of a format that are whole alone."""
    found = goldens(format) + (_REAL[format]() if format in _REAL else [])
    return [
        text for text in found if b"UPDATE_BEFOR" not in text and b"UPDATE_AFTER" not in text and not _is_half(text)
    ]


_REAL = {"oms_canal": shop_canal, "canal": shop_canal, "debezium": shop_debezium}


def _is_half(text: bytes) -> bool:
    return b'"_operation_type_":"U"' in text


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_every_difference_there_and_back_is_a_loss_and_nothing_else_is(source, target):
    """A → B → A by two transcodings: what differs from A is what the first one reported, by path and value."""
    for text in sent(source):
        made = transcode(text, source, target)
        back = [parse(one) for other in transcode_all(made.texts, target, source) for one in other.texts]
        if source == target:
            assert ([exact(one) for one in made.texts], made.losses) == ([exact(text)], [])
            continue
        if not back:
            assert [loss.path for loss in made.losses] == ["$"]
            continue
        whole, is_scattered = gathered(back)
        found = {json_path(pointer) for pointer, _, _ in differences(parse(text), whole)}
        assert {loss.path for loss in made.losses} == found | ({"$"} if is_scattered else set())


def gathered(messages: list[dict]) -> tuple[dict, bool]:
    """Put the rows of several Canal messages into one, and say whether they were several."""
    first, *others = messages
    rows = {name: [row for one in messages for row in one[name] or [None]] for name in ("data", "old") if others}
    return first | {name: given if any(given) else None for name, given in rows.items()}, bool(others)


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


def test_halves_are_joined_across_messages():
    """Two Blob messages are one Canal update; other messages may stand between them."""
    heartbeat = '{"schema":{},"payload":{"op":"MHEARTBEAT"},"version":"0.0.1"}'
    messages = [before(1, 5), heartbeat, after(2, 5)]
    _, joined = transcode_all(messages, "datahub_blob", "oms_canal")
    assert [parse(text)["data"] for text in joined.texts] == [[{"id": 2}]]
    assert [parse(text)["old"] for text in joined.texts] == [[{"id": 1}]]
    assert [(loss.message, loss.path, loss.reason) for loss in joined.losses] == [
        (0, "$.payload.op", "through oms_canal it is another value"),
        (0, "$.payload.sequenceId", "oms_canal has no place for it"),
        (0, "$.payload.after", "through oms_canal it is there, and was absent"),
        (2, "$", "through oms_canal both halves are one message"),
    ]


def test_an_update_without_a_number_is_one_blob_message():
    """With both images, as the documents show it too; Tuple, one image a record, has nothing to pair records by."""
    update = '{"type":"UPDATE","data":[{"id":2}],"old":[{"id":1}]}'
    (payload,) = (parse(text)["payload"] for text in transcode(update, "oms_canal", "datahub_blob").texts)
    assert payload == {"op": "UPDATE_AFTER", "before": {"dataColumn": {"id": 1}}, "after": {"dataColumn": {"id": 2}}}
    made = transcode(update, "oms_canal", "datahub_tuple")
    assert made == Transcoded([], [Loss("$", update, "datahub_tuple has no message for it")])


def test_an_update_is_split_into_halves():
    """Both have one number."""
    update = '{"type":"UPDATE","es":1609344671000,"id":7,"data":[{"id":2}],"old":[{"id":1}]}'
    rows = [parse(text) for text in transcode(update, "oms_canal", "datahub_tuple").texts]
    assert {row["_sequence_id_"] for row in rows} == {"160934467100000007"}
    assert [(row["_operation_type_"], row["_before_image_"], row["id"]) for row in rows] == [
        ("U", "Y", 1),
        ("U", "N", 2),
    ]


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


def test_an_unknown_target_is_refused():
    """With a hint."""
    expected = "unknown format 'oms_cana': did you mean oms_canal?"
    assert error_of(transcode, "{}", "oms_default", "oms_cana") == expected


@pytest.mark.parametrize(
    ("halves", "sentence"),
    [
        (
            [before(1, 5), before(2, 5)],
            "datahub_blob: $: expected the other half of the update, got the BEFORE half twice",
        ),
        (
            [before(1, 5).replace(',"sequenceId":"5"', "")],
            "datahub_blob: $: expected a number for the halves of an update to share, got none",
        ),
    ],
)
def test_a_half_that_is_not_taken_is_refused_and_the_one_before_still_waits(halves, sentence):
    """None is lost: the first half still finds its other half."""
    transcoder = Transcoder("datahub_blob", "oms_canal")
    *first, last = halves
    for half in first:
        assert list(transcoder.add(half)) == []
    assert error_of(lambda: list(transcoder.add(last))) == sentence
    if first:
        (joined,) = transcoder.add(after(3, 5))
        assert parse(joined.texts[0])["old"] == [{"id": 1}]
    assert list(transcoder.finish()) == []


def test_more_halves_than_may_wait_are_refused_one_by_one(monkeypatch):
    """Those that wait are told at the end; memory is bounded."""
    monkeypatch.setattr("cdcavro.halves.PENDING", 2)
    transcoder = Transcoder("datahub_blob", "oms_canal")
    for number in (1, 2):
        assert list(transcoder.add(before(1, number))) == []
    expected = "datahub_blob: $: expected at most 2 halves without their other half, got one more"
    assert error_of(lambda: list(transcoder.add(before(1, 3)))) == expected
    assert [outcome.message for outcome in transcoder.finish()] == [0, 1]


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
    assert (change.ddl is None) == (target not in ("oms_canal", "canal"))


def test_a_heartbeat_with_text_for_a_statement_is_a_heartbeat():
    """The text does not become an image."""
    made = transcode('{"type":"MHEARTBEAT","sql":"x","es":1}', "oms_canal", "oms_default")
    assert to_changes(made.texts[0], "oms_default")[0].op == "HEARTBEAT"
    assert '"x"' in {loss.value for loss in made.losses if loss.path == "$.sql"}

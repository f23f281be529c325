"""The halves of updates, joined across a stream."""

from __future__ import annotations

import random
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cdcavro
from cdcavro.errors import StructureError
from cdcavro.exact.jsontext import parse
from cdcavro.transcoding import joiner
from cdcavro.transcoding.joiner import JoinedChanges, StreamJoiner
from cdcavro.transcoding.transcoder import Transcoder
from support.messages import HALVED
from support.roundtrip import error_of

BLOB = '{{"schema":{{}},"payload":{{"op":"UPDATE_{}","{}":{{"dataColumn":{{"id":{}}}}},"sequenceId":"{}"}},"version":"0.0.1"}}'
TUPLE = '{{"_sequence_id_":"{}","_source_table_":"{}","_before_image_":"{}","_after_image_":"{}","id":{}}}'


def row(number: int, side: str, value: int = 0, table: str = "t") -> str:
    """Write a record of a Tuple topic that does not state its operation; `side` is B or A."""
    return TUPLE.format(number, table, *("YN" if side == "B" else "NY"), value)


def half(number: int, side: str, value: int = 0) -> str:
    """Write a half of a Blob update; `side` is B or A."""
    return BLOB.format(*(("BEFOR", "before") if side == "B" else ("AFTER", "after")), value, number)


def joined(texts: list[str], format: str = "datahub_tuple", **options: bool) -> list[list[JoinedChanges]]:
    """Join a stream: what each message gave, and the end."""
    joiner = StreamJoiner(**options)
    made = [joiner.add(cdcavro.to_changes(text, format), number, text) for number, text in enumerate(texts)]
    return [*made, joiner.finish()]


def ops(outcomes: list[JoinedChanges]) -> list[tuple[str, list[int]]]:
    """Return what came out: the operation, or the error, and the numbers of the messages."""
    return [
        (one.changes[0].op if one.error is None else str(one.error), [number for number, _ in one.messages])
        for one in outcomes
    ]


def test_a_record_of_unknown_operation_is_settled_before_what_comes_next_in_its_table():
    """An update does not overtake the insert before it; nothing waits for the end but the last one."""
    texts = [row(1, "A"), row(2, "B"), row(2, "A"), row(3, "B"), row(4, "A")]
    assert list(map(ops, joined(texts))) == [
        [],
        [("INSERT", [0])],
        [("UPDATE", [1, 2])],
        [],
        [("DELETE", [3])],
        [("INSERT", [4])],
    ]


def test_a_whole_change_settles_what_waits_in_its_table_too():
    """An insert that says so, of the same topic."""
    stated = row(2, "A")[:-1] + ',"_operation_type_":"I"}'
    assert list(map(ops, joined([row(1, "A"), stated]))) == [[], [("INSERT", [0]), ("INSERT", [1])], []]


def test_another_table_does_not_settle_it():
    """Tables share a shard; each one's records still follow each other."""
    texts = [row(1, "B", table="t"), row(2, "A", table="u"), row(1, "A", table="t"), row(3, "A", table="u")]
    assert list(map(ops, joined(texts))) == [[], [], [("UPDATE", [0, 2])], [("INSERT", [1])], [("INSERT", [3])]]


def test_more_inserts_than_halves_may_wait_are_still_inserts(monkeypatch):
    """And an update behind them is joined."""
    monkeypatch.setattr(joiner, "MOST_HALVES", 10)
    texts = [row(number, "A") for number in range(50)] + [row(50, "B"), row(50, "A")]
    found = [one for made in joined(texts) for one in ops(made)]
    assert found == [("INSERT", [number]) for number in range(50)] + [("UPDATE", [50, 51])]


def test_an_update_parted_by_another_shard_is_a_delete_and_an_insert():
    """In this order they leave the same table behind."""
    texts = [row(1, "B", 7), row(9, "A", 5), row(1, "A", 8)]
    found = [one for made in joined(texts) for one in ops(made)]
    assert found == [("DELETE", [0]), ("INSERT", [1]), ("INSERT", [2])]


def test_a_row_before_that_comes_after_its_row_after_was_settled_is_refused():
    """As a delete it would take the new row away."""
    texts = [row(1, "A", 8), row(9, "A", 5), row(1, "B", 7)]
    expected = (
        "datahub_tuple: $: expected the row before an update next to the row after it,"
        " got it after another change of the table"
    )
    found = [one for made in joined(texts) for one in ops(made)]
    assert found == [("INSERT", [0]), ("INSERT", [1]), (expected, [2])]


def test_a_half_of_a_stated_update_waits_whatever_comes_between():
    """In any order; the joined change stands where the second half came, with what belongs to the AFTER half."""
    texts = [half(1, "B", 11), half(2, "A", 22), half(1, "A", 12), half(2, "B", 21)]
    found = joined(texts, "datahub_blob")
    assert list(map(ops, found)) == [[], [], [("UPDATE", [0, 2])], [("UPDATE", [3, 1])], []]
    assert found[3][0].messages == ((3, texts[3]), (1, texts[1]))
    assert [(one.before, one.after) for one in found[3][0].changes] == [({"id": 21}, {"id": 22})]


@pytest.mark.parametrize(
    ("texts", "sentence"),
    [
        ([half(1, "B"), half(1, "B", 2)], "expected the other half of the update, got the BEFORE half twice"),
        (
            [half(1, "B"), half(1, "B").replace(',"sequenceId":"1"', "")],
            "expected a number for the halves of an update to share, got none",
        ),
    ],
)
def test_a_half_that_is_not_taken_is_given_back_with_its_text_and_the_one_before_still_waits(texts, sentence):
    """None is lost."""
    _, refused, found, end = joined([*texts, half(1, "A", 3)], "datahub_blob")
    assert [(one.messages, one.changes, str(one.error)) for one in refused] == [
        (((1, texts[1]),), (), f"datahub_blob: $: {sentence}")
    ]
    assert (ops(found), end) == ([("UPDATE", [0, 2])], [])


ALONE = "datahub_blob: $: expected the AFTER half of the update too, got the BEFORE half alone"


@pytest.mark.parametrize(("halves", "size"), [(2, 10**6), (10, 300)])
def test_of_too_many_halves_the_oldest_is_given_up_and_the_stream_goes_on(monkeypatch, halves, size):
    """By number and by bytes: each message has 107 of them."""
    monkeypatch.setattr(joiner, "MOST_HALVES", halves)
    monkeypatch.setattr(joiner, "MOST_BYTES", size)
    texts = [half(1, "B"), half(2, "B"), half(3, "B"), half(2, "A")]
    given_up = (
        f"datahub_blob: $: expected the AFTER half of the update before {halves} later halves,"
        f" or {size} bytes, wait, got the BEFORE half alone"
    )
    assert list(map(ops, joined(texts, "datahub_blob"))) == [
        [],
        [],
        [(given_up, [0])],
        [("UPDATE", [1, 3])],
        [(ALONE, [2])],
    ]


def test_a_half_larger_than_all_that_may_wait_still_waits(monkeypatch):
    """It takes the place of all others."""
    monkeypatch.setattr(joiner, "MOST_BYTES", 10)
    _, given_up, found, end = joined([half(1, "B"), half(2, "B"), half(2, "A")], "datahub_blob")
    assert ([numbers for _, numbers in ops(given_up)], ops(found), end) == ([[0]], [("UPDATE", [1, 2])], [])


def test_of_too_many_tables_the_oldest_record_is_settled_not_refused(monkeypatch):
    """Its operation is unknown: alone it is an insert or a delete."""
    monkeypatch.setattr(joiner, "MOST_HALVES", 2)
    texts = [row(number, "A", table=f"t{number}") for number in range(4)]
    assert list(map(ops, joined(texts)))[2:4] == [[("INSERT", [0])], [("INSERT", [1])]]


def test_the_rows_of_a_message_stay_together():
    """Whole changes come back at once, as they are."""
    text = '{"type":"INSERT","data":[{"id":1},{"id":2}]}'
    changes = cdcavro.to_changes(text, "oms_canal")
    assert StreamJoiner().add(changes, 7, text) == [JoinedChanges(((7, text),), tuple(changes))]


def test_halves_that_are_known_to_be_some_can_pass():
    """For a target that has halves; what may be an insert is joined or settled all the same."""
    texts = [row(1, "A"), row(2, "B")[:-1] + ',"_operation_type_":"U"}', row(3, "B"), row(3, "A")]
    assert [
        [(one.changes[0].op, one.changes[0].half) for one in made] for made in joined(texts, passes_stated=True)
    ] == [[], [("INSERT", None), ("UPDATE", "BEFORE")], [], [("UPDATE", None)], []]


events = st.lists(st.tuples(st.sampled_from("IUD"), st.sampled_from("tuv")), max_size=30)


@given(events, st.randoms(use_true_random=False))
def test_every_message_comes_out_once_and_each_table_in_order(stream, rng):
    """Whatever the mixture of tables: operations that were not stated are found again."""
    queues: dict[str, list[tuple[str, str]]] = {}
    for number, (op, table) in enumerate(stream):
        sides = {"I": "A", "U": "BA", "D": "B"}[op]
        queues.setdefault(table, []).extend((op, row(number, side, table=table)) for side in sides)
    texts, wanted = [], {table: [op for op, own in stream if own == table] for _, table in stream}
    pending = dict(queues)
    while pending:
        table = rng.choice(sorted(pending))
        texts.append(pending[table].pop(0)[1])
        pending = {name: queue for name, queue in pending.items() if queue}
    made = [one for given in joined(texts) for one in given]
    assert sorted(number for one in made for number, _ in one.messages) == list(range(len(texts)))
    found: dict[str, list[str]] = {}
    for one in made:
        found.setdefault(one.changes[0].source.table, []).append(one.changes[0].op[0])
    assert found == wanted


# in a Transcoder


def test_a_transcoder_gives_a_halves_error_with_its_message():
    """A half that is refused is an outcome, so that what else is complete is given too."""
    transcoder = Transcoder("datahub_blob", "oms_canal")
    assert transcoder.add(half(1, "B")) == []
    (refused,) = transcoder.add(half(1, "B", 2))
    assert (refused.messages, refused.transcoded) == (((1, half(1, "B", 2)),), None)
    with pytest.raises(StructureError, match="got the BEFORE half twice"):
        refused.result()
    (done,) = transcoder.add(half(1, "A", 3))
    assert parse(done.result().texts[0])["old"] == [{"id": 0}]
    assert transcoder.finish() == []


def test_nothing_is_lost_if_the_answer_is_not_looked_at():
    """The work is done at once."""
    transcoder = Transcoder("datahub_blob", "oms_canal")
    transcoder.add(half(1, "B"))
    assert [outcome.messages for outcome in transcoder.finish()] == [((0, half(1, "B")),)]


def test_a_record_alone_is_an_insert_or_a_delete_where_the_target_has_halves_too():
    """It was written as UPDATE_AFTER."""
    (made,) = [
        one.result().texts
        for transcoder in [Transcoder("datahub_tuple", "datahub_blob")]
        for one in [*transcoder.add(row(1, "A", 7)), *transcoder.finish()]
    ]
    payload = parse(made[0])["payload"]
    assert (payload["op"], payload["after"]) == ("INSERT", {"dataColumn": {"id": 7}})


def test_records_of_an_update_stay_two_where_the_target_has_halves():
    """With the number that they share."""
    transcoder = Transcoder("datahub_tuple", "datahub_blob")
    outcomes = [one for text in (row(4, "B", 7), row(4, "A", 8)) for one in transcoder.add(text)]
    payloads = [parse(text)["payload"] for one in outcomes for text in one.result().texts]
    assert [(one["op"], one["sequenceId"]) for one in payloads] == [("UPDATE_BEFOR", "4"), ("UPDATE_AFTER", "4")]


@pytest.mark.parametrize("target", sorted(set(cdcavro.FORMATS) - HALVED))
def test_shuffled_halves_of_stated_updates_find_each_other(target):
    """In every format without halves."""
    texts = [half(number, side, 10 * number + (side == "A")) for number in range(1, 9) for side in "BA"]
    random.Random(5).shuffle(texts)
    transcoder = Transcoder("datahub_blob", target)
    outcomes = [one for text in texts for one in transcoder.add(text)] + transcoder.finish()
    assert [len(one.messages) for one in outcomes] == [2] * 8
    assert all(len(one.result().texts) == 1 for one in outcomes)


def test_a_message_of_another_format_is_refused_at_once():
    """It is no half, and changes nothing."""
    expected = "datahub_blob: $.payload: expected a required member, got none"
    transcoder = Transcoder("datahub_blob", "oms_canal")
    assert error_of(transcoder.add, "{}") == expected
    assert transcoder.finish() == []


@pytest.mark.slow
def test_halves_that_wait_take_bounded_room():
    """A half takes many times its message: of messages with many columns 8 MiB wait, and no more."""
    columns = ",".join(f'"{i}":{i}' for i in range(400))
    text = half(0, "B").replace('"dataColumn":{', '"dataColumn":{' + columns + ",")
    assert len(text) > 3_000
    waiting = StreamJoiner()
    tracemalloc.start()
    try:
        for number in range(4_000):
            message = text.replace('"sequenceId":"0"', f'"sequenceId":"{number}"')
            waiting.add(cdcavro.to_changes(message, "datahub_blob"), number, message)
        assert tracemalloc.get_traced_memory()[1] < 200 << 20
    finally:
        tracemalloc.stop()
    assert 1_000 < len(waiting.finish()) < 4_000


@pytest.mark.slow
def test_halves_that_still_wait_at_the_end_are_converted_some_at_a_time():
    """What converting them takes, beside their outcomes, is in memory for 16 of them, however many wait."""
    columns = ",".join(f'"c{i}":{i}' for i in range(400))

    def taken(waiting: int) -> int:
        transcoder = Transcoder("datahub_tuple", "oms_canal")
        for number in range(waiting):
            transcoder.add(row(number, "B", table=f"t{number}").replace('"id":', f'{columns},"id":'))
        tracemalloc.start()
        try:
            outcomes = transcoder.finish()
            kept, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert len([one.result() for one in outcomes]) == waiting
        return most - kept

    taken(1)
    assert 0 < taken(200) < 1.2 * taken(16)

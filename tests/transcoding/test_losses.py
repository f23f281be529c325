"""The law of losses: in A → B → A every difference is named, and nothing else, over all pairs and all messages."""

from __future__ import annotations

from collections import Counter
from functools import cache
from itertools import product
from zoneinfo import ZoneInfo

import pytest

import cdcavro
from cdcavro.change.model import Change, replace
from cdcavro.change.order import join_halves
from cdcavro.errors import json_path
from cdcavro.exact.jsontext import ABSENT, differences, parse, render
from cdcavro.transcoding.transcoder import Loss, Route, Transcoded, Transcoder
from support.messages import HALVED, goldens, lines, shop_canal, shop_debezium
from support.places import SHARED
from support.roundtrip import exact

Unit = tuple[bytes, ...]
Named = tuple[str, str, str]

PAIRS = list(product(cdcavro.FORMATS, cdcavro.FORMATS))
MANY = 100
BERLIN = ZoneInfo("Europe/Berlin")
_REAL = {"oms_canal": shop_canal, "canal": shop_canal, "debezium": shop_debezium}
_PUBLIC = {"oms_canal": "public-canal.jsonl", "canal": "public-canal.jsonl", "datahub_blob": "public-dataworks.jsonl"}
_UNSTATED = (
    b'{"_sequence_id_":"2","_source_table_":"t","_before_image_":"Y","_after_image_":"N","id":1,"v":null}',
    b'{"_sequence_id_":"2","_source_table_":"t","_before_image_":"N","_after_image_":"Y","id":1,"v":1.20}',
)
_SHAPES = [
    rb'{"topic":"t","key":{"id":7},"value":{"op":"u","before":{"id":7,"v":1},"after":{"id":7,"v":2},"source":{"pos":1}}}',
    (
        rb'{"key":{"schema":{"type":"struct"},"payload":{"id":7}},"value":{"schema":{"fields":[{"field":"after","fields":'
        rb'[{"field":"d","type":"int32","name":"io.debezium.time.Date"}]}]},"payload":{"op":"c","after":{"d":19782}}}}'
    ),
    rb'{"schema":{"type":"struct"},"payload":{"op":"d","before":{"id":7}}}',
    rb'{"key":{"id":7},"value":{"schema":null,"payload":{"op":"d","before":{"id":7}}}}',
    rb'{"key":{"databaseName":"d"},"value":{"databaseName":"d","ddl":"drop table t","tableChanges":[]}}',
]
_BOTH = (
    b'{"payload":{"op":"UPDATE_AFTER","before":{"dataColumn":{"id":1,"v":"a"}},"after":{"dataColumn":{"id":1,"v":"b"}},'
    b'"sequenceId":"5"},"schema":{"source":{"tableName":"t"}},"version":"0.0.1"}'
)
_OWN = {
    "datahub_tuple": list(_UNSTATED),
    "datahub_blob": [_BOTH, _BOTH.replace(b"_AFTER", b"")],
    "debezium": _SHAPES,
}


def sent(format: str) -> list[bytes]:
    """Return all messages that there are of a format."""
    found = goldens(format) + (_REAL[format]() if format in _REAL else []) + _OWN.get(format, [])
    return found + (lines(SHARED / "samples" / _PUBLIC[format]) if format in _PUBLIC and SHARED.is_dir() else [])


@cache
def units(format: str) -> list[Unit]:
    """Return the messages of a format, the halves of an update together, each once: goldens repeat themselves."""
    found: dict[object, dict[str, list[bytes]]] = {}
    whole: list[Unit] = []
    for text in dict.fromkeys(sent(format)):
        change = cdcavro.to_changes(text, format)[0]
        if change.op == "OTHER" and (change.before is not None or change.after is not None):
            # A row with an operation that nobody knows, which is refused.
            continue
        if change.half is None:
            whole.append((text,))
        else:
            found.setdefault((change.source, change.position), {}).setdefault(change.half, []).append(text)
    pairs = [pair for one in found.values() for pair in zip(one["BEFORE"], one["AFTER"], strict=True)]
    assert pairs or format not in HALVED
    return whole + pairs


def separate(format: str) -> list[Unit]:
    """Return the messages of a format one by one, as they pass into one that has halves too."""
    return [(text,) for unit in units(format) for text in unit]


def transcoded(texts: Unit | list[bytes], source: str, target: str, zone: ZoneInfo | None) -> list[Transcoded]:
    """Transcode a stream to its end."""
    transcoder = Transcoder(source, target, zone=zone)
    outcomes = [one for text in texts for one in transcoder.add(text)] + transcoder.finish()
    return [outcome.result() for outcome in outcomes]


@pytest.mark.parametrize(
    ("zone", "nth"),
    [
        pytest.param(None, 32, id="some"),
        pytest.param(None, 1, id="all", marks=pytest.mark.slow),
        pytest.param(BERLIN, 4, id="Berlin", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_every_difference_there_and_back_is_a_loss_and_nothing_else_is(source, target, zone, nth):
    """By path, value and kind of reason; of large sets every nth message."""
    found = units(source) if target not in HALVED or source == "datahub_tuple" else separate(source)
    for unit in found[::nth] if len(found) >= MANY else found:
        assert_lawful(unit, source, target, zone)


def assert_lawful(unit: Unit, source: str, target: str, zone: ZoneInfo | None) -> None:
    """Transcode there and back, and compare."""
    texts, losses = [], []
    for made in transcoded(unit, source, target, zone):
        texts += made.texts
        losses += made.losses
    if source == target:
        assert ([exact(one) for one in texts], losses) == ([exact(one) for one in unit], [])
        return
    back = [parse(text) for made in transcoded(texts, target, source, zone) for text in made.texts]
    came = [parse(text) for text in unit]
    wanted = [
        named(i, *difference)
        for i in range(len(came))
        for difference in compared(came, back, texts, i, Route(source, target, zone))
    ]
    assert Counter(map(kind, losses)) == Counter(wanted + form(came, back))


def compared(came: list, back: list, texts: list[bytes], index: int, way: Route) -> list[tuple]:
    """Return the differences of a message from what came back, in the form in which it came."""
    if not texts:
        return [("", came[index], ABSENT)]
    if len(came) == 2 != len(back):
        whole = [] if back else [("", came[index], ABSENT)]
        half = halves(texts, way)[index]
        return [*([("", came[index], ABSENT)] if half is None else differences(came[index], half)), *whole]
    if not back:
        return [("", came[index], ABSENT)]
    whole = back[index] if len(came) == 2 else like(gathered(back), came[index])
    return list(differences(came[index], whole))


def named(index: int, pointer: str, value: object, other: object) -> tuple[int, str, str, str]:
    """Say what a loss says of a difference."""
    kind = "lacks" if other is ABSENT else "was absent" if value is ABSENT else "differs"
    return index, json_path(pointer), "" if value is ABSENT else render(value).decode(), kind


def kind(loss: Loss) -> tuple[int, str, str, str]:
    """Say what a loss says, its reason in short."""
    lacks = ("no place for it", "no message for it", "share for it", "change for it")
    absent = loss.reason.startswith("absent here, but present when it comes back from ")
    short = "lacks" if loss.reason.endswith(lacks) else "was absent" if absent else "differs"
    return loss.message, loss.path, loss.value, "form" if (loss.path, loss.value) == ("$", "") else short


def form(came: list, back: list) -> list[tuple[int, str, str, str]]:
    """Say whether messages come back in another form: as another number of them, or Debezium's in another shape."""
    is_other = len(came) == 2 != len(back) > 0 or len(back) > len(came)
    is_other = is_other or (len(back) == 1 and like(back[0], came[0]) != back[0])
    return [(len(came) - 1, "$", "", "form")] if is_other else []


def halves(texts: list[bytes], way: Route) -> list[dict | None]:
    """Write the halves of the update that there is in a target, as the source writes them; None without its row."""
    read = [change for text in texts for change in cdcavro.to_changes(text, way.target, zone=way.zone)]
    (update,) = join_halves(read)
    whole: Change = replace(update, members=None, operation=None)
    split = [replace(whole, half="BEFORE", after=None), replace(whole, half="AFTER", before=None)]
    written = [cdcavro.from_changes([one], way.source, zone=way.zone) for one in split]
    return [parse(texts[0]) if texts else None for texts in written]


def gathered(messages: list[dict]) -> dict:
    """Put the rows of several Canal messages into one, and the images of two of Blob."""
    first, *others = messages
    if "payload" in first and others:
        (after,) = others
        return after | {"payload": after["payload"] | {"before": first["payload"]["before"]}}
    rows = {name: [row for one in messages for row in one[name] or [None]] for name in ("data", "old") if others}
    return first | {name: given if any(given) else None for name, given in rows.items()}


def like(back: dict, came: dict) -> dict:
    """Put what came back into the record, and beside the schemas, in which the other came."""
    if not {"value", "op", "ddl", "payload"} & set(came) or "version" in came:
        return back
    if "value" not in came:
        value = back.get("value", back)
        return {"payload": value} if "payload" in came else value
    back = back if "value" in back else {"value": back}
    wrapped = {name for name in back if type(came.get(name)) is dict and {"schema", "payload"} <= set(came[name])}
    return {name: {"payload": part} if name in wrapped else part for name, part in back.items()}


@pytest.mark.parametrize("target", ["canal", "datahub_tuple", "oms_shareplex"])
@pytest.mark.slow
def test_the_law_holds_where_columns_are_learned_from_the_stream(target):
    """Over all real messages of Debezium."""
    transcoder = Transcoder("debezium", target)
    for text in shop_debezium():
        made = transcoder.add(text, 0)[0].result()
        back = [parse(one) for other in transcoded(made.texts, target, "debezium", None) for one in other.texts]
        came = [parse(text)]
        wanted = [
            named(0, *difference) for difference in compared(came, back, made.texts, 0, Route("debezium", target, None))
        ]
        assert Counter(map(kind, made.losses)) == Counter(wanted + form(came, back))


def lost(message: bytes | str, source: str, target: str) -> list[str]:
    """Return the paths of what a message loses."""
    return [loss.path for loss in cdcavro.transcode(message, source, target).losses]


def test_of_the_two_halves_of_an_update_only_what_is_lost_is_named():
    """Both rows are in the output: the number that the halves share is not, and so neither of them comes back."""
    losses = [loss for made in transcoded(list(_UNSTATED), "datahub_tuple", "oms_canal", None) for loss in made.losses]
    reason = "does not come back from oms_canal: datahub_tuple needs a number that both images share for it"
    assert losses == [
        Loss("$._sequence_id_", '"2"', "oms_canal has no place for it", 0),
        Loss("$._operation_type_", "", "absent here, but present when it comes back from oms_canal", 0),
        Loss("$._sequence_id_", '"2"', "oms_canal has no place for it", 1),
        Loss("$._operation_type_", "", "absent here, but present when it comes back from oms_canal", 1),
        *(Loss("$", half.decode(), reason, i) for i, half in enumerate(_UNSTATED)),
    ]


@pytest.mark.parametrize("source", cdcavro.FORMATS)
def test_a_message_that_does_not_come_back_is_a_loss(source):
    """Over all pairs, there and back: fewer messages than went are said to be fewer."""
    for target, unit in product(set(cdcavro.FORMATS) - {source}, units(source)[: MANY // 2]):
        transcoder = Transcoder(source, target)
        for outcome in [one for text in unit for one in transcoder.add(text)] + transcoder.finish():
            made = outcome.result()
            back = [text for one in transcoded(made.texts, target, source, None) for text in one.texts]
            whole = [loss for loss in made.losses if loss.path == "$"]
            if not back:
                assert {loss.message for loss in whole if loss.value} == {number for number, _ in outcome.messages}
            elif len(back) < len(outcome.messages):
                assert whole


@pytest.mark.parametrize("target", sorted(set(cdcavro.FORMATS) - {"debezium", "canal", "canal_protobuf"}))
def test_of_a_kafka_record_the_row_is_not_lost(target):
    """Whether its key comes back or not, and whatever the place that it had; Canal makes strings of its values."""
    record = (
        '{"topic":"t","key":{"id":7},"value":{"before":null,"after":{"id":7,"v":1.20},"op":"c",'
        '"source":{"connector":"mysql","db":"d","table":"t","file":"b.000001","pos":5,"row":0}}}'
    )
    paths = lost(record, "debezium", target)
    assert not [path for path in paths if path == "$.value" or "after" in path or "before" in path]
    assert {"$.topic", "$.value.source.file", "$.value.source.pos"} <= set(paths)


def test_a_value_beside_its_schema_is_compared_as_that():
    """The schema is lost, the day is only written otherwise, and that it stands without schema is said."""
    *_, shape = cdcavro.transcode(_SHAPES[1], "debezium", "oms_default").losses
    assert shape == Loss("$", "", "comes back from oms_default as a Kafka record, without embedded schemas")
    found = {loss.path: loss.reason for loss in cdcavro.transcode(_SHAPES[1], "debezium", "canal").losses}
    assert found["$.value.schema"] == "canal has no place for it"
    assert found["$.value.payload.after.d"] == "comes back from canal as the same value in another form"

"""Places of rejects beside their folder, which tables and topics are theirs; reasons, without the values of messages."""

from __future__ import annotations

import json
import shutil
from base64 import b64decode
from datetime import UTC
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from cdcavro.errors import JobError, TextError
from cdcavro.exact.jsontext import parse
from cdcavro.lake.lakes import DeltaLake
from cdcavro.sync.outputs.reject_places import LONGEST, RejectPlaces, kind_of, place_of, reason_key, replay
from cdcavro.sync.outputs.sink_settings import LakeSettings
from cdcavro.sync.settings import Formats
from cdcavro.sync.sources import Kafka
from cdcavro.table import TableName
from support.messages import SENTENCES, canal

LAKE = LakeSettings(DeltaLake("lake"))


@pytest.mark.parametrize(
    ("table", "is_refused"),
    [
        (TableName("ops", None, "rejects"), True),
        (TableName("OPS", None, "Rejects"), True),
        (TableName("Ops", None, "re\uff4aects"), True),
        (TableName("ops", "rejects", "t"), False),
        (TableName(None, None, "ops"), False),
        (TableName(None, "ops", "rejects"), False),
        (TableName("ops", None, "rejects~2"), False),
        (TableName("ops", None, "x" * 300), False),
    ],
)
def test_a_table_in_the_folder_of_the_rejects_is_refused(table: TableName, is_refused: bool):
    """Those whose names are in it, or around it, have other folders."""
    places = RejectPlaces.of("ops.rejects", None, Kafka("a", ("t",)), LAKE)
    assert (places.clash(table, None) is not None) is is_refused


def test_a_table_whose_topic_is_that_of_the_rejects_is_refused():
    """Readers of framed payloads would meet lines of JSON."""
    places = RejectPlaces.of(None, "cdc.shop.rejects", Kafka("a", ("t",)), LAKE)
    assert (
        places.clash(TableName("shop", None, "rejects"), "cdc.{name}")
        == "its topic is that of the rejects, cdc.shop.rejects"
    )
    assert places.clash(TableName("shop", None, "rejects"), "{name}") is None
    assert places.clash(TableName("shop", None, "rejects"), None) is None


def test_the_topic_has_what_the_source_says_of_connecting():
    """Not what only a source has."""
    options = {"Kafka.security.protocol": "SSL", "startingOffsets": "latest", "kafka.client.id": "me"}
    kafka = RejectPlaces.of(None, "r", Kafka("a:1", ("t",), options=options), LAKE).kafka
    assert kafka is not None
    assert (kafka.servers, kafka.topic) == ("a:1", "r")
    assert kafka.options == {"Kafka.security.protocol": "SSL", "kafka.client.id": "me"}


@pytest.mark.slow
def test_rejects_are_in_the_table_once_and_are_read_again_once(job):
    """Also if the first run failed before; the data's table of that name waits, and one of something else is left alone."""
    made, told = job(), {"formats": Formats("canal"), "rejects_table": "ops.rejects"}
    write_deltalake(made.folder / "lake" / "ops" / "rejects", pa.table({"id": pa.array([1], pa.int32())}))
    made.send(
        canal("INSERT", [{"id": "1", "a": "1"}], id=1),
        b"\xff{",
        canal("INSERT", [{"id": "2", "a": "y"}], id=2),
        canal("INSERT", [{"id": "3"}], id=3, database="ops", table="rejects"),
    )
    other = r"the rejects of batch 0 cannot be written to the table ops\.rejects of Delta Lake at .*other columns: 'id'"
    strict = {"options": {"on_misfit": "reject"}}
    with pytest.raises(JobError, match=other):
        made.run(**told, **strict)
    assert not (made.folder / "lake" / "d").exists()
    shutil.rmtree(made.folder / "lake" / "ops")
    (report,) = made.run(**told, **strict)
    assert report.waiting == {"ops.rejects": "its place in the lake is that of the rejects, ops.rejects"}
    columns = ("raw", "record_key", "topic", "partition", "offset", "line", "format", "path", "reason", "batch")
    first = made.rows("ops.rejects", *columns)
    folder = made.folder / "state" / "rejects"
    lines = [json.loads(line) for path in folder.rglob("*.json") for line in path.open()]
    assert first == sorted((*[_value(one, name) for name in columns[:-1]], 0) for one in lines)
    assert len(first) == 2
    found = made.rows("ops.rejects", "time", "file")
    assert {(time.astimezone(UTC).isoformat(), file) for time, file in found} == {
        (one["time"], one["file"]) for one in lines
    }
    made.run_again(**told, **strict)
    assert made.rows("ops.rejects", *columns) == first
    replay(folder, made.folder / "state" / "replay")
    (again,) = made.run(**told)
    assert (again.counts["read"], again.counts["written"], again.counts["rejected"]) == (2, 1, 1)
    assert made.rows("d.t", "id", "_cdc_unparsed['a']") == [(1, None), (2, "y")]
    assert [row[:1] + row[-1:] for row in made.rows("ops.rejects", *columns) if row[-1]] == [(b"\xff{", 1)]


def _value(line: dict[str, str | None], name: str) -> object:
    value = line[name]
    return b64decode(value) if name in ("raw", "record_key") and value is not None else value


NOWHERE: dict[str, Any] = dict.fromkeys(("topic", "partition", "offset", "file", "line"))


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ({"topic": "shop", "partition": 2, "offset": 70}, "shop partition 2 offset 70"),
        ({"file": "file:///in/a%20b.jsonl", "line": 3}, "/in/a b.jsonl line 3"),
        ({"file": "s3a://key:secret@bucket/a.jsonl", "line": 3}, "s3a://bucket/a.jsonl line 3"),
        ({}, ""),
    ],
)
def test_the_place_of_a_reject_has_no_login(place: dict[str, Any], said: str):
    """The address of a bucket may have one."""
    assert place_of(NOWHERE | place) == said


@pytest.mark.parametrize("same", SENTENCES)
def test_sentences_that_differ_by_their_values_only_are_one_reason(same: list[str]):
    """What is masked is the whole value: no digit of a hexadecimal number stays."""
    assert len({kind_of(one) for one in same}) == 1
    assert kind_of("expected int, got string") == "expected int, got string"


def test_texts_that_are_no_json_for_unlike_reasons_are_told_apart():
    """By what belongs where they go wrong, whatever stands there: so there are few reasons of any number of texts."""
    faults = [
        ("no message", "nothing"),
        ('{"a":tru}', '{"a":[1,"b",]}'),
        ("{'a':1}", '{"b":1,"c":2,}'),
        ('{"a":1 "b":2}', '{"a":01}'),
        ('{"a" 1}', '{"ab"=1}'),
        ('{"a":"\n"}', '["\t"]'),
        ('{"a":"\\x"}', '["\\u12"]'),
        ('{"a":1', '{"a":"xy'),
        ('{"a":1}{"b":2}', "1 2"),
    ]
    kinds = []
    for alike in faults:
        (kind,) = {kind_of(said_of(text)) for text in alike}
        kinds.append(kind)
    assert len(set(kinds)) == len(faults)
    assert kinds[:2] == [f"expected JSON, got … at character …{end}" for end in ("", " where a value belongs")]


def said_of(text: str) -> str:
    """Return what is said of a text that is no JSON."""
    with pytest.raises(TextError) as caught:
        parse(text)
    return reason_key(None, None, str(caught.value))[2]


def test_a_reason_has_neither_its_place_in_the_message_nor_what_stands_before_every_sentence():
    """And is bounded; of a reject without a format it is about the message."""
    assert reason_key("canal", "$.data[3].id", "canal: $.data[3].id: no") == ("canal", "$.data[*].id", "no")
    assert reason_key(None, None, "message: $: no") == ("", "", "no")
    assert len(reason_key(None, None, "x" * 1_000)[2]) == LONGEST

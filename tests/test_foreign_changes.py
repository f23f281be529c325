"""Changes that nobody's format made: whatever is read as a change is taken or refused wherever changes go."""

from __future__ import annotations

import copy
import os
import random
from typing import Any
from zoneinfo import ZoneInfo

import pytest

import cdcavro
from cdcavro.change.model import Arrival, Change, Source, to_record
from cdcavro.change.order import order_key, shard, split_key_change
from cdcavro.change.order_value import order_value
from cdcavro.errors import CdcAvroError, PayloadError
from cdcavro.exact.numbers import ExactNumber
from cdcavro.table.tables import Tables
from cdcavro.wire.formats import change_format
from support.messages import goldens

_ZONE = ZoneInfo("Asia/Shanghai")
_VALUES = [
    *(None, "", "x", 0, 1, -1, 2**31, 2**63 - 1, -(2**63), 1.5, True, False, [], {}, [None], [1], ["a"]),
    *({"a": None}, {"a": 1}, {"x": "1"}, {"": "{}"}, {"kafka": "1"}, {"/data/0": ""}, {"name": None}),
    *("2024-01-01 00:00:00", "2024-01-01", "\x01", "a\x01b", "/", "~", "/a", "0", "-1", "1.5", "null", "x" * 300),
    *(
        ExactNumber("9223372036854775808"),
        ExactNumber("1.20"),
        ExactNumber("1e400"),
        [{"name": "a", "type": "decimal(1000,-5)"}],
        [{"name": "id"}] * 2,
    ),
    *([{"name": "id", "type": "bit(9)"}], [{"name": "id", "type": "timestamp(9)", "code": -7}], "UPDATE", "DDL"),
    *("BEFORE", "AFTER", "OTHER", "debezium", "canal", "mysql", "ob_mysql", "postgresql", "mongodb", '{"op":1}', "{"),
]
_NAMES = sorted({*Change.__struct_fields__, *Source.__struct_fields__, *Arrival.__struct_fields__, "x"})


def _paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(below for name, item in inner for below in _paths(item, (*path, name)))]


def _mutated(record: Any, chosen: random.Random) -> Any:
    """Return a record with some members gone, added, or of any other value."""
    record = copy.deepcopy(record)
    for _ in range(chosen.choice((1, 1, 2, 5))):
        *above, name = chosen.choice(_paths(record)[1:])
        parent = record
        for step in above:
            parent = parent[step]
        what = chosen.random()
        if what < 0.15 and isinstance(parent, dict) and len(parent) > 1:
            del parent[name]
        elif what < 0.3 and isinstance(parent, dict):
            parent[chosen.choice(_NAMES)] = copy.deepcopy(chosen.choice(_VALUES))
        else:
            parent[name] = copy.deepcopy(chosen.choice(_VALUES))
    return record


def _uses(change: Change, tables: Tables, chosen: random.Random):
    """Yield everything that is done with a change, each as a function without arguments."""
    for format in cdcavro.FORMATS:
        yield lambda name=format: cdcavro.from_changes([change], name)
        yield lambda name=format: cdcavro.from_changes([change, change], name, zone=_ZONE)
        yield lambda name=format: [
            cdcavro.transcode(text, name, chosen.choice(cdcavro.FORMATS))
            for text in cdcavro.from_changes([change], name)
        ]
    yield lambda: order_key(change)
    yield lambda: order_value(change)
    yield lambda: shard(change, 8)
    yield lambda: split_key_change(change)
    yield lambda: tables.add(change)
    yield lambda: cdcavro.table_schema_of(change)
    yield lambda: repr(Change.from_avro(change.to_avro())) == repr(change) or pytest.fail("it does not come back")


def _trial(seed: int, count: int) -> tuple[int, int]:
    """Return how many payloads were read as changes, and how many uses of these were refused."""
    chosen = random.Random(seed)
    messages = [(message, format) for format in cdcavro.FORMATS for message in goldens(format)]
    records = [to_record(change) for message, format in messages for change in cdcavro.to_changes(message, format)]
    tables = Tables(zone=_ZONE)
    taken = refused = 0
    for _ in range(count):
        try:
            change = Change.from_avro(change_format().write(_mutated(chosen.choice(records), chosen)))
        except CdcAvroError:
            continue
        taken += 1
        for use in _uses(change, tables, chosen):
            try:
                use()
            except CdcAvroError as error:
                refused += 1
                assert len(str(error)) < 4_000  # noqa: PT017
    return taken, refused


@pytest.mark.slow
def test_whatever_is_read_as_a_change_is_taken_or_refused():
    """By every format, by order and shards, and by tables: with no error but the project's own."""
    taken, refused = _trial(seed=1, count=400)
    assert (taken > 80, refused > 100) == (True, True)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 6))
def test_many_more_are_taken_or_refused(seed):
    """As above, of other changes, of which CDCAVRO_EXAMPLES asks for more."""
    count = int(os.environ.get("CDCAVRO_EXAMPLES") or 800)
    assert _trial(seed, count)[0] > count // 5


@pytest.mark.parametrize(
    ("fact", "sentence"),
    [
        ({"position": ["7"]}, "$.position[0]: expected int, got str"),
        ({"key": [None]}, "$.key[0]: expected str, got null"),
        ({"columns": [None]}, "$.columns[0]: expected object, got null"),
        ({"row": None}, "$.row: expected int, got null"),
        ({"operation": 7}, "$.operation: expected str or null, got int"),
        ({"source": {"table": 1}}, "$.source.table: expected str or null, got int"),
        ({"members": {"/a": 1}}, '$.members["..."]: expected str, got int'),
        ({"x": 1}, "$: expected a change, got \"Object contains unknown field 'x'\""),
        ({"half": "MIDDLE"}, "$.half: expected one of BEFORE, AFTER, got 'MIDDLE'"),
        ({"op": "EXPLODE"}, "$.op: expected one of INSERT, "),
    ],
)
def test_a_payload_that_is_no_change_is_refused_with_what_is_wrong(fact, sentence):
    """Values of another type come by `extras`, which keep a message whole."""
    payload = change_format().write({"op": "INSERT", "source": {}, **fact})
    with pytest.raises(PayloadError) as caught:
        Change.from_avro(payload)
    assert str(caught.value).startswith(f"change: {sentence}")


def test_members_without_a_pointer_are_refused():
    """Those of a row alone, too."""
    change = Change(op="INSERT", source=Source(format="oms_canal"), after={}, rows=2, members={"x": "1"})
    with pytest.raises(PayloadError, match="expected a JSON pointer in extras, got 'x'"):
        cdcavro.from_changes([change], "oms_canal")


def test_an_instant_before_nanoseconds_is_sent_without_them():
    """Those of 64 bits reach back to 1677."""
    change = Change(op="HEARTBEAT", source=Source(format="debezium"), event_time=-(2**62), system_time=-(2**62))
    (text,) = cdcavro.from_changes([change], "debezium")
    assert b"ts_ns" not in text

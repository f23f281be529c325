"""Records of topics: what is before their payloads, what keys say, and the shards of rows; brokers are asked elsewhere."""

from __future__ import annotations

import pytest

import cdcavro
from cdcavro.change.model import Change
from cdcavro.change.order import shard
from cdcavro.errors import CdcAvroError
from cdcavro.sync.outputs.sink_settings import BLOB, TUPLE, KafkaTopics
from cdcavro.sync.outputs.topic_records import (
    headers_of,
    identity_of,
    key_prefixes,
    key_texts,
    left_out,
    shards,
    value_prefixes,
)
from cdcavro.sync.outputs.writer import SchemaIds
from cdcavro.table.tables import TypedChange
from support.messages import canal


def typed(types: dict[str, str], *rows: dict[str, str]) -> tuple[list[Change], list[TypedChange]]:
    """Return changes, and what `Tables` writes of each; a column whose name begins with `k` is one of the key."""
    tables = cdcavro.Tables()
    members = {"mysqlType": types, "pkNames": [name for name in types if name.startswith("k")] or None}
    changes = [
        change
        for i, row in enumerate(rows)
        for change in cdcavro.to_changes(canal("INSERT", [row], id=i, **members), "canal")
    ]
    return changes, [one for change in changes for one in tables.add(change)]


@pytest.mark.parametrize("strategy", [BLOB, TUPLE])
def test_the_shard_of_a_key_is_that_of_the_change(strategy: str):
    """For integers, texts and decimals, of all sizes."""
    types = {"k1": "bigint unsigned", "k2": "varchar(9)", "k3": "decimal(30,2)", "n": "int"}
    rows = [{"k1": str(7**i), "k2": f"é{i}", "k3": f"{-(9**i)}.20", "n": "1"} for i in range(20)]
    changes, made = typed(types, *rows)
    keys = {one.schema.version: one.schema.key.json for one in made if one.schema.key is not None}
    placed = [(one.schema.version, one.key, b"") for one in made]
    found = [*shards(strategy, 7, made[0].schema.table, keys, placed)]
    assert found == [shard(change, 7) for change in changes]
    assert len(set(found)) > 4


def test_without_a_key_it_is_that_of_the_table_or_any():
    """With the rule of Tuple, rows are spread, and a row that is written again goes where it went."""
    (change,), (made,) = typed({"n": "int"}, {"n": "1"})
    rows = [(1, None, bytes([i])) for i in range(50)]
    blob, first, again = ([*shards(one, 5, made.schema.table, {}, rows)] for one in (BLOB, TUPLE, TUPLE))
    assert set(blob) == {shard(change, 5)}
    assert len(set(first)) == 5
    assert first == again


@pytest.mark.parametrize(("declared", "value"), [("date", "2024-01-02"), ("binary(2)", "ab"), ("int", "no number")])
def test_a_key_of_another_type_is_taken_as_it_is_encoded(declared: str, value: str):
    """So is one whose text is no value of its type: equal keys are in one shard."""
    _, (made,) = typed({"k": declared}, {"k": value})
    assert made.key is not None
    assert made.schema.key is not None
    assert key_texts(made.key, made.schema.key) == [made.key.hex()]
    (found,) = shards(BLOB, 1_000, made.schema.table, {1: made.schema.key.json}, [(1, made.key, b"")])
    (again,) = shards(TUPLE, 1_000, made.schema.table, {1: made.schema.key.json}, [(1, made.key, b"other")])
    assert found == again


def test_a_key_that_was_cut_off_is_an_error():
    """It names no shard by mistake."""
    _, (made,) = typed({"k": "varchar(9)"}, {"k": "abc"})
    assert made.key is not None
    assert made.schema.key is not None
    with pytest.raises(CdcAvroError, match="ends"):
        key_texts(made.key[:2], made.schema.key)


def test_each_version_has_the_prefixes_of_its_schemas():
    """Of keys, those that have one."""
    ids = {1: SchemaIds(7, None), 2: SchemaIds(8, 9)}
    assert value_prefixes(ids) == {1: b"\0\0\0\0\7", 2: b"\0\0\0\0\10"}
    assert key_prefixes(ids) == {2: b"\0\0\0\0\11"}


def test_headers_name_the_job_the_table_and_the_batch():
    """A record of no table has no header of one."""
    assert headers_of("j", 3) == {"cdcavro.job": b"j", "cdcavro.batch": b"3"}
    assert headers_of("j", 3, 0) == {"cdcavro.job": b"j", "cdcavro.table": b"0", "cdcavro.batch": b"3"}


def test_topics_are_identified_by_their_cluster_and_leave_out_what_is_no_record():
    """The brokers that are named may be others, and a TRUNCATE is one if it is wanted."""
    one, other = KafkaTopics("a:1", "t"), KafkaTopics("b:1", "t", truncates=False)
    assert identity_of(one, "c") == identity_of(other, "c") == "the topics t of the Kafka cluster c"
    assert len(left_out(other)) == len(left_out(one)) + 1

"""Where a reject is, as the report says it; the reasons themselves are those of pipelines that run."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from cdcavro.spark.pipeline.progress.reasons import kind_of, place_of

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


@pytest.mark.parametrize(
    "same",
    [
        [
            "expected UTF-8, got byte 0xef at byte 0",
            "expected UTF-8, got byte 0x1b at byte 12",
            "expected UTF-8, got byte 0x00 at byte 9",
        ],
        ["expected JSON, got U+FEFF", "expected JSON, got U+202E", "expected JSON, got U+0041"],
        ["expected int, got 1.5E+10", "expected int, got -7", "expected int, got 12,345"],
        ["expected int, got 'it\\'s \"b\"'", "expected int, got 'a'", "expected int, got 'x\\x1b}'"],
    ],
)
def test_sentences_that_differ_by_their_values_only_are_one_reason(spark: SparkSession, same: list[str]):
    """What is masked is the whole value: no digit of a hexadecimal number stays."""
    sentences = spark.createDataFrame([(one,) for one in [*same, "expected int, got string"]], "said string")
    kinds = [row["kind"] for row in sentences.select(kind_of(sf.col("said")).alias("kind")).collect()]
    assert len({*kinds[: len(same)]}) == 1
    assert kinds[-1] == "expected int, got string"

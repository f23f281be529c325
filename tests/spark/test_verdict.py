"""The verdict is what Avro Java and fastavro then do, but for the differences that are listed here.

Avro Java is the one in Spark's own jars, reading with its conversions of logical types.
"""

from __future__ import annotations

import json
import re
from collections import Counter

import pytest
from hypothesis import given, note, settings
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql.avro.functions import from_avro

from cdcavro.avro.compatibility import verdict
from cdcavro.avro.schema import parse_schema
from support.schema_data import expected, is_same, write
from support.schema_pairs import UnreadableError, fastavro_difference, fastavro_reads, pair, pairs
from support.verdict_engines import Java, Spark, agrees, tried
from support.verdict_trial import trial
from support.wire import array, enum, field, record

PAIRS = 450
MICROS = {"type": "long", "logicalType": "timestamp-micros"}
MILLIS = {"type": "long", "logicalType": "timestamp-millis"}


def decimal(precision, scale):
    """Return a decimal of bytes."""
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}


# The verdict says no, and both engines read all the same and alike. By the reason that it gives.
READ_ALL_THE_SAME = {
    "the namespace changed: both go by the last part of a name": r"(.*\bm\.\w+.* (cannot read|reads) .*)",
    "precision: neither looks at it, Spark does": r"precision \d+ cannot read precision \d+",
    "a logical type that has no conversion": r"duration reads plain .*",
    "fastavro takes the first branch that promotes, with the number or text of another type": r"fastavro reads .*",
    "a type that is also another's alias, and of the same shape": r"\S+ is a type of the reader's and an alias of .*",
}
# The verdict says yes, and fastavro gives something else than Avro Java. See `fastavro_difference`.
FASTAVRO_GIVES = {
    "gives a default as the schema's JSON has it",
    "gives the writer's logical type",
    "refuses a decimal that is invalid",
}
# The verdict says no, and Avro Java alone reads it.
JAVA_READS = {
    "a record renamed without an alias": r"\S+ cannot read n\.R\d*",
}
# Pairs that show each of them, whatever hypothesis draws.
EXAMPLES = [
    (enum("A", name="n.E1"), enum("A", name="m.E1")),
    (decimal(6, 2), decimal(5, 2)),
    (decimal(4, 2), decimal(4, 5)),
    (enum("A", "B"), {**enum("A"), "default": "A"}),
    (
        {"type": "fixed", "name": "F", "size": 12},
        {"type": "fixed", "name": "F", "size": 12, "logicalType": "duration"},
    ),
    (
        record(field("a", record(field("x"), name="S"))),
        record(
            field("a", record(field("x"), name="S")),
            field("b", record(field("x"), name="T", aliases=["S"]), default={"x": 1}),
        ),
    ),
    (record(), record(field("a", "bytes", default="\x01"))),
    (MICROS, "long"),
    (["null", "long"], ["double", "long", "null"]),
    (record(field("a"), name="n.R1"), record(field("a"), name="n.N2")),
]


@pytest.fixture(scope="module")
def java(spark) -> Java:
    """Avro Java in the session's JVM."""
    return Java(spark._jvm)


def differences(one, java: Java) -> set[str]:
    """Check a pair with both engines. Gives the known differences that it shows."""
    read = java.reader(one.writer, one.reader)
    results = [
        (value, tried(lambda raw: fastavro_reads(one.writer, one.reader, raw), payload), tried(read, payload))
        for value, payload in one.data
    ]
    return _as_expected(one, results) if one.step else _refused(one, results)


def _as_expected(one, results) -> set[str]:
    """The reader reads all: Avro Java gives what is expected, and fastavro too or as is known."""
    shown = set()
    for value, by_fastavro, by_java in results:
        wanted = expected(one.step, value)
        assert agrees(wanted, by_java), (value, by_java)
        if not is_same(wanted, by_fastavro):
            shown.add(fastavro_difference(one, value, by_fastavro))
    return shown


def _refused(one, results) -> set[str]:
    """The reader does not read all: some datum fails somewhere or is read in two ways, or the reason is listed."""
    fails = [UnreadableError in (by_fastavro, by_java) for _, by_fastavro, by_java in results]
    if not any(fails) and all(agrees(by_fastavro, by_java) for _, by_fastavro, by_java in results):
        listed = {name for name, reason in READ_ALL_THE_SAME.items() if any(_says(reason, one.reasons))}
        assert listed, results
        return listed
    if all(fails) and all(by_java is not UnreadableError for _, _, by_java in results):
        return {name for name, reason in JAVA_READS.items() if all(_says(reason, one.reasons))}
    return set()


def _says(reason: str, reasons: list[str]):
    return [bool(re.fullmatch(reason, one)) for one in reasons]


def test_verdict_is_what_avro_java_and_fastavro_then_do(java):
    """On hundreds of pairs; a difference that is not listed fails, and a listed one that does not occur."""
    names: Counter[str] = Counter()
    known: Counter[str] = Counter()

    def check(one):
        names[one.verdict.name] += 1
        known.update(differences(one, java))

    @settings(max_examples=PAIRS)
    @given(pairs())
    def check_drawn(one):
        note(f"writer {one.writer}\nreader {one.reader}\n{one.verdict}")
        check(one)

    check_drawn()
    for writer, reader in EXAMPLES:
        check(pair(json.dumps(writer), json.dumps(reader)))
    assert set(known) == {*READ_ALL_THE_SAME, *FASTAVRO_GIVES, *JAVA_READS}
    assert sum(names.values()) >= PAIRS
    assert min(names[name] for name in ("full", "backward", "forward", "breaking")) >= PAIRS // 20


def test_a_yes_of_the_verdict_holds_for_random_triples(java, spark):
    """Avro Java, fastavro and Spark read the data, and read it right, or as a note says; `verdict_trial.py` tries more."""
    found = trial(java, Spark(spark), yeses=1500, seed=14, spark_every=12)
    assert found.broken == []
    assert found.yeses >= 1500
    assert found.by_spark >= 30
    assert set(found.noted) >= {"default", "unit"}


@pytest.mark.parametrize(
    ("writer", "reader"),
    [
        (record(), record(field("a", [array("int"), "int"], default=7))),
        (record(), record(field("a", [enum("A"), "string"], default="b"))),
        (
            record(field("a", record(field("old"), name="S"), default={"old": 1})),
            record(field("a", record(field("new", aliases=["old"]), name="S"))),
        ),
        (record(field("old"), field("new")), record(field("new", aliases=["old"]))),
        (record(field("new"), field("old")), record(field("new", aliases=["old"]))),
        (record(field("a"), field("b")), record(field("c", aliases=["a", "b"]))),
        (record(), record(field("a", [array("int"), "null"], default=[]))),
        (
            record(field("a", [enum("A", name="One"), enum("A", name="Other")])),
            record(field("a", enum("A", name="Other", aliases=["One"]))),
        ),
        (
            record(field("a", enum("A", name="One"))),
            record(
                field("a", enum("A", name="One")), field("b", enum("A", name="Other", aliases=["One"]), default="A")
            ),
        ),
    ],
)
def test_what_only_avro_java_fails_on(java, writer, reader):
    """Aliases that lead two ways (it renames in the whole of the writer's schema), and defaults. So the verdict says no."""
    one = pair(json.dumps(writer), json.dumps(reader))
    assert one.reasons
    read = java.reader(one.writer, one.reader)
    assert all(tried(read, payload) is UnreadableError for _, payload in one.data)


@pytest.mark.parametrize(
    ("writer", "reader", "value", "shown", "reason"),
    [
        (decimal(10, 2), decimal(10, 3), b"\x7b", "0.123", "scale 3 cannot read scale 2"),
        (
            MILLIS,
            MICROS,
            1000,
            "1970-01-01 00:00:00.001",
            "logicalType timestamp-micros cannot read logicalType timestamp-millis",
        ),
        (
            "long",
            MICROS,
            1_000_000,
            "1970-01-01 00:00:01",
            "timestamp-micros reads plain long: nothing says that it is one",
        ),
    ],
)
def test_spark_reads_another_value_without_a_word(spark, writer, reader, value, shown, reason):
    """`from_avro` takes the reader's unit: 1.23 is 0.123. The verdict says no."""
    writer, reader = (json.dumps(record(field("a", one))) for one in (writer, reader))
    assert read_by_spark(spark, writer, reader, {"a": value}) == shown
    assert [one.reason for one in verdict(reader, writer).problems if one.direction == "backward"] == [reason]


def test_spark_fails_on_a_decimal_of_too_many_digits(spark):
    """Avro Java passes over the precision, Spark does not. The verdict says no, for some data."""
    writer, reader = (json.dumps(record(field("a", decimal(precision, 2)))) for precision in (6, 5))
    assert read_by_spark(spark, writer, reader, {"a": b"\x7b"}) == "1.23"
    with pytest.raises((Py4JJavaError, PySparkException)):
        read_by_spark(spark, writer, reader, {"a": b"\x0f\x42\x3f"})
    assert [one.partial for one in verdict(reader, writer).problems] == [True]


def test_spark_reads_a_record_renamed_without_an_alias(spark):
    """The verdict says no and notes it."""
    writer, reader = (json.dumps(record(field("a"), name=name)) for name in ("Old", "New"))
    assert read_by_spark(spark, writer, reader, {"a": 7}) == "7"
    assert [one.reason for one in verdict(reader, writer).notes] == [
        "Avro Java, and Spark with it, reads Old without an alias too",
        "Avro Java, and Spark with it, reads New without an alias too",
    ]


def read_by_spark(spark, writer: str, reader: str, value) -> str:
    """Read one payload with `from_avro`, and give the field `a` as text."""
    payload = write(parse_schema(writer).root, value)
    frame = spark.createDataFrame([(bytearray(payload),)], "payload binary")
    return frame.select(from_avro("payload", writer, {"avroSchema": reader}).a.cast("string")).first()[0]

"""The facts of each format: what its samples mean, and that everything that tests over formats draw from is there."""

from __future__ import annotations

import pytest

import cdcavro
from cdcavro.change.model import to_record
from cdcavro.engine.program import Program
from cdcavro.exact.jsontext import differences, parse
from cdcavro.wire.attributes import marked_paths
from cdcavro.wire.formats import change_format, get_format, rule_of
from cdcavro.wire.kafka import is_kafka_record
from cdcavro.wire.message_program import row_parts
from support.facts import facts_of, with_headers
from support.messages import golden_files
from support.places import TESTS
from support.roundtrip import assert_round_trip

SAMPLES = [
    pytest.param(format, name, id=f"{format}-{name}")
    for format in cdcavro.FORMATS
    for name in facts_of(format).get("samples", ())
]
# What a change of a sample is not compared in: it differs between rows of one kind, or follows from the format.
BESIDE = ("row", "rows", "source", "operation")


def test_each_format_has_a_file_of_facts():
    """And nothing else has."""
    assert {path.stem for path in (TESTS / "formats" / "facts").iterdir()} == set(cdcavro.FORMATS)


@pytest.mark.parametrize(("format", "name"), SAMPLES)
def test_a_sample_means_what_its_facts_say(format, name):
    """Digit for digit."""
    (change,) = cdcavro.to_changes(golden_files(format)[name], format, members=False)
    made = {key: value for key, value in to_record(change).items() if key not in BESIDE}
    assert list(differences(made, facts_of(format)["samples"][name])) == []


@pytest.mark.parametrize(("format", "name"), [one for one in SAMPLES if get_format(one.values[0]).headers])
def test_a_sample_means_the_same_with_its_members_in_headers(format, name):
    """Digit for digit, and its record makes the round trip; one without a row is a record without a value."""
    record = with_headers(format, golden_files(format)[name])
    if record is None:
        return
    (change,) = cdcavro.to_changes(record, format, members=False)
    made = {key: value for key, value in to_record(change).items() if key not in (*BESIDE, "place")}
    assert list(differences(made, facts_of(format)["samples"][name])) == []
    assert_round_trip(format, record)


@pytest.mark.parametrize("format", [one for one in cdcavro.FORMATS if get_format(one).headers])
def test_samples_of_a_format_that_reads_headers_have_some(format):
    """In a record, so that all tests over formats draw it."""
    whole = [parse(text) for text in golden_files(format).values()]
    assert any(is_kafka_record(one) and one.get("headers") for one in whole)
    assert any(with_headers(format, text) for text in golden_files(format).values())


@pytest.mark.parametrize("format", cdcavro.FORMATS)
def test_all_samples_are_told_if_some_are(format):
    """A format that says what its samples mean leaves none out."""
    samples = facts_of(format).get("samples")
    assert samples is None or set(samples) == set(golden_files(format))


@pytest.mark.parametrize("format", cdcavro.FORMATS)
def test_a_schema_says_which_members_are_the_parts_of_rows(format):
    """Without `part`, or `means` from which it follows, rows leave the engine: all go the exact way, slowly."""
    parts = row_parts(get_format(format).envelope).names
    if rule_of(format).mixed:
        # A message holds rows of several tables, which only the exact way can tell apart.
        assert not parts
        return
    assert parts & {"row", "rows", "after"}, f"avsc/{format}.avsc: no member is a row (`means` or `part`)"
    assert parts & {"event_time", "event_time_fine"}, f"avsc/{format}.avsc: no member is the time of a change"
    assert isinstance(get_format(format).program, Program)
    rule = rule_of(format)
    assert rule.order or rule.position, f"avsc/{format}.avsc: neither numbers nor arrival order the changes"


@pytest.mark.parametrize("format", cdcavro.FORMATS)
def test_words_and_units_are_those_of_operations(format):
    """A misspelled one would make a change of nothing."""
    (symbols,) = {one.symbols for one in [change_format().envelope.fields[0].type]}
    stated = [word for _, ops in marked_paths(get_format(format).envelope, "ops") for word in ops.values()]
    stated += [op for _, units in marked_paths(get_format(format).envelope, "units") for op in units]
    assert set(stated) <= set(symbols)

"""The program of a pattern as text: which column goes to which field, and what becomes of its value."""

from __future__ import annotations

import re
from datetime import UTC

import pytest

from cdcavro.change.model import Column, Rule, Source
from cdcavro.engine.program import OPERATIONS
from cdcavro.table.columns.column_type import READERS, reader_of
from cdcavro.table.ddl.steps import TableName
from cdcavro.table.evolution.evolve import create_table
from cdcavro.table.writing.cells import CELLS, LEFT_TO_PYTHON, CellTable
from cdcavro.table.writing.table_writer import TableWriter
from support.places import ROOT

# Operands of each rule by which values are read, and of each by which they are sent.
READ = {
    "flag": (),
    "whole": (0, 255),
    "double": (),
    "single": (),
    "decimal": (-99, 99, 0, True),
    "digits": (True,),
    "string": (),
    "label": (("a", "b"),),
    "labels": (("a", "b"),),
    "json": (),
    "anything": (),
    "binary": (None,),
    "bits": (12,),
    "day": (None, "days"),
    "clock": (6,),
    "local": (None, "none", 6),
    "local or day": (None, "none"),
    "instant": (None, "seconds"),
    "milliseconds": (),
}
SENT = {
    **dict.fromkeys(("as sent", "number", "flag", "digits", "unsigned", "escaped", "bytes", "counted bits"), ()),
    **dict.fromkeys(("day", "instant"), ()),
    **dict.fromkeys(("label", "labels"), (("a", "b"),)),
    **dict.fromkeys(("clock", "local"), (6, None)),
    "decimal": (0,),
    "bits": (12,),
    "zoned": (3,),
}
COUNTS = ("seconds", "seconds or long", "milliseconds", "microseconds", "padded or seconds")


def operation(sent: Rule, read: Rule) -> str:
    """Return what the engine does with values that are sent and read so."""
    table = CellTable()
    table.add("v", sent, read, 2, 0)
    return OPERATIONS[table.cells[2]]


def program(format: str, *columns: str, key: tuple[str, ...] = (), zone=UTC, db_type: str | None = None) -> str:
    """Return the program of a table whose columns are `"name|type"`."""
    declared = tuple(Column(name=one.partition("|")[0], type=one.partition("|")[2]) for one in columns)
    source = Source(format=format, db_type=db_type, database="shop", table="t")
    schema = create_table(TableName("shop", None, "t"), declared, key, source)
    return str(TableWriter(schema, source, declared, zone=zone).row_program(key))


def test_each_column_has_a_cell():
    """Its name, what is done, the operands, the bytes before a value and for null, and whether it is of the key."""
    columns = [
        "id|bigint",
        "n|int unsigned",
        "d|decimal(10,2)",
        "t|text",
        "e|enum('a','b')",
        "at|timestamp(3)",
        "g|point",
    ]
    assert program("canal", *columns, key=("id",)).splitlines()[1:] == [
        "id: whole 0 0 0 some=2 null=0 key",
        "n: whole 2 0 0 some=2 null=0",
        "d: decimal 4 2 1 some=2 null=0",
        "t: string 0 0 0 some=2 null=0",
        "e: indexed label 0 2 0 some=2 null=0",
        "at: in zone 0 3 0 some=2 null=0",
        "g: left 0 0 0 some=2 null=0",
    ]


@pytest.mark.parametrize(
    ("format", "declared", "cell"),
    [
        ("canal", "bit(12)", "counted bits 12 0 0"),
        ("canal", "binary(8)", "latin1 8 0 0"),
        ("canal", "set('x','y')", "masked labels 0 2 0"),
        ("canal", "set('x','x')", "left 0 0 0"),
        ("canal", "enum('a','')", "left 0 0 0"),
        ("oms_canal", "bit(12)", "bits 12 0 0"),
        ("oms_canal", "blob", "base64 0 0 0"),
        ("oms_canal", "timestamp", "seconds or long 0 0 0"),
        ("oms_dataworks", "timestamp", "padded or seconds 0 0 0"),
        ("oms_dataworks", "float", "single 0 0 0"),
        ("datahub_blob", "DATE", "millis 0 0 0"),
        ("datahub_tuple", "timestamp", "microseconds 0 0 0"),
        ("debezium", "io.debezium.time.MicroTimestamp", "local 6 -1 0"),
        ("debezium", "io.debezium.time.Date", "day 1 0 0"),
        ("debezium", "org.apache.kafka.connect.data.Decimal(precision=10,scale=2)", "unscaled 0 2 0"),
        ("debezium", "io.debezium.data.Bits(length=12)", "reversed bits 12 0 0"),
        ("debezium", "io.debezium.data.Enum", "string 0 0 92"),
        ("debezium", "io.debezium.time.ZonedTimestamp", "iso 0 0 0"),
    ],
)
def test_a_value_is_read_as_its_format_sends_it(format, declared, cell):
    """The same type is another cell in another format."""
    assert program(format, f"v|{declared}").splitlines()[1] == f"v: {cell} some=2 null=0"


def test_without_its_zone_a_local_time_is_left():
    """It would be a misfit, which the exact way counts."""
    assert program("canal", "v|timestamp", zone=None).splitlines()[1] == "v: left 0 0 0 some=2 null=0"


def test_bounds_of_128_bits_are_two_halves():
    """The lower half is stored as a signed integer, whose bits are those of the unsigned one."""
    table = CellTable()
    assert table.wide_bounds(-(10**38), 10**38) == 0
    halves = [(table.longs[i] << 64) + table.longs[i + 1] % 2**64 for i in (0, 2)]
    assert halves == [-(10**38), 10**38]


def test_every_rule_has_a_cell_or_a_reason_to_be_left_to_python():
    """A rule that the engine does not know is one that somebody decided to leave."""
    assert CELLS.keys() | LEFT_TO_PYTHON.keys() == READERS.keys()
    assert CELLS.keys().isdisjoint(LEFT_TO_PYTHON)
    assert all(LEFT_TO_PYTHON.values())


def test_every_operation_is_that_of_a_cell():
    """Each way of sending values of each rule is one of the engine's operations, and no operation is without one."""
    pairs = [(Rule(sent, *SENT[sent]), Rule(read, *READ[read])) for read, cells in CELLS.items() for sent in cells]
    instants = [(Rule("as sent"), Rule("instant", None, count)) for count in COUNTS]
    made = {(sent.name, *read.operands, read.name): operation(sent, read) for sent, read in pairs + instants}
    assert [pair for pair, found in made.items() if found == "left"] == []
    assert {*made.values(), "gone", "left"} == set(OPERATIONS)


@pytest.mark.parametrize("name", READ)
def test_a_reader_takes_the_operands_of_its_cell(name):
    """The two tables mean the same by a rule."""
    assert callable(reader_of(Rule(name, *READ[name])))


@pytest.mark.parametrize("name", LEFT_TO_PYTHON)
def test_a_rule_that_is_left_has_no_cell(name):
    """However its values are sent."""
    assert {operation(Rule(sent, *operands), Rule(name)) for sent, operands in SENT.items()} == {"left"}


def test_the_engine_has_a_branch_for_every_operation():
    """What it does not know it would leave to Python, and nobody would see that."""
    source = (ROOT / "cdcavro" / "engine" / "cells.pxi").read_text(encoding="utf-8")
    branches = source.partition("cdef int _put_cell(")[2].partition("\ncdef ")[0]
    known = {f"OP_{one.upper().replace(' ', '_')}" for one in OPERATIONS} - {"OP_GONE", "OP_LEFT"}
    assert set(re.findall(r"OP_\w+", branches)) == known

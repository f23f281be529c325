"""The program of a pattern as text: which column goes to which field, and what becomes of its value."""

from __future__ import annotations

from datetime import UTC

import pytest

from cdcavro.change.model import Column, Source
from cdcavro.table.ddl.steps import TableName
from cdcavro.table.evolution.evolve import create_table
from cdcavro.table.writing.cells import CellTable
from cdcavro.table.writing.writer import TableWriter


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
        ("oms_dataworks", "timestamp", "padded 0 0 0"),
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

"""The program of a wire schema, as text."""

from __future__ import annotations

from cdcavro.engine.program import WIDTH
from cdcavro.wire.formats import REGISTRY
from cdcavro.wire.message_program import message_program
from support.wire import field, mine, nullable, required

OPERATIONS = {
    "type": "enum",
    "name": "Op",
    "symbols": ["I", "OTHER"],
    "json": {"other": "OTHER", "spellings": {"i": "I"}},
}


def test_a_schema_becomes_instructions():
    """One for each type, with the rows of a record's fields and an enum's symbols below it."""
    fields = [
        required("op", OPERATIONS),
        field("id", ["null", "long"], json={"name": "the/id", "missing": "null"}),
        nullable("seq", "long", "string"),
        nullable("names", {"type": "array", "items": "string"}),
    ]
    format = mine(*fields)
    assert str(message_program(format.envelope)).splitlines() == [
        "0 record first=0 count=5 rest=-1 opens=1 unstated=0 length=0 flags=0",
        '    "op": 1 required at /op',
        '    "the/id": 3 null at /the~1id',
        '    "seq": 4 absent at /seq',
        '    "names": 7 absent at /names',
        "     -1 extras",
        "1 enum first=0 count=2 other=1 spelled=4 spellings=1",
        '    "I" "OTHER"',
        "2 long",
        "3 optional value=2 branch=1 null=0 text=0",
        "4 variant null=0 boolean=-1 long=1 string=2 is_int=0",
        "5 string",
        "6 array items=5",
        "7 optional value=6 branch=1 null=0 text=0",
    ]


def test_below_an_array_a_member_has_no_pointer_of_its_own():
    """The engine finds it from the place where it is."""
    program = message_program(REGISTRY["oms_dataworks"].envelope)
    lines = str(program).splitlines()
    assert [line for line in lines if " at " not in line and line.startswith('    "type"')] != []
    assert len(program.code) % WIDTH == len(program.fields) % WIDTH == 0


def test_the_rest_of_a_record_is_a_map():
    """A format of rows has its columns there."""
    lines = str(message_program(REGISTRY["datahub_tuple"].envelope)).splitlines()
    assert lines[0].startswith("0 record first=0 count=8 rest=6")
    assert sum(line.endswith(" rest") for line in lines) == 1

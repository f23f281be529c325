"""What Python and the engine both number has the same names in both, in the same order."""

from __future__ import annotations

import re
from typing import Final

import pytest

from cdcavro.avro import translation_program
from cdcavro.change.model import Arrival
from cdcavro.engine import column_program, program
from cdcavro.engine.program import OPERATIONS, RULE_ACTIONS, RULE_SIZES, RULE_TESTS, RULE_TEXTS
from cdcavro.table.writing import table_writer
from cdcavro.wire.attributes import PARTS, POSITIONS
from cdcavro.wire.message_program import _COLUMN as BRANCHES
from support.places import ROOT

_ENUM: Final = re.compile(r"^cdef enum:  # (\w+): .*\n((?: +.*\n)+)", re.MULTILINE)
ENUMS: Final = {
    name: re.findall(r"\w+", re.sub(r"#.*", "", body))
    for path in (ROOT / "cdcavro/engine").glob("*.pxi")
    for name, body in _ENUM.findall(path.read_text(encoding="utf-8"))
}


def numbered(module: object, first: str, last: str) -> list[str]:
    """Return the names of a module's constants from one to another, which are numbered from 0."""
    names = [*vars(module)]
    found = names[names.index(first) : names.index(last) + 1]
    assert [getattr(module, name) for name in found] == [*range(len(found))]
    return found


# Of each enum, the names in Python, what C puts before each, and what it calls those that cannot be called the same.
SHARED = {
    "InstructionKind": (numbered(program, "BOOLEAN", "LEAVE"), "", {}),
    "Missing": (numbered(program, "ABSENT", "EXTRAS"), "", {"NULL": "NULL_"}),
    "TurnKind": (numbered(translation_program, "LEAVE", "REORDER"), "ON_", {}),
    "ActionKind": (numbered(translation_program, "FIELD", "DEFAULT"), "ON_", {}),
    "FillKind": (numbered(column_program, "NOTHING", "UNION"), "AS_", {}),
    "Layout": (numbered(column_program, "NO_CELLS", "ENDS"), "", {}),
    "CellKind": ([name.strip("_") for name in numbered(table_writer, "_LONG", "_BOOLEAN")], "CELL_", {}),
    "Operation": (OPERATIONS, "OP_", {}),
    "RuleAction": (RULE_ACTIONS, "RULE_", {}),
    "RuleSize": (RULE_SIZES, "RULE_", {}),
    "RuleText": (RULE_TEXTS, "TEXT_", {}),
    "RuleTest": (RULE_TESTS, "TEST_", {}),
    "Branch": (BRANCHES, "V_", {}),
    "Part": ((*PARTS, "parts"), "", {"": "FIXED"}),
    "Position": (POSITIONS, "", {"NONE": "NO_POSITION"}),
    "PlaceField": ((*Arrival.__struct_fields__, "fields"), "", {"FILE": "FILE_"}),
}


@pytest.mark.parametrize("enum", SHARED)
def test_enums_of_the_engine_have_the_names_of_python(enum):
    """Each name is at the same number, so nothing means one thing in Python and another in C."""
    names, prefix, other = SHARED[enum]
    called = [name.upper().replace(" ", "_") for name in names]
    assert ENUMS[enum] == [other.get(name, prefix + name) for name in called]


def test_every_named_enum_is_shared():
    """What C alone numbers has no name, but for the order of changes, which Python writes as numbers."""
    assert ENUMS.keys() - SHARED.keys() == {"OrderKind"}

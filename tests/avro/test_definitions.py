"""Where named types are defined when fields come, go and move: at their first use, under the same full name."""

from __future__ import annotations

import json
import random
from copy import deepcopy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdcavro.avro.schema import define_at_first_use, definitions, insert_definitions, parse_schema, write_full_names
from cdcavro.avro.types import named_types
from cdcavro.table.evolution.evolve import evolve
from cdcavro.table.table_schema import from_schema

FIXED = {"type": "fixed", "name": "F", "size": 2, "doc": "two bytes", "own": [1]}
ENUM = {"type": "enum", "name": "E", "namespace": "other", "symbols": ["A", "B"], "aliases": ["Old"], "default": "A"}
INNER = {"type": "record", "name": "In", "fields": [{"name": "x", "type": FIXED}, {"name": "y", "type": ["null", "F"]}]}


def record(*types, namespace="shop", name="t"):
    """Return a record with a field of each type, named a, b, c and so on."""
    fields = [{"name": chr(97 + i), "type": one} for i, one in enumerate(types)]
    return {"type": "record", "name": name, "namespace": namespace, "fields": fields}


def sizes(declared):
    """Return the named types below a schema's root, by full name: what each is."""
    found = list(named_types(parse_schema(json.dumps(declared)).root))
    return {one.name: type(one).__name__ for _, one in found[1:]}


def test_definitions_are_found_by_full_name():
    """Below arrays, maps, unions and records, each with the namespace that holds there."""
    declared = record({"type": "array", "items": INNER}, ["null", {"type": "map", "values": ENUM}])
    assert list(definitions(declared)) == ["shop.t", "shop.In", "shop.F", "other.E"]
    assert definitions("string") == {}


@pytest.mark.parametrize("kept", ["abc", "bc", "c", "b", "cba", "cab", "ca"])
def test_a_definition_goes_where_its_type_is_used_first(kept):
    """Whichever fields are left, in whichever order."""
    declared = record(FIXED, {"type": "array", "items": "F"}, ["null", "shop.F"])
    fields = {one["name"]: one for one in declared["fields"]}
    made = define_at_first_use(declared | {"fields": [fields[one] for one in kept]}, definitions(declared))
    assert sizes(made) == {"shop.F": "Fixed"}
    assert (
        json.dumps(made).count('"size"')
        == json.dumps(made).count('"two bytes"')
        == json.dumps(made).count('"own"')
        == 1
    )


def test_a_type_within_a_type_that_went_is_defined_where_it_is_used():
    """The record took the definition of its field's type along."""
    declared = record(INNER, "F", "In")
    known = definitions(declared)
    without_first = declared | {"fields": declared["fields"][1:]}
    assert sizes(define_at_first_use(without_first, known)) == {"shop.F": "Fixed", "shop.In": "Record"}
    only_fixed = declared | {"fields": declared["fields"][1:2]}
    assert sizes(define_at_first_use(only_fixed, known)) == {"shop.F": "Fixed"}


def test_what_is_defined_where_it_is_used_stays_as_it_is():
    """A schema that nothing was done to comes out unchanged."""
    declared = record(INNER, ENUM, {"type": "map", "values": ["null", "other.E", "In"]})
    assert define_at_first_use(deepcopy(declared), definitions(declared)) == declared


def test_types_keep_their_full_names_when_the_record_moves_to_another_namespace():
    """Names are written out first, so that what they mean does not depend on the record's."""
    declared = record(INNER, "F", ENUM, {"type": "array", "items": "In"})
    before = sizes(declared)
    write_full_names(declared)
    declared["namespace"] = "elsewhere"
    assert sizes(declared) == before == {"shop.In": "Record", "shop.F": "Fixed", "other.E": "Enum"}


@given(st.integers(0, 2**32), st.sampled_from(["drop", "move", "rename"]))
def test_a_row_whose_fields_go_and_move_has_the_same_types(seed, kind):
    """By statements, on a record of others: types that are used are there, defined once, as they were."""
    rng = random.Random(seed)
    types = [INNER, FIXED | {"name": "G"}, ENUM, "F", "In", "G", "other.E", {"type": "array", "items": "In"}]
    declared = record(*types, namespace=rng.choice(["shop", "a.b"]))
    rng.shuffle(declared["fields"])
    known = definitions(record(*types, namespace=declared["namespace"]))
    schema = parse_schema(json.dumps(define_at_first_use(declared, known)))
    before = sizes(json.loads(schema.json))
    for _ in range(rng.randrange(1, 5)):
        names = [one.name for one in from_schema(schema).columns]
        one, other = rng.sample(names, 2)
        action = {
            "drop": f"ALTER TABLE t DROP COLUMN {one}",
            "move": f"ALTER TABLE t MODIFY {one} varchar(5) {rng.choice(['FIRST', f'AFTER {other}'])}",
            "rename": rng.choice([f"ALTER TABLE t RENAME COLUMN {one} TO {one}_", "RENAME TABLE t TO x.t"]),
        }[kind]
        schema = evolve(schema, action).schema
    after = sizes(json.loads(schema.json))
    assert after.items() <= before.items()
    assert set(after) == {
        one for one in before if f'"{one}"' in schema.json or f'"name": "{one.split(".")[-1]}"' in schema.json
    }


def test_a_type_that_is_defined_twice_is_so_where_its_schema_is_only_completed():
    """So that it is refused; a schema that was edited is settled, and defines the type once."""
    declared = record(FIXED, FIXED)
    assert insert_definitions(declared, {}) == declared
    assert define_at_first_use(declared, {}) == record(FIXED, "shop.F")

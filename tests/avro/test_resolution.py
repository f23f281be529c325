"""Schema resolution, one rule a test: whole structures and exact sentences."""

from __future__ import annotations

import json

import pytest

from cdcavro.avro.resolution import (
    ReadArray,
    ReadEnum,
    ReadFixed,
    ReadMap,
    ReadPrimitive,
    ReadRecord,
    ReadUnion,
    resolve,
)
from cdcavro.avro.schema import parse_schema
from cdcavro.avro.types import Primitive
from cdcavro.errors import ResolutionError, SchemaError
from support.wire import array, enum, field, mapping, record

_INT, _LONG, _STRING = Primitive("int"), Primitive("long"), Primitive("string")


def _type(declared):
    return parse_schema(json.dumps(declared)).root


def _refusal(writer, reader):
    with pytest.raises(ResolutionError) as caught:
        resolve(_type(writer), _type(reader))
    return str(caught.value)


@pytest.mark.parametrize(
    ("writer", "reader"),
    [
        ("int", "long"),
        ("int", "float"),
        ("int", "double"),
        ("long", "float"),
        ("long", "double"),
        ("float", "double"),
        ("string", "bytes"),
        ("bytes", "string"),
    ],
)
def test_promotion_of_the_specification(writer, reader):
    """Each promotion that the specification has, and none the other way round but string and bytes."""
    assert resolve(_type(writer), _type(reader)) == ReadPrimitive(Primitive(writer), Primitive(reader))
    if {writer, reader} != {"string", "bytes"}:
        assert _refusal(reader, writer) == f"schema $: {writer} cannot read {reader}"


def test_primitive_reads_itself():
    """The same type needs no rule."""
    for name in ("null", "boolean", "int", "long", "float", "double", "bytes", "string"):
        assert resolve(_type(name), _type(name)) == ReadPrimitive(Primitive(name), Primitive(name))


@pytest.mark.parametrize(
    ("writer", "reader", "sentence"),
    [
        ("boolean", "int", "schema $: int cannot read boolean"),
        ("string", "long", "schema $: long cannot read string"),
        ("int", array("int"), "schema $: array cannot read int"),
        (mapping("int"), array("int"), "schema $: array cannot read map"),
        (enum("A"), "string", "schema $: string cannot read E"),
        (
            array(mapping("string")),
            array(mapping("int")),
            "schema $[]{}: int cannot read string",
        ),
    ],
)
def test_types_that_do_not_match(writer, reader, sentence):
    """What the specification does not promote is refused with its place."""
    assert _refusal(writer, reader) == sentence


@pytest.mark.parametrize(
    ("writer", "reader", "sentence"),
    [
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2},
            {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 3},
            "schema $: scale 3 cannot read scale 2",
        ),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 10},
            {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2},
            "schema $: scale 2 cannot read scale 0",
        ),
        (
            {"type": "fixed", "name": "F", "size": 8, "logicalType": "decimal", "precision": 10, "scale": 2},
            {"type": "fixed", "name": "F", "size": 8, "logicalType": "decimal", "precision": 10, "scale": 3},
            "schema $: scale 3 cannot read scale 2",
        ),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2},
            {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2},
            "schema $: precision 10 cannot read precision 12",
        ),
        (
            {"type": "long", "logicalType": "timestamp-millis"},
            {"type": "long", "logicalType": "timestamp-micros"},
            "schema $: logicalType timestamp-micros cannot read logicalType timestamp-millis",
        ),
    ],
)
def test_change_of_unit_is_refused(writer, reader, sentence):
    """Another scale or unit passes the usual checkers and reads 1.23 as 0.123."""
    assert _refusal(writer, reader) == sentence


def test_wider_precision_is_no_change_of_unit():
    """At the same scale every value is the same."""
    narrow, wide = (
        _type({"type": "bytes", "logicalType": "decimal", "precision": digits, "scale": 2}) for digits in (10, 12)
    )
    assert resolve(narrow, wide) == ReadPrimitive(narrow, wide)


def test_logical_type_that_is_unknown_or_invalid_is_ignored():
    """As the specification has it: it says nothing of the unit."""
    unknown = [_type({"type": "long", "logicalType": name}) for name in ("mine", "yours")]
    assert resolve(*unknown) == ReadPrimitive(*unknown)
    invalid = [_type({"type": "bytes", "logicalType": "decimal", "precision": 2, "scale": one}) for one in (3, 4)]
    assert resolve(*invalid) == ReadPrimitive(*invalid)


def test_branch_of_the_very_type_is_the_one():
    """What it refuses is refused: milliseconds are not read as a double because they are no microseconds."""
    millis, micros = ({"type": "long", "logicalType": f"timestamp-{unit}"} for unit in ("millis", "micros"))
    sentence = "schema $: logicalType timestamp-micros cannot read logicalType timestamp-millis"
    assert _refusal(millis, ["null", "double", micros]) == sentence


@pytest.mark.slow
def test_nesting_by_reference_has_a_bound():
    """Types that use one another deeper than 128 levels are an error of ours, not Python's; 127 are resolved."""
    chain = [field(f"f{k}", record(field("x", f"R{k - 1}" if k else "int"), name=f"R{k}")) for k in range(127)]
    resolve(*[_type(record(*chain, name="T"))] * 2)
    with pytest.raises(SchemaError, match="nested deeper than 128 levels"):
        _type(record(*chain, field("f127", record(field("x", "R126"), name="R127")), name="T"))


def test_step_of_a_record_within_itself_leads_back():
    """The steps are a circle, as the types are, through branches, items and values, and between two records."""
    for kind in (["null", "R"], array("R"), mapping("R")):
        declared = record(field("a", kind), name="R")
        step = resolve(_type(declared), _type(declared))
        assert isinstance(step, ReadRecord)
        inner = step.fields[0][0]
        found = inner.branches[1] if isinstance(inner, ReadUnion) else getattr(inner, "items", None) or inner.values
        assert found is step
    pair = record(field("b", ["null", record(field("a", ["null", "A"]), name="B")]), name="A")
    step = resolve(_type(pair), _type(pair))
    assert step.fields[0][0].branches[1].fields[0][0].branches[1] is step


def test_records_within_themselves_are_compared_once():
    """Each of forty records has all others: by hand they would be compared more often than anyone could wait for."""
    count = 40
    text = ""
    for k in reversed(range(count)):
        fields = [field(f"f{i}", ["null", f"R{i}"]) for i in range(k + 1)]
        rest = [field("inner", ["null", text])] if text else []
        text = record(*fields, *rest, *([field(f"g{i}", ["null", f"R{i}"]) for i in range(k + 1, count)]), name=f"R{k}")
    declared = _type(text)
    assert isinstance(resolve(declared, declared), ReadRecord)


def test_logical_type_may_come_and_go():
    """A logical type on one side only changes no unit."""
    plain, dated = _type("int"), _type({"type": "int", "logicalType": "date"})
    assert resolve(plain, dated) == ReadPrimitive(plain, dated)
    assert resolve(dated, plain) == ReadPrimitive(dated, plain)


def test_scale_is_zero_where_it_is_not_said():
    """Two ways to say the same decimal are no change of unit."""
    said = {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 0}
    unsaid = {"type": "bytes", "logicalType": "decimal", "precision": 10}
    assert resolve(_type(said), _type(unsaid)) == ReadPrimitive(_type(said), _type(unsaid))
    assert resolve(_type(unsaid), _type(said)) == ReadPrimitive(_type(unsaid), _type(said))


def test_array_and_map_are_read_item_by_item():
    """Promotion reaches into arrays and maps."""
    step = ReadPrimitive(_INT, _LONG)
    assert resolve(_type(array("int")), _type(array("long"))) == ReadArray(step)
    assert resolve(_type(mapping("int")), _type(mapping("long"))) == ReadMap(step)


def test_fixed_is_read_by_name_and_size():
    """Another size or name is another type."""
    fixed = {"type": "fixed", "name": "F", "size": 2}
    assert resolve(_type(fixed), _type({**fixed, "name": "G", "aliases": ["F"]})) == ReadFixed(2)
    assert _refusal(fixed, {**fixed, "size": 3}) == "schema $: F cannot read F"
    assert _refusal(fixed, {**fixed, "name": "G"}) == "schema $: G cannot read F"


def test_record_renamed_with_an_alias():
    """The alias is the writer's full name; within a namespace a short alias is of that namespace."""
    writer = _type(record(field("a"), name="n.Old"))
    reader = _type(record(field("a"), name="n.New", aliases=["Old"]))
    steps = ((ReadPrimitive(_INT, _INT), writer.fields[0], reader.fields[0]),)
    assert resolve(writer, reader) == ReadRecord(reader, steps, ())


def test_record_renamed_without_an_alias_is_refused():
    """Reading it by chance is not reading it."""
    assert _refusal(record(name="Old"), record(name="New")) == "schema $: New cannot read Old"
    assert _refusal(record(name="a.R"), record(name="b.R", aliases=["R"])) == "schema $: b.R cannot read a.R"


def test_field_renamed_with_an_alias():
    """The writer's field is read into the reader's field that has its name as an alias."""
    reader = _type(record(field("b"), field("c", "long", aliases=["a"])))
    writer = _type(record(field("a"), field("b")))
    a, old_b = writer.fields
    b, c = reader.fields
    steps = ((ReadPrimitive(_INT, _LONG), a, c), (ReadPrimitive(_INT, _INT), old_b, b))
    assert resolve(writer, reader) == ReadRecord(reader, steps, ())


def test_own_name_comes_before_an_alias():
    """Where the writer has both the old and the new name, the new one is the field and the old one is none."""
    reader = _type(record(field("table", "string", aliases=["tableName"])))
    writer = _type(record(field("tableName", "long"), field("table", "string")))
    old, own = writer.fields
    steps = ((ReadPrimitive(_LONG, _LONG), old, None), (ReadPrimitive(_STRING, _STRING), own, reader.fields[0]))
    assert resolve(writer, reader) == ReadRecord(reader, steps, ())


def test_two_old_names_of_one_field_are_refused():
    """A field may have had several names; if a writer has two of them, one of two values would be lost."""
    sentence = "schema $.b: c reads another field already"
    assert _refusal(record(field("a"), field("b")), record(field("c", aliases=["a", "b"]))) == sentence
    assert resolve(_type(record(field("b"))), _type(record(field("c", aliases=["a", "b"])))).defaults == ()


def test_new_field_takes_its_default():
    """A field that the writer has not comes from the reader's default."""
    reader = _type(record(field("a"), field("b", "string", default="x")))
    writer = _type(record(field("a")))
    step = (ReadPrimitive(_INT, _INT), writer.fields[0], reader.fields[0])
    assert resolve(writer, reader) == ReadRecord(reader, (step,), (reader.fields[1],))


def test_new_field_without_a_default_is_refused():
    """There is nothing to fill it with."""
    sentence = "schema $: b is new and has no default"
    assert _refusal(record(field("a")), record(field("a"), field("b"))) == sentence


def test_dropped_field_is_read_into_no_field():
    """What the writer wrote and the reader has not is read as the writer has it."""
    reader = _type(record(field("b")))
    writer = _type(record(field("a", record(field("x"), name="S")), field("b")))
    a, b = writer.fields
    x = a.type.fields[0]
    inner = ReadRecord(a.type, ((ReadPrimitive(_INT, _INT), x, x),), ())
    steps = ((inner, a, None), (ReadPrimitive(_INT, _INT), b, reader.fields[0]))
    assert resolve(writer, reader) == ReadRecord(reader, steps, ())


def test_enum_symbols_may_be_added_moved_and_dropped():
    """Symbols match by name; one that the reader has not is its default, or an error where it occurs."""
    reader = _type(enum("C", "A", "D"))
    assert resolve(_type(enum("A", "B", "C")), reader) == ReadEnum(reader, ("A", None, "C"))
    reader = _type({**enum("C", "A", "D"), "default": "D"})
    assert resolve(_type({**enum("A", "B", "C"), "default": "B"}), reader) == ReadEnum(reader, ("A", "D", "C"))
    assert _refusal(enum("A", name="Old"), enum("A", name="New")) == "schema $: New cannot read Old"


def test_value_becomes_nullable():
    """A plain type is read into the branch of a union that is it, before one that it promotes to."""
    assert resolve(_INT, _type(["null", "long", "int"])) == ReadPrimitive(_INT, _INT)
    assert resolve(_INT, _type(["null", "long"])) == ReadPrimitive(_INT, _LONG)
    assert _refusal("boolean", ["null", "long"]) == "schema $: no branch of [null, long] reads boolean"


def test_union_becomes_a_value():
    """A branch that the reader cannot read is an error only where it occurs; if it reads none, that is one at once."""
    step = ReadUnion(("int cannot read null", ReadPrimitive(_INT, _INT)))
    assert resolve(_type(["null", "int"]), _INT) == step
    assert _refusal(["null", "string"], "int") == "schema $: int reads no branch of [null, string]"


def test_union_is_read_branch_by_branch():
    """Branches may move and be added; the index is the writer's."""
    null = Primitive("null")
    steps = ReadUnion((ReadPrimitive(_STRING, _STRING), ReadPrimitive(null, null)))
    assert resolve(_type(["string", "null"]), _type(["null", "long", "string"])) == steps


def test_fault_is_named_with_its_place():
    """The path leads through fields, items and values of the writer."""
    writer = record(field("a", array(mapping(record(field("b", "string"), name="S")))))
    reader = record(field("a", array(mapping(record(field("b", "int"), name="S")))))
    assert _refusal(writer, reader) == "schema $.a[]{}.b: int cannot read string"


def chain(levels: int, is_nullable) -> dict:
    """Return the JSON value of that many records in each other, those at some levels nullable."""
    made = record(field("v"), name="X")
    for level in range(levels):
        made = record(field("n", ["null", made] if is_nullable(level) else made), name=f"C{level}")
    return made


def test_what_the_parser_takes_is_not_too_deep():
    """Records in each other, nullable in both schemas, in one, or in each at other levels."""
    whole, plain = _type(chain(63, lambda _: True)), _type(chain(63, lambda _: False))
    even, odd = (_type(chain(84, lambda level, odd=odd: level % 2 == odd)) for odd in (0, 1))
    for writer, reader in ((whole, whole), (plain, whole), (whole, plain), (even, odd), (odd, even)):
        assert isinstance(resolve(writer, reader), ReadRecord)
    with pytest.raises(SchemaError, match="nested deeper than 128 levels"):
        _type(chain(64, lambda _: True))

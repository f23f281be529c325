"""The verdict on two schemas: every reason in its words, and that fastavro does what it says."""

from __future__ import annotations

import dataclasses
import gc
import json
from collections import Counter

import pytest
from hypothesis import given, settings

import cdcavro
from cdcavro.avro.compatibility import Problem, Remark, verdict
from support.calls import calls
from support.schema_pairs import fastavro_known, pair, pairs
from support.wire import array, enum, field, mapping, record


def decimal(precision, scale, **more):
    """Return a decimal of bytes."""
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale, **more}


def fixed(size=4, **more):
    """Return a fixed."""
    return {"type": "fixed", "name": "F", "size": size, **more}


def logical(name, base="long"):
    """Return a type with a logical type."""
    return {"type": base, "logicalType": name}


def judged(writer, reader):
    """Return the verdict on two schemas as Python values."""
    return verdict(json.dumps(reader), json.dumps(writer))


def backward(writer, reader):
    """Return the lines on the reader reading the writer's data, and check that the other direction mirrors them."""
    said, mirrored = judged(writer, reader), judged(reader, writer)
    turned = [(one.path, one.reason) for one in mirrored.problems if one.direction == "forward"]
    found = [one for one in said.problems if one.direction == "backward"]
    assert [(one.path, one.reason) for one in found] == turned
    assert said.backward is mirrored.forward is (not found)
    return [f"{one.path}: {one.reason}{' (some data)' if one.partial else ''}" for one in found]


def notes(writer, reader):
    """Return the notes on the reader reading the writer's data."""
    return [f"{one.path}: {one.reason}" for one in judged(writer, reader).notes if one.direction == "backward"]


# What it looks like


def test_verdict_has_one_of_four_names():
    """By who reads whom."""
    assert judged("int", "int").name == "full"
    assert judged("int", "long").name == "backward"
    assert judged("long", "int").name == "forward"
    assert judged("int", "string").name == "breaking"


def test_verdict_takes_schemas_and_texts():
    """A text is parsed; what is none is refused as everywhere."""
    assert verdict(cdcavro.parse_schema('"int"'), '"int"').name == "full"
    with pytest.raises(cdcavro.SchemaError) as caught:
        verdict('"int"', "int")
    assert str(caught.value) == "schema text: not JSON: Expecting value: line 1 column 1 (char 0)"


def test_verdict_is_a_value_and_reads_as_lines():
    """Every problem and every note, backward ones first."""
    said = judged(record(field("a"), field("b", enum("X", "Y"))), record(field("a", "float"), field("b", enum("X"))))
    assert said.problems == (
        Problem("backward", "$.b", "E lacks Y", partial=True),
        Problem("forward", "$.a", "int cannot read float", partial=False),
    )
    assert said.notes == (Remark("backward", "$.a", "float reads int: integers beyond 2^24 lose digits"),)
    assert str(said).split("\n") == [
        "breaking: neither reads all data of the other",
        "  backward, $.b: E lacks Y (some data)",
        "  forward, $.a: int cannot read float",
        "  note, backward, $.a: float reads int: integers beyond 2^24 lose digits",
    ]
    with pytest.raises(dataclasses.FrozenInstanceError):
        said.problems = ()
    assert said == judged(record(field("a"), field("b", enum("X", "Y"))), json.loads(_reader()))


def _reader():
    return json.dumps(record(field("a", "float"), field("b", enum("X"))))


# The rules


@pytest.mark.parametrize("format", cdcavro.FORMATS)
def test_schema_reads_its_own_data(format):
    """A wire schema and itself: full, and nothing to note."""
    schema = cdcavro.load_schema(format)
    assert str(verdict(schema, schema)) == "full: each reads all data of the other"


def test_every_problem_is_found_with_its_path():
    """In a table's envelope: through the union with null, in both images, and what is missing last."""
    old = [field("id", "long"), field("price", decimal(10, 2)), field("state", enum("A", "B", "C"))]
    new = [field("id"), field("price", decimal(10, 3)), field("state", enum("C")), field("more", "string")]
    envelopes = [
        record(field("before", ["null", record(*row, name="Row")]), field("after", ["null", "Row"]))
        for row in (old, new)
    ]
    assert backward(*envelopes) == [
        f"$.{image}{line} (some data)"
        for image in ("before", "after")
        for line in (
            ".id: int cannot read long",
            ".price: scale 3 cannot read scale 2",
            ".state: E lacks A, B",
            ": more is new and has no default",
        )
    ]


@pytest.mark.parametrize(
    ("writer", "reader", "lines"),
    [
        ("int", array("int"), ["$: array cannot read int"]),
        (array("long"), array("int"), ["$[]: int cannot read long"]),
        (mapping("long"), mapping("int"), ["${}: int cannot read long"]),
        (fixed(), fixed(5), ["$: F cannot read F"]),
        (fixed(), {**fixed(), "name": "G"}, ["$: G cannot read F"]),
        (fixed(), {**fixed(), "name": "G", "aliases": ["F"]}, []),
        (decimal(10, 2), fixed(5, logicalType="decimal", precision=10, scale=2), ["$: F cannot read bytes"]),
        (enum("A", "B"), enum("B"), ["$: E lacks A (some data)"]),
        (enum("B"), enum("A", "B"), []),
        (enum("A", "B"), {**enum("A"), "default": "A"}, []),
        ({**enum("A", "B"), "default": "A"}, enum("A"), ["$: E lacks B (some data)"]),
        (enum("A", "B"), {**enum("A"), "default": None}, ["$: E lacks B (some data)"]),
        ("string", "bytes", []),
        ("bytes", "string", ["$: string reads bytes: not all are UTF-8 (some data)"]),
        (decimal(4, 2), "string", ["$: string reads decimal(4,2): its bytes are no text"]),
        (["null", "int"], "int", ["$: int cannot read null (some data)"]),
        ("int", ["null", "int"], []),
        (["null", "int"], ["null", "string"], ["$: no branch of [null, string] reads int (some data)"]),
        (
            ["null", "string"],
            "int",
            [
                "$: int cannot read null (some data)",
                "$: int cannot read string (some data)",
                "$: int reads no branch of [null, string]",
            ],
        ),
        (record(field("a")), record(field("b", aliases=["a"])), []),
        (record(field("a")), record(field("b")), ["$: b is new and has no default"]),
        (record(field("a")), record(field("a"), field("b", default=1)), []),
        (record(), record(field("b", array("int"), default=[])), []),
        (
            record(),
            record(field("b", [array("int"), "null"], default=[])),
            ["$: b is new: Avro Java 1.12 fails on the default [] of a union"],
        ),
    ],
)
def test_rule_of_the_specification(writer, reader, lines):
    """Types, names, symbols, branches, aliases and defaults."""
    assert backward(writer, reader) == lines


@pytest.mark.parametrize(
    ("writer", "reader", "lines"),
    [
        (decimal(10, 2), decimal(10, 3), ["$: scale 3 cannot read scale 2"]),
        (decimal(10, 2), decimal(9, 2), ["$: precision 9 cannot read precision 10 (some data)"]),
        (decimal(10, 2), decimal(12, 2), []),
        (logical("timestamp-millis"), logical("timestamp-micros"), ["micros", "millis"]),
        (logical("timestamp-micros"), logical("local-timestamp-micros"), ["local", "micros"]),
        ("long", logical("timestamp-micros"), ["$: timestamp-micros reads plain long: nothing says that it is one"]),
        ("int", logical("timestamp-micros"), ["$: timestamp-micros reads plain int: nothing says that it is one"]),
        (logical("timestamp-micros"), "long", []),
        (logical("of-another-world"), logical("of-mine"), []),
        (decimal(2, 3), decimal(2, 4), []),
        ("bytes", decimal(2, 3), []),
        (fixed(2), fixed(2, logicalType="decimal", precision=5), []),
        (
            fixed(2),
            fixed(2, logicalType="decimal", precision=4),
            ["$: decimal(4,0) reads plain F: nothing says that it is one"],
        ),
        (logical("timestamp-micros", "int"), "int", []),
        (fixed(12, logicalType="duration"), fixed(12), []),
        (fixed(4, logicalType="duration"), fixed(4), []),
    ],
)
def test_rule_for_logical_types(writer, reader, lines):
    """Another scale or unit, less precision, or a unit that nobody wrote; what is invalid or unknown is ignored."""
    if lines in (["micros", "millis"], ["local", "micros"]):
        lines = [f"$: logicalType {reader['logicalType']} cannot read logicalType {writer['logicalType']}"]
    assert backward(writer, reader) == lines


_AS_JSON = ["$: a is new: fastavro fills in its default as the schema's JSON has it"]
# Types of a new field, with the default and what is noted.
_FILLED_IN = [
    ("bytes", "a", _AS_JSON),
    (fixed(2), "ab", _AS_JSON),
    (decimal(10, 2), "2", _AS_JSON),
    (logical("date", "int"), 7, _AS_JSON),
    (["null", logical("timestamp-micros")], 7, _AS_JSON),
    ("double", "NaN", _AS_JSON),
    (array("bytes"), ["a"], _AS_JSON),
    (record(field("x", default=1), name="S"), {}, _AS_JSON),
    (record(field("x", default=1), name="S"), {"x": 1, "y": 2}, _AS_JSON),
    (record(field("x", default=1), name="S"), {"x": 1}, []),
    (array("bytes"), [], []),
    (["null", "bytes"], None, []),
    ("double", 1.5, []),
    (enum("A"), "A", []),
]


@pytest.mark.parametrize(
    ("writer", "reader", "lines"),
    [
        ("long", "double", ["$: double reads long: integers beyond 2^53 lose digits"]),
        ("int", "double", []),
        ("float", "double", []),
        (logical("date", "int"), "int", ["$: plain int reads date: what it means is no longer said"]),
        (fixed(12, logicalType="duration"), fixed(12), ["$: plain F reads duration: what it means is no longer said"]),
        (fixed(4, logicalType="duration"), fixed(4), []),
        ("int", ["long", "int"], ["$: fastavro reads int into long, which stands before it in the union"]),
        (
            ["null", logical("date", "int"), "long"],
            ["null", "long", logical("date", "int")],
            [
                "$: Spark reads [null, long, int] as long, and date as plain numbers",
                "$: fastavro reads int into long, which stands before it in the union",
            ],
        ),
        (
            record(),
            record(field("a", ["null", "R"], default=None)),
            ["$: Spark does not read R, which contains itself"],
        ),
        (
            decimal(2, 3),
            "bytes",
            ["$: fastavro refuses a schema: decimal scale must be less than or equal to the precision of 2"],
        ),
        *((record(), record(field("a", one, default=default)), lines) for one, default, lines in _FILLED_IN),
        (
            record(name="Old"),
            record(name="New"),
            ["$: Avro Java, and Spark with it, reads Old without an alias too"],
        ),
        (
            ["null", enum("A", name="a.E")],
            ["null", enum("A", name="b.E")],
            ["$: fastavro, and Avro Java mostly, passes over the namespace of a.E"],
        ),
    ],
)
def test_what_is_noted(writer, reader, lines):
    """Digits and meanings that are lost though the specification allows it, and where readers differ."""
    assert notes(writer, reader) == lines


@pytest.mark.parametrize(
    ("writer", "reader", "lines"),
    [
        (
            ["null", "long"],
            ["double", "long", "null"],
            ["$: fastavro reads long into double, which stands before it in the union (some data)"],
        ),
        ("long", ["float", "long"], ["$: fastavro reads long into float, which stands before it in the union"]),
        ("string", ["bytes", "string"], ["$: fastavro reads string into bytes, which stands before it in the union"]),
        ("bytes", ["string", "bytes"], ["$: fastavro reads bytes into string, which stands before it in the union"]),
        (
            [enum("A", name="a.E"), enum("B", name="b.E")],
            [enum("A", name="a.E"), enum("B", name="b.E")],
            ["$: fastavro reads b.E into a.E, which stands before it in the union (some data)"],
        ),
    ],
)
def test_branch_that_fastavro_takes_for_another(writer, reader, lines):
    """It takes the first that promotes, with another value: a problem, though Avro Java and Spark read it right."""
    assert backward(writer, reader) == lines


@pytest.mark.parametrize(
    ("declared", "default"),
    [
        ([array("int"), "null"], []),
        ([array("int"), "int"], 7),
        ([enum("A"), "string"], "b"),
        ([{"type": "map", "values": "int"}, "null"], None),
        (array(["int", "float"]), [1.5]),
    ],
)
def test_default_that_avro_java_takes_for_another_branch(declared, default):
    """It goes by kinds of JSON, and takes anything for an array, a map, a record or an enum."""
    (line,) = backward(record(), record(field("a", declared, default=default)))
    said = json.dumps(default)
    assert line == f"$: a is new: Avro Java 1.12 fails on the default {said} of a union"


@pytest.mark.parametrize(
    ("declared", "default"),
    [
        (fixed(2), "abc"),
        (enum("A"), "B"),
        ("bytes", "\u0100"),
        ("float", 1e300),
        (decimal(2, 0), "\u007f"),
        (fixed(1, logicalType="decimal", precision=1), "\u007f"),
        (logical("date", "int"), 2**31 - 1),
        (logical("uuid", "string"), "no uuid"),
        (record(field("x", fixed(2)), name="S"), {"x": ""}),
    ],
)
def test_default_that_is_no_value(declared, default):
    """Avro Java parses the schema; nobody can fill the default in."""
    reader = record(field("a", declared, default=default))
    assert backward(record(), reader) == ["$: a is new and its default is no value of its type"]
    assert backward(reader, reader) == []


def test_default_that_has_a_field_under_its_old_name():
    """Avro Java renames in the writer's schema, and then checks its defaults. With a default of its own all is well."""
    inner = record(field("old"), name="S")
    writer = record(field("a", inner, default={"old": 1}))
    reader = record(field("a", record(field("new", aliases=["old"]), name="S")))
    said = "its default has a field under its old name, which Avro Java, and Spark with it, does not find"
    assert backward(writer, reader) == [f"$.a: {said}"]
    nullable = record(field("a", ["null", inner], default=None))
    assert backward(nullable, record(field("a", ["null", reader["fields"][0]["type"]]))) == []
    filled = record(field("a", record(field("old", default=2), name="S"), default={"old": 1}))
    assert backward(filled, reader) == []


def test_record_that_contains_itself():
    """Each pair of records is compared once, however often it is used; what is found is said at each place."""
    node = record(field("v", "long"), field("next", ["null", "N"], default=None), name="N")
    wide = record(field("v", "double"), field("next", ["null", "N"], default=None), name="N")
    assert backward(node, wide) == []
    assert backward(wide, node) == ["$.v: long cannot read double"]
    tree = record(field("kids", array("T")), field("named", {"type": "map", "values": "T"}), field("x"), name="T")
    assert backward(tree, tree) == []
    grown = json.loads(json.dumps(tree))
    grown["fields"].append(field("y"))
    assert backward(tree, grown) == ["$: y is new and has no default"]
    assert backward(grown, tree) == []


def test_records_within_a_record_that_is_refused():
    """A step that came to nothing is not found again where the inner record is used on its own."""
    writer = record(
        field("b", ["null", record(field("a", ["null", "A"]), field("v"), name="B")]), field("x", "string"), name="A"
    )
    reader = json.loads(json.dumps(writer))
    reader["fields"][1]["type"] = "int"
    assert backward([writer, "B", "null"], [reader, "B", "null"]) == [
        "$.x: int cannot read string (some data)",
        "$.a.x: int cannot read string (some data)",
    ]
    assert backward(
        record(field("u", [writer, "null"]), field("b", "B")), record(field("u", [reader, "null"]), field("b", "B"))
    ) == [
        "$.u.x: int cannot read string (some data)",
        "$.b.a.x: int cannot read string (some data)",
    ]


# Aliases that lead two ways


def test_two_old_names_of_one_field():
    """The writer has both: one of two values would be lost. With one of them all is well."""
    reader = record(field("c", aliases=["a", "b"]))
    assert backward(record(field("a"), field("b")), reader) == ["$.b: c reads another field already"]
    assert backward(record(field("b")), reader) == []


@pytest.mark.parametrize("names", [("old", "new"), ("new", "old")])
def test_old_and_new_name_of_one_field(names):
    """Avro Java refuses it and fastavro may take the old value; our own reader takes that of the new name."""
    first, second = names
    lines = [f"$.{second}: {first} and {second} would both be read as new"]
    assert backward(record(field(first), field(second)), record(field("new", aliases=["old"]))) == lines


def test_alias_that_two_fields_claim():
    """Avro Java gives the field to the last of them, and renames even one whose name is a field of the reader's."""
    writer = record(field("x"), field("b", default=0))
    shared = record(field("a", aliases=["x"], default=0), field("b", aliases=["x"], default=0))
    assert backward(writer, shared) == [
        "$.x: x is an alias of a and of b",
        "$.b: x and b would both be read as b",
    ]
    other = record(field("x", default=0), field("c", aliases=["x"], default=0))
    assert backward(writer, other) == ["$.x: x is a field of the reader's and an alias of c too"]
    assert str(judged(other, other)) == "full: each reads all data of the other"


def test_type_that_is_also_an_alias():
    """Avro Java takes the writer's type for the one that has the alias."""
    one, other = enum("A", name="One"), enum("A", name="Other", aliases=["One"])
    writer, reader = record(field("a", one)), record(field("a", one), field("b", other, default="A"))
    assert backward(writer, reader) == ["$.a: One is a type of the reader's and an alias of Other too"]
    assert str(judged(reader, reader)) == "full: each reads all data of the other"


def test_table_renamed_with_an_alias():
    """The record is used twice in its envelope, and the field renamed in it too."""
    old, new = record(field("a"), name="Old"), record(field("b", aliases=["a"]), name="New", aliases=["Old"])
    writer, reader = (
        record(field("before", ["null", row]), field("after", ["null", row["name"]])) for row in (old, new)
    )
    assert backward(writer, reader) == []


def test_alias_of_two_types():
    """Nothing says which of them it is."""
    both = [field(name, enum("A", name=name, aliases=["Old"])) for name in ("One", "Two")]
    writer = record(field("One", enum("A", name="Old")))
    reader = record(both[0], {**both[1], "default": "A"})
    assert backward(writer, reader) == ["$.One: Old is an alias of One and of Two"]


def test_two_types_that_become_one():
    """Avro Java cannot have both in a union."""
    writer = record(field("a", [enum("A", name="One"), enum("A", name="Other")]))
    reader = record(field("a", enum("A", name="Other", aliases=["One"])))
    assert backward(writer, reader) == ["$.a: One and Other would both be read as Other"]


def test_alias_without_a_namespace_is_of_the_types_own():
    """So a record that had no namespace cannot be an alias of one that has; that fastavro reads it is noted."""
    writer, reader = record(field("a"), name="Old"), record(field("a"), name="n.New", aliases=["Old"])
    assert backward(writer, reader) == ["$: n.New cannot read Old"]
    assert backward({**writer, "name": "n.Old"}, reader) == []


# Bounds


@pytest.mark.slow
def test_many_problems_are_listed_up_to_a_bound():
    """The last line says that there are more."""
    writer, reader = (record(*(field(f"f{i}", kind) for i in range(3000))) for kind in ("long", "int"))
    lines = backward(writer, reader)
    assert len(lines) == 1001
    assert lines[-1] == "$: more than 1,000 of the kind; the rest is not listed"


@pytest.mark.slow
def test_hostile_schemas_take_linear_time():
    """Many branches, symbols and aliases, used in many places."""
    branches = [[fixed(name=f"{kind}{i}") for i in range(20_000)] for kind in "ab"]
    aliased = [fixed(name="x.F", aliases=[f"a{i}" for i in range(40_000)])]
    symbols = enum(*(f"s{i}" for i in range(30_000)))
    places = [field(f"f{i}", "E") for i in range(20_000)]
    assert not judged(*branches).backward
    assert not judged(branches[0], aliased).backward
    assert judged(record(field("e", symbols), *places), record(field("e", symbols), *places)).backward


@pytest.mark.slow
def test_nesting_by_reference_has_a_bound():
    """Types that use one another 200 deep are refused as those that are written so, and not by Python's limit."""
    deep = [field(f"f{k}", record(field("x", ["null", f"R{k - 1}"] if k else "int"), name=f"R{k}")) for k in range(200)]
    with pytest.raises(cdcavro.SchemaError, match="nested deeper than 128 levels"):
        judged(record(*deep, name="T"), record(*deep, name="T"))


def test_long_names_are_cut():
    """A name of a megabyte is 80 characters in a path."""
    name = "n" * 1_000_000
    assert backward(record(field(name)), record(field(name, "string"))) == [f"$.{name[:80]}...: string cannot read int"]


# What fastavro does


@pytest.mark.slow
def test_fastavro_does_what_the_verdict_says():
    """On pairs that differ in up to three places, and with it every difference that is known."""
    known: Counter[str | None] = Counter()

    @settings(max_examples=300)
    @given(pairs())
    def check(one):
        known[fastavro_known(one)] += 1

    check()
    for writer, reader in EXAMPLES:
        known[fastavro_known(pair(json.dumps(writer), json.dumps(reader)))] += 1
    assert sum(known.values()) >= 300
    assert set(known) == {
        None,
        "gives a default as the schema's JSON has it",
        "gives the writer's logical type",
        "knows the writer's logical type only",
        "reads by the last part of a name",
        "reads the default [] of a union",
        "refuses a decimal that is invalid",
        "takes the first branch that promotes",
        "takes the new name of a field that has its old one too",
    }


def test_a_default_that_stands_for_other_symbols_is_noted():
    """Avro 1.9 and later, and fastavro, read it; what is lost, and who fails, is said."""
    said = verdict(json.dumps({**enum("B", "A"), "default": "A"}), json.dumps(enum("A", "B", "C")))
    assert (said.name, said.problems) == ("full", ())
    assert [note.reason for note in said.notes] == ["E lacks C: its default A is read instead; Avro 1.8.2 fails"]


EXAMPLES = [
    (record(), record(field("a", "bytes", default="\x01"))),
    (logical("timestamp-micros"), "long"),
    (decimal(4, 2), decimal(4, 1)),
    (decimal(4, 2), decimal(4, 5)),
    (record(), record(field("a", [array("int"), "null"], default=[]))),
    (enum("A", name="n.E1"), enum("A", name="m.E1")),
    (enum("A", "B"), {**enum("A"), "default": "A"}),
    (["null", "long"], ["double", "long", "null"]),
    (record(field("old"), field("new")), record(field("new", aliases=["old"]))),
]


def _fields(item: str) -> str:
    return f'{{"type":"record","name":"r","fields":[{",".join(item.replace("#", str(i)) for i in range(1_000))}]}}'


@pytest.mark.slow
@pytest.mark.parametrize(
    "item",
    [
        '{"name":"f#","type":"int"}',
        '{"name":"f#","type":["null","int"],"default":null}',
        '{"name":"f#","type":["null","int","string","bytes"]}',
        '{"name":"f#","type":"int","aliases":["g#"]}',
        '{"name":"f#","type":{"type":"record","name":"q#","fields":[{"name":"a","type":"int"}]}}',
    ],
)
def test_comparing_takes_no_more_than_a_few_times_the_work_of_parsing(item):
    """However the fields differ, and what is compared again and again is compared once; no error keeps its frames."""
    text = _fields(item)
    other = text.replace('"int"', '"long"')
    old, new = cdcavro.parse_schema(text), cdcavro.parse_schema(other)
    cdcavro.verdict(new, old)
    gc.collect()
    gc.disable()
    try:
        parsed, compared = calls(lambda: cdcavro.parse_schema(text)), calls(lambda: cdcavro.verdict(new, old))
        left = gc.collect()
    finally:
        gc.enable()
    assert compared < 3 * parsed
    assert left < 5_000
    assert not cdcavro.verdict(old, new).backward


def test_a_union_of_primitives_that_stands_many_times_is_found_at_each_place():
    """What is compared once is told of each field, as what is unsafe is."""
    old = _fields('{"name":"f#","type":["null","int"]}')
    new = old.replace('"int"', '"string"')
    assert len(cdcavro.verdict(new, old).problems) == 2_000
    assert {one.path for one in cdcavro.verdict(new, old).problems} == {f"$.f{i}" for i in range(1_000)}

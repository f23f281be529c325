"""Generated modules: what they hold, that nothing is lost through them, and that the same schema gives the same bytes."""

from __future__ import annotations

import ast
import hashlib
import inspect
import io
import itertools
import json
import os
import struct
import subprocess
import sys
from enum import StrEnum
from importlib.util import find_spec
from typing import get_args

import fastavro
import pytest

import cdcavro
from cdcavro.avro.binary import nearest_float
from cdcavro.avro.schema import parse_schema
from cdcavro.errors import SchemaError
from cdcavro.exact.jsontext import parse, same
from cdcavro.records.codegen import KINDS, NamedSchema, generate
from cdcavro.records.python_source import ENUM_NAMES
from cdcavro.records.shapes import field_names
from support.generated_modules import HARD_NAMES, RECORD_KINDS, load, module, one, own_names, root
from support.messages import goldens, shop_canal, shop_debezium
from support.wire import array, enum, field, mapping, record

CANAL = '{"type":"UPDATE","table":"t","data":[{"id":7,"price":1.20,"j":{"a":1.0}}],"old":[{"price":null}],"x":-0}'


def of(name: str, kind: str = "dataclass") -> str:
    """Return the module of a wire schema."""
    return generate([NamedSchema(name, cdcavro.load_schema(name))], kind)


def records(source: str) -> list[str]:
    """Return the statements of the first class of a module, without its docstring."""
    found = next(node for node in ast.parse(source).body if isinstance(node, ast.ClassDef))
    return [ast.unparse(node) for node in found.body[1:]]


def assert_message(cls, message, format):
    """A message becomes the payload of cdcavro's own writer, and comes back as its decoder gives it, digit for digit."""
    payload = cdcavro.encode(message, format)
    instance = cls.from_json(message)
    assert instance.to_avro() == payload
    assert cls.from_avro(payload) == instance
    assert instance.to_json() == cdcavro.decode(payload, format)
    assert same(parse(instance.to_json()), parse(message))


@pytest.mark.parametrize("kind", RECORD_KINDS)
@pytest.mark.parametrize("format", cdcavro.FORMATS)
@pytest.mark.slow
def test_messages_of_every_format_go_through_instances_unchanged(format, kind):
    """All goldens, by all kinds."""
    cls = root(load(of(format, kind)))
    for message in goldens(format):
        assert_message(cls, message, format)


@pytest.mark.parametrize(("format", "messages"), [("canal", shop_canal), ("debezium", shop_debezium)])
@pytest.mark.slow
def test_real_messages_and_their_changes_go_through_instances_unchanged(format, messages):
    """The shop's, as messages and as changes; a third of them, one after the other."""
    cls, change_class = root(load(of(format))), root(load(of("change")))
    for message in messages()[::3]:
        assert_message(cls, message, format)
        for change in cdcavro.to_changes(message, format):
            payload = change.to_avro()
            instance = change_class.from_avro(payload)
            assert instance.to_avro() == payload
            assert change_class.from_json(instance.to_json()) == instance


@pytest.mark.slow
def test_rows_of_tables_go_through_instances_unchanged():
    """Envelope and key of every version of the shop's tables."""
    tables, classes, versions = cdcavro.Tables(), {}, set()

    def class_of(schema):
        if schema.json not in classes:
            classes[schema.json] = root(module(schema))
        return classes[schema.json]

    for change in itertools.chain.from_iterable(cdcavro.to_changes(message, "canal") for message in shop_canal()):
        for typed in tables.add(change):
            versions.add((typed.table.number, typed.schema.version))
            parts = [(typed.schema.envelope, typed.payload), (typed.schema.key, typed.key)]
            for schema, payload in ((schema, payload) for schema, payload in parts if payload is not None):
                instance = class_of(schema).from_avro(payload)
                assert instance.to_avro() == payload
                again = class_of(schema).from_json(instance.to_json())
                assert again == instance
                assert again.to_json() == instance.to_json()
    assert len(versions) > 10


def test_extras_are_kept_and_can_be_seen():
    """A member that no field has, and a number that is no double."""
    made = load(of("oms_canal"))
    instance = made.Canal.from_json(CANAL)
    assert instance.extras["/x"] == "-0"
    assert instance.data == [{"id": 7, "price": made.ExactNumber(text="1.20"), "j": made.JsonText(text='{"a":1.0}')}]
    assert instance.type is made.EventType.UPDATE
    assert same(parse(instance.to_json()), parse(CANAL))


def test_a_message_is_made_of_an_instance():
    """What is not given is absent or null, as is the format's custom."""
    made = load(of("oms_canal"))
    message = made.Canal(type=made.EventType.INSERT, table="t", data=[{"id": 1, "x": None}]).to_json()
    assert cdcavro.decode(cdcavro.encode(message, "oms_canal"), "oms_canal") == message
    assert json.loads(message)["data"] == [{"id": 1, "x": None}]


def test_a_payload_of_an_older_wire_schema_is_read():
    """Aliases and defaults of the schema that the module was made of apply."""
    older, newer = (json.loads(cdcavro.load_schema("oms_canal").json) for _ in range(2))
    next(one for one in older["fields"] if one["name"] == "table")["name"] = "tableName"
    next(one for one in newer["fields"] if one["name"] == "table")["aliases"] = ["tableName"]
    was = parse_schema(json.dumps(older))
    payload = module(was).Canal.from_json('{"type":"TRUNCATE","tableName":"t"}').to_avro()
    made = module(newer).Canal.from_avro(payload, writer=was)
    assert made.to_json() == b'{"table":"t","type":"TRUNCATE"}'


@pytest.mark.parametrize("kind", KINDS)
def test_a_module_says_what_it_was_made_of(kind):
    """The schema's name, both fingerprints and the command, which are the same on every machine."""
    schema = cdcavro.load_schema("canal")
    head = ast.get_docstring(ast.parse(generate([NamedSchema("/some/where/canal.avsc", schema)], kind)))
    digest = hashlib.sha256(schema.json.encode()).hexdigest()
    assert head.split("\n", 2)[2] == (
        f"Schema: canal.avsc, cdcavro.canal.FlatMessage\nCRC-64-AVRO: {schema.fingerprint}\n"
        f"SHA-256 of the text: {digest}\n\nCommand: cdcavro generate canal.avsc --kind {kind}"
    )


def test_aliases_change_the_module():
    """A fingerprint does not see them; the digest of the text does, and so does `--check`."""
    plain, other = (
        generate([NamedSchema("t", parse_schema(json.dumps(record(field("a", aliases=aliases)))))], "spark")
        for aliases in ([], ["b"])
    )
    assert plain != other


@pytest.mark.slow
def test_the_same_schema_gives_the_same_bytes():
    """Of each kind, whatever the order of Python's hashes."""
    code = (
        "import hashlib, cdcavro; from cdcavro.records.codegen import *;"
        "schemas = [NamedSchema(name, cdcavro.load_schema(name)) for name in ('debezium', 'change')];"
        "print([hashlib.sha256(generate(schemas, kind).encode()).hexdigest() for kind in KINDS])"
    )
    found = [
        subprocess.run(
            [sys.executable, "-c", code], env=os.environ | {"PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    ]
    assert found[0] == found[1] != b""


def test_annotations_defaults_and_docs():
    """Nullable as X | None = None; maps, arrays; mutable defaults by a factory; docs below their fields."""
    declared = record(
        field("a", ["null", "string"], default=None, doc="What a is."),
        field("b", array(["null", "int"]), default=[]),
        field("c", mapping("double"), default={}),
        field("d", {"type": "long", "logicalType": "timestamp-millis"}),
        field("e", ["null", {"type": "int", "logicalType": "date"}]),
        field("f", array("int"), default=[1]),
    )
    assert records(generate([NamedSchema("t", parse_schema(json.dumps(declared)))], "dataclass")) == [
        "a: str | None = None",
        "'What a is.'",
        "b: list[int | None] = field(default_factory=list)",
        "c: dict[str, float] = field(default_factory=dict)",
        "d: dt.datetime",
        "e: dt.date | None = None",
        "f: list[int] = field(default_factory=lambda: [1])",
    ]


@pytest.mark.parametrize("kind", RECORD_KINDS)
def test_any_name_is_a_field_and_keeps_its_name_in_avro_and_json(kind):
    """Keywords, dunders, names of methods and types, names that differ in underscores only, and long ones."""
    declared = record(*(field(name, ["null", "long"], default=None) for name in HARD_NAMES))
    made = module(declared, kind)
    cls = made.R
    values = {name: i for i, name in enumerate(HARD_NAMES)}
    instance = cls.from_json(json.dumps(values))
    assert json.loads(instance.to_json()) == values
    assert cls.from_avro(instance.to_avro()) == instance


@pytest.mark.parametrize("kind", RECORD_KINDS)
def test_a_name_for_a_type_is_never_that_of_a_field(kind):
    """It would be hidden by the field, in the body of the class."""
    branches = ["null", "int", "string", "bytes", "boolean", "double"]
    declared = record(field("RA", default=1), field("_RA2", default=2), field("a", branches), field("b", branches))
    cls = root(module(declared, kind))
    assert cls.from_avro(cls(a="x", b=None).to_avro()) == cls(RA=1, RA2=2, a="x", b=None)
    assert str in get_args(cls.__annotations__["a"])


def test_names_that_are_right_stay():
    """Also those that are words of other places only."""
    declared = record(*(field(name) for name in ("id", "type", "match", "format", "pkNames", "A", "class")))
    made = records(generate([NamedSchema("t", parse_schema(json.dumps(declared)))], "msgspec"))
    assert [line.partition(":")[0] for line in made] == ["id", "type", "match", "format", "pkNames", "A", "class_"]
    assert made[-1] == "class_: int = field(name='class')"


@pytest.mark.parametrize("kind", RECORD_KINDS)
def test_symbols_are_members(kind):
    """Those that an enum has itself get an underscore behind; their values are the symbols."""
    symbols = [
        "A",
        "None",
        "mro",
        "name",
        "value",
        "title",
        "__class__",
        "_x_",
        "_generate_next_value_",
        "class",
        "None_",
    ]
    cls = one(enum(*symbols), kind)
    made = cls.module.E
    assert [str(one) for one in made] == symbols
    assert made.None__ == "None"
    for symbol in made:
        assert cls.from_avro(cls(a=symbol).to_avro()).a is symbol


OWN_NAMES = own_names()


@pytest.mark.slow
@pytest.mark.parametrize("kind", RECORD_KINDS)
@pytest.mark.parametrize(
    ("declared", "more"),
    [("int", {}), ("int", {"default": 7}), (["null", "int"], {"default": None}), (array("int"), {"default": [7]})],
)
@pytest.mark.filterwarnings("error")
def test_every_name_that_a_class_has_itself_is_a_field(kind, declared, more):
    """All that Python, the library of the kind, its metaclass and the module have."""
    made = root(module(record(*(field(name, declared, **more) for name in OWN_NAMES)), kind))
    values = [[i] if declared == array("int") else i for i in range(len(OWN_NAMES))]
    instance = made(**dict(zip(field_names(made), values, strict=True)))
    assert made.from_avro(instance.to_avro()) == instance
    assert json.loads(instance.to_json()) == dict(zip(OWN_NAMES, values, strict=True))
    assert made.from_json(instance.to_json()) == instance
    if more:
        assert list(json.loads(made().to_json()).values()) == [more["default"]] * len(OWN_NAMES)


@pytest.mark.parametrize("kind", RECORD_KINDS)
@pytest.mark.parametrize("name", ["model_construct", "mro", "register"])
@pytest.mark.filterwarnings("error")
def test_a_field_that_a_model_or_a_metaclass_has_is_one_alone_too(kind, name):
    """The class is made and read by it."""
    made = root(module(record(field(name)), kind))
    assert json.loads(made.from_avro(b"\x0e").to_json()) == {name: 7}


@pytest.mark.slow
@pytest.mark.parametrize("kind", RECORD_KINDS)
@pytest.mark.filterwarnings("error")
def test_every_name_that_a_module_has_itself_is_a_type_and_a_symbol(kind):
    """A record, an enum and a fixed of each name, in a namespace of that name, and symbols of all of them.

    A module has 25 of the names, since what one costs is mostly the module.
    """
    for i in range(0, len(OWN_NAMES), 25):
        names = OWN_NAMES[i : i + 25]
        types = [
            one
            for name in names
            for one in (
                record(field("x"), name=f"{name}.{name}"),
                {
                    "type": "enum",
                    "name": f"e.{name}",
                    "symbols": OWN_NAMES if i % 50 == 0 and name == names[0] else ["A"],
                },
                {"type": "fixed", "name": f"f.{name}", "size": 1},
            )
        ]
        made = root(module(record(*(field(f"a{at}", one) for at, one in enumerate(types)), name="r.Root"), kind))
        payload = b"\x0e\x00a" * len(names)
        instance = made.from_avro(payload)
        assert instance.to_avro() == payload
        assert made.from_json(instance.to_json()) == instance


@pytest.mark.parametrize("kind", RECORD_KINDS)
def test_any_float_is_a_default(kind):
    """Those with exponents as a formatter writes them."""
    for declared, numbers in {
        "double": [1e22, -1e22, 1e-7, 5e-324, 1.7e308, 1e16, -0.0],
        "float": [1e22, 1e-7],
    }.items():
        for number in numbers:
            schema = parse_schema(json.dumps(record(field("a", declared, default=number))))
            source = generate(schema, kind)
            assert "e+" not in source.partition("SCHEMA")[0]
            value = root(load(source))().a
            assert struct.pack("<d", value) == struct.pack(
                "<d", number if declared == "double" else nearest_float(number)
            )


def test_a_schema_needs_no_source():
    """It goes by the name of its type; several stand in one module."""
    pair, other = (parse_schema(json.dumps(record(field("a"), name=f"s.{name}"))) for name in ("Pair", "Other"))
    assert root(load(generate(pair, "dataclass"))).from_avro(b"\x0e").a == 7
    source = generate([pair, NamedSchema("other.avsc", other)], "dataclass")
    assert "class Pair(AvroRecord):" in source
    assert "class Other(AvroRecord):" in source
    assert "PAIR_SCHEMA" in source
    assert "Schema: Pair, s.Pair" in source
    assert "Command:" not in source
    assert generate(NamedSchema("p.avsc", pair), "msgspec") == generate([NamedSchema("p.avsc", pair)], "msgspec")


def test_what_an_enum_has_itself_is_known():
    """In this version of Python too."""
    assert {name for name in dir(StrEnum) if not name.startswith("_")} <= ENUM_NAMES


@pytest.mark.skipif(find_spec("pydantic") is None, reason="needs pydantic")
def test_what_a_model_has_itself_is_known():
    """In this version of pydantic too."""
    from pydantic import BaseModel  # noqa: PLC0415

    from cdcavro.records.class_source import LIBRARIES  # noqa: PLC0415

    own = {*dir(BaseModel), *dir(type(BaseModel))}
    assert {name for name in own if not name.startswith("_")} <= LIBRARIES["pydantic"].reserved


@pytest.mark.skipif(find_spec("pydantic") is None, reason="needs pydantic")
def test_a_model_refuses_what_its_types_do_not_hold():
    """When it is made, and without converting anything."""
    cls = one({"type": "long", "logicalType": "local-timestamp-micros"}, "pydantic")
    for value in ("2024-01-01", 5, None):
        with pytest.raises(ValueError, match="1 validation error"):
            cls(a=value)
    with pytest.raises(ValueError, match="1 validation error"):
        one("int", "pydantic")(a=2**31)


@pytest.mark.parametrize("kind", RECORD_KINDS)
def test_several_schemas_stand_in_one_module(kind):
    """Classes of one name get the name of their schema in front."""
    made = load(generate([NamedSchema(name, cdcavro.load_schema(name)) for name in ("canal", "oms_canal")], kind))
    assert made.CanalEventType is not made.OmsCanalEventType
    assert_message(made.FlatMessage, goldens("canal")[0], "canal")
    assert_message(made.Canal, goldens("oms_canal")[0], "oms_canal")


def test_versions_of_a_schema_stand_in_one_module():
    """The names of their files tell them apart."""
    schemas = [
        NamedSchema(f"orders/v{i}.avsc", parse_schema(json.dumps(record(*(field(f"a{j}") for j in range(i))))))
        for i in (1, 2)
    ]
    made = load(generate(schemas, "dataclass"))
    assert (made.V1R(a0=1).to_avro(), made.V2R(a0=1, a1=2).to_avro()) == (b"\x02", b"\x02\x04")
    assert [made.V1_SCHEMA, made.V2_SCHEMA] != [None, None]


def test_what_spark_makes_of_a_schema_is_said_without_spark():
    """A struct for each record, in the order of use, and the DDL of the columns."""
    declared = record(
        field("id", "long"),
        field("u", ["null", "int", "string"]),
        field("rows", array(record(field("d", {"type": "int", "logicalType": "date"}), name="Row"))),
    )
    made = generate([NamedSchema("t", parse_schema(json.dumps(declared)))], "spark")
    assert made.partition("DDL: Final = ")[2] == (
        '"id BIGINT NOT NULL,u STRUCT<member0: INT, member1: STRING>,rows ARRAY<STRUCT<d: DATE NOT NULL>> NOT NULL"\n'
    )
    assert 'Row: Final = StructType(\n    [\n        StructField("d", DateType(), nullable=False),\n    ],\n)' in made
    assert made.index("Row: Final") < made.index("R: Final")


def test_a_schema_that_is_no_record_is_refused():
    """There is nothing that could have methods."""
    with pytest.raises(SchemaError) as error:
        generate([NamedSchema("t.avsc", parse_schema('["null", "long"]'))], "dataclass")
    assert str(error.value) == "schema t.avsc: expected a record, got union"


def test_a_record_within_itself_has_no_type_on_spark():
    """Spark refuses it; classes are made of it, which name themselves in quotes, and of a record around them."""
    declared = parse_schema(json.dumps(record(field("next", ["null", "N"], default=None), name="N")))
    with pytest.raises(SchemaError) as error:
        generate([NamedSchema("t", declared)], "spark")
    assert str(error.value) == "schema $: N contains itself, which Spark does not read"
    assert '    next: "N | None" = None\n' in generate([NamedSchema("t", declared)], "dataclass")


def test_another_kind_is_refused():
    """With those that there are."""
    with pytest.raises(ValueError, match=r"^kinds are dataclass, msgspec, pydantic, spark, not 'attrs'$"):
        generate([], "attrs")


def test_a_default_without_a_python_value_is_refused():
    """A date behind the year 9999, also deep within."""
    day = {"type": "int", "logicalType": "date"}
    declared = record(field("a", array(record(field("d", day), name="D")), default=[{"d": 2**31 - 1}]))
    with pytest.raises(SchemaError) as error:
        generate([NamedSchema("t", parse_schema(json.dumps(declared)))], "dataclass")
    assert str(error.value) == "schema a: the default is no value of its type"


def test_docs_of_several_lines_are_read_as_they_were_written():
    """By `inspect.getdoc`, as is usual."""
    doc = 'First line.\n\n* second: "quoted" and \\ and 日本\nthird'
    assert inspect.getdoc(module(record() | {"doc": doc}).R) == doc


def test_fastavro_writes_the_same_payload():
    """For a record with logical types, nested."""
    declared = record(
        field("d", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}),
        field("t", {"type": "long", "logicalType": "timestamp-micros"}),
        field("m", mapping(array(["null", "double"]))),
    )
    cls = root(module(declared))
    made = cls.from_json('{"d":"-1.20","t":"2024-02-29T01:02:03.000004Z","m":{"x":[null,0.5]}}')
    out = io.BytesIO()
    fastavro.schemaless_writer(out, declared, {"d": made.d, "t": made.t, "m": made.m})
    assert made.to_avro() == out.getvalue()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["dataclass", "spark"])
def test_absurd_schemas_take_bounded_time(kind):
    """Ten thousand fields; 128 levels; long names."""
    wide = record(*(field(f"f{i}", ["null", "string"], default=None) for i in range(10_000)))
    deep: object = "string"
    for i in range(62):
        deep = record(field("a" * 50, array(deep)), name=f"R{i}") if i % 2 else mapping(["null", "int", deep])
    arrays: object = "string"
    for _ in range(126):
        arrays = array(arrays)
    long = record(field("x" * 100_000), name="N" * 100_000)
    for declared in (wide, record(field("a", deep), name="D"), record(field("a", arrays)), long):
        made = generate([NamedSchema("t", parse_schema(json.dumps(declared)))], kind)
        if declared is not wide and kind == "dataclass":
            load(made)

"""What `cdcavro generate --kind spark` prints is what Spark itself makes of a schema."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from pyspark.errors import ArithmeticException
from pyspark.sql.types import StructType

import cdcavro
from cdcavro.avro.schema import parse_schema
from cdcavro.errors import SchemaError
from cdcavro.records.codegen import NamedSchema, ddl, generate, spark_type
from support.generated_modules import load, own_names
from support.messages import shop_canal
from support.schema_pairs import pairs
from support.wire import array, enum, field, mapping, record

FIXED = {"type": "fixed", "name": "F", "size": 4}
LOGICAL = [
    *(("int", name) for name in ("date", "time-millis", "timestamp-millis")),
    *(
        ("long", f"{kind}-{unit}")
        for kind in ("timestamp", "local-timestamp")
        for unit in ("millis", "micros", "nanos")
    ),
    ("long", "time-micros"),
    ("string", "uuid"),
    ("bytes", "big-decimal"),
]
DECIMALS = [(9, 2), (9, 0), (38, 38), (10, 2), (4, 8), (0, 0)]
UNIONS = [
    ["null"],
    ["null", "long"],
    ["long", "null"],
    ["string"],
    ["int", "long"],
    ["null", "long", "int"],
    ["double", "null", "float"],
    ["int", "float"],
    ["null", "int", "long", "string"],
    ["null", array("int"), mapping(["null", "string"]), record(field("a"))],
]
SCHEMAS = [
    *({"type": base} for base in ("null", "boolean", "int", "long", "float", "double", "bytes", "string")),
    *({"type": base, "logicalType": name} for base, name in LOGICAL),
    *({"type": "bytes", "logicalType": "decimal", "precision": p, "scale": s} for p, s in DECIMALS),
    *(FIXED | {"logicalType": "decimal", "precision": p, "scale": s} for p, s in DECIMALS),
    *UNIONS,
    FIXED,
    enum("A", "B"),
    array(["null", "int"]),
    mapping(array("int")),
    record(),
    record(
        field("id"),
        field("select", ["null", record(field("a"), field("b", ["null", "long"]), name="S")]),
        field("u", ["null", "int", "S"]),
        field("_n", "null"),
        field("all", array(mapping(["S", "string"]))),
    ),
]


def of_spark(spark, text):
    """Return the type and the DDL that Spark has for a schema."""
    jvm = spark._jvm
    parsed = jvm.org.apache.avro.Schema.Parser().parse(text)
    found = jvm.org.apache.spark.sql.avro.SchemaConverters.toSqlType(parsed).dataType()
    declared = json.loads(found.json())
    is_struct = isinstance(declared, dict) and declared["type"] == "struct"
    return declared, found.toDDL() if is_struct else found.sql()


def assert_as_spark(spark, text):
    """Compare with what Spark has for a schema, the module too, which builds the type of pyspark."""
    schema = parse_schema(text)
    made = spark_type(schema)
    declared, columns = of_spark(spark, text)
    assert made.json == declared
    assert ddl(made) == columns
    names: dict = {}
    exec(generate([NamedSchema("s.avsc", schema)], "spark"), names)
    assert json.loads(names["SCHEMA"].json()) == declared
    assert names["DDL"] == columns
    if isinstance(names["SCHEMA"], StructType) and columns:
        # DDL does not say whether items may be null.
        assert StructType.fromDDL(columns).simpleString() == names["SCHEMA"].simpleString()


@pytest.mark.parametrize("name", [*cdcavro.FORMATS, "change"])
def test_every_wire_schema_and_change(spark, name):
    """For all formats: unions as member0 to memberN, nullability, maps and arrays."""
    assert_as_spark(spark, cdcavro.load_schema(name).json)


def test_every_version_of_every_table(spark):
    """For all that the shop's tables become: decimals, dates, local timestamps, times as longs."""
    tables = cdcavro.Tables()
    for message in shop_canal():
        for change in cdcavro.to_changes(message, "canal"):
            tables.add(change)
    schemas = {
        one.json
        for table in tables.tables
        for version in table.versions
        for one in (version.envelope, version.row, version.key)
        if one is not None
    }
    assert len(schemas) > 30
    for schema in schemas:
        assert_as_spark(spark, schema)


@pytest.mark.parametrize("declared", SCHEMAS, ids=lambda one: json.dumps(one)[:60])
def test_every_kind_of_type(spark, declared):
    """Logical types that Spark has and such that it passes over, invalid decimals, unions that it widens."""
    assert_as_spark(spark, json.dumps(declared))


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pairs())
def test_random_schemas(spark, pair):
    """For schemas made at random."""
    assert_as_spark(spark, pair.reader)


def test_what_spark_refuses_is_refused(spark):
    """A decimal of more than 38 digits."""
    declared = json.dumps({"type": "bytes", "logicalType": "decimal", "precision": 39, "scale": 2})
    with pytest.raises(ArithmeticException, match="DECIMAL_PRECISION_EXCEEDS_MAX_PRECISION"):
        of_spark(spark, declared)
    with pytest.raises(SchemaError) as error:
        spark_type(parse_schema(declared))
    assert str(error.value) == "schema $: Spark has no decimal of 39 digits"


@pytest.mark.slow
def test_every_name_that_a_module_has_itself_is_a_record_for_spark():
    """`SCHEMA` and `DDL` too, which the module calls its own."""
    for name in own_names():
        schema = parse_schema(json.dumps(record(field("a", record(field("x"), name=f"q.{name}")), name="Root")))
        made = load(generate(schema, "spark"))
        assert made.SCHEMA.jsonValue() == spark_type(schema).json
        assert made.DDL == "a STRUCT<x: INT NOT NULL> NOT NULL"

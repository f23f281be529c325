"""Columns of lake tables: what is known of them without Spark is what Spark makes of them."""

from __future__ import annotations

import json

from pyspark.sql import SparkSession

from cdcavro.avro.schema import parse_schema
from cdcavro.lake.lake_columns import spark_type, wanted_columns
from cdcavro.spark.version_columns import _sql_type, true_type
from cdcavro.table.older_fields import ROW
from support.column_types import typed_columns, version_of

NESTED = [
    {"type": "array", "items": "string"},
    {"type": "map", "values": ["null", "bytes"]},
    {"type": "array", "items": {"type": "map", "values": {"type": "long", "logicalType": "timestamp-millis"}}},
    {
        "type": "record",
        "name": "Inner",
        "fields": [{"name": "a", "type": "int"}, {"name": "b", "type": ["null", "string"]}],
    },
    {"type": "enum", "name": "Flag", "symbols": ["A"]},
    {"type": "fixed", "name": "Sixteen", "size": 16},
    {"type": "fixed", "name": "Money", "size": 8, "logicalType": "decimal", "precision": 12, "scale": 2},
    {"type": "long", "logicalType": "local-timestamp-millis"},
    {"type": "long", "logicalType": "timestamp-nanos"},
    {"type": "int", "logicalType": "time-millis"},
    {"type": "string", "logicalType": "uuid"},
    ["null", "int", "long"],
    ["float", "double"],
    ["null", "int", "string"],
    ["int", "boolean", "null"],
    ["null"],
]


def test_types_of_columns_are_those_of_spark(spark: SparkSession):
    """Of all that any format's columns may be."""
    schema = version_of(typed_columns())
    fields = true_type(schema, ROW).fields[: len(schema.columns)]
    assert [(column.name, column.type) for column in wanted_columns(schema)] == [
        (field.name, field.dataType.simpleString()) for field in fields
    ]


def test_types_of_schemas_of_other_makers_are_those_of_spark(spark: SparkSession):
    """Types within others, and unions."""
    declared = {
        "type": "record",
        "name": "R",
        "fields": [{"name": f"f{i}", "type": avro} for i, avro in enumerate(NESTED)],
    }
    schema = parse_schema(json.dumps(declared))
    found = [spark_type(field.type, field.name) for field in schema.root.fields]
    assert found == [field.dataType.simpleString() for field in _sql_type(schema.json).fields]

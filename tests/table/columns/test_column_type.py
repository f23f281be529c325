"""What a column's declared type becomes in Avro, and what is said about it."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from zoneinfo import ZoneInfo

import fastavro
import pytest

from cdcavro.change.model import Column, Source
from cdcavro.errors import FileError
from cdcavro.table.columns.column_type import (
    READERS,
    TypeOverrides,
    column_type,
    column_type_names,
    is_known,
    read_types,
    stated,
)
from cdcavro.table.columns.format_rules import RULES, USUAL
from cdcavro.table.columns.type_names import TYPES, storage_of

SHANGHAI = ZoneInfo("Asia/Shanghai")
DATE = {"type": "int", "logicalType": "date"}
TIME = {"type": "long", "logicalType": "time-micros"}
LOCAL = {"type": "long", "logicalType": "local-timestamp-micros"}
MICROS = {"type": "long", "logicalType": "timestamp-micros"}
MILLIS = {"type": "long", "logicalType": "timestamp-millis"}


def decimal(precision, scale):
    """The Avro type of a decimal."""
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}


def made(type, format="canal", *, code=None, db_type=None, given=None, zone=None):
    """The type of a column that is stated so."""
    return column_type(
        Column(name="c", type=type, code=code), Source(format=format, db_type=db_type), given=given, zone=zone
    )


MYSQL = {
    "boolean": ["boolean", "BOOL"],
    "int": [
        *("tinyint", "tinyint(4)", "tinyint(3) unsigned", "smallint", "smallint unsigned", "mediumint"),
        *("mediumint unsigned", "int", "INTEGER", "int(11)", "INT SIGNED", "year", "year(4)", "tinyint(1)"),
    ],
    "long": ["int unsigned", "int(8) unsigned zerofill", "INT(10) UNSIGNED", "int zerofill", "bigint", "BIGINT(20)"],
    "float": ["float", "float unsigned", "float(7,3)", "float(24)"],
    "double": ["double", "double precision", "DOUBLE(10,2)", "real", "float(25)", "float(53)"],
    "string": [
        *("char(10)", "varchar(255)", "tinytext", "text", "mediumtext", "longtext", "json"),
        *("enum('a','b,c')", "set('x','y)')", "varchar(20) character set utf8mb4 collate utf8mb4_bin"),
        *("decimal", "decimal(65,30)", "decimal(39,0)", "NUMERIC"),
    ],
    "bytes": [
        *("bit(1)", "bit", "bit(64)", "binary(8)", "binary", "varbinary(255)", "tinyblob", "blob", "mediumblob"),
        *("longblob", "point", "geometry", "geometrycollection", "geomcollection", "multipolygon"),
    ],
}


@pytest.mark.parametrize(("type", "avro"), [(type, avro) for avro, types in MYSQL.items() for type in types])
def test_mysql_type_has_its_avro_type(type, avro):
    """A declared type as MySQL spells it, in either case."""
    for spelled in (type, type.upper() if "'" not in type else type):
        assert made(spelled).avro == avro
        assert made(spelled).declared == spelled


@pytest.mark.parametrize(
    ("type", "avro"),
    [
        ("bigint unsigned", decimal(20, 0)),
        ("serial", decimal(20, 0)),
        ("decimal(10,2)", decimal(10, 2)),
        ("DECIMAL(10, 2) UNSIGNED", decimal(10, 2)),
        ("numeric(5)", decimal(5, 0)),
        ("dec(38,38)", decimal(38, 38)),
        ("date", DATE),
        ("time", TIME),
        ("time(6)", TIME),
        ("datetime", LOCAL),
        ("datetime(3)", LOCAL),
        ("timestamp", MICROS),
        ("timestamp(6)", MICROS),
    ],
)
def test_mysql_type_has_its_logical_type(type, avro):
    """Numbers beyond 64 bits, decimals, dates and times."""
    assert made(type).avro == avro


@pytest.mark.parametrize(
    ("type", "format", "code", "db_type", "avro"),
    [
        ("BIGINT", "oms_dataworks", None, None, decimal(20, 0)),
        ("bigint", "oms_canal", -5, None, decimal(20, 0)),
        ("bigint(20) unsigned", "oms_default_extend_column_type", None, None, decimal(20, 0)),
        ("INT64", "oms_dataworks", None, None, "long"),
        ("BLOB", "oms_dataworks", None, None, "bytes"),
        ("BIT", "oms_dataworks", None, None, "bytes"),
        ("ZONED_DATETIME", "oms_dataworks", None, None, "string"),
        ("INTERVAL_DAY_TO_SECOND", "oms_dataworks", None, None, "string"),
        ("DATETIME", "oms_dataworks", None, None, LOCAL),
        ("LONG", "datahub_blob", None, None, "long"),
        ("LONG", "datahub_blob", None, "Oracle", "long"),
        ("DOUBLE", "datahub_blob", None, None, "string"),
        ("STRING", "datahub_blob", None, None, "string"),
        ("BYTES", "datahub_blob", None, None, "bytes"),
        ("BOOLEAN", "datahub_blob", None, None, "boolean"),
        ("DATE", "datahub_blob", None, "PostgreSQL", MILLIS),
        ("BIGINT", "datahub_tuple", None, None, "long"),
        ("integer", "datahub_tuple", None, None, "int"),
        ("double", "datahub_tuple", None, None, "double"),
        ("TIMESTAMP", "datahub_tuple", None, None, MICROS),
        ("int8", "debezium", None, "mysql", "int"),
        ("int16", "debezium", None, None, "int"),
        ("int64", "debezium", None, None, "long"),
        ("float", "debezium", None, None, "float"),
        ("double", "debezium", None, None, "double"),
        ("boolean", "debezium", None, None, "boolean"),
        ("bytes", "debezium", None, None, "bytes"),
        ("string", "debezium", None, None, "string"),
        ("int8", "debezium", -5, "postgresql", "long"),
        ("INT UNSIGNED", "debezium", 4, "mysql", "long"),
        ("BIT(12)", "debezium", -7, "mysql", "bytes"),
        ("BIT(12)", "debezium", -7, "vitess", "string"),
        ("bit", "debezium", -7, "postgresql", "string"),
        ("org.apache.kafka.connect.data.Decimal(precision=20,scale=0)", "debezium", None, None, decimal(20, 0)),
        ("org.apache.kafka.connect.data.Decimal(precision=65,scale=30)", "debezium", None, None, "string"),
        ("org.apache.kafka.connect.data.Decimal(scale=2)", "debezium", None, None, "string"),
        ("io.debezium.data.VariableScaleDecimal", "debezium", None, None, "string"),
        ("io.debezium.time.Date", "debezium", None, None, DATE),
        ("io.debezium.time.MicroTime", "debezium", None, None, TIME),
        ("io.debezium.time.Timestamp", "debezium", None, None, LOCAL),
        ("io.debezium.time.NanoTimestamp", "debezium", None, None, LOCAL),
        ("io.debezium.time.ZonedTimestamp", "debezium", None, None, MICROS),
        ("io.debezium.time.Year", "debezium", None, None, "int"),
        ("io.debezium.data.Bits(length=12)", "debezium", None, None, "bytes"),
        ("io.debezium.data.Json", "debezium", None, None, "string"),
        ("io.debezium.data.geometry.Point", "debezium", None, None, "bytes"),
        ("int4", "oms_canal", None, "postgresql", "int"),
        ("serial", "oms_canal", None, "postgresql", "int"),
        ("bigserial", "oms_canal", None, "postgresql", "long"),
        ("real", "oms_canal", None, "postgresql", "float"),
        ("float8", "oms_canal", None, None, "double"),
        ("timestamptz", "oms_canal", None, "postgresql", MICROS),
        ("timestamp(3) with time zone", "oms_canal", None, "postgresql", MICROS),
        ("timestamp without time zone", "oms_canal", None, "postgresql", LOCAL),
        ("timestamp", "oms_canal", None, "postgresql", LOCAL),
        ("character varying(20)", "oms_canal", None, "postgresql", "string"),
        ("bit varying(3)", "oms_canal", None, "postgresql", "string"),
        ("uuid", "oms_canal", None, None, "string"),
        ("jsonb", "oms_canal", None, None, "string"),
        ("bytea", "oms_canal", None, None, "bytes"),
        ("numeric", "oms_canal", None, "postgresql", "string"),
        ("NUMBER(10,2)", "oms_default", None, "OB_ORACLE", decimal(10, 2)),
        ("NUMBER", "oms_default", None, "OB_ORACLE", "string"),
        ("NUMBER(*,0)", "oms_default", None, "OB_ORACLE", "string"),
        ("INTEGER", "oms_default", None, "oracle", decimal(38, 0)),
        ("DATE", "oms_default", None, "oracle", LOCAL),
        ("TIMESTAMP(6)", "oms_default", None, "oracle", LOCAL),
        ("TIMESTAMP(6) WITH TIME ZONE", "oms_default", None, "oracle", "string"),
        ("TIMESTAMP(6) WITH LOCAL TIME ZONE", "oms_default", None, "oracle", MICROS),
        ("INTERVAL DAY(2) TO SECOND(6)", "oms_default", None, "oracle", "string"),
        ("VARCHAR2(20 CHAR)", "oms_default", None, "oracle", "string"),
        ("LONG RAW", "oms_default", None, "oracle", "bytes"),
        ("BINARY_FLOAT", "oms_default", None, "oracle", "float"),
        ("bit", "debezium", -7, "sqlserver", "boolean"),
        ("money", "debezium", 3, "sqlserver", decimal(19, 4)),
    ],
)
def test_a_word_means_what_its_format_and_database_mean_by_it(type, format, code, db_type, avro):
    """The same word in other formats and databases."""
    assert made(type, format, code=code, db_type=db_type).avro == avro


@pytest.mark.parametrize(
    ("code", "avro"),
    [
        (-6, "int"),
        (5, "int"),
        (4, "int"),
        (-5, decimal(20, 0)),
        (6, "double"),
        (7, "float"),
        (8, "double"),
        (3, "string"),
        (12, "string"),
        (1, "string"),
        (2005, "string"),
        (2004, "bytes"),
        (-7, "bytes"),
        (16, "boolean"),
        (91, DATE),
        (92, TIME),
        (93, "string"),
        (2014, MICROS),
        (1111, "string"),
        (None, "string"),
    ],
)
def test_a_code_alone_tells_the_type(code, avro):
    """The ordinary codes of java.sql.Types, where no type is stated."""
    assert made(None, "oms_canal", code=code).avro == avro


@pytest.mark.parametrize(
    ("stated", "note"),
    [
        ({"type": "tinyint(1)"}, "TINYINT(1) is an int, not a boolean"),
        ({"type": "tinyint"}, None),
        ({"type": "decimal(10,2)"}, None),
        ({"type": "DECIMAL(65,30)"}, "DECIMAL(65,30) has more than 38 digits: a string"),
        ({"type": "decimal(2,5)"}, "DECIMAL(2,5) has a scale beyond its precision: a string"),
        ({"type": "decimal"}, "no precision is stated: a string of the digits sent"),
        ({"type": "FOO(1)"}, "unknown type 'FOO(1)': a string"),
        ({"type": "integer[]"}, "unknown type 'integer[]': a string"),
        ({"type": "int array"}, "unknown type 'int array': a string"),
        ({"type": ""}, "unknown type '': a string"),
        ({"type": "\n" * 99}, "unknown type '" + r"\n" * 80 + "...': a string"),
        ({"type": None}, "no type is stated: a string"),
        ({"type": None, "code": 1111}, "unknown code 1111 of java.sql.Types: a string"),
        ({"type": None, "code": 93}, "code 93 of java.sql.Types is DATETIME or TIMESTAMP: a string"),
        ({"type": None, "code": 2004}, "code 2004 of java.sql.Types does not say how bytes are sent: a string"),
        ({"type": "BIGINT", "format": "oms_canal"}, "OMS's BIGINT may pass 64 bits: decimal(20,0)"),
        (
            {"type": "DOUBLE", "format": "datahub_blob"},
            "DataHub's DOUBLE may be a DECIMAL: a string of the digits sent",
        ),
        (
            {"type": "BIT", "format": "oms_canal"},
            "no width is stated: as many bytes as are sent, or as an integer needs",
        ),
        ({"type": "raw(16)"}, "unknown type 'raw(16)': a string"),
        ({"type": "bit(65)"}, "unknown type 'bit(65)': a string"),
    ],
)
def test_what_a_user_should_know_is_said(stated, note):
    """Everything that is held otherwise than its name suggests."""
    assert made(**stated).note == note


def test_a_given_type_stands_in_for_the_declared_one():
    """It is a type of the database, not of the format."""
    assert made("DOUBLE", "datahub_blob", given="decimal(10,6)").avro == decimal(10, 6)
    assert made("DATE", "datahub_blob", given="timestamp").avro == MICROS
    assert made("BIGINT", "oms_canal", given="bigint").avro == "long"
    assert made(None, "oms_shareplex", given="tinyint(1)").note == "TINYINT(1) is an int, not a boolean"
    assert made("DOUBLE", "datahub_blob", given="decimal(10,6)").declared == "DOUBLE"


@pytest.mark.parametrize("rules", [*RULES.values(), USUAL], ids=[*RULES, "usual"])
@pytest.mark.parametrize("database", TYPES)
def test_every_name_has_a_reader(rules, database):
    """What a name means in a database and a format is read by a rule that there is."""
    for name in {*rules.words, *TYPES[None], *TYPES[database]}:
        for text in (name, f"{name}(2,1)", f"{name} unsigned"):
            storage = storage_of(replace(stated(text, rules), words=rules.words, database=database))
            assert storage is None or storage.rule.name in READERS, text


def test_the_same_facts_give_the_same_object():
    """A type is taken apart once, and anew where any fact differs."""
    assert made("int") is made("int")
    assert made("timestamp") is not made("timestamp", zone=SHANGHAI)
    assert made("bigint") is not made("bigint", "oms_canal")
    long = "enum('" + "x" * 5_000 + "')"
    assert made(long) is made(long)


@pytest.mark.parametrize("type", [*chain(*MYSQL.values()), "date", "time", "datetime", "timestamp", "bigint unsigned"])
def test_every_avro_type_is_one(type):
    """Fastavro takes each as a field's type, with null before it too."""
    fastavro.parse_schema({"type": "record", "name": "r", "fields": [{"name": "c", "type": ["null", made(type).avro]}]})


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("timestamp (6) without  time zone", ("TIMESTAMP WITHOUT TIME ZONE",)),
        ("int unsigned zerofill", ("INT UNSIGNED ZEROFILL", "INT UNSIGNED", "INT")),
        ("enum ('a (b', 'c')", ("ENUM",)),
        ("interval year to month", ("INTERVAL YEAR TO MONTH", "INTERVAL")),
        ("io.debezium.data.Bits(length=1)", ("io.debezium.data.Bits",)),
        ("timestamp with local time zone foo bar", ()),
        ("", ()),
    ],
)
def test_a_type_is_named_by_its_words(text, names):
    """All words of it, or fewer where only modifiers are left out."""
    assert column_type_names(text) == names


def test_hostile_types_are_unknown_in_linear_time():
    """Parentheses, quotes and words without end."""
    for text in (
        "(" * 500_000,
        "int(" * 100_000,
        "a " * 500_000,
        "enum('" + "'" * 500_000,
        "x." * 250_000,
        "int(9999999999)",
    ):
        assert made(text).read(5) is not None


@pytest.mark.parametrize("text", ["decimal(10,2)", "NUMBER(5)", "rowversion", "io.debezium.time.Date", "bigserial"])
def test_a_type_of_any_database_is_known(text):
    """What may be given."""
    assert is_known(text)
    assert not is_known(f"{text}x")


ORDERS = Source(database="shop", table="orders")


def test_the_most_specific_table_counts():
    """A table of a database before a table of any, and that before all; column by column."""
    given = TypeOverrides.from_mapping(
        {
            "*": {"a": "int", "b": "int", "c": "int"},
            "orders": {"a": "bigint", "b": "bigint"},
            "shop.orders": {"a": "double"},
        }
    )
    assert [given.of(ORDERS, name) for name in "abcd"] == ["double", "bigint", "int", None]
    assert given.of(Source(database="other", table="orders"), "a") == "bigint"
    assert given.of(Source(table="x"), "a") == "int"
    assert given.of(Source(), "a") == "int"
    assert given.of(ORDERS, None) is None


def test_a_table_of_a_schema_comes_before_those_of_all_schemas():
    """PostgreSQL has two tables of one name in a database; without one, a table is called by its schema."""
    given = TypeOverrides.from_mapping(
        {"d.public.t": {"a": "int"}, "d.t": {"a": "bigint", "b": "bigint"}, "public.t": {"a": "double"}}
    )
    public, audit = (Source(database="d", schema=schema, table="t") for schema in ("public", "audit"))
    assert [given.of(public, name) for name in "ab"] == ["int", "bigint"]
    assert given.of(audit, "a") == "bigint"
    assert given.of(Source(schema="public", table="t"), "a") == "double"
    assert given.of(Source(database="public", schema="x", table="t"), "a") == "double"


def test_a_column_matches_as_it_is_and_else_without_case():
    """Two names that differ in case only are told apart, and stand for no third."""
    given = TypeOverrides.from_mapping({"*": {"Id": "int", "x": "int", "X": "double", "straße": "text"}})
    assert [given.of(ORDERS, name) for name in ("ID", "x", "X", "STRASSE")] == ["int", "int", "double", "text"]
    given = TypeOverrides.from_mapping({"*": {"xy": "int", "XY": "double"}})
    assert given.of(ORDERS, "Xy") is None


def test_a_table_without_a_database_is_not_the_database_none():
    """Names are not made of what is not there."""
    assert TypeOverrides.from_mapping({"None.orders": {"a": "int"}}).of(Source(table="orders"), "a") is None


def test_nothing_given():
    """The default gives no type."""
    assert TypeOverrides().of(ORDERS, "a") is None


def test_a_file_is_read(tmp_path):
    """JSON in UTF-8."""
    file = tmp_path / "types.json"
    file.write_text('{"shop.orders": {"größe": "decimal(10,2)"}}', encoding="utf-8")
    assert read_types(file).of(ORDERS, "Größe") == "decimal(10,2)"
    assert read_types(str(file)) == TypeOverrides.from_mapping({"shop.orders": {"größe": "decimal(10,2)"}})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "expected JSON, got an empty line"),
        ("{", "expected JSON, got text that ends too early, at character 1"),
        ("[]", "expected an object from table to columns, got '[]'"),
        ('{"": {}}', """expected a table's name, database.schema.table, database.table or *, got "''\""""),
        ('{"t": []}', "expected an object from column to type for 't', got '[]'"),
        ('{"t": {"c": 1}}', "expected the text of a type for 't' 'c', got '1'"),
        ('{"t": {"c": "decmal(1)"}}', "expected a type that is known for 't' 'c', got 'decmal(1)'"),
        ('{"t": {}, "t": {}}', "expected each member once, got 't' twice"),
    ],
)
def test_a_bad_file_is_an_error_that_says_where(tmp_path, text, reason):
    """The file, what was expected and what stands there."""
    file = tmp_path / "types.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(FileError) as raised:
        read_types(file)
    assert str(raised.value) == f"{file}: {reason}"


def test_a_bad_mapping_is_the_same_error():
    """Without a file, under the name of types."""
    with pytest.raises(FileError) as raised:
        TypeOverrides.from_mapping({"t": {"c": "foo"}})
    assert str(raised.value) == "types: expected a type that is known for 't' 'c', got 'foo'"

"""The next version of a schema by a statement: what it does, what old rows show, what is said of it."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal

import pytest

from cdcavro.avro.schema import parse_schema
from cdcavro.change.model import Column, Source
from cdcavro.errors import CdcAvroError, DdlError, SchemaError
from cdcavro.table.columns.column_type import TypeOverrides
from cdcavro.table.ddl.parse import sentence
from cdcavro.table.ddl.steps import TableName
from cdcavro.table.evolution.evolve import by_columns, create_table, evolve
from support.calls import calls
from support.typed import SOURCE, read, read_row, table, write

ORACLE = Source(db_type="OB_ORACLE", schema="S")
POSTGRES = Source(db_type="postgresql", schema="public")


def after(schema, *statements, source=SOURCE):
    """Return the table after statements."""
    for statement in statements:
        schema = evolve(schema, statement, source=source).schema
    return schema


def fields(schema):
    """Return the fields of the columns with their aliases, retired ones too."""
    return {one["name"]: one.get("aliases", []) for one in schema.record["fields"] if "cdc" in one}


def old_row(schema, reader, row=None):
    """Return what a row that an older version wrote shows in a newer one."""
    return read_row(write(schema, row or {"id": 1}), schema, reader)


# ADD


@pytest.mark.parametrize(
    ("declared", "shown"),
    [
        ("INT NOT NULL DEFAULT 5", 5),
        ("INT NOT NULL DEFAULT '5'", 5),
        ("TINYINT(1) NOT NULL DEFAULT TRUE", 1),
        ("BOOL NOT NULL DEFAULT FALSE", 0),
        ("BIGINT DEFAULT -9223372036854775808", -(2**63)),
        ("BIGINT UNSIGNED DEFAULT 18446744073709551615", Decimal(2**64 - 1)),
        ("FLOAT DEFAULT 0.5", 0.5),
        ("DOUBLE DEFAULT 1e300", 1e300),
        (
            "DECIMAL(38,10) DEFAULT '-1234567890123456789012345678.0123456789'",
            Decimal("-1234567890123456789012345678.0123456789"),
        ),
        ("DECIMAL(10,2) NOT NULL DEFAULT 1.5", Decimal("1.50")),
        ("DECIMAL(10,2) NOT NULL DEFAULT 0", Decimal("0.00")),
        ("DECIMAL(65,30) DEFAULT 1.5", "1.5" + "0" * 29),
        ("VARCHAR(20) DEFAULT 'it''s \"é\" \\\\ 日本'", 'it\'s "é" \\ 日本'),
        ("VARCHAR(20) DEFAULT ''", ""),
        ("ENUM('a','b') DEFAULT 'b'", "b"),
        ("VARBINARY(9) DEFAULT x'00ff80'", b"\x00\xff\x80"),
        ("BINARY(4) DEFAULT 'é'", "é".encode() + b"\0\0"),
        ("BIT(12) DEFAULT b'101'", b"\x00\x05"),
        ("BIT DEFAULT b'1'", b"\x01"),
        ("INT DEFAULT x'0102'", 258),
        ("VARCHAR(9) DEFAULT x'c3a9'", "é"),
        ("DATE DEFAULT '2024-02-29'", dt.date(2024, 2, 29)),
        (
            "DATETIME(6) DEFAULT '2024-01-02 03:04:05.123456'",
            dt.datetime(2024, 1, 2, 3, 4, 5, 123456, tzinfo=dt.UTC).replace(tzinfo=None),
        ),
        ("TIME(3) DEFAULT '13:14:15.678'", dt.time(13, 14, 15, 678000)),
        ("YEAR DEFAULT 2024", 2024),
        ("INT", None),
        ("INT NULL DEFAULT NULL", None),
    ],
)
@pytest.mark.parametrize("part", ["row", "envelope"])
def test_old_rows_have_the_constant_that_a_column_was_added_with(declared, shown, part):
    """Of any type: in the row, and in the row within the envelope."""
    old = table("id|int")
    found = evolve(old if part == "row" else old.envelope, f"ALTER TABLE t ADD c {declared}", source=SOURCE)
    new = after(old, f"ALTER TABLE t ADD c {declared}")
    assert found.verdict.name == "full"
    assert (found.schema.row if part == "row" else found.schema) == (new.row if part == "row" else new.envelope)
    assert old_row(old, new) == {"id": 1, "c": shown}
    assert read_row(write(new, {"id": 1, "c": None}), new) == {"id": 1, "c": None}


@pytest.mark.parametrize("source", [None, "mysql", "mariadb", "ob_mysql", "TiDB"])
@pytest.mark.parametrize(
    ("declared", "shown"),
    [
        *(
            (f"{type} NOT NULL", 0)
            for type in ("INT", "TINYINT(1)", "BIGINT UNSIGNED", "SMALLINT", "INT(10) UNSIGNED ZEROFILL", "YEAR")
        ),
        *((f"{type} NOT NULL", 0.0) for type in ("DOUBLE", "FLOAT", "DOUBLE PRECISION")),
        ("DECIMAL(10,2) NOT NULL", Decimal("0.00")),
        ("DECIMAL(65,30) NOT NULL", "0." + "0" * 30),
        *(
            (f"{type} NOT NULL", "")
            for type in ("VARCHAR(9)", "CHAR(3)", "TEXT", "LONGTEXT", "SET('a','b')", "NVARCHAR(3)")
        ),
        ("ENUM('x','y') NOT NULL", "x"),
        ("ENUM('it''s','y') NOT NULL", "it's"),
        ("VARBINARY(9) NOT NULL", b""),
        ("BLOB NOT NULL", b""),
        ("BINARY(4) NOT NULL", b"\0\0\0\0"),
        ("BIT(12) NOT NULL", b"\0\0"),
        ("TIME NOT NULL", dt.time(0)),
        ("INT NOT NULL DEFAULT 7", 7),
        ("INT NOT NULL COMMENT 'x' AFTER id", 0),
    ],
)
def test_old_rows_have_what_mysql_gives_a_column_that_is_not_null(source, declared, shown):
    """Its rows that stand get the zero of the type, the empty text or the first label; a new row may still have a null."""
    old = table("id|int")
    new = evolve(old, f"ALTER TABLE t ADD c {declared}", source=Source(db_type=source))
    assert old_row(old, new.schema) == {"id": 1, "c": shown}
    assert len(new.steps) == 1
    assert read_row(write(new.schema, {"id": 1, "c": None}), new.schema) == {"id": 1, "c": None}
    said = next(one for one in new.schema.record["fields"] if one["name"] == "c")["cdc"]
    assert ("default" in said) is ("DEFAULT" in declared)


@pytest.mark.parametrize(
    ("declared", "text"),
    [
        ("DATE NOT NULL", "'0000-00-00'"),
        ("DATETIME(3) NOT NULL", "'0000-00-00 00:00:00'"),
        ("TIMESTAMP NOT NULL", "the default of its type"),
        ("JSON NOT NULL", "the default of its type"),
        ("POINT NOT NULL", "the default of its type"),
        ("INT NOT NULL AUTO_INCREMENT UNIQUE", "its source computes it"),
        ("SERIAL", "its source computes it"),
        ("INT AS (id + 1) STORED NOT NULL", "its source computes it"),
    ],
)
def test_what_no_constant_is_in_rows_that_stand_is_said(declared, text):
    """A zero that no date is, and what the source counts or computes."""
    found = evolve(table("id|int"), f"ALTER TABLE t ADD c {declared}")
    assert found.steps[1:] == (f"what 'c' is in older rows is not known: {text}",)
    assert old_row(table("id|int"), found.schema) == {"id": 1, "c": None}


@pytest.mark.parametrize("source", ["oracle", "OB_ORACLE", "postgresql", "db2"])
def test_where_a_column_that_is_not_null_needs_an_empty_table_there_are_no_older_rows(source):
    """The statement is refused for any other."""
    name = "T" if source in ("oracle", "OB_ORACLE", "db2") else "t"
    old = create_table(TableName(None, None, name), [Column(name="ID", type="INT")])
    found = evolve(old, "ALTER TABLE t ADD c INT NOT NULL", source=Source(db_type=source))
    assert [step.partition(": ")[2] for step in found.steps] == ["null in older rows"]
    (serial,) = [
        evolve(old, "ALTER TABLE t ADD c INT GENERATED ALWAYS AS IDENTITY", source=Source(db_type=source)).steps[1:]
    ]
    assert serial == (f"what {'C' if name == 'T' else 'c'!r} is in older rows is not known: its source computes it",)


@pytest.mark.parametrize(
    ("declared", "text"),
    [
        ("VARCHAR(36) DEFAULT (uuid())", "(uuid())"),
        ("DATETIME DEFAULT CURRENT_TIMESTAMP", "CURRENT_TIMESTAMP"),
        ("INT DEFAULT 1.5", "1.5"),
        ("DATE DEFAULT '2024-02-30'", "'2024-02-30'"),
        ("TINYINT UNSIGNED DEFAULT 256", "256"),
        ("VARCHAR(9) DEFAULT x'ff'", "x'ff'"),
        ("BIGINT DEFAULT x'010000000000000000'", "x'010000000000000000'"),
    ],
)
def test_what_older_rows_have_of_a_column_is_said_where_it_is_not_known(declared, text):
    """A default that the source computed, or that its type cannot carry: null, and said."""
    found = evolve(table("id|int"), f"ALTER TABLE t ADD c {declared}")
    assert found.steps == (
        "column 'c' added: null in older rows",
        f"what 'c' is in older rows is not known: {text}",
    )
    assert old_row(table("id|int"), found.schema) == {"id": 1, "c": None}


@pytest.mark.parametrize(
    ("actions", "order"),
    [
        ("ADD x INT", "id a b x"),
        ("ADD x INT FIRST", "x id a b"),
        ("ADD x INT AFTER id", "id x a b"),
        ("ADD x INT AFTER B", "id a b x"),
        ("ADD (x INT, y INT)", "id a b x y"),
        ("ADD x INT FIRST, ADD y INT FIRST", "y x id a b"),
        ("ADD x INT AFTER id, ADD y INT AFTER x", "id x y a b"),
        ("ADD x INT AFTER id, DROP a", "id x b"),
        ("MODIFY b INT FIRST", "b id a"),
        ("MODIFY id INT AFTER a", "a id b"),
        ("RENAME COLUMN a TO c, ADD x INT AFTER c", "id c x b"),
        ("CHANGE b c INT AFTER id", "id c a"),
        ("ADD IF NOT EXISTS A INT, ADD x INT", "id a b x"),
        ("DROP IF EXISTS nothing, DROP a", "id b"),
    ],
)
def test_columns_stand_where_the_statement_puts_them(actions, order):
    """FIRST, AFTER another, several in one statement."""
    made = after(table("id|int", "a|int", "b|int"), f"ALTER TABLE t {actions}")
    assert [one.name for one in made.columns] == order.split()


def test_a_column_stands_behind_one_whose_type_became_another():
    """In front of neither the column nor the field that older rows keep it in."""
    made = after(table("a|int", "b|int"), "ALTER TABLE t MODIFY a date", "ALTER TABLE t ADD x INT AFTER a, ADD y INT")
    assert [one.name for one in made.columns] == ["a", "x", "b", "y"]


# DEFAULT


def test_a_default_that_fastavro_fills_in_otherwise_is_noted():
    """A decimal: each reader reads the older rows, and the note says which one gives another value."""
    made = evolve(table("id|int"), "ALTER TABLE t ADD amount DECIMAL(10,2) NOT NULL DEFAULT 0.50")
    assert made.verdict.name == "full"
    assert [note.reason for note in made.verdict.notes] == [
        "amount is new: fastavro fills in its default as the schema's JSON has it"
    ]


def test_a_default_that_is_set_later_changes_nothing_in_old_rows():
    """It is for rows to come, and so only noted."""
    old = table("id|int")
    added = after(old, "ALTER TABLE t ADD c INT NOT NULL DEFAULT 5")
    found = evolve(added, "ALTER TABLE t ALTER COLUMN c SET DEFAULT 7")
    assert found.steps == ("column 'c' has the default '7'",)
    assert old_row(old, found.schema) == {"id": 1, "c": 5}
    again = after(found.schema, "ALTER TABLE t ALTER c DROP DEFAULT", "ALTER TABLE t MODIFY c INT DEFAULT 9")
    assert old_row(old, again) == {"id": 1, "c": 5}
    assert "default" in again.record["fields"][1]["cdc"]
    assert evolve(again, "ALTER TABLE t ALTER c SET DEFAULT 9").steps == ()


def test_a_column_that_is_modified_has_the_default_of_its_new_definition():
    """In MySQL, which replaces all of it; elsewhere what is not stated stays."""
    schema = after(table("id|int"), "ALTER TABLE t ADD c INT DEFAULT 5")
    assert evolve(schema, "ALTER TABLE t MODIFY c INT").steps == ("column 'c' has no default",)
    assert evolve(schema, "ALTER TABLE t ALTER COLUMN c TYPE integer", source=POSTGRES).steps == ()


def test_bool_is_what_each_database_makes_of_it():
    """MySQL's is a TINYINT(1), and changes of rows state it so."""
    for source, avro, type in [(SOURCE, "int", "tinyint(1)"), (POSTGRES, "boolean", "BOOL")]:
        column = after(table("id|int"), "ALTER TABLE t ADD b BOOL", source=source).columns[1]
        assert (column.avro, column.type) == (avro, type)


# RENAME


@pytest.mark.parametrize(
    ("statements", "expected"),
    [
        (["RENAME COLUMN a TO c"], {"c": ["a"], "b": []}),
        (["RENAME COLUMN a TO c", "ADD a INT"], {"c": ["a"], "b": [], "a_x_2": []}),
        (["RENAME COLUMN a TO c", "ADD a INT", "RENAME COLUMN c TO d"], {"d": ["a", "c"], "b": [], "a_x_2": []}),
        (["RENAME COLUMN a TO c", "RENAME COLUMN c TO a"], {"a": ["c"], "b": []}),
        (["RENAME COLUMN a TO b, RENAME COLUMN b TO a"], {"b_x_2": ["a"], "a_x_2": ["b"]}),
        (["CHANGE a b INT, CHANGE b a INT"], {"b_x_2": ["a"], "a_x_2": ["b"]}),
        (
            ["RENAME COLUMN a TO x", "RENAME COLUMN b TO a", "RENAME COLUMN x TO b"],
            {"b_x_2": ["a", "x"], "a_x_2": ["b"]},
        ),
        (["RENAME COLUMN a TO b, RENAME COLUMN b TO c"], {"b_x_2": ["a"], "c": ["b"]}),
        (["RENAME COLUMN b TO c, RENAME COLUMN a TO b"], {"b_x_2": ["a"], "c": ["b"]}),
        (["RENAME COLUMN a TO A"], {"A": ["a"], "b": []}),
        (["CHANGE COLUMN A c INT"], {"c": ["a"], "b": []}),
        (["DROP a", "ADD a INT"], {"b": [], "a_x_2": []}),
        (["DROP a, ADD a INT FIRST"], {"a_x_2": [], "b": []}),
        (["ADD a INT FIRST, DROP a"], {"a_x_2": [], "b": []}),
        (["DROP a", "RENAME COLUMN b TO a"], {"a_x_2": ["b"]}),
        (["DROP a, RENAME COLUMN b TO a"], {"a_x_2": ["b"]}),
        (["RENAME COLUMN a TO c", "DROP c", "ADD a INT", "ADD c INT"], {"b": [], "a_x_2": [], "c_x_2": []}),
        (["DROP a", "ADD A INT"], {"b": [], "_x41_": []}),
    ],
)
def test_names_and_aliases_of_fields_belong_to_one_column_forever(statements, expected):
    """A rename is an alias that stays; what a column was called once is no other's."""
    schemas = [table("a|int", "b|int")]
    for statement in statements:
        schemas.append(after(schemas[-1], f"ALTER TABLE t {statement}"))
    assert fields(schemas[-1]) == expected
    for one in schemas:
        assert evolve(one, "ALTER TABLE other DROP a").steps == ()
        row = {name: i for i, name in enumerate(one_.name for one_ in one.columns)}
        assert set(old_row(one, schemas[-1], row).values()) <= {None, *row.values()}


def test_a_dropped_name_added_again_never_has_the_old_values():
    """With the same type or another, by a statement or by columns."""
    old = table("id|int", "a|int")
    for type in ("INT", "BIGINT", "VARCHAR(5)"):
        new = after(old, "ALTER TABLE t DROP a", f"ALTER TABLE t ADD a {type}")
        assert old_row(old, new, {"id": 1, "a": 2}) == {"id": 1, "a": None}
    dropped = evolve(old, [Column(name="id", type="int")]).schema
    new = evolve(dropped, [Column(name="id", type="int"), Column(name="a", type="int")]).schema
    assert old_row(old, new, {"id": 1, "a": 2}) == {"id": 1, "a": None}


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("RENAME TABLE t TO t2", TableName("shop", None, "t2")),
        ("RENAME TABLE other TO another, t TO t2, another TO t", TableName("shop", None, "t2")),
        ("RENAME TABLE shop.t TO Archive.`t 2`", TableName("Archive", None, "t 2")),
        ("ALTER TABLE t RENAME TO t2", TableName("shop", None, "t2")),
        ("RENAME TABLE t TO x, x TO t2", TableName("shop", None, "t2")),
    ],
)
def test_a_renamed_table_has_its_old_full_names_as_aliases(statement, name):
    """On row, key and envelope; payloads of the old one are read."""
    old = table("id|int", key=("id",))
    new = after(old, statement)
    assert new.table == name
    assert "shop.t.Value" in new.row.root.aliases
    assert "shop.t.Key" in new.key.root.aliases
    assert "shop.t.Envelope" in new.envelope.root.aliases
    assert old_row(old, new) == {"id": 1}
    assert read(b"\x02\x02\x00", old.key, new.key) == {"id": 1, "unparsed": {}}


def test_a_table_renamed_and_back_has_no_alias_that_is_its_name():
    """Aliases accumulate, but for the name that it has."""
    made = after(table("id|int"), "RENAME TABLE t TO a", "RENAME TABLE a TO b", "RENAME TABLE b TO t")
    assert made.record["aliases"] == ["shop.a.Value", "shop.b.Value"]


# Types


@pytest.mark.parametrize(
    ("old", "new", "reads"),
    [
        ("int", "bigint", "column 'a' reads int as long"),
        ("tinyint", "int", "column 'a' is int, and was tinyint: stored the same way"),
        ("int", "float", "column 'a' reads int as float: values beyond 2^24 are rounded"),
        ("bigint", "double", "column 'a' reads long as double: values beyond 2^53 are rounded"),
        ("float", "double", "column 'a' reads float as double"),
        ("text", "blob", "column 'a' reads string as bytes"),
        ("decimal(6,2)", "decimal(10,2)", "column 'a' reads decimal(6,2) as decimal(10,2)"),
        ("enum('a')", "enum('b','a')", "column 'a' is enum('b','a'), and was enum('a'): stored the same way"),
        ("bigint", "int", None),
        ("int", "varchar(5)", None),
        ("decimal(10,2)", "decimal(6,2)", None),
        ("decimal(6,2)", "decimal(10,3)", None),
        ("decimal(6,2)", "blob", None),
        ("date", "datetime", None),
        ("datetime", "timestamp", None),
        ("int", "date", None),
        ("time", "bigint", None),
        ("date", "int", None),
        ("blob", "text", None),
        ("varbinary(9)", "varchar(9)", None),
    ],
)
def test_a_type_reads_as_another_or_a_new_field_begins(old, new, reads):
    """The old field keeps what older rows have, under its own name, and the verdict says so."""
    schema = table(f"a|{old}")
    found = evolve(schema, f"ALTER TABLE t MODIFY a {new}")
    if reads is not None:
        assert found.steps == (reads,)
        assert [one.until for one in found.schema.all_columns] == [None]
        return
    assert [(one.name, one.field, one.until) for one in found.schema.all_columns] == [
        ("a", "a_x_2", None),
        ("a", "a", 1),
    ]
    assert "from version 2 on, in the field a_x_2" in found.steps[0]
    assert "older rows keep it in a" in found.steps[0]
    assert "note, backward, $.a: column 'a' is in a_x_2 from now on" in str(found.verdict)
    assert found.verdict.name == "full"


def test_a_constant_of_older_rows_goes_along_when_the_type_becomes_another():
    """As the new type has it: bytes are the string's UTF-8."""
    old = table("id|int")
    for declared, type, shown in [
        ("TEXT DEFAULT ('é')", "BLOB", "é".encode()),
        ("VARCHAR(9) DEFAULT 'é日'", "VARBINARY(9)", "é日".encode()),
        ("INT DEFAULT 5", "BIGINT", 5),
        ("DECIMAL(6,2) DEFAULT 1.5", "DECIMAL(9,2)", Decimal("1.50")),
    ]:
        new = after(old, f"ALTER TABLE t ADD c {declared}", f"ALTER TABLE t MODIFY c {type}")
        assert old_row(old, new) == {"id": 1, "c": shown}


def test_bytes_that_are_no_text_stay_bytes():
    """Bytes do not read as a string, so a new field begins, which is filled from the older one where they are UTF-8."""
    old = table("id|int")
    for text, raw in (("ff", b"\xff"), ("c3a9", "é".encode())):
        new = after(old, f"ALTER TABLE t ADD c BLOB DEFAULT (x'{text}')", "ALTER TABLE t MODIFY c TEXT")
        assert old_row(old, new) == {"id": 1, "c": None, "c<2": raw}


def test_a_table_converted_to_the_binary_character_set_has_bytes_for_characters():
    """CONVERT TO CHARACTER SET binary makes bytes of all columns of characters, and of no others."""
    columns = {
        "id": "int",
        "a": "varchar(9)",
        "b": "longtext",
        "e": "enum('x','y')",
        "j": "json",
        "l": "LONG",
        "n": "nchar(2)",
        "g": "text",
        "v": "blob",
    }
    schema = table(*(f"{name}|{type}" for name, type in columns.items()))
    made = evolve(schema, "ALTER TABLE t CONVERT TO CHARACTER SET binary, DROP g, ADD k TEXT", source=SOURCE)
    types = {column.name: (column.type, column.avro) for column in made.schema.columns}
    before = {column.name: (column.type, column.avro) for column in schema.columns}
    assert types == {name: one for name, one in before.items() if name != "g"} | {
        "a": ("varbinary(9)", "bytes"),
        "b": ("longblob", "bytes"),
        "n": ("binary(2)", "bytes"),
        "k": ("blob", "bytes"),
    }
    assert "column 'a' reads string as bytes" in made.steps
    assert evolve(made.schema, "ALTER TABLE t CONVERT TO CHARACTER SET binary", source=SOURCE).steps == ()


def test_a_column_takes_the_fields_of_its_older_types_along():
    """Renamed, they are that column's; dropped, they are gone, and their names with them."""
    schemas = [table("id|int", "a|int")]
    for statement in ("MODIFY a date", "MODIFY a time", "RENAME COLUMN a TO b", "ADD a INT"):
        schemas.append(after(schemas[-1], f"ALTER TABLE t {statement}"))
    shown = {"id": 1, "b": None, "b<1": 7, "b<2": None, "a": None}
    assert old_row(schemas[0], schemas[-1], {"id": 1, "a": 7}) == shown
    dropped = after(schemas[-1], "ALTER TABLE t DROP b")
    assert [one.name for one in dropped.all_columns] == ["id", "a"]
    assert dropped.record["cdc"]["gone"] == ["a", "a_x_2", "a_x_3", "b"]


# Schemas of others

USER = {
    "type": "record",
    "name": "orders",
    "namespace": "com.acme.shop",
    "doc": "theirs",
    "aliases": ["bestellungen"],
    "owner": "team",
    "fields": [
        {"name": "id", "type": "int", "order": "descending", "doc": "number"},
        {"name": "hash", "type": {"type": "fixed", "name": "MD5", "size": 4}, "own": {"a": [1]}},
        {"name": "state", "type": [{"type": "enum", "name": "State", "symbols": ["A", "B"]}, "null"], "default": "A"},
        {"name": "last", "type": ["null", "State", "string"], "default": None, "order": "ignore"},
        {"name": "sum", "type": ["null", "MD5"], "default": None},
        {"name": "unparsed", "type": "boolean", "default": False},
    ],
}


def user(*statements, schema=USER):
    """Return a schema of others after statements."""
    made = parse_schema(json.dumps(schema))
    for statement in statements:
        made = evolve(made, statement).schema
    return json.loads(made.json)


def test_what_others_say_of_their_schema_survives():
    """Documentation, order, fixed, enums, named types used twice, attributes, aliases."""
    made = user("ALTER TABLE orders RENAME COLUMN id TO number, ADD qty INT NOT NULL DEFAULT 3 AFTER number")
    assert {key: made[key] for key in USER if key != "fields"} == {key: USER[key] for key in USER if key != "fields"}
    assert made["fields"][0] == USER["fields"][0] | {"name": "number", "aliases": ["id"], "cdc": {"column": "number"}}
    assert made["fields"][2:] == USER["fields"][1:]
    assert made["fields"][1]["default"] == 3


def test_a_schema_of_others_evolves_again_and_again():
    """Its versions count from 1; what one evolution added is written when the next comes."""
    added = parse_schema(json.dumps(user("ALTER TABLE orders ADD qty INT NOT NULL DEFAULT 3")))
    found = evolve(added, "ALTER TABLE orders MODIFY qty VARCHAR(5)")
    fields = {one["name"]: one for one in json.loads(found.schema.json)["fields"]}
    assert fields["qty"]["type"] == ["int", "null"]
    assert fields["qty"]["cdc"]["until"] == 2
    assert fields["qty_x_2"]["type"] == ["null", "string"]
    assert found.verdict.backward


def test_a_field_of_others_ends_so_that_new_rows_need_not_have_it():
    """Nullable, whatever it was, with its default first."""
    made = user("ALTER TABLE orders MODIFY id DATE, MODIFY last DATE, MODIFY state DATE, MODIFY unparsed DATE")
    ended = {one["name"]: (one["type"], one["default"]) for one in made["fields"] if "until" in one.get("cdc", {})}
    assert ended == {
        "id": (["null", "int"], None),
        "last": (["null", "State", "string"], None),
        "state": ([{"type": "enum", "name": "State", "symbols": ["A", "B"]}, "null"], "A"),
        "unparsed": (["boolean", "null"], False),
    }


@pytest.mark.parametrize(
    ("statement", "namespace", "name"),
    [
        ("RENAME TABLE orders TO o2", "com.acme.shop", "o2"),
        ("RENAME TABLE orders TO other.o2", "com.acme.other", "o2"),
        ("ALTER TABLE shop.orders DROP id, RENAME TO o2", "com.acme.shop", "o2"),
    ],
)
def test_a_record_of_others_is_renamed_where_it_is(statement, namespace, name):
    """Its types keep their full names, and it has its own as aliases."""
    old = parse_schema(json.dumps(USER))
    found = evolve(old, statement)
    made = json.loads(found.schema.json)
    assert (made["namespace"], made["name"]) == (namespace, name)
    assert made["aliases"] == ["com.acme.shop.bestellungen", "com.acme.shop.orders"]
    assert found.verdict.backward
    again = json.loads(evolve(found.schema, f"RENAME TABLE {name} TO o3").schema.json)
    assert again["aliases"] == ["com.acme.shop.bestellungen", "com.acme.shop.orders", f"{namespace}.o2"]
    assert again["name"] == "o3"


def test_the_type_that_a_dropped_field_defined_is_defined_where_it_is_used_next():
    """The schema that results parses, and reads the old rows."""
    found = evolve(parse_schema(json.dumps(USER)), "ALTER TABLE orders DROP hash, DROP state")
    assert found.verdict.backward
    fields = {one["name"]: one["type"] for one in json.loads(found.schema.json)["fields"]}
    assert fields["sum"][1]["size"] == 4
    assert fields["last"][1]["symbols"] == ["A", "B"]


# What changes nothing, and what cannot be


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE other ADD x INT",
        "ALTER TABLE elsewhere.t ADD x INT",
        "RENAME TABLE other TO t2",
        "CREATE TABLE t2 (id INT)",
        "DROP TABLE t2",
        "TRUNCATE TABLE t",
        "CREATE INDEX i ON t (id)",
        "ALTER TABLE t ADD INDEX (id), COMMENT = 'x'",
        "ALTER TABLE t ENGINE=InnoDB",
        "ALTER TABLE t MODIFY id INTEGER",
        "ALTER TABLE t MODIFY id int(11)",
        "ALTER TABLE t CHANGE id id INT NOT NULL",
        "INSERT INTO t VALUES (1)",
        "",
    ],
)
def test_what_does_not_change_the_columns_gives_the_same_schema(statement):
    """The very object, and nothing is said."""
    schema = table("id|int")
    for one in (schema, schema.row, schema.envelope):
        found = evolve(one, statement, source=SOURCE)
        assert found.schema is one
        assert (found.steps, found.verdict.name) == ((), "full")


def test_the_code_of_a_type_is_no_matter_to_a_statement():
    """It states none."""
    schema = evolve(table("a|int"), [Column(name="a", type="bigint", code=-5)]).schema
    assert evolve(schema, "ALTER TABLE t MODIFY a BIGINT(20)").schema is schema


@pytest.mark.parametrize(
    ("statement", "sentence"),
    [
        ("ADD A INT", "schema t: there is a column 'A' already"),
        ("DROP nothing", "schema t: there is no column 'nothing'"),
        ("RENAME COLUMN nothing TO x", "schema t: there is no column 'nothing'"),
        ("RENAME COLUMN a TO B", "schema t: there is a column 'B' already"),
        ("RENAME COLUMN a TO x, RENAME COLUMN b TO X", "schema t: there is a column 'X' already"),
        ("MODIFY nothing INT", "schema t: there is no column 'nothing'"),
        ("ADD x INT AFTER nothing", "schema t: there is no column 'nothing'"),
        ("MODIFY a INT AFTER A", "schema t: column 'a' cannot be moved after itself"),
        ("ADD PRIMARY KEY (nothing)", "schema t: there is no column 'nothing'"),
        ("ALTER nothing SET DEFAULT 1", "schema t: there is no column 'nothing'"),
    ],
)
def test_what_the_table_contradicts_is_refused(statement, sentence):
    """With the column."""
    with pytest.raises(SchemaError) as caught:
        evolve(table("a|int", "b|int"), f"ALTER TABLE t {statement}")
    assert str(caught.value) == sentence


def test_a_statement_that_does_not_parse_is_refused():
    """With the place."""
    with pytest.raises(DdlError, match="MySQL DDL: line 1, column 19: "):
        evolve(table("a|int"), "ALTER TABLE t ADD ,")


def test_a_key_is_set_dropped_and_renamed():
    """By statements, in the table's spelling of its columns."""
    schema = table("a|int", "b|int", key=("a",))
    assert after(schema, "ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (B, A)").key_names == ("b", "a")
    assert after(schema, "ALTER TABLE t RENAME COLUMN a TO c").key_names == ("c",)
    assert after(schema, "ALTER TABLE t RENAME COLUMN a TO b, RENAME COLUMN b TO a").key_names == ("b",)
    assert after(schema, "ALTER TABLE t DROP PRIMARY KEY").key is None
    assert after(table("a|int"), "ALTER TABLE t ADD k INT PRIMARY KEY FIRST").key_names == ("k",)


@pytest.mark.parametrize(
    ("statement", "source", "names"),
    [
        ("ALTER TABLE T ADD (X NUMBER(10), Y VARCHAR2(5)) DROP COLUMN A", ORACLE, ["ID", "a", "X", "Y"]),
        ("ALTER TABLE S.T MODIFY (ID NUMBER(20), A DATE)", ORACLE, ["ID", "A", "a"]),
        ('ALTER TABLE T RENAME COLUMN "a" TO B', ORACLE, ["ID", "A", "B"]),
        ('ALTER TABLE T ADD "id" NUMBER(3)', ORACLE, ["ID", "A", "a", "id"]),
        (
            'ALTER TABLE "T" ADD COLUMN x integer DEFAULT 3, ALTER COLUMN "A" TYPE bigint',
            POSTGRES,
            ["ID", "A", "a", "x"],
        ),
        ('ALTER TABLE public."T" RENAME a TO b', POSTGRES, ["ID", "A", "b"]),
    ],
)
def test_other_databases_spell_statements_and_names_in_their_way(statement, source, names):
    """Without quotes a name is folded; columns that differ in capitals are two."""
    schema = table("ID|int", "A|int", "a|int", name="T")
    assert [one.name for one in after(schema, statement, source=source).columns] == names


def test_types_that_are_given_stay_given_whatever_becomes_of_names():
    """By the user, for the column of a table: that column, through renames of it and of the table."""
    given = TypeOverrides.from_mapping({"shop.t": {"a": "decimal(9,3)"}})
    schema = table("id|int")
    for statement in ("ADD a TEXT", "RENAME COLUMN a TO b", "RENAME TO t2", "MODIFY b BLOB"):
        schema = evolve(schema, f"ALTER TABLE {schema.table.table} {statement}", source=SOURCE, given=given).schema
    assert (schema.columns[1].name, schema.columns[1].given) == ("b", "decimal(9,3)")
    assert schema.columns[1].avro["scale"] == 3


# By a list of columns


def test_steps_show_names_of_any_script_as_they_are():
    """Only what is hidden in a name is escaped."""
    old = table("编号|int", "b|int", name="订单")
    assert sentence(old.table, old.columns) == "table '订单' with 2 columns"
    statement = "ALTER TABLE 订单 ADD 金额 INT, DROP COLUMN 编号, RENAME COLUMN b TO `c\u3164`"
    assert evolve(old, statement, source=SOURCE).steps == (
        "column '编号' dropped",
        "column 'b' renamed to 'c\\u3164'",
        "column '金额' added: null in older rows",
    )


@pytest.mark.parametrize(
    ("columns", "steps"),
    [
        ("id|int a|int", ()),
        ("id|INTEGER a|int(11)", ()),
        ("a|int id|int", ("the order of the columns has changed",)),
        ("id|int b|int", ("column 'a' dropped", "column 'b' added: null in older rows")),
        ("id|bigint a|int", ("column 'id' reads int as long",)),
        ("x|int id|int a|int", ("column 'x' added: null in older rows",)),
        ("id|int a|int A|int", ("column 'A' added: null in older rows",)),
        ("id|int A|int", ("column 'a' dropped", "column 'A' added: null in older rows")),
    ],
)
def test_a_list_of_columns_tells_no_rename(columns, steps):
    """What is not there is dropped, what is new is added, and the rest has its type and place."""
    schema = table("id|int", "a|int")
    listed = [Column(name=one.split("|")[0], type=one.split("|")[1]) for one in columns.split()]
    found = evolve(schema, listed)
    assert found.steps == steps
    assert (found.schema is schema) == (steps == ())
    assert [one.name for one in found.schema.columns] == [one.name for one in listed]


def test_a_version_that_nothing_was_written_in_takes_the_columns_as_they_are_stated():
    """Without a new version; a constant that older rows have is read again as the new type."""
    added = after(table("id|int"), "ALTER TABLE t ADD c INT DEFAULT 5, ADD d VARCHAR(5) DEFAULT '1.5'")
    listed = [Column(name=name, type=type) for name, type in (("id", "int"), ("c", "decimal(6,2)"), ("d", "double"))]
    made, _ = by_columns(added, listed, SOURCE, is_new=False)
    assert made.version == 2
    assert [one.until for one in made.all_columns] == [None] * 3
    assert old_row(table("id|int"), made) == {"id": 1, "c": Decimal("5.00"), "d": 1.5}
    lost, steps = by_columns(added, [*listed[:2], Column(name="d", type="date")], SOURCE, is_new=False)
    assert old_row(table("id|int"), lost)["d"] is None
    assert steps[-1] == "column 'd' is date; what it is in older rows is not known"


@pytest.mark.slow
def test_thousands_of_columns_evolve_in_steps_that_grow_with_them():
    """One new, one gone, one moved: the others are not gone through again for each."""

    def work(count):
        listed = [Column(name=f"c{i}", type="int") for i in range(count)]
        schema = evolve(table("id|int"), listed).schema
        found = evolve(schema, [listed[-1], *listed[1:-1], Column(name="new", type="int")])
        assert found.steps == (
            "column 'c0' dropped",
            "column 'new' added: null in older rows",
            "the order of the columns has changed",
        )
        return schema

    assert calls(lambda: work(1_000)) < 2.5 * calls(lambda: work(500))
    schema = work(2_000)
    with pytest.raises(SchemaError, match="more than 4096 columns, or 20000 names that there ever were"):
        evolve(schema, "ALTER TABLE t ADD (" + ", ".join(f"d{i} INT" for i in range(2_097)) + ")")


@pytest.mark.parametrize(
    "statement", ["ALTER TABLE t ADD `{}` INT", "RENAME TABLE t TO `{}`", "ALTER TABLE t RENAME COLUMN a TO `{}`"]
)
def test_names_that_are_too_long_are_refused(statement):
    """Those of columns, and those of tables."""
    with pytest.raises(CdcAvroError, match="expected a name of at most 255 characters"):
        evolve(table("a|int"), statement.format("x" * 256))


@pytest.mark.parametrize(
    ("actions", "avro", "older", "newer"),
    [
        ("ALTER c TYPE bigint", "long", 5, "5"),
        ("ALTER c TYPE date, ALTER c TYPE bigint", "long", 5, "5"),
        ("ALTER c TYPE date, ALTER c TYPE varchar(9)", "string", "5", "5"),
        ("ALTER c TYPE date", {"type": "int", "logicalType": "date"}, None, "5"),
        ("ALTER c SET DEFAULT 7, ALTER c TYPE bigint", "long", 5, "7"),
        ("ALTER c DROP DEFAULT, ALTER c TYPE bigint", "long", 5, None),
        ("ALTER c TYPE date, ALTER c SET DEFAULT 7, ALTER c TYPE bigint", "long", 5, "7"),
    ],
)
def test_what_older_rows_have_survives_two_changes_in_the_version_that_adds_the_column(actions, avro, older, newer):
    """A type in between that cannot hold it, and another default for new rows."""
    source = Source(db_type="postgresql")
    schema = evolve(table("id|int"), f"ALTER TABLE t ADD c int DEFAULT 5, {actions}", source=source).schema
    field = next(field for field in schema.record["fields"] if field["name"] == "c")
    null, typed = ("null", avro) if older is None else (avro, "null")
    assert (field["type"], field["default"], field["cdc"].get("default")) == ([null, typed], older, newer)

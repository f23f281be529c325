"""The schemas of a table: its row, its key, and the envelope in Debezium's layout; and those that others made."""

from __future__ import annotations

import json
import pickle

import pytest

import cdcavro
from cdcavro.avro.schema import parse_schema
from cdcavro.change.model import Column, Source
from cdcavro.errors import SchemaError, StructureError
from cdcavro.table.columns.column_type import TypeOverrides
from cdcavro.table.ddl.steps import TableName
from cdcavro.table.evolution.evolve import create_table, evolve
from cdcavro.table.table_schema import TableColumn, TableSchema, from_schema
from support.messages import canal
from support.typed import table

DEBEZIUM = {
    "type": "record",
    "name": "Envelope",
    "namespace": "srv.shop.orders",
    "doc": "as Debezium sends it",
    "connect.version": 2,
    "fields": [
        {
            "name": "before",
            "type": [
                "null",
                {
                    "type": "record",
                    "name": "Value",
                    "fields": [
                        {"name": "id", "type": "int"},
                        {
                            "name": "note",
                            "type": ["null", {"type": "string", "avro.java.string": "String"}],
                            "default": None,
                        },
                    ],
                    "connect.name": "srv.shop.orders.Value",
                },
            ],
            "default": None,
        },
        {"name": "after", "type": ["null", "Value"], "default": None},
        {
            "name": "source",
            "type": {
                "type": "record",
                "name": "Source",
                "namespace": "io.debezium.connector.mysql",
                "fields": [{"name": "db", "type": "string"}],
            },
        },
        {"name": "op", "type": "string"},
        {"name": "again", "type": {"type": "array", "items": "io.debezium.connector.mysql.Source"}, "default": []},
    ],
}


def test_a_table_has_a_row_a_key_and_an_envelope():
    """A nullable field for each column, and the two behind them; the key's columns in the key's order."""
    schema = table("id|int", "at|datetime(3)", "tenant|varchar(5)", key=("tenant", "id"))
    assert schema.full_name == "shop.t"
    assert [one["name"] for one in schema.record["fields"]] == ["id", "at", "tenant", "unparsed", "absent"]
    assert schema.record["fields"][1] == {
        "name": "at",
        "type": ["null", {"type": "long", "logicalType": "local-timestamp-micros"}],
        "default": None,
        "cdc": {"column": "at", "type": "datetime(3)"},
    }
    assert schema.record["cdc"] == {"table": {"database": "shop", "table": "t"}, "version": 1, "key": ["tenant", "id"]}
    assert [one.name for one in schema.key.root.fields] == ["tenant", "id", "unparsed"]
    names = [one.root.name for one in (schema.row, schema.key, schema.envelope)]
    assert names == ["shop.t.Value", "shop.t.Key", "shop.t.Envelope"]


def test_versions_with_the_same_key_have_the_same_schema_of_it():
    """A topic is compacted by the bytes of its keys, which begin with the id of their schema."""
    tables = cdcavro.Tables()
    types = ({"id": "int"}, {"id": "int", "a": "text"}, {"id": "bigint", "a": "text"})
    for i, one in enumerate(types):
        message = canal("INSERT", [dict.fromkeys(one, "1")], id=i, mysqlType=one)
        for change in cdcavro.to_changes(message, "canal"):
            (made,) = tables.add(change)
    keys = [version.key.json for version in made.table.versions]
    assert (len(keys), keys[0] == keys[1], keys[1] == keys[2]) == (3, True, False)


STATEMENTS_BESIDE_THE_KEY = (
    "ALTER TABLE t MODIFY code VARCHAR(40) NOT NULL DEFAULT 'x' COMMENT 'longer'",
    "ALTER TABLE t MODIFY code TEXT",
    "ALTER TABLE t MODIFY id INT NOT NULL DEFAULT 7",
    "ALTER TABLE t MODIFY n INT DEFAULT 8",
    "ALTER TABLE t MODIFY id MEDIUMINT",
    "ALTER TABLE t ADD other INT FIRST, DROP COLUMN note",
)


@pytest.mark.parametrize("statement", STATEMENTS_BESIDE_THE_KEY)
def test_statements_that_leave_the_types_of_a_key_leave_its_schema(statement):
    """Whatever is declared of its columns: only names and types of Avro count, and true names, which a reader wants."""
    schema = evolve(
        table("id|int", "co de|varchar(5)", "note|text", key=("id", "co de")),
        "ALTER TABLE t ADD n INT NOT NULL DEFAULT 3, DROP PRIMARY KEY, ADD PRIMARY KEY (id, `co de`, n)",
    ).schema
    changed = evolve(schema, statement.replace("code", "`co de`")).schema
    assert (changed.key_names, changed.row == schema.row) == (("id", "co de", "n"), False)
    assert changed.key == schema.key
    assert [one["cdc"] for one in json.loads(schema.key.json)["fields"][:3]] == [
        {"column": name} for name in schema.key_names
    ]


def test_a_key_has_the_name_of_its_table_or_one_that_it_is_given():
    """A topic keeps its name when its table is renamed, and so does the schema of its keys."""
    first = table("id|int", key=("id",))
    then = evolve(first, "RENAME TABLE t TO u.v").schema
    assert (then.key.root.name, then.key_named(first.table)) == ("u.v.Key", first.key)
    assert table("id|int").key_named(first.table) is None


def test_the_envelope_has_the_layout_of_debezium():
    """What reads Debezium's Avro finds its members, by name and type."""
    fields = {one["name"]: one for one in json.loads(table("id|int").envelope.json)["fields"]}
    assert list(fields) == ["before", "after", "source", "op", "ts_ms", "ts_us"]
    assert fields["before"]["type"][1]["name"] == "Value"
    assert fields["after"]["type"] == ["null", "shop.t.Value"]
    assert fields["op"]["type"] == "string"
    assert fields["ts_ms"]["type"] == ["null", "long"]
    source = {one["name"]: one["type"] for one in fields["source"]["type"]["fields"]}
    said = {"connector": "string", "ts_ms": "long", "snapshot": "string", "db": "string"}
    assert {name: source[name][1] for name in said} == said


@pytest.mark.parametrize("key", [(), ("nothing",), ("id", "nothing")])
def test_there_is_no_key_of_columns_that_there_are_not(key):
    """A part of a key would make one row of several."""
    schema = table("id|int", key=key)
    assert (schema.key_names, schema.key) == ((), None)


def test_a_key_loses_a_column_that_is_dropped_as_the_database_has_it():
    """MySQL's key is of the rest; elsewhere there is none any more."""
    schema = table("a|int", "b|int", key=("a", "b"))
    assert evolve(schema, "ALTER TABLE t DROP COLUMN A").schema.key_names == ("b",)
    postgres = Source(db_type="postgresql")
    assert evolve(schema, "ALTER TABLE t DROP COLUMN a", source=postgres).schema.key_names == ()
    assert evolve(schema, [Column(name="b", type="int")]).schema.key_names == ()


def test_columns_say_what_was_declared_and_given():
    """Their type as spelled, its code, what a user should know, and the type that the user gave."""
    columns = [Column(name="A", type="BIGINT", code=-5), Column(name="b", type="wat"), Column(name="c")]
    given = TypeOverrides.from_mapping({"shop.t": {"c": "decimal(5,1)"}})
    schema = create_table(TableName("shop", None, "t"), columns, ("A",), Source(), given)
    assert schema.columns == (
        TableColumn("A", "A", "long", "BIGINT", -5),
        TableColumn("b", "b", "string", "wat", note="unknown type 'wat': a string"),
        TableColumn(
            "c",
            "c",
            {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 1},
            note=schema.columns[2].note,
            given="decimal(5,1)",
        ),
    )


def test_a_column_that_ended_is_among_all_columns_only():
    """With the last version that wrote it."""
    schema = evolve(table("a|int", "b|int"), "ALTER TABLE t MODIFY a date").schema
    assert [(one.name, one.field, one.until) for one in schema.columns] == [("a", "a_x_2", None), ("b", "b", None)]
    assert [(one.name, one.field, one.until) for one in schema.all_columns] == [
        ("a", "a_x_2", None),
        ("a", "a", 1),
        ("b", "b", None),
    ]


def test_a_schema_travels():
    """To Spark's workers, with what was worked out of it."""
    schema = table("id|int", key=("id",))
    assert schema.columns
    assert pickle.loads(pickle.dumps(schema)) == schema


def test_printed_schemas_are_the_table_again():
    """The row's, and the envelope's."""
    schema = evolve(table("id|int", "we ird|int", key=("id",)), "RENAME TABLE t TO t2").schema
    assert from_schema(schema.row) == schema
    assert from_schema(schema.envelope).record == schema.record
    assert from_schema(schema.envelope).envelope == schema.envelope


@pytest.mark.parametrize(
    ("name", "namespace", "expected"),
    [
        ("orders", None, TableName(None, None, "orders")),
        ("orders", "shop", TableName("shop", None, "orders")),
        ("orders", "com.acme.shop", TableName("shop", None, "orders")),
        ("a.shop.orders", None, TableName("shop", None, "orders")),
        ("Value", "srv.shop.orders", TableName("shop", None, "orders")),
        ("Value", None, TableName(None, None, "Value")),
    ],
)
def test_a_record_of_others_is_the_table_that_its_name_says(name, namespace, expected):
    """A record named Value is the row of the table that its namespace names, as Debezium has it."""
    record = {"type": "record", "name": name, "fields": []} | ({"namespace": namespace} if namespace else {})
    assert from_schema(parse_schema(json.dumps(record))).table == expected


def test_an_envelope_of_debezium_stays_one():
    """Only its row evolves; what is read of a payload elsewhere stays as it was."""
    schema = parse_schema(json.dumps(DEBEZIUM))
    made = evolve(schema, "ALTER TABLE orders ADD qty INT NOT NULL DEFAULT 2, RENAME COLUMN note TO remark")
    declared = json.loads(made.schema.json)
    assert {key: declared[key] for key in ("name", "namespace", "doc", "connect.version")} == {
        key: DEBEZIUM[key] for key in ("name", "namespace", "doc", "connect.version")
    }
    assert [one["name"] for one in declared["fields"]] == [one["name"] for one in DEBEZIUM["fields"]]
    row = declared["fields"][0]["type"][1]
    assert row["connect.name"] == "srv.shop.orders.Value"
    assert [one["name"] for one in row["fields"]] == ["id", "remark", "qty"]
    assert row["fields"][1]["type"] == DEBEZIUM["fields"][0]["type"][1]["fields"][1]["type"]
    assert declared["fields"][2:] == DEBEZIUM["fields"][2:]
    assert made.verdict.name == "full"
    assert made.steps == ("column 'note' renamed to 'remark'", "column 'qty' added: 2 in older rows")


def test_an_envelope_of_debezium_is_renamed_with_its_table():
    """Row and envelope have their old full names as aliases; other types keep theirs."""
    schema = parse_schema(json.dumps(DEBEZIUM))
    for statement in ("RENAME TABLE orders TO o2", "ALTER TABLE o2 RENAME TO other.o3"):
        found = evolve(schema, statement)
        assert found.verdict.backward
        schema = found.schema
    declared = json.loads(schema.json)
    assert (declared["namespace"], declared["aliases"]) == (
        "srv.other.o3",
        ["srv.shop.orders.Envelope", "srv.shop.o2.Envelope"],
    )
    row = declared["fields"][0]["type"][1]
    assert (row["namespace"], row["aliases"]) == ("srv.other.o3", ["srv.shop.orders.Value", "srv.shop.o2.Value"])
    assert schema.root.fields[1].type.branches[1].name == "srv.other.o3.Value"
    assert declared["fields"][2]["type"]["namespace"] == "io.debezium.connector.mysql"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('"string"', "schema $: expected a record, or an envelope whose before is one"),
        (
            '{"type":"record","name":"Envelope","fields":[{"name":"before","type":["null","int"]}]}',
            "schema $.before: expected a record",
        ),
    ],
)
def test_a_schema_of_no_table_is_refused(text, sentence):
    """With what was expected."""
    with pytest.raises(SchemaError) as caught:
        from_schema(parse_schema(text))
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ([Column(name="a"), Column(name="b"), Column(name="a")], "schema columns: 'a' stands there twice"),
        ([Column(name="a"), Column(type="int")], "schema columns: one has no name"),
        ([Column(name=str(i)) for i in range(4_097)], "schema columns: more than 4096"),
        (
            [Column(name="x" * 100_000)],
            f"message: $: expected a name of at most 255 characters, got '{'x' * 80}...' of 100000",
        ),
    ],
)
def test_columns_that_no_table_has_are_refused(columns, sentence):
    """Before anything is made of them."""
    with pytest.raises((SchemaError, StructureError)) as caught:
        create_table(TableName(None, None, "t"), columns)
    assert str(caught.value) == sentence


@pytest.mark.slow
def test_a_table_of_many_columns_costs_what_they_are():
    """2,048 columns whose names differ in capitals only from 2,048 others."""
    listed = [f"{word}{i}" for i in range(2_048) for word in ("c", "C")]
    schema = create_table(TableName(None, None, "t"), [Column(name=one, type="int") for one in listed])
    assert isinstance(schema, TableSchema)
    assert len({one["name"].lower() for one in schema.record["fields"]}) == 4_098


def test_a_schema_is_made_of_one_change():
    """Of the columns and the key that it states; of its rows' names where it states none; not of a heartbeat."""
    text = '{"type":"UPDATE","database":"s","table":"t","pkNames":["id"],"mysqlType":{"id":"int","a":"date"},"data":[{"id":1}]}'
    made = cdcavro.table_schema_of(cdcavro.to_changes(text, "oms_canal")[0])
    assert [(one.name, one.avro) for one in made.columns] == [
        ("id", "int"),
        ("a", {"type": "int", "logicalType": "date"}),
    ]
    assert (made.key_names, made.table.table, made.version) == (("id",), "t", 1)
    (bare,) = cdcavro.to_changes('{"meta":{"op":"ins","table":"s.t"},"data":{"x":1}}', "oms_shareplex")
    assert [(one.name, one.avro) for one in cdcavro.table_schema_of(bare).columns] == [("x", "string")]
    (empty,) = cdcavro.to_changes(
        '{"type":"INSERT","table":"t","pkNames":["x"],"mysqlType":{},"data":[{"x":"1"}]}', "canal"
    )
    assert cdcavro.table_schema_of(empty).key_names == ("x",)
    (mark,) = cdcavro.to_changes('{"recordType":"HEARTBEAT"}', "oms_default")
    with pytest.raises(cdcavro.SchemaError, match="the change is of no table"):
        cdcavro.table_schema_of(mark)

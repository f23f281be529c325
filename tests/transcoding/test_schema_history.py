"""Columns learned from Debezium's schema changes, and row changes turned with them."""

from __future__ import annotations

import json
from collections import Counter
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdcavro.change.connect_values import codec_of
from cdcavro.change.model import DML, Arrival, Change, Column, Source, replace
from cdcavro.change.operations import BINARIES, DECIMALS, TIMES, Modes
from cdcavro.errors import StructureError
from cdcavro.exact.jsontext import render, same
from cdcavro.exact.numbers import ExactNumber
from cdcavro.table.evolution.evolve import NONE_GIVEN
from cdcavro.table.tables import Tables
from cdcavro.transcoding import mapping
from cdcavro.transcoding.mapping import SchemaHistory, from_changes, to_changes, with_columns
from cdcavro.transcoding.transcoder import Transcoder
from support.connect_types import DECLARED, values
from support.messages import SAMPLES, shop_debezium
from support.roundtrip import exact
from support.strategies import strings
from support.typed import read

SHOP = shop_debezium()


def change(message: bytes | str) -> Change:
    """Return the change of a line."""
    (found,) = to_changes(message, "debezium")
    return found


def assert_comes_back(turned: Change, message: bytes | str) -> None:
    """Assert that the line comes back from a change, also through Avro."""
    (back,) = from_changes([Change.from_avro(turned.to_avro())], "debezium")
    assert exact(back) == exact(message)


def statement(ddl: str, *tables: tuple[str, str, dict[str, object] | None], **members: object) -> str:
    """Write a schema change: of each table the kind of change, the name, and the types of its columns."""
    changes = [
        {"type": kind, "id": f'"shop"."{name}"', "table": None if types is None else _table(types)}
        for kind, name, types in tables
    ]
    return json.dumps(
        {"source": {"connector": "mysql", "db": "shop"}, "databaseName": "shop", "ddl": ddl, "tableChanges": changes}
        | members
    )


def _table(types: dict[str, object]) -> dict[str, object]:
    return {
        "primaryKeyColumnNames": [next(iter(types))],
        "columns": [{"name": name, "typeExpression": type} for name, type in types.items()],
    }


def row(table: str, after: dict[str, object], connector: str = "mysql") -> str:
    """Write the value of an insert, alone."""
    source = {"connector": connector, "db": "shop", "table": table}
    return json.dumps({"before": None, "after": after, "source": source, "op": "c", "transaction": None})


def test_every_real_row_change_gets_its_columns_and_comes_back():
    """All 180: each value with a codec is turned or is the same both ways, and no value is kept beside the row."""
    catalog, turned, sent = SchemaHistory(), 0, Counter()
    for message in SHOP:
        before = change(message)
        found = catalog.add(before)
        assert_comes_back(found, message)
        if found.op not in DML:
            assert found == before
            continue
        turned += 1
        assert not any(pointer.startswith(("/key", "/value/before", "/value/after")) for pointer in found.members)
        types = {column.name: column.type for column in found.columns}
        for raw, image in ((before.before, found.before), (before.after, found.after)):
            for name, value in (image or {}).items():
                is_encoded = codec_of(types[name], "mysql") is not None and value is not None
                sent[is_encoded, same(raw[name], value)] += 1
    assert turned == 180
    # Encoded and the same: an ENUM without a comma, a BIT that reads the same from both ends, and a TINYINT.
    assert sent == {(True, False): 609, (True, True): 68, (False, True): sent[False, True]}


def test_a_real_row_of_every_type():
    """What MySQL holds, from what Debezium sent."""
    catalog = SchemaHistory()
    found = next(one for one in map(catalog.add, map(change, SHOP)) if one.op == "INSERT")
    assert render(found.after).decode() == (
        '{"id":1,"t1":127,"t1u":255,"b1":1,"s2":32767,"s2u":65535,"m3":8388607,"m3u":16777215,"i4":2147483646,'
        '"i4u":4294967295,"i8":9223372036854775807,"i8u":18446744073709551615,"zf":42,"f":3.4028E38,'
        '"d":1.7976931348623157E308,"dec65":99999999999999999999999999999999999.999999999999999999999999999999,'
        '"dec10":99999999.99,"dec0":99999999999999999999,"bit1":"AQ==","bit12":"Cqo=","bit64":"//////////8=",'
        '"bin8":"AP8QgH8Bw6k=","vbin":"3q2+7wA=","tb":"AA==","bl":"//4A","lb":"iVBORw0KGgo=","c":"abc",'
        '"v":"emoji 😀 \\"quote\\" \\\\ back\\nline\\ttab \'sq\'","vl":"cafu00e9é","tt":"tiny","tx":"text",'
        '"mt":"medium","lt":"long 🚀","dt":"9999-12-31","dtm":"9999-12-31 23:59:59","dtm3":"2024-02-29 23:59:59.999",'
        '"dtm6":"2024-02-29 23:59:59.999999","ts":"2147483647","ts6":"2147483647.999999","tm":"838:59:59",'
        '"tm6":"23:59:59.999999","yr":2155,"js":"{\\"a\\":[1,null,true],\\"k\\":\\"v\\",\\"n\\":1.0,\\"u\\":\\"😀\\",'
        '\\"big\\":12345678901234567890,\\"nest\\":{\\"d\\":10000000000000000159028911097599180468360808563945281389781'
        '327557747838772170381060813469985856815104}}","en":"b,c","st":"x,z",'
        '"pt":"AQEAAAAAAAAAAAD4PwAAAAAAAALA","gen":2147483647}'
    )


def test_a_later_statement_changes_how_values_are_read():
    """The same bytes with two scales."""
    catalog = SchemaHistory()
    catalog.add(change(statement("CREATE TABLE t", ("CREATE", "t", {"id": "INT", "p": "DECIMAL(9,2)"}))))
    assert catalog.add(change(row("t", {"id": 1, "p": "AkY="}))).after == {"id": 1, "p": 5.82}
    catalog.add(change(statement("ALTER TABLE t", ("ALTER", "t", {"id": "INT", "p": "DECIMAL(9,3)"}))))
    assert catalog.add(change(row("t", {"id": 1, "p": "AkY="}))).after == {"id": 1, "p": 0.582}


@pytest.mark.parametrize("type", ["TIME", "DATETIME", "TIMESTAMP", "BIT"])
@pytest.mark.parametrize("length", [999_999_999, 2_000_000_000])
def test_a_column_of_absurd_length_has_its_values_as_they_were_sent(type, length):
    """A table change may claim what it likes: nothing is filled up to it."""
    made = json.loads(statement("CREATE TABLE t", ("CREATE", "t", {"x": type})))
    made["tableChanges"][0]["table"]["columns"][0]["length"] = length
    catalog = SchemaHistory()
    catalog.add(change(json.dumps(made)))
    for sent in (5, "AQ==", "2024-01-01T00:00:00Z"):
        assert catalog.add(change(row("t", {"x": sent}))).after == {"x": sent}


def test_the_key_of_a_value_alone_is_that_of_its_table():
    """A value alone does not say it; it comes back alone all the same."""
    catalog = SchemaHistory()
    catalog.add(change(statement("CREATE TABLE t", ("CREATE", "t", {"id": "INT"}))))
    message = row("t", {"id": 1})
    found = catalog.add(change(message))
    assert found.key == ("id",)
    assert_comes_back(found, message)


def test_a_dropped_table_is_not_known_any_more():
    """Nor one that was never created; its changes pass as they are. One statement may drop two."""
    catalog = SchemaHistory()
    for name in ("a", "b"):
        catalog.add(change(statement("CREATE TABLE", ("CREATE", name, {"id": "INT"}))))
    assert catalog.columns("shop", "a") == (Column(name="id", type="INT"),)
    catalog.add(change(statement("DROP TABLE a, b", ("DROP", "a", None), ("DROP", "b", None))))
    assert catalog.columns("shop", "a") is catalog.columns("shop", "b") is None
    one = change(row("a", {"id": 1}))
    assert catalog.add(one) == one


def test_a_renamed_table_is_known_by_its_new_name():
    """The table change of a RENAME is that of the new table."""
    catalog = SchemaHistory()
    for message in SHOP:
        catalog.add(change(message))
    assert [column.name for column in catalog.columns("shop", "orders_v3")] == [
        *("first_c", "tenant", "order_id", "amount", "quantity", "created", "status"),
    ]
    assert catalog.columns("shop", "nopk2") is None


_CREATE = statement("CREATE TABLE t (id INT)", ("CREATE", "t", {"id": "INT"}))


@pytest.mark.parametrize(
    "message",
    [
        _CREATE,
        f'{{"key":{{"databaseName":"shop"}},"value":{_CREATE}}}',
        f'{{"schema":null,"payload":{_CREATE}}}',
        f'{{"value":{{"schema":{{}},"payload":{_CREATE}}}}}',
    ],
)
def test_statements_are_learned_from_in_every_shape(message):
    """With and without key and embedded schema."""
    catalog = SchemaHistory()
    catalog.add(change(message))
    assert catalog.columns("shop", "t") == (Column(name="id", type="INT"),)


def test_a_column_called_table_changes_is_a_column():
    """Only the statement's own member is learned from."""
    catalog = SchemaHistory()
    catalog.add(change(row("t", {"tableChanges": '[{"id":"\\"shop\\".\\"t\\"","table":{"columns":[]}}]'})))
    assert catalog.columns("shop", "t") is None


def test_decimals_as_strings_are_numbers_if_that_is_said():
    """1234 may be four digits or the base64 of three bytes: `decimals` says which."""
    message = row("t", {"id": 1, "p": "5.80", "n": "1234", "u": "AQ=="})
    create = statement(
        "CREATE", ("CREATE", "t", {"id": "INT", "p": "DECIMAL(9,2)", "n": "DECIMAL(9)", "u": "BIGINT UNSIGNED"})
    )
    for decimals, after in (
        ("string", {"id": 1, "p": ExactNumber("5.80"), "n": 1234, "u": 1}),
        ("precise", {"id": 1, "p": "5.80", "n": -2658824, "u": 1}),
    ):
        catalog = SchemaHistory(decimals=decimals)
        catalog.add(change(create))
        found = catalog.add(change(message))
        assert found.after == after
        assert_comes_back(found, message)
    with pytest.raises(ValueError, match=r"^decimals are precise or string, not 'double'$"):
        SchemaHistory(decimals="double")


def test_values_of_another_connector_are_not_turned():
    """Oracle's DATE is no MySQL DATE."""
    found = with_columns(change(row("t", {"d": 19782}, "oracle")), [Column(name="d", type="DATE")])
    assert (found.columns, found.after) == ((Column(name="d", type="DATE"),), {"d": 19782})
    assert with_columns(change(row("t", {"d": 19782})), [Column(name="d", type="DATE")]).after == {"d": "2024-02-29"}


def test_a_change_of_another_format_or_with_columns_stays_as_it_is():
    """An embedded schema knows better, and other formats send other values."""
    other = Change(op="INSERT", source=Source(format="canal", database="shop", table="t"), after={"d": 1})
    own = change((SAMPLES / "debezium" / "insert-with-schema.json").read_bytes())
    for one in (other, own):
        assert with_columns(one, [Column(name="d", type="DATE")]) == one
        assert SchemaHistory().add(one) == one


@given(
    columns=st.dictionaries(strings, st.tuples(st.sampled_from(DECLARED), values), max_size=6),
    modes=st.builds(Modes, *map(st.sampled_from, (DECIMALS, TIMES, BINARIES))),
)
def test_every_line_comes_back_from_a_turned_change(columns, modes):
    """Whatever the columns' types and values."""
    source = {"connector": "mysql", "table": "t"}
    message = render({"op": "c", "source": source, "after": {name: sent for name, (_, sent) in columns.items()}})
    types = [Column(name=name, type=type) for name, (type, _) in columns.items()]
    assert_comes_back(with_columns(change(message), types, modes=modes), message)


UNSIGNED = {"id": "INT", "n": "BIGINT(20) UNSIGNED", "m": "BIGINT"}
PLAIN = [{"field": "id", "type": "int32"}, {"field": "n", "type": "int64"}, {"field": "m", "type": "int64"}]
TOLD = [
    PLAIN[0],
    PLAIN[1] | {"parameters": {"__debezium.source.column.type": "BIGINT UNSIGNED"}},
    PLAIN[2] | {"parameters": {"__debezium.source.column.type": "BIGINT"}},
]


def with_schema(message: str, fields: list[dict[str, object]] | None) -> str:
    """Write a value with the embedded schema of the row after the change."""
    if fields is None:
        return message
    schema = {"fields": [{"field": "after", "type": "struct", "fields": fields}]}
    return json.dumps({"schema": schema, "payload": json.loads(message)})


@pytest.mark.parametrize("fields", [None, PLAIN, TOLD])
def test_a_negative_long_is_the_unsigned_number_of_a_column_that_is_known_to_be_unsigned(fields):
    """`bigint.unsigned.handling.mode` is "long" by default: with and without an embedded schema, which may not tell."""
    catalog = SchemaHistory()
    catalog.add(change(statement("CREATE TABLE t", ("CREATE", "t", UNSIGNED))))
    for sent, value in ((-1, ExactNumber(str(2**64 - 1))), (-(2**63), ExactNumber(str(2**63))), (7, 7), (None, None)):
        message = with_schema(row("t", {"id": -1, "n": sent, "m": -1}), fields)
        found = catalog.add(change(message))
        assert found.after == {"id": -1, "n": value, "m": -1}
        assert_comes_back(found, message)


def test_a_long_of_a_column_that_is_not_known_stays_as_it_is():
    """It may be signed."""
    found = SchemaHistory().add(change(with_schema(row("t", {"id": 1, "n": -1, "m": -1}), PLAIN)))
    assert found.after == {"id": 1, "n": -1, "m": -1}


@pytest.mark.slow
@pytest.mark.timeout(20)
def test_a_row_of_very_many_columns_is_turned_in_time_that_grows_with_them():
    """One of them is unsigned."""
    names = [f"c{i}" for i in range(60_000)]
    columns = tuple(Column(name=name, type="int64") for name in names)
    sent = replace(change(row("t", {names[0]: -1, names[-1]: -1})), columns=columns)
    known = [*columns[:-1], Column(name=names[-1], type="BIGINT UNSIGNED")]
    assert with_columns(sent, known).after == {names[0]: -1, names[-1]: ExactNumber(str(2**64 - 1))}


@pytest.mark.parametrize("fields", [None, PLAIN, TOLD])
@pytest.mark.parametrize("changes", [[("CREATE", "t", UNSIGNED)], []])
def test_a_typed_table_holds_the_unsigned_number_in_one_version(fields, changes):
    """Whether the schema change or its statement alone tells the type, and on the way of Spark, too."""
    ddl = "CREATE TABLE t (id INT PRIMARY KEY, n BIGINT UNSIGNED, m BIGINT)"
    create = replace(change(statement(ddl, *changes)), place=Arrival(file="f", line=1))
    message = with_schema(row("t", {"id": 1, "n": -1, "m": -1}), fields)
    inserted = replace(change(message), place=Arrival(file="f", line=2))
    tables = Tables()
    tables.add(create)
    (typed,) = tables.add(inserted)
    (found,) = tables.write(inserted, tables.find(inserted))
    assert found.payload == typed.payload
    after = read(typed.payload, typed.schema.envelope)["after"]
    assert (after["n"], after["m"], after["unparsed"]) == (Decimal(2**64 - 1), -1, {})
    assert typed.schema.version == len(typed.table.versions) == 1


def plain(number: int, **after: int) -> Change:
    """Return a row of integers at a place in the log, with an embedded schema that does not tell what is unsigned."""
    fields = [{"field": name, "type": "int32" if name == "id" else "int64"} for name in after]
    return replace(change(with_schema(row("t", after), fields)), position=(number,))


ONCE_UNSIGNED = [
    ("ALTER TABLE t DROP n", {"id": 1}, {"id": 1}),
    ("ALTER TABLE t RENAME COLUMN n TO k", {"id": 1, "k": -1}, {"id": 1, "k": Decimal(2**64 - 1)}),
    ("ALTER TABLE t MODIFY n BIGINT", {"id": 1, "n": -1}, {"id": 1, "n": -1}),
    ("ALTER TABLE t MODIFY n BIGINT, ADD x BIGINT", {"id": 1, "n": -1, "x": -1}, {"id": 1, "n": -1, "x": -1}),
]


@pytest.mark.parametrize(("ddl", "sent", "wanted"), ONCE_UNSIGNED)
def test_the_version_of_a_rows_time_says_whether_its_integers_are_unsigned(ddl, sent, wanted):
    """In order, learned first and found then, and delivered again when the column is gone, renamed or signed."""
    create = replace(change(statement("CREATE TABLE t (id INT PRIMARY KEY, n BIGINT UNSIGNED)")), position=(1,))
    early, late = plain(2, id=1, n=-1), plain(5, **sent)
    stream = [create, early, replace(change(statement(ddl)), position=(4,)), late]
    tables, learned = Tables(), Tables()
    made = [one for each in [*stream, plain(3, id=1, n=-1), early, late] for one in tables.add(each)]
    for each in stream:
        learned.learn(each)
    found = [one for each in stream for one in learned.write(each, learned.find(each))]
    unsigned = {"id": 1, "n": Decimal(2**64 - 1)}
    for typed, expected in (
        *zip(made, [unsigned, wanted, unsigned, unsigned, wanted], strict=True),
        *zip(found, [unsigned, wanted], strict=True),
    ):
        after = read(typed.payload, typed.schema.envelope)["after"]
        fields = {column.name: column.field for column in typed.schema.columns}
        assert {name: after[fields[name]] for name in expected} == expected
        assert typed.schema.version == (1 if expected is unsigned else 2)


@pytest.mark.parametrize("ddl", [None, *(ddl for ddl, _, _ in ONCE_UNSIGNED)])
def test_a_table_has_the_columns_of_a_row_that_it_took(ddl):
    """Its integers are unsigned in the table, and plain in the row; a column of another name is none of them."""
    tables = Tables()
    for number, each in enumerate(["CREATE TABLE t (id INT PRIMARY KEY, n BIGINT UNSIGNED)", *([ddl] if ddl else [])]):
        tables.add(replace(change(statement(each)), position=(number * 5,)))
    assert tables.tables[0].fits(plain(2, id=1, n=-1), NONE_GIVEN)
    assert not tables.tables[0].fits(plain(2, id=1, other=-1), NONE_GIVEN)


@pytest.mark.parametrize("ddl", [None, "ALTER TABLE t MODIFY n BIGINT UNSIGNED"])
def test_a_row_before_its_column_became_unsigned_has_the_number_that_was_sent(ddl):
    """However late it comes."""
    tables = Tables()
    create = replace(change(statement("CREATE TABLE t (id INT PRIMARY KEY, n BIGINT)")), position=(1,))
    later = [replace(change(statement(ddl)), position=(4,)), plain(5, id=1, n=-1)] if ddl else []
    made = [one for each in [create, plain(2, id=1, n=-1), *later, plain(3, id=1, n=-1)] for one in tables.add(each)]
    unsigned = ExactNumber(str(2**64 - 1))
    assert [one.change.after["n"] for one in made] == ([-1, unsigned, -1] if ddl else [-1, -1])


@pytest.mark.parametrize("fields", [None, PLAIN, TOLD])
@pytest.mark.parametrize("target", ["canal", "oms_canal"])
def test_transcoding_an_unsigned_number_is_no_loss_of_a_value(fields, target):
    """A target that states columns has the number, and on the way back it is only written otherwise."""
    transcoder = Transcoder("debezium", target)
    transcoder.add(statement("CREATE TABLE t", ("CREATE", "t", UNSIGNED)))
    message = with_schema(row("t", {"id": 1, "n": -1, "m": 5}), fields)
    (outcome,) = transcoder.add(message)
    assert b"18446744073709551615" in outcome.transcoded.texts[0]
    (loss,) = [loss for loss in outcome.transcoded.losses if loss.path.endswith(".after.n")]
    assert (loss.value, loss.is_of_a_value) == ("-1", False)


def test_a_history_of_ever_new_tables_has_a_bound(monkeypatch):
    """What is beyond it is refused and changes nothing; tables that are known, dropped or declared again go on."""
    monkeypatch.setattr(mapping, "MAX_TABLES", 3)
    monkeypatch.setattr(mapping, "MAX_COLUMNS", 7)
    catalog = SchemaHistory()

    def learn(name, count, kind="CREATE"):
        types = None if kind == "DROP" else {f"c{i}": "INT" for i in range(count)}
        catalog.add(change(statement("…", (kind, name, types))))

    learn("a", 2)
    learn("b", 2)
    with pytest.raises(StructureError, match="expected at most 7 columns of 3 tables in all schema changes, got more"):
        learn("c", 4)
    learn("c", 3)
    for name in ("d", "a"):
        with pytest.raises(StructureError):
            learn(name, 3)
    assert [len(catalog.columns("shop", name) or ()) for name in "abcd"] == [2, 2, 3, 0]
    learn("a", 1)
    learn("b", 0, "DROP")
    learn("d", 3)
    assert [len(catalog.columns("shop", name) or ()) for name in "abcd"] == [1, 0, 3, 3]


def test_a_schema_change_beyond_the_bound_is_a_reject_and_the_stream_goes_on(monkeypatch):
    """As any other message that cannot be taken."""
    monkeypatch.setattr(mapping, "MAX_COLUMNS", 1)
    transcoder = Transcoder("debezium", "canal")
    with pytest.raises(StructureError):
        transcoder.add(statement("…", ("CREATE", "t", {"a": "INT", "b": "INT"})))
    (outcome,) = transcoder.add(statement("…", ("CREATE", "t", {"a": "INT"})))
    assert outcome.error is None

"""Changes as payloads: what is read back is what was sent, or its text, or an error that names the column."""

from __future__ import annotations

import copy
import datetime as dt
import gc
import json
import time
import weakref
from collections import Counter
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdcavro.change.model import Arrival, Change, Column, Source
from cdcavro.engine.machine import COMPILED
from cdcavro.errors import SchemaError, StructureError
from cdcavro.exact.caching import IdentityCache, WeightedCache, weight_of
from cdcavro.exact.numbers import number
from cdcavro.table.columns.column_type import TypeOverrides
from cdcavro.table.ddl.steps import TableName
from cdcavro.table.evolution.evolve import create_table, evolve
from cdcavro.table.writing.table_writer import TableWriter
from support.typed import SOURCE, read, read_row, table

EVERY = {
    "b": ("bool", True, True),
    "t": ("tinyint(1)", -128, -128),
    "i": ("int unsigned", 2**32 - 1, 2**32 - 1),
    "l": ("bigint", -(2**63), -(2**63)),
    "u": ("bigint unsigned", number(str(2**64 - 1)), Decimal(2**64 - 1)),
    "f": ("float", 0.5, 0.5),
    "d": ("double", number("1e300"), 1e300),
    "n": ("decimal(10,2)", number("1.50"), Decimal("1.50")),
    "long": ("decimal(65,30)", number("0." + "1" * 30), "0." + "1" * 30),
    "s": ("varchar(9)", "é日😀\0", "é日😀\0"),
    "e": ("enum('a','b')", "b", "b"),
    "j": ("json", '{"a": 1.0}', '{"a": 1.0}'),
    "x": ("blob", "AP8=", b"\x00\xff"),
    "bit": ("bit(12)", "AAU=", b"\x00\x05"),
    "day": ("date", "2024-02-29", dt.date(2024, 2, 29)),
    "time": ("time(3)", "13:14:15.678", dt.time(13, 14, 15, 678000)),
    "at": (
        "datetime(6)",
        "2024-01-02 03:04:05.123456",
        dt.datetime(2024, 1, 2, 3, 4, 5, 123456, tzinfo=dt.UTC).replace(tzinfo=None),
    ),
    "ts": ("timestamp", "1704164645.123456", dt.datetime(2024, 1, 2, 3, 4, 5, 123456, tzinfo=dt.UTC)),
}
OMS = Source(format="oms_default_extend_column_type", database="shop", table="t", db_type="OB_MYSQL")
SCHEMA = table("id|int", "a|decimal(4,1)", "at|datetime", key=("id",))


def writer(schema=SCHEMA, *, source=SOURCE, columns=None, **options):
    """Return a writer of a version."""
    return TableWriter(schema, source, columns, **options)


def change(op="INSERT", **images):
    """Return a change of the table."""
    return Change(op=op, source=SOURCE, **images)


def test_every_value_reads_back_as_it_was_sent():
    """Of every type, exactly; no byte is left over."""
    schema = table(*(f"{name}|{type}" for name, (type, _, _) in EVERY.items()))
    payload = writer(schema, source=OMS, columns=()).row({name: sent for name, (_, sent, _) in EVERY.items()})
    assert read_row(payload, schema) == {name: shown for name, (_, _, shown) in EVERY.items()}
    nulls = dict.fromkeys(EVERY)
    assert read_row(writer(schema).row(nulls), schema) == nulls


@pytest.mark.parametrize(
    ("type", "value", "text"),
    [
        ("int", 2**31, "2147483648"),
        ("int", 1.5, "1.5"),
        ("int", "x", "x"),
        ("bigint", number("9" * 5000), "9" * 5000),
        ("decimal(4,1)", number("1.25"), "1.25"),
        ("decimal(4,1)", number("1e9"), "1e9"),
        ("float", number("0.123456789"), "0.123456789"),
        ("double", number("1e400"), "1e400"),
        ("date", "0000-00-00", "0000-00-00"),
        ("datetime", "2024-01-02 03:04:05.123456789", "2024-01-02 03:04:05.123456789"),
        ("time", "838:59:59", "838:59:59"),
        ("blob", "no base64", "no base64"),
        ("enum('a')", "c", "c"),
        ("varchar(5)", True, "true"),
        ("int", {"a": [1, number("1.0")]}, '{"a":[1,1.0]}'),
        ("int", [], "[]"),
        ("bool", 2, "2"),
    ],
)
def test_what_a_type_cannot_carry_is_text_or_an_error(type, value, text):
    """Never null without its text; strictly, an error with the column, the type and the value."""
    schema = table("id|int", f"a/b|{type}")
    counted = Counter()
    payload = writer(schema, count=counted.update).row({"id": 1, "a/b": value})
    made = read(payload, schema.row)
    assert (made["id"], made["a_x2f_b"], made["unparsed"], made["absent"]) == (1, None, {"a/b": text}, [])
    assert counted == {"a/b": 1}
    with pytest.raises(StructureError) as caught:
        writer(schema, is_strict=True).envelope(change(after={"id": 1, "a/b": value}))
    shown = text if len(text) <= 80 else text[:80] + "..."
    kinds = {str: "string", bool: "boolean", dict: "object", list: "array"}
    assert str(caught.value) == (
        f'message: $.after["a/b"]: expected {type}, got {kinds.get(value.__class__, "number")} {shown!r}'
    )


def test_misfits_are_counted_in_rows_that_were_written():
    """Not in keys, which have the same value, and not in those that were refused."""
    counted = Counter()
    write = writer(count=counted.update)
    made = change("UPDATE", before={"id": "x"}, after={"id": "y", "a": 1})
    write.key(made)
    write.envelope(made)
    with pytest.raises(StructureError):
        write.row({"id": "z", "nothing": 1})
    assert counted == {"id": 2}


def test_what_a_message_does_not_have_is_told_from_null():
    """It is among the absent columns."""
    made = read(writer().row({"a": None, "id": 1}), SCHEMA.row)
    assert (made["a"], made["at"], made["absent"], made["unparsed"]) == (None, None, ["at"], {})
    assert read(writer().row({}), SCHEMA.row)["absent"] == ["id", "a", "at"]


@pytest.mark.parametrize("row", [{"id": 1, "b/c": 2}, {"b/c": None}, {"id": 1, "a": 1, "at": None, "b/c": 1}])
def test_a_column_that_the_version_does_not_have_is_an_error(row):
    """With the column and the version; nothing is dropped."""
    with pytest.raises(StructureError) as caught:
        writer().envelope(change("UPDATE", before={"id": 1}, after=row))
    assert str(caught.value) == 'message: $.after["b/c"]: expected a column of t in version 1, got none'


def test_a_field_that_ended_is_null_and_neither_absent_nor_written():
    """Newer rows have the newer field; a row of the same name goes there."""
    schema = evolve(SCHEMA, "ALTER TABLE t MODIFY a date").schema
    payload = writer(schema).row({"id": 1, "a": "2024-01-02"})
    assert read_row(payload, schema) == {"id": 1, "a": dt.date(2024, 1, 2), "a<1": None, "at": None}
    assert read(payload, schema.row)["absent"] == ["at"]


def test_null_is_written_wherever_it_stands_in_the_union():
    """A constant of older rows stands first; in newer ones null is null."""
    schema = evolve(SCHEMA, "ALTER TABLE t ADD c INT NOT NULL DEFAULT 5").schema
    for value in (None, 0, 5, 7):
        assert read_row(writer(schema).row({"id": 1, "c": value}), schema)["c"] == value
    assert read(writer(schema).row({"id": 1}), schema.row)["absent"] == ["a", "at", "c"]


# The key


def test_the_key_is_that_of_the_row_before():
    """Of an insert, that of the row after; in the key's order."""
    schema = table("id|int", "tenant|varchar(5)", "n|int", key=("tenant", "id"))
    one, other = {"id": 1, "tenant": "a", "n": 3}, {"id": 2, "tenant": "b", "n": 4}
    write = writer(schema)
    for made, shown in [
        (change(after=one), (1, "a")),
        (change("DELETE", before=other), (2, "b")),
        (change("UPDATE", before=one, after=other), (1, "a")),
    ]:
        key = read(write.key(made), schema.key)
        assert (list(key), key["id"], key["tenant"]) == (["tenant", "id", "unparsed"], *shown)
    assert write.key(change("TRUNCATE")) is None
    assert writer(table("id|int")).key(change(after={"id": 1})) is None


def test_a_key_without_a_column_is_an_error():
    """With the column."""
    with pytest.raises(StructureError) as caught:
        writer().key(change(after={"a": 1}))
    assert str(caught.value) == "message: $.key: expected the key column 'id', got none"


@pytest.mark.parametrize("changed", [change("UPDATE", after={"a": 1}), change("DELETE", before={"a": 1})])
def test_an_update_without_a_column_of_the_key_is_told_what_to_log(changed):
    """A source that logs a part of a row may leave out the key; a delete is what an update of half the key is, too."""
    with pytest.raises(StructureError) as caught:
        writer().key(changed)
    advice = "binlog_row_image=FULL, REPLICA IDENTITY FULL, LOGALLSUPCOLS and the like"
    assert str(caught.value) == f"message: $.key: expected the key column 'id' ({advice}), got none"


def test_a_misfit_in_a_key_is_text_there_or_an_error():
    """As in the row."""
    made = change(after={"id": "x"})
    assert read(writer().key(made), SCHEMA.key) == {"id": None, "unparsed": {"id": "x"}}
    with pytest.raises(StructureError) as caught:
        writer(is_strict=True).key(made)
    assert str(caught.value) == "message: $.key.id: expected int, got string 'x'"


def test_a_number_that_is_not_finite_is_text_in_a_key_and_a_number_in_its_row():
    """As long as keys are, rows of equal keys are found by equal bytes."""
    schema = table("d|double", "f|float", key=("d", "f"))
    write, row = writer(schema), {"d": "NaN", "f": "-Infinity"}
    assert read(write.key(change(after=row)), schema.key) == {"d": None, "f": None, "unparsed": row}
    found = read_row(write.row(row), schema)
    assert (repr(found["d"]), found["f"]) == ("nan", float("-inf"))


# The envelope


@pytest.mark.parametrize(
    ("op", "letter", "before", "after"),
    [
        ("INSERT", "c", None, {"id": 1}),
        ("UPDATE", "u", {"id": 1}, {"id": 2}),
        ("DELETE", "d", {"id": 1}, None),
        ("SNAPSHOT", "r", None, {"id": 1}),
        ("TRUNCATE", "t", None, None),
    ],
)
def test_operations_have_the_letters_of_debezium(op, letter, before, after):
    """With the images that they have."""
    made = read(writer().envelope(change(op, before=before, after=after)), SCHEMA.envelope)
    assert made["op"] == letter
    assert [image and image["id"] for image in (made["before"], made["after"])] == [
        image and image["id"] for image in (before, after)
    ]
    assert made["source"]["snapshot"] == str(op == "SNAPSHOT").lower()


def test_the_source_says_where_a_change_was_made_and_arrived():
    """All of it, or null for what the message does not say."""
    full = Change(
        op="INSERT",
        source=Source(
            format="canal", db_type="MYSQL", db_version="8", tenant="te", database="shop", schema="s", table="t"
        ),
        after={"id": 1},
        position=(2, 2**62, 0),
        place=Arrival(topic="to", partition=3, offset=4, file="f", line=5),
        row=6,
        event_time=1_700_000_000_123_456,
        system_time=-1,
        transaction="x",
    )
    made = read(writer().envelope(full), SCHEMA.envelope)
    assert made["source"] == {
        "format": "canal",
        "connector": "MYSQL",
        "db_version": "8",
        "snapshot": "false",
        "tenant": "te",
        "db": "shop",
        "schema": "s",
        "table": "t",
        "ts_ms": 1_700_000_000_123,
        "ts_us": 1_700_000_000_123_456,
        "position": [2, 2**62, 0],
        "transaction": "x",
        "topic": "to",
        "partition": 3,
        "offset": 4,
        "message_file": "f",
        "message_line": 5,
        "message_row": 6,
    }
    assert (made["ts_ms"], made["ts_us"]) == (-1, -1)
    bare = read(writer().envelope(Change(op="INSERT", after={})), SCHEMA.envelope)
    assert {name for name, value in bare["source"].items() if value is not None} == {"snapshot", "message_row"}
    assert bare["ts_ms"] is None


# Types


def test_types_of_a_statement_are_in_the_words_of_the_database():
    """OMS's BIGINT may pass 64 bits, that of a statement does not; a change that states no columns has the statement's."""
    schema = table("n|bigint")
    plain = Source(format="oms_default", database="shop", table="t")
    assert read_row(writer(schema, source=plain).row({"n": 2**62}), schema) == {"n": 2**62}
    with pytest.raises(SchemaError) as caught:
        writer(schema, source=OMS, columns=(Column(name="n", type="BIGINT"),))
    assert str(caught.value) == "schema n: holds long, and the column is decimal(20,0)"


def test_types_that_are_given_are_read_so():
    """As the table's schema notes them, whatever the table is called by then."""
    given = TypeOverrides.from_mapping({"shop.t": {"n": "decimal(9,2)"}})
    schema = create_table(TableName("shop", None, "t"), [Column(name="n")], (), SOURCE, given)
    schema = evolve(schema, "RENAME TABLE t TO t2", given=given).schema
    assert read_row(writer(schema).row({"n": number("1.50")}), schema) == {"n": Decimal("1.50")}


def test_the_field_of_a_column_is_a_union_of_null_and_its_type():
    """A row that others made otherwise is not written."""
    declared = json.loads(SCHEMA.row.json)
    declared["fields"][0]["type"] = ["null", "int", "string"]
    made = evolve(SCHEMA, "ALTER TABLE t ADD x INT").schema
    made.record["fields"][0]["type"] = declared["fields"][0]["type"]
    with pytest.raises(SchemaError) as caught:
        writer(made)
    assert str(caught.value) == "schema id: the field of a column is a union of null and its type"


_VALUES = st.none() | st.sampled_from([1, "x", "2024-02-30 00:00:00", "2024-02-29 01:02:03", {"a": 1}, number("1.50")])


def test_equal_values_that_are_not_the_same_are_two_values():
    """1, true and 1.0 are equal in Python: each is read for itself."""
    schema = table("id|int", key=("id",))
    written = writer(schema).envelope(change("UPDATE", before={"id": 1}, after={"id": True}))
    assert read(written, schema.envelope)["after"]["unparsed"] == {"id": "true"}


@pytest.mark.parametrize("given", [{"event_time": 1.5}, {"position": (1.5,)}, {"event_time": 2**63}, {"row": "1"}])
def test_what_is_no_integer_of_64_bits_is_refused(given):
    """Whoever makes a change: nothing is rounded or cut."""
    with pytest.raises(StructureError, match="expected an integer of at most 64 bits"):
        writer().envelope(change(after={"id": 1}, **given))


_ROWS = st.dictionaries(st.sampled_from(["id", "a", "at"]), _VALUES)


@given(_ROWS, _ROWS, st.sets(st.sampled_from(["id", "a", "at"])))
def test_values_that_are_the_same_in_both_rows_are_written_as_if_they_were_not(before, after, shared):
    """Objects that both rows hold are copied from the first; misfits and absent columns are told in both."""
    after |= {name: before[name] for name in shared & before.keys()}
    counts = Counter(), Counter()
    one = writer(count=counts[0].update).envelope(change("UPDATE", before=before, after=after))
    again = {name: copy.deepcopy(value) for name, value in after.items()}
    again |= {name: value.encode().decode() for name, value in after.items() if type(value) is str and value != "x"}
    other = writer(count=counts[1].update).envelope(change("UPDATE", before=before, after=again))
    assert one == other
    assert counts[0] == counts[1]
    assert read(one, SCHEMA.envelope)["after"] == read(writer().row(after), SCHEMA.row)


@given(_ROWS, _ROWS, st.sets(st.sampled_from(["id", "a", "at"])))
def test_rows_that_the_engine_takes_are_those_of_the_exact_way(before, after, shared):
    """Byte for byte; misfits, absent columns and unknown ones are left."""
    after |= {name: before[name] for name in shared & before.keys()}
    made, changed = writer(), change("UPDATE", before=before, after=after)
    assert made._cells.rows(before, after) in (None, made._exact_rows(changed))
    assert made._cells.rows(None, after) in (None, made._exact_rows(change(after=after)))


@pytest.mark.skipif(not COMPILED, reason="nothing is compiled here")
def test_rows_of_every_type_are_taken_by_the_engine():
    """So are their keys, and rows that a change has twice or not at all."""
    schema = table(*(f"{name}|{type}" for name, (type, _, _) in EVERY.items()), key=("i", "s"))
    row = {name: sent for name, (_, sent, _) in EVERY.items()}
    made = writer(schema, source=OMS, columns=())
    for before, after in ((row, row), (None, row), (row, None), (row, dict.fromkeys(row)), (None, None)):
        changed = change("UPDATE", before=before, after=after)
        assert made._cells.rows(before, after) == made._exact_rows(changed)
    assert read(made._key_cells.row(row), schema.key) == {"i": 2**32 - 1, "s": "é日😀\0", "unparsed": {}}
    assert made._cells.rows(row, row | {"unknown": 1}) is None
    assert made._cells.rows(row, row | {"t": "x"}) is None
    assert made._cells.rows(row, {"t": 1}) is None


def test_functions_are_remembered_by_object():
    """An equal object is another one; a list may change, and is not remembered."""
    made = []
    remembered = IdentityCache(lambda first, second: made.append((first, second)) or len(made))
    one, other = (Column(name="a"),), (Column(name="a"),)
    assert [remembered.of(one), remembered.of(one), remembered.of(other), remembered.of(one, other)] == [1, 1, 2, 3]
    assert [remembered.of(other), remembered.of(None), remembered.of(None)] == [2, 4, 4]
    listed = [Column(name="a")]
    assert [remembered.of(listed), remembered.of(listed)] == [5, 6]


class _Made:
    """Something that can be seen to go."""


@pytest.mark.slow
@pytest.mark.parametrize("columns", [(), (Column(name="a"),) * 40, (Column(name="a", type="x" * 6_400),)])
def test_no_more_is_remembered_than_there_is_room_for(columns):
    """The oldest go first; what is larger than an eighth of all is not kept."""
    alive = weakref.WeakSet()

    def make(_first, _second):
        found = _Made()
        alive.add(found)
        return found

    remembered = IdentityCache(make, 1_000)
    for _ in range(2_000):
        remembered.of((*columns, Column(name="b")))
    assert len(alive) <= 1 + 1_000 // weight_of((*columns, Column(name="b")))
    gc.collect()
    remembered.of(tuple([Column(name="c")] * 200))
    remembered.of(())
    gc.collect()
    assert len(alive) <= 2 + 1_000 // weight_of((*columns, Column(name="b")))


def test_kept_values_weigh_what_they_weigh():
    """A value that takes the place of another frees its room."""
    kept = WeightedCache(80)
    for weight in (10, 5, 10):
        kept.put("a", weight, weight)
    for key in "bcdefgh":
        kept.put(key, key, 10)
    assert [kept.get(key) for key in "abh"] == [10, "b", "h"]
    kept.put("i", "i", 1)
    assert [kept.get(key) for key in "abi"] == [None, "b", "i"]
    kept.put("b", "large", 11)
    assert kept.get("b") is None


@pytest.mark.slow
def test_room_is_made_at_once_however_much_is_kept():
    """The oldest of many values is found as soon as that of a few."""

    def took(most: int) -> float:
        kept = WeightedCache(most)
        for key in range(most):
            kept.put(key, key, 1)
        began = time.process_time()
        for key in range(most, most + 80_000):
            kept.put(key, key, 1)
        return time.process_time() - began

    few = min(took(500) for _ in range(2))
    assert min(took(90_000) for _ in range(2)) < 6 * few

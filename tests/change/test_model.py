"""The rows of one message, put together again, and those of others not; images where an operation has none."""

from __future__ import annotations

import json

import pytest

import cdcavro
from cdcavro.change.model import MAX_ROWS, Arrival, Change, ChangedTable, Column, Source, group_rows, replace
from cdcavro.transcoding.mapping import from_changes, to_changes
from support.facts import SIDES, facts_of, row_message
from support.roundtrip import error_of, exact


def rows_of(operation: str, table: str, **facts: str) -> str:
    """Write a Canal message of two rows, with more members if any are given."""
    more = "".join(f',"{name}":{value}' for name, value in facts.items())
    return (
        f'{{"type":"{operation}","database":"d","table":"{table}","es":1000{more},"data":[{{"id":"1"}},{{"id":"2"}}]}}'
    )


@pytest.mark.parametrize("format", ["oms_canal", "canal"])
@pytest.mark.parametrize(
    "other",
    [
        rows_of("DELETE", "t"),
        rows_of("INSERT", "u"),
        rows_of("INSERT", "t", ts="5"),
        rows_of("INSERT", "t", id="7"),
        rows_of("INSERT", "t", gtid='"x"'),
        rows_of("INSERT", "t", pkNames='["id"]'),
        rows_of("INSERT", "t", mysqlType='{"id":"int"}'),
        rows_of("INSERT", "t", sql='"x"'),
        rows_of("REPLACE", "t"),
    ],
)
def test_rows_of_different_messages_are_not_put_together(format, other):
    """Of a filtered list, the first row of one message and the second of another are two messages."""
    first, second = to_changes(rows_of("INSERT", "t"), format)[0], to_changes(other, format)[1]
    texts = from_changes([first, second], format)
    assert [exact(text)["data"] for text in texts] == [[{"id": "1"}], [{"id": "2"}]]
    assert [exact(text)["type"] for text in texts] == [first.operation, second.operation]


def test_rows_that_arrived_in_different_places_are_not_put_together():
    """Two messages may be equal in everything else."""
    placed = [
        [replace(one, place=Arrival(file="a", line=line)) for one in to_changes(rows_of("INSERT", "t"), "oms_canal")]
        for line in (1, 2)
    ]
    assert len(from_changes([placed[0][0], placed[1][1]], "oms_canal")) == 2
    assert len(from_changes(placed[0], "oms_canal")) == 1


FACTS = {
    "op": "DELETE",
    "half": "AFTER",
    "operation": "X",
    "source": Source(schema="x"),
    "key": ("x",),
    "columns": (Column(name="x"),),
    "position": (2,),
    "place": Arrival(topic="x"),
    "rows": 4,
    "event_time": 2,
    "system_time": 2,
    "checkpoint_time": 2,
    "transaction": "x",
    "ddl": "x",
    "ddl_meta": "x",
    "snapshot": True,
    "tables": (ChangedTable(op="ERASE", table="x"),),
}


@pytest.mark.parametrize(
    "fact", sorted(set(Change.__struct_fields__) - {"before", "after", "changed", "unavailable", "row", "members"})
)
def test_every_fact_of_a_message_tells_its_rows_from_others(fact):
    """One that differs is enough."""
    first, second = (Change(op="INSERT", row=i, rows=3, after={"a": i}) for i in (0, 1))
    assert group_rows([first, second]) == [[first, second]]
    other = replace(second, **{fact: FACTS[fact]})
    assert group_rows([first, other]) == [[first], [other]]


def test_rows_read_from_payloads_are_one_message_again():
    """They hold equal facts, not the same ones."""
    text = rows_of("INSERT", "t", mysqlType='{"id":"int"}', pkNames='["id"]', zz="1")
    changes = [Change.from_avro(one.to_avro()) for one in to_changes(text, "oms_canal")]
    assert [exact(back) for back in from_changes(changes, "oms_canal")] == [exact(text)]


@pytest.mark.parametrize(
    ("kept", "expected"),
    [
        ([0, 1, 2], '{"type":"DELETE","zz":1,"data":[{"id":1},{"id":2},{"id":3}],"old":[null,null,null]}'),
        ([0], '{"type":"DELETE","zz":1,"data":[{"id":1}]}'),
        ([0, 1], '{"type":"DELETE","zz":1,"data":[{"id":1},{"id":2}]}'),
    ],
)
def test_members_that_tell_of_rows_go_with_the_rows(kept, expected):
    """With a row missing they would tell of one that is gone: `old` would be longer than `data`."""
    text = '{"type":"DELETE","zz":1,"data":[{"id":1},{"id":2},{"id":3}],"old":[null,null,null]}'
    changes = to_changes(text, "oms_canal")
    (back,) = from_changes([changes[i] for i in kept], "oms_canal")
    assert {name: value for name, value in exact(back).items() if name != "old" or value is not None} == exact(expected)
    assert len(to_changes(back, "oms_canal")) == len(kept)


def test_members_go_with_the_first_row():
    """The others make a message of their own, in the format's own manner."""
    changes = to_changes(rows_of("INSERT", "t", zz="1"), "oms_canal")
    (back,) = from_changes(changes[1:], "oms_canal")
    assert "zz" not in exact(back)
    assert to_changes(back, "oms_canal")[0].after == {"id": "2"}


def test_members_of_a_change_that_has_no_message_any_more_are_not_put_in():
    """A change may be made of another."""
    (change,) = to_changes('{"recordType":"INSERT","zz":1}', "oms_default")
    assert from_changes([replace(change, op="TRANSACTION_BEGIN", operation=None)], "oms_default") == []


@pytest.mark.parametrize("format", ["oms_canal", "canal"])
@pytest.mark.parametrize(
    "facts",
    [
        {"mysqlType": {f"c{i}": "int" for i in range(2000)}},
        {"sqlType": {f"c{i}": 4 for i in range(2000)}},
        {"mysqlType": {"a": "x" * 50_000}},
        {"sql": "x" * 50_000},
        {"pkNames": ["abcdef"] * 7_000},
        {"pkNames": [""] * 20_000},
        {"table": "x" * 50_000},
    ],
)
@pytest.mark.slow
def test_rows_that_would_repeat_far_more_than_came_are_refused(format, facts):
    """2,000 rows that each carry 2,000 columns would be a thousand times the message."""
    text = json.dumps({"type": "INSERT", "data": [{"a": "1"}] * 2_000, **facts})
    most = 4 * 1024 * 1024 + 64 * len(text)
    message = error_of(to_changes, text, format)
    expected = (
        f"{format}: $: expected at most {most} characters of what 2000 rows have in common, once for each row, got "
    )
    assert message.startswith(expected)
    assert int(message.removeprefix(expected)) > most


@pytest.mark.parametrize(
    ("count", "row", "types"),
    [
        (40, {f"column_{i}": "1" for i in range(4096)}, {f"column_{i}": "varchar(255)" for i in range(4096)}),
        (1_600, {"a": "1"}, {"a": "enum(" + ",".join(f"'country {i}'" for i in range(250)) + ")"}),
        (20_000, {"id": "1", "v": "2"}, {"id": "bigint(20) unsigned", "v": "decimal(65,30)"}),
        (1, {"a": "1"}, {f"c{i}": "int" for i in range(20_000)}),
    ],
)
@pytest.mark.slow
def test_rows_of_real_tables_are_taken(count, row, types):
    """The widest table there may be, an ENUM of all countries in as many rows as fit an event, a large batch."""
    text = json.dumps({"type": "INSERT", "mysqlType": types, "data": [row] * count})
    changes = to_changes(text, "oms_canal")
    assert len(changes) == count
    assert all(len(change.columns) == len(types) for change in changes[:3])


@pytest.mark.slow
@pytest.mark.parametrize("format", ["oms_canal", "canal"])
@pytest.mark.parametrize("operation", ["INSERT", "DELETE"])
def test_a_message_has_a_bounded_number_of_rows(format, operation):
    """Each becomes a change, which takes far more room than the row; so many are taken, and one more is refused."""
    text = '{{"type":"{}","table":"t","data":[{}]}}'
    assert len(to_changes(text.format(operation, ",".join(["{}"] * MAX_ROWS)), format)) == MAX_ROWS == 100_000
    sentence = f"{format}: $.data: expected at most 100000 rows in a message, got 100001"
    assert error_of(to_changes, text.format(operation, ",".join(["{}"] * (MAX_ROWS + 1))), format) == sentence


CASES = [
    pytest.param(format, operation, side, id=f"{format}-{operation}-{side}")
    for format in cdcavro.FORMATS
    for operation, sides in facts_of(format).get("no image", {}).items()
    for side in sides
]


@pytest.mark.parametrize(("format", "operation", "side"), CASES)
def test_an_image_where_the_operation_has_none_is_refused(format, operation, side):
    """In every format, with the path to it; it is not dropped, and not made into another change."""
    path = facts_of(format)["row"][side]
    expected = f"{format}: {path}: expected no row {side} the change for {operation}, got some"
    assert error_of(to_changes, row_message(format, operation, side), format) == expected


@pytest.mark.parametrize(("format", "operation", "side"), CASES)
def test_images_that_are_null_are_none(format, operation, side):
    """And the message comes back."""
    text = row_message(format, operation, *({*SIDES} - {*facts_of(format)["no image"][operation]}))
    changes = to_changes(text, format)
    assert getattr(changes[0], side) is None
    assert [exact(back) for back in from_changes(changes, format)] == [exact(text)]


@pytest.mark.parametrize(("format", "operation", "side"), [case for case in CASES if "UPDATE_" not in str(case)])
def test_an_empty_image_where_the_operation_has_none_is_none(format, operation, side):
    """As the templates of OMS have it: it states nothing that could be lost, and the message comes back with it.

    DataHub's two messages of an update are not meant: of one that has both rows, either may have no column.
    """
    text = row_message(format, operation, *({*SIDES} - {*facts_of(format)["no image"][operation]}), empty=side)
    changes = to_changes(text, format)
    assert (getattr(changes[0], side), changes[0].changed) == (None, None)
    assert [exact(back) for back in from_changes(changes, format)] == [exact(text)]
    assert "{}" in text


@pytest.mark.parametrize("format", [one for one in cdcavro.FORMATS if "row" in facts_of(one) and one != "maxwell"])
def test_an_empty_row_does_not_stand_for_the_row_after_an_update(format):
    """It would be an update to nothing. Of Maxwell, an empty `old` is no row at all."""
    row = facts_of(format)["row"]
    expected = f"{format}: {row['after']}: expected the row after the change for {row['update']}, got none"
    assert error_of(to_changes, row_message(format, row["update"], empty="before"), format) == expected


@pytest.mark.parametrize(
    ("format", "operation"),
    [
        ("oms_canal", "DELETE"),
        ("canal", "DELETE"),
        ("maxwell", "delete"),
        ("aws_dms", "delete"),
        ("oms_shareplex", "del"),
    ],
)
def test_an_empty_second_row_before_a_delete_is_none(format, operation):
    """Where `data` is the row before it, and `old` or `key` have nothing to add."""
    text = row_message(format, operation, "after", empty="before")
    changes = to_changes(text, format)
    (plain,) = to_changes(row_message(format, operation, "after"), format)
    assert plain.before
    assert [replace(one, members=None) for one in changes] == [replace(plain, members=None)]
    assert [exact(back) for back in from_changes(changes, format)] == [exact(text)]


@pytest.mark.parametrize("format", [format for format in cdcavro.FORMATS if "row" in facts_of(format)])
def test_an_update_has_the_row_after_it(format):
    """The row before it alone would be typed as an update to nothing; a half that says it is one has one row."""
    row = facts_of(format)["row"]
    operation = row["update"]
    text = row_message(format, operation, "before")
    expected = f"{format}: {row['after']}: expected the row after the change for {operation}, got none"
    assert error_of(to_changes, text, format) == expected


def test_a_second_row_before_a_delete_is_refused():
    """Where `data` and `key` are the row before it."""
    assert error_of(to_changes, row_message("oms_canal", "DELETE", *SIDES), "oms_canal") == (
        "oms_canal: $.old[0]: expected no second row before the change for DELETE, got some"
    )
    assert error_of(to_changes, row_message("oms_shareplex", "del", *SIDES), "oms_shareplex") == (
        "oms_shareplex: $.key: expected no second row before the change for del, got some"
    )

"""Columns of shards: each statement is taken once, a shard that lags goes on, and what two do not mean alike is said."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from cdcavro.errors import SchemaError
from cdcavro.lake.evolution import LakeColumn
from cdcavro.sync.native.shard_columns import HeldNames, ShardColumn
from support.shard_runs import Lake


def column(name: str, type: str = "int", field: str | None = None, *aliases: str, until: int | None = None):
    """Return a column of a shard."""
    return LakeColumn(name, field or name, type, aliases, until)


ID, C = column("id", "bigint"), column("c")
# `c` behind a statement that renames it, and behind one that changes its type.
D = column("d", "int", "d", "c")
WIDE = column("c", "bigint")
_LEFT = (
    "column 'c' is another one than before, or has a type that does not fit, and other shards still have the one before"
)


def lake_of(*steps: tuple[str, Sequence[LakeColumn]]) -> Lake:
    """Return a lake table that shards have written one after another."""
    lake = Lake()
    for shard, wanted in steps:
        lake.write(shard, *wanted)
    return lake


def test_the_lake_has_the_columns_of_all_shards():
    """What several have is one column, by its name, in any case of letters."""
    lake = Lake()
    assert lake.write("a", ID, C) == ["column 'id' is added", "column 'c' is added"]
    assert lake.write("b", ID, column("C"), column("e", "string")) == ["column 'e' is added"]
    assert lake.columns == [("c", "int"), ("e", "string"), ("id", "bigint")]
    assert lake.where("b") == {"id": "id", "C": "c", "e": "e"}


@pytest.mark.parametrize("seen", [True, False])
def test_a_column_is_renamed_once_and_holds_what_shards_call_it_that_lag(seen: bool):
    """Also those of a shard that was not there before it was renamed."""
    lake = lake_of(("a", [ID, C]), *([("b", [ID, C])] if seen else []))
    assert lake.write("a", ID, D) == ["column 'c' is renamed to 'd'"]
    assert lake.write("b", ID, C) == []
    assert lake.where("b") == {"id": "id", "c": "d"}
    assert lake.write("b", ID, D) == []
    assert lake.where("b") == {"id": "id", "d": "d"}
    assert lake.write("c", ID, column("d")) == []
    assert lake.columns == [("d", "int"), ("id", "bigint")]


def test_names_that_come_back_are_told_apart_by_their_order():
    """A shard that lags does not rename the column back, and what all have done is done."""
    back = column("c", "int", "c_2", "d", "c")
    lake = lake_of(("a", [C]), ("b", [C]), ("a", [D]), ("a", [back]))
    assert lake.write("b", D) == []
    assert lake.columns == [("c", "int")]
    assert lake.write("b", back) == []
    assert lake.write("b", column("f", "int", "f", "c_2", "d", "c")) == ["column 'c' is renamed to 'f'"]


def test_a_column_that_the_lake_never_had_is_told_from_the_one_that_came_behind_it():
    """Also where the first was never written, or under another name, or the new one was renamed since."""
    again, dropped = column("c", "int", "c_2"), [[ID, C], [ID]]
    lake = Lake()
    lake.write("a", ID, again, earlier=dropped)
    assert refusal(lake, "b", ID, C) == "column 'c' may be 'c' of other shards, or another one"
    assert lake.write("b", ID, again, earlier=dropped) == []
    assert lake.where("b") == {"id": "id", "c": "c"}
    lake = lake_of(("a", [C]), ("b", [C]))
    lake.write("a", again, earlier=[[C], []], live={})
    third, renamed_third = column("c", "int", "c_3"), column("e", "int", "e", "c_3")
    assert lake.write("b", renamed_third, earlier=[[C], [], [again], [], [third]]) == ["column 'e' is added"]
    assert lake.where("b")["e"] == "e"
    lake = lake_of(("a", [ID]), ("a", [ID, C]), ("a", [ID, D]))
    assert lake.write("b", ID, again, earlier=dropped) == ["column 'c' is added"]


def test_a_column_gets_the_name_of_one_that_all_have_dropped():
    """What is put aside leaves its name before."""
    first, last = (column("x"), column("y")), column("x", "int", "x_2", "y")
    lake = lake_of(("a", first), ("b", first))
    taken = "a column becomes 'x', which is the name of another column in other shards"
    assert refusal(lake, "a", last) == refusal(lake, "a", last, live={"x": ["x"]}) == taken
    steps = lake.write("a", last, live={"y": ["x"]})
    assert steps[-2:] == ["column '~~moving 0' is renamed to 'x (dropped 1)'", "column '~~moving 1' is renamed to 'x'"]
    assert lake.write("b", last) == []
    assert lake.where("a") == lake.where("b") == {"x (dropped 1)": "x (dropped 1)", "x": "x"}


def test_a_shard_that_is_new_changes_no_name_back_that_came_back():
    """It may be at the first of them: what it does then is what others have done."""
    back = column("c", "int", "c_2", "d", "c")
    lake = lake_of(("a", [C]), ("a", [D]), ("a", [back]))
    assert lake.write("b", C) == lake.write("b", D) == lake.write("b", back) == []
    assert lake.columns == [("c", "int")]
    assert lake.write("e", C) == []
    assert lake.write("e", column("f", "int", "f", "c")) == ["column 'c' is renamed to 'f'"]


def test_several_statements_at_once_are_passed_over_at_once():
    """A shard may come from any name that the column had to any later one, and past a name that came back."""
    last = column("f", "int", "f", "d", "c")
    lake = lake_of(("a", [C]), ("b", [C]), ("e", [C]), ("a", [D]), ("a", [last]))
    assert lake.write("b", last, earlier=[[C], [D]]) == []
    back = column("c", "int", "c_2", "f", "d", "c")
    assert lake.write("a", back) == ["column 'f' is renamed to 'c'"]
    done = [[C], [D], [last], [back]]
    assert lake.write("e", column("g", "int", "g", "c_2", "f", "d", "c"), earlier=done) == [
        "column 'c' is renamed to 'g'"
    ]


def test_what_a_shard_called_a_column_between_two_batches_counts():
    """It followed what others had done, and went on."""
    last = column("f", "int", "f", "d", "c")
    lake = lake_of(("a", [C]), ("b", [C]), ("a", [D]))
    assert lake.write("b", last, earlier=[[C], [D]]) == ["column 'd' is renamed to 'f'"]
    assert lake.write("a", last, earlier=[[C], [D]]) == []
    lake = lake_of(("a", [C]), ("b", [C]))
    assert lake.write("b", last, earlier=[[C], [D]]) == ["column 'c' is renamed to 'f'"]
    assert lake.write("a", D, earlier=[[C]]) == []
    assert lake.where("a") == {"d": "f"}


def test_two_columns_change_their_names_in_one_statement():
    """As in a table of its own: a shard that lags goes on in what it had, and a new one that has not done it waits."""
    lake = lake_of(("a", [column("x"), column("y")]), ("b", [column("x"), column("y")]))
    swapped = column("y", "int", "y_2", "x"), column("x", "int", "x_2", "y")
    lake.write("a", *swapped)
    assert lake.where("b") == {"x": "y", "y": "x"}
    first = column("x"), column("y")
    assert "may be 'x' or 'y' of other shards" in refusal(lake, "e", *first)
    assert lake.write("e", *swapped, earlier=[first]) == []
    assert lake.where("e") == {"x": "x", "y": "y"}
    # One that has done it twice, or only seems to have done nothing.
    twice = column("x", "int", "x_3", "y_2", "x"), column("y", "int", "y_3", "x_2", "y")
    assert "may be 'x' or 'y' of other shards" in refusal(lake, "f", *twice, earlier=[first, swapped])
    assert lake.write("b", *swapped) == []
    assert lake.where("b") == {"x": "x", "y": "y"}
    lake.write("b", *twice)
    assert lake.write("f", *twice, earlier=[first, swapped]) == []
    assert lake.where("f") == lake.where("b") == {"x": "x", "y": "y"}
    assert lake.where("a") == {"x": "y", "y": "x"}


@pytest.mark.parametrize(("first", "second"), [(C, WIDE), (WIDE, C)])
def test_the_lake_has_the_wider_of_two_types(first: LakeColumn, second: LakeColumn):
    """Whichever comes first."""
    lake = lake_of(("a", [first]), ("b", [second]))
    assert lake.columns == [("c", "bigint")]
    assert [one.type for one in (*lake.shards["a"], *lake.shards["b"])] == [first.type, second.type]


def test_a_column_is_widened_once():
    """A shard that lags keeps its own type."""
    lake = lake_of(("a", [C]), ("b", [C]))
    assert lake.write("a", WIDE) == ["column 'c' becomes bigint"]
    assert lake.write("b", C) == []
    assert lake.write("b", WIDE) == []
    assert lake.columns == [("c", "bigint")]


def test_a_column_of_another_type_takes_over_once():
    """What it took over from is put aside; the versions of shards need not have the same numbers."""

    def changed(until: int) -> tuple[LakeColumn, ...]:
        return column(f"c (until version {until})", until=until, field="c"), column("c", "string", "c_2")

    lake = lake_of(("a", [C]), ("b", [C]))
    assert refusal(lake, "a", *changed(1)) == _LEFT
    steps = lake.write("a", *changed(1), live={})
    assert steps == ["column 'c' is renamed to 'c (until version 1)'", "column 'c' is added"]
    assert lake.where("b") == {"c": "c (until version 1)"}
    assert lake.write("b", *changed(4)) == []
    assert lake.where("b") == {"c (until version 4)": "c (until version 1)", "c": "c"}
    # A shard that is new has the old type, or both.
    assert lake.write("d", C) == []
    assert lake.where("d") == {"c": "c (until version 1)"}
    assert lake.write("e", *changed(2), earlier=[[C]]) == []
    assert lake.where("e") == {"c (until version 2)": "c (until version 1)", "c": "c"}


def test_a_column_that_is_dropped_and_comes_again_is_another_one():
    """A shard that lags still has the first."""
    again = column("c", "int", "c_2")
    lake = lake_of(("a", [ID, C]), ("b", [ID, C]), ("a", [ID]))
    assert refusal(lake, "a", ID, again) == _LEFT
    steps = lake.write("a", ID, again, live={})
    assert steps == ["column 'c' is renamed to 'c (dropped 1)'", "column 'c' is added"]
    assert lake.where("b") == {"id": "id", "c": "c (dropped 1)"}
    assert lake.write("b", ID, again) == []
    assert lake.where("b") == {"id": "id", "c (dropped 1)": "c (dropped 1)", "c": "c"}
    # Of one that has had one alone nobody knows which.
    assert refusal(lake, "d", ID, C) == "column 'c' may be 'c' or 'c (dropped 1)' of other shards"
    assert lake.write("d", ID, again, earlier=[[ID, C], [ID]]) == []
    assert lake.where("d") == {"id": "id", "c": "c"}


@pytest.mark.parametrize("others", [[[C]], [[C], [D]], [[D]]])
def test_a_shard_that_is_new_says_what_it_called_its_columns_before(others: Sequence[Sequence[LakeColumn]]):
    """So what others have not followed yet is done once, whichever is furthest."""
    lake = lake_of(*[("a", one) for one in others])
    lake.write("b", D, earlier=[[C]])
    assert lake.columns == [("d", "int")]
    assert lake.write("a", D) == []
    again = column("c", "int", "c_2")
    assert lake.write("e", D, again, earlier=[[C], [D]]) == ["column 'c' is added"]
    assert lake.where("e") == {"d": "d", "c": "c"}
    assert lake.write("a", D, again, earlier=[[C], [D]]) == lake.write("b", D, again, earlier=[[C], [D]]) == []


def test_a_shard_that_lags_is_told_by_what_one_that_came_first_had_called_its_columns():
    """Though the lake table never had these names; and what another one says of a column that is there counts, too."""
    for lake in (lake_of(), lake_of(("a", [D]))):
        lake.write("b", D, earlier=[[C]])
        assert lake.write("e", C) == []
        assert lake.where("e") == {"c": "d"}
        assert lake.write("e", D) == []
        assert lake.columns == [("d", "int")]
    again = column("c", "int", "c_2")
    lake = Lake()
    lake.write("a", D, again, earlier=[[C], [D]])
    # It has not begun behind that, as it would have had both.
    assert lake.write("b", C) == []
    assert lake.where("b") == {"c": "d"}
    assert lake.write("b", D, again, earlier=[[C], [D]]) == []
    assert lake.where("b") == {"d": "d", "c": "c"}


def test_a_shard_that_is_new_says_what_took_over_from_what():
    """Whether others have followed that or not."""
    new = column("c (until version 1)", until=1, field="c"), column("c", "string", "c_2")
    for others, done in (([C], 2), (new, 0), ([column("c", "string")], 1)):
        lake = Lake()
        lake.write("a", *others, earlier=[] if done else [[C]])
        if done == 2:
            assert refusal(lake, "b", *new, earlier=[[C]]) == _LEFT
        assert len(lake.write("b", *new, earlier=[[C]], live={})) == done
        assert lake.columns == [("c", "string"), ("c (until version 1)", "int")]
        assert lake.where("b") == {"c (until version 1)": "c (until version 1)", "c": "c"}
        assert lake.write("e", *new, earlier=[[C]]) == []


def test_a_name_that_is_that_of_another_column_by_now_is_refused_until_others_follow():
    """As columns that change their names, and one that was dropped and comes again."""
    lake = lake_of(("a", [C]))
    again, said = (
        column("c", "int", "c_2"),
        "column 'c' is another one than before, and others may not have followed yet",
    )
    assert refusal(lake, "b", again, earlier=[[C], []]) == said
    lake.write("a", again)
    assert lake.write("b", again, earlier=[[C], []]) == []
    assert lake.where("b") == {"c": "c"}
    first, swapped = (column("x"), column("y")), (column("y", "int", "y_2", "x"), column("x", "int", "x_2", "y"))
    lake = lake_of(("a", first))
    lake.write("b", *swapped, earlier=[first])
    assert lake.where("a") == {"x": "y", "y": "x"}
    assert lake.write("a", *swapped, earlier=[first]) == []
    assert lake.where("b") == lake.where("a") == {"x": "x", "y": "y"}


def refusal(lake: Lake, shard: str, *wanted: LakeColumn, **more: Any) -> str:
    """Return why a shard cannot be written, for which nothing is changed."""
    before = lake.columns, dict(lake.shards), lake.names
    with pytest.raises(SchemaError) as raised:
        lake.write(shard, *wanted, **more)
    assert (lake.columns, lake.shards, lake.names) == before
    return raised.value.reason


def test_types_that_do_not_hold_one_another_are_refused():
    """Until the shard changes its own."""
    lake = lake_of(("a", [ID, C]))
    said = "column 'c' is string, and int in other shards: neither type holds the values of the other"
    assert refusal(lake, "b", ID, column("c", "string")) == said
    assert lake.write("b", ID, column("c (until version 1)", "string", "c", until=1), column("c", "int", "c_2")) == [
        "column 'c (until version 1)' is added"
    ]


def test_a_name_that_means_two_things_is_refused():
    """Until the shard says which one it is."""
    again = column("c", "int", "c_2")
    lake = lake_of(("a", [C]), ("a", [D]), ("a", [D, again]), ("a", [again]))
    assert refusal(lake, "b", C) == "column 'c' may be 'c' or 'd' of other shards"
    assert lake.write("b", D, earlier=[[C]]) == lake.write("b", D, again) == []
    assert lake.where("b") == {"d": "d", "c": "c"}


def test_two_names_for_one_column_are_refused():
    """A name that another column has, too, and a new column by a name that others have given to an old one."""
    other = column("e", "int", "e", "c")
    lake = lake_of(("a", [C]), ("b", [C]), ("a", [D]))
    assert refusal(lake, "b", other) == "column 'c' becomes 'e', and 'd' in other shards"
    taken = "a column becomes 'd', which is the name of another column in other shards"
    assert refusal(lake, "b", C, column("d")) == taken
    lake = lake_of(("a", [C, column("e")]), ("b", [C]))
    assert refusal(lake, "b", other) == "a column becomes 'e', which is the name of another column in other shards"


def test_a_column_that_somebody_else_has_added_is_left_alone():
    """It has no field, and is no shard's."""
    lake = lake_of(("a", [C]))
    lake.present.append(LakeColumn("note", "", "string"))
    assert lake.write("a", C, column("e")) == ["column 'e' is added"]
    assert lake.write("b", ID, C) == ["column 'id' is added"]


def test_columns_of_a_kin_count_among_those_that_were_called_so():
    """In a state that knows names alone of others: a shard that comes later may mean one between two of these."""
    again, last = column("c", "int", "c_2"), column("c", "int", "c_3")
    lake = Lake()
    lake.present, lake.names = [column("d", "int", "c"), last], HeldNames.of('[{"c":["c","d"]},{"c_3":["c"]}]')
    lake.shards["a"] = [ShardColumn("c", "c", "int", "c", 0)]
    assert lake.write("a", D, earlier=[[C]]) == []
    lake.versions["b"] = [[C], [D], []]
    said = "column 'c' is another one than before, and others may not have followed yet"
    assert refusal(lake, "b", again) == said

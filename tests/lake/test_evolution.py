"""What is done to a lake table's columns, in the words of Flink CDC."""

from __future__ import annotations

import pytest

from cdcavro.lake.evolution import (
    ADD_COLUMN,
    ALTER_TYPE,
    BEHAVIORS,
    BEHIND,
    DROP_COLUMN,
    FRONT,
    RENAME_COLUMN,
    LakeColumn,
    Step,
    columns_behind,
    in_front,
    is_wider_decimal,
    steps_to,
)
from cdcavro.lake.sql_statements import alter_table
from support.roundtrip import error_of

Columns = list[LakeColumn]


def column(name: str, field: str = "", type: str = "int", aliases: tuple[str, ...] = (), until: int | None = None):
    """Return a column, whose field has its name unless told otherwise."""
    return LakeColumn(name, field or name, type, aliases, until)


def can_widen(old: str, new: str) -> bool:
    """Return whether an int becomes a bigint, which every sink can."""
    return (old, new) == ("int", "bigint")


def steps(present: Columns, wanted: Columns, behavior: str = "lenient") -> list[Step]:
    """Return the steps from some columns to others."""
    return steps_to("t", present, wanted, behavior, can_widen)


def said(present: Columns, wanted: Columns, behavior: str = "lenient") -> list[str]:
    """Return the steps as sentences."""
    return [str(step) for step in steps(present, wanted, behavior)]


def after(present: Columns, taken: list[Step]) -> Columns:
    """Return the columns of a lake table behind steps, as the sinks take them."""
    found = {one.name: one for one in present}
    for step in taken:
        if step.kind == "add":
            assert step.name.casefold() not in {name.casefold() for name in found}
            found[step.name] = step.column
            continue
        old = found.pop(step.name)
        if step.kind == "rename":
            assert step.column.name.casefold() not in {name.casefold() for name in found}
            found[step.column.name] = LakeColumn(step.column.name, old.field, old.type)
        elif step.kind == "widen":
            found[step.name] = LakeColumn(old.name, old.field, step.column.type)
        elif step.kind == "mark":
            found[step.name] = LakeColumn(old.name, step.column.field, old.type)
    return list(found.values())


A, B = column("a"), column("b")
RENAMED = column("x", aliases=("b",))
RETYPED = [A, column("b (until version 2)", "b", until=2), column("b", "b_x_2", "string")]
_HOLDS_X = "column 'b' gets the values of the schema's field 'x' from now on"
SWAPPED = [column("b", "a_x_2", aliases=("a",)), column("a", "b_x_2", aliases=("b",))]


@pytest.mark.parametrize(
    ("wanted", "sentences"),
    [
        ([A, B], []),
        ([A, B, column("c", type="string")], ["column 'c' is added"]),
        (
            [A, RENAMED],
            [
                "column 'b' is renamed to 'x'",
                f"column 'x' gets the values of the schema's field {RENAMED.field!r} from now on",
            ],
        ),
        ([A, column("b", type="bigint")], ["column 'b' becomes bigint"]),
        ([A], []),
        (RETYPED, ["column 'b' is renamed to 'b (until version 2)'", "column 'b' is added"]),
        ([A, column("b", "b_x_2", "string")], ["column 'b' is renamed to 'b (dropped 1)'", "column 'b' is added"]),
    ],
)
def test_leniently_columns_are_added_renamed_and_widened_and_none_is_taken_away(wanted: Columns, sentences: list[str]):
    """One that the table has no more keeps what it had, aside if another has its name."""
    assert said([A, B], wanted) == sentences
    reached = after([A, B], steps([A, B], wanted))
    assert {(one.name, one.type) for one in wanted} <= {(one.name, one.type) for one in reached}
    assert steps(reached, wanted) == [], "what was done is not done again"


def ordered(names: str, taken: list[Step]) -> str:
    """Return the names of a lake table's columns behind steps that are taken in front of this project's own."""
    found = names.split()
    for step in in_front(taken, found):
        if step.kind == "add":
            found.insert(
                len(found) if step.after is None else found.index(step.after) + 1 if step.after else 0, step.name
            )
        else:
            at = found.index(step.name)
            found[at : at + 1] = {"rename": [step.column.name], "drop": []}.get(step.kind, [step.name])
    return " ".join(name.replace(" ", "") for name in found)


C, D = column("c"), column("d")


@pytest.mark.parametrize(
    ("names", "wanted", "expected"),
    [
        ("a b", [A, B, C], "a b c"),
        ("a b _cdc_key", [A, B, C, D], "a b c d _cdc_key"),
        ("a b _cdc_key", [C, D, A, B], "c d a b _cdc_key"),
        ("a b _cdc_key", [A, C, B, D], "a c b d _cdc_key"),
        ("a b _cdc_key", [A, RENAMED, C], "a x c _cdc_key"),
        ("a b _cdc_key", RETYPED, "a b(untilversion2) b _cdc_key"),
        ("a b _cdc_key", [A, column("b", "b_x_2", "string")], "a b b(dropped1) _cdc_key"),
        ("b _cdc_key", [A, B, C], "a b c _cdc_key"),
        # Tables of earlier versions, and of others.
        ("a _cdc_key b", [A, B, C], "a c _cdc_key b"),
        ("a _cdc_key b", [A, C, B, D], "a c d _cdc_key b"),
        ("_cdc_key a b", [A, B, C, D], "c d _cdc_key a b"),
        ("_cdc_key a b", [C, A, B], "c _cdc_key a b"),
        ("b _cdc_key a", [A, B, C], "b c _cdc_key a"),
    ],
)
def test_columns_are_added_where_the_table_has_them_and_never_behind_those_of_this_project(
    names: str, wanted: Columns, expected: str
):
    """Behind what they stand behind in the table, if that stands in front."""
    present = [column(name) for name in names.split() if not name.startswith("_cdc_")]
    assert ordered(names, steps(present, wanted)) == expected


def test_names_that_are_made_are_spelled_as_the_lake_has_them():
    """And stay apart from those that were made before."""

    def spelled(text: str) -> str:
        return text.replace(" ", "_")

    held = [A, column("b", "b_x_2"), column("b_(dropped_1)", "b_x_1")]
    wanted = [A, column("b", "b_x_3", "string")]
    taken = steps_to("t", held, wanted, "lenient", can_widen, (), spelled)
    assert [str(one) for one in taken] == ["column 'b' is renamed to 'b_(dropped_2)'", "column 'b' is added"]
    wanted = [A, column("x", "b", aliases=()), column("b", "b_x_3")]
    taken = steps_to("t", [A, B], wanted, "lenient", can_widen, {RENAME_COLUMN}, spelled)
    assert [one.name for one in taken if one.kind == "add"] == ["b_(added_1)"]


def test_columns_behind_steps_know_whose_values_they_have():
    """A new one has none, also if one of its name went."""
    taken = [
        Step("drop", "a", A),
        Step("rename", "b", column("a")),
        Step("widen", "a", column("a", type="bigint")),
        Step("mark", "a", column("a", "x")),
        Step("add", "b", column("b", "new"), FRONT),
        Step("add", "c", C, "a"),
        Step("add", "d", D),
    ]
    assert columns_behind([A, B, column("_cdc_key")], taken) == [
        (None, column("b", "new")),
        ("b", LakeColumn("a", "x", "bigint")),
        (None, C),
        ("_cdc_key", column("_cdc_key")),
        (None, D),
    ]


def test_a_dropped_column_makes_room():
    """For one of its name, which a column follows."""
    taken = steps_to("t", [A, B], [column("b", "b_x_2", "string"), C], "evolve", can_widen)
    assert ordered("a b _cdc_key", taken) == "b c _cdc_key"


def test_columns_that_change_their_names_with_each_other_are_both_renamed():
    """By names that nobody has."""
    taken = steps([A, B], SWAPPED)
    assert [step.kind for step in taken] == ["rename"] * 4 + ["mark"] * 2
    assert {(one.name, one.field) for one in after([A, B], taken)} == {("b", "a_x_2"), ("a", "b_x_2")}


@pytest.mark.parametrize("number", range(6))
def test_what_a_crash_interrupted_is_taken_up_where_it_stopped(number: int):
    """However many steps were taken."""
    reached = after([A, B], steps([A, B], SWAPPED)[:number])
    again = after(reached, steps(reached, SWAPPED))
    assert {(one.name, one.field) for one in again} == {("b", "a_x_2"), ("a", "b_x_2")}


def test_evolve_drops_columns_and_stops_at_a_type_that_another_column_takes_over():
    """As the source does."""
    assert said([A, B], [A], "evolve") == ["column 'b' is dropped"]
    expected = "schema t: column 'b' has another type from version 3 on"
    assert error_of(steps, [A, B], RETYPED, "evolve") == expected


def test_try_evolve_drops_columns_and_keeps_one_whose_type_another_takes_over():
    """What cannot be as in the source is as with lenient."""
    assert said([A, B], [A], "try_evolve") == ["column 'b' is dropped"]
    assert said([A, B], RETYPED, "try_evolve") == said([A, B], RETYPED)


def test_exception_stops_at_any_step_and_says_it():
    """A table that has not changed goes on."""
    assert said([A, B], [A, B], "exception") == []
    expected = "schema t: its lake table would change: column 'b' is renamed to 'x'"
    assert error_of(steps, [A, B], [A, RENAMED], "exception") == expected


def test_ignore_changes_nothing():
    """Rows go on into the columns that there are."""
    for wanted in ([A], [A, RENAMED], RETYPED, [A, B, column("c")], [A, column("b", type="date")]):
        assert said([A, B], wanted, "ignore") == []


ANEW = "move its lake tables away, and the next run begins new ones with the rows that are pending"


@pytest.mark.parametrize("behavior", sorted({*BEHAVIORS} - {"ignore"}))
def test_a_type_that_the_lake_cannot_widen_stops_the_table(behavior: str):
    """Nothing is cast by guess."""
    expected = f"schema t: column 'b' is int, which the lake cannot make double: {ANEW}"
    assert error_of(steps, [A, B], [A, column("b", type="double")], behavior) == expected


@pytest.mark.parametrize(
    ("held", "wanted", "is_held"),
    [
        ("bigint", "int", True),
        ("smallint", "tinyint", True),
        ("smallint", "int", False),
        ("decimal(20,2)", "decimal(10,2)", True),
        ("decimal(10,2)", "decimal(20,2)", False),
        ("decimal(20,4)", "decimal(10,2)", False),
        ("string", "int", False),
        ("double", "float", False),
    ],
)
def test_a_smaller_type_is_kept_in_the_wider_one_of_the_lake(held: str, wanted: str, *, is_held: bool):
    """As a table has that is made again, whose lake table stays; one that may not hold all values stops the table."""
    columns = [A, column("b", type=held)], [A, column("b", type=wanted)]
    if is_held:
        assert steps(*columns) == []
    else:
        sentence = f"schema t: column 'b' is {held}, which the lake cannot make {wanted}: {ANEW}"
        assert error_of(steps, *columns) == sentence


@pytest.mark.parametrize(
    ("wanted", "excluded", "sentences"),
    [
        ([A, B, column("c")], {ADD_COLUMN}, []),
        ([A], {DROP_COLUMN}, []),
        ([A], {ADD_COLUMN}, ["column 'b' is dropped"]),
        ([A, RENAMED], {RENAME_COLUMN}, [_HOLDS_X]),
        (
            [column("a"), RENAMED, column("b", "b_x_2")],
            {RENAME_COLUMN},
            [_HOLDS_X, "column 'b (added 1)' is added"],
        ),
        (
            SWAPPED,
            {RENAME_COLUMN},
            [f"column '{one}' gets the values of the schema's field '{one}_x_2' from now on" for one in ("a", "b")],
        ),
        ([A, column("b", type="bigint")], {ALTER_TYPE}, []),
        (RETYPED, {ALTER_TYPE}, ["column 'b (added 1)' is added"]),
        (RETYPED, {ALTER_TYPE, ADD_COLUMN}, []),
    ],
)
def test_what_excluded_statements_would_do_is_not_done(wanted: Columns, excluded: set[str], sentences: list[str]):
    """What keeps its name or its type goes on under it, and nothing else takes the name; it is no exception, either."""
    if not any("is added" in one for one in sentences):
        assert not [
            one for one in steps_to("t", [A, B], wanted, "exception", can_widen, excluded) if one.kind != "mark"
        ]
    taken = steps_to("t", [A, B], wanted, "evolve", can_widen, excluded)
    assert [str(step) for step in taken] == sentences
    reached = after([A, B], taken)
    assert {(one.name, one.type) for one in (A, B)} <= {
        (one.name, one.type) for one in reached
    } or ADD_COLUMN in excluded
    assert steps_to("t", reached, wanted, "evolve", can_widen, excluded) == [], "what was done is not done again"


def test_a_column_that_gets_a_free_name_keeps_it_while_another_has_its_own():
    """Also where only types are not followed, and gets its own once they are."""
    reached = after([A, B], steps_to("t", [A, B], RETYPED, "lenient", can_widen, {ALTER_TYPE}))
    assert steps_to("t", reached, RETYPED, "lenient", can_widen, {ALTER_TYPE, RENAME_COLUMN}) == []
    followed = after(reached, steps(reached, RETYPED))
    assert {(one.name, one.field) for one in followed} == {("a", "a"), ("b (until version 2)", "b"), ("b", "b_x_2")}


@pytest.mark.parametrize(("old", "new"), [("decimal(5,1)", "decimal(7,2)"), ("int", "double"), ("float", "double")])
def test_a_type_that_is_not_followed_and_would_round_values_stops_the_table(old: str, new: str):
    """The rows wait, and none is written otherwise than it is."""
    expected = (
        f"schema t: column 'a' becomes {new}, which is not followed, as alter.column.type is excluded, and whose values"
        f" the lake's {old} does not hold exactly"
    )
    excluded = {ALTER_TYPE}
    own = [column("a", type=old)], [column("a", type=new)]
    assert error_of(steps_to, "t", *own, "lenient", can_widen, excluded) == expected
    same = column("a", type="decimal(9,1)")
    assert steps_to("t", [column("a", type="decimal(5,1)")], [same], "lenient", can_widen, excluded) == []


def test_a_word_that_is_none_is_refused():
    """Before anything is done."""
    expected = "a behavior is one of exception, evolve, try_evolve, lenient, ignore, not 'lax'"
    with pytest.raises(ValueError, match=expected):
        steps([A], [A], "lax")


@pytest.mark.parametrize(
    ("old", "new", "held"),
    [
        ("decimal(12,2)", "decimal(20,2)", (True, True)),
        ("decimal(12,2)", "decimal(20,4)", (False, True)),
        ("decimal(12,2)", "decimal(13,4)", (False, False)),
        ("decimal(12,2)", "decimal(20,1)", (False, False)),
        ("decimal(12,2)", "bigint", (False, False)),
        ("int", "decimal(20,2)", (False, False)),
    ],
)
def test_a_decimal_is_wider_if_it_holds_all_values(old: str, new: str, held: tuple[bool, bool]):
    """Digits before the point and behind it; Iceberg wants the scale to stay."""
    assert (is_wider_decimal(old, new, is_scale_free=False), is_wider_decimal(old, new, is_scale_free=True)) == held


def test_a_step_that_is_not_known_has_no_statement():
    """The last branch raises."""
    with pytest.raises(ValueError, match="shuffle is none of add, rename, widen, mark, drop"):
        alter_table("t", Step("shuffle", "a", A))


def test_a_version_behind_its_lake_table_renames_nothing():
    """What it lacks is added, under another name if the lake has that one; a type is an error that says who waits."""
    present = [column("f (until version 1)", "f"), column("f", "f_x_2", "string"), column("b", "a_x_3")]
    assert said(present, [column("f")], BEHIND) == []
    assert said(present, [column("f", type="bigint"), column("c")], BEHIND) == [
        "column 'f (until version 1)' becomes bigint",
        "column 'c' is added",
    ]
    assert said(present, [column("B", "b")], BEHIND) == ["column 'B (added 1)' is added"]
    # A field that the lake has under a name from before stays so: it is another table's.
    assert said(present, [column("b", "b", aliases=("f",))], BEHIND) == []
    error = error_of(lambda: steps(present, [column("n", "f_x_2")], BEHIND))
    assert "column 'f' is string, which the lake cannot make int: only late rows wait" in str(error)
